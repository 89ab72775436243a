"""The page to label in, in a real browser: keys, undo, reload, two tabs, a killed server."""

from __future__ import annotations

import base64
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest
import webdriver

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "labeling"))

from labeling_tables import HOSTILE, table_of
from record_faults import KEPT, LOST, Fault

from fewlabels.cli.label import redirect
from fewlabels.data.label_record import read_record

pytest.importorskip("starlette", reason="needs the extra `label`")
pytest.importorskip("uvicorn", reason="needs the extra `label`")

if webdriver.found() is None:
    pytest.skip(
        f"no browser to label in; looked for chromedriver and {', '.join(webdriver.NAMES)}",
        allow_module_level=True,
    )


class Served:
    """`fewlabels label` in a process of its own, which can be killed and begun again."""

    def __init__(self, file: Path, *options: str) -> None:
        self.file, self.options = file, options
        self.record = Path(f"{file}.labels.jsonl")
        self.begin()

    def begin(self) -> None:
        command = [sys.executable, "-m", "fewlabels", "label", str(self.file), "--no-browser",
                   "--annotator", "anna", *self.options]  # fmt: skip
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if found := re.match(r"Label at (http://\S+)", line):
                self.url = found[1]
                return
        raise AssertionError(self.process.communicate()[1])

    def end(self, number: int = signal.SIGKILL) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.communicate(timeout=20)
        return self.process.returncode

    @property
    def labels(self) -> dict[str, str]:
        return read_record(self.record).labels


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Browser]:
    with webdriver.browsing(tmp_path_factory.mktemp("browser")) as steered:
        steered.size(1280, 860)
        yield steered


Start = Callable[..., Served]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """`start(table, *options)`: a server of the items of a table."""
    servers: list[Served] = []

    def run(table: pa.Table, *options: str) -> Served:
        path = tmp_path / f"items{len(servers)}.csv"
        pa.csv.write_csv(table, path)
        servers.append(Served(path, *options))
        return servers[-1]

    yield run
    for served in servers:
        served.end()


class Page:
    """What somebody does who labels."""

    def __init__(self, browser: webdriver.Browser, served: Served) -> None:
        self.browser, self.served = browser, served
        self.open()

    def open(self) -> None:
        self.browser.open(self.served.url)
        self.browser.until(lambda: self.where.startswith("Item"))

    @property
    def where(self) -> str:
        return self.browser.text("#where")

    def wait(self) -> None:
        """Wait until nothing is being saved."""
        self.browser.until(lambda: self.browser.text("#saved") not in ("saving…", "not saved"))

    def counted(self, n: int) -> None:
        """Wait until so many labels are there."""
        self.browser.until(lambda: self.browser.text("#progress").startswith(f"{n} labeled"))


def test_labeling_by_keys(browser: webdriver.Browser, start: Start) -> None:
    """A label, cannot say, an undo, a change, a note, a reload, the back button: all by keys."""
    served = start(table_of(30))
    page = Page(browser, served)
    assert page.where == "Item 1"
    assert browser.text("#classes") == "1\nf\nfine\n2\nt\ntoxic"
    texts = []
    for key in ("1", "t", "s", "f"):
        texts.append(browser.text("#cells"))
        browser.press(key)
    browser.until(lambda: page.where == "Item 5")
    page.counted(3)
    assert list(served.labels.values()) == ["fine", "toxic", "fine"]
    browser.press("u")
    page.counted(2)
    browser.until(lambda: browser.text("#cells") == texts[3])
    browser.press("2")
    page.counted(3)
    assert list(served.labels.values()) == ["fine", "toxic", "toxic"]

    # Back twice to the second from the end, which nobody could say, and a change of mind.
    browser.press("ArrowLeft")
    browser.until(lambda: browser.text("#state") == "labeled toxic")
    browser.press("ArrowLeft")
    browser.until(lambda: browser.text("#state") == "cannot say")
    assert browser.text("#cells") == texts[2]
    browser.press("1")
    page.counted(4)
    browser.until(lambda: browser.text("#cells") == texts[3])
    browser.press("ArrowRight")
    browser.until(lambda: page.where == "Item 5")
    browser.press("n")
    browser.press(*"1 is odd", "Enter")  # the digit is no label here
    browser.until(lambda: browser.text("#notes") == "1 is odd")
    browser.press("?")
    assert browser.run("return document.getElementById('help').open")
    browser.press("2", "Escape")
    assert not browser.run("return document.getElementById('help').open")
    page.counted(4)

    now = browser.text("#cells")
    browser.call("POST", "/refresh")
    browser.until(lambda: page.where == "Item 5")
    assert browser.text("#cells") == now
    page.counted(4)
    browser.open("about:blank")
    browser.call("POST", "/back")
    browser.until(lambda: page.where == "Item 5")
    page.counted(4)
    browser.press("1")
    page.counted(5)
    assert list(served.labels.values()) == ["fine", "toxic", "fine", "toxic", "fine"]
    browser.click("#finish")
    browser.until(lambda: page.where.startswith("Finished"))
    assert served.process.wait(timeout=20) == 0


