"""Which items to label: errors, coverage and when to stop, by how the items are drawn.

    python -m benchmarks labeling all | questions | curves | stopping

A run draws 1,500 items of a set whose labels are all known, and labels them ten at a time, from 50
on 25 at a time. The page is docs/benchmarks/labeling.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtri

import fewlabels as fl
from curves_bands import SPE_LISTS, Way, draw, measure
from fewlabels.evaluation.anytime import DrawnValues, anytime, confidence_sequence, pooled
from fewlabels.kernels.importance import lure_weights
from fewlabels.questions.next_items import STRATIFIED, next_items
from parts import SEED, Part, Plan, Record, Some, crossed, run_page, stream
from runs import averaged, grouped, number, share, table, where
from study.families import make_set
from study.sets import MADE, load, truth_of

Floats = np.ndarray
ITEMS, LEVEL = 1_500, 0.9
LOOKS = (10, 20, 50, 100, 200)
BATCHES = (10,) * 5 + (25,) * 6
"""How many items are labeled at a time, up to the last look."""
METRICS = ("accuracy", "ece", "roc_auc", "average_precision")
SETS = ("CivilComments", "Adult", "CIFAR-10", "NELL animal", "NELL city", "classification-9000",
        "shapes-9001", "hastie-9002", "tumours-9003")  # fmt: skip
RUNS = 5
EVEN = ("random", "stratified")
OTHERS = ("active testing", "uncertainty")
QUESTIONS: Mapping[str, Mapping[str, Any]] = {
    **{metric: {"metric": metric} for metric in METRICS},
    "difference": {"metric": "accuracy"},
    "best": {"metric": "accuracy", "against": "best"},
}
"""What is asked, and what the informative order is told of it."""
_ASKED = [(way, "") for way in (*EVEN, *OTHERS)] + [("informative", q) for q in QUESTIONS]
"""The informative order is taken once for each question."""


class Labeled(NamedTuple):
    """Items in the order of labeling, and how each was drawn."""

    rows: list[int]
    probability: list[float]
    left: list[int]

    def add(self, *more: list[Any]) -> None:
        """Label more items."""
        for own, new in zip(self, more, strict=True):
            own.extend(new)

    def shown(self, items: fl.Predictions, weighted: bool) -> fl.Predictions:
        """The items with these labels, which may have their LURE weights."""
        known = items.revealing(np.array(self.rows, dtype=np.int64))
        if not (weighted and self.rows):
            return known
        weights = np.ones(items.n_items)
        weights[self.rows] = lure_weights(np.array(self.probability), np.array(self.left))
        return known.with_label_weight(weights)


def _items(data: Path, name: str, run: int) -> fl.Predictions:
    """The items of a run, with all labels; of several classes the first against the rest."""
    made = make_set(*MADE[name], population=4_000) if name in MADE else load(name, data)
    predictions = made.predictions
    rows = stream("labeling", name, run).permutation(predictions.n_items)[:ITEMS]
    return predictions.take(rows)


def _further(
    shown: fl.Predictions, way: str, size: int, seed: int, done: Labeled, asked: Mapping[str, Any]
) -> None:
    """Label so many more items, in one of the ways."""
    if way in (*EVEN, "informative"):
        found = next_items(
            shown, order=way, size=size, random_state=seed, before=len(done.rows), **asked
        )
        done.add(found.items.tolist(), found.probability.tolist(), found.left.tolist())
        return
    p = pooled(shown)
    if way == "uncertainty":
        two = np.sort(p, axis=1)[:, -2:]
        done.add(_least(shown, two[:, 1] - two[:, 0], size), [np.nan] * size, [0] * size)
        return
    # Active testing (Kossen et al. 2021): by the expected loss of the pool, averaged over all.
    wrong = 1 - np.take_along_axis(p, shown.hard, axis=1).mean(axis=1)
    loss = np.where(~shown.labeled, 0.9 * wrong + 0.1 * wrong.mean(), 0.0)
    rng = np.random.default_rng([seed, len(done.rows)])
    for _ in range(size):
        chance = loss / loss.sum()
        row = int(rng.choice(len(loss), p=chance))
        done.add([row], [float(chance[row])], [int((loss > 0).sum())])
        loss[row] = 0.0


def _least(shown: fl.Predictions, margin: Floats, size: int) -> list[int]:
    """Unlabeled items of the least margin."""
    return np.argsort(np.where(shown.labeled, np.inf, margin), kind="stable")[:size].tolist()


def question_run(data: Path, name: str, run: int, way: str, question: str) -> list[Record]:
    """Errors, widths and coverage at each look, by `auto` and by the labels alone."""
    items = _items(data, name, run)
    truth, done = truth_of(items, METRICS), Labeled([], [], [])
    asked = dict(QUESTIONS.get(question, {}))
    if question == "difference":
        asked |= {"model": items.models[0], "against": items.models[1]}
    records, weighted = [], way != "uncertainty"
    seed = int(stream("labeling", name, run, "seed").integers(2**31))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for size in BATCHES:
            _further(done.shown(items, weighted), way, size, seed, done, asked)
            if len(done.rows) in LOOKS:
                shown = done.shown(items, weighted)
                for method in ("auto", "labeled"):
                    found = _answers(shown, method, truth, [question] if question else QUESTIONS)
                    base = {"name": name, "run": run, "way": way, "method": method}
                    records += [base | {"labels": len(done.rows)} | one for one in found]
        if weighted and question in ("", "accuracy"):
            records.append(_guard(items, done, way, name, run))
    return records


def _answers(
    shown: fl.Predictions, method: str, truth: Floats, questions: Any
) -> list[dict[str, Any]]:
    """Error, width and coverage of the answer to each question."""
    metrics = [m for m in METRICS if m in questions] or ["accuracy"]
    found = fl.estimate(shown, method, metrics, confidence_level=LEVEL, estimand="sample")
    out = []
    for question in questions:
        metric = question if question in METRICS else "accuracy"
        rows = [r for r in found.rows if r.metric == metric]
        value, low, high = np.array([[r.value, r.low, r.high] for r in rows]).T
        aim = truth[:, METRICS.index(metric)]
        if question == "best":
            regret = float(aim.max() - aim[np.nanargmax(value)])
            out.append({"error": regret, "width": np.nan, "held": np.nan})
            continue
        if question == "difference":
            gap = found.difference(*found.models[:2], "accuracy")
            (value, low, high), aim = np.array(gap)[:, None], aim[:1] - aim[1:2]
        held = (low <= aim + 1e-12) & (aim <= high + 1e-12)
        out.append({"error": float(np.nanmean(np.abs(value - aim))),
                    "width": float(np.nanmean(high - low)),
                    "held": float(held.mean())})  # fmt: skip
    return [{"question": question} | one for question, one in zip(questions, out, strict=True)]


def _guard(items: fl.Predictions, done: Labeled, way: str, name: str, run: int) -> Record:
    """Whether the interval that may be looked at misses at any look, and its width at the end."""
    shown = done.shown(items, weighted=False)
    (accuracy,) = fl.metrics.resolve(["accuracy"]).values()
    least = {"informative": STRATIFIED, "active testing": 0.05}.get(way, 1.0)
    ends = anytime(shown, accuracy, np.array(done.rows), np.array(done.probability),
                   np.array(done.left), level=LEVEL, least=least)  # fmt: skip
    truth = truth_of(items, METRICS)[:, 0]
    missed = [bool(((low > t) | (high < t)).any())
              for (low, high), t in zip(ends.values(), truth, strict=True)]  # fmt: skip
    return {"name": name, "run": run, "way": way, "method": "guard", "labels": len(done.rows),
            "question": "guard", "error": float(np.mean(missed)),
            "width": float(np.mean([high[-1] - low[-1] for low, high in ends.values()])),
            "held": float(1 - np.mean(missed))}  # fmt: skip


def question_blocks(records: pd.DataFrame, plan: Plan) -> dict[str, str]:
    """Errors beside random's, by question and labels; coverage; the guard; by set."""
    by = dict([*records.groupby("method")])
    return {
        "errors": _errors(by["auto"]), "labels-alone": _errors(by["labeled"]),
        "coverage": _coverage(records[records["method"] != "guard"]),
        "guard": _guards(by["guard"]), "sets": _by_set(by["auto"]),
    }  # fmt: skip


