"""What somebody would use instead of fewlabels, on the same items and labels.

    python -m benchmarks instead_of [--runs 60] [--workers 2] [--page-only]

Two sets of items. *Simulated*: 1,000 items of two classes, and five classifiers of which the first
is three times too sure, the second half as sure as it should be, and the third favours one class
(that of `compare_power`); the truth is by 200,000 other items. *Digits*: the digits of
scikit-learn, ten classes, and four classifiers trained on 150 of them; the items are the other
1,647, and a run draws 1,000 of them; the truth is of all 1,647. Digits are among what the weights
of fewlabels were learned from: here it has the weights that were learned without them.

Accuracy: 20 or 100 of the items have labels. Estimates and 90% intervals of every classifier's
accuracy, by fewlabels, by the labels alone, and by other packages as `peers` asks them.

Wrong labels: each item has a label, of which 10% at random are of another class, and 100 are
checked. cleanlab gets the given labels and the mean of the classifiers' probabilities; fewlabels
gets the classifiers, the given labels as one more of them, and the 100 checked ones. Both say how
many of the given labels are wrong, and how likely each is. cleanlab comes with
`pip install --group labelnoise`; where it is not installed its cells are left for another run.

Results are kept in benchmarks/instead_of.jsonl, a run a line; the page is docs/instead-of.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from itertools import product
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import compare_power
import fewlabels as fl
from runs import ROOT, averaged, grouped, plus_minus, read_lines, run_kept, share
from study.trial import method_for

RESULTS, PAGE = ROOT / "benchmarks" / "instead_of.jsonl", ROOT / "docs" / "instead-of.md"
SETS = {"simulated": "simulated", "digits": "digits"}
LEFT_OUT = {"simulated": "", "digits": "digits"}
"""Families of sets without which the weights of fewlabels are learned."""
SIZES, N, CHECKED, WRONG, LEVEL, SEED = (20, 100), 1_000, 100, 0.1, 0.9, 23
WAYS = {
    "auto": "fewlabels",
    "Wilson, labels alone": "labels only, Wilson's interval",
    "scikit-learn bootstrap, labels alone": "bootstrap of the labels",
    "ppi-python, own confidence": "ppi-python, the classifier's own confidence",
    "ppi-python, mean of all": "ppi-python, the mean of all",
    "truescore PPI++, mean of all": "truescore, the mean of all",
    "CBPE's idea, isotonic": "confidence calibrated on the labels",
}
"""Ways to estimate accuracy, and what the page calls them."""


class Items(NamedTuple):
    """Items with P(class) by each classifier (n, M, K), and each classifier's true accuracy."""

    probabilities: np.ndarray
    truth: np.ndarray
    accuracy: np.ndarray


def draw(name: str, rng: np.random.Generator) -> Items:
    """The items of a run."""
    if name == "digits":
        p, truth, accuracy = _digits()
        chosen = rng.permutation(len(truth))[:N]
        return Items(p[chosen], truth[chosen], accuracy)
    p, truth = _simulated(N, rng)
    return Items(p, truth, _accuracy_of_population())


