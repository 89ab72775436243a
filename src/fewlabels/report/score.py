"""Scores of the judged system as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fewlabels.report.words import (
    UNDEFINED,
    as_text,
    clean,
    count,
    fitted,
    ink,
    number_format,
    percent,
    plural,
    warning_lines,
    with_interval,
    wrap,
)

NARROWEST = 60
_UNCORRECTED = "uncorrected"


def render_score(report: Mapping[str, Any], width: int = 80) -> str:
    """A table per criterion: by which way, by which judge, value and interval.

    `report` is the dictionary of `Scores.to_dict`.
    """
    width = max(width, NARROWEST)
    lines: list[str] = []
    for one in report["criteria"]:
        lines += [*([""] if lines else []), *_criterion(one, report, width)]
    level = percent(report["confidence_level"])
    foot = (
        f"{level} intervals for the population that the items come from; seed {report['seed']}, "
        f"fewlabels {report['fewlabels']}. The uncorrected rate is the judge's own, whose interval "
        "ignores its mistakes."
    )
    return as_text([*lines, "", *wrap(foot, width), *warning_lines(report, width)])


def _criterion(one: Mapping[str, Any], report: Mapping[str, Any], width: int) -> Iterator[str]:
    named = "" if one["criterion"] is None else f"{clean(one['criterion'])}: "
    head = f"{named}{clean(one['what'])}; {plural(one['n_items'], 'item')}, "
    yield from (
        ink(line, "title") for line in wrap(head + f"{count(one['n_labeled'])} labeled", width)
    )
    for line in one["reading"]:
        yield from wrap(f"  {clean(line)}", width, "  ")
    write = number_format([row[key] for row in one["rows"] for key in ("value", "low", "high")])
    rows = [["", "value", f"[{percent(report['confidence_level'])} interval]", ""]]
    for row in one["rows"]:
        who = row["way"] if row["judge"] is None else f"{row['way']}, {row['judge']}"
        ends = f"[{write(row['low'])}, {write(row['high'])}]"
        status = "" if row["status"] == "ok" or row["way"] == _UNCORRECTED else row["status"]
        rows.append([who, write(row["value"]), ends, status])
    yield ""
    yield from fitted(rows, "lrl", width, least=20, most=44)
    yield ""
    for judge in one["judges"]:
        yield from wrap(_help(judge), width, "  ")
    if one["people"] is not None:
        yield from wrap(_people(one), width, "  ")


def _help(judge: Mapping[str, Any]) -> str:
    name, rho, n = clean(judge["judge"]), judge["correlation"], judge["n_labeled"]
    if rho is None:
        return (
            f"{name}: no correlation with the labels can be told from {plural(n, 'labeled item')}"
        )
    above = "above" if judge["helps"] else "not above"
    return (
        f"{name}: correlation with the labels {rho:.2f}, {above} the bound {judge['bound']:.2f} "
        f"(1/sqrt(n - 2), n = {n}): it {'helps' if judge['helps'] else 'cannot help'}"
    )


def _people(one: Mapping[str, Any]) -> str:
    people = one["people"]

    def figures(name: str) -> str:
        return with_interval(people[name], lambda n: UNDEFINED if n is None else f"{n:.2f}")

    said = ", ".join(f"{clean(n)} {v:.2f}" for n, v in one["judge_pairs"].items())
    return (
        f"people among themselves ({plural(people['n_items'], 'item')} with several labels): "
        f"Krippendorff's alpha ({people['scale']}) {figures('alpha')}, Fleiss' kappa "
        f"{figures('fleiss_kappa')}; two of them agree on {figures('pairs')} of the items"
        + (f", a judge and one of them on {said}" if said else "")
    )
