"""Curves, thresholds and items to label next: what is said of them, and as text."""

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

from fewlabels.errors import Status
from fewlabels.report.blocks import Report
from fewlabels.report.words import (
    NARROWEST,
    aligned,
    as_text,
    classes_text,
    count,
    escape_control,
    fit,
    made_by,
    percent,
    plural,
    probability,
    score_text,
    speaks_of,
    style,
    warning_lines,
    wrap,
)

UNKNOWN = "not known"

_NAMES = {
    "fpr": "false-positive rate",
    "f1": "F1",
    "predicted_positive_rate": "called positive",
    "cost": "cost per item",
    "cost_of_all": "cost, all positive",
    "cost_of_none": "cost, none positive",
    "ppv": "PPV",
    "npv": "NPV",
}
"""Names of rates that differ from their keys."""

_SAME = {"tpr": "recall", "sensitivity": "recall", "tnr": "specificity", "ppv": "precision"}
_CONDITION = re.compile(r"\s*(\w+)\s*((>=|<=|>|<)\s*(\S+))\s*")

_ROWS = 10  # Of the picture: a tenth each, and one for the value 0.
_MOST_COLUMNS = 61
_LABEL = 5


class Interval(NamedTuple):
    """A value between the ends of its interval; None where they are not known."""

    value: float | None
    low: float | None
    high: float | None

    @classmethod
    def from_source(cls, source: Mapping[str, Any] | None) -> Interval:
        """A value with its interval, from its entry in the report."""
        entry = source or {}
        return cls(entry.get("value"), entry.get("low"), entry.get("high"))

    @property
    def parts(self) -> tuple[str, str]:
        """The value, and behind it the interval in brackets; the latter is "" if not known."""
        if self.value is None:
            return UNKNOWN, ""
        if self.low is None or self.high is None:
            return f"{self.value:.3f}", ""
        return f"{self.value:.3f}", f"[{self.low:.3f}, {self.high:.3f}]"

    @property
    def text(self) -> str:
        """Value and interval."""
        return " ".join(filter(None, self.parts))


class Kind(NamedTuple):
    """Name of a kind of curve, and the places at which it is read off."""

    name: str
    title: str
    x_key: str
    y_key: str
    x_name: str
    y_name: str
    x_short: str
    y_short: str
    area: str
    places: tuple[float, ...]


KINDS = {
    "precision-recall": Kind(
        name="precision-recall",
        title="Precision and recall",
        x_key="recall",
        y_key="precision",
        x_name="recall",
        y_name="precision",
        x_short="recall",
        y_short="precision",
        area="average precision",
        places=(0.1, 0.25, 0.5, 0.75, 0.9, 0.95),
    ),
    "roc": Kind(
        name="roc",
        title="ROC",
        x_key="fpr",
        y_key="tpr",
        x_name="false-positive rate",
        y_name="true-positive rate",
        x_short="false pos.",
        y_short="true pos.",
        area="area under the ROC curve",
        places=(0.01, 0.05, 0.1, 0.2),
    ),
}


class Point(NamedTuple):
    """A place on a curve: median, band, and the median threshold that reaches it."""

    x: float
    y: Interval
    threshold: float | None


@dataclass(frozen=True)
class CurveBlock:
    """A curve with its band; `level` is the band's confidence level."""

    kind: Kind
    points: tuple[Point, ...]
    area: Interval
    level: float

    def at(self, x: float) -> Point:
        """The curve read off at `x`, on the line between two neighbouring points."""
        right = bisect.bisect_left([p.x for p in self.points], x)
        after = self.points[min(right, len(self.points) - 1)]
        before = self.points[max(right - 1, 0)]
        if after.x == before.x:
            return after._replace(x=x)
        share = min(1.0, max(0.0, (x - before.x) / (after.x - before.x)))

        def between(a: float | None, b: float | None) -> float | None:
            return None if a is None or b is None else a + share * (b - a)

        y = Interval(*map(between, before.y, after.y))
        return Point(x, y, between(before.threshold, after.threshold))

    @property
    def read_off(self) -> list[Point]:
        """The few points that a table shows."""
        return [self.at(x) for x in self.kind.places]


