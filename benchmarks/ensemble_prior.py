"""Learn the prior of `learned-ensemble` from very many sets of classifiers.

    python benchmarks/ensemble_prior.py [--seeds 32] [--workers 2] [--parts DIR] [--out FILE]

1. Every set (`fewlabels.bench.study.families`, seeds below 1,000) shows 10, 20, 50 or 100 of its
   labels, at random, and 800 items without. Every belief of a library is fitted to these.
2. What a belief makes of each classifier's metrics (mean and standard deviation over draws of its
   coefficients) is kept with its evidence, and with the truth on all 5,000 items of the set.
3. The prior weights of the beliefs maximise the mean log density of the truth under the mixture of
   the beliefs' normal predictions, each belief weighed by prior weight times evidence, less a
   multiple of the mixture mean's scaled absolute error. They are learned on all families, and
   anew without each of them. Weights below .002 become 0.

The result does not depend on the number of workers.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

import fewlabels as fl
from fewlabels.bench.study.families import FAMILIES, make_set
from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.blocks import using_workers
from fewlabels.kernels.simplex import logsumexp, softmax
from fewlabels.metrics.plans import States, prepare, view_of
from fewlabels.metrics.registry import resolve
from fewlabels.models.belief_mixture import Belief, each_belief
from fewlabels.models.pooled_index import PoolName

LABELED = (10, 20, 50, 100)
UNLABELED, POPULATION, DRAWS = 800, 5_000, 16
METRICS = ("accuracy", "brier", "ece", "roc_auc", "average_precision")

ERROR_SCALES = np.array([0.04, 0.05, 0.04, 0.06, 0.10])
"""What an error of each metric is measured in, with 20 labels."""

SAMPLING = np.array([0.015, 0.015, 0.012, 0.02, 0.04])
"""Standard deviations that the items, which are a sample, add to each metric's prediction."""

INFLATION = 1.2
"""A normal approximation at the mode is too narrow with few labels."""

ERROR_WEIGHT, RIDGE, LEAST = 3.0, 2e-4, 0.002

_POOLS: tuple[PoolName, ...] = ("raw", "calibrated")
_SLOPES = (  # anchored, mean and sd of the slope, sd of the offsets
    (False, 1.0, 0.15, 0.2),
    (False, 1.5, 0.3, 0.3),
    (False, 2.5, 0.6, 0.5),
    (False, 0.65, 0.2, 0.4),
    (True, 1.0, 0.15, 0.2),
    (True, 1.0, 0.35, 0.35),
    (True, 1.4, 0.35, 0.35),
    (True, 1.2, 0.6, 0.5),
)
_DEVIATIONS = (  # sds of the gap, the deviations, the votes, and the slopes by class
    (0.0, 0.0, 0.0, 0.0),
    (0.0, 0.0, 0.7, 0.0),
    (0.2, 0.2, 0.5, 0.0),
    (0.4, 0.4, 1.0, 0.0),
    (0.8, 1.0, 2.0, 0.4),
)
LIBRARY = tuple(
    Belief(1.0, pool, *slope, *deviation)
    for pool, slope, deviation in product(_POOLS, _SLOPES, _DEVIATIONS)
)


class Seen(NamedTuple):
    """One set: log evidence (C,), means and sds (C, Q, M), truth (Q, M), labels, its family."""

    evidence: Floats
    mean: Floats
    sd: Floats
    truth: Floats
    n_labeled: int
    family: str


# --- what every belief says of a set --------------------------------------------------------


def look(job: tuple[str, int], parts: Path) -> Seen:
    """What the beliefs say of the set of a family and seed; kept in a file."""
    family, seed = job
    n_labeled = LABELED[(seed + sorted(FAMILIES).index(family)) % len(LABELED)]
    path = parts / f"{family}-{seed}.npz"
    if path.exists():
        kept = np.load(path)
        return Seen(kept["evidence"], kept["mean"], kept["sd"], kept["truth"], n_labeled, family)
    with threadpool_limits(1), using_workers(1):
        seen = _look(family, seed, n_labeled)
    partial_path = path.with_suffix(f".{os.getpid()}")
    with partial_path.open("wb") as file:
        np.savez(file, evidence=seen.evidence, mean=seen.mean, sd=seen.sd, truth=seen.truth)
    partial_path.replace(path)
    return seen


def _look(family: str, seed: int, n_labeled: int) -> Seen:
    everything = make_set(family, seed, POPULATION).predictions
    rng = np.random.default_rng([seed, sorted(FAMILIES).index(family), 1])
    rows = rng.choice(everything.n_items, n_labeled + UNLABELED, replace=False)
    some = everything.take(rows)
    some = some.with_labels(np.where(np.arange(len(rows)) < n_labeled, some.labels, -1))
    evidence, means, sds = [], [], []
    for log_evidence, posterior in each_belief(LIBRARY, DRAWS, some, rng):
        drawn = _metrics(some, posterior.block(np.arange(DRAWS), slice(None)))
        evidence.append(log_evidence)
        means.append(drawn.mean(axis=0))
        sds.append(drawn.std(axis=0))
    onehot = np.eye(everything.n_classes)[everything.labels][:, :, None]
    truth = _metrics(everything, onehot)[0]
    return Seen(np.array(evidence), np.array(means), np.array(sds), truth, n_labeled, family)


