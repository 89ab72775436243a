"""Several tasks in one table: tags of a text, criteria of a rubric, findings of an image.

Every task has a label of its own and its own columns of every classifier, whose names differ from
those of the other tasks in the words of the task alone: true_toxic, pred_toxic, true_insult,
pred_insult. Without those words they are the columns of a longer table, with a row for every item
and task (`ByTask`): true, pred, and which task it is. That table is recognised, read and diagnosed
as any other; the rows of one item are a cluster.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fewlabels.checks.class_words import folded, same_answer
from fewlabels.data.options import ColumnOptions
from fewlabels.data.profiles import (
    Profile,
    is_role,
    item_in_name,
    name_words,
    names_truth,
    predicts_in_name,
    profile,
    truth_in_name,
)
from fewlabels.data.roles import split_native
from fewlabels.data.table import Source, Table, in_order
from fewlabels.errors import InputError, UsageError, did_you_mean, listed, quoted
from fewlabels.kernels.arrays import Floats

TASK, ROW = "task", "row"
"""Names of the columns of tasks, and of items that have none, where the table has no such column."""

MOST_WORDS, MOST_COLUMNS = 10, 2_000
"""Of tables with more columns, and names with more words, tasks have to be said."""

_FEWEST, _SHOWN = 20, 3.0
"""Labels, and standard errors, from which a prediction shows that it is of its own task."""

_KINDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")
_EDGES = " _-.:/|"

Words = tuple[str, ...]


class Task(NamedTuple):
    """A task by its name, and its columns, each under its name without the words of the task."""

    name: str
    columns: Mapping[str, str]


@dataclass(frozen=True)
class Found:
    """What the columns of a table are of: `source` is the table to recognise and to read.

    `tasks` are several tasks, whose rows `source` has one below the other, in groups by the column
    `column`; empty where there is one. `lines` say so.
    """

    source: Source
    options: ColumnOptions
    tasks: tuple[Task, ...] = ()
    column: str | None = None
    lines: tuple[str, ...] = ()

    def said(self, options: ColumnOptions) -> ColumnOptions:
        """The options that read the table as it stands in this way."""
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
        out = {}
        for task in self.tasks:
            own = {name: name for name in self.source.names} | dict(task.columns)
            absent = {n for other in self.tasks for n in other.columns} - {*task.columns}

            def there(mapped: Mapping[str, Any], absent: Collection[str] = absent) -> Any:
                held = {m: (c,) if isinstance(c, str) else c for m, c in mapped.items()}
                return {m: mapped[m] for m, c in held.items() if not absent & {*c}}

            def renamed(mapped: Mapping[str, str], own: Mapping[str, str] = own) -> dict[str, str]:
                return {m: own[c] for m, c in mapped.items()}

            added = {self.column, None if ROW in task.columns else ROW}
            out[task.name] = replace(
                options,
                tasks={},
                label=None if options.label is None else own[options.label],
                models={m: tuple(own[c] for c in cs) for m, cs in there(options.models).items()},
                hard=renamed(there(options.hard)),
                scores=renamed(there(options.scores)),
                confidence=renamed(there(options.confidence)),
                item=None if options.item in added else options.item,
                cluster=tuple(c for c in options.cluster if c != options.item and c not in added),
                keep=None if options.keep is None else tuple(k for k in options.keep if k not in added),
            )
        return out


class SeveralTasksError(InputError):
    """A table can be read as several tasks or as one; `readings` are options of each."""


def find_tasks(source: Source, options: ColumnOptions) -> Found:
    """The tasks of a table: those that are said, or that its names and values show.

    Columns that the caller gives a role decide for the task that they are of.

    Raises
    ------
    InputError
        Where names and values leave open whether there are several tasks, or their classes differ.
    """
    names = [name for name in source.names if name]
    if options.tasks:
        return _reshaped(source, options, _said(options.tasks, names))
    if "label" in names and any(split_native(name) is not None for name in names):
        return Found(source, options)
    if len(names) > MOST_COLUMNS or len(set(names)) < len(names):
        return Found(source, options)
    named = _by_names(names)
    if named is None:
        return Found(source, options)
    claimed = {*options.of_classifiers, options.label} & {*names}
    whose = {task.name for task in named.tasks for c in task.columns.values() if c in claimed}
    if whose and (len(whose) > 1 or claimed - {c for t in named.tasks for c in t.columns.values()}):
        return Found(source, options)  # said in full, whatever the names are like
    table = source.read((), named.columns)
    if not table.n_rows:
        return Found(source, options)
    held = {name: profile(table, name, options) for name in named.columns}
    if not _are_tasks(named, held, options):
        return Found(source, options)
    tasks = named.tasks
    if len(whose) == 1 or len(tasks) == 1:
        chosen = next(task for task in tasks if len(tasks) == 1 or task.name in whose)
        hidden = [c for c in named.columns if c not in chosen.columns.values()]
        line = (
            f"task {quoted(chosen.name)} alone: the columns of other tasks "
            f"({listed(map(quoted, hidden), 4)}) are not used"
        )
        return Found(_Without(source, frozenset(hidden)), options, lines=(line,) * bool(hidden))
    _refuse_other_classes(named, held)
    found = _reshaped(source, options, tasks)
    return replace(found, lines=(*found.lines, *_left(named)))


def _left(named: _Named) -> Iterator[str]:
    if named.left:
        yield (
            f"not used: {listed(map(quoted, named.left), 4)} (of a task without labels, or without "
            "predictions)"
        )


def _said(said: Mapping[str, Sequence[str]], names: Sequence[str]) -> tuple[Task, ...]:
    """Tasks by their columns, which are matched by what their names have besides the task.

    Where names do not have the task, columns are matched by their order.
    """
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
        task: {_stem(column, _words_of(task)): column for column in columns}
        for task, columns in said.items()
    }
    whole = all(None not in found for found in by_name.values())
    if whole and all(len(found) == len(said[task]) for task, found in by_name.items()):
        return tuple(Task(t, {_stem_name(s): c for s, c in f.items()}) for t, f in by_name.items())  # type: ignore[arg-type]
    sizes = {len(columns) for columns in said.values()}
    if len(sizes) > 1:
        raise UsageError(
            "the columns of --task must have the names of their tasks in theirs, or be as many and "
            "in the same order for every task"
        )
    stems: list[str] = []
    for together in zip(*said.values(), strict=True):
        words = [_split(column) for column in together]
        common = [w for w in words[0] if all(w.casefold() in map(str.casefold, o) for o in words)]
        stem = "_".join(common) or ("label" if not stems else together[0])
        stems.append(stem if stem not in stems else f"{stem}_{len(stems) + 1}")
    return tuple(Task(t, dict(zip(stems, columns, strict=True))) for t, columns in said.items())


# Names ------------------------------------------------------------------------------------------


def _spans(name: str) -> list[re.Match[str]]:
    return list(_KINDS.finditer(name))


def _split(name: str) -> list[str]:
    return [match[0] for match in _spans(name)]


def _words_of(name: str) -> Words:
    """The words of a task, folded.

    Examples
    --------
    >>> _words_of("severeToxic"), _words_of("Pleural Effusion")
    (('severe', 'toxic'), ('pleural', 'effusion'))
    """
    return tuple(word.casefold() for word in _split(name))


def _place(words: Words, task: Words) -> int | None:
    """Where the words of a task stand among others, the last place of several."""
    starts = range(len(words) - len(task), -1, -1)
    return next((i for i in starts if words[i : i + len(task)] == task), None)


class _Stem(NamedTuple):
    """What stands before and behind the words of a task in the name of a column."""

    before: str
    behind: str

    @property
    def key(self) -> tuple[str, str]:
        return self.before.casefold(), self.behind.casefold()


def _cut(name: str, start: int, stop: int) -> _Stem:
    """The name without the words from `start` to `stop`."""
    spans = _spans(name)
    before, behind = name[: spans[start].start()], name[spans[stop - 1].end() :]
    return _Stem(before.rstrip(_EDGES), behind.lstrip(_EDGES))


def _stem(name: str, task: Words) -> _Stem | None:
    """What is left of a name without the words of a task; None where it has not got them."""
    at = _place(_words_of(name), task) if task else None
    return None if at is None else _cut(name, at, at + len(task))


def _stem_name(stem: _Stem) -> str:
    """The name of the column of all tasks.

    Examples
    --------
    >>> _stem_name(_Stem("pred", "bert")), _stem_name(_Stem("p__net", "")), _stem_name(_Stem("", ""))
    ('pred_bert', 'prob_net', 'label')
    """
    joined = "_".join(part for part in stem if part) or "label"
    if joined.startswith("p__") and split_native(joined) is None:
        return f"prob_{joined.removeprefix('p__')}"
    return joined


class _Named(NamedTuple):
    """Tasks by names alone: the stem of the labels, and columns without a place among them.

    `sure` says that the names tell: labels have a word that only they have, predictions one of
    predictions, and tasks are words and no numbers, letters or people. `labels` are all columns
    that may hold labels of a task.
    """

    tasks: tuple[Task, ...]
    label: str
    left: tuple[str, ...]
    sure: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that are of a task."""
        return (*(c for task in self.tasks for c in task.columns.values()), *self.left)

    def pairs(self) -> list[tuple[str, str, list[str]]]:
        """Task, column of its labels, and those of its predictions."""
        return [
            (t.name, t.columns[self.label], [c for s, c in t.columns.items() if s != self.label])
            for t in self.tasks
        ]


