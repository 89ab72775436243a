"""What may be wrong with the classifiers: constant, identical, no better than chance, inverted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from fewlabels.frames.doctor.diagnosis import Finding
from fewlabels.frames.doctor.ranks import (
    correlations,
    order_auc,
    rank_shares,
    sample_rows,
    scores,
)
from fewlabels.kernels.arrays import Bools, Floats
from fewlabels.predictions import Predictions
from fewlabels.wording import listed

_NEAR = 0.999
_CHANCE = (0.45, 0.55)
_INVERTED = 0.3
_LABELS_PER_CLASS = 10
_SATURATED = 0.01


def classifier_findings(predictions: Predictions) -> Iterator[Finding]:
    """Everything there is to say about the classifiers."""
    constant = _constant(predictions)
    for j in np.flatnonzero(constant):
        yield _finding(
            "warning",
            "says the same for every item",
            [predictions.models[j]],
            "leave it out; check that the right column was read",
        )
    yield from _duplicates(predictions, constant)
    yield from _orders(predictions, constant)
    yield from _one_class(predictions, constant)
    yield from _saturated(predictions)
    yield from _missing(predictions)


def _finding(severity: str, what: str, models: Iterable[str], mend: str) -> Finding:
    names = list(models)
    where = f"classifier{'s' if len(names) > 1 else ''} {listed(names, 20)}"
    return Finding(severity, what, where, mend)  # type: ignore[arg-type]


def _constant(predictions: Predictions) -> Bools:
    """Which classifiers say one thing for every item, shape (M,)."""
    same = np.ones(predictions.n_models, dtype=bool)
    for block in (predictions.probabilities, predictions.scores):
        if block is not None:
            flat = block.reshape(*block.shape[:2], -1)
            low = np.fmin.reduce(flat, axis=0)
            high = np.fmax.reduce(flat, axis=0)
            same &= ~(high > low).any(axis=1)
    if predictions.votes is not None:
        votes = predictions.votes
        lowest = np.where(votes < 0, predictions.n_classes, votes).min(axis=0)
        same &= votes.max(axis=0) <= lowest
    return same & (predictions.n_items > 1)


def _duplicates(predictions: Predictions, constant: Bools) -> Iterator[Finding]:
    """Classifiers that are one and the same, or nearly."""
    identical = _identical(predictions)
    identical[constant] = identical[:, constant] = False
    for group in _connected(identical):
        yield _finding(
            "warning",
            "are identical on every item",
            [predictions.models[j] for j in group],
            "keep one of them: copies count as independent evidence and make intervals too short",
        )
    every = scores(predictions)
    rows = sample_rows(predictions.n_items, every.shape[2])
    part = every[rows] - _mean_present(every[rows])
    flat = part.transpose(0, 2, 1).reshape(-1, predictions.n_models)
    near = np.nan_to_num(correlations(flat)) > _NEAR
    near[identical] = False
    for group in _connected(near & ~np.eye(len(near), dtype=bool)):
        yield _finding(
            "warning",
            f"are nearly identical (their scores correlate above {_NEAR})",
            [predictions.models[j] for j in group],
            "keep one of them, unless they were trained apart",
        )


def _mean_present(values: Floats) -> Floats:
    """Mean of each column of the first axis over its numbers, without a warning where none."""
    present = ~np.isnan(values)
    mean: Floats = np.nansum(values, axis=0) / np.maximum(present.sum(axis=0), 1)
    return mean


def _identical(predictions: Predictions) -> Bools:
    """Which two classifiers agree in everything, shape (M, M)."""
    m = predictions.n_models
    same = np.zeros((m, m), dtype=bool)
    blocks = [
        block
        for block in (predictions.probabilities, predictions.votes, predictions.scores)
        if block is not None
    ]
    head = slice(0, 1000)
    for i in range(m):
        for j in range(i + 1, m):
            # Most pairs differ early; only copies are compared to the end.
            same[i, j] = same[j, i] = all(
                np.array_equal(block[part, i], block[part, j], equal_nan=True)
                for part in (head, slice(None))
                for block in blocks
            )
    return same


def _connected(linked: Bools) -> Iterator[list[int]]:
    """Sets of two or more that are linked with each other, directly or through others."""
    left = set(range(len(linked)))
    while left:
        group, new = set(), {min(left)}
        while new:
            group |= new
            new = {int(j) for i in new for j in np.flatnonzero(linked[i])} - group
        left -= group
        if len(group) > 1:
            yield sorted(group)


def _orders(predictions: Predictions, constant: Bools) -> Iterator[Finding]:
    """Classifiers whose order of the items is random or reversed."""
    every = scores(predictions)
    count = np.bincount(predictions.labels[predictions.labeled], minlength=predictions.n_classes)
    if count.min() >= _LABELS_PER_CLASS:
        known = predictions.labeled
        areas = _areas_by_labels(every[known], predictions.labels[known])
        against = f"{int(count.sum()):,} labels"
        mend_inverted = "turn it around (swap its class columns, or 1 - p), or check the labels"
        doubt = ""
    elif predictions.n_models > 1:
        rows = sample_rows(predictions.n_items, every.shape[2])
        areas = _areas_by_others(every[rows])
        against = "the mean rank of the others; no label was used"
        mend_inverted = "check the order of its class columns; if the others are at fault, theirs"
        doubt = " as seen by the others"
    else:
        return
    for j, area in enumerate(areas):
        if constant[j] or np.isnan(area):
            continue
        shown = f"(AUC {area:.2f} against {against})"
        name = [predictions.models[j]]
        if _CHANCE[0] <= area <= _CHANCE[1]:
            what = f"orders the items no better than chance{doubt} {shown}"
            yield _finding(
                "warning",
                what,
                name,
                "check that its rows are those of the file; if so, leave it out",
            )
        elif area < _INVERTED:
            what = f"orders the items the wrong way round{doubt} {shown}"
            yield _finding("warning", what, name, mend_inverted)


def _areas_by_labels(every: Floats, labels: np.ndarray) -> list[float]:
    """AUC of each classifier, the mean over classes (one against the rest) if more than two."""
    width = every.shape[2]
    classes = [1] if width == 1 else range(width)
    return [
        float(
            np.mean([order_auc(every[:, j, c % width], labels == c, labels != c) for c in classes])
        )
        for j in range(every.shape[1])
    ]


def _areas_by_others(every: Floats) -> list[float]:
    """AUC of each classifier between the top and the bottom quarter by the others' mean rank."""
    n, m, width = every.shape
    if n < 4 * _LABELS_PER_CLASS:
        return [float("nan")] * m
    areas = np.full((m, width), np.nan)
    for c in range(width):
        ranks = np.stack([rank_shares(every[:, j, c]) for j in range(m)], axis=1)
        given = (~np.isnan(ranks)).sum(axis=1)
        total = np.nansum(ranks, axis=1)
        for j in range(m):
            present = ~np.isnan(ranks[:, j])
            with np.errstate(invalid="ignore", divide="ignore"):
                others = (total - np.nan_to_num(ranks[:, j])) / (given - present)
            if np.isnan(others).all():
                continue
            low, high = np.nanquantile(others, [0.25, 0.75])
            if low < high:
                areas[j, c] = order_auc(every[:, j, c], others >= high, others <= low)
    return [float(np.mean(row)) for row in areas]


