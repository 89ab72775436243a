"""What the script of a page adds: values are read, tables are sorted, filtered and copied."""

from __future__ import annotations

import csv
import io
import re
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import webdriver

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "report"))

from every_report import PAGES
from report_samples import crowd

from fewlabels.report.html import render_page

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
        "return [...document.querySelectorAll('[aria-labelledby=all-estimates] tbody tr')]"
        ".map(row => row.children[arguments[0]].textContent)"
    )
    return [str(cell) for cell in browser.run(script, column)]


@pytest.mark.parametrize("refused", [False, True], ids=["clipboard", "without clipboard"])
def test_a_table_is_copied_as_csv(
    browser: webdriver.Browser, tmp_path: Path, refused: bool
) -> None:
    shown(browser, tmp_path, "estimates: two_classes")
    browser.run(COPIES, refused)
    browser.click("[aria-labelledby=all-estimates] summary")
    browser.run("document.querySelector('[aria-labelledby=all-estimates] .copy').focus()")
    browser.press("Enter")  # a browser lets a page copy only for who does something
    (text,) = browser.until(lambda: browser.run("return window.copied"))
    header, *rows = csv.reader(io.StringIO(text))
    assert header == ["Group", "Metric", "Classifier", "Value", "Low", "High", "Status"]
    assert [row[2] for row in rows] == rows_of(browser, 2)
    assert [row[3] for row in rows] == rows_of(browser, 3)
    browser.until(lambda: browser.text("[aria-labelledby=all-estimates] .copy") == "Copied")


def test_no_copied_cell_is_a_formula(browser: webdriver.Browser, tmp_path: Path) -> None:
    shown(browser, tmp_path, "estimates: two_classes")
    browser.run(COPIES, False)
    browser.click("[aria-labelledby=all-estimates] summary")
    cells = ["=1+1", "@name", "-5e-3", "-x", "'+1a", "'plain", "＝1"]
    browser.run(
        "const row = document.querySelector('[aria-labelledby=all-estimates] tbody tr');"
        "arguments[0].forEach((text, k) => { row.children[k].textContent = text; })",
        cells,
    )
    browser.click("[aria-labelledby=all-estimates] .copy")
    (text,) = browser.until(lambda: browser.run("return window.copied"))
    copied = [*csv.reader(io.StringIO(text))][1]
    texts = ["'=1+1", "'@name", "-5e-3", "'-x", "''+1a", "'plain", "'＝1"]
    assert copied == texts[: len(copied)]


def test_intervals_are_copied_as_three_columns(browser: webdriver.Browser, tmp_path: Path) -> None:
    shown(browser, tmp_path, "estimates: compared two")
    browser.run(COPIES, False)
    browser.click("[aria-label^=Differences] + .tools .copy")
    (text,) = browser.until(lambda: browser.run("return window.copied"))
    header, row = csv.reader(io.StringIO(text)) if text.count("\n") == 2 else ([], [])
    names = ["First − second", "Value [95%]", "Value [95%] low", "Value [95%] high"]
    assert header == [*names, "P(better)", "Significant", "Labels to decide"]
    assert row[0] == "a − b"
    value, low, high = map(float, row[1:4])
    assert low <= value <= high


def test_a_table_is_copied_as_markdown(browser: webdriver.Browser, tmp_path: Path) -> None:
    shown(browser, tmp_path, "estimates: two_classes")
    browser.run(COPIES, False)
    browser.click("[aria-labelledby=all-estimates] summary")
    browser.run(
        "document.querySelector('[aria-labelledby=all-estimates] tbody tr').children[2].textContent"
        " = arguments[0]",
        "a|b *c* <d> e_f",
    )
    browser.click("[aria-labelledby=all-estimates] .tools .copy + .copy")
    (text,) = browser.until(lambda: browser.run("return window.copied"))
    names, rule, first, *_ = text.splitlines()
    assert names == "| Group | Metric | Classifier | Value | Low | High | Status |"
    assert rule == "| --- | --- | --- | ---: | ---: | ---: | --- |"
    assert first.split(" | ")[2] == r"a\|b \*c\* \<d\> e_f"
    assert len(text.splitlines()) == 2 + len(rows_of(browser, 2))


