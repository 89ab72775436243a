"""PooledIndex: the features that the ensembles make from the predictions of several classifiers.

Every feature is a value per class. Pools and deviations from them serve all ensembles. Further
indices are one classifier alone, the pool without it, the latent classes, and what reference items
taught.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.blocks import spans
from fewlabels.kernels.multinomial import fit_map
from fewlabels.kernels.simplex import (
    Pool,
    agreement_anchor,
    calibrated_pool,
    centred_logs,
    deviation_scales,
    distinct,
    mean_agreement,
    raw_pool,
)
from fewlabels.methods.ensembles.informants import Informants, Inputs, PoolMaker
from fewlabels.predictions import Predictions

PoolName = Literal["raw", "calibrated"]

_ROWS, _EVERY = 65_536, slice(None)


class Feature(NamedTuple):
    """A feature: its kind, and its pool or classifier.

    Kinds: "pool" and "gap" of a pool (kernels/simplex.py); "deviation" and "vote" of a classifier;
    one classifier alone: "own" as it is, "tempered" towards the others, "rank" by its normal
    scores; "ranks", the mean of all normal scores; "without", the pool of all others; "latent" and
    "votes", the latent classes; "reference"; "constant", 1 for every class. Of grades: "near",
    less half the squared distance from the votes; "distance", less the distance; and "grade", the
    grade itself ("linear") or less half its square, whatever is said.
    """

    kind: str
    of: str = ""


@dataclass(frozen=True, eq=False)
class PooledIndex:
    """The constants of the pools, fixed when fitted.

    `scales` (M,) bring the classifiers' deviations to the raw pool's root mean square; `ratios`
    are the root mean squares of the pools in its units, `anchors` their agreement slopes.
    """

    informants: Informants
    reference: ReferenceMap | None
    pools: Mapping[PoolName, Pool]
    scales: Floats
    ratios: Mapping[PoolName, float]
    anchors: Mapping[PoolName, float]
    agreement: float

    @property
    def models(self) -> tuple[str, ...]:
        """The classifiers."""
        return self.informants.models

    @staticmethod
    def of(
        informants: Informants,
        inputs: Inputs,
        names: Sequence[PoolName],
        *,
        copies_agree: bool = True,
        reference: ReferenceMap | None = None,
        pooled: PoolMaker = calibrated_pool,
    ) -> PooledIndex:
        """Find the constants of the pools `names` on what is said of some items.

        `copies_agree`: classifiers that vote alike on every item count as agreeing. `pooled` makes
        the calibrated pool.
        """
        p, votes = inputs.probabilities, inputs.votes
        c = centred_logs(p)
        counted = votes if copies_agree else votes[:, distinct(votes)]
        agreement = mean_agreement(counted, p.shape[2])
        made = {"raw": raw_pool, "calibrated": pooled}
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
            anchors[name] = agreement_anchor(f, counted)
        return PooledIndex(informants, reference, pools, scales, ratios, anchors, agreement)

    def matrix(
        self, predictions: Predictions, features: Sequence[Feature], rows: Ints | slice = _EVERY
    ) -> Floats:
        """Features of some items of these classifiers, (n, K, F); 0 where nothing is said."""
        n, k = len(predictions.labels[rows]), predictions.n_classes
        out = np.empty((n, k, len(features)))
        if not n:
            return out
        labels = predictions.labels[rows]
        if n < predictions.n_items:
            # What is said of an item does not depend on its weight, which may be nothing.
            predictions = predictions.with_evidence(None, np.ones(predictions.n_items)).take(rows)
        inputs = self.informants.said(predictions, {f.kind for f in features}, labels)
        of_items = {}
        for feature in {f.kind: f for f in features}.values():
            if feature.kind == "reference":
                assert self.reference is not None
                of_items[feature.kind] = self.reference.index(predictions)
            elif feature.kind in ("latent", "votes"):
                of_items[feature.kind] = self.informants.latent_index(inputs, feature.kind)
        for part in spans(n, _ROWS):
            logs = centred_logs(inputs.probabilities[part])
            # Index and gap of a pool, both (n, K), when somebody asks for them.
            pool = cache(lambda name, logs=logs: self.pools[name].features(logs))
            for place, feature in enumerate(features):
                if feature.kind in of_items:
                    out[part, :, place] = of_items[feature.kind][part]
                else:
                    out[part, :, place] = self._feature(logs, pool, inputs, part, feature)
        return out

    def _feature(
        self,
        logs: Floats,
        pool: Callable[[str], tuple[Floats, Floats]],
        inputs: Inputs,
        rows: slice,
        feature: Feature,
    ) -> Floats:
        """One feature of a block of items, (n, K), of centred logs (n, M, K)."""
        kind, classes = feature.kind, np.arange(logs.shape[2])
        if kind in ("pool", "gap"):
            return pool(feature.of)[kind == "gap"]
        if kind == "ordinal":
            # How near each class is to the mean place of what is said; 0 where nothing is.
            grades = inputs.probabilities[rows] @ classes  # (n, M)
            graded = ~np.isnan(grades)
            middle = np.nansum(grades, axis=1) / np.maximum(graded.sum(axis=1), 1)
            near = -((classes - middle[:, None]) ** 2) / 2
            near[~graded.any(axis=1)] = 0.0
            return near - near.mean(axis=1, keepdims=True)
        if kind in ("near", "distance", "grade"):
            assert self.informants.grades is not None
            return _of_grades(self.informants.grades, inputs.votes[rows], feature)
        if kind == "ranks":
            z = inputs.ranked.scores[rows]  # (n, M, C)
            return _by_class(np.nansum(z, axis=1) / np.maximum((~np.isnan(z)).sum(axis=1), 1))
        if kind == "constant":
            return np.ones((len(logs), len(classes)))
        j = self.models.index(feature.of)
        c = logs[:, j]
        if kind == "vote":
            return (inputs.votes[rows, j][:, None] == classes).astype(np.float64)
        if kind == "deviation":
            return np.nan_to_num(c) * self.scales[j]
        if kind == "rank" and self.informants.kinds[j] == "vote":
            return np.nan_to_num(c) * self.scales[j]  # no rank: its log odds, of sd 1 or so
        if kind == "rank":
            return _by_class(np.nan_to_num(inputs.ranked.scores[rows, j]))
        if kind == "without":
            others = logs.copy()
            others[:, j] = np.nan
            return self.pools["calibrated"].features(others)[0]
        temperature = 1.0 if kind == "own" else self.pools["calibrated"].temperatures[j]
        other = pool("raw" if kind == "own" else "calibrated")[0]
        return np.where(np.isnan(c), other, c * temperature)


def _of_grades(g: Floats, votes: Ints, feature: Feature) -> Floats:
    """A feature of grades g (K,) by votes (n, M), -1 none: (n, K), 0 where nobody votes."""
    if feature.kind == "grade":
        x = g - g.mean() if feature.of == "linear" else g.var() / 2 - (g - g.mean()) ** 2 / 2
        return np.tile(x, (len(votes), 1))
    off = g[:, None] - g
    apart = off**2 / 2 if feature.kind == "near" else np.abs(off)
    away = np.where(votes[:, :, None] < 0, 0.0, apart[votes])  # (n, M, K)
    near = -away.sum(axis=1) / np.maximum((votes >= 0).sum(axis=1), 1)[:, None]
    return np.asarray(near - near.mean(axis=1, keepdims=True))


def _by_class(z: Floats) -> Floats:
    """Scores (n, C), of two classes those of the second, as an index of every class (n, K)."""
    if z.shape[1] == 1:
        return np.hstack([-z / 2, z / 2])
    return np.asarray(z - z.mean(axis=1, keepdims=True))


def _rms(values: Floats) -> float:
    return float(np.sqrt((values**2).mean())) if values.size else 0.0


# --- what reference items taught --------------------------------------------------------------


_MOST_LOG = 4.0
_OFFSET_SD, _SLOPE_SD, _RANK_SD = 3.0, 1.0, 1.0


@dataclass(frozen=True, eq=False)
class ReferenceMap:
    """P(class | what the classifiers say) among the reference's items.

    A logistic regression on each classifier's centred logs (its prior: their mean) and on its
    normal scores among the reference's items (prior mean 0).
    """

    informants: Informants
    coefficients: Floats

    @staticmethod
    def of(reference: Predictions) -> ReferenceMap:
        """Fit to labeled items."""
        informants = Informants.of(reference)
        design = _design(informants.said(reference))
        k, m = reference.n_classes, reference.n_models
        means = np.r_[np.zeros(k), np.full(m, 1 / m), np.zeros(m)]
        sds = np.r_[np.full(k, _OFFSET_SD / np.sqrt(2)), np.full(m, _SLOPE_SD)]
        sds = np.r_[sds, np.full(m, _RANK_SD)]
        mode = fit_map(design, reference.evidence, means, sds**-2.0, offsets=True)
        return ReferenceMap(informants, mode.coefficients)

    def index(self, predictions: Predictions) -> Floats:
        """Centred logs of P(class) of any items of these classifiers, (n, K)."""
        k, design = predictions.n_classes, _design(self.informants.said(predictions))
        logits = design @ self.coefficients[k:] + self.coefficients[:k]
        out: Floats = logits - logits.mean(axis=1, keepdims=True)
        return out


def _design(inputs: Inputs) -> Floats:
    """Logs and normal scores, (n, K, 2 M)."""
    logs = np.clip(np.nan_to_num(centred_logs(inputs.probabilities)), -_MOST_LOG, _MOST_LOG)
    ranks = np.nan_to_num(inputs.ranked.scores)
    if ranks.shape[2] == 1:
        ranks = np.concatenate([-ranks / 2, ranks / 2], axis=2)
    return np.concatenate([logs.swapaxes(1, 2), ranks.swapaxes(1, 2)], axis=2)
