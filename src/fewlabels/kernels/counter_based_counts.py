"""Random counts and sums that belong to a row which stands for several equal items.

What c independent items of one row draw together: labels are multinomial counts, sums of their
Exp(1) weights gamma variables. As in `counter_based`, every number is a pure function of (row key,
stream number), by rejection: an attempt that is refused is followed by the next stream of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.special import ndtri

from fewlabels.kernels.arrays import Array, Bools, Floats, Ints, UInts
from fewlabels.kernels.blocks import spans
from fewlabels.kernels.counter_based import mix, shared_exponentials, to_uniforms

_NORMALS, _ACCEPT, _BOOST, _COUNTS, _RATIOS = 0x6A11, 0x6A22, 0x6A33, 0xB1A1, 0xB1A2
_BY_INVERSION = 10.0
"""Binomials of a smaller mean are found by adding up their probabilities."""

_LIMIT = 10**9
"""From so many items on drawing without and with replacement differ by nothing (numpy refuses)."""

_STIRLING = np.array(
    [
        0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
        0.0166446911898211, 0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
        0.00925546218271273, 0.00833056343336287,
    ]
)  # fmt: skip
"""log k! - log of Stirling's formula for k = 0 .. 9."""


_STRIP = 2**15
"""So many cells are drawn at a time: what several passes go over stays in the processor's cache."""


class _Cells:
    """Cells (row, stream) of a matrix, and uniforms of each for any purpose and attempt."""

    def __init__(self, key: UInts, stream: UInts) -> None:
        self.key, self.stream = key, stream

    def some(self, which: Array) -> _Cells:
        return _Cells(self.key[which], self.stream[which])

    def uniforms(self, purpose: int, attempt: int = 0) -> Floats:
        offset = mix(np.full(1, purpose + (attempt << 20), dtype=np.uint64))
        return to_uniforms(mix(self.key + self.stream ^ offset))


