"""calibration_curve(): how often events come true at each probability, and how far off that is.

A bin of the curve is a group of items: its height is the metric "how often the event comes true"
of the group, by the evaluator and its guard. The error over all bins is a metric of all items.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from fewlabels.checks.arguments import bins_of, few_enough, one_of, seed_of, some_level
from fewlabels.checks.conditions import NOT_RANDOM
from fewlabels.data.inputs import predictions_of
from fewlabels.errors import InputError, Status, listed
from fewlabels.estimates import Estimate, Estimates
from fewlabels.estimating import estimate
from fewlabels.evaluation.calibration import CalibrationTest, calibration_test, debiased_error
from fewlabels.evaluation.details import score_distribution
from fewlabels.evaluation.draws import item_sample
from fewlabels.evaluation.evaluator import Estimand, Evaluator, Measured
from fewlabels.evaluation.groups import Group
from fewlabels.evaluation.guard import Guard, guarded_rows
from fewlabels.evaluation.status import Reasons
from fewlabels.kernels.arrays import Floats, Frozen, Ints
from fewlabels.kernels.blocks import Progress, step, using_workers
from fewlabels.kernels.interval_draws import Interval, interval
from fewlabels.kernels.weighting import between, equal_width, quantile_edges
from fewlabels.methods.base import LabelModel
from fewlabels.methods.baselines.plain import Labeled
from fewlabels.methods.label_distribution import LabelDistribution
from fewlabels.metrics.base import Metric
from fewlabels.metrics.calibration import (
    Binning,
    CalibrationBins,
    Norm,
    calibration_error,
    event_rate,
)
from fewlabels.metrics.plans import view_of
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions
from fewlabels.report.shown import Result, plain_values

BINNINGS: Mapping[str, Binning] = {"width": "equal-width", "quantile": "quantiles"}
"""Kinds of bins by the names of the argument."""

_MOST_ITEMS = 50_000
"""Bands are drawn from at most so many items of a classifier."""

MOST_CLASSES = 100
"""Most classes with a curve each."""


class CalibrationBin(NamedTuple):
    """A bin of a curve: the items whose probabilities of the `event` are from `start` to `end`.

    `share` is their part of the weight of all, `predicted` their mean probability. `observed` is
    how often the event comes true among all of them, with its interval; `labeled_observed` how
    often it does among the `n_labeled` that have a label, with the interval from these alone.
    """

    model: str
    event: str
    start: float
    end: float
    n_items: int
    share: float
    predicted: float
    observed: float
    low: float
    high: float
    status: Status
    n_labeled: int
    labeled_observed: float
    labeled_low: float
    labeled_high: float


class FromLabels(NamedTuple):
    """The error of the labeled items alone: plain with its interval, and debiased; and a test.

    `p_value` is the probability of labels as far from the probabilities if these were right.
    """

    model: str
    metric: str
    n_labeled: int
    value: float
    low: float
    high: float
    debiased: float
    statistic: float
    p_value: float


@dataclass(frozen=True, repr=False)
class CalibrationCurves(Frozen, Result):
    """What `fewlabels.calibration_curve` returns.

    `bins` are the curves, classifier by classifier and event by event. `rows` are the errors for
    all items, a row of `estimates` for each classifier with probabilities; `from_labels` are those
    of the labels alone, with a test.
    """

    _page, _text = "calibration-curve", "render_calibration_curve"
    _row_fields, _text_columns = CalibrationBin._fields, ("model", "event")

    estimates: Estimates
    bins: tuple[CalibrationBin, ...]
    from_labels: tuple[FromLabels, ...]
    norm: Norm
    binning: str
    n_bins: int
    kind: Literal["positive", "top-label", "classwise"]
    warnings: tuple[str, ...]
    distributions: tuple[Mapping[str, Any], ...]

    @property
    def models(self) -> tuple[str, ...]:
        """The classifiers with probabilities."""
        return tuple(row.model for row in self.from_labels)

    @property
    def diagnostics(self) -> Mapping[str, Any]:
        """What is known of the fit and of the sample."""
        return self.estimates.diagnostics

    @property
    def rows(self) -> tuple[Estimate, ...]:
        """The error of each classifier for all items."""
        return tuple(row for row in self.estimates.rows if row.model in self.models)

    def get(self, model: str, metric: str, group: str | None = None) -> Estimate:
        """The error of a classifier for all items; `UsageError` if there is none."""
        return self.estimates.get(model, metric, group)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the pictures of the scores, as plain values."""
        facts = self.estimates.to_dict()
        out: dict[str, Any] = {
            **{name: facts[name] for name in facts if name not in ("comparison", "groups")},
            "models": list(self.models),
            "what": "calibration-curve",
            **{name: getattr(self, name) for name in ("kind", "norm", "binning", "n_bins")},
            "estimates": [row._asdict() for row in self.rows],
            "from_labels": [row._asdict() for row in self.from_labels],
            "bins": [one._asdict() for one in self.bins],
            "warnings": list(self.warnings),
        }
        plain: dict[str, Any] = plain_values(out)
        return plain

    def report(self) -> dict[str, Any]:
        """Everything, as plain values."""
        return self.to_dict() | {"distributions": plain_values(list(self.distributions))}

    def columns(self) -> dict[str, Any]:
        """The bins as columns of a table."""
        columns = {name: [getattr(one, name) for one in self.bins] for name in self._row_fields}
        return columns | {"status": [str(status) for status in columns["status"]]}

    _columns = columns


