"""Backtests: how far off each method was from so few labels, and how sure it was of itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any

from fewlabels.report.blocks import Report, grouped
from fewlabels.report.document import (
    Document,
    Para,
    Section,
    Table,
    counts,
    name,
    plain,
    sentence,
    strong,
)
from fewlabels.report.words import (
    count,
    enumerated,
    metric_name,
    number_format,
    percent,
    plural,
    with_interval,
)

_HEAD = ("method", "labels", "error", "signed", "covered", "width")
_MOST_PRINTED = 12
"""Tables of a text; a page has all."""


def answer(report: Report) -> Iterator[str]:
    """The errors and coverage by the first metric, with the fewest and the most labels."""
    (metric, _, model), rows = next(iter(_by(report).items()))
    write = number_format(row["error"] for row in rows)
    metric = plain(metric_name(metric))
    whose = f"{metric}, on average over {plural(len(report['models']), 'classifier')}: "
    if model is not None:
        whose = f"{metric} of {name(model)}: "
    for n in dict.fromkeys((report["labels"][0], report["labels"][-1])):
        each = [
            f"{write(row['error'])} with {row['method']}"
            + ("" if row["coverage"] is None else f" (truth in {row['coverage']:.0%} of intervals)")
            for row in rows
            if row["n_labeled"] == n
        ]
        yield sentence(f"{whose}from {count(n)} labels it is off by {enumerated(each)}")
        whose = ""


def _by(report: Report) -> dict[Any, list[Mapping[str, Any]]]:
    """Rows by metric, group and classifier, or their mean."""
    return grouped(report["rows"], itemgetter("metric", "group", "model"))


def _tables(report: Report) -> Iterator[Section]:
    """A section for each metric and group, with a table for each classifier and for their mean.

    Each has a row for each number of labels and method; the error also as a share of the largest.
    """
    truth = {(t["metric"], t["group"], t["model"]): t for t in report["truth"]}
    errors = grouped(report["rows"], itemgetter("metric", "group"))
    sections: dict[Any, list[Section]] = {}
    for place, ((*where, model), rows) in enumerate(_by(report).items()):
        write = number_format(row[key] for row in rows for key in ("error", "bias", "width"))
        cells = [
            [
                row["method"], count(row["n_labeled"]), strong(write(row["error"])),
                write(row["bias"]),
                "-" if row["coverage"] is None else f"{100 * row['coverage']:.0f}%",
                write(row["width"]),
            ]
            for row in rows
        ]  # fmt: skip
        largest = max(row["error"] or 0.0 for row in errors[*where]) or 1.0
        who = f"Mean over {plural(len(report['models']), 'classifier')}"
        if model is not None:
            known = truth.get((*where, model))
            who = name(model) + (f", truth {with_interval(known)}" if known else "")
        caption = f"{where[0]} of {'all' if model is None else model}"
        table = Table(
            _HEAD,
            cells,
            caption,
            bars=[row["error"] for row in rows],
            full=largest,
            bar_at=2,
            widest=40,
            style="next",
        )
        sections.setdefault((*where,), []).append(
            Section(who, [table], on="" if place < _MOST_PRINTED else "page")
        )
    for (metric, group), inner in sections.items():
        yield Section(metric if group is None else f"{metric}, {name(group)}", inner)
    left = sum(map(len, sections.values())) - _MOST_PRINTED
    if left > 0:
        more = [Para("The JSON and the HTML report have all.")]
        yield Section(f"... {plural(left, 'more table')}", more, on="text")


def document(report: Report) -> Document:
    """All that is said of `Backtest.to_dict`."""
    n, level = count(report["n_items"]), percent(report["confidence_level"])
    made, requested = report["n_runs"], report["n_asked"]
    whom = (
        f"The {level} intervals are for these items, whose truth is known exactly. A method that "
        f"is right about its own errors covers it in {level} of the runs."
        if report["estimand"] == "sample"
        else f"The {level} intervals are for the population, and so hold the truth of these items "
        f"more often than in {level} of the runs."
    )
    terms = {
        "Error": "How far the estimate is from the truth, on average over the runs, whichever way.",
        "Signed": "The same with its sign: what is left of it is on one side in all runs.",
        "Covered": f"In how many runs the {level} interval holds the truth.",
        "Width": "How wide the interval is, on average. Of two methods that cover as often, the "
        "narrower says more.",
    }
    return Document(
        "How far off are estimates from few labels?",
        report,
        counts(report) | {
            "Runs": made if made == requested else f"{made} of {requested}",
            "Labels left": enumerated([*map(count, report["labels"])]),
        },
        answer=[*answer(report)],
        body=[
            *_tables(report),
            Section("What the truth is", [
                Para(f"The truth is the metric on all {n} labels. It is of these items: what it "
                     "would be for the population that they come from is known within its "
                     f"interval only. {whom}"),
                Para("All runs draw from the same items, so they are alike: how much they differ "
                     "among each other is not a standard error of what is shown."),
            ]),
        ],
        terms=terms,
        explained=True,
        foot=[f"seed {report['seed']}, fewlabels {report['fewlabels']}"],
    )  # fmt: skip
