"""The page's server: for this machine alone, and for who has the address alone.

- It listens on 127.0.0.1 only, and answers to that name and to localhost only, so that no page of
  the web can reach it under a name of its own (DNS rebinding).
- Every request carries a token: the page in its address, everything else in a header that other
  origins cannot send without a preflight request, which is not answered. There is no cookie.
- The content security policy lets the page run and fetch nothing but its own files. What a file
  says of items and classes is data (JSON), which the page shows as text.
- Pictures are those that the file names, within the folder that was named on the command line.
- Clients without the token hold few connections, and none for long: those of the page go on.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import secrets
import socket
import threading
import time
from collections.abc import Awaitable, Callable
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from fewlabels.data.label_record import KINDS
from fewlabels.errors import FewlabelsError, MissingExtraError, UsageError, one_line
from fewlabels.labeling.items import IMAGES
from fewlabels.labeling.journal import NotSavedError
from fewlabels.labeling.session import DecidedError, Session
from fewlabels.report.html import source
from fewlabels.report.narrowing import render_narrowing

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

HOST = "127.0.0.1"
HEADER = "X-Fewlabels-Token"
"""Header that carries the token in requests of the page."""

_MOST_BYTES = 1 << 16
"""Largest request in bytes; notes are the longest."""

STRANGERS = 64
"""Most connections that have not shown the token; beyond that the oldest is closed."""

PATIENCE = 5.0
"""Seconds in which a connection must show the token."""

_AT_ONCE, _QUEUE = 8, 512
"""Connections accepted before open ones are looked at again, and how many may wait."""

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors "
)
_NOTEBOOKS = "http://localhost:* http://127.0.0.1:* https://localhost:* vscode-webview:"
"""Whose pages may hold this one in a frame, when a notebook shows it."""


class Server:
    """Serves a session until it is finished.

    It needs Starlette and uvicorn, and a `port` that is free (0: any). With `markdown`, texts are
    laid out by the marks of Markdown in them; with `framed`, a notebook shows the page in a frame.
    """

    def __init__(
        self, session: Session, *, port: int = 0, markdown: bool = False, framed: bool = False
    ) -> None:
        self.session, self.markdown, self.framed = session, markdown, framed
        self.token = secrets.token_urlsafe(24)
        self.finished = threading.Event()
        try:
            check_installed()
            self._socket = _listening(port)
        except BaseException:
            self._discard()
            raise
        self.port: int = self._socket.getsockname()[1]
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The address of the page, with the token."""
        return f"http://{HOST}:{self.port}/?token={self.token}"

    def start(self) -> None:
        """Serve in a thread; returns once the page answers, UsageError if it does not start."""
        import uvicorn

        # Without a handler anywhere, its lines would go to stderr; those of a host stay.
        logging.getLogger("uvicorn").addHandler(logging.NullHandler())
        settings = uvicorn.Config(
            application(self), log_config=None, access_log=False, lifespan="off", ws="none",
            http=_connections(), backlog=_AT_ONCE, server_header=False,
            timeout_graceful_shutdown=1, h11_max_incomplete_event_size=1 << 15,
        )  # fmt: skip
        self._server = uvicorn.Server(settings)
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self.session.start()
        self._thread.start()
        deadline = time.monotonic() + 20
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                self._discard()
                raise UsageError("the page's server does not start; try another --port")
            time.sleep(0.01)
        self._socket.listen(_QUEUE)

    async def _serve(self) -> None:
        # If the system allows no more connections, asyncio tries again in a second.
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        await self._server.serve(sockets=[self._socket])

    def _discard(self) -> None:
        """End the session, and remove a record that it began if nothing is in it."""
        self.session.journal.discard()
        self.session.close()

    def close(self) -> None:
        """End the server and the session."""
        if self._thread is not None:
            self._server.should_exit = True
            self._thread.join(timeout=5)
        self._socket.close()
        self.session.close()


def check_installed() -> None:
    """Refuse to begin if the packages that the page needs are not installed."""
    for package in ("starlette", "uvicorn"):
        try:
            __import__(package)
        except ImportError:
            raise MissingExtraError(package, "label") from None


