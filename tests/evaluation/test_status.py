"""When labels are few: counted as their sampling weights count them."""

from __future__ import annotations

import numpy as np
import pytest

import fewlabels as fl


def weighted(of_labels: np.ndarray) -> fl.Predictions:
    """One good classifier on 300 items, the first of them labeled and of these weights."""
    rng = np.random.default_rng(0)
    truth = (rng.random(300) < 0.4).astype(int)
    score = np.clip(0.5 + 0.35 * (2 * truth - 1) + 0.2 * rng.normal(size=300), 0.01, 0.99)
    weight = np.ones(300)
    weight[: len(of_labels)] = of_labels
    known = np.where(np.arange(300) < len(of_labels), truth, -1)
    return fl.Predictions(score[:, None], known, weight=weight)


@pytest.mark.parametrize(
    ("of_labels", "worth"),
    [([1.0] + [0.0] * 19, "1.0"), ([5.0] * 2 + [1e-3] * 18, "2.0"), ([1.0] * 4 + [0] * 9, "4.0")],
)
def test_labels_of_hardly_any_weight_are_few(of_labels: list[float], worth: str) -> None:
    estimates = fl.estimate(weighted(np.array(of_labels)), method="labeled", metrics=["accuracy"])
    assert estimates.rows[0].status is fl.Status.FEW_LABELS
    said = f"few-labels: {len(of_labels)} labeled items, which count like {worth} by their weights"
    assert said in estimates.warnings


@pytest.mark.parametrize("method", ["auto", "ssme-kde", "ensemble"])
def test_they_are_few_for_what_learns_from_all_items_too(method: str) -> None:
    """Nothing would show that the model is wrong where it weighs."""
    few = weighted(np.array([1.0] * 2 + [0.0] * 38))
    estimates = fl.estimate(few, method=method, metrics=["accuracy"])
    assert estimates.rows[0].status is fl.Status.FEW_LABELS
    assert (
        "few-labels: 40 labeled items, which count like 2.0 by their weights" in estimates.warnings
    )


@pytest.mark.parametrize("weight", [1.0, 0.1, 3.7])
def test_equal_weights_count_as_they_are(weight: float) -> None:
    estimates = fl.estimate(weighted(np.full(20, weight)), method="labeled", metrics=["accuracy"])
    assert estimates.rows[0].status is fl.Status.OK
