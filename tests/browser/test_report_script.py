"""What the script of a page adds: values are read, tables are sorted, and copied as CSV."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import webdriver

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "report"))

from every_report import PAGES

if webdriver.found() is None:
    pytest.skip(
        f"no browser to open reports in; looked for chromedriver and {', '.join(webdriver.NAMES)}",
        allow_module_level=True,
    )

SAID = (
    "return document.querySelector('.said').hidden ? '' : "
    "document.querySelector('.said').textContent"
)
COPIES = """
window.copied = [];
Object.defineProperty(navigator, "clipboard", { configurable: true, value: {
  writeText: text => arguments[0] ? Promise.reject(new Error("not allowed"))
    : Promise.resolve(copied.push(text)) } });
document.addEventListener("copy", event => copied.push(event.target.value));
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Browser]:
    with webdriver.browsing(tmp_path_factory.mktemp("profile")) as steered:
        steered.size(1200, 900)
        yield steered


def shown(browser: webdriver.Browser, folder: Path, name: str, source: str | None = None) -> None:
    """Open a page from a file, as somebody does to whom it was forwarded."""
    path = folder / "report.html"
    path.write_text(PAGES[name]() if source is None else source, encoding="utf-8")
    browser.open(path.as_uri())


def rows_of(browser: webdriver.Browser, column: int) -> list[str]:
    """Cells of a column of the table of all estimates, from above."""
    script = (
        "return [...document.querySelectorAll('[aria-labelledby=all] tbody tr')]"
        ".map(row => row.children[arguments[0]].textContent)"
    )
    return [str(cell) for cell in browser.run(script, column)]


@pytest.mark.parametrize("refused", [False, True], ids=["clipboard", "without clipboard"])
def test_a_table_is_copied_as_csv(
    browser: webdriver.Browser, tmp_path: Path, refused: bool
) -> None:
    shown(browser, tmp_path, "estimates: two_classes")
    browser.run(COPIES, refused)
    browser.click("[aria-labelledby=all] summary")
    browser.run("document.querySelector('[aria-labelledby=all] .copy').focus()")
    browser.press("Enter")  # a browser lets a page copy only for who does something
    (text,) = browser.until(lambda: browser.run("return window.copied"))
    header, *rows = csv.reader(io.StringIO(text))
    assert header == ["Group", "Metric", "Classifier", "Value", "Low", "High", "Status"]
    assert [row[2] for row in rows] == rows_of(browser, 2)
    assert [row[3] for row in rows] == rows_of(browser, 3)
    browser.until(lambda: browser.text("[aria-labelledby=all] .copy") == "Copied")


def test_no_copied_cell_is_a_formula(browser: webdriver.Browser, tmp_path: Path) -> None:
    shown(browser, tmp_path, "estimates: two_classes")
    browser.run(COPIES, False)
    browser.click("[aria-labelledby=all] summary")
    cells = ["=1+1", "@name", "-5e-3", "-x", "'+1a", "'plain", "+.5"]
    browser.run(
        "const row = document.querySelector('[aria-labelledby=all] tbody tr');"
        "arguments[0].forEach((text, k) => { row.children[k].textContent = text; })",
        cells,
    )
    browser.click("[aria-labelledby=all] .copy")
    (text,) = browser.until(lambda: browser.run("return window.copied"))
    copied = [*csv.reader(io.StringIO(text))][1]
    texts = ["'=1+1", "'@name", "-5e-3", "'-x", "''+1a", "'plain", "+.5"]
    assert copied == texts[: len(copied)]


def test_intervals_are_copied_as_three_columns(browser: webdriver.Browser, tmp_path: Path) -> None:
    shown(browser, tmp_path, "estimates: compared two")
    browser.run(COPIES, False)
    browser.click("[aria-label^=Differences] + .copy")
    (text,) = browser.until(lambda: browser.run("return window.copied"))
    header, row = csv.reader(io.StringIO(text)) if text.count("\n") == 2 else ([], [])
    names = ["First − second", "Value [95%]", "Value [95%] low", "Value [95%] high"]
    assert header == [*names, "P(better)", "Told apart", "Labels to decide"]
    assert row[0] == "a − b"
    value, low, high = map(float, row[1:4])
    assert low <= value <= high


