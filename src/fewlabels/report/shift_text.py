"""Shift between labeled and unlabeled items, as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fewlabels.report.words import (
    NARROWEST,
    aligned,
    as_text,
    classes_text,
    clean,
    fit,
    percent,
    plural,
    probability,
    warning_lines,
    wrap,
)

_MOST_DIFFERENCES = 6
_MOST_CLASSES = 12
_NAME = 16


def render_shift(report: Mapping[str, Any], width: int = 80) -> str:
    """The answer, the tests behind it, what differs, and the classes' frequencies.

    `report` is the dictionary of `Shift.to_dict`.
    """
    width = max(width, NARROWEST)
    lines = wrap(_sizes(report), width)
    lines += ["", *wrap(report["statement"], width)]
    lines += ["", *_tests(report), "", *_differences(report, width)]
    lines += ["", *_classes(report, width), "", *wrap(_worth(report), width)]
    return as_text([*lines, *warning_lines(report, width)])


def _sizes(report: Mapping[str, Any]) -> str:
    compared = report["compared"]
    out = f"{plural(report['n_items'], 'item')}, {report['n_labeled']:,} labeled"
    seen = compared["labeled"] + compared["unlabeled"]
    if seen < report["n_items"]:
        out += f"; {compared['labeled']:,} and {compared['unlabeled']:,} of them are compared"
    out += f"; {classes_text(report)}"
    return f"{out}; method {clean(report['method'])}, seed {report['seed']}"


def _tests(report: Mapping[str, Any]) -> Iterator[str]:
    label = report["label_shift"]
    rows = [
        ["Test", "p-value"],
        ["labeled items are a random sample of all", _p(report["p_value"])],
        ["classes are equally frequent in both", _p(label["p_value"])],
        ["class frequencies are all that differs", _p(label["fit_p_value"])],
    ]
    return aligned(rows, (False, True))


def _p(value: float | None) -> str:
    if value is None:
        return "-"
    return "<.001" if value < 0.001 else f"{value:.3f}"


def _differences(report: Mapping[str, Any], width: int) -> Iterator[str]:
    found = report["differences"]
    if not found:
        yield "No trait of the items differs: all have the same scores."
        return
    yield "What differs most (p-values adjusted for all that is looked at)"
    for one in found[:_MOST_DIFFERENCES]:
        yield from wrap(f"  {_p(one['p_value']):>5}  {one['words']}", width, " " * 9)


def _classes(report: Mapping[str, Any], width: int) -> Iterator[str]:
    level = percent(report["confidence_level"])
    yield from wrap(
        "Class frequencies, if P(scores | class) is the same for labeled and unlabeled items", width
    )
    rows = [["class", "labeled", "unlabeled", f"[{level} interval]", "weight", "BBSE", "RLLS"]]
    classes = report["label_shift"]["classes"]
    for one in classes[:_MOST_CLASSES]:
        ends = f"[{probability(one['low'])}, {probability(one['high'])}]"
        numbers = [f"{one[key]:.2f}" for key in ("weight", "bbse", "rlls")]
        name = fit(clean(one["class"]), _NAME)
        rows.append([name, probability(one["labeled"]), probability(one["unlabeled"]), ends,
                     *numbers])  # fmt: skip
    yield from aligned(rows, (False, True, True, True, True, True, True))
    if len(classes) > _MOST_CLASSES:
        yield f"  and {len(classes) - _MOST_CLASSES} more classes; --json has them all"


def _worth(report: Mapping[str, Any]) -> str:
    worth = report["effective_labels"]
    n = report["n_labeled"]
    return (
        f"Weighted by their scores (--shift covariate) the {n:,} labels are worth "
        f"{worth['covariate']:.1f} of equal weight, by their classes (--shift label) "
        f"{worth['label']:.1f}."
    )