@pytest.mark.slow
def test_the_estimate_is_hidden_until_five_labels(browser: webdriver.Browser, start: Start) -> None:
    served = start(
        table_of(40), "--until", "width:good:accuracy<=0.99", "--metrics", "accuracy,ece"
    )
    page = Page(browser, served)
    browser.run("sessionStorage.clear()")
    assert "Hidden until there are 5 labels (5 to go)" in browser.text("#waiting")
    for k in range(5):
        assert not browser.text("#rows")
        browser.press("1")
        page.counted(k + 1)
    browser.until(lambda: "good" in browser.text("#rows"))
    browser.until(
        lambda: browser.text("#stop").startswith("You can stop: the interval for accuracy")
    )
    browser.until(
        lambda: browser.run("return document.querySelectorAll('#figure path').length") > 1
    )
    browser.until(lambda: "accuracy of good after 5 labels" in browser.text("#figure-title"))
    browser.click("#rows button:nth-child(2)")
    browser.until(lambda: "accuracy of poor" in browser.text("#figure-title"))
    browser.click("#shown")
    assert not browser.text("#rows")
    assert "Hidden, so that it does not sway you" in browser.text("#waiting")
    browser.call("POST", "/refresh")
    browser.until(lambda: page.where == "Item 6")
    assert not browser.text("#rows")
    browser.click("#shown")
    browser.until(lambda: "good" in browser.text("#rows"))


@pytest.mark.parametrize("options", [pytest.param((), marks=pytest.mark.slow), ("--markdown",)])
def test_hostile_texts_stay_texts(
    browser: webdriver.Browser, start: Start, options: tuple[str, ...]
) -> None:
    """In items, names of classes, classifiers and columns, with and without marks of Markdown."""
    hostile = HOSTILE.replace("\n", " ")
    table = table_of(12, classes=("fine", hostile))
    texts = [
        f"{HOSTILE} some **bold** words `{hostile}` {i}\n\n- {hostile}\n- b" for i in range(12)
    ]
    table = table.set_column(1, hostile, pa.array(texts)).append_column("more", pa.array(texts))
    table = table.rename_columns([n.replace("good", hostile) for n in table.column_names])
    served = start(table, "--show", f"{hostile},more", "--see-predictions", *options)
    page = Page(browser, served)
    browser.run("sessionStorage.setItem('shown', 'yes')")
    for k in range(3):
        browser.press("1")
        page.counted(k + 1)
    browser.until(lambda: browser.text("#rows"))
    browser.until(lambda: browser.run("return document.querySelector('#figure svg') !== null"))
    browser.press("ArrowLeft")
    browser.until(lambda: browser.text("#state"))
    found = browser.run(
        "return {ran: window.ran === undefined, title: document.title,"
        " active: document.querySelectorAll('img, iframe, object, embed, form[action],"
        " script:not([src]), [onerror], [onload]').length,"
        " text: document.getElementById('cells').textContent,"
        " fetched: performance.getEntriesByType('resource').map(e => new URL(e.name).host)}"
    )
    assert (found["ran"], found["active"]) == (True, 0)
    assert "<img src=x onerror=" in found["text"]
    assert set(found["fetched"]) == {served.url.split("/")[2]}
    assert ("**bold**" in found["text"]) == (not options)


