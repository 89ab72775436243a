"""What a reader who is new to a benchmark's report relies on."""

from __future__ import annotations

import re
from typing import Any

import pytest
from benchmark_samples import (
    SAMPLES,
    binary,
    drawn_and_expected,
    made,
    many_methods,
    sharpened,
    subsets,
)
from test_report_benchmark import markdown_tables

from fewlabels.report.benchmark import render, render_text
from fewlabels.report.benchmark_content import data_set, headline, notes, reading
from fewlabels.report.benchmark_plot import views
from fewlabels.report.benchmark_tables import glance, grids
from fewlabels.report.benchmark_text import _name
from fewlabels.report.benchmark_words import correlation_text, error_text, ratio_text, signed_text
from fewlabels.report.words import cell_width

samples = pytest.mark.parametrize("name", SAMPLES)


def per_classifier() -> dict[str, Any]:
    return made(tables=("classifiers",), metrics=("accuracy",), sizes=(20,), figures=())


def test_tables_that_are_the_content_and_coverage_are_not_folded() -> None:
    page = render(per_classifier())["report.html"]
    assert "<details" not in page
    assert "Intervals: coverage and width" in page
    folded = render(binary())["report.html"]
    assert re.search(r"<details[^>]*><summary>civilcomments, accuracy, 20 labels", folded)
    assert not re.search(
        r"<details[^>]*><summary>[^<]*</summary>\s*(?:<[^>]*>)*[Cc]overage", folded
    )


# --- how to read this ----------------------------------------------------------------------------


def test_only_what_the_page_has_is_explained() -> None:
    said = dict(reading(binary()))
    assert list(said) == ["Error", "Bold", "RMAE", "Bias", "Labels", "active-testing", "Coverage",
                          "Width", "ESS", "All labels known"]  # fmt: skip
    assert "by that of labeled on the same splits" in said["RMAE"]
    assert "Agresti and Coull" in said["Coverage"]
    assert "Labeled" not in " ".join(said.values())
    alone = made(methods=("labeled",), metrics=("accuracy",), sizes=(20,), curve=False, runs=2)
    assert "Bold" not in dict(reading(alone))
    assert "ESS" not in dict(reading(alone))
    assert "active-testing" not in dict(reading(alone))
    assert "bracket" not in dict(reading(alone))["RMAE"]
    assert "Rank correlation" in dict(reading(subsets()))
    assert "Bias" not in dict(reading(subsets()))


# --- heads of columns ----------------------------------------------------------------------------


def test_the_head_of_one_column_stands_over_its_numbers() -> None:
    page = render(made(sizes=(20,), metrics=("accuracy",)))["report.html"]
    assert re.search(r'colspan="1" class="number[^"]*">RMAE, n_l =', page)
    assert 'colspan="3" class="over' in render(binary())["report.html"]


def test_sharpness_is_named_and_explained() -> None:
    summary = sharpened()
    (grid,) = grids(summary["tables"][0], summary)
    assert grid.groups == (("Error, points, sharpness a =", 5),)
    assert grid.flat[0] == "a = 0.25"
    assert "p^a / (p^a + (1 - p)^a)" in grid.caption
    (grid,) = grids(drawn_and_expected()["tables"][0], drawn_and_expected())
    assert grid.flat == ("drawn labels", "expected labels", "expected - drawn")
    # In a terminal once, whatever the number of tables.
    assert " ".join(render_text(summary).split()).count("p^a / (p^a + (1 - p)^a)") == 1


# --- notes ---------------------------------------------------------------------------------------


def with_files(*files: str, skipped: tuple[str, ...] = ()) -> dict[str, Any]:
    summary = made(datasets=("x", "y"), metrics=("accuracy",), curve=False, skipped=skipped)
    facts = [d | {"file": f} for d, f in zip(summary["datasets"], files, strict=True)]
    return summary | {"datasets": facts, "failures": []}


def test_notes_hold_no_path_of_the_machine_and_short_lists() -> None:
    columns = ", ".join(f"c{k}" for k in range(40))
    lines = (
        "/mine/my data/a.csv: has no columns; it has c, " + columns,
        "/mine/other/b.csv: 'model' of '/mine/c.toml' is unknown",
        r"C:\data\d.csv: bad, 1/2 of it",
        "ssme-binary on x: n_labeled 500 is more than its half holds",
    )
    said = notes(with_files("x.csv", "y.csv", skipped=lines))
    assert said == [
        "Skipped: a.csv: has no columns; it has c, c0, c1, c2, c3 and 36 more",
        "Skipped: b.csv: 'model' of 'c.toml' is unknown",
        "Skipped: d.csv: bad, 1/2 of it",
        "Skipped: ssme-binary on x: n_labeled 500 is more than its half holds",
    ]
    facts = with_files("x.csv", "y.csv")["datasets"][0] | {"notes": ["see /etc/x/y.toml."]}
    assert data_set(facts).endswith(". see y.toml.")


@pytest.mark.parametrize(
    ("files", "told"),
    [
        (("/d/one/x.csv", "/d/two/x.csv"), "x is one/x.csv, y is two/x.csv"),
        (("/d/x.csv", "/d/x.parquet"), "x is x.csv, y is x.parquet"),
        (("/d/x.csv", "/d/y.csv"), ""),
    ],
)
def test_files_of_one_stem_are_told_apart(files: tuple[str, str], told: str) -> None:
    line = [f"Data sets of files of the same name: {told}"] if told else []
    assert notes(with_files(*files)) == line


