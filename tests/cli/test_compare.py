"""`fewlabels compare`: its answers as text, JSON and HTML, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Cli = Callable[..., tuple[int, str, str]]


def test_text(cli: Cli, predictions_file: Path) -> None:
    code, out, err = cli("compare", str(predictions_file), "--metric", "accuracy,brier")
    assert (code, err) == (0, "")
    assert "By accuracy, good" in out
    assert "By brier, good" in out
    assert "both are wrong together on" in out
    assert max(map(len, out.splitlines())) <= 80


def test_json(cli: Cli, predictions_file: Path) -> None:
    code, out, _ = cli("compare", str(predictions_file), "--by", "site", "--json", "-")
    said = json.loads(out)
    assert code == 0
    assert [(c["metric"], c["group"]) for c in said["comparisons"]] == [
        ("accuracy", None), ("accuracy", "site=south"), ("accuracy", "site=north"),
    ]  # fmt: skip
    first = said["comparisons"][0]
    assert {"ranking", "may_be_best", "alike", "pairs", "standings", "labels_needed"} <= set(first)
    assert set(first["standings"][0]) >= {"model", "value", "low", "high", "probability_best"}
    assert {gap["model"] for gap in said["group_gaps"]} == {"good", "poor"}
    assert [part["group"] for part in said["together"]] == [None, "site=south", "site=north"]
    assert said["models"] == ["good", "poor"]


def test_files(cli: Cli, predictions_file: Path, tmp_path: Path) -> None:
    page, data = tmp_path / "c.html", tmp_path / "c.json"
    code, out, _ = cli(
        "compare", str(predictions_file), "--by", "site", "--html", str(page), "--json", str(data)
    )
    assert code == 0
    assert f"Report: {page}" in out.replace("\n", "")
    assert "Which classifier is best?" in page.read_text(encoding="utf-8")
    assert json.loads(data.read_text())["comparisons"]


def test_only_some_classifiers(cli: Cli, predictions_file: Path) -> None:
    code, out, _ = cli("compare", str(predictions_file), "--models", "poor,good", "--json", "-")
    assert code == 0
    assert len(json.loads(out)["comparisons"][0]["pairs"]) == 1
    assert {tuple(t["models"]) for t in json.loads(out)["together"]} == {("good", "poor")}
    # Columns may be mapped as anywhere else.
    code, out, _ = cli(
        "compare", str(predictions_file), "--model", "a=p__good__0,p__good__1",
        "--model", "b=p__poor__0,p__poor__1", "--json", "-",
    )  # fmt: skip
    assert code == 0
    assert {"a", "b"} <= set(json.loads(out)["models"])


def test_a_method_without_joint_errors_compares_all_the_same(
    cli: Cli, predictions_file: Path
) -> None:
    code, out, _ = cli("compare", str(predictions_file), "--method", "autoeval", "--json", "-")
    said = json.loads(out)
    assert code == 0
    assert said["together"] == []
    assert any("joint errors" in warning for warning in said["warnings"])


def test_estimate_says_which_is_best(cli: Cli, predictions_file: Path) -> None:
    code, out, _ = cli("estimate", str(predictions_file))
    assert code == 0
    assert "Which is best? (95%, all classifiers looked at together)" in out
    assert "All together" in out
    code, out, _ = cli("estimate", str(predictions_file), "--json", "-")
    assert set(json.loads(out)["comparison"]) == {"accuracy", "ece", "roc_auc", "average_precision"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--metric", "acuracy"], "unknown metric 'acuracy'; did you mean 'accuracy'?"),
        (["--method", "auot"], "unknown method 'auot'"),
        (["--models", "good"], "--models names 1 classifier; name two or more"),
        (["--models", "good,bad"], "unknown model 'bad'"),
        (["--model", "good"], "names no columns: --models NAME selects, --model NAME=COL maps"),
        (["--positive", "2"], "unknown class '2'"),
        (["--by", "place"], "no column 'place'"),
        (["--confidence-level", "1"], "--confidence-level must be between 0 and 1"),
        (["--method", "autoeval", "--metric", "f1"], "defined for 0 of 2"),
        (["--json", "nowhere/c.json"], "cannot write --json"),
    ],
)
def test_refusals_are_one_line(
    cli: Cli, predictions_file: Path, arguments: list[str], message: str
) -> None:
    code, out, err = cli("compare", str(predictions_file), *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_one_classifier_has_no_rival(cli: Cli, columns: dict, write: Callable[..., Path]) -> None:
    kept = {k: v for k, v in columns.items() if "poor" not in k}
    code, _, err = cli("compare", str(write(kept)))
    assert code == 2
    assert "a comparison needs two classifiers" in err
