"""Estimates for other programs: a Markdown table, JUnit XML, a model card's index, flat numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from xml.etree import ElementTree

from fewlabels.report.blocks import Block, Row, blocks, status_notes
from fewlabels.report.words import escape_control, percent, plural, speaks_of

Report = Mapping[str, Any]

_MOST_WARNINGS = 8


def render_markdown(report: Report) -> str:
    """A table per group, a row per classifier, for a pull request or the summary of a CI job.

    `report` is the dictionary of `Estimates.to_dict`.
    """
    shown, lines = blocks(report), list[str]()
    labeled = f"{report['n_items']:,} items, {report['n_labeled']:,} labeled"
    if report.get("n_annotated"):
        labeled += f", {report['n_annotated']:,} with counts of annotators"
    lines += [f"**fewlabels**: {labeled}", ""]
    for group in dict.fromkeys(block.group for block in shown):
        members = [block for block in shown if block.group == group]
        if group is not None:
            lines += [f"**{escaped(group)}**", ""]
        lines.append("| | " + " | ".join(escaped(block.metric) for block in members) + " |")
        lines.append("|---|" + "---|" * len(members))
        for model in report["models"]:
            cells = [_figures(b, row) for b in members for row in b.rows if row.model == model]
            lines.append(f"| {escaped(model)} | " + " | ".join(cells) + " |")
        lines.append("")
    lines.append(
        f"{percent(report['confidence_level'])} intervals {speaks_of(report)}; method "
        f"{escaped(report['method'])}, fewlabels {report['fewlabels']}."
    )
    notes = [f"{status}: {message}" for status, message in status_notes(report, shown)]
    notes += report.get("warnings") or []
    lines += ["", *(f"- {escaped(note)}" for note in notes[:_MOST_WARNINGS])]
    if len(notes) > _MOST_WARNINGS:
        lines.append(f"- and {plural(len(notes) - _MOST_WARNINGS, 'more warning')}")
    return "\n".join(lines) + "\n"


def _figures(block: Block, row: Row) -> str:
    text = " ".join(filter(None, block.figures(row)))
    return text if row.status == "ok" or row.value is None else f"{text} ({row.status})"


# An underscore inside a word is no emphasis, and names are full of them.
_SPECIAL = re.compile(r"[\\`*\[\]<>|~&$#]|(?<![^\W_])_|_(?![^\W_])")

# Where a host would link text to a person, an issue, a commit or an address, escaped or not; a
# zero-width space there keeps it from that.
_LIVE = re.compile(
    r"(?<=[@#])(?=\S)|(?<=[!%&~$])(?=\w)|(?<=\b[Gg][Hh]-)(?=\d)|(?<=:)(?=//)|(?<=\bwww)(?=\.)"
    r"|(?<=\b[0-9a-f]{4})(?=[0-9a-f]{3,36}\b)"
)


def escaped(text: object) -> str:
    r"""Text that Markdown shows as it is.

    Examples
    --------
    >>> print(escaped("ERM_seed1 | _a_ <b>"))
    ERM_seed1 \| \_a\_ \<b\>
    """
    return _SPECIAL.sub(lambda match: "\\" + match[0], _LIVE.sub("\u200b", escape_control(text)))


class Case(NamedTuple):
    """One condition on one classifier: a test case of JUnit; `failure` says why it is not met."""

    suite: str
    name: str
    failure: str | None


def render_junit(cases: Sequence[Case]) -> str:
    """Conditions as the XML of JUnit, which hosted CI shows beside other tests."""
    counts = {"tests": str(len(cases)), "failures": str(sum(c.failure is not None for c in cases))}
    tree = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(
        tree, "testsuite", {"name": "fewlabels", **counts, "errors": "0"}
    )
    for case in cases:
        named = {"classname": escape_control(case.suite), "name": escape_control(case.name)}
        made = ElementTree.SubElement(suite, "testcase", named)
        if case.failure is not None:
            why = escape_control(case.failure)
            ElementTree.SubElement(made, "failure", {"message": why}).text = why
    ElementTree.indent(tree)
    written = ElementTree.tostring(tree, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{written}\n'


def flat_numbers(report: Report) -> dict[str, float]:
    """`model/metric[/group]` with `_low` and `_high`, for whatever logs numbers by name.

    What is undefined has no number, and is left out.
    """
    numbers = {name: float(report[name]) for name in ("n_items", "n_labeled")}
    for row in report["estimates"]:
        words = [row["model"], row["metric"], *([] if row["group"] is None else [row["group"]])]
        # What MLflow and others take in a name.
        name = "/".join(re.sub(r"[^\w\-. /:]", "_", str(word)) for word in words)
        for key, value in (("", row["value"]), ("_low", row["low"]), ("_high", row["high"])):
            if value is not None:
                numbers[f"{name}{key}"] = float(value)
    return numbers


def model_index(report: Report, model: str, dataset: str, task: str) -> dict[str, Any]:
    """The `model-index` of a Hugging Face model card, with intervals as arguments of the metric.

    `dataset` and `task` are the names that the card shows; it requires both.
    """
    level = percent(report["confidence_level"])
    metrics = [
        {
            "type": row["metric"],
            "name": row["metric"],
            "value": row["value"],
            "args": {
                "low": row["low"],
                "high": row["high"],
                "confidence_level": report["confidence_level"],
                "status": row["status"],
                "note": f"{level} interval {speaks_of(report)} from {report['n_labeled']:,} labels",
            },
        }
        for row in report["estimates"]
        if row["model"] == model and row["group"] is None and row["value"] is not None
    ]
    results = {
        "task": {"type": task},
        "dataset": {"name": dataset, "type": dataset},
        "metrics": metrics,
        "source": {"name": f"fewlabels {report['fewlabels']}, method {report['method']}"},
    }
    return {"model-index": [{"name": model, "results": [results]}]}
