"""Losses of label histograms against known truth: simulated data, and Mix-MNIST's Q."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from bench.disagreement import ONE_NUMBER, Trial, forecasts, method_of
from bench.splits import generator
from disagreement_data import ALPHA, MNIST, RUNS, SEED, SIZES, Floats, draw_labels, truth, world
from fewlabels.annotations import evaluate
from parts import Part, Plan, Record, Some, crossed
from runs import averaged, grouped, number, panels, table, where

# --- Figure 2: debiasing on data that are calibrated --------------------------------------------

COUNTS = (100, 250, 500, 1000, 2500, 5000, 10000)


def _debiasing(data: Path, n: int, items: int) -> list[Record]:
    """P uniform, predicted exactly, K = 2: both losses are 0."""
    rng = generator("debiasing", SEED, n, items)
    found = []
    for _ in range(200 if items < 5000 else 100):
        p = rng.random(items)
        q = np.column_stack([p, 1 - p])
        losses = evaluate(draw_labels(q, n, rng), q)
        found.append({k: losses[k] for k in ("EL_plugin", "EL", "CL_plugin", "CL")})
    return [{"n": n, "items": items, **row} for row in found]


def _debiasing_blocks(records: pd.DataFrame, plan: Plan) -> dict[str, str]:
    def said(name: str) -> Callable[[pd.DataFrame], str]:
        return lambda own: f"{_signed(own[name].mean())} ({_signed(own[name].std())})"

    def closed(bins: int, say: Callable[[pd.DataFrame], float]) -> Callable[[pd.DataFrame], str]:
        return lambda own: _signed(bins / (3 * say(own)))

    columns = {
        "runs": len,
        "EL plugin": said("EL_plugin"),
        "1/(3n)": closed(1, lambda own: own["n"].iloc[0]),
        "EL debiased": said("EL"),
        "CL plugin": said("CL_plugin"),
        "15/(3nN)": closed(15, lambda own: own["n"].iloc[0] * own["items"].iloc[0]),
        "CL debiased": said("CL"),
    }
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
    return {"debiasing": f"{shown}\n\n{picture}"}


def _draw_losses(axis: Axes, part: pd.DataFrame, loss: str, n: int, colour: str) -> None:
    """Mean and standard deviation of a loss by number of items, with the closed form dotted.

    CL falls as 1 / items, and is drawn times their number.
    """
    by = part.groupby("items")
    x = np.array(sorted(part["items"].unique()), dtype=float)
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


# --- debiased losses against the truth ----------------------------------------------------------


def _truth(data: Path, n: int, draws: int) -> list[Record]:
    """Losses of the six classifiers by labels that are drawn anew, and by Q itself."""
    own = world(data, MNIST)
    _, test = own.parts(SEED, 0)
    q, rng = truth(data)[test], generator("truth", SEED, n)
    true = {j: _true_losses(q, own.probabilities[test, j]) for j in range(len(own.facts.models))}
    found = []
    for draw in range(draws):
        histogram = draw_labels(q, n, rng)
        for j, name in enumerate(own.facts.models):
            losses = evaluate(histogram, own.probabilities[test, j])
            for loss in ("EL", "CL"):
                found.append({
                    "n": n, "draw": draw, "model": name, "loss": loss, "truth": true[j][loss],
                    "items": true[j][f"{loss}, items"],
                    "debiased": losses[loss], "plugin": losses[f"{loss}_plugin"],
                })  # fmt: skip
    return found


def _true_losses(q: Floats, p: Floats) -> dict[str, float]:
    """Losses with Q in the place of the label frequencies.

    "CL" is that of the population, as the debiased estimate has it: from the squared gap of every
    bin of these items ("CL, items") the variance of its mean Q is taken off.
    """
    items = excess = 0.0
    for k in range(q.shape[1]):
        bins = np.digitize(p[:, k], np.linspace(0, 1, 16)[1:-1])
        size = np.bincount(bins, minlength=15)
        some, several = size > 0, size > 1
        gap, mean, square = (
            np.bincount(bins, v, minlength=15) / np.maximum(size, 1)
            for v in (q[:, k] - p[:, k], q[:, k], q[:, k] ** 2)
        )
        items += float((size * gap**2)[some].sum()) / len(q)
        variance = (square - mean**2)[several] / (size[several] - 1)
        excess += float((size[several] * variance).sum()) / len(q)
        excess += float((gap[size == 1] ** 2).sum()) / len(q)  # the paper's rule for one item
    el = float(((q - p) ** 2).sum(axis=1).mean())
    return {"EL": el, "CL": items - excess, "EL, items": el, "CL, items": items}


def _truth_blocks(records: pd.DataFrame, plan: Plan) -> dict[str, str]:
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
    error = (records["debiased"] - records["truth"]).groupby(
        [records["model"], records["n"], records["loss"]]
    )
    z = (error.mean() / error.sem()).abs()
    said = (
        f"Of the {len(z)} debiased means {(z > 1.96).sum()} are more than 1.96 "
        f"standard errors from the truth; the farthest is {z.max():.2f}."
    )
    return {"truth": "\n\n".join([*blocks, said])}


# --- the oracle ---------------------------------------------------------------------------------


def _oracle(data: Path, run: int, n: int) -> list[Record]:
    """Squared distance of the predicted disagreement to that of Q, and of posteriors to Q."""
    own = world(data, MNIST)
    trial = Trial(own, SEED, run, n)
    q = truth(data)[trial.test]
    differ = 1 - (q**2).sum(axis=1)
    found = []
    for method in _ORACLE:
        for said in forecasts(trial, method_of(method)):
            gap = [("disagreement", ((said.disagreement - differ) ** 2).mean())]
            if said.posterior is not None:
                after = ((said.posterior - q[trial.again]) ** 2).sum(axis=1).mean()
                gap.append(("posterior", after))
            if method in ("raw", "temperature"):
                gap += _bounds(said.probabilities, q, differ)
            found += [
                {"run": run, "n": n, "model": said.name, "method": method, "what": what, "gap": v}
                for what, v in gap
            ]
    noise = float((differ * (1 - differ)).mean())
    return [{**record, "noise": noise} for record in found]


def _bounds(p: Floats, q: Floats, differ: Floats) -> list[tuple[str, float]]:
    """The best that one concentration, and one of every item's own, can do with these p."""
    plain = 1 - (p**2).sum(axis=1)
    constant = np.clip(differ @ plain / (plain @ plain), 0, 1)
    each = np.clip(differ / np.maximum(plain, 1e-12), 0, 1)
    prior = ((p - q) ** 2).sum(axis=1).mean()
    return [
        ("best constant", ((constant * plain - differ) ** 2).mean()),
        ("best of each item", ((each * plain - differ) ** 2).mean()),
        ("prior", prior),
    ]


