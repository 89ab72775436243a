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


def strict(text: str) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    value = json.loads(text, parse_constant=refuse)
    assert isinstance(value, dict)
    return value


def test_json_on_stdout_is_alone(cli: Run, predictions_file: Path) -> None:
    code, out, err = cli("estimate", predictions_file, "--json", "-")
    assert code == 0
    result = strict(out)
    assert out.endswith("}\n")
    assert set(result) >= {
        *("fewlabels", "method", "seed", "n_items", "n_labeled", "models", "classes"),
        *("estimates", "diagnostics", "warnings"),
    }
    assert all(line.startswith("warning: ") for line in err.splitlines())
    assert len(err.splitlines()) == len(result["warnings"])
    first = result["estimates"][0]
    assert set(first) == {
        *("model", "metric", "group", "value", "low", "high", "confidence_level", "status")
    }
    assert [r["metric"] for r in result["estimates"][:4]] == [
        "accuracy", "ece", "roc_auc", "average_precision",
    ]  # fmt: skip
    assert (result["seed"], result["n_items"], result["n_labeled"]) == (0, 80, 20)


def test_options_reach_the_estimate(cli: Run, predictions_file: Path) -> None:
    options = "--method labeled --metrics accuracy,brier --by site --models poor"
    options += " --confidence-level 0.8 --estimand sample"
    code, out, _ = cli("estimate", predictions_file, *options.split(), "--json", "-")
    assert code == 0
    result = strict(out)
    assert result["method"] == "labeled"
    assert result["models"] == ["poor"]
    assert result["estimand"] == "sample"
    assert [(r["metric"], r["group"]) for r in result["estimates"]] == [
        ("accuracy", None),
        ("brier", None),
        ("accuracy", "site=south"),
        ("brier", "site=south"),
        ("accuracy", "site=north"),
        ("brier", "site=north"),
    ]
    assert {r["confidence_level"] for r in result["estimates"]} == {0.8}


def test_columns_by_option(
    cli: Run, columns: dict[str, list[Any]], write: Callable[..., Path]
) -> None:
    file = write(
        {
            "truth": columns["label"],
            "a0": columns["p__good__0"],
            "a1": columns["p__good__1"],
            "x,y": columns["site"],
        }
    )
    code, out, err = cli(
        *("estimate", file, "--label", "truth", "--model", "mine=a0,a1", "--by", "x,y"),
        *("--metrics", "accuracy", "--json", "-", "--classes", "0,1"),
    )
    assert code == 0, err
    assert [r["group"] for r in strict(out)["estimates"]] == [None, "x,y=south", "x,y=north"]


def test_requirements_decide_the_exit_code(
    cli: Run, tmp_path: Path, predictions_file: Path
) -> None:
    base = ["estimate", predictions_file, "--metrics", "accuracy"]
    assert cli(*base, "--require", "accuracy>=0.01", "--require", "high: accuracy < 1.01")[0] == 0
    saved = tmp_path / "out.json"
    code, _, err = cli(*base, "--require", "low:accuracy>=0.999", "--json", saved)
    assert code == 1
    assert len(err.splitlines()) == 2
    assert "not met: low:accuracy>=0.999: model 'good' has 0." in err
    # What a requirement finds is a result, not a failure of the run: files are written.
    assert strict(saved.read_text())["n_items"] == 80


def test_a_required_metric_is_added(cli: Run, predictions_file: Path) -> None:
    arguments = ["--metrics", "accuracy", "--require", "brier<=1", "--json", "-"]
    code, out, _ = cli("estimate", predictions_file, *arguments)
    assert code == 0
    assert [r["metric"] for r in strict(out)["estimates"]] == ["accuracy", "brier"] * 2


