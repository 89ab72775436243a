"""The second pass: metric states of the soft labels of a few parameter draws, which add up.

What a draw says of an item, P(label | draw), is a smooth function of its parameters. So a few draws
are computed for every row of a stream (`Basis`), and what the others add to their best combination
of these is measured on a sample: the combination is a control variate for each of them.

A state is kept per group, classifier and statistic: confusion counts, calibration bins, bins of
scores per class, sums of losses. All are linear in the label weights, so states of parts add up,
and the states of all draws follow from those of the basis.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from fewlabels.evaluation.draws import basis_size
from fewlabels.evaluation.groups import values_of
from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.blocks import spans
from fewlabels.kernels.ranking import LOGIT_BINS
from fewlabels.kernels.weighting import Soft
from fewlabels.methods.base import FittedLabelModel
from fewlabels.metrics.base import Metric, Needs, Plan, ScoreView, Statistic
from fewlabels.metrics.plans import Chosen, prepare, view_of
from fewlabels.posterior import LabelPosterior, ParameterDraws
from fewlabels.predictions import Predictions
from fewlabels.streaming.reading import Batch
from fewlabels.streaming.samples import Samples, mixed
from fewlabels.streaming.scan import Scan, as_view

CHOSEN_BY = 3_000
"""Probabilities of a draw, one per row and class, used to choose draws."""

EVERY = slice(None)
_NEGLIGIBLE = 1e-7


class _Draws(NamedTuple):
    """Draws of one kind: where they start among all columns, and how many there are."""

    parameters: ParameterDraws
    start: int
    size: int


@dataclass(frozen=True, eq=False)
class Basis:
    """Which draws are computed for every row, and how the others combine them.

    Columns are, in this order, the marginals (one, if values come from them) or the draws for
    values, and the draws for intervals unless they are the same. `chosen` (R,) are the computed
    columns; coefficients (R, columns) give each column as their combination. They sum to one, so
    probabilities still do. `error` is the standard deviation over items of the error of the
    combination (root mean square over draws).
    """

    chosen: Ints
    coefficients: Floats
    n_values: int
    n_interval: int
    shared: bool
    error: float

    @staticmethod
    def of(posterior: LabelPosterior, rows: Ints, most: float) -> Basis:
        """Choose by items in no particular order: pivoted QR of differences from a middle draw."""
        n_values, n_interval, shared = _sizes(posterior)
        n_columns = n_values if shared else n_values + n_interval
        if n_columns <= most:
            every = np.arange(n_columns)
            return Basis(every, np.eye(n_columns), n_values, n_interval, shared, 0.0)
        every = np.arange(n_columns)
        frame = Basis(every, np.empty((0, 0)), n_values, n_interval, shared, 0.0)
        table = frame.soft(posterior, rows[::2]).reshape(-1, len(every))
        chosen, coefficients = _combinations(table, int(most))
        held_out = frame.soft(posterior, rows[1::2])
        rest = held_out - held_out[:, :, chosen] @ coefficients
        error = float(np.sqrt((rest.std(axis=0) ** 2).mean())) if rest.size else 0.0
        return Basis(chosen, coefficients, n_values, n_interval, shared, error)

    @property
    def complete(self) -> bool:
        """Whether every draw is computed for every row."""
        return len(self.chosen) == self.n_columns

    @property
    def n_columns(self) -> int:
        """How many columns there are in all."""
        return self.n_values if self.shared else self.n_values + self.n_interval

    @property
    def of_values(self) -> slice:
        """The columns that values come from."""
        return slice(0, self.n_values)

    @property
    def of_intervals(self) -> slice:
        """The columns that intervals come from."""
        return self.of_values if self.shared else slice(self.n_values, self.n_columns)

    def soft(self, posterior: LabelPosterior, rows: Ints | slice = EVERY) -> Floats:
        """P(label) of the computed columns, (n, K, R), of items under a posterior of this kind."""
        return self.columns(posterior, self.chosen, rows)

    def columns(
        self, posterior: LabelPosterior, which: Ints, rows: Ints | slice = slice(None)
    ) -> Floats:
        """P(label) of any columns, (n, K, len(which)), which must ascend."""
        values, rest = which[which < self.n_values], which[which >= self.n_values]
        both = (posterior.value_draws, values), (posterior.interval_draws, rest - self.n_values)
        parts = [draws.block(index, rows) for draws, index in both if len(index)]
        n, k = parts[0].shape[:2]
        # Class by class in memory: states are sums over the items of one class after the other.
        out = np.empty((k, n, len(which))).transpose(1, 0, 2)
        start = 0
        for part in parts:
            out[:, :, start : start + part.shape[2]] = part
            start += part.shape[2]
        return out


def _sizes(posterior: LabelPosterior) -> tuple[int, int, bool]:
    values, intervals = posterior.value_draws, posterior.interval_draws
    return values.size, intervals.size, values is intervals


def _combinations(table: Floats, most: int) -> tuple[Ints, Floats]:
    """Columns (R,) of a table (n, c), and weights (R, c), summing to one, that combine them to all.

    Only draws are candidates, not averages of them: only draws can be computed for a row.
    """
    n_columns = table.shape[1]
    if n_columns <= 2:
        return np.arange(n_columns), np.eye(n_columns)
    middle = int(np.argmin(((table - table.mean(axis=1, keepdims=True)) ** 2).sum(axis=0)))
    gap = table - table[:, middle : middle + 1]
    r, pivot = scipy.linalg.qr(gap, mode="r", pivoting=True)
    size = np.abs(np.diag(r))
    rank = int(np.count_nonzero(size[: most - 1] > _NEGLIGIBLE * max(np.sqrt(len(table)), 1.0)))
    weights = np.zeros((rank, n_columns))
    if rank:
        solved = scipy.linalg.solve_triangular(r[:rank, :rank], r[:rank])
        weights[:, pivot] = solved
        weights[:, pivot[:rank]] = np.eye(rank)
    chosen = np.concatenate([[middle], pivot[:rank]])
    every = np.concatenate([1 - weights.sum(axis=0, keepdims=True), weights])
    order = np.argsort(chosen)
    return chosen[order], every[order]


STATE_BYTES = 2**27
"""Limit of all states; rankings take fewer than 4096 bins to stay below."""

_FEWEST_BINS, _FEWEST_DRAWS = 512, 8
_PROBABILITIES = 2**20


class Part(NamedTuple):
    """Classifiers judged by one posterior, and its computed draws."""

    columns: tuple[int, ...]
    basis: Basis


class Key(NamedTuple):
    """What a state is of; group None is all rows, `statistic` a number."""

    group: str | None
    model: int
    statistic: int


@dataclass(frozen=True, eq=False)
class Scorer:
    """What is the same for every row: the fitted model, its draws, and the metrics' bins.

    `metrics` are those of each classifier, by name, with bins that do not depend on the rows;
    `statistics` are all of theirs. `distribution` takes annotators' counts for what is judged
    against.
    """

    fitted: FittedLabelModel
    parts: tuple[Part, ...]
    metrics: tuple[Mapping[str, Metric], ...]
    statistics: tuple[Statistic, ...]
    by: tuple[str, ...]
    accuracy: float
    distribution: bool = False

    @staticmethod
    def of(
        fitted: FittedLabelModel, posterior: LabelPosterior, samples: Samples, chosen: Chosen,
        scan: Scan, *, distribution: bool,
    ) -> Scorer:  # fmt: skip
        """Choose draws and bins by a sample of the rows, of which `posterior` is."""
        sample = samples.sample
        together: dict[int, list[int]] = {}
        for j in range(sample.n_models):
            together.setdefault(id(posterior.of(j)), []).append(j)
        ranked = (1 if sample.n_classes == 2 else sample.n_classes) * (1 + len(scan.groups))
        room = STATE_BYTES // (16 * _FEWEST_BINS * ranked * sample.n_models)
        most = basis_size(scan.size.items, sample.n_classes)
        most = max(min(most, room), _FEWEST_DRAWS)
        rows = mixed(sample, max(CHOSEN_BY // sample.n_classes, 2))
        parts = tuple(
            Part(tuple(js), Basis.of(posterior.of(js[0]), rows, most)) for js in together.values()
        )
        bins = _bins(parts, ranked)
        metrics, statistics = [], list[Statistic]()
        for j in range(sample.n_models):
            own_rows = samples.of_models.get(j, sample)
            own = _fixed(own_rows, j, chosen, bins, as_view(scan.confidences[j]))
            metrics.append(own)
            for metric in own.values():
                if metric.statistic not in statistics:
                    statistics.append(metric.statistic)
        return Scorer(
            fitted, parts, tuple(metrics), tuple(statistics), scan.plan.by, samples.accuracy,
            distribution,
        )  # fmt: skip

    def posterior(self, rows: Predictions) -> LabelPosterior:
        """Posterior of the labels of a batch."""
        return self.fitted.posterior(rows)

    def judged(self, rows: Predictions) -> Predictions:
        """The rows with what they are judged against."""
        return rows.as_histograms().as_part(self.accuracy) if self.distribution else rows

    def blocks(self, batch: Batch) -> Iterator[Batch]:
        """The rows of a batch, so many at a time that their probabilities take little memory."""
        rows = batch.predictions
        columns = sum(len(part.basis.chosen) for part in self.parts)
        height = max(_PROBABILITIES // (rows.n_classes * columns), 256)
        for block in spans(rows.n_items, height):
            part = rows if height >= rows.n_items else rows.take(np.arange(block.start, block.stop))
            weight = None if batch.weight is None else batch.weight[block]
            yield Batch(part.as_part(self.accuracy), weight, batch.first_row + block.start)

    def number(self, metric: Metric) -> int:
        """The number of a metric's statistic."""
        return self.statistics.index(metric.statistic)


