"""Which classifier is best, and how far that is known: what the first paragraph says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fewlabels.report.blocks import Block, Row

Certainty = Literal[
    "alone", "unordered", "contradicted", "left", "unranked", "clear", "likely", "leaning", "open"
]

_WORDS: tuple[tuple[float, Certainty], ...] = ((0.95, "clear"), (0.8, "likely"), (0.5, "leaning"))


@dataclass(frozen=True)
class Verdict:
    """The classifier with the best value by one metric, and how sure it is that it is the best.

    `certainty` is "alone" for a single classifier, "unordered" where no direction is better,
    "contradicted" where the labels speak against all values, so that none is called the best, and
    "left" where they do against all but one; "unranked" where nothing is known of the probability
    of being best; else it grades that probability. `rivals` are the others that may well be the
    best; in an unranked verdict those whose interval overlaps with the leader's. `contradicted` are
    those that are not ranked.
    """

    block: Block
    leader: Row
    certainty: Certainty
    rivals: tuple[Row, ...]
    contradicted: tuple[Row, ...] = ()

    @property
    def n_ranked(self) -> int:
        """How many classifiers have a value that the labels do not contradict."""
        return sum(row.ranks for row in self.block.rows)


def verdict(block: Block) -> Verdict | None:
    """The verdict by the block's metric; None where no classifier has a value."""
    ranked = [row for row in block.ranked() if row.value is not None]
    if not ranked:
        return None
    leader, others = ranked[0], ranked[1:]
    certainty = _certainty(block, leader, others)
    aside = () if certainty in ("alone", "unordered") else [row for row in ranked if not row.ranks]
    others = [row for row in others if row.ranks]
    if certainty == "unranked":
        rivals = [row for row in others if _overlap(leader, row)]
    else:
        rivals = [row for row in others if (row.best or 0) >= 0.1]
        rivals.sort(key=lambda row: -(row.best or 0))
    return Verdict(block, leader, certainty, tuple(rivals), tuple(aside))


def _certainty(block: Block, leader: Row, others: Sequence[Row]) -> Certainty:
    if not others:
        return "alone"
    if not block.direction:
        return "unordered"
    if not leader.ranks:
        return "contradicted"
    if not any(row.ranks for row in others):
        return "left"
    if leader.best is None:
        return "unranked"
    return next((word for least, word in _WORDS if leader.best >= least), "open")


def _overlap(a: Row, b: Row) -> bool:
    if a.low is None or a.high is None or b.low is None or b.high is None:
        return True
    return a.low <= b.high and b.low <= a.high
