"""What texts and pages say, in words that are stored: see `outputs`.

Made-up reports hold what the words depend on; the numbers of real ones are tested where they are
made.
"""

from __future__ import annotations

import copy
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from annotations_samples import alpha, matrix, plain, temperature
from curve_samples import THRESHOLDS, World, threshold
from every_report import PAGES, TEXTS
from page import Page
from report_samples import STATUS_MESSAGES, Report, minimal, render_html, render_text, two_classes

import outputs
from fewlabels.report.blocks import Block, Row
from fewlabels.report.comparison import labels_cell, said_of, settling_sentence
from fewlabels.report.diagnostics import partition
from fewlabels.report.document import unmarked
from fewlabels.report.html import render_page, stated_origin
from fewlabels.report.html import render_text as text_of
from fewlabels.report.shown import brief
from outputs import check, together

BOTH = [
    "estimates: two_classes", "estimates: demo", "estimates: all_undefined", "estimates: minimal",
    "estimates: beliefs", "annotations: plain", "annotations: one_label", "calibration: alpha",
    "calibration: unchecked", "calibration-curve: two", "agreement: people", "comparison: two",
    "curves: plain", "curves: undefined", "threshold: met", "threshold: not_met", "shift: two",
    "label-next: metric", "backtest: two", "monitoring: two",
]  # fmt: skip
IN_TEXT = [
    "estimates: single_model", "estimates: crowd", "annotations: no_intervals",
    "annotations: grouped", "annotations: many", "calibration: matrix", "calibration: temperature",
    "curves: score_unit", "curves: one_label", "curves: no_labels", "threshold: unlikely",
    "threshold: sure",
]  # fmt: skip


def words(name: str, text: str) -> str:
    """A text whose numbers are shown as #.## where a fit by default may move their last digit."""
    if not name.startswith(("backtest", "monitoring")):
        return text
    return re.sub(r"\d*\.\d+|\d+%", lambda found: re.sub(r"\d", "#", found[0]), text)


@pytest.mark.parametrize("name", BOTH + IN_TEXT)
def test_a_text(name: str) -> None:
    check(f"report/{name.replace(': ', '-')}", words(name, TEXTS[name](80)))


@pytest.mark.few(8)
@pytest.mark.parametrize("name", [*BOTH, "estimates: domains", "estimates: crowd"])
def test_a_page(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1767225600")
    made = PAGES[name].__wrapped__  # type: ignore[attr-defined]
    check(f"report/{name.replace(': ', '-')}-page", words(name, Page(made()).lines))


def test_a_page_says_where_it_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1767225600")
    with stated_origin("fewlabels estimate data/a.csv --by 'x y'", ["data/a.csv"]):
        lines = Page(render_html(minimal() | {"positive": "spam"})).lines.split("\n")
    start = len(lines) - lines[::-1].index("Where this comes from") - 1
    check("report/provenance", "\n".join([*lines[:2], *lines[start:]]))


def best(*p: float) -> Report:
    names = ("bert-base", "distilbert", "naive bayes")
    return {"best": {"accuracy": dict(zip(names, p, strict=True))}}


ANSWERS: dict[str, Report] = {
    "very probably the best": best(0.97, 0.15, 0.2),
    "probably the best": best(0.85, 0.15, 0.2),
    "not settled": best(0.6, 0.15, 0.2),
    "nobody stands out": best(0.3, 0.15, 0.2),
    "no probabilities": {"best": {}},
    "no labels": {"n_labeled": 0},
    "every label": {"n_labeled": 1020},
    "these items": {"estimand": "sample"},
    "no estimates": {"estimates": []},
}


def test_answers_of_pages() -> None:
    texts = {}
    for name, changes in ANSWERS.items():
        source = render_html(two_classes() | changes)
        texts[name] = Page(source[source.index("<h1>") : source.index("</header>")]).lines
    check("report/answers", together(texts))


Estimate = tuple[str, float | None, float | None, float | None, str]


def accuracies(*rows: Estimate, **more: Any) -> Report:
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
        **more,
    }


