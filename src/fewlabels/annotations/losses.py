"""Losses of label histograms: total, epistemic, calibration, dispersion; and of disagreement."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from fewlabels.annotations.bootstrap import interval, replicates
from fewlabels.annotations.inputs import annotated, checked_bins, checked_level, checked_seed
from fewlabels.errors import UsageError
from fewlabels.kernels.arrays import Floats
from fewlabels.kernels.label_histograms import (
    Annotated,
    Origin,
    Scheme,
    Sums,
    calibration_loss,
    cell_fields,
    epistemic_excess,
    origin_of,
    read_cells,
    sums_of,
)

Compat = Literal["lh_calib"] | None
Variance = Literal["labels", "residual"]

BOUNDS = {
    "accuracy": (0.0, 1.0),
    "L": (0.0, 2.0),
    "EL_plugin": (0.0, 2.0),
    "CL_plugin": (0.0, 2.0),
    "DL_plugin": (0.0, 2.0),
    "L_disagreement": (0.0, 1.0),
    "CL_disagreement_plugin": (0.0, 1.0),
}
"""What no value can leave; the debiased losses may be negative."""

MEANS = ("accuracy", "L", "L_disagreement", "EL_plugin", "EL")
"""Means over items, whose bootstrap draws are centred on the estimate."""

ROOTS = {"CE": "CL", "CE_disagreement": "CL_disagreement"}
"""Calibration errors: roots of calibration losses."""

METRICS = (
    "accuracy",
    "L",
    "EL",
    "EL_plugin",
    "CL",
    "CL_plugin",
    "CE",
    "DL",
    "DL_plugin",
    "L_disagreement",
    "CL_disagreement",
    "CL_disagreement_plugin",
    "CE_disagreement",
)
"""The metrics of `evaluate`, in this order."""


def evaluate(
    histogram: Any,
    probabilities: Any,
    *,
    disagreement: Any = None,
    weight: Any = None,
    bins: int = 15,
    variance: Variance = "labels",
    compat: Compat = None,
    confidence_level: float | None = None,
    random_state: int | None = 0,
) -> dict[str, Any]:
    """Losses of predicted probabilities against the label distribution, unbiased by few labels.

    L = EL + E sum Q (1 - Q), where the epistemic loss EL is the squared distance of the
    predictions from the label distribution Q, and EL = CL + DL: calibration loss plus dispersion
    loss, within equal-width bins of each class's probability, summed over classes (with two
    classes all are twice those of one class's probability). CE = sqrt(max(CL, 0)).

    Parameters
    ----------
    histogram
        How many annotators chose each class, shape (n, K). Items without a label are left out;
        EL and the disagreement use items of two labels or more, the rest all items with a label.
    probabilities
        Predicted probabilities, shape (n, K). A row of NaN = no prediction: left out.
    disagreement
        Predicted probability that two annotators disagree, shape (n,); NaN = no prediction.
        None: 1 - sum p^2.
    weight
        Sampling weight of each item, shape (n,), not negative. A weight says how many items one
        stands for, not how often it was seen: the debiased CL of an item of weight 2 is not that of
        two items.
    bins
        Number of bins.
    variance
        What the debiasing of CL removes: the variance of the mean label frequency of a bin
        ("labels", the paper's), or of its gap to the mean prediction ("residual"), which is
        unbiased also for the random predictions in a bin.
    compat
        "lh_calib" computes as the paper's code does: CL of a bin of one item is its plugin (the
        paper: 0), items of one label count as if nothing had to be removed from their EL, and
        disagreement is binned by agreement.
    confidence_level
        Adds `intervals`: for each metric (low, high), by a Bayesian bootstrap over items.
    random_state
        Seed of the bootstrap; None = 0.

    Returns
    -------
    dict
        `METRICS`: debiased, and plugin under `..._plugin`; NaN where the labels do not define it
        (EL and disagreement if no item has two labels). Then n_items (used), n_annotated (items
        with a label) and n_labels (labels of the items used).

    Raises
    ------
    InputError, UsageError
        If an array or argument is not what is said here.

    Notes
    -----
    Mimori, Sasada, Matsui, Sato (2021), "Diagnostic Uncertainty Calibration": (9), (10), (12),
    (14), and (16) for two labels.

    Examples
    --------
    >>> import fewlabels as fl
    >>> found = fl.annotations.evaluate([[2, 0], [1, 1], [0, 2]], [[0.9, 0.1], [0.5, 0.5], [0, 1]])
    >>> round(found["L"], 4), round(found["EL"], 4), found["n_labels"]
    (0.1733, -0.16, 6)
    """
    scheme = _scheme(bins, variance, compat, weight)
    level, seed = checked_level(confidence_level), checked_seed(random_state)
    data = annotated(histogram, probabilities, disagreement, weight)
    sums = sums_of(data, scheme)
    out: dict[str, Any] = losses(sums, scheme)
    out |= counts_of(data)
    if level is not None:
        out["intervals"] = intervals(data, scheme, sums, level, seed)
    return out


def _scheme(bins: Any, variance: Any, compat: Any, weight: Any) -> Scheme:
    if variance not in ("labels", "residual"):
        raise UsageError(f"`variance` must be 'labels' or 'residual'; got {variance!r}")
    if compat not in (None, "lh_calib"):
        raise UsageError(f"`compat` must be None or 'lh_calib'; got {compat!r}")
    if compat and (weight is not None or variance == "residual"):
        raise UsageError(
            "lh_calib has neither weights nor the residual variance; leave out `compat`, or "
            "`weight` and `variance`"
        )
    as_code = compat == "lh_calib"
    return Scheme(checked_bins(bins), variance == "residual", dispersion=as_code, agreement=as_code)


def counts_of(data: Annotated) -> dict[str, int]:
    """Items used, items with a label, and labels of the items used."""
    size = data.counts.sum(axis=1)
    used = (size > 0) & ~np.isnan(data.probabilities[:, 0])
    return {
        "n_items": int(used.sum()),
        "n_annotated": int((size > 0).sum()),
        "n_labels": int(size[used].sum()),
    }


def losses(sums: Sums, scheme: Scheme) -> dict[str, float]:
    """The metrics of all items together, from their sums."""
    found, _ = _losses(sums, scheme)
    return {name: float(found[name][0]) for name in METRICS}


def _losses(
    sums: Sums, scheme: Scheme, origins: tuple[Origin | None, Origin | None] = (None, None)
) -> tuple[dict[str, Floats], tuple[Origin, Origin]]:
    """The metrics of each unit, (U,), and what bootstrap draws take from it where it is one."""
    _, w, right, loss, el, w2, el2, excess, pair_loss = sums.items.T
    cells, pairs = (
        read_cells(part, residual=scheme.residual, origin=origin)
        for part, origin in zip((sums.cells, sums.pairs), origins, strict=True)
    )
    keep = scheme.agreement
    pair_weight = pairs.weight.sum(axis=(-2, -1))
    parts = calibration_loss(cells, w, keep_singles=keep)
    of_pairs = calibration_loss(pairs, pair_weight, keep_singles=keep)
    cl_plugin, cl = (part.sum(axis=(-2, -1)) for part in parts)
    with np.errstate(divide="ignore", invalid="ignore"):
        pair_plugin, pair = (
            np.where(pair_weight > 0, part.sum(axis=(-2, -1)), np.nan) for part in of_pairs
        )
        el_plugin = el / w
        el_debiased = el_plugin - excess / w if keep else (el2 - excess) / w2
        out = {
            "accuracy": right / w,
            "L": loss / w,
            "EL": el_debiased,
            "EL_plugin": el_plugin,
            "CL": cl,
            "CL_plugin": cl_plugin,
            "DL": el_debiased - cl,
            "DL_plugin": el_plugin - cl_plugin,
            "L_disagreement": pair_loss / sums.pairs[:, 2].sum(axis=(-2, -1)),
            "CL_disagreement": pair,
            "CL_disagreement_plugin": pair_plugin,
        }
        if keep:
            # lh_calib skips bins of one item here, but not in the epistemic loss.
            removed = epistemic_excess(sums.cells, w) - (parts[0] - parts[1])
            skipped = np.where(np.isnan(cells.unbiased), 0.0, removed)
            out["DL"] = out["DL_plugin"] - skipped.sum(axis=(-2, -1))
    for root, name in ROOTS.items():
        out[root] = np.sqrt(np.maximum(out[name], 0))
    return out, (origin_of(cells, *parts), origin_of(pairs, *of_pairs))


def intervals(
    data: Annotated,
    scheme: Scheme,
    sums: Sums,
    level: float,
    seed: int,
    *,
    sampled: bool = False,
) -> dict[str, tuple[float, float]]:
    """Interval of each metric; (NaN, NaN) where it is undefined.

    Parameters
    ----------
    sums
        Those of one unit of all items.
    sampled
        Whether `data` are a random sample of them.
    """
    value, origins = _losses(sums, scheme)
    draws: dict[str, list[Floats]] = {name: [] for name in METRICS}
    drawn_scheme = replace(scheme, dispersion=scheme.agreement)
    whole = None
    if sampled:
        whole = sums._replace(cells=sums.cells[:, : cell_fields(drawn_scheme)])
    for part in replicates(data, drawn_scheme, level, seed, whole):
        drawn, _ = _losses(part, scheme, origins)
        for name in METRICS:
            draws[name].append(drawn[name])
    return {
        name: interval(
            float(value[source][0]),
            np.concatenate(draws[source]),
            level,
            bounds=BOUNDS.get(name),
            recentre=source not in MEANS,
            root=name in ROOTS,
        )
        for name in METRICS
        for source in (ROOTS.get(name, name),)
    }
