"""Warnings as a page lists them: by their kind, the gravest first, with what to do about each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fewlabels.errors import Status, gravest_first

ADVICE = {
    Status.FEW_LABELS: "label more of these items; `fewlabels label-next` draws those that tell "
    "most",
    Status.ASSUMPTION: "label some items drawn at random: they test it",
    Status.NOT_CONVERGED: "do not rely on these numbers; try another method (--method)",
    Status.UNDEFINED: "label items of every class, or choose another metric (--metrics)",
}
"""What to do, by how a warning begins; the other kinds say it themselves."""

_KINDS = {status.value for status in Status} | {"reversed", "unrelated", "seen", "shift"}


class Notes(NamedTuple):
    """Warnings of one kind: how they begin, which they then need not say, and what to do."""

    kind: str
    advice: str
    texts: Sequence[str]


def weighed(warnings: Iterable[str]) -> list[Notes]:
    """Warnings by kind, the gravest first; kind "" is good to know, and decides nothing.

    Examples
    --------
    >>> [(note.kind, note.texts) for note in weighed(["a note", "few-labels: only 3 labels"])]
    [('few-labels', ['only 3 labels']), ('', ['a note'])]
    """
    found: dict[str, list[str]] = {}
    for said in gravest_first(warnings):
        kind, colon, rest = said.partition(": ")
        known = bool(colon) and kind in _KINDS
        found.setdefault(kind if known else "", []).append(rest if known else said)
    # What decides nothing comes last, whatever came first.
    order = sorted(found, key=lambda kind: not kind)
    return [Notes(kind, ADVICE.get(kind, ""), found[kind]) for kind in order]  # type: ignore[call-overload]
