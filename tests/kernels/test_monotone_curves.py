"""Monotone curves: places of scores, properties of every curve, pooled and soft labels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, ndtri
from scipy.stats import rankdata

from fewlabels.methods.curves.ordered_rates import (
    NEEDS_ZERO,
    SHAPE,
    X_LIMIT,
    Flat,
    Places,
    ScoreScale,
    Step,
    pool,
    shape_statistics,
)

RNG = np.random.default_rng(0)
SKEWED = RNG.gamma(2.0, 1.5, 400) - 2.0
TIED = np.round(SKEWED * 2) / 2
EVEN = np.linspace(-3, 5, 33)
MARGINS = {"skewed": SKEWED, "tied": TIED, "even": EVEN, "heavy": RNG.standard_t(1.5, 300)}


def parameters(size=200, spread=1.0, seed=1):
    return spread * np.random.default_rng(seed).standard_normal((size, 6))


def curves(scale, **options):
    return Step.of(parameters(**options), scale.zero)


@pytest.mark.parametrize("margins", MARGINS.values(), ids=MARGINS)
def test_places_are_standard_scores_and_normal_quantiles_of_midranks(margins):
    scale = ScoreScale.of(margins)
    places = scale.places(margins)
    n = len(margins)
    standard = (margins - margins.mean()) / margins.std()
    np.testing.assert_allclose(places.x, np.clip(standard, -X_LIMIT, X_LIMIT), atol=1e-12)
    np.testing.assert_allclose(places.z, ndtri((rankdata(margins) - 0.5) / n), atol=1e-9)
    assert scale.zero.x[0] == pytest.approx(np.clip(-margins.mean() / margins.std(), -3, 3))
    assert scale.zero.z[0] == pytest.approx(ndtri(((margins < 0).sum() + 0.5) / (n + 1)))


def test_many_scores_keep_their_places_nearly():
    margins = np.random.default_rng(2).normal(size=60_000)
    exact = ndtri((rankdata(margins) - 0.5) / len(margins))
    z = ScoreScale.of(margins).places(margins).z
    assert np.abs(z - exact)[np.abs(exact) < 2].max() < 2e-3
    assert np.abs(z - exact)[np.abs(exact) < 3].max() < 0.01
    assert np.abs(z - exact).max() < 0.2


def test_scores_beyond_those_that_were_fitted_to_stay_at_the_end():
    scale = ScoreScale.of(EVEN)
    ends = scale.places(np.array([-1e9, EVEN[0], EVEN[-1], 1e9]))
    assert ends.z[0] == ends.z[1] < ends.z[2] == ends.z[3]
    assert ends.x[0] == -X_LIMIT < ends.x[1] < ends.x[2] < ends.x[3] == X_LIMIT


def test_equal_scores_have_one_place():
    places = ScoreScale.of(np.full(7, 2.5)).places(np.full(7, 2.5))
    np.testing.assert_allclose(places.x, 0.0, atol=1e-12)
    np.testing.assert_allclose(places.z, 0.0, atol=1e-12)


@pytest.mark.parametrize("spread", [1.0, 3.0, 20.0])
@pytest.mark.parametrize("margins", MARGINS.values(), ids=MARGINS)
def test_probabilities_rise_with_the_score_and_sum_to_one(margins, spread):
    scale = ScoreScale.of(margins)
    grid = np.sort(np.concatenate([margins, np.linspace(margins.min() - 1, margins.max() + 1, 99)]))
    one, rest = curves(scale, spread=spread).probabilities(scale.places(grid))
    assert one.shape == rest.shape == (len(grid), 200)
    assert (np.diff(one, axis=0) >= -1e-15).all()
    assert (np.diff(rest, axis=0) <= 1e-15).all()
    np.testing.assert_allclose(one + rest, 1.0, rtol=0, atol=1e-12)
    # So that no label is impossible.
    assert (one > 0).all()
    assert (rest > 0).all()


def test_small_probabilities_keep_their_digits():
    """1 - P would lose them where P is next to 1."""
    u = np.array([[0.0, 2.0, 0.0, 0.0, -8.0, -8.0]])
    low = np.exp(-6 - 12)
    high = np.exp(-3.7 - 12)
    step = Step.of(u, Places(np.zeros(1), np.zeros(1)))
    one, rest = step.probabilities(Places(np.array([-4.0, 4.0]), np.array([-3.0, 3.0])))
    whole = 1 + low + high
    t = np.exp(1.5 + 2.2) * (np.array([4.0]) * step.mix + 3.0 * (1 - step.mix))
    assert one[0, 0] == pytest.approx((low + expit(-t[0])) / whole, rel=1e-9)
    assert rest[1, 0] == pytest.approx((high + expit(-t[0])) / whole, rel=1e-9)


def test_flat_curves_are_flat():
    u = np.array([[-8.0], [0.0], [1.0]])
    one, rest = Flat.of(u).probabilities(Places(np.arange(4.0), np.arange(4.0)))
    assert one.shape == rest.shape == (4, 3)
    np.testing.assert_allclose(one, np.tile(expit(-1 + 1.5 * u[:, 0]), (4, 1)), rtol=1e-14)
    np.testing.assert_allclose(rest, np.tile(expit(1 - 1.5 * u[:, 0]), (4, 1)), rtol=1e-14)


@pytest.mark.parametrize("factor", [1e-3, 1.0, 250.0])
@pytest.mark.parametrize("shift", [-40.0, 0.0, 3.0])
def test_unit_and_place_of_scores_do_not_matter_if_zero_moves_along(factor, shift):
    scale = ScoreScale.of(SKEWED)
    moved = ScoreScale.of(factor * (SKEWED + shift))
    a, b = scale.places(SKEWED), moved.places(factor * (SKEWED + shift))
    np.testing.assert_allclose(a.x, b.x, atol=1e-10)
    np.testing.assert_allclose(a.z, b.z, atol=1e-10)
    if shift == 0:
        np.testing.assert_allclose(moved.zero.x, scale.zero.x, rtol=1e-10)
        assert moved.zero.z == scale.zero.z
    # What was zero is now elsewhere, and the scale of the moved scores says where zero went.
    if -3 < scale.places(np.array([-shift])).x[0] < 3:
        np.testing.assert_allclose(moved.zero.x, scale.places(np.array([-shift])).x, atol=1e-10)
    u = parameters()
    one, _ = Step.of(u, scale.zero).probabilities(a)
    other, _ = Step.of(u, scale.zero).probabilities(b)
    np.testing.assert_allclose(one, other, rtol=1e-7)


@pytest.mark.parametrize("shift", [-40.0, 3.0])
def test_where_zero_is_not_known_place_and_unit_of_scores_do_not_matter(shift):
    """Then the step is at c = .8 + u0."""
    u = parameters()
    step = Step.of(u, None)
    np.testing.assert_allclose(step.centre, 0.8 + u[:, 0])
    moved = 25.0 * (SKEWED + shift)
    one, _ = step.probabilities(ScoreScale.of(SKEWED).places(SKEWED))
    other, _ = step.probabilities(ScoreScale.of(moved).places(moved))
    np.testing.assert_allclose(one, other, rtol=1e-7)
    away = Step.of(u, Places(np.array([0.8]), np.array([0.8])))
    for name in ("slope_above", "slope_below", "mix", "bottom", "top"):
        np.testing.assert_array_equal(getattr(step, name), getattr(away, name))


def known(labels):
    evidence = np.zeros((len(labels), 2))
    evidence[np.arange(len(labels)), 1 - labels] = -np.inf
    return evidence


def world(n, seed=3):
    """Places of n items, and labels from a curve of them."""
    rng = np.random.default_rng(seed)
    margins = rng.normal(0.5, 2.0, n)
    scale = ScoreScale.of(margins)
    places = scale.places(margins)
    one, _ = Step.of(np.zeros((1, 6)), scale.zero).probabilities(places)
    return scale, places, (rng.random(n) < one[:, 0]).astype(int)


def one_by_one(curve, places, labels):
    one, rest = curve.probabilities(places)
    return np.where(labels[:, None] == 1, np.log(one), np.log(rest)).sum(axis=0)


def test_few_labels_count_one_by_one():
    scale, places, labels = world(150)
    curve = curves(scale)
    seen = pool(places, known(labels))
    assert seen.ones.sum() == labels.sum()
    assert seen.zeros.sum() == (1 - labels).sum()
    np.testing.assert_allclose(
        seen.log_likelihood(curve), one_by_one(curve, places, labels), rtol=1e-10
    )


@pytest.mark.parametrize(("n", "bins"), [(600, 120), (2000, 200), (20_000, 200)])
def test_pooling_many_labels_leaves_the_likelihood_nearly_the_same(n, bins):
    scale, places, labels = world(n)
    seen = pool(places, known(labels), bins)
    assert len(seen.hard.x) == len(seen.hard.z) == bins
    assert seen.ones.sum() == labels.sum()
    assert (seen.ones + seen.zeros).sum() == n
    # Curves as far apart as a posterior's draws of so many labels, and a little more.
    curve = curves(scale, size=400, spread=0.3)
    exact = one_by_one(curve, places, labels)
    error = seen.log_likelihood(curve) - exact
    likely = exact > exact.max() - 30
    assert likely.sum() > 5
    # A difference that all curves share does not matter.
    assert np.ptp(error[likely]) < 0.5


def test_pooling_keeps_the_order_of_the_items_out():
    _, places, labels = world(1000)
    order = np.random.default_rng(4).permutation(1000)
    shuffled = Places(places.x[order], places.z[order])
    a, b = pool(places, known(labels)), pool(shuffled, known(labels[order]))
    np.testing.assert_array_equal(a.ones, b.ones)
    np.testing.assert_array_equal(a.hard.x, b.hard.x)


def test_soft_evidence_approaches_the_label():
    scale, places, labels = world(80)
    curve = curves(scale)
    hard = one_by_one(curve, places, labels)
    away = []
    for strength in (1.0, 5.0, 20.0, 60.0):
        evidence = np.zeros((80, 2))
        evidence[np.arange(80), 1 - labels] = -strength
        seen = pool(places, evidence)
        assert len(seen.ones) == 0
        away.append(np.abs(seen.log_likelihood(curve) - hard).max())
    assert away == sorted(away, reverse=True)
    assert away[-1] < 1e-9


def test_evidence_counts_up_to_a_constant_and_what_says_nothing_is_left_out():
    scale, places, _ = world(60)
    curve = curves(scale)
    rng = np.random.default_rng(5)
    evidence = rng.normal(size=(60, 2))
    evidence[20:40] = 1.5
    one, rest = curve.probabilities(places)
    p = np.exp(evidence)
    exact = np.log(p[:, [0]] * rest + p[:, [1]] * one).sum(axis=0)
    seen = pool(places, evidence)
    assert len(seen.likelihood) == 40
    error = seen.log_likelihood(curve) - exact
    np.testing.assert_allclose(error, error[0], atol=1e-9)


def test_no_labels_say_nothing():
    scale, places, _ = world(30)
    seen = pool(places, np.zeros((30, 2)))
    np.testing.assert_array_equal(seen.log_likelihood(curves(scale)), np.zeros(200))


@pytest.mark.parametrize("margins", MARGINS.values(), ids=MARGINS)
def test_statistics_of_shape_do_not_depend_on_the_unit_or_the_order(margins):
    rng = np.random.default_rng(6)
    a = shape_statistics(margins, ScoreScale.of(margins))
    assert a.shape == (len(SHAPE),)
    assert np.isfinite(a).all()
    assert a[0] == 1
    for other in (8.0 * margins, rng.permutation(margins)):
        b = shape_statistics(other, ScoreScale.of(other))
        np.testing.assert_allclose(b[:-1], a[:-1], rtol=1e-9, atol=1e-9)
    wider = shape_statistics(1.25 * margins, ScoreScale.of(1.25 * margins))
    assert wider[-1] == pytest.approx(np.clip(np.log(1.25 * margins.std()), -2, 2))


def test_statistics_that_do_not_need_zero_do_not_see_it():
    a, b = (shape_statistics(m, ScoreScale.of(m)) for m in (SKEWED, SKEWED + 1.3))
    free = [k for k in range(len(SHAPE)) if k not in NEEDS_ZERO]
    np.testing.assert_allclose(a[free], b[free], atol=1e-9)
    assert all(a[k] != b[k] for k in NEEDS_ZERO)


def test_the_best_cut_is_the_best_of_all_cuts():
    x = np.sort(np.concatenate([RNG.normal(-2, 1, 40), RNG.normal(3, 0.7, 25)]))
    scale = ScoreScale.of(x)
    found = shape_statistics(x, scale)
    places = np.sort(scale.places(x).x)
    shares = []
    for k in range(1, len(places)):
        left, right = places[:k], places[k:]
        inner = (len(left) * left.var() + len(right) * right.var()) / len(places)
        shares.append(1 - inner / places.var())
    best = int(np.argmax(shares))
    between = found[SHAPE.index("variance between the sides of the best cut")]
    assert expit(between) == pytest.approx(min(shares[best], 0.99))
    assert found[SHAPE.index("best cut")] == pytest.approx(places[best : best + 2].mean())
    assert between > shape_statistics(SKEWED, ScoreScale.of(SKEWED))[7]