def curve_blocks(report: Report) -> list[CurveBlock]:
    """The curves of either form of report: of one kind, or of several from one fit."""
    lines = report["curves"] if report["what"] == "curves" else {report["kind"]: report}
    shown = []
    for name, line in lines.items():
        kind = KINDS[name]
        lists = (line[key] for key in (kind.x_key, kind.y_key, "low", "high", "threshold"))
        points = [Point(x, Interval(*y), cut) for x, *y, cut in zip(*lists, strict=True)]
        area = Interval.from_source(line.get("area"))
        shown.append(CurveBlock(kind, tuple(points), area, report["confidence_level"]))
    return shown


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


def who(report: Report) -> str:
    """Numbers of items, labels, positives and classes, and which class is positive."""
    items, classes = plural(report["n_items"], "item"), classes_text(report)
    if not report["n_labeled"]:
        return f"{items}, none labeled; {classes}"
    positives = f"{report['n_labeled_positive']:,} of them positive"
    return f"{items}, {report['n_labeled']:,} labeled, {positives}; {classes}"


def level(report: Report) -> str:
    """Confidence level of the report's intervals, which thresholds may give with their rates."""
    stated = report.get("confidence_level") or report.get("rates", {}).get("confidence_level", 0.95)
    return percent(stated)


def status_note(report: Report) -> str:
    """The meaning of the status, or "" if it is "ok"."""
    status = report["status"]
    if status == Status.OK.value or status not in {member.value for member in Status}:
        return ""
    return Status(status).message.partition(", so it is not ranked")[0]  # there is but one


class Rate(NamedTuple):
    """A rate at the best threshold, and what the conditions ask of it; `asked` may be ""."""

    key: str
    name: str
    number: Interval
    asked: str


