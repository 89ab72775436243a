"""Performance over time: an estimate of each period, what changed, and since when.

Periods are groups in order, whose curves P(class | scores) walk from one to the next
(`methods/group_curves.py`): labels of a period move it and its neighbours, and a period without
labels is as uncertain as the walk allows. What changed is read off the draws of all periods
together. Let m_t be a metric in period t, oriented so that larger is better, r that of the
reference and d the tolerance. The metric has fallen in t if r - m_t > d; the probability of that
in the last period is the share of draws, and the change began, in each such draw, with the first
period after which it stays so.

A fall has two causes, told apart by what the old curve says of the new items: with m_t(c) the
metric of the items of t under the curve of period c, r - m_t = [r - m_t(r)] + [m_t(r) - m_t]: the
first is a change of the mix of items, the second one of P(class | scores).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import stats

from fewlabels.checks.arguments import chosen_from, is_missing
from fewlabels.data.inputs import predictions_of
from fewlabels.data.sources import source
from fewlabels.errors import InputError, UsageError, listed, quoted, unknown
from fewlabels.estimates import Estimates
from fewlabels.evaluation.evaluator import Estimand, Evaluator
from fewlabels.kernels.arrays import Array, Floats, Frozen, Ints
from fewlabels.kernels.blocks import Progress, reporting, step, using_workers
from fewlabels.methods.base import LabelModel
from fewlabels.methods.group_curves import MOST_PERIODS
from fewlabels.pipeline import (
    Question,
    Setup,
    aligned_reference,
    check_settings,
    estimate_in_memory,
)
from fewlabels.predictions import Predictions
from fewlabels.report.shown import Result, plain_values

Against = Literal["first", "trailing", "reference"]

Every = Literal["day", "week", "month", "year"]

HELD = 1_000
"""Items without a label of each period that are held; each stands for several where there are
more."""

FIRST = 4
"""Periods at the start that others are compared with where there is no reference."""

ALARM = 0.95
"""Probability of a fall from which it is an alarm."""

_CAUSE = 0.25
"""Share of a fall from which something is named as its cause."""

_LEAST_BEFORE = 4
"""Periods before one from which its numbers are compared with theirs."""

_A_YEAR = 52
"""Looks together at which the tests of what moved are wrong with probability .05."""


class Period(NamedTuple):
    """One period: its first day or value, its items and labels, and which of its numbers moved.

    `moved` maps the name of a number (items, missing predictions, the mean score of a classifier)
    to its p-value against the periods before.
    """

    name: str
    n_items: int
    n_labeled: int
    moved: Mapping[str, float]


class Change(NamedTuple):
    """What became of a metric of a classifier, as of the last period.

    `before` is what it was in what it is compared with, and `fall` by how much it is worse.
    `probability` is that of a fall by more than the tolerance, and `since` the period in which that
    most likely began (None where `probability` is below one half). `what` says whether
    P(class | scores) changed or the mix of items, and `mix` is the part of the fall by the latter.
    """

    model: str
    metric: str
    since: str | None
    probability: float
    before: float
    fall: float
    low: float
    high: float
    mix: float
    what: str
    alarm: bool


@dataclass(frozen=True, eq=False, repr=False)
class Monitoring(Frozen, Result):
    """What `fewlabels.monitor` returns: estimates of every period, and what changed.

    `falls` maps (metric, classifier) to the probability, for each period, that the metric is lower
    by more than the tolerance; NaN where it is not compared.
    """

    _page, _text = "monitoring", "render_monitoring"
    _row_fields = ("model", "metric", "group", "value", "low", "high",
                                               "confidence_level", "status")  # fmt: skip

    estimates: Estimates
    time: str
    every: str
    against: str
    tolerance: float
    periods: tuple[Period, ...]
    changes: tuple[Change, ...]
    falls: Mapping[tuple[str, str], Floats]
    is_complete: bool
    warnings: tuple[str, ...]

    @property
    def models(self) -> tuple[str, ...]:
        """The classifiers."""
        return self.estimates.models

    @property
    def diagnostics(self) -> Mapping[str, Any]:
        """What is known of the fit and the labels."""
        return self.estimates.diagnostics

    @property
    def complete(self) -> Period:
        """The last period that the data reach the end of."""
        return self.periods[-1 if self.is_complete else -2]

    def get(self, model: str, metric: str, period: str | None = None) -> Any:
        """The estimate of a classifier by a metric in a period; None: the last complete one.

        Raises
        ------
        UsageError
            If there is none.
        """
        name = self.complete.name if period is None else period
        return self.estimates.get(model, metric, f"{self.time}={name}")

    def table(self) -> dict[str, list[Any]]:
        """The estimates of the periods as columns, those of `to_frame` and `period`."""
        rows = [row._asdict() for row in self.rows]
        columns: dict[str, list[Any]] = {n: [row[n] for row in rows] for n in self._row_fields}
        columns["status"] = [str(status) for status in columns["status"]]
        return {"period": [str(g).partition("=")[2] for g in columns["group"]], **columns}

    @property
    def rows(self) -> tuple[Any, ...]:
        """The estimates of the periods, in order."""
        place = {f"{self.time}={p.name}": i for i, p in enumerate(self.periods)}
        of_periods = [row for row in self.estimates.rows if row.group in place]
        return tuple(sorted(of_periods, key=lambda row: place[str(row.group)]))

    @property
    def alarms(self) -> tuple[Change, ...]:
        """The falls that are surely there."""
        return tuple(change for change in self.changes if change.alarm)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values: the JSON of `fewlabels estimate`, with periods and changes.

        A period is a group, `column=first day`.
        """
        falls = [
            {"model": model, "metric": metric, "probability": list(p)}
            for (metric, model), p in self.falls.items()
        ]
        own = {
            "time": self.time,
            "every": self.every,
            "against": self.against,
            "tolerance": self.tolerance,
            "periods": [period._asdict() for period in self.periods],
            "changes": [change._asdict() for change in self.changes],
            "falls": falls,
            "warnings": list(self.warnings),
        }
        return self.estimates.to_dict() | {n: plain_values(v) for n, v in own.items()}


