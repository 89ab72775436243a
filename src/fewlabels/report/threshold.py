"""Where to put a threshold: the answer, how probable it is, the rates there and at others."""

from __future__ import annotations

import bisect
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from functools import cached_property
from typing import Any, NamedTuple

from fewlabels.report.axis import View, fit_axis
from fewlabels.report.blocks import Block, Report, Row
from fewlabels.report.curves import over_scores, rate_views, score_name, strips_at
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
    UNKNOWN,
    Interval,
    about_one,
    level,
    rate_name,
)
from fewlabels.report.words import capital, plural, probability, score_text

_SAME = {"tpr": "recall", "sensitivity": "recall", "tnr": "specificity", "ppv": "precision"}
_CONDITION = re.compile(r"\s*(\w+)\s*(>=|<=|>|<)\s*([\d.e+-]+)\s*")
_SIGNS = {">=": "at least", "<=": "at most", ">": "above", "<": "below"}

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


class Rate(NamedTuple):
    """A rate at the best threshold, and what the conditions ask of it; `asked` may be ""."""

    key: str
    number: Interval
    asked: str


@dataclass(frozen=True)
class ThresholdBlock:
    """The best threshold, how probably it meets the conditions, and what its rates are."""

    report: Report

    @cached_property
    def _comparisons(self) -> list[re.Match[str]]:
        """The conditions that compare a rate with a number: rate, sign, number."""
        return [*filter(None, map(_CONDITION.fullmatch, self.report["conditions"]))]

    @property
    def conditions(self) -> str:
        """All conditions in one phrase."""
        found = {match.string: match for match in self._comparisons}
        return " and ".join(
            f"{rate_name(match[1])} {_SIGNS[match[2]]} {match[3]}"
            if (match := found.get(one)) else name(one)
            for one in self.report["conditions"]
        )  # fmt: skip

    @property
    def best(self) -> str:
        """The best threshold, which as printed calls the same items positive."""
        best = self.report["best"]
        return UNKNOWN if best is None else cut_text(self.report["thresholds"], best)

    @property
    def verdict(self) -> str:
        """The result: "met", "unlikely", "not met" or "nothing".

        "unlikely" is met with a probability below one half; "nothing" is that there is no
        threshold.
        """
        if self.report["best"] is None:
            return "nothing"
        if not self.report["met"]:
            return "not met"
        return "met" if self.report["best_probability"] >= 0.5 else "unlikely"

    @cached_property
    def rates(self) -> list[Rate]:
        """The rates at the best threshold, those that the conditions are about first."""
        asked = {_SAME.get(m[1], m[1]): f"{m[2]} {m[3]}" for m in self._comparisons}
        rates = [
            Rate(key, Interval.from_source(entry), asked.get(_SAME.get(key, key), ""))
            for key, entry in self.report["rates"].items()
        ]
        return sorted(rates, key=lambda rate: not rate.asked)

    def ranges(self, least: float) -> list[tuple[float, float]]:
        """Ranges of neighbouring thresholds, each of which has at least this probability."""
        pairs = zip(self.report["thresholds"], self.report["probability"], strict=True)
        runs = itertools.groupby(pairs, key=lambda pair: (pair[1] or 0.0) >= least)
        inside = [[cut for cut, _ in run] for enough, run in runs if enough]
        return [(cuts[0], cuts[-1]) for cuts in inside]

    def ranges_text(self, least: float, most: int = 3) -> str:
        """The widest of those ranges in words, in ascending order."""
        every = self.ranges(least)
        widest = sorted(sorted(every, key=lambda r: r[0] - r[1])[:most])
        thresholds = self.report["thresholds"]
        texts = [" to ".join(cut_text(thresholds, cut) for cut in dict.fromkeys(r)) for r in widest]
        more = f" and {plural(len(every) - most, 'shorter range')}" if len(every) > most else ""
        return ", ".join(texts) + more if every else "nowhere"

    @property
    def answer(self) -> str:
        """Where to put the threshold, and how probable it is that the conditions hold there."""
        if self.verdict == "nothing":
            return f"No threshold can be given for {self.conditions}."
        best, chance = strong(self.best), strong(probability(self.report["best_probability"]))
        call = f"it {name(self.report['positive'])} from {best} up"
        if self.verdict == "met":
            said = [f"Call {call}: {self.conditions}, with probability {chance}", *self._choice()]
        elif self.verdict == "unlikely":
            said = [
                f"No threshold is more likely than not to meet {self.conditions}",
                f"The best there is, with probability {chance}, calls {call}", *self._choice(),
            ]  # fmt: skip
        else:
            said = [f"No threshold meets {self.conditions}", f"The nearest is {best}"]
            short = [
                f"{rate_name(key)} is {number.text} where "
                f"{' '.join(_SIGNS.get(word, word) for word in asked.split())} is asked"
                for key, number, asked in self.rates if asked
            ]  # fmt: skip
            said[-1] += f": {', '.join(short)}" if short else ""
        return ". ".join(said) + "."

    def _choice(self) -> Iterator[str]:
        """What the best threshold is among those that meet the conditions; nothing if unclear."""
        best, choice, least = (self.report[key] for key in ("best", "choice", "least"))
        if choice != "likeliest":
            yield self._best_side(choice)
            return
        if self.verdict != "met":
            return
        if self.report["best_probability"] < least:
            yield f"No threshold reaches {probability(least)}; this is the likeliest"
        # It may be sure by finding hardly any.
        for low, high in self.ranges(0.9):
            if low < best <= high:
                lower = cut_text(self.report["thresholds"], low)
                yield f"Lower thresholds find more: from {lower} up the probability is at least 90%"

    def _best_side(self, choice: str) -> str:
        """The value of the rate by which the threshold was chosen, and of which others."""
        rates, on = self.report["rates"], self._comparisons
        value = Interval.from_source(rates[choice]).text
        least = probability(self.report["least"])
        among = f"of the thresholds where the probability is at least {least}"
        if choice == "cost":
            text = f"Cost per item: {value}, the lowest {among if on else 'of all thresholds'}"
            for who in ("all", "none"):
                other = Interval.from_source(rates[f"cost_of_{who}"])
                less = ", which is less" * ((other.value or 0.0) < rates["cost"]["value"])
                text += f"; calling {who} positive {other.text}{less}"
            return text
        said, best = rate_name(choice), "lowest" if choice in ("fpr", "fnr") else "highest"
        if len(on) == len(self.report["conditions"]) == 1 and on[0][1] != choice:
            said += f" at {rate_name(on[0][1])} {on[0][3]}"
        return f"{capital(said)}: {value}, the {best} {among}"


