"""Estimates from a Spark table: each of the two passes is one `mapInArrow` over its partitions.

Needs PySpark and Java: pip install pyspark
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import fewlabels as fl
from fewlabels.streaming.external import Stream

# Partitions are worked on by Python processes of Spark's, which must be of this very Python.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def estimates(spark: SparkSession, folder: str) -> fl.Estimates:
    """Estimates of all classifiers in a table; all that is collected are sums and samples."""
    frame = spark.read.parquet(folder)
    stream = Stream(frame.columns, classes=[0, 1], metrics=["accuracy", "roc_auc"])

    def scan(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"state": [stream.scan(batches)]})

    fitted = stream.fit(
        bytes(row.state) for row in frame.mapInArrow(scan, "state binary").collect()
    )

    def tally(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"state": [fitted.tally(batches)]})

    tallies = frame.mapInArrow(tally, "state binary").collect()
    return fitted.estimates(bytes(row.state) for row in tallies)


def session() -> SparkSession:
    """Spark on this machine; the sums of a part, which the driver collects, are 128 MB at most."""
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    return builder.config("spark.driver.memory", "3g").getOrCreate()


def make_rows(folder: Path, n_rows: int = 100_000, n_files: int = 4) -> None:
    """Write rows of two classifiers, of which 1 in 500 has a label."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=n_rows)
    logits = 2 * (truth[:, None] - 0.5) * [2.0, 1.0] + rng.normal(size=(n_rows, 2))
    p = 1 / (1 + np.exp(-logits))
    label = pa.array(truth, mask=rng.random(n_rows) > 1 / 500)
    table = pa.table({"label": label, "p__large__1": p[:, 0], "p__small__1": p[:, 1]})
    for k in range(n_files):
        part = table.slice(k * n_rows // n_files, n_rows // n_files)
        pq.write_table(part, folder / f"part-{k}.parquet")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        make_rows(Path(made))
        with session() as spark:
            print(estimates(spark, made).summary())
