"""Label shift: classes are not as frequent among the unlabeled items as among the labeled.

P(score | class) is the same for both. With p the frequencies among the labeled items and q those
among the unlabeled, w = q / p are the class weights: P_q(class | score) is proportional to
w(class) P_p(class | score). First the label model that allows for it; then whether it is there, and
whether it is all there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import lsq_linear

from fewlabels.errors import InputError
from fewlabels.kernels.arrays import Array, Bools, Floats, Ints, UInts
from fewlabels.kernels.blocks import index_blocks, map_blocks
from fewlabels.kernels.counter_based import exponentials, uniforms
from fewlabels.kernels.interval_draws import ends
from fewlabels.kernels.simplex import linear_pool, mean_probability
from fewlabels.methods.base import FittedLabelModel, LabelModel
from fewlabels.methods.ensembles.ensembles import TemperedEnsemble
from fewlabels.methods.registry import METHODS
from fewlabels.posterior import LabelPosterior, ParameterDraws, first_block
from fewlabels.predictions import Predictions
from fewlabels.shifts.sampling_test import (
    POWER,
    Sizes,
    Split,
    beliefs,
    compared,
    distances,
    energy_distances,
    first_and_random,
    mean_differences,
    p_value,
    points,
)

_FEWEST_DRAWS = 200
_DRAWS_AT_ONCE = 50
_MOST_UNLABELED = 2000
"""Unlabeled items from which frequencies are learned, enough for a standard error of .01."""

_BIAS_SPREAD = 2.5
"""Prior standard deviation of the bias, in log odds, as labeled items may be of any population."""

_LEAST = 1e-9
_WARM_UP = 5
_TOLERANCE = 1e-9
_SALT, _NOISE = 0x5A1F7, 11


class Frequencies(NamedTuple):
    """Class frequencies of the labeled (source) and the unlabeled (target) items, (D, K) each.

    `bias` are the factors that calibrate the model's probabilities for the labeled items.
    """

    source: Floats
    target: Floats
    bias: Floats

    @property
    def weights(self) -> Floats:
        """Class weights w = target / source, (D, K)."""
        return self.target / self.source

    @property
    def factors(self) -> Floats:
        """What turns the model's P(class | s) into that of the unlabeled items, (D, K)."""
        return self.weights * self.bias


@dataclass(frozen=True)
class LabelShift(LabelModel):
    """A label model of P(class | scores), for unlabeled items with other class frequencies.

    P(scores | class) is taken to be the same for both. What the model learned from the labels holds
    under the labeled items' class frequencies p. Those of the unlabeled items, q, maximise the
    likelihood of their scores, and P_q(class | s) is proportional to (q / p) P_p(class | s)
    (Saerens et al. 2002). Each parameter draw finds its own p, the mean of its P_p over the labeled
    items' scores (Alexandari et al. 2020), and its own q, both under Bayesian-bootstrap weights of
    the items, so the draws hold the joint uncertainty of calibration and frequencies.

    `model` learns P(class | scores) from labeled items, and so is the calibration that Alexandari
    et al. found to be needed. A model that learns class frequencies from all items (a mixture)
    needs no such correction.
    """

    model: LabelModel

    @property
    def grouped(self) -> bool:
        """As its model."""
        return self.model.grouped

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelShift:
        """Fit the model, then the frequencies under each of its draws.

        Needs labeled and unlabeled items; those of sampling weight 0 do not count.
        """
        split = Split.from_predictions(predictions)
        if split.missing is not None:
            raise InputError(
                f"label shift is between labeled and unlabeled items, and {split.missing}; leave "
                "the correction out"
            )
        inner = self.model.fit(predictions, rng)
        salt = int(rng.integers(2**63))
        unlabeled = np.flatnonzero(split.unlabeled)
        order = np.argsort(predictions.keys[unlabeled])
        rows = np.concatenate([np.flatnonzero(split.labeled), unlabeled[order[:_MOST_UNLABELED]]])
        blank = predictions.with_evidence(None).take(rows)
        labels = predictions.labels[rows]
        items = _Items(blank, predictions.keys[rows], labels, split.labeled[rows], salt)
        posterior = inner.posterior(blank)
        return FittedLabelShift(
            inner,
            _Ratios.from_posterior(posterior, items),
            tuple(
                None if one is None else _Ratios.from_posterior(one, items)
                for one in posterior.per_model
            ),
        )


