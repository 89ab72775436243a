"""Rows of clusters: their correlation, what they are worth, and powers of likelihoods."""

from __future__ import annotations

import numpy as np
import pytest

from fewlabels.kernels.clusters import Worth, intraclass_correlation, powers, worth
from fewlabels.kernels.counter_based import exponential_sums

N, EACH = 40, 10
CASE = np.repeat(np.arange(N, dtype=np.uint64), EACH)
ONES = np.ones(N * EACH)


def residuals(rho: float, seed: int, n: int = N) -> np.ndarray:
    rng = np.random.default_rng(seed)
    between = np.repeat(rng.normal(size=n), EACH)
    z = np.sqrt(rho) * between + np.sqrt(1 - rho) * rng.normal(size=n * EACH)
    return 0.3 * np.stack([-z, z], axis=1)


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.9])
def test_the_correlation_is_found(rho: float) -> None:
    found = [intraclass_correlation(residuals(rho, seed), CASE) for seed in range(20)]
    assert np.mean(found) == pytest.approx(rho, abs=0.03)
    assert intraclass_correlation(residuals(1.0, 0), CASE) > 0.99


def test_few_rows_say_little() -> None:
    prior = intraclass_correlation(np.zeros((0, 2)), CASE[:0])
    alone = np.arange(30, dtype=np.uint64)
    assert prior == pytest.approx(1 / 3)
    assert intraclass_correlation(residuals(0.0, 0, 3), alone) == pytest.approx(prior, abs=0.01)
    # Labels that all agree show nothing: a cluster is not certain then to be one label.
    assert intraclass_correlation(np.zeros((50, 2)), CASE[:50]) < prior


def test_what_rows_are_worth() -> None:
    copies = worth(ONES, [CASE], [1.0], ONES)
    assert copies.rows == pytest.approx(N)
    assert copies.freedom == pytest.approx(N - 1)
    assert copies.widening == pytest.approx(1)
    apart = worth(ONES, [CASE], [0.0], ONES)
    assert apart.rows == pytest.approx(N * EACH)
    assert 1 < apart.widening < 1.12
    assert worth(ONES[:50], [CASE[:50]], [0.0], ONES[:50]).widening > 2
    other = np.tile(np.arange(EACH, dtype=np.uint64), N)
    crossed = worth(ONES, [CASE, other], [0.2, 0.1], ONES)
    assert crossed.rows == pytest.approx(N * EACH / (1 + 9 * 0.2 + 39 * 0.1))
    assert EACH - 1 < crossed.freedom < N
    assert worth(0 * ONES, [CASE], [0.5], ONES).rows == 0
    # Weights without clusters: Kish's formula.
    assert worth(np.array([1.0, 3.0]), [], [], np.ones(2)) == pytest.approx((1.6, 0.6, 1, 1))


def test_powers_of_likelihoods() -> None:
    kind = np.zeros(N * EACH, dtype=np.int64)
    np.testing.assert_allclose(powers([CASE], [1.0], kind), 1 / EACH)
    np.testing.assert_allclose(powers([CASE], [0.0], kind), 1)
    kind[::EACH] = 1  # one of each cluster is labeled
    found = powers([CASE], [0.5], kind)
    np.testing.assert_allclose(found[::EACH], 1)
    np.testing.assert_allclose(found[1::EACH], 1 / (1 + 0.5 * (EACH - 2)))


def test_row_weights_of_few_clusters_vary_as_they_should() -> None:
    assert Worth(80, 79).exponent == pytest.approx(1, abs=1e-3)
    few = Worth(100, 9)
    rng, rows = np.random.default_rng(0), 10
    drawn = rng.exponential(size=(200_000, rows))
    variances = [((w := drawn**g)[:, 0] / w.sum(axis=1)).var() for g in (1, few.exponent)]
    assert variances[1] / variances[0] == pytest.approx(few.widening, rel=0.1)


@pytest.mark.parametrize("own", [1.0, 0.3])
def test_product_weights_do_not_count_a_row_thrice(own: float) -> None:
    """A sum over 60 x 60 rows of noise of the row, the case and the reader: its variance."""
    n, rng = 60, np.random.default_rng(1)
    share = np.sqrt((1 - own) / (2 * n * own))  # of v'Rv = own + 2 n share^2, by row
    g = Worth(1e6, 1e6, own, 2).exponent
    x = rng.normal(size=(n, n)) + share * (rng.normal(size=(n, 1)) + rng.normal(size=n))
    x -= x.mean()
    weights = [rng.exponential(size=(4_000, n)) ** g for _ in range(2)]
    weights = [w / w.mean() for w in weights]
    drawn = np.einsum("dc,cr,dr->d", weights[0], x, weights[1])
    assert drawn.var() == pytest.approx(n**2 / own, rel=0.25)


@pytest.mark.parametrize("times", [None, np.ones(4)])
def test_crossed_clusters_both_move_the_weights(times: np.ndarray | None) -> None:
    """Rows that share a reader, a case or nothing: correlations of products of two Exp(1)."""
    case, reader = np.array([[1, 1, 2, 2], [7, 8, 7, 8]], dtype=np.uint64)
    weights = exponential_sums([case, reader], np.arange(40_000), times, 3)
    found = np.corrcoef(weights)[0]
    assert weights.mean(axis=1) == pytest.approx(np.ones(4), abs=0.05)
    assert found == pytest.approx([1, 1 / 3, 1 / 3, 0], abs=0.05)
