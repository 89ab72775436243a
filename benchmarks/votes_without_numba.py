"""Processor time of `auto` on votes with numba and without, as ratios of one run.

    python benchmarks/votes_without_numba.py [METHOD]

Every cell is a process of its own. Compiled ones run twice; the first tells what compiling costs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

import fewlabels as fl
from fewlabels.kernels.arrays import Ints

SIZES = [
    # items, annotators, classes, votes per item, domains
    (300, 12, 2, 12, 1),
    (300, 12, 2, 4, 1),
    (300, 12, 3, 12, 1),
    (300, 12, 3, 4, 1),
    (1_000, 5, 2, 5, 1),
    (5_000, 20, 2, 4, 1),
    (600, 4, 2, 4, 15),
]


def votes(items: int, annotators: int, classes: int, each: int) -> Ints:
    """Votes (n, M), -1 missing, of annotators who err in 10 to 40% of the items."""
    rng = np.random.default_rng(0)
    size = (items, annotators)
    labels = rng.integers(classes, size=items)[:, None]
    right = rng.random(size) >= rng.uniform(0.1, 0.4, annotators)
    out = np.where(right, labels, (labels + rng.integers(1, classes, size=size)) % classes)
    out[np.argsort(rng.random(size), axis=1) >= each] = -1
    return out


def seconds(
    items: int, annotators: int, classes: int, each: int, domains: int, method: str, times: int
) -> list[float]:
    """Processor seconds of an estimate, some times over."""
    predictions = fl.Predictions(
        votes=votes(items, annotators, classes, each),
        classes=tuple(range(classes)),
        domain=None if domains == 1 else [f"d{i % domains:02d}" for i in range(items)],
    )
    out = []
    if os.environ.get("NUMBA_DISABLE_JIT"):
        # Modules are loaded in the first call of the compiled ones, which is told apart.
        few = fl.models.HCBEE(burn_in=1, sweeps=4, thin=1)
        fl.estimate(predictions, few, "error_rate")
    for _ in range(times):
        started = time.process_time()
        fl.estimate(predictions, method, "error_rate")
        out.append(time.process_time() - started)
    return out


def _elsewhere(call: str, **environment: str) -> list[float]:
    code = f"import json, votes_without_numba as v\nprint(json.dumps({call}))"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True,
        cwd=os.path.dirname(os.path.abspath(__file__)), env=os.environ | environment,
    )  # fmt: skip
    found: list[float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Print the table."""
    method = sys.argv[1] if len(sys.argv) > 1 else "auto"
    print("| items | annotators | classes | votes per item | domains | first call, compiles (s) "
          "| compiled (s) | without numba (s) | ratio |\n|" + "---:|" * 9)  # fmt: skip
    for size in SIZES:
        asked = f"v.seconds(*{size}, {method!r}, "
        with tempfile.TemporaryDirectory() as folder:
            first, fast = _elsewhere(f"{asked}2)", NUMBA_CACHE_DIR=folder)
        (plain,) = _elsewhere(f"{asked}1)", NUMBA_DISABLE_JIT="1")
        print(f"| {' | '.join(f'{n:,}' for n in size)} | {first:.1f} | {fast:.1f} | {plain:.1f} "
              f"| {plain / fast:.1f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
