"""`--votes`: long votes beside FILE, alone, or as FILE."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Run = Callable[..., tuple[int, str, str]]
Write = Callable[..., Path]


@pytest.fixture
def votes(write: Write) -> Path:
    """Five annotators on 60 items, three votes each."""
    rng = np.random.default_rng(3)
    truth = rng.integers(2, size=60)
    item = np.repeat(np.arange(60), 3)
    annotator = np.concatenate([rng.choice(5, size=3, replace=False) for _ in range(60)])
    wrong = rng.random(180) < np.array([0.1, 0.15, 0.2, 0.25, 0.3])[annotator]
    table = {
        "item": item.tolist(),
        "annotator": [f"w{a}" for a in annotator],
        "label": (truth[item] ^ wrong).tolist(),
    }
    return write(table, "votes.csv")


def answer(cli: Run, *arguments: str | Path) -> dict[str, Any]:
    options = ("--method", "majority-vote", "--metrics", "accuracy", "--json", "-")
    code, out, err = cli("estimate", *arguments, *options)
    assert code == 0, err
    result = json.loads(out)
    assert isinstance(result, dict)
    return result


def test_alone_or_as_the_file(cli: Run, votes: Path) -> None:
    alone = answer(cli, "--votes", votes)
    flag = answer(cli, votes, "--votes")
    assert alone == flag
    assert sorted(alone["models"]) == ["w0", "w1", "w2", "w3", "w4"]
    assert (alone["n_items"], alone["n_labeled"]) == (60, 0)


def test_beside_a_file(cli: Run, votes: Path, write: Write) -> None:
    wide = write({"id": [1, 0, 99], "label": [0, 1, 1], "site": ["n", "s", "s"]}, "wide.csv")
    result = answer(cli, wide, "--votes", votes, "--item", "id", "--by", "site")
    assert (result["n_items"], result["n_labeled"]) == (61, 3)
    assert [g["group"] for g in result["groups"]] == [None, "site=n", "site=s", "site=null"]


def test_duplicates(cli: Run, write: Write) -> None:
    table = {"item": [1, 1, 1, 2], "annotator": ["a", "a", "b", "b"], "label": [0, 1, 1, 0]}
    path = write(table, "votes.csv")
    code, out, err = cli("estimate", path, "--votes")
    assert (code, out) == (2, "")
    assert "--duplicates keep" in err
    for option, words in (("keep", "1 repeated votes"), ("last", "1 votes are left out")):
        assert words in answer(cli, path, "--votes", "--duplicates", option)["warnings"][-1]


def test_doctor(cli: Run, votes: Path, tmp_path: Path) -> None:
    code, out, err = cli("doctor", "--votes", votes, "--json", tmp_path / "d.json")
    assert (code, err) == (0, "")
    assert "180 by 5 annotators on 60 items" in out
    assert max(map(len, out.splitlines())) <= 80
    assert json.loads((tmp_path / "d.json").read_text())["counts"]["n_models"] == 5


def test_the_file_has_votes_and_nobody_said_so(cli: Run, votes: Path) -> None:
    said = "votes, one per row: item 'item', annotator 'annotator', vote 'label'"
    code, out, _ = cli("estimate", votes, "--method", "majority-vote")
    assert (code, said in out) == (0, True)
    code, out, _ = cli("doctor", votes)
    assert (code, said in " ".join(out.split())) == (0, True)
    assert "--votes" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--votes"], "Missing argument 'FILE'"),
        (["VOTES", "--duplicates", "keep"], "add --votes"),
        (["VOTES", "--votes", "--item", "itme"], "did you mean 'item'"),
        (["VOTES", "--votes", "--duplicates", "first"], "'first'"),
        (["--votes", "nowhere.csv"], "nowhere.csv: no such file"),
        (["VOTES", "--votes", "--model", "a=gold"], "--model names a column of the file beside"),
        (["VOTES", "--votes", "--domain", "site"], "no column 'site'"),
        (["VOTES", "--votes", "VOTES"], "item '0' is in row 1"),
        (["VOTES", "--votes", "--classes", "a,b"], "is not a class; the classes are a, b"),
        (["--votes", "VOTES", "--json", "VOTES"], "is the input file too"),
    ],
)
@pytest.mark.parametrize("command", ["estimate", "doctor"])
def test_mistakes(command: str, arguments: list[str], message: str, cli: Run, votes: Path) -> None:
    before = votes.read_bytes()
    given = [str(votes) if a == "VOTES" else a for a in arguments]
    code, _, err = cli(command, *given)
    assert code == 2
    assert message in err
    assert err.startswith("error: ")
    assert len(err.splitlines()) == 1
    assert votes.read_bytes() == before


def test_votes_inform_a_curve(cli: Run, votes: Path, columns: dict[str, Any], write: Write) -> None:
    wide = write(columns | {"item": list(range(80))})
    options = ("--model", "good", "--votes", votes, "--json", "-")
    code, out, err = cli("curve", wide, *options)
    assert code == 0, err
    assert json.loads(out)["model"] == "good"
