"""Metrics of hundreds of classes: a drawn label is one number, not one of K zeros and a one.

Label weights (items, K, draws) of a thousand classes would be made, and mostly added as zeros, for
every draw. Here a draw is labels and row weights (n, D) instead, P(class) is looked up in one pass
over the items for all parameter draws, and classes are ranked by bins of ranks. What is measured
is what `evaluator` measures; rankings beyond the first `_EXACT` places are in bins whose ranks
differ by a few percent, where row weights count by their mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, cast

import numpy as np
import scipy.sparse

from fewlabels.evaluation.draws import LabelWeights, Make, PseudoObservation
from fewlabels.kernels import ranking
from fewlabels.kernels.arrays import Array, Bools, Floats, Ints
from fewlabels.kernels.binning import Indicator, by_quantiles
from fewlabels.kernels.blocks import Progress, map_blocks, silent, spans
from fewlabels.metrics.base import ScoreView
from fewlabels.metrics.calibration import CalibrationBins, frequency
from fewlabels.metrics.confusion import Confusion, Margins, apart
from fewlabels.metrics.plans import Chosen
from fewlabels.metrics.proper import Loss
from fewlabels.metrics.ranking import Ranking
from fewlabels.posterior import draw_labels

MANY = 100
"""Of more classes drawn labels are numbers."""

_EXACT, _BINS = 96, 256
"""Ranks that are bins of their own, and bins of all ranks."""

_AT_ONCE, _STATE, _HELD = 2**22, 2**22, 2**25
"""P(class) of a block of items and cells of rankings that are worked on at a time, and numbers that
are held of some classifiers."""

_CLASSES = 64


def serves(weights: LabelWeights, metrics: Chosen) -> bool:
    """Whether these metrics of these items are measured so."""
    plain = weights.times is None and weights.label_spread is None
    return plain and measures(weights.n_classes, metrics)


def measures(n_classes: int, metrics: Chosen) -> bool:
    """Whether these metrics of so many classes are measured so."""
    return n_classes > MANY and all(type(m.statistic) in _DIGESTS for m in metrics.values())


class Drawn(NamedTuple):
    """Labels (n, D), row weights (n, D), and pseudo-observations: item (D,), predicted, mass."""

    labels: Ints
    rows: Floats
    pseudo: tuple[Ints, Ints, Floats] | None

    @property
    def size(self) -> int:
        """How many draws there are."""
        return self.labels.shape[1]

    def part(self, some: slice) -> Drawn:
        """Some of the draws."""
        pseudo = None if self.pseudo is None else cast(Any, tuple(of[some] for of in self.pseudo))
        return Drawn(self.labels[:, some], self.rows[:, some], pseudo)

    def weights_of(self, event: Ints) -> tuple[Floats, Floats]:
        """Weights (n, D) of the items, and of one class (n,) of each."""
        total, hit = self.rows, np.where(self.labels == event[:, None], self.rows, 0.0)
        if self.pseudo is not None:
            item, _, mass = self.pseudo
            total, draw = total.copy(), np.arange(self.size)
            total[item, draw] += mass.sum(axis=1)
            hit[item, draw] += mass[draw, event[item]]
        return total, hit


class RankBins:
    """Bins of the items by their rank for every class, of one classifier.

    `codes` (n, K), larger for larger probabilities; equal ones share that of their middle rank.
    `several` (bins, K) are bins in which there is more than one probability.
    """

    def __init__(self, probabilities: Floats, weight: Floats) -> None:
        n, k = probabilities.shape
        self.weight = weight
        self.codes = np.empty((n, k), dtype=np.uint8)
        self.several = np.zeros((_BINS, k), dtype=bool)
        bin_of = _bins_of_ranks(n)

        def run(some: slice) -> None:
            columns = np.ascontiguousarray(probabilities[:, some].T)
            order = np.argsort(-columns, axis=1)
            ranked = np.take_along_axis(columns, order, axis=1)
            place = np.arange(n)
            for row, c in enumerate(range(some.start, some.stop)):
                first = np.append(True, ranked[row, 1:] != ranked[row, :-1])
                starts = np.flatnonzero(first)
                ends = np.append(starts[1:], n) - 1
                middle = place if len(starts) == n else ((starts + ends) // 2)[first.cumsum() - 1]
                self.codes[order[row], c] = bin_of[middle]
                groups = bin_of[(starts + ends) // 2]
                self.several[groups[1:][groups[1:] == groups[:-1]], c] = True

        for _ in map_blocks(run, spans(k, _CLASSES)):
            pass

    @cached_property
    def mass(self) -> Floats:
        """Sampling weight in every bin of every class, (bins, K)."""
        n, k = self.codes.shape
        out = np.zeros((_BINS, k))
        every = np.arange(k)
        for block in spans(n, max(_AT_ONCE // k, 1)):
            cell = self.codes[block].astype(np.int64) * k + every
            weight = np.repeat(self.weight[block], k)
            out += np.bincount(cell.ravel(), weight, minlength=_BINS * k).reshape(_BINS, k)
        return out

    @property
    def first(self) -> int:
        """The first bin of which each item counts by its own row weight."""
        return 0 if self.codes.size <= _AT_ONCE else _BINS - _EXACT

    @cached_property
    def top(self) -> scipy.sparse.csr_matrix:
        """Which items are in each of these bins, (bins K, n)."""
        k = self.codes.shape[1]
        item, c = np.nonzero(self.codes >= self.first)
        cell = (self.codes[item, c].astype(np.int64) - self.first) * k + c
        shape = ((_BINS - self.first) * k, len(self.codes))
        return scipy.sparse.csr_matrix((np.ones(len(item)), (cell, item)), shape)

    def digest(self, drawn: Drawn) -> Floats:
        """AUC and average precision of every class, (2, K, D)."""
        k = self.codes.shape[1]
        parts = spans(drawn.size, max(_STATE // (_BINS * k), 1))
        _ = self.top, self.mass  # made once, before there are threads
        return np.concatenate(
            list(map_blocks(lambda part: self._digest(drawn, part), parts)), axis=2
        )

    def _digest(self, drawn: Drawn, part: slice) -> Floats:
        labels, rows = drawn.labels[:, part], drawn.rows[:, part]
        (n, size), k = rows.shape, self.codes.shape[1]
        code = self.codes[np.arange(n)[:, None], labels].astype(np.int64)
        cell = (code * k + labels) * size + np.arange(size)
        own = _counted(cell, rows, _BINS * k * size).reshape(_BINS, k, size)
        share = rows.sum(axis=0) / self.weight.sum()
        if drawn.pseudo is not None:
            item, _, mass = (of[part] for of in drawn.pseudo)
            draw = np.arange(size)
            own[self.codes[item], np.arange(k), draw[:, None]] += mass
            rows = rows.copy()
            rows[item, draw] += mass.sum(axis=1)
        total = self.mass[:, :, None] * share
        total[self.first :] = (self.top @ rows).reshape(-1, k, size)
        return _ranked(own, total, self.several)


def _counted(cells: Ints, weights: Floats, size: int) -> Floats:
    """Sums of weights by cell, (size,)."""
    return np.bincount(cells.ravel(), weights.ravel(), minlength=size).astype(
        np.float64, copy=False
    )


def _ranked(own: Floats, total: Floats, several: Bools) -> Floats:
    """AUC and average precision (2, K, D) of a class's and all weight in every bin (bins, K, D).

    Within a bin of several probabilities (bins, K) precision is integrated.
    """
    k, size = own.shape[1:]
    flat = own.reshape(_BINS, -1)
    other = np.maximum(total - own, 0.0).reshape(_BINS, -1)
    bins: Bools = np.repeat(several, size, axis=1)
    if (several.all(axis=1) | ~several.any(axis=1)).all():
        bins = several[:, 0]
    found = (ranking.auc(flat, other), ranking.average_precision(flat, other, interpolate=bins))
    return np.stack(found).reshape(2, k, size)


def _bins_of_ranks(n: int) -> Array:
    """Bin of each rank (n,), the largest first: its own up to `_EXACT`, then geometric."""
    place = np.arange(n)
    if n <= _EXACT:
        return (_BINS - 1 - place).astype(np.uint8)
    steps = min(_BINS - _EXACT, n - _EXACT)
    far = np.log((place + 1) / (_EXACT + 1)) / np.log((n + 1) / (_EXACT + 1))
    later = np.minimum(_EXACT + (far * steps).astype(np.int64), _BINS - 1)
    return (_BINS - 1 - np.where(place < _EXACT, place, later)).astype(np.uint8)


class Prepared:
    """A classifier's view (n items), with bins and losses once they are asked for."""

    def __init__(self, view: ScoreView, weight: Floats) -> None:
        self.view, self.weight = view, weight
        self._binned: dict[object, tuple[Ints, Ints, Floats, int]] = {}

    @cached_property
    def ranks(self) -> RankBins:
        """The bins of its ranks."""
        assert self.view.probabilities is not None
        return RankBins(self.view.probabilities, self.weight)

    def binned(self, statistic: Any) -> tuple[Ints, Ints, Floats, int]:
        """Bin, event and its probability of each item (n,), and how many bins there are."""
        if statistic not in self._binned:
            codes, event, confidence, size = statistic.binned(self.view)
            codes = by_quantiles(confidence) if statistic.quantiles else codes
            self._binned[statistic] = codes, event, confidence, size
        return self._binned[statistic]

    @lru_cache(maxsize=1)  # noqa: B019 - lives as long as its task
    def loss(self, statistic: Loss) -> Floats:
        """Loss of each item under each class, (n, K)."""
        return statistic.per_item(self.view)


