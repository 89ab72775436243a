"""Reports: a dictionary of plain values becomes a table of text, a page of HTML or a figure.

The room imports `errors` alone, and computes no statistic. `README.md` beside this file has the
data flow. Start with `blocks.py` and `text.py`. Renderers are loaded on first use.

What all `render_*` share:

- `report` is a dictionary of plain JSON values.
- `width` is the columns of the terminal; less than 60 counts as 60. The text has lines of at most
  that (wide characters count as two), with colour codes only within `report.words.styled`.
- A page needs no other file, no network and no script; with `fragment` it is a part of another
  page, see `html.render_fragment`.
- Control characters in names are escaped.
"""

# No `from __future__ import annotations` here: it would take the name of a file.
import importlib
from typing import TYPE_CHECKING, Any

# Files, and what of each is asked for by its name alone (PEP 562).
_LAZY = {
    "agreement": ("render_agreement",),
    "annotations": ("render_annotations",),
    "backtest": ("render_backtest",),
    "calibration": ("render_calibration",),
    "calibration_curve": ("render_calibration_curve",),
    "comparison": ("render_comparison",),
    "confusion": ("render_confusion", "render_disagreements"),
    "curves": ("render_curves", "render_label_next", "render_threshold"),
    "estimates_html": ("render_html",),
    "figure": ("render_figure",),
    "html": ("render_fragment", "save_page", "summary_fragment"),
    "markdown": ("flat_numbers", "model_index", "render_junit", "render_markdown"),
    "monitoring": ("render_monitoring",),
    "text": (
        "brief_estimates",
        "brief_summary",
        "render_predictions",
        "render_score",
        "render_text",
    ),
}

if TYPE_CHECKING:
    from fewlabels.report.agreement import render_agreement as render_agreement
    from fewlabels.report.annotations import render_annotations as render_annotations
    from fewlabels.report.backtest import render_backtest as render_backtest
    from fewlabels.report.calibration import render_calibration as render_calibration
    from fewlabels.report.calibration_curve import (
        render_calibration_curve as render_calibration_curve,
    )
    from fewlabels.report.comparison import render_comparison as render_comparison
    from fewlabels.report.confusion import render_confusion as render_confusion
    from fewlabels.report.confusion import render_disagreements as render_disagreements
    from fewlabels.report.curves import render_curves as render_curves
    from fewlabels.report.curves import render_label_next as render_label_next
    from fewlabels.report.curves import render_threshold as render_threshold
    from fewlabels.report.estimates_html import render_html as render_html
    from fewlabels.report.figure import render_figure as render_figure
    from fewlabels.report.html import render_fragment as render_fragment
    from fewlabels.report.html import save_page as save_page
    from fewlabels.report.html import summary_fragment as summary_fragment
    from fewlabels.report.markdown import flat_numbers as flat_numbers
    from fewlabels.report.markdown import model_index as model_index
    from fewlabels.report.markdown import render_junit as render_junit
    from fewlabels.report.markdown import render_markdown as render_markdown
    from fewlabels.report.monitoring import render_monitoring as render_monitoring
    from fewlabels.report.text import brief_estimates as brief_estimates
    from fewlabels.report.text import brief_summary as brief_summary
    from fewlabels.report.text import render_predictions as render_predictions
    from fewlabels.report.text import render_score as render_score
    from fewlabels.report.text import render_text as render_text

__all__ = sorted(name for names in _LAZY.values() for name in names)


def __getattr__(name: str) -> Any:
    for file, names in _LAZY.items():
        if name in names:
            value = getattr(importlib.import_module(f"fewlabels.report.{file}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'fewlabels.report' has no attribute {name!r}")
