"""Figure 1, labels of one class only, and labels that were chosen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

import fewlabels as fl
from curves_bands import BANDS, METHODS, measure
from curves_data import SPE_LISTS, Scores, draw, stream
from curves_figures import save_svg
from fewlabels.kernels.arrays import Ints
from parts import SEED, Part, Plan, Record, Some, crossed
from runs import averaged, averages, grouped, where

# --- figure 1 ------------------------------------------------------------------------------------

_SHOWN = ("spe", "averaged-curves")
_FIGURE_LISTS = ("optdigits_8 logreg", "spambase_1 logreg")
_FIRST = 10
_BLUE, _BLACK = "#0072B2", "#222222"


def figure1_run(data: Path, name: str, trial: int) -> list[Record]:
    """Curves of both methods from ten labels, and the true one."""
    scores = draw(data, name, trial)
    truth, predictions = scores.truth(), scores.show(_FIRST)
    positives = int(scores.labels[:_FIRST].sum())
    records = []
    for method in _SHOWN:
        found, curve = measure(predictions, METHODS[method], truth, trial)
        lines = {"x": curve.x, "y": curve.y, "low": curve.low, "high": curve.high}
        record = {"list": name, "method": method, "positives": positives, **found, **lines}
        records.append(record | {"truth": truth.y})
    return records


def figure1_blocks(records: pd.DataFrame, plan: Plan) -> dict[str, str]:
    """The figure, and what it shows in numbers."""
    path = plan.figures / "curves" / "figure1.svg"
    draw_figure(records, path)
    columns = {
        "area": averaged("area"),
        "coverage": averaged("covered", 2),
        "width": averaged("width", 2),
        "status": lambda own: own["status"].iloc[0],
    }
    keys, head = ["list", "positives", "method"], ["list", "positive labels", "method"]
    text = f"Precision-recall curves from {_FIRST} labels, with bands, beside the truth"
    shown = grouped(records, keys, columns, head)
    return {"figure1": f"![{text}](figures/curves/{path.name})\n\n{shown}"}


def draw_figure(records: pd.DataFrame, path: Path) -> None:
    """A panel for each list and method: band, curve, and the truth."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.6, 6.4), layout="constrained")
    axes = figure.subplots(2, len(records) // 2, sharex=True, sharey=True)
    for axis, record in zip(axes.flat, records.to_dict("records"), strict=True):
        x, low, high = record["x"], record["low"], record["high"]
        axis.fill_between(x, low, high, color=_BLUE, alpha=0.2, lw=0, label="90% band")
        axis.plot(x, record["y"], color=_BLUE, label="estimate")
        axis.plot(x, record["truth"], color=_BLACK, ls="--", label="truth")
        axis.set(title=f"{record['list']}: {record['method']}", xlim=(0, 1), ylim=(0, 1.02))
    figure.supxlabel("recall")
    figure.supylabel("precision")
    axes.flat[1].legend(loc="lower left", frameon=False)
    save_svg(figure, path)


FIGURE1 = Part(
    crossed(name=_FIGURE_LISTS, trial=[0]),
    figure1_run,
    figure1_blocks,
    f"the first trial of two lists, {_FIRST} labels, seed {SEED}",
)

# --- labels of one class only --------------------------------------------------------------------

_CASES = {
    "5 negative": (0, 5),
    "10 negative": (0, 10),
    "5 positive": (1, 5),
    "none at all": (0, 0),
}
_ONE_CLASS_METHODS = ("spe", "averaged-curves", "monotone-curves")


def one_class_run(data: Path, name: str, trial: int) -> list[Record]:
    """The first labels of one class in the order of labeling, and no labels."""
    scores = draw(data, name, trial)
    truth = scores.truth()
    records = []
    for case, (label, size) in _CASES.items():
        predictions = scores.show(np.flatnonzero(scores.labels == label)[:size])
        for method in _ONE_CLASS_METHODS:
            found, _ = measure(predictions, METHODS[method], truth, trial)
            records.append({"list": name, "case": case, "method": method, **found})
    return records


def one_class_blocks(records: pd.DataFrame, plan: Plan) -> dict[str, str]:
    """Coverage and width by case and method, and what the answers say of themselves."""

    def status(own: pd.DataFrame) -> str:
        said = own["status"].value_counts(normalize=True)
        return ", ".join(f"{name} {share:.0%}" for name, share in said.items())

    head = ["labels", "method"]
    return {"one-class": grouped(records, ["case", "method"], BANDS | {"status": status}, head)}


ONE_CLASS = Part(
    crossed(name=Some(SPE_LISTS, -1), trial=Some(range(5))),
    one_class_run,
    one_class_blocks,
    f"24 lists x 5 trials, seed {SEED}; ± is the standard error over the 12 tasks",
)

# --- labels that were chosen ---------------------------------------------------------------------

_CHOICE_LISTS = (
    "optdigits_3 logreg",
    "optdigits_8 logreg",
    "optdigits_9 linsvm",
    "magic_g_1 logreg",
    "spambase_1 linsvm",
)
_MORE = 20
_BATCH = 5
_TOP = 0.2


def _at_random(scores: Scores, known: Ints, rng: np.random.Generator) -> Ints:
    rest = np.setdiff1d(np.arange(len(scores.labels)), known)
    return rng.choice(rest, _MORE, replace=False)


def _half_from_the_top(scores: Scores, known: Ints, rng: np.random.Generator) -> Ints:
    rest = np.setdiff1d(np.arange(len(scores.labels)), known)
    top = rest[scores.values[rest] >= np.quantile(scores.values, 1 - _TOP)]
    first = rng.choice(top, _MORE // 2, replace=False)
    return np.append(first, rng.choice(np.setdiff1d(rest, first), _MORE // 2, replace=False))


def _at_once(scores: Scores, known: Ints, rng: np.random.Generator) -> Ints:
    return _asked(scores, known, _MORE)


def _in_batches(scores: Scores, known: Ints, rng: np.random.Generator) -> Ints:
    chosen = known
    for _ in range(_MORE // _BATCH):
        chosen = np.append(chosen, _asked(scores, chosen, _BATCH))
    return chosen[len(known) :]


def _asked(scores: Scores, known: Ints, size: int) -> Ints:
    return fl.label_next(scores.show(known), size=size, workers=1).items


CHOICES = {
    "at random": _at_random,
    "half at random, half from the top fifth": _half_from_the_top,
    "label_next, 20 at once": _at_once,
    "label_next, 4 batches of 5": _in_batches,
}


def choice_run(data: Path, name: str, trial: int) -> list[Record]:
    """Ten labels at random, then twenty more by each choice."""
    scores = draw(data, name, trial)
    truth, known = scores.truth(), np.arange(_FIRST)
    after = {"10 labels alone": known}
    for choice, choose in CHOICES.items():
        rng = stream("label-next", name, trial, choice)
        after[choice] = np.append(known, choose(scores, known, rng))
    records = []
    for choice, rows in after.items():
        found, _ = measure(scores.show(rows), METHODS["monotone-curves"], truth, trial)
        positives = int(scores.labels[rows].sum())
        records.append({"list": name, "choice": choice, "positives": positives, **found})
    return records


def choice_blocks(records: pd.DataFrame, plan: Plan) -> dict[str, str]:
    """Width, coverage and area after each choice, in all, and width by list."""
    heads = {"width": "width", "covered": "coverage", "area": "area",
             "positives": "positives among them"}  # fmt: skip
    columns = {head: averaged(name, spread="sem", by="list") for name, head in heads.items()}
    figures = averages({"width": 2, "covered": 2})
    each = {name: where("list", name, figures) for name in records["list"].unique()}
    tables = (
        grouped(records, ["choice"], columns, ["labels"]),
        grouped(records, ["choice"], each, ["width / coverage"]),
    )
    return {"label-next": "\n\n".join(tables)}


LABEL_NEXT = Part(
    crossed(name=Some(_CHOICE_LISTS, -1), trial=Some(range(10))),
    choice_run,
    choice_blocks,
    f"5 lists x 10 trials, `monotone-curves`, seed {SEED}; ± is the standard error over lists",
)
