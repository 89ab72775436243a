"""How good is each judge, and what it judges, by few labels and all verdicts.

    python -m benchmarks judges all | accuracy | orders | score

Real verdicts with all labels known: LLM judges, and the ten busiest annotators of the crowd sets. A
run draws 20, 50 or 100 labels (at most half of a set) and asks every way for the accuracy of every
judge (`judges_sets.py`). The page is docs/benchmarks/judges.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import fewlabels as fl
from bench.splits import seed_of
from judges_sets import LEVEL, N_LABELED, SETS, WAYS, asked, beside, drawn, sizes_of, verdicts
from parts import SEED, Arguments, Part, Plan, Record, run_page
from runs import across, number, table

RUNS, FEWER, OF_CELL = 50, 20, 10
MOST = 10
"""Judges of a set: a log has few."""
LLM = tuple(name for name in SETS if name.startswith("LLM judges"))
CROWDS = tuple(name for name in SETS if name.startswith("crowd") and "s5_adult" not in name)
"""The gold of s5_adult is of a small and perhaps biased part of its items."""
ALONE = "labels only"
_DIGITS = {"truth": 4, "error": 5, "width": 5}
ASKED = tuple(WAYS)


@lru_cache(maxsize=2)
def _set(data: Path, name: str) -> fl.Predictions:
    """A set with its busiest judges, and the items that one of them judges."""
    votes = SETS[name].read(data)
    busy = np.argsort(-votes.has_hard.sum(axis=0), kind="stable")[:MOST]
    few = votes.select_models([votes.models[j] for j in sorted(busy.tolist())])
    return few.take(np.flatnonzero(few.has_hard.any(axis=1)))


def _cells(plan: Plan, names: Sequence[str], runs: int = FEWER) -> list[Arguments]:
    """Every set, number of labels, and some runs at a time."""
    return [
        {"name": name, "n_labeled": n, "start": start, "runs": 2 if plan.quick else OF_CELL}
        for name in names
        if (plan.data / SETS[name].file).exists()
        for n in (N_LABELED[:1] if plan.quick else sizes_of(_set(plan.data, name)))
        for start in range(0, 1 if plan.quick else runs, OF_CELL)
    ]


def _asked(
    votes: fl.Predictions, name: str, n_labeled: int, runs: range, ways: tuple[str, ...]
) -> Iterator[Record]:
    """What each way says of the judges that count and have labels, in few digits."""
    place = {"name": name, "labels": n_labeled}
    for one in asked(votes, name, n_labeled, runs, ways):
        yield place | one | {key: round(one[key], d) for key, d in _DIGITS.items()}


def accuracy_run(data: Path, name: str, n_labeled: int, start: int, runs: int) -> list[Record]:
    """Error, width and coverage of every judge in every run, by way."""
    return [*_asked(_set(data, name), name, n_labeled, range(start, start + runs), ASKED)]


def accuracy_blocks(records: pd.DataFrame, plan: Plan) -> dict[str, str]:
    """All sets together, set by set, and judge by judge of the LLM judges."""
    llm = records[records["name"].isin(LLM)]
    return {
        "summary": _summary(records),
        "sets": _by(records, ["name", "labels"], ["set", "labels"]),
        "judges": _by(llm, ["name", "judge", "truth", "labels"],
                      ["set", "judge", "accuracy", "labels"]),
        "widths": _widths(llm),
    }  # fmt: skip


def _by(
    records: pd.DataFrame, keys: list[str], header: list[str], ways: Sequence[str] = ASKED
) -> str:
    """A row per place: mean error and coverage, over judges and runs, of each way."""
    means = records.groupby([*keys, "way"], sort=False)[["error", "held"]].mean()
    cells = means.assign(text=[f"{number(e)} ({h:.0%})" for e, h in means.values]).reset_index()
    rows = across(cells, keys, "way", empty="-").reindex(columns=list(ways), fill_value="-")
    lines = ((*map(_short, place), *own) for place, *own in rows.itertuples())
    return table([*header, *ways], lines)


def _short(value: Any) -> str:
    return number(value) if isinstance(value, float) else str(value).removeprefix("LLM judges: ")


def _widths(records: pd.DataFrame) -> str:
    """Median widths of the intervals of LLM judges, by labels."""
    ways = ["auto", ALONE, "ppi by Dawid-Skene"]
    median = records.groupby(["labels", "way"])["width"].median().unstack()[ways]
    return table(["labels", *ways], ((n, *(number(v, 2) for v in row)) for n, *row in
                                     median.itertuples()))  # fmt: skip


def _summary(records: pd.DataFrame) -> str:
    """Beside the labels alone: geometric means over sets ± their standard error over sets."""
    # A judge's error in a run; runs and judges are averaged within a set.
    figures = ["error", "held", "width", "wrong_ok"]
    mean = records.groupby(["labels", "way", "name"])[figures].mean()
    rows = []
    for labels, way in product(sorted(set(records["labels"])), ASKED):
        some = mean.loc[labels, way]
        logs = np.log(some["error"] / mean.loc[labels, ALONE]["error"])
        beside = f"{np.exp(logs.mean()):.2f} ± {np.exp(logs.mean()) * logs.sem():.2f}"
        rows.append([
            labels, way, number(some["error"].mean()), "1" if way == ALONE else beside,
            f"{(logs < 0).sum()} of {len(logs)}" if way != ALONE else "",
            f"{some['held'].mean():.0%}", f"{some['held'].min():.0%}",
            number(some["width"].mean()), f"{some['wrong_ok'].mean():.1%}",
        ])  # fmt: skip
    return table(
        ["labels", "way", "error", f"beside {ALONE}", "sets where it is better", "coverage",
         "worst set", "width", "wrong with status ok"], rows,
    )  # fmt: skip


# --- two orders of one pair -----------------------------------------------------------------------

_ORDERED = LLM[0]
_BOTH, _ONE = "both orders, as twice as many judges", "one order"
_OF_ORDERS = ("auto", "dawid-skene")


def _orders(data: Path) -> Mapping[str, fl.Predictions]:
    """JudgeBench with the verdicts of one order, and of both as if these were more judges."""
    return {_ONE: _set(data, _ORDERED), _BOTH: verdicts(data, ("order1", "order2"))}


def order_run(data: Path, name: str, n_labeled: int, start: int, runs: int) -> list[Record]:
    """What is said of the same judges in the first order, by both sets of columns."""
    each, own = _orders(data), range(start, start + runs)
    return [
        record | {"what": what}
        for what, votes in each.items()
        for record in _asked(votes, name, n_labeled, own, _OF_ORDERS)
        if record["judge"] in each[_ONE].models
    ]


# --- what is judged -------------------------------------------------------------------------------

_PASSES = 1
"""The class that passes: the first answer is the better one."""


def score_run(data: Path, name: str, n_labeled: int, start: int, runs: int) -> list[Record]:
    """Error and coverage of the pass rate, by every way of `fewlabels score`."""
    votes = _set(data, name)
    classes = [str(c) for c in votes.classes]
    truth = float(np.mean(votes.labels == classes.index(str(_PASSES))))
    records: list[Record] = []
    for run in range(start, start + runs):
        given = drawn(votes, name, n_labeled, run)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seed = seed_of("judges", SEED, name, n_labeled, run)
            found = fl.score(
                given, confidence_level=LEVEL, positive=_PASSES, workers=1, random_state=seed
            )
        for row in found.rows:
            place = {"name": name, "labels": n_labeled, "run": run, "way": row.way}
            place |= {"judge": row.judge or "", "truth": truth}
            ok = row.status == "ok"
            records.append(place | beside(truth, row.value, row.low, row.high, ok))
    return records


_DESIGN = (
    f"up to 1,000 unlabeled items beside them, {LEVEL:.0%} intervals, seed {SEED}; mean absolute "
    "errors (coverage), over judges and draws"
)

PARTS = {
    "accuracy": Part(
        lambda plan: _cells(plan, LLM, RUNS) + _cells(plan, plan.some(CROWDS)),
        accuracy_run, accuracy_blocks,
        f"{len(LLM) + len(CROWDS)} sets, {RUNS} random draws of the labels ({FEWER} of crowd "
        f"sets), {_DESIGN}; ± is the standard error over sets",
    ),
    "orders": Part(
        lambda plan: _cells(plan, (_ORDERED,)), order_run,
        lambda records, plan: {
            "orders": _by(records, ["labels", "what"], ["labels", "columns"], _OF_ORDERS)
        },
        f"JudgeBench, {FEWER} random draws of the labels, {_DESIGN}",
    ),
    "score": Part(
        lambda plan: _cells(plan, plan.some(LLM), RUNS), score_run,
        lambda records, plan: {
            "score": _by(records, ["name", "truth", "labels"], ["set", "pass rate", "labels"],
                         list(dict.fromkeys(records["way"])))
        },
        f"{RUNS} random draws of the labels, {_DESIGN}",
    ),
}  # fmt: skip


if __name__ == "__main__":
    run_page(__doc__, "judges", PARTS, PARTS)
