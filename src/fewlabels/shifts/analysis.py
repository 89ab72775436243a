"""fl.shift: whether labeled items differ from unlabeled ones, how, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fewlabels import __version__
from fewlabels.errors import InputError, UsageError
from fewlabels.estimates import plain_values as plain
from fewlabels.models.base import LabelModel, refuse_multiplicity
from fewlabels.models.ensembles import TemperedEnsemble
from fewlabels.models.label_shift import LabelShift, sides, weightless
from fewlabels.models.registry import resolve as resolve_method
from fewlabels.predictions import Predictions
from fewlabels.shifts.correction import (
    LEARN_FREQUENCIES,
    UNLEARNED,
    Corrected,
    Correction,
    apply_correction,
    believing,
    class_importance,
)
from fewlabels.shifts.covariate import covariate_weights
from fewlabels.shifts.label import LabelShiftFit, label_shift_fit
from fewlabels.shifts.sampling_test import (
    FEWEST_LABELS,
    QUICK,
    THOROUGH,
    Difference,
    SamplingTest,
    Sizes,
    sampling_test,
)
from fewlabels.shown import Shown
from fewlabels.sources import predictions_of
from fewlabels.wording import listed, no_level

ALPHA = 0.05
"""Level at which `shift` speaks of a shift; `estimate` warns at .01, as it tests unasked."""

Kind = Literal["none", "label", "covariate"]
Verdict = Literal["none", "not-decidable", "not-label-alone"]


@dataclass(frozen=True, eq=False, repr=False)
class Shift(Shown):
    """What `fewlabels.shift` found.

    `verdict`: "none" where the labeled items look like a random sample; "not-label-alone" where
    label shift cannot be all there is; "not-decidable" where both label and covariate shift
    explain the scores. No labels can refute covariate shift: it allows any distribution of them.
    `suggested` is the correction that `estimate(shift="auto")` makes. `effective` maps each
    correction to what the labels are worth after it, in items of equal weight.
    """

    sampling: SamplingTest
    label: LabelShiftFit
    verdict: Verdict
    suggested: Literal["covariate", "label"] | None
    effective: dict[str, float]
    statement: str
    method: str
    seed: int
    confidence_level: float
    n_items: int
    n_labeled: int
    classes: tuple[Any, ...]
    warnings: tuple[str, ...]

    @property
    def p_value(self) -> float:
        """Of the test that the labeled items are a random sample of all."""
        return self.sampling.p_value

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values; NaN and infinities are None."""
        test, fit = self.sampling, self.label
        shape = fit.labeled.tolist(), fit.unlabeled.tolist()
        classes = [
            {
                "class": _name(name),
                "labeled": shape[0][k],
                "unlabeled": shape[1][k],
                "low": float(fit.low[k]),
                "high": float(fit.high[k]),
                "weight": float(fit.weights[k]),
                "weight_low": float(fit.weights_low[k]),
                "weight_high": float(fit.weights_high[k]),
                "bbse": float(fit.black_box[k]),
                "rlls": float(fit.regularised[k]),
                "detectable": float(fit.detectable[k]),
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
                "classes": [_name(c) for c in self.classes],
                "positive": str(self.classes[1]) if len(self.classes) == 2 else None,
                "compared": {"labeled": test.n_labeled, "unlabeled": test.n_unlabeled},
                "confidence_level": self.confidence_level,
                "statement": self.statement,
                "verdict": self.verdict,
                "suggested": self.suggested,
                "p_value": test.p_value,
                "energy_distance": test.energy,
                "energy_p_value": test.energy_p_value,
                "differences": [_difference(found) for found in test.differences],
                "label_shift": {
                    "p_value": fit.p_value,
                    "fit_p_value": fit.fit_p_value,
                    "classes": classes,
                },
                "effective_labels": self.effective,
                "warnings": list(self.warnings),
            }
        )
        return out

    def summary(self, width: int = 80) -> str:
        """The answer as text of at most `width` columns."""
        from fewlabels.report.shift_text import render_shift

        return render_shift(self.to_dict(), width)


def _difference(found: Difference) -> dict[str, Any]:
    rest = found._asdict()
    trait = rest.pop("trait")
    return {"trait": trait.kind, "about": trait.about, "words": words(found), **rest}


def _name(value: Any) -> Any:
    return value if isinstance(value, (int, float)) else str(value)


