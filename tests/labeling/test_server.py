"""The page's server: who may ask it, what it gives, and what it never gives."""

from __future__ import annotations

import errno
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa
import pytest
from asking import Answer, Client
from labeling_tables import HOSTILE, table_of

import fewlabels as fl
from fewlabels.data.label_record import parse_record, read_record
from fewlabels.labeling import server as server_module
from fewlabels.labeling.server import HEADER, Server
from fewlabels.labeling.session import Session
from fewlabels.report.narrowing import render_narrowing

pytest.importorskip("starlette", reason="needs the extra `label`")
pytest.importorskip("uvicorn", reason="needs the extra `label`")

Open = Callable[..., Session]
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


@pytest.fixture
def served(opened: Open) -> Iterator[Callable[..., Client]]:
    """`served(**wishes)`: a server of a session, and who asks it."""
    servers: list[Server] = []

    def run(*arguments: Any, framed: bool = False, **wishes: Any) -> Client:
        servers.append(Server(opened(*arguments, **wishes), framed=framed))
        servers[-1].start()
        return Client(servers[-1])

    yield run
    for server in servers:
        server.close()


@pytest.fixture
def ask(served: Callable[..., Client]) -> Client:
    return served()


def test_it_listens_on_this_machine_alone(ask: Client) -> None:
    assert ask.server.url == f"http://127.0.0.1:{ask.server.port}/?token={ask.server.token}"
    assert ask.server._socket.getsockname()[0] == "127.0.0.1"
    assert len(ask.server.token) >= 32


# Who may ask --------------------------------------------------------------------------------------

READ = ["/", "/page.js", "/page.css", "/state", "/item?key=c001", "/neighbour?step=-1", "/estimate",
        "/picture?model=good&metric=accuracy", "/image?key=c001&column=text", "/rescue",
        "/none"]  # fmt: skip


def test_nothing_is_given_without_the_token(ask: Client) -> None:
    tokens = (None, "", "x", ask.server.token[:-1], ask.server.token + "x", "\xe4")
    for path, token in product(READ, tokens):
        answer = ask(path, **{HEADER: token})
        assert answer.status == 403, path
        assert b"open the address that fewlabels printed" in answer.content


def test_a_token_in_an_address_opens_the_page_alone(ask: Client) -> None:
    """What changes or tells something wants the header, which no form or picture can send."""
    for path in ("/state", "/estimate", "/rescue", "/event"):
        body = {"event": "label", "item": "c001", "class": "fine"} if path == "/event" else None
        assert ask(f"{path}?token={ask.server.token}", body, **{HEADER: None}).status == 403, path
    assert ask(f"/?token={ask.server.token}", **{HEADER: None}).status == 200


def test_another_host_is_refused(ask: Client) -> None:
    """As after DNS rebinding, where a page of the web reaches this machine by its own name."""
    hosts = ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "",
             "localhost.evil.example", "192.168.0.7")  # fmt: skip
    for host, path in product(hosts, ("/", "/state")):
        assert ask(path, Host=host).status == 400, host
    assert ask("/state", Host=f"localhost:{ask.server.port}").status == 200


def test_another_origin_is_refused(ask: Client) -> None:
    body = {"event": "label", "item": "c001", "class": "fine"}
    for headers in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ):
        assert ask("/event", body, **headers).status == 403, headers
        assert ask("/state", **headers).status == 403, headers
    assert ask.server.session.journal.n_events == 0
    own = f"http://127.0.0.1:{ask.server.port}"
    assert ask("/state", Origin=own, Sec_Fetch_Site="same-origin").status == 200


def test_other_methods_and_preflights_are_refused(ask: Client) -> None:
    preflight = ask("/event", method="OPTIONS", Origin="http://evil.example",
                    Access_Control_Request_Method="POST", **{HEADER: None})  # fmt: skip
    assert preflight.status == 403
    assert not [name for name in preflight.headers if name.startswith("access-control")]
    assert ask("/event").status == 405
    assert ask("/state", {}).status == 405
    for method in ("PUT", "DELETE", "PATCH", "TRACE"):
        assert ask("/event", {}, method=method).status == 405
    assert ask("/docs").status == 404


