"""What the ensembles share: a mixture of beliefs about pooled classifiers, weighed by labels.

A belief is a Gaussian prior of the coefficients of

    P(y = k | s_i) = softmax_k(a_k + (b + c_k) f_ik + h g_ik + sum_j w_j d_ijk + sum_j v_j e_ijk)

with f between the linear and the log pool of the classifiers and g half their gap, d_j how
classifier j deviates from it, and e_j its vote (kernels/pooling.py). Every belief is fitted to the
labels by Newton's method; its posterior weight is its prior weight times its evidence (Laplace).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fewlabels.errors import Status
from fewlabels.kernels.arrays import Array, Floats, Ints, UInts
from fewlabels.kernels.blocks import map_blocks, spans
from fewlabels.kernels.multinomial import Mode, fit_map
from fewlabels.kernels.simplex import softmax
from fewlabels.models.base import FittedLabelModel, probabilities_of, with_probabilities
from fewlabels.models.pooled_index import Features, PooledIndex, PoolName
from fewlabels.posterior import LabelPosterior, ParameterDraws
from fewlabels.predictions import Predictions

WEIGHED_ITEMS = 2_000
"""Beliefs are weighed by so many labels at most; those that then count are fitted to all."""

_NEVER_DRAWN = 1e-5
_ROWS = 65_536


DIAGNOSTICS = {
    "slope": "by how much the pool is sharpened (above 1) or softened (below 1)",
    "slope_sd": "how uncertain that slope is",
    "log_pool_scale": "by how much the mean of the log probabilities is scaled to be as "
    "confident as the mean of the probabilities",
    "agreement": "how often two classifiers predict the same class",
    "anchor": "the slope that this agreement suggests",
    "component_weights": "how far the labels favour each of the beliefs",
    "parameter_draws": "how many draws of the coefficients the estimates average over",
}
"""What the diagnostics of a mixture with anchored beliefs mean."""


class Belief(NamedTuple):
    """One prior: its weight, mean and sd of the slope b, and sds of all else (0: left out).

    Slope and its sd are multiples of the agreement slope where `anchored`. The sds of offsets
    are those of a difference between two classes; those of deviations and votes, of their sum
    over the classifiers.
    """

    weight: float
    pool: PoolName
    anchored: bool
    slope: float
    slope_sd: float
    offset_sd: float
    gap_sd: float = 0.0
    deviation_sd: float = 0.0
    vote_sd: float = 0.0
    class_slope_sd: float = 0.0


# --- coefficients ---------------------------------------------------------------------------


class _Columns(NamedTuple):
    """Where a belief's coefficients stand among all: offsets (K), per pool b, h and c_k, w, v."""

    n_classes: int
    n_each: int
    pools: tuple[PoolName, ...]

    @property
    def width(self) -> int:
        return self.each + self.n_each

    def of_pool(self, name: PoolName) -> int:
        """The pool's b; its h and its c_k follow."""
        return self.n_classes + self.pools.index(name) * (2 + self.n_classes)

    @property
    def each(self) -> int:
        """The first deviation's; the votes' follow."""
        return self.n_classes + len(self.pools) * (2 + self.n_classes)


def _prior(belief: Belief, columns: _Columns, index: PooledIndex) -> tuple[Ints, Floats, Floats]:
    """Columns of a belief's coefficients, their means and sds, all (p,)."""
    k, m = columns.n_classes, len(index.models)
    anchor = index.anchors[belief.pool] if belief.anchored else 1.0
    start, each = columns.of_pool(belief.pool), columns.each
    share = 1 / np.sqrt(m)
    deviation = belief.deviation_sd * share * index.ratios[belief.pool]
    parts = [
        (np.arange(k), 0.0, belief.offset_sd / np.sqrt(2)),
        (np.array([start]), belief.slope * anchor, belief.slope_sd * anchor),
        (np.array([start + 1]), 0.0, belief.gap_sd),
        (start + 2 + np.arange(k), 0.0, belief.class_slope_sd),
        (each + np.arange(m), 0.0, deviation),
        (each + m + np.arange(m), 0.0, belief.vote_sd * share),
    ]
    parts = [part for part in parts if part[2] > 0]
    chosen = np.concatenate([where for where, _, _ in parts])
    means = np.concatenate([np.full(len(where), mean) for where, mean, _ in parts])
    sds = np.concatenate([np.full(len(where), sd) for where, _, sd in parts])
    return chosen, means, sds


