"""Votes of crowds, and what every part of `votes.py` asks of a method: error rates and labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

import fewlabels as fl
from fewlabels.kernels.arrays import Floats, Ints
from runs import number, plus_minus, small

CROWDS = (
    "bluebird", "dog", "face", "rte", "weather_cf", "weather_cf_amt", "sentiment_sp",
    "sentiment_sp_amt", "s5_adult",
)  # fmt: skip


class Crowd(NamedTuple):
    """All votes, and items (G,) whose gold label (G,) is known."""

    predictions: fl.Predictions
    items: Ints
    gold: Ints


def read_crowd(data: Path, name: str) -> Crowd:
    """A set; an annotator's further votes on an item count as well."""
    folder = data / "crowd"
    file = folder / f"{name}.votes.parquet"
    predictions = fl.read_predictions(votes=file, duplicates="keep")
    gold = pd.read_parquet(folder / f"{name}.gold.parquet")
    # Items stand in the order of their first votes.
    items = pd.read_parquet(file, columns=["item"])["item"].unique()
    place = pd.Series(np.arange(predictions.n_items), index=items)
    classes = pd.Series(np.arange(predictions.n_classes), index=predictions.classes)
    rows = place.reindex(gold["item"]).to_numpy()
    return Crowd(predictions, rows, classes.reindex(gold["gold"]).to_numpy())


class Answer(NamedTuple):
    """Error rates (D, M), domains by first appearance; P(label) (n, K)."""

    error: Floats
    labels: Floats


Method = Callable[[fl.Predictions, int], Answer]


def together(model: fl.models.LabelModel) -> Method:
    """One fit of all domains, which the model tells apart, or does not need to."""

    def ask(predictions: fl.Predictions, seed: int) -> Answer:
        posterior = model.infer(predictions, np.random.default_rng(seed))
        labels = posterior.marginals()
        rates = posterior.diagnostics.get("error_rate")
        if rates is None:
            return Answer(implied(predictions, labels), labels)
        names = domains_of(predictions)
        rows = [rates] if len(names) == 1 else [rates[name] for name in names]
        return Answer(np.array([[row[m] for m in predictions.models] for row in rows]), labels)

    return ask


def apart(model: fl.models.LabelModel) -> Method:
    """A fit for each domain, for models that know of none."""
    alone = together(model)

    def ask(predictions: fl.Predictions, seed: int) -> Answer:
        labels = np.empty((predictions.n_items, predictions.n_classes))
        error = []
        for rows in domains_of(predictions).values():
            found = alone(predictions.take(rows), seed)
            labels[rows] = found.labels
            error.append(found.error[0])
        return Answer(np.array(error), labels)

    return ask


def domains_of(predictions: fl.Predictions) -> dict[str, Ints]:
    """Rows of each domain by first appearance; of one, empty, where there are none."""
    domain = predictions.domain
    domain = np.full(predictions.n_items, "") if domain is None else domain
    return {name: np.flatnonzero(domain == name) for name in dict.fromkeys(domain.tolist())}


def implied(predictions: fl.Predictions, labels: Floats) -> Floats:
    """How often votes differ from labels of these probabilities (n, K), (D, M)."""
    out, k = [], predictions.n_classes
    for rows in domains_of(predictions).values():
        joint = np.asarray(predictions.vote_counts[rows].T @ labels[rows]).reshape(-1, k, k)
        votes, right = joint.sum(axis=(1, 2)), np.einsum("jkk->j", joint)
        out.append(np.where(votes > 0, 1 - right / np.maximum(votes, 1e-300), np.nan))
    return np.array(out)


SAMPLED = {
    "cbcc": fl.models.CBCC, "bee": fl.models.BEE, "cbee": fl.models.CBEE, "hcbee": fl.models.HCBEE,
    "confusion-bee": fl.models.ConfusionBEE, "confusion-cbee": fl.models.ConfusionCBEE,
    "confusion-hcbee": fl.models.ConfusionHCBEE,
}  # fmt: skip
"""Models by Gibbs sampling."""

# From the majority vote, with .01 votes in every cell, to the end.
_EM = {"start": "majority", "smoothing": 0.01, "iterations": 2000, "tolerance": 1e-10}


def dawid_skene(rates: str) -> fl.models.LabelModel:
    """EM to convergence, for every domain."""
    return fl.models.DawidSkene(rates=rates, by_domain=True, **_EM)


def sampled(name: str, **options: int) -> Method:
    """By Gibbs sampling: one chain unless told otherwise."""
    return together(SAMPLED[name](**{"chains": 1, **options}))


BASELINES: Mapping[str, Method] = {
    "majority-vote": together(fl.models.MajorityVote()),
    "dawid-skene": together(dawid_skene("confusion")),
    "dawid-skene, one rate": together(dawid_skene("one")),
    "agreement-rates": together(fl.models.AgreementRates(by_domain=True)),
    "crowd-svm": apart(fl.models.CrowdSVM()),
    "crowd-svm, gradient descent": apart(fl.models.CrowdSVM(solver="gradient-descent")),
}
"""What the models by Gibbs sampling are compared with where there are domains."""


PAIRED = ("difference", "wins", "z", "ratio")


def paired(errors: pd.DataFrame, worse: str, better: str) -> list[str]:
    """How much more one method (a column) errs than another where both were run: `PAIRED`."""
    own = errors[[worse, better]].dropna()
    gap = own[worse] - own[better]
    z = gap.mean() / gap.sem() if gap.std() > 0 else np.nan
    ratio = own[worse].mean() / own[better].mean()
    wins = f"{int((gap > 0).sum())} of {len(gap)}"
    return [plus_minus(gap, small), wins, number(z, 1), number(ratio, 2)]
