"""The folder of a benchmark: what may be written into it, and the manifest of what ran."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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
