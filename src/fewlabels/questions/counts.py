"""Confusion counts at every cut of one classifier's scores, its rates there and its curves.

`evaluation.draws.LabelWeights` draws the labels and row weights; what is summed of them here is
their weight at each score, class by class, and the counts at all cuts are cumulative sums down the
ranking. Draws go in chunks, on threads, and items in blocks within a chunk, so memory does not grow
with items times draws, and workers do not show in the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from fewlabels.evaluation.draws import (
    DRAWS_AT_ONCE,
    INTERVAL_SOFT,
    LABELS,
    POINT,
    POPULATION,
    DrawKind,
    LabelWeights,
)
from fewlabels.evaluation.evaluator import INTERVAL_DRAWS
from fewlabels.kernels import ranking
from fewlabels.kernels.arrays import Array, Bools, Floats, Ints
from fewlabels.kernels.blocks import Progress, collect_blocks, index_blocks
from fewlabels.kernels.weighting import Indicator, Weighting, in_every_draw
from fewlabels.metrics.base import ratio
from fewlabels.questions.question import OneClassifier

EXACT_CUTS = 20_000
"""Up to so many distinct scores, each is a cut."""

COARSE_CUTS = 4_000
"""About so many cuts replace more. Between two of them are at most a 2,000th of the items and of
the expected positives, so that a curve is off by a fraction of its grid's step."""

VALUE_DRAWS = INTERVAL_DRAWS
"""Draws behind a median. Intervals may take more, so a value does not depend on their level."""

_FINE = 2_000
_ROOM = 2**23
_T = TypeVar("_T")


class PseudoCounts(NamedTuple):
    """The pseudo-observations of D draws: the first cut that counts each, its weights by class.

    `called` says whether it counts as called positive if a cut does not depend on the scores.
    """

    cut: Ints
    called: Bools
    positive: Floats
    negative: Floats


class Counts(NamedTuple):
    """Weighted counts of D draws: of the items at or above each of G cuts, and of all items.

    true_positives, false_positives (G, D), from the highest cut down; positives, negatives (D,).
    `pseudo` are the pseudo-observations among them, where there are any.
    """

    true_positives: Floats
    false_positives: Floats
    positives: Floats
    negatives: Floats
    pseudo: PseudoCounts | None = None

    def at_fixed_cuts(self) -> Counts:
        """The counts for rates at cuts, with pseudo-observations on either side of every cut.

        A pseudo-observation with the score of some item is rarely above a cut that few items reach:
        if these are all positive, precision would be 1 in every draw. As for the precision of hard
        predictions, it is above all cuts in half of the draws, and below in the others.
        """
        if self.pseudo is None:
            return self
        cut, called, positive, negative = self.pseudo
        there = cut <= np.arange(len(self.true_positives))[:, None]
        moves: Floats = called[None] - there.astype(np.float64)
        return self._replace(
            true_positives=np.maximum(self.true_positives + moves * positive, 0.0),
            false_positives=np.maximum(self.false_positives + moves * negative, 0.0),
            pseudo=None,
        )

    def at_prevalence(self, share: float) -> Counts:
        """The same draws where this share of all items is positive and P(score | class) is kept.

        The classes' weights are scaled (label shift; Saerens et al. 2002); NaN without one of them.
        """
        total = self.positives + self.negatives
        with np.errstate(divide="ignore", invalid="ignore"):
            more, fewer = share * total / self.positives, (1 - share) * total / self.negatives
            return self._replace(
                true_positives=self.true_positives * more,
                false_positives=self.false_positives * fewer,
                positives=self.positives * more,
                negatives=self.negatives * fewer,
            )

    def at(self, cuts: Ints) -> Counts:
        """The same draws at some of the cuts."""
        return self._replace(
            true_positives=self.true_positives[cuts], false_positives=self.false_positives[cuts]
        )


