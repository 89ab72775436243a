"""Where to put a threshold: the answer, how probable it is, the rates there and at others."""

from __future__ import annotations

import bisect
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_FLOOR, Decimal
from typing import Any

from fewlabels.report.axis import View, fit_axis
from fewlabels.report.blocks import Block, Report, Row
from fewlabels.report.curves import line_view, over_scores, rate_views, score_name
from fewlabels.report.document import (
    Document,
    Drawing,
    Fold,
    Forest,
    Group,
    Listing,
    Node,
    Para,
    Section,
    Table,
    name,
    strong,
)
from fewlabels.report.one_classifier import (
    RATES,
    WRITE,
    about_one,
    score_writer,
    spelled,
)
from fewlabels.report.words import capital, metric_name, percent, plural, probability, with_interval

_SAME = {"tpr": "recall", "sensitivity": "recall", "tnr": "specificity", "ppv": "precision"}
_CONDITION = re.compile(r"\s*(\w+)\s*(>=|<=|>|<)\s*([\d.e+-]+)\s*")
_SIGNS = {">=": "at least", "<=": "at most", ">": "above", "<": "below"}
_ENDS = ("value", "low", "high")

_MOST_POINTS = 600  # Of a line; no screen shows the difference.
_MOVED_HEIGHT = 180

_TERMS = {
    "Probability": "The labels that are missing were drawn many times, as the labels there are and "
    "the method allow. The probability is the share of draws in which all conditions hold at the "
    "threshold, at the same time.",
    **RATES,
    "Called positive": "Of all items, the share that is called positive: how many there are to "
    "look at.",
}


def cut_text(thresholds: Sequence[float], cut: float) -> str:
    """A threshold in the fewest digits that call the same items positive, at least three.

    It is rounded down, but not to the next lower threshold of the report.
    """
    place = bisect.bisect_left(thresholds, cut)
    below = thresholds[place - 1] if place else -math.inf
    exact = Decimal(repr(cut))
    for digits in range(3, 18):
        step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
        rounded = exact.quantize(step, rounding=ROUND_FLOOR)
        if float(rounded) > below:
            plain = cut == 0 or 1e-4 <= abs(cut) < 1e6
            return f"{rounded:f}" if plain else f"{rounded:.{digits - 1}e}"
    return repr(cut)


def _compared(report: Report) -> Iterator[re.Match[str] | None]:
    """Rate, sign and number of each condition that compares these, None for others."""
    return map(_CONDITION.fullmatch, report["conditions"])


def _conditions(report: Report) -> str:
    """All conditions in one phrase."""
    return " and ".join(
        f"{metric_name(match[1])} {_SIGNS[match[2]]} {match[3]}" if match else name(text)
        for text, match in zip(report["conditions"], _compared(report), strict=True)
    )


def _rates(report: Report) -> list[tuple[str, Mapping[str, Any], str]]:
    """The rates at the best threshold, and what is asked of them: those that are asked about first.

    What is asked may be "".
    """
    asked = {_SAME.get(m[1], m[1]): f"{m[2]} {m[3]}" for m in _compared(report) if m}
    rates = report["rates"].items()
    every = [(key, entry, asked.get(_SAME.get(key, key), "")) for key, entry in rates]
    return sorted(every, key=lambda rate: not rate[2])


def ranges(report: Report, least: float) -> list[tuple[float, float]]:
    """Ranges of neighbouring thresholds, each of which has at least this probability."""
    pairs = zip(report["thresholds"], report["probability"], strict=True)
    runs = itertools.groupby(pairs, key=lambda pair: (pair[1] or 0.0) >= least)
    inside = [[cut for cut, _ in run] for enough, run in runs if enough]
    return [(cuts[0], cuts[-1]) for cuts in inside]


