"""Executors under attack: kills, Ctrl-C, clusters that go; no answer changes, nobody stays."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import executor_work as work
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fault_cases import MODELS, rows, written
from stream_cases import distance

import fewlabels as fl
from fewlabels.errors import InputError, UsageError
from fewlabels.streaming.executors import ENGINES, open_executor
from fewlabels.streaming.passes import Progress
from processes import members

pytestmark = pytest.mark.slow
pytest.importorskip("distributed")

KILLS = 10
HERE = Path(__file__).resolve().parent


def _path(folder: Path) -> str:
    """Where modules are looked for, this folder first."""
    return os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])


def _alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def _killing(folder: Path, killed: list[int], enough: threading.Event) -> None:
    """Kill one after another of those that told of themselves in `folder` a while ago.

    On a busy machine a new worker takes long to begin; ten that end without an answer are an error.
    """
    chance, seen = random.Random(3), dict[int, float]()
    while len(killed) < KILLS and not enough.is_set():
        time.sleep(chance.uniform(0.2, 0.6))
        at_work = [int(name) for name in os.listdir(folder) if _alive(int(name))]
        now = time.monotonic()
        old = [one for one in at_work if now - seen.setdefault(one, now) > 0.5]
        if old:
            victim = chance.choice(old)
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)


@pytest.mark.parametrize("engine", ["processes", "dask"])
def test_ten_kills(engine: Any, tmp_path: Path) -> None:
    units = range(160)
    expected = [work.tell_and_sleep(tmp_path, 0.0, x) for x in units]
    (tmp_path / str(os.getpid())).unlink()
    killed: list[int] = []
    enough = threading.Event()
    killer = threading.Thread(target=_killing, args=(tmp_path, killed, enough))
    with open_executor(engine, 2) as executor:
        killer.start()
        try:
            found = list(executor.map(partial(work.tell_and_sleep, tmp_path, 0.25), units))
        finally:
            enough.set()
            killer.join()
    assert found == expected
    assert len(set(killed)) == KILLS
    assert not any(_alive(int(name)) for name in os.listdir(tmp_path)), "a worker stayed"


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="reads processes from /proc")
def test_frozen_workers_are_replaced(tmp_path: Path) -> None:
    """One that is stopped (SIGSTOP) would keep the run waiting for good."""
    expected = [work.tell_and_sleep(tmp_path, 0.0, x) for x in range(60)]
    (tmp_path / str(os.getpid())).unlink()
    with open_executor("processes", 2) as executor:
        results = executor.map(partial(work.tell_and_sleep, tmp_path, 0.1), range(60))
        found = [next(results) for _ in range(4)]
        while len(os.listdir(tmp_path)) < 2:  # until both have begun
            found.append(next(results))
        victims = [int(name) for name in os.listdir(tmp_path)]
        for victim in victims:
            os.kill(victim, signal.SIGSTOP)
        waited = threading.Event()

        def rescue() -> None:
            waited.set()
            for victim in filter(_alive, victims):
                os.kill(victim, signal.SIGCONT)

        timer = threading.Timer(120, rescue)
        timer.start()
        found += results
        timer.cancel()
        assert not waited.is_set(), "they were waited for"
    assert not any(map(_alive, victims))
    assert found == expected


@pytest.mark.parametrize("function", [work.die, work.exit_early])
@pytest.mark.parametrize("engine", ["processes", "dask"])
def test_units_that_always_kill_their_worker(engine: Any, function: Any) -> None:
    with open_executor(engine, 2) as executor:
        with pytest.raises(InputError, match=r"worker.* ended .*same piece of the data"):
            list(executor.map(function, [0]))
        assert list(executor.map(work.square, range(3))) == [0, 1, 4]


_SCRIPT = """
import sys
from functools import partial
from pathlib import Path
import executor_work as work
from fewlabels.streaming.executors import open_executor

