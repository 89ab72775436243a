"""Metrics of hard predictions: everything that the confusion matrix says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.weighting import Indicator, PlacedObservations, Weighting
from fewlabels.metrics.base import Metric, Plan, ScoreView, Statistic, ratio


class Margins(NamedTuple):
    """Sums of a confusion matrix that metrics use; with many classes the matrix is never made.

    Hits, weight predicted and weight present of each class, (K, D). `apart` (3, D), where metrics
    of grades are requested, are sums of weights times the three matrices of `_apart`.
    """

    hits: Floats
    predicted: Floats
    present: Floats
    apart: Floats | None

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
    grades: Floats | None  # what `_apart` makes of grades (3, K, K)

    @property
    def cells(self) -> int:
        """Three numbers of each class and group."""
        return 3 * self.predicted.size

    def state(self, weights: Weighting, block: slice | None = None) -> Floats:
        hard = self.hard if block is None else self.hard[block]
        groups, k = self.group.part(block), self.predicted.size // self.group.size
        extra = 0 if self.grades is None else 1
        state = np.empty((3, k + extra, groups.size, weights.size))
        shape = (k, groups.size, -1)
        state[0, :k] = weights.by_event(self.predicted.part(block), hard).reshape(shape)
        state[1, :k] = self.predicted.sums(weights.total, block).reshape(shape)
        state[2, :k] = weights.by_class(groups)
        if self.grades is not None:
            for row, values in enumerate(self.grades):
                state[row, k] = groups.sums(weights.expected(values[hard]))
        if weights.pseudo is not None:
            self._place(state, weights.pseudo, groups.codes)
        return state

    def _place(self, state: Floats, pseudo: PlacedObservations, group: Ints) -> None:
        item, draw, predicted, mass, total = pseudo
        groups = group[item]
        state[0, predicted, groups, draw] += mass[np.arange(len(mass)), predicted]
        state[1, predicted, groups, draw] += total
        state[2, : mass.shape[1], groups, draw] += mass
        if self.grades is not None:
            far = np.einsum("apk,pk->ap", self.grades[:, predicted], mass)
            state[:, mass.shape[1], groups, draw] += far


@dataclass(frozen=True)
class Confusion(Statistic):
    """Margins of the confusion matrix: state (3, K, G, D), as `Margins`.

    With `grades` there is one more row, of how many grades predictions are off.
    """

    grades: bool = False

    def prepare(self, view: ScoreView) -> Plan:
        """Index the hard predictions."""
        assert view.hard is not None
        far = np.stack(list(_apart(view.n_classes))) if self.grades else None
        return _ConfusionPlan(view.hard, view.coded(view.hard, view.n_classes), view.grouped, far)

    def margins(self, state: Floats) -> Margins:
        """The parts of a state, (3, K, D) or with grades (3, K + 1, D)."""
        hits, predicted, present = state[:, :-1] if self.grades else state
        return Margins(hits, predicted, present, state[:, -1] if self.grades else None)

    def of_matrix(self, matrix: Floats) -> Floats:
        """The state of a confusion matrix (K predicted, K true, D)."""
        hits = np.einsum("kkd->kd", matrix)
        state = np.stack([hits, matrix.sum(axis=1), matrix.sum(axis=0)])
        if not self.grades:
            return state
        far = np.stack([np.einsum("ab,abd->d", one, matrix) for one in _apart(len(matrix))])
        return np.concatenate([state, far[:, None]], axis=1)


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


def _weighted_kappa(margins: Margins) -> Floats:
    """1 - sum_ab (a - b)^2 share_ab / sum_ab (a - b)^2 predicted_a present_b (Cohen 1968)."""
    _, predicted, present = _shares(margins)
    observed = _mean_apart(margins, 0)
    squares = _distances(len(predicted)) ** 2
    chance = np.einsum("ab,ad,bd->d", squares, predicted, present)
    result: Floats = 1 - ratio(observed, np.where(chance > _RESIDUE, chance, 0.0))
    return np.clip(result, -1.0, 1.0)


def _distances(n_classes: int) -> Floats:
    """How many grades each class is from each other, (K, K); the classes in their order."""
    place = np.arange(n_classes)
    return np.abs(place[:, None] - place).astype(np.float64)


def _off(view: ScoreView) -> Floats:
    """How many grades the prediction is off under each class, (n, K)."""
    assert view.hard is not None
    out: Floats = _distances(view.n_classes)[view.hard]
    return out


def _apart(n_classes: int) -> Iterator[Floats]:
    """Squared number of grades between classes, the number, whether it is at most 1: (K, K) each.

    Rows are predicted, columns true classes.
    """
    off = _distances(n_classes)
    yield off**2
    yield off
    yield (off <= 1).astype(np.float64)


def _mean_apart(margins: Margins, which: int) -> Floats:
    assert margins.apart is not None
    out: Floats = ratio(margins.apart[which], margins.total)
    return out


def _mean_absolute_error(margins: Margins) -> Floats:
    return _mean_apart(margins, 1)


def _near(view: ScoreView) -> Floats:
    return (_off(view) <= 1).astype(np.float64)


def _within_one(margins: Margins) -> Floats:
    return _mean_apart(margins, 2)


def _matthews_corrcoef(margins: Margins) -> Floats:
    """Correlation of predicted and true class; of more than two, Gorodkin's R_K (2004)."""
    right, predicted, present = _shares(margins)
    covariance = right - (predicted * present).sum(axis=0)
    spread = [(share * (1 - share)).sum(axis=0) for share in (predicted, present)]
    # No spread where one class is all that is predicted, or all there is: 0 / 0.
    fine = (spread[0] > _RESIDUE) & (spread[1] > _RESIDUE)
    result: Floats = ratio(covariance, np.where(fine, np.sqrt(spread[0] * spread[1]), 0.0))
    return np.clip(result, -1.0, 1.0)


def _finished(finish: Callable[[Margins], Floats], statistic: Confusion, state: Floats) -> Floats:
    return finish(statistic.margins(state))


def _metric(
    name: str,
    description: str,
    finish: Callable[[Margins], Floats],
    *,
    grades: bool = False,
    direction: int = 1,
    per_item: Callable[[ScoreView], Floats] | None = None,
    every_class: bool = True,
    lowest: float = 0.0,
    highest: float = 1.0,
) -> Metric:
    statistic = Confusion(grades)
    return Metric(
        name,
        description,
        direction,
        (lowest, highest),
        "hard",
        statistic,
        partial(_finished, finish, statistic),  # no lambda: metrics travel to other processes
        per_item=per_item,
        every_class=every_class,
    )


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
        lowest=-1.0,
    ),
    _metric(
        "weighted_kappa",
        "agreement of grades beyond chance, a mistake weighed by the square of how many grades it "
        "is off; the classes in their order",
        _weighted_kappa,
        grades=True,
        lowest=-1.0,
    ),
    _metric(
        "mean_absolute_error",
        "by how many grades the prediction is off, on average; the classes in their order",
        _mean_absolute_error,
        grades=True,
        direction=-1,
        per_item=_off,
        every_class=False,
        highest=float("inf"),
    ),
    _metric(
        "within_one",
        "share of items whose grade is right or off by one; the classes in their order",
        _within_one,
        grades=True,
        per_item=_near,
        every_class=False,
    ),
    _metric(
        "matthews_corrcoef",
        "correlation of the predicted with the true class: 1 is perfect, 0 what chance gives",
        _matthews_corrcoef,
        lowest=-1.0,
    ),
)
