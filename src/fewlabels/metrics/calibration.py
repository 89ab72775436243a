"""Metrics of probabilities: calibration errors by bin, and the proper scores Brier and log loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Literal

import numpy as np

from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.weighting import (
    EQUAL_WIDTH_BINS,
    QUANTILE_BINS,
    Indicator,
    Weighting,
    between,
    by_quantiles,
    equal_width,
    quantile_edges,
)
from fewlabels.metrics.base import Metric, Plan, ScoreView, Statistic, ratio


def top_event(p: Floats, *, top: bool = False) -> tuple[Ints, Floats]:
    """The class in question of every item, (n,), and its probability in p (n, K).

    The second of two classes; of more, or if `top`, the likeliest.
    """
    likeliest = top or p.shape[1] > 2
    event = np.argmax(p, axis=1) if likeliest else np.ones(len(p), dtype=np.int64)
    return event, np.take_along_axis(p, event[:, None], axis=1)[:, 0]


def frequency(hit: Floats, total: Floats) -> Floats:
    """How often events come true; half a hit and half a miss keep few items away from 0 and 1."""
    out: Floats = (hit + 0.5) / (total + 1)
    return out


@dataclass(frozen=True, eq=False)
class BinsPlan(Plan):
    """Event of each item ("class 1" or "the predicted class is right") and its probability."""

    event: Ints
    count: Indicator
    confidence: Indicator
    n_groups: int

    @property
    def events(self) -> tuple[BinsPlan, ...]:
        """The plan of each event."""
        return (self,)

    @property
    def probability(self) -> Floats:
        """The probability of each item's event, (n,)."""
        assert self.confidence.values is not None
        return self.confidence.values

    def state(self, weights: Weighting, block: slice | None = None) -> Floats:
        """Weight, weighted probability and weight of hits in each bin, (3, bins, G, D)."""
        event = self.event if block is None else self.event[block]
        total = weights.total
        state = np.empty((3, self.count.size, weights.size))
        state[0], state[1] = self.count.sums(total, block), self.confidence.sums(total, block)
        state[2] = weights.by_event(self.count.part(block), event)
        if weights.pseudo is not None:
            item, draw, _, mass, total = weights.pseudo
            bins, confidence = self.count.part(block).codes, self.confidence.part(block).values
            assert confidence is not None
            event_mass = mass[np.arange(len(item)), event[item]]
            state[:, bins[item], draw] += total, total * confidence[item], event_mass
        return state.reshape(3, -1, self.n_groups, weights.size)


@dataclass(frozen=True, eq=False)
class EventsPlan(Plan):
    """The bins of several events, one after the other: state (3, events x bins, G, D)."""

    events: tuple[BinsPlan, ...]

    @property
    def cells(self) -> int:
        """Three numbers of each bin."""
        return 3 * sum(plan.count.size for plan in self.events)

    def state(self, weights: Weighting, block: slice | None = None) -> Floats:
        """The states of all events."""
        return np.concatenate([plan.state(weights, block) for plan in self.events], axis=1)


Event = Literal["positive", "top", "every"]
Binning = Literal["width", "quantile"]
Norm = Literal["l1", "l2", "max"]


@dataclass(frozen=True)
class CalibrationBins(Statistic):
    """Weight, weighted confidence and weight of hits per bin: state (3, bins, D).

    Confidence is P(class 1) (`event="positive"`), that of the predicted class (`event="top"`), or
    P(class) for `every` class, whose bins follow each other; the bins, `size` of them, have equal
    width, or lie between quantiles of the confidence, or between `edges` of each event.
    """

    event: Event
    bins: Binning
    size: int = EQUAL_WIDTH_BINS
    edges: tuple[tuple[float, ...], ...] | None = None

    def prepare(self, view: ScoreView) -> BinsPlan | EventsPlan:
        """Find the bin of each item."""
        plans = []
        for place, (event, confidence) in enumerate(self._confidences(view)):
            if self.edges is not None:
                codes = between(np.array(self.edges[place]), confidence)
            elif self.bins == "width":
                codes = equal_width(confidence, self.size)
            else:
                codes = _quantile_bins(view, self.size, confidence)
            sums = view.coded(codes, self.size), view.coded(codes, self.size, confidence)
            plans.append(BinsPlan(event, *sums, view.n_groups))
        return plans[0] if len(plans) == 1 else EventsPlan(tuple(plans))

    @property
    def quantiles(self) -> bool:
        """Whether the bins lie between quantiles."""
        return self.bins == "quantile"

    def fixed(self, view: ScoreView, bins: int = 0) -> CalibrationBins:
        """Bins between the quantiles of a sample; those of equal width do not change."""
        if not self.quantiles:
            return self
        edges = (quantile_edges(p, self.size, view.times) for _, p in self._confidences(view))
        return replace(self, edges=tuple(tuple(each.tolist()) for each in edges))

    def _confidences(self, view: ScoreView) -> list[tuple[Ints, Floats]]:
        """Events (n,) and their probabilities (n,): one, or one for every class."""
        p = view.probabilities
        assert p is not None
        if self.event == "every":
            return [(np.full(len(p), k), p[:, k]) for k in range(p.shape[1])]
        return [top_event(p, top=self.event == "top")]


