"""Confusion counts at every cut of one classifier's scores: a statistic of label weights.

`evaluation.draws.LabelWeights` draws the labels and row weights; what is summed of them here is
their weight at each score, class by class, and the counts at all cuts are cumulative sums down the
ranking. Draws go in chunks, on threads, and items in blocks within a chunk, so memory does not grow
with items times draws, and workers do not show in the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np

from fewlabels.evaluation.draws import DRAWS_AT_ONCE, LabelWeights
from fewlabels.evaluation.evaluator import INTERVAL_DRAWS
from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.binning import Indicator
from fewlabels.kernels.blocks import Progress, collect_blocks, index_blocks
from fewlabels.questions.question import Question

EXACT_CUTS = 20_000
"""Up to so many distinct scores every one is a cut."""

COARSE_CUTS = 4_000
"""About so many cuts stand in for more. Between two of them lies at most a 2,000th of the items,
and as little of the positives expected, so a curve is off by a fraction of its grid's step."""

VALUE_DRAWS = INTERVAL_DRAWS
"""Draws behind a median. Intervals may take more, so a value does not depend on their level."""

_FINE = 2_000
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

    @staticmethod
    def of(positive: Floats, negative: Floats) -> Counts:
        """From weights (G+1, D) of the positive and the negative items at or above each cut.

        The last row is of all items.
        """
        return Counts(positive[:-1], negative[:-1], positive[-1], negative[-1])

    def at(self, cut: int) -> Counts:
        """The same draws at one of the cuts."""
        return self._replace(
            true_positives=self.true_positives[cut : cut + 1],
            false_positives=self.false_positives[cut : cut + 1],
        )


class Draws(NamedTuple):
    """Counts of the draws 0 .. size-1, by their numbers."""

    counts: Callable[[Ints], Counts]
    size: int

    def each(self, finish: Callable[[Counts], _T], progress: Progress) -> list[_T]:
        """`finish` of the counts of every chunk of draws, in order."""
        chunks = index_blocks(self.size, DRAWS_AT_ONCE)
        return collect_blocks(lambda index: finish(self.counts(index)), chunks, progress)


@dataclass(frozen=True)
class Points:
    """Cuts, and draws of the counts there: some for the value, and some for its interval.

    `thresholds` (G,) descend and are in the units of the file. With `exact`, every distinct score
    is one.
    """

    thresholds: Floats
    value: Draws
    interval: Draws
    exact: bool

    def kept(self) -> Points:
        """These points, the interval's draws remembered, where there is room for them."""
        if len(self.thresholds) * self.interval.size > _ROOM:
            return self
        chunks: dict[int, Counts] = {}

        def counts(index: Ints) -> Counts:
            first = int(index[0])
            if first not in chunks:
                chunks[first] = self.interval.counts(index)
            return chunks[first]

        interval = Draws(counts, self.interval.size)
        value = interval if self.value is self.interval else self.value
        return replace(self, value=value, interval=interval)

    def measure(
        self, finish: Callable[[Counts], Sequence[Floats]], progress: Progress
    ) -> tuple[list[Floats], list[Floats]]:
        """What `finish` makes of the counts, draws first: for the values, and for intervals."""
        drawn = joined(self.interval.each(finish, progress))
        if self.value is self.interval:
            return [part[:VALUE_DRAWS] for part in drawn], drawn
        return joined(self.value.each(finish, progress)), drawn


def joined(chunks: Sequence[Sequence[Floats]]) -> list[Floats]:
    """The arrays of all chunks, draws first, each of them in one piece."""
    return [np.concatenate(same) for same in zip(*chunks, strict=True)]


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


