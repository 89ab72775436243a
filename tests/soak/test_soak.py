"""Many estimates in one process, and several at once: memory stays flat and answers the same."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import fewlabels as fl

pytestmark = pytest.mark.slow

METHODS = ("auto", "dawid-skene", "labeled", "bayesian-calibration")


def world(seed: int) -> fl.Predictions:
    """A small question, another for each seed."""
    rng = np.random.default_rng(seed)
    n = 60
    truth = rng.random(n) < 0.4
    z = rng.normal(size=(n, 3)) + 2 * truth[:, None] - 1
    labels = np.where(np.arange(n) < 15, truth, -1)
    groups = {"site": rng.integers(2, size=n)}
    return fl.Predictions(1 / (1 + np.exp(-z)), labels, groups=groups)


def ask(seed: int) -> list[tuple[object, ...]]:
    """Every estimate of a question, and its page."""
    estimates = fl.estimate(
        world(seed), METHODS[seed % len(METHODS)], ["accuracy", "roc_auc"], by="site",
        confidence_level=0.9, random_state=seed,
    )  # fmt: skip
    assert estimates.summary()
    return [tuple(row) for row in estimates.rows]


def resident() -> float:
    """Megabytes that the process holds."""
    gc.collect()
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if "VmRSS" in line) / 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_a_thousand_estimates_leave_memory_as_it_was() -> None:
    for seed in range(100):  # caches of modules and of the allocator fill
        ask(seed)
    threads, before = threading.active_count(), resident()
    held = []
    for seed in range(100, 1_000):
        ask(seed)
        if seed % 300 == 299:
            held.append(resident())
    assert threading.active_count() == threads
    # A leak of one question's arrays (60 x 400 draws x 8 bytes) would be 170 MB by now.
    assert held[-1] - before < 20, held


def test_eight_threads_answer_as_one() -> None:
    seeds = range(40)
    alone = [ask(seed) for seed in seeds]
    with ThreadPoolExecutor(8) as pool:
        assert repr(list(pool.map(ask, seeds))) == repr(alone)
