"""LabelDistribution: what annotators say of an item is a distribution, not one class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from fewlabels.errors import Status
from fewlabels.kernels.annotator_labels import (
    draw_labels_of_annotators,
    effective_labels,
    likeliest_concentration,
    round_at_random,
)
from fewlabels.kernels.arrays import Bools, Floats, Ints
from fewlabels.kernels.simplex import linear_pool
from fewlabels.models.base import FittedLabelModel, LabelModel, check_count
from fewlabels.models.labeled import Labeled
from fewlabels.posterior import LabelPosterior, ParameterDraws
from fewlabels.predictions import Predictions


@dataclass(frozen=True)
class LabelDistribution(LabelModel):
    """Any label model, for labels that differ between annotators.

    An item has a distribution Q over classes: what annotators say of it. The label model is
    fitted to labels drawn from the annotators', several times (multiple imputation: Rubin 1987);
    it then says f = E[Q | predictions]. Given f, Q is Dirichlet(alpha0 f), with alpha0 the
    likeliest under the counts of items that have two labels or more (Mimori et al. 2021, eq. 50,
    with a weak prior for its penalty), so an item with counts h of n labels has mean
    (alpha0 f + h) / (alpha0 + n).
    A known label counts as that of one annotator, where there are no counts.

    Labels of one item are not independent. As many of them are drawn as they are worth, under
    the concentration of the averaged probabilities; without probabilities, one.

    Parameters
    ----------
    model
        The label model that learns from the drawn labels.
    imputations
        How often labels are drawn and the model is fitted; once where all annotators of every
        item agree and one label is drawn of each.
    """

    model: LabelModel
    imputations: int = 5

    def __post_init__(self) -> None:
        check_count("imputations", self.imputations)

    def fit(self, predictions: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """Draw labels, fit the model to them, and find the concentration."""
        told = predictions.as_histograms()
        assert told.histogram is not None
        sizes = told.histogram.sum(axis=1)
        several = bool((sizes >= 2).any())
        worth = effective_labels(sizes, _concentration_of_pool(told) if several else 0.0)
        mixed = ((told.histogram > 0).sum(axis=1) > 1).any()
        again = self.imputations if mixed or (worth > 1).any() else 1
        fits = tuple(
            self.model.fit(_imputed(told, worth, int(rng.integers(2**63))), rng)
            for _ in range(again)
        )
        alone = isinstance(self.model, Labeled)
        concentration = 0.0 if alone or not several else _concentration(fits, told)
        return _FittedDistribution(fits, concentration, alone)


def _imputed(told: Predictions, worth: Floats, salt: int) -> Predictions:
    """Items with labels of annotators drawn: a row for each, which share the item's weight."""
    assert told.histogram is not None
    wanted = round_at_random(worth, told.keys, salt)
    item, label = draw_labels_of_annotators(told.histogram, wanted, told.keys, salt)
    times = np.maximum(wanted, 1)
    rows = np.repeat(np.arange(told.n_items), times)
    first = np.cumsum(times) - times
    labels = np.full(len(rows), -1)
    labels[first[item] + np.arange(len(item)) - np.searchsorted(item, item)] = label
    drawn = told if len(rows) == told.n_items else told.take(rows)
    return drawn.with_evidence(labels, drawn.weight / times[rows])


def _concentration_of_pool(told: Predictions) -> float:
    """Concentration around the averaged probabilities; 0, so that one label counts, without any."""
    if told.probabilities is None:
        return 0.0
    assert told.histogram is not None
    rows = np.flatnonzero((told.histogram.sum(axis=1) >= 2) & told.has_probabilities.any(axis=1))
    if not len(rows):
        return 0.0
    even = np.full(told.n_classes, 1 / told.n_classes)
    pool = linear_pool(told.probabilities[rows], even)
    return likeliest_concentration(pool, told.histogram[rows])


def _concentration(fits: Sequence[FittedLabelModel], told: Predictions) -> float:
    """Concentration around what the fitted models say of the items with two labels or more."""
    assert told.histogram is not None
    rows = np.flatnonzero(told.histogram.sum(axis=1) >= 2)
    some = told.take(rows).with_evidence(None)
    f = np.mean([fit.posterior(some).probabilities for fit in fits], axis=0)
    return likeliest_concentration(f, told.histogram[rows])


