"""The promises that the study checks, computed from its runs, and the cells that break them.

A cell is a place (set and sizes) and a metric. Where runs of two methods are compared they are
paired: both saw the same items and labels. A cell breaks a promise as measured, and breaks it
"surely" if it does so beyond two standard errors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fewlabels.kernels.arrays import Floats
from study.protocol import DEFAULT, METRICS, PUBLISHED, REFERENCE
from study.results import Place, StudyResults
from study.statistics import Figure, coverage, mean, over_clusters, ratio

NEAR_LOWEST = 1.05
NOT_WORSE = 1.10
"""Most that the error may be of the lowest one, and of labeled-only's."""

COVERED = (0.87, 0.94)
FLOOR = 0.80
"""Where the coverage of 90% intervals belongs, and its least."""

NARROW, WIDE = 0.8, 1.1
"""Most that the median width may be of labeled-only's, and most in any cell."""

PUBLISHED_SET = "CivilComments"
REDUCTIONS = {20: 0.15, 50: 0.20, 100: 0.30}
REDUCED, KEPT = ("accuracy", "ece"), ("roc_auc", "average_precision")
"""Least reductions of the error of `PUBLISHED`, by labels; metrics that may not lose."""

FEW_LABELS = 20
_FEWEST_RUNS = 0.5
"""A rival counts where it has an answer in this share of the runs at least."""

Parts = tuple[str, Callable[[str], bool]]


class Compared(NamedTuple):
    """A cell of the method that is judged, as a ratio to another or as a share."""

    place: Place
    metric: str
    other: str
    figure: Figure

    def surely_above(self, bound: float) -> bool:
        """Beyond two standard errors; one run alone is sure of nothing."""
        return self.figure.value - 2 * self.figure.se > bound

    def surely_below(self, bound: float) -> bool:
        """The same below."""
        return self.figure.value + 2 * self.figure.se < bound


@dataclass(frozen=True)
class Share:
    """How many cells keep a promise, on some of the sets.

    `kept` counts cells as measured, `not_broken` those that do not break it surely; their standard
    errors are over sets. `broken` are the cells that surely break it, the worst first; `extreme`
    is the worst of all, None where there is no cell.
    """

    kept: Figure
    not_broken: Figure
    broken: tuple[Compared, ...]
    extreme: Compared | None


@dataclass(frozen=True)
class Promises:
    """Each promise by part of the sets ("made", "real", "all").

    `published` are ratios to `PUBLISHED` with the most that each may be; `width` the median ratio
    of widths, with its standard error over sets, beside the cells that are wider.
    """

    lowest: dict[str, Share]
    labeled: dict[str, Share]
    coverage: dict[str, Share]
    floor: dict[str, Share]
    width: dict[str, Share]
    median_width: dict[str, Figure]
    published: tuple[tuple[Compared, float], ...]


def promises(results: StudyResults, judged: str = DEFAULT) -> Promises:
    """Every promise of `judged`, checked on what there is."""
    lowest = list(_to_lowest(results, judged))
    to_labels = list(_to_labels(results, judged, "error"))
    covered = list(_covered(results, judged))
    widths = [
        c
        for c in _to_labels(results, judged, "width_0.9")
        if c.place.n_unlabeled >= results.usual(c.place.set)
    ]
    return Promises(
        _by_part(results, lowest, lambda c: c.figure.value - NEAR_LOWEST),
        _by_part(results, to_labels, lambda c: c.figure.value - NOT_WORSE),
        _by_part(results, covered, _outside),
        _by_part(results, covered, lambda c: FLOOR - c.figure.value),
        _by_part(results, widths, lambda c: c.figure.value - WIDE),
        {
            part: over_clusters([c.figure.value for c in own], [c.place.set for c in own], _median)
            for part, own in _parts(results, widths)
        },
        tuple(_to_published(results, judged)),
    )


def _median(x: Floats) -> float:
    return float(np.median(x))


def _outside(cell: Compared) -> float:
    """How far coverage is outside of where it belongs; negative inside."""
    low, high = COVERED
    return max(low - cell.figure.value, cell.figure.value - high)


def _parts(
    results: StudyResults, cells: Sequence[Compared]
) -> Iterator[tuple[str, list[Compared]]]:
    """Cells of made sets, of real ones, and all of them."""
    for part in ("made", "real", "all"):
        yield (
            part,
            [
                c
                for c in cells
                if part == "all" or bool(results.sets[c.place.set]["family"]) == (part == "made")
            ],
        )


