"""calibration_curve(): how often events come true at each probability, and how far off that is.

The error over all bins is a metric of all items, estimated as any other; the curve is that of a
report's reliability diagrams, with other bins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from fewlabels.checks.arguments import bins_of, few_enough, one_of, seed_of, some_level
from fewlabels.data.inputs import predictions_of
from fewlabels.errors import InputError, listed
from fewlabels.estimates import Estimate, Estimates
from fewlabels.estimating import estimate
from fewlabels.evaluation.calibration import (
    CalibrationTest,
    LabeledBins,
    calibration_test,
    debiased_error,
    jeffreys,
)
from fewlabels.evaluation.details import ScoreBins, reliability_of, score_distribution
from fewlabels.evaluation.draws import item_sample
from fewlabels.evaluation.evaluator import Evaluator
from fewlabels.kernels.arrays import Frozen, Ints
from fewlabels.kernels.blocks import Progress, step, using_workers
from fewlabels.kernels.interval_draws import interval
from fewlabels.methods.base import LabelModel
from fewlabels.methods.baselines.plain import Labeled
from fewlabels.methods.label_distribution import LabelDistribution
from fewlabels.metrics.base import Metric
from fewlabels.metrics.calibration import Binning, CalibrationBins, Norm, calibration_error
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

RIGHT = "the predicted class is right"
"""The event of the confidence in the predicted class."""

_INFERRED = ("weight", "predicted", "observed", "low", "high")


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
        return {name: [getattr(one, name) for one in self.bins] for name in self._row_fields}

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
    confidence_level, random_state, workers, progress, positive, columns
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
        items, method, [error], confidence_level=level, random_state=seed, workers=workers,
        progress=progress,
    )  # fmt: skip
    step("drawing calibration curves")
    with using_workers(workers):
        curves = [_Classifier(items, estimates, error, norm, name) for name in served]
        rows = tuple(one for curve in curves for one in curve.bins())
        from_labels = tuple(curve.from_labels() for curve in curves)
    warnings = [*estimates.warnings]
    if items.clusters:
        warnings.append(
            f"labels come in clusters ({listed(items.clusters)}), and the test of calibration "
            "takes them to be independent: it is left out"
        )
    kind: Any = "classwise" if every else "positive" if items.n_classes == 2 else "top-label"
    return CalibrationCurves(
        estimates, rows, from_labels, norm, binning, size, kind, tuple(warnings),
        tuple(one for curve in curves for one in curve.distributions()),
    )  # fmt: skip


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
        labels: LabelModel = Labeled()
        if self.posterior.label_spread is not None:
            labels = LabelDistribution(labels)
        return labels.infer(self.one, np.random.default_rng(self.estimates.seed))

    @cached_property
    def rows(self) -> Ints:
        """Items with probabilities, of positive weight."""
        return np.flatnonzero(self.one.has_probabilities[:, 0] & (self.one.weight > 0))

    @cached_property
    def statistic(self) -> CalibrationBins:
        """Whose bins the curves have."""
        assert isinstance(self.error.statistic, CalibrationBins)
        return self.error.statistic

    @cached_property
    def events(self) -> list[tuple[str, ScoreBins]]:
        """The events of the curves by name, with bins by all of the `rows`."""
        names = [str(c) for c in self.one.classes]
        if self.statistic.event != "every":
            names = [names[1] if len(names) == 2 else RIGHT]
        bins = ScoreBins.of(self.statistic, view_of(self.one, self.rows, 0))
        return list(zip(names, bins, strict=True))

    @cached_property
    def labeled(self) -> Ints:
        """Places among the `rows` of those with labels."""
        return np.flatnonzero(self.alone.speaks_of(self.rows))

    def bins(self) -> Iterator[CalibrationBin]:
        """The bins of all curves that hold items."""
        level = self.estimates.confidence_level
        spoken = self.rows[self.posterior.speaks_of(self.rows)]
        some, rows = item_sample(self.one, spoken, _MOST_ITEMS)
        bins = [event.take(np.searchsorted(self.rows, rows)) for _, event in self.events]
        curves = reliability_of(some, self.posterior, rows, bins, level) if len(rows) else []
        for (name, event), columns in zip(self.events, curves, strict=bool(curves)):
            at, alone = columns["bin"], self._labels(event)
            ends = jeffreys(alone.frequency, alone.size, level)
            counts = [
                np.bincount(event.items.codes[some], self.one.times[self.rows[some]], len(ends[0]))
                for some in (slice(None), self.labeled)
            ]
            every: list[Any] = [
                event.edges[at], event.edges[at + 1], counts[0][at].astype(int),
                *(columns[key] for key in _INFERRED), counts[1][at].astype(int),
                alone.frequency[at], *(end[at] for end in ends),
            ]  # fmt: skip
            for row in zip(*(column.tolist() for column in every), strict=True):
                yield CalibrationBin(self.name, name, *row)

    def _labels(self, event: ScoreBins) -> LabeledBins:
        """The labeled items by bin."""
        rows, bins = self.rows[self.labeled], event.take(self.labeled)
        mass = self.one.weight_of_labels[rows] * self.one.times[rows]
        marginals = self.alone.marginals()[rows]
        hits = np.take_along_axis(marginals, bins.event[:, None], axis=1)[:, 0]
        total, confidence, hits = (
            bins.items.sums(mass * values) for values in (np.ones(len(mass)), bins.confidence, hits)
        )
        size = [self.one.effective_size(rows[bins.items.codes == b]) for b in range(len(total))]
        with np.errstate(invalid="ignore"):
            return LabeledBins(total, confidence / total, hits / total, np.array(size))

    def from_labels(self) -> FromLabels:
        """The error by the labels alone, and the test."""
        fixed, found = self.error, self.estimates
        if self.statistic.quantiles:  # the bins of all items, not those of the labeled ones
            edges = [event.edges for _, event in self.events]
            fixed = replace(fixed, statistic=self.statistic.between(edges))
        level, debiased, test = found.confidence_level, np.nan, CalibrationTest(np.nan, np.nan)
        rows = self.rows[self.labeled]
        evaluator = Evaluator(self.one, self.alone, {fixed.name: fixed}, "population", level)
        measured = evaluator.measure(rows)[fixed.name]
        low, high = interval(measured.value, measured.draws, level, fixed.bounds)
        if len(rows):
            cells = [self._labels(event) for _, event in self.events]
            debiased = debiased_error(
                LabeledBins(*map(np.concatenate, zip(*cells, strict=True))), self.norm
            )
        labels = self.items.labels[rows]
        if len(rows) and not self.items.clusters and (labels >= 0).all():
            assert self.one.probabilities is not None
            bins = [event.take(self.labeled) for _, event in self.events]
            events = [(event.event, event.confidence) for event in bins]
            test = calibration_test(self.one.probabilities[rows, 0], labels, events, found.seed)
        ends = float(measured.value[0]), float(low[0]), float(high[0])
        n_labeled = int(self.one.size_of(rows))
        return FromLabels(self.name, fixed.name, n_labeled, *ends, debiased, *test)

    def distributions(self) -> Iterator[Mapping[str, Any]]:
        """The scores of each event, by whether it comes true."""
        mass = (self.one.weight * self.one.times)[self.rows]
        labels, marginals = self.items.labels[self.rows], self.posterior.marginals()[self.rows]
        for name, event in self.events:
            of = event.event
            own = np.take_along_axis(marginals, of[:, None], axis=1)[:, 0]
            yield {"model": self.name} | score_distribution(
                name, event.confidence, own * mass, mass, labels == of, labels
            )
