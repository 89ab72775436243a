"""`--task` on the command line and in the file of --columns, and commands that look at one task."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Cli = Callable[..., tuple[int, str, str]]
TAGS = str(Path(__file__).resolve().parents[2] / "examples" / "tags.csv")
SAID = [
    *("--task", "spam=human_spam,bert_proba_spam", "--task", "insult=human_insult"),
    *("--label", "human", "--model", "bert=bert_proba"),
]
SAID[3] += ",bert_proba_insult"


def groups(cli: Cli, *arguments: str) -> list[str | None]:
    quick = ("--method", "tempered-ensemble", "--metrics", "accuracy")
    code, out, err = cli("estimate", TAGS, *quick, "--json", "-", *arguments)
    assert (code, err) == (0, "")
    told = json.loads(out)
    return list(dict.fromkeys(row["group"] for row in told["estimates"]))


def test_tasks_are_recognised_or_said(cli: Cli, tmp_path: Path) -> None:
    every = [None, *(f"task={t}" for t in ("toxic", "insult", "spam", "macro average"))]
    assert groups(cli) == every
    assert groups(cli, *SAID) == [None, "task=spam", "task=insult", "task=macro average"]
    assert groups(cli, "--label", "human_spam") == [None]
    # What is left of the names without the task may be said too.
    assert groups(cli, "--model", "bert=bert_proba", "--label", "human") == every
    file = tmp_path / "columns.toml"
    file.write_text(
        'label = "human"\n[models]\nbert = ["bert_proba"]\n[tasks]\n'
        'spam = ["human_spam", "bert_proba_spam"]\ninsult = ["human_insult", "bert_proba_insult"]\n'
    )
    assert groups(cli, "--columns", str(file)) == [None, "task=spam", "task=insult", every[-1]]


def test_the_doctor_writes_what_estimate_reads(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "columns.toml"
    code, out, _ = cli("doctor", TAGS, "--write", str(file))
    assert code == 0
    assert "--task toxic=human_toxic,bert_proba_toxic,rules_proba_toxic" in out.replace("\\\n", "")
    assert len(groups(cli, "--columns", str(file))) == 5


def test_a_column_of_tasks(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "long.csv"
    rows = [f"{i},{t},{(i + k) % 2 if i < 30 else ''},{(i * 7 % 10) / 10}"
            for k, t in enumerate(("a", "b")) for i in range(80)]  # fmt: skip
    file.write_text("\n".join(["item,criterion,label,p__net__1", *rows]) + "\n")
    code, out, err = cli("estimate", str(file), "--task", "criterion", "--metrics", "accuracy")
    assert (code, err) == (0, "")
    assert "criterion=a (80 items, 30 labeled)" in out
    assert "criterion=macro average" in out
    code, _, err = cli("estimate", str(file), "--task", "no")
    assert code == 2
    assert "no column 'no' (--task)" in err


@pytest.mark.parametrize(
    "command",
    [
        ["curve", "--model", "bert"],
        ["threshold", "--model", "bert", "--min-recall", "0.8"],
        ["label-next"],
        ["shift"],
        ["backtest"],
        ["calibrate", "--method", "temperature", "--save", "made.json"],
    ],
)
def test_commands_about_one_task_say_how_to_name_it(cli: Cli, command: list[str]) -> None:
    code, out, err = cli(command[0], TAGS, *command[1:])
    assert (code, out) == (2, "")
    assert "3 tasks (toxic, insult, spam)" in err
    assert "--label COL" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--task", "spam=human_spam,bert_proba_spam"], "names one task"),
        (["--task", "a=human_spam", "--task", "b=human_insult"], "names one column"),
        (["--task", "a=", "--task", "b=human_insult"], "--task must be NAME=LABEL,PREDICTION,.."),
        ([*SAID[:2], *SAID[:2]], "two tasks 'spam'"),
        ([*SAID, "--shift", "auto"], "--shift looks at one"),
    ],
)
def test_what_is_refused(cli: Cli, arguments: list[str], words: str) -> None:
    code, _, err = cli("estimate", TAGS, *arguments)
    assert code == 2
    assert words in err
    assert len(err.splitlines()) == 1
