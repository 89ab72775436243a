"""Labels that sure classifiers contradict are listed; hard items are not."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import fewlabels as fl
from fewlabels.errors import Status
from fewlabels.evaluation.suspect_labels import suspect_labels
from fewlabels.methods.voices import voices
from fewlabels.report.html import render_page

N, LABELED = 400, 80


def world(seed, kind="p", k=2, skill=2.5, wrong=8, n_models=4, labeled=LABELED):
    """Predictions as keywords, and the rows of the labels that were replaced by another class.

    Probabilities are calibrated but for what the classifiers' errors share.
    """
    rng = np.random.default_rng([seed, k])
    truth = rng.integers(0, k, N)
    noise = rng.normal(size=(N, 1, k)) + rng.normal(size=(N, n_models, k))
    logits = skill * (skill * np.eye(k)[truth][:, None] + noise) / 2
    if k == 2 and kind == "s":
        said = {"scores": logits[:, :, 1] - logits[:, :, 0]}
    elif kind == "y":
        said = {"votes": logits.argmax(axis=2)}
    else:
        p = np.exp(logits)
        said = {"probabilities": p / p.sum(axis=2, keepdims=True)}
    labels = np.where(np.arange(N) < labeled, truth, -1)
    places = rng.choice(labeled, wrong, replace=False)
    labels[places] = (truth[places] + rng.integers(1, k, wrong)) % k
    return said | {"labels": labels, "classes": [f"c{c}" for c in range(k)]}, set(places.tolist())


def found(arguments):
    predictions = fl.Predictions(**arguments)
    return suspect_labels(predictions, voices(predictions))


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("kind", "k", "n_models"),
    [("p", 2, 4), ("p", 5, 4), ("s", 2, 4), ("y", 2, 9), ("y", 4, 9), ("p", 3, 1)],
)
def test_planted_labels_are_found_and_right_ones_are_not(kind, k, n_models):
    """Of 10 runs most list most of the wrong labels first; with right labels hardly any speaks."""
    options = {"kind": kind, "k": k, "n_models": n_models, "skill": 3.5}
    hits, silent = [], 0
    for seed in range(10):
        arguments, places = world(seed, **options)
        suspects = found(arguments)
        if suspects is not None:
            assert (np.diff(suspects.probability) <= 0).all()
            hits.append(len(places.intersection(suspects.rows[:5].tolist())))
        silent += found(world(seed, wrong=0, **options)[0]) is None
    assert len(hits) >= 7
    assert np.mean(hits) >= 4
    assert silent >= 9


@pytest.mark.parametrize("wrong", [0, 8])
def test_of_weak_classifiers_nothing_is_said(wrong):
    """Their errors are everywhere: wrong labels cannot be told from hard items."""
    for kind, n_models in (("p", 4), ("y", 4), ("y", 1)):
        spoken = [
            found(world(s, kind, wrong=wrong, skill=0.7, n_models=n_models)[0]) for s in range(10)
        ]
        assert sum(s is not None for s in spoken) <= 2


def shared_difficulty(seed, share, easiness=2.0, spread=2.0, n_models=7):
    """Judges right with logit P = easiness + skill + difficulty of the item, and wrong labels."""
    rng = np.random.default_rng([seed, 99])
    truth = rng.integers(0, 2, N)
    odds = easiness + rng.normal(0, spread, (N, 1)) + rng.normal(0, 0.5, n_models)
    right = rng.random((N, n_models)) < 1 / (1 + np.exp(-odds))
    labels = np.where(np.arange(N) < 60, truth, -1)
    places = rng.choice(60, round(share * 60), replace=False)
    labels[places] = 1 - truth[places]
    return {"votes": np.where(right, truth[:, None], 1 - truth[:, None]), "labels": labels}


def test_items_that_are_hard_for_all_judges_are_no_wrong_labels():
    """All err on one item of seven, and mostly say so with one voice."""
    spoken = [found(shared_difficulty(seed, 0)) for seed in range(40)]
    assert sum(s is not None for s in spoken) <= 3
    # Of easier items of the same kind wrong labels are still found.
    found_wrong = [found(shared_difficulty(seed, 0.15, 5.0)) for seed in range(10)]
    assert sum(s is not None for s in found_wrong) >= 6


def test_votes_of_two_lenient_judges_contradict_no_label():
    """They call nearly everything right; where both do they are as sure as ever."""
    rng = np.random.default_rng(4)
    truth = (rng.random(N) < 0.7).astype(int)
    lenient = np.where(rng.random((N, 2)) < 0.4, 1, truth[:, None])
    labels = np.where(np.arange(N) < 60, truth, -1)
    assert found({"votes": lenient, "labels": labels}) is None


def test_few_labels_and_rows_that_stand_for_several_items():
    assert found(world(0, wrong=4, labeled=19)[0]) is None
    arguments, _ = world(0)
    assert found(arguments) is not None
    assert found(arguments | {"multiplicity": np.full(N, 2)}) is None


def test_the_order_of_rows_does_not_matter():
    arguments, _ = world(0)
    order = np.random.default_rng(0).permutation(N)
    moved = {
        name: values if name == "classes" else values[order] for name, values in arguments.items()
    }
    before, after = found(arguments), found(moved)
    assert order[after.rows].tolist() == before.rows.tolist()
    assert after.probability.tolist() == before.probability.tolist()
    assert after.predicted.tolist() == before.predicted.tolist()


def test_items_are_named_in_warning_diagnostics_json_text_and_page():
    arguments, places = world(0)
    names = np.array([f"case-{i}" for i in range(N)])
    predictions = fl.Predictions(**arguments, groups={"id": names}, item="id")
    estimates = fl.estimate(predictions, metrics="accuracy")
    (warning,) = [w for w in estimates.warnings if w.startswith("suspect: ")]
    records = estimates.to_dict()["diagnostics"]["suspect_labels"]
    json.dumps(records)
    first = records[0]
    assert first["row"] in places
    assert first["item"] == f"case-{first['row']}"
    assert {first["label"], first["predicted"]} == {"c0", "c1"}
    assert first["label"] == f"c{arguments['labels'][first['row']]}"
    assert 0.2 < records[-1]["probability"] <= first["probability"] <= 1
    told = f"item '{first['item']}' has {first['label']}, predicted {first['predicted']}"
    assert told in warning
    assert warning.count(" has ") == min(len(records), 5)
    assert "suspect: check" in " ".join(estimates.summary().split())
    assert first["item"] in render_page("estimates", estimates.report())
    unnamed = fl.estimate(fl.Predictions(**arguments), metrics="accuracy")
    assert any(f"item {first['row']} (from 0) has" in w for w in unnamed.warnings)


def test_more_than_chance_explains_is_an_assumption_and_no_number_changes(monkeypatch):
    arguments, _ = world(2, k=5, skill=4.0, wrong=16)
    predictions = fl.Predictions(**arguments)
    estimates = fl.estimate(predictions, metrics="accuracy")
    assert {row.status for row in estimates.rows} == {Status.ASSUMPTION}
    assert any("more than chance explains" in w for w in estimates.warnings)
    monkeypatch.setattr("fewlabels.pipeline.suspect_labels", lambda *_: None)
    without = fl.estimate(predictions, metrics="accuracy")
    assert {row.status for row in without.rows} == {Status.OK}
    assert [r[:7] for r in without.rows] == [r[:7] for r in estimates.rows]


def test_copies_and_sparse_votes():
    """A classifier that is there ten times is heard once; sparse votes count as dense ones do."""
    arguments, _ = world(3, "y", n_models=9, skill=3.5)
    once = found(arguments)
    copied = np.concatenate([arguments["votes"], arguments["votes"][:, :1].repeat(9, 1)], axis=1)
    repeated = found(arguments | {"votes": copied})
    np.testing.assert_allclose(repeated.probability, once.probability)
    assert {*repeated.rows.tolist()} == {*once.rows.tolist()}
    predictions = fl.Predictions(**arguments)
    sparse = predictions._with(given_votes=predictions.ballots)
    assert sparse.is_sparse
    again = suspect_labels(sparse, voices(predictions))
    np.testing.assert_allclose(again.probability, once.probability)


def test_a_stream_counts_them_without_rows(tmp_path):
    """Places among the rows that it holds are not those in its files."""
    arguments, _ = world(0)
    columns = {f"p__m{j}__c1": arguments["probabilities"][:, j, 1] for j in range(4)}
    labels = [f"c{c}" if c >= 0 else None for c in arguments["labels"]]
    table = pd.DataFrame({"label": labels} | columns)
    table[::2].to_csv(tmp_path / "a.csv", index=False)
    table[1::2].to_csv(tmp_path / "b.csv", index=False)
    estimates = fl.estimate_files(tmp_path, metrics="accuracy", confidence_level=None)
    records = estimates.diagnostics["suspect_labels"]
    assert {(record["row"], record["item"]) for record in records} == {(None, None)}
    (warning,) = [w for w in estimates.warnings if w.startswith("suspect: ")]
    assert f"check {len(records)} of the 80 labels" in warning
    assert "--engine memory" in warning
    assert " has " not in warning
