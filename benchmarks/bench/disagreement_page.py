"""The page of the benchmark of disagreement: losses by method and classifier, reliability."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from bench.disagreement import BIN, ONE_NUMBER, RELIABILITY
from bench.figures import Figure, Panel
from bench.page import Page
from bench.results import Results
from bench.tables import NOTHING, Table, plural

SECTIONS = {
    "Losses of the probabilities": {
        "L": "L, expected squared loss",
        "EL": "EL, epistemic loss: squared distance to the label distribution",
        "CL": "CL, calibration loss",
        "CE": "CE, calibration error",
        "accuracy": "Accuracy",
    },
    "Predicted disagreement": {
        "L_disagreement": "L of disagreement",
        "CE_disagreement": "CE of disagreement",
    },
    "One label of an expert": {
        "prior_EL": "EL before the label",
        "posterior_EL": "EL after the label",
    },
}
"""Title of a section -> its metrics, in their order."""

PERFECT = "perfect calibration"
_DRAWN = ("raw", "temperature", "raw+alpha-constant", "temperature+alpha-features")
"""Methods of the diagrams; where one has not run, the others are drawn."""

_SIGNIFICANT = 1e-12
"""Equal to the last bits but one: methods that leave probabilities as they are."""


def page_of(results: Results) -> Page:
    """Tables by data set, labels per item and metric: rows of methods, columns of classifiers."""
    rows = results.rows[results.rows["model"] != ""]
    sections, wins = [], pd.Series(dtype=int)
    total = 0
    for dataset in results.datasets:
        for title, metrics in SECTIONS.items():
            tables = []
            for size in results.protocol.n_labeled:
                for metric, words in metrics.items():
                    own = rows[(rows["dataset"] == dataset.name) & (rows["metric"] == metric)
                               & (rows["n_labeled"] == size)]  # fmt: skip
                    if own.empty:
                        continue
                    means, spreads = _over_runs(own, list(dataset.models), results)
                    marks = best(means, metric)
                    place = f"{dataset.name}, {plural(size, 'label')} per validation item: {words}"
                    tables.append(Table(place, _texts(means, spreads, marks)))
                    if metric == "L_disagreement":
                        wins = wins.add(marks.sum(axis=1), fill_value=0)
                        total += means.shape[1]
            if tables:
                sections.append((f"{title}: {dataset.name}", tables))
    wins = wins.reindex([m for m in results.protocol.methods if m in wins])
    return Page(_headline(wins, total), READING, list(_figures(rows, results)), None, sections)


def _over_runs(
    own: pd.DataFrame, models: list[str], results: Results
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Mean and sd (ddof 1) over the runs, where none of them lacks a value."""
    there = set(own["model"])
    columns = [m for m in models if m in there] + sorted(there - set(models), reverse=True)
    methods = [m for m in results.protocol.methods if m in set(own["method"])]
    grouped = own.groupby(["method", "model"])["estimate"]
    whole = grouped.count() == grouped.size()
    mean, sd = (v.where(whole).unstack() for v in (grouped.mean(), grouped.std(ddof=1)))
    return mean.loc[methods, columns], sd.loc[methods, columns]


