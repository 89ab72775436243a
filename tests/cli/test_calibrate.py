"""`fewlabels calibrate`: fit, save, apply, and the exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_annotations import Table, rows_of

import fewlabels as fl
from fewlabels.calibration.recalibration import Recalibration, Settings, fit

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def file(histograms: Table, write: Callable[..., Path]) -> Path:
    return write(histograms)


@pytest.mark.parametrize("method", ["temperature", "vector", "alpha"])
def test_what_is_saved_and_applied_is_what_was_fitted(
    cli: Run, file: Path, tmp_path: Path, method: str
) -> None:
    model, first, second = (tmp_path / name for name in ("m.json", "first.csv", "second.csv"))
    code, out, err = cli("calibrate", file, "--method", method, "--save", model, "--out", first)
    assert (code, err) == (0, "")
    assert f"\nModel: {model}\n" in out
    assert f"\nCalibrated: {first}\n" in out
    assert max(map(len, out.split("\nModel: ")[0].splitlines())) <= 80
    assert cli("calibrate", file, "--apply", model, "--out", second) == (
        0, f"Calibrated: {second}\n", "",
    )  # fmt: skip
    assert first.read_bytes() == second.read_bytes()
    items = fl.read_predictions(file)
    found = Recalibration.load(model).apply(items)
    again = fl.read_predictions(first)
    np.testing.assert_allclose(again.probabilities, found.predictions.probabilities, atol=1e-12)
    np.testing.assert_array_equal(again.histogram, items.histogram)
    assert rows_of(first)[0]["item"] == "x0"


def test_json_is_what_the_library_says(answer: Callable[..., Any], file: Path) -> None:
    found = answer("calibrate", file, "--method", "temperature")
    assert found == fit(fl.read_predictions(file), Settings("temperature")).to_dict()


@pytest.mark.parametrize("method", ["temperature", "matrix", "alpha"])
def test_the_page(cli: Run, file: Path, tmp_path: Path, method: str) -> None:
    page, saved = tmp_path / "page.html", tmp_path / "report.json"
    code, out, err = cli(
        "calibrate", file, "--method", method, "--html", page, "--json", saved
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert f"\nReport: {page}\n" in out
    source = page.read_text("utf-8")
    assert "What does the calibration change?" in source
    loss = "L_disagreement" if method == "alpha" else "EL"
    for entry in json.loads(saved.read_text())["calibrations"]:
        assert f"{entry['after'][loss]:.3f}" in source


def test_some_classifiers_and_features(
    answer: Callable[..., Any], histograms: Table, write: Callable[..., Path]
) -> None:
    source = write(histograms | {"blur": [i / 90 for i in range(90)]})
    options = ("--method", "alpha", "--features", "blur", "--models", "poor")
    report = answer("calibrate", source, *options)
    assert (report["models"], report["concentration"]) == (["poor"], "features")


@pytest.fixture
def long_labels(tmp_path):
    """Probabilities of two classifiers for 120 items, and a row per annotator and item."""
    rng = np.random.default_rng(0)
    p = rng.random((120, 2)).round(3)
    lines = ["item,site,weight,p__a__yes,p__b__yes"]
    lines += [f"i{i},{'AB'[i % 2]},{1 + i % 3},{x},{y}" for i, (x, y) in enumerate(p)]
    (tmp_path / "wide.csv").write_text("\n".join(lines) + "\n")
    said = ["item,annotator,label"]
    for i in range(80):
        for who in ("ann", "bob", "cem"):
            said.append(f"i{i},{who},{'yes' if rng.random() < p[i, 0] else 'no'}")
    (tmp_path / "long.csv").write_text("\n".join(said) + "\n")
    return tmp_path


def test_a_map_is_applied_to_items_that_do_not_show_their_classes(cli, long_labels):
    wide, long = str(long_labels / "wide.csv"), str(long_labels / "long.csv")
    saved, out = str(long_labels / "map.json"), str(long_labels / "out.csv")
    assert (
        cli("calibrate", wide, "--votes", long, "--method", "temperature", "--save", saved)[0] == 0
    )
    code, _, err = cli("calibrate", wide, "--apply", saved, "--out", out)
    assert (code, err) == (0, "")
    assert '"p__a__no"' in (long_labels / "out.csv").read_text().splitlines()[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(models={}), "no classifier"),
        (lambda d: _fit(d).update(temperature_=-1.0), "temperature above 0"),
        (lambda d: _fit(d).update(classes_=[["no"], "yes"]), "must name 2 classes"),
        (lambda d: _fit(d).update(classes_=["no", "no"]), "must name 2 classes"),
        (lambda d: d["about"].update(method="alpha"), "of another kind"),
        (lambda d: d.pop("about"), "does not say how"),
    ],
)
def test_a_map_edited_by_hand_is_refused(cli, long_labels, change, message):
    wide, long = str(long_labels / "wide.csv"), str(long_labels / "long.csv")
    saved, out = long_labels / "map.json", long_labels / "out.csv"
    cli("calibrate", wide, "--votes", long, "--method", "temperature", "--save", str(saved))
    stored = json.loads(saved.read_text())
    change(stored)
    saved.write_text(json.dumps(stored))
    code, _, err = cli("calibrate", wide, "--apply", str(saved), "--out", str(out))
    assert code == 2
    assert message in err
    assert not out.exists()


def _fit(stored):
    return stored["models"]["a"]["fitted"]


def test_few_items_and_counts_as_features(cli, long_labels):
    wide, long = long_labels / "wide.csv", long_labels / "long.csv"
    long.write_text("\n".join(long.read_text().splitlines()[:7]) + "\n")
    saved = str(long_labels / "map.json")
    code, said, _ = cli(
        "calibrate", str(wide), "--votes", str(long), "--method", "temperature", "--save", saved,
        "--classes", "no,yes",
    )  # fmt: skip
    assert code == 0
    assert "few-labels: a is calibrated by 2 items" in " ".join(said.split())


@pytest.fixture
def too_sure(write):
    """Labels are draws of a distribution that the classifier squares: alpha0 cannot mend that."""
    rng = np.random.default_rng(4)
    q = rng.dirichlet(np.ones(3), 600)
    p = (q**2 / (q**2).sum(axis=1, keepdims=True)).round(6)
    counts = rng.multinomial(4, q)
    columns = {f"p__net__{k}": p[:, k].tolist() for k in range(3)}
    return write(columns | {f"h__{k}": counts[:, k].tolist() for k in range(3)})


def test_a_calibration_that_makes_things_worse_is_not_written(cli, answer, too_sure, tmp_path):
    saved, page, out = (tmp_path / name for name in ("m.json", "page.html", "out.csv"))
    options = ("calibrate", too_sure, "--method", "alpha", "--save", saved, "--out", out)
    code, said, err = cli(*options, "--html", page)
    assert code == 2
    assert "makes net worse" in err
    assert "--even-if-worse" in err
    assert (page.exists(), saved.exists(), out.exists()) == (True, False, False)
    assert "contradicted" in page.read_text("utf-8")
    assert "net is worse after the calibration" in " ".join(said.split())
    (entry,) = answer("calibrate", too_sure, "--method", "alpha")["calibrations"]
    change = entry["change"]
    gain = entry["before"]["L_disagreement"] - entry["after"]["L_disagreement"]
    assert (entry["status"], change["loss"]) == ("contradicted", "L_disagreement")
    assert change["difference"] == pytest.approx(-gain, rel=1e-9)
    assert change["difference"] > 1.645 * change["standard_error"] > 0
    assert change["beyond_chance"]
    assert cli(*options, "--even-if-worse")[0] == 0
    assert out.exists()
    assert Recalibration.load(saved).worse == ("net",)


def test_what_makes_things_better_is_written(cli, answer, too_sure, tmp_path):
    """The probabilities first, as the warning says; then alpha has nothing left to make worse."""
    softer, saved = tmp_path / "softer.csv", tmp_path / "m.json"
    assert cli("calibrate", too_sure, "--method", "temperature", "--out", softer)[0] == 0
    (entry,) = answer("calibrate", too_sure, "--method", "temperature")["calibrations"]
    change = entry["change"]
    assert (entry["status"], change["loss"]) == ("ok", "L")
    gain = entry["before"]["L"] - entry["after"]["L"]
    assert change["difference"] == pytest.approx(-gain, rel=1e-9)
    assert change["difference"] < -3 * change["standard_error"]
    assert cli("calibrate", softer, "--method", "alpha", "--save", saved)[0] == 0
