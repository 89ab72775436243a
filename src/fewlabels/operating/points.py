"""Draws of the confusion counts at every cut of one classifier's scores.

A draw is a set of labels, from a draw of the posterior's parameters; the counts at all cuts are
its cumulative sums down the ranking. Draws go in chunks, on threads, and items in blocks within a
chunk, so memory does not grow with items times draws, and workers do not show in the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np

from fewlabels.evaluation.draws import LabelWeights
from fewlabels.evaluation.evaluator import INTERVAL_DRAWS
from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.binning import Indicator
from fewlabels.kernels.blocks import map_blocks, spans
from fewlabels.operating.question import Question
from fewlabels.posterior import Fixed, LabelPosterior, ParameterDraws, ScoreRates, draw_labels

EXACT_CUTS = 20_000
"""Up to so many distinct scores every one is a cut."""

COARSE_CUTS = 4_000
"""About so many cuts stand in for more. Between two of them lies at most a 2,000th of the items,
and as little of the positives expected, so a curve is off by a fraction of its grid's step."""

VALUE_DRAWS = INTERVAL_DRAWS
"""Draws behind a median. Intervals may take more, so a value does not depend on their level."""

_WIDTH = 50
_BLOCK = 2**20
_ROOM = 2**23
_T = TypeVar("_T")


class Counts(NamedTuple):
    """Weighted counts of D draws: of the items at or above each of G cuts, and of all items.

    true_positives, false_positives (G, D), from the highest cut down; positives, negatives (D,).
    """

    true_positives: Floats
    false_positives: Floats
    positives: Floats
    negatives: Floats


