"""`read_predictions`: a file, a folder or a frame to `Predictions`; and `read_reference`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fewlabels.data.assemble import assemble
from fewlabels.data.binary import read_npz
from fewlabels.data.joined import (
    DUPLICATES,
    LABELS_AS,
    Duplicates,
    LabelsAs,
    LongVotes,
    WithCounts,
    WithLabels,
    differs,
    held_to,
    item_keys,
    labels_as_votes,
    one_label,
    read_labels,
    read_votes,
)
from fewlabels.data.options import ColumnOptions, column_options
from fewlabels.data.profiles import names_items, truth_in_name
from fewlabels.data.recognise import recognise
from fewlabels.data.roles import Roles, assign_roles, missing_column, repeated_items, split_native
from fewlabels.data.shapes import shaped, telling
from fewlabels.data.sources import LOG, chosen, locate, open_source, stem_of
from fewlabels.data.table import NOTHING, Place, Source, naming_file
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
    label: str | None = None,
    models: Mapping[str, str | Sequence[str]] | None = None,
    logits: Mapping[str, str | Sequence[str]] | None = None,
    hard: Mapping[str, str] | None = None,
    scores: Mapping[str, str] | None = None,
    confidence: Mapping[str, str] | None = None,
    domain: str | None = None,
    cluster: str | Sequence[str] | None = None,
    weight: str | None = None,
    columns: str | Path | Mapping[str, Any] | None = None,
    classes: Sequence[Any] | None = None,
    positive: Any = None,
    no_label: Sequence[str] | None = None,
    same: Mapping[str, Any] | None = None,
    keep: str | Sequence[str] | None = None,
    item: str | None = None,
    annotator: str | None = None,
    answer: str | None = None,
    vote_columns: Mapping[str, str] | None = None,
    where: str | None = None,
    query: str | None = None,
    task: str | None = None,
    tasks: Mapping[str, str | Sequence[str]] | None = None,
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
        polars, pyarrow. The keys of an NPZ file are the arguments of `Predictions`, and
        `groups__<name>`; pickles are never opened. Or a table of a database
        (`sqlite:///file.db#table`), or, with `query`, an open connection.
    votes
        Long votes: a path (CSV or Parquet) or a frame. A row without a label is no vote.
    duplicates
        What several votes of an annotator on an item are: an error ("refuse"), votes that count
        each ("keep"; metrics go by the first), or changes of mind ("last").
    labels
        Labels kept apart, joined by the item: a path or frame with a row per label, a record that
        `fewlabels label` wrote, or a list of several.
    labels_as
        What labels of several annotators are: counts of annotators ("counts"), or votes, so that
        every annotator is a classifier ("votes"). None: an item has one label, and two that differ
        are an error.
    join
        Files of further classifiers, joined to `source` by the item: paths, patterns and folders,
        or a mapping of names to paths or frames. Classifiers whose columns do not name them are
        called by their files.
    label, domain, weight
        Columns of that role, where they have other names. "A,B,C" as `label` are columns of 0 and
        1, one per class.
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
        Column of the item in `source` and, where they have it, in the votes.
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
    options = column_options(
        label=label, models=models, logits=logits, hard=hard, scores=scores, confidence=confidence,
        domain=domain, cluster=cluster, weight=weight, columns=columns, classes=classes,
        positive=positive, no_label=no_label, same=same, keep=keep, item=item, annotator=annotator,
        answer=answer, vote_columns=vote_columns, task=task, tasks=tasks,
    )  # fmt: skip
    source = chosen(source, where, query)
    if isinstance(source, Mapping) and source:
        # What classifiers said, and not the columns of a table: a value has a column per class, or
        # all are arrays of numpy with names that are no native ones; a mapping of lists is a table.
        native = any(split_native(str(name)) is not None for name in source)
        wide = any(hasattr(v, "columns") or getattr(v, "ndim", 1) == 2 for v in source.values())
        if not native and (wide or all(isinstance(v, np.ndarray) for v in source.values())):
            return _of_classifiers(source, options, votes, labels)
    opened = open_input(source, options, votes, duplicates, labels, labels_as, join)
    with naming_file(opened.name):
        if opened.arrays is not None:
            return Predictions(**read_npz(opened.arrays, options))
        long, source = opened.votes, opened.table
        names = () if source is None else source.names
        with telling(source):
            roles = assign_roles(names, opened.options, None if long is None else long.roles)
        table = NOTHING if source is None else source.read(roles.numeric, roles.text)
        voted = None if long is None else long.class_texts()
        drawn = source.weights(table) if isinstance(source, WithLabels) else None
        arguments, table_classes = assemble(table, roles, opened.options, voted)
        arguments["label_weight"] = drawn
        arguments["task"] = opened.task
        if source is not None and long is None:
            arguments["notes"] = (*arguments["notes"], *repeated_items(*of_items(source, roles)))
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
    """Warn of files that lack many predictions of a classifier that most files have in full.

    Missing predictions are no error, but in one file alone they may mean a damaged or half-written
    part. `rows` (F,) counts the rows of each file, `given` (F, M) those with a prediction of each
    classifier.
    """
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
    """The predictions with a note on such gaps; `files` are names and rows, in order of the rows.

    Rows behind those of the files, of items that have votes alone, belong to none.
    """
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


def _of_classifiers(
    source: Mapping[str, Any], options: ColumnOptions, votes: Any, labels: Any
) -> Predictions:
    """`Predictions` of a mapping, name -> what that classifier said, the labels among them."""
    if votes is not None or labels is not None or options.names_classifiers or options.label:
        raise UsageError(
            "a mapping of classifiers says by its names what everything is; pass its arrays to "
            "fewlabels.Predictions with `labels`, or a table with columns"
        )
    keys = [name for name in source if name in _LABEL_KEYS]
    if len(keys) > 1:
        raise UsageError(
            f"{listed(map(quoted, keys))} may each hold the labels; leave out the rest"
        )
    return Predictions(
        {name: value for name, value in source.items() if name not in keys},
        source[keys[0]] if keys else None,
        classes=options.classes,
        positive=options.positive,
    )


@dataclass(frozen=True)
class Opened:
    """What there is to read, none of it read yet but long votes and labels kept apart.

    `name` is what messages call the input, None for a frame. `table` is None where there are votes
    alone, `arrays` are the files of an NPZ. `options` say what every column is, `lines` which of
    that was recognised, and `votes_alone` that the rows of the source are votes. `task` is the
    column of tasks, where there are several, and `said` are the options as the caller would say
    them.
    """

    name: str | None
    options: ColumnOptions
    table: Source | None = None
    votes: LongVotes | None = None
    arrays: tuple[Path, ...] | None = None
    lines: tuple[str, ...] = ()
    votes_alone: bool = False
    task: str | None = None
    said: ColumnOptions | None = None


def open_input(
    source: Any,
    options: ColumnOptions,
    votes: Any,
    duplicates: Duplicates,
    labels: Any,
    labels_as: LabelsAs | None = None,
    join: Any = None,
) -> Opened:
    """Open a source, and what is joined to it, and recognise its columns."""
    if source is None and votes is None:
        raise UsageError(
            "`source` must be a path or a frame in memory (pandas, polars, pyarrow), unless there "
            "are `votes`; got None"
        )
    if duplicates not in DUPLICATES:
        raise UsageError(
            f"`duplicates` must be one of {', '.join(DUPLICATES)}; got {quoted(duplicates)}"
        )
    if labels_as not in (None, *LABELS_AS):
        raise UsageError(
            f"`labels_as` must be one of {', '.join(LABELS_AS)}; got {quoted(labels_as)}"
        )
    if labels_as is not None and labels is None:
        raise UsageError("--labels-as says what labels kept apart are; add --labels")
    if labels_as == "votes" and votes is not None:
        raise UsageError("--labels-as votes and --votes both give votes; join them in one file")
    if votes is None and labels_as != "votes" and duplicates != "refuse":
        raise UsageError("--duplicates is about long votes, and there are none; add --votes")
    if join is not None and source is None:
        raise UsageError("--join adds files to a table, and there are votes alone; name a FILE")
    located = locate(source)
    long = None
    if votes is not None:
        long = read_votes(votes, options, duplicates, alone=source is None)
    if source is None:
        given = [flag for name, flag in _OF_WIDE if getattr(options, name)]
        if given:
            raise UsageError(
                f"--{given[0]} names a column of the file beside the votes, and there is none; "
                "columns of the votes are named by --item, --annotator, --answer and --label "
                "(known labels)"
            )
        if labels is not None:
            raise UsageError(
                "labels kept apart (--labels) are joined to a file of predictions; give the votes "
                "beside one (FILE --votes VOTES), or the labels in a column of the votes (--label)"
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
        table, options = shaped(open_source(source, located), options)
        if join is not None:
            from fewlabels.data.joined_files import joined_files

            table, options = joined_files(table, join, options, source)
        if labels is not None:
            kept = read_labels(labels, table.names, options, several=labels_as is not None)
            item = options.item or ("item" if "item" in table.names else kept[0].item)
            alike = [name for name in table.names if names_items(name)]
            if item not in table.names and options.item is None and len(alike) == 1:
                item = alike[0]
            if item not in table.names:
                missing = missing_column(item, table.names, "what labels are joined by")
                raise InputError(f"{missing}; say which it is with --item COL")
            kept = tuple(held_to(one, table, item) for one in kept)
            label = options.label if options.label in table.names and options.label else "label"
            judged = truth_in_name(label) < 2 and differs(table, item, label, kept)
            if label in options.of_classifiers or judged:
                # Both files have it: what people say of a criterion, and what this judge says.
                judge = (
                    {}
                    if label in options.of_classifiers
                    else {"judge" if name is None else stem_of(name): label}
                )
                options = replace(options, hard={**options.hard, **judge})
                label = "label" if "label" not in table.names else f"{label} of {kept[0].name}"
            options = replace(options, item=item, label=label)
            if labels_as is None:
                table = WithLabels(table, one_label(kept), item, label)
            else:
                # Recognised by what the labels are; then the labels are votes, or counts.
                known = WithLabels(table, kept[0], item, label)
                reading = recognise(known, options, joined=long is not None)
                options = reading.options
                if not known.label_is_own:
                    options = replace(options, label=None)
                if labels_as == "votes":
                    long = labels_as_votes(kept, duplicates)
                else:
                    table = WithCounts(table, kept, item)
                return Opened(name, options, table, long, lines=reading.lines)
        tasks = Found(table, options)
        if long is None and labels is None and (located is None or located.kind != LOG):
            tasks = find_tasks(table, options)
        elif options.tasks or options.task is not None:
            raise UsageError(
                "--task is of a table with labels and predictions; leave out --votes and --labels"
            )
        of_table, table = getattr(table, "lines", ()), tasks.source
        reading = recognise_tasks(tasks, joined=long is not None)
    if reading.votes:
        long = read_votes(source, reading.options, duplicates, alone=True)
        return Opened(name, reading.options, votes=long, lines=reading.lines, votes_alone=True)
    lines = (*of_table, *tasks.lines, *reading.lines)
    return Opened(
        name, reading.options, table, long, lines=lines, task=tasks.column,
        said=tasks.said(reading.options),
    )  # fmt: skip


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


def read_reference(source: Any, positive: Any = None, **columns: Any) -> Predictions:
    """Read reference data by the column options of other data, as far as its columns have them.

    A last month's file may lack a classifier, the weight or the domain that this month's has; what
    the options say of those is then left out.

    Parameters
    ----------
    source
        As in `read_predictions`.
    positive
        The positive class of the other data; it says what scores are scores of.
    columns
        What is said of the columns of the other data, as in `read_predictions`.
    """
    options = column_options(**columns)
    if options == ColumnOptions():
        return read_predictions(source, positive=positive, keep=())
    names = column_names(source)

    def there(mapped: Mapping[str, str]) -> dict[str, str]:
        return {name: column for name, column in mapped.items() if column in names}

    # The label stays, for the message that it is not there.
    kept = replace(
        options,
        item=options.item if options.item in names else None,
        domain=options.domain if options.domain in names else None,
        cluster=tuple(name for name in options.cluster if name in names),
        weight=options.weight if options.weight in names else None,
        models={m: c for m, c in options.models.items() if any(one in names for one in c)},
        logits={m: c for m, c in options.logits.items() if any(one in names for one in c)},
        hard=there(options.hard),
        scores=there(options.scores),
        confidence=there(options.confidence),
        votes=there(options.votes),
    )
    return read_predictions(source, columns=kept.to_dict(), positive=positive, keep=())
