"""LabelDistribution: each item has a distribution of annotators' labels instead of one class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from fewlabels.checks.arguments import whole
from fewlabels.errors import FewlabelsError, Status
from fewlabels.kernels.arrays import Floats, Ints, UInts
from fewlabels.kernels.counter_based import uniforms
from fewlabels.kernels.dirichlet_multinomial import derivatives, terms
from fewlabels.kernels.simplex import linear_pool
from fewlabels.methods.base import FittedLabelModel, LabelModel, gravest
from fewlabels.methods.baselines.plain import Labeled
from fewlabels.methods.replicates import in_turn
from fewlabels.posterior import Fixed, LabelPosterior, LabelSpread, ObservedLabels, ParameterDraws
from fewlabels.predictions import Predictions

_FOLDS = 5


@dataclass(frozen=True)
class LabelDistribution(LabelModel):
    """Any label model, for labels that differ between annotators.

    An item has a distribution Q over classes: what annotators say of it. The label model is
    fitted to labels drawn from the annotators', several times; it then says f = E[Q |
    predictions]. Given f, Q is Dirichlet(alpha0 f) (Mimori et al. 2021), so an item with counts h
    of n labels has mean (alpha0 f + h) / (alpha0 + n). alpha0 is drawn from its posterior under
    the counts of items that have two labels or more (their eq. 50 with a weak prior for its
    penalty). f of an item with counts, and alpha0, come from fits that did not see its labels.
    A known label counts as that of one annotator, where there are no counts, in draws; in the
    marginals it keeps probability 1.

    Labels of one item are not independent. As many of them are drawn as they are worth, under
    the concentration of the averaged probabilities (100 at most); without probabilities, one.

    Parameters
    ----------
    model
        The label model that learns from the drawn labels. `Labeled` takes the counts as they are.
    imputations
        How often labels are drawn and the model is fitted; once where all annotators of every
        item agree and one label is drawn of each.
    """

    model: LabelModel
    imputations: int = 5

    def __post_init__(self) -> None:
        whole("imputations", self.imputations)

    @property
    def grouped(self) -> bool:
        """As its model."""
        return self.model.grouped

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Draw labels, fit the model to them, and find the concentration."""
        items = predictions.as_histograms()
        assert items.histogram is not None
        if isinstance(self.model, Labeled):
            counts = items.histogram[items.histogram.any(axis=1)]
            named = (counts / counts.sum(axis=1, keepdims=True)).sum(axis=0) + 0.5
            frequency = tuple((named / named.sum()).tolist())
            return _FittedCounts(frequency, int(rng.integers(2**63)))
        worth = effective_labels(items.histogram.sum(axis=1), _concentration_of_pool(items))
        mixed = ((items.histogram > 0).sum(axis=1) > 1).any() or (worth > 1).any()
        drawn = [
            _drawn(items, worth, int(rng.integers(2**63)))
            for _ in range(self.imputations if mixed else 1)
        ]
        fits = [self.model.fit(rows, rng) for rows, _ in drawn]
        apart = []
        for fold in range(_FOLDS):
            rows, item = drawn[fold % len(drawn)]
            labels = np.where(_fold(items)[item] == fold, -1, rows.labels)
            try:
                apart.append(self.model.fit(rows.with_evidence(labels), rng))
            except FewlabelsError:  # too few labels are left, for this model
                apart.append(fits[fold % len(drawn)])
        several = bool((items.histogram.sum(axis=1) >= 2).any())
        return _FittedDistribution(
            tuple(fits), tuple(apart), _concentrations(items, fits, apart), several
        )


def _fold(items: Predictions) -> Ints:
    """Which fit leaves out an item's labels: by its identity, (n,)."""
    return (items.keys % np.uint64(_FOLDS)).astype(np.int64)


def _drawn(items: Predictions, worth: Floats, salt: int) -> tuple[Predictions, Ints]:
    """Items with labels of annotators drawn: a row for each label, and its item (R,)."""
    assert items.histogram is not None
    sizes = round_at_random(worth, items.keys, salt)
    item, label = draw_labels_of_annotators(items.histogram, sizes, items.keys, salt)
    times = np.maximum(sizes, 1)
    rows = np.repeat(np.arange(items.n_items), times)
    first = np.cumsum(times) - times
    labels = np.full(len(rows), -1)
    labels[first[item] + np.arange(len(item)) - np.searchsorted(item, item)] = label
    drawn = items if len(rows) == items.n_items else _rows_of(items, rows)
    # The rows of an item share its weight.
    return drawn.with_evidence(labels, items.weight[rows] / times[rows]), rows


def _rows_of(items: Predictions, rows: Ints) -> Predictions:
    """Some items, whatever their weights; possibly none."""
    return items.with_evidence(None, np.ones(items.n_items)).take(rows)


