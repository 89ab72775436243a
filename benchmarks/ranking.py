"""Win rates from a judge's verdicts on all comparisons and people's on a few.

    python -m benchmarks ranking all | coverage | many | real

Simulated leagues of six contestants: people go by Davidson's model; a judge says what they would
with a given probability, else goes by the order of presentation or the length of answers. Real
data: PandaLM's 999 pairs of answers of five models, two judges, and the majority of three people,
which is hidden but for some. Errors are of the win rates of all contestants, and the order is the
share of their pairs that are ranked as they truly are. The page is docs/benchmarks/ranking.md.
"""

from __future__ import annotations

from functools import cache, partial
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import fewlabels as fl
from parts import SEED, Arguments, Part, Plan, Record, run_page, stream
from runs import averaged, grouped, where

Floats, Ints = np.ndarray, np.ndarray
WORDS = np.array(["model_a", "model_b", "tie"])
STRENGTH, TIE = np.linspace(0.8, -0.8, 6), -0.3
LENGTH = np.array([-0.5, 0.3, -1.0, 0.2, 1.2, -0.2])
WORLDS: dict[str, dict[str, float]] = {
    "plain": {"right": 0.8, "order": 0.0, "length": 0.0},
    "likes the first": {"right": 0.7, "order": 1.2, "length": 0.0},
    "likes length": {"right": 0.7, "order": 0.0, "length": 1.0},
}
"""How often a judge says what people would, and what it goes by else."""
OURS = "fewlabels"


def probabilities(a: Floats, b: Floats, tie: float, order: float = 0.0) -> Floats:
    """Davidson's P(first), P(second), P(tie) of log strengths, (n, 3)."""
    p = np.exp(np.stack([a + order / 2, b - order / 2, (a + b) / 2 + tie], axis=1))
    return p / p.sum(axis=1, keepdims=True)


def drawn(rng: np.random.Generator, p: Floats) -> Ints:
    """A class of each row of probabilities."""
    return (rng.random((len(p), 1)) > np.cumsum(p, axis=1)).sum(axis=1)


def league(rng: np.random.Generator, world: str, n: int, labeled: int) -> pd.DataFrame:
    """Comparisons with a judge's verdict on each, and people's on some."""
    judge, size = WORLDS[world], len(STRENGTH)
    a = rng.integers(size, size=n)
    b = (a + rng.integers(1, size, size=n)) % size
    truth = drawn(rng, probabilities(STRENGTH[a], STRENGTH[b], TIE))
    long = judge["length"] * LENGTH
    biased = drawn(rng, probabilities(long[a], long[b], -1.0, judge["order"]))
    said = np.where(rng.random(n) < judge["right"], truth, biased)
    names = np.array([f"m{c}" for c in range(size)])
    return pd.DataFrame({
        "model_a": names[a], "model_b": names[b], "y__judge": WORDS[said],
        "label": np.where(np.arange(n) < labeled, WORDS[truth], ""),
    })  # fmt: skip


@cache
def real_truth(data: Path) -> dict[str, float]:
    """The win rates of the majority of people on all pairs."""
    ranking = fl.rank(pandalm(data).drop(columns=["gpt35", "pandalm7b"]), winner="truth", size=0)
    return {m: ranking.estimates.get(m, "win_rate").value for m in ranking.estimates.models}


@cache
def simulated_truth() -> dict[str, float]:
    """The win rates of people."""
    each = {}
    for c, own in enumerate(STRENGTH):
        others = np.delete(STRENGTH, c)
        p = probabilities(np.full(len(others), own), others, TIE)
        each[f"m{c}"] = float((p[:, 0] + p[:, 2] / 2).mean())
    return each


