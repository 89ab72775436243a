"""One question: how well one classifier separates one class from the rest, by which posterior.

`curve`, `threshold` and `label_next` take the same arguments; `OneClassifier.from_arguments` checks
them and fits the method, and gives the fields and warnings that all answers share. Before it are
other shared parts: values with intervals, and conversion to dictionaries.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from fewlabels import __version__
from fewlabels.checks.arguments import seed_of, some_level
from fewlabels.checks.arrays import class_index
from fewlabels.data.inputs import predictions_of
from fewlabels.data.reading_lines import left_out
from fewlabels.errors import (
    InputError,
    Status,
    UsageError,
    gravest_first,
    listed,
    plain_name,
    quoted,
    unknown,
)
from fewlabels.evaluation.evaluator import Estimand, n_interval_draws
from fewlabels.evaluation.groups import Group
from fewlabels.evaluation.input_facts import (
    absent_classes,
    annotators_weigh_in,
    extreme_ends,
    weights_of_labels,
)
from fewlabels.evaluation.status import Verdict, judge
from fewlabels.evaluation.strata import strata_facts
from fewlabels.kernels.arrays import Floats, Frozen, Ints
from fewlabels.kernels.blocks import Progress, silent
from fewlabels.kernels.interval_draws import UNDEFINED, Interval, ends
from fewlabels.methods.base import LabelModel, refuse_multiplicity
from fewlabels.methods.per_model import is_probability, score_of
from fewlabels.methods.registry import METHODS
from fewlabels.methods.registry import resolve as resolve_method
from fewlabels.methods.settings import changed_settings
from fewlabels.metrics.registry import METRICS
from fewlabels.pipeline import check_settings
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions
from fewlabels.report.shown import Result
from fewlabels.report.shown import plain_values as plain

_EQUAL = 1e-8
"""Intervals whose lengths differ by less are equally long."""

IntervalKind = Literal["shortest", "equal-tailed"]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Answer(Frozen, Result):
    """The fields of every answer: classifier and class, method and settings, status, warnings."""

    model: str
    positive: Any
    classes: tuple[Any, ...]
    method: str
    estimand: str
    confidence_level: float
    seed: int
    n_items: int
    n_labeled: int
    n_labeled_positive: int
    unit: str
    status: Status
    warnings: tuple[str, ...]
    diagnostics: Mapping[str, Any]

    def _report(self, what: str, answer: Mapping[str, Any]) -> dict[str, Any]:
        """The answer between the shared fields, in plain values."""
        facts = {name: getattr(self, name) for name in _FACTS} | {"positive": str(self.positive)}
        trust = {name: getattr(self, name) for name in ("status", "warnings", "diagnostics")}
        out: dict[str, Any] = plain({"fewlabels": __version__, "what": what, **facts, **answer})
        return out | plain(trust)


_FACTS = tuple(field.name for field in fields(Answer))[:-3]


class Band(NamedTuple):
    """Medians with the ends of their intervals, (places,) each."""

    value: Floats
    low: Floats
    high: Floats


def summarise(
    values: Floats, draws: Floats, level: float, top: float = 1.0, kind: IntervalKind = "shortest"
) -> Interval:
    """Median of the values and interval of the draws (both one-dimensional) that are defined."""
    values, draws = values[~np.isnan(values)], draws[~np.isnan(draws)]
    if not len(values) or not len(draws):
        return UNDEFINED
    low, value, high = band(values[:, None], draws[:, None], level, top, kind)
    return Interval(float(value[0]), float(low[0]), float(high[0]))


def band(
    values: Floats,
    draws: Floats,
    level: float,
    top: float = 1.0,
    kind: IntervalKind = "shortest",
) -> tuple[Floats, Floats, Floats]:
    """Low, median and high at each place: medians of values, intervals of draws, (D, places)."""
    value = np.clip(np.median(values, axis=0), 0.0, top)
    if kind == "shortest":
        low, high = _shortest(draws, level)
    else:
        low, high = ends(draws, level)
    return np.clip(low, 0.0, value), value, np.clip(high, value, top)


def _shortest(draws: Floats, level: float) -> tuple[Floats, Floats]:
    """Ends of the shortest interval that holds a share `level` of the draws (D, places)."""
    ordered = np.sort(draws, axis=0)
    size = len(ordered)
    inside = min(math.ceil(level * (size + 1)), size)
    length = ordered[inside - 1 :] - ordered[: size - inside + 1]
    # Of intervals that are equally long the lowest; rounding must not choose among them.
    start = (length <= length.min(axis=0) + _EQUAL).argmax(axis=0)[None]
    low = np.take_along_axis(ordered, start, axis=0)[0]
    return low, np.take_along_axis(ordered, start + inside - 1, axis=0)[0]


AUTO = {"scores": "averaged-curves", "probabilities": "monotone-curves"}
"""The method for one classifier, by its predictions; densities seldom fit logits of probabilities.
"""


@dataclass(frozen=True, eq=False, kw_only=True)
class OneClassifier:
    """A question about one classifier, and the posterior that answers it.

    The posterior is of `predictions`, and `positive` is the class in question among their classes;
    `classes` are all that were given. `scores` (n,) rank the items, in the units of the file; NaN =
    missing. `binary` holds the one classifier and two classes, the one in question last.
    """

    predictions: Predictions
    posterior: LabelPosterior
    positive: int
    classes: tuple[Any, ...]
    scores: Floats
    binary: Predictions
    probability: bool
    method: str
    settings: Mapping[str, Any]
    estimand: Estimand
    level: float
    seed: int
    progress: Progress

    @staticmethod
    def from_arguments(
        predictions: Any,
        columns: Any,
        model: str | None,
        method: str | LabelModel,
        positive: Any,
        *,
        level: Any,
        estimand: Estimand,
        random_state: Any,
        workers: Any,
        progress: Progress | None,
        y_true: Any = None,
    ) -> OneClassifier:
        """Check the arguments and fit the method; see `fewlabels.curve`.

        "auto" and methods for two classes get the one classifier, and the class against the rest;
        others get all classifiers and classes. Wrong or ambiguous arguments, and methods without a
        posterior, are a `UsageError`; a classifier with neither probabilities nor scores is an
        `InputError`.
        """
        predictions = predictions_of(
            predictions, columns, positive, against_rest=False, y_true=y_true
        )
        some_level(level)
        check_settings(level, estimand, workers)
        refuse_multiplicity(predictions, "this question")
        seed = seed_of(random_state)
        name = _classifier(predictions, model)
        k = _positive(predictions, positive)
        j = predictions.models.index(name)
        probability = is_probability(predictions, j)
        if not probability and k == 0:
            raise UsageError(
                f"the scores of {quoted(name)} rank class {quoted(predictions.classes[1])} "
                "upwards; ask for that class, or provide probabilities"
            )
        auto = AUTO["probabilities" if probability else "scores"]
        called, label_model = resolve_method(auto if method == "auto" else method, predictions)
        alone = predictions.select_models([name])
        several = predictions.n_classes > 2
        binary = alone.with_positive(predictions.classes[k]) if several or k == 0 else alone
        fitted, scores = predictions, score_of(predictions, j, k)
        entry = METHODS.get(called)
        if method == "auto" or (several and entry is not None and "two classes" in entry.needs):
            # As asked, but for the order of two classes: to reverse them would change nothing.
            fitted, j, k = (binary, 0, 1) if several else (alone, 0, k)
        posterior = None
        if entry is None or entry.serves != "means":
            posterior = label_model.infer(fitted, np.random.default_rng(seed)).of(j)
        if posterior is None or posterior.means is not None:
            raise UsageError(
                f"method {called!r} estimates means of metrics and forms no posterior over labels, "
                "which curves and thresholds need; use 'auto', 'tempered-ensemble' or 'labeled'"
            )
        return OneClassifier(
            predictions=fitted, posterior=posterior, positive=k, classes=predictions.classes,
            scores=scores, binary=binary, probability=probability, method=called,
            settings=changed_settings(called, label_model), estimand=estimand, level=float(level),
            seed=seed, progress=progress or silent,
        )  # fmt: skip

    @property
    def model(self) -> str:
        """Name of the classifier."""
        return self.binary.models[0]

    @property
    def n_draws(self) -> int:
        """How many draws intervals use."""
        return n_interval_draws(self.level)

    @cached_property
    def rows(self) -> Ints:
        """Items that count: with a score, and of positive weight; ascending."""
        return np.flatnonzero(~np.isnan(self.scores) & (self.predictions.weight > 0))

    @cached_property
    def known_rows(self) -> Ints:
        """Those of `rows` whose labels the posterior knows or infers."""
        return self.rows[self.posterior.speaks_of(self.rows)]

    @cached_property
    def labels(self) -> Ints:
        """Label of each of `rows`: 1 the class in question, 0 another, -1 unknown."""
        return self.binary.labels[self.rows]

    def facts(self) -> Mapping[str, Any]:
        """The fields of an `Answer` except status, warnings and diagnostics."""
        return {
            "model": self.model,
            "positive": plain_name(self.binary.classes[1]),
            "classes": tuple(plain_name(c) for c in self.classes),
            "method": self.method,
            "estimand": self.estimand,
            "confidence_level": self.level,
            "seed": self.seed,
            "n_items": len(self.rows),
            "n_labeled": int((self.labels >= 0).sum()),
            "n_labeled_positive": int((self.labels == 1).sum()),
            "unit": "probability" if self.probability else "score",
            "diagnostics": {
                **self.posterior.diagnostics,
                **({"settings": self.settings} if self.settings else {}),
            },
        }

    def verdict(self, metric: str, value: float) -> Verdict:
        """Status of an answer that needs a ranking metric, here with its value, to be defined."""
        everything = Group(None, self.rows)
        verdict = judge(
            self.binary, self.posterior, everything, METRICS[metric], self.model, value, {}
        )
        if verdict.status is Status.OK and (not self._informed or self._of_strata):
            return Verdict(Status.ASSUMPTION)  # `warnings` say why
        if verdict.status is Status.OK and self.misfit is not None:
            return Verdict(Status.CONTRADICTED)
        return verdict

    @cached_property
    def misfit(self) -> str | None:
        """Warning if the labels of the highest or lowest scores contradict P(positive | score).

        P at the score of a labeled item is interpolated between unlabeled ones. It was fitted to
        the labels too, so that the test, against labels drawn from it, is conservative. Labels
        drawn by stratum follow no common curve.
        """
        seen, scores = self.labels >= 0, self.scores[self.rows]
        alone = self.predictions.n_models == 1 and self.posterior.infers
        alone = alone and self.predictions.stratum is None
        if not alone or seen.sum() < _FEWEST_TO_TEST or seen.all():
            return None
        p = self.posterior.probabilities[self.rows, self.positive]
        places, at = np.unique(scores[~seen], return_inverse=True)
        expected = np.interp(scores[seen], places, np.bincount(at, p[~seen]) / np.bincount(at))
        tail = misfitting_tail(scores[seen], self.labels[seen], expected)
        if tail is None:
            return None
        inside = (scores[seen] >= tail[0]) & (scores[seen] <= tail[1])
        positive, wanted = int(self.labels[seen][inside].sum()), float(expected[inside].sum())
        observed = f"{positive} are" if positive > 1 else ("none is", "one is")[positive]
        return (
            f"contradicted: of the {int(inside.sum())} labeled items with scores from "
            f"{tail[0]:.4g} to {tail[1]:.4g}, {observed} positive, and the method expects "
            f"{wanted:.1f}; perhaps a higher score does not always make an item likelier positive. "
            "Method 'labeled' assumes nothing of the scores"
        )

    @cached_property
    def _of_strata(self) -> list[str]:
        """Which strata lack labels, where labels were drawn by stratum."""
        return strata_facts(self.binary, {})[1]

    @property
    def _informed(self) -> bool:
        """Whether any item has a label or counts of annotators."""
        return bool(self.binary.n_labeled or self.binary.n_annotated)

    def warnings(self, *more: str | None) -> tuple[str, ...]:
        """Warnings on the input and the method's fit, then `more`; each once."""
        binary, labels_only = self.binary, not self.posterior.infers
        notes = [*left_out(binary.reading), *binary.notes, *weights_of_labels(binary)]
        if not self._informed:
            notes.append("assumption: no labels, so the answer is the method's prior")
        notes += absent_classes(binary.classes, binary.labels[binary.labeled])
        if binary.n_annotated and not labels_only:
            notes.append(annotators_weigh_in(binary))
        unscored = len(self.scores) - len(self.rows)
        if unscored:
            notes.append(
                f"{unscored:,} of {len(self.scores):,} items are left out: {self.model} gives "
                "no score there, or their weight is 0"
            )
        if labels_only and binary.n_labeled:
            notes.append("only the labeled items are used")
        notes += extreme_ends(self.level)
        notes += [] if self.misfit is None else [self.misfit]
        notes += self._of_strata
        gravest = gravest_first([*notes, *self.posterior.warnings])
        return tuple(dict.fromkeys([*gravest, *filter(None, more)]))


