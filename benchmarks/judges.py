"""How good is each judge, and what it judges, by few labels and all verdicts.

    python -m benchmarks judges all | accuracy | orders | score

Real verdicts with all labels known: LLM judges, and the ten busiest annotators of the crowd sets. A
run draws up to 1,000 unlabeled items and 20, 50 or 100 labeled ones (at most half of a set), and
asks every way for the accuracy of every judge. Only those with 50 votes count (the ten busiest,
where these are fewer), in the runs where two of their votes are on labeled items: labels alone say
nothing of the others. The page is docs/benchmarks/judges.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import ppi_py

import fewlabels as fl
from bench.splits import generator, seed_of
from fewlabels.errors import Status
from fewlabels.kernels.arrays import Bools, Floats
from fewlabels.kernels.votes import vote_shares
from fewlabels.predictions import Predictions
from parts import SEED, Arguments, Part, Plan, Record, run_page
from runs import across, markdown, number, table
from study.sets import truth_of as truths
from votes_methods import CROWDS, read_crowd

N_LABELED, N_UNLABELED, LEVEL = (20, 50, 100), 1_000, 0.9
LEAST_VOTES, BUSIEST, LEAST_LABELS = 50, 10, 2


def _crowd(data: Path, name: str) -> Predictions:
    """Annotators, on the items with a gold label."""
    crowd = read_crowd(data, name)
    return crowd.predictions.take(crowd.items).with_labels(crowd.gold)


def verdicts(data: Path, orders: tuple[str, ...] = ("order1",)) -> Predictions:
    """Verdicts in some orders of the two answers; the second is no independent judge."""
    frame = pd.read_parquet(data / "llm_judges" / "judgebench.parquet")
    columns = [c for c in frame if c.startswith("y__") and c.endswith(orders)]
    names = [c.removeprefix("y__").removesuffix("__order1") for c in columns]
    labels = frame["label"].to_numpy().astype(int)
    return Predictions(votes=frame[columns].to_numpy(), labels=labels, models=names)


def _panda(data: Path) -> Predictions:
    """Two judges; the label is what most of three people say, so these do not vote."""
    frame = pd.read_parquet(data / "llm_judges" / "pandalm.parquet")
    names = ["gpt35", "pandalm7b"]
    votes = frame[[f"y__{name}" for name in names]].to_numpy()
    labels = frame["majority"].to_numpy().astype(int)
    return Predictions(votes=votes, labels=labels, models=names, classes=(0, 1, 2))


class Source(NamedTuple):
    """The file that must be there, and how it is read."""

    file: str
    read: Callable[[Path], Predictions]


SETS: Mapping[str, Source] = {
    **{f"crowd: {name}": Source(f"crowd/{name}.gold.parquet", partial(_crowd, name=name))
       for name in CROWDS},
    "LLM judges: JudgeBench": Source("llm_judges/judgebench.parquet", verdicts),
    "LLM judges: PandaLM": Source("llm_judges/pandalm.parquet", _panda),
}  # fmt: skip
"""Of the crowd sets adultcontent2 has the votes of s5_adult, and adultcontent3 no gold labels."""


def truth_of(votes: Predictions) -> Floats:
    """Accuracy of each classifier on all items it votes on, (M,)."""
    return truths(votes, ["accuracy"])[:, 0]


def judged_of(votes: Predictions) -> tuple[str, ...]:
    """The classifiers that count: with `LEAST_VOTES`, else the `BUSIEST`."""
    busy = votes.has_hard.sum(axis=0)
    least = min(LEAST_VOTES, np.sort(busy)[-min(BUSIEST, len(busy))])
    return tuple(name for name, n in zip(votes.models, busy, strict=True) if n >= least)


def sizes_of(votes: Predictions) -> tuple[int, ...]:
    """Numbers of labels that leave half of the items without."""
    return tuple(n for n in N_LABELED if 2 * n <= votes.n_items)


def drawn(votes: Predictions, name: str, n_labeled: int, run: int) -> Predictions:
    """The items of a run; who votes on none of them is not there."""
    n = min(n_labeled + N_UNLABELED, votes.n_items)
    rng = generator("votes with labels", 1, name, n_labeled, run)
    items = votes.take(rng.choice(votes.n_items, n, replace=False))
    given = items.revealing(np.arange(n_labeled))
    there = given.has_hard.any(axis=0)
    return given.select_models([given.models[j] for j in np.flatnonzero(there)])


class Answer(NamedTuple):
    """Accuracy of each classifier and its interval, (M,); whether the way vouches for it."""

    value: Floats
    low: Floats
    high: Floats
    ok: Bools


def _estimated(given: Predictions, seed: int, method: str) -> Answer:
    """By one of fewlabels' methods."""
    found = fl.estimate(
        given, method, ["accuracy"], confidence_level=LEVEL, random_state=seed, workers=1
    )
    columns = (np.array([r[k] for r in found.rows], dtype=float) for k in (3, 4, 5))
    return Answer(*columns, np.array([r.status is Status.OK for r in found.rows]))


