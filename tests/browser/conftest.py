"""Pages measured in a real browser: one headless run of Chromium measures many of them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from webdriver import FLAGS, NAMES

# The made-up reports lie beside the tests of the room that renders them.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "report"))

# Each page sits in a frame of the width to be tested, where the harness may look into it. All
# frames are there before the load event, for which --dump-dom waits.
HARNESS = """<!DOCTYPE html><title>measuring</title><body><script>
const pages = PAGES, widths = WIDTHS, found = {};
function measure(frame) {
  const page = frame.contentDocument, root = page.scrollingElement;
  for (const folded of page.querySelectorAll("details")) folded.open = true;
  const style = frame.contentWindow.getComputedStyle;
  const texts = [...page.querySelectorAll("body *")].filter(e => e.textContent.trim()
    && !["SCRIPT", "STYLE"].includes(e.tagName) && !e.closest("title, desc, .unseen"));
  const left = e => e.getBoundingClientRect().left, middle = e => {
    const box = e.getBoundingClientRect(); return (box.left + box.right) / 2; };
  const forest = page.querySelector(".forest");
  return {
    title: page.title,
    scripted: frame.contentWindow.ran === true,
    scripts: page.querySelectorAll("script").length,
    active: page.querySelectorAll("img, iframe, object, embed, link, form, [onload], "
      + "[onerror], [onclick]").length,
    fetched: frame.contentWindow.performance.getEntriesByType("resource").map(e => e.name),
    inner: frame.contentWindow.innerWidth,
    scroll: root.scrollWidth,
    smallest: Math.min(...texts.map(e => parseFloat(style(e).fontSize))),
    background: style(page.documentElement).backgroundColor,
    heat: [...page.querySelectorAll(".heat")].map(e => ({
      columns: e.querySelectorAll("thead th").length - 1,
      scrolls: e.parentElement.scrollWidth > e.parentElement.clientWidth,
      sideways: style(e.parentElement).overflowX,
      first: style(e.querySelector("tbody th")).position,
      cells: [...e.querySelectorAll("tbody td")].slice(0, 40).map(
        c => [parseFloat(c.style.getPropertyValue("--h")), style(c).backgroundColor]),
    })),
    ticks: forest ? [...forest.querySelectorAll(".ticks text")].map(middle) : [],
    lines: forest ? [...forest.querySelectorAll(".bar")].slice(0, 2)
      .map(bar => [...bar.querySelectorAll(".grid")].map(left)) : [],
  };
}
for (const [name, source] of Object.entries(pages)) {
  found[name] = {};
  for (const width of widths) {
    const frame = document.createElement("iframe");
    frame.style = `width:${width}px;height:800px;border:0`;
    frame.onload = () => { found[name][width] = measure(frame); };
    frame.srcdoc = source;
    document.body.append(frame);
  }
}
addEventListener("load", () => {
  document.body.textContent = "";
  document.title = JSON.stringify(found);
});
</script>"""

Measured = Mapping[str, Mapping[str, Mapping[str, Any]]]
Measure = Callable[..., Measured]


@pytest.fixture(scope="session")
def measure(tmp_path_factory: pytest.TempPathFactory) -> Measure:
    """`measure({name: page}, widths, dark=False)`: what the browser makes of each page."""
    browser = next(filter(None, map(shutil.which, NAMES)), None)
    if browser is None:
        pytest.skip(f"no browser to look at pages with; looked for {', '.join(NAMES)}")

    def run(pages: Mapping[str, str], widths: tuple[int, ...], *, dark: bool = False) -> Measured:
        folder = tmp_path_factory.mktemp("browser")
        literal = json.dumps(pages).replace("</", "<\\/").replace("<!--", "<\\!--")
        harness = HARNESS.replace("WIDTHS", json.dumps(widths)).replace("PAGES", literal)
        (folder / "harness.html").write_text(harness, encoding="ascii")
        scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
        profile = f"--user-data-dir={folder / 'profile'}"
        url = (folder / "harness.html").as_uri()
        result = subprocess.run(
            [browser, *FLAGS, "--window-size=1400,1000", scheme, profile, "--dump-dom", url],
            capture_output=True,
            text=True,
            timeout=180,
            env=os.environ | {"HOME": str(folder)},
        )
        title = re.search(r"<title>(\{.*?\})</title>", result.stdout, re.DOTALL)
        assert title is not None, result.stderr
        measured: Measured = json.loads(unescape(title[1]))
        return measured

    return run
