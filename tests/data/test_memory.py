"""What does not fit into memory is refused before the work, in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.checks import arguments
from fewlabels.evaluation import draws
from fewlabels.methods.ensembles import belief_mixture


def world(classes: int, n: int = 80) -> fl.Predictions:
    """Two classifiers of some classes, half of the items labeled."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(classes), size=(n, 2))
    truth = np.array([rng.choice(classes, p=q) for q in p[:, 0]])
    return fl.Predictions(p, np.where(np.arange(n) < n // 2, truth, -1))


def test_a_file_beyond_memory_is_refused_before_its_arrays_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.csv"
    file.write_text("label,p__m__1\n" + "1,0.5\n" * 1_000)
    monkeypatch.setattr(arguments, "available_memory", lambda: 40_000.0)
    with pytest.raises(
        fl.InputError,
        match=r"a\.csv: reading 1,000 rows x 1 classifiers x 2 classes takes about 0\.0 GB of "
        r"memory, and 0\.0 GB are free; leave out",
    ):
        fl.read_predictions(file)
    monkeypatch.setattr(arguments, "available_memory", lambda: 50_000.0)
    assert fl.read_predictions(file).n_items == 1_000


def test_a_fit_beyond_memory_is_refused_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    predictions = world(30)
    monkeypatch.setattr(arguments, "available_memory", lambda: 1e5)

    def work(*_: object) -> None:
        raise AssertionError("the features are made")

    monkeypatch.setattr(belief_mixture._Evidence, "_features", work)
    with pytest.raises(fl.InputError, match=r"40 labels of 30 classes takes .* fewer labels"):
        fl.estimate(predictions, metrics="accuracy")


def test_many_classes_take_fewer_draws_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    predictions = world(5)
    metrics = ["accuracy", "roc_auc", "brier"]
    expected = fl.estimate(predictions, metrics=metrics).rows
    sizes = []
    chunks = draws.LabelWeights.chunks

    def spy(self: draws.LabelWeights, *asked: Any, **more: Any) -> list[np.ndarray]:
        found = chunks(self, *asked, **more)
        sizes.extend(map(len, found))
        return found

    monkeypatch.setattr(draws.LabelWeights, "chunks", spy)
    monkeypatch.setattr(draws, "_STATE", 7 * 2 * (3 * 5 + 2 * 5 + 1))
    found = fl.estimate(predictions, metrics=metrics).rows
    assert 7 in sizes
    np.testing.assert_allclose(
        [row[3:6] for row in found], [row[3:6] for row in expected], atol=1e-9
    )
