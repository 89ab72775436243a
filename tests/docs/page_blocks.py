"""Blocks of the pages, and running them as their reader would."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"^\$ (?:[^\n\\]|\\[^\n]|\\\n)*", re.MULTILINE)
"""A command with the lines on which a backslash continues it."""
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?|\.\d+")
_PLOT = re.compile(r"(?<= )[-|o][-|o ]*$")


class Command(NamedTuple):
    """A command of a page, and what the page says that it prints, in parts."""

    arguments: list[str]
    shown: list[list[str]]


def blocks(page: str) -> list[tuple[str, str]]:
    """Language and text of every fenced block."""
    return _BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))


def commands(block: str) -> list[Command]:
    """The commands of a console block; a line of three points stands for any lines."""
    found: list[Command] = []
    for line in _COMMAND.sub(_joined, block).splitlines():
        if line.startswith("$ "):
            found.append(Command(shlex.split(line[2:]), [[]]))
        elif line.strip() == "...":
            found[-1].shown.append([])
        else:
            found[-1].shown[-1].append(line)
    return found


def _joined(command: re.Match[str]) -> str:
    return re.sub(r"\\\n\s*", "", command[0])


def words_and_numbers(line: str) -> tuple[str, list[float]]:
    """A line without its picture: its words, and its numbers."""
    line = _PLOT.sub("", line.rstrip()).rstrip()
    numbers = [float(n.replace(",", "")) for n in _NUMBER.findall(line)]
    return " ".join(_NUMBER.sub("#", line).split()), numbers


def alike(shown: str, printed: str) -> bool:
    """The same words, and numbers that differ by no more than other versions make them."""
    (said, theirs), (got, ours) = words_and_numbers(shown), words_and_numbers(printed)
    return said == got and all(
        abs(a - b) <= max(0.02, 0.05 * abs(a)) for a, b in zip(theirs, ours, strict=True)
    )


def missing(shown: list[list[str]], printed: str) -> str | None:
    """The first line that a page shows and the command does not print, in this order."""
    lines = [line for line in printed.splitlines() if line.strip()]
    place = 0
    for number, part in enumerate(shown):
        part = [line for line in part if line.strip()]
        for k, line in enumerate(part):
            # Within a part line follows line; the first part begins with the output.
            far = place + 1 if k or number == 0 else len(lines)
            found = [i for i in range(place, min(far, len(lines))) if alike(line, lines[i])]
            if not found:
                return line
            place = found[0] + 1
    return None


def run_python(page: str, block: str) -> str:
    """What a block prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(block, page, "exec"), {"__name__": "__main__"})
    return out.getvalue()
