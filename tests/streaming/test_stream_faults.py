"""Streams under faults: kills, damaged files, full disks. The answer is that of a quiet run."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fault_cases import (
    Command,
    answer,
    flip,
    other_columns,
    truncate,
    write_files,
    written,
)
from stream_cases import distance

import fewlabels as fl
from fewlabels.errors import InputError, UsageError
from fewlabels.evaluation import draws
from fewlabels.pipeline import Setup
from fewlabels.streaming import passes, two_passes
from fewlabels.streaming.checkpoint import Checkpoint
from fewlabels.streaming.passes import Passes

KILLS = 10
ASKED = ("--method", "spe", "--metrics", "accuracy,auc", "--by", "site", "--workers", "2")
DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "truncated": (truncate, "part-002.parquet"),
    "flipped": (flip, "part-002.parquet"),
    "other columns": (other_columns, "'site'"),
}


class InterruptedRunError(Exception):
    """What ends a run at once, as a kill would, but within the process."""


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint after every part, and few draws."""
    monkeypatch.setattr(passes, "SECONDS_BETWEEN", -1.0)
    monkeypatch.setattr(passes, "SHARE", 0)
    monkeypatch.setattr(draws, "ALL_DRAWS_ITEMS", 0)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_files(tmp_path / "in", 5, 40)


def estimated(source: Path, **options: Any) -> fl.Estimates:
    """A stream of the thriftiest kind: one number per classifier."""
    return fl.estimate_files(
        source, "majority-vote", "brier", by="site", confidence_level=None, workers=1,
        checkpoints=source.parent / "saved", **options,
    )  # fmt: skip


def interrupted(source: Path, step: str, after: int, **options: Any) -> None:
    """A run that ends after so many parts of a step are in its checkpoint."""
    done = 0

    def stop(progress: passes.Progress) -> None:
        nonlocal done
        done += progress.step == step
        if done > after:
            raise InterruptedRunError

    with pytest.raises(InterruptedRunError):
        estimated(source, progress=stop, **options)


def resumed(found: fl.Estimates) -> list[str]:
    said: list[str] = found.diagnostics["stream"]["resumed"]
    return said


def skipped(found: fl.Estimates) -> str:
    (said,) = (warning for warning in found.warnings if "skipped" in warning)
    return said


@pytest.mark.usefixtures("quick")
class TestResumed:
    @pytest.mark.parametrize(("step", "after"), [(two_passes.SCAN, 3), (two_passes.TALLY, 2)])
    def test_same_bits_and_files(self, source: Path, step: str, after: int) -> None:
        quiet = estimated(source, posterior=source.parent / "quiet")
        interrupted(source, step, after, posterior=source.parent / "out")
        draft = source.parent / ".out.unfinished"
        assert draft.exists() == (step == two_passes.TALLY), "there is something to go on from"
        assert not (source.parent / "out").exists(), "it appears when it is whole"
        draft.mkdir(exist_ok=True)
        (draft / ".part-00001.0123456789abcdef").write_bytes(b"of a worker that was killed")
        found = estimated(source, posterior=source.parent / "out", resume=True)
        assert distance(found, quiet) == 0.0
        assert resumed(found)[-1] == f"{step}: {after} of 5 parts were done already"
        assert written(source.parent / "out") == written(source.parent / "quiet")
        assert list((source.parent / "saved").iterdir()) == []
        assert not draft.exists()

    def test_tallies_of_other_rows_are_not_gone_on_with(self, source: Path) -> None:
        """The label model was fitted to a sample of rows that are no longer all."""
        interrupted(source, two_passes.TALLY, 3)
        shutil.copy(source / "part-000.parquet", source / "part-005.parquet")
        quiet = estimated(source)
        interrupted(source, two_passes.TALLY, 3)
        shutil.copy(source / "part-001.parquet", source / "part-006.parquet")
        found = estimated(source, resume=True)
        assert resumed(found) == ["reading: 6 of 7 parts were done already"]
        assert found.n_items == 280
        assert distance(found, estimated(source)) == 0.0
        assert distance(found, quiet) > 0

    def test_a_folder_that_the_tally_did_not_write(self, source: Path) -> None:
        interrupted(source, two_passes.TALLY, 3)
        found = estimated(source, posterior=source.parent / "out", resume=True)
        assert resumed(found) == ["reading: 5 of 5 parts were done already"]
        assert len(written(source.parent / "out")) == 5

    def test_a_part_that_is_gone(self, source: Path) -> None:
        out = source.parent / "out"
        interrupted(source, two_passes.TALLY, 3, posterior=out)
        (source.parent / ".out.unfinished" / "part-00001.parquet").unlink()
        found = estimated(source, posterior=out, resume=True)
        assert resumed(found) == ["reading: 5 of 5 parts were done already"]
        assert len(written(out)) == 5

    def test_files_of_others_stay(self, source: Path) -> None:
        out = source.parent / "out"
        out.mkdir()
        shutil.copy(source / "part-000.parquet", out / "part-00000.parquet")
        before = (out / "part-00000.parquet").read_bytes()
        for resume in (False, True):
            with pytest.raises(UsageError, match=r"holds files already \(part-00000.parquet\)"):
                estimated(source, posterior=out, resume=resume)
            with pytest.raises(UsageError, match="is the folder that is read from"):
                estimated(source, posterior=source, resume=resume)
        assert (out / "part-00000.parquet").read_bytes() == before
        assert len(list(source.iterdir())) == 5


