"""Temperature, vector and matrix scaling: likelihoods of label counts, and their estimators."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.optimize import brentq
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from fewlabels.calibration import inputs as door_of
from fewlabels.calibration.penalties import CROSS_VALIDATED, Penalised
from fewlabels.checks.arguments import not_negative
from fewlabels.errors import UsageError
from fewlabels.kernels.arrays import Array, Floats
from fewlabels.kernels.blocks import map_blocks, spans
from fewlabels.kernels.dirichlet_multinomial import FLOOR
from fewlabels.kernels.simplex import softmax

LOG_TEMPERATURES = (-7.0, 7.0)
"""Range of log temperatures: beyond it, a softmax of logits is an argmax or flat."""

_BLOCK = 2**16
"""Numbers of a block of rows."""


class Labels(NamedTuple):
    """Weighted counts (n, K), scaled so that all of them sum to 1, and their row sums (n,)."""

    counts: Floats
    totals: Floats


class Temperature(NamedTuple):
    """A log temperature, whether it is a minimum inside the range, and evaluations spent."""

    log_temperature: float
    converged: bool
    n_iter: int


def scaled_labels(counts: Floats, weight: Floats) -> Labels:
    """Counts (n, K) of items with a weight (n,), ready for the likelihoods here."""
    weighted = counts * weight[:, None]
    weighted /= weighted.sum()
    return Labels(weighted, weighted.sum(axis=1))


def negative_log_likelihood(logits: Floats, labels: Labels) -> float:
    """Mean over all labels of -log softmax(logits), multinomial coefficients left out."""
    return sum(
        map_blocks(lambda rows: _residual(logits[rows].copy(), labels, rows), _blocks(logits))
    )


def _blocks(logits: Floats) -> list[slice]:
    """Blocks of rows that stay in the cache; always the same, whatever the number of threads."""
    return spans(len(logits), max(_BLOCK // logits.shape[1], 1))


def _residual(z: Floats, labels: Labels, rows: slice) -> float:
    """The loss of some rows of logits z, which are overwritten by its derivative in them."""
    totals, counts = labels.totals[rows], labels.counts[rows]
    z -= z.max(axis=1, keepdims=True)
    fit = float(np.einsum("nk,nk->", counts, z))
    np.exp(z, out=z)
    total = z.sum(axis=1)
    loss = float(totals @ np.log(total)) - fit
    z *= (totals / total)[:, None]
    z -= counts
    return loss


def temperature_loss(log_temperature: float, logits: Floats, labels: Labels) -> tuple[float, float]:
    """Negative log-likelihood of softmax(u / t), and its derivative in log t.

    Source: Guo et al. (2017), section 4.2.
    """
    sharpness = np.exp(-log_temperature)

    def block_loss(rows: slice) -> tuple[float, float]:
        z = logits[rows] * sharpness
        loss = _residual(z, labels, rows)
        return loss, float(np.einsum("nk,nk->", z, logits[rows]))

    value, slope = map(sum, zip(*map_blocks(block_loss, _blocks(logits)), strict=True))
    return value, -slope * float(sharpness)


def fit_temperature(logits: Floats, labels: Labels) -> Temperature:
    """The log temperature of least loss: the root of a derivative that changes sign once.

    The loss is convex in 1/t. Without a root in the range (no label is ever wrong, or predictions
    are worse than none) the nearer end is returned, not converged.
    """
    u = logits - logits.max(axis=1, keepdims=True)  # the same softmax; no overflow at a small t

    def slope(log_t: float) -> float:
        # In units of 1/t, so that the root-finder sees a monotone function, not one that dies out.
        return temperature_loss(log_t, u, labels)[1] * float(np.exp(log_t))

    low, high = LOG_TEMPERATURES
    at_low, at_high = slope(low), slope(high)
    if at_low >= 0 or at_high <= 0:
        flat = at_low >= 0 and at_high <= 0  # the same logit for all classes: any t will do
        return Temperature(0.0 if flat else low if at_low >= 0 else high, flat, 2)
    root, report = brentq(slope, low, high, xtol=1e-13, full_output=True)
    return Temperature(float(root), bool(report.converged), int(report.function_calls) + 2)


class Affine(NamedTuple):
    """Which coefficients of W u + b there are: all of W (matrix scaling) or its diagonal (vector).

    Penalties: `off_diagonal` times the mean square of the off-diagonal entries of W, `intercept`
    times that of b (ODIR: Kull et al. 2019, section 3; vector scaling has the second alone).
    """

    full: bool
    off_diagonal: float
    intercept: float


def apply_affine(weights: Floats, intercept: Floats, logits: Floats) -> Floats:
    """W u + b for every row u, with W (K, K) or its diagonal (K,)."""
    scaled = logits * weights if weights.ndim == 1 else logits @ weights.T
    scaled += intercept
    return scaled


def split_coefficients(theta: Floats, k: int) -> tuple[Floats, Floats]:
    """W, (K, K) or (K,), and b (K,) of a flat vector."""
    weights = theta[:-k]
    return weights.reshape(k, k) if len(weights) > k else weights, theta[-k:]


def identity(k: int, *, full: bool) -> Floats:
    """The flat coefficients that leave logits as they are."""
    weights = np.eye(k).ravel() if full else np.ones(k)
    return np.concatenate([weights, np.zeros(k)])


def affine_loss(
    theta: Floats, logits: Floats, labels: Labels, form: Affine
) -> tuple[float, Floats]:
    """Penalised negative log-likelihood of softmax(W u + b), and its gradient, both flat."""
    k = logits.shape[1]
    weights, intercept = split_coefficients(theta, k)

    def block_loss(rows: slice) -> tuple[float, Floats]:
        u = logits[rows]
        z = apply_affine(weights, intercept, u)
        loss = _residual(z, labels, rows)
        by_weights = z.T @ u if form.full else np.einsum("nk,nk->k", z, u)
        return loss, np.concatenate([by_weights.ravel(), z.sum(axis=0)])

    value, slope = map(sum, zip(*map_blocks(block_loss, _blocks(logits)), strict=True))
    bend = penalty_curvature(k, form)
    away = bend * theta
    if form.full:
        away[: k * k : k + 1] = 0.0
    return value + 0.5 * float(away @ theta), slope + away


def penalty_curvature(k: int, form: Affine) -> Floats:
    """Second derivatives of the penalties, flat."""
    intercept = np.full(k, 2 * form.intercept / k)
    if not form.full:
        return np.concatenate([np.zeros(k), intercept])
    off = np.full((k, k), 2 * form.off_diagonal / (k * (k - 1)))
    np.fill_diagonal(off, 0.0)
    return np.concatenate([off.ravel(), intercept])


def affine_hessian(theta: Floats, logits: Floats, labels: Labels, form: Affine) -> Floats:
    """Second derivatives of `affine_loss`, (P, P)."""
    k = logits.shape[1]
    weights, intercept = split_coefficients(theta, k)

    def block_hessian(rows: slice) -> Floats:
        u = logits[rows]
        inputs = np.column_stack([u, np.ones(len(u))]) if form.full else u
        p = softmax(apply_affine(weights, intercept, u))
        mass = labels.totals[rows, None] * p
        return _spread(p, mass, inputs, full=form.full)

    hessian: Floats = sum(
        map_blocks(block_hessian, _blocks(logits)), np.diag(penalty_curvature(k, form))
    )
    return hessian


def _spread(p: Floats, mass: Floats, inputs: Floats, *, full: bool) -> Floats:
    """Second derivatives of the likelihood of some rows, (P, P): sum N x x' (diag(p) - p p')."""
    k = p.shape[1]
    if not full:
        moved = np.hstack([p * inputs, p])
        out = -np.hstack([mass * inputs, mass]).T @ moved
        blocks = [mass * inputs**2, mass * inputs, mass]
        at = np.arange(k)
        for (a, b), block_ in zip(((0, 0), (0, k), (k, k)), blocks, strict=True):
            out[at + a, at + b] += block_.sum(axis=0)
            if a != b:
                out[at + b, at + a] += block_.sum(axis=0)
        return out
    each = (p[:, :, None] * inputs[:, None, :]).reshape(len(p), -1)
    weighted = (mass[:, :, None] * inputs[:, None, :]).reshape(len(p), -1)
    every = -weighted.T @ each
    place = np.arange(k * (k + 1)).reshape(k, k + 1)  # a row per class; its last input is constant
    for a in range(k):
        every[np.ix_(place[a], place[a])] += weighted[:, place[a]].T @ inputs
    order = np.concatenate([place[:, :k].ravel(), place[:, k]])
    ordered: Floats = every[np.ix_(order, order)]
    return ordered


class _Scaling(ClassifierMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A map of logits that is fitted by maximum likelihood: what the three have in common.

    Subclasses give `_fit` and `_scaled`. `transform` is `predict_proba`, so that a scaling may
    stand before another calibration in a `Pipeline`.
    """

    inputs: str
    floor: float | None

    def fit(self, probabilities: Any, labels_or_histogram: Any, sample_weight: Any = None) -> Self:
        """Fit to probabilities (n, K) and labels (n,) or counts of labels (n, K)."""
        scores = door_of.scores(probabilities, self.inputs)
        n, k = scores.shape
        counts, classes = door_of.counts_and_classes(labels_or_histogram, n, k)
        weight = door_of.item_weights(sample_weight, n)
        door_of.some_labels(counts, weight)
        used = np.flatnonzero(counts.any(axis=1) & (weight > 0))
        self.floor_ = door_of.probability_floor(scores[used], self.inputs)
        if self.floor is not None:
            self.floor_ = max(not_negative("floor", self.floor), FLOOR)
        self._fit(self._logits(scores[used]), counts[used], weight[used])
        self.classes_ = classes
        self.n_features_in_ = k
        return self

    def predict_proba(self, probabilities: Any) -> Floats:
        """Calibrated probabilities (n, K)."""
        check_is_fitted(self)
        scores = door_of.scores(probabilities, self.inputs, self.n_features_in_)
        return softmax(self._scaled(self._logits(scores)))

    def transform(self, probabilities: Any) -> Floats:
        """Calibrated probabilities (n, K), for the next step of a `Pipeline`."""
        return self.predict_proba(probabilities)

    def predict(self, probabilities: Any) -> Array:
        """The likeliest class of each item (n,), the first on ties."""
        p = self.predict_proba(probabilities)  # first: it knows whether there is a fit
        return self.classes_[p.argmax(axis=1)]

    def score(
        self, probabilities: Any, labels_or_histogram: Any, sample_weight: Any = None
    ) -> float:
        """Mean log-likelihood of a label, for `GridSearchCV`: accuracy is blind to calibration."""
        check_is_fitted(self)
        scores = door_of.scores(probabilities, self.inputs, self.n_features_in_)
        counts, _ = door_of.counts_and_classes(labels_or_histogram, *scores.shape)
        weight = door_of.item_weights(sample_weight, len(scores))
        door_of.some_labels(counts, weight)
        logits = self._scaled(self._logits(scores))
        return -negative_log_likelihood(logits, scaled_labels(counts, weight))

    def _logits(self, scores: Floats) -> Floats:
        return door_of.as_logits(scores, self.inputs, self.floor_)

    def _fit(self, logits: Floats, counts: Floats, weight: Floats) -> None:
        raise NotImplementedError

    def _scaled(self, logits: Floats) -> Floats:
        raise NotImplementedError


