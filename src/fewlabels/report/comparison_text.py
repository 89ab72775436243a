"""Comparisons as text: a few lines below the estimates, and tables of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fewlabels.report.blocks import Report
from fewlabels.report.comparison_blocks import Grid, gaps, joint_errors, pairs, standings
from fewlabels.report.comparison_words import (
    settling_sentence,
    standing_sentence,
    together_sentences,
)
from fewlabels.report.headline import reference_items
from fewlabels.report.heat_text import heat_table
from fewlabels.report.words import (
    cell_width,
    classes_text,
    clean,
    count,
    fit,
    pad,
    percent,
    short_names,
    wrap,
)

_INDENT = 2
_GAP = 2
_NAMES = (16, 8)
"""Columns of a name: at most, and at least."""

_READING = (
    "P(best): probability of being the best; those with * make a set that holds the best one at "
    "the stated level. rank: expected place. loss: by how much the best is expected to beat it. "
    "alike: who shares a letter cannot be told apart, all pairs looked at together; so says apart. "
    "labels: about how many more would, as likely as not, settle a pair."
)


def comparison_lines(report: Report, width: int) -> Iterator[str]:
    """Which classifier is best, in a few lines below the estimates; nothing if not compared."""
    compared: Mapping[str, Any] = report.get("comparison") or {}
    if compared:
        level = percent(report["confidence_level"])
        yield from [
            "",
            *wrap(f"Which is best? ({level}, all classifiers looked at together)", width),
        ]
        unlabeled = report["n_items"] - report["n_labeled"]
        for found in compared.values():
            said = [standing_sentence(found), settling_sentence(found, unlabeled)]
            yield from wrap(f"- {'; '.join(filter(None, said))}", width, "  ")
    yield from _together(report.get("together"), width)


def _together(found: Mapping[str, Any] | None, width: int) -> Iterator[str]:
    said = together_sentences(found) if found else []
    if said:
        yield from ["", "All together"]
        for sentence in said:
            yield from wrap(f"- {sentence}", width, "  ")


def render_comparison(report: Report, width: int = 80) -> str:
    """A comparison of classifiers as text.

    Parameters
    ----------
    report
        The dictionary of `fewlabels.comparisons.Comparisons.to_dict`; plain JSON values.
    width
        Columns of the terminal; less than 60 counts as 60.
    """
    width = max(width, 60)
    lines = [*_head(report, width)]
    unlabeled = {g["group"]: g["n_items"] - g["n_labeled"] for g in report["groups"]}
    for found in report["comparisons"]:
        lines += ["", *_one(found, unlabeled.get(found["group"], 0), width)]
    for (metric, column), part in _by_column(report["group_gaps"]).items():
        title = f"{metric}: largest minus smallest by {column}"
        lines += ["", *wrap(title, width), *_grid(gaps(part), width)]
    if report["group_gaps"]:
        lines += wrap(
            "The noise of the estimates is taken out of a gap; where its interval begins at 0 no "
            "two groups can be told apart.", width,
        )  # fmt: skip
    for found in report["together"]:
        lines += _set(found, width)
    lines += ["", *wrap(_READING, width)]
    if report["warnings"]:
        lines += ["", "Warnings"]
        for warning in report["warnings"]:
            lines += wrap(f"- {warning}", width, "  ")
    return "\n".join(line.rstrip() for line in lines)


def _head(report: Report, width: int) -> Iterator[str]:
    items = f"{count(report['n_items'])} items, {count(report['n_labeled'])} labeled"
    elsewhere = reference_items(report)
    items += f", {elsewhere}" if elsewhere else ""
    yield from wrap(f"{items}; {classes_text(report)}", width)
    facts = [f"fewlabels {report['fewlabels']}", report["method"], f"seed {report['seed']}"]
    level = percent(report["confidence_level"])
    yield from wrap(f"{', '.join(facts)}; {level} intervals of paired differences", width)


def _one(found: Mapping[str, Any], n_unlabeled: int, width: int) -> Iterator[str]:
    better = "larger" if found["direction"] > 0 else "smaller"
    of = "" if found["group"] is None else f", {clean(found['group'])}"
    title = fit(f"{clean(found['metric'])} ({better} is better){of}", width)
    yield from [title, "=" * cell_width(title)]
    for sentence in (standing_sentence(found), settling_sentence(found, n_unlabeled)):
        if sentence:
            yield from wrap(f"{sentence[:1].upper()}{sentence[1:]}.", width)
    yield from ["", *_grid(standings(found), width)]
    yield from ["", *_grid(pairs(found), width)]


def _grid(grid: Grid, width: int) -> Iterator[str]:
    """A table; names are shortened until it fits, then columns go from the right."""
    headings, rows = list(grid.headings), [list(row) for row in grid.rows]
    while True:
        numbers = [
            max(cell_width(clean(text)) for text in (headings[c], *(row[c] for row in rows)))
            for c in range(grid.n_left, len(headings))
        ]
        left = width - _INDENT - sum(_GAP + n for n in numbers)
        room = (left - _GAP * (grid.n_left - 1)) // grid.n_left
        if room >= _NAMES[1] or len(numbers) <= 1:
            break
        headings.pop()
        for row in rows:
            row.pop()
    room = max(min(room, _NAMES[0] if grid.n_left > 1 else 2 * _NAMES[0]), _NAMES[1])
    every = list(dict.fromkeys(row[c] for row in rows for c in range(grid.n_left)))
    short = short_names(every, room)
    taken = max(cell_width(short[name]) for name in every)
    for row, names in [(headings, None), *((row, short) for row in rows)]:
        cells = [pad(text if names is None else names[text], taken) for text in row[: grid.n_left]]
        cells += [
            pad(clean(text), room, right=True)
            for text, room in zip(row[grid.n_left :], numbers, strict=True)
        ]
        yield " " * _INDENT + (" " * _GAP).join(cells)
    if grid.note:
        yield from wrap(f"{' ' * _INDENT}({grid.note})", width)


def _by_column(
    found: Sequence[Mapping[str, Any]],
) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    out: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for gap in found:
        out.setdefault((gap["metric"], gap["column"]), []).append(gap)
    return out


def _set(found: Mapping[str, Any], width: int) -> Iterator[str]:
    said = together_sentences(found)
    of = "" if found["group"] is None else f", {clean(found['group'])}"
    chart = joint_errors(found)
    if said or chart is not None:
        yield from ["", fit(f"All together{of}", width)]
    for sentence in said:
        yield from wrap(f"- {sentence}", width, "  ")
    if chart is not None and found["group"] is None:
        yield from heat_table(chart, width)
