"""The benchmark of reference data: what is expected under a map, the ways, and the table."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import fewlabels as fl
import reference as recipe


def made(n: int, seed: int, bias: float = 0.0) -> fl.Predictions:
    """Two classifiers; their log odds are right but for the bias."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1)) * 2 + rng.normal(size=(n, 2)) * [0.1, 1.0]
    labels = rng.random(n) < 1 / (1 + np.exp(-x[:, 0]))
    return fl.Predictions(1 / (1 + np.exp(-x - bias)), labels.astype(int), models=["a", "b"])


def test_expected_metrics_are_those_of_many_drawn_labels() -> None:
    rng = np.random.default_rng(0)
    p, called = rng.beta(0.6, 1.2, 60), rng.random(60) < 0.4
    scores = np.round(p + rng.normal(0, 0.3, 60), 1)  # with ties
    accuracy, area = recipe.expected_metrics(p, called, scores)
    drawn = rng.random((4000, 60)) < p
    positives = drawn.sum(axis=1)
    pairs = positives * (60 - positives)
    above = (np.sign(scores[:, None] - scores) + 1) / 2
    right = ((drawn @ above) * ~drawn).sum(axis=1)
    assert accuracy == pytest.approx((drawn == called).mean(), abs=0.004)
    # The expected area is that of pairs, over all labels at once.
    assert area == pytest.approx(right.sum() / pairs.sum(), abs=0.004)


def test_a_reference_alone_is_right_where_its_map_holds_and_only_there() -> None:
    target = made(20_000, 0)
    truth = recipe.truth_of(target, recipe.METRICS)
    given = target.take(np.arange(1_500))
    same, other = (recipe.reference_only(given, made(1_000, 1, b), 0) for b in (0.0, 2.0))
    assert np.abs(same.value - truth).max() < 0.04
    assert ((same.low <= truth) & (truth <= same.high)).mean() >= 0.75
    assert np.abs(other.value - truth)[:, 0].max() > 0.05
    assert not ((other.low <= truth) & (truth <= other.high))[:, 0].any()


@pytest.mark.slow
def test_rows_of_a_pair() -> None:
    pair = recipe.Pair("made", made(3_000, 2), made(500, 3))
    rows = recipe.judged(pair, 1, sizes=(0, 20))
    assert {(r["n_labeled"], r["way"]) for r in rows} == {
        (n, way) for n in (0, 20) for way in recipe.WAYS if (n, way) != (0, "labels only")
    }
    for row in rows:
        assert row["error"] >= 0
        assert 0 <= row["coverage"] <= 1
        assert row["width"] > 0
        assert row["runs"] == 1
    # The same items and seed again.
    again = recipe.judged(pair, 1, ["reference only"], sizes=(0, 20))
    assert again == [row for row in rows if row["way"] == "reference only"]


def test_the_table_has_a_line_per_pair_and_size() -> None:
    row = {"pair": "A by B", "way": "without", "metric": "accuracy", "n_labeled": 20}
    row |= {"error": 0.0123, "error_se": 0.001, "coverage": 0.95, "width": 0.2, "runs": 20}
    rows = [row, {**row, "way": "labels only", "error": None, "coverage": None, "width": None}]
    assert "| A by B | 20 | - | 1.2, 95%, 20 | - | - |" in recipe.table(rows).splitlines()


def test_the_tables_of_the_page_are_those_of_the_results() -> None:
    stored = [json.loads(line) for line in recipe.RESULTS.read_text().splitlines()]
    assert recipe.blocks(stored)["results"] in recipe.PAGE.read_text(encoding="utf-8")


@pytest.mark.slow
def test_pairs_of_the_real_data_share_classes_and_classifiers(data_folder: Path) -> None:
    for file, pairs in recipe.SOURCES.items():
        if not (data_folder / file).is_file():
            continue
        for pair in pairs(data_folder):
            for side in (pair.target, pair.reference):
                assert side.n_labeled == side.n_items
                assert side.has_probabilities.all()
            assert pair.target.models == pair.reference.models
            assert pair.target.classes == pair.reference.classes
            assert pair.target.n_items >= recipe.N_UNLABELED + max(recipe.N_LABELED)
