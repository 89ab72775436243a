"""fl.shift: whether and how labeled items differ from unlabeled ones; corrections in `estimate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from fewlabels import __version__
from fewlabels.checks.arguments import RandomState, seed_of, some_level
from fewlabels.data.inputs import predictions_of
from fewlabels.errors import InputError, UsageError, listed, plain_name
from fewlabels.kernels.arrays import Bools, Floats, Frozen
from fewlabels.kernels.importance import effective_size
from fewlabels.kernels.interval_draws import ends
from fewlabels.kernels.multinomial import fit_map
from fewlabels.kernels.simplex import centred_log, clip, linear_pool, mean_probability, softmax
from fewlabels.methods.base import LabelModel, refuse_multiplicity, refuse_strata
from fewlabels.methods.registry import CHOOSING
from fewlabels.methods.registry import resolve as resolve_method
from fewlabels.methods.settings import changed_settings
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions
from fewlabels.report.shown import Result
from fewlabels.report.shown import plain_values as plain
from fewlabels.shifts.label_shift import (
    LEARN_FREQUENCIES,
    UNLEARNED,
    ClassShift,
    LabelShiftFit,
    label_shift_fit,
)
from fewlabels.shifts.sampling_test import (
    FEWEST_LABELS,
    LEVEL,
    QUICK,
    THOROUGH,
    SamplingTest,
    Sizes,
    Split,
    beliefs,
    disagreement,
    sampling_test,
)

Kind = Literal["none", "label", "covariate"]
Verdict = Literal["none", "not-decidable", "not-label-alone"]


@dataclass(frozen=True, eq=False, repr=False)
class Shift(Frozen, Result):
    """What `fewlabels.shift` found.

    `verdict`: "none" if the labeled items look like a random sample; "not-label-alone" if label
    shift cannot be all there is; "not-decidable" if both label and covariate shift explain the
    scores. Labels cannot refute covariate shift, which allows any distribution of them. `suggested`
    is the correction of `estimate(shift="auto")`. `effective` maps each correction to the effective
    number of labels after it, `settings` those of the method that differ from its own.
    """

    _page = "shift"

    sampling: SamplingTest
    label: LabelShiftFit
    verdict: Verdict
    suggested: Literal["covariate", "label"] | None
    effective: Mapping[str, float]
    statement: str
    method: str
    seed: int
    confidence_level: float
    n_items: int
    n_labeled: int
    classes: tuple[Any, ...]
    warnings: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def p_value(self) -> float:
        """Of the test that the labeled items are a random sample of all."""
        return self.sampling.p_value

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values; NaN and infinities are None."""
        test, fit = self.sampling, self.label
        classes = [
            {
                "class": plain_name(name),
                **{key: float(getattr(fit, field)[k]) for key, field in _BY_CLASS.items()},
            }
            for k, name in enumerate(self.classes)
        ]
        out: dict[str, Any] = plain(
            {
                "fewlabels": __version__,
                "what": "shift",
                "method": self.method,
                "seed": self.seed,
                "n_items": self.n_items,
                "n_labeled": self.n_labeled,
                "classes": [plain_name(c) for c in self.classes],
                "positive": str(self.classes[1]) if len(self.classes) == 2 else None,
                "compared": {"labeled": test.n_labeled, "unlabeled": test.n_unlabeled},
                "confidence_level": self.confidence_level,
                "statement": self.statement,
                "verdict": self.verdict,
                "suggested": self.suggested,
                "p_value": test.p_value,
                "energy_distance": test.energy,
                "energy_p_value": test.energy_p_value,
                "differences": [
                    {"trait": one.trait.kind, "about": one.trait.about, "words": one.words}
                    | {name: value for name, value in one._asdict().items() if name != "trait"}
                    for one in test.differences
                ],
                "label_shift": {
                    "p_value": fit.p_value,
                    "fit_p_value": fit.fit_p_value,
                    "classes": classes,
                },
                "effective_labels": self.effective,
                "warnings": list(self.warnings),
                **({"diagnostics": {"settings": self.settings}} if self.settings else {}),
            }
        )
        return out

    def _columns(self) -> dict[str, Any]:
        """A row per class: its frequencies, and the weight of its labels."""
        rows = self.to_dict()["label_shift"]["classes"]
        return {name: [row[name] for row in rows] for name in ("class", *_BY_CLASS)}


