"""Several tasks in one table: tags of a text, criteria of a rubric, findings of an image.

Without the words of the task, columns are those of a longer table, with a row for every item and
task (`ByTask`), which is recognised and read as any other; the rows of one item are a cluster.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa

from fewlabels.checks.class_words import folded, same_answer
from fewlabels.data.agreement import rank_shares
from fewlabels.data.evidence import FEW_WORDS, NEARLY_ALL, Reading
from fewlabels.data.families import sums
from fewlabels.data.options import ColumnOptions
from fewlabels.data.profiles import Profile, item_in_name, profile
from fewlabels.data.recognise import recognise
from fewlabels.data.roles import Roles, missing_column, split_native
from fewlabels.data.shapes import Shaped
from fewlabels.data.table import Derived, Names, Source, Table, in_order
from fewlabels.data.task_names import (
    LABEL,
    MOST_COLUMNS,
    NamedTasks,
    Task,
    split_name,
    stem_without,
    tasks_by_name,
)
from fewlabels.errors import InputError, UsageError, did_you_mean, listed, quoted
from fewlabels.kernels.arrays import Floats

TASK, ROW = "task", "row"
"""Names of the columns of tasks, and of items where they have none."""

_FEWEST, _SHOWN = 20, 3.0
"""Labels, and standard errors, from which a prediction shows that it is of its own task."""


@dataclass(frozen=True)
class Found:
    """What the columns of a table are of: `source` is the table to recognise and to read.

    The rows of several `tasks` stand one below the other, in groups by the column `column`.
    """

    source: Source
    options: ColumnOptions
    tasks: tuple[Task, ...] = ()
    column: str | None = None
    lines: tuple[str, ...] = ()

    def said(self, options: ColumnOptions) -> ColumnOptions:
        """The options that read the table as it stands in this way."""
        if isinstance(self.source, TasksInItems):  # told by the names again
            made = {self.source.task, self.source.item}
            kept = None if options.keep is None else tuple(k for k in options.keep if k not in made)
            return replace(options, task=None, cluster=(), keep=kept)
        if not self.tasks:
            return options
        assert isinstance(self.source, ByTask)
        item = None if options.item == self.source.row else options.item
        return replace(
            options,
            tasks={task.name: tuple(task.columns.values()) for task in self.tasks},
            item=item,
            cluster=tuple(c for c in options.cluster if c != options.item),
        )

    def of_each(self, options: ColumnOptions) -> dict[str, ColumnOptions]:
        """For every task the options that read it alone, from those of the longer table."""
        return {task.name: self._of_one(task, options) for task in self.tasks}

    def _of_one(self, task: Task, options: ColumnOptions) -> ColumnOptions:
        assert isinstance(self.source, ByTask)
        absent = {stem for other in self.tasks for stem in other.columns} - {*task.columns}
        added = {self.column, self.source.row}

        def column(name: str) -> str | None:
            return None if name in absent or name in added else task.columns.get(name, name)

        clusters = tuple(name for name in options.cluster if name != options.item)
        kept = None if options.keep is None else tuple(k for k in options.keep if k not in added)
        return replace(options, tasks={}, cluster=clusters, keep=kept).renamed(column)


def recognise_tasks(found: Found, *, joined: Collection[str] | None = None) -> Reading:
    """Recognise the columns of what was found."""
    options = found.options
    if not found.tasks:
        return recognise(found.source, options, joined=joined)
    assert isinstance(found.source, ByTask)
    alone = replace(found.source, others=(), row=None, hidden=True)
    of_tasks = recognise(
        alone, replace(options, item=None, cluster=(), domain=None, weight=None, keep=None)
    )
    told = of_tasks.options
    known = {
        name: getattr(told, name)
        for name in ("label", "models", "logits", "hard", "scores", "confidence")
    }
    rest = replace(options, **known)
    if not told.names_classifiers and not any(map(split_native, alone.names)):
        return Reading(rest, of_tasks.lines)
    beside = recognise(found.source, rest)
    return replace(beside, lines=(*of_tasks.lines, *beside.lines))


def of_items(source: Source, roles: Roles) -> tuple[Source, Roles]:
    """The table with a row per item, and its roles, where nobody says which rows are together."""
    if not isinstance(source, ByTask) or roles.clusters != (roles.item,):
        return source, roles
    own = {*source.others}
    return source.inner, replace(
        roles,
        clusters=(),
        item=roles.item if roles.item in own else None,
        groups=tuple(name for name in roles.groups if name in own),
        ignored=tuple(name for name in roles.ignored if name in own),
    )


def find_tasks(source: Source, options: ColumnOptions, *, labels_apart: bool = False) -> Found:
    """The tasks of a table: those that are said, or that its names and values show."""
    # Where labels are kept apart, only a row for every task can be joined to them.
    names = [name for name in source.names if name]
    said = options.task is not None or bool(options.tasks or options.cluster)
    native = "label" in names and any(split_native(name) is not None for name in names)
    by_rows = None if said or native else _in_items(source, options)
    if by_rows is not None:
        kept = None if options.keep is None else (by_rows.task, *options.keep)
        line = (
            f"tasks: what the names in column {quoted(by_rows.column)} end in; what is of no task "
            "is of all rows (if all are of one task, say "
            f"{shlex.join(['--cluster', by_rows.column])})"
        )
        options = replace(options, task=by_rows.task, cluster=(by_rows.item,), keep=kept)
        return Found(by_rows, options, (), by_rows.task, (line,))
    if labels_apart and options.tasks:
        raise UsageError(
            "--task NAME=COL,COL is of a table with labels and predictions; leave out --labels"
        )
    if options.task is not None:
        if options.task not in names:
            raise InputError(missing_column(options.task, names, "--task"))
        item = options.item or _item_of(names)
        clustered = options.cluster or ((item,) if item in names and item is not None else ())
        kept = None if options.keep is None else (options.task, *options.keep)
        line = f"tasks: column {quoted(options.task)}; what is of no task is of all rows"
        return Found(
            source, replace(options, cluster=clustered, keep=kept), (), options.task, (line,)
        )
    if labels_apart:
        return Found(source, options)
    if options.tasks:
        return _reshaped(source, options, _said(options.tasks, names))
    if native or len(names) > MOST_COLUMNS or len(set(names)) < len(names):
        return Found(source, options)
    claimed = {name for name in (*options.of_classifiers, options.label) if name in names}
    for named in tasks_by_name(names):
        found = _found(source, options, named, claimed)
        if found is not None:
            return found
    return Found(source, options)


def _found(
    source: Source, options: ColumnOptions, named: NamedTasks, claimed: Collection[str]
) -> Found | None:
    """What tasks by their names are by their values; None where they are none."""
    of_tasks = {column: task.name for task in named.tasks for column in task.columns.values()}
    whose = {of_tasks.get(column) for column in claimed}
    if len(whose) > 1 and None not in whose:
        shown = listed(f"{quoted(c)} of {quoted(t)}" for c, t in of_tasks.items() if c in claimed)
        line = f"columns of several tasks, by their names, are read as one: {shown}"
        return Found(source, options, lines=(line,) * (named.names == "sure"))
    if None in whose:
        return None  # said in full, whatever the names are like
    table = source.read((), named.columns)
    if not table.n_rows:
        return None
    of = cache(partial(profile, table, options=options))
    if not whose and not _are_tasks(named, of, options):
        return None
    filled = [(of(label).filled, [of(c).filled for c in cs]) for _, label, cs in named.pairs()]
    if named.names == "unknown" and any(labels >= min(others) for labels, others in filled):
        return None
    if len(whose) == 1 or len(named.tasks) == 1:
        chosen = next(t for t in named.tasks if len(named.tasks) == 1 or t.name in whose)
        hidden = [c for c in named.columns if c not in chosen.columns.values()]
        line = (
            f"task {quoted(chosen.name)} alone: the columns of other tasks "
            f"({listed(map(quoted, hidden), 4)}) are not used"
        )
        names = tuple(name for name in source.names if name not in hidden)
        return Found(Shaped(source, names), options, lines=(line,) * bool(hidden))
    _refuse_other_classes(named, of)
    found, left = _reshaped(source, options, named.tasks, named.left), map(quoted, named.left)
    line = f"not used: {listed(left, 4)} (of a task without labels, or without predictions)"
    return replace(found, lines=(*found.lines, *[line] * bool(named.left)))


def _said(said: Mapping[str, Sequence[str]], names: Sequence[str]) -> tuple[Task, ...]:
    """Tasks by their columns, which are matched by what their names have besides the task."""
    for task, columns in said.items():
        for column in columns:
            if column not in names:
                near = did_you_mean(column, names)
                raise InputError(
                    f"no column {quoted(column)}, which --task {task} names; {near}the columns are "
                    f"{listed(map(quoted, names))}"
                )
        if len(columns) < 2:
            raise UsageError(
                f"--task {task} names one column, and a task has a label and predictions: "
                f"--task {task}=LABEL,PREDICTION,.."
            )
    if len(said) < 2:
        raise UsageError("--task names one task; name two or more, or leave it out")
    used = [column for columns in said.values() for column in columns]
    twice = next((column for column in used if used.count(column) > 1), None)
    if twice is not None:
        raise UsageError(f"--task names column {quoted(twice)} twice; a column is of one task")
    by_name = {
        task: {stem_without(column, task): column for column in columns}
        for task, columns in said.items()
    }
    if all(None not in f and len(f) == len(said[task]) for task, f in by_name.items()):
        return tuple(Task(t, {s or LABEL: c for s, c in f.items()}) for t, f in by_name.items())
    sizes = {len(columns) for columns in said.values()}
    if len(sizes) > 1:
        raise UsageError(
            "the columns of --task must have the names of their tasks in theirs, or be as many and "
            "in the same order for every task"
        )
    stems: list[str] = []
    for together in zip(*said.values(), strict=True):
        words = [split_name(column) for column in together]
        common = [w for w in words[0] if all(w.casefold() in map(str.casefold, o) for o in words)]
        stem = "_".join(common) or (LABEL if not stems else together[0])
        stems.append(stem if stem not in stems else f"{stem}_{len(stems) + 1}")
    return tuple(Task(t, dict(zip(stems, columns, strict=True))) for t, columns in said.items())


def _are_tasks(named: NamedTasks, of: Callable[[str], Profile], options: ColumnOptions) -> bool:
    """Whether the values go with tasks; a table is refused where nothing says."""
    pairs = named.pairs()
    labels: list[Profile] = []
    for _, label, _ in pairs:  # where the first holds numbers that all differ, no other is read
        labels.append(p := of(label))
        if p.filled and (p.counts is None or len(p.counts) > max(20, p.filled // 4)):
            return False
    known = [p for p in labels if p.filled]
    if not known:
        return False
    predicted = [[of(c) for c in columns] for _, _, columns in pairs]
    predicted = [
        [p for p in own if _predicts(p, label)]
        for own, label in zip(predicted, labels, strict=True)
    ]
    # Perhaps labels are those of one task, a column of 0 and 1 per class, and predictions too.
    columns = (labels, *zip(*predicted, strict=False))
    ones = (all(p.numbers is not None for p in of) and sums(of) for of in columns)
    if not any(predicted) or (next(ones) and all(predicted) and any(ones)):
        return False
    if len(pairs) == 1:
        return named.names == "sure"
    if sum(len(p.counts or ()) > 1 for p in known) < 2 and named.names != "sure":
        return False  # one value, such as a version, is no label
    shown = _own_rather_than_others(labels, predicted)
    sure = named.names == "sure"
    if (sure and (shown is None or shown > -_SHOWN)) or (shown or 0.0) > _SHOWN:
        return True
    if named.names in ("guessed", "unknown"):
        return False
    raise _either(named, of, options)


def _predicts(p: Profile, label: Profile) -> bool:
    """Whether a column may be of a classifier of these labels: their values, or numbers."""
    numbers = p.numbers is not None and (label.numbers is not None or len(label.counts or ()) <= 2)
    texts = list(label.counts or ())
    return not p.filled or numbers or all(same_answer(text, texts) for text in p.counts or ("",))


def _own_rather_than_others(
    labels: Sequence[Profile], predicted: Sequence[Sequence[Profile]]
) -> float | None:
    """By how many standard errors predictions go with the labels of their own task rather."""
    # For every item the mean over tasks t and others u of z(prediction_t) (z(label_t) -
    # z(label_u)), in standardised ranks; None on few items with both labels.
    z_label = [_standard(_numbers_of(p, labels)) for p in labels]
    z_own = [[_standard(_numbers_of(p, labels)) for p in own] for own in predicted]
    total, times = np.zeros(labels[0].rows), np.zeros(labels[0].rows)
    for t, own in enumerate(z_own):
        for z in own:
            for u in range(len(labels)):
                part = z * (z_label[t] - z_label[u])
                there = ~np.isnan(part) & (u != t)
                total[there] += part[there]
                times[there] += 1
    gaps = total[times > 0] / times[times > 0]
    if len(gaps) < _FEWEST or not gaps.any():
        return None
    return float(gaps.mean() / max(gaps.std(ddof=1) / np.sqrt(len(gaps)), 1e-12))


def _numbers_of(p: Profile, labels: Sequence[Profile]) -> Floats:
    """The numbers of a column, or the places of its classes."""
    if p.numbers is not None:
        return p.numbers
    order = in_order({folded(t) for label in labels for t in label.counts or ()})
    place = [order.index(folded(t)) if folded(t) in order else np.nan for t in p.texts]
    return np.array([*place, np.nan], dtype=float)[np.where(p.codes < len(place), p.codes, -1)]


def _standard(values: Floats) -> Floats:
    """Ranks of mean 0 and variance 1; NaN where a value is missing."""
    ranks = rank_shares(values)
    known = ranks[~np.isnan(ranks)]
    return (ranks - known.mean()) / (known.std() or 1.0) if len(known) else ranks


def _either(named: NamedTasks, of: Callable[[str], Profile], options: ColumnOptions) -> InputError:
    """Both readings: several tasks, or one with labels of several people."""
    pairs = named.pairs()
    several = " ".join(
        f"--task {shlex.quote(f'{t}={label},' + ','.join(c))}" for t, label, c in pairs
    )
    label = options.label or pairs[0][1]
    classifiers = [(c, of(c)) for _, _, columns in pairs for c in columns]
    flags = [
        "--model" if p.in_unit and not p.whole else "--score" if p.counts is None else "--hard"
        for _, p in classifiers
    ]
    said = [shlex.quote(f"{c}={c}") for c, _ in classifiers]
    one = " ".join(f"{flag} {pair}" for flag, pair in zip(flags, said, strict=True))
    return InputError(
        f"columns {listed((quoted(label) for _, label, _ in pairs), 4)} are labels of several "
        "tasks, or of several people, and neither names nor values tell which: say "
        f"{several} or --label {shlex.quote(label)} {one}"
    )


def _refuse_other_classes(named: NamedTasks, of: Callable[[str], Profile]) -> None:
    """Refuse tasks whose classes differ: they cannot stand below one another."""
    classes = {label: list(of(label).counts or ()) for _, label, _ in named.pairs()}
    largest = max(classes, key=lambda label: len(classes[label]))
    for label, own in classes.items():
        if all(same_answer(text, classes[largest]) for text in own):
            continue
        shown = [f"{quoted(n)}: {listed(in_order(classes[n]), 5)}" for n in (largest, label)]
        raise InputError(
            f"the tasks have different classes ({'; '.join(shown)}), and are estimated one at a "
            f"time: say --label {shlex.quote(largest)} or --label {shlex.quote(label)}"
        )


def _reshaped(
    source: Source, options: ColumnOptions, tasks: Sequence[Task], left: Collection[str] = ()
) -> Found:
    of_tasks = {column for task in tasks for column in task.columns.values()}
    others = tuple(name for name in source.names if name not in of_tasks and name not in left)
    stems = list(dict.fromkeys(stem for task in tasks for stem in task.columns))
    taken = {stem: f"{stem}_of_task" for stem in stems if stem in others}
    tasks = tuple(Task(t.name, {taken.get(s, s): c for s, c in t.columns.items()}) for t in tasks)
    column = TASK
    while column in others or column in {s for t in tasks for s in t.columns}:
        column += "_"
    item = options.item or _item_of(others)
    row = None if item is not None else next(n for n in (ROW, f"{ROW}_") if n not in others)
    item = item or str(row)
    reshaped = ByTask(source, tuple(tasks), others, column, row)
    native = {s.removeprefix("p__"): (s,) for s in stems if _PROBABILITY.fullmatch(s)}
    options = replace(
        options,
        tasks={},
        models={**native, **options.models},
        item=item,
        cluster=options.cluster or (item,),
        keep=None if options.keep is None else tuple(dict.fromkeys([column, *options.keep])),
    )
    shown = "; ".join(f"{t.name} = {', '.join(map(quoted, t.columns.values()))}" for t in tasks[:4])
    more = f" and {len(tasks) - 4} more" if len(tasks) > 4 else ""
    line = (
        f"{len(tasks)} tasks, each with labels and predictions of its own: {shown}{more}; what is "
        "of no task is of all rows (micro average)"
    )
    return Found(reshaped, options, tuple(tasks), column, (line,))


_PROBABILITY = re.compile(r"p__(?:(?!__).)+")
"""What is left of a native column of probabilities that ends in the task."""

_ITEM = re.compile(r"(?i)(item|example|doc|sample|record|text|comment|image)?_?(id|uuid)|uuid")


def _item_of(names: Collection[str]) -> str | None:
    """The column that names the items by its own name, where one does."""
    alike = [name for name in names if _ITEM.fullmatch(name)]
    return "item" if "item" in names else alike[0] if len(alike) == 1 else None


_ENDINGS = 3
"""So many endings, which the names of nearly all items have, are no sides or halves of one."""


def _in_items(source: Source, options: ColumnOptions) -> TasksInItems | None:
    """The table by item and task, where names of items end in the task: ID_1_any, ID_2_any."""
    if len(set(source.names)) < len(source.names):
        return None
    for column in source.names:
        if column != options.item and (not column or item_in_name(column) < 1):
            continue
        names = Names.of(source.read((), [column]), column)
        parts = [text.rpartition("_") for text in names.texts]
        endings = Counter(end for stem, _, end in parts if stem and end.isalpha())
        stems = {stem for stem, _, _ in parts}
        every = min(endings.values(), default=0) >= NEARLY_ALL * len(stems)
        few = _ENDINGS <= len(endings) <= FEW_WORDS and len(stems) >= _FEWEST // 2
        if few and every and sum(endings.values()) == len(names.codes):
            task = next(t for t in (TASK, f"{TASK}_", f"{TASK}__") if t not in source.names)
            return TasksInItems(source, column, task)
    return None


@dataclass(frozen=True)
class TasksInItems(Derived):
    """A source with a row for every item and task, which the names in one column say together."""

    inner: Source
    column: str
    task: str

    @property
    def item(self) -> str:
        """The column of what stands before the task."""
        return f"{self.column}[item]"

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns, and those of the item and of the task last."""
        return (*self.inner.names, self.item, self.task)

    @property
    def weights(self) -> Any:
        """What tells the weights of drawn labels, where they are joined to the table."""
        return getattr(self.inner, "weights", None)

    def read(self, numbers: Collection[str], texts: Collection[str]) -> Table:
        """Read some columns; item and task are taken from the names."""
        made = {self.item, self.task}
        own = [[n for n in names if n not in made] for names in (numbers, texts)]
        table = self.inner.read(own[0], list(dict.fromkeys([*own[1], self.column])))
        names = Names.of(table, self.column)
        parts = [text.rpartition("_") for text in names.texts]
        for name, at in ((self.item, 0), (self.task, 2)):
            cells = pa.DictionaryArray.from_arrays(names.codes, [part[at] for part in parts])
            table = table.with_columns({name: [pa.chunked_array([cells])]})
        return table


