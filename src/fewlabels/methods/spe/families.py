"""The nine families of score densities: densities, tails and priors.

Scores x are on the unit interval (0, 1] or beyond it on the right; parameters u (D, p) are
unconstrained, one row per draw, and results are (n, D). Source: Welinder, Welling, Perona (2013),
section 4, whose list of families this is, and Frechet's distribution beside it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import ClassVar, Literal, NamedTuple, final

import numpy as np
from scipy.special import betaln, digamma, gamma, gammaincc, gammaln, log_ndtr, stdtr

from fewlabels.kernels.arrays import Floats

# --- tails ------------------------------------------------------------------------------------
#
# Logarithms of tail probabilities that stay finite where the probabilities underflow.

_TINY = 1e-290
"""Below it the library's tail probability loses digits, and a continued fraction is used."""

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


# --- priors of the parameters -----------------------------------------------------------------
#
# Of single parameters, in the unconstrained coordinates in which they are sampled.


class Prior(NamedTuple):
    """A normal (mean, sd) or gamma (shape, rate) law of a parameter v, and its link to u.

    v = u ("identity"), e^u ("log"), or 1 + e^u ("one-plus").
    """

    law: Literal["normal", "gamma"]
    first: float
    second: float
    link: Literal["identity", "log", "one-plus"] = "identity"

    def log_density(self, u: Floats) -> tuple[Floats, Floats]:
        """Log density of u, the Jacobian of the link included, and its derivative, both (D,)."""
        if self.link == "identity":
            return self._law(u)
        grown = np.exp(u)
        value, slope = self._law(1 + grown if self.link == "one-plus" else grown)
        return value + u, slope * grown + 1

    def _law(self, v: Floats) -> tuple[Floats, Floats]:
        if self.law == "normal":
            z = (v - self.first) / self.second
            constant = -0.5 * np.log(2 * np.pi) - np.log(self.second)
            return constant - 0.5 * z**2, -z / self.second
        shape, rate = self.first, self.second
        constant = shape * np.log(rate) - gammaln(shape)
        return constant + (shape - 1) * np.log(v) - rate * v, (shape - 1) / v - rate


# --- what a family is -------------------------------------------------------------------------

Truncation = Literal["left", "unit"]
"""Where densities end: at 0 (families on the whole line but Gumbel's), or at 0 and 1 (all)."""

_LEAST_LOG_MASS = -690.0
_STEP = 1e-3


class Points:
    """Scores x (n,), with what densities need of them, computed once.

    `basis` (n, 5) is 1, x, x^2, log x, log^2 x: every exponential family here is linear in them.
    """

    def __init__(self, x: Floats, basis: Floats | None = None) -> None:
        self.x = x
        if basis is None:
            with np.errstate(divide="ignore", invalid="ignore"):  # densities on the whole line
                log = np.log(x)
            basis = np.column_stack([np.ones(len(x)), x, x**2, log, log**2])
        self.basis = basis
        self.log: Floats = basis[:, 3]

    def __len__(self) -> int:
        return len(self.x)

    def rows(self, block: slice) -> Points:
        """Some of the scores."""
        return Points(self.x[block], self.basis[block])


