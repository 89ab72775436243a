"""Coverage of intervals where rows belong together, with and without --cluster.

    python -m benchmarks cluster_coverage all | simulated | crossed | few | real

Two classifiers, 90% intervals of accuracy, F1, AUC and of their differences, for the population
that the clusters come from. Simulated clusters are new in every run, real ones are drawn with
replacement from all there are, so the truth is the value in the superpopulation: that of 400,000
independent rows, whose distribution is that of a row of any cluster, or of all real rows. The page
is docs/benchmarks/clusters.md.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, ndtr

import fewlabels as fl
from parts import SEED, Arguments, Part, Plan, Record, run_page, stream
from runs import grouped, share, where

Floats, Ints = np.ndarray, np.ndarray
LEVEL, METRICS = 0.9, ("accuracy", "f1", "roc_auc")
RUNS = {"labeled": (200, 50), "auto": (30, 15)}
"""Runs of a cell, and of how many of them the answer without clusters is beside it."""

SIZES, CORRELATIONS, CLUSTERS = (5, 50), (0.0, 0.3, 0.9), 40
LABELED_CLUSTERS, LABELED_ROWS, FEW = 20, 100, (5, 8)
READERS, CASES, LABELED_CASES, DRAWN = 8, 40, 20, 100
STRENGTHS, PREVALENCE, WHOLE = (1.3, 1.0), 0.4, 400_000
NAMES = ("a", "b")


def in_clusters(labels: Ints, p: Floats, votes: Any, clusters: dict[str, Ints]) -> fl.Predictions:
    """Rows with all labels, in clusters (n,) by name, which are numbered from 0."""
    groups = {name: own.astype(str) for name, own in clusters.items()}
    return fl.Predictions(p, labels, votes=votes, models=NAMES, groups=groups)


def simulated(rng: np.random.Generator, clusters: dict[str, Ints], rho: float) -> fl.Predictions:
    """Normal effects of clusters with a share rho of the variance of labels and of scores.

    Of several clusterings each has its share of rho. Two classifiers have half of their noise in
    common.
    """
    n, share = len(next(iter(clusters.values()))), rho / len(clusters)

    def noise() -> Floats:
        out = np.sqrt(1 - rho) * rng.normal(size=n)
        for own in clusters.values():
            out += np.sqrt(share) * rng.normal(size=own.max() + 1)[own]
        return out

    labels = (ndtr(noise()) < PREVALENCE).astype(np.int64)
    common, apart = noise(), [noise() for _ in NAMES]
    signs = (2 * labels - 1)[:, None] * np.array(STRENGTHS)
    z = signs + np.sqrt(0.5) * (common[:, None] + np.stack(apart, axis=1))
    return in_clusters(labels, expit(2 * z), None, clusters)


def made(world: str, rng: np.random.Generator) -> dict[str, Ints]:
    """Clusters whose logarithms of sizes are uniform, or every reader reads every case."""
    if world == "clusters":
        sizes = np.exp(rng.uniform(*np.log(SIZES), size=CLUSTERS)).round().astype(np.int64)
        return {"case": np.repeat(np.arange(CLUSTERS), sizes)}
    case, reader = (part.ravel() for part in np.indices((CASES, READERS)))
    return {"case": case, "reader": reader}


@cache
def real(data: Path, name: str) -> fl.Predictions:
    """All rows: findings of studies by two networks, or answers about conversations by a judge."""
    frame = pd.read_parquet(data / name / "data.parquet")
    if name == "chexpert":
        p = frame[["p__jfaboy__1", "p__ngango3__1"]].to_numpy()
        votes = frame[["y__jfaboy_tuned", "y__ngango3_tuned"]].to_numpy(dtype=np.int64)
        labels, cluster = frame["label"].to_numpy(dtype=np.int64), frame["item"]
    else:
        classes = frame[[f"p__gpt35__{k}" for k in (1, 2, 3, 4)]].to_numpy()
        p = np.stack([classes[:, 2:].sum(axis=1), classes[:, 3]], axis=1)  # two ways to say "good"
        votes = (p > 0.5).astype(np.int64)
        labels, cluster = (frame["label"].to_numpy() >= 3).astype(np.int64), frame["text_id"]
    codes = np.unique(cluster.astype(str), return_inverse=True)[1]
    return in_clusters(labels, p, votes, {"case": codes})


def drawn_clusters(rows: fl.Predictions, number: int, rng: np.random.Generator) -> fl.Predictions:
    """Clusters drawn with replacement, each a new one every time that it is drawn."""
    own = rows.groups["case"].astype(int)
    chosen = rng.integers(own.max() + 1, size=number)
    parts = [np.flatnonzero(own == c) for c in chosen]
    again = np.repeat(np.arange(number), [len(part) for part in parts])
    some = rows.take(np.concatenate(parts))
    return in_clusters(some.labels, some.probabilities, some.votes, {"case": again})


@cache
def truth(data: Path, name: str) -> dict[str, float]:
    """Every question's value in the superpopulation."""
    if name == "simulated":
        rows = simulated(np.random.default_rng(SEED), {"case": np.arange(WHOLE)}, 0.0)
    else:
        rows = real(data, name)
    found = fl.estimate(rows, "labeled", METRICS, confidence_level=None)
    value = {(row.model, row.metric): row.value for row in found.rows}
    return {f"{metric}{' difference' * apart}": value["a", metric] - apart * value["b", metric]
            for metric in METRICS for apart in (0, 1)}  # fmt: skip


