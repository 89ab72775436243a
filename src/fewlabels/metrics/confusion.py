"""Metrics of hard predictions: everything that the confusion matrix says."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.weighting import Indicator, Weighting
from fewlabels.metrics.base import Metric, Plan, ScoreView, Statistic, ratio


class Margins(NamedTuple):
    """Sums of a confusion matrix that metrics use; with many classes the matrix is never made.

    Hits, weight predicted and weight present of each class, (K, D).
    """

    hits: Floats
    predicted: Floats
    present: Floats

    @property
    def total(self) -> Floats:
        """Weight of all items, (D,)."""
        out: Floats = self.present.sum(axis=0)
        return out


@dataclass(frozen=True, eq=False)
class _ConfusionPlan(Plan):
    hard: Ints
    predicted: Indicator
    group: Indicator

    @property
    def cells(self) -> int:
        """Three numbers of each class and group."""
        return 3 * self.predicted.size

    def state(self, weights: Weighting, block: slice | None = None) -> Floats:
        hard = self.hard if block is None else self.hard[block]
        groups, k = self.group.part(block), self.predicted.size // self.group.size
        state = np.empty((3, k, groups.size, weights.size))
        state[0] = weights.by_event(self.predicted.part(block), hard).reshape(k, groups.size, -1)
        state[1] = self.predicted.sums(weights.total, block).reshape(k, groups.size, -1)
        state[2] = weights.by_class(groups)
        if weights.pseudo is not None:
            item, draw, predicted, mass, total = weights.pseudo
            place = groups.codes[item]
            state[0, predicted, place, draw] += mass[np.arange(len(mass)), predicted]
            state[1, predicted, place, draw] += total
            state[2, :, place, draw] += mass
        return state


@dataclass(frozen=True)
class Confusion(Statistic):
    """Margins of the confusion matrix: state (3, K, G, D), as `Margins`."""

    def prepare(self, view: ScoreView) -> Plan:
        """Index the hard predictions."""
        assert view.hard is not None
        return _ConfusionPlan(view.hard, view.coded(view.hard, view.n_classes), view.grouped)

    def margins(self, state: Floats) -> Margins:
        """The parts of a state, (3, K, D)."""
        return Margins(*state)

    def of_matrix(self, matrix: Floats, grades: Floats) -> Floats:
        """The state of a confusion matrix (K predicted, K true, D)."""
        return np.stack([np.einsum("kkd->kd", matrix), matrix.sum(axis=1), matrix.sum(axis=0)])


@dataclass(frozen=True, eq=False)
class _MatrixPlan(Plan):
    n_classes: int
    predicted: Indicator
    group: Indicator

    @property
    def cells(self) -> int:
        """A number of each pair of classes and group."""
        return self.n_classes * self.predicted.size

    def counted(self, weights: Weighting, block: slice | None) -> Floats:
        """The matrix (K predicted, K true, G, D), without pseudo-observations."""
        by_class = np.array(weights.by_class(self.predicted.part(block)))
        shape = (self.n_classes, self.n_classes, self.group.size, -1)
        out: Floats = by_class.reshape(shape).swapaxes(0, 1)
        return out


@dataclass(frozen=True, eq=False)
class _CellsPlan(_MatrixPlan):
    def state(self, weights: Weighting, block: slice | None = None) -> Floats:
        matrix = self.counted(weights, block)
        state = np.zeros((self.n_classes**2 + 2, *matrix.shape[2:]))
        state[:-2] = matrix.reshape(-1, *matrix.shape[2:])
        if weights.pseudo is not None:
            item, draw, _, mass, total = weights.pseudo
            # A coin that does not depend on the total: class weights are exchangeable.
            side = np.where(mass[:, 0] > mass[:, 1], -2, -1)
            np.add.at(state, (side, self.group.part(block).codes[item], draw), total)
        return state


@dataclass(frozen=True)
class Cells(Statistic):
    """The confusion matrix and pseudo-observations: (K predicted x K true, then 2; G, D).

    To a cell a pseudo-observation is in it or not, and is in it in half of the draws, as for the
    precision at a cut: shared by all cells it would leave an empty one hardly any width.
    """

    def prepare(self, view: ScoreView) -> Plan:
        """Index the hard predictions."""
        assert view.hard is not None
        predicted = view.coded(view.hard, view.n_classes)
        return _CellsPlan(view.n_classes, predicted, view.grouped)


Of = Literal["all", "label", "predicted"]


class CellMetric(NamedTuple):
    """A cell of the confusion matrix, and of which items its share is."""

    predicted: int
    label: int
    of: Of


def _cell(cell: CellMetric, n_classes: int, state: Floats) -> Floats:
    a, b, of = cell
    matrix = state[:-2].reshape(n_classes, n_classes, -1)
    every = {"all": matrix, "label": matrix[:, b], "predicted": matrix[a]}[of]
    total = every.sum(axis=tuple(range(every.ndim - 1)))
    out: Floats = ratio(matrix[a, b] + state[-2], total + state[-2] + state[-1])
    return out


def confusion_cells(n_classes: int) -> dict[CellMetric, Metric]:
    """Metrics of the cells of the confusion matrix: shares of all items, a label's, a prediction's.

    In the order of predictions, labels, and these three.
    """
    cells = (
        CellMetric(a, b, of)
        for a in range(n_classes)
        for b in range(n_classes)
        for of in get_args(Of)
    )
    return {
        cell: Metric(
            f"share of {cell.of}", "share of items in a cell of the confusion matrix",
            1 if cell.predicted == cell.label else -1, (0.0, 1.0), "hard", Cells(),
            partial(_cell, cell, n_classes), every_class=True,
        )
        for cell in cells
    }  # fmt: skip


@dataclass(frozen=True, eq=False)
class _GradedPlan(_MatrixPlan):
    finish: Callable[[Floats], Floats]

    @property
    def digest_cells(self) -> int:
        """The moments."""
        return len(Moments._fields) * self.group.size

    def state(self, weights: Weighting, block: slice | None = None) -> Floats:
        state = self.counted(weights, block)
        if weights.pseudo is not None:
            item, draw, called, mass, _ = weights.pseudo
            state[called, :, self.group.part(block).codes[item], draw] += mass
        return state

    def digest(self, state: Floats) -> Floats:
        return self.finish(state)


class Moments(NamedTuple):
    """What metrics of grades need of a confusion matrix, (D,) each.

    Weight of all items; the range of the grades, by which they are divided; means of prediction
    minus label, its size, its square, and whether it is at most one step; the square if the two
    were independent; variances of predictions and labels and their covariance, of grades and of
    midranks.
    """

    total: Floats
    unit: Floats
    bias: Floats
    size: Floats
    square: Floats
    near: Floats
    chance: Floats
    predicted: Floats
    present: Floats
    covariance: Floats
    predicted_ranks: Floats
    present_ranks: Floats
    rank_covariance: Floats


@dataclass(frozen=True)
class Graded(Statistic):
    """The confusion matrix of grades, (K predicted, K true, G, D), whose digest are `Moments`."""

    def prepare(self, view: ScoreView) -> Plan:
        """Index the hard predictions."""
        assert view.hard is not None
        predicted = view.coded(view.hard, view.n_classes)
        finish = partial(self.of_matrix, grades=view.grade_values)
        return _GradedPlan(view.n_classes, predicted, view.grouped, finish)

    def of_matrix(self, matrix: Floats, grades: Floats) -> Floats:
        """The moments; a matrix of rates, which sum to 1, is one of very many items."""
        total = matrix.sum(axis=(0, 1))
        shares = ratio(matrix, total)
        unit = float(np.ptp(grades)) or 1.0
        off = (grades[:, None] - grades) / unit
        step = np.diff(np.unique(grades)).min(initial=unit) / unit
        distances = (off, np.abs(off), off**2, np.abs(off) <= step * (1 + 1e-9))
        bias, gap, square, near = (np.einsum("ab,abd->d", one, shares) for one in distances)
        margins = shares.sum(axis=1), shares.sum(axis=0)
        chance = np.einsum("ab,ad,bd->d", off**2, *margins)
        values = [np.broadcast_to(grades[:, None] / unit, one.shape) for one in margins]
        # The midrank of a grade, as a share of the items.
        order = np.argsort(grades, kind="stable")
        ranks = [np.empty_like(one) for one in margins]
        for rank, one in zip(ranks, margins, strict=True):
            rank[order] = np.cumsum(one[order], axis=0) - one[order] / 2
        spreads: list[Floats] = []
        for pair in (values, ranks):
            a, b = (x - (x * one).sum(axis=0) for x, one in zip(pair, margins, strict=True))
            spreads += [(a**2 * margins[0]).sum(axis=0), (b**2 * margins[1]).sum(axis=0)]
            spreads.append(np.einsum("ad,bd,abd->d", a, b, shares))
        n, units = np.where(total > 1, total, np.inf), np.full(len(total), unit)
        return np.stack(Moments(n, units, bias, gap, square, near, chance, *spreads))


def _averaged(per_class: Floats) -> Floats:
    """Two classes: the value of the positive one; more: the mean over classes."""
    result: Floats = per_class[1] if len(per_class) == 2 else per_class.mean(axis=0)
    return result


def _accuracy(margins: Margins) -> Floats:
    out: Floats = ratio(margins.hits.sum(axis=0), margins.total)
    return out


def _right(view: ScoreView) -> Floats:
    """1 where the predicted class is the true one, (n, K)."""
    assert view.hard is not None
    return (view.hard[:, None] == np.arange(view.n_classes)).astype(np.float64)


def _wrong(view: ScoreView) -> Floats:
    return 1 - _right(view)


def _error_rate(margins: Margins) -> Floats:
    return 1 - _accuracy(margins)


def _balanced_accuracy(margins: Margins) -> Floats:
    result: Floats = ratio(margins.hits, margins.present).mean(axis=0)
    return result


def _precision(margins: Margins) -> Floats:
    return _averaged(ratio(margins.hits, margins.predicted))


def _recall(margins: Margins) -> Floats:
    return _averaged(ratio(margins.hits, margins.present))


def _specificity(margins: Margins) -> Floats:
    negatives = margins.total - margins.present
    return _averaged(ratio(negatives - margins.predicted + margins.hits, negatives))


def _f1(margins: Margins) -> Floats:
    return _averaged(ratio(2 * margins.hits, margins.predicted + margins.present))


_RESIDUE = 1e-12
"""Shares smaller than this are what rounding leaves of 0."""


def _shares(margins: Margins) -> tuple[Floats, Floats, Floats]:
    """Share that is right (D,), and the shares predicted and present of each class, (K, D)."""
    total = margins.total
    return (
        ratio(margins.hits.sum(axis=0), total),
        ratio(margins.predicted, total),
        ratio(margins.present, total),
    )


def _cohen_kappa(margins: Margins) -> Floats:
    """(right - chance) / (1 - chance), chance the agreement of independent classes (Cohen 1960)."""
    right, predicted, present = _shares(margins)
    beyond = (predicted * (1 - present)).sum(axis=0)
    # 1 - chance is 0 where all items are predicted to be of one class, and are: 0 / 0.
    result: Floats = 1 - ratio(1 - right, np.where(beyond > _RESIDUE, beyond, 0.0))
    return np.clip(result, -1.0, 1.0)


def _weighted_kappa(moments: Moments) -> Floats:
    """1 - sum_ab (a - b)^2 share_ab / sum_ab (a - b)^2 predicted_a present_b (Cohen 1968)."""
    result: Floats = 1 - _ratio(moments.square, moments.chance)
    return np.clip(result, -1.0, 1.0)


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """NaN where rounding alone is left of the denominator."""
    out: Floats = ratio(numerator, np.where(denominator > _RESIDUE, denominator, 0.0))
    return out


def _off(view: ScoreView) -> Floats:
    """By how much the prediction is above each class, (n, K)."""
    assert view.hard is not None
    grades = view.grade_values
    out: Floats = grades[view.hard][:, None] - grades
    return out


def _size(view: ScoreView) -> Floats:
    return np.abs(_off(view))


def _near(view: ScoreView) -> Floats:
    step = np.diff(np.unique(view.grade_values)).min(initial=np.inf)
    return (_size(view) <= step * (1 + 1e-9)).astype(np.float64)


def _bias(moments: Moments) -> Floats:
    return moments.bias * moments.unit


def _mean_absolute_error(moments: Moments) -> Floats:
    return moments.size * moments.unit


def _within_one(moments: Moments) -> Floats:
    return moments.near


def _spearman(moments: Moments) -> Floats:
    """Correlation of midranks (Spearman 1904)."""
    variances = moments.predicted_ranks, moments.present_ranks
    fine = (variances[0] > _RESIDUE) & (variances[1] > _RESIDUE)
    spread = np.where(fine, np.sqrt(variances[0] * variances[1]), 0.0)
    result: Floats = ratio(moments.rank_covariance, spread)
    return np.clip(result, -1.0, 1.0)


def _concordance(moments: Moments) -> Floats:
    """2 cov / (var predicted + var present + bias^2), variances over n (Lin 1989)."""
    spread = moments.predicted + moments.present + moments.bias**2
    return np.clip(_ratio(2 * moments.covariance, spread), -1.0, 1.0)


def _icc2(moments: Moments) -> Floats:
    """ICC(2,1) of two raters (Shrout and Fleiss 1979).

    2 s_ab / (s_a^2 + s_b^2 + bias^2 - (s_a^2 + s_b^2 - 2 s_ab) / n), s over n - 1.
    """
    samples = ratio(1.0, 1 - 1 / moments.total)
    both = (moments.predicted + moments.present) * samples
    shared = 2 * moments.covariance * samples
    spread = both + moments.bias**2 - (both - shared) / moments.total
    return np.clip(_ratio(shared, spread), -1.0, 1.0)


def _icc3(moments: Moments) -> Floats:
    """ICC(3,1) of two raters: 2 cov / (var predicted + var present), whatever the bias."""
    result = _ratio(2 * moments.covariance, moments.predicted + moments.present)
    return np.clip(result, -1.0, 1.0)


def _matthews_corrcoef(margins: Margins) -> Floats:
    """Correlation of predicted and true class; of more than two, Gorodkin's R_K (2004)."""
    right, predicted, present = _shares(margins)
    covariance = right - (predicted * present).sum(axis=0)
    spread = [(share * (1 - share)).sum(axis=0) for share in (predicted, present)]
    # No spread where one class is all that is predicted, or all there is: 0 / 0.
    fine = (spread[0] > _RESIDUE) & (spread[1] > _RESIDUE)
    result: Floats = ratio(covariance, np.where(fine, np.sqrt(spread[0] * spread[1]), 0.0))
    return np.clip(result, -1.0, 1.0)