class Family(ABC):
    """A family of densities with p parameters; `prior` holds one law per coordinate of u."""

    prior: ClassVar[tuple[Prior, ...]]
    left_truncated: ClassVar[bool] = False
    located: ClassVar[bool] = False
    """Whether the first two parameters are a location, or mean, and a scale."""

    @abstractmethod
    def log_density(self, points: Points, u: Floats) -> Floats:
        """Log density before truncation, (n, D)."""

    @abstractmethod
    def log_tail(self, x: Floats, u: Floats) -> Floats:
        """Log P(X > x) before truncation, (n, D)."""

    @abstractmethod
    def pull(self, points: Points, u: Floats, weights: Floats) -> Floats:
        """Gradient in u of sum_i weights_i log density(x_i), (D, p), for weights (n, D)."""

    @abstractmethod
    def from_moments(self, mean: float, sd: float) -> Floats:
        """Parameters (p,) whose mean and standard deviation are about these."""

    @property
    @final
    def size(self) -> int:
        """Number of parameters, p."""
        return len(self.prior)

    @final
    def prior_with(
        self, location: tuple[float, float] | None, spread: tuple[float, float] | None
    ) -> tuple[Prior, ...]:
        """The priors with other numbers of the location (mean, sd) and the spread (shape, rate).

        Families whose first parameters are not these keep their own.
        """
        if not self.located:
            return self.prior
        first, second, *rest = self.prior
        first = first if location is None else Prior(first.law, *location, first.link)
        second = second if spread is None else Prior(second.law, *spread, second.link)
        return (first, second, *rest)

    @final
    def log_prior(
        self, u: Floats, priors: tuple[Prior, ...] | None = None
    ) -> tuple[Floats, Floats]:
        """Log prior density in u, Jacobian included, (D,), and its gradient (D, p)."""
        value, slope = np.zeros(len(u)), np.empty_like(u)
        for k, prior in enumerate(priors or self.prior):
            part, slope[:, k] = prior.log_density(u[:, k])
            value += part
        return value, slope

    @final
    def log_mass(self, u: Floats, truncation: Truncation) -> Floats:
        """Log of the probability that truncation keeps, (D,)."""
        if truncation == "unit":
            low, high = self.log_tail(np.array([0.0, 1.0]), u)
            return np.maximum(log_less(low, high), _LEAST_LOG_MASS)
        if self.left_truncated:
            return self.log_tail(np.zeros(1), u)[0]
        return np.zeros(len(u))

    def log_mass_gradient(self, u: Floats, truncation: Truncation) -> Floats:
        """Gradient of `log_mass`, (D, p).

        Shape parameters of incomplete gamma and beta functions have no closed derivative; the
        five-point stencil is good to about 1e-11, and there is one number per draw to compute.
        """
        out = np.zeros_like(u)
        if truncation == "left" and not self.left_truncated:
            return out
        for k in range(self.size):
            step = np.zeros(self.size)
            step[k] = _STEP
            near, far = (
                self.log_mass(u + m * step, truncation) - self.log_mass(u - m * step, truncation)
                for m in (1, 2)
            )
            out[:, k] = (8 * near - far) / (12 * _STEP)
        return out

    @final
    def log_survival(self, x: Floats, u: Floats, truncation: Truncation) -> Floats:
        """Log P(X > x) after truncation, (n, D)."""
        tail = self.log_tail(x, u)
        if truncation == "unit":
            top = self.log_tail(np.ones(1), u)
            inside = np.minimum(x, 1.0)[:, None]
            tail = np.where(inside < 1, log_less(np.maximum(tail, top), top), -np.inf)
        out: Floats = np.minimum(tail - self.log_mass(u, truncation), 0.0)
        return out


class ExponentialFamily(Family):
    """A family whose log density is linear in `Points.basis`: matrix products do the work."""

    @abstractmethod
    def coefficients(self, u: Floats) -> Floats:
        """Coefficients of the basis, (D, 5)."""

    @abstractmethod
    def jacobian(self, u: Floats) -> Floats:
        """Derivative of the coefficients, (D, 5, p)."""

    @final
    def log_density(self, points: Points, u: Floats) -> Floats:
        """Log density before truncation, (n, D)."""
        out: Floats = points.basis @ self.coefficients(u).T
        return out

    @final
    def pull(self, points: Points, u: Floats, weights: Floats) -> Floats:
        """Gradient in u of sum_i weights_i log density(x_i), (D, p)."""
        return self.pull_statistics(weights.T @ points.basis, u)

    @final
    def pull_statistics(self, statistics: Floats, u: Floats) -> Floats:
        """`pull` for sums of weights times basis, (D, 5)."""
        return np.einsum("db,dbp->dp", statistics, self.jacobian(u))


