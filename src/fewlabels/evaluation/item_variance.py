"""How much one labeled item tells of a difference: the variance of its part in it."""

from __future__ import annotations

import numpy as np

from fewlabels.evaluation.draws import some_items_of
from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.blocks import map_blocks, spans
from fewlabels.kernels.keyed import exponentials
from fewlabels.kernels.keyed_counts import label_counts, weight_sums
from fewlabels.metrics.base import Metric
from fewlabels.metrics.plans import States, prepare, view_of
from fewlabels.metrics.registry import ALIASES, METRICS
from fewlabels.posterior import LabelPosterior, draw_labels
from fewlabels.predictions import Predictions

_MOST_ITEMS = 5_000
_DRAWS, _AT_ONCE = 40, 20
_LABELS_SALT, _ROWS_SALT = 0x17E3, 0x17E4


def item_variance(
    predictions: Predictions, posterior: LabelPosterior, metric: str, rows: Ints
) -> Floats | None:
    """Variance v of one item's part in the difference of every two classifiers, (M, M).

    With n labels alone the difference has variance v / n. A mean over the items has v =
    Var(loss_a - loss_b) over items and labels, in closed form. Any other metric has the variance
    of its influence function, n E (difference reweighted by Exp(1) - difference)^2 over drawn
    labelings (the Bayesian bootstrap). Unequal sampling weights enlarge it (Kish).

    Two classifiers that share a posterior of their own (`LabelPosterior.per_model`) are judged by
    it. A difference of two whose posteriors differ is joint, and judged by that of all.

    Parameters
    ----------
    metric
        Name of a metric; of one that is not in the list of metrics nothing is known, and the
        answer is None.
    rows
        The items, indices into `predictions`; of more than 5,000 as many chosen by identity.
    """
    known = METRICS.get(ALIASES.get(metric, metric))
    everyone = list(range(predictions.n_models))
    out = _of(predictions, posterior, known, rows, everyone) if known is not None else None
    if known is None or out is None:
        return None
    own: dict[int, list[int]] = {}
    for j in everyone:
        if posterior.of(j) is not posterior:
            own.setdefault(id(posterior.of(j)), []).append(j)
    for columns in own.values():
        if len(columns) > 1:
            found = _of(predictions, posterior.of(columns[0]), known, rows, columns)
            out[np.ix_(columns, columns)] = np.nan if found is None else found
    return out


def _of(
    predictions: Predictions, posterior: LabelPosterior, metric: Metric, rows: Ints,
    columns: list[int],
) -> Floats | None:  # fmt: skip
    """The variances among some of the classifiers, under one posterior; None of no items."""
    if posterior.support is not None:
        rows = rows[posterior.support[rows]]
    rows = rows[predictions.weight[rows] > 0]
    if not len(rows):
        return None
    predictions, rows = some_items_of(predictions, rows, _MOST_ITEMS)
    if metric.per_item is not None:
        return _of_means(predictions, posterior, metric, rows, columns)
    return _of_influence(predictions, posterior, metric, rows, columns)


def _of_means(
    predictions: Predictions, posterior: LabelPosterior, metric: Metric, rows: Ints,
    columns: list[int],
) -> Floats:  # fmt: skip
    assert metric.per_item is not None
    m = len(columns)
    given = predictions.provides(metric.needs)[rows][:, columns]
    loss = np.zeros((m, len(rows), predictions.n_classes))
    for place, j in enumerate(columns):
        own = given[:, place]
        if own.any():
            loss[place, own] = metric.per_item(view_of(predictions, rows[own], j))
    q = posterior.probabilities[rows]
    out = np.full((m, m), np.nan)
    for a in range(m):
        for b in range(a + 1, m):
            both = given[:, a] & given[:, b]
            if both.any():
                gap, weight = loss[a, both] - loss[b, both], predictions.weight[rows[both]]
                times = predictions.times[rows[both]]
                mass = weight * times
                p = q[both] * (mass / mass.sum())[:, None]
                spread = (p * gap**2).sum() - (p * gap).sum() ** 2
                out[a, b] = out[b, a] = spread * _design_effect(weight, times)
    np.fill_diagonal(out, 0.0)
    return out


def _design_effect(weight: Floats, times: Floats) -> float:
    return float(times.sum() * (times * weight**2).sum() / (times * weight).sum() ** 2)


def _of_influence(
    predictions: Predictions, posterior: LabelPosterior, metric: Metric, rows: Ints,
    columns: list[int],
) -> Floats:  # fmt: skip
    m = len(columns)
    given = predictions.provides(metric.needs)[rows][:, columns]
    out = np.full((m, m), np.nan)
    # Classifiers on the same items share their labels and weights; the others' pairs have none.
    patterns: dict[bytes, list[int]] = {}
    for place in range(m):
        patterns.setdefault(given[:, place].tobytes(), []).append(place)
    for places in patterns.values():
        own = rows[given[:, places[0]]]
        if len(places) > 1 and len(own):
            alike = [columns[place] for place in places]
            shift = _shifts(predictions, posterior, metric, own, alike)
            gap = shift[:, :, None] - shift[:, None, :]
            known = np.isfinite(gap)
            total = np.where(known, gap, 0.0) ** 2
            count = known.sum(axis=0)
            with np.errstate(invalid="ignore", divide="ignore"):
                n = predictions.size_of(own)
                out[np.ix_(places, places)] = n * total.sum(axis=0) / count
    return out


def _shifts(
    predictions: Predictions, posterior: LabelPosterior, metric: Metric, rows: Ints,
    columns: list[int],
) -> Floats:  # fmt: skip
    """What reweighting the items does to the metric, for drawn labelings, (D, M)."""
    keys, weight = predictions.keys[rows], predictions.weight[rows][:, None, None]
    plans = [
        prepare(view_of(predictions, rows, j), {metric.name: metric}, exact=True) for j in columns
    ]
    p, salt, classes = (
        posterior.probabilities[rows],
        posterior.salt,
        np.arange(predictions.n_classes),
    )

    def value(weights: Floats) -> Floats:
        states = States(plans)
        states.add(weights, slice(0, len(rows)))
        return states.finish({metric.name: metric}, weights.shape[2])[metric.name]

    def run(draws: slice) -> Floats:
        index = np.arange(draws.start, draws.stop)
        if predictions.multiplicity is not None:
            times = predictions.multiplicity[rows]
            counts = label_counts(keys, index, times, p[:, :, None], salt ^ _LABELS_SALT)
            again = weight_sums(keys, index, counts, salt ^ _ROWS_SALT) * weight
            return value(again) - value(counts * weight)
        labels = draw_labels(p, keys, index, salt ^ _LABELS_SALT)
        weights = (labels[:, None, :] == classes[None, :, None]) * weight
        again = weights * exponentials(keys, index, salt ^ _ROWS_SALT)[:, None, :]
        return value(again) - value(weights)

    return np.concatenate(list(map_blocks(run, spans(_DRAWS, _AT_ONCE))))