def _confusion(_: Confusion, of: Prepared, drawn: Drawn) -> Margins:
    hard, k = of.view.hard, of.view.n_classes
    assert hard is not None
    draw = np.arange(drawn.size)

    def by_class(classes: Ints, weights: Floats) -> Floats:
        cell = classes.astype(np.int64) * drawn.size + draw
        return _counted(cell, weights, k * drawn.size).reshape(k, drawn.size)

    right = np.where(drawn.labels == hard[:, None], drawn.rows, 0.0)
    hits, predicted = by_class(hard[:, None], right), by_class(hard[:, None], drawn.rows)
    present = by_class(drawn.labels, drawn.rows)
    off = apart(drawn.labels - hard[:, None])
    far = np.stack([np.einsum("nd,nd->d", drawn.rows, one) for one in off])
    if drawn.pseudo is not None:
        guess, mass = drawn.pseudo[1:]
        hits[guess, draw] += mass[draw, guess]
        predicted[guess, draw] += mass.sum(axis=1)
        present += mass.T
        off = apart(np.arange(k) - guess[:, None])
        far += np.stack([np.einsum("dk,dk->d", mass, one) for one in off])
    return Margins(hits, predicted, present, far)


def _bins(statistic: CalibrationBins, of: Prepared, drawn: Drawn) -> Floats:
    codes, event, confidence, size = of.binned(statistic)
    return _summed_bins(codes, confidence, size, *drawn.weights_of(event))