def test_a_group_does_not_count_for_requirements(
    cli: Run, columns: dict[str, list[Any]], write: Callable[..., Path]
) -> None:
    file = write(columns | {"id": [str(i // 2) for i in range(80)]})
    arguments = ["--metrics", "accuracy", "--by", "id", "--require", "accuracy>=0.3"]
    assert cli("estimate", file, *arguments)[0] == 0


def test_nan_never_passes(cli: Run, write: Callable[..., Path]) -> None:
    file = write({"label": [0, 1, ""] * 10, "y__votes": [0, 1, 1] * 10})
    for condition in ("log_loss<100", "log_loss>=0"):
        code, out, err = cli("estimate", file, "--method", "labeled", "--require", condition)
        assert code == 1, err
        assert "no value (not-applicable" in err
    code, out, _ = cli("estimate", file, "--method", "labeled", "--metrics", "ece", "--json", "-")
    assert strict(out)["estimates"][0]["value"] is None


HOSTILE = "<script>alert('x')</script>\"&,;\n😀"


def test_hostile_names(
    cli: Run, tmp_path: Path, columns: dict[str, list[Any]], write: Callable[..., Path]
) -> None:
    model = "<img src=x onerror=alert(1)>\"'\n😀"
    table = {
        "label": columns["label"],
        f"p__{model}__1": columns["p__good__1"],
        HOSTILE: [HOSTILE if s == "north" else "<s>" for s in columns["site"]],
    }
    page = tmp_path / "out.html"
    code, out, err = cli("estimate", write(table), "--by", HOSTILE, "--html", page, "--json", "-")
    assert code == 0, err
    result = strict(out)
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
    assert strict(target.read_text())["n_items"] == 80
    assert target.stat().st_mode & 0o777 == 0o640


Cli = Callable[..., tuple[int, str, str]]


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
    assert "Which is best? (95%, all classifiers compared at once)" in out
    assert "All classifiers together" in out
    code, out, _ = cli("estimate", str(predictions_file), "--json", "-")
    assert set(json.loads(out)["comparison"]) == {"accuracy", "ece", "roc_auc", "average_precision"}


def test_one_classifier_has_no_rival(cli: Cli, columns: dict, write: Callable[..., Path]) -> None:
    kept = {k: v for k, v in columns.items() if "poor" not in k}
    code, _, err = cli("compare", str(write(kept)))
    assert code == 2
    assert "a comparison needs two classifiers" in err


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


def test_one_number_is_for_all_and_a_name_wins(cli, file):
    def accuracy(*options):
        arguments = ("estimate", str(file), "--method", "labeled", "--metrics", "accuracy")
        code, out, _ = cli(*arguments, "--json", "-", *options)
        assert code == 0
        return {row["model"]: row["value"] for row in json.loads(out)["estimates"]}

    base, low = accuracy(), accuracy("--threshold", "0.2")
    named = accuracy("--threshold", "0.2", "--threshold", "b=0.55")
    assert low["a"] != base["a"]
    assert low["b"] != base["b"]
    assert low["c"] == base["c"]
    assert named == base | {"a": low["a"]}


def test_said_twice_or_for_nothing(cli, file, tmp_path):
    code, _, err = cli("estimate", str(file), "--threshold", "a=0.3", "--threshold", "a=0.4")
    assert code == 2
    assert "another one before it" in err
    votes = tmp_path / "votes.csv"
    votes.write_text("y__a,y__b\n0,1\n1,1\n")
    code, _, err = cli("estimate", str(votes), "--threshold", "0.3")
    assert code == 2
    assert "no classifier has probabilities" in err


def test_refused_in_python():
    two = fl.Predictions([[0.1], [0.3]])
    with pytest.raises(UsageError, match="from 0 to 1"):
        two.thresholded({"model0": float("nan")})
    with pytest.raises(InputError, match="'model0' has no probabilities"):
        fl.Predictions(votes=[[0], [1]]).thresholded({"model0": 0.5})
    with pytest.raises(InputError, match="two classes"):
        fl.Predictions(votes=[[0], [2]], classes=[0, 1, 2]).thresholded({"model0": 0.5})
