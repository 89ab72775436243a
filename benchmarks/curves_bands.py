"""Figures 1, 2 and 4: curves, bands and thresholds from few labels, against all labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow.parquet
from matplotlib.figure import Figure

import fewlabels as fl
from fewlabels.kernels.arrays import Bools, Floats, Ints
from fewlabels.methods.base import FittedLabelModel, LabelModel
from fewlabels.methods.registry import resolve
from parts import SEED, Part, Plan, Record, Some, crossed, stream
from runs import averaged, averages, grouped, number, panels, plus_minus, table, where
from score_lists import LINEAR, linear_scores

# Of these very items and at 90%, as the papers have it.
OF_THESE = {"confidence_level": 0.9, "estimand": "sample"}
sample_curve = partial(fl.curve, **OF_THESE)

TASKS = (*(f"optdigits_{digit}" for digit in range(10)), "magic_g_1", "spambase_1")
SPE_LISTS = tuple(f"{task} {model}" for task in TASKS for model in LINEAR)
SATIMAGE_LISTS = tuple(f"satimage_{label} {model}" for label in "123457" for model in LINEAR)


class Scores(NamedTuple):
    """Scores (n,) of the items of a trial and their labels (n,), in the order of labeling."""

    values: Floats
    labels: Ints

    def show(self, shown: int | Ints | Bools) -> fl.Predictions:
        """Predictions with the labels of the first few items, or of these."""
        known = np.full(len(self.labels), -1)
        rows = np.arange(shown) if isinstance(shown, int) else shown
        known[rows] = self.labels[rows]
        return fl.Predictions(
            scores=self.values[:, None], labels=known, models=["classifier"], classes=(0, 1)
        )

    def truth(self) -> fl.Curve:
        """The curve of these items by all their labels."""
        return sample_curve(self.show(len(self.labels)), method="labeled", workers=1)


def set_of(name: str) -> str:
    """The data set of a list."""
    return name.partition("_")[0]


def draw(data: Path, name: str, trial: int) -> Scores:
    """The items of a trial, in the order in which they are labeled."""
    every = _load(data, name)
    rows = stream(name, trial).permutation(len(every.labels))
    return Scores(every.values[rows], every.labels[rows])


@lru_cache(maxsize=1)
def _load(data: Path, name: str) -> Scores:
    """All items of a list: satimage's are made here from its table, the others are a file's."""
    task, model = name.split()
    if name in SATIMAGE_LISTS:
        return Scores(*linear_scores(*task.split("_"), model))
    found = pyarrow.parquet.read_table(
        data / "spe_scores" / "data.parquet", columns=["label", f"s__{model}"],
        filters=[("task", "=", task)],
    )  # fmt: skip
    values, labels = (found[c].to_numpy().astype(np.float64) for c in (f"s__{model}", "label"))
    return Scores(values, labels.astype(int))


SIZES = (5, 10, 20, 50, 100)
THRESHOLD_SIZES = (10, 20, 100)
BOUND = 0.8
"""Figure 4's condition: precision and recall are both at least so much."""

_CUTS, _BINS = 100, 10
_ROUNDING = 1e-9
_BLUE, _BLACK = "#0072B2", "#222222"


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
        "area": float(np.abs(curve.y - truth.y).mean()), "covered": float(held.mean()),
        "width": float((curve.high - curve.low).mean()),
        "held": float(low - _ROUNDING <= truth.area.value <= high + _ROUNDING),
    }  # fmt: skip
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
    answer = fl.threshold(
        predictions, None, BOUND, BOUND, method=model, random_state=seed, workers=1, **OF_THESE
    )
    last = len(answer.thresholds) - 1
    cuts = np.unique(np.linspace(0, last, _CUTS).round().astype(int))
    claimed = answer.probability[cuts]
    real = _holds(scores, answer.thresholds[cuts])
    places = np.minimum((claimed * _BINS).astype(int), _BINS - 1)
    each = (np.ones(len(cuts)), claimed, real)
    return {
        "bins": [np.bincount(places, weights, _BINS).tolist() for weights in each],
        "brier": float(((claimed - real) ** 2).mean()), "best": answer.best_probability,
        "best_holds": float(_holds(scores, np.array([answer.best]))[0]),
    }  # fmt: skip


def _holds(scores: Scores, thresholds: Floats) -> Floats:
    """1 where precision and recall at a threshold are as wanted by all labels, else 0."""
    order = np.argsort(scores.values)
    ascending = scores.values[order]
    below = np.searchsorted(ascending, thresholds, side="left")
    positives = np.append(np.cumsum(scores.labels[order][::-1])[::-1], 0)
    tp, called = positives[below], len(ascending) - below
    return ((tp >= BOUND * called) & (tp >= BOUND * positives[0])).astype(float)


