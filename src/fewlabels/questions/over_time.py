"""Performance over time: an estimate of each period, what changed, and since when.

Periods are groups in order, whose curves P(class | scores) walk from one to the next
(`methods/group_curves.py`): labels of a period move it and its neighbours, and a period without
labels is as uncertain as the walk allows. What changed is read off the draws of all periods
together. Let m_t be a metric in period t, oriented so that larger is better, r that of the
reference and d the tolerance. The metric has fallen in t if r - m_t > d; the probability of that
in the last period is the share of draws, and the change began, in each such draw, with the first
period after which it stays so. An alarm is due from P(r - m_t > d) >= 1/2 and
P(r - m_t > d/2) >= .95 on: a fall that is as large as the tolerance exceeds it with probability
1/2 only, however many labels there are.

A fall has two causes, told apart by what the old curve says of the new items: with m_t(c) the
metric of the items of t under the curve of period c, r - m_t = [r - m_t(r)] + [m_t(r) - m_t]: the
first is a change of the mix of items, the second one of P(class | scores).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
from scipy import stats

from fewlabels.checks.conditions import NOT_RANDOM, UNLABELED
from fewlabels.errors import InputError, Status, UsageError, listed
from fewlabels.estimates import Estimates, GroupSize
from fewlabels.evaluation.evaluator import Evaluator
from fewlabels.evaluation.periods import Calendar
from fewlabels.kernels.arrays import Bools, Floats, Frozen, Ints
from fewlabels.kernels.blocks import step
from fewlabels.methods.base import FittedLabelModel
from fewlabels.methods.per_model import fit_each
from fewlabels.pipeline import Checks, Question, Setup, estimate_in_memory
from fewlabels.predictions import Predictions
from fewlabels.questions.next_items import drawn, metric_target, open_items
from fewlabels.report.shown import Result, plain_values

Against = Literal["first", "trailing", "reference"]

Every = Literal["day", "week", "month", "year"]

FIRST = 4
"""Periods at the start that others are compared with where there is no reference."""

ALARM = 0.95
"""Probability of a fall by more than half the tolerance from which it may be an alarm."""

_OTHERS = 10
"""Items without a label beside each with one, at most, that these are compared with."""

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
    """What became of a metric of a classifier, as of the last complete period.

    `before` is what it was in what it is compared with, and `fall` by how much it is worse.
    `probability` is that of a fall by more than the tolerance, and `since` the period in which that
    most likely began (None where `probability` is below one half). `what` says whether
    P(class | scores) changed or the mix of items, and `mix` is the part of the fall by the latter.
    It is an `alarm` from one half on if it is also by more than half the tolerance with probability
    .95, and labels look like a random sample.
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


class Fall(NamedTuple):
    """Probabilities by period, (T,), that a metric is worse by more than the tolerance, or half it.

    NaN where a period is not compared.
    """

    probability: Floats
    half: Floats

    @property
    def alarm(self) -> Bools:
        """Where it is likely worse by more than the tolerance, and surely by half of it."""
        alarm: Bools = (self.probability >= 0.5) & (self.half >= ALARM)
        return alarm


