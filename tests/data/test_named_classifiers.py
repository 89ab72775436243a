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
