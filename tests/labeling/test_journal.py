"""Writing the record: on the disk before it is said, one writer at a time, nothing lost."""

from __future__ import annotations

import errno
import os
import random
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from record_faults import KEPT, LOST, Fault, Patch

import fewlabels as fl
from fewlabels.data.label_record import Event, Header, parse_record, read_record
from fewlabels.labeling.journal import Journal, NotSavedError
from fewlabels.labeling.session import Session

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
        assert f"cut short ({len(label('b').line()) - 20} bytes)" in journal.notes[0]
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


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "x" * 300, "nowhere/r", "."])
def test_a_path_that_no_file_can_have(name: str, path: Path) -> None:
    with pytest.raises(fl.UsageError, match=r"--labels .* cannot be written: .*; name a file in"):
        Journal(path.parent / name, HEADER)


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


# What may happen to a record while a page is up -------------------------------------------------


@pytest.mark.few(5)
@pytest.mark.skipif(sys.platform == "win32", reason="files that are open cannot be moved there")
@pytest.mark.parametrize("fault", [*LOST, *KEPT], ids=lambda fault: fault.__name__)
def test_what_is_said_to_be_saved_is_kept_whatever_happens_to_the_record(
    fault: Fault, opened: Callable[..., Session], file: Path, monkeypatch: Patch
) -> None:
    """At 20 of 40 labels: none is said to be saved that is not, and writing goes on when mended."""
    session, chance = opened(), random.Random(3)
    journal, path = session.journal, Path(f"{file}.labels.jsonl")
    said: dict[str, str] = {}
    places = chance.sample(range(40), 20)
    for k in range(40):
        key, name = f"c{k:03d}", chance.choice(["fine", "toxic"])
        if k in places:
            with fault(path, journal.content, monkeypatch):
                for _ in range(2):
                    error = refusal(session, key, name)
                    if error is None:
                        break
                    assert (error.lost, str(path) in str(error)) == (fault in LOST, True)
                    assert key not in journal.decisions
                assert (journal.lost() is not None) == (fault in LOST)
                assert (key in journal.decisions) == (fault in KEPT and fault.__name__ != "full")
                assert parse_record(journal.content).labels == journal_labels(session)
        if key not in journal.decisions:
            session.decide(key, name)
        said[key] = name
        assert journal.lost() is None
        assert read_record(path).labels == said == journal_labels(session)
    assert journal.whereabouts() == f"40 labels in {path}; the same command goes on"
    assert not list(path.parent.glob("*rescued*"))

    # And where nobody mends it.
    with fault(path, journal.content, monkeypatch):
        if refusal(session, "c050", "fine") is None:
            said["c050"] = "fine"
        session.close()
        told, again = journal.whereabouts(), journal.whereabouts()
    rescue = path.with_name("comments.csv.rescued1.labels.jsonl")
    if fault in KEPT:
        assert not rescue.exists()
        assert read_record(path).labels == said
    else:
        assert told == again
        assert f"40 labels in {rescue}, which --labels goes on with" in told
        assert str(path) in told
        assert stat.S_IMODE(rescue.stat().st_mode) == 0o600
        assert read_record(rescue).labels == said
        with Journal(rescue, journal.header) as further:
            assert len(further.decisions) == 40


def refusal(session: Session, key: str, name: str) -> NotSavedError | None:
    try:
        session.decide(key, name)
    except NotSavedError as error:
        return error
    return None


def journal_labels(session: Session) -> dict[str, str]:
    return {k: d.label for k, d in session.journal.decisions.items() if d.label is not None}


@pytest.mark.skipif(sys.platform == "win32", reason="files that are open cannot be moved there")
def test_a_rescue_has_a_name_of_its_own_or_is_said_not_to_be(path: Path) -> None:
    with Journal(path, HEADER) as journal:
        path.unlink()
        assert journal.whereabouts() == f"{path} is gone; it held no label"
    with Journal(path, HEADER) as journal:
        journal.add(label("a"))
        path.unlink()
        path.with_name("comments.csv.rescued1.labels.jsonl").write_text("mine\n")
        path.with_name("comments.csv.rescued2.labels.jsonl").symlink_to(path)
        assert "comments.csv.rescued3.labels.jsonl" in journal.whereabouts()
    assert not path.exists()
    assert path.with_name("comments.csv.rescued1.labels.jsonl").read_text() == "mine\n"
    folder = path.parent / "sub"
    folder.mkdir()
    with Journal(folder / "x.labels.jsonl", HEADER) as journal:
        journal.add(label("a"))
        folder.rename(path.parent / "elsewhere")
        assert journal.whereabouts().endswith(
            "is gone, and what it held cannot be written beside it: No such file or directory"
        )


def test_a_copy_that_another_page_writes_to_is_not_gone_on_with(path: Path) -> None:
    with Journal(path, HEADER) as journal:
        path.with_name("copy").write_bytes(journal.content)
        path.with_name("copy").replace(path)
        with Journal(path, HEADER), pytest.raises(NotSavedError, match="another page writes"):
            journal.add(label("a"))
        journal.add(label("a"))
    assert read_record(path).labels == {"a": "fine"}


@pytest.mark.skipif(sys.platform == "win32", reason="modes of Unix")
def test_a_record_is_for_its_owner_alone(path: Path) -> None:
    Journal(path, HEADER).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == [path.name]


def test_a_record_appears_when_its_first_line_is_on_the_disk(
    path: Path, monkeypatch: Patch
) -> None:
    def full(file: int) -> None:
        assert not path.exists()
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(fl.UsageError, match="cannot be written: No space left on device"):
            Journal(path, HEADER)
    assert os.listdir(path.parent) == []


@pytest.mark.skipif(sys.platform == "win32", reason="links of Unix")
def test_a_record_behind_a_link_or_without_links(path: Path, monkeypatch: Patch) -> None:
    """A link that leads nowhere yet, and a file system that has no links at all."""
    path.symlink_to("elsewhere")
    Journal(path, HEADER).close()
    assert read_record(path.with_name("elsewhere")).n_events == 0

    def link(source: str, target: Path) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    with Journal(path.with_name("plain"), HEADER) as journal:
        journal.add(label("a"))
    assert read_record(path.with_name("plain")).labels == {"a": "fine"}


def test_a_record_that_was_begun_for_nothing_is_removed(path: Path) -> None:
    Journal(path, HEADER).discard()
    assert not path.exists()
    with Journal(path, HEADER) as journal:
        journal.add(label("a"))
        journal.discard()
    assert path.exists()
    Journal(path, HEADER).discard()
    assert read_record(path).labels == {"a": "fine"}
