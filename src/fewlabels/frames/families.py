"""Columns of probabilities that are named by class: `rf_cat`, `P(dog)`, `proba_1`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from fewlabels.class_words import folded, same_answer
from fewlabels.frames.values import class_text

WORD = re.compile(r"[0-9a-zA-Z\u0080-\uffff]+")
"""A word of a column's name."""

_NEGATIONS = {"not", "non", "no"}
_OF_A_CLASS = re.compile(
    r"(?i)(.*[^a-z])?(p|pr|prob|proba|probs|probability|class|cls|label|y|c|is)"
)
"""What stands before a number that is a class, not the number of a fold or of a model."""


class Part(NamedTuple):
    """The class that a column's name says, and what is left of the name."""

    name: str
    rest: str


def tokens(name: str) -> list[str]:
    """The words of a column's name.

    Examples
    --------
    >>> tokens("rf P(not toxic)")
    ['rf', 'P', 'not', 'toxic']
    """
    return WORD.findall(name)


def class_of_name(column: str, classes: Sequence[str]) -> Part | None:
    """The class that a column's name ends in, else begins with: the longest one, whole words.

    Examples
    --------
    >>> class_of_name("rf_not_toxic", ["not toxic", "toxic"])
    Part(name='not toxic', rest='rf')
    >>> class_of_name("cat_prob", ["cat", "dog"]), class_of_name("rf", ["cat", "dog"])
    (Part(name='cat', rest='prob'), None)
    """
    words = [folded(word) for word in tokens(column)]
    shown = tokens(column)
    best: tuple[tuple[int, int], Part] | None = None
    for name in classes:
        own = [folded(word) for word in tokens(name)]
        size = len(own)
        if not size or size > len(words):
            continue
        for at_end, part, rest in (
            (1, words[-size:], shown[:-size]),
            (0, words[:size], shown[size:]),
        ):
            if part == own and (best is None or (at_end, size) > best[0]):
                best = ((at_end, size), Part(name, "_".join(rest)))
    if best is not None and len(classes) == 2:
        before = [folded(word) for word in tokens(best[1].rest)]
        if best[0][0] and before and before[-1] in _NEGATIONS:
            other = classes[1 - list(classes).index(best[1].name)]
            return Part(other, "_".join(tokens(best[1].rest)[:-1]))
    return None if best is None else best[1]


def by_names(columns: Sequence[str], classes: Sequence[str]) -> dict[str, str] | None:
    """Class -> column of a classifier, where the names say so one to one; else None.

    Examples
    --------
    >>> by_names(["rf_dog", "rf_cat"], ["cat", "dog"])
    {'dog': 'rf_dog', 'cat': 'rf_cat'}
    """
    found = [class_of_name(column, classes) for column in columns]
    named = [None if part is None else part.name for part in found]
    if None in named:
        # no and yes for 0 and 1: synonyms, where all that differs between the names is that.
        named = [same_answer(name, classes) for name in differences(columns) or ()]
    if len(named) != len(classes) or None in named or len(set(named)) < len(named):
        return None
    return {name: column for name, column in zip(named, columns, strict=True) if name is not None}


def class_of_one(column: str, classes: Sequence[str]) -> str | None:
    """Which of two classes a single column is of, if its name says so.

    A number counts only behind a word such as "proba": `fold_0` is no column of class 0.
    """
    part = class_of_name(column, classes)
    if part is None:
        return None
    if part.name.isdigit() and not _OF_A_CLASS.fullmatch(part.rest):
        return None
    return part.name


def differences(columns: Sequence[str]) -> tuple[str, ...] | None:
    """What differs between names, whole words: the classes that columns of one classifier name.

    None where it is nothing for some name, or the same for two.

    Examples
    --------
    >>> differences(["net_cat", "net_cow"]), differences(["P(a)", "P(b)"]), differences(["x"])
    (('cat', 'cow'), ('a', 'b'), None)
    """
    words = [tokens(column) for column in columns]
    if len(words) < 2:
        return None
    shortest = min(map(len, words))
    head = 0
    while head < shortest and len({folded(w[head]) for w in words}) == 1:
        head += 1
    tail = 0
    while tail < shortest - head and len({folded(w[-1 - tail]) for w in words}) == 1:
        tail += 1
    left = tuple(class_text("_".join(w[head : len(w) - tail])) for w in words)
    return left if all(left) and len(set(map(folded, left))) == len(left) else None
