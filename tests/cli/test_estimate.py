"""`fewlabels estimate` and `fewlabels compare`, and the exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.errors import InputError, UsageError

Run = Callable[..., tuple[int, str, str]]
Answer = Callable[..., dict[str, Any]]
Columns = dict[str, list[Any]]


def test_a_group_does_not_count_for_requirements(
    cli: Run, columns: Columns, write: Callable[..., Path]
) -> None:
    file = write(columns | {"id": [str(i // 2) for i in range(80)]})
    arguments = ["--method", "labeled", "--metrics", "accuracy", "--by", "id"]
    arguments += ["--require", "accuracy>=0.3"]
    assert cli("estimate", file, *arguments)[0] == 0


def test_a_requirement_that_is_not_met_is_a_result(
    cli: Run, tmp_path: Path, predictions_file: Path
) -> None:
    """Files are written all the same."""
    saved = tmp_path / "out.json"
    code, _, _ = cli("estimate", predictions_file, "--require", "accuracy>=.999", "--json", saved)
    assert (code, json.loads(saved.read_text())["n_items"]) == (1, 80)


def test_many_items_of_many_classes_say_what_they_take() -> None:
    from fewlabels.cli.estimate import long_run

    names = [f"c{k}" for k in range(5_000)]
    large = fl.Predictions(None, [0, -1] * 10_000, votes=[[0], [1]] * 10_000, classes=names)
    said = long_run(large, "auto")
    assert said.startswith("20,000 items x 5,000 classes take about 17 minutes")
    assert long_run(large, "labeled") == ""
    assert long_run(large.take(np.arange(100)), "auto") == ""


HOSTILE = "<script>alert('x')</script>\"&,;\n😀"


def test_hostile_names(
    cli: Run, answer: Answer, tmp_path: Path, columns: Columns, write: Callable[..., Path]
) -> None:
    model = "<img src=x onerror=alert(1)>\"'\n😀"
    table = {
        "label": columns["label"],
        f"p__{model}__1": columns["p__good__1"],
        HOSTILE: [HOSTILE if s == "north" else "<s>" for s in columns["site"]],
    }
    page = tmp_path / "out.html"
    result = answer("estimate", write(table), "--by", HOSTILE, "--html", page)
    assert result["models"] == [model]
    assert result["estimates"][-1]["group"] == f"{HOSTILE}={HOSTILE}"
    html = page.read_text(encoding="utf-8")
    assert "<script>alert" not in html
    assert "<img src=x" not in html
    assert "<s>" not in html
    assert cli("doctor", tmp_path / "predictions.csv")[0] == 0


def test_a_device_is_written_to_and_not_replaced(cli: Run, predictions_file: Path) -> None:
    code, _, err = cli("estimate", predictions_file, "--json", "/dev/null")
    assert (code, err) == (0, "")
    assert Path("/dev/null").is_char_device()


def test_links_and_modes_survive(cli: Run, tmp_path: Path, predictions_file: Path) -> None:
    target = tmp_path / "target.json"
    target.write_text("old")
    target.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to(target)
    assert cli("estimate", predictions_file, "--json", link)[0] == 0
    assert link.is_symlink()
    assert json.loads(target.read_text())["n_items"] == 80
    assert target.stat().st_mode & 0o777 == 0o640


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "p.csv"
    rows = "\n".join(f"{i % 2},{0.05 + (i % 10) / 20},{(i % 7) / 10},{i % 2}" for i in range(40))
    path.write_text(f"label,p__a__1,p__b__1,y__c\n{rows}\n")
    return path


def test_predictions_reach_the_cut():
    predictions = fl.Predictions([[0.1, 0.3], [np.nan, 0.2], [0.05, 0.9]], models=["a", "b"])
    cut = predictions.thresholded({"a": 0.1})
    assert cut.hard.tolist() == [[1, 0], [-1, 0], [0, 1]]
    assert predictions.hard.tolist() == [[0, 0], [-1, 0], [0, 1]]
    np.testing.assert_array_equal(cut.probabilities, predictions.probabilities)


def test_one_number_is_for_all_and_a_name_wins(answer, file):
    def accuracy(*options):
        found = answer("estimate", file, "--method", "labeled", "--metrics", "accuracy", *options)
        return {row["model"]: row["value"] for row in found["estimates"]}

    base, low = accuracy(), accuracy("--threshold", "0.2")
    named = accuracy("--threshold", "0.2", "--threshold", "b=0.55")
    assert low["a"] != base["a"]
    assert low["b"] != base["b"]
    assert low["c"] == base["c"]
    assert named == base | {"a": low["a"]}


def test_refused_in_python():
    two = fl.Predictions([[0.1], [0.3]])
    with pytest.raises(UsageError, match="from 0 to 1"):
        two.thresholded({"model0": float("nan")})
    with pytest.raises(InputError, match="'model0' has no probabilities"):
        fl.Predictions(votes=[[0], [1]]).thresholded({"model0": 0.5})
    with pytest.raises(InputError, match="two classes"):
        fl.Predictions(votes=[[0], [2]], classes=[0, 1, 2]).thresholded({"model0": 0.5})
