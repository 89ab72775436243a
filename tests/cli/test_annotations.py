"""`fewlabels annotations`: the losses, the table of items, and the exit codes."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fewlabels as fl

Run = Callable[..., tuple[int, str, str]]
Answer = Callable[..., dict[str, Any]]
Table = dict[str, list[Any]]


@pytest.fixture
def file(histograms: Table, write: Callable[..., Path]) -> Path:
    return write(histograms)


@pytest.fixture
def saved(cli: Run, file: Path, tmp_path: Path) -> Callable[..., Path]:
    """A calibration of a kind, fitted to the file."""

    def fit(*options: str) -> Path:
        path = tmp_path / "model.json"
        code, _, err = cli("calibrate", file, *options, "--save", path)
        assert code == 0, err
        return path

    return fit


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as source:
        return list(csv.DictReader(source))


def test_json_is_what_the_library_says(cli: Run, file: Path) -> None:
    options = ("--statistic", "unanimity:3", "--statistic", "majority:2", "--by", "site")
    code, out, err = cli("annotations", file, *options, "--bins", "5", "--json", "-")
    assert code == 0
    found = fl.annotations.assess(
        fl.read_predictions(file, keep=["site"]),
        by="site", bins=5, statistics=["unanimity_3", "majority_strength_2"],
    )  # fmt: skip
    assert json.loads(out) == found.to_dict()
    assert err == "".join(f"warning: {said}\n" for said in found.warnings)


def test_the_table_of_items(cli: Run, file: Path, tmp_path: Path) -> None:
    code, _, err = cli("annotations", file, "--out", tmp_path / "a.csv", "--by", "site")
    assert (code, err) == (0, "")
    rows = rows_of(tmp_path / "a.csv")
    assert list(rows[0]) == [
        "row", "item", "site", "labels", "observed_disagreement", "disagreement good",
        "disagreement poor",
    ]  # fmt: skip
    items = fl.read_predictions(file)
    observed = fl.annotations.DISAGREEMENT.observed(items.histogram)
    for i, row in enumerate(rows):
        assert (row["row"], row["item"]) == (str(i + 1), f"x{i}")
        assert int(row["labels"]) == items.histogram[i].sum()
        assert (row["observed_disagreement"] == "") == np.isnan(observed[i])
        expected = 1 - (items.probabilities[i, 0] ** 2).sum()
        assert float(row["disagreement good"]) == pytest.approx(expected)


def test_alpha_calibration_predicts_the_disagreement(
    cli: Run, file: Path, tmp_path: Path, saved: Callable[..., Path]
) -> None:
    model = saved("--method", "alpha", "--models", "poor")
    out_file = tmp_path / "a.csv"
    options = ("--calibration", model, "--out", out_file, "--json", "-")
    code, out, err = cli("annotations", file, *options)
    assert code == 0
    report = json.loads(out)
    assert report["diagnostics"]["concentration"] == ["poor"]
    assert report["diagnostics"]["calibration"] == "alpha-calibration (constant) of poor"
    assert "warning: alpha-calibration (constant) was applied first: where it was learned" in err
    items = fl.read_predictions(file)
    rows = rows_of(out_file)
    own = [name for name in rows[0] if name.endswith("poor") or " poor " in name]
    assert own == [
        "disagreement poor",
        "concentration poor",
        *(f"posterior poor {k}" for k in "abc"),
    ]
    alpha = float(rows[0]["concentration poor"])
    # One label of the class and alpha0 prior ones: the Dirichlet's posterior mean.
    n = items.histogram[0]
    posterior = (alpha * items.probabilities[0, 1] + n) / (alpha + n.sum())
    assert [float(rows[0][f"posterior poor {k}"]) for k in "abc"] == pytest.approx(posterior)
    pair = (1 - (items.probabilities[0, 1] ** 2).sum()) * alpha / (alpha + 1)
    assert float(rows[0]["disagreement poor"]) == pytest.approx(pair)
    found = fl.annotations.assess(items, concentration={"poor": np.full(90, alpha)})
    told = {(r["model"], r["metric"]): r["value"] for r in report["estimates"]}
    for model_name in ("good", "poor"):
        value = found.get(model_name, "L_disagreement").value
        assert told[model_name, "L_disagreement"] == pytest.approx(value)


def test_a_map_changes_the_probabilities_first(
    answer: Answer, file: Path, saved: Callable[..., Path]
) -> None:
    model = saved("--method", "temperature")
    before, after = (
        answer("annotations", file, *options)
        for options in ((), ("--calibration", model, "--models", "poor"))
    )
    assert after["models"] == ["poor"]
    assert after["diagnostics"]["calibration"] == "temperature scaling of poor"
    loss = {
        (which, row["metric"]): row["value"]
        for which, report in (("before", before), ("after", after))
        for row in report["estimates"]
        if row["model"] == "poor"
    }
    assert loss["after", "accuracy"] == loss["before", "accuracy"]
    assert loss["after", "L"] < loss["before", "L"]


def test_features_of_a_calibration_are_read(
    cli: Run, answer: Answer, refused: Callable[..., str], histograms: Table,
    write: Callable[..., Path], tmp_path: Path,
) -> None:  # fmt: skip
    file, model = write(histograms | {"blur": [i / 90 for i in range(90)]}), tmp_path / "m.json"
    asked = ("--method", "alpha", "--features", "blur", "--save", model)
    assert cli("calibrate", file, *asked)[0] == 0
    found = answer("annotations", file, "--calibration", model)
    assert found["diagnostics"]["concentration"] == ["good", "poor"]
    without = write(histograms, "without.csv")
    assert "blur" in refused("annotations", without, "--calibration", model)


def test_a_calibration_of_other_classifiers(
    refused: Callable[..., str], tmp_path: Path, saved: Callable[..., Path]
) -> None:
    model, other = saved("--method", "temperature"), tmp_path / "other.csv"
    other.write_text("p__x__a,p__x__b,p__x__c,label\n.2,.3,.5,a\n.1,.8,.1,b\n")
    err = refused("annotations", other, "--calibration", model)
    assert "classifiers that these predictions lack: good, poor" in err


# --- people ---------------------------------------------------------------------------------------


@pytest.fixture
def votes(write: Callable[..., Path]) -> Path:
    """Two annotators with thresholds of their own, and one who labels some items."""
    rows: list[tuple[str, str, str]] = []
    for i in range(60):
        rows += [(f"x{i}", "ann", "yes" if i > 15 else "no")]
        rows += [(f"x{i}", "bob", "yes" if i > 45 else "no")]
        rows += [(f"x{i}", "cem", "yes" if i > 30 else "no")] * (i % 3 == 0)
    item, annotator, label = zip(*rows, strict=True)
    return write({"item": item, "annotator": annotator, "label": label}, "votes.csv")


@pytest.fixture
def scored(write: Callable[..., Path]) -> Path:
    item = [f"x{i}" for i in range(60)]
    return write({"item": item, "p__m__yes": [round(i / 60, 4) for i in range(60)]}, "scored.csv")


def test_votes_alone_are_of_people(cli: Run, answer: Answer, votes: Path, tmp_path: Path) -> None:
    report = answer("annotations", "--votes", votes)
    assert (report["models"], report["estimates"]) == ([], [])
    found = fl.annotations.agreement(fl.read_predictions(votes=votes))
    assert report["agreement"] == found.to_dict()
    assert found.n_annotators == 3
    code, out, _ = cli("annotations", "--votes", votes, "--html", tmp_path / "a.html")
    assert code == 0
    assert "only annotators" in out
    assert "ann, bob" in out
    assert "How far do annotators agree?" in (tmp_path / "a.html").read_text()


def test_a_panel_of_these_annotators(answer: Answer, votes: Path, scored: Path) -> None:
    free = answer("annotations", scored, "--votes", votes)
    status = {row["metric"]: row["status"] for row in free["estimates"]}
    assert (status["EL"], status["L"]) == ("ok", "ok")
    assert any("count these annotators as drawn from many" in w for w in free["warnings"])
    fixed = answer("annotations", scored, "--votes", votes, "--panel", "fixed")
    assert fixed["diagnostics"]["panel"] == 3
    assert {row["status"] for row in fixed["estimates"]} == {"ok"}
    assert fixed["warnings"] == []


def test_conditions_on_agreement(cli: Run, votes: Path, scored: Path, file: Path) -> None:
    for condition, expected in (
        ("agreement>=.4", 0), ("ann:ac1<=.5", 0), ("low:ac1>=.9", 1), ("bob:pabak>=.9", 1),
    ):  # fmt: skip
        code, _, err = cli("annotations", scored, "--votes", votes, "--require", condition)
        assert code == expected, err
        assert ("not met: " in err) == bool(expected)
    code, _, err = cli("annotations", scored, "--votes", votes, "--require", "eve:ac1>=.9")
    assert code == 2
    assert "no agreement 'ac1' of 'eve'" in err
    code, _, err = cli("annotations", file, "--require", "alpha>=.9", "--engine", "threads")
    assert code == 2
    assert "add --engine memory" in err


def test_a_panel_needs_all_items(refused: Callable[..., str], file: Path) -> None:
    err = refused("annotations", file, "--panel", "fixed", "--engine", "threads")
    assert "--panel fixed would need them whole" in err
