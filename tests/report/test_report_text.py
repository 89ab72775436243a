from __future__ import annotations

import unicodedata
from collections.abc import Callable

import pytest
from report_samples import SAMPLES, STATUS_MESSAGES, Report, minimal, two_classes

from fewlabels.report import render_text
from fewlabels.report.words import cell_width

samples = pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)


@samples
@pytest.mark.parametrize("width", [60, 80, 132])
def test_no_line_is_wider_than_the_terminal(sample: Callable[[], Report], width: int) -> None:
    lines = render_text(sample(), width).split("\n")
    assert max(map(cell_width, lines)) <= width


@samples
def test_it_is_plain_printable_text(sample: Callable[[], Report]) -> None:
    text = render_text(sample())
    text.encode()
    controls = {c for c in text if unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"}}
    assert controls <= {"\n"}
    assert "nan" not in text.replace("naïve", "").lower().split()
    assert not any(line != line.rstrip() for line in text.split("\n"))


def test_a_width_below_the_narrowest_counts_as_it() -> None:
    assert render_text(two_classes(), 10) == render_text(two_classes(), 60)


def test_the_heading_says_what_was_estimated() -> None:
    head = render_text(two_classes()).split("\n")[:3]
    assert head == [
        "fewlabels 0.1.0, tempered-ensemble, seed 0",
        "1,020 items, 20 labeled; classes: ok, spam (spam is positive)",
        "95% intervals for the population that the items come from",
    ]


def _report(*rows: tuple[str, float | None, float | None, float | None, str]) -> Report:
    keys = ("model", "value", "low", "high", "status")
    shared = {"metric": "accuracy", "group": None, "confidence_level": 0.9}
    return minimal() | {
        "models": [row[0] for row in rows],
        "estimates": [dict(zip(keys, row, strict=True)) | shared for row in rows],
        "metric_info": {
            "accuracy": {"description": "share right", "direction": 1, "bounds": [0.0, 1.0]}
        },
        "status_messages": STATUS_MESSAGES,
        "warnings": [],
    }


def test_a_table_to_the_letter() -> None:
    report = _report(
        ("first", 0.5, 0.0, 1.0, "ok"),
        ("second", 0.25, 0.25, 0.25, "few-labels"),
        ("third", None, None, None, "undefined"),
    )
    report["best"] = {"accuracy": {"first": 0.999, "second": 0.001, "third": 0.0}}
    report["truth"] = {"first": {"accuracy": 0.5}, "second": {"accuracy": 1.0}}
    table = render_text(report).split("\n")[4:]
    assert table == [
        "accuracy (larger is better): share right",
        "          value [90% interval]  truth  P(best)  0.00            1.00  status",
        "  first   0.500 [0.000, 1.000]  0.500     >99%  |---------*--------|  ok",
        "  second  0.250 [0.250, 0.250]  1.000      <1%       o             x  few-labels",
        "  third   undefined                 -        -                        undefined",
        "",
        "o estimate, |--| interval, x truth, * both",
        "few-labels: very few labels, or none for a class or for this group: the interval",
        "  is wide and leans on the prior",
        "undefined: the metric is not defined on these items",
    ]


def test_columns_of_what_is_not_known_are_left_out() -> None:
    text = render_text(_report(("only", 0.5, 0.4, 0.6, "ok")))
    assert "truth" not in text
    assert "P(best)" not in text
    assert "few-labels" not in text


def test_an_estimate_without_interval_has_a_value_alone() -> None:
    text = render_text(_report(("only", 0.5, None, None, "assumption")))
    row = next(line for line in text.split("\n") if "only" in line)
    assert row.split() == ["only", "0.500", "o", "assumption"]


def test_values_above_one_keep_their_places() -> None:
    text = render_text(_report(("a", 12.345, 10.0, 15.5, "ok"), ("b", 1.5, 1.25, 1.75, "ok")))
    assert "  a  12.345 [10.000, 15.500]" in text
    assert "  b   1.500 [1.250, 1.750]" in text


def test_groups_come_after_all_items_under_a_heading_each() -> None:
    report = two_classes()
    report["estimates"].reverse()
    lines = render_text(report).split("\n")
    headings = [lines[k - 1] for k, line in enumerate(lines) if line and not line.strip("=")]
    assert headings == ["sex=null", "sex=male", "sex=female"]
    first = next(k for k, line in enumerate(lines) if line.startswith("log_loss"))
    assert first < lines.index("sex=null")


def test_the_description_is_said_once() -> None:
    assert render_text(two_classes()).count("share of items whose predicted class") == 1


def test_groups_of_a_metric_share_their_scale() -> None:
    lines = render_text(two_classes()).split("\n")
    scales = [lines[k + 1] for k, line in enumerate(lines) if line == "ece (smaller is better)"]
    assert len(scales) == 3
    assert len(set(scales)) == 1


def test_a_narrow_terminal_keeps_names_before_extras_and_plot() -> None:
    report = _report(("a-rather-long-name", 1e9, 1e8, 1e10, "not-applicable"))
    report["truth"] = {"a-rather-long-name": {"accuracy": 2e9}}
    report["best"] = {"accuracy": {"a-rather-long-name": 0.5}}
    wide, narrow = render_text(report, 132), render_text(report, 60)
    assert "|--" in wide
    assert "P(best)" in wide
    assert "  a-ra...name  1.00e+09" in narrow
    assert "P(best)" not in narrow


def test_warnings_hang_below_their_dash() -> None:
    report = minimal() | {"warnings": ["word " * 30, "two\nlines"]}
    tail = render_text(report).split("\nWarnings\n")[1].split("\n")
    assert [line[:2] for line in tail] == ["- ", "  ", "- "]
    assert tail[-1] == "- two lines"


def test_no_estimates_is_no_error() -> None:
    assert "1,020 items" in render_text(minimal() | {"estimates": []})
