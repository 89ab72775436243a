from __future__ import annotations

import re

import numpy as np
from report_samples import STATUS_MESSAGES, Report, minimal, two_classes

import fewlabels as fl
from fewlabels.report import render_text
from fewlabels.report.words import inked, without_ink


def test_the_heading_says_what_was_estimated() -> None:
    report = two_classes()
    report |= {"positive": "spam", "reading": ["labels: column 'gold' (20 of 1,020 rows)"]}
    report["warnings"] = ["few-labels: only 3 of class spam", "a note"]
    assert render_text(report).split("\n")[:4] == [
        f"1,020 items, 20 labeled, {len(report['models'])} classifiers, 2 classes; positive: spam",
        "  labels: column 'gold' (20 of 1,020 rows)",
        "! few-labels: only 3 of class spam",
        "",
    ]
    assert render_text(report).endswith("\nWarnings\n- a note")


def test_a_note_does_not_come_before_the_table() -> None:
    lines = render_text(minimal() | {"warnings": ["a note"]}).split("\n")
    assert lines[0] == "1,020 items, 20 labeled, 2 classifiers, 2 classes"
    assert lines[1] == ""


def test_how_the_estimates_were_made_stands_below_them() -> None:
    text = " ".join(render_text(two_classes()).split())
    assert (
        "95% intervals for the population that the items come from; method tempered-ensemble, "
        "seed 0, fewlabels 0.1.0; classes: ok, spam"
    ) in text


def test_classifiers_are_in_the_order_of_the_first_metric() -> None:
    report = two_classes()
    first = {r["model"]: r["value"] for r in report["estimates"] if r["metric"] == "accuracy"
             and r["group"] is None}  # fmt: skip
    order = sorted(first, key=lambda model: -first[model])
    lines = render_text(report).split("\n")
    for metric in ("accuracy", "ece", "auc", "log_loss"):
        start = next(k for k, line in enumerate(lines) if line.startswith(f"{metric} ("))
        shown = lines[start:][: len(order) + 4]
        places = [
            next(k for k, line in enumerate(shown) if line.startswith(f"  {model} "))
            for model in order
        ]
        assert places == sorted(places)
    assert [r["model"] for r in report["estimates"][:1]] == report["models"][:1]


def test_metrics_that_do_not_apply_take_one_line() -> None:
    report = two_classes()
    for row in report["estimates"]:
        if row["metric"] in ("ece", "auc"):
            row |= {"value": None, "low": None, "high": None, "status": "not-applicable"}
    report["warnings"] = ["a note", "not-applicable: ece needs probabilities"]
    text = render_text(report)
    assert text.count("not applicable") == 1
    assert "not-applicable" not in text
    assert "\nnot applicable here: ece and auc (" in text
    assert "- a note" in text


def test_metrics_lie_beside_each_other_where_there_is_room() -> None:
    report = minimal()
    narrow, wide = (render_text(report, width).split("\n") for width in (60, 120))
    assert not any(line.startswith("accuracy") and "  ece" in line for line in narrow)
    assert any(line.startswith("accuracy") and "  ece" in line for line in wide)
    assert len(wide) < len(narrow)
    # Nothing is lost: every number of the narrow one is in the wide one.
    numbers = [set(re.findall(r"\d\.\d{3}", "\n".join(lines))) for lines in (narrow, wide)]
    assert numbers[0] == numbers[1]


def test_colour_only_where_it_is_asked_for() -> None:
    report = two_classes() | {"warnings": ["assumption: one"]}
    report["estimates"][0]["status"] = "few-labels"
    plain = render_text(report, 120)
    assert "\x1b" not in plain
    with inked():
        coloured = render_text(report, 120)
    assert without_ink(coloured) == plain
    assert "\x1b[33m! assumption: one\x1b[0m" in coloured
    assert "\x1b[33mfew-labels" in coloured


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
    table = render_text(report).split("\n")[2:]
    assert table == [
        "accuracy (larger is better): share right",
        "          value [90% interval]  truth  P(best)  0.00            1.00  status",
        "  first   0.500 [0.000, 1.000]  0.500     >99%  |---------*--------|",
        "  second  0.250 [0.250, 0.250]  1.000      <1%       o             x  few-labels",
        "  third   undefined                 -        -                        undefined",
        "",
        "o estimate, |--| interval, x truth, * both",
        "95% intervals for the population that the items come from; method",
        "tempered-ensemble, seed 0, fewlabels 0.1.0; classes: 0, 1",
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
    assert len({scale.removesuffix("  status") for scale in scales}) == 1


def test_one_classifier_alone_is_not_ranked() -> None:
    report = _report(("a", 0.8, 0.7, 0.9, "ok"))
    report["best"] = {"accuracy": {"a": 1.0}}
    assert "P(best)" not in render_text(report, 132)


def test_a_narrow_terminal_keeps_names_before_extras_and_plot() -> None:
    rows = [("a-rather-long-name", 1e9, 1e8, 1e10, "not-converged"), ("b", 1e8, 1e7, 1e9, "ok")]
    report = _report(*rows)
    report["truth"] = {"a-rather-long-name": {"accuracy": 2e9}}
    report["best"] = {"accuracy": {"a-rather-long-name": 0.5, "b": 0.5}}
    wide, narrow = render_text(report, 132), render_text(report, 60)
    assert "|--" in wide
    assert "P(best)" in wide
    assert re.search(r"\n  a-\w+\.\.\.\w+  1\.00e\+09", narrow)
    assert "P(best)" not in narrow


def test_warnings_hang_below_their_dash() -> None:
    report = minimal() | {"warnings": ["word " * 30, "two\nlines"]}
    tail = render_text(report).split("\nWarnings\n")[1].split("\n")
    assert [line[:2] for line in tail] == ["- ", "  ", "- "]
    assert tail[-1] == "- two lines"


def test_no_estimates_is_no_error() -> None:
    assert "1,020 items" in render_text(minimal() | {"estimates": []})


def test_without_intervals() -> None:
    """Estimates without a confidence level are printed without brackets."""
    rng = np.random.default_rng(0)
    truth = rng.random(300) < 0.5
    p = 1 / (1 + np.exp(-rng.normal(2 * truth - 1, 1)))
    labels = np.where(np.arange(300) < 60, truth, -1)
    given = fl.Predictions(np.c_[p, p**2], labels)
    found = fl.estimate(given, metrics="accuracy", confidence_level=None)
    assert "no intervals" in found.summary()
    assert "interval]" not in found.summary()
    assert "None" not in found._repr_html_()
