"""What a draw from a label posterior is: a label of each item, and a row weight.

Every statistic is a function of label weights W_d[i, k], what draw d says of item i and class k (a
confusion matrix is sum_i W_d[i, k] over the items predicted j), and every metric a function of
statistics. The value and the interval of a metric are those of T(W_1), T(W_2), ...

With v_i the sampling weight of item i (times the items that it stands for), theta_d a parameter
draw of the label model and p_ik(theta) = P(label of i is k | scores of i, theta), 0 or 1 where the
label is known:

    value                 W_d[i, k] = v_i p_ik(theta_d)                     `SOFT`
                          W[i, k]   = v_i p_ik, p the mean over theta       `MARGINAL`
    population, interval  W_d[i, k] = v_i e_id 1{y_id = k} + pseudo         `POPULATION`
    these items, interval W_d[i, k] = v_i 1{z_id = k}                       `SAMPLE`
    labels alone, these   W_d[i, k] = v_i 1{y_i = k} + urn                  `URN`

y_id is drawn from p_i(theta_d), with theta_d of the flatter `interval_parameters` where there are
some. e_id ~ Exp(1): divided by their sum they are Dirichlet(1, ..., 1), the Bayesian bootstrap over
items (Rubin 1981). Items of one cluster share it, and where clusters are crossed its factors.
`pseudo` is a prior observation, for what has not been seen: the scores of a random item, a random
predicted class, and class weights Gamma(1 / K) each, of mean one item in all;
for accuracy from labels of two classes alone the interval is Jeffreys'. z_id is drawn from
(1 - s_d) p_i + s_d / K with s_d ~ Beta(1, n): about one label in n is arbitrary, the same allowance
where no weights can say it. `urn` draws the items without a label from those that have one, and the
pseudo-observation, by Polya's urn (Lo 1988), whose limit is the same bootstrap. Where a label is a
distribution over classes (what annotators say), q_id = (1 - t) p_i + t 1{y_id = .} takes the place
of 1{y_id = .}, with t = `label_spread`: the mean and covariances of a Dirichlet for one label.

W is never made (`kernels.weighting`): a drawn label is one number, not K zeros and a one. Draws are
made in chunks, and P(label) in blocks of rows, from randomness that belongs to the items, so that
neither blocks nor workers show in the answer. Where no label is in doubt (`drawn_sums`), a draw is
row weights.

In the code, a `DrawKind` says what a draw is made of (the names at the right above). `LabelWeights`
holds the items and makes draws in chunks (`_weightings`); a chunk is a `Drawn`, or a `Soft` for
each block of rows, of `kernels/weighting.py`. The evaluator makes its `LabelWeights` in
`_Task.__init__`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol, TypeVar

import numpy as np

from fewlabels.kernels.arrays import Array, Floats, Ints, UInts
from fewlabels.kernels.blocks import Progress, collect_blocks, index_blocks, silent, spans
from fewlabels.kernels.clusters import worth
from fewlabels.kernels.counter_based import (
    gammas,
    label_counts,
    shared_exponentials,
    some_items,
    weight_sums,
)
from fewlabels.kernels.interval_draws import PSEUDO_MASS, PseudoObservations, pseudo_observations
from fewlabels.kernels.strata import bootstrap_within, variance_strata
from fewlabels.kernels.weighting import Drawn, PlacedObservations, Soft, Weighting
from fewlabels.posterior import Fixed, LabelPosterior, ParameterDraws, draw_labels
from fewlabels.predictions import Predictions


@dataclass(frozen=True)
class DrawKind:
    """What draws are made of.

    P(label) is that of `source`: the marginals, or the parameter draws of values or of intervals;
    labels are `drawn` from it, or it stands for them. `rows` are the row weights: the sampling
    weights, those times the bootstrap's, or the urn's; the latter two come with a
    pseudo-observation. `arbitrary`: about one unknown label in n is any class.
    """

    source: Literal["marginals", "values", "intervals"]
    drawn: bool = False
    rows: Literal["sampling", "bootstrap", "urn"] = "sampling"
    arbitrary: bool = False


MARGINAL, SOFT, INTERVAL_SOFT = DrawKind("marginals"), DrawKind("values"), DrawKind("intervals")
POPULATION = DrawKind("intervals", drawn=True, rows="bootstrap")
EXPECTED = DrawKind("intervals", rows="bootstrap")
SAMPLE = DrawKind("intervals", drawn=True, arbitrary=True)
LABELS = DrawKind("intervals", drawn=True)
URN = DrawKind("marginals", drawn=True, rows="urn")
POINT = DrawKind("values", drawn=True)

DRAWS_AT_ONCE, _FEWEST_AT_ONCE = 100, 8
"""Draws of a chunk; the last chunk may have fewer."""

_CELLS, _BLOCK, _STATE = 2**18, 2**20, 2**25
"""Numbers of a chunk: labels of all items, P(label) of a block, sums of all classifiers."""

EXACT_ITEMS = 4_000
"""Rankings are exact up to this many items; beyond, scores are binned (error 1e-5)."""

ALL_DRAWS_ITEMS, BASIS_DRAWS = 15_000, 32
"""Below this many items all parameter draws are computed; from then on a basis of BASIS_DRAWS
draws, of which the others are combinations (`streaming/tally.py`), in memory and in streams."""

_FEW_CLASSES = 32
"""With more classes than this a chunk has more draws, in proportion."""

_MOST_TIMES = 2
"""A chunk of many classes has at most this many times as many draws."""

MOST_UNITS = 1000
"""More items than this, if all their labels are known, are dealt into this many random units, each
of which is drawn as a whole."""

_NUMBERS = 8_000_000
"""Numbers held at a time in the sums of all units, or of some draws."""

_ROWS_SALT, _COUNTS_SALT, _ITEMS_SALT = 0x120E5, 0xC0075, 0x17E5
_PSEUDO, _ARBITRARY, _URN, _RESAMPLE, _URN_PSEUDO = 1, 3, 5, 7, 9


def basis_size(n_items: int, n_classes: int) -> float:
    """At most how many parameter draws are computed of each of `n_items` items."""
    few = ALL_DRAWS_ITEMS * max(1, n_classes / _FEW_CLASSES)
    return math.inf if n_items < few else BASIS_DRAWS


def item_sample(predictions: Predictions, rows: Ints, most: int) -> tuple[Predictions, Ints]:
    """At most `most` of the items, chosen by identity: the same in any order of the rows."""
    keys = predictions.keys[rows]
    if predictions.multiplicity is None:
        chosen = rows if len(rows) <= most else np.sort(rows[np.argsort(keys)[:most]])
        return predictions, chosen
    times = np.zeros(predictions.n_items)
    times[rows] = some_items(predictions.multiplicity[rows], keys, most, _ITEMS_SALT)
    return predictions.with_multiplicity(times), rows[times[rows] > 0]


class Accumulator(Protocol):
    """Sums over blocks of items."""

    def add(self, weights: Weighting, block: slice | None = None) -> None:
        """Add a block of items (None: all)."""


_Sums = TypeVar("_Sums", bound=Accumulator)
_Result = TypeVar("_Result")


class Entries:
    """What statistics add up: by default every item once, all in one group.

    `items` (e,) says which item each entry is of (votes of many annotators, say; None: each its
    own), `group` (e,) in which of `n_groups` it is.
    """

    def __init__(
        self, items: Ints | None = None, group: Ints | None = None, n_groups: int = 1
    ) -> None:
        self.items, self.group, self.n_groups = items, group, n_groups


def _within(placed: PlacedObservations | None, block: slice) -> PlacedObservations | None:
    return None if placed is None else placed.within(block)


class LabelWeights:
    """Draws of some items under one posterior.

    `rows` (n,) are the items, indices into `predictions`; `others` are the items in question beside
    them, of which nothing is known. `n_draws` counts the interval draws in all, and `entries` says
    what is added up of the items. A row that stands for several items (`Predictions.multiplicity`)
    weighs what they weigh together: drawn labels are multinomial counts, and their row weights
    gamma variables.
    """

    def __init__(
        self, predictions: Predictions, posterior: LabelPosterior, rows: Ints,
        others: Ints, n_draws: int, entries: Entries | None = None,
    ) -> None:  # fmt: skip
        self.posterior = posterior
        self.n_draws = n_draws
        self.n_classes = predictions.n_classes
        self.keys: UInts = predictions.keys[rows]
        self.label_keys: UInts = predictions.label_keys[rows]
        self.clustered = bool(predictions.clusters)
        self.clusters = predictions.clusters_of(rows)
        self.correlation = predictions.correlation
        weight = predictions.weight if posterior.infers else predictions.weight_of_labels
        self.weight: Floats = weight[rows]
        self.times = None if predictions.multiplicity is None else predictions.multiplicity[rows]
        self.mass = self.weight if self.times is None else self.weight * self.times
        self.size = predictions.size_of(rows)
        self.known: Ints = predictions.labels[rows]
        by_stratum = predictions.stratum is not None and not posterior.infers
        self.strata = variance_strata(predictions.strata[rows]) if by_stratum else None
        self.label_spread = posterior.label_spread
        self.all_rows = len(rows) == predictions.n_items
        self.rows = rows
        self.n_others = predictions.size_of(others)
        other_weights = predictions.weight[others]
        times = None if self.times is None else predictions.times[others]
        self.unit = float(np.average(other_weights, weights=times)) if self.n_others else 0.0
        self.entries = entries or Entries()

    @staticmethod
    def from_rows(
        predictions: Predictions, posterior: LabelPosterior, rows: Ints, n_draws: int,
        entries: Entries | None = None,
    ) -> LabelWeights:  # fmt: skip
        """Weights of some items; of the labeled ones where the posterior knows no others."""
        there = posterior.speaks_of(rows)
        return LabelWeights(predictions, posterior, rows[there], rows[~there], n_draws, entries)

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
        """Whether the labels are those observed, including their noise."""
        return self.certain or (self.label_spread is not None and self.label_spread.none)

    @cached_property
    def by_key(self) -> Ints:
        """Places in the order of the keys: draws that range over the items go by it."""
        return np.argsort(self.keys)

    # --- which draws --------------------------------------------------------------------------

    @property
    def value_kind(self) -> tuple[int, DrawKind]:
        """How many draws a value is made of, and of what: of P(label), not of labels."""
        return (1, MARGINAL) if self.certain else (self.posterior.value_draws.size, SOFT)

    def interval_kind(self, *, population: bool) -> DrawKind:
        """What interval draws are made of."""
        if population:
            return POPULATION
        return SAMPLE if self.posterior.infers else URN

    # --- draws in chunks, P(label) in blocks --------------------------------------------------

    def summed(
        self, size: int, requested: Sequence[tuple[DrawKind, Callable[[], _Sums]]],
        finish: Callable[[list[_Sums], Ints], _Result], *, cells: int = 1, one_block: bool = False,
        order: Ints | None = None, progress: Progress = silent,
    ) -> list[_Result]:  # fmt: skip
        """Statistics of draws 0 .. size - 1, by chunks of draws.

        Chunks run on threads; within one, P(label) is looked up once for all kinds of draws, in
        blocks of items whose sums add up (with `one_block`, one block). `requested` are kinds of
        draws, each with a function that makes its empty sums; `finish` makes the result of a chunk
        from the sums of all items, in that order. `cells` is how many numbers all sums hold of one
        draw, and `order` (size,) the order in which draws are made (None: as they are).
        """

        def run(index: Ints) -> _Result:
            sums = [(kind, begin()) for kind, begin in requested]
            kinds = list(dict.fromkeys(kind for kind, _ in requested))
            for kind, weights, block in self._weightings(kinds, index, one_block=one_block):
                for requested_kind, state in sums:
                    if requested_kind == kind:
                        state.add(weights, block)
            return finish([state for _, state in sums], index)

        soft = one_block and not all(self.plain(kind) for kind, _ in requested)
        chunks = self.chunks(size, cells, soft=soft)
        if order is not None:
            chunks = [order[index] for index in chunks]
        return collect_blocks(run, chunks, progress)

    def chunks(self, size: int, cells: int = 1, *, soft: bool = False) -> list[Ints]:
        """Draws 0 .. size - 1 in chunks whose size depends on the data, not on the workers.

        `soft`: P(label) of all items is held.
        """
        n = max(len(self), 1)
        # With many classes P(label) costs most, and its inputs are computed for every chunk anew.
        times = max(1, self.n_classes // _FEW_CLASSES)
        most = min(max(times * _CELLS // n, _FEWEST_AT_ONCE), _STATE // max(cells, 1))
        if soft:
            most = min(most, 4 * _BLOCK // (n * max(self.n_classes, 1)))
        most = int(np.clip(most, 1, DRAWS_AT_ONCE * min(times, _MOST_TIMES)))
        return index_blocks(size, math.ceil(size / math.ceil(size / most))) if size else []

    def plain(self, kind: DrawKind) -> bool:
        """Whether draws are labels: one of each row."""
        return kind.drawn and self.times is None and self.label_spread is None

    def _weightings(
        self, kinds: Sequence[DrawKind], index: Ints, *, one_block: bool = False
    ) -> Iterator[tuple[DrawKind, Weighting, slice | None]]:
        """Weights of some draws (D,): of P(label) by blocks of items, of labels of all at once."""
        n, rows = len(self), {kind.rows: self.row_weights(kind.rows, index) for kind in kinds}
        labels: dict[DrawKind, Array] = {}
        for kind in filter(self.plain, kinds):
            if self.certain:
                labels[kind] = self.known[:, None]
            else:
                labels[kind] = np.empty((n, len(index)), np.min_scalar_type(-self.n_classes))
        pseudo = {kind: self.placed(kind, index) for kind in kinds}
        left = [kind for kind in kinds if not (kind in labels and self.certain)]
        distinct = {kind: self._distinct(kind, index) for kind in left}
        width = max((len(distinct[kind][0]) for kind in left), default=1)
        height = n if one_block else max(_BLOCK // (self.n_classes * width), 1)
        low = {
            kind: n if one_block else max(_BLOCK // (len(index) * self._numbers_per_item(kind)), 1)
            for kind in left
        }
        items = self.entries.items
        by_entry = [] if items is None else [kind for kind in left if kind not in labels]
        by_item = [kind for kind in left if kind not in by_entry]
        for block in spans(n, height) if by_item else ():
            p: dict[tuple[str, bool], Floats] = {}
            for kind in by_item:
                source, (draws, which) = (kind.source, kind.arbitrary), distinct[kind]
                if source not in p:
                    p[source] = self._chances(kind, draws, block)
                if kind in labels:
                    labels[kind][block] = self._labels(p[source], kind, index, block, which)
                    continue
                # Draws of one P(label) differ by their rows, and are made of a few items at a time.
                for some in [slice(None)] if which is None else spans(len(p[source]), low[kind]):
                    start, stop, _ = some.indices(len(p[source]))
                    inner = slice(block.start + start, block.start + stop)
                    near, weights = _within(pseudo[kind], inner), rows[kind.rows][inner]
                    soft = self._soft(kind, p[source][some], weights, index, inner, near, which)
                    yield kind, soft, None if stop - start == n else inner
        for kind, drawn in labels.items():
            k, size = self.n_classes, len(index)
            if items is None:
                yield kind, Drawn(drawn, rows[kind.rows], k, size, pseudo[kind]), None
                continue
            drawn_once = Drawn(drawn, rows[kind.rows], k, size)
            for block in spans(len(items), max(_BLOCK // size, 1)):
                labels_here, near = drawn_once.take(items[block]), _within(pseudo[kind], block)
                yield kind, Drawn(labels_here.labels, labels_here.rows, k, size, near), block
        if items is None:
            return
        # An item of many entries is looked up for each of them: P(label) of all is held nowhere.
        for kind in by_entry:
            draws, which = distinct[kind]
            for block in spans(len(items), low[kind]):
                at, near = items[block], _within(pseudo[kind], block)
                every, weights = self._chances(kind, draws, at), rows[kind.rows][at]
                yield kind, self._soft(kind, every, weights, index, at, near, which), block

    def _numbers_per_item(self, kind: DrawKind) -> int:
        """Numbers held of an item per draw: 1 where draws share P(label), else K."""
        several = self.times is not None and kind.rows == "bootstrap"
        return self.n_classes if kind.drawn or several else 1

    def _distinct(self, kind: DrawKind, index: Ints) -> tuple[Ints, Ints | None]:
        """Draws with the P(label) of some draws, each once, and which of them each has.

        None: all are different.
        """
        size = self._parameter_draws(kind).size
        _, first, which = np.unique(index % size, return_index=True, return_inverse=True)
        if kind.arbitrary or len(first) == len(index):
            return index, None
        return index[first], which

    def drawn(self, kind: DrawKind, index: Ints) -> Drawn:
        """A label of every item and its row weight in some draws, also of label distributions."""
        k, size = self.n_classes, len(index)
        labels: Array = self.known[:, None]
        if not (self.certain and self.label_spread is None):
            labels = np.empty((len(self), size), np.min_scalar_type(-k))
            for block in spans(len(self), max(_BLOCK // (k * size), 1)):
                p = self._chances(kind, index, block)
                labels[block] = self._labels(p, kind, index, block)
        rows, placed = self.row_weights(kind.rows, index), self.placed(kind, index)
        return Drawn(labels, rows, k, size, placed)

    def _soft(
        self, kind: DrawKind, p: Floats, rows: Floats, index: Ints, block: slice | Ints,
        near: PlacedObservations | None, which: Ints | None,
    ) -> Soft:  # fmt: skip
        """P(label), drawn counts or drawn distributions, times row weights."""
        if which is not None and self._numbers_per_item(kind) > 1:
            p, which = np.take(p, which, axis=2), None
        if not kind.drawn:
            if self.times is not None and kind.rows == "bootstrap":
                # Row weights of the population's draws, so that the two differ by labels alone.
                rows = self._weighted_counts(p, index, block).sum(axis=1)
            return Soft(p, rows, near, which=which)
        if self.times is None:
            return Soft(self._distributions(p, kind, index, block), rows, near)
        if kind.rows == "bootstrap":
            each = self._weighted_counts(p, index, block)
            return Soft(each, np.ones((len(each), 1)), near, counts=True)
        counts = self.counts(p, index, block)
        if kind.arbitrary or kind.rows == "urn":
            labeled = np.flatnonzero(self.known[block] >= 0)
            counts[labeled] = 0.0
            counts[labeled, self.known[block][labeled]] = self.times[block][labeled, None]
        row_factor = (
            self.weight[block, None] if kind.rows == "sampling" else rows / self.times[block, None]
        )
        return Soft(counts, row_factor, near, counts=True)

    def _chances(self, kind: DrawKind, index: Ints, block: slice | Ints) -> Floats:
        """P(label) (b, K, D) of a block of items in some draws."""
        draws = self._parameter_draws(kind)
        # A slice of all rows is a view; indices would copy the features of the block.
        p = draws.block(index % draws.size, block if self.all_rows else self.rows[block])
        if kind.arbitrary:
            # Without row weights there is no pseudo-observation; instead about one unlabeled item
            # in n has an arbitrary label.
            share = self.arbitrary_share[index]
            p *= 1 - share
            p += share / self.n_classes
        return p

    def _parameter_draws(self, kind: DrawKind) -> ParameterDraws:
        """Parameter draws whose P(label) a kind of draw cycles through."""
        if kind.source == "marginals":
            return Fixed(self.posterior.probabilities)
        values = kind.source == "values"
        return self.posterior.value_draws if values else self.posterior.interval_draws

    def chances(self, index: Ints, block: slice | Ints) -> Floats:
        """P(label | parameter draw) of some items (b, K, D), for the draws that intervals use."""
        return self._chances(INTERVAL_SOFT, index, block)

    def _labels(
        self, p: Floats, kind: DrawKind, index: Ints, block: slice, which: Ints | None = None
    ) -> Ints:
        """Labels (b, D) from `which` of P(label) (b, K, U); known ones are never arbitrary."""
        labels = draw_labels(p, self.label_keys[block], index, self.posterior.salt, which=which)
        if kind.arbitrary:
            labeled = np.flatnonzero(self.known[block] >= 0)
            labels[labeled] = self.known[block][labeled, None]
        return labels

    def counts(self, p: Floats, index: Ints, block: slice | Ints) -> Floats:
        """How many of the items of each row get each label (b, K, D), from P(label) (b, K, D)."""
        assert self.times is not None
        keys, salt = self.keys[block], self.posterior.salt ^ _COUNTS_SALT
        labels = draw_labels(p, keys, index, self.posterior.salt)
        out = np.zeros((len(keys), self.n_classes, len(index)))
        np.put_along_axis(out, labels[:, None, :], 1.0, axis=1)
        several = np.flatnonzero(self.times[block] > 1)
        times = self.times[block][several]
        out[several] = label_counts(keys[several], index, times, p[several], salt)
        return out

    def counted(self, p: Floats, index: Ints, block: slice | Ints) -> Soft:
        """Drawn counts of each label from P(label) (b, K, D), times sampling weights."""
        return Soft(self.counts(p, index, block), self.weight[block, None], counts=True)

    def _weighted_counts(self, p: Floats, index: Ints, block: slice | Ints) -> Floats:
        """Drawn labels of rows that stand for several items, each item times its row weight."""
        assert self.times is not None
        counts = self.counts(p, index, block)
        keys, salt = self.keys[block], self.posterior.salt ^ _ROWS_SALT
        clusters = [codes[block] for codes in self.clusters]
        shared = shared_exponentials(clusters, index, salt)
        weights = counts * shared[:, None, :]
        several = np.flatnonzero(self.times[block] > 1)
        weights[several] = weight_sums(keys[several], index, counts[several], salt)
        weights *= self.weight[block, None, None]
        return weights

    def _distributions(self, p: Floats, kind: DrawKind, index: Ints, block: slice | Ints) -> Floats:
        """Drawn distributions over classes (b, K, D) with means p.

        A drawn label mixed in has the mean and all covariances of a Dirichlet, at no cost.
        """
        assert self.label_spread is not None
        spread = self.label_spread.of(index, self.rows[block])
        label = draw_labels(p, self.label_keys[block], index, self.posterior.salt)
        mixed: Floats = p * (1 - spread[:, None, :])
        item, draw = np.arange(len(label))[:, None], np.arange(len(index))
        mixed[item, label, draw] += spread
        return mixed

    # --- row weights --------------------------------------------------------------------------

    def row_weights(self, kind: Literal["sampling", "bootstrap", "urn"], index: Ints) -> Floats:
        """Weights of the rows, (n, D), or (n, 1) where no draw differs."""
        if kind == "sampling":
            return self.mass[:, None]
        return self._urn_rows(index) if kind == "urn" else self._bootstrap(index)

    def _bootstrap(self, index: Ints) -> Floats:
        """Sums of the Exp(1) weights of the items of each row, times sampling weights, (n, D).

        Rows of a cluster have one weight; where clusters are crossed, the product of theirs.
        """
        salt = self.posterior.salt ^ _ROWS_SALT
        if self.strata is not None and len(self):
            return bootstrap_within(
                self.strata, self.keys, index, self.weight, self._times, salt,
                self.clusters if self.clustered else (),
            )  # fmt: skip
        weights = shared_exponentials(self.clusters, index, salt, self.shape)
        if self.times is not None:
            several = np.flatnonzero(self.times > 1)
            weights[several] = gammas(self.keys[several], index, self.times[several, None], salt)
        weights *= self.weight[:, None]
        return weights

    @cached_property
    def shape(self) -> float:
        """The exponent of the row weights: 1 but for few clusters, or crossed ones."""
        if not self.clustered:
            return 1.0
        return worth(self.weight, self.clusters, self.correlation, self._times).exponent

    @property
    def _times(self) -> Floats:
        return np.ones(len(self)) if self.times is None else self.times

    def _urn_rows(self, index: Ints) -> Floats:
        """How many of all items have the label of each labeled one, times weights, (n, D)."""
        rows = np.repeat(self.mass[:, None], len(index), axis=1)
        if self.n_others:
            pseudo_counts = self._urn_pseudo_counts(index)
            urn = self._bootstrap(index)
            for column, d in enumerate(index):
                share = urn[self.by_key, column]
                familiar = self.n_others - pseudo_counts[column].sum()
                drawn = self._generator(_URN, int(d)).multinomial(familiar, share / share.sum())
                rows[self.by_key, column] += drawn * self.unit
        return rows

    def _urn_pseudo_counts(self, index: Ints) -> Ints:
        """How many of the other items the urn draws as the pseudo-observation, by class, (D, K)."""
        mass: Floats = self._placed[1][0, index]
        labeled = self._bootstrap(index).sum(axis=0)
        share = np.column_stack([mass, labeled]) / (mass.sum(axis=1) + labeled)[:, None]
        drawn = [
            self._generator(_URN_PSEUDO, int(d)).multinomial(self.n_others, p)
            for d, p in zip(index, share, strict=True)
        ]
        return np.array(drawn)[:, :-1]

    def resampled(self, index: Ints, *, point: bool = False) -> tuple[Array, Ints]:
        """Labels (n, D) and, per draw, rows (n, D) of the plain bootstrap.

        For functions that take no weights. In an interval's draws about one item gets an
        arbitrary label; with `point` none does.
        """
        drawn = self.drawn(POINT if point else LABELS, index)
        labels = np.array(np.broadcast_to(drawn.labels, (len(self), len(index))), dtype=np.int64)
        n, rows = len(self), np.empty_like(labels)
        chance = self.weight[self.by_key] / self.weight.sum()
        for column, d in enumerate(index):
            generator = self._generator(_RESAMPLE, int(d))
            rows[:, column] = self._resampled_rows(generator, chance)
            arbitrary = generator.random(n) < (0 if point else PSEUDO_MASS / (n + PSEUDO_MASS))
            classes = generator.integers(self.n_classes, size=int(arbitrary.sum()))
            labels[self.by_key[arbitrary], column] = classes
        return labels, rows

    def _resampled_rows(self, generator: np.random.Generator, chance: Floats) -> Ints:
        """Rows (n,), drawn with these chances in the order of the keys, or cluster by cluster.

        Where rows belong together a row is drawn in proportion to the weight of its cluster too.
        """
        n = len(self)
        if not self.clustered:
            return self.by_key[generator.choice(n, size=n, p=chance)]
        for keys in self.clusters:
            _, place = np.unique(keys[self.by_key], return_inverse=True)
            chance = chance * generator.exponential(size=place.max() + 1)[place]
        # Systematic: what is random are the clusters' weights, not the rows beside them.
        ends = np.cumsum(chance)
        at = (np.arange(n) + generator.random()) * ends[-1] / n
        return self.by_key[np.minimum(np.searchsorted(ends, at, side="right"), n - 1)]

    @cached_property
    def arbitrary_share(self) -> Floats:
        """The chance (D,), by draw, that the label of one of these very items is any class."""
        n = max(self.size, 1)
        return self._generator(_ARBITRARY).beta(PSEUDO_MASS, n, self.n_draws)

    # --- pseudo-observations -------------------------------------------------------------------

    def placed(self, kind: DrawKind, index: Ints) -> PlacedObservations | None:
        """The pseudo-observations of each group in some draws; None of draws without any."""
        if kind.rows == "sampling" or not len(self) or (kind.rows == "urn" and not self.n_others):
            return None
        item, mass = self._placed[0][:, index], self._placed[1][:, index]
        if kind.rows == "urn":  # with the weight that Polya's urn draws of it
            mass = np.asarray(self._urn_pseudo_counts(index) * self.unit, dtype=np.float64)[None]
        group, draw = np.nonzero(item >= 0)
        mass = mass[group, draw]
        predicted = self.pseudo_draws.predicted[index][draw]
        return PlacedObservations(item[group, draw], draw, predicted, mass, mass.sum(axis=1))

    @cached_property
    def pseudo_draws(self) -> PseudoObservations:
        """The pseudo-observations, not yet placed among items."""
        return pseudo_observations(self._generator(_PSEUDO), self.n_classes, self.n_draws)

    @cached_property
    def _placed(self) -> tuple[Ints, Floats]:
        """Entries (G, D) and class weights (G, D, K) of the pseudo-observations of every group.

        The entry is -1 for a group without entries. Each weighs as much as one of the effective
        number of items: 1, with equal weights and independent rows.
        """
        drawn, entries = self.pseudo_draws, self.entries
        keys, mass, weight = self.keys, self.mass, self.weight
        if entries.items is not None:
            keys = keys[entries.items]
            mass, weight = mass[entries.items], weight[entries.items]
        if entries.group is None:
            group, sizes = np.zeros(len(keys), dtype=np.int64), np.array([len(keys)])
            by_key = self.by_key if entries.items is None else np.argsort(keys)
        else:
            group = entries.group
            sizes = np.bincount(group, minlength=entries.n_groups)
            by_key = np.lexsort((keys, group))
        if self.times is None:
            place = (drawn.place * sizes[:, None]).astype(np.int64)
            place += (np.cumsum(sizes) - sizes)[:, None]
        else:  # from the place among the items to that among the rows
            place = (drawn.place * self.size).astype(np.int64)[None]
            place = np.searchsorted(np.cumsum(self.times[self.by_key]), place, side="right")
        item = by_key[np.minimum(place, len(by_key) - 1)]
        item[sizes == 0] = -1
        total = np.bincount(group, mass, len(sizes))
        alone = np.bincount(group, mass * weight, len(sizes))
        unit = alone
        for keys, rho in zip(
            self.clusters if self.clustered else (), self.correlation, strict=True
        ):
            _, code = np.unique(keys, return_inverse=True)
            code = code if entries.items is None else code[entries.items]
            pairs, code = np.unique(code * len(sizes) + group, return_inverse=True)
            cluster_mass = np.bincount(code, mass) ** 2
            together = np.bincount(pairs % len(sizes), cluster_mass, len(sizes))
            unit = unit + rho * (together - alone)
        unit = np.divide(unit, total, out=np.zeros_like(unit), where=total > 0)
        return item, drawn.mass * unit[:, None, None]

    def _generator(self, *key: int) -> np.random.Generator:
        return np.random.default_rng([self.posterior.salt & (2**64 - 1), *key])


class Items(Protocol):
    """Arrays of n rows; some may be None."""

    def __iter__(self) -> Iterator[Any]: ...

    def take(self, rows: Any) -> Any:
        """Some of the rows."""


_Items = TypeVar("_Items", bound=Items)


def drawn_sums(
    items: _Items, by_unit: Callable[[_Items, Ints, int], Sequence[Floats]],
    as_pseudo_observation: Callable[[_Items, Floats, np.random.Generator], _Items], n_classes: int,
    n_draws: int, seed: int, all_items: Sequence[Floats] | None = None,
) -> Iterator[list[Floats]]:  # fmt: skip
    """States of bootstrap draws of items with known labels, some draws at a time.

    Items have exponential weights (Rubin 1981), and as states add, one matrix product gives all
    draws. One pseudo-observation per draw, with the prediction of one of the items, stands for what
    has not been seen: intervals do not collapse where all labels agree.

    `by_unit` takes items, the order to deal them in and a number of units U, and gives the states
    of the units: arrays (U, F, ...) that add over items, the first of them with few numbers.
    `as_pseudo_observation` gives items class weights (D, K) in place of labels. If `items` are a
    random sample, `all_items` is the state of one unit of all items: draws then lie around it, with
    the noise of as many items (`_around_all_items`).
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
        drawn = [(factor @ s.reshape(units, -1)).reshape(size, *s.shape[1:]) for s in sums]
        if all_items is not None:
            totals = [state.sum(axis=0) for state in sums]
            drawn = _around_all_items(drawn, totals, [state[0] for state in all_items])
        pseudo = pseudo_observations(rng, n_classes, size)
        scores = items.take(order[(pseudo.place * n).astype(np.int64)])
        more = by_unit(as_pseudo_observation(scores, pseudo.mass, rng), np.arange(size), size)
        mass = pseudo.mass.sum(axis=1)
        yield [
            state + extra * mass.reshape(-1, *[1] * (extra.ndim - 1))
            for state, extra in zip(drawn, more, strict=True)
        ]