class _Annotated(NamedTuple):
    """Counts (n, K) of the items, their sums (n,), and the concentration around predictions."""

    counts: Floats
    sizes: Floats
    concentration: float

    def update(self, f: Floats, rows: Ints | slice) -> Floats:
        """E[Q | f, counts] in place of f (n, K) or (n, K, D)."""
        sizes = self.sizes[rows]
        informed = np.flatnonzero(sizes)
        h, total = self.counts[rows][informed], sizes[informed] + self.concentration
        if f.ndim == 3:
            h, total = h[:, :, None], total[:, None]
        f[informed] = (self.concentration * f[informed] + h) / total[:, None]
        return f

    @property
    def spread(self) -> Floats:
        """How far Q is from its mean, in units of a single label's deviation, (n,)."""
        return 1 / np.sqrt(1 + self.concentration + self.sizes)


@dataclass(frozen=True, eq=False)
class _FittedDistribution(FittedLabelModel):
    fits: tuple[FittedLabelModel, ...]
    concentration: float
    alone: bool

    def posterior(self, predictions: Predictions) -> LabelPosterior:
        told = predictions.as_histograms()
        assert told.histogram is not None
        counts = told.histogram
        annotated = _Annotated(counts, counts.sum(axis=1), self.concentration)
        blank = told.with_evidence(None)
        found = [fit.posterior(blank) for fit in self.fits]
        merged = _merged(found, annotated, annotated.sizes > 0 if self.alone else None)
        return replace(
            merged,
            keys=told.keys,
            diagnostics=dict(merged.diagnostics)
            | {
                "annotator_concentration": self.concentration,
                "imputations": len(found),
            },
        )


def _merged(
    found: Sequence[LabelPosterior], annotated: _Annotated, alone: Bools | None
) -> LabelPosterior:
    """One posterior of several fits: all of their draws, each item's counts taken in.

    `alone` marks the annotated items where they alone count, as they are.
    """
    first = found[0]
    p = annotated.update(np.mean([f.probabilities for f in found], axis=0), slice(None))
    doubted = [f.interval_parameters for f in found if f.interval_parameters is not None]
    statuses = [f.status for f in found if f.status is not Status.OK]
    each = [
        None
        if first.per_model[j] is None
        else _merged([own for f in found if (own := f.per_model[j]) is not None], annotated, alone)
        for j in range(len(first.per_model))
    ]
    return replace(
        first,
        probabilities=p,
        parameters=_Pooled(tuple(f.parameters for f in found), annotated),
        interval_parameters=_Pooled(tuple(doubted), annotated) if doubted else None,
        spread=annotated.spread if alone is None else np.where(alone, 0.0, annotated.spread),
        support=alone,
        per_model=tuple(each),
        score_rates=None,
        vote_rates=None,
        status=max(statuses, key=_GRAVITY.index) if statuses else Status.OK,
        warnings=tuple(dict.fromkeys(said for f in found for said in f.warnings)),
    )


_GRAVITY = (*(s for s in Status if s is not Status.NOT_CONVERGED), Status.NOT_CONVERGED)


@dataclass(frozen=True, eq=False)
class _Pooled:
    """Parameter draws of several fits in turn."""

    parts: tuple[ParameterDraws, ...]
    annotated: _Annotated

    @property
    def size(self) -> int:
        return max(*(part.size for part in self.parts), len(self.parts))

    def prepare(self) -> None:
        """What each of them does once."""
        for part in self.parts:
            part.prepare()

    def block(self, index: Ints, rows: Ints | slice) -> Floats:
        """E[Q | draw, counts] of these items, shape (n, K, D)."""
        turn = index % len(self.parts)
        out: Floats | None = None
        for number, part in enumerate(self.parts):
            mine = np.flatnonzero(turn == number)
            if not len(mine):
                continue
            block = part.block(index[mine] % part.size, rows)
            if len(mine) == len(index):
                out = block
                break
            if out is None:
                out = np.empty((*block.shape[:2], len(index)))
            out[:, :, mine] = block
        assert out is not None
        return self.annotated.update(out, rows)
