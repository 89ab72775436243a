"""A calibration as text and as a page: what was fitted, and the losses before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fewlabels.report.blocks import Report
from fewlabels.report.html import render
from fewlabels.report.words import (
    NARROWEST,
    aligned,
    as_text,
    cell_width,
    clean,
    count,
    plural,
    short_names,
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
"""What is shown of maps of the probabilities, the first above all."""

OF_ALPHA = ("L_disagreement", "CE_disagreement")
"""What is shown of alpha-calibration, which leaves the probabilities."""

_NAMES = (18, 10)  # Columns of the names; where they do not fit.

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


def render_calibration(report: Mapping[str, Any], width: int = 80) -> str:
    """Fitted calibrations and what they are worth, in lines of at most `width` columns.

    `report` is what `fewlabels.calibration.recalibration.fit` says.
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
    return as_text([*lines, *warning_lines(report, width)])


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
    rows = [["", "fitted", *(cell for name in losses for cell in (name, "after"))]]
    for entry in fitted:
        row = [names[entry["model"]], clean(fitted_text(entry))]
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


@dataclass(frozen=True)
class Change:
    """A classifier's loss before and after, on items that the map was not fitted to."""

    model: str
    before: float
    after: float

    @property
    def gain(self) -> float:
        """How much it falls."""
        return self.before - self.after


def render_calibration_html(report: Report) -> str:
    """The report as a page of HTML that needs no other file, no network and no script.

    `report` is what `fewlabels.calibration.recalibration.fit` says.
    """
    losses = OF_ALPHA if report["method"] == "alpha" else OF_MAPS
    entries: Sequence[Mapping[str, Any]] = report["calibrations"]
    changes = _changes(entries, losses[0])
    return render(
        "calibration.html.j2",
        report=report,
        kind=kind(report),
        losses=losses,
        meanings={name: LOSSES[name] for name in losses},
        entries=entries,
        fitted=[fitted_text(entry) for entry in entries],
        parameters=[_parameters(entry) for entry in entries],
        changes=changes,
        most=max(changes, key=lambda change: change.gain, default=None),
        better=sum(change.gain > 0 for change in changes),
        write=loss_text,
    )


def _changes(entries: Sequence[Mapping[str, Any]], loss: str) -> list[Change]:
    out = []
    for entry in entries:
        before, after = entry["before"][loss], (entry["after"] or {}).get(loss)
        if before is not None and after is not None:
            out.append(Change(entry["model"], before, after))
    return out


def _parameters(entry: Mapping[str, Any]) -> list[tuple[str, str, Any]]:
    """Name, meaning and value of what was fitted."""
    return [(name, _PARAMETERS[name], entry[name]) for name in _PARAMETERS if name in entry]