def _by_names(names: Sequence[str]) -> _Named | None:
    """The tasks that names show: words that the label's and a classifier's columns share."""
    stems: dict[tuple[str, str], dict[Words, tuple[str, _Stem]]] = {}
    for name in names:
        words = _words_of(name)
        if len(words) > MOST_WORDS:
            continue
        for i in range(len(words)):
            for j in range(i + 1, len(words) + 1):
                stem = _cut(name, i, j)
                stems.setdefault(stem.key, {}).setdefault(words[i:j], (name, stem))
    kinds = {key: _kind(next(iter(of.values()))[1]) for key, of in stems.items()}
    best: tuple[Any, ...] | None = None
    for label, of in stems.items():
        if kinds[label] not in ("truth", "bare"):
            continue
        own = {words for words in of if not _says_role(words)}
        if len(own) < 2:
            continue
        shared: set[Words] = set()
        predicted = 0
        for other, theirs in stems.items():
            if other == label or kinds[other] in ("truth", "bare", "other"):
                continue
            both = own & {*theirs}
            if kinds[label] == "bare" and len(both) < 2:
                continue
            one = len(both) == 1 and kinds[label] == "truth" and not (own - both) & {*theirs}
            if len(both) > 1 or one:
                shared |= both
                predicted += len(both)
        if not shared or (len(shared) == 1 and kinds[label] == "bare"):
            continue
        rank = (len(shared) > 1, kinds[label] == "truth", len(shared), predicted, -len(str(shared)))
        if best is None or rank > best[0]:
            best = (rank, label, shared, own)
    if best is None:
        return None
    _, label, shared, own = best
    return _placed(names, stems[label], shared, own, bare=kinds[label] == "bare")


