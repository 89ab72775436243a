"""Of one classifier: `fewlabels curve`, `threshold` and `label-next`."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow.parquet as pq
import pytest
from test_estimate import HOSTILE

import fewlabels as fl
from fewlabels.cli.one_classifier import OneModel

Run = Callable[..., tuple[int, str, str]]
Answer = Callable[..., dict[str, Any]]
Table = dict[str, list[Any]]
GOOD = ("--model", "good", "--method", "bayesian-calibration")


def test_json_is_what_the_library_says(answer: Answer, predictions_file: Path) -> None:
    predictions = fl.read_predictions(predictions_file)
    found = fl.curves(predictions, "good", method="bayesian-calibration")
    assert answer("curve", predictions_file, *GOOD) == json.loads(json.dumps(found.report()))


def test_the_probabilities_of_the_items(cli: Run, tmp_path: Path, predictions_file: Path) -> None:
    assert cli("curve", predictions_file, *GOOD, "--out", tmp_path / "out.csv")[0] == 0
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["row", "score", "label", "probability"]
    assert [row["row"] for row in rows] == [str(k) for k in range(1, 81)]
    assert {row["label"] for row in rows[:20]} == {"0", "1"}
    assert {row["label"] for row in rows[20:]} == {""}
    assert all(row["probability"] == f"{float(row['label']):g}" for row in rows[:20])
    assert all(0 < float(row["probability"]) < 1 for row in rows[20:])


def test_the_probabilities_as_parquet(
    cli: Run, tmp_path: Path, columns: Table, write: Callable[..., Path]
) -> None:
    """Scores that are missing stay missing."""
    path = tmp_path / "out.parquet"
    scores = [None if i == 3 else 10 * p for i, p in enumerate(columns["p__good__1"])]
    file = write({"label": columns["label"], "s__margin": scores})
    assert cli("curve", file, "--method", "labeled", "--out", path)[0] == 0
    table = pq.read_table(path)
    assert table.column_names == ["row", "score", "label", "probability"]
    assert table.column("label").null_count == 60
    assert table.column("score")[3].as_py() is None


def test_model_chooses_and_maps(answer: Answer, columns: Table, write: Callable[..., Path]) -> None:
    kept = {name: columns[name] for name in ("label", "p__poor__1")}
    file = write(kept | {"x": columns["p__good__1"]})

    def model(*options: str) -> Any:
        asked = ("--method", "bayesian-calibration", "--classes", "0,1")
        return answer("curve", file, *options, *asked)["model"]

    # Whoever maps the columns of one classifier means this one.
    assert model("--model", "mine=x") == "mine"
    assert model("--model", "mine=x", "--model", "poor") == "poor"
    assert model("--model", "mine=x", "--model", "other=p__poor__1", "--model", "other") == "other"


def test_the_default_method(answer: Answer, predictions_file: Path) -> None:
    assert answer("curve", predictions_file, "--model", "good")["method"] == "monotone-curves"


def test_three_classes(answer: Answer, write: Callable[..., Path]) -> None:
    table: Table = {"label": [i % 3 if i < 30 else "" for i in range(60)]}
    for k in range(3):
        table[f"p__m__{k}"] = [0.5 if i % 3 == k else 0.25 for i in range(60)]
    asked = ("--method", "tempered-ensemble", "--positive", "2")
    assert answer("curve", write(table), *asked)["positive"] == "2"


def test_hostile_names(
    answer: Answer, tmp_path: Path, columns: Table, write: Callable[..., Path]
) -> None:
    label = [{0: "a", 1: HOSTILE}.get(y, "") for y in columns["label"]]
    file = write({"label": label, f"p__{HOSTILE}__{HOSTILE}": columns["p__good__1"]})
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    files = ("--html", tmp_path / "out.html", "--svg", tmp_path / "out.svg")
    assert answer("curve", file, "--method", "bayesian-calibration", *files)["model"] == HOSTILE
    for name in ("out.html", "out.svg"):
        assert "<script>alert" not in (tmp_path / name).read_text("utf-8")
    ElementTree.parse(tmp_path / "out.svg")


@pytest.mark.parametrize("command", [("curve",), ("threshold", "--min-recall", ".5")])
def test_what_cannot_be_drawn_is_said_before_the_work(
    cli: Run, tmp_path: Path, predictions_file: Path, command: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setattr(OneModel, "ask", lambda *_, **__: pytest.fail("it was asked"))
    found = cli(command[0], predictions_file, *command[1:], *GOOD, "--svg", tmp_path / "a.svg")
    assert found[:2] == (2, "")
    assert re.fullmatch(r"error: matplotlib is not installed.*fewlabels\[plot\].*\n", found[2])


def test_bounds_and_conditions_reach_the_answer(answer: Answer, predictions_file: Path) -> None:
    options = "--min-precision .6 --min-recall .5 --cost 1,4"
    conditions = ("--condition", "fpr <= .7 and cost <= 2", "--condition", "prevalence > .01")
    report = answer("threshold", predictions_file, *GOOD, *options.split(), *conditions)
    found = fl.threshold(
        fl.read_predictions(predictions_file), "good", 0.6, 0.5, cost=(1.0, 4.0),
        condition="fpr <= .7 and cost <= 2 and prevalence > .01", method="bayesian-calibration",
    )  # fmt: skip
    assert report["conditions"] == list(found.conditions)
    assert (report["best"], report["best_probability"]) == (found.best, found.best_probability)


def test_costs_and_another_prevalence_reach_the_answer(
    answer: Answer, predictions_file: Path
) -> None:
    options = ("--cost", "FN=5,FP=1", "--prevalence", ".03")
    report = answer("threshold", predictions_file, *GOOD, *options)
    found = fl.threshold(
        fl.read_predictions(predictions_file), "good", cost={"FP": 1, "FN": 5}, prevalence=0.03,
        method="bayesian-calibration",
    )  # fmt: skip
    assert (report["best"], report["choice"], report["prevalence"]) == (found.best, "cost", 0.03)
    assert report["rates"]["cost_of_none"]["value"] == pytest.approx(0.15)
    by_name = answer("threshold", predictions_file, *GOOD, "--min-specificity", ".7")
    assert by_name["choice"] == "sensitivity"


def test_the_table_calls_positive_what_the_threshold_does(
    cli: Run, tmp_path: Path, predictions_file: Path
) -> None:
    files = ("--json", tmp_path / "t.json", "--out", tmp_path / "t.csv")
    code, out, _ = cli("threshold", predictions_file, *GOOD, "--min-recall", ".5", *files)
    assert code == 0
    report = json.loads((tmp_path / "t.json").read_text())
    with (tmp_path / "t.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["row", "score", "label", "called_positive"]
    for row in rows:
        assert (row["called_positive"] == "true") == (float(row["score"]) >= report["best"])
    # The threshold as it is printed decides alike.
    printed = float(re.search(r"Call it \S+ from ([\d.]+) up", out)[1])  # type: ignore[index]
    for row in rows:
        assert (float(row["score"]) >= printed) == (row["called_positive"] == "true")


def test_rows_count_from_1_in_the_order_to_label(
    cli: Run, tmp_path: Path, predictions_file: Path
) -> None:
    table = tmp_path / "next.csv"
    code, out, err = cli(
        "label-next", predictions_file, *GOOD, "--size", "4", "--kind", "roc", "--out", table
    )
    assert (code, err) == (0, "")
    predictions = fl.read_predictions(predictions_file)
    found = fl.label_next(predictions, "good", 4, "bayesian-calibration", kind="roc")
    rows = [str(item + 1) for item in found.items]
    lines = [line.split() for line in out.splitlines()]
    start = lines.index(["row", "score", "P(positive)", "gain", "drawn"]) + 1
    assert [cells[0] for cells in lines[start : start + 4]] == rows
    with table.open(newline="") as file:
        written = list(csv.DictReader(file))
    assert [row["row"] for row in written] == rows
    assert list(written[0]) == ["row", "score", "probability", "gain", "drawn"]
