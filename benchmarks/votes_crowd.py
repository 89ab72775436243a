"""Votes of crowd workers, on items some of which have a gold label."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

import fewlabels as fl
from fewlabels.kernels.arrays import Ints

CROWDS = (
    "bluebird", "dog", "face", "rte", "weather_cf", "weather_cf_amt", "sentiment_sp",
    "sentiment_sp_amt", "s5_adult",
)  # fmt: skip


class Crowd(NamedTuple):
    """All votes, and items (G,) whose gold label (G,) is known."""

    predictions: fl.Predictions
    items: Ints
    gold: Ints


def read_crowd(data: Path, name: str) -> Crowd:
    """A set; an annotator's further votes on an item count as well."""
    folder = data / "crowd"
    file = folder / f"{name}.votes.parquet"
    predictions = fl.read_predictions(votes=file, duplicates="keep")
    gold = pd.read_parquet(folder / f"{name}.gold.parquet")
    # Items stand in the order of their first votes.
    items = pd.read_parquet(file, columns=["item"])["item"].unique()
    place = pd.Series(np.arange(predictions.n_items), index=items)
    classes = pd.Series(np.arange(predictions.n_classes), index=predictions.classes)
    rows = place.reindex(gold["item"]).to_numpy()
    return Crowd(predictions, rows, classes.reindex(gold["gold"]).to_numpy())
