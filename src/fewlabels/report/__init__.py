"""Reports: a dictionary of plain values becomes a table of text, a page of HTML or a figure.

Nothing here computes a statistic; `README.md` beside this file says what flows where. What a result
asks of it is loaded when it is asked for.

What all `render_*` share:

- `report` is a dictionary of plain JSON values.
- `width` is the columns of the terminal; less than 60 counts as 60. The text has lines of at most
  that (wide characters count as two), with colour codes only within `fewlabels.ink.inked`.
- A page needs no other file, no network and no script; with `fragment` it is a part of another
  page, see `pages.render_fragment`.
- Control characters in names are escaped.
"""

# No `from __future__ import annotations` here: it would take the name of a file.
import importlib
from typing import TYPE_CHECKING, Any

# name -> file that holds it (PEP 562).
_LAZY = {
    "brief_estimates": "fewlabels.report.headline",
    "brief_summary": "fewlabels.report.headline",
    "render_annotations": "fewlabels.report.annotations",
    "render_calibration": "fewlabels.report.calibration",
    "render_comparison": "fewlabels.report.comparison",
    "render_curve_figure": "fewlabels.report.figure",
    "render_curves": "fewlabels.report.curves",
    "render_figure": "fewlabels.report.figure",
    "render_fragment": "fewlabels.report.pages",
    "render_html": "fewlabels.report.estimates_html",
    "render_label_next": "fewlabels.report.curves",
    "render_predictions": "fewlabels.report.headline",
    "render_shift": "fewlabels.report.shift_text",
    "render_text": "fewlabels.report.text",
    "render_threshold": "fewlabels.report.curves",
    "save_page": "fewlabels.report.pages",
    "summary_fragment": "fewlabels.report.pages",
}

if TYPE_CHECKING:
    from fewlabels.report.annotations import render_annotations
    from fewlabels.report.calibration import render_calibration
    from fewlabels.report.comparison import render_comparison
    from fewlabels.report.curves import render_curves, render_label_next, render_threshold
    from fewlabels.report.estimates_html import render_html
    from fewlabels.report.figure import render_curve_figure, render_figure
    from fewlabels.report.headline import brief_estimates, brief_summary, render_predictions
    from fewlabels.report.pages import render_fragment, save_page, summary_fragment
    from fewlabels.report.shift_text import render_shift
    from fewlabels.report.text import render_text

__all__ = [
    "brief_estimates",
    "brief_summary",
    "render_annotations",
    "render_calibration",
    "render_comparison",
    "render_curve_figure",
    "render_curves",
    "render_figure",
    "render_fragment",
    "render_html",
    "render_label_next",
    "render_predictions",
    "render_shift",
    "render_text",
    "render_threshold",
    "save_page",
    "summary_fragment",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'fewlabels.report' has no attribute {name!r}")
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value
