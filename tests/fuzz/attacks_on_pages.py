"""Attacks by names in pages and tables, on the page to label in and its record; see `attacks`."""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from attempts import Attack, Attempt, calling, judged, within
from hostile import BAD, CHANGES, RECORD, TARGETS, WHOSE, WRITER, event
from oracles import ROLES, TESTS, made_of, named

sys.path.append(str(TESTS / "labeling"))
from asking import Answer, Client
from labeling_tables import HOSTILE, table_of
from record_faults import KEPT, LOST
from report_samples import NASTY

import fewlabels as fl
from fewlabels.cli import main as command
from fewlabels.data.label_record import ENDING, Event, read_record
from fewlabels.labeling.journal import Journal
from fewlabels.labeling.server import HEADER, Server
from fewlabels.labeling.session import SessionOptions, open_session

# Names --------------------------------------------------------------------------------------------

WRITTEN = ("o.html", "o.json", "o.md", "o.xml", "o.csv", "p.csv")


def of_names(what: str, text: str, roles: Iterable[str], parts: set[str] | None = None) -> Attack:
    """A command on such a table; its pages are made of these parts and no others."""
    content, called = named(text, roles, what == "annotations")
    options = [called.get(word, word) for word in BAD["commands"][what].split()]
    typed = ["estimate" if what == "labels" else what, f"./{called['FILE']}", *options]
    attempt = Attempt({called["FILE"]: content}, typed, WRITTEN)
    return Attack(attempt, partial(judged, parts=parts))


@cache
def parts_of(what: str) -> set[str]:
    """What the pages of a command are made of where nothing is called oddly."""
    found = set[str]()

    def call(arguments: list[str]) -> int:
        code = command(arguments)
        found.update(made_of())
        return code + 70 * (code == 2)

    wrong = of_names(what, "plain", ())._replace(call=call).broken()
    assert wrong is None, wrong
    return found


def names(texts: Iterable[str], kinds: Sequence[str]) -> Iterator[Attack]:
    """Every text as all names in four commands, and as one name in two, by turns."""
    for k, text in enumerate(texts):
        for n in range(6):
            what, role = kinds[(5 * k + 2 * n) % len(kinds)], [ROLES[(k + n) % len(ROLES)]]
            yield of_names(what, text, ROLES if n < 4 else role, parts_of(what))


def pages() -> Iterator[Attack]:
    """Markup, escapes, commands to a CI, in the pages of all commands."""
    texts = [text.encode("utf-8", "replace").decode() for text in (*NASTY, HOSTILE, *BAD["markup"])]
    yield from names(texts, [what for what in BAD["commands"] if what not in ("labels", "convert")])


def tables() -> Iterator[Attack]:
    """Formulas, in the tables of all commands; what is written is read as it was."""

    def read_again(text: str) -> None:
        Path("f.parquet").write_bytes(named(text, ROLES)[0])
        assert within(["convert", "f.parquet", "o.csv"])[0] == 0
        one, two = (
            (p.models, p.classes, p.labels.tolist(), {k: [*v] for k, v in p.groups.items()})
            for p in map(fl.read_predictions, ("f.parquet", "o.csv"))
        )
        assert one == two, (one, two)

    exports = [what for what, words in BAD["commands"].items() if "o.csv" in words]
    yield from names(BAD["formulas"], exports)
    yield from (calling(f"{t!r} again", partial(read_again, t)) for t in BAD["formulas"])


# The page to label in, and its record -------------------------------------------------------------


