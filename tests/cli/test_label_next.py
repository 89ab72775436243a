"""`fewlabels label-next`: the items to label next."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
from test_estimate import strict

import fewlabels as fl

Run = Callable[..., tuple[int, str, str]]
GOOD = ("--model", "good", "--method", "bayesian-calibration")


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
    start = lines.index(["row", "score", "P(positive)", "gain"]) + 1
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
    assert list(written[0]) == ["row", "score", "probability", "gain"]


def test_json_on_stdout_is_alone(cli: Run, predictions_file: Path) -> None:
    code, out, err = cli("label-next", predictions_file, *GOOD, "--size", "3", "--json", "-")
    assert code == 0, err
    report = strict(out)
    assert report["rows"] == [item + 1 for item in report["items"]]
    assert len(report["rows"]) == 3
    assert len(err.splitlines()) == len(report["warnings"])
