"""Numbers of docs/papers.md, and of sentences of other pages, are those of the result files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import papers
import quoted
from fewlabels.methods.registry import METHODS
from fewlabels.methods.settings import settings_of

ROOT = Path(__file__).resolve().parents[2]

PRINTED = [one for paper in papers.SAID.values() for one in paper.get("printed", ())]
ROWS = [(name, row) for name, paper in papers.SAID.items() for row in paper["row"]]


def is_study(command: str) -> bool:
    """Whether a command is `python -m benchmarks NAME`, with a name of `STUDIES`."""
    *start, name = command.split()[:4]
    studies = (ROOT / "benchmarks" / "__main__.py").read_text(encoding="utf-8")
    return start == ["python", "-m", "benchmarks"] and f'    "{name}": Study(' in studies


def test_the_page_of_the_papers_is_what_its_script_writes() -> None:
    assert papers.written() == papers.page(), "run python -m benchmarks papers"


def test_every_method_of_a_paper_stands_in_a_table() -> None:
    shown = {name for paper in papers.SAID.values() for name in paper["methods"]}
    own = {"learned-ensemble", "tempered-ensemble", "agreement-ensemble"}
    own |= {"averaged-curves", "monotone-curves"}  # of this project
    assert shown | own == set(METHODS)


@pytest.mark.parametrize(
    "row", [row for _, row in ROWS], ids=[f"{name}: {row['item']}" for name, row in ROWS]
)
def test_what_a_row_names_is_there(row: dict[str, str]) -> None:
    """Files, scripts, protocols and settings; a number of ours is read, not typed."""
    where = row.get("where", "")
    for path in re.findall(r"`([\w/]+\.(?:py|toml))`?", where):
        there = [ROOT / "src" / "fewlabels" / path, ROOT / path]
        assert any(place.exists() for place in there), path
    command = row.get("command", "")
    if command.startswith("python "):
        assert is_study(command), command
    if "calibrate" in command:
        return  # its methods are scalings
    for setting in re.findall(r"--method ([\w-]+)((?: --option \S+)*)", command):
        named = re.findall(r'--option "?(\w+)=', setting[1])
        assert set(named) <= set(settings_of(setting[0])), command
    sources = set(row) - papers._FIELDS
    named = set(re.findall(r"\{(\w+)[:}]", row["here"]))
    assert sources == named


@pytest.mark.parametrize(
    "sentence", quoted.sentences(), ids=lambda one: f"{one.page}: {one.text[:40]}"
)
def test_a_sentence_says_what_the_results_say(sentence: quoted.Sentence) -> None:
    text = (ROOT / sentence.page).read_text(encoding="utf-8")
    assert quoted.differences(sentence, text)[1] == []


@pytest.mark.parametrize("one", PRINTED, ids=lambda one: one["item"])
def test_methods_that_agree_with_a_paper_do_so_to_a_hundredth(one: papers.Paper) -> None:
    assert is_study(one["command"])
    cells = papers.printed(one).dropna()
    if cells.empty:
        pytest.skip("not run yet")
    equal = cells[cells["method"].isin(one.get("equal", ()))]
    assert ((equal["here"] - equal["paper"]).abs() < 0.0101).all(), equal


def test_a_wrong_number_is_seen_and_mended() -> None:
    source = {"a": "dependencies.json > dependent", "b": "dependencies.json > pairs"}
    sentence = quoted.Sentence("README.md", "of {b} pairs {a} are", source)
    right = f"{quoted.find(source['a'])}"
    text, wrong = quoted.differences(sentence, "Said: of 21 pairs\n99 are dependent.")
    assert len(wrong) == 1
    assert f"pairs\n{right} are" in text
    assert quoted.differences(sentence, text)[1] == []
    assert quoted.differences(sentence, "Nothing of the kind.")[1]


def test_formats() -> None:
    figure = quoted.Figure("0.934 ± 0.01, 88 ± 2")
    assert f"{figure:n} {figure:.1f} {figure:p2} {figure:%} {figure:#2}" == "0.934 0.9 .93 93 88"


def test_every_run_is_a_study_and_says_what_it_takes() -> None:
    for one in papers.RUNS:
        assert is_study(one["command"]), one["command"]
        assert one["minutes"] > 0


def test_runs_that_do_not_fit_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert papers.run(0.0, None) == 0
    said = capsys.readouterr().out
    assert said.count("skipped (") == len(papers.RUNS)