def best(means: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Whether the mean of a method is the best of its column; where two have one at least.

    One number for all items has no calibration error to speak of, and takes no part in that.
    """
    table = -means if metric == "accuracy" else means.copy()
    if metric == "CE_disagreement":
        table.loc[table.index == ONE_NUMBER] = np.nan
    contested = table.notna().sum() > 1
    return (table <= table.min() + _SIGNIFICANT) & contested


def _texts(means: pd.DataFrame, spreads: pd.DataFrame, marks: pd.DataFrame) -> pd.DataFrame:
    """Four decimals, as methods often differ in the third; more where all are tiny."""
    largest = np.nanmax(np.abs(means.to_numpy()), initial=0.0)
    digits = 4 if not largest or largest >= 5e-3 else 3 - math.floor(math.log10(largest))

    def text(mean: float, sd: float, mark: bool) -> str:
        if math.isnan(mean):
            return NOTHING
        around = "" if math.isnan(sd) else f" ± {sd:.{digits}f}"
        said = f"{round(mean, digits) + 0.0:.{digits}f}{around}"
        return f"**{said}**" if mark else said

    return pd.DataFrame(
        [
            [text(*cell) for cell in zip(*parts, strict=True)]
            for parts in zip(means.to_numpy(), spreads.to_numpy(), marks.to_numpy(), strict=True)
        ],
        index=means.index,
        columns=means.columns,
    )


def _headline(wins: pd.Series, total: int) -> str:
    """Which method predicts disagreement best, for how many classifiers."""
    if wins.empty or not wins.max():
        return "There are no results to compare."
    leaders = wins.index[wins == wins.max()].tolist()
    return (
        f"{' and '.join(leaders)} {'has' if len(leaders) == 1 else 'each have'} the least loss of "
        f"predicted disagreement in {int(wins.max()):,} of {plural(total, 'comparison')} "
        "(classifiers, their mean and ensemble, by data set and labels per item)."
    )


def _figures(rows: pd.DataFrame, results: Results) -> Iterator[Figure]:
    """Reliability of the predicted disagreement: a panel per classifier."""
    asked = results.protocol.methods
    drawn = [m for m in _DRAWN if m in asked] or list(asked[:4])
    binned = rows[rows["group"].str.startswith(f"{BIN}=") & rows["metric"].isin(RELIABILITY)]
    keys = ["method", "group", "run"]
    for dataset in results.datasets:
        for size in results.protocol.n_labeled:
            own = binned[(binned["dataset"] == dataset.name) & (binned["n_labeled"] == size)]
            panels = []
            for model in dataset.models:
                of = own[own["model"] == model]
                wide = of.pivot(index=keys, columns="metric", values="estimate").dropna()
                by_method = {m: points(wide.loc[[m]]) for m in drawn if m in wide.index}
                if not by_method:
                    continue
                end = max(line["x"].max() for line in by_method.values())
                by_method[PERFECT] = pd.DataFrame({"x": [0, end], "mean": [0, end], "se": 0.0})
                panels.append(
                    Panel(model, "predicted disagreement", "observed disagreement", by_method)
                )
            if panels:
                place = f"{dataset.name}, {plural(size, 'label')} per validation item"
                heading = "Reliability of predicted disagreement"
                yield Figure("reliability", place, panels, _ABOUT, heading)


def points(wide: pd.DataFrame) -> pd.DataFrame:
    """Mean predicted and observed disagreement of each bin over the runs, weighted by its share."""
    predicted, observed, share = RELIABILITY
    weight = wide[share] / wide.groupby("group")[share].transform("sum")
    grouped = wide.assign(x=weight * wide[predicted], mean=weight * wide[observed]).groupby("group")
    found = grouped[["x", "mean"]].sum()
    return found.assign(se=grouped[observed].sem()).sort_values("x")


_ABOUT = (
    "Share of pairs of labels that differ, against the predicted probability that two experts "
    "disagree, in bins of equal width; shaded is one standard error over the runs. Where the "
    "curve is below the dotted line, more disagreement is predicted than there is."
)
READING = {
    "Losses": "Means over the test items with all their labels, debiased: L, EL and CL estimate "
    "what infinitely many labels per item would give, so EL and CL can be negative; CE is the root "
    "of CL, or 0 where that is negative.",
    "Methods": "one-number predicts the share of pairs of validation labels that differ for every "
    "item, and looks at no classifier. raw leaves probabilities as they are; temperature, vector "
    "and matrix scaling are fitted to the labels of the validation items. +alpha-... adds an "
    "alpha-calibration, whose concentration is constant, depends on the probabilities of the "
    "classifier (logits), or on the log-probabilities of all of them (features). It changes "
    "neither the probabilities nor their losses, but the predicted disagreement and what a label "
    "teaches.",
    "Disagreement": "The probability that two experts give an item different labels: one less the "
    "sum of squared probabilities without alpha-calibration, and that times a/(a + 1) with it. L "
    "is the squared loss over all pairs of labels, CE the debiased calibration error in 15 bins.",
    "One label": "One label of each test item is drawn, and the posterior after it is judged by "
    "the others (items of fewer than three labels are left out), beside the prior on the same "
    "labels.",
    "Mean and ensemble": "'mean of all' is the average probability, treated as one more "
    "classifier. 'ensemble' takes the classifiers as draws of a class probability: disagreement is "
    "the mean of theirs, and a label weights them by the probability that they gave it.",
    "±": "Standard deviation over the runs.",
    "Bold": "The best mean of a column.",
}
