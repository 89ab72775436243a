"""Speed and memory of the losses of label histograms, against loops over classes and bins.

    python benchmarks/annotations_speed.py [--rows 1000000] [--out FILE]

The rival is the published code's way of working (lh_calib), in plain numpy: (n, K) arrays for every
step, then a loop over classes and bins. Each time is the best of three runs, one after the other in
the same process; its numbers must agree with ours. Memory is the peak of a fresh process above what
it held with the inputs loaded.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fewlabels.annotations import METRICS, evaluate, statistic
from fewlabels.kernels.blocks import using_workers

CLASSES = 10
BINS = 15
LABELS = 5


class Line(NamedTuple):
    """One row of the page."""

    what: str
    ours: str
    rival: str
    ratio: str
    target: str


def world(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Counts (n, K) of five labels, and probabilities (n, K) that are sharper than the truth."""
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.full(CLASSES, 0.5), n)
    counts = rng.multinomial(LABELS, q).astype(np.float64)
    np.maximum(q, 1e-6, out=q)
    q **= 1.3
    q /= q.sum(axis=1, keepdims=True)
    return counts, q


def by_loops(counts: np.ndarray, z: np.ndarray) -> dict[str, float]:
    """The same losses with whole arrays and a loop over classes and bins."""
    n = counts.sum(axis=1)
    mu = counts / n[:, None]
    epistemic = (mu - z) ** 2
    spread = mu * (1 - mu)
    excess = spread / (n[:, None] - 1)
    out = {
        "accuracy": float((counts.argmax(axis=1) == z.argmax(axis=1)).mean()),
        "L": float((epistemic + spread).sum(axis=1).mean()),
        "EL_plugin": float(epistemic.sum(axis=1).mean()),
        "EL": float((epistemic - excess).sum(axis=1).mean()),
        "CL_plugin": 0.0,
        "CL": 0.0,
    }
    edges = np.linspace(0, 1, BINS + 1)[1:-1]
    for k in range(counts.shape[1]):
        plugin, debiased = _bins(mu[:, k], z[:, k], edges)
        out["CL_plugin"] += plugin
        out["CL"] += debiased
    differ = 1 - (counts * (counts - 1)).sum(axis=1) / (n * (n - 1))
    pair = 1 - (z**2).sum(axis=1)
    out["L_disagreement"] = float(((differ - pair) ** 2 + differ * (1 - differ)).mean())
    plugin, debiased = _bins(differ, pair, edges)
    out["CL_disagreement_plugin"], out["CL_disagreement"] = plugin, debiased
    return out


def _bins(mu: np.ndarray, z: np.ndarray, edges: np.ndarray) -> tuple[float, float]:
    index = np.digitize(z, edges)
    plugin = debiased = 0.0
    for b in range(BINS):
        inside = index == b
        size = int(inside.sum())
        if size:
            share = size / len(z)
            loss = share * (mu[inside].mean() - z[inside].mean()) ** 2
            plugin += loss
            if size > 1:
                debiased += loss - share * mu[inside].var() / (size - 1)
    return plugin, debiased


def best(function: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """Shortest of several runs, and the last result."""
    shortest = np.inf
    for _ in range(repeats):
        started = time.perf_counter()
        result = function()
        shortest = min(shortest, time.perf_counter() - started)
    return shortest, result


_PEAK = """
import sys
import numpy as np
sys.path.insert(0, {folder!r})
from annotations_speed import by_loops
from fewlabels.annotations import evaluate
counts, z = np.load({path!r} + "/counts.npy"), np.load({path!r} + "/z.npy")
evaluate(counts[:50], z[:50], confidence_level=0.95)  # libraries loaded
def kb(name):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name))
before = kb("VmRSS:")
{call}
print((kb("VmHWM:") - before) / 1024, before / 1024)
"""


def peak_mb(call: str, folder: str) -> float:
    """Peak MB above the inputs of a fresh process that makes one call."""
    here = str(Path(__file__).resolve().parent)
    code = _PEAK.format(folder=here, path=folder, call=call)
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return float(done.stdout.split()[0])


def losses(counts: np.ndarray, z: np.ndarray, folder: str) -> list[Line]:
    """All losses of `evaluate`, their intervals, and weights."""
    n = f"{len(z):,} x {CLASSES}"
    ours, found = best(lambda: evaluate(counts, z))
    rival, expected = best(lambda: by_loops(counts, z))
    worst = max(abs(found[name] - value) for name, value in expected.items())
    if worst > 1e-10:
        raise SystemExit(f"the losses differ by {worst:.1e}")
    with using_workers(1):
        alone, _ = best(lambda: evaluate(counts, z))
    peak, theirs = (peak_mb(f"{f}(counts, z)", folder) for f in ("evaluate", "by_loops"))
    inputs = (counts.nbytes + z.nbytes) / 2**20
    weight = np.random.default_rng(1).random(len(z))
    weighted, _ = best(lambda: evaluate(counts, z, weight=weight))
    bootstrap, _ = best(lambda: evaluate(counts, z, confidence_level=0.95))
    return [
        Line(f"all losses, {n}", f"{ours:.2f} s", f"{rival:.2f} s", _times(rival, ours), "< 1 s"),
        Line("on one thread", f"{alone:.2f} s", f"{rival:.2f} s", _times(rival, alone), ""),
        Line(
            f"memory above the inputs ({inputs:.0f} MB)",
            f"{peak:.0f} MB",
            f"{theirs:.0f} MB",
            _times(theirs, peak),
            f"< {4 * inputs:.0f} MB",
        ),
        Line("with weights", f"{weighted:.2f} s", "", "", ""),
        Line(f"with intervals of all {len(METRICS)} metrics", f"{bootstrap:.2f} s", "", "", ""),
    ]


def statistics(counts: np.ndarray, z: np.ndarray) -> list[Line]:
    """U-statistics and expectations of three labels."""
    out = []
    for name in ("disagreement", "unanimity_3", "majority_strength_3"):
        phi = statistic(name)
        observed, _ = best(lambda phi=phi: phi.observed(counts), 2)
        expected, _ = best(lambda phi=phi: phi.expected(z), 2)
        what = f"{name}: observed and expected, {len(z):,} items"
        out.append(Line(what, f"{observed:.2f} s and {expected:.2f} s", "", "", ""))
    return out


def _times(rival: float, ours: float) -> str:
    return f"{rival / max(ours, 1e-9):.1f}x"


def page(lines: list[Line]) -> str:
    """The lines as a Markdown table."""
    rows = [" | ".join(("", *line, "")).strip() for line in lines]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    head = "| what | fewlabels | loops over classes and bins | ratio | target |"
    where = f"{cores} processors, Python {platform.python_version()}, numpy {np.__version__}."
    return "\n".join([where, "", head, "|---|---|---|---|---|", *rows, ""])


def main() -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    counts, z = world(arguments.rows)
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/counts.npy", counts)
        np.save(f"{folder}/z.npy", z)
        lines = losses(counts, z, folder)
    few = min(arguments.rows, 100_000)
    lines += statistics(counts[:few], z[:few])
    text = page(lines)
    print(text)
    if arguments.out:
        arguments.out.write_text(text, encoding="utf-8")
    if arguments.json:
        arguments.json.write_text(json.dumps([line._asdict() for line in lines]), encoding="utf-8")


if __name__ == "__main__":
    main()
