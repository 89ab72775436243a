"""The nine families of score densities.

Source: Welinder, Welling, Perona (2013), section 4, whose list of families this is, and Frechet's
distribution beside it. Parameters u are unconstrained; see `score_density`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import numpy as np
from scipy.special import digamma, gamma, gammaln, log_ndtr

from fewlabels.kernels.arrays import Floats
from fewlabels.kernels.score_density import (
    CurvedFamily,
    ExponentialFamily,
    Family,
    Points,
    Truncation,
)
from fewlabels.kernels.score_priors import Prior
from fewlabels.kernels.score_tails import log_gamma_tail, log_student_tail

_HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)
_LARGEST_LOG = 700.0
_FAR = 1e4
_EULER = 0.5772156649015329
_CAP = 300.0
"""Exponents are capped here, so that a hopeless parameter gets a log density of -1e130, not NaN."""


class Normal(ExponentialFamily):
    """Normal: u = (location, log scale), truncated at 0."""

    prior = (Prior("normal", 0.5, 0.5), Prior("gamma", 2, 8, "log"))
    left_truncated = True

    def coefficients(self, u: Floats) -> Floats:
        """Coefficients of the basis, (D, 5)."""
        m, precision = u[:, 0], np.exp(-2 * u[:, 1])
        zero = np.zeros(len(u))
        constant = -_HALF_LOG_2PI - u[:, 1] - 0.5 * m**2 * precision
        return np.column_stack([constant, m * precision, -0.5 * precision, zero, zero])

    def jacobian(self, u: Floats) -> Floats:
        """Derivative of the coefficients, (D, 5, p)."""
        m, precision = u[:, 0], np.exp(-2 * u[:, 1])
        out = np.zeros((len(u), 5, 2))
        out[:, 0, 0], out[:, 1, 0] = -m * precision, precision
        out[:, 0, 1] = -1 + m**2 * precision
        out[:, 1, 1], out[:, 2, 1] = -2 * m * precision, precision
        return out

    def log_tail(self, x: Floats, u: Floats) -> Floats:
        """Log P(X > x) before truncation, (n, D)."""
        out: Floats = log_ndtr((u[:, 0] - x[:, None]) * np.exp(-u[:, 1]))
        return out

    def log_mass_gradient(self, u: Floats, truncation: Truncation) -> Floats:
        """Gradient of `log_mass`, (D, p): standardised densities at the ends over the mass."""
        scale = np.exp(u[:, 1])
        ends = (0.0,) if truncation == "left" else (0.0, 1.0)
        log_mass, out = self.log_mass(u, truncation), np.zeros_like(u)
        for sign, end in zip((1, -1), ends, strict=False):
            z = (end - u[:, 0]) / scale
            hazard = np.exp(np.minimum(-0.5 * z**2 - _HALF_LOG_2PI - log_mass, _LARGEST_LOG))
            # Far in the tail the two logarithms cancel to nothing; their difference tends to log z.
            hazard = np.where(z > _FAR, z, hazard)
            out[:, 0] += sign * hazard / scale
            out[:, 1] += sign * hazard * z
        return out

    def from_moments(self, mean: float, sd: float) -> Floats:
        """Parameters of this mean and standard deviation, but for the truncation."""
        return np.array([mean, np.log(sd)])


class Gamma(ExponentialFamily):
    """Gamma: u = (log mean, log standard deviation)."""

    prior = (Prior("normal", 0.5, 0.5, "log"), Prior("gamma", 2, 8, "log"))

    @staticmethod
    def _shape_rate(u: Floats) -> tuple[Floats, Floats, Floats]:
        log_rate = u[:, 0] - 2 * u[:, 1]
        return np.exp(2 * (u[:, 0] - u[:, 1])), np.exp(log_rate), log_rate

    def coefficients(self, u: Floats) -> Floats:
        """Coefficients of the basis, (D, 5)."""
        k, rate, log_rate = self._shape_rate(u)
        zero = np.zeros(len(u))
        return np.column_stack([k * log_rate - gammaln(k), -rate, zero, k - 1, zero])

    def jacobian(self, u: Floats) -> Floats:
        """Derivative of the coefficients, (D, 5, p)."""
        k, rate, log_rate = self._shape_rate(u)
        out = np.zeros((len(u), 5, 2))
        bend = 2 * k * (log_rate - digamma(k))
        out[:, 0, 0], out[:, 0, 1] = bend + k, -bend - 2 * k
        out[:, 1, 0], out[:, 1, 1] = -rate, 2 * rate
        out[:, 3, 0], out[:, 3, 1] = 2 * k, -2 * k
        return out

    def log_tail(self, x: Floats, u: Floats) -> Floats:
        """Log P(X > x), (n, D)."""
        k, rate, _ = self._shape_rate(u)
        return log_gamma_tail(np.maximum(x, 0.0)[:, None] * rate, k)

    def from_moments(self, mean: float, sd: float) -> Floats:
        """Parameters of this mean and standard deviation."""
        return np.log([mean, sd])


class LogNormal(ExponentialFamily):
    """Log-normal: u = (mean, log standard deviation) of log x."""

    prior = (Prior("normal", -1, 1), Prior("gamma", 2, 2, "log"))

    def coefficients(self, u: Floats) -> Floats:
        """Coefficients of the basis, (D, 5)."""
        m, precision = u[:, 0], np.exp(-2 * u[:, 1])
        zero = np.zeros(len(u))
        constant = -_HALF_LOG_2PI - u[:, 1] - 0.5 * m**2 * precision
        return np.column_stack([constant, zero, zero, m * precision - 1, -0.5 * precision])

    def jacobian(self, u: Floats) -> Floats:
        """Derivative of the coefficients, (D, 5, p)."""
        m, precision = u[:, 0], np.exp(-2 * u[:, 1])
        out = np.zeros((len(u), 5, 2))
        out[:, 0, 0], out[:, 3, 0] = -m * precision, precision
        out[:, 0, 1] = -1 + m**2 * precision
        out[:, 3, 1], out[:, 4, 1] = -2 * m * precision, precision
        return out

    def log_tail(self, x: Floats, u: Floats) -> Floats:
        """Log P(X > x), (n, D)."""
        log_x = np.log(np.maximum(x, np.finfo(float).tiny))
        out: Floats = log_ndtr((u[:, 0] - log_x[:, None]) * np.exp(-u[:, 1]))
        return out

    def from_moments(self, mean: float, sd: float) -> Floats:
        """Parameters of this mean and standard deviation."""
        variance = np.log1p((sd / mean) ** 2)
        return np.array([np.log(mean) - variance / 2, 0.5 * np.log(variance)])


class StudentT(CurvedFamily):
    """Student's t: u = (location, log scale, log(degrees of freedom - 1)), truncated at 0."""

    prior = (
        Prior("normal", 0.5, 0.5),
        Prior("gamma", 2, 8, "log"),
        Prior("gamma", 2, 0.1, "one-plus"),
    )
    left_truncated = True

    def log_density(self, points: Points, u: Floats) -> Floats:
        """Log density before truncation, (n, D)."""
        freedom = 1 + np.exp(u[:, 2])
        constant = gammaln((freedom + 1) / 2) - gammaln(freedom / 2)
        constant -= 0.5 * np.log(freedom * np.pi) + u[:, 1]
        out = points.x[:, None] - u[:, 0]
        out *= np.exp(-u[:, 1]) / np.sqrt(freedom)
        np.square(out, out=out)
        np.log1p(out, out=out)
        out *= -(freedom + 1) / 2
        out += constant
        return out

    def derivatives(self, points: Points, u: Floats) -> Floats:
        """Derivative of the log density by each parameter, (p, n, D)."""
        freedom, scale = 1 + np.exp(u[:, 2]), np.exp(u[:, 1])
        z = (points.x[:, None] - u[:, 0]) / scale
        square = z**2
        pull = (freedom + 1) / (freedom + square)
        constant = 0.5 * (digamma((freedom + 1) / 2) - digamma(freedom / 2) - 1 / freedom)
        by_freedom = constant - 0.5 * np.log1p(square / freedom) + 0.5 * pull * square / freedom
        return np.stack([pull * z / scale, pull * square - 1, by_freedom * np.exp(u[:, 2])])

    def log_tail(self, x: Floats, u: Floats) -> Floats:
        """Log P(X > x) before truncation, (n, D)."""
        return log_student_tail((x[:, None] - u[:, 0]) * np.exp(-u[:, 1]), 1 + np.exp(u[:, 2]))

    def from_moments(self, mean: float, sd: float) -> Floats:
        """Parameters of five degrees of freedom."""
        return np.array([mean, np.log(sd * np.sqrt(3 / 5)), np.log(4.0)])


