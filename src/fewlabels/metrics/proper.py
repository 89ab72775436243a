"""Proper scores: Brier and log loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fewlabels.kernels.arrays import Floats
from fewlabels.kernels.binning import Indicator
from fewlabels.kernels.weighting import Weighting
from fewlabels.metrics.base import Metric, Plan, ScoreView, Statistic, ratio


@dataclass(frozen=True, eq=False)
class _LossPlan(Plan):
    loss: Floats
    group: Indicator

    def state(self, weights: Weighting, block: slice | None = None) -> Floats:
        loss = self.loss if block is None else self.loss[block]
        groups = self.group.part(block)
        state = np.empty((2, groups.size, weights.size))
        state[0], state[1] = groups.sums(weights.expected(loss)), groups.sums(weights.total)
        if weights.pseudo is not None:
            item, draw, _, mass, total = weights.pseudo
            state[:, groups.codes[item], draw] += (loss[item] * mass).sum(axis=1), total
        return state


@dataclass(frozen=True)
class Loss(Statistic):
    """Weighted sum of a loss of the item and its class, and the weight: (2, G, D)."""

    kind: Literal["brier", "log"]

    def prepare(self, view: ScoreView) -> Plan:
        """Tabulate the loss of each item under each class."""
        return _LossPlan(self.per_item(view), view.grouped)

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
