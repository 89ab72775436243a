"""Pictures of the reports, light and dark, for README and docs: docs/screenshots/*.png.

Runs the commands on the examples, opens each report in a headless browser and writes what is seen,
in a palette of 128 colours. Needs chromium, chromedriver and Pillow (which matplotlib brings).

    python benchmarks/screenshots.py --out docs/screenshots
"""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "browser"))

from webdriver import Browser, browsing  # noqa: E402

SCHEMES = ("light", "dark")
WIDE, HIGH = 1280, 900
FIRST = 1360
"""Pixels of the first report, down to the first plot."""

PHONE = 400
COLOURS = 128
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


def make_report(name: str, folder: Path) -> Path:
    """Run the command of a report; the page that it writes."""
    command, file, *options = REPORTS[name]
    page = folder / f"{name}.html"
    subprocess.run(
        [sys.executable, "-m", "fewlabels", command, f"examples/{file}", *options,
         "--html", str(page)],
        check=True, cwd=ROOT, stdout=subprocess.DEVNULL,
        env=os.environ | {"SOURCE_DATE_EPOCH": DAY},
    )  # fmt: skip
    return page


def take(browser: Browser, page: Path, to: Path, scheme: str, width: int = WIDE) -> None:
    """Write what is seen of a page at first sight."""
    browser.size(width, FIRST if page.stem == "report" else HIGH)
    browser.scheme(scheme)
    browser.open(page.as_uri())
    browser.picture(to)
    picture = Image.open(io.BytesIO(to.read_bytes())).convert("RGB")
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(to, optimize=True)
    size = to.stat().st_size
    if size > MOST_BYTES:
        raise SystemExit(f"{to.name} has {size:,} bytes, more than {MOST_BYTES:,}")


def main() -> None:
    """Write the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "screenshots")
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made, browsing(Path(made)) as browser:
        for name in REPORTS:
            page = make_report(name, Path(made))
            for scheme in SCHEMES:
                take(browser, page, out / f"{name}-{scheme}.png", scheme)
            if name == "report":
                take(browser, page, out / f"{name}-phone.png", "light", PHONE)


if __name__ == "__main__":
    main()