@dataclass(frozen=True)
class ByTask(Derived):
    """A source with a row for every item and task; all rows of a task one after another.

    `others` are of no task; `column` has the task (out of the names where `hidden`), `row` the
    item.
    """

    inner: Source
    tasks: tuple[Task, ...]
    others: tuple[str, ...]
    column: str
    row: str | None
    hidden: bool = False

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The other columns, those of all tasks, and which task it is."""
        stems = dict.fromkeys(stem for task in self.tasks for stem in task.columns)
        row = () if self.row is None else (self.row,)
        return (*row, *self.others, *stems, *([] if self.hidden else [self.column]))

    def read(self, numbers: Collection[str], texts: Collection[str]) -> Table:
        """Read some columns; what a task has not got is empty there."""

        def own(names: Collection[str]) -> list[str]:
            of_tasks = [t.columns[n] for n in names for t in self.tasks if n in t.columns]
            return list(dict.fromkeys([*(n for n in names if n in self.others), *of_tasks]))

        some = own(texts) or self.inner.names[:1] * (not own(numbers))
        table, times = self.inner.read(own(numbers), some), len(self.tasks)
        n, place, called = table.n_rows, table.place, [task.name for task in self.tasks]

        def pieces(name: str) -> list[pa.ChunkedArray]:
            if name == self.column:
                of = pa.DictionaryArray.from_arrays(np.repeat(np.arange(times), n), called)
                return [pa.chunked_array([of])]
            if name == self.row:
                return [pa.chunked_array([np.tile(np.arange(1, n + 1), times)])]
            found: list[pa.ChunkedArray] = []
            for task in self.tasks:
                column = name if name in self.others else task.columns.get(name)
                found += (
                    [pa.chunked_array([pa.nulls(n)])] if column is None else table.pieces(column)
                )
            return found

        def where(row: int) -> str:
            return f"{place(row % n)} (task {called[row // n]})"

        return Table(
            tuple(dict.fromkeys([*numbers, *texts])), pieces, n * times, where, table.notes,
            table.decimal_comma,
        )  # fmt: skip
