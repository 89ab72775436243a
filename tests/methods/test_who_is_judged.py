"""Classifiers are judged by beliefs about them: an outsider, copies, a leak, unlike groups."""

from __future__ import annotations

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.checks.conditions import parse_requirement
from fewlabels.evaluation.differences import errors_together
from fewlabels.kernels.importance import kept_places
from fewlabels.methods.voices import copies, exposed, voices
from fewlabels.models import LearnedEnsemble


def voters(n: int, alike: int, seed: int, known: int = 50) -> tuple[fl.Predictions, np.ndarray]:
    """Votes of an outsider, right on 88%, and of others that are right on 79% and err together."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n)
    shared, own = rng.normal(size=(n, 1, 3)), rng.normal(size=(n, alike + 1, 3))
    common = np.r_[0.0, np.full(alike, 0.85)][:, None]
    noise = np.sqrt(common) * shared + np.sqrt(1 - common) * own
    skill = np.r_[2.2, np.full(alike, 1.6)][:, None]
    votes = (skill * np.eye(3)[truth][:, None] + noise).argmax(axis=2)
    return fl.Predictions(votes=votes, labels=np.where(np.arange(n) < known, truth, -1)), truth


def accuracies(predictions: fl.Predictions, seed: int = 0) -> dict[str, float]:
    found = fl.estimate(predictions, LearnedEnsemble(), "accuracy", random_state=seed, workers=1)
    return {row.model: row.value for row in found.rows}


@pytest.mark.slow
def test_an_outsider_better_than_nine_alike_is_seen():
    gaps = []
    for seed in range(12):
        predictions, truth = voters(1_000, 9, seed)
        right = (predictions.hard[:, 0] == truth).mean()
        gaps.append(accuracies(predictions)["model0"] - right)
    assert abs(np.mean(gaps)) < 0.035, gaps


@pytest.mark.parametrize("kind", ["votes", "probabilities"])
def test_a_copy_moves_no_other_value(kind):
    if kind == "votes":
        once, _ = voters(600, 4, 1)
        block = once.hard[:, [0, 1, 2, 3, 4, 1, 1]].astype(int)
        more = fl.Predictions(votes=block, labels=once.labels)
    else:
        rng = np.random.default_rng(3)
        truth = rng.random(600) < 0.3
        p = 1 / (1 + np.exp(-(3 * (truth[:, None] - 0.5) + rng.normal(size=(600, 4)))))
        labels = np.where(np.arange(600) < 40, truth, -1)
        once, more = (fl.Predictions(p[:, c], labels) for c in ([0, 1, 2, 3], [0, 1, 2, 3, 1, 1]))
    assert copies(more) == {f"model{j}": "model1" for j in range(once.n_models, more.n_models)}
    alone, beside = accuracies(once), accuracies(more)
    assert max(abs(beside[name] - alone[name]) for name in alone) < 0.003
    assert all(beside[name] == beside["model1"] for name in copies(more))


def test_classifiers_alike_by_chance_are_no_copies():
    few = fl.Predictions(votes=np.ones((10, 3), dtype=int), classes=[0, 1])
    assert voices(few) == few.models


def test_a_classifier_that_was_given_the_labels_leaves_the_pool():
    rng = np.random.default_rng(5)
    n, known = 800, 60
    truth = rng.integers(2, size=n)
    votes = np.where(rng.random((n, 6)) < 0.75, truth[:, None], 1 - truth[:, None])
    leaked = np.where(np.arange(n) < known, truth, votes[:, 0])
    labels = np.where(np.arange(n) < known, truth, -1)
    honest = fl.Predictions(votes=votes, labels=labels)
    more = fl.Predictions(votes=np.column_stack([votes, leaked]), labels=labels)
    assert [one.model for one in exposed(more)] == ["model6"]
    alone, beside = accuracies(honest), accuracies(more)
    assert max(abs(beside[name] - alone[name]) for name in alone) < 0.01
    # Its votes elsewhere are model0's, and it is judged by the others as that one is.
    assert abs(beside["model6"] - alone["model0"]) < 0.06


def test_a_group_in_which_scores_mean_something_else():
    """In one of four groups the scores are far off: its labels say so, and not of the others."""
    rng = np.random.default_rng(7)
    n = 2_000
    group = rng.integers(4, size=n)
    logit = rng.normal(0, 2, size=n)
    truth = rng.random(n) < 1 / (1 + np.exp(-np.where(group == 3, -0.3 * logit, logit)))
    noisy = logit[:, None] + 0.5 * rng.normal(size=(n, 3))
    predictions = fl.Predictions(
        1 / (1 + np.exp(-noisy)), np.where(np.arange(n) < 120, truth, -1), groups={"site": group}
    )
    found = fl.estimate(predictions, LearnedEnsemble(), "accuracy", by="site", workers=1)
    right = (predictions.hard == truth[:, None]).astype(float)
    for row in found.rows:
        if row.group is not None and row.model == "model0":
            true = right[group == int(row.group.partition("=")[2]), 0].mean()
            assert abs(row.value - true) < (0.16 if row.group.endswith("3") else 0.08), row


def test_places_are_kept_by_weight():
    rng = np.random.default_rng(0)
    weights = rng.gamma(0.5, size=4_000)
    places = kept_places(weights)
    counts = np.bincount(places, minlength=4_000)
    assert counts.sum() == 4_000
    np.testing.assert_allclose(counts, weights / weights.mean(), atol=1.01)
    kept = places == np.arange(4_000)
    assert kept.mean() == pytest.approx(np.minimum(weights / weights.mean(), 1).mean(), abs=1e-3)
    np.testing.assert_array_equal(kept_places(np.full(7, 3.0)), np.arange(7))
    np.testing.assert_array_equal(kept_places(np.array([0.0, 0.0, 5.0])), [2, 2, 2])


def test_labels_chosen_by_the_scores_are_not_taken_for_the_rest():
    """Labels of the surest fifth: the model of P(class | scores) stays, the labels alone do not."""
    rng = np.random.default_rng(11)
    n = 1_000
    logit = rng.normal(0, 1.5, size=n)
    truth = rng.random(n) < 1 / (1 + np.exp(-logit))
    p = 1 / (1 + np.exp(-(logit[:, None] + 0.4 * rng.normal(size=(n, 4)))))
    surest = np.argsort(-np.abs(p.mean(axis=1) - 0.5))[: n // 5]
    labels = np.full(n, -1)
    chosen = rng.choice(surest, 50, replace=False)
    labels[chosen] = truth[chosen]
    predictions = fl.Predictions(p, labels)
    right = (predictions.hard == truth[:, None]).mean(axis=0)
    of_labels = (predictions.hard == truth[:, None])[chosen].mean(axis=0)
    assert (of_labels - right).min() > 0.1
    found = fl.estimate(predictions, metrics="accuracy", workers=1)
    assert any(warning.startswith("shift: ") for warning in found.warnings)
    for row, true in zip(found.rows, right, strict=True):
        assert abs(row.value - true) < 0.05
        assert row.status is fl.Status.ASSUMPTION
        assert parse_requirement(f"{row.model}:accuracy>=0.5").failures(found)


def test_the_best_of_several_is_not_moved_to_labels_of_the_surest_either():
    """Where a classifier says nothing of some items, accuracies are measured on the others."""
    rng = np.random.default_rng(12)
    n = 1_000
    logit = rng.normal(0, 1.5, size=n)
    truth = rng.random(n) < 1 / (1 + np.exp(-logit))
    p = 1 / (1 + np.exp(-(logit[:, None] + 0.4 * rng.normal(size=(n, 3)))))
    surest = np.argsort(-np.abs(p.mean(axis=1) - 0.5))[: n // 5]
    chosen = rng.choice(surest, 50, replace=False)
    silent = np.setdiff1d(rng.choice(n, 300, replace=False), chosen)
    right = (p > 0.5) == truth[:, None]
    p[silent, 2] = np.nan
    labels = np.full(n, -1)
    labels[chosen] = truth[chosen]
    found = fl.estimate(fl.Predictions(p, labels), metrics="accuracy", workers=1)
    best = errors_together(found).best_single.value
    there = ~np.isin(np.arange(n), silent)
    assert right[chosen].mean() > right.mean() + 0.1
    assert abs(best - right[there].mean(axis=0).max()) < 0.05
