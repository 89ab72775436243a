"""Random numbers that belong to an item, not to its place in the file.

A stream of uniforms is a pure function of (item key, stream number). Shuffling, splitting
or spreading the items over workers therefore cannot change what any item draws.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
import scipy.sparse

from fewlabels.kernels.arrays import Floats, UInts

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
    known: dict[str, int] = {}
    for text in map(str, values.tolist()):
        if text not in known:
            digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            known[text] = int.from_bytes(digest, "little")
    return np.array([known[text] for text in map(str, values.tolist())], dtype=np.uint64)


def alone(key: UInts) -> UInts:
    """What `distinguish` makes of the key of an item without equals."""
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


def shared_exponentials(clusters: Sequence[UInts], streams: np.ndarray, salt: int) -> Floats:
    """Exp(1) weights (n, D) by the keys of clusters, (n,) each; of several their product."""
    weights = exponentials(clusters[0], streams, salt)
    for keys in clusters[1:]:
        weights *= exponentials(keys, streams, salt)
    return weights
