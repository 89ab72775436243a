"""Rows that are of one item: a warning, or a refusal where they are not to be taken together."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import numpy as np

from fewlabels.data.evidence import FEW_WORDS, NEARLY_ALL
from fewlabels.data.profiles import LIKELY, item_in_name, name_evidence, truth_in_name, words_table
from fewlabels.data.roles import MADE, Roles
from fewlabels.data.table import NO_LABEL, Names, Source, group_text
from fewlabels.data.where import identifier
from fewlabels.errors import InputError, listed, quoted
from fewlabels.kernels.arrays import Ints

_FEWEST = 10
"""Fewer values are rather kinds of items than items, unless the column is said to name these."""

_ROWS_EACH = 1.2
"""Rows per item, on average, from which a column that nobody named is told of."""


def repeated_items(
    source: Source,
    roles: Roles,
    *,
    of_head: bool = False,
    task: str | None = None,
    named: bool = False,
) -> tuple[str, ...]:
    """Warn that a column names fewer items than there are rows, if no clusters are given."""
    # The column of the items comes first, then columns whose names number items; of several the one
    # of fewest values counts (patients rather than scans). Columns of texts count only if none of
    # these repeats and `item` is not given. With `of_head` the source holds only first rows; `task`
    # says which task a row is of; `named`, that the caller has named the classifiers, whose rows
    # may be those of a design, as in a study of readers.
    others = [n for n in (*roles.groups, *roles.ignored) if n != roles.item]
    free = {n: item_in_name(n) for n in others if not MADE.fullmatch(n)}
    kinds = [[n for n, much in free.items() if much == kind] for kind in (2, 1)]
    if roles.item is not None:
        kinds = [[roles.item], kinds[0]]
    grouped = roles.groups_asked and bool({*roles.groups} - {roles.item})
    asked, parts = grouped or task is not None, (roles.item or "").split(",")
    designs = list[str]()
    for columns in filter(None, [roles.clusters] if roles.clusters else kinds):
        found: list[tuple[int, int, str]] = []
        table = source.read((), columns)
        for column in columns:
            codes = Names.of(table, column, group_text).codes
            alone = int((codes < 0).sum())
            items, rows = len(np.unique(codes[codes >= 0])) + alone, len(codes)
            fewest, each = (2, 1.0) if column == roles.item else (_FEWEST, _ROWS_EACH)
            if items >= fewest and rows > items and rows >= each * items:
                found.append((items, rows, column))
        for items, rows, column in [] if asked else sorted(found):
            others = [n for n in free if n not in (column, roles.domain)]
            if factors := _factors(source, column, others, roles.label):
                ways = [shlex.join(["--cluster", column, "--by", f]) for f in factors[:3]]
                if name_evidence(factors[0], "factor") > 2 * LIKELY:  # criteria are apart
                    v = Names.of(source.read((), factors[:1]), factors[0], group_text).texts[0]
                    ways = [shlex.join(["--where", f"{identifier(factors[0])} = {identifier(v)}"])]
                designs.append(
                    f"{rows:,} rows are {items:,} items (column {quoted(column)}), each of them "
                    f"as often with every value of {listed(map(quoted, factors))}: perhaps models, "
                    "configurations, criteria or repeats, whose rows are not those of one "
                    "classifier; give each of them a column of predictions, or say which with "
                    f"{' or '.join(ways)}"
                )
                if not named and (column == roles.item or column not in parts):
                    raise InputError(designs[0])
                break
        for _, _, column in found:
            _refuse_apart(source, roles, column, others)
        if found and not roles.clusters:
            items, rows, column = min(found)
            where = "" if column == "item" else f" (column {quoted(column)})"
            return (
                f"{'the first ' * of_head}{rows:,} rows are {items:,} items{where}, and every row "
                f"counts as one by itself: say --cluster {shlex.quote(column)}",
                *designs,
            )
    return tuple(designs)


def _refuse_apart(source: Source, roles: Roles, item: str, others: Sequence[str]) -> None:
    """Refuse labels that are known in no row with a prediction, but in others of the same items."""
    # Where nothing is the label, the columns that are likely one by their names count.
    said = [*roles.votes.values(), *(c for m in roles.models for c in roles.columns_of(m))]
    labels = [roles.label] if roles.label else [n for n in others if truth_in_name(n) > 1]
    if not labels or not {item, *labels, *said} <= {*source.names}:
        return
    table = source.read((), [item, *labels, *said])
    of_item = Names.of(table, item, group_text).codes
    each = {n: Names.of(table, n) for n in {*labels, *said}}
    there = {n: np.array([*(t not in NO_LABEL for t in of.texts), False])[of.codes]
             for n, of in each.items()}  # fmt: skip
    predicted = np.any([there[n] for n in said], axis=0)
    for label in labels:
        known = there[label]
        both = np.isin(of_item[known], of_item[predicted])
        if known.any() and not (known & predicted).any() and both.mean() >= NEARLY_ALL:
            raise InputError(
                f"column {quoted(label)} is known in {known.sum():,} rows, and no row of these "
                f"has a prediction (column {quoted(said[0])}): they are of the same items by "
                f"column {quoted(item)}, whose labels and predictions must stand in one row "
                f"(pandas: frame[{label!r}] = frame.groupby({item!r})[{label!r}]"
                f".transform('first'), and then the rows with predictions alone)"
            )


def _factors(source: Source, item: str, others: Sequence[str], label: str | None) -> list[str]:
    """The columns of few values that every item has equally often: models, settings, folds."""
    # What is a property of the rows rather, such as a language, has a name or labels that say so.
    table = source.read((), [item, *others, *filter(None, [label])])
    of_item = Names.of(table, item, group_text).codes
    known = None if label is None else Names.of(table, label).codes
    weights, found = words_table().values["factor"], list[str]()
    for name in others:
        if not _as_often(of_item, Names.of(table, name, group_text).codes):
            continue
        score = name_evidence(name, "factor") + weights["as often in every item"]
        if known is not None and (known >= 0).any():
            pairs = np.unique(np.stack([of_item, known])[:, known >= 0], axis=1)[0]
            one = (np.unique(pairs, return_counts=True)[1] == 1).mean() >= NEARLY_ALL
            score += weights["one label in an item" if one else "labels differ within items"]
        found += [name] if score > LIKELY else []
    return found


def _as_often(item: Ints, factor: Ints) -> bool:
    """Whether nearly every item has all of several values, and each as often."""
    k, n = int(factor.max(initial=-1)) + 1, int(item.max(initial=-1)) + 1
    if not 2 <= k <= FEW_WORDS or n < _FEWEST or min(item.min(), factor.min()) < 0:
        return False
    times = np.bincount(item * k + factor, minlength=n * k).reshape(n, k)
    each = (times[:, :1] > 0).all(1) & (times == times[:, :1]).all(1)
    return bool(each.mean() >= NEARLY_ALL)
