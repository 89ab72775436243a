"""Columns that are made of others: the numbers of vectors in cells, and one-hot labels.

A made column says by its name what it is made of, so that whoever reads a part of a file needs the
name alone: `COL[KEY]` is one number of the vectors or objects in the cells of COL (a place from 0,
or a key), and `A|B|C` says which of these columns holds 1. `shaped` finds both in the first rows of
a source; `with_made` makes them of the columns that were read.
"""

from __future__ import annotations

import ast
import itertools
import json
import math
import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fewlabels.data.cells import column_of, named_values
from fewlabels.data.options import ColumnOptions
from fewlabels.data.profiles import cell_patterns, differences, is_role, says, tokens, truth_in_name
from fewlabels.data.roles import split_native
from fewlabels.data.table import MISSING_NUMBERS, Derived, Names, Source, Table, class_text
from fewlabels.errors import InputError, listed, quoted
from fewlabels.kernels.arrays import Floats
from fewlabels.kernels.simplex import softmax

HEAD_ROWS = 1_000
"""First rows by which it is told what the cells of a column are."""

_MOST_CLASSES = 2_000
"""Longer vectors are not looked at."""

_MOST_FIELDS = 20
"""An object of texts with more keys is no table of its own."""

_MOST_CODES = 20
"""Vectors of more different whole numbers are no votes."""

_FEW = 50
"""So few different cells are groups, unless they are probabilities."""

_NEARLY_ALL = 0.9
"""Share of cells that must be alike for the others to be mistakes."""

_OF_LOGITS = re.compile(
    r"(?i).*log[ _-]?(?:its?|odds|probs?|probabilit(?:y|ies)|softmax|likelihoods?)"
)
"""Names of columns whose vectors are logits or log-probabilities."""

_MISSING = {text.lower() for text in MISSING_NUMBERS}

_NONE_OF_THEM = "none"
"""The label of a row whose one-hot columns all hold 0."""

# The names ----------------------------------------------------------------------------------------


def part_of(name: str, columns: Collection[str]) -> tuple[str, str] | None:
    """The column and the key of a made column `COL[KEY]`; None of others."""
    if not name.endswith("]") or name in columns or one_of(name, columns):
        return None
    starts = (i for i, letter in enumerate(name) if letter == "[")
    return next(((name[:i], name[i + 1 : -1]) for i in starts if name[:i] in columns), None)


def one_of(name: str, columns: Collection[str]) -> tuple[str, ...]:
    """The columns of a made column `A|B|C`; none of others."""
    if "|" not in name or name in columns:
        return ()
    names = tuple(name.split("|"))
    there = all(n in columns or part_of(n, columns) is not None for n in names)
    return names if there else ()


def together(name: str | None, columns: Collection[str]) -> tuple[str, ...]:
    """The columns of a made column `A,B`, which name an item together; none of others."""
    if name is None or "," not in name or name in columns:
        return ()
    names = tuple(name.split(","))
    return names if all(n in columns for n in names) else ()


# The cells ----------------------------------------------------------------------------------------

_OPENS = (
    r"^\s*(?:[\[{(]|[A-Za-z_.]*(?:array|tensor|Tensor|Counter|OrderedDict|defaultdict)\(|"
    r"[A-Za-z_][\w.-]*=|[^\"{]*\{\"[^\"]+\"\s*=>)"
)
_CALL = re.compile(
    r"[A-Za-z_.]*(?:array|tensor|Tensor|Counter|OrderedDict|defaultdict)\("
    r"(?:<[^>]*>,)?(.*?)(?:,\s*(?:dtype|device|requires_grad|grad_fn|shape)=.*)?\)",
    re.DOTALL,
)
_SCALAR = re.compile(r"\b(?:np|numpy)\.\w+\(([^()]*)\)")
_LIST = re.compile(r"\[+([^\[\](){}]*)\]+|\(([^\[\](){}]*)\)", re.DOTALL)
_NO_NUMBER = re.compile(r"\b(?:nan|NaN|None|null)\b")


def _number(value: Any) -> float:
    """A number of a cell; ValueError of what is none."""
    if value is None or (isinstance(value, str) and value.strip() in MISSING_NUMBERS):
        return math.nan
    return float(value)


class _Fields(dict[str, Any]):
    """What a cell says by keys, each of which is a column by itself, whatever it holds."""