@dataclass(frozen=True, eq=False)
class _Items:
    """The items that frequencies are learned from, their labels left out."""

    predictions: Predictions
    keys: UInts
    labels: Ints
    labeled: Bools
    salt: int

    def frequencies(self, parameters: ParameterDraws, size: int) -> Frequencies:
        """Source and target frequencies of draws 0 .. size-1."""
        first_block(parameters)
        chunks = index_blocks(size, _DRAWS_AT_ONCE)

        def run(index: Ints) -> Frequencies:
            p = parameters.block(index % parameters.size, slice(None))
            weights = exponentials(self.keys, index, self.salt ^ _SALT)
            weights *= self.predictions.weight[:, None]
            seed = [self.salt & (2**64 - 1), _NOISE, int(index[0])]
            noise = np.random.default_rng(seed).standard_normal((p.shape[1], len(index)))
            return self._solve(p, weights, noise)

        results = list(map_blocks(run, chunks))
        return Frequencies(*(np.concatenate(arrays) for arrays in zip(*results, strict=True)))

    def likeliest(self, probabilities: Floats) -> Frequencies:
        """Source and target frequencies of one set of probabilities (n, K)."""
        p, weight = probabilities[:, :, None], self.predictions.weight[:, None]
        return self._solve(p, weight, np.zeros((p.shape[1], 1)))

    def _solve(self, p: Floats, weights: Floats, noise: Floats) -> Frequencies:
        with_class, labeled = self.labels >= 0, self.labeled
        p = np.maximum(p, _LEAST)  # a class that the model rules out here may be there elsewhere
        bias = bias_correction(p[with_class], self.labels[with_class], noise, spread=_BIAS_SPREAD)
        p = p * bias
        p /= p.sum(axis=1, keepdims=True)
        mass, rest = weights[labeled], weights[~labeled]
        source = np.einsum("nkd,nd->kd", p[labeled], mass) / mass.sum(axis=0)
        rest = rest * (len(rest) / rest.sum(axis=0))
        target = likeliest_frequencies(p[~labeled], source, rest)
        return Frequencies(source.T, target.T, bias.T)


class _Ratios(NamedTuple):
    """Frequencies by which one posterior's marginals, draws and interval draws are adjusted."""

    point: Frequencies
    draws: Frequencies
    interval: Frequencies

    @staticmethod
    def from_posterior(posterior: LabelPosterior, items: _Items) -> _Ratios:
        point = items.likeliest(posterior.probabilities)
        size = max(posterior.parameters.size, _FEWEST_DRAWS)
        draws = items.frequencies(posterior.parameters, size)
        if posterior.interval_parameters is None:
            return _Ratios(point, draws, draws)
        size = max(posterior.interval_parameters.size, _FEWEST_DRAWS)
        return _Ratios(point, draws, items.frequencies(posterior.interval_parameters, size))


@dataclass(frozen=True, eq=False)
class FittedLabelShift(FittedLabelModel):
    """A fitted model, and how its probabilities change where nothing is known of a label."""

    inner: FittedLabelModel
    ratios: _Ratios
    per_model: tuple[_Ratios | None, ...]

    @property
    def frequencies(self) -> Frequencies:
        """Class frequencies of the labeled and the unlabeled items, for values, (D, K) each."""
        return self.ratios.draws

    @property
    def interval_frequencies(self) -> Frequencies:
        """The same, in the draws that intervals use."""
        return self.ratios.interval

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        """Posterior of these items; those of whose label nothing is known are adjusted."""
        posterior = self.inner.posterior(predictions)
        target = ~predictions.told
        per_model = tuple(
            one if one is None or ratios is None else _adjusted(one, ratios, target)
            for one, ratios in zip(posterior.per_model, self.per_model, strict=True)
        )
        return replace(_adjusted(posterior, self.ratios, target), per_model=per_model)


