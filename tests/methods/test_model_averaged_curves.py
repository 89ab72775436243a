"""averaged-curves: two beliefs about one score, and what labels make of their weights."""

from __future__ import annotations

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.methods.curves.averaged_curves import DOUBT, Alternatives, AveragedCurves
from fewlabels.methods.curves.monotone_curves import MonotoneCurves
from fewlabels.models import SPE
from fewlabels.posterior import Fixed


def scored(scores: np.ndarray, labels: np.ndarray) -> fl.Predictions:
    return fl.Predictions(scores=scores[:, None], labels=labels, models=["a"], classes=(0, 1))


def normal_scores(n: int, known: int, seed: int) -> tuple[fl.Predictions, np.ndarray]:
    """Normal scores of either class, of equal spread."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.3).astype(int)
    scores = rng.normal(2.2 * truth, 1.0)
    return scored(scores, np.where(np.arange(n) < known, truth, -1)), truth


def two_humps(n: int, known: int, seed: int) -> tuple[fl.Predictions, np.ndarray]:
    """Two humps that are not the classes: nine in ten of the upper one are negative too."""
    rng = np.random.default_rng(seed)
    upper = rng.random(n) < 0.4
    truth = (upper & (rng.random(n) < 0.1)).astype(int)
    scores = rng.normal(4.0 * upper, 1.0)
    return scored(scores, np.where(np.arange(n) < known, truth, -1)), truth


def weight_of(predictions: fl.Predictions, seed: int = 0) -> float:
    posterior = AveragedCurves().infer(predictions, seed)
    return float(posterior.diagnostics["weights"]["a"]["spe"])


def test_labels_decide_between_the_two():
    right = [weight_of(normal_scores(1000, 40, seed)[0]) for seed in range(4)]
    wrong = [weight_of(two_humps(1000, 40, seed)[0]) for seed in range(4)]
    assert np.mean(right) > 0.6
    # What is left is the share of the draws that keeps the weights of the start.
    assert wrong == pytest.approx([DOUBT / 2] * 4, abs=0.01)


@pytest.mark.parametrize("place", [0, 3, 11])
def test_evidence_is_a_probability_of_labels(place):
    """Of one item the two labels have probabilities that sum to one, in both beliefs."""
    rng = np.random.default_rng(2)
    scores = np.sort(rng.normal(2.0 * (rng.random(120) < 0.4), 1.0))[:: -1 if place else 1]
    by_densities, by_curves = [], []
    for label in (0, 1):
        labels = np.full(len(scores), -1)
        labels[place] = label
        predictions = scored(scores, labels)
        found = SPE(selection="average").densities(predictions, np.random.default_rng(0))
        assert found is not None
        by_densities.append(np.exp(found.log_predictive))
        curves = MonotoneCurves(particles=2000).fit_one(predictions, np.random.default_rng(0))
        by_curves.append(np.exp(curves.log_evidence))
    assert sum(by_densities) == pytest.approx(1.0, abs=0.08)
    assert sum(by_curves) == pytest.approx(1.0, abs=0.05)


def test_is_nearer_than_either_belief_where_it_is_wrong():
    """Over lists of both kinds the average is about as near to P(label | score) as the better."""
    gaps = []
    for make in (normal_scores, two_humps):
        for seed in range(4):
            predictions, truth = make(800, 40, seed)
            hidden = predictions.labels < 0
            models = (AveragedCurves(), MonotoneCurves(), SPE(selection="average"))
            found = [model.infer(predictions, seed).marginals()[hidden, 1] for model in models]
            gaps.append([((one - truth[hidden]) ** 2).mean() for one in found])
    average, curves, densities = np.mean(gaps, axis=0)
    assert average < min(curves, densities) * 1.05
    assert max(curves, densities) > 1.1 * average


def test_alternatives_are_draws_of_their_parts():
    parts = [Fixed(np.full((3, 2), 0.5)), Fixed(np.tile([0.9, 0.1], (3, 1)))]
    both = Alternatives(parts, np.array([0, 1, 1, 0]), np.zeros(4, dtype=np.int64))
    found = both.block(np.array([1, 0, 2]), slice(1, 3))
    assert found.shape == (2, 2, 3)
    np.testing.assert_array_equal(found[:, 0], [[0.9, 0.5, 0.9]] * 2)


def test_several_classes_are_monotone_curves():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), size=(60, 1))
    predictions = fl.Predictions(p, np.where(np.arange(60) < 20, rng.integers(3, size=60), -1))
    found, alone = (
        m.infer(predictions, 0).marginals() for m in (AveragedCurves(), MonotoneCurves())
    )
    np.testing.assert_array_equal(found, alone)


def test_many_scores_cost_no_more_than_some():
    """The densities see all labeled items and as many others as they are allowed."""
    predictions, _ = normal_scores(3000, 30, 0)
    few = AveragedCurves(most_scores=500).infer(predictions, 0)
    assert few.diagnostics["weights"]["a"]["spe"] > 0.2
    assert few.marginals().shape == (3000, 2)
    np.testing.assert_array_equal(few.marginals()[:30, 1], predictions.labels[:30])


def test_scores_that_say_nothing_leave_the_curves():
    predictions = scored(np.ones(40), np.where(np.arange(40) < 10, np.arange(40) % 2, -1))
    posterior = AveragedCurves().infer(predictions, 0)
    assert posterior.diagnostics["weights"]["a"]["spe"] == 0


def test_bad_settings():
    with pytest.raises(fl.UsageError, match="`share` must be between 0 and 1"):
        AveragedCurves(share=1.0)
    with pytest.raises(fl.UsageError, match="`most_scores` must be"):
        AveragedCurves(most_scores=0)
