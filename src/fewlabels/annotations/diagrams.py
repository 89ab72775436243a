"""Reliability diagrams of label frequencies and of disagreement; calibration-dispersion maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from fewlabels.annotations.label_histograms import (
    Cells,
    HistogramSums,
    Scheme,
    calibration_loss,
    epistemic_loss,
    histogram_sums,
    read_cells,
)
from fewlabels.annotations.losses import StatisticLosses, annotated, item_weights
from fewlabels.annotations.statistics import DISAGREEMENT
from fewlabels.checks.arguments import bins_of, bounded, label_counts, level_of
from fewlabels.kernels.arrays import Floats


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
    level, scheme = level_of(confidence_level), Scheme(bins_of(bins))
    data = annotated(histogram, probabilities, None, weight)
    return _by_class(_frequencies(histogram_sums(data, scheme).cells, level))


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
    level, scheme = level_of(confidence_level), Scheme(bins_of(bins))
    counts = label_counts(histogram)
    q = bounded("disagreement", disagreement, len(counts))
    losses = StatisticLosses.from_statistic(DISAGREEMENT, scheme)
    scored = losses.scored(counts, q, item_weights(weight, len(counts)))
    return [row for _, row in _frequencies(losses.sums(scored)[1], level)]


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
    data = annotated(histogram, probabilities, None, weight)
    return _by_class(_dispersion(histogram_sums(data, Scheme(bins_of(bins), dispersion=True))))


def make_diagrams(
    sums: HistogramSums | None, level: float | None, classes: Sequence[Any]
) -> dict[str, list[dict[str, Any]]]:
    """The rows of all three diagrams, from sums of one unit with dispersion; classes by name."""
    if sums is None:
        return {"reliability": [], "disagreement_reliability": [], "dispersion": []}
    return {
        "reliability": _by_class(_frequencies(sums.cells, level), classes),
        "disagreement_reliability": [row for _, row in _frequencies(sums.pairs, level)],
        "dispersion": _by_class(_dispersion(sums), classes),
    }


_Rows = list[tuple[int, dict[str, Any]]]
"""Class and row of each cell that holds weight."""


def _by_class(rows: _Rows, classes: Sequence[Any] | None = None) -> list[dict[str, Any]]:
    return [{"class": k if classes is None else classes[k], **row} for k, row in rows]


def _rows(cells: Cells, values: Mapping[str, Floats]) -> _Rows:
    """Where each cell (K, B) is, what it holds, and its values (K, B)."""
    edges = np.linspace(0, 1, cells.weight.shape[1] + 1)
    share = cells.weight / np.maximum(cells.weight.sum(axis=1, keepdims=True), 1e-300)
    return [
        (
            k,
            {
                "bin": b,
                "low": float(edges[b]),
                "high": float(edges[b + 1]),
                "n_items": int(cells.items[k, b]),
                "share": float(share[k, b]),
                **{name: float(value[k, b]) for name, value in values.items()},
            },
        )
        for k, b in np.argwhere(cells.weight > 0).tolist()
    ]


def _frequencies(sums: Floats, level: float | None) -> _Rows:
    """Label frequencies of cells, from the sums (1, F, K, B) of one unit."""
    cells = read_cells(sums[0])
    low, high = _wilson(sums[0], level)
    return _rows(
        cells,
        {
            "mean_probability": cells.predicted,
            "label_frequency": cells.observed,
            "frequency_low": low,
            "frequency_high": high,
        },
    )


def _wilson(sums: Floats, level: float | None) -> tuple[Floats, Floats]:
    """Wilson's interval of each cell's mean frequency, (K, B).

    The variance between items is that of clustered labels; a pseudo-item of a single label keeps it
    positive if all items happen to agree.
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


def _dispersion(sums: HistogramSums) -> _Rows:
    """Losses of cells, from sums of one unit with dispersion."""
    total, several = sums.items[:, 1], sums.items[:, 5]
    cl_plugin, cl = (arrays[0] for arrays in calibration_loss(read_cells(sums.cells), total))
    el_plugin, el = (arrays[0] for arrays in epistemic_loss(sums.cells, total, several))
    values = {
        "EL_plugin": el_plugin,
        "EL": el,
        "CL_plugin": cl_plugin,
        "CL": cl,
        "DL_plugin": el_plugin - cl_plugin,
        "DL": el - cl,
    }
    return _rows(read_cells(sums.cells[0]), values)