_BY_CLASS = {
    **{name: name for name in ("labeled", "unlabeled", "low", "high")},
    "weight": "weights",
    "weight_low": "weights_low",
    "weight_high": "weights_high",
    "bbse": "black_box",
    "rlls": "regularised",
    "detectable": "detectable",
}
"""Names of a class's numbers in the report, and of the arrays (K,) of `LabelShiftFit`."""


def shift(
    predictions: Any,
    *,
    method: str | LabelModel = "auto",
    confidence_level: float = 0.95,
    random_state: RandomState = 0,
    columns: Any = None,
    positive: Any = None,
    y_true: Any = None,
) -> Shift:
    """Test whether labeled items differ from unlabeled ones, and estimate by how much.

    Parameters
    ----------
    predictions
        What the classifiers said, and the labels there are: `Predictions`, or the path or frame
        that `read_predictions` would read.
    method
        The label model that learns P(class | scores) for the class frequencies of the unlabeled
        items. Where it learns none from labels (mixtures, `labeled`), or there are votes or scores
        alone, it is the tempered ensemble of whatever the classifiers give.
    confidence_level
        Probability that the intervals of frequencies and weights are meant to hold.
    random_state
        Seed; the same seed gives the same bits. None means 0.
    columns, positive, y_true
        As for `fewlabels.estimate`.

    Raises
    ------
    UsageError, InputError
        If an argument is not one, fewer than 5 items have a label, or none lacks one; items of
        sampling weight 0 do not count.

    Examples
    --------
    >>> import numpy as np
    >>> import fewlabels as fl
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(500) < np.where(np.arange(500) < 50, 0.5, 0.1)
    >>> score = 1 / (1 + np.exp(-rng.normal(4 * truth - 2, 1)))
    >>> labels = np.where(np.arange(500) < 50, truth, -1)
    >>> found = fl.shift(fl.Predictions(score[:, None], labels))
    >>> found.p_value < 0.01, bool(found.label.unlabeled[1] < 0.2)
    (True, True)
    """
    some_level(confidence_level)
    predictions = predictions_of(predictions, columns, positive, y_true=y_true)
    refuse_multiplicity(predictions, "the test for a shift")
    refuse_strata(predictions, "the test for a shift")
    name, model = resolve_method(method, predictions)
    if (few := too_few(predictions)) is not None:
        raise InputError(
            f"shift is between labeled and unlabeled items, at least {FEWEST_LABELS} of the first "
            f"and one of the others, and {few}; give both"
        )
    return analyse(predictions, name, model, seed_of(random_state), confidence_level, THOROUGH)


def analyse(
    predictions: Predictions,
    name: str,
    model: LabelModel,
    seed: int,
    level: float,
    sizes: Sizes = QUICK,
) -> Shift:
    """`shift` of checked arguments."""
    rng = np.random.default_rng(seed)
    test = sampling_test(predictions, rng, sizes)
    classes = ClassShift.from_method(predictions, name, model, rng)
    fit = label_shift_fit(classes, rng, sizes, level)
    verdict, suggested = _verdict(test, fit)
    return Shift(
        sampling=test,
        label=fit,
        verdict=verdict,
        suggested=suggested,
        effective={
            "covariate": covariate_weights(predictions).effective,
            "label": class_importance(
                predictions, classes.fitted.frequencies.target.mean(axis=0)
            ).effective,
        },
        statement=_statement(test, fit, verdict, suggested, predictions.classes),
        method=name if classes.own else "tempered-ensemble",
        seed=seed,
        confidence_level=level,
        n_items=predictions.n_items,
        n_labeled=int(Split.from_predictions(predictions).labeled.sum()),
        classes=predictions.classes,
        warnings=(*predictions.notes, *_warnings(predictions)),
        settings=changed_settings(name, model) if classes.own else {},
    )


