"""Coverage of the intervals of error rates and class shares, on votes from each model's prior."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from curves_data import stream
from fewlabels.kernels.arrays import Floats
from parts import SEED, Arguments, Part, Plan, Record
from runs import averaged, grouped, where
from votes_methods import sampled
from votes_worlds import Size, from_prior

_LEVELS = (0.5, 0.9, 0.95)
_SETS = 300
_MISSING = 0.15

# Name of a row -> model, size of a data set. Models that share nothing across domains are fitted
# to all data sets at once, each as a domain.
_CASES: dict[str, tuple[str, Size]] = {
    "bee": ("bee", Size(1, 4, 30, 2, _MISSING)),
    "cbcc": ("cbcc", Size(1, 4, 30, 2, _MISSING)),
    "confusion-bee": ("confusion-bee", Size(1, 4, 30, 2, _MISSING)),
    "confusion-bee, 3 classes": ("confusion-bee", Size(1, 4, 30, 3, _MISSING)),
    "cbee": ("cbee", Size(5, 3, 25, 2, _MISSING)),
    "hcbee": ("hcbee", Size(4, 3, 25, 2, _MISSING)),
    "confusion-cbee": ("confusion-cbee", Size(5, 3, 25, 2, _MISSING)),
    "confusion-hcbee": ("confusion-hcbee", Size(4, 3, 25, 2, _MISSING)),
}
_APART = {"burn_in": 500, "sweeps": 4000, "thin": 8}
_COUPLED = {"burn_in": 300, "sweeps": 2400, "thin": 6}
# Rates that are shared by tables and dishes remember for longer.
_FRANCHISE = {"burn_in": 300, "sweeps": 7200, "thin": 18}
_BATCH = 30


def coverage_cells(plan: Plan) -> list[Arguments]:
    """Batches of data sets; independent ones are one batch."""
    cells: list[Arguments] = []
    for case, (_, size) in _CASES.items():
        sets = 4 if plan.quick else _SETS
        batch = sets if size.domains == 1 else min(_BATCH, sets)
        cells += [{"case": case, "first": f, "size": batch} for f in range(0, sets, batch)]
    return cells


def coverage_run(data: Path, case: str, first: int, size: int) -> list[Record]:
    """Whether the intervals hold the truth, data set by data set."""
    model, shape = _CASES[case]
    if shape.domains == 1:
        found = _held(model, shape._replace(domains=size), case, first, _APART)
    else:
        options = _FRANCHISE if model.endswith("hcbee") else _COUPLED
        parts = [_held(model, shape, case, seed, options) for seed in range(first, first + size)]
        found = {name: np.array([p[name].mean(axis=0) for p in parts]) for name in parts[0]}
    return [
        {
            "case": case,
            "set": first + i,
            "what": what,
            **dict(zip(map(str, _LEVELS), row, strict=True)),
        }
        for what, rows in found.items()
        for i, row in enumerate(rows.tolist())
    ]


def _held(
    model: str, shape: Size, case: str, seed: int, options: dict[str, int]
) -> dict[str, Floats]:
    """Share of the error rates, and of the class shares, that the intervals hold, (D, levels)."""
    world = from_prior(model, shape, stream("votes", "coverage", case, seed))
    posterior = sampled(model, **options).infer(
        world.predictions(), np.random.default_rng([SEED, seed])
    )
    rates = posterior.vote_rates
    # Shares of the classes sum to one: the first says nothing new.
    return {
        "error rate": _inside(rates.error_rates, world.error),
        "class share": _inside(rates.shares[:, :, 1:], world.shares[:, 1:]),
    }


def _inside(draws: Floats, truth: Floats) -> Floats:
    """How many of the values (D, N) lie between quantiles of the draws (T, D, N), (D, levels)."""
    out = []
    for level in _LEVELS:
        low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
        out.append(((low <= truth) & (truth <= high)).mean(axis=1))
    return np.stack(out, axis=1)


def coverage_blocks(records: pd.DataFrame, plan: Plan) -> dict[str, str]:
    """Coverage of every level by model."""
    columns: dict[str, Any] = {"data sets": lambda own: own["set"].nunique()}
    for what, letter in (("error rate", "e"), ("class share", "p")):
        for level in _LEVELS:
            held = averaged(str(level), spread="sem")
            columns[f"{letter}, {level:.0%}"] = where("what", what, held)
    return {"coverage": grouped(records, ["case"], columns, ["model"])}


COVERAGE = Part(
    coverage_cells,
    coverage_run,
    coverage_blocks,
    f"{_SETS} data sets of each model's own prior, {_MISSING:.0%} of the votes missing: one domain "
    "of 30 items, 4 classifiers; coupled models 5 (hcbee: 4) domains of 25 items, 3 classifiers; "
    "one chain of 500 + 4,000 sweeps (cbee: 300 + 2,400, hcbee: 300 + 7,200); "
    f"seed {SEED}; ± is the standard error over data sets",
)
