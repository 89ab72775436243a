"""The mixture of kernel densities behind SSME-KDE: support points, E-step, M-step."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from fewlabels.kernels.arrays import Array, Bools, Floats, Ints, UInts
from fewlabels.kernels.blocks import map_blocks, spans
from fewlabels.kernels.counter_based import shared_exponentials, uniforms
from fewlabels.kernels.simplex import softmax
from fewlabels.kernels.votes import has_evidence
from fewlabels.methods.base import with_evidence
from fewlabels.methods.em import EMResult, expectation_maximisation
from fewlabels.posterior import draw_labels

# One stream of randomness per use, all from one seed.
_SUPPORT_SALT, _START_SALT, _SHARES_SALT, _REFIT_SALT = 0x5099, 0x57A2, 0x54A2, 0x2EF1

_TINY = np.finfo(float).tiny

OFFICIAL_LABEL_WEIGHT = 10.0


@dataclass(frozen=True, eq=False)
class KDEMixture:
    """Densities of K classes by kernels on m support points (m, d), scaled to bandwidth 1.

    The first five fields are hyperparameters of `SSMEKDE`.

    `evidence` (m, K) is what is known of their labels, `pool` (m, K) the mean classifier there.
    `label_scale` weighs informed points so that labels count against unlabeled items as they do
    among all items; `counts` (m,) says how many items each point stands for, in units of what
    an uninformed one does on average.
    """

    epochs: int
    leave_one_out: bool
    soft_start: bool
    unlabeled_weight: float
    official: bool
    points: Floats
    keys: UInts
    clusters: tuple[UInts, ...]
    evidence: Floats
    pool: Floats
    label_scale: float
    counts: Floats
    salt: int

    @cached_property
    def informed(self) -> Bools:
        """Which points have a label, or labels of annotators."""
        return has_evidence(self.evidence)

    @cached_property
    def item_weights(self) -> Floats:
        """Weight of each support point in the densities, (m,)."""
        if self.official:
            weights = np.where(self.informed, OFFICIAL_LABEL_WEIGHT * self.label_scale, 1.0)
        else:
            weights = np.where(self.informed, self.label_scale, self.unlabeled_weight)
        return weights * self.counts

    def fit(self) -> EMResult:
        """EM from the method's own start, every item counting once."""
        return self._run(np.ones((len(self.points), 1)), first_stream=0)

    def refit(self, size: int) -> tuple[EMResult, Floats]:
        """EM of `size` bootstrap replicates at once: new starts, Exp(1) row weights (m, size)."""
        rows = shared_exponentials(self.clusters, np.arange(size), self.salt ^ _REFIT_SALT)
        return self._run(rows, first_stream=1), rows

    def weighted(self, responsibilities: Floats, row_weights: Floats) -> Floats:
        """Class weights (m, K, B) of the kernels."""
        return responsibilities * (self.item_weights[:, None, None] * row_weights[:, None, :])

    def _run(self, row_weights: Floats, first_stream: int) -> EMResult:
        """EM: `step` is one M-step (class shares, densities) and one E-step (posteriors)."""
        counter = iter(range(self.epochs))
        class_sums = self._class_sums(row_weights)

        def step(w: Floats) -> Floats:
            weights = self.weighted(w, row_weights)
            sums, total = class_sums(weights), weights.sum(axis=0)
            if self.official:
                shares = self._drawn_shares(w, next(counter), first_stream)
                return posterior(_log_density(sums, total), shares)
            # A point's weight leaves the normaliser as its kernel leaves the sum.
            others = total - weights if self.leave_one_out else None
            return _e_step(sums, total, self.evidence, others)

        start = self._start(row_weights.shape[1], first_stream)
        return expectation_maximisation(step, start, iterations=self.epochs)

    def _class_sums(self, row_weights: Floats) -> Callable[[Floats], Floats]:
        """Sums (m, K, B) of the kernels at the support points, of class weights (m, K, B).

        All classes' weights add up to the points', in every epoch. Where the posterior is a class's
        share of the sum, and nothing is told from how small it is, the last class's is therefore
        what the others leave, and kernels that are nothing beside the largest are left out.
        """
        left = np.isfinite(self.evidence[self.informed]).sum(axis=1)
        plain = bool((left == 1).all()) and not (self.leave_one_out or self.official)
        # Points that never weigh anything are none.
        weigh = self.item_weights > 0
        used = np.flatnonzero(weigh) if weigh.any() else np.arange(len(self.points))
        place = np.full(len(self.points), -1)
        place[used] = np.arange(len(used))
        least = self.item_weights[used].min(initial=np.inf) / self.item_weights.max(initial=1.0)
        kernel = KernelSums(
            self.points, self.points[used], place, self.leave_one_out, least=least if plain else 0.0
        )
        if not plain:
            return lambda weights: kernel.times(weights[used])
        every = kernel.times((self.item_weights[:, None] * row_weights)[used])

        def of(weights: Floats) -> Floats:
            sums = np.empty_like(weights)
            sums[:, :-1] = kernel.times(weights[used, :-1])
            np.maximum(every - _over_classes(sums[:, :-1]), 0.0, out=sums[:, -1])
            return sums

        return of

    def _start(self, size: int, first_stream: int) -> Floats:
        pool = np.repeat(with_evidence(self.pool, self.evidence)[:, :, None], size, axis=2)
        if self.soft_start:
            return pool
        streams = np.arange(first_stream, first_stream + size)
        return self._one_hot(draw_labels(pool, self.keys, streams, self.salt ^ _START_SALT))

    def _drawn_shares(self, w: Floats, epoch: int, first_stream: int) -> Floats:
        """Class shares of one drawn assignment, known labels kept (the released code's)."""
        streams = 1000 * epoch + first_stream + np.arange(w.shape[2])
        total = w.sum(axis=1, keepdims=True)
        p = w / np.where(total > 0, total, 1.0)
        labels = draw_labels(p, self.keys, streams, self.salt ^ _SHARES_SALT)
        labeled = np.flatnonzero(self.informed)
        labels[labeled] = np.argmax(self.evidence[labeled], axis=1)[:, None]
        return self._one_hot(labels).mean(axis=0)

    def _one_hot(self, labels: Ints) -> Floats:
        classes = np.arange(self.evidence.shape[1])
        return (labels[:, None, :] == classes[None, :, None]).astype(np.float64)


