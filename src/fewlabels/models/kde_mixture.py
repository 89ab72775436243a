"""The mixture of kernel densities behind SSME-KDE: support points, E-step, M-step."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fewlabels.kernels.arrays import Bools, Floats, Ints, UInts
from fewlabels.kernels.gaussian import KernelSums
from fewlabels.kernels.keyed import exponentials, uniforms
from fewlabels.kernels.simplex import softmax
from fewlabels.models.em import EMResult, expectation_maximisation
from fewlabels.models.ensemble import with_evidence
from fewlabels.posterior import draw_labels

# One stream of randomness per use, all from one seed.
_SUPPORT_SALT, _START_SALT, _SHARES_SALT, _REFIT_SALT = 0x5099, 0x57A2, 0x54A2, 0x2EF1

OFFICIAL_LABEL_WEIGHT = 10.0


@dataclass(frozen=True)
class MixtureOptions:
    """What of the method's hyperparameters concerns the mixture; see `SSMEKDE`."""

    epochs: int
    leave_one_out: bool
    soft_start: bool
    unlabeled_weight: float
    official: bool


@dataclass(frozen=True, eq=False)
class KDEMixture:
    """Densities of K classes by kernels on m support points (m, d), scaled to bandwidth 1.

    `evidence` (m, K) is what is known of their labels, `pool` (m, K) the mean classifier there.
    `label_scale` weighs informed points so that labels count against unlabeled items as they do
    among all items.
    """

    options: MixtureOptions
    points: Floats
    keys: UInts
    evidence: Floats
    pool: Floats
    label_scale: float
    salt: int

    @cached_property
    def informed(self) -> Bools:
        """Which points have a label, or labels of annotators."""
        return (self.evidence != 0).any(axis=1)

    @cached_property
    def kernel(self) -> KernelSums:
        """Kernels among the support points."""
        own = np.arange(len(self.points))
        return KernelSums(self.points, self.points, own, leave_out=self.options.leave_one_out)

    @cached_property
    def item_weights(self) -> Floats:
        """Weight of each support point in the densities, (m,)."""
        if self.options.official:
            return np.where(self.informed, OFFICIAL_LABEL_WEIGHT * self.label_scale, 1.0)
        return np.where(self.informed, self.label_scale, self.options.unlabeled_weight)

    def fit(self) -> EMResult:
        """EM from the method's own start, every item counting once."""
        return self._run(np.ones((len(self.points), 1)), first_stream=0)

    def refit(self, size: int) -> tuple[EMResult, Floats]:
        """EM of `size` bootstrap replicates at once: new starts, Exp(1) row weights (m, size)."""
        rows = exponentials(self.keys, np.arange(size), self.salt ^ _REFIT_SALT)
        return self._run(rows, first_stream=1), rows

    def starting_labels(self) -> Floats:
        """Class weights that EM starts from, (m, K)."""
        return self._start(1, 0)[:, :, 0]

    def weighted(self, responsibilities: Floats, row_weights: Floats) -> Floats:
        """Class weights (m, K, B) of the kernels."""
        return responsibilities * (self.item_weights[:, None, None] * row_weights[:, None, :])

    def log_density(self, kernel: KernelSums, weights: Floats) -> Floats:
        """Log P(scores | class) of the kernel's queries up to a factor per query, (n, K, B)."""
        total = np.broadcast_to(weights.sum(axis=0), (len(kernel.queries), *weights.shape[1:]))
        if self.options.leave_one_out:
            # A point's weight leaves the normaliser as its kernel leaves the sum.
            mine = np.flatnonzero(kernel.own >= 0)
            total = total.copy()
            total[mine] -= weights[kernel.own[mine]]
        with np.errstate(divide="ignore"):
            return np.log(kernel.times(weights)) - np.log(np.maximum(total, np.finfo(float).tiny))

    def _run(self, row_weights: Floats, first_stream: int) -> EMResult:
        counter = iter(range(self.options.epochs))

        def step(w: Floats) -> Floats:
            weights = self.weighted(w, row_weights)
            density = self.log_density(self.kernel, weights)
            if self.options.official:
                shares = self._drawn_shares(w, next(counter), first_stream)
                return posterior(density, shares)
            return posterior(density, class_shares(weights), self.evidence)

        start = self._start(row_weights.shape[1], first_stream)
        return expectation_maximisation(step, start, iterations=self.options.epochs)

    def _start(self, size: int, first_stream: int) -> Floats:
        pool = np.repeat(with_evidence(self.pool, self.evidence)[:, :, None], size, axis=2)
        if self.options.soft_start:
            return pool
        streams = np.arange(first_stream, first_stream + size)
        return self._one_hot(draw_labels(pool, self.keys, streams, self.salt ^ _START_SALT))

    def _drawn_shares(self, w: Floats, epoch: int, first_stream: int) -> Floats:
        """Class shares of one drawn assignment, known labels kept (the released code's)."""
        streams = 1000 * epoch + first_stream + np.arange(w.shape[2])
        total = w.sum(axis=1, keepdims=True)
        p = w / np.where(total > 0, total, 1.0)
        labels = draw_labels(p, self.keys, streams, self.salt ^ _SHARES_SALT)
        known = np.flatnonzero(self.informed)
        labels[known] = np.argmax(self.evidence[known], axis=1)[:, None]
        return self._one_hot(labels).mean(axis=0)

    def _one_hot(self, labels: Ints) -> Floats:
        classes = np.arange(self.evidence.shape[1])
        return (labels[:, None, :] == classes[None, :, None]).astype(np.float64)


def class_shares(weights: Floats) -> Floats:
    """Share of each class among the weights (m, K, B): (K, B)."""
    out: Floats = weights.sum(axis=0) / weights.sum(axis=(0, 1))
    return out


def posterior(log_density: Floats, shares: Floats, evidence: Floats | None = None) -> Floats:
    """P(class | scores, evidence), (n, K, B)."""
    with np.errstate(divide="ignore"):
        log_shares = np.log(shares)
    logits = log_density + log_shares
    nowhere = np.isneginf(logits.max(axis=1, keepdims=True))
    logits = np.where(nowhere, log_shares, logits)
    if evidence is not None:
        known = np.flatnonzero((evidence != 0).any(axis=1))
        # A known label wins even where its class has no density at all.
        logits[known] = np.maximum(logits[known], -1e6) + evidence[known][:, :, None]
    return softmax(logits, out=logits)


def choose_support(keys: UInts, informed: Bools, most: int, salt: int) -> tuple[Ints, float]:
    """Support points among n items, and the weight of an informed one against the others.

    All of them up to `most`; beyond, half as many, of which at most half are informed. Which ones
    depends on the items' keys alone.
    """
    n = len(keys)
    if n <= most:
        return np.arange(n), 1.0
    size = max(most // 2, 2)
    place = uniforms(keys, np.arange(1), salt ^ _SUPPORT_SALT)[:, 0]
    n_informed = int(informed.sum())
    take = min(n_informed, max(size // 2, size - (n - n_informed)))
    parts = []
    for mask, count in ((informed, take), (~informed, size - take)):
        rows = np.flatnonzero(mask)
        parts.append(rows[np.argsort(place[rows], kind="stable")[:count]])
    chosen = np.sort(np.concatenate(parts))
    if not take or take == size:
        return chosen, 1.0
    others = n - n_informed
    return chosen, ((size - take) / others) / (take / n_informed)