def _connections() -> type[asyncio.Protocol]:
    """What uvicorn makes of each connection: one that ends soon, unless it shows the token."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    strangers: dict[H11Protocol, asyncio.TimerHandle] = {}

    class Connection(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            strangers[self] = self.loop.call_later(PATIENCE, transport.abort)
            self.app = self._introduced(self.app)
            if len(strangers) > STRANGERS:
                oldest = next(iter(strangers))
                strangers.pop(oldest).cancel()
                oldest.transport.abort()

        def connection_lost(self, exc: Exception | None) -> None:
            self.authenticated()
            super().connection_lost(exc)

        def authenticated(self) -> None:
            if self in strangers:
                strangers.pop(self).cancel()

        def _introduced(self, app: Any) -> Any:
            async def run(scope: Any, receive: Any, send: Any) -> None:
                await app({**scope, _KNOWN: self.authenticated}, receive, send)

            return run

    return Connection


_KNOWN = "fewlabels.known"
"""Key of a request's scope: the function to call when its connection has shown the token."""


def _listening(port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        # A port that a server has just left may be taken again; one that is in use may not.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((HOST, port))
        made.listen(_QUEUE)
    except (OSError, OverflowError) as error:
        made.close()
        raise UsageError(
            f"--port {port} is taken or cannot be listened on ({error}); name another, or leave "
            "it out"
        ) from None
    return made


def application(server: Server) -> Starlette:
    """The routes of a session's page."""
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.requests import ClientDisconnect
    from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
    from starlette.routing import Route

    session = server.session

    def page(request: Request) -> Response:
        content = _file("page.html").replace("TOKEN", server.token)
        return Response(content, media_type="text/html")

    def script(request: Request) -> Response:
        return Response(_file("page.js"), media_type="text/javascript")

    def style(request: Request) -> Response:
        sheets = source("page.css")
        return Response(f"{sheets}\n{_file('page.css')}", media_type="text/css")

    def state(request: Request) -> Response:
        return JSONResponse(session.state() | {"markdown": server.markdown})

    def item(request: Request) -> Response:
        return JSONResponse(session.item(request.query_params.get("key", "")))

    def neighbour(request: Request) -> Response:
        step = 1 if request.query_params.get("step") == "1" else -1
        return JSONResponse(session.neighbour(request.query_params.get("key"), step))

    def image(request: Request) -> Response:
        row = session.row(request.query_params.get("key", ""))
        path = session.items.picture(row, request.query_params.get("column", ""))
        if path is None:
            raise UsageError("there is no such picture in the folder of --images")
        return FileResponse(path, media_type=IMAGES[path.suffix.lower()])

    def estimate(request: Request) -> Response:
        return JSONResponse(session.estimate())

    def picture(request: Request) -> Response:
        query = request.query_params
        drawn = session.picture(query.get("model", ""), query.get("metric", ""))
        return Response(render_narrowing(drawn), media_type="image/svg+xml")

    def rescue(request: Request) -> Response:
        return Response(session.journal.content, media_type="application/jsonl")

    def act(request: Request, body: dict[str, Any]) -> Response:
        kind, key, label = body.get("event"), body.get("item"), body.get("class")
        if kind not in KINDS or not isinstance(key, str) or not isinstance(label, str | None):
            raise UsageError("an event must have an item, and a class where it needs one")
        undone = None
        if kind == "label" and label is None:
            raise UsageError("a label must have a class")
        if kind in ("label", "cannot-say"):
            session.decide(key, label if kind == "label" else None)
        elif kind == "change":
            session.change(key, label)
        elif kind == "note":
            session.note(key, str(body.get("text", "")))
        else:
            undone = session.undo(key or None)
        shown = {"undone": None if undone is None else session.item(undone)}
        return JSONResponse({"saved": True, **session.progress(), **shown})

    def finish(request: Request, body: dict[str, Any]) -> Response:
        saved, where = session.journal.lost() is None, session.journal.whereabouts()
        server.finished.set()
        return JSONResponse({"saved": saved, "where": where})

    def posted(
        handler: Callable[[Request, dict[str, Any]], Response],
    ) -> Callable[[Request], Awaitable[Response]]:
        async def read(request: Request) -> Response:
            from starlette.concurrency import run_in_threadpool

            content = b""
            try:
                async for chunk in request.stream():
                    content += chunk
                    if len(content) > _MOST_BYTES:
                        return JSONResponse({"error": "the request is too long"}, 413)
            except ClientDisconnect:
                return Response(status_code=400)  # which nobody reads
            try:
                body = json.loads(content)
            except (ValueError, RecursionError):
                body = None
            if not isinstance(body, dict):
                return JSONResponse({"error": "the request is no JSON object"}, 400)
            return await run_in_threadpool(handler, request, body)

        return read

    async def refused(request: Request, error: Exception) -> Response:
        codes: dict[type[Exception], int] = {NotSavedError: 507, DecidedError: 409}
        more = session.progress() if isinstance(error, DecidedError) else {}
        more |= {"lost": True} if isinstance(error, NotSavedError) and error.lost else {}
        return JSONResponse({"error": str(error), **more}, codes.get(type(error), 400))

    async def failed(request: Request, error: Exception) -> Response:
        what = one_line(f"{type(error).__name__}: {error}")
        return JSONResponse({"error": f"an error within fewlabels ({what})"}, 500)

    async def missing(request: Request, error: Exception) -> Response:
        return PlainTextResponse("there is no such page\n", getattr(error, "status_code", 404))

    return Starlette(
        routes=[
            Route("/", page, methods=["GET"]),
            Route("/page.js", script, methods=["GET"]),
            Route("/page.css", style, methods=["GET"]),
            Route("/state", state, methods=["GET"]),
            Route("/item", item, methods=["GET"]),
            Route("/neighbour", neighbour, methods=["GET"]),
            Route("/image", image, methods=["GET"]),
            Route("/estimate", estimate, methods=["GET"]),
            Route("/picture", picture, methods=["GET"]),
            Route("/rescue", rescue, methods=["GET"]),
            Route("/event", posted(act), methods=["POST"]),
            Route("/finish", posted(finish), methods=["POST"]),
        ],
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=[HOST, "localhost"]),
            Middleware(_Guard, server=server),
        ],
        exception_handlers={
            FewlabelsError: refused,
            Exception: failed,
            404: missing,
            405: missing,
        },
    )