@samples
def test_version_and_seed_are_said_once(name: str) -> None:
    for path in ("report.html", "report.md"):
        text = render(SAMPLES[name]())[path]
        assert text.count("fewlabels 0.") == 1
        assert len(re.findall(r"\bseed\b", text, re.IGNORECASE)) == 1


def test_the_command_is_shown() -> None:
    summary = binary() | {"command": "fewlabels benchmark ssme-binary --runs 6"}
    assert all(summary["command"] in render(summary)[f"report.{end}"] for end in ("html", "md"))
    assert "Command" not in render(summary | {"command": ""})["report.html"]


# --- the terminal --------------------------------------------------------------------------------


def test_names_and_heads_in_a_terminal_are_whole() -> None:
    text = render_text(many_methods(), 80)
    assert "..." not in text
    for k in (0, 15, 29):
        assert f"\nssme-kde[bandwidth={k / 10}," in text
    for width in (60, 80):
        assert "..." not in render_text(binary(), width)


@pytest.mark.parametrize("room", [12, 14, 24])
def test_a_name_on_several_lines_loses_nothing(room: int) -> None:
    name = "ssme-kde[bandwidth=0.25,epochs=5,a_setting_of_great_length=\u6f22\u5b57]"
    lines = _name(name, room)
    assert "".join(line.removeprefix(" ") for line in lines) == name
    assert max(map(cell_width, lines)) <= room


def test_coverage_in_a_terminal() -> None:
    for summary in (binary(), per_classifier()):
        text = render_text(summary)
        assert "intervals of 90%" in text
        assert re.search(r"Coverage, n_l =", text)
    quiet = binary()
    quiet["tables"] = [t for t in quiet["tables"] if t["kind"] != "intervals"]
    assert "Coverage" not in render_text(quiet)


@samples
def test_coverage_at_the_ends_has_a_standard_error(name: str) -> None:
    for text in render(SAMPLES[name]()).values():
        assert not re.search(r"\b(?:0\.0|100\.0)%\D{0,30}± 0\.0%", text)


# --- few runs, few values ------------------------------------------------------------------------


def test_few_runs_rank_nothing() -> None:
    assert headline(made(runs=3)).startswith("3 runs: too few to rank methods.")
    few = made(runs=3, metrics=("accuracy",), sizes=(20,))
    assert "[" not in "".join(c.spread for r in grids(few["tables"][0], few)[0].rows
                              for c in r.cells)  # fmt: skip
    many = made(runs=10, metrics=("accuracy",), sizes=(20,))
    assert "the least error" in headline(many)
    assert "[" in "".join(c.spread for r in grids(many["tables"][0], many)[0].rows for c in r.cells)


def test_leaders_are_listed() -> None:
    summary = binary() | {"runs": 50}
    glance = [e | {"n_best": 9 if not e["floor"] else 0} for e in summary["glance"]]
    said = headline(summary | {"glance": glance})
    assert said.startswith("labeled, majority-vote, pseudo-label and 9 more each have the least")
    assert headline(summary | {"glance": glance[:2]}).startswith("labeled and majority-vote each")


def test_means_over_fewer_comparisons_are_marked() -> None:
    grid = glance(binary())
    marked = {row.name for row in grid.rows if row.cells[1].mark}
    assert marked == {"autoeval"}
    assert grid.notes == (
        ("a", "mean over 3 of 12 comparisons only: not to be compared with rows that have all"),
    )


def test_the_overview_says_over_how_many_data_sets() -> None:
    summary = made(datasets=("a", "b"), metrics=("accuracy",), sizes=(20,), curve=False)
    cell = summary["tables"][0]["rows"][3]["cells"][0]
    cell |= {"n_runs": 1, "reasons": {"only two classes": 1}}
    grid = grids(summary["tables"][0], summary)[0]
    assert grid.notes == (("a", "mean over 1 of 2 data sets: only two classes (1 data set)"),)


def test_the_effective_size_of_labeled_has_a_note() -> None:
    summary = binary()
    grid = grids(summary["tables"][0], summary)[0]
    assert [(c.text, c.mark) for c in grid.rows[0].cells[-3:]] == [("20", "a"), ("50", "a"),
                                                                   ("100", "a")]  # fmt: skip
    assert "its own number of labels" in dict(grid.notes)["a"]


@samples
def test_nothing_is_written_as_minus_nothing(name: str) -> None:
    for path, text in render(SAMPLES[name]()).items():
        if not path.endswith(".svg"):
            assert not re.search(r"-0(?:\.0+)?(?![.\d])(?=[\s<%|*])", text)
    assert markdown_tables(render(SAMPLES[name]())["report.md"]) is not None


@pytest.mark.parametrize("value", [-0.0, -0.001, 0.001])
def test_small_numbers_have_no_sign(value: float) -> None:
    for text in (ratio_text(value), error_text(value, "points"), signed_text(value, "points"),
                 correlation_text(value)):  # fmt: skip
        assert text == "0.00"


def test_rank_correlations_are_said_where_labels_have_no_room() -> None:
    summary = subsets()
    (view,) = views(summary["figures"][0], summary)
    assert view.notes.startswith("Rank correlation: labeled 0.00, ")
    assert view.notes in render(summary)["report.html"]
    curve = next(f for f in binary()["figures"] if f["kind"] == "labeled-curve")
    assert views(curve, binary())[0].notes.startswith("As many labels alone: ")
    assert views(binary()["figures"][0], binary())[0].notes == ""
