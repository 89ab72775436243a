"""Shift between labeled and unlabeled items, as text."""

from __future__ import annotations

from typing import Any

from fewlabels.report.blocks import Report
from fewlabels.report.words import (
    NARROWEST,
    aligned,
    as_text,
    classes_text,
    clean,
    fitted,
    percent,
    plural,
    probability,
    warning_lines,
    wrap,
)

_MOST_DIFFERENCES = 6
_MOST_CLASSES = 12


def render_shift(report: Report, width: int = 80) -> str:
    """The answer, the tests behind it, what differs, and the classes' frequencies.

    `report` is the dictionary of `Shift.to_dict`.
    """
    width = max(width, NARROWEST)
    compared, label, n = report["compared"], report["label_shift"], report["n_labeled"]
    sizes = f"{plural(report['n_items'], 'item')}, {n:,} labeled"
    if compared["labeled"] + compared["unlabeled"] < report["n_items"]:
        sizes += f"; {compared['labeled']:,} and {compared['unlabeled']:,} of them are compared"
    sizes += f"; {classes_text(report)}; method {clean(report['method'])}, seed {report['seed']}"
    tests = [
        ["Test", "p-value"],
        ["labeled items are a random sample of all", _p(report["p_value"])],
        ["classes are equally frequent in both", _p(label["p_value"])],
        ["class frequencies are all that differs", _p(label["fit_p_value"])],
    ]
    lines = [*wrap(sizes, width), "", *wrap(report["statement"], width), "", *aligned(tests, "lr")]

    found = report["differences"]
    if found:
        lines += ["", "What differs most (p-values adjusted for all that is looked at)"]
    else:
        lines += ["", "No trait of the items differs: all have the same scores."]
    for one in found[:_MOST_DIFFERENCES]:
        lines += wrap(f"  {_p(one['p_value']):>5}  {one['words']}", width, " " * 9)

    frequencies = (
        "Class frequencies, if P(scores | class) is the same for labeled and unlabeled items"
    )
    interval = f"[{percent(report['confidence_level'])} interval]"
    rows = [["class", "labeled", "unlabeled", interval, "weight", "BBSE", "RLLS"]]
    classes = label["classes"]
    for one in classes[:_MOST_CLASSES]:
        ends = f"[{probability(one['low'])}, {probability(one['high'])}]"
        shares = [probability(one["labeled"]), probability(one["unlabeled"]), ends]
        weights = [f"{one[key]:.2f}" for key in ("weight", "bbse", "rlls")]
        rows.append([str(one["class"]), *shares, *weights])
    lines += ["", *wrap(frequencies, width), *fitted(rows, "lr", width, most=16)]
    if len(classes) > _MOST_CLASSES:
        lines.append(f"  and {len(classes) - _MOST_CLASSES} more classes; --json has them all")

    worth: dict[str, Any] = report["effective_labels"]
    sums = (
        f"Weighted by their scores (--shift covariate) the {n:,} labels are worth "
        f"{worth['covariate']:.1f} of equal weight, by their classes (--shift label) "
        f"{worth['label']:.1f}."
    )
    return as_text([*lines, "", *wrap(sums, width), *warning_lines(report, width)])


def _p(value: float | None) -> str:
    if value is None:
        return "-"
    return "<.001" if value < 0.001 else f"{value:.3f}"
