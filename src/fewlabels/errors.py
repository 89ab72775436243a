"""What can go wrong: exceptions with one-line messages, and the status of an estimate."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from enum import Enum
from functools import partial


class FewlabelsError(Exception):
    """Base of every error that fewlabels raises on purpose.

    The message is one line that says what is wrong, where, and how to mend it.
    The command line prints it and exits with code 2. Passwords in addresses are left out.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*(redacted(a) if isinstance(a, str) else a for a in args))


class InputError(FewlabelsError, ValueError):
    """The data cannot be used as they are."""


class UsageError(FewlabelsError, ValueError):
    """An argument is not one of the choices, or arguments contradict each other."""


class MissingExtraError(FewlabelsError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"{package} is not installed; install it with `pip install 'fewlabels[{extra}]'`"
        )


class Status(str, Enum):
    """How far an estimate can be trusted."""

    OK = "ok"
    ASSUMPTION = "assumption"
    CONTRADICTED = "contradicted"
    FEW_LABELS = "few-labels"
    NOT_CONVERGED = "not-converged"
    NOT_APPLICABLE = "not-applicable"
    UNDEFINED = "undefined"

    def __str__(self) -> str:
        return self.value

    @property
    def message(self) -> str:
        """What the status means, in plain words."""
        return _MESSAGES[self]


_MESSAGES = {
    Status.OK: "estimated from labels and unlabeled items together",
    Status.ASSUMPTION: "rests on an assumption that these labels cannot test",
    Status.CONTRADICTED: "the labels disagree with what the method says of the other items, so "
    "it is not ranked",
    Status.FEW_LABELS: "few labels, or none of a class or in this group: the interval rests "
    "mostly on the method's assumptions",
    Status.NOT_CONVERGED: "the fit did not converge; do not rely on the numbers",
    Status.NOT_APPLICABLE: "the classifier does not give what the metric needs, or the method "
    "cannot estimate it",
    Status.UNDEFINED: "the metric is not defined on these items",
}

_DECIDE = (
    "contradicted", "reversed", "unrelated", "seen", "suspect", "not-converged", "shift",
    "few-labels", "assumption",
)  # fmt: skip
"""How warnings begin that decide how far to trust an answer, the gravest first; "suspect": some
labels look wrong; "shift": the labeled items are no random sample. Other warnings are good to
know, but decide nothing."""


def gravest_first(warnings: Iterable[str]) -> list[str]:
    """Warnings in the order in which they matter; those that matter alike keep theirs.

    Examples
    --------
    >>> gravest_first(["a note", "assumption: errors are independent", "not-converged: slow"])
    ['not-converged: slow', 'assumption: errors are independent', 'a note']
    """
    return sorted(warnings, key=_gravity)


def decides(warning: str) -> bool:
    """Whether a warning decides how far to trust an answer."""
    return _gravity(warning) < len(_DECIDE)


def _gravity(warning: str) -> int:
    kind = warning.partition(":")[0]
    return _DECIDE.index(kind) if kind in _DECIDE else len(_DECIDE)


# Names and values inside one-line messages.

_SECRETS = (
    # Of a user in front of a host, escaped or not (no port); those that an address names.
    re.compile(r"(?<=://)([^\s/?#'\"@]*?:)(?!\d{1,5}[/?#])\S*(?=@)"),
    re.compile(r"(?i)([?&][\w-]*(?:passw|pwd|secret|token|key|sig|credential)[\w-]*=)[^\s&#'\"]*"),
)


def redacted(text: str) -> str:
    """A text without the passwords of addresses in it.

    Examples
    --------
    >>> redacted("postgresql://ann:pass@host/db?user=ann&password=pass#items")
    'postgresql://ann:***@host/db?user=ann&password=***#items'
    """
    if "://" not in text:
        return text
    for secret in _SECRETS:
        text = secret.sub(r"\1***", text)
    return text


without_commands = partial(re.compile(r"(?m)^[ \t]*:(?=:)|##(?=\[|vso\[)").sub, "\\g<0>\u200b")
"""Text of which no line is a command to the CI that shows it: a zero-width space is in it."""


def one_line(text: str, limit: int = 1_000) -> str:
    r"""Escape what would break a line or steer a terminal, and cut what is too long to read.

    Examples
    --------
    >>> print(one_line("a\nb"))
    a\nb
    """
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return without_commands(shown if len(shown) <= limit else shown[: limit - 3] + "...")


def quoted(value: object, limit: int = 60) -> str:
    """A name or value as a message shows it: in quotes if text, escaped, cut if long."""
    text = repr(value[: 2 * limit] if isinstance(value, str) else value)
    return text if len(text) <= limit else text[: limit - 4] + "...'"


def listed(values: Iterable[object], limit: int = 8) -> str:
    """Some values, and how many more there are."""
    items = list(values)
    shown = ", ".join(one_line(str(v), 60) for v in items[:limit])
    return shown if len(items) <= limit else f"{shown} and {len(items) - limit:,} more"


def plain_name(value: object) -> str | int | float:
    """A class as a report holds it: a number, or its name."""
    return value if isinstance(value, (int, float)) else str(value)


def no_level(level: object) -> str:
    """Message for an invalid confidence level, with a hint where it looks like a percentage.

    Examples
    --------
    >>> no_level(95.0)
    '`confidence_level` must be between 0 and 1; got 95.0 (95% is 0.95)'
    """
    percent = isinstance(level, (int, float)) and 1 < level < 100
    hint = f" ({level:g}% is {level / 100:g})" if percent else ""  # type: ignore[operator]
    return f"`confidence_level` must be between 0 and 1; got {level!r}{hint}"


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """The nearest known name as a question with a space behind it, or nothing."""
    by_case = {each.casefold(): each for each in names}
    parts = (part for part in re.split(r"[\W_]", name.casefold()) if part in by_case)
    near = difflib.get_close_matches(name.casefold(), by_case, n=1) or list(parts)
    return f"did you mean {quoted(by_case[near[0]])}? " if near else ""


def unknown(kind: str, name: object, names: Iterable[str], none: str = "there is none") -> str:
    """Say that a name is not among those known: the nearest one, and all of them."""
    choose = f"choose from {listed(choices, 60)}" if (choices := list(names)) else none
    return f"unknown {kind} {quoted(name)}; {did_you_mean(str(name), choices)}{choose}"
