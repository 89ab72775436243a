"""Comparisons laid out as tables: places in the ranking, pairs, gaps, joint errors."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fewlabels.report.comparison_words import labels_cell, letters, rate
from fewlabels.report.heat_map import Cell, HeatMap
from fewlabels.report.words import number_format, probability

MOST_PAIRS = 45
"""Of more pairs than these only those of neighbours and of the first are shown."""


@dataclass(frozen=True)
class Grid:
    """A table of text: headings and cells; the first `n_left` columns are names, the rest numbers.

    `note` says what is not shown.
    """

    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    n_left: int = 1
    note: str = ""


def standings(found: Mapping[str, Any]) -> Grid:
    """A row per classifier, best first."""
    marks = letters(found)
    shown = found["standings"]
    write = number_format(n for s in shown for n in (s["value"], s["low"], s["high"]))
    lost = number_format(s["expected_loss"] for s in shown)
    return Grid(
        "Ranking",
        ("", "value", "P(best)", "rank", "loss", "alike"),
        tuple(
            (
                s["model"],
                write(s["value"])
                + ("" if s["low"] is None else f" [{write(s['low'])}, {write(s['high'])}]"),
                "contradicted"
                if s["model"] in (found.get("contradicted") or ())
                else probability(s["probability_best"]) + ("*" if s["may_be_best"] else " "),
                "-" if s["expected_rank"] is None else f"{s['expected_rank']:.1f}",
                "-" if s["expected_loss"] is None else lost(s["expected_loss"]),
                marks.get(s["model"], ""),
            )
            for s in shown
        ),
    )


def pairs(found: Mapping[str, Any]) -> Grid:
    """A row per pair of classifiers, in the order of the ranking."""
    every = found["pairs"]
    shown, note = every, ""
    if len(every) > MOST_PAIRS:
        ranking: Sequence[str] = found["ranking"]
        next_to = set(itertools.pairwise(ranking))
        shown = [p for p in every if p["a"] == ranking[0] or (p["a"], p["b"]) in next_to]
        note = f"pairs of neighbours and of the first; the JSON has all {len(every)}"
    write = number_format(n for p in shown for n in (p["value"], p["low"], p["high"]))
    return Grid(
        "Differences",
        ("", "", "difference", "P(better)", "apart", "labels"),
        tuple(
            (
                p["a"],
                p["b"],
                f"{write(p['value'])} [{write(p['low'])}, {write(p['high'])}]",
                probability(p["probability"]),
                "yes" if p["separated"] else "no",
                labels_cell(p["labels"]),
            )
            for p in shown
        ),
        2,
        note,
    )


def gaps(found: Sequence[Mapping[str, Any]]) -> Grid:
    """A row per classifier: its largest minus its smallest value over the groups of a column."""
    write = number_format(n for g in found for n in (g["value"], g["low"], g["high"]))
    return Grid(
        "Gaps between groups",
        ("", "gap", "largest", "smallest"),
        tuple(
            (
                g["model"],
                write(None)
                if g["value"] is None
                else f"{write(g['value'])} [{write(g['low'])}, {write(g['high'])}]",
                _value_of(g["largest"]),
                _value_of(g["smallest"]),
            )
            for g in found
        ),
    )


def _value_of(group: str | None) -> str:
    return "-" if group is None else group


def joint_errors(found: Mapping[str, Any]) -> HeatMap | None:
    """How often two classifiers are wrong on the same item; None without pairs."""
    return _matrix(found, "both_wrong", "Both wrong", 1.0)


def correlations(found: Mapping[str, Any]) -> HeatMap | None:
    """Correlation of the errors of two classifiers; None without pairs."""
    return _matrix(found, "correlation", "Correlation of errors", 0.0)


def _matrix(found: Mapping[str, Any], kind: str, caption: str, least: float) -> HeatMap | None:
    of = {(p["a"], p["b"]): p for p in found["pairs"]}
    shown = list(dict.fromkeys(name for pair in of for name in pair))
    known = [p[kind]["value"] for p in found["pairs"] if p[kind]["value"] is not None]
    if not known:
        return None
    # Rates are coloured up to the largest; correlations up to 1.
    top = (max(known) or 1.0) if least else 1.0
    write = number_format(known)

    def cell(a: str, b: str) -> Cell:
        pair = of.get((a, b)) or of.get((b, a))
        if pair is None:
            return Cell("", None, a)
        value = pair[kind]["value"]
        if value is None:
            return Cell("-", None, f"{a} and {b}: not known")
        told = "; ".join(
            f"{what} {rate(pair[name])}"
            for name, what in (
                ("both_wrong", "both wrong"), ("same_wrong", "with the same class"),
                ("disagreement", "disagree"), ("correlation", "correlation"),
                ("excess", "times as often as if independent"),
            )
        )  # fmt: skip
        return Cell(write(value), min(max(value / top, 0.0), 1.0), f"{a} and {b}: {told}")

    return HeatMap(
        caption,
        ("classifier", "classifier"),
        tuple(shown),
        tuple((a, tuple(cell(a, b) for b in shown)) for a in shown),
        ("0", number_format([top])(top) if least else "1"),
        (f"the first {len(shown)} of {len(found['models'])} classifiers",)
        if len(shown) < len(found["models"])
        else (),
    )
