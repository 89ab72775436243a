"""Majority vote: the classifiers' hard predictions, weighted by their accuracy on the labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse

from fewlabels.checks.arguments import whole
from fewlabels.errors import Status
from fewlabels.kernels.arrays import Bools, Floats
from fewlabels.kernels.blocks import spans
from fewlabels.kernels.counter_based import exponential_sums
from fewlabels.kernels.simplex import CLIP, softmax
from fewlabels.kernels.votes import by_item, has_evidence, most_voted, vote_shares
from fewlabels.methods.base import FittedLabelModel, LabelModel, with_evidence, with_hard_votes
from fewlabels.methods.replicates import Refits
from fewlabels.methods.votes.data import not_identified, vote_totals
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions

_DRAWS_SALT = 0x307E
_BLOCK = 2**22


@dataclass(frozen=True)
class MajorityVote(LabelModel):
    """P(y=k | votes) = sum_j w_j 1[vote_j = k] / sum_j w_j, w_j the accuracy of classifier j.

    The accuracy is that on the labeled items that the classifier voted on; without any of these,
    the mean of the other classifiers'. Without labels, or where no voter was ever right, votes
    count equally. A baseline in Shanmugam et al. (2025), whose figures are those of the class of
    most votes, not of the shares.

    Parameters
    ----------
    weighted
        Whether accuracy weighs the votes; else they count equally.
    hard
        Whether the class of most votes gets all the probability (classes that tie share it), as
        in the paper; else every class keeps its share.
    n_draws
        Draws of the weights, by Exp(1) weights of the labeled items, for intervals.
    """

    weighted: bool = True
    hard: bool = True
    n_draws: int = 200

    def __post_init__(self) -> None:
        whole("n_draws", self.n_draws)

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Measure every classifier's accuracy on the labeled items, and draw it."""
        served = with_hard_votes(predictions, "majority-vote")
        votes = served.vote_counts
        salt = int(rng.integers(2**63))
        informed = np.flatnonzero(has_evidence(served.evidence))
        if not self.weighted:
            informed = informed[:0]
        told, voted = softmax(served.evidence[informed]), votes[informed]
        once = _accuracies(voted, told, served.times[informed, None])
        times = None if served.multiplicity is None else served.multiplicity[informed]

        def drawn(draw: slice) -> Floats:
            streams = np.arange(draw.start, draw.stop)
            own = served.clusters_of(informed)
            rows = exponential_sums(own, streams, times, salt ^ _DRAWS_SALT)
            return _accuracies(voted, told, rows)

        total = vote_totals(served)
        parts = spans(self.n_draws, max(_BLOCK // len(informed), 1)) if len(informed) else []
        return _FittedMajority(
            hard=self.hard,
            models=served.models,
            weights=once[:, 0],
            refits=np.hstack([drawn(part) for part in parts]) if parts else once,
            average=total / total.sum(),
            salt=salt,
            doubts=not_identified(served, np.zeros(served.n_items, dtype=np.int64), (None,)),
        )


def _accuracies(votes: scipy.sparse.csr_matrix, told: Floats, rows: Floats) -> Floats:
    """Accuracy (M, D) of votes (n, M K) against P(label | evidence) (n, K), weights (n, D).

    Ones where nothing is told of any classifier.
    """
    n, k = told.shape
    given = by_item(votes, np.ones((n, k)))
    total = given.T @ rows
    measured: Bools = np.asarray(given.sum(axis=0)).ravel() > 0
    if not measured.any():
        return np.ones((given.shape[1], rows.shape[1]))
    out: Floats = (by_item(votes, told).T @ rows) / np.where(measured[:, None], total, 1.0)
    out[~measured] = out[measured].mean(axis=0)
    return out


@dataclass(frozen=True, eq=False)
class _FittedMajority(FittedLabelModel):
    hard: bool
    models: tuple[str, ...]
    weights: Floats
    refits: Floats
    average: Floats
    salt: int
    doubts: tuple[str, ...]

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        votes = predictions.select_models(self.models).vote_counts
        return LabelPosterior(
            self.probabilities(votes, predictions.evidence, self.weights[:, None])[:, :, 0],
            Refits(self.refits.shape[1], self, votes, predictions.evidence),
            predictions.keys,
            salt=self.salt,
            value_from="marginals",
            status=Status.ASSUMPTION,
            warnings=(
                "assumption: there is one classifier, and it is compared with its own votes; the "
                "labels alone say more (method 'labeled')",
            )
            if len(self.models) == 1
            else (
                "assumption: what most classifiers vote for is taken as true; labels do no "
                "more than weigh the classifiers",
                *self.doubts,
            ),
            diagnostics={
                "weights": dict(zip(self.models, self.weights.tolist(), strict=True)),
            },
        )

    def probabilities(
        self, votes: scipy.sparse.csr_matrix, evidence: Floats, weights: Floats
    ) -> Floats:
        """P(label) (n, K, D) under weights (M, D) of the classifiers."""
        shares = vote_shares(votes, weights, self.average)
        if self.hard:
            shares = most_voted(shares)
        return with_evidence(shares, evidence, floor=CLIP)
