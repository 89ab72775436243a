"""Crowd data with gold labels: labels and annotators' error rates, beside crowd-kit's methods."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import fewlabels as fl
from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.votes import most_voted
from parts import Arguments, Part, Plan, Record
from runs import number, table
from votes_methods import SAMPLED, Answer, Method, implied, sampled, together

SETS = (
    "bluebird", "dog", "face", "rte", "weather_cf", "weather_cf_amt", "sentiment_sp",
    "sentiment_sp_amt", "s5_adult",
)  # fmt: skip
_TWO_CLASSES = ("bluebird", "rte", "sentiment_sp", "sentiment_sp_amt")
_LEAST = 5
"""Items with gold that an annotator must have voted on."""

OURS: dict[str, Method] = {
    "majority-vote": together(fl.models.MajorityVote()),
    "dawid-skene": together(fl.models.DawidSkene()),
    "dawid-skene, one rate": together(fl.models.DawidSkene(rates="one")),
    "agreement-rates": together(fl.models.AgreementRates()),
    "crowd-svm": together(fl.models.CrowdSVM()),
    **{
        name: together(sampled(name))
        for name in SAMPLED
        if not name.endswith("cbee") or name.endswith("hcbee")  # one domain: bee again
    },
    "vote-selection": together(fl.models.VoteSelection()),
}
DEFAULT = "vote-selection"


class Crowd(NamedTuple):
    """Votes, long and as predictions, and items (G,) whose gold label (G,) is known."""

    frame: pd.DataFrame
    predictions: fl.Predictions
    items: Ints
    gold: Ints


def read_crowd(data: Path, name: str) -> Crowd:
    """A set; an annotator's further votes on an item count as well."""
    folder = data / "crowd"
    file = folder / f"{name}.votes.parquet"
    frame = pd.read_parquet(file).rename(columns={"item": "task", "annotator": "worker"})
    predictions = fl.read_predictions(votes=file, duplicates="keep")
    gold = pd.read_parquet(folder / f"{name}.gold.parquet")
    # Items stand in the order of their first votes.
    place = pd.Series(np.arange(predictions.n_items), index=pd.unique(frame["task"]))
    classes = pd.Series(np.arange(predictions.n_classes), index=predictions.classes)
    rows = place.reindex(gold["item"]).to_numpy()
    return Crowd(frame, predictions, rows, classes.reindex(gold["gold"]).to_numpy())


def _labels(crowd: Crowd, probabilities: pd.DataFrame) -> Floats:
    """P(label) in our order of items and classes, (n, K)."""
    items, classes = pd.unique(crowd.frame["task"]), crowd.predictions.classes
    return probabilities.reindex(index=items, columns=list(classes)).fillna(0.0).to_numpy(float)


def _by_majority(crowd: Crowd, fitted: Any) -> Answer:
    """The class of most votes is the label; classes that tie share it."""
    labels = most_voted(_labels(crowd, fitted.probas_)[:, :, None])[:, :, 0]
    return Answer(implied(crowd.predictions, labels), labels)


def _by_labels(crowd: Crowd, fitted: Any) -> Answer:
    """Error rates of annotators are by P(label)."""
    labels = _labels(crowd, fitted.probas_)
    return Answer(implied(crowd.predictions, labels), labels)


def _by_best_label(crowd: Crowd, fitted: Any) -> Answer:
    """Scores are no probabilities: error rates are by the label of the highest one."""
    labels = _labels(crowd, pd.get_dummies(fitted.predict(crowd.frame)).astype(float))
    return Answer(implied(crowd.predictions, labels), labels)


def _by_matrix(crowd: Crowd, fitted: Any) -> Answer:
    """Error rates are by confusion matrices and class shares."""
    models = crowd.predictions.models
    error = np.ones(len(models))
    for k, share in fitted.priors_.items():
        hits = fitted.errors_[k].xs(k, level="label").rename(str)
        error -= share * hits.reindex(models, fill_value=0.0).to_numpy(float)
    return Answer(error[None], _labels(crowd, fitted.probas_))


PEERS: dict[str, Callable[[Crowd, Any], Answer]] = {
    "crowd-kit MajorityVote": _by_majority,
    "crowd-kit DawidSkene": _by_matrix,
    "crowd-kit GLAD": _by_labels,
    "crowd-kit MMSR": _by_best_label,
}
"""Its methods, with their defaults, and how they are read."""


def ask_peer(crowd: Crowd, name: str) -> Answer:
    """What one of crowd-kit's methods says."""
    from crowdkit import aggregation

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = getattr(aggregation, name.split()[1])().fit(crowd.frame)
        return PEERS[name](crowd, fitted)