class CurvedFamily(Family):
    """A family that is not linear in a fixed basis: derivatives score by score."""

    @abstractmethod
    def derivatives(self, points: Points, u: Floats) -> Floats:
        """Derivative of the log density by each parameter, (p, n, D)."""

    @final
    def pull(self, points: Points, u: Floats, weights: Floats) -> Floats:
        """Gradient in u of sum_i weights_i log density(x_i), (D, p)."""
        return np.einsum("pnd,nd->dp", self.derivatives(points, u), weights)


# --- the families -----------------------------------------------------------------------------

_HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)
_LARGEST_LOG = 700.0
_FAR = 1e4
_EULER = 0.5772156649015329
_CAP = 300.0
"""Limit of exponents, so that an impossible parameter has log density -1e130 instead of NaN."""


class _Normal(ExponentialFamily):
    """Normal: u = (location, log scale), truncated at 0."""

    prior = (Prior("normal", 0.5, 0.5), Prior("gamma", 2, 8, "log"))
    located = True
    left_truncated = True

    def coefficients(self, u: Floats) -> Floats:
        m, precision = u[:, 0], np.exp(-2 * u[:, 1])
        zero = np.zeros(len(u))
        constant = -_HALF_LOG_2PI - u[:, 1] - 0.5 * m**2 * precision
        return np.column_stack([constant, m * precision, -0.5 * precision, zero, zero])

    def jacobian(self, u: Floats) -> Floats:
        m, precision = u[:, 0], np.exp(-2 * u[:, 1])
        out = np.zeros((len(u), 5, 2))
        out[:, 0, 0], out[:, 1, 0] = -m * precision, precision
        out[:, 0, 1] = -1 + m**2 * precision
        out[:, 1, 1], out[:, 2, 1] = -2 * m * precision, precision
        return out

    def log_tail(self, x: Floats, u: Floats) -> Floats:
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
        return np.array([mean, np.log(sd)])


_NORMAL = _Normal()


class _Gamma(ExponentialFamily):
    """Gamma: u = (log mean, log standard deviation)."""

    prior = (Prior("normal", 0.5, 0.5, "log"), Prior("gamma", 2, 8, "log"))
    located = True

    @staticmethod
    def _shape_rate(u: Floats) -> tuple[Floats, Floats, Floats]:
        log_rate = u[:, 0] - 2 * u[:, 1]
        return np.exp(2 * (u[:, 0] - u[:, 1])), np.exp(log_rate), log_rate

    def coefficients(self, u: Floats) -> Floats:
        k, rate, log_rate = self._shape_rate(u)
        zero = np.zeros(len(u))
        return np.column_stack([k * log_rate - gammaln(k), -rate, zero, k - 1, zero])

    def jacobian(self, u: Floats) -> Floats:
        k, rate, log_rate = self._shape_rate(u)
        out = np.zeros((len(u), 5, 2))
        bend = 2 * k * (log_rate - digamma(k))
        out[:, 0, 0], out[:, 0, 1] = bend + k, -bend - 2 * k
        out[:, 1, 0], out[:, 1, 1] = -rate, 2 * rate
        out[:, 3, 0], out[:, 3, 1] = 2 * k, -2 * k
        return out

    def log_tail(self, x: Floats, u: Floats) -> Floats:
        k, rate, _ = self._shape_rate(u)
        return log_gamma_tail(np.maximum(x, 0.0)[:, None] * rate, k)

    def from_moments(self, mean: float, sd: float) -> Floats:
        return np.log([mean, sd])


