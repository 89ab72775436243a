"""What else monitors a classifier: labels of a period alone, a CUSUM of labels, NannyML.

CBPE (Confidence-based Performance Estimation) calibrates probabilities on the reference and takes
them at their word. DLE (Direct Loss Estimation) predicts a loss of a regression from features; here
the loss is |label - predicted class|, 1 for a mistake, and the feature is P(class 1), so that
1 - its mean absolute error is accuracy. Both alert outside of the reference's mean ± 3 standard
deviations over its periods, NannyML's default. It needs `pip install --group monitors`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest

import fewlabels as fl
from curves_data import stream
from monitor_cases import Case, Floats, scored, setting

YEAR, TUNING, FALSE = 52, 400, 0.05
FALL = 0.1
"""Rise of the error rate that the CUSUM looks for."""


def wilson(right: Floats, counts: Floats, level: float) -> Floats:
    """Ends (2, T) of Wilson's intervals of accuracy, from how many of the labels are right."""
    each = zip(right.tolist(), counts.tolist(), strict=True)
    return np.array([binomtest(k, n).proportion_ci(level, "wilson") for k, n in each]).T


def cusum(wrong: Floats, counts: Floats, before: float) -> Floats:
    """CUSUM (T,) of the log likelihood ratio of an error rate before + .1 (Page 1954)."""
    rate = min(max(before, 0.01), 0.85)
    odds = np.log((rate + FALL) / rate), np.log((1 - rate - FALL) / (1 - rate))
    walk = np.cumsum(wrong * odds[0] + (counts - wrong) * odds[1])
    return walk - np.minimum(np.minimum.accumulate(walk), 0)


@cache
def limit(labels: int) -> float:
    """What a CUSUM exceeds within a year in 5% of worlds without a drift, none of them reported."""
    most = []
    for number in range(TUNING):
        rng = stream("monitor", "tuning", number)
        s = setting(rng)
        p, y = scored(s, s, s.n * s.before, rng)
        now, truth = scored(s, s, YEAR * labels, rng)
        wrong = ((now > 0.5) != truth).reshape(YEAR, labels).sum(axis=1)
        before = float(((p > 0.5) != y).mean())
        most.append(cusum(wrong, np.full(YEAR, labels), before).max())
    return float(np.quantile(most, 1 - FALSE))


def has_nannyml() -> bool:
    """Whether NannyML is there."""
    return find_spec("nannyml") is not None and find_spec("statsmodels") is not None


def nannyml(case: Case, metrics: Sequence[str]) -> dict[str, list[tuple[Floats, ...]]]:
    """CBPE and DLE: for each classifier value, low, high and alert, (T, metrics) each."""
    os.environ["NML_DISABLE_USAGE_LOGGING"] = "1"  # it sends what is run to its makers
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import nannyml as nml

        asked = [{"auc": "roc_auc"}.get(name, name) for name in metrics]
        several = case.items.n_classes > 2
        about = {"timestamp_column_name": "day", "chunk_period": "D", "y_true": "y", "y_pred": "h"}
        found: dict[str, list[tuple[Floats, ...]]] = {
            "CBPE": [],
            **({} if several else {"DLE": []}),
        }
        for model in range(case.items.n_models):
            old = _frame(case.reference, model, "2000-01-01")
            new = _frame(case.items, model, "2001-01-01")
            cbpe = nml.CBPE(
                asked, {k: f"p{k}" for k in range(case.items.n_classes)} if several else "p1",
                problem_type=f"classification_{'multiclass' if several else 'binary'}", **about,
            )  # fmt: skip
            found["CBPE"].append(_values(cbpe.fit(old).estimate(new.drop(columns="y")), asked))
            if not several:
                dle = nml.DLE(["p1"], metrics=["mae"], hyperparameters={"verbose": -1}, **about)
                loss = _values(dle.fit(old).estimate(new.drop(columns="y")), ["mae"])
                found.setdefault("DLE", []).append((*(1 - loss[k] for k in (0, 2, 1)), loss[3]))
    return found


def _frame(items: fl.Predictions, model: int, start: str) -> pd.DataFrame:
    """A row for each item; periods are days in a row."""
    day = pd.factorize(items.groups["period"])[0]
    assert items.probabilities is not None
    frame = pd.DataFrame({f"p{k}": p for k, p in enumerate(items.probabilities[:, model].T)})
    dates = pd.Timestamp(start) + pd.to_timedelta(day, unit="D")
    return frame.assign(h=items.hard[:, model], y=items.labels, day=dates)


def _values(estimated: Any, metrics: Sequence[str]) -> tuple[Floats, ...]:
    found = estimated.filter(period="analysis").to_df()
    names = ("value", "lower_confidence_boundary", "upper_confidence_boundary", "alert")
    return tuple(np.stack([found[m, n].to_numpy(float) for m in metrics], axis=1) for n in names)