@pytest.mark.few(1)
@pytest.mark.slow_with("auto", "bee", "spe", "ssme-flow")
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("method", ["auto", "dawid-skene", "bee", "ssme-kde", "spe", "ssme-flow"])
def test_the_fit_is_kept(method: str, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is killed again and again must not begin with it each time."""
    by_method = {"metrics": "roc_auc", "checkpoints": source.parent / "saved", "workers": 1}
    by_method["confidence_level"] = None if method in ("spe", "ssme-kde", "ssme-flow") else 0.9
    quiet = fl.estimate_files(source, method, **by_method)

    def stop(progress: passes.Progress) -> None:
        if progress.step == two_passes.TALLY:
            raise InterruptedRunError

    with pytest.raises(InterruptedRunError):
        fl.estimate_files(source, method, progress=stop, **by_method)
    with monkeypatch.context() as patch:
        patch.setattr(Setup, "fit", lambda *given: pytest.fail("fitted again"))
        found = fl.estimate_files(source, method, resume=True, **by_method)
    assert distance(found, quiet) == 0.0
    assert found.warnings == quiet.warnings
    assert list((source.parent / "saved").iterdir()) == []
    # Other rows need another.
    with pytest.raises(InterruptedRunError):
        fl.estimate_files(source, method, progress=stop, **by_method)
    shutil.copy(source / "part-000.parquet", source / "part-005.parquet")
    again = fl.estimate_files(source, method, resume=True, **by_method)
    assert distance(again, fl.estimate_files(source, method, **by_method)) == 0.0


@pytest.mark.usefixtures("quick")
class TestPosteriorFolder:
    """It is there when all of it is, whatever happens."""

    def test_one_that_is_there_is_filled_at_the_end(self, source: Path) -> None:
        out = source.parent / "out"
        out.mkdir()
        (out / ".hidden").touch()
        interrupted(source, two_passes.TALLY, 3, posterior=out)
        assert sorted(p.name for p in out.iterdir()) == [".hidden", ".unfinished"]
        found = estimated(source, posterior=out, resume=True)
        assert resumed(found)[-1] == "estimating: 3 of 5 parts were done already"
        (out / ".hidden").unlink()
        assert len(written(out)) == 5

    def test_going_on_after_the_end_writes_it_again(self, source: Path) -> None:
        """A kill may have come between the last step and the word that it is done."""
        out = source.parent / "out"
        estimated(source, posterior=out)
        before = written(out)
        estimated(source, posterior=out, resume=True)
        assert written(out) == before

    def test_two_at_once(self, source: Path) -> None:
        out = source.parent / "out"
        refusals = []

        def second(progress: passes.Progress) -> None:
            with pytest.raises(UsageError, match="another process writes to --posterior") as caught:
                estimated(source, posterior=out)
            refusals.append(str(caught.value))

        found = estimated(source, posterior=out, progress=second)
        assert len(refusals) == 10, "in both passes"
        assert distance(found, estimated(source)) == 0.0
        assert len(written(out)) == 5

    def test_an_error_before_anything_leaves_nothing(self, source: Path) -> None:
        with pytest.raises(UsageError, match="brie"):
            fl.estimate_files(
                source, "majority-vote", "brie", posterior=source.parent / "out",
                checkpoints=source.parent / "saved",
            )  # fmt: skip
        interrupted(source, two_passes.SCAN, 2, posterior=source.parent / "out")
        assert {path.name for path in source.parent.iterdir()} <= {"in", "saved"}

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
    def test_it_appears_with_the_other_outputs(
        self,
        source: Path,
        cli: Callable[..., tuple[int, str, str]],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setenv("FEWLABELS_CHECKPOINTS", str(source.parent / "saved"))
        out = source.parent / "out"
        asked = ("estimate", source, "--method", "majority-vote", "--posterior", out)
        code, _, err = cli(*asked, "--json", source.parent / "a.json", "--html", "/dev/full")
        assert (code, len(err.splitlines())) == (2, 1)
        there = {path.name for path in source.parent.iterdir()}
        assert there == {"in", "saved", ".out.unfinished"}, "to go on with, and nothing else"
        code, _, err = cli(*asked, "--json", source.parent / "a.json", "--resume")
        assert (code, len(written(out))) == (0, 5)
        said = json.loads((source.parent / "a.json").read_text())["diagnostics"]["stream"]
        assert said["resumed"][-1] == "estimating: 5 of 5 parts were done already"
        assert list((source.parent / "saved").iterdir()) == []
        assert (source.parent / "a.json").exists()


@pytest.mark.usefixtures("quick")
class TestDamagedFiles:
    @pytest.mark.few(1)
    @pytest.mark.parametrize("damage", DAMAGE)
    def test_refused_left_out_or_mended(self, damage: str, source: Path) -> None:
        harm, named = DAMAGE[damage]
        bad, aside = source / "part-002.parquet", source.parent / "aside.parquet"
        whole = estimated(source)
        shutil.copy(bad, aside)
        bad.unlink()
        without = estimated(source, posterior=source.parent / "without")
        shutil.copy(aside, bad)
        harm(bad)
        with pytest.raises(InputError, match=named) as caught:
            estimated(source)
        assert "\n" not in str(caught.value)
        assert "part-002.parquet" in str(caught.value)

        found = estimated(source, skip_bad_files=True, posterior=source.parent / "out")
        assert distance(found, without) == 0.0
        assert found.n_items == without.n_items == 160
        assert found.diagnostics["stream"]["skipped_files"] == 1
        assert found.diagnostics["stream"]["files"] == 4
        said = "1 file was skipped, and the estimates are without it: part-002.parquet ("
        assert skipped(found).startswith(said)
        assert "part-002.parquet: " not in skipped(found), "its name is said"
        assert written(source.parent / "out") == written(source.parent / "without")

        with pytest.raises(InputError):
            estimated(source)
        shutil.copy(aside, bad)
        mended = estimated(source, resume=True)
        assert distance(mended, whole) == 0.0
        if damage == "flipped":  # the others are refused before anything is read
            assert resumed(mended) == ["reading: 2 of 5 parts were done already"]

    def test_going_on_without_them(self, source: Path) -> None:
        """Which files were left out is known, and what is written stays."""
        for name in ("part-001.parquet", "part-003.parquet"):
            flip(source / name)
        out = source.parent / "out"
        quiet = estimated(source, skip_bad_files=True)
        assert quiet.diagnostics["stream"]["skipped_files"] == 2
        assert "2 files were skipped, and the estimates are without them" in skipped(quiet)
        for step, after in ((two_passes.SCAN, 2), (two_passes.TALLY, 2)):
            options = {"skip_bad_files": True, "posterior": out}
            interrupted(source, step, after, resume=step == two_passes.TALLY, **options)
        found = estimated(source, resume=True, **options)
        assert resumed(found) == [
            "reading: 3 of 3 parts were done already",
            "estimating: 2 of 3 parts were done already",
        ]
        assert distance(found, quiet) == 0.0
        assert found.warnings == quiet.warnings
        assert len(written(out)) == 3

    def test_many_are_left_out_in_one_go(
        self, source: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("part-000.parquet", "part-002.parquet", "part-004.parquet"):
            flip(source / name)
        steps = []
        run = Passes.run
        monkeypatch.setattr(Passes, "run", lambda s, *a, **k: steps.append(a[0]) or run(s, *a, **k))
        found = estimated(source, skip_bad_files=True)
        assert found.diagnostics["stream"]["skipped_files"] == 3
        assert steps == [two_passes.SCAN, two_passes.TALLY]

    def test_a_file_that_goes_between_the_passes(self, source: Path) -> None:
        """Its rows are taken out again, and what was written of them."""
        out = source.parent / "out"

        def harm(progress: passes.Progress) -> None:
            if progress.step == two_passes.TALLY:
                (source / "part-003.parquet").unlink(missing_ok=True)

        found = estimated(source, skip_bad_files=True, posterior=out, progress=harm)
        assert (found.n_items, found.diagnostics["stream"]["skipped_files"]) == (160, 1)
        assert distance(found, estimated(source)) == 0.0
        assert [t.num_rows for t in written(out).values()] == [40] * 4


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("again", ["in place", "by another file"])
def test_going_on_notices_a_file_of_equal_size_and_time(source: Path, again: str) -> None:
    """A page that differs in one number, written back with the times that the file had."""
    changed, other = source / "part-001.parquet", source.parent / "other.parquet"
    table = pq.read_table(changed)
    plain = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    pq.write_table(table, changed, **plain)
    interrupted(source, two_passes.TALLY, 2)
    before = changed.stat()
    turned = pa.array(table.column("p__good__1").to_numpy()[::-1])
    pq.write_table(table.set_column(1, "p__good__1", turned), other, **plain)
    content = other.read_bytes()
    assert len(content) == before.st_size
    if again == "in place":
        changed.write_bytes(content)
    else:
        other.replace(changed)
    os.utime(changed, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = changed.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    found = estimated(source, resume=True)
    assert not any("5 of 5" in line for line in resumed(found))
    assert distance(found, estimated(source)) == 0.0


@pytest.mark.few(2)
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "wrong",
    [
        lambda saved: {},
        lambda saved: saved | {"done": 3},
        lambda saved: saved | {"bad": [[1, 2, 3]]},
        lambda saved: saved | {"state": None},
        lambda saved: saved | {"state": replace(saved["state"], size="many")},
        lambda saved: saved | {"state": replace(saved["state"], model_rows=np.zeros((2, 2)))},
        lambda saved: saved | {"state": replace(saved["state"], given=[], n_rows=[])},
    ],
)
def test_a_checkpoint_that_is_whole_and_holds_something_else(
    source: Path, wrong: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = estimated(source)
    interrupted(source, two_passes.TALLY, 2)
    load = Checkpoint.load

    def other(self: Checkpoint) -> Any:
        saved = load(self)
        return wrong(saved) if saved is not None and self.path.stem.endswith("-0") else saved

    monkeypatch.setattr(Checkpoint, "load", other)
    assert distance(estimated(source, resume=True), whole) == 0.0


@pytest.mark.usefixtures("quick")
def test_a_disk_that_is_full_is_no_bad_file(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--skip-bad-files would leave out every file that cannot be written of."""
    from fewlabels.streaming import posterior_files

    replace = os.replace

    def full(draft: Any, path: Any) -> None:
        if str(path).endswith("part-00003.parquet"):
            raise OSError(28, "No space left on device")
        replace(draft, path)

    out = source.parent / "out"
    with monkeypatch.context() as patch:
        patch.setattr(posterior_files.os, "replace", full)
        with pytest.raises(UsageError, match="No space left on device; make room") as caught:
            estimated(source, posterior=out, skip_bad_files=True)
    assert "\n" not in str(caught.value)
    assert not out.exists()
    unfinished = written(out.with_name(".out.unfinished"))
    assert set(unfinished) <= {f"part-0000{k}.parquet" for k in (0, 1, 2, 4)}
    estimated(source, posterior=out, skip_bad_files=True, resume=True)
    assert len(written(out)) == 5


def test_exit_code_and_one_line(
    source: Path, cli: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEWLABELS_CHECKPOINTS", str(source.parent / "saved"))
    flip(source / "part-002.parquet")
    asked = ("estimate", source, "--engine", "threads", "--method", "majority-vote")
    code, out, err = cli(*asked)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert err.startswith("error: part-002.parquet: ")
    code, out, err = cli(*asked, "--metrics", "accuracy", "--skip-bad-files", "--json", "-")
    assert code == 0
    assert json.loads(out)["diagnostics"]["stream"]["skipped_files"] == 1
    assert "\nwarning: 1 file was skipped" in f"\n{err}"


def prepared(folder: Path) -> Command:
    """A run of some seconds over many small files, and where its checkpoints go."""
    source = write_files(folder / "in", 24, 500)
    return Command(source, folder / "saved", "--engine", "threads", *ASKED)


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any], float]:
    """Answer, files and seconds of a run that nothing disturbs."""
    folder = tmp_path_factory.mktemp("quiet")
    begun = time.monotonic()
    code, out, err = prepared(folder).run("--json", "-", "--posterior", folder / "out")
    assert (code, err) == (0, "")
    return answer(out), written(folder / "out"), time.monotonic() - begun


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["threads", "processes"])
def test_ten_kills_of_the_main_process(engine: str, quiet: Any, tmp_path: Path) -> None:
    expected, files, seconds = quiet
    command, out = prepared(tmp_path), tmp_path / "out"
    chance = random.Random(11)
    kills, went_on = 0, False
    while kills < KILLS:
        run = command.start("--resume", "--json", "-", "--posterior", out, "--engine", engine)
        try:
            run.communicate(timeout=chance.uniform(0.3, 0.9) * seconds)
        except subprocess.TimeoutExpired:
            os.kill(run.pid, signal.SIGKILL)
            run.communicate()
            kills += 1
            went_on |= any((tmp_path / "saved").glob("*.checkpoint"))
            if out.exists():  # killed as it came to its end
                assert written(out) == files
                shutil.rmtree(out)
        else:
            shutil.rmtree(out)  # it got to its end: begin anew
    code, said, err = command.run("--resume", "--json", "-", "--posterior", out)
    # The last kill may have come before anything was saved; some came after.
    assert (code, err, went_on) == (0, "", True)
    found = answer(said)
    found["diagnostics"]["stream"]["engine"] = expected["diagnostics"]["stream"]["engine"]
    assert found == expected
    assert written(out) == files
    assert list((tmp_path / "saved").iterdir()) == []


