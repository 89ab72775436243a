"""What holds of every text and of every page, whatever they are about and whatever names hold."""

from __future__ import annotations

import base64
import hashlib
import re
import unicodedata
from pathlib import Path

from every_report import PAGES, PARTS, TEXTS, TITLES, every, parsed
from page import Page
from rich.cells import cell_len

import fewlabels.report

ROOT = Path(fewlabels.report.__file__).parent


@every
def test_text_keeps_to_its_width_and_is_plain(name: str) -> None:
    for width in (40, 60, 80, 132):
        text = TEXTS[name](width)
        text.encode()
        lines = text.split("\n")
        assert max(map(cell_len, lines)) <= max(width, 60)
        assert all(line == line.rstrip() for line in lines)
        controls = {c for c in text if unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"}}
        assert controls <= {"\n"}
        assert "\u202e" not in text
        assert "None" not in text.replace("None of the", "")
        assert not re.search(r"\bnan\b", text.replace("naïve", ""))
    assert TEXTS[name](10) == TEXTS[name](60)


@every
def test_one_script_can_run_and_nothing_is_fetched(name: str) -> None:
    source = PAGES[name]()
    page = parsed(name)
    assert source.startswith("<!DOCTYPE html>")
    assert TITLES[name.partition(":")[0]] in page.words
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"img", "link", "iframe", "object", "embed", "base", "form"}
    for tag, attributes in page.elements:
        assert not [key for key in attributes if key.startswith("on")], tag
        assert not {"src", "srcset", "data", "action", "xlink:href"} & set(attributes)
        assert (attributes.get("href") or "#").startswith("#")
        assert "url(" not in (attributes.get("style") or "")
    (style,) = re.findall(r"<style>(.*?)</style>", source, re.DOTALL)
    assert not re.search(r"url\(|@import|https?:|expression|src", style)
    (policy,) = (
        attributes["content"] or ""
        for tag, attributes in page.elements
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    )
    (script,) = re.findall(r"<script>(.*?)</script>", source, re.DOTALL)
    assert page.count("script") == 1
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy == (
        "default-src 'none'; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )


def test_the_script_is_small_and_asks_nobody() -> None:
    script = (ROOT / "templates" / "report.js").read_text(encoding="utf-8")
    assert len(script.encode()) <= 20_480
    assert not re.search(
        r"fetch|XMLHttp|WebSocket|import|https?:|eval|innerHTML|Function\(", script
    )


@every
def test_a_notebook_gets_a_small_part_that_needs_nothing(name: str) -> None:
    part = PARTS[name]()
    assert len(part.encode("utf-8")) < 60_000
    assert part.startswith('<div class="fewlabels">')
    elements = Page(part).elements
    assert not {tag for tag, _ in elements} & {"script", "link", "img", "iframe"}
    assert not [key for _, attributes in elements for key in attributes if key.startswith("on")]
    assert not re.search(r"url\(|@import", re.findall(r"<style>(.*?)</style>", part, re.DOTALL)[0])
    assert TITLES[name.partition(":")[0]] in part


def test_what_is_left_out_of_a_part_is_said() -> None:
    left = "There is more on the page that <code>save_html</code> writes."
    assert left in PARTS["estimates: two_classes"]()
    assert left not in PARTS["estimates: single_model"]()


@every
def test_ids_are_unique_and_everything_has_a_name(name: str) -> None:
    source = PAGES[name]()
    page = parsed(name)
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids))
    named = {a["aria-labelledby"] for _, a in page.elements if "aria-labelledby" in a}
    linked = {(a["href"] or "")[1:] for _, a in page.elements if "href" in a}
    assert named | linked <= set(ids)
    for picture in re.findall(r"<svg [^>]*>.{0,8}", source, re.DOTALL):
        inner = "<svg width" in picture and "preserveAspectRatio" in picture
        assert inner or 'aria-hidden="true"' in picture or "><title>" in picture
    assert page.count("table") == page.count("caption")
    tables = [a for _, a in page.elements if a.get("role") == "table"]
    assert all(a.get("aria-label") for a in tables)


@every
def test_no_number_is_nan_and_no_character_leaves_its_line(name: str) -> None:
    source = PAGES[name]()
    words = parsed(name).words
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", source)
    assert not {unicodedata.category(c) for c in words} & {"Cc", "Cs"}
    assert not set(re.findall(r"[\w.]+", words)) & {"nan", "NaN", "inf"}
    assert "None" not in words.replace("None of the", "")
    assert not re.search(r'="-?(nan|inf|None)', source)
    # Names of hundreds of characters, each three times, are more than leaving out can save.
    assert len(source.encode()) < (400_000 if name == "estimates: nasty_names" else 300_000)
