"""The plain baselines: labels alone, the averaged classifier, the majority, a regression."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse

from fewlabels.checks.arguments import whole
from fewlabels.errors import InputError, Status, UsageError
from fewlabels.kernels.arrays import Bools, Floats, Ints, UInts
from fewlabels.kernels.blocks import spans
from fewlabels.kernels.counter_based import exponential_sums, shared_exponentials
from fewlabels.kernels.simplex import (
    CLIP,
    additive_log_ratio,
    clip,
    filled,
    linear_pool,
    mean_probability,
    softmax,
)
from fewlabels.kernels.votes import by_item, has_evidence
from fewlabels.methods.base import (
    FittedLabelModel,
    LabelModel,
    probabilities_of,
    status_of,
    with_evidence,
    with_hard_votes,
    with_probabilities,
)
from fewlabels.methods.replicates import Refits
from fewlabels.methods.votes.data import elected, not_identified, vote_totals
from fewlabels.posterior import Fixed, LabelPosterior, ObservedLabels
from fewlabels.predictions import Predictions

_REFIT_SALT, _DRAWS_SALT = 0x95E0D0, 0x307E
_BLOCK = 2**22


@dataclass(frozen=True)
class Labeled(LabelModel):
    """Metrics on the labeled items only: what everybody computes today, as a baseline.

    It forms no posterior over the other labels: its marginals there are the class frequencies
    among the labels, and no metric uses them.
    """

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Count the labels; `rng` seeds the intervals."""
        labeled = predictions.labeled
        times, k = predictions.times[labeled], predictions.n_classes
        count = np.bincount(predictions.labels[labeled], times, minlength=k)
        frequency = (count + 0.5) / (count.sum() + 0.5 * len(count))
        return _FittedLabeled(tuple(frequency.tolist()), int(rng.integers(2**63)))


@dataclass(frozen=True)
class _FittedLabeled(FittedLabelModel):
    frequency: tuple[float, ...]
    salt: int

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        probabilities = np.tile(self.frequency, (predictions.n_items, 1))
        rows = np.flatnonzero(predictions.labeled)
        probabilities[rows] = 0.0
        probabilities[rows, predictions.labels[rows]] = 1.0
        return ObservedLabels(
            probabilities,
            Fixed(probabilities),
            predictions.keys,
            salt=self.salt,
            value_from="marginals",
            observed=predictions.labeled,
        )


