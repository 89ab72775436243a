"""Weights of the levelled unbiased risk estimator (LURE): labels drawn with known probabilities.

The m-th of M labeled items is drawn with probability q_m from the N - m + 1 that are left of N.
With v_m = 1 + (N - M) / (N - m) (1 / ((N - m + 1) q_m) - 1) the mean of v_m times the loss is
unbiased for the mean loss of the pool, whatever the probabilities went by (Farquhar, Gal,
Rainforth 2021; Kossen, Farquhar, Gal, Rainforth 2021, equation 6). Where all that were left were
equally likely, q_m = 1 / (N - m + 1), every weight is 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fewlabels.kernels.arrays import Floats, Ints


def lure_weights(
    q: Floats | Sequence[float],
    left: Ints | Sequence[int],
    pool: int | None = None,
    drawn: int | None = None,
) -> Floats:
    """Weight of each draw, (M,), for the mean over the pool.

    Parameters
    ----------
    q
        Probability with which each item was drawn among those left, (M,).
    left
        How many were left at that moment, the item included, (M,): N - m + 1.
    pool
        Items that there were before the first draw, N; the most that were left, unless given.
    drawn
        How many are drawn in all, M; as many as are given, unless said.

    Examples
    --------
    >>> lure_weights([1 / 4, 1 / 3], [4, 3]).tolist()
    [1.0, 1.0]
    """
    chance, there = np.asarray(q, dtype=float), np.asarray(left, dtype=np.int64)
    if not chance.size:
        return np.ones(0)
    n = int(there.max()) if pool is None else pool
    m = len(chance) if drawn is None else drawn
    # The last of all has weight 1: its factor is 0.
    after = np.maximum(there - 1, 1)
    out: Floats = 1 + max(n - m, 0) / after * (1 / (there * chance) - 1)
    return out
