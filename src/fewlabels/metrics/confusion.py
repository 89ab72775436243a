"""Metrics of hard predictions: everything that the confusion matrix says."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import NamedTuple

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

    def of_matrix(self, matrix: Floats, grades: Floats) -> Floats:
        """The state of a confusion matrix (K predicted, K true, D)."""
        return np.stack([np.einsum("kkd->kd", matrix), matrix.sum(axis=1), matrix.sum(axis=0)])


@dataclass(frozen=True, eq=False)
class _MatrixPlan(Plan):
    """The confusion matrix and pseudo-observations: state (K predicted x K true, then 2; G, D).

    The last two are those in any cell and those in none; with `shares` each is a weight of the
    classes instead, in cells of the matrix.
    """

    n_classes: int
    predicted: Indicator
    group: Indicator
    finish: Callable[[Floats], Floats]
    digest_size: int
    shares: bool

    @property
    def cells(self) -> int:
        """A number of each pair of classes and group."""
        return self.n_classes * self.predicted.size

    @property
    def digest_cells(self) -> int:
        """The values of all metrics."""
        return self.digest_size * self.group.size

    def state(self, weights: Weighting, block: slice | None = None) -> Floats:
        k, groups = self.n_classes, self.group.part(block)
        matrix = weights.by_class(self.predicted.part(block)).reshape(k, k, groups.size, -1)
        state = np.zeros((k * k + 2, *matrix.shape[2:]))
        state[:-2] = matrix.swapaxes(0, 1).reshape(k * k, *matrix.shape[2:])
        if weights.pseudo is not None:
            item, draw, called, mass, total = weights.pseudo
            if self.shares:
                place = groups.codes[item][:, None], draw[:, None]
                state[called[:, None] * k + np.arange(k), *place] += mass
            else:
                # A coin that does not depend on the total: class weights are exchangeable.
                side = np.where(mass[:, 0] > mass[:, 1], -2, -1)
                np.add.at(state, (side, groups.codes[item], draw), total)
        return state

    def digest(self, state: Floats) -> Floats:
        return self.finish(state)


OF = ("all", "label", "predicted")
"""Shares of all items, of those with the label, of those with the prediction."""


@dataclass(frozen=True)
class Cells(Statistic):
    """The confusion matrix, whose digest are shares (K predicted, K true, 3 as `OF`, D).

    To a cell a pseudo-observation is in it or not, and is in it in half of the draws, as for the
    precision at a cut: shared by all cells it would leave an empty one hardly any width.
    """

    def prepare(self, view: ScoreView) -> Plan:
        """Index the hard predictions."""
        assert view.hard is not None
        k, predicted = view.n_classes, view.coded(view.hard, view.n_classes)
        finish = partial(self._shares, k)
        return _MatrixPlan(k, predicted, view.grouped, finish, len(OF) * k * k, shares=False)

    def _shares(self, k: int, state: Floats) -> Floats:
        matrix, inside, outside = state[:-2].reshape(k, k, -1), state[-2], state[-1]
        totals = (matrix.sum(axis=axes, keepdims=True) for axes in ((0, 1), (0,), (1,)))
        shares = [ratio(matrix + inside, total + inside + outside) for total in totals]
        return np.stack(shares, axis=2)


def confusion_cells(n_classes: int) -> dict[str, Metric]:
    """Metrics of the cells of the confusion matrix, in the order of predictions, labels, `OF`."""
    return {
        f"{a}, {b} of {OF[of]}": Metric(
            f"share of {OF[of]}", "share of items in a cell of the confusion matrix",
            1 if a == b else -1, (0.0, 1.0), "hard", Cells(), itemgetter((a, b, of)),
            every_class=True,
        )
        for a, b, of in np.ndindex(n_classes, n_classes, len(OF))
    }  # fmt: skip


class GradeValues(NamedTuple):
    """The metrics of grades, (D,) each."""

    weighted_kappa: Floats
    mean_absolute_error: Floats
    bias: Floats
    within_one: Floats
    spearman: Floats
    concordance: Floats
    icc2: Floats
    icc3: Floats


def step_of(grades: Floats) -> float:
    """One step of grades (K,), some of which a file may lack: 10 of 0, 20, 50, 1 of 2, 5, 8.

    The largest of which all gaps are multiples; with more than three decimals the least gap.
    """
    gaps = np.diff(np.unique(grades))
    thousandths = np.round(gaps * 1000)
    if np.allclose(thousandths, gaps * 1000, rtol=0, atol=1e-6) and thousandths.max() < 2**53:
        return float(np.gcd.reduce(thousandths.astype(np.int64))) / 1000
    return float(gaps.min())


@dataclass(frozen=True)
class Graded(Statistic):
    """The confusion matrix of grades, whose digest are `GradeValues`."""

    def prepare(self, view: ScoreView) -> Plan:
        """Index the hard predictions."""
        assert view.hard is not None
        k, predicted = view.n_classes, view.coded(view.hard, view.n_classes)
        finish, size = partial(self._of_state, view.grade_values), len(GradeValues._fields)
        return _MatrixPlan(k, predicted, view.grouped, finish, size, shares=True)

    def _of_state(self, grades: Floats, state: Floats) -> Floats:
        return self.of_matrix(state[:-2].reshape(len(grades), len(grades), -1), grades)

    def of_matrix(self, matrix: Floats, grades: Floats) -> Floats:
        """The values of all metrics; rates, which sum to 1, are those of very many items.

        Of the shares of items, with s the variances and covariance of predicted grades a and true
        ones b, as parts of the range of grades, and n items:

            weighted kappa  1 - mean (a - b)^2 / the same of independent a and b  (Cohen 1968)
            spearman        s_ab / (s_a s_b) of midranks  (Spearman 1904)
            concordance     2 s_ab / (s_a^2 + s_b^2 + bias^2)  (Lin 1989)
            ICC(2,1)        2 s_ab / (s_a^2 + s_b^2 + bias^2 - (s_a^2 + s_b^2 - 2 s_ab) / n)
            ICC(3,1)        2 s_ab / (s_a^2 + s_b^2)

        with s over n - 1 in the correlations of two raters (Shrout and Fleiss 1979).
        """
        total = matrix.sum(axis=(0, 1))
        shares, n = ratio(matrix, total), np.where(total > 1, total, np.inf)
        unit = float(np.ptp(grades)) or 1.0
        off = (grades[:, None] - grades) / unit
        distances = (off, np.abs(off), off**2, _near(grades))
        bias, size, square, near = (np.einsum("ab,abd->d", one, shares) for one in distances)
        margins = shares.sum(axis=1), shares.sum(axis=0)
        chance = np.einsum("ab,ad,bd->d", off**2, *margins)
        # The midrank of a grade, as a share of the items.
        order = np.argsort(grades, kind="stable")
        ranks = [np.empty_like(one) for one in margins]
        for rank, one in zip(ranks, margins, strict=True):
            rank[order] = np.cumsum(one[order], axis=0) - one[order] / 2
        rank_a, rank_b, rank_ab = _spreads(ranks, margins, shares)
        values = np.broadcast_to(grades[:, None] / unit, margins[0].shape)
        a, b, ab = _spreads((values, values), margins, shares)
        of_sample = ratio(1.0, 1 - 1 / n)
        both, shared = (a + b) * of_sample, 2 * ab * of_sample
        return np.stack(
            GradeValues(
                weighted_kappa=np.clip(1 - _ratio(square, chance), -1.0, 1.0),
                mean_absolute_error=size * unit,
                bias=bias * unit,
                within_one=near,
                spearman=_correlation(rank_ab, _geometric_mean(rank_a, rank_b)),
                concordance=_correlation(2 * ab, a + b + bias**2),
                icc2=_correlation(shared, both + bias**2 - (both - shared) / n),
                icc3=_correlation(2 * ab, a + b),
            )
        )


def _spreads(
    values: Sequence[Floats], margins: Sequence[Floats], shares: Floats
) -> tuple[Floats, Floats, Floats]:
    """Variances of two variables and their covariance, (D,), from values and shares (K, D)."""
    a, b = (x - (x * one).sum(axis=0) for x, one in zip(values, margins, strict=True))
    squares = ((x**2 * one).sum(axis=0) for x, one in zip((a, b), margins, strict=True))
    return *squares, np.einsum("ad,bd,abd->d", a, b, shares)


def _near(grades: Floats) -> Floats:
    """1 where two grades differ by no more than one step, (K, K)."""
    gaps = np.abs(grades[:, None] - grades)
    return (gaps <= step_of(grades) * (1 + 1e-9)).astype(np.float64)


_RESIDUE = 1e-12
"""Shares smaller than this are what rounding leaves of 0."""


def _ratio(numerator: Floats, spread: Floats) -> Floats:
    """NaN where rounding alone is left of the spread."""
    out: Floats = ratio(numerator, np.where(spread > _RESIDUE, spread, 0.0))
    return out


def _correlation(numerator: Floats, spread: Floats) -> Floats:
    return np.clip(_ratio(numerator, spread), -1.0, 1.0)


def _geometric_mean(a: Floats, b: Floats) -> Floats:
    """Of two spreads; 0 where rounding alone is left of one."""
    return np.where((a > _RESIDUE) & (b > _RESIDUE), np.sqrt(a * b), 0.0)


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
    return np.clip(1 - _ratio(1 - right, beyond), -1.0, 1.0)


def _matthews_corrcoef(margins: Margins) -> Floats:
    """Correlation of predicted and true class; of more than two, Gorodkin's R_K (2004)."""
    right, predicted, present = _shares(margins)
    covariance = right - (predicted * present).sum(axis=0)
    # No spread where one class is all that is predicted, or all there is: 0 / 0.
    a, b = ((share * (1 - share)).sum(axis=0) for share in (predicted, present))
    return _correlation(covariance, _geometric_mean(a, b))