def shift(
    predictions: Any,
    *,
    method: str | LabelModel = "auto",
    confidence_level: float = 0.95,
    random_state: int | None = 0,
    columns: Any = None,
    positive: Any = None,
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
    columns, positive
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
    if not 0 < confidence_level < 1:
        raise UsageError(no_level(confidence_level))
    predictions = predictions_of(predictions, columns, positive)
    refuse_multiplicity(predictions, "the test for a shift")
    name, model = resolve_method(method, predictions)
    if not _comparable(predictions):
        what = _how_many(predictions)
        raise InputError(
            f"shift is between labeled and unlabeled items, at least {FEWEST_LABELS} of the first "
            f"and one of the others, and {what}; give both"
        )
    seed = 0 if random_state is None else int(random_state)
    return analyse(predictions, name, model, seed, confidence_level, THOROUGH)


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
    own = name not in LEARN_FREQUENCIES | UNLEARNED | {"labeled", "autoeval", "active-testing"}
    source = predictions if own else believing(predictions)
    fitted = LabelShift(model if own else TemperedEnsemble()).fit(source, rng)
    fit = label_shift_fit(source, fitted, rng, sizes, level)
    verdict, suggested = _verdict(test, fit)
    weights = {
        "covariate": covariate_weights(predictions).effective,
        "label": class_importance(predictions, fitted).effective,
    }
    return Shift(
        sampling=test,
        label=fit,
        verdict=verdict,
        suggested=suggested,
        effective=weights,
        statement=_statement(test, fit, verdict, suggested, predictions.classes),
        method=name if own else "tempered-ensemble",
        seed=seed,
        confidence_level=level,
        n_items=predictions.n_items,
        n_labeled=int(sides(predictions)[0].sum()),
        classes=predictions.classes,
        warnings=(*predictions.notes, *_warnings(predictions)),
    )


def corrected(
    predictions: Predictions,
    model: LabelModel,
    method: str,
    correction: Correction,
    rng: np.random.Generator,
    seed: int,
) -> Corrected:
    """Predictions and posterior under a correction; "auto" is what `shift` suggests."""
    if correction != "auto":
        return apply_correction(predictions, model, method, correction, rng)
    kind: Literal["covariate", "label"] | None = None
    if not _comparable(predictions):
        why = f"no correction for shift: {_how_many(predictions)}"
    else:
        found = analyse(predictions, method, model, seed, 0.95)
        kind = found.suggested
        if kind == "label" and method == "autoeval":  # its proxies cannot be adjusted
            kind = "covariate"
        why = f"shift: {found.statement[0].lower()}{found.statement[1:]}".rstrip(".")
    done = apply_correction(predictions, model, method, kind, rng)
    return done._replace(warnings=(why, *done.warnings))


def _comparable(predictions: Predictions) -> bool:
    """Whether there are enough labeled items, and any unlabeled one, to test for a shift."""
    known, others = sides(predictions)
    return bool(known.sum() >= FEWEST_LABELS and others.any())


def _how_many(predictions: Predictions) -> str:
    """How many of the items have a label, in words."""
    known, others = sides(predictions)
    number = f"{int(known.sum()):,} items have a label"
    return (number if others.any() else "every item has a label") + weightless(predictions)


def _verdict(
    test: SamplingTest, fit: LabelShiftFit
) -> tuple[Verdict, Literal["covariate", "label"] | None]:
    """What the tests say, and which correction follows.

    Label shift is the simpler explanation, K - 1 numbers: it is suggested where the frequencies
    differ and it fits; covariate shift where it does not fit, or is not what differs.
    """
    if min(test.p_value, fit.p_value) >= ALPHA / 2:  # two tests share the level
        return "none", None
    if fit.fit_p_value < ALPHA:
        return "not-label-alone", "covariate"
    return "not-decidable", "label" if fit.p_value < ALPHA else "covariate"


def _statement(
    test: SamplingTest,
    fit: LabelShiftFit,
    verdict: Verdict,
    suggested: str | None,
    classes: tuple[Any, ...],
) -> str:
    k = 1 if len(classes) == 2 else int(np.argmax(fit.labeled))
    power = (
        f"With {test.n_labeled} labels a change of the frequency of class {_name(classes[k])} by "
        f"less than {fit.detectable[k]:.2f} would go unnoticed in one case of five or more."
    )
    if verdict == "none":
        return f"The labeled items look like a random sample of all items. {power}"
    opening = f"The labeled items do not look like a random sample of all items: {worst(test)}."
    if verdict == "not-label-alone":
        return (
            f"{opening} Other class frequencies alone do not explain it: scores differ within the "
            "classes too. Weights by the scores (covariate) are the correction, if "
            "P(class | scores) is the same for both."
        )
    return (
        f"{opening} Whether the classes are differently frequent (label shift) or items were "
        "picked by their scores (covariate shift) is not decidable by these data: both explain "
        f"them. {power} If you do not know how the labeled items were chosen, 'auto' corrects for "
        f"{suggested} shift."
    )


def worst(test: SamplingTest) -> str:
    """The difference that random sampling explains least, in words."""
    shown = [found for found in test.differences[:1] if found.p_value < ALPHA]
    if shown:
        return words(shown[0])
    return "the joint distribution of their scores differs, though no one trait does"


def words(found: Difference) -> str:
    """A difference in words and numbers."""
    kind, about = found.trait
    mine, others = _percent(found.labeled), _percent(found.unlabeled)
    if kind == "confidence":
        who = "the classifiers are" if about is None else f"{about} is"
        more = "more" if found.labeled > found.unlabeled else "less"
        return (
            f"{who} {more} confident on labeled items: "
            f"{found.labeled:.2f} on average, against {found.unlabeled:.2f}"
        )
    if kind == "agreement":
        return f"classifiers agree on {mine} of labeled and {others} of unlabeled items"
    if kind == "predicted":
        return f"class {about} is predicted for {mine} of labeled and {others} of unlabeled items"
    if kind == "missing" and about is None:
        return (
            f"classifiers lack {mine} of their predictions on labeled and {others} on unlabeled "
            "items"
        )
    if kind == "missing":
        return f"{about} has no prediction for {mine} of labeled and {others} of unlabeled items"
    return (
        f"{about} scores labeled items {found.labeled:.3g} on average, "
        f"and unlabeled ones {found.unlabeled:.3g}"
    )


def _percent(share: float) -> str:
    return "-" if np.isnan(share) else f"{share:.0%}"


def _warnings(predictions: Predictions) -> tuple[str, ...]:
    said = []
    weight = predictions.weight[predictions.weight > 0]
    if (weight != weight[:1]).any():
        said.append(
            "sampling weights are not looked at by these tests: they ask whether items were "
            "labeled at random, each with the same probability"
        )
    labels = predictions.labels[sides(predictions)[0]]
    absent = [c for k, c in enumerate(predictions.classes) if not (labels == k).any()]
    if absent:
        said.append(
            f"no labeled item of class {listed(absent)}: its scores are unknown, and its frequency "
            "rests on what the classifiers say of themselves"
        )
    return tuple(said)
