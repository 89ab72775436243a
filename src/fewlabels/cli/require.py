"""`--require`: conditions on the estimates that decide the exit code."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from fewlabels.cli.text import text as as_text
from fewlabels.errors import UsageError, quoted, unknown

if TYPE_CHECKING:
    from fewlabels.annotations import Assessment
    from fewlabels.estimates import Estimate, Estimates

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
# Greedy: names of classifiers may hold colons, blanks and comparisons.
_FORM = re.compile(r"\s*(?:(.*\S)\s*:)?\s*(\w+)\s*(>=|<=|>|<)\s*([-+.\w]+)\s*")
_BOUND = re.compile(r"(low|high)\s*:\s*(.+)|(?:(.+?)\s*:\s*)?(low|high)")


def require_option(form: str, bound: str) -> Callable[[Any], Any]:
    """The option --require; `bound` is the end of the interval that is worth naming."""
    which = {"low": "lower", "high": "upper"}[bound]
    return click.option(
        "--require",
        "requirements",
        type=as_text,
        multiple=True,
        metavar=f"'METRIC{form}X'",
        help=f"Exit with 1 unless every classifier meets it, or one: MODEL:METRIC; {bound}:METRIC "
        f"tests the {which} bound. Repeatable.",
    )


@dataclass(frozen=True)
class Requirement:
    """A condition that one classifier, or every one (None), must meet on all items.

    `bound` is the number tested: the value, or the low or high end of its interval.
    """

    text: str
    bound: str
    metric: str
    compare: str
    threshold: float
    model: str | None = None

    def met_by(self, row: Estimate) -> bool:
        """Whether one estimate meets the condition; an undefined one never does."""
        number = getattr(row, self.bound)
        return not math.isnan(number) and _COMPARE[self.compare](number, self.threshold)

    def failures(self, estimates: Estimates | Assessment) -> list[str]:
        """One line per classifier that does not meet the condition."""
        judged = estimates.models if self.model is None else (self.model,)
        rows = [estimates.get(model, self.metric) for model in judged]
        return [
            f"not met: {self.text}: model {row.model!r} has {_shown(row)}"
            for row in rows
            if not self.met_by(row)
        ]


def parse_requirement(text: str) -> Requirement:
    """Read `accuracy>=0.9`, `low:accuracy>=0.9`, `gpt:accuracy>=0.9` or `gpt:high:ece<0.05`.

    Raises
    ------
    UsageError
        Where the text has another form or the number is not finite.

    Examples
    --------
    >>> requirement = parse_requirement("low: accuracy >= .9")
    >>> requirement.bound, requirement.metric, requirement.compare, requirement.threshold
    ('low', 'accuracy', '>=', 0.9)
    >>> parse_requirement("low:gpt: 4:accuracy>=.9").model
    'gpt: 4'
    """
    match = _FORM.fullmatch(text)
    threshold = _number(match[4]) if match else None
    if match is None or threshold is None:
        raise UsageError(
            "`--require` must be METRIC>=NUMBER in quotes (or >, <=, <; low: or high: in front "
            "tests an end of the interval, MODEL: one classifier), such as --require "
            f"'accuracy>=0.9' or 'MODEL:accuracy>=0.9'; got {text!r}"
        )
    name: str | None = match[1]
    bound, found = "value", _BOUND.fullmatch(name or "")
    if found is not None:
        bound, name = (found[1], found[2]) if found[1] else (found[4], found[3])
    front = (f"{name}:" if name else "") + (f"{bound}:" if found else "")
    shown = front + match[2] + match[3] + match[4]
    return Requirement(shown, bound, match[2], match[3], threshold, name)


def check_classifiers(
    requirements: Sequence[Requirement], models: Callable[[], Sequence[str]]
) -> None:
    """Refuse a condition on a classifier that there is none of, before the work.

    Parameters
    ----------
    models
        Gives the names of all; it is only asked where a condition names one.

    Raises
    ------
    UsageError
        Naming the nearest classifier, where one is near, and all of them.
    """
    named = [requirement for requirement in requirements if requirement.model is not None]
    known = models() if named else ()
    for requirement in named:
        if requirement.model not in known:
            said = unknown("model", requirement.model, known, "the file has none")
            raise UsageError(f"--require {quoted(requirement.text)}: {said}")


def verdict(requirements: Sequence[Requirement], estimates: Estimates | Assessment) -> int:
    """Exit code: 1 where a condition is not met, after a line on stderr for each."""
    failures = [line for one in requirements for line in one.failures(estimates)]
    for line in failures:
        click.echo(line, err=True)
    return 1 if failures else 0


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
