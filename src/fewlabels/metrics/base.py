"""Metric: a function of scores and label weights, as data that every engine can use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np

from fewlabels.kernels.arrays import Array, Floats, Ints

Needs = Literal["hard", "probabilities", "ranking"]


@dataclass(frozen=True, eq=False)
class ScoreView:
    """What a metric sees of one classifier: n items, all with a prediction.

    probabilities (n, K), hard (n,) class indices, scores (n,) of the positive class; None where
    the classifier does not provide it. `exact` asks for a code per distinct score, however many;
    `times` (n,) says how many items each row stands for, where it is not one.
    """

    n_classes: int
    probabilities: Floats | None = None
    hard: Ints | None = None
    scores: Floats | None = None
    exact: bool = True
    times: Floats | None = None

    def provides(self, needs: Needs) -> bool:
        """Whether a metric with these needs applies."""
        if needs == "ranking":
            return self.probabilities is not None or self.scores is not None
        return (self.hard if needs == "hard" else self.probabilities) is not None


class HardLabels:
    """Hard labels (n, D), with what several classifiers and metrics ask of them kept."""

    def __init__(self, labels: Ints) -> None:
        self.labels = labels
        self._one_hot: dict[int, Floats] = {}
        self._positives: dict[int, tuple[Ints, Ints]] = {}

    @property
    def size(self) -> int:
        """Number of draws, D."""
        return self.labels.shape[1]

    def one_hot(self, k: int) -> Floats:
        """1 where the label is k, shape (n, D)."""
        if k not in self._one_hot:
            self._one_hot[k] = (self.labels == k).astype(float)
        return self._one_hot[k]

    def positives(self, k: int) -> tuple[Ints, Ints]:
        """Draw and item of every label k, by draw."""
        if k not in self._positives:
            n = len(self.labels)
            flat = np.flatnonzero(np.ascontiguousarray((self.labels == k).T))
            draw = flat // n
            self._positives[k] = (draw, flat - draw * n)
        return self._positives[k]


class Plan(ABC):
    """A statistic prepared for the scores of one classifier.

    Label weights W have shape (n, K, D): D weightings of n items over K classes. One-hot weights
    are drawn labels, soft ones an expectation, and either may be multiplied by row weights.
    States of parts of the items add up to the state of all of them.
    """

    @abstractmethod
    def state(self, weights: Floats, rows: slice | None = None) -> Floats:
        """Sufficient statistic of the W of some rows (None: all), last axis D.

        States of disjoint items add.
        """

    def soft_state(self, weights: Floats, mass: Floats) -> Floats:
        """`state` of W whose sum over the classes is `mass` (n,) in every draw.

        What does not depend on the classes is then summed once for all draws.
        """
        return self.state(weights)

    @abstractmethod
    def place_pseudo_observation(
        self, state: Floats, item: Ints, predicted: Ints, mass: Floats
    ) -> None:
        """Change, in place, what the pseudo-observation of each draw is taken to be.

        W holds it with the scores of some item (D,), weights `mass` (D, K). A statistic of hard
        predictions moves it to the class `predicted` (D,), which need not occur among the items.
        """

    @abstractmethod
    def digest(self, state: Floats) -> Floats:
        """What metrics finish from, last axis D, of a complete state; often the state itself."""

    @abstractmethod
    def of_labels(self, labels: HardLabels) -> Floats:
        """Digest of unweighted hard labels, by the quickest road."""


class ScorePlan(Plan):
    """A plan that goes by scores: those of some item serve the pseudo-observation."""

    @final
    def place_pseudo_observation(
        self, state: Floats, item: Ints, predicted: Ints, mass: Floats
    ) -> None:
        """Nothing to change."""


class Statistic(ABC):
    """A kind of sufficient statistic; equal statistics are computed once for all their metrics."""

    @abstractmethod
    def prepare(self, view: ScoreView) -> Plan:
        """Sort, bin and look up everything that does not depend on the labels."""

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
        For a metric that noise inflates (a sum of absolute gaps): `spread(digest)` is its value
        (D,) if the draws' mean were what the classifier says, that is, what noise alone shows.
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

    @property
    def noise_biased(self) -> bool:
        """Whether noise inflates it, so that draws need recentring."""
        return self.noise_floor is not None


def ratio(numerator: Any, denominator: Any) -> Any:
    """Divide with NaN, and no warning, where the denominator is zero."""
    with np.errstate(invalid="ignore", divide="ignore"):
        out: Array = np.where(denominator > 0, numerator / denominator, np.nan)
    return out