def test_what_browsers_are_told(ask: Client, served: Callable[..., Client]) -> None:
    for path in ("/", "/page.js", "/state", "/none"):
        headers = ask(path).headers
        policy = dict(
            p.strip().split(" ", 1) for p in headers["content-security-policy"].split(";")
        )
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
        assert policy["img-src"] == "blob:"
        assert policy["frame-ancestors"] == "'none'"
        assert (headers["cache-control"], headers["referrer-policy"]) == ("no-store", "no-referrer")
        assert headers["x-content-type-options"] == "nosniff"
        assert "server" not in headers
        assert "set-cookie" not in headers


def test_the_page_may_be_in_the_frame_of_a_notebook(served: Callable[..., Client]) -> None:
    policy = served(framed=True)("/").headers["content-security-policy"]
    assert "frame-ancestors http://localhost:* " in policy


# What it gives ------------------------------------------------------------------------------------


def test_the_page_has_no_script_of_its_own_and_nothing_from_elsewhere(ask: Client) -> None:
    page = ask("/").content.decode()
    assert page.count("<script") == 1
    assert "style=" not in page
    assert "http" not in page.replace("http-equiv", "")
    script, style = (ask(path).content.decode() for path in ("/page.js", "/page.css"))
    assert len(script.encode()) <= 30_000
    for risky in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "Function(",
    ):
        assert risky not in script
    assert "http" not in script.replace("http://www.w3.org/2000/svg", "")
    assert "url(" not in style
    assert "@import" not in style
    assert "--own: light-dark(#0b62a8, " in style


def test_a_label_is_saved_before_the_answer_says_so(ask: Client, file: Path) -> None:
    state = ask("/state").json
    assert [one["name"] for one in state["classes"]] == ["fine", "toxic"]
    key = state["queue"][0]["key"]
    answer = ask.label(key)
    assert answer.status == 200
    assert answer.json["saved"]
    assert answer.json["labeled"] == 1
    assert f'"item": "{key}", "class": "fine"' in Path(f"{file}.labels.jsonl").read_text()
    assert ask(f"/item?key={key}").json["label"] == "fine"
    assert ask("/neighbour?step=-1").json["key"] == key
    undone = ask("/event", {"event": "undo", "item": key}).json["undone"]
    assert (undone["key"], undone["decided"]) == (key, False)
    said = ask("/event", {"event": "cannot-say", "item": key}).json
    assert (said["labeled"], said["cannot_say"]) == (0, 1)
    assert ask("/event", {"event": "change", "item": key, "class": "toxic"}).json["labeled"] == 1
    assert ask("/event", {"event": "note", "item": key, "text": "hm"}).status == 200
    odd = ask("/event", {"event": "note", "item": key, "text": "half \ud800"})
    assert odd.status == 400
    assert "cannot be recorded" in odd.json["error"]
    assert ask("/event", {"event": "note", "item": key, "text": "still there"}).status == 200
    assert ask(f"/item?key={key}").json["notes"] == ["hm", "still there"]


def test_what_another_window_decided_is_told_with_what_comes_next(ask: Client) -> None:
    key = ask("/state").json["queue"][0]["key"]
    ask.label(key, "toxic")
    again = ask.label(key, "fine")
    assert again.status == 409
    assert "is decided already: 'toxic' by anna" in again.json["error"]
    assert key not in {item["key"] for item in again.json["queue"]}


BAD: list[tuple[Any, int]] = [
    ({"event": "label", "item": "zz", "class": "fine"}, 400),
    ({"event": "label", "item": "c001", "class": "rude"}, 400),
    ({"event": "label", "item": "c001"}, 400),
    ({"event": "label", "item": ["c001"], "class": "fine"}, 400),
    ({"event": "label", "item": "c001", "class": {"a": 1}}, 400),
    ({"event": "drop", "item": "c001"}, 400),
    ({"event": "undo", "item": ""}, 400),
    ([], 400),
    (b"{", 400),
    (b"[" * 30_000, 400),
    (b"\xff", 400),
    (b"x" * 70_000, 413),
]


def test_bad_events_change_nothing(ask: Client) -> None:
    for body, status in BAD:
        answer = ask("/event", body)
        assert answer.status == status, body
        assert answer.json["error"]
    assert ask.server.session.journal.n_events == 0


