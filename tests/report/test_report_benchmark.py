from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from functools import cache
from html import unescape
from pathlib import Path

import pytest
from benchmark_samples import HOSTILE, SAMPLES, binary, hostile, made, nothing
from markdown_it import MarkdownIt
from test_report_html import Page

import fewlabels.report
from fewlabels.report.benchmark import escaped, render, render_text
from fewlabels.report.benchmark_content import reading
from fewlabels.report.words import cell_width, clean

samples = pytest.mark.parametrize("name", SAMPLES)
SVG = "{http://www.w3.org/2000/svg}"
TEMPLATES = Path(fewlabels.report.__file__).parent / "templates"


@cache
def files(name: str) -> dict[str, str]:
    return render(SAMPLES[name]())


def pictures(name: str) -> dict[str, ET.Element]:
    return {k: ET.fromstring(v) for k, v in files(name).items() if k.endswith(".svg")}


def markdown_tables(text: str) -> list[list[list[str]]]:
    """Tables as rows of the text of cells, by a parser of Markdown."""
    tables: list[list[list[str]]] = []
    for token in MarkdownIt().enable("table").parse(text):
        if token.type == "table_open":
            tables.append([])
        elif token.type == "tr_open":
            tables[-1].append([])
        elif token.type == "inline" and tables and token.level >= 4 and tables[-1]:
            plain = (c.content for c in token.children or [] if c.type in ("text", "html_inline"))
            tables[-1][-1].append("".join(plain))
    return tables


@samples
def test_the_files(name: str) -> None:
    found = files(name)
    assert list(found)[:2] == ["report.md", "report.html"]
    assert all(re.fullmatch(r"figures/[a-z0-9-]+\.svg", path) for path in list(found)[2:])
    assert len(found) == 2 + len(SAMPLES[name]()["figures"])


# --- Markdown ----------------------------------------------------------------------------------


@samples
def test_every_row_of_a_markdown_table_has_the_same_cells(name: str) -> None:
    text = files(name)["report.md"]
    tables = markdown_tables(text)
    assert all(len({len(row) for row in table}) == 1 for table in tables)
    # By eye as well: pipes that are no text stand below one another.
    blocks = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert len(blocks) == len(tables)
    for block in blocks:
        assert len({cell_width(line) for line in block.splitlines()}) == 1


@samples
def test_markdown_holds_only_the_markup_that_is_meant(name: str) -> None:
    tokens = MarkdownIt().enable("table").parse(files(name)["report.md"])
    inline = {c.content for t in tokens for c in t.children or [] if c.type == "html_inline"}
    assert inline <= {"<sup>", "</sup>"}
    blocks = "".join(t.content for t in tokens if t.type == "html_block")
    assert re.sub(r"<summary>[^<]*</summary>|</?details>|\s", "", blocks) == ""
    assert not [c for t in tokens for c in t.children or [] if c.type == "link_open"]


def test_markdown_links_every_figure_and_no_other() -> None:
    found = files("binary")
    links = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", found["report.md"])
    assert links == [path for path in found if path.endswith(".svg")]


@pytest.mark.parametrize("name", HOSTILE)
def test_escaped_names_are_shown_as_they_are(name: str) -> None:
    table = f"| a | b |\n|---|---|\n| {escaped(name)} | x |\n"
    (_, (shown, other), *_), *_ = markdown_tables(table)
    # A space of no width stands where a host would make a link.
    assert [shown.replace("\u200b", ""), other] == [clean(name), "x"]


def test_plain_names_stay_readable() -> None:
    assert escaped("ERM_seed1 ssme-kde roc_auc") == "ERM_seed1 ssme-kde roc_auc"


def test_the_best_is_bold_and_the_floor_last() -> None:
    text = files("binary")["report.md"]
    block = next(b for b in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE) if "RMAE n_l" in b)
    lines = block.splitlines()
    assert "**" not in lines[-1]
    assert lines[-1].startswith("| *all labels known*")
    for column in range(2, 5):
        assert any("**" in line.split(" | ")[column - 1] for line in lines[2:-1])


# --- HTML --------------------------------------------------------------------------------------


@samples
def test_the_page_is_well_formed_and_fetches_nothing(name: str) -> None:
    page = Page(files(name)["report.html"])
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"script", "img", "link", "iframe", "object", "embed", "base", "form"}
    for tag, attributes in page.elements:
        assert not [a for a in attributes if a.startswith("on")], tag
        assert not {"src", "srcset", "data", "action", "xlink:href"} & set(attributes)
        assert "url(" not in (attributes.get("style") or "")


@samples
def test_rows_of_the_page_have_the_same_cells(name: str) -> None:
    source = files(name)["report.html"]
    for table in re.findall(r"<table.*?</table>", source, re.DOTALL):
        widths = set()
        for line in re.findall(r"<tr.*?</tr>", table, re.DOTALL):
            spans = [int(n) for n in re.findall(r'colspan="(\d+)"', line)]
            widths.add(len(re.findall(r"<t[hd]\b", line)) + sum(spans) - len(spans))
        assert len(widths) == 1