def main():
    print("started", flush=True)
    folder = Path(sys.argv[2])
    try:
        with open_executor(sys.argv[1], 2) as executor:
            for value in executor.map(partial(work.die_once, folder, (2,)), range(4)):
                pass
            print("computed", flush=True)
            for value in executor.map(partial(work.tell_and_sleep, folder, 0.3), range(1000)):
                print(value, flush=True)
                if sys.argv[3] == "stop":
                    break
    except KeyboardInterrupt:
        sys.exit(130)

if __name__ == "__main__":
    main()
"""


@pytest.fixture
def script(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start the script with its arguments, as the leader of a group of processes."""
    (tmp_path / "script.py").write_text(_SCRIPT)
    started: list[subprocess.Popen[str]] = []

    def start(engine: str, how: str) -> subprocess.Popen[str]:
        folder = tmp_path / f"marks{len(started)}"
        folder.mkdir()
        if engine == "threads":
            (folder / "2").touch()  # it would be the script that is killed
        command = [sys.executable, str(tmp_path / "script.py"), engine]
        run = subprocess.Popen(
            [*command, str(folder), how],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": _path(HERE)},
            start_new_session=True,
        )
        started.append(run)
        return run

    yield start
    for run in started:
        run.kill()
        run.communicate()


def _gone(group: int, within: float) -> bool:
    end = time.monotonic() + within
    while members(group) and time.monotonic() < end:
        time.sleep(0.05)
    return not members(group)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_is_silent_and_leaves_nobody(engine: str, script: Any) -> None:
    """Even though a worker of it is killed (unit 2)."""
    run = script(engine, "stop")
    out, err = run.communicate(timeout=60)
    assert (run.returncode, err) == (0, "")
    assert out.split()[:2] == ["started", "computed"]
    assert _gone(run.pid, 2)


@pytest.mark.parametrize("delay", [0.05, 0.3, 0.6, 1.0, 1.5, 3.0])
@pytest.mark.parametrize("engine", ENGINES)
def test_ctrl_c_is_silent_and_leaves_nobody(engine: str, delay: float, script: Any) -> None:
    run = script(engine, "go on")
    assert run.stdout.readline() == "started\n"
    time.sleep(delay)
    os.killpg(run.pid, signal.SIGINT)  # as a terminal does: to all of them
    _, err = run.communicate(timeout=30)
    assert (run.returncode, err) == (130, "")
    assert _gone(run.pid, 2)


@pytest.mark.parametrize("engine", ENGINES)
def test_workers_do_not_outlive_who_started_them(engine: str, script: Any) -> None:
    run = script(engine, "go on")
    while run.stdout.readline() != "computed\n":
        assert run.poll() is None
    run.kill()
    run.wait()
    assert _gone(run.pid, 5)


Cluster = Callable[..., str]


