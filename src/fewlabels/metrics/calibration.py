"""Calibration errors: how far predicted probabilities are from frequencies, bin by bin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Literal

import numpy as np

from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.binning import (
    EQUAL_WIDTH_BINS,
    QUANTILE_BINS,
    Indicator,
    between,
    by_quantiles,
    equal_width,
    quantile_edges,
)
from fewlabels.kernels.weighting import Weighting
from fewlabels.metrics.base import Metric, Plan, ScoreView, Statistic


def event_of(p: Floats, *, top: bool = False) -> tuple[Ints, Floats]:
    """The class in question of every item, (n,), and its probability in p (n, K).

    The second of two classes; of more, or if `top`, the likeliest.
    """
    likeliest = top or p.shape[1] > 2
    event = np.argmax(p, axis=1) if likeliest else np.ones(len(p), dtype=np.int64)
    return event, np.take_along_axis(p, event[:, None], axis=1)[:, 0]


def frequency(hit: Floats, total: Floats) -> Floats:
    """How often events come true; half a hit and half a miss keep few items from certainty."""
    out: Floats = (hit + 0.5) / (total + 1)
    return out


@dataclass(frozen=True, eq=False)
class _BinsPlan(Plan):
    """Event of each item ("class 1" or "the predicted class is right") and its probability."""

    event: Ints
    count: Indicator
    confidence: Indicator
    n_groups: int

    def state(self, weights: Weighting, block: slice | None = None) -> Floats:
        event = self.event if block is None else self.event[block]
        total = weights.total
        state = np.empty((3, self.count.size, weights.size))
        state[0], state[1] = self.count.sums(total, block), self.confidence.sums(total, block)
        state[2] = weights.by_event(self.count.part(block), event)
        if weights.pseudo is not None:
            item, draw, _, mass, total = weights.pseudo
            bins, confidence = self.count.part(block).codes, self.confidence.part(block).values
            assert confidence is not None
            own = mass[np.arange(len(item)), event[item]]
            state[:, bins[item], draw] += total, total * confidence[item], own
        return state.reshape(3, -1, self.n_groups, weights.size)


@dataclass(frozen=True)
class CalibrationBins(Statistic):
    """Weight, weighted confidence and weight of hits per bin: state (3, bins, D).

    Confidence is P(class 1) (`event="positive"`) or that of the predicted class (`event="top"`);
    the bins have equal width, or lie between quantiles of the confidence.
    """

    event: Literal["positive", "top"]
    bins: Literal["equal-width", "quantiles"]

    def prepare(self, view: ScoreView) -> Plan:
        """Find the bin of each item."""
        if self.bins == "equal-width":
            return self._plan(view, equal_width, EQUAL_WIDTH_BINS)
        return self._plan(view, partial(_quantile_bins, view), QUANTILE_BINS)

    @property
    def quantiles(self) -> bool:
        """Whether the bins lie between quantiles."""
        return self.bins == "quantiles"

    def fixed(self, view: ScoreView, bins: int) -> Statistic:
        """Bins between the quantiles of a sample; those of equal width are what they are."""
        if self.bins == "equal-width":
            return self
        return _FixedBins(self, quantile_edges(self._confidence(view)[1]))

    def _confidence(self, view: ScoreView) -> tuple[Ints, Floats]:
        """Event (n,) and its probability (n,)."""
        p = view.probabilities
        assert p is not None
        return event_of(p, top=self.event == "top")

    def _plan(self, view: ScoreView, codes_of: Callable[[Floats], Ints], size: int) -> Plan:
        event, confidence = self._confidence(view)
        codes = codes_of(confidence)
        sums = view.coded(codes, size), view.coded(codes, size, confidence)
        return _BinsPlan(event, *sums, view.n_groups)


def _quantile_bins(view: ScoreView, confidence: Floats) -> Ints:
    """Bins between the quantiles of each group, (n,)."""
    if view.group is None:
        return by_quantiles(confidence, times=view.times)
    codes = np.empty(len(confidence), dtype=np.int64)
    order = np.argsort(view.group, kind="stable")
    ends = np.searchsorted(view.group[order], np.arange(view.n_groups + 1))
    for start, stop in pairwise(ends.tolist()):
        if stop > start:
            codes[order[start:stop]] = by_quantiles(confidence[order[start:stop]])
    return codes


@dataclass(frozen=True, eq=False)
class _FixedBins(Statistic):
    """Bins between given edges."""

    of: CalibrationBins
    edges: Floats

    def prepare(self, view: ScoreView) -> Plan:
        """Find the bin of each item."""
        return self.of._plan(view, lambda p: between(self.edges, p), len(self.edges) - 1)


def _weighted(state: Floats) -> Floats:
    weight, confidence, hits = state
    with np.errstate(invalid="ignore", divide="ignore"):
        out: Floats = np.abs(confidence - hits).sum(axis=0) / weight.sum(axis=0)
    return out


def _unweighted(state: Floats) -> Floats:
    weight, confidence, hits = state
    full = weight > 0
    gap = np.abs(confidence - hits) / np.where(full, weight, 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        out: Floats = np.where(full, gap, 0.0).sum(axis=0) / full.sum(axis=0)
    return out


def _noise_floor(finish: Callable[[Floats], Floats], digest: Floats) -> Floats:
    weight, _, hits = digest
    middle = np.broadcast_to(hits.mean(axis=-1, keepdims=True), hits.shape)
    return finish(np.stack([weight, middle, hits]))


def _metric(
    name: str, description: str, bins: CalibrationBins, finish: Callable[[Floats], Floats]
) -> Metric:
    noise_floor = partial(_noise_floor, finish)
    bounds = (0.0, 1.0)
    return Metric(
        name, description, -1, bounds, "probabilities", bins, finish, noise_floor=noise_floor
    )


CALIBRATION_METRICS = (
    _metric(
        "ece",
        "mean gap between probability and frequency, 15 equal-width bins",
        CalibrationBins("positive", "equal-width"),
        _weighted,
    ),
    _metric(
        "top_label_ece",
        "mean gap between the confidence in the predicted class and how often "
        "it is right, 15 equal-width bins",
        CalibrationBins("top", "equal-width"),
        _weighted,
    ),
    _metric(
        "ece_quantile",
        "gap between probability and frequency, unweighted mean of 10 bins between quantiles",
        CalibrationBins("positive", "quantiles"),
        _unweighted,
    ),
)
