"""The long record: who said what of which item under which criterion, in columns of Arrow."""

from __future__ import annotations

import gc
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fewlabels.checks.class_words import NO_LABEL, folded
from fewlabels.data.cells import texts_of
from fewlabels.data.table import Names, Table, class_text, group_text, number_of
from fewlabels.errors import InputError, listed, quoted
from fewlabels.kernels.arrays import Floats, Ints

PERSON, MODEL, CODE, GOLD = "human", "model", "code", "gold"
"""Kinds of authors; gold is what a person marked as the truth beside others' answers."""

PROBABILITY = "P = "
"""What a value begins with that is a probability (the score) of the class behind it."""

_CHUNK = 1 << 11
_MOST_NAMES = 10_000
_LONGEST_TEXT = 2_000
"""Characters of a text of an item that are kept: it is for people to look at."""

LONGEST_NAME = 1_000
"""Longer names of items, criteria and authors are none."""


class Verdict(NamedTuple):
    """One verdict: `value` is a word, a truth value or a number, None where nothing was decided.

    `score` is a number beside a word. `time` orders what a person says of one item; later times
    sort later. `cluster` is what several items are repeats of, None where it is the item itself.
    """

    item: str
    criterion: str
    kind: str
    author: str | None
    value: Any
    score: float | None = None
    time: str | None = None
    cluster: str | None = None


@dataclass
class Log:
    """What is learnt of a log beside its verdicts.

    `left` counts what is left out by the words for it, `corrected` people's corrections of judges;
    `texts` has those of the items, by column; `before` is put before the names of one of several
    files.
    """

    name: str
    tool: str
    about: list[str] = field(default_factory=list)
    left: Counter[str] = field(default_factory=Counter)
    unknown_kinds: Counter[str] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)
    corrected: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)
    before: str = ""
    texts: dict[str, dict[str, str]] = field(default_factory=dict)

    def notes(self) -> list[str]:
        """What is left out, and what to be careful with."""
        notes = [f"{n:,} {what}" for what, n in self.left.items() if n]
        if self.unknown_kinds:
            kinds = listed(map(quoted, self.unknown_kinds), 3)
            total = self.unknown_kinds.total()
            notes.append(f"{total:,} rows are of unknown authors ({kinds}) and left out")
        return notes + self.warnings

    def unknown(self, why: str) -> InputError:
        """The refusal of a layout that is not known."""
        return InputError(
            f"is a log of {self.tool} in a layout that is not known: {why}; docs/llm-judges.md "
            "says which versions are read"
        )

    def need(self, where: Mapping[str, Any], key: str, of: str, kind: type = object) -> Any:
        """A field that this layout has."""
        found = where.get(key) if isinstance(where, Mapping) else None
        if found is None:
            raise self.unknown(f"{of} has no field {quoted(key)}")
        if not isinstance(found, kind):
            another = type(found).__name__
            raise self.unknown(f"{of} has another kind of field ({another}) {quoted(key)}")
        return found

    def once(self, item: str, what: str) -> None:
        """Meet an item."""
        if self.seen[item]:
            raise InputError(
                f"has {what} {quoted(item)} twice; remove one, or give them different names"
            )
        self.seen[item] += 1

    def distinct(self, item: str) -> str:
        """Meet an item that may be met again: its name, with a number from the second time on."""
        self.seen[item] += 1
        return item if self.seen[item] == 1 else f"{item} ({self.seen[item]})"

    def show(self, item: str, **texts: Any) -> None:
        """Keep texts of an item for whoever looks at it."""
        for column, value in texts.items():
            if value is not None and value != "":
                text = value if isinstance(value, str) else group_text(value) or ""
                if len(text) > _LONGEST_TEXT:
                    text = text[: _LONGEST_TEXT - 1] + "…"
                self.texts.setdefault(column, {}).setdefault(item, text)


@dataclass(frozen=True)
class Record:
    """Verdicts as columns (V,): names by their codes, `score` NaN where there is none.

    `value` has code -1 where nothing was said. `order` sorts what was said by its time.
    """

    item: Names
    criterion: Names
    kind: Names
    author: Names
    value: Names
    cluster: Names
    score: Floats
    order: Ints

    @property
    def size(self) -> int:
        """Number of verdicts, V."""
        return len(self.score)

    def take(self, rows: Any) -> Record:
        """Some of the verdicts."""
        named = {
            name: Names(names.column, names.codes[rows], names.texts)
            for name, names in vars(self).items()
            if isinstance(names, Names)
        }
        return Record(**named, score=self.score[rows], order=self.order[rows])

    def of_kind(self, *kinds: str) -> Record:
        """The verdicts of some kinds of authors."""
        codes = [i for i, text in enumerate(self.kind.texts) if text in kinds]
        return self.take(np.isin(self.kind.codes, codes))


