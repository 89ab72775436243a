"""The acceptance settings: error of the rates on simulated votes, the same ones for all methods."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from curves_data import stream
from parts import SEED, Arguments, Part, Plan, Record
from runs import number, plus_minus, table
from votes_methods import BASELINES, Method, sampled, small, together
from votes_worlds import SETTINGS

_SWEEPS = {"burn_in": 500, "sweeps": 1500, "thin": 5}
_REPLICATES = {"S1": 20, "S2": 20, "S3": 20, "S4": 4}
_SAMPLED = ("cbcc", "bee", "cbee", "hcbee")
_LARGE_ONLY = ("agreement-rates", "crowd-svm")

_MEASURED = {
    "S1": ("3.46e-3", "3.56e-3", "3.58e-3", "2.94e-3", "2.45e-3", "1.50e-3", "3.00e-3", "", ""),
    "S2": ("2.21e-3", "2.47e-3", "2.43e-3", "9.2e-4", "1.62e-3", "1.13e-3", "7.1e-4", "", ""),
    "S3": ("5.44e-3", "6.48e-3", "6.53e-3", "6.59e-3", "5.28e-3", "2.64e-3", "6.48e-3", "", ""),
    "S4": ("7.8e-4", "1.09e-4", "1.11e-4", "1.13e-4", "1.12e-4", "4.2e-5", "2.3e-5", "1.2e-4",
           "3.1e-4"),
}  # fmt: skip
"""Mean squared errors by the reference, of 14 replicates (S4: 4)."""

_PAIRS = (
    ("S1", "bee", "cbee", "1.63", "1.2"),
    ("S2", "bee", "hcbee", "2.28", "1.6"),
    ("S2", "cbee", "hcbee", "1.59", ""),
    ("S3", "bee", "cbee", "2.0", "1.5"),
    ("S4", "bee", "cbee", "2.7", ""),
    ("S4", "bee", "hcbee", "4.9", ""),
    ("S1", "bee", "hcbee", ".82", ""),
    ("S3", "bee", "hcbee", ".82", ""),
)
"""Setting, worse and better model, the reference's ratio, and the target."""


def methods_of(setting: str) -> dict[str, Method]:
    """What is compared: two methods are too slow, or have too few items, but for S4."""
    first = ("majority-vote", "dawid-skene", "dawid-skene, one rate")
    found = {name: BASELINES[name] for name in first}
    found |= {name: together(sampled(name, **_SWEEPS)) for name in _SAMPLED}
    if setting == "S4":
        found |= {name: BASELINES[name] for name in _LARGE_ONLY}
    return found


def settings_cells(plan: Plan) -> list[Arguments]:
    """Every replicate; S4 last, as it is long."""
    names = ["S1"] if plan.quick else list(SETTINGS)
    return [
        {"setting": name, "replicate": r}
        for name in names
        for r in (range(2) if plan.quick else range(_REPLICATES[name]))
    ]


def settings_run(data: Path, setting: str, replicate: int) -> list[Record]:
    """Squared error of every method on one world, the mean over domains and classifiers."""
    world = SETTINGS[setting](stream("votes", setting, replicate))
    predictions = world.predictions()
    records = []
    for name, method in methods_of(setting).items():
        error = ((method(predictions, replicate).error - world.error) ** 2).mean()
        records.append(
            {"setting": setting, "replicate": replicate, "method": name, "error": float(error)}
        )
    return records


def settings_blocks(records: pd.DataFrame, plan: Plan) -> dict[str, str]:
    """Mean squared errors beside the reference's, and differences between pairs of models."""
    methods = list(dict.fromkeys(records["method"]))
    rows = []
    for setting, own in records.groupby("setting", sort=False):
        mean = own.groupby("method")["error"].mean()
        best = mean.idxmin()
        cells = [small(mean[m]) if m in mean else "" for m in methods]
        cells = [f"**{c}**" if m == best else c for c, m in zip(cells, methods, strict=True)]
        rows.append([f"{setting}, {own['replicate'].nunique()} replicates", *cells])
        rows.append(["reference", *_MEASURED[str(setting)][: len(methods)]])
    header = ["pair", "difference", "wins", "z", "ratio", "reference's ratio", "target"]
    pairs = [_pair(records, *pair) for pair in _PAIRS if pair[0] in set(records["setting"])]
    return {"settings": f"{table(['', *methods], rows)}\n\n{table(header, pairs)}"}


def _pair(
    records: pd.DataFrame, setting: str, worse: str, better: str, ratio: str, target: str
) -> list[str]:
    """How much more one model errs than another, world by world."""
    own = records[records["setting"] == setting].pivot(
        index="replicate", columns="method", values="error"
    )
    gap = own[worse] - own[better]
    return [
        f"{setting}: {worse} - {better}",
        plus_minus(gap, small),
        f"{int((gap > 0).sum())} of {len(gap)}",
        number(gap.mean() / gap.sem(), 1),
        number(own[worse].mean() / own[better].mean(), 2),
        ratio,
        f"at least {target}, z > 3" if target else "",
    ]


SETTINGS_PART = Part(
    settings_cells,
    settings_run,
    settings_blocks,
    "20 replicates (S4: 4), 500 + 1,500 sweeps of one chain, alpha = gamma = 1, "
    f"seed {SEED}; ± is the standard error of the mean of paired differences",
)
