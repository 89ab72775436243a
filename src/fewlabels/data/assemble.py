"""From columns with roles to the arrays of `Predictions`."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from fewlabels.checks.arguments import (
    LARGEST_SCORE,
    SUM_ROUNDING,
    SUM_TOLERANCE,
    refuse_beyond_memory,
    too_large,
)
from fewlabels.checks.arrays import NO_SUM, UNKNOWN, rounding
from fewlabels.data.classes import Classes, Counts, decide_classes
from fewlabels.data.families import are_odds
from fewlabels.data.options import ColumnOptions
from fewlabels.data.profiles import MOST_CLASSES, class_of_one, names_percentages
from fewlabels.data.roles import Roles, places, split_native
from fewlabels.data.table import NOTHING, Names, Table, group_text, in_order, shown_number
from fewlabels.errors import InputError, listed, quoted
from fewlabels.kernels.arrays import Array, Floats
from fewlabels.kernels.simplex import softmax

Attempt = Callable[[Callable[[], Array]], Array]
"""Reads a column, or collects its errors."""


def assemble(
    table: Table,
    roles: Roles,
    options: ColumnOptions,
    voted: Counts | None = None,
    found: list[InputError] | None = None,
) -> tuple[dict[str, Any], Classes]:
    """Arguments of `Predictions` from the columns of a table, and the classes."""
    if table.n_rows == 0 and table is not NOTHING:
        raise InputError("there are no rows; a file needs at least one item")
    texts = class_columns(table, roles)
    seen = {column: names.counts() for column, names in texts.items()}
    classes = decide_classes(roles, options, seen | dict(voted or {}))
    return arguments_of(table, roles, classes, texts, found), classes


def class_columns(table: Table, roles: Roles) -> dict[str, Names]:
    """The columns whose texts are classes: labels and hard predictions."""
    named = [roles.label, *roles.votes.values()]
    return {column: Names.of(table, column) for column in named if column is not None}


def arguments_of(
    table: Table,
    roles: Roles,
    classes: Classes,
    texts: dict[str, Names],
    found: list[InputError] | None = None,
) -> dict[str, Any]:
    """Arguments of `Predictions`, given the classes; `texts` is emptied on the way."""
    n = table.n_rows

    def attempt(make: Callable[[], Array]) -> Array:
        """A column, or NaN if it is wrong and errors are collected."""
        try:
            return make()
        except InputError as error:
            if found is None:
                raise
            found.append(error)
            return np.full(n, np.nan)

    by_column = {
        column: attempt(partial(classes.indices, t, table.place)) for column, t in texts.items()
    }
    texts.clear()
    groups: dict[str, Array] = {}
    notes: list[str] = []
    for name in roles.groups:
        try:
            groups[name] = _group(table, name, None if name == roles.item else classes, notes)
        except InputError as error:
            if roles.groups_asked:
                raise
            notes.append(f"not kept as a group: {error}")

    scores = {m: attempt(partial(_score, table, roles, m, classes)) for m in roles.scores}
    counted = [roles.histogram[c] for c in classes.texts if c in roles.histogram]
    weight = roles.weight
    arguments = {
        "probabilities": _probabilities(table, roles, classes, by_column, attempt),
        "labels": None if roles.label is None else by_column[roles.label],
        "votes": _matrix(
            [by_column.get(roles.votes.get(m, "")) for m in roles.models],
            np.full(n, UNKNOWN, dtype=np.int8),
        ),
        "scores": _matrix([scores.get(m) for m in roles.models], np.full(n, np.nan)),
        "histogram": _matrix(
            [attempt(partial(_counts, table, column)) for column in counted], np.empty(0)
        ),
        "domain": None if roles.domain is None else _group(table, roles.domain, classes),
        "clusters": {name: _group(table, name) for name in roles.clusters},
        "weight": weight and attempt(partial(_finite, table, weight, "weight")),
        "groups": groups,
        "stratum": roles.stratum,
        "models": roles.models,
        "classes": classes.names,
        "positive": classes.positive_name,
        "item": roles.item if roles.item in groups else None,
    }
    return arguments | {"notes": (*classes.notes, *roles.notes, *table.notes, *notes)}


def _first(wrong: Any) -> int | None:
    """The first row of a mask (n,); None where there is none."""
    return int(np.argmax(wrong)) if wrong.any() else None


def _finite(table: Table, column: str, what: str) -> Floats:
    """Numbers, none of them infinite."""
    values = table.numbers(column)
    if (row := _first(np.isinf(values))) is not None:
        raise InputError(
            f"`{what}` must be finite or NaN; got {table.cell(column, row)} in "
            f"{table.place(row)}: correct it, "
            f"or leave it empty (column {quoted(column)})"
        )
    if what == "scores" and (row := _first(np.abs(values) > LARGEST_SCORE)) is not None:
        raise too_large(table.cell(column, row), f"in {table.place(row)} (column {quoted(column)})")
    return values


def _score(table: Table, roles: Roles, model: str, classes: Classes) -> Floats:
    """Scores of one classifier, larger for the positive class."""
    column = roles.scores[model]
    native = split_native(column) is not None
    named = None if native or len(classes.texts) != 2 else class_of_one(column, classes.texts)
    if named not in (None, classes.positive):
        raise InputError(
            f"column {quoted(column)} is named for class {quoted(named)}, and scores are larger "
            f"for the positive class ({classes.positive}): turn it round and rename it, or say "
            f"--positive {named}"
        )
    return _finite(table, column, "scores")


def _probabilities(
    table: Table, roles: Roles, classes: Classes, texts: Mapping[str, Array], attempt: Attempt
) -> Floats | None:
    if not (roles.probabilities or roles.mapped or roles.confidence):
        return None
    size = len(classes.texts)
    # The array, the columns of a classifier beside it, and what the checks hold.
    refuse_beyond_memory(
        8.0 * table.n_rows * size * (len(roles.models) + 2),
        f"reading {table.n_rows:,} rows x {len(roles.models):,} classifiers x {size:,} classes",
        "leave out classifiers or rows, or let --engine threads read them in parts",
    )
    # An explicit list of one class is refused by Predictions, which sees the shape below.
    p = np.full((table.n_rows, len(roles.models), size), np.nan)
    for j, model in enumerate(roles.models):
        if model in roles.confidence:
            if size != 2:
                raise InputError(
                    f"--confidence {model} tells all probabilities of two classes only, and there "
                    f"are {size} ({listed(classes.texts)}); leave it out"
                )
            column, hard = roles.confidence[model], texts[roles.votes[model]]
            sure = attempt(partial(table.numbers, column))
            one = {"predicted": column}
            # As shares they would be from .5 to 1.
            percent = not np.isnan(sure).all() and np.nanmin(sure) >= 50
            attempt(partial(_to_shares, table, model, one, {"predicted": sure}, percent))
            last = np.where(hard == 1, sure, 1 - sure)
            p[:, j, 1] = np.where(hard < 0, np.nan, last)
            p[:, j, 0] = 1 - p[:, j, 1]
        by_class = dict(roles.probabilities.get(model, {}))
        if model in roles.mapped:
            by_class = classes.columns_of(model, roles.mapped[model])
        read = {
            text: attempt(partial(table.numbers, by_class[text]))
            for text in classes.texts
            if text in by_class
        }
        if not read:
            continue
        if model in roles.logits:
            attempt(partial(_softmax, table, model, by_class, read))
        else:
            attempt(partial(_to_shares, table, model, by_class, read))
        for k, text in enumerate(classes.texts):
            if text in read:
                p[:, j, k] = read[text]
            else:
                np.subtract(1.0, read[classes.texts[1 - k]], out=p[:, j, k])
        asked = model in roles.mapped and roles.label is not None and not classes.given
        if asked and (vector := places(roles.mapped[model])) is not None:
            check_order(
                p[:, j], texts[roles.label or ""], classes.texts, f"column {quoted(vector)}",
                lambda order: f"--classes {shlex.quote(','.join(order))}",
            )  # fmt: skip
    return p


_FEWEST_PLACED, _MISPLACED = 20, 4.0
"""Labels, and standard errors, from which the order of a vector's numbers is doubted."""