@dataclass(frozen=True)
class Draws:
    """`size` draws of counts, in chunks: `run` applies a function to each chunk."""

    size: int
    run: Callable[[Callable[[Counts], Any], Progress], list[Any]]

    def each(self, finish: Callable[[Counts], _T], progress: Progress) -> list[_T]:
        """`finish` of the counts of every chunk of draws, in order."""
        return self.run(finish, progress)

    def arrays(
        self, finish: Callable[[Counts], Sequence[Array]], progress: Progress
    ) -> list[Array]:
        """The arrays that `finish` makes of counts, draws first, each of them in one piece."""
        return [np.concatenate(chunks) for chunks in zip(*self.each(finish, progress), strict=True)]

    def cached(self) -> Draws:
        """The same draws, cached once they are made."""
        chunks: list[Counts] = []

        def run(finish: Callable[[Counts], _T], progress: Progress) -> list[_T]:
            if chunks:
                return collect_blocks(finish, chunks, progress)
            pairs = self.each(lambda counts: (counts, finish(counts)), progress)
            chunks.extend(counts for counts, _ in pairs)
            return [result for _, result in pairs]

        return Draws(self.size, run)


@dataclass(frozen=True)
class Points:
    """Cuts, and draws of the counts there: some for the value, and some for its interval.

    `thresholds` (G,) descend and are in the units of the file. With `exact`, every distinct score
    is one. `share` (G,) is what is at or above each: the share of the items and that of the
    expected positives, summed.
    """

    thresholds: Floats
    share: Floats
    value: Draws
    interval: Draws
    exact: bool

    def cached(self) -> Points:
        """These points, with the interval's draws cached if they fit in memory."""
        if len(self.thresholds) * self.interval.size > _ROOM:
            return self
        interval = self.interval.cached()
        value = interval if self.value is self.interval else self.value
        return replace(self, value=value, interval=interval)

    def measure(
        self, finish: Callable[[Counts], Sequence[Floats]], progress: Progress
    ) -> tuple[list[Floats], list[Floats]]:
        """What `finish` makes of the counts, draws first: for the values, and for intervals."""
        drawn = self.interval.arrays(finish, progress)
        if self.value is self.interval:
            return [array[:VALUE_DRAWS] for array in drawn], drawn
        return self.value.arrays(finish, progress), drawn


@dataclass(frozen=True, eq=False)
class Cuts:
    """Thresholds (G,), descending, and for each item the highest it reaches (n,); G = none.

    `share` (G,) is as in `Points`.
    """

    thresholds: Floats
    share: Floats
    codes: Ints
    exact: bool = True


def evenly(share: Floats, most: int) -> Ints:
    """At most so many of the cuts, upwards, that divide items and expected positives evenly.

    `share` (G,) is that of `Points`. The last cut is among them.
    """
    targets = np.linspace(0, share[-1], most + 1)[1:-1]
    return np.unique(np.append(np.searchsorted(share, targets), len(share) - 1))


def make_cuts(scores: Floats, weight: Floats, expected: Floats) -> Cuts:
    """Cuts at every distinct score, or about 4,000 that divide items and expected positives evenly.

    Arguments (n,): score, sampling weight and P(positive) of each item.
    """
    values, inverse = np.unique(scores, return_inverse=True)
    last = len(values) - 1
    codes = last - inverse.ravel()
    values = values[::-1]
    share = np.zeros(len(values))
    for mass in (weight, weight * expected) if len(values) else ():
        down = np.cumsum(np.bincount(codes, mass, minlength=len(values)))
        share += down / max(down[-1], np.finfo(float).tiny)
    if len(values) <= EXACT_CUTS:
        return Cuts(values, share, codes)
    keep = evenly(share, COARSE_CUTS)
    return Cuts(values[keep], share[keep], np.searchsorted(keep, codes), exact=False)


class _Down:
    """Weights of a class, and of all classes, of the items at or above each cut, and of all items.

    The items of no cut are behind the last one: sums are (G+1, D).
    """

    def __init__(self, items: Indicator, k: int) -> None:
        self.items, self.k = items, k
        self.sums: Floats = np.zeros((2, items.size, 1))

    def add(self, weights: Weighting, block: slice | None = None) -> None:
        """Add a block of items."""
        of_class = self.items.sums(weights.of_class(self.k), block)
        total = in_every_draw(self.items.sums(weights.total, block), weights.size)
        self.sums = self.sums + np.stack([of_class, total])
        if weights.pseudo is not None:
            item, draw, _, mass, total = weights.pseudo
            self.sums[:, self.items.part(block).codes[item], draw] += mass[:, self.k], total

    def counts(self, pseudo: PseudoCounts | None) -> Counts:
        """Of the draws, from the highest cut down."""
        of_class, total = np.cumsum(self.sums, axis=1, out=self.sums)
        # Subtraction can leave -1e-17 where there is nothing. The last row is of all items.
        others = np.maximum(total - of_class, 0.0)
        return Counts(of_class[:-1], others[:-1], of_class[-1], others[-1], pseudo)


