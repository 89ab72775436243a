"""`read_predictions`: a file, a folder or a frame to `Predictions`; and `read_reference`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np
import pyarrow as pa

from fewlabels.data.arrays import of_arrays
from fewlabels.data.assemble import assemble
from fewlabels.data.binary import read_npz
from fewlabels.data.classes import Classes
from fewlabels.data.delimited import NO_HEADER
from fewlabels.data.evidence import ColumnEvidence
from fewlabels.data.joined import (
    DUPLICATES,
    LABELS_AS,
    Duplicates,
    LabelsAs,
    LongVotes,
    NoKeyError,
    SeveralLabelsError,
    WithLabels,
    differs,
    item_keys,
    labels_as_votes,
    open_votes,
    read_labels,
    read_votes,
)
from fewlabels.data.keys import names_of, repeats, with_item
from fewlabels.data.logs.columns import called
from fewlabels.data.options import ColumnArguments, ColumnOptions, column_options
from fewlabels.data.profiles import truth_in_name
from fewlabels.data.proposals import Proposals
from fewlabels.data.recognise import recognise
from fewlabels.data.repeats import repeated_items
from fewlabels.data.roles import Roles, assign_roles, split_native
from fewlabels.data.shapes import shaped, telling
from fewlabels.data.sources import LOG, chosen, locate, open_beside, open_source, stem_of
from fewlabels.data.table import NOTHING, Held, Place, Source, Table, fractions_in, naming_file
from fewlabels.data.tasks import Found, find_tasks, of_items, recognise_tasks
from fewlabels.errors import InputError, UsageError, listed, one_line, quoted
from fewlabels.kernels.arrays import Ints
from fewlabels.predictions import Predictions


def read_predictions(
    source: Any = None,
    *,
    votes: Any = None,
    duplicates: Duplicates = "refuse",
    labels: Any = None,
    labels_as: LabelsAs | None = None,
    join: Any = None,
    where: str | None = None,
    query: str | None = None,
    **columns: Unpack[ColumnArguments],
) -> Predictions:
    """Read predictions and labels from files, a database, or a frame.

    The native columns are `label`, `p__<model>__<class>` (probability), `y__<model>` (hard
    prediction), `s__<model>` (score), `h__<class>` (how many annotators chose the class), `domain`
    and `weight`; every other column is a group. A label is unknown where it is null, empty, NaN
    or -1.

    Long votes, one row per vote with the columns `item`, `annotator`, `label` and perhaps `domain`,
    are given by `votes`, beside `source` or alone. Every annotator is then a classifier with hard
    predictions. The items are those of `source`, which needs a column of items, and after them
    those that have votes alone; an item of two domains is two items. Items and annotators may be
    text or numbers: 1 and "1" are one.

    Parameters
    ----------
    source
        Path of a CSV (also .tsv, also compressed by gzip), Parquet or NPZ file, or of a folder of
        such files of one kind (its folders `name=value` are columns), or a pattern of paths; on
        this machine or in an object store (`s3://bucket/folder`); or a frame in memory: pandas,
        polars, pyarrow; or arrays of what classifiers gave. The keys of an NPZ file are the
        arguments of `Predictions`, and `groups__<name>`; pickles are never opened. Or a table of a
        database (`sqlite:///file.db#table`), or, with `query`, an open connection.
    votes
        Long votes: a path (CSV or Parquet) or a frame. A row without a label is no vote.
    duplicates
        What several votes of an annotator on an item are: an error ("refuse"), votes that count
        each ("keep"; metrics go by the first), or changes of mind ("last").
    labels
        Labels kept apart, joined by the item to a table or to long votes: a path or frame with a
        row per label, or with a column per task or class; a record that `fewlabels label` wrote; or
        a list of several.
    labels_as
        What labels of several annotators are: counts of annotators ("counts"), or votes, so that
        every annotator is a classifier ("votes"). None: an item has one label, and two that differ
        are an error.
    join
        Files of further classifiers, joined to `source` by the item, or by the order of the rows
        where nothing names the items: paths, patterns and folders, or a mapping of names to paths
        or frames. Classifiers whose columns do not name them are called by their files. Columns of
        0 and 1 that others have with fractions are labels.
    label, domain, weight
        Columns of that role, where they have other names. "A,B,C" as `label` are columns of 0 and
        1, one per class.
    stratum
        Column of the strata, where the items to label were drawn at random within them: labels
        count by their stratum's share of all items (`Predictions.stratum`).
    cluster
        Column, or columns, whose values say which rows belong together: the ratings of a case, the
        frames of a video. Several are crossed; a row without a value is a cluster of its own.
    models
        Classifier -> its probability columns, one per class, matched to the classes by the ends of
        their names, else by the order of `classes`. One column is the probability of the positive
        of two classes, unless its name ends in the other; or it holds a vector or an object of
        them in each cell, by name or else in the order of the classes.
    hard, scores
        Classifier -> its column of hard predictions (any kind of values), or of scores (larger is
        more positive).
    logits
        Classifier -> its columns of logits or log-probabilities, one per class, which a softmax
        turns into probabilities; one column is the log-odds of the positive of two classes.
    confidence
        Classifier -> its column of how probable its own hard prediction is to it, for two classes:
        what a text-classification pipeline calls the score of a label.
    columns
        TOML file that says the same: keys label, item, domain, cluster, weight, classes, positive,
        no_label, annotator, answer, and the tables [models], [hard], [scores], [confidence],
        [votes], [same]; or a mapping with these keys.
    classes
        The classes in order. Default: those of the p and h columns, else those that occur; numbers
        by value, then the rest by alphabet.
    positive
        The positive one of two classes. Default: that of a known word (1, yes, true, positive,
        pass, fraud, spam, toxic ...), else the last.
    no_label
        Further texts that stand for an unknown label, beside N/A, None, unknown, ?, TODO and such.
    same
        Text -> the class it means, where the same is not written the same way.
    keep
        Which other columns to keep as groups; None = all, () = none.
    item
        Column of the item in `source` and, where they have it, in the votes; or several ("A,B")
        that name it together.
    annotator, answer
        Columns of the annotator and of the class voted for, in long votes.
    vote_columns
        item, annotator, label, domain -> the column of the votes by that role.
    where, query
        Which rows of `source`, as in `fewlabels.source`.
    task
        Column that says of which task a row is, where each item has a row per task.
    tasks
        Task -> its columns, of labels and of predictions, where a table has several tasks (tags of
        a text, criteria of a rubric); the other arguments then name what is left of their names
        without the task. None: those that the names show. The items are then a row per item and
        task, in clusters by item; see `Predictions.task`.

    Raises
    ------
    InputError
        If the data cannot be used; the message says what, where, and how to mend it.
    UsageError
        If an argument is not what is said above.

    Examples
    --------
    >>> import pyarrow, fewlabels as fl
    >>> table = pyarrow.table({"label": ["no", None], "p__net__yes": [0.2, 0.9]})
    >>> fl.read_predictions(table).classes
    ('no', 'yes')
    """
    options = column_options(**columns)
    source = chosen(source, where, query)
    if hasattr(source, "__array__") and not hasattr(source, "columns"):
        return _of_classifiers(source, options, votes, labels)
    if isinstance(source, Mapping) and source:
        # What classifiers said, and not the columns of a table: a value has a column per class, or
        # all are arrays of numpy with names that are no native ones; a mapping of lists is a table.
        wide = any(hasattr(v, "columns") or getattr(v, "ndim", 1) == 2 for v in source.values())
        arrays = wide or all(isinstance(v, np.ndarray) for v in source.values())
        if arrays and not any(map(split_native, map(str, source))):
            return _of_classifiers(source, options, votes, labels)
    beside = Beside(votes, duplicates, labels, labels_as, join)._asdict()
    try:
        items = read_as_said(source, options, **beside)
    except InputError as error:
        raise Proposals(source, options, read_as_said, beside).tried(error) from None
    if any("--" in line for line in (*items.reading, *items.notes)):
        lines = Proposals(source, options, read_as_said, beside).lines
        return items.noting(lines(items.notes), lines(items.reading))
    return items


class Beside(NamedTuple):
    """What is read beside a source, as `read_predictions` takes it."""

    votes: Any = None
    duplicates: Duplicates = "refuse"
    labels: Any = None
    labels_as: LabelsAs | None = None
    join: Any = None

    def check(self, source: Any) -> None:
        """Refuse what does not go together."""
        if source is None and self.votes is None:
            raise UsageError(
                "`source` must be a path or a frame in memory (pandas, polars, pyarrow), unless "
                "there are `votes`; got None"
            )
        for name, known in (("duplicates", DUPLICATES), ("labels_as", (None, *LABELS_AS))):
            if (value := getattr(self, name)) not in known:
                names = ", ".join(filter(None, known))
                raise UsageError(f"`{name}` must be one of {names}; got {quoted(value)}")
        as_votes = self.labels_as == "votes"
        if self.labels_as is not None and self.labels is None:
            raise UsageError("--labels-as says what labels kept apart are; add --labels")
        if as_votes and self.votes is not None:
            raise UsageError("--labels-as votes and --votes both give votes; join them in one file")
        if self.join is not None and source is None:
            raise UsageError("--join adds files to a table, and there are votes alone; name a FILE")


def read_as_said(source: Any, options: ColumnOptions, **beside: Any) -> Predictions:
    """The predictions of a source, by these options; messages may propose what is refused too."""
    opened = open_input(source, options, Beside(**beside))
    with naming_file(opened.name):
        if opened.arrays is not None:
            return Predictions(**read_npz(opened.arrays, options))
        long, source = opened.votes, opened.table
        names = () if source is None else source.names
        with telling(source):
            roles = assign_roles(names, opened.options, None if long is None else long.roles)
        table = NOTHING if source is None else source.read(roles.numeric, roles.text)
        arguments, table_classes = opened.arguments(table, roles, named=options.names_classifiers)
        keys = [] if long is None else item_keys(table, roles, long)
        place, files = table.place, table.files
        del table  # gone before `Predictions` makes its own copy
    if long is not None:
        with naming_file(long.name):
            arguments = long.join(arguments, keys, table_classes, options.keep)
    pa.default_memory_pool().release_unused()
    with naming_file(opened.name), naming_rows(roles, place):
        items = Predictions(**arguments, reading=opened.lines)
    return with_gaps(items, files) if len(files) > 1 else items


_MANY = 0.01
"""Share of a file's rows from which missing predictions are many."""


