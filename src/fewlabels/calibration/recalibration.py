"""Recalibrate classifiers by labels or annotators' counts: fit, check, apply, save, load."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from scipy.special import stdtrit

from fewlabels import __version__, calibration
from fewlabels.annotations import DISAGREEMENT, evaluate
from fewlabels.checks.arguments import side_json
from fewlabels.data.write import native_columns
from fewlabels.errors import InputError, Status, UsageError, listed, quoted, unknown
from fewlabels.kernels.arrays import Bools, Floats, Frozen, Ints
from fewlabels.kernels.dirichlet_multinomial import disagreement as expected_disagreement
from fewlabels.kernels.simplex import filled
from fewlabels.predictions import Predictions
from fewlabels.report.shown import Result, plain_values

MapName = Literal["temperature", "vector", "matrix", "alpha"]
Concentration = Literal["constant", "logits", "features", "classifiers"]

_FOLDS, _FEWER_FOLDS, _MANY = 5, 2, 20_000
"""Folds of the check; with so many items, fewer folds are enough."""

_FEW = 20
"""Fewer items are too few for any calibration."""

_LEVEL = 0.9977
"""Level of the one-sided t-test whether a loss rises beyond chance: 2.83 standard errors, as in
`evaluation.guard`. At .95 one of twenty neutral calibrations would be refused."""

_VISIBLE = 0.0005
"""A smaller rise is none in the three decimals that are shown: a calibrated classifier's."""

_FLOOR = 1e-6
"""Lower bound of probabilities whose logarithms are features."""

_SHOWN = ("accuracy", "L", "EL", "CL", "CE", "L_disagreement", "CE_disagreement")


@dataclass(frozen=True)
class Settings:
    """Which calibration is fitted, and with which inputs.

    `method` is "temperature", "vector" or "matrix" scaling, or "alpha": a concentration around
    unchanged probabilities. The concentration is "constant", or depends on "logits", "features"
    (columns of the file) or "classifiers" (log-probabilities of all classifiers); None: features if
    there are any, else constant. `features` are the groups that hold the features as numbers.
    `penalty` None is chosen on items held out. `seed` splits the items for that, and for the folds
    of the check.
    """

    method: str
    concentration: Concentration | None = None
    features: tuple[str, ...] = ()
    penalty: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.method not in get_args(MapName):
            raise UsageError(unknown("method", self.method, get_args(MapName)))
        if self.method != "alpha" and (self.concentration or self.features):
            raise UsageError(
                f"`concentration` and `features` are for method 'alpha'; {self.method} has none"
            )
        if self.concentration not in (None, *get_args(Concentration)):
            raise UsageError(unknown("concentration", self.concentration, get_args(Concentration)))
        if self.kind == "features" and not self.features:
            raise UsageError(
                "concentration 'features' needs the names of their columns (`features`, --features)"
            )
        if self.features and self.kind != "features":
            raise UsageError(
                f"`features` are given but the concentration is of {self.kind!r}; leave one out"
            )
        counts = [name for name in self.features if name.startswith("h__")]
        if counts:
            raise UsageError(
                f"features must be known of items without labels, and {counts[0]!r} is a count of "
                "labels; leave it out"
            )
        if self.method == "temperature" and self.penalty is not None:
            raise UsageError("temperature scaling has no penalty; leave it out")

    @property
    def kind(self) -> Concentration:
        """What the concentration depends on."""
        return self.concentration or ("features" if self.features else "constant")

    def estimator(self, n: int = 0) -> Any:
        """The estimator, not fitted; with many of the n items one split chooses the penalty."""
        chosen: dict[str, Any] = {} if self.penalty is None else {"penalty": self.penalty}
        if self.method == "alpha":
            chosen |= {"validation": "split"} if n > _MANY else {}
            kind = "features" if self.kind == "classifiers" else self.kind
            return calibration.AlphaCalibration(kind, random_state=self.seed, **chosen)
        if self.method == "temperature":
            return calibration.TemperatureScaling()
        affine = {
            "vector": calibration.VectorScaling,
            "matrix": calibration.MatrixScaling,
        }[self.method]
        return affine(random_state=self.seed, **chosen)


