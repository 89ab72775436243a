"""Who asks the page's server: as the page does, unless told otherwise."""

from __future__ import annotations

import http.client
import json
from typing import Any, NamedTuple

from fewlabels.labeling.server import HEADER, Server


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)


class Client:
    """Asks a server, with the token in the header."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def __call__(
        self, path: str, body: Any = None, method: str | None = None, **headers: str | None
    ) -> Answer:
        sent: dict[str, str | None] = {HEADER: self.server.token}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body)
        asked = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=20)
        asked.putrequest(
            method or ("GET" if data is None else "POST"), path, skip_host="Host" in sent
        )
        for name, value in sent.items():
            if value is not None:
                asked.putheader(name, value)
        if data is not None:
            asked.putheader("Content-Length", str(len(data)))
        asked.endheaders(data.encode() if isinstance(data, str) else data)
        answer = asked.getresponse()
        try:
            return Answer(
                answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
            )
        finally:
            asked.close()

    def label(self, item: str, name: str | None = "fine") -> Answer:
        return self("/event", {"event": "label", "item": item, "class": name})
