"""Reliability diagrams of label frequencies and of disagreement; calibration-dispersion maps."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtri

from fewlabels.annotations.inputs import (
    annotated,
    checked_bins,
    checked_counts,
    checked_level,
    checked_weight,
    fractions_of,
)
from fewlabels.annotations.statistic_losses import one_unit, scored_items
from fewlabels.annotations.statistics import DISAGREEMENT
from fewlabels.kernels.arrays import Array, Floats
from fewlabels.kernels.label_histograms import (
    Annotated,
    Scheme,
    Scored,
    Sums,
    calibration_loss,
    epistemic_loss,
    read_cells,
    sums_of,
)


def reliability(
    histogram: Any,
    probabilities: Any,
    *,
    weight: Any = None,
    bins: int = 15,
    confidence_level: float | None = 0.95,
) -> list[dict[str, Any]]:
    """Label frequency against predicted probability, per class and equal-width bin.

    Parameters
    ----------
    histogram, probabilities, weight, bins
        As for `evaluate`.
    confidence_level
        Of the interval of each label frequency; None = no interval (NaN).

    Returns
    -------
    list of dict
        Of each class (its index) and bin that holds an item: class, bin (from 0), low, high (its
        edges), n_items, share (of the weight), mean_probability, label_frequency, frequency_low,
        frequency_high. The interval is Wilson's for as many labels as give the variance of the
        mean frequency between items, shrunk toward that of one label per item.

    Raises
    ------
    InputError, UsageError
        As `evaluate` does.
    """
    level, scheme = checked_level(confidence_level), Scheme(checked_bins(bins))
    data = annotated(histogram, probabilities, None, weight)
    return reliability_rows(sums_of(data, scheme), level)


def reliability_rows(sums: Sums, level: float | None) -> list[dict[str, Any]]:
    """The rows of `reliability` from sums of one unit."""
    rows = _diagram(sums.cells[0], level)
    return [{"class": k, **row} for k, row in rows]


def disagreement_reliability(
    histogram: Any,
    disagreement: Any,
    *,
    weight: Any = None,
    bins: int = 15,
    confidence_level: float | None = 0.95,
) -> list[dict[str, Any]]:
    """How often annotators disagree against the predicted probability (n,) that two do, per bin.

    Over items of two labels or more. Parameters, rows and errors are those of `reliability`, with
    the frequency of disagreement for that of a label, and no class.
    """
    level, scheme = checked_level(confidence_level), Scheme(checked_bins(bins))
    counts = checked_counts(histogram)
    q = fractions_of("disagreement", disagreement, len(counts))
    return disagreement_rows(counts, q, checked_weight(weight, len(counts)), scheme, level)


def disagreement_rows(
    counts: Array, q: Floats, weight: Floats | None, scheme: Scheme, level: float | None
) -> list[dict[str, Any]]:
    """The rows of `disagreement_reliability` of checked arrays."""
    scored: Scored = scored_items(DISAGREEMENT, counts, q, weight)
    return disagreement_diagram(one_unit(scored, scheme)[1], level)


def disagreement_diagram(cells: Floats, level: float | None) -> list[dict[str, Any]]:
    """The rows of `disagreement_reliability` from the cells of one unit."""
    return [row for _, row in _diagram(cells[0], level)]


def _diagram(sums: Floats, level: float | None) -> list[tuple[int, dict[str, Any]]]:
    """Class and row of each cell that holds weight, from sums (F, K, B)."""
    cells = read_cells(sums)
    edges = np.linspace(0, 1, sums.shape[2] + 1)
    total = np.maximum(cells.weight.sum(axis=1, keepdims=True), 1e-300)
    low, high = _wilson(sums, level)
    out = []
    for k, b in np.argwhere(cells.weight > 0).tolist():
        row = {
            "bin": b,
            "low": float(edges[b]),
            "high": float(edges[b + 1]),
            "n_items": int(cells.items[k, b]),
            "share": float((cells.weight / total)[k, b]),
            "mean_probability": float(cells.predicted[k, b]),
            "label_frequency": float(cells.observed[k, b]),
            "frequency_low": float(low[k, b]),
            "frequency_high": float(high[k, b]),
        }
        out.append((k, row))
    return out


def _wilson(sums: Floats, level: float | None) -> tuple[Floats, Floats]:
    """Wilson's interval of each cell's mean frequency, (K, B).

    The variance between items is that of labels that come in clusters; one more item of a single
    label keeps it from vanishing where all items happen to agree.
    """
    cells = read_cells(sums)
    _, w, _, s2 = sums[:4]
    if level is None:
        nothing = np.full(w.shape, np.nan)
        return nothing, nothing
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.clip(cells.observed, 0, 1)
        items = w**2 / s2  # Kish's effective number
        one_label = mean * (1 - mean) / items
        variance = one_label / items + (1 - 1 / items) * np.nan_to_num(cells.variance)
        n = np.where(one_label > 0, mean * (1 - mean) / variance, items)
        z2 = float(ndtri(0.5 + level / 2)) ** 2
        centre = (mean + z2 / (2 * n)) / (1 + z2 / n)
        half = np.sqrt(z2 * (mean * (1 - mean) / n + z2 / (4 * n**2))) / (1 + z2 / n)
    low, high = np.maximum(centre - half, 0), np.minimum(centre + half, 1)
    return np.minimum(low, mean), np.maximum(high, mean)  # but for rounding


def dispersion_map(
    histogram: Any, probabilities: Any, *, weight: Any = None, bins: int = 15
) -> list[dict[str, Any]]:
    """Calibration and dispersion loss per class and equal-width bin: where the epistemic loss lies.

    Parameters
    ----------
    histogram, probabilities, weight, bins
        As for `evaluate`.

    Returns
    -------
    list of dict
        Of each class (its index) and bin that holds an item: class, bin, low, high, n_items, share,
        EL_plugin, EL, CL_plugin, CL, DL_plugin, DL. Their sums over bins and classes are the losses
        of `evaluate`; EL and DL are NaN where no item has two labels.

    Raises
    ------
    InputError, UsageError
        As `evaluate` does.

    Notes
    -----
    Mimori, Sasada, Matsui, Sato (2021), the calibration-dispersion maps of Section 3.
    """
    scheme = Scheme(checked_bins(bins), dispersion=True)
    data: Annotated = annotated(histogram, probabilities, None, weight)
    return dispersion_rows(sums_of(data, scheme))


def dispersion_rows(sums: Sums) -> list[dict[str, Any]]:
    """The rows of `dispersion_map` from sums of one unit, with dispersion."""
    total, of_two = sums.items[:, 1], sums.items[:, 5]
    read = read_cells(sums.cells)
    cl_plugin, cl = (part[0] for part in calibration_loss(read, total))
    el_plugin, el = (part[0] for part in epistemic_loss(sums.cells, total, of_two))
    items, weight = read.items[0], read.weight[0]
    edges = np.linspace(0, 1, cl.shape[1] + 1)
    values = {
        "EL_plugin": el_plugin,
        "EL": el,
        "CL_plugin": cl_plugin,
        "CL": cl,
        "DL_plugin": el_plugin - cl_plugin,
        "DL": el - cl,
    }
    return [
        {
            "class": k,
            "bin": b,
            "low": float(edges[b]),
            "high": float(edges[b + 1]),
            "n_items": int(items[k, b]),
            "share": float(weight[k, b] / total[0]),
            **{name: float(value[k, b]) for name, value in values.items()},
        }
        for k, b in np.argwhere(weight > 0).tolist()
    ]
