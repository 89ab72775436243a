"""A comparison of classifiers as a page of HTML, and its part of the report of the estimates."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fewlabels.report.blocks import Report
from fewlabels.report.comparison_blocks import Grid, correlations, gaps, joint_errors, pairs
from fewlabels.report.comparison_blocks import standings as standings_grid
from fewlabels.report.comparison_words import (
    settling_sentence,
    standing_sentence,
    together_sentences,
)
from fewlabels.report.heat_map import HeatMap
from fewlabels.report.page_file import save_page


@dataclass(frozen=True)
class Compared:
    """What the page shows of one metric in one group."""

    metric: str
    group: str | None
    sentences: tuple[str, ...]
    standings: Grid | None
    pairs: Grid


@dataclass(frozen=True)
class Gaps:
    """Gaps of one metric between the groups of one column."""

    metric: str
    column: str
    grid: Grid


@dataclass(frozen=True)
class Whole:
    """What the page shows of the set as a whole, in one group."""

    group: str | None
    sentences: tuple[str, ...]
    maps: tuple[HeatMap, ...]


def compared(report: Report) -> tuple[Compared, ...]:
    """The comparisons of a report of estimates, by metric; none where there are none."""
    found: Mapping[str, Any] = report.get("comparison") or {}
    unlabeled = report["n_items"] - report["n_labeled"]
    return tuple(_compared(part, unlabeled, with_standings=False) for part in found.values())


def whole(report: Report) -> Whole | None:
    """The set as a whole, in a report of estimates; None where it is not known."""
    found = report.get("together")
    return _whole(found) if found else None


def _compared(found: Mapping[str, Any], n_unlabeled: int, *, with_standings: bool) -> Compared:
    said = (standing_sentence(found), settling_sentence(found, n_unlabeled))
    grid = standings_grid(found) if with_standings else None
    sentences = tuple(sentence for sentence in said if sentence)
    return Compared(found["metric"], found["group"], sentences, grid, pairs(found))


def _whole(found: Mapping[str, Any]) -> Whole | None:
    said = tuple(together_sentences(found))
    charts = tuple(c for c in (joint_errors(found), correlations(found)) if c is not None)
    return Whole(found["group"], said, charts) if said or charts else None


def render_comparison_html(report: Report, *, fragment: bool = False) -> str:
    """The comparison as a page that needs no other file, no network and no script.

    Parameters
    ----------
    report
        The dictionary of `fewlabels.comparisons.Comparisons.to_dict`; plain JSON values.
    fragment
        Whether to make a part of another page instead; see `fragment.render_fragment`.
    """
    # Late: the page of the estimates shows comparisons, so that its module imports this one.
    from fewlabels.report.html import FRAGMENT, environment

    unlabeled = {g["group"]: g["n_items"] - g["n_labeled"] for g in report["groups"]}
    shown = [
        _compared(found, unlabeled.get(found["group"], 0), with_standings=True)
        for found in report["comparisons"]
    ]
    return (
        environment()
        .get_template("compare.html.j2")
        .render(
            report=report,
            comparisons=shown,
            gaps=_gaps(report["group_gaps"]),
            sets=[part for found in report["together"] if (part := _whole(found))],
            **({"frame": FRAGMENT, "sheets": ("heat_map.css",)} if fragment else {}),
        )
    )


def _gaps(found: Sequence[Mapping[str, Any]]) -> list[Gaps]:
    parts: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for gap in found:
        parts.setdefault((gap["metric"], gap["column"]), []).append(gap)
    return [Gaps(metric, column, gaps(part)) for (metric, column), part in parts.items()]


def save_comparison_html(report: Report, path: str | os.PathLike[str]) -> None:
    """Write the page whole or not at all.

    Raises
    ------
    InputError
        If the path cannot be written.
    """
    save_page(render_comparison_html(report), path)
