"""Label weights: what a draw from a label posterior says about each item and class.

A draw d is a matrix W_d of weights, one per item i and class k; every statistic is a function of
it (a confusion matrix is sum_i W_d[i, k] over the items predicted j), and every metric a function
of statistics. The value and the interval of a metric are those of T(W_1), T(W_2), ...

With v_i the sampling weight of item i (times the items that it stands for), theta_d a parameter
draw of the label model and p_ik(theta) = P(label of i is k | scores of i, theta), 0 or 1 where the
label is known:

    value                 W_d[i, k] = v_i p_ik(theta_d)                     `soft`
                          W[i, k]   = v_i p_ik, p the mean over theta       `marginal`
    population, interval  W_d[i, k] = v_i e_id 1{y_id = k} + pseudo         `population`
    these items, interval W_d[i, k] = v_i 1{z_id = k}                       `sample`
    labels alone, these   W_d[i, k] = v_i 1{y_i = k} + urn                  `finite_population`

y_id is drawn from p_i(theta_d), with theta_d of the flatter `interval_parameters` where there are
some. e_id ~ Exp(1): divided by their sum they are Dirichlet(1, ..., 1), the Bayesian bootstrap over
items (Rubin 1981). `pseudo` is a prior observation, for nobody has seen everything: the scores of a
random item, a random predicted class, and class weights Gamma(1 / K) each, of mean one item in all;
for accuracy from labels of two classes alone the interval is Jeffreys'. z_id is drawn from
(1 - s_d) p_i + s_d / K with s_d ~ Beta(1, n): about one label in n is arbitrary, the same allowance
where no weights can say it. `urn` draws the items without a label from those that have one, and the
pseudo-observation, by Polya's urn (Lo 1988), whose limit is the same bootstrap. Where a label is a
distribution over classes (what annotators say), q_id = (1 - t) p_i + t 1{y_id = .} takes the place
of 1{y_id = .}, with t = `label_spread`: the mean and covariances of a Dirichlet for one label.

Weights have shape (items, K, draws). They are made for any draws and any block of rows, from
randomness that belongs to the items, so memory does not grow with the rows and neither blocks
nor workers show in the answer. Where no label is in doubt (`drawn_sums`), a draw is row weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np

from fewlabels.kernels.arrays import Array, Floats, Ints, UInts
from fewlabels.kernels.blocks import (
    Progress,
    collect_blocks,
    index_blocks,
    map_blocks,
    silent,
    spans,
)
from fewlabels.kernels.counter_based import exponentials
from fewlabels.kernels.counter_based_counts import gammas, label_counts, some_items, weight_sums
from fewlabels.kernels.interval_draws import PSEUDO_MASS, PseudoObservations, pseudo_observations
from fewlabels.posterior import LabelPosterior, ParameterDraws, draw_labels
from fewlabels.predictions import Predictions

Make = Callable[[Ints, slice], Floats]
"""Draws (D,) and a block of items (b,) to label weights (b, K, D)."""

PseudoObservation = Callable[[Ints], tuple[Ints, Ints, Floats]]
"""Draws (D,) to the pseudo-observation of each: see `LabelWeights.pseudo_observation`."""

DRAWS_AT_ONCE = 50
"""Draws go in chunks of so many, the last one perhaps of fewer."""

_BLOCK = 2**20

_STATE = 2**26
"""Numbers in the sums of one classifier for a chunk of draws."""

EXACT_ITEMS = 20_000
"""Up to so many items rankings are exact in every draw; beyond, scores are binned (error 1e-5)."""

_HELD = 2**22
"""Label weights of all items that a chunk of draws holds, where several statistics are made of
them one after the other; more are made anew for each."""

MOST_UNITS = 1000
"""Of items whose labels are all known more than this are dealt into so many random units, which
are drawn as a whole."""

_NUMBERS = 8_000_000
"""Numbers held at a time in the sums of all units, or of some draws."""

_ROWS_SALT, _COUNTS_SALT, _ITEMS_SALT = 0x120E5, 0xC0075, 0x17E5
_SHARED_ROWS, _MOST_SHARED = 2**16, 2**26
_PSEUDO, _ARBITRARY, _URN, _RESAMPLE, _URN_PSEUDO = 1, 3, 5, 7, 9


def some_items_of(predictions: Predictions, rows: Ints, most: int) -> tuple[Predictions, Ints]:
    """Some of the items, at most so many, chosen by identity: the same whatever the order."""
    keys = predictions.keys[rows]
    if predictions.multiplicity is None:
        chosen = rows if len(rows) <= most else np.sort(rows[np.argsort(keys)[:most]])
        return predictions, chosen
    times = np.zeros(predictions.n_items)
    times[rows] = some_items(predictions.multiplicity[rows], keys, most, _ITEMS_SALT)
    return predictions.with_multiplicity(times), rows[times[rows] > 0]


class Accumulator(Protocol):
    """What adds up over blocks of items."""

    def add(self, weights: Floats, block: slice) -> None:
        """Add the label weights (b, K, D) of a block of items."""


_Sums = TypeVar("_Sums", bound=Accumulator)
_Result = TypeVar("_Result")


class LabelWeights:
    """Weights of some items under one posterior.

    A row that stands for several items (`Predictions.multiplicity`) weighs what they weigh
    together: drawn labels are multinomial counts, and their row weights gamma variables.

    Parameters
    ----------
    rows
        The items, indices into `predictions`, shape (n,).
    others
        The items in question beside them, of which nothing is known.
    n_draws
        How many interval draws there are in all.
    shared
        Interval draws of more items than these, where they have been made already.
    """

    def __init__(
        self, predictions: Predictions, posterior: LabelPosterior, rows: Ints,
        others: Ints, n_draws: int, shared: SharedDraws | None = None,
    ) -> None:  # fmt: skip
        self.shared = shared
        self.posterior = posterior
        self.n_draws = n_draws
        self.n_classes = predictions.n_classes
        self.keys: UInts = predictions.keys[rows]
        by_labels = posterior.observed is not None
        weight = predictions.weight_of_labels if by_labels else predictions.weight
        self.weight: Floats = weight[rows]
        self.times = None if predictions.multiplicity is None else predictions.multiplicity[rows]
        self.mass = self.weight if self.times is None else self.weight * self.times
        self.size = predictions.size_of(rows)
        self.known: Ints = predictions.labels[rows]
        self.label_spread = posterior.label_spread
        self.all_rows = len(rows) == predictions.n_items
        self.rows = rows
        self.n_others = predictions.size_of(others)
        of_others = predictions.weight[others]
        times = None if self.times is None else predictions.times[others]
        self.unit = float(np.average(of_others, weights=times)) if self.n_others else 0.0

    @staticmethod
    def of(
        predictions: Predictions, posterior: LabelPosterior, rows: Ints, n_draws: int,
        shared: SharedDraws | None = None,
    ) -> LabelWeights:  # fmt: skip
        """Weights of some items: of a posterior that knows observed labels alone, of those."""
        others = rows[:0]
        if posterior.observed is not None:
            there = posterior.observed[rows]
            rows, others = rows[there], rows[~there]
        return LabelWeights(predictions, posterior, rows, others, n_draws, shared)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def unweighted(self) -> bool:
        """Whether every row has the same weight."""
        return self.times is None and bool((self.weight == self.weight[:1]).all())

    @cached_property
    def certain(self) -> bool:
        """Whether every label is known, so that nothing is left to draw."""
        return bool((self.known >= 0).all())

    @property
    def noisy(self) -> bool:
        """Whether the labels are those that were observed, with the noise that is in them."""
        return self.certain or (self.label_spread is not None and self.label_spread.none)

    @cached_property
    def by_key(self) -> Ints:
        """Places in the order of the keys: draws that range over the items go by it."""
        return np.argsort(self.keys)

    def chunks(self, size: int, *, whole: bool = False) -> list[Ints]:
        """Draws 0 .. size - 1 in parts; in smaller ones where each needs the `whole` of the items.

        Their sizes, as those of blocks, depend on the data alone, so that the answer does not
        depend on workers.
        """
        k = max(self.n_classes, 1)
        # Rankings of each class are summed by score, and who is called what by pairs of classes.
        most = _STATE // (k * max(2 * min(len(self), EXACT_ITEMS), k))
        if whole:
            most = _BLOCK // max(len(self) * k, 1)
        return index_blocks(size, int(np.clip(most, 1, DRAWS_AT_ONCE)))

    def blocks(self, index: Ints, *, whole: bool = False) -> list[slice]:
        """The items in blocks for a chunk of draws."""
        n = len(self)
        return spans(n, n if whole else max(_BLOCK // (self.n_classes * len(index)), 1))

    def summed(
        self,
        size: int,
        make: Make,
        begin: Callable[[], _Sums] | Sequence[Callable[[], _Sums]],
        finish: Callable[[_Sums, Ints], _Result],
        *,
        whole: bool = False,
        progress: Progress = silent,
    ) -> list[_Result]:
        """What any statistic makes of the weights of draws 0 .. size - 1, by chunks of draws.

        Chunks go on threads; within one the items go in blocks whose sums add up. Of several
        statistics one is summed and finished after the other, so that memory holds the sums of one:
        the results of a chunk are then in their order, chunk by chunk.

        Parameters
        ----------
        make
            Label weights (b, K, D) of some draws and a block of items.
        begin, finish
            Sums of no items yet, of one statistic or of several, and what is made of the sums of
            all, for the draws of a chunk.
        whole
            Whether all items are to be one block.
        """
        begins = [begin] if callable(begin) else begin

        def run(index: Ints) -> list[_Result]:
            blocks, held = self.blocks(index, whole=whole), dict[int, Floats]()
            keep = len(begins) > 1 and len(self) * self.n_classes * len(index) <= _HELD
            results = []
            for begin in begins:
                sums = begin()
                for block in blocks:
                    weights = held.get(block.start)
                    if weights is None:
                        weights = make(index, block)
                        if keep:
                            held[block.start] = weights
                    sums.add(weights, block)
                results.append(finish(sums, index))
                del sums
            return results

        parts = collect_blocks(run, self.chunks(size, whole=whole), progress)
        return [result for part in parts for result in part]

    def of_values(self) -> tuple[int, Make]:
        """How many draws a value is made of, and what makes them: of P(label), not of labels."""
        if self.certain or self.posterior.value_from == "marginals":
            return 1, self.marginal
        return self.posterior.parameters.size, self.soft

    def of_intervals(self, *, population: bool) -> tuple[Make, PseudoObservation | None, bool]:
        """What makes interval draws, their pseudo-observation, and whether that needs all items."""
        if population:
            return self.population, self.pseudo_observation, False
        if self.posterior.observed is not None:
            return self.finite_population, self.urn_observation, True
        return self.sample, None, False

    def marginal(self, index: Ints, block: slice) -> Floats:
        """Marginal P(label) times sampling weights."""
        p = self.posterior.probabilities[self.rows[block]] * self.mass[block, None]
        return np.repeat(p[:, :, None], len(index), axis=2)

    def soft(self, index: Ints, block: slice) -> Floats:
        """P(label | parameter draw) times sampling weights."""
        weights = self._parameters(index, block)
        weights *= self.mass[block, None, None]
        return weights

    def interval_soft(self, index: Ints, block: slice) -> Floats:
        """As `soft`, for the parameter draws that intervals use."""
        weights = self.chances(index, block)
        weights *= self.mass[block, None, None]
        return weights

    @property
    def n_interval_parameters(self) -> int:
        """How many parameter draws intervals use."""
        return (self.posterior.interval_parameters or self.posterior.parameters).size

    def population(self, index: Ints, block: slice) -> Floats:
        """Drawn labels times Exp(1) row weights, and the pseudo-observation."""
        if self.times is not None:
            weights = self._of_several(index, block)
        elif self.label_spread is None:
            labels, rows = self.labels_and_rows(index, block)
            weights = self._one_hot(labels) * rows[:, None, :]
        else:
            weights = self._distributions(self.chances(index, block), index, block)
            weights *= self.row_weights(index, block)[:, None, :]
        self._add_pseudo_observation(weights, index, block)
        return weights

    def labels_and_rows(self, index: Ints, block: slice) -> tuple[Array, Floats]:
        """Drawn labels and row weights (b, D) of a population."""
        if self.shared is not None:
            return self.shared.of(self.rows[block], index)
        return self.labels(index, block), self.row_weights(index, block)

    def labels(self, index: Ints, block: slice | Ints) -> Ints:
        """Labels (b, D) under the parameter draws that intervals use, none of them arbitrary."""
        same = len(set((index % self.n_interval_parameters).tolist())) == 1
        return self._labels(self.chances(index[:1] if same else index, block), index, block)

    def interval_pass(
        self, size: int, events: Ints | None, arbitrary: Floats | None = None,
        parameters: ParameterDraws | None = None, progress: Progress = silent,
    ) -> tuple[Ints, Floats | None]:  # fmt: skip
        """Labels (n, D) of draws 0 .. size - 1, and P(event) (n, m, T) of events (n, m).

        Of many classes P(class) of an item is looked up once, for all T draws of the parameters
        that intervals use (or of others): that is what costs. Labels of all items are kept by the
        posterior. `arbitrary` (D,) is the chance, by draw, that a label is any class.
        """
        of = parameters or self.posterior.interval_parameters or self.posterior.parameters
        plain = self.all_rows and parameters is None and arbitrary is None
        kept: Ints | None = self.posterior.__dict__.get("drawn_labels") if plain else None
        every, n = np.arange(of.size), len(self)
        small = np.min_scalar_type(-self.n_classes)
        new = kept is None or kept.shape[1] < size
        labels: Ints = np.empty((n, size), dtype=small)
        if kept is not None and not new:
            labels = kept[:, :size]
        chances = None if events is None else np.empty((*events.shape, of.size))

        def run(block: slice) -> None:
            p = self._parameters(every, block, of)
            if new and size:
                keys, salt = self.keys[block], self.posterior.salt
                labels[block] = draw_labels(p, keys, np.arange(size), salt, arbitrary)
            if chances is not None and events is not None:
                chances[block] = np.take_along_axis(p, events[block][:, :, None], axis=1)

        if new or events is not None:
            height = max(_HELD // (self.n_classes * of.size), 1)
            collect_blocks(run, spans(n, height), progress)
        if plain and new and size:
            self.posterior.__dict__["drawn_labels"] = labels
        return labels, chances

    def chance_draws(self, kind: str) -> int:
        """How many different P(class) there are of an item, by what makes them."""
        if kind == "marginal":
            return 1
        return self.n_interval_parameters if kind == "interval_soft" else self.n_value_parameters

    @property
    def n_value_parameters(self) -> int:
        """How many parameter draws values use."""
        return self.posterior.parameters.size

    def expected(self, index: Ints, block: slice) -> Floats:
        """As `population`, with P(label | parameter draw) for drawn labels."""
        weights = self.chances(index, block)
        if self.times is None:
            rows = self.row_weights(index, block)
        else:  # those of the population, so that the two differ by the labels alone
            rows = self._of_several(index, block).sum(axis=1)
        weights *= rows[:, None, :]
        self._add_pseudo_observation(weights, index, block)
        return weights

    def sample(self, index: Ints, block: slice) -> Floats:
        """Drawn labels of these very items, times sampling weights."""
        if self.times is not None:
            weights = self.drawn(self._partly_arbitrary(index, block), index, block)
            rows = np.flatnonzero(self.known[block] >= 0)
            weights[rows] = self._known(rows + block.start, index)
        elif self.label_spread is None:
            weights = self._one_hot(self.sample_labels(index, block))
        else:
            weights = self._distributions(self._partly_arbitrary(index, block), index, block)
        weights *= self.weight[block, None, None]
        return weights

    def sample_labels(self, index: Ints, block: slice) -> Ints:
        """Labels (b, D) of these very items."""
        labels = self._labels(self._partly_arbitrary(index, block), index, block)
        known = self.known[block]
        rows = np.flatnonzero(known >= 0)
        labels[rows] = known[rows, None]
        return labels

    def _partly_arbitrary(self, index: Ints, block: slice) -> Floats:
        """P(label | parameter draw) of these very items, for intervals.

        What has not been seen shows, here, as a chance of about one in n that an unlabeled item's
        label is arbitrary.
        """
        parameters = self.chances(index, block)
        arbitrary = self.arbitrary_share[index]
        parameters *= 1 - arbitrary
        parameters += arbitrary / self.n_classes
        return parameters

    def point_labels(self, index: Ints, block: slice) -> Ints:
        """Labels (b, D) for a point estimate: from the draws, or from the marginals."""
        return self._labels(self._point(index, block), index, block)

    def _point(self, index: Ints, block: slice) -> Floats:
        if self.posterior.value_from == "draws":
            return self._parameters(index, block)
        p = self.posterior.probabilities[self.rows[block]]
        return np.repeat(p[:, :, None], len(index), axis=2)

    def point(self, index: Ints, block: slice) -> Floats:
        """`point_labels` as weights, times sampling weights; where labels are, distributions."""
        if self.label_spread is None:
            weights = self.drawn(self._point(index, block), index, block)
        else:
            weights = self._distributions(self._point(index, block), index, block)
        weights *= self.weight[block, None, None]
        return weights

    def finite_population(self, index: Ints, block: slice) -> Floats:
        """These items, where only the labeled ones are known: a Polya urn draws the others.

        The urn ranges over all items, so `block` must be all of them.
        """
        weights = self._one_hot(np.repeat(self.known[:, None], len(index), axis=1))
        weights *= self.urn_rows(index)[:, None, :]
        if self.n_others:
            item, _, mass = self.urn_observation(index)
            weights[item, :, np.arange(len(index))] += mass
        return weights

    def urn_rows(self, index: Ints) -> Floats:
        """How many of all items have the label of each labeled one, times weights, (n, D)."""
        rows = np.repeat(self.mass[:, None], len(index), axis=1)
        if self.n_others:
            strange = self._urn_pseudo_counts(index)
            urn = self.row_weights(index, slice(0, len(self)))
            for column, d in enumerate(index):
                share = urn[self.by_key, column]
                familiar = self.n_others - strange[column].sum()
                drawn = self._generator(_URN, int(d)).multinomial(familiar, share / share.sum())
                rows[self.by_key, column] += drawn * self.unit
        return rows

    def urn_observation(self, index: Ints) -> tuple[Ints, Ints, Floats]:
        """`pseudo_observation`, with the weight (D, K) that the Polya urn draws of it."""
        item, predicted, _ = self.pseudo_observation(index)
        mass: Floats = np.asarray(self._urn_pseudo_counts(index) * self.unit, dtype=np.float64)
        return item, predicted, mass

    def _urn_pseudo_counts(self, index: Ints) -> Ints:
        """How many of the other items the urn draws as the pseudo-observation, by class, (D, K)."""
        mass = self.pseudo_observation(index)[2]
        known = self.row_weights(index, slice(0, len(self))).sum(axis=0)
        share = np.column_stack([mass, known]) / (mass.sum(axis=1) + known)[:, None]
        drawn = [
            self._generator(_URN_PSEUDO, int(d)).multinomial(self.n_others, p)
            for d, p in zip(index, share, strict=True)
        ]
        return np.array(drawn)[:, :-1]

    def resampled(self, index: Ints, *, point: bool = False) -> tuple[Ints, Ints]:
        """Labels (n, D) and, per draw, rows (n, D) of the plain bootstrap.

        For functions that take no weights. In an interval's draws about one item gets an
        arbitrary label; with `point` none does.
        """
        everything = slice(0, len(self))
        labels = (self.point_labels if point else self.labels)(index, everything)
        n, rows = len(self), np.empty_like(labels)
        chance = self.weight[self.by_key] / self.weight.sum()
        for column, d in enumerate(index):
            generator = self._generator(_RESAMPLE, int(d))
            rows[:, column] = self.by_key[generator.choice(n, size=n, p=chance)]
            arbitrary = generator.random(n) < (0 if point else PSEUDO_MASS / (n + PSEUDO_MASS))
            classes = generator.integers(self.n_classes, size=int(arbitrary.sum()))
            labels[self.by_key[arbitrary], column] = classes
        return labels, rows

    def chances(self, index: Ints, block: slice | Ints) -> Floats:
        """P(label | parameter draw) of some items (b, K, D), for the draws that intervals use."""
        return self._parameters(index, block, self.posterior.interval_parameters)

    def _parameters(
        self, index: Ints, block: slice | Ints, parameters: ParameterDraws | None = None
    ) -> Floats:
        parameters = parameters or self.posterior.parameters
        # A slice of all rows is a view; indices would copy the features of the block.
        rows = block if self.all_rows else self.rows[block]
        return parameters.block(index % parameters.size, rows)

    def _labels(self, parameters: Floats, index: Ints, block: slice | Ints) -> Ints:
        return draw_labels(parameters, self.keys[block], index, self.posterior.salt)

    def row_weights(self, index: Ints, block: slice) -> Floats:
        """Sums of the Exp(1) weights of the items of each row, times sampling weights."""
        keys, salt = self.keys[block], self.posterior.salt ^ _ROWS_SALT
        weights = exponentials(keys, index, salt)
        if self.times is not None:
            several = np.flatnonzero(self.times[block] > 1)
            times = self.times[block][several, None]
            weights[several] = gammas(keys[several], index, times, salt)
        weights *= self.weight[block, None]
        return weights

    def drawn(self, p: Floats, index: Ints, block: slice) -> Floats:
        """How many of the items of each row get each label (b, K, D), from P(label) (b, K, D)."""
        counts = self._one_hot(self._labels(p, index, block))
        if self.times is not None:
            several = np.flatnonzero(self.times[block] > 1)
            keys, salt = self.keys[block][several], self.posterior.salt ^ _COUNTS_SALT
            times = self.times[block][several]
            counts[several] = label_counts(keys, index, times, p[several], salt)
        return counts

    def _of_several(self, index: Ints, block: slice) -> Floats:
        """Drawn labels of rows that stand for several items, each item times its row weight."""
        assert self.times is not None
        counts = self.drawn(self.chances(index, block), index, block)
        keys, salt = self.keys[block], self.posterior.salt ^ _ROWS_SALT
        weights = counts * exponentials(keys, index, salt)[:, None, :]
        several = np.flatnonzero(self.times[block] > 1)
        weights[several] = weight_sums(keys[several], index, counts[several], salt)
        weights *= self.weight[block, None, None]
        return weights

    def _known(self, rows: Ints, index: Ints) -> Floats:
        """Known labels (b, K, D) of the items of some rows."""
        times = np.ones(len(rows)) if self.times is None else self.times[rows]
        labels = np.repeat(self.known[rows, None], len(index), axis=1)
        return self._one_hot(labels) * times[:, None, None]

    def _one_hot(self, labels: Array) -> Floats:
        return (labels[:, None, :] == np.arange(self.n_classes)[None, :, None]).astype(np.float64)

    def _distributions(self, p: Floats, index: Ints, block: slice) -> Floats:
        """Drawn distributions over classes (b, K, D) with means p, in place of p.

        A drawn label mixed in has the mean and all covariances of a Dirichlet, at no cost.
        """
        assert self.label_spread is not None
        spread = self.label_spread.of(index, self.rows[block])[:, None, :]
        label = self._one_hot(self._labels(p, index, block))
        label -= p
        label *= spread
        p += label
        return p

    @cached_property
    def arbitrary_share(self) -> Floats:
        """The chance (D,), by draw, that the label of one of these very items is any class."""
        n = max(self.size, 1)
        return self._generator(_ARBITRARY).beta(PSEUDO_MASS, n, self.n_draws)

    def pseudo_observation(self, index: Ints) -> tuple[Ints, Ints, Floats]:
        """Item (D,), hard prediction (D,), class weights (D, K) of each pseudo-observation."""
        item, predicted, mass = self._pseudo
        return item[index], predicted[index], mass[index]

    @cached_property
    def unseen(self) -> PseudoObservations:
        """The pseudo-observations before they are of any items: the same of all."""
        return pseudo_observations(self._generator(_PSEUDO), self.n_classes, self.n_draws)

    @cached_property
    def _pseudo(self) -> tuple[Ints, Ints, Floats]:
        drawn = self.unseen
        place = (drawn.place * self.size).astype(np.int64)
        if self.times is not None:  # from the place among the items to that among the rows
            place = np.searchsorted(np.cumsum(self.times[self.by_key]), place, side="right")
            place = np.minimum(place, len(self) - 1)
        # One item of the effective number of items: with equal weights, of weight one.
        unit = (self.mass * self.weight).sum() / self.mass.sum()
        return self.by_key[place], drawn.predicted, drawn.mass * unit

    def _add_pseudo_observation(self, weights: Floats, index: Ints, block: slice) -> None:
        """Add, in each draw, one item of unknown class: some item's scores, every class."""
        item, _, mass = self.pseudo_observation(index)
        inside = np.flatnonzero((item >= block.start) & (item < block.stop))
        weights[item[inside] - block.start, :, inside] += mass[inside]

    def _generator(self, *key: int) -> np.random.Generator:
        return np.random.default_rng([self.posterior.salt & (2**64 - 1), *key])


