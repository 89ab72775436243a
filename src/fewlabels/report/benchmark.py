"""A benchmark's summary as files: Markdown, a page of HTML, and figures of SVG."""

from __future__ import annotations

import re

from fewlabels.report.benchmark_html import figure_title, render_page, render_svg
from fewlabels.report.benchmark_markdown import render_markdown
from fewlabels.report.benchmark_text import render_text
from fewlabels.report.benchmark_words import Summary


def render(summary: Summary) -> dict[str, str]:
    """Relative file name -> text: "report.md", "report.html" and "figures/<slug>.svg".

    The Markdown refers to the figures, the page holds them.

    Parameters
    ----------
    summary
        The dictionary of `fewlabels.bench.summary.summarise`; plain JSON values.
    """
    files: dict[str, str] = {}
    titles: dict[str, str] = {}
    for figure in summary["figures"]:
        parts = [figure["kind"], figure["dataset"], figure["level"]]
        parts += [figure["n_labeled"], figure["n_unlabeled"] or None]
        path = _path([str(part) for part in parts if part not in (None, "")], files)
        files[path] = render_svg(figure, summary)
        titles[path] = figure_title(figure)
    return {
        "report.md": render_markdown(summary, titles),
        "report.html": render_page(summary),
        **files,
    }


def _path(parts: list[str], taken: dict[str, str]) -> str:
    """A short name that any file system takes, not taken yet."""
    slug = re.sub(r"[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-")[:80].strip("-")
    names = (f"figures/{slug}{number}.svg" for number in ["", *(f"-{k}" for k in range(2, 10_000))])
    return next(name for name in names if name not in taken)


__all__ = ["render", "render_text"]
