"""Logarithms of tail probabilities that stay finite where the probabilities underflow."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import betaln, gammaincc, gammaln, stdtr

from fewlabels.kernels.arrays import Floats

_TINY = 1e-290
"""Below it the library's probability loses digits, and a continued fraction takes over."""

_STEPS = 300


def log_student_tail(z: Floats, freedom: Floats) -> Floats:
    """Log P(T > z) of Student's t; `freedom` broadcasts against z."""
    z, freedom = np.broadcast_arrays(z, freedom)
    far = stdtr(freedom, -np.abs(z))
    deep = far < _TINY
    log_far: Floats = np.log(np.maximum(far, _TINY))
    if deep.any():
        log_far[deep] = _deep_student(np.abs(z[deep]), freedom[deep])
    return np.where(z > 0, log_far, np.log1p(-far))


def log_gamma_tail(x: Floats, shape: Floats) -> Floats:
    """Log P(X > x) of a gamma distribution of rate 1; `shape` broadcasts against x."""
    x, shape = np.broadcast_arrays(x, shape)
    tail = gammaincc(shape, x)
    deep = ~(tail >= _TINY)
    out: Floats = np.log(np.maximum(np.nan_to_num(tail), _TINY))
    if deep.any():
        out[deep] = _deep_gamma(x[deep], shape[deep])
    return out


def log_less(a: Floats, b: Floats) -> Floats:
    """Log(e^a - e^b) for a >= b; -inf where they are equal."""
    gap = np.minimum(b - a, 0.0)
    near = gap > -np.log(2)
    with np.errstate(divide="ignore"):
        rest = np.where(near, np.log(-np.expm1(np.where(near, gap, -1.0))), np.log1p(-np.exp(gap)))
    out: Floats = a + rest
    return out


def _deep_student(z: Floats, freedom: Floats) -> Floats:
    """Half the incomplete beta function I_x(freedom/2, 1/2), x = freedom / (freedom + z^2)."""
    a, b = freedom / 2, 0.5
    # z^2 may overflow: its logarithm does not.
    log_x = -np.logaddexp(0.0, 2 * np.log(z) - np.log(freedom))
    x = np.exp(log_x)
    front = a * log_x + b * np.log1p(-x) - np.log(a) - betaln(a, b)

    def step(m: int) -> tuple[Floats, float]:
        half = m // 2
        if m % 2:
            return -(a + half) * (a + b + half) * x / ((a + 2 * half) * (a + 2 * half + 1)), 1.0
        return half * (b - half) * x / ((a + 2 * half - 1) * (a + 2 * half)), 1.0

    return front - np.log(_continued_fraction(np.ones_like(x), step)) - np.log(2)


def _deep_gamma(x: Floats, shape: Floats) -> Floats:
    """Upper incomplete gamma function by Legendre's continued fraction."""

    def step(m: int) -> tuple[Floats, Floats]:
        return -m * (m - shape), x + 2 * m + 1 - shape

    return shape * np.log(x) - x - gammaln(shape) - np.log(_continued_fraction(x + 1 - shape, step))


def _continued_fraction(
    start: Floats, step: Callable[[int], tuple[Floats, Floats | float]]
) -> Floats:
    """b0 + a1 / (b1 + a2 / (b2 + ...)) by Lentz's modified method (Thompson, Barnett 1986)."""
    floor = 1e-300
    value = np.where(start == 0, floor, start)
    c, d = value.copy(), np.zeros_like(value)
    for m in range(1, _STEPS):
        a, b = step(m)
        d = b + a * d
        d = 1 / np.where(d == 0, floor, d)
        c = b + a / c
        c = np.where(c == 0, floor, c)
        ratio = c * d
        value = value * ratio
        if (np.abs(ratio - 1) < 1e-15).all():
            break
    return value
