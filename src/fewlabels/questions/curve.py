"""curve(): a classifier's precision-recall or ROC curve with a band, and a picture of scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, final, get_args

import numpy as np

from fewlabels.checks.arguments import RandomState
from fewlabels.errors import Status, UsageError, unknown
from fewlabels.evaluation.draws import DRAWS_AT_ONCE
from fewlabels.evaluation.evaluator import Estimand
from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.blocks import Progress, index_blocks, map_blocks, using_workers
from fewlabels.kernels.interval_draws import Interval
from fewlabels.methods.base import LabelModel
from fewlabels.questions.counts import (
    GRID,
    KINDS,
    VALUE_DRAWS,
    Counts,
    Kind,
    Points,
    Rates,
    equal_error_rate,
    operating_points,
)
from fewlabels.questions.question import Answer, Band, IntervalKind, OneClassifier, band, summarise
from fewlabels.report.shown import plain_values as plain


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class _Drawn(Answer):
    """What a curve and several curves have in common."""

    _page = "curves"

    prevalence: Interval
    recalibrated: Floats
    draw_picture: Callable[[], dict[str, Any]] = field(repr=False)

    @final
    def picture(self) -> dict[str, Any]:
        """Histogram of the scores, and P(positive) by score with a band, for pages."""
        return self.draw_picture()

    @final
    def _beside_report(self) -> dict[str, Any]:
        return {"picture": self.picture()}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Curve(_Drawn):
    """What `fewlabels.curve` returns: a curve of 100 points with its band.

    `x` and `y` are recall and precision, or false- and true-positive rate, ascending in `x`; `low`
    and `high` are the ends of the pointwise interval; each (100,), in [0, 1], without NaN.
    `threshold` (100,) is the median threshold that reaches `x`, in the units of the file, infinite
    where no score does. `kind` is "precision-recall" or "roc", `area` average precision or ROC AUC,
    `prevalence` the share of positive items. `recalibrated` (n,) is P(positive) of every item of
    the predictions.
    """

    kind: str
    x: Floats
    y: Floats
    low: Floats
    high: Floats
    threshold: Floats
    area: Interval

    def to_dict(self) -> dict[str, list[float]]:
        """The curve and its band: recall, precision, low, high, or fpr, tpr, low, high."""
        names = (*KINDS[self.kind].axes, "low", "high")
        columns = (self.x, self.y, self.low, self.high)
        return {name: column.tolist() for name, column in zip(names, columns, strict=True)}

    def lines(self) -> dict[str, Any]:
        """The curve, the thresholds that reach it, and its area, as a report holds them."""
        area = {"metric": KINDS[self.kind].area, **self.area._asdict()}
        return self.to_dict() | {"threshold": self.threshold, "area": area}

    def report(self) -> dict[str, Any]:
        """Everything but the picture, as a dictionary of plain values."""
        prevalence = self.prevalence._asdict()
        return self._report("curve", {"kind": self.kind, **self.lines(), "prevalence": prevalence})

    def _columns(self) -> dict[str, Any]:
        return self.to_dict() | {"threshold": self.threshold}


class ByThreshold(NamedTuple):
    """Rates at up to 100 thresholds, ascending, in the units of the file.

    The equal error rate is that of false positives and false negatives where the two are the same.
    """

    threshold: Floats
    precision: Band
    recall: Band
    equal_error_rate: Interval

    def plain(self) -> dict[str, Any]:
        """As a report holds it."""
        return {
            "threshold": self.threshold,
            **{
                name: getattr(self, name)._asdict() for name in (*_BY_THRESHOLD, "equal_error_rate")
            },
        }


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Curves(_Drawn):
    """What `fewlabels.curves` returns: `curves`, of several kinds by name, from one fit.

    `by_threshold` has precision and recall at thresholds, and the equal error rate.
    """

    curves: Mapping[str, Curve]
    by_threshold: ByThreshold

    def to_dict(self) -> dict[str, dict[str, list[float]]]:
        """`Curve.to_dict` by kind."""
        return {kind: curve.to_dict() for kind, curve in self.curves.items()}

    def report(self) -> dict[str, Any]:
        """Everything but the picture, as a dictionary of plain values."""
        lines = {kind: curve.lines() for kind, curve in self.curves.items()}
        return self._report(
            "curves",
            {
                "curves": lines,
                "prevalence": self.prevalence._asdict(),
                "by_threshold": self.by_threshold.plain(),
            },
        )

    def _columns(self) -> dict[str, Any]:
        """Points of all kinds."""
        each = list(self.curves.values())
        columns: dict[str, Any] = {"kind": [c.kind for c in each for _ in c.x]}
        for name in ("x", "y", "low", "high", "threshold"):
            columns[name] = np.concatenate([getattr(c, name) for c in each])
        return columns


def curve(
    predictions: Any,
    model: str | None = None,
    kind: str = "precision-recall",
    method: str | LabelModel = "auto",
    confidence_level: float = 0.95,
    *,
    estimand: Estimand = "population",
    interval: IntervalKind = "shortest",
    positive: Any = None,
    random_state: RandomState = 0,
    workers: int | None = None,
    progress: Progress | None = None,
    columns: Any = None,
    y_true: Any = None,
) -> Curve:
    """Estimate one classifier's whole precision-recall or ROC curve, with a band.

    Parameters
    ----------
    predictions
        What the classifiers said, and the labels there are: `Predictions`, or the path or frame
        that `read_predictions` would read.
    model
        Name of the classifier; may be left out where only one gives probabilities or scores.
    kind
        "precision-recall": precision at recall (g + .5) / 100, g = 0 .. 99, which is that at the
        highest threshold whose recall is at least so much. "roc": true-positive rate at those
        false-positive rates, on straight lines between thresholds.
    method
        Name of a method, or a label model. "auto" is "averaged-curves", or for
        probabilities "monotone-curves", fitted to the one classifier; any other is fitted to all
        of them.
    confidence_level
        Probability with which the band should contain the curve, at each place of it.
    estimand
        "population": the curve of the population the items come from. "sample": that of the
        items of `predictions` alone (without any width if every label is known).
    interval
        "shortest": at each point the shortest interval that holds so many of the draws.
        "equal-tailed": between their quantiles.
    positive
        The class that is set against the rest; None: `Predictions.positive`.
    random_state
        Seed; the same seed gives the same bits. None means 0.
    workers
        Threads; the answer does not depend on them. None: one per available processor.
    progress
        Called with (blocks done, blocks in all) of the step at hand.
    columns
        What the columns of a path or frame are, as in `read_predictions`.
    y_true
        Labels beside arrays, as for `fewlabels.estimate`.

    Raises
    ------
    UsageError, InputError
        One line that says what is wrong and how to mend it.

    Notes
    -----
    Labels are drawn from the posterior, known ones kept; each draw has a curve. The line is the
    pointwise median of the curves; the band holds `confidence_level` of them at each point, in
    the shortest interval or between quantiles (Welinder, Welling, Perona 2013, section 3). A
    precision near 1 has a long lower tail only, which the shortest interval leaves out. Draws in
    which the curve is undefined are left out, and counted in `warnings`.

    Examples
    --------
    >>> import numpy as np
    >>> import fewlabels as fl
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(500) < 0.3
    >>> score = 1 / (1 + np.exp(-rng.normal(3 * truth - 1.5, 1.5)))
    >>> labels = np.where(np.arange(500) < 20, truth, -1)
    >>> predictions = fl.Predictions(score[:, None], labels, models=["detector"])
    >>> found = fl.curve(predictions, method="bayesian-calibration")
    >>> list(found.to_dict())
    ['recall', 'precision', 'low', 'high']
    """
    return curves(
        predictions, model, (kind,), method, confidence_level, estimand=estimand,
        interval=interval, positive=positive, random_state=random_state, workers=workers,
        progress=progress, columns=columns, y_true=y_true,
    ).curves[kind]  # fmt: skip


def curves(
    predictions: Any,
    model: str | None = None,
    kinds: Sequence[str] = ("precision-recall", "roc"),
    method: str | LabelModel = "auto",
    confidence_level: float = 0.95,
    *,
    estimand: Estimand = "population",
    interval: IntervalKind = "shortest",
    positive: Any = None,
    random_state: RandomState = 0,
    workers: int | None = None,
    progress: Progress | None = None,
    columns: Any = None,
    y_true: Any = None,
) -> Curves:
    """Estimate curves of several kinds from one fit; see `fewlabels.curve` for the arguments.

    Raises
    ------
    UsageError, InputError
        One line that says what is wrong and how to mend it.
    """
    chosen = chosen_kinds(kinds)
    if interval not in get_args(IntervalKind):
        raise UsageError(unknown("interval", interval, get_args(IntervalKind)))
    with using_workers(workers):
        question = OneClassifier.from_arguments(
            predictions, columns, model, method, positive, level=confidence_level,
            estimand=estimand, random_state=random_state, workers=workers, progress=progress,
            y_true=y_true,
        )  # fmt: skip
        points = operating_points(question, between=True)
        values, drawn = points.measure(
            partial(_read, list(chosen.values()), points), question.progress
        )
    share = summarise(values[0], drawn[0], confidence_level, kind=interval)
    if np.isnan(share.value):  # nothing is known of it
        share = Interval(share.value, 0.0, 1.0)
    shared = {
        **question.facts(),
        "prevalence": share,
        "recalibrated": question.posterior.probabilities[:, question.positive],
        "draw_picture": partial(_picture, question, workers),
    }
    by_kind = {}
    for place, (name, kind) in enumerate(chosen.items()):
        at = slice(1 + 3 * place, 4 + 3 * place)
        by_kind[name] = _curve(question, kind, name, values[at], drawn[at], interval, shared)
    places = slice(1 + 3 * len(chosen), None)
    return Curves(
        curves=by_kind,
        by_threshold=_by_threshold(
            points, values[places], drawn[places], confidence_level, interval
        ),
        # Statuses go from what says least against an answer to what says most.
        status=max((one.status for one in by_kind.values()), key=list(Status).index),
        warnings=tuple(dict.fromkeys(text for one in by_kind.values() for text in one.warnings)),
        **shared,
    )


def chosen_kinds(kinds: Any) -> dict[str, Kind]:
    """Kinds of curves by name."""
    names = [kinds] if isinstance(kinds, str) else list(kinds)
    for name in names:
        if name not in KINDS:
            raise UsageError(unknown("kind", name, KINDS))
    if not names:
        raise UsageError(f"`kinds` must name at least one of {', '.join(KINDS)}; got none")
    return {name: KINDS[name] for name in names}


def _read(kinds: Sequence[Kind], points: Points, counts: Counts) -> list[Floats]:
    """Prevalence (D,), then of each kind the curve and thresholds (D, 100) and the area (D,).

    A draw in which a kind is undefined has NaN for an area. Last come precision and recall at
    some thresholds, (D, G), and the equal error rate (D,).
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        out = [counts.positives / (counts.positives + counts.negatives)]
    beyond = np.concatenate([points.thresholds, [-np.inf, np.inf]])
    at_cuts = counts.at_fixed_cuts()
    for kind in kinds:
        y, cut = kind.read(at_cuts)
        out += [y, beyond[cut.astype(np.int64)], kind.area_under(counts, exact=points.exact)]
    rates = Rates(at_cuts.at(_places(points)), (0.0, 0.0))
    return [*out, *(rates[name].T for name in _BY_THRESHOLD), equal_error_rate(counts)]


