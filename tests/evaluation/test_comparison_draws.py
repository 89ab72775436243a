"""Rankings, pairs and families of statements, against closed forms and naive computations."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest
from scipy import stats

from fewlabels.comparison.compare import Comparison, compare
from fewlabels.comparison.draws import group_gap, probability_best, tied_runs
from fewlabels.errors import UsageError


def compared(values: Any, draws: Any, direction: int = 1, **more: Any) -> Comparison:
    names = [f"m{j}" for j in range(len(values))]
    level = more.pop("level", 0.9)
    return compare(names, np.asarray(values, float), draws, direction, level=level, **more)


def normal_draws(means: Any, sd: Any, size: int = 4000, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.asarray(means) + np.asarray(sd) * rng.standard_normal((size, len(means)))


def test_two_normals_have_the_closed_forms() -> None:
    """P(better) = Phi(d / s); expected loss s phi(d / s) - d Phi(-d / s)."""
    size, gap, s = 40_000, 0.05, 0.02 * np.sqrt(2)
    found = compared([0.8, 0.85], normal_draws([0.8, 0.85], 0.02, size))
    pair = found.pair("m0", "m1")
    expected = stats.norm.cdf(gap / s)
    error = np.sqrt(expected * (1 - expected) / size)
    assert found.ranking == ("m1", "m0")
    assert pair.probability == pytest.approx(expected, abs=4 * error)
    assert found.standing("m1").probability_best == pytest.approx(expected, abs=4 * error)
    assert pair.value == pytest.approx(gap)
    reach = stats.norm.ppf(0.95) * s
    np.testing.assert_allclose([pair.low, pair.high], [gap - reach, gap + reach], atol=1e-3)
    z = gap / s
    loss = s * stats.norm.pdf(z) - gap * stats.norm.cdf(-z)
    second = (s**2 + gap**2) * stats.norm.cdf(-z) - gap * s * stats.norm.pdf(z)
    error = np.sqrt((second - loss**2) / size)
    assert found.standing("m1").expected_loss == pytest.approx(loss, abs=4 * error)
    assert found.standing("m0").expected_loss == pytest.approx(loss + gap, rel=0.02)


def test_ranks_are_those_of_a_naive_count_with_ties_broken_at_random() -> None:
    draws = np.random.default_rng(1).integers(4, size=(60, 4)).astype(float)
    found = compared(draws.mean(axis=0), draws)
    for j in range(4):
        top, rank = np.zeros(4), 0.0
        for row in draws:
            orders = [p for p in itertools.permutations(range(4))
                      if all(row[a] >= row[b] for a, b in itertools.pairwise(p))]  # fmt: skip
            for order in orders:
                top[order.index(j) :] += 1 / len(orders)
                rank += (order.index(j) + 1) / len(orders)
        # One more draw, in which all tie.
        standing = found.standing(f"m{j}")
        np.testing.assert_allclose(standing.probability_top, (top + np.arange(1, 5) / 4) / 61)
        assert standing.expected_rank == pytest.approx((rank + 2.5) / 61)


def test_draws_that_never_overlap_leave_a_little_doubt() -> None:
    """400 draws cannot tell a probability of 1 in 1,000 from 0."""
    best = probability_best(normal_draws([0.9, 0.5, 0.1], 1e-3, 400))
    np.testing.assert_allclose(best.sum(), 1)
    assert best[0] == pytest.approx(1 - 2 / 3 / 401)
    assert best[2] == pytest.approx(1 / 3 / 401)
    # What is certain stays certain, and copies share the first place.
    np.testing.assert_array_equal(probability_best(np.tile([0.9, 0.5], (400, 1))), [1, 0])
    copies = normal_draws([0.9], 0.1, 400)[:, [0, 0]]
    np.testing.assert_array_equal(probability_best(copies), [0.5, 0.5])


def test_undefined_classifiers_are_never_best() -> None:
    draws = normal_draws([0.5, 0.6], 0.1, 100)
    draws = np.column_stack([draws, np.full(100, np.nan)])
    assert probability_best(draws)[2] == 0
    assert np.isnan(probability_best(np.full((10, 2), np.nan))).all()


@pytest.mark.parametrize("m", [2, 4, 8])
def test_the_family_of_independent_estimates_is_tukeys(m: int) -> None:
    """Of equal independent errors the max-|t| quantile is the studentized range's by sqrt 2."""
    draws = normal_draws(np.zeros(m), 1.0, 40_000, seed=m)
    draws -= draws.mean(axis=0)
    limit = stats.studentized_range.ppf(0.9, m, np.inf)  # in units of one estimate's error

    def separated(gap: float) -> bool:
        values = np.zeros(m)
        values[0] = gap
        return compared(values, draws + values, level=0.9).pair("m0", "m1").separated

    assert not separated(0.97 * limit)
    assert separated(1.03 * limit)


def world(rng: np.random.Generator, truth: np.ndarray, size: int = 300) -> tuple[Any, Any]:
    """Estimates with correlated, unequal errors, and draws that have the same errors."""
    mixing = np.array([[1, 0.5, 0.2, 0], [0, 1, 0.5, 0.2], [0.3, 0, 0.6, 0], [0, 0, 0, 1.5]]) / 50
    errors = rng.standard_normal((size + 1, len(truth))) @ mixing
    return truth + errors[0], truth + errors[0] + errors[1:]