class Gumbel(CurvedFamily):
    """Gumbel, skewed to the right or, mirrored, to the left: u = (location, log scale).

    Not truncated unless asked for.
    """

    prior = Normal.prior

    def __init__(self, side: Literal["right", "left"]) -> None:
        self.sign = 1.0 if side == "right" else -1.0

    def _standard(self, x: Floats, u: Floats) -> Floats:
        z = x[:, None] - u[:, 0]
        z *= self.sign * np.exp(-u[:, 1])
        return z

    def log_density(self, points: Points, u: Floats) -> Floats:
        """Log density before truncation, (n, D)."""
        z = self._standard(points.x, u)
        np.negative(z, out=z)
        fall = _exp(z)
        z -= fall
        z -= u[:, 1]
        return z

    def derivatives(self, points: Points, u: Floats) -> Floats:
        """Derivative of the log density by each parameter, (p, n, D)."""
        z = self._standard(points.x, u)
        fall = 1 - _exp(-z)
        return np.stack([self.sign * fall * np.exp(-u[:, 1]), z * fall - 1])

    def log_tail(self, x: Floats, u: Floats) -> Floats:
        """Log P(X > x) before truncation, (n, D)."""
        z = self._standard(x, u)
        return _log_complement(-z) if self.sign > 0 else -_exp(-z)

    def from_moments(self, mean: float, sd: float) -> Floats:
        """Parameters of this mean and standard deviation."""
        scale = sd * np.sqrt(6) / np.pi
        return np.array([mean - self.sign * _EULER * scale, np.log(scale)])


