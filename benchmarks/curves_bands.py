"""Figures 2 and 4: curves, bands and thresholds from few labels, against all labels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import fewlabels as fl
from curves_data import OF_THESE, SPE_LISTS, Scores, draw, sample_curve, task_of
from curves_figures import draw_calibration
from fewlabels.kernels.arrays import Floats
from fewlabels.methods.base import FittedLabelModel, LabelModel
from fewlabels.methods.registry import resolve
from parts import SEED, Part, Plan, Record, Some, crossed
from runs import averaged, averages, grouped, mean_error, number, table, where

sample_threshold = partial(fl.threshold, **OF_THESE)

SIZES = (5, 10, 20, 50, 100)
THRESHOLD_SIZES = (10, 20, 100)
BOUND = 0.8
"""Figure 4's condition: precision and recall are both at least so much."""

_CUTS, _BINS = 100, 10
_HARD = 0.03
"""A list is hard where labels alone, 20 of them, miss the curve by more."""

_NEAR = 0.01
_ROUNDING = 1e-9


class Way(NamedTuple):
    """A method, and which interval of the draws its band is."""

    model: str | LabelModel
    interval: str = "shortest"


METHODS = {
    "labeled": Way("labeled"),
    "spe": Way("spe", "equal-tailed"),
    "spe (averaged)": Way(fl.models.SPE(selection="average")),
    "averaged-curves": Way("averaged-curves"),
    "monotone-curves": Way("monotone-curves"),
    "monotone-curves (plain)": Way(fl.models.MonotoneCurves(prior="plain"), "equal-tailed"),
}
THRESHOLD_METHODS = ("spe (averaged)", "averaged-curves", "monotone-curves")


class Fitted(LabelModel):
    """A model that was fitted already, so that curve and threshold need one fit between them."""

    def __init__(self, way: Way, predictions: fl.Predictions, seed: int) -> None:
        model = resolve(way.model, predictions)[1]
        self.fitted = model.fit(predictions, np.random.default_rng(seed))

    def fit(self, predictions: fl.Predictions, rng: np.random.Generator) -> FittedLabelModel:
        """What was fitted."""
        return self.fitted


def measure(
    predictions: fl.Predictions, way: Way, truth: fl.Curve, seed: int
) -> tuple[Record, fl.Curve]:
    """How far a curve is from the truth, how much of it the band covers, and how wide it is.

    All are NaN where there is no curve: the labels alone, without a positive one among them.
    """
    curve = sample_curve(
        predictions, method=way.model, interval=way.interval, random_state=seed, workers=1
    )
    held = (curve.low <= truth.y + _ROUNDING) & (truth.y <= curve.high + _ROUNDING)
    value, low, high = curve.area
    found = {
        "area": float(np.abs(curve.y - truth.y).mean()),
        "covered": float(held.mean()),
        "width": float((curve.high - curve.low).mean()),
        "held": float(low - _ROUNDING <= truth.area.value <= high + _ROUNDING),
    }
    if np.isnan(value):
        found = dict.fromkeys(found, float("nan"))
    return {**found, "status": curve.status.value}, curve


def run_list(data: Path, name: str, trial: int) -> list[Record]:
    """One trial of a list: every number of labels and every method."""
    scores = draw(data, name, trial)
    truth = scores.truth()
    records = []
    for size in SIZES:
        predictions = scores.show(size)
        for method, way in METHODS.items():
            asked = method in THRESHOLD_METHODS and size in THRESHOLD_SIZES
            used = way._replace(model=Fitted(way, predictions, trial)) if asked else way
            found, _ = measure(predictions, used, truth, trial)
            if asked:
                found |= _measure_threshold(predictions, used.model, scores, trial)
            records.append({"list": name, "n": size, "trial": trial, "method": method, **found})
    return records


