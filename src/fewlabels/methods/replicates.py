"""Parameter draws that methods share: bootstrap refits, and draws of several models combined."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from fewlabels.kernels.arrays import Array, Floats, Ints
from fewlabels.kernels.blocks import computed_once
from fewlabels.methods.base import FittedLabelModel
from fewlabels.posterior import ParameterDraws
from fewlabels.predictions import Predictions


def in_turn(
    parts: Sequence[ParameterDraws], whose: Ints, place: Ints, rows: Ints | slice
) -> Floats:
    """P(label) (n, K, D) of some items: draw d is that at `place` d, round about, of `whose` d."""
    out: Floats | None = None
    for number in np.unique(whose):
        part, columns = parts[number], np.flatnonzero(whose == number)
        block = part.block(place[columns] % part.size, rows)
        if len(columns) == len(whose):
            return block
        if out is None:
            out = np.empty((*block.shape[:2], len(whose)))
        out[:, :, columns] = block
    return parts[0].block(place, rows) if out is None else out


class Replicated(FittedLabelModel):
    """A fitted model with its refits (`_with_refits`), which are made when first needed."""

    @abstractmethod
    def class_probabilities(
        self, predictions: Predictions, p: Floats, refits: bool
    ) -> Iterator[tuple[Ints | slice, Array]]:
        """Some items and their P(label), (n, K, 1) of the fit, or (n, K, 1 + R) with the refits."""


@dataclass(frozen=True, eq=False)
class Replicates:
    """P(label) of some items under a fit and in each of `size` refits, as parameter draws.

    The refits are run when draws are asked for. From then on one pass over the items gives fit and
    refits: what both need (kernels between items, the flow) takes longer than what they do not.
    `served` (n, M, K) are the probabilities of the classifiers that the model was fitted on.
    """

    size: int
    fitted: Replicated
    predictions: Predictions
    served: Floats

    def marginals(self) -> Floats:
        """P(label) of every item under the fit, (n, K)."""
        refitted = "_with_refits" in vars(self.fitted)
        return (self._both if refitted else self._pass(refits=False))[0]

    def block(self, index: Ints, rows: Ints | slice) -> Floats:
        """P(label) of these items in these refits, (n, K, D)."""
        block: Floats = self._both[1][rows][:, :, index].astype(np.float64)
        return block / block.sum(axis=1, keepdims=True)

    @computed_once
    def _both(self) -> tuple[Floats, Array]:
        return self._pass(refits=True)

    def _pass(self, *, refits: bool) -> tuple[Floats, Array]:
        """The fit (n, K), and the refits (n, K, size or 0) at half the memory."""
        n, k = self.predictions.n_items, self.predictions.n_classes
        fit, draws = np.empty((n, k)), np.empty((n, k, self.size * refits), np.float32)
        for rows, p in self.fitted.class_probabilities(self.predictions, self.served, refits):
            one = p[:, :, 0].astype(np.float64)
            fit[rows] = one / one.sum(axis=1, keepdims=True)
            draws[rows] = p[:, :, 1:]
        # Rounding, and the released code's unclamped EM, leave labeled items off their label.
        evidence = self.predictions.evidence
        labeled = np.flatnonzero(np.isneginf(evidence).any(axis=1))
        fit[labeled] = np.isfinite(evidence[labeled])
        draws[labeled] = fit[labeled][:, :, None]
        return fit, draws


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
