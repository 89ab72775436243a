"""The result of `diagnose`: plain values, and their rendering as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from fewlabels.shown import Shown

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
class Diagnosis(Shown):
    """What `fewlabels.diagnose` returns.

    `roles` maps every column (or NPZ key) to its role in words. `counts` are the numbers of
    items, labels, classifiers and classes. `class_balance` holds the `classes`, the share of each
    among the `labels` (None without labels), and its mean probability as `predicted` by each
    classifier (None for raw scores). `positive` is the positive class of two, `reading` says
    what was recognised without being said;
    `command` is the command line that reads the data so (None for a frame, or where it cannot be
    read), and `columns` the same as the TOML file of --columns.
    """

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

    def summary(self, width: int = 80) -> str:
        """Everything as text, no line longer than `width`."""
        from fewlabels.frames.doctor.text import render

        return render(self, width)
