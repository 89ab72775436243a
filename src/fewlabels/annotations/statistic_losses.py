"""Losses of predictions of a statistic of several labels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fewlabels.annotations.bootstrap import interval, scored_replicates
from fewlabels.annotations.inputs import (
    checked_bins,
    checked_counts,
    checked_level,
    checked_seed,
    checked_weight,
    fractions_of,
)
from fewlabels.annotations.statistics import LabelStatistic
from fewlabels.annotations.statistics import statistic as resolve
from fewlabels.errors import InputError
from fewlabels.kernels.arrays import Array, Floats
from fewlabels.kernels.label_histograms import (
    Origin,
    Scheme,
    Scored,
    calibration_loss,
    origin_of,
    read_cells,
    scored_sums,
)

METRICS = ("L", "CL", "CL_plugin", "CE", "EL")
"""The metrics of `evaluate_statistic`, in this order."""

MEANS = ("L", "EL")


def evaluate_statistic(
    statistic: str | LabelStatistic,
    histogram: Any,
    predicted: Any,
    *,
    weight: Any = None,
    bins: int = 15,
    confidence_level: float | None = None,
    random_state: int | None = 0,
) -> dict[str, Any]:
    """Losses of predictions of a statistic of several labels, such as their disagreement.

    Parameters
    ----------
    statistic
        Its name, or a `Statistic`.
    histogram
        How many annotators chose each class, shape (n, K); items with fewer labels than the
        statistic's order are left out.
    predicted
        Predicted value, shape (n,), such as `statistic.expected(probabilities)`; NaN = none.
    weight, bins, confidence_level, random_state
        As for `evaluate`; the bins divide the statistic's bounds.

    Returns
    -------
    dict
        L: mean of (phi - predicted)^2 over sets of labels; CL (debiased), CL_plugin, and CE =
        sqrt(max(CL, 0)), from bins of the prediction; EL: the squared distance of the prediction
        from the statistic's expectation, unbiased, over items of twice the order of labels, NaN if
        there are none; n_items (used). With a confidence level, `intervals`: metric -> (low, high).

    Raises
    ------
    InputError, UsageError
        If an array or argument is not what is said here, or no item has enough labels.

    Notes
    -----
    Mimori, Sasada, Matsui, Sato (2021), (15) and (16).

    Examples
    --------
    >>> import fewlabels as fl
    >>> found = fl.annotations.evaluate_statistic("disagreement", [[2, 0], [1, 1]], [0.1, 0.8])
    >>> round(found["L"], 4), found["n_items"]
    (0.025, 2)
    """
    phi = resolve(statistic)
    scheme = Scheme(checked_bins(bins))
    level, seed = checked_level(confidence_level), checked_seed(random_state)
    counts = checked_counts(histogram)
    q = fractions_of("predicted", predicted, len(counts), phi.bounds)
    out = score(phi, counts, q, checked_weight(weight, len(counts)), scheme, level, seed)
    if not out["n_items"]:
        raise InputError(
            f"no item has the {phi.order} labels that {phi.name!r} takes, and a prediction; take a "
            "statistic of fewer labels, or ask more annotators"
        )
    return out


def score(
    phi: LabelStatistic,
    counts: Array,
    predicted: Floats,
    weight: Floats | None,
    scheme: Scheme,
    level: float | None,
    seed: int,
) -> dict[str, Any]:
    """The losses of checked arrays; NaN where no item has enough labels."""
    scored = scored_items(phi, counts, predicted, weight)
    return score_sums(phi, one_unit(scored, scheme), scored, scheme, level, seed)


def one_unit(scored: Scored, scheme: Scheme) -> tuple[Floats, Floats]:
    """Sums of all items as one unit."""
    return scored_sums(scored, scheme, np.zeros(len(scored.mean), dtype=np.int64))


def score_sums(
    phi: LabelStatistic,
    sums: tuple[Floats, Floats],
    scored: Scored | None,
    scheme: Scheme,
    level: float | None,
    seed: int,
    *,
    sampled: bool = False,
) -> dict[str, Any]:
    """The losses from the sums of one unit of all items.

    Parameters
    ----------
    scored
        The items, for intervals; without any these are NaN.
    sampled
        Whether they are a random sample of all items.
    """
    n_items = int(sums[0][0, 0])
    out: dict[str, Any] = dict.fromkeys(METRICS, math.nan) | {"n_items": n_items}
    if level is not None:
        out["intervals"] = dict.fromkeys(METRICS, (math.nan, math.nan))
    if not n_items:
        return out
    value, origin = _losses(*sums)
    scale = (phi.bounds[1] - phi.bounds[0]) ** 2
    units = {name: math.sqrt(scale) if name == "CE" else scale for name in METRICS}
    out |= {name: float(value[name][0]) * units[name] for name in METRICS}
    if level is None or scored is None or not len(scored.mean):
        return out
    parts = scored_replicates(scored, scheme, level, seed, sums if sampled else None)
    drawn = [_losses(*part, origin)[0] for part in parts]
    for name in METRICS:
        source = "CL" if name == "CE" else name
        low, high = interval(
            float(value[source][0]),
            np.concatenate([part[source] for part in drawn]),
            level,
            bounds=(0.0, 1.0) if name in ("L", "CL_plugin") else None,
            recentre=source not in MEANS,
            root=name == "CE",
        )
        out["intervals"][name] = (low * units[name], high * units[name])
    return out


def scored_items(
    phi: LabelStatistic, counts: Array, predicted: Floats, weight: Floats | None
) -> Scored:
    """The items with enough labels and a prediction; bounds become [0, 1]."""
    mean, square, product = phi.moments(counts)
    low, high = phi.bounds
    width = high - low
    scored = Scored(
        (mean - low) / width,
        (square - 2 * low * mean + low**2) / width**2,
        (product - 2 * low * mean + low**2) / width**2,
        (predicted - low) / width,
        weight,
    )
    used = ~np.isnan(mean) & ~np.isnan(predicted)
    if weight is not None:
        used &= weight > 0
    return scored if used.all() else scored.take(np.flatnonzero(used))


def _losses(
    items: Floats, cells: Floats, origin: Origin | None = None
) -> tuple[dict[str, Floats], Origin]:
    """The metrics of each unit, (U,), and what bootstrap draws take from it where it is one."""
    _, w, loss, w2, epistemic = items.T
    read = read_cells(cells, origin=origin)
    parts = calibration_loss(read, w)
    plugin, debiased = (part.sum(axis=(-2, -1)) for part in parts)
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            "L": loss / w,
            "CL": debiased,
            "CL_plugin": plugin,
            "CE": np.sqrt(np.maximum(debiased, 0)),
            "EL": epistemic / w2,
        }, origin_of(read, *parts)