class Gompertz(CurvedFamily):
    """Gompertz: u = (log shape, log scale)."""

    prior = (Prior("normal", -3, 4), Prior("gamma", 2, 8, "log"))

    def log_density(self, points: Points, u: Floats) -> Floats:
        """Log density, (n, D)."""
        z = points.x[:, None] * np.exp(-u[:, 1])
        hazard = _expm1(z)
        hazard *= _exp(u[:, 0])
        z -= hazard
        z += u[:, 0] - u[:, 1]
        return z

    def derivatives(self, points: Points, u: Floats) -> Floats:
        """Derivative of the log density by each parameter, (p, n, D)."""
        z, c = points.x[:, None] * np.exp(-u[:, 1]), _exp(u[:, 0])
        return np.stack([1 - c * _expm1(z), z * (c * _exp(z) - 1) - 1])

    def log_tail(self, x: Floats, u: Floats) -> Floats:
        """Log P(X > x), (n, D)."""
        z = np.maximum(x, 0.0)[:, None] * np.exp(-u[:, 1])
        return -_exp(u[:, 0]) * _expm1(z)

    def from_moments(self, mean: float, sd: float) -> Floats:
        """Parameters as if of the left-skewed Gumbel distribution that it is, cut at 0."""
        scale = sd * np.sqrt(6) / np.pi
        return np.array([np.clip(-mean / scale - _EULER, -20, 3), np.log(scale)])


