"""What tables and figures are made from: the statistics of every setting, and the orders."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fewlabels.bench.effective_size import Curve, curves
from fewlabels.bench.summary_cells import Cell, cells
from fewlabels.bench.summary_errors import CURVE, FLOOR, Comparison, Setting, comparisons
from fewlabels.kernels.arrays import Array
from fewlabels.metrics.registry import ALIASES, METRICS

# What sharpening does not change, as it keeps the order of two classes' probabilities.
_OF_ORDER = frozenset({"accuracy", "error_rate", "roc_auc", "auc", "average_precision", "auprc"})


@dataclass(frozen=True, eq=False)
class Facts:
    """Tidy rows and traits, with the order of methods, metrics and datasets."""

    columns: Mapping[str, Array]
    traits: Mapping[str, Array]
    methods: Sequence[str]
    metrics: Sequence[str]
    datasets: Sequence[str]

    @cached_property
    def _every(self) -> dict[Setting, Comparison]:
        return comparisons(self.columns, self.methods)

    @cached_property
    def curves(self) -> dict[tuple[str, str, str], Curve]:
        """(dataset, metric, group) -> the labeled-only curve."""
        return curves(self._every)

    @cached_property
    def compared(self) -> dict[Setting, Comparison]:
        """Settings in the order in which they are shown; without those of the curve."""
        shown = [s for s in self._every if s.factor != CURVE]
        return {s: self._every[s] for s in sorted(shown, key=self._place)}

    @cached_property
    def by_model(self) -> dict[Setting, Comparison]:
        """One setting per classifier, of all items."""
        columns = self.columns
        rows = (columns["factor"] != CURVE) & ((columns["group"] == "") | (columns["model"] == ""))
        kept = {name: part[rows] for name, part in columns.items()}
        found = comparisons(kept, self.methods, each_model=True)
        return {s: found[s] for s in sorted(found, key=self._place)}

    @cached_property
    def cells(self) -> dict[Setting, dict[str, Cell]]:
        """Setting -> method -> cell."""
        return {
            setting: cells(compared, self.curve(setting), scale(setting.metric))
            for setting, compared in self.compared.items()
        }

    @cached_property
    def traits_of(self) -> dict[tuple[str, str], dict[tuple[str, int], float]]:
        """(dataset, trait) -> (level, run) -> value; run -1 where it holds for all runs."""
        found: dict[tuple[str, str], dict[tuple[str, int], float]] = defaultdict(dict)
        traits = self.traits
        for dataset, level, run, name, value in zip(
            *(traits[k] for k in ("dataset", "level", "run", "name", "value")), strict=True
        ):
            if not np.isnan(value):
                found[str(dataset), str(name)][str(level), int(run)] = float(value)
        return dict(found)

    def curve(self, setting: Setting) -> Curve | None:
        """The curve that holds for a setting: that of the same classifiers, unchanged."""
        same = setting.factor in ("", "labels") or (
            setting.factor == "sharpness" and setting.metric in _OF_ORDER
        )
        return self.curves.get((setting.dataset, setting.metric, setting.group)) if same else None

    def together(
        self, key: Callable[[Setting], Hashable], keep: Callable[[Setting], bool] | None = None
    ) -> list[list[Setting]]:
        """Settings of equal key, in their order."""
        parts: dict[Hashable, list[Setting]] = {}
        for setting in self.compared:
            if keep is None or keep(setting):
                parts.setdefault(key(setting), []).append(setting)
        return list(parts.values())

    def in_order(self, methods: Iterable[str]) -> list[str]:
        """As the protocol has them, others behind, and the floor last."""
        found = set(methods)
        known = [m for m in self.methods if m in found and m != FLOOR]
        rest = sorted(found - set(self.methods) - {FLOOR})
        return [*known, *rest, *([FLOOR] if FLOOR in found else [])]

    def _place(self, setting: Setting) -> tuple[Any, ...]:
        column, _, value = setting.group.partition("=")
        return (
            rank(setting.dataset, self.datasets), setting.factor, natural(setting.level),
            setting.n_unlabeled, rank(setting.metric, self.metrics), column, natural(value),
            setting.n_labeled, setting.model,
        )  # fmt: skip


def scale(metric: str) -> float:
    """100 where errors are in percentage points: metrics that lie between 0 and 1."""
    known = METRICS.get(ALIASES.get(metric, metric))
    return 100.0 if known is None or known.bounds == (0.0, 1.0) else 1.0


def rank(name: str, order: Sequence[str]) -> tuple[int, str]:
    """Place in an order; what is not in it follows by name."""
    return (order.index(name) if name in order else len(order), name)


def natural(text: str) -> tuple[Any, ...]:
    """Sort key by which 9 stands before 10, "<30" before "30 to <40" and ">=60" behind them."""
    bound = re.match(r"(<|>=?)?\s*(\d+(?:\.\d+)?)", text)
    if bound is None:
        return (1, 0.0, 0, _parts(text))
    side = {"<": -1, None: 0}.get(bound[1], 1)
    return (0, float(bound[2]), side, _parts(text))


def _parts(text: str) -> list[tuple[int, float, str]]:
    parts = re.split(r"(\d+(?:\.\d+)?)", text)
    return [(0, float(p), "") if k % 2 else (1, 0.0, p) for k, p in enumerate(parts) if p]
