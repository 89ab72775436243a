"""Rows, groups and classifiers that a sample of all rows hardly holds, or tells apart badly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fewlabels as fl
from fewlabels.evaluation import draws
from fewlabels.streaming import scan
from worlds import items_table


@pytest.fixture(autouse=True)
def _small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples as small beside these files as those of a stream are beside very large ones."""
    monkeypatch.setenv("FEWLABELS_CHECKPOINTS", str(tmp_path / "checkpoints"))
    monkeypatch.setattr(draws, "ALL_DRAWS_ITEMS", 0)


def files(columns: dict[str, Any], folder: Path, order: Any = None) -> Path:
    table = pa.table(columns)
    folder.mkdir()
    rows = table if order is None else table.take(order)
    half = len(rows) // 2
    pq.write_table(rows.slice(0, half), folder / "a.parquet")
    pq.write_table(rows.slice(half), folder / "b.parquet")
    return folder


def some_known(truth: np.ndarray, known: int) -> pa.Array:
    return pa.array(truth.astype(int), mask=np.arange(len(truth)) >= known)


def test_votes_keep_their_weights(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    truth = rng.random(4000) < 0.5
    right = np.where(truth[:, None], [0.95, 0.9, 0.8], [0.6, 0.7, 0.75])
    columns: dict[str, Any] = {"label": some_known(truth, 200), "weight": np.where(truth, 5.0, 1.0)}
    for j in range(3):
        columns[f"y__m{j}"] = np.where(rng.random(4000) < right[:, j], truth, ~truth).astype(int)
    folder = files(columns, tmp_path / "files")
    here = fl.estimate_files(folder, "dawid-skene", "accuracy")
    there = fl.estimate(fl.read_predictions(folder), "dawid-skene", "accuracy")
    for model in there.models:
        assert here.get(model, "accuracy").value == pytest.approx(
            there.get(model, "accuracy").value, abs=1e-9
        )


def test_equal_rows_of_several_groups_and_weights_are_several(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    truth = rng.random(3000) < 0.4
    score = np.round(1 / (1 + np.exp(-rng.normal(2 * truth - 1, 1.5))), 1).clip(0.05, 0.95)
    group = np.where(rng.random(3000) < 0.3, "a", "b")
    columns = {"label": some_known(truth, 600), "p__m__1": score, "g": group}
    folders = [
        files(columns, tmp_path / name, np.argsort(group == name, kind="stable")) for name in "ab"
    ]
    first, second = (fl.estimate_files(f, "labeled", "accuracy", by="g") for f in folders)
    there = fl.estimate(fl.read_predictions(folders[0]), "labeled", "accuracy", by="g")
    for row in there.rows:
        for found in (first, second):
            assert found.get(*row[:3]).value == pytest.approx(row.value, abs=1e-9)


def test_a_classifier_of_few_rows_is_judged_by_these(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "SUPPORT_ROWS", 300)
    rng = np.random.default_rng(2)
    truth = rng.random(5000) < 0.4
    z = rng.normal(2 * truth - 1, 1, (2, 5000))
    p = 1 / (1 + np.exp(-z))
    rare = pa.array(p[1], mask=np.arange(5000) >= 8)
    columns = {"label": some_known(truth, 0), "p__m__1": p[0], "p__rare__1": rare}
    folder = files(columns, tmp_path / "files")
    here = fl.estimate_files(folder, "ensemble", ["accuracy", "auc"])
    there = fl.estimate(fl.read_predictions(folder), "ensemble", ["accuracy", "auc"])
    for metric in ("accuracy", "auc"):
        found, whole = here.get("rare", metric), there.get("rare", metric)
        assert found.status == whole.status
        assert found.value == pytest.approx(whole.value, abs=0.02)
        assert found.high - found.low == pytest.approx(whole.high - whole.low, rel=0.1)


@pytest.mark.parametrize("method", ["ensemble", "labeled"])
def test_groups_of_few_rows_are_told_of_as_in_memory(method: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    truth = rng.random(2000) < 0.4
    score = 1 / (1 + np.exp(-rng.normal(2 * truth - 1, 1.5)))
    group = np.where(np.arange(2000) >= 1998, "rare", "common")
    columns = {"label": some_known(truth, 100), "p__m__1": score, "g": group}
    folder = files(columns, tmp_path / "files")
    here = fl.estimate_files(folder, method, "accuracy", by="g")
    there = fl.estimate(fl.read_predictions(folder), method, "accuracy", by="g")
    assert [g.group for g in here.groups] == [g.group for g in there.groups]
    found, whole = here.get("m", "accuracy", "g=rare"), there.get("m", "accuracy", "g=rare")
    assert found.status == whole.status
    assert found.value == pytest.approx(whole.value, abs=0.01)
    assert found.high - found.low == pytest.approx(whole.high - whole.low, rel=0.1)


def test_rows_of_weight_zero(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    truth = rng.random(2000) < 0.4
    score = 1 / (1 + np.exp(-rng.normal(2 * truth - 1, 1.5)))
    columns = {
        "label": some_known(truth, 100),
        "p__m__1": score,
        "weight": np.where(np.arange(2000) < 1000, 1.0, 0.0),
        "g": np.where(np.arange(2000) < 1000, "some", "none"),
    }
    folder = files(columns, tmp_path / "files")
    here = fl.estimate_files(folder, "ensemble", "accuracy", by="g")
    assert here.n_items == 2000
    assert np.isnan(here.get("m", "accuracy", "g=none").value)
    assert here.get("m", "accuracy").value == pytest.approx(
        here.get("m", "accuracy", "g=some").value, abs=1e-6
    )
    weightless = files(columns | {"weight": np.zeros(2000)}, tmp_path / "weightless")
    with pytest.raises(fl.InputError, match="every row has weight 0"):
        fl.estimate_files(weightless, "ensemble", "accuracy")


def test_a_frequent_row_is_part_of_the_noise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "SUPPORT_ROWS", 1000)
    rng = np.random.default_rng(5)
    same = rng.random(8000) < 0.6
    score = np.where(same, 0.5625, rng.choice([0.001, 0.999], 8000) + rng.normal(0, 1e-5, 8000))
    columns = {"p__m__1": np.clip(score, 0, 1)}
    folder = files(columns, tmp_path / "files")
    here = fl.estimate_files(folder, "ensemble", "accuracy")
    there = fl.estimate(fl.read_predictions(folder), "ensemble", "accuracy")
    found, whole = here.rows[0], there.rows[0]
    assert found.value == pytest.approx(whole.value, abs=1e-4)
    assert found.high - found.low == pytest.approx(whole.high - whole.low, rel=0.2)


def test_very_unequal_weights_are_warned_of(tmp_path: Path) -> None:
    weight = np.exp(3 * np.random.default_rng(0).normal(size=1500))
    table = items_table(1500, known=60)
    path = tmp_path / "weighted.parquet"
    pq.write_table(table.append_column("weight", pa.array(weight)), path)
    found = fl.estimate_files(path, metrics="accuracy")
    assert any("so unequal" in said for said in found.warnings)
    pq.write_table(table, path)
    assert not any("so unequal" in s for s in fl.estimate_files(path, metrics="accuracy").warnings)
