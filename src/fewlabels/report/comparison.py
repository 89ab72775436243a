"""Comparisons in words, tables, text and pages: who leads, who cannot be told apart."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fewlabels.report.axis import Axis, fit_axis
from fewlabels.report.blocks import Report, Row
from fewlabels.report.diagnostics import Cell, HeatMap
from fewlabels.report.document import Listing, Node, Section
from fewlabels.report.document import sentence as capital
from fewlabels.report.html import render, within_budget
from fewlabels.report.words import (
    NARROWEST,
    NumberFormat,
    about,
    as_text,
    bulleted,
    cell_width,
    classes_text,
    enumerated,
    escape_control,
    fit,
    fitted,
    made_by,
    number_format,
    percent,
    plural,
    probability,
    reference_items,
    warning_lines,
    with_interval,
    wrap,
)

MOST_LABELS = 10_000
"""Numbers of labels above this are not stated."""

_MOST_NAMES = 4
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
MOST_PAIRS = 45
"""With more pairs, only those of neighbours and of the first are shown."""

_READING = (
    "P(best): probability of being the best; the classifiers with * are a set that contains the "
    "best one at the stated level. rank: expected rank. loss: expected distance to the best. "
    "alike: classifiers that share a letter cannot be told apart, with all pairs compared at once; "
    "apart says the same of a pair. labels: about how many more a pair likely needs to decide."
)


def standing_sentence(entry: Mapping[str, Any]) -> str:
    """The leader by a metric, how sure that is, and which others may be the best.

    It never begins with a classifier's name, as a capital letter would change the name.
    """
    aside = entry.get("contradicted") or ()
    first, *others = entry["standings"]
    leader = first["model"]
    if leader in aside:
        return f"by {entry['metric']}, nobody leads: the labels disagree with all estimates"
    if len(aside) == len(others):
        return f"by {entry['metric']}, {leader} is the only one that the labels do not contradict"
    left_out = (
        f"; not ranked, as the labels contradict it: {enumerated(aside, _MOST_NAMES)}"
        if aside
        else ""
    )
    sure = f"P(best) {probability(first['probability_best'])}"
    rivals = [s["model"] for s in others if s["may_be_best"]]
    if not rivals:
        return f"by {entry['metric']}, {leader} is ahead of all others ({sure}){left_out}"
    likelier = max(others, key=lambda s: s["probability_best"] or 0.0)
    if (likelier["probability_best"] or 0.0) >= (first["probability_best"] or 0.0) + 0.005:
        return (
            f"by {entry['metric']}, {leader} has the best estimate ({sure}), but "
            f"{likelier['model']} is more probably the best "
            f"({probability(likelier['probability_best'])}){left_out}"
        )
    but = f"but {enumerated(rivals, _MOST_NAMES)} could still be the best"
    return f"by {entry['metric']}, {leader} leads ({sure}), {but}{left_out}"


def settling_sentence(entry: Mapping[str, Any], n_unlabeled: int) -> str:
    """What would decide between the first two; empty if unknown."""
    second = entry["standings"][1]["model"]
    needed = entry["labels_needed"]
    if needed["status"] == "unknown" or second in (entry.get("contradicted") or ()):
        return ""
    if needed["status"] == "settled":
        return f"compared with {second} alone, its lead is clear"
    if needed["status"] == "tied":
        return f"labels cannot separate it from {second}: they do not differ on these items"
    if needed["more"] > MOST_LABELS:
        return f"deciding between it and {second} needs more than {MOST_LABELS:,} more labels"
    low, high = needed["low"], needed["high"]
    most = f"{about(high):,}" if high <= MOST_LABELS else f"more than {MOST_LABELS:,}"
    more = plural(about(needed["more"]), "more label")
    more += "" if low == high else f" ({about(low):,} to {most})"
    clause = f"deciding between it and {second} likely needs about {more}"
    if needed["more"] > n_unlabeled:
        clause += f", and only {plural(n_unlabeled, 'item is', 'items are')} without a label"
    return clause


def sentences(entry: Mapping[str, Any], n_unlabeled: int) -> tuple[str, ...]:
    """Who leads, and what would settle it where something tells."""
    return tuple(filter(None, (standing_sentence(entry), settling_sentence(entry, n_unlabeled))))


def labels_cell(needed: Mapping[str, Any]) -> str:
    """How many labels more, as a cell of a table says it."""
    if needed["status"] != "open":
        return {"settled": "settled", "tied": "never"}.get(needed["status"], "-")
    more = needed["more"]
    return f"{about(more):,}" if more <= MOST_LABELS else f">{MOST_LABELS:,}"


def letters(entry: Mapping[str, Any]) -> dict[str, str]:
    """The letters of each classifier: who shares one cannot be told apart.

    Examples
    --------
    >>> letters({"alike": [["x", "y"], ["y", "z"]]})
    {'x': 'a', 'y': 'ab', 'z': 'b'}
    """
    out: dict[str, str] = {}
    for place, run in enumerate(entry["alike"]):
        letter = _LETTERS[place % 26] + (str(place // 26 + 1) if place >= 26 else "")
        for model in run:
            out[model] = out.get(model, "") + letter
    return out


def together_sentences(entry: Mapping[str, Any]) -> list[str]:
    """Results of the set as a whole, in words."""
    if entry["all_wrong"]["value"] is None:
        return []
    level = percent(entry["confidence_level"]) if entry["confidence_level"] else ""
    m = len(entry["models"])
    clauses = [
        f"share of items on which {'both' if m == 2 else f'all {m:,}'} are wrong: "
        f"{with_interval(entry['all_wrong'])}"
        + (f" ({level} interval)" if level and entry["all_wrong"]["low"] is not None else ""),
    ]
    best = f"of the best one, {entry['best_model']}: {with_interval(entry['best_single'])}; "
    clauses.append(
        f"accuracy {best if entry['best_model'] else ''}"
        f"of a majority vote: {with_interval(entry['majority'])}; "
        f"of an oracle that picks the right one for each item: {with_interval(entry['oracle'])}"
    )
    voters = entry["effective_voters"]
    if voters["value"] is not None:
        clauses.append(
            f"their errors are correlated: {m:,} count like {voters['value']:.1f} independent ones"
            if voters["value"] < 0.95 * m
            else "their errors are hardly correlated"
        )
    return [*clauses, *entry.get("warnings", ())]


@dataclass(frozen=True)
class Grid:
    """A table: headings and cells; the first `n_left` columns are names, the rest numbers.

    `note` says what is not shown.
    """

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    n_left: int = 1
    note: str = ""

    def lines(self, width: int) -> Iterator[str]:
        """The table as text; names are shortened until it fits, then columns go."""
        sides = "l" * self.n_left + "r"
        yield from fitted([self.headings, *self.rows], sides, width, names=self.n_left)
        if self.note:
            yield from wrap(f"  ({self.note})", width)


def standings(entry: Mapping[str, Any]) -> Grid:
    """A row per classifier, best first."""
    marks = letters(entry)
    shown = entry["standings"]
    write = number_format(n for s in shown for n in (s["value"], s["low"], s["high"]))
    lost = number_format(s["expected_loss"] for s in shown)
    return Grid(
        ("", "value", "P(best)", "rank", "loss", "alike"),
        tuple(
            (
                s["model"],
                with_interval(s, write),
                "contradicted"
                if s["model"] in (entry.get("contradicted") or ())
                else probability(s["probability_best"]) + ("*" if s["may_be_best"] else " "),
                "-" if s["expected_rank"] is None else f"{s['expected_rank']:.1f}",
                "-" if s["expected_loss"] is None else lost(s["expected_loss"]),
                marks.get(s["model"], ""),
            )
            for s in shown
        ),
    )


def _shown_pairs(entry: Mapping[str, Any]) -> tuple[Sequence[Mapping[str, Any]], str]:
    """Pairs in the order of the ranking, and a note if not all are shown."""
    every = entry["pairs"]
    if len(every) <= MOST_PAIRS:
        return every, ""
    ranking: Sequence[str] = entry["ranking"]
    next_to = set(itertools.pairwise(ranking))
    shown = [p for p in every if p["a"] == ranking[0] or (p["a"], p["b"]) in next_to]
    return shown, f"pairs of neighbours and of the first; the JSON has all {len(every)}"


def pairs(entry: Mapping[str, Any]) -> Grid:
    """A row per pair of classifiers, in the order of the ranking."""
    shown, note = _shown_pairs(entry)
    write = _difference_format(shown)
    return Grid(
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


def _difference_format(shown: Sequence[Mapping[str, Any]]) -> NumberFormat:
    return number_format(n for p in shown for n in (p["value"], p["low"], p["high"]))


@dataclass(frozen=True)
class Differences:
    """Intervals of the differences of pairs on one scale, which has 0 on it."""

    rows: tuple[tuple[str, str, Row, str, str, str], ...]
    axis: Axis
    write: NumberFormat
    columns: int
    note: str
    better: str


def differences(entry: Mapping[str, Any]) -> Differences:
    """The pairs as a picture: names, interval, P(better), whether apart, labels needed."""
    shown, note = _shown_pairs(entry)
    write = _difference_format(shown)
    rows = tuple(
        (
            p["a"], p["b"], Row(p["a"], p["value"], p["low"], p["high"], "ok"),
            probability(p["probability"]), "yes" if p["separated"] else "no",
            labels_cell(p["labels"]),
        )
        for p in shown
    )  # fmt: skip
    axis = fit_axis([0.0, *(n for _, _, row, *_ in rows for n in row.numbers)], (None, None), 4)
    columns = max((len(with_interval(p, write)) for p in shown), default=10)
    better = "right" if entry["direction"] > 0 else "left"
    return Differences(rows, axis, write, columns, note, better)


def gaps(entries: Sequence[Mapping[str, Any]]) -> Grid:
    """A row per classifier: its largest minus its smallest value over the groups of a column."""
    write = number_format(n for g in entries for n in (g["value"], g["low"], g["high"]))
    return Grid(
        ("", "gap", "largest", "smallest"),
        tuple(
            (
                g["model"],
                with_interval(g, write),
                g["largest"] or "-",
                g["smallest"] or "-",
            )
            for g in entries
        ),
    )


def joint_errors(entry: Mapping[str, Any]) -> HeatMap | None:
    """How often two classifiers are wrong on the same item; None without pairs."""
    return _matrix(entry, "both_wrong", "Both wrong")


def correlations(entry: Mapping[str, Any]) -> HeatMap | None:
    """Correlation of the errors of two classifiers; None without pairs."""
    return _matrix(entry, "correlation", "Correlation of errors", top=1.0)


def _matrix(
    entry: Mapping[str, Any], kind: str, caption: str, top: float | None = None
) -> HeatMap | None:
    """Pairs as a table, coloured up to `top`; None: the largest number."""
    by_pair = {(p["a"], p["b"]): p for p in entry["pairs"]}
    shown = list(dict.fromkeys(name for pair in by_pair for name in pair))
    defined = [p[kind]["value"] for p in entry["pairs"] if p[kind]["value"] is not None]
    if not defined:
        return None
    write, most = number_format(defined), top or max(defined) or 1.0

    def cell(i: int, j: int) -> Cell:
        a, b = shown[i], shown[j]
        pair = by_pair.get((a, b)) or by_pair.get((b, a))
        if pair is None:
            return Cell("", None, a)
        value = pair[kind]["value"]
        if value is None:
            return Cell("-", None, f"{a} and {b}: not known")
        text = "; ".join(
            f"{what} {with_interval(pair[name])}"
            for name, what in (
                ("both_wrong", "both wrong"), ("same_wrong", "with the same class"),
                ("disagreement", "disagree"), ("correlation", "correlation"),
                ("excess", "times as often as if independent"),
            )
        )  # fmt: skip
        return Cell(write(value), min(max(value / most, 0.0), 1.0), f"{a} and {b}: {text}")

    ends = ("0", number_format([most])(most) if top is None else f"{top:g}")
    m = len(entry["models"])
    notes = [f"the first {len(shown)} of {m} classifiers"] if len(shown) < m else ()
    corner = ("classifier", "classifier")
    return HeatMap.from_table(caption, corner, shown, shown, cell, ends, notes)


def comparison_lines(report: Report, width: int) -> Iterator[str]:
    """Which classifier is best, in a few lines below the estimates; nothing if not compared."""
    compared: Mapping[str, Any] = report.get("comparison") or {}
    if compared:
        level = percent(report["confidence_level"])
        yield from [
            "",
            *wrap(f"Which is best? ({level}, all classifiers compared at once)", width),
        ]
        unlabeled = report["n_items"] - report["n_labeled"]
        for entry in compared.values():
            yield from wrap(f"- {'; '.join(sentences(entry, unlabeled))}", width, "  ")
    together = report.get("together")
    yield from bulleted(
        "All classifiers together", together_sentences(together) if together else (), width
    )


def render_comparison(report: Report, width: int = 80) -> str:
    """A comparison of classifiers as text.

    `report` is the dictionary of `fewlabels.questions.compare.Comparisons.to_dict`.
    """
    width = max(width, NARROWEST)
    items = f"{report['n_items']:,} items, {report['n_labeled']:,} labeled"
    facts = ", ".join(filter(None, (items, reference_items(report))))
    intervals = f"{percent(report['confidence_level'])} intervals of paired differences"
    lines = [
        *wrap(f"{facts}; {classes_text(report)}", width),
        *wrap(f"{made_by(report)}; {intervals}", width),
    ]
    unlabeled = {g["group"]: g["n_items"] - g["n_labeled"] for g in report["groups"]}
    for entry in report["comparisons"]:
        group = entry["group"]
        better = "larger" if entry["direction"] > 0 else "smaller"
        suffix = "" if group is None else f", {escape_control(group)}"
        title = fit(f"{escape_control(entry['metric'])} ({better} is better){suffix}", width)
        lines += ["", title, "=" * cell_width(title)]
        for sentence in sentences(entry, unlabeled.get(group, 0)):
            lines += wrap(f"{sentence[:1].upper()}{sentence[1:]}.", width)
        lines += ["", *standings(entry).lines(width), "", *pairs(entry).lines(width)]
    for (metric, column), entries in by_column(report["group_gaps"]).items():
        title = f"{metric}: largest minus smallest by {column}"
        lines += ["", *wrap(title, width), *gaps(entries).lines(width)]
    if report["group_gaps"]:
        lines += wrap(
            "A gap is without what chance adds; if its interval begins at 0, no two groups can be "
            "told apart.", width,
        )  # fmt: skip
    for entry in report["together"]:
        group, chart = entry["group"], joint_errors(entry)
        title = fit(
            "All classifiers together" + ("" if group is None else f", {escape_control(group)}"),
            width,
        )
        lines += [*bulleted(title, together_sentences(entry), width)] or ["", title]
        if chart is not None and group is None:
            lines += chart.lines(width)
    lines += ["", *wrap(_READING, width)]
    return as_text([*lines, *warning_lines(report, width)])


def by_column(
    entries: Sequence[Mapping[str, Any]],
) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    """Gaps by metric and by the column whose groups they are between."""
    out: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for gap in entries:
        out.setdefault((gap["metric"], gap["column"]), []).append(gap)
    return out


def compared(entry: Mapping[str, Any], n_unlabeled: int) -> dict[str, Any]:
    """What a page shows of the comparison by one metric in one group."""
    return {
        "metric": entry["metric"],
        "group": entry["group"],
        "sentences": sentences(entry, n_unlabeled),
        "differences": differences(entry),
    }


def together_view(entry: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a page shows of the set as a whole, in one group; None where it is not known."""
    clauses = together_sentences(entry)
    maps = [chart for chart in (joint_errors(entry), correlations(entry)) if chart is not None]
    view = {"group": entry["group"], "sentences": clauses, "maps": maps}
    return view if clauses or maps else None


