"""Figure 4 of the BEE paper with the paper's own settings: NELL and the brain data.

    python benchmarks/votes_paper.py all | nell | brain
        [--data DIR] [--work DIR] [--workers N] [--fresh] [--quick]

4,000 sweeps of burn-in and 2,000 of which every tenth is kept, one chain, 10 repeats at 10% of the
rows; coupled models with the staged sampler (collapsed burn-in, then uncollapsed), concentrations
1 and by the likelihood of held-out votes. Beside them crowd-SVM with equal and with learned class
shares. The tables go to docs/benchmarks/votes-paper.md. `votes.py` has the defaults, on the same
rows.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

import fewlabels as fl
from curves_data import stream
from curves_parts import SEED, Arguments, Part, Plan, Record, number, run_page, table
from votes_methods import Method, apart, small, together
from votes_nell import errors, read_brain, read_nell

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "benchmarks" / "votes-paper.md"
_ALL, _REPEATS = 100, 10
_SHARES = (_ALL, 10)

_LENGTH = {"burn_in": 4_000, "sweeps": 2_000, "thin": 10, "chains": 1}
_STAGED = {**_LENGTH, "sampler": "collapsed then uncollapsed"}
_HELD_OUT = {**_STAGED, "concentration": "held-out"}

METHODS: dict[str, Method] = {
    "bee": together(fl.models.BEE(**_LENGTH)),
    "cbee": together(fl.models.CBEE(**_STAGED)),
    "cbee, held-out alpha": together(fl.models.CBEE(**_HELD_OUT)),
    "cbee, held-out alpha, one split": together(fl.models.CBEE(**_HELD_OUT, selection="split")),
    "hcbee": together(fl.models.HCBEE(**_STAGED)),
    "hcbee, held-out alpha and gamma": together(
        fl.models.HCBEE(**_HELD_OUT, top_concentration="held-out")
    ),
    "crowd-svm": apart(fl.models.CrowdSVM()),
    "crowd-svm, learned class shares": apart(fl.models.CrowdSVM(class_shares="learned")),
}
_HELD = tuple(name for name in METHODS if "held-out" in name)
_FEW = {"hcbee": 5} | dict.fromkeys(("crowd-svm", "crowd-svm, learned class shares", *_HELD), 1)
"""Repeats at 10% of what takes minutes; held-out concentrations take hours on all rows."""


def _cells(plan: Plan) -> list[Arguments]:
    names = ["bee", "crowd-svm, learned class shares"] if plan.quick else list(METHODS)
    cells: list[Arguments] = []
    for name in names:
        repeats = plan.trials(_FEW.get(name, _REPEATS))
        cells += [{"method": name, "percent": 10, "repeat": r} for r in repeats]
    whole = [] if plan.quick else [name for name in names if name not in _HELD]
    return cells + [{"method": name, "percent": _ALL, "repeat": 0} for name in whole]


def _run(data: Path, method: str, percent: int, repeat: int, *, brain: bool) -> list[Record]:
    own = (read_brain if brain else read_nell)(data)
    own = own.sample(percent, stream("votes", "nell", repeat))
    found = METHODS[method](own.predictions(), repeat)
    return [{"method": method, "percent": percent, "repeat": repeat, **errors(own, found)}]


def _blocks(records: pd.DataFrame, plan: Plan, *, mark: str) -> dict[str, str]:
    rows = []
    for method, own in records.groupby("method", sort=False):
        row = [str(method)]
        for percent in _SHARES:
            some = own[own["percent"] == percent]
            row += [_mean(some["mse"], small), _mean(some["mad"]), _mean(some["hard"])]
        rows.append([*row, str((own["percent"] == 10).sum())])
    columns = ("MSE", "MAD", "wrong labels")
    header = ["method", *(f"{p}%: {c}" for p in _SHARES for c in columns), "repeats at 10%"]
    return {mark: table(header, rows)}


def _mean(values: pd.Series, write=lambda v: number(v, 4)) -> str:
    if not len(values):
        return "-"
    if len(values) == 1:
        return write(values.iloc[0])
    return f"{write(values.mean())} ± {write(values.std(ddof=1) / np.sqrt(len(values)))}"


_DESIGN = f"the paper's lengths and stages; seed {SEED}; ± is the standard error over repeats"
PARTS = {
    name: Part(_cells, partial(_run, brain=name == "brain"), partial(_blocks, mark=name), _DESIGN)
    for name in ("nell", "brain")
}


if __name__ == "__main__":
    run_page(__doc__ or "", "votes_paper", PARTS, PAGE, set(PARTS))