def monitor(
    predictions: Any,
    time: str,
    every: str | int | None = None,
    metrics: Any = None,
    *,
    tolerance: float = 0.05,
    against: Against | None = None,
    method: str | LabelModel = "auto",
    confidence_level: float = 0.95,
    estimand: Estimand = "sample",
    random_state: int | None = 0,
    workers: int | None = None,
    progress: Progress | None = None,
    reference: Any = None,
    columns: Any = None,
    positive: Any = None,
    where: str | None = None,
    query: str | None = None,
) -> Monitoring:
    """Estimate how good each classifier was in each period, whether that fell, and since when.

    Parameters
    ----------
    predictions
        As in `fewlabels.estimate`.
    time
        The column, or group of `Predictions`, with the time of each item: dates or times (ISO
        8601), or numbers such as years. Times with a zone are taken in UTC. Items without a time
        are left out, and a warning says how many.
    every
        "day", "week" (from Monday), "month", "year", or a number of days; of numbers, how many are
        one period. None: the finest of each value, day, week, month and year that gives at most 60
        periods.
    metrics
        As in `fewlabels.estimate`.
    tolerance
        A fall by more than this, in the metric's own units, counts as one.
    against
        What a period is compared with: "reference", whose labels alone say how good the classifiers
        were there, "first", the mean of the first 4 periods, or "trailing", the mean of all periods
        before. None: the reference if there is one, else "first".
    estimand
        "sample": the metric on the items of each period. "population": on what they are drawn from.
    method, confidence_level, random_state, workers, progress, columns, positive, where, query
        As in `fewlabels.estimate`.
    reference
        Labeled items of the same classifiers from before, as in `fewlabels.estimate`.

    Raises
    ------
    UsageError, InputError
        One line that says what is wrong and how to mend it.

    Examples
    --------
    >>> import numpy as np
    >>> import fewlabels as fl
    >>> rng = np.random.default_rng(0)
    >>> week = np.repeat(np.arange(8), 200)
    >>> truth = rng.random(1600) < 0.4
    >>> score = 1 / (1 + np.exp(-rng.normal(np.where(week < 5, 4, 0.5) * (truth - 0.5), 1)))
    >>> labels = np.where(rng.random(1600) < 0.2, truth, -1)
    >>> items = fl.Predictions({"spam": score}, labels, groups={"week": week})
    >>> over_time = fl.monitor(items, "week", metrics="accuracy")
    >>> change = over_time.changes[0]
    >>> change.since, change.alarm
    ('5', True)
    """
    check_settings(confidence_level, estimand, workers)
    if not 0 <= tolerance < np.inf:
        raise UsageError(f"`tolerance` must be a number from 0; got {tolerance!r}")
    if against is not None:
        chosen_from("against", against, ("first", "trailing", "reference"))
        if (against == "reference") and reference is None:
            raise UsageError("`against` is 'reference', and no reference is given")
    if where is not None or query is not None:
        predictions = source(predictions, where=where, query=query)
    items = predictions_of(predictions, columns, positive)
    if time not in items.groups:
        raise UsageError(unknown("time", time, items.groups, "the predictions have no groups"))
    calendar = Calendar.of(items.groups[time], time, every)
    timed = np.flatnonzero(calendar.codes >= 0)
    named = np.array(calendar.names, dtype=object)[calendar.codes[timed]]
    with_time = items.take(timed).with_groups({time: named})
    elsewhere = aligned_reference(reference, with_time, method, None, columns=columns)
    question = Question(
        method,
        metrics,
        (time,),
        confidence_level,
        estimand,
        random_state=random_state,
        periods=True,
    ).about(with_time, elsewhere)
    setup = question.setup(with_time)
    held, counts = condensed(with_time, calendar.codes[timed], len(calendar.names))
    compared: Against = against or ("first" if elsewhere is None else "reference")
    with using_workers(workers), reporting(progress):
        fitted = setup.fit(question, held)
        estimates = estimate_in_memory(question, setup, held, fitted)
        base = _Baseline.of(question, setup, estimates, elsewhere, compared, calendar.names, time)
        falls = dict(_falls(estimates, base, tolerance))
        step("looking for changes")
        old = _under_old_curve(question, setup, held, fitted, base, calendar)
        changes = tuple(_changes(estimates, base, falls, old, tolerance, calendar.names))
    return Monitoring(
        estimates=estimates,
        time=time,
        every=calendar.every,
        against=compared,
        tolerance=tolerance,
        periods=tuple(_periods(with_time, calendar, timed, counts)),
        changes=changes,
        falls=falls,
        is_complete=calendar.complete,
        warnings=(*calendar.notes, *estimates.warnings),
    )


