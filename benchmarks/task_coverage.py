"""Several tasks of the same items: a task estimated among others, and alone.

    python -m benchmarks task_coverage all | simulated | real

95% intervals of accuracy and AUC for the population that the items come from. A task is estimated
among the others (`tasks`), by itself (`alone`), from its labels only (`labeled`), and as a group of
one table with group curves (`groups`), which was the other way to do it. Items are new in every
run; real ones are drawn with replacement from all there are. The page is docs/benchmarks/tasks.md.
"""

from __future__ import annotations

from functools import cache, partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.metrics import roc_auc_score

import fewlabels as fl
from parts import Arguments, Part, Plan, Record, run_page, stream
from runs import averaged, grouped, share, where

Floats, Ints = np.ndarray, np.ndarray
Key = tuple[str, str, str | None]
"""Classifier, metric and group."""
LEVEL, METRICS, RUNS = 0.95, ("accuracy", "roc_auc"), 10
WORLDS = {
    "alike": ((2, 20), (2, 100), (6, 50), (14, 50)),
    "opposite": ((2, 20), (2, 100), (6, 50)),
    "unlike": ((2, 20),),
}
"""World -> tasks and labeled items of its cells."""

ITEMS, WHOLE = 300, 40_000

MOST_GROUPS = 6
"""With more tasks, one table with group curves takes too long to be tried."""

SHARED, REAL, REAL_RUNS = 1.0, 50, 5
NETWORKS = ("jfaboy", "ngango3", "yww211")


def parameters(world: str, tasks: int, rng: np.random.Generator) -> list[Floats]:
    """Log-odds of a label, separation and shift of the scores of every task, (T,) each.

    Tasks are alike, of opposite prevalence, or unlike in all.
    """
    if world == "alike":
        return [np.full(tasks, -1.0), np.full(tasks, 2.0), np.zeros(tasks)]
    if world == "opposite":
        return [np.where(np.arange(tasks) % 2, 2.0, -2.5), np.full(tasks, 2.0), np.zeros(tasks)]
    return [rng.uniform(-3, 2, tasks), rng.uniform(0.3, 3, tasks), rng.normal(size=tasks)]


