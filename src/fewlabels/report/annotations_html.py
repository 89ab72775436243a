"""Losses of label histograms as a page of HTML: tables, reliability, where the loss lies."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from fewlabels.report.annotations_blocks import (
    LOSSES,
    MEANINGS,
    OF_PAIRS,
    OF_STATISTIC,
    UNBIASED,
    Assessed,
    figures,
    number,
    share,
    statistic_meaning,
)
from fewlabels.report.blocks import Block, Report, common_axis
from fewlabels.report.html import FRAGMENT, environment
from fewlabels.report.page_file import save_page
from fewlabels.report.profiles import Profile, profile

if TYPE_CHECKING:
    from jinja2 import Environment

_OPEN_CLASSES = 3
"""Classes of a classifier whose diagrams are in sight; the others are folded."""

_MOST_CLASSES = 30
"""Classes of a classifier that are drawn; the JSON has all."""

_MOST_DIAGRAMS = 240
"""Diagrams of classes on a page: of many classifiers each gets fewer."""


@dataclass(frozen=True)
class Bar:
    """The losses of the items of a bin, one on the other; percent from the lower left corner.

    A debiased loss below 0 is drawn as 0, and said as it is.
    """

    left: float
    width: float
    calibration: float
    dispersion: float
    source: Mapping[str, Any]


@dataclass(frozen=True)
class Diagram:
    """Reliability of one class, and below it where the epistemic loss lies."""

    name: Any
    reliability: Profile
    bars: tuple[Bar, ...]
    top: float


@dataclass(frozen=True)
class Portrait:
    """What is drawn of one classifier."""

    model: str
    pairs: Profile | None
    first: tuple[Diagram, ...]
    folded: tuple[Diagram, ...]
    hidden: int


def render_annotations_html(report: Report, *, fragment: bool = False) -> str:
    """The report as a page of HTML that needs no other file, no network and no script.

    Parameters
    ----------
    report
        The dictionary of `Assessment.to_dict`; plain JSON values.
    fragment
        Whether it is a part of another page, which shows no diagrams.
    """
    found = Assessed(report)
    tables = {"losses": list(LOSSES), "pairs": list(OF_PAIRS)}
    nearest = None if found.answer is None else found.answer.verdict.block
    return render_page(
        "annotations.html.j2",
        report=report,
        found=found,
        answer=found.answer,
        # A forest is one of intervals.
        forest=nearest if found.level is not None else None,
        axis=None if nearest is None else common_axis([nearest]),
        tables=tables,
        statistics=[
            (name, statistic_meaning(name), [f"{metric}_{name}" for metric in OF_STATISTIC])
            for name in found.statistics
        ],
        portraits=[] if fragment else _portraits(found),
        meanings=MEANINGS,
        unbiased=UNBIASED if found.negative else "",
        **({"frame": FRAGMENT, "sheets": ("annotations.css",)} if fragment else {}),
    )


def save_annotations_html(report: Report, path: str | os.PathLike[str]) -> None:
    """Write the page of `render_annotations_html` whole or not at all.

    Raises
    ------
    InputError
        If the path cannot be written.
    """
    save_page(render_annotations_html(report), path)


def render_page(template: str, **shown: Any) -> str:
    """A page of label histograms or of calibrations."""
    return _environment().get_template(template).render(**shown).lstrip()


@cache
def _environment() -> Environment:
    """The environment of every page, with filters of these ones."""
    own = environment().overlay()
    own.filters = {**own.filters, "share": share, "number": number}
    own.globals = {**own.globals, "figures_of": _figures_of}
    return own


def _figures_of(found: Assessed, model: str, metric: str, group: str | None) -> tuple[str, ...]:
    """Value, interval and status of one estimate, as they are written."""
    block: Block = found.block(metric, group)
    row = found.row(model, metric, group)
    return (*figures(block, row), row.status)


def _portraits(found: Assessed) -> list[Portrait]:
    report, models = found.report, found.models
    by_class = {name: _by_class(report[name]) for name in ("reliability", "dispersion")}
    pairs: dict[str, list[Mapping[str, Any]]] = {}
    for row in report["disagreement_reliability"]:
        pairs.setdefault(row["model"], []).append(row)
    most = max(_OPEN_CLASSES, min(_MOST_CLASSES, _MOST_DIAGRAMS // max(len(models), 1)))
    out = []
    for model in models:
        maps = by_class["dispersion"].get(model)
        if not maps:
            continue
        names = _worst_first(maps, len(report["classes"]))
        # All classes of a classifier share a scale, so that they can be compared.
        top = max((_height(row) for rows in maps.values() for row in rows), default=0.0)
        shown = tuple(
            _diagram(model, name, by_class["reliability"][model][name], maps[name], top)
            for name in names[:most]
        )
        out.append(
            Portrait(
                model,
                _profile(model, "disagreement", pairs[model]) if model in pairs else None,
                shown[:_OPEN_CLASSES],
                shown[_OPEN_CLASSES:],
                len(names) - len(shown),
            )
        )
    return out


_ByClass = dict[str, dict[Any, list[Mapping[str, Any]]]]


def _by_class(rows: Sequence[Mapping[str, Any]]) -> _ByClass:
    out: _ByClass = {}
    for row in rows:
        out.setdefault(row["model"], {}).setdefault(row["class"], []).append(row)
    return out


def _worst_first(maps: Mapping[Any, Sequence[Mapping[str, Any]]], n_classes: int) -> list[Any]:
    """Classes by their part of the epistemic loss; of two, which mirror each other, the last."""
    names = list(maps)
    if n_classes == 2:
        return names[-1:]
    return sorted(names, key=lambda name: -sum(row["EL_plugin"] or 0.0 for row in maps[name]))


def _diagram(
    model: str,
    name: Any,
    reliability: Sequence[Mapping[str, Any]],
    losses: Sequence[Mapping[str, Any]],
    top: float,
) -> Diagram:
    scale = 100 / top if top > 0 else 0.0
    bars = tuple(
        Bar(
            100 * row["low"],
            100 * (row["high"] - row["low"]),
            scale * _above_zero(row["CL"]),
            scale * _above_zero(row["DL"]),
            row,
        )
        for row in losses
    )
    return Diagram(name, _profile(model, f"P({name})", reliability), bars, top)


def _height(row: Mapping[str, Any]) -> float:
    return _above_zero(row["CL"]) + _above_zero(row["DL"])


def _above_zero(loss: float | None) -> float:
    return max(loss or 0.0, 0.0)


def _profile(model: str, kind: str, rows: Sequence[Mapping[str, Any]]) -> Profile:
    """A reliability diagram as the plots of scores draw theirs."""
    bins = [
        {
            "from": row["low"],
            "to": row["high"],
            "predicted": row["mean_probability"],
            "observed": row["label_frequency"],
            "low": row["frequency_low"],
            "high": row["frequency_high"],
            "weight": row["share"],
        }
        for row in rows
    ]
    n_items = sum(row["n_items"] for row in rows)
    reliability = {"kind": kind, "bins": bins}
    return profile({"model": model, "n_items": n_items, "missing": 0, "reliability": reliability})
