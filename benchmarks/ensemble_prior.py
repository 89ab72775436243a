"""Learn the prior of `learned-ensemble` from very many sets of classifiers.

    pip install --group prior
    python -m benchmarks ensemble_prior [--seeds 14] [--tables 1] [--workers 2] [--parts DIR]

1. Sets are made (`study.families`, seeds below 1,000) or of real tables
   (`prior_tables.py`). Every set shows 10, 20, 50 or 100 of its labels, at random, and 600 items
   without. Half of the sets have a reference as well: other items, labeled, whose classes and
   scores are tilted. Every belief of a library is fitted to these.
2. What a belief makes of each classifier's metrics (mean and standard deviation over draws of its
   coefficients) is kept with its evidence, and with the truth on all items of the set.
3. The prior weights of the beliefs maximise the mean log density of the truth under the mixture of
   the beliefs' normal predictions, each belief weighed by prior weight times evidence, less a
   multiple of the mixture mean's scaled absolute error. They are learned on all families, and
   anew without each of them. Weights below .002 become 0, but for the largest of every kind.

The result does not depend on the number of workers.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

import prior_tables
from fewlabels import Predictions
from fewlabels.kernels.blocks import using_workers
from fewlabels.kernels.simplex import logsumexp, softmax
from fewlabels.kernels.weighting import Soft
from fewlabels.methods.ensembles.belief_mixture import Belief, IndexName, each_belief
from fewlabels.metrics import resolve
from fewlabels.metrics.plans import States, prepare, view_of
from runs import ROOT, WORKERS, command_line, spread
from study.families import FAMILIES, make_set

Bools, Floats, Ints = np.ndarray, np.ndarray, np.ndarray
PARTS = ROOT / "build" / "ensemble_prior"
PRIOR = ROOT / "src" / "fewlabels" / "methods" / "ensembles" / "learned_prior.json"
LABELED = (10, 20, 50, 100)
UNLABELED, POPULATION, DRAWS = 600, 5_000, 12
METRICS = ("accuracy", "brier", "ece", "roc_auc", "average_precision")

ERROR_SCALES = np.array([0.04, 0.05, 0.04, 0.06, 0.10])
"""What an error of each metric is measured in, with 20 labels."""

SAMPLING = np.array([0.017, 0.017, 0.014, 0.023, 0.045])
"""Standard deviations that the items, which are a sample, add to each metric's prediction."""

INFLATION = 1.2
"""A normal approximation at the mode is too narrow with few labels."""

ERROR_WEIGHT, RIDGE, LEAST = 3.0, 2e-4, 0.002

_POOLS: tuple[IndexName, ...] = ("raw", "calibrated")
_SLOPES = (  # anchored, mean and sd of the slope, sd of the offsets
    (False, 1.0, 0.15, 0.2), (False, 1.5, 0.3, 0.3), (False, 2.5, 0.6, 0.5),
    (True, 1.0, 0.15, 0.2), (True, 1.4, 0.35, 0.35), (True, 1.2, 0.6, 0.5),
)  # fmt: skip
_DEVIATIONS = (  # sds of the gap, the deviations, the votes, and the slopes by class
    (0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.7, 0.0), (0.3, 0.3, 0.8, 0.0), (0.8, 1.0, 2.0, 0.4),
)  # fmt: skip
_LATENT: tuple[IndexName, ...] = ("latent", "votes")
LIBRARY = (
    *(Belief(1.0, pool, *slope, *deviation)
      for pool, slope, deviation in product(_POOLS, _SLOPES, _DEVIATIONS)),
    *(Belief(1.0, name, False, slope, sd, offset, vote_sd=vote)
      for name, (slope, sd), (offset, vote) in product(
          _LATENT, ((0.8, 0.4), (1.6, 0.8)), ((0.5, 0.0), (1.5, 0.0), (2.5, 1.0)))),
    Belief(1.0, "raw", False, 1.0, 0.05, 0.05),
    Belief(1.0, "calibrated", True, 1.0, 0.05, 0.05),
    Belief(1.0, "ordinal", False, 1.0, 0.5, 1.0),
    Belief(1.0, "ordinal", False, 1.0, 1.0, 2.5),
    Belief(1.0, "own", False, 1.0, 0.3, 2.0),
    Belief(1.0, "tempered", False, 1.2, 0.4, 2.0),
    Belief(1.0, "tempered", False, 2.5, 0.8, 3.0),
    Belief(1.0, "tempered", False, 6.0, 2.0, 3.0),
    Belief(1.0, "rank", False, 0.0, 3.0, 2.5),
    Belief(1.0, "rank", False, 0.0, 9.0, 5.0),
    Belief(1.0, "without", True, 1.0, 0.4, 2.0),
    *(Belief(1.0, "reference", False, 1.0, slope_sd, offset, deviation_sd=deviation)
      for (offset, slope_sd), deviation in product(
          ((0.1, 0.05), (0.5, 0.2), (1.5, 0.4)), (0.0, 0.5, 1.5))),
)  # fmt: skip
"""What a belief rests on, and the sds of what labels may change: those of the trials that the
documentation reports (docs/default.md) around a grid."""


