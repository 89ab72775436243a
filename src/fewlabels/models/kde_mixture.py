"""The mixture of kernel densities behind SSME-KDE: support points, E-step, M-step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Array, Bools, Floats, Ints, UInts
from fewlabels.kernels.gaussian import KernelSums, SupportSums
from fewlabels.kernels.keyed import exponentials, uniforms
from fewlabels.kernels.simplex import softmax
from fewlabels.models.em import EMResult, expectation_maximisation
from fewlabels.models.ensemble import with_evidence
from fewlabels.posterior import draw_labels

# One stream of randomness per use, all from one seed.
_SUPPORT_SALT, _START_SALT, _SHARES_SALT, _REFIT_SALT = 0x5099, 0x57A2, 0x54A2, 0x2EF1

_TINY = np.finfo(float).tiny

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
    among all items; `counts` (m,) says how many items each point stands for, in units of what
    an uninformed one does on average.
    """

    options: MixtureOptions
    points: Floats
    keys: UInts
    evidence: Floats
    pool: Floats
    label_scale: float
    counts: Floats
    salt: int

    def __getstate__(self) -> dict[str, Any]:
        # The kernels among the support points may take a gigabyte; they are soon computed anew.
        return {name: value for name, value in self.__dict__.items() if name != "kernel"}

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
            weights = np.where(self.informed, OFFICIAL_LABEL_WEIGHT * self.label_scale, 1.0)
        else:
            weights = np.where(self.informed, self.label_scale, self.options.unlabeled_weight)
        return weights * self.counts

    def places(self, keys: UInts) -> Ints:
        """Place of each item among the support points, -1 where it is none, (n,)."""
        order, ordered = self._by_key
        place = np.minimum(np.searchsorted(ordered, keys), len(order) - 1)
        found: Ints = np.where(ordered[place] == keys, order[place], -1)
        return found

    @cached_property
    def _by_key(self) -> tuple[Ints, UInts]:
        order = np.argsort(self.keys)
        return order, self.keys[order]

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
            return np.log(kernel.times(weights)) - np.log(np.maximum(total, _TINY))

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


@dataclass(frozen=True, eq=False)
class EMRuns:
    """B runs of EM side by side: what they found of m support points, and say of other items.

    `responsibilities` (m, K, B) are those of the support points; any other item's E-step is made
    of `sums`, which the kernels' class weights go into, and of their totals (K, B).
    """

    responsibilities: Floats
    sums: SupportSums
    totals: Floats

    @staticmethod
    def of(mixture: KDEMixture, results: Sequence[tuple[EMResult, Floats]]) -> EMRuns:
        """Results of EM side by side, each with the row weights (m, b) that it was found with."""
        weights = np.concatenate([mixture.weighted(r.before, w) for r, w in results], axis=2)
        sums = SupportSums(mixture.points, weights.reshape(len(weights), -1))
        found = np.concatenate([result.responsibilities for result, _ in results], axis=2)
        return EMRuns(found, sums, weights.sum(axis=0))

    def e_step(self, points: Floats, evidence: Floats) -> Array:
        """P(label) (n, K, B) of items that are no support points, given evidence (n, K).

        In single precision.
        """
        sums = self.sums.of(points).reshape(len(points), *self.totals.shape)
        shares = self.totals / self.totals.sum(axis=0)
        informed = np.flatnonzero((evidence != 0).any(axis=1))
        with np.errstate(divide="ignore"):
            density = np.log(sums[informed]) - np.log(np.maximum(self.totals, _TINY))
        # Share times density is the sum of the class's kernels over the total of all weights. (A
        # sum over so short an axis takes five times as long as the additions.)
        total = reduce(np.add, np.moveaxis(sums, 1, 0))[:, None]
        if not total.all():
            sums = np.where(total > 0, sums, shares.astype(sums.dtype))
            total = np.where(total > 0, total, 1)
        sums /= total
        sums[informed] = posterior(density, shares, evidence[informed])
        return sums


class Support(NamedTuple):
    """Support points among some items.

    `rows` (m,) are their places, `label_scale` is the weight of an informed one against the
    others, and `counts` (m,) how many items each stands for, in units of what an uninformed one
    does on average.
    """

    rows: Ints
    label_scale: float
    counts: Floats


def choose_support(
    keys: UInts, informed: Bools, most: int, salt: int, multiplicity: Floats | None = None
) -> Support:
    """Support points among n items, which weigh as all items do.

    All of them up to `most`; beyond, half as many, of which at most half are informed. Which ones
    depends on the items' keys alone. `multiplicity` (n,) is how many items each stands for, one
    unless given: where the items are all labeled ones and a sample of the others, labels would
    otherwise weigh far more than they do among all items.
    """
    n = len(keys)
    if n <= most:
        chosen = np.arange(n)
        return Support(chosen, *_weighing(informed, chosen, multiplicity))
    size = max(most // 2, 2)
    place = uniforms(keys, np.arange(1), salt ^ _SUPPORT_SALT)[:, 0]
    n_informed = int(informed.sum())
    take = min(n_informed, max(size // 2, size - (n - n_informed)))
    parts = []
    for mask, count in ((informed, take), (~informed, size - take)):
        rows = np.flatnonzero(mask)
        parts.append(rows[np.argsort(place[rows], kind="stable")[:count]])
    chosen = np.sort(np.concatenate(parts))
    return Support(chosen, *_weighing(informed, chosen, multiplicity))


def _weighing(informed: Bools, chosen: Ints, multiplicity: Floats | None) -> tuple[float, Floats]:
    """`label_scale` and `counts` of a `Support`."""
    every = np.ones(len(informed)) if multiplicity is None else multiplicity
    counts, inside = every[chosen], informed[chosen]
    labeled, others = counts[inside].sum(), int((~inside).sum())
    if not others:
        return 1.0, counts / (counts.mean() if len(counts) else 1.0)
    unit = counts[~inside].mean()
    counts = np.where(inside, counts, counts / unit)
    if not labeled:
        return 1.0, counts
    taken = others / every[~informed].sum(), labeled / every[informed].sum()
    return float(taken[0] / taken[1]), counts