def simulated(own: list[Floats], n: int, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """Labels and probabilities (n, T, 1); labels of an item go together by a normal effect."""
    base, apart, shift = own
    odds = base + SHARED * rng.normal(size=(n, 1)) + rng.logistic(size=(n, len(base)))
    labels = (odds > 0).astype(np.int64)
    scores = apart * (labels - 0.5) + rng.normal(size=labels.shape) + base / 2 + shift
    return labels, expit(scores)[:, :, None]


@cache
def real(data: Path, name: str) -> tuple[Ints, Floats]:
    """Labels (n, T), -1 where there is none, and probabilities (n, T, M) or (n, T, M, K)."""
    frame = pd.read_parquet(data / name / "data.parquet")
    if name == "chexpert":
        item, task = "item", "task"
        columns, shape = [f"p__{network}__1" for network in NETWORKS], (len(NETWORKS),)
    else:
        frame = frame[frame["domain"] == "synth"].assign(label=lambda rows: rows["label"] - 1)
        item, task = "text_id", "criterion"
        columns, shape = [f"p__gpt35__{k}" for k in (1, 2, 3, 4)], (1, 4)
    rows = np.unique(frame[item], return_inverse=True)[1]
    of = np.unique(frame[task], return_inverse=True)[1]
    labels = np.full((rows.max() + 1, of.max() + 1), -1)
    labels[rows, of] = frame["label"]
    p = np.full((*labels.shape, *shape), np.nan)
    p[rows, of] = frame[columns].to_numpy().reshape(-1, *shape)
    return labels, p


def table(labels: Ints, p: Floats, *, tasks: bool) -> fl.Predictions:
    """A row per item and task, in clusters by item; those without a prediction are left out."""
    n, t = labels.shape
    there = ~np.isnan(p.reshape(n * t, -1)).any(axis=1)
    task, item = np.tile(np.arange(t), n), np.repeat(np.arange(n), t)
    return fl.Predictions(
        p.reshape(n * t, *p.shape[2:])[there], labels.ravel()[there],
        models=[f"m{j}" for j in range(p.shape[2])],
        groups={"task": np.array([f"t{k}" for k in task[there]], dtype=object)},
        clusters={"item": item[there].astype(str)},
        classes=list(range(p.shape[3] if p.ndim > 3 else 2)), task="task" if tasks else None,
    )  # fmt: skip


def values(estimates: fl.Estimates) -> dict[Key, fl.Estimate]:
    """Rows by classifier, metric and group."""
    return {(row.model, row.metric, row.group): row for row in estimates.rows}


def in_all(labels: Ints, p: Floats) -> dict[Key, float]:
    """Every value of one classifier on items with all labels, (n, T)."""
    said = p[:, :, 0]
    each = {f"task=t{t}": (labels[:, t], said[:, t]) for t in range(labels.shape[1])}
    out: dict[Key, float] = {}
    for group, (y, score) in {**each, None: (labels.ravel(), said.ravel())}.items():
        out["m0", "accuracy", group] = float(((score > 0.5) == y).mean())
        out["m0", "roc_auc", group] = float(roc_auc_score(y, score))
    for metric in METRICS:
        mean = np.mean([out["m0", metric, group] for group in each])
        out["m0", metric, "task=macro average"] = float(mean)
    return out


@cache
def of_everything(data: Path, world: str) -> dict[Key, float]:
    """Every value on all real items, from their labels alone."""
    found = fl.estimate(table(*real(data, world), tasks=True), "labeled", METRICS)
    return {key: row.value for key, row in values(found).items()}


def run(data: Path, world: str, tasks: int, labeled: int, number: int) -> list[Record]:
    """Errors of every way, and whether intervals hold the truth, in one run."""
    rng = stream("tasks", world, tasks, labeled, number)
    if world in WORLDS:
        own = parameters(world, tasks, rng)
        truth = in_all(*simulated(own, WHOLE, rng))
        labels, p = simulated(own, ITEMS, rng)
    else:
        truth, (every, of_all) = of_everything(data, world), real(data, world)
        again = rng.integers(len(every), size=len(every))
        labels, p = every[again], of_all[again]
    given = np.where(np.arange(len(labels))[:, None] < labeled, labels, -1)
    items = table(given, p, tasks=True)
    ask = partial(fl.estimate, metrics=METRICS, confidence_level=LEVEL, random_state=number)
    ways = {"tasks": values(ask(items))}
    if tasks <= MOST_GROUPS:
        ways["groups"] = values(ask(table(given, p, tasks=False), by="task"))
    for way, method in (("alone", "auto"), ("labeled", "labeled")):
        each = {name: values(ask(items.of_task(name), method)) for name in items.tasks}
        ways[way] = {
            (model, metric, f"task={name}"): row
            for name, rows in each.items() for (model, metric, _), row in rows.items()
        }  # fmt: skip
    return [
        {
            "world": world, "tasks": tasks, "labeled": labeled, "way": way, "metric": place[1],
            "what": what, "error": abs(row.value - truth[place]),
            "held": row.low <= truth[place] <= row.high, "width": row.high - row.low,
        }
        for way, rows in ways.items() for place, row in rows.items()
        if (what := {None: "micro", "task=macro average": "macro"}.get(place[2], "task")) == "task"
        or way == "tasks"
    ]  # fmt: skip


def blocks(records: pd.DataFrame, plan: Plan) -> str:
    """Mean errors of a task by every way, and shares of intervals that hold the truth.

    Averages over tasks are shown of real items, whose errors go together as they do.
    """

    def of(way: str, what: str, say: object) -> object:
        return where("what", what, where("way", way, say))

    records = records[records["error"].notna()]  # not of a class that a task lacks
    columns = {way: of(way, "task", averaged("error", 3)) for way in ("tasks", "alone", "groups")}
    columns |= {"labels only": of("labeled", "task", averaged("error", 3))}
    held = share("held")
    columns |= {f"{way} hold": of(way, "task", held) for way in ("tasks", "alone", "groups")}
    for mean in ("macro", "micro") if plan.part == "real" else ():
        columns |= {mean: of("tasks", mean, averaged("error", 3))}
        columns |= {f"{mean} holds": of("tasks", mean, held)}
    return grouped(records, ["world", "tasks", "labeled", "metric"], columns)


def cells(plan: Plan) -> list[Arguments]:
    """A cell per run."""
    if plan.part == "simulated":
        some = [(w, size, k) for w, sizes in WORLDS.items() for size in sizes for k in range(RUNS)]
    else:
        some = product(("chexpert", "llm_rubric"), ((5, REAL),), range(REAL_RUNS))
    every = [
        {"world": w, "tasks": 9 if w == "llm_rubric" else t, "labeled": labeled, "number": k}
        for w, (t, labeled), k in some
    ]
    return list(plan.some(every, 2))


_DESIGN = f"{LEVEL:.0%} intervals, {{}} runs a cell, all tasks of a run counted"
PARTS = {
    name: Part(cells, run, blocks, _DESIGN.format(runs))
    for name, runs in (("simulated", RUNS), ("real", REAL_RUNS))
}


if __name__ == "__main__":
    run_page(__doc__, "task_coverage", PARTS, {"real"}, "tasks")
