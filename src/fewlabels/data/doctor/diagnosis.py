"""The result of `diagnose`: plain values, and text that reads well in a narrow terminal."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from fewlabels.errors import listed, one_line
from fewlabels.kernels.arrays import Frozen
from fewlabels.report.shown import Result
from fewlabels.report.words import ink

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class Finding:
    """Something to know about the data: what it is, where, and how to mend it.

    With an error, `fewlabels estimate` would refuse the data; its message holds the mend.
    """

    severity: Severity
    what: str
    where: str
    mend: str


@dataclass(frozen=True, repr=False)
class Diagnosis(Frozen, Result):
    """What `fewlabels.diagnose` returns.

    `roles` maps every column (or NPZ key) to its role in words. `counts` are the numbers of
    items, labels, classifiers and classes. `class_balance` holds the `classes`, the share of each
    among the `labels` (None without labels), and its mean probability as `predicted` by each
    classifier (None for raw scores). `positive` is the positive class of two, `reading` says
    what was recognised without being said;
    `command` is the command line that reads the data so (None for a frame, or where it cannot be
    read), and `columns` the same as the TOML file of --columns.
    """

    _row_fields = ("severity", "what", "where", "mend")

    name: str
    roles: Mapping[str, str]
    counts: Mapping[str, int]
    class_balance: Mapping[str, Any]
    findings: tuple[Finding, ...]
    positive: str | None = None
    reading: tuple[str, ...] = ()
    command: str | None = None
    columns: str = ""

    @property
    def ok(self) -> bool:
        """Whether the data can be used."""
        return not any(finding.severity == "error" for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Everything as a dictionary of plain values."""
        return {
            "name": self.name,
            "ok": self.ok,
            "counts": dict(self.counts),
            "roles": dict(self.roles),
            "class_balance": dict(self.class_balance),
            "findings": [asdict(finding) for finding in self.findings],
            "positive": self.positive,
            "reading": list(self.reading),
            "command": self.command,
        }

    @property
    def rows(self) -> tuple[Finding, ...]:
        """The findings, of which a table has one each."""
        return self.findings

    def summary(self, width: int = 80) -> str:
        """Everything as text, no line longer than `width`."""
        words = ("items", "labeled", "classifiers", "classes")
        keys = ("n_items", "n_labeled", "n_models", "n_classes")
        said = [
            f"{self.counts[k]:,} "
            f"{w.removesuffix('s') if self.counts[k] == 1 and k != 'n_classes' else w}"
            for k, w in zip(keys, words, strict=True)
            if k in self.counts
        ]
        headline = one_line(self.name) + (f": {', '.join(said)}" if said else "")
        if self.positive is not None:
            headline += f"; positive: {one_line(self.positive)}"
        reading = [t for line in self.reading for t in _wrapped(one_line(line), width, "  ")]
        commands = [self.command] if self.command else []
        if self.command and "--columns columns.toml" in self.command:
            name = shlex.quote(self.name)
            commands.insert(0, f"fewlabels doctor {name} --write columns.toml")
        following = [line for command in commands for line in _command(command, width)]
        sections = [
            _wrapped(headline, width),
            ["Recognised", *reading] if reading else [],
            _columns(self.roles, width),
            _balance(self.class_balance, width),
            _findings(self.findings, width),
            ["Next", *following] if following else [],
        ]
        return "\n\n".join("\n".join(lines) for lines in sections if lines)


_KINDS = {
    "label": "labels",
    "item": "item",
    "probability": "probabilities",
    "hard prediction": "hard predictions",
    "score": "scores",
    "annotators": "annotator counts",
    "domain": "domain",
    "cluster": "clusters",
    "weight": "weight",
    "group": "groups",
    "not used": "not used",
    "not recognised": "not recognised",
}
"""How the role of a column begins -> what the summary calls all such columns."""

_MOST_COLUMNS = 12
_MOST_ROWS = 21
_INDENT = 20
_NAME = 24
_SHARE = 8
"""Widths of the first column of the lists, of a classifier's name, and of a class's share."""


def _command(command: str, width: int) -> list[str]:
    """A command line, broken between options as a shell reads it."""
    lines = ["  "]
    argument = r"(?:'[^']*'|\S)+"
    for word in re.findall(rf"--\S+ (?!--){argument}|{argument}", command):
        if len(lines[-1]) + len(word) + 2 > width and lines[-1].strip():
            lines[-1] += "\\"
            lines.append("      ")
        lines[-1] += f"{word} "
    return [line.rstrip() for line in lines]


def _columns(roles: Mapping[str, str], width: int) -> list[str]:
    lines = []
    for kind, title in _KINDS.items():
        names = [column for column, role in roles.items() if role.startswith(kind)]
        if names:
            lines += _wrapped(listed(names, _MOST_COLUMNS), width, f"  {title}".ljust(_INDENT))
    others = {c: r for c, r in roles.items() if not r.startswith(tuple(_KINDS))}
    for column, role in others.items():
        lines += _wrapped(role, width, f"  {one_line(column, _INDENT - 4)}".ljust(_INDENT))
    return ["Columns", *lines] if lines else []


def _balance(balance: Mapping[str, Any], width: int) -> list[str]:
    classes: Sequence[str] = balance.get("classes", ())
    if not classes:
        return []
    fitting = max((width - _NAME - 2) // _SHARE, 1)
    cut = len(classes) > fitting
    shown = classes[: fitting - 1] if cut else classes
    more = " ..." if cut else ""
    head = "".join(one_line(c, _SHARE - 1).rjust(_SHARE) for c in shown)
    lines = ["Share of class".ljust(_NAME + 2) + head + more]
    rows = [("among the labels", balance["labels"]), *balance["predicted"].items()]
    for name, shares in rows[:_MOST_ROWS]:
        values = ["-" if shares is None else f"{shares[c]:.1%}" for c in shown]
        cells = "".join(v.rjust(_SHARE) for v in values)
        lines.append(f"  {one_line(name, _NAME - 1)}".ljust(_NAME + 2) + cells + more)
    left = len(rows) - _MOST_ROWS
    return [*lines, f"  ... and {left} more"] if left > 0 else lines


def _findings(findings: Sequence[Finding], width: int) -> list[str]:
    if not findings:
        return ["No problems found."]
    lines = ["Findings"]
    for finding in findings:
        # An error's message already names the place and the mend.
        where = "" if finding.severity == "error" else f"{finding.where}: "
        text = one_line(f"{where}{finding.what}")
        first, *rest = _wrapped(text, width, f"  {finding.severity}".ljust(11))
        kind = finding.severity
        shown = ink(kind, kind) if kind != "info" else kind
        lines += [first.replace(kind, shown, 1), *rest]
        if finding.mend:
            lines += _wrapped(one_line(finding.mend), width, " " * 11 + "-> ")
    return lines


def _wrapped(text: str, width: int, first: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_on_hyphens=False,
    )
