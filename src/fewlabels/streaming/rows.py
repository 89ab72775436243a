"""Rows of a stream that are kept: the arrays of some items, which add up and travel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fewlabels.kernels.arrays import Array, Floats
from fewlabels.predictions import Predictions

_ARRAYS = ("probabilities", "votes", "scores", "histogram", "labels", "domain")
_GROUP = "group:"
_WEIGHT = "weight"


@dataclass(frozen=True, eq=False)
class Rows:
    """Arrays of n items by the name of the argument of `Predictions` that they are of.

    Groups stand under "group:<name>", raw sampling weights under "weight".
    """

    arrays: Mapping[str, Array]

    @staticmethod
    def of(predictions: Predictions, weight: Floats | None) -> Rows:
        """The items of a batch."""
        found = {name: getattr(predictions, name) for name in _ARRAYS}
        arrays = {name: array for name, array in found.items() if array is not None}
        arrays |= {f"{_GROUP}{name}": array for name, array in predictions.groups.items()}
        return Rows(arrays if weight is None else {**arrays, _WEIGHT: weight})

    def __len__(self) -> int:
        return len(self.arrays["labels"])

    @property
    def weight(self) -> Floats | None:
        """Raw sampling weights, (n,)."""
        return self.arrays.get(_WEIGHT)

    def take(self, index: Array | slice) -> Rows:
        """Some of the items."""
        return Rows({name: array[index] for name, array in self.arrays.items()})

    @staticmethod
    def joined(parts: Sequence[Rows]) -> Rows:
        """The items of several parts, one after another."""
        if len(parts) == 1:
            return parts[0]
        first = parts[0].arrays
        return Rows({name: np.concatenate([p.arrays[name] for p in parts]) for name in first})

    def predictions(
        self, models: Sequence[str], classes: Sequence[Any], multiplicity: Floats | None = None
    ) -> Predictions:
        """These items as `Predictions`."""
        named: dict[str, Any] = {
            name: array for name, array in self.arrays.items() if name in _ARRAYS
        }
        groups = {
            name.removeprefix(_GROUP): array
            for name, array in self.arrays.items()
            if name.startswith(_GROUP)
        }
        return Predictions(
            **named,
            groups=groups,
            weight=self.weight,
            models=models,
            classes=classes,
            positive=classes[1] if len(classes) == 2 else None,
            multiplicity=multiplicity,
        )

    def to_dict(self) -> dict[str, Any]:
        """The arrays by name."""
        return dict(self.arrays)

    @staticmethod
    def from_dict(value: Mapping[str, Any]) -> Rows:
        """What `to_dict` gave."""
        return Rows(dict(value))
