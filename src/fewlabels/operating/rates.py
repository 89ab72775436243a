"""Rates of a classifier at its cuts, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from fewlabels.kernels.arrays import Floats
from fewlabels.metrics.base import ratio
from fewlabels.operating.points import Counts


class Rates(Mapping[str, Floats]):
    """Name -> rate (G, D) at G cuts in D draws; NaN where undefined.

    Computed when asked for, from the counts; `cost` is that of a false positive and of a false
    negative, per item.
    """

    def __init__(self, counts: Counts, cost: tuple[float, float]) -> None:
        self.tp, self.fp = counts.true_positives, counts.false_positives
        self.fn = np.maximum(counts.positives - self.tp, 0.0)
        self.tn = np.maximum(counts.negatives - self.fp, 0.0)
        self.cost = cost
        self._known: dict[str, Floats] = {}

    def __getitem__(self, name: str) -> Floats:
        if name not in self._known:
            rate = FORMULAS[name](self)
            # Weights in another unit differ in the last digits, and bounds are often fractions.
            self._known[name] = rate if name == "cost" else np.round(rate, 12)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(FORMULAS)

    def __len__(self) -> int:
        return len(FORMULAS)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of cuts and of draws."""
        cuts, draws = self.tp.shape
        return cuts, draws


def _recall(r: Rates) -> Floats:
    return ratio(r.tp, r.tp + r.fn)


def _specificity(r: Rates) -> Floats:
    return ratio(r.tn, r.tn + r.fp)


def _total(r: Rates) -> Floats:
    total: Floats = r.tp + r.fp + r.fn + r.tn
    return total


FORMULAS: Mapping[str, Callable[[Rates], Floats]] = {
    "precision": lambda r: ratio(r.tp, r.tp + r.fp),
    "recall": _recall,
    "tpr": _recall,
    "specificity": _specificity,
    "tnr": _specificity,
    "fpr": lambda r: ratio(r.fp, r.tn + r.fp),
    "fnr": lambda r: ratio(r.fn, r.tp + r.fn),
    "f1": lambda r: ratio(2 * r.tp, 2 * r.tp + r.fp + r.fn),
    "accuracy": lambda r: ratio(r.tp + r.tn, _total(r)),
    "balanced_accuracy": lambda r: (r["recall"] + r["specificity"]) / 2,
    "npv": lambda r: ratio(r.tn, r.tn + r.fn),
    "predicted_positive_rate": lambda r: ratio(r.tp + r.fp, _total(r)),
    "prevalence": lambda r: ratio(r.tp + r.fn, _total(r)),
    "cost": lambda r: ratio(r.cost[0] * r.fp + r.cost[1] * r.fn, _total(r)),
}
"""Every rate that a condition may be about; all but `cost` lie between 0 and 1."""
