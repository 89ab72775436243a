"""LabelModel: predictions and a few labels in, a posterior over the missing labels out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import final

import numpy as np

from fewlabels.checks.arguments import refuse_beyond_memory
from fewlabels.errors import InputError, Status, UsageError
from fewlabels.kernels.arrays import Bools, Floats, Ints, UInts
from fewlabels.kernels.simplex import softmax
from fewlabels.kernels.votes import has_evidence
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions


class FittedLabelModel(ABC):
    """What a label model learned; it applies to any rows of the same classifiers and classes.

    What it computes once for all rows, such as refits, it keeps from the first block of draws on
    (`LabelPosterior.prepare`). It may be pickled, and serves several threads.
    """

    @abstractmethod
    def posterior(self, predictions: Predictions) -> LabelPosterior:
        """Posterior over the labels of these items."""


class LabelModel(ABC):
    """Hyperparameters of a method. Fitting changes nothing here: it returns what was learned."""

    @abstractmethod
    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Learn from predictions and the labels there are.

        Raises
        ------
        InputError
            If the predictions lack what the method needs, or are more than it serves: classes,
            what fits into memory, answers of an oracle.
        """

    @final
    def infer(
        self,
        predictions: Predictions,
        rng: np.random.Generator | int | None = None,
        by: Sequence[str] = (),
    ) -> LabelPosterior:
        """Fit, and give the posterior of the same items.

        Only groups of the columns `by` may have curves of their own.
        """
        seeded = np.random.default_rng(0 if rng is None else rng)
        return self.fit(self.known(predictions, by), seeded).posterior(predictions)

    @property
    def grouped(self) -> bool:
        """Whether it gives groups curves of their own, all that it is fitted to."""
        return False

    @final
    def known(self, predictions: Predictions, by: Iterable[str]) -> Predictions:
        """What it is fitted to where somebody asks for groups of the columns `by`."""
        return predictions.keeping(by) if self.grouped else predictions


def with_probabilities(predictions: Predictions, method: str) -> tuple[Predictions, Floats]:
    """The classifiers that give probabilities, and these (n, M, K)."""
    served = _givers(
        predictions,
        predictions.gives("probabilities"),
        f"method {method!r} needs class probabilities (columns p__<model>__<class>), and no "
        "classifier gives any; provide them, or use a method for hard predictions "
        "('dawid-skene', 'majority-vote') or 'labeled'",
    )
    assert served.probabilities is not None
    return served, served.probabilities


def refuse_more_classes(predictions: Predictions, method: str, others: str) -> None:
    """Refuse more than two classes, and name methods that serve them."""
    if predictions.n_classes != 2:
        raise InputError(
            f"method {method!r} is for two classes, and these predictions have "
            f"{predictions.n_classes}; use method {others}"
        )


def with_hard_votes(predictions: Predictions, method: str) -> Predictions:
    """The classifiers that give hard predictions."""
    # Confusion matrices of all classifiers, of which a method holds several at once.
    k = predictions.n_classes
    refuse_beyond_memory(
        4 * 8.0 * predictions.n_models * k**2,
        f"a confusion matrix of {k:,} classes for each of {predictions.n_models:,} classifiers",
        "merge classes, or take --method labeled",
    )
    return _givers(
        predictions,
        predictions.gives("hard"),
        f"method {method!r} needs hard predictions (columns y__<model>, or probabilities), and "
        "no classifier gives any; use method 'labeled', or provide predictions",
    )


def with_scores(predictions: Predictions, method: str) -> Predictions:
    """The classifiers that give probabilities or scores."""
    return _givers(
        predictions,
        predictions.gives("ranking"),
        f"method {method!r} needs scores (columns s__<model>) or class probabilities (columns "
        "p__<model>__<class>), and no classifier gives any; provide them, or use a method for "
        "hard predictions ('dawid-skene', 'majority-vote') or 'labeled'",
    )


def _givers(predictions: Predictions, gives: Bools, refusal: str) -> Predictions:
    """The predictions of classifiers where `gives` (M,) is true; an error if there is none."""
    if not gives.any():
        raise InputError(refusal)
    if gives.all():
        return predictions
    return predictions.select_models([predictions.models[j] for j in np.flatnonzero(gives)])


def probabilities_of(predictions: Predictions, models: Sequence[str], method: str) -> Floats:
    """Probabilities (n, M, K) of the classifiers a model was fitted on; missing ones are NaN."""
    served = predictions.select_models(models)
    if served.probabilities is None:
        raise InputError(f"method {method!r} needs class probabilities, and these items have none")
    return served.probabilities


def with_evidence(
    probabilities: Floats, evidence: Floats, floor: float = float(np.finfo(float).tiny)
) -> Floats:
    """Posterior (n, K, ...) from P(label | scores) and the evidence (n, K).

    A known label is one-hot. Before softer evidence is multiplied in, probabilities are raised to
    `floor`, so that evidence can contradict certain scores.
    """
    informed = np.flatnonzero(has_evidence(evidence))
    out = probabilities.copy()
    told_of = evidence[informed].reshape(-1, evidence.shape[1], *[1] * (out.ndim - 2))
    out[informed] = softmax(np.log(np.maximum(out[informed], floor)) + told_of)
    return out


def places_of(keys: UInts, among: UInts) -> Ints:
    """Index of each key (n,) among others (m,), -1 if it is not there."""
    if not len(among):
        return np.full(len(keys), -1)
    order = np.argsort(among)
    ordered = among[order]
    place = np.minimum(np.searchsorted(ordered, keys), len(order) - 1)
    out: Ints = np.where(ordered[place] == keys, order[place], -1)
    return out


def gravest(statuses: Iterable[Status]) -> Status:
    """The gravest of the statuses of several fits, or estimates."""
    return min(statuses, key=_GRAVEST_FIRST.index, default=Status.OK)


def status_of(warnings: Sequence[str]) -> Status:
    """The gravest status that a warning begins with."""
    said = {warning.partition(":")[0] for warning in warnings}
    return gravest(status for status in _GRAVEST_FIRST if status.value in said)


_GRAVEST_FIRST = (
    Status.UNDEFINED, Status.NOT_CONVERGED, Status.CONTRADICTED, Status.FEW_LABELS,
    Status.ASSUMPTION, Status.OK,
)  # fmt: skip


def refuse_multiplicity(predictions: Predictions, who: str) -> None:
    """Refuse rows that stand for several items, in methods that take every row for one."""
    if predictions.multiplicity is not None:
        raise UsageError(
            f"{who} takes every row for one item, and rows stand for several here "
            "(`multiplicity`); give every item a row of its own, or take a method that counts "
            "them, such as 'dawid-skene' or 'labeled'"
        )


def refuse_strata(predictions: Predictions, who: str) -> None:
    """Refuse labels drawn by stratum, where every label counts alike."""
    if predictions.stratum is not None:
        raise UsageError(
            f"{who} counts all labels alike, and here they were drawn by stratum "
            f"(`stratum` {predictions.stratum!r}); ask `fewlabels estimate` instead"
        )


def whole_items(predictions: Predictions) -> None:
    """Refuse rows that stand for a part of an item: labels are drawn for whole ones."""
    times = predictions.times
    broken = np.flatnonzero(times != np.rint(times))
    if broken.size:
        raise InputError(
            f"`multiplicity` must be whole numbers; got {times[broken[0]]} for row {broken[0]} "
            "(from 0)"
        )
