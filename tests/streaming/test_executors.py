"""Executors: the same answers, in order, whoever computes; and what happens when workers die."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from contextvars import ContextVar
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from threading import Lock
from typing import Any

import executor_work as work
import numpy as np
import pytest

from fewlabels.errors import InputError, MissingExtraError, UsageError
from fewlabels.kernels.blocks import reporting, using_workers
from fewlabels.streaming import dask_executor, executors
from fewlabels.streaming.executors import (
    ENGINES,
    Executor,
    Failed,
    ThreadExecutor,
    in_order,
    open_executor,
)

WORKERS = 2


@pytest.fixture(scope="module")
def opened() -> Iterator[dict[str, Executor]]:
    """Each is started once, when it is first asked for."""
    executors: dict[str, Executor] = {}
    yield executors
    for executor in executors.values():
        executor.close()


@pytest.fixture(params=ENGINES)
def executor(request: pytest.FixtureRequest, opened: dict[str, Executor]) -> Executor:
    return _open(request.param, opened)


@pytest.fixture(params=["processes", "dask"])
def elsewhere(request: pytest.FixtureRequest, opened: dict[str, Executor]) -> Executor:
    return _open(request.param, opened)


def _open(name: Any, opened: dict[str, Executor]) -> Executor:
    if name == "dask":
        pytest.importorskip("distributed")
    if name not in opened:
        opened[name] = open_executor(name, WORKERS)
    return opened[name]


def test_results_in_the_order_of_the_units(executor: Executor) -> None:
    assert executor.workers == WORKERS
    assert executor.name in ENGINES
    assert list(executor.map(work.square, range(20))) == [x * x for x in range(20)]
    assert list(executor.map(work.slow_first, range(5))) == list(range(5))
    assert list(executor.map(work.square, [])) == []


def test_few_units_are_under_way(executor: Executor, tmp_path: Path) -> None:
    results = executor.map(partial(work.leave_mark, tmp_path), range(40))
    for asked in (1, 2, 3):
        one = next(results)
        assert not isinstance(one, Failed)
        one += 1  # a result is the caller's own
        np.testing.assert_array_equal(one, np.full(3, asked))
        time.sleep(0.1)
        assert len(os.listdir(tmp_path)) <= asked + 2 * WORKERS
    results.close()  # type: ignore[attr-defined]
    assert list(executor.map(work.square, range(3))) == [0, 1, 4]
    assert len(os.listdir(tmp_path)) <= 3 + 2 * WORKERS


def test_two_functions_at_a_time(executor: Executor) -> None:
    both = zip(
        executor.map(work.square, range(8)), executor.map(work.slow_first, range(8)), strict=True
    )
    assert list(both) == [(x * x, x) for x in range(8)]


def test_errors_on_purpose_are_answers(executor: Executor) -> None:
    zero, one, two, three = executor.map(work.complain, range(4))
    assert (zero, three) == (0, 3)
    assert isinstance(one, Failed)
    assert type(one.error) is InputError
    assert str(one.error) == "unit 1 is damaged"
    assert one.error.__traceback__ is None, "frames hold the unit's arrays"
    assert isinstance(two, Failed)
    assert type(two.error) is MissingExtraError
    assert "pip install 'fewlabels[extra]'" in str(two.error)


def test_mistakes_are_raised(executor: Executor) -> None:
    with pytest.raises(KeyError, match="unit 0"):
        list(executor.map(work.mistake, range(5)))
    assert list(executor.map(work.square, range(3))) == [0, 1, 4]


def test_mistakes_elsewhere_say_where(elsewhere: Executor) -> None:
    with pytest.raises(KeyError) as caught:
        list(elsewhere.map(work.mistake, range(5)))
    assert "in mistake" in "".join(caught.value.__notes__)
    with pytest.raises((RuntimeError, work.OddError), match="odd 0 0"):
        list(elsewhere.map(work.odd, range(5)))
    with pytest.raises((AttributeError, TypeError), match="pickle"):
        list(elsewhere.map(work.cannot_come_back, range(5)))


def test_one_thread_inside(executor: Executor) -> None:
    assert list(executor.map(work.threads_inside, range(3))) == [({1}, 1)] * 3


def test_a_big_function_is_sent_once_per_worker(elsewhere: Executor, tmp_path: Path) -> None:
    answers: list[Any] = list(elsewhere.map(work.Big(tmp_path), range(20)))
    assert [value for _, value in answers] == [x * 100_000 for x in range(20)]
    assert len({process for process, _ in answers}) == WORKERS
    assert sorted(int(name.split("-")[0]) for name in os.listdir(tmp_path)) == sorted(
        {process for process, _ in answers}
    )


def test_a_worker_dies(elsewhere: Executor, tmp_path: Path) -> None:
    function = partial(work.die_once, tmp_path, (3,))
    here = [work.die_once(tmp_path, (), x) for x in range(8)]
    (tmp_path / "3").unlink()
    assert list(elsewhere.map(function, range(8))) == here


def test_a_worker_dies_while_it_answers(opened: dict[str, Executor], tmp_path: Path) -> None:
    (answer,) = _open("processes", opened).map(partial(work.die_while_answering, tmp_path), [7])
    np.testing.assert_array_equal(answer, np.full(3, 7))


def test_workers_that_always_die(
    opened: dict[str, Executor], monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = _open("processes", opened)
    monkeypatch.setattr(executors, "TRIES", 1)
    with pytest.raises(InputError, match=r"1 worker processes ended \(by SIGKILL\).*`workers`"):
        list(executor.map(work.die, [0]))
    assert list(executor.map(work.square, range(3))) == [0, 1, 4]


def test_what_cannot_be_sent(opened: dict[str, Executor]) -> None:
    with pytest.raises(UsageError, match=r"cannot be sent to another process: .* 'threads'"):
        list(_open("processes", opened).map(lambda x: x, range(3)))
    with pytest.raises(UsageError, match=r"cannot be sent to Dask workers: .* 'threads'"):
        list(_open("dask", opened).map(Lock().acquire, range(3)))


def test_threads_have_the_context_of_the_caller() -> None:
    variable = ContextVar("variable", default=0)
    told: list[tuple[int, int]] = []

    def report_and_read(x: int) -> int:
        from fewlabels.kernels.blocks import report

        report(x, 3)
        return variable.get() + x

    variable.set(10)
    with ThreadExecutor(2) as threads, reporting(lambda *step: told.append(step)):
        assert list(threads.map(report_and_read, range(3))) == [10, 11, 12]
    assert told == [], "the progress of one unit among many says nothing"


def test_units_that_cannot_be_handed_out_cancel_the_others() -> None:
    cancelled: list[int] = []

    class Handed:
        def __init__(self, unit: int) -> None:
            if unit == 2:
                raise UsageError("not this one")
            self.unit = unit

        def result(self) -> int:
            return self.unit

        def cancel(self) -> None:
            cancelled.append(self.unit)

    with pytest.raises(UsageError, match="not this one"):
        list(in_order(Handed, range(5), 4))
    assert cancelled == [0, 1]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"engine": "ray"}, "unknown engine 'ray'; choose from threads, processes, dask"),
        ({"engine": "threads", "workers": 0}, "`workers` must be 1 or more; got 0"),
        ({"engine": "processes", "scheduler": "tcp://a:1"}, "`scheduler` goes with .*'dask'"),
        ({"engine": "dask", "scheduler": "tcp://a:1", "workers": 2}, "exclude each other"),
    ],
)
def test_arguments_that_do_not_go_together(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        open_executor(**given)


def test_as_many_workers_as_are_allowed() -> None:
    with using_workers(3), open_executor("threads") as threads:
        assert threads.workers == 3


@pytest.mark.parametrize("missing", ["distributed", "cryptography"])
def test_dask_without_its_extra(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtraError, match=r"fewlabels\[dask\]"):
        open_executor("dask", 1)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "address",
    ["tcp://127.0.0.1:9", "nonsense://x", "127.0.0.1:port", "tcp://", "tcp://a:s3cret@h:1"],
)
def test_a_scheduler_that_does_not_answer(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(dask_executor, "_PATIENCE", 0.2)
    begun = time.monotonic()
    with pytest.raises(UsageError, match=r"no Dask scheduler answers at .*; give the address") as e:
        open_executor("dask", scheduler=address)
    assert "\n" not in str(e.value)
    assert "s3cret" not in str(e.value)
    gc.collect()
    assert time.monotonic() - begun < 15, "a client that waits for its end takes 20 s"


@pytest.mark.parametrize("content", [None, b"", b"HTTP/1.1 200 OK\r\n\r\n", b"\xff" * 999])
def test_a_stranger_at_the_address(monkeypatch: pytest.MonkeyPatch, content: bytes | None) -> None:
    """Who says nothing, goes, or says what would take the memory of all computers."""
    pytest.importorskip("distributed")
    monkeypatch.setattr(dask_executor, "_PATIENCE", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        held: list[socket.socket] = []

        def serve() -> None:
            held.append(server.accept()[0])
            if content is not None:
                held[0].sendall(content)
                held[0].close()

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(UsageError, match="no Dask scheduler answers at"):
            open_executor("dask", scheduler=f"tcp://127.0.0.1:{server.getsockname()[1]}")
        thread.join()
        for one in held:
            one.close()


class _Cluster:
    """A client as far as the check of its workers asks it."""

    def __init__(self, found: dict[str, object]) -> None:
        self.found = found

    def wait_for_workers(self, n: int, timeout: float) -> None:
        if len(self.found) < n:
            raise TimeoutError

    def run(self, function: Any, on_error: str) -> dict[str, object]:
        return {name: function() if at == "same" else at for name, at in self.found.items()}


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({}, "has no workers; start some with `dask worker tcp://a:1`"),
        ({"w1": "same", "w2": "0.0.1"}, "worker w2 must have fewlabels .*; got 0.0.1; install"),
        ({"w1": ModuleNotFoundError("no")}, "worker w1 must have fewlabels .*; got none; install"),
    ],
)
def test_workers_of_another_version(found: dict[str, object], message: str) -> None:
    dask_executor.check_workers(_Cluster({"w": "same"}), "tcp://a:1")
    with pytest.raises(UsageError, match=message):
        dask_executor.check_workers(_Cluster(found), "tcp://a:1")


_NO_GUARD = """
from fewlabels.streaming.executors import open_executor
from fewlabels.errors import FewlabelsError
try:
    with open_executor("processes", 2) as processes:
        print(list(processes.map(abs, range(4))))