def by_task(name: str) -> Callable[[pd.DataFrame], str]:
    """A column of tables: the mean of a figure, and its standard error over tasks."""
    return lambda own: plus_minus(
        own[name].astype(float).groupby(own["list"].str.split().str[0]).mean()
    )


BANDS = {
    "area": by_task("area"),
    "coverage": by_task("covered"),
    "least of a list": lambda own: number(own.groupby("list")["covered"].mean().min(), 2),
    "width": by_task("width"),
}


def errors(records: pd.DataFrame) -> str:
    """Area, coverage and width by number of labels and method."""
    more = {"AP held": by_task("held"), "no curve": lambda own: f"{own['area'].isna().mean():.0%}"}
    return grouped(records, ["n", "method"], BANDS | more, ["n_l", "method"])


def by_set(records: pd.DataFrame, methods: Sequence[str] = tuple(METHODS)[1:]) -> str:
    """Figure 2E: areas by data set, and in how many lists a method is nearer than labels alone."""
    means = records.groupby(["list", "n", "method"])["area"].mean().unstack("method").reset_index()
    means["set"] = means["list"].map(set_of)

    def beside(method: str) -> Callable[[pd.DataFrame], str]:
        return lambda own: (
            f"{number(own[method].mean())} ({int((own[method] < own['labeled']).sum())})"
        )

    columns = {"lists": len, "labeled": averaged("labeled")}
    columns |= {name: beside(name) for name in methods}
    return grouped(means, ["set", "n"], columns, ["data set", "n_l"])


def by_list(records: pd.DataFrame, n: int = 20) -> str:
    """Area, coverage and width of every list."""
    figures = averages({"area": 3, "covered": 2, "width": 2})
    columns = {"labeled": where("method", "labeled", averaged("area"))}
    for method in ("spe", "averaged-curves", "monotone-curves"):
        columns[method] = where("method", method, figures)
    return grouped(records[records["n"] == n], ["list"], columns, [f"list, n_l = {n}"])


def calibration(records: pd.DataFrame) -> str:
    """What claimed probabilities of the condition are worth, and what the best threshold is worth.

    Beside the Brier score stands that of a forecast that always says how often the condition holds.
    """

    def constant(own: pd.DataFrame) -> str:
        count, _, real = np.array(own["bins"].tolist()).sum(axis=(0, 2))
        return number(real / count * (1 - real / count))

    scores = {
        "Brier score": by_task("brier"), "Brier score, constant": constant,
        "best threshold: claimed": by_task("best"), "best threshold: holds": by_task("best_holds"),
    }  # fmt: skip
    asked = records[records["bins"].notna()]
    groups = dict(iter(asked.groupby(["method", "n"], sort=False)))
    rows = [[title, *(cell(own) for own in groups.values())] for title, cell in scores.items()]
    return table(["method, n_l", *(f"{method}, {n}" for method, n in groups)], rows)


def draw_calibration(records: pd.DataFrame) -> Figure:
    """Realised against claimed probability, a panel for each method and a line for each n_l.

    The diameter of a point goes with the fourth root of the count.
    """
    methods = dict(iter(records[records["bins"].notna()].groupby("method", sort=False)))
    figure, axes = panels((3.8 * len(methods), 3.8), 1, len(methods), sharey=True, squeeze=False)
    for axis, (method, of_method) in zip(axes[0], methods.items(), strict=True):
        axis.plot([0, 1], [0, 1], color="0.6", lw=1, ls="--")
        for n, own in of_method.groupby("n", sort=False):
            count, claimed, real = np.array(own["bins"].tolist()).sum(axis=0)
            some = count > 0
            x, y = claimed[some] / count[some], real[some] / count[some]
            (line,) = axis.plot(x, y, label=f"{n} labels")
            axis.scatter(x, y, np.sqrt(count[some]), color=line.get_color())
        axis.set(title=method, xlim=(0, 1), ylim=(0, 1.02), xlabel="claimed probability")
    axes[0, 0].set_ylabel("share of thresholds that meet it")
    axes[0, -1].legend(frameon=False)
    return figure


def figure2_blocks(records: pd.DataFrame, plan: Plan) -> dict[str, str]:
    """Figures 2 and 4."""
    text, mark = "Error by number of labels, and of every list at 20 labels", plan.part
    drawn = plan.picture(draw_errors(records, _PAPERS[mark]), f"curves/{mark}", text)
    found = {mark: "\n\n".join([drawn, errors(records), by_set(records), by_list(records)])}
    if mark == "figure2":
        text = "Claimed and realised probability of thresholds"
        image = plan.picture(draw_calibration(records), "curves/figure4", text)
        found["figure4"] = f"{image}\n\n{calibration(records)}"
    return found


