"""Calibrations as text and as pages."""

from __future__ import annotations

import copy

from annotations_samples import alpha, matrix, temperature, unchecked
from test_report_html import Page

from fewlabels.report.calibration import (
    render_calibration,
    render_calibration_html,
)


def test_text_has_the_losses_before_and_after() -> None:
    report = temperature()
    entry = report["calibrations"][0]
    row = next(line for line in render_calibration(report).split("\n") if line.startswith("  net"))
    losses = [entry[when][loss] for loss in ("EL", "CL", "CE") for when in ("before", "after")]
    fitted, shown = f"{entry['temperature']:.3g}", [f"{loss:.3f}" for loss in losses]
    assert row.split()[1:] == ["temperature", fitted, *shown]


def test_the_answer_names_the_one_that_gains_the_most() -> None:
    report = copy.deepcopy(alpha())
    for number, entry in enumerate(report["calibrations"]):
        entry["after"]["L_disagreement"] = entry["before"]["L_disagreement"] - 0.01 * number
    gains = {
        e["model"]: e["before"]["L_disagreement"] - e["after"]["L_disagreement"]
        for e in report["calibrations"]
    }
    most = max(gains, key=gains.__getitem__)
    entry = next(e for e in report["calibrations"] if e["model"] == most)
    words = Page(render_calibration_html(report)).words
    better = sum(gain > 0 for gain in gains.values())
    assert f"of {better} of 2 classifiers, the most that of {most} : from" in words.replace(
        f"{most}:", f"{most} :"
    )
    assert f"{entry['after']['L_disagreement']:.3f}" in words
    assert "The probabilities stay as they are" in words


def test_a_calibration_that_is_worth_nothing_says_so() -> None:
    worse = copy.deepcopy(matrix())
    for entry in worse["calibrations"]:
        entry["after"]["EL"] = entry["before"]["EL"] + 1
    words = Page(render_calibration_html(worse)).words
    assert "of none of the 2 classifiers: they are better left as they are" in words
    alone = copy.deepcopy(temperature())
    alone["calibrations"][0]["after"]["EL"] = 1.0
    assert "does not lower" in Page(render_calibration_html(alone)).words
    assert "too few labels to say" in Page(render_calibration_html(unchecked())).words
    assert "not-converged" in Page(render_calibration_html(unchecked())).words
