"""Files of extreme sizes, made once from a seed: what `evaluator_speed` runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

PART_ROWS = 250_000
SEED = 22


class Case(NamedTuple):
    """A file by its sizes."""

    models: int
    rows: int
    classes: int = 2
    groups: int = 0
    labels: int = 100


CASES = {
    "classes": Case(3, 50_000, classes=1_000, labels=500),
    "groups": Case(3, 1_000_000, groups=10_000, labels=1_000),
}


def part(case: Case, start: int, rows: int) -> pa.Table:
    """Some rows: classifiers share an error, and differ in skill; the first rows are labeled."""
    rng = np.random.default_rng([SEED, start, case.classes])
    truth = rng.integers(case.classes, size=rows)
    if case.classes == 2:
        truth = (rng.random(rows) < 0.3).astype(np.int64)
    shown = np.arange(start, start + rows) < case.labels
    columns: dict[str, Any] = {"label": pa.array(truth, mask=~shown)}
    if case.groups:
        columns["site"] = rng.integers(case.groups, size=rows).astype(np.int32)
    skill = np.linspace(1.5, 3.0, case.models)
    if case.classes == 2:
        shared = 0.7 * rng.normal(size=rows)
        for j in range(case.models):
            z = skill[j] * (truth - 0.5) + shared + rng.normal(size=rows)
            columns[f"p__m{j}__1"] = (1 / (1 + np.exp(-z))).astype(np.float32)
        return pa.table(columns)
    for j in range(case.models):
        z = rng.normal(size=(rows, case.classes)).astype(np.float32)
        z[np.arange(rows), truth] += 2 * skill[j]
        p = np.exp(z)
        p /= p.sum(axis=1, keepdims=True)
        columns |= {f"p__m{j}__{k}": p[:, k] for k in range(case.classes)}
    return pa.table(columns)


def make(case: Case, path: Path) -> None:
    """Write the file of a case, a part at a time; one that is there already stays."""
    if path.exists():
        return
    draft, writer = path.with_suffix(".draft"), None
    size = min(PART_ROWS, max(20_000_000 // (case.models * case.classes), 1))
    for start in range(0, case.rows, size):
        block = part(case, start, min(size, case.rows - start))
        writer = writer or pq.ParquetWriter(draft, block.schema)
        writer.write_table(block)
    assert writer is not None
    writer.close()
    os.replace(draft, path)
