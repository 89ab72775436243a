"""A browser that a test steers: the part of the WebDriver protocol that is needed, by chromedriver.

https://www.w3.org/TR/webdriver2/
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-quic", "--disable-dev-shm-usage",
)  # fmt: skip

_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"ArrowLeft": "\ue012", "ArrowRight": "\ue014", "Escape": "\ue00c", "Enter": "\ue007",
        "Tab": "\ue004", "Backspace": "\ue003"}  # fmt: skip


def found() -> tuple[str, str] | None:
    """The browser and its driver, where both are there."""
    browser = next(filter(None, map(shutil.which, NAMES)), None)
    driver = shutil.which("chromedriver")
    return None if browser is None or driver is None else (browser, driver)


class Browser:
    """One window after another of one browser."""

    def __init__(self, base: str, session: str) -> None:
        self.base = f"{base}/session/{session}"

    def call(self, method: str, path: str, body: Any = None) -> Any:
        return _call(method, f"{self.base}{path}", body)

    def open(self, url: str) -> None:
        """Go to a page, and wait until all of it has been read.

        On a busy machine the driver answers while the page is still being parsed.
        """
        self.run("window.left = true")
        self.call("POST", "/url", {"url": url})
        self.until(lambda: self.run("return !window.left && document.readyState === 'complete'"))

    def run(self, script: str, *arguments: Any) -> Any:
        """What a function's body returns."""
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def press(self, *keys: str) -> None:
        """Keys one after another, each down and up, wherever the focus is."""
        actions: list[dict[str, str]] = []
        for key in keys:
            value = KEYS.get(key, key)
            actions += [{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}]
        self.call(
            "POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]}
        )

    def text(self, selector: str) -> str:
        """The text of an element as it is seen; empty where there is none, or it is hidden."""
        script = (
            "const e = document.querySelector(arguments[0]);"
            " return e && e.checkVisibility() ? e.innerText : ''"
        )
        return str(self.run(script, selector)).strip()

    def click(self, selector: str) -> None:
        self.run("document.querySelector(arguments[0]).click()", selector)

    def until(self, true: Callable[[], Any], seconds: float = 20) -> Any:
        """Wait until something is so.

        Raises
        ------
        AssertionError
            If it does not come to be.
        """
        deadline = time.monotonic() + seconds
        while not (result := true()):
            if time.monotonic() > deadline:
                raise AssertionError(f"not so after {seconds} s: {self.text('body')[:2000]}")
            time.sleep(0.02)
        return result

    def size(self, width: int, height: int) -> None:
        """Pixels of the page itself."""
        self.call("POST", "/goog/cdp/execute", {
            "cmd": "Emulation.setDeviceMetricsOverride",
            "params": {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        })  # fmt: skip

    def scheme(self, name: str) -> None:
        """Let the reader prefer light or dark."""
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.call("POST", "/goog/cdp/execute", {
            "cmd": "Emulation.setEmulatedMedia", "params": {"features": features},
        })  # fmt: skip

    def picture(self, path: Path) -> None:
        """What is seen, as a PNG."""
        path.write_bytes(base64.b64decode(self.call("GET", "/screenshot")))

    def new_tab(self) -> str:
        """Open a tab and turn to it; what it is called."""
        handle = self.call("POST", "/window/new", {"type": "tab"})["handle"]
        self.turn_to(handle)
        return str(handle)

    def here(self) -> str:
        return str(self.call("GET", "/window"))

    def turn_to(self, handle: str) -> None:
        self.call("POST", "/window", {"handle": handle})


def _call(method: str, url: str, body: Any) -> Any:
    data = None if method == "GET" else json.dumps(body or {}).encode()
    request = urllib.request.Request(url, data, method=method)
    request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.loads(answer.read())["value"]
    except urllib.error.HTTPError as error:
        said = json.loads(error.read())["value"]
        raise RuntimeError(f"{said['error']}: {said['message'].splitlines()[0]}") from None


@contextmanager
def browsing(folder: Path) -> Iterator[Browser]:
    """A headless browser with a profile of its own.

    Parameters
    ----------
    folder
        Where its profile goes.
    """
    programs = found()
    assert programs is not None
    browser, driver = programs
    environment = os.environ | {"HOME": str(folder)}
    process = subprocess.Popen(
        [driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env=environment,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        port = next(m[1] for line in lines if (m := re.search(r"successfully on port (\d+)", line)))
        base = f"http://127.0.0.1:{port}"
        options = {"binary": browser, "args": [*FLAGS, f"--user-data-dir={folder / 'profile'}"]}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options}
        made = _call("POST", f"{base}/session", {"capabilities": {"alwaysMatch": wanted}})
        steered = Browser(base, made["sessionId"])
        try:
            yield steered
        finally:
            _call("DELETE", steered.base, None)
    finally:
        process.terminate()
        process.wait(timeout=20)
        process.stdout.close()
