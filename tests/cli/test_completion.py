"""What shells are told, through the command as it is installed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def ask(instruction: str, words: str = "", at: int | str = 0) -> str:
    """What `fewlabels` prints for a shell that completes word `at` of `words`."""
    shell = {"_FEWLABELS_COMPLETE": instruction, "COMP_WORDS": words, "COMP_CWORD": str(at)}
    done = subprocess.run(
        [sys.executable, "-m", "fewlabels"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | shell,
    )
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("shell", "part"),
    [("bash", "complete -o nosort"), ("zsh", "compdef"), ("fish", "complete --no-files")],
)
def test_the_script_of_each_shell(shell: str, part: str) -> None:
    script = ask(f"{shell}_source")
    assert part in script
    assert f"_FEWLABELS_COMPLETE={shell}_complete" in script


@pytest.mark.parametrize(
    ("words", "at", "wanted"),
    [
        ("fewlabels est", 1, ["plain,estimate"]),
        ("fewlabels estimate --confidence-", 2, ["plain,--confidence-level"]),
        ("fewlabels estimate x.csv --method tempered", 4, ["plain,tempered-ensemble"]),
        ("fewlabels estimate x.csv --metrics ece,rec", 4, ["plain,ece,recall"]),
        ("fewlabels compare x.csv --metric acc", 4, ["plain,accuracy"]),
        ("fewlabels estimate exam", 2, ["file,exam"]),
        ("fewlabels estimate x.csv --html rep", 4, ["file,rep"]),
        ("fewlabels estimate x.csv --estimand s", 4, ["plain,sample"]),
    ],
)
def test_bash_is_told(words: str, at: int, wanted: list[str]) -> None:
    assert ask("bash_complete", words, at).splitlines() == wanted


def test_zsh_and_fish_are_told() -> None:
    assert "estimate" in ask("zsh_complete", "fewlabels est", 1).splitlines()
    shell = {"words": "fewlabels estimate --estimand", "at": "sam"}
    assert "plain,sample" in ask("fish_complete", **shell)