def _finished(finish: Callable[[Margins], Floats], state: Floats) -> Floats:
    return finish(Margins(*state))


def _of_grades(finish: Callable[[Moments], Floats], digest: Floats) -> Floats:
    return finish(Moments(*digest))


def _metric(
    name: str,
    description: str,
    finish: Callable[[Margins], Floats] | Callable[[Moments], Floats],
    *,
    grades: bool = False,
    direction: int = 1,
    per_item: Callable[[ScoreView], Floats] | None = None,
    every_class: bool = True,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Metric:
    finished: Callable[..., Any] = _of_grades if grades else _finished
    return Metric(
        name,
        description,
        direction,
        bounds,
        "hard",
        Graded() if grades else Confusion(),
        partial(finished, finish),  # no lambda: metrics travel to other processes
        per_item=per_item,
        every_class=every_class,
    )


_graded = partial(_metric, grades=True, every_class=False)
_CORRELATION, _ANY, _POSITIVE = (-1.0, 1.0), (-math.inf, math.inf), (0.0, math.inf)


CONFUSION_METRICS = (
    _metric(
        "accuracy",
        "share of items whose predicted class is right",
        _accuracy,
        per_item=_right,
        every_class=False,
    ),
    _metric(
        "error_rate",
        "share of items whose predicted class is wrong",
        _error_rate,
        direction=-1,
        per_item=_wrong,
        every_class=False,
    ),
    _metric("balanced_accuracy", "mean over the classes of the share found", _balanced_accuracy),
    _metric(
        "precision",
        "share of the items predicted positive that are; beyond two classes, the mean",
        _precision,
    ),
    _metric(
        "recall",
        "share of the positive items that are predicted so; beyond two classes, the mean",
        _recall,
    ),
    _metric(
        "specificity",
        "share of the negative items that are predicted so; beyond two classes, the mean",
        _specificity,
    ),
    _metric("f1", "harmonic mean of precision and recall; beyond two classes, the mean", _f1),
    _metric(
        "cohen_kappa",
        "agreement with the labels beyond chance: 1 is perfect, 0 what chance gives",
        _cohen_kappa,
        bounds=_CORRELATION,
    ),
    _metric(
        "matthews_corrcoef",
        "correlation of the predicted with the true class: 1 is perfect, 0 what chance gives",
        _matthews_corrcoef,
        bounds=_CORRELATION,
    ),
)

GRADE_METRICS = (
    _graded(
        "weighted_kappa",
        "agreement of grades beyond chance, a mistake weighed by the square of how far it is off",
        _weighted_kappa,
        every_class=True,
        bounds=_CORRELATION,
    ),
    _graded(
        "mean_absolute_error",
        "by how much the grade is off, on average",
        _mean_absolute_error,
        direction=-1,
        per_item=_size,
        bounds=_POSITIVE,
    ),
    _graded(
        "bias",
        "by how much the grade is above that of the labels, on average; 0 is best",
        _bias,
        direction=0,
        per_item=_off,
        bounds=_ANY,
    ),
    _graded(
        "within_one",
        "share of items whose grade is right or off by one step",
        _within_one,
        per_item=_near,
    ),
    _graded(
        "spearman",
        "correlation of the ranks of the grades, ties shared: 1 is the same order",
        _spearman,
        bounds=_CORRELATION,
    ),
    _graded(
        "concordance",
        "Lin's concordance with the labels: 1 is the same grades, bias counts",
        _concordance,
        bounds=_CORRELATION,
    ),
    _graded(
        "icc2",
        "ICC(2,1) of classifier and labels, absolute agreement: 1 is the same grades",
        _icc2,
        bounds=_CORRELATION,
    ),
    _graded(
        "icc3",
        "ICC(3,1) of classifier and labels, consistency: whatever the bias",
        _icc3,
        bounds=_CORRELATION,
    ),
)