class SharedDraws:
    """Labels and row weights of every interval draw, for parts of the same items.

    An item's randomness is its own, so an item draws the same in every part that holds it: with
    twenty annotators per item that is a twentieth of the work.
    """

    def __init__(
        self, predictions: Predictions, posterior: LabelPosterior, rows: Ints, n_draws: int
    ) -> None:
        weights = LabelWeights(predictions, posterior, rows, rows[:0], n_draws)
        self._place = np.full(predictions.n_items, -1)
        self._place[rows] = np.arange(len(rows))
        small = np.min_scalar_type(-predictions.n_classes)

        def made(index: Ints) -> tuple[Array, Floats]:
            labels: Array = np.empty((len(rows), len(index)), dtype=small)
            row_weights = np.empty(labels.shape)
            for block in spans(len(rows), _SHARED_ROWS):
                labels[block], row_weights[block] = weights.labels_and_rows(index, block)
            return labels, row_weights

        # An array per chunk of draws: gathering whole rows is four times as fast as parts of them.
        self._chunks = list(map_blocks(made, index_blocks(n_draws, DRAWS_AT_ONCE)))

    def of(self, rows: Ints, index: Ints) -> tuple[Array, Floats]:
        """Labels and row weights (b, D) of some of the items, in one chunk of draws."""
        place = self._place[rows]
        labels, row_weights = self._chunks[index[0] // DRAWS_AT_ONCE]
        return labels.take(place, axis=0), row_weights.take(place, axis=0)


def _draws_labels(posterior: LabelPosterior) -> bool:
    """Whether all its draws are of labels, of any items."""
    return posterior.means is None and posterior.observed is None and posterior.label_spread is None


def shared_draws(
    predictions: Predictions, parts: Sequence[tuple[LabelPosterior, Ints]], n_draws: int
) -> dict[int, SharedDraws]:
    """Draws that parts (posterior, items) have in common, where making them once pays.

    By the id of the posterior; a posterior that is not there has none.
    """
    out: dict[int, SharedDraws] = {}
    if predictions.multiplicity is not None:  # their draws are counts, not labels
        return out
    for posterior in {id(of): of for of, _ in parts}.values():
        own = [rows for of, rows in parts if of is posterior]
        if not n_draws or not _draws_labels(posterior):
            continue
        rows = np.unique(np.concatenate(own))
        if len(rows) * n_draws <= _MOST_SHARED and sum(map(len, own)) >= 2 * len(rows):
            out[id(posterior)] = SharedDraws(predictions, posterior, rows, n_draws)
    return out


class Items(Protocol):
    """Arrays of n rows; some may be None."""

    def __iter__(self) -> Iterator[Any]: ...

    def take(self, rows: Any) -> Any:
        """Some of the rows."""


_Items = TypeVar("_Items", bound=Items)


def drawn_sums(
    items: _Items,
    by_unit: Callable[[_Items, Ints, int], Sequence[Floats]],
    of_pseudo_observation: Callable[[_Items, Floats, np.random.Generator], _Items],
    n_classes: int,
    n_draws: int,
    seed: int,
    whole: Sequence[Floats] | None = None,
) -> Iterator[list[Floats]]:
    """States of bootstrap draws of items with known labels, some draws at a time.

    Items have exponential weights (Rubin 1981), and as states add, one matrix product gives all
    draws. One pseudo-observation per draw, with the prediction of one of the items, stands for
    what has not been seen: intervals do not collapse where all labels agree.

    Parameters
    ----------
    by_unit
        Takes items, the order to deal them in, and a number of units U; gives the states of the
        units: arrays (U, F, ...) that add over items, the first of them with few numbers.
    of_pseudo_observation
        Makes items pseudo-observations of class weights (D, K), whose predictions they keep.
    whole
        The state of one unit of all items, where `items` are a random sample of them: draws then
        lie around it, with the noise of as many items (`_of_all`). It may have further fields.
    """
    rng = np.random.default_rng(seed)
    order = _by_content(items)
    n = len(order)
    width = sum(cells.size for cells in by_unit(items, order[:1], 1)[1:])
    units = min(n, MOST_UNITS, max(_NUMBERS // width, 100))
    sums = by_unit(items, rng.permutation(order), units)
    for draws in spans(n_draws, max(_NUMBERS // width, 1)):
        size = draws.stop - draws.start
        factor = rng.standard_exponential((size, units))
        drawn = [(factor @ part.reshape(units, -1)).reshape(size, *part.shape[1:]) for part in sums]
        if whole is not None:
            drawn = _of_all(drawn, [part.sum(axis=0) for part in sums], [p[0] for p in whole])
        pseudo = pseudo_observations(rng, n_classes, size)
        scores = items.take(order[(pseudo.place * n).astype(np.int64)])
        more = by_unit(of_pseudo_observation(scores, pseudo.mass, rng), np.arange(size), size)
        mass = pseudo.mass.sum(axis=1)
        yield [
            part + extra * mass.reshape(-1, *[1] * (extra.ndim - 1))
            for part, extra in zip(drawn, more, strict=True)
        ]


def _by_content(items: Items) -> Ints:
    """The items in an order that is not that of the rows: which draw is whose must not show it.

    By their numbers, to nine digits, so that neither the unit of a statistic shows.
    """
    given = [part for part in items if part is not None]
    # The first parts count most: `lexsort` goes by the last of its columns.
    columns = [c for part in reversed(given) for c in part.reshape(len(part), -1).T]
    return np.lexsort(np.round(columns, 9))


def _of_all(
    drawn: Sequence[Floats], seen: Sequence[Floats], every: Sequence[Floats]
) -> list[Floats]:
    """Draws of the sums over a sample, (D, F, ...), as draws of those over all items.

    With n of all and m in the sample, `every` + sqrt(n / m) (draw - `seen`) has the covariance of
    draws with a weight for each of the n, which is the sum of squares over items. No draw takes
    more from a cell than there is: of a cell with few items the sample may hold too many.
    """
    root = math.sqrt(float(every[0][0]) / float(seen[0][0]))
    out = []
    for draws, part, more in zip(drawn, seen, every, strict=True):
        total = more[: len(part)]
        with np.errstate(divide="ignore", invalid="ignore"):
            most = np.where(part > 0, total / part, np.inf).min(axis=0)
        out.append(total + np.minimum(root, most) * (draws - part))
    return out
