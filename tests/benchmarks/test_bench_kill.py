"""Kills at random moments: a resumed benchmark equals an uninterrupted one."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bench import Results
from bench.cells import Body, Cell
from bench.command import main
from bench.folder import CELLS, KeptCells
from bench.runner import run_jobs
from fewlabels.errors import InputError

Write = Callable[..., Path]
BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
Same = Callable[[Results, Results], bool]

OPTIONS = [
    "--methods", "labeled,ensemble,tempered-ensemble", "--n-labeled", "10,20",
    "--n-unlabeled", "60", "--curve-runs", "2", "--metrics", "accuracy,ece_quantile",
]  # fmt: skip


def _start(path: Path, out: Path, runs: int, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(BENCHMARKS), "ssme-binary", "--data", str(path)]
    return subprocess.Popen(
        [*command, "--out", str(out), "--workers", "2", "--runs", str(runs), *OPTIONS, *more],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def _kept(folder: Path) -> int:
    """How many cells are there."""
    path = folder / CELLS
    return sum(map(bool, path.read_bytes().split(b"\n"))) if path.exists() else 0


def _workers_of(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(child) for child in text.split()]


def _command_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _kill_and_resume(path: Path, folder: Path, kills: int, runs: int) -> Results:
    """Kill a run several times, when a random number of cells is there, then let it finish."""
    rng = random.Random(kills)
    for kill in range(kills):
        before = _kept(folder)
        resume = ["--resume"] if (folder / "manifest.json").exists() else []
        started = _start(path, folder, runs, *resume)
        enough, deadline = before + rng.randint(0, 25), time.monotonic() + 300
        while _kept(folder) < enough and started.poll() is None:
            assert time.monotonic() < deadline, f"kill {kill}: no progress"
            time.sleep(0.005)
        time.sleep(rng.random() * 0.02)
        workers = _workers_of(started.pid)
        started.send_signal(signal.SIGKILL)
        started.wait()
        assert started.stderr is not None
        started.stderr.close()
        for _ in range(400):
            if not any(map(_alive, workers)):
                break
            time.sleep(0.01)
        assert not any(map(_alive, workers)), "a worker outlived the run"
    assert main(["ssme-binary", "--out", str(folder), "--resume"]) == 0
    return Results.load(folder)


def _uninterrupted(path: Path, folder: Path, runs: int) -> Results:
    arguments = ["ssme-binary", "--data", str(path), "--out", str(folder)]
    assert main([*arguments, "--workers", "1", "--runs", str(runs), *OPTIONS]) == 0
    return Results.load(folder)


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="reads processes from /proc")
@pytest.mark.slow
def test_killed_ten_times_and_resumed(write: Write, tmp_path: Path, same: Same) -> None:
    path = write()
    killed = _kill_and_resume(path, tmp_path / "killed", 10, 20)
    assert same(killed, _uninterrupted(path, tmp_path / "whole", 20))


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="reads processes from /proc")
def test_a_killed_worker_is_replaced(write: Write, tmp_path: Path, same: Same) -> None:
    path, folder = write(), tmp_path / "killed"
    started = _start(path, folder, 4)
    deadline = time.monotonic() + 300
    while _kept(folder) < 3:
        assert time.monotonic() < deadline
        assert started.poll() is None
        time.sleep(0.005)
    workers = [w for w in _workers_of(started.pid) if b"spawn_main" in _command_of(w)]
    assert len(workers) == 2
    os.kill(workers[0], signal.SIGKILL)
    _, said = started.communicate(timeout=60)
    assert (started.returncode, said) == (0, b"")
    assert same(Results.load(folder), _uninterrupted(path, tmp_path / "whole", 4))


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="reads processes from /proc")
@pytest.mark.parametrize(
    ("number", "how"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "stopped by SIGTERM")]
)
def test_interrupted(number: int, how: str, write: Write, tmp_path: Path) -> None:
    path, folder = write(), tmp_path / "out"
    started = _start(path, folder, 300)
    deadline = time.monotonic() + 300
    while _kept(folder) < 3:
        assert time.monotonic() < deadline
        assert started.poll() is None
        time.sleep(0.01)
    workers = _workers_of(started.pid)
    started.send_signal(number)
    _, said = started.communicate(timeout=30)
    assert started.returncode == 128 + number
    assert len(workers) >= 2
    deadline = time.monotonic() + 10
    while any(map(_alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(map(_alive, workers)), "a worker outlived the run"
    lines = said.decode().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(f"{how}; what is finished is kept, go on with: python -m bench")
    assert lines[0].endswith(f"benchmarks ssme-binary --out {folder} --resume")


class Echo:
    """A computer that says what it was asked."""

    def run(self, cell: Cell) -> Body:
        return {"run": cell.run}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_cell_that_cannot_be_written_is_one_line(tmp_path: Path, workers: int) -> None:
    jobs = [(Cell("estimates", "d", run=k),) for k in range(4)]
    assert sorted(b["run"] for _, b in run_jobs(jobs, Echo, workers)) == [0, 1, 2, 3]
    cells = KeptCells(tmp_path / "gone", {"d": ""})
    with pytest.raises(InputError, match=r"^cannot write in .*; mend that, or name another `out`$"):
        list(run_jobs(jobs, Echo, workers, cells))


def test_damaged_and_foreign_lines_are_left_out(tmp_path: Path) -> None:
    cells = KeptCells(tmp_path, {"d": "now", "e": "then"})
    for run in range(4):
        cells.add(Cell("estimates", "d", run=run), {"run": run})
    cells.add(Cell("truth", "e"), {"run": -1})
    cells.add(Cell("estimates", "d", run=3), {"run": "again"})
    lines = (tmp_path / CELLS).read_bytes().split(b"\n")
    torn = [
        line[:-9] if b'"run":1' in line else line.replace(b'"run":2', b'"run":7') for line in lines
    ]
    (tmp_path / CELLS).write_bytes(b"\n".join(torn))
    now = KeptCells(tmp_path, {"d": "now", "e": "another"})
    assert {cell.run: body["run"] for cell, body in now.read().items()} == {0: 0, 3: "again"}
    # What a kill cut short spoils itself alone.
    with (tmp_path / CELLS).open("ab") as file:
        file.write(b"0123456789")
    now.add(Cell("estimates", "d", run=1), {"run": 1})
    assert sorted(cell.run for cell in now.read()) == [0, 1, 3]


@pytest.mark.slow
def test_a_script_without_a_guard_is_told(write: Write, tmp_path: Path) -> None:
    call = f"run('ssme-binary', {str(write(n=3000))!r}, {str(tmp_path / 'out')!r}, workers=2, "
    script = tmp_path / "script.py"
    script.write_text(f"from bench import run\n{call}methods=['labeled'], runs=2)\n")
    ended = subprocess.run(
        [sys.executable, script],
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
        text=True,
        env=os.environ | {"PYTHONPATH": f"{BENCHMARKS}:{os.environ.get('PYTHONPATH', '')}"},
    )
    assert ended.returncode == 1
    assert "must do so under `if __name__ == '__main__':`" in ended.stderr.splitlines()[-1]