class CutCounts:
    """Counts at the cuts of the scores of some items, draw by draw.

    Parameters
    ----------
    rows
        The items, indices into the question's predictions, ascending, (n,).
    n_draws
        How many draws intervals use.
    """

    def __init__(self, question: Question, rows: Ints, n_draws: int) -> None:
        posterior = question.posterior
        posterior.prepare()
        self.positive, self.n_draws = question.positive, n_draws
        self.weights = LabelWeights(question.predictions, posterior, rows, rows[:0], n_draws)
        expected = posterior.probabilities[rows, question.positive]
        self.cuts = cuts_of(question.scores[rows], self.weights.weight, expected)
        self.items = Indicator(self.cuts.codes, len(self.cuts.thresholds) + 1)

    def points(self, *, population: bool) -> Points:
        """Points whose intervals are of the Bayesian bootstrap, or of these very items."""
        certain, posterior = self.weights.certain, self.weights.posterior
        value = Draws(self.value, 1 if certain else VALUE_DRAWS)
        # A method that speaks of the labeled items alone says nothing of the others' labels, so the
        # band of these very items is the bootstrap's as well.
        if population or posterior.observed is not None:
            interval = Draws(self.population, self.n_draws)
        else:
            interval = Draws(self.sample, 1 if certain else self.n_draws)
            if certain or (posterior.value_from == "draws" and not posterior.interval_parameters):
                value = interval  # of the same labels
        return Points(self.cuts.thresholds, value, interval, self.cuts.exact)

    def value(self, index: Ints) -> Counts:
        """Counts of labels drawn for a value."""
        return self._of_labels(self.weights.point_labels, index)

    def sample(self, index: Ints) -> Counts:
        """Counts of labels of these very items.

        None of them is arbitrary, as in the papers whose bands these are; `LabelWeights.sample`,
        of metrics, allows for what has not been seen.
        """
        return self._of_labels(self.weights.labels, index)

    def expected(self, index: Ints) -> Counts:
        """Expected counts under each parameter draw that intervals use."""
        return self._of_class(
            lambda draws, block: self.weights.interval_soft(draws, block)[:, self.positive], index
        )

    def population(self, index: Ints) -> Counts:
        """Counts of the population: drawn labels, Exp(1) row weights and a pseudo-observation."""
        k, several = self.positive, self.weights.n_classes > 2

        def one_and_rest(draws: Ints, block: slice) -> Floats:
            weights = self.weights.population(draws, block)
            if several:  # sums of all classes at every cut would not fit
                own = weights[:, k]
                weights = np.stack([own, np.maximum(weights.sum(axis=1) - own, 0.0)], axis=1)
            return weights

        sums = self._down(one_and_rest, index, (2, len(index)))
        place = 0 if several else k
        return Counts.of(sums[:, place], sums[:, 1 - place])

    def _of_labels(self, labels: Callable[[Ints, slice], Ints], index: Ints) -> Counts:
        def own(draws: Ints, block: slice) -> Floats:
            positive = (labels(draws, block) == self.positive).astype(np.float64)
            positive *= self.weights.weight[block, None]
            return positive

        return self._of_class(own, index)

    def _of_class(self, own: Callable[[Ints, slice], Floats], index: Ints) -> Counts:
        """From the positive items' weights (b, D), where all items keep their sampling weights.

        The rest is what these leave: half the sums of weights by class, which one-hot would take.
        """
        positive = self._down(own, index, (len(index),))
        # Subtraction can leave -1e-17 where there is nothing.
        return Counts.of(positive, np.maximum(self._all - positive, 0.0))

    def _down(
        self, make: Callable[[Ints, slice], Floats], index: Ints, shape: tuple[int, ...]
    ) -> Floats:
        """Sums (G+1, *shape) of weights over the items at or above each cut, and over all items."""
        total = np.zeros((self.items.size, *shape))
        for block in self.weights.blocks(index):
            total += self.items.sums(make(index, block), block)
        return np.cumsum(total, axis=0, out=total)

    @cached_property
    def _all(self) -> Floats:
        """Weights of the items at or above each cut, and of all, (G+1, 1)."""
        return self._down(lambda _, block: self.weights.weight[block, None], np.arange(1), (1,))


def points_of(question: Question, *, between: bool = False) -> Points:
    """Points at the cuts of the classifier's scores.

    Parameters
    ----------
    between
        Whether to add cuts between the scores, where the population's rates are known there.
    """
    population = question.estimand == "population"
    items = CutCounts(question, question.answered, question.n_draws)
    rates = question.posterior.score_rates
    # They are the rates of the last of two classes.
    theirs = question.predictions.n_classes == 2 and question.positive == 1
    if rates is None or not (population and theirs):
        return items.points(population=population)
    thresholds = _refined(items.cuts.thresholds) if between else items.cuts.thresholds
    size = question.posterior.parameters.size

    def counts(index: Ints) -> Counts:
        share, recall, fpr = rates.rates(thresholds, index % size)
        return Counts(recall * share, fpr * (1 - share), share, 1 - share)

    draws = Draws(counts, question.n_draws)
    return Points(thresholds, draws, draws, exact=False)


def _refined(thresholds: Floats) -> Floats:
    """As many thresholds between each two, where there are few."""
    if not 1 < len(thresholds) < _FINE:
        return thresholds
    steps = -(-_FINE // (len(thresholds) - 1))
    places = np.arange(steps * (len(thresholds) - 1) + 1) / steps
    return np.interp(places, np.arange(len(thresholds)), thresholds)
