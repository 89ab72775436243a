"""The mixture of SPE, and its scores: normalised, ties spread, sorted by evidence."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import betaln, expit, gammaln

from fewlabels.kernels.arrays import Bools, Floats, UInts
from fewlabels.kernels.blocks import map_blocks, spans
from fewlabels.kernels.simplex import logsumexp, softmax
from fewlabels.methods.per_model import margin
from fewlabels.methods.spe.families import ExponentialFamily, Family, Points, Prior, Truncation

# --- the mixture of two densities -------------------------------------------------------------
#
# Parameters theta (D, q) are unconstrained: those of the positive class, those of the negative
# class, logit of the prevalence. Source: Welinder, Welling, Perona (2013), section 3; the
# likelihood of an item is e_1 pi p_1(s) + e_0 (1 - pi) p_0(s) with evidence e about its label.

BOUND = 25.0
"""Parameters live in [-25, 25]; outside, the posterior density is zero."""

_BLOCK = 2**16


@dataclass(frozen=True, eq=False)
class ScoreData:
    """Scores by what is known of their labels, each with its weight (a power of the likelihood).

    `open_odds` is the evidence about an open item as log-odds: 0 where nothing is known.
    """

    positive: Points
    positive_weight: Floats
    negative: Points
    negative_weight: Floats
    open: Points
    open_weight: Floats
    open_odds: Floats

    @cached_property
    def total(self) -> float:
        """Sum of the weights."""
        parts = (self.positive_weight, self.negative_weight, self.open_weight)
        return float(sum(part.sum() for part in parts))


@dataclass(frozen=True)
class ClassDensity:
    """Density of the scores of one class: `components` members of a family, mixed.

    Parameters (D, size): those of every component, then the logits of the weights of all but the
    last against the last. The weights have a uniform Dirichlet prior.
    """

    family: Family
    components: int = 1
    truncation: Truncation = "left"
    priors: tuple[Prior, ...] | None = None
    """Of a component's parameters; None: the family's own."""

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self.components * (self.family.size + 1) - 1

    def at(self, u: Floats) -> DensityDraws:
        """The density at parameters (D, size)."""
        parts, log_weights = self._split(u)
        masses = [self.family.log_mass(p, self.truncation) for p in parts]
        return DensityDraws(self.family, parts, log_weights, masses)

    def log_density(self, points: Points, u: Floats) -> Floats:
        """Log density, (n, D)."""
        return self.at(u).log_density(points)

    def pull(
        self, u: Floats, points: Points, weights: Floats, known: Points, fixed: Floats
    ) -> Floats:
        """Gradient in u of a weighted sum of log densities, (D, size).

        Scores `points` have weights (n, D), and scores `known` the same weights `fixed` (m,) in
        every draw.
        """
        parts, log_weights = self._split(u)
        if self.components == 1:
            return self._pull_component(parts[0], points, weights, known, fixed)
        shares = []
        for some, weight in ((points, weights), (known, fixed[:, None])):
            shares.append(softmax(self.at(u).components(some), axis=0) * weight)
        total = shares[0].sum(axis=1) + shares[1].sum(axis=1)
        by_weight = (total - np.exp(log_weights).T * total.sum(axis=0)).T[:, :-1]
        gradients = [
            self._pull_component(p, points, shares[0][j], known, shares[1][j])
            for j, p in enumerate(parts)
        ]
        return np.concatenate([*gradients, by_weight], axis=1)

    def log_survival(self, x: Floats, u: Floats) -> Floats:
        """Log P(score > x), (n, D)."""
        parts, log_weights = self._split(u)
        each = [
            self.family.log_survival(x, p, self.truncation) + log_weights[:, j]
            for j, p in enumerate(parts)
        ]
        if self.components == 1:
            return each[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nan_to_num(logsumexp(np.stack(each), axis=0), nan=-np.inf, neginf=-np.inf)

    def log_prior(self, u: Floats) -> tuple[Floats, Floats]:
        """Log prior density, Jacobians included, (D,), and its gradient (D, size)."""
        parts, log_weights = self._split(u)
        priors = [self.family.log_prior(p, self.priors) for p in parts]
        value = sum(part for part, _ in priors) + log_weights.sum(axis=1) + gammaln(self.components)
        by_weight = 1 - self.components * np.exp(log_weights[:, :-1])
        return value, np.concatenate([*(slope for _, slope in priors), by_weight], axis=1)

    def mean(self, u: Floats) -> Floats:
        """Mean of the score, cut to [0, 1], (D,): the integral of the survival function."""
        return _NODE_WEIGHTS @ np.exp(self.log_survival(_NODES, u))

    def from_moments(self, mean: float, sd: float) -> Floats:
        """Parameters (size,) of about this mean and standard deviation."""
        offsets = np.linspace(-1, 1, self.components) if self.components > 1 else np.zeros(1)
        sds = sd * (0.7 if self.components > 1 else 1.0)
        parts = [self.family.from_moments(max(mean + sd * o, 0.3 * mean), sds) for o in offsets]
        return np.concatenate([*parts, np.zeros(self.components - 1)])

    def _split(self, u: Floats) -> tuple[list[Floats], Floats]:
        """Parameters of each component (D, p), and log weights (D, J)."""
        p, count = self.family.size, self.components
        parts = [u[:, j * p : (j + 1) * p] for j in range(count)]
        if count == 1:
            return [u], np.zeros((len(u), 1))
        logits = np.concatenate([u[:, count * p :], np.zeros((len(u), 1))], axis=1)
        return parts, logits - logsumexp(logits)[:, None]

    def _pull_component(
        self, u: Floats, points: Points, weights: Floats, known: Points, fixed: Floats
    ) -> Floats:
        """`pull` of one component; `fixed` is (m,), or (m, D)."""
        total = weights.sum(axis=0) + fixed.sum(axis=0)
        if isinstance(self.family, ExponentialFamily):
            statistics = weights.T @ points.basis + fixed.T @ known.basis
            out = self.family.pull_statistics(statistics, u)
        else:
            out = self.family.pull(points, u, weights)
            if len(known):
                spread = np.broadcast_to(fixed.reshape(len(known), -1), (len(known), len(u)))
                out += self.family.pull(known, u, spread)
        out -= total[:, None] * self.family.log_mass_gradient(u, self.truncation)
        return out


@dataclass(frozen=True, eq=False)
class DensityDraws:
    """Densities of one class at D draws of the parameters, with what is the same for all scores.

    For every component: parameters (D, p), log weights (D, J), log of the mass that truncation
    keeps (D,).
    """

    family: Family
    parts: list[Floats]
    log_weights: Floats
    masses: list[Floats]

    @cached_property
    def linear(self) -> Floats | None:
        """Coefficients (D, 5) of the log density in `Points.basis`, where it is linear."""
        if len(self.parts) > 1 or not isinstance(self.family, ExponentialFamily):
            return None
        out = self.family.coefficients(self.parts[0])
        out[:, 0] -= self.masses[0]
        return out

    def log_density(self, points: Points) -> Floats:
        """Log density, (n, D)."""
        if len(self.parts) > 1:
            return logsumexp(self.components(points), axis=0)
        out = self.family.log_density(points, self.parts[0])
        out -= self.masses[0]
        return out

    def components(self, points: Points) -> Floats:
        """Log of weight times density of every component, (J, n, D)."""
        out = np.stack([self.family.log_density(points, p) for p in self.parts])
        for j, mass in enumerate(self.masses):
            out[j] += self.log_weights[:, j] - mass
        return out

    def sum(self, points: Points, weight: Floats) -> Floats:
        """Sum over scores of weight (n,) times log density, (D,)."""
        if self.linear is not None:
            return self.linear @ (weight @ points.basis)
        return weight @ self.log_density(points)


@dataclass(frozen=True, eq=False)
class MixtureDraws:
    """A mixture at D draws of the parameters."""

    one: DensityDraws
    zero: DensityDraws
    logit: Floats

    @property
    def linear(self) -> bool:
        """Whether the log-odds are linear in `Points.basis`."""
        return self._slopes is not None

    @cached_property
    def _slopes(self) -> Floats | None:
        """Coefficients (D, 5) of the log-odds in `Points.basis`, where they are linear."""
        if self.one.linear is None or self.zero.linear is None:
            return None
        out = self.one.linear - self.zero.linear
        out[:, 0] += self.logit
        return out

    def open(self, points: Points, weight: Floats) -> tuple[Floats, Floats]:
        """Log-odds given the scores, (n, D), and the sum of the negative log densities, (D,)."""
        if self._slopes is not None:
            # One matrix product for both densities and the prevalence.
            return points.basis @ self._slopes.T, self.zero.sum(points, weight)
        base = self.zero.log_density(points)
        z = self.one.log_density(points)
        z -= base
        z += self.logit
        return z, weight @ base

    def closed(self, data: ScoreData) -> Floats:
        """Log-likelihood of known labels and their scores, and log(1 - pi) of every open item."""
        n_positive = data.positive_weight.sum()
        out = -n_positive * np.logaddexp(0, -self.logit)
        out -= (data.total - n_positive) * np.logaddexp(0, self.logit)
        if len(data.positive):
            out += self.one.sum(data.positive, data.positive_weight)
        if len(data.negative):
            out += self.zero.sum(data.negative, data.negative_weight)
        return out


_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(48)
_NODES, _NODE_WEIGHTS = (_NODES + 1) / 2, _NODE_WEIGHTS / 2


@dataclass(frozen=True)
class ScoreMixture:
    """Densities of the positive and of the negative class; a prevalence with a Beta prior."""

    positive: ClassDensity
    negative: ClassDensity
    prevalence: tuple[float, float] = (1.0, 1.0)

    @property
    def size(self) -> int:
        """Number of parameters, q."""
        return self.positive.size + self.negative.size + 1

    def split(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """Parameters of the positive and the negative class, and logit of the prevalence (D,)."""
        cut = self.positive.size
        return theta[:, :cut], theta[:, cut:-1], theta[:, -1]

    def at(self, theta: Floats) -> MixtureDraws:
        """The mixture at parameters (D, q)."""
        one, zero, logit = self.split(theta)
        return MixtureDraws(self.positive.at(one), self.negative.at(zero), logit)

    def log_odds(self, points: Points, theta: Floats) -> Floats:
        """Log-odds of the positive class given the score, (n, D)."""
        return self.at(theta).open(points, np.zeros(len(points)))[0]

    def item_log_likelihood(self, points: Points, theta: Floats, odds: Floats) -> Floats:
        """Log-likelihood of each score and the evidence (log-odds, (n,)) about its label, (n, D).

        The evidence for the likelier class counts as 0.
        """
        one, zero, logit = self.split(theta)
        first = self.positive.log_density(points, one) - np.logaddexp(0, -logit)
        second = self.negative.log_density(points, zero) - np.logaddexp(0, logit)
        first += np.minimum(odds, 0)[:, None]
        second += np.minimum(-odds, 0)[:, None]
        return np.logaddexp(first, second)

    def survival(self, x: Floats, theta: Floats) -> tuple[Floats, Floats]:
        """P(score > x) in the positive and in the negative class, both (n, D)."""
        one, zero, _ = self.split(theta)
        return (
            np.exp(self.positive.log_survival(x, one)),
            np.exp(self.negative.log_survival(x, zero)),
        )

    def in_order(self, theta: Floats) -> Bools:
        """Whether positive items have the higher mean score, (D,)."""
        one, zero, _ = self.split(np.clip(theta, -BOUND, BOUND))
        return self.positive.mean(one) > self.negative.mean(zero)

    def log_prior(self, theta: Floats) -> tuple[Floats, Floats]:
        """Log prior density, Jacobians included, (D,), and its gradient (D, q)."""
        one, zero, logit = self.split(theta)
        (a, slope_a), (b, slope_b) = self.positive.log_prior(one), self.negative.log_prior(zero)
        ones, zeros = self.prevalence
        value = a + b - zeros * np.logaddexp(0, logit) - ones * np.logaddexp(0, -logit)
        value = value - betaln(ones, zeros)
        return value, np.column_stack([slope_a, slope_b, ones - (ones + zeros) * expit(logit)])

    def log_likelihood(self, theta: Floats, data: ScoreData) -> Floats:
        """Log-likelihood of all scores and evidence, (D,)."""
        draws = self.at(theta)
        out = draws.closed(data)
        # What a block of curved densities computes on the way is to stay in the cache.
        block_size = _BLOCK if draws.linear else _BLOCK // 4
        blocks = spans(len(data.open), max(block_size // len(theta), 8))

        def run(block: slice) -> Floats:
            weight = data.open_weight[block]
            z, base = draws.open(data.open.rows(block), weight)
            z += data.open_odds[block, None]
            total: Floats = base + weight @ _softplus(z)
            return total

        # Few blocks are not worth the threads.
        for part in map(run, blocks) if len(blocks) < 512 else map_blocks(run, blocks):
            out += part
        return out

    def log_posterior(self, theta: Floats, data: ScoreData) -> Floats:
        """Unnormalised log posterior density of theta, (D,); -inf beyond the bounds."""
        inside = np.clip(theta, -BOUND, BOUND)
        out = self.log_prior(inside)[0] + self.log_likelihood(inside, data)
        return np.where((inside == theta).all(axis=1) & np.isfinite(out), out, -np.inf)

    def value_and_gradient(self, theta: Floats, data: ScoreData) -> tuple[Floats, Floats]:
        """Log posterior density (D,) and its gradient (D, q)."""
        theta = np.clip(theta, -BOUND, BOUND)
        one, zero, logit = self.split(theta)
        value, gradient = self.log_prior(theta)
        draws = self.at(theta)
        value += draws.closed(data)
        z, base = draws.open(data.open, data.open_weight)
        z += data.open_odds[:, None]
        share = np.maximum(z, -700.0)
        value += base + data.open_weight @ _softplus(z)
        np.negative(share, out=share)
        np.exp(share, out=share)
        share += 1
        np.divide(data.open_weight[:, None], share, out=share)
        gradient[:, -1] += share.sum(axis=0) + data.positive_weight.sum()
        gradient[:, -1] -= data.total * expit(logit)
        cut = self.positive.size
        gradient[:, :cut] += self.positive.pull(
            one, data.open, share, data.positive, data.positive_weight
        )
        np.subtract(data.open_weight[:, None], share, out=share)
        gradient[:, cut:-1] += self.negative.pull(
            zero, data.open, share, data.negative, data.negative_weight
        )
        return value, gradient


def _softplus(z: Floats) -> Floats:
    """Log(1 + e^z) in place; the absolute error is one rounding of 1."""
    rest = np.abs(z)
    np.negative(rest, out=rest)
    np.exp(rest, out=rest)
    rest += 1
    np.log(rest, out=rest)
    np.maximum(z, 0, out=z)
    z += rest
    return z


# --- the scores of one classifier -------------------------------------------------------------

EXACT_ITEMS = 5_000
"""Up to so many unlabeled items each one is in the likelihood; beyond, they are grouped."""

_GROUPS = 2048
_SPLITS = (0.5, 0.8, 0.9, 0.95, 0.7)
_LEAST_SD = 0.01


@dataclass(frozen=True)
class ScoreScale:
    """The affine map of margins onto [floor, 1].

    Source: Welinder, Welling, Perona (2013), section 4; the floor keeps log x finite.
    """

    logit: bool
    low: float
    high: float
    floor: float

    @classmethod
    def of(cls, scores: Floats, *, logit: bool) -> ScoreScale:
        """The map by the smallest and the largest of these scores (n,), in file units."""
        m = margin(scores, probability=logit)
        return cls(logit, float(m.min()), float(m.max()), 1 / (2 * len(m)))

    def unit(self, scores: Floats) -> Floats:
        """Scores in file units to x > 0; NaN stays NaN, and what lies below the floor comes up."""
        return self.unit_of_margins(margin(scores, probability=self.logit))

    def unit_of_margins(self, margins: Floats) -> Floats:
        """The same of scores as margins, which for probabilities are their logits."""
        out: Floats = np.maximum(self._affine(margins), self.floor)
        return out

    def cut(self, thresholds: Floats) -> Floats:
        """Thresholds in file units to x; infinite where all or no score is at least as large."""
        x = self._affine(margin(thresholds, probability=self.logit))
        x = np.where(x <= self.floor, -np.inf, x)
        if self.logit:
            x = np.where(thresholds <= 0, -np.inf, np.where(thresholds > 1, np.inf, x))
        return x

    def score(self, x: float) -> float:
        """A score on the unit interval in file units."""
        m = self.low + (x - self.floor) / (1 - self.floor) * (self.high - self.low)
        return float(expit(m)) if self.logit else m

    def _affine(self, margins: Floats) -> Floats:
        share = (margins - self.low) / (self.high - self.low)
        return self.floor + (1 - self.floor) * share


def spread_ties(x: Floats, keys: UInts) -> Floats:
    """Equal scores spread evenly over the interval that is nearer to them than to any other.

    A density sees an atom as infinitely likely; a rounded or saturated score says no more than
    that it lies somewhere there. The smallest and the largest value keep to the inside.
    """
    order = np.lexsort((keys, x))
    values, first, count = np.unique(x[order], return_index=True, return_counts=True)
    if len(values) in (1, len(x)):
        return x
    edges = np.concatenate([values[:1], (values[1:] + values[:-1]) / 2, values[-1:]])
    group = np.repeat(np.arange(len(values)), count)
    share = (np.arange(len(x)) - first[group] + 0.5) / count[group]
    placed = edges[group] + (edges[group + 1] - edges[group]) * share
    out = x.copy()
    many = count[group] > 1
    out[order[many]] = placed[many]
    return out


def score_data(x: Floats, evidence: Floats, weight: Floats, keys: UInts) -> ScoreData:
    """Sort items by what is known of them: x (n,) > 0, evidence (n, 2), weight (n,).

    Items are put in an order of their own, so that the order of the file does not show. Beyond
    `EXACT_ITEMS`, items without evidence are grouped; see `grouped`.
    """
    order = np.lexsort((keys, x))
    x, weight = spread_ties(x, keys)[order], weight[order]
    with np.errstate(invalid="ignore"):
        odds = (evidence[:, 1] - evidence[:, 0])[order]
    open_ = np.isfinite(odds)
    silent = open_ & (odds == 0)
    if silent.sum() > EXACT_ITEMS:
        plain, mass = grouped(x[silent], weight[silent])
        soft = open_ & ~silent
        open_x = np.concatenate([plain, x[soft]])
        open_weight = np.concatenate([mass, weight[soft]])
        open_odds = np.concatenate([np.zeros(len(plain)), odds[soft]])
    else:
        open_x, open_weight, open_odds = x[open_], weight[open_], odds[open_]
    one, zero = odds == np.inf, odds == -np.inf
    return ScoreData(
        Points(x[one]), weight[one],
        Points(x[zero]), weight[zero],
        Points(open_x), open_weight, open_odds,
    )  # fmt: skip


def grouped(x: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Means and total weights of groups of neighbouring scores, for ascending x (n,).

    No group is wider than 1/2048 of the range or holds more than 1/2048 of the items. The
    log-likelihood is then off by half the variance within groups times the curvature of the log
    density, about n / (24 * 2048^2 sd^2) in all, nearly the same for all parameters in question.
    """
    n = len(x)
    by_width = np.floor((x - x[0]) / (x[-1] - x[0]) * _GROUPS)
    by_count = np.arange(n) * _GROUPS // n
    starts = np.flatnonzero(
        np.r_[True, (by_width[1:] != by_width[:-1]) | (by_count[1:] != by_count[:-1])]
    )
    mass = np.add.reduceat(weight, starts)
    total = np.add.reduceat(weight * x, starts)
    some = mass > 0
    return total[some] / mass[some], mass[some]


