"""A file as a hospital has it: what is recognised beside named columns, and slips of the pen."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import fewlabels as fl
from fewlabels.errors import InputError


def referrals(n: int = 120, known: int = 30) -> pd.DataFrame:
    """Numbers of patients, a ward, two tools and a doctor, diagnoses of a few."""
    rng = np.random.default_rng(0)
    truth = rng.random(n) < 0.4
    risk = np.clip(rng.normal(np.where(truth, 70, 30), 15), 1, 99)
    words = np.array(["keep", "refer"])
    return pd.DataFrame({
        "Patient No": np.arange(100234, 100234 + n),
        "Ward": rng.choice(["Cardiology", "Oncology"], n),
        "risk %": risk.round(1),
        "triage tool v2": (risk / 100).round(3),
        "Dr. A says": words[(truth ^ (rng.random(n) < 0.1)).astype(int)],
        "final diagnosis": np.where(np.arange(n) < known, words[truth.astype(int)], None),
    })  # fmt: skip


def test_labels_are_recognised_beside_a_named_classifier():
    data = referrals()
    found = fl.read_predictions(data, models={"risk": "risk %"})
    assert found.models == ("risk",)
    assert found.n_labeled == 30
    assert list(found.classes) == ["keep", "refer"]
    said = fl.read_predictions(data, hard={"Dr. A": "Dr. A says"})
    assert said.n_labeled == 30


def test_two_columns_that_may_be_the_labels_are_named_and_neither_is_used():
    data = referrals()
    data["true outcome"] = data["final diagnosis"]
    data["true result"] = data["final diagnosis"]
    del data["final diagnosis"]
    diagnosis = fl.diagnose(data, models={"risk": "risk %"})
    lines = " ".join(diagnosis.summary().split())
    assert "120 items, 0 labeled" in diagnosis.summary()
    assert "none used" in lines
    assert "outcome" in lines


def test_a_percentage_is_a_probability():
    found = fl.read_predictions(referrals())
    at = found.models.index("risk %")
    assert found.provides("probabilities")[:, at].all()


def test_a_group_that_is_not_there():
    with pytest.raises(InputError, match=r"no column 'ward' .*did you mean 'Ward'"):
        fl.read_predictions(referrals(), keep=["ward"])


def test_a_misspelt_class_is_named():
    data = referrals()
    data.loc[3, "final diagnosis"] = "refre"
    data.loc[4, "final diagnosis"] = "refer"
    with pytest.raises(InputError, match=r"'refre' occurs once .*--same refre=refer"):
        fl.read_predictions(data, models={"risk": "risk %"}, hard={"Dr. A": "Dr. A says"})
    with pytest.raises(InputError, match=r"scores need two classes; got 3 .*--same refre=refer"):
        fl.read_predictions(data, scores={"risk": "risk %"}, label="final diagnosis")
    mended = fl.read_predictions(
        data, models={"risk": "risk %"}, hard={"Dr. A": "Dr. A says"}, same={"refre": "refer"}
    )
    assert list(mended.classes) == ["keep", "refer"]


@pytest.mark.parametrize("words", [("grade1", "grade2"), ("keep", "refer"), ("male", "female")])
def test_classes_that_are_both_usual_are_no_misspelling(words):
    data = referrals()
    swap = dict(zip(("keep", "refer"), words, strict=True))
    data["Dr. A says"] = data["Dr. A says"].map(swap)
    data["final diagnosis"] = data["final diagnosis"].map(swap, na_action="ignore")
    found = fl.read_predictions(data, label="final diagnosis", hard={"Dr. A": "Dr. A says"})
    assert not [note for note in found.notes if "misspelling" in note]


def test_one_percentage_above_100_is_named_by_its_row():
    data = referrals()
    data.loc[50, "risk %"] = 140.3
    with pytest.raises(InputError, match=r"140\.3 in .*50.* is none: correct it"):
        fl.read_predictions(data, models={"risk": "risk %"})


def test_item_numbers_that_repeat_are_said():
    data = referrals()
    data.loc[7, "Patient No"] = data.loc[6, "Patient No"]
    assert "'Patient No' repeats" in " ".join(fl.diagnose(data).summary().split())


# --- Columns that look like labels and are none -------------------------------------------------


def decoyed(name: str, values: tuple, *, sparse: bool = True, near: bool = False) -> pd.DataFrame:
    """A classifier's probability and votes, no label, and a column of two values."""
    rng = np.random.default_rng(3)
    truth = rng.random(400) < 0.4
    p = 1 / (1 + np.exp(-rng.normal(3 * truth - 1.5, 1.5)))
    side = truth ^ (rng.random(400) < 0.3) if near else rng.random(400) < 0.5
    column = np.array(values, dtype=object)[side.astype(int)]
    if sparse:
        column[rng.permutation(400)[100:]] = None
    return pd.DataFrame({
        "prob": p,
        "gpt": np.array(values, dtype=object)[(p > 0.5).astype(int)],
        name: column,
    })  # fmt: skip


@pytest.mark.parametrize("name", [
    "labeler", "label_confidence", "label_status", "priority", "comment", "refunded", "is_customer",
    "reviewed", "flag", "triage", "status", "gpt_correct", "verified", "agree",
])  # fmt: skip
@pytest.mark.parametrize("kind", ["models", "hard"])
def test_a_column_that_goes_with_no_prediction_is_not_the_labels(name, kind):
    data = decoyed(name, ("no", "yes"))
    said = {"m": "prob"} if kind == "models" else {"m": "gpt"}
    found = fl.read_predictions(data, **{kind: said})
    assert found.n_labeled == 0
    assert f"--label {name}" in " ".join(found.reading)


@pytest.mark.parametrize("name", ["llm_label", "votes_gpt4", "rule", "weak_label", "c",
                                  "previous diagnosis", "pseudo_label"])  # fmt: skip
def test_what_another_classifier_says_is_not_the_labels(name):
    data = decoyed(name, ("ham", "spam"), near=True)
    assert fl.read_predictions(data, hard={"m": "gpt"}).n_labeled == 0


def test_labels_of_the_contract_beside_gold_ones_are_asked_for():
    data = decoyed("gold", ("ham", "spam"), near=True)
    data["label"] = data["gpt"]
    with pytest.raises(InputError, match="'label', 'gold' may each hold the known labels"):
        fl.read_predictions(data, hard={"m": "gpt"})
    assert fl.read_predictions(data, hard={"m": "gpt"}, label="gold").n_labeled == 100


def test_how_sure_a_classifier_is_of_itself_is_no_probability_of_a_class():
    data = decoyed("gold", ("ham", "spam"), near=True)
    for name in ("confidence %", "percent sure", "gpt %"):
        own = data[["gpt", "gold"]].assign(**{name: 50 + 100 * (data["prob"] - 0.5).abs()})
        with pytest.raises(InputError, match="never below 50: perhaps how sure gpt is"):
            fl.read_predictions(own)
        assert fl.read_predictions(own, hard={"g": "gpt"}, confidence={"g": name}).n_labeled == 100


def test_shares_in_a_column_of_percentages_are_refused():
    data = referrals()
    data["risk %"] /= 100
    data.loc[3, "risk %"] = 1.2
    with pytest.raises(InputError, match=r"named a percentage, but only 1 of 120 values are"):
        fl.read_predictions(data, models={"risk": "risk %"})