def check_order(
    p: Floats, labels: Array, texts: Sequence[str], what: str, way: Callable[[list[str]], str]
) -> None:
    """Refuse vectors p (n, K) that go with labels (n,) in another order than that of the texts."""
    known = (labels >= 0) & ~np.isnan(p).any(axis=1)
    if known.sum() < _FEWEST_PLACED:
        return
    p, y = p[known], labels[known].astype(np.int64)
    from scipy.optimize import linear_sum_assignment

    sums = np.zeros((len(texts), len(texts)))
    np.add.at(sums, y, p)
    best, rows = linear_sum_assignment(sums, maximize=True)[1], np.arange(len(y))
    gain = p[rows, best[y]] - p[rows, y]
    if gain.mean() <= _MISPLACED * gain.std() / np.sqrt(len(y)) or not gain.any():
        return
    order = list(in_order(texts, in_words=False))
    of = {texts[place]: texts[k] for k, place in enumerate(best.tolist())}
    raise InputError(
        f"{what} does not say which number is of which class, and with the labels they go in "
        f"another order than {','.join(order)}: say {way([of[text] for text in order])} if that is "
        f"theirs, or {way(order)} if the classifier is that wrong"
    )


def _softmax(
    table: Table, model: str, columns: Mapping[str, str], read: Mapping[str, Floats]
) -> Floats:
    """Logits to probabilities, in place: exp(z_k) / sum_j exp(z_j); of log-odds 1 / (1 + e^-z)."""
    each = list(read.values())
    for text, values in read.items():
        if (row := _first(np.isposinf(values))) is not None:
            raise InputError(
                f"column {quoted(columns[text])} holds {table.cell(columns[text], row)} in "
                f"{table.place(row)}, which is no logit: correct it, or leave it empty"
            )
    z = np.stack([*each, *([np.zeros(len(each[0]))] if len(each) == 1 else [])])
    if (row := _first(np.isneginf(z).all(axis=0))) is not None:
        raise InputError(
            f"`logits` of classifier {quoted(model)} are all -inf in {table.place(row)}, which is "
            "no prediction; leave the cells empty"
        )
    shown = listed(map(quoted, columns.values()), 3)
    if len(each) == 1:
        how = "the logistic function turns it into the probability"
        table.notes.append(f"column {shown} is read as log-odds: {how}")
    else:
        table.notes.append(
            f"columns {shown} are read as logits, or logarithms of probabilities: a softmax over "
            f"the {len(each)} turns them into probabilities"
        )
    for values, share in zip(each, softmax(z, axis=0), strict=False):
        values[:] = share
    return each[0]


