"""`fewlabels curve`: one classifier's curves, and the options that all such commands share."""

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
from test_bad_input import refused
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


def test_summary_fits_80_columns(cli: Run, predictions_file: Path) -> None:
    code, out, err = cli("curve", predictions_file, *GOOD)
    assert (code, err) == (0, "")
    first, second = out.splitlines()[:2]
    assert first.endswith("; 2 classes, positive: 1")
    assert second.startswith("good: average precision 0.")
    assert max(map(len, out.splitlines())) <= 80


def test_files_are_written_whole(cli: Run, tmp_path: Path, predictions_file: Path) -> None:
    names = ["out.json", "out.html", "out.svg", "out.csv"]
    options = [x for name in names for x in ("--" + name[-4:].strip("."), tmp_path / name)]
    options[-2] = "--out"
    code, out, err = cli("curve", predictions_file, *GOOD, *options)
    assert (code, err) == (0, "")
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([*names, "predictions.csv"])
    assert all(name in out for name in names)
    assert strict((tmp_path / "out.json").read_text())["what"] == "curves"
    assert (tmp_path / "out.html").read_text("utf-8").endswith("</html>")
    ElementTree.parse(tmp_path / "out.svg")
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
    if "monotone-curves" not in fl.models.METHODS:
        pytest.skip("monotone-curves is not registered")
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


REFUSED = {
    "no model": ([], r"must name one of the classifiers: good, poor"),
    "unknown model": (["--model", "god"], r"unknown model 'god'; did you mean 'good'"),
    "two models": (["--model", "good", "--model", "poor"], r"--model must name one.*good, poor"),
    "unknown column": (["--model", "m=no,such"], r"no"),
    "unknown method": (["--model", "good", "--method", "auto1"], r"did you mean 'auto'"),
    "no posterior": (["--model", "good", "--method", "autoeval"], r"forms no posterior"),
    "unknown class": (["--model", "good", "--positive", "2"], r"unknown class '2'"),
    "level": (["--model", "good", "--confidence-level", "1"], r"confidence.level.*1"),
    "estimand": (["--model", "good", "--estimand", "world"], r"world.*population"),
    "ending": (["--model", "good", "--out", "x.txt"], r"'x.txt' must end in .csv or .parquet"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("command", ["curve", "threshold", "label-next"])
def test_what_is_refused(
    command: str, case: str, cli: Run, tmp_path: Path, predictions_file: Path
) -> None:
    options, message = REFUSED[case]
    if command == "label-next" and case in ("level", "estimand"):
        pytest.skip("the command has no such option")
    more = ["--min-recall", ".5"] if command == "threshold" else []
    if "--method" not in options:
        options = [*options, "--method", "bayesian-calibration"]
    err = refused(
        cli, tmp_path, command, predictions_file, *options, *more, "--json", tmp_path / "out.json"
    )
    assert re.search(message, err), err


@pytest.mark.parametrize("option", ["--json", "--html", "--svg", "--out"])
def test_unwritable_outputs_are_found_before_the_work(
    option: str, cli: Run, tmp_path: Path, unwritable: Path
) -> None:
    path = unwritable.with_suffix(".csv")
    err = refused(cli, tmp_path, "curve", tmp_path / "none.csv", option, path)
    assert f"cannot write {option}" in err


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
