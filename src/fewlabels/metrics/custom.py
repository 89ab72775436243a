"""A user's own function as a metric."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

import numpy as np

from fewlabels.errors import InputError, UsageError, one_line, quoted
from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.weighting import Drawn, Weighting
from fewlabels.metrics.base import Metric, Plan, ScoreView, Statistic


@dataclass(frozen=True, eq=False)
class _FunctionPlan(Plan):
    name: str
    function: Callable[[Ints, Floats], float]
    probabilities: Floats
    whole = True

    def state(self, weights: Weighting, block: slice | None = None) -> Floats:
        """Values (1, D) of drawn labels; a function takes no weights, so there must be none."""
        if not isinstance(weights, Drawn) or weights.rows.shape[1] > 1:
            raise TypeError("a user's function has no weights; see `resampled`")
        labels = np.broadcast_to(weights.labels, (len(weights.labels), weights.size))
        # Copies: what a function does to its arguments is nothing to the next draw.
        each = (labels[:, d].astype(np.int64) for d in range(weights.size))
        return np.array([[self._value(own, self.probabilities.copy()) for own in each]])

    def resampled(self, labels: Ints, rows: Ints) -> Floats:
        """Values of draws whose items are resampled: labels (n, D) at rows (n, D)."""
        return np.array(
            [
                self._value(labels[rows[:, d], d], self.probabilities[rows[:, d]])
                for d in range(labels.shape[1])
            ]
        )

    def _value(self, labels: Ints, probabilities: Floats) -> float:
        """The function's value; NaN, which is counted and reported, where it is not defined."""
        try:
            value = self.function(labels, probabilities)
            number = float(value) if isinstance(value, Real) else None
        except (ValueError, ArithmeticError):
            return math.nan  # a class is missing, say
        except Exception as error:
            what = one_line(f"{type(error).__name__}: {error}", 120)
            raise InputError(
                f"metric {quoted(self.name)} must return a number; it raised {what}: raise "
                "ValueError where it is undefined"
            ) from error
        if number is None:
            raise InputError(
                f"metric {quoted(self.name)} must return a number; got {one_line(repr(value), 60)}"
            )
        return number if math.isfinite(number) else math.nan


def resampled_values(plan: Plan, labels: Ints, rows: Ints) -> Floats:
    """Values (D,) of a user's function on resampled items: labels (n, D) at rows (n, D)."""
    if not isinstance(plan, _FunctionPlan):
        raise TypeError("only a user's function is resampled")
    return plan.resampled(labels, rows)


@dataclass(frozen=True)
class Function(Statistic):
    """A function of (y_true, y_proba), called once per draw; errors speak of it by its name."""

    name: str
    function: Callable[[Ints, Floats], float]

    def prepare(self, view: ScoreView) -> Plan:
        """Give the function what scikit-learn's metrics take: P(class 1), or (n, K)."""
        p = view.probabilities
        assert p is not None
        return _FunctionPlan(self.name, self.function, p[:, 1] if view.n_classes == 2 else p)


def custom(
    function: Callable[[Ints, Floats], float],
    *,
    name: str | None = None,
    direction: int = 0,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Metric:
    """Make a metric of a function of (y_true, y_proba).

    Parameters
    ----------
    function
        Called with class indices (n,) and probabilities: P(class 1) (n,) for two classes, (n, K)
        for more. A number that is not finite, a ValueError and an ArithmeticError mean undefined
        there; any other error, and what is no number, stops the run.
    name
        Name of its rows; the function's own name unless given.
    direction
        +1 larger is better, -1 smaller is better, 0 neither.
    bounds
        Smallest and largest value possible.

    Examples
    --------
    >>> import fewlabels as fl
    >>> def worst_miss(y_true, y_proba):
    ...     return float(abs(y_true - y_proba).max())
    >>> fl.metrics.custom(worst_miss, direction=-1, bounds=(0, 1)).name
    'worst_miss'
    """
    if not callable(function):
        raise UsageError(
            f"a metric must be a name or a function of (y_true, y_proba); got {function!r}"
        )
    label = name or str(getattr(function, "__name__", type(function).__name__))
    return Metric(
        label,
        "the user's own function",
        direction,
        bounds,
        "probabilities",
        Function(label, function),
        lambda digest: digest,
        in_memory=True,
    )
