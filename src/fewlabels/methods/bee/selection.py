"""Vote selection: of several models of votes, the one that predicts held-out votes best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from fewlabels.errors import UsageError, listed
from fewlabels.kernels.arrays import Bools, Floats
from fewlabels.kernels.blocks import report, reporting
from fewlabels.kernels.counter_based_counts import some_items
from fewlabels.methods.base import FittedLabelModel, LabelModel, check_choice, with_hard_votes
from fewlabels.methods.bee.bee import (
    BEE,
    CBEE,
    HCBEE,
    ConfusionBEE,
    ConfusionCBEE,
    ConfusionHCBEE,
)
from fewlabels.methods.bee.heldout import (
    SELECTIONS,
    Selection,
    held_out_work,
    in_parts,
    log_predictive,
)
from fewlabels.methods.bee.vote_model import FittedVoteModel, VoteModel
from fewlabels.methods.votes.data import domains_of
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
        check_choice("selection", self.selection, SELECTIONS)
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
        candidates = self.candidates or _candidates(served)
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


def _candidates(predictions: Predictions) -> tuple[VoteModel, ...]:
    alone: tuple[VoteModel, ...] = (BEE(), ConfusionBEE())
    if len(domains_of(predictions)) > 1:
        return (*alone, CBEE(), HCBEE(), ConfusionCBEE(), ConfusionHCBEE())
    return (*alone, HCBEE(), ConfusionHCBEE()) if predictions.n_models > 3 else alone


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
