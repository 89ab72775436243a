"""Which items to label: errors, coverage and when to stop, by how the items are drawn.

    python benchmarks/labeling.py all | questions | curves | stopping
        [--data DIR] [--work DIR] [--workers N] [--fresh] [--quick]

A run draws 1,500 items of a set whose labels are all known, and labels them ten at a time, from 50
on 25 at a time. Cells are kept in the folder --work; another run goes on where one stopped. The
tables go between the marks of docs/benchmarks/labeling.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtri

import fewlabels as fl
from curves_data import SPE_LISTS, draw, sample_curve, stream
from curves_parts import ROOT, SEED, Arguments, Part, Plan, Record, number, run_page, table
from fewlabels.evaluation.anytime import DrawnValues, anytime, confidence_sequence, pooled
from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.lure import lure_weights
from fewlabels.metrics.registry import resolve
from fewlabels.questions.next_items import STRATIFIED, next_items
from study.sets import MADE, REAL, load

ITEMS, LEVEL = 1_500, 0.9
LOOKS = (10, 20, 50, 100, 200)
METRICS = ("accuracy", "ece", "roc_auc", "average_precision")
MADE_SETS = ("classification-9000", "shapes-9001", "hastie-9002", "tumours-9003")
SETS = ("CivilComments", "Adult", "CIFAR-10", "NELL animal", "NELL city", *MADE_SETS)
RUNS = 5
EVEN = ("random", "stratified")
OTHERS = ("active testing", "uncertainty")
QUESTIONS: Mapping[str, Mapping[str, Any]] = {
    **{metric: {"metric": metric} for metric in METRICS},
    "difference": {"metric": "accuracy"},
    "best": {"metric": "accuracy", "against": "best"},
}
"""What is asked, and what the informative order is told of it."""


class Labeled(NamedTuple):
    """Items in the order of labeling, and how each was drawn."""

    rows: list[int]
    probability: list[float]
    left: list[int]

    def weights(self, n: int) -> Floats:
        """LURE weights (n,) of the labels; 1 of other items."""
        out = np.ones(n)
        out[self.rows] = lure_weights(np.array(self.probability), np.array(self.left))
        return out


@lru_cache(maxsize=1)
def _whole(data: Path, name: str) -> fl.Predictions:
    return load(name, data).predictions


def _items(data: Path, name: str, run: int) -> fl.Predictions:
    """The items of a run, with all labels; of several classes the first against the rest."""
    if name in MADE:
        from study.families import make_set

        predictions = make_set(*MADE[name], population=4_000).predictions
    else:
        assert name in REAL
        predictions = _whole(data, name)
    rows = stream("labeling", name, run).permutation(predictions.n_items)[:ITEMS]
    return predictions.take(rows)


def _batches() -> list[int]:
    """How many items are labeled at a time, up to the last look."""
    out: list[int] = []
    while sum(out) < LOOKS[-1]:
        out.append(10 if sum(out) < 50 else 25)
    return out


def _further(
    shown: fl.Predictions, way: str, size: int, seed: int, done: Labeled, asked: Mapping[str, Any]
) -> None:
    """Label so many more items, in one of the ways."""
    if way in (*EVEN, "informative"):
        found = next_items(
            shown, order=way, size=size, random_state=seed, before=len(done.rows), **asked
        )
        done.rows.extend(found.items.tolist())
        done.probability.extend(found.probability.tolist())
        done.left.extend(found.left.tolist())
        return
    p = pooled(shown)
    open_ = ~shown.labeled
    if way == "uncertainty":
        two = np.sort(p, axis=1)[:, -2:]
        margin = np.where(open_, two[:, 1] - two[:, 0], np.inf)
        chosen = np.argsort(margin, kind="stable")[:size]
        done.rows.extend(chosen.tolist())
        done.probability.extend([np.nan] * size)
        done.left.extend([0] * size)
        return
    # Active testing (Kossen et al. 2021): by the expected loss of the pool, averaged over all.
    right = np.take_along_axis(p, shown.hard, axis=1).mean(axis=1)
    loss = np.where(open_, 0.9 * (1 - right) + 0.1 * (1 - right).mean(), 0.0)
    rng = np.random.default_rng([seed, len(done.rows)])
    for _ in range(size):
        chance = loss / loss.sum()
        row = int(rng.choice(len(loss), p=chance))
        done.left.append(int((loss > 0).sum()))
        done.probability.append(float(chance[row]))
        done.rows.append(row)
        loss[row] = 0.0


def _truth(items: fl.Predictions) -> Floats:
    """The metrics by all labels, (M, metrics)."""
    found = fl.estimate(items, "labeled", list(METRICS), confidence_level=None,
                        estimand="sample")  # fmt: skip
    return np.array([r.value for r in found.rows]).reshape(items.n_models, len(METRICS))


def question_cells(plan: Plan) -> list[Arguments]:
    """Every set, run and way; the informative order once for each question."""
    cells: list[Arguments] = []
    for run in plan.trials(RUNS):
        for name in plan.some(SETS, 1):
            ways = [(way, "") for way in (*EVEN, *OTHERS)]
            ways += [("informative", question) for question in QUESTIONS]
            cells += [{"name": name, "run": run, "way": w, "question": q} for w, q in ways]
    return cells


def question_run(data: Path, name: str, run: int, way: str, question: str) -> list[Record]:
    """Errors, widths and coverage at each look, by `auto` and by the labels alone."""
    items = _items(data, name, run)
    truth, done = _truth(items), Labeled([], [], [])
    asked = dict(QUESTIONS.get(question, {}))
    if question == "difference":
        asked |= {"model": items.models[0], "against": items.models[1]}
    labels, records = np.full(items.n_items, -1), []
    seed = int(stream("labeling", name, run, "seed").integers(2**31))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for size in _batches():
            shown = items.with_labels(labels)
            if way != "uncertainty" and done.rows:
                shown = shown.with_label_weight(done.weights(items.n_items))
            _further(shown, way, size, seed, done, asked)
            labels[done.rows] = items.labels[done.rows]
            if len(done.rows) in LOOKS:
                shown = items.with_labels(labels)
                if way != "uncertainty":
                    shown = shown.with_label_weight(done.weights(items.n_items))
                for method in ("auto", "labeled"):
                    found = _answers(shown, method, truth, [question] if question else QUESTIONS)
                    base = {"name": name, "run": run, "way": way, "method": method}
                    records += [base | {"labels": len(done.rows)} | one for one in found]
        if way != "uncertainty" and question in ("", "accuracy"):
            records.append(_guard(items, done, way, name, run))
    return records


def _answers(
    shown: fl.Predictions, method: str, truth: Floats, questions: Any
) -> list[dict[str, Any]]:
    """Error, width and coverage of the answer to each question."""
    metrics = [m for m in METRICS if m in questions] or ["accuracy"]
    if {"difference", "best"} & set(questions) and "accuracy" not in metrics:
        metrics.append("accuracy")
    found = fl.estimate(shown, method, metrics, confidence_level=LEVEL,
                        estimand="sample")  # fmt: skip
    out, names = [], found.models
    for question in questions:
        if question in METRICS:
            rows = [r for r in found.rows if r.metric == question]
            value, low, high = np.array([[r.value, r.low, r.high] for r in rows]).T
            aim = truth[:, METRICS.index(question)]
        elif question == "difference":
            value, low, high = (
                np.array([v]) for v in found.difference(names[0], names[1], "accuracy")
            )
            aim = np.array([truth[0, 0] - truth[1, 0]])
        else:
            rows = [r for r in found.rows if r.metric == "accuracy"]
            best = int(np.nanargmax([r.value for r in rows]))
            regret = float(truth[:, 0].max() - truth[best, 0])
            out.append({"question": question, "error": regret, "width": np.nan, "held": np.nan})
            continue
        held = (low <= aim + 1e-12) & (aim <= high + 1e-12)
        out.append({
            "question": question, "error": float(np.nanmean(np.abs(value - aim))),
            "width": float(np.nanmean(high - low)), "held": float(held.mean()),
        })  # fmt: skip
    return out


def _guard(items: fl.Predictions, done: Labeled, way: str, name: str, run: int) -> Record:
    """Whether the interval that may be looked at misses at any look, and its width at the end."""
    shown = items.with_labels(np.where(np.isin(np.arange(items.n_items), done.rows),
                                       items.labels, -1))  # fmt: skip
    (accuracy,) = resolve(["accuracy"]).values()
    least = {"informative": STRATIFIED, "active testing": 0.05}.get(way, 1.0)
    ends = anytime(shown, accuracy, np.array(done.rows), np.array(done.probability),
                   np.array(done.left), level=LEVEL, least=least)  # fmt: skip
    truth = _truth(items)[:, 0]
    missed = [bool(((low > t) | (high < t)).any())
              for (low, high), t in zip(ends.values(), truth, strict=True)]  # fmt: skip
    width = float(np.mean([high[-1] - low[-1] for low, high in ends.values()]))
    return {"name": name, "run": run, "way": way, "method": "guard", "labels": len(done.rows),
            "question": "guard", "error": float(np.mean(missed)), "width": width,
            "held": float(1 - np.mean(missed))}  # fmt: skip


def question_blocks(records: pd.DataFrame, plan: Plan) -> dict[str, str]:
    """Errors beside random's, by question and labels; coverage; the guard; by set."""
    answers = records[records["method"] != "guard"]
    return {
        "errors": _errors(answers[answers["method"] == "auto"]),
        "labels-alone": _errors(answers[answers["method"] == "labeled"]),
        "coverage": _coverage(answers),
        "guard": _guards(records[records["method"] == "guard"]),
        "sets": _by_set(answers[answers["method"] == "auto"]),
    }