@dataclass(frozen=True)
class ThresholdBlock:
    """The best threshold, how probably it meets the conditions, and what its rates are."""

    report: Report

    @property
    def conditions(self) -> str:
        """All conditions in one phrase."""
        return " and ".join(escape_control(condition) for condition in self.report["conditions"])

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
        requested = {_SAME.get(m[1], m[1]): m[2] for m in self._comparisons}
        rates = [
            Rate(
                key, rate_name(key),
                Interval.from_source(entry), requested.get(_SAME.get(key, key), ""),
            )
            for key, entry in self.report["rates"].items()
            if isinstance(entry, Mapping)
        ]  # fmt: skip
        return sorted(rates, key=lambda rate: not rate.asked)

    @property
    def _comparisons(self) -> list[re.Match[str]]:
        """The conditions that compare a rate with a number: rate, sign and number, sign, number."""
        matches = (_CONDITION.fullmatch(condition) for condition in self.report["conditions"])
        return [match for match in matches if match]

    @property
    def elsewhere(self) -> str:
        """The prevalence that the answer is for, and that of the items; "" where they are one."""
        if self.report.get("prevalence") is None:
            return ""
        here = Interval.from_source(self.report["prevalence_here"]).text
        return f"All rates are for a prevalence of {self.report['prevalence']:g}; here it is {here}"

    @property
    def shortfall(self) -> str:
        """What the rates are where the conditions ask for something of them."""
        return ", ".join(
            f"{rate.name} is {rate.number.text} where {rate.asked} is asked"
            for rate in self.rates
            if rate.asked
        )

    def ranges(self, least: float) -> list[tuple[float, float]]:
        """Ranges of neighbouring thresholds, each of which has at least this probability."""
        pairs = zip(self.report["thresholds"], self.report["probability"], strict=True)
        runs = itertools.groupby(pairs, key=lambda pair: (pair[1] or 0.0) >= least)
        inside = [[cut for cut, _ in run] for enough, run in runs if enough]
        return [(cuts[0], cuts[-1]) for cuts in inside]

    @property
    def choice(self) -> str:
        """What the best threshold is among those that meet the conditions; "" if unclear."""
        best, choice = self.report["best"], self.report["choice"]
        if best is None or self.verdict == "not met":
            return ""
        if choice != "likeliest":
            return self._best_side(choice)
        least, unreached = self.report["least"], ""
        if self.verdict == "met" and self.report["best_probability"] < least:
            unreached = f"No threshold reaches {probability(least)}; this is the likeliest"
        # It may be sure by finding hardly any.
        around = [low for low, high in self.ranges(0.9) if low < best <= high]
        if not around or self.verdict != "met":
            return unreached
        lower = cut_text(self.report["thresholds"], around[0])
        more = f"Lower thresholds find more: from {lower} up the probability is at least 90%"
        return ". ".join(filter(None, [unreached, more]))

    def _best_side(self, choice: str) -> str:
        """The value of the rate by which the threshold was chosen, and of which others."""
        value, on = Interval.from_source(self.report["rates"][choice]).text, self._comparisons
        least = probability(self.report["least"])
        among = f"of the thresholds where the probability is at least {least}"
        if choice == "cost":
            return self._cost_beside(value, among if on else "of all thresholds")
        name, best = rate_name(choice), "lowest" if choice in ("fpr", "fnr") else "highest"
        if len(on) == len(self.report["conditions"]) == 1 and on[0][1] != choice:
            name += f" at {rate_name(on[0][1])} {on[0][4]}"
        return f"{name[:1].upper()}{name[1:]}: {value}, the {best} {among}"

    def _cost_beside(self, value: str, among: str) -> str:
        """The cost of the threshold, and what calling all items positive, or none, costs."""
        rates, text = self.report["rates"], f"Cost per item: {value}, the lowest {among}"
        for who in ("all", "none"):
            other = Interval.from_source(rates[f"cost_of_{who}"])
            less = ", which is less" if (other.value or 0.0) < rates["cost"]["value"] else ""
            text += f"; calling {who} positive {other.text}{less}"
        return text

    def ranges_text(self, least: float, most: int = 3) -> str:
        """The widest of those ranges in words, in ascending order."""
        every = self.ranges(least)
        widest = sorted(sorted(every, key=lambda r: r[0] - r[1])[:most])
        thresholds = self.report["thresholds"]
        texts = [" to ".join(cut_text(thresholds, cut) for cut in dict.fromkeys(r)) for r in widest]
        more = f" and {plural(len(every) - most, 'shorter range')}" if len(every) > most else ""
        return ", ".join(texts) + more if every else "nowhere"


def rate_name(key: str) -> str:
    """What a rate is called."""
    return _NAMES.get(key, escape_control(key.replace("_", " ")))


def render_curves(report: Report, width: int = 80) -> str:
    """One curve, or several from one fit, as tables of points and a picture of the band.

    `report` is the dictionary of `Curve.report` or `Curves.report`.
    """
    width = max(width, NARROWEST)
    blocks = curve_blocks(report)
    first, scored = blocks[0], report["unit"] == "probability"
    head = [who(report), f"{escape_control(report['model'])}: {first.kind.area} {first.area.text}"]
    if first.kind.name == "precision-recall":
        chance = Interval.from_source(report.get("prevalence")).text
        head.append(f"Chance would give {chance}, the prevalence.")
    if "by_threshold" in report:
        equal = Interval.from_source(report["by_threshold"]["equal_error_rate"])
        head.append(f"Equal error rate {equal.text}: as many of either class are missed.")
    head.append(facts(report, "bands"))
    lines = [line for sentence in head for line in wrap(sentence, width)]
    for block in blocks:
        kind = block.kind
        title = kind.title if block is first else f"{kind.title}: {kind.area} {block.area.text}"
        rows = [[kind.x_short, kind.y_short, f"[{percent(block.level)} band]", "threshold"]]
        for point in block.read_off:
            cut = score_text(point.threshold, scored)
            rows.append([percent(point.x), *point.y.parts, cut])
        lines += ["", *wrap(title, width), *aligned(rows, "rrlr")]
    # Precision is what few labels leave open; the other picture looks much alike for everybody.
    return as_text([*lines, "", *picture(first, width), *foot(report, width)])