def _fixed(
    sample: Predictions, j: int, chosen: Chosen, bins: int, confidences: ScoreView | None
) -> dict[str, Metric]:
    """Metrics whose needs a classifier meets, with fixed bins.

    Bins between quantiles are those of `confidences`, which all rows have.
    """
    out = {}
    known: dict[Statistic, Statistic] = {}
    for name, metric in chosen.items():
        rows = np.flatnonzero(sample.provides(metric.needs)[:, j])
        if not len(rows):
            continue
        if metric.statistic not in known:
            view = view_of(sample, rows, j)
            if metric.statistic.quantiles and confidences is not None:
                view = confidences
            known[metric.statistic] = metric.statistic.fixed(view, bins)
        out[name] = replace(metric, statistic=known[metric.statistic])
    return out


def _bins(parts: Sequence[Part], ranked: int) -> int:
    """How many bins rankings take, of so many classes and groups, so that all states have room."""
    width = sum(len(part.columns) * len(part.basis.chosen) for part in parts)
    bins = LOGIT_BINS
    while bins > _FEWEST_BINS and 16 * bins * ranked * width > STATE_BYTES:
        bins //= 2
    return bins


@dataclass(eq=False)
class Tally:
    """Sums over rows: states (..., R) by `Key`, and the weight and number of the rows in each."""

    n_rows: int = 0
    states: dict[Key, Floats] = field(default_factory=dict)
    mass: dict[Key, float] = field(default_factory=dict)

    def update(self, scorer: Scorer, batch: Batch) -> None:
        """Add the rows of a batch."""
        for block in scorer.blocks(batch):
            self.add(scorer, block, scorer.posterior(block.predictions))

    def add(self, scorer: Scorer, block: Batch, posterior: LabelPosterior) -> None:
        """Add rows whose posterior is known."""
        rows, weight = scorer.judged(block.predictions), block.weight
        self.n_rows += rows.n_items
        mass = np.ones(rows.n_items) if weight is None else weight
        groups = list(_groups(rows, scorer.by))
        for columns, basis in scorer.parts:
            soft = Soft(basis.soft(posterior.of(columns[0])), mass[:, None])
            for group, place in groups:
                own = soft if group is None else soft.take(place)
                for j in columns:
                    self._add_states(scorer, rows, group, place, own, j)

    def _add_states(
        self, scorer: Scorer, rows: Predictions, group: str | None, place: Ints, soft: Soft, j: int
    ) -> None:
        for chosen, given in provided(rows, place, scorer.metrics[j], j):
            whole = given.all()
            inside = place if whole else place[given]
            if not len(inside):
                continue
            own = soft if whole else soft.take(np.flatnonzero(given))
            total = float(own.rows.sum())
            view = view_of(rows, inside, j)
            plans = prepare(view, chosen, exact=False)
            for name, plan in distinct(plans):
                key = Key(group, j, scorer.number(chosen[name]))
                self._put(key, plan.state(own)[..., 0, :], total)

    def take(self, other: Tally) -> int:
        """Add the sums over other rows; how many these are."""
        self.n_rows += other.n_rows
        for key, state in other.states.items():
            self._put(key, state, other.mass[key])
        return other.n_rows

    def _put(self, key: Key, state: Floats, mass: float) -> None:
        if key in self.states:
            self.states[key] += state
        else:
            self.states[key] = state
        self.mass[key] = self.mass.get(key, 0.0) + mass


