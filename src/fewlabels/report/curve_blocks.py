"""What a report says of curves and thresholds, in the order and the words that are shown."""

from __future__ import annotations

import bisect
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from functools import cached_property
from typing import Any

from fewlabels.errors import Status
from fewlabels.report.words import classes_text, clean, percent, plural

Report = Mapping[str, Any]

UNKNOWN = "not known"

ESTIMANDS = {
    "sample": "for these very items",
    "population": "for the population that the items come from",
}


@dataclass(frozen=True)
class Interval:
    """A value between the ends of its interval; None where they are not known."""

    value: float | None
    low: float | None
    high: float | None

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


def interval(source: Mapping[str, Any] | None) -> Interval:
    """A value with its interval, from its entry in the report."""
    entry = source or {}
    return Interval(entry.get("value"), entry.get("low"), entry.get("high"))


@dataclass(frozen=True)
class Kind:
    """How a kind of curve is called, and the places at which it is read off."""

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


@dataclass(frozen=True)
class Point:
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
            return Point(x, after.y, after.threshold)
        share = min(1.0, max(0.0, (x - before.x) / (after.x - before.x)))

        def between(a: float | None, b: float | None) -> float | None:
            return None if a is None or b is None else a + share * (b - a)

        y, z = before.y, after.y
        return Point(
            x,
            Interval(between(y.value, z.value), between(y.low, z.low), between(y.high, z.high)),
            between(before.threshold, after.threshold),
        )

    @property
    def read_off(self) -> list[Point]:
        """The few points that a table shows."""
        return [self.at(x) for x in self.kind.places]


def curve_blocks(report: Report) -> list[CurveBlock]:
    """The curves of either form of report: of one kind, or of several from one fit."""
    lines = report["curves"] if report["what"] == "curves" else {report["kind"]: report}
    return [_block(KINDS[name], line, report["confidence_level"]) for name, line in lines.items()]


def _block(kind: Kind, line: Mapping[str, Any], level: float) -> CurveBlock:
    lists = (line[key] for key in (kind.x_key, kind.y_key, "low", "high", "threshold"))
    points = tuple(
        Point(x, Interval(y, low, high), at) for x, y, low, high, at in zip(*lists, strict=True)
    )
    return CurveBlock(kind, points, interval(line.get("area")), level)


def score_text(score: float | None, probability: bool) -> str:
    """A score or threshold, with digits that tell it from its neighbours near 0 and near 1.

    A curve has none where even the highest score is too low.
    """
    if score is None:
        return "none"
    room = min(score, 1 - score) if probability else abs(score)
    if room <= 0 or 0.0995 <= room < 1:
        return f"{score:.3f}"
    if probability and room >= 1e-6:
        return f"{score:.{2 - math.floor(math.log10(room))}f}"
    return f"{score:.4g}"


def cut_text(thresholds: Sequence[float], cut: float) -> str:
    """A threshold in as few digits as call the same items positive, and three at least.

    It is rounded down, but not as far as the next lower threshold of the report.
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
    """How many items, labels, positives and classes there are, and which class is positive."""
    items, classes = plural(report["n_items"], "item"), classes_text(report)
    if not report["n_labeled"]:
        return f"{items}, none labeled; {classes}"
    positives = f"{report['n_labeled_positive']:,} of them positive"
    return f"{items}, {report['n_labeled']:,} labeled, {positives}; {classes}"


def level(report: Report) -> str:
    """The confidence level of the report's intervals; thresholds may give it with their rates."""
    known = report.get("confidence_level") or report.get("rates", {}).get("confidence_level", 0.95)
    return percent(known)


def status_note(report: Report) -> str:
    """What the status means, or "" where all is well."""
    status = report["status"]
    if status == Status.OK.value or status not in {known.value for known in Status}:
        return ""
    return Status(status).message


@dataclass(frozen=True)
class Rate:
    """A rate at the best threshold, and what the conditions ask of it; `asked` may be ""."""

    key: str
    name: str
    number: Interval
    asked: str

    @property
    def share(self) -> bool:
        """Whether it lies between 0 and 1, as all but costs do."""
        return self.key != "cost"


_NAMES = {
    "fpr": "false-positive rate",
    "f1": "F1",
    "predicted_positive_rate": "called positive",
    "cost": "cost per item",
}
_SAME = {"tpr": "recall", "tnr": "specificity"}
_CONDITION = re.compile(r"\s*(\w+)\s*((?:>=|<=|>|<)\s*\S+)\s*")


@dataclass(frozen=True)
class ThresholdBlock:
    """The best threshold, how probably it meets the conditions, and what its rates are."""

    report: Report

    @property
    def conditions(self) -> str:
        """All conditions in one phrase."""
        return " and ".join(clean(condition) for condition in self.report["conditions"])

    @property
    def best(self) -> str:
        """The best threshold, which as written calls the same items positive."""
        best = self.report["best"]
        return UNKNOWN if best is None else cut_text(self.report["thresholds"], best)

    @property
    def verdict(self) -> str:
        """What came out: "met", "unlikely", "not met" or "nothing".

        "unlikely" is met with a probability below one half; "nothing" is no threshold at all.
        """
        if self.report["best"] is None:
            return "nothing"
        if not self.report["met"]:
            return "not met"
        return "met" if self.report["best_probability"] >= 0.5 else "unlikely"

    @cached_property
    def rates(self) -> list[Rate]:
        """The rates at the best threshold, those that the conditions are about first."""
        asked = dict(self._asked())
        found = [
            Rate(key, _NAMES.get(key, clean(key.replace("_", " "))), interval(entry),
                 asked.get(key, ""))
            for key, entry in self.report["rates"].items()
            if isinstance(entry, Mapping)
        ]  # fmt: skip
        return sorted(found, key=lambda rate: not rate.asked)

    def _asked(self) -> Iterator[tuple[str, str]]:
        for condition in self.report["conditions"]:
            match = _CONDITION.fullmatch(condition)
            if match:
                yield _SAME.get(match[1], match[1]), match[2]

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
        found: list[tuple[float, float]] = []
        inside = False
        pairs = zip(self.report["thresholds"], self.report["probability"], strict=True)
        for cut, probability in pairs:
            if (probability or 0.0) < least:
                inside = False
            elif inside:
                found[-1] = (found[-1][0], cut)
            else:
                found.append((cut, cut))
                inside = True
        return found

    def ranges_text(self, least: float, most: int = 3) -> str:
        """The widest of those ranges in words, in ascending order."""
        every = self.ranges(least)
        if not every:
            return "nowhere"
        widest = sorted(sorted(every, key=lambda r: r[0] - r[1])[:most])
        thresholds = self.report["thresholds"]
        texts = [
            cut_text(thresholds, low)
            if low == high
            else f"{cut_text(thresholds, low)} to {cut_text(thresholds, high)}"
            for low, high in widest
        ]
        more = f" and {plural(len(every) - most, 'shorter range')}" if len(every) > most else ""
        return ", ".join(texts) + more
