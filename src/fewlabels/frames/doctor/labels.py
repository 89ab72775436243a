"""What may be wrong with the labels, the rows and the groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from fewlabels.frames.doctor.diagnosis import Finding
from fewlabels.frames.doctor.facts import Labels
from fewlabels.frames.doctor.ranks import scores
from fewlabels.kernels.arrays import UInts
from fewlabels.kernels.keyed import hash_columns
from fewlabels.predictions import Predictions
from fewlabels.wording import listed

_FEW = 20
_MOST_GROUPS = 50
_Z = 4.0
_MANY_DUPLICATES = 0.05
_MANY_CLASSES = 50


def label_findings(
    predictions: Predictions, labels: Labels, *, weighted: bool
) -> Iterator[Finding]:
    """How many labels there are, of which classes, and whether they look like a random sample.

    Parameters
    ----------
    predictions
        All items, or some of them, the labeled ones among these.
    labels
        What is counted of all items.
    weighted
        Whether items differ in their sampling weight.
    """
    if not labels.n_labeled:
        if predictions.histogram is None:
            yield Finding(
                "info", "none is known", "labels",
                "label items drawn at random, or say where the labels are with --label",
            )  # fmt: skip
        return
    if labels.n_labeled < _FEW:
        yield Finding(
            "warning", f"few labels: {labels.n_labeled}", "labels",
            f"label at least {_FEW}, drawn at random; intervals are wide until then",
        )  # fmt: skip
    absent = [predictions.classes[c] for c in np.flatnonzero(labels.count == 0)]
    if absent:
        yield Finding(
            "warning", f"no labeled item is of class {listed(absent)}", "labels",
            "label items that the classifiers think are of it; fine if there are none",
        )  # fmt: skip
    yield from _not_random(predictions, labels, weighted)
    yield from _ordered(labels)


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


def _not_random(predictions: Predictions, labels: Labels, weighted: bool) -> Iterator[Finding]:
    """Signs that the labeled items were not drawn at random."""
    n, labeled = labels.n_items, labels.n_labeled
    if labeled == n or labeled < 2:
        return
    if labels.last - labels.first == labeled - 1 and (labels.first == 0 or labels.last == n - 1):
        end = "first" if labels.first == 0 else "last"
        yield Finding(
            "info", f"the labeled items are the {end} {labeled:,} rows", "labels",
            "fine if the rows were shuffled before; else label rows drawn at random",
        )  # fmt: skip
    if not predictions.n_models:
        return
    model, z = _largest_gap(predictions)
    if abs(z) > _Z and not weighted:
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


def _ordered(labels: Labels) -> Iterator[Finding]:
    """Labels that hardly ever change from row to row."""
    changes = labels.changes
    share = labels.count / labels.n_labeled
    expected = (labels.n_labeled - 1) * (1 - float((share**2).sum()))
    if expected >= 10 and changes < expected / 5:
        yield Finding(
            "info",
            f"the rows are ordered by label: it changes {changes:,} times where "
            f"{expected:,.0f} are expected",
            "labels",
            "shuffle the rows before you take a part of them",
        )


def row_hashes(predictions: Predictions) -> UInts | None:
    """A hash of every prediction and the label of each row, (n,); None where rows repeat anyway."""
    if predictions.probabilities is None and predictions.scores is None:
        return None  # Votes repeat by nature.
    columns = [predictions.labels]
    for block in (predictions.probabilities, predictions.votes, predictions.scores):
        if block is not None:
            columns.extend(block.reshape(len(block), -1).T)
    return hash_columns(columns, predictions.n_items)


def row_findings(predictions: Predictions) -> Iterator[Finding]:
    """Rows that occur more than once."""
    hashes = row_hashes(predictions)
    if hashes is not None:
        yield from repeat_findings(len(hashes) - len(np.unique(hashes)), len(hashes))


def repeat_findings(repeated: int, n_items: int, *, about: bool = False) -> Iterator[Finding]:
    """How many rows repeat an earlier one, `about` so many where only some were compared."""
    share = repeated / n_items
    if repeated:
        yield Finding(
            "warning" if share > _MANY_DUPLICATES else "info",
            f"{'about ' * about}{repeated:,} of {n_items:,} rows ({share:.1%}) repeat an earlier "
            "row in every prediction and the label",
            "rows",
            "drop them if they are the same items; fine if different items got the same scores",
        )


def group_findings(sizes: Mapping[str, tuple[int, str]]) -> Iterator[Finding]:
    """Groups that `--by` can do nothing with, from the number of their values, also in words."""
    single = [name for name, (count, _) in sizes.items() if count == 1]
    many = [f"{name} ({said})" for name, (count, said) in sizes.items() if count > _MOST_GROUPS]
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
