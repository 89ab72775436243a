"""How far annotators agree among themselves: all of them, each with the others, and pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any

from fewlabels.report.blocks import Block, Report, Row, common_axis
from fewlabels.report.document import (
    Document,
    Fold,
    Forest,
    Node,
    Section,
    Table,
    name,
    sentence,
)
from fewlabels.report.words import (
    number_format,
    plural,
    share,
    with_interval,
)

COEFFICIENTS = {
    "agreement": ("Say the same", "chance that two who label one item say the same"),
    "alpha": (
        "Krippendorff's alpha",
        "1 is perfect, 0 what chance gives if labels are drawn from all of them; low where nearly "
        "all are of one class, however rarely people differ",
    ),
    "fleiss_kappa": (
        "Fleiss' kappa",
        "the same from the mean shares of the classes, for any number of people",
    ),
    "cohen_kappa": ("Cohen's kappa", "the same for two, each with shares of their own"),
    "ac1": (
        "Gwet's AC1",
        "chance agreement is taken to be rare where one class is, so it stays near how often "
        "people agree",
    ),
    "ac2": ("Gwet's AC2", "AC1 where grades that are near one another agree in part"),
    "pabak": ("PABAK", "chance agreement is that of classes named at random"),
}
"""The coefficients in words, and what each is."""

Coefficients = dict[str, Mapping[str, Any]]
"""Rows of the report by the name of the coefficient."""

_MOST_PRINTED, _MOST_OPEN = 10, 12
_APART = 0.2
"""Alpha is this far below AC1 where a class is rare."""

_WRITE = number_format([1.0])


def _of(report: Report, named: int) -> list[tuple[str, Coefficients]]:
    """The coefficients of all annotators (0 of them `named`), of each (1), or of pairs (2).

    Those who agree least come first, those with few items last.
    """
    out: dict[tuple[str, ...], Coefficients] = {}
    for row in report["estimates"]:
        who = tuple(one for one in (row["annotator"], row["other"]) if one is not None)
        if len(who) == named and (named, report["n_annotators"]) != (1, 2):  # they are a pair
            out.setdefault(who, {})[row["metric"]] = row
    found = [(", ".join(who), rows["agreement"], rows) for who, rows in out.items()]
    found.sort(key=lambda one: (one[1]["status"] != "ok", one[1]["value"]))
    return [(who, rows) for who, _, rows in found]


def sentences(report: Report) -> Iterator[str]:
    """What the numbers say."""
    ((_, everybody),) = _of(report, 0)
    ac1 = "ac2" if "ac2" in everybody else "ac1"
    agreed, alpha, ac = (everybody[one]["value"] for one in ("agreement", "alpha", ac1))
    who, of = report["n_annotators"], plural(report["n_items"], "item")
    of += f", {plural(who, 'annotator')}" if who else ""
    yield f"Two annotators who label an item say the same in {share(agreed)} of cases ({of})."
    if alpha is None:
        yield "All their labels are of one class, so that agreement beyond chance is undefined."
    else:
        yield (
            f"Beyond chance that is {_WRITE(alpha)} by {COEFFICIENTS['alpha'][0]} and "
            f"{_WRITE(ac)} by {COEFFICIENTS[ac1][0]}; 1 is perfect."
        )
        most, named = max(zip(report["shares"], report["classes"], strict=True), key=itemgetter(0))
        if ac - alpha > _APART:
            yield (
                f"They differ because {share(most)} of the labels are {name(named)}: alpha and "
                "kappa put nearly all such agreement down to chance."
            )
    if found := report["independence"]:
        p = f"p = {found['p_value']:.3f}".replace("0.", ".", 1)
        yield (
            f"Who labels explains {share(found['explained'])} of the disagreement on an item ({p})."
            if found["p_value"] < 0.05
            else f"Nothing shows that who labels an item explains its labels ({p})."
        )


def tables(report: Report) -> Iterator[Node]:
    """A table of all annotators; of each with the others, and of pairs, where they are known."""
    ((_, everybody),) = _of(report, 0)
    coefficients = tuple(
        Row(COEFFICIENTS[metric][0], one["value"], one["low"], one["high"], one["status"])
        for metric, one in everybody.items()
    )
    level = everybody["agreement"]["confidence_level"]
    block = Block("agreement", None, coefficients, level, writes=_WRITE)
    yield Forest(block, block.rows, common_axis([block]), "Of all annotators", "Coefficient")
    ac1 = "ac2" if "ac2" in everybody else "ac1"
    heads = {"agreement": "say the same", ac1: ac1.upper(), "alpha": "alpha",
             "cohen_kappa": "kappa", "pabak": "PABAK"}  # fmt: skip
    for named, caption in (
        (1, "Each annotator with the others who labeled the same items"),
        (2, "Two annotators on the items that both labeled"),
    ):
        rows = _of(report, named)
        cells = [
            [who, f"{found['agreement']['n_items']:,}",
             *(with_interval(found[one], _WRITE) for one in heads)]
            for who, found in rows
        ]  # fmt: skip
        chips = [found["agreement"]["status"] for _, found in rows]
        table = Table(["", "items", *heads.values()], cells, caption, style="losses",
                      chips=chips, most=_MOST_PRINTED)  # fmt: skip
        if rows:
            yield Fold(caption, [table], f"{len(rows):,}, who agree least first",
                       open=len(rows) <= _MOST_OPEN)  # fmt: skip


def terms(report: Report) -> dict[str, str]:
    """What the coefficients are."""
    shown = dict.fromkeys(row["metric"] for row in report["estimates"])
    return {COEFFICIENTS[one][0]: sentence(COEFFICIENTS[one][1]) for one in shown}


def document(report: Report) -> Document:
    """All that is said of `Agreement.to_dict`."""
    return Document(
        "How far do annotators agree?",
        report,
        {
            "Items with two labels or more": report["n_items"], "Labels": report["n_labels"],
            "Annotators": report["n_annotators"], "Classes": len(report["classes"]),
        },
        answer=[" ".join(sentences(report))],
        body=[Section("Agreement", [*tables(report)])],
        terms=terms(report),
        explained=True,
    )  # fmt: skip
