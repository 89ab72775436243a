"""Plans of several classifiers: prepared, summed over blocks of items, finished into metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.blocks import spans
from fewlabels.kernels.weighting import Weighting
from fewlabels.metrics.base import Metric, Needs, Plan, ScoreView
from fewlabels.posterior import VoteRates
from fewlabels.predictions import Predictions

Chosen = Mapping[str, Metric]
_CELLS = 2**22
"""Cells of the confusion matrices of a model's draws that are held at once."""


class States:
    """Sums of the states of every classifier's plans over blocks of items, of G groups."""

    def __init__(self, plans: Sequence[Mapping[str, Plan]]) -> None:
        self.plans = plans
        self.sums: list[dict[int, Floats]] = [{} for _ in plans]
        self.whole = False

    def add(self, weights: Weighting, block: slice | None = None) -> None:
        """Add the states of a block of items; None: of all, which are digested at once."""
        self.whole = block is None
        for by_name, sums in zip(self.plans, self.sums, strict=True):
            for plan in {id(p): p for p in by_name.values()}.values():
                if block is None:
                    sums[id(plan)] = plan.measured(weights)
                else:
                    sums[id(plan)] = plan.add(sums.get(id(plan)), weights, block)

    def digests(self) -> list[dict[str, Floats]]:
        """Digest of every metric, last axes (G, D), per classifier."""
        out = []
        for by_name, sums in zip(self.plans, self.sums, strict=True):
            digests: dict[int, Floats] = {}
            for plan in {id(p): p for p in by_name.values()}.values():
                state = sums.pop(id(plan))
                digests[id(plan)] = state if self.whole else plan.digested(state)
            out.append({name: digests[id(plan)] for name, plan in by_name.items()})
        return out

    def finish(self, chosen: Chosen, size: int, n_groups: int = 1) -> dict[str, Floats]:
        """Metrics (D, M G), the groups of a classifier side by side."""
        out = {name: np.full((size, len(self.plans) * n_groups), np.nan) for name in chosen}
        for j, by_name in enumerate(self.digests()):
            for name, digest in by_name.items():
                flat = chosen[name].finish(digest.reshape(*digest.shape[:-2], -1))
                columns = slice(j * n_groups, (j + 1) * n_groups)
                out[name][:, columns] = flat.reshape(n_groups, size).T
        return out


def prepare(
    view: ScoreView, chosen: Chosen, exact: bool, prepared: dict[object, Plan] | None = None
) -> dict[str, Plan]:
    """Plans of the metrics that apply; metrics of one statistic share its plan.

    `prepared` are plans of the same view from before, and gets those that are new.
    """
    view = replace(view, exact=exact)
    shared = {} if prepared is None else prepared
    out = {}
    for name, metric in chosen.items():
        if view.provides(metric.needs):
            key = metric.statistic, exact
            if key not in shared:
                shared[key] = metric.statistic.prepare(view)
            out[name] = shared[key]
    return out


def view_of(predictions: Predictions, rows: Ints, j: int) -> ScoreView:
    """What classifier j provides on all of the rows."""
    votes = predictions.hard_of(rows, j)

    def on_all(needs: Needs) -> bool:
        if needs == "hard":
            return bool((votes >= 0).all())
        return bool(predictions.provides(needs)[rows, j].all())

    probabilities, scores = None, None
    if predictions.probabilities is not None and on_all("probabilities"):
        # All rows are a view; indices would copy them.
        every = len(rows) == predictions.n_items
        probabilities = predictions.probabilities[slice(None) if every else rows, j]
    elif predictions.scores is not None and on_all("ranking"):
        scores = predictions.scores[rows, j]
    hard = votes.astype(np.int64) if on_all("hard") else None
    times = None if predictions.multiplicity is None else predictions.multiplicity[rows]
    return ScoreView(
        predictions.n_classes, probabilities, hard, scores, times=times,
        grades=predictions.grades,
    )  # fmt: skip


def metrics_of_rates(
    rates: VoteRates, chosen: Chosen, rows: Ints, columns: Ints, grades: Floats
) -> dict[str, Floats]:
    """Metrics of the confusion matrix (T, M) by draws of the population's rates.

    Only where the items are whole domains: of other groups the rates say nothing. A model with
    one error rate per classifier says no more than how often it errs.
    """
    wanted = {n: m for n, m in chosen.items() if m.linear or not rates.one_rate}
    if not wanted or not all(rates.covers(rows, int(j)) for j in columns):
        return {}
    cells = rates.joint(rows, int(columns[0]), slice(1)).size
    out: dict[str, Floats] = {}
    for column, j in enumerate(columns):
        for draws in spans(rates.size, max(_CELLS // cells, 1)):
            matrix = rates.joint(rows, int(j), draws)
            for name, metric in wanted.items():
                digest = metric.statistic.of_matrix(matrix, grades)
                if digest is not None:
                    values = out.setdefault(name, np.empty((rates.size, len(columns))))
                    values[draws, column] = metric.finish(digest)
    return out