def _concentration_of_pool(items: Predictions) -> float:
    """Concentration around the averaged probabilities; without any 0, so that one label counts."""
    if items.probabilities is None:
        return 0.0
    assert items.histogram is not None
    rows = np.flatnonzero((items.histogram.sum(axis=1) >= 2) & items.has_probabilities.any(axis=1))
    if not len(rows):
        return 0.0
    even = np.full(items.n_classes, 1 / items.n_classes)
    pool = linear_pool(items.probabilities[rows], even)
    return likeliest_concentration(pool, items.histogram[rows], items.keys[rows])


def _concentrations(
    items: Predictions, fits: Sequence[FittedLabelModel], apart: Sequence[FittedLabelModel]
) -> tuple[Floats, ...]:
    """Draws (S,) of alpha0 given the items with two labels or more: of all, and by classifier."""
    assert items.histogram is not None
    rows = np.flatnonzero(items.histogram.sum(axis=1) >= 2)
    counts, keys = items.histogram[rows], items.keys[rows]
    if not len(rows):
        anything = fits[0].posterior(_rows_of(items, np.arange(1)))
        return (concentration_draws(counts, counts, keys),) * (1 + len(anything.per_model))
    annotated = _Annotated.of(items, apart, rows)
    first = next(posterior for posterior in annotated.posteriors if posterior is not None)
    # All classifiers together, then each that has a posterior of its own.
    classifiers = [None, *range(len(first.per_model))]
    return tuple(concentration_draws(annotated.expected(j), counts, keys) for j in classifiers)


@dataclass(frozen=True, eq=False)
class _FittedDistribution(FittedLabelModel):
    """Fits to all drawn labels, fits that left out a fold's, and draws of the concentration.

    `concentrations` holds those of the posterior of all classifiers, then those of each
    classifier's own, where it has one.
    """

    fits: tuple[FittedLabelModel, ...]
    apart: tuple[FittedLabelModel, ...]
    concentrations: tuple[Floats, ...]
    several: bool

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        items = predictions.as_histograms()
        assert items.histogram is not None
        counts, sizes = items.histogram, items.histogram.sum(axis=1)
        # As everywhere, a known label has probability 1; draws know that it is one annotator's.
        alone = np.flatnonzero(predictions.labeled & (sizes == 1))
        alone = alone[counts[alone, predictions.labels[alone]] == 1]
        annotated = replace(_Annotated.of(items, self.apart, np.flatnonzero(sizes)), alone=alone)
        # Where no item has two labels, how far labels tell is assumed, and they moved f too: allow
        # for a label's noise as if none had been seen, which is on the wide side.
        spread_by = sizes if self.several else np.zeros(items.n_items)
        blank = items.with_evidence(None)
        posteriors = [fit.posterior(blank) for fit in self.fits]

        def merged(j: int | None) -> LabelPosterior:
            """One posterior of several fits: all their draws, each item's counts taken in."""
            concentration = self.concentrations[0 if j is None else 1 + j]
            parts = [_of(posterior, j) for posterior in posteriors]
            draws = tuple(p.parameters for p in parts)
            of_intervals = tuple(
                p.interval_parameters for p in parts if p.interval_parameters is not None
            )
            pooled = partial(
                _Pooled, annotated=annotated, concentration=concentration, classifier=j
            )
            return replace(
                parts[0],
                given=lambda: annotated.mean(
                    np.mean([p.probabilities for p in parts], axis=0), concentration, j
                ),
                parameters=pooled(draws, of_intervals=False),
                interval_parameters=pooled(of_intervals, of_intervals=True)
                if of_intervals
                else None,
                label_spread=LabelSpread(spread_by, concentration),
                per_model=(),
                score_rates=None,
                vote_rates=None,
                status=gravest(p.status for p in parts),
                warnings=tuple(dict.fromkeys(text for p in parts for text in p.warnings)),
            )

        every = merged(None)
        warnings, status = every.warnings, every.status
        if not self.several and (sizes > 0).any():
            warnings += (
                "assumption: no item has two labels, so nothing tells how far annotators' "
                "distributions are from the probabilities; ask a second annotator about some items",
            )
        return replace(
            every,
            keys=items.keys,
            per_model=tuple(
                None if one is None else merged(j) for j, one in enumerate(posteriors[0].per_model)
            ),
            warnings=warnings,
            status=Status.ASSUMPTION if status is Status.OK and not self.several else status,
            diagnostics=dict(every.diagnostics)
            | {
                "annotator_concentration": float(np.median(self.concentrations[0])),
                "imputations": len(posteriors),
            },
        )


