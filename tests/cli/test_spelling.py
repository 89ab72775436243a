"""Errors name options on the command line, and arguments in Python."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import fewlabels as fl
from fewlabels.cli.app import app
from fewlabels.cli.spelling import in_options

Run = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("command", "arguments", "said"),
    [
        ("estimate", ("--confidence-level", "2"), "--confidence-level must be between 0 and 1"),
        ("compare", ("--confidence-level", "0"), "--confidence-level must be between 0 and 1"),
        ("curve", ("--confidence-level", "1.5", "--model", "good"), "--confidence-level must be"),
        ("threshold", ("--model", "good"), "--min-precision"),
        ("curve", ("--model", "nobody"), "nobody"),
        ("label-next", ("--model", "good", "--kind", "x"), "--kind"),
        ("threshold", ("--model", "good", "--min-precision", "2"), "--min-precision must be"),
        ("threshold", ("--model", "good", "--condition", "what"), "--condition cannot be read"),
        ("annotations", ("--bins", "0"), "--bins must be"),
        ("annotations", ("--confidence-level", "-1"), "--confidence-level must be"),
        ("annotations", ("--statistic", "x:y"), "--statistic"),
        ("shift", ("--confidence-level", "3"), "--confidence-level must be"),
        ("calibrate", ("--method", "vector", "--save", "m.json", "--penalty", "-1"), "--penalty"),
    ],
)
def test_errors_are_in_the_words_of_the_command_line(
    command: str, arguments: tuple[str, ...], said: str, cli: Run, predictions_file: Path
) -> None:
    code, out, err = cli(command, str(predictions_file), *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert not re.search("`[a-z]+_[a-z]+`", err)
    assert err.count("\n") == 1


def test_python_keeps_its_own_words(predictions_file: Path) -> None:
    predictions = fl.read_predictions(predictions_file)
    with pytest.raises(fl.UsageError, match="`confidence_level` must be between 0 and 1"):
        fl.estimate(predictions, confidence_level=2)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("`random_state` must be whole", "--seed must be whole"),
        ("leave it out of `by`", "leave it out of --by"),
        ("pass `probabilities`, `votes` or `scores`", "pass probabilities, votes or scores"),
        ("`thresholds` must be numbers", "--threshold must be numbers"),
        ("`nothing_like_it` stays", "`nothing_like_it` stays"),
        ("see `fewlabels shift`", "see `fewlabels shift`"),
    ],
)
def test_words(line: str, wanted: str) -> None:
    assert in_options(line, app.commands["estimate"]) == wanted
    assert in_options(line, None) == line
