"""The set of classifiers as a whole: how often all fail, who fails with whom."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from fewlabels.errors import UsageError, quoted


class Rate(NamedTuple):
    """A rate (or a function of rates) with its interval; NaN where it is undefined."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class PairErrors:
    """How two classifiers err, over the items on which both have a hard prediction.

    `both_wrong` is the joint error rate (double fault), `same_wrong` the part of it where both say
    the same wrong class; `disagreement` is how often they say different classes. `correlation` is
    phi of the two errors, `excess` the joint error rate over the product of the two error rates:
    1 if they err independently.
    """

    a: str
    b: str
    both_wrong: Rate
    same_wrong: Rate
    disagreement: Rate
    correlation: Rate
    excess: Rate


@dataclass(frozen=True)
class Together:
    """What the classifiers do as a set, over the `n_items` items on which all have a prediction.

    `all_wrong` is the rate at which all fail together; `oracle` its complement, the accuracy of
    whoever chooses the right classifier for each item; `majority` the accuracy of a majority vote,
    ties shared; `best_single` that of the one classifier `best_model` with the best estimate, of
    those that the labels do not contradict.
    `effective_voters` is M / (1 + (M - 1) r) for M classifiers of mean error correlation r (Kish's
    effective number; r below 0 counts as 0). `pairs` are over the first 30 classifiers.

    Where a method judges each classifier by labels inferred for it alone, so is `best_single`;
    all other rates are joint, and judged by the average of these labels. `warnings` then says so.
    """

    group: str | None
    models: tuple[str, ...]
    n_items: int
    confidence_level: float
    all_wrong: Rate
    oracle: Rate
    majority: Rate
    best_single: Rate
    best_model: str | None
    effective_voters: Rate
    pairs: tuple[PairErrors, ...]
    warnings: tuple[str, ...] = ()

    def pair(self, a: str, b: str) -> PairErrors:
        """Two classifiers, whatever the order they are named in.

        Raises
        ------
        UsageError
            If there is no such pair.
        """
        for pair in self.pairs:
            if {pair.a, pair.b} == {a, b}:
                return pair
        raise UsageError(f"no pair of models {quoted(a)} and {quoted(b)} here")

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values; a rate is an object of value, low and high."""
        return _spelled(asdict(self))


def _spelled(value: Any) -> Any:
    # `asdict` keeps named tuples as they are, which JSON would turn into lists.
    if isinstance(value, Rate):
        return value._asdict()
    if isinstance(value, dict):
        return {name: _spelled(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_spelled(part) for part in value]
    return value
