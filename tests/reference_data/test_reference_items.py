"""Reference data in the terms of the predictions at hand: classes, classifiers, items, words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fewlabels as fl
from fewlabels.data.inputs import apply_thresholds, reference_of
from fewlabels.errors import InputError, UsageError


def made(
    n: int = 40,
    models: tuple[str, ...] = ("a", "b", "c"),
    seed: int = 0,
    digits: int = 15,
    **more: Any,
) -> fl.Predictions:
    """Two classes, all items labeled."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=n)
    p = 1 / (1 + np.exp(-rng.normal(2.0 * truth[:, None] - 1, size=(n, len(models)))))
    p = np.round(p, digits)
    more = {"labels": truth, "classes": ["ham", "spam"]} | more
    return fl.Predictions(p, models=list(models), **more)


def column(predictions: fl.Predictions, model: str) -> np.ndarray:
    assert predictions.probabilities is not None
    return predictions.probabilities[:, predictions.models.index(model)]


def test_classifiers_come_in_the_order_of_the_target_and_absent_ones_are_missing() -> None:
    target, given = made(), made(25, ("extra", "c", "a"), seed=1)
    found = reference_of(given, target)
    assert found.models == target.models
    np.testing.assert_array_equal(column(found, "a"), column(given, "a"))
    np.testing.assert_array_equal(column(found, "c"), column(given, "c"))
    assert np.isnan(column(found, "b")).all()
    assert not found.has_hard[:, 1].any()
    assert any("left out: extra" in note for note in found.notes)


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (["ham", "spam"], ["spam", "ham"]),
        (["ham", "spam"], ["Spam", " HAM"]),
        ([0, 1], ["yes", "no"]),
    ],
)
def test_classes_are_matched_by_what_they_mean(mine: list[Any], theirs: list[str]) -> None:
    """The same items, whose classes are written in another order or way."""
    target = made(classes=mine)
    assert target.probabilities is not None
    given = fl.Predictions(
        target.probabilities[:, :, ::-1], 1 - target.labels, models=target.models, classes=theirs,
        votes=1 - target.hard,
    )  # fmt: skip
    found = reference_of(given, target)
    assert (found.classes, found.positive) == (target.classes, target.positive)
    np.testing.assert_array_equal(found.labels, target.labels)
    np.testing.assert_allclose(found.probabilities, target.probabilities)
    np.testing.assert_array_equal(found.votes, target.hard)


def test_many_classes_in_another_order() -> None:
    rng = np.random.default_rng(0)
    names = ["cat", "dog", "cow"]
    p, labels = rng.dirichlet(np.ones(3), size=(30, 2)), rng.integers(3, size=30)
    target = fl.Predictions(p, labels, models=["a", "b"], classes=names)
    order = [2, 0, 1]
    given = fl.Predictions(
        p[:, ::-1][:, :, order], np.argsort(order)[labels], models=["b", "a"],
        classes=[names[k] for k in order], repeated_votes=[[4, 0, 0], [5, 1, 1]],
    )  # fmt: skip
    found = reference_of(given, target)
    np.testing.assert_array_equal(found.labels, labels)
    np.testing.assert_allclose(found.probabilities, p)
    assert found.repeated_votes is not None
    # Classifier 0 of the reference is b, its class 0 is cow.
    assert sorted(found.repeated_votes.tolist()) == [[4, 1, 2], [5, 0, 0]]


def test_scores_are_scores_of_the_positive_class_of_the_target() -> None:
    labels = np.arange(12) % 2
    scores = np.linspace(-1, 1, 12)[:, None]
    target = fl.Predictions(scores=scores, labels=labels, classes=["ham", "spam"], models=["s"])
    same = fl.Predictions(scores=scores, labels=labels, classes=["ham", "spam"], models=["s"])
    of_ham = fl.Predictions(
        scores=-scores, labels=labels, classes=["ham", "spam"], models=["s"], positive="ham"
    )
    for given in (same, of_ham):
        found = reference_of(given, target)
        assert found.positive == "spam"
        np.testing.assert_allclose(found.scores, scores)
        np.testing.assert_array_equal(found.labels, labels)
    # A file says no positive class of its own: its scores are of the target's.
    asked = target.with_positive("ham")
    frame = pd.DataFrame({"label": ["ham", "spam"] * 6, "s__s": -scores[:, 0]})
    np.testing.assert_allclose(reference_of(frame, asked).scores, asked.scores)


def test_one_class_against_the_rest() -> None:
    rng = np.random.default_rng(0)
    p, labels = rng.dirichlet(np.ones(3), size=(30, 2)), rng.integers(3, size=30)
    three = fl.Predictions(p, labels, models=["a", "b"], classes=["cat", "dog", "cow"])
    target = three.with_positive("dog")
    found = reference_of(three, target)
    assert found.classes == ("not dog", "dog")
    np.testing.assert_array_equal(found.labels, labels == 1)
    np.testing.assert_allclose(column(found, "b")[:, 1], p[:, 1, 1])


def test_only_labeled_items_are_kept_with_their_weights() -> None:
    labels = np.where(np.arange(40) < 24, 1, -1)
    labels[:4] = 0
    weight = np.where(np.arange(40) < 12, 3.0, 1.0)
    histogram = np.ones((40, 2))
    given = made(labels=labels, weight=weight, histogram=histogram, domain=np.arange(40) % 2)
    found = reference_of(given, made(seed=2))
    assert (found.n_items, found.n_labeled) == (24, 24)
    assert found.weight[0] == pytest.approx(3 * found.weight[-1])
    assert found.histogram is None
    assert found.domain is None
    assert not found.notes


