"""The real data sets, as their READMEs describe them."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fewlabels as fl
from fewlabels.data.doctor.diagnose import diagnose


def found(diagnosis, words):
    return [f.where for f in diagnosis.findings if words in f.what]


def test_civilcomments(data_folder):
    path = data_folder / "ssme_civilcomments" / "data.parquet"
    predictions = fl.read_predictions(path)
    assert predictions.n_items == 133_782
    assert predictions.classes == (0, 1)
    assert predictions.n_models == 9
    assert predictions.labels.mean() == pytest.approx(0.1138, abs=1e-4)
    diagnosis = diagnose(path)
    assert found(diagnosis, "no better than chance") == [
        "classifier CORAL_seed1",
        "classifier CORAL_seed2",
    ]
    assert found(diagnosis, "660 of 133,782 rows") == ["rows"]


def test_civilcomments_without_labels(data_folder):
    table = pq.read_table(data_folder / "ssme_civilcomments" / "data.parquet").drop(["label"])
    assert found(diagnose(table), "no better than chance as seen by the others") == [
        "classifier CORAL_seed1",
        "classifier CORAL_seed2",
    ]


def test_adult(data_folder):
    path = data_folder / "adult" / "predictions_test.parquet"
    predictions = fl.read_predictions(path, keep=["sex"])
    assert set(predictions.groups["sex"]) == {"Male", "Female"}
    assert predictions.hard.shape == (16_281, 8)
    diagnosis = diagnose(path)
    assert "tree_overfit (72%)" in found(diagnosis, "exactly 0 or 1")[0]
    assert diagnosis.ok


def test_cifar10(data_folder):
    predictions = fl.read_predictions(data_folder / "cifar10" / "data.parquet")
    assert predictions.classes == tuple(range(10))
    assert predictions.labels[:10].tolist() == [3, 8, 8, 0, 6, 6, 1, 6, 3, 1]
    assert predictions.histogram.sum() == 511_000
    j = predictions.models.index("alexnet_tf_ben")
    assert (predictions.hard[:, j] == predictions.labels).mean() == pytest.approx(0.8198, abs=5e-5)


@pytest.mark.slow
def test_nell(data_folder):
    path = data_folder / "nell" / "data.parquet"
    predictions = fl.read_predictions(path, keep=())
    assert len(set(predictions.domain)) == 15
    assert predictions.models == ("ADJ", "CMC", "CPL", "VERB")
    assert found(diagnose(path), "ordered by label") == ["labels"]


def test_mixed_histograms(data_folder):
    path = data_folder / "mixed_lh" / "mixed_mnist_predictions.parquet"
    predictions = fl.read_predictions(path, keep=["partition"])
    assert predictions.n_classes == 10
    assert predictions.n_labeled == 0
    assert set(predictions.histogram.sum(axis=1)) == {1, 10}


POOLS: list[pa.MemoryPool] = []
"""Kept: a buffer that outlives its pool is freed into nothing."""


def test_a_million_rows(tmp_path):
    rng = np.random.default_rng(0)
    n = 1_000_000
    p = rng.random(n)
    columns = {"label": pa.array(np.where(np.arange(n) % 1000 == 0, p > 0.5, -1).astype(np.int64))}
    for j in range(7):
        columns |= {f"p__m{j}__0": pa.array(1 - p), f"p__m{j}__1": pa.array(p)}
    path = tmp_path / "large.parquet"
    pq.write_table(pa.table(columns), path)
    usual = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(usual)
    POOLS.append(pool)
    pa.set_memory_pool(pool)
    calls = 0

    def count(*event: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        predictions = fl.read_predictions(path)
    finally:
        sys.setprofile(None)
        pa.set_memory_pool(usual)
    assert predictions.n_labeled == 1000
    # No loop over rows: that would be a call for each, and minutes.
    assert calls < 100_000
    # The file is never held as a whole beside the arrays.
    assert pool.max_memory() < 60_000_000
