"""Classifiers below chance by their labels are warned of, and labels that go with none."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from scipy.stats import hypergeom, mannwhitneyu

import fewlabels as fl
from fewlabels.data.agreement import useless
from fewlabels.evaluation.input_facts import (
    below_chance,
    below_chance_by_agreement,
    below_chance_by_rank,
    labels_look_misaligned,
)
from fewlabels.methods.voices import exposed

WORDS = "are the scores reversed, or the classes in another order?"


def test_classes_in_another_order_are_warned_of():
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 3, 400)
    p = rng.dirichlet(np.ones(3), 400)
    right = 0.5 * p + 0.5 * np.eye(3)[truth]
    probabilities = np.stack([right, right[:, [1, 2, 0]]], axis=1)
    labels = np.where(np.arange(400) < 60, truth, -1)
    predictions = fl.Predictions(probabilities, labels, models=["right", "turned"])
    assert below_chance(predictions) == ["turned"]
    warnings = fl.estimate(predictions, metrics="accuracy").warnings
    assert sum(WORDS in line and "turned" in line for line in warnings) == 1
    # It is the first thing to know.
    assert WORDS in warnings[0] or warnings[0].startswith("contradicted")


@pytest.mark.parametrize("kind", ["probabilities", "scores", "votes"])
def test_a_reversed_classifier_of_two_classes(kind):
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 2, 300)
    score = 1 / (1 + np.exp(-rng.normal(3 * truth - 1.5, 1.0)))
    both = np.stack([score, 0.9 - 0.8 * score], axis=1)
    values = {"probabilities": both, "scores": both * 5, "votes": both > 0.5}[kind]
    labels = np.where(np.arange(300) < 40, truth, -1)
    predictions = fl.Predictions(**{kind: values}, labels=labels, models=["right", "turned"])
    assert below_chance(predictions) == ["turned"]


def test_agreement_is_the_hypergeometric_for_two_classes():
    labels = np.r_[np.zeros(30, int), np.ones(20, int)]
    hard = np.r_[np.zeros(8, int), np.ones(22, int), np.zeros(15, int), np.ones(5, int)]
    # Agreements are 2 x + 20 - 23 for x items of class 0 that are called so.
    exact = hypergeom.cdf(8, 50, 30, 23)
    found = below_chance_by_agreement(labels, hard, np.ones(50))
    assert found == pytest.approx(exact, rel=0.35)
    assert below_chance_by_agreement(hard, hard, np.ones(50)) > 0.99
    assert below_chance_by_agreement(np.zeros(5, int), np.zeros(5, int), np.ones(5)) == 1.0


def test_chance_is_hardly_ever_called_reversed():
    """At the 1% level, of 600 classifiers that know nothing: at most 15 (3.7 standard errors)."""
    rng = np.random.default_rng(5)
    false = 0
    for _ in range(60):
        labels = np.where(np.arange(80) < 30, rng.integers(0, 3, 80), -1)
        p = rng.dirichlet(np.ones(3), (80, 10))
        false += len(below_chance(fl.Predictions(p, labels)))
    assert false <= 15


def _judges(rng, accuracies, n_classes, alike=0.0, shuffled=False, n_labeled=60):
    """Votes of judges, and labels of the items or, shuffled, of other items.

    `alike` is how often all of them are right or wrong together.
    """
    truth = rng.integers(0, n_classes, 400)
    together, other = rng.random(400), rng.integers(1, n_classes, 400)
    votes = []
    for accuracy in accuracies:
        luck = np.where(rng.random(400) < alike, together, rng.random(400))
        votes.append(np.where(luck < accuracy, truth, (truth + other) % n_classes))
    known = rng.permutation(truth) if shuffled else truth
    return fl.Predictions(
        votes=np.stack(votes, axis=1), labels=np.where(np.arange(400) < n_labeled, known, -1)
    )


WORLDS = {
    "good": ((0.9, 0.85, 0.8), 2, 0.0),
    "ten classes": ((0.6, 0.5, 0.4), 10, 0.0),
    "one good one": ((0.9, 0.55, 0.55, 0.55), 2, 0.9),
    "all err alike": ((0.65, 0.62, 0.6), 2, 0.7),
}


@pytest.mark.parametrize("world", WORLDS)
def test_labels_of_other_items_are_found(world):
    """By 60 labels in more than 12 of 20 sets; of right labels in none."""
    rng = np.random.default_rng(6)
    sets = [_judges(rng, *WORLDS[world], shuffled=True) for _ in range(20)]
    found = [bool(below_chance(s)) or labels_look_misaligned(s) for s in sets]
    assert sum(found) > 12
    assert not any(labels_look_misaligned(_judges(rng, *WORLDS[world])) for _ in range(20))


def test_labels_of_other_items_are_said():
    rng = np.random.default_rng(7)
    predictions = _judges(rng, *WORLDS["good"], shuffled=True, n_labeled=200)
    warnings = fl.estimate(predictions, metrics="accuracy").warnings
    assert sum(line.startswith("unrelated: ") for line in warnings) == 1


def test_independent_weak_classifiers_say_nothing_of_the_labels():
    """They agree with one another as little as with the labels."""
    rng = np.random.default_rng(8)
    assert not any(labels_look_misaligned(_judges(rng, (0.55,) * 4, 2)) for _ in range(40))


def _annotators(seed: int, *, shuffled: bool) -> fl.Predictions:
    """5 votes of each of 500 items, by 5,000 annotators: of labeled items mostly one, or none."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=500)
    item, who = np.repeat(np.arange(500), 5), rng.permutation(5_000)[:2_500]
    votes = np.where(rng.random(2_500) < 0.8, truth[item], 1 - truth[item])
    known = rng.permutation(truth) if shuffled else truth
    return fl.Predictions(
        votes=scipy.sparse.csr_matrix((votes + 1, (item, who)), (500, 5_000)),
        labels=np.where(np.arange(500) < 100, known, -1),
    )