def _to_shares(
    table: Table,
    model: str,
    columns: Mapping[str, str],
    read: Mapping[str, Floats],
    percent: bool = False,
) -> Floats:
    """Check the probabilities of one classifier as its columns hold them, and scale them."""
    # If all rows sum to 100, they are percentages; a single column is one if its name says so, or
    # with `percent`. Rows whose sum differs from 1 by at most half a unit of the last digit per
    # class are rounded numbers. Both are corrected in place, with a note.
    each = list(read.values())
    total = np.sum(each, axis=0)
    known = total[~np.isnan(total)]
    several, shown = len(each) > 1, listed(map(quoted, columns.values()), 3)
    column = next(iter(columns.values()))
    # A native column holds probabilities by contract.
    if not several and (percent or (split_native(column) is None and names_percentages(column))):
        _from_percentages(table, column, each[0])
    # Rounded percentages are off 100 by half a unit per class; of hundreds of classes, shares would
    # be near 100 by that as well.
    if several and len(known) and (np.abs(known - 100) <= min(0.5 * len(each), 49)).all():
        for values in each:
            values /= 100
        total /= 100
        table.scaled.update(columns.values())
        table.notes.append(f"columns {shown} sum to 100 in every row: read as percentages")
    if several and are_odds(each):
        share = 1 / np.stack(each)
        for values, of in zip(each, share / share.sum(axis=0), strict=True):
            values[:] = of
        table.notes.append(
            f"columns {shown} are read as odds: 1/odds, as a share of its sum over the classes, is "
            "the probability"
        )
        return each[0]
    for text, values in read.items():
        bad = (values < -1e-6) | (values > 1 + 1e-6)
        if (row := _first(bad)) is not None:
            column, size = columns[text], int(bad.sum())
            given = values[~np.isnan(values)]
            mend = ""
            if given.min() >= 0 and 1 < given.max() <= 100:
                mend = "divide percentages by 100, or write them as 66.6%; "
            elif several:
                said = shlex.quote(f"{model}={','.join(columns.values())}")
                mend = f"if they are logits or log-probabilities, a softmax is --logits {said}; "
            more = f" (and in {size - 1:,} more rows)" * (size > 1)
            raise InputError(
                f"`probabilities` must be between 0 and 1; got {table.cell(column, row)} for "
                f"{table.place(row)}, classifier {quoted(model)} (column {quoted(column)}){more}: "
                f"{mend}a score is named s__{model}, or said with --score "
                + shlex.quote(f"{model}={column}")
            )
    if not several:
        return each[0]
    off = np.abs(total - 1)
    if not (off > SUM_TOLERANCE).any():
        return each[0]
    most, _ = rounding(each)
    if (row := _first((off > most) | (total == 0))) is not None:
        cells = " + ".join(table.cell(columns[text], row) for text in list(read)[:6])
        cells += " + ..." * (len(each) > 6)
        raise InputError(
            f"`probabilities` must sum to 1 over the classes; got {total[row]:.6g} for "
            f"{table.place(row)}, classifier {quoted(model)} (column {shown}: {cells}): "
            f"{NO_SUM}"
        )
    for values in each:
        values /= total
    table.notes.append(
        f"{int((off > SUM_ROUNDING).sum()):,} rows of classifier {quoted(model)} do not sum to 1, "
        "as rounding makes it, and were renormalised"
    )
    return each[0]