class WeibullMin(CurvedFamily):
    """Weibull: u = (log shape, log scale). The paper's Frechet right (scipy's old name)."""

    prior = (Prior("gamma", 2, 0.5, "log"), Prior("gamma", 2, 4, "log"))

    def log_density(self, points: Points, u: Floats) -> Floats:
        """Log density, (n, D)."""
        c = np.exp(u[:, 0])
        return _power_law(points.log[:, None] - u[:, 1], c, c - 1, u[:, 0] - u[:, 1])

    def derivatives(self, points: Points, u: Floats) -> Floats:
        """Derivative of the log density by each parameter, (p, n, D)."""
        c = np.exp(u[:, 0])
        power = c * (points.log[:, None] - u[:, 1])
        fall = 1 - _exp(power)
        return np.stack([1 + power * fall, -c * fall])

    def log_tail(self, x: Floats, u: Floats) -> Floats:
        """Log P(X > x), (n, D)."""
        log_x = np.log(np.maximum(x, np.finfo(float).tiny))
        return -_exp(np.exp(u[:, 0]) * (log_x[:, None] - u[:, 1]))

    def from_moments(self, mean: float, sd: float) -> Floats:
        """Parameters of about this mean and standard deviation."""
        c = np.clip((sd / mean) ** -1.086, 0.2, 100)
        return np.array([np.log(c), np.log(mean / gamma(1 + 1 / c))])


class Frechet(CurvedFamily):
    """Frechet's distribution (inverse Weibull): u = (log shape, log scale)."""

    prior = WeibullMin.prior

    def log_density(self, points: Points, u: Floats) -> Floats:
        """Log density, (n, D)."""
        c = np.exp(u[:, 0])
        return _power_law(points.log[:, None] - u[:, 1], -c, -(c + 1), u[:, 0] - u[:, 1])

    def derivatives(self, points: Points, u: Floats) -> Floats:
        """Derivative of the log density by each parameter, (p, n, D)."""
        c = np.exp(u[:, 0])
        power = -c * (points.log[:, None] - u[:, 1])
        fall = 1 - _exp(power)
        return np.stack([1 + power * fall, c * fall])

    def log_tail(self, x: Floats, u: Floats) -> Floats:
        """Log P(X > x), (n, D)."""
        log_x = np.log(np.maximum(x, np.finfo(float).tiny))
        return _log_complement(-np.exp(u[:, 0]) * (log_x[:, None] - u[:, 1]))

    def from_moments(self, mean: float, sd: float) -> Floats:
        """Parameters by the moments of log x, which has Gumbel's distribution."""
        variance = np.log1p((sd / mean) ** 2)
        c = np.pi / np.sqrt(6 * variance)
        return np.array([np.log(c), np.log(mean) - variance / 2 - _EULER / c])


def _exp(z: Floats) -> Floats:
    out = np.minimum(z, _CAP)
    return np.exp(out, out=out)


def _expm1(z: Floats) -> Floats:
    out = np.minimum(z, _CAP)
    return np.expm1(out, out=out)


def _power_law(log_z: Floats, power: Floats, slope: Floats, constant: Floats) -> Floats:
    """Constant + slope * log z - z^power, in the memory of log z (n, D)."""
    fall = log_z * power
    np.minimum(fall, _CAP, out=fall)
    np.exp(fall, out=fall)
    log_z *= slope
    log_z += constant
    log_z -= fall
    return log_z


def _log_complement(log_rate: Floats) -> Floats:
    """Log(1 - exp(-r)) for r given by its logarithm; log r itself where r is tiny."""
    rate = _exp(log_rate)
    small = log_rate < -36
    with np.errstate(divide="ignore"):
        return np.where(small, log_rate, np.log(-np.expm1(-np.where(small, 1.0, rate))))


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        "normal": Normal(),
        "student-t": StudentT(),
        "gamma": Gamma(),
        "log-normal": LogNormal(),
        "gumbel-right": Gumbel("right"),
        "gumbel-left": Gumbel("left"),
        "gompertz": Gompertz(),
        "weibull-min": WeibullMin(),
        "frechet": Frechet(),
    }
)
"""Every family by its name."""

SHORT_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "n": "normal",
        "t": "student-t",
        "g": "gamma",
        "ln": "log-normal",
        "g-r": "gumbel-right",
        "g-l": "gumbel-left",
        "gz": "gompertz",
        "f-r": "weibull-min",
    }
)
"""The paper's names."""
