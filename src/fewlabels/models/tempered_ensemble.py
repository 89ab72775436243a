"""Bayesian tempered ensemble: the averaged classifier, recalibrated by a few labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fewlabels.errors import Status, UsageError
from fewlabels.kernels.arrays import Array, Floats, Ints
from fewlabels.kernels.blocks import map_blocks, spans
from fewlabels.kernels.multinomial import Mode, fit_map
from fewlabels.kernels.simplex import centred_log, clip, linear_pool, softmax
from fewlabels.models.base import (
    FittedLabelModel,
    LabelModel,
    check_count,
    probabilities_of,
    with_probabilities,
)
from fewlabels.models.method import Method
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions


class Component(NamedTuple):
    """One prior: its weight, sd of the offsets, mean and sd of the slope, sd of the deviations."""

    weight: float
    sa: float
    mb: float
    sb: float
    sw: float


INTERVAL_WEIGHTS = (0.30, 0.20, 0.15, 0.20, 0.15)
"""Weights of the same components for intervals: less belief that the average is calibrated."""

_ROWS = 65_536

PRIORS = (
    Component(0.70, 0.20, 1.00, 0.18, 0.00),
    Component(0.12, 0.25, 1.00, 0.25, 0.25),
    Component(0.06, 0.40, 0.65, 0.20, 0.40),
    Component(0.06, 0.40, 1.30, 0.40, 0.60),
    Component(0.06, 0.50, 2.00, 0.60, 0.80),
)


@dataclass(frozen=True)
class TemperedEnsemble(LabelModel):
    """P(y=k|s) = softmax_k(a_k + b f_k + sum_j w_j d_jk), with f between two pools of classifiers.

    f is the mean of the linear pool and the (rescaled) log pool of the classifiers, d_j how
    classifier j deviates from them; a, b and w are learned from the labels under a mixture of
    priors, most of whose weight believes the averaged classifier. Parameter uncertainty is that
    of Gaussian (Laplace) approximations, weighted by evidence.

    Parameters
    ----------
    priors
        Mixture components of the prior.
    interval_weights
        Their weights for intervals, flatter than for values: on most sets of classifiers the
        averaged one is less calibrated than the prior believes, and intervals must allow for it.
    n_draws
        Parameter draws for values; intervals take twice as many.
    """

    priors: Sequence[Component] = PRIORS
    interval_weights: Sequence[float] = INTERVAL_WEIGHTS
    n_draws: int = 200

    def __post_init__(self) -> None:
        check_count("n_draws", self.n_draws)
        if len(self.interval_weights) != len(self.priors):
            raise UsageError(
                f"`interval_weights` must have one weight per prior; got "
                f"{len(self.interval_weights)} for {len(self.priors)}"
            )

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Find the mode and the evidence of each component, and draw parameters."""
        served, probabilities = with_probabilities(predictions, "tempered-ensemble")
        index = _Index.of(served.models, probabilities)
        evidence = served.evidence
        informed = np.flatnonzero((evidence != 0).any(axis=1))
        features = index.features(probabilities[informed])
        modes = [_fit_component(c, features, evidence[informed]) for c in self.priors]
        salt = int(rng.integers(2**63))
        width = served.n_classes + 1 + served.n_models
        weights, doubted = (
            _posterior_weights(prior, modes)
            for prior in ([c.weight for c in self.priors], self.interval_weights)
        )
        return _FittedTempered(
            index=index,
            draws=_draw(modes, weights, self.n_draws, width, rng),
            interval_draws=_draw(modes, doubted, 2 * self.n_draws, width, rng),
            salt=salt,
            weights=weights,
            converged=all(m.converged for m in modes),
            n_informed=len(informed),
        )


def _posterior_weights(prior: Sequence[float], modes: Sequence[Mode]) -> Floats:
    """Weights of the components: prior weight times evidence."""
    evidence = np.array([m.log_evidence for m in modes])
    return softmax(np.log(np.asarray(prior, dtype=float)) + evidence, axis=0)


class _Features(NamedTuple):
    pooled: Floats  # f, (n, K)
    deviations: Floats  # d, (n, K, M); 0 where a classifier gives no prediction


