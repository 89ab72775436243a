"""Whether labeled items look like a random sample of all, by what the classifiers say of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.keyed_counts import some_items
from fewlabels.kernels.two_sample import (
    distances,
    energy_distances,
    kolmogorov_smirnov,
    max_adjusted,
    mean_differences,
    p_value,
    random_subsets,
    standard_deviations,
)
from fewlabels.models.label_shift import sides
from fewlabels.predictions import Predictions
from fewlabels.shifts.traits import Trait, beliefs, points, traits

FEWEST_LABELS = 5
"""Of fewer items nothing can be said: the rarest of subsets would not be rare."""

POWER = 1.96 + 0.84
"""A difference of so many standard errors is found in four cases of five, at the level .05."""

_DRAWN_SALT = 0x5A3C


@dataclass(frozen=True)
class Sizes:
    """At most so many items of each kind are looked at, and so many subsets drawn.

    Which items is settled by their keys: a random part of a random sample is one.
    """

    labeled: int
    unlabeled: int
    permutations: int


THOROUGH = Sizes(500, 2000, 1999)
QUICK = Sizes(200, 2000, 999)
GLANCE = Sizes(200, 2000, 99)


class Difference(NamedTuple):
    """A trait's mean in the labeled and in the other items, and how strange that is.

    `effect` is the difference in standard deviations of the trait, `p_value` adjusted for all the
    traits looked at, `detectable` the difference that would be found in four cases of five, and
    `gap` the largest difference between the two distribution functions.
    """

    trait: Trait
    labeled: float
    unlabeled: float
    effect: float
    p_value: float
    detectable: float
    gap: float


@dataclass(frozen=True, eq=False)
class SamplingTest:
    """Whether the labeled items look like a random sample; p-values of exact permutation tests.

    `p_value` is of the two tests together: the `energy` distance between score vectors, and the
    largest difference of a trait. `differences` go from the least probable to the most.
    """

    p_value: float
    energy: float
    energy_p_value: float
    differences: tuple[Difference, ...]
    n_labeled: int
    n_unlabeled: int


def compared(predictions: Predictions, sizes: Sizes) -> tuple[Predictions, Ints]:
    """The items looked at, in the order of their keys, and which of them have labels, (s,)."""
    known, unlabeled = sides(predictions)
    if predictions.multiplicity is not None:
        mine, others = (
            _drawn(predictions, np.flatnonzero(side), size)
            for side, size in ((known, sizes.labeled), (unlabeled, sizes.unlabeled))
        )
        alone = predictions.with_multiplicity(None).take(np.concatenate([mine, others]))
        return alone, np.arange(len(mine))
    order = np.argsort(predictions.keys)
    mine = order[known[order]][: sizes.labeled]
    others = order[unlabeled[order]][: sizes.unlabeled]
    rows = np.concatenate([mine, others])
    return predictions.take(rows), np.arange(len(mine))


def _drawn(predictions: Predictions, rows: Ints, size: int) -> Ints:
    """Rows of `size` of the items that some rows stand for, chosen at random by their keys."""
    keys = predictions.keys[rows]
    times = some_items(predictions.times[rows], keys, size, _DRAWN_SALT)
    return np.repeat(rows, times.astype(np.int64))


def sampling_test(
    predictions: Predictions, rng: np.random.Generator, sizes: Sizes = THOROUGH
) -> SamplingTest:
    """Test by permutation that the labeled items are a random sample of all.

    Two statistics of the labeled against the others, each ranked among those of random subsets of
    as many items: the energy distance between score vectors (any difference in distribution), and
    the largest standardised difference of a trait's mean (confidence, agreement, predicted class:
    what a person would name). The smaller of the two p-values is ranked likewise, so the level of
    the whole is exact. Labels enter nowhere.

    Source: Székely & Rizzo (2004); Westfall & Young (1993).
    """
    chosen, mine = compared(predictions, sizes)
    subsets = random_subsets(rng, chosen.n_items, len(mine), sizes.permutations)
    every = np.concatenate([mine[None], subsets])
    believed = beliefs(chosen)
    energies = energy_distances(distances(points(believed)), every)
    looked_at = traits(chosen, believed)
    spread = standard_deviations(looked_at.values)
    differing = np.flatnonzero(spread > 1e-12)
    values, spread = looked_at.values[:, differing], spread[differing]
    drawn = mean_differences(values, every)
    # In standard errors under random sampling: where much is missing, means of few items vary more.
    error = np.sqrt(np.mean(np.nan_to_num(drawn) ** 2, axis=0))
    strange = np.abs(drawn) / np.where(error > 0, error, np.inf)
    top = np.nan_to_num(strange).max(axis=1) if len(differing) else np.zeros(len(every))
    least = np.minimum(_ranks(energies), _ranks(top))
    adjusted = max_adjusted(strange[0], strange[1:])
    inside = np.zeros(chosen.n_items, dtype=bool)
    inside[mine] = True
    found = [
        Difference(
            looked_at.names[column],
            _mean(values[inside, t]),
            _mean(values[~inside, t]),
            float(drawn[0, t] / spread[t]),
            float(adjusted[t]),
            float(POWER * error[t]),
            kolmogorov_smirnov(values[:, t], inside),
        )
        for t, column in enumerate(differing)
    ]
    order = np.argsort(-np.nan_to_num(strange[0]), kind="stable")
    return SamplingTest(
        p_value=p_value(-least[0], -least[1:]),
        energy=float(energies[0]),
        energy_p_value=p_value(energies[0], energies[1:]),
        differences=tuple(found[t] for t in order),
        n_labeled=len(mine),
        n_unlabeled=chosen.n_items - len(mine),
    )


def _ranks(drawn: Floats) -> Floats:
    """How many of the values are at least as large as each, itself included, (B,)."""
    near = drawn - 1e-9 * np.abs(drawn)
    out: Floats = len(drawn) - np.searchsorted(np.sort(drawn), near, side="left").astype(float)
    return out


def _mean(values: Floats) -> float:
    given = values[~np.isnan(values)]
    return float(given.mean()) if len(given) else float("nan")