def collected(verdicts: Iterable[Verdict]) -> Record:
    """The columns of verdicts that come one after another."""
    names = ("item", "criterion", "kind", "author", "value", "time", "cluster")
    chunks: dict[str, list[pa.Array]] = {name: [] for name in names}
    scores: list[Floats] = [np.empty(0)]
    met: dict[str, set[str]] = {"criterion": set(), "author": set()}
    for chunk in _chunks(iter(verdicts)):
        columns = dict(zip(Verdict._fields, zip(*chunk, strict=True), strict=True))
        said = _words_and_numbers(columns["value"])
        beside = np.array([number_of(score) for score in columns["score"]])
        scores.append(np.where(np.isnan(beside), [number for _, number in said], beside))
        for name in names:
            values = [word for word, _ in said] if name == "value" else columns[name]
            coded = texts_of(values).dictionary_encode()
            chunks[name].append(coded)
            if name in met:
                met[name].update(t for t in coded.dictionary.to_pylist() if t is not None)
        _check_names({name: chunks[name][-1] for name in names}, met)
    score = np.concatenate(scores)
    made = {name: pa.chunked_array(c or [pa.array([], pa.string())]) for name, c in chunks.items()}
    table = Table.of(made, len(score))
    named = {name: Names.of(table, name, group_text) for name in names}
    # What has no time stands in the order of the log.
    times = named.pop("time")
    rank = np.argsort(np.argsort(np.array(times.texts, dtype=object))) + 1
    late = np.concatenate([rank, [0]])[times.codes]
    order = np.empty(len(score), dtype=np.int64)
    order[np.lexsort([np.arange(len(score)), late])] = np.arange(len(score))
    return Record(**named, score=score, order=order)


def _chunks(verdicts: Iterator[Verdict]) -> Iterator[list[Verdict]]:
    """Some verdicts at a time, without the search for cycles, which takes a quarter of the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        while chunk := list(itertools.islice(verdicts, _CHUNK)):
            yield chunk
    finally:
        if collecting:
            gc.enable()


def _check_names(chunk: Mapping[str, Any], met: Mapping[str, set[str]]) -> None:
    for name, texts in met.items():
        if len(texts) > _MOST_NAMES:
            what = {"criterion": "criteria"}.get(name, f"{name}s")
            raise InputError(
                f"has more than {_MOST_NAMES:,} {what} ({listed(map(quoted, sorted(texts)[:3]))} "
                "and so on): that is no log of judges; see which field holds them"
            )
    for name in ("item", "criterion", "author"):
        longest = max(map(len, filter(None, chunk[name].dictionary.to_pylist())), default=0)
        if longest > LONGEST_NAME:
            raise InputError(
                f"has {'an' if name != 'criterion' else 'a'} {name} whose name is {longest:,} "
                f"characters long; names have at most {LONGEST_NAME:,}"
            )


def _words_and_numbers(values: Sequence[Any]) -> list[tuple[str | None, float]]:
    """What was said as a word and as a number, each value looked at once."""
    known: dict[tuple[type, Any], tuple[str | None, float]] = {}
    said = []
    for value in values:
        try:
            key = (type(value), value)
            if key not in known:
                known[key] = word_and_number(value)
            said.append(known[key])
        except TypeError:  # a list or an object, which is no verdict
            said.append((None, math.nan))
    return said


def time_text(time: Any) -> str | None:
    """A time as text that sorts by it: as it is written, or seconds or milliseconds as digits."""
    return time if isinstance(time, str) or time is None else f"{float(time):020.3f}"


def word_and_number(value: Any) -> tuple[str | None, float]:
    """What a value says as a word (None: nothing), and as a number."""
    if isinstance(value, list | tuple | dict | set):
        return None, math.nan
    if isinstance(value, float) and not math.isfinite(value):
        return None, math.nan
    text = class_text(value)
    if len(text) > LONGEST_NAME or (folded(text) in NO_LABEL and text not in ("-1",)):
        return None, math.nan
    return text, number_of(value)