def _by_content(items: Items) -> Ints:
    """The items in the order of their numbers, rounded to nine digits.

    So draws depend neither on the order of the rows nor on the unit of a statistic.
    """
    arrays = [array for array in items if array is not None]
    # The first parts count most: `lexsort` goes by the last of its columns.
    columns = [c for array in reversed(arrays) for c in array.reshape(len(array), -1).T]
    return np.lexsort(np.round(columns, 9))


def _around_all_items(
    drawn: Sequence[Floats], sums: Sequence[Floats], all_sums: Sequence[Floats]
) -> list[Floats]:
    """Draws of the sums over a sample, (D, F, ...), as draws of those over all items.

    With n items and m in the sample, `all_sums` + sqrt(n / m) (draw - `sums`) has the covariance of
    draws with a weight for each of the n, which is the sum of squares over items. The factor is
    lower where a cell would go below 0, as the sample may have too many of the few items of a cell.
    """
    root = math.sqrt(float(all_sums[0][0]) / float(sums[0][0]))
    out = []
    for draws, sample_sum, all_sum in zip(drawn, sums, all_sums, strict=True):
        total = all_sum[: len(sample_sum)]
        with np.errstate(divide="ignore", invalid="ignore"):
            most = np.where(sample_sum > 0, total / sample_sum, np.inf).min(axis=0)
        out.append(total + np.minimum(root, most) * (draws - sample_sum))
    return out
