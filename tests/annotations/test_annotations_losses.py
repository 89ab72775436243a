"""Losses of label histograms: closed forms, invariances, edge rules, bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.annotations import METRICS, evaluate
from fewlabels.errors import InputError, UsageError
from fewlabels.kernels.blocks import using_workers


def world(n, k=3, seed=0, most=5):
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.ones(k), n)
    z = q**2 / (q**2).sum(axis=1, keepdims=True)
    return rng.multinomial(rng.integers(0, most + 1, n), q), z


def assert_close(a, b, names=METRICS):
    for name in names:
        assert a[name] == pytest.approx(b[name], rel=1e-10, abs=1e-12, nan_ok=True), name


def test_weight_has_no_unit_and_equal_weights_are_none():
    y, z = world(100)
    w = np.random.default_rng(2).random(100)
    assert_close(evaluate(y, z, weight=w), evaluate(y, z, weight=1e-9 * w))
    assert_close(evaluate(y, z), evaluate(y, z, weight=np.full(100, 7.0)))
    nearly = np.ones(100)
    nearly[0] += 1e-9  # takes the weighted road
    a, b = evaluate(y, z), evaluate(y, z, weight=nearly)
    assert all(a[name] == pytest.approx(b[name], abs=1e-8) for name in METRICS)


def test_weighted_debiased_losses_are_unbiased():
    rng, found = np.random.default_rng(3), []
    for _ in range(300):
        p = rng.random(60)
        y = rng.binomial(2, p)
        w = rng.choice([0.2, 1.0, 3.0], 60)
        z = np.stack([p, 1 - p], axis=1)
        found.append(evaluate(np.stack([y, 2 - y], axis=1), z, weight=w, bins=4))
    for name in ("EL", "CL", "CL_disagreement"):
        values = np.array([f[name] for f in found])
        assert abs(values.mean()) < 4 * values.std() / math.sqrt(len(values)) + 2e-4, name
    plugin = np.mean([f["CL_plugin"] for f in found])
    assert plugin > 0.015


def test_workers_and_blocks_do_not_change_the_answer():
    y, z = world(60_000, k=10)
    with using_workers(1):
        one = evaluate(y, z, confidence_level=0.9)
    with using_workers(3):
        assert evaluate(y, z, confidence_level=0.9) == one


def test_items_without_labels_or_predictions_are_left_out():
    y, z = world(100)
    labeled = y.any(axis=1)
    base = evaluate(y[labeled], z[labeled])
    assert_close(evaluate(y, z), base)
    more = np.vstack([z, np.full((5, 3), np.nan)])
    found = evaluate(np.vstack([y, np.full((5, 3), 2)]), more)
    assert_close(found, base)
    assert found["n_annotated"] == found["n_items"] + 5
    pair = 1 - (z**2).sum(axis=1)
    assert_close(evaluate(y, z, disagreement=pair), evaluate(y, z))
    pair[3] = np.nan
    others = np.arange(100) != 3
    expected = evaluate(y[others], z[others])["L_disagreement"]
    assert evaluate(y, z, disagreement=pair)["L_disagreement"] == pytest.approx(expected)


def test_number_types_agree():
    y, z = world(100)
    base = evaluate(y, z)
    assert_close(evaluate(y.tolist(), z.tolist()), base)
    single = evaluate(y, z.astype(np.float32))
    assert single["L"] == pytest.approx(base["L"], abs=1e-6)
    off = z * 1.0005  # rounded on its way here: renormalised
    assert_close(evaluate(y, off), base)


GOOD = ([[1, 1], [2, 0]], [[0.5, 0.5], [0.9, 0.1]])
BAD = [
    (([[1, -1], [2, 0]], GOOD[1]), {}, r"counts.*-1 for item 0"),
    (([[1, 1], [0.5, 0]], GOOD[1]), {}, r"counts.*0\.5 for item 1.*multiply shares"),
    (([[1, 1], [math.nan, 0]], GOOD[1]), {}, r"counts.*nan for item 1.*write 0"),
    (([[1, 1], [math.inf, 0]], GOOD[1]), {}, r"counts.*inf for item 1"),
    (([[1, 1, 0], [2, 0, 0]], GOOD[1]), {}, r"shape \(2, 3\) of `histogram`; got \(2, 2\)"),
    (([[0, 0], [0, 0]], GOOD[1]), {}, "no item has both a label and a prediction"),
    ((GOOD[0], [[math.nan] * 2] * 2), {}, "no item has both a label and a prediction"),
    (([[1], [2]], [[1.0], [1.0]]), {}, "column per class"),
    (([1, 2], GOOD[1]), {}, r"`histogram` must have the shape \(items, classes\)"),
    ((np.zeros((0, 2)), np.zeros((0, 2))), {}, "no rows"),
    (([["a", "b"]], [[0.5, 0.5]]), {}, "must be numbers"),
    ((GOOD[0], [[0.5, 0.5], [90, 10]]), {}, r"between 0 and 1; got 90 for item 1"),
    ((GOOD[0], [[0.5, 0.5], [0.5, 0.2]]), {}, r"sum to 1.*0\.7 for item 1"),
    ((GOOD[0], [[0.5, 0.5], [math.nan, 0.2]]), {}, "NaN in part of a row: item 1"),
    (GOOD, {"disagreement": [0.5]}, "`disagreement` must have 2 entries"),
    (GOOD, {"disagreement": [0.5, 1.5]}, r"`disagreement`.*1\.5 for item 1"),
    (GOOD, {"weight": [1.0, -1.0]}, "negative"),
    (GOOD, {"weight": [0.0, 0.0]}, "zero for every item"),
]


@pytest.mark.parametrize(("arrays", "options", "message"), BAD)
def test_bad_input(arrays, options, message):
    with pytest.raises(InputError, match=message) as caught:
        evaluate(*arrays, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"bins": 0},
        {"bins": 2.5},
        {"variance": "both"},
        {"compat": "old"},
        {"compat": "lh_calib", "weight": [1, 2]},
        {"confidence_level": 95},
        {"random_state": -1},
    ],
)
def test_bad_arguments(options):
    with pytest.raises(UsageError):
        evaluate(*GOOD, **options)


def test_the_item_is_named_in_a_later_block():
    y, z = world(100_000, k=3)
    y = y.astype(float)
    y[90_001, 1] = 0.5
    with pytest.raises(InputError, match="item 90001"):
        evaluate(y, z)
    z[80_001] = [0.5, 0.4, 0.3]
    with pytest.raises(InputError, match="item 80001"):
        evaluate(np.ones_like(z), z)


def test_room_loads_on_first_use():
    assert "annotations" in fl.__all__
    assert fl.annotations.METRICS == METRICS