class TemperatureScaling(_Scaling):
    """Temperature scaling: softmax(u / t), one number for all classes.

    Parameters
    ----------
    inputs
        What `fit` and `predict_proba` are given: "probabilities" (n, K), whose logits are their
        logarithms, or "logits" (n, K), any real numbers. Arrays, or what `numpy.asarray` reads,
        such as a PyTorch classifier's output.
    floor
        The least probability there is, as a logarithm follows. None = 1e-12 where no probability
        is 0, else half the least positive one in `fit`: zeros of nearest neighbours or of trees
        mean that the classifier cannot tell, not that the class is out of the question.

    Attributes
    ----------
    temperature_
        t, above 1 where the predictions were over-confident; between e^-7 and e^7.
    converged_
        False where t ended at an end of that range: no label was ever wrong (t to 0), or the
        predictions are worse than none (t to infinity).
    floor_
        The floor of the fit.
    classes_, n_features_in_, n_iter_
        Classes (K,), K, evaluations of the loss.

    Raises
    ------
    InputError
        No labels, counts that are negative or fractional, NaN, rows that do not sum to 1.

    Notes
    -----
    Labels are class indices 0 .. K-1 (-1, NaN or None = unknown, left out) or names that all occur;
    a histogram (n, K) counts an item's labels, each of which weighs the same. Source: Guo et al.
    (2017), section 4.2; Mimori et al. (2021), equation 82.

    Examples
    --------
    >>> import numpy as np
    >>> from fewlabels.calibration import TemperatureScaling
    >>> p = np.array([[0.99, 0.01], [0.98, 0.02], [0.01, 0.99], [0.97, 0.03]])
    >>> scaling = TemperatureScaling().fit(p, np.array([[3, 1], [4, 0], [1, 4], [1, 0]]))
    >>> bool(scaling.temperature_ > 1)
    True
    """

    def __init__(self, inputs: str = "probabilities", floor: float | None = None) -> None:
        self.inputs = inputs
        self.floor = floor

    def _fit(self, logits: Floats, counts: Floats, weight: Floats) -> None:
        minimum = fit_temperature(logits, scaled_labels(counts, weight))
        self.temperature_ = float(np.exp(minimum.log_temperature))
        self.converged_ = minimum.converged
        self.n_iter_ = minimum.n_iter

    def _scaled(self, logits: Floats) -> Floats:
        # Shifted first: at a small temperature the quotient could overflow.
        return (logits - logits.max(axis=1, keepdims=True)) / self.temperature_