def test_rows_are_filtered_by_what_is_typed(browser: webdriver.Browser, tmp_path: Path) -> None:
    """What is left is what is seen and copied; paper has all of it."""
    shown(browser, tmp_path, "estimates: two_classes")
    browser.run(COPIES, False)
    browser.click("[aria-labelledby=all-estimates] summary")
    rows = "[...document.querySelectorAll('[aria-labelledby=all-estimates] tbody tr')]"
    seen = f"return {rows}.filter(e => e.checkVisibility()).map(e => e.children[1].textContent)"
    every = browser.run(seen)
    wanted = every[0].upper()
    browser.run("document.querySelector('[aria-labelledby=all-estimates] input').focus()")
    browser.press(*wanted)
    left = browser.run(seen)
    assert 0 < len(left) < len(every)
    assert set(left) == {every[0]}
    said = browser.text("[aria-labelledby=all-estimates] [role=status]")
    assert said == f"{len(left)} of {len(every)} rows"
    browser.click("[aria-labelledby=all-estimates] .copy")
    (text,) = browser.until(lambda: browser.run("return window.copied"))
    assert [row[1] for row in csv.reader(io.StringIO(text))][1:] == left
    media = {"cmd": "Emulation.setEmulatedMedia", "params": {"media": "print"}}
    browser.call("POST", "/goog/cdp/execute", media)
    try:
        assert browser.run(seen) == every
        assert not browser.run(
            "return [...document.querySelectorAll('.tools')].some(e => e.checkVisibility())"
        )
    finally:
        browser.call("POST", "/goog/cdp/execute", media | {"params": {"media": ""}})


def test_the_filter_looks_into_what_is_folded(browser: webdriver.Browser, tmp_path: Path) -> None:
    """Of 61 classifiers the best and the worst are in sight; all are one list."""
    report = crowd()
    names = report["models"][:61]
    report |= {"models": names, "estimates": [
        row for row in report["estimates"]
        if row["model"] in names and row["metric"] == "accuracy" and row["group"] is None
    ]}  # fmt: skip
    shown(browser, tmp_path, "", render_page("estimates", report))
    folded = browser.run(
        "return document.querySelector('details.between .forest .row:last-child .who').textContent"
    ).strip()
    browser.run("document.querySelector('.tools input').focus()")
    browser.press(*folded)
    seen = (
        "return [...document.querySelectorAll('.forest .row:not(.head) .who')]"
        ".filter(e => e.checkVisibility()).map(e => e.textContent.trim())"
    )
    assert folded in browser.run(seen)
    browser.press(*["Backspace"] * len(folded))
    browser.click(".forest .who .sort")  # by name, through all three parts
    browser.click(".forest .who .sort")
    assert [text[: len(name)] for text, name in zip(browser.run(seen), names, strict=True)] == names


def test_groups_are_sorted_and_copied(browser: webdriver.Browser, tmp_path: Path) -> None:
    """Classifiers side by side are one table; all items stay above the groups."""
    shown(browser, tmp_path, "estimates: two_classes")
    browser.run(COPIES, False)
    groups = (
        "return [...document.querySelector('.sides .side').querySelectorAll('.row:not(.head)')]"
        ".map(e => parseFloat(e.querySelector('.value').textContent))"
    )
    first, *before = browser.run(groups)
    browser.click(".sides .side:first-child .value .sort")
    assert browser.run(groups) == [first, *sorted(before, reverse=True)]
    browser.click(".sides + .tools .copy")
    (text,) = browser.until(lambda: browser.run("return window.copied"))
    header, *rows = csv.reader(io.StringIO(text))
    assert header == ["Classifier", "Group", "Value", "Value low", "Value high"]
    panels = browser.run("return document.querySelector('.sides').children.length")
    assert len({row[0] for row in rows}) == panels
    assert [float(row[2]) for row in rows[: 1 + len(before)]] == browser.run(groups)


