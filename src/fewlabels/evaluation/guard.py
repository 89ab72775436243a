"""The guard: where the labels speak against a method, its answer moves to what the labels say.

Each metric of each classifier has an alternative that does not trust the method: the labels alone.
Of its value a share g moves to it, and a share h of its draws is the alternative's:

    g = .1 (B - 1)+ / (1 + .1 (B - 1)+),   h = .2 B / (.8 + .2 B),   B = 5^-1/2 exp(.4 z^2),

    z = (labels - method) / sd,

or, where draws of the labels lie on both sides of the method's value, the normal quantile of their
share beyond it.

B is the Bayes factor for a normal estimate between a value that may be anywhere within about two of
its standard deviations (variance 4 sd^2) and the method's own. h is the posterior probability of
the method's being wrong, .2 beforehand: where the two agree 10% of the draws are the labels', at
|z| = 1.42 20%. In a group it is .4 (23% and 40%), for a method also takes groups to be alike; in a
period .1 (5% and 10%), for a walk does not, and labels of neighbours speak of it as well. There B
is at most what these very items' labels say: that of their metric, with labels drawn from the
method's P(label) if it had not seen them, in place of draws around the labels. For few labels that
agree, or items that all look alike, are no surprise to a method that foresees them.
Values are moved later, for the method errs less: nothing below |z| = 1.42, half at 2.83.

The method's value plus the residual of the labeled items (the rectifier of prediction-powered
inference) is no alternative here: a method that predicts labels well leaves residuals whose spread
twenty labels do not show, and it was contradicted where it was right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from fewlabels.comparison.draws import Residuals
from fewlabels.errors import Status
from fewlabels.estimates import MOST_COMPARED, Estimate
from fewlabels.evaluation.evaluator import Evaluator, Measured
from fewlabels.evaluation.groups import Group
from fewlabels.evaluation.status import Reasons, Verdict, judge, partly_undefined
from fewlabels.kernels.arrays import Bools, Floats, Ints
from fewlabels.kernels.blocks import silent
from fewlabels.kernels.interval_draws import interval, nearer_zero, over_draws
from fewlabels.methods.base import LabelModel
from fewlabels.methods.baselines.plain import Labeled
from fewlabels.methods.label_distribution import LabelDistribution
from fewlabels.methods.registry import METHODS
from fewlabels.methods.voices import exposed
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions

LEAST, MOST = 10, 20_000
"""Fewer labels contradict nothing; with more, estimates rest on the labels anyway."""

LEAST_OF_DRAWS = 3
"""With fewer labels of a classifier, or of a group, draws are the method's."""

_LEVEL = 0.95
"""The spread of the estimates from labels is that of draws for this level."""

CONTRADICTED = 0.5
"""Above this weight of the labels (|z| > 2.83) an estimate is contradicted."""

_WRONG, _ALLOWED, _GROUP_ALLOWED, _PERIOD_ALLOWED = 0.1, 0.2, 0.4, 0.1
_MOST_SQUARED = 1_000.0
_EITHER = 0x6A7D


def guards_differences(method: str, predictions: Predictions) -> bool:
    """Whether differences allow for the method's being wrong.

    Not if labels are so many that estimates rest on them, or classifiers too many to list their
    pairs.
    """
    informed = max(predictions.n_labeled, predictions.n_annotated)
    guarded = method in METHODS and METHODS[method].guarded
    return guarded and informed <= MOST and predictions.n_models <= MOST_COMPARED


class Guarded(NamedTuple):
    """Estimates moved to the labels by the weights (M,) of each metric, with the residuals."""

    measured: dict[str, Measured]
    weights: dict[str, Floats]
    residuals: dict[str, Residuals]


