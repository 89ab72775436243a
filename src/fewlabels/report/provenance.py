"""Where a page comes from: when it was made, by which command, of which files.

A report knows its numbers; who writes the page knows the rest, and says it around the writing, as
`words.inked` does of colours.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, NamedTuple

from fewlabels.report.words import count, enumerated, percent, speaks_of


class Origin(NamedTuple):
    """What is known of a page beside its report; None and empty where nothing is."""

    command: str | None = None
    files: tuple[str, ...] = ()
    made: datetime | None = None


_UNKNOWN = Origin()
_ORIGIN: ContextVar[Origin] = ContextVar("origin", default=_UNKNOWN)


@contextmanager
def made_by(command: str | None = None, files: Sequence[str] = ()) -> Iterator[None]:
    """Pages that are made in this block say the command and the files.

    The time is now, or `SOURCE_DATE_EPOCH` for pages that must be the same each time. A block
    within another adds what that one did not say.
    """
    around = _ORIGIN.get()
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    made = datetime.fromtimestamp(int(epoch), UTC) if epoch.isdigit() else datetime.now(UTC)
    token = _ORIGIN.set(
        Origin(command or around.command, tuple(files) or around.files, around.made or made)
    )
    try:
        yield
    finally:
        _ORIGIN.reset(token)


def kicker() -> str:
    """What stands above the title: of which files, and from which day."""
    origin = _ORIGIN.get()
    names = [os.path.basename(name) or name for name in origin.files]
    parts = ["fewlabels report", enumerated(names, 3) if names else ""]
    if origin.made is not None:
        parts.append(f"{origin.made.day} {origin.made:%B %Y}")
    return " · ".join(filter(None, parts))


def _items(report: Mapping[str, Any]) -> str:
    labeled, annotated = report.get("n_labeled"), report.get("n_annotated")
    # Where there are counts alone, nobody should read that nothing is labeled.
    known = labeled or not (annotated or labeled is None or "calibrations" in report)
    parts = [
        count(report["n_items"]),
        f"{count(labeled or 0)} labeled" if known else "",
        f"{count(annotated)} with annotators' labels" if annotated else "",
    ]
    return ", ".join(filter(None, parts))


def provenance(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    """All that somebody needs who wants to make the page again; terms and what they are."""
    origin = _ORIGIN.get()
    level, positive = report.get("confidence_level"), report.get("positive")
    facts = {
        "File" if len(origin.files) < 2 else "Files": ", ".join(origin.files),
        "Items": _items(report),
        "Positive class": "" if positive is None else str(positive),
        "Method": f"{report['method']}, seed {report['seed']}",
        "Intervals": ""
        if level is None
        else percent(level) + (f", {speaks_of(report)}" if report.get("estimand") else ""),
        "Made": "" if origin.made is None else f"{origin.made:%Y-%m-%d %H:%M} UTC",
        "Version": f"fewlabels {report['fewlabels']}",
        "Command": origin.command or "",
    }
    return [(term, said) for term, said in facts.items() if said]
