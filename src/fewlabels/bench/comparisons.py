"""Tidy rows to errors run by run: classifiers are averaged first, within a run."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from fewlabels.bench.protocol import FLOOR, REFERENCE
from fewlabels.errors import Status
from fewlabels.kernels.arrays import Array, Floats, Ints
from fewlabels.kernels.interval_draws import ends
from fewlabels.metrics.registry import ALIASES, METRICS

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
    # The pairs of a setting stand together.
    new = np.any([pairs[key][1:] != pairs[key][:-1] for key in keys], axis=0)
    for rows in np.split(np.arange(len(pairs["run"])), np.flatnonzero(new) + 1):
        if not len(rows):
            continue
        own = {name: values[rows] for name, values in pairs.items()}
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


@dataclass(frozen=True, eq=False)
class Curve:
    """Mean error of the labels alone by their number.

    sizes (S,) ascending; error, se and runs (S,); an error is NaN where no run has one, the
    standard error where fewer than two have.
    """

    sizes: Ints
    error: Floats
    se: Floats
    runs: Ints

    NOTHING: ClassVar[Mapping[str, Any]] = MappingProxyType(
        {"ess": None, "ess_bound": "", "ess_low": None, "ess_high": None}
    )

    def size(self, error: float) -> dict[str, Any]:
        """The size whose mean error is nearest; the smallest of several.

        ess_bound is ">" where the error is below the whole curve and "<" where it is above it,
        and ess is then the end of the curve. ess_low and ess_high are the least and greatest
        size whose error is within one standard error (of the curve) of the one given: wide where
        the curve is flat.
        """
        known = ~np.isnan(self.error)
        if not known.any():
            return dict(self.NOTHING)
        sizes, curve, se = self.sizes[known], self.error[known], self.se[known]
        near = sizes[np.abs(curve - error) <= np.nan_to_num(se)]
        ends = {
            "ess_low": int(near[0]) if len(near) else None,
            "ess_high": int(near[-1]) if len(near) else None,
        }
        if error < curve.min():
            return {"ess": int(sizes[-1]), "ess_bound": ">", **ends}
        if error > curve.max():
            return {"ess": int(sizes[0]), "ess_bound": "<", **ends}
        nearest = sizes[np.argmin(np.abs(curve - error))]
        return {"ess": int(nearest), "ess_bound": "", **ends}

    def points(self, scale: float) -> list[dict[str, Any]]:
        """The curve as plain values, errors times `scale`."""
        rows = zip(self.sizes, self.error, self.se, self.runs, strict=True)
        return [
            {"x": int(n), "y": _plain(y * scale), "se": _plain(se * scale), "n": int(runs)}
            for n, y, se, runs in rows
        ]


def curves(found: Mapping[Setting, Comparison]) -> dict[tuple[str, str, str], Curve]:
    """(dataset, metric, group) -> the curve, from the rows of the labeled-only curve."""
    points: dict[tuple[str, str, str], list[tuple[int, Floats]]] = defaultdict(list)
    for setting, compared in found.items():
        row = compared.of(REFERENCE)
        if setting.factor == CURVE and row is not None:
            errors = compared.errors[row]
            place = (setting.dataset, setting.metric, setting.group)
            points[place].append((setting.n_labeled, errors[~np.isnan(errors)]))
    return {place: _curve(sorted(part, key=lambda p: p[0])) for place, part in points.items()}


def _curve(points: list[tuple[int, Floats]]) -> Curve:
    known = [errors for _, errors in points]
    return Curve(
        np.asarray([size for size, _ in points]),
        np.asarray([e.mean() if len(e) else np.nan for e in known]),
        np.asarray([e.std(ddof=1) / np.sqrt(len(e)) if len(e) > 1 else np.nan for e in known]),
        np.asarray([len(e) for e in known]),
    )


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


Cell = dict[str, Any]

RESAMPLES = 2000
LEVEL = 0.95
"""Confidence level of the bootstrap interval of a ratio."""

FEWEST_RUNS = 5
"""Of fewer runs a bootstrap has too few different resamples for an interval."""


def cells(compared: Comparison, curve: Curve | None, scale: float) -> dict[str, Cell]:
    """Method -> its cell; errors, bias and width are multiplied by `scale`.

    mean, sd (ddof 1) and se over the runs in which the error is known; bias, the mean signed
    error; rmae, the ratio of mean errors to Labeled's on the runs that both know, with a paired
    bootstrap interval over runs; ess, the effective size; coverage and width of intervals;
    seconds per run; n_runs of n_of; reasons, why runs are missing; best, whether no method is
    better by more than one paired standard error. Unknown numbers are None. The effective size of
    Labeled is its own number of labels: read from the curve it would be that and noise.
    """
    winners = best(compared.errors[:, None, :], compared.methods)
    reference = compared.of(REFERENCE)
    found = {}
    for k, method in enumerate(compared.methods):
        errors = compared.errors[k] * scale
        cell: Cell = {
            **spread(errors),
            "bias": _mean(compared.signed[k][~np.isnan(errors)] * scale),
            "n_of": len(compared.runs),
            "coverage": _mean(compared.covered[k]),
            "coverage_se": coverage_error(compared.covered[k], compared.n_classifiers),
            "width": _mean(compared.width[k] * scale),
            "seconds": _mean(compared.seconds[k]),
            "reasons": dict(sorted(compared.reasons[method].items())),
            "best": winners[k],
        }
        beside = None if reference is None else compared.errors[reference] * scale
        cell |= ratio(errors, beside)
        mean = cell["mean"]
        cell |= Curve.NOTHING if curve is None or mean is None else curve.size(mean / scale)
        if method == REFERENCE and cell["ess"] is not None:
            cell |= {**Curve.NOTHING, "ess": compared.setting.n_labeled}
        found[method] = cell
    return found


def spread(values: Floats) -> Cell:
    """Mean, sd (ddof 1) and standard error over the known values, and how many there are."""
    known = values[~np.isnan(values)]
    sd = float(np.std(known, ddof=1)) if len(known) > 1 else None
    se = None if sd is None else sd / math.sqrt(len(known))
    return {"mean": _mean(known), "sd": sd, "se": se, "n_runs": len(known)}


def coverage_error(covered: Floats, n_classifiers: int) -> float | None:
    """Standard error of a coverage, above nothing even where every interval covers, or none does.

    The larger of that over runs, to which the classifiers of a run are one observation, and that
    of Agresti and Coull (1998), sqrt(p (1 - p) / n) with two successes and two failures added to
    the runs x classifiers intervals.

    Parameters
    ----------
    covered
        (runs,) share of the classifiers whose interval covers; NaN where not known.
    n_classifiers
        How many classifiers each run has.
    """
    known = covered[~np.isnan(covered)]
    if not len(known):
        return None
    n = len(known) * n_classifiers + 4
    p = (float(known.sum()) * n_classifiers + 2) / n
    return max(math.sqrt(p * (1 - p) / n), spread(known)["se"] or 0.0)


def ratio(errors: Floats, reference: Floats | None) -> Cell:
    """Ratio of mean errors over the runs that both know, with a bootstrap interval of 5 or more."""
    nothing: Cell = {"rmae": None, "rmae_low": None, "rmae_high": None}
    if reference is None:
        return nothing
    both = ~np.isnan(errors) & ~np.isnan(reference)
    if not both.any() or reference[both].mean() == 0:
        return nothing
    found = nothing | {"rmae": float(errors[both].mean() / reference[both].mean())}
    n = int(np.count_nonzero(both))
    if n >= FEWEST_RUNS:
        above, below = (resamples(n) @ part[both] for part in (errors, reference))
        # A resample of runs in which Labeled happens to make no error has no ratio.
        ratios = above[below > 0] / below[below > 0]
        low, high = ends(ratios, LEVEL)
        found |= {"rmae_low": float(low), "rmae_high": float(high)}
    return found


@lru_cache(maxsize=8)
def resamples(n: int) -> Floats:
    """How often each of n runs is drawn, (RESAMPLES, n): the same for all, so pairs stay pairs."""
    return np.random.default_rng([RESAMPLES, n]).multinomial(n, np.full(n, 1 / n), RESAMPLES) / n


def best(errors: Floats, methods: Sequence[str]) -> list[bool]:
    """Which methods no other one beats by more than one paired standard error.

    Parameters
    ----------
    errors
        (methods, parts, runs), parts being groups whose mean is compared; NaN where not known.
    methods
        Their names; the floor takes no part, and one method alone is not the best of anything.

    The leader has the least mean error of those with the most known errors: a method that fails
    on hard runs must not win by it.
    """
    known = ~np.isnan(errors)
    count = np.count_nonzero(known, axis=(1, 2))
    entered = [k for k, m in enumerate(methods) if m != FLOOR and count[k]]
    marks = [False] * len(methods)
    if len(entered) < 2:
        return marks
    means = {k: float(np.mean([_mean(part) for part in errors[k] if not np.isnan(part).all()]))
             for k in entered}  # fmt: skip
    most = max(count[k] for k in entered)
    leader = min((k for k in entered if count[k] == most), key=means.__getitem__)
    for k in entered:
        # The mean over runs of the paired gaps, each averaged over the parts that both know.
        both = known[k] & known[leader]
        runs = both.any(axis=0)
        gaps = np.where(both, errors[k] - errors[leader], 0.0)[:, runs].sum(axis=0)
        paired = spread(gaps / both[:, runs].sum(axis=0))
        level = paired["n_runs"] > 0 and paired["mean"] <= (paired["se"] or 0.0)
        marks[k] = k == leader or bool(level)
    return marks


def _mean(values: Array) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


# What sharpening does not change, as it keeps the order of two classes' probabilities.
_OF_ORDER = frozenset({"accuracy", "error_rate", "roc_auc", "auc", "average_precision", "auprc"})


@dataclass(frozen=True, eq=False)
class ResultTable:
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
