"""docs/papers.md: the four papers item by item, beside what is here.

    python -m benchmarks papers            writes the page
    python -m benchmarks papers --check    says whether it is as it would be written
    python -m benchmarks papers --run [--minutes 60] [--workers N]
                                           runs what fits, says what it skipped, writes the page

Items, places, commands and the papers' numbers are in `papers.toml`; ours are read from result
files (`quoted.find`), methods from the registry.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from fewlabels.methods.registry import METHODS
from quoted import find
from runs import ROOT, WORKERS, command_line
from runs import table as markdown

ITEMS = ROOT / "benchmarks" / "papers.toml"
PAGE = ROOT / "docs" / "papers.md"
_COLUMNS = ("paper", "what", "where", "command", "the paper's number", "here")
_FIELDS = {"item", "what", "where", "command", "paper", "here"}

Paper = Mapping[str, Any]


SAID = tomllib.loads(ITEMS.read_text(encoding="utf-8"))
RUNS: list[Mapping[str, Any]] = SAID.pop("run")
"""Commands that make the numbers, the most telling first, with their minutes."""


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for paper in SAID.values():
        parts += [f"## {paper['title']}", paper["about"], table(paper)]
    commands = (f"- `{one['command']}`: {_minutes(one)}" for one in RUNS)
    return "\n\n".join([*parts, "## What is run", FIRST, "\n".join(commands)]) + "\n"


def written() -> str:
    """The page as it stands in docs, without the line of its fingerprint."""
    return PAGE.read_text(encoding="utf-8").partition("\n<!-- made by: ")[0]


HEAD = """# The four papers, item by item

What a reader with a paper in hand looks for: every system, equation, experiment and claim, where it
is, the command that makes the number, the paper's number and ours. `-` is no number: the item is an
equation or a system, which tests hold to an implementation of its own, or the paper shows a curve.
"not here" is followed by why. Numbers in the last column are read from the pages and result files
that the command writes (`benchmarks/papers.py`, and a test that the page is what it writes); DIR is
the folder of the data (`FEWLABELS_DATA`). Data that are private or not at hand are MIMIC, OGB, AG
News and ImageNetBG (SSME); CPD, INRIA and the images of MDS (SPE)."""

FIRST = """`make papers` runs these from the top, as many as fit into an hour, and says what it
skipped. Minutes are of two idle processors."""


def table(paper: Paper) -> str:
    """The table of one paper: its systems from the registry, then its items."""
    return markdown(_COLUMNS, [*_systems(paper), *map(_row, paper["row"])])


def _systems(paper: Paper) -> Iterator[list[str]]:
    for name, item in paper["methods"].items():
        method = METHODS[name]
        module, _, kind = method.model.rpartition(".")
        where = f"`methods/{module.replace('.', '/')}.py` {kind}"
        command = f"`fewlabels estimate FILE --method {name}`"
        yield [item, f"`{name}`: {method.summary}", where, command, "-", "-"]


def _row(one: Mapping[str, str]) -> list[str]:
    found = {key: find(source) for key, source in one.items() if key not in _FIELDS}
    command = one.get("command", "")
    return [
        one["item"],
        one["what"],
        one.get("where", "-"),
        f"`{command}`" if command else "-",
        one.get("paper", "-"),
        one["here"].format(**found),
    ]


def _minutes(one: Mapping[str, Any]) -> str:
    return f"{one['minutes']:,} minutes"


# --- running ----------------------------------------------------------------------------------


def run(minutes: float, workers: int | None) -> int:
    """Run what fits, from the top; how many commands failed."""
    left, failed, skipped = minutes, 0, []
    for one in RUNS:
        if one["minutes"] > left:
            skipped.append(f"skipped ({_minutes(one)}): {one['command']}")
            continue
        words = shlex.split(one["command"])
        if one.get("workers") and workers:
            words += ["--workers", str(workers)]
        print(f"\n{shlex.join(words)}", flush=True)
        started = time.monotonic()
        done = subprocess.run([sys.executable, *words[1:]], cwd=ROOT, check=False)
        failed += done.returncode != 0
        left -= (time.monotonic() - started) / 60
    print("\n".join(["", *(skipped or ["nothing was skipped"])]))
    return failed


def main() -> int:
    """Write the page, check it, or run first."""
    options = {"run": False, "minutes": 60.0, "workers": WORKERS, "check": False}
    given = command_line(__doc__, **options).parse_args()
    failed = run(given.minutes, given.workers) if given.run else 0
    text = page()
    if given.check:
        return int(written() != text)
    PAGE.write_text(text, encoding="utf-8")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
