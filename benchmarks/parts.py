"""What pages of several parts share: the parts, their cells, and the page between its marks.

Every study of parts has the options [--data DIR] [--work DIR] [--workers N] [--fresh] [--quick].
Its cells are kept as lines of JSON in the folder --work, outside the repository; another run goes
on where one stopped, and with --fresh starts anew, as it should after a change of the code. With
--quick there are a few cells of each part, and the page is a copy in the folder.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from zlib import crc32

import numpy as np
import pandas as pd

import fewlabels
from fewlabels.kernels.blocks import using_workers
from runs import DATA, ROOT, command_line, fill, of_cells, run_missing, save_svg
from samples import Taken

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Record = dict[str, Any]
Arguments = dict[str, Any]
_T = TypeVar("_T")

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
SEED = 40_000


@dataclass(frozen=True)
class Plan:
    """How much is run, on which data, where figures go, and what else the command line asks for.

    A quick run has one trial of few lists: it shows that everything works, and means nothing.
    `part` is the name of the part that runs.
    """

    data: Path
    figures: Path
    quick: bool
    asked: Mapping[str, Any] = field(default_factory=dict)
    part: str = ""

    def some(self, everything: Sequence[_T], quick: int = 1) -> Sequence[_T]:
        """All of them; of a quick run the first so many, or the last if below 0."""
        first = everything[:quick] if quick > 0 else everything[quick:]
        return first if self.quick else everything

    def picture(self, figure: Figure, name: str, text: str) -> str:
        """Keep a figure below those of the pages, and show it on one."""
        save_svg(figure, self.figures / f"{name}.svg")
        return f"![{text}](figures/{name}.svg)"


def stream(*key: str | int) -> np.random.Generator:
    """Random numbers of their own for whatever these words and numbers name."""
    return np.random.default_rng([SEED, *(crc32(str(part).encode()) for part in key)])


class Some(NamedTuple):
    """Values of an axis, and how many of them a quick run has (`Plan.some`)."""

    values: Sequence[Any]
    quick: int = 1


def crossed(**axes: Some | Sequence[Any]) -> Callable[[Plan], list[Arguments]]:
    """Cells of all combinations of the axes' values, of which those of the last change fastest."""
    return lambda plan: [
        dict(zip(axes, values, strict=True))
        for values in product(
            *(plan.some(*axis) if isinstance(axis, Some) else axis for axis in axes.values())
        )
    ]


@dataclass(frozen=True)
class Part:
    """An experiment.

    Attributes
    ----------
    cells
        Arguments of `run` for every cell.
    run
        Records of one cell; called with the folder of the data and the cell's arguments.
    blocks
        What all records say, as Markdown: name of a mark on the page -> text; or the text alone, of
        the mark that has the part's name.
    design
        Runs, seed, and what a "±" is.
    """

    cells: Callable[[Plan], list[Arguments]]
    run: Callable[..., list[Record]]
    blocks: Callable[[pd.DataFrame, Plan], Mapping[str, str] | str]
    design: str


def run_cell(run: Callable[..., list[Record]], data: Path, cell: Arguments) -> Record:
    """Records of a cell, run on one thread."""
    with using_workers(1):
        return {"records": run(data, **cell)}


def run_part(
    name: str, part: Part, plan: Plan, folder: Path, workers: int
) -> tuple[Mapping[str, str], float]:
    """Run the cells of a part that are missing: its blocks of the page, and processor seconds."""
    folder.mkdir(parents=True, exist_ok=True)
    # Cells that are kept must agree in these.
    same = {"quick": plan.quick, "fewlabels": fewlabels.__version__}
    settings = folder / "settings.json"
    if settings.exists() and json.loads(settings.read_text()) != same:
        raise SystemExit(f"error: {folder} has cells of other settings; run with --fresh")
    settings.write_text(json.dumps(same))
    cells, run = part.cells(plan), partial(run_cell, part.run, plan.data)
    kept = run_missing(folder / "cells.jsonl", run, cells, workers, f"cells of {name}")
    found = of_cells(kept, cells)
    records = [record for one in found for record in one["records"]]
    text = part.blocks(pd.DataFrame.from_records(records), plan)
    blocks = {name: text} if isinstance(text, str) else text
    return blocks, sum(f["seconds"] for f in found)


def run_page(
    description: str | None, name: str, parts: Mapping[str, Part], need_data: Collection[str],
    page_name: str = "", **more: Any,
) -> None:  # fmt: skip
    """Run the parts that the command line asks for, and fill a page of docs/benchmarks with them.

    The page has a study's own name unless told otherwise; `more` are options of its own.
    """
    page = ROOT / "docs" / "benchmarks" / f"{page_name or name}.md"
    work = CACHE / "fewlabels" / "benchmarks" / name
    options = {"data": DATA, "work": work, "workers": 2, "fresh": False, "quick": False}
    parser = command_line(f"{description}\n{(__doc__ or '').partition('.')[2]}", **options, **more)
    parser.add_argument("parts", nargs="+", choices=[*parts, "all"], metavar="PART")
    given = parser.parse_args()
    asked = list(parts) if "all" in given.parts else list(dict.fromkeys(given.parts))
    if not given.data.is_dir() and set(need_data) & set(asked):
        parser.error(f"no data at {given.data}; name the folder with --data or FEWLABELS_DATA")
    work = given.work / "quick" if given.quick else given.work
    work.mkdir(parents=True, exist_ok=True)
    if given.quick:
        page = Path(shutil.copyfile(page, work / page.name))
    plan = Plan(given.data.resolve(), page.parent / "figures", given.quick, vars(given))
    for one in asked:
        if given.fresh:
            # Cells of an earlier state of the code must not mix with those of this one.
            shutil.rmtree(work / one, ignore_errors=True)
        part = parts[one]
        try:
            own = replace(plan, part=one)
            found, seconds = run_part(one, part, own, work / one, given.workers)
        except Taken:
            continue
        short = f"a few cells; in full {part.design}" if given.quick else part.design
        caption = (
            f"`python -m benchmarks {name} {one}{' --quick' * given.quick}`: {short}. "
            f"fewlabels {fewlabels.__version__}, {seconds / 60:.1f} minutes of one processor."
        )
        fill(page, {mark: f"{caption}\n\n{text}" for mark, text in found.items()})
        print(f"{one}: wrote {page}")