def not_applicable() -> Report:
    report = two_classes()
    for row in report["estimates"]:
        if row["metric"] in ("ece", "auc"):
            row |= {"value": None, "low": None, "high": None, "status": "not-applicable"}
    return report | {"warnings": ["a note", "not-applicable: ece needs probabilities"]}


LARGE = (("a-rather-long-name", 1e9, 1e8, 1e10, "not-converged"), ("b", 1e8, 1e7, 1e9, "ok"))
EXTRAS: Report = {
    "truth": {"a-rather-long-name": {"accuracy": 2e9}},
    "best": {"accuracy": {"a-rather-long-name": 0.5, "b": 0.5}},
}
TABLES: dict[str, tuple[Report, int]] = {
    "truth and P(best)": (
        accuracies(
            ("first", 0.5, 0.0, 1.0, "ok"), ("second", 0.25, 0.25, 0.25, "few-labels"),
            ("third", None, None, None, "undefined"),
            best={"accuracy": {"first": 0.999, "second": 0.001, "third": 0.0}},
            truth={"first": {"accuracy": 0.5}, "second": {"accuracy": 1.0}},
        ),
        80,
    ),
    "no interval": (accuracies(("only", 0.5, None, None, "assumption")), 80),
    "values above one": (
        accuracies(("a", 12.345, 10.0, 15.5, "ok"), ("b", 1.5, 1.2, 1.7, "ok")), 80,
    ),
    "one alone is not ranked": (
        accuracies(("a", 0.8, 0.7, 0.9, "ok"), best={"accuracy": {"a": 1.0}}), 132,
    ),
    "large numbers, wide": (accuracies(*LARGE, **EXTRAS), 132),
    "large numbers, narrow": (accuracies(*LARGE, **EXTRAS), 60),
    "warnings hang below their dash": (
        minimal() | {"warnings": ["word " * 30, "two\nlines", "few-labels: only 3 of class spam"]},
        80,
    ),
    "no estimates": (minimal() | {"estimates": []}, 80),
    "what was read": (
        minimal() | {"positive": "spam", "reading": ["labels: column 'gold' (20 of 1,020 rows)"]},
        120,
    ),
    "metrics that do not apply": (not_applicable(), 80),
}  # fmt: skip


def test_tables_of_estimates() -> None:
    check("report/tables", together({name: render_text(*made) for name, made in TABLES.items()}))
    check("report/brief", brief("Estimates", partial(render_text, two_classes(), brief=True)))


def thresholds() -> dict[str, Report]:
    met = THRESHOLDS["met"]()
    more = {
        "thresholds": [0.2, 0.4, 0.6, 0.8], "probability": [0.5, 0.92, 0.95, 0.97],
        "best": 0.8, "best_probability": 0.97, "met": True, "by_threshold": {},
    }  # fmt: skip

    def interval_of(value: float) -> dict[str, float]:
        return {"value": value, "low": value / 2, "high": 2 * value}

    clinical = met | more | {
        "conditions": ["specificity >= 0.95"], "choice": "sensitivity",
        "rates": {"sensitivity": interval_of(0.4), "specificity": interval_of(0.48)},
    }  # fmt: skip
    costs = met | more | {
        "conditions": ["cost < that of calling all or none positive"], "choice": "cost",
        "rates": {"cost": interval_of(0.03), "cost_of_all": interval_of(0.4),
                  "cost_of_none": interval_of(0.2)},
        "prevalence": 0.03, "prevalence_here": interval_of(0.3),
    }  # fmt: skip
    return {
        "no threshold at all": met | {
            "best": None, "best_probability": 0.0, "met": False, "rates": {}, "thresholds": [],
            "probability": [],
        },
        "rates that are asked for come first": threshold(
            World(), 0.3, 0.3, conditions=["tpr >= 0.3", "fpr <= .2", "npv >= .9"]
        ),
        "the one of the highest recall": met | more | {"choice": "recall", "best": 0.6},
        "sensitivity at a specificity": clinical,
        "the least cost at another prevalence": costs,
        "calling none positive costs less": costs
        | {"rates": costs["rates"] | {"cost_of_none": interval_of(0.01)}, "prevalence": None},
        "a lower threshold finds more": met | more,
        "the lowest is the best": met | more | {"best": 0.4, "best_probability": 0.92},
        "not sure enough for a lower one": met | more
        | {"probability": [0.1, 0.2, 0.3, 0.6], "best_probability": 0.6},
    }  # fmt: skip


