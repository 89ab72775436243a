"""A run at one number of labels: its two parts, the labels drawn, and what was fitted to them."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from fewlabels.annotations import DISAGREEMENT
from fewlabels.bench.disagreement.data import HistogramWorld
from fewlabels.bench.seeds import generator, seed_of
from fewlabels.calibration import (
    AlphaCalibration,
    MatrixScaling,
    TemperatureScaling,
    VectorScaling,
)
from fewlabels.errors import InputError
from fewlabels.kernels.arrays import Bools, Floats
from fewlabels.kernels.blocks import map_blocks, using_workers

FEWEST = 1e-12
"""Least probability whose logarithm is a feature: that of alpha-calibration itself."""

LEFT_TO_JUDGE = 2
"""Labels that an item must keep to judge a posterior: an unbiased loss needs two."""


class Fitted(NamedTuple):
    """Alpha-calibrations, one per classifier, with what they get to see.

    `valid` and `test` are the probabilities (n, M, K) that they are of; `features` those of the
    test items, None where the concentration does not depend on any.
    """

    models: list[Any]
    test: Floats
    features: Floats | None


class Trial:
    """What the methods of a run and a number of labels share, fitted once.

    `valid` and `test` are the rows of the two parts, `counts` and `histogram` their labels.
    Every validation item keeps `n_labels` of its labels at random (all, where it has fewer); test
    items keep theirs, except for one of each in `expert` that posteriors are given: `rest` holds
    the others, for the items (`again`) that have enough of them.
    """

    def __init__(self, world: HistogramWorld, seed: int, run: int, n_labels: int) -> None:
        self.world, self.seed, self.run = world, seed, run
        name = world.facts.name
        valid, test = world.parts(seed, run)
        self.valid, self.test = valid, test
        # One order of the labels per run: those of 2 labels are the first of those of 5.
        self.counts = first_labels(
            world.histogram[valid], n_labels, generator("labels", seed, name, run)
        )
        self.histogram = world.histogram[test]
        self.again: Bools = self.histogram.sum(axis=1) > LEFT_TO_JUDGE
        judged = self.histogram[self.again]
        self.expert = first_labels(judged, 1, generator("expert", seed, name, run))
        self.rest = judged - self.expert
        self._scaled: dict[str, tuple[Floats, Floats]] = {}

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the classifiers."""
        return self.world.facts.models

    @property
    def share_that_differ(self) -> float:
        """Mean over validation items of the share of pairs of their labels that differ.

        Raises
        ------
        InputError
            If no item has two labels.
        """
        observed = DISAGREEMENT.observed(self.counts)
        if np.isnan(observed).all():
            raise InputError(
                "no validation item keeps two labels, and one shows no disagreement; raise "
                "`labels_per_item` to 2 at least"
            )
        return float(np.nanmean(observed))

    @cached_property
    def features(self) -> tuple[Floats, Floats]:
        """Log-probabilities of all classifiers on validation and test items, (n, M K)."""
        p = self.world.probabilities
        flat = np.log(np.maximum(p, FEWEST)).reshape(len(p), -1)
        return flat[self.valid], flat[self.test]

    def scaled(self, scaling: str) -> tuple[Floats, Floats]:
        """Probabilities of validation and test items after a map, each (n, M, K)."""
        if scaling not in self._scaled:
            raw = self.world.probabilities[self.valid], self.world.probabilities[self.test]
            if scaling == "raw":
                self._scaled[scaling] = raw
            else:
                parts = list(map_blocks(lambda j: self._map(scaling, j, *raw), self._every))
                valid, test = (np.stack(part, axis=1) for part in zip(*parts, strict=True))
                self._scaled[scaling] = valid, test
        return self._scaled[scaling]

    def with_mean(self, scaling: str) -> tuple[Floats, Floats]:
        """The same with the mean of all classifiers behind them, where there are several."""
        valid, test = self.scaled(scaling)
        if len(self.models) == 1:
            return valid, test
        return _with_mean(valid), _with_mean(test)

    def alpha(self, scaling: str, kind: str) -> Fitted:
        """Alpha-calibration of every classifier, and of their mean."""
        valid, test = self.with_mean(scaling)
        seen, later = self.features if kind == "features" else (None, None)

        def fit(j: int) -> Any:
            with using_workers(1):
                model = AlphaCalibration(concentration=kind)
                return model.fit(valid[:, j], self.counts, features=seen)

        return Fitted(list(map_blocks(fit, range(valid.shape[1]))), test, later)

    @property
    def _every(self) -> range:
        return range(len(self.models))

    def _map(self, scaling: str, j: int, valid: Floats, test: Floats) -> tuple[Floats, Floats]:
        """Classifier j after a map that is fitted to the labels of the validation items."""
        drawn = seed_of("fit", self.seed, self.world.facts.name, self.run, scaling) % 2**32
        scalings: dict[str, Any] = {
            "temperature": TemperatureScaling(),
            "vector": VectorScaling(random_state=drawn),
            "matrix": MatrixScaling(random_state=drawn),
        }
        model = scalings[scaling]
        with using_workers(1):
            model.fit(valid[:, j], self.counts)
            return model.predict_proba(valid[:, j]), model.predict_proba(test[:, j])


def first_labels(histogram: Floats, size: int, rng: np.random.Generator) -> Floats:
    """Counts (n, K) of the first `size` labels of every item in a random order of its labels.

    An item with fewer labels keeps them all.
    """
    counts = histogram.astype(np.int64)
    n, k = counts.shape
    labels = np.repeat(np.tile(np.arange(k), n), counts.ravel())
    items = np.repeat(np.arange(n), counts.sum(axis=1))
    order = np.lexsort((rng.random(len(items)), items))
    sizes = counts.sum(axis=1)
    place = np.arange(len(items)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    kept = order[place < size]
    cells = items[kept] * k + labels[kept]
    found: Floats = np.bincount(cells, minlength=n * k).reshape(n, k).astype(float)
    return found


def _with_mean(p: Floats) -> Floats:
    return np.concatenate([p, p.mean(axis=1, keepdims=True)], axis=1)