def render_comparison_html(report: Report, *, fragment: bool = False) -> str:
    """The comparison as a page that needs no other file and no network.

    `report` is the dictionary of `fewlabels.questions.compare.Comparisons.to_dict`.
    """
    unlabeled = {g["group"]: g["n_items"] - g["n_labeled"] for g in report["groups"]}
    comparisons = [
        compared(entry, unlabeled.get(entry["group"], 0)) | {"standings": standings(entry)}
        for entry in report["comparisons"]
    ]
    sets = [view for entry in report["together"] if (view := together_view(entry))]

    def page(level: int) -> str:
        # Of groups the sentences are kept, and of very many classifiers those of all items too.
        def bare(group: str | None) -> bool:
            return level > (1 if group is None else 0)

        return render(
            "compare.html.j2",
            ("heat_map.css",) if fragment else None,
            report=report,
            comparisons=[
                entry | {"bare": level > 1 and entry["group"] is not None} for entry in comparisons
            ],
            gaps={key: gaps(view) for key, view in by_column(report["group_gaps"]).items()},
            sets=[view | {"maps": []} if bare(view["group"]) else view for view in sets],
            left_out=level > 0,
        )

    return within_budget(page, 3)


# --- FOR THE MERGE: the parts of the estimates' page; replaced by what the comparison's has -------


def parts(report: Report) -> list[Node]:
    """Which classifier is best, and what all do together; nothing if not compared."""
    out: list[Node] = []
    unlabeled = report["n_items"] - report["n_labeled"]
    every: Mapping[str, Any] = report.get("comparison") or {}
    if every:
        points = [capital("; ".join(sentences(entry, unlabeled))) for entry in every.values()]
        level = f"{percent(report['confidence_level'])}, all classifiers compared at once"
        out.append(Section("Which is best?", [Listing(points)], aside=level))
    together = report.get("together")
    clauses = together_sentences(together) if together else ()
    if clauses:
        points = [*map(capital, clauses)]
        out.append(Section("All classifiers together", [Listing(points)]))
    return out
