"""LabelShift: the classes are not as frequent among the unlabeled items as among the labeled.

P(score | class) is the same for both. With p the frequencies among the labeled items and q those
among the unlabeled, w = q / p are the class weights: P_q(class | score) is proportional to
w(class) P_p(class | score).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from fewlabels.errors import InputError
from fewlabels.kernels.arrays import Bools, Floats, Ints, UInts
from fewlabels.kernels.blocks import index_blocks, map_blocks
from fewlabels.kernels.counter_based import exponentials
from fewlabels.methods.base import FittedLabelModel, LabelModel
from fewlabels.posterior import LabelPosterior, ParameterDraws, first_block
from fewlabels.predictions import Predictions
from fewlabels.shifts.traits import Split, labeled_mask

_FEWEST_DRAWS = 200
_DRAWS_AT_ONCE = 50
_MOST_UNLABELED = 2000
"""Unlabeled items that frequencies are learned from: so many leave .01 of standard error."""

_BIAS_SPREAD = 2.5
"""Prior standard deviation of the bias, in log odds: labeled items may be of any population."""

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

    P(scores | class) is taken to be the same for both. What the model learned from the labels
    holds under the labeled items' class frequencies p; those of the unlabeled items, q, maximise
    the likelihood of their scores, and P_q(class | s) is proportional to (q / p) P_p(class | s)
    (Saerens et al. 2002). Each parameter draw finds its own p, the mean of its P_p over the
    labeled items' scores (Alexandari et al. 2020), and its own q, both under Bayesian-bootstrap
    weights of the items: how uncertain the calibration and the frequencies are, jointly, is in the
    draws. The model is the calibration that Alexandari et al. found to be needed.

    Parameters
    ----------
    model
        A label model that learns P(class | scores) from labeled items. One that learns how
        frequent the classes are from all items (a mixture) has no use for this.
    """

    model: LabelModel

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelShift:
        """Fit the model, then the frequencies under each of its draws.

        Raises
        ------
        InputError
            If no item has a label, or none lacks one; items of sampling weight 0 do not count.
        """
        split = Split.of(predictions)
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
            _Ratios.of(posterior, items),
            tuple(None if own is None else _Ratios.of(own, items) for own in posterior.per_model),
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

        parts = list(map_blocks(run, chunks))
        return Frequencies(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def likeliest(self, probabilities: Floats) -> Frequencies:
        """Source and target frequencies of one set of probabilities (n, K)."""
        p, weight = probabilities[:, :, None], self.predictions.weight[:, None]
        return self._solve(p, weight, np.zeros((p.shape[1], 1)))

    def _solve(self, p: Floats, weights: Floats, noise: Floats) -> Frequencies:
        of_class, labeled = self.labels >= 0, self.labeled
        p = np.maximum(p, _LEAST)  # a class that the model rules out here may be there elsewhere
        bias = bias_correction(p[of_class], self.labels[of_class], noise, spread=_BIAS_SPREAD)
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
    def of(posterior: LabelPosterior, items: _Items) -> _Ratios:
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
        target = ~labeled_mask(predictions)
        per_model = tuple(
            own if own is None or ratios is None else _adjusted(own, ratios, target)
            for own, ratios in zip(posterior.per_model, self.per_model, strict=True)
        )
        return replace(_adjusted(posterior, self.ratios, target), per_model=per_model)


def _adjusted(posterior: LabelPosterior, ratios: _Ratios, target: Bools) -> LabelPosterior:
    parameters = _Reweighted(posterior.parameters, ratios.draws.factors, target)
    of_intervals = None
    if posterior.interval_parameters is not None:
        of_intervals = _Reweighted(posterior.interval_parameters, ratios.interval.factors, target)
    probabilities = None
    if posterior.value_from == "marginals":
        probabilities = posterior.probabilities.copy()
        probabilities[target] *= ratios.point.factors[0]
        probabilities[target] /= probabilities[target].sum(axis=1, keepdims=True)
    return replace(
        posterior,
        given=probabilities,
        parameters=parameters,
        interval_parameters=of_intervals,
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

    Parameters
    ----------
    probabilities
        P(class | score) under the source frequencies, per item, class and draw, (n, K, D).
    source
        The source frequencies p, positive, (K, D).
    item_weights
        Weights v of the items, (n, D).
    pseudo
        Items of each class added beforehand (a Dirichlet prior), so that no class vanishes.

    Notes
    -----
    The likelihood is that of Saerens, Latinne, Decaestecker (2002), whose EM step (their equation
    2.9) starts; it is concave in q, so Newton's steps on the simplex, taken where they go uphill
    inside it, end where EM would, in tens of steps instead of thousands. Draws do not meet.
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

    The intercepts log c of a logistic regression of the labels with offset log P, under a normal
    prior around 0; each draw takes its mode plus the noise of its Gaussian (Laplace)
    approximation. Source: the bias term of Alexandari, Kundaje, Shrikumar (2020), section 3.2.

    Parameters
    ----------
    probabilities
        P(class | score) of the labeled items, (n, K, D).
    labels
        Their classes, (n,).
    noise
        Standard normal numbers, (K, D); zeros give the mode.
    spread
        Standard deviation of the prior of log c.
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
