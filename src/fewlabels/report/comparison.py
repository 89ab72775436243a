"""Comparisons of classifiers: who leads, who differ significantly, how they fail together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from string import ascii_lowercase
from typing import Any

from fewlabels.report.axis import fit_axis
from fewlabels.report.blocks import CONTRADICTED, Block, Report, Row, Verdict, verdict
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
    Terms,
    counts,
    name,
    page_only,
    plain,
    sentence,
    strong,
)
from fewlabels.report.words import (
    about,
    enumerated,
    made_by,
    metric_name,
    number_format,
    percent,
    plural,
    probability,
    with_interval,
)

LEVELS = 3
"""Maps of groups go first, then all maps and the tables of groups."""

MOST_LABELS = 10_000
"""Numbers of labels above this are not stated."""

_MOST_NAMES = 3
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


_LEADS = {
    "alone": "{who} is the only {one} {here}",
    "unordered": "nothing says whether a larger or a smaller {metric} is better; the first {one} "
    "is {who}",
    "contradicted": "by {metric}, no {one} is called the best: the labels disagree with what the "
    "method says of {aside}",
    "left": "by {metric}, {who} is the only {one} of {rows} that the labels do not contradict",
    "unranked": "of {n}, {who} has the best estimate by {metric}{overlap}",
    "clear": "by {metric}, {who} is very probably the best of {n}, with probability {sure}",
    "likely": "by {metric}, {who} is probably the best of {n}, with probability {sure}",
    "likelier": "by {metric}, it is open which of {n} is the best: {who} has the best estimate, "
    "but {likelier} is more probably the best ({surer} against {sure})",
    "leaning": "by {metric}, {who} looks like the best of {n}, but that is not settled "
    "(probability {sure})",
    "open": "by {metric}, none of {n} stands out: {who} has the best estimate, and is the "
    "best with probability {sure}",
}
"""Who is best, as far as that can be said, by `Verdict.certainty`."""


def _leads(found: Verdict, one: str) -> str:
    block, leader, likelier = found.block, found.leader, found.likelier
    metric, rivals = plain(metric_name(block.metric)), len(found.rivals)
    aside = len(found.contradicted)
    overlap = f", but the intervals of {plural(rivals, 'other')} overlap with its own"
    if rivals < 2:
        overlap = ", but the interval of 1 other overlaps with its own" * rivals
    open_still = found.certainty in ("leaning", "open") and likelier is not None
    return _LEADS["likelier" if open_still else found.certainty].format(
        metric=metric, who=name(leader.model), rows=len(block.rows), one=one,
        n=plural(found.n_ranked, one), sure=probability(leader.best),
        here="here" if len(block.rows) == 1 else f"that could be judged by {metric}",
        overlap=overlap or ", and its interval overlaps with no other",
        aside="both" if aside == 2 else f"all {aside}",
        likelier="" if likelier is None else name(likelier.model),
        surer="" if likelier is None else probability(likelier.best),
    )  # fmt: skip


def standing(
    found: Verdict, entry: Mapping[str, Any] | None = None, n_unlabeled: int | None = None,
    one: str = "classifier",
) -> Iterator[str]:  # fmt: skip
    """Who leads, how sure that is, how good the leader is, what would settle it, and who else.

    `entry` is the comparison by the metric, where there is one. No phrase begins with a name, as a
    capital letter would change it.
    """
    block, leader = found.block, found.leader
    metric, write = plain(metric_name(block.metric)), block.write
    yield _leads(found, one)
    if found.certainty == "contradicted":
        return
    whose = f"the {metric} of {name(leader.model)}" if found.likelier else f"its {metric}"
    ends = f", with a {percent(block.level)} interval from {write(leader.low)} to "
    yield f"{whose} is estimated at {strong(write(leader.value))}" + (
        f"{ends}{write(leader.high)}" if leader.low is not None else ""
    )
    if found.contradicted:
        named = [f"{name(row.model)} ({write(row.value)})" for row in found.contradicted]
        their = "its estimate" if len(named) == 1 else "their estimates"
        rest = enumerated(named, _MOST_NAMES)
        yield f"not ranked, as the labels contradict {their}: {rest}"
    settling, unsettled = "", found.certainty in ("likely", "leaning", "open")
    if entry and n_unlabeled is not None and (unsettled or found.certainty == "clear"):
        settling = settling_sentence(entry, n_unlabeled)
    yield settling
    # Who is named as what would have to be decided need not be named again.
    if unsettled and not found.likelier and len(found.rivals) > bool(settling):
        named = [f"{name(row.model)} ({probability(row.best)})" for row in found.rivals]
        yield f"others that may be the best: {enumerated(named, _MOST_NAMES)}"


def said_of(block: Block, *known: Any) -> str:
    """What is said of a block in sentences; `known` are what else `standing` takes."""
    found = verdict(block)
    return " ".join(map(sentence, filter(None, standing(found, *known)))) if found else ""


def settling_sentence(entry: Mapping[str, Any], n_unlabeled: int) -> str:
    """What would decide between the first two; empty if unknown."""
    needed, second = entry["labels_needed"], entry["standings"][1]["model"]
    if needed["status"] == "unknown" or second in (entry.get("contradicted") or ()):
        return ""
    second = name(second)
    if needed["status"] == "settled":
        return f"compared with {second} alone, its lead is clear"
    if needed["status"] == "tied":
        return f"labels cannot separate it from {second}: they do not differ on these items"
    if needed["more"] > MOST_LABELS:
        return f"deciding between it and {second} needs more than {MOST_LABELS:,} more labels"
    low, high, more = needed["low"], needed["high"], plural(about(needed["more"]), "more label")
    if low != high:
        most = f"{about(high):,}" if high <= MOST_LABELS else f"more than {MOST_LABELS:,}"
        more += f" ({about(low):,} to {most})"
    if needed["more"] > n_unlabeled:
        more += f", and only {plural(n_unlabeled, 'item is', 'items are')} without a label"
    return f"deciding between it and {second} likely needs about {more}"


def labels_cell(needed: Mapping[str, Any]) -> str:
    """How many labels more, as a cell of a table says it."""
    if needed["status"] != "open":
        return {"settled": "settled", "tied": "never"}.get(needed["status"], "-")
    more = needed["more"]
    return f"{about(more):,}" if more <= MOST_LABELS else f">{MOST_LABELS:,}"


def letters(entry: Mapping[str, Any]) -> dict[str, str]:
    """The letters of each classifier: who share one do not differ significantly."""
    out: dict[str, str] = {}
    for place, run in enumerate(entry["alike"]):
        letter = ascii_lowercase[place % 26] + (str(place // 26 + 1) if place >= 26 else "")
        for model in run:
            out[model] = out.get(model, "") + letter
    return out


def _forest(
    entry: Mapping[str, Any],
    key: str,
    shown: Sequence[Mapping[str, Any]],
    columns: Mapping[str, Sequence[str]],
    caption: str,
    *,
    zero: bool = False,
    **more: Any,
) -> Forest:
    """Rows on one scale, those of `key`, with further columns."""
    block = _block(entry, key, shown)
    block = replace(block, direction=0 if zero else block.direction,
                    rows=tuple(replace(row, best=None) for row in block.rows))  # fmt: skip
    numbers = [n for row in block.rows for n in row.numbers] + [0.0] * zero
    axis = fit_axis(numbers, (None, None), 4 if zero else 5)
    return Forest(block, block.rows, axis, caption, extras=[*columns.items()], zero=zero, **more)


def _block(entry: Mapping[str, Any], key: str, shown: Sequence[Mapping[str, Any]]) -> Block:
    """Rows of a comparison, in their order; who may be the best is known of classifiers."""
    aside, models = entry.get("contradicted") or (), tuple(one[key] for one in shown)
    rows = tuple(
        Row(one[key], one["value"], one["low"], one["high"],
            CONTRADICTED if one[key] in aside else "ok", one.get("probability_best"))
        for one in shown
    )  # fmt: skip
    return Block(entry["metric"], None, rows, entry["confidence_level"],
                 direction=entry.get("direction", 0), ranking=models)  # fmt: skip


def _ranking(entry: Mapping[str, Any], folded: bool) -> Forest:
    """A row per classifier, best first."""
    marks, shown = letters(entry), entry["standings"]
    ranks, losses = ([s[of] for s in shown] for of in ("expected_rank", "expected_loss"))
    columns = {
        "P(best)": [
            "-" if rank is None else probability(s["probability_best"]) + "*" * s["may_be_best"]
            for s, rank in zip(shown, ranks, strict=True)
        ],
        "shared letters": [marks.get(s["model"], "") for s in shown],
        "expected rank": ["-" if rank is None else f"{rank:.1f}" for rank in ranks],
        "behind the best": ["-" if n is None else number_format(losses)(n) for n in losses],
    }
    return _forest(entry, "model", shown, columns, f"Ranking by {entry['metric']}", folded=folded)


def _differences(entry: Mapping[str, Any], folded: bool) -> list[Node]:
    """A row per pair in the order of the ranking, on one scale that has 0 on it."""
    shown = entry["pairs"]
    columns = {
        "P(better)": [probability(p["probability"]) for p in shown],
        "significant": ["yes" if p["separated"] else "no" for p in shown],
        "labels to decide": [labels_cell(p["labels"]) for p in shown],
    }
    better = "right" if entry["direction"] > 0 else "left"
    return [
        Para(f"The first minus the second; {better} of 0 the first is better.", "soft"),
        _forest(entry, "a", shown, columns, f"Differences by {entry['metric']}",
                who="First − second", versus=[p["b"] for p in shown], zero=True, folded=folded),
    ]  # fmt: skip


def _gaps(report: Report) -> Iterator[Section]:
    """A row per classifier: its largest minus its smallest value over the groups of a column."""
    body: list[Node] = [
        Para("Largest minus smallest value over the groups, without what chance adds. If the "
             "interval begins at 0, no two groups differ significantly.", "soft"),
    ]  # fmt: skip
    for (metric, column), gaps in groupby(report["group_gaps"], itemgetter("metric", "column")):
        rows = [*gaps]
        entry = {"metric": metric, "confidence_level": report["confidence_level"]}
        ends = {end: [gap[end] or "-" for gap in rows] for end in ("largest", "smallest")}
        title = f"{metric} by {name(column)}"
        forest = _forest(entry, "model", rows, ends, f"Gaps of {title}", zero=True)
        body.append(Section(title, [forest]))
    if report["group_gaps"]:
        yield Section("Gaps between groups", body)


def together_sentences(entry: Mapping[str, Any]) -> list[str]:
    """Results of the set as a whole, in words."""
    if entry["all_wrong"]["value"] is None:
        return []
    m, best, voters = len(entry["models"]), entry["best_model"], entry["effective_voters"]["value"]
    rates = {
        f"share of items on which {'both' if m == 2 else f'all {m:,}'} are wrong": "all_wrong",
        **({f"accuracy of the best one, {name(best)}": "best_single"} if best else {}),
        "accuracy of a majority vote": "majority",
        "accuracy of an oracle that picks the right one for each item": "oracle",
    }
    clauses = [f"{what}: {with_interval(entry[key])}" for what, key in rates.items()]
    if voters is not None:
        clauses.append(
            f"their errors are correlated: {m:,} count like {voters:.1f} independent ones"
            if voters < 0.95 * m
            else "their errors are hardly correlated"
        )
    return [*map(sentence, clauses), *entry.get("warnings", ())]


def _together(
    entry: Mapping[str, Any], *, maps: bool = True, folded: bool = True, told: bool = True
) -> Iterator[Section]:
    """The set as a whole, in one group, where it is known; text has no map of what is folded."""
    points = together_sentences(entry)
    body: list[Node] = [Listing(points)]
    if maps and any(p[kind]["value"] is not None for p in entry["pairs"] for kind in _MAPS):
        body.append(Later(partial(_maps, entry, folded, told), on="page" if folded else ""))
    where = "" if entry["group"] is None else f", {name(entry['group'])}"
    level = entry["confidence_level"]
    aside = f"{percent(level)} intervals" if level else ""
    yield Section(f"All classifiers together{where}", body, aside)


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
    by_pair = {frozenset((p["a"], p["b"])): p for p in entry["pairs"]}
    shown = list(dict.fromkeys(p[side] for p in entry["pairs"] for side in ("a", "b")))
    defined = [p[kind]["value"] for p in entry["pairs"] if p[kind]["value"] is not None]
    write, most = number_format(defined), top or max(defined) or 1.0

    def cell(i: int, j: int) -> Cell:
        pair = by_pair.get(frozenset((shown[i], shown[j])))
        if pair is None:
            return Cell("", None, shown[i])
        value, who = pair[kind]["value"], f"{shown[i]} and {shown[j]}"
        if value is None:
            return Cell("-", None, f"{who}: not known")
        text = "; ".join(f"{what} {with_interval(pair[key])}" for key, what in _OF_TWO.items())
        return Cell(write(value), min(max(value / most, 0.0), 1.0), f"{who}: {text}")

    ends = ("0", number_format([most])(most) if top is None else f"{top:g}")
    m = len(entry["models"])
    notes = [f"the first {len(shown)} of {m} classifiers"] if len(shown) < m else ()
    corner = ("classifier", "classifier")
    return HeatMap(caption, corner, shown, shown, cell, ends, notes)


def parts(
    report: Report, metrics: Sequence[Block], brief: Sequence[str], *, told: bool = True
) -> list[Node]:
    """Which classifier is best, and the set as a whole: sections within the estimates' document.

    A text says it by the metrics that are `brief`. Without `told` cells of maps have no tooltips.
    """
    entries: Mapping[str, Any] = report.get("comparison") or {}
    unlabeled = report["n_items"] - report["n_labeled"]
    said = {
        block.metric: said_of(block, entries[block.metric], unlabeled)
        for block in metrics
        if block.metric in entries
    }
    best = Section(
        "Which is best?",
        [
            Listing([said[metric] for metric in brief if metric in said], on="text"),
            Listing([*said.values()], on="page"),
            *(
                Fold(f"Differences by {metric}", [page_only(_differences, entry, False)], on="page",
                     aside=plural(len(entry["pairs"]), "pair"), open=place == 0)
                for place, (metric, entry) in enumerate(entries.items())
            ),
            Fold("How to read the differences", [Terms(_OF_PAIRS)], on="page", printed=False),
        ],
        aside=f"{percent(report['confidence_level'])}, all classifiers compared at once",
    )  # fmt: skip
    together = report.get("together")
    return [*([best] if entries else ()), *(_together(together, told=told) if together else ())]


def document(report: Report, level: int = 0) -> Document:
    """All that is said of `Comparisons.to_dict`."""
    unlabeled = {g["group"]: g["n_items"] - g["n_labeled"] for g in report["groups"]}
    n, labeled = report["n_items"], report["n_labeled"]
    confidence = percent(report["confidence_level"])
    answer, *said = (
        said_of(_block(one, "model", one["standings"]), one, unlabeled.get(one["group"], 0))
        for one in report["comparisons"]
    )
    ranked = []
    for words, entry in zip(["", *said], report["comparisons"], strict=True):
        group, folded = entry["group"], level < 1
        tables = [_ranking(entry, folded), Section("Differences", _differences(entry, folded))]
        if group is not None:
            tables = [Fold("Ranking and differences", tables, printed=False)] if level < 2 else []
        where = "" if group is None else f", {name(group)}"
        better = "larger" if entry["direction"] > 0 else "smaller"
        ranked.append(
            Section(entry["metric"] + where, [*([Para(words)] if words else []), *tables],
                    aside=f"{better} is better")
        )  # fmt: skip
    return Document(
        "Which classifier is best?",
        report,
        counts(report),
        answer=[answer],
        basis=[
            f"This rests on {plural(labeled, 'label')} among {plural(n, 'item')}, and on what the "
            f"method {report['method']} infers for the others. "
            f"Intervals of paired differences, and sets, are at {confidence}.",
        ],
        body=[
            *ranked,
            *_gaps(report),
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
        explained=True,
        foot=[made_by(report)],
    )  # fmt: skip
