"""Errors on CivilComments, beside the figures that the methods' reference states.

Two experiments over seven classifiers, n_l = 20, 50, 100 labels and 1000 unlabeled items:

- "golden": the 50 splits of the released SSME code;
- "fresh": 60 splits drawn anew by its sampler, with 90% intervals.

The truth of a run is the metric on the half of the data that its items were not drawn from.
Every figure is a mean over runs of the mean absolute error over the classifiers, in percentage
points, with the standard deviation over runs.

    python benchmarks/civilcomments.py --data DIR --out docs/civilcomments.md
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow.parquet

import fewlabels as fl
from bench.splits import draw, halve
from curves_parts import ROOT
from fewlabels.models import SSMEKDE
from runs import across, markdown
from runs import parser as command_line
from score_lists import spread

MODELS = ("CORAL", "ERM", "ERM_seed1", "ERM_seed2", "IRM", "IRM_seed1", "IRM_seed2")
METRICS = {
    "accuracy": "accuracy",
    "ECE": "ece_quantile",
    "AUC": "roc_auc",
    "AP": "average_precision",
}
N_UNLABELED = 1000
SEED = 20_000


class Method(NamedTuple):
    """A row of the tables: what runs, and whether its metrics are of drawn or expected labels."""

    model: Any
    estimand: str


METHODS = {
    "Labeled": Method("labeled", "population"),
    "SSME-KDE, released code": Method(SSMEKDE(compat="official"), "sample"),
    "SSME-KDE, paper": Method(SSMEKDE(), "population"),
    "SSME-KDE, released bandwidth, leave-one-out": Method(
        SSMEKDE(bandwidth="official", leave_one_out=True), "population"
    ),
    "SSME-KDE, paper, leave-one-out": Method(SSMEKDE(leave_one_out=True), "population"),
    "Ensemble posterior, drawn": Method("ensemble", "sample"),
    "Ensemble posterior, expected": Method("ensemble", "population"),
    "Tempered ensemble": Method("tempered-ensemble", "population"),
    "All labels known": Method("labeled", "population"),
}

# What the reference states: (experiment, n_l, method, metric) -> mean and, where given, sd.
_TABLE_3 = {
    "accuracy": {
        20: "5.64 2.73 2.34 .52 2.28 .41 .83",
        50: "3.49 1.58 2.22 .47 2.22 .29 .75",
        100: "2.51 1.12 2.14 .54 2.09 .43 .75",
    },
    "ECE": {
        20: "5.39 - 2.35 - 2.30 - .83",
        50: "3.28 - 2.26 - 2.21 - .72",
        100: "2.39 - 2.19 - 2.13 - .77",
    },
    "AUC": {
        20: "6.96 - 3.34 - 3.31 - 1.21",
        50: "4.97 - 3.15 - 3.18 - 1.12",
        100: "3.71 - 3.09 - 3.10 - 1.16",
    },
    "AP": {
        20: "21.53 - 10.88 - 10.29 - 3.88",
        50: "13.89 - 9.90 - 9.83 - 3.27",
        100: "10.07 - 9.90 - 9.58 - 3.73",
    },
}
_TABLE_5 = {
    "Tempered ensemble": {
        20: "1.99 2.46 9.77 2.02",
        50: "1.83 2.21 8.71 1.87",
        100: "1.53 2.09 7.58 1.61",
    },
    "SSME-KDE, released code": {
        20: "2.31 3.29 9.64 2.28",
        50: "2.24 3.22 9.33 2.18",
        100: "2.08 3.03 8.62 2.07",
    },
}


@dataclass(frozen=True)
class Cell:
    """One run."""

    experiment: str
    n_labeled: int
    run: int
    data: Path


@cache
def _load(data: Path) -> tuple[np.ndarray, np.ndarray]:
    columns = [f"p__{m}__1" for m in MODELS]
    table = pyarrow.parquet.read_table(
        data / "ssme_civilcomments" / "data.parquet", columns=["label", *columns]
    )
    scores = np.stack([table[c].to_numpy().astype(float) for c in columns], axis=1)
    return scores, table["label"].to_numpy().astype(int)


def _split(cell: Cell, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labeled rows, unlabeled rows and rows of the truth."""
    seed = 0 if cell.experiment == "golden" else SEED
    half, truth = halve(len(labels), cell.run, seed)
    rows, labeled = draw(
        "released", labels, half, cell.n_labeled, N_UNLABELED, 2,
        run=cell.run, seed=seed, dataset="civilcomments",
    )  # fmt: skip
    return rows[labeled], rows[~labeled], truth