def _cell(value: Any) -> Mapping[str, Any] | None:
    """The values of a cell by key, the places of a vector as texts; None where it is empty."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, str):
        value = _fields(value) or _parsed(value)
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return None
    while isinstance(value, list | tuple) and len(value) == 1 and not _is_single(value[0]):
        value = value[0]
    pairs = [_named(one) for one in value] if isinstance(value, list | tuple) else []
    if pairs and None not in pairs and len(dict(filter(None, pairs))) == len(pairs):
        value = dict(filter(None, pairs))
    if isinstance(value, Mapping):
        if any(isinstance(one, Mapping) for one in value.values()):
            value = _Fields(named_values(value, ""))
        if not all(map(_is_single, value.values())):
            raise ValueError(value)
        kind = _Fields if isinstance(value, _Fields) else dict
        return kind({class_text(key): one for key, one in value.items()})
    if not isinstance(value, list | tuple):
        raise ValueError(value)
    return {str(i): _number(one) for i, one in enumerate(value)}


def _is_single(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


def _named(value: Any) -> tuple[str, Any] | None:
    """A name and what is said under it: {"label": "cat", "prob": 0.9}, ("cat", 0.9)."""
    if isinstance(value, Mapping):
        under = [key for key in value if says(str(key), "under_a_name")]
        names = [key for key in value if key not in under]
        if under and names and _is_single(value[under[0]]) and _is_single(value[names[0]]):
            return class_text(value[names[0]]), value[under[0]]
        value = tuple(value.values())
    if not isinstance(value, list | tuple) or len(value) != 2:
        return None
    name, number = sorted(value, key=lambda one: not isinstance(one, str))
    return (name, number) if isinstance(name, str) and not isinstance(number, str) else None


def _by_name(cell: Mapping[str, Any], keys: frozenset[str]) -> Mapping[str, Any]:
    """A cell of one object by its name, where this is one of the keys of cells of several."""
    one = _named(cell) if keys and keys.isdisjoint(cell) else None
    return {one[0]: one[1]} if one is not None and one[0] in keys else cell


def _fields(text: str) -> _Fields | None:
    """The values that a text says by the patterns of [cells]; None of another text."""
    for pattern in cell_patterns():
        if "key" in pattern.groupindex and pattern.match(text):
            rest = pattern.sub("", text)
            return None if rest.strip(" ,;") else _Fields(pattern.findall(text))
        if found := pattern.fullmatch(text):
            return _Fields(found.groupdict())
    return None


def _parsed(text: str) -> Any:
    """The value that a text shows, as JSON, Python or numpy write it."""
    text = text.strip()
    if text in MISSING_NUMBERS:
        return None
    called = _CALL.fullmatch(text)
    text = called[1].strip() if called else text
    if "(" in text[1:]:
        text = _SCALAR.sub(r"\1", text)
    numbers = _LIST.fullmatch(text)
    if numbers is not None and "'" not in text and '"' not in text:
        words = (numbers[1] or numbers[2] or "").replace(",", " ").split()
        return [_number(word.rstrip(";")) for word in words]
    if text[:1] not in "[{(":
        raise ValueError(text)
    # Python's quotes are JSON's where there are no others, which is read ten times as fast.
    quotes = text if '"' in text or "\\" in text else text.replace("'", '"')
    try:
        return json.loads(quotes)
    except ValueError:
        with_none = _NO_NUMBER.sub("None", text)
        try:
            return ast.literal_eval(with_none)
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            raise ValueError(text) from None


def _plain(piece: pa.ChunkedArray) -> pa.ChunkedArray:
    return piece.cast(piece.type.value_type) if pa.types.is_dictionary(piece.type) else piece


def is_nested(kind: pa.DataType) -> bool:
    """Whether cells of a type of Arrow are lists, objects or maps."""
    return bool(pa.types.is_nested(kind) and not pa.types.is_dictionary(kind))


_TEXTS = (pa.string(), pa.large_string())


def parts_of(
    piece: pa.ChunkedArray, keys: Sequence[str], column: str, place: Callable[[int], str]
) -> list[pa.Array | pa.ChunkedArray]:
    """What the cells of a column hold by some keys, a column each; others are refused."""
    piece = _plain(piece)
    of_logits = _OF_LOGITS.fullmatch(column) is not None
    block = _vectors(piece) if all(key.isdigit() for key in keys) else None
    if block is not None and max(map(int, keys)) < block.shape[1]:
        block = softmax(block) if of_logits else block
        columns = (block[:, int(key)] for key in keys)
        return [pa.array(numbers, mask=np.isnan(numbers)) for numbers in columns]
    cells: list[Mapping[str, Any]] = []
    size, wanted = 0, frozenset(keys)
    for row, value in enumerate(piece.to_pylist()):
        try:
            cell = _cell(value)
            cell = cell and _by_name(cell, wanted)
            if cell and of_logits:
                shares = softmax(np.array([[_number(one) for one in cell.values()]]))[0]
                cell = dict(zip(cell, shares.tolist(), strict=True))
        except (ValueError, TypeError):
            cell = {}
        places = cell is not None and all(key.isdigit() for key in (*keys, *cell))
        size = size or (len(cell or {}) if places else 0)
        if cell is not None and (not cell or (places and len(cell) != size)):
            _refuse(column, value, cell, max(size, len(keys)), place(row))
        cells.append(cell or {})
    return [column_of([cell.get(key) for cell in cells]) for key in keys]


def _refuse(column: str, value: Any, cell: Mapping[str, Any], size: int, where: str) -> NoReturn:
    text = quoted(value if isinstance(value, str) else str(value))
    if "..." in text:
        raise InputError(
            f"column {quoted(column)} holds a vector that numpy shortened, {text}, in {where}; "
            "write all of it: numpy.set_printoptions(threshold=sys.maxsize)"
        )
    raise InputError(
        f"column {quoted(column)} holds {len(cell) or 'no'} numbers in {where} ({text}), and "
        f"{size} in the first: make the cells alike, or leave this one empty"
    )


def _vectors(piece: pa.ChunkedArray) -> Floats | None:
    """The numbers of vectors of one size, (n, K), all at once; None of other cells."""
    if piece.type in _TEXTS:
        bare = pc.replace_substring_regex(pc.utf8_trim_whitespace(piece), r"^[\[(]+|[\])]+$", "")
        bare = pc.utf8_trim_whitespace(pc.replace_substring_regex(bare, r"[\s,]+", " "))
        lists = pc.split_pattern(pc.if_else(pc.equal(bare, ""), None, bare), " ")
    elif is_nested(piece.type) and hasattr(piece.type, "value_type"):
        lists = piece
    else:
        return None
    there = np.array(lists.is_valid().to_pylist(), dtype=bool)
    sizes = pc.unique(pc.list_value_length(lists).drop_null()).to_pylist()
    if len(sizes) != 1:
        return None
    flat = pa.chunked_array([chunk.flatten() for chunk in lists.chunks])
    try:
        numbers = Table.of({"": flat}, len(flat)).numbers("")
    except (InputError, pa.ArrowException):
        return None
    out = np.full((len(piece), sizes[0]), np.nan)
    out[there] = numbers.reshape(-1, sizes[0])
    return out


# The columns of a source --------------------------------------------------------------------------


@dataclass(frozen=True)
class Look:
    """What the cells of a column are in the first rows: keys, if they hold values by key.

    `mixed` says that some of these are texts, `sums` that the numbers of every cell sum to 1 (or
    100), `whole` that they are 0 and 1, `votes` that they are codes of classes, -1 for none; `why`
    is what keeps cells that look like vectors from being read as such.
    """

    keys: tuple[str, ...] = ()
    sums: bool = False
    whole: bool = False
    mixed: bool = False
    votes: bool = False
    why: str = ""


def look_at(piece: pa.ChunkedArray) -> Look:
    """Look at the cells of a column; no keys where they are something else."""
    piece = _plain(piece.slice(0, HEAD_ROWS))
    if piece.type in _TEXTS:
        opens = pc.match_substring_regex(piece, _OPENS)
        filled = pc.sum(pc.invert(pc.is_in(piece, pa.array(MISSING_NUMBERS, piece.type)))).as_py()
        if not filled or (pc.sum(opens).as_py() or 0) < filled - piece.null_count:
            return Look()
    elif not is_nested(piece.type):
        return Look()
    cells: list[Mapping[str, Any]] = []
    for value in piece.to_pylist():
        try:
            cell = _cell(value)
        except (ValueError, TypeError):
            begins = isinstance(value, str) and re.match(r"\s*[\[(]+\s*[-+.\d]", value)
            shortened = begins and "..." in str(value)
            return Look(why="vectors that numpy shortened with '...'" if shortened else "")
        if cell is not None:
            cells.append(cell)
    if not cells:
        return Look()
    several = frozenset(key for cell in cells if len(cell) > 1 and not _named(cell) for key in cell)
    cells = [_by_name(cell, several) for cell in cells]
    keys = tuple(dict.fromkeys(key for cell in cells for key in cell))
    vectors = keys == tuple(str(i) for i in range(len(keys)))
    sizes = Counter(map(len, cells)).most_common()
    if vectors and sizes[0][1] >= _NEARLY_ALL * len(cells):
        keys = keys[: sizes[0][0]]  # a cell of another size is refused with its place
        cells = [cell for cell in cells if len(cell) == len(keys)]
    elif vectors:
        shortest, longest = min(map(len, cells)), max(map(len, cells))
        return Look(why=f"lists of {shortest} to {longest} numbers")
    if len(keys) < 1 + vectors or not all(cells):
        return Look()
    if len(keys) > 1 and _of_persons(cells, keys):
        return Look(keys, votes=True)
    if len(keys) < 2 or any(isinstance(cell, _Fields) for cell in cells):
        return Look(keys, mixed=True) if len(keys) <= _MOST_FIELDS else Look()
    if not vectors and len({key.isdigit() for key in keys}) > 1:
        return Look()
    try:
        numbers = [[_number(value) for value in cell.values()] for cell in cells]
    except (ValueError, TypeError):
        return Look(keys, mixed=True) if len(keys) <= _MOST_FIELDS else Look()
    if len(keys) > _MOST_CLASSES or (not vectors and 2 * len(keys) > sum(map(len, cells))):
        return Look(why=f"{len(keys):,} numbers by cell")
    totals = np.array([sum(cell) for cell in numbers])
    totals = totals[~np.isnan(totals)]
    every = [number for cell in numbers for number in cell]
    off = np.abs(totals - 1) < 0.01 + 0.001 * len(keys)
    percent = np.abs(totals - 100) < 1 + 0.1 * len(keys)
    sums = len(totals) > 0 and not min(every) < 0 and (off.all() or percent.all())
    codes = set(every)
    if vectors and -1 in codes and len(codes) <= _MOST_CODES and all(c % 1 == 0 for c in codes):
        return Look(keys, votes=True)
    few = len({tuple(cell) for cell in numbers})
    if not sums and 2 * few <= len(cells) and few <= _FEW:
        return Look()  # intervals, and other groups that are written so
    return Look(keys, bool(sums), all(number in (0.0, 1.0) for number in every))


def _of_persons(cells: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> bool:
    """Whether texts hold by the names of persons what each of them says, in the same few words."""
    if not all(isinstance(cell, _Fields) for cell in cells):
        return False
    if any(is_role(key) or truth_in_name(key) for key in keys):
        return False
    words = [{str(cell[key]) for cell in cells if cell.get(key)} for key in keys]
    every = set[str]().union(*words)
    numbers = any(map(str.isdigit, "".join(every)))
    same = all(len(of & words[0]) > 1 for of in words)
    return same and not numbers and len(every) <= _FEW_VOTES


_FEW_VOTES = 10
"""Words in which persons say something, at most."""


@dataclass(frozen=True)
class Shaped(Derived):
    """A source whose vectors, objects and one-hot labels are columns of their own.

    `names` has them in place of what they are made of. `notes` say what is not read, `said` what
    cells are predictions.
    """

    inner: Source
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()
    said: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """What the source says of itself, and what is read of its cells as predictions."""
        return (*super().lines, *self.said)

    @cached_property
    def own(self) -> frozenset[str]:
        """The columns of the source as it is."""
        return frozenset(self.inner.names)

    def read(self, numbers: Collection[str], texts: Collection[str]) -> Table:
        """Read some columns, or make them."""
        plain, needed = needs(numbers, texts, self.own)
        table = self.inner.read(plain, needed)
        table.notes.extend(self.notes)
        return with_made(table, [*numbers, *texts])


def needs(
    numbers: Iterable[str], texts: Iterable[str], own: Collection[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns of a source to read as numbers and as texts, for some that may be made."""
    plain = [n for n in numbers if not is_made(n, own)]
    wanted = [*texts, *(n for n in numbers if is_made(n, own))]
    parts = (p for n in wanted for p in one_of(n, own) or together(n, own) or (n,))
    bases = dict.fromkeys((part_of(n, own) or (n,))[0] for n in parts)
    return tuple(plain), tuple(base for base in bases if base not in plain)


