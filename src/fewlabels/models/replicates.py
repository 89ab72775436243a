"""Bootstrap refits as parameter draws."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, final

import numpy as np

from fewlabels.kernels.arrays import Array, Floats, Ints

_T = TypeVar("_T")


@dataclass(frozen=True, eq=False)
class Replicates(ABC):
    """P(label) of some items under a fit, and in each of `size` refits.

    The refits are run when the first interval is asked for. Where the model has been prepared
    (`FittedLabelModel.prepare`) they are there already: one pass over the items then gives both.
    """

    size: int

    @property
    @abstractmethod
    def prepared(self) -> bool:
        """Whether the refits have been run before."""

    @abstractmethod
    def alone(self) -> Floats:
        """P(label) of every item under the fit, (n, K)."""

    @abstractmethod
    def refitted(self) -> Array:
        """P(label) of every item in each refit, (n, K, size)."""

    @abstractmethod
    def together(self) -> tuple[Floats, Array]:
        """What `alone` and `refitted` give, in one pass over the items."""

    @final
    def marginals(self) -> Floats:
        """P(label) of every item under the fit, (n, K)."""
        return self._once("_both", self._together)[0] if self.prepared else self.alone()

    @property
    def probabilities(self) -> Array:
        """P(label) of every item in each refit, (n, K, size), at half the memory."""
        if self.prepared:
            return self._once("_both", self._together)[1]
        return self._once("_refitted", lambda: self.refitted().astype(np.float32))

    @final
    def prepare(self) -> None:
        """Run the refits."""
        _ = self.probabilities

    @final
    def block(self, index: Ints, rows: Ints | slice) -> Floats:
        """P(label) of these items in these refits, (n, K, D)."""
        block: Floats = self.probabilities[rows][:, :, index].astype(np.float64)
        return block / block.sum(axis=1, keepdims=True)

    def _together(self) -> tuple[Floats, Array]:
        marginals, refitted = self.together()
        return marginals, refitted.astype(np.float32, copy=False)

    def _once(self, name: str, compute: Callable[[], _T]) -> _T:
        """What `compute` gives, kept.

        Not a cached property: before Python 3.12 all instances share its lock, and parts of the
        items that are worked on in several threads would wait for each other.
        """
        found = self.__dict__.get(name)
        if found is None:
            found = self.__dict__[name] = compute()
        kept: _T = found
        return kept
