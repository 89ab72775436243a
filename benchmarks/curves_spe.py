"""SPE on data from its own model, and which families the scores of real classes follow."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from curves_bands import METHODS, SATIMAGE_LISTS, SPE_LISTS, Scores, draw, measure, set_of
from fewlabels.kernels.arrays import Floats
from fewlabels.kernels.importance import ImportanceSample, Proposal
from fewlabels.methods.spe import sampling
from fewlabels.methods.spe.families import FAMILIES, Points
from fewlabels.methods.spe.mixture import BOUND, ClassDensity, ScoreMixture, ScoreScale, score_data
from parts import SEED, Part, Plan, Record, Some, crossed, stream
from runs import averaged, grouped, number, where

PROPOSALS = 2_000
FREEDOM = 5.0
"""Degrees of freedom of the proposal with full covariance."""


class World(NamedTuple):
    """Families of both classes with mean and deviation, prevalence, items and labels."""

    positive: tuple[str, float, float]
    negative: tuple[str, float, float]
    prevalence: float
    items: int
    labeled: int


_NORMAL, _LOW_NORMAL = ("normal", 0.7, 0.13), ("normal", 0.35, 0.12)
_GAMMA, _LOW_GAMMA = ("gamma", 0.6, 0.15), ("gamma", 0.15, 0.14)
WORLDS = {
    "n/g, prevalence .1": World(_NORMAL, _LOW_GAMMA, 0.1, 1000, 20),
    "n/n, prevalence .3": World(_NORMAL, _LOW_NORMAL, 0.3, 1000, 10),
    "g/g, prevalence .2": World(_GAMMA, _LOW_GAMMA, 0.2, 300, 20),
    "n/g, the gamma off zero": World(_NORMAL, ("gamma", 0.25, 0.1), 0.1, 1000, 20),
}


def draw_world(world: World, rng: np.random.Generator) -> Scores:
    """Items of a world, in random order; the classifier's unit is not the unit interval."""
    labels = (rng.random(world.items) < world.prevalence).astype(int)
    scores = np.empty(world.items)
    for label, (family, mean, sd) in ((1, world.positive), (0, world.negative)):
        mine = np.flatnonzero(labels == label)
        if family == "gamma":
            scores[mine] = rng.gamma((mean / sd) ** 2, sd**2 / mean, len(mine))
        else:
            scores[mine] = rng.normal(mean, sd, len(mine))
    return Scores(20 * scores - 7, labels)


def target_of(scores: Scores, labeled: int, pair: tuple[str, str]) -> sampling.Target:
    """Posterior of one pair of families, positive class first, given the first few labels."""
    predictions = scores.show(labeled)
    scale = ScoreScale.of(scores.values, logit=False)
    data = score_data(
        scale.unit(scores.values), predictions.evidence, predictions.weight, predictions.keys
    )
    mixture = ScoreMixture(*(ClassDensity(FAMILIES[name]) for name in pair))
    return sampling.Target(mixture, data, ordered=False)


def synthetic_run(data: Path, name: str, trial: int) -> list[Record]:
    """Errors of SPE and of the labels alone, and the weights of both proposals."""
    world = WORLDS[name]
    rng = stream("synthetic", name, trial)
    scores = draw_world(world, rng)
    truth, predictions = scores.truth(), scores.show(world.labeled)
    records: list[Record] = []
    for method in ("labeled", "spe", "spe (averaged)", "monotone-curves"):
        found, _ = measure(predictions, METHODS[method], truth, trial)
        records.append({"world": name, "method": method, **found})
    target = target_of(scores, world.labeled, (world.positive[0], world.negative[0]))
    mode = sampling.find_modes(target).points[0]
    proposals = {  # the paper's, and Student's t with the full covariance
        "diagonal": Proposal.of(mode, np.diag(sampling.slice_scales(target.log_density, mode))),
        "full": Proposal.of(mode, sampling.laplace_root(target.smooth, mode), FREEDOM),
    }
    for kind, proposal in proposals.items():
        sample = ImportanceSample.draw(target.log_density, proposal, PROPOSALS, rng)
        quality = {"k": sample.pareto_k, "size": sample.effective_size}
        records.append({"world": name, "proposal": kind, **quality})
    return records


