"""Corrections for shift in `estimate`: weights of the labeled items, adjusted label models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from fewlabels.errors import UsageError, listed
from fewlabels.kernels.arrays import Floats
from fewlabels.kernels.interval_draws import ends
from fewlabels.methods.base import LabelModel
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions
from fewlabels.shifts.analysis import analyse, too_few
from fewlabels.shifts.covariate import ImportanceWeights, covariate_weights
from fewlabels.shifts.label_shift import LEARN_FREQUENCIES, UNLEARNED, ClassShift, class_importance
from fewlabels.shifts.sampling_test import FEWEST_LABELS
from fewlabels.shifts.traits import Split

Correction = Literal["auto", "covariate", "label"]


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


def corrected(
    predictions: Predictions,
    model: LabelModel,
    method: str,
    correction: Correction,
    rng: np.random.Generator,
    seed: int,
) -> Corrected:
    """The posterior under a correction; labeled items carry importance weights.

    "covariate", P(class | scores) the same: a model of it is right as it is, and the labeled items
    are weighted to look like the unlabeled ones. "label", P(scores | class) the same: models of
    P(class | scores) are adjusted on the unlabeled items (`LabelShift`), and a labeled item has
    the weight of its class. "auto" is what `fewlabels.shift` suggests, which may be nothing.
    """
    kind: str | None = correction
    notes: list[str] = []
    if correction == "auto":
        kind = None
        if (few := too_few(predictions)) is not None:
            notes.append(f"no correction for shift: {few}")
        else:
            shift = analyse(predictions, method, model, seed, 0.95)
            # The proxies of `autoeval` cannot be adjusted.
            kind = "covariate" if shift.suggested and method == "autoeval" else shift.suggested
            notes.append(f"shift: {shift.statement[0].lower()}{shift.statement[1:]}".rstrip("."))
    missing = Split.of(predictions).missing
    if kind is not None and missing is not None:
        kind = None
        notes.append(f"no correction for shift: {missing}")
    if kind is None:
        return Corrected(predictions, model.infer(predictions, rng), tuple(notes))
    if kind == "label":
        return _for_classes(predictions, model, method, rng, notes)
    weights = covariate_weights(predictions)
    weighted = predictions.with_weight(predictions.weight * weights.weights)
    posterior = model.infer(weighted, rng)
    return Corrected(weighted, posterior, (*notes, *_worth(weights, "scores")))


def _for_classes(
    predictions: Predictions,
    model: LabelModel,
    method: str,
    rng: np.random.Generator,
    notes: list[str],
) -> Corrected:
    classes = ClassShift.of(predictions, method, model, rng)
    if classes.own:
        posterior = classes.fitted.posterior(predictions)
    else:
        posterior = model.infer(predictions, rng)
    weights = class_importance(predictions, classes.fitted)
    target = classes.fitted.interval_frequencies.target
    notes.append(f"label shift: among unlabeled items {_frequencies(predictions, target)}")
    notes += _worth(weights, "classes")
    if method in LEARN_FREQUENCIES:
        notes.append(
            f"{method} learns how frequent the classes are from all items, so only the labeled "
            "ones are weighted"
        )
    if not classes.own:
        notes.append(f"intervals of {method} take the weights of the classes as known")
    if method in UNLEARNED:
        notes.append(f"{method} does not learn from labels, so only labeled items are weighted")
    shown = {"frequencies": target.mean(axis=0).tolist()}
    return Corrected(
        predictions.with_weight(predictions.weight * weights.weights),
        replace(posterior, diagnostics={**posterior.diagnostics, "label_shift": shown}),
        tuple(notes),
    )


def _frequencies(predictions: Predictions, target: Floats) -> str:
    """The frequency of the positive class, or of all, with its 90% interval."""
    low, high = ends(target, 0.9)
    chosen = [1] if predictions.n_classes == 2 else range(min(predictions.n_classes, 4))
    return listed(
        f"class {predictions.classes[k]} makes up {target[:, k].mean():.0%} "
        f"(90% interval {low[k]:.0%} to {high[k]:.0%})"
        for k in chosen
    )


def _worth(weights: ImportanceWeights, what: str) -> list[str]:
    """What the labeled items are worth with their weights."""
    notes = [
        f"corrected for shift: estimates are for the population of the unlabeled items, and "
        f"{weights.n_labeled:,} labeled items are weighted by their {what} "
        f"(worth {weights.effective:,.1f} of equal weights)"
    ]
    if weights.effective < FEWEST_LABELS:
        notes.append(
            f"few-labels: after the correction the labels are worth {weights.effective:.1f} items; "
            "unlabeled items are unlike nearly all labeled ones"
        )
    return notes