def _of(posterior: LabelPosterior, j: int | None) -> LabelPosterior:
    """The posterior of all classifiers, or the one by which a classifier is assessed."""
    return posterior if j is None else posterior.of(j)


@dataclass(frozen=True, eq=False)
class _Annotated:
    """What annotators say of items, and what fits that left out an item's labels say of it.

    `counts` (n, K); `rows` are the items in question, `fold` and `place` (n,) by which of the
    posteriors each is spoken of, and where in it: -1 for others. `alone` are the items whose label
    is known, and nothing else of them.
    """

    counts: Floats
    rows: Ints
    fold: Ints
    place: Ints
    posteriors: tuple[LabelPosterior | None, ...]
    alone: Ints

    @staticmethod
    def of(items: Predictions, apart: Sequence[FittedLabelModel], rows: Ints) -> _Annotated:
        assert items.histogram is not None
        fold, place = np.full((2, items.n_items), -1)
        fold[rows] = _fold(items)[rows]
        posteriors: list[LabelPosterior | None] = []
        for number, fit in enumerate(apart):
            members = np.flatnonzero(fold == number)
            place[members] = np.arange(len(members))
            posteriors.append(fit.posterior(_rows_of(items, members)) if len(members) else None)
        return _Annotated(items.histogram, rows, fold, place, tuple(posteriors), rows[:0])

    def expected(self, j: int | None) -> Floats:
        """P(label) of the items in question by fits without their labels, (R, K)."""
        out = np.empty((len(self.rows), self.counts.shape[1]))
        for number, posterior in enumerate(self.posteriors):
            if posterior is not None:
                members = self.fold[self.rows] == number
                out[members] = _of(posterior, j).probabilities[self.place[self.rows[members]]]
        return out

    def mean(self, f: Floats, concentration: Floats, j: int | None) -> Floats:
        """E[Q | f, counts] in place of f (n, K), the mean over the concentrations (S,)."""
        rows = self.rows
        if len(rows):
            sizes = self.counts[rows].sum(axis=1, keepdims=True)
            share = (concentration / (concentration + sizes)).mean(axis=1)[:, None]
            f[rows] = share * self.expected(j) + (1 - share) * (self.counts[rows] / sizes)
        f[self.alone] = self.counts[self.alone]
        return f

    def update(
        self, f: Floats, concentration: Floats, j: int | None, index: Ints, rows: Ints | slice,
        *, of_intervals: bool,
    ) -> Floats:  # fmt: skip
        """E[Q | f, counts] in place of f (n, K, D), with concentrations (D,), draw by draw."""
        fold, place, counts = self.fold[rows], self.place[rows], self.counts[rows]
        for number, posterior in enumerate(self.posteriors):
            members = np.flatnonzero(fold == number)
            if posterior is not None:  # of no items too: see `first_block`
                one = _of(posterior, j)
                draws = one.interval_draws if of_intervals else one.parameters
                f[members] = draws.block(index % draws.size, place[members])
        annotated = np.flatnonzero(counts.any(axis=1))
        total = concentration + counts[annotated].sum(axis=1, keepdims=True)
        # (alpha0 f + h) / (alpha0 + n), a Dirichlet's mean given counts h of n labels.
        f[annotated] *= (concentration / total)[:, None, :]
        f[annotated] += counts[annotated][:, :, None] / total[:, None, :]
        return f


@dataclass(frozen=True, eq=False)
class _Pooled:
    """Parameter draws of several fits in turn, each item's counts taken in."""

    parts: tuple[ParameterDraws, ...]
    annotated: _Annotated
    concentration: Floats
    classifier: int | None
    of_intervals: bool

    @property
    def size(self) -> int:
        return max(*(part.size for part in self.parts), len(self.parts))

    def block(self, index: Ints, rows: Ints | slice) -> Floats:
        """E[Q | draw, counts] of these items, shape (n, K, D)."""
        out = in_turn(self.parts, index % len(self.parts), index, rows)
        return self.annotated.update(
            out, self.concentration[index % len(self.concentration)], self.classifier, index, rows,
            of_intervals=self.of_intervals,
        )  # fmt: skip


@dataclass(frozen=True)
class _FittedCounts(FittedLabelModel):
    """The annotated items alone, their counts as they are."""

    frequency: tuple[float, ...]  # how often the classes are named, an item counting once (K,)
    salt: int

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        items = predictions.as_histograms()
        assert items.histogram is not None
        sizes = items.histogram.sum(axis=1)
        p = np.tile(self.frequency, (items.n_items, 1))
        rows = np.flatnonzero(sizes)
        p[rows] = items.histogram[rows] / sizes[rows, None]
        return ObservedLabels(
            p,
            Fixed(p),
            items.keys,
            salt=self.salt,
            value_from="marginals",
            observed=sizes > 0,
            label_spread=LabelSpread(np.full(items.n_items, np.inf), np.zeros(1)),
        )