def _ratio(own: pd.DataFrame, way: str) -> str:
    """Geometric mean over sets of error / random's error, and its standard error over sets."""
    mean = own.groupby(["way", "name"])["error"].mean()
    if way not in mean.index.get_level_values(0):
        return ""
    logs = np.log((mean[way] + 1e-6) / (mean["random"].reindex(mean[way].index) + 1e-6))
    if len(logs) < 2:
        return f"{np.exp(logs.mean()):.2f}"
    error = np.exp(logs.mean()) * logs.std(ddof=1) / np.sqrt(len(logs))
    return f"{np.exp(logs.mean()):.2f} ± {error:.2f}"


def _errors(answers: pd.DataFrame) -> str:
    rows = []
    for question in QUESTIONS:
        for labels in LOOKS:
            own = answers[(answers["question"] == question) & (answers["labels"] == labels)]
            random = own[own["way"] == "random"]["error"].mean()
            ways = (*EVEN[1:], "informative", *OTHERS)
            rows.append([question, str(labels), number(random, 4), *(_ratio(own, w) for w in ways)])
    header = ["question", "labels", "error of random", *EVEN[1:], "informative", *OTHERS]
    return table(header, rows)


def _coverage(answers: pd.DataFrame) -> str:
    rows = []
    own = answers[answers["held"].notna()]
    for method in ("auto", "labeled"):
        for way in (*EVEN, "informative", *OTHERS):
            some = own[(own["way"] == way) & (own["method"] == method)]
            held = some.groupby(["question", "labels"])["held"].mean()
            rows.append([
                method, way, f"{some['held'].mean():.0%}", f"{held.min():.0%}",
                number(some["width"].mean(), 3),
            ])  # fmt: skip
    return table(["method", "order", "coverage", "least of question and labels", "width"], rows)