def _log_density(sums: Floats, totals: Floats) -> Floats:
    """Log P(scores | class), up to a factor per item, from sums of weighted kernels."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(sums) - np.log(np.maximum(totals, _TINY)))


def _over_classes(sums: Array) -> Array:
    """Sums over the classes, (n, K, B) to (n, B): numpy's over a short axis take five times."""
    return reduce(np.add, np.moveaxis(sums, 1, 0))


def _e_step(sums: Array, totals: Floats, evidence: Floats, others: Floats | None = None) -> Array:
    """P(label) (n, K, B) given evidence (n, K), in place of the sums of weighted kernels.

    `totals` (K, B) are the classes' weights, `others` (n, K, B) those without the item's own.
    """
    shares = totals / totals.sum(axis=0)
    informed = np.flatnonzero(has_evidence(evidence))
    density = _log_density(sums[informed], totals if others is None else others[informed])
    # Share times density is the sum of the class's kernels over the total of all weights.
    if others is not None:
        sums *= totals / np.maximum(others, 1e-200 * np.maximum(totals, 1.0))
    total = _over_classes(sums)[:, None]
    if not total.all():
        sums = np.where(total > 0, sums, shares.astype(sums.dtype))
        total = np.where(total > 0, total, 1)
    sums /= total
    sums[informed] = posterior(density, shares, evidence[informed])
    return sums


def posterior(log_density: Floats, shares: Floats, evidence: Floats | None = None) -> Floats:
    """P(class | scores, evidence), (n, K, B)."""
    with np.errstate(divide="ignore"):
        log_shares = np.log(shares)
    logits = log_density + log_shares
    nowhere = np.isneginf(logits.max(axis=1, keepdims=True))
    logits = np.where(nowhere, log_shares, logits)
    if evidence is not None:
        informed = np.flatnonzero(has_evidence(evidence))
        # A known label wins even where its class has no density at all.
        logits[informed] = np.maximum(logits[informed], -1e6) + evidence[informed][:, :, None]
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
        responsibilities = np.concatenate(
            [result.responsibilities for result, _ in results], axis=2
        )
        return EMRuns(responsibilities, sums, weights.sum(axis=0))

    def e_step(self, points: Floats, evidence: Floats) -> Array:
        """P(label) (n, K, B) of items that are no support points, given evidence (n, K).

        In single precision.
        """
        sums = self.sums.of(points).reshape(len(points), *self.totals.shape)
        return _e_step(sums, self.totals, evidence)


