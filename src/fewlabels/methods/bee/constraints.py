"""Logic between the labels that one item has in several domains: what excludes or implies what."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import NamedTuple

import numpy as np

from fewlabels.errors import InputError, UsageError, listed, unknown
from fewlabels.kernels.arrays import Bools, Floats, Ints
from fewlabels.predictions import Predictions

MOST_TIED = 16
"""Domains that logic ties together, at most: their joint states are listed one by one."""


class TiedDomains(NamedTuple):
    """Domains whose labels are drawn together, and their joint states.

    domains (c,) are indices; labels (S, c) says where each state is positive; weights (S,) are
    prior weights, all positive.
    """

    domains: Ints
    labels: Bools
    weights: Floats


@dataclass(frozen=True)
class Constraints:
    """Prior weights of the joint labels of an item in several two-class domains.

    A joint state that breaks v rules weighs `weight` ** v, one that breaks none weighs 1; shares of
    the joint states have a Dirichlet prior whose counts are these weights times `class_prior`.
    Rows of different domains are one item where their group `item` is the same. For other weights
    override `weights`. Platanios, Dubey, Mitchell (2016), section 6, name this as future work.

    Parameters
    ----------
    exclusive
        Sets of domains of which an item is positive in one at most.
    subsumption
        Pairs (narrow, broad): positive in the narrow domain means positive in the broad one.
    weight
        Weight of breaking a rule, from 0 (never) to 1 (as likely as not).
    item
        Name of the group (a column of the file) that says which item a row is of.
    """

    exclusive: Sequence[Sequence[str]] = ()
    subsumption: Sequence[tuple[str, str]] = ()
    weight: float = 0.0
    item: str = "item"

    def __post_init__(self) -> None:
        if not isinstance(self.weight, Real) or not 0 <= float(self.weight) <= 1:
            raise UsageError(f"`weight` must be between 0 and 1; got {self.weight!r}")
        for several in self.exclusive:
            if isinstance(several, str) or len(set(several)) < 2:
                raise UsageError(
                    f"`exclusive` must hold sets of at least two domains; got {several!r}"
                )
        for pair in self.subsumption:
            if isinstance(pair, str) or len(pair) != 2 or pair[0] == pair[1]:
                raise UsageError(
                    f"`subsumption` must hold pairs (narrow, broad) of domains; got {pair!r}"
                )

    def weights(self, labels: Bools, domains: Sequence[str]) -> Floats:
        """Weight (S,) of joint labels (S, c) in these domains."""
        place = {name: c for c, name in enumerate(domains)}
        broken = np.zeros(len(labels))
        for several in self.exclusive:
            if set(several) <= set(domains):
                positive = labels[:, [place[name] for name in dict.fromkeys(several)]].sum(axis=1)
                broken += np.maximum(positive - 1, 0)
        for narrow, broad in self.subsumption:
            if narrow in place and broad in place:
                broken += labels[:, place[narrow]] & ~labels[:, place[broad]]
        out: Floats = float(self.weight) ** broken
        return out

    def tied(self, domains: Sequence[str | None]) -> list[TiedDomains]:
        """Domains that rules tie together, each other one by itself, with their joint states.

        Raises
        ------
        UsageError
            If a rule names an unknown domain, or ties too many.
        """
        names = [str(d) for d in domains]
        rules = [tuple(rule) for rule in (*self.exclusive, *self.subsumption)]
        for name in itertools.chain.from_iterable(rules):
            if name not in names:
                raise UsageError(unknown("domain", name, names))
        return [self._states(names, together) for together in _components(len(names), (
            [names.index(name) for name in rule] for rule in rules
        ))]  # fmt: skip

    def _states(self, names: Sequence[str], together: Sequence[int]) -> TiedDomains:
        if len(together) > MOST_TIED:
            raise UsageError(
                f"rules tie {len(together)} domains together "
                f"({listed([names[d] for d in together], 3)}); at most {MOST_TIED} can be"
            )
        labels = np.array(list(itertools.product([False, True], repeat=len(together))))
        weights = self.weights(labels, [names[d] for d in together])
        possible = weights > 0
        return TiedDomains(np.array(together), labels[possible], weights[possible])

    def items(self, predictions: Predictions) -> Ints:
        """Which item every row is of, (n,) codes.

        Raises
        ------
        InputError
            If there are more than two classes, or the rows do not say which item they are of.
        """
        if predictions.n_classes != 2:
            raise InputError(
                f"constraints are about two classes; there are {predictions.n_classes}"
            )
        if self.item not in predictions.groups:
            raise InputError(
                f"constraints need to know which rows are one item: there is no group "
                f"{self.item!r}; give that column, or name another with Constraints(item=...)"
            )
        _, codes = np.unique(
            np.array([str(i) for i in predictions.groups[self.item]], dtype=object).astype(str),
            return_inverse=True,
        )
        out: Ints = codes.astype(np.int64)
        return out


def _components(size: int, rules: Iterable[Sequence[int]]) -> list[list[int]]:
    """Connected domains, in order."""
    root = list(range(size))
    for rule in rules:
        for other in rule[1:]:
            one, two = root[rule[0]], root[other]
            root = [one if r == two else r for r in root]
    return [[d for d in range(size) if root[d] == r] for r in dict.fromkeys(root)]
