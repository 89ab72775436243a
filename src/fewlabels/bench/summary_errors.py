"""Tidy rows to errors run by run: classifiers are averaged first, within a run."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
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
    keys = (*_PLACE, *_WHAT, *(("model",) if each_model else ()))
    pairs = _averaged(columns, keys)
    failures = _failures(columns)
    found = {}
    for span in _spans(pairs, keys):
        own = {name: values[span] for name, values in pairs.items()}
        setting = Setting(*(own[key][:1].tolist()[0] for key in keys))
        present = dict.fromkeys(own["method"])
        failed = failures.get(setting[: len(_PLACE)], {})
        rest = sorted((set(present) | set(failed)) - set(methods))
        order = [m for m in methods if m in present or m in failed] + rest
        found[setting] = _comparison(setting, own, order, failed)
    return found


def _averaged(columns: Mapping[str, Array], keys: Sequence[str]) -> dict[str, Array]:
    """Means over the classifiers of a setting, method and run, (pairs,) each, sorted by these.

    `count` is how many classifiers there are, `reason` why the first without an error has none.
    """
    import pyarrow as pa

    pair = (*keys, "method", "run")
    rows = np.flatnonzero(np.asarray(columns["model"]) != "")
    named = {name: np.asarray(columns[name])[rows] for name in dict.fromkeys((*pair, "model"))}
    estimate, truth, low, high, seconds = (
        np.asarray(columns[name], dtype=float)[rows]
        for name in ("estimate", "truth", "low", "high", "seconds")
    )
    gap, width = estimate - truth, high - low
    known = ~np.isnan(width) & ~np.isnan(truth)
    numbers = {
        "errors": np.abs(gap),
        "signed": gap,
        "covered": np.where(known, (low <= truth) & (truth <= high), np.nan),
        "width": width,
    }
    reason = np.full(len(rows), None)
    for row in np.flatnonzero(np.isnan(gap)):
        status, message = (str(columns[name][rows[row]]) for name in ("status", "message"))
        reason[row] = TRUTH_UNDEFINED if np.isnan(truth[row]) else message or _words(status)
    table = pa.table(
        {name: pa.array(v.tolist() if v.dtype == object else v) for name, v in named.items()}
        | numbers
        | {"seconds": seconds, "reason": pa.array(reason.tolist(), pa.string())}
    )
    # Sums depend on the order of their parts in the last bits: it is that of the classifiers.
    found = (
        table.sort_by([(name, "ascending") for name in named])
        .group_by(pair, use_threads=False)
        .aggregate(
            [
                *((name, "mean") for name in numbers),
                ("seconds", "first"),
                ("reason", "first"),
                ([], "count_all"),
            ]
        )
        .sort_by([(name, "ascending") for name in pair])
    )
    found = found.rename_columns([re.sub("_(mean|first|all)$", "", n) for n in found.column_names])
    return {name: found[name].to_numpy() for name in found.column_names}


def _spans(pairs: Mapping[str, Array], keys: Sequence[str]) -> Iterator[slice]:
    """The pairs of each setting, which stand together."""
    n = len(pairs["run"])
    new = np.zeros(n, dtype=bool)
    for key in keys:
        new[1:] |= pairs[key][1:] != pairs[key][:-1]
    edges = np.flatnonzero(new).tolist()
    if n:
        yield from (slice(*ends) for ends in pairwise([0, *edges, n]))


def _comparison(
    setting: Setting,
    pairs: Mapping[str, Array],
    order: Sequence[str],
    failed: Mapping[str, Mapping[int, str]],
) -> Comparison:
    """The matrices of one setting; an average over fewer classifiers than elsewhere is none."""
    runs, count = pairs["run"], pairs["count"]
    complete = count == count.max()
    lost = [run for by_run in failed.values() for run in by_run]
    every = np.unique(np.append(runs, np.asarray(lost, dtype=runs.dtype)))
    place = {method: k for k, method in enumerate(order)}
    at = [place[method] for method in pairs["method"]], np.searchsorted(every, runs)
    matrices = {}
    for name in ("errors", "signed", "covered", "width", "seconds"):
        matrices[name] = np.full((len(order), len(every)), np.nan)
        matrices[name][at] = np.where(complete | (name == "seconds"), pairs[name], np.nan)
    reasons = {method: Counter(failed.get(method, {}).values()) for method in order}
    for method, reason, whole in zip(pairs["method"], pairs["reason"], complete, strict=True):
        if reason or not whole:
            reasons[method][reason or _INCOMPLETE] += 1
    present = Counter(pairs["method"])
    for method in order:
        missing = len(every) - present[method] - len(failed.get(method, {}))
        if missing:
            reasons[method][NOT_RUN] = missing
    return Comparison(
        setting, tuple(order), every, **matrices, reasons=reasons, n_classifiers=int(count.max())
    )


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
