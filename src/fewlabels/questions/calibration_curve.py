"""calibration_curve(): how often events come true at each probability, and how far off that is.

The error over all bins is a metric of all items, estimated as any other; the curve is that of a
report's reliability diagrams, with other bins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal, NamedTuple, cast, get_args

import numpy as np

from fewlabels.checks.arguments import RandomState, bins_of, few_enough, one_of, seed_of, some_level
from fewlabels.data.inputs import predictions_of
from fewlabels.errors import InputError
from fewlabels.estimates import Estimate, Estimates, Selected
from fewlabels.estimating import estimate
from fewlabels.evaluation.calibration import (
    CalibrationTest,
    LabeledBins,
    calibration_test,
    debiased_error,
    jeffreys,
)
from fewlabels.evaluation.details import reliability_of
from fewlabels.evaluation.draws import item_sample
from fewlabels.evaluation.evaluator import Evaluator
from fewlabels.kernels.arrays import Floats, Frozen, Ints
from fewlabels.kernels.blocks import Progress, step, using_workers
from fewlabels.kernels.interval_draws import interval
from fewlabels.methods.base import LabelModel
from fewlabels.methods.baselines.plain import Labeled
from fewlabels.methods.label_distribution import LabelDistribution
from fewlabels.metrics.base import Metric
from fewlabels.metrics.calibration import (
    Binning,
    BinsPlan,
    CalibrationBins,
    EventsPlan,
    Norm,
    calibration_error,
)
from fewlabels.metrics.plans import view_of
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions
from fewlabels.report.shown import Result, plain_values

_MOST_ITEMS = 50_000
"""Bands are drawn from at most so many items of a classifier."""

MOST_CLASSES = 100
"""Most classes with a curve each."""

RIGHT = "the predicted class is right"
"""The event of the confidence in the predicted class."""


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

    _page = "calibration-curve"
    _row_fields, _text_columns = CalibrationBin._fields, ("model", "event")

    estimates: Estimates
    bins: tuple[CalibrationBin, ...]
    from_labels: tuple[FromLabels, ...]
    norm: Norm
    binning: str
    n_bins: int
    kind: Literal["positive", "top-label", "classwise"]
    warnings: tuple[str, ...]

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

    def get(self, model: str, metric: str, group: Selected = None) -> Estimate:
        """The error of a classifier for all items; `UsageError` if there is none."""
        return self.estimates.get(model, metric, group)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values."""
        facts = self.estimates.to_dict()
        own = {n: v for n, v in vars(self).items() if n != "estimates"}
        out = {
            **{name: facts[name] for name in facts if name not in ("comparison", "groups")},
            **own,
            "models": self.models,
            "what": "calibration-curve",
            "estimates": [row._asdict() for row in self.rows],
            "from_labels": [row._asdict() for row in self.from_labels],
            "bins": [one._asdict() for one in self.bins],
        }
        plain: dict[str, Any] = plain_values(out)
        return plain

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
    random_state: RandomState = 0,
    workers: int | None = None,
    progress: Progress | None = None,
    positive: Any = None,
    columns: Any = None,
    y_true: Any = None,
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
    confidence_level, random_state, workers, progress, positive, columns, y_true
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
    one_of("binning", binning, get_args(Binning))
    one_of("norm", norm, get_args(Norm))
    items = predictions_of(predictions, columns, positive, y_true=y_true)
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
    error = calibration_error(norm, "every" if every else "positive", binning, size)
    estimates = estimate(
        items, method, [error], confidence_level=level, random_state=seed, workers=workers,
        progress=progress,
    )  # fmt: skip
    step("drawing calibration curves")
    with using_workers(workers):
        tables, from_labels = zip(
            *(_of_classifier(items, estimates, error, norm, name) for name in served), strict=True
        )
    kind: Any = "classwise" if every else "positive" if items.n_classes == 2 else "top-label"
    return CalibrationCurves(
        estimates, tuple(chain(*tables)), from_labels, norm, binning, size, kind, estimates.warnings
    )  # fmt: skip


