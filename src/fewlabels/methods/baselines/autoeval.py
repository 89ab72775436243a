"""AutoEval: proxies on the unlabeled items, rectified by the labeled ones (PPI++)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from fewlabels.errors import UsageError
from fewlabels.kernels.arrays import Floats, Ints, UInts
from fewlabels.kernels.blocks import spans
from fewlabels.kernels.interval_draws import pseudo_observations
from fewlabels.kernels.simplex import linear_pool, mean_probability
from fewlabels.kernels.strata import bootstrap_within, variance_strata
from fewlabels.methods.base import (
    FittedLabelModel,
    LabelModel,
    probabilities_of,
    with_evidence,
    with_probabilities,
)
from fewlabels.posterior import Fixed, LabelPosterior, Means
from fewlabels.predictions import Predictions

_ROWS_SALT, _REST_SALT = 0xA07E, 0xA07F
_BLOCK = 2**22
_MANY = 20_000


@dataclass(frozen=True)
class AutoEval(LabelModel):
    """Mean of a metric = lambda x mean proxy of the unlabeled + mean of (metric - lambda x proxy).

    The proxy of an item is the metric's expectation under a probability of its label; the
    rectifier, the second mean, is over the labeled items and makes the estimate unbiased whatever
    the proxies. Lambda minimises the estimate's variance; at 0 the labels stand alone.

    Intervals are those of a Bayesian bootstrap over labeled and unlabeled items, with lambda tuned
    anew in every draw and one pseudo-observation of unknown label among the labeled ones. The
    central limit theorem's, which the papers use, collapse to [1, 1] when 20 labels agree.

    Source: Angelopoulos, Duchi, Zrnic (2023), PPI++, equation 4 and example 6.1 (lambda);
    Boyeau, Angelopoulos et al. (2024), AutoEval.

    Parameters
    ----------
    proxy
        Whose probabilities: each classifier's "own", whose confidence then is its proxy accuracy
        (the paper's), or "ensemble", the mean of the classifiers, which knows more where these
        are about as good as each other.
    power_tuning
        Tune lambda; without it lambda is 1 (PPI).
    """

    proxy: Literal["own", "ensemble"] = "own"
    power_tuning: bool = True

    def __post_init__(self) -> None:
        if self.proxy not in ("ensemble", "own"):
            raise UsageError(f"`proxy` must be 'ensemble' or 'own'; got {self.proxy!r}")

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Nothing is learned before a metric is asked for; `rng` seeds the intervals."""
        served, p = with_probabilities(predictions, "autoeval")
        return _FittedAutoEval(self, served.models, mean_probability(p), int(rng.integers(2**63)))


@dataclass(frozen=True, eq=False)
class _FittedAutoEval(FittedLabelModel):
    model: AutoEval
    models: tuple[str, ...]
    average: Floats
    salt: int

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        p = probabilities_of(predictions, self.models, "autoeval")
        pool = linear_pool(p, self.average)
        shared = self._of(pool, predictions)
        if self.model.proxy == "ensemble":
            return shared
        by_model = {
            name: self._of(linear_pool(p[:, [j]], self.average), predictions)
            for j, name in enumerate(self.models)
        }
        return replace(shared, per_model=tuple(by_model.get(name) for name in predictions.models))

    def _of(self, proxy: Floats, predictions: Predictions) -> LabelPosterior:
        probabilities = with_evidence(proxy, predictions.evidence)
        return Means(
            probabilities,
            Fixed(probabilities),
            predictions.keys,
            salt=self.salt,
            value_from="marginals",
            observed=predictions.labeled,
            estimator=_Rectified(self.model.power_tuning, predictions, proxy, self.salt),
        )


@dataclass(frozen=True, eq=False)
class _Rectified:
    """The estimator: proxies (n, K) of all items, and labels of some of them."""

    power_tuning: bool
    predictions: Predictions
    proxy: Floats
    salt: int

    def estimate(
        self, values: Floats, rows: Ints, *, best: float, size: int, population: bool
    ) -> tuple[float, Floats]:
        """The rectified mean, and its Bayesian bootstrap; see `MeanEstimator`."""
        labels = self.predictions.labels[rows]
        labeled = np.flatnonzero(labels >= 0)
        # Labels that were not drawn alike leave others that are unlike the items: take all.
        uneven = self.predictions.label_weight is not None
        rest = np.arange(len(rows)) if uneven else np.flatnonzero(labels < 0)
        if not len(labeled):
            return float("nan"), np.full(size, np.nan)
        keys, weight = self.predictions.keys[rows], self.predictions.weight[rows]
        of_labels = self.predictions.weight_of_labels[rows][labeled]
        expected = (self.proxy[rows] * values).sum(axis=1)
        both = np.column_stack([values[labeled, labels[labeled]], expected[labeled]])
        ones = np.ones((1, 1))
        here = _Moments.of(both, of_labels[:, None] * ones)
        there = _Moments.of(expected[rest, None], weight[rest, None] * ones)
        plain, _ = self._rectify(here, there, len(rows), population=population)

        drawn = pseudo_observations(np.random.default_rng([self.salt]), values.shape[1], size)
        place = np.argsort(keys)[(drawn.place * len(rows)).astype(np.int64)]
        mass = drawn.mass * weight.sum() / self.predictions.worth(rows, weight).rows
        unseen = (mass * values[place]).sum(axis=1) / mass.sum(axis=1)
        # By key: a sum's rounding must not depend on the order of the rows.
        order = np.argsort(keys[labeled])
        here = _Moments.resampled(
            both[order], self._bootstrap(rows[labeled[order]], of_labels[order]), size
        )
        here = here.plus(np.stack([unseen, expected[place]]), mass.sum(axis=1))
        if population:
            salt, rest = self.salt ^ _REST_SALT, rest[np.argsort(keys[rest])]
            proxies = expected[rest, None]
            if len(rest) <= _MANY or self.predictions.clusters:
                bootstrap = self.predictions.bootstrap(rows[rest], weight[rest], salt)
                there = _Moments.resampled(proxies, bootstrap, size)
            else:
                there = _Moments.resampled_many(proxies, weight[rest], keys[rest], size, salt)
            return float(plain[0]), self._rectify(here, there, len(rows), population=True)[0]
        share = min(float(weight[rest].sum() / weight.sum()), 1.0)
        certain = (1 - share) * float(both[:, 0] @ weight[labeled] / weight[labeled].sum())
        tuned, residual = self._rectify(here, there, len(rows), population=False)
        # What these very items, beside their proxies, leave to chance.
        chance = np.random.default_rng([self.salt, 1]).standard_normal(size)
        effective = self.predictions.worth(rows[rest], weight[rest]).rows if len(rest) else 1.0
        spread = np.sqrt(residual / effective)
        return certain + share * float(plain[0]), certain + share * (tuned + chance * spread)

    def _bootstrap(self, rows: Ints, weight: Floats) -> Callable[[Ints], Floats]:
        """Weights (m, D) of labeled rows by draw (D,); every stratum keeps its weight."""
        salt, given = self.salt ^ _ROWS_SALT, self.predictions
        if not given.stratum:
            return given.bootstrap(rows, weight, salt)
        return partial(
            bootstrap_within, variance_strata(given.strata[rows]), given.keys[rows], weight=weight,
            times=np.ones(len(rows)), salt=salt,
            clusters=given.clusters_of(rows) if given.clusters else (),
        )  # fmt: skip

    def _rectify(
        self, here: _Moments, there: _Moments, n: int, *, population: bool
    ) -> tuple[Floats, Floats]:
        """PPI++ from moments of (metric, proxy) of labeled items and of the proxy of others.

        The rectified mean (D,), and the variance of an item's metric about its tuned proxy (D,).
        The unlabeled items' own mean needs the plain slope; the paper's factor 1 + n/N is for the
        population's. With it the shares of labeled and unlabeled items make the two agree.
        """
        if not there.total.any():
            return here.mean[0], here.second[0, 0] - here.mean[0] ** 2
        covariance = here.second[0, 1] - here.mean[0] * here.mean[1]
        total = here.total + there.total
        mean = (here.total * here.mean[1] + there.total * there.mean[0]) / total
        second = (here.total * here.second[1, 1] + there.total * there.second[0, 0]) / total
        variance = np.maximum(second - mean**2, 0.0) * n / (n - 1)
        tuning = np.ones_like(mean)
        if self.power_tuning:
            scale = variance * (1 + here.total / there.total if population else 1.0)
            tuning = np.divide(covariance, scale, out=np.zeros_like(mean), where=scale > 0)
            tuning = np.clip(tuning, 0.0, 1.0)
        rectified = here.mean[0] + tuning * (there.mean[0] - here.mean[1])
        spread = here.second[0, 0] - here.mean[0] ** 2 - 2 * tuning * covariance
        spread = spread + tuning**2 * (here.second[1, 1] - here.mean[1] ** 2)
        return rectified, np.maximum(spread, 0.0)


class _Moments(NamedTuple):
    """Weighted moments of C variables in D weightings."""

    total: Floats  # (D,)
    mean: Floats  # (C, D)
    second: Floats  # (C, C, D)

    @staticmethod
    def of(x: Floats, weights: Floats) -> _Moments:
        """Moments of x (n, C) under weights (n, D)."""
        products = (x[:, :, None] * x[:, None, :]).reshape(len(x), x.shape[1] ** 2)
        total = weights.sum(axis=0)
        safe = np.where(total > 0, total, 1.0)
        second = (products.T @ weights / safe).reshape(x.shape[1], x.shape[1], len(total))
        return _Moments(total, x.T @ weights / safe, second)

    @staticmethod
    def resampled(x: Floats, drawn: Callable[[Ints], Floats], size: int) -> _Moments:
        """Moments under weights by draw, in chunks of draws."""
        if not size:  # no intervals are asked for
            return _Moments.of(x, np.empty((len(x), 0)))
        parts = [
            _Moments.of(x, drawn(np.arange(s.start, s.stop)))
            for s in spans(size, max(_BLOCK // max(len(x), 1), 1))
        ]
        return _Moments(*(np.concatenate(kind, axis=-1) for kind in zip(*parts, strict=True)))

    @staticmethod
    def resampled_many(x: Floats, weight: Floats, keys: UInts, size: int, salt: int) -> _Moments:
        """As `resampled`, of one variable of so many items that their sums are Gaussian."""
        powers = np.column_stack([np.ones(len(x)), x, x**2]) * weight[:, None]
        # Exp(1) weights have variance 1; sorted sums, so that the order of the rows is not seen.
        middle = np.sort(powers, axis=0).sum(axis=0)
        products = powers.T @ powers
        # A proxy of two values at most makes this singular: a little on the diagonal.
        spread = np.linalg.cholesky(products + 1e-9 * np.trace(products) * np.eye(3))
        noise = np.random.default_rng([salt, len(keys)]).standard_normal((3, size))
        total, first, second = middle[:, None] + spread @ noise
        return _Moments(total, (first / total)[None], (second / total)[None, None])

    def plus(self, x: Floats, weight: Floats) -> _Moments:
        """With one more item per draw: x (C, D) of weight (D,)."""
        total = self.total + weight
        return _Moments(
            total,
            (self.total * self.mean + weight * x) / total,
            (self.total * self.second + weight * x[:, None] * x[None, :]) / total,
        )
