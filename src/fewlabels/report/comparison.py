"""Comparisons in words, tables, text and pages: who leads, who cannot be told apart."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fewlabels.report.blocks import Report
from fewlabels.report.headline import reference_items
from fewlabels.report.heat_map import Cell, HeatMap, heat_table
from fewlabels.report.html import render
from fewlabels.report.words import (
    NARROWEST,
    aligned,
    as_text,
    bulleted,
    cell_width,
    classes_text,
    clean,
    count,
    enumerated,
    fit,
    made_by,
    number_format,
    pad,
    percent,
    plural,
    probability,
    short_names,
    warning_lines,
    with_interval,
    wrap,
)

MOST_LABELS = 10_000
"""More labels than these are not counted."""

_MOST_NAMES = 4
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
MOST_PAIRS = 45
"""Of more pairs than these only those of neighbours and of the first are shown."""

_INDENT = 2
_GAP = 2
_LEAST, _MOST = 8, 16
"""Columns of a name: at least, and at most where there are two."""

_READING = (
    "P(best): probability of being the best; those with * make a set that holds the best one at "
    "the stated level. rank: expected place. loss: by how much the best is expected to beat it. "
    "alike: who shares a letter cannot be told apart, all pairs looked at together; so says apart. "
    "labels: about how many more would, as likely as not, settle a pair."
)


def standing_sentence(found: Mapping[str, Any]) -> str:
    """By which metric who leads, how sure that is, and who may be the best as well.

    It never begins with a classifier's name, for who writes it large would change the name.
    """
    aside = found.get("contradicted") or ()
    first, *others = found["standings"]
    leader = first["model"]
    if leader in aside:
        return f"by {found['metric']}, no one leads: the labels contradict all estimates"
    if len(aside) == len(others):
        return f"by {found['metric']}, {leader} is the only one that the labels do not contradict"
    left_out = (
        f"; not ranked, as the labels contradict it: {enumerated(aside, _MOST_NAMES)}"
        if aside
        else ""
    )
    sure = f"P(best) {probability(first['probability_best'])}"
    rivals = [s["model"] for s in others if s["may_be_best"]]
    if not rivals:
        return f"by {found['metric']}, {leader} is ahead of all others ({sure}){left_out}"
    but = f"but {enumerated(rivals, _MOST_NAMES)} may be the best as well"
    return f"by {found['metric']}, {leader} leads ({sure}), {but}{left_out}"


def settling_sentence(found: Mapping[str, Any], n_unlabeled: int) -> str:
    """What would settle which of the first two is better; empty where nothing tells."""
    second = found["standings"][1]["model"]
    needed = found["labels_needed"]
    if needed["status"] == "unknown" or second in (found.get("contradicted") or ()):
        return ""
    if needed["status"] == "settled":
        return f"its lead over {second}, taken alone, is settled"
    if needed["status"] == "tied":
        return f"no label tells it from {second}: they do not differ on these items"
    if needed["more"] > MOST_LABELS:
        return (
            f"more than {count(MOST_LABELS)} more labels are needed to settle it against {second}"
        )
    said = f"about {labels_range(needed)} would as likely as not settle it against {second}"
    if needed["more"] > n_unlabeled:
        said += f", which takes more items than the {count(n_unlabeled)} without a label"
    return said


def sentences(found: Mapping[str, Any], n_unlabeled: int) -> tuple[str, ...]:
    """Who leads, and what would settle it where something tells."""
    said = (standing_sentence(found), settling_sentence(found, n_unlabeled))
    return tuple(filter(None, said))


def labels_range(needed: Mapping[str, Any]) -> str:
    """A number of labels, and between what it lies."""
    high = needed["high"]
    most = count(high) if high <= MOST_LABELS else f"more than {count(MOST_LABELS)}"
    between = "" if needed["low"] == high else f" ({count(needed['low'])} to {most})"
    return f"{plural(needed['more'], 'more label')}{between}"


def labels_cell(needed: Mapping[str, Any]) -> str:
    """How many labels more, as a cell of a table says it."""
    if needed["status"] != "open":
        return {"settled": "settled", "tied": "never"}.get(needed["status"], "-")
    more = needed["more"]
    return count(more) if more <= MOST_LABELS else f">{count(MOST_LABELS)}"


def letters(found: Mapping[str, Any]) -> dict[str, str]:
    """The letters of each classifier: who shares one cannot be told apart.

    Examples
    --------
    >>> letters({"alike": [["x", "y"], ["y", "z"]]})
    {'x': 'a', 'y': 'ab', 'z': 'b'}
    """
    out: dict[str, str] = {}
    for place, run in enumerate(found["alike"]):
        letter = _LETTERS[place % 26] + (str(place // 26 + 1) if place >= 26 else "")
        for model in run:
            out[model] = out.get(model, "") + letter
    return out


def together_sentences(found: Mapping[str, Any]) -> list[str]:
    """What the set does as a whole, in words."""
    if found["all_wrong"]["value"] is None:
        return []
    level = percent(found["confidence_level"]) if found["confidence_level"] else ""
    m = len(found["models"])
    said = [
        f"{'both' if m == 2 else f'all {count(m)}'} are wrong together on "
        f"{rate(found['all_wrong'])} of the items"
        + (f" ({level} interval)" if level and found["all_wrong"]["low"] is not None else ""),
        f"accuracy of the best one, {found['best_model']}: {rate(found['best_single'])}; "
        f"of a majority vote: {rate(found['majority'])}; "
        f"of choosing the right one for each item: {rate(found['oracle'])}",
    ]
    voters = found["effective_voters"]
    if voters["value"] is not None:
        said.append(
            f"their errors are correlated as if {voters['value']:.1f} of {count(m)} voted "
            "independently"
            if voters["value"] < m - 0.05
            else "their errors are not correlated"
        )
    return [*said, *found.get("warnings", ())]


def rate(value: Mapping[str, Any]) -> str:
    """A rate with its interval."""
    return with_interval(value, number_format([value["value"], value["low"], value["high"]]))


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
                with_interval(s, write),
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
                with_interval(p, write),
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
                with_interval(g, write),
                g["largest"] or "-",
                g["smallest"] or "-",
            )
            for g in found
        ),
    )


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

    def cell(i: int, j: int) -> Cell:
        a, b = shown[i], shown[j]
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

    ends = ("0", number_format([top])(top) if least else "1")
    m = len(found["models"])
    notes = [f"the first {len(shown)} of {m} classifiers"] if len(shown) < m else ()
    corner = ("classifier", "classifier")
    return HeatMap.of(caption, corner, shown, shown, cell, ends, notes)


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
            yield from wrap(f"- {'; '.join(sentences(found, unlabeled))}", width, "  ")
    together = report.get("together")
    yield from bulleted("All together", together_sentences(together) if together else (), width)


def render_comparison(report: Report, width: int = 80) -> str:
    """A comparison of classifiers as text.

    `report` is the dictionary of `fewlabels.questions.compare.Comparisons.to_dict`.
    """
    width = max(width, NARROWEST)
    lines = [*_head(report, width)]
    unlabeled = {g["group"]: g["n_items"] - g["n_labeled"] for g in report["groups"]}
    for found in report["comparisons"]:
        lines += ["", *_one(found, unlabeled.get(found["group"], 0), width)]
    for (metric, column), part in by_column(report["group_gaps"]).items():
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
    return as_text([*lines, *warning_lines(report, width)])


def _head(report: Report, width: int) -> Iterator[str]:
    items = f"{count(report['n_items'])} items, {count(report['n_labeled'])} labeled"
    elsewhere = reference_items(report)
    items += f", {elsewhere}" if elsewhere else ""
    yield from wrap(f"{items}; {classes_text(report)}", width)
    level = percent(report["confidence_level"])
    yield from wrap(f"{made_by(report)}; {level} intervals of paired differences", width)


def _one(found: Mapping[str, Any], n_unlabeled: int, width: int) -> Iterator[str]:
    better = "larger" if found["direction"] > 0 else "smaller"
    of = _of_group(found)
    title = fit(f"{clean(found['metric'])} ({better} is better){of}", width)
    yield from [title, "=" * cell_width(title)]
    for sentence in sentences(found, n_unlabeled):
        yield from wrap(f"{sentence[:1].upper()}{sentence[1:]}.", width)
    yield from ["", *_grid(standings(found), width)]
    yield from ["", *_grid(pairs(found), width)]


def _of_group(found: Mapping[str, Any]) -> str:
    return "" if found["group"] is None else f", {clean(found['group'])}"


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
        if room >= _LEAST or len(numbers) <= 1:
            break
        headings.pop()
        for row in rows:
            row.pop()
    room = max(min(room, _MOST if grid.n_left > 1 else 2 * _MOST), _LEAST)
    every = list(dict.fromkeys(row[c] for row in rows for c in range(grid.n_left)))
    short = short_names(every, room)
    taken = max(cell_width(short[name]) for name in every)
    table = [
        [*(pad(names.get(text, text), taken) for text in row[: grid.n_left]),
         *map(clean, row[grid.n_left :])]
        for row, names in [(headings, {}), *((row, short) for row in rows)]
    ]  # fmt: skip
    yield from aligned(table, [c >= grid.n_left for c in range(len(headings))])
    if grid.note:
        yield from wrap(f"{' ' * _INDENT}({grid.note})", width)


def by_column(
    found: Sequence[Mapping[str, Any]],
) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    """Gaps by metric and by the column whose groups they are between."""
    out: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for gap in found:
        out.setdefault((gap["metric"], gap["column"]), []).append(gap)
    return out


def _set(found: Mapping[str, Any], width: int) -> Iterator[str]:
    said, chart = together_sentences(found), joint_errors(found)
    title = fit(f"All together{_of_group(found)}", width)
    yield from bulleted(title, said, width) if said or chart is None else ["", title]
    if chart is not None and found["group"] is None:
        yield from heat_table(chart, width)


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
    grid = standings(found) if with_standings else None
    said = sentences(found, n_unlabeled)
    return Compared(found["metric"], found["group"], said, grid, pairs(found))


def _whole(found: Mapping[str, Any]) -> Whole | None:
    said = tuple(together_sentences(found))
    charts = tuple(c for c in (joint_errors(found), correlations(found)) if c is not None)
    return Whole(found["group"], said, charts) if said or charts else None


def render_comparison_html(report: Report, *, fragment: bool = False) -> str:
    """The comparison as a page that needs no other file, no network and no script.

    `report` is the dictionary of `fewlabels.questions.compare.Comparisons.to_dict`.
    """
    unlabeled = {g["group"]: g["n_items"] - g["n_labeled"] for g in report["groups"]}
    shown = [
        _compared(found, unlabeled.get(found["group"], 0), with_standings=True)
        for found in report["comparisons"]
    ]
    return render(
        "compare.html.j2",
        ("heat_map.css",) if fragment else None,
        report=report,
        comparisons=shown,
        gaps=[
            Gaps(metric, column, gaps(part))
            for (metric, column), part in by_column(report["group_gaps"]).items()
        ],
        sets=[part for found in report["together"] if (part := _whole(found))],
    )
