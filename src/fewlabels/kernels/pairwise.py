"""Comparisons of two: win rates, and strengths of Bradley and Terry with ties and an order effect.

Of contestants a and b, a presented first, with log strengths s, tie parameter t and order effect o,

    P(a), P(b), P(tie)  ~  exp(s_a + o / 2), exp(s_b - o / 2), exp((s_a + s_b) / 2 + t)

(Davidson 1970; Davidson and Beaver 1977). Without ties and order effect it is Bradley and Terry's
model. The likelihood is concave, and is maximised by Newton's method in all draws at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.blocks import spans

_FEATURES = np.array([[1.0, 0, 0, 0.5], [0, 1, 0, -0.5], [0.5, 0.5, 1, 0]])
"""Of a verdict (first, second, tie): strength of the first, of the second, tie, order."""

_STEPS, _LONGEST, _CLOSE, _CELLS = 200, 1.0, 1e-12, 2**22


class Strengths(NamedTuple):
    """Log strengths (C, D) of mean 0, and tie parameter and order effect (D,).

    The tie parameter is -infinity without ties, the order effect 0 where it is not fitted.
    """

    strength: Floats
    tie: Floats
    order: Floats


def pair_scores(mass: Floats, pairs: Ints, size: int) -> Floats:
    """How often each beats each, a tie being half, (C, C, D).

    `mass` (P, 3, D) is of verdicts for the first, the second and a tie on P `pairs` (2, P) of
    contestants; two may stand in both orders. So it is in all functions here.
    """
    first, second = pairs
    beats = _summing(np.stack([first * size + second, second * size + first]), size * size)
    out: Floats = beats @ np.concatenate([mass[:, 0] + mass[:, 2] / 2, mass[:, 1] + mass[:, 2] / 2])
    return out.reshape(size, size, -1)


def _summing(place: Ints, size: int) -> scipy.sparse.csr_matrix:
    """The matrix (size, N) that sums values by their N places."""
    cells = np.ones(place.size), (place.ravel(), np.arange(place.size))
    return scipy.sparse.csr_matrix(cells, (size, place.size))


def win_rates(mass: Floats, pairs: Ints, size: int) -> Floats:
    """Win rate of each against the average of those that it met, (C, D); NaN of who met nobody."""
    scores = pair_scores(mass, pairs, size)
    total = scores + scores.swapaxes(0, 1)
    met = total > 0
    share = np.divide(scores, total, out=np.zeros_like(scores), where=met)
    number = met.sum(axis=1)
    return np.divide(share.sum(axis=1), number, out=np.full(number.shape, np.nan), where=number > 0)


def groups_of_equals(mass: Floats, pairs: Ints, size: int) -> Ints:
    """Which contestants have each beaten or tied the other, by way of others too: codes (C,).

    Strengths are finite, and comparable, only within a code (Ford 1957); mass (P, 3).
    """
    won = pair_scores(mass[:, :, None], pairs, size)[:, :, 0] > 0
    out: Ints = connected_components(scipy.sparse.csr_matrix(won), connection="strong")[1]
    return out


def both_orders(mass: Floats, pairs: Ints) -> bool:
    """Whether some pair stands in both orders, without which an order effect is not identified."""
    seen = {*map(tuple, pairs[:, mass.sum(axis=1) > 0].T.tolist())}
    return any((b, a) in seen for a, b in seen)


def strengths(
    mass: Floats, pairs: Ints, size: int, *, order: bool, spread: Floats | float = np.inf,
    centre: Floats | float = 0.0,
) -> Strengths:  # fmt: skip
    """The likeliest parameters in each draw; `order`: with an order effect.

    Strengths, tie and order have normal priors of `spread` (C + 2, 1) about `centre` (C + 2, D).
    Without, all must be of one group of equals in a draw, else strengths there are only large.
    """
    ties = bool((mass[:, 2] > 0).any())
    n_draws, q = mass.shape[2], size + 2
    height = max(_CELLS // max(q * q, 16 * len(mass)), 1)
    precision, about = np.full((q, 1), spread) ** -2.0, np.broadcast_to(centre, (q, n_draws))
    x = np.concatenate([
        _newton(mass[:, :, b], pairs, precision, about[:, b], ties=ties, order=order)
        for b in spans(n_draws, height)
    ], axis=1)  # fmt: skip
    return Strengths(x[:size], x[size] if ties else np.full(n_draws, -np.inf), x[size + 1] * order)


def _newton(
    mass: Floats, pairs: Ints, precision: Floats, centre: Floats, *, ties: bool, order: bool
) -> Floats:
    """The parameters of each draw, (q, D): strengths, tie, order; those not fitted are 0."""
    n_pairs, _, n_draws = mass.shape
    q, size = len(precision), len(precision) - 2
    places = np.stack([*pairs, np.full(n_pairs, size), np.full(n_pairs, size + 1)])
    up, square = _summing(places, q), _summing(places[:, None] * q + places[None], q * q)
    used = _FEATURES.copy()
    used[:, 2:] *= np.array([ties, order])
    fixed = np.diag(np.r_[np.zeros(size), float(not ties), float(not order)])
    fixed[:size, :size] = 1.0  # their mean is 0
    total, x = mass.sum(axis=1), np.zeros((q, n_draws))
    scale = np.maximum(total.sum(axis=0), np.finfo(float).tiny)
    open_draws = np.arange(n_draws)
    for _ in range(_STEPS):
        local = x[:, open_draws][places]  # (4, P, D)
        logits = np.einsum("kf,fpd->pkd", used, local)
        if not ties:
            logits[:, 2] = -np.inf
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        here = total[:, open_draws]
        left = mass[:, :, open_draws] - here[:, None] * p
        gradient = up @ np.einsum("kf,pkd->fpd", used, left).reshape(-1, len(open_draws))
        gradient -= precision * (x - centre)[:, open_draws]
        mean = np.einsum("kf,pkd->fpd", used, p)
        second_moment = np.einsum("kf,kg,pkd->fgpd", used, used, p)
        curvature = here * (second_moment - mean[:, None] * mean[None])
        hessian = (square @ curvature.reshape(-1, len(open_draws))).T.reshape(-1, q, q)
        hessian += np.diag(precision[:, 0])
        hessian /= scale[open_draws, None, None]
        hessian += fixed + 1e-13 * np.eye(q)
        step = np.linalg.solve(hessian, (gradient / scale[open_draws]).T[:, :, None])[:, :, 0].T
        longest = np.abs(step).max(axis=0)
        x[:, open_draws] += step * np.minimum(1.0, _LONGEST / np.maximum(longest, _LONGEST))
        x[:size] -= x[:size].mean(axis=0)
        open_draws = open_draws[longest > _CLOSE * (1 + np.abs(x[:, open_draws]).max(axis=0))]
        if not len(open_draws):
            break
    return x
