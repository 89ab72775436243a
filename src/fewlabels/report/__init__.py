"""Reports: a dictionary of plain values becomes a table of text, a page of HTML or a figure.

Nothing here computes a statistic; `README.md` beside this file says what flows where. What a result
asks of it is loaded when it is asked for.
"""

# No `from __future__ import annotations` here: it would take the name of a file.
import importlib
from typing import TYPE_CHECKING, Any

# name -> file that holds it (PEP 562).
_LAZY = {
    "brief_estimates": "fewlabels.report.brief",
    "brief_summary": "fewlabels.report.brief",
    "render_annotations": "fewlabels.report.annotations_text",
    "render_comparison": "fewlabels.report.comparison_text",
    "render_curve_figure": "fewlabels.report.curve_figure",
    "render_curves": "fewlabels.report.curve_text",
    "render_figure": "fewlabels.report.figure",
    "render_fragment": "fewlabels.report.fragment",
    "render_html": "fewlabels.report.html",
    "render_label_next": "fewlabels.report.label_next_text",
    "render_predictions": "fewlabels.report.predictions_text",
    "render_shift": "fewlabels.report.shift_text",
    "render_text": "fewlabels.report.text",
    "render_threshold": "fewlabels.report.threshold_text",
    "save_annotations_html": "fewlabels.report.annotations_html",
    "save_comparison_html": "fewlabels.report.comparison_html",
    "save_curves_html": "fewlabels.report.curve_html",
    "save_html": "fewlabels.report.html",
    "save_threshold_html": "fewlabels.report.curve_html",
    "summary_fragment": "fewlabels.report.fragment",
}

if TYPE_CHECKING:
    from fewlabels.report.annotations_html import save_annotations_html
    from fewlabels.report.annotations_text import render_annotations
    from fewlabels.report.brief import brief_estimates, brief_summary
    from fewlabels.report.comparison_html import save_comparison_html
    from fewlabels.report.comparison_text import render_comparison
    from fewlabels.report.curve_figure import render_curve_figure
    from fewlabels.report.curve_html import save_curves_html, save_threshold_html
    from fewlabels.report.curve_text import render_curves
    from fewlabels.report.figure import render_figure
    from fewlabels.report.fragment import render_fragment, summary_fragment
    from fewlabels.report.html import render_html, save_html
    from fewlabels.report.label_next_text import render_label_next
    from fewlabels.report.predictions_text import render_predictions
    from fewlabels.report.shift_text import render_shift
    from fewlabels.report.text import render_text
    from fewlabels.report.threshold_text import render_threshold

__all__ = [
    "brief_estimates",
    "brief_summary",
    "render_annotations",
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
    "save_annotations_html",
    "save_comparison_html",
    "save_curves_html",
    "save_html",
    "save_threshold_html",
    "summary_fragment",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'fewlabels.report' has no attribute {name!r}")
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value
