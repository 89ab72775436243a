"""The fixtures for pytest, in a run of pytest by itself."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.errors import UsageError
from fewlabels.integrations.pytest_plugin import assert_accuracy, assert_estimate

ROOT = Path(__file__).resolve().parents[2]
VERDICTS = str(ROOT / "examples" / "verdicts.csv")

TESTS = f"""
import fewlabels as fl
import pytest

@pytest.fixture(scope="module")
def judges():
    return fl.estimate({VERDICTS!r}, metrics=["accuracy"])

def test_surely_good(judges, assert_accuracy):
    assert_accuracy(judges, ">=0.7", model="large")

def test_perhaps_good(judges, assert_accuracy):
    assert judges.get("large", "accuracy").value >= 0.8
    assert_accuracy(judges, ">=0.8", model="large")

def test_not_surely_bad(judges, assert_estimate):
    assert_estimate(judges, "large:accuracy<=0.9")

def test_others(judges):
    pass
"""


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    # By name, whether the entry point is installed or not.
    plugin = ["-p", "no:fewlabels", "-p", "fewlabels.integrations.pytest_plugin"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin,
         "-c", os.devnull, f"--rootdir={folder}", *options, str(folder)],
        capture_output=True, text=True, check=False, cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip


def test_a_run(tmp_path: Path) -> None:
    (tmp_path / "test_judges.py").write_text(TESTS, encoding="utf-8")
    done = run(tmp_path, "--junit-xml=junit.xml")
    assert "2 failed, 2 passed" in done.stdout
    row = fl.estimate(VERDICTS, metrics=["accuracy"]).get("large", "accuracy")
    found = f"{row.value:.4g} ({row.low:.4g} to {row.high:.4g})"
    failed = f"not met: large:low:accuracy>=0.8: model 'large' has {found}"
    assert f"AssertionError: {failed}" in done.stdout
    assert "_plugin.py:" not in done.stdout, "the traceback ends in the test"
    summary = done.stdout[done.stdout.index("= fewlabels =") :]
    assert f"test_surely_good: met: large:low:accuracy>=0.7: model 'large' has {found}" in summary
    assert f"test_perhaps_good: {failed}" in summary
    assert "not met: large:high:accuracy<=0.9" in summary
    assert "test_others:" not in summary
    xml = (tmp_path / "junit.xml").read_text(encoding="utf-8")
    assert xml.count('<property name="fewlabels"') == 3


def items(n_labeled: int) -> fl.Predictions:
    """Of twelve items `large` is wrong on one, `small` on three."""
    i = np.arange(400)
    truth = np.random.default_rng(0).integers(2, size=400)
    verdicts = {"large": truth ^ (i % 12 == 5), "small": truth ^ (i % 4 == 0)}
    return fl.Predictions(verdicts, np.where(i < n_labeled, truth, -1))


def test_the_interval_decides_and_not_the_value() -> None:
    few, many = items(20), items(400)
    settings = {"method": "labeled"}
    assert fl.estimate(few, "labeled", ["accuracy"]).get("large", "accuracy").value >= 0.85
    with pytest.raises(AssertionError, match=r"not met: large:low:accuracy>=0\.85: model 'large'"):
        assert_accuracy(few, ">=0.85", model="large", **settings)
    found = assert_accuracy(many, ">=0.85", model="large", **settings)
    assert found.get("large", "accuracy").low >= 0.85
    assert assert_estimate(found, "small:accuracy<0.85") is found
    with pytest.raises(AssertionError, match=r"low:accuracy>=0\.85: model 'small'"):
        assert_estimate(found, "accuracy>=0.85")


def test_what_is_not_to_be_trusted_passes_nothing() -> None:
    """The lower end of no interval is enough where the labels contradict the estimate."""
    rng = np.random.default_rng(0)
    p = np.clip(rng.beta(0.2, 0.2, size=600), 0.001, 0.999)
    wrong = fl.Predictions({"sure": p}, np.where(np.arange(600) < 100, p < 0.5, -1))
    found = fl.estimate(wrong, "ensemble", ["accuracy"])
    assert found.get("sure", "accuracy").status == "contradicted"
    assert found.get("sure", "accuracy").low > 0.5
    with pytest.raises(AssertionError, match="which is contradicted"):
        assert_accuracy(found, ">=0.1")


def test_what_is_refused() -> None:
    found = fl.estimate(items(50), metrics="accuracy")
    with pytest.raises(UsageError, match=r"the condition must be METRIC>=NUMBER .*got 'accuracy0"):
        assert_accuracy(found, "0.9")
    with pytest.raises(UsageError, match=r"accuracy is between 0 and 1, so no .* write 0.9$"):
        assert_accuracy(found, ">=90")
    with pytest.raises(UsageError, match="estimates are made already; leave out method"):
        assert_accuracy(found, ">=0.9", method="labeled")
    with pytest.raises(UsageError, match="no estimate of metric 'f1'"):
        assert_estimate(found, "f1>=0.9")


def test_it_is_light_and_an_entry_point() -> None:
    """Every run of pytest where the package is installed imports it."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for group in ("pytest11", "mlflow.model_evaluator"):
        (target,) = declared["entry-points"][group].values()
        module, _, name = target.partition(":")
        assert hasattr(import_module(module), name or "assert_accuracy")
    code = (
        "import sys, pytest\nbefore = {*sys.modules}\n"
        "import fewlabels.integrations.pytest_plugin\nprint(*({*sys.modules} - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    new = {name for name in done.stdout.split() if not name.startswith("fewlabels")}
    assert not new & {"numpy", "scipy", "click"}
    assert len(done.stdout.split()) < 12
