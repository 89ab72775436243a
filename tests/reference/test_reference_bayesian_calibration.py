"""Bayesian calibration against its posterior on a grid, and its limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from reference_baselines_naive import CalibrationGrid
from reference_questions import infer, marginals, value
from scipy.special import expit

import fewlabels as fl
from worlds import world


def calibration_world(n: int, labeled: int, a: float, b: float, c: float, seed: int = 0):
    """One classifier's P(class 1), the truth's probabilities, the truth, the labels shown."""
    rng = np.random.default_rng([seed, n, labeled])
    p = rng.beta(0.8, 1.0, n)
    true = expit(a * np.log(p) - b * np.log1p(-p) + c)
    truth = (rng.random(n) < true).astype(int)
    return p, true, truth, np.where(np.arange(n) < labeled, truth, -1)


@pytest.mark.product
@pytest.mark.parametrize("sds", [{}, {"slope_sd": 1.0, "offset_sd": 0.5}], ids=["prior", "other"])
@pytest.mark.parametrize("labeled", [0, 1, 20, 100])
def test_bayesian_calibration_is_the_posterior_on_a_grid(labeled, sds):
    p, _, _, shown = calibration_world(160, labeled, 1.6, 0.6, -0.7)
    p[[-1, -2]] = 0, 1  # clipped to a millionth
    draws = 4000
    model = fl.models.BayesianCalibration(n_draws=draws, proposals=20_000, **sds)
    default = fl.models.BayesianCalibration()
    grid = CalibrationGrid(
        p[shown >= 0], shown[shown >= 0],
        sds.get("slope_sd", default.slope_sd), sds.get("offset_sd", default.offset_sd),
    )  # fmt: skip
    assert grid.on_the_edge < 1e-4
    got = infer(model, fl.Predictions(p[:, None], shown)).of(0).marginals()[:, 1]
    mean, sd = grid.moments(p)
    rows = shown < 0
    # a tenth of a per cent for the grid; 5 standard errors for the draws, resampled ones counted
    # as half of what they are
    z = np.abs(got - mean)[rows] / (5 * sd[rows] / math.sqrt(draws / 2) + 1e-3)
    assert z.max() < 1, (z.max(), np.abs(got - mean)[rows].max())


@pytest.mark.parametrize("labeled", [0, 20])
def test_bayesian_calibration_metrics_average_over_draws(labeled):
    """ECE is not linear in the labels' probabilities: mean over maps, not the map of the mean."""
    p, _, _, shown = calibration_world(200, labeled, 1.5, 0.7, 0.5, seed=1)
    default = fl.models.BayesianCalibration()
    known = shown >= 0
    grid = CalibrationGrid(p[known], shown[known], default.slope_sd, default.offset_sd)
    P = np.stack([1 - p, p], axis=1)
    ece, accuracy, brier = [], [], []
    for a, b, c in grid.maps(1500, np.random.default_rng(2)):
        q = expit(a * np.log(p) - b * np.log1p(-p) + c)
        q[known] = shown[known]
        edges = np.minimum((p * 15).astype(int), 14)
        gaps = np.bincount(edges, p - q, 15)
        ece.append(np.abs(gaps).sum() / 200)
        accuracy.append(np.where(P.argmax(axis=1) == 1, q, 1 - q).mean())
        brier.append((q * (1 - p) ** 2 + (1 - q) * p**2).mean())
    model = fl.models.BayesianCalibration(n_draws=4000, proposals=20_000)
    predictions = fl.Predictions(p[:, None], shown)
    for name, each in (("accuracy", accuracy), ("brier", brier)):
        tolerance = 6 * np.std(each) / math.sqrt(1000) + 1e-3
        got = value(predictions, model, name)
        # the mean of the mean and the median is one point estimate that the reference knows (5.7)
        middles = np.mean(each), (np.mean(each) + np.median(each)) / 2
        assert min(abs(got - m) for m in middles) < tolerance, (name, got, middles)
    # of soft labels, or of labels drawn (500 draws of the paper: larger by their noise)
    got = value(predictions, model, "ece")
    drawn = math.sqrt(15 / 200 / 4)
    assert np.mean(ece) - 0.02 < got < np.mean(ece) + drawn