def is_made(name: str, own: Collection[str]) -> bool:
    """Whether a column is made of others of a source."""
    return bool(part_of(name, own) or one_of(name, own) or together(name, own))


def with_made(table: Table, names: Iterable[str]) -> Table:
    """The table with these columns, of which some are made of those it has."""
    names = tuple(dict.fromkeys(names))
    own = frozenset(table.names)
    if not any(is_made(name, own) for name in names):
        return table
    keys: dict[str, list[str]] = {}
    for name in names:
        for one in one_of(name, own) or (name,):
            part = part_of(one, own)
            if part is not None and part[1] not in keys.setdefault(part[0], []):
                keys[part[0]].append(part[1])
    made: dict[str, list[pa.ChunkedArray]] = {}
    for column, own_keys in keys.items():
        start = 0
        for piece in table.pieces(column):

            def place(row: int, start: int = start) -> str:
                return table.place(start + row)

            for key, part in zip(own_keys, parts_of(piece, own_keys, column, place), strict=True):
                made.setdefault(f"{column}[{key}]", []).append(pa.chunked_array(part))
            start += len(piece)
        if _OF_LOGITS.fullmatch(column):
            table.notes.append(
                f"column {quoted(column)} is read as logits, or logarithms of probabilities: a "
                "softmax turns each cell into probabilities"
            )
    table = table.with_columns(made)
    hot = {name: several for name in names if (several := one_of(name, own))}
    labels = {name: [_one_hot(table, several)] for name, several in hot.items()}
    labels |= {name: [_key(table, several)] for name in names if (several := together(name, own))}
    return replace(table.with_columns(labels), names=names)


