"""What every command that reads a file does alike: files, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest

Run = Callable[..., tuple[int, str, str]]
QUICK = ("--model", "good", "--method", "bayesian-calibration")


class Command(NamedTuple):
    """Options that make it answer, what it writes, and the heading of its page."""

    options: tuple[str, ...]
    writes: dict[str, str]
    page: str = ""


FILES = {"--json": "a.json", "--html": "a.html"}
OF_ONE = {**FILES, "--svg": "a.svg", "--out": "a.parquet"}
COMMANDS = {
    "doctor": Command((), {"--json": "a.json"}),
    "estimate": Command(("--metrics", "accuracy"), {**FILES, "--labels-out": "a.csv"}),
    "compare": Command(("--metric", "accuracy,brier"), FILES, "Which classifier is best?"),
    "calibration": Command(
        ("--bins", "5"), {**FILES, "--out": "a.csv"}, "Do the probabilities mean what they say?"
    ),
    "annotations": Command(
        (),
        {**FILES, "--out": "a.parquet"},
        "How well do the classifiers predict what annotators say?",
    ),
    "curve": Command(QUICK, OF_ONE),
    "threshold": Command((*QUICK, "--min-recall", ".5"), OF_ONE, "Where to put the threshold?"),
    "label-next": Command((*QUICK, "--size", "3"), {"--json": "a.json", "--out": "a.csv"}),
    "shift": Command((), {"--json": "a.json"}),
    "backtest": Command(
        ("--labels", "5,10", "--runs", "2", "--metrics", "accuracy"),
        FILES,
        "How far off are estimates from few labels?",
    ),
}


@pytest.mark.few(4)
@pytest.mark.slow_with("backtest")
@pytest.mark.parametrize("command", COMMANDS)
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


@pytest.mark.parametrize("command", ["estimate", "annotations"])
def test_the_same_seed_and_any_workers_give_the_same(
    command: str, answer: Callable[..., dict[str, Any]], predictions_file: Path
) -> None:
    one, two, other = (
        answer(command, predictions_file, *options)
        for options in (("--workers", "1"), ("--workers", "2"), ("--seed", "4"))
    )
    assert one == two
    assert other["seed"] == 4
    assert one["estimates"] != other["estimates"]