def ranges_text(report: Report, least: float, most: int = 3) -> str:
    """The widest of those ranges in words, in ascending order."""
    every, cuts = ranges(report, least), report["thresholds"]
    widest = sorted(sorted(every, key=lambda r: r[0] - r[1])[:most])
    texts = [" to ".join(cut_text(cuts, cut) for cut in dict.fromkeys(ends)) for ends in widest]
    more = f" and {plural(len(every) - most, 'shorter range')}" if len(every) > most else ""
    return ", ".join(texts) + more if every else "nowhere"


def _answer(report: Report) -> Iterator[str]:
    """Where to put the threshold, and how probable it is that the conditions hold there."""
    best, chance, conditions = report["best"], report["best_probability"], _conditions(report)
    if best is None:
        yield f"No threshold can be given for {conditions}"
        return
    cut, sure = strong(cut_text(report["thresholds"], best)), strong(probability(chance))
    if not report["met"]:
        short = [
            f"{metric_name(key)} is {with_interval(entry, WRITE)} where "
            f"{' '.join(_SIGNS.get(word, word) for word in asked.split())} is asked"
            for key, entry, asked in _rates(report) if asked
        ]  # fmt: skip
        yield f"No threshold meets {conditions}"
        yield f"The nearest is {cut}" + (f": {', '.join(short)}" if short else "")
        return
    call = f"it {name(report['positive'])} from {cut} up"
    if chance >= 0.5:
        yield f"Call {call}: {conditions}, with probability {sure}"
    else:
        yield f"No threshold is more likely than not to meet {conditions}"
        yield f"The best there is, with probability {sure}, calls {call}"
    if report["choice"] != "likeliest":
        yield _best_side(report)
    elif chance >= 0.5:
        if chance < (least := report["least"]):
            yield f"No threshold has a probability of {probability(least)}; this is the likeliest"
        # It may be sure by finding hardly any.
        for low, high in ranges(report, 0.9):
            if low < best <= high:
                lower = cut_text(report["thresholds"], low)
                yield f"Lower thresholds find more: from {lower} up the probability is at least 90%"


def _best_side(report: Report) -> str:
    """The value of the rate by which the threshold was chosen, and of which others."""
    rates, choice, compared = report["rates"], report["choice"], [*_compared(report)]
    value = with_interval(rates[choice], WRITE)
    among = f"of the thresholds where the probability is at least {probability(report['least'])}"
    if choice == "cost":
        text = f"Cost per item: {value}, the lowest "
        text += among if any(compared) else "of all thresholds"
        for who in ("all", "none"):
            other = rates[f"cost_of_{who}"]
            less = ", which is less" * ((other["value"] or 0.0) < rates["cost"]["value"])
            text += f"; calling {who} positive {with_interval(other, WRITE)}{less}"
        return text
    said, lowest = metric_name(choice), choice in ("fpr", "fnr")
    if len(compared) == 1 and (one := compared[0]) and one[1] != choice:
        said += f" at {metric_name(one[1])} {one[3]}"
    return f"{capital(said)}: {value}, the {'lowest' if lowest else 'highest'} {among}"


def document(report: Report) -> Document:
    """All that is said of `Thresholds.report`."""
    body: list[Node] = []
    # Where no draw meets the conditions the line would lie on the axis.
    if report["met"]:
        body.append(Section("How probable it is at each threshold", [
            Para(
                f"The probability of {_conditions(report)}; the point marks the best threshold, "
                "the dashed line one half.", "soft", on="page",
            ),
            Drawing("curve", threshold_view(report)),
            Para("Thresholds at which the probability is at least"),
            Listing([f"{least:.0%}: {ranges_text(report, least)}" for least in (0.5, 0.9)]),
        ]))  # fmt: skip
    if report["best"] is not None and report["rates"]:
        at = cut_text(report["thresholds"], report["best"])
        body += [Section(f"Rates at {at}", [*_forests(report)]), *_moved(report, at)]
    elsewhere = []
    if report.get("prevalence") is not None:
        elsewhere = [
            f"All rates are for a prevalence of {report['prevalence']:g}; "
            f"here it is {with_interval(report['prevalence_here'], WRITE)}."
        ]
    return about_one(
        "Where to put the threshold?", report, ". ".join([*_answer(report), ""]).rstrip(), body,
        _TERMS, basis=elsewhere, numbers="intervals",
    )  # fmt: skip


