"""Majority vote: what is particular to it."""

from __future__ import annotations

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.methods.baselines.plain import MajorityVote


def votes_with_labels() -> fl.Predictions:
    """Three classifiers, right on 4, 3 and 1 of four labeled items; then items without labels."""
    votes = [[1, 1, 0], [0, 0, 1], [1, 1, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1], [1, -1, 0]]
    labels = [1, 0, 1, 0, -1, -1, -1]
    return fl.Predictions(votes=votes, labels=labels, models=["a", "b", "c"])


def test_equal_weights_without_labels():
    predictions = votes_with_labels().with_labels(None)
    posterior = MajorityVote(hard=False).infer(predictions, 0)
    np.testing.assert_allclose(posterior.marginals()[4:, 1], [1 / 3, 1 / 3, 1 / 2])
    unweighted = MajorityVote(weighted=False, hard=False).infer(votes_with_labels(), 0)
    np.testing.assert_allclose(unweighted.marginals()[4:], posterior.marginals()[4:])


def test_a_classifier_without_labeled_votes_weighs_the_mean_of_the_others():
    votes = [[1, 0, -1], [0, 0, -1], [1, 0, 1]]
    posterior = MajorityVote(hard=False).infer(fl.Predictions(votes=votes, labels=[1, 0, -1]), 0)
    assert posterior.diagnostics["weights"] == {"model0": 1.0, "model1": 0.5, "model2": 0.75}
    np.testing.assert_allclose(posterior.marginals()[2, 1], 1.75 / 2.25)


def test_items_without_votes_get_the_mean_share():
    votes = [[1, 0], [0, 0], [-1, -1]]
    posterior = MajorityVote(hard=False).infer(fl.Predictions(votes=votes), 0)
    np.testing.assert_allclose(posterior.marginals()[2], [0.75, 0.25])


def test_draws_spread_around_the_weights():
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=200)
    votes = np.where(rng.random((200, 3)) < [0.9, 0.7, 0.6], truth[:, None], 1 - truth[:, None])
    labels = np.where(np.arange(200) < 50, truth, -1)
    fitted = MajorityVote(hard=False, n_draws=2000).fit(
        fl.Predictions(votes=votes, labels=labels), rng
    )
    right = (votes[:50] == truth[:50, None]).mean(axis=0)
    # The Bayesian bootstrap of a mean of 50: sd sqrt(p (1 - p) / 51).
    sd = np.sqrt(right * (1 - right) / 51)
    np.testing.assert_allclose(fitted.refits.mean(axis=1), right, atol=4 * sd.max() / np.sqrt(2000))
    np.testing.assert_allclose(fitted.refits.std(axis=1), sd, rtol=0.08)


def test_annotators_can_speak_against_unanimous_votes():
    histogram = [[0, 0], [9, 0], [0, 9], [9, 0]]
    predictions = fl.Predictions(votes=[[1, 1, 1]] * 4, histogram=histogram)
    posterior = MajorityVote(hard=False).infer(predictions, 0)
    assert posterior.marginals()[1, 0] > 0.99
    block = posterior.parameters.block(np.arange(3), slice(None))
    assert (block[1, 0] > 0.99).all()


def test_scores_alone_are_not_enough():
    with pytest.raises(fl.InputError, match="'majority-vote' needs hard predictions"):
        MajorityVote(hard=False).infer(fl.Predictions(scores=[[0.3], [1.2]]), 0)


def test_a_classifier_of_scores_is_left_out():
    predictions = fl.Predictions(
        votes=[[1, -1], [0, -1]], scores=[[np.nan, 2.0], [np.nan, 1.0]], models=["a", "b"]
    )
    assert list(MajorityVote(hard=False).infer(predictions, 0).diagnostics["weights"]) == ["a"]


def test_repeated_votes_count():
    votes, again = [[1, 0, 0], [0, 1, 1]], [(0, 0, 1), (0, 0, 1)]
    predictions = fl.Predictions(votes=votes, repeated_votes=again)
    shares = MajorityVote(hard=False).infer(predictions, 0).marginals()
    np.testing.assert_allclose(shares[:, 1], [3 / 5, 2 / 3])
    np.testing.assert_array_equal(MajorityVote().infer(predictions, 0).marginals()[:, 1], [1, 1])


def test_repeated_votes_count_for_the_accuracy():
    predictions = fl.Predictions(
        votes=[[1, 0], [1, 1], [0, 1]], labels=[1, 0, -1], repeated_votes=[(0, 0, 0), (0, 1, 0)]
    )
    weights = MajorityVote().infer(predictions, 0).diagnostics["weights"]
    assert weights == pytest.approx({"model0": 1 / 3, "model1": 0.0})


def test_a_class_that_nobody_votes_for_is_said():
    predictions = fl.Predictions(votes=[[0, 1, 0], [1, 1, 0]], classes=["a", "b", "c"])
    said = MajorityVote().infer(predictions, 0).warnings
    assert any("no classifier ever votes for class c" in w for w in said)


def test_as_in_the_paper_two_classes_are_decided_and_more_keep_their_shares():
    for classes, votes in ((2, [[1, 1, 0]]), (3, [[2, 2, 0]])):
        predictions = fl.Predictions(votes=votes, classes=range(classes))
        two, three = [0, 1], [1 / 3, 0, 2 / 3]
        usual = MajorityVote().infer(predictions, 0).marginals()[0]
        np.testing.assert_allclose(usual, two if classes == 2 else three)
