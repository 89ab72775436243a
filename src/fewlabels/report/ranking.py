"""Contestants ranked by comparisons: who leads, everyone, what judges' verdicts are worth."""

from __future__ import annotations

from collections.abc import Iterator

from fewlabels.report.blocks import Report, blocks, common_axis
from fewlabels.report.comparison import letters, said_of
from fewlabels.report.document import (
    Document,
    Forest,
    Listing,
    Para,
    Section,
    name,
    sentence,
)
from fewlabels.report.words import made_by, percent, plural, with_interval

_SURE = 0.05
"""Below this probability an order effect is told of as one."""

_TERMS = {
    "Win rate": "How often people prefer a contestant to the average opponent. A tie is half a "
    "win, and each opponent counts alike, however often the two met.",
    "Bradley-Terry, Elo": "Strengths that explain who beats whom, with ties and what the order of "
    "presentation does. 400 points of Elo are odds of ten to one.",
    "Alike": "Who share a letter do not differ significantly, all pairs compared at once.",
}
_JUDGES = {
    "Judges say": "The win rate by the judges' verdicts alone. The win rate itself is of people's "
    "verdicts: those that there are, and those inferred from the judges.",
}


def answer(report: Report) -> str:
    """Who leads by win rate, and who may be the best as well."""
    entry, block = report["comparison"].get("win_rate"), blocks(report)[0]
    few = any(row.status == "few-labels" for row in block.rows)
    said = said_of(block, entry, None, "contestant") if entry else ""
    return (said or "No two contestants have a win rate.") + " Few labels: see the warnings." * few


def _sentences(report: Report) -> Iterator[str]:
    """What the verdicts of each judge, and of people, are worth, and what to ask people next."""
    for one in (*report["judges"], *([report["people"]] if report["n_labeled"] else ())):
        who = name(one["judge"]) if one is report["people"] else f"judge {name(one['judge'])}"
        said = [f"{who}: {plural(one['n_verdicts'], 'verdict')}"]
        if one["agreement"]["value"] is not None:
            said[0] += f", as people would {with_interval(one['agreement'])}"
        if one["n_both_orders"]:
            both = plural(one["n_both_orders"], "comparison")
            said.append(f"of {both} in both orders it judged {one['consistent']:.0%} alike")
        if (p := one["p_value"]) is not None:
            known = "p < .001" if p < 0.001 else f"p = {p:.3f}"
            matters = "the order matters" if p < _SURE else "no sign that the order matters"
            wins = f"the first of two equals wins {with_interval(one['order'])}"
            said.append(f"{matters}: where it is no tie, {wins} ({known})")
        yield sentence("; ".join(said))
    if report["next"]:
        rows = ", ".join(str(one["row"] + 1) for one in report["next"])
        gain = sum(one["gain"] for one in report["next"])
        yield (
            f"People should judge next: rows {rows} (their verdicts would likely take {gain:.0%} "
            "off the variance of the win rates)."
        )


def _rates(report: Report) -> Iterator[Section]:
    """Contestants by each metric, the best first; beside win rates what else is to be known."""
    shown = {block.metric: block for block in blocks(report)}
    judges = report["alone"].get("judges alone", {})
    elo = {
        row.model: " ".join([*shown["elo"].figures(row), row.status.removeprefix("ok")]).strip()
        for row in shown["elo"].rows
    }
    beside = {
        "alike": letters(report["comparison"].get("win_rate") or {"alike": ()}),
        "Elo": elo,
        "judges": {who: shown["win_rate"].write(one["value"]) for who, one in judges.items()},
    }
    for metric, block in shown.items():
        rows, first = block.ranked(), metric == "win_rate"
        columns = {head: [cells.get(row.model, "") for row in rows]
                   for head, cells in beside.items() if first}  # fmt: skip
        forest = Forest(
            block,
            rows,
            common_axis([block]),
            metric,
            "Contestant",
            extras=[(head, cells) for head, cells in columns.items() if any(cells)],
        )
        if any(row.value is not None for row in rows):
            about = Para(sentence(block.description), "soft", on="page")
            yield Section(metric, [about, forest], on="" if first else "page")


def document(report: Report) -> Document:
    """All that is said of `Ranking.to_dict`."""
    return Document(
        "Who is best?",
        report,
        {
            "Comparisons": report["n_items"], "Judged by people": report["n_labeled"],
            "Contestants": len(report["models"]), "Judges": len(report["judges"]),
        },
        answer=[answer(report)],
        body=[*_rates(report), Section("Judges and order", [Listing([*_sentences(report)])])],
        terms=_TERMS | (_JUDGES if report["judges"] else {}),
        foot=[
            f"{percent(report['confidence_level'])} intervals for the population that the "
            "comparisons come from; who share a letter under alike do not differ significantly; "
            f"{made_by(report)}"
        ],
    )  # fmt: skip
