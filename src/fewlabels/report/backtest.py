"""Backtests: how far off each method was from so few labels, and how sure it was of itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fewlabels.report.blocks import Report
from fewlabels.report.document import Document, Para, Section, Table, name, sentence, strong
from fewlabels.report.words import (
    classes_text,
    count,
    enumerated,
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
    first = report["rows"][0]
    rows = [
        row
        for row in report["rows"]
        if all(row[key] == first[key] for key in ("model", "metric", "group"))
    ]
    write = number_format([row["error"] for row in rows])
    whose = f"{first['metric']}, on average over {plural(len(report['models']), 'classifier')}: "
    if first["model"] is not None:
        whose = f"{first['metric']} of {name(first['model'])}: "
    for n in dict.fromkeys((report["labels"][0], report["labels"][-1])):
        each = [
            f"{write(row['error'])} with {row['method']}"
            + ("" if row["coverage"] is None else f" (truth in {row['coverage']:.0%} of intervals)")
            for row in rows
            if row["n_labeled"] == n
        ]
        yield sentence(f"{whose}from {count(n)} labels it is off by {enumerated(each)}")
        whose = ""


def _table(report: Report, rows: Sequence[Mapping[str, Any]], largest: float) -> Table:
    """A row for each number of labels and method; the error also as a share of the largest."""
    write = number_format([row[key] for row in rows for key in ("error", "bias", "width")])
    cells = [
        [
            row["method"],
            count(row["n_labeled"]),
            strong(write(row["error"])),
            write(row["bias"]),
            "-" if row["coverage"] is None else f"{100 * row['coverage']:.0f}%",
            write(row["width"]),
        ]
        for row in rows
    ]
    shares = [None if row["error"] is None else row["error"] / largest for row in rows]
    first = rows[0]
    caption = f"{first['metric']} of {'all' if first['model'] is None else first['model']}"
    return Table(_HEAD, cells, caption, bars=shares, bar_at=2, widest=40, style="next")


def _tables(report: Report) -> Iterator[Section]:
    """A section for each metric and group, with a table for each classifier and for their mean."""
    truth = {(t["model"], t["metric"], t["group"]): t for t in report["truth"]}
    by: dict[tuple[Any, ...], dict[Any, list[Mapping[str, Any]]]] = {}
    for row in report["rows"]:
        of_models = by.setdefault((row["metric"], row["group"]), {})
        of_models.setdefault(row["model"], []).append(row)
    printed = 0
    for (metric, group), models in by.items():
        largest = max(row["error"] or 0.0 for rows in models.values() for row in rows) or 1.0
        inner = []
        for model, rows in models.items():
            known = truth.get((model, metric, group))
            who = f"Mean over {plural(len(report['models']), 'classifier')}"
            if model is not None:
                who = name(model) + (f", truth {with_interval(known)}" if known else "")
            inner.append(
                Section(who, [_table(report, rows, largest)],
                        on="" if printed < _MOST_PRINTED else "page")
            )  # fmt: skip
            printed += 1
        yield Section(metric if group is None else f"{metric}, {name(group)}", inner)
    if printed > _MOST_PRINTED:
        more = plural(printed - _MOST_PRINTED, "more table")
        yield Section(f"... {more}", [Para("The JSON and the HTML report have all.")], on="text")


def document(report: Report) -> Document:
    """All that is said of `Backtest.to_dict`."""
    n, level = count(report["n_items"]), percent(report["confidence_level"])
    made, requested = report["n_runs"], report["n_asked"]
    runs = plural(made, "run") if made == requested else f"{made} of {plural(requested, 'run')}"
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
        head=[
            f"{plural(report['n_items'], 'item')}, all labeled; {classes_text(report)}; {runs}, in "
            f"which all but {enumerated([count(k) for k in report['labels']])} labels are hidden; "
            f"seed {report['seed']}, fewlabels {report['fewlabels']}",
            *(f"  {line}" for line in report["reading"]),
        ],
        answer=[*answer(report)],
        facts={
            "Items, all labeled": report["n_items"],
            "Labels left": ", ".join(map(count, report["labels"])),
            "Runs": made if made == requested else f"{made} of {requested}",
            "Classifiers": len(report["models"]),
            "Positive class": None if report.get("positive") is None else name(report["positive"]),
        },
        body=[
            *_tables(report),
            Section(
                "What the truth is",
                [
                    Para(
                        f"The truth is the metric on all {n} labels. It is of these items: what it "
                        "would be for the population that they come from is known within its "
                        f"interval only. {whom}"
                    ),
                    Para(
                        "All runs draw from the same items, so they are alike: how much they "
                        "differ among each other is not a standard error of what is shown."
                    ),
                ],
            ),
        ],
        terms=terms,
        foot=[f"{term}: {meaning}" for term, meaning in terms.items()],
        warnings=report["warnings"],
    )