@pytest.mark.slow
def test_bayesian_calibration_finds_the_map_from_very_many_labels():
    p, true, _, shown = calibration_world(20_200, 20_000, 1.8, 0.5, -1.0, seed=3)
    got = infer(fl.models.BayesianCalibration(), fl.Predictions(p[:, None], shown))
    rows = shown < 0
    np.testing.assert_allclose(got.of(0).marginals()[rows, 1], true[rows], rtol=0, atol=0.03)


@pytest.mark.parametrize("labeled", [1000, 10_000])
def test_bayesian_calibration_posterior_narrows_as_one_over_root_n(labeled):
    """Importance draws must not collapse onto a few maps when labels are many."""
    p, _, _, shown = calibration_world(labeled + 50, labeled, 1.3, 0.8, -0.5, seed=4)
    default = fl.models.BayesianCalibration()
    known = shown >= 0
    posterior = infer(default, fl.Predictions(p[:, None], shown)).of(0)
    weights, soft = zip(*posterior.soft_draws(200, 0), strict=True)
    weight, Q = np.concatenate(weights), np.concatenate(soft)[:, ~known, 1]
    mean = weight @ Q
    sd = np.sqrt(weight @ (Q - mean) ** 2)
    # Fisher information of (a, b, c) at the truth, flat prior: labels outweigh it by far
    X = np.stack([np.log(p), -np.log1p(-p), np.ones_like(p)], axis=1)
    v = expit(X @ [1.3, 0.8, -0.5])
    v = v * (1 - v)
    covariance = np.linalg.inv((X[known] * v[known, None]).T @ X[known])
    wanted = v[~known] * np.sqrt(np.einsum("ia,ab,ib->i", X[~known], covariance, X[~known]))
    ratio = np.median(sd / wanted)
    assert 0.7 < ratio < 1.3, ratio
    assert len(np.unique(Q[:, 0].round(12))) > 50


def test_bayesian_calibration_without_labels_is_near_taken_at_its_word():
    rng = np.random.default_rng(5)
    p = rng.beta(0.5, 0.5, 300)
    predictions = fl.Predictions(p[:, None])
    at_its_word = value(predictions, "ensemble")
    tight = fl.models.BayesianCalibration(slope_sd=1e-3, offset_sd=1e-3)
    assert value(predictions, tight) == pytest.approx(at_its_word, abs=1e-3)
    assert value(predictions, "bayesian-calibration") == pytest.approx(at_its_word, abs=0.12)


def test_bayesian_calibration_keeps_the_order_of_scores():
    """a, b > 0: P(class 1) rises with the score in every draw, whatever the labels say."""
    p = np.linspace(0.01, 0.99, 60)
    labels = np.where(np.arange(60) % 3 == 0, np.arange(60) < 30, -1).astype(int)  # the wrong way
    posterior = infer(fl.models.BayesianCalibration(), fl.Predictions(p[:, None], labels)).of(0)
    for _, soft in posterior.soft_draws(200, 0):
        assert (np.diff(soft[:, labels < 0, 1], axis=1) > 0).all()


def test_bayesian_calibration_judges_each_classifier_by_its_own_map():
    w = world(n=150, models=3, labeled=20, seed=51)
    estimates = fl.estimate(w.predictions(), method="bayesian-calibration", metrics=["accuracy"])
    alone = fl.models.BayesianCalibration(n_draws=2000, proposals=20_000)
    for j, name in enumerate(w.models):
        mine = estimates.posterior.of(j).marginals()
        wanted = marginals(alone, w.predictions().select_models([name]), seed=1)
        np.testing.assert_allclose(mine, wanted, rtol=0, atol=0.05)


def test_bayesian_calibration_of_three_classes_is_refused():
    w = world(n=60, models=2, classes=3, labeled=20, seed=52)
    with pytest.raises(fl.FewlabelsError, match="two classes") as error:
        fl.estimate(w.predictions(), method="bayesian-calibration", metrics=["accuracy"])
    assert "\n" not in str(error.value)