def gaps_of_files(
    files: Sequence[str], rows: Ints, given: Ints, models: Sequence[str]
) -> tuple[str, ...]:
    """Warn of files with few predictions, `given` (F, M), where most have all of `rows` (F,)."""
    missing = rows[:, None] - given
    there = rows > 0
    odd = (missing > _MANY * rows[:, None]) & there[:, None]
    odd &= 2 * (missing[there] == 0).sum(axis=0) >= max(there.sum(), 2)
    notes = []
    for j in np.flatnonzero(odd.any(axis=0)).tolist():
        which = np.flatnonzero(odd[:, j]).tolist()
        where = [f"{one_line(files[i])} ({missing[i, j]:,} of {rows[i]:,} rows)" for i in which]
        notes.append(
            f"predictions of {quoted(models[j])} are missing in {listed(where, 3)}, and in "
            f"{(missing[there, j] == 0).sum():,} of the {there.sum():,} files none are: see "
            "whether those files are whole"
        )
    return tuple(notes)


def with_gaps(predictions: Predictions, files: Sequence[tuple[str, int]]) -> Predictions:
    """The predictions with a note on such gaps; `files` are names and rows, in their order."""
    rows = np.array([n for _, n in files])
    says = predictions.has_hard | predictions.provides("ranking")
    starts = np.cumsum(rows) - rows
    given = np.array(
        [says[start : start + n].sum(axis=0) for start, n in zip(starts, rows, strict=True)]
    )
    found = gaps_of_files([name for name, _ in files], rows, given, predictions.models)
    return predictions.noting((*predictions.notes, *found)) if found else predictions


