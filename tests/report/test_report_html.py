from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import unicodedata
from html.parser import HTMLParser
from pathlib import Path

import pytest
from curve_samples import CURVES, THRESHOLDS
from report_samples import NASTY, SAMPLES, Report, demo, minimal, nasty_names, two_classes

from fewlabels.errors import InputError
from fewlabels.report import html, render_html, save_page
from fewlabels.report.blocks import blocks
from fewlabels.report.provenance import made_by
from fewlabels.report.words import clean

VOID = {"meta", "br"}
BLOCKS = {"br", "div", "p", "h2", "h3", "li", "dt", "dd", "th", "td", "tr", "summary"}


class Page(HTMLParser):
    """Elements, attributes and text of a page; complains where a tag is not closed."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(source)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.text.append(" " if tag in BLOCKS else "")
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1:] not in (["style"], ["script"]):
            self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join("".join(self.text).split())

    def count(self, tag: str, kind: str = "") -> int:
        return sum(
            t == tag and (not kind or kind in (a.get("class") or "").split())
            for t, a in self.elements
        )


@pytest.mark.parametrize("name", NASTY)
def test_nasty_names_are_shown_as_they_are(name: str) -> None:
    page = Page(render_html(nasty_names()))
    assert " ".join(clean(name).split()) in page.words
    assert {unicodedata.category(c) for c in page.words} & {"Cc", "Cs"} == set()
    assert clean(name) in {a.get("title") for _, a in page.elements}


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


def test_the_content_is_in_order() -> None:
    words = Page(render_html(two_classes())).words
    places = [
        words.index(part)
        for part in (
            "How good are the classifiers?",
            "By accuracy",
            "Items 1,020 Labeled 20",
            "At a glance accuracy",
            "Please note Only 20 of 1,020",
            "At a glance Metric",
            "share of items whose predicted class is right",
            "All estimates As a table",
            "How often each class occurs",
            "Scores and calibration of each classifier The areas",
            "The method: Tempered ensemble Labels",
            "It assumes",
            "It fails when",
            "Diagnostics of the fit",
            "How to read this page Estimate",
            "Where this comes from Items 1,020, 20 labeled",
            "Method tempered-ensemble, seed 0",
            "Version fewlabels 0.1.0",
        )
    ]
    assert places == sorted(places)


def _answer(**changes: object) -> str:
    source = render_html(two_classes() | changes)
    return Page(source[source.index("<h1>") : source.index("</header>")]).words


@pytest.mark.parametrize(
    ("probability", "words"),
    [
        (0.97, "bert-base is very probably the best of 7 classifiers: the probability of that is"),
        (0.85, "bert-base is probably the best of 7 classifiers: the probability of that is 85%."),
        (0.6, "looks like the best of 7 classifiers, but that is not settled: the probability"),
        (0.3, "no classifier stands out. Of 7, bert-base has the best estimate, but"),
    ],
)
def test_the_answer_is_as_sure_as_the_probability(probability: float, words: str) -> None:
    best = {"bert-base": probability, "distilbert": 0.15, "naive bayes": 0.2}
    answer = _answer(best={"accuracy": best})
    assert words in answer
    assert "Its accuracy is estimated at 0.945, with a 95% interval from 0.909 to 0.984." in answer
    rivals = "The best may also be naive bayes (20%) or distilbert (15%)."
    assert (rivals in answer) == (probability < 0.95)


def test_the_answer_says_how_many_labels_there_are() -> None:
    assert "This rests on 20 labels among 1,020 items." in _answer()
    assert "None of the 1,020 items has a label: everything here rests on" in _answer(n_labeled=0)
    assert "Every one of the 1,020 items is labeled." in _answer(n_labeled=1020)


def test_the_answer_says_what_the_numbers_are_about() -> None:
    assert "about the population that the items come from" in _answer()
    assert "The numbers are about these items only." in _answer(estimand="sample")


def test_without_probabilities_the_answer_speaks_of_overlaps() -> None:
    assert (
        "Of 7 classifiers, bert-base has the best estimate by accuracy, but the intervals of "
        "4 others overlap with its own, so that the order is not settled."
    ) in _answer(best={})


def test_the_answer_without_a_value() -> None:
    words = Page(render_html(SAMPLES["all_undefined"]())).words
    assert "None of the 3 classifiers could be judged by accuracy: the metric is undefined" in words
    assert "There are no estimates in this report." in _answer(estimates=[])


def test_the_truth_is_told_where_it_is_known() -> None:
    page = Page(render_html(demo()))
    assert re.search(r"the accuracy of forest truly is 0\.\d{3}\.", page.words)
    assert re.search(r"\d+ of the 20 intervals below hold the true value\.", page.words)
    assert page.count("line", "truth") == 21  # One per row and one in the legend.
    assert Page(render_html(two_classes())).count("line", "truth") == 0


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
    assert page.count("span", "chip") == 4 + 1  # A metric each, and the legend.
    mixed = demo()
    mixed["estimates"][0]["status"] = "ok"
    assert Page(render_html(mixed)).count("span", "chip") == 3 + 1 + 4


def test_what_is_missing_from_the_report_is_left_out() -> None:
    words = Page(render_html(minimal())).words
    for part in ("P(best)", "Truth", "Classes 2 Labels", "Scores and calibration", "It assumes"):
        assert part not in words
    assert "The estimates were made by tempered-ensemble." in words


def test_many_plots_are_folded_except_those_of_the_leader() -> None:
    def unfolded(report: Report) -> list[bool]:
        elements = Page(render_html(report)).elements
        return ["open" in a for t, a in elements if t == "details" and a.get("class") == "profile"]

    assert unfolded(two_classes()) == [True] * 7
    assert unfolded(demo()) == [False, True, False, False, False]


def test_diagnostics_are_in_words() -> None:
    words = Page(render_html(two_classes())).words
    assert "effective sample size 1,893" in words
    assert "converged yes" in words
    assert "bert-base 4 roberta-large 4" in words
    long = two_classes() | {"diagnostics": {"trace": list(range(40)), "none": None, "e": []}}
    words = Page(render_html(long)).words
    assert "trace 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 28 more none not known e none" in words


def test_diagnostics_are_explained_where_words_are_given() -> None:
    report = two_classes() | {"diagnostic_info": {"temperature": "above 1 the pool was too sure"}}
    assert "temperature above 1 the pool was too sure 0.8317" in Page(render_html(report)).words


def test_the_method_is_told_in_sentences() -> None:
    info = {"summary": "a vote of all classifiers"}
    words = Page(render_html(two_classes() | {"method_info": info})).words
    assert "The method A vote of all classifiers." in words
    assert (
        "The metric is not defined on these items."
        in Page(render_html(SAMPLES["all_undefined"]())).words
    )


def test_save_html_writes_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1767225600")
    target = tmp_path / "report.html"
    target.write_text("old")
    save_page("estimates", two_classes(), str(target))
    with made_by():
        assert target.read_bytes().decode("utf-8") == render_html(two_classes())
    assert os.listdir(tmp_path) == ["report.html"]


def test_a_page_says_where_it_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1767225600")
    with made_by("fewlabels estimate data/a.csv --by 'x y'", ["data/a.csv"]):
        words = Page(render_html(two_classes() | {"positive": "spam"})).words
    assert words.count("fewlabels report · a.csv · 1 January 2026 How good") == 1
    end = words[words.rindex("Where this comes from") :]
    for said in (
        "File data/a.csv", "Items 1,020, 20 labeled", "Positive class spam",
        "Method tempered-ensemble, seed 0", "Made 2026-01-01 00:00 UTC",
        "Version fewlabels 0.1.0", "Command fewlabels estimate data/a.csv --by 'x y'",
    ):  # fmt: skip
        assert said in end


def test_contents_lead_to_every_section() -> None:
    page = Page(render_html(two_classes()))
    ids = [a["id"] for tag, a in page.elements if tag == "h2" and "id" in a]
    linked = [(a["href"] or "")[1:] for tag, a in page.elements if tag == "a"]
    assert [link for link in linked if link in ids][-len(ids) :] == ids


def test_who_is_likelier_the_best_is_said_where_the_value_says_otherwise() -> None:
    answer = _answer()
    assert "bert-base has the best estimate (P(best) 24%), but gpt-zero-shot is more" in answer
    assert "The accuracy of bert-base is estimated at 0.945" in answer


def test_rows_follow_the_comparison() -> None:
    report = two_classes()
    ranking = ["gpt-zero-shot", *(m for m in report["models"] if m != "gpt-zero-shot")]
    compared = {"ranking": ranking}
    block = next(b for b in blocks(report | {"comparison": {"accuracy": compared}}))
    assert [row.model for row in block.ranked()] == ranking
    assert blocks(report)[0].ranked()[0].model == "bert-base"


def test_groups_stand_side_by_side_and_are_open() -> None:
    source = render_html(two_classes())
    page = Page(source)
    assert page.count("div", "side") == 4 * 7
    assert source.count('<details class="group" open>') == 4


def test_other_pages_are_saved_by_their_names(tmp_path: Path) -> None:
    save_page("threshold", THRESHOLDS["met"](), tmp_path / "threshold.html")
    report, picture = CURVES["plain"]()
    save_page("curves", report, tmp_path / "curve.html", picture=picture)
    for name in ("threshold", "curve"):
        assert (tmp_path / f"{name}.html").read_text("utf-8").endswith("</html>")


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


def test_templates_are_found_beside_the_module() -> None:
    names = html.environment().list_templates()
    assert {"report.html.j2", "report.css"} <= set(names)


def test_importing_the_room_loads_nothing_heavy() -> None:
    program = (
        "import sys, fewlabels.report\n"
        "heavy = {'jinja2', 'matplotlib', 'numpy', 'rich'} & set(sys.modules)\n"
        "sys.exit(', '.join(heavy) or 0)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