class Seen(NamedTuple):
    """One set: log evidence (C,), means and sds (C, Q, M), truth (Q, M), labels, its family."""

    evidence: Floats
    mean: Floats
    sd: Floats
    truth: Floats
    n_labeled: int
    family: str


class Job(NamedTuple):
    """A set: of a family and a seed, or of a table's target and a seed."""

    family: str
    seed: int
    target: str = ""

    @property
    def number(self) -> int:
        """What its randomness starts from."""
        return zlib.crc32(f"{self.family} {self.target} {self.seed}".encode())

    @property
    def n_labeled(self) -> int:
        """How many of its labels are shown."""
        return LABELED[self.number % len(LABELED)]

    def predictions(self) -> Predictions:
        """All items, all labels known."""
        if self.target:
            return prior_tables.table_set(self.target, self.seed).predictions
        return make_set(self.family, self.seed, POPULATION).predictions


def look(job: Job, parts: Path) -> Seen | None:
    """What the beliefs say of a set; kept in a file. None where a set cannot be made."""
    path, arrays = parts / f"{job.number:08x}.npz", Seen._fields[:4]
    if path.exists():
        kept = np.load(path)
        return Seen(*(kept[name] for name in arrays), job.n_labeled, job.family)
    with using_workers(1):
        seen = _look(job)
    draft = path.with_suffix(f".{os.getpid()}")
    with draft.open("wb") as file:
        np.savez(file, **dict(zip(arrays, seen, strict=False)))
    draft.replace(path)
    return seen


def _look(job: Job) -> Seen:
    everything = job.predictions()
    rng = np.random.default_rng([job.number, 1])
    rows = rng.permutation(everything.n_items)
    reference = None
    if rng.random() < 0.5:
        elsewhere, rows = rows[: len(rows) // 3], rows[len(rows) // 3 :]
        reference = everything.take(_tilted(everything, elsewhere, rng))
    rows = rows[: job.n_labeled + UNLABELED]
    some = everything.take(rows).revealing(np.arange(job.n_labeled))
    metrics = _Metrics(some)
    evidence, means, sds = [], [], []
    for log_evidence, posterior in each_belief(LIBRARY, DRAWS, some, rng, reference):
        evidence.append(log_evidence)
        drawn = np.full((1, *means[0].shape) if means else 1, np.nan)
        if np.isfinite(log_evidence):
            drawn = metrics.of(posterior.block(np.arange(DRAWS), slice(None)))
        means.append(drawn.mean(axis=0))
        sds.append(drawn.std(axis=0))
    onehot = np.eye(everything.n_classes)[everything.labels][:, :, None]
    found = *map(np.array, (evidence, means, sds)), _Metrics(everything).of(onehot)[0]
    return Seen(*found, job.n_labeled, job.family)


def _tilted(everything: Predictions, rows: Ints, rng: np.random.Generator) -> Ints:
    """Some of the rows, likelier by their class and by what the classifiers say of the last one.

    In a third of the sets all rows: the reference is then a random sample too.
    """
    by_class, by_vote = 0.7 * rng.standard_normal((2, everything.n_classes))
    if rng.random() < 1 / 3:
        return rows
    hard = everything.hard[rows]
    votes = np.stack([(hard == k).mean(axis=1) for k in range(everything.n_classes)], axis=1)
    chance = np.exp(by_class[everything.labels[rows]] + 2 * votes @ by_vote)
    kept = rows[rng.random(len(rows)) < chance / chance.max()]
    return kept if len(kept) >= 50 else rows


class _Metrics:
    """Metrics of some items, whatever their labels; NaN where a classifier lacks what they need."""

    def __init__(self, predictions: Predictions) -> None:
        self.n_models, self.plans, chosen = predictions.n_models, [], resolve(METRICS)
        for j in range(predictions.n_models):
            for needs in {metric.needs for metric in chosen.values()}:
                rows = np.flatnonzero(predictions.provides(needs)[:, j])
                own = {name: metric for name, metric in chosen.items() if metric.needs == needs}
                if len(rows):
                    plan = prepare(view_of(predictions, rows, j), own, exact=True)
                    self.plans.append((j, rows, own, plan))

    def of(self, weights: Floats) -> Floats:
        """Metrics (D, Q, M) of label weights (n, K, D)."""
        out = np.full((weights.shape[2], len(METRICS), self.n_models), np.nan)
        for j, rows, own, plan in self.plans:
            states = States([plan])
            states.add(Soft(weights[rows], np.ones((len(rows), 1)), counts=True))
            for name, values in states.finish(own, weights.shape[2]).items():
                out[:, METRICS.index(name), j] = values[:, 0]
        return out


class Table(NamedTuple):
    """All sets, padded to eight classifiers with NaN: the fields of `Seen`, (S, ...) each."""

    evidence: Floats
    mean: Floats
    sd: Floats
    truth: Floats
    n_labeled: Ints
    family: np.ndarray


def tabulate(sets: Sequence[Seen]) -> Table:
    """Sets side by side."""
    most = max(s.truth.shape[1] for s in sets)

    def padded(values: Floats) -> Floats:
        gap = most - values.shape[-1]
        return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, gap)], constant_values=np.nan)

    rows = [
        (s.evidence - s.evidence.max(), *map(padded, (s.mean, s.sd, s.truth)), *s[4:]) for s in sets
    ]
    return Table(*map(np.array, zip(*rows, strict=True)))


