"""How far annotators agree among themselves, as text and for a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fewlabels.report.words import (
    NARROWEST,
    as_text,
    escape_control,
    fitted,
    number_format,
    percent,
    plural,
    share,
    warning_lines,
    with_interval,
    wrap,
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

_MOST_ROWS = 10
_APART = 0.2
"""Alpha is this far below AC1 where a class is rare."""


@dataclass(frozen=True)
class Agreed:
    """The part of a report on annotators (`Agreement.to_dict`), its rows by whom they are of."""

    report: Mapping[str, Any]

    def of(self, named: int) -> list[tuple[tuple[Any, Any], Coefficients]]:
        """The coefficients of all annotators (0 of them `named`), of each, or of pairs."""
        out: dict[tuple[Any, Any], Coefficients] = {}
        for row in self.report["estimates"]:
            who = row["annotator"], row["other"]
            if sum(name is not None for name in who) == named:
                out.setdefault(who, {})[row["metric"]] = row
        return list(out.items())

    @cached_property
    def all(self) -> Coefficients:
        """The coefficients of all annotators, by name."""
        return self.of(0)[0][1]

    @property
    def chance_corrected(self) -> str:
        """AC1, or AC2 if that is what there is."""
        return "ac2" if "ac2" in self.all else "ac1"

    @property
    def shown(self) -> list[str]:
        """All coefficients that there are."""
        return list(dict.fromkeys(row["metric"] for row in self.report["estimates"]))

    @property
    def metrics(self) -> list[str]:
        """What a table of annotators shows."""
        return ["agreement", self.chance_corrected, "alpha", "cohen_kappa", "pabak"]

    def rows(self, named: int) -> list[tuple[tuple[Any, Any], Coefficients]]:
        """Annotators (1) or pairs (2), those who agree least first; with few items last."""
        if named == 1 and self.report["n_annotators"] == 2:
            return []  # they are a pair
        said = [(who, found["agreement"], found) for who, found in self.of(named)]
        said.sort(key=lambda row: (row[1]["status"] != "ok", row[1]["value"]))
        return [(who, found) for who, _, found in said]

    def figures(self, row: Mapping[str, Any]) -> tuple[str, str]:
        """Value and interval as they are written."""
        if row["value"] is None:
            return "-", ""
        value, _, ends = with_interval(row, number_format([1.0])).partition(" ")
        return value, ends

    def sentences(self) -> Iterator[str]:
        """What the numbers say."""
        value = {name: row["value"] for name, row in self.all.items()}
        ac, alpha, write = value[self.chance_corrected], value["alpha"], number_format([1.0])
        who, n_items = self.report["n_annotators"], plural(self.report["n_items"], "item")
        of = f"{n_items}, {plural(who, 'annotator')}" if who else n_items
        agreed = share(value["agreement"])
        yield f"Two annotators who label an item say the same in {agreed} of cases ({of})."
        if alpha is None:
            yield "All their labels are of one class, so that agreement beyond chance is undefined."
        else:
            yield (
                f"Beyond chance that is {write(alpha)} by {COEFFICIENTS['alpha'][0]} and "
                f"{write(ac)} by {COEFFICIENTS[self.chance_corrected][0]}; 1 is perfect."
            )
            most = max(range(len(self.report["shares"])), key=lambda k: self.report["shares"][k])
            if ac - alpha > _APART:
                yield (
                    f"They differ because {share(self.report['shares'][most])} of the labels are "
                    f"{escape_control(self.report['classes'][most])}: alpha and kappa put nearly "
                    "all such agreement down to chance."
                )
        found = self.report["independence"]
        if found is not None:
            p = f"p = {found['p_value']:.3f}".replace("0.", ".", 1)
            yield (
                f"Who labels explains {share(found['explained'])} of the disagreement on "
                f"an item ({p})."
                if found["p_value"] < 0.05
                else f"Nothing shows that who labels an item explains its labels ({p})."
            )


def agreement_lines(agreed: Agreed, width: int) -> Iterator[str]:
    """The part on annotators, in lines of at most `width` columns."""
    yield from wrap(" ".join(agreed.sentences()), width)
    level = agreed.all["agreement"]["confidence_level"]
    level = "" if level is None else f"[{percent(level)} interval]"
    rows = [["", "value", level, ""]]
    for name, row in agreed.all.items():
        status = "" if row["status"] in ("ok", "undefined") else row["status"]
        rows.append([COEFFICIENTS[name][0], *agreed.figures(row), status])
    yield from ["", *fitted(rows, "lrl", width)]
    for named, heading in ((1, "With the others"), (2, "Pairs")):
        people = agreed.rows(named)
        rows = [["", "items", "say the same", "", *agreed.metrics[1:]]]
        for (annotator, other), found in people[:_MOST_ROWS]:
            name = annotator if other is None else f"{annotator}, {other}"
            first, *others = (agreed.figures(found[metric]) for metric in agreed.metrics)
            n_items = str(found["agreement"]["n_items"])
            rows.append([name, n_items, *first, *(value for value, _ in others)])
        if people:
            more = f" ({_MOST_ROWS} of {len(people)}, who agree least)" * (len(people) > _MOST_ROWS)
            yield from ["", f"{heading}{more}", *fitted(rows, "lrrlr", width)]


def agreement_meanings(agreed: Agreed) -> Iterator[str]:
    """What the coefficients are, a sentence each."""
    yield from (": ".join(COEFFICIENTS[name]) for name in agreed.shown)


def render_agreement(report: Mapping[str, Any], width: int = 80) -> str:
    """The agreement of annotators as text; `report` is the dictionary of `Agreement.to_dict`."""
    width, agreed = max(width, NARROWEST), Agreed(report)
    lines = [*agreement_lines(agreed, width), ""]
    for sentence in agreement_meanings(agreed):
        lines += wrap(sentence, width, "  ")
    return as_text([*lines, *warning_lines(report, width)])
