"""A calibration as text: what was fitted, and the losses before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fewlabels.report.curve_text import NARROWEST, aligned
from fewlabels.report.words import cell_width, clean, count, pad, plural, short_names, wrap

LOSSES = {
    "EL": "squared distance to the label distribution",
    "CL": "its part that calibration removes",
    "CE": "calibration error, the root of CL",
    "L_disagreement": "squared error of the predicted disagreement of two annotators",
    "CE_disagreement": "calibration error of that prediction",
}
"""What each loss is, in words."""

OF_MAPS = ("EL", "CL", "CE")
"""What is shown of maps of the probabilities, the first above all."""

OF_ALPHA = ("L_disagreement", "CE_disagreement")
"""What is shown of alpha-calibration, which leaves the probabilities."""

_NAMES = (18, 10)  # Columns of the names; where they do not fit.


def render_calibration(report: Mapping[str, Any], width: int = 80) -> str:
    """Fitted calibrations and what they are worth, in lines of at most `width` columns.

    Parameters
    ----------
    report
        What `fewlabels.recalibration.fit` says; plain JSON values.
    width
        Columns of the terminal; less than 60 counts as 60.
    """
    width = max(width, NARROWEST)
    fitted: Sequence[Mapping[str, Any]] = report["calibrations"]
    alpha = report["method"] == "alpha"
    losses, table = _table(fitted, OF_ALPHA if alpha else OF_MAPS, width)
    head = f"fewlabels {report['fewlabels']}, {kind(report)}, seed {report['seed']}"
    items, labels = fitted[0]["n_items"], fitted[0]["n_labels"]
    lines = [
        *wrap(head, width),
        *wrap(
            f"{count(report['n_items'])} items; fitted to {plural(labels, 'label')} of "
            f"{plural(items, 'item')}" + (" (the first classifier)" if len(fitted) > 1 else ""),
            width,
        ),
        "",
        *table,
        "",
    ]
    for name in losses:
        lines += wrap(f"{name}: {LOSSES[name]}", width, "  ")
    lines += wrap(
        "After: on items that the map was not fitted to; smaller is better, and an unbiased loss "
        "may be negative",
        width,
        "  ",
    )
    warnings: Sequence[str] = report.get("warnings") or ()
    if warnings:
        lines += ["", "Warnings"]
        for said in warnings:
            lines += wrap(f"- {said}", width, "  ")
    return "\n".join(line.rstrip() for line in lines)


def kind(report: Mapping[str, Any]) -> str:
    """What was fitted to all classifiers, in words."""
    if report["method"] == "alpha":
        return f"alpha-calibration ({report['concentration']})"
    return f"{report['method']} scaling"


def _table(
    fitted: Sequence[Mapping[str, Any]], losses: Sequence[str], width: int
) -> tuple[Sequence[str], list[str]]:
    """As many of the losses as there is room for, and the lines."""
    for names in _NAMES:
        for many in range(len(losses), 0, -1):
            lines = list(_lines(fitted, losses[:many], names))
            if max(map(cell_width, lines)) <= width:
                return losses[:many], lines
    return losses[:1], lines


def _lines(fitted: Sequence[Mapping[str, Any]], losses: Sequence[str], room: int) -> Iterator[str]:
    names = short_names([entry["model"] for entry in fitted], room)
    longest = max(map(cell_width, names.values()))
    rows = [["", "fitted", *(cell for name in losses for cell in (name, "after"))]]
    for entry in fitted:
        row = [pad(names[entry["model"]], longest), clean(fitted_text(entry))]
        for name in losses:
            after = None if entry["after"] is None else entry["after"][name]
            row += [loss_text(entry["before"][name]), loss_text(after)]
        rows.append(row)
    yield from aligned(rows, (False, False, *(True for _ in rows[0][2:])))


def fitted_text(entry: Mapping[str, Any]) -> str:
    """What was fitted, in a few characters."""
    if "concentration" in entry:
        found = entry["concentration"]
        low, high = found["10%"], found["90%"]
        if low == high:
            return f"alpha0 {found['median']:.3g}"
        return f"alpha0 {low:.2g}..{high:.2g}"
    if "temperature" in entry:
        return f"temperature {entry['temperature']:.3g}"
    penalty = entry["penalty"]
    several = penalty if isinstance(penalty, list) else [penalty]
    return "penalty " + ", ".join(f"{value:g}" for value in several)


def loss_text(value: float | None) -> str:
    """A loss to three decimals, which few labels do not reach."""
    return "undefined" if value is None else f"{round(value, 3) + 0.0:.3f}"