def _errors(answers: pd.DataFrame) -> str:
    def ratio(mean: pd.DataFrame, way: str) -> str:
        logs = np.log((mean[way] + 1e-6) / (mean["random"] + 1e-6)).dropna()
        error = f" ± {np.exp(logs.mean()) * logs.sem():.2f}" if len(logs) > 1 else ""
        return f"{np.exp(logs.mean()):.2f}{error}"

    rows, ways = [], (*EVEN[1:], "informative", *OTHERS)
    for question, labels in product(QUESTIONS, LOOKS):
        own = answers[(answers["question"] == question) & (answers["labels"] == labels)]
        random = own[own["way"] == "random"]["error"].mean()
        mean = own.groupby(["name", "way"])["error"].mean().unstack()
        rows.append([question, labels, number(random, 4), *(ratio(mean, w) for w in ways)])
    return table(["question", "labels", "error of random", *ways], rows)


def _coverage(answers: pd.DataFrame) -> str:
    def least(own: pd.DataFrame) -> str:
        return f"{own.groupby(['question', 'labels'])['held'].mean().min():.0%}"

    columns = {"coverage": share("held"), "least of question and labels": least,
               "width": averaged("width")}  # fmt: skip
    order = pd.MultiIndex.from_product([("auto", "labeled"), (*EVEN, "informative", *OTHERS)])
    place = order.get_indexer(pd.MultiIndex.from_frame(answers[["method", "way"]]))
    known = answers.iloc[np.argsort(place, kind="stable")].dropna(subset="held")
    return grouped(known, ["method", "way"], columns, ["method", "order"])


