"""Reports: a dictionary of plain values becomes a table of text, a page of HTML or a figure.

The room imports `errors` alone, and computes no statistic. `README.md` beside this file has the
data flow. Start with `document.py` and `ranking.py`. Renderers are loaded on first use.

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
    "figure": ("render_figure", "render_svg"),
    "html": ("render_fragment", "save_page"),
    "markdown": ("flat_numbers", "model_index", "render_junit", "render_markdown"),
}

if TYPE_CHECKING:
    from fewlabels.report.figure import render_figure as render_figure
    from fewlabels.report.figure import render_svg as render_svg
    from fewlabels.report.html import render_fragment as render_fragment
    from fewlabels.report.html import save_page as save_page
    from fewlabels.report.markdown import flat_numbers as flat_numbers
    from fewlabels.report.markdown import model_index as model_index
    from fewlabels.report.markdown import render_junit as render_junit
    from fewlabels.report.markdown import render_markdown as render_markdown

__all__ = sorted(name for names in _LAZY.values() for name in names)


def __getattr__(name: str) -> Any:
    for file, names in _LAZY.items():
        if name in names:
            value = getattr(importlib.import_module(f"fewlabels.report.{file}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'fewlabels.report' has no attribute {name!r}")