def starting_points(mixture: ScoreMixture, data: ScoreData) -> Floats:
    """Starts of the search for the mode, (6, q): five splits of the scores, and the labels'.

    The last one is missing where a class has fewer than two labels.
    """
    parts = (data.negative, data.positive, data.open)
    x = np.concatenate([p.x for p in parts])
    weight = np.concatenate([data.negative_weight, data.positive_weight, data.open_weight])
    order = np.argsort(x, kind="stable")
    x, weight = x[order], weight[order]
    rank = np.cumsum(weight) / weight.sum()
    starts = []
    for split in _SPLITS:
        low = rank <= split
        if 1 < low.sum() < len(x) - 1:
            starts.append(_start(mixture, x, weight * ~low, weight * low))
    if min(len(data.positive), len(data.negative)) > 1:
        labeled = np.concatenate([data.positive.x, data.negative.x])
        none = np.zeros(len(data.negative)), np.zeros(len(data.positive))
        one = np.concatenate([data.positive_weight, none[0]])
        zero = np.concatenate([none[1], data.negative_weight])
        if one.sum() > 0 and zero.sum() > 0:
            starts.append(_start(mixture, labeled, one, zero))
    if not starts:
        starts.append(_start(mixture, x, weight * x, weight * (1 - np.minimum(x, 1))))
    return np.array(starts)


def _start(mixture: ScoreMixture, x: Floats, one: Floats, zero: Floats) -> Floats:
    """Parameters by the moments of the classes, whose weights are given."""

    def moments(density: ClassDensity, weight: Floats) -> Floats:
        mean = float(weight @ x / weight.sum())
        sd = float(np.sqrt(weight @ (x - mean) ** 2 / weight.sum()))
        return density.from_moments(max(mean, _LEAST_SD), max(sd, _LEAST_SD))

    logit = np.log((one.sum() + 1) / (zero.sum() + 1))
    return np.concatenate(
        [moments(mixture.positive, one), moments(mixture.negative, zero), [logit]]
    )


def lacks_a_class(evidence: Floats) -> Bools:
    """Which of the two classes no item's evidence speaks for, (2,)."""
    odds = evidence[:, 1] - evidence[:, 0]
    return np.array([not (odds < 0).any(), not (odds > 0).any()])