@pytest.mark.slow
def test_two_tabs_on_one_record(browser: webdriver.Browser, start: Start) -> None:
    """The second to decide an item is told so, and goes on with another one."""
    served = start(table_of(30))
    page = Page(browser, served)
    first = browser.here()
    text = browser.text("#cells")
    browser.new_tab()
    page.open()
    assert browser.text("#cells") == text
    browser.press("2")
    page.counted(1)
    browser.turn_to(first)
    browser.press("1")
    browser.until(lambda: "is decided already: 'toxic' by anna" in browser.text("#saved"))
    page.counted(1)
    assert list(served.labels.values()) == ["toxic"]
    browser.press("1")
    page.counted(2)
    assert list(served.labels.values()) == ["toxic", "fine"]
    browser.call("DELETE", "/window")
    browser.turn_to(browser.call("GET", "/window/handles")[0])
    refused = subprocess.run(
        [sys.executable, "-m", "fewlabels", "label", served.file, "--no-browser"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert refused.returncode == 2
    assert "another page writes to this record" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="sets a limit of another process")
def test_a_full_disk_is_told_and_gone_on_with_when_there_is_room(
    browser: webdriver.Browser, start: Start
) -> None:
    """A limit on the size of files stands for the disk; it is lifted as room is made."""
    import resource

    served = start(table_of(60))
    page = Page(browser, served)
    whole = resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, (3000, whole[1]))
    pressed = 0
    while not browser.text("#alert") and pressed < 30:
        browser.press("1")
        pressed += 1
        page.wait() if pressed < 5 else time.sleep(0.2)
    assert re.match(r"Not saved: .* cannot be written: File too large", browser.text("#alert-text"))
    saved = len(served.labels)
    assert 3 < saved < pressed
    assert browser.text("#progress").startswith(f"{saved} labeled")
    resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, whole)
    browser.click("#retry")
    browser.until(lambda: not browser.text("#alert"))
    page.counted(saved + 1)
    browser.press("2")
    page.counted(saved + 2)
    assert list(served.labels.values()) == ["fine"] * (saved + 1) + ["toxic"]


@pytest.mark.slow
def test_the_browser_is_led_to_the_page_by_a_file(browser: webdriver.Browser, start: Start) -> None:
    """As a link from another origin, which may open the page and ask nothing else."""
    served = start(table_of(30))
    with redirect(served.url) as address:
        assert address.startswith("file://")
        assert served.url not in address
        browser.open(address)
        browser.until(lambda: browser.run("return location.href") == served.url)
        browser.until(lambda: browser.text("#where") == "Item 1")
    browser.press("1")
    browser.until(lambda: browser.text("#progress").startswith("1 labeled"))
    assert list(served.labels.values()) == ["fine"]


@pytest.mark.slow
def test_a_record_that_is_gone_is_told_and_can_be_downloaded(
    browser: webdriver.Browser, start: Start, tmp_path: Path
) -> None:
    served = start(table_of(30))
    page = Page(browser, served)
    for k, key in enumerate("121"):
        browser.press(key)
        page.counted(k + 1)
    served.record.unlink()
    browser.press("2")
    browser.until(lambda: "Not saved: " in browser.text("#alert"))
    assert f"{served.record} is gone" in browser.text("#alert-text")
    assert "One decision waits on this page" in browser.text("#alert-text")
    assert browser.text("#saved") == "not saved"
    assert browser.text("#progress").startswith("3 labeled")
    browser.call("POST", "/goog/cdp/execute", {
        "cmd": "Browser.setDownloadBehavior",
        "params": {"behavior": "allow", "downloadPath": str(tmp_path)},
    })  # fmt: skip
    browser.click("#rescue")
    browser.until(served.record.exists)  # the name that it had
    browser.until(lambda: not browser.text("#alert"))  # as the page tries again by itself
    page.counted(4)
    assert list(served.labels.values()) == ["fine", "toxic", "fine", "toxic"]

    served.record.unlink()
    browser.press("1")
    browser.until(lambda: "Not saved: " in browser.text("#alert"))
    browser.click("#finish")
    browser.until(lambda: "4 labels in " in browser.text("#alert"))
    assert "The decision that waited was not saved." in browser.text("#alert")
    assert browser.text("#where") == "Finished. You can close this page."
    assert browser.text("#saved") == ""
    out, err = served.process.communicate(timeout=20)
    assert err == ""
    assert f"{served.file}.rescued1.labels.jsonl, which --labels goes on with" in out


@pytest.mark.slow
@pytest.mark.parametrize("fault", [f for f in [*LOST, *KEPT] if f.__name__ not in (
    "full", "late", "moved_while_synced")], ids=lambda fault: fault.__name__)  # fmt: skip
