"""The rows of a report in the order that they are shown, and which classifier leads them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeVar

from fewlabels.errors import Status
from fewlabels.report.axis import Axis, fit_axis
from fewlabels.report.words import NumberFormat, number_format

Report = Mapping[str, Any]
Entry = TypeVar("Entry")

NOT_APPLICABLE = Status.NOT_APPLICABLE.value
CONTRADICTED = Status.CONTRADICTED.value
PREFERENCES = {1: "larger is better", -1: "smaller is better", 0: ""}
"""Which values are good, by the direction of a metric."""

ENDS = 20
"""How many of the best, and of the worst, are shown of very many classifiers."""

Certainty = Literal[
    "alone", "unordered", "contradicted", "left", "unranked", "clear", "likely", "leaning", "open"
]

_WORDS: tuple[tuple[float, Certainty], ...] = ((0.95, "clear"), (0.8, "likely"), (0.5, "leaning"))


@dataclass(frozen=True)
class Row:
    """One estimate, with what else is known of the classifier by this metric."""

    model: str
    value: float | None
    low: float | None
    high: float | None
    status: str
    best: float | None = None
    truth: float | None = None

    @property
    def ranks(self) -> bool:
        """Whether it has a value that the labels do not contradict."""
        return self.value is not None and self.status != CONTRADICTED

    @property
    def numbers(self) -> tuple[float | None, ...]:
        """Everything that a plot of the row must have room for."""
        return self.value, self.low, self.high, self.truth

    @property
    def reason(self) -> str:
        """Text in place of a missing value."""
        return "not applicable" if self.status == NOT_APPLICABLE else "undefined"


@dataclass(frozen=True)
class Block:
    """All classifiers by one metric, in one group (None: all items).

    It `lacks` those that the metric is not applicable to, if it is to others.
    """

    metric: str
    group: str | None
    rows: tuple[Row, ...]
    level: float | None
    description: str = ""
    direction: int = 0
    bounds: tuple[float | None, float | None] = (None, None)
    ranking: tuple[str, ...] = ()
    writes: NumberFormat | None = None
    truth_name: str = "truth"
    lacks: bool = False

    @cached_property
    def write(self) -> NumberFormat:
        """How the block's numbers are written."""
        return self.writes or number_format(n for row in self.rows for n in row.numbers)

    def figures(self, row: Row) -> tuple[str, str]:
        """A value as it is written, and its interval in brackets, "" where there is none."""
        if row.value is None:
            return row.reason, ""
        if row.low is None or row.high is None:
            return self.write(row.value), ""
        return self.write(row.value), f"[{self.write(row.low)}, {self.write(row.high)}]"

    @property
    def columns(self) -> int:
        """Characters of the longest value with its interval."""
        defined = [n for row in self.rows for n in row.numbers if n is not None]
        # Where nothing is known there still has to be room for the words that say so.
        longest = max((len(self.write(n)) for n in defined), default=5)
        return 3 * longest + len(" [, ]")

    @property
    def has_best(self) -> bool:
        """Whether probabilities of being the best are known."""
        return any(row.best is not None for row in self.rows)

    @property
    def has_truth(self) -> bool:
        """Whether true values are known."""
        return any(row.truth is not None for row in self.rows)

    @property
    def shared_status(self) -> str:
        """The status of all rows, if it is the same and not "ok"; else ""."""
        statuses = {row.status for row in self.rows}
        return statuses.pop() if len(statuses) == 1 and "ok" not in statuses else ""

    def in_order(self, models: Sequence[str]) -> list[Row]:
        """Rows with classifiers in this order, others after them."""
        place = {model: k for k, model in enumerate(models)}
        return sorted(self.rows, key=lambda row: place.get(row.model, len(place)))

    def ranked(self) -> list[Row]:
        """Rows, the best first; in the given order if no direction is better.

        The order is that of the comparison, if there is one, so that all parts of a report agree;
        else that of the values. Values that the labels contradict come last.
        """
        if not self.direction:
            return list(self.rows)
        place = {model: k for k, model in enumerate(self.ranking)}
        return sorted(
            self.rows,
            key=lambda r: (
                r.value is None,
                r.status == CONTRADICTED,
                place.get(r.model, len(place)),
                -self.direction * (r.value or 0.0),
            ),
        )

    def ends(self, rows: Sequence[Row], ends: int = ENDS) -> tuple[list[Row], list[Row], list[Row]]:
        """Rows of a ranking to be shown first, those between, and the last; all first if few.

        Few are three times as many as `ends`, which are shown of either side. Without a direction
        the first ones are as given, and none are the last. What has no value is between.
        """
        if len(rows) <= 3 * ends:
            return list(rows), [], []
        defined = [row for row in rows if row.value is not None]
        last = defined[max(ends, len(defined) - ends) :] if self.direction else []
        first = defined[:ends]
        shown = {id(row) for row in (*first, *last)}
        return first, [row for row in rows if id(row) not in shown], last


def grouped(rows: Iterable[Entry], key: Callable[[Entry], Any]) -> dict[Any, list[Entry]]:
    """Rows by their key, in the order in which they come."""
    out: dict[Any, list[Entry]] = {}
    for row in rows:
        out.setdefault(key(row), []).append(row)
    return out


