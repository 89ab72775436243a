"""Which of a method's beliefs answered, and how far the labels trust reference data.

Both are diagnostics of a mixture: `answered_by`, a list of {"member", "share", "says"} where what
it says is a sentence about the member and its share, and `reference`, whose `weight` is the share
of all members that use reference data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fewlabels.report.blocks import Report
from fewlabels.report.ink import ink
from fewlabels.report.words import aligned, cell_width, clean, fit, plural, probability, wrap

TITLE = "Which belief answered"

DRAWN = "answered_by"
"""The diagnostic that is shown here and nowhere else."""

_MOST = 6
"""Of more members the rest is one entry."""

_LITTLE = 0.1
"""A reference of less weight than this is hardly trusted."""

_NAME, _BAR = 36, 40


@dataclass(frozen=True)
class Member:
    """A member of the mixture: its name and its share of the posterior."""

    name: str
    share: float

    @property
    def percent(self) -> str:
        """The share as a probability is written."""
        return probability(self.share)


@dataclass(frozen=True)
class AnsweredBy:
    """The members, the largest share first, and what is said of the first."""

    sentence: str
    members: tuple[Member, ...]


def answered_by(report: Report) -> AnsweredBy | None:
    """Members by their share, the smallest together; None where the method has none."""
    said: Sequence[Mapping[str, Any]] = _diagnostics(report).get(DRAWN) or ()
    if not said:
        return None
    said = sorted(said, key=lambda m: -m["share"])
    members = [Member(m["member"], m["share"]) for m in said]
    shown, others = members[:_MOST], members[_MOST:]
    if len(others) == 1:
        shown, others = members, []
    if others:
        shown.append(Member(plural(len(others), "other"), sum(m.share for m in others)))
    return AnsweredBy(said[0]["says"], tuple(shown))


def reference_trust(report: Report) -> str | None:
    """How far the labels trust the reference data, as a sentence; None without any."""
    found = _diagnostics(report).get("reference")
    weight = found.get("weight") if isinstance(found, Mapping) else None
    if weight is None:
        return None
    share = probability(weight)
    if not (report["n_labeled"] or report.get("n_annotated")):
        return f"without labels nothing tests the reference; its share is {share}"
    return f"the labels {'hardly ' if weight < _LITTLE else ''}trust the reference: {share}"


def answered_lines(report: Report, width: int) -> Iterator[str]:
    """The members with their shares as bars, below a gap."""
    found = answered_by(report)
    if found is None:
        return
    yield from ["", ink(TITLE, "title")]
    yield from wrap(found.sentence, width)
    names = [fit(clean(member.name), _NAME) for member in found.members]
    number = max(len(member.percent) for member in found.members)
    bar = min(_BAR, width - max(map(cell_width, names)) - number - len(" " * 6))
    rows = [
        [name, member.percent, "#" * round(member.share * bar)]
        for name, member in zip(names, found.members, strict=True)
    ]
    yield from aligned(rows, (False, True, False))


def _diagnostics(report: Report) -> Mapping[str, Any]:
    found: Mapping[str, Any] = report.get("diagnostics") or {}
    return found