def test_a_full_disk_is_told_and_nothing_has_changed(
    ask: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = ask("/state").json["queue"][0]["key"]

    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        answer = ask.label(key)
    assert answer.status == 507
    assert "cannot be written: No space left on device" in answer.json["error"]
    assert ask("/state").json["queue"][0]["key"] == key
    assert ask.label(key).status == 200


@pytest.mark.skipif(sys.platform == "win32", reason="files that are open cannot be moved there")
def test_a_record_that_is_gone_is_told_and_can_be_had(ask: Client, file: Path) -> None:
    record = Path(f"{file}.labels.jsonl")
    keys = [item["key"] for item in ask("/state").json["queue"]]
    assert ask.label(keys[0]).json["saved"]
    record.unlink()
    answer = ask.label(keys[1])
    assert (answer.status, answer.json["lost"]) == (507, True)
    assert f"{record} is gone; put it back as it was and try again" in answer.json["error"]
    assert ask("/state").json["labeled"] == 1
    rescue = ask("/rescue")
    assert rescue.status == 200
    assert parse_record(rescue.content).labels == {keys[0]: "fine"}
    record.write_bytes(rescue.content)
    assert ask.label(keys[1]).json["saved"]
    assert read_record(record).labels == dict.fromkeys(keys[:2], "fine")
    record.unlink()
    ended = ask("/finish", {}).json
    assert not ended["saved"]
    assert f"2 labels in {file}.rescued1.labels.jsonl" in ended["where"]
    assert read_record(f"{file}.rescued1.labels.jsonl").labels == dict.fromkeys(keys[:2], "fine")


def test_names_and_texts_are_data_and_never_markup(
    served: Callable[..., Client], tmp_path: Path
) -> None:
    table = table_of(8, classes=("fine", HOSTILE))
    table = table.set_column(1, "text", pa.array([f"{HOSTILE} some words {i}" for i in range(8)]))
    table = table.rename_columns([n.replace("good", "<b>good</b>") for n in table.column_names])
    ask = served(tmp_path / "r.labels.jsonl", source=table)
    page, state = ask("/").content.decode(), ask("/state")
    assert HOSTILE[:8] not in page
    assert state.headers["content-type"] == "application/json"
    assert HOSTILE in state.json["queue"][0]["cells"][0]["text"]
    (name,) = {one["name"] for one in state.json["classes"]} - {"fine"}
    assert name.startswith(HOSTILE[:20])
    assert ask.label(state.json["queue"][0]["key"], name).json["labeled"] == 1
    drawn = ask(f"/picture?model={quote('<b>good</b>')}&metric=accuracy").content.decode()
    assert "<b>" not in drawn
    assert "&lt;b&gt;good" in drawn


def test_a_figure_is_a_picture_of_svg(ask: Client) -> None:
    for _ in range(3):
        ask.label(ask("/state").json["queue"][0]["key"])
    ask.server.session.estimate(wait=True)
    report = ask("/estimate").json
    assert report["n"] == 3
    answer = ask("/picture?model=good&metric=accuracy")
    assert answer.headers["content-type"].startswith("image/svg+xml")
    assert answer.content.startswith(b"<svg ")
    assert b"after 3 labels" in answer.content.lower()
    assert ask("/picture?model=god&metric=accuracy").status == 400


def test_a_figure_without_points_and_with_a_target() -> None:
    drawn = render_narrowing({"model": "a", "metric": "ece", "level": 0.9, "points": [],
                              "guard": [], "target": 0.5})  # fmt: skip
    assert 'class="goal"' in drawn
    assert "90% interval" in drawn


def test_finish_ends_it(ask: Client) -> None:
    assert not ask.server.finished.is_set()
    assert ask("/finish", {}).status == 200
    assert ask.server.finished.is_set()


# Pictures -----------------------------------------------------------------------------------------


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """A folder of pictures, a secret beside it, and links that lead in and out."""
    folder = tmp_path / "pictures"
    (folder / "deep").mkdir(parents=True)
    (tmp_path / "secret.png").write_bytes(PNG)
    (folder / "a.png").write_bytes(PNG)
    (folder / "deep" / "b.JPG").write_bytes(PNG)
    (folder / "vector.svg").write_text("<svg/>")
    (folder / "out.png").symlink_to(tmp_path / "secret.png")
    (folder / "in.png").symlink_to(folder / "a.png")
    (folder / "up").symlink_to(tmp_path)
    (folder / "folder.png").mkdir()
    return folder


GIVEN = {"a.png": "image/png", "deep/b.JPG": "image/jpeg", "in.png": "image/png",
         "deep/../a.png": "image/png"}  # fmt: skip
REFUSED = ["../secret.png", "out.png", "up/secret.png", "vector.svg", "none.png", "folder.png", "",
           "deep/../../secret.png", "a.png\x00.png", "/etc/passwd", "..", "deep"]  # fmt: skip


def test_pictures_come_from_the_folder_alone(
    served: Callable[..., Client], pictures: Path, tmp_path: Path
) -> None:
    names = [*GIVEN, *REFUSED, str(tmp_path / "secret.png"), str(pictures / "a.png")]
    table = table_of(len(names), picture=names)
    ask = served(tmp_path / "r.labels.jsonl", source=table, images=str(pictures), show=["picture"])
    for row, name in enumerate(names):
        answer = ask(f"/image?key=c{row:03d}&column=picture")
        if name in GIVEN or name == str(pictures / "a.png"):
            assert (answer.status, answer.content) == (200, PNG), name
            assert answer.headers["content-type"] == GIVEN.get(name, "image/png")
        else:
            assert answer.status == 400, name
            assert b"no such picture" in answer.content
    # What no cell says is never asked of the disk.
    for path in ("/image?key=c000&column=text", "/image?key=zz&column=picture",
                 "/image?key=../secret.png&column=picture", "/a.png", "/pictures/a.png",
                 "/image/../../secret.png", "/%2e%2e/secret.png"):  # fmt: skip
        assert ask(path).status in (400, 404)


def test_without_a_folder_there_are_no_pictures(
    served: Callable[..., Client], pictures: Path, tmp_path: Path
) -> None:
    table = table_of(3, picture=["a.png"] * 3)
    ask = served(tmp_path / "r.labels.jsonl", source=table, show=["picture"])
    assert ask("/state").json["queue"][0]["cells"][0]["kind"] == "text"
    assert ask("/image?key=c000&column=picture").status == 400


# Beginning ----------------------------------------------------------------------------------------


def test_a_port_that_is_taken(opened: Open, tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(fl.UsageError, match=f"--port {port} is taken"):
            Server(opened(), port=port)
        assert not list(tmp_path.glob("*.jsonl"))  # nor one that holds no label
    with pytest.raises(fl.UsageError, match="--port 70000 is taken or cannot be listened on"):
        Server(opened(), port=70_000)  # and the record is free again


def test_without_the_extra(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "uvicorn", None)
    with pytest.raises(fl.MissingExtraError, match=r"pip install 'fewlabels\[label\]'"):
        server_module.check_installed()


# Others on this machine ---------------------------------------------------------------------------


@pytest.fixture
def running(file: Path) -> Iterator[Callable[..., tuple[subprocess.Popen[str], str]]]:
    """`running(*options, **environment)`: the command in a process of its own, and its address."""
    started: list[subprocess.Popen[str]] = []

    def run(*options: str, **environment: str) -> tuple[subprocess.Popen[str], str]:
        command = [sys.executable, "-m", "fewlabels", "label", str(file), *options]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=os.environ | environment,
        )  # fmt: skip
        started.append(process)
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("Label at "):
                return process, line.split()[-1]
        raise AssertionError(process.communicate()[1])

    yield run
    for process in started:
        process.kill()
        process.communicate()


def given(url: str, path: str = "/state", body: Any = None) -> Answer:
    """What whoever has the token is answered with."""
    place, _, token = url.removeprefix("http://").partition("/?token=")
    asked = http.client.HTTPConnection(place, timeout=9)
    data = None if body is None else json.dumps(body)
    try:
        asked.request("GET" if body is None else "POST", path, data, {HEADER: token})
        answer = asked.getresponse()
        return Answer(answer.status, {}, answer.read())
    finally:
        asked.close()


@pytest.mark.skipif(sys.platform == "win32", reason="limits of a process are those of Unix")
@pytest.mark.slow
@pytest.mark.parametrize("room", [1024, 24])
def test_connections_that_say_nothing_stop_nobody(
    running: Callable[..., tuple[subprocess.Popen[str], str]], room: int
) -> None:
    """1,300 of them, or all that the system lends the server: the page works, nothing is said."""
    import resource

    process, url = running("--no-browser")
    while not (given(url, "/estimate").json or {}).get("fresh"):
        time.sleep(0.05)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    used = len(os.listdir(f"/proc/{process.pid}/fd")) if os.path.isdir("/proc") else 0
    if room < 64 and not used:
        pytest.skip("needs /proc to know how many files the server has open")
    if used:
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (min(used + room, 1024), hard))
    others: list[socket.socket] = []
    try:
        port = int(url.split(":")[2].split("/")[0])
        for k in range(1300 if room > 64 else 40):
            other = socket.create_connection(("127.0.0.1", port), timeout=20)
            others.append(other)
            with suppress(OSError):
                other.send(b"GET /state HTTP/1.1\r\nHost: 127.0.0.1\r\n" if k % 2 else b"")
            if k % 100 == 99:
                assert given(url).status == 200
        deadline = time.monotonic() + 30  # where all room is taken, until those are sent away
        while True:
            with suppress(OSError):
                assert given(url).status == 200
                break
            assert time.monotonic() < deadline
    finally:
        for other in others:
            other.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert len(err.splitlines()) == 1
    assert err.startswith("interrupted; 0 labels")