def _of_classifier(
    items: Predictions, estimates: Estimates, error: Metric, norm: Norm, name: str
) -> tuple[list[CalibrationBin], FromLabels]:
    """The bins of a classifier's curves, and its error by the labels alone."""
    one, labels = items.select_models([name]), cast(LabelModel, Labeled())
    posterior = estimates.posterior.of(items.models.index(name))
    if estimates.against == "distribution":
        one, labels = one.as_histograms(), LabelDistribution(labels)
    alone = labels.infer(one, np.random.default_rng(estimates.seed))
    rows = np.flatnonzero(one.has_probabilities[:, 0] & (one.weight > 0))
    # The bins are those of all items, also where only some of them are looked at.
    bins = cast(CalibrationBins, error.statistic).fixed(view_of(one, rows, 0))
    sample, drawn = item_sample(one, rows[posterior.speaks_of(rows)], _MOST_ITEMS)
    labeled = rows[alone.speaks_of(rows)]
    plan, of_drawn, of_labels = (
        bins.prepare(view_of(one, some, 0)) for some in (rows, drawn, labeled)
    )
    level, seed = estimates.confidence_level, estimates.seed
    curve = reliability_of(sample, posterior, drawn, [of_drawn], level)[0]
    curve["weight"] *= len(plan.events)  # a share of the items, not of all events
    cells = _labeled_bins(one, alone, labeled, of_labels)

    fixed = {error.name: replace(error, statistic=bins)}
    measured = Evaluator(one, alone, fixed, "population", level).measure(labeled)[error.name]
    ends = interval(measured.value, measured.draws, level, error.bounds)
    test, known = CalibrationTest(np.nan, np.nan), items.labels[labeled]
    if len(labeled) and (known >= 0).all():
        assert one.probabilities is not None
        events = [(event.event, event.probability) for event in of_labels.events]
        test = calibration_test(
            one.probabilities[labeled, 0], known, events, seed,
            one.weight_of_labels[labeled], one.label_keys[labeled],
        )  # fmt: skip
    value, low, high = (float(each[0]) for each in (measured.value, *ends))
    from_labels = FromLabels(
        name, error.name, one.size_of(labeled), value, low, high, debiased_error(cells, norm), *test
    )

    names = [str(c) for c in one.classes]
    if len(plan.events) == 1:
        names = [names[1] if len(names) == 2 else RIGHT]
    edges = np.array(bins.edges or [np.arange(bins.size + 1) / bins.size] * len(names))
    columns = [
        np.repeat(names, bins.size), edges[:, :-1].ravel(), edges[:, 1:].ravel(),
        _counts(plan, one.times[rows]), *curve.values(), _counts(of_labels, one.times[labeled]),
        cells.frequency, *jeffreys(cells.frequency, cells.size, level),
    ]  # fmt: skip
    shown = np.flatnonzero(curve["weight"])
    table = [
        CalibrationBin(name, *row)
        for row in zip(*(column[shown].tolist() for column in columns), strict=True)
    ]
    return table, from_labels


def _counts(plan: BinsPlan | EventsPlan, times: Floats) -> Ints:
    """How many items there are in each bin."""
    return np.concatenate([event.count.sums(times) for event in plan.events]).astype(np.int64)


def _labeled_bins(
    one: Predictions, alone: LabelPosterior, labeled: Ints, plan: BinsPlan | EventsPlan
) -> LabeledBins:
    """The labeled items of one classifier by bin."""
    found = reliability_of(one, alone, labeled, [plan], None)[0]
    size = [
        one.effective_size(labeled[event.count.codes == b])
        for event in plan.events
        for b in range(event.count.size)
    ]
    return LabeledBins(found["weight"], found["predicted"], found["observed"], np.array(size))
