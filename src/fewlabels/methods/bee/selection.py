"""Held-out likelihood of models of votes: what chooses concentrations, and models.

The items of every domain are held out in turns; log P(votes of a held-out item), the mean over the
draws of a fit on the others, is summed. The paper holds out a tenth once; that is noisy, and
cross-validation is the default. Source: Platanios, Dubey, Mitchell (2016), section 5.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from fewlabels.checks.arguments import chosen_from
from fewlabels.errors import UsageError, listed
from fewlabels.kernels.arrays import Bools, Floats, Ints
from fewlabels.kernels.blocks import report, reporting
from fewlabels.kernels.counter_based_counts import some_items
from fewlabels.methods.base import FittedLabelModel, LabelModel, with_hard_votes
from fewlabels.methods.bee.bee import (
    BEE,
    CBEE,
    HCBEE,
    SELECTIONS,
    ConfusionBEE,
    ConfusionCBEE,
    ConfusionHCBEE,
    Selection,
    VoteModel,
)
from fewlabels.methods.bee.fitted import FittedVoteModel
from fewlabels.methods.votes.data import domain_codes, domains_of, item_domains
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions

_SOME_SALT = 0x50E3
_MOST_VOTES = 200_000
"""More votes than these do not change which model is best, only how long it takes to see."""


@dataclass(frozen=True)
class VoteSelection(LabelModel):
    """Fits every candidate without some items, and takes the one likeliest to give their votes.

    One error rate per classifier or a confusion matrix; every domain by itself or coupled. Source:
    held-out likelihood as in Platanios, Dubey, Mitchell (2016), section 5, by cross-validation.

    Parameters
    ----------
    candidates
        Models to choose from, simplest first; None: `BEE` and `ConfusionBEE`, with several domains
        also their coupled versions, with one `HCBEE` and `ConfusionHCBEE`, which couple
        classifiers.
    selection
        "folds" (cross-validation) or "split" (a tenth held out once).
    """

    candidates: Sequence[VoteModel] | None = None
    selection: Selection = "folds"

    def __post_init__(self) -> None:
        chosen_from("selection", self.selection, SELECTIONS)
        if self.candidates is not None and not (
            len(self.candidates) and all(isinstance(c, VoteModel) for c in self.candidates)
        ):
            raise UsageError(
                "`candidates` must be models of votes (BEE, CBEE, HCBEE, CBCC and their confusion "
                f"versions); got {self.candidates!r}"
            )

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Compare the candidates, and fit the best on all items."""
        started = perf_counter()
        served, _ = with_hard_votes(predictions, "vote-selection")
        candidates: Sequence[VoteModel] = self.candidates or (BEE(), ConfusionBEE())
        if not self.candidates and len(domains_of(served)) > 1:
            candidates = (*candidates, CBEE(), HCBEE(), ConfusionCBEE(), ConfusionHCBEE())
        elif not self.candidates and served.n_models > 3:
            candidates = (*candidates, HCBEE(), ConfusionHCBEE())
        some, parts = in_parts(_some(served), self.selection)
        scores = _compare(candidates, some, parts, int(rng.integers(2**63)))
        seen = ~np.isnan(scores).any(axis=0)
        scores, times = scores[:, seen], some.times[seen]
        best = int(np.argmax(np.average(scores, axis=1, weights=times))) if seen.any() else 0
        return _FittedSelection(
            candidates[best].fit(predictions, rng).after(perf_counter() - started),
            _names(candidates),
            best,
            scores,
            times,
        )


def _names(candidates: Sequence[VoteModel]) -> tuple[str, ...]:
    """What to call the candidates; those of one class are numbered."""
    names = [model.name for model in candidates]
    return tuple(
        f"{name} ({names[: i + 1].count(name)})" if names.count(name) > 1 else name
        for i, name in enumerate(names)
    )


