"""A Dask cluster of this machine that nobody else reaches: sockets in a folder of the user's own.

Whoever reaches a scheduler runs code in its workers. A TCP port of the loopback is open to every
user of the machine; a folder that only its owner may enter is not. Nothing here listens on TCP: the
pages over HTTP, which Dask serves in any case, are left out.
"""

from __future__ import annotations

import atexit
import logging
import os
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from distributed import Nanny, Scheduler, Worker
from distributed.comm.core import BaseListener, CommClosedError, Connector
from distributed.comm.registry import Backend, backends
from distributed.comm.tcp import MAX_BUFFER_SIZE, TCP
from tornado.iostream import IOStream, StreamClosedError
from tornado.netutil import bind_unix_socket
from tornado.tcpserver import TCPServer

SCHEME = "fewlabels-unix"
_LONGEST = 80  # bytes of a folder's path: a socket's may have 107, on some systems 103
_BACKLOG = 2048
_TRIES = 20


@contextmanager
def socket_folder() -> Iterator[str]:
    """A new folder that only this user may enter, short enough for sockets in it."""
    usual = tempfile.gettempdir()
    # Dask takes what follows a colon for a port.
    parent = usual if len(os.fsencode(usual)) <= _LONGEST - 20 and ":" not in usual else "/tmp"  # noqa: S108
    folder = tempfile.mkdtemp(prefix="fewlabels-", dir=parent)
    remove = atexit.register(partial(_remove, folder))
    try:
        yield folder
    finally:
        remove()
        atexit.unregister(remove)


def _remove(folder: str) -> None:
    for _ in range(_TRIES):  # of workers that are ending one may still write
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.exists(folder):
            return
        time.sleep(0.02)


def cluster_spec(folder: str, workers: int) -> dict[str, Any]:
    """What `distributed.SpecCluster` makes: a scheduler and its workers, all in the folder."""
    where = {"host": folder, "protocol": f"{SCHEME}://", "dashboard": False}
    worker = {
        "cls": Nanny,
        "options": {
            **where,
            "worker_class": QuietWorker,
            "nthreads": 1,
            "silence_logs": logging.CRITICAL,
            "local_directory": folder,
            # Units are small by design; Dask's limits would halt a worker on a busy machine.
            "memory_limit": 0,
        },
    }
    return {
        "scheduler": {"cls": QuietScheduler, "options": where},
        "workers": dict.fromkeys(range(workers), worker),
        "worker": worker,
    }


class _WithoutPages:
    """A part of a cluster that serves nothing over HTTP."""

    def start_http_server(self, *given: Any, **named: Any) -> None:
        """Start none."""


class QuietScheduler(_WithoutPages, Scheduler):  # type: ignore[misc]
    """A scheduler without pages."""


class QuietWorker(_WithoutPages, Worker):  # type: ignore[misc]
    """A worker without pages; its process knows of these sockets, for it imports this module."""


class _Sockets(Backend):  # type: ignore[misc]
    """Addresses fewlabels-unix://FOLDER:NUMBER, each a socket of that name in the folder."""

    def get_connector(self) -> _Connector:
        return _Connector()

    def get_listener(
        self, loc: str, handle_comm: Callable[..., Any], deserialize: bool, **named: Any
    ) -> _Listener:
        return _Listener(loc, handle_comm, deserialize)

    def get_address_host(self, loc: str) -> str:
        return loc.rpartition(":")[0]

    def get_address_host_port(self, loc: str) -> tuple[str, int]:
        folder, _, number = loc.rpartition(":")
        return folder, int(number)

    def resolve_address(self, loc: str) -> str:
        return loc

    def get_local_address_for(self, loc: str) -> str:
        return f"{self.get_address_host(loc)}:0"


class _Connector(Connector):  # type: ignore[misc]
    async def connect(self, address: str, deserialize: bool = True, **named: Any) -> TCP:
        stream = IOStream(socket.socket(socket.AF_UNIX), max_buffer_size=MAX_BUFFER_SIZE)
        try:
            await stream.connect(_path(address))
        except StreamClosedError as error:
            raise CommClosedError(f"no answer at {address}: {error.real_error}") from error
        return _comm(stream, f"{address.rpartition(':')[0]}:0", address, deserialize)


class _Listener(BaseListener):  # type: ignore[misc]
    prefix = f"{SCHEME}://"

    def __init__(self, loc: str, handle_comm: Callable[..., Any], deserialize: bool) -> None:
        super().__init__()
        # Counted from 1: a port of 0 is one that is to be chosen.
        self._loc = f"{loc.rpartition(':')[0]}:{1 + secrets.randbelow(1 << 60)}"
        self._handle_comm, self._deserialize = handle_comm, deserialize
        self._server = TCPServer(max_buffer_size=MAX_BUFFER_SIZE)
        self._server.handle_stream = self._handle_stream  # type: ignore[method-assign]

    async def start(self) -> None:
        self._server.add_socket(bind_unix_socket(_path(self._loc), 0o600, _BACKLOG))

    def stop(self) -> None:
        self._server.stop()

    async def _handle_stream(self, stream: IOStream, address: object) -> None:
        comm = _comm(stream, self._loc, f"{self._loc.rpartition(':')[0]}:0", self._deserialize)
        try:
            await self.on_connection(comm)
        except CommClosedError:
            return
        await self._handle_comm(comm)

    @property
    def listen_address(self) -> str:
        return self.prefix + self._loc

    contact_address = listen_address


def _comm(stream: IOStream, local: str, peer: str, deserialize: bool) -> TCP:
    """Dask's messages over a stream: nothing in them is TCP's but time limits, which it skips."""
    return TCP(stream, f"{SCHEME}://{local}", f"{SCHEME}://{peer}", deserialize)


def _path(loc: str) -> str:
    folder, _, number = loc.rpartition(":")
    return os.path.join(folder, f"s{number}")


backends[SCHEME] = _Sockets()