def test_a_vote_file_may_lack_a_class_that_nobody_voted_for() -> None:
    votes = np.zeros((12, 2), dtype=int)
    target = fl.Predictions(votes=votes, labels=[0] * 12, classes=["a", "b", "c"])
    given = fl.Predictions(votes=votes, labels=[1] * 12, classes=["c", "a"])
    found = reference_of(given, target)
    assert set(found.labels.tolist()) == {0}
    assert set(found.hard.ravel().tolist()) == {2}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (made(labels=np.full(40, -1)), "none of its 40 items has a label"),
        (made(models=("x", "y")), "no classifier of these predictions .*a, b, c.*x, y"),
        (made(classes=["ham", "eggs"]), "class 'eggs', which these predictions have not"),
        (made(classes=["ham", "HAM "]), "two classes that mean 'ham'"),
    ],
)
def test_what_cannot_be_matched_is_an_error_in_one_line(given: fl.Predictions, said: str) -> None:
    with pytest.raises(InputError, match=said) as error:
        reference_of(given, made())
    assert "\n" not in str(error.value)
    assert str(error.value).startswith("`reference`: ")


def test_a_class_without_probabilities_in_the_reference_is_an_error() -> None:
    rng = np.random.default_rng(0)
    target = fl.Predictions(rng.dirichlet(np.ones(3), (20, 2)), classes=["a", "b", "c"])
    given = fl.Predictions(rng.dirichlet(np.ones(2), (20, 2)), [0] * 20, classes=["a", "b"])
    with pytest.raises(InputError, match="has no class 'c'"):
        reference_of(given, target)


def test_few_items_and_items_that_come_twice_are_noted() -> None:
    target = made(labels=np.where(np.arange(40) < 20, 1, -1))
    few = reference_of(made(9, seed=5), target).notes
    assert [note for note in few if "only 9 labeled items" in note]
    assert reference_of(made(10, seed=5), target).notes == ()
    again = reference_of(target, target).notes
    assert any("20 of the 20 labeled items are in it as well" in note for note in again)
    # Rounded numbers of one classifier are alike by chance.
    rough = made(40, ("a",), 1, digits=1)
    assert reference_of(made(2000, ("a",), 2, digits=1), rough).notes == ()


# --- files ------------------------------------------------------------------------------------


def table(n: int, seed: int, **names: str) -> pd.DataFrame:
    """Two classifiers as a team's own table has them, with a weight."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=n)
    out = pd.DataFrame({"answer": np.where(truth, "bad", "good")})
    for model in ("large", "small"):
        p = 1 / (1 + np.exp(-rng.normal(2.0 * truth - 1)))
        out[f"{model}_p"] = p
    out["how_often"] = 1 + np.arange(n) % 3
    return out.rename(columns=names)


COLUMNS = {
    "label": "answer",
    "models": {"large": ["large_p"], "small": ["small_p"]},
    "weight": "how_often",
    "classes": ["good", "bad"],
}


def test_a_file_is_read_by_the_same_column_options_as_far_as_it_has_them(tmp_path: Path) -> None:
    this = table(60, 0)
    this.loc[20:, "answer"] = None
    last = table(50, 1).drop(columns=["how_often", "small_p"])
    last.to_csv(tmp_path / "last.csv", index=False)
    found = fl.estimate(this, metrics="accuracy", columns=COLUMNS, reference=tmp_path / "last.csv")
    assert found.reference is not None
    assert found.reference == (50, ("large",))
    assert found.predictions.weight.std() > 0


def test_mistakes_of_a_file_are_told_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "last.csv"
    table(30, 1).drop(columns="answer").to_csv(path, index=False)
    with pytest.raises(InputError, match=r"last\.csv: .*answer"):
        fl.estimate(table(30, 0), columns=COLUMNS, reference=path)
    table(30, 1).assign(answer=None).to_csv(path, index=False)
    with pytest.raises(InputError, match=r"last\.csv: none of its 30 items has a label"):
        fl.estimate(table(30, 0), columns=COLUMNS, reference=path)
    table(30, 1).assign(large_p=2.0).to_csv(path, index=False)
    with pytest.raises(InputError, match=r"last\.csv: .*between 0 and 1"):
        fl.estimate(table(30, 0), columns=COLUMNS, reference=path)
    with pytest.raises(InputError, match=r"`reference`: .*between 0 and 1"):
        fl.estimate(table(30, 0), columns=COLUMNS, reference=table(30, 1).assign(large_p=2.0))
    with pytest.raises((InputError, UsageError), match=r"nowhere\.csv"):
        fl.estimate(table(30, 0), columns=COLUMNS, reference=tmp_path / "nowhere.csv")


def test_hard_predictions_are_cut_where_those_of_the_target_are() -> None:
    given = reference_of(made(30, ("a", "b"), votes=np.zeros((30, 2), dtype=int)), made())
    cut = apply_thresholds(given, None, {"a": 0.9, "c": 0.5})
    np.testing.assert_array_equal(cut.hard[:, 0], column(given, "a")[:, 1] >= 0.9)
    np.testing.assert_array_equal(cut.hard[:, 1], given.hard[:, 1])
    np.testing.assert_array_equal(
        apply_thresholds(given, 0.2, {"a": 0.9}).hard[:, 1], column(given, "b")[:, 1] >= 0.2
    )
    assert apply_thresholds(given, None, None) is given
