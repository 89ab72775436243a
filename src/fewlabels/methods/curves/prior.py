"""Priors of monotone curves: what curves the classifiers of many data sets turned out to have."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Floats
from fewlabels.kernels.simplex import softmax
from fewlabels.methods.curves.ordered_rates import PARAMETERS

_FILE = "monotone_prior.json"

FLAT_WEIGHT = 0.03
"""Prior weight of scores that say nothing of the label."""

WEAK_WEIGHT = 0.05
"""Prior weight of scores that say little of it."""

FREE_WEIGHT = 0.10
"""Prior weight of a natural zero that says nothing of where the step is."""

PLAIN_WEIGHT = 0.5
"""Weight of the plain kinds among those that believe in zero: other data are not everything."""


class Component(NamedTuple):
    """A kind of curve: prior weight, and parameters u = mean + root e with e ~ N(0, I)."""

    name: str
    weight: float
    mean: Floats
    root: Floats


def weak(weight: float) -> Component:
    """A line with little slope: AUC from .55 to .8 on scores that are spread like a normal."""
    mean = np.array([0.0, -1.6, 8.0, 0.0, -8.0, -8.0])
    root = np.zeros((len(PARAMETERS), 2))
    root[0, 0], root[1, 1] = 1.0, 0.7
    return Component("weak line", weight, mean, root)


PLAIN = (0.40, 0.30, 0.30)
"""Shares of line, kink and lapse where nothing was learned."""

DOUBTED = (0.30, 0.30, 0.40)
"""The same beside learned kinds: most real classifiers have lapses, however few."""


def plain(weight: float, shares: tuple[float, float, float] = PLAIN) -> list[Component]:
    """Line, kink and lapse under unit normal priors that were set by hand; they share `weight`.

    A line has no kink and no lapses and looks at the score alone; a kink has no lapses.
    """
    none = np.array([0.0, 0.0, 8.0, 0.0, -8.0, -8.0])
    everything = np.eye(len(PARAMETERS))
    no_lapses = np.array([0.0, 0.0, 0.0, 0.0, -8.0, -8.0])
    return [
        Component("line", shares[0] * weight, none, everything[:, :2]),
        Component("kink", shares[1] * weight, no_lapses, everything[:, :4]),
        Component("lapse", shares[2] * weight, np.zeros(len(PARAMETERS)), everything),
    ]


def learned(statistics: Floats, weight: float, *, probability: bool, zero: bool) -> list[Component]:
    """Kinds for scores whose distribution has these statistics (`SHAPE`); they share `weight`.

    The joint density of a curve's parameters and of how well the statistics say that the classes
    are apart is a mixture of normals; given the latter it is a mixture again.

    Parameters
    ----------
    probability
        Whether the scores are logits of probabilities, which have a unit.
    zero
        Whether the score's natural zero is believed.
    """
    table = _tables()["probability" if probability else "score"]["zero" if zero else "free"]
    return table.given(statistics, weight)


@dataclass(frozen=True, eq=False)
class _Table:
    """A mixture of normals over the parameters (6) and the separation (1)."""

    coefficients: Floats
    low: Floats
    high: Floats
    weights: Floats
    means: Floats
    covariances: Floats
    zero: bool

    @staticmethod
    def of(entry: dict[str, Any], *, zero: bool) -> _Table:
        fields = ("coefficients", "low", "high", "weights", "means", "covariances")
        arrays: dict[str, Floats] = {name: np.array(entry[name], dtype=float) for name in fields}
        return _Table(**arrays, zero=zero)

    def given(self, statistics: Floats, total: float) -> list[Component]:
        # Beyond what was seen while learning, the nearest that was.
        separation = float(self.coefficients @ np.clip(statistics, self.low, self.high))
        gap = separation - self.means[:, -1]
        spread = self.covariances[:, -1, -1]
        log_weight = np.log(self.weights) - 0.5 * (gap**2 / spread + np.log(spread))
        weights = total * softmax(log_weight, axis=0)
        out = []
        for number, weight in enumerate(weights.tolist()):
            cross = self.covariances[number, :-1, -1]
            mean = self.means[number, :-1] + cross * (gap[number] / spread[number])
            rest = self.covariances[number, :-1, :-1] - np.outer(cross, cross) / spread[number]
            root = np.linalg.cholesky(rest)
            name = f"{'natural' if self.zero else 'free'} zero {number + 1}"
            out.append(Component(name, weight, mean, root))
        return out


@cache
def _tables() -> dict[str, dict[str, _Table]]:
    text = files("fewlabels.methods.curves").joinpath(_FILE).read_text(encoding="utf-8")
    return {
        unit: {name: _Table.of(entry, zero=name == "zero") for name, entry in tables.items()}
        for unit, tables in json.loads(text)["tables"].items()
    }