@dataclass(frozen=True)
class Sampler:
    """Counts of the draws 0 .. size-1, by their numbers."""

    counts: Callable[[Ints], Counts]
    size: int

    def each(
        self, finish: Callable[[Counts], _T], progress: Callable[[int, int], None]
    ) -> list[_T]:
        """`finish` of the counts of every chunk of draws, in order."""
        chunks = [np.arange(s.start, s.stop) for s in spans(self.size, _WIDTH)]
        parts = []
        for part in map_blocks(lambda index: finish(self.counts(index)), chunks):
            parts.append(part)
            progress(len(parts), len(chunks))
        return parts

    def kept(self, progress: Callable[[int, int], None]) -> Sampler:
        """The same draws, made once and remembered."""
        parts = self.each(lambda counts: counts, progress)
        return Sampler(lambda index: parts[int(index[0]) // _WIDTH], self.size)

    def only(self, row: int) -> Sampler:
        """The same draws at one of the cuts."""

        def one(index: Ints) -> Counts:
            tp, fp, positives, negatives = self.counts(index)
            return Counts(tp[row : row + 1], fp[row : row + 1], positives, negatives)

        return Sampler(one, self.size)


@dataclass(frozen=True)
class Points:
    """Cuts, and draws of the counts there: some for the value, and some for its interval.

    `thresholds` (G,) descend and are in the units of the file. With `exact`, every distinct score
    is one.
    """

    thresholds: Floats
    value: Sampler
    interval: Sampler
    exact: bool

    def kept(self, progress: Callable[[int, int], None]) -> Points:
        """These points with the interval's draws remembered, where there is room for them."""
        if len(self.thresholds) * self.interval.size > _ROOM:
            return self
        interval = self.interval.kept(progress)
        value = interval if self.value is self.interval else self.value
        return replace(self, value=value, interval=interval)

    def only(self, row: int) -> Points:
        """One of these points."""
        interval = self.interval.only(row)
        value = interval if self.value is self.interval else self.value.only(row)
        return Points(self.thresholds[row : row + 1], value, interval, self.exact)

    def measure(
        self,
        finish: Callable[[Counts], Sequence[Floats]],
        progress: Callable[[int, int], None],
    ) -> tuple[list[Floats], list[Floats]]:
        """What `finish` makes of the counts, draws first: for the values, and for intervals."""
        drawn = _joined(self.interval.each(finish, progress))
        if self.value is self.interval:
            return [part[:VALUE_DRAWS] for part in drawn], drawn
        return _joined(self.value.each(finish, progress)), drawn


def _joined(parts: Sequence[Sequence[Floats]]) -> list[Floats]:
    return [np.concatenate(same) for same in zip(*parts, strict=True)]


@dataclass(frozen=True, eq=False)
class Cuts:
    """Thresholds (G,), descending, and for each item the highest it reaches (n,); G = none."""

    thresholds: Floats
    codes: Ints
    exact: bool = True


def cuts_of(scores: Floats, weight: Floats, expected: Floats) -> Cuts:
    """Every distinct score, or about 4,000 that part items and expected positives evenly.

    Parameters
    ----------
    scores, weight, expected
        Score, sampling weight and P(positive) of each item, (n,).
    """
    values, inverse = np.unique(scores, return_inverse=True)
    last = len(values) - 1
    codes = last - inverse.ravel()
    values = values[::-1]
    if len(values) <= EXACT_CUTS:
        return Cuts(values, codes)
    share = np.zeros(len(values))
    for mass in (weight, weight * expected):
        down = np.cumsum(np.bincount(codes, mass, minlength=len(values)))
        share += down / max(down[-1], np.finfo(float).tiny)
    targets = np.linspace(0, share[-1], COARSE_CUTS + 1)[1:-1]
    keep = np.unique(np.append(np.searchsorted(share, targets), last))
    return Cuts(values[keep], np.searchsorted(keep, codes), exact=False)


def points_of(question: Question, n_draws: int, *, between: bool = False) -> Points:
    """Points at the cuts of the classifier's scores.

    Parameters
    ----------
    n_draws
        How many draws intervals use.
    between
        Whether to add cuts between the scores, where the population's rates are known there.
    """
    posterior = question.posterior
    posterior.prepare()
    rows, scores = question.answered, question.scores[question.answered]
    expected = posterior.probabilities[rows, question.positive]
    cuts = cuts_of(scores, question.predictions.weight[rows], expected)
    population = question.estimand == "population"
    # They are the rates of the last of two classes.
    theirs = question.predictions.n_classes == 2 and question.positive == 1
    if posterior.score_rates is not None and population and theirs:
        thresholds = _refined(cuts.thresholds) if between else cuts.thresholds
        return _rate_points(posterior.score_rates, posterior, thresholds, n_draws)
    items = ItemDraws(question, rows, cuts, n_draws)
    return items.points(bootstrap=population or posterior.support is not None)


class ItemDraws:
    """Counts at cuts of labels that are drawn for some items, or expected.

    Parameters
    ----------
    rows
        The items, indices into the question's predictions, ascending, (n,).
    cuts
        The cuts, with a code for each of these items.
    """

    def __init__(self, question: Question, rows: Ints, cuts: Cuts, n_draws: int) -> None:
        self.predictions = question.predictions
        self.posterior = question.posterior
        self.positive = question.positive
        self.rows = rows
        self.cuts = cuts
        self.n_draws = n_draws
        self.weights = LabelWeights(self.predictions, self.posterior, rows, rows[:0], n_draws)
        self.items = Indicator(cuts.codes, len(cuts.thresholds) + 1)
        self.values: ParameterDraws = self.posterior.parameters
        if self.posterior.value_from == "marginals":
            self.values = Fixed(self.posterior.probabilities)
        self.doubted = self.posterior.interval_parameters or self.posterior.parameters

    def points(self, *, bootstrap: bool) -> Points:
        """Points whose intervals are of these very items, or of the Bayesian bootstrap."""
        certain = self.weights.certain
        value = Sampler(self.point, 1 if certain else VALUE_DRAWS)
        if bootstrap:
            interval = Sampler(self.bootstrap, self.n_draws)
        elif certain or self.values is self.doubted:
            value = interval = Sampler(self.sample, 1 if certain else self.n_draws)
        else:
            interval = Sampler(self.sample, self.n_draws)
        return Points(self.cuts.thresholds, value, interval, self.cuts.exact)

    def point(self, index: Ints) -> Counts:
        """Counts of labels drawn for a value."""
        return self._of_labels(self.values, index)

    def sample(self, index: Ints) -> Counts:
        """Counts of labels of these very items; a known label leaves nothing to draw."""
        return self._of_labels(self.doubted, index)

    def bootstrap(self, index: Ints) -> Counts:
        """Counts of the population: drawn labels, Exp(1) row weights and a pseudo-item."""
        if not len(self.rows):
            return self._counts(*np.zeros((2, len(self.cuts.thresholds) + 1, len(index))))
        k, size = self.positive, len(index)

        def sides(block: slice) -> Floats:
            weights = self.weights.population(index, block)
            own = weights[:, k]
            rest = weights[:, 1 - k] if weights.shape[1] == 2 else weights.sum(axis=1) - own
            return np.concatenate([own, np.maximum(rest, 0.0)], axis=1)

        both = self._down(sides, size, 2 * size)
        return self._counts(both[:, :size], both[:, size:])

    def expected(self, index: Ints) -> Counts:
        """Expected counts under each parameter draw that intervals use."""

        def chance(block: slice) -> Floats:
            chances = self.chances(self.doubted, index, block)[:, self.positive]
            return chances * self.weights.weight[block, None]

        own = self._down(chance, len(index), len(index))
        return self._counts(own, np.maximum(self._all - own, 0.0))

    def chances(self, parameters: ParameterDraws, index: Ints, block: slice | Ints) -> Floats:
        """P(label | parameter draw) of some of the items, (b, K, D)."""
        everything = len(self.rows) == self.predictions.n_items
        # A slice of all rows is a view; indices would copy the features of the block.
        return parameters.block(index % parameters.size, block if everything else self.rows[block])

    def _of_labels(self, parameters: ParameterDraws, index: Ints) -> Counts:
        weight, known = self.weights.weight, self.weights.known

        def drawn(block: slice) -> Floats:
            chances = self.chances(parameters, index, block)
            labels = draw_labels(chances, self.weights.keys[block], index, self.posterior.salt)
            told = np.flatnonzero(known[block] >= 0)
            labels[told] = known[block][told, None]
            own = (labels == self.positive).astype(np.float64)
            own *= weight[block, None]
            return own

        own = self._down(drawn, len(index), len(index))
        return self._counts(own, np.maximum(self._all - own, 0.0))

    def _down(self, quantity: Callable[[slice], Floats], draws: int, width: int) -> Floats:
        """Sums (G+1, width) over the items at or above each cut, and over all items."""
        height = max(_BLOCK // (self.predictions.n_classes * draws), 1)
        total = np.zeros((self.items.size, width))
        for block in spans(len(self.rows), height):
            total += self.items.sums(quantity(block), block)
        return np.cumsum(total, axis=0, out=total)

    @cached_property
    def _all(self) -> Floats:
        """Weights of the items at or above each cut, and of all, (G+1, 1)."""
        return self._down(lambda block: self.weights.weight[block, None], 1, 1)

    @staticmethod
    def _counts(own: Floats, rest: Floats) -> Counts:
        return Counts(own[:-1], rest[:-1], own[-1], rest[-1])


_FINE = 2_000


def _refined(thresholds: Floats) -> Floats:
    """As many thresholds between each two, where there are few."""
    if not 1 < len(thresholds) < _FINE:
        return thresholds
    steps = -(-_FINE // (len(thresholds) - 1))
    places = np.arange(steps * (len(thresholds) - 1) + 1) / steps
    return np.interp(places, np.arange(len(thresholds)), thresholds)


def _rate_points(
    known: ScoreRates, posterior: LabelPosterior, thresholds: Floats, n_draws: int
) -> Points:
    """Points of a population whose rates follow from the parameters alone."""

    def counts(index: Ints) -> Counts:
        share, recall, fpr = known.rates(thresholds, index % posterior.parameters.size)
        return Counts(recall * share, fpr * (1 - share), share, 1 - share)

    sampler = Sampler(counts, n_draws)
    return Points(thresholds, sampler, sampler, exact=False)