except FewlabelsError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_script_without_a_guard_is_told_once(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(_NO_GUARD)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1
    assert "under `if __name__ == '__main__':`" in done.stdout


def _listening(processes: set[int]) -> list[tuple[str, int]]:
    """Addresses and ports on which processes listen, as /proc shows them."""
    inodes = set()
    for process in processes:
        for file in Path(f"/proc/{process}/fd").iterdir():
            with suppress(OSError):
                inodes.add(os.readlink(file))
    found = []
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
            address, _, port = fields[1].partition(":")
            found.append((address, int(port, 16)))
    other = Path("/proc/net/tcp6").read_text().splitlines()[1:]
    assert not any(f"socket:[{line.split()[9]}]" in inodes for line in other)
    return found


def _pages(port: int) -> set[int]:
    """What a port answers over HTTP, if it does."""
    found = set()
    for path in ("/", "/health", "/info/main/workers.html", "/json/counts.json", "/metrics"):
        connection = HTTPConnection("127.0.0.1", port, timeout=10)
        with suppress(OSError, HTTPException), closing(connection):
            connection.request("GET", path)
            found.add(connection.getresponse().status)
    return found


@pytest.mark.slow
@pytest.mark.skipif(not os.path.isdir("/proc/net"), reason="reads sockets from /proc")
def test_nobody_else_reaches_a_cluster_of_our_own(opened: dict[str, Executor]) -> None:
    """Whoever reaches a scheduler or a worker of Dask runs code in it."""
    executor = _open("dask", opened)
    from distributed import Security, rpc

    assert isinstance(executor, dask_executor.DaskExecutor)
    client = executor._client
    client.wait_for_workers(WORKERS, timeout=60)
    processes = set(client.run(os.getpid).values())
    assert len(processes - {os.getpid()}) == WORKERS
    sockets = _listening({os.getpid(), *processes})
    assert {address for address, _ in sockets} == {"0100007F"}, "this machine alone"

    async def answers(address: str, security: Security, patience: float = 1) -> bool:
        async with rpc(address, connection_args=security.get_connection_args("client")) as there:
            try:
                return bool(await asyncio.wait_for(there.identity(), patience))
            except (OSError, TimeoutError):
                return False

    ask, ours = partial(client.sync, answers), 0
    for _, port in sockets:
        pages = _pages(port)
        assert pages <= {404}, "what goes on is nobody's business"
        assert not ask(f"tcp://127.0.0.1:{port}", Security())
        assert not ask(f"tls://127.0.0.1:{port}", Security.temporary()), "another user's own key"
        ours += not pages and ask(f"tls://127.0.0.1:{port}", client.security, 20)
    assert ours == 1 + 2 * WORKERS, "the scheduler, the workers and who watches over each"
