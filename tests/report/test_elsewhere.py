"""Estimates for other programs: Markdown, JUnit, flat numbers, model cards, MLflow."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import numpy as np
import pytest
from markdown_it import MarkdownIt

import fewlabels as fl
from fewlabels.errors import UsageError
from fewlabels.report.markdown import Case, render_junit, render_markdown

FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What no document of XML 1.0 may hold."""


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
    assert table[0] == "| | accuracy | roc_auc |"
    assert {line.replace(r"\|", "").count("|") for line in table} == {4}
    row = estimates.get("b", "accuracy")
    assert f"{row.value:.3f} [{row.low:.3f}, {row.high:.3f}]" in text
    assert r"**site=a\|b**" in text


LIVE = [
    "@octocat", "#12", "owner/repo#12", "GH-7", "!5", "%3", "~bug", "$9", "octocat@corp.example",
    "https://evil.example/x", "www.evil.example", "<img src=x>", "[a](javascript:x)", "&lt;b&gt;",
    "a\\|b", "`@x`", "0123456789abcdef0123456789abcdef01234567", "**x**", "<!-- ",
]  # fmt: skip
"""Names that a host of Markdown would link, or that are markup."""

# Links as GitHub and GitLab find them in the text that a page shows.
FOUND = re.compile(
    r"@[A-Za-z0-9]|#\d|GH-\d|(?<!\w)[!%$]\d|~\w|https?://\w|www\.\w|\b[0-9a-f]{40}\b"
)


def test_no_name_is_live_in_markdown():
    names = [f"{name} {k}" for k, name in enumerate(LIVE)]
    report = {
        "n_items": 9, "n_labeled": 3, "models": names, "method": "labeled", "fewlabels": "1",
        "confidence_level": 0.95, "estimand": "population", "groups": [], "against": "class",
        "estimates": [
            {"model": name, "metric": "accuracy", "group": group, "value": 0.5, "low": 0.4,
             "high": 0.6, "confidence_level": 0.95, "status": "ok"}
            for group in (None, f"site={LIVE[0]}") for name in names
        ],
        "metric_info": {"accuracy": {"direction": 1}}, "warnings": [f"seen: {n}" for n in names],
    }  # fmt: skip
    tokens = MarkdownIt().enable("table").parse(render_markdown(report))
    inline = [child for token in tokens for child in token.children or []]
    kinds = {child.type for child in inline}
    assert kinds <= {"text", "text_special", "strong_open", "strong_close", "softbreak"}
    assert not [token for token in tokens if token.type == "html_block"]
    texts = ["".join(c.content for c in token.children or []) for token in tokens]
    assert [found for text in texts for found in FOUND.findall(text)] == []
    shown = [text.replace("\u200b", "") for text in texts]
    assert [name for name in names if name not in shown] == []


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


@pytest.mark.parametrize(
    "odd", ["\ufffe", "\uffff", "\ud800", "\x00", "\x1b", "\x7f", "\U0001fffe"]
)
def test_junit_of_what_xml_forbids(odd):
    case = Case(f"m{odd}", f"m{odd}:accuracy>=0.9", f"not met: model 'm{odd}' ]]>")
    text = render_junit([case])
    assert not FORBIDDEN.search(text)
    (found,) = ET.fromstring(text).iter("testcase")
    escape = odd.encode("unicode_escape", "surrogatepass").decode()
    assert found.attrib["classname"] == f"m{escape}"
    assert found[0].text == f"not met: model 'm{escape}' ]]>"


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
