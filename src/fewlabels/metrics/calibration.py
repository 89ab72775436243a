"""Calibration errors: how far predicted probabilities are from frequencies, bin by bin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
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
from fewlabels.metrics.base import HardLabels, Metric, Plan, ScorePlan, ScoreView, Statistic


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
class _BinsPlan(ScorePlan):
    """Event of each item ("class 1" or "the predicted class is right") and its probability."""

    event: Ints
    count: Indicator
    confidence: Indicator

    def state(self, weights: Floats, rows: slice | None = None) -> Floats:
        total = weights.sum(axis=1)
        hit = self._hits(weights, self.event if rows is None else self.event[rows])
        return np.stack(
            [
                self.count.sums(total, rows),
                self.confidence.sums(total, rows),
                self.count.sums(hit, rows),
            ]
        )

    @staticmethod
    def _hits(weights: Floats, event: Ints) -> Floats:
        """Weights (b, D) of each item's event."""
        if len(event) and (event == event[0]).all():
            return np.ascontiguousarray(weights[:, event[0]])
        return np.take_along_axis(weights, event[:, None, None], axis=1)[:, 0]

    def soft_state(self, weights: Floats, mass: Floats) -> Floats:
        hits = self.count.sums(self._hits(weights, self.event))
        fixed = [part.sums(mass[:, None]) for part in (self.count, self.confidence)]
        return np.stack([*(np.broadcast_to(f, hits.shape) for f in fixed), hits])

    def digest(self, state: Floats) -> Floats:
        return state

    def of_labels(self, labels: HardLabels) -> Floats:
        if (self.event == self.event[0]).all():
            hits = self.count.sums(labels.one_hot(int(self.event[0])))
        else:
            hits = self.count.sums((labels.labels == self.event[:, None]).astype(float))
        fixed = [part.totals()[:, None] for part in (self.count, self.confidence)]
        return np.stack([*(np.broadcast_to(f, hits.shape) for f in fixed), hits])


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
        return self._plan(view, lambda p: by_quantiles(p, times=view.times), QUANTILE_BINS)

    def binned(self, view: ScoreView) -> tuple[Ints, Ints, Floats, int]:
        """Bin, event and its probability of each item, (n,) each, and how many bins there are."""
        event, confidence = self._confidence(view)
        codes = equal_width(confidence) if not self.quantiles else np.zeros_like(event)
        return codes, event, confidence, QUANTILE_BINS if self.quantiles else EQUAL_WIDTH_BINS

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
        return _BinsPlan(event, Indicator(codes, size), Indicator(codes, size, confidence))


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
