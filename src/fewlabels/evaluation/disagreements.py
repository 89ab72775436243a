"""Items on which classifiers and labels differ, or confident classifiers, the most telling first.

An item tells as much as both sides are sure: the product of the probabilities that each gives its
own class, where a label has 1, or the share of its annotators. A classifier without probabilities
is as sure of a class as its predictions of it are right, by the label posterior. Labels that all
classifiers contradict (`suspect_labels`) come first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fewlabels import __version__
from fewlabels.checks.arguments import level_of
from fewlabels.errors import UsageError, listed, plain_name
from fewlabels.estimates import MOST_COMPARED, Estimates
from fewlabels.evaluation.suspect_labels import suspect_labels
from fewlabels.kernels.arrays import Bools, Floats, Frozen, Ints
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

    _text = "render_disagreements"

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
    # The surest classifier that calls an item each class, (n, K).
    support = np.zeros((n, k))
    np.maximum.at(support, (item, called), sure)
    label, certain = _labels(items)
    has = np.flatnonzero(label >= 0)
    against = support.copy()
    against[has, label[has]] = 0.0
    other, every = against.argmax(axis=1), np.arange(n)
    strength = np.where(label >= 0, certain * against[every, other], 0.0)
    # Without a label: the second surest class against the surest.
    first = support.argmax(axis=1)
    rest = support.copy()
    rest[every, first] = 0.0
    second = rest.argmax(axis=1)
    both = support[every, first] * rest[every, second]
    apart = (label < 0) & (rest[every, second] >= confident)
    strength[apart] = both[apart]
    wrong = _suspect(items)
    shown = np.flatnonzero((strength > 0) | (wrong > 0))
    order = np.lexsort((shown, -strength[shown], -wrong[shown]))
    shown = shown[order]
    who = _names(
        items.models, item, model, called, np.where(label >= 0, label, -1), sure, confident
    )
    names = [plain_name(c) for c in estimates.classes]
    columns: dict[str, list[Any]] = {"row": (shown + 1).tolist()}
    taken = {"row"}
    for name, values in items.item_names.items():
        columns[name] = [values[i] for i in shown.tolist()]
    told = [names[c] if c >= 0 else None for c in label[shown].tolist()]
    columns |= {
        "differ": [who.get(i, "") for i in shown.tolist()],
        "strength": np.round(strength[shown], 4).tolist(),
        "suspect": [round(p, 3) if p else None for p in wrong[shown].tolist()],
        "label": told,
    }
    if items.n_models <= MOST_COMPARED:
        columns |= _answers(items.models, names, shown, (item, model, called), sure)
    taken |= columns.keys()
    more = dict(items.groups) | ({} if items.domain is None else {"domain": items.domain})
    columns |= {c: _plain(v[shown].tolist()) for c, v in more.items() if c not in taken}
    labeled = int((label[shown] >= 0).sum())
    return Disagreements(
        columns, items.size, estimates.n_labeled, labeled, int((wrong[shown] > 0).sum()), confident
    )


def _sureness(estimates: Estimates, item: Ints, model: Ints, called: Ints) -> Floats:
    """P(right) of each prediction (V,): the classifier's own, or its share by the posterior."""
    items, sure = estimates.predictions, np.full(len(item), np.nan)
    if items.probabilities is not None:
        sure = items.probabilities[item, model, called]
    left = np.isnan(sure)
    if not left.any():
        return sure
    posterior = estimates.posterior
    if posterior.infers:
        rows, at = np.unique(item[left], return_inverse=True)
        right = posterior.marginals()[rows][at, called[left]]
        weight = np.ones(len(right))
    else:
        label, _ = _labels(items)
        right = (label[item[left]] == called[left]).astype(float)
        weight = (label[item[left]] >= 0).astype(float)
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
        counts = items.histogram
        several = np.flatnonzero((label < 0) & counts.any(axis=1))
        label, most = label.copy(), counts[several].argmax(axis=1)
        label[several] = most
        certain[several] = counts[several, most] / counts[several].sum(axis=1)
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


def _names(
    models: Sequence[str], item: Ints, model: Ints, called: Ints, label: Ints, sure: Floats,
    confident: float,
) -> dict[int, str]:  # fmt: skip
    """Who differs, by item: from the label, or, where there is none, confidently."""
    differs: Bools = np.where(label[item] >= 0, called != label[item], sure >= confident)
    by_item: dict[int, list[str]] = {}
    for i, j in zip(item[differs].tolist(), model[differs].tolist(), strict=True):
        by_item.setdefault(i, []).append(models[j])
    return {i: listed(found, 5) for i, found in by_item.items()}


def _answers(
    models: Sequence[str], names: Sequence[Any], shown: Ints, votes: tuple[Ints, Ints, Ints],
    sure: Floats,
) -> dict[str, list[Any]]:  # fmt: skip
    """What each classifier says of the items that are shown, and how sure it is."""
    place = {i: at for at, i in enumerate(shown.tolist())}
    out: dict[str, list[Any]] = {}
    for name in models:
        out[f"y__{name}"], out[f"sure__{name}"] = [None] * len(shown), [None] * len(shown)
    for i, j, c, p in zip(*(v.tolist() for v in votes), sure.tolist(), strict=True):
        if i in place:
            out[f"y__{models[j]}"][place[i]] = names[c]
            out[f"sure__{models[j]}"][place[i]] = round(p, 4)
    return out


def _plain(values: Sequence[Any]) -> list[Any]:
    """Cells of one kind: texts where some are."""
    some: Iterator[Any] = (v for v in values if v is not None)
    if all(isinstance(v, int | float | bool) for v in some):
        return list(values)
    return [None if v is None else str(v) for v in values]
