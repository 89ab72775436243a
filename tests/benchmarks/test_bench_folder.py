"""The output folder: a person's files stay, and what the system refuses is one plain line."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench import Results
from bench.folder import CELLS, WRITTEN, folder_of, reason
from fewlabels.errors import InputError, UsageError

Run = Callable[..., Results]
Write = Callable[..., Path]
Same = Callable[[Results, Results], bool]


@pytest.mark.parametrize("name", WRITTEN)
def test_a_persons_files_are_not_overwritten(
    short: Run, write: Write, tmp_path: Path, name: str
) -> None:
    out, path = tmp_path / "mine", write()
    out.mkdir()
    if name == "figures":
        (out / name).mkdir()
    else:
        (out / name).write_text("[1]")
    with pytest.raises(UsageError, match=f"`out` .*mine' holds {name}, which no benchmark wrote"):
        short(data=path, out=out)
    assert [p.name for p in out.iterdir()] == [name]


def test_other_files_and_what_a_kill_left_are_no_obstacle(
    short: Run, write: Write, tmp_path: Path
) -> None:
    path, out = write(), tmp_path / "out"
    out.mkdir()
    (out / ".lock").touch()
    (out / "notes.txt").write_text("mine")
    short(data=path, runs=1)
    assert (out / "notes.txt").read_text() == "mine"
    # A kill before the first cell leaves the manifest alone.
    for name in ("results.parquet", "traits.parquet"):
        (out / name).unlink()
    (out / CELLS).unlink()
    short(data=path, runs=1)
    # Results without cells are a finished benchmark still.
    (out / CELLS).unlink()
    with pytest.raises(UsageError, match="holds parts of a benchmark already"):
        short(data=path, runs=1)


@pytest.mark.parametrize("content", ["{}", "[]", "{", '{"format": 1, "version": 3}'])
def test_a_manifest_of_something_else_is_a_persons(
    short: Run, write: Write, tmp_path: Path, content: str
) -> None:
    path, place = write(), tmp_path / "out" / "manifest.json"
    place.parent.mkdir()
    place.write_text(content)
    with pytest.raises(UsageError, match=r"holds manifest\.json, which no benchmark wrote"):
        short(data=path)
    with pytest.raises(InputError, match="is no manifest of a benchmark, or is damaged; name ano"):
        short(data=path, resume=True)
    assert place.read_text() == content


def test_a_folder_of_an_older_format_is_refused(short: Run, write: Write, tmp_path: Path) -> None:
    path, out = write(), tmp_path / "out"
    short(data=path, runs=1)
    said = json.loads((out / "manifest.json").read_text())
    (out / "manifest.json").write_text(json.dumps(said | {"format": 1}))
    for name in (CELLS, "results.parquet"):
        (out / name).unlink()
    (out / "parts").mkdir()
    for resume in (True, False):
        with pytest.raises(InputError, match=r"is of an older format, .* cannot go on; name anoth"):
            short(data=path, runs=1, resume=resume)


def test_what_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="`out` must name a folder; got ''"):
        folder_of("", "x")
    with pytest.raises(UsageError, match=r"`out` must name a folder; got 'a.x00b'"):
        folder_of("a\0b", "x")
    with pytest.raises(UsageError, match=r"`out` '.*file' is a file; name a folder"):
        folder_of(tmp_path / "file", "x")
    assert folder_of(None, "x") == Path("benchmark-x")


def test_a_path_below_a_file(short: Run, write: Write, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot write in .*: a part of the path is a file; mend"):
        short(data=write(), out=tmp_path / "file" / "out")


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EROFS, "the file system is read-only"),
        (errno.EACCES, "permission is denied"),
        (errno.ELOOP, "Too many levels"),
    ],
)
def test_a_folder_that_cannot_be_written(
    short: Run, write: Write, monkeypatch: pytest.MonkeyPatch, number: int, words: str, resume: bool
) -> None:
    path = write()
    if resume:
        short(data=path, runs=1)

    real = Path.open

    def refuse(place: Path, *how: Any, **more: Any) -> Any:
        if place.name == ".lock":
            raise OSError(number, "Too many levels", ".lock")
        return real(place, *how, **more)

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError, match=f"cannot write in .*: {words}; ") as found:
        short(data=path, runs=1, resume=resume)
    said = str(found.value)
    assert ("what is finished is kept" in said) == resume
    assert "Errno" not in said
    assert "\n" not in said


def test_a_manifest_that_cannot_be_read(short: Run, write: Write, tmp_path: Path) -> None:
    path = write()
    (tmp_path / "out" / "manifest.json").mkdir(parents=True)
    with pytest.raises(InputError, match="cannot be read"):
        short(data=path, resume=True)


def test_a_reason_without_a_number() -> None:
    assert reason(OSError("[Errno 5] the cable is cut")) == "the cable is cut"
    assert reason(OSError()) == "the system refuses"


# --- data that moved --------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["elsewhere/toy.parquet", "elsewhere/renamed.parquet"])
def test_data_may_move(short: Run, write: Write, tmp_path: Path, same: Same, place: str) -> None:
    before = write()
    short(data=before, runs=1)
    now = tmp_path / place
    now.parent.mkdir()
    shutil.move(before, now)
    with pytest.raises(
        UsageError, match=r"there is nothing at '.*' any more; if the data moved, na"
    ):
        short(data=[], runs=2, resume=True)
    seen: list[tuple[int, int]] = []
    grown = short(data=now, runs=2, resume=True, progress=lambda *done: seen.append(done))
    assert seen[0][0] > 0
    assert grown.datasets[0].name == "toy"
    said = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert said["data"] == [str(now)]
    assert same(grown, short(data=write(), runs=2, out=tmp_path / "whole"))


def test_moved_data_must_be_the_same(short: Run, write: Write, tmp_path: Path) -> None:
    before = write()
    short(data=before, runs=1)
    before.unlink()
    with pytest.raises(UsageError, match=r"content of data set 'toy' .* with `data` the new place"):
        short(data=write("b/toy.parquet", seed=3), resume=True)
    with pytest.raises(UsageError, match=r"data set 'toy' .* is missing; name its new place with"):
        short(data=write("c/other.parquet", seed=3), resume=True)
    # Content known by another name, and a new file of the known name.
    write("d/moved.parquet"), write("d/toy.parquet", seed=3)
    with pytest.raises(UsageError, match="would both be data set 'toy'"):
        short(data=tmp_path / "d", resume=True)


def test_moved_subsets_and_folders(short: Run, write: Write, tmp_path: Path, same: Same) -> None:
    models = ("a", "b", "c", "d", "e")
    folder = write("data/one/data.parquet", models=models).parents[1]
    write("data/two/data.parquet", models=models, seed=1)
    options = {"subsets": 3, "metrics": ["accuracy"], "runs": 1}
    whole = short("ssme-correlation", data=folder, **options)
    shutil.move(folder / "one", folder / "first")
    shutil.move(folder, tmp_path / "moved")
    again = short("ssme-correlation", data=tmp_path / "moved", resume=True, **options)
    assert same(whole, again)
