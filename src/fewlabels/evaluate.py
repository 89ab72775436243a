"""From a label posterior to values and draws of metrics: the one last step of every method.

Population: each draw takes the posterior's parameters, labels drawn from them, and Exp(1) row
weights (the Bayesian bootstrap over items), so it carries parameter, label and sampling
uncertainty. Sample: these very items, hence no row weights; a known label leaves no uncertainty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Bools, Floats, Ints, UInts
from fewlabels.kernels.blocks import map_blocks, spans
from fewlabels.kernels.keyed import exponentials
from fewlabels.metrics.base import HardLabels, Metric, Plan, ScoreView
from fewlabels.metrics.custom import resampled_values
from fewlabels.metrics.registry import resolve
from fewlabels.posterior import LabelPosterior, draw_labels
from fewlabels.predictions import Predictions

Estimand = Literal["population", "sample"]

INTERVAL_DRAWS = 400
LABEL_DRAWS = 500
"""Draws of labels for a point estimate where no exact expectation exists (the paper's number)."""

PSEUDO_MASS = 1.0
"""Weight, in items, of what has not been seen. One pseudo-item per draw, of unknown class, keeps
intervals from collapsing when all labels agree: with two classes, the interval for accuracy from
labels alone is then Jeffreys'."""

_EXACT_ITEMS = 50_000
_BLOCK = 2**20


class Measured(NamedTuple):
    """Values (M,) and interval draws (D, M) of one metric on one set of items; NaN = undefined."""

    value: Floats
    draws: Floats
    undefined: Ints


@dataclass(frozen=True, eq=False)
class Task:
    """Some items, and the classifiers that all have a prediction on every one of them."""

    rows: Ints
    columns: Ints


@dataclass(frozen=True, eq=False)
class Evaluator:
    """Computes metrics of every classifier under one label posterior."""

    predictions: Predictions
    posterior: LabelPosterior
    metrics: Mapping[str, Metric]
    estimand: Estimand
    intervals: bool = True
    tick: Callable[[int], None] = lambda _: None

    def measure(self, rows: Ints) -> dict[str, Measured]:
        """Every metric of every classifier on some of the items."""
        m = self.predictions.n_models
        out = {
            name: Measured(
                np.full(m, np.nan), np.full((self.n_draws, m), np.nan), np.zeros(m, dtype=np.int64)
            )
            for name in self.metrics
        }
        for task in self._tasks(rows):
            for name, part in _TaskRun(self, task).measure().items():
                out[name].value[task.columns] = part.value
                out[name].draws[:, task.columns] = part.draws
                out[name].undefined[task.columns] = part.undefined
        return out

    @cached_property
    def n_draws(self) -> int:
        """How many interval draws."""
        if not self.intervals:
            return 0
        return INTERVAL_DRAWS if self.predictions.n_items <= 200_000 else INTERVAL_DRAWS // 2

    def _tasks(self, rows: Ints) -> list[Task]:
        """Group the classifiers by the items they have a prediction for, so these share draws."""
        predictions, support = self.predictions, self.posterior.support
        if support is not None:
            rows = rows[support[rows]]
        present = (predictions.hard[rows] >= 0) | predictions.has_probabilities[rows]
        if predictions.scores is not None:
            present |= ~np.isnan(predictions.scores[rows])
        patterns: dict[bytes, list[int]] = {}
        for j in range(predictions.n_models):
            patterns.setdefault(np.packbits(present[:, j]).tobytes(), []).append(j)
        return [
            Task(rows[present[:, columns[0]]], np.array(columns)) for columns in patterns.values()
        ]


class _TaskRun:
    """One task: plans of the classifiers' statistics, then draws in blocks."""

    def __init__(self, evaluator: Evaluator, task: Task) -> None:
        self.evaluator = evaluator
        self.posterior = evaluator.posterior
        self.rows = task.rows
        self.columns = task.columns
        p = evaluator.predictions
        self.keys: UInts = p.keys[task.rows]
        self.weight: Floats = p.weight[task.rows]
        self.n_classes = p.n_classes
        self.unweighted = bool((self.weight == self.weight[:1]).all())
        # Known labels leave nothing to draw.
        self.certain = bool((self.posterior.probabilities[task.rows].max(axis=1) == 1.0).all())
        self.known: Bools = p.labeled[task.rows]
        self.views = [self._view(j) for j in task.columns]

    def measure(self) -> dict[str, Measured]:
        """Values, and draws where intervals are asked for."""
        out = {}
        values = self._values()
        draws = self._draws() if self.evaluator.intervals else {}
        for name in self.evaluator.metrics:
            drawn = draws.get(name, np.empty((0, len(self.columns))))
            out[name] = Measured(values[name], drawn, np.isnan(drawn).sum(axis=0))
        return out

    # --- what the metrics see -------------------------------------------------------------

    def _view(self, j: int) -> ScoreView:
        p = self.evaluator.predictions
        probabilities = None
        if p.probabilities is not None and p.has_probabilities[self.rows, j].all():
            probabilities = p.probabilities[self.rows, j] if len(self.rows) else None
        hard = p.hard[self.rows, j]
        scores = None if p.scores is None else p.scores[self.rows, j]
        return ScoreView(
            p.n_classes,
            probabilities=probabilities,
            hard=hard if len(hard) and (hard >= 0).all() else None,
            scores=None if scores is None or np.isnan(scores).any() or not len(scores) else scores,
        )

    def _plans(self, chosen: Mapping[str, Metric], *, exact: bool) -> list[dict[str, Plan]]:
        """Per classifier: metric name -> plan; metrics of one statistic share the plan."""
        return [_prepare(view, chosen, exact) for view in self.views]

    # --- point estimates ------------------------------------------------------------------

    def _values(self) -> dict[str, Floats]:
        metrics = self.evaluator.metrics
        nothing = np.full(len(self.columns), np.nan)
        if not len(self.rows):
            return {name: nothing.copy() for name in metrics}
        from_draws = self.posterior.value_from == "draws" and not self.certain
        sample = self.evaluator.estimand == "sample" and not self.certain
        hard = {n: m for n, m in metrics.items() if m.in_memory or (sample and not m.linear)}
        soft = {n: m for n, m in metrics.items() if n not in hard}
        out = {}
        if soft and from_draws:
            size = self.posterior.parameters.size
            values = self._over(size, soft, self._soft_block, exact=len(self.rows) <= _EXACT_ITEMS)
            for name, drawn in values.items():
                # Exact expectations are means; elsewhere the mean and the median share the job.
                mean = _nan_reduce(np.nanmean, drawn)
                linear_sample = self.evaluator.estimand == "sample" and soft[name].linear
                out[name] = mean if linear_sample else (mean + _nan_reduce(np.nanmedian, drawn)) / 2
        elif soft:
            weights = (self.posterior.probabilities[self.rows] * self.weight[:, None])[:, :, None]
            found = _finish(self._plans(soft, exact=True), soft, weights)
            out |= {name: drawn[0] for name, drawn in found.items()}
        if hard:
            size = 1 if self.certain else LABEL_DRAWS
            values = self._over(size, hard, self._label_block, exact=True)
            out |= {name: _nan_reduce(np.nanmean, drawn) for name, drawn in values.items()}
        return out

    def _soft_block(
        self, index: Ints, plans: list[dict[str, Plan]], chosen: Mapping[str, Metric]
    ) -> dict[str, Floats]:
        weights = self.posterior.parameters.block(index, self.rows)
        weights *= self.weight[:, None, None]
        return _finish(plans, chosen, weights)

    def _label_block(
        self, index: Ints, plans: list[dict[str, Plan]], chosen: Mapping[str, Metric]
    ) -> dict[str, Floats]:
        """Metrics of drawn labels on these very items."""
        if self.posterior.value_from == "draws":
            p = self._parameters(index)
        else:
            p = self.posterior.probabilities[self.rows]
        labels = draw_labels(p, self.keys, index, self.posterior.salt)
        return self._of_labels(labels, plans, chosen)

    def _of_labels(
        self, labels: Ints, plans: list[dict[str, Plan]], chosen: Mapping[str, Metric]
    ) -> dict[str, Floats]:
        if self.unweighted or any(m.in_memory for m in chosen.values()):
            return _finish_labels(plans, chosen, HardLabels(labels))
        return _finish(plans, chosen, self._one_hot(labels) * self.weight[:, None, None])

    # --- interval draws -------------------------------------------------------------------

    def _draws(self) -> dict[str, Floats]:
        """Draws (D, M) of each metric, recentred where drawing itself shifts it."""
        metrics, size = self.evaluator.metrics, self.evaluator.n_draws
        if not len(self.rows):
            return {name: np.full((size, len(self.columns)), np.nan) for name in metrics}
        exact = len(self.rows) <= _EXACT_ITEMS
        block = (
            self._sample_block if self.evaluator.estimand == "sample" else self._population_block
        )
        out = self._over(size, metrics, block, exact=exact)
        shifted = {n: m for n, m in metrics.items() if m.noise_biased}
        if shifted and self.evaluator.estimand == "population":
            expected = self._over(size, shifted, self._expected_block, exact=exact)
            plain = self._over(self._plain_size, shifted, self._soft_block, exact=exact)
            for name in shifted:
                with_rows = _nan_reduce(np.nanmean, expected[name])
                without = _nan_reduce(np.nanmean, plain[name])
                # Drawn labels inflate a sum of absolute gaps by (drawn - with_rows). Row weights
                # on known labels inflate it by (with_rows - without), and by as much again the
                # value itself is inflated already (the bootstrap's estimate of its bias).
                drawn = _nan_reduce(np.nanmean, out[name])
                out[name] -= (drawn - with_rows) + 2 * (with_rows - without)
        for name, metric in metrics.items():
            np.clip(out[name], *metric.bounds, out=out[name])
        return out

    @property
    def _plain_size(self) -> int:
        return 1 if self.certain else self.posterior.parameters.size

    def _population_block(
        self, index: Ints, plans: list[dict[str, Plan]], chosen: Mapping[str, Metric]
    ) -> dict[str, Floats]:
        labels = draw_labels(self._parameters(index), self.keys, index, self.posterior.salt)
        own = {n: m for n, m in chosen.items() if m.in_memory}
        out = {}
        if own:
            out = self._resampled(index, labels, plans, own)
        rest = {n: m for n, m in chosen.items() if n not in own}
        if rest:
            weights = self._one_hot(labels)
            weights *= self._row_weights(index)[:, None, :]
            self._add_pseudo_item(weights, index)
            out |= _finish(plans, rest, weights)
        return out

    def _expected_block(
        self, index: Ints, plans: list[dict[str, Plan]], chosen: Mapping[str, Metric]
    ) -> dict[str, Floats]:
        weights = self._parameters(index)
        weights *= self._row_weights(index)[:, None, :]
        self._add_pseudo_item(weights, index)
        return _finish(plans, chosen, weights)

    def _sample_block(
        self, index: Ints, plans: list[dict[str, Plan]], chosen: Mapping[str, Metric]
    ) -> dict[str, Floats]:
        if self.posterior.support is not None:
            return self._finite_population_block(index, plans, chosen)
        parameters = self._parameters(index)
        # What has not been seen, here: each unlabeled item's label is arbitrary with a chance of
        # about one in n.
        stray = _generator(self.posterior.salt, 3).beta(
            PSEUDO_MASS, max(len(self.rows), 1), self.evaluator.n_draws
        )[index]
        parameters *= 1 - stray
        parameters += stray / self.n_classes
        labels = draw_labels(parameters, self.keys, index, self.posterior.salt)
        known = np.flatnonzero(self.known)
        labels[known] = self.evaluator.predictions.labels[self.rows[known]][:, None]
        return self._of_labels(labels, plans, chosen)

    def _finite_population_block(
        self, index: Ints, plans: list[dict[str, Plan]], chosen: Mapping[str, Metric]
    ) -> dict[str, Floats]:
        """These items, when only the supported ones are known: a Polya urn draws the others."""
        others = self._n_unsupported
        weights = self._one_hot(np.repeat(self._known_labels[:, None], len(index), axis=1))
        base = weights * self.weight[:, None, None]
        if others:
            weights *= self._row_weights(index)[:, None, :]
            self._add_pseudo_item(weights, index)
            order = np.argsort(self.keys)
            for column, d in enumerate(index):
                share = weights[order, :, column].ravel()
                drawn = _generator(self.posterior.salt, 5, int(d)).multinomial(
                    others, share / share.sum()
                )
                base[order, :, column] += drawn.reshape(len(order), -1)
        return _finish(plans, {n: m for n, m in chosen.items() if not m.in_memory}, base) | {
            n: self._resampled(
                index, np.repeat(self._known_labels[:, None], len(index), axis=1), plans, {n: m}
            )[n]
            for n, m in chosen.items()
            if m.in_memory
        }

    @cached_property
    def _known_labels(self) -> Ints:
        return self.evaluator.predictions.labels[self.rows]

    @cached_property
    def _n_unsupported(self) -> int:
        support = self.posterior.support
        return 0 if support is None else int((~support).sum())

    def _resampled(
        self, index: Ints, labels: Ints, plans: list[dict[str, Plan]], chosen: Mapping[str, Metric]
    ) -> dict[str, Floats]:
        """A user's function takes no weights: resample items instead (the plain bootstrap)."""
        order = np.argsort(self.keys)
        n = len(order)
        rows, labels = np.empty_like(labels), labels.copy()
        for column, d in enumerate(index):
            generator = _generator(self.posterior.salt, 7, int(d))
            rows[:, column] = order[
                generator.choice(n, size=n, p=self.weight[order] / self.weight.sum())
            ]
            stray = generator.random(n) < PSEUDO_MASS / (n + PSEUDO_MASS)
            labels[order[stray], column] = generator.integers(self.n_classes, size=int(stray.sum()))
        return {
            name: np.stack([resampled_values(p[name], labels, rows) for p in plans], axis=1)
            for name in chosen
        }

    # --- pieces ---------------------------------------------------------------------------

    def _parameters(self, index: Ints) -> Floats:
        parameters = self.posterior.parameters
        return parameters.block(index % parameters.size, self.rows)

    def _row_weights(self, index: Ints) -> Floats:
        weights = exponentials(self.keys, index, self.posterior.salt)
        weights *= self.weight[:, None]
        return weights

    def _one_hot(self, labels: Ints) -> Floats:
        return (labels[:, None, :] == np.arange(self.n_classes)[None, :, None]).astype(float)

    def _add_pseudo_item(self, weights: Floats, index: Ints) -> None:
        """Add, in each draw, one item of unknown class: a random item's scores, every class."""
        generator = _generator(self.posterior.salt, 1)
        size = self.evaluator.n_draws
        place = (generator.random(size) * len(self.rows)).astype(np.int64)[index]
        mass = generator.gamma(PSEUDO_MASS / self.n_classes, size=(size, self.n_classes))[index]
        # By place in the order of the keys, so that the order of the rows does not matter.
        rows = np.argsort(self.keys)[place]
        weights[rows, :, np.arange(len(index))] += mass * self.weight.mean()

    def _over(
        self,
        size: int,
        chosen: Mapping[str, Metric],
        block: Callable[[Ints, list[dict[str, Plan]], Mapping[str, Metric]], dict[str, Floats]],
        *,
        exact: bool,
    ) -> dict[str, Floats]:
        """Run draws 0 .. size-1 in blocks of a size that depends on the data alone: (size, M)."""
        plans = self._plans(chosen, exact=exact)
        width = int(np.clip(_BLOCK // (len(self.rows) * self.n_classes), 1, 50))
        blocks = [np.arange(i, min(i + width, size)) for i in range(0, size, width)]
        parts = []
        for part in map_blocks(lambda index: block(index, plans, chosen), blocks):
            parts.append(part)
            self.evaluator.tick(len(blocks))
        return {name: np.concatenate([part[name] for part in parts]) for name in chosen}


def metrics_of_labels(
    predictions: Predictions, labels: Ints, metrics: Sequence[str]
) -> dict[str, Floats]:
    """Metrics of every classifier for many hard labelings of the same items.

    Parameters
    ----------
    labels
        Class of every item in every draw, shape (n, D).
    metrics
        Names.

    Returns
    -------
    Per metric an array (D, M); NaN where it is undefined.
    """
    chosen = resolve(metrics)
    views = [
        ScoreView(
            predictions.n_classes,
            None if predictions.probabilities is None else predictions.probabilities[:, j],
            predictions.hard[:, j],
            None if predictions.scores is None else predictions.scores[:, j],
        )
        for j in range(predictions.n_models)
    ]
    shared = [HardLabels(labels[:, block]) for block in spans(labels.shape[1], 64)]
    plans = list(map_blocks(lambda view: _prepare(view, chosen, exact=True), views))
    parts = list(map_blocks(lambda part: _finish_labels(plans, chosen, part), shared))
    return {name: np.concatenate([part[name] for part in parts]) for name in chosen}


def _prepare(view: ScoreView, chosen: Mapping[str, Metric], exact: bool) -> dict[str, Plan]:
    view = ScoreView(view.n_classes, view.probabilities, view.hard, view.scores, exact)
    shared: dict[object, Plan] = {}
    out = {}
    for name, metric in chosen.items():
        if view.provides(metric.needs):
            if metric.statistic not in shared:
                shared[metric.statistic] = metric.statistic.prepare(view)
            out[name] = shared[metric.statistic]
    return out


def _finish(
    plans: Sequence[Mapping[str, Plan]], chosen: Mapping[str, Metric], weights: Floats
) -> dict[str, Floats]:
    """Metrics (D, M) of label weights (n, K, D)."""
    return _collect(plans, chosen, weights.shape[2], lambda plan: plan.digest(plan.state(weights)))


def _finish_labels(
    plans: Sequence[Mapping[str, Plan]], chosen: Mapping[str, Metric], labels: HardLabels
) -> dict[str, Floats]:
    """Metrics (D, M) of unweighted hard labels."""
    return _collect(plans, chosen, labels.size, lambda plan: plan.of_labels(labels))


def _collect(
    plans: Sequence[Mapping[str, Plan]],
    chosen: Mapping[str, Metric],
    size: int,
    digest: Callable[[Plan], Floats],
) -> dict[str, Floats]:
    out = {name: np.full((size, len(plans)), np.nan) for name in chosen}
    for column, own in enumerate(plans):
        digests: dict[int, Floats] = {}
        for name, plan in own.items():
            if id(plan) not in digests:
                digests[id(plan)] = digest(plan)
            out[name][:, column] = chosen[name].finish(digests[id(plan)])
    return out


def _nan_reduce(reduce: Callable[..., Floats], drawn: Floats) -> Floats:
    """Reduce over draws (axis 0), leaving out the undefined; NaN where all are."""
    out = np.full(drawn.shape[1], np.nan)
    some = ~np.isnan(drawn).all(axis=0)
    if some.any():
        out[some] = reduce(drawn[:, some], axis=0)
    return out


def _generator(*key: int) -> np.random.Generator:
    return np.random.default_rng([k & (2**64 - 1) for k in key])