def _design(features: Features, columns: _Columns, rows: slice = slice(None)) -> Floats:
    """All columns of some items, (n, K, width)."""
    k = columns.n_classes
    eye = np.eye(k)
    n = len(features.each[rows])
    parts: list[Array] = [np.broadcast_to(eye, (n, k, k))]
    for name in columns.pools:
        f, g = (values[rows] for values in features.pools[name])
        parts += [f[:, :, None], g[:, :, None], eye * f[:, :, None]]
    return np.concatenate([*parts, features.each[rows]], axis=2)


class _Fit(NamedTuple):
    columns: Ints
    mode: Mode


def weigh(weights: Sequence[float], log_evidence: Floats) -> Floats:
    """Posterior weights of beliefs: prior weight times evidence."""
    with np.errstate(divide="ignore"):
        return softmax(np.log(np.asarray(weights, dtype=float)) + log_evidence, axis=0)


def _draw(
    fits: Sequence[_Fit], weights: Floats, size: int, width: int, rng: np.random.Generator
) -> Floats:
    """Coefficient draws (size, width) of the mixture; what a belief leaves out is 0.

    Beliefs are taken in proportion to their weight as nearly as whole numbers allow (systematic
    sampling), which leaves less Monte Carlo error than drawing them.
    """
    points = (np.arange(size) + rng.random()) / size
    chosen = np.minimum(np.searchsorted(np.cumsum(weights), points), len(fits) - 1)
    out = np.zeros((size, width))
    for number, (columns, mode) in enumerate(fits):
        rows = np.flatnonzero(chosen == number)
        if not len(rows):
            continue
        half = rng.standard_normal(((len(rows) + 1) // 2, len(columns)))
        # In pairs z, -z: what is odd in the noise cancels from every mean over draws.
        normal = np.concatenate([half, -half])[: len(rows)]
        root = np.linalg.cholesky(mode.hessian)
        out[np.ix_(rows, columns)] = mode.coefficients + np.linalg.solve(root.T, normal.T).T
    return out[rng.permutation(size)]


# --- the fitted model -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FittedBeliefs(FittedLabelModel):
    """Draws of the coefficients for values and for intervals, and how they came about."""

    method: str
    index: PooledIndex
    columns: _Columns
    draws: Floats
    interval_draws: Floats
    salt: int
    weights: Floats
    converged: bool
    n_labels: float
    stretch: float
    assumption: str

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        """Posterior of the labels of any items of the same classifiers."""
        probabilities = probabilities_of(predictions, self.index.models, self.method)
        design = _Design(self.index, self.columns, probabilities)
        parameters, doubted = (
            _Draws(design, predictions.evidence, draws)
            for draws in (self.draws, self.interval_draws)
        )
        return LabelPosterior(
            parameters.mean,
            parameters,
            predictions.keys,
            salt=self.salt,
            interval_parameters=doubted,
            stretch=self.stretch,
            status=self._status(),
            warnings=self._warnings(),
            diagnostics=self._diagnostics(),
        )

    def _diagnostics(self) -> dict[str, Any]:
        starts = [self.columns.of_pool(name) for name in self.columns.pools]
        slope = self.draws[:, starts].sum(axis=1)  # each draw has that of one pool
        found = {
            "slope": float(slope.mean()),
            "slope_sd": float(slope.std()),
            "log_pool_scale": self.index.pools["raw"].log_scale,
            "component_weights": [float(w) for w in self.weights],
            "parameter_draws": len(self.draws),
        }
        if "calibrated" in self.columns.pools:
            found |= {"agreement": self.index.agreement, "anchor": self.index.anchors["raw"]}
        return found

    def _status(self) -> Status:
        if not self.converged:
            return Status.NOT_CONVERGED
        return Status.OK if self.n_labels else Status.ASSUMPTION

    def _warnings(self) -> tuple[str, ...]:
        if not self.converged:
            return ("not-converged: Newton's method did not reach the posterior mode",)
        if not self.n_labels:
            return (f"assumption: no labels; the estimates rest on {self.assumption}",)
        return ()


def fit_beliefs(
    method: str,
    beliefs: Sequence[Belief],
    interval_weights: Sequence[float],
    n_draws: int,
    predictions: Predictions,
    rng: np.random.Generator,
    *,
    assumption: str,
    stretch: Callable[[float], float] = lambda n_labels: 1.0,
    copies_agree: bool = True,
) -> FittedBeliefs:
    """Fit every belief to the labels, weigh them, and draw coefficients.

    Parameters
    ----------
    interval_weights
        Prior weights of the beliefs for intervals, which take twice as many draws.
    stretch
        By how much intervals are wider, about the estimate, than the draws make them: a function
        of how many labels there are.
    assumption
        What estimates rest on where there is no label, in words.
    copies_agree
        Whether classifiers that vote alike on every item count as agreeing.

    Raises
    ------
    InputError
        If no classifier gives probabilities.
    """
    ground = _Ground.of(method, beliefs, predictions, copies_agree)
    few = ground.some(WEIGHED_ITEMS)
    fits = [ground.fit(belief, few) for belief in beliefs]
    log_evidence = np.array([fit.mode.log_evidence for fit in fits])
    salt = int(rng.integers(2**63))
    weights, doubted = (
        weigh(prior, log_evidence) for prior in ([b.weight for b in beliefs], interval_weights)
    )
    drawn = np.maximum(weights, doubted) > _NEVER_DRAWN
    if few is not None:
        fits = [ground.fit(b) if d else f for b, f, d in zip(beliefs, fits, drawn, strict=True)]
    width = ground.columns.width
    return FittedBeliefs(
        method=method,
        index=ground.index,
        columns=ground.columns,
        draws=_draw(fits, weights, n_draws, width, rng),
        interval_draws=_draw(fits, doubted, 2 * n_draws, width, rng),
        salt=salt,
        weights=weights,
        converged=all(fit.mode.converged for fit in fits),
        n_labels=ground.n_labels,
        stretch=stretch(ground.n_labels),
        assumption=assumption,
    )


def _worth(predictions: Predictions, rows: Ints) -> float:
    """How many labels the rows with evidence are: rows that share an item's weight are one.

    Those without a prediction are none; weighted up they count no more than once.
    """
    weight = predictions.weight * predictions.has_probabilities.any(axis=1)
    others = np.delete(weight, rows)
    usual = others[others > 0].mean() if (others > 0).any() else weight.max(initial=0.0)
    count = np.count_nonzero(weight[rows])
    return float(min(count, weight[rows].sum() / usual)) if count else 0.0


@dataclass(frozen=True, eq=False)
class _Ground:
    """What beliefs are fitted to: all columns (n, K, width) and evidence (n, K) of known labels."""

    index: PooledIndex
    columns: _Columns
    design: Floats
    evidence: Floats
    keys: UInts
    n_labels: float

    @staticmethod
    def of(
        method: str, beliefs: Sequence[Belief], predictions: Predictions, copies_agree: bool
    ) -> _Ground:
        served, probabilities = with_probabilities(predictions, method)
        names = tuple(dict.fromkeys(b.pool for b in beliefs))
        votes = any(b.vote_sd > 0 for b in beliefs)
        index = PooledIndex.of(served, names, votes=votes, copies_agree=copies_agree)
        columns = _Columns(served.n_classes, served.n_models * (1 + votes), names)
        evidence = served.evidence
        rows = np.flatnonzero((evidence != 0).any(axis=1))
        return _Ground(
            index,
            columns,
            _design(index.features(probabilities[rows]), columns),
            evidence[rows],
            served.keys[rows],
            _worth(served, rows),
        )

    def some(self, most: int) -> Ints | None:
        """Some of the labels, chosen by the items' identity; None: there are no more."""
        if len(self.keys) <= most:
            return None
        return np.sort(np.argsort(self.keys, kind="stable")[:most])

    def fit(self, belief: Belief, rows: Ints | None = None) -> _Fit:
        """Mode of a belief given all labels, or some."""
        chosen, means, sds = _prior(belief, self.columns, self.index)
        design, evidence = self.design, self.evidence
        if rows is not None:
            design, evidence = design[rows], evidence[rows]
        return _Fit(chosen, fit_map(design[:, :, chosen], evidence, means, sds**-2.0))


def each_belief(
    beliefs: Sequence[Belief], size: int, predictions: Predictions, rng: np.random.Generator
) -> Iterator[tuple[float, ParameterDraws]]:
    """Log evidence of every belief by itself, and draws of its coefficients."""
    ground = _Ground.of("beliefs", beliefs, predictions, copies_agree=False)
    columns = ground.columns
    probabilities = probabilities_of(predictions, ground.index.models, "beliefs")
    design = _Design(ground.index, columns, probabilities)
    for fit in map(ground.fit, beliefs):
        draws = _draw([fit], np.ones(1), size, columns.width, rng)
        yield fit.mode.log_evidence, _Draws(design, predictions.evidence, draws)


class _Design:
    """Features of n items as one matrix per class, (K, n, w): a product with coefficients is all.

    Columns are a constant, deviations and votes, and f and g of every pool.
    """

    def __init__(self, index: PooledIndex, columns: _Columns, probabilities: Floats) -> None:
        n, _, k = probabilities.shape
        self.columns = columns
        self.matrices = np.empty((k, n, 1 + columns.n_each + 2 * len(columns.pools)))
        self.matrices[:, :, 0] = 1.0
        for rows in spans(n, _ROWS):
            features = index.features(probabilities[rows])
            self.matrices[:, rows, 1 : 1 + columns.n_each] = features.each.swapaxes(0, 1)
            for place, name in enumerate(columns.pools):
                start = 1 + columns.n_each + 2 * place
                for offset, values in enumerate(features.pools[name]):
                    self.matrices[:, rows, start + offset] = values.T

    def coefficients(self, beta: Floats) -> Floats:
        """Coefficients of the columns for each class, (K, w, D), of draws beta (width, D)."""
        columns = self.columns
        k, each = columns.n_classes, beta[columns.each :]
        out = np.empty((k, self.matrices.shape[2], beta.shape[1]))
        out[:, 0] = beta[:k]
        out[:, 1 : 1 + columns.n_each] = each
        for place, name in enumerate(columns.pools):
            start, column = columns.of_pool(name), 1 + columns.n_each + 2 * place
            out[:, column] = beta[start] + beta[start + 2 : start + 2 + k]
            out[:, column + 1] = beta[start + 1]
        return out


@dataclass(frozen=True, eq=False)
class _Draws:
    design: _Design
    evidence: Floats
    coefficients: Floats

    @property
    def size(self) -> int:
        return len(self.coefficients)

    def prepare(self) -> None:
        """Nothing to do: a block is a matrix product."""

    def block(self, index: Ints, rows: Ints | slice) -> Floats:
        weights = self.design.coefficients(self.coefficients[index].T)
        evidence = self.evidence[rows]
        out = np.empty((len(evidence), len(weights), len(index)))
        informed = np.flatnonzero((evidence != 0).any(axis=1))
        if len(weights) == 2:
            # The difference of two logits says it all, at half the work.
            gap = self.design.matrices[1][rows] @ weights[1]
            gap -= self.design.matrices[0][rows] @ weights[0]
            gap[informed] += (evidence[informed, 1] - evidence[informed, 0])[:, None]
            _logistic(gap, out=out[:, 1])
            np.subtract(1, out[:, 1], out=out[:, 0])
            return out
        for k, matrix in enumerate(self.design.matrices):
            out[:, k] = matrix[rows] @ weights[k]
        out[informed] += evidence[informed][:, :, None]
        return softmax(out, out=out)

    def mean(self) -> Floats:
        n = len(self.evidence)
        out = np.empty(self.evidence.shape)
        every = np.arange(self.size)

        def fill(rows: slice) -> None:
            out[rows] = self.block(every, rows).mean(axis=2)

        for _ in map_blocks(fill, spans(n, 4096)):
            pass
        return out


def _logistic(z: Floats, out: Floats) -> None:
    """1 / (1 + exp(-z)), in place of z and into `out`."""
    np.negative(z, out=z)
    with np.errstate(over="ignore"):  # exp of much is infinite, and its reciprocal zero
        np.exp(z, out=z)
    z += 1
    np.reciprocal(z, out=out)