def too_few(predictions: Predictions) -> str | None:
    """How many items are labeled, in words, if too few or all are to test a shift; else None."""
    split = Split.from_predictions(predictions)
    if not split.unlabeled.any():
        return split.counting("every item has a label")
    n = int(split.labeled.sum())
    return split.counting(f"{n:,} items have a label") if n < FEWEST_LABELS else None


def _verdict(
    test: SamplingTest, fit: LabelShiftFit
) -> tuple[Verdict, Literal["covariate", "label"] | None]:
    """The verdict of the tests, and the correction that follows.

    Label shift is the simpler explanation (K - 1 numbers): it is suggested if the frequencies
    differ and it fits; covariate shift if it does not fit, or if the frequencies are the same.
    """
    if min(test.p_value, fit.p_value) >= LEVEL / 2:  # two tests share the level
        return "none", None
    if fit.fit_p_value < LEVEL:
        return "not-label-alone", "covariate"
    return "not-decidable", "label" if fit.p_value < LEVEL else "covariate"


def _statement(
    test: SamplingTest,
    fit: LabelShiftFit,
    verdict: Verdict,
    suggested: str | None,
    classes: tuple[Any, ...],
) -> str:
    k = 1 if len(classes) == 2 else int(np.argmax(fit.labeled))
    power = (
        f"With {test.n_labeled} labels, a change of less than {fit.detectable[k]:.2f} in the "
        f"frequency of class {plain_name(classes[k])} would be missed at least one time in five."
    )
    if verdict == "none":
        return f"The labeled items look like a random sample of all items. {power}"
    opening = f"The labeled items do not look like a random sample of all items: {test.worst}."
    if verdict == "not-label-alone":
        return (
            f"{opening} Other class frequencies alone do not explain it: scores differ within the "
            "classes too. Weights by the scores (covariate) are the correction, if "
            "P(class | scores) is the same for both."
        )
    return (
        f"{opening} Either the class frequencies differ (label shift), or items were picked by "
        "their scores (covariate shift): these data cannot tell which, as both explain them. "
        f"{power} If you do not know how the labeled items were chosen, 'auto' corrects for "
        f"{suggested} shift."
    )


def _warnings(predictions: Predictions) -> tuple[str, ...]:
    notes = []
    weight = predictions.weight[predictions.weight > 0]
    if (weight != weight[:1]).any():
        notes.append(
            "sampling weights are not looked at by these tests: they ask whether items were "
            "labeled at random, each with the same probability"
        )
    labels = predictions.labels[Split.from_predictions(predictions).labeled]
    absent = [c for k, c in enumerate(predictions.classes) if not (labels == k).any()]
    if absent:
        notes.append(
            f"no labeled item of class {listed(absent)}: its scores are unknown, and its frequency "
            "is what the classifiers' own probabilities imply"
        )
    return tuple(notes)


Correction = Literal["auto", "covariate", "label"]


class Corrected(NamedTuple):
    """Predictions with weights, the posterior of their labels, and warnings."""

    predictions: Predictions
    posterior: LabelPosterior
    warnings: tuple[str, ...]


