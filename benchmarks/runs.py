"""How scripts are asked, keep what their runs found, and make tables of it."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import chain
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

import samples

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("FEWLABELS_DATA", ROOT.parent / "shared" / "data"))
WORKERS = os.cpu_count() or 1
Row = dict[str, Any]
_Job, _Result = TypeVar("_Job"), TypeVar("_Result")


def command_line(description: str | None, **options: Any) -> argparse.ArgumentParser:
    """A command line that is described by the head of its script, and its options' defaults.

    An option has the type of its default; False is a flag, and what reads a text is for an option
    that has none.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    if samples.current is not None:
        options |= {n: v for n, v in samples.current.defaults.items() if n in options}
    for name, default in options.items():
        kind: dict[str, Any] = {"type": type(default), "default": default}
        if default is False or callable(default):
            kind = {"type": default} if default else {"action": "store_true"}
        parser.add_argument(f"--{name.replace('_', '-')}", **kind)
    return parser


def split(text: str, by: str = ",") -> list[str]:
    """What commas separate."""
    return [part.strip() for part in text.split(by) if part.strip()]


def numbers(text: str) -> list[int]:
    """Whole numbers that commas separate."""
    return [int(part) for part in split(text)]


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def grouped(
    records: pd.DataFrame, by: Sequence[str], columns: Mapping[str, Callable[[pd.DataFrame], Any]],
    head: Sequence[str] = (),
) -> str:  # fmt: skip
    """A Markdown table with a row for each group of records, in the order they come in.

    A row has the group's key, under `head`, and what every column says of the group's records.
    """
    groups = records.groupby([*by], sort=False)
    rows = ([*key, *(say(own) for say in columns.values())] for key, own in groups)
    return table([*(head or by), *columns], rows)


def averaged(
    name: str, write: int | Callable[[float], str] = 3, spread: str = ""
) -> Callable[[pd.DataFrame], str]:
    """A column of `grouped`: the mean of a column of the records.

    `spread` puts the standard error ("sem") or deviation ("std") behind it.
    """
    return lambda own: plus_minus(own[name], write, spread)


def share(name: str, digits: int = 0) -> Callable[[pd.DataFrame], str]:
    """A column of `grouped`: the mean of a column of the records in percent."""
    return lambda own: f"{own[name].mean():.{digits}%}" if own[name].notna().any() else "-"


def averages(digits: Mapping[str, int]) -> Callable[[pd.DataFrame], str]:
    """A column of `grouped`: means of several columns, with a slash between."""
    return lambda own: " / ".join(number(own[name].mean(), d) for name, d in digits.items())


def where(
    name: str, value: Any, say: Callable[[pd.DataFrame], Any]
) -> Callable[[pd.DataFrame], Any]:
    """A column of `grouped` that looks at the records alone that have a value."""
    return lambda own: say(own[own[name] == value])


def plus_minus(
    values: pd.Series, write: int | Callable[[float], str] = 3, spread: str = "sem"
) -> str:
    """Mean of the known values ± what is named by `spread`; `write` may be a number of digits."""
    write = partial(number, digits=write) if isinstance(write, int) else write
    known = values.astype(float).dropna()
    if len(known) < 2 or not spread:
        return write(known.mean())
    return f"{write(known.mean())} ± {write(getattr(known, spread)())}"


def number(value: float, digits: int = 3) -> str:
    """A number without its leading zero, "-" where there is none."""
    if value is None or not np.isfinite(value):
        return "-"
    text = f"{value:.{digits}f}"
    return text.replace("0.", ".", 1) if text.removeprefix("-").startswith("0.") else text


def small(value: float) -> str:
    """A small number: 1.54e-5."""
    if not np.isfinite(value):
        return "-"
    mantissa, power = f"{value:.2e}".split("e")
    return f"{mantissa}e{int(power)}"


