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


def surest(m: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probabilities of m classifiers of 1,000 items, truths, and 50 of the surest fifth."""
    rng = np.random.default_rng(seed)
    logit = rng.normal(0, 1.5, size=1_000)
    truth = rng.random(1_000) < 1 / (1 + np.exp(-logit))
    p = 1 / (1 + np.exp(-(logit[:, None] + 0.4 * rng.normal(size=(1_000, m)))))
    fifth = np.argsort(-np.abs(p.mean(axis=1) - 0.5))[:200]
    return p, truth, rng.choice(fifth, 50, replace=False)


def shown(truth: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    return np.where(np.isin(np.arange(len(truth)), chosen), truth, -1)


def test_labels_chosen_by_the_scores_are_not_taken_for_the_rest():
    """Labels of the surest fifth: the model of P(class | scores) stays, the labels alone do not."""
    p, truth, chosen = surest(4, 11)
    right = (p > 0.5) == truth[:, None]
    assert (right[chosen].mean(axis=0) - right.mean(axis=0)).min() > 0.1
    found = fl.estimate(fl.Predictions(p, shown(truth, chosen)), metrics="accuracy", workers=1)
    assert any(warning.startswith("shift: ") for warning in found.warnings)
    for row, true in zip(found.rows, right.mean(axis=0), strict=True):
        assert abs(row.value - true) < 0.05
        assert row.status is fl.Status.ASSUMPTION
        assert parse_requirement(f"{row.model}:accuracy>=0.5").failures(found)


def test_the_best_of_several_is_not_moved_to_labels_of_the_surest_either():
    """Where a classifier says nothing of some items, accuracies are measured on the others."""
    p, truth, chosen = surest(3, 12)
    right = (p > 0.5) == truth[:, None]
    silent = np.setdiff1d(np.random.default_rng(0).choice(1_000, 300, replace=False), chosen)
    p[silent, 2] = np.nan
    found = fl.estimate(fl.Predictions(p, shown(truth, chosen)), metrics="accuracy", workers=1)
    there = ~np.isin(np.arange(1_000), silent)
    assert right[chosen].mean() > right.mean() + 0.1
    best = errors_together(found).best_single.value
    assert abs(best - right[there].mean(axis=0).max()) < 0.05


def test_rows_of_a_cluster_are_no_further_evidence_of_a_leak_or_a_choice():
    """Each item eight times: 480 rows with a label look unlike the others, 60 items do not."""
    rng = np.random.default_rng(1)
    truth = rng.integers(2, size=120)
    z = 1.2 * (2 * truth[:, None] - 1) + rng.normal(size=(120, 2))
    labels = np.where(np.arange(120) < 60, truth, -1)
    item = np.repeat(np.arange(120), 8)
    p = 1 / (1 + np.exp(-z))
    rows = fl.Predictions(p[item], labels[item], groups={"case": item.astype(str)})
    once = fl.Predictions(p, labels)
    assert not exposed(once)
    assert exposed(rows)
    assert not exposed(rows.with_clusters("case"))
    found = fl.estimate(rows, metrics="accuracy", cluster="case", workers=1)
    assert not any(w.startswith(("seen", "shift")) for w in found.warnings)
    assert {row.status for row in found.rows} == {fl.Status.OK}