def _guards(found: pd.DataFrame) -> str:
    def misses(own: pd.DataFrame) -> str:
        return f"{own['error'].mean():.1%} ± {100 * own['error'].sem():.1f}"

    columns = {"runs": len, "misses at some look": misses,
               f"width at {LOOKS[-1]} labels": averaged("width")}  # fmt: skip
    return grouped(found, ["way"], columns, ["order"])


def _by_set(answers: pd.DataFrame) -> str:
    def both(own: pd.DataFrame) -> str:
        ways = ("random", "informative")
        return " / ".join(where("way", way, averaged("error", 4))(own) for way in ways)

    columns = {
        f"{name}, {n} labels: random / informative": where("question", q, where("labels", n, both))
        for q, name in (("accuracy", "accuracy"), ("roc_auc", "AUC"))
        for n in (50, 100)
    }
    return grouped(answers, ["name"], columns, ["set"])


_LISTS = SPE_LISTS[::4]
_ORDERS = (*EVEN, "informative", "precision", "uncertainty")


def curve_run(data: Path, name: str, trial: int) -> list[Record]:
    """Area between curve and truth, the band, and the threshold for precision .8."""
    scores, records = draw(data, name, trial), []
    truth = scores.truth()
    for order in _ORDERS:
        rows: list[int] = []
        for size in BATCHES[:7]:
            shown = scores.show(np.array(rows, dtype=np.int64))
            rows += _curve_items(shown, order, size, trial, len(rows))
            if len(rows) in (20, 50, 100):
                found, curve = measure(scores.show(np.array(rows)), Way("auto"), truth, 0)
                near = np.abs(truth.y - 0.8) < 0.1
                gap = np.abs(curve.y - truth.y)[near].mean() if near.any() else np.nan
                records.append({"name": name, "order": order, "labels": len(rows), **found,
                                "near": float(gap)})  # fmt: skip
    return records


def _curve_items(shown: fl.Predictions, order: str, size: int, seed: int, before: int) -> list[int]:
    how = {"size": size, "before": before, "random_state": seed}
    if order in EVEN:
        return next_items(shown, order=order, **how).items.tolist()
    if order == "uncertainty":
        p = fl.estimate(shown, metrics="accuracy").posterior.marginals()[:, 1]
        return _least(shown, np.abs(p - 0.5), size)
    precision = 0.8 if order == "precision" else None
    return fl.label_next(shown, min_precision=precision, **how).items.tolist()


