"""Scores of the system that judges evaluate: by which way and judge, what a judge is worth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fewlabels.report import confusion
from fewlabels.report.blocks import Block, Report, Row, common_axis
from fewlabels.report.document import (
    Document,
    Forest,
    Listing,
    Node,
    Para,
    Section,
    counts,
    in_line,
    name,
    parted,
    plain,
    sentence,
    strong,
)
from fewlabels.report.one_classifier import WRITE
from fewlabels.report.words import UNDEFINED, capital, percent, plural, with_interval

_UNCORRECTED, _LABELS = "uncorrected", "labels only"
_MOST_ANSWERS = 3

Criterion = Mapping[str, Any]


def document(report: Report) -> Document:
    """All that is said of `Scores.to_dict`."""
    criteria = report["criteria"]
    left = len(criteria) - _MOST_ANSWERS
    judges = {row["judge"] for one in criteria for row in one["rows"]} - {None}
    sizes = {what: {one[f"n_{what.lower()}"] for one in criteria} for what in ("Items", "Labeled")}
    more = [f"{plural(left, 'more criterion', 'more criteria')}: see below"] if left > 0 else []
    return Document(
        "How good is what the judges evaluate?",
        report,
        {
            **{what: some.pop() if len(some) == 1 else None for what, some in sizes.items()},
            "Criteria": len(criteria) if len(criteria) > 1 else None, "Judges": len(judges),
        },
        answer=[*map(sentence, [*map(_answer, criteria[:_MOST_ANSWERS]), *more])],
        body=[_criterion(one, report) for one in criteria],
        terms={
            "Uncorrected": "The judge's own rate, whose interval ignores its mistakes.",
            "Labels only": "The labels alone: unbiased, and few.",
            "Prediction-powered": "The judge's mean on all items, plus the mean difference of the "
            "labels from it, as far as the two are correlated.",
        },
        foot=[
            f"{percent(report['confidence_level'])} intervals for the population that the items "
            f"come from; seed {report['seed']}, fewlabels {report['fewlabels']}. The uncorrected "
            "rate is the judge's own, whose interval ignores its mistakes."
        ],
    )  # fmt: skip


def _named(one: Criterion) -> str:
    return "" if one["criterion"] is None else f"{name(one['criterion'])}: "


def _answer(one: Criterion) -> str:
    """The score by all that helps: judges who do, and the labels."""
    helps = any(judge["helps"] for judge in one["judges"])
    rows = {row["way"]: row for row in one["rows"] if row["way"] != _UNCORRECTED}
    last = [*rows.values()][-1] if helps else rows[_LABELS]
    value, ends = parted(with_interval(last, WRITE))
    ends = f" {ends}" if ends else ""
    return f"{_named(one)}the {plain(one['what'])} is {strong(value)}{ends}, by {last['way']}"


def _criterion(one: Criterion, report: Report) -> Section:
    rows = tuple(
        Row(
            row["way"] if row["judge"] is None else f"{row['way']}, {row['judge']}",
            row["value"], row["low"], row["high"],
            "ok" if row["way"] == _UNCORRECTED else row["status"],
        )
        for row in one["rows"]
    )  # fmt: skip
    block = Block("score", None, rows, report["confidence_level"])
    points = [*map(_help, one["judges"]), *([_people(one)] if one["people"] is not None else [])]
    parts: list[Node] = [
        Para("; ".join(map(plain, one["reading"])), "soft"),
        Forest(block, rows, common_axis([block]), "Scores by each way", "Way"),
        *([Para("", on="text")] if points else []),
        Listing([*map(sentence, points)]),
        *(confusion.matrices(one["confusion"]) if one.get("confusion") else ()),
    ]
    return Section(_named(one) + capital(plain(one["what"])), parts, in_line(counts(one)))


def _help(judge: Mapping[str, Any]) -> str:
    who, rho, n = name(judge["judge"]), judge["correlation"], judge["n_labeled"]
    if not n:
        return f"{who}: no labeled item has a predicted class or probabilities of it"
    if rho is None:
        return f"{who}: no correlation with the labels can be told from {plural(n, 'labeled item')}"
    above = "above" if judge["helps"] else "not above"
    return (
        f"{who}: correlation with the labels {rho:.2f}, {above} the bound {judge['bound']:.2f} "
        f"(1/sqrt(n - 2), n = {n}): it {'helps' if judge['helps'] else 'cannot help'}"
    )


def _people(one: Criterion) -> str:
    people = one["people"]
    of_all = {row["metric"]: row for row in people["estimates"] if row["annotator"] is None}

    def figures(metric: str) -> str:
        return with_interval(of_all[metric], lambda n: UNDEFINED if n is None else f"{n:.2f}")

    shares = ", ".join(f"{name(n)} {v:.2f}" for n, v in one["judge_pairs"].items())
    return (
        f"people among themselves ({plural(people['n_items'], 'item')} with several labels): "
        f"Krippendorff's alpha ({people['scale']}) {figures('alpha')}, Fleiss' kappa "
        f"{figures('fleiss_kappa')}; two of them agree on {figures('agreement')} of the items"
        + (f", a judge and one of them on {shares}" if shares else "")
    )
