"""What the ensembles share: a mixture of beliefs about pooled classifiers, weighed by labels.

A belief is a Gaussian prior of the coefficients of

    P(y = k | s_i) = softmax_k(a_k + (b + c_k) f_ik + h g_ik + sum_j w_j d_ijk + sum_j v_j e_ijk)

with f between the linear and the log pool of the classifiers and g half their gap, d_j how
classifier j deviates from it, and e_j its vote (kernels/pooling.py). Every belief is fitted to the
labels by Newton's method; its posterior weight is its prior weight times its evidence (Laplace).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from fewlabels.errors import Status
from fewlabels.kernels.arrays import Array, Floats, Ints
from fewlabels.kernels.blocks import map_blocks, spans
from fewlabels.kernels.multinomial import Mode, fit_map
from fewlabels.kernels.pooling import (
    Pool,
    agreement_slope,
    calibrated_pool,
    centred_logs,
    deviation_scales,
    mean_agreement,
    raw_pool,
)
from fewlabels.kernels.simplex import softmax
from fewlabels.models.base import FittedLabelModel, probabilities_of, with_probabilities
from fewlabels.posterior import LabelPosterior, ParameterDraws
from fewlabels.predictions import Predictions

PoolName = Literal["raw", "calibrated"]

POOL_ITEMS = 20_000
"""The constants of the pools are found on so many items, chosen by their identity."""

_ROWS = 65_536
_ANCHORS = (0.2, 6.0)


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


class _Features(NamedTuple):
    pools: Mapping[PoolName, tuple[Floats, Floats]]  # f and g, both (n, K)
    each: Floats  # deviations and votes, (n, K, 2M); 0 where a classifier says nothing


@dataclass(frozen=True, eq=False)
class PooledIndex:
    """The constants of the pools, fixed when fitted.

    `scales` (M,) bring the classifiers' deviations to the raw pool's root mean square; `ratios`
    are the root mean squares of the pools in its units, `anchors` their agreement slopes.
    """

    models: tuple[str, ...]
    pools: Mapping[PoolName, Pool]
    scales: Floats
    ratios: Mapping[PoolName, float]
    anchors: Mapping[PoolName, float]
    agreement: float

    @staticmethod
    def of(predictions: Predictions, names: Sequence[PoolName]) -> PooledIndex:
        """Find the constants on the predictions that the items give."""
        assert predictions.probabilities is not None
        rows = _by_identity(predictions, POOL_ITEMS)
        p = predictions.probabilities[rows]
        c, votes = centred_logs(p), _votes(p)
        k = p.shape[2]
        agreement = mean_agreement(votes, k)
        made = {"raw": raw_pool, "calibrated": calibrated_pool}
        order: tuple[PoolName, ...] = ("raw", *(n for n in names if n != "raw"))
        some = ~np.isnan(c[:, :, 0]).all(axis=1)
        pools: dict[PoolName, Pool] = {}
        ratios: dict[PoolName, float] = {}
        anchors: dict[PoolName, float] = {}
        scales = np.zeros(p.shape[1])
        unit = 1.0
        for name in order:
            pool = made[name](c)
            f, g = pool.features(c)
            top = f + g  # the linear pool
            if name == "raw":
                scales, unit = deviation_scales(c, top[some]), _rms(top[some])
            pools[name] = pool
            ratios[name] = _rms(top[some]) / unit if unit > 0 else 1.0
            anchors[name] = _anchor(f, votes, agreement)
        return PooledIndex(predictions.models, pools, scales, ratios, anchors, agreement)

    def features(self, probabilities: Floats) -> _Features:
        """Index and gap by every pool, deviations and votes of any items."""
        n, m, k = probabilities.shape
        pools = {name: (np.empty((n, k)), np.empty((n, k))) for name in self.pools}
        each = np.zeros((n, k, 2 * m))
        for block in spans(n, _ROWS):
            p = probabilities[block]
            c, votes = centred_logs(p), _votes(p)
            for name, pool in self.pools.items():
                pools[name][0][block], pools[name][1][block] = pool.features(c)
            each[block, :, :m] = (np.nan_to_num(c) * self.scales[:, None]).swapaxes(1, 2)
            each[block, :, m:] = votes[:, None, :] == np.arange(k)[None, :, None]
        return _Features(pools, each)


def _by_identity(predictions: Predictions, most: int) -> Ints | slice:
    """Some of the items with a prediction, whatever their order."""
    if predictions.n_items <= most:
        return slice(None)
    given = np.flatnonzero(predictions.has_probabilities.any(axis=1))
    return given[np.argsort(predictions.keys[given], kind="stable")[:most]]


def _votes(p: Floats) -> Ints:
    """Likeliest class of every classifier (n, M), -1 where it says nothing."""
    return np.where(np.isnan(p[:, :, 0]), -1, np.argmax(np.nan_to_num(p), axis=2))


def _rms(values: Floats) -> float:
    return float(np.sqrt((values**2).mean())) if values.size else 0.0


def _anchor(f: Floats, votes: Ints, agreement: float) -> float:
    """Agreement slope, less trusted the fewer classes there are; 1 without two classifiers."""
    if np.isnan(agreement):
        return 1.0
    slope = agreement_slope(f, votes, agreement)
    anchor: float = np.clip(slope, *_ANCHORS) ** (1 - 1 / f.shape[1])
    return float(anchor)


# --- coefficients ---------------------------------------------------------------------------


class _Columns(NamedTuple):
    """Where a belief's coefficients stand among all: offsets (K), per pool b, h and c_k, w, v."""

    n_classes: int
    n_models: int
    pools: tuple[PoolName, ...]

    @property
    def width(self) -> int:
        return self.n_classes + len(self.pools) * (2 + self.n_classes) + 2 * self.n_models

    def of_pool(self, name: PoolName) -> int:
        """The pool's b; its h and its c_k follow."""
        return self.n_classes + self.pools.index(name) * (2 + self.n_classes)

    @property
    def each(self) -> int:
        """The first deviation's; the votes' follow."""
        return self.width - 2 * self.n_models


