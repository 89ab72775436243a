"""Columns beside predictions that are none: how sure, who agreed, what was done, other words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fewlabels as fl
from fewlabels.errors import InputError

N = 400
RNG = np.random.default_rng(3)
TRUTH = RNG.random(N) < 0.4
SAID = TRUTH ^ (RNG.random(N) < 0.15)
SURE = np.clip(0.5 + 0.45 * RNG.beta(2, 1, N), 0.5, 1).round(3)
P = (1 / (1 + np.exp(-RNG.normal(3 * TRUTH - 1.5, 1.5)))).round(3)
FEELING = RNG.integers(0, 3, N)


def words(which: np.ndarray, *names: Any, known: int = N) -> np.ndarray:
    """Words for classes; empty beyond the first known rows."""
    column = np.array(names, dtype=object)[which.astype(int)]
    column[known:] = None
    return column


def feelings(right: float, *names: Any, seed: int = 0, known: int = N) -> np.ndarray:
    """What a classifier of three classes says."""
    rng = np.random.default_rng(seed)
    return words(
        np.where(rng.random(N) < right, FEELING, rng.integers(0, 3, N)), *names, known=known
    )


def table(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"id": [f"a{i}" for i in range(N)], **columns})


def spam(**columns: Any) -> pd.DataFrame:
    """A classifier's predictions, further columns, an expert's labels of some rows."""
    return table(
        prediction=words(SAID, "ham", "spam"), **columns,
        expert=words(TRUTH, "ham", "spam", known=60),
    )  # fmt: skip


def lines(data: pd.DataFrame, **options: Any) -> str:
    return "\n".join(fl.read_predictions(data, **options).reading)


# --- How sure a classifier is of itself ---------------------------------------------------------


@pytest.mark.parametrize("name", ["confidence", "conf", "probability", "certainty", "gpt_conf"])
@pytest.mark.parametrize("digits", [0, 1])
def test_percentages_never_below_50_beside_a_verdict_are_asked_about(name, digits):
    data = spam(**{name: (100 * SURE).round(digits)})
    pair = f"prediction={name}"
    with pytest.raises(InputError, match=rf"never below 50.*--confidence {pair}.*--score {pair}"):
        fl.read_predictions(data)
    said = {"hard": {"prediction": "prediction"}, "confidence": {"prediction": name}}
    found = fl.read_predictions(data, **said)
    expected = np.where(SAID, SURE, 1 - SURE)
    np.testing.assert_allclose(found.probabilities[:, 0, 1], expected, atol=0.0051)


@pytest.mark.parametrize(("name", "most"), [("confidence", 5), ("certainty", 10), ("conf", 100)])
def test_grades_of_certainty_beside_a_verdict_are_asked_about(name, most):
    data = spam(**{name: np.random.default_rng(0).integers(1, most + 1, N)})
    with pytest.raises(InputError, match=rf"from 1 to {most}: perhaps how sure.*leave it out"):
        fl.read_predictions(data)
    assert fl.read_predictions(data, hard={"m": "prediction"}).n_labeled == 60
    assert fl.read_predictions(data, scores={"m": name}).n_labeled == 60


@pytest.mark.parametrize("hard", ["predicted_class", "pred_label", "y_pred", "classification"])
@pytest.mark.parametrize("name", [
    "max_prob", "max_proba", "top1_prob", "top_score", "confidence_level", "self_confidence",
    "max_softmax", "score", "confidence",
])  # fmt: skip
def test_the_largest_probability_is_how_sure_the_classifier_is(hard, name):
    found = fl.read_predictions(spam(**{name: SURE}).rename(columns={"prediction": hard}))
    assert found.models == (hard,)
    np.testing.assert_allclose(found.probabilities[:, 0, 1], np.where(SAID, SURE, 1 - SURE))


@pytest.mark.parametrize("hard", [True, False])
def test_the_largest_of_the_probabilities_is_no_second_classifier(hard):
    data = spam(p_ham=1 - P, p_spam=P, max_prob=np.maximum(P, 1 - P))
    data["prediction"] = words(P > 0.5, "ham", "spam")
    data = data if hard else data.drop(columns="prediction")
    found = fl.read_predictions(data)
    assert "max" not in found.models
    assert "not used: 'max_prob'" in lines(data)


def test_whose_confidence_it_is_is_asked():
    data = spam(max_prob=SURE, claude=words(SAID, "ham", "spam"))
    with pytest.raises(InputError, match=r"--hard claude=claude --confidence"):
        fl.read_predictions(data)


def test_a_confidence_at_which_the_verdict_is_cut_is_a_score():
    for name, numbers in (("confidence", P), ("conf", 100 * P)):
        data = spam(**{name: numbers}).assign(prediction=words(P > 0.3, "ham", "spam"))
        assert f"prediction = '{name}'" in lines(data).split("scores (larger")[1]


def test_the_logarithm_of_how_probable_the_own_answer_is_is_no_score():
    data = spam(gpt_logprob=np.log(SURE)).rename(columns={"prediction": "gpt_answer"})
    assert fl.read_predictions(data).models == ("gpt",)
    assert "not used: 'gpt_logprob'" in lines(data)


def test_how_sure_the_expert_is_is_no_classifier():
    data = spam(expert_confidence=np.random.default_rng(0).integers(1, 6, N))
    assert fl.read_predictions(data).models == ("prediction",)
    assert "'expert_confidence'" in lines(data)


# --- -1 -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("label", "columns"), [
    ("label", {"y__net": np.where(SAID, 1, -1)}),
    ("gold", {"prob": P}),
    ("gold", {"net": np.where(SAID, 1, -1)}),
])  # fmt: skip
def test_labels_of_minus_one_and_one_are_asked_about(label, columns):
    data = table(**{label: np.where(TRUTH, 1, -1)}, **columns)
    with pytest.raises(InputError, match=r"-1 \(\d+ rows\).*--no-label=-1.*--same=-1=NAME"):
        fl.read_predictions(data)
    assert fl.read_predictions(data, same={"-1": "no", "1": "yes"}).n_labeled == N
    if "prob" in columns:
        assert fl.read_predictions(data, no_label=["-1"]).n_labeled == TRUTH.sum()


def test_minus_one_beside_both_classes_is_unlabeled_and_said():
    gold = np.where(np.arange(N) < 60, TRUTH.astype(int), -1)
    assert "60 of 400 rows; -1 is unlabeled, 340 rows" in lines(table(gold=gold, prob=P))
    assert fl.read_predictions(table(label=gold, p__net__1=P)).n_labeled == 60


def test_minus_one_is_unlabeled_beside_native_columns_and_said():
    data = table(label=np.where(TRUTH, 1, -1), p__net__1=P)
    (note, _) = fl.read_predictions(data).notes
    assert "--no-label=-1" in note
    assert "--same=-1=NAME" in note
    assert len(fl.read_predictions(data, no_label=["-1"]).notes) == 1
    assert fl.read_predictions(data, same={"-1": "no"}).n_labeled == N


def test_native_columns_that_name_both_classes_say_what_minus_one_is():
    few = np.where((np.arange(N) < 60) & TRUTH, 1, -1)
    for columns in ({"p__net__0": 1 - P, "p__net__1": P}, {"y__net": SAID.astype(int)}):
        assert fl.read_predictions(table(label=few, **columns)).n_labeled == (few == 1).sum()


# --- Who agreed, what was done ------------------------------------------------------------------


@pytest.mark.parametrize("name", [
    "human_agrees", "human_agree", "human_agrees_with_judge", "confirmed", "human_verified",
    "verified", "agree",
])  # fmt: skip
@pytest.mark.parametrize("known", [60, N])
def test_whether_the_judge_is_right_is_no_label(name, known):
    data = table(
        judge=words(SAID, "no", "yes"), **{name: words(SAID == TRUTH, "no", "yes", known=known)}
    )
    try:
        assert fl.read_predictions(data).n_labeled == 0
    except InputError as error:
        assert f"--label {name}" in str(error)  # noqa: PT017
    else:
        assert f"--label {name}" in lines(data)
    found = fl.read_predictions(data, hard={"judge": "judge"})
    assert found.n_labeled == 0
    assert fl.read_predictions(data, hard={"judge": "judge"}, label=name).n_labeled == known


def test_what_is_confirmed_and_goes_with_the_judge_is_the_label():
    data = table(judge=words(SAID, "no", "yes"), confirmed=words(TRUTH, "no", "yes", known=60))
    assert fl.read_predictions(data).n_labeled == 60


@pytest.mark.parametrize("name", [
    "reviewed", "checked", "verified", "processed", "audited", "seen", "done", "labeled",
    "is_labelled", "human_reviewed",
])  # fmt: skip
def test_what_was_done_with_an_item_is_no_prediction(name):
    looked = np.arange(N) < 60
    data = table(
        model=words(SAID, "no", "yes"), gold=words(TRUTH & looked, "no", "yes"),
        **{name: words(looked, "no", "yes")},
    )  # fmt: skip
    assert fl.read_predictions(data).models == ("model",)
    assert f"not used: '{name}'" in lines(data)


# --- Repeated texts -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["question", "prompt", "text"])
def test_texts_that_repeat_are_said(name):
    texts = [f"What is the answer to question {i % 40}?" for i in range(N)]
    data = spam(**{name: texts})
    assert not any("40 items" in note for note in fl.read_predictions(data).notes)
    said = f"400 rows are 40 items (column '{name}'), and every row counts as one by itself"
    (note,) = fl.read_predictions(data.drop(columns="id")).notes
    assert note == f"{said}: say --cluster {name}"


# --- In other words -----------------------------------------------------------------------------

GROUPS = {"region": RNG.choice(["EU", "US", "AS"], N), "shelf": RNG.choice(["x", "y"], N)}


@pytest.mark.parametrize("others", [("NEGATIVE", "NEUTRAL", "POSITIVE"), (0, 1, 2)])
def test_predictions_in_other_words_are_said(others):
    data = table(
        net=feelings(0.8, "neg", "neu", "pos"), vader=feelings(0.7, *others, seed=1), **GROUPS,
        gold=words(FEELING, "neg", "neu", "pos", known=80),
    )  # fmt: skip
    (said,) = [line for line in lines(data).splitlines() if line.startswith("not used")]
    assert f"'vader' ('{others[0]}'" in said
    same = dict(zip(map(str, others), ("neg", "neu", "pos"), strict=True))
    assert all(f"--same {other}=" in said for other in same)
    assert fl.read_predictions(data, same=same).models == ("net", "vader")


@pytest.mark.parametrize("word", ["yes", "flag"])
@pytest.mark.parametrize("beside", ["net", "prob"])
def test_a_word_or_nothing_is_said(word, beside):
    rule = words(SAID ^ (np.random.default_rng(5).random(N) < 0.1), None, word)
    other = {"net": words(SAID, "ham", "spam"), "prob": P}[beside]
    data = table(**{beside: other}, rule=rule, **GROUPS, gold=words(TRUTH, "ham", "spam", known=60))
    (said,) = [line for line in lines(data).splitlines() if line.startswith("not used")]
    assert f"'rule' ('{word}') goes with" in said
    assert "write a word in its empty cells" in said


def test_whole_percentages_of_certainty_beside_three_classes_are_said():
    data = table(
        net=feelings(0.8, "neg", "neu", "pos"),
        certainty=np.random.default_rng(0).integers(50, 101, N),
        gold=words(FEELING, "neg", "neu", "pos", known=80),
    )
    assert "not used: 'certainty'" in lines(data)


def test_a_class_that_no_label_shows_is_that_of_all_classifiers():
    gold = words(FEELING, "neg", "neu", "pos", known=80)
    gold[gold == "pos"] = None
    data = table(
        other=feelings(0.7, "neg", "neu", "pos", seed=1), model=feelings(0.8, "neg", "neu", "pos"),
        **GROUPS, gold=gold,
    )  # fmt: skip
    assert fl.read_predictions(data).models == ("other", "model")


# --- Scores that cannot be read -----------------------------------------------------------------


@pytest.mark.parametrize(("row", "said"), [
    (np.inf, r"numbers but for 1 cell \('inf'\)"), ("n=400", r"but for 1 cell \('n=400'\)"),
    (None, "'score' holds one value only"),
])  # fmt: skip
def test_what_keeps_a_score_from_being_read_is_said(row, said):
    score = P.astype(object) if row is not None else np.full(N, 0.5)
    if row is not None:
        score[3] = row
    data = table(score=[str(v) for v in score], gold=words(TRUTH, "ham", "spam", known=60))
    with pytest.raises(InputError, match=rf"no prediction columns: column.*{said}"):
        fl.read_predictions(data)
    data["model"] = words(SAID, "ham", "spam")
    assert "'score'" in lines(data)


def test_native_minus_one_is_missing_where_another_column_names_0(tmp_path: Path) -> None:
    """By contract: y__a is 1 or missing, and y__b names the other class."""
    file = tmp_path / "a.csv"
    file.write_text("label,y__a,y__b\n1,1,1\n-1,-1,0\n1,1,0\n-1,1,1\n", encoding="utf-8")
    read = fl.read_predictions(file)
    assert read.classes == (0, 1)
    assert read.labels.tolist() == [1, -1, 1, -1]
    assert read.votes[:, 0].tolist() == [1, -1, 1, 1]
