from __future__ import annotations

import re

import click
import numpy as np
from report_samples import render_text, two_classes

import fewlabels as fl
from fewlabels.report.words import styled


def test_two_metrics_unless_others_were_asked_for() -> None:
    asked = [render_text(two_classes() | more) for more in ({}, {"asked": []}, {"asked": ["auc"]})]
    every = ["accuracy", "ece", "auc", "log_loss"]
    for text, wanted in zip(asked, (every, every[:2], every[:3]), strict=True):
        lines = text.split("\n")
        assert [name for name in every if name in lines] == wanted
        assert [name for name in every if f"{name}, sex=male" in lines] == wanted
        left = [name for name in every if name not in wanted]
        assert (f"`--metrics {','.join(left)}`" in " ".join(text.split())) == bool(left)


def test_colour_only_where_it_is_asked_for() -> None:
    report = two_classes() | {"warnings": ["assumption: one"]}
    report["estimates"][0]["status"] = "few-labels"
    plain = render_text(report, 120)
    assert "\x1b" not in plain
    with styled():
        coloured = render_text(report, 120)
    assert click.unstyle(coloured) == plain
    assert "\x1b[33m! assumption: one. What to do:" in coloured
    assert "\x1b[33mfew-labels" in coloured


def test_groups_come_after_all_items_under_a_heading_each() -> None:
    report = two_classes()
    report["estimates"].reverse()
    lines = render_text(report).split("\n")
    groups = [line.partition(", ")[2] for line in lines if re.match(r"\w+, sex=\w+$", line)]
    assert list(dict.fromkeys(groups)) == ["sex=null", "sex=male", "sex=female"]
    assert groups == sorted(groups, key=["sex=null", "sex=male", "sex=female"].index)
    assert lines.index("accuracy") < lines.index("log_loss, sex=null")


def test_without_intervals() -> None:
    """Estimates without a confidence level are printed without brackets."""
    rng = np.random.default_rng(0)
    truth = rng.random(300) < 0.5
    p = 1 / (1 + np.exp(-rng.normal(2 * truth - 1, 1)))
    labels = np.where(np.arange(300) < 60, truth, -1)
    given = fl.Predictions(np.c_[p, p**2], labels)
    found = fl.estimate(given, metrics="accuracy", confidence_level=None)
    assert "no intervals" in found.summary()
    assert "[" not in found.summary()
    assert "None" not in found._repr_html_()
