"""CivilComments streamed: no partition, order, executor or number of workers shows."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stream_cases import MODELS, civilcomments, distance, in_parts

import fewlabels as fl
from fewlabels.evaluation import draws
from fewlabels.models import BEE, SSMEKDE

pytestmark = pytest.mark.slow

PARTS = (2, 7, 50)
METHODS: dict[str, Any] = {
    "auto": "auto",
    "ssme-kde": SSMEKDE(max_support=300, epochs=20, replicates=8),
    "spe": "spe",
    "bayesian-calibration": "bayesian-calibration",
    "dawid-skene": "dawid-skene",
    "bee": BEE(burn_in=100, sweeps=300, thin=5, chains=1),
    "labeled": "labeled",
}


@pytest.fixture(scope="module")
def parts(data_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """The rows with few labels in folders of so many files, each in an order of its own."""
    table = civilcomments(data_folder)
    made = tmp_path_factory.mktemp("few")
    return {n: in_parts(table, made / str(n), n) for n in PARTS}


def streamed(source: Path, method: str, engine: Any, workers: int) -> fl.Estimates:
    found = fl.estimate_files(
        source, METHODS[method], engine=engine, workers=workers, checkpoints=source.parent / "saved"
    )
    assert (found.n_items, found.n_labeled) == (133_782, 50)
    return found


@pytest.mark.parametrize("method", METHODS)
def test_partitions_orders_and_executors_agree(
    method: str, parts: dict[int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    if method != "auto":  # as few draws as of more rows
        monkeypatch.setattr(draws, "ALL_DRAWS_ITEMS", 0)
    expected = streamed(parts[7], method, "threads", 1)
    assert np.isfinite([row.value for row in expected.rows]).all()
    for workers in (2, 3):
        assert distance(streamed(parts[7], method, "threads", workers), expected) == 0.0
    others: list[tuple[int, str]] = [(2, "threads"), (50, "processes")]
    if importlib.util.find_spec("distributed"):
        others.append((50, "dask"))
    for n, engine in others:
        found = streamed(parts[n], method, engine, 2)
        assert distance(found, expected) < 1e-9, (n, engine)


@pytest.mark.parametrize("engine", ["processes", "dask"])
def test_the_number_of_workers_does_not_show(
    engine: str, parts: dict[int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draws, "ALL_DRAWS_ITEMS", 0)
    if engine == "dask":
        pytest.importorskip("distributed")
    expected = streamed(parts[7], "auto", engine, 1)
    for workers in (2, 3):
        assert distance(streamed(parts[7], "auto", engine, workers), expected) == 0.0
    assert distance(streamed(parts[7], "auto", "threads", 1), expected) < 1e-9


@pytest.mark.parametrize("estimand", ["sample", "population"])
def test_all_labels_known(estimand: Any, data_folder: Path, tmp_path: Path) -> None:
    from sklearn.metrics import accuracy_score, average_precision_score, roc_auc_score

    table = civilcomments(data_folder, known=None)
    source = in_parts(table, tmp_path / "all", 7)
    found = fl.estimate_files(source, estimand=estimand, checkpoints=tmp_path)
    truth = table["label"].to_numpy()
    assert found.n_labeled == len(truth)
    for model in MODELS:
        score = table[f"p__{model}__1"].to_numpy()
        auc, ap = roc_auc_score(truth, score), average_precision_score(truth, score)
        assert found.get(model, "roc_auc").value == pytest.approx(auc, abs=1e-5)
        assert found.get(model, "average_precision").value == pytest.approx(ap, abs=1e-4)
        right = accuracy_score(truth, score >= 0.5)
        assert found.get(model, "accuracy").value == pytest.approx(right, abs=1e-9)