def _shares(given: Predictions, seed: int) -> Floats:
    """How large a part of an item's votes each class has, (n, K)."""
    k = given.n_classes
    weights, empty = np.ones((given.n_models, 1)), np.full(k, 1 / k)
    return vote_shares(given.vote_counts, weights, empty)[:, :, 0]


def _by_votes(given: Predictions, seed: int) -> Floats:
    """P(class) of Dawid and Skene's model, which sees no label, (n, K)."""
    unlabeled = given.with_labels(np.full(given.n_items, -1))
    return fl.models.DawidSkene().infer(unlabeled, np.random.default_rng(seed)).marginals()


def _rectified(
    given: Predictions, seed: int, proxy: Callable[[Predictions, int], Floats]
) -> Answer:
    """ppi-python (PPI++), from a probability of each item's label that no label has touched."""
    p = proxy(given, seed)
    rows = [_rectified_one(given, p, j) for j in range(given.n_models)]
    return Answer(*np.array(rows).T, np.ones(given.n_models, dtype=bool))


def _rectified_one(given: Predictions, p: Floats, j: int) -> tuple[float, float, float]:
    voted = given.has_hard[:, j]
    labeled, other = voted & given.labeled, voted & ~given.labeled
    if labeled.sum() < LEAST_LABELS:
        return float("nan"), float("nan"), float("nan")
    right = (given.hard[labeled, j] == given.labels[labeled]).astype(float)
    own = p[np.arange(given.n_items), np.maximum(given.hard[:, j], 0)]
    # A proxy that says the same of all items tells nothing, and its weight would be 0 / 0.
    known = labeled.sum() > 1 and other.any() and np.ptp(own[voted]) > 0
    proxies = (own[labeled], own[other]) if known else (np.zeros(len(right)), np.zeros(2))
    lam = None if known else 0.0
    value = ppi_py.ppi_mean_pointestimate(right, *proxies, lam=lam)
    low, high = ppi_py.ppi_mean_ci(right, *proxies, alpha=1 - LEVEL, lam=lam)
    return float(value[0]), float(low[0]), float(high[0])


ALONE = "labels only"
WAYS: Mapping[str, Callable[[Predictions, int], Answer]] = {
    "auto": partial(_estimated, method="auto"),
    ALONE: partial(_estimated, method="labeled"),
    "ppi by shares of votes": partial(_rectified, proxy=_shares),
    "ppi by Dawid-Skene": partial(_rectified, proxy=_by_votes),
    "dawid-skene": partial(_estimated, method="dawid-skene"),
}
_DIGITS = {"truth": 4, "error": 5, "width": 5}


def beside(truth: float, value: float, low: float, high: float, ok: bool) -> dict[str, Any]:
    """Error, width and coverage of an estimate, and whether it is wrong and vouched for."""
    # Sums in another order may differ in the last bits.
    below, above = low > truth + 1e-9, high < truth - 1e-9
    return {
        "error": abs(value - truth), "width": high - low,
        "held": bool(low <= truth + 1e-9 and truth <= high + 1e-9),
        "wrong_ok": bool(ok and (below or above)),
    }  # fmt: skip


def asked(
    votes: Predictions, name: str, n_labeled: int, runs: range, ways: Sequence[str]
) -> Iterator[Record]:
    """What each way says in each run of the judges that count and have labels, in few digits."""
    judged, truth = judged_of(votes), dict(zip(votes.models, truth_of(votes).tolist(), strict=True))
    for run in runs:
        given = drawn(votes, name, n_labeled, run)
        reached = (given.has_hard & given.labeled[:, None]).sum(axis=0) >= LEAST_LABELS
        who = [j for j, model in enumerate(given.models) if model in judged and reached[j]]
        for way in ways:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = WAYS[way](given, seed_of("judges", SEED, name, n_labeled, run))
            for j in who:
                one = {"name": name, "labels": n_labeled, "run": run, "way": way}
                one |= {"judge": given.models[j], "truth": truth[given.models[j]]}
                one |= beside(one["truth"], *(float(part[j]) for part in found))
                yield one | {key: round(one[key], digits) for key, digits in _DIGITS.items()}