@dataclass(frozen=True, eq=False)
class _Index:
    """The constants of the pools, fixed when fitted: s, and rms(u) / rms(c_j) per classifier."""

    models: tuple[str, ...]
    log_scale: float
    scales: Floats

    @staticmethod
    def of(models: tuple[str, ...], probabilities: Floats) -> _Index:
        n, m, k = probabilities.shape
        u, v, confidence = np.empty((n, k)), np.empty((n, k)), np.empty(n)
        square, count = np.zeros(m), np.zeros(m)
        for block in spans(n, _ROWS):
            c, u[block], v[block], pool = _pools(probabilities[block])
            confidence[block] = pool.max(axis=1)
            square += np.nansum(c**2, axis=(0, 2))
            count += (~np.isnan(c)).sum(axis=(0, 2))
        some = ~np.isnan(probabilities[:, :, 0]).all(axis=1)
        scale = _matching_scale(v[some], float(confidence[some].mean()))
        top = np.sqrt((u[some] ** 2).mean())
        rms = np.sqrt(square / np.maximum(count, 1))
        scales = np.divide(top, rms, out=np.zeros_like(rms), where=rms > 0)
        return _Index(models, scale, scales)

    def features(self, probabilities: Floats) -> _Features:
        n, m, k = probabilities.shape
        features = _Features(np.empty((n, k)), np.empty((n, k, m)))
        for block in spans(n, _ROWS):
            c, u, v, _ = _pools(probabilities[block])
            features.pooled[block] = (u + self.log_scale * v) / 2
            features.deviations[block] = (np.nan_to_num(c) * self.scales[:, None]).swapaxes(1, 2)
        return features


