"""The page of `fewlabels label` in a real browser: its pictures, and how long one waits.

Labels examples/comments.csv by keys as somebody would who knows the truth, and writes the pictures
of docs/labeling.md and README.md; then measures what that page says: from a key to the next item,
a new estimate, a file of a million rows. Needs chromium and chromedriver.

    python benchmarks/labeling_page.py --out docs/labeling
"""

from __future__ import annotations

import argparse
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "browser"), str(ROOT / "examples")]

from webdriver import Browser, browsing  # noqa: E402

from fewlabels.labeling.opening import Wishes, open_session  # noqa: E402
from make_comments import make  # noqa: E402

UNTIL = ("--until", "low:large:accuracy>=0.75")
WIDE, NARROW, HIGH = 1280, 400, 800

# From a key being pressed to the frame in which another item is in sight.
TIMES = """
window.times = [];
addEventListener("keydown", () => {
  const before = document.getElementById("cells").firstChild, at = performance.now();
  requestAnimationFrame(() => {
    if (document.getElementById("cells").firstChild !== before)
      times.push(performance.now() - at);
  });
}, true);
"""


@contextmanager
def served(file: Path, record: Path, *options: str) -> Iterator[str]:
    """The address of the page of `fewlabels label`."""
    command = [sys.executable, "-m", "fewlabels", "label", str(file), "--labels", str(record),
               "--annotator", "anna", "--no-browser", *options]  # fmt: skip
    run = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert run.stdout is not None
        yield next(m[1] for line in run.stdout if (m := re.match(r"Label at (\S+)", line)))
    finally:
        run.send_signal(signal.SIGINT)
        run.communicate(timeout=30)


def label(browser: Browser, truth: dict[str, str], first: int, last: int) -> None:
    """Press the key of the right class for the items of these numbers."""
    for k in range(first, last + 1):
        browser.until(lambda k=k: browser.text("#where") == f"Item {k}")
        browser.press("1" if truth[browser.text(".text")] == "fine" else "2")
    browser.until(lambda: browser.text("#saved") == "saved")
    wanted = f"after {last} labels"
    browser.until(lambda: wanted in browser.text("#figure-title") or last < 5)
    time.sleep(3)  # for what is filled in of earlier labels


def pictures(out: Path, folder: Path) -> list[float]:
    """Write the pictures; milliseconds from each key to the next item."""
    table, classes = make()
    truth = dict(zip(table["comment"].to_pylist(), classes, strict=True))
    file, record = ROOT / "examples" / "comments.csv", folder / "comments.labels.jsonl"
    with served(file, record, "--show", "comment", *UNTIL) as url, browsing(folder) as browser:
        browser.size(WIDE, HIGH)
        browser.scheme("light")
        browser.open(url)
        browser.until(lambda: browser.text("#where") == "Item 1")
        browser.run(TIMES)
        browser.picture(out / "start.png")
        label(browser, truth, 1, 20)
        browser.picture(out / "narrowing.png")
        k = 20
        while not browser.text("#stop").startswith("You can stop"):
            label(browser, truth, k + 1, k + 5)
            k += 5
        browser.picture(out / "stop.png")
        times = browser.run("return window.times")
        for scheme, width, name in (
            ("dark", WIDE, "dark"), ("dark", NARROW, "phone-dark"), ("light", NARROW, "phone")
        ):  # fmt: skip
            browser.scheme(scheme)
            browser.size(width, HIGH)
            time.sleep(0.5)  # colours of buttons change within a moment
            browser.picture(out / f"{name}.png")
        print(f"stopped after {k} labels")
    return list(times)


def estimates() -> tuple[float, float]:
    """Seconds of an estimate of 10,000 items of 7 classifiers: of the clock, of the processor."""
    rng = np.random.default_rng(0)
    n, m = 10_000, 7
    truth = rng.random(n) < 0.3
    columns = {
        "id": [f"c{i}" for i in range(n)],
        "text": [f"the text of item {i}" for i in range(n)],
    }
    for j in range(m):
        p = 1 / (1 + np.exp(-rng.normal(2.0 * truth - 1, 1 + 0.2 * j)))
        columns |= {f"p__m{j}__yes": p.tolist(), f"p__m{j}__no": (1 - p).tolist()}
    with tempfile.TemporaryDirectory() as folder:
        wishes = Wishes(annotator="anna")
        session = open_session(pa.table(columns), Path(folder) / "r.labels.jsonl", wishes)
        for _ in range(50):
            key = session.progress()["queue"][0]["key"]
            session.decide(key, "yes" if truth[int(key[1:])] else "no")
        session.estimate(wait=True)
        begun, used = time.perf_counter(), time.process_time()
        for _ in range(5):
            session.estimate(wait=True)
        found = (time.perf_counter() - begun) / 5, (time.process_time() - used) / 5
        session.close()
    return found


# Of a process that has nothing of its own: what a child begins with counts as its memory.
MEASURED = """
import resource, subprocess, sys, time
begun = time.perf_counter()
subprocess.run([sys.executable, "-m", "fewlabels", "label", sys.argv[1], "--terminal"],
               input=b"q\\n", stdout=subprocess.DEVNULL, check=True)
print(time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3)
"""


def million(folder: Path) -> Iterator[tuple[str, float, float]]:
    """Seconds and peak MB until the first item of a million is there, for both kinds of files."""
    rng = np.random.default_rng(0)
    n = 1_000_000
    p = rng.random(n).round(4)
    columns = {
        "id": [f"item-{i:07d}" for i in range(n)],
        "text": [f"this is the text of item number {i}, " + "and so on " * 15 for i in range(n)],
        "label": pa.nulls(n, pa.string()),
        "p__m__yes": p,
        "p__m__no": (1 - p).round(4),
    }
    table = pa.table(columns)
    del columns
    pa.parquet.write_table(table, folder / "big.parquet")
    pa.csv.write_csv(table, folder / "big.csv")
    del table
    for name in ("big.parquet", "big.csv"):
        command = [sys.executable, "-c", MEASURED, str(folder / name)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds, peak = map(float, done.stdout.split())
        yield name, seconds, peak


def main() -> None:
    """Write the pictures, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        times = np.sort(pictures(out, Path(folder)))
        middle, most, worst = np.quantile(times, [0.5, 0.95, 1])
        print(f"from a key to the next item, {len(times)} keys: median {middle:.0f} ms,")
        print(f"    95% within {most:.0f} ms, worst {worst:.0f} ms")
        clock, processor = estimates()
        print(f"an estimate of 10,000 items x 7 classifiers: {clock:.2f} s,")
        print(f"    {processor:.2f} s of processor time")
        for name, seconds, peak in million(Path(folder)):
            print(f"{name}, 1,000,000 rows: {seconds:.1f} s, {peak:.0f} MB")


if __name__ == "__main__":
    main()
