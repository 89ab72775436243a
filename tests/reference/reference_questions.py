"""What the twins share: asking the library, means over items, an oracle, and the golden splits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

import fewlabels as fl
from worlds import World, drawn_world


def infer(model: fl.models.LabelModel, predictions: fl.Predictions, seed: int = 0):
    return model.infer(predictions, np.random.default_rng(seed))


def marginals(model: fl.models.LabelModel, predictions: fl.Predictions, seed: int = 0):
    return infer(model, predictions, seed).marginals()


def value(predictions: fl.Predictions, method, name: str = "accuracy", j: int = 0, **options):
    """One point estimate, without an interval."""
    options = {"estimand": "sample", "confidence_level": None} | options
    estimates = fl.estimate(predictions, method=method, metrics=[name], **options)
    return estimates.get(predictions.models[j], name).value


# metrics that are means over items

MEANS = ("accuracy", "error_rate", "brier", "log_loss")


def per_item(name: str, P: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The metric of every item by itself, for one classifier's P (n, 2)."""
    right = P.argmax(axis=1) == y
    return {
        "accuracy": right.astype(float),
        "error_rate": 1.0 - right,
        "brier": (P[:, 1] - y) ** 2,
        "log_loss": -np.log(np.where(y == 1, P[:, 1], P[:, 0])),
    }[name]


def proxies(name: str, P: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Expectation of the metric of every item under P(class) = mean."""
    zero, one = (per_item(name, P, np.full(len(P), k)) for k in (0, 1))
    return mean[:, 0] * zero + mean[:, 1] * one


def ppi_parts(w: World, name: str, j: int, proxy: str = "ensemble"):
    """Metric and proxy of the labeled, proxy of the unlabeled."""
    known = w.shown >= 0
    P = w.P[:, j]
    f = proxies(name, P, w.P.mean(axis=1) if proxy == "ensemble" else P)
    return per_item(name, P[known], w.shown[known]), f[known], f[~known]


def covered(method_of, estimand: str, labeled: int, sharper: float, runs: int, level: float):
    """Share of intervals that hold the truth, by metric; N = 400."""
    rng = np.random.default_rng([labeled, int(10 * sharper)])
    P, truth = drawn_world(200_000, rng, sharper)
    names = ("accuracy", "brier")
    true = {k: per_item(k, P[:, 0], truth).mean() for k in names}
    hits = dict.fromkeys(names, 0)
    for r in range(runs):
        rows = rng.choice(len(P), 400, replace=False)
        y = truth[rows]
        model, shown = method_of(y, labeled)
        estimates = fl.estimate(
            fl.Predictions(P[rows], shown), method=model, metrics=[*names],
            estimand=estimand, confidence_level=level, random_state=r,
        )  # fmt: skip
        for k in names:
            row = estimates.get("model0", k)
            aim = true[k] if estimand == "population" else per_item(k, P[rows, 0], y).mean()
            hits[k] += row.low <= aim <= row.high
    return {k: hits[k] / runs for k in names}


class Oracle:
    """Answers from the truth and keeps what it was asked."""

    def __init__(self, truth: np.ndarray) -> None:
        self.truth, self.asked = truth, []

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        self.asked.append(np.array(rows))
        return self.truth[rows]


# the golden splits


@dataclass(frozen=True, eq=False)
class Golden:
    """The splits of the released sampler and the estimates that came from them."""

    data_folder: Path
    golden_folder: Path
    models = ("CORAL", "ERM", "ERM_seed1", "ERM_seed2", "IRM", "IRM_seed1", "IRM_seed2")
    metric_names = {  # noqa: RUF012
        "accuracy": "acc",
        "ece_quantile": "ece",
        "roc_auc": "auc",
        "average_precision": "auprc",
    }

    @cached_property
    def _frame(self) -> Any:
        import pandas as pd

        columns = ["label", *(f"p__{m}__1" for m in self.models)]
        path = self.data_folder / "ssme_civilcomments" / "data.parquet"
        return pd.read_parquet(path, columns=columns)

    @cached_property
    def _estimates(self) -> Any:
        import pandas as pd

        frame = pd.read_parquet(self.golden_folder / "ssme_civilcomments_reference.parquet")
        return frame.set_index(["method", "n_labeled", "run", "model", "metric"])[
            "estimate"
        ].to_dict()

    def table(self, method: str, n_labeled: int, run: int) -> np.ndarray:
        """Golden estimates, shape (models, metrics)."""
        return np.array(
            [
                [
                    self._estimates[method, n_labeled, run, f"alg_{m}", k]
                    for k in self.metric_names.values()
                ]
                for m in self.models
            ]
        )

    def split(self, n_labeled: int, run: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """P(class 1) (n, 7), the true labels (n,), and which of the items are labeled."""
        with np.load(self.golden_folder / f"ssme_civilcomments_splits_nl{n_labeled}.npz") as file:
            rows = np.concatenate([file["labeled_idx"][run], file["unlabeled_idx"][run]])
        chosen = self._frame.iloc[rows]
        P = chosen[[f"p__{m}__1" for m in self.models]].to_numpy().astype(np.float64)
        return P, chosen["label"].to_numpy().astype(int), np.arange(len(rows)) < n_labeled

    def predictions(self, n_labeled: int, run: int, *, all_labels: bool = False) -> fl.Predictions:
        P, y, labeled = self.split(n_labeled, run)
        return fl.Predictions(P, np.where(labeled | all_labels, y, -1), models=self.models)


def values(
    estimates: fl.Estimates, models: tuple[str, ...], metrics: tuple[str, ...]
) -> np.ndarray:
    """Point estimates, shape (models, metrics)."""
    return np.array([[estimates.get(m, k).value for k in metrics] for m in models])


# Rows alone, without comparisons and pictures.
estimates_of = partial(fl.estimate)

# Curves of these very items and at 90%, as the golden values and the loops have them.
OF_THESE = {"confidence_level": 0.9, "estimand": "sample"}
curve_of = partial(fl.curve, **OF_THESE)
curves_of = partial(fl.curves, **OF_THESE)
threshold_of = partial(fl.threshold, **OF_THESE)
