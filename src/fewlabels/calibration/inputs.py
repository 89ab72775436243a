"""Checked inputs of calibration: scores, labels or histograms, weights, features."""

from __future__ import annotations

from typing import Any

import numpy as np

from fewlabels.checks.arguments import (
    distributions,
    matrix,
    one_of,
    one_per,
    plain_array,
    refuse,
    whole_counts,
)
from fewlabels.checks.arrays import UNKNOWN, known_labels, label_array
from fewlabels.errors import InputError, listed
from fewlabels.kernels.arrays import Array, Floats
from fewlabels.kernels.dirichlet_multinomial import FLOOR
from fewlabels.kernels.simplex import softmax

INPUTS = ("probabilities", "logits")

_LARGEST = 1e100
"""Logits beyond this are refused: their products would overflow."""


def scores(value: Any, inputs: Any, columns: int | None = None) -> Floats:
    """Probabilities or logits (n, K), as `inputs` says; K = `columns` where that is known."""
    one_of("`inputs`", inputs, INPUTS)
    p = block(inputs, value, 2)
    if p.shape[1] < 2:
        raise InputError(f"`{inputs}` must have a column per class, two or more; got {p.shape[1]}")
    if columns is not None and p.shape[1] != columns:
        raise InputError(
            f"`{inputs}` has {p.shape[1]} classes but the calibration was fitted on {columns}; "
            "pass the same classes in the same order"
        )
    if inputs == "probabilities":
        return distributions(p, "pass logits with inputs='logits'", column=True)
    refuse(np.abs(p) > _LARGEST, p, "`logits` must be within +-1e100", "correct or rescale it")
    return p


def as_logits(scores: Floats, inputs: str, floor: float = FLOOR) -> Floats:
    """The logits u; those of probabilities are their logarithms, of at least log `floor`."""
    return scores if inputs == "logits" else np.log(np.maximum(scores, floor))


def probability_floor(scores: Floats, inputs: str) -> float:
    """Replacement for a probability of 0: half the smallest positive one, or 1e-12.

    A 0 only shows the classifier's resolution: a vote of 15 neighbours has no share between 0 and
    1/15. With 1e-12, a few labels of such classes would outweigh all others, and the calibration
    would flatten everything.
    """
    positive = scores[scores > 0]
    if inputs == "logits" or len(positive) == scores.size:
        return FLOOR
    return max(0.5 * float(positive.min()), FLOOR)


def as_probabilities(scores: Floats, inputs: str) -> Floats:
    """The probabilities f; those of logits are their softmax."""
    return scores if inputs == "probabilities" else softmax(scores)


def histogram(value: Any, n: int, k: int) -> Floats:
    """Counts of labels (n, K): whole numbers of at least 0."""
    counts = block("histogram", value, 2)
    if counts.shape != (n, k):
        raise InputError(
            f"`histogram` must have a row per item and a column per class, ({n}, {k}); got shape "
            f"{counts.shape}: pass how many labels each class got"
        )
    return whole_counts(counts)


def counts_and_classes(value: Any, n: int, k: int) -> tuple[Floats, Array]:
    """Counts (n, K) of labels (n,) or of a histogram (n, K), and the names of the classes (K,)."""
    array = label_array("labels", value)
    if array.ndim > 1:
        counts, classes = histogram(array, n, k), np.arange(k)
    else:
        index, classes = _label_indices(one_per("labels", array, n), n, k)
        counts = np.zeros((n, k))
        labeled = np.flatnonzero(index >= 0)
        counts[labeled, index[labeled]] = 1.0
    return counts, classes


def item_weights(value: Any, n: int) -> Floats:
    """Weights of the items (n,), finite and not negative; 1 where none are given."""
    if value is None:
        return np.ones(n)
    w: Floats = one_per("sample_weight", block("sample_weight", value, 1), n)
    refuse(w < 0, w, "`sample_weight` must not be negative", "0 leaves an item out")
    return w


def some_labels(counts: Floats, weight: Floats) -> None:
    """Refuse data without a label of positive weight."""
    if not (counts.sum(axis=1) * weight).any():
        raise InputError("no item has both a label and a weight above zero; give labels to fit on")


def feature_block(value: Any, n: int, columns: int | None = None) -> Floats:
    """Features (n, d) of the items, finite; d = `columns` where that is known."""
    features = block("features", value, 2)
    if len(features) != n or (columns is not None and features.shape[1] != columns):
        wanted = f"{n} rows" if columns is None else f"{n} rows and {columns} columns"
        raise InputError(
            f"`features` must have {wanted}, as the calibration has; got shape {features.shape}"
        )
    return features


def block(name: str, value: Any, dimensions: int) -> Floats:
    """An array of finite numbers."""
    value = plain_array(name, value)
    if value.ndim != dimensions:
        raise InputError(
            f"`{name}` must have {dimensions} dimensions; got {value.shape}. Reshape your data"
        )
    array: Floats = matrix(name, value, dimensions)
    bad = np.isnan(array)
    refuse(bad, array, f"`{name}` must not have NaN", "fill it in, or leave that item out")
    return array


def _label_indices(array: Array, n: int, k: int) -> tuple[Array, Array]:
    """Class indices (n,), -1 = unknown, and the names of the classes.

    Whole numbers below K are indices. Anything else names classes, which must then all occur:
    their order is the sorted one, as scikit-learn's is.
    """
    unknown = (None, "", UNKNOWN, str(UNKNOWN))
    missing = np.array([v != v or v in unknown for v in array.tolist()], dtype=bool)
    present = array[~missing]
    indices = np.arange(k)
    if not len(present):
        return np.full(n, UNKNOWN), indices
    if present.dtype.kind == "f" and (present != np.round(present)).any():
        odd = present[present != np.round(present)][0]
        raise InputError(f"`labels` must be class indices or names; got {odd}: round it, or use -1")
    numeric = present.dtype.kind in "buif" or all(
        isinstance(v, int | float | np.number) for v in present.tolist()
    )
    if numeric and set(np.unique(present.astype(np.float64))) <= set(indices.tolist()):
        if k == 2 and (array[missing] == UNKNOWN).any() and not (present == 0).any():
            raise InputError("`labels` are -1 and 1, but -1 marks an unknown label; pass 0 and 1")
        return known_labels(np.where(missing, UNKNOWN, array), n, tuple(indices)), indices
    classes, codes = np.unique(present.astype(str) if array.dtype.kind == "O" else present,
                               return_inverse=True)  # fmt: skip
    if len(classes) != k:
        raise InputError(
            f"`labels` name {len(classes)} classes ({listed(classes)}) but there are {k} columns "
            f"of predictions; pass class indices 0 .. {k - 1}"
        )
    index = np.full(n, UNKNOWN)
    index[~missing] = codes
    return index, classes
