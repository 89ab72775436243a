"""Writing the record: on the disk before it is said, one writer at a time, nothing lost."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import fewlabels as fl
from fewlabels.data.label_record import Event, Header, read_record
from fewlabels.labeling.journal import Journal, NotSavedError

HEADER = Header("comments.csv", "id", 60, "d1", ("fine", "toxic"), "toxic", "anna", "t0")


def label(item: str, name: str = "fine") -> Event:
    return Event("label", item, "anna", "t1", name, "random", 0.1, 10, ("text",))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "comments.csv.labels.jsonl"


def test_an_event_is_synced_before_it_counts(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this order: written, synced, and only then among the decisions."""
    seen: list[tuple[str, bool, int]] = []
    with Journal(path, HEADER) as journal:
        synced = os.fsync

        def fsync(file: int) -> None:
            line = b'"item": "a"' in path.read_bytes()
            seen.append(("synced", line, len(journal.decisions)))
            synced(file)

        monkeypatch.setattr(os, "fsync", fsync)
        journal.add(label("a"))
    assert seen == [("synced", True, 0)]
    assert read_record(path).labels == {"a": "fine"}


def test_a_record_is_gone_on_with(path: Path) -> None:
    with Journal(path, HEADER) as journal:
        journal.add(label("a"))
    with Journal(path, HEADER) as journal:
        assert list(journal.decisions) == ["a"]
        journal.add(label("b"))
        journal.add(Event("undo", "b", "anna", "t2"))
    record = read_record(path)
    assert (record.labels, record.n_events) == ({"a": "fine"}, 3)


def test_a_torn_line_is_written_over(path: Path) -> None:
    with Journal(path, HEADER) as journal:
        journal.add(label("a"))
    with path.open("ab") as file:
        file.write(label("b").line()[:-20])
    with Journal(path, HEADER) as journal:
        assert journal.torn == len(label("b").line()) - 20
        journal.add(label("c"))
    assert path.read_bytes() == HEADER.line() + label("a").line() + label("c").line()


def test_a_second_writer_is_refused_until_the_first_ends(path: Path) -> None:
    first = Journal(path, HEADER)
    with pytest.raises(fl.UsageError, match="another page writes to this record"):
        Journal(path, HEADER)
    first.close()
    Journal(path, HEADER).close()


def test_a_killed_writer_leaves_no_lock(path: Path) -> None:
    code = (
        "import os, sys\n"
        "from fewlabels.labeling.journal import Journal\n"
        "from fewlabels.data.label_record import Header\n"
        f"Journal(sys.argv[1], {HEADER!r})\n"
        "print('open', flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("open\n", -9)
    Journal(path, HEADER).close()


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"digest": "d2"}, r"is the record of another file, 'comments.csv': its 60 items .column "
         r"'id'. are not the 60 of 'comments.csv'; name another record with --labels"),
        ({"items": 61}, "is the record of another file"),
        ({"classes": ("fine", "rude")}, "is a record of the classes fine, toxic, and 'comments.csv'"
         " has fine, rude; say them with --classes"),
    ],
)  # fmt: skip
def test_a_record_of_other_items_is_refused(
    other: dict[str, Any], message: str, path: Path
) -> None:
    Journal(path, HEADER).close()
    before = path.read_bytes()
    with pytest.raises(fl.InputError, match=message) as caught:
        Journal(path, Header(**(vars(HEADER) | other)))
    assert len(str(caught.value).splitlines()) == 1
    assert path.read_bytes() == before
    Journal(path, HEADER).close()


def test_a_file_that_is_no_record_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine\n")
    with pytest.raises(fl.InputError, match="is no record of labels"):
        Journal(path, HEADER)
    assert path.read_text() == "mine\n"


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(fl.UsageError, match=r"--labels '.*' cannot be written: .*name a file in"):
        Journal(tmp_path / "none" / "x.labels.jsonl", HEADER)


@pytest.mark.parametrize("written", [0, 7])
def test_a_full_disk_says_so_and_loses_nothing(
    written: int, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a part of the line was written: the next one takes its place."""
    with Journal(path, HEADER) as journal:
        journal.add(label("a"))
        whole, write = path.read_bytes(), os.write

        def full(file: int, data: bytes) -> int:
            if written and data.startswith(b"{"):
                return write(file, data[:written])
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(os, "write", full)
            with pytest.raises(
                NotSavedError, match=r"cannot be written: No space left .*make room"
            ):
                journal.add(label("b"))
        assert path.read_bytes() == whole
        assert list(journal.decisions) == ["a"]
        journal.add(label("c"))
    assert read_record(path).labels == {"a": "fine", "c": "fine"}


def test_a_disk_that_is_full_when_it_is_synced(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Journal(path, HEADER) as journal:

        def full(file: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            with pytest.raises(NotSavedError):
                journal.add(label("a"))
        journal.add(label("b"))
    assert read_record(path).labels == {"b": "fine"}


@pytest.mark.skipif(sys.platform == "win32", reason="limits of a process are those of Unix")
def test_a_real_limit_of_the_system(path: Path) -> None:
    """A process that may write no file of more than 4 KB stands for a disk of that size."""
    code = (
        "import resource, signal, sys\n"
        "from fewlabels.labeling.journal import Journal, NotSavedError\n"
        "from fewlabels.data.label_record import Event, Header\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        f"journal = Journal(sys.argv[1], {HEADER!r})\n"
        "saved = 0\n"
        "try:\n"
        "    while True:\n"
        "        journal.add(Event('label', f'x{saved}', 'anna', 't', 'fine', 'random', .1, 10))\n"
        "        saved += 1\n"
        "except NotSavedError as error:\n"
        "    print(saved, len(journal.decisions), error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=True
    )
    saved, held, said = done.stdout.split(" ", 2)
    assert int(saved) == int(held) > 10
    assert "cannot be written: File too large" in said
    assert read_record(path).labels == {f"x{i}": "fine" for i in range(int(saved))}


@pytest.mark.skipif(sys.platform == "win32", reason="devices of Unix")
@pytest.mark.parametrize("device", ["/dev/null", "/dev/full"])
def test_a_place_that_keeps_nothing_is_refused(device: str) -> None:
    with pytest.raises(fl.UsageError, match="is no file that keeps what is written"):
        Journal(device, HEADER)
