"""SPE for more than two classes: normal mixtures of each class's log-ratio scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from fewlabels.kernels.arrays import Floats, Ints, UInts
from fewlabels.kernels.counter_based import uniforms
from fewlabels.kernels.hmc import split_r_hat
from fewlabels.kernels.simplex import centred_log, clip, logsumexp, softmax
from fewlabels.kernels.votes import has_evidence
from fewlabels.methods.base import FittedLabelModel, probabilities_of, status_of
from fewlabels.methods.ensembles.ensembles import TemperedEnsemble
from fewlabels.methods.spe.check import LEVEL, surprise_of_labels
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions

_MOST_ITEMS = 4000
"""Unlabeled items that the sampler takes in; of more, so many are drawn by their keys."""

_MEAN_ITEMS, _COVARIANCE_ITEMS = 40.0, 200.0
"""What the prior counts for. Every parameter that is left open takes items away from the class that
the classifier names, on average: with weaker priors accuracy comes out too low by several points
(three classes, 600 items, 20 labels: 4.5 points with 2 and 20 items, 2 with these).
"""

_CHAINS, _WARMUP, _THIN = 4, 200, 3
_MOST_R_HAT = 1.2
_SUPPORT_SALT = 0x5BE2
_SHRINK = 0.05


def fit_classes(
    components: int, n_draws: int, predictions: Predictions, rng: np.random.Generator
) -> FittedLabelModel:
    """Log-ratios of one classifier's K probabilities: a mixture of K classes of normals.

    The extension to several classes that Welinder, Welling, Perona (2013) leave to the future.
    Every class has a normal distribution (or `components` of them) on the K - 1 log-ratios, with a
    conjugate prior: its mean and covariance are those of the items weighed by the classifier's own
    probability of the class, as the labels recalibrate it (tempered-ensemble of this one). Labels
    are clamped; Gibbs sampling draws assignments, weights, means and covariances in turn.
    """
    salt = int(rng.integers(2**63))
    p = probabilities_of(predictions, predictions.models, "spe")[:, 0]
    rows = _chosen(predictions, p)
    evidence, weight = predictions.evidence[rows], predictions.weight[rows]
    space = LogRatios.of(p[rows], weight)
    z = space.coordinates(p[rows])
    start = TemperedEnsemble().infer(predictions, rng).marginals()[rows]
    prior = _anchored(z, start, weight, components)
    owner = np.repeat(np.arange(predictions.n_classes), components)
    draws = gibbs(
        z, evidence[:, owner], weight, start[:, owner] / components, prior, rng,
        chains=_CHAINS, warmup=_WARMUP, size=-(-n_draws // _CHAINS), thin=_THIN,
    ).take(np.arange(n_draws))  # fmt: skip
    mixture = ClassMixture(space, draws, predictions.n_classes)
    labeled = rows[predictions.labels[rows] >= 0]
    by_draw = softmax(mixture.log_joint(p[labeled], np.arange(len(draws))))
    return FittedClasses(
        predictions.models, mixture, salt,
        labels=surprise_of_labels(by_draw, predictions.labels[labeled], rng),
        tails=_tail_test(mixture, z, evidence, weight),
        unlabeled=not (predictions.evidence != 0).any(),
    )  # fmt: skip


def _chosen(predictions: Predictions, p: Floats) -> Ints:
    """Items with probabilities and weight: the informed, and at most 4,000 others, by key."""
    there = ~np.isnan(p[:, 0]) & (predictions.weight > 0)
    informed = has_evidence(predictions.evidence)
    keys: UInts = predictions.keys
    others = np.flatnonzero(there & ~informed)
    if len(others) > _MOST_ITEMS:
        place = uniforms(keys[others], np.arange(1), _SUPPORT_SALT)[:, 0]
        others = others[np.argsort(place, kind="stable")[:_MOST_ITEMS]]
    rows = np.concatenate([np.flatnonzero(there & informed), others])
    # By their keys, so that the order of the file does not show.
    return rows[np.argsort(keys[rows], kind="stable")]


@dataclass(frozen=True, eq=False)
class LogRatios:
    """Log-ratios of K probabilities in K - 1 coordinates, centred and of about unit spread."""

    contrasts: Floats
    centre: Floats
    scale: float

    @classmethod
    def of(cls, p: Floats, weight: Floats) -> LogRatios:
        """Orthonormal contrasts (isometric log-ratios): no class is the reference."""
        k = p.shape[1]
        contrasts = np.linalg.qr(np.eye(k) - 1 / k)[0][:, : k - 1].astype(np.float64)
        y = centred_log(clip(p)) @ contrasts
        centre = weight @ y / weight.sum()
        spread = weight @ (y - centre) ** 2 / weight.sum()
        return cls(contrasts, centre, float(max(np.sqrt(spread.mean()), 1e-3)))

    def coordinates(self, p: Floats) -> Floats:
        """Coordinates (n, K - 1) of probabilities (n, K)."""
        out: Floats = (centred_log(clip(p)) @ self.contrasts - self.centre) / self.scale
        return out


def _anchored(z: Floats, start: Floats, weight: Floats, components: int) -> NormalPrior:
    """Prior by the moments of the items under the classifier's own probabilities."""
    d, k = z.shape[1], start.shape[1]
    w = start * weight[:, None]
    counts = w.sum(axis=0)
    # One item of the overall mean keeps a class that is hardly predicted in sight.
    means = (w.T @ z + (weight @ z) / weight.sum()) / (counts + 1)[:, None]
    within = np.einsum("nk,nka,nkb->ab", w, *[z[:, None] - means] * 2) / counts.sum()
    floor = np.trace(within) / d + 1e-3
    covariance = (1 - _SHRINK) * within + _SHRINK * floor * np.eye(d)
    return NormalPrior(
        np.repeat(means, components, axis=0),
        covariance,
        _MEAN_ITEMS,
        _COVARIANCE_ITEMS,
        np.full(k * components, 1 / components),
    )


