"""Error rates and labels from votes, measured against labels and known truth.

    python -m benchmarks votes all | nell | brain | honest | settings ...

The page is docs/benchmarks/votes.md. Here is how often intervals hold the truth where no model's
own prior made the votes: on NELL, the brain data and nine crowd sets; error rates of the items at
hand (`estimand="sample"`), 90% intervals, `auto` beside `bee`.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import fewlabels as fl
from fewlabels.kernels.arrays import Floats
from parts import SEED, Arguments, Part, Plan, Record, run_page, stream
from runs import averaged, grouped, where
from votes_methods import CROWDS, domains_of, read_crowd
from votes_nell import BRAIN, NELL, read_brain, read_nell
from votes_settings import SETTINGS_PART

_TENTHS = 3
_LEVEL = 0.9
_LEAST = 20
"""Votes of a classifier on items whose truth is known, to be judged."""

METHODS = ("auto", "bee")


def honest_cells(plan: Plan) -> list[Arguments]:
    """Real sets, and random tenths of those with domains."""
    whole: list[int | None] = [] if plan.quick else [None]
    cells = [
        {"what": name, "tenth": r}
        for name in plan.some(["nell", "brain"], -1)
        for r in [*whole, *plan.some(range(_TENTHS))]
    ]
    return cells + [{"what": f"crowd: {c}", "tenth": None} for c in plan.some(CROWDS)]


def honest_run(data: Path, what: str, tenth: int | None) -> list[Record]:
    """Whether the intervals hold the truth."""
    name = what if tenth is None else f"{what}, a tenth"
    predictions, truth, rows = _set(data, name, tenth)
    records = []
    for method in METHODS:
        low, value, high, status = _intervals(predictions, method)
        some = ~np.isnan(truth) & (rows >= _LEAST) & ~np.isnan(low)
        held = (low <= truth + 1e-12) & (truth <= high + 1e-12)
        records.append({
            "what": name, "set": tenth or 0, "method": method, "status": status,
            "held": float(held[some].mean()), "rates": int(some.sum()),
            "width": float((high - low)[some].mean()),
            "off": float(np.abs(value - truth)[some].mean()),
        })  # fmt: skip
    return records


def _set(data: Path, name: str, tenth: int | None) -> tuple[fl.Predictions, Floats, Floats]:
    """The votes, the true error rates (D, M), and how many votes each is of."""

    def truth(votes: Floats, labels: Floats) -> tuple[Floats, Floats]:
        given = votes >= 0
        rows = given.sum(axis=0)
        with np.errstate(invalid="ignore"):
            return (((votes != labels[:, None]) & given).sum(axis=0) / rows)[None], rows[None]

    if name.startswith("crowd: "):
        crowd = read_crowd(data, name.removeprefix("crowd: "))
        return crowd.predictions, *truth(crowd.predictions.hard[crowd.items], crowd.gold)
    found = (read_nell if name.startswith("nell") else read_brain)(data)
    if tenth is not None:
        found = found.sample(10, stream("votes", "honest", name, tenth))
    predictions = found.predictions()
    domains = domains_of(predictions).values()
    parts = [truth(found.votes[rows], found.labels[rows]) for rows in domains]
    return predictions, *(np.concatenate(kind) for kind in zip(*parts, strict=True))


def _intervals(predictions: fl.Predictions, method: str) -> tuple[Floats, Floats, Floats, str]:
    """Low, value and high of every error rate, (D, M), and the status."""
    by = [] if predictions.domain is None else ["domain"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = fl.estimate(
            predictions, method, "error_rate", by=by, confidence_level=_LEVEL, estimand="sample"
        )
    rows = [r for r in found.rows if bool(by) == (r.group is not None)]
    domains = list(dict.fromkeys(r.group or "" for r in rows))
    ends = pd.DataFrame({(r.group or "", r.model): (r.low, r.value, r.high) for r in rows})
    places = pd.MultiIndex.from_product([domains, predictions.models])
    low, value, high = ends.reindex(columns=places).to_numpy().reshape(3, len(domains), -1)
    return low, value, high, str(rows[0].status)


def honest_blocks(records: pd.DataFrame, plan: Plan) -> str:
    """Coverage, width and error of every set."""

    def coverage(own: pd.DataFrame) -> str:
        mean, spread = np.average(own["held"], weights=own["rates"]), own["held"].sem()
        return f"{mean:.0%}" + ("" if np.isnan(spread) else f" ± {100 * spread:.0f}")

    figures = {"coverage": coverage, "width": averaged("width"), "error": averaged("off")}
    columns = {
        "sets": lambda own: own["set"].nunique(),
        "error rates": where("method", "auto", lambda own: own["rates"].sum()),
        **{f"{m}: {name}": where("method", m, say)
           for m in METHODS for name, say in figures.items()},
        "auto: not-converged": where(
            "method", "auto", lambda own: f"{(own['status'] == 'not-converged').mean():.0%}"
        ),
    }  # fmt: skip
    return grouped(records, ["what"], columns, ["votes"])


HONEST = Part(
    honest_cells, honest_run, honest_blocks,
    f"NELL and the brain data, all rows and {_TENTHS} random tenths, domain by domain, and nine "
    f"crowd sets with gold; classifiers with {_LEAST} votes on items whose truth is known; 90% "
    f"intervals of error rates of the items at hand, no labels; seed {SEED}; ± is the standard "
    "error over sets, in points",
)  # fmt: skip

PARTS = {"nell": NELL, "brain": BRAIN, "honest": HONEST, "settings": SETTINGS_PART}


if __name__ == "__main__":
    run_page(__doc__, "votes", PARTS, {"nell", "brain", "honest"})
