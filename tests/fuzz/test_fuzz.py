"""Whatever is thrown at the commands, they answer or say one line; see `attempts`."""

from __future__ import annotations

import sys
from pathlib import Path

import attacks
import pytest
from attempts import (
    AREAS,
    LABELED_TABLE,
    TABLE,
    Attack,
    Attempt,
    TooLateError,
    broken_by,
    calling,
    known,
    tried,
    within,
    write_table,
)
from oracles import HOW, live


@pytest.mark.parametrize("path", known(), ids=lambda path: path.stem)
def test_what_did_not_hold_once(path: Path) -> None:
    assert broken_by(Attempt.from_json(path.read_text())) is None


@pytest.mark.few(16)
@pytest.mark.parametrize("area", [area for area in AREAS if area != "processes"])
def test_some_attempts(area: str) -> None:
    made, broken = tried(area, 2)
    assert made >= 2
    assert broken == []


@pytest.mark.slow
@pytest.mark.parametrize("area", AREAS)
def test_all_attempts(area: str) -> None:
    assert tried(area)[1] == []


@pytest.mark.slow_with("streams", "schedulers", "bits")
@pytest.mark.parametrize("area", attacks.AREAS)
def test_some_attacks(area: str) -> None:
    assert attacks.tried(area, 2) == (2, [])


@pytest.mark.slow
@pytest.mark.parametrize("area", attacks.AREAS)
def test_all_attacks(area: str) -> None:
    assert attacks.tried(area)[1] == []


def test_attacks_that_do_not_hold_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong() -> None:
        raise ValueError("no")

    def hangs(_: list[str]) -> int:
        raise TooLateError

    assert "ValueError: no" in (calling("wrong", wrong).broken() or "")
    assert "no end" in (Attack(Attempt({}, ["hangs"]), hangs).broken() or "")
    assert calling("right", list, 0).broken() is None
    monkeypatch.chdir(tmp_path)
    for shown in ("a s3cret", "\x1b[31m", " ::error::x", "see ##[error]x", "a\u202eb"):
        assert live(shown, "s3cret") is not None
    for cell in ("=1+1", "＝1", "@x", "\t=1", "-x"):
        (tmp_path / "o.csv").write_text(f'a,"{cell}"\n', "utf-8")
        assert "a formula" in (live("", "s3cret") or "")
    (tmp_path / "o.csv").write_text("'=1,-1,+2.5e3,a=1\n")
    assert live("a :: b", "s3cret") is None
    (tmp_path / "o.html").write_text("s3cret")
    assert live("", "s3cret") == "a secret in o.html"
    assert within(["doctor", "none.csv"])[0] == 2


def test_each_script_writes_its_own_table(tmp_path: Path) -> None:
    page = tmp_path / "attempts.md"
    for first, second in (("| 1 |\n", "| a |\n"), ("| 2 |\n", "| b |\n")):
        write_table(page, first)
        write_table(page, second, second=True)
        write_table(page, first)
        text = page.read_text("utf-8")
        assert text.startswith("# Attempts to break it\n")
        assert (text.count("\n## "), text.count(first), text.count(second)) == (1, 1, 1)
        assert text.index(first) < text.index("## By other roads") < text.index(second)


def test_attempts_that_do_not_hold_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    import fewlabels.cli as cli

    attempt = Attempt({"f.csv": TABLE}, ["estimate", "f.csv"])

    def found(code: int, err: str = "", left: str = "") -> str:
        def main(_: list[str]) -> int:
            print(err, end="", file=sys.stderr)
            if left:
                Path(left).write_text("half")
            return code

        monkeypatch.setattr(cli, "main", main)
        return broken_by(attempt) or ""

    assert found(0) == ""
    assert found(2, "error: f.csv: what\n") == ""
    assert "exit code 70" in found(70, "Traceback\n")
    assert "not one line" in found(2, "error: a\nb\n")
    assert "not one line" in found(2)
    assert "insides" in found(0, "RuntimeWarning: overflow\n")
    assert "left" in found(2, "error: a\n", ".f.csv.part")
    assert "changed" in found(0, "", "f.csv")


def test_wrong_answers_are_seen() -> None:
    rows = [["a", "accuracy", None, 0.123]]
    right = {"n_items": 40, "n_labeled": 40, "rows": rows}
    attempt = Attempt(
        {"f.csv": LABELED_TABLE}, ["estimate", "f.csv", *HOW, "--metrics", "accuracy"],
        expected=right,
    )  # fmt: skip
    wrong = broken_by(attempt)
    assert wrong is not None
    assert wrong.startswith("wrong answer: accuracy of a")
    assert "n_labeled" in (broken_by(attempt._replace(expected=right | {"n_labeled": 3})) or "")
    assert "exit code 0, not 1" in (broken_by(attempt._replace(expected=None, code=1)) or "")


def test_wrong_files_are_seen() -> None:
    written = {"o.csv": {"label": ["0"], "p__a__1": [0.5]}}
    table = b"label,p__a__1\n0,.5\n1,.7\n"
    attempt = Attempt({"f.csv": table}, ["convert", "f.csv", "o.csv"], ("o.csv",))
    assert broken_by(attempt) is None
    columns: dict[str, list[object]] = {
        "label": ["0", "1"], "p__a__0": [0.5, 0.3], "p__a__1": [0.5, 0.7],
    }  # fmt: skip
    right = attempt._replace(expected={"files": {"o.csv": columns}})
    assert broken_by(right) is None
    for wrong, said in (
        (written["o.csv"], "columns are"),
        (columns | {"p__a__1": [0.5]}, "rows"),
        (columns | {"p__a__1": [0.5, 0.71]}, "in row 2 is"),
    ):
        found = broken_by(attempt._replace(expected={"files": {"o.csv": wrong}}))
        assert found is not None
        assert said in found


def test_an_attempt_is_kept_whole() -> None:
    attempt = Attempt({"a": bytes(range(256))}, ["doctor", "a"], ("b",), True, {"rows": []}, 0)
    assert Attempt.from_json(attempt.to_json()) == attempt
