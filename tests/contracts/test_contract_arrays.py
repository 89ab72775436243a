"""What arrays of `Predictions` mean: a block of classes is one classifier, a mapping is several."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import fewlabels as fl

N = 60
RNG = np.random.default_rng(11)
TRUTH = RNG.integers(0, 2, N)
P = np.clip(0.7 * TRUTH + 0.3 * RNG.random(N), 0.01, 0.99)
BLOCK = np.stack([1 - P, P], axis=1)


def test_a_block_whose_rows_sum_to_one_is_one_classifier():
    found = fl.Predictions(BLOCK, TRUTH)
    assert (found.n_models, found.n_classes) == (1, 2)
    np.testing.assert_array_equal(found.probabilities[:, 0], BLOCK)
    assert "one classifier, 2 classes" in found.notes[0]
    three = RNG.dirichlet(np.ones(3), N)
    assert fl.Predictions(three).n_classes == 3
    # Two classifiers of two classes, as before.
    other = np.stack([P, P**2], axis=1)
    assert fl.Predictions(other, TRUTH).n_models == 2
    named = fl.Predictions(BLOCK, TRUTH, models=["rf"], classes=["no", "yes"])
    assert (named.models, named.classes) == (("rf",), ("no", "yes"))


def test_two_names_for_such_a_block_are_refused():
    with pytest.raises(fl.InputError, match=r"sum to 1 in every row.*`models` names 2; pass {name"):
        fl.Predictions(BLOCK, TRUTH, models=["a", "b"])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, dict])
def test_a_mapping_of_classifiers(frame):
    hard, score = (P > 0.5).astype(int), np.log(P / (1 - P))
    columns = {"1": P, "0": 1 - P}
    told = BLOCK if frame is dict else frame(columns)
    found = fl.Predictions(
        {"rf": told, "nb": P, "votes": hard, "text": np.where(P > 0.5, "1", "0"), "svm": score},
        TRUTH,
        classes=[0, 1],
    )
    assert found.models == ("rf", "nb", "votes", "text", "svm")
    for j in (0, 1):
        np.testing.assert_array_equal(found.probabilities[:, j, 1], P)
    for j in (2, 3):
        np.testing.assert_array_equal(found.votes[:, j], hard)
    np.testing.assert_array_equal(found.scores[:, 4], score)
    assert np.isnan(found.scores[:, :4]).all()


def test_a_mapping_is_taken_wherever_predictions_are():
    labels = np.where(np.arange(N) < 30, TRUTH, -1)
    given = {"rf": BLOCK, "nb": np.stack([1 - P**2, P**2], axis=1)}
    plain = fl.Predictions(given, labels)
    one = fl.estimate(plain, metrics="accuracy").to_dict()["estimates"]
    two = fl.estimate({**given, "label": labels}, metrics="accuracy").to_dict()["estimates"]
    assert one == two
    assert fl.curve({**given, "y_true": labels}, model="nb").to_dict()["recall"]
    assert fl.estimate(given, metrics="accuracy").n_labeled == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "mapping of classifiers is empty"),
        ({"a": P, "b": P[:5]}, "'b' has 5"),
        ({"a": BLOCK * 2}, "rows do not sum to 1"),
        ({"a": np.where(P > 0.5, "x", "y"), "b": BLOCK}, "order with `classes`"),
        ({"a": pd.DataFrame({"u": P, "v": 1 - P})}, "columns u, v, but the classes are 0, 1"),
        ({"a": RNG.dirichlet(np.ones(3), N), "b": P}, "'b' has one probability per item"),
    ],
)
def test_what_is_no_mapping_of_classifiers(given, message):
    with pytest.raises(fl.InputError, match=message):
        fl.Predictions(given, classes=[0, 1] if "u, v" in message else None)
    with pytest.raises(fl.UsageError, match="put `votes` into it"):
        fl.Predictions({"a": P}, votes=TRUTH[:, None])


def test_rounded_arrays_are_renormalised_and_never_told_to_take_a_softmax():
    p = RNG.dirichlet(np.ones(3), N).round(2)
    block = np.stack([p, p], axis=1)
    found = fl.Predictions(block)
    np.testing.assert_allclose(found.probabilities.sum(axis=2), 1)
    rows = int((np.abs(p.sum(axis=1) - 1) > 1e-6).sum())  # not once for each classifier
    assert [n for n in found.notes if n.startswith(f"{rows} rows ")]
    with pytest.raises(fl.InputError, match="one against the rest") as refused:
        fl.Predictions(block * 0.8)
    assert "softmax" not in str(refused.value)


@pytest.mark.parametrize(
    ("classes", "positive"),
    [(["fraud", "legit"], "fraud"), (["a", "b"], "b"), (["yes", "no"], "yes"), ([0, 1], 1)],
)
def test_the_positive_class_is_that_of_a_known_word(classes, positive):
    labels = np.where(np.arange(N) < 40, TRUTH, -1)
    given = fl.Predictions(BLOCK[:, None], labels, classes=classes)
    assert given.positive == positive
    turned = given.with_positive()
    assert turned.classes[1] == positive
    found = fl.estimate(given, method="labeled", metrics="recall")
    k = classes.index(positive)
    known = labels == k
    assert found.get("model0", "recall").value == pytest.approx(
        (BLOCK.argmax(axis=1)[known] == k).mean()
    )
    other = classes[1 - k]
    asked = fl.estimate(given, method="labeled", metrics="recall", positive=other)
    assert asked.to_dict()["positive"] == str(other)
    scores = fl.Predictions(scores=P[:, None], labels=labels, classes=classes)
    np.testing.assert_array_equal(
        scores.with_positive(other).scores, -scores.with_positive(positive).scores
    )


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ([1, True], "must be different"),
        ([0, 1, 1.0], "must be different"),
        (["1", 1], "must be different"),
        ([None, 1], "must be names or numbers; got None"),
        ([float("nan"), 1], "must be names or numbers; got nan"),
        ([np.float32("nan"), 1], "must be names or numbers; got nan"),
        ([np.datetime64("NaT", "D"), 1], "must be names or numbers"),
        ([pd.NA, 1], "must be names or numbers; got <NA>"),
        ([pd.NaT, 1], "must be names or numbers; got NaT"),
        ([[0], [1]], r"must be names or numbers; got \[0\]"),
    ],
)
def test_classes_are_different_names(classes, message):
    votes = np.array([[0, 1], [1, 0]])
    with pytest.raises(fl.InputError, match=message) as refused:
        fl.Predictions(votes=votes, classes=classes)
    assert "\n" not in str(refused.value)
    with pytest.raises(fl.InputError, match=message):
        fl.Predictions({"a": votes[:, 0]}, classes=classes)
    assert fl.Predictions(votes=votes, classes=[False, True]).classes == (False, True)


@pytest.mark.parametrize("kind", ["probabilities", "scores", "votes", "mapping"])
def test_labels_of_minus_one_and_one_are_classes_where_the_classifiers_tell(kind):
    signs, noisy = 2 * TRUTH - 1, np.where(RNG.random(N) < 0.15, 1 - P, P)
    said = {
        "probabilities": {"probabilities": noisy[:, None]},
        "scores": {"scores": noisy[:, None] - 0.5},
        "votes": {"votes": np.where(noisy > 0.5, 1, -1)[:, None]},
        "mapping": {"probabilities": {"svm": np.where(noisy > 0.5, 1, -1)}},
    }[kind]
    found = fl.Predictions(labels=signs, **said)
    np.testing.assert_array_equal(found.labels, TRUTH)
    assert "-1 is read as the class 0" in found.notes[-1]
    if kind in ("votes", "mapping"):
        np.testing.assert_array_equal(found.votes[:, 0], noisy > 0.5)
    # NaN, named classes, few labels, and labels at random say that -1 is unknown.
    unknown = np.where(signs > 0, 1.0, np.nan)
    assert fl.Predictions(labels=unknown, **said).n_labeled == TRUTH.sum()
    if kind != "mapping":
        assert fl.Predictions(labels=signs, classes=[0, 1], **said).n_labeled == TRUTH.sum()


def test_labels_of_one_class_and_no_evidence_leave_minus_one_unknown():
    some = np.where(np.arange(N) % 3 == 0, 1, -1)
    found = fl.Predictions(P[:, None], some)
    assert found.n_labeled == 20
    assert "-1 is read as unlabeled" in found.notes[-1]
    assert not fl.Predictions(P[:12, None], some[:12]).notes


def test_a_threshold_of_one_half_is_the_default_prediction():
    p = np.array([0.5, 0.3, 0.5, 0.7, 0.49999])
    for classes, positive in (([0, 1], 1), (["yes", "no"], "yes")):
        found = fl.Predictions(p[:, None], TRUTH[:5], classes=classes, positive=positive)
        np.testing.assert_array_equal(found.thresholded(0.5).hard, found.hard)
    low = fl.Predictions(p[:, None], TRUTH[:5]).thresholded(0.3)
    assert low.hard[:, 0].tolist() == [1, 1, 1, 1, 1]
