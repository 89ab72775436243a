"""Estimates from files that Ray's workers read: each of the two passes is one task per file.

Needs Ray: pip install ray
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import ray

import fewlabels as fl
from fewlabels.streaming.external import FittedStream, Stream


@ray.remote
def scan(stream: Stream, path: str) -> bytes:
    """The first pass over a file."""
    return stream.scan(pq.ParquetFile(path).iter_batches())


@ray.remote
def tally(fitted: FittedStream, path: str) -> bytes:
    """The second pass over a file."""
    return fitted.tally(pq.ParquetFile(path).iter_batches())


def estimates(folder: str) -> fl.Estimates:
    """Estimates of all classifiers in a folder; all that comes back are sums and samples."""
    paths = sorted(str(path) for path in Path(folder).glob("*.parquet"))
    names = pq.read_schema(paths[0]).names
    stream = Stream(names, classes=[0, 1], metrics=["accuracy", "roc_auc"])
    shared = ray.put(stream)  # once, not with every task
    fitted = stream.fit(ray.get([scan.remote(shared, path) for path in paths]))
    shared = ray.put(fitted)
    return fitted.estimates(ray.get([tally.remote(shared, path) for path in paths]))


def make_rows(folder: Path, n_rows: int = 100_000, n_files: int = 4) -> None:
    """Write rows of two classifiers, of which 1 in 500 has a label."""
    rng = np.random.default_rng(1)
    p_one = rng.beta(0.5, 0.5, size=n_rows)
    label = pa.array((rng.random(n_rows) < p_one).astype(int), mask=rng.random(n_rows) > 1 / 500)
    columns = {"label": label, "p__large__1": p_one}
    columns["p__small__1"] = np.clip(p_one + rng.normal(0, 0.2, n_rows), 0.001, 0.999)
    table = pa.table(columns)
    for k in range(n_files):
        part = table.slice(k * n_rows // n_files, n_rows // n_files)
        pq.write_table(part, folder / f"part-{k}.parquet")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        make_rows(Path(made))
        ray.init(num_cpus=2, include_dashboard=False)
        print(estimates(made).summary())
        ray.shutdown()
