"""The flow against its definition, quadrature, and gradients by automatic differentiation."""

from __future__ import annotations

import numpy as np
import pytest

from fewlabels.methods.ssme.flow_training import Adam
from fewlabels.methods.ssme.real_nvp import RealNVP, Trace
from naive_flow import BOUND, naive_flow


def random_flow(d: int, seed: int = 0, n_couplings: int = 5) -> tuple[RealNVP, np.ndarray]:
    """A small flow, with parameters far from the identity."""
    rng = np.random.default_rng(seed)
    flow = RealNVP(d, n_couplings, hidden=7, dtype=np.float64)
    return flow, flow.start(rng) + rng.normal(scale=0.4, size=flow.size)


@pytest.mark.parametrize("d", [1, 2, 3, 9])
def test_is_the_flow_of_the_definition(d):
    flow, parameters = random_flow(d)
    x = np.random.default_rng(1).normal(size=(d, 4))
    z, log_det = flow.forward(parameters, x)
    for i in range(4):
        own_z, own_log_det = naive_flow(np, flow, parameters, x[:, i])
        np.testing.assert_allclose(z[:, i], own_z, atol=1e-12)
        assert log_det[i] == pytest.approx(own_log_det, abs=1e-12)


def test_starts_as_the_identity():
    flow = RealNVP(5)
    x = np.random.default_rng(0).normal(size=(5, 20)).astype(np.float32)
    z, log_det = flow.forward(flow.start(np.random.default_rng(1)), x)
    np.testing.assert_array_equal(z, x)
    np.testing.assert_array_equal(log_det, 0)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_log_determinant_is_that_of_the_jacobian(d):
    autograd = pytest.importorskip("autograd")
    flow, parameters = random_flow(d)
    x = np.random.default_rng(2).normal(size=d)
    jacobian = autograd.jacobian(lambda v: naive_flow(autograd.numpy, flow, parameters, v)[0])(x)
    _, log_det = flow.forward(parameters, x[:, None])
    assert log_det[0] == pytest.approx(np.linalg.slogdet(jacobian)[1], abs=1e-10)


@pytest.mark.parametrize("d", [1, 2, 3, 6])
def test_gradients_are_those_of_automatic_differentiation(d):
    autograd = pytest.importorskip("autograd")
    flow, parameters = random_flow(d)
    rng = np.random.default_rng(3)
    x, by_log_det = rng.normal(size=(d, 3)), rng.normal(size=3)

    def loss(p, x):
        total = 0.0
        for i in range(3):
            z, log_det = naive_flow(autograd.numpy, flow, p, x[:, i])
            total = total + autograd.numpy.sum(z**3) / 3 + by_log_det[i] * log_det
        return total

    trace, gradient = Trace(flow, 3), np.full(flow.size, np.nan)
    z, _ = trace.forward(flow.views(parameters), x)
    by_z = z**2
    trace.backward(flow.views(parameters), by_z, by_log_det, flow.views(gradient))
    expected = [autograd.grad(loss, argnum)(parameters, x) for argnum in (0, 1)]
    np.testing.assert_allclose(gradient, expected[0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(by_z, expected[1], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(trace.z, x, atol=1e-12)


def test_single_precision_is_close_to_double():
    flow, parameters = random_flow(6, n_couplings=10)
    single = RealNVP(6, 10, 7, np.float32)
    x = np.random.default_rng(0).normal(size=(6, 100))
    z, log_det = flow.forward(parameters, x)
    z32, log_det32 = single.forward(parameters.astype(np.float32), x.astype(np.float32))
    assert z32.dtype == log_det32.dtype == np.float32
    np.testing.assert_allclose(z32, z, rtol=1e-3, atol=1e-3 * np.abs(z).max())
    np.testing.assert_allclose(log_det32, log_det, atol=1e-4)


def test_log_scales_are_bounded():
    flow, parameters = random_flow(4, n_couplings=6)
    _, log_det = flow.forward(1e4 * parameters, np.random.default_rng(0).normal(size=(4, 30)))
    assert np.abs(log_det).max() <= 6 * 2 * BOUND


def test_adam_takes_the_steps_of_the_paper():
    rng = np.random.default_rng(0)
    parameters = rng.normal(size=5)
    expected, mean, square = parameters.copy(), np.zeros(5), np.zeros(5)
    adam = Adam(parameters, decay=0.1, clip=2.0)
    for t in range(1, 20):
        gradient = rng.normal(size=5) * t
        norm = np.linalg.norm(gradient)
        clipped = gradient * min(1, 2.0 / norm)
        mean = 0.9 * mean + 0.1 * clipped
        square = 0.999 * square + 0.001 * clipped**2
        step = mean / (1 - 0.9**t) / (np.sqrt(square / (1 - 0.999**t)) + 1e-8)
        expected = expected * (1 - 0.01 * 0.1) + 0.01 * step
        assert adam.ascend(gradient.copy(), 0.01) == pytest.approx(norm)
        np.testing.assert_allclose(parameters, expected, rtol=1e-10)
