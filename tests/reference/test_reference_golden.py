"""The released sampler's splits: labeled-only and all-labels-known values, the released SSME."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from reference_questions import estimates_of, values

import fewlabels as fl

RUNS = [(20, 0), (20, 1), (20, 17), (50, 0), (50, 49), (100, 0), (100, 7)]


@pytest.mark.parametrize(("n_labeled", "run"), RUNS)
def test_labeled_agrees_to_rounding(golden, n_labeled, run):
    estimates = estimates_of(
        golden.predictions(n_labeled, run), method="labeled", metrics=[*golden.metric_names]
    )
    got = values(estimates, golden.models, tuple(golden.metric_names))
    np.testing.assert_allclose(got, golden.table("labeled", n_labeled, run), rtol=0, atol=1e-12)


@pytest.mark.product
@pytest.mark.parametrize("method", ["labeled", "tempered-ensemble", "ensemble", "ssme-kde"])
@pytest.mark.parametrize(("n_labeled", "run"), [(20, 0), (100, 7)])
def test_all_labels_known_agrees_to_rounding(golden, n_labeled, run, method):
    predictions = golden.predictions(n_labeled, run, all_labels=True)
    estimates = estimates_of(predictions, method=method, metrics=[*golden.metric_names])
    got = values(estimates, golden.models, tuple(golden.metric_names))
    np.testing.assert_allclose(got, golden.table("oracle_pool", n_labeled, run), rtol=0, atol=1e-12)


def test_the_quantile_rule_is_seen(golden):
    """A score that equals a quantile belongs to the bin below: one golden split tells."""
    telling = []
    for run in range(50):
        P, _, labeled = golden.split(100, run)
        p = P[labeled]
        edges = np.quantile(p, np.linspace(0, 1, 11)[1:-1], axis=0)
        if any((edges[:, j][:, None] == p[:, j]).any() for j in range(7)):
            telling.append(run)
    assert telling
    for run in telling:
        predictions = golden.predictions(100, run)
        estimates = estimates_of(predictions, method="labeled", metrics=["ece_quantile"])
        got = values(estimates, golden.models, ("ece_quantile",))[:, 0]
        np.testing.assert_allclose(got, golden.table("labeled", 100, run)[:, 1], rtol=0, atol=1e-12)


def _official(golden, run: int, seed: int) -> np.ndarray:
    estimates = estimates_of(
        golden.predictions(20, run),
        method=fl.models.SSMEKDE(compat="official"),
        metrics=[*golden.metric_names],
        random_state=seed,
    )
    return values(estimates, golden.models, tuple(golden.metric_names))


@pytest.mark.slow
def test_official_ssme_is_centred_on_the_released_one(golden):
    """Paired differences over five runs: within 4 standard errors per metric, no cell beyond."""
    runs = 5
    gap = np.array([_official(golden, r, 1) - golden.table("ssme_kde", 20, r) for r in range(runs)])
    per_metric = gap.mean(axis=1)
    t = per_metric.mean(axis=0) / (per_metric.std(axis=0, ddof=1) / np.sqrt(runs))
    assert np.abs(t).max() < 4, dict(zip(golden.metric_names, t, strict=True))
    cells = gap.mean(axis=0) / (gap.std(axis=0, ddof=1) / np.sqrt(runs))
    limit = scipy.stats.t.ppf(1 - 0.001 / (2 * cells.size), runs - 1)
    assert np.abs(cells).max() < limit, cells


@pytest.mark.slow
def test_official_ssme_on_all_fifty_runs(golden):
    """Centred, and scattered alike: golden differs from ours as ours does between seeds."""
    ours = np.array([[_official(golden, run, seed) for seed in (1, 2)] for run in range(50)])
    gap = ours[:, 0] - np.array([golden.table("ssme_kde", 20, run) for run in range(50)])
    cells = gap.mean(axis=0) / (gap.std(axis=0, ddof=1) / np.sqrt(50))
    assert np.abs(cells).max() < 4, cells
    ratio = (gap.std(axis=0, ddof=1) / (ours[:, 0] - ours[:, 1]).std(axis=0, ddof=1)) ** 2
    limit = scipy.stats.f.ppf(1 - 0.001 / (2 * ratio.size), 49, 49)
    assert ratio.max() < limit, ratio
    assert ratio.min() > 1 / limit, ratio


@pytest.mark.slow
def test_ensemble_is_the_mean_of_its_draws(golden):
    """golden `ensemble_draw` is one draw of labels from the mean score; ours is its expectation."""
    metrics = ("accuracy",)
    gap = []
    for run in range(10):
        estimates = estimates_of(golden.predictions(20, run), method="ensemble", metrics=[*metrics])
        gap.append(
            values(estimates, golden.models, metrics)[:, 0]
            - golden.table("ensemble_draw", 20, run)[:, 0]
        )
    gap = np.array(gap).mean(axis=1)
    t = gap.mean() / (gap.std(ddof=1) / np.sqrt(len(gap)))
    assert abs(t) < 4, t
