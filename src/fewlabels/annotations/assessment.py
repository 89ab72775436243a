"""assess(): every loss of every classifier against the label histograms, by any group."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from scipy.special import ndtri, stdtrit

from fewlabels import __version__
from fewlabels.annotations.agreement import Agreement, Independence, Scale, agreement_of, spread_of
from fewlabels.annotations.diagrams import make_diagrams
from fewlabels.annotations.label_histograms import Annotated, HistogramSums, Scheme
from fewlabels.annotations.losses import HistogramLosses, Loss, Losses, State, StatisticLosses
from fewlabels.annotations.statistics import DISAGREEMENT, LabelStatistic, concentrations
from fewlabels.annotations.statistics import statistic as resolve
from fewlabels.checks.arguments import (
    RandomState,
    bins_of,
    level_of,
    plain_array,
    seed_of,
    workers_of,
)
from fewlabels.data.inputs import predictions_of
from fewlabels.errors import InputError, Status, UsageError, plain_name, unknown
from fewlabels.estimates import Estimate, EstimateTable
from fewlabels.evaluation.groups import all_and_groups
from fewlabels.evaluation.input_facts import selection_facts
from fewlabels.evaluation.status import Reasons, judge_losses
from fewlabels.kernels.arrays import Array, Floats, Frozen, Ints
from fewlabels.kernels.blocks import using_workers
from fewlabels.kernels.votes import by_class
from fewlabels.methods.base import refuse_multiplicity
from fewlabels.predictions import Predictions
from fewlabels.report.shown import plain_values

METHOD = "label-histograms"

Panel = Literal["random", "fixed"]

_SURELY = 2.83
"""Standard errors that decide, as in `evaluation.guard`."""

_BELOW = (
    "EL or DL is below 0 by more than chance, which no squared distance is, so the labels of an "
    "item are not independent draws: the same few annotators may label every item; --panel fixed "
    "(panel='fixed') takes their labels for the distribution"
)

_DIAGRAMS = ("reliability", "disagreement_reliability", "dispersion")


def dependence_text(found: Independence, *, drawn: bool) -> str:
    """That labels are no independent draws, in words; with `drawn`, intervals count that."""
    p = f"p = {found.p_value:.3f}".replace("0.", ".", 1)
    return (
        f"who labels explains {found.explained:.0%} of the disagreement on an item ({p}), and of "
        f"the {found.n_annotators} annotators {found.panel_share:.0%} label it: "
        + (_DRAWN if drawn else "EL and DL take off as chance what are habits of these annotators")
        + "; --panel fixed (panel='fixed') takes their labels for the distribution"
    )


_DRAWN = "intervals count these annotators as drawn from many"

_FEWEST, _MOST_PARTS = 3, 30
"""Annotators who tell how annotators differ, at least; more than the second are taken together."""


@dataclass(frozen=True, eq=False, repr=False)
class Assessment(Frozen, EstimateTable):
    """What `assess` returns.

    `rows` are ordered: all items first, then the groups; classifiers as given; metrics as in
    `METRICS`, then those of the statistics. A row's `value` is NaN where it is undefined; `low` and
    `high` are NaN without a confidence level. `reliability`, `disagreement_reliability` and
    `dispersion` are those of all items, by classifier. `agreement` is that of the annotators among
    themselves, None where no item has two labels or the data were read in parts.
    """

    _page = "annotations"
    _row_fields = Estimate._fields

    rows: tuple[Estimate, ...]
    seed: int
    n_items: int
    n_labeled: int
    n_annotated: int
    n_labels: int
    labels_per_item: Mapping[int, int]
    models: tuple[str, ...]
    classes: tuple[Any, ...]
    reliability: tuple[Mapping[str, Any], ...] = field(repr=False)
    disagreement_reliability: tuple[Mapping[str, Any], ...] = field(repr=False)
    dispersion: tuple[Mapping[str, Any], ...] = field(repr=False)
    agreement: Agreement | None
    diagnostics: Mapping[str, Any] = field(repr=False)
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The JSON of the command line as a dictionary; NaN and infinities are None."""
        sizes = "seed", "n_items", "n_labeled", "n_annotated", "n_labels", "labels_per_item"
        shown = {
            "fewlabels": __version__,
            "method": METHOD,
            **{name: getattr(self, name) for name in (*sizes, "models")},
            "classes": [plain_name(c) for c in self.classes],
            "positive": str(self.classes[1]) if len(self.classes) == 2 else None,
            "estimates": [row._asdict() for row in self.rows],
            **{name: getattr(self, name) for name in _DIAGRAMS},
            "agreement": self.agreement and self.agreement.to_dict(),
            "diagnostics": self.diagnostics,
            "warnings": self.warnings,
        }
        out: dict[str, Any] = plain_values(shown)
        return out