_BY_THRESHOLD = ("precision", "recall")


def _places(points: Points) -> Ints:
    """Up to 100 cuts, evenly among all."""
    last = len(points.thresholds) - 1
    return np.unique(np.linspace(0, last, min(last + 1, len(GRID))).round().astype(np.int64))


def _by_threshold(
    points: Points,
    values: Sequence[Floats],
    drawn: Sequence[Floats],
    confidence_level: float,
    interval: IntervalKind,
) -> ByThreshold:
    """The rates at every threshold, from the last values and draws of `_read`."""
    order = slice(None, None, -1)  # thresholds descend

    def clipped_band(rates: Floats, draws: Floats) -> Band:
        # Above all scores nothing is called positive, and its precision says nothing.
        here = ~np.isnan(rates).any(axis=0) & ~np.isnan(draws).any(axis=0)
        out = np.repeat([[0.0], [0.5], [1.0]], rates.shape[1], axis=1)
        if here.any():
            out[:, here] = band(rates[:, here], draws[:, here], confidence_level, kind=interval)
        low, value, high = out[:, order]
        return Band(value, low, high)

    precision, recall = (clipped_band(*pair) for pair in zip(values[:2], drawn[:2], strict=True))
    return ByThreshold(
        points.thresholds[_places(points)][order],
        precision,
        recall,
        summarise(values[2], drawn[2], confidence_level, kind=interval),
    )


