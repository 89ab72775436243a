"""Periods: groups in order, whose items come later and later.

Rows are counted by day (`days_of`); a `Calendar` makes periods of the days.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import numpy as np

from fewlabels.checks.arguments import is_missing
from fewlabels.errors import InputError, UsageError, listed, quoted
from fewlabels.kernels.arrays import Array
from fewlabels.methods.group_curves import MOST_PERIODS


@dataclass(frozen=True)
class Calendar:
    """The periods in order, by their first day or value, and that of each day.

    `complete` says that the data reach as near to the end of the last one as of half of those
    before; `gaps` are periods between the first and the last that have no items.
    """

    names: tuple[str, ...]
    place: Mapping[str, int]
    every: str
    complete: bool
    gaps: tuple[str, ...]
    notes: tuple[str, ...]

    def of_days(self, days: Collection[str]) -> Calendar:
        """The same periods, as far as some of the days are of them."""
        codes = sorted({self.place[day] for day in days})
        place = {day: codes.index(self.place[day]) for day in days}
        names = tuple(self.names[code] for code in codes)
        complete = self.complete or names[-1:] != self.names[-1:]
        return Calendar(names, place, self.every, complete, (), ())

    @staticmethod
    def of(days: Collection[str], column: str, every: str | int | None, least: int = 2) -> Calendar:
        """The periods, so many at least, of some days or numbers, as `days_of` writes them."""
        times = {day: _parsed(day) for day in days}
        kinds = {isinstance(t, datetime) for t in times.values()}
        if len(kinds) != 1:
            what = "holds no time" if not kinds else "holds both dates and numbers"
            raise InputError(f"column {quoted(column)} {what}; name another with --time COL")
        dated = kinds.pop()
        width = _width(every, [] if dated else days)
        if width is None:
            width = _finest([*times.values()], column)
        starts = {day: _start(t, width) for day, t in times.items()}
        order = sorted({*starts.values()})
        if len(order) < least:
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
        lasts: dict[_Time, _Time] = {}
        for day, start in starts.items():
            lasts[start] = max(times[day], lasts.get(start, times[day]))
        latest = lasts[order[-1]]
        left = [_left(lasts[start], width) for start in order]
        complete = left[-1] <= sorted(left[:-1] or left)[max(len(left) - 2, 0) // 2]
        notes = []
        gaps = tuple(map(_name, _gaps(order, width)))
        if gaps:
            notes.append(f"no items in {len(gaps)} periods: {listed(gaps, 3)}")
        if not complete and isinstance(latest, datetime):
            notes.append(
                f"the last period ({_name(order[-1])}) is not complete: the data end on "
                f"{latest:%Y-%m-%d}"
            )
        of_day = {day: place[start] for day, start in starts.items()}
        return Calendar(tuple(map(_name, order)), of_day, str(width), complete, gaps, tuple(notes))


NO_TIME = ""
"""The day of items without a time."""


def days_of(values: Array, column: str, form: str | None = None) -> tuple[Array, set[bool]]:
    """The day of each time (in UTC), or the number itself, as text, (n,); `NO_TIME` where none is.

    With whether times of a day have a zone: both, where some have one and others none. `form` is
    how times are written, as `datetime.strptime` takes it; None: as ISO 8601, or numbers.
    """
    there = values.tolist()
    named, zones = dict[Any, str](), set[bool]()
    for value in dict.fromkeys(there):
        try:
            found = _time(value, form)
        except ValueError:
            raise InputError(_no_time(str(value).strip(), there, column, form)) from None
        named[value] = NO_TIME if found is None else _name(_start(_in_utc(found), "day"))
        if isinstance(found, datetime) and (found.tzinfo or found.time() != time.min):
            zones.add(found.tzinfo is not None)
    return np.array([named[value] for value in there], dtype=object), zones


def _in_utc(moment: _Time) -> _Time:
    """The time without its zone."""
    zoned = isinstance(moment, datetime) and moment.tzinfo is not None
    return moment.astimezone(UTC).replace(tzinfo=None) if zoned else moment  # type: ignore[union-attr]


def _parsed(day: str) -> _Time:
    """What `days_of` has written."""
    return datetime.fromisoformat(day) if day.count("-") == 2 and "e" not in day else float(day)


_Time = datetime | float


def _time(value: Any, form: str | None) -> _Time | None:
    """A date or time, or a number; None where missing.

    Raises
    ------
    ValueError
        If it is none.
    """
    if is_missing(value) or value == "":
        return None
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    text = _name(value) if isinstance(value, float) else str(value).strip()
    if form is not None:
        return datetime.strptime(text, form)
    try:
        number = float(text)
    except ValueError:
        return datetime.fromisoformat(f"{text}-01" if re.fullmatch(r"\d{4}-\d\d", text) else text)
    return _epoch(number) or number


_DATES = (
    "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%d.%m.%y",
    "%d/%m/%y", "%m/%d/%y", "%b %d %Y", "%b %d, %Y", "%B %d, %Y", "%d %b %Y", "%d %B %Y",
    "%d-%b-%Y", "%d-%b-%y", "%a, %d %b %Y",
)  # fmt: skip
_OF_DAY = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p", " %H:%M:%S %z", ", %I:%M %p")
_FORMS = tuple(day + time_of_day for time_of_day in _OF_DAY for day in _DATES)
"""How dates and times are often written, beside ISO 8601."""


def _no_time(text: str, values: Sequence[Any], column: str, form: str | None) -> str:
    """What a value is not, and how these values can be read: in each way in which all can."""
    said = f"column {quoted(column)} holds {quoted(text)}, which is"
    others = {str(v).strip() for v in values if not (is_missing(v) or v == "")}
    ways = [f for f in _FORMS if f != form and all(_is_written(other, f) for other in others)]
    if ways:
        days = {f: datetime.strptime(text, f) for f in ways}
        read = [f"--time-format {shlex.quote(f)} ({t.day} {t:%B %Y})" for f, t in days.items()]
        return f"{said} not as ISO 8601 writes times: say how to read it: {' or '.join(read)}"
    way = "" if form is None else f" of the form {quoted(form)} (--time-format)"
    other = f"{column} != '{text}'"
    return (
        f"{said} no time{way}: write dates as 2026-09-07, times as 2026-09-07T14:30:00, or leave "
        f"such rows out with --where {shlex.quote(other)}"
    )


def _is_written(text: str, form: str) -> bool:
    """Whether a text is a time of some form."""
    try:
        return datetime.strptime(text, form).year >= 1900
    except ValueError:
        return False


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


def _width(every: str | int | None, numbers: Collection[str]) -> str | int | None:
    """How long periods are: a word, or a number of days or units; times may be plain numbers."""
    if every is None or (isinstance(every, str) and every in ("day", "week", "month", "year")):
        if every is not None and numbers:
            months = all(_is_written(number, "%Y%m") for number in numbers)
            way = ", or how they are read (--time-format %Y%m)" if months else ""
            raise UsageError(
                f"`every` is {every!r}, and the times are plain numbers; say how many are one "
                f"period (every=1){way}"
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
    for width in ("value", *(("week", "month", "year") if dated else ())):
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
        return float(np.floor(t / width) * width) if isinstance(width, int) else t
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


def _left(t: _Time, width: str | int) -> int:
    """Days until the next period; 0 where times are numbers or periods themselves."""
    if width == "value" or not isinstance(t, datetime):
        return 0
    return next(
        d for d in range(1, 400) if _start(t + timedelta(days=d), width) != _start(t, width)
    )


def _name(start: _Time) -> str:
    if isinstance(start, datetime):
        return f"{start:%Y-%m-%d}"
    return str(int(start)) if start.is_integer() else repr(start)


def _gaps(starts: Sequence[Any], width: str | int) -> list[Any]:
    """The periods between the first and the last that have no items."""
    if width == "value" or not isinstance(starts[0], datetime):
        return []
    there, out, at = {*starts}, [], starts[0]
    while at < starts[-1]:
        following = _start(at + timedelta(days=1), width)
        if following != at and following not in there:
            out.append(following)
        at = at + timedelta(days=1)
    out = list(dict.fromkeys(out))
    return out