def condensed(items: Predictions, codes: Ints, n_periods: int) -> tuple[Predictions, Ints]:
    """The labeled items and at most `HELD` others of each period, with weights for the rest.

    Of n others in the order of their mean P(class), h are held: the middle ones of h equal parts,
    so that what is a function of scores has nearly the mean that it has over all. The numbers of
    items of each period come with them.
    """
    counts = np.bincount(codes, minlength=n_periods)
    weight = items.weight.copy()
    told = items.told
    order = np.lexsort((items.keys, _rank(items), codes))
    order = order[~told[order]]
    ends = np.searchsorted(codes[order], np.arange(n_periods + 1))
    held = [np.flatnonzero(told)]
    for first, last in itertools.pairwise(ends.tolist()):
        others = order[first:last]
        if len(others) > HELD:
            parts = np.linspace(0, len(others), HELD + 1)
            chosen = others[((parts[:-1] + parts[1:]) / 2).astype(np.int64)]
            total = weight[others].sum()
            weight[chosen] *= total / weight[chosen].sum() if weight[chosen].sum() else 1.0
            others = chosen
        held.append(others)
    rows = np.sort(np.concatenate(held))
    if len(rows) == items.n_items:
        return items, counts
    return items.take(rows).with_weight(weight[rows]), counts


def _rank(items: Predictions) -> Floats:
    """A number of each item by which items that the classifiers see alike are near, (n,)."""
    values = [np.zeros(items.n_items)]
    if items.probabilities is not None:
        values.append(np.nan_to_num(np.nanmean(items.probabilities[:, :, -1], axis=1)))
    if items.scores is not None:
        ranks = [stats.rankdata(s, nan_policy="omit") / len(s) for s in items.scores.T]
        values.append(np.nan_to_num(np.nanmean(ranks, axis=0)))
    if items.n_models and items.has_hard.any():
        values.append((items.hard == items.n_classes - 1).mean(axis=1))
    return np.sum(values, axis=0)


