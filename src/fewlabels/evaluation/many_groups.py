"""Thousands of groups in one pass over the items.

Whole groups go in blocks, whose statistics are summed by group: what is measured is that of any
group (`evaluator`), of `DRAWS` draws, of which no more is kept than the ends of intervals. So time
is linear in the items, and memory that of some blocks. A group with as many items as a block is
measured by itself.

The evaluator's own tasks would take a group at a time, with plans of their own for each, which is
what ten thousand groups have no time for: what has an axis of groups is written here, and the rest
(weights, draws, noise, ties) is called.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fewlabels.errors import Status, UsageError
from fewlabels.estimates import Estimate, GroupSize
from fewlabels.evaluation.draws import LabelWeights
from fewlabels.evaluation.evaluator import (
    TOO_FEW,
    Evaluator,
    Measured,
    draws_around,
    ties_widened,
)
from fewlabels.evaluation.groups import MAX_GROUPS, Group, values_of
from fewlabels.evaluation.guard import LEAST_OF_DRAWS, Guard
from fewlabels.evaluation.status import FEW_IN_GROUP, Reasons, judge
from fewlabels.kernels import ranking
from fewlabels.kernels.arrays import Bools, Floats, Ints
from fewlabels.kernels.binning import Indicator, by_quantiles
from fewlabels.kernels.blocks import map_blocks, report, using_workers
from fewlabels.kernels.interval_draws import interval, over_draws, point_value, recentred
from fewlabels.metrics.base import Metric, ScoreView
from fewlabels.metrics.calibration import CalibrationBins
from fewlabels.metrics.confusion import Confusion
from fewlabels.metrics.plans import Chosen, view_of
from fewlabels.metrics.proper import Loss
from fewlabels.metrics.ranking import Ranking
from fewlabels.posterior import LabelPosterior, draw_labels
from fewlabels.predictions import Predictions

MOST_GROUPS = 10_000
"""Groups of a column, at most."""

LEAST_EACH = 10
"""Items of a group on average, where there are many: less is more often a column of names."""

DRAWS, VALUE_DRAWS = 200, 50
"""Draws behind intervals, and parameter draws behind values, of a column of many groups."""

_CELLS = 2**21
"""Label weights of a block."""


@dataclass(frozen=True, eq=False)
class ManyGroups:
    """The groups of a column: names by first appearance, and the group of each item (n,)."""

    names: tuple[str, ...]
    codes: Ints


def many_and_few(
    items: Predictions, by: Sequence[str]
) -> tuple[tuple[str, ...], tuple[ManyGroups, ...]]:
    """The columns of at most 50 groups, and those of more.

    Raises
    ------
    UsageError
        If a column is unknown, or has more than 10,000 values, or as many as names of items.
    """
    few, many = list[str](), list[ManyGroups]()
    for column in by:
        codes, names = values_of(items, column)
        if len(names) > MOST_GROUPS:
            raise UsageError(
                f"group {column!r} has {len(names):,} values, more than {MOST_GROUPS:,}; group "
                "them first, or leave it out of `by`"
            )
        if len(names) > MAX_GROUPS and len(names) * LEAST_EACH > items.size:
            raise UsageError(
                f"group {column!r} has {len(names):,} values, more than {MAX_GROUPS}, and "
                f"{items.size / len(names):.2g} items of each: too few to say much of them "
                f"({LEAST_EACH} would do); group the values first, or leave it out of `by`"
            )
        if len(names) <= MAX_GROUPS:
            few.append(column)
        else:
            many.append(ManyGroups(tuple(f"{column}={name}" for name in names), codes))
    return tuple(few), tuple(many)


def refuse_many_groups(
    items: Predictions, method: str, metrics: Chosen, posterior: LabelPosterior, why: str
) -> None:
    """Refuse what is not measured of many groups at once.

    Parameters
    ----------
    posterior
        Of some of the items.
    why
        What else is asked that needs the items of each group by themselves; empty if nothing is.

    Raises
    ------
    UsageError
        If there is any.
    """
    own = [name for name, m in metrics.items() if type(m.statistic) not in _DIGESTS]
    if posterior.means is not None or posterior.observed is not None:
        why = f"method {method!r}"
    elif items.histogram is not None:
        why = "counts of annotators"
    elif items.multiplicity is not None or items.is_sparse:
        why = "rows that stand for several items, or sparse votes,"
    elif own:
        why = f"metric {own[0]!r}"
    if why:
        raise UsageError(
            f"more than {MAX_GROUPS} groups of a column are estimated in one pass, which {why} "
            "does not go with; leave one of them out, or group the values first"
        )


class _Pseudo(NamedTuple):
    """Pseudo-observations of G groups in D draws: item (G, D), predicted (D,), mass (G, D, K)."""

    item: Ints
    predicted: Ints
    mass: Floats


class _Weights(NamedTuple):
    """Label weights (b, K, D), their sums over the classes (b, D), and pseudo-observations."""

    each: Floats
    total: Floats
    pseudo: _Pseudo | None = None

    @staticmethod
    def of(each: Floats, pseudo: _Pseudo | None = None) -> _Weights:
        """With the pseudo-observations that the weights hold."""
        total = each[:, 0] + each[:, 1]  # numpy's sums over a short axis are slow
        for k in range(2, each.shape[1]):
            total += each[:, k]
        return _Weights(each, total, pseudo)


class _Rows(NamedTuple):
    """What a digest is made of: a classifier on some items, sorted by group (b,), of G groups."""

    view: ScoreView
    group: Ints
    n_groups: int

    def sums(self, codes: Ints, size: int, weights: Floats) -> Floats:
        """Sums (size, G, ...) by code and group of weights (b, ...)."""
        out = Indicator(codes * self.n_groups + self.group, size * self.n_groups).sums(weights)
        return out.reshape(size, self.n_groups, *weights.shape[1:])


def _confusion(_: Confusion, rows: _Rows, weights: _Weights) -> Floats:
    """(K, K, G, D), as `confusion._ConfusionPlan`."""
    hard, k, pseudo = rows.view.hard, rows.view.n_classes, weights.pseudo
    assert hard is not None
    state = np.ascontiguousarray(rows.sums(hard, k, weights.each).transpose(0, 2, 1, 3))
    if pseudo is not None:
        group, draw = np.indices(pseudo.item.shape)
        state[hard[pseudo.item], :, group, draw] -= pseudo.mass
        state[np.broadcast_to(pseudo.predicted, draw.shape), :, group, draw] += pseudo.mass
        np.maximum(state, 0.0, out=state)
    return state


def _bins(statistic: CalibrationBins, rows: _Rows, weights: _Weights) -> Floats:
    """(3, bins, G, D), as `calibration._BinsPlan`."""
    codes, event, confidence, size = statistic.binned(rows.view)
    if statistic.quantiles:  # of each group
        ends = np.searchsorted(rows.group, np.arange(rows.n_groups + 1))
        for start, stop in itertools.pairwise(ends.tolist()):
            if stop > start:
                codes[start:stop] = by_quantiles(confidence[start:stop])
    hit = weights.each[np.arange(len(event)), event]
    parts = (weights.total, weights.total * confidence[:, None], hit)
    return np.stack([rows.sums(codes, size, part) for part in parts])


def _loss(statistic: Loss, rows: _Rows, weights: _Weights) -> Floats:
    """(2, G, D), as `proper._LossPlan`."""
    lost = np.einsum("nk,nkd->nd", statistic.per_item(rows.view), weights.each)
    zero = np.zeros(len(lost), dtype=np.int64)
    return np.stack([rows.sums(zero, 1, part)[0] for part in (lost, weights.total)])


def _ranking(_: Ranking, rows: _Rows, weights: _Weights) -> Floats:
    """AUC and average precision, (2, classes, G, D), as `kernels.ranking`, group by group."""
    view = rows.view
    p = view.probabilities
    classes = [1] if p is None or view.n_classes == 2 else list(range(view.n_classes))
    out = np.empty((2, len(classes), rows.n_groups, weights.total.shape[1]))
    for place, k in enumerate(classes):
        score = view.scores if p is None else p[:, k]
        assert score is not None
        order = np.lexsort((score, rows.group))
        group, ranked = rows.group[order], score[order]
        own = weights.each[order, k]
        # Subtraction can leave -1e-17 where there is nothing.
        other = (
            weights.each[order, 0]
            if view.n_classes == 2
            else np.maximum(weights.total[order] - own, 0.0)
        )
        first = np.append(True, (np.diff(group) > 0) | (np.diff(ranked) > 0))
        if not first.all():  # ties share a code
            starts = np.flatnonzero(first)
            own, other = (np.add.reduceat(part, starts, axis=0) for part in (own, other))
            group = group[starts]
        ends = np.searchsorted(group, np.arange(rows.n_groups + 1)).tolist()
        for g, (start, stop) in enumerate(itertools.pairwise(ends)):
            part = (own[start:stop], other[start:stop])
            out[0, place, g] = ranking.auc(*part) if stop > start else np.nan
            out[1, place, g] = ranking.average_precision(*part) if stop > start else np.nan
    return out


_DIGESTS: dict[type, Callable[..., Floats]] = {
    Confusion: _confusion, CalibrationBins: _bins, Loss: _loss, Ranking: _ranking
}  # fmt: skip


class _Task:
    """Classifiers that all have a prediction on every one of some items, sorted by group."""

    def __init__(
        self, part: Predictions, posterior: LabelPosterior, rows: Ints, group: Ints, n_groups: int,
        level: float | None,
    ) -> None:  # fmt: skip
        self.part, self.posterior, self.level = part, posterior, level
        self.group, self.n_groups = group, n_groups
        self.draws = DRAWS if level is not None else 0
        self.weights = LabelWeights.of(part, posterior, rows, DRAWS)
        self.sizes = np.bincount(group, minlength=n_groups)

    def measure(self, metrics: Chosen, columns: Ints) -> dict[str, Measured]:
        """Values (M, G) and draws (D, M, G)."""
        everything = slice(0, len(self.weights))
        size, make = self.weights.of_values()
        some = np.unique(np.linspace(0, size - 1, VALUE_DRAWS).astype(np.int64))
        soft = _Weights.of(make(some, everything))
        views = [view_of(self.part, self.weights.rows, int(j)) for j in columns]
        rows = [_Rows(view, self.group, self.n_groups) for view in views]
        finished = [_finished(metrics, own, soft) for own in rows]
        values = {
            name: np.stack([point_value(found[name][0], only_mean=False) for found in finished])
            for name in metrics
        }
        shape = (self.draws, len(columns), self.n_groups)
        out = {
            name: Measured(value, np.empty(shape), np.zeros(value.shape, dtype=np.int64))
            for name, value in values.items()
        }
        if not self.draws:
            return out
        drawn, expected, mass = self._drawn(any(m.noise_biased for m in metrics.values()))
        names = [self.part.models[int(j)] for j in columns]
        doubts = self.posterior.doubts(names, DRAWS)
        few = np.flatnonzero(self.sizes < TOO_FEW)
        biased = {name: metric for name, metric in metrics.items() if metric.noise_biased}
        for place, own in enumerate(rows):
            drawings = _finished(metrics, own, drawn)
            middles, plains = (_finished(biased, own, weights) for weights in (expected, mass))
            for name, metric in metrics.items():
                value, gap, found = values[name][place], None, drawings[name][0]
                if name in biased:
                    plain, gap = over_draws(np.nanmean, plains[name][0]), plains[name][1]
                    found = recentred(found, middles[name][0], plain)
                shift = None if doubts is None else doubts[:, [place]]
                found = draws_around(
                    value, found, metric.bounds, metric.best, self.posterior.inflation, gap, shift
                )
                found[:, few] = ties_widened(metric, found[:, few], value[few])
                out[name].draws[:, place] = found
        return out

    def _drawn(self, biased: bool) -> tuple[_Weights, _Weights, _Weights]:
        """Drawn labels times row weights, and where noise is `biased`, P(label) for labels.

        The third is P(label) without row weights.
        """
        index, everything = np.arange(DRAWS), slice(0, len(self.weights))
        chances = self.weights.chances(index, everything)
        labels = draw_labels(chances, self.weights.keys, index, self.posterior.salt)
        row_weights = self.weights.row_weights(index, everything)
        hot = labels[:, None, :] == np.arange(self.weights.n_classes)[None, :, None]
        drawn, pseudo = np.where(hot, row_weights[:, None, :], 0.0), self._pseudo()
        self._place(drawn, pseudo)
        of_labels = _Weights.of(drawn, pseudo)
        if not biased:
            return of_labels, of_labels, of_labels
        expected = chances * row_weights[:, None, :]
        self._place(expected, pseudo)
        chances *= self.weights.mass[:, None, None]
        return of_labels, _Weights.of(expected, pseudo), _Weights.of(chances)

    def _pseudo(self) -> _Pseudo:
        """As `LabelWeights.pseudo_observation`, of every group that has items."""
        unseen, weights = self.weights.unseen, self.weights
        by_key = np.lexsort((weights.keys, self.group))
        starts = np.cumsum(self.sizes) - self.sizes
        place = (unseen.place * self.sizes[:, None]).astype(np.int64) + starts[:, None]
        item = by_key[np.minimum(place, len(by_key) - 1)]
        total = np.bincount(self.group, weights.mass, self.n_groups)
        unit = np.bincount(self.group, weights.mass * weights.weight, self.n_groups)
        unit = np.divide(unit, total, out=np.zeros_like(unit), where=total > 0)  # 0: no items
        return _Pseudo(item, unseen.predicted, unseen.mass * unit[:, None, None])

    @staticmethod
    def _place(weights: Floats, pseudo: _Pseudo) -> None:
        draw = np.broadcast_to(np.arange(pseudo.item.shape[1]), pseudo.item.shape)
        weights[pseudo.item, :, draw] += pseudo.mass


def _finished(
    metrics: Chosen, rows: _Rows, weights: _Weights
) -> dict[str, tuple[Floats, Floats | None]]:
    """Metrics (D, G), and what noise alone shows of each (G,), where that inflates it."""
    digests: dict[object, Floats] = {}
    out = {}
    for name, metric in metrics.items():
        statistic = metric.statistic
        if statistic not in digests:
            digests[statistic] = _DIGESTS[type(statistic)](statistic, rows, weights)
        digest = digests[statistic]
        flat = metric.finish(digest.reshape(*digest.shape[:-2], -1))
        noise = None
        if metric.noise_floor is not None:
            noise = over_draws(np.nanmean, metric.noise_floor(digest).T)
        out[name] = (flat.reshape(rows.n_groups, -1).T.copy(), noise)
    return out


# --- all groups of a column -------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ManyMeasurer:
    """Estimates of all groups of a column.

    `posterior_of` gives the posterior of any of the items, `guard` is that of the labeled items,
    or None.
    """

    items: Predictions
    posterior_of: Callable[[Predictions], LabelPosterior]
    metrics: Chosen
    level: float | None
    guard: Guard | None
    labeled: Evaluator

    def rows(
        self, many: ManyGroups, reasons: Reasons
    ) -> tuple[list[Estimate], tuple[GroupSize, ...]]:
        """Estimates in the order of the groups, and the groups' sizes."""
        n_groups, labeled = len(many.names), self.items.labeled
        sizes = np.bincount(many.codes, minlength=n_groups)
        known = np.bincount(many.codes[labeled], minlength=n_groups)
        held = many.codes[labeled]
        by_group = np.argsort(held, kind="stable")
        ends = np.searchsorted(held[by_group], np.arange(n_groups + 1))
        order = np.argsort(many.codes, kind="stable")
        starts = np.cumsum(sizes) - sizes
        height = max(_CELLS // (DRAWS * self.items.n_classes), 1)
        blocks = _blocks(sizes, height)

        def run(block: slice) -> list[dict[str, Measured]]:
            with using_workers(1):
                first, last = starts[block.start], starts[block.stop - 1] + sizes[block.stop - 1]
                return self._measure(np.sort(order[first:last]), many.codes, block, height)

        out, counts = list[Estimate](), _Counts(n_groups)
        for block, found in zip(blocks, map_blocks(run, blocks), strict=True):
            for g, measured in zip(range(block.start, block.stop), found, strict=True):
                own = by_group[ends[g] : ends[g + 1]]
                group = Group(many.names[g], np.sort(own))
                out += self._estimates(group, measured, int(sizes[g]), int(known[g]), counts)
            report(block.stop, n_groups)
        for sentence in counts.sentences(many.names[0].partition("=")[0], n_groups):
            reasons.add(sentence)
        return out, tuple(map(GroupSize, many.names, sizes.tolist(), known.tolist()))

    def _measure(
        self, rows: Ints, codes: Ints, block: slice, height: int
    ) -> list[dict[str, Measured]]:
        """Values (M,) and draws (D, M) of every group of a block."""
        rows = rows[np.argsort(codes[rows], kind="stable")]
        part = self.items.take(rows).keeping(())
        part.__dict__["keys"] = self.items.keys[rows]  # they tell equal ones of all items apart
        group, n_groups = codes[rows] - block.start, block.stop - block.start
        posterior = self.posterior_of(part)
        posterior.prepare()
        if len(rows) > height:  # a single group
            whole = Evaluator(part, posterior, self.metrics, "population", self.level)
            return [whole.measure(np.arange(len(rows)))]
        m = self.items.n_models
        draws = DRAWS if self.level is not None else 0
        every = Evaluator(part, posterior, self.metrics, "population", self.level)
        values = {name: np.full((m, n_groups), np.nan) for name in self.metrics}
        drawn = {name: np.full((draws, m, n_groups), np.nan) for name in self.metrics}
        weighty = np.flatnonzero(part.weight > 0)
        for of, chosen, columns, own in every.patterns(weighty):
            task = _Task(part, of, own, group[own], n_groups, self.level)
            for name, found in task.measure(chosen, columns).items():
                values[name][columns] = found.value
                drawn[name][:, columns] = found.draws
        return [
            {name: Measured.of(values[name][:, g], drawn[name][:, :, g]) for name in self.metrics}
            for g in range(n_groups)
        ]

    def _estimates(
        self, group: Group, measured: dict[str, Measured], size: int, known: int, counts: _Counts
    ) -> Iterator[Estimate]:
        """Rows of a group, moved to its labels where these speak against the method."""
        against: dict[str, Bools] = {}
        if self.guard is not None and known >= LEAST_OF_DRAWS:
            guarded = self.guard.of_group(group, measured, size)
            measured = guarded.measured
            against = {name: self.guard.contradicts(guarded, name) for name in self.metrics}
        stated = float("nan") if self.level is None else self.level
        ends = {
            name: interval(measured[name].value, measured[name].draws, stated, metric.bounds)
            for name, metric in self.metrics.items()
        }
        counts.few += known < FEW_IN_GROUP
        counts.contradicted += any(mask.any() for mask in against.values())
        for j, model in enumerate(self.items.models):
            for name, metric in self.metrics.items():
                value = float(measured[name].value[j])
                low, high = (float(end[j]) for end in ends[name])
                status = self._status(group, metric, j, value, known)
                if name in against and against[name][j]:
                    status = Status.CONTRADICTED
                counts.undefined += status is Status.UNDEFINED
                yield Estimate(model, name, group.name, value, low, high, stated, status)

    def _status(self, group: Group, metric: Metric, j: int, value: float, known: int) -> Status:
        """As `status.judge`, without a look at the labels where these are few by their number."""
        posterior = self.labeled.posterior.of(j)
        if not self.items.gives(metric.needs)[j]:
            return Status.NOT_APPLICABLE
        if not np.isfinite(value):
            return Status.UNDEFINED
        if posterior.status is Status.NOT_CONVERGED:
            return posterior.status
        if not self.items.n_labeled:
            return posterior.status
        if known < FEW_IN_GROUP or not self.labeled.predictions.gives(metric.needs)[j]:
            return Status.FEW_LABELS
        model = self.items.models[j]
        labeled = self.labeled
        return judge(labeled.predictions, labeled.posterior, group, metric, model, value).status


@dataclass
class _Counts:
    """What is to be said of many groups: of how many it holds, not of which."""

    n_groups: int
    few: int = 0
    contradicted: int = 0
    undefined: int = 0

    def sentences(self, column: str, n_groups: int) -> Iterator[str]:
        """One for each kind of doubt."""
        of = f"of the {n_groups:,} groups of {column}"
        if self.few:
            yield f"few-labels: {self.few:,} {of} have fewer than {FEW_IN_GROUP} labeled items"
        if self.contradicted:
            yield (
                f"contradicted: in {self.contradicted:,} {of} the labels and the method disagree "
                "on a metric; get more labels"
            )
        if self.undefined:
            yield (
                f"undefined: {self.undefined:,} estimates {of}, whose items do not define them "
                "(a class is absent or never predicted)"
            )
        yield (
            f"the {n_groups:,} groups of {column} are estimated from {DRAWS} draws each; their "
            "differences are not compared"
        )


def _blocks(sizes: Ints, height: int) -> list[slice]:
    """Consecutive groups of at most so many items together; of one group where it has more."""
    out, start, total = list[slice](), 0, 0
    for g, size in enumerate(sizes.tolist()):
        if g > start and total + size > height:
            out.append(slice(start, g))
            start, total = g, 0
        total += size
    out.append(slice(start, len(sizes)))
    return out
