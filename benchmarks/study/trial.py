"""A part: some runs of one method on one set and size, as means over the classifiers."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.cells import FAILED, Body, Cell
from bench.experiment import shown
from bench.splits import generator, seed_of
from fewlabels.errors import FewlabelsError, Status, one_line
from fewlabels.estimates import Estimates
from fewlabels.estimating import estimate
from fewlabels.kernels.arrays import Bools, Floats
from fewlabels.kernels.interval_draws import interval
from fewlabels.predictions import Predictions
from study.methods import method_for
from study.protocol import FIGURES, LEVELS, METRICS, Study
from study.sets import METRIC_OBJECTS, StudySet, load
from study.statistics import interval_score

PREPARE = "set"
"""Kind of a cell that makes a set, keeps it, and gives its facts."""

_MOST_KEPT = 64
_PLACE = {name: k for k, name in enumerate(FIGURES)}


class Bench:
    """Computes parts; sets are loaded when they are first asked for."""

    def __init__(self, study: Study, data: Sequence[str], cache_folder: Path) -> None:
        self.study, self.data, self.cache_folder = study, tuple(data), cache_folder
        self._sets: OrderedDict[str, StudySet] = OrderedDict()

    def run(self, cell: Cell) -> Body:
        """Compute a part; what a method cannot do is part of the answer."""
        chosen = self.set_of(cell.dataset)
        if cell.kind == PREPARE:
            return chosen.facts()
        runs = self.study.runs_of(cell.run)
        values = np.full((len(runs), len(FIGURES), len(METRICS)), np.nan)
        seconds, message = [], ""
        for k, run in enumerate(runs):
            values[k], took, said = self._one(chosen, cell, run)
            seconds.append(took)
            message = message or said
        return _body(list(runs), values, seconds, message)

    def _one(self, chosen: StudySet, cell: Cell, run: int) -> tuple[Floats, float, str]:
        items, labeled = self.items(chosen, cell.n_labeled, cell.n_unlabeled, run)
        # Methods share it: what is alike in two of them is drawn alike, and falls out of the pair.
        seed = seed_of("fit", self.study.seed, chosen.name, cell.n_labeled, cell.n_unlabeled, run)
        started = time.perf_counter()
        try:
            model = method_for(cell.method, chosen.family, items)
            given, model = shown(model, items, labeled)
            found = estimate(
                given, model, list(METRICS), confidence_level=max(LEVELS), random_state=seed,
                workers=1,
            )  # fmt: skip
        except MemoryError:
            raise
        except Exception as error:
            # A study outlives a method's failure and records it.
            failed = np.full((len(FIGURES), len(METRICS)), np.nan)
            failed[_PLACE["failed"]] = 1.0
            kind = "" if isinstance(error, FewlabelsError) else f"{type(error).__name__}: "
            return failed, float("nan"), one_line(f"{kind}{error}")
        return figures(found, chosen.truth), time.perf_counter() - started, ""

    def items(
        self, chosen: StudySet, n_labeled: int, n_unlabeled: int, run: int
    ) -> tuple[Predictions, Bools]:
        """Items of a run, the same for every method, with all labels; and which have one.

        Items are drawn at random, and so are those with labels: no class is forced to have one.
        """
        rng = generator("items", self.study.seed, chosen.name, n_labeled, n_unlabeled, run)
        n = n_labeled + n_unlabeled
        rows = rng.choice(chosen.predictions.n_items, n, replace=False)
        return chosen.predictions.take(rows), np.arange(n) < n_labeled

    def set_of(self, name: str) -> StudySet:
        """A set by its name, kept for the next time."""
        if name not in self._sets:
            self._sets[name] = load(name, self.data, self.cache_folder)
            if len(self._sets) > _MOST_KEPT:
                self._sets.popitem(last=False)
        self._sets.move_to_end(name)
        return self._sets[name]


def figures(found: Estimates, truth: Floats) -> Floats:
    """What `FIGURES` names, (figures, metrics), as means over the classifiers.

    Error is that of the value, absolute; bias is with its sign; failed the share of classifiers
    without a value or interval, which take no part in the others. A classifier whose metric is
    undefined on all items (`truth`, (M, metrics)) takes no part in any.
    """
    n_models = len(found.models)
    value = np.array([r.value for r in found.rows]).reshape(n_models, len(METRICS))
    ends = np.full((2, len(LEVELS), n_models, len(METRICS)), np.nan)
    for m, metric in enumerate(METRIC_OBJECTS):
        draws = found.draws[metric.name, None]
        for k, level in enumerate(LEVELS):
            ends[:, k, :, m] = interval(value[:, m], draws, level, metric.bounds)
    low, high = ends
    known = np.isfinite(truth)
    good = known & np.isfinite(value) & np.isfinite(low).all(axis=0) & np.isfinite(high).all(axis=0)
    out = np.full((len(FIGURES), len(METRICS)), np.nan)
    out[_PLACE["error"]] = _mean(np.abs(value - truth), good)
    out[_PLACE["bias"]] = _mean(value - truth, good)
    out[_PLACE["failed"]] = _mean((~good).astype(float), known)
    for k, level in enumerate(LEVELS):
        held = (low[k] <= truth) & (truth <= high[k])
        out[_PLACE[f"coverage_{level:g}"]] = _mean(held.astype(float), good)
        out[_PLACE[f"width_{level:g}"]] = _mean(high[k] - low[k], good)
        out[_PLACE[f"score_{level:g}"]] = _mean(interval_score(low[k], high[k], truth, level), good)
    return out


def _mean(values: Floats, rows: Bools) -> Floats:
    """Mean over some of the classifiers of each metric; NaN where there are none."""
    count = rows.sum(axis=0)
    total = np.where(rows, values, 0.0).sum(axis=0)
    mean: Floats = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return mean


def _body(runs: Sequence[int], values: Floats, seconds: Sequence[float], message: str) -> Body:
    """The answer as `bench.folder` keeps it; seven digits are more than runs can tell."""
    flat = [float(f"{v:.7g}") if np.isfinite(v) else None for v in values.ravel().tolist()]
    return {
        "models": [],
        "metrics": list(METRICS),
        "groups": list(FIGURES),
        "runs": list(runs),
        "estimate": flat,
        "low": None,
        "high": None,
        "status": FAILED if message else str(Status.OK),
        "message": message,
        "seconds": [s if np.isfinite(s) else None for s in seconds],
        "traits": [],
    }
