"""Labeled and unlabeled items, and what may differ between them: points, and traits with names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Array, Bools, Floats
from fewlabels.kernels.pooling import vote_counts
from fewlabels.kernels.simplex import centred_log, clip
from fewlabels.predictions import Predictions

_MANY = 20

Kind = Literal["confidence", "agreement", "predicted", "score", "missing"]


def labeled_mask(predictions: Predictions) -> Bools:
    """Items of whose label anything is known: a label, or annotators' counts, shape (n,)."""
    if predictions.histogram is None:
        return predictions.labeled
    return predictions.labeled | np.asarray(predictions.histogram.any(axis=1))


class Split(NamedTuple):
    """The labeled and the unlabeled part of the items, between which a shift is: masks (n,).

    An item of sampling weight 0 stands for none of the population: it is in neither.
    """

    labeled: Bools
    unlabeled: Bools

    @staticmethod
    def of(predictions: Predictions) -> Split:
        """The parts of these items."""
        mask, weighty = labeled_mask(predictions), predictions.weight > 0
        return Split(mask & weighty, ~mask & weighty)

    @property
    def missing(self) -> str | None:
        """Which part has no item, in words; None where both have some."""
        if self.labeled.any() and self.unlabeled.any():
            return None
        return self.counting(f"{'every' if self.labeled.any() else 'no'} item has a label")

    def counting(self, words: str) -> str:
        """Words that count items, and a note where those of sampling weight 0 do not count."""
        everything = (self.labeled | self.unlabeled).all()
        return words if everything else f"{words} (not counting those of sampling weight 0)"


class Trait(NamedTuple):
    """A number per item (column of `Traits.values`), and what it is in words.

    `about` is a classifier or a class; None is all of them.
    """

    kind: Kind
    about: str | None


@dataclass(frozen=True, eq=False)
class Traits:
    """Traits of items, values (n, t), NaN where an item lacks one."""

    names: tuple[Trait, ...]
    values: Floats


def beliefs(predictions: Predictions) -> Floats:
    """P(class) of every classifier whatever it gives, (n, M, K); NaN where it gives nothing.

    A vote is the probability .9 of its class, and a score, which has no unit, is taken in
    standard deviations from its mean as a log odds.
    """
    n, m, k = predictions.n_items, predictions.n_models, predictions.n_classes
    out = np.full((n, m, k), np.nan)
    if predictions.scores is not None and k == 2:
        spread = standard_deviations(predictions.scores)
        centre = _means(predictions.scores)
        z = (predictions.scores - centre) / np.where(spread > 0, spread, 1.0)
        out[:, :, 1] = 1 / (1 + np.exp(-z))
        out[:, :, 0] = 1 - out[:, :, 1]
    votes = predictions.hard
    bare = np.isnan(out[:, :, 0]) & (votes >= 0)
    item, model = np.nonzero(bare)
    out[item, model] = 0.1 / (k - 1)
    out[item, model, votes[item, model]] = 0.9
    if predictions.probabilities is not None:
        given = predictions.has_probabilities
        out[given] = predictions.probabilities[given]
    return out


def standard_deviations(values: Floats) -> Floats:
    """Standard deviations of columns (n, t) over what is not NaN; 0 where nothing is, (t,)."""
    given = ~np.isnan(values)
    square = np.where(given, values - _means(values), 0.0) ** 2
    out: Floats = np.sqrt(square.sum(axis=0) / np.maximum(given.sum(axis=0), 1))
    return out


def _means(values: Floats) -> Floats:
    given = ~np.isnan(values)
    out: Floats = np.where(given, values, 0.0).sum(axis=0) / np.maximum(given.sum(axis=0), 1)
    return out


def points(p: Floats) -> Floats:
    """Items as points, (n, d): each classifier's centred log-ratio scores.

    A classifier's block has mean square 1, so that none outweighs the others by its sharpness;
    what is missing is at its mean. Of more than 20 classifiers the mean score stands for all.
    """
    centred = centred_log(clip(p))
    if centred.shape[1] > _MANY:
        given = ~np.isnan(centred[:, :, :1])
        count = np.maximum(given.sum(axis=1), 1)
        return _unit(np.where(given, centred, 0.0).sum(axis=1) / count)
    return np.concatenate([_unit(centred[:, j]) for j in range(centred.shape[1])], axis=1)


def disagreement(centred: Floats) -> Floats:
    """Root mean square deviation of the classifiers' centred logs (n, M, K) from their mean."""
    given = ~np.isnan(centred[:, :, :1])
    count = np.maximum(given.sum(axis=(1, 2)), 1)
    known = np.where(given, centred, 0.0)
    mean = known.sum(axis=1) / count[:, None]
    square = np.where(given, centred - mean[:, None, :], 0.0) ** 2
    out: Floats = np.sqrt(square.sum(axis=(1, 2)) / count)
    return out


def _unit(block: Floats) -> Floats:
    """Columns about their means, missing ones there, of mean square 1 in all."""
    centred_block = np.nan_to_num(block - _means(block))
    size = np.sqrt((centred_block**2).sum(axis=1).mean())
    return centred_block / size if size > 1e-12 else np.zeros_like(centred_block)


def traits(predictions: Predictions, p: Floats) -> Traits:
    """What a person would look at: confidence, agreement, predicted classes, scores, gaps.

    Of more than 20 classifiers, those of all together; nobody looks at each of so many.
    """
    names: list[Trait] = []
    columns: list[Floats] = []

    def add(kind: Kind, about: str | None, column: Floats) -> None:
        names.append(Trait(kind, about))
        columns.append(column)

    each = predictions.n_models <= _MANY
    counts = vote_counts(predictions.hard, predictions.n_classes)
    size = counts.sum(axis=1)
    if predictions.has_probabilities.any():
        sure = np.where(predictions.has_probabilities, p.max(axis=2), np.nan)
        if predictions.n_models > 1:
            add("confidence", None, _row_means(sure))
        for j in np.flatnonzero(each & predictions.has_probabilities.any(axis=0)):
            add("confidence", predictions.models[j], sure[:, j])
    if predictions.n_models > 1:
        pairs = size * (size - 1)
        add("agreement", None, _ratio((counts * (counts - 1)).sum(axis=1), pairs))
    for k, name in enumerate(predictions.classes):
        if predictions.n_classes > 2 or k == 1:  # of two classes one says it all
            add("predicted", str(name), _ratio(counts[:, k], size))
    if predictions.scores is not None and each:
        alone = ~predictions.has_probabilities.any(axis=0)
        for j in np.flatnonzero(alone & ~np.isnan(predictions.scores).all(axis=0)):
            add("score", predictions.models[j], predictions.scores[:, j])
    missing = np.isnan(p[:, :, 0])
    if not each:
        add("missing", None, missing.mean(axis=1))
    for j in np.flatnonzero(each & missing.any(axis=0) & ~missing.all(axis=0)):
        add("missing", predictions.models[j], missing[:, j].astype(float))
    values = np.stack(columns, axis=1) if columns else np.empty((predictions.n_items, 0))
    return Traits(tuple(names), values)


def _row_means(values: Floats) -> Floats:
    """Mean of each row over what is there, NaN where nothing is."""
    given = ~np.isnan(values)
    return _ratio(np.where(given, values, 0.0).sum(axis=1), given.sum(axis=1))


def _ratio(part: Floats, whole: Array) -> Floats:
    """Part of the whole, (n,); NaN where the whole is 0."""
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)
