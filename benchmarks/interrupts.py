"""Seconds from Ctrl-C to the end of every command, at random moments; a figure of docs/scaling.md.

Each command runs on a file that takes it a while, is interrupted somewhere between its start and
the time that it took undisturbed (or 40 s), and must end by itself with exit code 130.

    python benchmarks/interrupts.py --out build/interrupts
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SEED, MOST = 22, 40.0


def scores(path: Path, rows: int, models: int, classes: int = 2) -> None:
    """A table of classifiers' probabilities, of which 200 rows are labeled."""
    rng = np.random.default_rng(SEED)
    truth = rng.integers(classes, size=rows)
    columns: dict[str, object] = {"label": pa.array(truth, mask=np.arange(rows) >= 200)}
    columns["site"] = rng.integers(20, size=rows)
    for j in range(models):
        z = rng.normal(size=(rows, classes))
        z[np.arange(rows), truth] += 1.5 + 0.2 * j
        p = np.exp(z)
        p /= p.sum(axis=1, keepdims=True)
        columns |= {f"p__m{j}__{k}": p[:, k] for k in range(classes)}
    pq.write_table(pa.table(columns), path, row_group_size=50_000)


def votes(path: Path, rows: int) -> None:
    """Votes of six annotators, in two domains."""
    rng = np.random.default_rng(SEED)
    truth = rng.integers(2, size=rows)
    columns = {"domain": rng.integers(2, size=rows)}
    for j in range(6):
        columns[f"y__a{j}"] = np.where(rng.random(rows) < 0.1 + 0.04 * j, 1 - truth, truth)
    pq.write_table(pa.table(columns), path)


def annotations(path: Path, rows: int) -> None:
    """Counts of ten labels an item, and two predictors."""
    rng = np.random.default_rng(SEED)
    p = rng.dirichlet(np.ones(3), rows)
    counts = np.array([rng.multinomial(10, q) for q in p])
    columns = {f"n__{c}": counts[:, c] for c in range(3)}
    for name in ("a", "b"):
        q = rng.dirichlet(np.ones(3), rows) / 2 + p / 2
        columns |= {f"p__{name}__{c}": q[:, c] for c in range(3)}
    pq.write_table(pa.table(columns), path)


COMMANDS = {
    "estimate, a million rows": "estimate rows.parquet",
    "estimate, groups": "estimate rows.parquet --by site",
    "estimate, threads": "estimate rows.parquet --engine threads --resume",
    "estimate, processes": "estimate rows.parquet --engine processes",
    "estimate, 200 classes": "estimate classes.parquet",
    "estimate, 100 classifiers": "estimate classifiers.parquet",
    "estimate, ssme-kde": "estimate middle.parquet --method ssme-kde",
    "estimate, ssme-flow": "estimate middle.parquet --method ssme-flow",
    "estimate, votes": "estimate votes.parquet",
    "estimate, bee": "estimate votes.parquet --method bee",
    "estimate, hcbee": "estimate votes.parquet --method hcbee",
    "compare": "compare rows.parquet",
    "curve": "curve middle.parquet --model m0",
    "curve, spe": "curve middle.parquet --model m0 --method spe",
    "threshold": "threshold middle.parquet --model m0 --min-precision .8",
    "label-next": "label-next rows.parquet --model m0",
    "shift": "shift rows.parquet",
    "calibrate": "calibrate rows.parquet --method temperature --out out.parquet",
    "annotations": "annotations counts.parquet",
    "doctor": "doctor rows.parquet",
    "convert": "convert rows.parquet out.csv",
}


class Heard(NamedTuple):
    """How long an end took after Ctrl-C, of as many interruptions, and what else was seen."""

    slowest: float
    times: int
    wrong: list[str]


def start(words: list[str], folder: Path) -> subprocess.Popen[str]:
    """A command as a user starts it: a shell's background would leave it deaf to Ctrl-C."""
    return subprocess.Popen(
        [sys.executable, "-m", "fewlabels", *words], cwd=folder, text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
        env=os.environ | {"FEWLABELS_CHECKPOINTS": str(folder / "saved")},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip


def undisturbed(words: list[str], folder: Path) -> float:
    """How long a command takes, `MOST` seconds at most."""
    begun, run = time.monotonic(), start(words, folder)
    try:
        run.communicate(timeout=MOST)
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
    return time.monotonic() - begun


def interrupted(words: list[str], folder: Path, times: int, chance: random.Random) -> Heard:
    """Interrupt a command at random moments."""
    whole, slowest, wrong, count = undisturbed(words, folder), 0.0, list[str](), 0
    for _ in range(times):
        run = start(words, folder)
        time.sleep(max(chance.uniform(0, 1) * whole, 0.7))
        if run.poll() is not None:
            run.communicate()
            continue
        os.killpg(run.pid, signal.SIGINT)  # as a terminal does: to all of them
        begun = time.monotonic()
        try:
            _, err = run.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            err = run.communicate()[1]
        seconds = time.monotonic() - begun
        if run.returncode == 0 or (run.returncode == -signal.SIGINT and not err):
            continue  # it ended just then, or Python itself had not begun
        count, slowest = count + 1, max(slowest, seconds)
        if run.returncode != 130 or "Traceback" in err:
            wrong.append(f"exit {run.returncode}: {err.strip().splitlines()[-1:]}")
    return Heard(slowest, count, wrong)


def main() -> None:
    """Run, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commands", nargs="*", help=f"of {', '.join(COMMANDS)}; all unless given")
    parser.add_argument("--times", type=int, default=4)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    folder = (given.out or Path(tempfile.mkdtemp())).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    scores(folder / "rows.parquet", 1_000_000, 5)
    scores(folder / "middle.parquet", 20_000, 3)
    scores(folder / "classes.parquet", 20_000, 3, classes=200)
    scores(folder / "classifiers.parquet", 10_000, 100)
    votes(folder / "votes.parquet", 20_000)
    annotations(folder / "counts.parquet", 200_000)
    chance = random.Random(SEED)
    print("| command | interrupted | slowest end | else |\n|---|---|---|---|", flush=True)
    for name in given.commands or COMMANDS:
        words = COMMANDS[name].split()
        heard = interrupted(words, folder, given.times, chance)
        said = "; ".join(heard.wrong)
        print(f"| {name} | {heard.times} | {heard.slowest:.1f} s | {said} |", flush=True)


if __name__ == "__main__":
    main()
