"""Comparing classifiers by draws of one metric: ranking, pairs, labels needed, joint errors."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from fewlabels.comparison.draws import (
    Family,
    Ranks,
    expected_loss,
    paired_ends,
    probability_positive,
    tied_runs,
)
from fewlabels.errors import UsageError, quoted, unknown
from fewlabels.kernels.arrays import Floats
from fewlabels.kernels.interval_draws import Interval, spelled
from fewlabels.kernels.simplex import crossing


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
        """The place of one classifier; UsageError if it is not among those compared."""
        match = next((s for s in self.standings if s.model == model), None)
        if match is None:
            raise UsageError(unknown("model", model, self.ranking))
        return match

    def pair(self, a: str, b: str) -> Pair:
        """Two classifiers, in the order of the ranking, whatever the order they are named in."""
        for model in (a, b):
            self.standing(model)
        match = next((p for p in self.pairs if {p.a, p.b} == {a, b}), None)
        if match is None:
            raise UsageError(f"{a!r} is one classifier; name two")
        return match

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

    `values` (M,) and `draws` (D, M) are NaN where the metric is undefined; `direction` is +1 where
    larger is better, -1 where smaller is. Classifiers are ranked by `paired` (M,), values whose
    differences are those estimated (None: `values`); the labels speak against the values of those
    `contradicted`, which are compared but not ranked. `level` is of the intervals, and of each
    family of statements; `item_variance` (M, M), `n_labeled` and `n_unlabeled` are as in
    `labels_needed`.
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
    family = Family.from_draws(value, goodness, level)
    n_ranked = int((~aside[order]).sum())
    ranked = family
    if n_ranked < len(names):
        ranked = Family.from_draws(value[:n_ranked], goodness[:, :n_ranked], level)
    standings = [
        Standing(name, float(values[j]), 0.0, (0.0,) * n_ranked, math.nan, math.nan, False)
        for name, j in zip(names, order, strict=True)
    ]
    if n_ranked:
        ranks, loss = (
            Ranks.from_draws(goodness[:, :n_ranked]),
            expected_loss(goodness[:, :n_ranked]),
        )
        top = [math.nan] if n_ranked == 1 else ranks.top[:, 0].tolist()
        standings[:n_ranked] = [
            Standing(
                names[i], float(values[order[i]]), top[i],
                tuple(ranks.top[i].tolist()), float(ranks.expected[i]), float(loss[i]),
                bool(ranked.may_be_best[i]),
            )
            for i in range(n_ranked)
        ]  # fmt: skip
    pairs = []
    for i in range(len(names) - 1):
        # All that are ranked below at once: quantiles of many columns cost little more than of one.
        gaps = draws[:, order[[i]]] - draws[:, order[i + 1 :]]
        means = paired[order[i]] - paired[order[i + 1 :]]
        ends = np.stack([means, *paired_ends(means, gaps, level)], axis=1).tolist()
        for j, gap, end in zip(range(i + 1, len(names)), gaps.T, ends, strict=True):
            interval = Interval(*end)
            gap = gap[np.isfinite(gap)]
            needed = labels_needed(
                interval,
                float(gap.std()) if len(gap) else math.nan,
                None if item_variance is None else float(item_variance[order[i], order[j]]),
                level=level,
                n_labeled=n_labeled,
                n_unlabeled=n_unlabeled,
            )
            chance, apart = probability_positive(direction * gap), bool(family.separated[i, j])
            pairs.append(Pair(names[i], names[j], *interval, chance, apart, needed))
    return Comparison(
        metric, group, direction, level,
        tuple(standings),
        tuple(pairs),
        tuple(tuple(names[run]) for run in tied_runs(family.separated)),
        tuple(model for j, model in enumerate(models) if j not in set(order.tolist())),
        tuple(model for model in names if model in contradicted),
    )  # fmt: skip


_ROUNDING = 1e-12
"""Differences that sums in different orders may show."""

Settled = Literal["settled", "open", "tied", "unknown"]


@dataclass(frozen=True)
class LabelsNeeded:
    """How many labels, beyond those there are, would settle which of two classifiers is better.

    `status` is "settled" where the paired interval excludes 0 already, "tied" where the two do not
    differ at all, "unknown" where it cannot be computed, else "open". With `more` labels there is
    an even chance that the interval excludes 0, if each is worth one label; `low` is the same if
    the unlabeled items go on adding to every label what they have added so far; with `high` the
    chance is two in three.
    """

    status: Settled
    more: int | None = None
    low: int | None = None
    high: int | None = None


def labels_needed(
    difference: Interval,
    spread: float,
    variance: float | None,
    *,
    level: float,
    n_labeled: int,
    n_unlabeled: int | None = None,
) -> LabelsNeeded:
    """How many more labels would make the paired interval exclude 0, with what chance.

    The interval reaches z s from the gap towards 0. With variance v of one item's part in the
    difference, that is what w = v / s^2 labels alone would give: the posterior is worth w labels.
    After m more the standard deviation is s sqrt(w / (w + m)), and the estimate will have moved: by
    what is known now it is normal around the gap with variance s^2 m / (w + m). So the chance that
    it is then more than z standard deviations from 0 is, with a = |gap| / s and r = m / w,

        Phi((a sqrt(1 + r) - z) / sqrt(r)) + Phi((-a sqrt(1 + r) - z) / sqrt(r)),

    the assurance of a normal design (O'Hagan, Stevens and Campbell 2005). It allows for what is not
    known of the gap; with the gap taken as it is, m = w ((z / a)^2 - 1).

    `spread` is the standard deviation of the paired difference's draws. If `variance` v is unknown,
    the posterior is taken to be worth its n = `n_labeled` labels; if its precision grows in
    proportion to the labels, each is worth w / n. `n_unlabeled` counts the items left to label,
    where no others count (the sample estimand).
    """
    gap, low, high = difference
    if not math.isfinite(gap + low + high + spread):
        return LabelsNeeded("unknown")
    if max(abs(gap), spread) <= _ROUNDING:
        return LabelsNeeded("tied")
    if low > 0 or high < 0:
        return LabelsNeeded("settled", 0, 0, 0)
    z = NormalDist().inv_cdf((1 + level) / 2)
    # Draws may be skewed: it is the side of 0 that has to shrink.
    s = (gap - low if gap > 0 else high - gap) / z
    v = variance if variance is not None and math.isfinite(variance) else n_labeled * s**2
    if v <= 0 or s <= _ROUNDING:
        return LabelsNeeded("unknown")
    worth = v / s**2
    most = math.inf if n_unlabeled is None else max(n_unlabeled, 1)

    def rounded(more: float) -> int:
        return int(min(max(math.ceil(more), 1), most))

    even, sure = (worth * _ratio(abs(gap) / s, z, chance) for chance in (1 / 2, 2 / 3))
    proportional = even * min(n_labeled / worth, 1.0) if n_labeled else even
    return LabelsNeeded("open", rounded(even), rounded(proportional), rounded(sure))


def _ratio(a: float, z: float, chance: float) -> float:
    """The r at which the assurance reaches the chance; it rises from 0 to 1 while a < z."""

    # Phi(x) = erfc(-x / sqrt 2) / 2: of single numbers a tenth of the time of scipy's ndtr.
    def shortfall(r: float) -> float:
        reach, scale = a * math.sqrt(1 + r), math.sqrt(2 * r)
        return (math.erfc((z - reach) / scale) + math.erfc((z + reach) / scale)) / 2 - chance

    return crossing(shortfall, -30.0, 30.0)


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
    both_wrong: Interval
    same_wrong: Interval
    disagreement: Interval
    correlation: Interval
    excess: Interval


@dataclass(frozen=True)
class Together:
    """What the classifiers do as a set, over the `n_items` items on which all have a prediction.

    `all_wrong` is the rate at which all fail together; `oracle` its complement, the accuracy of
    choosing the right classifier for each item; `majority` the accuracy of a majority vote,
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
    all_wrong: Interval
    oracle: Interval
    majority: Interval
    best_single: Interval
    best_model: str | None
    effective_voters: Interval
    pairs: tuple[PairErrors, ...]
    warnings: tuple[str, ...] = ()

    def pair(self, a: str, b: str) -> PairErrors:
        """Two classifiers, whatever the order they are named in."""
        for pair in self.pairs:
            if {pair.a, pair.b} == {a, b}:
                return pair
        raise UsageError(f"no pair of models {quoted(a)} and {quoted(b)} here")

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values; a rate is an object of value, low and high."""
        return asdict(self, dict_factory=spelled)
