"""What a report of label histograms says, in the order and the words that are shown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fewlabels.report.answer import Verdict, verdict
from fewlabels.report.blocks import Block, Report, Row, blocks
from fewlabels.report.words import number_format, plural

LOSSES = ("accuracy", "L", "EL", "CL", "DL", "CE")
"""What is shown of the classes, in this order."""

OF_PAIRS = ("L_disagreement", "CL_disagreement", "CE_disagreement")
"""What is shown of the disagreement of two annotators."""

OF_STATISTIC = ("L", "CL", "CE", "EL")
"""What is shown of any other statistic of labels; its name follows an underscore."""

MEANINGS = {
    "accuracy": "share of items whose most frequent label is the classifier's likeliest class",
    "L": "squared distance of the probabilities from single labels; what annotators disagree "
    "about is in it, so the best classifier does not reach 0",
    "EL": "epistemic loss: squared distance of the probabilities from the label distribution",
    "CL": "calibration loss: the part of EL that calibration could remove",
    "DL": "dispersion loss: the rest of EL, which only a better classifier removes",
    "CE": "calibration error: the square root of CL",
    "L_disagreement": "squared error of the predicted probability that two annotators disagree",
    "CL_disagreement": "the part of it that calibration could remove",
    "CE_disagreement": "the square root of that: how far off the predicted disagreement is",
}
"""What each loss is, in words."""

UNBIASED = (
    "a loss below 0 is one too small to tell from 0: what few labels add by chance is taken off, "
    "at times too much"
)

_DIRECTION = {"accuracy": 1}
_BOUNDS: dict[str, tuple[float | None, float | None]] = {"accuracy": (0.0, 1.0)}
_FAMILIES = {
    "unanimity": "whether {} labels of an item are all the same",
    "majority_strength": "share of the most frequent class among {} labels of an item",
}


@dataclass(frozen=True)
class Rates:
    """How often two annotators disagree on an item, and how often a classifier says they will."""

    model: str
    observed: float
    predicted: float
    n_items: int


@dataclass(frozen=True)
class Answer:
    """The classifier nearest to the labels, by EL, or by L where no item has two labels."""

    verdict: Verdict
    calibration: float | None
    dispersion: float | None
    rates: Rates | None

    @property
    def metric(self) -> str:
        """By what it is the nearest."""
        return self.verdict.block.metric

    @property
    def leader(self) -> Row:
        """The nearest."""
        return self.verdict.leader

    @property
    def parts(self) -> str:
        """How much of EL calibration could remove; "" where EL is not known."""
        value, removed, left = self.leader.value, self.calibration, self.dispersion
        if self.metric != "EL" or value is None or removed is None or left is None:
            return ""
        if value <= 0:
            return "That is too small to tell from 0: the labels show no distance."
        if removed <= 0:
            return (
                f"The labels show nothing that calibration could remove (CL {number(removed)}); "
                f"only a better classifier is nearer (DL {number(left)})."
            )
        if left <= 0:
            return f"Calibration could remove all of it (CL {number(removed)}, DL {number(left)})."
        return (
            f"Calibration could remove {number(removed)} of it (CL); {number(left)} would be left "
            "(DL), which only a better classifier removes."
        )


@dataclass(frozen=True)
class Assessed:
    """The report, with its estimates by group and metric."""

    report: Report

    @cached_property
    def _blocks(self) -> dict[tuple[str | None, str], Block]:
        metrics = dict.fromkeys(row["metric"] for row in self.report["estimates"])
        info = {
            name: {
                "description": MEANINGS.get(name, ""),
                "direction": _DIRECTION.get(name, -1),
                "bounds": _BOUNDS.get(name),
            }
            for name in metrics
        }
        shown = blocks({**self.report, "metric_info": info})
        return {(block.group, block.metric): block for block in shown}

    def block(self, metric: str, group: str | None = None) -> Block:
        """All classifiers by one metric."""
        return self._blocks[group, metric]

    def row(self, model: str, metric: str, group: str | None = None) -> Row:
        """One estimate."""
        return next(row for row in self.block(metric, group).rows if row.model == model)

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The groups, all items left out."""
        return tuple(dict.fromkeys(group for group, _ in self._blocks if group is not None))

    @property
    def level(self) -> float | None:
        """Confidence level of the intervals; None where there are none."""
        return next((block.level for block in self._blocks.values()), None)

    @property
    def statistics(self) -> Sequence[str]:
        """Names of the statistics besides disagreement."""
        names: Sequence[str] = self.report["diagnostics"]["statistics"]
        return names

    @property
    def models(self) -> Sequence[str]:
        """Classifiers, the nearest to the labels first."""
        return [row.model for row in self._nearest.ranked()]

    @property
    def _nearest(self) -> Block:
        of_el = self.block("EL")
        return of_el if any(row.value is not None for row in of_el.rows) else self.block("L")

    @cached_property
    def answer(self) -> Answer | None:
        """The classifier that is named first; None where none could be judged."""
        found = verdict(self._nearest)
        if found is None:
            return None
        of_it = found.leader.model
        return Answer(
            found,
            self.row(of_it, "CL").value,
            self.row(of_it, "DL").value,
            next((rates for rates in self.rates if rates.model == of_it), None),
        )

    @cached_property
    def rates(self) -> tuple[Rates, ...]:
        """Observed and predicted disagreement, in the order of `models`; none are possible."""
        known: Mapping[str, Mapping[str, Any]] = self.report["diagnostics"]["disagreement"]
        return tuple(Rates(model, **known[model]) for model in self.models if model in known)

    @cached_property
    def negative(self) -> bool:
        """Whether a loss that is shown is below 0."""
        shown = {*LOSSES, *OF_PAIRS}
        shown |= {f"{metric}_{name}" for name in self.statistics for metric in OF_STATISTIC}
        return any(
            row.value is not None and row.value < 0
            for (_, metric), block in self._blocks.items()
            if metric in shown
            for row in block.rows
        )

    @property
    def labels(self) -> str:
        """How many labels there are, in words."""
        per_item: Mapping[str, int] = self.report["labels_per_item"]
        sizes = sorted(int(size) for size in per_item)
        each = f"{sizes[0]}" if sizes[0] == sizes[-1] else f"{sizes[0]} to {sizes[-1]}"
        n_items: int = self.report["n_annotated"]
        labels = plural(self.report["n_labels"], "label")
        return f"{labels} of {plural(n_items, 'item')}" + (f", {each} each" if n_items > 1 else "")

    @property
    def calibration(self) -> str:
        """The calibration that was applied first; "" if none."""
        return str(self.report["diagnostics"].get("calibration") or "")


def statistic_meaning(name: str) -> str:
    """What a statistic is, in words; "" for one's own."""
    found = re.fullmatch(r"(unanimity|majority_strength)_(\d+)", name)
    return _FAMILIES[found[1]].format(found[2]) if found else ""


def share(value: float) -> str:
    """A rate as a percentage."""
    return f"{100 * value:.1f}%"


def number(value: float | None) -> str:
    """A number alone, as those of a table are written."""
    return number_format([value])(value)


def figures(block: Block, row: Row) -> tuple[str, str]:
    """A value, and its interval in brackets, "" where there is none."""
    if row.value is None:
        return row.reason, ""
    write = block.write
    return write(row.value), f"[{write(row.low)}, {write(row.high)}]" if row.has_interval else ""