def _simulated(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    sample = compare_power.draw("shifted", 3, n, rng)
    p = np.stack([*sample.probabilities.values()], axis=1)
    return np.stack([1 - p, p], axis=2), sample.truth


@cache
def _accuracy_of_population() -> np.ndarray:
    p, truth = _simulated(200_000, np.random.default_rng(SEED))
    return (p.argmax(axis=2) == truth[:, None]).mean(axis=0)


@cache
def _digits() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(SEED).permutation(len(y))
    train, rest = order[:150], order[150:]
    classifiers = (
        LogisticRegression(C=0.01, max_iter=500), GaussianNB(var_smoothing=1e-2),
        KNeighborsClassifier(7), DecisionTreeClassifier(max_depth=8, random_state=0),
    )  # fmt: skip
    p = np.stack([m.fit(X[train], y[train]).predict_proba(X[rest]) for m in classifiers], axis=1)
    return p, y[rest], (p.argmax(axis=2) == y[rest, None]).mean(axis=0)


def run_cell(cell: dict[str, Any]) -> dict[str, Any]:
    """What every way says in one run."""
    rng = np.random.default_rng([SEED, crc32(cell["set"].encode()), cell["labels"], cell["run"]])
    items = draw(cell["set"], rng)
    ask = _accuracies if cell["asked"] == "accuracy" else _wrong_labels
    return ask(items, cell["labels"], cell["run"], rng, LEFT_OUT[cell["set"]])


def _ours(given: fl.Predictions, metric: str, run: int, family: str) -> fl.Estimates:
    """What fewlabels says by weights that were learned without a family of sets."""
    method = method_for("auto", family, given)
    return fl.estimate(
        given, method, metrics=metric, confidence_level=LEVEL, random_state=run, workers=1
    )


def _accuracies(
    items: Items, n_labeled: int, run: int, rng: np.random.Generator, family: str
) -> dict[str, Any]:
    """Value and ends of the interval of each classifier's accuracy, by every way."""
    import peers  # which needs the other packages

    labeled = np.arange(len(items.truth)) < n_labeled
    judged = list(peers._judged(items.probabilities, items.truth, labeled))
    said = {
        way: [peers._answer(peers.PEERS[way], one, rng) for one in judged]
        for way in WAYS if way != "auto"
    }  # fmt: skip
    given = fl.Predictions(items.probabilities, np.where(labeled, items.truth, -1))
    rows = _ours(given, "accuracy", run, family).rows
    said["auto"] = [(row.value, row.low, row.high) for row in rows]
    return {"truth": items.accuracy, "said": said}


def _wrong_labels(
    items: Items, checked: int, run: int, rng: np.random.Generator, family: str
) -> dict[str, Any]:
    """How many given labels are wrong, and how well wrong ones are put before right ones."""
    from cleanlab.count import num_label_issues
    from cleanlab.rank import get_label_quality_scores

    n, _, k = items.probabilities.shape
    wrong = rng.random(n) < WRONG
    given = np.where(wrong, (items.truth + rng.integers(1, k, n)) % k, items.truth)
    pooled = items.probabilities.mean(axis=1)
    is_checked = np.arange(n) < checked
    m = items.probabilities.shape[1]
    predictions = fl.Predictions(
        np.concatenate([np.full((n, 1, k), np.nan), items.probabilities], axis=1),
        np.where(is_checked, items.truth, -1),
        votes=np.concatenate([given[:, None], np.full((n, m), -1)], axis=1),
        models=["given", *(f"m{j}" for j in range(m))],
    )  # fmt: skip
    found = _ours(predictions, "error_rate", run, family)
    row = found.get("given", "error_rate")
    ours = (
        1 - found.posterior.of(predictions.models.index("given")).marginals()[np.arange(n), given]
    )
    theirs = 1 - get_label_quality_scores(given, pooled)
    rest = ~is_checked
    return {
        "wrong": wrong.mean(),
        "cleanlab": [num_label_issues(given, pooled) / n,
                     average_precision_score(wrong[rest], theirs[rest])],
        "fewlabels": [row.value, average_precision_score(wrong[rest], ours[rest]),
                      row.low, row.high],
        "checked": [wrong[is_checked].mean()],
    }  # fmt: skip


def cells(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Every run; those of cleanlab where it is installed, or was when they ran."""
    runs = range(options.runs)
    for name, size, run in product(SETS, SIZES, runs):
        yield {"asked": "accuracy", "set": name, "labels": size, "run": run}
    kept = {(line["set"], line["run"]) for line in read_lines(RESULTS) if line["asked"] == "wrong"}
    for name, run in product(SETS, runs):
        if (name, run) in kept or find_spec("cleanlab"):
            yield {"asked": "wrong", "set": name, "labels": CHECKED, "run": run}


def blocks(lines: list[dict[str, Any]]) -> dict[str, str]:
    """The tables of the page."""
    found = {
        "accuracy": _accuracy_table([line for line in lines if line["asked"] == "accuracy"]),
        "wrong labels": _wrong_table([line for line in lines if line["asked"] == "wrong"]),
    }
    runs = 1 + max(line["run"] for line in lines)
    made = (
        f"\n\n`python -m benchmarks instead_of`: {runs} runs a row, seed {SEED}; ± is the standard "
        f"error over runs; fewlabels {fl.__version__}."
    )
    return {name: text + made for name, text in found.items()}


def _accuracy_table(lines: list[dict[str, Any]]) -> str:
    rows = []
    for line, (way, title) in product(lines, WAYS.items()):
        truth = np.array(line["truth"])
        value, low, high = np.array(line["said"][way], dtype=float).T
        rows.append({
            "items": SETS[line["set"]], "labels": line["labels"], "way": title,
            "off": 100 * np.abs(value - truth).mean(), "width": 100 * (high - low).mean(),
            "holds": ((low <= truth) & (truth <= high)).mean(),
            "empty": (high - low < 1e-9).mean(),
        })  # fmt: skip
    return grouped(
        pd.DataFrame(rows), ("items", "labels", "way"),
        {"error": averaged("off", 1, "sem"),
         "coverage": lambda own: plus_minus(100 * own.holds, 0),
         "width": averaged("width", 1), "of width 0": share("empty")},
    )  # fmt: skip


def _wrong_table(lines: list[dict[str, Any]]) -> str:
    rows = []
    for line in lines:
        wrong, (ours, found, low, high) = line["wrong"], line["fewlabels"]
        ways = {
            "fewlabels, 100 checked labels": (ours, found, 100.0 * (low <= wrong <= high)),
            "cleanlab, no checked label": (*line["cleanlab"], np.nan),
            "the 100 checked labels only": (line["checked"][0], np.nan, np.nan),
        }
        for way, (value, ap, holds) in ways.items():
            off = 100 * (value - wrong)
            rows.append({
                "items": SETS[line["set"]], "way": way, "off": abs(off), "bias": off,
                "ap": ap, "holds": holds,
            })  # fmt: skip
    return grouped(
        pd.DataFrame(rows), ("items", "way"),
        {"share of wrong labels: error": averaged("off", 1, "sem"),
         "bias": averaged("bias", 1, "sem"),
         "coverage": lambda own: "-" if own.holds.isna().all() else plus_minus(own.holds, 0),
         "average precision of finding them": averaged("ap", 2, "sem")},
    )  # fmt: skip


if __name__ == "__main__":
    run_kept(__doc__, RESULTS, run_cell, cells, blocks, PAGE, "runs", runs=60)