def _adjusted(posterior: LabelPosterior, ratios: _Ratios, target: Bools) -> LabelPosterior:
    parameters = _Reweighted(posterior.parameters, ratios.draws.factors, target)
    interval_draws = None
    if posterior.interval_parameters is not None:
        interval_draws = _Reweighted(posterior.interval_parameters, ratios.interval.factors, target)
    probabilities = None
    if posterior.value_from == "marginals":
        probabilities = posterior.probabilities.copy()
        probabilities[target] *= ratios.point.factors[0]
        probabilities[target] /= probabilities[target].sum(axis=1, keepdims=True)
    return replace(
        posterior,
        given=probabilities,
        parameters=parameters,
        interval_parameters=interval_draws,
        score_rates=None,  # those of the labeled items' population
        vote_rates=None,
    )


@dataclass(frozen=True, eq=False)
class _Reweighted:
    """Parameter draws, the target items' probabilities times factors (D, K)."""

    inner: ParameterDraws
    factors: Floats
    target: Bools

    @property
    def size(self) -> int:
        return len(self.factors)

    def block(self, index: Ints, rows: Ints | slice) -> Floats:
        """P(label | draw) of these items, shape (n, K, D)."""
        out = self.inner.block(index % self.inner.size, rows)
        target = np.flatnonzero(self.target[rows])
        adjusted = out[target] * self.factors[index].T
        adjusted /= adjusted.sum(axis=1, keepdims=True)
        out[target] = adjusted
        return out


def likeliest_frequencies(
    probabilities: Floats,
    source: Floats,
    item_weights: Floats,
    *,
    pseudo: float = 1.0,
    iterations: int = 200,
) -> Floats:
    """Frequencies q (K, D) that maximise sum_i v_i log sum_k (q_k / p_k) P(k | s_i).

    `probabilities` (n, K, D) are P(class | score) under the `source` frequencies p > 0 (K, D), for
    each item, class and draw; `item_weights` are v (n, D). A Dirichlet prior adds `pseudo` items of
    each class, so that no class vanishes.

    The likelihood is that of Saerens, Latinne, Decaestecker (2002). After their EM step (equation
    2.9) come Newton's steps on the simplex, taken where they stay inside and increase it: it is
    concave in q, so they end where EM would, in tens of steps instead of thousands. Draws are
    independent.
    """
    ratio = probabilities / source
    k = len(source)
    q = source / source.sum(axis=0)
    if not len(ratio):
        return q
    total = item_weights.sum(axis=0) + k * pseudo
    value = _log_likelihood(ratio, item_weights, q, pseudo)
    for number in range(iterations):
        share = ratio / np.einsum("nkd,kd->nd", ratio, q)[:, None, :]
        weighted = share * item_weights[:, None, :]
        gradient = weighted.sum(axis=0) + pseudo / q
        following = q * gradient / total
        if number >= _WARM_UP:
            newton = q + _newton_step(share, weighted, gradient, q, pseudo)
            inside = (newton > 0).all(axis=0)
            candidate = np.where(inside, newton, following)
            likelihood = _log_likelihood(ratio, item_weights, candidate, pseudo)
            following = np.where(likelihood >= value, candidate, following)
        moved = np.abs(following - q).max()
        q = following / following.sum(axis=0)
        value = _log_likelihood(ratio, item_weights, q, pseudo)
        if moved < _TOLERANCE:
            break
    return q