@pytest.mark.parametrize("truth", [[0.8] * 4, [0.8, 0.79, 0.78, 0.6], [0.8, 0.5, 0.5, 0.5]])
def test_the_set_of_the_best_holds_the_best(truth: list[float]) -> None:
    rng, runs = np.random.default_rng(3), 150
    held, sizes = 0, 0
    for _ in range(runs):
        found = compared(*world(rng, np.array(truth)), level=0.9)
        held += "m0" in found.may_be_best
        sizes += len(found.may_be_best)
    assert held / runs >= 0.9 - 2 * np.sqrt(0.09 / runs)
    if truth[1] == 0.5:
        assert sizes == runs  # where one is far ahead, it is alone


def test_equals_are_rarely_told_apart() -> None:
    """The family-wise error rate of the separated pairs is 1 - level."""
    rng, runs, wrong = np.random.default_rng(4), 150, 0
    for _ in range(runs):
        found = compared(*world(rng, np.full(4, 0.7)), level=0.9)
        wrong += any(pair.separated for pair in found.pairs)
    assert wrong / runs <= 0.1 + 2 * np.sqrt(0.09 / runs)


def test_alike_are_the_maximal_runs_of_the_ranking() -> None:
    apart = np.zeros((5, 5), dtype=bool)
    for a, b in [(0, 2), (0, 3), (0, 4), (1, 4), (2, 4), (3, 4)]:
        apart[a, b] = apart[b, a] = True
    assert tied_runs(apart) == [slice(0, 2), slice(1, 4), slice(4, 5)]
    assert tied_runs(np.zeros((3, 3), dtype=bool)) == [slice(0, 3)]
    # A pair that is not separated while one between is: the run ends at the first that is.
    odd = np.zeros((3, 3), dtype=bool)
    odd[0, 1] = odd[1, 0] = True
    assert tied_runs(odd) == [slice(0, 1), slice(1, 3)]


def test_the_order_and_the_direction_do_not_matter() -> None:
    means = np.array([0.7, 0.82, 0.8, 0.6])
    draws = normal_draws(means, [0.02, 0.03, 0.01, 0.02])
    variance = np.abs(means[:, None] - means) + 0.1
    found = compared(means, draws, item_variance=variance, n_labeled=40)
    order = [2, 0, 3, 1]
    mixed = compare(
        [f"m{j}" for j in order], means[order], draws[:, order], 1, level=0.9,
        item_variance=variance[np.ix_(order, order)], n_labeled=40,
    )  # fmt: skip
    assert mixed == found
    lower = compared(1 - means, 1 - draws, -1, item_variance=variance, n_labeled=40)
    assert lower.ranking == found.ranking
    assert lower.alike == found.alike
    assert lower.may_be_best == found.may_be_best
    for a, b in zip(lower.pairs, found.pairs, strict=True):
        assert (a.value, a.low, a.high) == pytest.approx((-b.value, -b.high, -b.low))
        assert a.labels == b.labels


def test_copies_are_never_told_apart() -> None:
    draws = normal_draws([0.7, 0.9], 0.01)[:, [0, 1, 1]]
    found = compared(draws.mean(axis=0), draws)
    pair = found.pair("m1", "m2")
    assert (pair.value, pair.low, pair.high, pair.probability) == (0, 0, 0, 0.5)
    assert not pair.separated
    assert pair.labels.status == "tied"
    assert found.may_be_best == ("m1", "m2")
    assert found.alike == (("m1", "m2"), ("m0",))


def test_what_is_undefined_is_left_out_and_named() -> None:
    draws = normal_draws([0.7, 0.8, 0.9], 0.05)
    draws[:, 1] = np.nan
    draws[::7, 0] = np.nan
    found = compared([0.7, np.nan, 0.9], draws)
    assert found.ranking == ("m2", "m0")
    assert found.undefined == ("m1",)
    assert json.dumps(found.to_dict(), allow_nan=False)
    with pytest.raises(UsageError, match="unknown model 'm1'"):
        found.standing("m1")
    with pytest.raises(UsageError, match="name two"):
        found.pair("m0", "m0")


@pytest.mark.parametrize(
    ("values", "draws", "message"),
    [
        ([0.5, 0.6], np.empty((0, 2)), "`confidence_level`"),
        ([0.5], np.ones((9, 1)), "defined for 1 of 1"),
        ([0.5, np.nan], np.ones((9, 2)), "defined for 1 of 2"),
    ],
)
def test_nothing_to_compare_is_said(values: Any, draws: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        compared(values, draws)


def test_gap_of_equal_groups_reaches_zero_and_of_unequal_ones_holds_the_truth() -> None:
    rng, runs, level = np.random.default_rng(5), 300, 0.9
    for truth in (np.full(6, 0.8), np.array([0.8, 0.8, 0.8, 0.7, 0.75, 0.8])):
        hits, values, plain = 0, [], []
        for _ in range(runs):
            sd = 0.01 * np.arange(1, 7)
            value = truth + sd * rng.standard_normal(6)
            found = group_gap("m", list("abcdef"), value, value + normal_draws(
                np.zeros(6), sd, 300, int(rng.integers(2**31))), level)  # fmt: skip
            hits += found.low <= np.ptp(truth) + 1e-9 and found.high >= np.ptp(truth)
            values.append(found.value)
            plain.append(found.observed)
            assert found.low <= found.value <= found.high
        assert hits / runs >= level - 2 * np.sqrt(0.09 / runs)
        # Taking the noise out removes most of the bias of the plain range.
        bias = abs(np.mean(values) - np.ptp(truth))
        assert bias < 0.5 * abs(np.mean(plain) - np.ptp(truth))


def test_gap_of_fewer_than_two_groups_is_undefined() -> None:
    found = group_gap("m", ["a", "b"], np.array([0.5, np.nan]), np.ones((9, 2)), 0.9)
    assert np.isnan(found.value)
    assert found.largest is None
