"""`fewlabels annotations`: the losses, the table of items, and the exit codes."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_bad_input import refused
from test_estimate import strict

import fewlabels as fl

Run = Callable[..., tuple[int, str, str]]
Table = dict[str, list[Any]]


def histograms() -> Table:
    """Two classifiers, 90 items, 60 of them with 1 to 5 labels, two sites."""
    rng = np.random.default_rng(3)
    truth = rng.dirichlet([0.5, 0.5, 0.5], size=90)
    size = np.where(np.arange(90) < 60, rng.integers(1, 6, size=90), 0)
    counts = np.array([rng.multinomial(m, q) for m, q in zip(size, truth, strict=True)])
    out: Table = {"item": [f"x{i}" for i in range(90)]}
    for name, noise in (("good", 0.3), ("poor", 1.5)):
        logits = np.log(truth + 0.05) + noise * rng.normal(size=truth.shape)
        p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        out |= {f"p__{name}__{k}": p[:, j].tolist() for j, k in enumerate("abc")}
    out |= {f"h__{k}": counts[:, j].tolist() for j, k in enumerate("abc")}
    out["site"] = ["north" if i % 2 else "south" for i in range(90)]
    return out


@pytest.fixture(scope="module")
def table() -> Table:
    return histograms()


@pytest.fixture
def file(table: Table, write: Callable[..., Path]) -> Path:
    return write(table)


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
    assert strict(out) == found.to_dict()
    assert err == "".join(f"warning: {said}\n" for said in found.warnings)


def test_the_table_of_items(cli: Run, file: Path, tmp_path: Path) -> None:
    code, out, err = cli("annotations", file, "--out", tmp_path / "a.csv", "--by", "site")
    assert (code, err) == (0, "")
    assert "good comes nearest to what annotators say." in out
    assert "site=north\n=====" in out
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
    report = strict(out)
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
    cli: Run, file: Path, saved: Callable[..., Path]
) -> None:
    model = saved("--method", "temperature")
    before, after = (
        strict(cli("annotations", file, *options, "--json", "-")[1])
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
    cli: Run, table: Table, write: Callable[..., Path], tmp_path: Path
) -> None:
    file, model = write(table | {"blur": [i / 90 for i in range(90)]}), tmp_path / "m.json"
    assert (
        cli("calibrate", file, "--method", "alpha", "--features", "blur", "--save", model)[0] == 0
    )
    code, out, err = cli("annotations", file, "--calibration", model, "--json", "-")
    assert code == 0, err
    assert strict(out)["diagnostics"]["concentration"] == ["good", "poor"]
    without = write(table, "without.csv")
    assert "blur" in refused(cli, tmp_path, "annotations", without, "--calibration", model)


def test_a_known_label_is_one(cli: Run, predictions_file: Path) -> None:
    code, out, _ = cli("annotations", predictions_file, "--json", "-")
    report = strict(out)
    assert (code, report["n_annotated"], report["n_labels"]) == (0, 20, 20)
    assert {r["status"] for r in report["estimates"] if r["metric"] == "EL"} == {"undefined"}
    assert any("ask a second annotator" in said for said in report["warnings"])


def test_requirements_decide_the_exit_code(cli: Run, file: Path) -> None:
    assert cli("annotations", file, "--require", "EL<=2", "--require", "high: CE < 2")[0] == 0
    code, out, err = cli(
        "annotations", file, "--statistic", "unanimity:2", "--require", "L_unanimity_2<=0"
    )
    assert code == 1
    assert (
        len(re.findall(r"not met: L_unanimity_2<=0: model '(good|poor)' has 0\.\d+ \(", err)) == 2
    )
    assert out.startswith("90 items; ")
    assert cli("annotations", file, "--require", "accuracy>=.999", "--json", "-")[0] == 1


REFUSED: dict[str, tuple[list[str], str]] = {
    "metric": (["--require", "el<=.1"], r"unknown metric 'el'.*choose from accuracy, L, EL"),
    "metric of no statistic": (["--require", "L_unanimity_3<=.1"], r"unknown metric"),
    "form": (["--require", "EL=1"], r"--require must be"),
    "statistic": (["--statistic", "unanimty:3"], r"--statistic must be unanimity:N"),
    "no order": (["--statistic", "majority"], r"--statistic must be .*'majority'"),
    "order": (["--statistic", "unanimity:1"], r"order.*from 2 to 50"),
    "disagreement": (["--statistic", "disagreement"], r"always assessed"),
    "unknown statistic": (["--statistic", "median_3"], r"unknown statistic 'median_3'"),
    "bins": (["--bins", "0"], r"--bins.*got 0"),
    "level": (["--confidence-level", "1"], r"--confidence-level.*got 1"),
    "no calibration": (["--calibration", "none.json"], r"cannot read none\.json"),
    "model": (["--models", "god"], r"unknown model 'god'.*did you mean 'good'"),
    "group": (["--by", "town"], r"no column 'town'"),
    "too many groups": (["--by", "item"], r"group 'item' has 90 values"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str, cli: Run, tmp_path: Path, file: Path) -> None:
    options, message = REFUSED[case]
    out = [
        "--json",
        tmp_path / "o.json",
        "--html",
        tmp_path / "o.html",
        "--out",
        tmp_path / "o.csv",
    ]
    err = refused(cli, tmp_path, "annotations", file, *options, *out)
    assert re.search(message, err), err


def test_arguments_are_checked_before_the_file_is_read(
    cli: Run, tmp_path: Path, write: Callable[..., Path], saved: Callable[..., Path]
) -> None:
    torn = write({"p__a__0": ["x"], "p__a__1": ["y"]}, "torn.csv")
    for case in ("metric", "statistic", "order", "bins", "level", "no calibration"):
        options, message = REFUSED[case]
        assert re.search(message, refused(cli, tmp_path, "annotations", torn, *options))
    model = saved("--method", "temperature")
    for options, message in (
        (["--out", tmp_path / "o.txt"], r"must end in \.csv or \.parquet"),
        (["--html", torn], r"is the input file"),
        (["--calibration", model, "--json", model], r"is the input file"),
        (["--json", tmp_path / "no" / "o.json"], r"cannot write"),
    ):
        assert re.search(message, refused(cli, tmp_path, "annotations", torn, *options))


FILES: dict[str, tuple[Callable[[Table], Table], str]] = {
    "negative": (lambda t: t | {"h__a": [-1, *t["h__a"][1:]]}, r"'h__a'.*got -1 in row 1"),
    "fraction": (lambda t: t | {"h__a": [0.5, *t["h__a"][1:]]}, r"'h__a'.*got 0\.5 in row 1"),
    "no labels": (
        lambda t: {k: v for k, v in t.items() if not k.startswith("h__")},
        r"no item has a label",
    ),
    "no probabilities": (
        lambda t: {k: v for k, v in t.items() if not k.startswith("p__")} | {"y__m": ["a"] * 90},
        r"no classifier has probabilities",
    ),
    "above 1": (lambda t: t | {"p__good__a": [7, *t["p__good__a"][1:]]}, r"between 0 and 1"),
}


@pytest.mark.parametrize("case", FILES)
def test_bad_files(
    case: str, cli: Run, table: Table, write: Callable[..., Path], tmp_path: Path
) -> None:
    change, message = FILES[case]
    err = refused(cli, tmp_path, "annotations", write(change(table)), "--json", tmp_path / "o.json")
    assert re.search(message, err), err


def test_out_does_not_write_two_columns_of_one_name(
    cli: Run, table: Table, write: Callable[..., Path], tmp_path: Path
) -> None:
    file = write(table | {"labels": table["site"]})
    out = tmp_path / "o.parquet"
    err = refused(cli, tmp_path, "annotations", file, "--by", "labels", "--out", out)
    assert "columns of its own named labels" in err
    assert cli("annotations", file, "--by", "labels")[0] == 0
    assert cli("annotations", file, "--by", "site", "--out", out)[0] == 0
    assert out.is_file()


def test_a_calibration_of_other_classifiers(
    cli: Run, predictions_file: Path, tmp_path: Path, saved: Callable[..., Path]
) -> None:
    model = saved("--method", "temperature")
    fl_file = tmp_path / "other.csv"
    fl_file.write_text("p__x__a,p__x__b,p__x__c,label\n.2,.3,.5,a\n.1,.8,.1,b\n")
    err = refused(cli, tmp_path, "annotations", fl_file, "--calibration", model)
    assert "classifiers that these predictions lack: good, poor" in err
