"""fl.shift: whether labeled items differ from unlabeled ones, how, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fewlabels import __version__, report
from fewlabels.checks.arguments import level_of, seed_of
from fewlabels.data.inputs import predictions_of
from fewlabels.errors import InputError, UsageError, listed, no_level, plain_name
from fewlabels.methods.base import LabelModel, refuse_multiplicity
from fewlabels.methods.registry import resolve as resolve_method
from fewlabels.predictions import Predictions
from fewlabels.shifts.covariate import covariate_weights
from fewlabels.shifts.label_shift import (
    ClassShift,
    LabelShiftFit,
    class_importance,
    label_shift_fit,
)
from fewlabels.shifts.sampling_test import (
    FEWEST_LABELS,
    LEVEL,
    QUICK,
    THOROUGH,
    Difference,
    SamplingTest,
    Sizes,
    sampling_test,
)
from fewlabels.shifts.traits import Split
from fewlabels.shown import Shown
from fewlabels.shown import plain_values as plain

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
                "differences": [_difference(one) for one in test.differences],
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
        return report.render_shift(self.to_dict(), width)


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


def _difference(one: Difference) -> dict[str, Any]:
    rest = one._asdict()
    trait = rest.pop("trait")
    return {"trait": trait.kind, "about": trait.about, "words": one.words, **rest}


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
    if level_of(confidence_level) is None:
        raise UsageError(no_level(None))
    predictions = predictions_of(predictions, columns, positive)
    refuse_multiplicity(predictions, "the test for a shift")
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
    classes = ClassShift.of(predictions, name, model, rng)
    fit = label_shift_fit(classes, rng, sizes, level)
    verdict, suggested = _verdict(test, fit)
    return Shift(
        sampling=test,
        label=fit,
        verdict=verdict,
        suggested=suggested,
        effective={
            "covariate": covariate_weights(predictions).effective,
            "label": class_importance(predictions, classes.fitted).effective,
        },
        statement=_statement(test, fit, verdict, suggested, predictions.classes),
        method=name if classes.own else "tempered-ensemble",
        seed=seed,
        confidence_level=level,
        n_items=predictions.n_items,
        n_labeled=int(Split.of(predictions).labeled.sum()),
        classes=predictions.classes,
        warnings=(*predictions.notes, *_warnings(predictions)),
    )


def too_few(predictions: Predictions) -> str | None:
    """How many items have a label, in words, where a shift cannot be tested; else None."""
    split = Split.of(predictions)
    if not split.unlabeled.any():
        return split.counting("every item has a label")
    n = int(split.labeled.sum())
    return split.counting(f"{n:,} items have a label") if n < FEWEST_LABELS else None


def _verdict(
    test: SamplingTest, fit: LabelShiftFit
) -> tuple[Verdict, Literal["covariate", "label"] | None]:
    """What the tests say, and which correction follows.

    Label shift is the simpler explanation, K - 1 numbers: it is suggested where the frequencies
    differ and it fits; covariate shift where it does not fit, or is not what differs.
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
        f"With {test.n_labeled} labels a change of the frequency of class {plain_name(classes[k])} "
        f"by less than {fit.detectable[k]:.2f} would go unnoticed in one case of five or more."
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
        f"{opening} Whether the classes are differently frequent (label shift) or items were "
        "picked by their scores (covariate shift) is not decidable by these data: both explain "
        f"them. {power} If you do not know how the labeled items were chosen, 'auto' corrects for "
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
    labels = predictions.labels[Split.of(predictions).labeled]
    absent = [c for k, c in enumerate(predictions.classes) if not (labels == k).any()]
    if absent:
        notes.append(
            f"no labeled item of class {listed(absent)}: its scores are unknown, and its frequency "
            "rests on what the classifiers say of themselves"
        )
    return tuple(notes)
