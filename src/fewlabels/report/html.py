"""What all pages share: their templates, scoped styles, and how a page becomes a file or a part."""

from __future__ import annotations

import base64
import hashlib
import importlib
import os
import re
import secrets
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fewlabels.errors import InputError, Status, gravest_first
from fewlabels.report import words
from fewlabels.report.blocks import Report
from fewlabels.report.words import enumerated, percent, speaks_of

if TYPE_CHECKING:
    from jinja2 import Environment

_ELSEWHERE = {
    "disagreements": ("confusion", "disagreements"), "predictions": ("estimates", "predictions"),
}  # fmt: skip
"""The file and the function that say all of some kinds; of others the file is called as they are,
and the function `document`."""


def document_of(kind: str, report: Report, *, level: int = 0, **more: Any) -> Any:
    """The document of a kind of result, with less on it at each level; how many levels there are.

    `more` is what its page shows beside the report.
    """
    name, function = _ELSEWHERE.get(kind, (kind.replace("-", "_"), "document"))
    file = importlib.import_module(f"fewlabels.report.{name}")
    levels = getattr(file, "LEVELS", 1) if kind not in _ELSEWHERE else 1
    return getattr(file, function)(report, **more, **{"level": level} if levels > 1 else {}), levels


def render_text(kind: str, report: Report, width: int = 80, *, brief: bool = False) -> str:
    """What is said of a result, in at most `width` columns; brief: not what it rests on."""
    from fewlabels.report import terminal

    document = document_of(kind, report)[0]
    return terminal.render_text(replace(document, basis=()) if brief else document, width)


MOST_BYTES = 300_000
"""Largest page; above it, details that are in the JSON are left out."""

MOST_BYTES_OF_PART = 60_000
"""Largest part of another page: a notebook has many of them, and keeps each."""

_PARTS = 64
"""Of the body, tables and paragraphs, that are tried for a part of another page."""

_NAME_COLUMNS = 80
"""Longer names lose their middle; the full name is in the tooltip."""

_REM, _PIXELS = re.compile(r"(\d*\.?\d+)rem\b"), 14
"""Pixels per rem within another page, which may have any size of its own."""


