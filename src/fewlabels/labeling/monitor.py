"""The estimates beside the page: the current ones, and their history label by label."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fewlabels.data.label_record import DecidedItems
from fewlabels.errors import FewlabelsError
from fewlabels.estimating import estimate
from fewlabels.evaluation.anytime import GUARDED
from fewlabels.kernels.arrays import Floats, Ints
from fewlabels.kernels.counter_based import mix
from fewlabels.labeling.stopping import Row, Stop, Verdict, labels_to_width
from fewlabels.metrics.registry import METRICS
from fewlabels.predictions import Predictions
from fewlabels.questions.anytime import intervals

WATCHED_ROWS = 5_000
"""Unlabeled items that an estimate beside the page is made from; more would add little."""

USUAL_WIDTH = 0.1
"""The width of an interval that the forecast is for, without a stopping condition."""

_EARLIER = (1, 2, 3, 5, 8, 12, 18, 27, 40, 60, 90, 135, 200, 300, 450, 675, 1_000)
"""Numbers of labels whose estimates are made later, when a record is continued."""

_SALT = 0x3A7C


@dataclass(frozen=True)
class Snapshot:
    """The estimates after `n` labels of this record; `problem` is the reason if there are none."""

    n: int
    rows: tuple[Row, ...]
    seconds: float
    problem: str | None = None


@dataclass
class Monitor:
    """Estimates on the pool from the labels so far, kept by the number of labels.

    `predictions` are the pool, with the labels that its file has, and `stops` the conditions to
    watch for; the others are as in `fewlabels.estimate`.
    """

    predictions: Predictions
    metrics: tuple[str, ...]
    method: Any = "auto"
    level: float = 0.95
    seed: int = 0
    stops: tuple[Stop, ...] = ()
    snapshots: dict[int, Snapshot] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rank = mix(self.predictions.keys ^ np.uint64(_SALT))
        self._base = np.zeros(self.predictions.n_items, dtype=bool)
        self._base[np.argsort(rank, kind="stable")[:WATCHED_ROWS]] = True
        self._guards: dict[str, tuple[bytes, dict[str, tuple[Floats, Floats]]]] = {}

    def watched(self, labels: Ints) -> Ints:
        """Rows that estimates use: the labeled ones, and a sample of the others."""
        return np.flatnonzero(self._base | (labels >= 0))

    def look(self, decided: DecidedItems) -> Snapshot:
        """Estimate from the file's labels and these."""
        begun = time.perf_counter()
        labels, weights = np.array(self.predictions.labels), np.ones(self.predictions.n_items)
        labeled = decided.labeled
        labels[labeled.rows] = labeled.labels
        weights[labeled.rows] = decided.weights()[decided.labels >= 0]
        rows = self.watched(labels)
        problem, judged = None, tuple[Row, ...]()
        try:
            pool = self.predictions.with_labels(labels).with_label_weight(weights)
            made = estimate(
                pool.take(rows),
                self.method,
                list(self.metrics),
                confidence_level=self.level,
                random_state=self.seed,
            )
            judged = tuple(
                Row(r.model, r.metric, r.value, r.low, r.high, r.status,
                    self.guard(r.model, r.metric, labeled))
                for r in made.rows
            )  # fmt: skip
        except FewlabelsError as error:
            problem = str(error)
        except Exception as error:  # the page goes on without an estimate
            traceback.print_exc()
            problem = f"the estimate failed ({type(error).__name__}: {error})"
        snapshot = Snapshot(len(labeled.rows), judged, time.perf_counter() - begun, problem)
        self.snapshots[snapshot.n] = snapshot
        return snapshot

    def guard(self, model: str, metric: str, decided: DecidedItems) -> tuple[float, float] | None:
        """The interval of a metric that holds at every look; None where there is none."""
        ends = self._sequence(metric, decided).get(model)
        return None if ends is None else (float(ends[0][-1]), float(ends[1][-1]))

    def guards(
        self, model: str, metric: str, decided: DecidedItems
    ) -> list[tuple[int, float, float]]:
        """The guard after each of the labels that were drawn: number, low, high."""
        ends = self._sequence(metric, decided).get(model)
        if ends is None:
            return []
        number, (low, high) = np.flatnonzero(decided.labeled.left > 0) + 1, ends
        some = [k - 1 for k in _numbers(len(low))]
        return [(int(number[k]), float(low[k]), float(high[k])) for k in some]

    def _sequence(self, metric: str, decided: DecidedItems) -> dict[str, tuple[Floats, Floats]]:
        """Each classifier's intervals after every drawn label; the last ones are kept."""
        labeled = decided.labeled
        drawn = labeled.drawn
        if metric not in GUARDED or not drawn.rows.size:
            return {}
        key = b"|".join(array.tobytes() for array in labeled)
        if self._guards.get(metric, (b"", {}))[0] != key:
            labels = np.array(self.predictions.labels)
            labels[labeled.rows] = labeled.labels
            ends = intervals(
                self.predictions.with_labels(labels), METRICS[metric], drawn, self.level
            )
            self._guards[metric] = (key, ends)
        return self._guards[metric][1]

    def missing(self, n: int) -> list[int]:
        """Earlier numbers of labels that a picture would show, and that have no estimate yet."""
        return [k for k in _EARLIER if k < n and k not in self.snapshots]

    def forget_after(self, n: int) -> None:
        """Drop estimates from more labels than there are now."""
        self.snapshots = {k: snapshot for k, snapshot in self.snapshots.items() if k <= n}

    def verdicts(self, snapshot: Snapshot) -> list[Verdict]:
        """Verdicts of the stopping conditions."""
        n_labeled = self.predictions.n_labeled
        return [
            stop.verdict(snapshot.rows, snapshot.n + (0 if stop.by_guard else n_labeled))
            for stop in self.stops
        ]

    def report(self, snapshot: Snapshot) -> dict[str, Any]:
        """The estimates in plain values, for the page and for a terminal."""
        verdicts = self.verdicts(snapshot)
        conditions = [{"goal": s.goal} | vars(v) for s, v in zip(self.stops, verdicts, strict=True)]
        return {
            "n": snapshot.n,
            "moments": len(self.snapshots),
            "level": self.level,
            "problem": snapshot.problem,
            "seconds": snapshot.seconds,
            "rows": [self._plain_row(row, snapshot.n) for row in snapshot.rows],
            "stops": conditions,
            "can_stop": bool(verdicts) and all(v.met for v in verdicts),
        }

    def _plain_row(self, row: Row, n: int) -> dict[str, Any]:
        low, high = (None, None) if row.guard is None else row.guard
        width = row.high - row.low
        return {
            "model": row.model,
            "metric": row.metric,
            **{k: _plain(getattr(row, k)) for k in ("value", "low", "high")},
            "guard_low": low,
            "guard_high": high,
            "status": str(row.status),
            "message": row.status.message,
            "labels_to_width": labels_to_width(n + self.predictions.n_labeled, width, USUAL_WIDTH),
        }

    def picture(self, model: str, metric: str, decided: DecidedItems) -> Mapping[str, Any]:
        """History of an interval, in plain values, for `report.narrowing.render_narrowing`."""
        points = []
        for n in sorted(self.snapshots):
            for row in self.snapshots[n].rows:
                if (row.model, row.metric) == (model, metric) and not math.isnan(row.value):
                    points.append({"n": n, "value": row.value, "low": row.low, "high": row.high})
        stop = next(
            (s.requirement for s in self.stops if s.by_guard and s.requirement.metric == metric),
            None,
        )
        guards = self.guards(model, metric, decided)
        return {
            "model": model,
            "metric": metric,
            "level": self.level,
            "points": points,
            "guard": [{"n": n, "low": low, "high": high} for n, low, high in guards],
            "target": None if stop is None else stop.threshold,
        }


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _numbers(n: int, most: int = 60) -> list[int]:
    """Numbers of labels up to n, all of the first and the last, fewer between."""
    if n <= most:
        return list(range(1, n + 1))
    spread = np.unique(np.round(np.geomspace(1, n, most)).astype(int))
    return [int(k) for k in spread]
