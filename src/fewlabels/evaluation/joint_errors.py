"""Joint errors of a set of classifiers: how often all fail, who fails with whom.

Statistics of the draws that metrics are made of, so that they have intervals of the same meaning.
The accuracy of the best classifier is the metric itself, guarded by the labels as that is.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse

from fewlabels.comparison.compare import PairErrors, Together
from fewlabels.comparison.draws import paired_ends, paired_interval
from fewlabels.errors import UsageError
from fewlabels.estimates import MOST_COMPARED
from fewlabels.evaluation.draws import DrawKind, LabelWeights
from fewlabels.evaluation.evaluator import Evaluator, draws_around
from fewlabels.evaluation.groups import Group
from fewlabels.evaluation.guard import Guard, Guarded
from fewlabels.kernels.arrays import Array, Bools, Floats, Ints
from fewlabels.kernels.blocks import spans
from fewlabels.kernels.interval_draws import UNDEFINED, Interval, point_value
from fewlabels.kernels.weighting import Indicator, Weighting, in_every_draw
from fewlabels.metrics import resolve
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions

_AVERAGED = (
    "each classifier is judged by labels inferred for it alone, and what several do together by "
    "the average of these; so such rates need not agree with the accuracies"
)

_CONTRADICTED = (
    "contradicted: the labels disagree with the method on accuracy, and these rates of several "
    "classifiers together are the method's alone; do not rely on them"
)

_AT_ONCE = 2**24
"""Cells times pairs of classifiers that are worked on at a time."""

_WHOLE = ("all_wrong", "oracle", "majority", "effective_voters")
_OF_PAIRS = ("both_wrong", "same_wrong", "disagreement", "correlation", "excess")


class Accuracies(NamedTuple):
    """Accuracy of each classifier (M,), its draws (D, M), and whether the labels contradict it."""

    value: Floats
    draws: Floats
    contradicted: Bools


def joint_errors(
    predictions: Predictions, posterior: LabelPosterior, rows: Ints, *, population: bool = True,
    level: float = 0.95, n_draws: int = 400, method: str = "", group: str | None = None,
    models: Collection[str] | None = None, accuracy: Accuracies | None = None, random: bool = True,
) -> Together:  # fmt: skip
    """Rates of joint errors of a set of classifiers, from a label posterior.

    The classifiers are `models` (None: all) that have hard predictions, votes or the argmax of
    probabilities, at least two. The rates are those of the population, or of the items `rows`
    (indices into `predictions`) alone. There are `n_draws` interval draws, 0 for no intervals.
    `accuracy` is that of every classifier on these items, guarded by the labels (None: it is
    measured, and guarded if the labels are of a `random` sample), and `method` is what messages
    call the label model.

    Where classifiers have posteriors of their own (`LabelPosterior.per_model`), the accuracy of
    each is judged by its own, and what several do together by the average of them.
    """
    if posterior.means is not None:
        raise UsageError(
            f"method {method!r} estimates one mean at a time and says nothing of joint errors; "
            "take one that infers labels, such as 'auto' or 'labeled'"
        )
    rows = rows[predictions.weight[rows] > 0]
    columns = np.flatnonzero(predictions.has_hard.any(axis=0))
    if models is not None:
        columns = np.array([j for j in columns if predictions.models[j] in models], dtype=np.int64)
    if len(columns) < 2:
        raise UsageError(
            "joint errors need hard predictions of two classifiers at least; "
            f"there are {len(columns)}"
        )
    models = tuple(predictions.models[j] for j in columns)
    complete = rows[predictions.has_hard[np.ix_(rows, columns)].all(axis=1)]
    if n_draws:
        posterior.prepare()
    weights = LabelWeights.from_rows(predictions, posterior, rows, n_draws)
    values, drawn = _rates(
        weights,
        _Votes.from_predictions(predictions, weights.rows, columns),
        population=population or posterior.counts_alone,
    )
    stated = level if n_draws else math.nan

    low, high = paired_ends(values, drawn, stated)
    rates = [Interval(*map(float, rate)) for rate in zip(values, low, high, strict=True)]
    if accuracy is None or len(complete) < len(rows):
        evaluator = Evaluator(
            predictions, posterior, resolve("accuracy"), "population" if population else "sample",
            level if n_draws else None,
        )  # fmt: skip
        accuracy = _accuracies(evaluator, Group(group, complete), method, random=random)
    # The best of the classifiers that the labels do not contradict.
    value, draws, contradicted = accuracy
    able = np.isfinite(value) & np.isin(np.arange(len(value)), columns) & ~contradicted
    best = int(np.argmax(np.where(able, value, -np.inf))) if able.any() else None
    best_single = UNDEFINED
    if best is not None:
        best_single = paired_interval(float(value[best]), draws[:, best], stated)
    a, b = _pairs(len(models))
    own_posteriors = any(posterior.of(j) is not posterior for j in columns.tolist())
    return Together(
        group=group,
        models=models,
        n_items=predictions.size_of(complete),
        confidence_level=level,
        best_single=best_single,
        best_model=None if best is None else predictions.models[best],
        pairs=tuple(
            PairErrors(
                models[i],
                models[j],
                *(rates[len(_WHOLE) + kind * len(a) + p] for kind in range(len(_OF_PAIRS))),
            )
            for p, (i, j) in enumerate(zip(a.tolist(), b.tolist(), strict=True))
        ),
        warnings=(
            *((_AVERAGED,) if own_posteriors else ()),
            *((_CONTRADICTED,) if contradicted[columns].any() else ()),
        ),
        **dict(zip(_WHOLE, rates[: len(_WHOLE)], strict=True)),
    )


def _accuracies(evaluator: Evaluator, group: Group, method: str, *, random: bool) -> Accuracies:
    guarded, guard = (
        Guarded(evaluator.measure(group.rows), {}, {}),
        Guard.from_evaluator(evaluator, method, random=random),
    )
    contradicted = np.zeros(evaluator.predictions.n_models, dtype=np.bool_)
    if guard is not None:
        guarded = guard.adjust(group, guarded.measured)
        contradicted = guard.contradicts(guarded, "accuracy")
    value, draws, _ = guarded.measured["accuracy"]
    return Accuracies(value, draws, contradicted)


def _pairs(m: int) -> tuple[Ints, Ints]:
    a, b = np.triu_indices(min(m, MOST_COMPARED), 1)
    return a, b


@dataclass(frozen=True, eq=False)
class _Votes:
    """Hard predictions, items that say the same together: P patterns of M classifiers."""

    pattern: Ints  # of each item, (n,)
    hard: Ints  # (P, M)
    present: Bools  # (P, M)
    n_classes: int

    @staticmethod
    def from_predictions(predictions: Predictions, rows: Ints, columns: Ints) -> _Votes:
        """The patterns of some items and classifiers."""
        block = np.ix_(rows, columns)
        votes = np.where(predictions.has_hard[block], predictions.hard[block], -1)
        patterns, pattern = np.unique(votes, axis=0, return_inverse=True)
        hard = patterns.astype(np.int64)
        return _Votes(pattern.reshape(-1), hard, hard >= 0, predictions.n_classes)

    @cached_property
    def complete(self) -> Bools:
        """Patterns in which every classifier has a prediction, (P,)."""
        out: Bools = np.all(self.present, axis=1)
        return out

    @cached_property
    def cells(self) -> tuple[Ints, Ints, Ints]:
        """Classes that a pattern votes for: its number, the first who does, and the class, (C,)."""
        first = self.present.copy()
        for j in range(1, self.hard.shape[1]):
            first[:, j] &= (self.hard[:, :j] != self.hard[:, j : j + 1]).all(axis=1)
        pattern, who = np.nonzero(first)
        return pattern, who, self.hard[pattern, who]

    def cells_of(self, patterns: Ints) -> tuple[Ints, Ints]:
        """The cells of some patterns, and the place of each cell's pattern among these."""
        first, end = (np.searchsorted(self.cells[0], patterns, side=s) for s in ("left", "right"))
        place = np.repeat(np.arange(len(patterns)), end - first)
        before = np.cumsum(end - first) - (end - first)
        return np.arange(len(place)) + (first - before)[place], place

    @cached_property
    def by_class(self) -> _Features:
        """Features of each pattern if the label is a class that it votes for, by cell."""
        # Who is right is counted, not who is wrong: else every class would count.
        cells = spans(len(self.cells[0]), max(_AT_ONCE // len(_pairs(self.hard.shape[1])[0]), 1))
        return _Features.joined([_Features.from_columns(self._right(some)) for some in cells])

    def _right(self, some: slice) -> dict[str, Bools | Floats]:
        pattern, _, voted = (column[some] for column in self.cells)
        complete, votes = self.complete[pattern, None], self.hard[pattern]
        right = votes == voted[:, None]
        a, b = _pairs(self.hard.shape[1])
        kinds: dict[str, Bools | Floats] = {
            "some_right": complete,
            "majority": complete * self._majority[some, None],
            "right": complete & right,
            "both_right": right[:, a] & right[:, b],
        }
        if not self.complete.all():
            there = self.present[pattern]
            kinds["right_a"] = right[:, a] & there[:, b]
            kinds["right_b"] = right[:, b] & there[:, a]
        return kinds

    @cached_property
    def _majority(self) -> Floats:
        """Share of each cell's class in its pattern's majority vote, ties shared, (C,)."""
        pattern, _, voted = self.cells
        blocks = spans(len(voted), max(_AT_ONCE // self.hard.shape[1], 1))
        votes = [(self.hard[pattern[s]] == voted[s, None]).sum(axis=1) for s in blocks]
        counts = np.concatenate([np.empty(0, dtype=np.int64), *votes])
        most = np.zeros(len(self.hard), dtype=np.int64)
        np.maximum.at(most, pattern, counts)
        leads = counts == most[pattern]
        share: Floats = leads / np.bincount(pattern, leads)[pattern]
        return share

    @cached_property
    def any_class(self) -> _Features:
        """Features of each pattern whatever the label."""
        a, b = _pairs(self.hard.shape[1])
        both = self.present[:, a] & self.present[:, b]
        kinds: dict[str, Bools | Floats] = {
            "total": self.complete[:, None],
            "differ": both & (self.hard[:, a] != self.hard[:, b]),
        }
        return _Features.from_columns(kinds if self.complete.all() else kinds | {"both": both})

    @cached_property
    def bounds(self) -> tuple[Floats, Floats]:
        """Bounds of each rate, (F,)."""
        m, n_pairs = self.hard.shape[1], len(_pairs(self.hard.shape[1])[0])
        pair_bounds = np.repeat([[0, 1], [0, 1], [0, 1], [-1, 1], [0, np.inf]], n_pairs, axis=0)
        low, high = np.vstack([[0, 1], [0, 1], [0, 1], [1, m], pair_bounds]).T
        return low, high

    @cached_property
    def best(self) -> Floats:
        """The best value of each rate, (F,); NaN of one that rests on no label."""
        low, high = self.bounds
        out = np.where(np.isin(self.names, ("oracle", "majority", "effective_voters")), high, low)
        return np.where(self.names == "disagreement", np.nan, out)

    @cached_property
    def names(self) -> Array:
        """The name of each rate, (F,)."""
        n_pairs = len(_pairs(self.hard.shape[1])[0])
        return np.array([*_WHOLE, *np.repeat(_OF_PAIRS, n_pairs)])

    def finish(self, sums: dict[str, Floats]) -> Floats:
        """Rates (F, D), as in `_WHOLE`, then of the pairs, from the sums of all features (., D)."""
        m = self.hard.shape[1]
        a, b = _pairs(m)
        total, right, differ = sums["total"], sums["right"], sums["differ"]
        both = sums.get("both", total)
        err_a = _counted(both - sums.get("right_a", right[a]), both)
        err_b = _counted(both - sums.get("right_b", right[b]), both)
        same = _counted(both - differ - sums["both_right"], both)
        fault = _counted(err_a + err_b - both + sums["both_right"], both)
        with np.errstate(invalid="ignore", divide="ignore"):
            all_wrong = _counted(total - sums["some_right"], total) / total
            joint, e_a, e_b = fault / both, err_a / both, err_b / both
            spread = np.sqrt(e_a * (1 - e_a) * e_b * (1 - e_b))
            correlation = np.where(spread > 0, (joint - e_a * e_b) / spread, np.nan)
            # Who always errs with another does so exactly, but for rounding.
            certain = np.abs(correlation) > 1 - 1e-12
            correlation = np.where(certain, np.sign(correlation), correlation)
            excess = np.where(e_a * e_b > 0, joint / (e_a * e_b), np.nan)
            defined = np.isfinite(correlation)
            mean = np.where(defined, correlation, 0.0).sum(axis=0) / defined.sum(axis=0)
            voters = m / (1 + (m - 1) * np.maximum(mean, 0.0))
            of_set = (all_wrong, 1 - all_wrong, sums["majority"] / total, voters)
            return np.vstack([*of_set, joint, same / both, differ / both, correlation, excess])


def _counted(difference: Floats, total: Floats) -> Floats:
    """A difference of sums, 0 where only rounding is left, so that no classifier errs by it."""
    return np.where(difference > 1e-10 * total, difference, 0.0)


@dataclass(frozen=True, eq=False)
class _Features:
    """Features of patterns or cells, mostly 0: a matrix, and how many columns each kind takes."""

    matrix: scipy.sparse.csr_matrix
    sizes: dict[str, int]

    @staticmethod
    def from_columns(kinds: dict[str, Bools | Floats]) -> _Features:
        """From the columns of each kind, (P, columns)."""
        matrices = [scipy.sparse.csr_matrix(kind, dtype=np.float64) for kind in kinds.values()]
        matrix = scipy.sparse.hstack(matrices, format="csr")
        return _Features(matrix, {name: kind.shape[1] for name, kind in kinds.items()})

    @staticmethod
    def joined(features: Sequence[_Features]) -> _Features:
        """Features of the rows of all parts."""
        matrix = scipy.sparse.vstack([block.matrix for block in features], format="csr")
        return _Features(matrix, features[0].sizes)

    def sums(self, rows: Ints, weights: Floats) -> Floats:
        """Sums (F, D) over some of the rows, of weights (p, D)."""
        out: Floats = self.matrix[rows].T @ weights
        return out

    def named(self, sums: Floats) -> dict[str, Floats]:
        """The sums by kind."""
        ends = np.cumsum(list(self.sizes.values()))[:-1]
        return dict(zip(self.sizes, np.split(sums, ends), strict=True))


class _Counts:
    """Sums of the features of patterns over items: of the classes voted for, and of any."""

    def __init__(self, votes: _Votes) -> None:
        self.votes = votes
        self.right: Floats | float = 0.0
        self.plain: Floats | float = 0.0

    def add(self, weights: Weighting, block: slice | None = None) -> None:
        """Add a block of items."""
        votes = self.votes
        pattern = votes.pattern if block is None else votes.pattern[block]
        there, place = np.unique(pattern, return_inverse=True)
        items = Indicator(place, len(there))
        total, pseudo = weights.total, weights.pseudo

        def summed(columns: Floats, pseudo_mass: Floats | None) -> Floats:
            sums = np.array(in_every_draw(items.sums(columns), weights.size))
            if pseudo is not None and pseudo_mass is not None:
                sums[place[pseudo.item], pseudo.draw] += pseudo_mass
            return sums

        mass_of_patterns = summed(total, None if pseudo is None else pseudo.total)
        self.plain += votes.any_class.sums(there, mass_of_patterns)
        cells, pattern_index = votes.cells_of(there)
        who = votes.cells[1][cells]
        hard = np.maximum(votes.hard[pattern], 0)
        for j in np.unique(who).tolist():
            event, columns = hard[:, j], np.flatnonzero(who == j)
            event_mass = None
            if pseudo is not None:
                event_mass = pseudo.mass[np.arange(len(pseudo.item)), event[pseudo.item]]
            hit = summed(weights.of_events(event), event_mass)
            self.right += votes.by_class.sums(cells[columns], hit[pattern_index[columns]])

    def rates(self) -> Floats:
        """Rates (D, F)."""
        votes = self.votes
        right = votes.by_class.named(np.asarray(self.right))
        return votes.finish(right | votes.any_class.named(np.asarray(self.plain))).T


def _rates(weights: LabelWeights, votes: _Votes, *, population: bool) -> tuple[Floats, Floats]:
    """Rates (F,) and interval draws of them (D, F), made as those of metrics are."""
    size, posterior = weights.n_draws, weights.posterior
    if not len(weights):
        nowhere = np.full((size + 1, len(votes.bounds[0])), np.nan)
        return nowhere[0], nowhere[1:]

    def over(size: int, kind: DrawKind) -> Floats:
        chunks = weights.summed(
            size, [(kind, lambda: _Counts(votes))], lambda counts, _: counts[0].rates()
        )
        return np.concatenate([np.empty((0, len(votes.bounds[0]))), *chunks])

    values = point_value(over(*weights.value_kind), only_mean=not population)
    values = values.clip(*votes.bounds)
    if not population and weights.certain and not weights.n_others:
        return values, np.tile(values, (size, 1))
    drawn = over(size, weights.interval_kind(population=population))
    log_odds_error = posterior.log_odds_errors([str(c) for c in range(drawn.shape[1])], size)
    drawn = draws_around(
        values, drawn, votes.bounds, votes.best, posterior.inflation, log_odds_error=log_odds_error
    )
    return values, drawn
