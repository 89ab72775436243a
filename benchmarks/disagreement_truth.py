"""Data sets of the study of disagreement, and losses of label histograms against known truth.

Simulated data, and Mix-MNIST's Q.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from bench.datasets import Reading
from bench.disagreement import (
    METHODS,
    ONE_NUMBER,
    HistogramWorld,
    Trial,
    forecasts,
    method_of,
    read_worlds,
)
from bench.splits import generator
from bench.world import DatasetFacts
from fewlabels.annotations import evaluate
from parts import Part, Plan, Record, Some, crossed
from runs import averaged, grouped, markdown, number, panels, where

SEED = 0
RUNS = 5
SIZES = (2, 5)
"""Labels per validation item."""

MNIST, CIFAR = "Mix-MNIST", "CIFAR-10H"
ALPHA = [m for m in METHODS if method_of(m).concentration]
Floats = np.ndarray


SIMULATED = {"perfect": (1.0, np.inf), "alpha0 = 1": (1.0, 1.0), "too sure": (2.0, np.inf)}
"""Of simulated data sets: the power that the classifier raises f to, and alpha0 of Q around f."""


def simulated(name: str) -> HistogramWorld:
    """40,000 items of four classes and five labels each; f is uniform."""
    power, alpha0 = SIMULATED[name]
    rng = generator("simulated", SEED, name)
    f = rng.dirichlet(np.ones(4), 40_000)
    q = f if np.isinf(alpha0) else rng.gamma(alpha0 * f)
    p = f**power / (f**power).sum(axis=1, keepdims=True)
    facts = DatasetFacts(name, len(f), len(f) // 2, ("simulated",), tuple("0123"), (), "")
    return HistogramWorld(facts, p[:, None], draw_labels(q, SIZES[-1], rng), None)


@cache
def world(data: Path, dataset: str) -> HistogramWorld:
    """A data set."""
    if dataset in SIMULATED:
        return simulated(dataset)
    with tempfile.TemporaryDirectory() as folder:
        return read_worlds([file_of(data, dataset, Path(folder))], Reading())[0][0]


def file_of(data: Path, dataset: str, folder: Path) -> Path:
    """The file of a data set; Mix-MNIST: classifiers with the histograms of five raters, by id."""
    if dataset == CIFAR:
        return data / "cifar10" / "data.parquet"
    said = pd.read_parquet(data / "mixed_lh" / "mixed_mnist_predictions.parquet")
    labels = pd.read_parquet(data / "mixed_lh" / "mixed_mnist.parquet").set_index("id")
    labels = labels.loc[said["id"]]
    for column in ("partition", "y1"):
        assert (labels[column].to_numpy() == said[column].to_numpy()).all()
    # Without `partition`: every run halves the 15,000 items anew, and its spread holds items too.
    kept = said[[c for c in said if c.startswith("p__")]].copy()
    for name in (c for c in labels if c.startswith("h__")):
        kept[name] = labels[name].to_numpy()
    path = folder / "mix-mnist.parquet"
    kept.to_parquet(path)
    return path


@cache
def truth(data: Path) -> Floats:
    """The label distribution Q (n, K) of every item of Mix-MNIST: `ratio` on y1, the rest on y2."""
    said = pd.read_parquet(data / "mixed_lh" / "mixed_mnist_predictions.parquet")
    q = np.zeros((len(said), 10))
    rows = np.arange(len(said))
    mixed = said["mixed"].to_numpy() == 1
    ratio = np.where(mixed, said["ratio"], 1.0)
    np.add.at(q, (rows, said["y1"].to_numpy()), ratio)
    np.add.at(q, (rows[mixed], said["y2"].to_numpy()[mixed]), (1 - ratio)[mixed])
    return q


def draw_labels(q: Floats, size: int, rng: np.random.Generator) -> Floats:
    """Histograms (n, K) of `size` labels of every item."""
    return rng.multinomial(size, q / q.sum(axis=1, keepdims=True)).astype(float)


COUNTS = (100, 250, 500, 1000, 2500, 5000, 10000)


def _debiasing(data: Path, n: int, items: int) -> list[Record]:
    """P uniform, predicted exactly, K = 2: both losses are 0."""
    rng = generator("debiasing", SEED, n, items)
    found = []
    for _ in range(200 if items < 5000 else 100):
        p = rng.random(items)
        q = np.column_stack([p, 1 - p])
        losses = evaluate(draw_labels(q, n, rng), q)
        kept = {k: losses[k] for k in ("EL_plugin", "EL", "CL_plugin", "CL")}
        found.append({"n": n, "items": items, **kept})
    return found


def _debiasing_blocks(records: pd.DataFrame, plan: Plan) -> str:
    def said(name: str) -> Callable[[pd.DataFrame], str]:
        return lambda own: f"{_signed(own[name].mean())} ({_signed(own[name].std())})"

    columns = {
        "runs": len, "EL plugin": said("EL_plugin"),
        "1/(3n)": lambda own: _signed(1 / (3 * own["n"].iloc[0])),
        "EL debiased": said("EL"), "CL plugin": said("CL_plugin"),
        "15/(3nN)": lambda own: _signed(15 / (3 * (own["n"].iloc[0] * own["items"].iloc[0]))),
        "CL debiased": said("CL"),
    }  # fmt: skip
    texts = records.assign(size=records["items"].map("{:,}".format))
    shown = grouped(texts, ["n", "size"], columns, ["labels", "items"])
    figure, axes = panels((9.2, 3.8), 1, 2)
    for axis, loss in zip(axes, ("EL", "CL"), strict=True):
        for colour, (n, part) in zip(("C0", "C1"), records.groupby("n"), strict=False):
            _draw_losses(axis, part, loss, n, colour)
        axis.axhline(0, color="0.6", lw=0.8)
        axis.set(xscale="log", xlabel="items", title="EL" if loss == "EL" else "CL x items")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    text = "Plugin and debiased losses by number of items"
    picture = plan.picture(figure, "disagreement-debiasing", text)
    return f"{shown}\n\n{picture}"


def _draw_losses(axis: Axes, part: pd.DataFrame, loss: str, n: int, colour: str) -> None:
    """Mean and standard deviation of a loss by number of items, with the closed form dotted.

    CL falls as 1 / items, and is drawn times their number.
    """
    by = part.groupby("items")
    x = np.array(sorted(by.groups), dtype=float)
    scale = x if loss == "CL" else np.ones_like(x)
    for name, style in ((f"{loss}_plugin", "o-"), (loss, "s--")):
        what = "debiased" if name == loss else "plugin"
        axis.errorbar(
            x, by[name].mean() * scale, by[name].std(ddof=1) * scale, fmt=style, color=colour,
            ms=4, capsize=2, label=f"{what}, {n} labels",
        )  # fmt: skip
    closed = 15 / (3 * n) if loss == "CL" else 1 / (3 * n)
    axis.plot(x, np.full_like(x, closed), ":", color="0.2", lw=1)


def _signed(value: float) -> str:
    """Three significant digits."""
    return f"{value:.2e}" if abs(value) < 1e-3 else number(value, 4)


def _truth(data: Path, n: int, draws: int) -> list[Record]:
    """Losses of the six classifiers by labels that are drawn anew, and by Q itself.

    Q is a million labels in its proportions. Their debiased CL is that of the population; the
    plugin is that of the items.
    """
    own = world(data, MNIST)
    _, test = own.parts(SEED, 0)
    q, rng = truth(data)[test], generator("truth", SEED, n)
    labels = np.round(1e6 * q)
    models = range(len(own.facts.models))
    true = {j: evaluate(labels, own.probabilities[test, j]) for j in models}
    found = []
    for draw in range(draws):
        histogram = draw_labels(q, n, rng)
        for j, name in enumerate(own.facts.models):
            losses = evaluate(histogram, own.probabilities[test, j])
            for loss in ("EL", "CL"):
                found.append({
                    "n": n, "draw": draw, "model": name, "loss": loss, "truth": true[j][loss],
                    "items": true[j][f"{loss}_plugin"],
                    "debiased": losses[loss], "plugin": losses[f"{loss}_plugin"],
                })  # fmt: skip
    return found


def _truth_blocks(records: pd.DataFrame, plan: Plan) -> str:
    def known(name: str) -> Callable[[pd.DataFrame], str]:
        return lambda own: number(own[name].iloc[0], 5)

    means = {
        f"{n} labels: {what}": where("n", n, averaged(what, 5, "sem"))
        for n in (2, 5, 10)
        for what in ("plugin", "debiased")
    }
    heads = {"EL": {"EL by Q": known("truth")},
             "CL": {"of these items": known("items"), "CL by Q": known("truth")}}  # fmt: skip
    blocks = [
        f"**{loss}**\n\n"
        + grouped(records[records["loss"] == loss], ["model"], head | means, ["classifier"])
        for loss, head in heads.items()
    ]
    error = records.assign(gap=records["debiased"] - records["truth"])
    error = error.groupby(["model", "n", "loss"])["gap"]
    z = (error.mean() / error.sem()).abs()
    said = (
        f"Of the {len(z)} debiased means {(z > 1.96).sum()} are more than 1.96 "
        f"standard errors from the truth; the farthest is {z.max():.2f}."
    )
    return "\n\n".join([*blocks, said])


def _oracle(data: Path, run: int, n: int) -> list[Record]:
    """Squared distance of the predicted disagreement to that of Q."""
    trial = Trial(world(data, MNIST), SEED, run, n)
    q = truth(data)[trial.test]
    differ = 1 - (q**2).sum(axis=1)
    found, noise = [], float((differ * (1 - differ)).mean())
    for method in _ORACLE:
        for said in forecasts(trial, method_of(method)):
            gaps = {method: said.disagreement}
            if method == "temperature":
                # The best that one concentration, and one of every item's own, can do with these.
                plain = 1 - (said.probabilities**2).sum(axis=1)
                constant = np.clip(differ @ plain / (plain @ plain), 0, 1)
                gaps["best constant, temperature"] = constant * plain
                each = np.clip(differ / np.maximum(plain, 1e-12), 0, 1)
                gaps["best of each item, temperature"] = each * plain
            found += [
                {"n": n, "model": said.name, "method": name, "gap": ((d - differ) ** 2).mean(),
                 "noise": noise}
                for name, d in gaps.items()
            ]  # fmt: skip
    return found


def _oracle_blocks(records: pd.DataFrame, plan: Plan) -> str:
    parts = [f"L of the oracle, which knows Q: {number(records['noise'].iloc[0], 4)}."]
    for size, own in records.groupby("n"):
        means = own.pivot_table("gap", "model", "method", sort=False)
        means = means[sorted(means, key=lambda name: name.startswith("best"))]
        # From what needs no classifier: one number is what any of them must beat.
        share = 1 - means.drop(columns=ONE_NUMBER).div(means[ONE_NUMBER], axis=0)
        parts += [
            f"**Mean squared distance to the disagreement of Q, {size} labels**",
            markdown(means.map(partial(number, digits=5)), ["classifier"]),
            f"**Share of the way from one number for all items to Q, {size} labels**",
            markdown(share.map("{:.0%}".format), ["classifier"]),
        ]
    return "\n\n".join(parts)


_ORACLE = ("raw", ONE_NUMBER, "temperature", *ALPHA)


DEBIASING = Part(
    crossed(n=SIZES, items=Some(COUNTS, 2)), _debiasing, _debiasing_blocks,
    f"200 runs (100 from 5,000 items), seed {SEED}; in brackets the standard deviation",
)  # fmt: skip
TRUTH = Part(
    lambda plan: [{"n": n, "draws": 5 if plan.quick else 100} for n in (2, 5, 10)],
    _truth, _truth_blocks,
    f"7,500 test items, 100 draws of all labels from Q, seed {SEED}; ± is the standard error",
)  # fmt: skip
ORACLE = Part(
    crossed(run=Some(range(RUNS)), n=SIZES), _oracle, _oracle_blocks,
    f"seed {SEED}, means over {RUNS} runs"
)  # fmt: skip
