"""Strata of the items: what labels drawn within them are worth, what they miss, which are next."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from fewlabels.errors import listed, quoted
from fewlabels.kernels.arrays import Array, Floats, Ints
from fewlabels.kernels.strata import stratified_mean
from fewlabels.metrics.base import Metric
from fewlabels.metrics.plans import view_of
from fewlabels.posterior import LabelPosterior
from fewlabels.predictions import Predictions


class Strata(NamedTuple):
    """The strata of a column: of each item (n,), and of each stratum its name, items and labels.

    `n_items` (H,) and `n_labeled` (H,) count items of positive weight, `shares` (H,) are those of
    all items by their weights.
    """

    column: str
    names: tuple[str, ...]
    codes: Ints
    shares: Floats
    n_items: Ints
    n_labeled: Ints

    @staticmethod
    def of(predictions: Predictions) -> Strata:
        """Those that `Predictions.stratum` names."""
        assert predictions.stratum is not None
        names = tuple(dict.fromkeys(map(str, predictions.groups[predictions.stratum].tolist())))
        codes, mass = predictions.strata, predictions.weight * predictions.times
        size = np.where(predictions.weight > 0, predictions.times, 0.0)
        shares = np.bincount(codes, mass) / mass.sum()
        n_items, n_labeled = (
            np.bincount(codes, size * held, len(names)).round().astype(np.int64)
            for held in (np.ones(len(codes)), predictions.told)
        )
        return Strata(predictions.stratum, names, codes, shares, n_items, n_labeled)

    def table(self, **more: Array) -> list[dict[str, Any]]:
        """Name, items and labels of every stratum, and more of each, (H,)."""
        columns = {"n_items": self.n_items, "n_labeled": self.n_labeled, **more}
        rows = zip(self.names, *(column.tolist() for column in columns.values()), strict=True)
        return [dict(zip(("name", *columns), row, strict=True)) for row in rows]


def strata_facts(
    predictions: Predictions, metrics: Mapping[str, Metric]
) -> tuple[dict[str, Any], list[str], bool]:
    """Diagnostics and sentences on labels drawn by stratum, and whether strata lack labels.

    Nothing where there are no strata. Design effects are of metrics that are means over the items,
    from the labels alone. A stratum with one label shows no spread, and one without says nothing.
    """
    if predictions.stratum is None or not predictions.told.any():
        return {}, [], False
    strata = Strata.of(predictions)
    effects, sentences = design_effects(predictions, strata, metrics), []
    n, of = predictions.n_labeled, f"column {strata.column}, {len(strata.names)} in all"
    if effects:
        first, effect = effects[0], effects[0]["value"]
        sentences.append(
            f"strata ({of}): labels alone count by their stratum's share of all items; the design "
            f"effect for {first['metric']} of {first['model']} is {effect:.2f}, so {n:,} labels "
            f"are worth {n / max(effect, 1e-9):,.0f} drawn at random from all"
        )
    empty = np.flatnonzero((strata.n_labeled == 0) & (strata.n_items > 0))
    single = np.flatnonzero((strata.n_labeled == 1) & (strata.n_items > 1))
    for which, what, consequence in (
        (empty, "no label", "labels say nothing of them"),
        (single, "one label alone", "it shows no spread, and intervals join such strata"),
    ):
        if len(which):
            names = listed([quoted(strata.names[h]) for h in which], 3)
            sentences.append(
                f"assumption: {what} in {len(which)} of {len(strata.names)} strata ({names}; "
                f"{strata.shares[which].sum():.0%} of the items): {consequence}; label some there "
                f"(fewlabels label-next FILE --strata {strata.column})"
            )
    found = {
        "column": strata.column,
        "strata": strata.table(share=strata.shares),
        "design_effect": effects,
    }
    return {"strata": found}, sentences, bool(len(empty) or len(single))


def design_effects(
    predictions: Predictions, strata: Strata, metrics: Mapping[str, Metric]
) -> list[dict[str, Any]]:
    """Variance of a mean from these labels over that of as many drawn at random, by classifier.

    Only of metrics that are means over the items.
    """
    out, labeled = [], np.flatnonzero(predictions.labeled & (predictions.weight > 0))
    for j, model in enumerate(predictions.models):
        for name, metric in metrics.items():
            if metric.per_item is None:
                continue
            rows = np.intersect1d(predictions.given_by(metric.needs, j), labeled)
            if len(rows) < 2:
                continue
            value = metric.per_item(view_of(predictions, rows, j))
            own = value[np.arange(len(rows)), predictions.labels[rows]]
            found = stratified_mean(own, strata.codes[rows], strata.shares)
            out.append({"model": model, "metric": name, "value": found.design_effect})
    return out


def spreads(
    predictions: Predictions, posterior: LabelPosterior, strata: Strata, metric: Metric | None,
    models: Collection[str],
) -> Floats:  # fmt: skip
    """Standard deviation S_h of a metric's value of an item in every stratum, (H,).

    Without a metric the value is whether an item is of the last class. Labels are as likely as the
    posterior has them; of several classifiers it is the root of the mean variance. 0 without an
    item.
    """
    weight = predictions.weight * predictions.times
    square, n_models = np.zeros(len(strata.names)), 0
    for model in models:
        j = predictions.place[model]
        rows = predictions.given_by("ranking" if metric is None else metric.needs, j)
        value = np.tile(np.eye(predictions.n_classes)[-1], (len(rows), 1))
        if metric is not None and metric.per_item is not None:
            value = metric.per_item(view_of(predictions, rows, j))
        p = posterior.of(j).probabilities[rows]
        mass, first, second = (
            np.bincount(strata.codes[rows], weight[rows] * moment, len(strata.names))
            for moment in (np.ones(len(rows)), (p * value).sum(axis=1), (p * value**2).sum(axis=1))
        )
        mass = np.where(mass > 0, mass, 1.0)
        square += np.maximum(second / mass - (first / mass) ** 2, 0.0)
        n_models += len(rows) > 0
    return np.sqrt(square / max(n_models, 1))
