"""Made-up classifiers with known truth, and the golden CivilComments splits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax

import fewlabels as fl


@dataclass(frozen=True, eq=False)
class World:
    """Probabilities (n, M, K), all true labels (n,), and those that are shown (-1 = hidden)."""

    P: np.ndarray
    truth: np.ndarray
    shown: np.ndarray

    @property
    def models(self) -> tuple[str, ...]:
        return tuple("abcdefghij"[: self.P.shape[1]])

    def predictions(self, **options: Any) -> fl.Predictions:
        options = {"models": self.models, "labels": self.shown} | options
        return fl.Predictions(self.P, **options)


def tenths(P: np.ndarray) -> np.ndarray:
    """Probabilities rounded to one decimal so that every row still sums to 1: many ties."""
    whole = np.floor(P * 10 + 1e-9).astype(int)
    left = 10 - whole.sum(axis=-1)
    order = np.argsort(-(P * 10 - whole), axis=-1)
    rank = np.argsort(order, axis=-1)
    return (whole + (rank < left[..., None])) / 10


def world(
    n: int = 200, models: int = 3, classes: int = 2, labeled: int = 20, seed: int = 0,
    strength: float = 2.0, ties: bool = False,
) -> World:  # fmt: skip
    """Softmax of (strength times the truth + noise shared by the models + their own noise)."""
    rng = np.random.default_rng([seed, n, models, classes, labeled])
    prior = np.linspace(1.5, 1.0, classes)
    truth = rng.choice(classes, n, p=prior / prior.sum())
    logits = strength * np.eye(classes)[truth][:, None, :] + rng.normal(size=(n, 1, classes))
    logits = logits + rng.normal(size=(n, models, classes)) * np.linspace(0.5, 1.5, models)[:, None]
    P = softmax(logits, axis=2)
    if ties:
        P = tenths(P)
    shown = np.full(n, -1)
    chosen = rng.choice(n, labeled, replace=False)
    shown[chosen] = truth[chosen]
    return World(P, truth, shown)


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


# Curves of these very items and at 90%, as the golden values and the loops have them.
OF_THESE = {"confidence_level": 0.9, "estimand": "sample"}
curve_of = partial(fl.curve, **OF_THESE)
curves_of = partial(fl.curves, **OF_THESE)
threshold_of = partial(fl.threshold, **OF_THESE)
