"""The folder of a benchmark: finished cells, a line each, and the manifest of what ran."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.cells import Body, Cell
from fewlabels import InputError, UsageError

MANIFEST, CELLS = "manifest.json", "cells.jsonl"
WRITTEN = ("results.parquet", "traits.parquet", "report.md", "figures", CELLS, MANIFEST)
"""What a benchmark, its page included, writes into its folder."""


def check_free(folder: Path) -> None:
    """Refuse a folder with finished cells in it, or with files that no benchmark wrote."""
    there = [name for name in WRITTEN if (folder / name).exists()]
    if there and not (folder / MANIFEST).exists():
        raise UsageError(f"`out` {folder} holds {', '.join(there)} of something else; name another")
    if CELLS in there or "results.parquet" in there:
        raise UsageError(f"`out` {folder} holds a benchmark; go on by `resume`, or name another")


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """What the system refuses in the block is one line."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"cannot write in {folder}: {error.strerror or error}; what is finished is kept: mend "
            "that, and go on with `resume`"
        ) from None


def replace_file(path: Path, write: Callable[[Path], Any]) -> None:
    """Write a file beside `path`, then put it in its place, whole."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def replace_text(path: Path, text: str) -> None:
    """`replace_file` with a text."""
    replace_file(path, lambda place: place.write_text(text, encoding="utf-8"))


def write_manifest(folder: Path, values: Mapping[str, Any]) -> None:
    """Put plain values into the folder, which is made if it is not there."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        replace_text(folder / MANIFEST, json.dumps(values, indent=2) + "\n")


def read_manifest(folder: Path) -> dict[str, Any]:
    """The plain values that `write_manifest` wrote."""
    try:
        found = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{folder / MANIFEST} is not there: nothing to resume") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{folder / MANIFEST} cannot be read ({error})") from None
    if not isinstance(found, dict):
        raise InputError(f"{folder / MANIFEST} is no manifest of a benchmark")
    return found


@dataclass(frozen=True)
class KeptCells:
    """The finished cells of a benchmark, a line each in one file that only grows.

    `settings` maps a data set to the fingerprint of all that its cells depend on besides their
    own keys: a line of another fingerprint is foreign, and its cell is computed again.
    """

    folder: Path
    settings: Mapping[str, str]

    def add(self, cell: Cell, body: Body) -> None:
        """Keep what a cell found, from any process: a line that a kill cut short spoils itself."""
        kept = {"cell": cell, "settings": self.settings[cell.dataset], "body": body}
        content = json.dumps(kept, separators=(",", ":")).encode()
        with writing(self.folder), (self.folder / CELLS).open("ab", buffering=0) as file:
            line = b"\n%s %s\n" % (_digest(content), content)
            while line:
                line = line[file.write(line) :]

    def read(self) -> dict[Cell, Body]:
        """What the cells found, without damaged and foreign lines; the last of a cell counts."""
        found: dict[Cell, Body] = {}
        path = self.folder / CELLS
        with writing(self.folder):
            lines = path.read_bytes().split(b"\n") if path.exists() else []
        for line in lines:
            digest, _, content = line.partition(b" ")
            if digest and digest == _digest(content):
                kept = json.loads(content)
                cell = Cell(*kept["cell"])
                if kept["settings"] == self.settings.get(cell.dataset):
                    found[cell] = kept["body"]
        return found


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=10).hexdigest().encode()