def _prior(belief: Belief, columns: _Columns, index: PooledIndex) -> tuple[Ints, Floats, Floats]:
    """Columns of a belief's coefficients, their means and sds, all (p,)."""
    k, m = columns.n_classes, columns.n_models
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


def _design(features: _Features, columns: _Columns, rows: slice = slice(None)) -> Floats:
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
    n_informed: int
    stretch: float
    assumption: str

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        """Posterior of the labels of any items of the same classifiers."""
        probabilities = probabilities_of(predictions, self.index.models, self.method)
        features = self.index.features(probabilities)
        parameters, doubted = (
            _Draws(features, self.columns, predictions.evidence, draws)
            for draws in (self.draws, self.interval_draws)
        )
        return LabelPosterior(
            parameters.mean(),
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
        return Status.OK if self.n_informed else Status.ASSUMPTION

    def _warnings(self) -> tuple[str, ...]:
        if not self.converged:
            return ("not-converged: Newton's method did not reach the posterior mode",)
        if not self.n_informed:
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
    stretch: float = 1.0,
) -> FittedBeliefs:
    """Fit every belief to the labels, weigh them, and draw coefficients.

    Parameters
    ----------
    interval_weights
        Prior weights of the beliefs for intervals, which take twice as many draws.
    stretch
        By how much intervals are wider, about the estimate, than the draws make them.
    assumption
        What estimates rest on where there is no label, in words.

    Raises
    ------
    InputError
        If no classifier gives probabilities.
    """
    index, columns, informed, fits = _fit(method, beliefs, predictions)
    log_evidence = np.array([fit.mode.log_evidence for fit in fits])
    salt = int(rng.integers(2**63))
    weights, doubted = (
        weigh(prior, log_evidence) for prior in ([b.weight for b in beliefs], interval_weights)
    )
    return FittedBeliefs(
        method=method,
        index=index,
        columns=columns,
        draws=_draw(fits, weights, n_draws, columns.width, rng),
        interval_draws=_draw(fits, doubted, 2 * n_draws, columns.width, rng),
        salt=salt,
        weights=weights,
        converged=all(fit.mode.converged for fit in fits),
        n_informed=informed,
        stretch=stretch,
        assumption=assumption,
    )


def _fit(
    method: str, beliefs: Sequence[Belief], predictions: Predictions
) -> tuple[PooledIndex, _Columns, int, list[_Fit]]:
    """Pools, columns, how many items inform of their labels, and the fit of every belief."""
    served, probabilities = with_probabilities(predictions, method)
    names = tuple(dict.fromkeys(b.pool for b in beliefs))
    index = PooledIndex.of(served, names)
    columns = _Columns(served.n_classes, served.n_models, names)
    evidence = served.evidence
    informed = np.flatnonzero((evidence != 0).any(axis=1))
    design = _design(index.features(probabilities[informed]), columns)
    fits = []
    for belief in beliefs:
        chosen, means, sds = _prior(belief, columns, index)
        mode = fit_map(design[:, :, chosen], evidence[informed], means, sds**-2.0)
        fits.append(_Fit(chosen, mode))
    return index, columns, len(informed), fits


def each_belief(
    beliefs: Sequence[Belief], size: int, predictions: Predictions, rng: np.random.Generator
) -> Iterator[tuple[float, ParameterDraws]]:
    """Log evidence of every belief by itself, and draws of its coefficients."""
    index, columns, _, fits = _fit("beliefs", beliefs, predictions)
    probabilities = probabilities_of(predictions, index.models, "beliefs")
    features = index.features(probabilities)
    for fit in fits:
        draws = _draw([fit], np.ones(1), size, columns.width, rng)
        yield fit.mode.log_evidence, _Draws(features, columns, predictions.evidence, draws)


@dataclass(frozen=True, eq=False)
class _Draws:
    features: _Features
    columns: _Columns
    evidence: Floats
    coefficients: Floats

    @property
    def size(self) -> int:
        return len(self.coefficients)

    def prepare(self) -> None:
        """Nothing to do: a block is a matrix product."""

    def block(self, index: Ints, rows: Ints | slice) -> Floats:
        beta = self.coefficients[index].T  # (width, D)
        k = self.columns.n_classes
        each = self.features.each[rows]
        n = len(each)
        logits = (each.reshape(n * k, -1) @ beta[self.columns.each :]).reshape(n, k, len(index))
        logits += beta[:k]
        for name in self.columns.pools:
            start = self.columns.of_pool(name)
            f, g = (values[rows] for values in self.features.pools[name])
            logits += f[:, :, None] * (beta[start] + beta[start + 2 : start + 2 + k])
            if beta[start + 1].any():
                logits += g[:, :, None] * beta[start + 1]
        evidence = self.evidence[rows]
        informed = np.flatnonzero((evidence != 0).any(axis=1))
        logits[informed] += evidence[informed][:, :, None]
        return softmax(logits, out=logits)

    def mean(self) -> Floats:
        n = len(self.evidence)
        out = np.empty(self.evidence.shape)
        every = np.arange(self.size)

        def fill(rows: slice) -> None:
            out[rows] = self.block(every, rows).mean(axis=2)

        for _ in map_blocks(fill, spans(n, 4096)):
            pass
        return out
