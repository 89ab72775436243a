"""An interval that may be looked at after each label: it holds at all looks together."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import betaln
from scipy.stats import beta as beta_distribution

import fewlabels as fl
from fewlabels.evaluation.anytime import DrawnValues, _mixture, anytime, confidence_sequence
from fewlabels.kernels.importance import lure_weights
from fewlabels.metrics.registry import resolve


def draws_of(rng, n, share, size, *, by_size=False, known=0.6):
    """Values 0 and 1 of n items, what a pool expects of them, and draws; the mean as well."""
    values = (rng.random(n) < share).astype(float)
    proxy = np.clip(known * values + (1 - known) * share + rng.normal(0, 0.1, n), 0.02, 0.98)
    left = n - np.arange(size)
    if by_size:
        worth, free, rows, q = proxy * (1 - proxy), np.ones(n), [], []
        for remaining in left:
            p = 0.5 * free / remaining + 0.5 * free * worth / (free * worth).sum()
            rows.append(int(rng.choice(n, p=p / p.sum())))
            q.append(p[rows[-1]])
            free[rows[-1]] = 0
        rows, q = np.array(rows), np.array(q)
    else:
        rows, q = rng.permutation(n)[:size], 1 / left
    seen = np.concatenate([[0.0], np.cumsum(proxy[rows])[:-1]])
    expected = (proxy.sum() - seen) / n
    least = 0.5 if by_size else 1.0
    found = DrawnValues(values[rows], proxy[rows], expected, q, left, n, least)
    return found, values.mean()


@pytest.mark.parametrize("by_size", [False, True])
def test_it_misses_at_any_look_no_more_often_than_it_says(by_size):
    rng, missed, runs = np.random.default_rng(0), 0, 40
    for _ in range(runs):
        found, mean = draws_of(rng, 300, rng.uniform(0.5, 0.95), 60, by_size=by_size)
        low, high = confidence_sequence(found, 0.9)
        missed += bool(((low > mean) | (high < mean)).any())
    assert missed <= 0.1 * runs + 3 * np.sqrt(0.09 * runs)


@pytest.mark.slow
@pytest.mark.parametrize("by_size", [False, True])
@pytest.mark.parametrize("share", [0.5, 0.8, 0.97])
def test_it_misses_rarely_in_many_runs(share, by_size):
    rng, missed, runs = np.random.default_rng(1), 0, 400
    for _ in range(runs):
        found, mean = draws_of(rng, 500, share, 100, by_size=by_size)
        low, high = confidence_sequence(found, 0.9)
        missed += bool(((low > mean) | (high < mean)).any())
    assert missed <= 0.1 * runs


def test_ordinary_intervals_miss_at_some_look():
    """Why there is another one: Jeffreys' 90% intervals, looked at from 10 to 100 labels."""
    rng, missed = np.random.default_rng(2), 0
    for _ in range(200):
        ones = np.cumsum(rng.random(100) < 0.8)[9:]
        n = np.arange(10, 101)
        low, high = beta_distribution.ppf([[0.05], [0.95]], ones + 0.5, n - ones + 0.5)
        missed += bool(((low > 0.8) | (high < 0.8)).any())
    assert missed > 60


def test_the_mixture_is_that_of_coins_where_items_have_no_end():
    rng = np.random.default_rng(3)
    values = (rng.random(40) < 0.7).astype(float)
    n, grid = 10**9, np.linspace(0.05, 0.95, 19)
    left = n - np.arange(40)
    found = _mixture(DrawnValues(values, values, values, 1 / left, left, n, 1.0), grid)
    ones, zeros = np.cumsum(values)[:, None], np.cumsum(1 - values)[:, None]
    coins = betaln(0.5 + ones, 0.5 + zeros) - betaln(0.5, 0.5)
    coins = coins - ones * np.log(grid) - zeros * np.log(1 - grid)
    assert found == pytest.approx(coins, abs=1e-4)


def test_it_narrows_to_the_mean_of_all_items():
    found, mean = draws_of(np.random.default_rng(5), 80, 0.7, 80)
    low, high = confidence_sequence(found, 0.9)
    assert (np.diff(low) >= 0).all()
    assert (np.diff(high) <= 0).all()
    assert low[-1] <= mean <= high[-1]
    assert high[-1] - low[-1] <= 2 / 80 + 1e-9


def test_what_a_pool_knows_narrows_it():
    rng, widths = np.random.default_rng(5), []
    for known in (0.0, 0.9):
        of_one = []
        for _ in range(10):
            low, high = confidence_sequence(draws_of(rng, 500, 0.7, 80, known=known)[0], 0.9)
            of_one.append(high[-1] - low[-1])
        widths.append(np.mean(of_one))
    assert widths[1] < 0.8 * widths[0]


class TestOfPredictions:
    def world(self, missing=0.0):
        rng = np.random.default_rng(6)
        truth = (rng.random(400) < 0.4).astype(int)
        x = np.array([1.5, 0.7]) * (2 * truth[:, None] - 1) + rng.normal(size=(400, 2))
        p = 1 / (1 + np.exp(-2 * x))
        p[rng.random(400) < missing, 1] = np.nan
        rows, left = rng.permutation(400)[:80], 400 - np.arange(80)
        labels = np.full(400, -1)
        labels[rows] = truth[rows]
        predictions = fl.Predictions(p, labels, models=["a", "b"])
        full = fl.estimate(predictions.with_labels(truth), "labeled", ["accuracy", "brier"])
        return predictions, rows, 1 / left, left, full

    @pytest.mark.parametrize("metric", ["accuracy", "error_rate", "brier"])
    @pytest.mark.parametrize("missing", [0.0, 0.3])
    def test_means_of_these_items(self, metric, missing):
        predictions, rows, q, left, _ = self.world(missing)
        truth = fl.estimate(self.world(missing)[4].judged, "labeled", metric).rows
        (found,) = resolve([metric]).values()
        ends = anytime(predictions, found, rows, q, left, level=0.95)
        for row in truth:
            low, high = ends[row.model]
            assert low[-1] <= row.value <= high[-1]
            assert high[-1] - low[-1] < 0.45

    def test_what_has_no_such_interval(self):
        predictions, rows, q, left, _ = self.world()
        for metric in ("roc_auc", "log_loss"):
            (found,) = resolve([metric]).values()
            with pytest.raises(fl.UsageError, match="means over the items with bounds"):
                anytime(predictions, found, rows, q, left, level=0.95)
        (found,) = resolve(["accuracy"]).values()
        with pytest.raises(fl.InputError, match="has no label"):
            anytime(predictions.with_labels(None), found, rows, q, left, level=0.95)

    def test_even_draws_need_no_weights(self):
        _, _, q, left, _ = self.world()
        assert lure_weights(q, left) == pytest.approx(np.ones(80))
