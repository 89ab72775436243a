"""What may be wrong with the classifiers: constant, identical, no better than chance, inverted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from fewlabels.frames.doctor.diagnosis import Finding
from fewlabels.frames.doctor.facts import Classifiers
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


def classifier_findings(predictions: Predictions, said: Classifiers) -> Iterator[Finding]:
    """Everything there is to say about the classifiers.

    Parameters
    ----------
    predictions
        All items or, where there are too many, some of them, which are compared with each other.
    said
        What is counted of all items.
    """
    names = predictions.models
    for j in np.flatnonzero(said.constant):
        yield _finding(
            "warning",
            "says the same for every item",
            [names[j]],
            "leave it out; check that the right column was read",
        )
    yield from _duplicates(predictions, said)
    yield from _orders(predictions, said.constant)
    yield from _one_class(predictions, said)
    yield from _saturated(names, said)
    yield from _missing(names, said)


def _finding(severity: str, what: str, models: Iterable[str], mend: str) -> Finding:
    names = list(models)
    where = f"classifier{'s' if len(names) > 1 else ''} {listed(names, 20)}"
    return Finding(severity, what, where, mend)  # type: ignore[arg-type]


def _duplicates(predictions: Predictions, said: Classifiers) -> Iterator[Finding]:
    """Classifiers that are one and the same, or nearly."""
    identical = said.identical.copy()
    identical[said.constant] = identical[:, said.constant] = False
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


def _one_class(predictions: Predictions, said: Classifiers) -> Iterator[Finding]:
    # Scores have no threshold, so there is no hard prediction of a classifier with nothing else.
    one = (said.hard.sum(axis=1) > 1) & ((said.hard > 0).sum(axis=1) == 1)
    for j in np.flatnonzero(one & ~said.constant):
        yield _finding(
            "warning",
            f"predicts class {predictions.classes[said.hard[j].argmax()]} for every item",
            [predictions.models[j]],
            "its accuracy is the share of that class; judge it by roc_auc",
        )


def _saturated(names: Sequence[str], said: Classifiers) -> Iterator[Finding]:
    share = said.ends / np.maximum(said.numbers, 1)
    found = np.flatnonzero(share > _SATURATED)
    if found.size:
        worst = found[np.argsort(-share[found], kind="stable")].tolist()
        yield _finding(
            "warning",
            "gives probabilities of exactly 0 or 1"
            if len(found) == 1
            else "give probabilities of exactly 0 or 1",
            [f"{names[j]} ({share[j]:.0%})" for j in worst],
            "logarithms clip them at 1e-6; calibrate the classifier, and store more digits",
        )


def _missing(names: Sequence[str], said: Classifiers) -> Iterator[Finding]:
    found = np.flatnonzero(said.lacking > 0).tolist()
    if found:
        yield _finding(
            "info",
            "has no prediction for some items"
            if len(found) == 1
            else "have no prediction for some items",
            [f"{names[j]} ({said.lacking[j]:.1%})" for j in found],
            "nothing, if meant so: an item is judged by the classifiers that have it",
        )