def blocks(report: Report) -> list[Block]:
    """All estimates of the report: all items first, then group by group, metric by metric."""
    rows: dict[tuple[str | None, str], list[Mapping[str, Any]]] = {}
    for row in report["estimates"]:
        rows.setdefault((row["group"], row["metric"]), []).append(row)
    place = {group: k for k, group in enumerate(dict.fromkeys(group for group, _ in rows))}
    shown = []
    # A stable sort: all items first, the groups in the order in which they came.
    for group, metric in sorted(rows, key=lambda key: (key[0] is not None, place[key[0]])):
        entries = rows[group, metric]
        info = report.get("metric_info", {}).get(metric, {})
        # What is best, and what is true, is said of all items alone.
        best = report.get("best", {}).get(metric) or {} if group is None else {}
        truth = report.get("truth", {}) if group is None else {}
        ranking = tuple(((report.get("comparison") or {}).get(metric) or {}).get("ranking") or ())
        members, several = [], sum(entry["value"] is not None for entry in entries) > 1
        for entry in entries:
            model, value, status = entry["model"], entry["value"], entry["status"]
            ranks = value is not None and status != CONTRADICTED and several
            members.append(
                Row(
                    model, value, entry["low"], entry["high"], status,
                    best.get(model) if ranks else None, (truth.get(model) or {}).get(metric),
                )
            )  # fmt: skip
        shown.append(
            Block(
                metric,
                group,
                tuple(members),
                entries[0]["confidence_level"],
                info.get("description") or "",
                info.get("direction") or 0,
                tuple(info.get("bounds") or (None, None)),
                ranking if group is None else (),
                lacks=0 < sum(row.status == NOT_APPLICABLE for row in members) < len(members),
            )
        )
    return shown


def applicable(shown: Sequence[Block]) -> tuple[list[Block], list[str]]:
    """Blocks of the metrics that apply to any classifier, and the names of the other metrics."""
    applying = {
        block.metric for block in shown for row in block.rows if row.status != NOT_APPLICABLE
    }
    others = dict.fromkeys(block.metric for block in shown if block.metric not in applying)
    return [block for block in shown if block.metric in applying], list(others)


def common_axis(shown: Iterable[Block], ticks: int = 5) -> Axis:
    """One scale for blocks of the same metric."""
    shown = list(shown)
    values = [n for block in shown for row in block.rows for n in row.numbers]
    return fit_axis(values, shown[0].bounds, ticks)


def status_notes(report: Report, shown: Iterable[Block]) -> list[tuple[str, str]]:
    """The statuses that occur, other than "ok", with what they mean."""
    occurring = dict.fromkeys(row.status for block in shown for row in block.rows)
    messages = report.get("status_messages", {})
    return [(s, messages[s]) for s in occurring if s != "ok" and s in messages]


@dataclass(frozen=True)
class Verdict:
    """The classifier with the best value by one metric, and how sure it is that it is the best.

    `certainty` is "alone" for a single classifier; "unordered" if no direction is better;
    "contradicted" if the labels contradict all values, so that none is called the best, and "left"
    if they contradict all but one; "unranked" if the probability of being best is unknown; else it
    grades that probability. `rivals` may also be the best (unranked: their interval overlaps the
    leader's); `likelier` is the one that is more probably the best than the leader, whose value is
    better. `n_ranked` have a value that the labels do not contradict, `contradicted` have one that
    they do.
    """

    block: Block
    leader: Row
    certainty: Certainty
    rivals: tuple[Row, ...]
    likelier: Row | None
    n_ranked: int
    contradicted: tuple[Row, ...]


def verdict(block: Block) -> Verdict | None:
    """The verdict by the block's metric; None where no classifier has a value."""
    defined = [row for row in block.ranked() if row.value is not None]
    if not defined:
        return None
    leader, others = defined[0], [row for row in defined[1:] if row.ranks]
    certainty: Certainty
    if len(defined) == 1:
        certainty = "alone"
    elif not block.direction:
        certainty = "unordered"
    elif not leader.ranks:
        certainty = "contradicted"
    elif not others:
        certainty = "left"
    elif leader.best is None:
        certainty = "unranked"
    else:
        certainty = next((word for least, word in _WORDS if leader.best >= least), "open")
    if certainty == "unranked":
        rivals = [row for row in others if _overlap(leader, row)]
    else:
        rivals = [row for row in others if (row.best or 0) >= 0.1]
        rivals.sort(key=lambda row: -(row.best or 0))
    aside = () if certainty in ("alone", "unordered") else [row for row in defined if not row.ranks]
    above = [row for row in rivals[:1] if (row.best or 0.0) >= (leader.best or 0.0) + 0.005]
    likelier = above[0] if above and leader.best is not None else None
    ranked = len(others) + leader.ranks
    return Verdict(block, leader, certainty, tuple(rivals), likelier, ranked, tuple(aside))


def _overlap(a: Row, b: Row) -> bool:
    if a.low is None or a.high is None or b.low is None or b.high is None:
        return True
    return a.low <= b.high and b.low <= a.high