class CutCounts:
    """Counts at the cuts of the scores of some items, draw by draw.

    `rows` (n,) are the items, as ascending indices into the question's predictions; intervals use
    `n_draws` draws.
    """

    def __init__(self, question: OneClassifier, rows: Ints, n_draws: int) -> None:
        posterior = question.posterior
        posterior.prepare()
        self.positive, self.n_draws = question.positive, n_draws
        self.weights = LabelWeights(question.predictions, posterior, rows, rows[:0], n_draws)
        expected = posterior.probabilities[rows, question.positive]
        self.cuts = make_cuts(question.scores[rows], self.weights.weight, expected)
        self.items = Indicator(self.cuts.codes, len(self.cuts.thresholds) + 1)

    def points(self, *, population: bool) -> Points:
        """Points whose intervals are of the Bayesian bootstrap, or of these very items."""
        certain, posterior = self.weights.certain, self.weights.posterior
        value = self._draws(1 if certain else VALUE_DRAWS, POINT)
        # A method that speaks of the labeled items alone says nothing of the others' labels, so the
        # band of these very items is the bootstrap's as well.
        if population or not posterior.infers:
            interval = self.population()
        else:
            interval = self.sample(1 if certain else self.n_draws)
            if certain or posterior.value_draws is posterior.interval_draws:
                value = interval  # of the same labels
        return Points(self.cuts.thresholds, self.cuts.share, value, interval, self.cuts.exact)

    def sample(self, size: int) -> Draws:
        """Counts of labels of these items themselves.

        None of the labels is arbitrary, as in the papers of these bands; the sample draws of
        metrics (`evaluation.draws.SAMPLE`) have an arbitrary label in about one of n items.
        """
        return self._draws(size, LABELS)

    def expected(self, size: int) -> Draws:
        """Expected counts under each parameter draw that intervals use."""
        return self._draws(size, INTERVAL_SOFT)

    def population(self) -> Draws:
        """Counts of the population: drawn labels, Exp(1) row weights and a pseudo-observation."""
        return self._draws(self.n_draws, POPULATION)

    def _draws(self, size: int, kind: DrawKind) -> Draws:
        """Counts of draws 0 .. size - 1 of a kind."""

        def pseudo_counts(index: Ints) -> PseudoCounts | None:
            pseudo = self.weights.placed(kind, index)
            if pseudo is None:
                return None
            mass = pseudo.mass[:, self.positive]
            called = pseudo.predicted == self.positive
            return PseudoCounts(self.cuts.codes[pseudo.item], called, mass, pseudo.total - mass)

        def run(finish: Callable[[Counts], _T], progress: Progress) -> list[_T]:
            return self.weights.summed(
                size,
                [(kind, partial(_Down, self.items, self.positive))],
                lambda sums, index: finish(sums[0].counts(pseudo_counts(index))),
                cells=2 * self.items.size,
                progress=progress,
            )

        return Draws(size, run)


def operating_points(question: OneClassifier, *, between: bool = False) -> Points:
    """Points at the cuts of the classifier's scores.

    `between` adds cuts between the scores, if the population's rates are known there.
    """
    population = question.estimand == "population"
    items = CutCounts(question, question.known_rows, question.n_draws)
    rates = question.posterior.score_rates
    # They are the rates of the last of two classes.
    theirs = question.predictions.n_classes == 2 and question.positive == 1
    if rates is None or not (population and theirs):
        return items.points(population=population)
    thresholds, share_above = (
        _refined(at_cuts) if between else at_cuts
        for at_cuts in (items.cuts.thresholds, items.cuts.share)
    )
    size = question.posterior.parameters.size

    def counts(index: Ints) -> Counts:
        share, recall, fpr = rates.rates(thresholds, index % size)
        return Counts(recall * share, fpr * (1 - share), share, 1 - share)

    def run(finish: Callable[[Counts], _T], progress: Progress) -> list[_T]:
        chunks = index_blocks(question.n_draws, DRAWS_AT_ONCE)
        return collect_blocks(lambda index: finish(counts(index)), chunks, progress)

    draws = Draws(question.n_draws, run)
    return Points(thresholds, share_above, draws, draws, exact=False)


