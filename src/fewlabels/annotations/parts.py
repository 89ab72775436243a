"""One classifier on one group of items: sums that add over items, and the answer from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from fewlabels.annotations.diagrams import (
    disagreement_diagram,
    dispersion_rows,
    reliability_rows,
)
from fewlabels.annotations.losses import METRICS, intervals, losses
from fewlabels.annotations.statistic_losses import METRICS as STATISTIC_METRICS
from fewlabels.annotations.statistic_losses import one_unit, score_sums, scored_items
from fewlabels.annotations.statistics import DISAGREEMENT, LabelStatistic
from fewlabels.errors import Status
from fewlabels.estimates import Estimate
from fewlabels.evaluation.status import Reasons
from fewlabels.kernels.arrays import Floats
from fewlabels.kernels.label_histograms import Annotated, Scheme, Scored, Sums, sums_of

FEW = 20
"""Fewer annotated items than this are few."""

DIAGRAMS = ("reliability", "disagreement_reliability", "dispersion")

ScoredSums = tuple[Floats, Floats]


class Asked(NamedTuple):
    """What is asked of every classifier and group; `level` None asks for no intervals."""

    scheme: Scheme
    statistics: tuple[LabelStatistic, ...]
    level: float | None
    seed: int


class Judged:
    """Items with a label, a prediction of one classifier, and some weight.

    Parameters
    ----------
    data
        Counts and probabilities; `pair` is left to be found.
    expected
        What the classifier predicts of a statistic, (n,).
    """

    def __init__(self, data: Annotated, expected: Callable[[LabelStatistic], Floats]) -> None:
        self._expected = expected
        self.data = data._replace(pair=expected(DISAGREEMENT))
        self._scored: dict[str, Scored] = {}

    def scored(self, phi: LabelStatistic) -> Scored:
        """The items with enough labels for a statistic."""
        if phi.name not in self._scored:
            pair = self.data.pair
            predicted = pair if phi is DISAGREEMENT and pair is not None else self._expected(phi)
            self._scored[phi.name] = scored_items(
                phi, self.data.counts, predicted, self.data.weight
            )
        return self._scored[phi.name]


@dataclass(eq=False)
class PartSums:
    """Sums over items: they add over batches and files.

    `scored` has those of the statistics that any item has enough labels for, by their names;
    `sizes` maps a number of labels to how many items have it.
    """

    sums: Sums
    scored: dict[str, ScoredSums] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)

    @staticmethod
    def of(items: Judged, asked: Asked, *, diagrams: bool) -> PartSums:
        """The sums of some items; those of disagreement as a statistic serve its diagram alone."""
        size = items.data.counts.sum(axis=1).astype(np.int64)
        # What nobody's labels can tell is not predicted either: large orders take long.
        statistics = [phi for phi in asked.statistics if size.max() >= phi.order]
        if diagrams:
            statistics.append(DISAGREEMENT)
        return PartSums(
            sums_of(items.data, asked.scheme),
            {phi.name: one_unit(items.scored(phi), asked.scheme) for phi in statistics},
            items_by(size),
        )

    def merge(self, other: PartSums) -> None:
        """Add the sums of other items."""
        self.sums = Sums(*(a + b for a, b in zip(self.sums, other.sums, strict=True)))
        for name, more in other.scored.items():
            have = self.scored.get(name)
            self.scored[name] = more if have is None else (have[0] + more[0], have[1] + more[1])
        for labels, items in other.sizes.items():
            self.sizes[labels] = self.sizes.get(labels, 0) + items

    def at_least(self, labels: int) -> int:
        """How many items have so many labels."""
        return sum(items for size, items in self.sizes.items() if size >= labels)

    def to_dict(self) -> dict[str, Any]:
        """Arrays and plain values."""
        return {
            "sums": list(self.sums),
            "scored": {name: list(sums) for name, sums in self.scored.items()},
            "sizes": [list(pair) for pair in self.sizes.items()],
        }

    @staticmethod
    def from_dict(value: Mapping[str, Any]) -> PartSums:
        """What `to_dict` gave."""
        return PartSums(
            Sums(*value["sums"]),
            {name: (items, cells) for name, (items, cells) in value["scored"].items()},
            {int(labels): int(items) for labels, items in value["sizes"]},
        )


def items_by(size: Any) -> dict[int, int]:
    """How many items there are of each number of labels."""
    many, items = np.unique(size, return_counts=True)
    return dict(zip(many.tolist(), items.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class Part:
    """One classifier on one group of items.

    `sums` are None where it has no item with a label and a prediction. `items` are what intervals
    are drawn from: all of them or, where `sampled`, a random sample; None where there is none.
    """

    asked: Asked
    model: str
    group: str | None
    classes: tuple[Any, ...]
    sums: PartSums | None
    items: Judged | None
    notes: Reasons
    sampled: bool = False

    def rows(self) -> Iterator[Estimate]:
        """An estimate per metric."""
        for name, found in self._losses().items():
            yield self._row(name, *found)
        for phi in self.asked.statistics:
            of_statistic = self._scored(phi)
            for metric in STATISTIC_METRICS:
                yield self._row(f"{metric}_{phi.name}", *of_statistic[metric], phi)

    def diagrams(self) -> dict[str, list[dict[str, Any]]]:
        """The rows of the diagrams, by name."""
        if self.sums is None:
            return {}
        level = self.asked.level
        by_class = {
            "reliability": reliability_rows(self.sums.sums, level),
            "dispersion": dispersion_rows(self.sums.sums),
        }
        named = {
            name: [row | {"class": self.classes[row["class"]]} for row in found]
            for name, found in by_class.items()
        }
        pairs = self.sums.scored[DISAGREEMENT.name][1]
        return named | {"disagreement_reliability": disagreement_diagram(pairs, level)}

    def _losses(self) -> dict[str, tuple[float, float, float]]:
        scheme, _, level, seed = self.asked
        if self.sums is None:
            return dict.fromkeys(METRICS, (math.nan, math.nan, math.nan))
        value = losses(self.sums.sums, scheme)
        ends = {}
        if level is not None and self.items is not None:
            ends = intervals(
                self.items.data, scheme, self.sums.sums, level, seed, sampled=self.sampled
            )
        return {name: (value[name], *ends.get(name, (math.nan, math.nan))) for name in METRICS}

    def _scored(self, phi: LabelStatistic) -> dict[str, tuple[float, float, float]]:
        scheme, _, level, seed = self.asked
        if self.sums is None or phi.name not in self.sums.scored:
            return dict.fromkeys(STATISTIC_METRICS, (math.nan, math.nan, math.nan))
        sums = self.sums.scored[phi.name]
        items = self.items if level is not None else None
        scored = None if items is None else items.scored(phi)
        found = score_sums(phi, sums, scored, scheme, level, seed, sampled=self.sampled)
        ends = found.get("intervals", {})
        return {
            name: (found[name], *ends.get(name, (math.nan, math.nan))) for name in STATISTIC_METRICS
        }

    def _row(
        self,
        metric: str,
        value: float,
        low: float,
        high: float,
        phi: LabelStatistic | None = None,
    ) -> Estimate:
        level = math.nan if self.asked.level is None else self.asked.level
        status = self._status(metric, value, phi)
        return Estimate(self.model, metric, self.group, value, low, high, level, status)

    def _status(self, metric: str, value: float, phi: LabelStatistic | None) -> Status:
        where = "" if self.group is None else f" in group {self.group}"
        if math.isnan(value):
            self.notes.add(f"undefined: {self._why(metric, phi)}{where}", self.model)
            return Status.UNDEFINED
        least = _least_labels(metric, phi)
        size = 0 if self.sums is None else self.sums.at_least(least)
        if size < FEW:
            labels = "a label" if least == 1 else f"{least} labels or more"
            reason = f"few-labels: only {size} item{'s' * (size > 1)} with {labels}{where}"
            self.notes.add(reason, self.model)
            return Status.FEW_LABELS
        return Status.OK

    def _why(self, metric: str, phi: LabelStatistic | None) -> str:
        if self.sums is None:
            return "no item with a label and a prediction, so no losses"
        least = _least_labels(metric, phi)
        if phi is None:
            return (
                "EL, DL and the losses of disagreement need items that two annotators or more "
                "labeled, and there is none: ask a second annotator about some items"
            )
        if self.sums.at_least(least):
            return f"EL_{phi.name} has too many outcomes to sum over; the other losses stand"
        what = "the losses" if least == phi.order else "EL"
        return (
            f"{what} of {phi.name} need items of {least} labels or more, and there is none: ask "
            "more annotators, or take a statistic of fewer labels"
        )


def _least_labels(metric: str, phi: LabelStatistic | None) -> int:
    """How many labels an item needs to count."""
    if phi is not None:
        return 2 * phi.order if metric.startswith("EL_") else phi.order
    return 2 if metric in ("EL", "DL") or "_disagreement" in metric else 1