def test_what_the_page_says_is_saved_is_kept_whatever_happens_to_the_record(
    fault: Fault, browser: webdriver.Browser, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 20 random labels: said not to be saved, or in the record; and saved when it is mended."""
    served = start(table_of(60))
    page = Page(browser, served)
    places = random.Random(1).sample(range(40), 20)
    names = {"1": "fine", "2": "toxic"}
    pressed: list[str] = []
    for k in range(40):
        key = random.Random(k).choice("12")
        if k in places:
            with fault(served.record, served.record.read_bytes(), monkeypatch):
                browser.press(key)
                if fault in LOST:
                    browser.until(lambda: browser.text("#alert"))
                    assert browser.text("#saved") == "not saved"
                    assert browser.text("#progress").startswith(f"{k} labeled")
                else:
                    page.counted(k + 1)
            if fault in LOST:
                browser.click("#retry")
                browser.until(lambda: not browser.text("#alert"))
        else:
            browser.press(key)
        page.counted(k + 1)
        pressed.append(names[key])
        assert list(served.labels.values()) == pressed
    with fault(served.record, served.record.read_bytes(), monkeypatch):
        served.process.send_signal(signal.SIGINT)
        _, err = served.process.communicate(timeout=20)
    rescue = Path(f"{served.file}.rescued1.labels.jsonl")
    assert rescue.exists() == (fault in LOST)
    kept = rescue if fault in LOST else served.record
    assert f"40 labels in {kept}" in err
    assert len(err.splitlines()) == 1
    assert list(read_record(kept).labels.values()) == pressed


@pytest.mark.slow
def test_a_server_that_is_gone_is_told_and_nothing_is_lost(
    browser: webdriver.Browser, start: Start
) -> None:
    served = start(table_of(30))
    page = Page(browser, served)
    browser.press("1")
    page.counted(1)
    port = served.url.split(":")[2].split("/")[0]
    token = served.url.partition("token=")[2]
    served.end()
    browser.press("2")
    browser.until(lambda: "Not saved: the server does not answer" in browser.text("#alert"))
    assert "One decision waits on this page" in browser.text("#alert")
    assert browser.text("#saved") == "not saved"
    browser.press("2", "2")  # no further ones are taken
    assert "One decision waits" in browser.text("#alert")
    assert list(served.labels.values()) == ["fine"]
    # Another server has another token, so that the page must be opened anew.
    served.options = ("--port", port)
    served.begin()
    assert served.url.partition("token=")[2] != token
    browser.until(lambda: "its token is missing or wrong" in browser.text("#alert")
                  or "answers 403" in browser.text("#alert"))  # fmt: skip
    page.open()
    page.counted(1)


def test_a_held_key_is_one_decision(browser: webdriver.Browser, start: Start) -> None:
    page = Page(browser, start(table_of(30)))
    for repeated in (False, True, True):
        key = {"type": "keyDown", "key": "1", "text": "1", "autoRepeat": repeated}
        browser.call("POST", "/goog/cdp/execute", {"cmd": "Input.dispatchKeyEvent", "params": key})
    page.counted(1)
    time.sleep(0.2)
    page.counted(1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width", "scheme"),
    [(400, "dark"), pytest.param(1280, "light", marks=pytest.mark.slow)],
)
def test_it_fits_a_phone_and_a_desktop(
    browser: webdriver.Browser, start: Start, width: int, scheme: str
) -> None:
    """No scrolling sideways, text large enough, names for every button, and colours that change."""
    page = Page(browser, start(table_of(30), "--show", "id,text"))
    browser.size(width, 860)
    browser.scheme(scheme)
    try:
        browser.run("sessionStorage.setItem('shown', 'yes')")
        for k in range(2):
            browser.press("1")
            page.counted(k + 1)
        browser.until(lambda: browser.run("return !!document.querySelector('#figure svg')"))
        found = browser.run(
            "const seen = [...document.querySelectorAll('body *')].filter(e => e.checkVisibility()"
            " && [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()));"
            "const named = e => e.getAttribute('aria-label') || e.textContent.trim();"
            "const sizes = seen.map(e => parseFloat(getComputedStyle(e).fontSize));"
            "return {scroll: document.scrollingElement.scrollWidth, inner: innerWidth,"
            " small: Math.min(...sizes.filter(s => s)),"
            " bare: [...document.querySelectorAll('button, input, select')].filter("
            "   e => e.checkVisibility() && !named(e) && !(e.labels && e.labels.length)).length,"
            " ground: getComputedStyle(document.documentElement).backgroundColor,"
            " live: document.querySelectorAll('[aria-live], [role=status], [role=alert]').length,"
            " focus: document.activeElement.id,"
            " bottom: document.getElementById('classes').getBoundingClientRect().bottom}"
        )
        assert found["scroll"] <= found["inner"] == width
        assert found["small"] >= 12
        assert (found["bare"], found["focus"]) == (0, "where")
        assert found["live"] >= 3
        assert found["bottom"] <= 860
        assert found["ground"] == {"light": "rgb(244, 245, 247)", "dark": "rgb(16, 20, 26)"}[scheme]
    finally:
        browser.size(1280, 860)
        browser.scheme("light")


DOT = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)


@pytest.mark.slow
def test_pictures_are_shown(browser: webdriver.Browser, start: Start, tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "dot.png").write_bytes(base64.b64decode(DOT))
    names = ["dot.png"] * 20 + ["none.png"]
    served = start(table_of(21, file=names), "--images", str(tmp_path / "p"), "--show", "file")
    page = Page(browser, served)
    loaded = "const i = document.querySelector('#cells img'); return i && i.naturalWidth"
    seen, missing = 0, 0
    for k in range(21):
        browser.until(
            lambda: browser.run(loaded) or "There is no picture" in browser.text("#cells")
        )
        missing += "There is no picture none.png" in browser.text("#cells")
        seen += browser.run(loaded) == 1
        browser.press("1")
        page.counted(k + 1)
    assert (seen, missing) == (20, 1)
    browser.until(lambda: "Every item has a label" in page.where)


@pytest.mark.slow
def test_the_frame_of_a_notebook(browser: webdriver.Browser, tmp_path: Path) -> None:
    """A page of another origin of this machine may hold it, as Jupyter's at localhost does."""
    import http.server
    import threading

    import fewlabels as fl

    path = tmp_path / "items.csv"
    pa.csv.write_csv(table_of(20), path)
    shown = fl.label(path, annotator="anna")
    page = f"<!DOCTYPE html><title>notebook</title>{shown._repr_html_()}".encode()

    class Notebook(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_: object) -> None: ...

    host = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Notebook)
    threading.Thread(target=host.serve_forever, daemon=True).start()
    try:
        browser.open(f"http://localhost:{host.server_port}/")
        browser.call("POST", "/frame", {"id": 0})
        browser.until(lambda: browser.text("#where") == "Item 1")
        browser.click("#classes button")
        browser.until(lambda: browser.text("#where") == "Item 2")
        browser.until(lambda: browser.text("#saved") == "saved")
        assert list(shown.labels.values()) == ["fine"]
    finally:
        browser.call("POST", "/frame", {"id": None})
        shown.close()
        host.shutdown()
        host.server_close()