def _curve(
    question: OneClassifier,
    kind: Kind,
    name: str,
    values: Sequence[Floats],
    drawn: Sequence[Floats],
    interval: IntervalKind,
    shared: Mapping[str, Any],
) -> Curve:
    """One curve, from what `_read` gives of it for the values and for the intervals."""
    fine, sure = ~np.isnan(values[2]), ~np.isnan(drawn[2])
    area = Interval(float("nan"), 0.0, 1.0)
    low, y, high, threshold = np.repeat([[0.0], [0.5], [1.0], [np.nan]], len(GRID), axis=1)
    if fine.any() and sure.any():
        low, y, high = band(values[0][fine], drawn[0][sure], question.level, kind=interval)
        # The lower median is itself a cut, and may be infinite.
        ordered = np.sort(values[1][fine], axis=0)
        threshold = ordered[(len(ordered) - 1) // 2]
        area = summarise(values[2], drawn[2], question.level, kind=interval)
    verdict = question.verdict(kind.area, area.value)
    partly = None
    if verdict.status is not Status.UNDEFINED and not sure.all():
        partly = (
            f"{kind.axes[1]} was undefined (no {kind.lacks} item) in {int((~sure).sum())} of "
            f"{len(sure)} draws, which are left out"
        )
    return Curve(
        kind=name, x=GRID.copy(), y=y, low=low, high=high, threshold=threshold, area=area,
        status=verdict.status, warnings=question.warnings(verdict.reason, partly), **shared,
    )  # fmt: skip


# --- the picture ----------------------------------------------------------------------------------

_BINS = 40
_PLACES = 60
_NEAR = 100
"""At most so many items are averaged at a place; more would add nothing."""


def _picture(question: OneClassifier, workers: int | None) -> dict[str, Any]:
    """Histogram of the scores by label, and P(positive) by score with a band, in plain values."""
    with using_workers(workers):
        recalibration = _recalibration(question)
    histogram = _histogram(question)
    drawn = {"histogram": histogram, "recalibration": recalibration}
    picture: dict[str, Any] = plain(drawn | _densities(question, histogram["edges"]))
    return picture


def _densities(question: OneClassifier, edges: Floats) -> dict[str, Any]:
    """Share of each class's scores in each bin, with a band; {} if the method has no densities.

    Source: Welinder, Welling, Perona (2013), figures 1A and 3: densities of the two classes, each
    times its share of the items, over the histogram of the scores.
    """
    rates = question.posterior.score_rates
    if rates is None or question.predictions.n_classes > 2 or question.positive != 1:
        return {}
    index = np.arange(min(question.posterior.parameters.size, VALUE_DRAWS))
    share, recall, fpr = rates.rates(edges, index)
    densities = {}
    for name, tail, weight in (("negative", fpr, 1 - share), ("positive", recall, share)):
        mass = np.maximum(-np.diff(tail, axis=0) * weight, 0.0).T
        low, value, high = band(mass, mass, question.level, kind="equal-tailed")
        densities[name] = {"value": value, "low": low, "high": high}
    return {"densities": densities}


def _histogram(question: OneClassifier) -> dict[str, Any]:
    scores = question.scores[question.rows]
    if question.probability:
        edges = np.linspace(0.0, 1.0, _BINS + 1)
    else:
        # Halves: the difference of two huge scores may not be a number.
        low, high = scores.min() / 2, scores.max() / 2
        room = max(high - low, abs(high) * 1e-6, 1e-300)
        middle = low + (high - low) / 2
        edges = 2 * (middle + room * np.linspace(-0.5, 0.5, _BINS + 1))
    # The outermost scores may lie a rounding error beyond the edges.
    scores = np.clip(scores, edges[0], edges[-1])
    labels = {"unlabeled": -1, "negative": 0, "positive": 1}
    counts = {
        name: np.histogram(scores[question.labels == label], edges)[0]
        for name, label in labels.items()
    }
    return {"edges": edges, **counts}


def _recalibration(question: OneClassifier) -> dict[str, Floats]:
    """Mean P(positive) of the unlabeled items around about 60 quantiles of the score."""
    rows = question.rows[question.labels < 0]
    if not question.posterior.infers:
        rows = rows[:0]  # it says nothing of items without a label
    # By their keys where scores tie, so that the order of the rows does not show.
    rows = rows[np.lexsort((question.predictions.keys[rows], question.scores[rows]))]
    groups = [group for group in np.array_split(rows, _PLACES) if len(group)]
    groups = [g[np.unique(np.linspace(0, len(g) - 1, _NEAR).astype(np.int64))] for g in groups]
    if not groups:
        return {name: np.empty(0) for name in ("score", "probability", "low", "high")}
    posterior = question.posterior
    posterior.prepare()
    parameters = posterior.interval_draws
    size = np.array([len(g) for g in groups])
    starts = np.cumsum(size) - size
    taken = np.concatenate(groups)

    def means(index: Ints) -> Floats:
        chance = parameters.block(index, taken)[:, question.positive]
        return (np.add.reduceat(chance, starts, axis=0) / size[:, None]).T

    chunks = index_blocks(min(parameters.size, VALUE_DRAWS), DRAWS_AT_ONCE)
    drawn = np.concatenate(list(map_blocks(means, chunks)))
    low, middle, high = band(drawn, drawn, question.level, kind="equal-tailed")
    score = np.add.reduceat(question.scores[taken] / np.repeat(size, size), starts)
    return {"score": score, "probability": middle, "low": low, "high": high}