@dataclass(frozen=True, eq=False)
class Recalibrated(Frozen):
    """Calibrated items: shapes (n, M, K) and (n, M), NaN where nothing is known.

    `predictions` are as given except for the probabilities. Alpha-calibration adds `concentration`,
    `disagreement` (the probability that two labels of the item differ) and `posterior` (expected
    class probabilities given the item's labels); else these are None.
    """

    predictions: Predictions
    concentration: Floats | None = None
    disagreement: Floats | None = None
    posterior: Floats | None = None

    def columns(self) -> dict[str, Any]:
        """A table that reads as predictions again, a row per item in the order of the items.

        `p__<model>__<class>` are calibrated probabilities. Alpha-calibration adds `concentration
        <model>`, `disagreement <model>` and, where items have labels, `posterior <model> <class>`.
        Label, annotators' counts, domain, weight and groups are as given; repeated votes of an
        annotator on an item cannot be written, which is a `UsageError`.
        """
        out = native_columns(self.predictions)
        for j, model in enumerate(self.predictions.models):
            if self.concentration is not None and self.disagreement is not None:
                out[f"concentration {model}"] = self.concentration[:, j]
                out[f"disagreement {model}"] = self.disagreement[:, j]
            if self.posterior is not None:
                for k, name in enumerate(self.predictions.classes):
                    out[f"posterior {model} {name}"] = self.posterior[:, j, k]
        return out


class LossRow(NamedTuple):
    """A loss before and after a calibration; None where it is undefined."""

    model: str
    loss: str
    before: float | None
    after: float | None


