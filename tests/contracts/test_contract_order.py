"""The order of the rows does not show in any answer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fewlabels as fl

sys.path.append(str(Path(__file__).resolve().parents[1] / "stored"))

from stored_runs import differences, items, plain


def numbers(found: Any) -> Any:
    """What an answer says, rounded."""
    return plain(found.to_dict())


QUESTIONS = {
    "estimate": (lambda p: fl.estimate(p, by="site"), {}),
    "estimate of these items": (lambda p: fl.estimate(p, estimand="sample"), {}),
    "estimate by labels alone": (lambda p: fl.estimate(p, "labeled", by="site"), {}),
    "estimate of votes": (lambda p: fl.estimate(p), {"kind": "votes", "k": 3}),
    "estimate of scores": (lambda p: fl.estimate(p), {"kind": "scores"}),
    "annotations": (lambda p: fl.annotations.assess(p, by="site"), {"kind": "annotators"}),
    "statistics of annotations": (
        lambda p: fl.annotations.assess(p, statistics="unanimity_3"),
        {"kind": "annotators"},
    ),
    "curve": (lambda p: fl.curve(p, model="second"), {}),
    "threshold": (lambda p: fl.threshold(p, model="first", min_precision=0.8), {}),
    "compare": (lambda p: fl.compare(p, ["accuracy", "roc_auc"]), {}),
    "shift": (fl.shift, {}),
}


@pytest.mark.few(5)
@pytest.mark.parametrize("question", QUESTIONS)
def test_shuffled_rows_give_the_same_answer(question):
    ask, options = QUESTIONS[question]
    given = items(**options)
    # Groups are in the order of their first rows, which stay where they are.
    order = np.r_[0, 1, 2 + np.random.default_rng(1).permutation(given.n_items - 2)]
    shuffled = given.take(order)
    assert not list(differences(numbers(ask(shuffled)), numbers(ask(given)), 1e-9))