def _by_part(
    results: StudyResults, cells: Sequence[Compared], excess: Callable[[Compared], float]
) -> dict[str, Share]:
    """A promise is kept where `excess` is at most 0, and surely broken beyond two errors."""
    found = {}
    for part, own in _parts(results, cells):
        sets = [c.place.set for c in own]
        over = [excess(c) for c in own]
        sure = [e - 2 * c.figure.se > 0 for e, c in zip(over, own, strict=True)]
        worst = sorted(range(len(own)), key=lambda k: -over[k])
        found[part] = Share(
            over_clusters([e <= 0 for e in over], sets, _share),
            over_clusters([not s for s in sure], sets, _share),
            tuple(own[k] for k in worst if sure[k]),
            own[worst[0]] if worst else None,
        )
    return found


def _share(x: Floats) -> float:
    return float(np.mean(x))


def _judged_places(results: StudyResults, judged: str) -> Iterator[tuple[Place, str]]:
    for place in results.places:
        if (place, judged) in results.table:
            yield from ((place, metric) for metric in METRICS)


def _to_lowest(results: StudyResults, judged: str) -> Iterator[Compared]:
    """Error of the judged method over the lowest of the others, which the same runs choose.

    The lowest of several means is biased downwards, which is in favour of the others.
    """
    for place, metric in _judged_places(results, judged):
        rivals = [m for m in results.methods_at(place) if m != judged]
        found = [
            Compared(place, metric, rival, figure)
            for rival in rivals
            if _answers(results, place, rival, metric)
            and not np.isnan(
                (figure := ratio(*results.paired(place, judged, rival, "error", metric))).value
            )
        ]
        if found:
            yield max(found, key=lambda c: c.figure.value)


def _answers(results: StudyResults, place: Place, method: str, metric: str) -> bool:
    known = np.isfinite(results.table[place, method].figure("error", metric))
    return bool(known.mean() >= _FEWEST_RUNS)


def _to_labels(results: StudyResults, judged: str, figure: str) -> Iterator[Compared]:
    """Error or width over that of the labels alone, where there are enough of them."""
    for place, metric in _judged_places(results, judged):
        if place.n_labeled < FEW_LABELS or (place, REFERENCE) not in results.table:
            continue
        found = ratio(*results.paired(place, judged, REFERENCE, figure, metric))
        if not np.isnan(found.value):
            yield Compared(place, metric, REFERENCE, found)


def _covered(results: StudyResults, judged: str) -> Iterator[Compared]:
    for place, metric in _judged_places(results, judged):
        found = coverage(results.table[place, judged].figure("coverage_0.9", metric))
        if found.n:
            yield Compared(place, metric, "", found)


def _to_published(results: StudyResults, judged: str) -> Iterator[tuple[Compared, float]]:
    if PUBLISHED_SET not in results.sets:
        return
    for n_labeled, least in REDUCTIONS.items():
        place = Place(PUBLISHED_SET, n_labeled, results.usual(PUBLISHED_SET))
        if any((place, m) not in results.table for m in (judged, PUBLISHED)):
            continue
        for metric in (*REDUCED, *KEPT):
            found = ratio(*results.paired(place, judged, PUBLISHED, "error", metric))
            yield (
                Compared(place, metric, PUBLISHED, found),
                1 - least if metric in REDUCED else 1.0,
            )


def why_wider(results: StudyResults, cell: Compared, judged: str = DEFAULT) -> str:
    """What can be said of a cell whose interval is wider than labeled-only's."""
    own, other = (
        mean(results.table[cell.place, m].figure("coverage_0.9", cell.metric)).value
        for m in (judged, REFERENCE)
    )
    missing = mean(results.table[cell.place, REFERENCE].figure("failed", cell.metric)).value
    if other < COVERED[0]:
        return f"labeled-only's holds {other:.0%} only, this one {own:.0%}"
    if missing > 0.1:
        return f"labeled-only has no answer in {missing:.0%}"
    return f"both hold: {own:.0%}, labeled-only {other:.0%}"


def counted(broken: Iterable[Compared]) -> dict[str, int]:
    """How many cells there are of each metric, the most first."""
    return dict(Counter(c.metric for c in broken).most_common())
