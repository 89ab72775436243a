"""How far annotators agree among themselves: all of them, each with the others, and pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fewlabels.report.blocks import Block, Report, Row, common_axis
from fewlabels.report.document import (
    Document,
    Fold,
    Forest,
    Node,
    Para,
    Section,
    Table,
    Terms,
    name,
    sentence,
)
from fewlabels.report.words import (
    classes_text,
    number_format,
    percent,
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


def _of(report: Report, named: int) -> dict[tuple[str, ...], Coefficients]:
    """The coefficients of all annotators (0 of them `named`), of each (1), or of pairs (2).

    Those who agree least come first, those with few items last.
    """
    out: dict[tuple[str, ...], Coefficients] = {}
    for row in report["estimates"]:
        who = tuple(one for one in (row["annotator"], row["other"]) if one is not None)
        if len(who) == named:
            out.setdefault(who, {})[row["metric"]] = row
    if named == 1 and report["n_annotators"] == 2:
        return {}  # they are a pair
    first = {who: found["agreement"] for who, found in out.items()}
    order = sorted(out, key=lambda who: (first[who]["status"] != "ok", first[who]["value"]))
    return {who: out[who] for who in order}


def sentences(report: Report) -> Iterator[str]:
    """What the numbers say."""
    everybody = _of(report, 0)[()]
    ac1 = "ac2" if "ac2" in everybody else "ac1"
    ac, alpha = everybody[ac1]["value"], everybody["alpha"]["value"]
    who, of = report["n_annotators"], plural(report["n_items"], "item")
    agreed = share(everybody["agreement"]["value"])
    of += f", {plural(who, 'annotator')}" if who else ""
    yield f"Two annotators who label an item say the same in {agreed} of cases ({of})."
    if alpha is None:
        yield "All their labels are of one class, so that agreement beyond chance is undefined."
    else:
        yield (
            f"Beyond chance that is {_WRITE(alpha)} by {COEFFICIENTS['alpha'][0]} and "
            f"{_WRITE(ac)} by {COEFFICIENTS[ac1][0]}; 1 is perfect."
        )
        most = max(range(len(report["shares"])), key=lambda k: report["shares"][k])
        if ac - alpha > _APART:
            yield (
                f"They differ because {share(report['shares'][most])} of the labels are "
                f"{name(report['classes'][most])}: alpha and kappa put nearly all such agreement "
                "down to chance."
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
    everybody = _of(report, 0)
    metrics = {metric: COEFFICIENTS[metric][0] for metric in everybody[()]}
    level = everybody[()]["agreement"]["confidence_level"]
    if level is not None:
        yield Para(f"In brackets are {percent(level)} intervals.", "soft")
    coefficients = tuple(
        Row(metrics[metric], one["value"], one["low"], one["high"], one["status"])
        for metric, one in everybody[()].items()
    )
    block = Block("agreement", None, coefficients, level, writes=_WRITE)
    yield Forest(block, block.rows, common_axis([block]), "Of all annotators", "Coefficient",
                 on="page")  # fmt: skip
    yield _table(everybody, metrics, "Of all annotators", whole=True, on="text")
    ac1 = "ac2" if "ac2" in metrics else "ac1"
    metrics = {"agreement": "say the same", ac1: ac1.upper(), "alpha": "alpha",
               "cohen_kappa": "kappa", "pabak": "PABAK"}  # fmt: skip
    for named, caption in (
        (1, "Each annotator with the others who labeled the same items"),
        (2, "Two annotators on the items that both labeled"),
    ):
        if rows := _of(report, named):
            table = _table(rows, metrics, caption, most=_MOST_PRINTED)
            yield Fold(caption, [table], f"{len(rows):,}, who agree least first",
                       open=len(rows) <= _MOST_OPEN)  # fmt: skip


def _table(
    rows: Mapping[tuple[str, ...], Coefficients], metrics: Mapping[str, str], caption: str,
    **more: Any,
) -> Table:  # fmt: skip
    """Annotators or pairs a row, a coefficient a column."""
    cells = [
        [
            ", ".join(who) or "All annotators", f"{found['agreement']['n_items']:,}",
            *("-" if found[one]["value"] is None else with_interval(found[one], _WRITE)
              for one in metrics),
        ]
        for who, found in rows.items()
    ]  # fmt: skip
    statuses = [found["agreement"]["status"] for found in rows.values()]
    return Table(
        ["", "items", *metrics.values()], cells, caption, style="losses", **more,
        chips=["" if status == "undefined" else status for status in statuses],
    )  # fmt: skip


def terms(report: Report) -> dict[str, str]:
    """What the coefficients are."""
    shown = dict.fromkeys(row["metric"] for row in report["estimates"])
    return {COEFFICIENTS[one][0]: sentence(COEFFICIENTS[one][1]) for one in shown}


def document(report: Report) -> Document:
    """All that is said of `Agreement.to_dict`."""
    meanings = terms(report)
    return Document(
        "How far do annotators agree?",
        report,
        head=[
            f"{plural(report['n_labels'], 'label')}; {plural(report['n_items'], 'item')} with two "
            f"or more; {classes_text(report)}"
        ],
        answer=[" ".join(sentences(report))],
        facts={
            "Items with two labels or more": report["n_items"], "Labels": report["n_labels"],
            "Annotators": report["n_annotators"], "Classes": len(report["classes"]),
        },
        body=[
            Section("Agreement", [*tables(report)]),
            Section("What the words mean", [Terms(meanings)], on="text"),
        ],
        terms=meanings,
        warnings=report["warnings"],
    )  # fmt: skip