def _refined(at_cuts: Floats) -> Floats:
    """Values at further cuts between each two, where there are few."""
    if not 1 < len(at_cuts) < _FINE:
        return at_cuts
    steps = -(-_FINE // (len(at_cuts) - 1))
    places = np.arange(steps * (len(at_cuts) - 1) + 1) / steps
    return np.interp(places, np.arange(len(at_cuts)), at_cuts)


GRID: Floats = (np.arange(100) + 0.5) / 100
"""Recall, or false-positive rate: (g + .5) / 100, g = 0 .. 99."""

_ROUNDING = 1e-12
"""Rates within this are equal, so that the unit of sampling weights does not matter."""


class Rates(Mapping[str, Floats]):
    """Name -> rate (G, D) at G cuts in D draws; NaN where undefined.

    Computed when asked for, from the counts; `cost` is that of a false positive and of a false
    negative, per item.
    """

    def __init__(self, counts: Counts, cost: tuple[float, float]) -> None:
        self.tp, self.fp = counts.true_positives, counts.false_positives
        self.fn = np.maximum(counts.positives - self.tp, 0.0)
        self.tn = np.maximum(counts.negatives - self.fp, 0.0)
        self.cost = cost
        self._known: dict[str, Floats] = {}

    def __getitem__(self, name: str) -> Floats:
        if name not in self._known:
            rate = FORMULAS[name](self)
            # Weights in another unit differ in the last digits, and bounds are often fractions.
            self._known[name] = rate if name in COSTS else np.round(rate, 12)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(FORMULAS)

    def __len__(self) -> int:
        return len(FORMULAS)

    @property
    def total(self) -> Floats:
        """Weight of all items, (G, D)."""
        total: Floats = self.tp + self.fp + self.fn + self.tn
        return total


def _precision(r: Rates) -> Floats:
    return ratio(r.tp, r.tp + r.fp)


def _recall(r: Rates) -> Floats:
    return ratio(r.tp, r.tp + r.fn)


def _specificity(r: Rates) -> Floats:
    return ratio(r.tn, r.tn + r.fp)


FORMULAS: Mapping[str, Callable[[Rates], Floats]] = {
    "precision": _precision,
    "ppv": _precision,
    "recall": _recall,
    "sensitivity": _recall,
    "tpr": _recall,
    "specificity": _specificity,
    "tnr": _specificity,
    "fpr": lambda r: ratio(r.fp, r.tn + r.fp),
    "fnr": lambda r: ratio(r.fn, r.tp + r.fn),
    "f1": lambda r: ratio(2 * r.tp, 2 * r.tp + r.fp + r.fn),
    "accuracy": lambda r: ratio(r.tp + r.tn, r.total),
    "balanced_accuracy": lambda r: (r["recall"] + r["specificity"]) / 2,
    "npv": lambda r: ratio(r.tn, r.tn + r.fn),
    "predicted_positive_rate": lambda r: ratio(r.tp + r.fp, r.total),
    "prevalence": lambda r: ratio(r.tp + r.fn, r.total),
    "cost": lambda r: ratio(r.cost[0] * r.fp + r.cost[1] * r.fn, r.total),
    "cost_of_all": lambda r: ratio(r.cost[0] * (r.tn + r.fp), r.total),
    "cost_of_none": lambda r: ratio(r.cost[1] * (r.tp + r.fn), r.total),
}
"""Every rate that a condition may be about; all but costs lie between 0 and 1. The last two are of
calling all items positive, and none."""

COSTS = ("cost", "cost_of_all", "cost_of_none")


Reading = tuple[Floats, Floats]


@dataclass(frozen=True)
class Kind:
    """A kind of curve.

    `axes` name abscissa and ordinate, `area` the metric that is the area under the curve; without
    items of the kind `lacks` it is undefined. Of counts, `read` gives the ordinate at each place of
    the grid and its cut, both (D, 100); the cut is -1 above all cuts and G below them, and
    undefined values are arbitrary. `defined` (D,) says which draws have a curve. `area_function`
    gives the area (D,) from the positives, and all items, in each step between cuts, both (G+1, D),
    from the highest down.
    """

    axes: tuple[str, str]
    area: str
    lacks: str
    read: Callable[[Counts], Reading]
    defined: Callable[[Counts], Bools]
    area_function: Callable[[Floats, Floats, bool], Floats]

    def area_under(self, counts: Counts, *, exact: bool) -> Floats:
        """The area (D,), interpolated between cuts that are not every score; NaN = undefined."""
        tp = np.diff(counts.true_positives, axis=0, prepend=0.0, append=counts.positives[None])
        fp = np.diff(counts.false_positives, axis=0, prepend=0.0, append=counts.negatives[None])
        # Differences of sums: rounding can leave -1e-16 where there is nothing.
        tp, fp = np.maximum(tp, 0.0), np.maximum(fp, 0.0)
        return np.where(self.defined(counts), self.area_function(tp, tp + fp, exact), np.nan)


def precision_at_recall(counts: Counts, grid: Floats = GRID) -> Reading:
    """Precision at the highest cut whose recall is at least that of the grid.

    Below all cuts, where a population's recall does not reach 1 on them, it is the prevalence.
    """
    precision, cut = np.zeros((2, len(counts.positives), len(grid)))
    for d, (tp, fp, p, n) in enumerate(_by_draw(counts)):
        if p > 0:
            at = np.searchsorted(tp / p, grid - _ROUNDING)
            hits, false = np.append(tp, p)[at], np.append(fp, n)[at]
            precision[d], cut[d] = hits / (hits + false), at
    return precision, cut


def tpr_at_fpr(counts: Counts, grid: Floats = GRID) -> Reading:
    """True-positive rate on the straight lines between cuts, from (0, 0) to (1, 1).

    Where several cuts share a false-positive rate it is that of the lowest. The cut is the lowest
    one whose false-positive rate is not above the grid's.
    """
    tpr, cut = np.zeros((2, len(counts.positives), len(grid)))
    for d, (tp, fp, p, n) in enumerate(_by_draw(counts)):
        if p > 0 and n > 0:
            x = np.concatenate([[0.0], fp / n, [1.0]])
            y = np.concatenate([[0.0], tp / p, [1.0]])
            tpr[d] = np.interp(grid + _ROUNDING, x, y)
            cut[d] = np.searchsorted(x[:-1], grid + _ROUNDING, side="right") - 2
    return tpr, cut


def equal_error_rate(counts: Counts) -> Floats:
    """Where false-positive and false-negative rate are equal, on straight lines, (D,); NaN = none.

    From the highest cut down the one rises from 0 and the other falls from 1.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        fpr, tpr = (
            counts.false_positives / counts.negatives,
            counts.true_positives / counts.positives,
        )
    ends = np.zeros((1, len(counts.positives)))
    fpr, fnr = np.concatenate([ends, fpr, 1 + ends]), np.concatenate([1 + ends, 1 - tpr, ends])
    after = (fnr <= fpr).argmax(axis=0)[None]
    before = np.maximum(after - 1, 0)
    (low, high), (far, near) = (
        [np.take_along_axis(rate, at, axis=0)[0] for at in (before, after)] for rate in (fpr, fnr)
    )
    gap = (far - low) - (near - high)
    share = np.where(gap > 0, (far - low) / np.where(gap > 0, gap, 1.0), 0.0)
    out: Floats = low + share * (high - low)
    return out


def _by_draw(counts: Counts) -> Iterator[tuple[Floats, Floats, float, float]]:
    """Each draw's counts, which then lie side by side in memory."""
    tp, fp = (np.ascontiguousarray(matrix.T) for matrix in counts[:2])
    return zip(tp, fp, counts.positives, counts.negatives, strict=True)


KINDS = {
    "precision-recall": Kind(
        ("recall", "precision"),
        "average_precision",
        "positive",
        precision_at_recall,
        lambda counts: counts.positives > 0,
        lambda own, total, exact: ranking.areas(own, total, several=not exact)[1],
    ),
    "roc": Kind(
        ("fpr", "tpr"),
        "roc_auc",
        "positive or no negative",
        tpr_at_fpr,
        lambda counts: (counts.positives > 0) & (counts.negatives > 0),
        lambda own, total, _: ranking.areas(own, total)[0],
    ),
}
