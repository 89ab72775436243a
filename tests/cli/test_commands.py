"""What every command that reads a file does alike: text, JSON, files, and refusals."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest
from test_bad_input import refused
from test_estimate import strict

Run = Callable[..., tuple[int, str, str]]
QUICK = ("--model", "good", "--method", "bayesian-calibration")


class Command(NamedTuple):
    """Options that make it answer, what its text says, and what it writes."""

    options: tuple[str, ...]
    words: tuple[str, ...]
    writes: dict[str, str]
    page: str = ""


COMMANDS = {
    "doctor": Command((), ("label", "good", "poor", "site"), {"--json": "a.json"}),
    "estimate": Command(
        ("--metrics", "accuracy"),
        ("good", "accuracy"),
        {"--json": "a.json", "--html": "a.html", "--labels-out": "a.csv"},
    ),
    "compare": Command(
        ("--metric", "accuracy,brier"),
        ("By accuracy, good", "By brier, good", "share of items on which both are wrong"),
        {"--json": "a.json", "--html": "a.html"},
        "Which classifier is best?",
    ),
    "annotations": Command(
        (),
        ("80 items; ",),
        {"--json": "a.json", "--html": "a.html", "--out": "a.parquet"},
        "How well do the classifiers predict what annotators say?",
    ),
    "curve": Command(
        QUICK,
        ("; 2 classes, positive: 1", "good: average precision 0."),
        {"--json": "a.json", "--html": "a.html", "--svg": "a.svg", "--out": "a.parquet"},
    ),
    "threshold": Command(
        (*QUICK, "--min-recall", ".5"),
        ("; 2 classes, positive: 1", "Call it positive from"),
        {"--json": "a.json", "--html": "a.html", "--svg": "a.svg", "--out": "a.parquet"},
        "Where to put the threshold?",
    ),
    "label-next": Command(
        (*QUICK, "--size", "3"),
        ("good: label 3 items for the precision-recall curve",),
        {"--json": "a.json", "--out": "a.csv"},
    ),
    "shift": Command((), ("80 items",), {"--json": "a.json"}),
    "backtest": Command(
        ("--labels", "5,10", "--runs", "2", "--metrics", "accuracy"),
        ("2 runs", "all of them", "good, truth 0.", "covered"),
        {"--json": "a.json", "--html": "a.html"},
        "How far off are estimates from few labels?",
    ),
}

commands = pytest.mark.parametrize("command", COMMANDS)


@commands
def test_the_text_fits_80_columns(
    command: str, cli: Run, predictions_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(predictions_file.parent)  # a long path in a command is not broken
    code, out, err = cli(command, predictions_file.name, *COMMANDS[command].options)
    assert (code, err) == (0, "")
    assert [words for words in COMMANDS[command].words if words not in out] == []
    assert max(map(len, out.splitlines())) <= 80


@commands
def test_json_on_stdout_is_alone(command: str, cli: Run, predictions_file: Path) -> None:
    options = COMMANDS[command].options
    code, out, err = cli(command, predictions_file, *options, "--json", "-")
    assert code == 0, err
    assert out.endswith("}\n")
    warnings = strict(out).get("warnings", [])
    assert [line[: len("warning: ")] for line in err.splitlines()] == ["warning: "] * len(warnings)


@commands
def test_files_are_written_whole(
    command: str, cli: Run, tmp_path: Path, predictions_file: Path
) -> None:
    asked = COMMANDS[command]
    files = [x for option, name in asked.writes.items() for x in (option, tmp_path / name)]
    code, out, err = cli(command, predictions_file, *asked.options, *files)
    assert (code, err) == (0, "")
    written = sorted([*asked.writes.values(), predictions_file.name])
    assert sorted(path.name for path in tmp_path.iterdir()) == written
    alone = cli(command, predictions_file, *asked.options, "--json", "-")[1]
    assert (tmp_path / "a.json").read_text() == alone
    if command != "doctor":
        assert [name for name in asked.writes.values() if f"{tmp_path / name}\n" not in out] == []
    if "--html" in asked.writes:
        page = (tmp_path / "a.html").read_text("utf-8")
        assert page.rstrip().endswith("</html>")
        assert asked.page in page
    if "--svg" in asked.writes:
        ElementTree.parse(tmp_path / "a.svg")


@pytest.mark.parametrize(
    ("command", "option"), [(name, option) for name, c in COMMANDS.items() for option in c.writes]
)
def test_unwritable_outputs_are_found_before_the_work(
    command: str, option: str, cli: Run, tmp_path: Path, unwritable: Path
) -> None:
    # The input does not exist either; the output is complained of, so it was looked at first.
    path, options = unwritable.with_suffix(".csv"), COMMANDS[command].options
    err = refused(cli, tmp_path, command, tmp_path / "none.csv", *options, option, path)
    assert f"cannot write {option}" in err


@pytest.mark.parametrize("command", ["estimate", "annotations"])
def test_the_same_seed_and_any_workers_give_the_same(
    command: str, cli: Run, predictions_file: Path
) -> None:
    one, two, other = (
        strict(cli(command, predictions_file, "--json", "-", *options)[1])
        for options in (("--workers", "1"), ("--workers", "2"), ("--seed", "4"))
    )
    assert one == two
    assert other["seed"] == 4
    assert one["estimates"] != other["estimates"]


ONE = ("curve", "threshold", "label-next")
REFUSED: list[tuple[tuple[str, ...], list[str], str]] = [
    (("compare",), ["--metric", "acuracy"], r"unknown metric 'acuracy'; did you mean 'accuracy'\?"),
    (("compare",), ["--models", "good"], r"--models names 1 classifier; name two or more"),
    (("compare",), ["--models", "good,bad"], r"unknown model 'bad'"),
    (("compare",), ["--method", "autoeval", "--metric", "f1"], r"defined for 0 of 2"),
    (("compare", "shift"), ["--method", "auot"], r"unknown method 'auot'; did you mean 'auto'"),
    (("compare", "shift"), ["--model", "good"], r"names no columns: .*--model NAME=COL maps"),
    (("compare", "shift", "annotations"), ["--positive", "2"], r"unknown class '2'"),
    (("compare", "annotations"), ["--by", "place"], r"no column 'place'"),
    (("compare", "shift"), ["--confidence-level", "1"], r"--confidence-level must be between"),
    (ONE, ["--model", "god"], r"unknown model 'god'; did you mean 'good'|must name one.*good, god"),
    (ONE, ["--model", "poor"], r"--model must name one.*good, poor"),
    (ONE, ["--model", "m=no,such"], r"no"),
    (ONE, ["--method", "auto1"], r"did you mean 'auto'"),
    (ONE, ["--method", "autoeval"], r"forms no posterior"),
    (ONE, ["--positive", "2"], r"unknown class '2'"),
    (ONE[:2], ["--confidence-level", "1"], r"confidence.level.*1"),
    (ONE[:2], ["--estimand", "world"], r"world.*population"),
    (ONE, ["--out", "x.txt"], r"'x.txt' must end in .csv or .parquet"),
    (("threshold",), ["--min-recall", "1.5"], r"--min-recall.*1\.5"),
    (("threshold",), ["--min-recall", "nan"], r"--min-recall.*nan"),
    (("threshold",), ["--min-recall", "many"], r"'many' is not a valid float"),
    (
        ("threshold",),
        ["--condition", "cost <= 1", "--cost", "3"],
        r"--cost must be two costs.*got '3'",
    ),
    (("threshold",), ["--condition", "cost <= 1", "--cost", "1,inf"], r"--cost must be two costs"),
    (("threshold",), ["--condition", "recal >= .5"], r"'recal'.*did you mean 'recall'"),
    (("threshold",), ["--condition", "recall"], r"recall"),
    (("threshold",), ["--condition", "__import__('os') >= 1"], r"condition"),
    (("threshold",), ["--probability", "2"], r"--probability.*2"),
    (("backtest",), ["--labels", "10,many"], r"--labels must be whole numbers.*got '10,many'"),
    (("backtest",), ["--labels", "1"], r"labels must be a whole number, at least 2; got 1"),
    (("backtest",), ["--labels", "10,400"], r"fewer than .*: \d+ items have one; got 400: try 10"),
    (("backtest",), ["--runs", "0"], r"--runs.*0"),
    (("backtest",), ["--method", "labelled"], r"unknown method 'labelled'; did you mean 'labeled'"),
    (("backtest",), ["--by", "place"], r"no column 'place'"),
    (("backtest",), ["--confidence-level", "1"], r"--confidence-level must be between"),
    (("estimate",), ["--labels-out", "x.xlsx"], r"'x.xlsx' must end in .csv or .parquet"),
    (("estimate",), ["--threshold", "2"], r"from 0 to 1"),
    (("estimate",), ["--threshold", "a=x"], r"NAME=P with a number"),
    (("estimate",), ["--threshold", "z=0.5"], r"model 'z'"),
    (("estimate",), ["--threshold", "good=.3", "--threshold", "good=.4"], r"another one before it"),
]


@pytest.mark.parametrize(
    ("command", "options", "message"), [(c, o, m) for many, o, m in REFUSED for c in many]
)
def test_what_is_refused(
    command: str, options: list[str], message: str, cli: Run, tmp_path: Path, predictions_file: Path
) -> None:
    usual = COMMANDS[command].options
    err = refused(
        cli, tmp_path, command, predictions_file, *usual, *options, "--json", tmp_path / "out.json"
    )
    assert re.search(message, err), err


def test_a_threshold_must_be_asked_something_of(
    cli: Run, tmp_path: Path, predictions_file: Path
) -> None:
    err = refused(cli, tmp_path, "threshold", predictions_file, *QUICK)
    assert "say what the threshold must meet" in err
    assert "must name one of the classifiers: good, poor" in refused(
        cli, tmp_path, "curve", predictions_file
    )
