"""Comparisons of classifiers: who leads, who differ significantly, how they fail together."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from fewlabels.report.axis import fit_axis
from fewlabels.report.blocks import CONTRADICTED, Block, Report, Row
from fewlabels.report.diagnostics import Cell, HeatMap
from fewlabels.report.document import (
    Document,
    Drawing,
    Fold,
    Forest,
    Group,
    Later,
    Listing,
    Node,
    Para,
    Section,
    Table,
    Terms,
    name,
    page_only,
    sentence,
)
from fewlabels.report.words import (
    about,
    classes_text,
    enumerated,
    made_by,
    number_format,
    percent,
    plural,
    probability,
    reference_items,
    with_interval,
)

LEVELS = 3
"""Maps of groups go first, then all maps and the tables of groups."""

MOST_LABELS = 10_000
"""Numbers of labels above this are not stated."""

_MOST_NAMES = 4
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
MOST_PAIRS = 45
"""With more pairs, only those of neighbours and of the first are shown."""

_OF_PAIRS = {
    "Difference": "The first classifier's metric minus the second's, on the same items and labels. "
    "What both have in common cancels, so this interval is narrower than those of the two suggest.",
    "P(better)": "The probability that the first is truly better.",
    "Significant": "Whether the two differ when all pairs are looked at together. With the stated "
    "probability no pair is said to differ wrongly.",
    "Labels to decide": "About how many more labels decide which of the two is better, judging by "
    "the difference seen so far; the chance is then one half. In brackets: fewer if the unlabeled "
    "items go on helping as they do now; with the larger number the chance is two in three.",
}
_OF_TWO = {
    "both_wrong": "both wrong", "same_wrong": "with the same class", "disagreement": "disagree",
    "correlation": "correlation", "excess": "times as often as if independent",
}  # fmt: skip
_MAPS = {"both_wrong": ("Both wrong", None), "correlation": ("Correlation of errors", 1.0)}
"""What is shown of every two: its caption, and the strongest colour (None: the largest number)."""

_TERMS = {
    "P(best)": "The probability of being the best of all; those with * are a set that contains the "
    "best one at the stated level.",
    "Shared letters": "Classifiers that share a letter do not differ significantly, all pairs "
    "compared at once.",
    "Expected rank, behind the best": "The mean rank, and how far it is behind the best one on "
    "average, in the metric's units.",
    **_OF_PAIRS,
}


def standing_sentence(entry: Mapping[str, Any]) -> str:
    """The leader by a metric, how sure that is, and which others may be the best.

    It never begins with a classifier's name, as a capital letter would change the name.
    """
    aside = entry.get("contradicted") or ()
    first, *others = entry["standings"]
    leader = name(first["model"])
    if first["model"] in aside:
        return f"by {entry['metric']}, nobody leads: the labels disagree with all estimates"
    if len(aside) == len(others):
        return f"by {entry['metric']}, {leader} is the only one that the labels do not contradict"
    left_out = (
        f"; not ranked, as the labels contradict it: {enumerated([*map(name, aside)], _MOST_NAMES)}"
        if aside
        else ""
    )
    sure = f"P(best) {probability(first['probability_best'])}"
    rivals = [name(s["model"]) for s in others if s["may_be_best"]]
    if not rivals:
        return f"by {entry['metric']}, {leader} is ahead of all others ({sure}){left_out}"
    likelier = max(others, key=lambda s: s["probability_best"] or 0.0)
    if (likelier["probability_best"] or 0.0) >= (first["probability_best"] or 0.0) + 0.005:
        return (
            f"by {entry['metric']}, {leader} has the best estimate ({sure}), but "
            f"{name(likelier['model'])} is more probably the best "
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
    second = name(second)
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


def _said(entry: Mapping[str, Any], n_unlabeled: int) -> list[str]:
    """Who leads, and what would settle it where something tells."""
    phrases = (standing_sentence(entry), settling_sentence(entry, n_unlabeled))
    return [sentence(phrase) for phrase in phrases if phrase]


def labels_cell(needed: Mapping[str, Any]) -> str:
    """How many labels more, as a cell of a table says it."""
    if needed["status"] != "open":
        return {"settled": "settled", "tied": "never"}.get(needed["status"], "-")
    more = needed["more"]
    return f"{about(more):,}" if more <= MOST_LABELS else f">{MOST_LABELS:,}"


def letters(entry: Mapping[str, Any]) -> dict[str, str]:
    """The letters of each classifier: who share one do not differ significantly.

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
    m, best = len(entry["models"]), entry["best_model"]
    clauses = [
        f"share of items on which {'both' if m == 2 else f'all {m:,}'} are wrong: "
        f"{with_interval(entry['all_wrong'])}"
        + (f" ({level} interval)" if level and entry["all_wrong"]["low"] is not None else ""),
        *([f"accuracy of the best one, {name(best)}: {with_interval(entry['best_single'])}"]
          if best else []),
        f"accuracy of a majority vote: {with_interval(entry['majority'])}",
        "accuracy of an oracle that picks the right one for each item: "
        f"{with_interval(entry['oracle'])}",
    ]  # fmt: skip
    voters = entry["effective_voters"]
    if voters["value"] is not None:
        clauses.append(
            f"their errors are correlated: {m:,} count like {voters['value']:.1f} independent ones"
            if voters["value"] < 0.95 * m
            else "their errors are hardly correlated"
        )
    return [*map(sentence, clauses), *entry.get("warnings", ())]