def assess(
    predictions: Any,
    *,
    by: str | Sequence[str] | None = None,
    bins: int = 15,
    statistics: str | LabelStatistic | Sequence[str | LabelStatistic] = (),
    concentration: Any = None,
    panel: Panel = "random",
    scale: Scale = "nominal",
    annotators: Predictions | None = None,
    confidence_level: float | None = 0.95,
    random_state: RandomState = 0,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    columns: Any = None,
    positive: Any = None,
) -> Assessment:
    """Assess every classifier with probabilities against the label distribution.

    Parameters
    ----------
    predictions
        `Predictions`, or the path or frame that `read_predictions` would read. With a label
        histogram, or labels: a known label counts as one label where the item has no
        histogram. Whoever votes without probabilities or scores is an annotator. The items' weights
        are used.
    by
        Names of groups to assess separately as well; "domain" groups by the domain.
    bins
        Number of equal-width bins.
    statistics
        Statistics of several labels to score as well (`statistic`); each classifier predicts what
        its probabilities imply.
    concentration
        alpha0 of each item, shape (n,) for all classifiers, (n, M), or {model: (n,)}: labels are
        then Dirichlet-multinomial(alpha0 p) in the predictions of disagreement and statistics.
        None: multinomial.
    panel
        Whose labels are the label distribution: those of many annotators from whom the ones of an
        item are drawn at random ("random"), or of these very annotators ("fixed").
    scale
        How far classes are apart for the agreement of annotators; see `agreement`.
    annotators
        The same items with the votes that `predictions` has as counts already; None: `predictions`.
    confidence_level
        Of the bootstrap intervals; None computes none.
    random_state
        Seed; None means 0. All classifiers see the same draws.
    workers
        Threads; None: one per available processor.
    progress
        Called with (parts done, parts in all).
    columns, positive
        As for `fewlabels.estimate`.

    Raises
    ------
    InputError, UsageError
        If no classifier has probabilities and no item labels of two annotators, no item has a
        label, or an argument is not what is said here.

    Examples
    --------
    >>> import fewlabels as fl
    >>> predictions = fl.Predictions([[0.9], [0.4]], histogram=[[0, 3], [2, 1]], models=["a"])
    >>> found = fl.annotations.assess(predictions, confidence_level=None)
    >>> round(found.get("a", "EL").value, 3)
    -0.097
    """
    workers = workers_of(workers)
    predictions = predictions_of(predictions, columns, positive)
    refuse_multiplicity(predictions, "the losses of label histograms")
    if panel not in get_args(Panel):
        raise UsageError(unknown("panel", panel, get_args(Panel)))
    settings = asked_for(bins, statistics, confidence_level, random_state)
    who = predictions if annotators is None else annotators
    agreement = agreement_of(who, scale, settings.level, settings.seed)
    settings = settings._replace(agreement=agreement)
    silent = predictions.silent & predictions.gives("hard")
    predictions = predictions.with_annotators(silent, some=agreement is None)
    rows = LabeledRows.of(predictions)._replace(alpha=_alpha(concentration, predictions))
    if panel == "fixed":
        known = agreement.n_annotators if agreement is not None else None
        size = max(known or 0, int(rows.counts.sum(axis=1).max(initial=1)))
        votes = who.ballots[:, np.flatnonzero(who.silent & who.gives("hard"))]
        spread = spread_of(votes, who.n_classes) if known else None
        scheme = replace(settings.losses[0].scheme, panel=size, spread=spread)
        fixed = (replace(one, scheme=scheme) for one in settings.losses)
        settings = settings._replace(losses=tuple(fixed))
    elif agreement and agreement.independence and agreement.independence.doubted:
        settings = settings._replace(without=rows.without_each(who))
    facts = AnnotationCounts.of(predictions, rows.counts)
    facts.check(agreed=agreement is not None)
    groups = [(group_, j) for group_ in all_and_groups(predictions, by) for j in facts.judged]

    def cells() -> Iterator[Cell]:
        for done, (group, j) in enumerate(groups):
            items = rows.of_model(j, group.rows)
            others = (one.of_model(j, group.rows) for one in settings.without)
            yield Cell(j, group.name, settings.sums(items), items, others=[*others])
            if progress is not None:
                progress(done + 1, len(groups))

    with using_workers(workers):
        return assessed(
            settings, facts, cells(), predictions, predictions.models, predictions.notes,
            tuple(predictions.models[j] for j in sorted(rows.alpha)),
        )  # fmt: skip


