"""Of one classifier: `fewlabels curve`, `threshold` and `label-next`."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow.parquet as pq
import pytest
from test_estimate import HOSTILE, strict

import fewlabels as fl

Run = Callable[..., tuple[int, str, str]]
Table = dict[str, list[Any]]
GOOD = ("--model", "good", "--method", "bayesian-calibration")


def test_json_on_stdout_is_alone(cli: Run, predictions_file: Path) -> None:
    code, out, err = cli("curve", predictions_file, *GOOD, "--json", "-")
    assert code == 0, err
    report = strict(out)
    assert set(report["curves"]) == {"precision-recall", "roc"}
    assert (report["what"], report["model"], report["n_labeled"]) == ("curves", "good", 20)
    assert (report["confidence_level"], report["seed"]) == (0.95, 0)
    assert (report["estimand"], report["positive"]) == ("population", "1")
    assert len(err.splitlines()) == len(report["warnings"])
    predictions = fl.read_predictions(predictions_file)
    found = fl.curves(predictions, "good", method="bayesian-calibration")
    assert json.loads(json.dumps(found.report())) == report


def test_options_reach_the_curve(cli: Run, predictions_file: Path) -> None:
    options = "--positive 0 --confidence-level .8 --estimand population --seed 3 --workers 1"
    code, out, err = cli("curve", predictions_file, *GOOD, *options.split(), "--json", "-")
    assert code == 0, err
    report = strict(out)
    assert (report["positive"], report["estimand"]) == ("0", "population")
    assert (report["confidence_level"], report["seed"]) == (0.8, 3)


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


def test_the_probabilities_as_parquet(cli: Run, tmp_path: Path, predictions_file: Path) -> None:
    path = tmp_path / "out.parquet"
    assert cli("curve", predictions_file, *GOOD, "--out", path)[0] == 0
    table = pq.read_table(path)
    assert table.column_names == ["row", "score", "label", "probability"]
    assert table.column("label").null_count == 60


def test_scores_that_are_missing_stay_missing(
    cli: Run, tmp_path: Path, columns: Table, write: Callable[..., Path]
) -> None:
    scores = [None if i == 3 else 10 * p for i, p in enumerate(columns["p__good__1"])]
    file = write({"label": columns["label"], "s__margin": scores})
    code, out, err = cli(
        *("curve", file, "--method", "labeled", "--json", "-"),
        *("--out", tmp_path / "out.parquet"),
    )
    assert code == 0, err
    report = strict(out)
    assert (report["model"], report["unit"], report["n_items"]) == ("margin", "score", 79)
    assert pq.read_table(tmp_path / "out.parquet").column("score")[3].as_py() is None


def test_model_chooses_and_maps(
    cli: Run, columns: Table, write: Callable[..., Path], predictions_file: Path
) -> None:
    file = write(
        {
            "label": columns["label"],
            "x": columns["p__good__1"],
            "p__poor__1": columns["p__poor__1"],
        },
        "mapped.csv",
    )

    def model(*options: str) -> str:
        method = ("--method", "bayesian-calibration")
        code, out, err = cli("curve", file, *options, *method, "--json", "-", "--classes", "0,1")
        assert code == 0, err
        found: str = strict(out)["model"]
        return found

    # Whoever maps the columns of one classifier means this one.
    assert model("--model", "mine=x") == "mine"
    assert model("--model", "mine=x", "--model", "poor") == "poor"
    assert model("--model", "mine=x", "--model", "other=p__poor__1", "--model", "other") == "other"


def test_one_classifier_needs_no_name(cli: Run, columns: Table, write: Callable[..., Path]) -> None:
    file = write({"label": columns["label"], "p__only__1": columns["p__good__1"]})
    code, out, err = cli("curve", file, "--method", "bayesian-calibration", "--json", "-")
    assert code == 0, err
    assert strict(out)["model"] == "only"


def test_the_default_method(cli: Run, predictions_file: Path) -> None:
    code, out, err = cli("curve", predictions_file, "--model", "good", "--json", "-")
    assert code == 0, err
    assert strict(out)["method"] == "monotone-curves"


def test_three_classes(cli: Run, write: Callable[..., Path]) -> None:
    n = 60
    label = [i % 3 if i < 30 else "" for i in range(n)]
    table: Table = {"label": label}
    for k in range(3):
        table[f"p__m__{k}"] = [0.5 if i % 3 == k else 0.25 for i in range(n)]
    file = write(table)
    method = ("--method", "tempered-ensemble")
    code, out, err = cli("curve", file, *method, "--positive", "2", "--json", "-")
    assert code == 0, err
    assert str(strict(out)["positive"]) == "2"
    code, _, err = cli("curve", file, *method)
    assert code == 2
    assert "must name the class" in err


def test_hostile_names(
    cli: Run, tmp_path: Path, columns: Table, write: Callable[..., Path]
) -> None:
    label = [{0: "a", 1: HOSTILE}.get(y, "") for y in columns["label"]]
    file = write({"label": label, f"p__{HOSTILE}__{HOSTILE}": columns["p__good__1"]})
    files = ("--html", tmp_path / "out.html", "--svg", tmp_path / "out.svg")
    code, out, err = cli(
        *("curve", file, "--method", "bayesian-calibration", "--json", "-", *files),
    )
    assert code == 0, err
    assert strict(out)["model"] == HOSTILE
    for name in ("out.html", "out.svg"):
        assert "<script>alert" not in (tmp_path / name).read_text("utf-8")
    ElementTree.parse(tmp_path / "out.svg")


def test_bounds_and_conditions_reach_the_answer(cli: Run, predictions_file: Path) -> None:
    options = "--min-precision .6 --min-recall .5 --cost 1,4"
    conditions = ("--condition", "fpr <= .7 and cost <= 2", "--condition", "prevalence > .01")
    code, out, err = cli(
        "threshold", predictions_file, *GOOD, *options.split(), *conditions, "--json", "-"
    )
    assert code == 0, err
    report = strict(out)
    found = fl.threshold(
        fl.read_predictions(predictions_file), "good", 0.6, 0.5, cost=(1.0, 4.0),
        condition="fpr <= .7 and cost <= 2 and prevalence > .01", method="bayesian-calibration",
    )  # fmt: skip
    assert report["conditions"] == list(found.conditions)
    assert len(report["conditions"]) == 5
    assert (report["best"], report["best_probability"]) == (found.best, found.best_probability)
    assert "cost" in report["rates"]


def test_the_answer_follows_what_it_is_about(cli: Run, predictions_file: Path) -> None:
    code, out, err = cli("threshold", predictions_file, *GOOD, "--min-recall", ".5")
    assert (code, err) == (0, "")
    first, answer = out.split("\n\n")[:2]
    assert re.fullmatch(r"good: .*; 2 classes, positive: 1", first)
    assert re.match(r"Call it positive from -?[\d.]+ up: recall >= 0\.5 with\s+probab", answer)
    assert max(map(len, out.splitlines())) <= 80


def test_the_required_probability_decides_the_exit_code(
    cli: Run, tmp_path: Path, predictions_file: Path
) -> None:
    base = ["threshold", predictions_file, *GOOD, "--min-recall", ".5", "--min-precision"]
    assert cli(*base, ".1", "--probability", ".5")[0] == 0
    saved = tmp_path / "out.json"
    code, out, err = cli(*base, ".99", "--probability", "1", "--json", saved)
    assert code == 1
    assert re.fullmatch(r"not met: --probability 1: the best .* with probability [\d.]+\n", err)
    assert out
    assert strict(saved.read_text())["best_probability"] < 1
    code, out, err = cli(*base, ".99", "--probability", "1", "--json", "-")
    assert code == 1
    assert strict(out)["what"] == "threshold"


def test_the_table_calls_positive_what_the_threshold_does(
    cli: Run, tmp_path: Path, predictions_file: Path
) -> None:
    files = ("--json", tmp_path / "t.json", "--out", tmp_path / "t.csv")
    code, out, _ = cli("threshold", predictions_file, *GOOD, "--min-recall", ".5", *files)
    assert code == 0
    report = strict((tmp_path / "t.json").read_text())
    with (tmp_path / "t.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["row", "score", "label", "called_positive"]
    for row in rows:
        assert (row["called_positive"] == "true") == (float(row["score"]) >= report["best"])
    # The threshold as it is printed decides alike.
    printed = float(re.search(r"positive from ([\d.]+) up", out)[1])  # type: ignore[index]
    for row in rows:
        assert (float(row["score"]) >= printed) == (row["called_positive"] == "true")


def test_what_cannot_be_met(cli: Run, predictions_file: Path) -> None:
    code, out, err = cli(
        "threshold", predictions_file, *GOOD, "--condition", "fpr <= 0 and recall >= 1"
    )
    assert code == 0, err
    said = " ".join(out.split())
    assert "positive: 1 No threshold meets fpr <= 0 and recall >= 1. The nearest is" in said


def test_rows_count_from_1_in_the_order_to_label(
    cli: Run, tmp_path: Path, predictions_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a temporary folder may be longer than a line
    table = Path("next.csv")
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
    assert out.split("\n")[:2] == [
        "80 items, 20 labeled, 11 of them positive; 2 classes, positive: 1",
        "good: label 4 items for the ROC curve",
    ]
    assert " ".join(found.statement.split()) in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80
    with table.open(newline="") as file:
        written = list(csv.DictReader(file))
    assert [row["row"] for row in written] == rows
    assert list(written[0]) == ["row", "score", "probability", "gain", "drawn"]