@pytest.fixture
def started(tmp_path: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """What a test has started: the scheduler, then its workers."""
    running: list[subprocess.Popen[bytes]] = []
    yield running
    for process in running:
        process.kill()
        process.wait()


@pytest.fixture
def cluster(tmp_path: Path, started: list[subprocess.Popen[bytes]]) -> Cluster:
    """Start `dask scheduler` and workers as anybody would; gives the address."""

    def dask(*arguments: str, path: Path = HERE) -> None:
        log = tmp_path / f"log{len(started)}"
        with log.open("wb") as file:
            command = [sys.executable, "-m", "dask", *arguments]
            environment = os.environ | {"PYTHONPATH": _path(path)}
            started.append(
                subprocess.Popen(command, stdout=file, stderr=file, env=environment, cwd=tmp_path)
            )

    def start(workers: int, path: Path = HERE) -> str:
        said = tmp_path / "scheduler.json"
        dask("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
             "--scheduler-file", str(said))  # fmt: skip
        end = time.monotonic() + 30
        while not said.exists() and time.monotonic() < end:
            time.sleep(0.1)
        time.sleep(0.1)
        address: str = json.loads(said.read_text())["address"]
        for _ in range(workers):
            dask("worker", address, "--nthreads", "1", "--no-dashboard", "--no-nanny", path=path)
        return address

    return start


def _wait_for(workers: int, address: str) -> None:
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(workers, timeout=30)


def test_a_running_cluster(
    cluster: Cluster, started: list[subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    address = cluster(2)
    _wait_for(2, address)
    marks = tmp_path / "marks"
    marks.mkdir()
    expected = [work.tell_and_sleep(marks, 0.0, x) for x in range(30)]
    for kill in (False, True):  # the cluster is there for a second executor
        with open_executor("dask", scheduler=address) as executor:
            assert executor.workers == 2
            results = executor.map(partial(work.tell_and_sleep, marks, 0.1), range(30))
            found = [next(results) for _ in range(4)]
            if kill:
                started[1].kill()
            assert [*found, *results] == expected
    assert started[0].poll() is None
    assert started[2].poll() is None
    assert {p.pid for p in started[1:]} <= {int(name) for name in os.listdir(marks)}


def test_four_workers_of_which_one_is_killed_in_each_phase(
    cluster: Cluster, started: list[subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    """A scheduler and workers that are processes of their own: the same bits as by threads."""
    (tmp_path / "in").mkdir()
    for k in range(16):
        table = rows(k, 3_000, 5)
        repeating = {c: table[c] for c in table.column_names}
        for name in MODELS:  # rows that repeat are counted in a pass of their own
            own = table[f"p__{name}__1"].to_numpy().copy()
            own[1000:] = 0.25
            repeating[f"p__{name}__1"] = own
        pq.write_table(pa.table(repeating), tmp_path / "in" / f"{k}.parquet")

    def estimated(folder: str, **options: Any) -> fl.Estimates:
        return fl.estimate_files(
            tmp_path / "in", metrics=["accuracy", "roc_auc"], by="site",
            checkpoints=tmp_path / folder, posterior=tmp_path / f"posterior-{folder}", **options,
        )  # fmt: skip

    quiet = estimated("threads")
    killed: dict[str, int] = {}

    def kill(progress: Progress) -> None:
        if progress.step not in killed:
            process = started[1 + len(killed)]
            process.kill()
            killed[progress.step] = process.wait()

    found = estimated("dask", engine="dask", scheduler=cluster(4), progress=kill)
    assert killed == dict.fromkeys(
        ("reading", "counting repeated rows", "estimating"), -signal.SIGKILL
    )
    assert started[0].poll() is None, "the scheduler"
    assert started[4].poll() is None, "the last worker"
    assert distance(found, quiet) == 0.0
    assert found.warnings == quiet.warnings
    assert written(tmp_path / "posterior-dask") == written(tmp_path / "posterior-threads")


def test_a_cluster_that_goes(
    cluster: Cluster, started: list[subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    address = cluster(1)
    with open_executor("dask", scheduler=address) as executor:
        results = executor.map(partial(work.tell_and_sleep, tmp_path, 0.5), range(100))
        next(results)
        started[0].kill()
        with pytest.raises(InputError, match="Dask cluster did not do a piece") as caught:
            list(results)
    assert "\n" not in str(caught.value)


def test_a_cluster_of_another_version(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "other" / "fewlabels").mkdir(parents=True)
    (tmp_path / "other" / "fewlabels" / "__init__.py").write_text('__version__ = "0.0.1"\n')
    address = cluster(1, path=tmp_path / "other")
    with pytest.raises(UsageError, match=r"must have fewlabels .*; got 0\.0\.1; install"):
        open_executor("dask", scheduler=address)


def test_a_cluster_without_fewlabels(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "none" / "fewlabels").mkdir(parents=True)
    (tmp_path / "none" / "fewlabels" / "__init__.py").write_text("raise ModuleNotFoundError\n")
    address = cluster(1, path=tmp_path / "none")
    with pytest.raises(UsageError, match=r"must have fewlabels .*; got none; install"):
        open_executor("dask", scheduler=address)


def test_a_cluster_without_workers(cluster: Cluster) -> None:
    address = cluster(0)
    with pytest.raises(UsageError, match="has no workers; start some with `dask worker tcp://"):
        open_executor("dask", scheduler=address)