def _key(table: Table, columns: Sequence[str]) -> pa.ChunkedArray:
    """What several columns say of an item together; null where one of them is empty."""
    each = (Names.of(table, column, lambda value: class_text(value) or None) for column in columns)
    rows = zip(*(names.each().tolist() for names in each), strict=True)
    return pa.chunked_array([pa.array([None if None in row else ", ".join(row) for row in rows])])


def _one_hot(table: Table, columns: Sequence[str]) -> pa.ChunkedArray:
    """Which of some columns holds 1, by what their names differ in; null where all are empty."""
    names = differences(columns) or tuple(columns)
    block = np.stack([_flags(table, column) for column in columns], axis=1)
    wrong = np.flatnonzero((block < 0).any(axis=1))
    several = np.flatnonzero((block == 1).sum(axis=1) > 1)
    if len(wrong) or len(several):
        row = int((wrong if len(wrong) else several)[0])
        cells = ", ".join(f"{c} = {table.cell(c, row)}" for c in columns[:6])
        what = "hold more than 0 and 1" if len(wrong) else "hold 1 more than once"
        raise InputError(
            f"columns {listed(map(quoted, columns), 4)} say by 1 which class an item is of, and "
            f"{what} in {table.place(row)} ({cells}): correct it; if an item may be of several "
            f"classes, judge one of them: --label {shlex.quote(columns[0])}"
        )
    which = np.where((block == 1).any(axis=1), np.nanargmax(np.nan_to_num(block), axis=1), -1)
    which = np.where(np.isnan(block).all(axis=1), -2, which)
    texts = [*names, None, _NONE_OF_THEM]  # -2 and -1 count from the end
    return pa.chunked_array([pa.array([texts[k] for k in which.tolist()], pa.large_string())])


