"""Reports: a dictionary of plain values becomes a table of text, a page of HTML or a figure.

Nothing here computes a statistic; `README.md` beside this file says what flows where.
"""

from fewlabels.report.figure import render_figure
from fewlabels.report.html import render_html, save_html
from fewlabels.report.text import render_text

__all__ = ["render_figure", "render_html", "render_text", "save_html"]
