"""Estimates for other programs: Markdown, JUnit, flat numbers, model cards, MLflow."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.errors import UsageError
from fewlabels.report.markdown import Case, render_junit


@pytest.fixture(scope="module")
def estimates():
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=100)
    p = np.clip(truth[:, None] * 0.6 + 0.2 + rng.normal(0, 0.2, (100, 2)), 0.01, 0.99)
    labels = np.where(np.arange(100) < 40, truth, -1)
    groups = {"site": np.where(np.arange(100) % 2, "a|b", "c")}
    predictions = fl.Predictions(p, labels, models=["net|1", "b"], groups=groups)
    return fl.estimate(predictions, "labeled", ["accuracy", "roc_auc"], by="site")


def test_markdown(estimates):
    text = estimates.to_markdown()
    lines = text.splitlines()
    assert lines[0] == "**fewlabels**: 100 items, 40 labeled"
    table = [line for line in lines if line.startswith("|")]
    assert table[0] == r"| | accuracy | roc\_auc |"
    assert {line.replace(r"\|", "").count("|") for line in table} == {4}
    row = estimates.get("b", "accuracy")
    assert f"{row.value:.3f} [{row.low:.3f}, {row.high:.3f}]" in text
    assert r"**site=a\|b**" in text


def test_flat_numbers(estimates):
    flat = estimates.to_dict(flat=True)
    assert all(isinstance(value, float) for value in flat.values())
    row = estimates.get("net|1", "accuracy")
    assert (flat["net_1/accuracy"], flat["net_1/accuracy_low"]) == (row.value, row.low)
    assert flat["b/roc_auc/site_c_high"] == estimates.get("b", "roc_auc", "site=c").high
    assert flat["n_labeled"] == 40


def test_model_index(estimates):
    index = estimates.to_model_index("b", "reviews")["model-index"]
    metric = index[0]["results"][0]["metrics"][0]
    row = estimates.get("b", "accuracy")
    assert (metric["type"], metric["value"]) == ("accuracy", row.value)
    assert metric["args"]["low"] == row.low
    assert index[0]["results"][0]["dataset"]["name"] == "reviews"
    with pytest.raises(UsageError, match="unknown model 'c'"):
        estimates.to_model_index("c", "reviews")


def test_junit():
    cases = [Case("a", "accuracy>=0.9", None), Case('b"<', "ece<0.1", "not met: 1 < 2 & \x07")]
    root = ET.fromstring(render_junit(cases))
    assert root.attrib == {"tests": "2", "failures": "1"}
    first, second = root.iter("testcase")
    assert len(first) == 0
    assert second.attrib["classname"] == 'b"<'
    assert second[0].text == "not met: 1 < 2 & \\x07"


def test_mlflow(estimates, monkeypatch):
    said = {}
    fake = SimpleNamespace(
        log_metrics=lambda metrics: said.update(metrics=metrics),
        log_dict=lambda value, path: said.update({path: value}),
        log_text=lambda text, path: said.update({path: text}),
    )
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    estimates.to_mlflow()
    assert said["metrics"] == estimates.to_dict(flat=True)
    assert said["fewlabels/estimates.json"] == estimates.to_dict()
    assert said["fewlabels/report.html"].startswith("<!")
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(UsageError, match="`to_mlflow` needs MLflow: pip install mlflow-skinny"):
        estimates.to_mlflow()