def test_answers_about_thresholds() -> None:
    check(
        "report/thresholds",
        together({name: text_of("threshold", made) for name, made in thresholds().items()}),
    )


def test_signs_of_losses_and_gains_of_calibrations() -> None:
    texts = {}
    for el, cl, dl in ((-0.03, 0.01, -0.04), (0.05, -0.01, 0.06), (0.05, 0.06, -0.01),
                       (0.05, 0.02, 0.03)):  # fmt: skip
        report = copy.deepcopy(plain())
        for row in report["estimates"]:
            losses = {"EL": el, "CL": cl, "DL": dl}
            if (row["model"], row["group"]) == ("good", None) and row["metric"] in losses:
                row["value"] = losses[row["metric"]]
        texts[f"EL {el}, CL {cl}, DL {dl}"] = text_of("annotations", report).split("\nHow far")[0]
    for name, made, loss, after in (
        ("gains", alpha(), "L_disagreement", -0.01), ("no gain", matrix(), "EL", 1.0),
        ("no gain of one", temperature(), "EL", 1.0),
    ):  # fmt: skip
        report = copy.deepcopy(made)
        for number, entry in enumerate(report["calibrations"], 1):
            entry["after"][loss] = entry["before"][loss] + number * after
        source = render_page("calibration", report)
        texts[name] = Page(source[source.index("<h1>") : source.index("</header>")]).lines
    check("report/signs", together(texts))


LABELS_NEEDED: list[tuple[str, int | None, int | None, int | None]] = [
    ("settled", 0, 0, 0), ("tied", None, None, None), ("unknown", None, None, None),
    ("open", 30, 10, 20_000), ("open", 1, 1, 1), ("open", 500, 10, 900),
    ("open", 20_000, 10, 90_000),
]  # fmt: skip


def led_by_one(labels: Report) -> Report:
    return {
        "metric": "f1",
        "standings": [{"model": "one"}, {"model": "two"}],
        "labels_needed": labels,
    }


def test_what_would_settle_it_and_who_leads() -> None:
    lines = []
    for case in LABELS_NEEDED:
        labels = dict(zip(("status", "more", "low", "high"), case, strict=True))
        sentence = settling_sentence(led_by_one(labels), 100)
        lines.append(f"{case}: {labels_cell(labels)}; {unmarked(sentence)}")
    for second in (0.3, 0.8, 0.05):
        rows = (
            Row("one", 0.9, 0.8, 1.0, "ok", 0.7),
            Row("two", 0.8, 0.7, 0.9, "ok", second),
        )
        lines.append(unmarked(said_of(Block("f1", None, rows, 0.95, direction=1))))
    check("report/settling", "\n".join(lines))


def test_groupings_in_words() -> None:
    groupings: dict[str, tuple[list[list[str]], float]] = {
        "two groups": ([["a"], ["b", "c", "d"], ["e", "f"]], 0.5),
        "all alone": ([["a"], ["b"]], 0.5),
        "unsettled": ([["a", "b"]], 0.01),
        "large": ([[str(k) for k in range(40)]], 0.5),
    }
    texts = {}
    for name, (blocks, share) in groupings.items():
        diagnostics = {"partition": blocks, "partition_probability": share}
        found = partition({"diagnostics": diagnostics | {"classifier_similarity": [[1.0]]}})
        assert found is not None
        texts[name] = "\n".join([found[0], *found[1]])
    check("report/groupings", together(texts))
    assert partition({"diagnostics": {}}) is None


def test_a_change_of_words_is_seen_until_it_is_renewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "STORED", tmp_path)
    monkeypatch.delenv("FEWLABELS_RENEW", raising=False)
    with pytest.raises(AssertionError, match="nothing stored as a/b"):
        check("a/b", "two words")
    monkeypatch.setenv("FEWLABELS_RENEW", "1")
    check("a/b", "two words")
    monkeypatch.delenv("FEWLABELS_RENEW")
    check("a/b", "two words\n")
    with pytest.raises(AssertionError):
        check("a/b", "other words")
