"""docs/papers.md: the four papers item by item, beside what is here.

    python -m benchmarks papers            writes the page
    python -m benchmarks papers --check    says whether it is as it would be written
    python -m benchmarks papers --run [--minutes 60] [--workers N]
                                           runs what fits, says what it skipped, writes the page

Items, places, commands and the papers' numbers are in `papers.toml`; ours are read from result
files (`quoted.find`), methods from the registry.
"""

from __future__ import annotations

import math
import re
import shlex
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

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
        parts += [f"## {paper['title']}", paper["about"], table(paper), *_beside(paper)]
    commands = (f"- `{one['command']}`: {_minutes(one)}" for one in RUNS)
    return "\n\n".join([*parts, "## What is run", FIRST, "\n".join(commands)]) + "\n"


def written() -> str:
    """The page as it stands in docs, without the line of its fingerprint."""
    return PAGE.read_text(encoding="utf-8").partition("\n<!-- made by: ")[0]


HEAD = """# The four papers, item by item

What a reader with a paper in hand looks for: its systems, equations, experiments and claims, where
each is, the command that makes the number, the paper's number and ours. In the last column `-` is
no number: tests hold such an equation or system to an implementation of its own. In the paper's it
says that there is no number, or that it is not at hand. "not here" is followed by why, "not run
yet" by the command of its row. What the command measures is read from the pages and result files
that it writes (`benchmarks/papers.py`); settings, and what a test or another page says, are typed.
Files are in `src/fewlabels`, those of `benchmarks` and `tests` in the repository. Not at hand are
the predictions on MIMIC, OGB, AG News and ImageNetBG (SSME), the scores on CPD and INRIA (SPE),
and images of MDS (histograms)."""

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


# --- tables of a paper beside ours ------------------------------------------------------------

_NOTHING = math.nan, math.nan
_FORMS = {"paper": "{:.2f}", "here": "{:.2f}", "apart": "{:+.1f}"}


def printed(one: Paper) -> pd.DataFrame:
    """A table of a paper and ours: by method and number of labels, errors and standard errors.

    A paper's ± is 1.96 standard errors, a page's the standard deviation over its runs.
    """
    page = one["at"].partition(" > ")[0]
    path = PAGE.parent / f"{page}.md"
    runs = re.findall(r"^- Runs: (\d+)$", path.read_text("utf-8") if path.exists() else "", re.M)

    def read(text: str, per_se: float) -> tuple[float, float]:
        mean, spread = map(float, text.split(" ± "))
        return mean, spread / per_se

    rows = []
    for method, text in one["errors"].items():
        for n, cell in zip((20, 50, 100), text.split(" / "), strict=True):
            ours = _NOTHING
            if runs:
                row = one.get("from", {}).get(method, f"{one['at']} > {method}")
                ours = read(find(f"{row} > n_l = {n}"), math.sqrt(int(runs[0])))
            rows.append([method, n, *read(cell, 1.96), *ours])
    found = pd.DataFrame(rows, columns=["method", "n", "paper", "paper_se", "here", "here_se"])
    gap, unit = found["here"] - found["paper"], np.hypot(found["here_se"], found["paper_se"])
    return found.assign(apart=gap / unit)


def _beside(paper: Paper) -> Iterator[str]:
    """Every table of a paper beside ours, and labels alone over each method, of both."""
    if tables := paper.get("printed", ()):
        yield paper["beside"]
    ratios = {}
    for one in tables:
        cells = printed(one)
        known, near = cells["here"].count(), (cells["apart"].abs() <= 2).sum()
        said = f"{near} of {known} within two standard errors" if known else "not run yet"
        yield f"**{one['item']}: {one['what']}** (`{one['command']}`): {said}"
        written = cells.assign(
            **{name: cells[name].map(form.format) for name, form in _FORMS.items()}
        )
        lines = written.groupby("method", sort=False)[[*_FORMS]].agg(" / ".join)
        head = ["", "paper", "here", "standard errors apart"]
        yield _lines(head, lines)
        first = cells[cells["n"] == 20].set_index("method")[["paper", "here"]]
        if known and "labeled" in first.index:
            over = (first.loc["labeled"] / first).map("{:.2f}".format)
            ratios[one["what"]] = over.agg(" / ".join, axis=1)
    if ratios:
        yield paper["factors"]
        yield _lines(["", *ratios], pd.concat(ratios, axis=1).fillna("-"))


def _lines(head: list[str], lines: pd.DataFrame) -> str:
    return markdown(head, lines.replace(r"\+?nan", "-", regex=True).reset_index().to_numpy())


def _minutes(one: Mapping[str, Any]) -> str:
    return f"{one['minutes']:,} minute{'s' * (one['minutes'] != 1)}"


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