def learn(table: Table) -> Floats:
    """Prior weights (C,) of the beliefs; those that rest on a reference share a weight of 1.

    How much all of these are trusted depends on how far references are from home, which sets made
    for learning do not know; the method says it (`LearnedEnsemble`).
    """
    referred = np.array([belief.pool == "reference" for belief in LIBRARY])
    if not referred.any():
        return _learned(table, ~referred)
    alone = table._replace(evidence=np.where(referred, -np.inf, table.evidence))
    return np.asarray(_learned(alone, ~referred) + _learned(table, referred))


def _learned(table: Table, chosen: Bools) -> Floats:
    """Prior weights of all beliefs, learned together; those chosen, as shares of their sum."""
    size = table.evidence.shape[1]
    there = np.isfinite(table.evidence)[:, :, None, None]
    known = ~np.isnan(table.truth) & ~(np.isnan(table.mean) & there).any(axis=1)
    count = known.sum(axis=(1, 2))
    mean, truth = np.nan_to_num(table.mean), np.nan_to_num(table.truth)
    sd = np.sqrt((INFLATION * np.nan_to_num(table.sd)) ** 2 + SAMPLING[:, None] ** 2)
    z = (truth[:, None] - mean) / sd
    density = np.where(known[:, None], -0.5 * np.minimum(z**2, 60) - np.log(sd), 0.0)
    scale = ERROR_SCALES[:, None] * np.sqrt(20 / table.n_labeled)[:, None, None] ** 0.7

    def objective(theta: Floats) -> tuple[float, Floats]:
        logs = np.maximum(table.evidence, -1e6) + theta
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
    weights = np.where(chosen, softmax(found.x, axis=0), 0.0)
    weights /= weights.sum()
    kinds, small = np.array([belief.pool for belief in LIBRARY]), weights < LEAST
    for kind in kinds[chosen]:
        small[np.argmax(np.where(kinds == kind, weights, -1))] = False
    weights[small] = 0
    return np.asarray(weights / weights.sum())


def main() -> None:
    """Learn the weights and write the table."""
    # Made sets of each family, and sets of each target of a table.
    options = {"seeds": 14, "tables": 1, "workers": WORKERS, "parts": PARTS, "out": PRIOR}
    said = command_line(__doc__, **options).parse_args()
    said.parts.mkdir(parents=True, exist_ok=True)
    jobs = [Job(family, seed) for seed in range(said.seeds) for family in sorted(FAMILIES)]
    jobs += [
        Job(target.family, seed, name)
        for seed in range(said.tables) for name, target in prior_tables.targets().items()
    ]  # fmt: skip
    sets = list(spread(partial(look, parts=said.parts), jobs, said.workers, "sets"))
    table = tabulate(sets)
    families = ["", *sorted(set(table.family))]
    tables = [Table(*(values[table.family != name] for values in table)) for name in families]
    weights = dict(zip(families, spread(learn, tables, said.workers, "families"), strict=True))
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