def synthetic_blocks(records: pd.DataFrame, plan: Plan) -> str:
    """Errors, and the quality of the proposals."""
    sizes = records["world"].map(lambda name: WORLDS[name][3:])
    records = records.assign(n=sizes.str[0], n_l=sizes.str[1])
    heads = {"area": "area", "coverage": "covered", "width": "width"}
    errors = {head: averaged(name, spread="sem") for head, name in heads.items()}
    errors["no curve"] = lambda own: f"{own['area'].isna().mean():.0%}"
    weights = {
        "median k": lambda own: number(_pareto(own).median(), 2),
        "k above .7": lambda own: f"{(_pareto(own) > 0.7).mean():.0%}",
        "effective draws, median of 2,000": lambda own: f"{own['size'].median():.0f}",
    }
    tables = (
        grouped(records.dropna(subset="method"), ["world", "n", "n_l", "method"], errors),
        grouped(records.dropna(subset="proposal"), ["world", "proposal"], weights),
    )
    return "\n\n".join(tables)


def _pareto(own: pd.DataFrame) -> pd.Series:
    return own["k"].astype(float).fillna(np.inf)


SYNTHETIC = Part(
    crossed(name=Some(tuple(WORLDS), -2), trial=Some(range(40))), synthetic_run, synthetic_blocks,
    f"40 trials, seed {SEED}; ± is the standard error over trials",
)  # fmt: skip

_STARTS = 8
_TOP = 3
_FITTED_SHARE = 0.8


def figure3g_run(data: Path, name: str) -> list[Record]:
    """Mean log density of a held-out fifth of each class by every family, fitted to the rest."""
    scores = draw(data, name, 0)
    x = ScoreScale.of(scores.values, logit=False).unit(scores.values)
    records = []
    for label in (1, 0):
        own = x[scores.labels == label]
        cut = round(_FITTED_SHARE * len(own))
        for family in FAMILIES:
            density = ClassDensity(FAMILIES[family])
            held = density.log_density(Points(own[cut:]), maximise(density, own[:cut])[None])
            records.append({"list": name, "label": label, "family": family,
                            "held": float(held.mean())})  # fmt: skip
    return records


def maximise(density: ClassDensity, x: Floats) -> Floats:
    """Parameters of the highest likelihood, from several starts around the moments."""
    points, nothing = Points(x), Points(np.empty(0))

    def target(u: Floats) -> tuple[Floats, Floats]:
        value, each = density.log_density(points, u).sum(axis=0), np.ones((len(x), len(u)))
        slope = density.pull(u, points, each, nothing, np.empty(0))
        bad = ~(np.isfinite(value) & np.isfinite(slope).all(axis=1))
        return np.where(bad, -1e200, value), np.where(bad[:, None], 0.0, slope)

    rng = np.random.default_rng(SEED)
    start = density.from_moments(float(x.mean()), float(x.std()))
    # Degrees of freedom may be anything.
    apart = 0.5 * np.array([1.0, 1.0, 3.0])[: density.family.size]
    around = start + rng.standard_normal((_STARTS, len(start))) * apart
    found, values = sampling.climb(target, np.vstack([start, around]), bound=BOUND, iterations=60)
    return sampling.summit(target, found[int(np.argmax(values))], bound=BOUND).point


def figure3g_blocks(records: pd.DataFrame, plan: Plan) -> str:
    """How often each family is among the best three, and how far below the best it is."""

    def tops(own: pd.DataFrame) -> int:
        return int(own["top"].sum())

    records["set"], score = records["list"].map(set_of), records["held"].fillna(-np.inf)
    classes = score.groupby([records["list"], records["label"]])
    records["top"] = classes.rank(ascending=False, method="min") <= _TOP
    records["loss"] = classes.transform("max") - score
    two = records[records["family"].isin(["normal", "gamma"])].groupby(["set", "list", "label"])
    either = two.agg({"top": "any", "loss": "min"}).reset_index().assign(family="normal or gamma")
    of = either["set"].value_counts(sort=False)
    columns = {f"{name}: of {n}": where("set", name, tops) for name, n in of.items()}
    columns |= {f"all: of {len(either)}": tops}
    columns["median loss per item"] = lambda own: number(own["loss"].median())
    return grouped(pd.concat([records, either]), ["family"], columns)


FIGURE3G = Part(
    crossed(name=Some((*SATIMAGE_LISTS, *SPE_LISTS), -2)), figure3g_run, figure3g_blocks,
    "two classes of 36 lists with all labels; no spread: nothing is drawn but the held-out fifth",
)  # fmt: skip
