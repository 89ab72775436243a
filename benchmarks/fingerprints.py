"""Which code and data a page was made by, and whether they have changed since.

A page ends with a line for each call of a study that fills it: its command and fingerprints of the
code and of the data, the files below the places that the study reads. The code is that of the
modules that the study imports here and of the package's rooms that its cells imported, without
comments, docstrings and layout. results/samples has numbers of the cells (`samples`), by which a
page is confirmed on other code.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

BENCHMARKS = Path(__file__).resolve().parent
PACKAGE = BENCHMARKS.parent / "src" / "fewlabels"

_NO_NUMBERS = ("cli", "report", "labeling")
"""Rooms of the package on which no number depends."""

_LINE = re.compile(
    r"^<!-- (?:(\S+) )?made by: (.*?); code (\w+)(?:, confirmed by (.*?) on code (\w+))?; "
    r"data (\w*) of (.*?) -->$", re.MULTILINE,
)  # fmt: skip
Key = tuple[str, str]
"""A study and a call of it, "" where it has one."""
Samples = dict[str, dict[str, Any]]


class Stamp(NamedTuple):
    """What made a call's part of a page; `on` is the code on which `cells` confirmed it, or ""."""

    command: str
    code: str
    data: str
    places: tuple[str, ...]
    cells: str = ""
    on: str = ""


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


def write(page: Path, stamps: Mapping[Key, Stamp]) -> None:
    """Let a page end with these lines and no others."""
    lines = [
        f"<!-- {call}{' ' * bool(call)}made by: {made.command}; code {made.code}"
        + (f", confirmed by {made.cells} on code {made.on}" if made.on else "")
        + f"; data {made.data} of {' '.join(made.places)} -->"
        for (_, call), made in sorted(stamps.items())
    ]
    text = _LINE.sub("", page.read_text(encoding="utf-8")).rstrip()
    page.write_text("\n".join([text, *([""] if lines else []), *lines, ""]), encoding="utf-8")


def stamps_of(page: Path) -> dict[Key, Stamp]:
    """What the lines at the end of a page say: `python -m benchmarks MODULE ...`."""
    found = _LINE.findall(page.read_text(encoding="utf-8"))
    return {
        (command.split()[3], call): Stamp(command, code, data, tuple(places.split()), cells, on)
        for call, command, code, cells, on, data, places in found
    }


def calls_of(page: Path, module: str) -> list[str]:
    """Calls of a study that fill a page: the page names commands of parts, its lines the others."""
    text = page.read_text(encoding="utf-8")
    parts = re.findall(rf"^`python -m benchmarks {module} (\w+)", text, re.MULTILINE)
    lines = [call for name, call in stamps_of(page) if name == module]
    return list(dict.fromkeys(parts)) or lines or [""]


def title(page: Path, call: str) -> str:
    """The name of a sample."""
    return f"{page.stem} {call}".strip()


def samples_of(module: str) -> Samples:
    """The samples of a study by their names."""
    file = BENCHMARKS / "results" / "samples" / f"{module}.json"
    found: Samples = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return found


def keep_samples(module: str, samples: Samples) -> None:
    """Put the samples of a study into their file, a line each."""
    file = BENCHMARKS / "results" / "samples" / f"{module}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"{json.dumps(key)}: {json.dumps(one)}" for key, one in sorted(samples.items())]
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def stale(page: Path, key: Key, root: Path, *, timed: bool = False) -> str:
    """Why a call would no longer write what it wrote; "" if it would, as far as can be seen.

    What is `timed` is of the day when it ran.
    """
    made, kept = stamps_of(page).get(key), samples_of(key[0]).get(title(page, key[1]))
    if made is None:
        return f"has no record: python -m benchmarks {' '.join(key).strip()}"
    if timed:
        return ""
    now = code_of(key[0], kept and kept["rooms"])
    changed = ["code"] if now not in (made.code, made.on) else []
    # Data that are not at hand have not changed.
    there = data_of(root, made.places)
    changed += ["data"] if there and there != made.data else []
    return f"{' and '.join(changed)} changed: {made.command}" if changed else ""


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