class _AffineProblem(NamedTuple):
    """Logits and counts of labels (n, K) of items with a weight (n,)."""

    logits: Floats
    labels: Labels
    size: float
    """How much all labels weigh."""

    @staticmethod
    def from_items(logits: Floats, counts: Floats, weight: Floats) -> _AffineProblem:
        size = float(counts.sum(axis=1) @ weight)
        return _AffineProblem(logits, scaled_labels(counts, weight), size)

    def loss(self, theta: Floats, penalty: Affine) -> tuple[float, Floats]:
        return affine_loss(theta, self.logits, self.labels, penalty)

    def hessian(self, theta: Floats, penalty: Affine) -> Floats:
        return affine_hessian(theta, self.logits, self.labels, penalty)

    def misfit(self, theta: Floats) -> float:
        scaled = apply_affine(*split_coefficients(theta, self.logits.shape[1]), self.logits)
        return self.size * negative_log_likelihood(scaled, self.labels)


class _AffineScaling(Penalised, _Scaling):
    """Vector and matrix scaling: a penalised affine map of the logits.

    Subclasses give `_full` and `_keep`.
    """

    _full: bool

    def __init__(
        self,
        penalty: Any = CROSS_VALIDATED,
        penalties: tuple[float, ...] = (0.1, 1.0, 10.0),
        validation: str | int = "split",
        inputs: str = "probabilities",
        max_iter: int = 1000,
        tol: float = 1e-9,
        random_state: Any = 0,
        floor: float | None = None,
    ) -> None:
        self.penalty = penalty
        self.penalties = penalties
        self.validation = validation
        self.inputs = inputs
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.floor = floor

    def _fit(self, logits: Floats, counts: Floats, weight: Floats) -> None:
        k = logits.shape[1]
        minimum, chosen = self._solve(
            len(logits),
            lambda rows: _AffineProblem.from_items(logits[rows], counts[rows], weight[rows]),
            self._candidates(),
            identity(k, full=self._full),
        )
        self._keep(*split_coefficients(minimum.point, k), chosen)
        self.converged_ = minimum.converged
        self.n_iter_ = minimum.n_iter

    def _candidates(self) -> list[Affine]:
        """The penalties to try: of the off-diagonal entries, which a vector lacks, and of b."""
        tried = self._tried()
        if not self._full:
            pairs = [(0.0, value) for value in tried]
        elif not isinstance(self.penalty, tuple | list | np.ndarray):
            pairs = list(product(tried, repeat=2))
        elif len(self.penalty) == 2:
            pairs = [tuple(self.penalty)]
        else:
            raise UsageError(
                "`penalty` must be one number, or two: of the off-diagonal entries and of "
                f"the intercept; got {len(self.penalty)}"
            )
        named = [[not_negative("penalty", v) for v in pair] for pair in pairs]
        return [Affine(self._full, *pair) for pair in named]

    def _keep(self, weights: Floats, intercept: Floats, chosen: Affine) -> None:
        raise NotImplementedError


