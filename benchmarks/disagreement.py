"""Label histograms: losses without bias, disagreement, and what calibration makes of them.

    python -m benchmarks disagreement all | debiasing | truth | protocol | oracle | temperature |
        penalty | joined | maps | items | network ...

The page is docs/benchmarks/disagreement.md, and figures are beside it. Here are the protocol on
Mix-MNIST and CIFAR-10H, disagreement over the temperature, and `estimate` where annotators differ.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import disagreement_truth
import fewlabels as fl
from bench import disagreement as bench
from bench import run as run_protocol
from bench.disagreement import ENSEMBLE, MEAN, METHODS, ONE_NUMBER, Trial
from bench.splits import generator
from disagreement_maps import ITEMS, MAPS
from disagreement_network import NETWORK
from disagreement_truth import (
    ALPHA,
    CIFAR,
    DEBIASING,
    MNIST,
    ORACLE,
    RUNS,
    SEED,
    SIZES,
    TRUTH,
    Floats,
    file_of,
    truth,
    world,
)
from fewlabels.annotations import evaluate
from fewlabels.calibration import TemperatureScaling
from fewlabels.calibration.penalties import CROSS_VALIDATED
from parts import Part, Plan, Record, Some, crossed, run_page
from runs import averaged, averages, grouped, number, panels, plus_minus, table, where


def _protocol(data: Path, dataset: str, runs: int) -> list[Record]:
    """`python -m benchmarks histograms` on a data set, without its empty bins."""
    apart = [] if dataset == MNIST else ["vector+alpha-constant", "matrix+alpha-constant"]
    with tempfile.TemporaryDirectory() as folder:
        found = run_protocol(
            "histograms", file_of(data, dataset, Path(folder)), Path(folder) / "out", runs=runs,
            workers=1, methods=[*METHODS, *apart], seed=SEED,
        )  # fmt: skip
    names = ["method", "n_labeled", "run", "model", "metric", "group", "estimate"]
    return [{"dataset": dataset} | row for row in found.rows[names].to_dict("records")]


def _protocol_blocks(records: pd.DataFrame, plan: Plan) -> dict[str, str]:
    found = {}
    for dataset in (MNIST, CIFAR):
        own = records[(records["dataset"] == dataset) & (records["group"] == "")]
        mark = dataset.lower()
        found[f"{mark}-losses"] = _tables(own, ("accuracy", "L", "EL", "CL", "CE"), bench.SCALINGS)
        found[f"{mark}-disagreement"] = (
            f"{_tables(own, ('L_disagreement',), METHODS)}\n\n"
            + _tables(own, ("CE_disagreement",), [m for m in METHODS if m != ONE_NUMBER])
        )
        found[f"{mark}-updates"] = _tables(own, ("posterior_EL",), ("prior", "raw", *ALPHA))
        found[f"{mark}-directions"] = _directions(own)
    figure, text = _draw_reliability(records), "Observed against predicted disagreement"
    return found | {"reliability": plan.picture(figure, "disagreement-reliability", text)}


def _tables(own: pd.DataFrame, metrics: Sequence[str], methods: Sequence[str]) -> str:
    """By number of labels, most first, a table per metric: rows of classifiers, columns of methods.

    What is measured with fewer labels is folded where there are many tables.
    """
    blocks = []
    for size in reversed(SIZES):
        parts = [
            f"**{metric}, {size} labels per validation item**\n\n"
            + _table(own[own["n_labeled"] == size], metric, methods)
            for metric in metrics
        ]
        block = "\n\n".join(parts)
        if len(metrics) > 2 and size != SIZES[-1]:
            block = f"<details>\n<summary>{size} labels</summary>\n\n{block}\n\n</details>"
        blocks.append(block)
    return "\n\n".join(blocks)


def _table(own: pd.DataFrame, metric: str, methods: Sequence[str]) -> str:
    """Mean ± standard deviation over the runs, the best of every classifier in bold.

    "prior" is the loss before the label.
    """
    there = [m for m in dict.fromkeys(own["model"]) if m not in (MEAN, ENSEMBLE)]
    prior = own[(own["metric"] == "prior_EL") & (own["method"] == "raw")]
    own = pd.concat([own[own["metric"] == metric], prior.assign(method="prior")])
    own = own[own["method"].isin(methods) & own["estimate"].notna()]
    values = own.groupby(["model", "method"])["estimate"]
    texts = values.apply(lambda v: plus_minus(v, 4, "std")).unstack()
    # As they are written: what looks alike is equally good.
    means = values.mean().round(4).unstack()
    best = means.max(axis=1) if metric == "accuracy" else means.min(axis=1)
    texts = texts.where(means.ne(best, axis=0), "**" + texts + "**").fillna("-")
    texts = texts.reindex(
        index=[*there, MEAN, ENSEMBLE], columns=[m for m in methods if m in texts]
    )
    return table(["classifier", *texts], texts.itertuples())


_ALPHAS = ("alpha-constant", "alpha-logits", "alpha-features")
_PAIRS = (
    *(("one-number", better) for better in ("raw", "temperature", "raw+alpha-constant")),
    *(("one-number", f"temperature+{alpha}") for alpha in _ALPHAS),
    ("raw", "temperature"),
    *((scaling, f"{scaling}+{alpha}") for scaling in ("raw", "temperature") for alpha in _ALPHAS),
    *((f"temperature+{a}", f"temperature+{b}") for a, b in pairwise(_ALPHAS)),
    ("raw+alpha-features", "temperature+alpha-features"),
)
"""The worse and the better one, as is thought."""


def _directions(own: pd.DataFrame) -> str:
    """For how many classifiers a method is better than another, by the means over the runs."""
    single = own[~own["model"].isin([MEAN, ENSEMBLE])]
    means = single.groupby(["n_labeled", "metric", "method", "model"])["estimate"].mean()
    means = means.unstack("model")

    def gains(before: tuple[str, str], after: tuple[str, str], size: int) -> str:
        if not {(size, *before), (size, *after)} <= {*means.index}:
            return ""
        gain = (means.loc[size, *before] - means.loc[size, *after]).dropna()
        return f"{(gain > 0).sum()} of {len(gain)}" if len(gain) else ""

    losses = {"L_disagreement": "L", "CE_disagreement": "CE", "posterior_EL": "EL after a label"}
    rows = [
        [f"{before} → {after}",
         *(gains((loss, before), (loss, after), size) for size in SIZES for loss in losses)]
        for before, after in _PAIRS
    ]  # fmt: skip
    for method in ALPHA:
        cells = [gains(("prior_EL", method), ("posterior_EL", method), size) for size in SIZES]
        rows.append([f"prior → posterior of {method}", *(c for n in cells for c in ("", "", n))])
    return table(["better", *(f"{n} labels: {w}" for n in SIZES for w in losses.values())], rows)


def _draw_reliability(records: pd.DataFrame) -> Figure:
    """Figure 4, first half: Mix-MNIST at five labels."""
    own = records[(records["dataset"] == MNIST) & (records["n_labeled"] == SIZES[-1])]
    own = own[(own["group"] != "") & ~own["model"].isin([MEAN, ENSEMBLE])]
    models = list(dict.fromkeys(own["model"]))
    figure, axes = panels((9.6, 6.4), 2, -(-len(models) // 2), sharey=True, squeeze=False)
    axes = axes.ravel()
    shown = {"raw": "o-", "temperature": "s-", "raw+alpha-constant": "^--",
             "temperature+alpha-features": "D--"}  # fmt: skip
    for axis, model in zip(axes, models, strict=False):
        axis.plot([0, 0.85], [0, 0.85], ":", color="0.4", lw=1)
        for method, style in shown.items():
            part = own[(own["model"] == model) & (own["method"] == method)]
            wide = part.pivot_table("estimate", ["run", "group"], "metric")
            # Bins of a handful of items say nothing.
            wide = wide[wide["share"] > 0.002].groupby("group").mean()
            wide = wide.sort_values("predicted_disagreement")
            axis.plot(wide["predicted_disagreement"], wide["observed_disagreement"], style, ms=3.5,
                      lw=1.2, label=method)  # fmt: skip
        axis.set(title=model, xlim=(0, 0.95), ylim=(0, 0.85), xlabel="predicted disagreement")
    for axis in axes[:: max(1, len(axes) // 2)]:
        axis.set_ylabel("observed disagreement")
    axes[0].legend(frameon=False, fontsize=7.5)
    return figure


TEMPERATURES = tuple(np.round(np.geomspace(1 / 8, 16, 29), 4).tolist())


def _temperature(data: Path, dataset: str) -> list[Record]:
    """Losses of 1 - sum f^2 of f at many temperatures, on the test items of run 0."""
    own = world(data, dataset)
    trial = Trial(own, SEED, 0, SIZES[-1])
    valid, test = trial.scaled("raw")
    found = []
    for j, model in enumerate(trial.models):
        scaling = TemperatureScaling().fit(valid[:, j], trial.counts)
        fitted = float(scaling.temperature_)
        for temperature in (*TEMPERATURES, fitted):
            scaling.temperature_ = temperature
            losses = evaluate(trial.histogram, scaling.predict_proba(test[:, j]))
            found.append({
                "dataset": dataset, "model": model, "temperature": temperature, "fitted": fitted,
                **{k: losses[k] for k in ("L_disagreement", "CE_disagreement", "CE", "L")},
            })  # fmt: skip
    return found


def _temperature_blocks(records: pd.DataFrame, plan: Plan) -> str:
    figure, axes = panels((9.2, 6.6), 2, 2, sharex=True)
    fitted = records["temperature"] == records["fitted"]
    for row, (dataset, own) in zip(axes, records.groupby("dataset", sort=False), strict=True):
        for k, (model, part) in enumerate(own.groupby("model", sort=False)):
            line, at = part.sort_values("temperature"), part[fitted[part.index]]
            for axis, metric in zip(row, ("L_disagreement", "CE_disagreement"), strict=True):
                axis.plot(line["temperature"], line[metric], color=f"C{k}", lw=1.2, label=model)
                axis.plot(at["temperature"], at[metric], "o", color=f"C{k}", ms=5)
                axis.set(xscale="log", title=f"{dataset}: {metric.replace('_', ' of ')}")
        row[0].legend(frameon=False, fontsize=7)
    for axis in axes[1]:
        axis.minorticks_off()
        axis.set(xlabel="temperature", xticks=[2.0**k for k in range(-3, 5)],
                 xticklabels=["1/8", "1/4", "1/2", "1", "2", "4", "8", "16"])  # fmt: skip
    columns = {
        "fitted temperature": averaged("fitted", 2),
        "least L of disagreement at": lambda own: number(
            own.loc[own["L_disagreement"].idxmin(), "temperature"]
        ),
    }
    at_one = (records["temperature"] - 1).abs() < 1e-3
    for metric in ("L_disagreement", "CE_disagreement", "CE"):
        name = metric.replace("_", " of ")
        columns[f"{name}, t = 1"] = lambda own, m=metric: number(own.loc[at_one, m].iloc[0], 4)
        columns[f"{name}, fitted"] = lambda own, m=metric: number(own.loc[fitted, m].iloc[0], 4)
    shown = grouped(records, ["dataset", "model"], columns, ["data", "classifier"])
    text = "Losses of disagreement over the temperature"
    return f"{shown}\n\n{plan.picture(figure, 'disagreement-temperature', text)}"


PENALTIES = {"without": None, ".005": bench.PAPER_PENALTY, "0": 0.0, "chosen": CROSS_VALIDATED}


def _penalty(data: Path, dataset: str, n: int) -> list[Record]:
    """Losses of disagreement by what the concentration depends on and by penalty; run 0."""
    trial = Trial(world(data, dataset), SEED, 0, n)
    kinds, found = (
        bench.CONCENTRATIONS[: 2 + (len(trial.models) > 1)],
        [],
    )  # features are of all of them
    for scaling, kind in product(("raw", "temperature"), kinds):
        _, test = trial.scaled(scaling)
        for name, penalty in PENALTIES.items():
            if penalty is not None:
                fits, features = trial.alpha(scaling, kind, penalty)
            for j, model in enumerate(trial.models):
                p, place = test[:, j], {"scaling": scaling, "kind": kind, "model": model}
                said = None if penalty is None else fits[j].predict_disagreement(p, features)
                losses = evaluate(trial.histogram, p, disagreement=said)
                found.append({
                    "dataset": dataset, "n": n, **place, "penalty": name,
                    "chosen": np.nan if penalty is None else fits[j].penalty_,
                    "L": losses["L_disagreement"], "CE": losses["CE_disagreement"],
                })  # fmt: skip
    return found


def _penalty_blocks(records: pd.DataFrame, plan: Plan) -> str:
    pair = averages({"L": 4, "CE": 4})
    columns = {f"L / CE, {name}": where("penalty", name, pair) for name in PENALTIES}

    def better(own: pd.DataFrame) -> str:
        loss = own.pivot(index="model", columns="penalty", values="L")
        return f"{(loss['chosen'] < loss['.005']).sum()} of {len(loss)}"

    columns["chosen better than .005"] = better
    columns["chosen, median"] = where(
        "penalty", "chosen", lambda own: f"{own['chosen'].median():.0e}"
    )
    head = ["data", "labels", "probabilities", "concentration"]
    return grouped(records, ["dataset", "n", "scaling", "kind"], columns, head)


JOINED_RUNS, DRAWN, LEVEL = 25, 2000, 0.9
METRICS = ("accuracy", "brier", "ece")
SOME = {"50 x 5, 30 x 1": (50, 5, 30), "200 x 3": (200, 3, 0), "30 x 10": (30, 10, 0)}
"""Items with several labels, how many, and items with one."""

WAYS = {
    "auto": ("auto", "distribution"),
    "labeled": ("labeled", "distribution"),
    "auto, one class per item": ("auto", "class"),
    "labeled, majority of the labels": ("labeled", "majority"),
}


def _joined(data: Path, dataset: str, some: str, run: int) -> list[Record]:
    own = world(data, dataset)
    p = own.probabilities
    q = truth(data) if dataset == MNIST else own.histogram
    q = q / q.sum(axis=1, keepdims=True)
    rng = generator("joined", SEED, dataset, some, run)
    rows = rng.choice(len(q), DRAWN, replace=False)
    several, labels, single = SOME[some]
    size = np.zeros(DRAWN, dtype=int)
    size[:several], size[several : several + single] = labels, 1
    histogram = rng.multinomial(size, q[rows])
    true = {j: _losses(q, p[:, j]) for j in range(p.shape[1])}
    found = []
    for way, (method, against) in WAYS.items():
        given: dict[str, Any] = {"histogram": histogram}
        if against == "majority":
            given = {"labels": np.where(size > 0, histogram.argmax(axis=1), -1)}
        estimates = fl.estimate(
            fl.Predictions(p[rows], models=own.facts.models, **given), method, METRICS,
            confidence_level=LEVEL, against="auto" if against == "majority" else against,
        )  # fmt: skip
        for row in estimates.rows:
            wanted = true[own.facts.models.index(row.model)][row.metric]
            found.append({
                "dataset": dataset, "some": some, "run": run, "way": way, "metric": row.metric,
                "model": row.model, "error": row.value - wanted,
                "holds": row.low <= wanted <= row.high, "width": row.high - row.low,
            })  # fmt: skip
    return found


def _losses(q: Floats, p: Floats) -> dict[str, float]:
    """Accuracy, Brier score and ECE of the top label against the distributions Q of all items."""
    top = p.argmax(axis=1)
    hit, sure = q[np.arange(len(q)), top], p.max(axis=1)
    own = np.digitize(sure, np.linspace(0, 1, 16)[1:-1])
    gaps = [abs((hit - sure)[own == b].sum()) for b in range(15)]
    brier = ((p - q) ** 2).sum(axis=1).mean() + 1 - (q**2).sum(axis=1).mean()
    return {"accuracy": float(hit.mean()), "brier": float(brier), "ece": sum(gaps) / len(q)}


def _joined_blocks(records: pd.DataFrame, plan: Plan) -> str:
    def error(own: pd.DataFrame) -> str:
        return plus_minus(own["error"].abs().groupby(own["run"]).mean(), 4)

    figures = {"error": error, "bias": averaged("error", 4), "holds": averaged("holds", 2),
               "width": averaged("width")}  # fmt: skip
    columns = {
        f"{metric}: {name}": where("metric", metric, say)
        for metric in METRICS
        for name, say in figures.items()
    }
    head = ["data", "items x labels", "judged by"]
    return grouped(records, ["dataset", "some", "way"], columns, head)


JOINED = Part(
    crossed(dataset=Some((CIFAR, MNIST), -1), some=tuple(SOME), run=Some(range(JOINED_RUNS))),
    _joined, _joined_blocks,
    f"{JOINED_RUNS} runs of {DRAWN:,} items, seed {SEED}; {LEVEL:.0%} intervals; mean over "
    "classifiers, ± the standard error over runs",
)  # fmt: skip
PENALTY = Part(
    crossed(dataset=(MNIST, CIFAR, *disagreement_truth.SIMULATED), n=SIZES),
    _penalty, _penalty_blocks, f"seed {SEED}, run 0",
)  # fmt: skip
PROTOCOL = Part(
    lambda plan: [{"dataset": n, "runs": 1 if plan.quick else RUNS} for n in (MNIST, CIFAR)],
    _protocol, _protocol_blocks,
    f"{RUNS} runs, seed {SEED}; ± is the standard deviation over the runs",
)  # fmt: skip
TEMPERATURE = Part(
    crossed(dataset=(MNIST, CIFAR)), _temperature, _temperature_blocks,
    f"seed {SEED}, run 0, 5 labels",
)  # fmt: skip

PARTS = {
    "debiasing": DEBIASING, "truth": TRUTH, "protocol": PROTOCOL, "oracle": ORACLE,
    "temperature": TEMPERATURE, "penalty": PENALTY, "joined": JOINED, "maps": MAPS,
    "items": ITEMS, "network": NETWORK,
}  # fmt: skip


if __name__ == "__main__":
    run_page(__doc__, "disagreement", PARTS, PARTS)
