"""Monotone curves from a score to P(y=1 | score): a logistic step with a kink and two lapses.

A score enters twice: as it is, standardised (x), and as the normal quantile of its rank (z). The
priors are of what curves the classifiers of many data sets turned out to have.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import expit, ndtr, ndtri

from fewlabels.kernels.arrays import Bools, Floats, Ints
from fewlabels.kernels.simplex import softmax

PARAMETERS = ("offset", "log slope", "mix", "asymmetry", "lapse at the bottom", "lapse at the top")
"""The parameters of a curve, each of order one; see `Step`."""

X_LIMIT = 4.0
_ZERO_LIMIT = 3.0
_KNOTS = 4096
_TAIL_KNOTS = 1024
LABEL_BINS = 200
"""Labels that count one by one; more are pooled with their neighbours."""


class ScoreCoordinates(NamedTuple):
    """Where scores lie: standardised x and normal quantile of the rank z, each (n,)."""

    x: Floats
    z: Floats


@dataclass(frozen=True, eq=False)
class ScoreScale:
    """What the scores that were fitted to say of any score: its place, and that of zero.

    Mean and sd are in units of the largest score; `knots` are scores and `ranks` their midranks,
    as shares. `zero` is the place of the score's natural zero (margin 0, probability 1/2).
    """

    unit: float
    mean: float
    sd: float
    knots: Floats
    ranks: Floats
    zero: ScoreCoordinates
    share_above: float

    @staticmethod
    def of(margins: Floats) -> ScoreScale:
        """The scale of these margins, which are finite, (n,)."""
        # In order, so that the order of the items does not show in the last digits.
        margins = np.sort(margins)
        n = len(margins)
        # Squares of scores near the largest number there is would overflow.
        unit = float(np.abs(margins).max()) or 1.0
        mean, sd = float((margins / unit).mean()), float((margins / unit).std())
        values, count = np.unique(margins, return_counts=True)
        middle = (np.cumsum(count) - 0.5 * count) / n
        # A midrank r of n stands at (r - 1/2) / n, which the middle of its ties is already.
        if len(values) > _KNOTS + _TAIL_KNOTS:
            keep = _thin(middle)
            values, middle = values[keep], middle[keep]
        below = float((margins < 0).sum())
        zero = ScoreCoordinates(
            np.array([np.clip(-mean / sd, -_ZERO_LIMIT, _ZERO_LIMIT) if sd > 0 else 0.0]),
            np.array([ndtri((below + 0.5) / (n + 1))]),
        )
        share = float(((margins > 0).sum() + 0.5) / (n + 1))
        return ScoreScale(unit, mean, sd, values, middle, zero, share)

    def places(self, margins: Floats) -> ScoreCoordinates:
        """Places of any margins; beyond the known ranks the end's place."""
        scale = self.sd if self.sd > 0 else 1.0
        x = np.clip((margins / self.unit - self.mean) / scale, -X_LIMIT, X_LIMIT)
        return ScoreCoordinates(x, ndtri(np.interp(margins, self.knots, self.ranks)))


def _thin(ranks: Floats) -> Ints:
    """Some of the ascending ranks: evenly spread, and evenly in normal quantiles for the tails."""
    low, high = ndtri(ranks[[0, -1]]).tolist()
    tails = np.searchsorted(ranks, ndtr(np.linspace(low, high, _TAIL_KNOTS)))
    even = np.linspace(0, len(ranks) - 1, _KNOTS).astype(np.int64)
    return np.unique(np.concatenate([even, np.minimum(tails, len(ranks) - 1)]))


