"""What every answer about one classifier says: who it is, how many labels, how it was fitted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from fewlabels.errors import Status
from fewlabels.report.blocks import Report
from fewlabels.report.diagnostics import spoken
from fewlabels.report.document import Document, Fold, Node, Section, Table, counts, name
from fewlabels.report.estimates import rests_on
from fewlabels.report.words import (
    fact,
    made_by,
    number_format,
    percent,
    score_text,
    speaks_of,
    with_interval,
)

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


def about_one(
    title: str, report: Report, answer: str, body: Sequence[Node], terms: Mapping[str, str],
    *, basis: Sequence[str] = (), numbers: str = "",
) -> Document:  # fmt: skip
    """The document of an answer, with what all of them say.

    `numbers` are what has the confidence level; without them it rests on no label, but on `basis`.
    """
    level = percent(report["confidence_level"])
    rows = [(spoken(key), fact(value)) for key, value in report["diagnostics"].items()]
    fold = Fold(
        f"Of the fit by {name(report['method'])}",
        [Table(["diagnostic", "value"], rows, "Diagnostics", sides="l")],
        style="between",
    )
    return Document(
        title,
        report,
        counts(report) | {"Labeled positives": report["n_labeled_positive"]},
        answer=[answer],
        basis=[rests_on(report), *basis] if numbers else basis,
        body=body,
        more=[Section("Diagnostics", [fold], on="page")],
        terms=terms,
        foot=[made_by(report) + (f"; {level} {numbers} {speaks_of(report)}" if numbers else "")],
        warnings=_warnings(report),
    )


def _warnings(report: Report) -> list[str]:
    """All warnings, with what the status means where none of them says it."""
    status, said = report["status"], list(report["warnings"])
    known = {member.value for member in Status} - {Status.OK.value}
    if status in known and not any(text.startswith(f"{status}: ") for text in said):
        note = Status(status).message.partition(", so it is not ranked")[0]  # there is but one
        said.append(f"{status}: {note}")
    return said
