"""Contestants ranked by comparisons, as text and as a page: who leads, everyone, judges."""

from __future__ import annotations

from collections.abc import Iterator

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
    few = any(row.status == "few-labels" for row in blocks(report)[0].rows)
    said = "no two contestants have a win rate" if entry is None else standing_sentence(entry)
    return said + "; few-labels, see the warnings" * few


def sentences(report: Report) -> Iterator[str]:
    """What the verdicts of each judge, and of people, are worth, and what to ask people next."""
    for one in (*report["judges"], *([report["people"]] if report["n_labeled"] else ())):
        who = escape_control(one["judge"])
        name = who if one is report["people"] else f"judge {who}"
        said = f"{name}: {plural(one['n_verdicts'], 'verdict')}"
        if one["agreement"]["value"] is not None:
            said += f", as people would {with_interval(one['agreement'])}"
        if one["n_both_orders"]:
            said += (
                f"; of {plural(one['n_both_orders'], 'comparison')} in both orders it judged "
                f"{one['consistent']:.0%} alike"
            )
        if one["p_value"] is not None:
            p = one["p_value"]
            known = "p < .001" if p < 0.001 else f"p = {p:.3f}"
            matters = "the order matters" if p < _SURE else "no sign that the order matters"
            said += (
                f"; {matters}: where it is no tie, the first of two equals wins "
                f"{with_interval(one['order'])} ({known})"
            )
        yield said
    if report["next"]:
        rows = ", ".join(str(one["row"] + 1) for one in report["next"])
        gain = sum(one["gain"] for one in report["next"])
        yield (
            f"people should judge next: rows {rows} (their verdicts would likely take {gain:.0%} "
            "off the variance of the win rates)"
        )


def _cells(report: Report) -> list[list[str]]:
    """A row per contestant, the best first; headings first."""
    rates, _, elo = blocks(report)
    strengths = {row.model: row for row in elo.rows}
    alike = letters(report["comparison"].get("win_rate") or {"alike": ()})
    own = report["alone"].get("judges alone", {})
    level = f"[{percent(report['confidence_level'])}]"
    rows = [["", "win rate", level, "P(best)", "alike", "Elo", "", "status", "judges"]]
    for row in rates.ranked():
        value, ends = rates.figures(row)
        score, strength = strengths[row.model], ["-", ""]
        if score.value is not None:
            strength = [f"{score.value:.0f}", f"[{score.low:.0f}, {score.high:.0f}]"]
        status = row.status if score.status in ("ok", row.status) else f"Elo: {score.status}"
        said = rates.write(own[row.model]["value"]) if own else ""
        rows.append([
            row.model, value, ends, probability(row.best), alike.get(row.model, ""), *strength,
            "" if status == "ok" else status, said,
        ])  # fmt: skip
    # Columns that say nothing are left out.
    kept = [i for i in range(9) if i < 7 or any(row[i] for row in rows[1:])]
    return [[row[i] for i in kept] for row in rows]


def render_ranking(report: Report, width: int = 80) -> str:
    """Who leads, a row per contestant, then what judges' verdicts are worth and what comes next.

    `report` is the dictionary of `Ranking.to_dict`.
    """
    width = max(width, NARROWEST)
    n, labeled = report["n_items"], report["n_labeled"]
    head = (
        f"{plural(n, 'comparison')} of {plural(len(report['models']), 'contestant')}, "
        f"{count(labeled)} judged by people; {plural(len(report['judges']), 'judge')}"
    )
    lines = [style(line, "title") for line in wrap(head, width)]
    for line in report["reading"]:
        lines += wrap(f"  {escape_control(line)}", width, "  ")
    lines += ["", *wrap(escape_control(answer(report)), width), ""]
    lines += fitted(_cells(report), "lrlrlrllr", width, most=28)
    lines += ["", *(line for s in sentences(report) for line in wrap(f"- {s}", width, "  "))]
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
        sentences=[*sentences(report)],
        who="Contestant",
    )
