"""The scale of a plot: a range with round ends, its ticks, and where a value lies on it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from fewlabels.report.words import decimals

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class Axis:
    """A linear scale from `low` to `high`."""

    low: float
    high: float
    ticks: tuple[float, ...]
    labels: tuple[str, ...]

    @property
    def ends(self) -> tuple[str, str]:
        """The two ends in words; a bound may cut the range short of a tick."""
        written = dict(zip(self.ticks, self.labels, strict=True))
        return written.get(self.low, f"{self.low:.3g}"), written.get(self.high, f"{self.high:.3g}")

    def at(self, value: float) -> float:
        """Position of the value, from 0 (left) to 1; what lies outside sits at the end."""
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))


def fit_axis(
    values: Iterable[float | None], bounds: tuple[float | None, float | None], ticks: int = 5
) -> Axis:
    """The smallest range with round ends that holds all values and stays within the bounds."""
    known = [v for v in values if v is not None]
    floor, ceiling = (-math.inf if bounds[0] is None else bounds[0]), bounds[1]
    ceiling = math.inf if ceiling is None else ceiling
    low, high = _span(known, floor, ceiling)
    step = _round_step((high - low) / max(1, ticks - 1))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    start, end = max(floor, first * step), min(ceiling, last * step)
    # Multiples of 0.05 are not quite what they are called; those at the ends become the ends.
    marks = [_snapped(k * step, start, end, step) for k in range(first, last + 1)]
    marks = [m for m in marks if start <= m <= end]
    return Axis(start, end, tuple(marks), tuple(_label(m, step) for m in marks))


def _span(known: list[float], floor: float, ceiling: float) -> tuple[float, float]:
    if not known:
        low = floor if math.isfinite(floor) else min(0.0, ceiling - 1)
        return low, (ceiling if math.isfinite(ceiling) else low + 1)
    low, high = min(known), max(known)
    if high - low > 1e-9 * max(abs(low), abs(high), 1e-300):
        return low, high
    # One value alone: some room on both sides, for a range of no width is no range.
    room = abs(low) / 10 or 0.1
    return max(floor, low - room), min(ceiling, high + room)


def _round_step(step: float) -> float:
    power = 10.0 ** math.floor(math.log10(step))
    return next(s * power for s in _STEPS if s * power >= step * (1 - 1e-9))


def _snapped(mark: float, start: float, end: float, step: float) -> float:
    return next((e for e in (start, end) if abs(mark - e) < 1e-9 * step), mark)


def _label(tick: float, step: float) -> str:
    if step < 1e-4 or abs(tick) >= 1e5:
        # As many digits as tell neighbouring ticks apart (a step may be 2.5 of its power).
        apart = math.log10(max(abs(tick), step) / step)
        return f"{tick:.{max(3, math.ceil(apart) + 2)}g}"
    text = f"{tick:.{decimals(step)}f}"
    return text.removeprefix("-") if float(text) == 0 else text
