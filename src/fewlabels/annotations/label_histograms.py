"""Sums behind the losses of label histograms: they add over items, so over blocks and partitions.

Equations are those of Mimori, Sasada, Matsui, Sato (2021), "Diagnostic Uncertainty Calibration".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Array, Bools, Floats, Ints
from fewlabels.kernels.blocks import map_blocks, spans
from fewlabels.kernels.weighting import equal_width

_ENTRIES = 1 << 17
"""Numbers of a temporary array, so that a dozen of them fit the processor's cache."""

_CELL_FIELDS = 9


class Annotated(NamedTuple):
    """Items with label counts (n, K) and predicted probabilities (n, K).

    `pair` (n,) is the predicted probability that two labels differ (None: 1 - sum z^2); `weight`
    (n,), None where all are equal. Rows without a label, and rows of NaN, count nowhere.
    """

    counts: Array
    probabilities: Array
    pair: Array | None = None
    weight: Floats | None = None

    def take(self, rows: Array | slice) -> Annotated:
        """Some of the items."""
        return Annotated(*(None if array is None else array[rows] for array in self))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Scheme:
    """Settings of the sums: equal-width bins, the variance of a cell, sums for dispersion.

    With `residual` the variance is that of mu - z, else of mu. `dispersion` adds the epistemic
    sums of each cell. `agreement` bins the probability of agreement in place of disagreement, over
    all items, as lh_calib does. `panel` is the number of annotators whose labels are the label
    distribution: labels of an item are drawn without replacement from theirs, or as these are
    known to label (`spread`: `agreement.spread_of`).
    """

    bins: int = 15
    residual: bool = False
    dispersion: bool = False
    agreement: bool = False
    panel: float = math.inf
    spread: float | None = None

    @property
    def fixed(self) -> bool:
        """Whether the annotators are a fixed panel."""
        return math.isfinite(self.panel)

    def noise(self, size: Floats) -> tuple[Bools, Floats]:
        """Where labels show how far mu is from Q, (n,), and f: E (mu - Q)^2 = f mu (1 - mu).

        f = (1 - n / R) / (n - 1) for n of the R labels of a panel (Cochran 1977, 2.6), and nothing
        is unknown of an item that all of it labeled; R is infinite for independent draws.
        """
        left = np.maximum(1 - size / self.panel, 0.0)
        known = left if self.spread is None else size * self.spread
        return (size >= 2) | (left == 0), known / np.maximum(size - 1, 1)


class HistogramSums(NamedTuple):
    """Sums over items of each unit: `items` (U, 9), `cells` (U, F, K, B), `pairs` (U, F, 1, B).

    `items`: number, weight, correct, loss, epistemic plugin; over items of two labels or more the
    weight, the epistemic plugin, and mu (1 - mu) / (n - 1), what few labels add to it; and the
    loss of disagreement. `pairs` are the cells of disagreement. The fields of a cell are those of
    `cell_sums`, then, with dispersion, those of `_dispersion`.
    """

    items: Floats
    cells: Floats
    pairs: Floats


