"""Bandwidths of Gaussian kernels, one per dimension."""

from __future__ import annotations

import numpy as np
import scipy.fft
from scipy.optimize import brentq

from fewlabels.kernels.arrays import Floats

_GRID = 2**12
_STAGES = 7


def normal_reference(x: Floats) -> Floats:
    """1.059 min(sd, IQR / 1.349) n^(-1/5) per dimension of x (n, d)."""
    sd = x.std(axis=0, ddof=1) if len(x) > 1 else np.zeros(x.shape[1])
    iqr = np.subtract(*np.quantile(x, [0.75, 0.25], axis=0)) / 1.349
    spread = np.where(iqr > 0, np.minimum(sd, iqr), sd)
    result: Floats = 1.059 * spread * len(x) ** -0.2
    return result


def official(x: Floats) -> Floats:
    """The released SSME code's: normal reference / 4, the minimum over dimensions for all."""
    h = normal_reference(x)
    return np.full(x.shape[1], h[h > 0].min(initial=np.inf) / 4 if (h > 0).any() else 0.0)


def scott(x: Floats) -> Floats:
    """Scott's rule: sd n^(-1/(d+4)) per dimension."""
    n, d = x.shape
    result: Floats = x.std(axis=0, ddof=1) * n ** (-1 / (d + 4))
    return result


def improved_sheather_jones(x: Floats) -> tuple[Floats, int]:
    """Botev, Grotowski, Kroese (2010) per dimension of x (n, d).

    Returns the bandwidths (d,) and in how many dimensions the fixed point was not found; the
    normal reference stands in there.
    """
    fallback = normal_reference(x)
    found = [_sheather_jones(column) for column in x.T]
    failed = [value is None for value in found]
    h = np.where(failed, fallback, np.array([value or 0.0 for value in found]))
    return h, int(np.sum(failed))


def _sheather_jones(x: Floats) -> float | None:
    low, high = x.min(), x.max()
    span = high - low
    if span <= 0:
        return None
    low, span = low - span / 10, span * 1.2
    count = np.bincount(((x - low) * (_GRID / span)).astype(np.int64), minlength=_GRID)[:_GRID]
    a = scipy.fft.dct(count / len(x))[1:]
    squares = np.arange(1.0, _GRID) ** 2
    energy = (a / 2) ** 2
    n = len(np.unique(x))
    # The smallest t at which t crosses its own fixed-point map, on a logarithmic grid first.
    grid = np.logspace(-14, -1, 80)
    gaps = np.array([t - _fixed_point(t, n, squares, energy) for t in grid])
    crossing = np.flatnonzero((gaps[:-1] < 0) & (gaps[1:] >= 0))
    if not len(crossing):
        return None
    j = int(crossing[0])
    t = brentq(lambda t: t - _fixed_point(t, n, squares, energy), grid[j], grid[j + 1])
    return float(np.sqrt(t) * span)


def _fixed_point(t: float, n: int, squares: Floats, energy: Floats) -> float:
    """Map whose fixed point is the squared bandwidth on [0, 1] (Botev et al., Algorithm 1)."""
    f = 2 * np.pi ** (2 * _STAGES) * _moment(_STAGES, t, squares, energy)
    for s in range(_STAGES - 1, 1, -1):
        odd = np.prod(np.arange(1.0, 2 * s, 2)) / np.sqrt(2 * np.pi)
        constant = (1 + 0.5 ** (s + 0.5)) / 3
        if f <= 0:
            return 0.0
        time = (2 * constant * odd / (n * f)) ** (2 / (3 + 2 * s))
        f = 2 * np.pi ** (2 * s) * _moment(s, time, squares, energy)
    return float((2 * n * np.sqrt(np.pi) * f) ** (-2 / 5)) if f > 0 else 0.0


def _moment(s: int, t: float, squares: Floats, energy: Floats) -> float:
    return float((squares**s * energy * np.exp(-squares * np.pi**2 * t)).sum())