_OF_WIDE = (("models", "model"), ("hard", "hard"), ("scores", "score"), ("weight", "weight"))
"""Options (field, flag) that speak of the wide table."""

_LABEL_KEYS = ("label", "labels", "y", "y_true", "gold", "target")
"""Keys under which a mapping of classifiers may hold the known labels."""


def with_labels_beside(source: Any, y_true: Any, columns: Any, positive: Any) -> Predictions:
    """The predictions of arrays or of a frame, with the labels beside them."""
    if isinstance(source, Predictions):
        raise UsageError(
            "`y_true` goes with arrays and frames, and these are `Predictions`; give them labels "
            "by predictions.with_labels(y_true)"
        )
    if isinstance(source, str | Path) or source is None:
        raise UsageError(
            "`y_true` goes with arrays and frames; for labels beside a file pass "
            "fl.read_predictions(FILE, labels=FILE)"
        )
    options = column_options(columns=columns, positive=positive)
    names = getattr(source, "column_names", None) or getattr(source, "columns", source)
    table = isinstance(source, Mapping) or names is not source
    if not table or not (options.names_classifiers or any(map(split_native, map(str, names)))):
        return _of_classifiers(source, options, None, None, y_true)
    if (label := options.label or "label") in names:
        raise UsageError(f"`y_true` and the column {quoted(label)} both give labels; leave out one")
    return read_predictions(
        {**{name: source[name] for name in names}, label: y_true}, columns=options.to_dict()
    )