# --- annotators' labels -----------------------------------------------------------------------
#
# How much labels of several annotators of one item are worth, and drawing some of them.


_MOST_ITEMS = 5_000
"""So many items determine the one number well enough."""

_PRIOR_SD = 1.5
"""Prior standard deviation of log alpha0: .05 to 20 for alpha0."""

_DRAWS = 64

_MOST_LABELS = 100.0
"""Limit of an item's effective labels, however concentrated they are."""

_SIZE_SALT, _LABEL_SALT = 0xA11E, 0xA11F


def effective_labels(sizes: Floats, concentration: float) -> Floats:
    """How many independent labels the labels of one item are worth, (n,), 1 + alpha0 at most.

    Labels of one item agree beyond what its prediction explains: under a Dirichlet of this
    concentration around the prediction their correlation is 1 / (1 + alpha0), and the variance of
    their mean is that of n / (1 + (n - 1) correlation) independent ones (Kish's design effect).
    """
    correlation = 1 / (1 + concentration)
    return np.minimum(sizes / (1 + (np.maximum(sizes, 1) - 1) * correlation), _MOST_LABELS)


def round_at_random(sizes: Floats, keys: UInts, salt: int) -> Ints:
    """Whole numbers (n,) whose expectations are `sizes`, each drawn by the item's own key."""
    floor = np.floor(sizes)
    up = uniforms(keys, np.zeros(1), salt ^ _SIZE_SALT)[:, 0] < sizes - floor
    return (floor + up).astype(np.int64)


def draw_labels_of_annotators(
    histogram: Floats, sizes: Ints, keys: UInts, salt: int
) -> tuple[Ints, Ints]:
    """Some labels of every item, drawn without replacement: items (T,), ascending, and classes.

    `sizes` (n,) are drawn of whole counts per class (n, K), at most as many as an item has.
    """
    left, rows = histogram.copy(), np.flatnonzero(sizes)
    items, labels = [rows[:0]], [rows[:0]]
    for slot in range(int(sizes.max(initial=0))):
        rows = rows[sizes[rows] > slot]
        cumulative = np.cumsum(left[rows], axis=1)
        u = uniforms(keys[rows], np.array([slot]), salt ^ _LABEL_SALT)
        label = (u * cumulative[:, -1:] >= cumulative).sum(axis=1)
        left[rows, label] -= 1
        items.append(rows)
        labels.append(label)
    item = np.concatenate(items)
    order = np.argsort(item, kind="stable")
    return item[order], np.concatenate(labels)[order]


def likeliest_concentration(probabilities: Floats, histogram: Floats, keys: UInts) -> float:
    """Concentration alpha0 under which histograms (n, K) around probabilities (n, K) are likeliest.

    One for all items, by the likelihood of Mimori et al. (2021), eq. (50), and a normal prior on
    its logarithm instead of their penalty, which does not fade as labels come in.
    """
    grid, log_posterior = _log_posterior(probabilities, histogram, keys)
    return float(np.exp(grid[log_posterior.argmax()]))


def concentration_draws(probabilities: Floats, histogram: Floats, keys: UInts) -> Floats:
    """Draws (64,) of the concentration alpha0 from its posterior: its quantiles, in a mixed order.

    Only items of two labels or more inform it. Without any (n = 0) it is 1: half-way between an
    item's one label and its prediction, the squared error is a quarter of a label's variance
    whatever the true alpha0, which is what alpha0 = 1 claims.
    """
    if not len(histogram):
        return np.ones(1)
    grid, log_posterior = _log_posterior(probabilities, histogram, keys)
    weight = np.exp(log_posterior - log_posterior.max())
    cumulative = np.cumsum(weight) / weight.sum()
    at = (np.arange(_DRAWS) + 0.5) / _DRAWS
    draws: Floats = np.exp(np.interp(at, cumulative, grid))
    return np.random.default_rng(0).permutation(draws)


def _log_posterior(probabilities: Floats, histogram: Floats, keys: UInts) -> tuple[Floats, Floats]:
    """Grid of log alpha0 (G,), and the log posterior there up to a constant (G,)."""
    if len(histogram) > _MOST_ITEMS:
        chosen = np.sort(np.argsort(keys, kind="stable")[:_MOST_ITEMS])
        probabilities, histogram = probabilities[chosen], histogram[chosen]
    grid = np.linspace(-7.0, 12.0, 381)
    prior = -((grid / _PRIOR_SD) ** 2) / 2
    found_once = terms(histogram, probabilities)
    likelihood = [derivatives(found_once, np.full(len(histogram), x)).value.sum() for x in grid]
    return grid, prior + np.array(likelihood)