_OPEN = ("/", "/page.js", "/page.css")
"""What a browser asks for by itself, so that the token stands in the address."""


class _Guard:
    """Passes requests with the token that come from the page itself, and sets security headers."""

    def __init__(self, app: Any, server: Server) -> None:
        self.app, self.server = app, server
        policy = _POLICY + (_NOTEBOOKS if server.framed else "'none'")
        self.headers = [
            (b"content-security-policy", policy.encode()),
            (b"cache-control", b"no-store"),
            (b"referrer-policy", b"no-referrer"),
            (b"x-content-type-options", b"nosniff"),
            (b"cross-origin-resource-policy", b"same-origin"),
            (b"cross-origin-opener-policy", b"same-origin"),
        ]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, or refuse it."""
        from starlette.requests import Request
        from starlette.responses import PlainTextResponse

        if scope["type"] != "http":
            return

        async def sending(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *self.headers]
            await send(message)

        request = Request(scope)
        if not self._comes_from_the_page(request):
            response = PlainTextResponse("another origin may not ask this page\n", 403)
            await response(scope, receive, sending)
        elif not self._has_the_token(request):
            response = PlainTextResponse(
                "open the address that fewlabels printed: its token is missing or wrong\n", 403
            )
            await response(scope, receive, sending)
        else:
            scope.get(_KNOWN, bool)()
            await self.app(scope, receive, sending)

    def _has_the_token(self, request: Request) -> bool:
        sent = request.headers.get(HEADER)
        if sent is None and request.url.path in _OPEN and request.method in ("GET", "HEAD"):
            sent = request.query_params.get("token")
        # In constant time, which does not tell how much of it was right.
        return hmac.compare_digest((sent or "").encode(), self.server.token.encode())

    def _comes_from_the_page(self, request: Request) -> bool:
        origin = request.headers.get("origin")
        port = self.server.port
        if origin is not None and origin not in (
            f"http://{HOST}:{port}",
            f"http://localhost:{port}",
        ):
            return False
        site = request.headers.get("sec-fetch-site", "none")
        # A request by a link or a frame has the token in the address.
        return site in ("none", "same-origin") or request.url.path == "/"


@cache
def _file(name: str) -> str:
    return (files("fewlabels.labeling") / "page" / name).read_text(encoding="utf-8")
