"""Random numbers that belong to an item, not to its place in the file.

A stream of uniforms is a pure function of (item key, stream number). Shuffling, splitting
or spreading the items over workers therefore cannot change what any item draws.

Rows that stand for several equal items draw counts and sums: labels of c independent items are
multinomial counts, sums of their Exp(1) weights gamma variables. Sampling is by rejection, where
each attempt takes a stream of its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import scipy.sparse
from scipy.special import gamma, ndtri

from fewlabels.kernels.arrays import Array, Bools, Floats, Ints, UInts
from fewlabels.kernels.blocks import spans

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)


def mix(x: UInts) -> UInts:
    """Finaliser of SplitMix64 (Steele, Lea, Flood 2014), in place on a fresh array."""
    x = x + _GOLDEN
    x ^= x >> _S30
    x *= _M1
    x ^= x >> _S27
    x *= _M2
    x ^= x >> _S31
    return x


def hash_columns(columns: Iterable[np.ndarray], n: int) -> UInts:
    """Hash rows of numeric columns, each of shape (n,), into (n,) keys."""
    key = np.zeros(n, dtype=np.uint64)
    for column in columns:
        if column.dtype == np.uint64:
            bits = column
        elif np.issubdtype(column.dtype, np.floating):
            # + 0.0 makes -0.0 and 0.0 one value; every NaN gets the same bits.
            value = column.astype(np.float64) + 0.0
            bits = np.where(np.isnan(value), np.nan, value).view(np.uint64)
        else:
            bits = column.astype(np.int64).view(np.uint64)
        key = mix(key ^ bits)
    return key


def hash_rows(matrix: scipy.sparse.csr_matrix) -> UInts:
    """Hash rows of a sparse matrix, (n, c) -> (n,), whatever the order of their entries."""
    entry = mix(mix(matrix.indices.astype(np.uint64)) ^ matrix.data.view(np.uint64))
    # Sums of mixed entries do not depend on their order; empty rows hash to zero.
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(entry, dtype=np.uint64)])
    return total[matrix.indptr[1:]] - total[matrix.indptr[:-1]]


def hash_strings(values: np.ndarray) -> UInts:
    """Hash an array of objects by their text; equal texts have equal hashes."""
    # A dictionary of the distinct texts: an array of strings is as wide as its longest everywhere.
    hashes: dict[str, int] = {}
    for text in map(str, values.tolist()):
        if text not in hashes:
            digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            hashes[text] = int.from_bytes(digest, "little")
    return np.array([hashes[text] for text in map(str, values.tolist())], dtype=np.uint64)


def alone(key: UInts) -> UInts:
    """The key that `distinguish` gives an item without equals."""
    return mix(key ^ mix(np.zeros(1, dtype=np.uint64)))


def distinguish(key: UInts, secondary: UInts | None = None) -> UInts:
    """Give duplicates different keys: hash in each one's number among its equals.

    Equal rows are exchangeable, so which of them gets which number does not matter;
    `secondary` orders equal keys by something outside the key, where there is such a thing.
    """
    order = np.argsort(key, kind="stable") if secondary is None else np.lexsort((secondary, key))
    ordered = key[order]
    first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    size = np.diff(np.r_[first, len(key)])
    occurrence = np.empty(len(key), dtype=np.uint64)
    occurrence[order] = np.arange(len(key)) - np.repeat(first, size)
    return mix(key ^ mix(occurrence))


def uniforms(key: UInts, streams: np.ndarray, salt: int) -> Floats:
    """Uniforms in (0, 1), shape (n, S): one per item key (n,) and stream number (S,).

    `salt` separates uses (labels, row weights, ...) and seeds.
    """
    offset = mix(mix(np.asarray(streams, dtype=np.uint64)) ^ np.uint64(salt & (2**64 - 1)))
    return to_uniforms(mix(key[:, None] ^ offset[None, :]))


def to_uniforms(bits: UInts) -> Floats:
    """Uniforms in (0, 1) from random bits, which are changed."""
    bits >>= _S11
    out = bits.astype(np.float64)
    out += 0.5
    out *= 2.0**-53
    return out


def exponentials(key: UInts, streams: np.ndarray, salt: int) -> Floats:
    """Exp(1) variables, shape (n, S): normalised they are Dirichlet(1, ..., 1) row weights."""
    out = uniforms(key, streams, salt)
    np.log(out, out=out)
    np.negative(out, out=out)
    return out


def shared_exponentials(
    clusters: Sequence[UInts], streams: np.ndarray, salt: int, shape: float = 1.0
) -> Floats:
    """Weights Exp(1)^g / Gamma(1 + g) of shape g, (n, D), by the keys of clusters; a product."""
    weights = exponentials(clusters[0], streams, salt)
    for keys in clusters[1:]:
        weights *= exponentials(keys, streams, salt)
    return weights if shape == 1 else weights**shape / gamma(1 + shape) ** len(clusters)


# --- counts ---------------------------------------------------------------------------------------


_NORMALS, _ACCEPT, _BOOST, _COUNTS, _RATIOS = 0x6A11, 0x6A22, 0x6A33, 0xB1A1, 0xB1A2
_BY_INVERSION = 10.0
"""Binomials of a smaller mean are found by adding up their probabilities."""

_LIMIT = 10**9
"""Above this many items, draws without replacement are made with it (numpy refuses larger)."""

_STIRLING = np.array(
    [
        0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
        0.0166446911898211, 0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
        0.00925546218271273, 0.00833056343336287,
    ]
)  # fmt: skip
"""log k! - log of Stirling's formula for k = 0 .. 9."""