def _strips(
    key: UInts, streams: Ints, salt: int, chosen: Bools
) -> Iterator[tuple[tuple[Ints, Ints], _Cells]]:
    """The chosen cells (n, S), some at a time: where they are, and their randomness."""
    mixed = mix(mix(streams.astype(np.uint64)) ^ np.uint64(salt & (2**64 - 1)))
    for rows in spans(len(key), max(_STRIP // max(len(streams), 1), 1)):
        row, column = np.nonzero(chosen[rows])
        if len(row):
            row += rows.start
            yield (row, column), _Cells(key[row], mixed[column])


def gammas(key: UInts, streams: Ints, shape: Floats, salt: int) -> Floats:
    """Gamma(shape, 1) variables (n, S): sums of as many Exp(1) variables; 0 where the shape is.

    `shape` is (n, S), or broadcasts to it. Source: Marsaglia and Tsang (2000).
    """
    shape = np.broadcast_to(shape, (len(key), len(streams)))
    out = np.zeros(shape.shape)
    for place, cells in _strips(key, streams, salt, shape > 0):
        k = shape[place]
        low = k < 1
        found = _marsaglia_tsang(np.where(low, k + 1, k), cells)
        if low.any():
            found[low] *= cells.some(low).uniforms(_BOOST) ** (1 / k[low])
        out[place] = found
    return out


def _marsaglia_tsang(shape: Floats, cells: _Cells) -> Floats:
    """Gamma variables of shapes of 1 and more, one per cell."""
    out = np.empty(len(shape))
    left, attempt = np.arange(len(shape)), 0
    while len(left):
        d = shape - 1 / 3
        x = ndtri(cells.uniforms(_NORMALS, attempt))
        v = np.maximum(1 + x / np.sqrt(9 * d), 0.0) ** 3
        u = cells.uniforms(_ACCEPT, attempt)
        good = u < 1 - 0.0331 * x**4
        unsure = np.flatnonzero(~good & (v > 0))
        if len(unsure):
            x, d_, v_ = x[unsure], d[unsure], v[unsure]
            good[unsure] = np.log(u[unsure]) < x**2 / 2 + d_ * (1 - v_ + np.log(v_))
        good &= v > 0
        out[left[good]] = (d * v)[good]
        bad = np.flatnonzero(~good)
        left, shape, cells, attempt = left[bad], shape[bad], cells.some(bad), attempt + 1
    return out


def binomials(key: UInts, streams: Ints, count: Floats, p: Floats, salt: int) -> Floats:
    """Binomial(count, p) variables (n, S), whole numbers; `count` and `p` broadcast to (n, S)."""
    size = (len(key), len(streams))
    count, p = np.broadcast_to(count, size), np.broadcast_to(p, size)
    rare = np.minimum(p, 1 - p)
    mean = count * rare
    out = np.zeros(size)
    for chosen, method in (
        ((mean > 0) & (mean < _BY_INVERSION), _by_inversion),
        (mean >= _BY_INVERSION, _by_rejection),
    ):
        for place, cells in _strips(key, streams, salt, chosen):
            out[place] = method(count[place], rare[place], cells)
    return np.where(p > 0.5, count - out, out)


def _by_inversion(n: Floats, p: Floats, cells: _Cells) -> Floats:
    """The smallest k whose probability and those of all smaller ones exceed a uniform."""
    out = np.empty(len(n))
    u, odds, chance = cells.uniforms(_COUNTS), p / (1 - p), np.exp(n * np.log1p(-p))
    left, k = np.arange(len(n)), 0
    while len(left):
        # What rounding leaves beyond the last possible count belongs to it.
        done = (u < chance) | (k >= n)
        out[left[done]] = k
        on = np.flatnonzero(~done)
        left, n, odds, u, chance = left[on], n[on], odds[on], (u - chance)[on], chance[on]
        k += 1
        chance = chance * odds * (n - k + 1) / k
    return out


def _by_rejection(n: Floats, p: Floats, cells: _Cells) -> Floats:
    """Transformed rejection, for means of 10 and more and p up to 1/2: Hoermann (1993), BTRS."""
    out = np.empty(len(n))
    left, attempt = np.arange(len(n)), 0
    while len(left):
        spread = np.sqrt(n * p * (1 - p))
        b = 1.15 + 2.53 * spread
        a = -0.0873 + 0.0248 * b + 0.01 * p
        u = cells.uniforms(_COUNTS, attempt) - 0.5
        v = cells.uniforms(_RATIOS, attempt)
        us = 0.5 - np.abs(u)
        k = np.floor((2 * a / us + b) * u + n * p + 0.5)
        good = (us >= 0.07) & (v <= 0.92 - 4.2 / b)
        unsure = np.flatnonzero(~good & (k >= 0) & (k <= n))
        if len(unsure):
            alpha = (2.83 + 5.1 / b) * spread
            v = np.log(v * alpha / (a / us**2 + b))[unsure]
            good[unsure] = v <= _log_ratio(n[unsure], p[unsure], k[unsure])
        out[left[good]] = k[good]
        bad = np.flatnonzero(~good)
        left, n, p, cells, attempt = left[bad], n[bad], p[bad], cells.some(bad), attempt + 1
    return out


def _log_ratio(n: Floats, p: Floats, k: Floats) -> Floats:
    """Log of a binomial's probability of k over that of its mode."""
    mode, odds = np.floor((n + 1) * p), p / (1 - p)
    out: Floats = (mode + 0.5) * np.log((mode + 1) / (odds * (n - mode + 1)))
    out += (n + 1) * np.log((n - mode + 1) / (n - k + 1))
    out += (k + 0.5) * np.log(odds * (n - k + 1) / (k + 1))
    return out + _tail(mode) + _tail(n - mode) - _tail(k) - _tail(n - k)


def _tail(k: Floats) -> Floats:
    """What log k! exceeds Stirling's formula by."""
    square = (k + 1) ** 2
    rest = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)
    return np.where(k < 10, _STIRLING[np.minimum(k, 9).astype(np.int64)], rest)


def label_counts(key: UInts, streams: Ints, times: Floats, p: Floats, salt: int) -> Floats:
    """How many of the items of each row get each class, (n, K, S), from P(class) (n, K, S or 1)."""
    n, k = p.shape[:2]
    out = np.zeros((n, k, len(streams)))
    left = np.repeat(times[:, None], len(streams), axis=1)
    # Sums from the last class on: a class after which there is nothing takes all that is left.
    tail = np.cumsum(p[:, ::-1], axis=1)[:, ::-1]
    for c in range(k - 1):
        share = np.divide(p[:, c], tail[:, c], out=np.zeros_like(p[:, c]), where=tail[:, c] > 0)
        out[:, c] = binomials(_of_class(key, c), streams, left, np.minimum(share, 1.0), salt)
        left -= out[:, c]
    out[:, -1] = left
    return out


def weight_sums(key: UInts, streams: Ints, counts: Floats, salt: int) -> Floats:
    """Sums of the Exp(1) weights of the items of each row and class, counts (n, K, S)."""
    parts = [gammas(_of_class(key, c), streams, counts[:, c], salt) for c in range(counts.shape[1])]
    return np.stack(parts, axis=1)


def exponential_sums(
    clusters: Sequence[UInts], streams: Ints, times: Floats | None, salt: int
) -> Floats:
    """Row weights (n, S) by keys of clusters; of rows that stand for `times` (n,) items, sums."""
    if times is None:
        return shared_exponentials(clusters, streams, salt)
    weights = gammas(clusters[0], streams, times[:, None], salt)
    return weights * shared_exponentials(clusters[1:], streams, salt) if clusters[1:] else weights


def _of_class(key: UInts, c: int) -> UInts:
    return mix(key ^ mix(np.full(1, c, dtype=np.uint64)))


def some_items(times: Floats, key: UInts, size: int, salt: int) -> Floats:
    """How many items of each row, (n,), are among `size` that are chosen at random from all.

    The rows themselves are the seed: neither their order nor that of others shows.
    """
    order = np.argsort(key)
    # Sums of keys wrap around and do not depend on the order of the rows.
    generator = np.random.default_rng([salt, int(key.sum())])
    whole = np.rint(times[order]).astype(np.int64)
    out = np.empty(len(times))
    if whole.sum() <= size:
        out[order] = whole
    elif whole.sum() < _LIMIT:
        out[order] = generator.multivariate_hypergeometric(whole, size, method="marginals")
    else:
        out[order] = np.minimum(generator.multinomial(size, whole / whole.sum()), whole)
    return out