# Periods ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Calendar:
    """The periods in order, by their first day or value, and that of each item, (n,), -1 = none.

    `complete` says that the data reach the end of the last one.
    """

    names: tuple[str, ...]
    codes: Ints
    every: str
    complete: bool
    notes: tuple[str, ...]

    @staticmethod
    def of(values: Array, column: str, every: str | int | None) -> Calendar:
        """The periods of a column of times.

        Raises
        ------
        InputError
            If a value is no time, or there are too many periods or only one.
        UsageError
            If `every` is none of what it may be.
        """
        there = values.tolist()
        parsed = {value: _time(value, column) for value in dict.fromkeys(there)}
        times = {value: t for value, t in parsed.items() if t is not None}
        kinds = {isinstance(t, datetime) for t in times.values()}
        if len(kinds) != 1:
            what = "holds no time" if not kinds else "holds both dates and numbers"
            raise InputError(f"column {quoted(column)} {what}; name another with --time COL")
        dated = kinds.pop()
        width = _width(every, dated=dated)
        if width is None:
            width = _finest([*times.values()], column)
        starts = {value: _start(t, width) for value, t in times.items()}
        order = sorted({*starts.values()})
        if len(order) < 2:
            raise InputError(
                f"all items with a time are of one period ({_name(order[0])}); there is nothing to "
                "compare it with: take shorter periods (--every day) or more data"
            )
        if len(order) > MOST_PERIODS:
            raise InputError(
                f"{len(order):,} periods are more than {MOST_PERIODS}; take longer ones (--every "
                f"{'month' if width in ('day', 'week') else 'year'}) or fewer rows (--where)"
            )
        place = {start: i for i, start in enumerate(order)}
        of_value = {value: place[start] for value, start in starts.items()}
        codes = np.fromiter((of_value.get(v, -1) for v in there), np.int64, len(there))
        days = [t for t in times.values() if isinstance(t, datetime)]
        latest = max(days, default=None)
        complete = latest is None or width == "value" or _day_after(latest, width) != order[-1]
        notes = []
        if n := int((codes < 0).sum()):
            notes.append(f"{n:,} of {len(there):,} items have no time ({column}) and are left out")
        gaps = _gaps(order, width)
        if gaps:
            notes.append(f"no items in {len(gaps)} periods: {listed(map(_name, gaps), 3)}")
        if not complete and latest is not None:
            notes.append(
                f"the last period ({_name(order[-1])}) is not complete: the data end on "
                f"{latest:%Y-%m-%d}"
            )
        return Calendar(tuple(map(_name, order)), codes, str(width), complete, tuple(notes))


_Time = datetime | float


def _time(value: Any, column: str) -> _Time | None:
    """A date or time without zone (in UTC), or a number; None where missing."""
    if is_missing(value) or value == "":
        return None
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    text = str(value).strip()
    try:
        number = float(text)
    except ValueError:
        pass
    else:
        return _epoch(number) or number
    try:
        found = datetime.fromisoformat(f"{text}-01" if re.fullmatch(r"\d{4}-\d\d", text) else text)
    except ValueError:
        raise InputError(
            f"column {quoted(column)} holds {quoted(text)}, which is no time: write dates as "
            "2026-09-07, times as 2026-09-07T14:30:00"
        ) from None
    return found.astimezone(UTC).replace(tzinfo=None) if found.tzinfo else found


def _epoch(number: float) -> datetime | None:
    """The time of 20260907, or of seconds, milli- or microseconds since 1970; None of others."""
    if 19_000_101 <= number <= 21_001_231 and number.is_integer():
        try:
            return datetime.strptime(f"{number:.0f}", "%Y%m%d")
        except ValueError:
            return None
    for unit in (1.0, 1e3, 1e6, 1e9):
        if 6e8 <= number / unit < 4.2e9:
            return datetime.fromtimestamp(number / unit, UTC).replace(tzinfo=None)
    return None


def _width(every: str | int | None, *, dated: bool) -> str | int | None:
    """How long periods are: a word, or a number of days or units."""
    if every is None or (isinstance(every, str) and every in ("day", "week", "month", "year")):
        if every is not None and not dated:
            raise UsageError(
                f"`every` is {every!r}, and the times are plain numbers; say how many are one "
                "period (every=1)"
            )
        return every
    try:
        number = int(every)
    except (TypeError, ValueError):
        number = 0
    if number < 1 or isinstance(every, bool) or str(number) != str(every).strip():
        raise UsageError(
            f"`every` must be day, week, month, year or a whole number of days from 1; got "
            f"{every!r}"
        )
    return number


_MOST_BY_DEFAULT = 60


def _finest(times: Sequence[_Time], column: str) -> str | int:
    """The finest periods that are few enough."""
    dated = isinstance(times[0], datetime)
    whole = all(not isinstance(t, datetime) or t.time() == datetime.min.time() for t in times)
    for width in ("value",) * whole + ("day", "week", "month", "year") * dated:
        if len({_start(t, width) for t in times}) <= _MOST_BY_DEFAULT:
            return width
    if dated:
        return "year"
    raise InputError(
        f"column {quoted(column)} has {len({*times}):,} different numbers; say how many are one "
        "period: --every N"
    )


