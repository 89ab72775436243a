"""Reliability diagrams and calibration-dispersion maps."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fewlabels.annotations import (
    DISAGREEMENT,
    disagreement_reliability,
    dispersion_map,
    evaluate,
    reliability,
)


def world(n, seed=0, most=4):
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.ones(3), n)
    return rng.multinomial(rng.integers(0, most + 1, n), q), q


@pytest.mark.parametrize("weighted", [False, True])
def test_reliability_rows(weighted):
    y, z = world(300)
    w = np.random.default_rng(1).random(300) if weighted else None
    rows = reliability(y, z, weight=w, bins=10)
    labeled = y.any(axis=1)
    for row in rows:
        k = row["class"]
        inside = labeled & (z[:, k] >= row["low"]) & (z[:, k] < row["high"])
        v = np.ones(300) if w is None else w
        assert row["n_items"] == inside.sum()
        assert row["share"] == pytest.approx(v[inside].sum() / v[labeled].sum())
        mu = (y[:, k] / np.maximum(y.sum(axis=1), 1))[inside]
        assert row["label_frequency"] == pytest.approx(np.average(mu, weights=v[inside]))
        mean = np.average(z[inside, k], weights=v[inside])
        assert row["mean_probability"] == pytest.approx(mean)
        assert 0 <= row["frequency_low"] <= row["label_frequency"] <= row["frequency_high"] <= 1
        assert row["frequency_low"] < row["frequency_high"]
    for k in range(3):
        assert sum(row["share"] for row in rows if row["class"] == k) == pytest.approx(1)
    plugin = sum(r["share"] * (r["label_frequency"] - r["mean_probability"]) ** 2 for r in rows)
    assert plugin == pytest.approx(evaluate(y, z, weight=w, bins=10)["CL_plugin"])


def test_reliability_intervals_cover():
    """z = q: the frequency of a bin is its mean probability; labels of one item come together."""
    hits, total = 0, 0
    for seed in range(60):
        y, z = world(400, seed, most=6)
        for row in reliability(y, z, bins=8, confidence_level=0.9):
            if row["n_items"] >= 5:
                hits += row["frequency_low"] <= row["mean_probability"] <= row["frequency_high"]
                total += 1
    assert 0.88 < hits / total < 0.97


def test_reliability_of_unanimous_bins_has_width():
    y, z = np.tile([5, 0], (10, 1)), np.tile([0.9, 0.1], (10, 1))
    first, second = reliability(y, z)
    # Wilson's interval of 10 hits of 10, as if each item had one label.
    assert first["frequency_low"] == pytest.approx(10 / (10 + 3.8415), abs=1e-5)
    assert second["frequency_high"] == pytest.approx(1 - first["frequency_low"])
    assert first["frequency_high"] == 1.0
    without = reliability(y, z, confidence_level=None)
    assert math.isnan(without[0]["frequency_low"])


def test_disagreement_reliability():
    y, z = world(300)
    pair = 1 - (z**2).sum(axis=1)
    rows = disagreement_reliability(y, pair)
    observed = DISAGREEMENT.observed(y)
    for row in rows:
        inside = ~np.isnan(observed) & (pair >= row["low"]) & (pair < row["high"])
        assert row["n_items"] == inside.sum()
        assert row["label_frequency"] == pytest.approx(observed[inside].mean())
    plugin = sum(r["share"] * (r["label_frequency"] - r["mean_probability"]) ** 2 for r in rows)
    assert plugin == pytest.approx(evaluate(y, z)["CL_disagreement_plugin"])
    assert disagreement_reliability([[1, 0]], [0.4]) == []
    assert all(math.isnan(row["EL"]) for row in dispersion_map([[1, 0]], [[0.4, 0.6]]))
