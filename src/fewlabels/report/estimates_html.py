"""The estimates as one self-contained HTML file: nothing is fetched and nothing runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fewlabels.report import answered_by as beliefs
from fewlabels.report import comparison, heat_map
from fewlabels.report.axis import Axis
from fewlabels.report.blocks import (
    NOT_APPLICABLE,
    Block,
    Report,
    Row,
    Verdict,
    applicable,
    blocks,
    common_axis,
    status_notes,
    verdict,
)
from fewlabels.report.headline import headline, reading, warnings
from fewlabels.report.html import render
from fewlabels.report.profiles import profile

_OPEN_PLOTS = 24
"""With more plots than these only the leading classifier's are unfolded."""

_MOST_LISTED = 5_000
"""More estimates than these are not listed in a table, which would take megabytes."""


@dataclass(frozen=True)
class _Group:
    """The values of one column, each with its block."""

    column: str
    blocks: tuple[tuple[str, Block], ...]
    axis: Axis


@dataclass(frozen=True)
class _Metric:
    """All that is shown of one metric."""

    block: Block
    axis: Axis
    verdict: Verdict | None
    groups: tuple[_Group, ...]

    def in_order(self, block: Block) -> list[Row]:
        """Rows of a group in the order of the ranking of all items, to be read across."""
        order = {row.model: place for place, row in enumerate(self.block.ranked())}
        return sorted(block.rows, key=lambda row: order.get(row.model, len(order)))


def render_html(report: Report, *, fragment: bool = False) -> str:
    """The report as a page of HTML that needs no other file, no network and no script.

    Every text of the report is escaped, control characters included; a content security policy
    forbids scripts and requests besides.

    `report` is the dictionary of `Estimates.report`. A fragment is the answer and the
    estimates.
    """
    if fragment:
        return render("report_fragment.html.j2", (), **_shown(report))
    return render("report.html.j2", **_shown(report))


def _shown(report: Report) -> dict[str, Any]:
    """What the templates of estimates show."""
    every = blocks(report)
    applying, unfit = applicable(every)
    # Where no metric applies, each says so itself.
    shown, unfit = (applying, unfit) if applying else (every, [])
    metrics = _metrics(shown)
    profiles = [profile(entry) for entry in report.get("profiles") or ()]
    deciding, notes = warnings(report)
    kept = any(row.status == NOT_APPLICABLE for block in shown for row in block.rows)
    return {
        "report": report,
        "headline": headline(report),
        "reading": reading(report),
        "deciding": deciding,
        "notes": [said for said in notes if kept or not said.startswith(NOT_APPLICABLE)],
        "unfit": unfit,
        "blocks": shown,
        "metrics": metrics,
        "glance": _glance(report, metrics),
        "sizes": {size["group"]: size for size in report.get("groups", ())},
        "answer": metrics[0].verdict if metrics else None,
        "statuses": status_notes(report, shown),
        "hits": _hits(shown),
        "balance": _balance(report),
        "listed": len(report["estimates"]) <= _MOST_LISTED,
        "comparisons": comparison.compared(report),
        "together": comparison.whole(report),
        "error_map": heat_map.error_map(report),
        "confusion_maps": heat_map.confusion_maps(report),
        "hidden_matrices": heat_map.hidden_matrices(report),
        "similarity_maps": heat_map.similarity_maps(report),
        "partition": heat_map.partition(report),
        "answered": beliefs.answered_by(report),
        "answered_title": beliefs.TITLE,
        "reference_trust": beliefs.reference_trust(report),
        "diagnostics": _diagnostics(report),
        "profiles": profiles,
        "unfolded": sum(len(p.histograms) + 1 for p in profiles) <= _OPEN_PLOTS,
    }


def _metrics(shown: Sequence[Block]) -> list[_Metric]:
    found = []
    for metric in dict.fromkeys(block.metric for block in shown):
        mine = [block for block in shown if block.metric == metric]
        overall = next((block for block in mine if block.group is None), None)
        if overall is not None:
            parts = [block for block in mine if block.group is not None]
            found.append(_Metric(overall, common_axis([overall]), verdict(overall), _groups(parts)))
    return found


def _glance(report: Report, metrics: Sequence[_Metric]) -> list[_Metric]:
    """Metrics by which classifiers can be ranked; nothing where there is little to overlook."""
    ranked = [metric for metric in metrics if metric.block.direction]
    return ranked if len(ranked) > 1 and len(report["models"]) > 1 else []


def _groups(parts: Sequence[Block]) -> tuple[_Group, ...]:
    columns: dict[str, list[tuple[str, Block]]] = {}
    for block in parts:
        column, _, value = (block.group or "").partition("=")
        columns.setdefault(column, []).append((value, block))
    return tuple(
        _Group(column, tuple(members), common_axis(block for _, block in members))
        for column, members in columns.items()
    )


def _hits(shown: Sequence[Block]) -> tuple[int, int] | None:
    """How many of the intervals hold the truth, and how many there are."""
    inside = [
        row.low <= row.truth <= row.high
        for block in shown
        for row in block.rows
        if row.truth is not None and row.low is not None and row.high is not None
    ]
    return (sum(inside), len(inside)) if inside else None


def _balance(report: Report) -> list[tuple[Any, int | None, float | None]]:
    balance: Mapping[str, Mapping[str, Any]] = report.get("class_balance") or {}
    labeled, estimated = balance.get("labeled") or {}, balance.get("estimated") or {}
    names = [str(name) for name in report["classes"]] if labeled or estimated else []
    return [(name, labeled.get(name), estimated.get(name)) for name in names]


def _diagnostics(report: Report) -> dict[str, Any]:
    """What is known of the fit, other than what the figures show."""
    drawn = heat_map.drawn(report) | {beliefs.DRAWN}
    diagnostics: Mapping[str, Any] = report.get("diagnostics") or {}
    return {name: value for name, value in diagnostics.items() if name not in drawn}