def run_cell(cell: Cell) -> list[dict[str, Any]]:
    """Estimates of every method on one split."""
    scores, labels = _load(cell.data)
    labeled, unlabeled, truth_rows = _split(cell, labels)
    everything = fl.Predictions(scores[truth_rows], labels[truth_rows], models=MODELS)
    truth = fl.estimate(
        everything, "labeled", list(METRICS.values()), confidence_level=None, workers=1
    )
    rows = np.append(labeled, unlabeled)
    known = np.append(labels[labeled], np.full(len(unlabeled), -1))
    records = []
    for name, method in METHODS.items():
        y = labels[rows] if name == "All labels known" else known
        intervals = cell.experiment == "fresh" and method.estimand == "population"
        level = 0.9 if intervals else None
        started = time.perf_counter()
        found = fl.estimate(
            fl.Predictions(scores[rows], y, models=MODELS),
            method.model,
            list(METRICS.values()),
            confidence_level=level,
            estimand=method.estimand,
            random_state=cell.run,
            workers=1,
        )
        seconds = time.perf_counter() - started
        for metric, code in METRICS.items():
            pairs = [(found.get(m, code), truth.get(m, code).value) for m in MODELS]
            records.append(
                {
                    "experiment": cell.experiment,
                    "n_labeled": cell.n_labeled,
                    "run": cell.run,
                    "method": name,
                    "metric": metric,
                    "seconds": seconds,
                    "error": 100 * float(np.mean([abs(e.value - t) for e, t in pairs])),
                    "covered": float(np.mean([e.low <= t <= e.high for e, t in pairs])),
                    "width": 100 * float(np.mean([e.high - e.low for e, _ in pairs])),
                }
            )
    return records


def stated() -> dict[tuple[str, int, str, str], tuple[float, float]]:
    """The reference's figures: mean and sd (NaN where it gives none)."""
    out = {}
    methods = (
        "Labeled",
        "SSME-KDE, released code",
        "Ensemble posterior, drawn",
        "All labels known",
    )
    for metric, by_size in _TABLE_3.items():
        for size, text in by_size.items():
            v = [np.nan if x == "-" else float(x) for x in text.split()] + [np.nan]
            for i, method in enumerate(methods):
                out["golden", size, method, metric] = (v[2 * i], v[2 * i + 1])
    for method, by_size in _TABLE_5.items():
        for size, text in by_size.items():
            for metric, value in zip(("accuracy", "AUC", "AP", "ECE"), text.split(), strict=True):
                out["fresh", size, method, metric] = (float(value), np.nan)
    return out


def table(records: pd.DataFrame, experiment: str, metric: str) -> str:
    """Markdown of one metric: error, sd and what the reference states."""
    claims = stated()
    own = records[(records.experiment == experiment) & (records.metric == metric)]
    found = own.groupby(["method", "n_labeled"], sort=False).error.agg(["mean", "std"])
    texts = [
        f"{mean:.2f} ± {std:.2f}"
        + (f" ({claim[0]:.2f})" if (claim := claims.get((experiment, n, method, metric))) else "")
        for (method, n), mean, std in found.itertuples()
    ]
    cells = found.assign(text=texts).reset_index().assign(metric=metric)
    return _by_size(cells, ["method"], [metric])


def _by_size(cells: pd.DataFrame, index: list[str], head: list[str]) -> str:
    """A column for each number of labels, and methods in their order."""
    ranks = {method: k for k, method in enumerate(METHODS)}
    cells = cells.sort_values("method", key=lambda m: m.map(ranks), kind="stable")
    sizes = "n_l = " + cells.n_labeled.astype(str)
    return markdown(across(cells.assign(n_labeled=sizes), index, "n_labeled"), head)


