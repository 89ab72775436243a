"""Shift between labeled and unlabeled items, as text and as a page."""

from __future__ import annotations

from typing import Any

from fewlabels.report.axis import fit_axis
from fewlabels.report.blocks import Report, Row
from fewlabels.report.html import render
from fewlabels.report.words import (
    NARROWEST,
    aligned,
    as_text,
    classes_text,
    escape_control,
    fitted,
    percent,
    plural,
    probability,
    warning_lines,
    wrap,
)

_MOST_DIFFERENCES = 6
_MOST_CLASSES = 12


TESTS = (
    ("labeled items are a random sample of all", "p_value"),
    ("classes are equally frequent in both", "label_p_value"),
    ("class frequencies are all that differs", "fit_p_value"),
)
"""What is tested, and where its p-value is; a small one speaks against it."""


def _tested(report: Report) -> list[tuple[str, float | None]]:
    label = report["label_shift"]
    values = {
        "p_value": report["p_value"], "label_p_value": label["p_value"],
        "fit_p_value": label["fit_p_value"],
    }  # fmt: skip
    return [(said, values[name]) for said, name in TESTS]


def _worth(report: Report) -> str:
    worth: dict[str, Any] = report["effective_labels"]
    return (
        f"After a correction the {report['n_labeled']:,} labels count like "
        f"{worth['covariate']:.1f} (weighted by scores, --shift covariate) or "
        f"{worth['label']:.1f} (weighted by classes, --shift label)."
    )


def render_shift_html(report: Report, *, fragment: bool = False) -> str:
    """The answer, the tests, what differs, and the classes' frequencies as a page.

    `report` is the dictionary of `Shift.to_dict`.
    """
    answer, _, rest = report["statement"].partition(". ")
    classes = report["label_shift"]["classes"]
    rows = [
        Row(str(one["class"]), one["unlabeled"], one["low"], one["high"], "ok", None,
            one["labeled"])
        for one in classes
    ]  # fmt: skip
    return render(
        "shift.html.j2",
        () if fragment else None,
        report=report,
        answer=answer.rstrip("."),
        rest=rest,
        tests=_tested(report),
        p_value=_p,
        classes=list(zip(rows, (one["weight"] for one in classes), strict=True)),
        axis=fit_axis([n for row in rows for n in row.numbers], (0.0, 1.0)),
        write=probability,
        worth=_worth(report),
    )


def render_shift(report: Report, width: int = 80) -> str:
    """The answer, the tests behind it, what differs, and the classes' frequencies.

    `report` is the dictionary of `Shift.to_dict`.
    """
    width = max(width, NARROWEST)
    compared, label, n = report["compared"], report["label_shift"], report["n_labeled"]
    sizes = f"{plural(report['n_items'], 'item')}, {n:,} labeled"
    if compared["labeled"] + compared["unlabeled"] < report["n_items"]:
        sizes += f"; {compared['labeled']:,} and {compared['unlabeled']:,} of them are compared"
    sizes += f"; {classes_text(report)}; method {escape_control(report['method'])}"
    sizes += f", seed {report['seed']}"
    tests = [["Test", "p-value"], *([title, _p(value)] for title, value in _tested(report))]
    lines = [*wrap(sizes, width), "", *wrap(report["statement"], width), "", *aligned(tests, "lr")]

    traits = report["differences"]
    if traits:
        lines += ["", "What differs most (p-values adjusted for all traits)"]
    else:
        lines += ["", "No trait of the items differs: all have the same scores."]
    for one in traits[:_MOST_DIFFERENCES]:
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

    return as_text([*lines, "", *wrap(_worth(report), width), *warning_lines(report, width)])


def _p(value: float | None) -> str:
    if value is None:
        return "-"
    return "<.001" if value < 0.001 else f"{value:.3f}"
