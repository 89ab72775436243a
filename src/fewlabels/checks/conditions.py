"""Conditions on estimates as people write them: `low:large:accuracy>=0.9`."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from fewlabels.errors import Status, UsageError, quoted

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
# Greedy: names of classifiers may hold colons, blanks and comparisons.
_FORM = re.compile(r"\s*(?:(.*\S)\s*:)?\s*(\w+)\s*(>=|<=|>|<)\s*([-+.\w]+%?)\s*")
_BOUND = re.compile(r"(low|high|width)\s*:\s*(.+)|(?:(.+?)\s*:\s*)?(low|high|width)")


NOT_RANDOM = "not_a_random_sample"
"""The diagnostic of labeled items shown not to be a random sample, without a correction."""

UNLABELED = "unlabeled_period"
"""The diagnostic of a period that conditions are on, and of which no item has a label."""

_UNTRUSTED = (Status.CONTRADICTED, Status.NOT_CONVERGED, Status.UNDEFINED)


def untrusted(status: Status) -> str | None:
    """Why a row of this status meets no condition, whatever its numbers; None if they decide."""
    return f"{status}: {status.message}" if status in _UNTRUSTED else None


class Judged(Protocol):
    """A value of a classifier with its interval, and how far it can be trusted."""

    @property
    def model(self) -> str:
        """The classifier."""

    @property
    def value(self) -> float:
        """The value; NaN where it is undefined."""

    @property
    def low(self) -> float:
        """The lower end."""

    @property
    def high(self) -> float:
        """The upper end."""

    @property
    def status(self) -> Status:
        """How far it can be trusted."""


class Answers(Protocol):
    """Values by classifier and metric."""

    @property
    def models(self) -> tuple[str, ...]:
        """The classifiers."""

    @property
    def diagnostics(self) -> Mapping[str, Any]:
        """What is known of the fit and the sample, `NOT_RANDOM` among it."""

    def get(self, model: str, metric: str, /) -> Judged:
        """The value of a classifier by a metric, on all items."""


@dataclass(frozen=True)
class Requirement:
    """A condition that one classifier, or every one (None), must meet on all items.

    `bound` is the number tested: the value, the low or high end of its interval, or its width.
    """

    text: str
    bound: str
    metric: str
    compare: str
    threshold: float
    model: str | None = None

    def tested(self, row: Judged) -> float:
        """The number of an estimate that is tested."""
        number: float = row.high - row.low if self.bound == "width" else getattr(row, self.bound)
        return number

    def met_by(self, row: Judged) -> bool:
        """Whether one estimate meets the condition; one that is not to be trusted never does."""
        number = self.tested(row)
        trusted = untrusted(row.status) is None and not math.isnan(number)
        return trusted and _COMPARE[self.compare](number, self.threshold)

    def cases(self, estimates: Answers) -> list[tuple[str, str | None]]:
        """Each classifier that the condition is on, and a line where it does not meet it."""
        judged = estimates.models if self.model is None else (self.model,)
        out: list[tuple[str, str | None]] = []
        sample, period = map(estimates.diagnostics.get, (NOT_RANDOM, UNLABELED))
        for row in (estimates.get(model, self.metric) for model in judged):
            value = f"{row.value:.4g} ({row.low:.4g} to {row.high:.4g})"
            if math.isnan(row.value):
                value = f"no value ({row.status}: {row.status.message})"
            elif (why := untrusted(row.status)) is not None:
                value += f", which is {why}"
            elif sample is not None:
                value += (
                    "; labeled items are shown not to be a random sample "
                    f"(p = {sample['p_value']:.3f}: {sample['difference']}), and nothing corrects "
                    f"for it; {sample['remedy']}"
                )
            elif period is not None:
                value += f"; no item of {period} has a label, so nobody can say that it still holds"
            line = f"not met: {self.text}: model {row.model!r} has {value}"
            met = sample is None and period is None and self.met_by(row)
            out.append((row.model, None if met else line))
        return out

    def failures(self, estimates: Answers) -> list[str]:
        """One line per classifier that does not meet the condition."""
        return [line for _, line in self.cases(estimates) if line is not None]


Bounds = Callable[[str], tuple[float, float] | None]
"""Between what a metric of some name lies; None where nobody knows."""


def parse_requirement(text: str, bounds: Bounds | None = None) -> Requirement:
    """Read `accuracy>=0.9`, `low:accuracy>=0.9`, `gpt:accuracy>=0.9` or `gpt:high:ece<0.05`.

    With `bounds` one that no value of the metric meets, or every one, is refused.

    Examples
    --------
    >>> requirement = parse_requirement("low: accuracy >= .9")
    >>> requirement.bound, requirement.metric, requirement.compare, requirement.threshold
    ('low', 'accuracy', '>=', 0.9)
    >>> parse_requirement("low:gpt: 4:accuracy>=.9").model
    'gpt: 4'
    """
    requirement = match_requirement(text, bounds)
    if requirement is None:
        raise UsageError(
            "`--require` must be METRIC>=NUMBER in quotes (or >, <=, <; low: or high: in front "
            "tests an end of the interval, width: its width, MODEL: one classifier), such as "
            f"--require 'accuracy>=0.9' or 'MODEL:accuracy>=0.9'; got {text!r}"
        )
    return requirement


def match_requirement(text: str, bounds: Bounds | None = None) -> Requirement | None:
    """The condition in a text; None where it has another form. See `parse_requirement`."""
    match, threshold = _FORM.fullmatch(text), math.nan
    with suppress(ValueError):
        number = match[4] if match else "nan"
        threshold = float(number.rstrip("%")) / (100 if number.endswith("%") else 1)
    if match is None or not math.isfinite(threshold):
        return None
    name: str | None = match[1]
    bound, tested = "value", _BOUND.fullmatch(name or "")
    if tested is not None:
        bound, name = (tested[1], tested[2]) if tested[1] else (tested[4], tested[3])
    front = (f"{name}:" if name else "") + (f"{bound}:" if tested else "")
    shown = front + match[2] + match[3] + match[4]
    requirement = Requirement(shown, bound, match[2], match[3], threshold, name)
    between = None if bounds is None else bounds(match[2])
    if between is not None:
        _refuse_idle(requirement, *between)
    return requirement


def _refuse_idle(requirement: Requirement, low: float, high: float) -> None:
    """Refuse what decides nothing of a metric within bounds; `>=0` still asks for trust."""
    metric, number, compare = requirement.metric, requirement.threshold, requirement.compare
    if requirement.bound == "width":
        metric, low, high = f"the width of {metric}", 0.0, high - low
    worst, best = (low, high) if compare.startswith(">") else (high, low)
    possible, certain = (_COMPARE[compare](end, number) for end in (best, worst))
    if possible and (number == 0 or not certain):
        return
    share = number / 100
    likely = "%" not in requirement.text and abs(number) >= 1 and low <= share <= high
    raise UsageError(
        f"{quoted(requirement.text)}: {metric} is between {low:g} and {high:g}, so "
        f"{'every' if certain else 'no'} value meets it"
        + (f"; for {number:g}% write {share:g}" if likely else "")
    )
