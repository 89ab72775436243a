"""Comparing classifiers by draws of one metric."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fewlabels.comparison.family import Family, runs_of
from fewlabels.comparison.intervals import Difference, paired_ends
from fewlabels.comparison.labels import LabelsNeeded, labels_needed
from fewlabels.comparison.ranks import Ranks, expected_loss, probability_positive
from fewlabels.errors import UsageError, unknown
from fewlabels.kernels.arrays import Bools, Floats


@dataclass(frozen=True)
class Standing:
    """One classifier's place in a ranking.

    `probability_top[k - 1]` is the probability of being among the best k, ties shared;
    `expected_loss` is by how much the best one is expected to beat it, in the metric's units;
    `may_be_best` says whether it is in the confidence set of the best. Of a classifier that is not
    ranked, since the labels contradict its value, all this is 0, NaN or false.
    """

    model: str
    value: float
    probability_best: float
    probability_top: tuple[float, ...]
    expected_rank: float
    expected_loss: float
    may_be_best: bool


@dataclass(frozen=True)
class Pair:
    """Two classifiers, `a` ranked above `b`: metric of a minus metric of b.

    `probability` is that of a being better than b, ties shared; `separated` says whether they are
    told apart when all pairs are looked at together.
    """

    a: str
    b: str
    value: float
    low: float
    high: float
    probability: float
    separated: bool
    labels: LabelsNeeded


@dataclass(frozen=True)
class Comparison:
    """All classifiers by one metric, in one group (None: all items).

    `standings` are in the order of the ranking, best first, and behind them those `contradicted`,
    whose value the labels speak against, which are not ranked; `pairs` are all pairs in that order.
    `alike` holds the maximal runs in which no pair is separated; a run may be one classifier.
    `undefined` are the classifiers for which the metric is not defined.
    """

    metric: str
    group: str | None
    direction: int
    confidence_level: float
    standings: tuple[Standing, ...]
    pairs: tuple[Pair, ...]
    alike: tuple[tuple[str, ...], ...]
    undefined: tuple[str, ...]
    contradicted: tuple[str, ...] = ()

    @property
    def ranking(self) -> tuple[str, ...]:
        """The classifiers, best first; those contradicted are last."""
        return tuple(standing.model for standing in self.standings)

    @property
    def may_be_best(self) -> tuple[str, ...]:
        """The confidence set of the best: it holds the best one with probability `level`.

        The best of those that the labels do not contradict.
        """
        return tuple(standing.model for standing in self.standings if standing.may_be_best)

    @property
    def labels_needed(self) -> LabelsNeeded:
        """How many more labels would settle which of the first two is better."""
        return self.pairs[0].labels

    def standing(self, model: str) -> Standing:
        """The place of one classifier.

        Raises
        ------
        UsageError
            If it is not among those compared.
        """
        found = next((s for s in self.standings if s.model == model), None)
        if found is None:
            raise UsageError(unknown("model", model, self.ranking))
        return found

    def pair(self, a: str, b: str) -> Pair:
        """Two classifiers, in the order of the ranking, whatever the order they are named in.

        Raises
        ------
        UsageError
            If they are not two of those compared.
        """
        for model in (a, b):
            self.standing(model)
        found = next((p for p in self.pairs if {p.a, p.b} == {a, b}), None)
        if found is None:
            raise UsageError(f"{a!r} is one classifier; name two")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        return asdict(self) | {
            "ranking": list(self.ranking),
            "may_be_best": list(self.may_be_best),
            "labels_needed": asdict(self.labels_needed),
        }


def compare(
    models: Sequence[str],
    values: Floats,
    draws: Floats,
    direction: int,
    *,
    level: float,
    metric: str = "",
    group: str | None = None,
    item_variance: Floats | None = None,
    n_labeled: int = 0,
    n_unlabeled: int | None = None,
    contradicted: Collection[str] = (),
    paired: Floats | None = None,
) -> Comparison:
    """Compare classifiers by estimates of one metric and draws of it.

    Two classifiers are separated where their difference exceeds c posterior standard deviations; c
    is the `level` quantile, over draws, of the largest studentized deviation of any pair (the
    max-|t| of Tukey's comparisons, by the bootstrap of Beran 1988), so that all statements hold
    together. The confidence set of the best leaves out who is behind some other by more than the
    same kind of c for the differences to this one candidate (Hsu 1981, multiple comparisons with
    the best).

    Parameters
    ----------
    models, values, draws
        Names, estimates (M,) and draws (D, M), NaN where the metric is undefined.
    direction
        +1 where larger is better, -1 where smaller is.
    level
        Of the intervals, and of each family of statements.
    item_variance
        Variance of one labeled item's part in each difference, (M, M); see `labels_needed`.
    n_labeled, n_unlabeled
        How many items are labeled; how many more there are to label, where no others count.
    contradicted
        Classifiers against whose value the labels speak: they are compared, and not ranked.
    paired
        Values (M,) whose differences are those estimated, by which classifiers are ranked; None:
        those of `values`.

    Raises
    ------
    UsageError
        If there are no draws, or fewer than two classifiers for which the metric is defined.
    """
    if not len(draws):
        raise UsageError(
            "a comparison rests on draws, and there are none; estimate with a `confidence_level`"
        )
    values = np.asarray(values, dtype=np.float64)
    paired = values if paired is None else paired
    there = np.flatnonzero(np.isfinite(values) & np.isfinite(draws).any(axis=0))
    if len(there) < 2:
        raise UsageError(
            f"a comparison needs two classifiers; metric {metric!r} is defined for {len(there)} "
            f"of {len(models)}" + ("" if group is None else f" in group {group!r}")
        )
    aside = np.array([model in contradicted for model in models])
    order = there[np.lexsort((-direction * paired[there], aside[there]))]
    goodness, value = direction * draws[:, order], direction * paired[order]
    names = [models[j] for j in order]
    family = Family.of(value, goodness, level)
    n_ranked = int((~aside[order]).sum())
    ranked = family
    if n_ranked < len(names):
        ranked = Family.of(value[:n_ranked], goodness[:, :n_ranked], level)
    places = _standings(names, values[order], goodness[:, :n_ranked], ranked)
    pairs = [
        pair
        for i in range(len(names) - 1)
        for pair in _pairs_of(
            i,
            names,
            paired[order],
            draws[:, order],
            direction,
            level,
            family.separated[i],
            None if item_variance is None else item_variance[order[i], order],
            n_labeled,
            n_unlabeled,
        )
    ]
    return Comparison(
        metric, group, direction, level,
        places,
        tuple(pairs),
        tuple(tuple(names[run]) for run in runs_of(family.separated)),
        tuple(model for j, model in enumerate(models) if j not in set(order.tolist())),
        tuple(model for model in names if model in contradicted),
    )  # fmt: skip


def _standings(
    names: Sequence[str], values: Floats, ranked: Floats, family: Family
) -> tuple[Standing, ...]:
    """Places of the classifiers with draws of goodness (D, R), best first; the others' values."""
    n_ranked = ranked.shape[1]
    found = [
        Standing(name, float(value), 0.0, (0.0,) * n_ranked, math.nan, math.nan, False)
        for name, value in zip(names[n_ranked:], values[n_ranked:], strict=True)
    ]
    if not n_ranked:
        return tuple(found)
    ranks, loss = Ranks.of(ranked), expected_loss(ranked)
    return tuple(
        Standing(names[i], float(values[i]), float(ranks.top[i, 0]), tuple(ranks.top[i].tolist()),
                 float(ranks.expected[i]), float(loss[i]), bool(family.may_be_best[i]))
        for i in range(n_ranked)
    ) + tuple(found)  # fmt: skip


def _pairs_of(
    i: int, names: Sequence[str], values: Floats, draws: Floats, direction: int, level: float,
    separated: Bools, variance: Floats | None, n_labeled: int, n_unlabeled: int | None,
) -> Iterator[Pair]:  # fmt: skip
    """Pairs of classifier i with all that are ranked below it."""
    gaps = draws[:, [i]] - draws[:, i + 1 :]
    means = values[i] - values[i + 1 :]
    lows, highs = paired_ends(means, gaps, level)
    for place, j in enumerate(range(i + 1, len(names))):
        gap = gaps[:, place]
        gap = gap[np.isfinite(gap)]
        found = Difference(float(means[place]), float(lows[place]), float(highs[place]))
        needed = labels_needed(
            found, float(gap.std()) if len(gap) else math.nan,
            None if variance is None else float(variance[j]),
            level=level, n_labeled=n_labeled, n_unlabeled=n_unlabeled,
        )  # fmt: skip
        chance = probability_positive(direction * gap)
        yield Pair(names[i], names[j], *found, chance, bool(separated[j]), needed)
