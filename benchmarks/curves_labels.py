"""Figure 1, and labels of one class only."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from curves_bands import BANDS, METHODS, measure
from curves_data import SPE_LISTS, draw
from curves_figures import save_svg
from parts import SEED, Part, Plan, Record, Some, crossed
from runs import averaged, grouped

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
