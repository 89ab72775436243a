"""Label weights of some items in draws: a drawn label and a row weight, or P(label).

Draw d weighs item i under class k by W[i, k, d]. W is never stored: of a drawn label it is rows[i,
d] 1{labels[i, d] = k}, of P(label) rows[i, d] p[i, k, d]. Statistics ask for its sum over the
classes, or for the weight of one class of each item, and sum the answers. Before it come the bins
of items that sums go by.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from types import ModuleType
from typing import NamedTuple

import numpy as np
import scipy.sparse

from fewlabels.kernels.arrays import Array, Floats, Ints

EQUAL_WIDTH_BINS = 15
QUANTILE_BINS = 10
_KEEP = 50_000


def equal_width(p: Floats, bins: int = EQUAL_WIDTH_BINS) -> Ints:
    """Bin of each probability: [a, b), the last one closed; shape (n,)."""
    return np.digitize(p, np.linspace(0, 1, bins + 1)[1:-1])


def quantile_edges(p: Floats, bins: int = QUANTILE_BINS, times: Floats | None = None) -> Floats:
    """Edges between quantiles, (bins + 1,); every p is there as often as `times` (n,) says."""
    at = np.linspace(0, 1, bins + 1)
    out: Floats = np.quantile(p, at) if times is None else _quantiles(p, times, at)
    return out


def between(edges: Floats, p: Floats) -> Ints:
    """Bin of each probability between edges: (a, b], the first closed; beyond them the end bins."""
    return np.clip(np.searchsorted(edges, p, side="left") - 1, 0, len(edges) - 2)


def by_quantiles(p: Floats, bins: int = QUANTILE_BINS, times: Floats | None = None) -> Ints:
    """Bin of each probability between the sample's own quantiles: (a, b], the first closed.

    Every probability is there as often as `times` (n,) says, or once.
    """
    return between(quantile_edges(p, bins, times), p)


def _quantiles(values: Floats, times: Floats, at: Floats) -> Floats:
    """As `numpy.quantile`, of values that are each there so many times, without repeating them."""
    order = np.argsort(values)
    ends = np.cumsum(times[order])
    place = at * (ends[-1] - 1)
    below = np.floor(place)
    low, high = (
        values[order][np.minimum(np.searchsorted(ends, i, side="right"), len(ends) - 1)]
        for i in (below, below + 1)
    )
    out: Floats = low + (high - low) * (place - below)
    return out


@dataclass(eq=False)
class Indicator:
    """Items by code: sums of label weights over the items of each code.

    codes (n,) lie below `size`; `values`, where given, multiply each item's weight.
    """

    codes: Ints
    size: int
    values: Floats | None = None
    _whole: scipy.sparse.csc_matrix | None = field(default=None, init=False, repr=False)

    def sums(self, weights: Floats, rows: slice | None = None) -> Floats:
        """Sum weights (b, ...) of the items in `rows` (all of them: None) by code: (size, ...)."""
        width = math.prod(weights.shape[1:])
        if self.size == 1 and self.values is None:
            return weights.sum(axis=0)[None]
        if width == 1:
            codes = self.codes if rows is None else self.codes[rows]
            times = self._values_times(weights.ravel(), rows)
            out = np.bincount(codes, times, minlength=self.size).astype(np.float64)
            return out.reshape(self.size, *weights.shape[1:])
        flat: Array = self._matrix(rows) @ weights.reshape(len(weights), width)
        return flat.reshape(self.size, *weights.shape[1:])

    def _values_times(self, weights: Floats, rows: slice | None) -> Floats:
        if self.values is None:
            return weights
        return weights * (self.values if rows is None else self.values[rows])

    def part(self, block: slice | None) -> Indicator:
        """The items of a block; all of them: None."""
        if block is None or (block.start == 0 and block.stop >= len(self.codes)):
            return self
        values = None if self.values is None else self.values[block]
        return Indicator(self.codes[block], self.size, values)

    def _matrix(self, rows: slice | None) -> scipy.sparse.csc_matrix:
        everything = rows is None or (rows.start == 0 and rows.stop >= len(self.codes))
        if everything and self._whole is not None:
            return self._whole
        chosen = slice(None) if rows is None else rows
        codes = self.codes[chosen]
        data = np.ones(len(codes)) if self.values is None else self.values[chosen]
        # A column per item, with one entry: nothing needs sorting, as it would by rows.
        matrix = scipy.sparse.csc_matrix(
            (data, codes, np.arange(len(codes) + 1)), shape=(self.size, len(codes))
        )
        if everything and len(codes) <= _KEEP:
            self._whole = matrix
        return matrix


# --- label weights --------------------------------------------------------------------------------


FEW_CLASSES = 8
"""With more classes drawn labels are counted cell by cell, not class by class."""

COMPILED_FROM = 2**18
"""From this many items times draws times classes, loops are compiled, where numba is installed:
loading it takes a third of a second."""


def loops_for(cells: int) -> ModuleType | None:
    """Compiled loops for so many cells; None where arrays are quicker."""
    if cells < COMPILED_FROM:
        return None
    from fewlabels.kernels import compiled, loops

    return loops if compiled.IS_COMPILED else None


class PlacedObservations(NamedTuple):
    """Prior observations of items (P,) in draws (P,): predicted class (P,), class weights (P, K).

    `total` (P,) are the weights over the classes.
    """

    item: Ints
    draw: Ints
    predicted: Ints
    mass: Floats
    total: Floats

    def within(self, block: slice) -> PlacedObservations:
        """Those of a block of items, counted from its start."""
        at = np.flatnonzero((self.item >= block.start) & (self.item < block.stop))
        return PlacedObservations(
            self.item[at] - block.start, self.draw[at], self.predicted[at], self.mass[at],
            self.total[at],
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Kept:
    """What was summed of weights for one classifier, where all others ask for the same."""

    _sums: dict[int | None, Floats] = field(default_factory=dict, init=False, repr=False)

    @property
    @abstractmethod
    def cells(self) -> int:
        """How many weights there are: of each item and class in each draw."""

    @property
    def loops(self) -> ModuleType | None:
        """Compiled loops, where they are worth it."""
        return loops_for(self.cells)

    def by_class(self, group: Indicator) -> Floats:
        """Weights of each class in each group, (K, G, D)."""
        if group.size > 1:
            return self._by_class(group)
        if None not in self._sums:
            self._sums[None] = self._by_class(group)
        return self._sums[None]

    @abstractmethod
    def _by_class(self, group: Indicator) -> Floats: ...


@dataclass(frozen=True, eq=False)
class Drawn(_Kept):
    """Drawn labels of b items: labels (b, D) or (b, 1), row weights (b, D) or (b, 1)."""

    labels: Array
    rows: Floats
    n_classes: int
    size: int
    pseudo: PlacedObservations | None = None

    @property
    def cells(self) -> int:
        """How many weights there are."""
        return len(self.labels) * self.size * self.n_classes

    @property
    def total(self) -> Floats:
        """Weights over the classes, (b, D) or (b, 1)."""
        return self.rows

    def of_events(self, event: Ints) -> Floats:
        """Weights (b, D) of one class of each item, event (b,)."""
        if _is_one(event):
            return self.of_class(int(event[0]))
        return np.where(self.labels == event.astype(self.labels.dtype)[:, None], self.rows, 0.0)

    def of_class(self, k: int) -> Floats:
        """Weights (b, D) of a class; the latest is kept, as all classifiers ask for it."""
        if k not in self._sums:
            for latest in self._sums.keys() - {None}:
                del self._sums[latest]
            self._sums[k] = np.where(self.labels == k, self.rows, 0.0)
        return self._sums[k]

    def by_event(self, items: Indicator, event: Ints) -> Floats:
        """Weights of one class of each item, event (b,), by code: (size, D)."""
        if self.loops is None:
            return in_every_draw(items.sums(self.of_events(event)), self.size)
        out = np.zeros((items.size, self.size))
        self.loops.drawn_events(self.labels, self.rows, items.codes, event, out)
        return out

    def expected(self, values: Floats) -> Floats:
        """Sums over the classes of values (b, K) times weights, (b, D)."""
        out: Floats = values[np.arange(len(values))[:, None], self.labels] * self.rows
        return out

    def _by_class(self, group: Indicator) -> Floats:
        k, g = self.n_classes, group.size
        if self.loops is not None:
            out = np.zeros((k, g, self.size))
            self.loops.drawn_classes(self.labels, self.rows, group.codes, out)
            return out
        if k <= FEW_CLASSES:
            class_sums = [in_every_draw(group.sums(self.of_class(c)), self.size) for c in range(k)]
            return np.stack(class_sums)
        cells = self.labels * np.int64(g) + group.codes[:, None]
        return self._counted(cells, self.rows, k * g).reshape(k, g, self.size)

    def add_by_place(self, place: Ints, first: int, hits: Floats, total: Floats) -> None:
        """Add weights of classes `first` .. and of all, by the place (b, C) for each, (size, D).

        `total` is (size, 1) where no draw differs.
        """
        size = len(hits)
        if self.loops is not None:
            self.loops.drawn_places(self.labels, self.rows, place, first, hits, total)
            return
        total += _stacked(place, self.rows, size)
        if self.n_classes <= FEW_CLASSES:
            for c in range(place.shape[1]):
                hits += Indicator(place[:, c], size).sums(self.of_class(first + c))
            return
        labels = np.broadcast_to(self.labels, (len(place), self.size))
        item, draw = np.nonzero((labels >= first) & (labels < first + place.shape[1]))
        at = place[item, labels[item, draw] - first] * np.int64(self.size) + draw
        rows = self.rows[item, draw if self.rows.shape[1] > 1 else 0]
        counted = np.bincount(at, rows, minlength=size * self.size)
        hits += counted.reshape(size, self.size)

    def _counted(self, cells: Ints, rows: Floats, size: int) -> Floats:
        places = cells * np.int64(self.size) + np.arange(self.size)
        weights = np.broadcast_to(rows, places.shape)
        out = np.bincount(places.ravel(), weights.ravel(), minlength=size * self.size)
        return out.astype(np.float64, copy=False)

    def take(self, items: Ints | slice) -> Drawn:
        """Some of the items, or items several times; without pseudo-observations."""
        return Drawn(self.labels[items], self.rows[items], self.n_classes, self.size)


@dataclass(frozen=True, eq=False)
class Soft(_Kept):
    """P(label) of b items: p (b, K, U), row weights (b, D) or (b, 1).

    With `counts`, p are weights of the classes that need not sum to one. `which` (D,) says which of
    the U each draw has; None: U is D, each its own.
    """

    p: Floats
    rows: Floats
    pseudo: PlacedObservations | None = None
    counts: bool = False
    which: Ints | None = None

    @property
    def size(self) -> int:
        """How many draws there are, D."""
        return self.p.shape[2] if self.which is None else len(self.which)

    @property
    def cells(self) -> int:
        """How many weights there are."""
        return self.p.shape[0] * self.p.shape[1] * self.size

    @property
    def total(self) -> Floats:
        """Weights over the classes, (b, D) or (b, 1)."""
        return self.p.sum(axis=1) * self.rows if self.counts else self.rows

    def of_events(self, event: Ints) -> Floats:
        """Weights (b, D) of one class of each item, event (b,)."""
        if _is_one(event):
            return self.of_class(int(event[0]))
        return self._times_rows(self.p[np.arange(len(event)), event])

    def of_class(self, k: int) -> Floats:
        """Weights (b, D) of a class."""
        return self._times_rows(self.p[:, k])

    def expected(self, values: Floats) -> Floats:
        """Sums over the classes of values (b, K) times weights, (b, D)."""
        return self._times_rows(np.einsum("nk,nkd->nd", values, self.p))

    def _by_class(self, group: Indicator) -> Floats:
        if self.which is not None:
            return np.stack([group.sums(self.of_class(k)) for k in range(self.p.shape[1])])
        return group.sums(self._times_rows(self.p)).swapaxes(0, 1)

    def by_event(self, items: Indicator, event: Ints) -> Floats:
        """Weights of one class of each item, event (b,), by code: (size, D)."""
        if self.loops is None or self.which is not None:
            return items.sums(self.of_events(event))
        out = np.zeros((items.size, self.size))
        self.loops.soft_events(self.p, self.rows, items.codes, event, out)
        return out

    def add_by_place(self, place: Ints, first: int, hits: Floats, total: Floats) -> None:
        """As `Drawn.add_by_place`."""
        every, c = self.total, place.shape[1]
        if self.loops is not None and self.which is None:
            self.loops.soft_places(self.p, self.rows, every, place, first, hits, total)
            return
        weighted = self._in_draws(self.p[:, first : first + c]) * self.rows[:, None, :]
        hits += Indicator(place.ravel(), len(hits)).sums(weighted.reshape(-1, self.size))
        total += _stacked(place, every, len(hits))

    def take(self, items: Ints | slice) -> Soft:
        """Some of the items, or items several times; without pseudo-observations."""
        return Soft(self.p[items], self.rows[items], counts=self.counts, which=self.which)

    def _in_draws(self, p: Floats) -> Floats:
        """P (..., U) of each draw, (..., D)."""
        return p if self.which is None else np.take(p, self.which, axis=-1)

    def _times_rows(self, p: Floats) -> Floats:
        """P of some classes (b, ..., U) times the row weights, (b, ..., D)."""
        p = self._in_draws(p)
        if self.rows.shape[1] == 1 and (self.rows == 1).all():
            return p
        return p * self.rows.reshape(len(p), *[1] * (p.ndim - 2), -1)


Weighting = Drawn | Soft


def _is_one(event: Ints) -> bool:
    return len(event) > 0 and bool((event == event[0]).all())


def _stacked(place: Ints, weights: Floats, size: int) -> Floats:
    """Sums of weights (b, D) by the places (b, C) of each item, (size, D)."""
    n, c = place.shape
    if weights.shape[1] == 1:
        repeated = np.broadcast_to(weights, (n, c)).ravel()
        return np.bincount(place.ravel(), repeated, minlength=size).astype(np.float64)[:, None]
    entries = (np.ones(n * c), place.ravel(), np.arange(0, n * c + 1, c))
    out: Floats = scipy.sparse.csc_matrix(entries, shape=(size, n)) @ weights
    return out


def in_every_draw(weights: Floats, size: int) -> Floats:
    """Weights (..., D) of what may be (..., 1)."""
    return np.broadcast_to(weights, (*weights.shape[:-1], size))