@dataclass(frozen=True, eq=False)
class Guard:
    """Compares a method's estimates with those of method `labeled` on the same items, `alone`.

    Labels that a classifier was given do not speak of it: only of those that are `judged` (M,).
    Groups are periods, whose curves walk from one to the next, where labels are `foreseen`: by the
    posterior of the same items as if it had not seen their labels.
    Unless `moves`, contradicted estimates stay where they are and only get that status. Unless
    `differences`, as with very many classifiers, differences are not guarded.
    """

    evaluator: Evaluator
    alone: Evaluator
    moves: bool
    differences: bool
    judged: Bools
    foreseen: Evaluator | None = None

    @staticmethod
    def from_evaluator(
        evaluator: Evaluator,
        method: str,
        *,
        random: bool = True,
        given_labels: Iterable[str] | None = None,
        unseen: LabelPosterior | None = None,
    ) -> Guard | None:
        """The guard; None where the method does not infer labels, or they are too few or many.

        None as well where labels are not of a `random` sample: alone they say nothing of the rest,
        while what they say of classes given the scores stays true if scores decided who has one.
        `given_labels` are the classifiers that were given the labels; None: they are looked for.
        `unseen`, of periods, is the posterior of the same items without their labels.
        """
        moves = method in METHODS and METHODS[method].guarded
        predictions, posterior = evaluator.predictions, evaluator.posterior
        informed = predictions.n_labeled
        labels: LabelModel = Labeled()
        if posterior.label_spread is not None:
            informed, labels = predictions.n_annotated, LabelDistribution(labels)
        if not (random and posterior.infers and LEAST <= informed <= MOST):
            return None
        alone = replace(
            evaluator,
            posterior=labels.infer(predictions, posterior.salt),
            metrics={n: m for n, m in evaluator.metrics.items() if not m.in_memory},
            estimand="population",
            confidence_level=_LEVEL,
            progress=silent,
        )
        if given_labels is None:
            given_labels = (one.model for one in exposed(predictions))
        known = np.isin(predictions.models, list(given_labels))
        paired = guards_differences(method, predictions)
        foreseen = None
        if unseen is not None:
            blank = predictions.with_evidence(None)
            foreseen = replace(alone, predictions=blank, posterior=unseen, estimand="sample")
        return Guard(evaluator, alone, moves, paired, ~known, foreseen)

    def adjust(
        self, group: Group, measured: dict[str, Measured], n_items: float | None = None
    ) -> Guarded:
        """Estimates of a group moved to its labels; unchanged where these are too few.

        `n_items` is how many items the group has; None: those of the evaluator.
        """
        predictions = self.evaluator.predictions
        rows = group.rows[self.alone.posterior.speaks_of(group.rows)]
        of_group = _PERIOD_ALLOWED if self.foreseen else _GROUP_ALLOWED
        wrong = _ALLOWED if group.name is None else of_group
        size, scale = predictions.size_of(rows), 1.0
        if self.evaluator.estimand == "sample":  # what is known of these items varies no more
            n_all = predictions.size_of(group.rows) if n_items is None else n_items
            scale = float(np.sqrt(max(1 - size / n_all, 0.0))) if n_all else 0.0
        if size < LEAST_OF_DRAWS or scale == 0:
            return Guarded(measured, {}, {})
        out, weights, residuals = dict(measured), dict[str, Floats](), dict[str, Residuals]()
        finer: dict[str, _Gap] = {}
        foreseen = self.foreseen.measure(rows) if self.foreseen else {}
        for name, gap in self._gaps(self.alone, rows, measured, scale, foreseen).items():
            labels = self._labels(name, rows)
            weights[name] = np.where(labels >= LEAST, gap.weight, 0.0)
            if not self.moves:
                continue
            estimate, bounds = measured[name], self.evaluator.metrics[name].bounds
            if self.differences:
                left = (1 - weights[name]) * gap.nearest
                # Beside the pseudo-observation of all, one of each classifier: it does not cancel
                # from pairs.
                variance = 2 * over_draws(np.nanvar, gap.draws) / (labels + 1)
                noise = _covariance(gap.draws) + np.diag(variance)
                residuals[name] = Residuals(left, noise, estimate.draws)
            allowed = np.where(labels >= LEAST_OF_DRAWS, gap.allowed(wrong), 0.0)
            if not allowed.any():
                continue
            if len(estimate.draws) > len(gap.draws):
                level = self.evaluator.confidence_level
                alone = replace(self.alone, confidence_level=level)
                finer = finer or self._gaps(alone, rows, measured, scale, foreseen)
                gap = finer[name]
            uniform = self._uniform(len(estimate.draws))
            moved = gap.moved(estimate, weights[name], allowed, uniform)
            if self.differences:
                paired = gap.moved(estimate, weights[name], weights[name], uniform).draws
                residuals[name] = residuals[name]._replace(draws=np.clip(paired, *bounds))
            out[name] = moved._replace(
                value=np.clip(moved.value, *bounds), draws=np.clip(moved.draws, *bounds)
            )
        return Guarded(out, weights, residuals)

    def _gaps(
        self, alone: Evaluator, rows: Ints, measured: Mapping[str, Measured], scale: float,
        foreseen: Mapping[str, Measured],
    ) -> dict[str, _Gap]:  # fmt: skip
        """Estimates from labels alone minus the method's, of every metric.

        `scale` multiplies the spread of the draws: below 1 for a sample. `foreseen` is what the
        method foresees of the same items, where it is asked.
        """
        out = {}
        for name, labels_only in alone.measure(rows).items():
            gap = labels_only.value - measured[name].value
            draws = gap + scale * (labels_only.draws - labels_only.value)
            of_these = labels_only.value - foreseen[name].draws if foreseen else None
            out[name] = _Gap(gap, draws, of_these)
        return out

    def _labels(self, metric: str, rows: Ints) -> Floats:
        """Effective number of labeled items with the predictions of each classifier, (M,)."""
        predictions, needs = self.evaluator.predictions, self.evaluator.metrics[metric].needs
        inside = np.zeros(predictions.n_items, dtype=bool)
        inside[rows] = True
        rows_by_model = (predictions.given_by(needs, j) for j in range(predictions.n_models))
        sizes = [predictions.effective_size(some[inside[some]]) for some in rows_by_model]
        return np.where(self.judged, sizes, 0.0)

    def _uniform(self, size: int) -> Floats:
        """A uniform per draw, the same for all classifiers, metrics and groups."""
        salt = self.evaluator.posterior.salt & (2**64 - 1)
        return np.random.default_rng([salt, _EITHER]).random(size)

    def marked(
        self, rows: list[Estimate], guarded: Guarded, group: Group, reasons: Reasons
    ) -> list[Estimate]:
        """Rows of a group, contradicted where the labels say so; the reasons go to `reasons`."""
        out = []
        for row in rows:
            j = self.evaluator.predictions.place[row.model]
            if self.contradicts(guarded, row.metric)[j]:
                reasons.add(self._reason(row.metric, group), row.model)
                row = row._replace(status=Status.CONTRADICTED)
            out.append(row)
        return out

    def contradicts(self, guarded: Guarded, metric: str) -> Bools:
        """Classifiers (M,) whose estimate the labels contradict."""
        weight = guarded.weights.get(metric, np.zeros(self.evaluator.predictions.n_models))
        # Labels of one class alone get the status few-labels instead.
        out: Bools = (weight > CONTRADICTED) & self._several_classes
        return out

    @cached_property
    def _several_classes(self) -> bool:
        """Whether labels of several classes are known."""
        _, labels = self.evaluator.predictions.named
        return len(np.unique(labels)) > 1

    def _reason(self, metric: str, group: Group) -> str:
        place = "" if group.name is None else " in some groups"
        if self.moves:
            return (
                f"contradicted: the labels and the method disagree on {metric}{place}, and the "
                "answer follows the labels; get more labels"
            )
        return (
            f"contradicted: the labels and the method disagree on {metric}{place}; get more "
            "labels, or use method labeled"
        )


