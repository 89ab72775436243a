"""Metric: a function of scores and label weights, as data for every engine; custom metrics."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np

from fewlabels.errors import InputError, UsageError, one_line, quoted
from fewlabels.kernels.arrays import Array, Floats, Ints
from fewlabels.kernels.weighting import Drawn, Indicator, Weighting

Needs = Literal["hard", "probabilities", "ranking"]


@dataclass(frozen=True, eq=False)
class ScoreView:
    """What a metric sees of one classifier: n items, all with a prediction.

    probabilities (n, K), hard (n,) class indices, scores (n,) of the positive class; None where
    the classifier does not provide it. `exact` asks for a code per distinct score, however many;
    `times` (n,) says how many items each row stands for, where it is not one; `group` (n,) of which
    of `n_groups` each item is; `grades` (K,) are the classes as numbers, their places if None.
    """

    n_classes: int
    probabilities: Floats | None = None
    hard: Ints | None = None
    scores: Floats | None = None
    exact: bool = True
    times: Floats | None = None
    group: Ints | None = None
    n_groups: int = 1
    grades: Floats | None = None

    @property
    def grade_values(self) -> Floats:
        """The classes as numbers, (K,)."""
        return np.arange(self.n_classes, dtype=float) if self.grades is None else self.grades

    def coded(self, codes: Array, size: int, values: Floats | None = None) -> Indicator:
        """Items by code and group: sums are (size G, ...)."""
        if self.group is None:
            return Indicator(codes, size, values)
        return Indicator(codes * self.n_groups + self.group, size * self.n_groups, values)

    @property
    def grouped(self) -> Indicator:
        """Items by group."""
        return self.coded(np.zeros(self.n_items, dtype=np.int64), 1)

    @property
    def n_items(self) -> int:
        """How many items there are, n."""
        blocks = (self.hard, self.probabilities, self.scores)
        return next(len(block) for block in blocks if block is not None)

    def provides(self, needs: Needs) -> bool:
        """Whether a metric with these needs applies."""
        if needs == "ranking":
            return self.probabilities is not None or self.scores is not None
        return (self.hard if needs == "hard" else self.probabilities) is not None


class Plan(ABC):
    """A statistic prepared for the scores of one classifier, on items of G groups.

    States of parts of the items add up to the state of all of them. Where `whole`, a state is made
    of all items at once.
    """

    whole: bool = False

    @property
    def cells(self) -> int:
        """How many numbers a state holds per draw, if they are many."""
        return 1

    @property
    def digest_cells(self) -> int:
        """The same of a digest."""
        return self.cells

    @abstractmethod
    def state(self, weights: Weighting, block: slice | None = None) -> Floats:
        """Sufficient statistic of some items (None: all) in D draws, last axes (G, D).

        It includes their pseudo-observations, which have the scores of an item. A statistic of hard
        predictions takes the class `predicted` for them, which need not occur among the items.
        """

    def add(self, sums: Floats | None, weights: Weighting, block: slice | None = None) -> Floats:
        """Sums of states, of other items so far (None: none), and these; `sums` is written to."""
        state = self.state(weights, block)
        return state if sums is None else np.add(sums, state, out=sums)

    def digest(self, state: Floats) -> Floats:
        """What metrics finish from, last axis D, of a complete state; often the state itself."""
        return state

    def digested(self, state: Floats) -> Floats:
        """Digests of a state of groups, last axes (G, D) both."""
        digest = self.digest(state.reshape(*state.shape[:-2], -1))
        return digest.reshape(*digest.shape[:-1], *state.shape[-2:])

    def measured(self, weights: Weighting) -> Floats:
        """Digests of all items, last axes (G, D)."""
        return self.digested(self.state(weights))


class Statistic(ABC):
    """A kind of sufficient statistic; equal statistics are computed once for all their metrics."""

    @abstractmethod
    def prepare(self, view: ScoreView) -> Plan:
        """Sort, bin and look up everything that does not depend on the labels."""

    def of_matrix(self, matrix: Floats, grades: Floats) -> Floats | None:
        """The digest of a confusion matrix (K predicted, K true, D), where that says it all.

        `grades` (K,) are the classes as numbers.
        """
        return None

    @property
    def quantiles(self) -> bool:
        """Whether it rests on quantiles of the confidences."""
        return False

    def fixed(self, view: ScoreView, bins: int) -> Statistic:
        """The same with bins that do not depend on the items at hand, but on a sample of all.

        States of any parts of the items then add up. Rankings take `bins` bins.
        """
        return self


@dataclass(frozen=True)
class Metric:
    """A metric is data: how to gather its statistic, and how to finish it.

    Attributes
    ----------
    name, description
        scikit-learn's name where there is one, and a sentence for people.
    direction
        +1 larger is better, -1 smaller is better, 0 neither.
    bounds
        Smallest and largest value possible; infinity where there is none.
    needs
        What the classifier must provide; where it does not, the metric is not applicable.
    statistic, finish
        `finish(digest)` maps a digest with last axis D to values (D,), NaN where undefined.
    per_item
        For a metric that is a mean over the items: its value (n, K) for each item under each
        class. Such a metric is linear in the label weights.
    every_class
        It rests on the labels of every class, so a class without labels is a reason to doubt it.
    noise_floor
        For a metric that noise inflates (a sum of absolute gaps): `noise_floor(digest)` is its
        value (D,) if the draws' mean were what the classifier says: what noise alone shows.
    in_memory
        A user's own function, called draw by draw on all items.
    """

    name: str
    description: str
    direction: int
    bounds: tuple[float, float]
    needs: Needs
    statistic: Statistic
    finish: Callable[[Floats], Floats]
    per_item: Callable[[ScoreView], Floats] | None = None
    every_class: bool = False
    noise_floor: Callable[[Floats], Floats] | None = None
    in_memory: bool = False

    @property
    def linear(self) -> bool:
        """Whether its expectation over drawn labels is its value at soft labels, exactly."""
        return self.per_item is not None

    @property
    def best(self) -> float:
        """The value of a perfect classifier; of a metric without direction, its lower bound."""
        return self.bounds[1] if self.direction > 0 else self.bounds[0]


def ratio(numerator: Any, denominator: Any) -> Any:
    """Divide with NaN, and no warning, where the denominator is zero."""
    with np.errstate(invalid="ignore", divide="ignore"):
        out: Array = np.where(denominator > 0, numerator / denominator, np.nan)
    return out


# --- a user's own function ------------------------------------------------------------------------


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
        # Copies: a function may change its arguments.
        each = (labels[:, d].astype(np.int64) for d in range(weights.size))
        return np.array([[self._value(labels_, self.probabilities.copy()) for labels_ in each]])

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
