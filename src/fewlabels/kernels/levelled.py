"""Weights of labels that were not drawn alike: the levelled unbiased risk estimator (LURE)."""

from __future__ import annotations

import numpy as np

from fewlabels.kernels.arrays import Floats, Ints


def lure_weights(probability: Floats, left: Ints, rest: int | None = None) -> Floats:
    """Weight of each of M labels, in the order in which their items were drawn.

    The m-th is drawn with probability q_m from the l_m = N - m + 1 items that are left of N:

        v_m = 1 + (N - M) / (N - m) (1 / (l_m q_m) - 1).

    The mean of v_m times a loss is unbiased for its mean over the N items. Drawn evenly, q_m =
    1 / l_m, all weigh 1; so do labels of all N.

    Source: Farquhar, Gal, Rainforth (2021), equation 5; Kossen et al. (2021), equation 6.

    Parameters
    ----------
    probability, left
        q_m and l_m, (M,) each.
    rest
        N - M, how many items stay without a label; None: l_M - 1.
    """
    q, remaining = np.asarray(probability, np.float64), np.asarray(left, np.float64)
    if not len(q):
        return q
    # N - M and N - m; the last of all items weighs 1: its factor is 0.
    share = (remaining[-1] - 1 if rest is None else rest) / np.maximum(remaining - 1, 1)
    out: Floats = 1 + share * (1 / (remaining * q) - 1)
    return out