def crowd_cells(plan: Plan) -> list[Arguments]:
    """Every method on every set that it is for."""
    methods = [*OURS, *PEERS]
    if plan.quick:
        methods = ["dawid-skene", "bee", DEFAULT, *list(PEERS)[:2]]
    return [
        {"name": name, "method": method}
        for name in (SETS[:1] if plan.quick else SETS)
        for method in methods
        if method != "agreement-rates" or name in _TWO_CLASSES
    ]


def crowd_run(data: Path, name: str, method: str) -> list[Record]:
    """Which gold labels were met, and how far annotators' error rates are off."""
    crowd = read_crowd(data, name)
    found = OURS[method](crowd.predictions, 0) if method in OURS else ask_peer(crowd, method)
    by_labels = implied(crowd.predictions, found.labels)[0]
    errors = {"off": off(crowd, found.error[0]), "off_by_labels": off(crowd, by_labels)}
    record = {"set": name, "method": method, "chosen": found.chosen}
    return [record | {"met": met(crowd, found.labels), **errors}]


def met(crowd: Crowd, labels: Floats) -> Floats:
    """1 where the likeliest label is gold, 1 / m where it is one of m that are equally likely."""
    own = labels[crowd.items]
    likeliest = own >= own.max(axis=1, keepdims=True) - 1e-9
    return likeliest[np.arange(len(own)), crowd.gold] / likeliest.sum(axis=1)


def off(crowd: Crowd, error: Floats) -> Floats:
    """Absolute error of every annotator's error rate against that on the gold items."""
    known = crowd.predictions.take(crowd.items)
    truth = implied(known, np.eye(known.n_classes)[crowd.gold])[0]
    enough = known.has_hard.sum(axis=0) >= _LEAST
    return np.abs(error - truth)[enough]


def crowd_blocks(records: pd.DataFrame, plan: Plan) -> dict[str, str]:
    """Accuracy of the labels, and errors of the annotators' error rates, by set."""
    return {
        "crowd": _by_set(records, "met", 1, lambda v: number(100 * v, 1)),
        "crowd-rates": _by_set(records, "off", -1, lambda v: number(v, 3)),
        "crowd-rates-by-labels": _by_set(records, "off_by_labels", -1, lambda v: number(v, 3)),
    }


def _by_set(records: pd.DataFrame, column: str, sign: int, write: Callable[[float], str]) -> str:
    """A row for each method, then how the default compares with the best of the peers.

    `sign` is 1 where more is better, -1 where less is. A method holds its own where it is better,
    or worse by no more than one standard error of the differences.
    """
    sets = list(dict.fromkeys(records["set"]))
    values = records.set_index(["method", "set"])[column].map(np.asarray)
    means = values.map(np.mean).unstack()
    best = (sign * means.reindex(list(PEERS))).idxmax()
    gaps = pd.Series(
        {k: pd.Series(sign * (v - values[best[k[1]], k[1]])) for k, v in values.items()}
    )
    lead, error = gaps.map(pd.Series.mean), gaps.map(pd.Series.sem)
    holds, better = lead >= -error - 1e-12, lead > 1e-12

    def shown(name: str, method: str) -> str:
        if np.isnan(means.loc[method, name]):
            return ""
        text = write(means.loc[method, name])
        return f"**{text}**" if best[name] == method else text

    rows = [
        [method, *(shown(name, method) for name in sets),
         *(f"{kind[method].sum()} of {len(kind[method])}" for kind in (holds, better))]
        for method in dict.fromkeys(records["method"])
    ]  # fmt: skip
    default = [
        [name, chosen, best[name].removeprefix("crowd-kit "), len(gaps[DEFAULT, name]),
         f"{write(lead[DEFAULT, name])} ± {write(error[DEFAULT, name])}",
         "yes" if holds[DEFAULT, name] else "no"]
        for name, chosen in records[records["method"] == DEFAULT][["set", "chosen"]].to_numpy()
    ]  # fmt: skip
    ends = ["within one SE, or better", "better"]
    unit, ahead = "items" if column == "met" else "annotators", f"`{DEFAULT}` ahead by"
    return "\n\n".join([
        table(["method", *sets, *ends], rows),
        table(["set", "chosen", "best of crowd-kit", unit, ahead, ends[0]], default),
    ])  # fmt: skip


CROWD = Part(
    crowd_cells,
    crowd_run,
    crowd_blocks,
    "named models by Gibbs sampling with their defaults in one chain, `vote-selection` and "
    "crowd-kit's methods with all of their defaults, seed 0; ± is the standard error of the mean "
    "of paired differences over items or annotators",
)
