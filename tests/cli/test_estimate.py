"""`fewlabels estimate` and the exit codes."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

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


def test_summary_fits_80_columns(cli: Run, predictions_file: Path) -> None:
    code, out, err = cli("estimate", predictions_file)
    assert (code, err) == (0, "")
    assert "good" in out
    assert "accuracy" in out
    assert max(map(len, out.splitlines())) <= 80


def test_files_are_written_whole(cli: Run, tmp_path: Path, predictions_file: Path) -> None:
    files = [tmp_path / "out.json", tmp_path / "out.html"]
    code, out, _ = cli("estimate", predictions_file, "--json", files[0], "--html", files[1])
    assert code == 0
    assert "good" in out
    assert strict(files[0].read_text())["n_items"] == 80
    assert files[1].read_text(encoding="utf-8").rstrip().endswith("</html>")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.html", "out.json", "predictions.csv"]


def test_same_seed_same_answer(cli: Run, predictions_file: Path) -> None:
    runs = [
        cli("estimate", predictions_file, "--json", "-", "--seed", seed, "--workers", workers)[1]
        for seed, workers in (("3", "1"), ("3", "2"), ("4", "1"))
    ]
    assert runs[0] == runs[1]
    assert strict(runs[2])["seed"] == 4
    assert strict(runs[0])["estimates"] != strict(runs[2])["estimates"]


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


def test_values_are_ordered_and_in_bounds(cli: Run, predictions_file: Path) -> None:
    _, out, _ = cli("estimate", predictions_file, "--by", "site", "--json", "-")
    for row in strict(out)["estimates"]:
        assert 0 <= row["low"] <= row["value"] <= row["high"] <= 1
        assert not math.isclose(row["low"], row["high"])


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
