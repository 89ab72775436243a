"""Dirichlet-multinomial: likelihood of counts and its derivatives, expectations, posteriors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Floats, Ints

FLOOR = 1e-12
"""Probabilities are raised to this before logarithms: a class of probability 0 may have labels."""

LARGEST_LOG = 300.0
"""Log concentrations are held to +-300: exp() and its square stay finite in float64."""

_SUMMED = 32
"""Rising factorials are summed factor by factor up to here, and by Stirling's series beyond."""


def concentration_of(log_concentration: Floats) -> Floats:
    """Exp of log concentrations, never 0 or infinite."""
    return np.exp(np.clip(log_concentration, -LARGEST_LOG, LARGEST_LOG))


def disagreement(p: Floats, concentration: Floats | None = None) -> Floats:
    """Probability that two labels of Dirichlet(concentration * p) differ, (..., K) -> (...).

    Without a concentration the labels are of p itself (an infinite one). Source: Mimori et al.
    (2021), equation 71.
    """
    differ: Floats = 1.0 - np.einsum("...k,...k->...", p, p)
    return differ if concentration is None else concentration / (1.0 + concentration) * differ


def posterior_mean(p: Floats, counts: Floats, concentration: Floats) -> Floats:
    """Mean of Dirichlet(concentration * p + counts), (..., K)."""
    a = concentration[..., None]
    out: Floats = (a * p + counts) / (a + counts.sum(axis=-1, keepdims=True))
    return out


class Terms(NamedTuple):
    """Rising factorials that a likelihood is made of, sorted by count, largest first.

    One per item and class of two labels or more (sign 1) and one per item of two labels or more
    (share 1, sign -1); a rising factorial of one factor is 1 in the normalisation used here.
    """

    item: Ints
    share: Floats
    labels: Floats
    sign: Floats
    above: Ints
    """How many terms have more than j labels, for j = 0, 1, ... to the largest summed one."""
    constant: Floats
    """Sum over the classes of y log f, (n,): what does not depend on the concentration."""


class Derivatives(NamedTuple):
    """Log-likelihood of each item, and its derivatives in the log concentration: (n,) each."""

    value: Floats
    slope: Floats
    curvature: Floats


def terms(counts: Floats, p: Floats) -> Terms:
    """Precomputed inputs of `derivatives`, from counts (n, K) and probabilities (n, K)."""
    item, label = np.nonzero(counts > 1)
    total = counts.sum(axis=1)
    several = np.flatnonzero(total > 1)
    count = np.concatenate([counts[item, label], total[several]])
    order = np.argsort(-count, kind="stable")
    count = count[order]
    share = np.concatenate([np.maximum(p[item, label], FLOOR), np.ones(len(several))])
    sign = np.repeat([1.0, -1.0], [len(item), len(several)])
    last = int(min(count[0], _SUMMED)) if len(count) else 1
    above = len(count) - np.searchsorted(count[::-1], np.arange(last), side="right")
    constant = np.einsum("nk,nk->n", counts, np.log(np.maximum(p, FLOOR)))
    return Terms(
        np.concatenate([item, several])[order], share[order], count, sign[order], above, constant
    )


def derivatives(terms: Terms, log_concentration: Floats) -> Derivatives:
    """Coefficient-free log-likelihood and its first two derivatives in log alpha0, (n,) each.

    With (x)_y the rising factorial and r(x, y) = log (x)_y - y log x = sum_j<y log(1 + j/x),

        log DirMult(y | alpha0 f) = sum_k [y_k log f_k + r(alpha0 f_k, y_k)] - r(alpha0, n).

    r goes to 0 as x grows, so that nothing cancels for a huge alpha0, where the usual form with
    lnGamma loses every digit; for a tiny one the sums hold as they are. n <= 1 gives log f alone.
    """
    alpha0 = concentration_of(log_concentration)
    x = alpha0[terms.item] * terms.share
    n = len(terms.constant)
    value, slope, curvature = (
        # Of no terms at all bincount makes integers.
        np.bincount(terms.item, weights=terms.sign * rising, minlength=n).astype(np.float64)
        for rising in _rising(x, terms.labels, terms.above)
    )
    return Derivatives(value + terms.constant, slope, curvature)


def log_likelihood(counts: Floats, p: Floats, log_concentration: Floats) -> Floats:
    """Log DirMult(counts | alpha0 p) without the multinomial coefficient, (n, K) -> (n,)."""
    return derivatives(terms(counts, p), log_concentration).value


def _rising(x: Floats, count: Floats, above: Ints) -> tuple[Floats, Floats, Floats]:
    """r(x, count), x dr/dx and x d/dx (x dr/dx) of terms sorted by count, largest first."""
    value, slope, curvature = np.zeros((3, len(x)))
    for j in range(1, len(above)):
        labeled = slice(0, above[j])
        ratio = x[labeled] / (x[labeled] + j)
        value[labeled] += np.log1p(j / x[labeled])
        slope[labeled] -= 1.0 - ratio
        curvature[labeled] += ratio * (1.0 - ratio)
    if len(above) == _SUMMED:
        labeled = slice(0, int(np.searchsorted(-count, -_SUMMED, side="left")))
        for total, tail in zip(
            (value, slope, curvature), _stirling(x[labeled], count[labeled] - _SUMMED), strict=True
        ):
            total[labeled] += tail
    return value, slope, curvature


def _stirling(x: Floats, rest: Floats) -> tuple[Floats, Floats, Floats]:
    """The factors j = 32 .. 32 + rest - 1 of `_rising`, by Stirling's series at x + 32.

    Truncated after B6, the error at 32 is below 1e-15 of a unit.
    """
    low, high = x + _SUMMED, x + _SUMMED + rest
    grown = np.log1p(rest / low)
    value = (
        (low - 0.5) * grown
        + rest * np.log1p((_SUMMED + rest) / x)
        - rest
        + _remainder(high)
        - _remainder(low)
    )
    # psi(high) - psi(low) and psi'(high) - psi'(low): the sums of 1/(x+j) and of -1/(x+j)^2.
    first = grown + _digamma_remainder(high) - _digamma_remainder(low)
    second = _trigamma_remainder(high) - _trigamma_remainder(low) - rest / (low * high)
    return value, x * first - rest, x * first + x**2 * second


def _remainder(x: Floats) -> Floats:
    """LnGamma(x) - [(x - 1/2) log x - x + log(2 pi)/2]."""
    s = x**-2
    return (1 / 12 + s * (-1 / 360 + s * (1 / 1260 - s / 1680))) / x


def _digamma_remainder(x: Floats) -> Floats:
    """Digamma(x) - log x."""
    s = x**-2
    return -0.5 / x - s * (1 / 12 + s * (-1 / 120 + s * (1 / 252 - s / 240)))


def _trigamma_remainder(x: Floats) -> Floats:
    """Trigamma(x) - 1/x."""
    s = x**-2
    return 0.5 * s + s / x * (1 / 6 + s * (-1 / 30 + s * (1 / 42 - s / 30)))
