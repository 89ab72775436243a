"""Worlds that break estimators of classifiers' metrics, with the truth known, and their page.

    python -m benchmarks stress [--name after] [--worlds NAME ...] [--labels 20 100] [--runs 100]
        [--workers 2] [--fresh] [--results FOLDER] [--page FILE]

What was found stands in stress_NAME.jsonl beside this file, a line for every world and number of
labels, written as soon as it is done. Another run goes on where one stopped; --fresh runs the
chosen worlds again. The page has the columns `before` and `after`; other names only print. Run it
with another checkout's `src` on PYTHONPATH to stress other code in the same worlds.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from zlib import crc32

import numpy as np
import pandas as pd
from sklearn.metrics import average_precision_score, roc_auc_score

import fewlabels as fl
from runs import ROOT, Row, command_line, fill, number, plain, read_lines, run_missing, table
from stress_worlds import WORLDS, Sample

PAGE = ROOT / "docs" / "when-it-fails.md"
METHODS, COLUMNS = ("auto", "labeled"), ("before", "after")
METRICS = ("accuracy", "roc_auc", "average_precision")
LABELS = (20, 100)
UNLABELED, TRUTH_ITEMS, LEVEL, SEED = 1000, 300_000, 0.9, 18
Key = tuple[str, int]
Place = tuple[str, str, str | None]
"""Classifier, metric, group."""


def truths(sample: Sample) -> dict[Place, float]:
    """Every metric that a classifier has, on all items and by group, by scikit-learn."""
    parts: dict[str | None, np.ndarray] = {None: np.ones(len(sample.truth), dtype=bool)}
    parts |= {f"{name}={g}": c == g for name, c in sample.groups.items() for g in np.unique(c)}
    found: dict[Place, float] = {}
    for model, (group, part) in product(sample.models, parts.items()):
        said = next(kind[model] for kind in sample[1:4] if model in kind)
        given = said >= 0 if model in sample.votes else ~np.isnan(said)
        rows = part & given.reshape(len(part), -1)[:, 0]
        y, said = sample.truth[rows], said[rows]
        if model not in sample.scores:
            soft = model in sample.probabilities
            hard = said.argmax(1) if said.ndim == 2 else said > 0.5 if soft else said
            found[model, "accuracy", group] = float(np.mean(hard == y))
        if model not in sample.votes and said.ndim == 1:
            found[model, "roc_auc", group] = float(roc_auc_score(y, said))
            found[model, "average_precision", group] = float(average_precision_score(y, said))
    return found


def run_cell(cell: Row) -> Row:
    """Estimate a world's metrics in every run, by all methods from the same items."""
    world, n_labeled, runs = cell.values()
    draw, stream = WORLDS[world], [SEED, crc32(world.encode()), n_labeled]
    truth = truths(draw(TRUTH_ITEMS, np.random.default_rng(stream[:2])))
    metrics = [name for name in METRICS if any(row[1] == name for row in truth)]
    found = np.full((len(METHODS), len(truth), runs, 3), np.nan)
    statuses = np.full(found.shape[:3], "failed", dtype=object)
    seconds = dict.fromkeys(METHODS, 0.0)
    for run, (m, method) in product(range(runs), enumerate(METHODS)):
        sample = draw(UNLABELED + n_labeled, np.random.default_rng([*stream, run]))
        predictions, started = sample.predictions(n_labeled), time.process_time()
        try:
            estimates = fl.estimate(
                predictions, method, metrics, list(sample.groups), LEVEL, random_state=run,
                workers=1,
            )  # fmt: skip
        except Exception as error:  # a failure is a result of this run
            print(f"\n{world}, run {run}, {method}: {error!r}", file=sys.stderr)
            continue
        seconds[method] += time.process_time() - started
        for r, row in enumerate(truth):
            one = estimates.get(*row)
            found[m, r, run], statuses[m, r, run] = one[3:6], str(one.status)
    rows = [
        {"model": model, "metric": metric, "group": group, "method": method, "truth": value}
        | summary(found[:, r], m, value, statuses[m, r])
        for r, ((model, metric, group), value) in enumerate(truth.items())
        for m, method in enumerate(METHODS)
    ]
    done = {"fewlabels": fl.__version__, "seconds": seconds, "rows": rows}
    return json.loads(json.dumps(plain(done)), parse_float=lambda text: round(float(text), 6))


def summary(found: np.ndarray, m: int, truth: float, status: Sequence[str]) -> Row:
    """How method m did in all runs: value, low and high (methods, runs, 3) beside the truth.

    `shared_error` is over the runs in which no method's value is undefined, `error` and the rest
    over those in which this one's is not; `wrong_and_ok` is a share of all runs.
    """
    value, low, high = found[m].T
    defined = np.isfinite(found[m]).all(axis=1)
    shared = np.isfinite(found[:, :, 0]).all(axis=0)
    outside = defined & ((low > truth + 1e-9) | (high < truth - 1e-9))
    parts = {
        "error": np.abs(value - truth)[defined], "shared_error": np.abs(value - truth)[shared],
        "coverage": ~outside[defined], "width": (high - low)[defined],
        "wrong_and_ok": outside & (np.asarray(status) == "ok"),
    }  # fmt: skip
    means = {name: float(np.mean(x)) if len(x) else np.nan for name, x in parts.items()}
    return means | {"undefined": int((~defined).sum()), "status": dict(Counter(status))}