def _guards(found: pd.DataFrame) -> str:
    rows = []
    for way, own in found.groupby("way", sort=False):
        missed = own["error"]
        rows.append([way, str(len(own)), f"{missed.mean():.1%} ± {100 * missed.sem():.1f}",
                     number(own["width"].mean(), 3)])  # fmt: skip
    return table(["order", "runs", "misses at some look", f"width at {LOOKS[-1]} labels"], rows)


def _by_set(answers: pd.DataFrame) -> str:
    rows = []
    for name in dict.fromkeys(answers["name"]):
        row = [name]
        for question in ("accuracy", "roc_auc"):
            for labels in (50, 100):
                own = answers[(answers["name"] == name) & (answers["question"] == question)
                              & (answers["labels"] == labels)]  # fmt: skip
                mean = own.groupby("way")["error"].mean()
                row.append(f"{number(mean['random'], 4)} / {number(mean['informative'], 4)}")
        rows.append(row)
    header = ["set", *(f"{q}, {n} labels: random / informative" for q in ("accuracy", "AUC")
                       for n in (50, 100))]  # fmt: skip
    return table(header, rows)


# --- curves and thresholds ------------------------------------------------------------------------

_LISTS = SPE_LISTS[::4]
_ORDERS = (*EVEN, "informative", "precision", "uncertainty")


