from __future__ import annotations

import os
import stat
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from page import Page
from report_samples import (
    NASTY,
    SAMPLES,
    Report,
    demo,
    minimal,
    nasty_names,
    render_html,
    two_classes,
)

from fewlabels.errors import InputError
from fewlabels.report import save_page
from fewlabels.report.blocks import blocks
from fewlabels.report.html import stated_origin
from fewlabels.report.words import escape_control


def test_nasty_names_are_shown_as_they_are() -> None:
    page = Page(render_html(nasty_names()))
    assert {unicodedata.category(c) for c in page.words} & {"Cc", "Cs"} == set()
    titles = {a.get("title") for _, a in page.elements}
    for name in NASTY:
        assert " ".join(escape_control(name).split()) in page.words
        assert escape_control(name) in titles


def test_names_of_any_kind_add_no_element() -> None:
    plain = nasty_names()
    names = {name: f"m{k}" for k, name in enumerate(NASTY)}

    def rename(value: object) -> object:
        if isinstance(value, dict):
            return {rename(k): rename(v) for k, v in value.items()}
        if isinstance(value, list):
            return [rename(v) for v in value]
        return names.get(value, value) if isinstance(value, str) else value

    def tags(report: Report) -> list[str]:
        return [tag for tag, _ in Page(render_html(report)).elements]

    renamed = rename(plain)
    assert isinstance(renamed, dict)
    assert tags(renamed) == tags(plain)


def test_a_row_of_the_forest_plot_per_estimate() -> None:
    report = two_classes()
    page = Page(render_html(report))
    in_legend, in_diagrams = 1, 10 * len(report["models"])
    again = 4 * len(report["models"])  # all items above the groups, by each of 4 metrics
    rows = len(report["estimates"]) + again
    assert page.count("circle", "dot") == rows + in_legend + in_diagrams
    assert page.count("line", "span") == rows + in_legend
    assert page.count("details", "group") == 4


def test_a_missing_value_has_no_point() -> None:
    page = Page(render_html(SAMPLES["all_undefined"]()))
    assert page.count("circle", "dot") == page.count("line", "span") == 1
    assert "undefined" in page.words


def test_a_status_that_all_share_is_said_once() -> None:
    page = Page(render_html(demo()))
    assert page.count("span", "chip") == 4  # A metric each.
    mixed = demo()
    mixed["estimates"][0]["status"] = "ok"
    assert Page(render_html(mixed)).count("span", "chip") == 3 + 4


def test_many_plots_are_folded_except_those_of_the_leader() -> None:
    def unfolded(report: Report) -> list[bool]:
        elements = Page(render_html(report)).elements
        return ["open" in a for t, a in elements if t == "details" and a.get("class") == "profile"]

    assert unfolded(two_classes()) == [True] * 7
    assert unfolded(demo()) == [False, True, False, False, False]


def test_diagnostics_are_explained_where_words_are_given() -> None:
    report = two_classes() | {"diagnostic_info": {"temperature": "above 1 the pool was too sure"}}
    assert "temperature 0.8317 above 1 the pool was too sure" in Page(render_html(report)).words


def test_save_html_writes_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1767225600")
    target = tmp_path / "report.html"
    target.write_text("old")
    save_page("estimates", two_classes(), str(target))
    with stated_origin():
        assert target.read_bytes().decode("utf-8") == render_html(two_classes())
    assert os.listdir(tmp_path) == ["report.html"]


def test_contents_lead_to_every_section() -> None:
    page = Page(render_html(two_classes()))
    ids = [a["id"] for tag, a in page.elements if tag == "h2" and "id" in a]
    linked = [(a["href"] or "")[1:] for tag, a in page.elements if tag == "a"]
    assert [link for link in linked if link in ids][-len(ids) :] == ids


def test_rows_follow_the_comparison() -> None:
    report = two_classes()
    ranking = ["gpt-zero-shot", *(m for m in report["models"] if m != "gpt-zero-shot")]
    compared = {"ranking": ranking}
    block = next(b for b in blocks(report | {"comparison": {"accuracy": compared}}))
    assert [row.model for row in block.ranked()] == ranking
    assert blocks(report)[0].ranked()[0].model == "bert-base"


def test_a_failed_write_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "report.html"
    target.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(InputError, match="No space left on device"):
        save_page("estimates", minimal(), target)
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["report.html"]


@pytest.mark.parametrize("name", ["no/such/folder/report.html", ".", "line\nbreak/r.html", "a\0b"])
def test_a_path_that_cannot_be_written_is_one_line(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"^cannot write .*`path` must name a file") as caught:
        save_page("estimates", minimal(), tmp_path / name)
    assert len(str(caught.value).splitlines()) == 1
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.name != "posix", reason="links and pipes of POSIX")
def test_links_are_followed_and_pipes_written_to(tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    link = tmp_path / "report.html"
    link.symlink_to(folder / "real.html")
    save_page("estimates", minimal(), link)
    assert link.is_symlink()
    assert (folder / "real.html").stat().st_size > 0
    save_page("estimates", minimal(), os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_importing_the_room_loads_nothing_heavy() -> None:
    program = (
        "import sys, fewlabels.report\n"
        "heavy = {'jinja2', 'matplotlib', 'numpy', 'rich'} & set(sys.modules)\n"
        "sys.exit(', '.join(heavy) or 0)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