_FLAGS = {"1": 1.0, "0": 0.0, "true": 1.0, "false": 0.0}


def _flags(table: Table, column: str) -> Floats:
    """A column of 1 and 0, or true and false, (n,): NaN where it is empty, -1 of anything else."""
    codes, values = table.categories(column)
    texts = [class_text(value).lower() for value in values]
    flags = [math.nan if t in _MISSING else _FLAGS.get(t, -1.0) for t in texts]
    return np.array([*flags, math.nan])[codes]


# What a source has --------------------------------------------------------------------------------


def shaped(source: Source, options: ColumnOptions) -> tuple[Source, ColumnOptions]:
    """The source with vectors, objects and one-hot labels as columns, and the options in them."""
    # An option that names the column of a vector means all its numbers; `--label A,B,C` the labels
    # that these columns hold one-hot, `--item A,B` what these say together. Columns that have a
    # native name are what it says.
    names = source.names
    if len(set(names)) < len(names):
        return source, options
    free = [n for n in names if n and split_native(n) is None]
    if {*free} <= {"label"} and len(free) < len(names):  # all say by their names what they hold
        return source, options
    try:
        head = first_rows(source, free)
        looks = {name: look for name, column in head.items() if (look := look_at(column)) != Look()}
    except (InputError, pa.ArrowException, OSError):
        return source, options  # whoever reads it says what is wrong
    joined = _one_hot_families(head, options) if len(head) > 1 else {}
    key = [options.item] if options.item and together(options.item, names) else []
    if not looks and not joined and not key:
        return source, options
    claimed = options.of_classifiers
    parts = {n: tuple(f"{n}[{key}]" for key in look.keys) for n, look in looks.items()}
    one_hot = {
        n: "|".join(parts[n]) for n, look in looks.items()
        if look.whole and look.sums and (n == options.label or truth_in_name(n) > 1)
    }  # fmt: skip
    # What has a role by its name, or is named, is refused where it is read.
    needed = {"label", "weight", "domain", options.label, options.weight, options.domain}
    needed |= {options.item, options.stratum, *options.cluster, *(options.keep or ())}
    shown: dict[str, None] = {}
    why: list[str] = []
    for name in names:
        own = looks.get(name)
        if own is None:
            shown[joined.get(name, name)] = None
        elif name in one_hot:
            shown[one_hot[name]] = None
        elif (
            own.sums or own.mixed or own.votes or claimed & {name, *parts[name]}
            or (own.keys and _OF_LOGITS.fullmatch(name))
        ):  # fmt: skip
            shown |= dict.fromkeys(parts[name])
        else:
            what = own.why or f"{len(own.keys)} numbers in each cell that do not sum to 1"
            asked = f"--logits {shlex.quote(f'NAME={name}')}"
            mend = "" if own.why else f": if they are logits or log-probabilities, say {asked}"
            why.append(f"column {quoted(name)} holds {what}, and is not used{mend}")
            shown |= {name: None} if name in needed else {}
    made = {n: p for n, p in parts.items() if p}
    shown |= dict.fromkeys(key)
    votes = [n for n, own in looks.items() if own.votes and not claimed & {n, *parts[n]}]
    said = tuple(
        f"hard predictions: the {len(parts[n])} votes in each cell of column {quoted(n)}"
        f"{'; -1 is none' * looks[n].keys[0].isdigit()}" for n in votes
    )  # fmt: skip
    options = replace(options, hard={**options.hard, **{p: p for n in votes for p in parts[n]}})
    return Shaped(source, tuple(shown), tuple(why), said), _in_parts(
        options, made, {**joined, **one_hot}
    )