@dataclass(frozen=True, eq=False, repr=False)
class Recalibration(Frozen, Result):
    """Fitted calibrations of classifiers by name, their inputs, and their losses.

    `facts` are the plain values of `to_dict`: losses before, and after on items that the
    calibration was not fitted to; the `change` of one of them, L or L_disagreement, with its
    standard error over the items; and the `status` of each classifier, "contradicted" where that
    loss rises beyond chance.
    """

    _page, _text, _row_fields = "calibration", "render_calibration", LossRow._fields
    _text_columns = ("model", "loss")
    _figure = "calibration"

    settings: Settings
    classes: tuple[Any, ...]
    classifiers: tuple[str, ...]
    estimators: Mapping[str, Any]
    facts: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The JSON of the command line as a dictionary."""
        out: dict[str, Any] = plain_values(self.facts)
        return out

    @property
    def rows(self) -> tuple[LossRow, ...]:
        """Each loss of each classifier."""
        return tuple(
            LossRow(entry["model"], loss, before, (entry["after"] or {}).get(loss))
            for entry in self.facts["calibrations"]
            for loss, before in entry["before"].items()
        )

    def apply(self, predictions: Predictions) -> Recalibrated:
        """Calibrate items of the same classifiers and classes, which need the same features."""
        self._check(predictions)
        assert predictions.probabilities is not None
        p, (n, m, _) = predictions.probabilities.copy(), predictions.probabilities.shape
        alpha = self.settings.method == "alpha"
        out = np.full((2, n, m), np.nan)
        counts = predictions.as_histograms().histogram
        assert counts is not None
        after = np.full(p.shape, np.nan) if alpha and counts.any() else None
        features = concentration_features(predictions, self.settings, self.classifiers)
        for name, estimator in self.estimators.items():
            j = predictions.models.index(name)
            rows = predictions.has_probabilities[:, j]
            probabilities = p[rows, j]
            if not alpha:
                p[rows, j] = estimator.predict_proba(probabilities) if rows.any() else probabilities
                continue
            h = None if features is None else features[rows]
            out[0, rows, j] = estimator.concentration(probabilities, h)
            out[1, rows, j] = estimator.predict_disagreement(probabilities, h)
            if after is not None:
                after[rows, j] = estimator.posterior(probabilities, counts[rows], h)
        changed = predictions.with_probabilities(p)
        if not alpha:
            return Recalibrated(changed)
        return Recalibrated(changed, out[0], out[1], after)

    def _check(self, predictions: Predictions) -> None:
        wanted = self.classifiers if self.settings.kind == "classifiers" else self.estimators
        absent = [name for name in wanted if name not in predictions.models]
        if absent:
            raise InputError(
                f"the calibration is of classifiers that these predictions lack: {listed(absent)}; "
                f"they have {listed(predictions.models)}"
            )
        if [str(c) for c in self.classes] != [str(c) for c in predictions.classes]:
            raise InputError(
                f"the calibration is of classes {listed(self.classes)}, these predictions of "
                f"{listed(predictions.classes)}; give the same ones in the same order (`classes`)"
            )
        for name in self.estimators:
            if not predictions.has_probabilities[:, predictions.models.index(name)].any():
                raise InputError(f"classifier {quoted(name)} gives no probabilities to calibrate")

    @property
    def worse(self) -> tuple[str, ...]:
        """Classifiers that are worse after the calibration, beyond chance."""
        entries = self.facts["calibrations"]
        return tuple(e["model"] for e in entries if e.get("status") == Status.CONTRADICTED)

    def refuse_worse(self) -> None:
        """Raise UsageError where a classifier is worse after the calibration, beyond chance."""
        if self.worse:
            raise UsageError(
                f"the calibration makes {listed(self.worse)} worse on items left out, and was not "
                "written; leave these classifiers out, or write it all the same "
                "(--even-if-worse, `even_if_worse=True`)"
            )

    def save(self, path: str | Path, *, even_if_worse: bool = False) -> None:
        """Write all of it as JSON, which `load` and `fewlabels.calibration.load` read.

        A calibration that makes a classifier worse (`worse`) is refused, a UsageError, unless asked
        for.
        """
        if not even_if_worse:
            self.refuse_worse()
        about = {
            "method": self.settings.method,
            "concentration": self.settings.kind if self.settings.method == "alpha" else None,
            "features": list(self.settings.features),
            "penalty": self.settings.penalty,
            "seed": self.settings.seed,
            "classifiers": list(self.classifiers),
            "facts": self.to_dict(),
        }
        names = [c if isinstance(c, (str, int)) else str(c) for c in self.classes]
        calibration.save(self.estimators, path, names, about=about)

    @staticmethod
    def load(path: str | Path) -> Recalibration:
        """Read what `save` wrote."""
        estimators = calibration.load(path)
        about = side_json(path).get("about")
        try:
            settings = Settings(
                about["method"],
                about["concentration"],
                tuple(about["features"]),
                about["penalty"],
                about["seed"],
            )
            classifiers, facts = tuple(about["classifiers"]), about["facts"]
            if [entry["model"] for entry in facts["calibrations"]] != list(estimators):
                raise TypeError("losses are of the classifiers")
            if not all(isinstance(name, str) for name in (*classifiers, *settings.features)):
                raise TypeError("names are text")
            if type(settings.seed) is not int or settings.seed < 0:
                raise TypeError("a seed is a whole number")
            if settings.penalty is not None and not 0 <= settings.penalty < np.inf:
                raise TypeError("a penalty is a number")
        except (TypeError, KeyError, UsageError):
            raise InputError(
                f"{path} does not say how its calibrations were made; save them with "
                "`fewlabels calibrate --save`"
            ) from None
        first = next(iter(estimators.values()))
        same = type(settings.estimator())
        for name, one in estimators.items():
            if type(one) is not same or one.classes_.tolist() != first.classes_.tolist():
                raise InputError(
                    f"{path}: the calibration of {quoted(name)} is of another kind, or of other "
                    "classes, than the file says; save it again"
                )
        classes = tuple(first.classes_.tolist())
        return Recalibration(settings, classes, classifiers, estimators, facts)


def concentration_features(
    predictions: Predictions, settings: Settings, classifiers: Sequence[str]
) -> Floats | None:
    """Features of the concentration, (n, d); None if it depends on the probabilities alone."""
    if settings.method != "alpha" or settings.kind not in ("features", "classifiers"):
        return None
    if settings.kind == "classifiers":
        p = predictions.select_models(classifiers).probabilities
        assert p is not None
        p = filled(p, np.full(p.shape[2], 1 / p.shape[2]))
        logs: Floats = np.log(np.maximum(p, _FLOOR)).reshape(len(p), -1)
        return logs
    absent = [name for name in settings.features if name not in predictions.groups]
    if absent:
        raise InputError(f"the features lack {listed(absent)}; provide these columns")
    columns = np.full((predictions.n_items, len(settings.features)), np.nan)
    for j, name in enumerate(settings.features):
        for i, value in enumerate(predictions.groups[name].tolist()):
            with contextlib.suppress(TypeError, ValueError):
                columns[i, j] = float(value)
            if not np.isfinite(columns[i, j]):
                raise InputError(
                    f"feature {quoted(name)} must be a number for every item; got "
                    f"{quoted(value)} for item {i + 1}: fill it in, or leave the item out"
                )
    return columns


def fit(
    predictions: Predictions,
    settings: Settings,
    progress: Callable[[int, int], None] | None = None,
) -> Recalibration:
    """Fit a calibration to every classifier with probabilities, and assess it.

    Labels are annotators' counts; without these, a known label counts as one.
    """
    gives = predictions.has_probabilities.any(axis=0)
    names = [predictions.models[j] for j in np.flatnonzero(gives)]
    if not names:
        raise InputError(
            "no classifier gives probabilities (columns p__<model>__<class>) to calibrate"
        )
    counts = predictions.as_histograms()
    if not counts.n_annotated:
        raise InputError(
            "no item has a label or counts of annotators (h__ columns), and a calibration is "
            "learned from them; `fewlabels estimate` needs none"
        )
    features = concentration_features(predictions, settings, names)
    estimators, entries, messages = {}, [], []
    for number, name in enumerate(names):
        one = _One.from_predictions(counts, name, settings, features)
        estimators[name] = one.fitted(one.informed)
        entry = _entry(name, estimators[name], one)
        entries.append(entry)
        messages += _few(name, one.counts, predictions.classes)
        messages += _no_gain(entry)
        if not estimators[name].converged_:
            messages.append(f"not-converged: the fit of {name} did not reach its optimum")
        if progress is not None:
            progress(number + 1, len(names))
    facts = plain_values(_facts(predictions, settings, entries, messages))
    return Recalibration(settings, predictions.classes, tuple(names), estimators, facts)


@dataclass(frozen=True, eq=False)
class _One:
    """One classifier's probabilities (n, K), counts (n, K), features (n, d) and weights (n,)."""

    settings: Settings
    p: Floats
    counts: Floats
    features: Floats | None
    weight: Floats
    fold: Ints

    @staticmethod
    def from_predictions(
        counts_: Predictions, name: str, settings: Settings, features: Floats | None
    ) -> _One:
        j = counts_.models.index(name)
        assert counts_.probabilities is not None
        assert counts_.histogram is not None
        rows = np.flatnonzero(counts_.has_probabilities[:, j] & counts_.histogram.any(axis=1))
        if not len(rows):
            raise InputError(f"no item with a label has probabilities of classifier {quoted(name)}")
        folds = _FOLDS if len(rows) <= _MANY else _FEWER_FOLDS
        # By the items' own keys: the order of the rows does not matter.
        order = np.argsort(counts_.keys[rows])
        fold = np.empty(len(rows), dtype=np.int64)
        fold[order] = np.random.default_rng(settings.seed).permutation(len(rows)) % folds
        return _One(
            settings,
            counts_.probabilities[rows, j],
            counts_.histogram[rows],
            None if features is None else features[rows],
            counts_.weight_of_labels[rows],
            fold,
        )

    @property
    def informed(self) -> Bools:
        """All of the items."""
        return np.ones(len(self.p), dtype=bool)

    def fitted(self, rows: Bools) -> Any:
        """The estimator, fitted to some of the items."""
        more = {} if self.features is None else {"features": self.features[rows]}
        return self.settings.estimator(len(self.p)).fit(
            self.p[rows], self.counts[rows], sample_weight=self.weight[rows], **more
        )

    def losses(self, p: Floats, disagreement: Floats | None = None) -> dict[str, Any]:
        """Losses of some probabilities of the items."""
        losses = evaluate(self.counts, p, disagreement=disagreement, weight=self.weight)
        return {name: losses[name] for name in _SHOWN}

    def left_out(self) -> tuple[Floats, Floats | None] | None:
        """Probabilities and disagreement of each fold after a fit to the others.

        The disagreement is that of alpha-calibration alone; None for both if a fit is impossible.
        """
        alpha = self.settings.method == "alpha"
        p, differ = self.p.copy(), np.full(len(self.p), np.nan)
        for fold in range(int(self.fold.max(initial=0)) + 1):
            inside = self.fold == fold
            if not inside.any():
                continue
            try:
                estimator = self.fitted(~inside)
            except InputError:
                return None
            if alpha:
                h = None if self.features is None else self.features[inside]
                differ[inside] = estimator.predict_disagreement(self.p[inside], h)
            else:
                p[inside] = estimator.predict_proba(self.p[inside])
        return p, differ if alpha else None

    def change(self, p: Floats, disagreement: Floats | None) -> dict[str, Any]:
        """Mean change of the loss that is judged, its standard error over the items, and a test.

        Of a squared error (q - y)^2, whose mean over an item's labels is observed, q' in the place
        of q changes (q' - q) (q' + q - 2 mean y).
        """
        if disagreement is None:
            before, after = self.p, p
            observed = self.counts / self.counts.sum(axis=1, keepdims=True)
        else:
            before, after = expected_disagreement(self.p)[:, None], disagreement[:, None]
            observed = DISAGREEMENT.observed(self.counts)[:, None]
        each = ((after - before) * (after + before - 2 * observed)).sum(axis=1)
        known = ~np.isnan(each)
        each, share = each[known], self.weight[known] / self.weight[known].sum()
        mean = float(share @ each)
        error = float(np.sqrt(share**2 @ (each - mean) ** 2))
        limit = float(stdtrit(len(each) - 1, _LEVEL)) * error if len(each) > 1 else np.inf
        loss = "L_disagreement" if self.settings.method == "alpha" else "L"
        return {
            "loss": loss, "difference": mean, "standard_error": error,
            "beyond_chance": abs(mean) > limit,
        }  # fmt: skip