@cache
def pandalm(data: Path) -> pd.DataFrame:
    """PandaLM's pairs, each in the order in which it stands there."""
    frame = pd.read_parquet(data / "llm_judges" / "pandalm.parquet")
    pair = frame["pair"].str.split("_", n=1, expand=True)
    verdicts = {"gpt35": "y__gpt35", "pandalm7b": "y__pandalm7b", "truth": "majority"}
    said = {k: np.array(["tie", "model_a", "model_b", ""])[frame[c]] for k, c in verdicts.items()}
    return pd.DataFrame({"model_a": pair[0], "model_b": pair[1], **said})


def cells(plan: Plan) -> list[Arguments]:
    """Every cell of a table."""
    worlds, sizes, labels, runs = _CELLS[plan.part]
    some = [
        {"world": world, "n": n, "labeled": labeled, "runs": 2 if plan.quick else runs}
        for world, n, labeled in product(worlds, sizes, labels)
    ]
    return plan.some(some, 1)


def run(data: Path, world: str, n: int, labeled: int, runs: int) -> list[Record]:
    """Error of each contestant's win rate, and share of pairs in their order, run by run."""
    truth = real_truth(data) if world == "pandalm" else simulated_truth()
    out = []
    for number in range(runs):
        rng = stream("ranking", world, n, labeled, number)
        if world == "pandalm":
            table = pandalm(data).sample(frac=1, random_state=rng.integers(2**31))
            table = table.assign(label=np.where(np.arange(n) < labeled, table["truth"], ""))
            table = table.drop(columns="truth")
        else:
            table = league(rng, world, n, labeled)
        ranking = fl.rank(table, random_state=number, size=0, workers=1)
        ours = {m: ranking.estimates.get(m, "win_rate") for m in truth}
        for way, rows in {OURS: ours, **ranking.alone}.items():
            pairs = [
                (rows[a].value - rows[b].value) * (truth[a] - truth[b]) > 0
                for a, b in combinations(truth, 2)
            ]
            out += [
                {"world": world, "n": n, "labeled": labeled, "run": number, "way": way, "model": m,
                 "error": rows[m].value - value, "order": float(np.mean(pairs)),
                 "held": rows[m].low <= value <= rows[m].high,
                 "width": rows[m].high - rows[m].low}
                for m, value in truth.items()
            ]  # fmt: skip
    return out


def blocks(records: pd.DataFrame, plan: Plan) -> str:
    """Root mean square error, share of pairs in order, coverage and width, by way."""

    def share(own: pd.DataFrame, what: str) -> str:
        by_run = own.groupby("run")[what].mean()
        return f"{by_run.mean():.0%} ± {by_run.std(ddof=1) / np.sqrt(len(by_run)):.0%}"

    figures: dict[str, Any] = {
        "error": lambda own: f"{np.sqrt((own['error'] ** 2).mean()):.3f}",
        "order": partial(share, what="order"),
    }
    ways = (OURS, "people alone", "judges alone")
    columns = {f"{n}, {way}": where("way", way, say) for n, say in figures.items() for way in ways}
    columns["covered"] = where("way", OURS, partial(share, what="held"))
    columns["width"] = where("way", OURS, averaged("width", "{:.2f}".format))
    by, head = ["world", "n", "labeled"], ["judge", "verdicts", "people's"]
    return grouped(records, by, columns, head)


_CELLS: dict[str, tuple[Any, Any, Any, int]] = {
    "coverage": (tuple(WORLDS), (1_000,), (20, 50, 200), 20),
    "many": (tuple(WORLDS), (5_000,), (100,), 10),
    "real": (("pandalm",), (999,), (50, 100, 200), 15),
}
"""Judges, numbers of their verdicts and of people's, and runs."""
PARTS = {
    name: Part(
        cells, run, blocks,
        f"95% intervals, seed {SEED}, {runs} runs a cell; ± is the standard error over runs",
    )
    for name, (*_, runs) in _CELLS.items()
}  # fmt: skip


if __name__ == "__main__":
    run_page(__doc__, "ranking", PARTS, {"real"}, "ranking")