def agreement(records: pd.DataFrame) -> Iterator[tuple[str, float]]:
    """Each stated cell and how many standard errors ours is away from it.

    Methods without randomness of their own see the same runs on the golden splits: one standard
    error. SSME starts from a random draw, and fresh splits are other runs: both means are random
    there, and both standard errors count.
    """
    place = ["experiment", "n_labeled", "method", "metric"]
    found = records.groupby(place).error.agg(["mean", "std", "size"])
    for key, (claim, _) in stated().items():
        if key not in found.index:
            continue
        experiment, size, method, metric = key
        mean, std, runs = found.loc[key]
        both = experiment == "fresh" or method.startswith("SSME")
        se = std / np.sqrt(runs) * (np.sqrt(2) if both else 1)
        # The reference rounds to two decimals.
        gap = max(abs(mean - claim) - 0.005, 0.0)
        yield f"{experiment}, n_l = {size}, {method}, {metric}", gap / se


def intervals(records: pd.DataFrame) -> str:
    """Markdown: coverage of 90% intervals and their width, on fresh splits."""
    shown = [name for name, method in METHODS.items() if method.estimand == "population"]
    own = records[(records.experiment == "fresh") & records.method.isin(shown)]
    found = own.groupby(["method", "metric", "n_labeled"], sort=False)
    held, width = found.covered.agg(["mean", "sem"]), found.width.mean()
    texts = [
        f"{mean:.2f} ± {se:.2f}, {w:.1f}" for (mean, se), w in zip(held.values, width, strict=True)
    ]
    cells = held.assign(text=texts).reset_index()
    return _by_size(cells, ["method", "metric"], ["method", "metric"])


def render(records: pd.DataFrame, seconds: float) -> str:
    """The whole page."""
    runs = records.groupby("experiment").run.nunique().reindex(["golden", "fresh"], fill_value=0)
    lines = [
        "# CivilComments: errors beside the reference",
        "",
        "Made by `benchmarks/civilcomments.py` (`make reproduce`). Seven classifiers, 1000 "
        "unlabeled items. Mean absolute error in percentage points, mean ± standard deviation "
        "over runs; in brackets what the reference states. ECE is the released code's (10 "
        "quantile bins).",
        "",
    ]
    for experiment, title in (
        ("golden", f"The released splits, {runs['golden']} runs"),
        ("fresh", f"The released sampler, fresh seeds ({SEED}), {runs['fresh']} runs"),
    ):
        lines += [f"## {title}", ""]
        for metric in METRICS:
            lines += [table(records, experiment, metric), ""]
    lines += ["## Agreement with the reference", ""]
    gaps = list(agreement(records))
    within = sum(g <= 2 for _, g in gaps)
    lines.append(
        f"{within} of {len(gaps)} cells within two standard errors; the furthest is "
        f"{max(g for _, g in gaps):.1f} away."
    )
    lines += ["", *(f"- {name}: {gap:.1f}" for name, gap in gaps if gap > 2), ""]
    lines += [
        "## 90% intervals (fresh splits)",
        "",
        "Share of intervals that hold the truth, ± standard error over runs, and mean width in "
        "points. The intervals leave out that the model may be wrong, which the methods other than "
        "the labels' own need most.",
        "",
        intervals(records),
        "",
        f"Computed in {seconds:.0f} s on {os.cpu_count()} processors.",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Run all cells on all processors and write the page."""
    parser = command_line(__doc__, data=True)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "civilcomments.md")
    parser.add_argument("--golden-runs", type=int, default=50)
    parser.add_argument("--fresh-runs", type=int, default=60)
    options = parser.parse_args()
    cells = [
        Cell(experiment, size, run, options.data)
        for experiment, runs in (("golden", options.golden_runs), ("fresh", options.fresh_runs))
        for run in range(runs)
        for size in (20, 50, 100)
    ]
    started = time.perf_counter()
    found = spread(run_cell, cells, os.cpu_count() or 1, "runs")
    records = pd.DataFrame([record for part in found for record in part])
    options.out.write_text(render(records, time.perf_counter() - started))
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