def _placed(
    names: Sequence[str], labels: Mapping[Words, tuple[str, _Stem]], shared: Collection[Words],
    own: Collection[Words], *, bare: bool,
) -> _Named | None:  # fmt: skip
    """Every column in its place, given the words of the tasks."""
    of_labels = {labels[words][0] for words in shared}
    columns: dict[Words, dict[str, str]] = {words: {} for words in shared}
    stems: dict[str, list[tuple[Words, str]]] = {}
    label_name = _stem_name(labels[next(iter(shared))][1])
    longest = sorted(shared, key=lambda words: (-len(words), words))
    for name in names:
        words = _words_of(name)
        task = next((t for t in longest if _place(words, t) is not None), None)
        if task is None or (bare and words == task and name not in of_labels):
            continue
        stem = _stem(name, task)
        assert stem is not None
        stems.setdefault(_stem_name(stem).casefold(), []).append((task, name))
    left = [labels[words][0] for words in own - {*shared} if not bare]
    for key, members in stems.items():
        stem = _stem(members[0][1], members[0][0])
        assert stem is not None
        tasks = {task for task, _ in members}
        if len(tasks) < len(members):
            continue  # two columns of one task, which nothing tells apart
        alone = len(tasks) == 1 and len(shared) > 1 and not predicts_in_name(name_words(key))
        if not alone:
            for task, name in members:
                columns[task][_stem_name(stem)] = name
    # Predictions of a task without labels: of a stem that other tasks have.
    taken = {c for of in columns.values() for c in of.values()}
    known = {s.casefold() for of in columns.values() for s in of} - {label_name.casefold()}
    for name in names if not bare else ():
        words = _words_of(name)
        spans = [(i, j) for i in range(len(words)) for j in range(i + 1, len(words) + 1)]
        cut = {_stem_name(_cut(name, i, j)).casefold() for i, j in spans if name not in taken}
        if cut & known and name not in left and not _says_role(words):
            left.append(name)
    shown = {words: labels[words][0] for words in shared}
    order = sorted(shared, key=lambda words: names.index(shown[words]))
    tasks = tuple(Task(_task_name(shown[words], words), columns[words]) for words in order)
    if any(label_name not in task.columns or len(task.columns) < 2 for task in tasks):
        return None
    weak = all(len("".join(words)) < 2 or "".join(words).isdigit() for words in shared)
    weak |= any(predicts_in_name(words) or item_in_name("_".join(words)) == 2 for words in shared)
    return _Named(tasks, label_name, tuple(left), not (weak or bare))