@dataclass(frozen=True, eq=False)
class ClassMixture:
    """Draws of the mixture in its coordinates, and what they say of items."""

    space: LogRatios
    draws: NormalDraws
    n_classes: int

    def shares(self) -> Floats:
        """Share of each class, (D, K)."""
        parts = np.exp(self.draws.log_weights).reshape(len(self.draws), self.n_classes, -1)
        out: Floats = parts.sum(axis=2)
        return out

    def log_joint(self, p: Floats, index: Ints) -> Floats:
        """Log P(class and scores) of items with probabilities p (n, K): (n, K, D)."""
        basis = quadratic_basis(self.space.coordinates(p))
        joint = np.tensordot(basis, self.draws.take(index).coefficients, axes=1)
        components = joint.shape[2] // self.n_classes
        joint = joint.reshape(len(p), len(index), self.n_classes, components)
        joint = joint[..., 0] if joint.shape[3] == 1 else logsumexp(joint, axis=3)
        return joint.transpose(0, 2, 1)


def _tail_test(mixture: ClassMixture, z: Floats, evidence: Floats, weight: Floats) -> float:
    """P-value of the kurtosis of the items about their components (Mardia 1970).

    The fourth power of an item's Mahalanobis distance is d(d + 2) on average, over components by
    their posterior probabilities as well, with variance 8 d(d + 2) / n where they are fitted.
    """
    d, draws = z.shape[1], mixture.draws.take(np.arange(0, len(mixture.draws), 10))
    coefficients = draws.coefficients
    joint = np.tensordot(quadratic_basis(z), coefficients, axes=1)
    peak = draws.log_weights + 0.5 * np.linalg.slogdet(draws.precisions)[1]
    distance = 2 * (peak - 0.5 * d * np.log(2 * np.pi) - joint)
    owner = np.repeat(np.arange(mixture.n_classes), joint.shape[2] // mixture.n_classes)
    r = softmax(joint + evidence[:, owner][:, None], axis=2)
    fourth = float((weight / weight.sum()) @ (r * distance**2).sum(axis=2).mean(axis=1))
    n = weight.sum() ** 2 / (weight**2).sum()
    standard = (fourth - d * (d + 2)) / np.sqrt(8 * d * (d + 2) / n)
    return float(2 * ndtr(-abs(standard)))


@dataclass(frozen=True, eq=False)
class FittedClasses(FittedLabelModel):
    """Draws of one classifier's mixture, and how well it fits."""

    models: tuple[str, ...]
    mixture: ClassMixture
    salt: int
    labels: float
    tails: float
    unlabeled: bool

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        """Posterior over the labels of these items."""
        p = probabilities_of(predictions, self.models, "spe")[:, 0]
        shares = self.mixture.shares()
        length, r_hat = len(shares) // _CHAINS, float("nan")
        if length >= 4:
            chains = np.log(shares[: length * _CHAINS]).reshape(length, _CHAINS, -1)
            r_hat = float(split_r_hat(chains).max())
        warnings = self._warnings(r_hat)
        return LabelPosterior(
            None,
            _ClassDraws(self.mixture, p, predictions.evidence),
            predictions.keys,
            salt=self.salt,
            status=status_of(warnings),
            warnings=warnings,
            diagnostics={
                "prevalence": [float(share) for share in shares.mean(axis=0)],
                "sampler": "gibbs",
                "r_hat": r_hat,
                "fit_labels": self.labels,
                "fit_scores": self.tails,
            },
        )

    def _warnings(self, r_hat: float) -> tuple[str, ...]:
        said = []
        if self.unlabeled:
            said.append(
                "assumption: no labels; the estimates rest on the densities' shapes, and on the "
                "classifier's own probabilities for which class is which"
            )
        if min(self.labels, self.tails) < LEVEL / 2:
            what = "labels" if self.labels < self.tails else "scores' tails"
            said.append(
                f"assumption: the {what} do not follow the fitted normal densities "
                f"(p = {max(min(self.labels, self.tails), 1e-4):.2g}), so that intervals promise "
                "too much"
            )
        if r_hat > _MOST_R_HAT:
            said.append(
                "not-converged: Markov chains of the densities' parameters disagree "
                f"(R-hat {r_hat:.2f}); the intervals are too narrow"
            )
        return tuple(said)


@dataclass(frozen=True, eq=False)
class _ClassDraws:
    mixture: ClassMixture
    probabilities: Floats
    evidence: Floats

    @property
    def size(self) -> int:
        return len(self.mixture.draws)

    def block(self, index: Ints, rows: Ints | slice) -> Floats:
        """P(label | draw) of these items, (n, K, D)."""
        p, evidence = self.probabilities[rows], self.evidence[rows]
        missing = np.isnan(p[:, 0])
        joint = np.empty((len(p), p.shape[1], len(index)))
        joint[~missing] = self.mixture.log_joint(p[~missing], index)
        joint[missing] = np.log(self.mixture.shares()[index]).T
        joint += evidence[:, :, None]
        return softmax(joint, out=joint)


# --- Gibbs sampling of the normal mixture -----------------------------------------------------
#
# Many chains at once, with conjugate priors. A component's log density is linear in 1, z and the
# products z_a z_b, so that all chains, components and items meet in one matrix product, and so do
# the sufficient statistics.


def quadratic_basis(z: Floats) -> Floats:
    """1, z_a and z_a z_b for a <= b: (n, 1 + d + d(d+1)/2) of z (n, d)."""
    a, b = np.triu_indices(z.shape[1])
    return np.concatenate([np.ones((len(z), 1)), z, z[:, a] * z[:, b]], axis=1)


@dataclass(frozen=True, eq=False)
class NormalDraws:
    """Draws of mixtures: log weights (D, C), means (D, C, d), precisions (D, C, d, d)."""

    log_weights: Floats
    means: Floats
    precisions: Floats

    def __len__(self) -> int:
        return len(self.log_weights)

    def take(self, index: Ints) -> NormalDraws:
        """Some of the draws."""
        return NormalDraws(self.log_weights[index], self.means[index], self.precisions[index])

    @property
    def coefficients(self) -> Floats:
        """Coefficients of log weight plus log density in `quadratic_basis`, (b, D, C)."""
        d = self.means.shape[2]
        pulled = np.einsum("dcij,dcj->dci", self.precisions, self.means)
        constant = self.log_weights - 0.5 * (pulled * self.means).sum(axis=2)
        constant = constant + 0.5 * np.linalg.slogdet(self.precisions)[1]
        constant -= 0.5 * d * np.log(2 * np.pi)
        a, b = np.triu_indices(d)
        # Products off the diagonal stand for two entries of the symmetric matrix.
        square = -0.5 * self.precisions[:, :, a, b] * np.where(a == b, 1.0, 2.0)
        every = np.concatenate([constant[:, :, None], pulled, square], axis=2)
        return np.moveaxis(every, 2, 0)


@dataclass(frozen=True, eq=False)
class NormalPrior:
    """Normal-inverse-Wishart prior of C components, and Dirichlet prior of their weights.

    A component's mean counts as `mean_items` items at `means` (C, d), its covariance as
    `covariance_items` items of a covariance that all components share; its weight as
    `weight_items` (C,) items. The shared covariance has a Wishart prior, worth d + 2 items of
    `covariance` (d, d): few items of one component borrow their spread from the others.
    """

    means: Floats
    covariance: Floats
    mean_items: float
    covariance_items: float
    weight_items: Floats

    def draw_shared(self, precisions: Floats, rng: np.random.Generator) -> Floats:
        """Draws of the shared covariance given the components' precisions, (D, d, d)."""
        d, count = self.covariance.shape[0], precisions.shape[1]
        rate = (d + 2) * np.linalg.inv(self.covariance)
        rate = rate + self.covariance_items * precisions.sum(axis=1)
        freedom = np.full(len(precisions), d + 2.0) + count * (self.covariance_items + d + 1)
        root = _wishart_root(rate, freedom, rng)
        return root @ np.swapaxes(root, 1, 2)

    def draw(self, statistics: Floats, shared: Floats, rng: np.random.Generator) -> NormalDraws:
        """Draws given sums of `quadratic_basis` over each component's items, (D, C, b)."""
        n_draws, n_components = statistics.shape[:2]
        d = self.means.shape[1]
        count, total = statistics[:, :, 0], statistics[:, :, 1 : d + 1]
        a, b = np.triu_indices(d)
        square = np.empty((n_draws, n_components, d, d))
        square[:, :, a, b] = square[:, :, b, a] = statistics[:, :, d + 1 :]
        held = count + self.mean_items
        centre = (total + self.mean_items * self.means) / held[:, :, None]
        # Scatter about the posterior mean, the prior's pseudo-observations among the items.
        prior_square = self.mean_items * self.means[:, :, None] * self.means[:, None, :]
        scatter: Floats = (
            square
            + prior_square
            - held[:, :, None, None] * (centre[..., :, None] * centre[..., None, :])
        )
        scatter = scatter + self.covariance_items * shared[:, None]
        freedom = count + self.covariance_items + d + 1
        root = _wishart_root(scatter, freedom, rng)
        noise = rng.standard_normal((n_draws, n_components, d, 1))
        away = np.linalg.solve(np.swapaxes(root, 2, 3), noise)[..., 0]
        means = centre + away / np.sqrt(held)[:, :, None]
        weights = rng.gamma(count + self.weight_items)
        log_weights = np.log(np.maximum(weights, np.finfo(float).tiny))
        log_weights = log_weights - np.log(weights.sum(axis=1, keepdims=True))
        return NormalDraws(log_weights, means, root @ np.swapaxes(root, 2, 3))


def _wishart_root(scatter: Floats, freedom: Floats, rng: np.random.Generator) -> Floats:
    """Lower-triangular root of a draw of the precision: Wishart(freedom, scatter^-1) (Bartlett)."""
    d = scatter.shape[-1]
    # inv(scatter) = F F' with F = inv(L)', and F A A' F' has the law for Bartlett's lower A.
    factor = np.linalg.cholesky((scatter + np.swapaxes(scatter, -1, -2)) / 2)
    bartlett = np.tril(rng.standard_normal(scatter.shape), -1)
    degrees = freedom[..., None] - np.arange(d)
    bartlett[..., np.arange(d), np.arange(d)] = np.sqrt(rng.chisquare(degrees))
    return np.linalg.solve(np.swapaxes(factor, -1, -2), bartlett).astype(np.float64, copy=False)


def gibbs(
    z: Floats,
    log_evidence: Floats,
    weight: Floats,
    start: Floats,
    prior: NormalPrior,
    rng: np.random.Generator,
    *,
    chains: int,
    warmup: int,
    size: int,
    thin: int,
) -> NormalDraws:
    """Draws of the mixture of items z (n, d): `size` of each chain, sweep by sweep.

    Draw t of chain c has the number t * chains + c.

    Parameters
    ----------
    log_evidence
        What is known of each item's component, as a log-likelihood, (n, C).
    weight
        How often each item counts, (n,).
    start
        P(component) that the first assignment of each chain is drawn from, (n, C).
    warmup, size, thin
        Sweeps before the first draw, draws per chain, and sweeps per draw.
    """
    basis = quadratic_basis(z)
    with np.errstate(divide="ignore"):
        joint = np.repeat(np.log(start)[:, None], chains, axis=1)
    shared = np.repeat(prior.covariance[None], chains, axis=0)
    state = prior.draw(_statistics(basis, weight, joint, rng), shared, rng)
    kept = []
    for sweep in range(1, warmup + size * thin + 1):
        joint = np.tensordot(basis, state.coefficients, axes=1)
        joint += log_evidence[:, None]
        shared = prior.draw_shared(state.precisions, rng)
        state = prior.draw(_statistics(basis, weight, joint, rng), shared, rng)
        if sweep > warmup and (sweep - warmup) % thin == 0:
            kept.append(state)
    return NormalDraws(
        np.concatenate([s.log_weights for s in kept]),
        np.concatenate([s.means for s in kept]),
        np.concatenate([s.precisions for s in kept]),
    )


def _statistics(basis: Floats, weight: Floats, joint: Floats, rng: np.random.Generator) -> Floats:
    """Sums of the basis over items assigned at random by exp(joint) (n, D, C): (D, C, b)."""
    joint = joint - joint.max(axis=2, keepdims=True)
    cumulative = np.cumsum(np.exp(joint, out=joint), axis=2)
    u = rng.random(cumulative.shape[:2]) * cumulative[:, :, -1]
    chosen = (u[:, :, None] >= cumulative).sum(axis=2)
    assigned = (chosen[:, :, None] == np.arange(joint.shape[2])) * weight[:, None, None]
    out: Floats = np.tensordot(assigned, basis, axes=(0, 0))
    return out
