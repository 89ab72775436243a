"""`--threshold`: from which probability on a classifier predicts positive."""

from __future__ import annotations

import json

import numpy as np
import pytest

import fewlabels as fl
from fewlabels.errors import InputError, UsageError


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "p.csv"
    rows = "\n".join(f"{i % 2},{0.05 + (i % 10) / 20},{(i % 7) / 10},{i % 2}" for i in range(40))
    path.write_text(f"label,p__a__1,p__b__1,y__c\n{rows}\n")
    return path


def test_predictions_reach_the_cut():
    predictions = fl.Predictions([[0.1, 0.3], [np.nan, 0.2], [0.05, 0.9]], models=["a", "b"])
    cut = predictions.thresholded({"a": 0.1})
    assert cut.hard.tolist() == [[1, 0], [-1, 0], [0, 1]]
    assert predictions.hard.tolist() == [[0, 0], [-1, 0], [0, 1]]
    np.testing.assert_array_equal(cut.probabilities, predictions.probabilities)


def test_one_number_is_for_all_and_a_name_wins(cli, file):
    def accuracy(*options):
        arguments = ("estimate", str(file), "--method", "labeled", "--metrics", "accuracy")
        code, out, _ = cli(*arguments, "--json", "-", *options)
        assert code == 0
        return {row["model"]: row["value"] for row in json.loads(out)["estimates"]}

    base, low = accuracy(), accuracy("--threshold", "0.2")
    named = accuracy("--threshold", "0.2", "--threshold", "b=0.55")
    assert low["a"] != base["a"]
    assert low["b"] != base["b"]
    assert low["c"] == base["c"]
    assert named == base | {"a": low["a"]}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("2", "from 0 to 1"),
        ("a=x", "NAME=P with a number"),
        ("z=0.5", "model 'z'"),
        ("c=0.5", "no probabilities"),
    ],
)
def test_mistakes_are_one_line(cli, file, given, said):
    code, out, err = cli("estimate", str(file), "--threshold", given)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err


def test_said_twice_or_for_nothing(cli, file, tmp_path):
    code, _, err = cli("estimate", str(file), "--threshold", "a=0.3", "--threshold", "a=0.4")
    assert code == 2
    assert "another one before it" in err
    votes = tmp_path / "votes.csv"
    votes.write_text("y__a,y__b\n0,1\n1,1\n")
    code, _, err = cli("estimate", str(votes), "--threshold", "0.3")
    assert code == 2
    assert "no classifier has probabilities" in err


def test_refused_in_python():
    two = fl.Predictions([[0.1], [0.3]])
    with pytest.raises(UsageError, match="from 0 to 1"):
        two.thresholded({"model0": float("nan")})
    with pytest.raises(InputError, match="two classes"):
        fl.Predictions(votes=[[0], [2]], classes=[0, 1, 2]).thresholded({"model0": 0.5})