def _children(of: int) -> list[int]:
    """Dask's workers among the processes of a group."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            mine = entry.name.isdigit() and int(fields[2]) == of and fields[0] != "Z"
            if mine and int(entry.name) != of and b"spawn_main" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except (OSError, IndexError, ValueError):
            continue
    return found


@pytest.mark.slow
def test_ten_kills_of_dask_workers(quiet: Any, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    expected, files, _ = quiet
    command, out = prepared(tmp_path), tmp_path / "out"
    chance = random.Random(5)
    killed: set[int] = set()
    while len(killed) < KILLS:
        shutil.rmtree(out, ignore_errors=True)
        shutil.rmtree(tmp_path / "saved", ignore_errors=True)
        run = command.start("--json", "-", "--posterior", out, "--engine", "dask")
        done = threading.Event()

        def kill(run: subprocess.Popen[str] = run, done: threading.Event = done) -> None:
            while not done.is_set() and len(killed) < KILLS:
                time.sleep(chance.uniform(0.3, 1.2))
                there = _children(run.pid)
                if there and any((tmp_path / "saved").glob("*.checkpoint")):  # they are at work
                    victim = chance.choice(there)
                    os.kill(victim, signal.SIGKILL)
                    killed.add(victim)

        killer = threading.Thread(target=kill)
        killer.start()
        said, err = run.communicate(timeout=400)
        done.set()
        killer.join()
        assert (run.returncode, err) == (0, "")
        found = answer(said)
        found["diagnostics"]["stream"]["engine"] = "threads"
        assert found == expected
        assert written(out) == files


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mount a disk of that size; mounting it again changes the size."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = False

    def mount(size: str) -> Path:
        nonlocal mounted
        how = "remount," if mounted else ""
        command = ["mount", "-t", "tmpfs", "-o", f"{how}size={size}", "tmpfs", str(place)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"cannot mount a small disk: {done.stderr.strip()}")
        mounted = True
        return place

    yield mount
    if mounted:
        subprocess.run(["umount", str(place)], check=True)


@pytest.mark.slow
class TestFullDisk:
    def test_posteriors(self, quiet: Any, tmp_path: Path, small_disk: Any) -> None:
        expected, files, _ = quiet
        command, out = prepared(tmp_path), small_disk("160k") / "out"
        code, said, err = command.run("--json", "-", "--posterior", out, "--skip-bad-files")
        assert (code, said, len(err.splitlines())) == (2, "", 1)
        assert "No space left on device" in err
        assert "--resume goes on after it" in err
        assert not out.exists()
        there = written(out.with_name(".out.unfinished"))
        assert 0 < len(there) < len(files)
        assert there == {name: files[name] for name in there}
        small_disk("4m")
        code, said, err = command.run("--json", "-", "--posterior", out, "--resume")
        assert (code, err) == (0, "")
        assert "reading: 24 of 24" in said
        assert answer(said) == expected
        assert written(out) == files

    def test_checkpoints(self, quiet: Any, tmp_path: Path, small_disk: Any) -> None:
        command = prepared(tmp_path)
        command.checkpoints = small_disk("64k") / "saved"
        code, said, err = command.run("--json", "-")
        assert code == 0
        assert [line for line in err.splitlines() if "No space left on device" in line] == [
            err[:-1]
        ]
        assert not list(command.checkpoints.iterdir())
        found = answer(said)
        assert found["estimates"] == quiet[0]["estimates"]
        assert "the run goes on" in found["warnings"][-1]

    def test_json(self, quiet: Any, tmp_path: Path, small_disk: Any) -> None:
        command, disk = prepared(tmp_path), small_disk("4k")
        code, said, err = command.run("--json", disk / "out.json")
        assert (code, said, len(err.splitlines())) == (2, "", 1)
        assert "No space left on device" in err
        assert list(disk.iterdir()) == []
        small_disk("1m")
        code, _, err = command.run("--json", disk / "out.json", "--resume")
        assert (code, err) == (0, "")
        assert answer((disk / "out.json").read_text()) == quiet[0]
        assert [path.name for path in disk.iterdir()] == ["out.json"]