def _measure_threshold(
    predictions: fl.Predictions, model: Any, scores: Scores, seed: int
) -> Record:
    """Claimed probabilities of the condition, in bins, against whether it holds by all labels."""
    answer = sample_threshold(
        predictions, None, BOUND, BOUND, method=model, random_state=seed, workers=1
    )
    last = len(answer.thresholds) - 1
    cuts = np.unique(np.linspace(0, last, _CUTS).round().astype(int))
    claimed = answer.probability[cuts]
    real = _holds(scores, answer.thresholds[cuts])
    places = np.minimum((claimed * _BINS).astype(int), _BINS - 1)
    return {
        "bins": [
            np.bincount(places, weights, _BINS).tolist()
            for weights in (np.ones(len(cuts)), claimed, real)
        ],
        "brier": float(((claimed - real) ** 2).mean()),
        "best": answer.best_probability,
        "best_holds": float(_holds(scores, np.array([answer.best]))[0]),
    }


def _holds(scores: Scores, thresholds: Floats) -> Floats:
    """1 where precision and recall at a threshold are as wanted by all labels, else 0."""
    order = np.argsort(scores.values)
    ascending = scores.values[order]
    below = np.searchsorted(ascending, thresholds, side="left")
    positives = np.append(np.cumsum(scores.labels[order][::-1])[::-1], 0)
    tp, called = positives[below], len(ascending) - below
    return ((tp >= BOUND * called) & (tp >= BOUND * positives[0])).astype(float)


# --- tables --------------------------------------------------------------------------------------


def by_task(name: str) -> Callable[[pd.DataFrame], str]:
    """A column of tables: the mean of a figure, and its standard error over tasks."""
    return lambda own: mean_error(own[name], own["list"].map(task_of))


def least_of_a_list(own: pd.DataFrame) -> str:
    """Coverage of the list that is covered least."""
    return number(own.groupby("list")["covered"].mean().min(), 2)


BANDS = {
    "area": by_task("area"),
    "coverage": by_task("covered"),
    "least of a list": least_of_a_list,
    "width": by_task("width"),
}


def errors(records: pd.DataFrame) -> str:
    """Area, coverage and width by number of labels and method."""
    more = {
        "AP held": by_task("held"),
        "no curve": lambda own: f"{own['area'].isna().mean():.0%}",
    }
    return grouped(records, ["n", "method"], BANDS | more, ["n_l", "method"])


def wins(records: pd.DataFrame) -> str:
    """In how many lists a method is nearer to the curve than the labels alone."""
    means = records.groupby(["list", "n", "method"])["area"].mean().unstack("method")
    alone = means["labeled"].xs(20, level="n")
    hard = set(alone.index[alone > _HARD])
    header = ["n_l", "method", f"nearer, of {len(hard)} hard lists"]
    header.append(f"nearer or within {_NEAR}, of {len(alone) - len(hard)} others")
    rows = []
    for n, own in means.groupby(level="n"):
        own = own.droplevel("n")
        for method in (name for name in METHODS if name != "labeled"):
            gain = own["labeled"] - own[method]
            is_hard = gain.index.isin(hard)
            rows.append(
                [n, method, int((gain[is_hard] > 0).sum()), int((gain[~is_hard] > -_NEAR).sum())]
            )
    return table(header, rows)


def by_list(records: pd.DataFrame, n: int = 20) -> str:
    """Area, coverage and width of every list."""
    figures = averages({"area": 3, "covered": 2, "width": 2})
    columns = {"labeled": where("method", "labeled", averaged("area"))}
    for method in ("spe", "averaged-curves", "monotone-curves"):
        columns[method] = where("method", method, figures)
    return grouped(records[records["n"] == n], ["list"], columns, [f"list, n_l = {n}"])