class Judged:
    """Items with a label, a prediction of one classifier, and a positive weight.

    `pair` is found from the counts and probabilities in `data`. Labels are Dirichlet-multinomial
    with concentrations `alpha` (n,) around the probabilities; None: multinomial.
    """

    def __init__(self, data: Annotated, alpha: Floats | None) -> None:
        self._alpha = alpha
        self.data = data._replace(pair=DISAGREEMENT.expected(data.probabilities, alpha))
        self._scored: dict[str, Any] = {}

    def of(self, losses: Losses[Any]) -> Any:
        """The items that some losses are of."""
        if not isinstance(losses, StatisticLosses):
            return self.data
        if losses.name not in self._scored:
            predicted = losses.phi.expected(self.data.probabilities, self._alpha)
            scored = losses.scored(self.data.counts, predicted, self.data.weight)
            self._scored[losses.name] = scored
        return self._scored[losses.name]


class LabeledRows(NamedTuple):
    """Counts (n, K), probabilities (n, M, K), weights (n,), None where all are equal.

    `alpha` holds concentrations (n,) of the classifiers that have some, by index.
    """

    counts: Array
    probabilities: Floats
    weight: Floats | None
    alpha: Mapping[int, Floats] = {}

    @staticmethod
    def of(predictions: Predictions) -> LabeledRows:
        """Those of predictions: of an item without a histogram a known label counts as one."""
        counts, p = predictions.as_histograms().histogram, predictions.probabilities
        assert counts is not None
        if p is None:
            p = np.full((len(counts), predictions.n_models, predictions.n_classes), np.nan)
        weight = predictions.weight_of_labels
        return LabeledRows(counts, p, None if (weight == weight[0]).all() else weight)

    def without_each(self, predictions: Predictions) -> tuple[LabeledRows, ...]:
        """These without the labels of each annotator who votes; of many, of each part of them."""
        people = np.flatnonzero(predictions.silent & predictions.gives("hard"))
        size = min(len(people), _MOST_PARTS)
        if size < _FEWEST:
            return ()
        parts = (
            predictions.select_models([predictions.models[j] for j in people[part::size]])
            for part in range(size)
        )
        votes = (by_class(one.vote_counts, one.n_classes).sum(axis=1) for one in parts)
        return tuple(
            self._replace(counts=self.counts - np.asarray(own).reshape(self.counts.shape))
            for own in votes
        )

    def of_model(self, model: int, index: Ints) -> Judged | None:
        """The rows among some that count for a classifier; None where none does."""
        z = self.probabilities[index, model]
        counted = self.counts[index].any(axis=1) & ~np.isnan(z[:, 0])
        if self.weight is not None:
            counted &= self.weight[index] > 0
        if not counted.any():
            return None
        rows, alpha = index[counted], self.alpha.get(model)
        weight, alpha = (None if array is None else array[rows] for array in (self.weight, alpha))
        return Judged(Annotated(self.counts[rows], z[counted], None, weight), alpha)


CellSums = dict[str, State]
"""Sums of one classifier and group: states by loss, and items by number of labels. They add over
batches and files; empty if no item has a label and a prediction."""

