"""Figure 4 of the BEE paper with the paper's own settings: NELL and the brain data.

    python benchmarks/votes_paper.py [--data DIR] [--work DIR] [--workers N] [--only nell brain]
        [--resume] [--quick]

4,000 sweeps of burn-in and 2,000 of which every tenth is kept, one chain, 10 repeats at 10% of the
rows; coupled models with the staged sampler (collapsed burn-in, then uncollapsed), concentrations
1 and by the likelihood of held-out votes. Beside them crowd-SVM with equal and with learned class
shares. The tables go to docs/benchmarks/votes-paper.md. `votes.py` has the defaults, on the same
rows.
"""

from __future__ import annotations

import argparse
import os
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

import fewlabels
import fewlabels as fl
from curves_data import stream
from curves_parts import SEED, Arguments, Part, Plan, Record, number, run_part, table
from paper import fill
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
_FEW = {"crowd-svm": 1, "crowd-svm, learned class shares": 1}
"""Repeats at 10% of what takes minutes."""


def _cells(plan: Plan) -> list[Arguments]:
    names = ["bee", "crowd-svm, learned class shares"] if plan.quick else list(METHODS)
    cells: list[Arguments] = []
    for name in names:
        if not plan.quick:
            cells.append({"method": name, "percent": _ALL, "repeat": 0})
        repeats = plan.trials(_FEW.get(name, _REPEATS))
        cells += [{"method": name, "percent": 10, "repeat": r} for r in repeats]
    return cells


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


def main() -> None:
    """Run what is asked for, and fill the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = os.environ.get("FEWLABELS_DATA", ROOT.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=Path(default))
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "votes-paper")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--resume", action="store_true", help="go on with what is in --work")
    parser.add_argument("--quick", action="store_true", help="a few cells, on a copy of the page")
    given = parser.parse_args()
    if not given.data.is_dir():
        parser.error(f"no data at {given.data}; name the folder with --data or FEWLABELS_DATA")
    work = given.work / "quick" if given.quick else given.work
    work.mkdir(parents=True, exist_ok=True)
    page = PAGE
    if given.quick:
        page = work / PAGE.name
        shutil.copyfile(PAGE, page)
    plan = Plan(given.data.resolve(), page.parent / "figures", given.quick)
    for name in given.only:
        if not given.resume:
            shutil.rmtree(work / name, ignore_errors=True)
        part = PARTS[name]
        found, seconds = run_part(name, part, plan, work / name, given.workers, "without --resume")
        caption = (
            f"`python benchmarks/votes_paper.py --only {name}{' --quick' * given.quick}`: "
            f"{part.design}. fewlabels {fewlabels.__version__}, {seconds / 60:.1f} minutes of one "
            "processor."
        )
        fill(page, {mark: f"{caption}\n\n{text}" for mark, text in found.items()})
    print(f"wrote {page}")


if __name__ == "__main__":
    main()