def draw_errors(records: pd.DataFrame, names: Sequence[str]) -> Figure:
    """Figure 2A, C and E: a panel for each of some lists, and every list at 20 labels."""
    means = records[records["n"] == 20].groupby(["list", "method"])["area"].mean().unstack("method")
    shown = [name for name in names if name in means.index] or means.index[:1]
    figure, axes = panels((3.8 * len(shown) + 3.8, 3.8), 1, len(shown) + 1)
    for axis, name in zip(axes, shown, strict=False):
        own = records[records["list"] == name].groupby(["method", "n"])["area"]
        axis.plot(own.median()["labeled"], "o-", color=_BLACK, label="labels alone, median")
        axis.plot(own.mean()["spe"], "o-", color=_BLUE, label="SPE")
        axis.set(title=name, xlabel="labels", ylabel="area between curves", ylim=0)
    axes[0].legend(frameon=False)
    for name, own in means.groupby(set_of):
        axes[-1].plot(own["labeled"], own["spe"], "o", ms=4, label=name)
    axes[-1].axline((0, 0), slope=1, color="0.6", lw=1, ls="--")
    axes[-1].set(title="every list, 20 labels", xlabel="labels alone", ylabel="SPE")
    axes[-1].legend(frameon=False)
    return figure


_PAPERS = {
    "figure2": ("optdigits_8 logreg", "spambase_1 logreg"),
    "satimage": ("satimage_1 logreg", "satimage_4 logreg"),
}
"""Lists of figure 2A and C: the first of figure2 is the paper's bad case, C and D."""


FIGURE2, SATIMAGE = (
    Part(
        crossed(name=Some(lists, -2), trial=Some(range(5))), run_list, figure2_blocks,
        f"{len(lists)} lists x 5 trials, all items of a list, seed {SEED}; ± is the standard error "
        f"over the {len(lists) // 2} tasks, of which the two classifiers are nearly one",
    )
    for lists in (SPE_LISTS, SATIMAGE_LISTS)
)  # fmt: skip

_SHOWN = ("spe", "averaged-curves")
_FIRST, _RECALIBRATED = 10, 100


def figure1_run(data: Path, name: str, trial: int, n: int) -> list[Record]:
    """Curves of both methods from so many labels, and the true one."""
    scores = draw(data, name, trial)
    truth, predictions = scores.truth(), scores.show(n)
    positives = int(scores.labels[:n].sum())
    records = []
    for method in _SHOWN:
        found, curve = measure(predictions, METHODS[method], truth, trial)
        lines = {"x": curve.x, "y": curve.y, "low": curve.low, "high": curve.high}
        place = {"list": name, "n": n, "method": method, "positives": positives}
        records.append(place | found | lines | {"truth": truth.y})
    return records


def figure1_blocks(records: pd.DataFrame, plan: Plan) -> str:
    """The figure, and what it shows in numbers."""
    columns = {"area": averaged("area"), "coverage": averaged("covered", 2),
               "width": averaged("width", 2),
               "status": lambda own: own["status"].iloc[0]}  # fmt: skip
    keys = ["list", "n", "positives", "method"]
    shown = grouped(records, keys, columns, ["list", "labels", "positive labels", "method"])
    images = []
    for n, own in records.groupby("n"):
        text = f"Precision-recall curves from {n} labels, with bands, beside the truth"
        name = "figure1" if n == _FIRST else "figure4a"
        images.append(plan.picture(draw_figure(own, n), f"curves/{name}", text))
    return "\n\n".join([*images, shown])


def draw_figure(records: pd.DataFrame, n: int) -> Figure:
    """A panel for each list and method: band, curve, the truth, and figure 4's condition."""
    figure, axes = panels((7.6, 6.4), 2, len(records) // 2, sharex=True, sharey=True)
    for axis, record in zip(axes.flat, records.to_dict("records"), strict=True):
        x, low, high = record["x"], record["low"], record["high"]
        axis.fill_between(x, low, high, color=_BLUE, alpha=0.2, lw=0, label="90% band")
        axis.plot(x, record["y"], color=_BLUE, label="estimate")
        axis.plot(x, record["truth"], color=_BLACK, ls="--", label="truth")
        if n == _RECALIBRATED:
            axis.fill_between([BOUND, 1], BOUND, 1, color="0.85", lw=0, label="wanted")
        axis.set(title=f"{record['list']}: {record['method']}", xlim=(0, 1), ylim=(0, 1.02))
    figure.supxlabel("recall")
    figure.supylabel("precision")
    axes.flat[1].legend(loc="lower left", frameon=False)
    return figure


FIGURE1 = Part(
    crossed(name=_PAPERS["figure2"], trial=[0], n=[_FIRST, _RECALIBRATED]),
    figure1_run, figure1_blocks,
    f"the first trial of two lists, {_FIRST} and {_RECALIBRATED} labels, seed {SEED}",
)  # fmt: skip