def _some(predictions: Predictions) -> Predictions:
    """All items, or as many, chosen by identity, as have enough votes to compare models by."""
    votes = np.diff(predictions.vote_counts.indptr) @ predictions.times
    share = _MOST_VOTES / max(votes, 1)
    if share >= 1:
        return predictions
    size = int(share * predictions.size) + 1
    if predictions.multiplicity is not None:
        times = some_items(predictions.multiplicity, predictions.keys, size, _SOME_SALT)
        rows = np.flatnonzero(times)
        return predictions.take(rows).with_multiplicity(times[rows])
    return predictions.take(np.sort(np.argsort(predictions.keys)[:size]))


@dataclass(frozen=True, eq=False)
class _FittedSelection(FittedLabelModel):
    fitted: FittedVoteModel
    names: tuple[str, ...]
    best: int
    scores: Floats
    times: Floats

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        posterior = self.fitted.posterior(predictions)
        diagnostics: dict[str, Any] = {"chosen": self.names[self.best], **posterior.diagnostics}
        if self.scores.size:
            diagnostics["held_out"] = dict(zip(self.names, self.means.tolist(), strict=True))
        return replace(
            posterior,
            warnings=(self._why(), *posterior.warnings),
            diagnostics=diagnostics,
        )

    @property
    def means(self) -> Floats:
        """Mean log-likelihood of an item under every candidate."""
        return np.asarray(np.average(self.scores, axis=1, weights=self.times))

    def _why(self) -> str:
        """Say what was chosen, against what, and by how much."""
        chosen = self.names[self.best]
        if not self.scores.size or len(self.names) == 1:
            return f"the votes are explained by {chosen}: there was nothing to compare it with"
        gaps = []
        for other, name in enumerate(self.names):
            if other != self.best:
                gap = self.scores[self.best] - self.scores[other]
                mean = np.average(gap, weights=self.times)
                spread = np.sqrt(np.average((gap - mean) ** 2, weights=self.times))
                error = spread / np.sqrt(self.times.sum())
                gaps.append((mean, f"{name} by {mean:.3g} +- {error:.1g}"))
        told = listed([said for _, said in sorted(gaps)], 5)
        return (
            f"the votes are explained by {chosen}: it gives held-out votes the largest likelihood "
            f"(log per item {self.means[self.best]:.4g}; ahead of {told})"
        )


# --- held-out likelihood ----------------------------------------------------------------------


def _compare(
    candidates: Sequence[VoteModel], predictions: Predictions, parts: list[Bools], seed: int
) -> Floats:
    """Log-likelihood of every item when it is held out, (candidates, n); NaN where it was not."""
    out = []
    for done, model in enumerate(candidates):
        report(done, len(candidates))
        with reporting(None):
            # The same random numbers for all: less noise in their differences.
            own = np.random.default_rng(seed)
            ahead = (len(candidates) - 1 - done) * held_out_work(parts) + model.work
            out.append(log_predictive(model, predictions, parts, own, ahead))
    return np.stack(out)


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
    model: VoteModel, predictions: Predictions, rng: np.random.Generator
) -> VoteModel:
    """The model with its "held-out" concentrations those of the largest held-out likelihood.

    On a grid; its middle where there is nothing to hold out: domains of an item each.
    """
    names = [
        name
        for name in ("concentration", "top_concentration")
        if getattr(model, name, None) == "held-out"
    ]
    selection: Selection = getattr(model, "selection", "folds")
    some, parts = in_parts(predictions, selection)
    seed = int(rng.integers(2**63))
    grid = itertools.product(*[GRID if len(names) == 1 else _COARSE] * len(names))
    fixed: list[Any] = [dict(zip(names, point, strict=True)) for point in grid]
    models = [replace(model, **strengths) for strengths in fixed]
    scores = _compare(models, some, parts, seed)
    seen = ~np.isnan(scores).any(axis=0)
    if not seen.any():
        return models[len(models) // 2]
    means = np.average(scores[:, seen], axis=1, weights=some.times[seen])
    return models[int(np.argmax(means))]
