"""Class frequencies: EM against an independent optimiser, BBSE by hand, calibrated biases."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax

from fewlabels.shifts.label_shift import bias_correction, black_box_weights, likeliest_frequencies


@pytest.mark.parametrize("k", [2, 5])
def test_frequencies_are_those_of_an_independent_optimiser(k: int) -> None:
    rng = np.random.default_rng(k)
    p = softmax(rng.normal(0, 2, (300, k, 3)), axis=1)
    source = rng.dirichlet(3 * np.ones(k), 3).T
    weight = rng.exponential(size=(300, 3))
    found = likeliest_frequencies(p, source, weight)
    np.testing.assert_allclose(found.sum(axis=0), 1)
    for d in range(3):

        def loss(theta: np.ndarray, d: int = d) -> float:
            q = softmax(np.r_[theta, 0.0])
            mixture = (p[:, :, d] / source[:, d] * q).sum(axis=1)
            return -float((weight[:, d] * np.log(mixture)).sum() + np.log(q).sum())

        best = minimize(loss, np.zeros(k - 1), method="BFGS", options={"gtol": 1e-8})
        np.testing.assert_allclose(found[:, d], softmax(np.r_[best.x, 0.0]), atol=1e-5)


def test_frequencies_are_a_fixed_point_of_saerens_and_draws_do_not_meet() -> None:
    rng = np.random.default_rng(0)
    p = softmax(rng.normal(0, 2, (200, 3, 4)), axis=1)
    source, weight = np.full((3, 4), 1 / 3), np.ones((200, 4))
    q = likeliest_frequencies(p, source, weight, pseudo=1e-9)
    r = p * (q / source)
    r /= r.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(r.mean(axis=0), q, atol=1e-6)
    alone = likeliest_frequencies(p[:, :, :1], source[:, :1], weight[:, :1], pseudo=1e-9)
    np.testing.assert_allclose(alone[:, 0], q[:, 0], atol=1e-7)


def test_no_item_moves_nothing() -> None:
    source = np.array([[0.3], [0.7]])
    found = likeliest_frequencies(np.empty((0, 2, 1)), source, np.empty((0, 1)))
    np.testing.assert_allclose(found, source)


def test_black_box_weights_of_two_classes_by_hand() -> None:
    # Ten labels: prediction 0/1 given class 0: 4/1, given class 1: 1/4. C = [[.4, .1], [.1, .4]].
    predicted = np.array([0] * 4 + [1] + [0] + [1] * 4)
    labels = np.array([0] * 5 + [1] * 5)
    # Of 100 others .68 are called 0: C w = (.68, .32) has w = (1.6, .4).
    target = np.repeat([0, 1], [68, 32])
    np.testing.assert_allclose(black_box_weights(predicted, labels, target, 2), [1.6, 0.4])
    shrunk = black_box_weights(predicted, labels, target, 2, ridge=0.1)
    # (C'C + ridge) theta = C'(m - C 1) with eigenvector (1, -1) of C: .3 * .18 / (.09 + .1).
    np.testing.assert_allclose(shrunk - 1, np.array([1, -1]) * 0.3 * 0.18 / 0.19)


def test_black_box_weights_are_not_negative_and_absent_classes_stay() -> None:
    labels = np.array([0, 0, 1, 1])
    found = black_box_weights(np.array([0, 1, 1, 1]), labels, np.array([0] * 9 + [1]), 3)
    assert (found >= 0).all()
    assert found[2] == 1.0


def test_bias_correction_is_the_logistic_mode() -> None:
    rng = np.random.default_rng(3)
    p = softmax(rng.normal(size=(30, 3, 2)), axis=1)
    labels = rng.choice(3, 30, p=[0.7, 0.2, 0.1])
    found = np.log(bias_correction(p, labels, np.zeros((3, 2)), spread=2.0))

    def loss(c: np.ndarray) -> float:
        q = np.log(softmax(np.log(p[:, :, 0]) + c, axis=1))
        return -float(q[np.arange(30), labels].sum() - (c**2).sum() / 8)

    best = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-8}).x
    np.testing.assert_allclose(found[:, 0], best - best.mean(), atol=1e-5)


def test_bias_correction_of_one_class_is_finite_and_noise_is_the_posteriors() -> None:
    p = np.full((8, 2, 4000), 0.5)
    noise = np.random.default_rng(0).standard_normal((2, 4000))
    found = np.log(bias_correction(p, np.zeros(8, dtype=np.int64), noise, spread=1.0))
    assert np.isfinite(found).all()
    assert (found[0] - found[1]).mean() > 1
    mode = np.log(bias_correction(p[:, :, :1], np.zeros(8, dtype=np.int64), noise[:, :1] * 0,
                                  spread=1.0))  # fmt: skip
    q = softmax(mode[:, 0])
    # The difference of the two has variance v / (1 + n q0 q1 v) with v = 2.
    expected = 2 / (1 + 8 * q[0] * q[1] * 2)
    assert (found[0] - found[1]).var() == pytest.approx(expected, rel=0.1)
