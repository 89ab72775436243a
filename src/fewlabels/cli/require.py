"""`--require`: conditions on the estimates that decide the exit code."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fewlabels.errors import UsageError

if TYPE_CHECKING:
    from fewlabels.estimates import Estimate, Estimates

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_FORM = re.compile(r"\s*(?:(low|high)\s*:)?\s*(\w+)\s*(>=|<=|>|<)\s*([-+.\w]+)\s*")


@dataclass(frozen=True)
class Requirement:
    """A condition that every classifier must meet on all items.

    `bound` is the number tested: the value, or the low or high end of its interval.
    """

    text: str
    bound: str
    metric: str
    compare: str
    threshold: float

    def met_by(self, row: Estimate) -> bool:
        """Whether one estimate meets the condition; an undefined one never does."""
        number = getattr(row, self.bound)
        return not math.isnan(number) and _COMPARE[self.compare](number, self.threshold)

    def failures(self, estimates: Estimates) -> list[str]:
        """One line per classifier that does not meet the condition."""
        rows = [estimates.get(model, self.metric) for model in estimates.models]
        return [
            f"not met: {self.text}: model {row.model!r} has {_shown(row)}"
            for row in rows
            if not self.met_by(row)
        ]


def parse_requirement(text: str) -> Requirement:
    """Read `accuracy>=0.9`, `low:accuracy>=0.9` or `high:ece<0.05`.

    Raises
    ------
    UsageError
        Where the text has another form or the number is not finite.

    Examples
    --------
    >>> requirement = parse_requirement("low: accuracy >= .9")
    >>> requirement.bound, requirement.metric, requirement.compare, requirement.threshold
    ('low', 'accuracy', '>=', 0.9)
    """
    match = _FORM.fullmatch(text)
    threshold = _number(match[4]) if match else None
    if match is None or threshold is None:
        raise UsageError(
            "`--require` must be METRIC>=NUMBER in quotes (or >, <=, <; low: or high: in front "
            f"tests an end of the interval), such as --require 'accuracy>=0.9'; got {text!r}"
        )
    bound = match[1] or "value"
    shown = (f"{bound}:" if match[1] else "") + match[2] + match[3] + match[4]
    return Requirement(shown, bound, match[2], match[3], threshold)


def with_required(metrics: Sequence[str], requirements: Sequence[Requirement]) -> list[str]:
    """Metrics asked for, and after them those that only a requirement names."""
    return list(dict.fromkeys([*metrics, *(r.metric for r in requirements)]))


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _shown(row: Estimate) -> str:
    if math.isnan(row.value):
        return f"no value ({row.status}: {row.status.message})"
    return f"{row.value:.4g} ({row.low:.4g} to {row.high:.4g})"
