"""What answers share: whom they are about, how far to trust them, values and their intervals."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple

import numpy as np

from fewlabels import __version__
from fewlabels.errors import Status
from fewlabels.kernels.arrays import Floats
from fewlabels.kernels.interval_draws import ends
from fewlabels.shown import Shown
from fewlabels.shown import plain_values as plain

_EQUAL = 1e-8
"""Intervals whose lengths differ by less are equally long."""

IntervalKind = Literal["shortest", "equal-tailed"]


class Interval(NamedTuple):
    """A value with low <= value <= high; NaN where it is undefined."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Answer(Shown):
    """Whom an answer is about, how it was come by, and how far it can be trusted."""

    model: str
    positive: Any
    classes: tuple[Any, ...]
    method: str
    estimand: str
    confidence_level: float
    seed: int
    n_items: int
    n_labeled: int
    n_labeled_positive: int
    unit: str
    status: Status
    warnings: tuple[str, ...]
    diagnostics: Mapping[str, Any]

    @abstractmethod
    def report(self) -> dict[str, Any]:
        """Everything, as a dictionary of plain values."""

    def _reported(self) -> Mapping[str, Any]:
        return self.report()

    def _report(self, what: str, answer: Mapping[str, Any]) -> dict[str, Any]:
        """The answer among the facts, in plain values."""
        facts = {name: getattr(self, name) for name in _FACTS} | {"positive": str(self.positive)}
        trust = {name: getattr(self, name) for name in ("status", "warnings", "diagnostics")}
        out: dict[str, Any] = plain({"fewlabels": __version__, "what": what, **facts, **answer})
        return out | plain(trust)


_FACTS = tuple(field.name for field in fields(Answer))[:-3]


def summarise(
    values: Floats, draws: Floats, level: float, top: float = 1.0, kind: IntervalKind = "shortest"
) -> Interval:
    """Median of the values and interval of the draws (both one-dimensional) that are defined."""
    values, draws = values[~np.isnan(values)], draws[~np.isnan(draws)]
    if not len(values) or not len(draws):
        return Interval(float("nan"), float("nan"), float("nan"))
    low, value, high = band(values[:, None], draws[:, None], level, top, kind)
    return Interval(float(value[0]), float(low[0]), float(high[0]))


def band(
    values: Floats,
    draws: Floats,
    level: float,
    top: float = 1.0,
    kind: IntervalKind = "shortest",
) -> tuple[Floats, Floats, Floats]:
    """Low, median and high at each place: medians of values, intervals of draws, (D, places)."""
    value = np.clip(np.median(values, axis=0), 0.0, top)
    if kind == "shortest":
        low, high = _shortest(draws, level)
    else:
        low, high = ends(draws, level)
    return np.clip(low, 0.0, value), value, np.clip(high, value, top)


def _shortest(draws: Floats, level: float) -> tuple[Floats, Floats]:
    """Ends of the shortest interval that holds a share `level` of the draws (D, places)."""
    ordered = np.sort(draws, axis=0)
    size = len(ordered)
    inside = min(math.ceil(level * (size + 1)), size)
    length = ordered[inside - 1 :] - ordered[: size - inside + 1]
    # Of intervals that are equally long the lowest; rounding must not choose among them.
    start = (length <= length.min(axis=0) + _EQUAL).argmax(axis=0)[None]
    low = np.take_along_axis(ordered, start, axis=0)[0]
    return low, np.take_along_axis(ordered, start + inside - 1, axis=0)[0]