def calibration_curve(
    predictions: Any,
    models: Sequence[str] | None = None,
    method: str | LabelModel = "auto",
    *,
    bins: int = 15,
    binning: Literal["width", "quantile"] = "width",
    norm: Norm = "l1",
    classwise: bool = False,
    confidence_level: float = 0.95,
    estimand: Estimand = "population",
    random_state: int | None = 0,
    workers: int | None = None,
    progress: Progress | None = None,
    positive: Any = None,
    columns: Any = None,
) -> CalibrationCurves:
    """How often events come true at each probability (a reliability diagram), with bands.

    This measures calibration; `fewlabels.calibration` has maps that improve it.

    Parameters
    ----------
    predictions
        What the classifiers said, and the labels there are: `Predictions`, or the path or frame
        that `read_predictions` would read.
    models
        Only these classifiers.
    method
        By which labels of all items are inferred, as for `fewlabels.estimate`.
    bins, binning
        How many bins, of equal "width" or between each "quantile" of a classifier's probabilities.
    norm
        Of the gaps between probability and frequency, by the items in each bin: "l1" is the mean
        (the expected calibration error), "l2" the root of the mean square, "max" the largest.
    classwise
        With more than two classes a curve of P(class) for every class, and their common error;
        otherwise one of the confidence in the predicted class. Of two classes the curve is that of
        P(positive).
    confidence_level, estimand, random_state, workers, progress, positive, columns
        As for `fewlabels.estimate`.

    Raises
    ------
    UsageError, InputError
        One line that says what is wrong and how to mend it.

    Notes
    -----
    Errors from few labels are too large, as noise makes gaps. The errors of all items, by the
    label posterior, are corrected for what drawing labels adds. The debiased errors of the labels
    alone are those of Kumar, Liang, Ma (2019), the test is Cox's (1958); see
    `fewlabels.evaluation.calibration`.

    Examples
    --------
    >>> import numpy as np
    >>> import fewlabels as fl
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(600)
    >>> truth = rng.random(600) < p**2  # probabilities that are too high
    >>> labels = np.where(np.arange(600) < 200, truth, -1)
    >>> found = fl.calibration_curve(fl.Predictions(p[:, None], labels, models=["m"]), bins=5)
    >>> found.get("m", "ece").low > 0, found.from_labels[0].p_value < 0.01
    (True, True)
    """
    level, seed = some_level(confidence_level), seed_of(random_state)
    size = bins_of(bins)
    one_of("binning", binning, list(BINNINGS))
    one_of("norm", norm, get_args(Norm))
    items = predictions_of(predictions, columns, positive)
    items = items if models is None else items.select_models(list(models))
    served = [items.models[j] for j in np.flatnonzero(items.gives("probabilities"))]
    if not served:
        raise InputError(
            "a calibration curve needs class probabilities (columns p__<model>__<class>), and no "
            "classifier gives any: scores and predicted classes claim no frequency; `fewlabels "
            "curve` shows how well scores rank"
        )
    every = classwise and items.n_classes > 2
    if every:
        few_enough(items.n_classes, MOST_CLASSES, "curves", "classwise")
    error = calibration_error(norm, "every" if every else "positive", BINNINGS[binning], size)
    estimates = estimate(
        items, method, [error], confidence_level=level, estimand=estimand, random_state=seed,
        workers=workers, progress=progress,
    )  # fmt: skip
    step("drawing calibration curves")
    with using_workers(workers):
        curves = [_Classifier(items, estimates, error, norm, name) for name in served]
        rows = tuple(one for curve in curves for one in curve.bins())
        from_labels = tuple(curve.from_labels() for curve in curves)
    against = [f"{b.model} at {b.predicted:.2g}" for b in rows if b.status is Status.CONTRADICTED]
    warnings = [*estimates.warnings]
    if against:
        warnings.append(
            f"contradicted: the labels and the method disagree in some bins ({listed(against, 5)})"
        )
    if items.clusters:
        warnings.append(
            f"labels come in clusters ({listed(items.clusters)}): the debiased error and the test "
            "of calibration take them to be independent, and are left out"
        )
    kind: Any = "classwise" if every else "positive" if items.n_classes == 2 else "top-label"
    return CalibrationCurves(
        estimates, rows, from_labels, norm, binning, size, kind, tuple(warnings),
        tuple(one for curve in curves for one in curve.distributions()),
    )  # fmt: skip


