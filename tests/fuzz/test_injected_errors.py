"""Whatever fails below the commands, in a library or the system, is one line; see `injected`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from fewlabels.data.table import naming_file
from fewlabels.errors import InputError

SCRIPT = Path(__file__).with_name("injected.py")


def walked(*most: str) -> tuple[int, list[str]]:
    """In a process of its own, as modules are wrapped while they are loaded."""
    command = [sys.executable, str(SCRIPT), *most]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    answer = json.loads(run.stdout)
    return answer["tried"], answer["found"]


@pytest.mark.slow
def test_some_calls_that_fail_are_one_line() -> None:
    tried, found = walked("6")
    assert tried == 6
    assert found == []


@pytest.mark.slow
def test_every_call_that_fails_is_one_line() -> None:
    tried, found = walked()
    assert tried >= 1000
    assert found == []


@pytest.mark.parametrize(
    "error",
    [
        OSError(5, "Input/output error"),
        pa.ArrowInvalid("a\nb"),
        pa.ArrowNotImplementedError("no such cast"),
        pa.ArrowMemoryError("malloc"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        RecursionError("maximum recursion depth exceeded"),
        MemoryError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_library_errors_become_one_line_with_the_name_of_the_file(error: Exception) -> None:
    with pytest.raises(InputError) as said, naming_file("f.csv"):
        raise error
    assert str(said.value).startswith("f.csv: ")
    assert "\n" not in str(said.value)


def test_a_fault_of_ours_is_none_of_the_file() -> None:
    with pytest.raises(KeyError), naming_file("f.csv"):
        raise KeyError("column")