def _log_likelihood(ratio: Floats, item_weights: Floats, q: Floats, pseudo: float) -> Floats:
    mixture = np.einsum("nkd,kd->nd", ratio, q)
    out: Floats = (item_weights * np.log(mixture)).sum(axis=0) + pseudo * np.log(q).sum(axis=0)
    return out


def _newton_step(
    share: Floats, weighted: Floats, gradient: Floats, q: Floats, pseudo: float
) -> Floats:
    """Step (K, D) to the top of the parabola on the plane where frequencies sum to 1."""
    k, d = q.shape
    system = np.zeros((d, k + 1, k + 1))
    # As batched products: the einsum of three axes would run without BLAS.
    system[:, :k, :k] = weighted.transpose(2, 1, 0) @ share.transpose(2, 0, 1)
    system[:, range(k), range(k)] += (pseudo / q**2).T
    system[:, :k, k] = system[:, k, :k] = 1.0
    right = np.zeros((d, k + 1))
    right[:, :k] = gradient.T
    step: Floats = np.linalg.solve(system, right[:, :, None])[:, :k, 0].T
    return step


def bias_correction(
    probabilities: Floats, labels: Ints, noise: Floats, *, spread: float, iterations: int = 30
) -> Floats:
    """Factors c (K, D) by which c(class) P(class | score) is calibrated for labeled items.

    They are exp of the intercepts of a logistic regression of `labels` (n,) with offset log P; P is
    `probabilities` (n, K, D). log c has a normal prior with mean 0 and standard deviation `spread`;
    each draw is its mode plus `noise` (K, D), standard normal numbers, scaled by the Laplace
    approximation (zeros give the mode). Source: the bias term of Alexandari, Kundaje, Shrikumar
    (2020), section 3.2.
    """
    _, k, d = probabilities.shape
    log_c = np.zeros((k, d))
    counts = np.bincount(labels, minlength=k)[:, None]
    precision = np.eye(k) / spread**2
    for _ in range(iterations):
        p = probabilities * np.exp(log_c)
        p /= p.sum(axis=1, keepdims=True)
        total = p.sum(axis=0)
        gradient = counts - total - log_c / spread**2
        hessian = precision - p.transpose(2, 1, 0) @ p.transpose(2, 0, 1)
        hessian[:, range(k), range(k)] += total.T
        step = np.linalg.solve(hessian, gradient.T[:, :, None])[:, :, 0].T
        # The softmax's curvature is at most 1/2 a unit: steps of one unit cannot overshoot twice.
        log_c += step / np.maximum(np.abs(step).max(axis=0), 1.0)
        if np.abs(step).max() < 1e-9:
            break
    root = np.linalg.cholesky(hessian)
    log_c += np.linalg.solve(root.transpose(0, 2, 1), noise.T[:, :, None])[:, :, 0].T
    return np.exp(log_c - log_c.mean(axis=0))


_IMPUTATIONS = 10

LEARN_FREQUENCIES = frozenset(m.name for m in METHODS.values() if m.frequencies == "items")
"""Methods that learn how frequent the classes are from all items, labeled or not.

Under label shift their P(class | scores) of unlabeled items is right as it is.
"""

UNLEARNED = frozenset(m.name for m in METHODS.values() if m.frequencies == "classifiers")
"""Methods that take the classifiers as they are: labels, and their frequencies, do not matter."""

_NOT_ADJUSTED = frozenset(m.name for m in METHODS.values() if m.frequencies != "labels")
"""Methods that have no P(class | scores), learned from labels alone, to adjust."""


