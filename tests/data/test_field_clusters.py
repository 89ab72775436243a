"""Files of others whose rows are fewer items: what is told, and intervals in clusters."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import fewlabels as fl

ROOT = Path(__file__).resolve().parents[3]
CASES = Path(os.environ.get("FEWLABELS_DATA", ROOT / "shared" / "data")) / "field_cases"
STABILITY = {"label": "label1", "hard": {"again": "label2"}}
RADIOLOGY = {"label": "truth", "score": {"rating": "rating"}}

pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="no field cases")


def row(
    name: str, columns: dict, metric: str, cluster: object, method: str = "auto"
) -> fl.Estimate:
    items = fl.read_predictions(CASES / name, columns=columns, cluster=cluster)
    assert any("say --cluster" in note for note in items.notes) == (cluster is None)
    return fl.estimate(items, method, metric).rows[0]


@pytest.mark.parametrize("method", ["auto", "labeled"])
def test_people_who_answer_the_same_questions(method: str) -> None:
    given = ("x01_intra_annotator.csv", STABILITY, "error_rate")
    apart, both = (row(*given, c, method) for c in (None, ["row", "annotator"]))
    assert (apart.low, apart.high) == pytest.approx((0.189, 0.245), abs=0.006)
    # By the product of weights of 40 questions and 22 people; Student's where these are few.
    assert (both.low, both.high) == pytest.approx((0.165, 0.277), abs=0.01)
    assert row(*given, "row", method).high < both.high


def test_readers_and_cases() -> None:
    given = ("k10_mrmc.csv", RADIOLOGY, "roc_auc")
    apart, of_cases, both = (row(*given, c) for c in (None, "case", ["case", "reader"]))
    assert 1.2 < (both.high - both.low) / (apart.high - apart.low) < 2.5
    assert of_cases.high - of_cases.low < both.high - both.low
    assert both.low < apart.value < both.high