def _metrics(predictions: fl.Predictions, weights: Floats) -> Floats:
    """Metrics (D, Q, M) of label weights (n, K, D)."""
    chosen = resolve(METRICS)
    rows = np.arange(predictions.n_items)
    views = [view_of(predictions, rows, j) for j in range(predictions.n_models)]
    states = States([prepare(view, chosen, exact=True) for view in views])
    states.add(weights, slice(0, len(rows)))
    found = states.finish(chosen, weights.shape[2])
    return np.stack([found[name] for name in METRICS], axis=1)


# --- weights --------------------------------------------------------------------------------


class Table(NamedTuple):
    """All sets, padded to eight classifiers with NaN."""

    evidence: Floats  # (S, C)
    mean: Floats  # (S, C, Q, M)
    sd: Floats
    truth: Floats  # (S, Q, M)
    n_labeled: Ints
    family: np.ndarray

    def of(self, rows: np.ndarray) -> Table:
        """Some of the sets."""
        return Table(*(values[rows] for values in self))


def tabulate(sets: Sequence[Seen]) -> Table:
    """Sets side by side."""
    most = max(s.truth.shape[1] for s in sets)

    def padded(values: Floats) -> Floats:
        gap = most - values.shape[-1]
        return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, gap)], constant_values=np.nan)

    return Table(
        np.array([s.evidence - s.evidence.max() for s in sets]),
        np.array([padded(s.mean) for s in sets]),
        np.array([padded(s.sd) for s in sets]),
        np.array([padded(s.truth) for s in sets]),
        np.array([s.n_labeled for s in sets]),
        np.array([s.family for s in sets]),
    )


def learn(table: Table) -> Floats:
    """Prior weights (C,) of the beliefs."""
    size = table.evidence.shape[1]
    known = ~np.isnan(table.truth) & ~np.isnan(table.mean).any(axis=1)
    count = known.sum(axis=(1, 2))
    mean, truth = np.nan_to_num(table.mean), np.nan_to_num(table.truth)
    sd = np.sqrt((INFLATION * np.nan_to_num(table.sd)) ** 2 + SAMPLING[:, None] ** 2)
    z = (truth[:, None] - mean) / sd
    density = np.where(known[:, None], -0.5 * np.minimum(z**2, 60) - np.log(sd), 0.0)
    scale = ERROR_SCALES[:, None] * np.sqrt(20 / table.n_labeled)[:, None, None] ** 0.7

    def objective(theta: Floats) -> tuple[float, Floats]:
        logs = table.evidence + theta
        logs = logs - logsumexp(logs)[:, None]
        weights = np.exp(logs)
        joint = logs[:, :, None, None] + density
        total = logsumexp(joint)
        share = (np.exp(joint - total[:, None]) * known[:, None]).sum(axis=(2, 3))
        score = (total * known).sum(axis=(1, 2)) / count
        gradient = -(share / count[:, None] - weights)
        off = np.where(known, np.einsum("sc,scqm->sqm", weights, mean) - truth, 0.0) / scale
        smooth = np.sqrt(off**2 + 0.25)
        error = (np.where(known, smooth - 0.5, 0.0)).sum(axis=(1, 2)) / count
        slope = np.einsum("sqm,scqm->sc", off / smooth / scale, mean) / count[:, None]
        slope = weights * (slope - (weights * slope).sum(axis=1, keepdims=True))
        value = (ERROR_WEIGHT * error - score).mean() + RIDGE * (theta**2).sum()
        return float(value), (gradient + ERROR_WEIGHT * slope).mean(axis=0) + 2 * RIDGE * theta

    found = minimize(
        objective, np.zeros(size), jac=True, method="L-BFGS-B", options={"maxiter": 500}
    )
    weights = softmax(found.x, axis=0)
    weights[weights < LEAST] = 0
    return np.asarray(weights / weights.sum())


def main() -> None:
    """Learn the weights and write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=32)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--parts", type=Path, default=Path("ensemble_prior_parts"))
    parser.add_argument("--out", type=Path, default=Path("src/fewlabels/models/learned_prior.json"))
    said = parser.parse_args()
    said.parts.mkdir(parents=True, exist_ok=True)
    jobs = [(family, seed) for seed in range(said.seeds) for family in sorted(FAMILIES)]
    with ProcessPoolExecutor(said.workers) as pool:
        sets = list(pool.map(partial(look, parts=said.parts), jobs, chunksize=4))
    table = tabulate(sets)
    weights = {"": learn(table)}
    weights |= {name: learn(table.of(table.family != name)) for name in sorted(FAMILIES)}
    used = np.flatnonzero(np.any([w > 0 for w in weights.values()], axis=0))
    content = {
        "sets": len(sets),
        "beliefs": [list(LIBRARY[c])[1:] for c in used],
        "weights": {name: [round(float(v), 4) for v in w[used]] for name, w in weights.items()},
    }
    lines = json.dumps(content).replace("[[", "[\n[").replace("], ", "],\n").replace(', "', ',\n"')
    said.out.write_text(lines + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
