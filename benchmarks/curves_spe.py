"""SPE on data from its own model, and which families the scores of real classes follow."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from curves_bands import METHODS, measure
from curves_data import SPE_LISTS, Scores, draw, stream
from curves_parts import SEED, Arguments, Part, Plan, Record, mean_error, number, table
from fewlabels.kernels.arrays import Floats
from fewlabels.kernels.importance import ImportanceSample, Proposal
from fewlabels.methods.spe.families import FAMILIES, Family, Points
from fewlabels.methods.spe.mixture import BOUND, ClassDensity, ScoreMixture, ScoreScale, score_data
from fewlabels.methods.spe.sampling import (
    Modes,
    Target,
    climb,
    find_modes,
    laplace_root,
    slice_scales,
    summit,
)

PROPOSALS = 2_000
FREEDOM = 5.0
"""Degrees of freedom of the proposal with full covariance."""

# --- data from the model -------------------------------------------------------------------------


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
    return Scores(20 * scores - 7, labels, False)


def target_of(scores: Scores, labeled: int, pair: tuple[str, str]) -> Target:
    """Posterior of one pair of families, positive class first, given the first few labels."""
    predictions = scores.show(labeled)
    scale = ScoreScale.of(scores.values, logit=False)
    data = score_data(
        scale.unit(scores.values), predictions.evidence, predictions.weight, predictions.keys
    )
    one, zero = (ClassDensity(FAMILIES[name]) for name in pair)
    return Target(ScoreMixture(one, zero), data, ordered=False)


def proposals_of(target: Target, modes: Modes) -> dict[str, Proposal]:
    """The paper's proposal, and Student's t with the full covariance."""
    mode = modes.points[0]
    return {
        "diagonal": Proposal.of(mode, np.diag(slice_scales(target.log_density, mode))),
        "full": Proposal.of(mode, laplace_root(target.smooth, mode), FREEDOM),
    }


def synthetic_cells(plan: Plan) -> list[Arguments]:
    """Every world and trial."""
    names = plan.some(tuple(WORLDS), 2)
    return [{"name": name, "trial": trial} for name in names for trial in plan.trials(40)]


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
    for kind, proposal in proposals_of(target, find_modes(target)).items():
        sample = ImportanceSample.draw(target.log_density, proposal, PROPOSALS, rng)
        quality = {"k": sample.pareto_k, "size": sample.effective_size}
        records.append({"world": name, "proposal": kind, **quality})
    return records


def synthetic_blocks(records: pd.DataFrame, plan: Plan) -> dict[str, str]:
    """Errors, and the quality of the proposals."""
    text = f"{_synthetic_errors(records)}\n\n{_synthetic_weights(records)}"
    return {"synthetic": text}


def _synthetic_errors(records: pd.DataFrame) -> str:
    header = ["world", "n", "n_l", "method", "area", "coverage", "width", "no curve"]
    rows = []
    asked = records[records["method"].notna()]
    for (name, method), own in asked.groupby(["world", "method"], sort=False):
        trials = pd.Series(np.arange(len(own)), own.index)
        cells = [mean_error(own[c], trials) for c in ("area", "covered", "width")]
        missing = f"{own['area'].isna().mean():.0%}"
        rows.append([name, WORLDS[name].items, WORLDS[name].labeled, method, *cells, missing])
    return table(header, rows)


def _synthetic_weights(records: pd.DataFrame) -> str:
    header = ["world", "proposal", "median k", "k above .7", "effective draws, median of 2,000"]
    rows = []
    asked = records[records["proposal"].notna()]
    for (name, kind), own in asked.groupby(["world", "proposal"], sort=False):
        k = own["k"].astype(float).fillna(np.inf)
        share = f"{(k > 0.7).mean():.0%}"
        rows.append([name, kind, number(k.median(), 2), share, f"{own['size'].median():.0f}"])
    return table(header, rows)


SYNTHETIC = Part(
    synthetic_cells,
    synthetic_run,
    synthetic_blocks,
    f"40 trials, seed {SEED}; ± is the standard error over trials",
)

# --- figure 3G -----------------------------------------------------------------------------------

_STARTS = 8
_TOP = 3
_FITTED_SHARE = 0.8


def figure3g_cells(plan: Plan) -> list[Arguments]:
    """Every list."""
    return [{"name": name} for name in plan.some(SPE_LISTS, 2)]


def figure3g_run(data: Path, name: str) -> list[Record]:
    """Maximised likelihood of every family for both classes, with all labels."""
    scores = draw(data, name, 0)
    x = ScoreScale.of(scores.values, logit=False).unit(scores.values)
    records = []
    for label in (1, 0):
        own = x[scores.labels == label]
        cut = round(_FITTED_SHARE * len(own))
        for family in FAMILIES:
            density = ClassDensity(FAMILIES[family])
            whole, part = maximise(density, own), maximise(density, own[:cut])
            held = density.log_density(Points(own[cut:]), part[None]).mean()
            fit = density.log_density(Points(own), whole[None]).mean()
            records.append(
                {"list": name, "label": label, "family": family, "fit": float(fit),
                 "held": float(held)}
            )  # fmt: skip
    return records


def maximise(density: ClassDensity, x: Floats) -> Floats:
    """Parameters of the highest likelihood, from several starts around the moments."""
    points, weights = Points(x), np.ones(len(x))
    nothing = Points(np.empty(0))

    def target(u: Floats) -> tuple[Floats, Floats]:
        value = density.log_density(points, u).sum(axis=0)
        each = np.repeat(weights[:, None], len(u), axis=1)
        slope = density.pull(u, points, each, nothing, np.empty(0))
        bad = ~(np.isfinite(value) & np.isfinite(slope).all(axis=1))
        return np.where(bad, -1e200, value), np.where(bad[:, None], 0.0, slope)

    rng = np.random.default_rng(SEED)
    start = density.from_moments(float(x.mean()), float(x.std()))
    around = start + 0.5 * rng.standard_normal((_STARTS, len(start))) * _spread(density.family)
    found, values = climb(target, np.vstack([start, around]), bound=BOUND, iterations=60)
    return summit(target, found[int(np.argmax(values))], bound=BOUND).point


def _spread(family: Family) -> Floats:
    """How far starts lie apart in each coordinate: degrees of freedom may be anything."""
    return np.array([1.0, 1.0, 3.0])[: family.size]


def figure3g_blocks(records: pd.DataFrame, plan: Plan) -> dict[str, str]:
    """How often each family is among the best three, and how far below the best it is."""
    classes = ["list", "label"]
    rows: dict[str, list[Any]] = {family: [family] for family in FAMILIES}
    for criterion in ("fit", "held"):
        score = records[criterion].astype(float).fillna(-np.inf)
        best = score.groupby([records[c] for c in classes]).transform("max")
        rank = score.groupby([records[c] for c in classes]).rank(ascending=False, method="min")
        for family in FAMILIES:
            mine = records["family"] == family
            rows[family] += [
                int((rank[mine] <= _TOP).sum()),
                int((rank[mine] == 1).sum()),
                number(float((best - score)[mine].median())),
            ]
    count = records.groupby(classes).ngroups
    ordered = sorted(rows.values(), key=lambda row: -row[1])
    header = ["family"]
    for criterion in ("all scores", "held-out fifth"):
        header += [f"{criterion}: top 3", "best", "median loss per item"]
    wanted = records.assign(score=records["fit"].astype(float).fillna(-np.inf))
    wanted["rank"] = wanted.groupby(classes)["score"].rank(ascending=False, method="min")
    top = wanted[(wanted["rank"] <= _TOP) & wanted["family"].isin(["normal", "gamma"])]
    some = top.groupby(classes).ngroups
    text = f"Normal or gamma is among the best three of {some} of {count} class-conditionals."
    return {"figure3g": f"{text}\n\n{table(header, ordered)}"}


FIGURE3G = Part(
    figure3g_cells,
    figure3g_run,
    figure3g_blocks,
    "two classes of 24 lists with all labels; no spread: nothing is drawn but the held-out fifth",
)
