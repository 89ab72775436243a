"""`fewlabels demo`: real classifiers, few labels, the hidden truth."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fewlabels.errors import UsageError
from fewlabels.questions.demo import METRICS, make_demo, true_values

Run = Callable[..., tuple[int, str, str]]


def test_everything_is_written(demo_folder: Path) -> None:
    found = sorted(p.name for p in demo_folder.iterdir())
    assert found == ["data.parquet", "demo.json", "report.html"]
    result = json.loads((demo_folder / "demo.json").read_text())
    assert (result["n_items"], result["n_labeled"], len(result["models"])) == (1000, 20, 5)
    assert len(result["classes"]) == 10
    assert "</html>" in (demo_folder / "report.html").read_text(encoding="utf-8")


def test_the_terminal_shows_the_truth(cli: Run, tmp_path: Path) -> None:
    code, out, err = cli("demo", "--out", tmp_path / "r.html", "--seed", "1", "--labels", "30")
    assert (code, err) == (0, "")
    assert "truth" in out
    assert "Only 30 of 1,000 labels" in out
    words = " ".join(out.split())
    found = re.search(r"(\d+) of the 20 intervals hold the hidden truth", words)
    assert found
    assert int(found[1]) >= 15
    lines = [line for line in out.splitlines() if not line.startswith("Report: ")]
    assert max(map(len, lines)) <= 80


def test_the_saved_file_gives_the_same_estimates(cli: Run, demo_folder: Path) -> None:
    arguments = ["--metrics", ",".join(METRICS), "--json", "-"]
    code, out, err = cli("estimate", demo_folder / "data.parquet", *arguments)
    assert code == 0, err
    demo = json.loads((demo_folder / "demo.json").read_text())
    for got, expected in zip(json.loads(out)["estimates"], demo["estimates"], strict=True):
        assert got == pytest.approx(expected, abs=1e-6)


def test_truth_is_that_of_scikit_learn() -> None:
    from sklearn import metrics

    demo = make_demo()
    truth = true_values(demo, METRICS)
    assert demo.predictions.probabilities is not None
    one_hot = np.eye(10)[demo.truth]
    for j, model in enumerate(demo.predictions.models):
        p = demo.predictions.probabilities[:, j]
        expected = {
            "accuracy": metrics.accuracy_score(demo.truth, p.argmax(axis=1)),
            "roc_auc": metrics.roc_auc_score(demo.truth, p, multi_class="ovr"),
            "average_precision": metrics.average_precision_score(one_hot, p),
        }
        assert {k: truth[model][k] for k in expected} == pytest.approx(expected, abs=1e-9)


def test_the_classifiers_differ() -> None:
    accuracy = [v["accuracy"] for v in true_values(make_demo(), ["accuracy"]).values()]
    assert max(accuracy) - min(accuracy) > 0.05
    assert min(accuracy) > 0.7


@pytest.mark.parametrize("labels", [-1, 1001])
def test_labels_must_be_there(labels: int) -> None:
    with pytest.raises(UsageError, match=f"`labels` must be between 0 and 1000; got {labels}"):
        make_demo(labels)


@pytest.mark.slow
def test_without_labels(cli: Run, tmp_path: Path) -> None:
    code, out, _ = cli("demo", "--labels", "0", "--out", tmp_path / "r.html")
    assert code == 0
    assert "Only 0 of 1,000 labels" in out
