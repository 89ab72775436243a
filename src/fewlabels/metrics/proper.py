"""Proper scores: Brier and log loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fewlabels.kernels.arrays import Floats
from fewlabels.metrics.base import HardLabels, Metric, Plan, ScorePlan, ScoreView, Statistic, ratio


@dataclass(frozen=True, eq=False)
class _LossPlan(ScorePlan):
    loss: Floats

    def state(self, weights: Floats, rows: slice | None = None) -> Floats:
        loss = self.loss if rows is None else self.loss[rows]
        return np.stack([np.einsum("nk,nkd->d", loss, weights), weights.sum(axis=(0, 1))])

    def digest(self, state: Floats) -> Floats:
        return state

    def of_labels(self, labels: HardLabels) -> Floats:
        # Losses beyond the first class's, where another class was drawn.
        extra = self.loss[:, 1:] - self.loss[:, :1]
        total = self.loss[:, 0].sum() + np.sum(
            [extra[:, k - 1] @ labels.one_hot(k) for k in range(1, self.loss.shape[1])], axis=0
        )
        return np.stack([total, np.full(labels.size, float(len(self.loss)))])


@dataclass(frozen=True)
class Loss(Statistic):
    """Weighted sum of a loss that depends on the item and its class, and the weight: (2, D)."""

    kind: Literal["brier", "log"]

    def prepare(self, view: ScoreView) -> Plan:
        """Tabulate the loss of each item under each class."""
        return _LossPlan(self.per_item(view))

    def per_item(self, view: ScoreView) -> Floats:
        """Loss of each item under each class, (n, K)."""
        p = view.probabilities
        assert p is not None
        if self.kind == "log":
            # Clipping at float64 eps is scikit-learn's convention; it renormalises nothing.
            eps = np.finfo(np.float64).eps
            out: Floats = -np.log(np.clip(p, eps, 1 - eps))
            return out
        loss: Floats = (p**2).sum(axis=1, keepdims=True) + 1 - 2 * p
        # Two classes: (p1 - y)^2, half the sum over the classes.
        return loss / 2 if view.n_classes == 2 else loss


def _mean(state: Floats) -> Floats:
    out: Floats = ratio(state[0], state[1])
    return out


_BRIER, _LOG = Loss("brier"), Loss("log")

PROPER_METRICS = (
    Metric(
        "brier",
        "mean squared error of the probabilities",
        -1,
        (0.0, 2.0),
        "probabilities",
        _BRIER,
        _mean,
        per_item=_BRIER.per_item,
    ),
    Metric(
        "log_loss",
        "mean negative log probability of the true class, in nats",
        -1,
        (0.0, math.inf),
        "probabilities",
        _LOG,
        _mean,
        per_item=_LOG.per_item,
    ),
)
