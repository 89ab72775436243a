"""Pictures of the reports and of the page to label in, for README and docs.

    python -m benchmarks screenshots [reports] [labeling] [opening]

Reports: runs the commands on the examples, and writes docs/screenshots/*.png, light and dark, in a
palette of 128 colours. Labeling: labels examples/comments.csv by keys as somebody would who knows
the truth, and writes docs/labeling/*.png. Opening: how large each kind of report is, how long the
browser takes to open it, and the least contrast of its texts, into docs/readability.md. Needs
chromium, chromedriver and Pillow (which matplotlib brings).
"""

from __future__ import annotations

import io
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image

from runs import ROOT, command_line, fill, table

sys.path[:0] = [str(ROOT / "tests" / "browser"), str(ROOT / "examples")]

from webdriver import Browser, browsing  # noqa: E402

from make_comments import make  # noqa: E402

WIDE, HIGH, PHONE, COLOURS = 1280, 900, 400, 128
FIRST = 1360
"""Pixels of the first report, down to the first plot."""
MOST_BYTES = 150_000
"""Of a picture."""
DAY = "1767225600"
"""What the reports say of when they were made, lest pictures change every day."""

REPORTS: dict[str, tuple[str, ...]] = {
    "report": ("estimate", "moderation.csv", "--by", "language"),
    "compare": ("compare", "moderation.csv", "--metric", "accuracy"),
    "curve": ("curve", "moderation.csv", "--model", "large"),
    "threshold": ("threshold", "moderation.csv", "--model", "large", "--min-precision", ".9"),
    "annotations": ("annotations", "slides.csv"),
    "shift": ("shift", "moderation.csv"),
    "label-next": ("label-next", "moderation.csv", "--model", "large"),
}
"""The command of each report; the file is one of examples/."""

OPENED: dict[str, tuple[str, ...]] = REPORTS | {
    "calibration": ("calibration", "moderation.csv"),
    "calibrate": ("calibrate", "moderation.csv", "--method", "temperature"),
    "score": ("score", "verdicts.csv"),
    "rank": ("rank", "battles.csv"),
    "monitor": ("monitor", "messages.csv", "--time", "date", "--every", "week"),
    "backtest": ("backtest", "moderation_labeled.csv"),
}
"""Every command that writes a page."""
TIMES = 5
"""How often each is opened; the median is given."""
CONTRAST = """
const dot = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
const rgba = (colour) => {  // of any notation
  dot.clearRect(0, 0, 1, 1);
  dot.fillStyle = colour;
  dot.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = dot.getImageData(0, 0, 1, 1).data;
  return [r, g, b, a / 255];
};
const over = (front, back) => back.map((b, k) => front[k] * front[3] + b * (1 - front[3]));
const light = (c) => c.slice(0, 3).map((v) => v / 255)
  .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
  .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
const base = matchMedia("(prefers-color-scheme: dark)").matches ? [0, 0, 0] : [255, 255, 255];
let least = 21;
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  const e = walk.currentNode.parentElement;
  if (!walk.currentNode.data.trim() || !e.checkVisibility()) continue;
  if (e.closest("svg, script, style")) continue;
  const above = [];
  for (let a = e; a; a = a.parentElement) above.unshift(rgba(getComputedStyle(a).backgroundColor));
  const back = above.reduce((under, c) => over(c, under), base);
  const [low, high] = [light(over(rgba(getComputedStyle(e).color), back)), light(back)]
    .sort((a, b) => a - b);
  least = Math.min(least, (high + 0.05) / (low + 0.05));
}
return least;
"""
"""Least contrast of the texts that are seen (WCAG 2.2, 1.4.3)."""
OPENING = ("report", "KB", "ms", "contrast, light", "contrast, dark")
_SINCE = "const n = performance.getEntriesByType('navigation')[0]; return n.loadEventEnd;"


def page_of(folder: Path, name: str) -> Path:
    """The report of this name, as its command writes it."""
    command, file, *options = OPENED[name]
    page = folder / f"{name}.html"
    subprocess.run(
        [sys.executable, "-m", "fewlabels", command, f"examples/{file}", *options,
         "--html", str(page)],
        check=True, cwd=ROOT, stdout=subprocess.DEVNULL,
        env=os.environ | {"SOURCE_DATE_EPOCH": DAY},
    )  # fmt: skip
    return page