def test_hostile_names_are_text() -> None:
    source = files("hostile")["report.html"]
    assert "<script>alert" not in source
    assert "<i>g_" not in source
    shown = Page(source).words
    for name in HOSTILE:
        # The parser of the test folds spaces as a browser does.
        assert " ".join(clean(name).split()) in shown


@samples
def test_ids_are_unique(name: str) -> None:
    ids = re.findall(r'\bid="([^"]*)"', files(name)["report.html"])
    assert len(ids) == len(set(ids))


@samples
def test_nothing_is_written_as_none_or_nan(name: str) -> None:
    for path, text in files(name).items():
        said = unescape(text).replace("loss is nan", "")
        assert not re.findall(r"\b(?:None|nan|inf)\b", said), path


def test_reasons_stand_below_the_table() -> None:
    words = Page(files("binary")["report.html"]).words
    assert "mean over 5 of 6 runs: it diverged: loss is nan (1 run)" in words
    assert "no value: the method or a classifier does not provide this metric" in words
    assert "No result of ssme-flow on civilcomments in 3 cells" in words
    assert "Skipped: notes.csv: no column of predictions" in words


# --- SVG ---------------------------------------------------------------------------------------


@samples
def test_pictures_have_a_title_a_description_and_text(name: str) -> None:
    for path, root in pictures(name).items():
        assert root.tag == f"{SVG}svg", path
        assert root.attrib["role"] == "img"
        assert (root.findtext(f"{SVG}title") or "").strip()
        assert (root.findtext(f"{SVG}desc") or "").strip()
        labels = [t for t in root.iter(f"{SVG}text") if t.get("class") == "label"]
        assert labels
        assert not {e.tag.removeprefix(SVG) for e in root.iter()} & {"script", "image", "a", "use"}


def test_pictures_hold_no_number_that_is_none() -> None:
    for text in files("binary").values():
        assert not re.search(r'="[^"]*\b(nan|inf|None)\b[^"]*"', text)


def test_names_of_two_figures_do_not_meet() -> None:
    found = render(made(datasets=("a b", "a-b", "<a>b"), metrics=("accuracy",), runs=2))
    paths = [p for p in found if p.endswith(".svg")]
    assert len(set(paths)) == 3


# --- text --------------------------------------------------------------------------------------


@samples
@pytest.mark.parametrize("width", [60, 80, 132])
def test_text_fits(name: str, width: int) -> None:
    lines = render_text(SAMPLES[name](), width).splitlines()
    assert max(map(cell_width, lines)) <= width
    assert all(line.isprintable() for line in lines)
    assert not [line for line in lines if line != line.rstrip()]


def test_text_shows_every_method_and_column() -> None:
    text = render_text(binary())
    for method in binary()["methods"]:
        assert ("all labels known" if method["floor"] else method["name"]) in text
    assert re.search(r"\* *\n", text)
    assert "RMAE" in text
    assert "ESS" in text


def test_text_of_nothing() -> None:
    assert render_text(nothing()) == "There are no results yet."
    assert "There are no results yet." in render(nothing())["report.md"]


def test_text_of_hostile_names_tells_methods_apart() -> None:
    text = render_text(hostile())
    assert "\x1b" not in text
    assert text.count("ERM_seed1") >= 1


# --- style -------------------------------------------------------------------------------------


def _luminance(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(("scheme", "card"), [("light", "#ffffff"), ("dark", "#181e27")])
def test_lines_can_be_seen(scheme: str, card: str) -> None:
    parts = (TEMPLATES / "benchmark_series.css").read_text().split("prefers-color-scheme: dark")
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", parts[scheme == "dark"]))
    assert set(colours) == {"reference", "floor", *(f"s{k}" for k in range(6))}
    for colour in colours.values():
        darker, lighter = sorted([_luminance(colour), _luminance(card)])
        assert (lighter + 0.05) / (darker + 0.05) >= 3


def test_how_to_read_goes_by_what_ran() -> None:
    summary = binary()
    said = dict(reading(summary))
    assert "one half of the data" in said["Error"]
    assert "rare class" in said["Labels"]
    assert "picks which items are labeled" in said["active-testing"]
    assert "of other items" in said["Coverage"]
    changes = {"design": "trained sets", "sampler": "uniform", "estimand": "population"}
    said = dict(reading(summary | {"protocol": summary["protocol"] | changes}))
    assert "half" not in said["Error"] + said["All labels known"]
    assert "Labels" not in said
    assert "picks which items are labeled" in said["active-testing"]
    assert "of other items" not in said["Coverage"]
    assert "it should be 90%" in said["Coverage"]