def document(report: Report) -> Document:
    """All that is said of `Thresholds.report`."""
    block = ThresholdBlock(report)
    body: list[Node] = []
    # Where no draw meets the conditions the line would lie on the axis.
    if block.verdict in ("met", "unlikely"):
        about = (
            f"The probability of {block.conditions}; the point marks the best threshold, the "
            "dashed line one half."
        )
        reached = [f"{least:.0%}: {block.ranges_text(least)}" for least in (0.5, 0.9)]
        body.append(Section("How probable it is at each threshold", [
            Para(about, "soft", on="page"), Drawing("curve", threshold_view(block)),
            Para("Thresholds at which the probability is at least"), Listing(reached),
        ]))  # fmt: skip
    if block.rates and block.verdict != "nothing":
        body.append(Section(f"Rates at {block.best}", [*_forests(block)]))
        body += _moved(block)
    elsewhere = []
    if report.get("prevalence") is not None:
        here = Interval.from_source(report["prevalence_here"]).text
        elsewhere = [f"All rates are for a prevalence of {report['prevalence']:g}; "
                     f"here it is {here}."]  # fmt: skip
    return about_one(
        "Where to put the threshold?", report, block.answer, body, _TERMS, basis=elsewhere,
        numbers="intervals",
    )  # fmt: skip


def _forests(block: ThresholdBlock) -> Iterator[Forest]:
    """Costs, where they are asked about, and rates, which have another scale."""
    for unit in (False, True):
        rates = [rate for rate in block.rates if rate.key.startswith("cost") is not unit]
        rows = tuple(Row(capital(rate_name(r.key)), *r.number, "ok") for r in rates)
        shown = Block("rate", None, rows, block.report["confidence_level"])
        axis = fit_axis([0.0, 1.0 if unit else None, *(n for row in rows for n in row.numbers)],
                        (0.0, 1.0 if unit else None))  # fmt: skip
        asked = [rate.asked for rate in rates]
        extras = [("asked", asked)] if any(asked) else []
        if rows:
            what = "Rate" if unit else "Cost"
            yield Forest(shown, rows, axis, f"{what}s at the threshold", what, extras)


