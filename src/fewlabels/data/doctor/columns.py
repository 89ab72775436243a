"""Columns that are perhaps something else than they were taken for, and what reading noted."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from fewlabels.checks.arrays import SUM_TOLERANCE
from fewlabels.checks.class_words import NO_LABEL, folded
from fewlabels.data.doctor.diagnosis import Finding
from fewlabels.data.roles import LIKE_LABELS
from fewlabels.data.table import Table
from fewlabels.errors import InputError, quoted
from fewlabels.kernels.arrays import Floats

_WEIGHTS = re.compile(r"(?i)(sample|sampling|inverse|ip)?[_ -]?weights?")
_DOMAINS = re.compile(r"(?i)domains?")
_PROBABILITY = re.compile(r"(?i)(p|prob|proba|probability|probabilities)(_{1,2}|[ .-]).+")
_VOTE = re.compile(
    r"(?i)(y_?pred|pred|prediction|predicted|y)(_{1,2}|[ .-]).+|y_?pred|predictions?"
)
_SCORE = re.compile(r"(?i)(s|score|scores|logit|logits|decision)(_{1,2}|[ .-]).+")

_LOOKED_AT = 10_000
"""Rows of a column that are looked at to tell whether it holds probabilities."""

_NOTE_MENDS = {
    "sum to 1": "store probabilities with more digits",
    "one class occurs": "name both classes with --classes, the positive one last",
    "not read as a prediction": "rename it",
    "not kept as a group": "nothing, if it is no group",
    "--duplicates": "nothing, if this is meant",
    "is in the other file": "say with --item which columns hold the item",
}
"""Words of a note -> what to do about it."""


def note_findings(notes: Iterable[str], name: str) -> Iterator[Finding]:
    """What was noted while the data `name` were read."""
    for note in notes:
        # Said in full by label_findings.
        if not note.startswith("no labeled item"):
            mend = next((m for words, m in _NOTE_MENDS.items() if words in note), "")
            yield Finding("warning", note, name, mend)


def column_findings(
    described: Mapping[str, str], table: Table | None, models: Sequence[str]
) -> Iterator[Finding]:
    """Columns that are perhaps something else, by their names and, where there are rows, values."""
    free = [c for c, role in described.items() if role in ("group", "not recognised")]
    yield from _by_name(free, set(described.values()))
    if table is not None:
        yield from _by_values(table, [c for c in free if c in table.names], models)


def minus_one_findings(label: str, texts: set[str]) -> Iterator[Finding]:
    """-1 next to labels of one of two classes may be meant as the other one."""
    known = {text for text in texts if folded(text) not in NO_LABEL}
    if "-1" in texts and len(known) == 1:
        only = known.pop()
        yield Finding(
            "warning",
            f"holds -1 and {quoted(only)} alone; -1 is read as unknown",
            f"column {quoted(label)}",
            "if -1 means the negative class, write it as 0",
        )


def _by_name(names: Iterable[str], roles: Collection[str]) -> Iterator[Finding]:
    """Columns whose names nearly say a role that none has yet."""
    for name in names:
        where = f"column {quoted(name)}"
        if "label" not in roles and LIKE_LABELS.fullmatch(name):
            yield Finding("warning", "may hold the labels", where, f"--label {shlex.quote(name)}")
        elif "weight" not in roles and _WEIGHTS.fullmatch(name):
            yield Finding("info", "may be the weight", where, f"--weight {shlex.quote(name)}")
        elif "domain" not in roles and _DOMAINS.fullmatch(name):
            yield Finding("info", "may be the domain", where, f"--domain {shlex.quote(name)}")
        elif _PROBABILITY.fullmatch(name):
            mend = "rename it p__<model>__<class>, or use --model NAME=COL,COL"
            yield Finding("warning", "may be a probability, but is not read as one", where, mend)
        elif _VOTE.fullmatch(name):
            yield Finding(
                "info", "may be a hard prediction, but is not read as one", where,
                "rename it y__<model>",
            )  # fmt: skip
        elif _SCORE.fullmatch(name):
            yield Finding(
                "info", "may be a score, but is not read as one", where, "rename it s__<model>"
            )


def _by_values(table: Table, names: Sequence[str], taken: Iterable[str]) -> Iterator[Finding]:
    """Columns of numbers in [0, 1] that no classifier has, with the option that maps them.

    Parameters
    ----------
    taken
        Names of the classifiers there are.
    """
    values = {name: v for name in names if (v := _fractions(table, name)) is not None}
    used = set(taken)
    for stem, columns in _by_stem(values):
        name = stem
        while name in used:
            name += "_"
        used.add(name)
        option = shlex.quote(f"{name}={','.join(columns)}")
        if any("," in column for column in columns) or "=" in name:
            option = "NAME=COL (a name with a comma: use --columns TOML)"
        several = len(columns) > 1
        yield Finding(
            "info",
            "look like probabilities that add up to 1" if several else "looks like a probability",
            f"column{'s' if several else ''} {', '.join(map(quoted, columns))}",
            f"if a classifier gave {'them' if several else 'it'}: --model {option}",
        )


def _fractions(table: Table, name: str) -> Floats | None:
    """The column, if it holds numbers in [0, 1] and not 0 and 1 alone."""
    try:
        values = table.head(name, _LOOKED_AT)
    except InputError:
        return None
    given = values[~np.isnan(values)]
    if not len(given) or given.min() < 0 or given.max() > 1 or (given == np.round(given)).all():
        return None
    return values


def _by_stem(values: dict[str, Floats]) -> Iterator[tuple[str, list[str]]]:
    """Columns of one classifier: the same name up to its last part, and a sum of 1."""
    stems: dict[str, list[str]] = {}
    for name in values:
        stem = re.sub(r"[_ .-]+[^_ .-]*$", "", name) or name
        stems.setdefault(stem, []).append(name)
    for stem, columns in stems.items():
        total = np.sum([values[c] for c in columns], axis=0)
        total = total[~np.isnan(total)]
        if len(columns) > 1 and len(total) and np.abs(total - 1).max() <= SUM_TOLERANCE:
            yield stem, columns
        else:
            for column in columns:
                yield column, [column]
