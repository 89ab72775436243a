"""The estimates as one self-contained HTML file: nothing is fetched and nothing runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fewlabels.report import comparison
from fewlabels.report import diagnostics as beside
from fewlabels.report.blocks import (
    NOT_APPLICABLE,
    Block,
    Report,
    applicable,
    blocks,
    common_axis,
    status_notes,
    verdict,
)
from fewlabels.report.html import render
from fewlabels.report.profiles import profile
from fewlabels.report.text import headline, warnings

_OPEN_PLOTS = 24
"""With more plots than these only the leading classifier's are unfolded."""

_MOST_LISTED = 5_000
"""More estimates than these are not listed in a table, which would take megabytes."""


def render_html(report: Report, *, fragment: bool = False) -> str:
    """The report as a page of HTML that needs no other file, no network and no script.

    Every text of the report is escaped, control characters included; a content security policy
    forbids scripts and requests besides.

    `report` is the dictionary of `Estimates.report`. A fragment is the answer and the
    estimates.
    """
    every = blocks(report)
    applying, unfit = applicable(every)
    # Where no metric applies, each says so itself.
    shown, unfit = (applying, unfit) if applying else (every, [])
    metrics = _metrics(shown)
    ranked = [metric for metric in metrics if metric["block"].direction]
    profiles = [profile(entry) for entry in report.get("profiles") or ()]
    deciding, notes = warnings(report)
    kept = any(row.status == NOT_APPLICABLE for block in shown for row in block.rows)
    # Of the intervals: whether each holds the truth.
    hits = [
        row.low <= row.truth <= row.high
        for block in shown
        for row in block.rows
        if row.truth is not None and row.low is not None and row.high is not None
    ]
    balance: Mapping[str, Mapping[str, Any]] = report.get("class_balance") or {}
    labeled, estimated = balance.get("labeled") or {}, balance.get("estimated") or {}
    classes = [str(name) for name in report["classes"]] if labeled or estimated else []
    compared: Mapping[str, Any] = report.get("comparison") or {}
    unlabeled = report["n_items"] - report["n_labeled"]
    together = report.get("together")
    content: dict[str, Any] = {
        "report": report,
        "headline": headline(report),
        "reading": report.get("reading") or (),
        "deciding": deciding,
        "notes": [said for said in notes if kept or not said.startswith(NOT_APPLICABLE)],
        "unfit": unfit,
        "blocks": shown,
        "metrics": metrics,
        # Metrics by which classifiers can be ranked; none where there is little to overlook.
        "glance": ranked if len(ranked) > 1 and len(report["models"]) > 1 else [],
        "sizes": {size["group"]: size for size in report.get("groups", ())},
        "answer": metrics[0]["verdict"] if metrics else None,
        "statuses": status_notes(report, shown),
        "hits": (sum(hits), len(hits)) if hits else None,
        "balance": [(name, labeled.get(name), estimated.get(name)) for name in classes],
        "listed": len(report["estimates"]) <= _MOST_LISTED,
        "comparisons": [comparison.compared(part, unlabeled) for part in compared.values()],
        "together": comparison.whole(together) if together else None,
        "error_map": beside.error_map(report),
        "confusion": beside.confusion_maps(report),
        "similarity_maps": beside.similarity_maps(report),
        "partition": beside.partition(report),
        "anytime": beside.anytime_table(report),
        "answered": beside.answered_by(report),
        "answered_title": beside.ANSWERED_BY,
        "reference_trust": beside.reference_trust(report),
        "diagnostics": beside.diagnostics(report),
        "profiles": profiles,
        "unfolded": sum(len(p.histograms) + 1 for p in profiles) <= _OPEN_PLOTS,
    }
    if fragment:
        return render("report_fragment.html.j2", (), **content)
    return render("report.html.j2", **content)


def _metrics(shown: Sequence[Block]) -> list[dict[str, Any]]:
    """All that is shown of each metric; `groups` are by column, with an axis that they share."""
    found = []
    for block in shown:
        if block.group is not None:
            continue
        columns: dict[str, list[tuple[str, Block]]] = {}
        for part in shown:
            if part.metric == block.metric and part.group is not None:
                column, _, value = part.group.partition("=")
                columns.setdefault(column, []).append((value, part))
        found.append(
            {
                "block": block,
                "axis": common_axis([block]),
                "verdict": verdict(block),
                # To be read across, classifiers are in the order of all items.
                "order": [row.model for row in block.ranked()],
                "groups": [
                    (column, members, common_axis(part for _, part in members))
                    for column, members in columns.items()
                ],
            }
        )
    return found
