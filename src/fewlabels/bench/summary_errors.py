"""Tidy rows to errors run by run: classifiers are averaged first, within a run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fewlabels.errors import Status
from fewlabels.kernels.arrays import Array, Floats, Ints

FLOOR = "all-labels-known"
REFERENCE = "labeled"
CURVE = "curve"
"""Factor of the rows that belong to the labeled-only curve and to no table."""

TRUTH_UNDEFINED = "the true value is undefined on the half that it is taken from"
NOT_RUN = "the run is missing"
_INCOMPLETE = "not every classifier has an estimate"
_NOT_SERVED = "the method or a classifier does not provide this metric"

_PLACE = ("dataset", "factor", "level", "n_labeled", "n_unlabeled")
_WHAT = ("metric", "group")


class Setting(NamedTuple):
    """What one column of a table holds fixed; model "" is the average over the classifiers."""

    dataset: str
    factor: str
    level: str
    n_labeled: int
    n_unlabeled: int
    metric: str
    group: str = ""
    model: str = ""


@dataclass(frozen=True, eq=False)
class Comparison:
    """All methods in one setting, run by run.

    runs (R,); errors, signed, covered, width, seconds (methods, R), NaN where not known. An error
    is NaN if that of some classifier is; `reasons` says for each method why, and in how many
    runs. Errors are in the metric's own unit, seconds those of the whole cell; each is a mean
    over `n_classifiers` but the seconds.
    """

    setting: Setting
    methods: tuple[str, ...]
    runs: Ints
    errors: Floats
    signed: Floats
    covered: Floats
    width: Floats
    seconds: Floats
    reasons: Mapping[str, Mapping[str, int]]
    n_classifiers: int

    def of(self, method: str) -> int | None:
        """Row of the method, None if it has none."""
        return self.methods.index(method) if method in self.methods else None


def comparisons(
    columns: Mapping[str, Array], methods: Sequence[str], *, each_model: bool = False
) -> dict[Setting, Comparison]:
    """Every setting that occurs in the tidy rows, whatever their order.

    Parameters
    ----------
    columns
        The tidy columns, (rows,) each.
    methods
        Order of the methods; others follow by name.
    each_model
        One setting per classifier, instead of the average over them.
    """
    table = _Table(columns, each_model)
    failures = _failures(columns)
    found = {}
    for setting, pairs in table.settings():
        present = dict.fromkeys(table.names["method"][code] for code in table.method[pairs])
        failed = failures.get(setting[: len(_PLACE)], {})
        rest = sorted((set(present) | set(failed)) - set(methods))
        order = [m for m in methods if m in present or m in failed] + rest
        found[setting] = table.comparison(setting, pairs, order, failed)
    return found


class _Table:
    """Pairs of a cell and a run, each with its average over classifiers, in a fixed order."""

    def __init__(self, columns: Mapping[str, Array], each_model: bool) -> None:
        kept = np.flatnonzero(np.asarray(columns["model"]) != "")
        strings = ("dataset", "factor", "level", "method", "model", "metric", "group", "status")
        self.names: dict[str, Any] = {}
        codes: dict[str, Ints] = {}
        for name in (*strings, "message", "n_labeled", "n_unlabeled", "run"):
            self.names[name], codes[name] = encoded(np.asarray(columns[name])[kept])
        self._keys = (*_PLACE, *_WHAT, "model") if each_model else (*_PLACE, *_WHAT)
        setting = _joined([codes[k] for k in self._keys], [len(self.names[k]) for k in self._keys])
        place = (setting, codes["method"], codes["run"])
        order = np.lexsort((codes["model"], *reversed(place)))
        setting, method, run = (part[order] for part in place)
        values = {
            k: np.asarray(columns[k], dtype=float)[kept][order]
            for k in ("estimate", "truth", "low", "high", "seconds")
        }
        new = np.ones(len(order), dtype=bool)
        new[1:] = (np.diff(setting) != 0) | (np.diff(method) != 0) | (np.diff(run) != 0)
        self._starts = np.flatnonzero(new)
        self._codes = {k: codes[k][order] for k in (*self._keys, "status", "message")}
        self.setting, self.method, self.run = (p[self._starts] for p in (setting, method, run))
        self._average(values)

    def _average(self, values: Mapping[str, Floats]) -> None:
        starts = self._starts
        self.count = np.diff(np.append(starts, len(values["truth"])))
        gap = values["estimate"] - values["truth"]
        inside = (values["low"] <= values["truth"]) & (values["truth"] <= values["high"])
        width = values["high"] - values["low"]
        covered = np.where(np.isnan(width) | np.isnan(values["truth"]), np.nan, inside)
        mean = {
            name: np.add.reduceat(part, starts) / self.count if len(starts) else np.empty(0)
            for name, part in {
                "errors": np.abs(gap), "signed": gap, "covered": covered, "width": width
            }.items()
        }  # fmt: skip
        self.means = mean | {"seconds": values["seconds"][starts]}
        self._undefined = np.flatnonzero(np.isnan(gap))
        self._truthless = np.isnan(values["truth"])

    def settings(self) -> Iterator[tuple[Setting, slice]]:
        """Each setting and its pairs, sorted by method and run."""
        if not len(self.setting):
            return
        edges = np.flatnonzero(np.diff(self.setting)) + 1
        for start, end in zip([0, *edges], [*edges, len(self.setting)], strict=True):
            row = self._starts[start]
            yield (
                Setting(*(self.names[k][self._codes[k][row]] for k in self._keys)),
                slice(int(start), int(end)),
            )

    def comparison(
        self,
        setting: Setting,
        pairs: slice,
        order: Sequence[str],
        failed: Mapping[str, Mapping[int, str]],
    ) -> Comparison:
        """The matrices of one setting."""
        runs = np.asarray(self.names["run"])[self.run[pairs]]
        lost = [run for by_run in failed.values() for run in by_run]
        every = np.unique(np.append(runs, np.asarray(lost, dtype=runs.dtype)))
        place = np.asarray([order.index(m) if m in order else -1 for m in self.names["method"]])
        at = place[self.method[pairs]], np.searchsorted(every, runs)
        most = int(self.count[pairs].max())
        complete = self.count[pairs] == most
        matrices = {}
        for name, means in self.means.items():
            part = np.full((len(order), len(every)), np.nan)
            part[at] = np.where(complete | (name == "seconds"), means[pairs], np.nan)
            matrices[name] = part
        reasons = self._reasons(pairs, order, complete, runs, failed)
        for k, method in enumerate(order):
            missing = len(every) - np.count_nonzero(at[0] == k) - len(failed.get(method, {}))
            if missing:
                reasons[method][NOT_RUN] = int(missing)
        return Comparison(
            setting, tuple(order), every, **matrices, reasons=reasons, n_classifiers=most
        )

    def _reasons(
        self,
        pairs: slice,
        order: Sequence[str],
        complete: Array,
        runs: Ints,
        failed: Mapping[str, Mapping[int, str]],
    ) -> dict[str, Counter[str]]:
        """Method -> why its error is not known -> runs; the first reason of a run counts."""
        reasons: dict[str, Counter[str]] = {method: Counter() for method in order}
        for method, by_run in failed.items():
            reasons[method].update(by_run.values())
        first = self._starts[pairs.start]
        last = self._starts[pairs.stop - 1] + self.count[pairs.stop - 1]
        bad = self._undefined[np.searchsorted(self._undefined, first) :
                              np.searchsorted(self._undefined, last)]  # fmt: skip
        seen: set[int] = set()
        for row in bad:
            pair = int(np.searchsorted(self._starts, row, side="right")) - 1
            if pair not in seen:
                seen.add(pair)
                reasons[self.names["method"][self.method[pair]]][self._reason(row)] += 1
        for pair in np.flatnonzero(~complete) + pairs.start:
            if pair not in seen:
                reasons[self.names["method"][self.method[pair]]][_INCOMPLETE] += 1
        return reasons

    def _reason(self, row: int) -> str:
        if self._truthless[row]:
            return TRUTH_UNDEFINED
        status = self.names["status"][self._codes["status"][row]]
        message = self.names["message"][self._codes["message"][row]]
        return message or _words(status)


def _words(status: str) -> str:
    if status == Status.NOT_APPLICABLE:
        return _NOT_SERVED
    known = {s.value: s.message for s in Status}
    return known.get(status, status or "the estimate is missing")


def _failures(columns: Mapping[str, Array]) -> dict[tuple[Any, ...], dict[str, dict[int, str]]]:
    """Place -> method -> run -> why the whole cell gave nothing."""
    failures: dict[tuple[Any, ...], dict[str, dict[int, str]]] = defaultdict(dict)
    for row in np.flatnonzero(np.asarray(columns["model"]) == ""):
        place = tuple(np.asarray(columns[name])[row].item() if name.startswith("n_") else
                      str(columns[name][row]) for name in _PLACE)  # fmt: skip
        reason = str(columns["message"][row]) or _words(str(columns["status"][row]))
        by_run = failures[place].setdefault(str(columns["method"][row]), {})
        by_run[int(columns["run"][row])] = reason
    return failures


def failures(columns: Mapping[str, Array]) -> list[dict[str, Any]]:
    """Cells that gave nothing at all, those of equal reason together."""
    return [
        dict(zip(_PLACE, place, strict=True)) | {"method": method, "reason": reason, "n_runs": n}
        for place, methods in sorted(_failures(columns).items())
        for method, by_run in sorted(methods.items())
        for reason, n in sorted(Counter(by_run.values()).items())
    ]


def encoded(values: Array) -> tuple[list[Any], Ints]:
    """The distinct values in order, and each row's place among them.

    Arrow's hash table finds the few distinct strings of a million rows without sorting them.
    """
    import pyarrow

    coded = pyarrow.array(values.tolist() if values.dtype == object else values).dictionary_encode()
    distinct = coded.dictionary.to_pylist()
    rank = np.empty(len(distinct), dtype=np.int64)
    rank[sorted(range(len(distinct)), key=lambda k: distinct[k])] = np.arange(len(distinct))
    codes = np.asarray(coded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
    return sorted(distinct), rank[codes]


def _joined(codes: Sequence[Ints], sizes: Sequence[int]) -> Ints:
    """One number per combination of codes, in their order."""
    joined = np.zeros(len(codes[0]), dtype=np.int64)
    for part, size in zip(codes, sizes, strict=True):
        joined = joined * size + part
    return joined
