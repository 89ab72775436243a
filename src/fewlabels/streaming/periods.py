"""Items by day, from any number of rows: what an estimate over time is made from.

Of each day all labeled rows are held, and a sample of the others, chosen by their content: scans of
parts add up, in any order, and can be kept in a file and added to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fewlabels.checks.arguments import check_format
from fewlabels.data.table import naming_file
from fewlabels.errors import InputError, UsageError, listed
from fewlabels.evaluation.groups import values_of
from fewlabels.evaluation.periods import NO_TIME, Calendar, days_of
from fewlabels.kernels.arrays import Floats
from fewlabels.kernels.counter_based import alone
from fewlabels.predictions import Predictions
from fewlabels.streaming.checkpoint import replace_file
from fewlabels.streaming.packing import pack, unpack
from fewlabels.streaming.passes import BatchSource, Passes, Piece
from fewlabels.streaming.reading import Batch
from fewlabels.streaming.scan import Size, ranks_of
from fewlabels.streaming.sketch import BottomSample, RowArrays, spread_out

MOST_GROUPS = 24
"""Groups at most that are estimated beside all items."""

LABELED, OTHERS = 20_000, 4_000
"""Labeled and other distinct rows of each day that are held."""

HELD, HELD_OF_PERIOD = 26_000, (250, 1_000)
"""Items without a label that are looked at, and how many of each period at least and at most; each
stands for several where there are more."""

FORMAT = 1
"""The version of the format of a state that is written; those up to it are read."""

_HEAD = b'{"fewlabels": "monitor", "format": %s}\n'
"""The first line of a state."""

_ROUNDS = 20


class Held(NamedTuple):
    """Items that stand for those of each period, by a group of the name of the column of times.

    `sizes` are the items and the labeled ones of each period, `numbers` what can be seen of it
    without a label, (T,): volume, share missing, mean scores.
    """

    items: Predictions
    calendar: Calendar
    sizes: tuple[tuple[int, int], ...]
    numbers: Mapping[str, Floats]
    is_weighted: bool
    notes: tuple[str, ...]


@dataclass(eq=False)
class _Day:
    """Rows of one day: how many, and those held."""

    size: Size = field(default_factory=Size)
    labeled: BottomSample = field(default_factory=lambda: BottomSample.empty(LABELED))
    others: BottomSample = field(default_factory=lambda: BottomSample.empty(OTHERS))
    sums: dict[str, tuple[float, int]] = field(default_factory=dict)

    def merge(self, other: _Day) -> None:
        """Take in other rows of the day."""
        self.size.add(other.size)
        self.labeled.merge(other.labeled)
        self.others.merge(other.others)
        for name, (total, count) in other.sums.items():
            before = self.sums.get(name, (0.0, 0))
            self.sums[name] = (before[0] + total, before[1] + count)


@dataclass(eq=False)
class DayScan:
    """Rows by day; `time` is their column. `n_rows` are the rows of each part.

    `groups` are scans of the rows of each group, "column=value", of the columns `by`; `zones` says
    whether times have a zone, and `form` how they are written (`days_of`).
    """

    time: str
    by: tuple[str, ...] = ()
    days: dict[str, _Day] = field(default_factory=dict)
    n_rows: list[int] = field(default_factory=list)
    groups: dict[str, DayScan] = field(default_factory=dict)
    zones: set[bool] = field(default_factory=set)
    form: str | None = None

    def update(self, batch: Batch) -> None:
        """Take in a batch of rows."""
        given = batch.predictions
        day, zones = days_of(given.groups[self.time], self.time, self.form)
        self.zones |= zones
        bare = given.keeping(())
        rows, ranks = RowArrays.of(bare, batch.weight), ranks_of(batch, ())
        numbers = dict(_numbers(bare))
        there = np.ones(len(day), dtype=bool) if batch.weight is None else batch.weight > 0
        for name in dict.fromkeys(day.tolist()):
            mine = (day == name) & there
            if not mine.any():
                continue
            own = self.days.setdefault(name, _Day())
            told = given.told & mine
            n, labeled = int(mine.sum()), int((given.labeled & mine).sum())
            own.size.add(Size(n, labeled, int((given.annotated & mine).sum()), n))
            own.labeled.update(ranks, rows, told)
            own.others.update(ranks, rows, mine & ~told)
            for what, values in numbers.items():
                known = values[mine & np.isfinite(values)]
                before = own.sums.get(what, (0.0, 0))
                own.sums[what] = (before[0] + float(known.sum()), before[1] + len(known))
        for column in self.by:
            code, names = values_of(given, column)
            for k, name in enumerate(names):
                inside = np.flatnonzero(code == k)
                weight = None if batch.weight is None else batch.weight[inside]
                group = self._group(column, f"{column}={name}")
                group.update(Batch(given.take(inside), weight, 0))

    def _group(self, column: str, name: str) -> DayScan:
        if name not in self.groups and len(self.groups) == MOST_GROUPS:
            raise UsageError(
                f"group {column!r} has more than {MOST_GROUPS} values, each of which is estimated "
                "by itself; group the values first, or leave it out of `by`"
            )
        return self.groups.setdefault(name, DayScan(self.time, form=self.form))

    def take(self, other: DayScan) -> int:
        """Take in the next part; how many rows it has."""
        n = sum(day.size.items for day in other.days.values())
        for name, day in other.days.items():
            self.days.setdefault(name, _Day()).merge(day)
        for name, group in other.groups.items():
            self._group(name.partition("=")[0], name).take(group)
        self.n_rows.append(n)
        self.zones |= other.zones
        return n

    def joined(self, before: DayScan, seen: Collection[str] | None = None) -> DayScan:
        """All days: those of an earlier scan, but for the days seen anew (None: those of this)."""
        seen = self.days.keys() if seen is None else seen
        earlier = {name: day for name, day in before.days.items() if name not in seen}
        none = DayScan(self.time)
        groups = {
            name: self.groups.get(name, none).joined(before.groups.get(name, none), seen)
            for name in dict.fromkeys([*before.groups, *self.groups])
        }
        groups = {name: group for name, group in groups.items() if group.days}
        days, zones = {**earlier, **self.days}, self.zones | before.zones
        return DayScan(self.time, self.by, days, self.n_rows, groups, zones)

    def of_models(
        self, models: Sequence[str], among: Sequence[str], kinds: Mapping[str, tuple[int, Any]]
    ) -> DayScan:
        """The same rows with the classifiers `among`, of which `models` say something.

        `kinds` are the arrays that rows must have, by name: the number of values of each
        classifier, and what says that there is none.
        """
        place = [among.index(model) for model in models]

        def widened(rows: RowArrays | None) -> RowArrays | None:
            if rows is None:
                return None
            arrays = dict(rows.arrays)
            for name, (size, none) in kinds.items():
                shape = (len(rows), len(among), size) if size else (len(rows), len(among))
                wide = np.full(shape, none)
                if name in arrays:
                    wide[:, place] = arrays[name]
                arrays[name] = wide
            return RowArrays(arrays)

        def of(sample: BottomSample) -> BottomSample:
            return replace(sample, rows=widened(sample.rows))

        days = {
            name: replace(day, labeled=of(day.labeled), others=of(day.others))
            for name, day in self.days.items()
        }
        groups = {name: g.of_models(models, among, kinds) for name, g in self.groups.items()}
        return DayScan(self.time, self.by, days, self.n_rows, groups, self.zones)

    @property
    def arrays(self) -> set[str]:
        """The names of the arrays of its rows."""
        samples = (s for day in self.days.values() for s in (day.labeled, day.others))
        return {name for sample in samples if sample.rows for name in sample.rows.arrays}

    @property
    def dated(self) -> tuple[str, ...]:
        """The days, without that of items without a time."""
        return tuple(day for day in self.days if day != NO_TIME)

    def held(self, calendar: Calendar, models: Sequence[str], classes: Sequence[Any]) -> Held:
        """The items of each period, and how many there are; each has some."""
        periods = [_Day() for _ in calendar.names]
        for name, day in sorted(self.days.items()):
            if name != NO_TIME:
                periods[calendar.place[name]].merge(day)
        most = int(np.clip(HELD // len(periods), *HELD_OF_PERIOD))
        parts, weights, named = list[RowArrays](), list[Floats](), list[str]()
        for name, period in zip(calendar.names, periods, strict=True):
            n_told = period.size.labeled + period.size.annotated
            own = [
                (some[0], some[1] * (total / some[1].sum()))
                for some, total in (
                    (_repeated(period.labeled, n_told, models, classes), n_told),
                    (_repeated(period.others, most, models, classes), period.size.items - n_told),
                )
                if some is not None and len(some[0])
            ]
            rows = RowArrays.joined([part for part, _ in own])
            weight = np.concatenate([part for _, part in own])
            parts.append(rows)
            weights.append(_raked(rows.predictions(models, classes), weight, period))
            named += [name] * len(rows)
        every_row = RowArrays.joined(parts)
        weighted = every_row.weight is not None
        items = every_row.predictions(models, classes)
        items = items.with_weight(np.concatenate(weights) * items.weight)
        items = items.with_groups({self.time: np.array(named, dtype=object)})
        missing = self.days[NO_TIME].size.items if NO_TIME in self.days else 0
        notes = calendar.notes
        if missing:
            total = missing + sum(period.size.items for period in periods)
            notes = (
                f"{missing:,} of {total:,} items have no time ({self.time}) and are left out",
                *notes,
            )
        if len(self.zones) == 2:
            notes = (f"some times ({self.time}) have a zone, the others are taken as UTC", *notes)
        sizes = tuple((p.size.items, p.size.labeled) for p in periods)
        return Held(items, calendar, sizes, _by_period(periods), weighted, notes)


@dataclass(frozen=True, eq=False)
class DayState:
    """The days of all runs so far, in a file that is complete or absent."""

    path: Path

    def joined(
        self, scan: DayScan, models: Sequence[str], classes: Sequence[Any]
    ) -> tuple[DayScan, tuple[str, ...], tuple[str, ...]]:
        """All days, the classifiers of all, and notes."""
        saved = self._saved()
        if saved is None:
            return scan, tuple(models), ()
        before: DayScan = saved["scan"]
        for what, ours, theirs in (
            ("times are", scan.time, before.time),
            ("classes are", list(classes), list(saved["classes"])),
            ("groups are of", list(scan.by), list(before.by)),
        ):
            if ours != theirs:
                raise InputError(
                    f"{self.path}: its {what} {theirs}, and those here {ours}; name another state"
                )
        both = tuple(dict.fromkeys([*saved["models"], *models]))
        if both != tuple(saved["models"]) or both != tuple(models):
            kinds = {
                "probabilities": (len(classes), np.nan),
                "votes": (0, -1),
                "scores": (0, np.nan),
            }
            needed = {n: kind for n, kind in kinds.items() if n in scan.arrays | before.arrays}
            scan = scan.of_models(models, both, needed)
            before = before.of_models(saved["models"], both, needed)
        again = [day for day in scan.days if day in before.days and day != NO_TIME]
        notes = []
        if again:
            days = "1 day was" if len(again) == 1 else f"{len(again):,} days were"
            notes.append(f"{days} read before, and taken from this run")
        late = sorted(d for d in again if scan.days[d].size.labeled != before.days[d].size.labeled)
        if late:
            notes.append(
                f"labels of earlier days have come or gone ({listed(late, 3)}); their periods are "
                "estimated anew"
            )
        return scan.joined(before), both, tuple(notes)

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """Those of earlier runs, where they have names; None before the first run."""
        classes = tuple((self._saved() or {}).get("classes", ()))
        return None if classes == tuple(range(len(classes))) else classes

    def _saved(self) -> dict[str, Any] | None:
        """The value behind the first line, which says of which format it is; None if absent."""
        if not self.path.exists():
            return None
        with naming_file(str(self.path)):
            content = self.path.read_bytes()
        saved, head = None, re.match(_HEAD % rb"(\d{1,9})", content)
        if head is not None:
            with naming_file(str(self.path)):
                check_format(int(head[1]), FORMAT)
            with suppress(InputError):
                saved = unpack(content[head.end() :])
        if not isinstance(saved, dict) or not isinstance(saved.get("scan"), DayScan):
            raise InputError(f"{self.path}: this is no state of `fewlabels monitor`; name another")
        return saved

    def save(self, scan: DayScan, models: Sequence[str], classes: Sequence[Any]) -> None:
        """Replace the file."""
        value = {"scan": scan, "models": list(models), "classes": list(classes)}
        try:
            replace_file(self.path, _HEAD % b"%d" % FORMAT + pack(value))
        except OSError as error:
            raise InputError(
                f"{self.path}: {error.strerror or error}; the state is as it was before"
            ) from None


def rows_like(
    items: Predictions, batches: Iterable[Batch], time: str, days: Collection[str],
    form: str | None = None,
) -> list[int]:  # fmt: skip
    """Numbers of rows of some days, from 0, that are as the items and have no label, each once.

    In the order of the items; those that no row is like are left out.
    """
    contents = alone(items.identity)
    rows: dict[int, list[int]] = {content: [] for content in contents.tolist()}
    first = 0
    for batch in batches:
        given = batch.predictions
        found = alone(given.identity)
        inside = np.isin(days_of(given.groups[time], time, form)[0], [*days]) & ~given.told
        for row in np.flatnonzero(inside & np.isin(found, contents)).tolist():
            rows[int(found[row])].append(first + row)
        first += given.n_items
    each = {content: iter(several) for content, several in rows.items()}
    numbers = (next(each[content], None) for content in contents.tolist())
    return [number for number in numbers if number is not None]


def scan_days(rows: BatchSource, begin: Callable[[], DayScan], passes: Passes) -> DayScan:
    """The rows of all parts by day."""
    return passes.run("reading", partial(_scan_unit, rows, begin), begin)


def _scan_unit(rows: BatchSource, begin: Callable[[], DayScan], piece: Piece) -> DayScan:
    scan = begin()
    for batch in rows.batches(piece.unit):
        scan.update(batch)
    return scan


def _repeated(
    kept: BottomSample, most: int, models: Sequence[str], classes: Sequence[Any]
) -> tuple[RowArrays, Floats] | None:
    """At most so many rows of a sample, copies of distinct rows as often as these occur.

    In the order of what the classifiers say of them, so that what is a function of scores has
    nearly the mean that it has over all (systematic sampling); of fewer than there are, rarer
    answers come more often, as the root of how rare they are, and weigh less, (n,).
    """
    if kept.rows is None:
        return None
    items = kept.rows.predictions(models, classes)
    order = np.lexsort((kept.ranks, _rank(items)))
    counts, pull = kept.counts[order], np.ones(len(order))
    if most < counts.sum():
        _, answer = np.unique(items.hard[order], axis=0, return_inverse=True)
        pull = 1 / np.sqrt(np.bincount(answer.ravel(), counts)[answer.ravel()])
    copies = spread_out(counts * pull, min(most, int(counts.sum())))
    return kept.rows.take(np.repeat(order, copies)), np.repeat(1 / pull, copies)


def _raked(items: Predictions, weight: Floats, period: _Day) -> Floats:
    """Weights (n,) by which each classifier says the last class as often as in the whole period.

    Iterative proportional fitting (Deming, Stephan 1940).
    """
    margins = []
    for name, values in _numbers(items):
        total, count = period.sums.get(name, (0.0, 0))
        if name.startswith("share positive") and 0 < total < count:
            margins.append((values == 1, values == 0, total / count))
    weight = weight.copy()
    for _ in range(_ROUNDS):
        for yes, no, share in margins:
            of_yes, of_no = weight[yes].sum(), weight[no].sum()
            if of_yes and of_no:
                weight[yes] *= share * (of_yes + of_no) / of_yes
                weight[no] *= (1 - share) * (of_yes + of_no) / of_no
    return weight


def _rank(items: Predictions) -> Floats:
    """A number of each item by which items that the classifiers see alike are near, (n,)."""
    seen = ("mean score", "share positive")
    columns = [values for name, values in _numbers(items) if name.startswith(seen)]
    ranked = [np.argsort(np.argsort(c, kind="stable"), kind="stable") for c in columns]
    out: Floats = np.sum([np.zeros(items.n_items), *ranked], axis=0)
    return out


def _numbers(items: Predictions) -> Iterator[tuple[str, Floats]]:
    """What can be seen of items without a label, (n,); NaN where a classifier says nothing."""
    says = items.has_hard | items.provides("ranking")
    last = items.n_classes - 1
    for j, model in enumerate(items.models):
        yield f"share missing of {model}", (~says[:, j]).astype(float)
        if items.probabilities is not None and items.has_probabilities[:, j].any():
            yield f"mean score of {model}", items.probabilities[:, j, -1]
        elif items.scores is not None and np.isfinite(items.scores[:, j]).any():
            yield f"mean score of {model}", items.scores[:, j]
        if items.has_hard[:, j].any():
            hard = items.hard[:, j]
            yield f"share positive of {model}", np.where(hard >= 0, hard == last, np.nan)


def _by_period(periods: Sequence[_Day]) -> dict[str, Floats]:
    """Numbers of every period, (T,), the logarithm of the volume among them."""
    out = {"items": np.log([max(period.size.items, 1) for period in periods])}
    for name in dict.fromkeys(name for period in periods for name in period.sums):
        sums = [period.sums.get(name, (0.0, 0)) for period in periods]
        with np.errstate(invalid="ignore"):
            values = np.array([s for s, _ in sums]) / np.array([float(n) for _, n in sums])
        if np.nanmax(values) > np.nanmin(values):
            out[name] = values
    return out