def digest(cell: Row, method: str = "auto") -> pd.Series:
    """How a method did in a world, over all classifiers, metrics and groups.

    `error` is over labels only's: the geometric mean over metrics of ratios of mean errors.
    `points` is the mean error in points; `least` and `most` are those of single rows.
    """
    rows = pd.DataFrame(cell["rows"]).astype({"shared_error": float, "coverage": float})
    errors = rows.groupby(["method", "metric"]).shared_error.mean()
    own = rows[rows.method == method]
    return pd.Series({
        "error": np.exp(np.log(errors[method] / errors["labeled"]).mean()),
        "points": 100 * own.shared_error.mean(),
        "coverage": own.coverage.mean(), "least": own.coverage.min(),
        "wrong": own.wrong_and_ok.mean(), "most": own.wrong_and_ok.max(),
        "undefined": own.undefined.mean() / cell["runs"],
    })  # fmt: skip


GOALS = {
    "some classifier's interval holds the truth in less than 80% of the runs":
        lambda d: d.least < 0.8,
    "the mean classifier is wrong and `ok` in 10% of the runs or more": lambda d: d.wrong >= 0.1,
    "the error is more than 1.1 times that of labels only": lambda d: d.error > 1.1,
}  # fmt: skip
"""What is aimed at, and which worlds miss it."""


def read(file: Path) -> dict[Key, Row]:
    """Cells by world and number of labels; of lines with the same key the last counts."""
    return {(cell["world"], cell["n_labeled"]): cell for cell in read_lines(file)}


def percent(*shares: float) -> str:
    """Shares in percent, with a slash between; "-" where there are none."""
    if np.isnan(shares).all():
        return "-"
    return " / ".join(number(100 * share, 0) for share in shares)


def blocks(columns: Mapping[str, Mapping[Key, Row]]) -> dict[str, str]:
    """What the page shows, by its mark."""
    every = {key: cell for cells in columns.values() for key, cell in cells.items()}
    keys = [key for key in product(WORLDS, LABELS) if key in every]
    only = pd.DataFrame({key: digest(every[key], "labeled") for key in keys}).T
    figures = {
        name: pd.DataFrame(
            {key: digest(cells[key]) for key in keys if key in cells}, only.columns
        ).T
        for name, cells in columns.items()
    }
    goals = [
        [goal, *(f"{missed(f).sum()} of {len(f)}" if len(f) else "-"
                 for f in [*figures.values(), only])]
        for goal, missed in GOALS.items()
    ]  # fmt: skip
    runs = (
        f"{name}: {' or '.join(sorted({str(c['runs']) for c in cells.values()}))} runs, "
        f"fewlabels {' or '.join(sorted({c['fewlabels'] for c in cells.values()}))}, "
        f"{sum(sum(c['seconds'].values()) for c in cells.values()) / 60:.0f} minutes of a processor"
        for name, cells in columns.items() if cells
    )  # fmt: skip
    body = []
    for key in keys:
        own, o = [f.reindex(only.index).loc[key] for f in figures.values()], only.loc[key]
        body.append(
            [*key, *(number(d.error, 2) for d in own), *(percent(d.coverage, d.least) for d in own),
             *(percent(d.wrong, d.most) for d in own), number(o.points, 1),
             percent(o.coverage, o.least), percent(o.undefined, digest(every[key]).undefined)]
        )  # fmt: skip
    head = [f"{what}: {name}" for what in ("error", "holds", "wrong and ok") for name in columns]
    head = ["world", "labels", *head, *(f"labels only: {w}" for w in ("points", "holds"))]
    said = (f"- **{name}**: {world.__doc__} `python -m benchmarks stress --fresh --worlds {name}`"
            for name, world in WORLDS.items())  # fmt: skip
    return {
        "goals": ". ".join(runs).capitalize() + ".\n\n"
        + table(["Of the data sets and numbers of labels", *figures, "labels only"], goals),
        "table": table([*head, "undefined: labels only / `auto`"], body),
        "worlds": "\n".join(said),
    }  # fmt: skip


def main() -> None:
    """Run what is missing, and write the page."""
    parser = command_line(
        __doc__, name="after", runs=100, workers=2, fresh=False, results=ROOT / "benchmarks",
        page=PAGE,
    )  # fmt: skip
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(WORLDS), metavar="NAME")
    parser.add_argument("--labels", nargs="+", type=int, default=list(LABELS))
    given = parser.parse_args()
    file = given.results / f"stress_{given.name}.jsonl"
    asked = list(product(given.worlds, given.labels))
    if given.fresh and file.exists():
        old = [cell for key, cell in read(file).items() if key not in asked]
        file.write_text("".join(json.dumps(cell) + "\n" for cell in old), encoding="utf-8")
    cells = [{"world": world, "n_labeled": n, "runs": given.runs} for world, n in asked]
    run_missing(file, run_cell, cells, given.workers)
    for key, cell in read(file).items():
        d = digest(cell)
        print(f"{key}: error {number(d.error, 2)} of labels only, holds "
              f"{percent(d.coverage, d.least)}, wrong and ok "
              f"{percent(d.wrong, d.most)}")  # fmt: skip
    if given.name in COLUMNS:
        columns = {name: read(given.results / f"stress_{name}.jsonl") for name in COLUMNS}
        fill(given.page, blocks(columns))
        print(f"wrote {given.page}")


if __name__ == "__main__":
    main()