class _Event(NamedTuple):
    """What comes true or not: its name, class of each row (n,), probability (n,), bins and codes.

    `which` is the event for a metric; `edges` are (B + 1,), `codes` (n,).
    """

    name: str
    which: Literal["positive"] | int
    of: Ints
    confidence: Floats
    edges: Floats
    codes: Ints


@dataclass(frozen=True, eq=False)
class _Classifier:
    """The curves of one classifier."""

    items: Predictions
    estimates: Estimates
    error: Metric
    norm: Norm
    name: str

    @cached_property
    def one(self) -> Predictions:
        """The items with the one classifier, as they are judged."""
        one = self.items.select_models([self.name])
        return one.as_histograms() if self.estimates.against == "distribution" else one

    @cached_property
    def posterior(self) -> LabelPosterior:
        """The posterior that the classifier is judged by."""
        return self.estimates.posterior.of(self.items.models.index(self.name))

    @cached_property
    def alone(self) -> LabelPosterior:
        """What the labels alone say."""
        model: LabelModel = Labeled()
        if self.posterior.label_spread is not None:
            model = LabelDistribution(model)
        return model.infer(self.one, np.random.default_rng(self.estimates.seed))

    @cached_property
    def rows(self) -> Ints:
        """Items with probabilities, of positive weight."""
        there = self.one.has_probabilities[:, 0] & (self.one.weight > 0)
        return np.flatnonzero(there)

    @cached_property
    def events(self) -> list[_Event]:
        """The events of the curves, with bins by all of the items."""
        statistic, classes = self.error.statistic, [str(c) for c in self.one.classes]
        assert isinstance(statistic, CalibrationBins)
        view = view_of(self.one, self.rows, 0)
        out = []
        for k, (of, p) in enumerate(statistic.confidences(view)):
            which: Literal["positive"] | int = k if statistic.event == "every" else "positive"
            name = "the predicted class is right"
            if statistic.event == "every" or len(classes) == 2:
                name = classes[k if statistic.event == "every" else 1]
            if statistic.quantiles:
                edges = quantile_edges(p, statistic.size, view.times)
                codes = between(edges, p)
            else:
                edges = np.linspace(0, 1, statistic.size + 1)
                codes = equal_width(p, statistic.size)
            out.append(_Event(name, which, of, p, edges, codes))
        return out

    def evaluator(self, posterior: LabelPosterior, metric: Metric, estimand: Estimand) -> Evaluator:
        """Evaluates one metric of the classifier."""
        level = self.estimates.confidence_level
        return Evaluator(self.one, posterior, {metric.name: metric}, estimand, level)

    def bins(self) -> Iterator[CalibrationBin]:
        """The curves of all events."""
        for event in self.events:
            yield from self._bins(event)

    def _bins(self, event: _Event) -> Iterator[CalibrationBin]:
        one, size = self.one, len(event.edges) - 1
        mass = (one.weight * one.times)[self.rows]
        everyone, labeled = self._all_items(event), self._labeled(event)
        for b in range(size):
            inside = event.codes == b
            rows = self.rows[inside]
            told = rows[self.alone.speaks_of(rows)]
            total = mass[inside].sum()
            mean = float(event.confidence[inside] @ mass[inside] / total) if total else np.nan
            all_items, labels = everyone[b], labeled[b]
            yield CalibrationBin(
                self.name, event.name, float(event.edges[b]), float(event.edges[b + 1]),
                int(one.size_of(rows)), float(total / mass.sum()), mean,
                all_items.value, all_items.low, all_items.high, all_items.status,
                int(one.size_of(told)), *labels,
            )  # fmt: skip

    def _all_items(self, event: _Event) -> list[Estimate]:
        """How often the event comes true in each bin, by the posterior, guarded by the labels."""
        metric, found = event_rate(event.which), self.estimates
        evaluator = self.evaluator(self.posterior, metric, found.estimand)  # type: ignore[arg-type]
        speaks = self.posterior.speaks_of(self.rows)
        some, rows = item_sample(self.one, self.rows[speaks], _MOST_ITEMS)
        evaluator = replace(evaluator, predictions=some)
        codes = np.full(some.n_items, -1)
        codes[self.rows] = event.codes
        chosen = np.full(some.n_items, -1)
        chosen[rows] = codes[rows]
        random = NOT_RANDOM not in found.diagnostics
        guard = Guard.from_evaluator(evaluator, found.method, random=random)
        out: list[Estimate] = []
        for b, measured in enumerate(evaluator.groups(chosen, len(event.edges) - 1)):
            group = Group(f"bin={b}", np.flatnonzero(chosen == b))
            out += guarded_rows(
                evaluator, guard, group, measured, found.confidence_level, Reasons()
            )[0]
        return out

    def _labeled(self, event: _Event) -> list[Interval]:
        """How often it does in each bin, by the labels alone; Jeffreys' intervals."""
        metric = event_rate(event.which)
        codes = np.full(self.one.n_items, -1)
        codes[self.rows] = event.codes
        codes[~self.alone.speaks_of(np.arange(len(codes)))] = -1
        evaluator = self.evaluator(self.alone, metric, "population")
        measured = evaluator.groups(codes, len(event.edges) - 1)
        return [self._interval(one[metric.name], metric) for one in measured]

    def _interval(self, measured: Measured, metric: Metric) -> Interval:
        value, level = measured.value, self.estimates.confidence_level
        low, high = interval(value, measured.draws, level, metric.bounds)
        return Interval(float(value[0]), float(low[0]), float(high[0]))

    def from_labels(self) -> FromLabels:
        """The error by the labels alone, and the test."""
        statistic = self.error.statistic
        assert isinstance(statistic, CalibrationBins)
        fixed = self.error
        if statistic.quantiles:  # the bins of all items, not those of the labeled ones
            fixed = replace(fixed, statistic=statistic.between(e.edges for e in self.events))
        evaluator = self.evaluator(self.alone, fixed, "population")
        rows = self.rows[self.alone.speaks_of(self.rows)]
        plain = self._interval(evaluator.measure(rows)[fixed.name], fixed)
        debiased, test = np.nan, CalibrationTest(np.nan, np.nan)
        labels = self.items.labels[self.rows]
        there = np.flatnonzero(labels >= 0)
        if len(there) and not self.items.clusters:
            debiased = self._debiased(labels, there)
            assert self.one.probabilities is not None
            p = self.one.probabilities[self.rows[there], 0]
            events = [(e.of[there], e.confidence[there]) for e in self.events]
            test = calibration_test(p, labels[there], events, self.estimates.seed)
        n_labeled = int(self.one.size_of(rows))
        return FromLabels(self.name, self.error.name, n_labeled, *plain, debiased, *test)

    def _debiased(self, labels: Ints, there: Ints) -> float:
        """The debiased error of labeled rows, whose labels count by their weights."""
        times = self.one.times[self.rows[there]]
        mass = self.one.weight[self.rows[there]] * times
        cells = [
            [
                np.bincount(e.codes[there], values, minlength=len(e.edges) - 1)
                for values in (
                    mass, mass * e.confidence[there], mass * (labels[there] == e.of[there]),
                    mass**2 / times,
                )
            ]
            for e in self.events
        ]  # fmt: skip
        total, confidence, hits, squares = np.concatenate(cells, axis=1)
        some = total > 0
        total, squares = total[some], squares[some]
        predicted, frequency = confidence[some] / total, hits[some] / total
        return debiased_error(total, predicted, frequency, total**2 / squares, self.norm)

    def distributions(self) -> Iterator[Mapping[str, Any]]:
        """The scores of each event, by whether it comes true."""
        weight = (self.one.weight * self.one.times)[self.rows]
        labels, marginals = self.items.labels[self.rows], self.posterior.marginals()[self.rows]
        for e in self.events:
            own = np.take_along_axis(marginals, e.of[:, None], axis=1)[:, 0]
            told = labels == e.of
            yield {"model": self.name} | score_distribution(
                e.name, e.confidence, own * weight, weight, told, labels
            )