def test_a_connection_must_show_the_token_soon(
    served: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However it passes its time: silent, a byte at a time, or with requests that are refused."""
    monkeypatch.setattr(server_module, "PATIENCE", 0.3)
    ask = served()
    known = http.client.HTTPConnection("127.0.0.1", ask.server.port, timeout=20)
    known.request("GET", "/state", headers={HEADER: ask.server.token})
    known.getresponse().read()
    sock = known.sock
    for sent in (b"", b"GET / HTTP/1.1\r\n", b"GET /state HTTP/1.1\r\nHost: localhost\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", ask.server.port), timeout=20) as other:
            other.sendall(sent)
            found = b""
            with suppress(ConnectionResetError):
                while more := other.recv(4096):
                    found += more
            assert found[:12] in (b"", b"HTTP/1.1 403")
    known.request("GET", "/state", headers={HEADER: ask.server.token})
    assert known.getresponse().status == 200
    assert known.sock is sock
    known.close()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
def test_who_goes_away_leaves_no_line(
    running: Callable[..., tuple[subprocess.Popen[str], str]],
) -> None:
    """In the middle of a request, of an answer, or with what is no request at all."""
    process, url = running("--no-browser")
    host, _, secret = url.removeprefix("http://").partition("/?token=")
    token = f"{HEADER}: {secret}\r\nHost: 127.0.0.1\r\n"
    for sent in (
        f"POST /event HTTP/1.1\r\n{token}Content-Length: 100\r\n\r\n{{",
        f"GET /page.js HTTP/1.1\r\n{token}\r\n" * 20,
        f"GET /state HTTP/1.1\r\n{token}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        "\x16\x03\x01 no request\r\n\r\n",
    ):
        for _ in range(3):
            with socket.create_connection(
                ("127.0.0.1", int(host.split(":")[1])), timeout=20
            ) as other:
                other.sendall(sent.encode())
    assert given(url).status == 200
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=20)
    assert len(err.splitlines()) == 1
    assert err.startswith("stopped by SIGTERM; 0 labels")


def test_an_error_within_is_told_to_the_page_alone(
    ask: Client, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken() -> None:
        raise ZeroDivisionError("by\nzero")

    monkeypatch.setattr(ask.server.session, "estimate", broken)
    answer = ask("/estimate")
    assert answer.status == 500
    assert answer.json == {"error": "an error within fewlabels (ZeroDivisionError: by\\nzero)"}
    assert capfd.readouterr().err == ""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0,
                    reason="only root can look as another user")  # fmt: skip
@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="processes are seen in /proc")
def test_another_user_reads_neither_token_nor_record(
    running: Callable[..., tuple[subprocess.Popen[str], str]], file: Path
) -> None:
    """Not in what any program was started with, nor in any file that the command makes."""
    opened, last = file.with_name("opened"), file.with_name("last")
    browser = file.with_name("browser")
    browser.write_text(
        f"#!/bin/sh\ntr '\\0' '\\n' < /proc/$$/cmdline > {opened}.part\n"
        f"mv {opened}.part {opened}\nwhile [ ! -e {last} ]; do sleep 0.05; done\n"
    )
    browser.chmod(0o755)
    folder = file.parent
    modes = {path: path.stat().st_mode for path in (folder, *folder.parents) if path.owner()}
    try:
        for path in modes:
            path.chmod(modes[path] | 0o055)
        process, url = running(BROWSER=str(browser))
        deadline = time.monotonic() + 20
        while not opened.exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        token, arguments = url.partition("token=")[2], opened.read_text().split()
        redirect = Path(unquote(arguments[-1].removeprefix("file://")))
        assert token in redirect.read_text()
        assert token not in opened.read_text()
        record = Path(f"{file}.labels.jsonl")
        seen = as_nobody(f"cat /proc/[0-9]*/cmdline {redirect} {record}; ls {redirect.parent}")
        assert token.encode() not in seen
        assert b"fewlabels\0label" in seen.replace(b"-m\0", b"")
        assert seen.count(b"Permission denied") >= 3
        assert b'"digest"' not in seen
        assert as_nobody(f"cat {browser}").startswith(b"#!/bin/sh")  # others can be read
        assert (
            given(url, "/event", {"event": "label", "item": "c001", "class": "fine"}).status == 200
        )
        record.unlink()
        last.touch()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
        rescue = Path(f"{file}.rescued1.labels.jsonl")
        assert f"1 label in {rescue}" in err
        assert b"Permission denied" in as_nobody(f"cat {rescue}")
        assert not redirect.parent.exists()
    finally:
        last.touch()
        for path, mode in modes.items():
            path.chmod(mode)


def as_nobody(command: str) -> bytes:
    done = subprocess.run(
        ["/bin/sh", "-c", command], capture_output=True, user=65534, group=65534, extra_groups=[],
        cwd="/",
    )  # fmt: skip
    return done.stdout + done.stderr


# In a notebook ------------------------------------------------------------------------------------


def test_a_notebook_shows_the_page_in_a_frame(tmp_path: Path) -> None:
    table = table_of(20)
    predictions = fl.read_predictions(table, keep=())
    shown = fl.label(
        predictions, {"text": table["text"].to_pylist()}, labels=tmp_path / "n.labels.jsonl",
        annotator="anna", until="width:accuracy<=0.2",
    )  # fmt: skip
    try:
        assert shown.url in shown._repr_html_()
        assert shown._repr_html_().startswith("<iframe ")
        assert shown.url in repr(shown)
        ask = Client(shown._server)
        key = ask("/state").json["queue"][0]["key"]
        assert ask("/state").json["until"] == ["width:accuracy<=0.2"]
        ask.label(key, "toxic")
        assert shown.labels == {key: "toxic"}
        text = ask(f"/item?key={key}").json["cells"][0]["text"]
        assert text == table["text"][int(key)].as_py()
    finally:
        shown.close()


def test_what_a_notebook_cannot_show(tmp_path: Path) -> None:
    table = table_of(20)
    predictions, record = fl.read_predictions(table, keep=()), tmp_path / "n.labels.jsonl"
    with pytest.raises(fl.InputError, match="`items` has 19 rows, and there are predictions of 20"):
        fl.label(predictions, ["a b c"] * 19, labels=record)
    with pytest.raises(fl.UsageError, match="`items` must be a frame or a list"):
        fl.label(predictions, labels=record)
    with pytest.raises(fl.UsageError, match="say where the record of labels is to be"):
        fl.label(predictions, ["a b c"] * 20)
    with pytest.raises(fl.UsageError, match="`items` are the texts beside Predictions"):
        fl.label(table, ["a b c"] * 20, labels=record)


@pytest.mark.skipif(sys.platform == "win32", reason="files that are open cannot be moved there")
def test_a_notebook_is_told_where_the_labels_of_a_lost_record_are(tmp_path: Path) -> None:
    shown = fl.label(table_of(20), labels=tmp_path / "n.labels.jsonl", annotator="anna")
    Client(shown._server).label("c001", "toxic")
    Path(shown.record).unlink()
    with pytest.warns(UserWarning, match=r"is gone; 1 label in .*n\.rescued1\.labels\.jsonl"):
        shown.close()
    assert read_record(tmp_path / "n.rescued1.labels.jsonl").labels == {"c001": "toxic"}
