"""How often `compare` calls two classifiers different, and the table of docs/comparing.md.

    python -m benchmarks compare_power [--runs 200] [--workers 2] [--page-only]

Five classifiers; the first two differ by 0, 1, 3 or 5 points of accuracy. Each run draws 1,000
unlabeled items and 50, 200 or 800 labeled ones. Of the first two, `compare` says "different" where
the 90% interval of their difference excludes 0; the exact McNemar test of the same labels where
p < .1. Results are kept in benchmarks/compare_power.jsonl, a cell a line: another run
goes on where one stopped.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
from scipy.special import expit, logit
from scipy.stats import binomtest, norm

import fewlabels as fl
from runs import ROOT, across, markdown, number, run_kept
from stress_worlds import Sample

RESULTS, PAGE = ROOT / "benchmarks" / "compare_power.jsonl", ROOT / "docs" / "comparing.md"
POINTS, LABELS, UNLABELED = (0, 1, 3, 5), (50, 200, 800), 1000
ACCURACY, COMMON, LEVEL, SEED = 0.8, 0.5, 0.9, 7

KINDS: Mapping[str, str] = {
    "calibrated": "probabilities, calibrated",
    "shifted": "probabilities; the first is three times too sure, the second half as sure as it "
    "should be, another favours one class",
    "votes": "votes alone",
    "mixed": "the first gives votes, the others probabilities",
}


def draw(kind: str, points: float, n: int, rng: np.random.Generator) -> Sample:
    """Items of five classifiers: normal scores given the class, whose errors go together."""
    truth = (rng.random(n) < 0.5).astype(int)
    accuracy = ACCURACY + np.array([points / 200, -points / 200, 0.0, 0.02, -0.04])
    d = 2 * norm.ppf(accuracy)  # a score's classes lie d standard deviations apart
    noise = np.sqrt(COMMON) * rng.normal(size=(n, 1))
    noise = noise + np.sqrt(1 - COMMON) * rng.normal(size=(n, 5))
    p = expit(d * (d * (truth[:, None] - 0.5) + noise))
    votes = (p > 0.5).astype(int)
    if kind == "shifted":
        log_odds = logit(p) * [3, 0.5, 1, 1, 1]
        log_odds[:, 2] += 1
        p = expit(log_odds)
    voters = {"votes": 5, "mixed": 1}.get(kind, 0)
    return Sample(
        truth,
        votes={f"m{j + 1}": votes[:, j] for j in range(voters)},
        probabilities={f"m{j + 1}": p[:, j] for j in range(voters, 5)},
    )


def mcnemar(first: np.ndarray, second: np.ndarray) -> float:
    """Exact p-value, two sides, of two classifiers' being right equally often."""
    one, other = int((first & ~second).sum()), int((second & ~first).sum())
    return float(binomtest(one, one + other).pvalue) if one + other else 1.0


def run_cell(cell: dict[str, Any]) -> dict[str, Any]:
    """Shares of runs in which either way calls the two different, and the wrong one the better."""
    kind, points, n_labeled, runs = cell.values()
    found = []
    for run in range(runs):
        rng = np.random.default_rng([SEED, crc32(kind.encode()), points, n_labeled, run])
        sample = draw(kind, points, n_labeled + UNLABELED, rng)
        given = sample.predictions(n_labeled)
        estimates = fl.estimate(
            given, metrics="accuracy", confidence_level=LEVEL, random_state=run, workers=1
        )
        gap = estimates.difference("m1", "m2", "accuracy")
        hard = given.select_models(("m1", "m2")).hard
        right = (hard == sample.truth[:, None])[:n_labeled]
        different = mcnemar(*right.T) < 1 - LEVEL
        behind = right[:, 0].mean() < right[:, 1].mean()
        found.append((gap.low > 0 or gap.high < 0, gap.high < 0, different, different and behind))
    names = ("compare", "compare_wrong", "mcnemar", "mcnemar_wrong")
    return dict(zip(names, np.mean(found, axis=0).tolist(), strict=True))


def blocks(cells: list[dict[str, Any]]) -> dict[str, str]:
    """The page's table."""
    ways = ["compare", "mcnemar"]
    frame = pd.DataFrame(cells).replace({"kind": KINDS})
    frame = frame.drop_duplicates(["kind", "points", "n_labeled"], keep="last")
    shares = (100 * frame[ways]).map(lambda x: f"{number(x, 0)}%")
    names = {p: f"{p} point{'s' * (p > 1)}" if p else "no difference" for p in POINTS}
    texts = frame.assign(text=shares.agg(" / ".join, axis=1), points=frame.points.map(names))
    wrong = frame[frame.points > 0][[f"{way}_wrong" for way in ways]].max().tolist()
    runs = cells[0]["runs"]
    said = (
        f"{runs} runs a cell, standard errors up to {50 / np.sqrt(runs):.1f} points; fewlabels "
        f"{fl.__version__}. The worse one was called the better in at most {wrong[0]:.1%} and "
        f"{wrong[1]:.1%} of the runs of a cell with a difference."
    )
    power = markdown(across(texts, ["kind", "n_labeled"], "points"), ["classifiers", "labels"])
    return {"power": f"{power}\n\n{said}"}


if __name__ == "__main__":
    run_kept(
        __doc__, RESULTS, run_cell,
        lambda given: (
            {"kind": kind, "points": points, "n_labeled": n, "runs": given.runs}
            for kind, points, n in product(KINDS, POINTS, LABELS)
        ),
        blocks, PAGE, runs=200,
    )  # fmt: skip
