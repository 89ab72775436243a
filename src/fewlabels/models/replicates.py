"""Bootstrap refits as parameter draws."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from fewlabels.kernels.arrays import Array, Floats, Ints


@dataclass(frozen=True, eq=False)
class Replicates(ABC):
    """P(label) of every item in each of `size` refits, run when the first interval is asked for."""

    size: int

    @abstractmethod
    def refitted(self) -> Floats:
        """P(label) of every item in each refit, (n, K, size)."""

    @cached_property
    def probabilities(self) -> Array:
        """What `refitted` gave, at half the memory."""
        return self.refitted().astype(np.float32)

    @final
    def prepare(self) -> None:
        """Run the refits."""
        _ = self.probabilities

    @final
    def block(self, index: Ints, rows: Ints | slice) -> Floats:
        """P(label) of these items in these refits, (n, K, D)."""
        block: Floats = self.probabilities[rows][:, :, index].astype(np.float64)
        return block / block.sum(axis=1, keepdims=True)