@cache
def environment() -> Environment:
    """Template environment: every expression has control characters removed and is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    from fewlabels.report.page import cell, marked

    def finalize(value: Any) -> Any:
        # Markup is a macro's output; every other text is data and stays on its line.
        plain_text = isinstance(value, str) and type(value) is not Markup
        return words.escape_control(value) if plain_text else value

    environment = Environment(
        loader=PackageLoader("fewlabels.report"),
        autoescape=True,
        finalize=finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "at": lambda share: f"{100 * share:.4g}%",
        "count": words.count,
        "percent": words.percent,
        "plural": words.plural,
        "probability": words.probability,
        "number": words.number,
        "id": id,
        "heading": lambda text: words.capital(str(text)),
        "cell": cell,
        "marked": marked,
    }
    script, sheet, part = map(source, ("report.js", "page.css", "part.css"))
    # Nested, the rules hold within the element alone; thrice named, they outrank a notebook's own.
    nested = _REM.sub(lambda rem: f"{float(rem[1]) * _PIXELS:g}px", f"{sheet}\n{part}")
    environment.globals |= {
        "name": lambda text: Markup('<bdi class="name" title="{}">{}</bdi>').format(
            words.escape_control(text), words.fit(words.escape_control(text), _NAME_COLUMNS)
        ),
        "style_sheet": Markup(sheet),  # noqa: S704
        "part_sheet": Markup(f"{'div' + 3 * '.fewlabels'} {{\n{nested}\n}}"),  # noqa: S704
        "script": Markup(script),  # noqa: S704
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    }
    return environment


def source(name: str) -> str:
    """A file of the templates as it stands."""
    return files("fewlabels.report").joinpath("templates", name).read_text("utf-8")


def render_page(page: str, report: Report, *, fragment: bool = False, **more: Any) -> str:
    """A page by its kind, or a part of one, with the most content that can be forwarded.

    `more` is what it shows beside the report. The last level of a page is taken whatever its size;
    of a part as much as there is room for, from the top.
    """
    from fewlabels.report.document import shortened
    from fewlabels.report.page import render_page as rendered

    most, made, level, levels = MOST_BYTES_OF_PART if fragment else MOST_BYTES, "", 0, 1

    def fits(made: str) -> bool:
        return len(made.encode("utf-8")) < most

    while level < levels and not (made and fits(made)):
        document, levels = document_of(page, report, level=level, **more)
        made, level = rendered(document, fragment=fragment), level + 1
    if fragment and not fits(made):
        part = cache(lambda n: rendered(shortened(document, n), fragment=True))
        made = part(bisect_left(range(_PARTS), True, lo=1, key=lambda n: not fits(part(n))) - 1)
    return made


def render_fragment(page: str, report: Report) -> str:
    """A part of a page with its style, light and dark; without script, and nothing is fetched.

    `page` is a kind of document; `report` holds plain JSON values.
    """
    return render_page(page, report, fragment=True).strip()


def save_page(page: str, report: Report, path: str | os.PathLike[str], **more: Any) -> None:
    """Write a page, or nothing: the file appears only when it is complete.

    `page` is a kind of document; `more` is what it shows beside the report.
    """
    with stated_origin():
        content = render_page(page, report, **more).encode("utf-8")
    try:
        file = Path(path)
        if file.exists() and not file.is_file():
            # A device or a pipe is written to; replacing it would remove it. A folder refuses.
            file.write_bytes(content)
            return
        # Beside the file that a link leads to, for a rename must stay on one file system.
        target = Path(os.path.realpath(file))
        temporary = target.with_name(f".fewlabels-{secrets.token_hex(8)}")
        try:
            temporary.write_bytes(content)
            os.replace(temporary, target)
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"cannot write {words.escape_control(os.fspath(path))!r}: {reason}; "
            "`path` must name a file in a folder that exists and is writable"
        ) from None


# Warnings as a page lists them: by their kind, the gravest first, with what to do about each.

ADVICE = {
    Status.FEW_LABELS: "label more of these items; `fewlabels label-next` draws those that tell "
    "most",
    Status.ASSUMPTION: "label some items drawn at random: they test it",
    Status.NOT_CONVERGED: "do not rely on these numbers; try another method (--method)",
    Status.UNDEFINED: "label items of every class, or choose another metric (--metrics)",
}
"""What to do about each kind of warning; other kinds say it themselves."""

_KINDS = {status.value for status in Status} | {
    "reversed", "unrelated", "seen", "suspect", "shift",
}  # fmt: skip


class Notes(NamedTuple):
    """Warnings of one kind: their common beginning, which is cut from each, and advice."""

    kind: str
    advice: str
    texts: Sequence[str]


def weighed(warnings: Iterable[str]) -> list[Notes]:
    """Warnings by kind, the gravest first; kind "" is good to know, and decides nothing."""
    by_kind: dict[str, list[str]] = {}
    for text in gravest_first(warnings):
        kind, colon, rest = text.partition(": ")
        is_kind = bool(colon) and kind in _KINDS
        by_kind.setdefault(kind if is_kind else "", []).append(rest if is_kind else text)
    # What decides nothing comes last, whatever came first.
    order = sorted(by_kind, key=lambda kind: not kind)
    return [Notes(kind, ADVICE.get(kind, ""), by_kind[kind]) for kind in order]  # type: ignore[call-overload]


# --- where a page comes from ----------------------------------------------------------------------


class Origin(NamedTuple):
    """Command, input files and time of a page; None and empty where unknown."""

    command: str | None = None
    files: tuple[str, ...] = ()
    made: datetime | None = None


_UNKNOWN = Origin()
_ORIGIN: ContextVar[Origin] = ContextVar("origin", default=_UNKNOWN)


@contextmanager
def stated_origin(command: str | None = None, files: Sequence[str] = ()) -> Iterator[None]:
    """Pages made in this block state the command and the files.

    The time is now, or `SOURCE_DATE_EPOCH` for pages that must be the same each time. A block
    within another adds what that one did not say.
    """
    around = _ORIGIN.get()
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    made = datetime.fromtimestamp(int(epoch), UTC) if epoch.isdigit() else datetime.now(UTC)
    token = _ORIGIN.set(
        Origin(command or around.command, tuple(files) or around.files, around.made or made)
    )
    try:
        yield
    finally:
        _ORIGIN.reset(token)


def kicker() -> str:
    """The line above the title: input files and date."""
    origin = _ORIGIN.get()
    names = [os.path.basename(name) or name for name in origin.files]
    phrases = ["fewlabels report", enumerated(names, 3) if names else ""]
    if origin.made is not None:
        phrases.append(f"{origin.made.day} {origin.made:%B %Y}")
    return " · ".join(filter(None, phrases))


def provenance(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What is needed to reproduce the page, as pairs of term and value."""
    origin = _ORIGIN.get()
    level = report.get("confidence_level")
    facts = {
        "File" if len(origin.files) < 2 else "Files": ", ".join(origin.files),
        "Method": ", ".join(
            filter(
                None, [report.get("method"), f"seed {report['seed']}" if "seed" in report else ""]
            )
        ),
        "Intervals": ""
        if level is None
        else percent(level) + (f", {speaks_of(report)}" if report.get("estimand") else ""),
        "Made": "" if origin.made is None else f"{origin.made:%Y-%m-%d %H:%M} UTC",
        "Version": f"fewlabels {report['fewlabels']}" if "fewlabels" in report else "",
        "Command": origin.command or "",
    }
    return [(term, value) for term, value in facts.items() if value]