@dataclass(frozen=True, eq=False)
class _Gap:
    """Estimate from labels minus the method's, values (M,) and draws (D, M).

    `unforeseen` (D, M) is the labels' metric minus what the method foresees of the same items.
    """

    value: Floats
    draws: Floats
    unforeseen: Floats | None = None

    @property
    def nearest(self) -> Floats:
        """The values or the means of the draws, whichever is nearer to 0."""
        return nearer_zero(self.value, over_draws(np.nanmean, self.draws))

    @property
    def weight(self) -> Floats:
        """The alternatives' share of the values, (M,); 0 where they are not known."""
        odds = _WRONG * np.maximum(self.factor - 1, 0)
        return odds / (1 + odds)

    def allowed(self, wrong: float) -> Floats:
        """The alternatives' share of the draws, (M,): their probability, `wrong` beforehand."""
        odds = wrong / (1 - wrong) * self.factor
        return odds / (1 + odds)

    @cached_property
    def factor(self) -> Floats:
        """Bayes factors B of the alternatives, (M,); 0 where they are not known."""
        factor = _factor(self.nearest, self.draws, 0.0)
        if self.unforeseen is None:
            return factor
        mean = over_draws(np.nanmean, self.unforeseen)
        return np.minimum(factor, _factor(mean, self.unforeseen, np.inf))

    def moved(self, base: Measured, weight: Floats, allowed: Floats, uniform: Floats) -> Measured:
        """Value and draws of a metric, of which the alternative has a share.

        Draw d takes the alternative where a uniform u_d, the same for all classifiers, is below the
        weight, so that draws stay paired.
        """
        gaps = self.draws[np.arange(len(base.draws)) % len(self.draws)]
        takes = (uniform[:, None] < allowed) & np.isfinite(gaps)
        drawn = np.where(takes, base.value + gaps, base.draws)
        value = np.where(weight > 0, base.value + weight * self.value, base.value)
        return Measured.from_draws(value, drawn)


