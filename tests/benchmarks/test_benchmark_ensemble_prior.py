"""The recipe of the learned prior: what it maximises, and that it finds what is there."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import ensemble_prior as recipe
import fewlabels as fl


def made(right: int, beliefs: int = 4, sets: int = 60) -> recipe.Table:
    """Sets whose metrics are what one belief predicts, by evidence that tells nothing."""
    rng = np.random.default_rng(0)
    mean = rng.uniform(0.3, 0.9, (sets, beliefs, len(recipe.METRICS), 3))
    truth = mean[:, right] + rng.normal(0, 0.01, (sets, len(recipe.METRICS), 3))
    truth[::5, :, 2] = np.nan  # a set of two classifiers
    return recipe.Table(
        np.zeros((sets, beliefs)),
        mean,
        np.full(mean.shape, 0.02),
        truth,
        np.full(sets, 20),
        np.repeat(np.array(["a", "b"]), sets // 2),
    )


@pytest.fixture
def four(monkeypatch):
    """A library of four beliefs in pools."""
    monkeypatch.setattr(recipe, "LIBRARY", recipe.LIBRARY[:4])


@pytest.mark.usefixtures("four")
@pytest.mark.parametrize("right", [0, 2])
def test_the_belief_that_predicts_best_has_the_weight(right):
    weights = recipe.learn(made(right))
    assert weights.sum() == pytest.approx(1)
    assert weights[right] > 0.95


@pytest.mark.usefixtures("four")
def test_evidence_does_what_weights_need_not():
    """Where evidence already points at the right belief of every set, weights may stay even."""
    rng = np.random.default_rng(1)
    table = made(0)
    right = rng.integers(4, size=len(table.truth))
    truth = table.mean[np.arange(len(right)), right]
    evidence = -50.0 * (np.arange(4) != right[:, None])
    weights = recipe.learn(table._replace(truth=truth, evidence=evidence))
    assert weights.min() > 0.05


def test_a_set_is_looked_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(recipe, "LIBRARY", recipe.LIBRARY[:3])
    monkeypatch.setattr(recipe, "POPULATION", 1000)
    first = recipe.look(recipe.Job("hastie", 0), tmp_path)
    assert first.mean.shape[:2] == (3, len(recipe.METRICS))
    assert np.isfinite(first.evidence).all()
    assert first.n_labeled in recipe.LABELED
    assert ((first.truth >= 0) & (first.truth <= 1)).all()
    monkeypatch.setattr(recipe, "make_set", None)
    again = recipe.look(recipe.Job("hastie", 0), tmp_path)
    np.testing.assert_array_equal(again.mean, first.mean)
    assert not list(tmp_path.glob("*.[0-9]*"))


def test_the_shipped_prior_is_of_this_recipe():
    """Its beliefs are the library's, its sets those that the recipe makes, by every family."""
    folder = Path(fl.__file__).parent / "methods" / "ensembles"
    shipped = json.loads((folder / "learned_prior.json").read_text())
    library = {tuple(belief)[1:] for belief in recipe.LIBRARY}
    assert {tuple(recipe.Belief(1.0, *belief))[1:] for belief in shipped["beliefs"]} <= library
    assert {belief[0] for belief in shipped["beliefs"]} == {b.pool for b in recipe.LIBRARY}
    targets = recipe.prior_tables.targets()
    assert shipped["sets"] == 14 * len(recipe.FAMILIES) + len(targets)
    families = {*recipe.FAMILIES, *(target.family for target in targets.values())}
    assert set(shipped["weights"]) == {"", *families}
    # A reference has a weight of its own, beside that of all other beliefs.
    for weights in shipped["weights"].values():
        assert sum(weights) == pytest.approx(2, abs=0.02)
