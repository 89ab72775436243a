"""Files of extreme sizes: seconds and peak memory of the command; figures of docs/scaling.md.

Each case is a file (made once, from a seed) and the command that a user would run on it, with the
default method, in a process of its own. It must end within its limits.

    python benchmarks/sizes.py --out build/sizes
    python benchmarks/sizes.py --out build/sizes classes groups
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

PART_ROWS = 250_000
SEED = 22


class Case(NamedTuple):
    """A file by its sizes, options of the command, and what it may take: seconds and GB."""

    models: int
    rows: int
    classes: int = 2
    groups: int = 0
    labels: int = 100
    seconds: float = 600
    gigabytes: float = 4

    @property
    def options(self) -> tuple[str, ...]:
        """Of the command, beside the file."""
        return ("--by", "site") if self.groups else ()


CASES = {
    "classifiers": Case(200, 20_000, seconds=60, gigabytes=2),
    "many-classifiers": Case(10_000, 30, labels=10),
    "classes": Case(3, 50_000, classes=1_000, labels=500, seconds=120, gigabytes=4),
    "groups": Case(3, 1_000_000, groups=10_000, labels=1_000, seconds=60),
    "rows": Case(5, 10_000_000),
}


def part(case: Case, start: int, rows: int) -> pa.Table:
    """Some rows: classifiers share an error, and differ in skill; the first rows are labeled."""
    rng = np.random.default_rng([SEED, start, case.classes])
    truth = rng.integers(case.classes, size=rows)
    if case.classes == 2:
        truth = (rng.random(rows) < 0.3).astype(np.int64)
    shown = np.arange(start, start + rows) < case.labels
    columns: dict[str, Any] = {"label": pa.array(truth, mask=~shown)}
    if case.groups:
        columns["site"] = rng.integers(case.groups, size=rows).astype(np.int32)
    skill = np.linspace(1.5, 3.0, case.models)
    if case.classes == 2:
        shared = 0.7 * rng.normal(size=rows)
        for j in range(case.models):
            z = skill[j] * (truth - 0.5) + shared + rng.normal(size=rows)
            columns[f"p__m{j}__1"] = (1 / (1 + np.exp(-z))).astype(np.float32)
        return pa.table(columns)
    for j in range(case.models):
        z = rng.normal(size=(rows, case.classes)).astype(np.float32)
        z[np.arange(rows), truth] += 2 * skill[j]
        p = np.exp(z)
        p /= p.sum(axis=1, keepdims=True)
        columns |= {f"p__m{j}__{k}": p[:, k] for k in range(case.classes)}
    return pa.table(columns)


def make(case: Case, path: Path) -> None:
    """Write the file of a case, a part at a time; one that is there already stays."""
    if path.exists():
        return
    draft, writer = path.with_suffix(".draft"), None
    size = min(PART_ROWS, max(20_000_000 // (case.models * case.classes), 1))
    for start in range(0, case.rows, size):
        table = part(case, start, min(size, case.rows - start))
        writer = writer or pq.ParquetWriter(draft, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()
    os.replace(draft, path)


def measured(case: Case, path: Path, patience: float) -> dict[str, Any]:
    """Seconds, processor seconds and peak GB of the command on a file, and how it ended.

    It is stopped after `patience` seconds.
    """
    command = [sys.executable, "-m", "fewlabels", "estimate", str(path), *case.options]
    began = time.perf_counter()
    with subprocess.Popen(
        ["timeout", str(patience), *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    ) as running:  # fmt: skip
        assert running.stdout is not None
        last = running.stdout.read().strip().splitlines()[-1:]
        _, status, used = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
    return {
        "seconds": time.perf_counter() - began,
        "cpu": used.ru_utime + used.ru_stime,
        "gb": used.ru_maxrss / 2**20,
        "exit": running.returncode,
        "last": "".join(last)[:200],
    }


def runs(names: list[str], out: Path, patience: float) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every case, one after the other."""
    for name in names:
        path = out / f"{name}.parquet"
        make(CASES[name], path)
        yield name, measured(CASES[name], path, patience)


def row(name: str, found: dict[str, Any]) -> str:
    """A row of the page."""
    case = CASES[name]
    within = found["seconds"] <= case.seconds and found["gb"] <= case.gigabytes
    ended = "yes" if within and not found["exit"] else "no"
    groups = f", {case.groups:,} groups" if case.groups else ""
    return (
        f"| {case.models:,} classifiers x {case.rows:,} rows x {case.classes:,} classes{groups} | "
        f"{found['seconds']:.0f} s | {found['cpu']:.0f} s | {found['gb']:.2f} GB | "
        f"{case.seconds:.0f} s, {case.gigabytes:.0f} GB | {ended} |"
    )


def main() -> None:
    """Run, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(CASES)}; all unless given")
    parser.add_argument("--out", type=Path, default=Path("build/sizes"))
    parser.add_argument("--patience", type=float, default=900)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, found in runs(given.cases or list(CASES), given.out, given.patience):
        print(json.dumps({name: found}), flush=True)
        rows.append(row(name, found))
    print("\n| file | wall | processor | peak | limit | within |\n|---|---|---|---|---|---|")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