def _start(t: _Time, width: str | int) -> _Time:
    """The first day of the period of a time, or the least number of that of a number."""
    if not isinstance(t, datetime):
        return t if width == "value" else float(np.floor(t / int(width)) * int(width))
    day = datetime(t.year, t.month, t.day)
    if width == "week":
        return day - timedelta(days=day.weekday())
    if width == "month":
        return day.replace(day=1)
    if width == "year":
        return day.replace(month=1, day=1)
    if isinstance(width, int):  # from a Monday on
        return day - timedelta(days=(day.toordinal() - 1) % width)
    return day


def _day_after(t: datetime, width: str | int) -> _Time:
    """The period of the day after a time."""
    return _start(t + timedelta(days=1), width)


def _name(start: _Time) -> str:
    if isinstance(start, datetime):
        return f"{start:%Y-%m-%d}"
    return f"{start:g}" if abs(start) < 1e6 else str(int(start))


def _gaps(starts: Sequence[Any], width: str | int) -> list[Any]:
    """The periods between the first and the last that have no items."""
    if width == "value" or not isinstance(starts[0], datetime):
        return []
    there, out, at = {*starts}, [], starts[0]
    while at < starts[-1]:
        following = _day_after(at, width)
        if following != at and following not in there:
            out.append(following)
        at = at + timedelta(days=1)
    out = list(dict.fromkeys(out))
    return out


