"""Output files: all of them or none."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from fewlabels.cli.output import check_outputs, json_text, json_writer, write_outputs
from fewlabels.errors import UsageError


def test_check_leaves_nothing_behind(tmp_path: Path) -> None:
    check_outputs({"--json": str(tmp_path / "out.json"), "--html": None})
    assert list(tmp_path.iterdir()) == []


def test_none_is_written_when_one_fails(tmp_path: Path) -> None:
    old = tmp_path / "old.json"
    old.write_text("old")

    def fail(path: Path) -> None:
        path.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(UsageError, match=r"cannot write .*No space left"):
        write_outputs({str(old): json_writer({"a": 1}), str(tmp_path / "new"): fail})
    assert old.read_text() == "old"
    assert list(tmp_path.iterdir()) == [old]


def test_other_errors_leave_nothing_either(tmp_path: Path) -> None:
    def fail(path: Path) -> None:
        path.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_outputs({str(tmp_path / "new"): fail})
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_gets_the_bytes(tmp_path: Path) -> None:
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    check_outputs({"--json": pipe})
    write_outputs({pipe: json_writer({"a": 1})})
    assert os.read(reader, 100) == b'{\n  "a": 1\n}\n'
    os.close(reader)


def test_a_new_file_has_the_usual_mode(tmp_path: Path) -> None:
    (tmp_path / "usual").write_text("")
    write_outputs({str(tmp_path / "new"): json_writer({})})
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_json_is_strict_and_plain() -> None:
    assert json.loads(json_text({"a": "ü\ud800"})) == {"a": "ü\ud800"}
    assert json_text({"a": "ü"}).isascii()
    with pytest.raises(ValueError, match="Out of range float"):
        json_text({"a": float("nan")})
