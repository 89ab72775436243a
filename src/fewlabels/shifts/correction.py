"""Corrections for shift in `estimate`: weights of the labeled items, adjusted label models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from fewlabels.errors import UsageError
from fewlabels.kernels.arrays import Floats
from fewlabels.kernels.interval_draws import ends
from fewlabels.models.base import LabelModel
from fewlabels.models.ensembles import TemperedEnsemble
from fewlabels.models.label_shift import FittedLabelShift, LabelShift, one_sided, sides
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions
from fewlabels.shifts.covariate import ImportanceWeights, covariate_weights, importance
from fewlabels.shifts.sampling_test import FEWEST_LABELS
from fewlabels.shifts.traits import beliefs
from fewlabels.wording import listed

Correction = Literal["auto", "covariate", "label"]

LEARN_FREQUENCIES = frozenset(
    {
        *("ssme-kde", "ssme-kde-marginal", "ssme-flow", "spe", "dawid-skene", "agreement-rates"),
        *("bee", "cbee", "hcbee", "cbcc", "confusion-bee", "confusion-cbee", "confusion-hcbee"),
        *("vote-selection", "crowd-svm", "majority-vote"),
    }
)
"""Methods that learn how frequent the classes are from all items, labeled or not.

Under label shift their P(class | scores) of unlabeled items is right as it is.
"""

UNLEARNED = frozenset({"ensemble"})
"""Methods that take the classifiers at their word: labels, and their frequencies, do not matter."""


class Corrected(NamedTuple):
    """Predictions with weights, the posterior of their labels, and what to say of it."""

    predictions: Predictions
    posterior: LabelPosterior
    warnings: tuple[str, ...]


def check_correction(shift: Any, estimand: str, method: str, *, distribution: bool) -> None:
    """Refuse a correction that is unknown, or that cannot be had of this method.

    Raises
    ------
    UsageError
        One line that says what is wrong and how to mend it.
    """
    if shift is None:
        return
    if shift not in get_args(Correction):
        raise UsageError(
            f"`shift` must be None or one of {listed(get_args(Correction))}; got {shift!r}"
        )
    if estimand == "sample":
        raise UsageError(
            "a correction for shift is for the population that unlabeled items come from; leave "
            "estimand 'sample' out, or `shift`"
        )
    if distribution:
        raise UsageError(
            "a correction for shift weights items of one class, and classifiers are judged against "
            "annotators' distributions here; use against='class' (--against class), or no `shift`"
        )
    if method == "active-testing":
        raise UsageError(
            "method 'active-testing' weights its labels itself; use another method, or no `shift`"
        )
    if shift == "label" and method == "autoeval":
        raise UsageError(
            "method 'autoeval' cannot be corrected for label shift: its proxies are the "
            "classifiers' own probabilities; use 'auto' or 'labeled'"
        )


def apply_correction(
    predictions: Predictions,
    model: LabelModel,
    method: str,
    kind: Literal["covariate", "label"] | None,
    rng: np.random.Generator,
) -> Corrected:
    """The posterior under a correction, None for none; labeled items carry importance weights.

    Covariate shift, P(class | scores) the same: a model of it is right as it is, and the labeled
    items are weighted to look like the unlabeled ones. Label shift, P(scores | class) the same:
    models of P(class | scores) are adjusted on the unlabeled items (`LabelShift`), and a labeled
    item has the weight of its class.
    """
    said: tuple[str, ...] = ()
    if kind is not None and (missing := one_sided(predictions)) is not None:
        kind, said = None, (f"no correction for shift: {missing}",)
    if kind is None:
        return Corrected(predictions, model.infer(predictions, rng), said)
    if kind == "label":
        return _corrected_for_labels(predictions, model, method, rng)
    found = covariate_weights(predictions)
    weighted = with_weights(predictions, found)
    posterior = model.infer(weighted, rng)
    return Corrected(weighted, posterior, (_said(found, "scores"), *_few(found)))


def _corrected_for_labels(
    predictions: Predictions,
    model: LabelModel,
    method: str,
    rng: np.random.Generator,
) -> Corrected:
    adjusted = method not in LEARN_FREQUENCIES | UNLEARNED | {"labeled"}
    if adjusted:
        fitted = LabelShift(model).fit(predictions, rng)
        posterior = fitted.posterior(predictions)
    else:
        fitted = LabelShift(TemperedEnsemble()).fit(believing(predictions), rng)
        posterior = model.infer(predictions, rng)
    found = class_importance(predictions, fitted)
    target = fitted.doubted_frequencies.target
    note = f"label shift: among unlabeled items {_frequencies(predictions, target)}"
    notes = [note, _said(found, "classes"), *_few(found)]
    if method in LEARN_FREQUENCIES:
        notes.append(
            f"{method} learns how frequent the classes are from all items, so only the labeled "
            "ones are weighted"
        )
    if not adjusted:
        notes.append(f"intervals of {method} take the weights of the classes as known")
    if method in UNLEARNED:
        notes.append(f"{method} does not learn from labels, so only labeled items are weighted")
    shown = {"frequencies": target.mean(axis=0).tolist()}
    diagnostics: Mapping[str, Any] = {**posterior.diagnostics, "label_shift": shown}
    return Corrected(
        with_weights(predictions, found),
        replace(posterior, diagnostics=diagnostics),
        tuple(notes),
    )


def believing(predictions: Predictions) -> Predictions:
    """The same items with a probability of whatever each classifier gives, votes and scores too."""
    return Predictions(
        beliefs(predictions),
        predictions.labels,
        histogram=predictions.histogram,
        weight=predictions.weight,
        models=predictions.models,
        classes=predictions.classes,
        positive=predictions.positive,
    )


def class_importance(predictions: Predictions, fitted: FittedLabelShift) -> ImportanceWeights:
    """Weights of the labeled items by class: estimated frequency over that among the labels."""
    known, _ = sides(predictions)
    labels = predictions.labels
    named = known & (labels >= 0)
    counts = np.bincount(labels[named], minlength=predictions.n_classes)
    share = np.maximum(counts, 1) / max(counts.sum(), 1)
    by_class: Floats = fitted.frequencies.target.mean(axis=0) / share
    raw = np.ones(predictions.n_items)
    raw[named] = by_class[labels[named]]
    return importance(raw, known)


def with_weights(predictions: Predictions, found: ImportanceWeights) -> Predictions:
    """The same predictions, sampling weights times importance weights."""
    return predictions.with_weight(predictions.weight * found.weights)


def _frequencies(predictions: Predictions, target: Floats) -> str:
    """The frequency of the positive class, or of all, with its 90% interval."""
    low, high = ends(target, 0.9)
    chosen = [1] if predictions.n_classes == 2 else range(min(predictions.n_classes, 4))
    return listed(
        f"class {predictions.classes[k]} makes up {target[:, k].mean():.0%} "
        f"(90% interval {low[k]:.0%} to {high[k]:.0%})"
        for k in chosen
    )


def _said(found: ImportanceWeights, what: str) -> str:
    return (
        f"corrected for shift: estimates are for the population of the unlabeled items, and "
        f"{found.n_labeled:,} labeled items are weighted by their {what} "
        f"(worth {found.effective:,.1f} of equal weights)"
    )


def _few(found: ImportanceWeights) -> tuple[str, ...]:
    if found.effective >= FEWEST_LABELS:
        return ()
    return (
        f"few-labels: after the correction the labels are worth {found.effective:.1f} items; "
        "unlabeled items are unlike nearly all labeled ones",
    )