def facts(report: Report, what: str) -> str:
    """Version, method, seed, and what the intervals or bands speak about."""
    return f"{made_by(report)}; {level(report)} {what} {speaks_of(report)}"


def foot(report: Report, width: int) -> Iterator[str]:
    """Status and warnings in plain words."""
    note = status_note(report)
    if note:
        lines = wrap(f"{report['status']}: {note}", width, "  ")
        yield from ["", *(style(line, "warning") for line in lines)]
    yield from warning_lines(report, width)


def picture(block: CurveBlock, width: int) -> Iterator[str]:
    """The curve and its band, eleven rows high, both axes from 0 to 1."""
    columns = (min(_MOST_COLUMNS, width - _LABEL - 2) - 1) // 4 * 4 + 1
    # Rows of the median and of both ends of the band; -1 where one is not known.
    heights = [
        [-1 if number is None else round(number * _ROWS) for number in block.at(x).y]
        for x in (k / (columns - 1) for k in range(columns))
    ]
    yield block.kind.y_name
    for row in reversed(range(_ROWS + 1)):
        label = f"{row / _ROWS:.1f}" if row % 2 == 0 else ""
        cells = (
            "o" if value == row else ":" if 0 <= low <= row <= high else " "
            for value, low, high in heights
        )  # fmt: skip
        yield f"{label:>{_LABEL}} |{''.join(cells)}"
    quarter = (columns - 1) // 4
    yield " " * _LABEL + " +" + ("-" * (quarter - 1) + "+") * 4
    ticks = "0" + "".join(f"{tick:>{quarter}}" for tick in ("0.25", "0.5", "0.75", "1"))
    yield " " * _LABEL + "  " + ticks
    names = f"{block.kind.x_name}   (o median, : {percent(block.level)} band)"
    yield " " * (_LABEL + 2) + names


def render_threshold(report: Report, width: int = 80) -> str:
    """The best threshold, the rates at it, and the ranges in which the conditions hold.

    `report` is the dictionary of `Thresholds.report`.
    """
    width = max(width, NARROWEST)
    block = ThresholdBlock(report)
    lines = [*wrap(f"{escape_control(report['model'])}: {who(report)}", width), ""]
    lines += [*wrap(answer(block), width), ""]
    lines += [*wrap(block.elsewhere, width), ""] if block.elsewhere else []
    lines += wrap(facts(report, "intervals"), width)
    if block.rates and block.verdict != "nothing":
        heading = "asked" if any(rate.asked for rate in block.rates) else ""
        rows = [["", "value", f"[{level(report)} interval]", heading]]
        rows += [[rate.name, *rate.number.parts, rate.asked] for rate in block.rates]
        lines += ["", f"At {block.best}", *aligned(rows, "lrl")]
    if block.verdict in ("met", "unlikely"):
        holding = "Thresholds at which the conditions hold with probability at least"
        lines += ["", *wrap(holding, width)]
        for least in (0.5, 0.9):
            first, *rest = wrap(block.ranges_text(least), width - 7)
            lines += [f"  {least:.0%}: {first}", *(" " * 7 + line for line in rest)]
    return as_text([*lines, *foot(report, width)])


