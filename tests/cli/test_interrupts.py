"""Ctrl-C and SIGTERM: heard whatever is under way, one line, and nothing left behind."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from processes import members

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends signals")

# What is under way when the signal comes: each is deaf for a minute.
_DEAF = {
    # As a product of matrices is; the signal goes to another thread.
    "a long step of the main thread": """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    time.sleep(60)""",
    "a long block in a thread": "list(map_blocks(time.sleep, [60, 60, 60]))",
    "a worker that is not waited for": """
    threading.Thread(target=time.sleep, args=(60,)).start()
    time.sleep(60)""",
    "an error in place of the interrupt": """
    try:
        time.sleep(60)
    except BaseException:
        time.sleep(60)""",
}

_PROGRAM = """
import signal, sys, threading, time
from fewlabels.kernels.blocks import map_blocks, using_workers
from fewlabels import estimating
from fewlabels.cli import main

def long(*given, **named):
    print("at work", flush=True)
    {deaf}

if __name__ == "__main__":
    estimating.estimate = long
    with using_workers(2):
        sys.exit(main())
"""

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start Python, as the leader of a group of processes, with a folder of its own for drafts."""
    started = []
    (tmp_path / "temporary").mkdir()

    def begin(*arguments: str | Path) -> subprocess.Popen[str]:
        run = subprocess.Popen(
            [sys.executable, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ
            | {
                "TMPDIR": str(tmp_path / "temporary"),
                "FEWLABELS_CHECKPOINTS": str(tmp_path / "saved"),
            },
            start_new_session=True,
        )
        started.append(run)
        return run

    yield begin
    for run in started:
        with suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
        run.communicate()


@pytest.mark.few(1)
@pytest.mark.product
@pytest.mark.slow_with("a long step of the main thread", "a worker that is not waited for")
@pytest.mark.parametrize(
    ("number", "code", "said"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "stopped by SIGTERM")],
)
@pytest.mark.parametrize("deaf", _DEAF)
def test_in_memory(
    deaf: str, number: int, code: int, said: str, start: Start, predictions_file: Path,
    tmp_path: Path,
) -> None:  # fmt: skip
    (tmp_path / "program.py").write_text(_PROGRAM.format(deaf=_DEAF[deaf]))
    out = tmp_path / "out.json"
    run = start(tmp_path / "program.py", "estimate", predictions_file, "--json", out)
    assert run.stdout is not None
    assert run.stdout.readline() == "at work\n"
    run.send_signal(number)
    _, err = run.communicate(timeout=20)
    assert (run.returncode, err) == (code, f"{said}\n")
    assert not out.exists()


_SESSION = """
import os, threading, numpy as np, fewlabels as fl
from fewlabels.methods.bee import gibbs

swept, begun = gibbs._sweep, threading.Lock()
def first(*given):
    if begun.acquire(blocking=False):
        os.write(1, b"at work\\n")
    swept(*given)

def fit(n, sweeps):
    votes = np.random.default_rng(0).integers(2, size=(n, 40))
    asked = dict(burn_in=sweeps, sweeps=sweeps, thin=max(sweeps // 100, 1), inference="gibbs")
    fl.estimate(fl.Predictions(votes=votes), method=fl.models.BEE(**asked), workers={workers})

fit(50, 20)  # loops are compiled
gibbs._sweep = first
try:
    fit(20_000, 10**6)
except KeyboardInterrupt:
    os.write(1, b"heard\\n")
for thread in threading.enumerate():
    if thread is not threading.main_thread():
        thread.join(20)
print(threading.active_count())
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_in_a_session(workers: int, start: Start) -> None:
    """Compiled loops are heard within their slices, and threads end in which they went on."""
    pytest.importorskip("numba")
    run = start("-c", _SESSION.format(workers=workers))
    assert run.stdout is not None
    assert run.stdout.readline() == "at work\n"
    run.send_signal(signal.SIGINT)
    begun = time.monotonic()
    assert run.stdout.readline() == "heard\n"
    assert time.monotonic() < begun + 10  # 2 s, where nobody else is at work
    out, err = run.communicate(timeout=60)
    assert (out, err) == ("1\n", "")


_KERNEL = """
import json, numpy as np, fewlabels as fl
print("begun", flush=True)
whole = fl.estimate("in.csv", metrics="accuracy").rows
parts = fl.estimate_files("in.csv", metrics="accuracy", resume=True, posterior="posterior").rows
print(json.dumps([[row.value, row.low, row.high] for row in (*whole, *parts)]))
"""


@pytest.mark.slow
def test_a_notebook_that_is_restarted_again_and_again(
    start: Start, predictions_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed kernels: no temporary file stays, no lock, and the last one answers as if alone."""
    answers, seconds = [], 0.0
    for folder, restarts in (("quiet", 0), ("restarted", 20)):
        place = tmp_path / folder
        place.mkdir()
        (place / "in.csv").write_bytes(predictions_file.read_bytes())
        monkeypatch.chdir(place)
        for again in range(restarts):
            run = start("-c", _KERNEL)
            assert run.stdout is not None
            assert run.stdout.readline() == "begun\n"
            time.sleep(random.Random(again).uniform(0, 1) * seconds)
            if run.poll() is None:
                run.kill()
            run.communicate()
            if (place / "posterior").exists():  # it had ended
                shutil.rmtree(place / "posterior")
        begun = time.monotonic()
        run = start("-c", _KERNEL)
        out, err = run.communicate(timeout=120)
        seconds = time.monotonic() - begun
        assert (run.returncode, err) == (0, "")
        answers.append(out)
        assert {path.name for path in place.iterdir()} == {"in.csv", "posterior"}
        assert not list((place / "posterior").glob(".*"))
        assert list((tmp_path / "temporary").iterdir()) == []
        assert list((tmp_path / "saved").iterdir()) == []
    assert answers[0] == answers[1]


