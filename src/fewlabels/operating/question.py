"""One question: how well one classifier tells one class from the rest, and by which posterior."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fewlabels.door import UNKNOWN
from fewlabels.errors import InputError, UsageError
from fewlabels.evaluation.evaluator import Estimand
from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.models.base import LabelModel
from fewlabels.models.registry import METHODS
from fewlabels.models.registry import resolve as resolve_method
from fewlabels.models.scores import is_probability, score_of
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions
from fewlabels.wording import listed, quoted, unknown

AUTO = "monotone-curves"
"""The method for the scores of one classifier."""


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked of one classifier, and the posterior by which it is judged.

    `predictions` are what the posterior is of, and `positive` is the class in question among
    their classes. `scores` (n,) rank the items, in the units of the file; NaN = missing. `asked`
    holds the one classifier and two classes, the one in question last.
    """

    predictions: Predictions
    posterior: LabelPosterior
    positive: int
    scores: Floats
    asked: Predictions
    probability: bool
    method: str
    estimand: Estimand
    seed: int

    @property
    def model(self) -> str:
        """Name of the classifier."""
        return self.asked.models[0]

    @cached_property
    def rows(self) -> Ints:
        """Items that count: with a score, and of positive weight; ascending."""
        return np.flatnonzero(~np.isnan(self.scores) & (self.predictions.weight > 0))

    @cached_property
    def answered(self) -> Ints:
        """Those of `rows` that the posterior speaks about."""
        support = self.posterior.support
        return self.rows if support is None else self.rows[support[self.rows]]

    @cached_property
    def known(self) -> Ints:
        """Label of each of `rows`: 1 the class in question, 0 another, -1 unknown."""
        return self.asked.labels[self.rows]


def ask(
    predictions: Predictions,
    model: str | None,
    method: str | LabelModel,
    positive: Any,
    estimand: Estimand,
    seed: int,
) -> Question:
    """Fit the method, and put the question to its posterior.

    Method "auto" sees the one classifier, and the class against the rest; any other sees all
    classifiers and classes.

    Raises
    ------
    UsageError
        If it is not clear which classifier or class is meant, or the method forms no posterior.
    InputError
        If the classifier has neither probabilities nor scores.
    """
    name = _classifier(predictions, model)
    k = _positive(predictions, positive)
    j = predictions.models.index(name)
    probability = is_probability(predictions, j)
    if not probability and k == 0:
        raise UsageError(
            f"the scores of {quoted(name)} rank class {quoted(predictions.classes[1])} upwards; "
            "ask for that class, or provide probabilities"
        )
    called, label_model = resolve_method(AUTO if method == "auto" else method, predictions)
    known = METHODS.get(called)
    if known is not None and known.serves == "means":
        raise _no_posterior(called)
    asked = _against_the_rest(predictions.select_models([name]), k)
    scores, fitted = score_of(predictions, j, k), predictions
    if method == "auto":
        # As asked, but for the order of two classes: to reverse them would change nothing.
        fitted = asked if predictions.n_classes > 2 else predictions.select_models([name])
        j, k = 0, 1 if predictions.n_classes > 2 else k
    posterior = label_model.infer(fitted, np.random.default_rng(seed)).of(j)
    if posterior.means is not None:
        raise _no_posterior(called)
    return Question(
        fitted, posterior, k, scores, asked, probability, called, estimand, seed
    )  # fmt: skip


def _no_posterior(method: str) -> UsageError:
    return UsageError(
        f"method {method!r} estimates means of metrics and forms no posterior over labels, which "
        "curves and thresholds need; use 'auto', 'tempered-ensemble' or 'labeled'"
    )


def _classifier(predictions: Predictions, model: str | None) -> str:
    """The classifier that is meant."""
    ranks = predictions.provides("ranking").any(axis=0)
    names = [predictions.models[j] for j in np.flatnonzero(ranks)]
    if model is not None and model not in predictions.models:
        raise UsageError(unknown("model", model, predictions.models))
    if not names or (model is not None and model not in names):
        who = "no classifier gives any" if not names else f"{quoted(model)} gives none"
        raise InputError(
            "a curve or threshold needs class probabilities (columns p__<model>__<class>) or "
            f"scores (columns s__<model>), and {who}; hard predictions have no threshold to move"
        )
    if model is None and len(names) > 1:
        raise UsageError(f"`model` must name one of the classifiers: {listed(names, 60)}")
    return model or names[0]


def _positive(predictions: Predictions, positive: Any) -> int:
    """Index of the class that is meant; of two, the last where nothing is said."""
    classes = predictions.classes
    if positive is None:
        if len(classes) > 2:
            raise UsageError(
                f"`positive` must name the class that is set against the rest: {listed(classes)}"
            )
        return len(classes) - 1
    texts = [str(c) for c in classes]
    if str(positive) not in texts:
        raise UsageError(unknown("class", positive, texts))
    return texts.index(str(positive))


def _against_the_rest(predictions: Predictions, k: int) -> Predictions:
    """One classifier with two classes, class k last; weights, domain and notes stay."""
    if predictions.n_classes == 2 and k == 1:
        return predictions
    assert predictions.probabilities is not None  # only their classifiers rank any class
    labels, histogram = predictions.labels, predictions.histogram
    if histogram is not None:
        own = histogram[:, k]
        histogram = np.column_stack([np.delete(histogram, k, axis=1).sum(axis=1), own])
    name = predictions.classes[k]
    rest = predictions.classes[1 - k] if predictions.n_classes == 2 else f"not {name}"
    return Predictions(
        predictions.probabilities[:, :, k],
        np.where(labels >= 0, labels == k, UNKNOWN),
        histogram=histogram,
        domain=predictions.domain,
        weight=predictions.weight,
        models=predictions.models,
        classes=(rest, name),
        positive=name,
        notes=predictions.notes,
    )
