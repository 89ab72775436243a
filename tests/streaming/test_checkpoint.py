"""Checkpoints: whole or not there, and never a reason to stop."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fewlabels.errors import UsageError
from fewlabels.streaming import checkpoint as checkpoints
from fewlabels.streaming.checkpoint import Checkpoint, default_folder
from fewlabels.streaming.packing import pack

resource = pytest.importorskip("resource")


def test_saved_loaded_cleared(tmp_path: Path) -> None:
    first = Checkpoint(tmp_path / "deep" / "down", "abc")
    assert first.load() is None
    first.save({"done": 3, "sums": np.arange(4.0)})
    first.save({"done": 4, "sums": np.arange(5.0)})
    again = Checkpoint(tmp_path / "deep" / "down", "abc").load()
    assert again is not None
    assert again["done"] == 4
    np.testing.assert_array_equal(again["sums"], np.arange(5.0))
    assert os.listdir(tmp_path / "deep" / "down") == ["abc.checkpoint"]
    assert Checkpoint(tmp_path / "deep" / "down", "abd").load() is None
    first.clear()
    first.clear()
    assert first.load() is None
    assert os.listdir(tmp_path / "deep" / "down") == []


@pytest.mark.parametrize("key", ["", "a/b", "..", ".hidden", "a/"])
def test_a_key_is_the_name_of_a_file(tmp_path: Path, key: str) -> None:
    with pytest.raises(UsageError, match="`key` must be the name of a file"):
        Checkpoint(tmp_path, key)


def test_what_is_not_ours_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Checkpoint(tmp_path, "abc")
    here.save({"done": 3})
    packed = here.path.read_bytes()
    for damaged in (b"", packed[:-1], packed[:10] + b"x" + packed[11:], pack([1]), pack({})):
        here.path.write_bytes(damaged)
        assert here.load() is None
    here.path.write_bytes(packed)
    here.path.rename(tmp_path / "abd.checkpoint")
    assert Checkpoint(tmp_path, "abd").load() is None, "a file under another name"
    (tmp_path / "abd.checkpoint").rename(here.path)
    assert here.load() == {"done": 3}
    monkeypatch.setattr(checkpoints, "__version__", "99.0")
    assert here.load() is None


@contextmanager
def _no_file_over(size: int) -> Iterator[None]:
    """The system refuses to write more: as a full disk does, in the middle of the file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_told_once_and_stops_nothing(tmp_path: Path) -> None:
    told: list[str] = []
    here = Checkpoint(tmp_path, "abc", told.append)
    here.save({"done": 1})
    with _no_file_over(1000):
        here.save({"done": 2, "sums": np.zeros(1000)})
        here.save({"done": 3, "sums": np.zeros(1000)})
    assert len(told) == 1
    assert os.strerror(errno.EFBIG) in told[0]
    assert "FEWLABELS_CHECKPOINTS" in told[0]
    assert here.load() == {"done": 1}, "the older one stays"
    assert os.listdir(tmp_path) == ["abc.checkpoint"]
    here.save({"done": 4})
    assert here.load() == {"done": 4}, "the disk has room again"


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    told: list[str] = []
    here = Checkpoint(tmp_path / "file" / "folder", "abc", told.append)
    here.save({"done": 1})
    Checkpoint(tmp_path / "file" / "folder", "abc").save({"done": 1})  # nobody to tell
    assert len(told) == 1
    assert here.load() is None
    here.clear()


def test_a_mistake_in_the_program_is_not_hidden(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="cannot be packed"):
        Checkpoint(tmp_path, "abc").save({"done": object()})


_SAVING = """
import sys
from pathlib import Path
import numpy as np
from fewlabels.streaming.checkpoint import Checkpoint

here = Checkpoint(Path(sys.argv[1]), "abc")
done = 0
while True:
    here.save({"done": done, "sums": np.full(100_000, float(done))})
    done += 1
    print(done, flush=True)
"""


def test_killed_while_saving(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _SAVING, str(tmp_path)]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    with run.stdout:
        for _ in range(5):
            said = int(run.stdout.readline())
        run.send_signal(signal.SIGKILL)
        said = max([said, *map(int, run.stdout.read().split())])
    run.wait()
    here = Checkpoint(tmp_path, "abc")
    saved: Any = here.load()
    assert saved is not None
    assert saved["done"] in (said - 1, said)
    assert (saved["sums"] == saved["done"]).all()
    here.clear()
    assert os.listdir(tmp_path) == [], "its draft is gone too"


def test_default_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("FEWLABELS_CHECKPOINTS", "~/mine")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert default_folder() == tmp_path / "mine"
    monkeypatch.setenv("FEWLABELS_CHECKPOINTS", "")
    assert default_folder() == tmp_path / "cache" / "fewlabels" / "checkpoints"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert default_folder() == tmp_path / ".cache" / "fewlabels" / "checkpoints"