def provided(
    rows: Predictions, place: Ints, metrics: Chosen, j: int
) -> Iterator[tuple[Chosen, Floats]]:
    """Metrics that need the same of classifier j, and where it gives that among some rows."""
    by_mask: dict[bytes, tuple[dict[str, Metric], Any]] = {}
    masks: dict[Needs, Any] = {}
    for name, metric in metrics.items():
        if metric.needs not in masks:
            masks[metric.needs] = rows.provides(metric.needs)[place, j]
        mask = masks[metric.needs]
        chosen, _ = by_mask.setdefault(mask.tobytes(), ({}, mask))
        chosen[name] = metric
    yield from by_mask.values()


def distinct(plans: Mapping[str, Plan]) -> list[tuple[str, Plan]]:
    """Plans, each once, under the name of the first metric that it is of."""
    found: dict[int, tuple[str, Plan]] = {}
    for name, plan in plans.items():
        found.setdefault(id(plan), (name, plan))
    return list(found.values())


def _groups(rows: Predictions, by: Sequence[str]) -> Iterator[tuple[str | None, Ints]]:
    """All rows, and those of each group."""
    yield None, np.arange(rows.n_items)
    for column in by:
        codes, names = values_of(rows, column)
        for code, name in enumerate(names):
            yield f"{column}={name}", np.flatnonzero(codes == code)
