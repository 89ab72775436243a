"""Parts of a report within another page: the same dictionary and the same templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fewlabels.report.annotations_html import render_annotations_html
from fewlabels.report.blocks import Report
from fewlabels.report.comparison_html import render_comparison_html
from fewlabels.report.curve_html import render_curves_html, render_threshold_html
from fewlabels.report.html import FRAGMENT, environment, render_estimates_fragment

_PAGES: Mapping[str, Callable[[Report], str]] = {
    "estimates": render_estimates_fragment,
    "annotations": lambda report: render_annotations_html(report, fragment=True),
    "comparison": lambda report: render_comparison_html(report, fragment=True),
    "curves": lambda report: render_curves_html(report, fragment=True),
    "threshold": lambda report: render_threshold_html(report, fragment=True),
}


def render_fragment(page: str, report: Report) -> str:
    """A part of a page, with its style; no script, nothing fetched, light and dark.

    Parameters
    ----------
    page
        Whose: "estimates", "annotations", "comparison", "curves" or "threshold".
    report
        The dictionary that the page is made from; plain JSON values.
    """
    return _PAGES[page](report).strip()


def summary_fragment(text: str) -> str:
    """The summary of a result that has no page of its own."""
    template = environment().get_template("summary_fragment.html.j2")
    return template.render(lines=text.split("\n"), report=None, sheets=[], frame=FRAGMENT).strip()
