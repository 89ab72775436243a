"""What was recognised in a file, what is wrong with it and how to mend it, and how to go on."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from fewlabels.errors import listed
from fewlabels.report.blocks import Report
from fewlabels.report.document import Document, Drawing, Node, Para, Section, Table, name, plain
from fewlabels.report.words import escape_control

_KINDS = {
    "label": "labels", "item": "item", "probability": "probabilities",
    "hard prediction": "hard predictions", "score": "scores", "annotators": "annotator counts",
    "domain": "domain", "cluster": "clusters", "weight": "weight", "group": "groups",
    "not used": "not used", "not recognised": "not recognised",
}  # fmt: skip
"""How the role of a column begins -> what all such columns are called."""

_COUNTS = {
    "Items": "n_items", "Labeled": "n_labeled", "Classifiers": "n_models", "Classes": "n_classes",
}  # fmt: skip
_MOST_COLUMNS, _MOST_ROWS = 12, 21


def document(report: Report) -> Document:
    """All that is said of `Diagnosis.to_dict`."""
    found, positive, command = report["counts"], report["positive"], report["command"]
    commands = [command] if command else []
    if command and "--columns columns.toml" in command:
        commands.insert(0, f"fewlabels doctor {shlex.quote(report['name'])} --write columns.toml")
    following: list[Node] = [Para(f"`{one}`", on="page") for one in commands]
    following += [Drawing("", None, lines=partial(_lines, escape_control(one))) for one in commands]
    sections: dict[str, Sequence[Node]] = {
        "Columns": [*_columns(report["roles"])],
        "Evidence (log-odds of a role: more is surer, 0 is not used)":
            [*_evidence(report["evidence"])],
        "Share of each class": [*_balance(report["class_balance"])],
        "Findings": [*_findings(report["findings"])] or [Para("No problems found.")],
        "Next": following,
    }  # fmt: skip
    return Document(
        "Can these data be used?",
        report,
        {
            "File": name(report["name"]),
            **{what: found.get(key) for what, key in _COUNTS.items()},
            "Positive": None if positive is None else name(positive),
        },
        body=[Section(title, nodes) for title, nodes in sections.items()],
    )  # fmt: skip


def _lines(command: str, width: int) -> Iterator[str]:
    """A command line, broken between options as a shell reads it."""
    line, argument = "  ", r"(?:'[^']*'|\S)+"
    for word in re.findall(rf"--\S+ (?!--){argument}|{argument}", command):
        if len(line) + len(word) + 2 > width and line.strip():
            yield f"{line}\\"
            line = "      "
        line += f"{word} "
    yield line.rstrip()


def _columns(roles: Mapping[str, str]) -> Iterator[Table]:
    """Columns by their role; of many of one role the first."""
    rows = []
    for kind, title in _KINDS.items():
        if names := [column for column, role in roles.items() if role.startswith(kind)]:
            rows.append([title, listed(names, _MOST_COLUMNS)])
    rows += [[c, role] for c, role in roles.items() if not role.startswith(tuple(_KINDS))]
    yield Table(["", ""], rows, "Columns by their role", "l", names=0, wrapped=True)


def _evidence(evidence: Sequence[Mapping[str, Any]]) -> Iterator[Table]:
    """What speaks for the role of each column, and which comes next."""
    rows = []
    for one in evidence:
        what = f"{one['role']} {one['score']:+g}" if one["score"] else one["role"]
        if one["runner_up_score"] and one["runner_up_score"] > 0:
            what += f", else {one['runner_up']} {one['runner_up_score']:+g}"
        rows.append([one["column"] or "(no name)", f"{what}: {one['reason']}"])
    yield Table(["", ""], rows, "Evidence for the role of each column", "l", wrapped=True,
                most=_MOST_ROWS)  # fmt: skip


def _balance(balance: Mapping[str, Any]) -> Iterator[Table]:
    """The share of each class among the labels, and as each classifier sees it."""
    classes: Sequence[str] = balance.get("classes", ())
    if classes:
        rows = [
            [who, *("-" if shares is None else f"{shares[one]:.1%}" for one in classes)]
            for who, shares in [("among the labels", balance["labels"]),
                                *balance["predicted"].items()]
        ]  # fmt: skip
        yield Table(["", *classes], rows, "Share of each class", most=_MOST_ROWS, widest=24)


def _findings(findings: Sequence[Mapping[str, str]]) -> Iterator[Node]:
    """The gravest first, each with what to do about it."""
    for one in findings:
        # An error's message already names the place and the mend.
        where = "" if one["severity"] == "error" else f"{one['where']}: "
        role = one["severity"] if one["severity"] != "info" else ""
        yield Para(f"{one['severity']}: {plain(where + one['what'])}", role)  # type: ignore[arg-type]
        if one["mend"]:
            yield Para(f"  -> {plain(one['mend'])}")