def _forest(
    entry: Mapping[str, Any],
    key: str,
    shown: Sequence[Mapping[str, Any]],
    cells: Mapping[str, Sequence[str]],
    from_zero: bool,
    **more: Any,
) -> Forest:
    """Rows on one scale, those of `key`; `cells` are further columns."""
    aside = entry.get("contradicted") or ()
    rows = [
        Row(s[key], s["value"], s["low"], s["high"], CONTRADICTED if s[key] in aside else "ok")
        for s in shown
    ]
    numbers = [n for row in rows for n in row.numbers if n is not None] + [0.0] * from_zero
    # A metric that is a share has no values beyond 0 and 1, and its scale has none either.
    inside = (0.0 if min(numbers) >= 0 else None, 1.0 if max(numbers) <= 1 else None)
    axis = fit_axis(numbers, (None, None) if from_zero else inside, 4 if from_zero else 5)
    block = Block(entry["metric"], None, tuple(rows), entry["confidence_level"],
                  direction=0 if from_zero else entry["direction"])  # fmt: skip
    return Forest(block, rows, axis, extras=[*cells.items()], zero=from_zero, **more)


def _standings(entry: Mapping[str, Any], folded: bool) -> list[Node]:
    """A row per classifier, best first."""
    marks, shown = letters(entry), entry["standings"]
    ranks, losses = ([s[of] for s in shown] for of in ("expected_rank", "expected_loss"))
    cells = {
        "P(best)": [
            "-" if rank is None else probability(s["probability_best"]) + "*" * s["may_be_best"]
            for s, rank in zip(shown, ranks, strict=True)
        ],
        "shared letters": [marks.get(s["model"], "") for s in shown],
        "expected rank": ["-" if rank is None else f"{rank:.1f}" for rank in ranks],
        "behind the best": ["-" if n is None else number_format(losses)(n) for n in losses],
    }
    return [
        Para("With * it may be the best; who share a letter do not differ significantly.", "soft",
             on="page"),
        _forest(entry, "model", shown, cells, False, caption=f"Ranking by {entry['metric']}",
                folded=folded),
    ]  # fmt: skip


def _differences(entry: Mapping[str, Any], folded: bool = True) -> list[Node]:
    """A row per pair in the order of the ranking, on one scale that has 0 on it."""
    shown, ranking, note = entry["pairs"], entry["ranking"], ""
    if len(shown) > MOST_PAIRS:
        note = f" Shown are pairs of neighbours and of the first; the JSON has all {len(shown):,}."
        next_to = {*itertools.pairwise(ranking)}
        shown = [p for p in shown if p["a"] == ranking[0] or (p["a"], p["b"]) in next_to]
    cells = {
        "P(better)": [probability(p["probability"]) for p in shown],
        "significant": ["yes" if p["separated"] else "no" for p in shown],
        "labels to decide": [labels_cell(p["labels"]) for p in shown],
    }
    better = "right" if entry["direction"] > 0 else "left"
    return [
        Para(f"The first minus the second; {better} of 0 the first is better.{note}", "soft"),
        _forest(entry, "a", shown, cells, True, caption=f"Differences by {entry['metric']}",
                who="First − second", versus=[p["b"] for p in shown], folded=folded),
    ]  # fmt: skip


