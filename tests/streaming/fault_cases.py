"""Rows in many small files, and `fewlabels estimate` over them as a process that may be killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

MODELS = ("good", "fair", "poor")

# A checkpoint after every part, and few draws so that it is small: a run of some seconds is to be
# killed many times.
_PROGRAM = """
import sys
from fewlabels.cli import main
from fewlabels.streaming import passes
from fewlabels.evaluation import draws

if __name__ == "__main__":
    passes.SECONDS_BETWEEN, passes.SHARE = 0.0, 0
    draws.ALL_DRAWS_ITEMS = 0
    sys.exit(main(sys.argv[1:]))
"""


def rows(seed: int, n: int, known: int) -> pa.Table:
    """Three classifiers' probabilities of class 1, a group, and the labels of the first rows."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.3).astype(np.int8)
    logits = 2 * (truth[:, None] - 0.5) * [2.0, 1.0, 0.5] + rng.normal(size=(n, 3))
    columns = {"label": pa.array(truth, mask=np.arange(n) >= known)}
    columns |= {f"p__{m}__1": 1 / (1 + np.exp(-logits[:, j])) for j, m in enumerate(MODELS)}
    return pa.table(
        {**columns, "site": pa.array(np.array(["north", "south"])[rng.integers(2, size=n)])}
    )


def write_files(folder: Path, files: int, per_file: int) -> Path:
    """Parquet files of so many rows, of each of which five have labels; two row groups each."""
    folder.mkdir(parents=True)
    for k in range(files):
        table = rows(k, per_file, 5)
        pq.write_table(table, folder / f"part-{k:03d}.parquet", row_group_size=-(-per_file // 2))
    return folder


def truncate(path: Path) -> None:
    """Cut a file in the middle."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path) -> None:
    """Turn bits of the second row group's pages over; the footer stays."""
    place = pq.read_metadata(path).row_group(1).column(1)
    start = place.dictionary_page_offset or place.data_page_offset
    damaged = bytearray(path.read_bytes())
    for at in range(start, start + min(place.total_compressed_size, 64)):
        damaged[at] ^= 0xFF
    path.write_bytes(damaged)


def other_columns(path: Path) -> None:
    """Other columns than those of the other files."""
    table = pq.read_table(path)
    pq.write_table(table.rename_columns([*table.column_names[:-1], "place"]), path)


class Command:
    """`fewlabels estimate` over a folder, with checkpoints in another."""

    def __init__(self, source: Path, checkpoints: Path, *options: str | Path) -> None:
        program = checkpoints.parent / "program.py"
        program.write_text(_PROGRAM)
        self.checkpoints = checkpoints
        self.arguments = [sys.executable, "-W", "error", str(program), "estimate", str(source)]
        self.arguments += [str(option) for option in options]

    def start(self, *options: str | Path) -> subprocess.Popen[str]:
        """Begin, as the leader of a group of processes."""
        return subprocess.Popen(
            [*self.arguments, *map(str, options)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"FEWLABELS_CHECKPOINTS": str(self.checkpoints)},
            start_new_session=True,
        )

    def run(self, *options: str | Path) -> tuple[int, str, str]:
        """Exit code, output and errors."""
        process = self.start(*options)
        out, err = process.communicate(timeout=300)
        return process.returncode, out, err


def answer(text: str) -> dict[str, Any]:
    """The JSON without what says how it came about."""
    found: dict[str, Any] = json.loads(text)
    del found["diagnostics"]["stream"]["resumed"]
    return found


def written(folder: Path) -> dict[str, pa.Table]:
    """Every file in a folder, hidden ones too, by its name; each must be a whole Parquet file."""
    return {path.name: pq.read_table(path) for path in sorted(folder.iterdir())}
