"""All pages by name: as a file, which is written whole or not at all, and within another page."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from fewlabels.errors import InputError
from fewlabels.report.annotations import render_annotations_html
from fewlabels.report.blocks import Report
from fewlabels.report.calibration import render_calibration_html
from fewlabels.report.comparison import render_comparison_html
from fewlabels.report.curve_html import render_curves_html, render_threshold_html
from fewlabels.report.estimates_html import render_html
from fewlabels.report.html import render
from fewlabels.report.words import clean

_PAGES: Mapping[str, Callable[..., str]] = {
    "estimates": render_html,
    "annotations": render_annotations_html,
    "calibration": render_calibration_html,
    "comparison": render_comparison_html,
    "curves": render_curves_html,
    "threshold": render_threshold_html,
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
    return _PAGES[page](report, fragment=True).strip()


def summary_fragment(text: str) -> str:
    """The summary of a result that has no page of its own."""
    return render("summary_fragment.html.j2", (), lines=text.split("\n"), report=None).strip()


def save_page(page: str, report: Report, path: str | os.PathLike[str], **more: Any) -> None:
    """Write a page whole or not at all: the file appears only when it is complete.

    Parameters
    ----------
    page
        Whose: those of `render_fragment`, and "calibration".
    report
        The dictionary that it is made from; plain JSON values.
    more
        Other arguments of who makes it.

    Raises
    ------
    InputError
        If the path cannot be written.
    """
    content = _PAGES[page](report, **more).encode("utf-8")
    try:
        _write(Path(path), content)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"cannot write {clean(os.fspath(path))!r}: {reason}; "
            "`path` must name a file in a folder that exists and is writable"
        ) from None


def _write(path: Path, page: bytes) -> None:
    if path.exists() and not path.is_file():
        # A device or a pipe is written to; replacing it would remove it. A folder refuses.
        path.write_bytes(page)
        return
    # Beside the file that a link leads to, for a rename must stay on one file system.
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".fewlabels-{secrets.token_hex(8)}")
    try:
        temporary.write_bytes(page)
        os.replace(temporary, target)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
