"""What can go wrong: exceptions with one-line messages, and the status of an estimate."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum


class FewlabelsError(Exception):
    """Base of every error that fewlabels raises on purpose.

    The message is one line that says what is wrong, where, and how to mend it.
    The command line prints it and exits with code 2.
    """


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
    Status.ASSUMPTION: "rests on an assumption that the labels at hand cannot test",
    Status.CONTRADICTED: "the labels speak against what the method makes of the other items, so "
    "it is not ranked",
    Status.FEW_LABELS: "very few labels, or none for a class or for this group: "
    "the interval leans on what the method believes beforehand",
    Status.NOT_CONVERGED: "the fit did not converge; treat the numbers with care",
    Status.NOT_APPLICABLE: "the classifier lacks what the metric needs, or the method does not "
    "serve it",
    Status.UNDEFINED: "the metric is not defined on these items",
}

_DECIDE = ("contradicted", "reversed", "not-converged", "shift", "few-labels", "assumption")
"""How warnings begin that decide how far to trust an answer, the gravest first; "shift": the
labeled items are no random sample. What begins otherwise is good to know, and decides nothing."""


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