def _one_class(predictions: Predictions, constant: Bools) -> Iterator[Finding]:
    # Scores have no threshold, so `hard` is -1 throughout for a classifier with nothing else.
    hard = predictions.hard
    for j in np.flatnonzero(~constant):
        given = hard[hard[:, j] >= 0, j]
        if len(given) > 1 and (given == given[0]).all():
            yield _finding(
                "warning",
                f"predicts class {predictions.classes[given[0]]} for every item",
                [predictions.models[j]],
                "its accuracy is the share of that class; judge it by roc_auc",
            )


def _saturated(predictions: Predictions) -> Iterator[Finding]:
    p = predictions.probabilities
    if p is None:
        return
    given = np.maximum((~np.isnan(p)).sum(axis=(0, 2)), 1)
    share = ((p == 0) | (p == 1)).sum(axis=(0, 2)) / given
    found = np.flatnonzero(share > _SATURATED)
    if found.size:
        worst = found[np.argsort(-share[found], kind="stable")]
        yield _finding(
            "warning",
            "gives probabilities of exactly 0 or 1"
            if len(found) == 1
            else "give probabilities of exactly 0 or 1",
            [f"{predictions.models[j]} ({share[j]:.0%})" for j in worst],
            "logarithms clip them at 1e-6; calibrate the classifier, and store more digits",
        )


def _missing(predictions: Predictions) -> Iterator[Finding]:
    lacking = np.isnan(scores(predictions)[:, :, 0]).mean(axis=0)
    found = np.flatnonzero(lacking > 0)
    if found.size:
        yield _finding(
            "info",
            "has no prediction for some items"
            if len(found) == 1
            else "have no prediction for some items",
            [f"{predictions.models[j]} ({lacking[j]:.1%})" for j in found],
            "nothing, if meant so: an item is judged by the classifiers that have it",
        )