@dataclass(frozen=True, eq=False, repr=False)
class Monitoring(Frozen, Result):
    """What `fewlabels.monitor` returns: estimates of every period, and what changed.

    `falls` maps (metric, classifier) to how likely the metric is lower in each period. `subgroups`
    are the same for the rows of each group ("column=value") alone.
    """

    _page = "monitoring"
    KEY: ClassVar = ("every", "subgroup", "period", "model", "metric")
    """The columns by which a row of the table stands once."""

    estimates: Estimates
    time: str
    calendar: Calendar
    against: str
    tolerance: float
    periods: tuple[Period, ...]
    changes: tuple[Change, ...]
    falls: Mapping[tuple[str, str], Fall]
    warnings: tuple[str, ...]
    subgroups: Mapping[str, Monitoring] = field(default_factory=dict)

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
        return self.periods[-1 if self.calendar.complete else -2]

    @property
    def every(self) -> str:
        """How long a period is."""
        return self.calendar.every

    def get(self, model: str, metric: str, period: str | None = None) -> Any:
        """The estimate of a classifier by a metric in a period; None: the last complete one.

        Raises
        ------
        UsageError
            If there is none.
        """
        name = self.complete.name if period is None else period
        return self.estimates.get(model, metric, f"{self.time}={name}")

    def table(self) -> dict[str, Any]:
        """The estimates of the periods, then those of the subgroups, as columns.

        `start` is the first day of a period as a time, without one where times are numbers;
        `probability` is that of a fall.
        """
        columns: dict[str, list[Any]] = {}
        for name, part in (("all items", self), *self.subgroups.items()):
            periods = {f"{self.time}={p.name}": (i, p) for i, p in enumerate(part.periods)}
            for row in part.rows:
                i, period = periods[str(row.group)]
                fall = part.falls.get((row.metric, row.model))
                cells = {
                    "period": period.name,
                    "start": _start(period.name),
                    "every": self.every,
                    "subgroup": name,
                    **{n: v for n, v in row._asdict().items() if n in _ROW},
                    "status": str(row.status),
                    "n_items": period.n_items,
                    "n_labeled": period.n_labeled,
                    "probability": float("nan") if fall is None else float(fall.probability[i]),
                }
                for column, cell in cells.items():
                    columns.setdefault(column, []).append(cell)
        return {**columns, "start": np.array(columns["start"], dtype="datetime64[s]")}

    def _columns(self) -> dict[str, Any]:
        return self.table()

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

    def with_subgroups(
        self, subgroups: Mapping[str, Monitoring], alone: Sequence[str] = ()
    ) -> Monitoring:
        """The same with those of groups; some have items of one period `alone`, and no answer."""
        warnings = list(self.warnings)
        if alone:
            warnings.append(f"groups with items of one period alone are left out: {listed(alone)}")
        for name, part in subgroups.items():
            own = [line for line in part.warnings if line not in self.warnings]
            kinds = Counter(line.partition(":")[0] for line in own)
            for kind, number in kinds.items():
                first = next(line for line in own if line.startswith(kind))
                more = f" (and {number - 1} more like this)" if number > 1 else ""
                warnings.append(f"{name}: {first}{more}")
        return replace(self, subgroups=subgroups, warnings=tuple(warnings))

    def next_items(self, size: int) -> Predictions:
        """Items without a label of the last complete period, whose labels would tell most of it.

        They are drawn in the informative order of `fewlabels.label_next`, for the first metric that
        has a direction, of every classifier.

        Raises
        ------
        InputError, UsageError
            If there is no such item, or the method says nothing of items without a label.
        """
        items, posterior = self.estimates.judged, self.estimates.judged_by
        inside = np.flatnonzero(items.groups[self.time] == self.complete.name)
        if not posterior.infers:
            raise UsageError(
                f"method {self.estimates.method!r} says nothing of items without a label, so it "
                "cannot choose among them; use 'auto'"
            )
        open_rows = np.intersect1d(open_items(items), inside)
        if not len(open_rows):
            raise InputError(f"every item of {self.complete.name} is labeled; none is to choose")
        metric = next(name for name, way in self.estimates.directions.items() if way)
        target = metric_target(items, posterior, metric, open_rows, among=inside)
        drawing = drawn(items, open_rows, "informative", size, self.estimates.seed, target=target)
        return items.take(drawing.items)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values: the JSON of `fewlabels estimate`, with periods and changes.

        A period is a group, `column=first day`.
        """
        subgroups = [
            {"subgroup": name, "estimates": [row._asdict() for row in part.rows], **part._parts()}
            for name, part in self.subgroups.items()
        ]
        own = {
            "time": self.time,
            "every": self.every,
            "tolerance": self.tolerance,
            "gaps": list(self.calendar.gaps),
            **self._parts(),
            "subgroups": subgroups,
        }
        return self.estimates.to_dict() | {n: plain_values(v) for n, v in own.items()}

    def _parts(self) -> dict[str, Any]:
        """Periods, what changed, and the probabilities of falls."""
        return {
            "against": self.against,
            "complete": self.complete.name,
            "periods": [period._asdict() for period in self.periods],
            "changes": [change._asdict() for change in self.changes],
            "falls": [
                {"model": model, "metric": metric, "probability": list(fall.probability)}
                for (metric, model), fall in self.falls.items()
            ],
            "warnings": list(self.warnings),
        }


_ROW = ("model", "metric", "group", "value", "low", "high", "confidence_level", "status")


def _start(name: str) -> datetime | None:
    """The first day of a period as a time; None where periods are numbers."""
    try:
        return datetime.strptime(name, "%Y-%m-%d")
    except ValueError:
        return None


class PeriodItems(Protocol):
    """Items that stand for those of each period, with what is known of all of these."""

    @property
    def items(self) -> Predictions:
        """The items; the group of the column of times names their period."""

    @property
    def calendar(self) -> Calendar:
        """The periods in order."""

    @property
    def sizes(self) -> Sequence[tuple[int, int]]:
        """How many items and labels each period has."""

    @property
    def numbers(self) -> Mapping[str, Floats]:
        """What can be seen of each period without a label, (T,)."""

    @property
    def is_weighted(self) -> bool:
        """Whether rows have sampling weights of their own."""

    @property
    def notes(self) -> Sequence[str]:
        """What is worth a warning."""


def over_time(
    question: Question, held: PeriodItems, tolerance: float, against: Against | None
) -> Monitoring:
    """The estimates of each period, and what changed; the question is by the column of times."""
    (time,) = question.columns
    items, calendar = held.items, held.calendar
    setup = question.setup(items)
    compared: Against = against or ("first" if question.reference is None else "reference")
    fitted = _fit(question, setup, items)
    checks = _checks(question, setup, held)
    estimates = estimate_in_memory(question, setup, items, fitted, checks=checks)
    estimates = _resting_on_others(estimates, items, calendar, time)
    base = _Baseline.of(question, setup, estimates, compared, calendar.names, time)
    falls = dict(_falls(estimates, base, tolerance))
    step("looking for changes")
    names = calendar.names[: None if calendar.complete else -1]
    old = _under_old_curve(question, setup, items, fitted, base, calendar.names, names[-1])
    sizes = dict(zip((f"{time}={n}" for n in calendar.names), held.sizes, strict=True))
    every = [sum(column) for column in zip(*held.sizes, strict=True)]
    estimates = replace(
        estimates,
        n_items=every[0],
        n_labeled=every[1],
        groups=tuple(
            GroupSize(g.group, *sizes.get(g.group or "", every)) for g in estimates.groups
        ),
    )
    return Monitoring(
        estimates=estimates,
        time=time,
        calendar=calendar,
        against=compared,
        tolerance=tolerance,
        periods=tuple(_periods(held)),
        changes=tuple(_changes(estimates, base, falls, old, tolerance, names)),
        falls=falls,
        warnings=tuple(dict.fromkeys([*held.notes, *estimates.warnings])),
    )


def _resting_on_others(
    estimates: Estimates, items: Predictions, calendar: Calendar, time: str
) -> Estimates:
    """Periods without a label of their own rest on the others: on what scores meant there."""
    told = {*items.groups[time][items.told].tolist()}
    bare = {f"{time}={name}" for name in calendar.names if name not in told} if told else {}
    rows = [
        row._replace(status=Status.ASSUMPTION)
        if row.group in bare and row.status is Status.FEW_LABELS else row
        for row in estimates.rows
    ]  # fmt: skip
    old, new = "few-labels: no labeled item in group ", "assumption: no labeled item in "
    said = "; its scores are taken to mean what they did in other periods"
    lines = [
        f"{new}{line.removeprefix(old)}{said}" if line.removeprefix(old) in bare else line
        for line in estimates.warnings
    ]
    latest = calendar.names[-1 if calendar.complete else -2]
    more = {UNLABELED: latest} if f"{time}={latest}" in bare else {}
    diagnostics = {**estimates.diagnostics, **more}
    return replace(estimates, rows=tuple(rows), warnings=tuple(lines), diagnostics=diagnostics)


def _fit(question: Question, setup: Setup, items: Predictions) -> FittedLabelModel:
    """The label model; of several classifiers, what can be fitted to one alone is.

    The offset and slope of a period are of log P(class | scores): where classifiers share one, a
    fall of one is taken to be of all.
    """
    if setup.name != "learned-ensemble" or setup.distribution:
        return setup.fit(question, items)

    def fit(own: Predictions, rng: np.random.Generator) -> FittedLabelModel:
        known = question.reference
        known = None if known is None else known.select_models(own.models)
        alone = replace(question, reference=known)
        return alone.setup(own).fit(alone, own)

    gives = items.gives("hard") | items.gives("ranking")
    served = [model for model, some in zip(items.models, gives, strict=True) if some]
    if len(served) < 2:
        return setup.fit(question, items)
    return fit_each(fit, items.select_models(served), np.random.default_rng(question.seed))


def _checks(question: Question, setup: Setup, held: PeriodItems) -> Checks:
    """What the items show by themselves; labels are compared with the others of their periods."""
    items = held.items
    if not held.is_weighted:
        items = _comparable(items, question.columns[0])
    checks = Checks.of(question, setup, items)
    finding = checks.records.get(NOT_RANDOM)
    if finding is None:
        return checks
    remedy = "draw the items to label at random from each period, or give weights (--weight COL)"
    said = (
        "shift: labeled items do not look like a random sample of their periods "
        f"(p = {finding['p_value']:.3f}): {finding['difference']}; estimates may be off by more "
        f"than their intervals say; {remedy}"
    )
    return checks._replace(
        records={**checks.records, NOT_RANDOM: {**finding, "remedy": remedy}},
        sentences=[said if s.startswith("shift: labeled items") else s for s in checks.sentences],
    )


def _comparable(items: Predictions, time: str) -> Predictions:
    """Labeled items and others in one proportion in each period, without weights.

    So it is seen whether labels are of a random sample of their period, however many each has.
    """
    period, told = items.groups[time], items.told
    parts = [np.flatnonzero(period == name) for name in dict.fromkeys(period.tolist())]
    parts = [rows for rows in parts if 0 < told[rows].sum() <= 0.5 * len(rows)]
    if not parts:
        return items
    pairs = [(rows[told[rows]], rows[~told[rows]]) for rows in parts]
    weight = items.weight
    each = min(_OTHERS, *(weight[o].sum() / weight[o].max() / len(known) for known, o in pairs))
    chosen = []
    for known, others in pairs:
        # In proportion to the weights, and none twice.
        size, ends = int(each * len(known)), np.cumsum(weight[others])
        at = np.searchsorted(ends, (np.arange(size) + 0.5) / max(size, 1) * ends[-1])
        chosen += [known, others[at]]
    return items.take(np.sort(np.concatenate(chosen))).with_weight(None)


# What changed -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Baseline:
    """What periods are compared with, by metric: `levels`, draws of every period (T, D, M).

    `draws` are of the periods themselves, (T, D, M), and `first` (M,) the first period of each
    classifier that is compared; `place` is the period whose curve is the old one.
    """

    draws: Mapping[str, Floats]
    levels: Mapping[str, Floats]
    first: Mapping[str, Ints]
    place: int

    @staticmethod
    def of(
        question: Question, setup: Setup, estimates: Estimates, against: Against,
        names: Sequence[str], time: str,
    ) -> _Baseline:  # fmt: skip
        ranked = [name for name, way in estimates.directions.items() if way]
        draws = {
            name: np.stack([estimates.draws[name, f"{time}={period}"] for period in names])
            for name in ranked
        }
        if against == "reference":
            reference = question.reference
            assert reference is not None
            # Of the population: what the reference is a sample of is what periods are held to.
            alone = replace(
                question, method="labeled", by=None, reference=None, estimand="population"
            )
            known = reference.select_models(estimates.models)
            judged = estimate_in_memory(alone, alone.setup(known), known)
            levels = {
                n: np.broadcast_to(_as_many(judged.draws[n, None], d.shape[1]), d.shape)
                for n, d in draws.items()
            }
            first = {n: np.zeros(d.shape[2], dtype=np.int64) for n, d in draws.items()}
            return _Baseline(draws, levels, first, 0)
        size, levels, first = FIRST * (against == "first"), {}, {}
        for name, d in draws.items():
            levels[name], first[name] = _before(d, size)
        place = (min(size, max(len(names) // 3, 1)) - 1) // 2 if size else max(len(names) - 2, 0)
        return _Baseline(draws, levels, first, place)


def _before(draws: Floats, size: int) -> tuple[Floats, Ints]:
    """The mean over a classifier's first `size` periods, or a third of them, (T, D, M).

    Those in which it has no estimate do not count; `size` 0 is every period before. And the first
    period after these, (M,).
    """
    there = np.isfinite(draws)
    seen = there.any(axis=1)
    number = np.cumsum(seen, axis=0)
    most = np.minimum(size, np.maximum(number[-1] // 3, 1)) if size else number[-1]
    chosen = seen & (number <= most)
    counted = there & chosen[:, None]
    sums, counts = np.cumsum(np.where(counted, draws, 0), axis=0), np.cumsum(counted, axis=0)
    if size:
        sums, counts = sums[-1:], counts[-1:]
        first = np.where(
            chosen.any(axis=0), len(chosen) - np.argmax(chosen[::-1], axis=0), len(chosen)
        )
    else:
        sums, counts = (np.concatenate([v[:1] * 0, v[:-1]]) for v in (sums, counts))
        first = np.argmax(seen, axis=0) + 1
    levels = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return np.broadcast_to(levels, draws.shape), first


def _as_many(draws: Floats, size: int) -> Floats:
    """As many draws (size, M) as there are of the periods."""
    return draws[np.arange(size) % len(draws)]


def _falls(
    estimates: Estimates, base: _Baseline, tolerance: float
) -> Iterator[tuple[tuple[str, str], Fall]]:
    """(metric, classifier) -> how likely it has fallen in each period."""
    for name, draws in base.draws.items():
        fall = estimates.directions[name] * (base.levels[name] - draws)
        for j, model in enumerate(estimates.models):
            defined = np.isfinite(fall[:, :, j]).any(axis=1)
            # Draws in which it is undefined are of no fall.
            parts = [(fall[:, :, j] > d).mean(axis=1) for d in (tolerance, 0.5 * tolerance)]
            p = np.where(defined, parts, np.nan)
            p[:, : base.first[name][j]] = np.nan
            yield (name, model), Fall(*p)


def _changes(
    estimates: Estimates, base: _Baseline, falls: Mapping[tuple[str, str], Fall],
    old: Mapping[str, Floats], tolerance: float, names: Sequence[str],
) -> Iterator[Change]:  # fmt: skip
    """What became of each metric of each classifier, as of the last of these periods."""
    at = len(names) - 1
    for (metric, model), found in falls.items():
        p, random = found.probability, NOT_RANDOM not in estimates.diagnostics
        j, way = estimates.models.index(model), estimates.directions[metric]
        fall = way * (base.levels[metric] - base.draws[metric])[:, :, j]
        fall, first = fall[: at + 1], int(base.first[metric][j])
        last = fall[-1][np.isfinite(fall[-1])]
        if not len(last) or first > at:
            continue
        tail = (1 - estimates.confidence_level) / 2
        low, middle, high = np.quantile(last, [tail, 0.5, 1 - tail])
        before = float(np.nanmean(base.levels[metric][at, :, j]))
        mix = way * (before - float(old[metric][j]))
        since, fell = None, fall > tolerance
        if p[at] >= 0.5:
            stays = fell[:, fell[-1]]
            start = len(stays) - np.argmin(stays[::-1], axis=0)
            start[stays.all(axis=0)] = 0
            since = names[max(int(np.median(start)), first)]
        parts = {"P(class | scores)": middle - mix, "the mix of items": mix}
        causes = [what for what, part in parts.items() if part > _CAUSE * middle]
        cause = "nothing" if since is None else " and ".join(causes)
        yield Change(
            model, metric, since, float(p[at]), before, float(middle), float(low), float(high),
            mix, cause, bool(found.alarm[at] and random),
        )  # fmt: skip


def _under_old_curve(
    question: Question, setup: Setup, held: Predictions, fitted: Any, base: _Baseline,
    names: Sequence[str], latest: str,
) -> dict[str, Floats]:  # fmt: skip
    """Metrics (M,) of the latest period's items under the curve of an old one."""
    column = question.columns[0]
    rows = np.flatnonzero(held.groups[column] == latest)
    last = held.take(rows)
    there = np.full(len(rows), names[base.place], dtype=object)
    blank = last.with_groups({column: there}).with_labels(np.full(len(rows), -1))
    evaluator = Evaluator(blank, fitted.posterior(blank), setup.metrics, "population", None)
    measured = evaluator.measure(np.arange(len(rows)))
    return {name: values.value for name, values in measured.items()}


# What moved ---------------------------------------------------------------------------------------


def _periods(held: PeriodItems) -> Iterator[Period]:
    """Every period, with what of it lies outside of what the periods before foretell.

    A number x of a period is compared with those m before it: (x - mean) / (s sqrt(1 + 1 / m)) has
    Student's t distribution with m - 1 degrees of freedom, where periods are alike.
    """
    limit = 0.05 / _A_YEAR / max(len(held.numbers), 1)
    for t, (name, size) in enumerate(zip(held.calendar.names, held.sizes, strict=True)):
        moved = {}
        for what, values in held.numbers.items():
            before = values[:t][np.isfinite(values[:t])]
            if len(before) < _LEAST_BEFORE or not np.isfinite(values[t]):
                continue
            spread = before.std(ddof=1) * np.sqrt(1 + 1 / len(before))
            gap = abs(values[t] - before.mean())
            p = 2 * stats.t.sf(gap / spread, len(before) - 1) if spread else float(gap == 0)
            if p < limit:
                moved[what] = float(p)
        yield Period(name, *size, moved)