class VectorScaling(_AffineScaling):
    """Vector scaling: softmax(w * u + b), a slope and an intercept per class.

    Parameters
    ----------
    penalty
        L2 penalty, a number times the mean square of b, or "cross-validated": the one of
        `penalties` with the least held-out loss, and then a fit to all items.
    penalties
        What is tried.
    validation
        "split" holds out a fifth of the items once; a number makes as many folds of them.
    inputs, floor
        As for `TemperatureScaling`.
    max_iter, tol
        Iterations at most; converged where no slope of the loss (per label) exceeds `tol`.
    random_state
        Seed of the split.

    Attributes
    ----------
    scale_, intercept_
        w and b, (K,) each.
    penalty_
        The penalty of the fit.
    classes_, n_features_in_, floor_, converged_, n_iter_
        Classes (K,), K, the floor, whether the slopes vanished, iterations.

    Raises
    ------
    InputError
        As `TemperatureScaling`; also fewer than two labeled items to choose a penalty with.
    UsageError
        A penalty or `validation` that is none.

    Notes
    -----
    Source: Guo et al. (2017), section 4.2; Mimori et al. (2021), equation 82.
    """

    _full = False

    def _keep(self, weights: Floats, intercept: Floats, chosen: Affine) -> None:
        self.scale_, self.intercept_ = weights, intercept
        self.penalty_ = chosen.intercept

    def _scaled(self, logits: Floats) -> Floats:
        return apply_affine(self.scale_, self.intercept_, logits)


