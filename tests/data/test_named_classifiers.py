"""A file as a hospital has it: what is recognised beside named columns, and slips of the pen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from test_sure_columns import told

import fewlabels as fl
from outputs import check


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


def with_cell(column: str, row: int, value: object) -> pd.DataFrame:
    """A file with one cell as nobody meant it."""
    data = referrals()
    data.loc[row, column] = value
    return data


RISK = {"models": {"risk": "risk %"}}
DOCTOR = {"hard": {"Dr. A": "Dr. A says"}}
NEAR = decoyed("gold", ("ham", "spam"), near=True)
DIAGNOSIS = referrals()["final diagnosis"]
SHARES = with_cell("risk %", 3, 120.0)
SHARES["risk %"] /= 100
TWO = referrals().drop(columns="final diagnosis")
MISSPELT = with_cell("final diagnosis", 3, "refre")
MISSPELT.loc[4, "final diagnosis"] = "refer"
Case = tuple[pd.DataFrame, dict[str, Any]]
READ: dict[str, dict[str, Case]] = {
    "referrals": {
        "nothing is named": (referrals(), {}),
        "a probability is named": (referrals(), RISK),
        "a verdict is named": (referrals(), DOCTOR),
        "two columns may be the labels":
            (TWO.assign(**{"true outcome": DIAGNOSIS, "true result": DIAGNOSIS}), RISK),
        "a group that is not there": (referrals(), {"keep": ["ward"]}),
        "a misspelt class": (MISSPELT, RISK | DOCTOR),
        "a misspelt class, mended": (MISSPELT, RISK | DOCTOR | {"same": {"refre": "refer"}}),
        "a misspelt class beside scores":
            (MISSPELT, {"scores": {"risk": "risk %"}, "label": "final diagnosis"}),
        "a percentage above 100": (with_cell("risk %", 50, 140.3), RISK),
        "shares in a column of percentages": (SHARES, RISK),
    },
    "decoys": {
        **{f"{name}, {kind}": (decoyed(name, ("no", "yes")), {kind: {"m": column}})
           for name in ("labeler", "label_confidence", "label_status", "priority", "comment",
                        "refunded", "is_customer", "reviewed", "flag", "triage", "status",
                        "gpt_correct", "verified", "agree")
           for kind, column in (("models", "prob"), ("hard", "gpt"))},
        **{name: (decoyed(name, ("ham", "spam"), near=True), {"hard": {"m": "gpt"}})
           for name in ("llm_label", "votes_gpt4", "rule", "weak_label", "c",
                        "previous diagnosis", "pseudo_label")},
        "label beside gold": (NEAR.assign(label=NEAR["gpt"]), {"hard": {"m": "gpt"}}),
        "label beside gold, which is said":
            (NEAR.assign(label=NEAR["gpt"]), {"hard": {"m": "gpt"}, "label": "gold"}),
        **{name: (NEAR[["gpt", "gold"]].assign(**{name: 50 + 100 * (NEAR["prob"] - 0.5).abs()}), {})
           for name in ("confidence %", "percent sure", "gpt %")},
    },
}  # fmt: skip
"""Tables and options, by what they are taken for."""


@pytest.mark.parametrize("about", READ)
def test_what_columns_are_taken_for_beside_named_ones(about: str) -> None:
    lines = [f"{name}\n{told(data, **given)}" for name, (data, given) in READ[about].items()]
    check(f"data/taken-{about}", "\n".join(lines))


@pytest.mark.parametrize("words", [("grade1", "grade2"), ("keep", "refer"), ("male", "female")])
def test_classes_that_are_both_usual_are_no_misspelling(words):
    data = referrals()
    swap = dict(zip(("keep", "refer"), words, strict=True))
    data["Dr. A says"] = data["Dr. A says"].map(swap)
    data["final diagnosis"] = data["final diagnosis"].map(swap, na_action="ignore")
    found = fl.read_predictions(data, label="final diagnosis", hard={"Dr. A": "Dr. A says"})
    assert not [note for note in found.notes if "misspelling" in note]


def test_item_numbers_that_repeat_are_said():
    data = with_cell("Patient No", 7, referrals().loc[6, "Patient No"])
    assert "'Patient No' repeats" in " ".join(fl.diagnose(data).summary().split())