def test_a_table_is_sorted_by_keys(browser: webdriver.Browser, tmp_path: Path) -> None:
    shown(browser, tmp_path, "estimates: two_classes")
    browser.click("[aria-labelledby=all] summary")
    before = rows_of(browser, 3)
    browser.run("document.querySelectorAll('[aria-labelledby=all] .sort')[3].focus()")
    head = "[aria-labelledby=all] th[aria-sort]"
    for direction, downwards in (("descending", True), ("ascending", False)):
        browser.press("Enter")
        assert browser.run(f"return document.querySelector('{head}').ariaSort") == direction
        numbers = [float(cell) for cell in rows_of(browser, 3)]
        assert numbers == sorted(numbers, reverse=downwards)
    assert sorted(rows_of(browser, 3)) == sorted(before)


def test_values_are_read_by_arrow_keys(browser: webdriver.Browser, tmp_path: Path) -> None:
    shown(browser, tmp_path, "estimates: two_classes")
    titles = re.findall(
        r'<svg class="bar" role="img"><title>(.*?)</title>', PAGES["estimates: two_classes"]()
    )
    browser.run("document.querySelector('.forest').focus()")
    assert browser.run(SAID) == ""
    read = []
    for _ in range(3):
        browser.press("ArrowRight")
        read.append(browser.run(SAID))
    assert read[0].startswith("Scale from")
    assert read[1:] == titles[:2]
    browser.run("scrollBy(0, 40)")
    browser.run("document.dispatchEvent(new Event('scroll'))")
    assert browser.run(SAID) == titles[1]
    browser.press("Escape")
    assert browser.run(SAID) == ""
    # One stop of the tab key, not one for each bar.
    browser.press("ArrowRight", "Tab")
    assert browser.run("return document.activeElement.closest('.bar')") is None


def test_curves_are_read_by_arrow_keys(browser: webdriver.Browser, tmp_path: Path) -> None:
    shown(browser, tmp_path, "curves: plain")
    browser.run("document.querySelector('.panel > svg[role=img]').focus()")
    browser.press("ArrowRight")
    first = browser.run(SAID)
    browser.press("ArrowRight")
    assert re.match(r"recall .*: precision \d", first)
    assert browser.run(SAID) not in ("", first)


@pytest.mark.parametrize("name", ["estimates: two_classes", "comparison: two", "annotations: plain",
                                  "threshold: met", "shift: two", "label-next: curve"])  # fmt: skip
def test_a_page_is_whole_without_its_script(
    browser: webdriver.Browser, tmp_path: Path, name: str
) -> None:
    def words() -> str:
        return str(
            browser.run(
                "document.querySelectorAll('.copy').forEach(e => e.remove());"
                "document.querySelectorAll('details').forEach(e => { e.open = true; });"
                "return document.body.innerText.replace(/\\s+/g, ' ')"
            )
        )

    shown(browser, tmp_path, name)
    scripted = words()
    assert browser.run("return document.querySelectorAll('.said').length") == 1
    plain = re.sub(r"<script>.*?</script>", "", PAGES[name](), flags=re.DOTALL)
    shown(browser, tmp_path, name, plain)
    assert browser.run("return document.querySelectorAll('.said').length") == 0
    assert words() == scripted


PRINTED = ("estimates: two_classes", "estimates: demo", "comparison: two", "annotations: plain",
           "shift: two", "label-next: curve")  # fmt: skip


@pytest.mark.parametrize("name", PRINTED)
def test_no_table_is_split_on_paper(browser: webdriver.Browser, tmp_path: Path, name: str) -> None:
    """On A4 with margins of a centimetre a page is 718 x 1,047 pixels."""
    media = {"cmd": "Emulation.setEmulatedMedia", "params": {"media": "print"}}
    browser.call("POST", "/goog/cdp/execute", media)
    browser.size(718, 1047)
    shown(browser, tmp_path, name)
    try:
        parts = browser.run(
            "return [...document.querySelectorAll('table, .forest, figure')]"
            ".filter(e => e.checkVisibility()).map(e => [e.className || e.tagName,"
            " getComputedStyle(e).breakInside, e.getBoundingClientRect().height,"
            " e.getBoundingClientRect().right])"
        )
        assert parts
        for kind, inside, height, right in parts:
            assert (inside, height < 1047, right <= 719) == ("avoid", True, True), kind
        assert not browser.run("return document.querySelector('.contents')?.checkVisibility()")
    finally:
        browser.call("POST", "/goog/cdp/execute", media | {"params": {"media": ""}})
        browser.size(1200, 900)