def first_rows(source: Source, names: Sequence[str]) -> dict[str, pa.ChunkedArray]:
    """The first rows of some columns."""
    if not names:
        return {}
    parts = getattr(source, "parts", None)
    for part in parts if isinstance(parts, tuple) else (source,):
        if hasattr(part, "head"):
            return dict(part.head(names, HEAD_ROWS))
        if callable(getattr(part, "batches", None)):
            batches = itertools.islice(part.batches((), names), 1)
            table = Table.of_batches(batches, names)
        else:
            table = part.read((), names)
        if table.n_rows:
            return {name: table.pieces(name)[0].slice(0, HEAD_ROWS) for name in names}
    return {}


def _one_hot_families(
    head: Mapping[str, pa.ChunkedArray], options: ColumnOptions
) -> dict[str, str]:
    """Column -> the made column of the one-hot labels that it is of."""
    said = re.split("[,|]", options.label or "")
    if len(said) > 1 and options.label not in head and all(name in head for name in said):
        return dict.fromkeys(said, "|".join(said))
    claimed = {*options.of_classifiers, options.label, options.domain, options.weight, options.item}
    stems: dict[str, list[str]] = {}
    for name in head:
        words = tokens(name)
        stem = "_".join(words[:-1])
        if len(words) > 1 and name not in claimed and truth_in_name(stem) == 3:
            stems.setdefault(stem, []).append(name)
    out: dict[str, str] = {}
    for columns in stems.values():
        if len(columns) < 2 or options.label is not None:
            continue
        table = Table.of({n: head[n] for n in columns}, len(head[columns[0]]))
        block = np.stack([_flags(table, name) for name in columns], axis=1)
        ones = (block == 1).sum(axis=1)
        filled = int((~np.isnan(block)).any(axis=1).sum())
        # Rows of two labels are mistakes where nearly all others have one, and refused with their
        # place; beside rows of none they say that an item may have several.
        most = (_NEARLY_ALL if (ones > 1).any() else 0.5) * filled
        if not (block < 0).any() and (ones == 1).sum() > most:
            out |= dict.fromkeys(columns, "|".join(columns))
    return out