@pytest.mark.parametrize(
    ("name", "figure"),
    [("estimates: two_classes", ".forest"), ("estimates: two_classes", ".sides"),
     ("curves: plain", "figure"), ("calibration-curve: nasty", ".plots, figure")],
)  # fmt: skip
def test_a_figure_is_saved_as_png(
    browser: webdriver.Browser, tmp_path: Path, name: str, figure: str
) -> None:
    """Twice as large as on the screen, in its colours, under the strict policy of the page."""
    where = {"behavior": "allow", "downloadPath": str(tmp_path / "saved")}
    cdp = {"cmd": "Browser.setDownloadBehavior", "params": where}
    browser.call("POST", "/goog/cdp/execute", cdp)
    shown(browser, tmp_path, name)
    browser.run(
        "const e = document.querySelector(arguments[0]);"
        "const bar = e.querySelector('.tools') || e.nextElementSibling;"
        "bar.querySelector('.copy:last-child').click()",
        figure,
    )
    saved = browser.until(
        lambda: [p for p in (tmp_path / "saved").glob("*.png") if p.stat().st_size]
    )
    content = saved[0].read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = (int.from_bytes(content[k : k + 4]) for k in (16, 20))
    wide = browser.run(
        "return document.querySelector(arguments[0]).getBoundingClientRect().width", figure
    )
    assert width > 2 * wide - 100
    assert height > 300
    assert len({*zlib.decompress(image_data(content))[:: 4 * 7]}) > 10, "nothing is drawn"


def image_data(content: bytes) -> bytes:
    """The compressed pixels of a PNG."""
    place, out = 8, b""
    while place < len(content):
        length = int.from_bytes(content[place : place + 4])
        if content[place + 4 : place + 8] == b"IDAT":
            out += content[place + 8 : place + 8 + length]
        place += length + 12
    return out


def test_a_table_is_sorted_by_keys(browser: webdriver.Browser, tmp_path: Path) -> None:
    shown(browser, tmp_path, "estimates: two_classes")
    browser.click("[aria-labelledby=all-estimates] summary")
    before = rows_of(browser, 3)
    browser.run("document.querySelectorAll('[aria-labelledby=all-estimates] .sort')[3].focus()")
    head = "[aria-labelledby=all-estimates] th[aria-sort]"
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


def test_a_slider_moves_the_threshold(browser: webdriver.Browser, tmp_path: Path) -> None:
    """It shows the numbers of a row of the table, and the marks of the figures go there."""
    shown(browser, tmp_path, "threshold: met")

    def told() -> list[str]:
        script = "return [...document.querySelectorAll('.slider dd')].map(e => e.textContent)"
        return [str(text) for text in browser.run(script)]

    def marks() -> list[list[str]]:
        script = (
            "return [...document.querySelectorAll('.moved svg[role=img]')].map(plot => ["
            "plot.querySelector('.drop').getAttribute('x1'),"
            "plot.querySelector('.dot').getAttribute('cx'),"
            "(1 - plot.querySelector('.dot').getAttribute('cy') / 180).toFixed(3)])"
        )
        return [[str(one) for one in mark] for mark in browser.run(script)]

    rows = browser.run(
        "return [...document.querySelectorAll('tr[data-x]')].map(row => [row.dataset.x,"
        " ...[...row.cells].map(cell => cell.textContent)])"
    )
    (best,) = [k for k, row in enumerate(rows) if row[1].endswith(" best")]
    assert told() == rows[best][1:]
    before = marks()
    browser.run("document.querySelector('.slider input').focus()")
    browser.press("ArrowLeft", "ArrowLeft")
    place, *texts = rows[best - 2]
    assert told() == texts
    values = [text.split()[0] for text in texts[1:5]]
    assert marks() == [[place, place, value] for value in values] != before
    spoken = browser.run("return document.querySelector('.slider input').ariaValueText")
    assert spoken.startswith(f"Threshold {texts[0]}, Precision {texts[1]}, Recall {texts[2]}")
    browser.press("ArrowRight", "ArrowRight")
    assert (told(), marks()) == (rows[best][1:], before)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", ["estimates: two_classes", "comparison: two", "annotations: plain",
                                  "threshold: met", "shift: two", "label-next: curve"])  # fmt: skip
def test_a_page_is_whole_without_its_script(
    browser: webdriver.Browser, tmp_path: Path, name: str
) -> None:
    def words() -> str:
        return str(
            browser.run(
                "document.querySelectorAll('.tools, .slider').forEach(e => e.remove());"
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


@pytest.mark.few(3)
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
