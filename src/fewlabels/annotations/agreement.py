"""How far people agree among themselves: Krippendorff's alpha, Fleiss' kappa, pairs that agree.

Krippendorff (2019), Content Analysis, chapter 12: alpha = 1 - D_o / D_e. Of an item with m >= 2
labels, n_c of them of class c, the observed disagreement is sum_ck n_c n_k d_ck / (m - 1); expected
is that of two labels drawn from all N, sum_ck N_c N_k d_ck / (N - 1). Items with one label say
nothing.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np

from fewlabels.checks.arguments import label_counts, level_of, seed_of
from fewlabels.data.inputs import predictions_of
from fewlabels.errors import InputError, UsageError, unknown
from fewlabels.kernels.arrays import Array, Floats
from fewlabels.kernels.interval_draws import Interval, interval, spelled
from fewlabels.predictions import Predictions
from fewlabels.report.shown import plain_values

Scale = Literal["nominal", "ordinal", "interval"]

DRAWS = 2_000


@dataclass(frozen=True)
class Agreement:
    """What `agreement` returns.

    Attributes
    ----------
    alpha, fleiss_kappa
        Krippendorff's alpha on the scale that was asked for, and Fleiss' kappa, which knows one
        scale, nominal: 1 is perfect, 0 what chance gives.
    pairs
        Chance that two people who label one item say the same: what a judge that is as good as a
        person reaches against a person.
    n_items, n_labels
        Items with two labels or more, and their labels.
    scale, confidence_level
        As asked.
    """

    alpha: Interval
    fleiss_kappa: Interval
    pairs: Interval
    n_items: int
    n_labels: int
    scale: str
    confidence_level: float | None

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values."""
        out: dict[str, Any] = plain_values(asdict(self, dict_factory=spelled))
        return out


def agreement(
    annotations: Any,
    *,
    scale: Scale = "nominal",
    confidence_level: float | None = 0.95,
    random_state: int | None = 0,
    columns: Any = None,
) -> Agreement:
    """Agreement of annotators who label the same items.

    Parameters
    ----------
    annotations
        Counts of labels per item and class, shape (n, K); or predictions, a path or a frame, whose
        histogram they are.
    scale
        How far classes are apart: "nominal", all alike; "interval", by the grades between them;
        "ordinal", by how many labels lie between them.
    confidence_level
        Of intervals by a Bayesian bootstrap over the items; None computes none.
    random_state
        Seed; None means 0.
    columns
        As for `fewlabels.read_predictions`.

    Raises
    ------
    InputError
        If no item has two labels.
    UsageError
        If an argument is not what is said above.

    Examples
    --------
    >>> import fewlabels as fl
    >>> found = fl.annotations.agreement([[2, 0], [0, 2], [1, 1], [2, 0]])
    >>> round(found.alpha.value, 3), found.n_items
    (0.533, 4)
    """
    if scale not in get_args(Scale):
        raise UsageError(unknown("scale", scale, get_args(Scale)))
    level = level_of(confidence_level)
    if not hasattr(annotations, "shape") and not isinstance(annotations, list | tuple):
        predictions = predictions_of(annotations, columns)
        annotations = predictions.histogram
    if isinstance(annotations, Predictions):
        annotations = annotations.histogram
    if annotations is None:
        raise InputError(
            "there are no counts of annotators (h__ columns), and the agreement of people needs "
            "several labels of an item; in a log say --people histogram"
        )
    counts = label_counts(annotations)
    counts = counts[counts.sum(axis=1) >= 2]
    if not len(counts):
        raise InputError("no item has two labels; the agreement of people needs several per item")
    weights = np.ones((len(counts), 1))
    if level is not None:
        # Rubin's (1981) Bayesian bootstrap over the items.
        drawn = np.random.default_rng(seed_of(random_state)).exponential(size=(len(counts), DRAWS))
        weights = np.hstack([weights, drawn / drawn.mean(axis=0)])
    same = _same(counts)
    agreed = weights.T @ same / weights.sum(axis=0)
    each = np.stack([_alpha(counts, weights, scale), _fleiss(counts, weights, same), agreed])
    value, stated = each[:, 0], math.nan if level is None else level
    low, high = interval(value, each[:, 1:].T, stated, (-1.0, 1.0))
    alpha, kappa, pairs = (
        Interval(*map(float, column)) for column in zip(value, low, high, strict=True)
    )
    return Agreement(alpha, kappa, pairs, len(counts), int(counts.sum()), scale, confidence_level)


def _same(counts: Array) -> Floats:
    """Share of the pairs of an item's labels that are equal, (n,)."""
    size = counts.sum(axis=1)
    out: Floats = (counts * (counts - 1)).sum(axis=1) / (size * (size - 1))
    return out


def _alpha(counts: Array, weights: Floats, scale: Scale) -> Floats:
    """Krippendorff's alpha of each weighting (n, D) of the items, (D,)."""
    k = counts.shape[1]
    class_mass = counts.T @ weights  # N_c, (K, D)
    pairs = (counts[:, :, None] * counts[:, None, :]) / (counts.sum(axis=1) - 1)[:, None, None]
    observed = pairs.reshape(len(counts), -1).T @ weights  # (K K, D)
    total = class_mass.sum(axis=0)
    place = np.arange(k)
    if scale == "ordinal":
        # (sum of N_g between c and k, the ends by half)^2
        up = np.cumsum(class_mass, axis=0) - class_mass / 2
        apart = (up[:, None, :] - up[None, :, :]) ** 2
    else:
        fixed = (place[:, None] - place) ** 2.0 if scale == "interval" else 1.0 - np.eye(k)
        apart = np.repeat(fixed[:, :, None], weights.shape[1], axis=2)
    expected = np.einsum("ckd,cd,kd->d", apart, class_mass, class_mass)
    disagreement = (observed.reshape(k, k, -1) * apart).sum(axis=(0, 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        # Where all labels are of one class nothing is expected: undefined.
        out: Floats = np.where(expected > 0, 1 - (total - 1) * disagreement / expected, np.nan)
    return out


def _fleiss(counts: Array, weights: Floats, same: Floats) -> Floats:
    """(P - P_e) / (1 - P_e), of each weighting, (D,); Fleiss (1971)."""
    share = counts.T @ weights
    share = share / share.sum(axis=0)
    by_chance = (share**2).sum(axis=0)
    observed = weights.T @ same / weights.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        out: Floats = np.where(by_chance < 1, (observed - by_chance) / (1 - by_chance), np.nan)
    return out


__all__ = ["Agreement", "agreement"]