def _oracle_blocks(records: pd.DataFrame, plan: Plan) -> dict[str, str]:
    means = records.groupby(["n", "model", "method", "what"])["gap"].mean()
    parts = [f"L of the oracle, which knows Q: {number(records['noise'].iloc[0], 4)}."]
    for size in SIZES:
        rows, shares = [], []
        for model in dict.fromkeys(records["model"]):
            own = means[size, model]
            cells = [own.get((m, "disagreement"), np.nan) for m in _ORACLE]
            bounds = [own.get(("temperature", b), np.nan)
                      for b in ("best constant", "best of each item")]  # fmt: skip
            rows.append([model, *(number(v, 5) for v in [*cells, *bounds])])
            # From what needs no classifier: one number is what any of them must beat.
            one = own[ONE_NUMBER, "disagreement"]
            shares.append([
                model, *(f"{100 * (1 - v / one):.0f}%" for v in [cells[0], *cells[2:], *bounds])
            ])  # fmt: skip
        names = list(_ORACLE)
        bounds_named = ["best constant, temperature", "best of each item, temperature"]
        head = ["classifier", *names, *bounds_named]
        parts += [
            f"**Mean squared distance to the disagreement of Q, {size} labels**",
            table(head, rows),
            f"**Share of the way from one number for all items to Q, {size} labels**",
            table(["classifier", names[0], *names[2:], *bounds_named], shares),
        ]
    return {"oracle": "\n\n".join(parts)}


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