@dataclass(frozen=True)
class Ensemble(LabelModel):
    """P(label | scores) = mean probability of the classifiers (a baseline of the SSME paper).

    Labels are kept, and teach nothing about the other items.
    """

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Nothing is learned; `rng` seeds the draws of labels."""
        served, p = with_probabilities(predictions, "ensemble")
        return _FittedEnsemble(served.models, mean_probability(p), int(rng.integers(2**63)))


@dataclass(frozen=True, eq=False)
class _FittedEnsemble(FittedLabelModel):
    models: tuple[str, ...]
    average: Floats
    salt: int

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        p = probabilities_of(predictions, self.models, "ensemble")
        pool = linear_pool(p, self.average)
        probabilities = with_evidence(pool, predictions.evidence)
        return LabelPosterior(
            probabilities,
            Fixed(probabilities),
            predictions.keys,
            salt=self.salt,
            value_from="marginals",
            status=Status.ASSUMPTION,
            warnings=(
                "assumption: the mean of the classifiers' probabilities is taken as true; "
                "labels do not correct it",
            ),
        )


@dataclass(frozen=True)
class MajorityVote(LabelModel):
    """P(y=k | votes) = sum_j w_j 1[vote_j = k] / sum_j w_j, w_j the accuracy of classifier j.

    The accuracy is that on the labeled items that the classifier voted on; without any of these,
    the mean of the other classifiers'. Without labels, or where no voter was ever right, votes
    count equally. A baseline in Shanmugam et al. (2025), appendix B.2: "the accuracy-weighted
    average of discrete predictions".

    Parameters
    ----------
    weighted
        Whether accuracy weighs the votes; else they count equally.
    hard
        Whether the class of most votes gets all the probability (classes that tie share it);
        else every class keeps its share. None is what gives the paper's errors: the class of most
        votes for two classes, the shares for more.
    n_draws
        Draws of the weights, by Exp(1) weights of the labeled items, for intervals.
    """

    weighted: bool = True
    hard: bool | None = None
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
        labels, voted = softmax(served.evidence[informed]), votes[informed]
        once = _accuracies(voted, labels, served.times[informed, None])
        times = None if served.multiplicity is None else served.multiplicity[informed]

        def drawn(draw: slice) -> Floats:
            streams = np.arange(draw.start, draw.stop)
            clusters = served.clusters_of(informed)
            rows = exponential_sums(clusters, streams, times, salt ^ _DRAWS_SALT)
            return _accuracies(voted, labels, rows)

        total = vote_totals(served)
        parts = spans(self.n_draws, max(_BLOCK // len(informed), 1)) if len(informed) else []
        return _FittedMajority(
            hard=served.n_classes == 2 if self.hard is None else self.hard,
            models=served.models,
            weights=once[:, 0],
            refits=np.hstack([drawn(part) for part in parts]) if parts else once,
            average=total / total.sum(),
            salt=salt,
            doubts=not_identified(served, np.zeros(served.n_items, dtype=np.int64), (None,)),
        )


def _accuracies(votes: scipy.sparse.csr_matrix, labels: Floats, rows: Floats) -> Floats:
    """Accuracy (M, D) of votes (n, M K) against P(label | evidence) (n, K), weights (n, D).

    Ones where nothing is told of any classifier.
    """
    voted = by_item(votes, np.ones(labels.shape))
    total = voted.T @ rows
    measured: Bools = np.asarray(voted.sum(axis=0)).ravel() > 0
    if not measured.any():
        return np.ones((voted.shape[1], rows.shape[1]))
    out: Floats = (by_item(votes, labels).T @ rows) / np.where(measured[:, None], total, 1.0)
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
        return elected(votes, evidence, weights, self.average, hard=self.hard)


@dataclass(frozen=True)
class PseudoLabel(LabelModel):
    """scikit-learn's `LogisticRegression()` on the scores, fitted to the labeled items.

    Its probabilities are taken for those of every other item's label. A baseline in Shanmugam et
    al. (2025); the defaults are those that give the paper's figures.

    Parameters
    ----------
    soft
        Whether items get the regression's probabilities, or its predicted class for certain.
    features
        "probabilities" (of two classes the second's, else every class's) or "log-ratios"
        (additive, against the last class, on which the penalty then depends). The regression's
        penalty weighs on the one as on the other, but log-ratios are larger numbers, so it holds
        them back less.
    replicates
        Refits under Exp(1) weights of the labeled items, for intervals.
    """

    soft: bool = True
    features: Literal["log-ratios", "probabilities"] = "probabilities"
    replicates: int = 20

    def __post_init__(self) -> None:
        whole("replicates", self.replicates)
        if self.features not in ("log-ratios", "probabilities"):
            raise UsageError(
                f"`features` must be 'log-ratios' or 'probabilities'; got {self.features!r}"
            )

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Regress the labels on the scores of the labeled items."""
        served, p = with_probabilities(predictions, "pseudo-label")
        informed = np.flatnonzero(has_evidence(served.evidence))
        if not len(informed):
            raise InputError(
                "method 'pseudo-label' learns from labels, and there are none; label some items, "
                "or use method 'ensemble' or 'dawid-skene'"
            )
        # By their keys, so that the order of the rows does not show in the last digits.
        informed = informed[np.argsort(served.keys[informed])]
        average, share = mean_probability(p), softmax(served.evidence[informed])
        item, label = np.nonzero(share > 0)
        return _FittedPseudoLabel(
            model=self,
            models=served.models,
            average=average,
            training=_Training(
                self.scores(p[informed], average)[item],
                label,
                share[item, label],
                item,
                served.clusters_of(informed),
                served.n_classes,
            ),
            classes=tuple(map(str, served.classes)),
            salt=int(rng.integers(2**63)),
        )

    def scores(self, p: Floats, average: Floats) -> Floats:
        """What the regression sees of probabilities (n, M, K): a row per item.

        A missing prediction is the mean of the other classifiers' there; `average` (K,) stands in
        where all are missing.
        """
        if self.features == "log-ratios":
            return additive_log_ratio(filled(clip(p), average))
        first = 1 if p.shape[2] == 2 else 0
        return filled(p, average)[:, :, first:].reshape(len(p), -1)