class ClassShift(NamedTuple):
    """Class frequencies of the labeled and the unlabeled items, as a label model has them.

    `predictions` are what the model was fitted to. `own` says whether it is the method that was
    asked for; where that learns no P(class | scores) from labels, or not as it stands, it is the
    tempered ensemble of whatever the classifiers give.
    """

    predictions: Predictions
    fitted: FittedLabelShift
    own: bool

    @staticmethod
    def from_method(
        predictions: Predictions,
        method: str,
        model: LabelModel,
        rng: np.random.Generator,
        by: Sequence[str] = (),
    ) -> ClassShift:
        """Fit the method's model, or the tempered ensemble; groups `by` may have their curves."""
        same_method = method not in _NOT_ADJUSTED
        modelled = predictions
        if not same_method:  # a probability of whatever each classifier gives, votes and scores too
            modelled = Predictions(
                beliefs(predictions),
                predictions.labels,
                histogram=predictions.histogram,
                weight=predictions.weight,
                models=predictions.models,
                classes=predictions.classes,
                positive=predictions.positive,
            ).in_clusters(predictions.clusters)
        shifted = LabelShift(model if same_method else TemperedEnsemble())
        fitted = shifted.fit(shifted.known(modelled, by), rng)
        return ClassShift(modelled, fitted, same_method)


@dataclass(frozen=True, eq=False)
class LabelShiftFit:
    """Class frequencies of the labeled and the unlabeled items, and whether they differ.

    Of all K classes: `labeled` among the labels, `unlabeled` estimated with its interval `low` to
    `high`, `weights` q / p with theirs; `black_box` and `regularised` are the weights of BBSE and
    RLLS. `p_value` tests that the frequencies are the same, `fit_p_value` that label shift is all
    there is: a small one says that it is not. `detectable` is the change of a class's frequency
    that the test would find in four cases of five.
    """

    labeled: Floats
    unlabeled: Floats
    low: Floats
    high: Floats
    weights: Floats
    weights_low: Floats
    weights_high: Floats
    black_box: Floats
    regularised: Floats
    p_value: float
    fit_p_value: float
    detectable: Floats


def label_shift_fit(
    classes: ClassShift, rng: np.random.Generator, sizes: Sizes, level: float
) -> LabelShiftFit:
    """Estimate and test the shift of the class frequencies.

    The test of equal frequencies is exact. If P(score | class) is the same, they are equal only if
    the scores have the same distribution, so that random subsets of all items give the distribution
    of the mean pooled probabilities of as many items (a score test of the frequencies).

    The test of fit draws the unlabeled items' classes from the fitted model and permutes labeled
    items within each class: the sum of energy distances within classes is compared with those of
    random subsets of each class. Twice the mean p-value of several draws is a p-value (Rueschendorf
    1982), if the fitted model is right.
    """
    chosen, n_labeled = compared(classes.predictions, sizes)
    p = beliefs(chosen)
    pool = linear_pool(p, mean_probability(p))
    every = first_and_random(rng, chosen.n_items, n_labeled, sizes.permutations)
    drawn = mean_differences(pool, every)
    fitted = classes.fitted
    posterior = fitted.posterior(chosen).probabilities
    values, interval = fitted.frequencies, fitted.interval_frequencies
    low, high = ends(interval.target, level)
    w_low, w_high = ends(interval.weights, level)
    hard, k = pool.argmax(axis=1), pool.shape[1]
    with_class = np.flatnonzero(chosen.labels[:n_labeled] >= 0)
    labels, predicted = chosen.labels[with_class], hard[with_class]
    bbse, rlls = (
        black_box_weights(predicted, labels, hard[n_labeled:], k, ridge=ridge)
        for ridge in (0.0, 1 / max(len(labels), 1))
    )
    counts = np.bincount(labels, minlength=k)
    # Mean differences in units of the pool's covariance.
    inverse = np.linalg.pinv(np.cov(pool.T), rcond=1e-6, hermitian=True)
    size = np.einsum("bk,kl,bl->b", drawn, inverse, drawn)
    return LabelShiftFit(
        labeled=counts / max(counts.sum(), 1),
        unlabeled=values.target.mean(axis=0),
        low=low,
        high=high,
        weights=np.median(values.weights, axis=0),
        weights_low=w_low,
        weights_high=w_high,
        black_box=bbse,
        regularised=rlls,
        p_value=p_value(float(size[0]), size[1:]),
        fit_p_value=_fit_test(chosen, points(p), posterior, n_labeled, rng, sizes),
        detectable=_detectable(drawn[1:], pool, posterior),
    )


