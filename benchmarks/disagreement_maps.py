"""Diagrams and maps of predictors, and what calibration changes item by item."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from bench.disagreement import SCALINGS, Trial, forecasts, method_of
from disagreement_truth import CIFAR, MNIST, RUNS, SEED, SIZES, Floats, truth, world
from fewlabels.annotations import dispersion_map, evaluate, reliability
from parts import Part, Plan, Record, Some, crossed
from runs import averaged, averages, grouped, panels, where

_LABELS = SIZES[-1]
_DRAWN = ("cnn_e8", "rf50")
"""Classifiers of Mix-MNIST whose bins are drawn: the best one, and the least calibrated."""


def _maps(data: Path, dataset: str, run: int) -> list[Record]:
    """Calibration loss and dispersion loss of every classifier under every scaling."""
    trial, found = Trial(world(data, dataset), SEED, run, _LABELS), []
    for scaling in SCALINGS:
        _, test = trial.scaled(scaling)
        for j, model in enumerate(trial.models):
            losses = evaluate(trial.histogram, test[:, j])
            found.append({"dataset": dataset, "run": run, "model": model, "scaling": scaling,
                          "CL": losses["CL"], "DL": losses["DL"]})  # fmt: skip
            if run == 0 and model in _DRAWN and scaling in SCALINGS[:2]:
                found[-1]["bins"] = _bins(trial.histogram, test[:, j])
    return found


def _bins(histogram: Floats, p: Floats) -> dict[str, list[float]]:
    """Of each bin of P(class), all classes together: mean probability and frequency, CL and DL."""
    means = ["mean_probability", "label_frequency"]
    rows = pd.DataFrame(reliability(histogram, p, confidence_level=None))
    rows[["CL", "DL"]] = pd.DataFrame(dispersion_map(histogram, p))[["CL", "DL"]]
    rows[means] = rows[means].mul(rows["n_items"], axis=0)
    sums = rows.groupby("bin")[["n_items", *means, "CL", "DL"]].sum()
    sums[means] = sums[means].div(sums["n_items"], axis=0)
    return sums.reset_index().to_dict("list")


def _draw_bins(records: pd.DataFrame) -> Figure:
    """Reliability of the class probabilities, and where in it CL and DL lie."""
    figure, axes = panels((9.2, 6.6), 2, len(_DRAWN), sharex=True)
    drawn = records.dropna(subset="bins")
    for (upper, lower), model in zip(axes.T, _DRAWN, strict=True):
        upper.plot([0, 1], [0, 1], ":", color="0.4", lw=1)
        for k, one in enumerate(drawn[drawn["model"] == model].itertuples()):
            at = np.array(one.bins["bin"]) / 15 + (0.5 + 0.8 * k) / 30
            cl, dl = (1000 * np.array(one.bins[name]) for name in ("CL", "DL"))
            upper.plot(one.bins["mean_probability"], one.bins["label_frequency"], "o-", ms=3.5,
                       color=f"C{k}", label=one.scaling)  # fmt: skip
            lower.bar(at, cl, 0.024, color=f"C{k}", label=f"CL, {one.scaling}")
            lower.bar(at, dl, 0.024, cl, color=f"C{k}", alpha=0.35, label=f"DL, {one.scaling}")
        upper.set(title=model, ylabel="frequency of the label")
        lower.set(xlabel="P(class)", ylabel="part of EL, thousandths")
        upper.legend(frameon=False, fontsize=8)
        lower.legend(frameon=False, fontsize=8)
    return figure


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
    text = "Reliability of class probabilities, and the bins' parts of CL and DL"
    bins = plan.picture(_draw_bins(records), "disagreement-bins", text)
    return {"bins": bins, "maps": f"{picture}\n\n{shown}"}


_POINTS = 1500
_CHANGED = {"temperature": "temperature", "alpha": "raw+alpha-features"}


def _items(data: Path, run: int) -> list[Record]:
    """Predicted disagreement of items as it is, after temperature scaling and after alpha.

    By whether the item is mixed. Delta^D is the mean change of 1 - sum f^2 by temperature scaling.
    """
    trial = Trial(world(data, MNIST), SEED, run, _LABELS)
    q = truth(data)[trial.test]
    differ = np.maximum(1 - (q**2).sum(axis=1), 0)
    mixed = q.max(axis=1) < 1
    kinds = {"all": np.ones(len(q), dtype=bool), "one digit": ~mixed, "two digits": mixed}
    said = {
        name: {one.name: one for one in forecasts(trial, method_of(method))}
        for name, method in {"raw": "raw", **_CHANGED}.items()
    }
    found = []
    for model in trial.models:
        at = {name: of_models[model] for name, of_models in said.items()}
        before, alpha = at["raw"].disagreement, at["alpha"]
        assert alpha.posterior is not None
        moved = np.abs(alpha.posterior - alpha.probabilities[trial.again]).sum(axis=1)
        for kind, rows in kinds.items():
            found.append({
                "run": run, "model": model, "kind": kind, "truth": differ[rows].mean(),
                **{name: one.disagreement[rows].mean() for name, one in at.items()},
                "delta": (at["temperature"].disagreement - before)[rows].mean(),
                "moved": moved[rows[trial.again]].mean(),
            })  # fmt: skip
        if model == _DRAWN[0] and run == 0:
            some = slice(0, _POINTS)
            found[-1]["points"] = {"mixed": mixed[some].astype(int)} | {
                name: one.disagreement[some].round(4) for name, one in at.items()
            }
    return found


def _items_blocks(records: pd.DataFrame, plan: Plan) -> str:
    columns = {
        "disagreement of Q": averaged("truth"), "raw": averaged("raw"),
        "temperature": averaged("temperature"), "Delta^D": averaged("delta", 3, "std"),
        "with alpha by features": averaged("alpha"), "change of f by a label": averaged("moved"),
    }  # fmt: skip
    shown = grouped(records, ["model", "kind"], columns, ["classifier", "items of"])
    (points,) = records["points"].dropna()
    at = {name: np.array(values) for name, values in points.items()}
    figure, axes = panels((9.2, 4.6), 1, len(_CHANGED), sharey=True)
    for axis, (name, method) in zip(axes, _CHANGED.items(), strict=True):
        axis.plot([0, 1], [0, 1], ":", color="0.5", lw=1)
        for kind, own in (("one digit", at["mixed"] == 0), ("two digits", at["mixed"] == 1)):
            axis.plot(at["raw"][own], at[name][own], ".", ms=3, alpha=0.5, label=kind)
        axis.set(xlabel="1 - sum f² as the classifier says", ylabel="after", xlim=(0, 1),
                 ylim=(0, 1), title=f"{_DRAWN[0]}, {method}")  # fmt: skip
    axes[0].legend(frameon=False)
    text = "Disagreement of items, before and after temperature scaling and alpha-calibration"
    return f"{plan.picture(figure, 'disagreement-items', text)}\n\n{shown}"


MAPS = Part(
    crossed(dataset=(MNIST, CIFAR), run=Some(range(RUNS))), _maps, _maps_blocks,
    f"{_LABELS} labels per validation item, means over {RUNS} runs, seed {SEED}",
)  # fmt: skip
ITEMS = Part(
    crossed(run=Some(range(RUNS))), _items, _items_blocks,
    f"{_LABELS} labels per validation item, means over {RUNS} runs (figure: run 0), seed {SEED}; "
    "± is the standard deviation over the runs",
)  # fmt: skip