def curve_cells(plan: Plan) -> list[Arguments]:
    """Every list and trial."""
    names = plan.some(_LISTS, 1)
    return [{"name": name, "trial": t} for t in plan.trials(RUNS) for name in names]


def curve_run(data: Path, name: str, trial: int) -> list[Record]:
    """Area between curve and truth, the band, and the threshold for precision .8."""
    scores, records = draw(data, name, trial), []
    truth = scores.truth()
    for order in _ORDERS:
        rows: list[int] = []
        for size in (10, 10, 10, 10, 10, 25, 25):
            shown = scores.show(np.array(rows, dtype=np.int64))
            rows += _curve_items(shown, order, size, trial, len(rows))
            if len(rows) in (20, 50, 100):
                records.append({"name": name, "order": order, "labels": len(rows),
                                **_curve_found(scores.show(np.array(rows)), truth)})  # fmt: skip
    return records


def _curve_items(shown: fl.Predictions, order: str, size: int, seed: int, before: int) -> list[int]:
    if order in EVEN:
        found = next_items(shown, order=order, size=size, random_state=seed, before=before)
        return found.items.tolist()
    if order == "uncertainty":
        posterior = fl.estimate(shown, metrics="accuracy").posterior.marginals()
        margin = np.where(shown.labeled, np.inf, np.abs(posterior[:, 1] - 0.5))
        return np.argsort(margin, kind="stable")[:size].tolist()
    precision = 0.8 if order == "precision" else None
    found = fl.label_next(shown, size=size, before=before, min_precision=precision,
                          random_state=seed)  # fmt: skip
    return found.items.tolist()


def _curve_found(shown: fl.Predictions, truth: fl.Curve) -> dict[str, float]:
    curve = sample_curve(shown, workers=1)
    gap = np.abs(curve.y - truth.y)
    near = np.abs(truth.y - 0.8) < 0.1
    return {
        "area": float(gap.mean()), "width": float((curve.high - curve.low).mean()),
        "held": float(((curve.low <= truth.y + 1e-9) & (truth.y <= curve.high + 1e-9)).mean()),
        "near": float(gap[near].mean()) if near.any() else np.nan,
    }  # fmt: skip


def curve_blocks(records: pd.DataFrame, plan: Plan) -> dict[str, str]:
    """Errors and bands by order and labels."""
    rows = []
    for labels in (20, 50, 100):
        for order in _ORDERS:
            own = records[(records["labels"] == labels) & (records["order"] == order)]
            random = records[(records["labels"] == labels) & (records["order"] == "random")]
            lists = own.groupby("name")["area"].mean() / random.groupby("name")["area"].mean()
            logs = np.log(lists)
            rows.append([
                str(labels), order, number(own["area"].mean(), 4), f"{np.exp(logs.mean()):.2f}",
                number(own["near"].mean(), 4), number(own["width"].mean(), 3),
                f"{own['held'].mean():.0%}",
            ])  # fmt: skip
    header = ["labels", "order", "area", "beside random", "near precision .8", "width", "coverage"]
    return {"curves": table(header, rows)}


# --- when to stop ---------------------------------------------------------------------------------

_STOPS = 400


