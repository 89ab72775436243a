"""The mixture of beliefs: draws of one belief's coefficients against its exact posterior."""

from __future__ import annotations

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.methods.ensembles.belief_mixture import Belief, each_belief


def exact(x: np.ndarray, y: np.ndarray, belief: Belief) -> tuple[float, float, float]:
    """Mean, sd and skewness of the offset a of log odds a + b x, on a grid of a and b."""
    a = np.linspace(-9, 15, 801)[:, None]
    b = np.linspace(belief.slope - 6 * belief.slope_sd, belief.slope + 6 * belief.slope_sd, 201)
    log = -0.5 * (a / belief.offset_sd) ** 2 - 0.5 * ((b - belief.slope) / belief.slope_sd) ** 2
    for value, label in zip(x, y, strict=True):
        log = log - np.logaddexp(0, -(2 * label - 1) * (a + b * value))
    weight = np.exp(log - log.max()).sum(axis=1)
    weight /= weight.sum()
    mean = float(weight @ a[:, 0])
    sd = float(np.sqrt(weight @ (a[:, 0] - mean) ** 2))
    return mean, sd, float(weight @ ((a[:, 0] - mean) / sd) ** 3)


@pytest.mark.parametrize(("n", "positives"), [(8, 8), (12, 11), (20, 10)])
def test_draws_are_of_the_posterior_however_skewed(n, positives):
    """With eight labels of one class the posterior leans: a normal at its mode does not."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=400)
    y = np.full(400, -1)
    y[:n] = np.arange(n) < positives
    belief = Belief(1.0, "own", False, 1.0, 0.3, 2.5)
    predictions = fl.Predictions(1 / (1 + np.exp(-x))[:, None], y)
    [(_, drawn)] = each_belief([belief], 4000, predictions, rng)
    at_zero = np.argmin(np.abs(x[n:])) + n
    p = drawn.block(np.arange(4000), np.array([at_zero]))[0, 1]
    offset = np.log(p / (1 - p)) - x[at_zero]
    mean, sd, skewness = exact(x[:n], y[:n], belief)
    assert offset.mean() == pytest.approx(mean, abs=0.08 * sd)
    assert offset.std() == pytest.approx(sd, rel=0.06)
    z = (offset - offset.mean()) / offset.std()
    assert (z**3).mean() == pytest.approx(skewness, abs=0.25)