def _quantile_bins(view: ScoreView, size: int, confidence: Floats) -> Ints:
    """Bins between the quantiles of each group, (n,)."""
    if view.group is None:
        return by_quantiles(confidence, size, times=view.times)
    codes = np.empty(len(confidence), dtype=np.int64)
    order = np.argsort(view.group, kind="stable")
    ends = np.searchsorted(view.group[order], np.arange(view.n_groups + 1))
    for start, stop in pairwise(ends.tolist()):
        if stop > start:
            codes[order[start:stop]] = by_quantiles(confidence[order[start:stop]], size)
    return codes


def _weighted(state: Floats) -> Floats:
    weight, confidence, hits = state
    out: Floats = ratio(np.abs(confidence - hits).sum(axis=0), weight.sum(axis=0))
    return out


def _unweighted(state: Floats) -> Floats:
    gap, full = _gaps(state)
    out: Floats = ratio(gap.sum(axis=0), full.sum(axis=0))
    return out


def _squared(state: Floats) -> Floats:
    gap, _ = _gaps(state)
    return np.sqrt(ratio((state[0] * gap**2).sum(axis=0), state[0].sum(axis=0)))


def _largest(state: Floats) -> Floats:
    gap, full = _gaps(state)
    return np.where(full.any(axis=0), gap.max(axis=0), np.nan)


def _gaps(state: Floats) -> tuple[Floats, Floats]:
    """|mean confidence - frequency| in each bin, 0 in empty ones, and which are not."""
    weight, confidence, hits = state
    full = weight > 0
    gap = np.abs(confidence - hits) / np.where(full, weight, 1.0)
    return np.where(full, gap, 0.0), full


def _noise_floor(finish: Callable[[Floats], Floats], digest: Floats) -> Floats:
    weight, _, hits = digest
    middle = np.broadcast_to(hits.mean(axis=-1, keepdims=True), hits.shape)
    return finish(np.stack([weight, middle, hits]))


def _metric(
    name: str, description: str, bins: CalibrationBins, finish: Callable[[Floats], Floats]
) -> Metric:
    return Metric(
        name, description, -1, (0.0, 1.0), "probabilities", bins, finish,
        noise_floor=partial(_noise_floor, finish),
    )  # fmt: skip


CALIBRATION_METRICS = (
    _metric(
        "ece",
        "mean gap between probability and frequency, 15 equal-width bins",
        CalibrationBins("positive", "width"),
        _weighted,
    ),
    _metric(
        "top_label_ece",
        "mean gap between the confidence in the predicted class and how often "
        "it is right, 15 equal-width bins",
        CalibrationBins("top", "width"),
        _weighted,
    ),
    _metric(
        "ece_quantile",
        "gap between probability and frequency, unweighted mean of 10 bins between quantiles",
        CalibrationBins("positive", "quantile", QUANTILE_BINS),
        _unweighted,
    ),
)

_NORMS: Mapping[Norm, tuple[str, str, Callable[[Floats], Floats]]] = {
    "l1": ("", "mean gap", _weighted),
    "l2": ("_l2", "root of the mean squared gap", _squared),
    "max": ("_max", "largest gap", _largest),
}


def calibration_error(
    norm: Norm = "l1", event: Event = "positive", bins: Binning = "width",
    size: int = EQUAL_WIDTH_BINS,
) -> Metric:  # fmt: skip
    """The gap between probability and frequency over bins, in a norm, as a metric.

    `ece` is the norm "l1" (Naeini, Cooper, Hauskrecht 2015, whose `ece_max` is "max"); "l2" is that
    of Kumar, Liang, Ma (2019, definition 2.2). Of `every` class it is the norm over the bins of all
    classes, each class of weight 1 / K (Kull et al. 2019; Nixon et al. 2019).

    Examples
    --------
    >>> calibration_error("l2", "every").name
    'classwise_ece_l2'
    """
    suffix, what, finish = _NORMS[norm]
    kinds = f"{size} bins " + ("of equal width" if bins == "width" else "between quantiles")
    name = "classwise_" * (event == "every") + "ece" + suffix
    description = f"{what} between probability and frequency, {kinds}"
    return _metric(name, description, CalibrationBins(event, bins, size), finish)


# --- proper scores --------------------------------------------------------------------------------


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

    kind: Literal["brier", "log_loss"]

    def prepare(self, view: ScoreView) -> Plan:
        """Tabulate the loss of each item under each class."""
        return _LossPlan(self.per_item(view), view.grouped)

    def per_item(self, view: ScoreView) -> Floats:
        """Loss of each item under each class, (n, K)."""
        p = view.probabilities
        assert p is not None
        if self.kind == "log_loss":
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


def _proper(name: Literal["brier", "log_loss"], description: str, most: float) -> Metric:
    loss = Loss(name)
    return Metric(
        name, description, -1, (0.0, most), "probabilities", loss, _mean, per_item=loss.per_item
    )


PROPER_METRICS = (
    _proper("brier", "mean squared error of the probabilities", 2.0),
    _proper("log_loss", "mean negative log probability of the true class, in nats", math.inf),
)
