"""What every answer about one classifier says: who it is, how many labels, how it was fitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fewlabels.errors import Status, decides, gravest_first
from fewlabels.report.blocks import Report
from fewlabels.report.document import Document, Fold, Node, Section, Table, name
from fewlabels.report.words import (
    classes_text,
    escape_control,
    fact,
    made_by,
    percent,
    plural,
    speaks_of,
)

UNKNOWN = "not known"

_NAMES = {
    "fpr": "false-positive rate",
    "fnr": "false-negative rate",
    "tpr": "true-positive rate",
    "tnr": "true-negative rate",
    "f1": "F1",
    "predicted_positive_rate": "called positive",
    "cost": "cost per item",
    "cost_of_all": "cost, all positive",
    "cost_of_none": "cost, none positive",
    "ppv": "PPV",
    "npv": "NPV",
}
"""Names of rates that differ from their keys."""

RATES = {
    "Threshold": "An item is called positive where its score is at least the threshold. Thresholds "
    "are in the units of the file.",
    "Precision": "Of the items called positive, the share that is.",
    "Recall, or true-positive rate": "Of the items that are positive, the share that is called so.",
    "False-positive rate": "Of the items that are not positive, the share that is called so.",
}
"""What rates at a threshold are."""


class Interval(NamedTuple):
    """A value between the ends of its interval; None where they are not known."""

    value: float | None
    low: float | None
    high: float | None

    @classmethod
    def from_source(cls, source: Mapping[str, Any] | None) -> Interval:
        """A value with its interval, from its entry in the report."""
        entry = source or {}
        return cls(entry.get("value"), entry.get("low"), entry.get("high"))

    @property
    def parts(self) -> tuple[str, str]:
        """The value, and behind it the interval in brackets; the latter is "" if not known."""
        if self.value is None:
            return UNKNOWN, ""
        if self.low is None or self.high is None:
            return f"{self.value:.3f}", ""
        return f"{self.value:.3f}", f"[{self.low:.3f}, {self.high:.3f}]"

    @property
    def text(self) -> str:
        """Value and interval."""
        return " ".join(filter(None, self.parts))


def rate_name(key: str) -> str:
    """What a rate is called."""
    return _NAMES.get(key, escape_control(key.replace("_", " ")))


def level(report: Report) -> str:
    """Confidence level of the report's intervals."""
    return percent(report["confidence_level"])


def about_one(
    title: str, report: Report, answer: str, body: Sequence[Node], terms: Mapping[str, str],
    *, basis: Sequence[str] = (), numbers: str = "",
) -> Document:  # fmt: skip
    """The document of an answer, with what all of them say.

    `numbers` are what has the confidence level; without them it rests on no label, but on `basis`.
    """
    labeled, items = report["n_labeled"], plural(report["n_items"], "item")
    read = f"{items}, {labeled:,} labeled, {report['n_labeled_positive']:,} of them positive"
    read = read if labeled else f"{items}, none labeled"
    rests = f"This rests on {plural(labeled, 'label')} among {items}."
    if labeled in (0, report["n_items"]):
        rests = f"Every one of the {items} is labeled."
        if not labeled:
            rests = f"No label among {items}: what you see is the method's prior."
    warnings = _warnings(report)
    deciding = warnings[0] if warnings and decides(warnings[0]) else None
    whole = report["estimand"] != "sample"
    about = f"; {level(report)} {numbers} {speaks_of(report)}" if numbers else ""
    return Document(
        title,
        report,
        head=[f"{name(report['model'])}: {read}; {classes_text(report)}"],
        answer=[answer],
        basis=[rests, *basis] if numbers else basis,
        facts={
            "Classifier": name(report["model"]),
            "Positive class": name(report["positive"]),
            "Items": report["n_items"],
            "Labeled": labeled,
            "Labeled positives": report["n_labeled_positive"],
        },
        body=body,
        more=_diagnostics(report),
        terms={
            **terms,
            "What the numbers are about": "The population that the items come from, not these "
            "items only." if whole else "These items only.",
        },
        foot=[made_by(report) + about],
        warnings=warnings[deciding is not None :],
        deciding=deciding,
    )  # fmt: skip


def _warnings(report: Report) -> list[str]:
    """All warnings, the gravest first, with what the status means where none of them says it."""
    status, said = report["status"], list(report["warnings"])
    known = {member.value for member in Status} - {Status.OK.value}
    if status in known and not any(text.startswith(f"{status}: ") for text in said):
        note = Status(status).message.partition(", so it is not ranked")[0]  # there is but one
        said.append(f"{status}: {note}")
    return gravest_first(said)


def _diagnostics(report: Report) -> list[Node]:
    """What the fit knows of itself, folded away."""
    rows = [(str(key).replace("_", " "), fact(value))
            for key, value in report["diagnostics"].items()]  # fmt: skip
    table = Table(["diagnostic", "value"], rows, "Diagnostics", sides="l")
    fold = Fold(f"Of the fit by {name(report['method'])}", [table], style="between")
    return [Section("Diagnostics", [fold], on="page")] if rows else []