def _of_classifiers(
    source: Any, options: ColumnOptions, votes: Any, labels: Any, y_true: Any = None
) -> Predictions:
    """`Predictions` of an array, or of a mapping, name -> what that classifier said."""
    if votes is not None or labels is not None or options.names_classifiers or options.label:
        raise UsageError(
            "arrays say by their names what everything is; pass them to "
            "fewlabels.Predictions with `labels`, or a table with columns"
        )
    keys = []
    if isinstance(source, Mapping):
        keys = [name for name in source if name in _LABEL_KEYS]
        if len(keys) + (y_true is not None) > 1:
            named = [*map(quoted, keys), *(["`y_true`"] if y_true is not None else [])]
            raise UsageError(f"{listed(named)} may each hold the labels; leave out the rest")
        y_true = source[keys[0]] if keys else y_true
        source = {name: value for name, value in source.items() if name not in keys}
    return of_arrays(source, y_true, options.classes, options.positive)


@dataclass(frozen=True)
class Opened:
    """What there is to read: a table, long votes or files of arrays, and what was recognised."""

    name: str | None
    options: ColumnOptions
    table: Source | None = None
    votes: LongVotes | None = None
    arrays: tuple[Path, ...] | None = None
    lines: tuple[str, ...] = ()
    task: str | None = None
    said: ColumnOptions | None = None
    evidence: tuple[ColumnEvidence, ...] = ()

    def arguments(
        self, table: Table, roles: Roles, *, named: bool, wrong: list[InputError] | None = None
    ) -> tuple[dict[str, Any], Classes]:
        """Arguments of `Predictions` from the table alone, and the classes; see `assemble`."""
        voted = None if self.votes is None else self.votes.class_texts()
        source, notes = self.table, tuple[str, ...]()
        weights = getattr(source, "weights", None)
        drawn = None if weights is None else weights(table)
        arguments, classes = assemble(table, roles, self.options, voted, wrong)
        some = source is not None and (roles.groups or roles.ignored or roles.item)
        if source is not None and some and self.votes is None and not wrong:
            notes = repeated_items(*of_items(source, roles), task=self.task, named=named)
        more = {"label_weight": drawn, "task": self.task, "notes": (*arguments["notes"], *notes)}
        return arguments | more, classes


