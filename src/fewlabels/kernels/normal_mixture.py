"""Mixtures of multivariate normals with conjugate priors, drawn by Gibbs sampling in many chains.

A component's log density is linear in 1, z and the products z_a z_b, so that all chains, components
and items meet in one matrix product, and so do the sufficient statistics.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fewlabels.kernels.arrays import Floats, Ints


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
        # Scatter about the posterior mean, the prior's pseudo-items among the items.
        prior_square = self.mean_items * self.means[:, :, None] * self.means[:, None, :]
        scatter: Floats = square + prior_square - held[:, :, None, None] * _outer(centre)
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


def _outer(x: Floats) -> Floats:
    out: Floats = x[..., :, None] * x[..., None, :]
    return out


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
