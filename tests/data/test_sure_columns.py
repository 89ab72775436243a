"""Columns beside predictions that are none: how sure, who agreed, what was done, other words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fewlabels as fl
from fewlabels.errors import InputError
from outputs import check

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


def told(data: pd.DataFrame, **options: Any) -> str:
    """What a table is read as, or why it is not."""
    try:
        found = fl.read_predictions(data, **options)
    except InputError as error:
        return f"  refused: {error}"
    first = f"{', '.join(found.models)}: {found.n_labeled} labels of {found.classes}"
    return "\n".join(f"  {line}" for line in (first, *found.reading, *found.notes))


RANDOM = np.random.default_rng(0)
GRADES = {most: RANDOM.integers(1, most + 1, N) for most in (5, 10, 100)}
GROUPS = {"region": RNG.choice(["EU", "US", "AS"], N), "shelf": RNG.choice(["x", "y"], N)}
YES = words(SAID, "no", "yes")
RIGHT = {known: words(SAID == TRUTH, "no", "yes", known=known) for known in (60, N)}
GOLD = words(TRUTH, "ham", "spam", known=60)
FEW = np.where((np.arange(N) < 60) & TRUTH, 1, -1)
PLUS = np.where(TRUTH, 1, -1)
NET = feelings(0.8, "neg", "neu", "pos")
FELT = words(FEELING, "neg", "neu", "pos", known=80)
RULE = words(SAID ^ (np.random.default_rng(5).random(N) < 0.1), None, "flag")
BOTH = spam(p_ham=1 - P, p_spam=P, max_prob=np.maximum(P, 1 - P)).assign(
    prediction=words(P > 0.5, "ham", "spam")
)


def scores_but(odd: Any) -> list[str]:
    """Scores as texts, of which one is no number."""
    return [str(odd if i == 3 else p) for i, p in enumerate(P)]


READ: dict[str, dict[str, pd.DataFrame]] = {
    "sure": {
        **{name: spam(**{name: (100 * SURE).round(1)})
           for name in ("confidence", "probability", "certainty", "gpt_conf")},
        "whole percentages": spam(conf=(100 * SURE).round()),
        "grades to 5": spam(confidence=GRADES[5]),
        "grades to 10": spam(certainty=GRADES[10]),
        "grades to 100": spam(conf=GRADES[100]),
        "beside the probabilities and the verdict": BOTH,
        "beside the probabilities": BOTH.drop(columns="prediction"),
        "of two classifiers": spam(max_prob=SURE, claude=words(SAID, "ham", "spam")),
        "a score at which the verdict is cut":
            spam(confidence=P).assign(prediction=words(P > 0.3, "ham", "spam")),
        "percentages at which the verdict is cut":
            spam(conf=100 * P).assign(prediction=words(P > 0.3, "ham", "spam")),
        "a logarithm": spam(gpt_logprob=np.log(SURE)).rename(columns={"prediction": "gpt_answer"}),
        "of the expert": spam(expert_confidence=GRADES[5]),
        "percentages of three classes": table(
            net=NET, certainty=np.random.default_rng(0).integers(50, 101, N), gold=FELT
        ),
    },
    "minus-one": {
        "beside votes of -1": table(label=PLUS, y__net=np.where(SAID, 1, -1)),
        "beside a probability": table(gold=PLUS, prob=P),
        "beside verdicts of -1": table(gold=PLUS, net=np.where(SAID, 1, -1)),
        "beside both classes":
            table(gold=np.where(np.arange(N) < 60, TRUTH.astype(int), -1), prob=P),
        "beside a native column": table(label=PLUS, p__net__1=P),
        "beside native columns of both classes": table(label=FEW, p__net__0=1 - P, p__net__1=P),
        "beside native votes": table(label=FEW, y__net=SAID.astype(int)),
    },
    "agreed": {
        **{f"{name}, {known} rows": table(judge=YES, **{name: RIGHT[known]})
           for name in ("human_agrees", "human_agree", "human_verified", "human_agrees_with_judge",
                        "confirmed", "verified", "agree")
           for known in (60, N)},
        "confirmed, which goes with the judge":
            table(judge=YES, confirmed=words(TRUTH, "no", "yes", known=60)),
        **{name: table(model=YES, gold=words(TRUTH & (np.arange(N) < 60), "no", "yes"),
                       **{name: words(np.arange(N) < 60, "no", "yes")})
           for name in ("reviewed", "checked", "verified", "processed", "audited", "seen", "done",
                        "labeled", "is_labelled", "human_reviewed")},
    },
    "other-words": {
        "in capitals": table(
            net=NET, vader=feelings(0.7, "NEGATIVE", "NEUTRAL", "POSITIVE", seed=1), **GROUPS,
            gold=FELT,
        ),
        "numbers": table(net=NET, vader=feelings(0.7, 0, 1, 2, seed=1), **GROUPS, gold=FELT),
        "a word or nothing": table(net=words(SAID, "ham", "spam"), rule=RULE, **GROUPS, gold=GOLD),
        "yes or nothing": table(
            prob=P, rule=np.where(RULE == "flag", "yes", None), **GROUPS, gold=GOLD
        ),
        "a word or nothing, beside a probability": table(prob=P, rule=RULE, **GROUPS, gold=GOLD),
        "a class that no label shows": table(
            other=feelings(0.7, "neg", "neu", "pos", seed=1), model=NET, **GROUPS,
            gold=np.where(FELT == "pos", None, FELT),
        ),
        **{f"texts that repeat: {name}":
               spam(**{name: [f"What is the answer to {i % 40}?" for i in range(N)]})
               .drop(columns="id") for name in ("question", "prompt", "text")},
        "texts that repeat, with names":
            spam(question=[f"What is the answer to {i % 40}?" for i in range(N)]),
        "a score of inf": table(score=scores_but(np.inf), gold=GOLD),
        "a score of n=400": table(score=scores_but("n=400"), gold=GOLD),
        "one score": table(score=["0.5"] * N, gold=GOLD),
        "a score of inf beside verdicts":
            table(score=scores_but(np.inf), gold=GOLD, model=words(SAID, "ham", "spam")),
    },
}  # fmt: skip
"""Tables, by what their columns are taken for."""


@pytest.mark.parametrize("about", READ)
def test_what_columns_are_taken_for(about: str) -> None:
    lines = [f"{name}\n{told(data)}" for name, data in READ[about].items()]
    check(f"data/taken-{about}", "\n".join(lines))


def test_what_is_asked_about_can_be_said() -> None:
    data = spam(confidence=(100 * SURE).round(1))
    said = {"hard": {"prediction": "prediction"}, "confidence": {"prediction": "confidence"}}
    found = fl.read_predictions(data, **said)
    expected = np.where(SAID, SURE, 1 - SURE)
    np.testing.assert_allclose(found.probabilities[:, 0, 1], expected, atol=0.0051)
    grades = spam(conf=GRADES[5])
    for options in ({"hard": {"m": "prediction"}}, {"scores": {"m": "conf"}}):
        assert fl.read_predictions(grades, **options).n_labeled == 60
    for data in (READ["minus-one"]["beside a probability"], table(label=PLUS, p__net__1=P)):
        assert fl.read_predictions(data, same={"-1": "no", "1": "yes"}).n_labeled == N
        assert fl.read_predictions(data, no_label=["-1"]).n_labeled == TRUTH.sum()
    agreed = READ["agreed"]["confirmed, 60 rows"]
    for options, n_labeled in (({}, 0), ({"label": "confirmed"}, 60)):
        found = fl.read_predictions(agreed, hard={"judge": "judge"}, **options)
        assert found.n_labeled == n_labeled
    same = {"NEGATIVE": "neg", "NEUTRAL": "neu", "POSITIVE": "pos"}
    found = fl.read_predictions(READ["other-words"]["in capitals"], same=same)
    assert found.models == ("net", "vader")


@pytest.mark.parametrize("hard", ["predicted_class", "pred_label", "y_pred", "classification"])
@pytest.mark.parametrize("name", [
    "max_prob", "max_proba", "top1_prob", "top_score", "confidence_level", "self_confidence",
    "max_softmax", "score", "confidence",
])  # fmt: skip
def test_the_largest_probability_is_how_sure_the_classifier_is(hard, name):
    found = fl.read_predictions(spam(**{name: SURE}).rename(columns={"prediction": hard}))
    assert found.models == (hard,)
    np.testing.assert_allclose(found.probabilities[:, 0, 1], np.where(SAID, SURE, 1 - SURE))


def test_native_minus_one_is_missing_where_another_column_names_0(tmp_path: Path) -> None:
    """By contract: y__a is 1 or missing, and y__b names the other class."""
    file = tmp_path / "a.csv"
    file.write_text("label,y__a,y__b\n1,1,1\n-1,-1,0\n1,1,0\n-1,1,1\n", encoding="utf-8")
    read = fl.read_predictions(file)
    assert read.classes == (0, 1)
    assert read.labels.tolist() == [1, -1, 1, -1]
    assert read.votes[:, 0].tolist() == [1, -1, 1, 1]