def answer(block: ThresholdBlock) -> str:
    """Where to put the threshold, and how probable it is that the conditions hold there."""
    chance = probability(block.report["best_probability"])
    if block.verdict == "met":
        more = f". {block.choice}" if block.choice else ""
        return (
            f"Call it positive from {block.best} up: {block.conditions} with probability {chance}"
            f"{more}"
        )
    if block.verdict == "unlikely":
        return (
            f"No threshold is more likely than not to meet {block.conditions}. The best there is, "
            f"with probability {chance}: call it positive from {block.best} up"
            + (f". {block.choice}" if block.choice else "")
        )
    if block.verdict == "nothing":
        return f"No threshold can be given for {block.conditions}"
    short = f": {block.shortfall}" if block.shortfall else ""
    return f"No threshold meets {block.conditions}. The nearest is {block.best}{short}"


class NextRow(NamedTuple):
    """An item to label, as it is written; `share` is the gain as a number, None where unknown."""

    row: str
    shown: str
    probability: str
    gain: str
    drawn: str
    share: float | None


@dataclass(frozen=True)
class NextItems:
    """The items to label next: purpose, headings of two columns, meaning of the gain, and rows."""

    aim: str
    heads: tuple[str, str]
    gain: str
    rows: tuple[NextRow, ...]


def next_items(report: Report) -> NextItems:
    """The items of `LabelNext.report` in words; rows are numbered from 1, as a file's are."""
    kind = report["kind"].replace("roc", "ROC")
    scored, votes = report["unit"] == "probability", "likeliest" in report
    if votes:
        heads, texts = (
            ("likeliest", "P(likeliest)"),
            [fit(escape_control(c), 20) for c in report["likeliest"]],
        )
        named = {"error-rates": "error rates", "labels": "labels of all items"}
        aim = named.get(kind, kind.replace("_", " "))
    else:
        heads = ("score", "P(positive)")
        texts = [score_text(score, scored) for score in report["score"]]
        aim = f"{kind} curve"
    gain = (
        "gain: the share of the variance of the " + (aim if votes else "band") + " that the "
        "label is expected to remove; drawn: how probable it was to draw the item"
    )
    if report.get("strata"):
        gain = (
            "spread: how much an item's value varies in the stratum; to label: in proportion to "
            "items times spread, with the labels there are (Neyman); drawn: how probable it was to "
            "draw the item from its stratum"
        )
    rows = tuple(
        NextRow(
            count(item + 1), text, probability(chance), "-" if gained is None else f"{gained:.1%}",
            f"1 in {1 / drawn:,.0f}", gained,
        )
        for item, text, chance, gained, drawn in zip(
            report["items"], texts, report["probability"], report["gain"], report["drawn"],
            strict=True,
        )
    )  # fmt: skip
    return NextItems(aim, heads, gain, rows)


STRATA = ("stratum", "items", "labeled", "spread", "to label")


def strata_rows(report: Report) -> list[tuple[str, ...]]:
    """Name, items, labels, spread and labels to add of every stratum; [] where none are named."""
    return [
        (
            fit(escape_control(one["name"]), 30), count(one["n_items"]), count(one["n_labeled"]),
            f"{one['spread']:.3f}", count(one["n_next"]),
        )
        for one in report.get("strata", ())
    ]  # fmt: skip


def render_label_next(report: Report, width: int = 80) -> str:
    """The items in the order to label them, what each is worth, and who may learn from them.

    `report` is the dictionary of `LabelNext.report`. Rows are shown as the file has them, from
    1.
    """
    width = max(width, NARROWEST)
    items = next_items(report)
    number = plural(len(report["items"]), "item")
    rows = [["row", *items.heads, "gain", "drawn"], *([*row[:5]] for row in items.rows)]
    strata = [[*map(str, row)] for row in strata_rows(report)]
    return as_text(
        [
            *wrap(who(report), width),
            *wrap(f"{escape_control(report['model'])}: label {number} for the {items.aim}", width),
            *(["", *aligned([[*STRATA], *strata], "lr")] if strata else []),
            "",
            *aligned(rows, "r"),
            "",
            *wrap(items.gain, width),
            "",
            *wrap(report["statement"], width),
            *foot(report, width),
        ]
    )
