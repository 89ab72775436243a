"""Plans of several classifiers: prepared, summed over blocks of items, finished into metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.blocks import map_blocks, spans
from fewlabels.metrics.base import HardLabels, Metric, Needs, Plan, ScoreView
from fewlabels.metrics.confusion import Confusion
from fewlabels.metrics.registry import resolve
from fewlabels.posterior import VoteRates
from fewlabels.predictions import Predictions

Chosen = Mapping[str, Metric]


class States:
    """Sums of the states of every classifier's plans over blocks of items."""

    def __init__(self, plans: Sequence[Mapping[str, Plan]]) -> None:
        self.plans = plans
        self.sums: list[dict[int, Floats]] = [{} for _ in plans]

    def add(self, weights: Floats, block: slice) -> None:
        """Add the states of label weights (b, K, D) of a block of items."""
        for own, sums in zip(self.plans, self.sums, strict=True):
            for plan in {id(p): p for p in own.values()}.values():
                state = plan.state(weights, block)
                if id(plan) in sums:
                    sums[id(plan)] += state
                else:
                    sums[id(plan)] = state

    def place_pseudo_observation(self, item: Ints, predicted: Ints, mass: Floats) -> None:
        """Say what the pseudo-observation of each draw is; see `Plan.place_pseudo_observation`."""
        for own, sums in zip(self.plans, self.sums, strict=True):
            for plan in {id(p): p for p in own.values()}.values():
                plan.place_pseudo_observation(sums[id(plan)], item, predicted, mass)

    def digests(self) -> list[dict[str, Floats]]:
        """Digest of every metric, per classifier."""
        return [
            {name: plan.digest(sums[id(plan)]) for name, plan in own.items()}
            for own, sums in zip(self.plans, self.sums, strict=True)
        ]

    def finish(self, chosen: Chosen, size: int) -> dict[str, Floats]:
        """Metrics (D, M)."""
        return _collect(
            self.plans, chosen, size, lambda j, plan: plan.digest(self.sums[j][id(plan)])
        )


def prepare(view: ScoreView, chosen: Chosen, exact: bool) -> dict[str, Plan]:
    """Plans of the metrics that apply; metrics of one statistic share its plan."""
    view = replace(view, exact=exact)
    shared: dict[object, Plan] = {}
    out = {}
    for name, metric in chosen.items():
        if view.provides(metric.needs):
            if metric.statistic not in shared:
                shared[metric.statistic] = metric.statistic.prepare(view)
            out[name] = shared[metric.statistic]
    return out


def finish_labels(
    plans: Sequence[Mapping[str, Plan]], chosen: Chosen, labels: HardLabels
) -> dict[str, Floats]:
    """Metrics (D, M) of unweighted hard labels."""
    return _collect(plans, chosen, labels.size, lambda _, plan: plan.of_labels(labels))


def _collect(
    plans: Sequence[Mapping[str, Plan]], chosen: Chosen, size: int,
    digest: Callable[[int, Plan], Floats],
) -> dict[str, Floats]:  # fmt: skip
    out = {name: np.full((size, len(plans)), np.nan) for name in chosen}
    for column, own in enumerate(plans):
        digests: dict[int, Floats] = {}
        for name, plan in own.items():
            if id(plan) not in digests:
                digests[id(plan)] = digest(column, plan)
            out[name][:, column] = chosen[name].finish(digests[id(plan)])
    return out


def view_of(predictions: Predictions, rows: Ints, j: int) -> ScoreView:
    """What classifier j provides on all of the rows."""
    said = predictions.hard_of(rows, j)

    def on_all(needs: Needs) -> bool:
        if needs == "hard":
            return bool((said >= 0).all())
        return bool(predictions.provides(needs)[rows, j].all())

    probabilities, scores = None, None
    if predictions.probabilities is not None and on_all("probabilities"):
        # All rows are a view; indices would copy them.
        every = len(rows) == predictions.n_items
        probabilities = predictions.probabilities[slice(None) if every else rows, j]
    elif predictions.scores is not None and on_all("ranking"):
        scores = predictions.scores[rows, j]
    hard = said.astype(np.int64) if on_all("hard") else None
    times = None if predictions.multiplicity is None else predictions.multiplicity[rows]
    return ScoreView(predictions.n_classes, probabilities, hard, scores, times=times)


def metrics_of_rates(
    rates: VoteRates, chosen: Chosen, rows: Ints, columns: Ints
) -> dict[str, Floats]:
    """Metrics of the confusion matrix (T, M) by draws of the population's rates.

    Only where the items are whole domains: of other groups the rates say nothing. A model with
    one error rate per classifier says no more than how often it errs.
    """
    wanted = {
        name: metric
        for name, metric in chosen.items()
        if isinstance(metric.statistic, Confusion) and (metric.linear or not rates.one_rate)
    }
    if not wanted or not all(rates.covers(rows, int(j)) for j in columns):
        return {}
    joint = [rates.joint(rows, int(j)) for j in columns]
    return {
        name: np.stack([metric.finish(state) for state in joint], axis=1)
        for name, metric in wanted.items()
    }


def metrics_of_labels(
    predictions: Predictions, labels: Ints, metrics: Sequence[str]
) -> dict[str, Floats]:
    """Metrics of every classifier for many hard labelings of the same items.

    Parameters
    ----------
    labels
        Class of every item in every draw, shape (n, D).
    metrics
        Names.

    Returns
    -------
    Per metric an array (D, M); NaN where it is undefined.
    """
    chosen = resolve(metrics)
    rows = np.arange(predictions.n_items)
    views = [view_of(predictions, rows, j) for j in range(predictions.n_models)]
    plans = list(map_blocks(lambda view: prepare(view, chosen, exact=True), views))
    chunks = [HardLabels(labels[:, chunk]) for chunk in spans(labels.shape[1], 64)]
    parts = list(map_blocks(lambda chunk: finish_labels(plans, chosen, chunk), chunks))
    return {name: np.concatenate([part[name] for part in parts]) for name in chosen}