_FEWEST_TO_TEST, _MOST_TO_TEST = 10, 2_000
_MISFIT_LEVEL = 0.01
_SIMULATIONS = 999


def misfitting_tail(scores: Floats, labels: Ints, expected: Floats) -> tuple[float, float] | None:
    """Lowest and highest score of the tail whose labels are least like draws from `expected`.

    For a tail S of the ranking (all labeled items from a score up, or down) z_S = |sum_S (y - p)| /
    sqrt(1/4 + sum_S p (1 - p)); the quarter limits the effect of a single label. The largest z is
    compared with those of simulated labels; None if it is within 99% of them. Of more than 2,000
    labels an even selection is used. Arguments (n,).
    """
    order = np.argsort(scores, kind="stable")[:: -(-len(scores) // _MOST_TO_TEST)]
    y, p, s = labels[order], expected[order], scores[order]
    last = np.flatnonzero(np.append(np.diff(s) > 0, True))  # items of one score stay together
    rng = np.random.default_rng(0)  # a warning does not come and go with the seed of estimates
    drawn = np.vstack([y, rng.random((_SIMULATIONS, len(p))) < p])
    gap, variance = np.cumsum(drawn - p, axis=1), np.cumsum(p * (1 - p))
    below = np.abs(gap[:, last]) / np.sqrt(0.25 + variance[last])
    above = np.abs(gap[:, -1:] - gap[:, last]) / np.sqrt(0.25 + variance[-1] - variance[last])
    z = np.hstack([below, above[:, :-1]])
    top = z.max(axis=1)
    if (top[1:] >= top[0]).sum() + 1 > _MISFIT_LEVEL * (_SIMULATIONS + 1):
        return None
    place = int(z[0].argmax())
    if place < len(last):
        return float(s[0]), float(s[last[place]])
    return float(s[last[place - len(last)] + 1]), float(s[-1])


def _classifier(predictions: Predictions, model: str | None) -> str:
    """The named classifier, or the only one with a ranking."""
    ranks = predictions.gives("ranking")
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
        raise UsageError(
            f"`model` must name one of the classifiers: {listed(map(quoted, names), 60)}"
        )
    return model or names[0]


def _positive(predictions: Predictions, positive: Any) -> int:
    """Index of the named class; by default the last of two."""
    classes = predictions.classes
    if positive is not None:
        return class_index(positive, classes)
    if len(classes) > 2:
        raise UsageError(
            f"`positive` must name the class that is set against the rest: {listed(classes)}"
        )
    return len(classes) - 1