_ENOUGH = "items"


class AssessmentSettings(NamedTuple):
    """What is asked of every classifier and group; `level` None asks for no intervals.

    `without` are the rows without each of the annotators, where these differ.
    """

    losses: tuple[Losses[Any], ...]
    level: float | None
    seed: int
    agreement: Agreement | None = None
    without: tuple[LabeledRows, ...] = ()

    def for_annotators(
        self, value: float, ends: tuple[float, float], others: Floats, bounds: tuple[float, float]
    ) -> tuple[float, float]:
        """An interval over items, with what annotators add who are drawn from many.

        Jackknife over annotators (Efron 1982, chapter 3): G values without one each have the
        variance (G - 1) / G sum (value_g - mean)^2, with G - 1 degrees of freedom.
        """
        assert self.level is not None
        g = len(others)
        variance = (g - 1) / g * float(((others - others.mean()) ** 2).sum())
        reach = float(stdtrit(g - 1, (1 + self.level) / 2)) * math.sqrt(variance)
        low, high = (value + math.copysign(math.hypot(end - value, reach), sign)
                     for end, sign in zip(ends, (-1, 1), strict=True))  # fmt: skip
        return max(low, bounds[0]), min(high, bounds[1])

    def doubt(
        self, loss: Loss, value: float, high: float, drawn: bool
    ) -> tuple[Status, str] | None:
        """Why labels are no independent draws, where a loss rests on that, or no fair sample.

        With `drawn` the interval counts annotators as drawn from many.
        A squared distance is below 0 by 2.83 standard errors once in 400 times by chance.
        """
        random = loss.independent and not self.losses[0].scheme.fixed
        if random and self.level is not None:
            # The half-width in standard errors.
            far = _SURELY / float(ndtri((1 + self.level) / 2))
            if value + far * (high - value) < 0:
                return Status.CONTRADICTED, f"contradicted: {_BELOW}"
        people = self.agreement
        if people and people.diagnostics:
            return Status.ASSUMPTION, ""  # see its notes
        if random and people and people.independence and people.independence.doubted:
            text = dependence_text(people.independence, drawn=drawn)
            return (Status.OK, text) if drawn else (Status.ASSUMPTION, f"assumption: {text}")
        return None

    @property
    def labels(self) -> list[int]:
        """Numbers of labels that some metric takes."""
        return sorted({losses.labels(loss) for losses in self.losses for loss in losses.metrics})

    def sums(self, items: Judged | None) -> CellSums:
        """The sums over some items."""
        if items is None:
            return {}
        size = items.data.counts.sum(axis=1)
        # What nobody's labels can tell is not predicted either: large orders take long.
        states = {
            losses.name: losses.sums(items.of(losses))
            for losses in self.losses
            if size.max() >= losses.order
        }
        return {_ENOUGH: [(size[:, None] >= self.labels).sum(axis=0)], **states}


def asked_for(
    bins: Any, statistics: Any, confidence_level: Any, random_state: Any
) -> AssessmentSettings:
    """The settings from the arguments of `assess`, checked."""
    scheme = Scheme(bins_of(bins), dispersion=True)
    statistic_losses = (
        StatisticLosses.from_statistic(phi, scheme) for phi in resolve_statistics(statistics)
    )
    losses: tuple[Losses[Any], ...] = (HistogramLosses(scheme), *statistic_losses)
    return AssessmentSettings(losses, level_of(confidence_level), seed_of(random_state))


def added(sums: CellSums, more: CellSums) -> CellSums:
    """The added sums of two disjoint sets of items."""
    out = dict(sums)
    for name, state in more.items():
        have = sums.get(name)
        out[name] = state if have is None else [a + b for a, b in zip(have, state, strict=True)]
    return out


