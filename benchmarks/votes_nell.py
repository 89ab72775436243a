"""NELL and the brain data: error rates and labels of classifiers by domain, without labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import fewlabels as fl
from fewlabels.kernels.arrays import Array, Floats, Ints
from parts import SEED, Arguments, Part, Plan, Record, stream
from runs import averaged, grouped, panels, small, where
from votes_methods import BASELINES, SAMPLED, Answer, Method, domains_of, implied, sampled, together

# The authors' unit test has these thresholds; the paper gives none.
_THRESHOLDS = {"ADJ": 0.05, "CMC": 0.05, "CPL": 0.1, "VERB": 0.05}
_REPEATS = 10
ALL = 100
_SHARES = (ALL, 10)
"""Percent of the rows."""

# Repeats at 10% of what takes minutes.
_FEW = {"crowd-svm": 1, "crowd-svm, gradient descent": 2, "vote-selection": 2}

METHODS: dict[str, Method] = {
    **BASELINES,
    **{name: sampled(name) for name in SAMPLED},
    "vote-selection": together(fl.models.VoteSelection()),
}


class Nell(NamedTuple):
    """Votes (n, 4), domains (n,), labels (n,), and error rates by all rows (15, 4)."""

    votes: Ints
    domain: Array
    labels: Ints
    target: Floats

    models: tuple[str, ...] = tuple(_THRESHOLDS)

    def predictions(self) -> fl.Predictions:
        """Without the labels."""
        return fl.Predictions(
            votes=self.votes, domain=self.domain, models=list(self.models), classes=(0, 1)
        )

    def sample(self, percent: int, rng: np.random.Generator) -> Nell:
        """So many of every domain's rows, at random: in the file positive ones come first."""
        if percent == ALL:
            return self
        orders = map(rng.permutation, domains_of(self.predictions()).values())
        r = np.concatenate([np.sort(own[: round(len(own) * percent / 100)]) for own in orders])
        return self._replace(votes=self.votes[r], domain=self.domain[r], labels=self.labels[r])


@lru_cache(maxsize=1)
def read_nell(data: Path) -> Nell:
    """All rows."""
    found = pd.read_parquet(data / "nell" / "data.parquet")
    votes = np.stack([found[f"p__{m}__1"] >= least for m, least in _THRESHOLDS.items()], axis=1)
    return _all_rows(found, votes, tuple(_THRESHOLDS))


@lru_cache(maxsize=1)
def read_brain(data: Path) -> Nell:
    """Eleven regions of the brain, eleven classifiers; .5 is no vote."""
    found = pd.read_parquet(data / "brain_fmri" / "data.parquet")
    models = tuple(f"c{j}" for j in range(1, 12))
    p = found[[f"p__{m}__1" for m in models]].to_numpy()
    return _all_rows(found, np.where(p == 0.5, -1, p), models)


def _all_rows(found: pd.DataFrame, votes: Array, models: tuple[str, ...]) -> Nell:
    votes, labels = votes.astype(np.int64), found["label"].to_numpy(np.int64)
    domain = found["domain"].to_numpy().astype(str)
    known = fl.Predictions(votes=votes, domain=domain, classes=(0, 1))
    return Nell(votes, domain, labels, implied(known, np.eye(2)[labels]), models)


def nell_cells(
    plan: Plan, names: Sequence[str], quick: Sequence[str] = ("majority-vote", "bee"),
    few: Mapping[str, int] = _FEW, held: Sequence[str] = (),
) -> list[Arguments]:  # fmt: skip
    """Every method on all rows, but for those that are held back, and on random tenths of them."""
    return [
        {"method": name, "percent": percent, "repeat": r}
        for name in (quick if plan.quick else names)
        for percent, repeats in ((ALL, range(0 if name in held else 1)),
                                 (10, plan.some(range(few.get(name, _REPEATS)))))
        for r in repeats
    ]  # fmt: skip


def nell_run(
    data: Path, method: str, percent: int, repeat: int, *, brain: bool = False,
    methods: Mapping[str, Method] = METHODS,
) -> list[Record]:  # fmt: skip
    """Errors of the rates and of the labels."""
    own = (read_brain if brain else read_nell)(data)
    own = own.sample(percent, stream("votes", "nell", repeat))
    found = errors(own, methods[method](own.predictions(), repeat))
    return [{"method": method, "percent": percent, "repeat": repeat, **found}]


