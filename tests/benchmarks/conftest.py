"""Small made-up data sets with all labels known, and short runs on them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench import Results, run

Write = Callable[..., Path]

SHORT: dict[str, Any] = {
    "methods": ["labeled", "ensemble"],
    "metrics": ["accuracy", "ece_quantile"],
    "runs": 2,
    "n_labeled": [10],
    "n_unlabeled": [40],
    "curve_last": 40,
    "curve_step": 10,
    "curve_runs": 2,
}
"""Options of a run that takes a fraction of a second."""


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a made-up data set of `n` items as Parquet; extra columns by keyword."""

    def save(
        name: str = "toy.parquet",
        *,
        n: int = 300,
        n_classes: int = 2,
        models: tuple[str, ...] = ("good", "fair", "poor"),
        seed: int = 0,
        **columns: Any,
    ) -> Path:
        rng = np.random.default_rng(seed)
        labels = rng.integers(n_classes, size=n)
        table: dict[str, Any] = {"label": labels}
        for j, model in enumerate(models):
            logits = 2.0 * (labels[:, None] == np.arange(n_classes)) + (
                1 + j / 2
            ) * rng.standard_normal((n, n_classes))
            p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
            table |= {f"p__{model}__{k}": p[:, k].round(6) for k in range(n_classes)}
        table["site"] = np.where(np.arange(n) % 3 == 0, "north", "south")
        table["age"] = rng.integers(18, 80, size=n)
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # A column of None is taken out.
        kept = {k: v for k, v in (table | columns).items() if v is not None}
        pq.write_table(pa.table(kept), path)
        return path

    return save


@pytest.fixture
def short(write: Write, tmp_path: Path) -> Callable[..., Results]:
    """A short run in this process; options by keyword win over `SHORT`."""

    def go(protocol: str = "ssme-binary", **options: Any) -> Results:
        asked = {"data": None, "out": tmp_path / "out", "workers": 1} | SHORT | options
        if asked["data"] is None:
            asked["data"] = write()
        return run(protocol, **asked)

    return go


def same(a: Results, b: Results) -> bool:
    """Whether two results are equal in all but the timing."""
    for first, second in ((a.rows, b.rows), (a.traits, b.traits)):
        for name in first:
            x, y = first[name], second[name]
            if name == "seconds":
                continue
            equal = (
                np.array_equal(x, y)
                if x.dtype == object
                else np.array_equal(x, y, equal_nan=x.dtype.kind == "f")
            )
            if not equal:
                return False
    return True


@pytest.fixture(name="same")
def _same() -> Callable[[Results, Results], bool]:
    return same