RUNS, FEWER, OF_CELL = 50, 20, 10
MOST = 10
"""Judges of a set: a log has few."""
LLM = tuple(name for name in SETS if name.startswith("LLM judges"))
GOLDEN = tuple(name for name in SETS if name.startswith("crowd") and "s5_adult" not in name)
"""The gold of s5_adult is of a small and perhaps biased part of its items."""
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
    head = rows.index.to_frame().map(
        lambda v: number(v) if isinstance(v, float) else str(v).removeprefix("LLM judges: ")
    )
    lines = ((*place, *own) for place, own in zip(head.values, rows.values, strict=True))
    return table([*header, *ways], lines)


def _widths(records: pd.DataFrame) -> str:
    """Median widths of the intervals of LLM judges, by labels."""
    median = records.groupby(["labels", "way"])["width"].median().unstack()
    median = median[["auto", ALONE, "ppi by Dawid-Skene"]]
    return markdown(median.map(partial(number, digits=2)), ["labels"])


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


_ORDERED = LLM[0]
_BOTH, _ONE = "both orders, as twice as many judges", "one order"
_OF_ORDERS = ("auto", "dawid-skene")


def order_run(data: Path, name: str, n_labeled: int, start: int, runs: int) -> list[Record]:
    """What is said of the same judges in the first order, by both sets of columns."""
    each = {_ONE: _set(data, _ORDERED), _BOTH: verdicts(data, ("order1", "order2"))}
    return [
        record | {"what": what}
        for what, votes in each.items()
        for record in asked(votes, name, n_labeled, range(start, start + runs), _OF_ORDERS)
        if record["judge"] in each[_ONE].models
    ]


_PASSES = 1
"""The class that passes: the first answer is the better one."""


def score_run(data: Path, name: str, n_labeled: int, start: int, runs: int) -> list[Record]:
    """Error and coverage of the pass rate, by every way of `fewlabels score`."""
    votes = _set(data, name)
    classes = [str(c) for c in votes.classes]
    truth = float(np.mean(votes.labels == classes.index(str(_PASSES))))
    records: list[Record] = []
    for run in range(start, start + runs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = fl.score(
                drawn(votes, name, n_labeled, run), confidence_level=LEVEL, positive=_PASSES,
                workers=1, random_state=seed_of("judges", SEED, name, n_labeled, run),
            )  # fmt: skip
        for row in found.rows:
            place = {"name": name, "labels": n_labeled, "run": run, "way": row.way}
            place |= {"judge": row.judge or "", "truth": truth}
            ok = row.status == "ok"
            records.append(place | beside(truth, row.value, row.low, row.high, ok))
    return records


def accuracy_run(data: Path, name: str, n_labeled: int, start: int, runs: int) -> list[Record]:
    """Error, width and coverage of every judge in every run, by way."""
    return [*asked(_set(data, name), name, n_labeled, range(start, start + runs), ASKED)]


_DESIGN = (
    f"up to 1,000 unlabeled items beside them, {LEVEL:.0%} intervals, seed {SEED}; mean absolute "
    "errors (coverage), over judges and draws"
)

PARTS = {
    "accuracy": Part(
        lambda plan: _cells(plan, LLM, RUNS) + _cells(plan, plan.some(GOLDEN)),
        accuracy_run, accuracy_blocks,
        f"{len(LLM) + len(GOLDEN)} sets, {RUNS} random draws of the labels ({FEWER} of crowd "
        f"sets), {_DESIGN}; ± is the standard error over sets",
    ),
    "orders": Part(
        lambda plan: _cells(plan, (_ORDERED,)), order_run,
        lambda records, plan: _by(records, ["labels", "what"], ["labels", "columns"], _OF_ORDERS),
        f"JudgeBench, {FEWER} random draws of the labels, {_DESIGN}",
    ),
    "score": Part(
        lambda plan: _cells(plan, plan.some(LLM), RUNS), score_run,
        lambda records, plan: _by(
            records, ["name", "truth", "labels"], ["set", "pass rate", "labels"],
            list(dict.fromkeys(records["way"])),
        ),
        f"{RUNS} random draws of the labels, {_DESIGN}",
    ),
}  # fmt: skip


if __name__ == "__main__":
    run_page(__doc__, "judges", PARTS, PARTS)
