"""Statistics of n labels, diagrams, assessments and bad input of label histograms."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from reference_histograms_naive import (
    DISAGREEMENT_KEYS,
    KEYS,
    disjoint_product,
    draw_many,
    evaluate,
    expected_statistic,
    some_items,
    squared_bins,
    subset_loss,
    u_statistic,
    z_score,
)

import fewlabels as fl


@pytest.fixture(scope="module")
def annotations():
    return pytest.importorskip("fewlabels.annotations")


# ---------------------------------------------------------------- statistics of n labels


def phis(annotations):
    """(statistic, the same function of one row of counts, order)."""
    ours = annotations.Statistic(
        2, lambda counts: np.where(counts[:, 0] == 1, 1.0, 0.25), "one_first"
    )
    return [
        (annotations.DISAGREEMENT, lambda c: float(c.max() < 2), 2),
        (annotations.unanimity(3), lambda c: float(c.max() == 3), 3),
        (annotations.unanimity(2), lambda c: float(c.max() == 2), 2),
        (annotations.majority_strength(3), lambda c: c.max() / 3, 3),
        (ours, lambda c: 1.0 if c[0] == 1 else 0.25, 2),
    ]


def test_observed_statistics(annotations, rng):
    y, _ = some_items(rng, N=25, K=3)
    for statistic, phi, order in phis(annotations):
        expected = [u_statistic(phi, order, row) for row in y]
        np.testing.assert_allclose(statistic.observed(y), expected, atol=1e-12)


@pytest.mark.parametrize("alpha0", [None, 0.3, 20.0])
def test_expected_statistics(annotations, rng, alpha0):
    p = np.vstack([rng.dirichlet(np.ones(3), 6), [[0, 0.4, 0.6]], [[0, 0, 1]]])
    concentration = None if alpha0 is None else np.full(len(p), alpha0)
    for statistic, phi, order in phis(annotations):
        expected = [expected_statistic(phi, order, row, alpha0) for row in p]
        found = statistic.expected(p, concentration)
        np.testing.assert_allclose(found, expected, atol=1e-10)


def test_observed_statistics_are_unbiased(annotations, rng):
    q, reps = rng.dirichlet(np.ones(3), 5), 2000
    y = draw_many(rng, q, np.array([3, 4, 5, 6, 8]), reps)
    for statistic, phi, order in phis(annotations):
        truth = np.array([expected_statistic(phi, order, row) for row in q])
        values = statistic.observed(y.reshape(-1, 3)).reshape(reps, 5)
        assert np.abs(z_score(values, truth)).max() < 4
        plugin = statistic.expected(y.reshape(-1, 3) / y.sum(2).reshape(-1, 1)).reshape(reps, 5)
        if order == 3:  # the plugin, E phi under mu, is biased: the test can fail
            assert np.abs(z_score(plugin, truth)).max() > 10


@pytest.mark.parametrize("weighted", [False, True])
def test_losses_of_statistics(annotations, rng, weighted):
    y, _ = some_items(rng, N=40, K=3, sizes=(1, 9))
    w, predicted = rng.gamma(2, size=40) if weighted else np.ones(40), rng.random(40)
    n = y.sum(axis=1)
    for statistic, phi, order in phis(annotations):
        found = annotations.evaluate_statistic(
            statistic, y, predicted, weight=w if weighted else None
        )
        used, twice = n >= order, n >= 2 * order
        loss = [subset_loss(phi, order, *item) for item in zip(y[used], predicted[used],
                strict=True)]  # fmt: skip
        assert found["L"] == pytest.approx(np.average(loss, weights=w[used]))
        observed = np.array([u_statistic(phi, order, row) for row in y[used]])
        plugin, debiased = squared_bins(observed, predicted[used], w[used])
        assert found["CL_plugin"] == pytest.approx(plugin)
        assert found["CL"] == pytest.approx(debiased, abs=1e-12)
        assert found["CE"] == pytest.approx(math.sqrt(max(debiased, 0)), abs=1e-8)
        assert found["n_items"] == used.sum()
        el = [disjoint_product(phi, order, *item) for item in zip(y[twice], predicted[twice],
              strict=True)]  # fmt: skip
        assert found["EL"] == pytest.approx(np.average(el, weights=w[twice])), statistic.name
    same = annotations.evaluate(y, np.full((40, 3), 1 / 3), disagreement=predicted)
    other = annotations.evaluate_statistic(annotations.DISAGREEMENT, y, predicted)
    for key in ("L", "CL", "CE"):
        assert same[f"{key}_disagreement"] == pytest.approx(other[key])


def test_el_of_a_statistic_is_unbiased_or_undefined(annotations, rng):
    q, predicted = rng.dirichlet(np.ones(3), 8), rng.random(8)
    phi = annotations.unanimity(2)
    truth = (((q**2).sum(axis=1) - predicted) ** 2).mean()
    draws = [
        annotations.evaluate_statistic(phi, rng.multinomial(np.full(8, 5), q), predicted)["EL"]
        for _ in range(1000)
    ]
    assert abs(z_score(draws, truth)) < 4
    short = annotations.evaluate_statistic(phi, rng.multinomial(np.full(8, 3), q), predicted)
    assert math.isnan(short["EL"])
    assert math.isfinite(short["L"])


# ---------------------------------------------------------------- diagrams


def test_diagrams_add_up(annotations, rng):
    y, z = some_items(rng, N=120)
    d, w = rng.random(120), rng.gamma(2, size=120)
    whole = annotations.evaluate(y, z, disagreement=d, weight=w)
    rows = annotations.reliability(y, z, weight=w)
    gaps = [r["share"] * (r["mean_probability"] - r["label_frequency"]) ** 2 for r in rows]
    assert sum(gaps) == pytest.approx(whole["CL_plugin"])
    for k in range(4):
        mine = [r for r in rows if r["class"] == k]
        assert sum(r["share"] for r in mine) == pytest.approx(1)
        assert sum(r["n_items"] for r in mine) == 120
        assert [r["bin"] for r in mine] == sorted({r["bin"] for r in mine})
    for r in rows:
        assert r["low"] <= r["mean_probability"] <= r["high"]
        assert 0 <= r["frequency_low"] <= r["label_frequency"] <= r["frequency_high"] <= 1
    dispersion = annotations.dispersion_map(y, z, weight=w)
    for key in ("EL_plugin", "CL_plugin", "DL_plugin", "CL"):
        assert sum(r[key] for r in dispersion) == pytest.approx(whole[key], abs=1e-12), key
    rows = annotations.disagreement_reliability(y, d, weight=w)
    assert all("class" not in r for r in rows)
    gaps = [r["share"] * (r["mean_probability"] - r["label_frequency"]) ** 2 for r in rows]
    assert sum(gaps) == pytest.approx(whole["CL_disagreement_plugin"])


def test_dispersion_of_items_with_two_labels(annotations, rng):
    y, z = some_items(rng, N=120, sizes=(2, 6))
    whole, rows = annotations.evaluate(y, z), annotations.dispersion_map(y, z)
    for key in ("EL", "DL"):
        assert sum(r[key] for r in rows) == pytest.approx(whole[key], abs=1e-12), key


# ---------------------------------------------------------------- assess


def mixed_predictions(rng, N=120):
    """Two classifiers, the second silent on some items; histograms, single labels, or nothing."""
    y, z = some_items(rng, N, 3)
    p = np.stack([z, rng.dirichlet(np.ones(3), N)], axis=1)
    p[:5, 1] = np.nan
    labels = np.full(N, -1)
    y[:40] = 0
    labels[:20] = rng.integers(3, size=20)
    counted = y.copy()
    counted[np.arange(20), labels[:20]] = 1
    sex = np.array(["f", "m"])[rng.integers(2, size=N)]
    predictions = fl.Predictions(p, labels, histogram=y, groups={"sex": sex}, models=["a", "b"])
    return predictions, counted, p, sex


def test_assessment_is_evaluate_by_model_and_group(annotations, rng):
    predictions, y, p, sex = mixed_predictions(rng)
    found = annotations.assess(predictions, by="sex", statistics=(annotations.unanimity(3),))
    for m, model in enumerate(("a", "b")):
        for group in (None, "sex=f", "sex=m"):
            rows = np.full(len(y), True) if group is None else sex == group[-1]
            expected = evaluate(y[rows], p[rows, m])
            for key in KEYS:
                row = found.get(model, key, group)
                assert row.value == pytest.approx(expected[key], abs=1e-10), (model, key, group)
                assert row.low <= row.value <= row.high
                assert row.status == "ok"
    seen = {row.metric for row in found.rows}
    assert {*KEYS, "L_unanimity_3", "CL_unanimity_3"} <= seen
    enough = (y.sum(axis=1) >= 3) & np.isfinite(p[:, 1, 0])
    expected = annotations.evaluate_statistic(
        annotations.unanimity(3), y[enough], (p[enough, 1] ** 3).sum(axis=1)
    )
    assert found.get("b", "L_unanimity_3").value == pytest.approx(expected["L"])


def test_assessment_as_json(annotations, rng):
    predictions, y, _, _ = mixed_predictions(rng)
    made = annotations.assess(predictions, by="sex").to_dict()
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    assert made["method"] == "label-histograms"
    assert (made["n_items"], made["n_annotated"], made["n_labels"]) == (120, 100, y.sum())
    assert made["n_labeled"] == 20
    sizes = y.sum(axis=1)
    for n in range(1, 7):
        assert made["labels_per_item"].get(str(n), 0) == (sizes == n).sum()
    assert made["models"] == ["a", "b"]
    assert {row["group"] for row in made["estimates"]} == {None, "sex=f", "sex=m"}
    keys = {"model", "metric", "group", "value", "low", "high", "confidence_level", "status"}
    assert set(made["estimates"][0]) == keys
    for part in ("reliability", "disagreement_reliability", "dispersion"):
        assert {row["model"] for row in made[part]} == {"a", "b"}


def test_assessment_does_not_depend_on_workers(annotations, rng):
    predictions = mixed_predictions(rng)[0]
    one, two = (annotations.assess(predictions, by="sex", workers=n).to_dict() for n in (1, 2))
    assert one == two


def test_assessment_of_single_labels_says_what_is_undefined(annotations, rng):
    N = 60
    labels = rng.integers(3, size=N)
    predictions = fl.Predictions(rng.dirichlet(np.ones(3), N)[:, None], labels, models=["a"])
    found = annotations.assess(predictions).to_dict()
    rows = {row["metric"]: row for row in found["estimates"]}
    for key in ("EL", "DL", *DISAGREEMENT_KEYS):
        assert rows[key]["status"] == "undefined", key
        assert rows[key]["value"] is None
    assert rows["L"]["status"] == "ok"
    assert any("label" in text and "two" in text for text in found["warnings"]), found["warnings"]


def test_assessment_of_few_items(annotations, rng):
    y, z = some_items(rng, N=12, K=3, sizes=(3, 6))
    predictions = fl.Predictions(z[:, None], histogram=y, models=["a"])
    found = annotations.assess(predictions)
    assert {row.status for row in found.rows} == {"few-labels"}
    assert found.get("a", "L").value == pytest.approx(annotations.evaluate(y, z)["L"])


# ---------------------------------------------------------------- bad input
