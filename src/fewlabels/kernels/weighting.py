"""What draws say of some items' labels: a drawn label and a row weight, or P(label).

Draw d weighs item i under class k by W[i, k, d]. Nothing holds W: of a drawn label it is
rows[i, d] 1{labels[i, d] = k}, of P(label) rows[i, d] p[i, k, d]. Statistics ask for its sum over
the classes, or for the weight of one class of each item, and add up what they get.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Array, Floats, Ints
from fewlabels.kernels.binning import Indicator

FEW_CLASSES = 8
"""Of more classes drawn labels are counted cell by cell, not class by class."""


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
class Drawn:
    """Drawn labels of b items: labels (b, D) or (b, 1), row weights (b, D) or (b, 1)."""

    labels: Array
    rows: Floats
    n_classes: int
    size: int
    pseudo: PlacedObservations | None = None

    @property
    def total(self) -> Floats:
        """Weights over the classes, (b, D) or (b, 1)."""
        return self.rows

    def of_events(self, event: Ints) -> Floats:
        """Weights (b, D) of one class of each item, event (b,)."""
        return np.where(self.labels == event.astype(self.labels.dtype)[:, None], self.rows, 0.0)

    def of_class(self, k: int) -> Floats:
        """Weights (b, D) of a class."""
        return np.where(self.labels == k, self.rows, 0.0)

    def expected(self, values: Floats) -> Floats:
        """Sums over the classes of values (b, K) times weights, (b, D)."""
        out: Floats = values[np.arange(len(values))[:, None], self.labels] * self.rows
        return out

    def by_class(self, group: Indicator) -> Floats:
        """Weights of each class in each group, (K, G, D)."""
        k, g = self.n_classes, group.size
        if k <= FEW_CLASSES:
            return np.stack([group.sums(self.of_class(c)) for c in range(k)])
        return self._counted(self.labels * np.int64(g) + group.codes[:, None], k, g)

    def by_code(self, codes: Array, size: int) -> Floats:
        """Weights of each class by the codes (b, K) that items have for it, (K, size, D)."""
        own = codes[np.arange(len(codes))[:, None], self.labels]
        return self._counted(self.labels * np.int64(size) + own, self.n_classes, size)

    def _counted(self, cells: Ints, k: int, size: int) -> Floats:
        places = cells * np.int64(self.size) + np.arange(self.size)
        weights = np.broadcast_to(self.rows, places.shape)
        out = np.bincount(places.ravel(), weights.ravel(), minlength=k * size * self.size)
        return out.astype(np.float64, copy=False).reshape(k, size, self.size)

    def take(self, items: Ints | slice) -> Drawn:
        """Some of the items, or items several times; without pseudo-observations."""
        return Drawn(self.labels[items], self.rows[items], self.n_classes, self.size)


@dataclass(frozen=True, eq=False)
class Soft:
    """P(label) of b items: p (b, K, D), row weights (b, D) or (b, 1).

    With `counts`, p are weights of the classes that need not sum to one.
    """

    p: Floats
    rows: Floats
    pseudo: PlacedObservations | None = None
    counts: bool = False

    @property
    def size(self) -> int:
        """How many draws there are, D."""
        return self.p.shape[2]

    @property
    def total(self) -> Floats:
        """Weights over the classes, (b, D) or (b, 1)."""
        return self.p.sum(axis=1) * self.rows if self.counts else self.rows

    def of_events(self, event: Ints) -> Floats:
        """Weights (b, D) of one class of each item, event (b,)."""
        if len(event) and (event == event[0]).all():
            return self.of_class(int(event[0]))
        return self._times_rows(self.p[np.arange(len(event)), event])

    def of_class(self, k: int) -> Floats:
        """Weights (b, D) of a class."""
        return self._times_rows(self.p[:, k])

    def expected(self, values: Floats) -> Floats:
        """Sums over the classes of values (b, K) times weights, (b, D)."""
        out: Floats = np.einsum("nk,nkd->nd", values, self.p) * self.rows
        return out

    def by_class(self, group: Indicator) -> Floats:
        """Weights of each class in each group, (K, G, D)."""
        return np.stack([group.sums(self.of_class(k)) for k in range(self.p.shape[1])])

    def by_code(self, codes: Array, size: int) -> Floats:
        """Weights of each class by the codes (b, K) that items have for it, (K, size, D)."""
        k = self.p.shape[1]
        cells = codes + np.arange(k, dtype=np.int64) * size
        weighted = self.p * self.rows[:, None, :]
        sums = Indicator(cells.ravel(), k * size).sums(weighted.reshape(-1, self.size))
        return sums.reshape(k, size, self.size)

    def take(self, items: Ints | slice) -> Soft:
        """Some of the items, or items several times; without pseudo-observations."""
        return Soft(self.p[items], self.rows[items], counts=self.counts)

    def _times_rows(self, p: Floats) -> Floats:
        even = self.rows.shape[1] == 1 and bool((self.rows == 1).all())
        return p if even else p * self.rows


Weighting = Drawn | Soft


def in_every_draw(weights: Floats, size: int) -> Floats:
    """Weights (..., D) of what may be (..., 1)."""
    return np.broadcast_to(weights, (*weights.shape[:-1], size))