def verdicts(records: pd.DataFrame) -> str:
    """The targets of the reference beside what was found."""
    means = records.groupby(["method", "list", "n"])[["area", "covered", "width"]].mean()
    curves, plain = means.loc["monotone-curves"], means.loc["monotone-curves (plain)"]
    ratio = (curves["width"].groupby("n").mean() / plain["width"].groupby("n").mean()).map(number)
    at_20 = means["area"].xs(20, level="n")
    alone, spe = at_20.loc["labeled"], at_20.loc["spe"]
    hard = alone > _HARD
    return "\n".join(
        [
            f"- `spe` below the labels alone in {(spe < alone)[hard].sum()} of {hard.sum()} hard "
            f"lists at 20 labels (target: 90% of them), and within {_NEAR} of them in "
            f"{(spe < alone + _NEAR)[~hard].sum()} of {(~hard).sum()} others (target: all).",
            *(_coverage(name, means.loc[name]) for name in ("averaged-curves", "monotone-curves")),
            f"- Bands of `monotone-curves` are {', '.join(ratio)} times as wide as those of §5b at "
            f"{', '.join(str(n) for n in ratio.index)} labels (target: below 1).",
        ]
    )


def _coverage(name: str, means: pd.DataFrame) -> str:
    overall = means["covered"].groupby("n").mean()
    least = means["covered"].idxmin()
    return (
        f"- `{name}` covers {number(overall.min(), 2)} to {number(overall.max(), 2)} on average "
        f"over lists (target: .87 to .97); least in a list {number(means['covered'].min(), 2)}: "
        f"{least[0]}, {least[1]} labels (target: .70)."
    )


def calibration(records: pd.DataFrame) -> str:
    """Claimed against realised probability of the condition, and what the best threshold is worth.

    Beside the Brier score stands that of a forecast that always says how often the condition holds.
    """
    asked = records[records["bins"].notna()]
    groups = dict(iter(asked.groupby(["method", "n"], sort=False)))
    total = threshold_bins(records)
    columns = [f"{method}, {n}" for method, n in groups]
    rows: list[list[str]] = []
    for place in range(_BINS):
        cells = [_bin(*bins[:, place]) for bins in total.values()]
        rows.append([f"{place / _BINS:.1f} to {(place + 1) / _BINS:.1f}", *cells])
    for title, cell in _SCORES.items():
        rows.append([title, *(cell(own) for own in groups.values())])
    return table(["claimed (method, n_l)", *columns], rows)


def threshold_bins(records: pd.DataFrame) -> dict[tuple[str, int], np.ndarray]:
    """Counts, summed claims and realisations of thresholds by bin, (3, bins), by method and n_l."""
    asked = records[records["bins"].notna()]
    groups = asked.groupby(["method", "n"], sort=False)
    return {(m, int(n)): np.array(own["bins"].tolist()).sum(axis=0) for (m, n), own in groups}


def _bin(count: float, claimed: float, real: float) -> str:
    if not count:
        return "-"
    return f"{number(claimed / count, 2)} → {number(real / count, 2)} ({count:.0f})"


def _constant(own: pd.DataFrame) -> str:
    """Brier score of the constant forecast that is right on average."""
    count, _, real = np.array(own["bins"].tolist()).sum(axis=(0, 2))
    share = real / count
    return number(share * (1 - share))


_SCORES = {
    "Brier score": by_task("brier"),
    "Brier score, constant": _constant,
    "best threshold: claimed": by_task("best"),
    "best threshold: holds": by_task("best_holds"),
}


# --- parts ---------------------------------------------------------------------------------------


def figure2_blocks(records: pd.DataFrame, plan: Plan) -> dict[str, str]:
    """Figures 2 and 4."""
    parts = [verdicts(records), errors(records), wins(records), by_list(records)]
    path = plan.figures / "curves" / "figure4.svg"
    draw_calibration(threshold_bins(records), path)
    image = f"![Claimed and realised probability of thresholds](figures/curves/{path.name})"
    return {"figure2": "\n\n".join(parts), "figure4": f"{image}\n\n{calibration(records)}"}


FIGURE2 = Part(
    crossed(name=Some(SPE_LISTS, -2), trial=Some(range(5))),
    run_list,
    figure2_blocks,
    f"24 lists x 5 trials, all items of a list, seed {SEED}; ± is the standard error over the 12 "
    "tasks, of which the two classifiers are nearly one",
)