class _LogNormal(ExponentialFamily):
    """Log-normal: u = (mean, log standard deviation) of log x."""

    prior = (Prior("normal", -1, 1), Prior("gamma", 2, 2, "log"))

    def coefficients(self, u: Floats) -> Floats:
        """Those of a normal density of log x, with 1/x, the derivative of log x, (D, 5)."""
        out = _NORMAL.coefficients(u)[:, [0, 3, 4, 1, 2]]
        out[:, 3] -= 1
        return out

    def jacobian(self, u: Floats) -> Floats:
        return _NORMAL.jacobian(u)[:, [0, 3, 4, 1, 2]]

    def log_tail(self, x: Floats, u: Floats) -> Floats:
        return _NORMAL.log_tail(_log(x), u)

    def from_moments(self, mean: float, sd: float) -> Floats:
        variance = np.log1p((sd / mean) ** 2)
        return np.array([np.log(mean) - variance / 2, 0.5 * np.log(variance)])


class _StudentT(CurvedFamily):
    """Student's t: u = (location, log scale, log(degrees of freedom - 1)), truncated at 0."""

    prior = (
        Prior("normal", 0.5, 0.5),
        Prior("gamma", 2, 8, "log"),
        Prior("gamma", 2, 0.1, "one-plus"),
    )
    located = True
    left_truncated = True

    def log_density(self, points: Points, u: Floats) -> Floats:
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
        freedom, scale = 1 + np.exp(u[:, 2]), np.exp(u[:, 1])
        z = (points.x[:, None] - u[:, 0]) / scale
        square = z**2
        pull = (freedom + 1) / (freedom + square)
        constant = 0.5 * (digamma((freedom + 1) / 2) - digamma(freedom / 2) - 1 / freedom)
        by_freedom = constant - 0.5 * np.log1p(square / freedom) + 0.5 * pull * square / freedom
        return np.stack([pull * z / scale, pull * square - 1, by_freedom * np.exp(u[:, 2])])

    def log_tail(self, x: Floats, u: Floats) -> Floats:
        return log_student_tail((x[:, None] - u[:, 0]) * np.exp(-u[:, 1]), 1 + np.exp(u[:, 2]))

    def from_moments(self, mean: float, sd: float) -> Floats:
        """Parameters of five degrees of freedom."""
        return np.array([mean, np.log(sd * np.sqrt(3 / 5)), np.log(4.0)])


class _Gumbel(CurvedFamily):
    """Gumbel, skewed to the right or, mirrored, to the left: u = (location, log scale).

    Not truncated unless asked for.
    """

    prior = _Normal.prior
    located = True

    def __init__(self, side: Literal["right", "left"]) -> None:
        self.sign = 1.0 if side == "right" else -1.0

    def _standard(self, x: Floats, u: Floats) -> Floats:
        z = x[:, None] - u[:, 0]
        z *= self.sign * np.exp(-u[:, 1])
        return z

    def log_density(self, points: Points, u: Floats) -> Floats:
        z = self._standard(points.x, u)
        np.negative(z, out=z)
        fall = _exp(z)
        z -= fall
        z -= u[:, 1]
        return z

    def derivatives(self, points: Points, u: Floats) -> Floats:
        z = self._standard(points.x, u)
        fall = 1 - _exp(-z)
        return np.stack([self.sign * fall * np.exp(-u[:, 1]), z * fall - 1])

    def log_tail(self, x: Floats, u: Floats) -> Floats:
        z = self._standard(x, u)
        return _log_complement(-z) if self.sign > 0 else -_exp(-z)

    def from_moments(self, mean: float, sd: float) -> Floats:
        scale = sd * np.sqrt(6) / np.pi
        return np.array([mean - self.sign * _EULER * scale, np.log(scale)])