def errors(nell: Nell, found: Answer) -> dict[str, float]:
    """Errors of rates, mean squared and absolute, and of labels, soft and hard: domain by domain.

    A tie is class 1, as in the authors' code.
    """
    positive = found.labels[:, 1]
    soft, hard = np.abs(positive - nell.labels), (positive >= 0.5) != nell.labels
    domains, gap = domains_of(nell.predictions()).values(), found.error - nell.target
    return {
        "mse": float((gap**2).mean()),
        "mad": float(np.abs(gap).mean()),
        "soft": float(np.mean([soft[rows].mean() for rows in domains])),
        "hard": float(np.mean([hard[rows].mean() for rows in domains])),
    }


def table_by_method(records: pd.DataFrame, figures: Mapping[str, str]) -> str:
    """Means of figures by method, on all rows and on 10% of them."""
    columns: dict[str, Callable[[pd.DataFrame], Any]] = {}
    for percent, (name, title) in product(_SHARES, figures.items()):
        say = averaged(name, small if name == "mse" else 4, "sem")
        columns[f"{percent}%: {title}"] = where("percent", percent, say)
    columns["repeats at 10%"] = lambda own: (own["percent"] == 10).sum()
    return grouped(records, ["method"], columns)


def nell_blocks(records: pd.DataFrame, plan: Plan) -> dict[str, str]:
    """The table, and figure 4 of the paper: its part a is NELL, b the brain data."""
    figures = {"mse": "MSE", "mad": "MAD", "soft": "labels, soft", "hard": "labels, hard"}
    shown = table_by_method(records, figures)
    name = "figure4b" if plan.part == "brain" else "figure4"
    text = "Error of the rates and of the labels by method, on all rows and on 10% of them"
    figure = plan.picture(draw_figure(records), f"votes/{name}", text)
    return {plan.part: shown, name: figure}


def draw_figure(records: pd.DataFrame) -> Figure:
    """Absolute errors of rates and labels, on all rows and on a tenth, a line for each method."""
    methods = list(dict.fromkeys(records["method"]))[::-1]
    figure, axes = panels((8.6, 1.6 + 0.26 * len(methods)), 1, 2, sharey=True)
    shown = (("mad", "mean absolute error of the error rates"), ("hard", "error of the labels"))
    for axis, (column, title) in zip(axes, shown, strict=True):
        for percent, color, shift in ((ALL, "#0072B2", 0.13), (10, "#D55E00", -0.13)):
            own = records[records["percent"] == percent].groupby("method")[column]
            mean, spread = own.mean().reindex(methods), own.std(ddof=1).reindex(methods)
            axis.errorbar(mean, np.arange(len(methods)) + shift, xerr=spread.fillna(0), fmt="o",
                          ms=4, color=color, label=f"{percent}% of the rows")  # fmt: skip
        axis.set(title=title, xscale="log")
        axis.grid(axis="x", which="both", color="0.9", lw=0.6)
        axis.set_axisbelow(True)
    axes[0].set_yticks(np.arange(len(methods)), methods)
    axes[1].legend(frameon=False)
    return figure


NELL = Part(
    partial(nell_cells, names=list(METHODS)), nell_run, nell_blocks,
    "all 308,130 rows once, and random tenths of every category's; models by Gibbs sampling with "
    f"their defaults (1,000 + 2,000 sweeps, alpha = gamma = 1) in one chain; seed {SEED}; ± is "
    "the standard error over repeats",
)  # fmt: skip
BRAIN = Part(
    # Agreement rates of subsets of eleven classifiers are too many.
    partial(nell_cells, names=[name for name in METHODS if name != "agreement-rates"]),
    partial(nell_run, brain=True), nell_blocks,
    "all 10,164 rows (eleven regions, eleven classifiers; undecided is no vote) once, and random "
    f"tenths of every region's; as for NELL; seed {SEED}; ± is the standard error over repeats",
)  # fmt: skip