def curve_blocks(records: pd.DataFrame, plan: Plan) -> str:
    """Errors and bands by order and labels."""
    lists = records.groupby(["labels", "order", "name"])["area"].mean()

    def beside(own: pd.DataFrame) -> str:
        labels, order = own[["labels", "order"]].iloc[0]
        logs = np.log(lists[labels, order] / lists[labels, "random"])
        return f"{np.exp(logs.mean()):.2f}"

    columns = {
        "area": averaged("area", 4), "beside random": beside,
        "near precision .8": averaged("near", 4), "width": averaged("width"),
        "coverage": share("covered"),
    }  # fmt: skip
    order = records["order"].map(_ORDERS.index)
    records = records.iloc[np.lexsort((order, records["labels"]))]
    return grouped(records, ["labels", "order"], columns)


_STOPS = 400


def stopping_run(data: Path, share: float) -> list[Record]:
    """Rules of other tools beside the interval that may be looked at, from 10 to 200 labels."""
    rng, records = stream("labeling", "stopping", int(100 * share)), []
    n, z = 2_000, float(ndtri(0.95))
    count = np.arange(1, 201)
    for run in range(_STOPS):
        right = (rng.random(n) < share).astype(float)
        values, mean = right[rng.permutation(n)[:200]], right.mean()
        ones = np.cumsum(values)
        half = z * np.sqrt(ones * (count - ones) / count + z**2 / 4) / (count + z**2)
        centre = (ones + z**2 / 2) / (count + z**2)
        left = n - np.arange(200)
        low, high = confidence_sequence(
            DrawnValues(values, np.full(200, share), left / n * share, 1 / left, left, n, 1.0),
            LEVEL,
        )

        sure = (low > 0.9) | (high < 0.9)
        rules = {  # where one would stop, and what would be wrong there
            "Wilson after every label, width at most .15":
                (2 * half <= 0.15, (centre - half > mean) | (centre + half < mean)),
            "ours, width at most .15": (high - low <= 0.15, (low > mean) | (high < mean)),
            "agreement above .9 on 50": (count == 50, (ones / count > 0.9) != (mean > 0.9)),
            "ours, above or below .9": (sure, sure & ((low > 0.9) != (mean > 0.9))),
        }  # fmt: skip
        for rule, (met, wrong) in rules.items():
            # The first look from the tenth label on at which a rule is met, or the last.
            at = 9 + int(met[9:].argmax()) if met[9:].any() else 199
            ever = wrong[9:].any() if "width" in rule else wrong[at]
            records.append({"rule": rule, "share": share, "run": run, "labels": at + 1,
                            "missed": bool(wrong[at]), "ever": bool(ever)})  # fmt: skip
    return records


def stopping_blocks(records: pd.DataFrame, plan: Plan) -> str:
    """How often each rule is wrong where it stops, and at any look, and when it stops."""
    columns = {"wrong where it stops": share("missed", 1), "wrong at some look": share("ever", 1),
               "labels": averaged("labels", "{:.0f}".format)}  # fmt: skip
    texts = records.assign(accuracy=records["share"].map("{:.2f}".format))
    return grouped(texts, ["rule", "accuracy"], columns, ["rule", "true accuracy"])


PARTS = {
    "questions": Part(
        lambda plan: [
            {"name": name, "run": run, "way": way, "question": question}
            for run in plan.some(range(RUNS)) for name in plan.some(SETS, -1)
            for way, question in _ASKED
        ],
        question_run, question_blocks,
        f"{len(SETS)} sets x {RUNS} runs of {ITEMS:,} items, {LEVEL:.0%} intervals of these items, "
        f"seed {SEED}; ratios are geometric means over sets of error / random's, ± over sets",
    ),
    "curves": Part(
        crossed(trial=Some(range(RUNS)), name=Some(_LISTS, -1)), curve_run, curve_blocks,
        f"{len(_LISTS)} score lists x {RUNS} trials, `monotone-curves`, {LEVEL:.0%} bands, "
        f"seed {SEED}",
    ),
    "stopping": Part(
        crossed(share=(0.6, 0.75, 0.9, 0.97)), stopping_run, stopping_blocks,
        f"{_STOPS} simulated classifiers of each accuracy, 2,000 items, seed {SEED}",
    ),
}  # fmt: skip


if __name__ == "__main__":
    run_page(__doc__, "labeling", PARTS, {"questions", "curves"})
