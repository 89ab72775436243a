"""Seconds, memory and the share of reading when files are streamed; figures of docs/scaling.md.

Files are made by `big_files.py` (CivilComments drawn again, with jitter; FEWLABELS_DATA). Every run
is a process of its own, whose largest memory is that of the whole process. The limit that a run is
compared with is 1.45 ns x rows x support points of processor time, plus reading, over the
processors.

    python benchmarks/scaling.py --rows 1000000 10000000 --out build/scaling
    python benchmarks/scaling.py --rows 100000000 --methods auto --out build/scaling
    python benchmarks/scaling.py --votes 20000000 --rows --out build/scaling
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import big_files

NANOSECONDS = 1.45
SUPPORT = 5_000
KDE = f"SSMEKDE(bandwidth='scott', max_support={2 * SUPPORT})"
_VOTERS = 10

_CHILD = """
import json, resource, sys, time
import fewlabels as fl
{work}
began = time.perf_counter(), time.process_time()
told = work()
said = dict(seconds=time.perf_counter() - began[0], cpu=time.process_time() - began[1], **told)
said["mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps(said))
"""

_ESTIMATE = """
from fewlabels.models import SSMEKDE
def work():
    method = {method}
    found = fl.estimate_files({folder!r}, method=method, engine={engine!r}, workers={workers},
                              checkpoints={checkpoints!r})
    row = found.rows[0]
    return dict(stream=found.diagnostics["stream"], n=found.n_items,
                first=[row.model, row.metric, row.value, row.low, row.high])
"""

_READ = """
from concurrent.futures import ThreadPoolExecutor
from fewlabels.streaming.reading import Reader, find_classes
from fewlabels.streaming.units import lay_out
from fewlabels.data.options import column_options
def work():
    layout = lay_out({folder!r}, column_options())
    reader = Reader(layout, find_classes(layout, column_options()), ())
    def read(unit):
        return sum(batch.predictions.n_items for batch in reader.batches(unit))
    with ThreadPoolExecutor({workers}) as pool:
        return dict(n=sum(pool.map(read, layout.units)))
"""

_PATTERNS = """
def work():
    found = fl.estimate_files({folder!r}, method={method}, metrics="error_rate", workers={workers},
                              checkpoints={checkpoints!r})
    return dict(stream=found.diagnostics["stream"], n=found.n_items,
                first=[found.rows[0].model, "error_rate", *found.rows[0][3:6]])
"""


class Run(NamedTuple):
    """One process: what was run, on how many rows, and what it said."""

    what: str
    rows: int
    said: dict[str, Any]


def child(work: str) -> dict[str, Any]:
    """Run in a process of its own, BLAS on one thread."""
    done = subprocess.run(
        [sys.executable, "-c", _CHILD.format(work=work)], capture_output=True, text=True,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr)
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


def runs(given: argparse.Namespace) -> Iterator[Run]:
    """Reading alone, then every method, for every number of rows."""
    common = {"workers": given.workers, "checkpoints": str(given.out / "checkpoints")}
    for rows in given.rows:
        folder = given.out / f"rows-{rows}"
        big_files.make(given.data, rows, folder)
        common["folder"] = str(folder)
        yield Run("reading alone", rows, child(_READ.format(**common)))
        for method in given.methods:
            made = KDE if method == "ssme-kde" else repr(method)
            for engine in given.engines:
                work = _ESTIMATE.format(method=made, engine=engine, **common)
                yield Run(f"{method}, {engine}", rows, child(work))
    if given.votes:
        folder = given.out / f"votes-{given.votes}"
        make_votes(given.votes, folder)
        common["folder"] = str(folder)
        for method in ("dawid-skene", "confusion-bee"):
            work = _PATTERNS.format(method=repr(method), **common)
            yield Run(f"{method} from {_VOTERS} voters", given.votes, child(work))


def make_votes(rows: int, out: Path) -> None:
    """Votes of ten classifiers who err independently, on two classes; no labels."""
    out.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(range(0, rows, big_files.PART_ROWS)):
        path = out / f"part-{number:04d}.parquet"
        if path.exists():
            continue
        rng = np.random.default_rng([big_files.SEED, 1, number])
        n = min(big_files.PART_ROWS, rows - start)
        truth = rng.random(n) < 0.3
        wrong = rng.random((n, _VOTERS)) < np.linspace(0.1, 0.35, _VOTERS)
        said = (truth[:, None] ^ wrong).astype(np.int8)
        pq.write_table(pa.table({f"y__voter{j}": said[:, j] for j in range(_VOTERS)}), path)


def table(found: list[Run], workers: int) -> list[str]:
    """Rows of the page."""
    reading = {run.rows: run.said for run in found if run.what == "reading alone"}
    lines = [
        "| what | rows | seconds | processor seconds | peak MB | reading | limit | ratio |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for run in found:
        read = reading.get(run.rows)
        share = limit = ratio = ""
        stream = run.said.get("stream", {})
        if read is not None and stream:
            share = f"{2 * read['cpu'] / run.said['cpu']:.0%}"
            points = SUPPORT if run.what.startswith("ssme-kde") else stream.get("draws_per_row")
            if points:
                least = NANOSECONDS * 1e-9 * run.rows * points + 2 * read["cpu"]
                limit = f"{least / workers:.1f} s ({points:,} points)"
                ratio = f"{run.said['seconds'] * workers / least:.2f}"
        said = run.said
        lines.append(
            f"| {run.what} | {run.rows:,} | {said['seconds']:.1f} | {said['cpu']:.1f} | "
            f"{said['mb']:.0f} | {share} | {limit} | {ratio} |"
        )
    return lines


def main() -> None:
    """Run, and print the table; every run is kept in a file of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000_000, 10_000_000])
    parser.add_argument("--votes", type=int, default=0)
    parser.add_argument("--methods", nargs="+", default=["auto", "ssme-kde"])
    parser.add_argument("--engines", nargs="+", default=["threads"])
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--out", type=Path, default=Path("build/scaling"))
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("FEWLABELS_DATA", "data")))
    given = parser.parse_args()
    if given.rows and not (given.data / "ssme_civilcomments").exists():
        print(f"no CivilComments in {given.data}; name the folder with FEWLABELS_DATA or --data")
        given.rows = []
    found: list[Run] = []
    for run in runs(given):
        found.append(run)
        print(json.dumps(run._asdict()), flush=True)
    print(f"\n{os.cpu_count()} processors, Python {platform.python_version()}, "
          f"numpy {np.__version__}, pyarrow {pa.__version__}\n")  # fmt: skip
    print("\n".join(table(found, given.workers)))


if __name__ == "__main__":
    main()