@dataclass(frozen=True, eq=False)
class Step:
    """P(y=1 | place) = l0 + (1 - l0 - l1) sigmoid(b e^(+-a) (w x + (1 - w) z - c)), one per draw.

    From parameters u (D, 6): c = w zero_x + (1 - w) zero_z + .25 sinh(1.2 u0), or .8 + u0 where
    zero is not known; b = e^(1.5 + 1.1 u1), w = Phi(.7 + u2), a = .7 u3 (+ above c, - below),
    and lapses l0, l1 proportional to e^(-6 + 1.5 u4), e^(-3.7 + 1.5 u5) beside 1.
    """

    slope_above: Floats
    slope_below: Floats
    mix: Floats
    centre: Floats
    bottom: Floats
    top: Floats

    @staticmethod
    def of(u: Floats, zero: ScoreCoordinates | None) -> Step:
        """Curves of parameters (D, 6), with the place of the score's zero where it is known."""
        u = np.clip(u, -8.0, 8.0)
        mix = ndtr(0.7 + u[:, 2])
        slope = np.exp(1.5 + 1.1 * u[:, 1])
        bend = np.exp(0.7 * u[:, 3])
        low, high = np.exp(-6 + 1.5 * u[:, 4]), np.exp(-3.7 + 1.5 * u[:, 5])
        total = 1 + low + high
        if zero is None:
            centre = 0.8 + u[:, 0]
        else:
            centre = mix * zero.x + (1 - mix) * zero.z + 0.25 * np.sinh(1.2 * u[:, 0])
        return Step(slope * bend, slope / bend, mix, centre, low / total, high / total)

    def probabilities(self, places: ScoreCoordinates) -> tuple[Floats, Floats]:
        """P(y=1) and P(y=0), which keep their precision near 0, each (n, D)."""
        t = places.x[:, None] * self.mix
        t += places.z[:, None] * (1 - self.mix)
        t -= self.centre
        t *= np.where(t > 0, self.slope_above, self.slope_below)
        middle = 1 - self.bottom - self.top
        rise = expit(t)
        rise *= middle
        one = rise + self.bottom
        np.negative(t, out=t)
        fall = expit(t, out=t)
        fall *= middle
        fall += self.top
        return one, fall


@dataclass(frozen=True, eq=False)
class Flat:
    """P(y=1) is the same whatever the score: logit = -1 + 1.5 u0, one per draw."""

    logit: Floats

    @staticmethod
    def of(u: Floats) -> Flat:
        """Curves of parameters (D, 1)."""
        return Flat(-1 + 1.5 * u[:, 0])

    def probabilities(self, places: ScoreCoordinates) -> tuple[Floats, Floats]:
        """P(y=1) and P(y=0), each (n, D)."""
        shape = (len(places.x), len(self.logit))
        one, zero = expit(self.logit), expit(-self.logit)
        return np.broadcast_to(one, shape), np.broadcast_to(zero, shape)


class Curve(Protocol):
    """P(y=1 | place), of D draws."""

    def probabilities(self, places: ScoreCoordinates) -> tuple[Floats, Floats]:
        """P(y=1) and P(y=0) at n places, which keep their precision near 0, each (n, D)."""


class PooledLabels(NamedTuple):
    """What is known of labels, by place: counts of hard labels, and likelihoods of soft ones.

    `ones`, `zeros` (b,) count labels pooled at `hard`; `likelihood` (m, 2) is that of each class
    for the items at `soft`, up to a constant per item, which counts to a `power` (m,).
    """

    hard: ScoreCoordinates
    zeros: Floats
    ones: Floats
    soft: ScoreCoordinates
    likelihood: Floats
    power: Floats

    def log_likelihood(self, curve: Curve) -> Floats:
        """Log-likelihood of each of the curves, (D,)."""
        one, zero = curve.probabilities(self.hard)
        total: Floats = self.ones @ np.log(one) + self.zeros @ np.log(zero)
        if len(self.likelihood):
            one, zero = curve.probabilities(self.soft)
            mixed = self.likelihood[:, :1] * zero + self.likelihood[:, 1:] * one
            total = total + (self.power[:, None] * np.log(mixed)).sum(axis=0)
        return total


def pool(
    places: ScoreCoordinates, evidence: Floats, power: Floats, bins: int = LABEL_BINS
) -> PooledLabels:
    """Pool the evidence (n, 2), log-likelihoods that count to a power (n,), at `places`.

    If there are more than `bins` known labels, neighbours in score are pooled at their mean place,
    so that the cost of a fit does not grow with their number.
    """
    hard: Bools = np.isneginf(evidence[:, 0]) | np.isneginf(evidence[:, 1])
    label = (evidence[hard, 1] > evidence[hard, 0]).astype(np.float64)
    counts = power[hard]
    x, z = places.x[hard], places.z[hard]
    order = np.lexsort((label, z, x))
    x, z, label, counts = x[order], z[order], label[order], counts[order]
    size = min(len(label), bins)
    starts = (np.arange(size) * len(label)) // max(size, 1)
    if size:
        count, ones, x, z = (
            np.add.reduceat(counts * part, starts) for part in (np.ones(len(x)), label, x, z)
        )
        at = ScoreCoordinates(x / count, z / count)
    else:
        ones, count, at = np.empty(0), np.empty(0), ScoreCoordinates(np.empty(0), np.empty(0))
    is_soft = ~hard & (evidence[:, 0] != evidence[:, 1])
    likelihood = np.exp(evidence[is_soft] - evidence[is_soft].max(axis=1, keepdims=True))
    return PooledLabels(
        at, count - ones, ones, ScoreCoordinates(places.x[is_soft], places.z[is_soft]), likelihood,
        power[is_soft],
    )  # fmt: skip


