"""Alpha-calibration: how sure predicted probabilities are, as a Dirichlet around each of them.

And ensembles, any array (S, n, K): passes of Monte Carlo dropout, test-time augmentations, several
classifiers. Source: Mimori et al. (2021), equations 50, 71 and 72, 73, 81.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from fewlabels.calibration import inputs as door_of
from fewlabels.calibration.penalties import CROSS_VALIDATED, Penalised
from fewlabels.checks.arguments import not_negative, one_of, plain_array
from fewlabels.errors import InputError, UsageError
from fewlabels.kernels import dirichlet_multinomial as kernel
from fewlabels.kernels.arrays import Bools, Floats
from fewlabels.kernels.simplex import softmax

CONCENTRATIONS = ("constant", "logits", "features")

PENALTIES = (5e-7, 5e-6, 5e-5, 5e-4, 5e-3)
"""Penalties to choose from: the paper's, which suits tens of features and hundreds of labels, and
smaller ones, down to where 100,000 items of a perfect f leave alpha0 as large as it should be."""


class _ParameterToo:
    """A method that shares its name with a constructor parameter.

    scikit-learn keeps a parameter as an attribute of its name, which would hide the method
    `concentration`. A data descriptor precedes the instance's attributes: reading gives the method,
    and setting (by `__init__`, `set_params`, unpickling) stores the parameter where `get_params`
    finds it. The parameter stays the same object, as `clone` requires; a callable string would not.
    """

    def __init__(self, method: Callable[..., Floats]) -> None:
        self._method = method
        functools.update_wrapper(self, method)  # type: ignore[arg-type]

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self._method if instance is None else self._method.__get__(instance, owner)

    def __set__(self, instance: Any, value: Any) -> None:
        vars(instance)[self._method.__name__] = value


class AlphaCalibration(Penalised, BaseEstimator):  # type: ignore[misc]
    """Alpha-calibration: labels of an item come from Dirichlet(alpha0 f), f the predictions.

    f stays as it is: calibrate it beforehand, or put a scaling before this in a `Pipeline`. alpha0,
    the concentration, says how far the item's label distribution may be from f: exp(w . h + b) of
    what is known of the item.

    Parameters
    ----------
    concentration
        What h is: "constant" (nothing: one alpha0 for all items), "logits" (the logits of f) or
        "features" (those passed to `fit`, such as a network's penultimate layer). None = features
        when they are passed, else constant. A constant, or one of logits, looks at no features.
    penalty
        lambda, the weight of the mean square of log alpha0 beside the loss of a label; or
        "cross-validated": the one of `penalties` with the least held-out loss, and then a fit to
        all items. The paper's is .005, for any number of labels: it draws alpha0 towards 1 however
        many say otherwise.
    penalties
        What is tried.
    validation
        A number makes as many folds of the items; "split" holds out a fifth of them once.
    standardize
        Fit on features of mean 0 and standard deviation 1. The minimum is the same one, as the
        penalty is on log alpha0 and not on w; only the way there is shorter.
    max_iter, tol
        Iterations at most; converged where no slope of the loss exceeds `tol`.
    compat
        "lh_calib" weighs the loss of an item by n_i / mean n and takes the mean over items, as the
        released code does: n times the weight against the penalty.
    random_state
        Seed of the folds.
    inputs
        "probabilities" or "logits" (n, K): what f is given as, in `fit` and everywhere else.

    Attributes
    ----------
    coef_, intercept_
        w, in the units of the features, (d,), and b.
    loss_
        The least value of the loss (50), multinomial coefficients left out.
    n_labels_used_
        Labels of the items with two or more. Items with fewer say nothing about alpha0: they are
        left out altogether, of the penalty too.
    concentration_, penalty_
        The choice of `concentration` that was fitted, and the penalty of the fit.
    classes_, n_features_in_, converged_, n_iter_
        Class indices (K,), K, whether the slopes vanished, iterations.

    Raises
    ------
    InputError
        No item with two labels, or only one to choose a penalty with; counts that are negative or
        fractional, NaN (in features too), rows that do not sum to 1.
    UsageError
        Features are asked for and not there; a penalty or `validation` that is none.

    Notes
    -----
    f is raised to 1e-12, so that a label of a class of probability 0 costs much, not everything.
    Logarithms of 0 are thus -27.6 where h are logits. log alpha0 is held to +-300 on new items: the
    answers stay finite. Where all labels agree the penalty alone keeps alpha0 from 0.
    Source: Mimori et al. (2021), equations 50 (loss), 71 (disagreement).

    Examples
    --------
    >>> import numpy as np
    >>> from fewlabels.calibration import AlphaCalibration
    >>> f = np.array([[0.5, 0.5], [0.7, 0.3], [0.4, 0.6], [0.5, 0.5]])
    >>> model = AlphaCalibration().fit(f, np.array([[3, 0], [2, 1], [0, 3], [0, 2]]))
    >>> bool(model.predict_disagreement(f)[0] < 1 - (f[0] ** 2).sum())
    True
    """

    def __init__(
        self,
        concentration: str | None = None,
        penalty: Any = CROSS_VALIDATED,
        penalties: tuple[float, ...] = PENALTIES,
        validation: str | int = 5,
        standardize: bool = True,
        max_iter: int = 500,
        tol: float = 1e-9,
        compat: str | None = None,
        random_state: Any = 0,
        inputs: str = "probabilities",
    ) -> None:
        self.concentration = concentration
        self.penalty = penalty
        self.penalties = penalties
        self.validation = validation
        self.standardize = standardize
        self.max_iter = max_iter
        self.tol = tol
        self.compat = compat
        self.random_state = random_state
        self.inputs = inputs

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; see scikit-learn."""
        parameters: dict[str, Any] = super().get_params(deep)
        return parameters | {"concentration": vars(self)["concentration"]}

    def fit(
        self, probabilities: Any, histogram: Any, features: Any = None, sample_weight: Any = None
    ) -> Self:
        """Fit to f (n, K), counts of labels (n, K), and features (n, d) where h is features."""
        one_of("`compat`", self.compat, (None, "lh_calib"))
        kind = self._kind(features)
        scores = door_of.scores(probabilities, self.inputs)
        n, k = scores.shape
        counts = door_of.histogram(histogram, n, k)
        weight = door_of.item_weights(sample_weight, n)
        h = self._concentration_inputs(kind, scores, features, None)
        total = counts.sum(axis=1)
        if not ((total > 1) & (weight > 0)).any():
            raise InputError(
                "no item has two labels or more and a weight above zero, so that nothing is known "
                "of how labels of one item vary; label some items twice"
            )
        used = np.flatnonzero((total > (0 if self.compat else 1)) & (weight > 0))
        f = door_of.as_probabilities(scores[used], self.inputs)
        self._fit_to(h[used], counts[used], f, weight[used])
        self.concentration_ = kind
        self.n_labels_used_ = int(total[total > 1].sum())
        self.classes_ = np.arange(k)
        self.n_features_in_ = k
        return self

    @_ParameterToo
    def concentration(self, probabilities: Any, features: Any = None) -> Floats:
        """Concentration alpha0 of each item, (n,)."""
        return self._checked(probabilities, features)[1]

    def predict_proba(self, probabilities: Any) -> Floats:
        """The probabilities f (n, K), unchanged: the mean of each Dirichlet."""
        check_is_fitted(self)
        return self._shares(probabilities)

    def predict_disagreement(self, probabilities: Any, features: Any = None) -> Floats:
        """Probability that two labels of an item differ, (n,): equation 71."""
        return kernel.disagreement(*self._checked(probabilities, features))

    def posterior(self, probabilities: Any, histogram: Any, features: Any = None) -> Floats:
        """Expected class probabilities (n, K) given labels (n, K): (alpha0 f + y) / (alpha0 + n).

        Any numbers of labels will do; an item without labels keeps f.
        """
        f, alpha0 = self._checked(probabilities, features)
        return kernel.posterior_mean(f, door_of.histogram(histogram, *f.shape), alpha0)

    def score(self, probabilities: Any, histogram: Any, features: Any = None) -> float:
        """Mean log-likelihood of a label of the items with two or more, for `GridSearchCV`."""
        f, alpha0 = self._checked(probabilities, features)
        counts = door_of.histogram(histogram, *f.shape)
        used = counts.sum(axis=1) > 1
        if not used.any():
            raise InputError("no item has two labels or more to judge a concentration by")
        value = kernel.log_likelihood(counts[used], f[used], np.log(alpha0[used]))
        return float(value.sum() / counts[used].sum())

    def _kind(self, features: Any) -> str:
        requested: Any = vars(self)["concentration"]
        one_of("`concentration`", requested, (None, *CONCENTRATIONS))
        if requested is None:
            return "constant" if features is None else "features"
        return str(requested)

    def _shares(self, probabilities: Any) -> Floats:
        scores = door_of.scores(probabilities, self.inputs, self.n_features_in_)
        return door_of.as_probabilities(scores, self.inputs)

    def _checked(self, probabilities: Any, features: Any) -> tuple[Floats, Floats]:
        """The probabilities f (n, K) and concentrations alpha0 (n,) of items."""
        check_is_fitted(self)
        scores = door_of.scores(probabilities, self.inputs, self.n_features_in_)
        h = self._concentration_inputs(self.concentration_, scores, features, len(self.coef_))
        with np.errstate(over="ignore"):  # an infinite log alpha0 is held to its bound
            log_alpha0 = h @ self.coef_ + self.intercept_
        return (
            door_of.as_probabilities(scores, self.inputs),
            kernel.concentration_of(log_alpha0),
        )

    def _concentration_inputs(
        self, kind: str, scores: Floats, features: Any, columns: int | None
    ) -> Floats:
        """Inputs h (n, d) of log alpha0, an affine function of them."""
        if kind == "features":
            if features is None:
                raise UsageError(
                    "the concentration is one of features; pass `features`, or choose "
                    "concentration='constant' or 'logits'"
                )
            return door_of.feature_block(features, len(scores), columns)
        if kind == "constant":
            return np.empty((len(scores), 0))
        return door_of.as_logits(scores, self.inputs)

    def _fit_to(self, h: Floats, counts: Floats, f: Floats, weight: Floats) -> None:
        """Find w and b: from zeros (alpha0 = 1), in units that make features comparable."""
        mean, scale = np.zeros(h.shape[1]), np.ones(h.shape[1])
        if self.standardize:  # a constant column keeps its unit
            mean, sd = h.mean(axis=0), h.std(axis=0)
            scale = np.where(sd > 1e-12 * np.abs(mean), sd, 1.0)
        design = np.ones((len(h), len(scale) + 1))
        np.subtract(h, mean, out=design[:, :-1])
        design[:, :-1] /= scale

        def of_items(rows: Bools) -> _Problem:
            as_code = self.compat is not None
            return _Problem.from_items(
                design[rows], counts[rows], f[rows], weight[rows], as_code=as_code
            )

        candidates = [not_negative("penalty", value) for value in self._tried()]
        start = np.zeros(design.shape[1])
        minimum, self.penalty_ = self._solve(len(h), of_items, candidates, start)
        self.coef_ = minimum.point[:-1] / scale
        self.intercept_ = float(minimum.point[-1] - self.coef_ @ mean)
        self.loss_ = minimum.value
        self.converged_ = minimum.converged
        self.n_iter_ = minimum.n_iter


class _Problem(NamedTuple):
    """The loss (50): design (n, d + 1), likelihoods at a rate (n,) each, shares of items (n,).

    `size` is how much all labels weigh.
    """

    design: Floats
    terms: kernel.Terms
    rate: Floats
    share: Floats
    size: float

    @staticmethod
    def from_items(
        design: Floats, counts: Floats, f: Floats, weight: Floats, *, as_code: bool = False
    ) -> _Problem:
        total = counts.sum(axis=1)
        size = float(weight @ total)
        rate = weight * (total if as_code else 1.0) / size
        return _Problem(design, kernel.terms(counts, f), rate, weight / weight.sum(), size)

    def loss(self, theta: Floats, penalty: float) -> tuple[float, Floats]:
        """Value and gradient."""
        eta = self.design @ theta
        terms = kernel.derivatives(self.terms, eta)
        pull = 2 * penalty * self.share
        value = -float(self.rate @ terms.value) + 0.5 * float(pull @ eta**2)
        return value, self.design.T @ (pull * eta - self.rate * terms.slope)

    def hessian(self, theta: Floats, penalty: float) -> Floats:
        """Second derivatives."""
        terms = kernel.derivatives(self.terms, self.design @ theta)
        bend = 2 * penalty * self.share - self.rate * terms.curvature
        out: Floats = (self.design * bend[:, None]).T @ self.design
        return out

    def misfit(self, theta: Floats) -> float:
        """Minus the log-likelihood of all labels."""
        value = kernel.derivatives(self.terms, self.design @ theta).value
        return -self.size * float(self.rate @ value)


def ensemble_mean(samples: Any) -> Floats:
    """Mean probabilities (n, K) of an ensemble (S, n, K).

    Raises
    ------
    InputError
        Not three dimensions, probabilities out of range, rows that do not sum to 1, NaN.
    """
    return np.mean(_members(samples), axis=0)


def ensemble_disagreement(samples: Any, concentration: Any = None) -> Floats:
    """Probability that two labels of an item differ, (n,), by an ensemble (S, n, K).

    Without a concentration the mean of 1 - sum f^2 (equation 72); with alpha0, (n,) or (S, n), the
    mean of alpha0 / (alpha0 + 1) (1 - sum f^2) (equation 73).

    Raises
    ------
    InputError
        As `ensemble_mean`; a concentration that is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> from fewlabels.calibration import ensemble_disagreement
    >>> samples = np.array([[[1.0, 0.0]], [[0.5, 0.5]]])
    >>> print(ensemble_disagreement(samples))
    [0.25]
    """
    f = _members(samples)
    alpha0 = None if concentration is None else _concentrations(concentration, f)
    out: Floats = kernel.disagreement(f, alpha0).mean(axis=0)
    return out


def ensemble_posterior(samples: Any, histogram: Any, concentration: Any = None) -> Floats:
    """Expected class probabilities (n, K) given labels (n, K), by an ensemble (S, n, K).

    Members weigh as much as they explain the labels: in proportion to the product of f_k^y_k
    (equation 81, as text and formula have it; the released code sums). With a concentration, (n,)
    or (S, n), a member is a Dirichlet(alpha0 f): it weighs by its Dirichlet-multinomial likelihood,
    and its labels move its own mean. Weights are formed in logarithms and never underflow.

    Raises
    ------
    InputError
        As `ensemble_disagreement`; counts that are negative or fractional.
    """
    f = _members(samples)
    counts = door_of.histogram(histogram, *f.shape[1:])
    if concentration is None:
        explained = np.stack(
            [np.einsum("nk,nk->n", counts, np.log(np.maximum(one, kernel.FLOOR))) for one in f]
        )
        return _mixed(explained, f)
    alpha0 = _concentrations(concentration, f)
    explained = np.stack(
        [kernel.log_likelihood(counts, *pair) for pair in zip(f, np.log(alpha0), strict=True)]
    )
    return _mixed(explained, kernel.posterior_mean(f, counts, alpha0))


def _mixed(log_weights: Floats, means: Floats) -> Floats:
    out: Floats = np.einsum("sn,snk->nk", softmax(log_weights, axis=0), means)
    return out


def _members(samples: Any) -> Floats:
    members = door_of.block("samples", samples, 3)
    for s in range(len(members)):
        try:
            members[s] = door_of.scores(members[s], "probabilities")
        except InputError as error:
            raise InputError(f"`samples`, member {s} (from 0): {error}") from None
    return members


def _concentrations(value: Any, f: Floats) -> Floats:
    """Concentrations (S, n)."""
    value = plain_array("concentration", value)
    alpha0 = door_of.block("concentration", value, value.ndim)
    if alpha0.shape not in {f.shape[1:2], f.shape[:2]} or not (alpha0 > 0).all():
        raise InputError(
            f"`concentration` must be positive, of shape {f.shape[1:2]} or {f.shape[:2]}; got "
            f"shape {alpha0.shape}, smallest {alpha0.min():.6g}"
        )
    return np.broadcast_to(alpha0, f.shape[:2])
