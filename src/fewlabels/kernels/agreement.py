"""Error rates of two-class classifiers from how often they agree (Platanios et al. 2014).

With c_ij = 2 P(i and j agree) - 1 and u_i = 1 - 2 e_i, classifiers that err independently of each
other have c_ij = u_i u_j, whatever the class shares: a matrix of rank one, but for its diagonal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.optimize import minimize

from fewlabels.kernels.arrays import Bools, Floats


class Agreement(NamedTuple):
    """Weighted overlap (M, M) of each two classifiers, and c (M, M), 0 where they never meet.

    Diagonals are 0: a classifier's agreement with itself says nothing.
    """

    c: Floats
    overlap: Floats


class ErrorRates(NamedTuple):
    """Error rates (M,), NaN without any overlap; where three classifiers overlap; what was clipped.

    `clipped` marks classifiers whose agreement rates no error rate in [0, 1] explains.
    """

    error: Floats
    identified: Bools
    clipped: Bools


def agreement(
    signs: scipy.sparse.csr_matrix, voted: scipy.sparse.csr_matrix, weights: Floats
) -> Agreement:
    """Pairs on the items where both vote: signs (n, M) in [-1, 1], voted (n, M), weights (n,).

    A sign is the mean of a classifier's votes on an item, -1 for class 0 and 1 for class 1.
    """
    scale = scipy.sparse.diags_array(weights)
    total = (signs.T @ (scale @ signs)).toarray()
    overlap = (voted.T @ (scale @ voted)).toarray()
    np.fill_diagonal(overlap, 0.0)
    c = np.divide(total, overlap, out=np.zeros_like(total), where=overlap > 0)
    return Agreement(c, overlap)


def closed_form(pairs: Agreement) -> ErrorRates:
    """Error rates from triples: u_i^2 = c_ij c_ik / c_jk, so e_i = (1 - sqrt(...)) / 2.

    Several triples give one ratio of sums, in which a triple weighs the product of its three
    overlaps: c_jk near 0 then does no harm. The sign of u_i says whether classifier i is more
    often right than wrong; that most are is what tells a solution from its mirror image. Those
    that are not are turned round first, or positive and negative c would cancel in the sums.
    """
    w = pairs.overlap / max(pairs.overlap.max(initial=0.0), 1e-300)
    signs = _signs(pairs.c * w)
    a = pairs.c * w * np.outer(signs, signs)
    above, below = ((a @ w) * a).sum(axis=1), ((w @ a) * w).sum(axis=1)
    identified = ((w @ w) * w).sum(axis=1) > 0
    solved = identified & (below > 0)
    square = np.divide(above, below, out=np.zeros_like(above), where=solved)
    clipped = identified & (~solved | (square < 0) | (square > 1 + 1e-9))
    u = _from_pairs(a, w, np.sqrt(np.clip(square, 0.0, 1.0)), identified) * signs
    return ErrorRates((1 - u) / 2, identified, clipped)


def _signs(a: Floats) -> Floats:
    """Signs (M,) of the rank-one factor of a (M, M), near to all positive.

    Greedy ascent of s' a s from ones: the classifier that agrees least with the others is turned
    round, until none disagrees. (The leading eigenvector settles in one corner of a sparse crowd,
    and its signs elsewhere are noise.)
    """
    signs = np.ones(len(a))
    total = a.sum(axis=1)
    while len(a):
        worst = int(np.argmin(signs * total))
        if signs[worst] * total[worst] >= 0:
            break
        total -= 2 * signs[worst] * a[:, worst]
        signs[worst] *= -1
    return signs


def _from_pairs(a: Floats, w: Floats, u: Floats, identified: Bools) -> Floats:
    """Fill in u (M,) of classifiers that no three overlap with, NaN where they meet nobody.

    A pair with a classifier that is known gives u_i by least squares. Where nobody is, both of a
    pair are taken to be equally good.
    """
    out = np.where(identified, u, np.nan)
    known = identified.copy()
    while known.any():
        square = w[:, known] @ np.where(known, out, 0.0)[known] ** 2
        new = ~known & (square > 0)
        if not new.any():
            break
        out[new] = np.clip((a[:, known] @ out[known])[new] / square[new], -1.0, 1.0)
        known |= new
    total = w.sum(axis=1)
    rest = ~known & (total > 0)
    out[rest] = np.sqrt(np.clip(a.sum(axis=1)[rest] / total[rest], 0.0, 1.0))
    return out


def rank_one(pairs: Agreement, start: Floats) -> Floats:
    """Error rates (M,) that minimise the sum over pairs of n_ij (c_ij - u_i u_j)^2, n_ij overlaps.

    With equal overlaps this is the optimisation over all subsets of at most two classifiers, as
    e_ij - e_i e_j = (c_ij - u_i u_j) / 4.
    """
    w = pairs.overlap / max(pairs.overlap.sum(), 1e-300)

    def loss(u: Floats) -> tuple[float, Floats]:
        gap = w * (pairs.c - np.outer(u, u))
        return float((gap * (pairs.c - np.outer(u, u))).sum()), -4 * gap @ u

    u = 1 - 2 * np.where(np.isnan(start), 0.25, start)
    found = minimize(loss, u, jac=True, method="L-BFGS-B", bounds=[(-1.0, 1.0)] * len(u),
                     options={"ftol": 1e-15, "gtol": 1e-10})  # fmt: skip
    return np.where(w.any(axis=1), (1 - found.x) / 2, np.nan)