_FEW_BEYOND = 0.05
"""So few values beyond 0 and 100, in a column named as a percentage, are typing errors."""


def _from_percentages(table: Table, column: str, values: Floats) -> None:
    """Divide a column of percentages by 100, in place."""
    known = values[~np.isnan(values)]
    if column in table.scaled or not len(known):
        return
    beyond = np.flatnonzero((values < 0) | (values > 100))
    if len(beyond) and len(beyond) < _FEW_BEYOND * len(known):
        row = int(beyond[0])
        raise InputError(
            f"column {quoted(column)} holds percentages, and {table.cell(column, row)} in "
            f"{table.place(row)} is none: correct it, or leave the cell empty"
        )
    if len(beyond):
        return
    above = int((known > 1).sum())
    if above < _FEW_BEYOND * len(known):
        few = "no value is" if not above else f"only {above} of {len(known):,} values are"
        raise InputError(
            f"column {quoted(column)} is named a percentage, but {few} above 1 (the largest "
            f"is {shown_number(known.max())}): write the cells with % if they are percentages, or "
            "rename the column if they are shares"
        )
    values /= 100
    table.scaled.add(column)
    table.notes.append(f"column {quoted(column)}: percentages read as shares")


def _counts(table: Table, column: str) -> Floats:
    """How many annotators chose a class; 0 where the cell is empty."""
    counts = table.numbers(column)
    whole = (counts >= 0) & (counts == np.floor(counts)) & (counts < np.inf)
    if (row := _first(~whole & ~np.isnan(counts))) is not None:
        raise InputError(
            f"column {quoted(column)} must hold whole numbers of annotators, 0 or more; got "
            f"{counts[row]:g} in {table.place(row)}: correct it, or leave the cell empty"
        )
    return np.nan_to_num(counts)


def _matrix(columns: Sequence[Array | None], absent: Array) -> Array | None:
    """Columns side by side, shape (n, M); None where there is none."""
    if all(column is None for column in columns):
        return None
    return np.stack([absent if column is None else column for column in columns], axis=1)


def _group(
    table: Table, column: str, classes: Classes | None = None, notes: list[str] | None = None
) -> Array:
    """Group of each item as text, shape (n,); None where none is given."""
    # With the classes, texts are as `same` says, where it means no class; notes tell of those that
    # differ in case or in blanks around them alone.
    if classes is None:
        return Names.of(table, column, group_text).each()
    same = {t: of for t, of in (classes.same or {}).items() if classes.find(of) is None}

    def text(value: Any) -> str | None:
        written = group_text(value)
        return written and same.get(written, same.get(written.strip(), written))

    names = Names.of(table, column, text)
    counts = names.counts() if len(names.texts) <= MOST_CLASSES else {}
    often = {t.strip().casefold(): t for t in sorted(counts, key=lambda t: counts[t])}
    slips = {t: of for t in counts if (of := often[t.strip().casefold()]) != t}
    if slips and notes is not None:
        said = shlex.join(w for t, of in slips.items() for w in ("--same", f"{t}={of}"))
        notes.append(
            f"group {quoted(column)}: {listed(map(quoted, slips))} and "
            f"{listed(map(quoted, dict.fromkeys(slips.values())))} differ in case or blanks "
            f"alone; if they are one, say {said}"
        )
    return names.each()