def black_box_weights(
    predicted: Ints, labels: Ints, target: Ints, n_classes: int, *, ridge: float = 0.0
) -> Floats:
    """Class weights w (K,) that turn the confusion matrix into the target's predictions.

    C holds the joint frequencies of `predicted` and `labels` (n,) of the labeled items, m those of
    the predictions `target` (u,) of the others: minimise |C w - m|^2 + ridge |w - 1|^2 over w >= 0.
    Without a ridge it is BBSE, Lipton, Wang, Smola (2018), equation 2, if C is invertible and w >=
    0; with one, RLLS, Azizzadenesheli et al. (2019), section 2.1. A class without labels keeps
    weight 1.
    """
    cells = np.bincount(predicted * n_classes + labels, minlength=n_classes**2)
    joint = cells.reshape(n_classes, n_classes) / max(len(labels), 1)
    shares = np.bincount(target, minlength=n_classes) / max(len(target), 1)
    gap = shares - joint.sum(axis=1)
    there = joint.any(axis=0)
    design = np.concatenate([joint[:, there], np.sqrt(ridge) * np.eye(int(there.sum()))])
    out = np.ones(n_classes)
    if there.any():
        goal = np.concatenate([gap, np.zeros(int(there.sum()))])
        out[there] += lsq_linear(design, goal, bounds=(-1.0, np.inf), method="bvls").x
    return np.maximum(out, 0.0)


def _detectable(drawn: Floats, pool: Floats, posterior: Floats) -> Floats:
    """Change of each class's frequency that moves the mean pool by 2.8 standard errors, (K,)."""
    out = np.full(pool.shape[1], np.inf)
    for k in range(pool.shape[1]):
        r = posterior[:, k]
        if 0 < r.sum() < len(r):
            inside = (pool[:, k] * r).sum() / r.sum()
            apart = inside - (pool[:, k] * (1 - r)).sum() / (1 - r).sum()
            if apart > 1e-9:
                out[k] = POWER * drawn[:, k].std() / apart
    return np.minimum(out, 1.0)


def _fit_test(
    chosen: Predictions,
    places: Floats,
    posterior: Floats,
    n_labeled: int,
    rng: np.random.Generator,
    sizes: Sizes,
) -> float:
    """P-value of label shift as the only difference; 1 where no class can tell."""
    apart = distances(places)
    salt = int(rng.integers(2**62))
    u = uniforms(chosen.keys, np.arange(_IMPUTATIONS), salt)
    labels = (u[:, None, :] > np.cumsum(posterior, axis=1)[:, :-1, None]).sum(axis=1)
    labeled = chosen.labels >= 0
    labels[labeled] = chosen.labels[labeled][:, None]
    count = max(sizes.permutations // _IMPUTATIONS, 99)
    each = [_within(apart, labels[:, i], n_labeled, rng, count) for i in range(_IMPUTATIONS)]
    return min(2 * float(np.mean(each)), 1.0)


def _within(
    apart: Floats, labels: Array, n_labeled: int, rng: np.random.Generator, count: int
) -> float:
    """P-value of the energy distances within classes, weighted by their labeled items."""
    total = np.zeros(count + 1)
    for k in np.unique(labels[:n_labeled]):
        rows = np.flatnonzero(labels == k)
        size = int((rows < n_labeled).sum())
        if size < len(rows):
            distances = apart[np.ix_(rows, rows)]
            every = first_and_random(rng, len(rows), size, count)
            # n m / (n + m) brings the distance of any sizes to one scale under the null.
            scale = size * (len(rows) - size) / len(rows)
            total += scale * energy_distances(distances, every)
    return p_value(float(total[0]), total[1:])