_ENDS = ("largest", "smallest")


def _gaps(metric: str, column: str, entries: Sequence[Mapping[str, Any]]) -> Section:
    """A row per classifier: its largest minus its smallest value over the groups of a column."""
    write = number_format(n for g in entries for n in (g["value"], g["low"], g["high"]))
    rows = [
        [g["model"], with_interval(g, write), *(name(g[end] or "-") for end in _ENDS)]
        for g in entries
    ]
    title = f"{metric} by {name(column)}"
    return Section(title, [Table(["classifier", "gap", *_ENDS], rows, f"Gaps of {title}")])


def _together(
    entry: Mapping[str, Any], *, maps: bool = True, folded: bool = True, told: bool = True
) -> Iterator[Section]:
    """The set as a whole, in one group, where it is known; text has no map of what is folded."""
    points, group = together_sentences(entry), entry["group"]
    body: list[Node] = [Listing(points)] if points else []
    if maps and any(p[kind]["value"] is not None for p in entry["pairs"] for kind in _MAPS):
        body.append(Later(partial(_maps, entry, folded, told), on="page" if folded else ""))
    if body:
        where = "" if group is None else f", {name(group)}"
        yield Section(f"All classifiers together{where}", body)


def heat_maps(entry: Mapping[str, Any]) -> list[HeatMap]:
    """How often two classifiers are wrong on the same item, and how their errors correlate."""
    return [
        _heat_map(entry, kind, *how)
        for kind, how in _MAPS.items()
        if any(p[kind]["value"] is not None for p in entry["pairs"])
    ]


def _maps(entry: Mapping[str, Any], folded: bool, told: bool) -> list[Node]:
    charts = [replace(chart, told=told) for chart in heat_maps(entry)]
    note = "".join(f" Shown: {note}." for note in charts[0].notes)
    figures = [
        Para(f"Point at a number for its {percent(entry['confidence_level'])} interval, and "
             f"for how often the two say the same wrong class or disagree.{note}", "soft",
             on="page"),
        Group("maps", [
            Drawing("heat", chart, chart.caption, None if folded or k else chart.lines)
            for k, chart in enumerate(charts)
        ]),
    ]  # fmt: skip
    return [Fold("Who fails with whom", figures, printed=False)] if folded else figures


def _heat_map(entry: Mapping[str, Any], kind: str, caption: str, top: float | None) -> HeatMap:
    """Pairs as a table, coloured up to `top`; None: the largest number."""
    by_pair = {(p["a"], p["b"]): p for p in entry["pairs"]}
    shown = list(dict.fromkeys(model for pair in by_pair for model in pair))
    defined = [p[kind]["value"] for p in entry["pairs"] if p[kind]["value"] is not None]
    write, most = number_format(defined), top or max(defined) or 1.0

    def cell(i: int, j: int) -> Cell:
        a, b = shown[i], shown[j]
        pair = by_pair.get((a, b)) or by_pair.get((b, a))
        if pair is None:
            return Cell("", None, a)
        value = pair[kind]["value"]
        if value is None:
            return Cell("-", None, f"{a} and {b}: not known")
        text = "; ".join(f"{what} {with_interval(pair[key])}" for key, what in _OF_TWO.items())
        return Cell(write(value), min(max(value / most, 0.0), 1.0), f"{a} and {b}: {text}")

    ends = ("0", number_format([most])(most) if top is None else f"{top:g}")
    m = len(entry["models"])
    notes = [f"the first {len(shown)} of {m} classifiers"] if len(shown) < m else ()
    corner = ("classifier", "classifier")
    return HeatMap(caption, corner, shown, shown, cell, ends, notes)


