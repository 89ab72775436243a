"""Bootstrap refits as parameter draws."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from fewlabels.kernels.arrays import Array, Floats, Ints
from fewlabels.kernels.cached import computed_once
from fewlabels.predictions import Predictions


class Replicated(Protocol):
    """A fitted model and its refits, side by side."""

    def class_probabilities(
        self, predictions: Predictions, p: Floats
    ) -> Iterator[tuple[Ints | slice, Array]]:
        """Some items and their P(label), (n, K, 1 + R): the fit, and R refits after it."""


@dataclass(frozen=True, eq=False)
class Replicates:
    """P(label) of some items under a fit and in each of `size` refits, as parameter draws.

    One pass over the items gives both, for whoever asks first: what is common to fit and refits
    (kernels between items, the flow) takes longer than what is not. `served` (n, M, K) are the
    probabilities of the classifiers that the model was fitted on.
    """

    size: int
    fitted: Replicated
    predictions: Predictions
    served: Floats

    @computed_once
    def _passed(self) -> tuple[Floats, Array]:
        """The fit (n, K), and the refits (n, K, size) at half the memory."""
        n, k = self.predictions.n_items, self.predictions.n_classes
        fit, refits = np.empty((n, k)), np.empty((n, k, self.size), np.float32)
        for rows, p in self.fitted.class_probabilities(self.predictions, self.served):
            one = p[:, :, 0].astype(np.float64)
            fit[rows] = one / one.sum(axis=1, keepdims=True)
            refits[rows] = p[:, :, 1:]
        # Rounding, and the released code's unclamped EM, leave labeled items off their label.
        evidence = self.predictions.evidence
        known = np.flatnonzero(np.isneginf(evidence).any(axis=1))
        fit[known] = np.isfinite(evidence[known])
        refits[known] = fit[known][:, :, None]
        return fit, refits

    def marginals(self) -> Floats:
        """P(label) of every item under the fit, (n, K)."""
        return self._passed[0]

    def block(self, index: Ints, rows: Ints | slice) -> Floats:
        """P(label) of these items in these refits, (n, K, D)."""
        block: Floats = self._passed[1][rows][:, :, index].astype(np.float64)
        return block / block.sum(axis=1, keepdims=True)


class Refitted(Protocol):
    """A fitted model whose parameters (..., R) in each of its refits say P(label) by a formula."""

    @property
    def refits(self) -> Floats:
        """The parameters, (..., R): refitted when they are asked for first, and kept."""

    def probabilities(self, features: Any, evidence: Floats, parameters: Floats, /) -> Floats:
        """P(label) (n, K, D) of items under parameters (..., D)."""


@dataclass(frozen=True, eq=False)
class Refits:
    """Parameter draws that are refitted parameters of items with features and evidence (n, K)."""

    size: int
    fitted: Refitted
    features: Any
    evidence: Floats

    def block(self, index: Ints, rows: Ints | slice) -> Floats:
        """P(label) of these items in these refits, (n, K, D)."""
        parameters = self.fitted.refits[..., index]
        return self.fitted.probabilities(self.features[rows], self.evidence[rows], parameters)