def _task_name(column: str, words: Words) -> str:
    """The words of a task as the column has them."""
    at, spans = _place(_words_of(column), words), _spans(column)
    assert at is not None
    return column[spans[at].start() : spans[at + len(words) - 1].end()]


def _says_role(words: Words) -> bool:
    """Whether words say what a column holds, and no task."""
    return is_role("_".join(words)) or names_truth("_".join(words))


def _kind(stem: _Stem) -> str:
    """What the columns of a stem may hold by its words: truth, predictions, or something other."""
    if stem == ("", ""):
        return "bare"
    name = "_".join(part for part in stem if part)
    words = name_words(name)
    if not words or split_native(name) is not None:
        return "other"
    if truth_in_name(name) == 3 or (names_truth(name) and not predicts_in_name(words)):
        return "truth"
    if predicts_in_name(words) or name.startswith(("p__", "y__", "s__")):
        return "predictions"
    return "other"


# Values -----------------------------------------------------------------------------------------


def _are_tasks(named: _Named, held: Mapping[str, Profile], options: ColumnOptions) -> bool:
    """Whether the values go with tasks; where neither names nor values say, the table is refused."""
    pairs = named.pairs()
    labels = [held[label] for _, label, _ in pairs]
    if not all(_like_classes(p) for p in labels) or not any(p.filled for p in labels):
        return False
    predicted = [[held[c] for c in columns] for _, _, columns in pairs]
    predicted = [[p for p in own if _predicts(p, label)] for own, label in zip(predicted, labels, strict=True)]
    if not any(predicted) or _one_of_several(labels, predicted):
        return False
    if len(pairs) == 1:
        return named.sure
    shown = _own_rather_than_others(labels, predicted)
    if shown is None and named.label == "label" and not named.sure:
        # Columns named by the task alone beside those of a classifier: few labels say no more.
        return all(predicted)
    if (named.sure and (shown is None or shown > -_SHOWN)) or (shown or 0.0) > _SHOWN:
        return True
    _refuse_open(named, held, options)
    return False


