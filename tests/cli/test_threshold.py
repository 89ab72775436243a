"""`fewlabels threshold`: conditions, the answer, and the exit codes."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from test_bad_input import refused
from test_estimate import strict

import fewlabels as fl

Run = Callable[..., tuple[int, str, str]]
GOOD = ("--model", "good", "--method", "bayesian-calibration")


def test_bounds_and_conditions_reach_the_answer(cli: Run, predictions_file: Path) -> None:
    options = "--min-precision .6 --min-recall .5 --min-specificity .3 --min-f1 .3 --max-fpr .7"
    options += " --min-accuracy .3 --max-cost 2 --cost 1,4"
    conditions = ("--condition", "npv >= .2 and fnr <= .9", "--condition", "prevalence > .01")
    code, out, err = cli(
        "threshold", predictions_file, *GOOD, *options.split(), *conditions, "--json", "-"
    )
    assert code == 0, err
    report = strict(out)
    found = fl.threshold(
        fl.read_predictions(predictions_file), "good", 0.6, 0.5, min_specificity=0.3, min_f1=0.3,
        min_accuracy=0.3, max_fpr=0.7, max_cost=2.0, cost=(1.0, 4.0),
        condition="npv >= .2 and fnr <= .9 and prevalence > .01", method="bayesian-calibration",
    )  # fmt: skip
    assert report["conditions"] == list(found.conditions)
    assert len(report["conditions"]) == 10
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


def test_files_are_written_whole(cli: Run, tmp_path: Path, predictions_file: Path) -> None:
    files = {"--json": "t.json", "--html": "t.html", "--svg": "t.svg", "--out": "t.csv"}
    options = [x for option, name in files.items() for x in (option, tmp_path / name)]
    code, out, _ = cli("threshold", predictions_file, *GOOD, "--min-recall", ".5", *options)
    assert code == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        [*files.values(), "predictions.csv"]
    )
    report = strict((tmp_path / "t.json").read_text())
    assert "Where to put the threshold?" in (tmp_path / "t.html").read_text("utf-8")
    ElementTree.parse(tmp_path / "t.svg")
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


REFUSED = {
    "nothing asked": ([], r"say what the threshold must meet"),
    "bound": (["--min-recall", "1.5"], r"--min-recall.*1\.5"),
    "nan": (["--min-recall", "nan"], r"--min-recall.*nan"),
    "no number": (["--min-recall", "many"], r"'many' is not a valid float"),
    "one cost": (["--max-cost", "1", "--cost", "3"], r"--cost must be two costs.*got '3'"),
    "bad cost": (["--max-cost", "1", "--cost", "1,inf"], r"--cost must be two costs"),
    "unknown rate": (["--condition", "recal >= .5"], r"'recal'.*did you mean 'recall'"),
    "no comparison": (["--condition", "recall"], r"recall"),
    "code": (["--condition", "__import__('os') >= 1"], r"condition"),
    "probability": (["--min-recall", ".5", "--probability", "2"], r"--probability.*2"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str, cli: Run, tmp_path: Path, predictions_file: Path) -> None:
    options, message = REFUSED[case]
    out = ("--json", tmp_path / "out.json")
    err = refused(cli, tmp_path, "threshold", predictions_file, *GOOD, *options, *out)
    assert re.search(message, err), err
