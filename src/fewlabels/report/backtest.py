"""Backtests in words, as text and as a page: how far off each method was, and how sure it was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fewlabels.report.blocks import Report
from fewlabels.report.html import render
from fewlabels.report.words import (
    NARROWEST,
    as_text,
    classes_text,
    count,
    enumerated,
    escape_control,
    fitted,
    number_format,
    percent,
    plural,
    style,
    warning_lines,
    with_interval,
    wrap,
)

MEAN = "all of them"
"""The name of the mean over all classifiers."""

HEADS = ("labels", "method", "error", "signed", "covered", "width")
_MOST_PRINTED = 12

SHARED = (
    "All runs draw from the same items, so they are alike: how much they differ among each other "
    "is not a standard error of what is shown."
)


@dataclass(frozen=True)
class Line:
    """Results of a method with so many labels, in words; the error as a share of the largest."""

    cells: tuple[str, ...]
    share: float | None


@dataclass(frozen=True)
class Table:
    """One classifier, or the mean of all, by one metric in one group."""

    model: str | None
    metric: str
    group: str | None
    truth: str
    lines: tuple[Line, ...]

    @property
    def title(self) -> str:
        """The metric, and the group where it is one."""
        return self.metric if self.group is None else f"{self.metric}, {self.group}"

    @property
    def who(self) -> str:
        """The classifier, or that it is their mean."""
        return MEAN if self.model is None else self.model


def tables(report: Report) -> Iterator[Table]:
    """The rows of a report, a table per classifier, metric and group."""
    truth = {(t["model"], t["metric"], t["group"]): t for t in report["truth"]}
    by_row: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in report["rows"]:
        by_row.setdefault((row["model"], row["metric"], row["group"]), []).append(row)
    largest = {
        (metric, group): max(
            r["error"] or 0.0
            for key, rows in by_row.items()
            if key[1:] == (metric, group)
            for r in rows
        )
        for _, metric, group in by_row
    }
    for (model, metric, group), rows in by_row.items():
        write = number_format([row[key] for row in rows for key in ("error", "bias", "width")])
        true_value = truth.get((model, metric, group))
        yield Table(
            model,
            metric,
            group,
            "" if true_value is None else with_interval(true_value),
            tuple(
                Line(
                    (
                        count(row["n_labeled"]),
                        row["method"],
                        *(write(row[key]) for key in ("error", "bias")),
                        "-" if row["coverage"] is None else f"{100 * row['coverage']:.0f}%",
                        write(row["width"]),
                    ),
                    None
                    if row["error"] is None
                    else row["error"] / (largest[metric, group] or 1.0),
                )
                for row in rows
            ),
        )


def answer(report: Report) -> str:
    """The errors and coverage by the first metric, with the fewest and the most labels."""
    first = report["rows"][0]
    rows = [
        row
        for row in report["rows"]
        if all(row[key] == first[key] for key in ("model", "metric", "group"))
    ]
    write = number_format([row["error"] for row in rows])
    clauses = []
    for n in dict.fromkeys((report["labels"][0], report["labels"][-1])):
        each = [
            f"{write(row['error'])} with {row['method']}"
            + ("" if row["coverage"] is None else f" (truth in {row['coverage']:.0%} of intervals)")
            for row in rows
            if row["n_labeled"] == n
        ]
        clauses.append(f"from {count(n)} labels it is off by {enumerated(each)}")
    whose = "" if first["model"] is None else f" of {first['model']}"
    mean = f", on average over {plural(len(report['models']), 'classifier')}" * (not whose)
    return f"{first['metric']}{whose}{mean}: {'; '.join(clauses)}"


def notes(report: Report) -> tuple[str, ...]:
    """What the truth is, what the intervals cover, and that runs share the items."""
    n, level = count(report["n_items"]), percent(report["confidence_level"])
    whom = (
        f"The {level} intervals are for these items, whose truth is known exactly; a method that "
        f"is right about its own errors covers it in {level} of the runs."
        if report["estimand"] == "sample"
        else f"The {level} intervals are for the population, and so hold the truth of these items "
        f"more often than in {level} of the runs."
    )
    return (
        f"The truth is the metric on all {n} labels. It is of these items: what it would be for "
        "the population that they come from is known within its interval only. " + whom,
        SHARED,
    )


def _sizes(report: Report) -> str:
    made, requested = report["n_runs"], report["n_asked"]
    runs = plural(made, "run") if made == requested else f"{made} of {plural(requested, 'run')}"
    return (
        f"{plural(report['n_items'], 'item')}, all labeled; {classes_text(report)}; {runs}, in "
        f"which all but {enumerated([count(n) for n in report['labels']])} labels are hidden; seed "
        f"{report['seed']}, fewlabels {report['fewlabels']}"
    )


def render_backtest(report: Report, width: int = 80) -> str:
    """The answer, then error, coverage and width by metric, classifier, labels and method.

    `report` is the dictionary of `Backtest.to_dict`.
    """
    width = max(width, NARROWEST)
    lines = [style(line, "title") for line in wrap(_sizes(report), width)]
    for line in report["reading"]:
        lines += wrap(f"  {escape_control(line)}", width, "  ")
    lines += ["", *wrap(answer(report), width)]
    every = list(tables(report))
    for place, table in enumerate(every[:_MOST_PRINTED]):
        if place == 0 or every[place - 1].title != table.title:
            lines += ["", style(escape_control(table.title), "title")]
        truth = f", truth {table.truth}" * bool(table.truth)
        lines += wrap(f"{table.who}{truth}", width)
        rows = [(line.cells[1], line.cells[0], *line.cells[2:]) for line in table.lines]
        lines += fitted([(HEADS[1], HEADS[0], *HEADS[2:]), *rows], "lr", width, most=40)
    if len(every) > _MOST_PRINTED:
        more = plural(len(every) - _MOST_PRINTED, "more table")
        lines += ["", *wrap(f"... {more}: the JSON and the HTML report have all", width)]
    for note in ("Error: mean absolute; signed: mean; covered: share of runs.", *notes(report)):
        lines += ["", *wrap(note, width)]
    return as_text([*lines, *warning_lines(report, width)])


def render_backtest_html(report: Report, *, fragment: bool = False) -> str:
    """The same as a page; `report` is the dictionary of `Backtest.to_dict`."""
    by_title: dict[str, list[Table]] = {}
    for table in tables(report):
        by_title.setdefault(table.title, []).append(table)
    return render(
        "backtest.html.j2",
        () if fragment else None,
        report=report,
        answer=answer(report),
        by_title=by_title,
        notes=notes(report),
    )
