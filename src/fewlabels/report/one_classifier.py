"""What every answer about one classifier says: who it is, how many labels, how it was fitted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from fewlabels.errors import Status, decides, gravest_first
from fewlabels.report.blocks import Report
from fewlabels.report.diagnostics import spoken
from fewlabels.report.document import Document, Fold, Node, Section, Table, name
from fewlabels.report.estimates import rests_on
from fewlabels.report.words import (
    classes_text,
    escape_control,
    fact,
    made_by,
    number_format,
    percent,
    plural,
    score_text,
    speaks_of,
    with_interval,
)

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


WRITE = number_format([1.0])
"""How rates are written."""


def spelled(value: float | None, low: float | None, high: float | None) -> str:
    """A rate with its interval."""
    return with_interval({"value": value, "low": low, "high": high}, WRITE)


def score_writer(report: Report) -> Callable[[float | None], str]:
    """How scores and thresholds are written."""
    return partial(score_text, probability=report["unit"] == "probability")


def rate_name(key: str) -> str:
    """What a rate is called."""
    return _NAMES.get(key, escape_control(key.replace("_", " ")))


def about_one(
    title: str, report: Report, answer: str, body: Sequence[Node], terms: Mapping[str, str],
    *, basis: Sequence[str] = (), numbers: str = "",
) -> Document:  # fmt: skip
    """The document of an answer, with what all of them say.

    `numbers` are what has the confidence level; without them it rests on no label, but on `basis`.
    """
    labeled, positives = report["n_labeled"], report["n_labeled_positive"]
    read = f"{labeled:,} labeled, {positives:,} of them positive" if labeled else "none labeled"
    level = percent(report["confidence_level"])
    warnings = _warnings(report)
    deciding = warnings[0] if warnings and decides(warnings[0]) else None
    rows = [(spoken(key), fact(value)) for key, value in report["diagnostics"].items()]
    fold = Fold(
        f"Of the fit by {name(report['method'])}",
        [Table(["diagnostic", "value"], rows, "Diagnostics", sides="l")],
        style="between",
    )
    return Document(
        title,
        report,
        head=[
            f"{name(report['model'])}: {plural(report['n_items'], 'item')}, {read}; "
            f"{classes_text(report)}"
        ],
        answer=[answer],
        basis=[rests_on(report), *basis] if numbers else basis,
        facts={
            "Classifier": name(report["model"]),
            "Positive class": name(report["positive"]),
            "Items": report["n_items"],
            "Labeled": labeled,
            "Labeled positives": positives,
        },
        body=body,
        more=[Section("Diagnostics", [fold], on="page")] if rows else [],
        terms=terms,
        foot=[made_by(report) + (f"; {level} {numbers} {speaks_of(report)}" if numbers else "")],
        warnings=warnings[deciding is not None :],
        deciding=deciding,
    )


def _warnings(report: Report) -> list[str]:
    """All warnings, the gravest first, with what the status means where none of them says it."""
    status, said = report["status"], list(report["warnings"])
    known = {member.value for member in Status} - {Status.OK.value}
    if status in known and not any(text.startswith(f"{status}: ") for text in said):
        note = Status(status).message.partition(", so it is not ranked")[0]  # there is but one
        said.append(f"{status}: {note}")
    return gravest_first(said)
