"""Which classifiers have a voice of their own: copies of another and those shown the labels do not.

What is learned from several classifiers is learned from the voices; all classifiers are judged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from fewlabels.kernels.arrays import Array, Bools
from fewlabels.predictions import Predictions

FEWEST_TO_COPY = 20
"""On fewer items two annotators may agree everywhere by chance."""

NEARLY_ALL = 0.97
FEWEST_SEEN = 20
UNLIKE = 0.02
"""Level, by side, at which agreement on labeled items is called unlike that on the others."""


class Exposed(NamedTuple):
    """A classifier that seems to have been given the labels.

    How often it is right on so many labeled items, and agrees with another, or with all others,
    there and elsewhere.
    """

    model: str
    right: float
    n_labels: int
    other: str
    there: float
    elsewhere: float


class Unheard(NamedTuple):
    """The classifiers without a voice: `copies`, by whose, and those that were given the labels."""

    copies: dict[str, str]
    exposed: list[Exposed]

    @staticmethod
    def from_predictions(predictions: Predictions) -> Unheard:
        """Those of these predictions."""
        return Unheard(copies(predictions), exposed(predictions))

    @property
    def given_labels(self) -> set[str]:
        """Names of those that seem to have been given the labels."""
        return {one.model for one in self.exposed}

    def others(self, models: Iterable[str]) -> tuple[str, ...]:
        """The voices among classifiers."""
        return tuple(m for m in models if m not in self.copies and m not in self.given_labels)


def voices(predictions: Predictions) -> tuple[str, ...]:
    """The classifiers without copies and without those that seem to have been given the labels."""
    return Unheard.from_predictions(predictions).others(predictions.models)


def copies(predictions: Predictions) -> dict[str, str]:
    """Classifiers that predict the same as an earlier one on every item, and on enough items."""
    first: dict[bytes, str] = {}
    out: dict[str, str] = {}
    blocks: list[Array | None] = []
    if not predictions.is_sparse:
        blocks = [predictions.probabilities, predictions.votes, predictions.scores]
        provided = predictions.has_hard | predictions.provides("ranking")
    for j, model in enumerate(predictions.models):
        print_ = hashlib.blake2b(digest_size=16)
        if predictions.is_sparse:
            subset = predictions.given_by("hard", j)
            print_.update(subset.tobytes() + predictions.hard_of(subset, j).tobytes())
        else:
            subset = np.flatnonzero(provided[:, j])
        if predictions.size_of(subset) < FEWEST_TO_COPY:
            continue
        for block in blocks:
            print_.update(b"" if block is None else np.ascontiguousarray(block[:, j]).tobytes())
        twin = first.setdefault(print_.digest(), model)
        if twin != model:
            out[model] = twin
    return out


def exposed(predictions: Predictions) -> list[Exposed]:
    """Classifiers that seem to have been given the labels, as examples or for training.

    They are right on nearly all labeled items, and agree with the others at another rate there than
    on the unlabeled ones: more often where the others are right, less often where they err alike.
    One row of a cluster is looked at.
    """
    out: list[Exposed] = []
    if predictions.clusters:  # else a copy of the table for nothing
        order = np.lexsort((predictions.keys, ~predictions.labeled))
        predictions = predictions.take(predictions.apart(order))
    n_models, labeled = len(predictions.models), predictions.labeled
    if predictions.is_sparse or labeled.sum() < FEWEST_SEEN or labeled.all() or n_models < 2:
        return out
    hard, labels = predictions.hard, predictions.labels
    right = [(hard[:, j] == labels)[labeled & (hard[:, j] >= 0)] for j in range(n_models)]
    suspects = [
        j
        for j, correct in enumerate(right)
        if len(correct) >= FEWEST_SEEN and correct.mean() >= NEARLY_ALL
    ]
    if 2 * len(suspects) > n_models:
        return out  # the items are easy
    for j in suspects:
        others = [other for other in range(n_models) if other != j]
        # All others together, or the one with which it agrees most unlike elsewhere.
        least: float = UNLIKE
        found: tuple[str, float, float] | None = None
        for who, tries in ((others, 1), *(([other], len(others)) for other in others)):
            there, elsewhere = _agreements(hard, j, who, labeled)
            if min(len(there), len(elsewhere)) < FEWEST_SEEN:
                continue
            gap = there.mean() - elsewhere.mean()
            error = np.sqrt(elsewhere.var() * (1 / len(there) + 1 / len(elsewhere)))
            unlike = tries * ndtr(-abs(gap) / max(error, 1e-12))
            if unlike < least:
                name = "the others" if tries == 1 else predictions.models[who[0]]
                least, found = unlike, (name, float(there.mean()), float(elsewhere.mean()))
        if found is not None:
            share = float(right[j].mean())
            out.append(Exposed(predictions.models[j], share, len(right[j]), *found))
    return out


def _agreements(hard: Array, j: int, others: list[int], labeled: Bools) -> tuple[Array, Array]:
    """Share of the others that j agrees with, on labeled and on other items with any."""
    same, size = np.zeros((2, len(hard)))
    for other in others:
        both = (hard[:, j] >= 0) & (hard[:, other] >= 0)
        same += both & (hard[:, j] == hard[:, other])
        size += both
    there, elsewhere = (same[m & (size > 0)] / size[m & (size > 0)] for m in (labeled, ~labeled))
    return there, elsewhere