def _in_parts(
    options: ColumnOptions, parts: Mapping[str, tuple[str, ...]], labels: Mapping[str, str]
) -> ColumnOptions:
    """The options by the made columns, where they name columns of vectors or of one-hot labels."""
    models: dict[str, tuple[str, ...]] = {}
    logits: dict[str, tuple[str, ...]] = {}
    for own, mapped in ((models, options.models), (logits, options.logits)):
        for model, columns in mapped.items():
            softened = all(c in parts and _OF_LOGITS.fullmatch(c) for c in columns)
            spread = tuple(p for column in columns for p in parts.get(column, (column,)))
            (models if softened else own)[model] = spread
    label = options.label
    if label is not None:
        label = labels.get(label, labels.get(re.split("[,|]", label)[0], label))
    sure = [name for name in labels if name in parts and truth_in_name(name) == 3]
    if label is None and len(sure) == 1:
        label = labels[sure[0]]  # places say nothing of the classes: what they mean is asked
    return replace(options, models=models, logits=logits, label=label)


@contextmanager
def telling(source: Source | None) -> Iterator[None]:
    """Add to the message that nothing is a prediction what cells hold that is not read as one."""
    try:
        yield
    except InputError as error:
        if type(error) is not InputError or "no prediction columns" not in str(error):
            raise
        every = () if source is None else getattr(source, "sources", (source,))
        notes = [note for one in every for note in getattr(one, "notes", ())]
        notes += [note for one in every for note in _tagged(one)]
        if not notes:
            raise
        raise InputError("; ".join([str(error), *dict.fromkeys(notes)])) from None


_TAGS_EACH = 1.5
"""Tags of a cell, on average, from which its column holds several."""


def tags_in(texts: Iterable[str], each: int = 1) -> str:
    """What stands between tags, if texts are sets of `each` times fewer of them; or nothing."""
    # Cells have several tags on average, not all as many, and none of them twice.
    held = {text.strip(" []") for text in texts} - {""}
    sets = [re.split(r"[\s,;|]+", text) for text in held]
    tags = {tag for one in sets for tag in one}
    several = sum(map(len, sets)) >= _TAGS_EACH * len(sets) and len({*map(len, sets)}) > 1
    if not several or any(len({*one}) < len(one) for one in sets) or each * len(tags) >= len(sets):
        return ""
    return next((mark for mark in ",;|" if any(mark in text for text in held)), " ")


def tags_as_tasks(name: str, mark: str, texts: Iterable[str]) -> str:
    """How to write a column of tags so that it is read."""
    lists = any(text[:1] == "[" for text in texts)
    words = f".astype(str).str.findall(r'[\\w-]+').str.join({mark!r})" * lists
    return (
        f"column {quoted(name)} holds several tags in a cell, which is not read: give each tag a "
        f"column of 0 and 1, true_TAG of the labels and pred_TAG of a classifier (pandas: "
        f"frame[{name!r}].dropna(){words}.str.get_dummies({mark!r})), and every tag is a task"
    )


def _tagged(source: Source) -> Iterator[str]:
    """Say of columns whose cells are sets of few words that a word needs a column of its own."""
    for name, column in first_rows(source, [n for n in source.names if n]).items():
        cells = [str(value) for value in _plain(column).to_pylist() if value is not None]
        if mark := tags_in(cells):
            yield tags_as_tasks(name, mark, cells)