def _entry(name: str, estimator: Any, one: _One) -> dict[str, Any]:
    """Report of one classifier: parameters, and losses before and after."""
    out: dict[str, Any] = {
        "model": name,
        "n_items": len(one.p),
        "n_labels": int(one.counts.sum()),
        "converged": bool(estimator.converged_),
    }
    for parameter in ("temperature_", "scale_", "weights_", "intercept_", "penalty_", "coef_"):
        if hasattr(estimator, parameter):
            value = getattr(estimator, parameter)
            out[parameter.rstrip("_")] = value.tolist() if isinstance(value, np.ndarray) else value
    if one.settings.method == "alpha":
        concentration = estimator.concentration(one.p, one.features)
        low, middle, high = np.quantile(concentration, [0.1, 0.5, 0.9])
        out["concentration"] = {"median": middle, "10%": low, "90%": high}
    after = one.left_out()
    change = None if after is None else one.change(*after)
    if len(one.p) < _FEW:  # too few to test by, too
        status = Status.FEW_LABELS
    elif change and change["difference"] > _VISIBLE and change["beyond_chance"]:
        status = Status.CONTRADICTED
    else:
        status = Status.OK if out["converged"] else Status.NOT_CONVERGED
    return out | {
        "status": status.value,
        "before": one.losses(one.p),
        "after": None if after is None else one.losses(*after),
        "change": change,
    }