def open_input(source: Any, options: ColumnOptions, beside: Beside) -> Opened:
    """Open a source, and what is joined to it, and recognise its columns."""
    beside.check(source)
    votes, duplicates, labels, labels_as, join = beside
    located = locate(source)
    long: LongVotes | None = None
    if votes is not None:
        of_votes, said = open_votes(votes, options)
        with naming_file(of_votes.name or "votes"):
            long = read_votes(of_votes, said, duplicates, alone=source is None)
            if source is None and labels is not None and labels_as is None:
                domain = {} if long.roles.domain is None else {"domain": long.roles.domain}
                by = replace(options, item=long.roles.item, votes={**options.votes, **domain})
                long = long.with_labels(read_labels(labels, of_votes, by))
    if source is None:
        given = [flag for name, flag in _OF_WIDE if getattr(options, name)]
        if given:
            raise UsageError(
                f"--{given[0]} names a column of the file beside the votes, and there is none; "
                "columns of the votes are named by --item, --annotator, --answer and --label "
                "(known labels)"
            )
        if labels_as is not None:
            raise UsageError(
                "--labels-as adds annotators to a file of predictions, and there are votes alone; "
                "give the votes beside one (FILE --votes VOTES), or leave it out"
            )
        return Opened(None if long is None else long.name, options, votes=long)
    name = None if located is None else located.name
    with naming_file(name):
        if located is not None and located.kind == "NPZ":
            if long is not None or labels is not None or join is not None:
                raise InputError(
                    "holds arrays, whose items have no names to join anything by; save a "
                    "table with a column of items, or add them as the arrays `votes` and `labels`"
                )
            return Opened(name, options, arrays=located.files)
        unnamed: tuple[str, ...] = ()
        if labels is join is None:
            opened = open_source(source, located)
        else:
            opened, read_so = open_beside(source, located)
            if read_so is not located:
                source = f"{source}#{NO_HEADER}"
                columns = listed(opened.names, 3)
                unnamed = (f"{quoted(name)} is read without a header: columns {columns}",)
        if isinstance(opened, Held) and located is not None and located.kind == LOG:
            opened = called(
                opened, options.label, {*options.by_class, *options.hard, *options.scores}
            )
        if located is not None and len(located.files) > 1:
            from fewlabels.data.joined_files import refuse_pooled

            refuse_pooled(getattr(opened, "parts", ()), located.files, located.name)
        table, options = shaped(opened, options)
        if join is not None:
            from fewlabels.data.joined_files import joined_files

            apart = labels is not None and labels_as is None
            table, options = joined_files(table, join, options, source, labeled=apart)
        if labels is not None:
            found = _with_labels(source, table, name, options, long, beside)
            if isinstance(found, Opened):
                return found
            table, options = found
        tasks = Found(table, options)
        if long is None and (located is None or located.kind != LOG):
            tasks = find_tasks(table, options, labels_apart=isinstance(table, WithLabels))
        elif options.tasks or options.task is not None:
            raise UsageError("--task is of a table with labels and predictions; leave out --votes")
        of_table, table = getattr(table, "lines", ()), tasks.source
        reading = recognise_tasks(tasks, joined=None if long is None else long.labels.counts())
    if reading.votes:
        with naming_file(name or "votes"):
            long = read_votes(table, reading.options, duplicates, alone=True)
        return Opened(
            name, reading.options, votes=long, lines=reading.lines, evidence=reading.evidence,
        )  # fmt: skip
    if long is None and duplicates != "refuse":
        raise UsageError("--duplicates is about long votes, and there are none; add --votes")
    lines = (*unnamed, *of_table, *tasks.lines, *reading.lines)
    return Opened(
        name, reading.options, table, long, lines=lines, task=tasks.column,
        said=tasks.said(reading.options), evidence=reading.evidence,
    )  # fmt: skip


