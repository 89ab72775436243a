"""What new users stuck at: every message leads on by a command that works as it stands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fewlabels as fl
from fewlabels.cli import main
from fewlabels.comparison.compare import compare as compare_draws
from fewlabels.data.reading_lines import left_out
from fewlabels.errors import InputError, UsageError
from fewlabels.evaluation.input_facts import weights_of_labels

N = 400
RNG = np.random.default_rng(4)
TRUTH = RNG.random(N) < 0.4
FEW = np.arange(N) < 40
SCORE = 1 / (1 + np.exp(-RNG.normal(np.where(TRUTH, 1.5, -1.5), 1)))
VOTES = TRUTH ^ (RNG.random((5, N)) < 0.15)


def words(values, yes: str, no: str, where=None) -> np.ndarray:
    held = np.where(values, yes, no).astype(object)
    return held if where is None else np.where(where, held, None)


def options_in(message: str) -> list[tuple[str, str]]:
    return re.findall(
        r"--(same|no-label|hard) ('[^']*'|[^\s,;]+)", message.partition(" or --label")[0]
    )


def test_labels_are_read_beside_scores_that_somebody_names():
    data = pd.DataFrame({
        "small": SCORE, "large": 100 * SCORE[::-1], "lang": words(RNG.random(N) < 0.5, "en", "es"),
        "spam": words(TRUTH, "spam", "ham", FEW),
    })  # fmt: skip
    named = fl.read_predictions(data, scores={"small": "small", "large": "large"})
    assert (named.n_labeled, named.models) == (40, ("small", "large"))
    # A verdict of the same words may be what the column repeats.
    data["judge"] = words(VOTES[0], "spam", "ham")
    assert fl.read_predictions(data, hard={"judge": "judge"}).n_labeled == 0


def test_columns_of_other_words_are_left_out_with_what_the_words_mean():
    reader = words(VOTES[0], "1", "0")
    reader[[50, 150, 250]] = "9"
    data = pd.DataFrame({
        "study": [f"S{i}" for i in range(N)], "ai_score": SCORE * 100, "reader": reader,
        "biopsy": words(TRUTH, "malignant", "benign", FEW),
    })  # fmt: skip
    [line] = left_out(fl.read_predictions(data).reading)
    assert "--same 0=benign --same 1=malignant --no-label 9" in line
    with pytest.raises(UsageError, match=r"two classifiers, and there is one; .*--same 0=benign"):
        fl.compare(data)
    assert line in fl.threshold(data, min_recall=0.8).warnings
    same = {"0": "benign", "1": "malignant"}
    assert "reader" in fl.read_predictions(data, same=same, no_label=["9"]).models


def test_labels_that_no_column_is_named_after_come_with_what_to_say():
    classes = ["bird", "cat", "dog"]
    shares = RNG.dirichlet([1, 1, 1], N).round(2)
    label = np.where(FEW, np.array(classes)[shares.argmax(1)], "").astype(object)
    label[[0, 1]] = "dgo", "horse"
    data = pd.DataFrame({f"prob_{c}": shares[:, k] for k, c in enumerate(classes)})
    data["label"] = label
    with pytest.raises(InputError) as refused:
        fl.read_predictions(data)
    assert options_in(str(refused.value)) == [("same", "dgo=dog"), ("no-label", "horse")]
    read = fl.read_predictions(data, same={"dgo": "dog"}, no_label=["horse"])
    assert read.n_labeled == 39


def test_votes_alone_may_be_all_there_is():
    people = ("anna", "ben", "carla", "dmitri", "eve")
    data = pd.DataFrame({n: words(v, "toxic", "ok") for n, v in zip(people, VOTES, strict=True)})
    with pytest.raises(InputError, match="or all are votes") as refused:
        fl.read_predictions(data)
    hard = dict(shlex.split(v)[0].split("=") for _, v in options_in(str(refused.value)))
    assert len(hard) == 5
    assert fl.read_predictions(data, hard=hard).n_models == 5


def test_the_command_that_converts_a_file_names_it(tmp_path: Path):
    path = tmp_path / "my export.csv"
    path.write_bytes("text,label,y__a\nMüller,ja,ja\n".encode("cp1252"))
    with pytest.raises(InputError) as refused:
        fl.read_predictions(path)
    command = str(refused.value).rpartition("convert it: ")[2]
    new = "'my export-utf8.csv'"
    assert command == f"iconv -f WINDOWS-1252 -t UTF-8 '{path}' > {new}"


def test_weights_of_labels_alone_are_told_from_weights_of_items():
    chance = np.where(SCORE > 0.5, 0.5, 0.05)
    label = np.where(RNG.random(N) < chance, TRUTH, -1).astype(int)
    scored = {"scores": SCORE[:, None], "labels": label}
    [warning] = weights_of_labels(fl.Predictions(**scored, weight=1 / chance))
    assert "1 / P(labeled)" in warning
    at_random = np.where(RNG.random(N) < 0.2, TRUTH, -1).astype(int)
    random = fl.Predictions(scores=SCORE[:, None], labels=at_random, weight=1 / chance)
    assert not weights_of_labels(random)
    assert not weights_of_labels(fl.Predictions(**scored))


def test_a_requirement_may_be_a_percentage():
    from fewlabels.checks.conditions import parse_requirement

    read = parse_requirement("gpt:low:accuracy>=90%")
    assert (read.model, read.bound, read.threshold) == ("gpt", "low", 0.9)
    assert read.text == "gpt:low:accuracy>=90%"


def test_the_only_one_that_labels_do_not_contradict_is_best_of_nobody():
    draws = RNG.normal([0.9, 0.8, 0.7], 0.02, (500, 3))
    ranked = {
        n: compare_draws(
            ["a", "b", "c"], draws.mean(axis=0), draws, 1, level=0.95, contradicted=["a", "b"][:n]
        ).standings[0]
        for n in (1, 2)
    }
    assert ranked[1].model == "b"
    assert ranked[1].probability_best > 0.99
    assert ranked[2].model == "c"
    assert np.isnan(ranked[2].probability_best)


def test_markdown_is_printed_alone_and_no_other_output_is(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"label": words(TRUTH, "yes", "no", FEW), "y__a": words(VOTES[0], "yes", "no"),
                  "y__b": words(VOTES[1], "yes", "no")}).to_csv("f.csv", index=False)  # fmt: skip
    assert main(["estimate", "f.csv", "--metrics", "accuracy", "--markdown", "-"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("**fewlabels**")
    assert "| a | 0." in said
    assert main(["estimate", "f.csv", "--html", "-"]) == 2
    assert "--json and --markdown alone print" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["f.csv"]
