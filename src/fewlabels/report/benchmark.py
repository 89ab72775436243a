"""A benchmark's summary as files: Markdown, a page of HTML, and figures of SVG."""

from __future__ import annotations

import re
from collections.abc import Container

from fewlabels.report.benchmark_content import Content, content_of
from fewlabels.report.benchmark_html import render_page, render_svg
from fewlabels.report.benchmark_markdown import render_markdown
from fewlabels.report.benchmark_text import render_text
from fewlabels.report.benchmark_words import Summary


def render(summary: Summary) -> dict[str, str]:
    """Relative file name -> text: "report.md", "report.html" and "figures/<slug>.svg".

    Parameters
    ----------
    summary
        The dictionary of `fewlabels.bench.summary.summarise`; plain JSON values.
    """
    return files_of(content_of(summary))


def files_of(content: Content) -> dict[str, str]:
    """The files of a report: the Markdown refers to the figures, the page holds them."""
    files: dict[str, str] = {}
    titles: dict[str, str] = {}
    for figure in content.figures:
        path = _path(figure.slug, files)
        files[path] = render_svg(figure)
        titles[path] = figure.title
    return {
        "report.md": render_markdown(content, titles),
        "report.html": render_page(content),
        **files,
    }


def _path(slug: str, taken: Container[str]) -> str:
    """A short name that any file system takes, not taken yet."""
    slug = re.sub(r"[^a-z0-9]+", "-", slug.lower()).strip("-")[:80].strip("-")
    names = (f"figures/{slug}{number}.svg" for number in ["", *(f"-{k}" for k in range(2, 10_000))])
    return next(name for name in names if name not in taken)


__all__ = ["files_of", "render", "render_text"]