def _with_labels(
    source: Any, table: Source, name: str | None, options: ColumnOptions, long: LongVotes | None,
    beside: Beside,
) -> Opened | tuple[Source, ColumnOptions]:  # fmt: skip
    """A table with labels that are kept apart, or all that there is to read with them."""
    _, duplicates, labels, labels_as, _ = beside
    one = labels[0] if isinstance(labels, list | tuple) and len(labels) == 1 else labels
    single = isinstance(one, str | Path) or hasattr(one, "columns")
    try:
        if options.tasks and single and labels_as is None:
            raise SeveralLabelsError("--task says columns of labels")
        kept = read_labels(labels, table, options, several=labels_as is not None)
    except SeveralLabelsError as error:
        if not single or labels_as is not None:
            raise
        # Labels of several tasks, or for each class, or by the order of the rows: columns beside
        # the others.
        from fewlabels.data.joined_files import TRUTH, joined_files

        join = {"labels": one} if not isinstance(one, str | Path) else one
        joined, said = joined_files(table, join, options, source, truth=True)
        new = [n for n in joined.names if n not in table.names and truth_in_name(n) == 3]
        sure = any(isinstance(error, NoKeyError) or n.startswith(TRUTH) for n in new)
        if said.label is None and not (sure or find_tasks(joined, said).tasks):
            raise
        return joined, said
    item = kept.item
    table = with_item(table, item)
    if long is None and labels_as is None:
        items = names_of(table, (item,))[item]
        codes = items.codes[items.codes >= 0]
        labeled = {one.item for one in kept.labels}
        if any(items.texts[code] in labeled for code in codes[repeats(codes)].tolist()):
            of_table = options.label if options.label in table.names else None
            votes = recognise(table, replace(options, label=of_table))
            if votes.votes:
                long = read_votes(table, votes.options, duplicates, alone=True)
                long = long.with_labels(kept)
                line = f"labels: {kept.name}, by item {quoted(item)}"
                return Opened(name, votes.options, votes=long, lines=(*votes.lines, line))
    label = options.label if options.label in table.names and options.label else "label"
    judged = truth_in_name(label) < 2 and differs(table, item, label, kept)
    if label in options.of_classifiers or judged:
        # Both files have it: what people say of a criterion, and what this judge says.
        if label not in options.of_classifiers:
            judge = "judge" if name is None else stem_of(name)
            if fractions_in(names_of(table, (label,))[label].texts):
                options = replace(options, models={**options.models, judge: (label,)})
            else:
                options = replace(options, hard={**options.hard, judge: label})
        label = "label" if "label" not in table.names else f"{label} of {kept.name}"
    options = replace(options, item=item, label=label)
    if labels_as is None:
        return WithLabels(table, kept, item, label), options
    # Recognised by what the labels are; then the labels are votes, or counts.
    known = WithLabels(table, kept.first_of_each, item, label)
    reading = recognise(known, options, joined=None if long is None else long.labels.counts())
    options, lines = reading.options, (*known.lines, *reading.lines)
    if not known.label_is_own:
        options = replace(options, label=None)
    if labels_as == "votes":
        return Opened(name, options, table, labels_as_votes(kept, duplicates), lines=lines)
    return Opened(name, options, WithLabels(table, kept, item, None), long, lines=lines)


def column_names(source: Any) -> tuple[str, ...]:
    """The columns of a file, folder or frame, without reading it; none for NPZ."""
    located = locate(source)
    with naming_file(None if located is None else located.name):
        if located is not None and located.kind == "NPZ":
            return ()
        return shaped(open_source(source, located), ColumnOptions())[0].names


@contextmanager
def naming_rows(roles: Roles, place: Place) -> Iterator[None]:
    """Let messages about items of arrays speak of rows and columns of the file."""
    try:
        yield
    except InputError as error:
        message = re.sub(r"item (\d+) \(from 0\)", lambda m: place(int(m[1])), str(error))
        message = re.sub(
            r"at \((\d+),(?: (\d+).*?)?\) \(counted from 0\)",
            lambda m: f"in {place(int(m[1]))}",
            message,
        )
        for model in roles.models:
            who = f"classifier {model!r}"
            columns = listed(map(quoted, roles.columns_of(model)), 3)
            message = message.replace(who, f"{who} (column {columns})")
        raise InputError(message) from None


def read_reference(
    source: Any, positive: Any = None, keep: Sequence[str] = (), **columns: Any
) -> Predictions:
    """Read reference data by the column options of other data, as far as its columns have them."""
    # A last month's file may lack a classifier, the weight or the domain that this month's has.
    options = column_options(**columns)
    if options == ColumnOptions():
        return read_predictions(source, positive=positive, keep=keep)
    names = column_names(source)

    # The label stays, for the message that it is not there, and so does a part of a classifier.
    several = options.by_class.values()
    partly = {c for columns in several if not {*names}.isdisjoint(columns) for c in columns}
    there = {*names, *partly, options.label}
    kept = options.renamed(lambda column: column if column in there else None)
    return read_predictions(source, columns=kept.to_dict(), positive=positive, keep=keep)