def histogram_sums(data: Annotated, scheme: Scheme) -> HistogramSums:
    """All sums over all items, as those of one unit; blocks of items run on threads."""
    rows = max(_ENTRIES // data.counts.shape[1], 1)

    def block_sums(block: slice) -> HistogramSums:
        return _block_sums(data.take(block), scheme, None, 1)

    blocks = map_blocks(block_sums, spans(len(data.counts), rows))
    total = next(blocks)
    for one in blocks:
        for have, more in zip(total, one, strict=True):
            have += more
    return total


def sums_by_unit(data: Annotated, scheme: Scheme, rows: Ints, units: int) -> HistogramSums:
    """All sums by unit, where `rows` (N,), the items in some order, are cut into equal units."""
    ends = len(rows) * np.arange(units + 1) // units
    together = max(_ENTRIES * units // (len(rows) * data.counts.shape[1]), 1)

    def block_sums(block: slice) -> HistogramSums:
        cuts = ends[block.start : block.stop + 1]
        size = len(cuts) - 1
        unit = np.repeat(np.arange(size), np.diff(cuts))
        return _block_sums(data.take(rows[cuts[0] : cuts[-1]]), scheme, unit, size)

    blocks = zip(*map_blocks(block_sums, spans(units, together)), strict=True)
    return HistogramSums(*(np.concatenate(arrays) for arrays in blocks))


def _block_sums(data: Annotated, scheme: Scheme, unit: Ints | None, units: int) -> HistogramSums:
    counts = data.counts.astype(np.float64)
    size = counts.sum(axis=1)
    used = (size > 0) & ~np.isnan(data.probabilities[:, 0])
    if not used.all():
        rows = np.flatnonzero(used)
        data, counts, size = data.take(rows), counts[rows], size[rows]
        unit = None if unit is None else unit[rows]
    right = counts.argmax(axis=1) == data.probabilities.argmax(axis=1)
    # Classes first: sums over classes and codes of bins then run over contiguous memory.
    z = np.array(data.probabilities.T, dtype=np.float64, order="C")
    mu = np.ascontiguousarray(counts.T)
    mu /= size
    z2, mu2, cross = (np.einsum("kn,kn->n", a, b) for a, b in ((z, z), (mu, mu), (mu, z)))
    pair = 1 - z2 if data.pair is None else data.pair.astype(np.float64)
    two, noise = scheme.noise(size)
    excess = (1 - mu2) * noise
    with np.errstate(divide="ignore", invalid="ignore"):
        # (6) of the paper for two labels: 1 - sum y (y - 1) / (n (n - 1)) = n (1 - sum mu^2)/(n-1).
        differ = size * (1 - mu2) / (size - 1)
    both = (size >= 2) & ~np.isnan(pair)
    w = data.weight
    columns = (
        np.ones(len(size)),
        np.ones(len(size)) if w is None else w,
        right if w is None else w * right,
        *_times(w, 1 + z2 - 2 * cross, z2 + mu2 - 2 * cross),
        two if w is None else w * two,
        *_times(w, _where(two, z2 + mu2 - 2 * cross), _where(two, excess)),
        *_times(w, _where(both, differ - 2 * differ * pair + pair**2)),
    )
    of_unit = np.zeros(len(size), dtype=np.int64) if unit is None else unit
    items = np.stack([_count(of_unit, c, units) for c in columns], axis=1)
    return HistogramSums(
        items,
        _class_cells(z, mu, size, w, scheme, unit, units),
        _pair_cells(differ, pair, both, w, scheme, unit, units),
    )


def _times(weight: Floats | None, *values: Floats) -> tuple[Floats, ...]:
    return values if weight is None else tuple(weight * value for value in values)


def _where(mask: Array, value: Floats) -> Floats:
    return np.where(mask, value, 0.0)


def _class_cells(
    z: Floats,
    mu: Floats,
    size: Floats,
    weight: Floats | None,
    scheme: Scheme,
    unit: Ints | None,
    units: int,
) -> Floats:
    """Sums by class and bin of its probability; z and mu are (K, n)."""
    k, n = z.shape
    codes = equal_width(z, scheme.bins)
    codes += scheme.bins * np.arange(k)[:, None]
    if unit is not None:
        codes += scheme.bins * k * unit
    flat, cells = codes.ravel(), units * k * scheme.bins
    w = None if weight is None else np.broadcast_to(weight, (k, n)).ravel()
    fields = cell_sums(flat, cells, mu.ravel(), z.ravel(), w, residual=scheme.residual)
    if scheme.dispersion:
        fields += _dispersion(flat, cells, mu, z, scheme.noise(size), weight)
    return _by_unit(fields, units, k, scheme.bins)


def _by_unit(fields: list[Floats], units: int, k: int, bins: int) -> Floats:
    stacked = np.stack([field.reshape(units, k, bins) for field in fields], axis=1)
    return stacked.astype(np.float64, copy=False)


def cell_sums(
    codes: Ints,
    cells: int,
    observed: Floats,
    predicted: Floats,
    weight: Floats | None,
    *,
    residual: bool = False,
) -> list[Floats]:
    """Sums by cell, each (cells,), of observed mu, predicted z and weight w, all (N,).

    In this order: items, w, w of the items with mu, w^2, w^3, w mu, w z, w^2 v, w^2 v^2, where v
    is mu, or mu - z (`residual`).
    """
    value = observed - predicted if residual else observed
    if weight is None:
        n = _count(codes, None, cells)
        mu, z, v2 = (_count(codes, x, cells) for x in (observed, predicted, value * value))
        return [n, n, n, n, n, mu, z, mu - z if residual else mu, v2]
    square = weight * weight
    terms = (weight, square, square * weight, weight * observed, weight * predicted)
    n, w, *others = (
        _count(codes, term, cells) for term in (None, *terms, square * value, square * value**2)
    )
    return [n, w, w, *others]


def _count(codes: Ints, weight: Array | None, size: int) -> Floats:
    out: Floats = np.bincount(codes, weight, size).astype(np.float64, copy=False)
    return out


def _dispersion(
    codes: Ints,
    cells: int,
    mu: Floats,
    z: Floats,
    noise: tuple[Bools, Floats],
    weight: Floats | None,
) -> list[Floats]:
    """Epistemic sums by cell: w (mu - z)^2; and of items with two labels w, that, w excess."""
    gap, (two, factor) = (mu - z) ** 2, noise
    excess = mu * (1 - mu) * _where(two, factor)
    w = np.ones(len(two)) if weight is None else weight
    terms = (gap * w, np.broadcast_to(w * two, gap.shape), gap * (w * two), excess * w)
    return [_count(codes, term.ravel(), cells) for term in terms]


def _pair_cells(
    differ: Floats,
    pair: Floats,
    both: Array,
    weight: Floats | None,
    scheme: Scheme,
    unit: Ints | None,
    units: int,
) -> Floats:
    """Sums by bin of the predicted disagreement, over items with two labels or more."""
    if scheme.agreement:
        differ, pair = 1 - differ, 1 - pair
    if not both.all():
        defined = both if not scheme.agreement else ~np.isnan(pair)
        rows = np.flatnonzero(defined)
        differ, pair, both = differ[rows], pair[rows], both[rows]
        weight = None if weight is None else weight[rows]
        unit = None if unit is None else unit[rows]
    codes = equal_width(pair, scheme.bins)
    if unit is not None:
        codes += scheme.bins * unit
    cells = units * scheme.bins
    fields = cell_sums(codes, cells, _where(both, differ), pair, weight, residual=scheme.residual)
    if scheme.agreement:
        # lh_calib counts and averages predictions over all items, labels over those with two.
        fields[2] = _count(codes, both, cells)
    return _by_unit(fields, units, 1, scheme.bins)


class Scored(NamedTuple):
    """A statistic phi of several labels of each item, and its prediction q; all (n,).

    `mean`, `square`, `product` are the U-statistics of phi, phi^2, phi(A) phi(B), NaN where an
    item has too few labels; `weight` is None where all are equal.
    """

    mean: Floats
    square: Floats
    product: Floats
    predicted: Floats
    weight: Floats | None = None

    def take(self, rows: Array | slice) -> Scored:
        """Some of the items."""
        return Scored(*(None if array is None else array[rows] for array in self))  # type: ignore[arg-type]


def scored_sums(
    scored: Scored, scheme: Scheme, unit: Ints, units: int = 1
) -> tuple[Floats, Floats]:
    """Sums by unit (n,) of items whose `mean` and `predicted` are numbers.

    The first are (U, 5): items, weight, loss, weight and epistemic loss of the items with a
    product; the second the cells (U, F, 1, B).
    """
    mean, square, product, q, w = scored
    enough = ~np.isnan(product)
    columns = (
        np.ones(len(mean)),
        *_times(w, np.ones(len(mean)), square - 2 * q * mean + q**2, enough.astype(np.float64)),
        *_times(w, _where(enough, product - 2 * q * mean + q**2)),
    )
    items = np.stack([_count(unit, column, units) for column in columns], axis=1)
    codes = equal_width(q, scheme.bins) + scheme.bins * unit
    fields = cell_sums(codes, units * scheme.bins, mean, q, w, residual=scheme.residual)
    return items, _by_unit(fields, units, 1, scheme.bins)


class Cells(NamedTuple):
    """Cells read: items, weight, means of mu and z, their gap, variance of v's mean; (..., K, B).

    `variance` is the plain one times `unbiased` = 1 / (1 - 2 S3 / (S2 W) + S2 / W^2), which is
    n / (n - 1) for equal weights, and NaN for a cell's single item.
    """

    items: Floats
    weight: Floats
    observed: Floats
    predicted: Floats
    gap: Floats
    variance: Floats
    unbiased: Floats


class Origin(NamedTuple):
    """What bootstrap draws of cells take from the data, both (1, K, B): see `bootstrap_origin`."""

    unbiased: Floats
    noise: Floats


def read_cells(sums: Floats, *, residual: bool = False, origin: Origin | None = None) -> Cells:
    """Means and variances of cells from their sums (..., F, K, B); NaN where a cell is empty.

    The sum of w^2 (v - vbar)^2 over independent items of one variance has the expectation
    sigma^2 (S2 - 2 S3 / W + S2^2 / W^2), and the weighted mean has the variance sigma^2 S2 / W^2;
    S2, S3 are the sums of w^2, w^3.
    """
    items, w, defined, s2, s3, mu, z, v, v2 = (sums[..., f, :, :] for f in range(_CELL_FIELDS))
    with np.errstate(divide="ignore", invalid="ignore"):
        if origin is None:
            unbiased = 1 / (1 - 2 * s3 / (s2 * w) + s2 / w**2)
            # A single item makes 1 / 0, but for rounding.
            unbiased = np.where((unbiased > 0) & (unbiased < 1e9), unbiased, np.nan)
        else:
            unbiased = origin.unbiased
        observed, predicted = mu / defined, z / w
        gap = observed - predicted
        centre = gap if residual else observed
        square = np.maximum(v2 - 2 * centre * v + centre**2 * s2 * (defined / w), 0.0)
        variance = square / (w * defined) * unbiased
        gap = gap if origin is None else gap - origin.noise
        return Cells(items, w, observed, predicted, gap, variance, unbiased)


def calibration_loss(
    cells: Cells, total: Floats, *, keep_singles: bool = False
) -> tuple[Floats, Floats]:
    """Calibration loss of each cell, (..., K, B), plugin (12) and debiased (14).

    `total` (...) is the weight that cells are a share of. The debiased loss of a cell with one
    item is 0, or with `keep_singles` the plugin.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        share = cells.weight / total[..., None, None]
        plugin = np.nan_to_num(share * cells.gap**2)
        single = plugin if keep_singles else 0.0
        removed = np.nan_to_num(share * cells.variance)
        return plugin, np.where(np.isnan(cells.unbiased), single, plugin - removed)


def bootstrap_origin(cells: Cells, plugin: Floats, debiased: Floats) -> Origin:
    """What bootstrap draws take from the cells and losses of the data (one unit).

    First, the factors that make variances unbiased, which depend on numbers of items. Second, the
    share of each gap that counts as noise. A draw's loss is (gap + error)^2, and gap^2 is too large
    by the variance v of the error. So would the draws' variance 4 gap^2 v + 2 v^2 be, up to three
    times for a calibrated classifier. Scaled gaps have the right squares on the whole, or rather
    those of a loss one standard error above the debiased one, as the interval of an estimate that
    is low by chance must reach up.
    """
    total = float(plugin.sum())
    error = float(np.sqrt(2 * ((plugin - debiased) ** 2).sum()))
    scale = min(max(float(debiased.sum()) + error, 0.0) / total, 1.0) if total > 0 else 1.0
    return Origin(cells.unbiased, (1 - np.sqrt(scale)) * np.nan_to_num(cells.gap))


def epistemic_excess(cells: Floats, total: Floats) -> Floats:
    """Bias of each cell's epistemic plugin with few labels, (..., K, B)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        out: Floats = cells[..., _CELL_FIELDS + 3, :, :] / total[..., None, None]
    return out


def epistemic_loss(cells: Floats, total: Floats, several: Floats) -> tuple[Floats, Floats]:
    """Epistemic loss of each cell, (..., K, B), plugin (9) and debiased (10), from its sums.

    `total` and `several` (...) are the weights of all items and of those with two labels or more.
    """
    all_items, _, two, excess = (cells[..., _CELL_FIELDS + f, :, :] for f in range(4))
    with np.errstate(divide="ignore", invalid="ignore"):
        return all_items / total[..., None, None], (two - excess) / several[..., None, None]
