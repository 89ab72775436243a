"""Calibration curves in words, as text and as a page: errors, tests, and the height of each bin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from fewlabels.report.axis import Profile, profile
from fewlabels.report.blocks import Report
from fewlabels.report.html import render, within_budget
from fewlabels.report.words import (
    NARROWEST,
    as_text,
    classes_text,
    count,
    escape_control,
    fit,
    fitted,
    number_format,
    percent,
    plural,
    style,
    warning_lines,
    with_interval,
    wrap,
)

ENOUGH = 5
"""With fewer labels in a bin a diagram does not show their frequency, whose interval says little.
"""

SURE = 0.05
"""Below this p-value labels do not look like draws from the probabilities."""

NORMS = {
    "l1": "the mean gap between probability and frequency",
    "l2": "the root of the mean squared gap between probability and frequency",
    "max": "the largest gap between probability and frequency in a bin",
}

TERMS = {
    "all items": "frequencies as the method infers them for all items, labeled or not, with "
    "intervals for all that is not known.",
    "labels only": "the labeled items in the same bins. Noise makes gaps, so this error is too "
    "large, the more so the fewer labels there are.",
    "debiased": "the same less what noise adds to it (Kumar, Liang, Ma 2019); 0 where it is no "
    "more than that.",
    "p": "how probable labels this far from the probabilities are if these are right (Cox 1958): "
    "small where they are too high, too low, too extreme or too timid. With few labels it misses "
    "much: a large p is no proof.",
}
"""What the columns are."""


class Curve(NamedTuple):
    """The curve of an event by one classifier: heading, axis, table and diagram."""

    model: str
    heading: str
    of: str
    table: list[list[str]]
    plots: Profile


def curves(report: Report) -> list[Curve]:
    """The curves of a report, classifier by classifier."""
    by: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for one in report["bins"]:
        by.setdefault((one["model"], one["event"]), []).append(one)
    write, out = number_format([1.0]), []
    for (model, event), bins in by.items():
        what, of = event, "its probability"
        if report["kind"] != "top-label":
            what, of = f"it is {escape_control(event)}", f"P({escape_control(event)})"
        table = [["probability", "items", "mean", "all items", "labels", "labels only"]]
        drawn = []
        for one in bins:
            labeled = [one[f"labeled_{end}"] for end in ("observed", "low", "high")]
            table.append([
                f"{write(one['start'])}-{write(one['end'])}", count(one["n_items"]),
                write(one["predicted"]), _cell(one["observed"], one["low"], one["high"]),
                count(one["n_labeled"]), _cell(*labeled),
            ])  # fmt: skip
            drawn.append({
                **one, "from": one["start"], "to": one["end"], "weight": one["share"],
                "labeled": labeled if one["n_labeled"] >= ENOUGH else None,
            })  # fmt: skip
        diagram = {"kind": of, "bins": drawn}
        plots = profile({"model": model, "n_items": 0, "missing": 0, "reliability": diagram})
        heading = f"{escape_control(model)}: how often {what}, by {of}"
        out.append(Curve(model, heading, of, table, plots))
    return out


def _cell(value: float | None, low: float | None, high: float | None) -> str:
    """A frequency with its interval."""
    entry = {"value": value, "low": low, "high": high}
    return "-" if value is None else with_interval(entry, number_format([1.0]))


def errors(report: Report) -> list[list[str]]:
    """Headings, then of each classifier the error of all items, of labels only, debiased, p."""
    write = number_format([row["value"] for row in report["estimates"]])
    rows = [["", "all items", "labels only", "debiased", "p"]]
    for row, alone in zip(report["estimates"], report["from_labels"], strict=True):
        of_labels = with_interval(alone, write) if alone["n_labeled"] else "-"
        debiased = "-" if alone["debiased"] is None else write(alone["debiased"])
        cells = with_interval(row, write), of_labels, debiased, _p_text(alone["p_value"])
        rows.append([row["model"], *cells])
    return rows


def _p_text(p: float | None) -> str:
    """A p-value, as far as 1,999 simulated labelings tell."""
    return "-" if p is None else f"{p:.3f}"


def answer(report: Report) -> Iterator[str]:
    """A sentence for each classifier, the first few."""
    pairs = list(zip(report["estimates"], report["from_labels"], strict=True))
    for row, alone in pairs[:3]:
        name = escape_control(row["model"])
        if row["value"] is None:
            yield f"The error of {name} is not known."
            continue
        p, verdict = alone["p_value"], ""
        if p is not None:
            does = "contradict" if p < SURE else "do not contradict"
            verdict = f"; its labels {does} its probabilities (p = {_p_text(p)})"
        yield f"{name} is off by {with_interval(row)}{verdict}."
    if len(pairs) > 3:
        yield f"{plural(len(pairs) - 3, 'more classifier')} below."


def _bins(report: Report) -> str:
    width = "of equal width" if report["binning"] == "width" else "between quantiles"
    return f"{plural(report['n_bins'], 'bin')} {width}"


def render_calibration_curve(report: Report, width: int = 80) -> str:
    """Errors of calibration, then a table of the bins of each curve.

    `report` is the dictionary of `CalibrationCurves.to_dict`.
    """
    width = max(width, NARROWEST)
    head = (
        f"{count(report['n_items'])} items, {count(report['n_labeled'])} labeled; "
        f"{classes_text(report)}; {report['method']}, {_bins(report)}; seed {report['seed']}, "
        f"fewlabels {report['fewlabels']}"
    )
    lines = [style(line, "title") for line in wrap(head, width)]
    for line in report["reading"]:
        lines += wrap(f"  {escape_control(line)}", width, "  ")
    lines += ["", *wrap(" ".join(answer(report)), width)]
    metric, level = report["estimates"][0]["metric"], percent(report["confidence_level"])
    title = f"Error: {NORMS[report['norm']]} ({metric}, {level} intervals)"
    lines += ["", *(style(line, "title") for line in wrap(title, width))]
    lines += fitted(errors(report), "lr", width)
    for curve in curves(report):
        lines += ["", style(fit(curve.heading, width), "title")]
        lines += fitted(curve.table, "lr", width)
    lines.append("")
    for term, meaning in TERMS.items():
        lines += wrap(f"{term}: {meaning}", width, "  ")
    return as_text([*lines, *warning_lines(report, width)])


def render_calibration_curve_html(report: Report, *, fragment: bool = False) -> str:
    """The same as a page with the diagrams; `report` is that of `CalibrationCurves.to_dict`."""
    every = curves(report)
    limits = (60, 24, 12, 4)

    def page(level: int) -> str:
        return render(
            "calibration_curve.html.j2",
            ("annotations.css", "calibration_curve.css") if fragment else None,
            report=report,
            answer=list(answer(report)),
            norm=NORMS[report["norm"]],
            bins=_bins(report),
            metric=report["estimates"][0]["metric"],
            errors=errors(report),
            curves=every[: limits[level]],
            undrawn=max(len(every) - limits[level], 0),
            enough=ENOUGH,
            meanings=TERMS,
        )

    return within_budget(page, len(limits))
