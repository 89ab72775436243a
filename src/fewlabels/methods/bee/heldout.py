"""Held-out likelihood of models of votes: what chooses concentrations, and models.

The items of every domain are held out in turns; log P(votes of a held-out item), the mean over the
draws of a fit on the others, is summed. The paper holds out a tenth once; that is noisy, and
cross-validation is the default. Source: Platanios, Dubey, Mitchell (2016), section 5.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Literal, TypeVar

import numpy as np

from fewlabels.kernels.arrays import Bools, Floats, Ints
from fewlabels.kernels.counter_based_counts import some_items
from fewlabels.methods.bee.vote_model import VoteModel
from fewlabels.methods.votes.data import domain_codes, domains_of, item_domains
from fewlabels.predictions import Predictions

Selection = Literal["folds", "split"]
SELECTIONS: tuple[Selection, ...] = ("folds", "split")
"""Ways to hold items out."""

Model = TypeVar("Model", bound=VoteModel)

FOLDS = 6
GRID = (0.01, 0.1, 1.0, 10.0, 100.0)
_COARSE = (0.1, 1.0, 10.0)
_SIZES: dict[Selection, int] = {"folds": FOLDS, "split": 10}
_PARTS_SALT = 0xF01D
_BURN_IN, _SWEEPS, _THIN, _CHAINS = 250, 500, 2, 1
"""A fit to compare by needs fewer draws than one to report."""


def held_out_work(parts: list[Bools]) -> int:
    """Sweeps of all chains of `log_predictive`."""
    return len(parts) * _CHAINS * (_BURN_IN + _SWEEPS)


def held_out(predictions: Predictions, selection: Selection) -> list[Bools]:
    """Which items are held out in each fit, (n,) each: every domain in equal parts.

    By the items' keys, so that the order of the items does not matter.
    """
    domain = domain_codes(predictions, domains_of(predictions))
    order = np.lexsort((predictions.keys, domain))
    place = np.empty(len(order), dtype=np.int64)
    start = np.searchsorted(domain[order], domain[order])
    place[order] = np.arange(len(order)) - start
    return _parts(place % _SIZES[selection], selection)


def in_parts(predictions: Predictions, selection: Selection) -> tuple[Predictions, list[Bools]]:
    """The items, and which are held out in each fit, (n,) each.

    A row that stands for several items is there once for every part that some of them are in.
    """
    if predictions.multiplicity is None:
        return predictions, held_out(predictions, selection)
    domain, size = domain_codes(predictions, domains_of(predictions)), _SIZES[selection]
    left, counts = predictions.multiplicity.copy(), np.zeros((size, predictions.n_items))
    for d in range(int(domain.max()) + 1):
        own = np.flatnonzero(domain == d)
        keys, total = predictions.keys[own], predictions.size_of(own)
        for part in range(size):
            share = total // size + (part < total % size)
            counts[part, own] = some_items(left[own], keys, share, _PARTS_SALT + part)
            left[own] -= counts[part, own]
    place, rows = np.nonzero(counts)
    split = predictions.take(rows).with_multiplicity(counts[place, rows])
    return split, _parts(place, selection)


def _parts(place: Ints, selection: Selection) -> list[Bools]:
    """Masks of the parts that are held out, from the part of every item."""
    return [place == part for part in range(1 if selection == "split" else FOLDS)]


def log_predictive(
    model: VoteModel,
    predictions: Predictions,
    parts: list[Bools],
    rng: np.random.Generator,
    ahead: int = 0,
) -> Floats:
    """Log P(votes) of every item that is held out in some part, (n,); NaN of the others.

    `ahead` is as of `VoteModel.fit_each`, in addition to what is held out here.
    """
    quick = replace(model, burn_in=_BURN_IN, sweeps=_SWEEPS, thin=_THIN, chains=_CHAINS)
    out = np.full(predictions.n_items, np.nan)
    names = item_domains(predictions)
    some = [
        (part, own)
        for part, own in zip(parts, rng.spawn(len(parts)), strict=True)
        if part.any() and not part.all()
    ]
    if not some:
        return out
    rest = [predictions.take(np.flatnonzero(~part)) for part, _ in some]
    fits = quick.fit_each(rest, [own for _, own in some], ahead)
    for (part, _), fitted in zip(some, fits, strict=True):
        # A domain of a single item is not there when it is held out.
        held = np.array([i for i in np.flatnonzero(part).tolist() if names[i] in fitted.domains])
        if held.size:
            out[held] = fitted.log_predictive(predictions.take(held))
    return out


def chosen_strengths(
    make: Callable[[float, float], VoteModel],
    selection: Selection,
    predictions: Predictions,
    rng: np.random.Generator,
    *,
    both: bool = False,
) -> VoteModel:
    """The model with the concentrations of the largest held-out likelihood, on a grid.

    The middle of the grid where there is nothing to hold out: domains of an item each.
    """
    predictions, parts = in_parts(predictions, selection)
    seed = int(rng.integers(2**63))
    pairs = itertools.product(_COARSE, _COARSE) if both else zip(GRID, GRID, strict=True)
    models = [make(alpha, gamma) for alpha, gamma in pairs]
    work = held_out_work(parts)
    scores = np.stack(
        [
            log_predictive(
                model,
                predictions,
                parts,
                np.random.default_rng(seed),
                (len(models) - 1 - i) * work + model.work,
            )
            for i, model in enumerate(models)
        ]
    )
    seen = ~np.isnan(scores).any(axis=0)
    if not seen.any():
        return models[len(models) // 2]
    means = np.average(scores[:, seen], axis=1, weights=predictions.times[seen])
    return models[int(np.argmax(means))]