class _Training(NamedTuple):
    """Rows to learn from: scores, class and weight of each, and its item.

    An item with a known label is one row. One with annotators' counts is a row per class, weighted
    by the class's probability.
    """

    scores: Floats
    label: Ints
    weight: Floats
    item: Ints
    clusters: tuple[UInts, ...]
    n_classes: int

    @property
    def n_items(self) -> int:
        """How many items there are."""
        return len(self.clusters[0])

    def fit(self, item_weights: Floats) -> tuple[Floats, bool]:
        """Coefficients (1 + d, K), the intercept first, and whether the fit converged.

        A class without any row has an intercept of -inf.
        """
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        out = np.zeros((1 + self.scores.shape[1], self.n_classes))
        there = np.unique(self.label)
        out[0] = -np.inf
        out[0, there] = 0.0
        if len(there) == 1:
            return out, True
        regression = LogisticRegression()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            regression.fit(self.scores, self.label, self.weight * item_weights[self.item])
        # With two classes scikit-learn gives the second one's coefficients alone.
        classes = there[-len(regression.coef_) :]
        out[0, classes] = regression.intercept_
        out[1:, classes] = regression.coef_.T
        return out, not any(issubclass(w.category, ConvergenceWarning) for w in caught)


@dataclass(frozen=True, eq=False)
class _FittedPseudoLabel(FittedLabelModel):
    model: PseudoLabel
    models: tuple[str, ...]
    average: Floats
    training: _Training
    classes: tuple[str, ...]
    salt: int

    @cached_property
    def result(self) -> tuple[Floats, bool]:
        return self.training.fit(np.ones(self.training.n_items))

    @cached_property
    def refits(self) -> Floats:
        """Coefficients of the replicates, (1 + d, K, R)."""
        streams = np.arange(self.model.replicates)
        weights = shared_exponentials(self.training.clusters, streams, self.salt ^ _REFIT_SALT)
        return np.stack([self.training.fit(w)[0] for w in weights.T], axis=2)

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        p = probabilities_of(predictions, self.models, "pseudo-label")
        scores = self.model.scores(p, self.average)
        coefficients, converged = self.result
        single = np.flatnonzero(np.isfinite(coefficients[0]))
        warning = "assumption: what a regression learned from the labels is taken as true"
        if len(single) == 1:
            warning = (
                f"assumption: all labels are of class {self.classes[single[0]]}, so every other "
                "item is taken to be of it too"
            )
        elif not converged:
            warning = "not-converged: the logistic regression did not reach its optimum"
        probabilities = self.probabilities(scores, predictions.evidence, coefficients[:, :, None])
        return LabelPosterior(
            probabilities[:, :, 0],
            Refits(self.model.replicates, self, scores, predictions.evidence),
            predictions.keys,
            salt=self.salt,
            value_from="marginals",
            status=status_of([warning]),
            warnings=(warning,),
            diagnostics={"labels_learned_from": self.training.n_items},
        )

    def probabilities(self, scores: Floats, evidence: Floats, coefficients: Floats) -> Floats:
        """P(label) (n, K, R) under coefficients (1 + d, K, R)."""
        _, k, r = coefficients.shape
        logits = (scores @ coefficients[1:].reshape(-1, k * r)).reshape(-1, k, r)
        p = softmax(logits + coefficients[0])
        if not self.model.soft:
            unknown = np.flatnonzero((evidence == 0).all(axis=1))
            label = np.argmax(p[unknown], axis=1)
            p[unknown] = label[:, None, :] == np.arange(k)[:, None]
        return with_evidence(p, evidence, floor=CLIP)