def _summed_bins(codes: Ints, confidence: Floats, size: int, total: Floats, hit: Floats) -> Floats:
    """(3, bins, D), as `calibration._BinsPlan`."""
    count = Indicator(codes, size)
    return np.stack([count.sums(part) for part in (total, total * confidence[:, None], hit)])


def _loss(statistic: Loss, of: Prepared, drawn: Drawn) -> Floats:
    loss = of.loss(statistic)
    lost = (np.take_along_axis(loss, drawn.labels, axis=1) * drawn.rows).sum(axis=0)
    total = drawn.rows.sum(axis=0)
    if drawn.pseudo is not None:
        item, _, mass = drawn.pseudo
        lost += (loss[item] * mass).sum(axis=1)
        total += mass.sum(axis=1)
    return np.stack([lost, total])


def _ranking(_: Ranking, of: Prepared, drawn: Drawn) -> Floats:
    return of.ranks.digest(drawn)


_DIGESTS: dict[type, Callable[..., Floats | Margins]] = {
    Confusion: _confusion, CalibrationBins: _bins, Loss: _loss, Ranking: _ranking
}  # fmt: skip


def _digest_of(statistic: Any, of: Prepared, drawn: Drawn) -> Floats | Margins:
    """A digest of all draws, of which so many are worked on at a time as memory holds."""
    make = _DIGESTS[type(statistic)]
    if isinstance(statistic, Ranking):
        return make(statistic, of, drawn)
    some = spans(drawn.size, max(_AT_ONCE // max(len(drawn.labels), 1), 1))
    parts = [make(statistic, of, drawn.part(draws)) for draws in some]
    if isinstance(parts[0], Margins):
        together = zip(*cast(list[Margins], parts), strict=True)
        return Margins(*(np.concatenate(own, axis=-1) for own in together))
    return np.concatenate(cast(list[Floats], parts), axis=-1)


def metrics_of(chosen: Chosen, of: Prepared, drawn: Drawn) -> dict[str, Floats]:
    """Metrics (D,) of a classifier under drawn labels; those of one statistic share its digest."""
    statistics = {m.statistic: None for m in chosen.values() if of.view.provides(m.needs)}
    digests = {s: _digest_of(s, of, drawn) for s in statistics}
    return _finished(chosen, digests, drawn.size)


def shifts(
    chosen: Chosen, views: Sequence[ScoreView], labels: Ints, before: Floats, after: Floats
) -> dict[str, Floats]:
    """What other row weights (n, D) do to metrics under drawn labels (n, D): (D, M) each."""
    out = []
    for view in views:
        of = Prepared(view, before[:, 0])
        old, new = (metrics_of(chosen, of, Drawn(labels, w, None)) for w in (before, after))
        out.append({name: new[name] - old[name] for name in chosen})
    return {name: np.stack([own[name] for own in out], axis=1) for name in chosen}


def _finished(
    chosen: Chosen, digests: Mapping[Any, Floats | Margins], size: int
) -> dict[str, Floats]:
    nothing = np.full(size, np.nan)
    return {
        name: metric.finish(cast(Floats, digests[metric.statistic]))
        if metric.statistic in digests
        else nothing
        for name, metric in chosen.items()
    }


# --- P(class) of parameter draws: never held for all items ----------------------------------------


def _soft_parts(statistic: object, of: Prepared, p: Floats, block: slice) -> tuple[Floats, ...]:
    """What adds up over blocks of items of label weights (b, K, D), for a digest."""
    view, item = of.view, np.arange(len(p))
    size, k = p.shape[2], p.shape[1]
    if isinstance(statistic, Confusion):
        assert view.hard is not None
        hard = view.hard[block]
        by_class, place = Indicator(hard, k), np.arange(k)
        far = np.stack([np.tensordot(one, p, axes=2) for one in apart(place - hard[:, None])])
        total = p.sum(axis=1)
        return by_class.sums(p[item, hard]), by_class.sums(total), p.sum(axis=0), far
    if isinstance(statistic, CalibrationBins):
        codes, event, confidence, bins = of.binned(statistic)
        hit = p[item, event[block]]
        return (_summed_bins(codes[block], confidence[block], bins, p.sum(axis=1), hit),)
    if isinstance(statistic, Loss):
        loss = of.loss(statistic)[block]
        return (np.stack([np.einsum("nk,nkd->d", loss, p), p.sum(axis=(0, 1))]),)
    cell = of.ranks.codes[block].astype(np.int64) * k + np.arange(k)
    return (Indicator(cell.ravel(), _BINS * k).sums(p.reshape(-1, size)),)


def _soft_digest(statistic: object, of: Prepared, parts: tuple[Floats, ...]) -> Floats | Margins:
    if isinstance(statistic, Confusion):
        return Margins(*parts)
    if isinstance(statistic, Ranking):
        own = parts[0].reshape(_BINS, -1, parts[0].shape[1])
        return _ranked(own, of.ranks.mass[:, :, None], of.ranks.several)
    return parts[0]


class ManyClasses:
    """Some classifiers on items of many classes, under label weights."""

    def __init__(
        self, weights: LabelWeights, views: Sequence[ScoreView], progress: Progress
    ) -> None:
        self.weights, self.progress = weights, progress
        self.prepared = [Prepared(view, weights.mass) for view in views]
        cells = len(weights) * weights.n_interval_parameters
        places = [j for j, view in enumerate(views) if view.probabilities is not None]
        self._parts = [places[s] for s in spans(len(places), max(2 * _HELD // max(cells, 1), 1))]
        self._first: Floats | None = None

    def over(
        self, size: int, chosen: Chosen, make: Make, pseudo: PseudoObservation | None = None
    ) -> dict[str, Floats]:
        """Metrics (size, M) of the weights of draws 0 .. size - 1 that `make` would make."""
        weights, kind = self.weights, make.__name__
        if kind in ("soft", "interval_soft") or (kind == "marginal" and not weights.certain):
            return self._of_chances(size, chosen, kind)
        if kind == "expected":
            return self._expected(size, chosen)
        drawn = self.drawn(size, kind, pseudo)
        found = [metrics_of(chosen, of, drawn) for of in self.prepared]
        return {name: np.stack([own[name] for own in found], axis=1) for name in chosen}

    def chance_gaps(self, chosen: Chosen, size: int) -> dict[str, Floats]:
        """Metrics (size, M) of labels drawn from every classifier's own probabilities."""
        index, out = np.arange(size), []
        rows = np.broadcast_to(self.weights.weight[:, None], (len(self.weights), size))
        for of in self.prepared:
            if of.view.probabilities is None:
                out.append({name: np.full(size, np.nan) for name in chosen})
                continue
            labels = draw_labels(
                of.view.probabilities, self.weights.keys, index, self.weights.posterior.salt
            )
            out.append(metrics_of(chosen, of, Drawn(labels, rows, None)))
        return {name: np.stack([own[name] for own in out], axis=1) for name in chosen}

    def interval_digests(self, chosen: Chosen) -> Iterator[tuple[int, dict[str, Floats]]]:
        """Digests of bins under the parameter draws that intervals use, per classifier."""
        mass = self.weights.mass[:, None]
        for j, of, chances in self._chances():
            digests = {}
            for name, metric in chosen.items():
                codes, _, confidence, bins = of.binned(metric.statistic)
                total = np.broadcast_to(mass, chances.shape)
                digests[name] = _summed_bins(codes, confidence, bins, total, chances * mass)
            yield j, digests

    def of_events(
        self, size: int, make: Make, events: Ints, pseudo: PseudoObservation | None = None
    ) -> Iterator[tuple[int, Floats, Floats]]:
        """Weights (n, D) of the items, and of the class of each that a column of events (n, E) is.

        With the column's number; weights are those of draws 0 .. size - 1 that `make` would make.
        """
        weights, kind, mass = self.weights, make.__name__, self.weights.mass[:, None]
        if kind in ("soft", "interval_soft"):
            posterior, count = weights.posterior, weights.chance_draws(kind)
            of = posterior.parameters if kind == "soft" else posterior.interval_parameters
            total, every = np.repeat(mass, size, axis=1), np.arange(size) % count
            at_once = max(2 * _HELD // max(len(weights) * count, 1), 1)
            for some in spans(events.shape[1], at_once):
                own = events[:, some]
                _, chances = weights.interval_pass(0, own, parameters=of, progress=self.progress)
                assert chances is not None
                for j in range(own.shape[1]):
                    yield some.start + j, total, chances[:, j, every] * mass
        elif kind == "marginal":
            p = weights.posterior.probabilities[weights.rows]
            total = np.repeat(mass, size, axis=1)
            for j, event in enumerate(events.T):
                yield j, total, np.take_along_axis(p, event[:, None], axis=1) * total
        else:
            drawn = self.drawn(size, kind, pseudo)
            for j, event in enumerate(events.T):
                yield j, *drawn.weights_of(event)

    # --- drawn labels ------------------------------------------------------------------------

    def drawn(self, size: int, kind: str, pseudo: PseudoObservation | None) -> Drawn:
        """Draws 0 .. size - 1 of a kind."""
        of_unseen = pseudo(np.arange(size)) if pseudo is not None else None
        return Drawn(self._labels(kind, size), self._rows(kind, size), of_unseen)

    def _rows(self, kind: str, size: int) -> Floats:
        if kind == "finite_population":
            return self.weights.urn_rows(np.arange(size))
        if kind != "population":
            return np.broadcast_to(self.weights.weight[:, None], (len(self.weights), size))
        out = np.empty((len(self.weights), size))
        for block in spans(len(out), max(_AT_ONCE // size, 1)):
            out[block] = self.weights.row_weights(np.arange(size), block)
        return out

    def _labels(self, kind: str, size: int) -> Ints:
        weights, posterior = self.weights, self.weights.posterior
        if weights.certain:
            return np.broadcast_to(weights.known[:, None], (len(weights), size))
        index = np.arange(size)
        if kind == "population":
            # What bins ask of the same pass over all of P(class) is kept for them.
            events = self._events(self._parts[0]) if self._parts else None
            labels, self._first = weights.interval_pass(size, events, progress=self.progress)
        elif kind == "sample":
            arbitrary = weights.arbitrary_share[:size]
            labels, _ = weights.interval_pass(size, None, arbitrary, progress=self.progress)
            known = np.flatnonzero(weights.known >= 0)
            labels[known] = weights.known[known, None]
        elif posterior.value_from == "marginals":
            of = posterior.probabilities[weights.rows]
            labels = draw_labels(of, weights.keys, index, posterior.salt)
        else:
            labels, _ = weights.interval_pass(
                size, None, parameters=posterior.parameters, progress=self.progress
            )
        return labels

    # --- P(class) ----------------------------------------------------------------------------

    def _of_chances(self, size: int, chosen: Chosen, kind: str) -> dict[str, Floats]:
        """Metrics (size, M) of P(class) times weights, a few classifiers at a time."""
        weights, posterior = self.weights, self.weights.posterior
        make = {"soft": weights.soft, "marginal": weights.marginal}.get(kind, weights.interval_soft)
        k, count = weights.n_classes, min(size, weights.chance_draws(kind))
        index, found = np.arange(count), list[dict[str, Floats]]()
        applies = [
            {s: None for m in chosen.values() if of.view.provides(m.needs) for s in [m.statistic]}
            for of in self.prepared
        ]
        many = max(_HELD // 2 // (_BINS * k * count), 1)
        marginals = None
        if (
            kind == "soft"
            and weights.all_rows
            and posterior.given is None
            and "probabilities" not in posterior.__dict__
        ):
            marginals = np.empty((len(weights), k))  # somebody will ask for them
        for some in spans(len(self.prepared), many):
            own, statistics = self.prepared[some], applies[some]

            def run(
                block: slice, own: Any = own, statistics: Any = statistics
            ) -> list[list[tuple[Floats, ...]]]:
                p = make(index, block)
                if marginals is not None:
                    marginals[block] = p.mean(axis=2) / weights.mass[block, None]
                return [
                    [_soft_parts(statistic, of, p, block) for statistic in each]
                    for of, each in zip(own, statistics, strict=True)
                ]

            for of, each in zip(own, statistics, strict=True):
                if any(isinstance(statistic, Ranking) for statistic in each):
                    _ = of.ranks  # made once, before there are threads
            height = max(_AT_ONCE * 4 // (k * count), 1)
            sums: list[list[tuple[Floats, ...]]] = []
            blocks = spans(len(weights), height)
            for done, parts in enumerate(map_blocks(run, blocks), 1):
                if done == 1:
                    sums = parts
                else:
                    for held, part in zip(sums, parts, strict=True):
                        for x, y in zip(held, part, strict=True):
                            for total, more in zip(x, y, strict=True):
                                total += more
                del parts
                self.progress(done, len(blocks))
            for of, each, held in zip(own, statistics, sums, strict=True):
                digests = {
                    statistic: _soft_digest(statistic, of, part)
                    for statistic, part in zip(each, held, strict=True)
                }
                found.append(_finished(chosen, digests, count))
        if marginals is not None:
            posterior.__dict__["probabilities"] = marginals
        every = np.arange(size) % count
        return {n: np.stack([own[n][every] for own in found], axis=1) for n in chosen}

    def _expected(self, size: int, chosen: Chosen) -> dict[str, Floats]:
        """Metrics (size, M) of bins under P(class) times row weights, and pseudo-observations."""
        weights, index = self.weights, np.arange(size)
        rows = self._rows("population", size)
        item, _, mass = weights.pseudo_observation(index)
        out = {name: np.full((size, len(self.prepared)), np.nan) for name in chosen}
        total = rows.copy()
        total[item, index] += mass.sum(axis=1)
        for j, of, chances in self._chances():
            hit = rows * chances[:, index % chances.shape[1]]
            for name, metric in chosen.items():
                codes, event, confidence, bins = of.binned(metric.statistic)
                own = hit.copy()
                own[item, index] += mass[index, event[item]]
                digest = _summed_bins(codes, confidence, bins, total, own)
                out[name][:, j] = metric.finish(digest)
        return out

    def _events(self, places: Sequence[int]) -> Ints:
        """The predicted classes of some classifiers, (n, m)."""
        of_views = [self.prepared[j].view.probabilities for j in places]
        return np.stack([np.argmax(p, axis=1) for p in of_views if p is not None], axis=1)

    def _chances(self) -> Iterator[tuple[int, Prepared, Floats]]:
        """P(event) (n, T) of classifiers' events under the parameter draws that intervals use."""
        for number, places in enumerate(self._parts):
            chances = self._first if number == 0 else None
            if chances is None:
                events = self._events(places)
                _, chances = self.weights.interval_pass(0, events, progress=self.progress)
            assert chances is not None
            for j, own in zip(places, chances.transpose(1, 0, 2), strict=True):
                yield j, self.prepared[j], own


def frequencies(
    weights: LabelWeights, size: int, classifiers: Sequence[tuple[Ints, Indicator]]
) -> Floats:
    """How often classifiers' events are right in every bin of a population's draws, (C, B, D)."""
    drawn = ManyClasses(weights, [], silent).drawn(size, "population", weights.pseudo_observation)
    out = []
    for event, items in classifiers:
        total, hit = drawn.weights_of(event)
        out.append(frequency(items.sums(hit), items.sums(total)))
    return np.stack(out)
