"""Rows in parts of any number, made and real, and how far two answers are from each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fewlabels as fl

MODELS = ("CORAL", "ERM", "ERM_seed1", "ERM_seed2", "IRM", "IRM_seed1", "IRM_seed2")
KNOWN = 50


def civilcomments(data: Path, known: int | None = KNOWN) -> pa.Table:
    """CivilComments' seven classifiers, with so many labels; None: with all of them."""
    columns = ["label", *(f"p__{model}__1" for model in MODELS)]
    table = pq.read_table(data / "ssme_civilcomments" / "data.parquet", columns=columns)
    if known is None:
        return table
    hidden = np.ones(len(table), dtype=bool)
    hidden[np.random.default_rng(7).choice(len(table), known, replace=False)] = False
    label = pa.array(table["label"].to_numpy(), mask=hidden)
    return table.set_column(0, "label", label)


def write(table: pa.Table, folder: Path, parts: int, seed: int = 0) -> Path:
    """The rows in another order, in several files."""
    folder.mkdir()
    order = np.random.default_rng(seed).permutation(len(table)) if seed else np.arange(len(table))
    cuts = np.linspace(0, len(table), parts + 1).astype(int)
    for i in range(parts):
        rows = table.take(order[cuts[i] : cuts[i + 1]])
        pq.write_table(rows, folder / f"{i:02d}.parquet")
    return folder


def in_parts(table: pa.Table, folder: Path, n: int) -> Path:
    """The rows in an order of their own, in `n` files of all sizes."""
    rng = np.random.default_rng(n)
    shuffled = table.take(rng.permutation(len(table)))
    bounds = np.sort(rng.choice(np.arange(1, len(table)), n - 1, replace=False))
    starts = [0, *bounds.tolist(), len(table)]
    folder.mkdir(parents=True)
    for k in range(n):
        part = shuffled.slice(starts[k], starts[k + 1] - starts[k])
        pq.write_table(part, folder / f"part-{k:03d}.parquet", row_group_size=20_000)
    return folder


def distance(one: fl.Estimates, other: fl.Estimates) -> float:
    """The largest difference of values, bounds and interval draws; inf where one has none."""
    assert [_key(row) for row in one.rows] == [_key(row) for row in other.rows]
    assert one.draws.keys() == other.draws.keys()
    pairs = [(_numbers(one), _numbers(other))]
    pairs += [(draws, other.draws[key]) for key, draws in one.draws.items()]
    return max(_largest(a, b) for a, b in pairs)


def _key(row: Any) -> tuple[Any, ...]:
    return row.model, row.metric, row.group, row.status


def _numbers(found: fl.Estimates) -> np.ndarray:
    return np.array([[row.value, row.low, row.high] for row in found.rows], dtype=float)


def _largest(a: np.ndarray, b: np.ndarray) -> float:
    assert a.shape == b.shape
    if (np.isnan(a) != np.isnan(b)).any():
        return float("inf")
    return float(np.nanmax(np.abs(a - b), initial=0.0))