# What changed -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Baseline:
    """What periods are compared with, by metric: draws (D, M) of every period, (T, D, M).

    `draws` are of the periods themselves, (T, D, M); `place` is the period whose curve is the old
    one.
    """

    draws: Mapping[str, Floats]
    levels: Mapping[str, Floats]
    place: int
    first: int

    @staticmethod
    def of(
        question: Question, setup: Setup, estimates: Estimates, reference: Predictions | None,
        against: Against, names: Sequence[str], time: str,
    ) -> _Baseline:  # fmt: skip
        ranked = [name for name, way in estimates.directions.items() if way]
        draws = {
            name: np.stack([estimates.draws[name, f"{time}={period}"] for period in names])
            for name in ranked
        }
        size = min(FIRST, max(len(names) // 3, 1))
        if against == "reference":
            assert reference is not None
            alone = replace(question, method="labeled", by=None, reference=None)
            known = reference.select_models(estimates.models)
            judged = estimate_in_memory(alone, alone.setup(known), known)
            levels = {
                n: np.broadcast_to(_as_many(judged.draws[n, None], d.shape[1]), d.shape)
                for n, d in draws.items()
            }
            return _Baseline(draws, levels, 0, 0)
        if against == "first":
            levels = {n: np.broadcast_to(d[:size].mean(axis=0), d.shape) for n, d in draws.items()}
            return _Baseline(draws, levels, (size - 1) // 2, size)
        levels = {}
        for n, d in draws.items():
            before = np.cumsum(d, axis=0)[:-1] / np.arange(1, len(d))[:, None, None]
            levels[n] = np.concatenate([d[:1], before])
        return _Baseline(draws, levels, max(len(names) - 2, 0), 1)


def _as_many(draws: Floats, size: int) -> Floats:
    """As many draws (size, M) as there are of the periods."""
    return draws[np.arange(size) % len(draws)]


def _falls(
    estimates: Estimates, base: _Baseline, tolerance: float
) -> Iterator[tuple[tuple[str, str], Floats]]:
    """(metric, classifier) -> probability of a fall in each period, (T,)."""
    for name, draws in base.draws.items():
        fall = estimates.directions[name] * (base.levels[name] - draws)
        for j, model in enumerate(estimates.models):
            defined = np.isfinite(fall[:, :, j])
            some = np.maximum(defined.sum(axis=1), 1)
            p = ((fall[:, :, j] > tolerance) & defined).sum(axis=1) / some
            p = np.where(defined.any(axis=1), p, np.nan)
            p[: base.first] = np.nan
            yield (name, model), p


def _changes(
    estimates: Estimates, base: _Baseline, falls: Mapping[tuple[str, str], Floats],
    old: Mapping[str, Floats], tolerance: float, names: Sequence[str],
) -> Iterator[Change]:  # fmt: skip
    """What became of each metric of each classifier."""
    for (metric, model), p in falls.items():
        j, way = estimates.models.index(model), estimates.directions[metric]
        fall = way * (base.levels[metric] - base.draws[metric])[:, :, j]
        last = fall[-1][np.isfinite(fall[-1])]
        if not len(last):
            continue
        low, middle, high = np.quantile(last, [0.025, 0.5, 0.975])
        before = float(np.nanmean(base.levels[metric][-1, :, j]))
        mix = way * (before - float(old[metric][j]))
        since, fell = None, fall > tolerance
        if p[-1] >= 0.5:
            stays = fell[:, fell[-1]]
            start = len(stays) - np.argmin(stays[::-1], axis=0)
            start[stays.all(axis=0)] = 0
            since = names[max(int(np.median(start)), base.first)]
        parts = {"P(class | scores)": middle - mix, "the mix of items": mix}
        causes = [what for what, part in parts.items() if part > _CAUSE * middle]
        cause = "nothing" if since is None else " and ".join(causes)
        yield Change(
            model, metric, since, float(p[-1]), before, float(middle), float(low), float(high),
            mix, cause, bool(p[-1] >= ALARM),
        )  # fmt: skip


def _under_old_curve(
    question: Question, setup: Setup, held: Predictions, fitted: Any, base: _Baseline,
    calendar: Calendar,
) -> dict[str, Floats]:  # fmt: skip
    """Metrics (M,) of the last period's items under the curve of an old one."""
    column = question.columns[0]
    rows = np.flatnonzero(held.groups[column] == calendar.names[-1])
    last = held.take(rows)
    there = np.full(len(rows), calendar.names[base.place], dtype=object)
    blank = last.with_groups({column: there}).with_labels(np.full(len(rows), -1))
    evaluator = Evaluator(blank, fitted.posterior(blank), setup.metrics, "population", None)
    measured = evaluator.measure(np.arange(len(rows)))
    return {name: values.value for name, values in measured.items()}


# What moved ---------------------------------------------------------------------------------------


def _numbers(items: Predictions, codes: Ints, n_periods: int) -> dict[str, Floats]:
    """What can be seen of each period without a label, (T,): volume, missing, scores."""
    n = np.bincount(codes, minlength=n_periods).astype(float)
    out = {"items": np.log(n)}
    says = items.has_hard | items.provides("ranking")
    for j, model in enumerate(items.models):
        missing = np.bincount(codes, ~says[:, j], minlength=n_periods) / n
        if missing.any():
            out[f"share missing of {model}"] = missing
        for what, values in (
            ("mean score", _score(items, j)),
            ("share positive", _positive(items, j)),
        ):
            if values is None:
                continue
            known = np.isfinite(values)
            sums = np.bincount(codes[known], values[known], minlength=n_periods)
            sizes = np.bincount(codes[known], minlength=n_periods)
            with np.errstate(invalid="ignore"):
                out[f"{what} of {model}"] = sums / sizes
    return out


def _score(items: Predictions, j: int) -> Floats | None:
    if items.probabilities is not None and items.has_probabilities[:, j].any():
        return items.probabilities[:, j, -1]
    if items.scores is not None and np.isfinite(items.scores[:, j]).any():
        return items.scores[:, j]
    return None


def _positive(items: Predictions, j: int) -> Floats | None:
    if not items.has_hard[:, j].any():
        return None
    votes = items.hard[:, j]
    return np.where(votes >= 0, votes == items.n_classes - 1, np.nan).astype(float)


def _periods(items: Predictions, calendar: Calendar, timed: Ints, counts: Ints) -> Iterator[Period]:
    """Every period, with what of it lies outside of what the periods before foretell.

    A number x of a period is compared with those m before it: (x - mean) / (s sqrt(1 + 1 / m)) has
    Student's t distribution with m - 1 degrees of freedom, where periods are alike.
    """
    codes = calendar.codes[timed]
    numbers = _numbers(items, codes, len(calendar.names))
    labeled = np.bincount(codes[items.labeled], minlength=len(counts))
    limit = 0.05 / _A_YEAR / max(len(numbers), 1)
    for t, name in enumerate(calendar.names):
        moved = {}
        for what, values in numbers.items():
            before = values[:t][np.isfinite(values[:t])]
            if len(before) < _LEAST_BEFORE or not np.isfinite(values[t]):
                continue
            spread = before.std(ddof=1) * np.sqrt(1 + 1 / len(before))
            gap = abs(values[t] - before.mean())
            p = 2 * stats.t.sf(gap / spread, len(before) - 1) if spread else float(gap == 0)
            if p < limit:
                moved[what] = float(p)
        yield Period(name, int(counts[t]), int(labeled[t]), moved)