def _no_gain(entry: Mapping[str, Any]) -> list[str]:
    """A warning where a loss is higher after the calibration."""
    change = entry["change"]
    if change is None or change["difference"] <= _VISIBLE:
        return []
    name, loss, error = entry["model"], change["loss"], change["standard_error"]
    before, after = entry["before"][loss], entry["after"][loss]
    numbers = f"{loss} {before:.4f} -> {after:.4f}, standard error {error:.4f}"
    if entry["status"] == Status.CONTRADICTED:
        advice = "leave its probabilities as they are, or give more labels"
        if loss == "L_disagreement":
            advice = "calibrate its probabilities first (temperature, say), which alpha leaves"
        return [
            f"contradicted: on items left out, {name} is worse after the calibration ({numbers}); "
            f"{advice}"
        ]
    return [
        f"on items left out, {name} is no better after the calibration ({numbers}); "
        "chance may give that difference"
    ]


def _few(name: str, counts: Floats, classes: Sequence[Any]) -> list[str]:
    """Warnings where one classifier's items have too few labels."""
    messages = []
    if len(counts) < _FEW:
        messages.append(
            f"few-labels: {name} is calibrated by {len(counts)} item{'s' * (len(counts) > 1)}, "
            "which may say anything"
        )
    absent = [c for c, size in zip(classes, counts.sum(axis=0), strict=True) if not size]
    if absent:
        messages.append(f"no item of {name} has a label of class {listed(absent)}")
    return messages


def _facts(
    predictions: Predictions,
    settings: Settings,
    entries: Sequence[Mapping[str, Any]],
    messages: Sequence[str],
) -> dict[str, Any]:
    warnings = [*predictions.notes, *messages]
    if any(entry["after"] is None for entry in entries):
        warnings.append("there are too few labels to check a calibration on items left out")
    return {
        "fewlabels": __version__,
        "method": settings.method,
        "concentration": settings.kind if settings.method == "alpha" else None,
        "seed": settings.seed,
        "n_items": predictions.n_items,
        "n_labeled": predictions.n_labeled,
        "n_annotated": predictions.n_annotated,
        "models": [entry["model"] for entry in entries],
        "classes": [c if isinstance(c, (str, int)) else str(c) for c in predictions.classes],
        "calibrations": list(entries),
        "warnings": warnings,
    }
