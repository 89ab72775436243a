"""From a label posterior to values and draws of metrics: the one last step of every method.

Population: each draw takes the posterior's parameters, labels drawn from them, and Exp(1) row
weights (the Bayesian bootstrap over items), so it carries parameter, label and sampling
uncertainty. Sample: these very items, hence no row weights; a known label leaves no uncertainty.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

import numpy as np

from fewlabels.evaluation import many_classes
from fewlabels.evaluation.crowd import Crowd, judged_together
from fewlabels.evaluation.draws import (
    DRAWS_AT_ONCE,
    EXACT_ITEMS,
    LabelWeights,
    Make,
    PseudoObservation,
    SharedDraws,
    shared_draws,
)
from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.blocks import (
    Progress,
    collect_blocks,
    map_blocks,
    silent,
    spans,
    using_workers,
)
from fewlabels.kernels.interval_draws import (
    above_noise_floor,
    doubted,
    inflated,
    over_draws,
    point_value,
    recentred,
)
from fewlabels.kernels.ranking import LOGIT_BINS
from fewlabels.metrics.base import HardLabels, Metric, Plan, ScoreView
from fewlabels.metrics.custom import resampled_values
from fewlabels.metrics.plans import (
    Chosen,
    States,
    finish_labels,
    metrics_of_rates,
    prepare,
    view_of,
)
from fewlabels.posterior import LabelPosterior, MeanEstimator, VoteRates
from fewlabels.predictions import Predictions

Estimand = Literal["population", "sample"]
_Part = tuple[LabelPosterior, Chosen, Ints, Ints]
"""Posterior, metrics, classifiers and items."""

INTERVAL_DRAWS = 400
MOST_DRAWS = 4000
"""Draws behind an interval, up to a level of .95, and at most for levels beyond."""

LABEL_DRAWS = 500
"""Draws of labels for a point estimate where no exact expectation exists (the paper's number)."""

EXACT_PREDICTIONS = 1_000_000
"""Up to so many predictions of all classifiers rankings are exact, as up to `EXACT_ITEMS`."""

FEWER_DRAWS = 200_000, 2_000_000
"""Of more items, or predictions of all classifiers, there are half as many draws."""

_CLASS_CELLS = 2**24
"""So too of more items times classes."""

_SUMS = 2**23
"""Numbers in the sums of some classifiers that are held at a time, by a thread."""

_DIGESTS = 200
"""Classifiers whose digests of all parameter draws are held at a time."""

_CHANCE_DRAWS = 100
TOO_FEW = 20

MANY = 32
"""From so many parts of the items on (annotators, each with items of their own), threads share out
the parts instead of the draws of each, and the parts share their draws."""


class Measured(NamedTuple):
    """Values (M,), interval draws (D, M) of one metric, and how many of these are undefined."""

    value: Floats
    draws: Floats
    undefined: Ints

    @staticmethod
    def of(value: Floats, draws: Floats) -> Measured:
        """Of values that are defined somewhere."""
        return Measured(value, draws, np.isnan(draws).sum(axis=0))


def nothing_measured(metrics: Chosen, n_draws: int, n_models: int) -> dict[str, Measured]:
    """Metrics of classifiers of which nothing is known yet: NaN."""
    return {
        name: Measured(
            np.full(n_models, np.nan),
            np.full((n_draws, n_models), np.nan),
            np.zeros(n_models, dtype=np.int64),
        )
        for name in metrics
    }


def n_interval_draws(level: float | None) -> int:
    """How many draws are behind intervals of a level; none without one."""
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
        parts = self.patterns(rows[self.predictions.weight[rows] > 0])
        crowd = self._crowd(parts) if self.posterior.vote_rates is None else None
        if crowd is not None and len(crowd.columns) == self.predictions.n_models:
            return self._together(crowd)  # their draws are large: no copy
        out = nothing_measured(self.metrics, self.n_draws, self.predictions.n_models)

        def enter(columns: Ints, found: dict[str, Measured]) -> None:
            for name, part in found.items():
                out[name].value[columns] = part.value
                out[name].draws[:, columns] = part.draws
                out[name].undefined[columns] = part.undefined

        rest: list[_Part] = []
        for posterior, chosen, columns, own in parts:
            known: dict[str, Measured] = {}
            if posterior.vote_rates is not None and self.estimand == "population":
                known = _of_rates(self, posterior.vote_rates, chosen, own, columns)
                enter(columns, known)
            left = {name: metric for name, metric in chosen.items() if name not in known}
            if left:
                rest.append((posterior, left, columns, own))
        crowd = crowd or self._crowd(rest)
        if crowd is not None:
            enter(crowd.columns, self._together(crowd))
            return out
        for part, found in zip(rest, self._found(rest), strict=True):
            enter(part[2], found)
        return out

    def _crowd(self, parts: list[_Part]) -> Crowd | None:
        """All annotators of these parts, where they can be judged together."""
        if len(parts) < MANY or self.estimand != "population":
            return None
        posterior, metrics = parts[0][:2]
        alike = all(part[0] is posterior and part[1].keys() == metrics.keys() for part in parts)
        if not (alike and judged_together(self.predictions, posterior, metrics)):
            return None
        self._prepare(posterior)
        rows = np.unique(np.concatenate([own for *_, own in parts]))
        columns = np.sort(np.concatenate([columns for _, _, columns, _ in parts]))
        return Crowd(
            self.predictions, posterior, metrics, rows, columns, self.n_draws, self.progress
        )

    def _together(self, crowd: Crowd) -> dict[str, Measured]:
        """What is measured of annotators together."""
        values, out = crowd.values(), {}
        drawn = crowd.draws() if self.n_draws else {}
        for name, metric in crowd.metrics.items():
            draws = drawn.pop(name, np.empty((0, len(crowd.columns))))
            if self.n_draws:
                draws = draws_around(
                    values[name], draws, metric.bounds, metric.best, crowd.posterior.inflation
                )
                few = np.flatnonzero(crowd.sizes[0] < TOO_FEW)
                draws[:, few] = ties_widened(metric, draws[:, few], values[name][few])
            out[name] = Measured.of(values[name], draws)
        return out

    def noise(self) -> dict[str, Floats]:
        """What drawn labels and rows add to every metric beyond the parameters, (D, M).

        The metric of a draw's labels and row weights minus that of the same draw's P(label), less
        the mean over draws; nothing where no intervals are asked for.
        """
        if not self.n_draws:
            return {}
        out = nothing_measured(self.metrics, self.n_draws, self.predictions.n_models)
        for posterior, chosen, columns, own in self.patterns(np.arange(self.predictions.n_items)):
            self._prepare(posterior)
            for name, found in _Task(self, posterior, chosen, own, columns).noise().items():
                out[name].draws[:, columns] = found - over_draws(np.nanmean, found)
        return {name: measured.draws for name, measured in out.items()}

    def of_parameters(self, rows: Ints, size: int) -> dict[str, Floats]:
        """Every metric on some of the items under each parameter draw of intervals, (size, M)."""
        out = {name: np.full((size, self.predictions.n_models), np.nan) for name in self.metrics}
        for posterior, chosen, columns, own in self.patterns(rows):
            posterior.prepare()
            for name, found in _Task(self, posterior, chosen, own, columns).expected(size).items():
                out[name][:, columns] = found
        return out

    def _found(self, parts: list[_Part]) -> Iterator[dict[str, Measured]]:
        """What is measured of every part, in order."""
        if len(parts) < MANY:
            yield from (self._measure(part, None) for part in parts)
            return
        for posterior in {id(part[0]): part[0] for part in parts}.values():
            self._prepare(posterior)
            if posterior.means is None:
                posterior.marginals()  # computed once, before there are threads
        draws = self.n_draws if self.estimand == "population" else 0
        shared = shared_draws(self.predictions, [(of, own) for of, _, _, own in parts], draws)
        quiet = replace(self, progress=silent)

        def run(part: _Part) -> dict[str, Measured]:
            with using_workers(1):
                return quiet._measure(part, shared.get(id(part[0])))

        for done, found in enumerate(map_blocks(run, parts), 1):
            self.progress(done, len(parts))
            yield found

    def _measure(self, part: _Part, shared: SharedDraws | None) -> dict[str, Measured]:
        posterior, chosen, columns, own = part
        if posterior.means is not None:
            return _means(self, posterior.means, chosen, own, columns)
        self._prepare(posterior)
        return _Task(self, posterior, chosen, own, columns, shared).measure()

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

    def patterns(self, rows: Ints) -> list[_Part]:
        """Posterior, metrics, classifiers and items provided for: what shares its draws."""
        groups: dict[tuple[int, bytes, tuple[str, ...]], tuple[Chosen, list[int], Ints]] = {}
        inside = np.zeros(self.predictions.n_items, dtype=bool)
        inside[rows] = True
        for j in range(self.predictions.n_models):
            if self.predictions.is_sparse:
                # Votes alone: what needs more applies to nobody.
                votes = self.predictions.given_by("hard", j)
                own = votes[inside[votes]]
                chosen = {n: m for n, m in self.metrics.items() if m.needs == "hard"}
                pattern = (id(self.posterior.of(j)), own.tobytes(), tuple(chosen))
                groups.setdefault(pattern, (chosen, [], own))[1].append(j)
                continue
            masks = {
                needs: self.predictions.provides(needs)[rows, j]
                for needs in {metric.needs for metric in self.metrics.values()}
            }
            packed = {needs: np.packbits(mask).tobytes() for needs, mask in masks.items()}
            for key in dict.fromkeys(packed.values()):
                chosen = {n: m for n, m in self.metrics.items() if packed[m.needs] == key}
                own = rows[next(masks[needs] for needs in masks if packed[needs] == key)]
                pattern = (id(self.posterior.of(j)), key, tuple(chosen))
                groups.setdefault(pattern, (chosen, [], own))[1].append(j)
        return [
            (self.posterior.of(js[0]), chosen, np.array(js), own)
            for chosen, js, own in groups.values()
            if len(own)
        ]


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
                value[place], draws[:, place] = estimator.estimate(
                    metric.per_item(view),
                    rows,
                    best=metric.best,
                    size=size,
                    population=evaluator.estimand == "population",
                )
        np.clip(value, *metric.bounds, out=value)
        np.clip(draws, *metric.bounds, out=draws)
        out[name] = Measured.of(value, draws)
    return out


def _of_rates(
    evaluator: Evaluator, rates: VoteRates, metrics: Chosen, rows: Ints, columns: Ints
) -> dict[str, Measured]:
    """Metrics of a population that a model of votes knows from its parameters."""
    # Neighbours in a chain resemble each other: take some of the draws at random.
    mixed = np.random.default_rng(0).permutation(rates.size)
    index = mixed[np.arange(evaluator.n_draws) % rates.size]
    names = [evaluator.predictions.models[int(j)] for j in columns]
    doubts = evaluator.posterior.doubts(names, evaluator.n_draws)
    # The model knows those that vote; a classifier without a vote shifts the places of the others.
    places = np.array([rates.models.index(who) for who in names], dtype=np.int64)
    out = {}
    for name, e in metrics_of_rates(rates, metrics, rows, places).items():
        value, bounds = over_draws(np.nanmean, e), metrics[name].bounds
        drawn = draws_around(value, e[index], bounds, metrics[name].best, doubts=doubts)
        out[name] = Measured.of(value, drawn)
    return out


def noise_alone(metric: Metric, digest: Floats) -> Floats | None:
    """What even a perfect classifier shows (1,), by the digests of parameter draws.

    None of a metric that noise does not inflate.
    """
    if metric.noise_floor is None:
        return None
    return over_draws(np.nanmean, metric.noise_floor(digest)[:, None])


def draws_around(
    value: Floats,
    drawn: Floats,
    bounds: tuple[Any, Any],
    best: Any,
    inflation: float = 1.0,
    gap: Floats | None = None,
    doubts: Floats | None = None,
) -> Floats:
    """The last steps to interval draws (D, M) around values (M,).

    Draws below the value lose the gap (M,) that noise alone shows; then all are moved away from
    the value by the posterior's `inflation`, and by its `doubts` (D, M) to and from the `best`
    value, within bounds.
    """
    if gap is not None:
        drawn = above_noise_floor(drawn, value, gap)
    if inflation != 1:
        drawn = inflated(drawn, value, inflation)
    if doubts is not None:
        drawn = doubted(drawn, bounds, best, doubts)
    return np.clip(drawn, *bounds, out=drawn)


def ties_widened(metric: Metric, drawn: Floats, value: Floats) -> Floats:
    """Draws (D, M) of so few items that they may all tie; see `_Task`."""
    if np.isfinite(metric.bounds[0]):
        stuck = np.ptp(drawn, axis=0) == 0
        high = np.minimum(metric.bounds[1], np.nan_to_num(value[stuck]) + 1)
        drawn[:, stuck] = np.linspace(metric.bounds[0], high, len(drawn))
    return drawn


class _Task:
    """Classifiers that all have a prediction on every one of some items."""

    def __init__(
        self, evaluator: Evaluator, posterior: LabelPosterior, metrics: Chosen, rows: Ints,
        columns: Ints, shared: SharedDraws | None = None,
    ) -> None:  # fmt: skip
        self.evaluator = evaluator
        self.posterior = posterior
        self.metrics = metrics
        predictions = evaluator.predictions
        self.weights = LabelWeights.of(predictions, posterior, rows, evaluator.n_draws, shared)
        self.views = [view_of(predictions, self.weights.rows, int(j)) for j in columns]
        names = [predictions.models[int(j)] for j in columns]
        self.doubts = posterior.doubts(names, evaluator.n_draws)
        few = self.weights.size * len(self.views) <= EXACT_PREDICTIONS
        self.exact = self.weights.size <= EXACT_ITEMS and few
        self.population = evaluator.estimand == "population" or posterior.counts_alone
        self.many: many_classes.ManyClasses | None = None
        if many_classes.serves(self.weights, metrics):
            self.many = many_classes.ManyClasses(self.weights, self.views, evaluator.progress)

    def measure(self) -> dict[str, Measured]:
        """Values, and draws where intervals are asked for."""
        if not len(self.weights):
            return nothing_measured(self.metrics, self.evaluator.n_draws, len(self.views))
        values = self._values()
        draws = self._draws(values) if self.evaluator.n_draws else {}
        nothing = np.empty((0, len(self.views)))
        return {name: Measured.of(values[name], draws.get(name, nothing)) for name in self.metrics}

    # --- point estimates ------------------------------------------------------------------

    def _values(self) -> dict[str, Floats]:
        certain, metrics = self.weights.certain, self.metrics
        drawn_labels = not (self.population or certain)
        hard = {n: m for n, m in metrics.items() if m.in_memory or (drawn_labels and not m.linear)}
        soft = {n: m for n, m in metrics.items() if n not in hard}
        out = {}
        size, make = self.weights.of_values()
        # One draw costs little: its rankings are exact, however many the items.
        for name, drawn in self._over(size, soft, make, exact=size == 1 or None).items():
            only_mean = not self.population and soft[name].linear
            out[name] = point_value(drawn, only_mean=only_mean)
        own = {n: m for n, m in hard.items() if m.in_memory and not self.weights.unweighted}
        if own:
            values = self._resampled(LABEL_DRAWS, own, point=True)
            out |= {name: over_draws(np.nanmean, drawn) for name, drawn in values.items()}
            hard = {n: m for n, m in hard.items() if n not in own}
        if hard:
            values = self._of_labels(1 if certain else LABEL_DRAWS, hard, self.weights.point_labels,
                                     self.weights.point)  # fmt: skip
            out |= {name: over_draws(np.nanmean, drawn) for name, drawn in values.items()}
        return out

    # --- interval draws -------------------------------------------------------------------

    def _draws(self, values: dict[str, Floats]) -> dict[str, Floats]:
        """Draws (D, M) of each metric, recentred where drawing itself shifts it."""
        metrics, size = self.metrics, self.evaluator.n_draws
        if not self.population and self.weights.certain and not self.weights.n_others:
            return {name: np.tile(value, (size, 1)) for name, value in values.items()}
        own = {n: m for n, m in metrics.items() if m.in_memory}
        rest = {n: m for n, m in metrics.items() if not m.in_memory}
        biased = {n: m for n, m in rest.items() if m.noise_biased}
        make, pseudo, whole = self.weights.of_intervals(population=self.population)
        if pseudo is None:
            out = self._of_labels(size, metrics, self.weights.sample_labels, make)
        else:
            out = self._resampled(size, own) | self._over(size, rest, make, pseudo, whole=whole)
        gaps: dict[str, Floats] = {}
        if self.weights.noisy:
            gaps = self._centred_at_values(out, values, biased)
        elif self.population:
            gaps = self._recentred(out, biased)
        out = {
            n: draws_around(
                values[n],
                out[n],
                m.bounds,
                m.best,
                self.posterior.inflation,
                gaps.get(n),
                self.doubts,
            )
            for n, m in metrics.items()
        }
        if self.population and self.weights.size < TOO_FEW:
            self._widen_ties(out, values)
        return out

    def expected(self, size: int) -> dict[str, Floats]:
        """Metrics (size, M) of P(label) under the parameter draws that intervals use."""
        return self._over(size, self.metrics, self.weights.interval_soft)

    def noise(self) -> dict[str, Floats]:
        """Metrics (D, M) of drawn labels and rows minus those of the same draws' P(label)."""
        size = self.evaluator.n_draws
        make, pseudo, whole = self.weights.of_intervals(population=self.population)
        drawn = self._over(size, self.metrics, make, pseudo, whole=whole)
        soft = self.expected(size)
        return {name: found - soft[name] for name, found in drawn.items()}

    def _widen_ties(self, drawn: dict[str, Floats], values: dict[str, Floats]) -> None:
        """So few items that all tie (one item, say) cannot vary, and tell nothing of others."""
        for name, metric in self.metrics.items():
            drawn[name] = ties_widened(metric, drawn[name], values[name])

    def _centred_at_values(
        self, drawn: dict[str, Floats], values: dict[str, Floats], chosen: Chosen
    ) -> dict[str, Floats]:
        """Centre sums of absolute gaps, all labels known; the gaps (M,) that chance puts there.

        A perfectly calibrated classifier shows a gap on these items, found by drawing labels from
        its own probabilities.
        """
        for name in chosen:
            drawn[name] += values[name] - over_draws(np.nanmean, drawn[name])
        if self.many is not None:
            found = self.many.chance_gaps(chosen, _CHANCE_DRAWS)
            return {name: over_draws(np.nanmean, gaps) for name, gaps in found.items()}
        return {
            name: np.array([self._chance_gap(view, {name: metric}) for view in self.views])
            for name, metric in chosen.items()
        }

    def _chance_gap(self, view: ScoreView, chosen: Chosen) -> float:
        """Mean of a metric over labels drawn from the classifier's own probabilities."""
        probabilities = view.probabilities
        if probabilities is None:
            return float("nan")
        plans, n = [prepare(view, chosen, exact=True)], len(self.weights)

        def run(index: Ints) -> dict[str, Floats]:
            weights = self.weights.drawn(probabilities[:, :, None], index, slice(0, n))
            states = States(plans)
            states.add(weights * self.weights.weight[:, None, None], slice(0, n))
            return states.finish(chosen, len(index))

        found = self._chunks(_CHANCE_DRAWS, chosen, run, whole=True)
        return float(over_draws(np.nanmean, next(iter(found.values())))[0])

    def _recentred(self, drawn: dict[str, Floats], chosen: Chosen) -> dict[str, Floats]:
        """Take out what noise adds to a sum of absolute gaps; the gaps (M,) that are left.

        What the parameters leave open inflates every draw, so that even a perfect classifier shows
        a gap.
        """
        if not chosen:
            return {}
        expected = self._over(
            self.evaluator.n_draws, chosen, self.weights.expected, self.weights.pseudo_observation
        )
        plain = {name: np.full(len(self.views), np.nan) for name in chosen}
        gaps = {name: np.full(len(self.views), np.nan) for name in chosen}
        for j, own in self._interval_digests(chosen):
            for name, digest in own.items():
                gap = noise_alone(chosen[name], digest)
                if gap is not None:
                    plain[name][j] = np.nanmean(chosen[name].finish(digest))
                    gaps[name][j] = gap[0]
        for name in chosen:
            drawn[name] = recentred(drawn[name], expected[name], plain[name])
        return gaps

    def _interval_digests(self, chosen: Chosen) -> Iterator[tuple[int, dict[str, Floats]]]:
        """Digests of the soft labels of every parameter draw that intervals use, per classifier."""
        if self.many is not None:
            yield from self.many.interval_digests(chosen)
            return
        for some in spans(len(self.views), _DIGESTS):
            plans = self._plans(chosen, exact=self.exact, some=some)
            parts = self.weights.summed(
                self.weights.n_interval_parameters,
                self.weights.interval_soft,
                partial(States, plans),
                lambda states, _: states.digests(),
            )
            for place, own in enumerate(plans):
                digests = {n: np.concatenate([p[place][n] for p in parts], axis=-1) for n in own}
                yield some.start + place, digests

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

        return self._chunks(size, chosen, run, whole=True)

    # --- draws in chunks, items in blocks ---------------------------------------------------

    def _over(
        self,
        size: int,
        chosen: Chosen,
        make: Make,
        pseudo: PseudoObservation | None = None,
        *,
        exact: bool | None = None,
        whole: bool = False,
    ) -> dict[str, Floats]:
        """Metrics (size, M) of the weights of draws 0 .. size-1.

        `whole` keeps all items in one block; `pseudo` gives the pseudo-observations that the
        weights hold.
        """
        if not chosen:
            return {}
        if self.many is not None:
            return self.many.over(size, chosen, make, pseudo)
        some = self._together(chosen, exact=self.exact if exact is None else exact)

        def finish(states: States, index: Ints) -> dict[str, Floats]:
            if pseudo is not None:
                states.place_pseudo_observation(*pseudo(index))
            return states.finish(chosen, len(index))

        progress = self.evaluator.progress
        parts = self.weights.summed(
            size, make, [partial(States, plans) for plans in some], finish, whole=whole,
            progress=progress,
        )  # fmt: skip
        return {
            name: np.concatenate(
                [
                    np.concatenate([part[name] for part in parts[i : i + len(some)]], axis=1)
                    for i in range(0, len(parts), len(some))
                ]
            )
            for name in chosen
        }

    def _together(self, chosen: Chosen, *, exact: bool) -> list[list[dict[str, Plan]]]:
        """Plans of all classifiers, those together whose sums memory holds at a time.

        Of many classifiers, items or classes the sums of all would not fit.
        """
        plans = self._plans(chosen, exact=exact)
        codes = len(self.weights) if exact else LOGIT_BINS
        width = DRAWS_AT_ONCE * self.weights.n_classes * codes
        return [plans[s] for s in spans(len(plans), max(_SUMS // width, 1))]

    def _of_labels(
        self, size: int, chosen: Chosen, labels: Callable[[Ints, slice], Ints], make: Make
    ) -> dict[str, Floats]:
        """Metrics (size, M) of drawn labels: without weights there is a quicker road."""
        own = {n: m for n, m in chosen.items() if m.in_memory}
        weighted = self.many is not None or not (self.weights.unweighted and self.exact)
        if (weighted or self.posterior.label_spread is not None) and len(own) < len(chosen):
            rest = {n: m for n, m in chosen.items() if n not in own}
            return self._over(size, rest, make) | self._of_labels(size, own, labels, make)
        if not chosen:
            return {}
        plans, everything = self._plans(chosen, exact=True), slice(0, len(self.weights))

        def run(index: Ints) -> dict[str, Floats]:
            return finish_labels(plans, chosen, HardLabels(labels(index, everything)))

        return self._chunks(size, chosen, run, whole=True)

    def _chunks(
        self, size: int, chosen: Chosen, run: Callable[[Ints], dict[str, Floats]], *, whole: bool
    ) -> dict[str, Floats]:
        chunks = self.weights.chunks(size, whole=whole)
        parts = collect_blocks(run, chunks, self.evaluator.progress)
        return {name: np.concatenate([part[name] for part in parts]) for name in chosen}

    def _plans(
        self, chosen: Chosen, *, exact: bool, some: slice = slice(None)
    ) -> list[dict[str, Plan]]:
        return [prepare(view, chosen, exact) for view in self.views[some]]