def _pools(p: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Centred logs c (n, M, K), linear pool u and log pool v, both (n, K), and mean (n, K)."""
    p = clip(p)
    c = centred_log(p)
    pool = linear_pool(p, np.full(p.shape[2], 1 / p.shape[2]))
    present = ~np.isnan(c[:, :, 0])
    total = np.where(present[:, :, None], c, 0.0).sum(axis=1)
    v = total / np.maximum(present.sum(axis=1), 1)[:, None]
    u = centred_log(pool)
    u[~present.any(axis=1)] = 0.0
    return c, u, v, pool


def _matching_scale(v: Floats, target: float) -> float:
    """Scale s at which softmax(s v) is as confident, on average, as the mean classifier."""
    low, high = -7.0, 7.0
    for _ in range(50):
        middle = (low + high) / 2
        if softmax(np.exp(middle) * v).max(axis=1).mean() < target:
            low = middle
        else:
            high = middle
    return float(np.exp((low + high) / 2))


def _fit_component(prior: Component, features: _Features, evidence: Floats) -> Mode:
    n, k = features.pooled.shape
    m = features.deviations.shape[2]
    parts: list[Array] = [np.broadcast_to(np.eye(k), (n, k, k)), features.pooled[:, :, None]]
    sds = [np.full(k, prior.sa / np.sqrt(2)), np.array([prior.sb])]
    means = [np.zeros(k), np.array([prior.mb])]
    if prior.sw > 0:
        parts.append(features.deviations)
        sds.append(np.full(m, prior.sw / np.sqrt(m)))
        means.append(np.zeros(m))
    design = np.concatenate(parts, axis=2)
    return fit_map(design, evidence, np.concatenate(means), np.concatenate(sds) ** -2.0)


def _draw(
    modes: Sequence[Mode],
    weights: Floats,
    size: int,
    width: int,
    rng: np.random.Generator,
) -> Floats:
    """Parameter draws (size, width) of the mixture; deviations that a component lacks are 0.

    Components are taken in proportion to their weight as nearly as whole numbers allow
    (systematic sampling), which leaves less Monte Carlo error than drawing them.
    """
    points = (np.arange(size) + rng.random()) / size
    chosen = np.minimum(np.searchsorted(np.cumsum(weights), points), len(modes) - 1)
    out = np.zeros((size, width))
    for number, mode in enumerate(modes):
        rows = np.flatnonzero(chosen == number)
        p = len(mode.coefficients)
        half = rng.standard_normal(((len(rows) + 1) // 2, p))
        # In pairs z, -z: what is odd in the noise cancels from every mean over draws.
        normal = np.concatenate([half, -half])[: len(rows)]
        root = np.linalg.cholesky(mode.hessian)
        out[rows, :p] = mode.coefficients + np.linalg.solve(root.T, normal.T).T
    return out[rng.permutation(size)]


@dataclass(frozen=True, eq=False)
class _FittedTempered(FittedLabelModel):
    index: _Index
    draws: Floats
    interval_draws: Floats
    salt: int
    weights: Floats
    converged: bool
    n_informed: int

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        probabilities = probabilities_of(predictions, self.index.models, "tempered-ensemble")
        features = self.index.features(probabilities)
        parameters = _TemperedDraws(features, predictions.evidence, self.draws)
        slope = self.draws[:, predictions.n_classes]
        return LabelPosterior(
            parameters.mean(),
            parameters,
            predictions.keys,
            salt=self.salt,
            interval_parameters=_TemperedDraws(features, predictions.evidence, self.interval_draws),
            status=self._status(),
            warnings=self._warnings(),
            diagnostics={
                "slope": float(slope.mean()),
                "slope_sd": float(slope.std()),
                "log_pool_scale": self.index.log_scale,
                "component_weights": [float(w) for w in self.weights],
                "parameter_draws": len(self.draws),
            },
        )

    def _status(self) -> Status:
        if not self.converged:
            return Status.NOT_CONVERGED
        return Status.OK if self.n_informed else Status.ASSUMPTION

    def _warnings(self) -> tuple[str, ...]:
        if not self.converged:
            return ("not-converged: Newton's method did not reach the posterior mode",)
        if not self.n_informed:
            return (
                "assumption: no labels; the estimates rest on the prior belief that the averaged "
                "classifier is close to calibrated",
            )
        return ()


@dataclass(frozen=True, eq=False)
class _TemperedDraws:
    features: _Features
    evidence: Floats
    coefficients: Floats

    @property
    def size(self) -> int:
        return len(self.coefficients)

    def prepare(self) -> None:
        """Nothing to do: a block is a matrix product."""

    def block(self, index: Ints, rows: Ints | slice) -> Floats:
        beta = self.coefficients[index]
        pooled, deviations = self.features.pooled[rows], self.features.deviations[rows]
        n, k = pooled.shape
        logits = (deviations.reshape(n * k, -1) @ beta[:, k + 1 :].T).reshape(n, k, len(index))
        logits += pooled[:, :, None] * beta[:, k]
        logits += beta[:, :k].T
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


METHOD = Method(
    "tempered-ensemble",
    TemperedEnsemble,
    "the averaged classifier, recalibrated by the labels under a sceptical prior",
    "The classifiers' probabilities are averaged. A few coefficients (how much to trust the "
    "average, how much each classifier's deviation from it) are learned from the labels, "
    "starting from the belief that the average is nearly calibrated. Every item then gets a "
    "probability for each class, and every metric is computed from those.",
    (
        "labeled items are a random sample of all items",
        "items of equal scores have equal class probabilities, whether labeled or not",
        "the averaged classifier is roughly calibrated, until labels say otherwise",
    ),
    (
        "all classifiers share the same mistakes and there are few labels",
        "the classifiers together are far from calibrated and labels are fewer than about 20",
        "labeled items were picked for being hard, or easy",
    ),
    "Bayesian tempered ensemble: fewlabels documentation, after Shanmugam et al. (2025)",
    diagnostics={
        "slope": "whether the averaged classifier is sharpened (above 1) or softened (below 1)",
        "slope_sd": "how uncertain that slope is",
        "log_pool_scale": "by how much the mean of the log probabilities is scaled to be as "
        "confident as the mean of the probabilities",
        "component_weights": "how far the labels favour each of the five priors, from the most "
        "trusting to the least",
        "parameter_draws": "how many draws of the coefficients the estimates average over",
    },
    chosen_by_score="yes, where they were picked by the scores of the classifiers pooled: given "
    "these, only the label itself informs the coefficients",
)