def check_correction(shift: Any, estimand: str, method: str, *, distribution: bool) -> None:
    """Refuse a correction that is unknown, or impossible for this method."""
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
    if method in CHOOSING:
        raise UsageError(
            f"method {method!r} chooses its labels itself; use another method, or no `shift`"
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
    by: Sequence[str] = (),
) -> Corrected:
    """The posterior under a correction; labeled items carry importance weights.

    "covariate": P(class | scores) is the same, so a model of it is right, and the labeled items are
    weighted to look like the unlabeled ones. "label": P(scores | class) is the same, so models of
    P(class | scores) are adjusted on the unlabeled items (`LabelShift`), and a labeled item has the
    weight of its class. "auto": what `fewlabels.shift` suggests, possibly nothing. Groups of the
    columns `by` have curves of their own.
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
    missing = Split.from_predictions(predictions).missing
    if kind is not None and missing is not None:
        kind = None
        notes.append(f"no correction for shift: {missing}")
    if kind is None:
        return Corrected(predictions, model.infer(predictions, rng, by), tuple(notes))
    if kind == "label":
        return _for_classes(predictions, model, method, rng, notes, by)
    weights = covariate_weights(predictions)
    weighted = predictions.with_weight(predictions.weight * weights.weights)
    posterior = model.infer(weighted, rng, by)
    notes.append(_rests_on("scores"))
    return Corrected(weighted, posterior, (*notes, *_worth(weights, "scores")))


def _rests_on(what: str) -> str:
    return (
        f"assumption: the correction is right only if the {what} alone decided which items have a "
        "label; these labels cannot test it"
    )


def _for_classes(
    predictions: Predictions,
    model: LabelModel,
    method: str,
    rng: np.random.Generator,
    notes: list[str],
    by: Sequence[str],
) -> Corrected:
    classes = ClassShift.from_method(predictions, method, model, rng, by)
    if classes.own:
        posterior = classes.fitted.posterior(predictions)
    else:
        posterior = model.infer(predictions, rng, by)
    weights = class_importance(predictions, classes.fitted.frequencies.target.mean(axis=0))
    target = classes.fitted.interval_frequencies.target
    low, high = ends(target, 0.9)
    chosen = [1] if predictions.n_classes == 2 else range(min(predictions.n_classes, 4))
    frequencies = listed(
        f"class {predictions.classes[k]} makes up {target[:, k].mean():.0%} "
        f"(90% interval {low[k]:.0%} to {high[k]:.0%})"
        for k in chosen
    )
    notes.append(f"label shift: among unlabeled items {frequencies}")
    notes += [_rests_on("classes"), *_worth(weights, "classes")]
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


def _worth(weights: ImportanceWeights, what: str) -> list[str]:
    """Effective number of labeled items with their weights."""
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


# Importance weights of labeled items: by scores (covariate shift), by class (label shift).

_PRIOR_SDS = (0.03, 0.1, 0.3, 1.0, 3.0)
_FOLDS = 5
_MOST = 5000
"""Unlabeled items from which the ratio is learned; the fewer labeled items limit its precision."""


@dataclass(frozen=True, eq=False)
class ImportanceWeights:
    """Weights of the labeled items, mean 1, in the order of the items; 1 for all others, (n,).

    `effective` is how many of them equal weights would be worth, (sum w)^2 / sum w^2, and `capped`
    how many reached the largest weight that is allowed.
    """

    weights: Floats
    n_labeled: int
    effective: float
    capped: int


def importance(raw: Floats, labeled: Bools) -> ImportanceWeights:
    """Weights (n,) of which those of the labeled items are capped and brought to mean 1.

    The cap is sqrt(n_l) times the mean, which lets the bias of capping vanish as labels grow.
    Source: Ionides (2008), truncated importance sampling; Kish (1965), effective sample size.
    """
    out = np.ones(len(labeled))
    w = raw[labeled]
    if not len(w):
        return ImportanceWeights(out, 0, 0.0, 0)
    if w.sum() <= 0:  # of no use at all: every labeled item is of a class that is not there
        w = np.ones(len(w))
    cap = np.sqrt(len(w)) * w.mean()
    capped = int((w > cap).sum())
    w = np.minimum(w, cap)
    w = w / w.mean()
    out[labeled] = w
    return ImportanceWeights(out, len(w), effective_size(w), capped)


def covariate_weights(predictions: Predictions) -> ImportanceWeights:
    """Density ratio p(scores | unlabeled) / p(scores | labeled) at the labeled items.

    From a logistic regression of unlabeled against labeled items on the pooled scores, their
    confidence and the classifiers' disagreement (Shimodaira 2000 for the weights; Bickel et al.
    2007 for the classifier). The evidence sets the penalty of its slopes, so that without a shift
    all weights are near 1. An item's weight comes from fits without it, for which two unlabeled
    items are needed; with fewer, all weights are 1.
    """
    labeled, unlabeled = Split.from_predictions(predictions)
    order = np.argsort(predictions.keys)
    unlabeled_rows = order[unlabeled[order]][:_MOST]
    labeled_rows = order[labeled[order]]
    raw = np.ones(predictions.n_items)
    if len(unlabeled_rows) < 2:
        return importance(raw, labeled)
    features = _features(beliefs(predictions))
    fold = np.full(predictions.n_items, -1)
    fold[labeled_rows] = np.arange(len(labeled_rows)) % _FOLDS
    fold[unlabeled_rows] = np.arange(len(unlabeled_rows)) % _FOLDS
    for number in range(min(_FOLDS, len(labeled_rows))):
        in_fold = labeled_rows[fold[labeled_rows] == number]
        rest = labeled_rows[fold[labeled_rows] != number]
        background = unlabeled_rows[fold[unlabeled_rows] != number]
        raw[in_fold] = _ratio(features[rest], features[background], features[in_fold])
    return importance(raw, labeled)


def _features(p: Floats) -> Floats:
    """Pooled log ratios, confidence of the pool, disagreement; standardised, (n, d)."""
    pool = linear_pool(p, mean_probability(p))
    centred = centred_log(clip(pool))
    logs = centred[:, 1:] if centred.shape[1] == 2 else centred  # of two the one says it all
    apart = disagreement(centred_log(clip(p)))
    out = np.column_stack([logs, pool.max(axis=1), apart])
    spread = out.std(axis=0)
    out = (out - out.mean(axis=0))[:, spread > 1e-12] / spread[spread > 1e-12]
    return out


def _ratio(labeled: Floats, unlabeled: Floats, at: Floats) -> Floats:
    """p(x | unlabeled) / p(x | labeled) at some places, averaged over the priors by evidence."""
    x = np.concatenate([labeled, unlabeled])
    one = np.column_stack([np.ones(len(x)), x])
    design = np.stack([np.zeros_like(one), one], axis=1)
    evidence = np.full((len(x), 2), -np.inf)
    evidence[: len(labeled), 1] = 0.0
    evidence[len(labeled) :, 0] = 0.0
    base = np.log(max(len(labeled), 1) / len(unlabeled))
    log_ratios, evidences = [], []
    for sd in _PRIOR_SDS:
        sds = np.array([1.0, *np.full(x.shape[1], sd)])
        mode = fit_map(design, evidence, np.array([base, *np.zeros(x.shape[1])]), sds**-2.0)
        log_ratios.append(base - mode.coefficients[0] - at @ mode.coefficients[1:])
        evidences.append(mode.log_evidence)
    share = softmax(np.array(evidences), axis=0)
    out: Floats = np.exp(share @ np.array(log_ratios))
    return out


def class_importance(predictions: Predictions, frequency: Floats) -> ImportanceWeights:
    """Weights of the labeled items by class: its frequency (K,) over that among the labels."""
    labeled, labels = Split.from_predictions(predictions).labeled, predictions.labels
    with_class = labeled & (labels >= 0)
    counts = np.bincount(labels[with_class], minlength=predictions.n_classes)
    share = np.maximum(counts, 1) / max(counts.sum(), 1)
    by_class: Floats = frequency / share
    raw = np.ones(predictions.n_items)
    raw[with_class] = by_class[labels[with_class]]
    return importance(raw, labeled)