@contextmanager
def labeling() -> Iterator[Client]:
    """A page of twelve items, and who asks it."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), ExitStack() as stack:
        warnings.simplefilter("ignore")
        options = SessionOptions(show=["text"], annotator="anna")
        server = Server(open_session(table_of(12), Path(folder, f"r{ENDING}"), options))
        stack.callback(server.close)
        server.start()
        yield Client(server)


def requests() -> Iterator[Attack]:
    """What strangers and other pages ask, and bytes that are no question."""
    with labeling() as ask:
        token, port = ask.server.token, ask.server.port
        here = f"127.0.0.1:{port}"
        label = {"event": "label", "item": "c001", "class": "fine"}

        def judge(answered: Answer, allowed: Iterable[int] = range(300, 500)) -> None:
            """Nothing was told, nothing has changed, and who may ask is answered still."""
            assert (ask("/state").status, ask.server.session.journal.n_events) == (200, 0)
            said = answered.content.decode()
            assert token not in said
            assert "comment number" not in said
            assert answered.status in allowed, answered.status
            raise fl.UsageError(json.loads(said)["error"] if said[:1] == "{" else said.strip())

        def asked(path: str, *codes: int, body: Any = None, **more: Any) -> Attack:
            body = label if body is None and path in ("/event", "/finish") else body
            of = f"{path[:40]} {str(more)[:60]} {str(body)[:40]}"
            return calling(of, lambda: judge(ask(path, body, **more), codes or range(300, 500)), 2)

        def by_bytes(content: str) -> None:
            content = content.replace("HERE", here).replace("TOKEN", f"{HEADER}: {token}")
            with closing(socket.create_connection(("127.0.0.1", port), timeout=9)) as other:
                got = b""
                with suppress(ConnectionError):
                    other.sendall(content.encode("latin-1"))
                    other.shutdown(socket.SHUT_WR)
                    got = b"".join(iter(lambda: other.recv(9_999), b""))
            status = int(got.split()[1]) if got else 400
            if b"comment number" in got or status >= 300:
                judge(Answer(status, {}, got.rpartition(b"\n")[2] if got else b"closed"))

        tokens = [None, "", "x", token[:-1], f"{token}x", token.swapcase(), f"Bearer {token}", "é"]
        origins = json.loads(json.dumps(BAD["origins"]).replace("PORT", str(port)))
        for path in ("/", "/state", "/item?key=c001", "/rescue", "/event", "/finish"):
            yield from (asked(path, 403, **{HEADER: wrong}) for wrong in tokens)
            yield from (asked(path, 400, Host=host) for host in BAD["hosts"])
            own = [one for one in origins if path != "/" or "Origin" in one]
            yield from (asked(path, 403, **one) for one in own)
            yield from (asked(path, method=method, body={}) for method in BAD["methods"])
        yield from (asked(quote(path, safe="/%?=&;*[]\\")) for path in BAD["paths"])
        bodies = [text.encode("latin-1") for text in BAD["bodies"]]
        events = [label | one for one in BAD["events"]]
        for body in (*bodies, b"x" * 70_000, b"[" * 30_000, *events):
            yield asked("/event", body=body)
        many = "GET / HTTP/1.1\r\n" + "a: b\r\n" * 9_000
        for content in (*BAD["bytes"], many, "GET " + "/" * 99_000):
            yield calling(f"bytes {content[:40]!r}", partial(by_bytes, content))


def record() -> Iterator[Attack]:
    """Faults, changes, links, other writers, a full disk and kills."""
    path = RECORD

    def under(fault: Any, then: Event) -> None:
        refused = None
        with Journal(path, WHOSE) as journal, pytest.MonkeyPatch.context() as patch:
            journal.add(event("a"))
            with fault(path, path.read_bytes(), patch):
                try:
                    journal.add(then)
                except fl.UsageError as error:
                    refused = error
            journal.add(event("z"))
            assert read_record(path).n_events == journal.n_events == 3 - (refused is not None)
        if refused:
            raise refused

    def reopened(change: Callable[[bytes], bytes]) -> None:
        with Journal(path, WHOSE) as journal:
            journal.add(event("a"))
        path.write_bytes(change(path.read_bytes()))
        with Journal(path, WHOSE) as journal:
            assert set(journal.decisions) == {"a"}, journal.decisions
            journal.add(event("b"))
        assert set(read_record(path).labels) == {"a", "b"}

    def linked(target: str) -> None:
        Path("whole").touch()
        os.mkfifo("fifo")
        path.symlink_to(target)
        with Journal(path, WHOSE) as journal:
            journal.add(event("a"))
        assert path.is_symlink()
        assert read_record(target).n_events == 1

    def second(other: str) -> None:
        with Journal(path, WHOSE):
            Path("soft").symlink_to(path)
            os.link(path, "hard")
            Journal(other, WHOSE)

    def killed(seconds: float) -> None:
        arguments = [sys.executable, "-c", WRITER, str(path)]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE) as run:
            first = run.stdout.readline()
            time.sleep(seconds)
            run.kill()
            n = len([first, *run.stdout])
        assert n <= len(read_record(path).labels) <= n + 1
        Journal(path, WHOSE).close()

    def full(size: int) -> None:
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        with Journal(path, WHOSE) as journal:
            resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + size, limits[1]))
            try:
                for k in range(20):
                    journal.add(event(f"c{k}"))
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
                assert read_record(path).n_events == journal.n_events < 20

    for fault, kind in product((*LOST, *KEPT), ("label", "cannot-say", "note", "change", "undo")):
        then = event("a" if kind in ("change", "undo") else "b", kind)
        yield calling(f"{fault.__name__}, {kind}", partial(under, fault, then))
    for what, change in CHANGES.items():
        yield calling(f"record {what}", partial(reopened, change))
    yield from (calling(f"link to {target}", partial(linked, target)) for target in TARGETS)
    for other in (str(path), "soft", "hard", f"./{path}"):
        yield calling(f"two writers, {other}", partial(second, other), 2)
    yield from (calling(f"full at {size}", partial(full, size), 2) for size in (0, 1, 99, 300, 900))
    yield from (calling(f"killed after {k / 50}", partial(killed, k / 50)) for k in range(6))
