"""Data sets of the study of disagreement, and what is known of them."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from bench.datasets import Reading
from bench.disagreement import METHODS, HistogramWorld, method_of, read_worlds
from bench.splits import generator
from bench.world import DatasetFacts

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
