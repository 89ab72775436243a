"""Metrics of hard predictions: everything that the confusion matrix says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Array, Floats, Ints
from fewlabels.kernels.binning import Indicator
from fewlabels.metrics.base import HardLabels, Metric, Plan, ScoreView, Statistic, ratio


@dataclass(frozen=True, eq=False)
class _ConfusionPlan(Plan):
    predicted: Indicator

    def state(self, weights: Floats, rows: slice | None = None) -> Floats:
        return self.predicted.sums(weights, rows)

    def soft_state(self, weights: Floats, mass: Floats) -> Floats:
        others = self.predicted.sums(np.ascontiguousarray(weights[:, 1:]))
        total = self.predicted.sums(mass[:, None])
        return np.concatenate([total[:, None] - others.sum(axis=1, keepdims=True), others], axis=1)

    def place_pseudo_observation(
        self, state: Floats, item: Ints, predicted: Ints, mass: Floats
    ) -> None:
        draws = np.arange(len(item))
        state[self.predicted.codes[item], :, draws] -= mass
        state[predicted, :, draws] += mass
        np.maximum(state, 0.0, out=state)

    def digest(self, state: Floats) -> Floats:
        return state

    def of_labels(self, labels: HardLabels) -> Floats:
        others = [self.predicted.sums(labels.one_hot(k)) for k in range(1, self.predicted.size)]
        first = self.predicted.totals()[:, None] - np.sum(others, axis=0)
        return np.stack([first, *others], axis=1)


@dataclass(frozen=True)
class Confusion(Statistic):
    """Weight of (predicted class, true class): state (K, K, D)."""

    def prepare(self, view: ScoreView) -> Plan:
        """Index the hard predictions."""
        assert view.hard is not None
        return _ConfusionPlan(Indicator(view.hard, view.n_classes))


class Margins(NamedTuple):
    """What metrics but for the matrix itself ask of it: of many classes it is never made.

    Hits, weight predicted and weight present of each class (K, D), and the sums (3, D) of weights
    times what `apart` makes of how many classes apart the two are.
    """

    hits: Floats
    predicted: Floats
    present: Floats
    apart: Floats


def _rates(state: Floats | Margins) -> tuple[Floats, Floats, Floats]:
    """Hits, weight predicted and weight present of each class, (K, D) each."""
    if isinstance(state, Margins):
        return state[:3]
    return np.einsum("kkd->kd", state), state.sum(axis=1), state.sum(axis=0)


def _total(state: Floats | Margins) -> Floats:
    total: Floats = (
        state.present.sum(axis=0) if isinstance(state, Margins) else state.sum(axis=(0, 1))
    )
    return total


def _averaged(per_class: Floats) -> Floats:
    """Two classes: the value of the positive one; more: the mean over classes."""
    result: Floats = per_class[1] if len(per_class) == 2 else per_class.mean(axis=0)
    return result


def _accuracy(state: Floats | Margins) -> Floats:
    hits = state.hits if isinstance(state, Margins) else np.einsum("kkd->kd", state)
    out: Floats = ratio(hits.sum(axis=0), _total(state))
    return out


def _right(view: ScoreView) -> Floats:
    """1 where the predicted class is the true one, (n, K)."""
    assert view.hard is not None
    out: Floats = (view.hard[:, None] == np.arange(view.n_classes)).astype(np.float64)
    return out


def _error_rate(state: Floats | Margins) -> Floats:
    return 1 - _accuracy(state)


def _balanced_accuracy(state: Floats | Margins) -> Floats:
    hits, _, present = _rates(state)
    result: Floats = ratio(hits, present).mean(axis=0)
    return result


def _precision(state: Floats | Margins) -> Floats:
    hits, predicted, _ = _rates(state)
    return _averaged(ratio(hits, predicted))


def _recall(state: Floats | Margins) -> Floats:
    hits, _, present = _rates(state)
    return _averaged(ratio(hits, present))


def _specificity(state: Floats | Margins) -> Floats:
    hits, predicted, present = _rates(state)
    total = _total(state)
    return _averaged(ratio(total - predicted - present + hits, total - present))


def _f1(state: Floats | Margins) -> Floats:
    hits, predicted, present = _rates(state)
    return _averaged(ratio(2 * hits, predicted + present))


_RESIDUE = 1e-12
"""Shares smaller than this are what rounding leaves of 0."""


def _margins(state: Floats | Margins) -> tuple[Floats, Floats, Floats]:
    """Share that is right (D,), and the shares predicted and present of each class, (K, D)."""
    hits, predicted, present = _rates(state)
    total = _total(state)
    return ratio(hits.sum(axis=0), total), ratio(predicted, total), ratio(present, total)


def _cohen_kappa(state: Floats | Margins) -> Floats:
    """(right - chance) / (1 - chance), chance the agreement of independent classes (Cohen 1960)."""
    right, predicted, present = _margins(state)
    beyond = (predicted * (1 - present)).sum(axis=0)
    # 1 - chance is 0 where all items are predicted to be of one class, and are: 0 / 0.
    result: Floats = 1 - ratio(1 - right, np.where(beyond > _RESIDUE, beyond, 0.0))
    return np.clip(result, -1.0, 1.0)


def _weighted_kappa(state: Floats | Margins) -> Floats:
    """1 - sum_ab (a - b)^2 share_ab / sum_ab (a - b)^2 predicted_a present_b (Cohen 1968)."""
    _, predicted, present = _margins(state)
    observed = _mean_apart(state, 0)
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


def apart(distance: Array) -> Iterator[Floats]:
    """Of a number of grades its square, itself, and whether it is at most 1."""
    off = np.abs(distance).astype(np.float64)
    yield off**2
    yield off
    yield (off <= 1).astype(np.float64)


def _mean_apart(state: Floats | Margins, which: int) -> Floats:
    if isinstance(state, Margins):
        total = state.apart[which]
    else:
        total = np.einsum("ab,abd->d", list(apart(_distances(len(state))))[which], state)
    out: Floats = ratio(total, _total(state))
    return out


def _mean_absolute_error(state: Floats | Margins) -> Floats:
    return _mean_apart(state, 1)


def _within_one(state: Floats | Margins) -> Floats:
    return _mean_apart(state, 2)


def _matthews_corrcoef(state: Floats | Margins) -> Floats:
    """Correlation of predicted and true class; of more than two, Gorodkin's R_K (2004)."""
    right, predicted, present = _margins(state)
    covariance = right - (predicted * present).sum(axis=0)
    spread = [(share * (1 - share)).sum(axis=0) for share in (predicted, present)]
    # No spread where one class is all that is predicted, or all there is: 0 / 0.
    fine = (spread[0] > _RESIDUE) & (spread[1] > _RESIDUE)
    result: Floats = ratio(covariance, np.where(fine, np.sqrt(spread[0] * spread[1]), 0.0))
    return np.clip(result, -1.0, 1.0)


def _metric(
    name: str,
    description: str,
    finish: Callable[[Floats], Floats],
    *,
    direction: int = 1,
    per_item: Callable[[ScoreView], Floats] | None = None,
    every_class: bool = True,
    lowest: float = 0.0,
    highest: float = 1.0,
) -> Metric:
    return Metric(
        name,
        description,
        direction,
        (lowest, highest),
        "hard",
        Confusion(),
        finish,
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
        per_item=lambda view: 1 - _right(view),
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
        lowest=-1.0,
    ),
    _metric(
        "mean_absolute_error",
        "by how many grades the prediction is off, on average; the classes in their order",
        _mean_absolute_error,
        direction=-1,
        per_item=_off,
        every_class=False,
        highest=float("inf"),
    ),
    _metric(
        "within_one",
        "share of items whose grade is right or off by one; the classes in their order",
        _within_one,
        per_item=lambda view: (_off(view) <= 1).astype(np.float64),
        every_class=False,
    ),
    _metric(
        "matthews_corrcoef",
        "correlation of the predicted with the true class: 1 is perfect, 0 what chance gives",
        _matthews_corrcoef,
        lowest=-1.0,
    ),
)