@pytest.mark.slow
def test_two_hundred_items_and_a_server_that_is_killed_twenty_times(
    browser: webdriver.Browser, start: Start
) -> None:
    """Whatever the page said was saved is in the record after the kill, as it was decided last."""
    chance = random.Random(0)
    served = start(table_of(240))
    page = Page(browser, served)
    kills = sorted(chance.sample(range(5, 200), 20))
    said: dict[str, str | None] = {}
    latency: list[float] = []
    decided = 0
    key_of = "return fetch('/neighbour?step=-1', {headers: {'X-Fewlabels-Token':" \
             " document.documentElement.dataset.token}}).then(a => a.json())"  # fmt: skip
    while decided < 200:
        browser.run(
            "if (!window.times) { window.times = []; addEventListener('keydown', () => {"
            " const t = performance.now(), before = document.getElementById('cells').firstChild;"
            " requestAnimationFrame(() => { if (document.getElementById('cells').firstChild"
            " !== before) window.times.push(performance.now() - t); }); }, true); }"
        )
        choice = chance.random()
        if choice < 0.05 and decided:
            browser.press("u")
            page.wait()
        elif choice < 0.1 and decided:
            browser.press("ArrowLeft")
            browser.until(lambda: browser.text("#state"))
            browser.press(chance.choice("12s"))
            page.wait()
            browser.press("ArrowRight")
        else:
            browser.press(chance.choice("112s"))
            decided += 1
        page.wait()
        decisions = read_record(served.record).decisions
        last = browser.run(key_of)
        if last is not None:
            assert last["key"] in decisions
            assert decisions[last["key"]].label == last["label"]
        said = {key: d.label for key, d in decisions.items()}
        if kills and decided >= kills[0]:
            kills.pop(0)
            latency += browser.run("return window.times || []")
            assert served.end() == -signal.SIGKILL
            after = {k: d.label for k, d in read_record(served.record).decisions.items()}
            assert after == said
            served.begin()
            page.open()
            assert browser.text("#progress").startswith(
                f"{sum(v is not None for v in said.values())} labeled"
            )
    latency.sort()
    quantiles = {q: latency[int(q * (len(latency) - 1))] for q in (0.5, 0.95, 1.0)}
    print("milliseconds from a key to the next item:", json.dumps(quantiles))
    assert served.end(signal.SIGINT) == 130
    assert {k: d.label for k, d in read_record(served.record).decisions.items()} == said
    assert len(said) >= 150
    assert os.path.getsize(served.record) > 0