def cells(plan: Plan) -> list[Arguments]:
    """Every cell by every method."""
    worlds, correlations, drawn = _CELLS[plan.part]
    some = [
        {"world": world, "rho": rho, "drawn": by, "labeled": labeled}
        for world, (by, labeled), rho in product(worlds, drawn, correlations)
    ]
    return [
        {**cell, "method": method, "runs": 2 if plan.quick else runs, "both": apart}
        for cell, (method, (runs, apart)) in product(plan.some(some, -2), RUNS.items())
    ]


def run(
    data: Path, world: str, rho: float, drawn: str, labeled: int, method: str,
    runs: int, both: int,
) -> list[Record]:  # fmt: skip
    """Whether the intervals hold the truth, and how wide they are, run by run."""
    known, out = truth(data, "simulated" if world in ("clusters", "crossed") else world), []
    for number in range(runs):
        rng = stream("clusters", world, rho, drawn, labeled, number)
        if world in ("clusters", "crossed"):
            rows = simulated(rng, made(world, rng), rho)
        else:
            rows = drawn_clusters(real(data, world), DRAWN, rng)
        own, n = rows.groups["case"].astype(int), rows.n_items
        if drawn == "cluster":
            chosen = np.flatnonzero(np.isin(own, rng.permutation(own.max() + 1)[:labeled]))
        else:
            chosen = rng.permutation(n)[:labeled]
        given = rows.revealing(chosen)
        for cluster in (list(rows.groups), None)[: 1 + (number < both)]:
            found = fl.estimate(
                given, method, METRICS, confidence_level=LEVEL, random_state=number, cluster=cluster
            )
            for metric in METRICS:
                asked = {metric: found.get("a", metric),
                         f"{metric} difference": found.difference("a", "b", metric)}  # fmt: skip
                out += [
                    {"world": world, "rho": rho, "drawn": drawn, "labeled": labeled,
                     "method": method, "run": number, "what": what,
                     "clustered": cluster is not None, "width": one.high - one.low,
                     "held": one.low <= known[what] <= one.high}
                    for what, one in asked.items()
                ]  # fmt: skip
    return out


def blocks(records: pd.DataFrame, plan: Plan) -> str:
    """Shares of intervals that hold the truth, and mean widths, with --cluster and without it."""
    kinds = dict(zip(METRICS, ("accuracy", "F1", "AUC"), strict=True)) | {
        "differences": "differences"
    }
    apart = records["what"].str.endswith("difference")
    records = records.assign(
        kind=records["what"].where(~apart, "differences"),
        labels=records["labeled"].astype(str) + " " + records["drawn"] + "s",
    )

    def width(own: pd.DataFrame) -> str:
        pairs = own.pivot_table(index=["run", "what"], columns="clustered", values="width")
        return f"{(pairs[True] / pairs[False]).median():.2f}"  # of the runs that have both

    columns = {
        head + " without" * (not clustered):
            where("clustered", clustered, where("kind", kind, share("held")))
        for clustered in (True, False)
        for kind, head in [*kinds.items()][0 if clustered else 2 :]
    }  # fmt: skip
    by, head = ["world", "rho", "labels", "method"], ["rows", "icc", "labels", "method"]
    return grouped(records, by, columns | {"width / without": width}, head)


_DESIGN = f"{LEVEL:.0%} intervals, seed {SEED}; " + " and ".join(
    f"{runs} runs a cell of `{method}` (standard error of a coverage of 90%: "
    f"{np.sqrt(0.09 / runs):.1%}), {apart} of them without clusters too"
    for method, (runs, apart) in RUNS.items()
)
_BY_CASE = ("cluster", LABELED_CLUSTERS), ("row", LABELED_ROWS)
_CELLS: dict[str, tuple[Any, Any, Any]] = {
    "simulated": (("clusters",), CORRELATIONS, _BY_CASE),
    "crossed": (("crossed",), CORRELATIONS, (("cluster", LABELED_CASES), ("row", LABELED_ROWS))),
    "few": (("clusters",), CORRELATIONS, [("cluster", number) for number in FEW]),
    "real": (("chexpert", "llm_rubric"), ("real",), _BY_CASE),
}
"""Worlds, correlations, and how rows are drawn to be labeled."""
PARTS = {name: Part(cells, run, blocks, _DESIGN) for name in _CELLS}


if __name__ == "__main__":
    run_page(__doc__, "cluster_coverage", PARTS, {"real"}, "clusters")
