"""The site: every page has its place, registries are told whole, its check sees faults."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import fewlabels as fl
from fewlabels.cli.app import COMMANDS, app

sys.path.append(str(Path(__file__).resolve().parents[2] / "docs"))

import check_site
import registries

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def test_every_page_stands_in_a_table_of_contents() -> None:
    """Sphinx says so too, with its packages installed; this is said without them."""
    listed: set[Path] = {DOCS / "index.md"}
    for page in (DOCS / "index.md", DOCS / "benchmarks" / "index.md"):
        for block in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
            for line in block.splitlines():
                if line and not line.startswith(":"):
                    named = re.sub(r".*<(.*)>", r"\1", line)
                    listed.add(page.parent / f"{named}.md")
    assert set(DOCS.rglob("*.md")) == listed - {DOCS / "gallery" / "index.md"}


def test_generated_parts_are_asked_for_and_whole() -> None:
    pages = {name: (DOCS / f"{name}.md").read_text("utf-8") for name in registries.PARTS}
    for name, text in pages.items():
        assert f"\n<!-- generated: {name} -->\n" in text
    methods, metrics = registries.methods(), registries.metrics()
    assert all(f"\n## {name}\n" in methods for name in fl.models.METHODS)
    assert all(f"| `{name}` |" in metrics for name in (*fl.metrics.METRICS, *fl.metrics.ALIASES))
    commands = registries.commands()
    assert all(f"\n### {name}\n" in commands for name in app.commands)
    assert all(f"\n## {task}\n" in commands for task in COMMANDS)
    statuses = (DOCS / "statuses.md").read_text("utf-8")
    for status in fl.Status:
        assert f"| `{status}` | " in registries.statuses()
        assert status is fl.Status.OK or f"\n## {status}\n" in statuses
    assert "](docs/" not in registries.changelog()


def test_pages_name_every_command() -> None:
    text = "".join(p.read_text("utf-8") for p in DOCS.glob("*.md"))
    assert all(f"fewlabels {name}" in text for name in app.commands)
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for name in {*fl.models.METHODS, *fl.metrics.METRICS, *fl.metrics.ALIASES}:
        assert f"`{name}`" in changelog, f"CHANGELOG.md does not name {name}"


def test_the_api_page_names_every_public_name() -> None:
    text = (DOCS / "api.md").read_text("utf-8")
    for name in set(fl.__all__) - {"__version__"}:
        assert re.search(rf":: (?:fewlabels\.)?{name}$", text, re.MULTILINE), name


def test_special_characters_are_shown() -> None:
    assert registries._plain("a < b, *c* and `d|e` of [0, 1]") == (
        r"a \< b, \*c\* and `d|e` of \[0, 1\]"
    )


@pytest.mark.parametrize(
    ("link", "depth", "shown"),
    [
        ("[a](../default.md#x)", 1, "[a](../default.md#x)"),
        ("[a](../CHANGELOG.md)", 0, "[a](changelog.md)"),
        ("[a](../../CHANGELOG.md)", 1, "[a](../changelog.md)"),
        ("[`x.py`](../benchmarks/x.py)", 0, "`x.py` (`benchmarks/x.py`)"),
        ("[SECURITY.md](../SECURITY.md)", 0, "SECURITY.md"),
        ("![a](../p.png)", 0, "![a](../p.png)"),
    ],
)
def test_links_out_of_the_site(link: str, depth: int, shown: str) -> None:
    assert registries.filled(link, depth) == shown


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "a.html").write_text(
        '<link rel="stylesheet" href="s.css"><h1 id="top">A</h1><a href="b.html#x">b</a>'
        '<a href="https://example.org">elsewhere</a><img src="p.png">'
    )
    (tmp_path / "b.html").write_text('<p id="x"></p><a href="a.html#top">a</a>')
    (tmp_path / "s.css").write_text("p { background: url(p.png) }")
    (tmp_path / "p.png").write_bytes(b"")
    return tmp_path


def test_a_whole_site_has_no_fault(site: Path) -> None:
    assert check_site.faults(site) == []


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ('<a href="c.html">c</a>', "links to c.html, which is not there"),
        ('<a href="b.html#y">y</a>', "which has no such anchor"),
        ('<a href="#y">y</a>', "which has no such anchor"),
        ('<script src="https://example.org/x.js"></script>', "loads https://example.org/x.js"),
        ('<img srcset="p.png 1x, //example.org/q.png 2x">', "loads //example.org/q.png"),
        (
            '<link rel="preload" href="http://example.org/f.woff">',
            "loads http://example.org/f.woff",
        ),
        ("<style>@import 'https://example.org/f.css';</style>", "loads https://example.org/f.css"),
        (
            '<p style="background: url(https://example.org/p.png)">',
            "loads https://example.org/p.png",
        ),
        (f"<p>{DOCS.parent}/examples</p>", "names a folder of this machine"),
        ('<img src="lost.png">', "links to lost.png, which is not there"),
    ],
)
def test_faults_of_a_site_are_seen(site: Path, more: str, fault: str) -> None:
    with (site / "b.html").open("a") as page:
        page.write(more)
    (found,) = check_site.faults(site)
    assert fault in found


def test_style_sheets_are_looked_at(site: Path) -> None:
    (site / "s.css").write_text("@font-face { src: url('https://example.org/f.woff') }")
    assert check_site.faults(site) == ["s.css loads https://example.org/f.woff"]
