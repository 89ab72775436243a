"""Temperature, vector and matrix scaling on labels or on label histograms."""

from __future__ import annotations

from itertools import product
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from fewlabels.calibration import inputs as door_of
from fewlabels.calibration import scaling_fits as kernel
from fewlabels.calibration.descent import Minimum, descend
from fewlabels.errors import InputError, UsageError, quoted
from fewlabels.kernels.arrays import Array, Bools, Floats
from fewlabels.kernels.dirichlet_multinomial import FLOOR
from fewlabels.kernels.simplex import softmax

_SPLIT = 0.2
"""Share of the items that a split holds out to choose a penalty: the paper's."""


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
        self.floor_ = door_of.floor_of(scores[used], self.inputs)
        if self.floor is not None:
            self.floor_ = max(door_of.not_negative("floor", self.floor), FLOOR)
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
        return -kernel.negative_log_likelihood(logits, kernel.labels_of(counts, weight))

    def _logits(self, scores: Floats) -> Floats:
        return door_of.logits_of(scores, self.inputs, self.floor_)

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
        found = kernel.fit_temperature(logits, kernel.labels_of(counts, weight))
        self.temperature_ = float(np.exp(found.log_temperature))
        self.converged_ = found.converged
        self.n_iter_ = found.n_iter

    def _scaled(self, logits: Floats) -> Floats:
        # Shifted first: at a small temperature the quotient could overflow.
        return (logits - logits.max(axis=1, keepdims=True)) / self.temperature_


class _AffineScaling(_Scaling):
    """Vector and matrix scaling: a penalised affine map of the logits.

    Subclasses give `_full` and `_keep`.
    """

    _full: bool

    def __init__(
        self,
        penalty: Any = "cross-validated",
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
        candidates = self._candidates()
        chosen = candidates[0]
        if len(candidates) > 1:
            losses = np.zeros(len(candidates))
            for held_out in self._held_out(len(logits)):
                kept = kernel.labels_of(counts[~held_out], weight[~held_out])
                judged = kernel.labels_of(counts[held_out], weight[held_out])
                share = float(counts[held_out].sum(axis=1) @ weight[held_out])
                for c, form in enumerate(candidates):
                    theta = self._descend(logits[~held_out], kept, form).point
                    scaled = self._affine(theta, logits[held_out])
                    losses[c] += share * kernel.negative_log_likelihood(scaled, judged)
            chosen = candidates[int(losses.argmin())]
        found = self._descend(logits, kernel.labels_of(counts, weight), chosen)
        self._keep(*kernel.split_coefficients(found.point, logits.shape[1]), chosen)
        self.converged_ = found.converged
        self.n_iter_ = found.n_iter

    def _descend(self, logits: Floats, labels: kernel.Labels, form: kernel.Affine) -> Minimum:
        return descend(
            lambda theta: kernel.affine_loss(theta, logits, labels, form),
            lambda theta: kernel.affine_hessian(theta, logits, labels, form),
            kernel.identity(logits.shape[1], full=self._full),
            tolerance=self.tol,
            max_iter=self.max_iter,
        )

    def _affine(self, theta: Floats, logits: Floats) -> Floats:
        return kernel.apply_affine(*kernel.split_coefficients(theta, logits.shape[1]), logits)

    def _held_out(self, n: int) -> list[Bools]:
        """Which items each round of validation holds out, (n,) each."""
        if n < 2:
            raise InputError(
                "choosing a penalty by validation needs two labeled items or more; got "
                f"{n}: pass a number as `penalty`"
            )
        order = np.random.default_rng(self.random_state).permutation(n)
        if self.validation == "split":
            return [np.isin(np.arange(n), order[: max(1, round(_SPLIT * n))])]
        folds = self.validation
        if not isinstance(folds, int | np.integer) or isinstance(folds, bool) or folds < 2:
            raise UsageError(
                f"`validation` must be 'split' or a number of folds from 2; got {quoted(folds)}"
            )
        place = np.empty(n, dtype=np.int64)
        place[order] = np.arange(n) % min(folds, n)
        return [place == fold for fold in range(min(folds, n))]

    def _candidates(self) -> list[kernel.Affine]:
        """The penalties to try: of the off-diagonal entries, which a vector lacks, and of b."""
        tried: list[Any] = [self.penalty]
        if isinstance(self.penalty, str):
            door_of.choice("penalty", self.penalty, ("cross-validated",))
            tried = [door_of.not_negative("penalties", value) for value in self.penalties]
            if not tried:
                raise UsageError("`penalties` must have one penalty or more; got none")
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
        named = [[door_of.not_negative("penalty", v) for v in pair] for pair in pairs]
        return [kernel.Affine(self._full, *pair) for pair in named]

    def _keep(self, weights: Floats, intercept: Floats, chosen: kernel.Affine) -> None:
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

    def _keep(self, weights: Floats, intercept: Floats, chosen: kernel.Affine) -> None:
        self.scale_, self.intercept_ = weights, intercept
        self.penalty_ = chosen.intercept

    def _scaled(self, logits: Floats) -> Floats:
        return kernel.apply_affine(self.scale_, self.intercept_, logits)


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

    def _keep(self, weights: Floats, intercept: Floats, chosen: kernel.Affine) -> None:
        self.weights_, self.intercept_ = weights, intercept
        self.penalty_ = (chosen.off_diagonal, chosen.intercept)

    def _scaled(self, logits: Floats) -> Floats:
        return kernel.apply_affine(self.weights_, self.intercept_, logits)
