"""How often intervals from votes hold the truth where no model's own prior made the votes.

Twelve simulated families, NELL, the brain data and nine crowd sets. Error rates of the items at
hand (`estimand="sample"`), 90% intervals, `auto` beside `bee`.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import fewlabels as fl
from curves_data import stream
from fewlabels.kernels.arrays import Floats
from parts import SEED, Arguments, Part, Plan, Record
from runs import averaged, grouped, where
from votes_crowd import SETS as CROWD_SETS
from votes_crowd import read_crowd
from votes_families import FAMILIES
from votes_nell import read_brain, read_nell

_WORLDS, _BATCH = 100, 10
_TENTHS = 3
_LEVEL = 0.9
_LEAST = 20
"""Votes of a classifier on items whose truth is known, to be judged."""

METHODS = ("auto", "bee")


def honest_cells(plan: Plan) -> list[Arguments]:
    """Batches of worlds of every family; real sets, and random tenths of those with domains."""
    cells: list[Arguments] = []
    for name in plan.some(["nell", "brain"], 1):
        if not plan.quick:
            cells.append({"what": name, "first": 0, "size": 1})
        cells += [{"what": f"{name}, a tenth", "first": r, "size": 1} for r in plan.trials(_TENTHS)]
    crowds = ["bluebird"] if plan.quick else list(CROWD_SETS)
    cells += [{"what": f"crowd: {c}", "first": 0, "size": 1} for c in crowds]
    names, size = plan.some(list(FAMILIES), 1), 2 if plan.quick else _BATCH
    firsts = range(0, _BATCH if plan.quick else _WORLDS, _BATCH)
    return cells + [{"what": n, "first": f, "size": size} for f in firsts for n in names]


def honest_run(data: Path, what: str, first: int, size: int) -> list[Record]:
    """Whether the intervals hold the truth, set by set."""
    records = []
    for number_ in range(first, first + size):
        predictions, truth, rows = _set(data, what, number_)
        for method in METHODS:
            low, value, high, status = _intervals(predictions, method)
            some = ~np.isnan(truth) & (rows >= _LEAST) & ~np.isnan(low)
            held = (low <= truth + 1e-12) & (truth <= high + 1e-12)
            records.append({
                "what": what, "set": number_, "method": method, "status": status,
                "held": float(held[some].mean()), "rates": int(some.sum()),
                "width": float((high - low)[some].mean()),
                "off": float(np.abs(value - truth)[some].mean()),
            })  # fmt: skip
    return records


def _set(data: Path, what: str, number_: int) -> tuple[fl.Predictions, Floats, Floats]:
    """The votes, the true error rates (D, M), and how many votes each is of."""
    if what in FAMILIES:
        world = FAMILIES[what](stream("votes", "honest", what, number_))
        classes = tuple(range(world.n_classes))
        predictions = fl.Predictions(votes=world.votes, classes=classes)
        return predictions, *_truth(world.votes, world.labels)
    if what.startswith("crowd: "):
        crowd = read_crowd(data, what.removeprefix("crowd: "))
        votes = crowd.predictions.hard[crowd.items]
        return crowd.predictions, *_truth(votes, crowd.gold)
    read = read_nell if what.startswith("nell") else read_brain
    found = read(data)
    if what.endswith("a tenth"):
        found = found.sample(10, stream("votes", "honest", what, number_))
    parts = [
        _truth(found.votes[found.domain == d], found.labels[found.domain == d])
        for d in dict.fromkeys(found.domain.tolist())
    ]
    return found.predictions(), *(np.concatenate(kind) for kind in zip(*parts, strict=True))


def _truth(votes: Floats, labels: Floats) -> tuple[Floats, Floats]:
    """Error rates (1, M) on the items whose label is known, and of how many votes."""
    given = votes >= 0
    rows = given.sum(axis=0)
    with np.errstate(invalid="ignore"):
        return (((votes != labels[:, None]) & given).sum(axis=0) / rows)[None], rows[None]


def _intervals(predictions: fl.Predictions, method: str) -> tuple[Floats, Floats, Floats, str]:
    """Low, value and high of every error rate, (D, M), and the status."""
    by = [] if predictions.domain is None else ["domain"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = fl.estimate(
            predictions, method, "error_rate", by=by, confidence_level=_LEVEL, estimand="sample"
        )
    rows = [e for e in found.to_dict()["estimates"] if bool(by) == (e["group"] is not None)]
    domains = list(dict.fromkeys(e["group"] for e in rows))
    place = {name: j for j, name in enumerate(predictions.models)}
    out = np.full((3, len(domains), len(place)), np.nan)
    for e in rows:
        values = (e["low"], e["value"], e["high"])
        out[:, domains.index(e["group"]), place[e["model"]]] = [
            np.nan if v is None else v for v in values
        ]
    return out[0], out[1], out[2], rows[0]["status"]


def honest_blocks(records: pd.DataFrame, plan: Plan) -> dict[str, str]:
    """Coverage, width and error of every family and set."""

    def coverage(own: pd.DataFrame) -> str:
        mean, spread = np.average(own["held"], weights=own["rates"]), own["held"].sem()
        return f"{mean:.0%}" + ("" if np.isnan(spread) else f" ± {100 * spread:.0f}")

    figures = {"coverage": coverage, "width": averaged("width"), "error": averaged("off")}
    columns = {
        "sets": lambda own: own["set"].nunique(),
        "error rates": where("method", "auto", lambda own: own["rates"].sum()),
        **{
            f"{m}: {name}": where("method", m, say)
            for m in METHODS
            for name, say in figures.items()
        },
        "auto: not-converged": where(
            "method", "auto", lambda own: f"{(own['status'] == 'not-converged').mean():.0%}"
        ),
    }
    return {"honest": grouped(records, ["what"], columns, ["votes"])}


HONEST = Part(
    honest_cells,
    honest_run,
    honest_blocks,
    f"{_WORLDS} worlds of each of twelve families (`votes_families.py`), NELL and the brain data, "
    f"all rows and {_TENTHS} random tenths, domain by domain, and nine crowd sets with gold; "
    f"classifiers with {_LEAST} votes on items whose truth is known; 90% intervals of error rates "
    f"of the items at hand, no labels; seed {SEED}; ± is the standard error over sets, in points",
)
