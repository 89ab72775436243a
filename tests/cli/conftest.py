"""Files to run the commands on."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Columns = dict[str, list[Any]]


@pytest.fixture
def columns() -> Columns:
    """Two classifiers, 80 items, 20 labels, two groups."""
    rng = np.random.default_rng(7)
    truth = rng.integers(2, size=80)
    table: Columns = {"label": ["" if i >= 20 else int(y) for i, y in enumerate(truth)]}
    for model, spread in (("good", 0.8), ("poor", 2.0)):
        logit = (2 * truth - 1) * 1.5 + spread * rng.standard_normal(80)
        table[f"p__{model}__1"] = [round(float(p), 4) for p in 1 / (1 + np.exp(-logit))]
        table[f"p__{model}__0"] = [round(1 - p, 4) for p in table[f"p__{model}__1"]]
    table["site"] = ["north" if i % 2 else "south" for i in range(80)]
    return table


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write columns as a CSV file; header names may repeat where pairs are given."""

    def save(
        table: Mapping[str, Sequence[Any]] | Sequence[tuple[str, Sequence[Any]]],
        name: str = "predictions.csv",
    ) -> Path:
        pairs = list(table.items()) if isinstance(table, Mapping) else list(table)
        path = tmp_path / name
        with path.open("w", newline="", encoding="utf-8") as file:
            out = csv.writer(file)
            out.writerow([header for header, _ in pairs])
            out.writerows(zip(*(values for _, values in pairs), strict=True))
        return path

    return save


@pytest.fixture
def predictions_file(columns: Columns, write: Callable[..., Path]) -> Path:
    """The two classifiers as a CSV file."""
    return write(columns)


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `fewlabels demo` has run once, with everything it can write."""
    from fewlabels.cli import main

    folder = tmp_path_factory.mktemp("demo")
    arguments = ["--out", "report.html", "--json", "demo.json", "--save-data", "data.parquet"]
    code = main(["demo", *(str(folder / a) if "." in a else a for a in arguments)])
    assert code == 0
    return folder


@pytest.fixture
def unwritable(tmp_path: Path) -> Path:
    """A path no one can write to, not even an administrator: its folder is a file."""
    (tmp_path / "file").write_text("here")
    yield tmp_path / "file" / "out.json"
    shutil.rmtree(tmp_path, ignore_errors=True)