def _factor(nearest: Floats, draws: Floats, certain: float) -> Floats:
    """Bayes factors B (M,) of gaps with these draws (D, M); `certain` where these do not vary."""
    spread = over_draws(np.nanstd, draws)
    varies = np.isfinite(nearest) & (spread > 0)
    z = np.abs(np.divide(nearest, spread, out=np.zeros(len(spread)), where=varies))
    # Labels alone that nearly all agree have a spread that is too small: there the share of the
    # draws that lie beyond counts, where any does.
    beyond = (draws * np.sign(nearest) < 0).sum(axis=0)
    share = (beyond + 0.5) / (np.isfinite(draws).sum(axis=0) + 1)
    z = np.where(beyond > 0, np.clip(-ndtri(share), 0.0, z), z)
    factor = np.exp(0.4 * np.minimum(z**2, _MOST_SQUARED)) / np.sqrt(5)
    return np.where(varies, factor, np.where(nearest == 0, 0.0, certain))


def _covariance(draws: Floats) -> Floats:
    """Covariance (M, M) of draws (D, M); NaN of a column that is not defined in all of them."""
    out: Floats = np.atleast_2d(np.cov(draws.T))
    return out


def guarded_rows(
    evaluator: Evaluator, guard: Guard | None, group: Group, measured: dict[str, Measured],
    level: float | None, reasons: Reasons, n_items: float | None = None,
) -> tuple[list[Estimate], Guarded]:  # fmt: skip
    """Estimates of one group, moved to its labels where these speak against the method."""
    if guard is None:
        return _rows(evaluator, group, measured, level, reasons), Guarded(measured, {}, {})
    guarded = guard.adjust(group, measured, n_items)
    estimates = _rows(evaluator, group, guarded.measured, level, reasons)
    return guard.marked(estimates, guarded, group, reasons), guarded


def _rows(
    evaluator: Evaluator, group: Group, measured: dict[str, Measured], level: float | None,
    reasons: Reasons,
) -> list[Estimate]:  # fmt: skip
    """Estimates of one group; reasons for their statuses are added to `reasons`."""
    rows, stated = list[Estimate](), float("nan") if level is None else level
    verdicts = dict[tuple[bool, str, int], Verdict | None]()
    ends = {
        name: interval(measured[name].value, measured[name].draws, stated, metric.bounds)
        for name, metric in evaluator.metrics.items()
    }
    for j, model in enumerate(evaluator.predictions.models):
        for name, metric in evaluator.metrics.items():
            estimate = measured[name]
            value = float(estimate.value[j])
            verdict = judge(
                evaluator.predictions, evaluator.posterior, group, metric, model, value, verdicts
            )
            if verdict.reason:
                reasons.add(verdict.reason, model if verdict.of_model else None)
            if estimate.undefined[j] and not np.isnan(value):
                count = int(estimate.undefined[j])
                reasons.add(partly_undefined(metric, group, count, len(estimate.draws)), model)
            low, high = (float(end[j]) for end in ends[name])
            rows.append(Estimate(model, name, group.name, value, low, high, stated, verdict.status))
    return rows