class Support(NamedTuple):
    """Support points among some items.

    `rows` (m,) are their places, `label_scale` is the weight of an informed one against the
    others, and `counts` (m,) how many items each stands for, in units of what an uninformed one
    does on average.
    """

    rows: Ints
    label_scale: float
    counts: Floats


def choose_support(keys: UInts, informed: Bools, most: int, salt: int, times: Floats) -> Support:
    """Support points among n items, which weigh as all items do.

    All of them up to `most`; beyond, half as many, of which at most half are informed. Which ones
    depends on the items' keys alone. `times` (n,) is how many items each stands for: where the
    items are all labeled ones and a sample of the others, labels would otherwise weigh far more
    than they do among all items.
    """
    n, n_informed = len(keys), int(informed.sum())
    rows = np.arange(n)
    if n > most:
        size = max(most // 2, 2)
        place = uniforms(keys, np.arange(1), salt ^ _SUPPORT_SALT)[:, 0]
        take = min(n_informed, max(size // 2, size - (n - n_informed)))
        parts = []
        for mask, count in ((informed, take), (~informed, size - take)):
            some = np.flatnonzero(mask)
            parts.append(some[np.argsort(place[some], kind="stable")[:count]])
        rows = np.sort(np.concatenate(parts))
    # They weigh as the items do that they stand for.
    counts, inside = times[rows], informed[rows]
    labeled, others = counts[inside].sum(), int((~inside).sum())
    if not others:
        return Support(rows, 1.0, counts / (counts.mean() if n else 1.0))
    counts = np.where(inside, counts, counts / counts[~inside].mean())
    if not labeled:
        return Support(rows, 1.0, counts)
    scale = (others / times[~informed].sum()) / (labeled / times[informed].sum())
    return Support(rows, float(scale), counts)


# --- sums of kernels --------------------------------------------------------------------------
#
# Gaussian kernels over support points, for many weightings at once.


CACHE_BYTES = 6e8
_DOUBLE_BYTES = 1.5e8
_ROWS = 256
_AT_ONCE = 4
"""Blocks of `_ROWS` queries that a thread takes at a time."""

_SPARSE = 0.06
"""Share of kernels up to which a product with those alone is the quicker one."""

_NOTHING = 1e-3
"""Kernels below this share of a rounding error, in units of the largest, are negligible."""

_FEW = 64
"""Rows of a block where few are expected: those that need more than single precision."""

POINTS = 1000
"""Support points at a time: 256 x 1000 kernels fit the cache of a core. A power of two would not
do: rows of one page's length fall on the same lines of the cache, which costs twice the time."""

SINGLE_REACH = 1e4
"""Largest |x|^2 / 2 of a query, from the centre, for single precision: exponents of kernels that
matter then have errors of about 1e-3."""

WEAK = 1e-25
"""Sums below this, in units of the largest weight, are computed anew, in units of the largest
kernel: single precision ends at 1e-38."""


@dataclass(eq=False)
class KernelSums:
    """exp(-|x_i - z_j|^2 / 2) of query rows x (n, d) and support rows z (m, d), times weights.

    Every query's sums are divided by its largest kernel, a factor that is the same for all
    weightings: nothing underflows, however narrow the kernels, and ratios between weightings
    (all that a posterior needs) are unchanged.

    `own` (n,) gives each query's own place in the support, or -1; with `leave_out` that kernel
    is left out. Exponents are computed in double precision (the released code's bandwidth puts
    |z|^2 / 2 at 4e5, where single precision is wrong even for a point and itself).

    Kernels are kept up to `CACHE_BYTES`, in double precision where they are few, else in single
    precision (relative error 1e-7); others are computed anew for each product. `least` is the
    least weight that a point may have in units of the largest. Where it is not 0 and most kernels
    of a block are nothing beside the largest one, only the others are kept.
    """

    queries: Floats
    support: Floats
    own: Ints
    leave_out: bool = False
    keep: bool = True
    least: float = 0.0
    _kept: list[Array | csr_matrix | None] = field(default_factory=list, init=False)
    _dtype: type[np.floating] = field(init=False)
    _end: float = field(init=False)
    _blocks: list[slice] = field(init=False)
    _left: Floats = field(init=False)
    _right: Floats = field(init=False)

    def __post_init__(self) -> None:
        # One matrix product gives the exponent: [x, -|x|^2/2, 1] . [z, 1, -|z|^2/2].
        centre = self.support.mean(axis=0)
        self._left = _augment(self.queries - centre, first=True)
        self._right = np.ascontiguousarray(_augment(self.support - centre, first=False).T)
        double = 8 * len(self.queries) * len(self.support) <= _DOUBLE_BYTES
        self._dtype = np.float64 if double else np.float32
        nothing = _NOTHING * float(np.finfo(self._dtype).eps) * self.least
        self._end = math.log(nothing) if nothing > 0 else -math.inf
        self._blocks = spans(len(self.queries), _ROWS)
        left = CACHE_BYTES * self.keep
        for kernels in map_blocks(self._kernels, self._blocks if self.keep else []):
            parts = (
                (kernels.data, kernels.indices) if isinstance(kernels, csr_matrix) else (kernels,)
            )
            left -= sum(part.nbytes for part in parts)
            self._kept.append(kernels if left >= 0 else None)

    def times(self, weights: Floats) -> Floats:
        """Sums over the support: (n, ...) for weights (m, ...)."""
        flat = weights.reshape(len(weights), -1)
        columns = np.ascontiguousarray(flat.T)
        single = flat.astype(np.float32) if self._dtype == np.float32 else flat
        out = np.empty((len(self.queries), flat.shape[1]))

        def multiply(some: slice) -> None:
            for number in range(some.start, some.stop):
                kernels = self._kept[number] if self._kept else None
                rows = self._blocks[number]
                kernels = self._kernels(rows) if kernels is None else kernels
                if isinstance(kernels, csr_matrix):
                    out[rows] = kernels @ flat
                elif kernels.dtype == np.float64:  # of few columns, the quicker way about
                    out[rows] = (columns @ kernels.T).T
                else:
                    out[rows] = kernels @ single

        for _ in map_blocks(multiply, spans(len(self._blocks), _AT_ONCE)):
            pass
        return out.reshape(len(out), *weights.shape[1:])

    def block(self, rows: slice) -> Floats:
        """Kernels of some of the queries, each row divided by its largest: (b, m)."""
        exponent = self._exponents(rows)
        return np.exp(exponent, out=exponent)

    def _exponents(self, rows: slice) -> Floats:
        """Logs of these."""
        exponent = self._left[rows] @ self._right
        place = self.own[rows]
        mine = np.flatnonzero(place >= 0)
        # A point's distance to itself is zero, whatever the rounding of the product says.
        exponent[mine, place[mine]] = -np.inf if self.leave_out else 0.0
        top = exponent.max(axis=1, keepdims=True)
        exponent -= np.where(np.isfinite(top), top, 0.0)
        return exponent

    def _kernels(self, rows: slice) -> Array | csr_matrix:
        """Kernels of some of the queries as they are kept."""
        exponent = self._exponents(rows)
        if self._end > -math.inf:
            some = exponent > self._end
            count = np.count_nonzero(some, axis=1)
            if count.sum() <= _SPARSE * exponent.size:
                places = np.flatnonzero(some) % exponent.shape[1]
                starts = np.concatenate([[0], np.cumsum(count)])
                return csr_matrix((np.exp(exponent[some]), places, starts), shape=exponent.shape)
        exponent = exponent.astype(self._dtype, copy=False)
        return np.exp(exponent, out=exponent)

    def self_share(self, rows: Ints) -> tuple[float, float]:
        """Median over `rows` of a point's own share of its density, and of effective neighbours.

        Effective neighbours are (sum of kernels)^2 / sum of squared kernels.
        """
        every = KernelSums(self.queries[rows], self.support, self.own[rows], keep=False)

        def measure(block: slice) -> Floats:
            kernel = every.block(block)
            total = kernel.sum(axis=1)
            own = np.take_along_axis(kernel, every.own[block][:, None], axis=1)[:, 0]
            return np.stack([own / total, total**2 / np.einsum("ij,ij->i", kernel, kernel)])

        parts = list(map_blocks(measure, spans(len(rows), _ROWS)))
        if not parts:
            return float("nan"), float("nan")
        share, neighbours = np.median(np.concatenate(parts, axis=1), axis=1)
        return float(share), float(neighbours)


class SupportSums:
    """Weights (m, C) times exp(-|x_i - z_j|^2 / 2), summed over support rows z (m, d).

    For queries that are no support points, however many: what the support and its weights need is
    done once, and the pass is in single precision (relative error about 1e-6 of a sum). Every
    query's sums share a factor, as in `KernelSums`. A query far from the centre, or from all of the
    support, has its exponents in double precision and its sums divided by its largest kernel.

    All products are of full blocks, so that no sum depends on what else a query comes with.
    """

    def __init__(self, support: Floats, weights: Floats) -> None:
        # A point that weighs nothing must not set the scale of a query.
        used = weights.any(axis=1)
        if used.any():
            support, weights = support[used], weights[used]
        self._centre: Floats = support.mean(axis=0)
        self._columns = weights.shape[1]
        self._ones = np.ones(self._columns, np.float32)
        right = _augment(support - self._centre, first=False).T
        cast = (weights / (weights.max(initial=0.0) or 1.0)).astype(np.float32)
        self._blocks = [
            _Block(
                np.ascontiguousarray(right[:, b]),
                np.ascontiguousarray(right[:, b], np.float32),
                np.ascontiguousarray(cast[b]),
            )
            for b in spans(len(support), POINTS)
        ]

    def of(self, queries: Floats) -> Array:
        """Sums (n, C) of queries (n, d), in single precision, each row up to a factor of its own.

        This is the work of one thread.
        """
        left = _augment(queries - self._centre, first=True)
        out = np.empty((len(left), self._columns), np.float32)
        # Support points may be farther off: their kernels at a query within reach are nothing.
        far = -left[:, -2] > SINGLE_REACH
        near = np.flatnonzero(~far)
        if len(near) == len(out):
            out = self._near(left.astype(np.float32))[: len(near)]
        else:
            out[near] = self._near(left[near].astype(np.float32))[: len(near)]
        far[near[~(out[near] @ self._ones > WEAK)]] = True
        rows = np.flatnonzero(far)
        out[rows] = self._exact(left[rows])[: len(rows)]
        return out

    def _memory(self, rows: int, dtype: type[np.floating]) -> dict[int, Array]:
        """One (rows, p) array for every size p of the blocks, used again and again."""
        return {block.size: np.empty((rows, block.size), dtype) for block in self._blocks}

    def _near(self, left: Array) -> Array:
        """Sums of queries that single precision serves, and of the padding."""
        left = _padded(left, _ROWS)
        out = np.zeros((len(left), self._columns), np.float32)
        kernels, part = self._memory(_ROWS, np.float32), np.empty_like(out[:_ROWS])
        for rows in spans(len(left), _ROWS):
            for block in self._blocks:
                kernel = kernels[block.size]
                np.matmul(left[rows], block.single, out=kernel)
                np.exp(kernel, out=kernel)
                out[rows] += np.matmul(kernel, block.weights, out=part)
        return out

    def _exact(self, left: Floats) -> Array:
        """Sums of any queries, with exponents in double precision, and of the padding."""
        left = _padded(left, _FEW)
        out = np.zeros((len(left), self._columns), np.float32)
        exponents, kernels = self._memory(_FEW, np.float64), self._memory(_FEW, np.float32)
        part = np.empty_like(out[:_FEW])
        for rows in spans(len(left), _FEW):
            top = np.full((_FEW, 1), -np.inf)
            for block in self._blocks:
                exponent, kernel = exponents[block.size], kernels[block.size]
                np.matmul(left[rows], block.double, out=exponent)
                higher = np.maximum(top, exponent.max(axis=1, keepdims=True))
                out[rows] *= np.exp(top - higher).astype(np.float32)
                top = higher
                np.subtract(exponent, top, out=kernel, casting="same_kind")
                np.exp(kernel, out=kernel)
                out[rows] += np.matmul(kernel, block.weights, out=part)
        return out


class _Block(NamedTuple):
    """Some support points, augmented (d + 2, p), in both precisions, and their weights (p, C)."""

    double: Floats
    single: Array
    weights: Array

    @property
    def size(self) -> int:
        """How many points there are."""
        return self.single.shape[1]


def _padded(left: Array, rows: int) -> Array:
    """Rows filled up with zeros to whole blocks of `rows`."""
    missing = -len(left) % rows
    return np.concatenate([left, np.zeros((missing, left.shape[1]), left.dtype)])


def _augment(x: Floats, *, first: bool) -> Floats:
    half = -0.5 * (x**2).sum(axis=1, keepdims=True)
    one = np.ones_like(half)
    return np.concatenate([x, half, one] if first else [x, one, half], axis=1)