class AnnotationCounts(NamedTuple):
    """Counts of all items together, which add up over parts.

    `sizes` maps a number of labels, 0 included, to how many items have it; `given` (M,) and `own`
    (M,) are how many items, and how many labeled ones, each classifier has probabilities for.
    """

    n_items: int
    n_labeled: int
    sizes: Counter[int]
    given: Ints
    own: Ints

    @staticmethod
    def of(predictions: Predictions, counts: Array) -> AnnotationCounts:
        """Those of predictions and their label counts (n, K)."""
        provided = predictions.has_probabilities
        return AnnotationCounts(
            predictions.n_items,
            predictions.n_labeled,
            Counter(counts.sum(axis=1).astype(np.int64).tolist()),
            provided.sum(axis=0),
            (np.asarray(counts.any(axis=1))[:, None] & provided).sum(axis=0),
        )

    def plus(self, other: AnnotationCounts) -> AnnotationCounts:
        """Those of both parts of the items."""
        mine: tuple[Any, ...] = self
        return AnnotationCounts(*(a + b for a, b in zip(mine, other, strict=True)))

    @property
    def judged(self) -> list[int]:
        """The classifiers with probabilities."""
        return np.flatnonzero(self.given).tolist()

    @property
    def n_annotated(self) -> int:
        """Items with a label."""
        return self.n_items - self.sizes[0]

    def check(self, *, agreed: bool = False) -> None:
        """Refuse items without labels or predictions, but where people who `agreed` are judged."""
        if not self.n_annotated:
            raise InputError(
                "no item has a label; give how many annotators chose each class (`histogram`, in a "
                "file: columns h__<class>), or `labels`"
            )
        if not self.given.any() and not agreed:
            raise InputError(
                "no classifier has probabilities, which the losses of label histograms are of; "
                "pass `probabilities` (in a file: columns p__<model>__<class>), or labels of two "
                "annotators on an item, for their agreement"
            )


def resolve_statistics(value: Any) -> tuple[LabelStatistic, ...]:
    """The statistics asked for, by their names or as they are."""
    many = [value] if isinstance(value, (str, LabelStatistic)) else list(value)
    out = tuple(resolve(one) for one in many)
    names = [phi.name for phi in out]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"`statistics` must have different names; got {name!r} twice")
        if name == DISAGREEMENT.name:
            raise UsageError("disagreement is always assessed; leave it out of `statistics`")
    return out


def _alpha(value: Any, predictions: Predictions) -> dict[int, Floats]:
    """Concentration (n,) of each classifier that has one, by its index."""
    n, models = predictions.n_items, predictions.models
    if value is None:
        return {}
    if isinstance(value, Mapping):
        for name in value:
            if name not in models:
                raise UsageError(unknown("model", name, models))
        return {models.index(m): concentrations(alpha, n) for m, alpha in value.items()}
    value = plain_array("concentration", value)
    if value.ndim == 2:
        if value.shape != (n, len(models)):
            raise InputError(
                f"`concentration` must have the shape ({n}, {len(models)}), a column per "
                f"classifier; got {value.shape}"
            )
        return {j: concentrations(value[:, j], n) for j in range(len(models))}
    return dict.fromkeys(range(len(models)), concentrations(value, n))


class Cell(NamedTuple):
    """One classifier, by its index, on one group of items.

    Intervals are drawn from `items`: all of them or, if `sampled`, a random sample; None if there
    are none. `others` are the items without each of the annotators, where these differ.
    """

    model: int
    group: str | None
    sums: CellSums
    items: Judged | None
    sampled: bool = False
    others: Sequence[Judged | None] = ()

    def rows(self, settings: AssessmentSettings, model: str, notes: Reasons) -> Iterator[Estimate]:
        """An estimate per metric, by the name of the classifier."""
        level = math.nan if settings.level is None else settings.level
        enough = dict.fromkeys(settings.labels, 0)
        if self.sums:
            enough = dict(zip(settings.labels, self.sums[_ENOUGH][0].tolist(), strict=True))
        for losses in settings.losses:
            state, ends = self.sums.get(losses.name), {}
            value = {} if state is None else losses.values(state)
            if state is not None and settings.level is not None and self.items is not None:
                items = self.items.of(losses)
                ends = losses.intervals(
                    items, state, settings.level, settings.seed, sampled=self.sampled
                )
            without = [
                losses.values(losses.sums(one.of(losses)))
                for one in (self.others if ends else ()) if one is not None
            ]  # fmt: skip
            for loss in losses.metrics:
                labels = losses.labels(loss)
                why = "no item with a label and a prediction, so no losses"
                if self.sums:
                    why = losses.lacking(loss, enough[labels])
                v = value.get(loss.name, math.nan)
                low, high = ends.get(loss.name, (math.nan, math.nan))
                each = np.array([values[loss.name] for values in without])
                drawn = len(each) >= _FEWEST and not np.isnan(each).any()
                if drawn:
                    bounds = losses.bounds(loss)
                    low, high = settings.for_annotators(v, (low, high), each, bounds)
                verdict = judge_losses(v, enough[labels], labels, why, self.group)
                status = verdict.status
                doubt = settings.doubt(loss, v, high, drawn) if status is Status.OK else None
                if doubt is not None:
                    status = doubt[0]
                    if doubt[1]:
                        notes.add(doubt[1], model)
                if verdict.reason:
                    notes.add(verdict.reason, model)
                yield Estimate(
                    model, losses.full_name(loss), self.group, v, low, high, level, status
                )


