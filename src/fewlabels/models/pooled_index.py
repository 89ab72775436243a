"""PooledIndex: what the ensembles make of several classifiers' probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.blocks import spans
from fewlabels.kernels.pooling import (
    Pool,
    agreement_slope,
    calibrated_pool,
    centred_logs,
    deviation_scales,
    distinct,
    mean_agreement,
    raw_pool,
)
from fewlabels.predictions import Predictions

PoolName = Literal["raw", "calibrated"]

POOL_ITEMS = 20_000
"""The constants of the pools are found on so many items, chosen by their identity."""

_ROWS = 65_536
_ANCHORS = (0.2, 6.0)


class Features(NamedTuple):
    """Features of n items: two of every pool, and what each classifier adds."""

    pools: Mapping[PoolName, tuple[Floats, Floats]]  # f and g, both (n, K)
    each: Floats  # deviations, (n, K, M), and votes beside them; 0 where nothing is said


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
    votes: bool

    @staticmethod
    def of(
        predictions: Predictions,
        names: Sequence[PoolName],
        *,
        votes: bool = True,
        copies_agree: bool = True,
    ) -> PooledIndex:
        """Find the constants on the predictions that the items give.

        Parameters
        ----------
        names
            The pools.
        votes
            Whether votes are among the features.
        copies_agree
            Whether classifiers that vote alike on every item count as agreeing.
        """
        assert predictions.probabilities is not None
        rows = _by_identity(predictions, POOL_ITEMS)
        p = predictions.probabilities[rows]
        c, said = centred_logs(p), _votes(p)
        k = p.shape[2]
        counted = said if copies_agree else said[:, distinct(said)]
        agreement = mean_agreement(counted, k)
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
            anchors[name] = _anchor(f, counted, agreement)
        return PooledIndex(predictions.models, pools, scales, ratios, anchors, agreement, votes)

    def features(self, probabilities: Floats) -> Features:
        """Index and gap by every pool, deviations and votes of any items."""
        n, m, k = probabilities.shape
        pools = {name: (np.empty((n, k)), np.empty((n, k))) for name in self.pools}
        each = np.zeros((n, k, m * (1 + self.votes)))
        for block in spans(n, _ROWS):
            p = probabilities[block]
            c = centred_logs(p)
            for name, pool in self.pools.items():
                pools[name][0][block], pools[name][1][block] = pool.features(c)
            said = np.nan_to_num(c) if np.isnan(c).any() else c
            each[block, :, :m] = (said * self.scales[:, None]).swapaxes(1, 2)
            if self.votes:
                each[block, :, m:] = _votes(p)[:, None, :] == np.arange(k)[None, :, None]
        return Features(pools, each)


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
