"""A search over classifiers by few labels: `fl.scorer` beside scikit-learn's own score.

    python -m benchmarks scorer_search [--runs 20] [--workers 2] [--page-only]

Each run draws 40 labeled items, 600 unlabeled ones, and trains every candidate. `GridSearchCV` in
five parts chooses one by the accuracy of the held-out labels, and one by `fl.scorer` from these
labels and the unlabeled items. Regret is the accuracy of the best candidate minus that of the
chosen one, each trained on all 40 labels and judged by items that no search saw. Candidates come in
an order drawn anew, as the first one wins a tie. Items are simulated (`make_classification`, 20
features, 5% of the classes exchanged), or the digits that scikit-learn brings, odd or even.
Candidates are settings of one kind (logistic regression, seven penalties) or six kinds. Results are
kept in benchmarks/scorer_search.jsonl, a run a line; the table is in docs/tools.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import product
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import fewlabels as fl
from runs import ROOT, grouped, plus_minus, run_kept

RESULTS, PAGE = ROOT / "benchmarks" / "scorer_search.jsonl", ROOT / "docs" / "tools.md"
LABELED, UNLABELED, FOLDS, SEED = 40, 600, 5, 11
ITEMS = {"simulated": "simulated", "digits": "digits, odd or even"}
CANDIDATES = {"penalties": "seven penalties", "kinds": "six kinds"}


def items(name: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Features and classes, in an order drawn anew."""
    seed = int(rng.integers(2**31))
    if name == "digits":
        X, digit = load_digits(return_X_y=True)
        y = digit % 2
    else:
        X, y = make_classification(
            4_000, 20, n_informative=6, n_redundant=4, flip_y=0.05, class_sep=0.8, random_state=seed
        )
    order = rng.permutation(len(y))
    return X[order], y[order]


def candidates(name: str) -> list[Any]:
    """Classifiers that a search chooses from."""
    if name == "penalties":
        return [LogisticRegression(C=10.0**k, max_iter=2_000) for k in range(-4, 3)]
    return [
        LogisticRegression(max_iter=2_000), GaussianNB(var_smoothing=1e-3),
        KNeighborsClassifier(3), KNeighborsClassifier(11), DecisionTreeClassifier(random_state=0),
        RandomForestClassifier(50, random_state=0),
    ]  # fmt: skip


def run_cell(cell: dict[str, Any]) -> dict[str, Any]:
    """Accuracy of every candidate, and the places of those that were chosen."""
    name, kind, run = cell.values()
    rng = np.random.default_rng([SEED, crc32(name.encode()), crc32(kind.encode()), run])
    X, y = items(name, rng)
    few, rest = slice(0, LABELED), slice(LABELED + UNLABELED, None)
    unlabeled = X[LABELED : LABELED + UNLABELED]
    ways = [Pipeline([("scale", StandardScaler()), ("model", m)]) for m in candidates(kind)]
    ways = [ways[k] for k in rng.permutation(len(ways))]
    accuracy = [float(clone(w).fit(X[few], y[few]).score(X[rest], y[rest])) for w in ways]
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=run)
    start = Pipeline([("way", ways[0])])
    chosen = {
        way: int(
            GridSearchCV(start, {"way": ways}, scoring=scoring, cv=folds, refit=False)
            .fit(X[few], y[few])
            .best_index_
        )
        for way, scoring in (
            ("plain", "accuracy"),
            ("scorer", fl.scorer("accuracy", unlabeled=unlabeled, random_state=run)),
        )
    }
    return {"accuracy": accuracy, **chosen}


def cells(given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Every run of every set and kind of candidates."""
    for name, kind, run in product(ITEMS, CANDIDATES, range(given.runs)):
        yield {"items": name, "candidates": kind, "run": run}


def blocks(lines: list[dict[str, Any]]) -> dict[str, str]:
    """The table of the page."""
    rows = [
        {
            "items": ITEMS[line["items"]],
            "candidates": CANDIDATES[line["candidates"]],
            **{way: 100 * (max(line["accuracy"]) - line["accuracy"][line[way]])
               for way in ("plain", "scorer")},
            "any": 100 * (max(line["accuracy"]) - float(np.mean(line["accuracy"]))),
        }
        for line in lines
    ]  # fmt: skip
    table = pd.DataFrame(rows)
    ahead = table["plain"] - table["scorer"]
    table = table.assign(ahead=ahead, better=ahead > 0, worse=ahead < 0)

    def column(name: str) -> Any:
        return lambda own: plus_minus(own[name], 1)

    head = {
        "one at random": column("any"),
        "accuracy of held-out labels": column("plain"),
        "`fl.scorer`": column("scorer"),
        "difference": column("ahead"),
        "better / same / worse": lambda own: (
            f"{own.better.sum()} / {(own.ahead == 0).sum()} / {own.worse.sum()}"
        ),
    }
    runs = table.groupby(["items", "candidates"]).size().max()
    return {
        "search": f"{grouped(table, ('items', 'candidates'), head)}\n\n"
        f"`python -m benchmarks scorer_search`: {runs} runs a row, seed {SEED}; mean regret in "
        f"points of accuracy ± its standard error over runs; fewlabels {fl.__version__}."
    }


if __name__ == "__main__":
    run_kept(__doc__, RESULTS, run_cell, cells, blocks, PAGE, "runs", runs=20)