_STRIP = 2**15
"""Cells drawn at a time, so that several passes over them stay in the processor's cache."""


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
        draws = _marsaglia_tsang(np.where(low, k + 1, k), cells)
        if low.any():
            draws[low] *= cells.some(low).uniforms(_BOOST) ** (1 / k[low])
        out[place] = draws
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
        # Rounding may leave probability beyond the last possible count, which gets it.
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
    """Excess of log k! over Stirling's formula."""
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
        out[:, c] = binomials(_class_key(key, c), streams, left, np.minimum(share, 1.0), salt)
        left -= out[:, c]
    out[:, -1] = left
    return out


def weight_sums(key: UInts, streams: Ints, counts: Floats, salt: int) -> Floats:
    """Sums of the Exp(1) weights of the items of each row and class, counts (n, K, S)."""
    columns = [
        gammas(_class_key(key, c), streams, counts[:, c], salt) for c in range(counts.shape[1])
    ]
    return np.stack(columns, axis=1)


def exponential_sums(
    clusters: Sequence[UInts], streams: Ints, times: Floats | None, salt: int
) -> Floats:
    """Row weights (n, S) by keys of clusters; of rows that stand for `times` (n,) items, sums."""
    if times is None:
        return shared_exponentials(clusters, streams, salt)
    weights = gammas(clusters[0], streams, times[:, None], salt)
    return weights * shared_exponentials(clusters[1:], streams, salt) if clusters[1:] else weights


def _class_key(key: UInts, c: int) -> UInts:
    return mix(key ^ mix(np.full(1, c, dtype=np.uint64)))


def some_items(times: Floats, key: UInts, size: int, salt: int) -> Floats:
    """How many items of each row, (n,), are among `size` that are chosen at random from all.

    The rows themselves are the seed, whatever their order.
    """
    order = np.argsort(key)
    # Sums of keys wrap around and do not depend on the order of the rows.
    generator = np.random.default_rng([salt, int(key.sum())])
    integral = np.rint(times[order]).astype(np.int64)
    out = np.empty(len(times))
    if integral.sum() <= size:
        out[order] = integral
    elif integral.sum() < _LIMIT:
        out[order] = generator.multivariate_hypergeometric(integral, size, method="marginals")
    else:
        out[order] = np.minimum(generator.multinomial(size, integral / integral.sum()), integral)
    return out