SHAPE = (
    "one",
    "share above zero",
    "zero",
    "skewness",
    "kurtosis",
    "variance between the sides of zero",
    "density at zero",
    "variance between the sides of the best cut",
    "best cut",
    "share above the best cut",
    "share on the smaller side of zero",
    "log spread",
)
"""Statistics of the scores' distribution that the prior uses; see `shape_statistics`."""

NEEDS_ZERO = frozenset({1, 2, 5, 6, 10})
"""Those of `SHAPE` that depend on the score's natural zero."""


def shape_statistics(margins: Floats, scale: ScoreScale) -> Floats:
    """The numbers `SHAPE` of margins (n,): how separate two modes are, and where they lie.

    All but the last do not depend on the unit of the score.
    """
    x = np.sort(scale.places(margins).x)
    n, zero = len(x), float(scale.zero.x[0])
    above = x > zero
    cut, between_cut = _best_cut(x)
    share = (above.sum() + 1) / (n + 2)
    near = ((np.abs(x - zero) < 0.25).sum() + 1) / (n + 2) / 0.5
    return np.array(
        [
            1.0,
            np.clip(_log_odds(scale.share_above), -4, 4),
            zero,
            np.clip((x**3).mean(), -4, 4),
            np.log(np.clip((x**4).mean(), 1, 30)),
            _log_odds(_between(x, above)),
            np.log(near),
            _log_odds(between_cut),
            cut,
            _log_odds(((x > cut).sum() + 0.5) / (n + 1)),
            min(share, 1 - share),
            np.clip(np.log(scale.sd * scale.unit) if scale.sd > 0 else -2.0, -2, 2),
        ]
    )


def _between(x: Floats, above: Bools) -> float:
    """Share of the variance between the two sides."""
    variance = x.var()
    if above.all() or not above.any() or variance == 0:
        return 0.01
    share = above.mean()
    gap = x[above].mean() - x[~above].mean()
    return float(np.clip(share * (1 - share) * gap**2 / variance, 0.01, 0.99))


def _best_cut(x: Floats) -> tuple[float, float]:
    """The cut of sorted x with most of the variance between its sides, and that share (Otsu)."""
    n = len(x)
    variance = x.var()
    if n < 2 or variance == 0:
        return 0.0, 0.01
    k = np.arange(1, n)
    left = np.cumsum(x)[:-1]
    between = k / n * (1 - k / n) * (left / k - (x.sum() - left) / (n - k)) ** 2
    best = int(between.argmax())
    share = float(np.clip(between[best] / variance, 0.01, 0.99))
    return float(x[best] + x[best + 1]) / 2, share


def _log_odds(share: float) -> float:
    return float(np.log(share) - np.log1p(-share))


# --- priors -----------------------------------------------------------------------------------


FLAT_WEIGHT = 0.03
"""Prior weight of scores that say nothing of the label."""

WEAK_WEIGHT = 0.05
"""Prior weight of scores that say little of it."""

FREE_WEIGHT = 0.10
"""Prior weight of a natural zero that says nothing of where the step is."""

PLAIN_WEIGHT = 0.5
"""Weight of the plain kinds among those that use the zero: the learning data may be unlike others.
"""


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
"""The same beside learned kinds: most real classifiers have lapses, if few."""


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
    are apart is a mixture of normals; given the latter it is a mixture again. `probability`: the
    scores are logits of probabilities, which have a unit; `zero`: their natural zero is believed.
    """
    table = _tables()["probability" if probability else "score"]["zero" if zero else "free"]
    return table.given(statistics, weight)


class _Table(NamedTuple):
    """A mixture of normals over the parameters (6) and the separation (1)."""

    coefficients: Floats
    low: Floats
    high: Floats
    weights: Floats
    means: Floats
    covariances: Floats
    zero: bool

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
            name = f"{'natural' if self.zero else 'free'} zero {number + 1}"
            out.append(Component(name, weight, mean, np.linalg.cholesky(rest)))
        return out


@cache
def _tables() -> dict[str, dict[str, _Table]]:
    file = files("fewlabels.methods.curves").joinpath("monotone_prior.json")
    tables = json.loads(file.read_text(encoding="utf-8"))["tables"]
    names = _Table._fields[:-1]
    return {
        unit: {
            kind: _Table(**{n: np.array(e[n], dtype=float) for n in names}, zero=kind == "zero")
            for kind, e in kinds.items()
        }
        for unit, kinds in tables.items()
    }
