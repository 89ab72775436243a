"""Contestants ranked by comparisons, as text and as a page: who leads, everyone, judges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fewlabels.report.blocks import Report, blocks, common_axis
from fewlabels.report.comparison import letters, standing_sentence
from fewlabels.report.html import render
from fewlabels.report.words import (
    NARROWEST,
    as_text,
    count,
    escape_control,
    fitted,
    made_by,
    number_format,
    percent,
    plural,
    probability,
    style,
    warning_lines,
    with_interval,
    wrap,
)

_SURE = 0.05
"""Below this probability an order effect is told of as one."""


def answer(report: Report) -> str:
    """Who leads by win rate, and who may be the best as well."""
    entry = report["comparison"].get("win_rate")
    return "no two contestants have a win rate" if entry is None else standing_sentence(entry)


def order_sentence(who: str, order: Mapping[str, Any] | None) -> str | None:
    """What the order of presentation does to somebody's verdicts; None where nothing shows it."""
    if order is None:
        return None
    p = order["p_value"]
    shown = with_interval(order, number_format([order["value"], order["low"], order["high"]]))
    known = "" if p is None else f" (p {'< .001' if p < 0.001 else f'= {p:.3f}'})"
    if p is None or p >= _SURE:
        return f"{who}: no sign that the order matters; the first of two equals wins {shown}{known}"
    return f"{who}: the order matters: the first of two equals wins {shown}{known}"


def judge_sentences(report: Report) -> Iterator[str]:
    """What the verdicts of each judge, and of people, are worth."""
    for judge in report["judges"]:
        name, agreed = f"judge {escape_control(judge['judge'])}", judge["agreement"]
        said = f"{name}: {plural(judge['n_verdicts'], 'verdict')}"
        if agreed["value"] is not None:
            write = number_format([agreed[end] for end in ("value", "low", "high")])
            said += f", as people would {with_interval(agreed, write)}"
        if judge["n_both_orders"]:
            said += (
                f"; of {plural(judge['n_both_orders'], 'comparison')} in both orders it judged "
                f"{judge['consistent']:.0%} alike"
            )
        yield said
        order = order_sentence(name, judge["order"])
        if order is not None:
            yield order
    if report["judges"] and (people := order_sentence("people", report["order"])) is not None:
        yield people
    elif not report["judges"] and (own := order_sentence("verdicts", report["order"])) is not None:
        yield own


def _cells(report: Report) -> list[list[str]]:
    """A row per contestant, the best first; headings first."""
    rates, _, elo = blocks(report)
    strengths = {row.model: row for row in elo.rows}
    alike = letters(report["comparison"].get("win_rate") or {"alike": ()})
    own = {entry["model"]: entry for entry in report["alone"].get("judges at their word", ())}
    heads = ["", "win rate", f"[{percent(report['confidence_level'])}]", "P(best)", "alike"]
    heads += ["Elo", "", "status"] + ["judges"] * bool(own)
    rows = [heads]
    for row in rates.ranked():
        elo_row = strengths[row.model]
        value, ends = rates.figures(row)
        strength = ["-", ""]
        if elo_row.value is not None:
            strength = [f"{elo_row.value:.0f}", f"[{elo_row.low:.0f}, {elo_row.high:.0f}]"]
        said = [rates.write(own[row.model]["value"])] if own else []
        status = row.status if elo_row.status in ("ok", row.status) else f"Elo: {elo_row.status}"
        rows.append([
            row.model, value, ends, probability(row.best), alike.get(row.model, ""), *strength,
            "" if status == "ok" else status, *said,
        ])  # fmt: skip
    if all(not row[7] for row in rows[1:]):
        rows = [[*row[:7], *row[8:]] for row in rows]
    return rows


def next_lines(report: Report) -> list[str]:
    """The comparisons that people should judge next, and what they would tell."""
    if not report["next"]:
        return []
    rows = ", ".join(str(one["row"] + 1) for one in report["next"])
    gain = sum(one["gain"] for one in report["next"])
    return [
        f"people should judge next: rows {rows} (their verdicts would likely take {gain:.0%} off "
        "the variance of the win rates)"
    ]


def _head(report: Report) -> str:
    n, labeled = report["n_items"], report["n_labeled"]
    return (
        f"{plural(n, 'comparison')} of {plural(len(report['models']), 'contestant')}, "
        f"{count(labeled)} judged by people; {plural(len(report['judges']), 'judge')}"
    )


def render_ranking(report: Report, width: int = 80) -> str:
    """Who leads, a row per contestant, then what judges' verdicts are worth and what comes next.

    `report` is the dictionary of `Ranking.to_dict`.
    """
    width = max(width, NARROWEST)
    lines = [style(line, "title") for line in wrap(_head(report), width)]
    for line in report["reading"]:
        lines += wrap(f"  {escape_control(line)}", width, "  ")
    lines += ["", *wrap(escape_control(answer(report)), width), ""]
    lines += fitted(_cells(report), "lrlrlrllr", width, most=28)
    sentences = [*judge_sentences(report), *next_lines(report)]
    if sentences:
        lines += ["", *(line for s in sentences for line in wrap(f"- {s}", width, "  "))]
    foot = (
        f"{percent(report['confidence_level'])} intervals for the population that the comparisons "
        f"come from; who shares a letter under alike cannot be told apart; {made_by(report)}"
    )
    lines += ["", *(style(line, "soft") for line in wrap(foot, width))]
    return as_text([*lines, *warning_lines(report, width)])


def render_ranking_html(report: Report, *, fragment: bool = False) -> str:
    """The same as a page; `report` is the dictionary of `Ranking.to_dict`."""
    shown = blocks(report)
    found = [block for block in shown if any(row.value is not None for row in block.rows)]
    return render(
        "ranking.html.j2",
        () if fragment else None,
        report=report,
        answer=answer(report),
        metrics=[(block, common_axis([block])) for block in found],
        table=_cells(report),
        sentences=[*judge_sentences(report)],
        next=next_lines(report),
        who="Contestant",
    )
