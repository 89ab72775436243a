"""When to stop labeling: conditions on an interval that is looked at after every label.

An ordinary interval that is looked at again and again, until it says what one hopes for, is wrong
more often than it says. So a bound (`low:accuracy>=0.8`) counts by the interval that holds at all
looks at once, and a width, which does not choose a side, may count by the posterior's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fewlabels.checks.conditions import Requirement, match_requirement, untrusted
from fewlabels.errors import Status, UsageError, listed, quoted, unknown
from fewlabels.evaluation.anytime import GUARDED
from fewlabels.metrics.registry import bounds_of


@dataclass(frozen=True)
class Row:
    """A classifier and metric after some labels: value, interval, and the guard's interval."""

    model: str
    metric: str
    value: float
    low: float
    high: float
    status: Status = Status.OK
    guard: tuple[float, float] | None = None


@dataclass(frozen=True)
class Verdict:
    """Whether a condition holds, why, and about how many more labels it takes (None: unknown)."""

    met: bool
    why: str
    labels: int | None


@dataclass(frozen=True)
class Stop:
    """A condition that, once met by every classifier (or the one it names), ends the labeling."""

    requirement: Requirement

    @property
    def text(self) -> str:
        """The condition as it is written."""
        return self.requirement.text

    @property
    def goal(self) -> str:
        """The condition in plain words."""
        rule = self.requirement
        subject = f"{rule.metric} of {rule.model or 'every classifier'}"
        if rule.bound == "width":
            return f"the interval for {subject} is at most {rule.threshold:g} wide"
        side = "above" if rule.bound == "low" else "below"
        return (
            f"the interval that stays valid at every look for {subject} is {side} "
            f"{rule.threshold:g}"
        )

    @property
    def by_guard(self) -> bool:
        """Whether it is tested by the interval that is valid at all looks."""
        return self.requirement.bound != "width"

    def verdict(self, rows: Sequence[Row], n_labeled: int) -> Verdict:
        """Judge the condition by the rows of its metric."""
        rule = self.requirement
        mine = [r for r in rows if r.metric == rule.metric and rule.model in (None, r.model)]
        tested = [self._tested(row) for row in mine]
        open_ = [row for row in tested if not rule.met_by(row)]
        if tested and not open_:
            return Verdict(True, self._why(tested), 0)
        refused = [row for row in open_ if untrusted(row.status) is not None]
        if refused:
            who, why = listed([row.model for row in refused], 3), untrusted(refused[0].status)
            return Verdict(False, f"go on: {rule.metric} of {who} is {why}", None)
        needed = [self._needed(row, n_labeled) for row in open_]
        most = None if None in needed or not needed else max(n for n in needed if n is not None)
        who = listed([row.model for row in open_], 3) or "any classifier"
        return Verdict(False, f"go on until {self.goal}, which it is not yet of {who}", most)

    def _why(self, rows: Sequence[Row]) -> str:
        """Why the condition holds, in plain words."""
        rule = self.requirement
        subject = f"{rule.metric} of {rows[0].model if len(rows) == 1 else 'every classifier'}"
        if rule.bound == "width":
            widest = max(row.high - row.low for row in rows)
            return (
                f"the interval for {subject} is {widest:.3f} wide, and {rule.threshold:g} was asked"
            )
        low, high = min(row.low for row in rows), max(row.high for row in rows)
        side = "above" if rule.bound == "low" else "below"
        return (
            f"{subject} is {side} {rule.threshold:g} by the interval that stays valid at every "
            f"look ({low:.3f} to {high:.3f})"
        )

    def _tested(self, row: Row) -> Row:
        """The row with the interval that counts."""
        if not self.by_guard:
            return row
        low, high = row.guard or (math.nan, math.nan)
        return Row(row.model, row.metric, row.value, low, high, row.status)

    def _needed(self, row: Row, n: int) -> int | None:
        """About how many labels more, as intervals narrow with the root of their number."""
        rule = self.requirement
        if not n or not math.isfinite(rule.tested(row)) or not math.isfinite(row.value):
            return None
        if rule.bound == "width":
            return labels_to_width(n, row.high - row.low, rule.threshold)
        room = row.value - rule.threshold
        side = row.value - row.low if rule.bound == "low" else row.value - row.high
        # On the wrong side of the bound no number of labels helps, as far as anybody knows.
        if room * side <= 0:
            return None
        return max(math.ceil(n * ((side / room) ** 2 - 1)), 1)


def labels_to_width(n: int, width: float, target: float) -> int | None:
    """About how many labels after n make an interval of this width as narrow as the target."""
    if not (n and target > 0 and math.isfinite(width)):
        return None
    return max(math.ceil(n * ((width / target) ** 2 - 1)), 0)


def parse_stops(
    texts: Sequence[str], metrics: Sequence[str], models: Sequence[str]
) -> tuple[Stop, ...]:
    """Conditions such as `low:accuracy>=0.8`, `width:accuracy<=0.1`, `low:gpt:accuracy>=0.9`."""
    return tuple(_stop(text, metrics, models) for text in texts)


def _stop(text: str, metrics: Sequence[str], models: Sequence[str]) -> Stop:
    which = f"--until {quoted(text)}"
    requirement = match_requirement(text, bounds_of)
    upward = requirement is not None and requirement.compare in (">=", ">")
    if requirement is None or (requirement.bound, upward) not in (
        ("low", True), ("high", False), ("width", False),
    ):  # fmt: skip
        raise UsageError(
            f"{which}: labeling may stop when an interval is above a number, below one, or narrow: "
            "'low:accuracy>=0.8', 'high:error_rate<=0.2' or 'width:accuracy<=0.1' (with a "
            "classifier behind the first word, as in 'low:large:accuracy>=0.8')"
        )
    if requirement.metric not in metrics:
        raise UsageError(f"{which}: {unknown('metric', requirement.metric, metrics)} (--metrics)")
    if requirement.model is not None and requirement.model not in models:
        raise UsageError(f"{which}: {unknown('model', requirement.model, models)}")
    if requirement.bound != "width" and requirement.metric not in GUARDED:
        raise UsageError(
            f"{which}: an end of an interval may be looked at after every label of "
            f"{listed(GUARDED)} alone; 'width:{requirement.metric}<=0.1' can be asked of any metric"
        )
    if requirement.bound == "width" and requirement.threshold <= 0:
        raise UsageError(f"{which}: a width must be above 0")
    return Stop(requirement)