class _Gompertz(CurvedFamily):
    """Gompertz: u = (log shape, log scale)."""

    prior = (Prior("normal", -3, 4), Prior("gamma", 2, 8, "log"))

    def log_density(self, points: Points, u: Floats) -> Floats:
        z = points.x[:, None] * np.exp(-u[:, 1])
        hazard = _expm1(z)
        hazard *= _exp(u[:, 0])
        z -= hazard
        z += u[:, 0] - u[:, 1]
        return z

    def derivatives(self, points: Points, u: Floats) -> Floats:
        z, c = points.x[:, None] * np.exp(-u[:, 1]), _exp(u[:, 0])
        return np.stack([1 - c * _expm1(z), z * (c * _exp(z) - 1) - 1])

    def log_tail(self, x: Floats, u: Floats) -> Floats:
        z = np.maximum(x, 0.0)[:, None] * np.exp(-u[:, 1])
        return -_exp(u[:, 0]) * _expm1(z)

    def from_moments(self, mean: float, sd: float) -> Floats:
        """Parameters as if of the left-skewed Gumbel distribution that it is, cut at 0."""
        scale = sd * np.sqrt(6) / np.pi
        return np.array([np.clip(-mean / scale - _EULER, -20, 3), np.log(scale)])


class _PowerLaw(CurvedFamily):
    """Weibull and, with 1/x for x, Frechet: u = (log shape, log scale).

    A Gumbel density of log x, skewed to the left or to the right. The paper's Frechet right is
    Weibull (scipy's old name).
    """

    prior = (Prior("gamma", 2, 0.5, "log"), Prior("gamma", 2, 4, "log"))

    def __init__(self, name: Literal["weibull", "frechet"]) -> None:
        self.sign = 1.0 if name == "weibull" else -1.0

    def log_density(self, points: Points, u: Floats) -> Floats:
        """Log density log c - log b + (+-c - 1) log z - z^(+-c) with z = x / b, (n, D)."""
        power, log_z = self.sign * np.exp(u[:, 0]), points.log[:, None] - u[:, 1]
        fall = log_z * power
        np.minimum(fall, _CAP, out=fall)
        np.exp(fall, out=fall)
        log_z *= power - 1
        log_z += u[:, 0] - u[:, 1]
        log_z -= fall
        return log_z

    def derivatives(self, points: Points, u: Floats) -> Floats:
        c = self.sign * np.exp(u[:, 0])
        power = c * (points.log[:, None] - u[:, 1])
        fall = 1 - _exp(power)
        return np.stack([1 + power * fall, -c * fall])

    def log_tail(self, x: Floats, u: Floats) -> Floats:
        power = self.sign * np.exp(u[:, 0]) * (_log(x)[:, None] - u[:, 1])
        return -_exp(power) if self.sign > 0 else _log_complement(power)

    def from_moments(self, mean: float, sd: float) -> Floats:
        if self.sign > 0:
            c = np.clip((sd / mean) ** -1.086, 0.2, 100)
            return np.array([np.log(c), np.log(mean / gamma(1 + 1 / c))])
        # By the moments of log x, which has Gumbel's distribution.
        variance = np.log1p((sd / mean) ** 2)
        c = np.pi / np.sqrt(6 * variance)
        return np.array([np.log(c), np.log(mean) - variance / 2 - _EULER / c])


def _log(x: Floats) -> Floats:
    out: Floats = np.log(np.maximum(x, np.finfo(float).tiny))
    return out


def _exp(z: Floats) -> Floats:
    out = np.minimum(z, _CAP)
    return np.exp(out, out=out)


def _expm1(z: Floats) -> Floats:
    out = np.minimum(z, _CAP)
    return np.expm1(out, out=out)


def _log_complement(log_rate: Floats) -> Floats:
    """Log(1 - exp(-r)) for r given by its logarithm; log r itself where r is tiny."""
    rate = _exp(log_rate)
    small = log_rate < -36
    with np.errstate(divide="ignore"):
        return np.where(small, log_rate, np.log(-np.expm1(-np.where(small, 1.0, rate))))


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        "normal": _NORMAL,
        "student-t": _StudentT(),
        "gamma": _Gamma(),
        "log-normal": _LogNormal(),
        "gumbel-right": _Gumbel("right"),
        "gumbel-left": _Gumbel("left"),
        "gompertz": _Gompertz(),
        "weibull-min": _PowerLaw("weibull"),
        "frechet": _PowerLaw("frechet"),
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
