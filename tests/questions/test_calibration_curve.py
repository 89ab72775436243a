"""Calibration curves: against scikit-learn and values by hand; levels and coverage."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from scipy.stats import beta, binom
from sklearn.calibration import calibration_curve as curve_of_sklearn

import fewlabels as fl
from fewlabels.errors import InputError, UsageError
from fewlabels.evaluation.calibration import (
    CalibrationTest,
    LabeledBins,
    calibration_test,
    debiased_error,
    jeffreys,
)

NORMS = ("l1", "l2", "max")


def world(n=400, labeled=400, slope=1.6, seed=0, **more):
    """Probabilities that are too extreme where the slope is above 1."""
    rng = np.random.default_rng(seed)
    truth_p = rng.beta(0.7, 0.9, n)
    truth = rng.random(n) < truth_p
    p = expit(slope * logit(truth_p)).clip(1e-6, 1 - 1e-6)
    labels = np.where(np.arange(n) < labeled, truth, -1)
    return p, fl.Predictions(p[:, None], labels, models=["m"], **more)


def classes_of(n=500, k=3, labeled=500, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 0.7), n)
    truth = (rng.random((n, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    sharp = p**1.8 / (p**1.8).sum(axis=1, keepdims=True)
    return sharp, fl.Predictions(
        sharp[:, None, :], np.where(np.arange(n) < labeled, truth, -1), models=["m"]
    )


def norm_of(gap, weight, norm):
    weight = weight / weight.sum()
    return {"l1": weight @ gap, "l2": np.sqrt(weight @ gap**2), "max": gap.max()}[norm]


@pytest.mark.parametrize("bins", [4, 15])
@pytest.mark.parametrize(("binning", "strategy"), [("width", "uniform"), ("quantile", "quantile")])
def test_the_curve_of_labels_is_that_of_scikit_learn(binning, strategy, bins):
    p, predictions = world(402, 402)  # no item lies on the edge of a bin
    found = fl.calibration_curve(predictions, binning=binning, bins=bins, method="labeled")
    filled = [one for one in found.bins if one.n_items]
    observed, predicted = curve_of_sklearn(predictions.labels, p, n_bins=bins, strategy=strategy)
    np.testing.assert_allclose([one.predicted for one in filled], predicted, atol=1e-8)
    for name in ("observed", "labeled_observed"):
        np.testing.assert_allclose([getattr(one, name) for one in filled], observed, atol=1e-8)
    size = np.array([one.n_items for one in filled])
    assert size.sum() == 402
    gap = abs(observed - predicted)
    for norm in NORMS:
        found = fl.calibration_curve(
            predictions, binning=binning, bins=bins, method="labeled", norm=norm
        )
        want = norm_of(gap, size, norm)
        assert found.rows[0].value == pytest.approx(want, abs=1e-8)
        assert found.from_labels[0].value == pytest.approx(want, abs=1e-8)


@pytest.mark.parametrize("labeled", [60, 400])
def test_bins_are_those_of_all_items(labeled):
    p, predictions = world(labeled=labeled)
    found = fl.calibration_curve(predictions, binning="quantile", bins=5)
    np.testing.assert_allclose(
        [one.start for one in found.bins], np.quantile(p, np.linspace(0, 0.8, 5)), atol=1e-12
    )
    assert [one.n_items for one in found.bins] == [80] * 5
    assert sum(one.n_labeled for one in found.bins) == labeled
    assert sum(one.share for one in found.bins) == pytest.approx(1)
    assert all(one.low <= one.observed <= one.high for one in found.bins)


def test_the_error_is_that_of_an_estimate():
    _, predictions = world(labeled=60)
    found = fl.calibration_curve(predictions, random_state=3)
    assert found.get("m", "ece") == fl.estimate(predictions, metrics="ece", random_state=3).rows[0]


def test_top_label_and_classwise_of_several_classes():
    p, predictions = classes_of()
    y, top = predictions.labels, p.argmax(axis=1)
    found = fl.calibration_curve(predictions, bins=10, method="labeled")
    assert found.kind == "top-label"
    code = np.digitize(p.max(axis=1), np.linspace(0, 1, 11)[1:-1])
    gap = [abs(((y == top) - p.max(axis=1))[code == b].sum()) for b in range(10)]
    assert found.rows[0].value == pytest.approx(sum(gap) / 500, abs=1e-10)
    assert found.rows[0].metric == "ece"
    for norm in NORMS:
        found = fl.calibration_curve(
            predictions, bins=10, norm=norm, classwise=True, method="labeled"
        )
        assert list(dict.fromkeys(one.event for one in found.bins)) == ["0", "1", "2"]
        code = np.digitize(p, np.linspace(0, 1, 11)[1:-1]) + 10 * np.arange(3)
        miss = ((y[:, None] == np.arange(3)) - p).ravel()
        size = np.bincount(code.ravel(), minlength=30)
        sums = np.bincount(code.ravel(), miss, minlength=30)
        some = size > 0
        want = norm_of(abs(sums[some] / size[some]), size[some], norm)
        assert found.rows[0].value == pytest.approx(want, abs=1e-10)
        assert found.rows[0].metric == "classwise_ece" + {"l1": ""}.get(norm, f"_{norm}")
    assert fl.calibration_curve(world()[1], classwise=True).kind == "positive"


def test_debiased_by_hand():
    """Two bins: 3 of 5 come true at a mean of .5, 1 of 4 at .4."""
    share, s, y, n = np.array([5.0, 4]), np.array([0.5, 0.4]), np.array([0.6, 0.25]), [5, 4]
    v = np.array([0.6 * 0.4 / 4, 0.25 * 0.75 / 3])
    got = {norm: debiased_error(LabeledBins(share, s, y, np.array(n)), norm) for norm in NORMS}
    assert got["l2"] == 0.0  # noise alone explains the gaps
    assert (5 / 9 * (0.01 - v[0]) + 4 / 9 * (0.0225 - v[1])) < 0
    drawn = abs(np.random.default_rng(0).normal(s - y, np.sqrt(v), (2_000_000, 2)))
    plain = abs(s - y)
    l1 = 2 * (share @ plain) / 9 - (drawn @ share / 9).mean()
    assert got["l1"] == pytest.approx(max(l1, 0), abs=1e-3)
    assert got["max"] == pytest.approx(max(2 * 0.15 - drawn.max(axis=1).mean(), 0), abs=1e-3)
    # Ten times the labels leave some error.
    n = np.array([50.0, 40])
    v = y * (1 - y) / (n - 1)
    want = np.sqrt(5 / 9 * (0.01 - v[0]) + 4 / 9 * (0.0225 - v[1]))
    assert debiased_error(LabeledBins(share, s, y, n), "l2") == pytest.approx(want, abs=1e-12)
    drawn = abs(np.random.default_rng(0).normal(s - y, np.sqrt(v), (2_000_000, 2)))
    for norm, mean in (("l1", drawn @ share / 9), ("max", drawn.max(axis=1))):
        want = 2 * norm_of(plain, share, norm) - mean.mean()
        assert debiased_error(LabeledBins(share, s, y, n), norm) == pytest.approx(want, abs=2e-4)
        assert want > 0.05


def test_a_bin_of_one_label_takes_the_variance_of_its_probability():
    one = np.ones(1)
    got = debiased_error(LabeledBins(one, np.array([0.9]), np.array([0.0]), one), "l2")
    assert got == pytest.approx(np.sqrt(0.81 - 0.09), abs=1e-12)


@pytest.mark.parametrize(("hits", "size"), [(0, 3), (3, 3), (2, 7)])
def test_intervals_of_bins_are_jeffreys(hits, size):
    low, high = jeffreys(np.array([hits / size]), np.array([size]), 0.9)
    want = np.array([[beta.ppf(0.05, hits + 0.5, size - hits + 0.5)],
                     [beta.ppf(0.95, hits + 0.5, size - hits + 0.5)]])  # fmt: skip
    want[0][hits == 0], want[1][hits == size] = 0, 1
    np.testing.assert_allclose([low, high], want, atol=1e-12)


@pytest.mark.slow
def test_debiased_is_nearer_to_the_truth():
    """Where the truth is calibrated, noise alone makes the plain error."""
    plain, debiased = np.mean(
        [
            [(row := fl.calibration_curve(
                world(100, 100, 1.0, seed)[1], bins=5, norm="l2", method="labeled"
            ).from_labels[0]).value, row.debiased]
            for seed in range(20)
        ],
        axis=0,
    )  # fmt: skip
    assert plain > 0.07
    assert debiased < 0.6 * plain


def independent_test(p: Any, y: Any, events: Any, seed: int) -> CalibrationTest:
    """Of labels of equal weight, each drawn by itself."""
    return calibration_test(p, y, events, seed, np.ones(len(y)), np.arange(len(y), dtype="u8"))


def test_the_statistic_of_the_test_by_hand():
    p1 = np.array([0.2, 0.4, 0.7, 0.9, 0.5])
    y = np.array([1, 0, 1, 0, 1])
    p = np.column_stack([1 - p1, p1])
    x = np.column_stack([np.ones(5), logit(p1)])
    u = x.T @ (y - p1)
    information = (x * (p1 * (1 - p1))[:, None]).T @ x
    got = independent_test(p, y, [(np.ones(5, int), p1)], 0)
    assert got.statistic == pytest.approx(u @ np.linalg.solve(information, u), abs=1e-10)
    # Of 32 labelings each has its probability.
    every = (np.arange(32)[:, None] >> np.arange(5)) & 1
    chance = np.where(every == 1, p1, 1 - p1).prod(axis=1)
    uu = (every - p1) @ x
    each = np.einsum("di,ij,dj->d", uu, np.linalg.inv(information), uu)
    exact = chance[each >= got.statistic * (1 - 1e-9)].sum()
    assert abs(got.p_value - exact) < 4 * np.sqrt(exact * (1 - exact) / 1999)


def test_probabilities_that_are_all_equal_or_certain_have_a_test():
    same = np.full((40, 2), 0.5)
    half = independent_test(same, np.arange(40) % 2, [(np.ones(40, int), same[:, 1])], 0)
    ones = independent_test(same, np.ones(40, int), [(np.ones(40, int), same[:, 1])], 0)
    assert half.p_value > 0.9
    assert ones.p_value < 0.001
    sure = np.tile([0.0, 1.0], (9, 1))
    wrong = np.r_[0, np.ones(8, int)]
    events = [(np.ones(9, int), sure[:, 1])]
    assert independent_test(sure, np.ones(9, int), events, 0).p_value == 1
    assert independent_test(sure, wrong, events, 0).p_value < 0.001


@pytest.mark.product
@pytest.mark.parametrize("labels", [20, 50, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("k", [2, 3])
def test_the_test_holds_its_level(labels, k):
    """By labels drawn from the probabilities; p-values are uniform, if coarser than that."""
    rng, p_values = np.random.default_rng(labels), []
    for seed in range(150):
        p = rng.dirichlet(np.full(k, 0.4), labels)
        y = (rng.random((labels, 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1)
        events = [(np.full(labels, c), p[:, c]) for c in range(k)]
        p_values.append(independent_test(p, y, events[k == 2 :], seed).p_value)
    for level in (0.05, 0.2):
        hits = sum(value <= level for value in p_values)
        assert binom.sf(hits - 1, 150, level) > 1e-3
        assert binom.cdf(hits, 150, level) > 1e-3


def test_the_test_sees_what_is_wrong():
    for shift, slope in ((0.9, 1.0), (0.0, 2.5)):
        found = 0
        for seed in range(10):
            rng = np.random.default_rng(seed)
            q = rng.beta(0.7, 0.9, 200)
            p = expit(shift + slope * logit(q)).clip(1e-6, 1 - 1e-6)
            predictions = fl.Predictions(p[:, None], (rng.random(200) < q).astype(int))
            found += (
                fl.calibration_curve(predictions, method="labeled").from_labels[0].p_value < 0.05
            )
        assert found >= 9


def test_weights_count():
    p, predictions = world(300, 300)
    weight = np.random.default_rng(5).gamma(2.0, size=300)
    found = fl.calibration_curve(
        fl.Predictions(p[:, None], predictions.labels, weight=weight), bins=4, method="labeled"
    )
    code = np.digitize(p, [0.25, 0.5, 0.75])
    for b, one in enumerate(found.bins):
        inside = code == b
        assert one.share == pytest.approx(weight[inside].sum() / weight.sum())
        want = np.average(predictions.labels[inside], weights=weight[inside])
        assert one.labeled_observed == pytest.approx(want)


def by_design(predictions: fl.Predictions, p: Any) -> tuple[float, float]:
    """The p-value of the test as labels were drawn, and as if they were drawn one by one."""
    rows = np.flatnonzero(predictions.labeled)
    one = p[rows], predictions.labels[rows], np.ones(len(rows), int)
    assert predictions.probabilities is not None
    events, q = [(one[2], one[0])], predictions.probabilities[rows, 0]
    weight, keys = predictions.weight_of_labels[rows], predictions.label_keys[rows]
    own = calibration_test(q, one[1], events, 0, weight, keys)
    return own.p_value, independent_test(q, one[1], events, 0).p_value


def test_the_test_knows_strata():
    """Calibrated over all items, too low in a tenth of them that has half of the labels."""
    found = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        small, p = np.arange(1_000) % 10 == 0, rng.random(1_000)
        gap = np.minimum(p, 1 - p)
        truth = rng.random(1_000) < np.where(small, p + 0.9 * gap, p - 0.1 * gap)
        known = np.full(1_000, -1)
        for inside in (small, ~small):
            rows = rng.choice(np.flatnonzero(inside), 75, replace=False)
            known[rows] = truth[rows]
        items = fl.Predictions(p[:, None], known, groups={"g": small}, stratum="g")
        found.append(by_design(items, p))
    rejected = (np.array(found) <= 0.05).sum(axis=0)
    assert binom.sf(rejected[0] - 1, 60, 0.05) > 1e-3
    assert rejected[1] > 30


@pytest.mark.slow
def test_the_test_knows_clusters():
    """Items of a page have one probability, and mostly one label."""
    found, power = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        page = np.arange(120) // 4
        p, chance = rng.random(30)[page], rng.random(30)[page]
        chance = np.where(rng.random(120) < 0.8, chance, rng.random(120))
        for truth, where in ((chance < p, found), (chance < p**2.5, power)):
            items = fl.Predictions(p[:, None], truth.astype(int), clusters={"page": page})
            where.append(by_design(items, p))
    rejected = (np.array(found) <= 0.05).sum(axis=0)
    assert binom.sf(rejected[0] - 1, 60, 0.08) > 1e-3  # few clusters: a little above its level
    assert rejected[1] > 15
    assert (np.array(power)[:, 0] <= 0.05).sum() > 30
    row = fl.calibration_curve(items, bins=4, method="labeled").from_labels[0]
    assert row.p_value == by_design(items, p)[0]


def test_labels_of_annotators_give_a_curve_without_a_test():
    p, _ = world(200, 0)
    counts = np.random.default_rng(1).binomial(3, p)
    found = fl.calibration_curve(
        fl.Predictions(p[:, None], histogram=np.column_stack([3 - counts, counts])),
        bins=5,
        method="tempered-ensemble",
    )
    assert np.isnan(found.from_labels[0].p_value)
    assert all(b.low <= b.observed <= b.high for b in found.bins if b.n_items)
    assert found.rows[0].value < 0.1


@pytest.mark.slow
def test_many_items_are_estimated_in_parts():
    p, predictions = world(20_000, 200)
    found = fl.calibration_curve(predictions, bins=5)
    assert "stream" in found.diagnostics
    assert sum(one.n_items for one in found.bins) == 20_000
    again = fl.calibration_curve(predictions, bins=5, workers=2)
    assert found.to_dict()["bins"] == again.to_dict()["bins"]
    truth_p = expit(logit(p) / 1.6)
    for one in found.bins:
        inside = (p >= one.start) & (p <= one.end)
        assert abs(one.observed - truth_p[inside].mean()) < 0.15


def test_items_without_a_prediction_are_no_part():
    p, predictions = world(100, 50)
    some = np.column_stack([p, np.where(np.arange(100) % 2, p, np.nan)])
    found = fl.calibration_curve(
        fl.Predictions(some, predictions.labels, models=["a", "b"]), bins=3
    )
    assert [sum(b.n_items for b in found.bins if b.model == m) for m in "ab"] == [100, 50]
    assert [row.n_labeled for row in found.from_labels] == [50, 25]


def test_it_takes_paths_and_frames_and_none_without_labels(tmp_path):
    p, predictions = world(80, 40)
    table = pd.DataFrame(
        {"label": [y if y >= 0 else None for y in predictions.labels], "p__m__1": p}
    )
    table.to_csv(tmp_path / "a.csv", index=False)
    for source in (table, tmp_path / "a.csv"):
        assert fl.calibration_curve(source).bins[0].model == "m"
    bare = fl.calibration_curve(fl.Predictions(p[:, None]), method="ensemble")
    assert bare.from_labels[0].n_labeled == 0
    assert "labels only" in bare.summary()
    json.dumps(bare.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"bins": 0}, "`bins` must be"),
        ({"binning": "equal"}, "unknown binning"),
        ({"norm": "l3"}, "unknown norm"),
        ({"confidence_level": None}, "`confidence_level` must be"),
        ({"models": ["x"]}, "unknown model 'x'"),
    ],
)
def test_arguments_are_checked(more, message):
    with pytest.raises(UsageError, match=message):
        fl.calibration_curve(world(40)[1], **more)


def test_scores_and_votes_claim_no_frequency():
    votes = fl.Predictions(votes=np.ones((9, 1), int), labels=np.arange(9) % 2)
    with pytest.raises(InputError, match=r"needs class probabilities .*fewlabels curve"):
        fl.calibration_curve(votes)


@pytest.mark.slow
@pytest.mark.parametrize("labels", [20, 50, 200])
def test_bands_and_errors_cover(labels):
    """In a world of probabilities that are too extreme: bands and errors."""
    p, many = world(400_000, 400_000, seed=10**6)
    code = np.digitize(p, np.linspace(0, 1, 11)[1:-1])
    size = np.bincount(code)
    truth = np.bincount(code, many.labels) / size
    gap = abs(truth - np.bincount(code, p) / size)
    bands, alone, errors = [], [], []
    for seed in range(60):
        found = fl.calibration_curve(world(1_000, labels, seed=seed)[1], bins=10, random_state=seed)
        errors.append(found.rows[0].low <= norm_of(gap, size, "l1") <= found.rows[0].high)
        bands += [b.low <= f <= b.high for b, f in zip(found.bins, truth, strict=True)]
        alone += [
            b.labeled_low <= f <= b.labeled_high
            for b, f in zip(found.bins, truth, strict=True)
            if b.n_labeled
        ]
    assert binom.cdf(sum(errors), 60, 0.9) > 1e-3
    assert np.mean(bands) > 0.86
    assert np.mean(alone) > 0.86
