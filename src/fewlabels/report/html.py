"""The report as one self-contained HTML file: nothing is fetched and nothing runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from fewlabels.report import answered_by as beliefs
from fewlabels.report import comparison_html, heat_map, words
from fewlabels.report.answer import Verdict, verdict
from fewlabels.report.axis import Axis
from fewlabels.report.blocks import (
    NOT_APPLICABLE,
    Block,
    Report,
    Row,
    applicable,
    blocks,
    common_axis,
    status_notes,
)
from fewlabels.report.headline import headline, reading, warnings
from fewlabels.report.page_file import save_page
from fewlabels.report.profiles import profile
from fewlabels.report.scoped import scoped

if TYPE_CHECKING:
    from jinja2 import Environment

FRAGMENT = "fragment.html.j2"
"""The frame of what is shown within another page."""

_OPEN_PLOTS = 24
"""With more plots than these only the leading classifier's are unfolded."""

_MOST_LISTED = 5_000
"""More estimates than these are not listed in a table, which would take megabytes."""

_MOST_ENTRIES = 30
"""Of a diagnostic with more entries than these the JSON alone has all."""

_NAME_COLUMNS = 80
"""Longer names lose their middle; the full name is in the tooltip."""


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


def render_html(report: Report) -> str:
    """The report as a page of HTML that needs no other file, no network and no script.

    Every text of the report is escaped, control characters included; a content security policy
    forbids scripts and requests besides.

    Parameters
    ----------
    report
        The dictionary of `Estimates.report`; plain JSON values.
    """
    return environment().get_template("report.html.j2").render(_shown(report))


def render_estimates_fragment(report: Report) -> str:
    """The answer and the estimates, as a part of another page; see `fragment.render_fragment`.

    Parameters
    ----------
    report
        The dictionary of `Estimates.report`; plain JSON values.
    """
    page = environment().get_template("report_fragment.html.j2")
    return page.render(_shown(report), frame=FRAGMENT, sheets=[])


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
        "comparisons": comparison_html.compared(report),
        "together": comparison_html.whole(report),
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


def save_html(report: Report, path: str | os.PathLike[str]) -> None:
    """Write the page whole or not at all: the file appears only when it is complete.

    Raises
    ------
    InputError
        If the path cannot be written.
    """
    save_page(render_html(report), path)


@cache
def environment() -> Environment:
    """Templates of every page: each expression is cleaned of what would leave its line, escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def finalize(value: Any) -> Any:
        # Markup is a macro's output; every other text is data and stays on its line.
        return words.clean(value) if isinstance(value, str) and type(value) is not Markup else value

    environment = Environment(
        loader=PackageLoader("fewlabels.report"),
        autoescape=True,
        finalize=finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "at": lambda share: f"{100 * share:.4g}%",
        "count": words.count,
        "percent": words.percent,
        "plural": words.plural,
        "probability": words.probability,
        # Markup, as styles hold quotes; they are of this package, never of the report.
        "scoped": lambda css: Markup(scoped(str(css))),  # noqa: S704
        "sentence": _sentence,
        "short": lambda name: words.fit(words.clean(name), _NAME_COLUMNS),
        "spoken": lambda name: str(name).replace("_", " "),
        "fact": _fact,
        "some": _some,
        "kind": _kind,
    }
    return environment


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


def _sentence(text: Any) -> str:
    """A phrase with a capital letter and a full stop."""
    phrase = str(text).strip()
    return phrase[:1].upper() + phrase[1:] + ("" if phrase[-1:] in {".", "!", "?", ""} else ".")


def _kind(value: Any) -> str:
    """How a diagnostic is laid out."""
    return "table" if isinstance(value, Mapping) else "text"


def _some(value: Mapping[str, Any]) -> tuple[list[tuple[str, Any]], int]:
    """The first entries of a diagnostic that has many, and how many more there are."""
    entries = list(value.items())
    return entries[:_MOST_ENTRIES], max(len(entries) - _MOST_ENTRIES, 0)


def _fact(value: Any) -> str:
    """A diagnostic in words."""
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return words.count(value)
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1e6 else f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_fact(part)}" for key, part in value.items())
    if isinstance(value, (list, tuple)):
        listed = [_fact(part) for part in value]
        more = f" and {words.count(len(listed) - 12)} more" if len(listed) > 12 else ""
        return ", ".join(listed[:12]) + more if listed else "none"
    return str(value)
