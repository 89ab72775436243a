"""How good is it now, with few labels or none: `fewlabels monitor` beside other ways.

    python -m benchmarks monitor all | simulated | real [--worlds 40] [--looked 8]

Simulated classifiers of seven kinds of drift over 30 periods, and dated data, of which 0, 5, 20 or
50 labels a period are shown. Estimates and 95% intervals of each period are judged by all labels of
its items. Alarms are judged by how far accuracy in the population has fallen below that of the
reference. In the first worlds of each kind, as many as `--looked` says, the command runs again as
of every third period, with what was there by then. NannyML sees the same reference, and needs
`pip install --group monitors`. The page is docs/benchmarks/monitor.md.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import fewlabels as fl
import monitor_cases as cases
from bench.world import mean_of, measured
from fewlabels.checks.conditions import NOT_RANDOM
from monitor_cases import DRIFTS, LEAGUES, PERIODS, YEAR, Case, Floats
from parts import SEED, Arguments, Part, Plan, Record, run_page
from runs import averaged, grouped, number, share, where

METRICS, LABELS, LEVEL = ("accuracy", "precision", "recall", "auc"), (0, 5, 20, 50), 0.95
SETS, RUNS = (*LEAGUES, "semeval", "civilcomments"), 2
SPAN, LOOK = 10, 3
"""Periods that a record sums up, and periods between two looks."""

FALL, HARMLESS = 0.05, 0.025
"""A fall of accuracy that is to be found, the tolerance, and one of which no alarm is due."""

OURS, HINDSIGHT = "fewlabels", "fewlabels, in hindsight"


Ways = dict[str, Floats]
"""Estimates of ways: arrays (value, low, high) of (T, M, metrics); or their alarms (T, M). NaN
where there was no look."""


def run(data: Path, kind: str, labels: int, world: int, looked: bool = False) -> list[Record]:
    """Errors and intervals by way, metric and span, and alarms by way, in one world."""
    case, truth, others = _world(data, kind, world)
    names = list(dict.fromkeys(case.items.groups["period"].tolist()))
    shown = case.items.with_labels(np.where(case.rank < labels, case.items.labels, -1))
    values, alarms, held = _ours(case, shown, names, looked)
    for part, found in (_labels(case, shown, labels), others):
        values, alarms = values | part, alarms | found
    found = [*_errors(values, truth, held), *_alarms(alarms, case.fall)]
    return [{"kind": kind, "labels": labels, "world": world} | one for one in found]


@lru_cache(maxsize=2)
def _world(data: Path, kind: str, world: int) -> tuple[Case, Floats, tuple[Ways, Ways]]:
    """A world, its true metrics by period (T, M, metrics), and what sees no labels of its periods.

    These are the same whatever the number of labels.
    """
    case = cases.simulated(kind, world) if kind in DRIFTS else cases.real(data, kind, world)
    truth = measured(case.items, METRICS, ("period",))[1][1:]  # not of all periods
    return case, truth, _nannyml(case)


def _ours(
    case: Case, shown: fl.Predictions, names: list[Any], looked: bool
) -> tuple[Ways, Ways, Floats]:
    """What `monitor` says in hindsight, and looked at as time goes; where its status is ok."""
    size = (len(names), shown.n_models, len(METRICS))
    ask = partial(fl.monitor, time="period", every=case.every, reference=case.reference,
                  confidence_level=LEVEL, tolerance=FALL)  # fmt: skip
    found = ask(shown, metrics=METRICS)
    values, ok = np.full((3, *size), np.nan), np.zeros(size)
    places = {f"period={name}": t for t, name in enumerate(names)}
    for row in found.rows:
        if row.group in places:  # months without a game are none
            at = places[row.group], shown.models.index(row.model), METRICS.index(row.metric)
            values[:, *at], ok[at] = (row.value, row.low, row.high), row.status == "ok"
    there = [f"period={p.name}" in places for p in found.periods]
    falls = [found.falls["accuracy", model].alarm[there] for model in shown.models]
    estimates = {OURS: values}
    random = NOT_RANDOM not in found.diagnostics  # else nothing is an alarm
    alarms = {HINDSIGHT: (random & np.stack(falls, axis=1)).astype(float)}
    if looked:
        now, alarm = np.full((3, *size), np.nan), np.full(size[:2], np.nan)
        for t in range(LOOK - 1, len(names), LOOK):
            until = np.isin(shown.groups["period"], names[: t + 1])
            then = ask(shown.take(until), metrics="accuracy")
            last = then.periods[-1].name
            for m, model in enumerate(shown.models):
                row = then.get(model, "accuracy", last)
                now[:, t, m, 0] = row.value, row.low, row.high
                alarm[t, m] = any(change.model == model for change in then.alarms)
        estimates["fewlabels, as of then"], alarms[OURS] = now, alarm
    return estimates, alarms, ok


def _labels(case: Case, shown: fl.Predictions, labels: int) -> tuple[Ways, Ways]:
    """Metrics of the labels of each period alone, the reference's, and a CUSUM's alarms."""
    before = measured(case.reference, METRICS)[1][0]
    size = (3, len(case.fall), *before.shape)
    values = {"reference": np.full(size, np.nan)}
    values["reference"][0] = before
    if not labels:
        return values, {}
    known = shown.take(shown.labeled)
    period = known.groups["period"]
    right = pd.DataFrame(known.hard == known.labels[:, None]).groupby(period).sum().to_numpy()
    counts = pd.Series(period).groupby(period).size().to_numpy()
    alone, alarms = np.full(size, np.nan), np.zeros(right.shape)
    alone[0] = measured(known, METRICS, ("period",))[1][1:]
    for m in range(shown.n_models):
        alone[1:, :, m, 0] = cases.wilson(right[:, m], counts, LEVEL)
        wrong = counts - right[:, m]
        alarms[:, m] = cases.cusum(wrong, counts, 1 - before[m, 0]) > cases.limit(labels)
    return values | {"labels only": alone}, {"CUSUM": alarms}


def _nannyml(case: Case) -> tuple[Ways, Ways]:
    """CBPE and DLE, which see no labels but the reference's."""
    values: Ways = {}
    alarms: Ways = {}
    for way, models in cases.nannyml(case, METRICS).items() if cases.has_nannyml() else ():
        *ends, alert = (np.stack(part, axis=1) for part in zip(*models, strict=True))
        alarms[way] = alert[..., 0]
        values[way] = np.full((3, *alert.shape[:2], len(METRICS)), np.nan)
        values[way][..., : alert.shape[2]] = ends  # DLE's is accuracy alone
    return values, alarms


