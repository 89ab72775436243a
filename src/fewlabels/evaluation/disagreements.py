"""Items on which classifiers and labels differ, or confident classifiers, the most telling first.

An item tells as much as both sides are sure: the product of the probabilities that each gives its
own class, where a label has 1, or the share of its annotators. A classifier without probabilities
is as sure of a class as its predictions of it are right, by the label posterior. Labels that all
classifiers contradict (`suspect_labels`) come first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from fewlabels import __version__
from fewlabels.checks.arguments import level_of
from fewlabels.errors import UsageError, listed, plain_name
from fewlabels.estimates import MOST_COMPARED, Estimates
from fewlabels.evaluation.suspect_labels import suspect_labels
from fewlabels.kernels.arrays import Floats, Frozen, Ints
from fewlabels.methods.voices import Unheard
from fewlabels.predictions import Predictions
from fewlabels.report.shown import Result, plain_values

_HALF = 0.5


@dataclass(frozen=True, repr=False)
class Disagreements(Frozen, Result):
    """The items that differ, the most telling first, as columns of a table.

    `columns` are `row` (from 1), the item's name, `differ` (who does), `strength`, `suspect`
    (P(the label is wrong), where it is suspect), `label`, each classifier's prediction `y__NAME`
    and how sure it is, `sure__NAME`, and the other columns of the data.
    """

    _page = "disagreements"

    columns: Mapping[str, Sequence[Any]]
    n_items: int
    n_labeled: int
    with_label: int
    suspect: int
    confident: float

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values."""
        out: dict[str, Any] = plain_values({"fewlabels": __version__, **vars(self)})
        return out

    def _columns(self) -> dict[str, Any]:
        return dict(self.columns)


def disagreements(estimates: Estimates, confident: float) -> Disagreements:
    """The disagreements of the items behind some estimates."""
    if estimates.streamed:
        raise UsageError(
            "a stream's items are not held; read the files whole (--engine memory) to see on which "
            "items classifiers and labels differ"
        )
    if level_of(confident) is None:
        raise UsageError("`confident` must be between 0 and 1; got None")
    items, n, k = estimates.predictions, estimates.predictions.n_items, len(estimates.classes)
    votes = items.ballots.tocoo()
    if not votes.nnz:
        raise UsageError(
            "no classifier predicts classes, so none can differ; scores alone say no class"
        )
    item, model, called = votes.row, votes.col, votes.data.astype(np.int64) - 1
    sure = _sureness(estimates, item, model, called)
    label, certain = _labels(items)
    # The surest classifier that calls an item each class, (n, K).
    support = np.zeros((n, k))
    np.maximum.at(support, (item, called), sure)
    # The label, or the class that somebody is surest of, against the next one.
    first = np.where(label >= 0, label, support.argmax(axis=1))
    certain = np.where(label >= 0, certain, support.max(axis=1))
    support[np.arange(n), first] = 0.0
    second = support.max(axis=1)
    strength = np.where((label >= 0) | (second >= confident), certain * second, 0.0)
    wrong = _suspect(items)
    shown = np.flatnonzero((strength > 0) | (wrong > 0))
    shown = shown[np.lexsort((shown, -strength[shown], -wrong[shown]))]
    names = dict(enumerate(plain_name(c) for c in estimates.classes))
    differs: dict[int, list[str]] = {}
    apart = np.where(label[item] >= 0, called != label[item], sure >= confident)
    for i, j in zip(item[apart].tolist(), model[apart].tolist(), strict=True):
        differs.setdefault(i, []).append(items.models[j])
    columns: dict[str, list[Any]] = {
        "row": (shown + 1).tolist(),
        **{name: [values[i] for i in shown.tolist()] for name, values in items.item_names.items()},
        "differ": [listed(differs.get(i, ()), 5) for i in shown.tolist()],
        "strength": np.round(strength[shown], 4).tolist(),
        "suspect": [round(p, 3) if p else None for p in wrong[shown].tolist()],
        "label": [names.get(c) for c in label[shown].tolist()],
    }
    if items.n_models <= MOST_COMPARED:
        of_shown = items.ballots[shown].toarray().astype(np.int64) - 1
        how_sure = scipy.sparse.csr_matrix((sure, (item, model)), items.ballots.shape)[shown]
        for name, classes, p in zip(items.models, of_shown.T, how_sure.toarray().T, strict=True):
            columns[f"y__{name}"] = [names.get(c) for c in classes.tolist()]
            columns[f"sure__{name}"] = [
                round(q, 4) if c >= 0 else None
                for c, q in zip(classes.tolist(), p.tolist(), strict=True)
            ]
    more = {**items.groups, **({} if items.domain is None else {"domain": items.domain})}
    columns |= {c: _plain(v[shown].tolist()) for c, v in more.items() if c not in columns}
    n_suspect = int((wrong[shown] > 0).sum())
    with_label = int((label[shown] >= 0).sum())
    return Disagreements(columns, items.size, estimates.n_labeled, with_label, n_suspect, confident)


def _sureness(estimates: Estimates, item: Ints, model: Ints, called: Ints) -> Floats:
    """P(right) of each prediction (V,): the classifier's own, or its share by the posterior."""
    items, sure = estimates.predictions, np.full(len(item), np.nan)
    if items.probabilities is not None:
        sure = items.probabilities[item, model, called]
    left = np.isnan(sure)
    if not left.any():
        return sure
    label = _labels(items)[0][item[left]]
    right, weight = (label == called[left]).astype(float), (label >= 0).astype(float)
    if estimates.posterior.infers:
        right = estimates.posterior.marginals()[item[left], called[left]]
        weight = np.ones(len(right))
    # Each classifier and class by itself, with a prior observation that is as often right as all.
    code = model[left] * np.int64(items.n_classes) + called[left]
    prior = float((right * weight).sum() / weight.sum()) if weight.any() else _HALF
    size = items.n_models * items.n_classes
    total = np.bincount(code, weight, size) + 1
    sure[left] = ((np.bincount(code, right * weight, size) + prior) / total)[code]
    return sure


def _labels(items: Predictions) -> tuple[Ints, Floats]:
    """Label of each item (-1: none), or what most annotators say, and the share that say it."""
    label, certain = items.labels.astype(np.int64), np.ones(items.n_items)
    if items.histogram is not None:
        several = np.flatnonzero(items.annotated)
        counts = items.histogram[several]
        label[several] = counts.argmax(axis=1)
        certain[several] = counts.max(axis=1) / counts.sum(axis=1)
    return label, certain


def _suspect(items: Predictions) -> Floats:
    """P(the label is wrong) of suspect labels, (n,); 0 elsewhere; tasks each by themselves."""
    wrong = np.zeros(items.n_items)
    tasks = {n: items.of_task(n) for n in items.tasks} if items.task else {"": items}
    for name, own in tasks.items():
        found = suspect_labels(own, Unheard.from_predictions(own).others(own.models))
        if found is not None:
            rows = items.tasks[name][found.rows] if items.task else found.rows
            wrong[rows] = found.probability
    return wrong


def _plain(values: Sequence[Any]) -> list[Any]:
    """Cells of one kind: texts where some are."""
    if all(v is None or isinstance(v, int | float | bool) for v in values):
        return list(values)
    return [None if v is None else str(v) for v in values]
