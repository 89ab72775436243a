"""What a family of score densities is: densities, tails and priors in unconstrained coordinates.

Scores x are on the unit interval (0, 1] or beyond it on the right; parameters u (D, p) are
unconstrained, one row per draw, and results are (n, D).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np

from fewlabels.kernels.arrays import Floats
from fewlabels.kernels.lazily import lazily
from fewlabels.kernels.score_priors import Prior
from fewlabels.kernels.score_tails import log_less

Truncation = Literal["left", "unit"]
"""Where densities end: at 0 (families on the whole line but Gumbel's), or at 0 and 1 (all)."""

_LEAST_LOG_MASS = -690.0
_STEP = 1e-3


@dataclass(frozen=True, eq=False)
class Points:
    """Scores x (n,), with what densities need of them computed once."""

    x: Floats

    @lazily
    def log(self) -> Floats:
        """Log x, (n,)."""
        return np.log(self.x)

    @lazily
    def basis(self) -> Floats:
        """1, x, x^2, log x, log^2 x: every exponential family here is linear in them, (n, 5)."""
        return np.column_stack([np.ones(len(self.x)), self.x, self.x**2, self.log, self.log**2])

    def __len__(self) -> int:
        return len(self.x)

    def rows(self, block: slice) -> Points:
        """Some of the scores."""
        part = Points(self.x[block])
        for name in ("log", "basis"):
            if name in self.__dict__:
                part.__dict__[name] = self.__dict__[name][block]
        return part


class Family(ABC):
    """A family of densities with p parameters; `prior` holds one law per coordinate of u."""

    prior: ClassVar[tuple[Prior, ...]]
    left_truncated: ClassVar[bool] = False

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
    def log_prior(self, u: Floats) -> tuple[Floats, Floats]:
        """Log prior density in u, Jacobian included, (D,), and its gradient (D, p)."""
        value, slope = np.zeros(len(u)), np.empty_like(u)
        for k, prior in enumerate(self.prior):
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
