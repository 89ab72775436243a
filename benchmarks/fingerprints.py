"""Which code and data a page was made by, and whether they have changed since.

results/records has for each page and call of a study what made it: the command, fingerprints of the
code and of the data below the places that the study reads, and numbers of some cells (`samples`),
by which the page is confirmed on other code. The code is that of the modules which the study
imports here and of the package's rooms that its cells imported, without comments, docstrings and
layout. The page ends with a line of each.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).resolve().parent
PACKAGE = BENCHMARKS.parent / "src" / "fewlabels"

_NO_NUMBERS = ("cli", "report", "labeling")
"""Rooms of the package on which no number depends."""

Record = dict[str, Any]
"""`command`, `code`, `data` and `places`, a sample (`samples.Kept`), and `confirmed`, where it is:
by how many cells and `on` which code. `earlier`: the page says that its numbers are old."""


def code_of(module: str, rooms: Collection[str] | None = None) -> str:
    """Fingerprint of all that a module imports in the benchmarks, and of rooms of the package."""
    package = (
        path for path in sorted(PACKAGE.rglob("*")) if path.suffix in (".py", ".json", ".toml")
        and (room := path.parent.relative_to(PACKAGE)).parts[:1] not in [(n,) for n in _NO_NUMBERS]
        and (rooms is None or room.as_posix() in rooms)
    )  # fmt: skip
    return _digest([_code(path) for path in [*package, *sorted(_imported(module))]])


def data_of(root: Path, places: Sequence[str]) -> str:
    """Fingerprint of the files at these places below a folder; "" where one is not there."""
    parts = []
    for place in sorted(places):
        path = root / place
        files = [path] if path.is_file() else sorted(f for f in path.rglob("*") if f.is_file())
        if not files:
            return ""
        parts += [f.relative_to(root).as_posix().encode() + _content(f) for f in files]
    return _digest(parts)


def records_of(module: str) -> dict[str, dict[str, Record]]:
    """The records of a study by the page's name and the call's, which is "" where it has one."""
    file = _file(module)
    found: dict[str, dict[str, Record]] = {}
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else found


def keep(module: str, page: Path, new: Mapping[str, Record]) -> None:
    """Put records of a page into the study's file, and all that it has there at its end."""
    records = records_of(module)
    own = records.setdefault(page.stem, {})
    own |= new
    if any(new):
        own.pop("", None)  # the page as a whole, of which nothing was known by part
    _file(module).parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(records).replace('{"cell"', '\n{"cell"')  # a line each
    _file(module).write_text(text + "\n", encoding="utf-8")
    lines = [
        f"<!-- made by: {made['command']}{f' ({call})' * bool(call)}; code {made['code']}"
        + (f", confirmed by {made['confirmed']} on code {made['on']}" if "on" in made else "")
        + f"; data {made['data']} of {' '.join(made['places'])} -->"
        for call, made in sorted(own.items())
    ]
    line = re.compile(rf"^<!-- made by: python -m benchmarks {module}\b.* -->\n?", re.MULTILINE)
    mark = re.compile(
        rf"^> Numbers of an earlier version.*`python -m benchmarks {module}\b.*\n\n", re.M
    )
    text = mark.sub("", line.sub("", page.read_text(encoding="utf-8")).rstrip())
    old = [call for call, made in sorted(own.items()) if made.get("earlier")]
    if old:
        title, _, body = text.partition("\n\n")
        parts = f" ({', '.join(old)})" if any(old) else ""
        command = f"`python -m benchmarks {module}`{parts}"
        said = f"> Numbers of an earlier version, not run again since: {command}."
        text = f"{title}\n\n{said}\n\n{body}"
    page.write_text("\n".join([text, *([""] if lines else []), *lines, ""]), encoding="utf-8")


def mark(module: str, page: Path, call: str) -> None:
    """Let a page say that numbers of a call are those of an earlier version of the code."""
    none = {"command": f"python -m benchmarks {module} {call}".strip(), "code": "unknown",
            "data": "", "places": [], "rooms": None, "cells": 0, "anew": 0, "seconds": 0,
            "sample": []}  # fmt: skip
    made = records_of(module).get(page.stem, {}).get(call, none)
    keep(module, page, {call: {**made, "earlier": True}})


def _file(module: str) -> Path:
    return BENCHMARKS / "results" / "records" / f"{module}.json"


def calls_of(page: Path, module: str) -> list[str]:
    """Calls of a study that fill a page: it names the commands of parts, the records the others."""
    text = page.read_text(encoding="utf-8")
    parts = re.findall(rf"^`python -m benchmarks {module} (\w+)", text, re.MULTILINE)
    return list(dict.fromkeys(parts)) or [*records_of(module).get(page.stem, [""])]


def stale(page: Path, module: str, call: str, root: Path, *, timed: bool = False) -> str:
    """Why a call would no longer write what it wrote; "" if it would, as far as can be seen.

    What is `timed` is of the day when it ran.
    """
    made = records_of(module).get(page.stem, {}).get(call)
    if made is None:
        return f"has no record: python -m benchmarks {module} {call}".strip()
    now, there = code_of(module, made["rooms"]), data_of(root, made["places"])
    changed = ["code"] if now not in (made["code"], made.get("on")) and not timed else []
    # Data that are not at hand have not changed.
    changed += ["data"] if there and there != made["data"] else []
    return f"{' and '.join(changed)} changed: {made['command']}" if changed else ""


def is_marked(page: Path, module: str, call: str) -> bool:
    """Whether a page says that the numbers of a call are of an earlier version."""
    return bool(records_of(module).get(page.stem, {}).get(call, {}).get("earlier"))


def _digest(parts: Iterator[bytes] | list[bytes]) -> str:
    found = hashlib.blake2b(digest_size=6)
    for part in parts:
        found.update(part)
    return found.hexdigest()


@cache
def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").digest()


@cache
def _code(path: Path) -> bytes:
    """The code of a file as it runs: no comments, docstrings or layout; tables as they are."""
    if path.suffix != ".py":
        return _content(path)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [  # type: ignore[attr-defined]
                n for n in body
                if not (isinstance(n, ast.Expr) and isinstance(getattr(n.value, "value", 0), str))
            ]  # fmt: skip
    return ast.dump(tree).encode()


def _imported(module: str) -> set[Path]:
    """Files of the benchmarks that a module needs, itself among them, and their tables of TOML."""
    found: set[Path] = set()
    left = [module]
    while left:
        for path in _files(left.pop()):
            if path not in found:
                found.add(path)
                if path.suffix == ".py":
                    left += _names(ast.parse(path.read_text(encoding="utf-8")))
    return found


def _files(name: str) -> Iterator[Path]:
    """The file of a module, those of the packages that it is in, and tables with their names."""
    parts = name.split(".")
    for size in range(1, len(parts) + 1):
        path = BENCHMARKS.joinpath(*parts[:size])
        for file in (path.with_suffix(".py"), path / "__init__.py", path.with_suffix(".toml")):
            if file.is_file():
                yield file
        yield from path.parent.glob(f"{path.name}s/*.toml")


def _names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