def test_annotators_of_one_labeled_item_each_tell_nothing_of_chance():
    """How often one of them is right by chance is not to be seen, and is not taken for certain."""
    assert not any(labels_look_misaligned(_annotators(seed, shuffled=False)) for seed in range(5))


def _with_a_judge_of_known_labels(seed: int, accuracy: float, *, leak: bool) -> fl.Predictions:
    """Two judges that are right on 80%, and one that has been given the 40 labels, or not."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, 800)
    votes = np.stack(
        [np.where(rng.random(800) < a, truth, 1 - truth) for a in (accuracy, 0.8, 0.8)], axis=1
    )
    if leak:
        votes[:40, 0] = truth[:40]
    return fl.Predictions(votes=votes, labels=np.where(np.arange(800) < 40, truth, -1))


def test_a_judge_that_has_been_given_the_labels_is_said():
    """Found in nearly nine of ten sets, and in hardly any where an excellent judge was not."""
    worlds = [_with_a_judge_of_known_labels(seed, 0.7, leak=True) for seed in range(5)]
    lines = [fl.estimate(one, metrics="accuracy").warnings for one in worlds]
    assert sum(any(w.startswith("seen: model0 is right") for w in said) for said in lines) >= 3
    honest = [_with_a_judge_of_known_labels(seed, 0.99, leak=False) for seed in range(20)]
    assert sum(bool(exposed(one)) for one in honest) <= 2


@pytest.mark.parametrize("positive", [0.02, 0.3, 0.97])
@pytest.mark.parametrize("digits", [1, 9])
def test_ranks_below_chance_are_those_of_scipy(positive: float, digits: int) -> None:
    """Exact for few items of a class without ties, else normal with ties and continuity."""
    rng = np.random.default_rng(0)
    for n in (5, 40, 250):
        for _ in range(8):
            scores, of_class = rng.normal(size=n).round(digits), rng.random(n) < positive
            of_class[0], of_class[1] = True, False
            wanted = mannwhitneyu(scores[of_class], scores[~of_class], alternative="less").pvalue
            assert below_chance_by_rank(scores, of_class) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("positive", ["bad", "good"])
def test_scores_are_of_use_where_they_rank_the_positive_class_first(positive: str) -> None:
    """Whichever of the two classes that is; of no use the other way round, or at random."""
    rng = np.random.default_rng(1)
    of_class = rng.random(300) < 0.5
    labels = np.where(of_class == (positive == "bad"), "bad", "good")
    scores = 10 * (rng.normal(size=(300, 1)) + of_class[:, None] * [2.0, -2.0, 0.0])
    names = {name: scores[:, j] for j, name in enumerate(["right", "reversed", "random"])}
    items = fl.Predictions(names, labels, classes=["bad", "good"], positive=positive)
    assert useless(items) == ["reversed", "random"]