def _forests(report: Report) -> Iterator[Forest]:
    """Costs, where they are asked about, and rates, which have another scale."""
    for what, most in (("Cost", None), ("Rate", 1.0)):
        rates = [r for r in _rates(report) if r[0].startswith("cost") is (most is None)]
        rows = tuple(
            Row(capital(metric_name(key)), entry["value"], entry["low"], entry["high"], "ok")
            for key, entry, _ in rates
        )
        shown = Block("rate", None, rows, report["confidence_level"])
        numbers = [n for row in rows for n in row.numbers]
        axis = fit_axis([0.0, most, *numbers], (0.0, most))
        asked = [asked for *_, asked in rates]
        extras = [("asked", asked)] if any(asked) else []
        if rows:
            yield Forest(shown, rows, axis, f"{what}s at the threshold", what, extras)


def _moved(report: Report, best: str) -> Iterator[Section]:
    """Rates at other thresholds, which a slider of the page goes through."""
    every: Mapping[str, Any] = report.get("by_threshold") or {}
    cuts: Sequence[float] = every.get("threshold", ())
    if len(cuts) < 2:
        return
    rates = {key: band for key, band in every.items() if key != "threshold"}
    drawn, marked = [key for key in rates if key != "cost"], (report["best"], f"best: {best}")
    views = [*rate_views(every, drawn, report, _MOVED_HEIGHT, marked)]
    chance = dict(zip(report["thresholds"], report["probability"], strict=True))
    table = Table(
        ["threshold", *map(metric_name, rates), "conditions hold"],
        [
            [
                cut_text(report["thresholds"], cut),
                *(spelled(*(band[end][k] for end in _ENDS)) for band in rates.values()),
                probability(chance.get(cut)),
            ]
            for k, cut in enumerate(cuts)
        ],
        "Rates by threshold", sides="r", places=[100 * views[0].x.at(cut) for cut in cuts],
        chips=["best" if cut == report["best"] else "ok" for cut in cuts],
    )  # fmt: skip
    yield Section("If the threshold moves", [
        Para(f"What other thresholds would give, with {percent(report['confidence_level'])} "
             "intervals. The point marks the threshold.", "soft"),
        Group("panels moved", [
            Drawing("curve", view, view.title.removesuffix(" by threshold")) for view in views
        ]),
        Fold(f"All {plural(len(cuts), 'threshold')}", [table], printed=False, style="between"),
    ], on="page")  # fmt: skip


def threshold_view(report: Report) -> View:
    """The probability that the conditions hold at each threshold, with the best one marked.

    Drawn are thresholds with a visible probability, the best one, and a margin on both sides.
    """
    best, write = report["best"], score_writer(report)
    pairs = [*zip(report["thresholds"], report["probability"], strict=True)]
    seen = [cut for cut, p in pairs if (p or 0.0) >= 0.005 or cut == best]
    room = (seen[-1] - seen[0]) / 6 or 0.1 * abs(best)
    inside = [one for one in pairs if seen[0] - room <= one[0] <= seen[-1] + room]
    shown = inside if len(inside) > 1 else pairs
    step = -(-len(shown) // _MOST_POINTS)
    drawn = [one for k, one in enumerate(shown) if not k % step or one[0] == best]
    if drawn[-1] != shown[-1]:
        drawn.append(shown[-1])
    panel = over_scores((cut for cut, _ in drawn), report)
    chance = report["best_probability"]
    marked = f"best: {cut_text(report['thresholds'], best)}, {probability(chance)}"
    return line_view(
        panel, "Probability that the conditions hold", f"threshold on the {score_name(report)}",
        "probability", [(cut, p or 0.0, 0.0, p or 0.0) for cut, p in drawn],
        [f"threshold {write(cut)}: {probability(p)}" for cut, p in drawn],
        dashed=panel.level(0.5), points=[(best, chance, marked)],
    )  # fmt: skip
