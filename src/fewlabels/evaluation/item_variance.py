"""The variance of one labeled item's contribution to a difference of two classifiers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

from fewlabels.evaluation.draws import item_sample
from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.blocks import map_blocks, spans
from fewlabels.kernels.counter_based import label_counts, shared_exponentials, weight_sums
from fewlabels.kernels.importance import effective_size
from fewlabels.kernels.weighting import Drawn, Soft, Weighting
from fewlabels.metrics.base import Metric
from fewlabels.metrics.plans import Chosen, States, prepare, view_of
from fewlabels.metrics.registry import ALIASES, METRICS
from fewlabels.posterior import LabelPosterior, draw_labels
from fewlabels.predictions import Predictions

_MOST_ITEMS, _CELLS = 5_000, 2**22
_DRAWS, _AT_ONCE = 40, 20
_LABELS_SALT, _ROWS_SALT = 0x17E3, 0x17E4


def item_variance(
    predictions: Predictions, posterior: LabelPosterior, metrics: Iterable[str], rows: Ints,
    columns: Sequence[int] | None = None,
) -> dict[str, Floats]:  # fmt: skip
    """Variance v of one item's part in the difference of every two classifiers, (M, M) by metric.

    With n labels alone the difference has variance v / n. A mean over the items has v =
    Var(loss_a - loss_b) over items and labels, in closed form. Any other metric has the variance of
    its influence function, n E (difference reweighted by Exp(1) - difference)^2 over drawn
    labelings (the Bayesian bootstrap). Unequal sampling weights enlarge it (Kish).

    Two classifiers that share a posterior of their own (`LabelPosterior.per_model`) are judged by
    it. A difference of two whose posteriors differ is joint, and judged by that of all.

    `rows` are indices into `predictions`, of more than 5,000 as many chosen by identity, and
    `columns` those of the M classifiers (None: all). Metrics without an entry in `METRICS` are left
    out.
    """
    names = {name: ALIASES.get(name, name) for name in metrics}
    registered = {name: METRICS[full] for name, full in names.items() if full in METRICS}
    chosen = list(range(predictions.n_models) if columns is None else columns)
    out = _variances(predictions, posterior, registered, rows, chosen)
    own_posteriors: dict[int, list[int]] = {}
    for place, j in enumerate(chosen):
        if posterior.of(j) is not posterior:
            own_posteriors.setdefault(id(posterior.of(j)), []).append(place)
    for places in own_posteriors.values():
        if len(places) > 1:
            alike = [chosen[place] for place in places]
            theirs = _variances(predictions, posterior.of(alike[0]), registered, rows, alike)
            for name, variance in out.items():
                variance[np.ix_(places, places)] = theirs.get(name, np.nan)
    return out


def _variances(
    predictions: Predictions, posterior: LabelPosterior, metrics: Chosen, rows: Ints,
    columns: list[int],
) -> dict[str, Floats]:  # fmt: skip
    """The variances among some of the classifiers, under one posterior; empty without items."""
    rows = rows[posterior.speaks_of(rows) & (predictions.weight[rows] > 0)]
    if not len(rows):
        return {}
    predictions, rows = item_sample(predictions, rows, _MOST_ITEMS)
    out, by_draws = dict[str, Floats](), dict[str, Metric]()
    for name, metric in metrics.items():
        if metric.per_item is None:
            by_draws[name] = metric
        else:
            out[name] = _variance_of_mean(predictions, posterior, metric, rows, columns)
    return out | _influence_variances(predictions, posterior, by_draws, rows, columns)


def _variance_of_mean(
    predictions: Predictions, posterior: LabelPosterior, metric: Metric, rows: Ints,
    columns: list[int],
) -> Floats:  # fmt: skip
    assert metric.per_item is not None
    m = len(columns)
    provided = predictions.provides(metric.needs)[rows][:, columns]
    mass = predictions.weight[rows] * predictions.times[rows]
    sums, out = np.zeros((2, m, m)), np.full((m, m), np.nan)
    pairs = {pair: np.all(provided[:, pair], axis=1) for pair in combinations(range(m), 2)}
    shares = {pair: mass / mass[both].sum() for pair, both in pairs.items() if both.any()}
    for block in spans(len(rows), max(_CELLS // predictions.n_classes, 1)) if shares else ():
        loss = np.zeros((m, len(rows[block]), predictions.n_classes))
        for place, j in enumerate(columns):
            has_prediction = provided[block, place]
            if has_prediction.any():
                view = view_of(predictions, rows[block][has_prediction], j)
                loss[place, has_prediction] = metric.per_item(view)
        q = posterior.probabilities_of(rows[block])
        for (a, b), share in shares.items():
            both = pairs[a, b][block]
            gap, p = loss[a, both] - loss[b, both], q[both] * share[block][both, None]
            sums[:, a, b] += (p * gap**2).sum(), (p * gap).sum()
    for a, b in shares:
        some = rows[pairs[a, b]]
        worth, times = (
            predictions.worth(some, predictions.weight[some]).rows,
            predictions.times[some],
        )
        spread = sums[0, a, b] - sums[1, a, b] ** 2
        out[a, b] = out[b, a] = spread * (times.sum() / worth if worth else math.nan)
    np.fill_diagonal(out, 0.0)
    return out


def design_effect(weight: Floats, times: Floats) -> float:
    """Factor by which unequal weights w of t items each inflate a variance (Kish 1965).

    n / n_eff, with n = sum t; NaN where nothing weighs.
    """
    worth = effective_size(weight, times)
    return float(times.sum()) / worth if worth else math.nan


def _influence_variances(
    predictions: Predictions, posterior: LabelPosterior, metrics: Chosen, rows: Ints,
    columns: list[int],
) -> dict[str, Floats]:  # fmt: skip
    m = len(columns)
    out = {name: np.full((m, m), np.nan) for name in metrics}
    # Classifiers on the same items share their labels and weights; the others' pairs have none.
    patterns: dict[tuple[str, bytes], list[int]] = {}
    for needs in dict.fromkeys(metric.needs for metric in metrics.values()):
        provided = predictions.provides(needs)[rows][:, columns]
        for place in range(m):
            patterns.setdefault((needs, provided[:, place].tobytes()), []).append(place)
    for (kind, packed), places in patterns.items():
        subset = rows[np.frombuffer(packed, dtype=bool)]
        if len(places) < 2 or not len(subset):
            continue
        alike = [columns[place] for place in places]
        chosen = {name: metric for name, metric in metrics.items() if metric.needs == kind}
        for name, shift in _shifts(predictions, posterior, chosen, subset, alike).items():
            gap = shift[:, :, None] - shift[:, None, :]
            defined = np.isfinite(gap)
            total = np.where(defined, gap, 0.0) ** 2
            with np.errstate(invalid="ignore", divide="ignore"):
                variance = predictions.size_of(subset) * total.sum(axis=0) / defined.sum(axis=0)
            out[name][np.ix_(places, places)] = variance
    return out


def _shifts(
    predictions: Predictions, posterior: LabelPosterior, metrics: Chosen, rows: Ints,
    columns: list[int],
) -> dict[str, Floats]:  # fmt: skip
    """Changes of metrics when the items are reweighted, for drawn labelings, (D, M) each."""
    keys, weight = predictions.keys[rows], predictions.weight[rows][:, None]
    label_keys = predictions.label_keys[rows]
    clusters = [row_weights[rows] for row_weights in predictions.cluster_keys]
    views = [view_of(predictions, rows, j) for j in columns]
    p, salt = posterior.probabilities_of(rows), posterior.salt
    plans = [prepare(view, metrics, exact=True) for view in views]

    def values(weights: Weighting) -> dict[str, Floats]:
        states = States(plans)
        states.add(weights)
        return states.finish(metrics, weights.size)

    def run(draws: slice) -> dict[str, Floats]:
        index = np.arange(draws.start, draws.stop)
        before: Weighting
        after: Weighting
        if predictions.multiplicity is None:
            labels = draw_labels(p, label_keys, index, salt ^ _LABELS_SALT)
            again = weight * shared_exponentials(clusters, index, salt ^ _ROWS_SALT)
            before, after = (
                Drawn(labels, row_weights, predictions.n_classes, len(index))
                for row_weights in (weight, again)
            )
        else:
            times = predictions.multiplicity[rows]
            counts = label_counts(keys, index, times, p[:, :, None], salt ^ _LABELS_SALT)
            moved = weight_sums(keys, index, counts, salt ^ _ROWS_SALT)
            before, after = (
                Soft(row_weights, weight, counts=True) for row_weights in (counts, moved)
            )
        old, new = values(before), values(after)
        return {name: new[name] - old[name] for name in metrics}

    blocks = list(map_blocks(run, spans(_DRAWS, _AT_ONCE)))
    return {name: np.concatenate([shifts[name] for shifts in blocks]) for name in metrics}