def _moved(block: ThresholdBlock) -> list[Section]:
    """Rates at other thresholds, which a slider of the page goes through."""
    report, rates = block.report, block.report.get("by_threshold") or {}
    cuts: Sequence[float] = rates.get("threshold", ())
    if len(cuts) < 2:
        return []
    names = [key for key in rates if key != "threshold"]
    drawn = [key for key in names if key != "cost"]
    views = rate_views(rates, drawn, report, _MOVED_HEIGHT,
                       (report["best"], f"best: {block.best}"))  # fmt: skip
    chance = dict(zip(report["thresholds"], report["probability"], strict=True))
    bands = [[_cell(rates[key], k) for key in names] for k in range(len(cuts))]
    table = Table(
        ["threshold", *(rate_name(key) for key in names), "conditions hold"],
        [
            [cut_text(report["thresholds"], cut), *band, probability(chance.get(cut))]
            for cut, band in zip(cuts, bands, strict=True)
        ],
        "Rates by threshold", sides="r", chips=["best" if cut == report["best"] else "ok"
                                                for cut in cuts],
        places=[100 * views[0].x.at(cut) for cut in cuts],
    )  # fmt: skip
    about = (
        f"What other thresholds would give, with {level(report)} intervals. The point marks the "
        "threshold."
    )
    drawings = [Drawing("curve", view, capital(rate_name(key)))
                for key, view in zip(drawn, views, strict=True)]  # fmt: skip
    fold = Fold(f"All {plural(len(cuts), 'threshold')}", [table], printed=False, style="between")
    return [
        Section("If the threshold moves", [
            Para(about, "soft"), Group("panels moved", drawings), fold,
        ], on="page")
    ]  # fmt: skip


def _cell(band: Mapping[str, Any], place: int) -> str:
    value, interval = Interval(*(band[key][place] for key in ("value", "low", "high"))).parts
    return f"{strong(value)} {interval}".rstrip()


def threshold_view(block: ThresholdBlock) -> View:
    """The probability that the conditions hold at each threshold, with the best one marked."""
    report = block.report
    scored = report["unit"] == "probability"
    best, at_best = report["best"], probability(report["best_probability"])
    pairs = zip(report["thresholds"], report["probability"], strict=True)
    shown = _interesting([(cut, p or 0.0) for cut, p in pairs], best)
    panel = over_scores((cut for cut, _ in shown), report)
    step = max(1, -(-len(shown) // _MOST_POINTS))
    places = {*range(0, len(shown), step), len(shown) - 1}
    drawn = [(cut, p) for k, (cut, p) in enumerate(shown) if k in places or cut == best]
    texts = [f"threshold {score_text(cut, scored)}: {probability(p)}" for cut, p in shown]
    return View(
        **vars(panel),
        title="Probability that the conditions hold",
        x_name=f"threshold on the {score_name(report)}",
        y_name="probability",
        runs=[[(cut, p, 0.0, p) for cut, p in drawn]],
        dashed=panel.level(0.5),
        strips=strips_at(panel, [cut for cut, _ in shown], texts),
        description="Probability that all conditions hold (up) against the threshold (right); at "
        f"{block.best} it is {at_best}.",
        points=[]
        if best is None
        else [(best, report["best_probability"], f"best: {block.best}, {at_best}")],
    )


def _interesting(
    pairs: Sequence[tuple[float, float]], best: float | None
) -> Sequence[tuple[float, float]]:
    """Thresholds with a visible probability, the best one, and a margin on both sides."""
    places = [k for k, (cut, p) in enumerate(pairs) if p >= 0.005 or cut == best]
    if not places or not any(p >= 0.005 for _, p in pairs):
        return pairs
    low, high = pairs[places[0]][0], pairs[places[-1]][0]
    room = (high - low) / 6 or 0.1 * abs(low)
    inside = [pair for pair in pairs if low - room <= pair[0] <= high + room]
    return inside if len(inside) > 1 else pairs
