"""Cases that every method must survive with numbers that mean something."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.models import SSMEKDE

N = 180


def binary(n: int = N, known: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probabilities (n, 3), labels with -1, and the truth."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.4).astype(int)
    logits = 2.5 * (truth[:, None] - 0.5) + rng.normal(size=(n, 3))
    return 1 / (1 + np.exp(-logits)), np.where(np.arange(n) < known, truth, -1), truth


def test_labels_that_fill_the_support():
    p, labels, truth = binary(n=900, known=700)
    posterior = SSMEKDE(bandwidth="scott", max_support=400, epochs=3).infer(
        fl.Predictions(p, labels), 0
    )
    assert np.isfinite(posterior.marginals()).all()
    everything = SSMEKDE(bandwidth="scott", max_support=400).infer(fl.Predictions(p, truth), 0)
    assert (everything.marginals().argmax(axis=1) == truth).all()


def test_histograms_off_the_support_count():
    p, _, truth = binary(n=600)
    histogram = np.zeros((600, 2))
    histogram[np.arange(600), truth] = 9
    model = SSMEKDE(bandwidth="scott", max_support=200)
    found = model.infer(fl.Predictions(p, histogram=histogram), 0).marginals()
    assert (found[np.arange(600), truth] > 0.9).mean() > 0.99


def test_support_and_diagnostics_do_not_depend_on_the_order():
    p, labels, _ = binary(n=5000, known=100)
    order = np.argsort(p[:, 0])
    model = SSMEKDE(max_support=3000, epochs=5)
    straight = model.infer(fl.Predictions(p, labels), 0)
    sorted_ = model.infer(fl.Predictions(p[order], labels[order]), 0)
    assert straight.diagnostics["self_share"] == pytest.approx(sorted_.diagnostics["self_share"])
    np.testing.assert_allclose(straight.marginals()[order], sorted_.marginals(), atol=1e-6)


def test_sample_of_known_weight():
    """Labels hold 88% of the weight: the rest cannot move accuracy further than its own weight."""
    p, labels, _ = binary(n=1350, known=1000)
    weight = np.where(labels >= 0, 100.0, 40.0)
    row = fl.estimate(
        fl.Predictions(p, labels, weight=weight), "labeled", "accuracy", estimand="sample"
    ).rows[0]
    known = weight[labels >= 0].sum() / weight.sum()
    assert known * row.value <= row.low <= row.high <= known * row.value + 1 - known


def test_a_certain_looking_ensemble_is_not_certain():
    p = (np.random.default_rng(0).random((30, 1)) < 0.5).astype(float)
    row = fl.estimate(fl.Predictions(p), "ensemble", "accuracy", estimand="sample").rows[0]
    assert row.status == "assumption"
    assert row.high > row.low


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (np.array([1.0, None, 0.0], dtype=object), [1, -1, 0]),
        ([True, False, None], [1, 0, -1]),
        ([1, float("nan"), 0], [1, -1, 0]),
        (["1", "", "0"], [1, -1, 0]),
    ],
)
def test_labels_of_many_kinds(labels, expected):
    assert fl.Predictions([[0.5]] * 3, labels).labels.tolist() == expected


def test_two_nameless_functions_are_refused():
    p, labels, _ = binary()
    with pytest.raises(fl.UsageError, match="two metrics are named '<lambda>'"):
        fl.estimate(fl.Predictions(p, labels), metrics=[lambda y, q: 1.0, lambda y, q: 2.0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"by": 3}, "`by` must be the name of a group"),
        ({"workers": "2"}, "`workers` must be a whole number, at least 1; got '2'"),
        ({"workers": 0}, "`workers` must be a whole number, at least 1; got 0"),
        ({"metrics": 3}, "a metric must be a name or a function"),
        ({"metrics": []}, "`metrics` is empty"),
        ({"random_state": -1}, "`random_state` must be a whole number, 0 or larger; got -1"),
        ({"random_state": 1.5}, "`random_state` must be a whole number, 0 or larger; got 1.5"),
        ({"random_state": "a"}, "`random_state` must be a whole number, 0 or larger; got 'a'"),
        ({"confidence_level": "x"}, "`confidence_level` must be between 0 and 1; got 'x'"),
        ({"confidence_level": 1.0}, "`confidence_level` must be between 0 and 1; got 1.0"),
        ({"confidence_level": 0}, "`confidence_level` must be between 0 and 1; got 0"),
        ({"confidence_level": 95}, "`confidence_level` must be between 0 and 1; got 95"),
        ({"confidence_level": math.nan}, "`confidence_level` must be between 0 and 1; got nan"),
        ({"estimand": "both"}, "`estimand` must be 'population' or 'sample'; got 'both'"),
        ({"method": "tempred-ensemble"}, "did you mean 'tempered-ensemble'"),
        ({"metrics": "acuracy"}, "did you mean 'accuracy'"),
        ({"by": "sex"}, "unknown group 'sex'; there is none"),
    ],
)
def test_arguments_are_checked(arguments, message):
    p, labels, _ = binary()
    with pytest.raises(fl.UsageError, match=message) as refused:
        fl.estimate(fl.Predictions(p, labels), **arguments)
    assert "\n" not in str(refused.value)