def _like_classes(p: Profile) -> bool:
    return not p.filled or (p.counts is not None and len(p.counts) <= max(20, p.filled // 4))


def _predicts(p: Profile, label: Profile) -> bool:
    """Whether a column may be of a classifier of these labels: their values, or numbers."""
    if not p.filled:
        return True
    numbers = p.numbers is not None and (label.numbers is not None or len(label.counts or ()) <= 2)
    texts = list(label.counts or ())
    return numbers or all(same_answer(text, texts) for text in p.counts or ("",))


def _one_of_several(labels: Sequence[Profile], predicted: Sequence[Sequence[Profile]]) -> bool:
    """Whether labels are those of one task, a column of 0 and 1 per class, and predictions too."""

    def ones(columns: Sequence[Profile]) -> bool:
        if any(p.numbers is None for p in columns):
            return False
        total = np.sum([p.numbers for p in columns], axis=0)
        known = total[~np.isnan(total)]
        slack = 0.005 * len(columns) + 1e-6
        return len(known) > 1 and bool((np.abs(known - 1) <= slack).all())

    if not ones(labels) or min(map(len, predicted)) < 1:
        return False
    return any(ones(columns) for columns in zip(*predicted, strict=False))


def _own_rather_than_others(
    labels: Sequence[Profile], predicted: Sequence[Sequence[Profile]]
) -> float | None:
    """By how many standard errors predictions go with the labels of their own task rather.

    For every item the mean over tasks t and others u of z(prediction_t) (z(label_t) - z(label_u)),
    in standardised ranks; None on few items with both labels.
    """
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
    out, known = np.full(len(values), np.nan), ~np.isnan(values)
    if known.any():
        _, place, times = np.unique(values[known], return_inverse=True, return_counts=True)
        ranks = (np.cumsum(times) - times / 2)[place]
        out[known] = (ranks - ranks.mean()) / (ranks.std() or 1.0)
    return out


def _refuse_open(named: _Named, held: Mapping[str, Profile], options: ColumnOptions) -> None:
    """Say both readings: several tasks, or one with labels of several people."""
    pairs = named.pairs()
    several = " ".join(f"--task {shlex.quote(f'{t}={label},' + ','.join(c))}" for t, label, c in pairs)
    label = options.label or pairs[0][1]
    classifiers = [(c, held[c]) for _, _, columns in pairs for c in columns]
    one = " ".join(f"{_flag(p)} {shlex.quote(f'{c}={c}')}" for c, p in classifiers)
    raise SeveralTasksError(
        f"columns {listed((quoted(label) for _, label, _ in pairs), 4)} are labels of several "
        "tasks, or of several people, and neither names nor values tell which: say "
        f"{several} or --label {shlex.quote(label)} {one}"
    )


def _flag(p: Profile) -> str:
    if p.in_unit and not p.whole:
        return "--model"
    return "--hard" if p.counts is not None else "--score"


def _refuse_other_classes(named: _Named, held: Mapping[str, Profile]) -> None:
    """Refuse tasks whose classes differ: they cannot stand below one another."""
    classes = {label: list(held[label].counts or ()) for _, label, _ in named.pairs()}
    largest = max(classes, key=lambda label: len(classes[label]))
    for label, own in classes.items():
        if all(same_answer(text, classes[largest]) for text in own):
            continue
        shown = [f"{quoted(n)}: {listed(in_order(classes[n]), 5)}" for n in (largest, label)]
        raise SeveralTasksError(
            f"the tasks have different classes ({'; '.join(shown)}), and are estimated one at a "
            f"time: say --label {shlex.quote(largest)} or --label {shlex.quote(label)}"
        )


# The longer table -------------------------------------------------------------------------------


def _reshaped(source: Source, options: ColumnOptions, tasks: Sequence[Task]) -> Found:
    of_tasks = {column for task in tasks for column in task.columns.values()}
    others = tuple(name for name in source.names if name not in of_tasks)
    stems = list(dict.fromkeys(stem for task in tasks for stem in task.columns))
    taken = {stem: f"{stem}_of_task" for stem in stems if stem in others}
    tasks = tuple(Task(t.name, {taken.get(s, s): c for s, c in t.columns.items()}) for t in tasks)
    column, row = TASK, None
    while column in others or column in {s for t in tasks for s in t.columns}:
        column += "_"
    item = options.item or ("item" if "item" in others else None)
    if item is None:
        alike = [name for name in others if _ITEM.fullmatch(name)]
        item = alike[0] if len(alike) == 1 else None
    if item is None:
        item = row = next(n for n in (ROW, f"{ROW}_") if n not in others)
    reshaped = ByTask(source, tuple(tasks), others, column, row)
    options = replace(
        options,
        tasks={},
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


_ITEM = re.compile(r"(?i)(item|example|doc|sample|record|text|comment|image)?_?(id|uuid)|uuid")


@dataclass(frozen=True)
class ByTask:
    """A source with a row for every item and task; all rows of a task one after another.

    `others` are the columns that are of no task; `column` has the task, and `row`, where it is
    named, the number of the item.
    """

    inner: Source
    tasks: tuple[Task, ...]
    others: tuple[str, ...]
    column: str
    row: str | None

    @property
    def name(self) -> str | None:
        """What messages call it."""
        return self.inner.name

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The other columns, those of all tasks, and which task it is."""
        stems = dict.fromkeys(stem for task in self.tasks for stem in task.columns)
        row = () if self.row is None else (self.row,)
        return (*row, *self.others, *stems, self.column)

    def read(self, numbers: Collection[str], texts: Collection[str]) -> Table:
        """Read some columns; what a task has not got is empty there."""

        def own(names: Collection[str]) -> list[str]:
            of_tasks = [t.columns[n] for n in names for t in self.tasks if n in t.columns]
            return list(dict.fromkeys([*(n for n in names if n in self.others), *of_tasks]))

        table, times = self.inner.read(own(numbers), own(texts)), len(self.tasks)
        if not own([*numbers, *texts]):
            table = self.inner.read((), self.inner.names[:1])
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
                found += [pa.chunked_array([pa.nulls(n)])] if column is None else table.pieces(column)
            return found

        def where(row: int) -> str:
            return f"{place(row % n)} (task {called[row // n]})"

        return Table(
            tuple(dict.fromkeys([*numbers, *texts])), pieces, n * times, where, table.notes,
            table.decimal_comma,
        )  # fmt: skip


@dataclass(frozen=True)
class _Without:
    """A source without some of its columns."""

    inner: Source
    hidden: frozenset[str]

    @property
    def name(self) -> str | None:
        return self.inner.name

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name in self.inner.names if name not in self.hidden)

    def read(self, numbers: Collection[str], texts: Collection[str]) -> Table:
        return self.inner.read(numbers, texts)
