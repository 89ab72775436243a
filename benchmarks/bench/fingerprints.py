"""Which code and data a page was made by, and whether they have changed since.

A page ends with a line for each study that fills it: its command and fingerprints of the code, the
package and the modules that the study imports, without comments, docstrings and layout, and of the
data, the files below the places that it reads.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

BENCHMARKS = Path(__file__).resolve().parents[1]
PACKAGE = BENCHMARKS.parent / "src" / "fewlabels"

_NO_NUMBERS = ("cli", "report", "labeling")
"""Rooms of the package on which no number depends."""

_LINE = re.compile(r"^<!-- made by: (.*?); code (\w+); data (\w*) of (.*?) -->$", re.MULTILINE)


class Stamp(NamedTuple):
    """What a page was made by."""

    command: str
    code: str
    data: str
    places: tuple[str, ...]


def code_of(module: str) -> str:
    """Fingerprint of the package and of all that a module of the benchmarks imports there."""
    rooms = (p for p in sorted(PACKAGE.rglob("*.py")) if p.relative_to(PACKAGE).parts[0]
             not in _NO_NUMBERS)  # fmt: skip
    return _digest(_code(path) for path in [*rooms, *sorted(_imported(module))])


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


def stamp(page: Path, command: str, module: str, root: Path, places: Sequence[str]) -> None:
    """Put the line of a module at the end of a page, in place of one that is there."""
    made = Stamp(command, code_of(module), data_of(root, places), tuple(sorted(places)))
    write(page, stamps_of(page) | {module: made})


def write(page: Path, stamps: Mapping[str, Stamp]) -> None:
    """Let a page end with these lines and no others."""
    lines = [
        f"<!-- made by: {made.command}; code {made.code}; data {made.data} of "
        f"{' '.join(made.places)} -->"
        for _, made in sorted(stamps.items())
    ]
    text = _LINE.sub("", page.read_text(encoding="utf-8")).rstrip()
    page.write_text("\n".join([text, *([""] if lines else []), *lines, ""]), encoding="utf-8")


def stamps_of(page: Path) -> dict[str, Stamp]:
    """What the lines at the end of a page say, by module: `python -m benchmarks MODULE ...`."""
    found = _LINE.findall(page.read_text(encoding="utf-8"))
    return {
        command.split()[3]: Stamp(command, code, data, tuple(places.split()))
        for command, code, data, places in found
    }


def stale(page: Path, module: str, root: Path) -> str:
    """Why a page is no longer what its command would write; "" if it is, as far as can be seen."""
    made = stamps_of(page).get(module)
    if made is None:
        return "has no fingerprint"
    changed = ["code"] if made.code != code_of(module) else []
    # Data that are not at hand have not changed.
    now = data_of(root, made.places)
    changed += ["data"] if now and now != made.data else []
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
    """The code of a file as it runs: no comments, docstrings or layout."""
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
                left += _names(ast.parse(path.read_text(encoding="utf-8")))
    return found


def _files(name: str) -> Iterator[Path]:
    """The file of a module, and of the packages that it is in."""
    parts = name.split(".")
    for size in range(1, len(parts) + 1):
        path = BENCHMARKS.joinpath(*parts[:size])
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.is_file():
                yield file


def _names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
