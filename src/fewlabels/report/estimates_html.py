"""The estimates as one self-contained HTML file: nothing is fetched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fewlabels.report import comparison
from fewlabels.report import diagnostics as beside
from fewlabels.report.axis import profile
from fewlabels.report.blocks import (
    ENDS,
    NOT_APPLICABLE,
    Block,
    Report,
    applicable,
    blocks,
    common_axis,
    status_notes,
    verdict,
)
from fewlabels.report.confusion import confusion_maps
from fewlabels.report.document import Section
from fewlabels.report.html import render, weighed, within_budget
from fewlabels.report.page import _anchors
from fewlabels.report.text import headline, warnings

_OPEN_PLOTS = 24
"""With more plots than these only the leading classifier's are unfolded."""

_FEWEST_PANELS = 2
"""A picture of groups has at least so many classifiers, however many the groups."""


class _Level(NamedTuple):
    """How much a page holds; a page that is too long is made again at the next level.

    Estimates in the table; classifiers whose scores are drawn; rows shown at either end of very
    many, and whether those between are there, folded; rows of a picture of groups; columns of a map
    whose cells have tooltips.
    """

    listed: int
    profiles: int
    ends: int
    folded: bool
    group_rows: int
    mapped: int


_LEVELS = (
    _Level(5_000, 1_000, ENDS, True, 48, 100),
    _Level(600, 24, ENDS, False, 48, 100),
    _Level(0, 12, 10, False, 24, 100),
    _Level(0, 4, 8, False, 12, 16),
)


def render_html(report: Report, *, fragment: bool = False) -> str:
    """The report, the dictionary of `Estimates.report`, as a self-contained page.

    All texts of the report are escaped, control characters included; a content security policy
    forbids requests and all scripts but the one of every page. A fragment is the answer and the
    estimates.
    """
    every = blocks(report)
    applying, unfit = applicable(every)
    # Where no metric applies, each says so itself.
    shown, unfit = (applying, unfit) if applying else (every, [])
    # A metric that nobody has a value of needs a line, not a card.
    valued = {block.metric for block in shown for row in block.rows if row.value is not None}
    unknown = list(dict.fromkeys(block.metric for block in shown if block.metric not in valued))
    if valued:
        shown = [block for block in shown if block.metric in valued]
    else:
        unknown = []
    metrics = _metrics(shown)
    ranked = [metric for metric in metrics if metric["block"].direction]
    profiles = [profile(entry) for entry in report.get("profiles") or ()]
    deciding, notes = warnings(report)
    some_inapplicable = any(row.status == NOT_APPLICABLE for block in shown for row in block.rows)
    notes = [note for note in notes if some_inapplicable or not note.startswith(NOT_APPLICABLE)]
    gravest = None
    if deciding is not None and not fragment:
        gravest = weighed([deciding, *notes])[0]
        notes = [note for note in notes if not note.startswith(f"{gravest.kind}: ")]
    # Of the intervals: whether each holds the truth.
    hits = [
        row.low <= row.truth <= row.high
        for block in shown
        for row in block.rows
        if row.truth is not None and row.low is not None and row.high is not None
    ]
    balance: Mapping[str, Mapping[str, Any]] = report.get("class_balance") or {}
    labeled, inferred = balance.get("labeled") or {}, balance.get("estimated") or {}
    classes = [str(name) for name in report["classes"]] if labeled or inferred else []
    compared = comparison.parts(report)
    content: dict[str, Any] = {
        "report": report,
        "headline": headline(report),
        "reading": report.get("reading") or (),
        "deciding": deciding,
        # All of its kind stand together.
        "gravest": gravest,
        "notes": notes,
        "unfit": unfit,
        "unknown": unknown,
        "blocks": shown,
        "metrics": metrics,
        # Metrics by which classifiers can be ranked; none where there is little to overlook.
        "glance": ranked if len(ranked) > 1 and len(report["models"]) > 1 else [],
        "answer": metrics[0]["verdict"] if metrics else None,
        "statuses": status_notes(report, shown),
        "hits": (sum(hits), len(hits)) if hits else None,
        "balance": [(name, labeled.get(name), inferred.get(name)) for name in classes],
        "compared": compared,
        "anchors": _anchors([one for one in compared if isinstance(one, Section)]),
        "partition": beside.partition(report),
        "anytime": beside.anytime_table(report),
        "answered": beside.answered_by(report),
        "answered_title": beside.ANSWERED_BY,
        "reference_trust": beside.reference_trust(report),
        "diagnostics": beside.diagnostics(report),
        "unfolded": sum(len(p.histograms) + 1 for p in profiles) <= _OPEN_PLOTS,
    }
    content |= {
        "error_map": beside.error_map(report),
        "confusion": confusion_maps(report),
        "similarity_maps": beside.similarity_maps(report),
    }
    # Of too many classifiers the scores of the best are drawn.
    first = metrics[0]["order"] if metrics else [p.model for p in profiles]
    by_rank = sorted(profiles, key=lambda p: first.index(p.model) if p.model in first else 10**9)

    def page(number: int) -> str:
        level = _LEVELS[number]
        drawn = {p.model for p in by_rank[: level.profiles]}
        of_level: dict[str, Any] = {
            "level": level,
            "listed": len(report["estimates"]) <= level.listed,
            "by": [
                [_by(name, parts, metric["block"], report, level.group_rows)
                 for name, parts in metric["columns"]]
                for metric in metrics
            ],
            "profiles": [p for p in profiles if p.model in drawn],
            "undrawn": len(profiles) - len(drawn),
        }  # fmt: skip
        template = "report_fragment.html.j2" if fragment else "report.html.j2"
        return render(template, () if fragment else None, **content, **of_level)

    return within_budget(page, len(_LEVELS))


def _metrics(shown: Sequence[Block]) -> list[dict[str, Any]]:
    """All that is shown of each metric; `columns` are those of its groups, with their blocks."""
    entries = []
    for block in shown:
        if block.group is not None:
            continue
        columns: dict[str, list[Block]] = {}
        for one in shown:
            if one.metric == block.metric and one.group is not None:
                columns.setdefault(one.group.partition("=")[0], []).append(one)
        entries.append(
            {
                "block": block,
                "axis": common_axis([block]),
                "verdict": verdict(block),
                "order": [row.model for row in block.ranked()],
                "columns": list(columns.items()),
            }
        )
    return entries


def _by(
    name: str, blocks: Sequence[Block], block: Block, report: Report, most: int
) -> dict[str, Any]:
    """Groups of a column side by side: a panel per classifier, the best first, on one scale."""
    sizes = {size["group"]: size for size in report.get("groups", ())}
    places = [block, *blocks]
    rows = [{row.model: row for row in one.rows} for one in places]
    models = [row.model for row in block.ranked()]
    panels = []
    for model in models[: max(_FEWEST_PANELS, most // len(places))]:
        groups = []
        for one, by_model in zip(places, rows, strict=True):
            if model in by_model:
                value = "all items" if one.group is None else one.group.partition("=")[2]
                size = sizes.get(one.group) if one.group is not None else None
                labeled = "" if size is None else f"{size['n_labeled']:,} labeled"
                groups.append(
                    {"name": value, "size": labeled, "block": one, "row": by_model[model]}
                )
        columns = max(one.columns for one in places)
        panels.append({"model": model, "groups": groups, "columns": columns})
    return {
        "name": name,
        "n_groups": len(blocks),
        "panels": panels,
        "hidden": len(models) - len(panels),
        "axis": common_axis(places, 4),
    }
