"""From a label posterior to values and draws of metrics: the one last step of every method.

Population: each draw takes the posterior's parameters, labels drawn from them, and Exp(1) row
weights (the Bayesian bootstrap over items), so it carries parameter, label and sampling
uncertainty. Sample: these very items, hence no row weights; a known label leaves no uncertainty.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

import numpy as np

from fewlabels.evaluation.draws import (
    DRAWS_AT_ONCE,
    EXACT_ITEMS,
    EXPECTED,
    INTERVAL_SOFT,
    POINT,
    DrawKind,
    Entries,
    LabelWeights,
)
from fewlabels.evaluation.groups import GROUP_DRAWS, ManyGroups
from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.blocks import (
    Progress,
    collect_blocks,
    map_blocks,
    report,
    silent,
    using_workers,
)
from fewlabels.kernels.interval_draws import (
    above_noise_floor,
    inflated,
    over_draws,
    point_value,
    recentred,
    shifted_log_odds,
)
from fewlabels.kernels.weighting import Drawn
from fewlabels.metrics.base import Metric, Plan, ScoreView, resampled_values
from fewlabels.metrics.plans import Chosen, States, metrics_of_rates, prepare, view_of
from fewlabels.posterior import LabelPosterior, MeanEstimator, VoteRates, draw_labels
from fewlabels.predictions import Predictions

Estimand = Literal["population", "sample"]
_Pattern = tuple[LabelPosterior, Chosen, Ints, Ints]
"""Posterior, metrics, classifiers and items."""

INTERVAL_DRAWS = 400
MOST_DRAWS = 4000
"""Draws behind an interval, up to a level of .95, and at most for levels beyond."""

LABEL_DRAWS = 500
"""Draws of labels for a point estimate where no exact expectation exists (the paper's number)."""

EXACT_PREDICTIONS = 1_000_000
"""Rankings are exact up to this many predictions of all classifiers, and up to `EXACT_ITEMS`."""

FEWER_DRAWS = 200_000, 2_000_000
"""Above this many items, or predictions of all classifiers, half as many draws are made."""

_CLASS_CELLS = 2**24
"""Likewise above this many items times classes."""

_CHANCE_DRAWS = 100

_GROUP_CELLS = 2**21
"""Label weights of a block of groups."""

TOO_FEW = 20

MANY = 32
"""From this many patterns of items on (annotators, each with other items), each thread works on one
pattern, not on its draws; votes alone are measured in one pass."""


class Measured(NamedTuple):
    """Values (M,), interval draws (D, M) of one metric, and how many of these are undefined."""

    value: Floats
    draws: Floats
    undefined: Ints

    @staticmethod
    def from_draws(value: Floats, draws: Floats) -> Measured:
        """Values and draws with the count of undefined draws, NaN, of each classifier."""
        return Measured(value, draws, np.isnan(draws).sum(axis=0))


def nothing_measured(metrics: Chosen, n_draws: int, n_models: int) -> dict[str, Measured]:
    """NaN for every metric and classifier, to be replaced."""
    return {
        name: Measured(
            np.full(n_models, np.nan),
            np.full((n_draws, n_models), np.nan),
            np.zeros(n_models, dtype=np.int64),
        )
        for name in metrics
    }


def n_interval_draws(level: float | None) -> int:
    """Interval draws that a confidence level needs; 0 without intervals."""
    if level is None:
        return 0
    chunks = math.ceil(20 / (1 - level) / DRAWS_AT_ONCE)
    return min(max(INTERVAL_DRAWS, chunks * DRAWS_AT_ONCE), MOST_DRAWS)


@dataclass(frozen=True, eq=False)
class Evaluator:
    """Computes metrics of every classifier under one label posterior."""

    predictions: Predictions
    posterior: LabelPosterior
    metrics: Chosen
    estimand: Estimand
    confidence_level: float | None = 0.95
    progress: Progress = silent

    def measure(self, rows: Ints) -> dict[str, Measured]:
        """Every metric of every classifier on some of the items."""
        predictions = self.predictions
        patterns = self.patterns(rows[predictions.weight[rows] > 0])
        out = nothing_measured(self.metrics, self.n_draws, predictions.n_models)

        def enter(columns: Ints, measured: dict[str, Measured]) -> None:
            for name, values in measured.items():
                out[name].value[columns] = values.value
                out[name].draws[:, columns] = values.draws
                out[name].undefined[columns] = values.undefined

        rest: list[_Pattern] = []
        for posterior, chosen, columns, subset in patterns:
            from_rates: dict[str, Measured] = {}
            rates = posterior.vote_rates
            # Of clusters they are as sure as of independent rows, so that rows are drawn there.
            if rates is not None and self.estimand == "population" and not predictions.clusters:
                from_rates = _measure_rates(self, rates, chosen, subset, columns)
                enter(columns, from_rates)
            left = {name: metric for name, metric in chosen.items() if name not in from_rates}
            if left:
                rest.append((posterior, left, columns, subset))
        if self._pooled_votes(rest):
            columns, measured = self._ballots(rest)
            enter(columns, measured)
            return out
        for pattern, measured in zip(rest, self._measure_each(rest), strict=True):
            enter(pattern[2], measured)
        return out

    def groups(self, group: Ints, n_groups: int) -> list[dict[str, Measured]]:
        """Every metric of every classifier on each of G groups (n,), in one pass."""
        m, n_draws = self.predictions.n_models, GROUP_DRAWS if self.n_draws else 0
        rows = np.flatnonzero(self.predictions.weight > 0)
        if self.n_draws:
            self.posterior.prepare()
        out = {
            name: Measured(
                np.full((m, n_groups), np.nan),
                np.full((n_draws, m, n_groups), np.nan),
                np.zeros((m, n_groups), dtype=np.int64),
            )
            for name in self.metrics
        }
        for posterior, chosen, columns, subset in self.patterns(rows):
            entries = Entries(group=group[subset], n_groups=n_groups)
            task = _Task(self, posterior, chosen, subset, columns, entries, n_draws)
            for name, measured in task.measure().items():
                out[name].value[columns] = measured.value.reshape(-1, n_groups)
                out[name].draws[:, columns] = measured.draws.reshape(n_draws, -1, n_groups)
                out[name].undefined[columns] = measured.undefined.reshape(-1, n_groups)
        return [
            {n: Measured.from_draws(m.value[:, g], m.draws[:, :, g]) for n, m in out.items()}
            for g in range(n_groups)
        ]

    def _pooled_votes(self, patterns: list[_Pattern]) -> bool:
        """Whether all patterns are votes under one posterior, and enough to measure in one pass."""
        if len(patterns) < MANY or self.estimand != "population":
            return False
        posterior, metrics = patterns[0][:2]
        return (
            posterior.infers
            and posterior.label_spread is None
            and self.predictions.multiplicity is None
            and all(metric.needs == "hard" for metric in metrics.values())
            and all(p[0] is posterior and p[1].keys() == metrics.keys() for p in patterns)
        )

    def _ballots(self, patterns: list[_Pattern]) -> tuple[Ints, dict[str, Measured]]:
        """Metrics of all voters in one pass: an entry is a vote, and its group the voter."""
        posterior, metrics = patterns[0][:2]
        self._prepare(posterior)
        voters = [(j, subset) for *_, columns, subset in patterns for j in columns.tolist()]
        rows = np.unique(np.concatenate([subset for _, subset in voters]))
        items = np.concatenate([np.searchsorted(rows, subset) for _, subset in voters])
        votes = np.concatenate([self.predictions.hard_of(subset, j) for j, subset in voters])
        group = np.repeat(np.arange(len(voters)), [len(subset) for _, subset in voters])
        entries = Entries(items, group, len(voters))
        view = ScoreView(
            self.predictions.n_classes, hard=votes.astype(np.int64), group=group,
            n_groups=len(voters), grades=self.predictions.grades,
        )  # fmt: skip
        columns = np.array([j for j, _ in voters])
        task = _Task(self, posterior, metrics, rows, columns, entries, views=[view])
        return columns, task.measure()

    def noise(self) -> dict[str, Floats]:
        """What drawn labels and rows add to every metric beyond the parameters, (D, M).

        The metric of a draw's labels and row weights minus that of the same draw's P(label), less
        the mean over draws; empty without intervals.
        """
        if not self.n_draws:
            return {}
        out = nothing_measured(self.metrics, self.n_draws, self.predictions.n_models)
        rows = np.arange(self.predictions.n_items)
        for posterior, chosen, columns, subset in self.patterns(rows):
            self._prepare(posterior)
            for name, noise in _Task(self, posterior, chosen, subset, columns).noise().items():
                out[name].draws[:, columns] = noise - over_draws(np.nanmean, noise)
        return {name: measured.draws for name, measured in out.items()}

    def of_parameters(self, rows: Ints, size: int) -> dict[str, Floats]:
        """Every metric on some of the items under each parameter draw of intervals, (size, M)."""
        out = {name: np.full((size, self.predictions.n_models), np.nan) for name in self.metrics}
        for posterior, chosen, columns, subset in self.patterns(rows):
            posterior.prepare()
            task = _Task(self, posterior, chosen, subset, columns)
            for name, values in task.expected(size).items():
                out[name][:, columns] = values
        return out

    def _measure_each(self, patterns: list[_Pattern]) -> Iterator[dict[str, Measured]]:
        """Metrics of every pattern, in order; of many, one thread each."""
        if len(patterns) < MANY:
            yield from (self._measure(pattern) for pattern in patterns)
            return
        for posterior in {id(pattern[0]): pattern[0] for pattern in patterns}.values():
            self._prepare(posterior)
            if posterior.means is None:
                posterior.marginals()  # computed once, before there are threads
        quiet = replace(self, progress=silent)

        def run(pattern: _Pattern) -> dict[str, Measured]:
            with using_workers(1):
                return quiet._measure(pattern)

        for done, measured in enumerate(map_blocks(run, patterns), 1):
            self.progress(done, len(patterns))
            yield measured

    def _measure(self, pattern: _Pattern) -> dict[str, Measured]:
        posterior, chosen, columns, subset = pattern
        if posterior.means is not None:
            return _means(self, posterior.means, chosen, subset, columns)
        self._prepare(posterior)
        return _Task(self, posterior, chosen, subset, columns).measure()

    def _prepare(self, posterior: LabelPosterior) -> None:
        if self.n_draws:
            posterior.prepare()

    @cached_property
    def n_draws(self) -> int:
        """How many interval draws: more for levels whose ends lie further out."""
        size = n_interval_draws(self.confidence_level)
        if size and self.posterior.vote_rates is not None:
            size = min(max(size, self.posterior.vote_rates.size), MOST_DRAWS)
        items, predictions = FEWER_DRAWS
        n, m, k = self.predictions.size, self.predictions.n_models, self.predictions.n_classes
        many = n > items or n * m > predictions or n * k > _CLASS_CELLS
        return size // 2 if many else size

    def patterns(self, rows: Ints) -> list[_Pattern]:
        """Classifiers with predictions on the same items and one posterior: they share draws."""
        groups: dict[tuple[int, bytes, tuple[str, ...]], tuple[Chosen, list[int], Ints]] = {}
        inside = np.zeros(self.predictions.n_items, dtype=bool)
        inside[rows] = True
        for j in range(self.predictions.n_models):
            if self.predictions.is_sparse:
                # Votes alone: metrics that need more apply to no classifier.
                votes = self.predictions.given_by("hard", j)
                subset = votes[inside[votes]]
                chosen = {n: m for n, m in self.metrics.items() if m.needs == "hard"}
                pattern = (id(self.posterior.of(j)), subset.tobytes(), tuple(chosen))
                groups.setdefault(pattern, (chosen, [], subset))[1].append(j)
                continue
            masks = {
                needs: self.predictions.provides(needs)[rows, j]
                for needs in {metric.needs for metric in self.metrics.values()}
            }
            packed = {needs: np.packbits(mask).tobytes() for needs, mask in masks.items()}
            for key in dict.fromkeys(packed.values()):
                chosen = {n: m for n, m in self.metrics.items() if packed[m.needs] == key}
                subset = rows[next(masks[needs] for needs in masks if packed[needs] == key)]
                pattern = (id(self.posterior.of(j)), key, tuple(chosen))
                groups.setdefault(pattern, (chosen, [], subset))[1].append(j)
        return [
            (self.posterior.of(js[0]), chosen, np.array(js), subset)
            for chosen, js, subset in groups.values()
            if len(subset)
        ]


def measure_many_groups(
    items: Predictions, many: ManyGroups, infer: Callable[[Predictions], LabelPosterior],
    metrics: Chosen, confidence_level: float | None,
) -> Iterator[dict[str, Measured]]:  # fmt: skip
    """Every metric of every classifier on each group of a column, in order.

    Blocks of whole groups are measured, a few of them in memory at a time; a group that fills a
    block is measured by itself. `infer` gives the posterior of any of the items.
    """
    order, sizes = np.argsort(many.codes, kind="stable"), np.bincount(many.codes)
    ends, height = np.cumsum(sizes), max(_GROUP_CELLS // (GROUP_DRAWS * items.n_classes), 1)
    blocks, start = list[slice](), 0
    for g in range(1, len(sizes) + 1):
        if g == len(sizes) or ends[g] - (ends[start] - sizes[start]) > height:
            blocks.append(slice(start, g))
            start = g

    def run(block: slice) -> list[dict[str, Measured]]:
        rows = order[ends[block.start] - sizes[block.start] : ends[block.stop - 1]]
        # Only all items together can tell equal ones apart.
        some = items.take(rows).as_part(keys=items.keys[rows])
        evaluator = Evaluator(some, infer(some), metrics, "population", confidence_level)
        with using_workers(1):
            if len(rows) > height:
                return [evaluator.measure(np.arange(len(rows)))]
            return evaluator.groups(many.codes[rows] - block.start, block.stop - block.start)

    for block, measured in zip(blocks, map_blocks(run, blocks), strict=True):
        yield from measured
        report(block.stop, len(sizes))


def _means(
    evaluator: Evaluator, estimator: MeanEstimator, metrics: Chosen, rows: Ints, columns: Ints
) -> dict[str, Measured]:
    """Metrics that are means, by an estimator that needs no label posterior."""
    size, out = evaluator.n_draws, {}
    for name, metric in metrics.items():
        if metric.per_item is None:
            continue
        value, draws = np.full(len(columns), np.nan), np.full((size, len(columns)), np.nan)
        for place, j in enumerate(columns):
            view = view_of(evaluator.predictions, rows, int(j))
            if view.provides(metric.needs):
                values = metric.per_item(view)
                best = metric.best if math.isfinite(metric.best) else float(values.min())
                value[place], draws[:, place] = estimator.estimate(
                    values,
                    rows,
                    best=best,
                    size=size,
                    population=evaluator.estimand == "population",
                )
        np.clip(value, *metric.bounds, out=value)
        np.clip(draws, *metric.bounds, out=draws)
        out[name] = Measured.from_draws(value, draws)
    return out


def _measure_rates(
    evaluator: Evaluator, rates: VoteRates, metrics: Chosen, rows: Ints, columns: Ints
) -> dict[str, Measured]:
    """Metrics of a population that a model of votes knows from its parameters."""
    # Neighbours in a chain resemble each other: take some of the draws at random.
    mixed = np.random.default_rng(0).permutation(rates.size)
    index = mixed[np.arange(evaluator.n_draws) % rates.size]
    names = [evaluator.predictions.models[int(j)] for j in columns]
    errors = evaluator.posterior.log_odds_errors(names, evaluator.n_draws)
    # The model knows those that vote; a classifier without a vote shifts the places of the others.
    places = np.array([rates.place[who] for who in names], dtype=np.int64)
    out = {}
    grades = evaluator.predictions.grades
    for name, e in metrics_of_rates(rates, metrics, rows, places, grades).items():
        value, bounds = over_draws(np.nanmean, e), metrics[name].bounds
        drawn = draws_around(value, e[index], bounds, metrics[name].best, log_odds_error=errors)
        out[name] = Measured.from_draws(value, drawn)
    return out


def noise_alone(metric: Metric, digest: Floats) -> Floats | None:
    """What even a perfect classifier shows (G,), by digests (..., G, D) of parameter draws.

    None of a metric that noise does not inflate.
    """
    if metric.noise_floor is None:
        return None
    return over_draws(np.nanmean, metric.noise_floor(digest).T)


def draws_around(
    value: Floats, drawn: Floats, bounds: tuple[Any, Any], best: Any, inflation: float = 1.0,
    gap: Floats | None = None, log_odds_error: Floats | None = None,
) -> Floats:  # fmt: skip
    """The last steps to interval draws (D, M) around values (M,).

    Draws below the value lose the gap (M,) that noise alone shows. Then all are stretched around
    the value by the posterior's `inflation` and shifted towards the `best` value by
    `log_odds_error` (D, M), within bounds.
    """
    if gap is not None:
        drawn = above_noise_floor(drawn, value, gap)
    if inflation != 1:
        drawn = inflated(drawn, value, inflation)
    if log_odds_error is not None:
        drawn = shifted_log_odds(drawn, bounds, best, log_odds_error)
    return np.clip(drawn, *bounds, out=drawn)


def ties_widened(metric: Metric, drawn: Floats, value: Floats) -> Floats:
    """Draws (D, M) of so few items that they may all tie; see `_Task`."""
    if np.isfinite(metric.bounds[0]):
        stuck = np.ptp(drawn, axis=0) == 0
        high = np.minimum(metric.bounds[1], np.nan_to_num(value[stuck]) + 1)
        drawn[:, stuck] = np.linspace(metric.bounds[0], high, len(drawn))
    return drawn


class _Task:
    """Classifiers that all have a prediction on every one of some items, perhaps in G groups.

    Columns of values and draws are the classifiers', the groups of each side by side.
    """

    def __init__(
        self, evaluator: Evaluator, posterior: LabelPosterior, metrics: Chosen, rows: Ints,
        columns: Ints, entries: Entries | None = None, n_draws: int | None = None,
        views: Sequence[ScoreView] | None = None,
    ) -> None:  # fmt: skip
        self.evaluator, self.posterior, self.metrics = evaluator, posterior, metrics
        predictions = evaluator.predictions
        self.n_draws = evaluator.n_draws if n_draws is None else n_draws
        self.weights = LabelWeights.from_rows(predictions, posterior, rows, self.n_draws, entries)
        self.entries = self.weights.entries
        if views is None:
            views = [view_of(predictions, self.weights.rows, int(j)) for j in columns]
            if self.entries.group is not None:
                group, n_groups = self.entries.group, self.entries.n_groups
                views = [replace(view, group=group, n_groups=n_groups) for view in views]
        self.views = views
        self.prepared: list[dict[object, Plan]] = [{} for _ in views]
        self.n_columns = len(views) * self.entries.n_groups
        names = [predictions.models[int(j)] for j in columns]
        # Of one view of many voters, the groups are the voters themselves.
        self.who = np.repeat(names, self.n_columns // len(names)).tolist()
        errors = posterior.log_odds_errors(names, self.n_draws)
        if errors is not None and errors.shape[1] < self.n_columns:
            errors = np.repeat(errors, self.entries.n_groups, axis=1)
        self.log_odds_error = errors
        few = self.weights.size * len(self.views) <= EXACT_PREDICTIONS
        self.exact = self.weights.size <= EXACT_ITEMS and few
        self.population = evaluator.estimand == "population" or posterior.counts_alone

    def measure(self) -> dict[str, Measured]:
        """Values, and draws if there are to be intervals."""
        if not len(self.weights):
            return nothing_measured(self.metrics, self.n_draws, self.n_columns)
        values = self._values()
        draws = self._draws(values) if self.n_draws else {}
        empty = np.empty((0, self.n_columns))
        return {n: Measured.from_draws(values[n], draws.get(n, empty)) for n in self.metrics}

    # --- point estimates ------------------------------------------------------------------

    def _values(self) -> dict[str, Floats]:
        certain, metrics = self.weights.certain, self.metrics
        drawn_labels = not (self.population or certain)
        hard = {n: m for n, m in metrics.items() if m.in_memory or (drawn_labels and not m.linear)}
        soft = {n: m for n, m in metrics.items() if n not in hard}
        out = {}
        size, kind = self.weights.value_kind
        # One draw costs little: its rankings are exact, however many the items.
        for name, drawn in self._over(size, soft, kind, exact=size == 1 or None).items():
            only_mean = not self.population and soft[name].linear
            drawn = self.posterior.drawn_for(self.who, drawn, "values")
            out[name] = point_value(drawn, only_mean=only_mean)
        custom = {n: m for n, m in hard.items() if m.in_memory and not self.weights.unweighted}
        hard = {n: m for n, m in hard.items() if n not in custom}
        values = self._resampled(LABEL_DRAWS, custom, point=True)
        values |= self._over_labels(1 if certain else LABEL_DRAWS, hard, POINT)
        for name, drawn in values.items():
            drawn = self.posterior.drawn_for(self.who, drawn, "values")
            out[name] = over_draws(np.nanmean, drawn)
        return out

    # --- interval draws -------------------------------------------------------------------

    def _draws(self, values: dict[str, Floats]) -> dict[str, Floats]:
        """Draws (D, M) of each metric, recentred where drawing itself shifts it."""
        metrics, size = self.metrics, self.n_draws
        if not self.population and self.weights.certain and not self.weights.n_others:
            return {name: np.tile(value, (size, 1)) for name, value in values.items()}
        custom = {n: m for n, m in metrics.items() if m.in_memory}
        rest = {n: m for n, m in metrics.items() if not m.in_memory}
        biased = {n: m for n, m in rest.items() if m.noise_floor is not None}
        kind = self.weights.interval_kind(population=self.population)
        gaps: dict[str, Floats] = {}
        if self.population and biased and not self.weights.noisy:
            out, gaps = self._recentred(kind, rest, biased)
        else:
            out = self._over(size, rest, kind)
            if self.weights.noisy:
                gaps = self._centred_at_values(out, values, biased)
        if custom:
            if kind.rows == "sampling":
                out |= self._over_labels(size, custom, kind)
            else:
                out |= self._resampled(size, custom)
        out = {
            n: self.posterior.drawn_for(self.who, drawn, "intervals") for n, drawn in out.items()
        }
        out = {
            n: draws_around(
                values[n], out[n], m.bounds, m.best, self.posterior.inflation, gaps.get(n),
                self.log_odds_error,
            )
            for n, m in metrics.items()
        }  # fmt: skip
        if self.population:
            few = np.flatnonzero(np.tile(self._sizes < TOO_FEW, len(self.views)))
            for name, metric in metrics.items() if len(few) else ():
                out[name][:, few] = ties_widened(metric, out[name][:, few], values[name][few])
        return out

    @cached_property
    def _sizes(self) -> Floats:
        """Of how many items each group is, (G,)."""
        if self.entries.group is None:
            return np.array([float(self.weights.size)])
        return np.bincount(self.entries.group, minlength=self.entries.n_groups).astype(float)

    def expected(self, size: int) -> dict[str, Floats]:
        """Metrics (size, M) of P(label) under the parameter draws that intervals use."""
        return self._over(size, self.metrics, INTERVAL_SOFT)

    def noise(self) -> dict[str, Floats]:
        """Metrics (D, M) of drawn labels and rows minus those of the same draws' P(label)."""
        kind = self.weights.interval_kind(population=self.population)
        requested = {"drawn": (kind, self.metrics), "soft": (INTERVAL_SOFT, self.metrics)}
        values = self._one_pass(self.n_draws, requested)
        return {name: values["drawn"][name] - values["soft"][name] for name in self.metrics}

    def _centred_at_values(
        self, drawn: dict[str, Floats], values: dict[str, Floats], chosen: Chosen
    ) -> dict[str, Floats]:
        """Centre sums of absolute gaps, all labels known; the gaps (M,) that chance puts there.

        A perfectly calibrated classifier shows a gap on these items, found by drawing labels from
        its own probabilities.
        """
        for name in chosen:
            drawn[name] += values[name] - over_draws(np.nanmean, drawn[name])
        gaps = [self._chance_gaps(view, chosen) for view in self.views] if chosen else []
        return {name: np.concatenate([gap[name] for gap in gaps]) for name in chosen}

    def _chance_gaps(self, view: ScoreView, chosen: Chosen) -> dict[str, Floats]:
        """Means (G,) of metrics over labels drawn from the classifier's own probabilities."""
        p, weights, n_groups = view.probabilities, self.weights, self.entries.n_groups
        if p is None:
            return {name: np.full(n_groups, np.nan) for name in chosen}
        plans = [prepare(view, chosen, exact=True)]

        def run(index: Ints) -> dict[str, Floats]:
            states = States(plans)
            if weights.times is None:
                labels = draw_labels(p, weights.keys, index, weights.posterior.salt)
                states.add(Drawn(labels, weights.weight[:, None], p.shape[1], len(index)))
            else:
                every = np.repeat(p[:, :, None], len(index), axis=2)
                states.add(weights.counted(every, index, slice(0, len(p))))
            return states.finish(chosen, len(index), n_groups)

        chunks = weights.chunks(_CHANCE_DRAWS)
        values = collect_blocks(run, chunks, silent)
        return {
            name: over_draws(np.nanmean, np.concatenate([chunk[name] for chunk in values]))
            for name in chosen
        }

    def _recentred(
        self, kind: DrawKind, rest: Chosen, biased: Chosen
    ) -> tuple[dict[str, Floats], dict[str, Floats]]:
        """Draws, without what noise adds to sums of absolute gaps; the gaps (M,) that are left.

        What the parameters leave open inflates every draw, so that even a perfect classifier shows
        a gap.
        """
        requested = {"drawn": (kind, rest), "expected": (EXPECTED, biased)}
        plain: list[dict[str, Floats]] = []
        values = self._one_pass(self.n_draws, requested, (INTERVAL_SOFT, biased, plain))
        drawn, gaps, n_groups = values["drawn"], dict[str, Floats](), self.entries.n_groups
        for name, metric in biased.items():
            middle, gap = np.full((2, self.n_columns), np.nan)
            for j, digests in enumerate(plain):
                if name in digests:
                    digest, columns = digests[name], slice(j * n_groups, (j + 1) * n_groups)
                    flat = metric.finish(digest.reshape(*digest.shape[:-2], -1))
                    middle[columns] = flat.reshape(digest.shape[-2:]).mean(axis=1)
                    gap[columns] = noise_alone(metric, digest)
            gaps[name] = gap
            drawn[name] = recentred(drawn[name], values["expected"][name], middle)
        return drawn, gaps

    def _resampled(self, size: int, chosen: Chosen, *, point: bool = False) -> dict[str, Floats]:
        """A user's function takes no weights: resample items instead."""
        if not chosen:
            return {}
        plans = self._plans(chosen, exact=True)

        def run(index: Ints) -> dict[str, Floats]:
            labels, rows = self.weights.resampled(index, point=point)
            out = {}
            for name in chosen:
                columns = [
                    resampled_values(p[name], labels, rows)
                    if name in p
                    else np.full(len(index), np.nan)
                    for p in plans
                ]
                out[name] = np.stack(columns, axis=1)
            return out

        values = collect_blocks(run, self.weights.chunks(size), self.evaluator.progress)
        return {name: np.concatenate([chunk[name] for chunk in values]) for name in chosen}

    def _over_labels(self, size: int, chosen: Chosen, kind: DrawKind) -> dict[str, Floats]:
        """Metrics (size, M) of drawn labels of these items; of functions too, without weights."""
        custom = {n: m for n, m in chosen.items() if m.in_memory}
        out = self._over(size, {n: m for n, m in chosen.items() if n not in custom}, kind)
        if custom:
            plans = self._plans(custom, exact=True)

            def run(index: Ints) -> dict[str, Floats]:
                labels = self.weights.drawn(kind, index).labels
                states = States(plans)
                even = np.ones((len(self.weights), 1))
                states.add(Drawn(labels, even, self.weights.n_classes, len(index)))
                return states.finish(custom, len(index))

            values = collect_blocks(run, self.weights.chunks(size), self.evaluator.progress)
            out |= {name: np.concatenate([chunk[name] for chunk in values]) for name in custom}
        return out

    # --- draws in chunks, items in blocks ---------------------------------------------------

    def _over(
        self, size: int, chosen: Chosen, kind: DrawKind, *, exact: bool | None = None
    ) -> dict[str, Floats]:
        """Metrics (size, M) of draws 0 .. size - 1 of a kind."""
        return self._one_pass(size, {"": (kind, chosen)}, exact=exact)[""] if chosen else {}

    def _one_pass(
        self,
        size: int,
        requested: dict[str, tuple[DrawKind, Chosen]],
        plain: tuple[DrawKind, Chosen, list[dict[str, Floats]]] | None = None,
        *,
        exact: bool | None = None,
    ) -> dict[str, dict[str, Floats]]:
        """Metrics (size, M) of draws of several kinds, from one pass over them.

        `plain` takes digests as well: by classifier and metric, those of draws of a kind.
        """
        exact = self.exact if exact is None else exact
        every = [*requested.values(), *([] if plain is None else [plain[:2]])]
        plans = {id(c): self._plans(c, exact=exact) for _, c in every}
        groups = self.entries.n_groups

        def finish(
            states: list[States], index: Ints
        ) -> tuple[list[dict[str, Floats]], list[dict[str, Floats]]]:
            pairs = zip(states, every, strict=False)
            some = [s.finish(c, len(index), groups) for s, (_, c) in list(pairs)[: len(requested)]]
            return some, [] if plain is None else states[-1].digests()

        def distinct(views: list[dict[str, Plan]]) -> list[Plan]:
            return list({id(p): p for by_name in views for p in by_name.values()}.values())

        def cells(kind: DrawKind, views: list[dict[str, Plan]]) -> int:
            drawn = self.weights.plain(kind)
            return sum(p.digest_cells if drawn else p.cells for p in distinct(views))

        # Draws of one parameter draw side by side.
        parameters = np.arange(size) % self.weights.posterior.interval_draws.size
        order = np.argsort(parameters, kind="stable")
        back = np.argsort(order)
        chunks = self.weights.summed(
            size, [(kind, partial(States, plans[id(c)])) for kind, c in every], finish,
            cells=sum(cells(kind, plans[id(c)]) for kind, c in every),
            one_block=any(p.whole for views in plans.values() for p in distinct(views)),
            order=order, progress=self.evaluator.progress,
        )  # fmt: skip
        if plain is not None:
            first = back[: self.posterior.interval_draws.size]
            for j in range(len(self.views)):
                digests = [chunk[1][j] for chunk in chunks]
                plain[2].append({
                    name: np.concatenate([digest[name] for digest in digests], -1)[..., first]
                    for name in digests[0]
                })  # fmt: skip
        return {
            key: {
                name: np.concatenate([chunk[0][i][name] for chunk in chunks])[back]
                for name in chosen
            }
            for i, (key, (_, chosen)) in enumerate(requested.items())
        }

    def _plans(self, chosen: Chosen, *, exact: bool) -> list[dict[str, Plan]]:
        pairs = zip(self.views, self.prepared, strict=True)
        return [prepare(view, chosen, exact, prepared) for view, prepared in pairs]
