"""What may be wrong with the labels, the rows and the groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fewlabels.frames.doctor.diagnosis import Finding
from fewlabels.frames.doctor.ranks import scores
from fewlabels.kernels.arrays import Ints
from fewlabels.kernels.keyed import hash_columns
from fewlabels.predictions import Predictions
from fewlabels.wording import listed

_FEW = 20
_MOST_GROUPS = 50
_Z = 4.0
_MANY_DUPLICATES = 0.05
_MANY_CLASSES = 50


def label_findings(predictions: Predictions) -> Iterator[Finding]:
    """How many labels there are, of which classes, and whether they look like a random sample."""
    known = predictions.labels[predictions.labeled]
    if not len(known):
        if predictions.histogram is None:
            yield Finding(
                "info", "none is known", "labels",
                "label items drawn at random, or say where the labels are with --label",
            )  # fmt: skip
        return
    if len(known) < _FEW:
        yield Finding(
            "warning", f"few labels: {len(known)}", "labels",
            f"label at least {_FEW}, drawn at random; intervals are wide until then",
        )  # fmt: skip
    count = np.bincount(known, minlength=predictions.n_classes)
    absent = [predictions.classes[c] for c in np.flatnonzero(count == 0)]
    if absent:
        yield Finding(
            "warning", f"no labeled item is of class {listed(absent)}", "labels",
            "label items that the classifiers think are of it; fine if there are none",
        )  # fmt: skip
    yield from _not_random(predictions)
    yield from _ordered(known, count)


def class_findings(predictions: Predictions) -> Iterator[Finding]:
    """Classes that are perhaps one, and so many that the cells are perhaps no classes."""
    written: dict[str, list[str]] = {}
    for name in map(str, predictions.classes):
        written.setdefault(" ".join(name.casefold().split()), []).append(name)
    for same in written.values():
        if len(same) > 1:
            yield Finding(
                "warning", f"{listed(same)} are different classes", "classes",
                "if they are one, write it the same way everywhere",
            )  # fmt: skip
    if predictions.n_classes > _MANY_CLASSES and predictions.votes is not None:
        yield Finding(
            "warning", f"{predictions.n_classes:,} classes", "classes",
            "if hard predictions hold numbers that are no classes, name their column s__<model>",
        )  # fmt: skip


def _not_random(predictions: Predictions) -> Iterator[Finding]:
    """Signs that the labeled items were not drawn at random."""
    known = predictions.labeled
    n, labeled = predictions.n_items, predictions.n_labeled
    if labeled == n or labeled < 2:
        return
    if known[:labeled].all() or known[-labeled:].all():
        end = "first" if known[0] else "last"
        yield Finding(
            "info", f"the labeled items are the {end} {labeled:,} rows", "labels",
            "fine if the rows were shuffled before; else label rows drawn at random",
        )  # fmt: skip
    if not predictions.n_models:
        return
    model, z = _largest_gap(predictions)
    if abs(z) > _Z and not np.ptp(predictions.weight):
        side = "higher" if z > 0 else "lower"
        yield Finding(
            "warning",
            f"{model} scores labeled items {side} than the others (z = {z:.1f}): they are perhaps "
            "not a random sample",
            "labels",
            "draw the items to label at random, or give their sampling weights (--weight)",
        )


def _largest_gap(predictions: Predictions) -> tuple[str, float]:
    """Classifier, and the z of its mean score on labeled against unlabeled items."""
    every = scores(predictions)
    known = predictions.labeled
    size, mean = [], []
    for part in (every[known], every[~known]):
        size.append(np.maximum((~np.isnan(part)).sum(axis=0), 1))
        mean.append(np.nansum(part, axis=0) / size[-1])
    # The variance of all items: that of a few labeled ones may be zero by chance.
    middle = np.nansum(every, axis=0) / (size[0] + size[1])
    variance = np.nansum((every - middle) ** 2, axis=0) / (size[0] + size[1])
    spread = np.sqrt(variance * (1 / size[0] + 1 / size[1]))
    # A share of few expected hits (a rare class of a hard prediction) is far from normal.
    usable = (spread > 1e-9) & (size[0] * np.minimum(middle, 1 - middle) >= 2)
    z = np.where(usable, mean[0] - mean[1], 0.0) / np.where(usable, spread, 1.0)
    j, c = np.unravel_index(np.argmax(np.abs(z)), z.shape)
    return predictions.models[int(j)], float(z[j, c])


def _ordered(known: Ints, count: Ints) -> Iterator[Finding]:
    """Labels that hardly ever change from row to row."""
    changes = int((known[1:] != known[:-1]).sum())
    share = count / len(known)
    expected = (len(known) - 1) * (1 - float((share**2).sum()))
    if expected >= 10 and changes < expected / 5:
        yield Finding(
            "info",
            f"the rows are ordered by label: it changes {changes:,} times where "
            f"{expected:,.0f} are expected",
            "labels",
            "shuffle the rows before you take a part of them",
        )


def row_findings(predictions: Predictions) -> Iterator[Finding]:
    """Rows that occur more than once."""
    if predictions.probabilities is None and predictions.scores is None:
        return  # Votes repeat by nature.
    columns = [predictions.labels]
    for block in (predictions.probabilities, predictions.votes, predictions.scores):
        if block is not None:
            columns.extend(block.reshape(len(block), -1).T)
    repeated = predictions.n_items - len(np.unique(hash_columns(columns, predictions.n_items)))
    share = repeated / predictions.n_items
    if repeated:
        yield Finding(
            "warning" if share > _MANY_DUPLICATES else "info",
            f"{repeated:,} of {predictions.n_items:,} rows ({share:.1%}) repeat an earlier row in "
            "every prediction and the label",
            "rows",
            "drop them if they are the same items; fine if different items got the same scores",
        )


def group_findings(predictions: Predictions) -> Iterator[Finding]:
    """Groups that `--by` can do nothing with."""
    distinct = {name: len(set(a.tolist())) for name, a in predictions.groups.items()}
    single = [name for name, count in distinct.items() if count == 1]
    many = [f"{name} ({count:,})" for name, count in distinct.items() if count > _MOST_GROUPS]
    if single:
        yield Finding(
            "info", "one value only", _groups(single), "nothing; it cannot split the items"
        )
    if many:
        yield Finding(
            "info",
            f"more values than --by takes ({_MOST_GROUPS})",
            _groups(many),
            "nothing, if it is an identifier or a feature; else merge its values",
        )


def _groups(names: Sequence[str]) -> str:
    return f"group{'s' if len(names) > 1 else ''} {listed(names)}"