def test_a_signal_that_is_ignored_stays_so(start: Start, tmp_path: Path) -> None:
    """As under nohup, or in the background of a shell without jobs."""
    (tmp_path / "program.py").write_text(
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "from fewlabels.cli import app, interrupts\n"
        "with interrupts.heard():\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    print('still there')\n"
    )
    out, err = start(tmp_path / "program.py").communicate(timeout=20)
    assert (out, err) == ("still there\n", "")


@pytest.mark.slow
@pytest.mark.skipif(not os.path.isdir("/proc"), reason="reads processes from /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("engine", ["memory", "threads", "processes", "dask"])
def test_at_random_moments(engine: str, number: int, start: Start, tmp_path: Path) -> None:
    """Nobody is left at work, no temporary file; one line, which names --resume where it helps."""
    if engine == "dask":
        pytest.importorskip("distributed")
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(3)
    p = rng.random((300_000, 6))
    label = pa.array((p[:, 0] > rng.random(len(p))).astype(int), mask=np.arange(len(p)) >= 100)
    (tmp_path / "in").mkdir()
    table = pa.table({"label": label} | {f"p__m{k}__1": column for k, column in enumerate(p.T)})
    pq.write_table(table, tmp_path / "in" / "a.parquet", row_group_size=10_000)
    chance = random.Random(f"{engine} {number}")
    asked = ["estimate", tmp_path / "in", "--engine", engine, "--html", tmp_path / "out.html"]
    if engine != "memory":
        asked += ["--posterior", tmp_path / "posterior"]

    def seconds(*arguments: str | Path) -> float:
        begun = time.monotonic()
        start("-m", "fewlabels", *arguments).communicate(timeout=120)
        return time.monotonic() - begun

    def clean() -> None:
        (tmp_path / "out.html").unlink(missing_ok=True)
        for folder in ("posterior", ".posterior.unfinished"):
            shutil.rmtree(tmp_path / folder, ignore_errors=True)

    seconds(*asked)  # a first run also reads what later ones find in memory
    clean()
    # How long it takes here: Python to be started, with all that a help needs, and the whole.
    ready, whole = seconds("estimate", "--help"), seconds(*asked)
    stopped = 0
    for _ in range(4):
        clean()
        run = start("-m", "fewlabels", *asked)
        time.sleep(chance.uniform(min(1.5 * ready, 0.7 * whole), 0.9 * whole))
        os.killpg(run.pid, number)
        begun = time.monotonic()
        _, err = run.communicate(timeout=20)
        if run.returncode == 0:  # faster than the run that was timed
            continue
        stopped += 1
        assert run.returncode == 128 + number
        assert len(err.splitlines()) == 1, err
        assert "Traceback" not in err
        assert "--resume" not in err or engine != "memory"
        # Two seconds, and the machine's own for a process to be gone.
        while members(run.pid) and time.monotonic() < begun + 10:
            time.sleep(0.05)
        assert members(run.pid) == []
        assert list((tmp_path / "temporary").iterdir()) == []
        there = {path.name for path in tmp_path.iterdir()}
        if {"out.html", *({"posterior"} if engine != "memory" else ())} <= there:
            continue  # all was done but for the end of the process itself
        drafts = {".posterior.unfinished"} if any((tmp_path / "saved").glob("*-2-*")) else set()
        assert there <= {"in", "temporary", "saved", *drafts}
    assert stopped
