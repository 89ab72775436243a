"""The minimum of a penalised loss, and its penalty: a number, or chosen on items held out.

L-BFGS first, then Newton steps to full precision. Vector, matrix and alpha-calibration share it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from scipy.optimize import minimize

from fewlabels.checks.arguments import not_negative, one_of, seed_of
from fewlabels.errors import InputError, UsageError, quoted
from fewlabels.kernels.arrays import Bools, Floats
from fewlabels.kernels.blocks import one_blas_thread

CROSS_VALIDATED = "cross-validated"
"""The `penalty` that is chosen, and not given."""

Loss = Callable[[Floats], tuple[float, Floats]]
"""Value and gradient at a point (P,)."""

Hessian = Callable[[Floats], Floats]
"""Second derivatives (P, P) at a point (P,)."""

_LARGEST_HESSIAN = 512
"""Problems of more parameters are left to L-BFGS, as a Hessian would cost more than it saves."""


_HAND_OVER = 1e-6
"""Largest slope at which Newton steps take over from L-BFGS."""

_ROUGH = 1e-5
"""Slopes at which large problems stop while a penalty is chosen."""

_NEWTON_STEPS = 20


class Minimum(NamedTuple):
    """Where the loss is least, its value, whether the gradient vanishes there, steps taken."""

    point: Floats
    value: float
    converged: bool
    n_iter: int


def descend(
    loss: Loss, hessian: Hessian, start: Floats, *, tolerance: float, max_iter: int
) -> Minimum:
    """The minimum reached from `start`; converged if no slope exceeds `tolerance`.

    L-BFGS compares values and so stops at half the digits of a minimum; Newton's method compares
    gradients, and starts here where it converges quadratically. scipy's trust regions compare
    values too, and move arbitrarily in a direction that the data do not determine, such as a
    feature given twice. Least-squares steps are the shortest, so that the start decides there.
    """
    polished = len(start) <= _LARGEST_HESSIAN
    options = {"maxiter": max_iter, "maxfun": 4 * max_iter, "maxcor": 20, "ftol": 1e-15}
    options["gtol"] = max(tolerance, _HAND_OVER) if polished else tolerance
    # The losses share their rows out themselves; all else is small.
    with one_blas_thread():
        result = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
        point, value, slope, spent = result.x, float(result.fun), result.jac, int(result.nit)
        size, last = 1.0, min(spent + _NEWTON_STEPS, max_iter)
        while polished and spent < last and size > 1e-6:
            if size == 1.0:
                step = np.linalg.lstsq(hessian(point), slope, rcond=1e-12)[0]
            reached, after = loss(point - size * step)
            # Within rounding of the value the gradient decides.
            lower = reached <= value - 1e-4 * size * float(slope @ step)
            level = reached <= value + 1e-13 * abs(value)
            if not lower and not (level and np.abs(after).max() < np.abs(slope).max()):
                size /= 4
                continue
            point, value, slope, spent = point - size * step, reached, after, spent + 1
            if np.abs(slope).max() <= tolerance:
                break
            size = 1.0
    return Minimum(point, value, bool(np.abs(slope).max() <= tolerance), spent)


_SPLIT = 0.2
"""Share of the items that a split holds out to choose a penalty: the paper's."""

_Penalty = TypeVar("_Penalty")
_Any = TypeVar("_Any", contravariant=True)


class Problem(Protocol[_Any]):
    """Some items with their labels: the penalised loss of coefficients (P,), and the bare one."""

    def loss(self, theta: Floats, penalty: _Any) -> tuple[float, Floats]:
        """Loss of a label and penalty, and the gradient."""

    def hessian(self, theta: Floats, penalty: _Any) -> Floats:
        """Second derivatives of the loss."""

    def misfit(self, theta: Floats) -> float:
        """Minus the log-likelihood of all labels, without a penalty."""


class Penalised:
    """What estimators with a penalty share: the fit, and the choice of the penalty."""

    penalty: Any
    penalties: tuple[float, ...]
    validation: str | int
    max_iter: int
    tol: float
    random_state: Any

    def _tried(self) -> list[Any]:
        """The penalties to try; of one that is given itself alone."""
        if not isinstance(self.penalty, str):
            return [self.penalty]
        one_of("`penalty`", self.penalty, (CROSS_VALIDATED,))
        tried = [not_negative("penalties", value) for value in self.penalties]
        if not tried:
            raise UsageError("`penalties` must have one penalty or more; got none")
        return tried

    def _solve(
        self,
        n: int,
        of_items: Callable[[Bools], Problem[_Penalty]],
        candidates: Sequence[_Penalty],
        start: Floats,
    ) -> tuple[Minimum, _Penalty]:
        """The minimum for all n items, with the candidate of the least loss on items held out."""
        # Few coefficients have one minimum, which Newton's steps reach from anywhere. Of many, each
        # fit goes on from that of the next larger penalty, as far as the choice of one needs.
        large = len(start) > _LARGEST_HESSIAN
        enough = max(self.tol, _ROUGH) if large else self.tol
        chosen = candidates[0]
        if len(candidates) > 1:
            losses = np.zeros(len(candidates))
            for held_out in self._held_out(n):
                retained, judged = of_items(~held_out), of_items(held_out)
                theta = start
                for c, penalty in reversed(list(enumerate(candidates))):
                    first = theta if large else start
                    theta = self._descend(retained, penalty, first, enough).point
                    losses[c] += judged.misfit(theta)
            chosen = candidates[int(losses.argmin())]
        everything = of_items(np.ones(n, dtype=bool))
        return self._descend(everything, chosen, start, self.tol), chosen

    def _descend(
        self, problem: Problem[_Penalty], penalty: _Penalty, start: Floats, tolerance: float
    ) -> Minimum:
        return descend(
            partial(problem.loss, penalty=penalty),
            partial(problem.hessian, penalty=penalty),
            start,
            tolerance=tolerance,
            max_iter=self.max_iter,
        )

    def _held_out(self, n: int) -> list[Bools]:
        """Which items each round of validation holds out, (n,) each."""
        if n < 2:
            raise InputError(
                "choosing a penalty by validation needs two labeled items or more; got "
                f"{n}: pass a number as `penalty`"
            )
        order = np.random.default_rng(seed_of(self.random_state)).permutation(n)
        if self.validation == "split":
            return [np.isin(np.arange(n), order[: max(1, round(_SPLIT * n))])]
        folds = self.validation
        if not isinstance(folds, int | np.integer) or isinstance(folds, bool) or folds < 2:
            raise UsageError(
                f"`validation` must be 'split' or a number of folds from 2; got {quoted(folds)}"
            )
        place = np.empty(n, dtype=np.int64)
        place[order] = np.arange(n) % min(folds, n)
        return [place == fold for fold in range(min(folds, n))]
