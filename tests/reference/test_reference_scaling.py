"""Temperature, vector and matrix scaling against their losses (82), written plainly."""

from __future__ import annotations

import math

import numpy as np
import pytest
from reference_histograms_naive import slope, world
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax


@pytest.fixture(scope="module")
def calibration():
    return pytest.importorskip("fewlabels.calibration")


def nll(p, y):
    return -np.sum(y * np.log(p)) / y.sum()


def test_temperature(calibration, rng):
    _, f, _, q, y = world(rng, 800, 3)
    labels = rng.multinomial(1, q).argmax(axis=1)
    for truth, counts in ((y, y), (labels, np.eye(4)[labels])):
        best = minimize_scalar(
            lambda t, c=counts: nll(softmax(np.log(f) / math.exp(t), axis=1), c), (-1, 1), tol=1e-9
        )
        model = calibration.TemperatureScaling().fit(f, truth)
        assert math.log(model.temperature_) == pytest.approx(best.x, abs=1e-5)
        expected = softmax(np.log(f) / model.temperature_, axis=1)
        np.testing.assert_allclose(model.predict_proba(f), expected, rtol=1e-9)
    logits = 3 * np.log(f) + rng.normal(size=(800, 1))
    model = calibration.TemperatureScaling(inputs="logits").fit(logits, y)
    same = calibration.TemperatureScaling().fit(f, y)
    assert model.temperature_ == pytest.approx(3 * same.temperature_, rel=1e-5)
    np.testing.assert_allclose(model.predict_proba(logits), same.predict_proba(f), rtol=1e-5)


@pytest.mark.parametrize("penalty", [0.0, 0.1, 10.0])
def test_vector_scaling_minimises_its_loss(calibration, rng, penalty):
    _, f, _, _, y = world(rng, 400, 1)
    model = calibration.VectorScaling(penalty=penalty).fit(f, y.argmax(axis=1))

    def loss(x):
        p = log_softmax(np.log(f) * x[:4] + x[4:], axis=1)
        return -(y * p).sum() / len(y) + penalty * np.mean(x[4:] ** 2)

    found = np.append(model.scale_, model.intercept_)
    assert np.abs(slope(loss, found)).max() < 1e-5
    expected = softmax(np.log(f) * model.scale_ + model.intercept_, axis=1)
    np.testing.assert_allclose(model.predict_proba(f), expected, rtol=1e-9)


def test_matrix_scaling_undoes_a_linear_map_of_logits(calibration, rng):
    _, f, _, _, y = world(rng, 4000, 1, noise=1.5)
    mix = np.eye(4) + 0.5 * np.roll(np.eye(4), 1, axis=1)
    bent = softmax(np.log(f) @ mix, axis=1)
    train, test = slice(0, 2000), slice(2000, None)
    losses = {}
    for name in ("TemperatureScaling", "VectorScaling", "MatrixScaling"):
        model = getattr(calibration, name)().fit(bent[train], y[train])
        losses[name] = nll(model.predict_proba(bent[test]), y[test])
    floor = nll(f[test], y[test])
    assert losses["MatrixScaling"] < losses["VectorScaling"] + 1e-3
    assert losses["MatrixScaling"] - floor < 0.5 * (losses["TemperatureScaling"] - floor), losses