def parts(report: Report, brief: Sequence[str], *, told: bool = True) -> list[Node]:
    """Which classifier is best, and the set as a whole: sections within the estimates' document.

    A text says it by the metrics that are `brief`. Without `told` cells of maps have no tooltips.
    """
    entries: Mapping[str, Any] = report.get("comparison") or {}
    out: list[Node] = []
    if entries:
        unlabeled = report["n_items"] - report["n_labeled"]
        said = {metric: " ".join(_said(entry, unlabeled)) for metric, entry in entries.items()}
        out.append(
            Section(
                "Which is best?",
                [
                    Listing([said[metric] for metric in brief if metric in said], on="text"),
                    Listing([*said.values()], on="page"),
                    *(
                        Fold(
                            f"Differences by {metric}", [page_only(_differences, entry)], on="page",
                            aside=plural(len(entry["pairs"]), "pair"), open=place == 0,
                        )
                        for place, (metric, entry) in enumerate(entries.items())
                    ),
                    Fold("How to read the differences", [Terms(_OF_PAIRS)], on="page",
                         printed=False),
                ],
                aside=f"{percent(report['confidence_level'])}, all classifiers compared at once",
            )
        )  # fmt: skip
    if report.get("together"):
        out += _together(report["together"], told=told)
    return out


def document(report: Report, level: int = 0) -> Document:
    """All that is said of `Comparisons.to_dict`."""
    unlabeled = {g["group"]: g["n_items"] - g["n_labeled"] for g in report["groups"]}
    n, labeled = report["n_items"], report["n_labeled"]
    items = ", ".join(filter(None, (f"{n:,} items, {labeled:,} labeled", reference_items(report))))
    within = percent(report["confidence_level"])
    gaps: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for gap in report["group_gaps"]:
        gaps.setdefault((gap["metric"], gap["column"]), []).append(gap)
    said = [_said(entry, unlabeled.get(entry["group"], 0)) for entry in report["comparisons"]]
    ranked = []
    for place, entry in enumerate(report["comparisons"]):
        group, tables = entry["group"], []
        if group is None or level < 2:
            tables = [*_standings(entry, level < 1),
                      Section("Differences", _differences(entry, level < 1))]  # fmt: skip
        if group is not None and tables:
            tables = [Fold("Ranking and differences", tables, printed=False)]
        where = "" if group is None else f", {name(group)}"
        better = "larger" if entry["direction"] > 0 else "smaller"
        words = [Para(" ".join(said[place]))] if place else []
        ranked.append(
            Section(entry["metric"] + where, [*words, *tables], aside=f"{better} is better")
        )
    return Document(
        "Which classifier is best?",
        report,
        head=[
            f"{items}; {classes_text(report)}",
            f"{made_by(report)}; {within} intervals of paired differences",
        ],
        answer=[" ".join(said[0])],
        basis=[
            f"This rests on {plural(labeled, 'label')} among {plural(n, 'item')}, and on what the "
            f"method {report['method']} infers for the others. "
            f"Intervals and sets are at {within}.",
        ],
        facts={
            "Items": n, "Labeled": labeled,
            "Reference": report["reference"]["n_items"] if report.get("reference") else None,
            "Classifiers": len(report["comparisons"][0]["standings"]),
            "Classes": len(report["classes"]),
            "Positive class": None if report.get("positive") is None else name(report["positive"]),
            "Method": report["method"],
        },
        body=[
            *ranked,
            *([Section("Gaps between groups", [
                Para("Largest minus smallest value over the groups, without what chance adds. If "
                     "the interval begins at 0, no two groups differ significantly.", "soft"),
                *(_gaps(*key, some) for key, some in gaps.items()),
            ])] if gaps else []),
            *([Para("Some tables and maps are left out, for the page to stay short; the JSON has "
                    "all.", "soft", on="page")] if level else []),
            *(
                section
                for entry in report["together"]
                for section in _together(
                    entry, folded=entry["group"] is not None,
                    maps=level < (2 if entry["group"] is None else 1),
                )
            ),
        ],
        terms=_TERMS,
        foot=[f"{term}: {meaning.split('. ')[0].rstrip('.')}." for term, meaning in _TERMS.items()],
        warnings=report["warnings"],
    )  # fmt: skip
