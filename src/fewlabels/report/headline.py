"""What estimates say first: what was read, and the warning that decides how far to trust them."""

from __future__ import annotations

from collections.abc import Sequence

from fewlabels.errors import decides
from fewlabels.ink import ink
from fewlabels.report.blocks import Report
from fewlabels.report.words import clean, plural, wrap


def headline(report: Report) -> str:
    """How many items, labels, classifiers and classes there are, and which class is positive."""
    elsewhere = reference_items(report)
    annotated = report.get("n_annotated")
    facts = [
        plural(report["n_items"], "item"),
        f"{report['n_labeled']:,} labeled",
        *([f"{annotated:,} with counts of annotators"] if annotated else []),
        *([elsewhere] if elsewhere else []),
        plural(len(report["models"]), "classifier"),
        plural(len(report["classes"]), "class", "classes"),
    ]
    positive = report.get("positive")
    return ", ".join(facts) + (f"; positive: {clean(positive)}" if positive is not None else "")


def reference_items(report: Report) -> str:
    """How many labeled items from elsewhere there are; nothing where there are none."""
    reference = report.get("reference")
    return plural(reference["n_items"], "reference item") if reference else ""


def reading(report: Report) -> Sequence[str]:
    """Which column was taken for what, where nobody had said it: a line each."""
    return report.get("reading") or ()


def first_lines(report: Report, width: int) -> list[str]:
    """Headline and reading as text."""
    lines = [ink(line, "title") for line in wrap(headline(report), width)]
    for said in reading(report):
        lines += [ink(f"  {line}", "soft") for line in wrap(said, width - 2, "  ")]
    return lines


def warnings(report: Report) -> tuple[str | None, Sequence[str]]:
    """The warning that decides how far to trust the estimates, if any does, and the others."""
    said: Sequence[str] = report.get("warnings") or ()
    if said and decides(said[0]):
        return said[0], said[1:]
    return None, said
