"""Tasks by the names of columns: what true_toxic, pred_toxic, true_insult, pred_insult share.

A name without some of its words is a stem: true, pred. Words are those of tasks where a stem of
labels and one of predictions have the same words in several columns.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Literal, NamedTuple

from fewlabels.data.profiles import (
    is_role,
    item_in_name,
    name_words,
    names_chance,
    names_truth,
    predicts_in_name,
    truth_in_name,
)
from fewlabels.data.roles import split_native

MOST_WORDS, MOST_COLUMNS, _MOST_UNKNOWN = 10, 500, 60
"""Of tables with more columns, and names with more words, tasks have to be said; so have they where
no name is like those of labels, in tables of more columns than the last."""

LABEL = "label"
"""What the column of labels is called where its names are those of the tasks alone."""

_HOW_SURE = {
    *("score", "scores", "p", "prob", "proba", "probs", "probability", "logit", "logits"),
    *("conf", "confidence", "margin"),
}
Words = tuple[str, ...]
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")
_EDGES = " _-.:/|"


class Task(NamedTuple):
    """A task by its name, and its columns, each under its name without the words of the task."""

    name: str
    columns: Mapping[str, str]


class NamedTasks(NamedTuple):
    """Tasks by names alone: the stem of the labels, and columns without a place among them.

    Names are `sure` where labels and predictions each have a word of theirs, and `guessed` where
    labels may as well be what classifiers say, beside how sure they are.
    """

    tasks: tuple[Task, ...]
    label: str
    left: tuple[str, ...]
    names: Literal["sure", "open", "guessed", "unknown"]

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


def split_name(name: str) -> list[str]:
    """The words of a name as they are written."""
    return _WORD.findall(name)


def _folded(name: str) -> Words:
    return tuple(word.casefold() for word in split_name(name))


def stem_without(name: str, task: str) -> str | None:
    """What is left of a name without the words of a task; None where it has not got them."""
    start, words = _place(_folded(name), _folded(task)), len(split_name(task))
    return None if start is None else _cut(name, start, start + words)


def _place(words: Words, task: Words) -> int | None:
    """Where the words of a task stand among others, the last place of several."""
    starts = range(len(words) - len(task), -1, -1) if task else ()
    return next((i for i in starts if words[i : i + len(task)] == task), None)


def _cut(name: str, start: int, stop: int) -> str:
    """The name without the words from `start` to `stop`."""
    spans = list(_WORD.finditer(name))
    parts = name[: spans[start].start()].rstrip(_EDGES), name[spans[stop - 1].end() :]
    return "_".join(part for part in (parts[0], parts[1].lstrip(_EDGES)) if part)


def tasks_by_name(names: Sequence[str]) -> Iterator[NamedTasks]:
    """The tasks that names show: words that the labels' and a classifier's columns share."""
    stems: dict[str, dict[Words, str]] = {}
    for name in names:
        words = _folded(name)
        for i, j in combinations(range(len(words) + 1 if len(words) <= MOST_WORDS else 0), 2):
            stems.setdefault(_cut(name, i, j).casefold(), {}).setdefault(words[i:j], name)
    kinds = {stem: _kind(stem) for stem in stems}
    ranked: list[tuple[tuple[float, ...], str, set[Words]]] = []
    for label, of in stems.items():
        own = {words for words in of if not _says_role(words)}
        truth, shared, predicted = kinds[label] == "truth", set[Words](), 0
        unknown = kinds[label] == "other" and len(names) > _MOST_UNKNOWN
        if kinds[label] == "predictions" or len(own) < 2 - truth or unknown:
            continue
        for stem, theirs in stems.items():
            both, said = own & {*theirs}, kinds[stem] == "predictions"
            some = (said or (kinds[stem] == "other" and stem != label)) and len(both) > 1
            one = len(both) == 1 and said and truth
            if some or (one and (len(own) > 1 or len(theirs) > 1)):
                shared |= both
                predicted += len(both) * (1 + said)
        if shared and (truth or len(shared) > 1):
            rank = (
                *(len(shared) > 1, truth, kinds[label] == "bare", len(shared)),
                *(predicted, -sum(map(len, shared))),
            )
            ranked.append((rank, label, shared))
    ranked.sort(key=lambda each: each[0], reverse=True)
    known = [each for each in ranked if kinds[each[1]] != "other"]
    for _, label, shared in known[:1] or ranked[:_MOST_TRIED]:
        labels = {*stems[label].values()} if label else ()
        # A column of labels by its name, beside which these need not be any.
        others = (name for name in names if name not in labels)
        truth = names_truth(" ".join(split_name(label)))
        if truth or not any(truth_in_name(name) == 3 for name in others):
            placed = _placed(names, stems, label, shared)
            yield from [] if placed is None else [placed]


_MOST_TRIED = 4


def _placed(
    names: Sequence[str], stems: Mapping[str, Mapping[Words, str]], label: str,
    shared: Collection[Words],
) -> NamedTasks | None:  # fmt: skip
    """Every column in its place, given the words of the tasks."""
    of_label = {words: stems[label][words] for words in shared}
    held: dict[str, dict[Words, str]] = {}
    twice: set[str] = set()
    longest = sorted(shared, key=lambda words: (-len(words), words))
    for name in names:
        words = _folded(name)
        task = next((t for t in longest if _place(words, t) is not None), None)
        if task is not None:
            start = _place(words, task) or 0
            stem = _cut(name, start, start + len(task))
            stem = next((s for s in held if s.casefold() == stem.casefold()), stem)
            if held.setdefault(stem, {}).setdefault(task, name) != name:
                twice.add(stem)  # two columns of one task, which nothing tells apart
    kept = {
        stem: of for stem, of in held.items()
        if stem not in twice and (len(of) > 1 or len(shared) == 1 or _kind(stem) == "predictions")
    }  # fmt: skip
    columns: dict[Words, dict[str, str]] = {words: {} for words in shared}
    for stem, of in kept.items():
        for task, name in of.items():
            columns[task][stem or LABEL] = name
    taken = {name for of in kept.values() for name in of.values()}
    known = [stem.casefold() for stem in kept if stem or label]
    others = {n: w for s in known for w, n in stems.get(s, {}).items() if n not in taken}
    left = tuple(name for name, words in others.items() if not _says_role(words))
    order = sorted(shared, key=lambda words: names.index(of_label[words]))
    tasks = tuple(Task(_as_written(of_label[words], words), columns[words]) for words in order)
    shown = next((s or LABEL for s in kept if s.casefold() == label), None)
    if shown is None or any(shown not in t.columns or len(t.columns) < 2 for t in tasks):
        return None
    weak = all(len("".join(words)) < 2 or "".join(words).isdigit() for words in shared)
    weak |= any(predicts_in_name(words) or item_in_name("_".join(words)) == 2 for words in shared)
    truth = names_truth(" ".join(split_name(label)))
    if weak and not truth:
        return None  # what classifiers say, and how sure they are
    said = [name_words(stem) for stem in kept if _kind(stem) == "predictions"]
    if not truth:  # label and score may both be of a classifier
        said = [words for words in said if predicts_in_name({*words} - _HOW_SURE)]
    if _kind(label) == "other":
        return NamedTasks(tasks, shown, left, "unknown")
    if label and said and not weak:
        return NamedTasks(tasks, shown, left, "sure")
    return NamedTasks(tasks, shown, left, "open" if truth or not label else "guessed")


def _as_written(column: str, words: Words) -> str:
    """The words of a task as the column has them."""
    at, spans = _place(_folded(column), words) or 0, list(_WORD.finditer(column))
    return column[spans[at].start() : spans[at + len(words) - 1].end()]


def _says_role(words: Words) -> bool:
    """Whether words say what a column holds, and no task."""
    return is_role("_".join(words)) or names_truth("_".join(words))


def _kind(stem: str) -> str:
    """What the columns of a stem may hold by its words: truth, predictions, or something other."""
    name = " ".join(split_name(stem))  # human 1, gpt 4
    words = name_words(name)
    if not words:
        return "bare"
    if split_native(stem) is not None:
        return "predictions" if stem.startswith(("y__", "s__")) else "other"
    if truth_in_name(name) == 3 or (names_truth(name) and not predicts_in_name(words)):
        return "truth"
    chance = predicts_in_name(words) or names_chance(name) or stem.startswith("p__")
    return "predictions" if chance else "other"