def _finished(finish: Callable[[Margins], Floats], state: Floats) -> Floats:
    return finish(Margins(*state))


def _metric(
    name: str,
    description: str,
    finish: Callable[[Margins], Floats],
    *,
    direction: int = 1,
    per_item: Callable[[ScoreView], Floats] | None = None,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Metric:
    # No lambda: metrics travel to other processes. A mean over items rests on no single class.
    return Metric(
        name, description, direction, bounds, "hard", Confusion(), partial(_finished, finish),
        per_item=per_item, every_class=per_item is None,
    )  # fmt: skip


_CORRELATION = (-1.0, 1.0)

CONFUSION_METRICS = (
    _metric(
        "accuracy", "share of items whose predicted class is right", _accuracy, per_item=_right
    ),
    _metric(
        "error_rate",
        "share of items whose predicted class is wrong",
        _error_rate,
        direction=-1,
        per_item=_wrong,
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


def _off(view: ScoreView) -> Floats:
    """By how much the prediction is above each class, (n, K)."""
    assert view.hard is not None
    grades = view.grade_values
    out: Floats = (grades[:, None] - grades)[view.hard]
    return out


def _size(view: ScoreView) -> Floats:
    return np.abs(_off(view))


def _is_near(view: ScoreView) -> Floats:
    assert view.hard is not None
    grades = view.grade_values
    out: Floats = _near(grades)[view.hard]
    return out


def _graded(
    name: str,
    description: str,
    direction: int = 1,
    bounds: tuple[float, float] = _CORRELATION,
    per_item: Callable[[ScoreView], Floats] | None = None,
) -> Metric:
    finish = itemgetter(GradeValues._fields.index(name))
    return Metric(
        name, description, direction, bounds, "hard", Graded(), finish, per_item=per_item,
        every_class=name == "weighted_kappa",
    )  # fmt: skip


GRADE_METRICS = (
    _graded(
        "weighted_kappa",
        "agreement of grades beyond chance, a mistake weighed by the square of how far it is off",
    ),
    _graded(
        "mean_absolute_error",
        "by how much the grade is off, on average",
        -1,
        (0.0, math.inf),
        _size,
    ),
    _graded(
        "bias",
        "by how much the grade is above that of the labels, on average; 0 is best",
        0,
        (-math.inf, math.inf),
        _off,
    ),
    _graded(
        "within_one",
        "share of items whose grade is right or off by one step: 1 of 1 to 5, 10 of 0, 20, 50",
        1,
        (0.0, 1.0),
        _is_near,
    ),
    _graded("spearman", "correlation of the ranks of the grades, ties shared: 1 is the same order"),
    _graded("concordance", "Lin's concordance with the labels: 1 is the same grades, bias counts"),
    _graded("icc2", "ICC(2,1) of classifier and labels, absolute agreement: 1 is the same grades"),
    _graded("icc3", "ICC(3,1) of classifier and labels, consistency: whatever the bias"),
)
