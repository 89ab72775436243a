"""Maps of predictors, and what alpha-calibration changes item by item."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from bench.disagreement import SCALINGS, Trial, forecasts, method_of
from disagreement_data import CIFAR, MNIST, RUNS, SEED, SIZES, truth, world
from fewlabels.annotations import evaluate
from parts import Part, Plan, Record, Some, crossed
from runs import averaged, averages, grouped, panels, where

# --- the calibration-dispersion map of F.3 ------------------------------------------------------

_LABELS = SIZES[-1]


def _maps(data: Path, dataset: str, run: int) -> list[Record]:
    """Calibration loss and dispersion loss of every classifier under every scaling."""
    trial = Trial(world(data, dataset), SEED, run, _LABELS)
    found = []
    for scaling in SCALINGS:
        _, test = trial.scaled(scaling)
        for j, model in enumerate(trial.models):
            losses = evaluate(trial.histogram, test[:, j])
            place = {"dataset": dataset, "run": run, "model": model, "scaling": scaling}
            found.append({**place, "CL": losses["CL"], "DL": losses["DL"]})
    return found


def _maps_blocks(records: pd.DataFrame, plan: Plan) -> dict[str, str]:
    means = records.groupby(["dataset", "model", "scaling"], sort=False)[["CL", "DL"]].mean()
    means["CL"] = means["CL"].clip(lower=0.0)
    figure, axes = panels((9.2, 4.4), 1, 2)
    for axis, dataset in zip(axes, (MNIST, CIFAR), strict=True):
        for k, model in enumerate(dict.fromkeys(records[records.dataset == dataset].model)):
            cl, dl = means.loc[dataset, model].reindex(SCALINGS).to_numpy().T
            axis.plot(dl, cl, "-", color=f"C{k % 10}", lw=0.7, alpha=0.6)
            axis.plot(dl[:1], cl[:1], "o", color=f"C{k % 10}", ms=6, label=model)
            axis.plot(dl[1:], cl[1:], ".", color=f"C{k % 10}", ms=4)
        axis.set(title=dataset, xlabel="DL: what no recalibration removes", ylabel="CL")
        axis.legend(frameon=False, fontsize=7)
    pair = averages({"CL": 4, "DL": 4})
    columns = {f"{scaling}: CL / DL": where("scaling", scaling, pair) for scaling in SCALINGS}
    head = ["data", "classifier"]
    shown = grouped(means.reset_index(), ["dataset", "model"], columns, head)
    text = "Calibration loss against dispersion loss"
    picture = plan.picture(figure, "disagreement-maps", text)
    return {"maps": f"{picture}\n\n{shown}"}


# --- item by item: Figure 4 and equation 83 -----------------------------------------------------

_SHOWN = "cnn_e8"
_POINTS = 1500


def _items(data: Path, run: int) -> list[Record]:
    """Predicted disagreement of items before and after alpha-calibration, by whether it is mixed.

    The change of an item is the factor alpha0 / (alpha0 + 1) of equation 83 on its 1 - sum f^2.
    """
    trial = Trial(world(data, MNIST), SEED, run, _LABELS)
    q = truth(data)[trial.test]
    differ = 1 - (q**2).sum(axis=1)
    mixed = q.max(axis=1) < 1
    found = []
    before = {one.name: one for one in forecasts(trial, method_of("raw"))}
    for one in forecasts(trial, method_of("raw+alpha-features")):
        if one.posterior is None or one.name not in trial.models:
            continue
        plain = before[one.name].disagreement
        factor = np.where(plain > 1e-9, one.disagreement / np.maximum(plain, 1e-9), np.nan)
        moved = np.abs(one.posterior - one.probabilities[trial.again]).sum(axis=1)
        for kind, rows in (("one digit", ~mixed), ("two digits", mixed)):
            found.append({
                "run": run, "model": one.name, "kind": kind, "truth": differ[rows].mean(),
                "raw": plain[rows].mean(), "alpha": one.disagreement[rows].mean(),
                "factor": np.nanmedian(factor[rows]), "moved": moved[rows[trial.again]].mean(),
            })  # fmt: skip
        if one.name == _SHOWN and run == 0:
            some = slice(0, _POINTS)
            found[-1]["points"] = {
                "raw": plain[some].round(4), "alpha": one.disagreement[some].round(4),
                "mixed": mixed[some].astype(int),
            }  # fmt: skip
    return found


def _items_blocks(records: pd.DataFrame, plan: Plan) -> dict[str, str]:
    columns = {
        "disagreement of Q": averaged("truth"), "raw": averaged("raw"),
        "with alpha by features": averaged("alpha"), "median factor": averaged("factor"),
        "change of f by a label": averaged("moved"),
    }  # fmt: skip
    shown = grouped(records, ["model", "kind"], columns, ["classifier", "items of"])
    (points,) = records["points"].dropna()
    raw, alpha, mixed = (np.array(points[name]) for name in ("raw", "alpha", "mixed"))
    figure, axis = panels((5.2, 4.6))
    axis.plot([0, 1], [0, 1], ":", color="0.5", lw=1)
    for kind, own in (("one digit", mixed == 0), ("two digits", mixed == 1)):
        axis.plot(raw[own], alpha[own], ".", ms=3, alpha=0.5, label=kind)
    axis.set(xlabel="1 - sum f² as the classifier says", ylabel="with alpha0 of the item",
             xlim=(0, 1), ylim=(0, 1), title=f"{_SHOWN}, items of Mix-MNIST")  # fmt: skip
    axis.legend(frameon=False)
    text = "Disagreement of items, before and after"
    return {"items": f"{plan.picture(figure, 'disagreement-items', text)}\n\n{shown}"}


MAPS = Part(
    crossed(dataset=(MNIST, CIFAR), run=Some(range(RUNS))), _maps, _maps_blocks,
    f"{_LABELS} labels per validation item, means over {RUNS} runs, seed {SEED}",
)  # fmt: skip
ITEMS = Part(
    crossed(run=Some(range(RUNS))), _items, _items_blocks,
    f"{_LABELS} labels per validation item, means over {RUNS} runs (figure: run 0), seed {SEED}",
)  # fmt: skip