def _errors(values: Ways, truth: Floats, ok: Floats) -> Iterator[Record]:
    """Means over the periods of a span, of those in which the truth is defined."""
    for way, (value, low, high) in values.items():
        bounded = np.isfinite(low)
        held = (low <= truth + 1e-9) & (truth <= high + 1e-9)
        each = {"error": np.abs(value - truth), "width": high - low,
                "held": np.where(bounded, held, np.nan)}  # fmt: skip
        if way == OURS:
            each |= {"ok": ok, "held_ok": np.where(bounded & (ok > 0), held, np.nan)}
        for k, start in product(range(len(METRICS)), range(0, len(truth), SPAN)):
            part = np.s_[start : start + SPAN, :, k]
            defined = np.isfinite(truth[part]) & np.isfinite(value[part])
            if defined.any():
                means = {n: round(mean_of(a[part][defined]), 5) for n, a in each.items()}
                yield {"what": "estimate", "way": way, "metric": METRICS[k],
                       "span": start // SPAN, **means}  # fmt: skip


def _alarms(alarms: Ways, fall: Floats) -> Iterator[Record]:
    """False alarms where accuracy is about what it was, and the delay of the first that is due."""
    for (way, alarm), m in product(alarms.items(), range(fall.shape[1])):
        quiet = np.isfinite(alarm[:, m]) & (fall[:, m] < HARMLESS)
        fell = np.flatnonzero(fall[:, m] > FALL)
        record = {"what": "alarm", "way": way, "quiet": int(quiet.sum()),
                  "false": int(alarm[quiet, m].sum())}  # fmt: skip
        if len(fell):
            due = np.flatnonzero((alarm[:, m] == 1) & (np.arange(len(fall)) >= fell[0]))
            record |= {"found": len(due) > 0, "delay": int(due[0] - fell[0]) if len(due) else None}
        yield record


def blocks(records: pd.DataFrame, plan: Plan) -> dict[str, str]:
    """Coverage, errors and alarms, by kind and number of labels."""
    if not cases.has_nannyml():
        print("NannyML is not there: pip install --group monitors", file=sys.stderr)
    by, name = ["kind", "labels"], plan.part
    estimates = records[records["what"] == "estimate"]
    ours = estimates[estimates["way"] == OURS]
    spans = {f"periods {SPAN * s + 1} to {SPAN * (s + 1)}": s for s in range(PERIODS // SPAN)}
    columns = {f"{m} holds": where("metric", m, share("held")) for m in METRICS}
    columns |= {title: where("span", s, share("held")) for title, s in spans.items()}
    columns |= {"status ok": share("ok"), "holds where ok": share("held_ok")}
    columns |= {f"{m}, width": where("metric", m, averaged("width")) for m in METRICS}
    out = {f"{name}-coverage": grouped(ours, by, columns)}
    ways = (OURS, "labels only", "CBPE", "DLE", "reference")
    errors = {way: where("way", way, averaged("error")) for way in ways}
    out[f"{name}-errors"] = grouped(estimates, [*by, "metric"], errors)
    ways = (OURS, "fewlabels, as of then", "labels only", "CBPE", "DLE")
    accuracy = estimates[estimates["metric"] == "accuracy"]
    out[f"{name}-intervals"] = grouped(accuracy, by, {w: where("way", w, _holds) for w in ways})
    alarms = records[records["what"] == "alarm"]
    ways = (OURS, HINDSIGHT, "CUSUM", "CBPE", "DLE")
    out[f"{name}-alarms"] = grouped(alarms, by, {w: where("way", w, _alarmed) for w in ways})
    return out


def _holds(own: pd.DataFrame) -> str:
    return f"{share('held')(own)} at {number(own['width'].mean(), 2)}" if len(own) else "-"


def _alarmed(own: pd.DataFrame) -> str:
    """False alarms a year; of the falls, how many are found, and the median delay."""
    if not len(own):
        return "-"
    false = f"{YEAR * own['false'].sum() / max(own['quiet'].sum(), 1):.1f}"
    fell = own[own["found"].notna()] if "found" in own else own[:0]
    if not len(fell):
        return false
    delay = fell["delay"].astype(float).median()
    return f"{false}; {int(fell['found'].sum())} of {len(fell)}, {number(delay, 1)}"


def cells(plan: Plan) -> list[Arguments]:
    """A cell for each world and number of labels."""
    asked = plan.asked
    if plan.part == "real":
        runs = range(min(RUNS, asked["worlds"]))
        every = product(plan.some(SETS, -2), plan.some(LABELS, -2), runs)
        return [{"kind": k, "labels": n, "world": w} for k, n, w in every]
    return [
        {"kind": kind, "labels": n, "world": w, "looked": w < asked["looked"]}
        for w in plan.some(range(asked["worlds"])) for kind in DRIFTS for n in plan.some(LABELS, -2)
        if n or kind != "complaints"
    ]  # fmt: skip


_DESIGN = f"{LEVEL:.0%} intervals of these items, seed {SEED}"
PARTS = {
    "simulated": Part(cells, run, blocks, f"{PERIODS} periods a world, {_DESIGN}"),
    "real": Part(cells, run, blocks, f"{RUNS} choices of labels, {_DESIGN}"),
}


if __name__ == "__main__":
    warnings.filterwarnings("ignore", category=FutureWarning)
    run_page(__doc__, "monitor", PARTS, {"real"}, worlds=40, looked=8)