def assessed(
    settings: AssessmentSettings,
    facts: AnnotationCounts,
    cells: Iterable[Cell],
    items: Predictions,
    models: Sequence[str],
    remarks: Sequence[str],
    concentration: Sequence[str] = (),
) -> Assessment:
    """The assessment: all items first, then the groups, each with every classifier.

    `items` are those with labels and the others, or samples of these.
    """
    rows: list[Estimate] = []
    diagrams: dict[str, list[dict[str, Any]]] = {}
    notes, classes, agreement = Reasons(), items.classes, settings.agreement
    selection: dict[str, Any] = {}
    if items.n_models:
        selection, warnings = selection_facts(items, METHOD, distribution=True)
        for sentence in warnings:
            notes.add(sentence)
    for cell in cells:
        model = models[cell.model]
        rows += cell.rows(settings, model, notes)
        if cell.group is None:
            sums = HistogramSums(*cell.sums[""]) if cell.sums else None
            for name, by_kind in make_diagrams(sums, settings.level, classes).items():
                diagrams.setdefault(name, []).extend({"model": model, **row} for row in by_kind)
    labeled, panel = facts.n_annotated, settings.losses[0].scheme.panel
    for j in facts.judged:
        if facts.own[j] < labeled:
            notes.add(
                f"has predictions for {int(facts.own[j]):,} of the {labeled:,} annotated items "
                "only: its losses are of those, and do not compare with others'",
                models[j],
            )
    for j in np.flatnonzero(facts.given == 0).tolist():
        notes.add("not-applicable: no probabilities, so no losses", models[j])
    labels = {size: items for size, items in sorted(facts.sizes.items()) if size}
    return Assessment(
        rows=tuple(rows),
        seed=settings.seed,
        n_items=facts.n_items,
        n_labeled=facts.n_labeled,
        n_annotated=labeled,
        n_labels=sum(size * items for size, items in labels.items()),
        labels_per_item=labels,
        models=tuple(models[j] for j in facts.judged),
        classes=classes,
        **{name: tuple(diagrams.get(name, ())) for name in _DIAGRAMS},
        agreement=agreement,
        diagnostics={
            "bins": settings.losses[0].scheme.bins,
            "statistics": [losses.name for losses in settings.losses[1:]],
            "concentration": list(concentration),
            "panel": int(panel) if math.isfinite(panel) else None,
            "n_items_of_two_labels": sum(n for size, n in labels.items() if size >= 2),
            "disagreement": _rates(diagrams.get("disagreement_reliability", ())),
            **(agreement.diagnostics if agreement else {}),
            **selection,
        },
        warnings=(*remarks, *notes.sentences(), *(agreement.notes if agreement else ())),
    )


def _rates(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """How often two labels of an item differ, and how often each classifier says they will."""
    out: dict[str, dict[str, float]] = {}
    for row in rows:
        rates = out.setdefault(row["model"], {"observed": 0.0, "predicted": 0.0, "n_items": 0})
        rates["observed"] += row["share"] * row["label_frequency"]
        rates["predicted"] += row["share"] * row["mean_probability"]
        rates["n_items"] += row["n_items"]
    return out