def across(
    cells: pd.DataFrame, index: Sequence[str], columns: str, values: str = "text", empty: str = ""
) -> pd.DataFrame:
    """One row per `index` and one column per value of `columns`, in the order they come in."""
    rows, names = cells[[*index]].drop_duplicates(), cells[columns].drop_duplicates()
    wide = cells.set_index([*index, columns])[values].unstack(columns)
    return wide.reindex(index=rows.set_index([*index]).index, columns=list(names)).fillna(empty)


def markdown(wide: pd.DataFrame, head: Sequence[str]) -> str:
    """A pivoted table as Markdown; `head` names the columns of its index."""
    return table(
        [*head, *wide.columns], (row.values() for row in wide.reset_index().to_dict("records"))
    )


def fill(page: Path, parts: dict[str, str]) -> None:
    """Put tables between the page's marks `<!-- name -->` and `<!-- end name -->`."""
    text = page.read_text(encoding="utf-8")
    for name, block in parts.items():
        mark = re.compile(f"(<!-- {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
        text, count = mark.subn(lambda m, block=block: f"{m[1]}{block}\n\n{m[2]}", text)
        if count != 1:
            raise SystemExit(f"{page.name} has no place for {name!r}")
    page.write_text(text, encoding="utf-8")


def panels(
    size: tuple[float, float], rows: int = 1, columns: int = 1, **shared: Any
) -> tuple[Figure, Any]:
    """A figure and its axes; `shared` is for `Figure.subplots`."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns, **shared)


def save_svg(figure: Figure, path: Path) -> None:
    """Write a figure with text as text, and no more digits than can be seen."""
    from matplotlib import rc_context

    path.parent.mkdir(parents=True, exist_ok=True)
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": path.stem}):
        figure.savefig(path, format="svg", metadata={"Date": None})
    # A hundredth of a point cannot be seen; the other digits of attributes are half of the file.
    short = partial(re.sub, r"(\.\d\d)\d+", r"\1")
    path.write_text(re.sub('"[^"]*"', lambda m: short(m[0]), path.read_text(encoding="utf-8")))


def read_lines(file: Path) -> list[Row]:
    """The cells that a file of JSON lines keeps; a line that a stop cut short is none."""
    rows = []
    for line in file.read_bytes().splitlines() if file.exists() else []:
        with contextlib.suppress(ValueError):
            rows.append(json.loads(line))
    return rows


def plain(value: Any) -> Any:
    """The same as JSON can hold it: NaN and infinities as null."""
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def spread(
    function: Callable[[_Job], _Result], jobs: Sequence[_Job], workers: int, what: str
) -> Iterator[_Result]:
    """Results in the order of the jobs, from processes of one thread each; says how far it is.

    One worker is this process.
    """
    work = partial(_on_one_thread, function)
    with ExitStack() as stack:
        each = map(work, jobs)
        if workers > 1:
            # Threads that were started before a fork may be missed after it: they start afresh.
            pool = ProcessPoolExecutor(workers, get_context("spawn"), initializer=_begin)
            each = stack.enter_context(pool).map(work, jobs)
        for done, result in enumerate(each, 1):
            end = "\n" if done == len(jobs) else ""
            print(f"\r{done}/{len(jobs)} {what}", end=end, file=sys.stderr, flush=True)
            yield result


def _begin() -> None:
    """Make a process of the pool ready; it ends when its parent does, however that ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    assert parent is not None
    threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()


def _on_one_thread(function: Callable[[_Job], _Result], job: _Job) -> _Result:
    # Sums depend on how many threads share them, to the last digits.
    with threadpool_limits(1):
        return function(job)


def run_missing(
    file: Path, run: Callable[[Row], Row], cells: Iterable[Row], workers: int, what: str = "cells"
) -> list[Row]:
    """Run the cells that a file lacks, each kept as a line as it ends; all that the file keeps.

    A line has the names and values of its cell, and what `run` found.
    """
    return run_jobs(file, run, [[cell] for cell in cells], workers, what)


def run_jobs(
    file: Path, run: Callable[[Row], Row], jobs: Sequence[Sequence[Row]], workers: int, what: str
) -> list[Row]:
    """As `run_missing`; the cells of a job are run one after another by one process.

    The command's sampler, if it has one, draws some of the cells, or has its own run again; a call
    that keeps cells.jsonl has the name of that file's folder.
    """
    sampler, each = samples.current, partial(_run_each, run)
    call, cells = file.parent.name if file.name == "cells.jsonl" else "", [*chain(*jobs)]
    with samples.using(None):  # a cell may run cells of its own
        if sampler and sampler.again is not None:
            sampler.run_again(call, cells, lambda some: (
                (plain(found), rooms)
                for (found,), rooms in spread(each, [[c] for c in some], workers, what)
            ))  # fmt: skip
        there = read_lines(file)
        found = _by_cell(there, cells)
        missing = [left for job in jobs if (left := [c for c in job if _key(c) not in found])]
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.exists() and missing and not file.read_bytes().endswith(b"\n"):
            file.write_text("".join(json.dumps(line) + "\n" for line in there), encoding="utf-8")
        rooms, results = set[str](), spread(each, missing, workers, what)
        for job, (done, imported) in zip(missing, results, strict=True):
            lines = [json.dumps(plain(c | result)) for c, result in zip(job, done, strict=True)]
            there += map(json.loads, lines)
            rooms |= imported
            with file.open("a", encoding="utf-8") as kept:
                kept.writelines(line + "\n" for line in lines)
    if sampler:
        sampler.draw(call, cells, of_cells(there, cells), sum(map(len, missing)), rooms)
    return there


def _run_each(run: Callable[[Row], Row], job: Sequence[Row]) -> tuple[list[Row], set[str]]:
    """What cells found, with the processor seconds of each, and rooms that are imported now."""
    found = []
    for cell in job:
        started = time.process_time()
        result = run(cell)
        found.append({"seconds": round(time.process_time() - started, 4)} | result)
    return found, rooms_imported()


def rooms_imported() -> set[str]:
    """Folders of the package from which this process has imported a module, "." for the first."""
    names = [name.split(".")[1:-1] for name in sys.modules if name.startswith("fewlabels.")]
    return {"/".join(name) or "." for name in names}


def run_kept(
    description: str | None, results: Path, run: Callable[..., Row],
    cells: Callable[[argparse.Namespace], Iterable[Row]],
    blocks: Callable[[list[Row]], Mapping[str, str]], page: Path, what: str = "cells",
    **options: Any,
) -> None:  # fmt: skip
    """Run the cells that a file of the repository lacks, and fill the page from their lines.

    `cells` and the command's options say which; with `--page-only` the page has all that is kept,
    with `--fresh` nothing was.
    """
    asking = command_line(description, **options, workers=2, page_only=False, fresh=False)
    given = asking.parse_args()
    if given.fresh and samples.current and samples.current.again is None:
        results.unlink(missing_ok=True)
    if given.page_only:
        lines = read_lines(results)
    else:
        run = partial(run, data=given.data) if "data" in given else run
        asked = list(cells(given))
        lines = of_cells(run_missing(results, run, asked, given.workers, what), asked)
    fill(page, blocks(lines))
    print(f"wrote {page}")


def of_cells(lines: Sequence[Row], cells: Sequence[Row]) -> list[Row]:
    """The lines of some cells, in the order of these."""
    found = _by_cell(lines, cells)
    return [found[_key(cell)] for cell in cells]


def _by_cell(lines: Sequence[Row], cells: Sequence[Row]) -> dict[str, Row]:
    """Lines by their cells, which need not have the same names."""
    shapes = dict.fromkeys(map(tuple, cells))
    return {_key({n: line.get(n) for n in names}): line for names in shapes for line in lines}


def _key(cell: Row) -> str:
    return json.dumps(plain(cell))