class MatrixScaling(_AffineScaling):
    """Matrix scaling with ODIR: softmax(W u + b), off-diagonal and intercept penalised.

    Parameters
    ----------
    penalty
        Two numbers, times the mean square of W's off-diagonal entries and of b; one number for
        both; or "cross-validated": the pair of `penalties` with the least held-out loss, and then
        a fit to all items.
    penalties, validation, inputs, max_iter, tol, random_state, floor
        As for `VectorScaling`; all pairs are tried.

    Attributes
    ----------
    weights_, intercept_
        W (K, K), a row per class that comes out, and b (K,).
    penalty_
        The two penalties of the fit.
    classes_, n_features_in_, floor_, converged_, n_iter_
        Classes (K,), K, the floor, whether the slopes vanished, iterations.

    Raises
    ------
    InputError, UsageError
        As `VectorScaling`.

    Notes
    -----
    On logarithms of probabilities this is Dirichlet calibration. Source: Kull et al. (2019),
    section 3 (ODIR); Mimori et al. (2021), equation 82.
    """

    _full = True

    def _keep(self, weights: Floats, intercept: Floats, chosen: Affine) -> None:
        self.weights_, self.intercept_ = weights, intercept
        self.penalty_ = (chosen.off_diagonal, chosen.intercept)

    def _scaled(self, logits: Floats) -> Floats:
        return apply_affine(self.weights_, self.intercept_, logits)
