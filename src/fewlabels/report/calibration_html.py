"""A calibration as a page of HTML: what was fitted, and the losses before and after."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fewlabels.report.annotations_html import render_page
from fewlabels.report.blocks import Report
from fewlabels.report.calibration_text import (
    LOSSES,
    OF_ALPHA,
    OF_MAPS,
    fitted_text,
    kind,
    loss_text,
)
from fewlabels.report.page_file import save_page

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

    Parameters
    ----------
    report
        What `fewlabels.recalibration.fit` says; plain JSON values.
    """
    losses = OF_ALPHA if report["method"] == "alpha" else OF_MAPS
    entries: Sequence[Mapping[str, Any]] = report["calibrations"]
    changes = _changes(entries, losses[0])
    return render_page(
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


def save_calibration_html(report: Report, path: str | os.PathLike[str]) -> None:
    """Write the page of `render_calibration_html` whole or not at all.

    Raises
    ------
    InputError
        If the path cannot be written.
    """
    save_page(render_calibration_html(report), path)


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
