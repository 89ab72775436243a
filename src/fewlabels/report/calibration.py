"""A calibration as text and as a page: what was fitted, and the losses before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fewlabels.report.blocks import Report
from fewlabels.report.html import render
from fewlabels.report.words import (
    NARROWEST,
    as_text,
    count,
    fitted,
    plural,
    warning_lines,
    wrap,
)

LOSSES = {
    "EL": "squared distance to the label distribution",
    "CL": "its part that calibration removes",
    "CE": "calibration error, the root of CL",
    "L_disagreement": "squared error of the predicted disagreement of two annotators",
    "CE_disagreement": "calibration error of that prediction",
}
"""What each loss is, in words."""

OF_MAPS = ("EL", "CL", "CE")
"""What is shown of maps of the probabilities, most important first."""

OF_ALPHA = ("L_disagreement", "CE_disagreement")
"""What is shown of alpha-calibration, which does not change the probabilities."""

_PARAMETERS = {
    "temperature": "scores are divided by it: below 1 sharper, above 1 softer",
    "scale": "slope of each class",
    "weights": "slopes, a row per class",
    "intercept": "offset, in logarithms",
    "penalty": "weight of the penalty that was chosen",
    "coef": "of the logarithm of the concentration",
    "concentration": "alpha0 of the items: the larger, the surer the probabilities are",
}
"""What parameters are, in words."""


def render_calibration(report: Report, width: int = 80) -> str:
    """Fitted calibrations and their losses, in lines of at most `width` columns.

    `report` is what `fewlabels.calibration.recalibration.fit` says.
    """
    width = max(width, NARROWEST)
    entries: Sequence[Mapping[str, Any]] = report["calibrations"]
    losses = OF_ALPHA if report["method"] == "alpha" else OF_MAPS
    rows = [["", "fitted", *(cell for name in losses for cell in (name, "after"))]]
    for entry in entries:
        after = entry["after"] or {}
        pairs = ((entry["before"][name], after.get(name)) for name in losses)
        numbers = [loss_text(loss) for pair in pairs for loss in pair]
        rows.append([entry["model"], fitted_text(entry), *numbers])
    head = f"fewlabels {report['fewlabels']}, {kind(report)}, seed {report['seed']}"
    labels, items = plural(entries[0]["n_labels"], "label"), plural(entries[0]["n_items"], "item")
    suffix = " (the first classifier)" if len(entries) > 1 else ""
    meanings = [f"{name}: {LOSSES[name]}" for name in losses]
    meanings.append(
        "After: on items that the calibration was not fitted to; smaller is better, and below 0 "
        "cannot be told from 0 (the estimate is unbiased)"
    )
    return as_text(
        [
            *wrap(head, width),
            *wrap(
                f"{count(report['n_items'])} items; fitted to {labels} of {items}{suffix}", width
            ),
            "",
            *fitted(rows, "llr", width),
            "",
            *(line for meaning in meanings for line in wrap(meaning, width, "  ")),
            *warning_lines(report, width),
        ]
    )


def kind(report: Report) -> str:
    """What was fitted to all classifiers, in words."""
    if report["method"] == "alpha":
        return f"alpha-calibration ({report['concentration']})"
    return f"{report['method']} scaling"


def fitted_text(entry: Mapping[str, Any]) -> str:
    """What was fitted, in a few characters."""
    if "concentration" in entry:
        estimate = entry["concentration"]
        low, high = estimate["10%"], estimate["90%"]
        if low == high:
            return f"alpha0 {estimate['median']:.3g}"
        return f"alpha0 {low:.2g}..{high:.2g}"
    if "temperature" in entry:
        return f"temperature {entry['temperature']:.3g}"
    penalty = entry["penalty"]
    several = penalty if isinstance(penalty, list) else [penalty]
    return "penalty " + ", ".join(f"{value:g}" for value in several)


def loss_text(value: float | None) -> str:
    """A loss to three decimals, more than few labels can determine."""
    return "undefined" if value is None else f"{round(value, 3) + 0.0:.3f}"


def render_calibration_html(report: Report, *, fragment: bool = False) -> str:
    """The report as a page of HTML that needs no other file and no network.

    `report` is what `fewlabels.calibration.recalibration.fit` says.
    """
    losses = OF_ALPHA if report["method"] == "alpha" else OF_MAPS
    entries: Sequence[Mapping[str, Any]] = report["calibrations"]
    # The first loss before and after, on items that the map was not fitted to.
    changes = [
        {"model": entry["model"], "before": before, "after": after, "gain": before - after}
        for entry in entries
        if (before := entry["before"][losses[0]]) is not None
        and (after := (entry["after"] or {}).get(losses[0])) is not None
    ]
    return render(
        "calibration.html.j2",
        () if fragment else None,
        report=report,
        kind=kind(report),
        losses=losses,
        meanings={name: LOSSES[name] for name in losses},
        entries=entries,
        fitted=[fitted_text(entry) for entry in entries],
        parameters=[
            [(name, symbol, entry[name]) for name, symbol in _PARAMETERS.items() if name in entry]
            for entry in entries
        ],
        changes=changes,
        most=max(changes, key=lambda change: change["gain"], default=None),
        better=sum(change["gain"] > 0 for change in changes),
        write=loss_text,
    )