def opening(folder: Path, out: Path) -> None:
    """Write how long each report takes to open, and the least contrast of its texts."""
    rows = []
    with browsing(folder) as browser:
        browser.size(WIDE, HIGH)
        for name in OPENED:
            page = page_of(folder, name)
            least, times = [], []
            for scheme in ("light", "dark"):
                browser.scheme(scheme)
                for _ in range(TIMES):
                    browser.open(page.as_uri())
                    browser.until(lambda: browser.run(_SINCE))
                    times.append(browser.run(_SINCE))
                least.append(browser.run(CONTRAST))
            size = page.stat().st_size / 1000
            rows.append([name, f"{size:.0f}", f"{statistics.median(times):.0f}",
                         *(f"{ratio:.1f}" for ratio in least)])  # fmt: skip
    fill(out / "readability.md", {"opening": table(OPENING, rows)})


def reports(folder: Path, out: Path) -> None:
    """Write what is seen at first sight of each report."""
    with browsing(folder) as browser:
        for name in REPORTS:
            page = page_of(folder, name)
            for scheme, width in (("light", WIDE), ("dark", WIDE), ("light", PHONE)):
                if width == PHONE and name != "report":
                    continue
                browser.size(width, FIRST if name == "report" else HIGH)
                browser.scheme(scheme)
                browser.open(page.as_uri())
                to = out / f"{name}-{'phone' if width == PHONE else scheme}.png"
                browser.picture(to)
                picture = Image.open(io.BytesIO(to.read_bytes())).convert("RGB")
                picture.quantize(COLOURS, dither=Image.Dither.NONE).save(to, optimize=True)
                if (size := to.stat().st_size) > MOST_BYTES:
                    raise SystemExit(f"{to.name} has {size:,} bytes, more than {MOST_BYTES:,}")


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
    browser.until(lambda: last < 5 or f"after {last} labels" in browser.text("#figure-title"))
    time.sleep(3)  # for what is filled in of earlier labels


def labeling(folder: Path, out: Path) -> None:
    """Write the page at its start, while intervals narrow, and where one can stop."""
    table, classes = make()
    truth = dict(zip(table["comment"].to_pylist(), classes, strict=True))
    file, record = ROOT / "examples" / "comments.csv", folder / "comments.labels.jsonl"
    until = ("--show", "comment", "--until", "low:large:accuracy>=0.75")
    with served(file, record, *until) as url, browsing(folder) as browser:
        browser.size(WIDE, 800)
        browser.scheme("light")
        browser.open(url)
        browser.until(lambda: browser.text("#where") == "Item 1")
        browser.picture(out / "start.png")
        label(browser, truth, 1, k := 20)
        browser.picture(out / "narrowing.png")
        while not browser.text("#stop").startswith("You can stop"):
            label(browser, truth, k + 1, k := k + 5)
        browser.picture(out / "stop.png")
        for scheme, width, name in (
            ("dark", WIDE, "dark"), ("dark", PHONE, "phone-dark"), ("light", PHONE, "phone")
        ):  # fmt: skip
            browser.scheme(scheme)
            browser.size(width, 800)
            time.sleep(0.5)  # colours of buttons change within a moment
            browser.picture(out / f"{name}.png")


def main() -> None:
    """Write the pictures."""
    pictures = {"reports": (reports, "screenshots"), "labeling": (labeling, "labeling"),
                "opening": (opening, "")}  # fmt: skip
    parser = command_line(__doc__)
    parser.add_argument(
        "what", nargs="*", help="reports, labeling, opening; all of them by default"
    )
    for name in parser.parse_args().what or pictures:
        if name not in pictures:
            parser.error(f"no pictures of {name!r}; there are {', '.join(pictures)}")
        write, folder = pictures[name]
        with tempfile.TemporaryDirectory() as work:
            write(Path(work), ROOT / "docs" / folder)


if __name__ == "__main__":
    main()