def stopping_cells(plan: Plan) -> list[Arguments]:
    """Accuracies of one classifier."""
    return [{"share": share} for share in (0.6, 0.75, 0.9, 0.97)]


def stopping_run(data: Path, share: float) -> list[Record]:
    """Rules of other tools beside the interval that may be looked at, from 10 to 200 labels."""
    rng, records = stream("labeling", "stopping", int(100 * share)), []
    n, z = 2_000, float(ndtri(0.95))
    for run in range(_STOPS):
        right = (rng.random(n) < share).astype(float)
        rows, mean = rng.permutation(n)[:200], right.mean()
        values, count = right[rows], np.arange(1, 201)
        ones = np.cumsum(values)
        half = z * np.sqrt(ones * (count - ones) / count + z**2 / 4) / (count + z**2)
        centre = (ones + z**2 / 2) / (count + z**2)
        left = n - np.arange(200)
        proxy = np.full(200, share)
        low, high = confidence_sequence(
            DrawnValues(values, proxy, left / n * share, 1 / left, left, n, 1.0), LEVEL
        )
        rules: dict[str, tuple[Ints, Floats, Floats]] = {
            "Wilson after every label, width at most .15": (2 * half <= 0.15, centre - half,
                                                            centre + half),
            "ours, width at most .15": (high - low <= 0.15, low, high),
        }  # fmt: skip
        for name, (met, below, above) in rules.items():
            stops = np.flatnonzero(met[9:])
            at = int(stops[0]) + 9 if len(stops) else 199
            records.append({
                "rule": name, "share": share, "run": run, "labels": at + 1,
                "missed": bool(below[at] > mean or above[at] < mean),
                "ever": bool(((below > mean) | (above < mean))[9:].any()),
            })  # fmt: skip
        over = ones[49] / 50 > 0.9
        records.append({"rule": "agreement above .9 on 50", "share": share, "run": run,
                        "labels": 50, "missed": bool(over != (mean > 0.9)),
                        "ever": bool(over != (mean > 0.9))})  # fmt: skip
        sure = np.flatnonzero((low[9:] > 0.9) | (high[9:] < 0.9))
        at = int(sure[0]) + 9 if len(sure) else 199
        wrong = bool(len(sure)) and bool((low[at] > 0.9) != (mean > 0.9))
        records.append({"rule": "ours, above or below .9", "share": share, "run": run,
                        "labels": at + 1, "missed": wrong, "ever": wrong})  # fmt: skip
    return records


def stopping_blocks(records: pd.DataFrame, plan: Plan) -> dict[str, str]:
    """How often each rule is wrong where it stops, and at any look, and when it stops."""
    rows = []
    for (rule, share), own in records.groupby(["rule", "share"], sort=False):
        rows.append([rule, f"{share:.2f}", f"{own['missed'].mean():.1%}",
                     f"{own['ever'].mean():.1%}", f"{own['labels'].mean():.0f}"])  # fmt: skip
    return {"stopping": table(
        ["rule", "true accuracy", "wrong where it stops", "wrong at some look", "labels"], rows
    )}  # fmt: skip


PARTS = {
    "questions": Part(
        question_cells, question_run, question_blocks,
        f"{len(SETS)} sets x {RUNS} runs of {ITEMS:,} items, {LEVEL:.0%} intervals of these items, "
        f"seed {SEED}; ratios are geometric means over sets of error / random's, ± over sets",
    ),
    "curves": Part(
        curve_cells, curve_run, curve_blocks,
        f"{len(_LISTS)} score lists x {RUNS} trials, `monotone-curves`, {LEVEL:.0%} bands, "
        f"seed {SEED}",
    ),
    "stopping": Part(
        stopping_cells, stopping_run, stopping_blocks,
        f"{_STOPS} simulated classifiers of each accuracy, 2,000 items, seed {SEED}",
    ),
}  # fmt: skip


if __name__ == "__main__":
    page = ROOT / "docs" / "benchmarks" / "labeling.md"
    run_page(__doc__ or "", "labeling", PARTS, page, {"questions", "curves"})
