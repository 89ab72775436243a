"""Columns that were read, and what every kind of source must be able to do.

Texts first: one per class and per group, whatever type a file holds it in.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fewlabels.checks.class_words import numbers_of
from fewlabels.data.limits import refuse_whole
from fewlabels.errors import FewlabelsError, InputError, listed, one_line, quoted, redacted
from fewlabels.kernels.arrays import Array, Floats, Ints

# No leading zero: 007 and 7 may well be two codes.
_INTEGRAL = re.compile(r"(-?(?:0|[1-9][0-9]*))(?:\.0*)?")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]*)?")
_MOST_DIGITS = 18
_JOINED_BYTES = 1 << 30


def class_text(value: Any) -> str:
    """The text of a class or label: 1, 1.0 and "1" are one; null and NaN are the empty text."""
    text = (group_text(value) or "").strip()
    integral = _INTEGRAL.fullmatch(text)
    if integral is None:
        return text
    return "0" if integral[1] == "-0" else integral[1]


NO_LABEL = ("", "-1")
"""Texts of a native column of labels where none is known."""


def group_text(value: Any) -> str | None:
    """The text of a group: strings as they are, 1 and 1.0 as 1; None for null, NaN and blank."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None:
        return None
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, float):
        if math.isnan(value):
            return None
        if math.isfinite(value) and value == int(value):
            return str(int(value))
    return str(value)


def number_of(value: Any) -> float:
    """A number, also where it is written as text; NaN where it is none, or not finite."""
    if value is None or isinstance(value, bool):
        return math.nan
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return number if math.isfinite(number) else math.nan


def shown_number(value: float) -> str:
    """A number as a file has it: the fewest digits that are this number, in either precision."""
    with np.errstate(over="ignore", under="ignore"):
        single = np.float32(value)
    return str(single) if float(single) == value else repr(float(value))


def fractions_in(texts: Collection[str]) -> bool:
    """Whether all are numbers, and some no whole ones: what a classifier says, and no class."""
    try:
        return bool(texts) and any(float(text) % 1 != 0 for text in texts)
    except ValueError:
        return False


def in_order(texts: Iterable[str], *, in_words: bool = True) -> tuple[str, ...]:
    """Numbers, also `in_words`, by value, then the rest by alphabet, as scikit-learn has them."""
    ordered = sorted(texts)
    values = numbers_of(ordered) if in_words else None
    if values is None:
        values = np.array([float(t) if _NUMBER.fullmatch(t) else math.inf for t in ordered])
    return tuple(ordered[place] for place in np.argsort(values, kind="stable"))


def class_names(texts: Iterable[str]) -> tuple[int, ...] | tuple[str, ...]:
    """Integers when every class is written as one, else the texts."""
    names = tuple(texts)
    if all(_INTEGRAL.fullmatch(t) and "." not in t and len(t) <= _MOST_DIGITS for t in names):
        return tuple(int(t) for t in names)
    return names


MISSING_NUMBERS = (
    *("", "NA", "N/A", "n/a", "#N/A", "<NA>", "None"),
    *("NaN", "nan", "-NaN", "-nan", "NULL", "null"),
)
"""Texts that stand for a missing number."""

SAMPLE_ROWS = 100
"""Rows behind a header by which it is told whether it is one."""

FRONT_ROWS = 1_000
"""First rows among which the table begins."""

HEADER_SURE = 2.0
"""Evidence from which a first row is names of columns, or, below 0, an item."""

NATIVE = re.compile(r"label|item|annotator|domain|weight|[pysh]__.+")
"""Names of columns that say what they are by the contract."""


def shape(text: str) -> str:
    """A text with every run of digits as one 0, without a sign."""
    return re.sub(r"\d+", "0", text.removeprefix("-"))


def header_evidence(names: Sequence[str], sample: Sequence[Sequence[str]]) -> float:
    """How much says that a first row names columns (above 0), or is an item as those below it."""
    # Per column: a word above numbers is a name. A value that recurs below among few is an item's,
    # and so is a number or an identifier of the shape of those below, or one behind the same signs
    # (`__label__`) as all of them; a word that does not recur
    # among few is rather a name. Numbers in order (0, 1, 2) are names that were counted.
    if any(map(NATIVE.fullmatch, names)):
        return math.inf
    digits = [name for name in names if name.isdecimal()]
    counted = digits in ([str(i + k) for i in range(len(digits))] for k in (0, 1))
    rows = [row for row in sample if list(row) != list(names)]
    times = Counter(names)
    evidence = 0.0
    for k, name in enumerate(names):
        below = [row[k].strip() for row in rows if len(row) > k and row[k].strip()]
        if name in MISSING_NUMBERS or not below or (counted and name.isdecimal()):
            continue
        shapes = Counter(map(shape, below))
        most, often = shapes.most_common(1)[0]
        alike = "0" in shape(name) and shape(name) == most and 2 * often >= len(below)
        numbers, signs = all(map(_is_number, below)), re.split(r"[^\W_]", name)[0]
        if numbers and not _is_number(name):
            evidence += 2 * HEADER_SURE
        elif _is_number(name):
            evidence -= (alike or name in below or times[name] > 1) * HEADER_SURE / 2
        elif 2 * len(set(below)) <= len(below):
            evidence += -HEADER_SURE if name in below else HEADER_SURE / 2
        elif alike or (len(signs) > 1 and all(cell.startswith(signs) for cell in below)):
            evidence -= HEADER_SURE
    return evidence


def table_start(rows: Sequence[Sequence[str]], *, header: bool = True) -> int:
    """The row from which all have one width, or all columns are named; 0 where it is in doubt."""
    # Behind lines of text, or behind titles that leave columns of the table without a name.
    widths = [len(row) for row in rows]
    if len(set(widths)) == 1:
        first = next((i for i, row in enumerate(rows) if all(map(str.strip, row))), 0)
        named = [cell.strip() for cell in rows[first]]
        sample = rows[first + 1 :][:SAMPLE_ROWS]
        sure = header and len({*named}) == len(named) > 1 and not any(map(_is_number, named))
        in_front = sure and 0 < first <= len(sample)
        return first if in_front and header_evidence(named, sample) >= HEADER_SURE else 0
    first = max((i for i, width in enumerate(widths) if width != widths[-1]), default=-1) + 1
    if not 0 < first <= len(rows) - first or max(widths[:first]) >= widths[-1]:
        return 0
    texts, sample = rows[:first], rows[first + 1 :][:SAMPLE_ROWS]
    if sum(map(bool, texts[-1])) > 1 or any(
        re.fullmatch(r"[\w.+-]*", cells[0].strip()) for cells in texts
    ):
        return 0
    named = [cell.strip() for cell in rows[first]]
    return 0 if header and 0 <= header_evidence(named, sample) < HEADER_SURE else first


def header_levels(rows: Sequence[Sequence[str]]) -> tuple[list[str], int] | None:
    """The names that two rows of a header give together, and how many rows they take; else None."""
    # As pandas writes columns of two levels: names that repeat in the first row, apart by the
    # second, which holds words where the rows below hold numbers; perhaps a row that names the
    # index alone.
    first, second, *below = (
        [[cell.strip() for cell in row] for row in rows[: SAMPLE_ROWS + 3]]
        if len(rows) > 3
        else ([], [])
    )
    pairs = [*zip(first, second, strict=False)]
    named = [pair for pair in pairs if all(pair)]
    alone = [not any(row[1:]) and bool(row[:1]) for row in below[:1]] == [True]
    below = below[alone:]
    cells = {k: {row[k] for row in below if len(row) > k and row[k]} for k in range(len(pairs))}
    numbers = [
        k for k, (_, name) in enumerate(pairs)
        if name and not _is_number(name) and cells[k] and all(map(_is_number, cells[k]))
    ]  # fmt: skip
    repeated = len({above for above, _ in named}) < len({*named}) == len(named)
    if not repeated or not numbers:
        return None
    index = rows[2][0].strip() if alone else ""
    return [index if not any(pair) else "_".join(filter(None, pair)) for pair in pairs], 2 + alone


class NoHeaderError(InputError):
    """The first row is one of data, and no header."""


def check_header(
    names: Sequence[str], sample: Sequence[Sequence[str]], mend: str
) -> tuple[str, ...]:
    """Refuse a first row that is an item, with how to say so; a note where it may be one."""
    if any(map(NATIVE.fullmatch, names)):
        return ()
    evidence = header_evidence(names, sample)
    shown = listed(map(quoted, filter(None, names)), 3)
    if evidence <= -HEADER_SURE / 2:
        raise NoHeaderError(
            f"the first row ({shown}) looks like an item, and not like names of columns: {mend}"
        )
    again = [
        name for k, name in enumerate(names) if name and evidence < HEADER_SURE
        and sum(len(row) > k and row[k].strip() == name for row in sample) > 1
    ]  # fmt: skip
    if not again:
        return ()
    return (
        f"the first row ({shown}) is taken for names of columns, though {quoted(again[0])} is a "
        f"value below it too: {mend}",
    )


def _is_number(text: str) -> bool:
    """Whether a text is a number, a missing one, or one as people write them."""
    return text in MISSING_NUMBERS or bool(_WRITTEN.fullmatch(text))


_WRITTEN = re.compile(r"[-+]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][-+]?\d+)?%?")


def distinct_names(
    names: Sequence[str], alike: Callable[[int, int], bool]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of which none repeats, and notes: equal columns are one, different ones numbered."""
    places: dict[str, list[int]] = {}
    out, notes = list(names), []
    for i, name in enumerate(names):
        before = places.setdefault(name, [])
        if not name or not before:
            before.append(i)
            continue
        if any(alike(j, i) for j in before):
            out[i] = ""
            notes.append(f"two columns named {quoted(name)} are equal, and read as one")
            continue
        if NATIVE.fullmatch(name):
            raise InputError(f"two columns are named {quoted(name)}; rename or drop one of them")
        before.append(i)
        number = len(before)
        while f"{name}.{number}" in names:
            number += 1
        out[i] = f"{name}.{number}"
        notes.append(
            f"two columns are named {quoted(name)} and differ: the later one is called "
            f"{quoted(out[i])}"
        )
    return tuple(out), tuple(dict.fromkeys(notes))


@contextmanager
def readable(
    kind: str, *, mend: str = "write it again", memory: str = "does not fit into memory"
) -> Iterator[None]:
    """Say of whatever stops the reading of a file, which may be any error, that it is damaged."""
    try:
        yield
    except FewlabelsError:
        raise
    except MemoryError:
        raise InputError(memory) from None
    except Exception as error:
        raise InputError(
            f"cannot be read as {kind}, it is damaged or cut short ({error}); {mend}"
        ) from None


BROKEN_ROWS: ContextVar[dict[str, int] | None] = ContextVar("broken_rows", default=None)
"""What is said of rows that are passed over, and their numbers from 1; None: they are refused."""


def rows_passed(row: int) -> int:
    """The number of a row, from 0, in a file of which some rows are passed over."""
    for number in sorted((BROKEN_ROWS.get() or {}).values()):
        row += number <= row + 1
    return row


@contextmanager
def naming_file(name: str | None) -> Iterator[None]:
    """Put the file's name before the message of an error of the input, and keep it to one line."""
    where = "" if name is None else f"{name}: "
    try:
        yield
    except InputError as error:
        error.args = (one_line(redacted(f"{where}{error}")),)
        raise  # of its own kind
    except MemoryError:
        raise InputError(f"{where}does not fit into memory; read fewer columns or rows") from None
    except (OSError, pa.ArrowException, UnicodeError, RecursionError) as error:
        why = (isinstance(error, OSError) and error.strerror) or error
        raise InputError(one_line(f"{where}cannot be read: {why}")) from None


Place = Callable[[int], str]
"""Index of an item, from 0 -> where a person finds it."""


def row_place(row: int) -> str:
    """Where a row is of a file without a header of its own."""
    return f"row {row + 1}"


@dataclass(frozen=True)
class Table:
    """Some columns of a source.

    `pieces` gives a column in pieces (one per file) that may differ in type; it may read them when
    it is called, so that a file is not held in memory beside the arrays made from it. `notes` say
    how cells were read that are not plain numbers; `decimal_comma` says that 1,234 is between 1
    and 2; `scaled` are the columns whose percentages were divided by 100; `files` are the names
    and rows of the files that it is made of, where these are several.
    """

    names: tuple[str, ...]
    pieces: Callable[[str], Sequence[pa.ChunkedArray]]
    n_rows: int
    place: Place
    notes: list[str] = field(default_factory=list)
    decimal_comma: bool = False
    scaled: set[str] = field(default_factory=set)
    files: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(
        cls, columns: Mapping[str, pa.ChunkedArray], n_rows: int, place: Place = row_place,
        notes: Iterable[str] = (),
    ) -> Table:  # fmt: skip
        """Columns that have been read."""
        return cls(tuple(columns), lambda name: [columns[name]], n_rows, place, list(notes))

    @classmethod
    def of_batches(
        cls,
        batches: Iterable[pa.RecordBatch],
        names: Iterable[str],
        place: Place = row_place,
        *,
        decimal_comma: bool = False,
        notes: Iterable[str] = (),
    ) -> Table:
        """Record batches one after another, though their types may differ."""
        same = itertools.groupby(batches, key=lambda batch: batch.schema)
        tables = [pa.Table.from_batches(list(part)) for _, part in same]
        n_rows = sum(len(table) for table in tables)
        return cls(
            tuple(names), lambda name: [table.column(name) for table in tables], n_rows, place,
            list(notes), decimal_comma=decimal_comma,
        )  # fmt: skip

    def with_columns(self, columns: Mapping[str, Sequence[pa.ChunkedArray]]) -> Table:
        """The table with further columns, or others in their place."""
        return replace(
            self,
            names=tuple(dict.fromkeys([*self.names, *columns])),
            pieces=lambda name: columns[name] if name in columns else self.pieces(name),
        )

    def numbers(self, name: str) -> Floats:
        """A column as real numbers, shape (n,); NaN where it is empty."""
        out = np.empty(self.n_rows)
        start = 0
        before: bool | None = None
        for piece in self.pieces(name):
            self.scaled.discard(name)
            if pa.types.is_dictionary(piece.type):
                piece = piece.cast(piece.type.value_type)
            try:
                found = self._numeric(name, piece, start)
            except pa.ArrowException:
                self._refuse_bytes(name, piece, start)
                raise
            if found.null_count < len(found):
                if before not in (None, name in self.scaled):
                    refuse_mixed(name)
                before = name in self.scaled
            for chunk in found.chunks:
                out[start : start + len(chunk)] = _values(chunk, math.nan)
                start += len(chunk)
        return out

    def categories(self, name: str) -> tuple[Ints, list[Any]]:
        """A column as codes (n,), -1 where it is null, into its values, which may repeat."""
        codes = np.empty(self.n_rows, dtype=np.int64)
        values: list[Any] = []
        start = 0
        for piece in self.pieces(name):
            stop = start + len(piece)
            try:
                known = _encode(piece, codes[start:stop])
            except (pa.ArrowException, ValueError):
                self._refuse_bytes(name, piece, start)
                raise InputError(
                    f"column {quoted(name)} holds {piece.type}, which cannot be read as names; "
                    "store it as text"
                ) from None
            codes[start:stop][codes[start:stop] >= 0] += len(values)
            values.extend(known)
            start = stop
        return codes, values

    def cell(self, name: str, row: int) -> str:
        """A cell as the file has it: a text as it is written, a number by its own digits."""
        for piece in self.pieces(name):
            if row < len(piece):
                value = piece[row].as_py()
                return shown_number(value) if isinstance(value, float) else str(value).strip()
            row -= len(piece)
        raise IndexError(row)

    def head(self, name: str, rows: int) -> Floats:
        """The first rows of a column (of every piece) as `numbers` gives them."""
        pieces = [piece.slice(0, rows) for piece in self.pieces(name)]
        size = sum(len(piece) for piece in pieces)
        part = Table((name,), lambda _: pieces, size, self.place, [], self.decimal_comma)
        return part.numbers(name)

    def _refuse_bytes(self, name: str, piece: pa.ChunkedArray, start: int) -> None:
        """Refuse texts that are not UTF-8, as binary formats store any, with their place."""
        kind = piece.type
        if pa.types.is_dictionary(kind):
            piece, kind = piece.cast(kind.value_type), kind.value_type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            return
        for row, value in enumerate(piece.cast(pa.large_binary()).to_pylist()):
            try:
                _ = value and value.decode()
            except UnicodeDecodeError:
                raise InputError(
                    f"column {quoted(name)} holds text that is not UTF-8: {quoted(value)} in "
                    f"{self.place(start + row)}; write it again as UTF-8"
                ) from None

    def _numeric(self, name: str, piece: pa.ChunkedArray, start: int) -> pa.ChunkedArray:
        kind = piece.type
        if pa.types.is_float16(kind):
            return piece
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            return piece.cast(pa.float64(), safe=False)
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            trimmed = pc.utf8_trim_whitespace(piece)
            missing = pc.is_in(trimmed, value_set=pa.array(MISSING_NUMBERS, kind))
            piece = pc.if_else(missing, pa.scalar(None, kind), trimmed)
        elif not (pa.types.is_null(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind)):
            where = f", from {self.place(start)} on" if self.files else ""
            raise InputError(f"column {quoted(name)} must be numbers; it holds {kind}{where}")
        try:
            return piece.cast(pa.float64())
        except pa.ArrowException:
            return self._written(name, piece, start)

    def _written(self, name: str, piece: pa.ChunkedArray, start: int) -> pa.ChunkedArray:
        """Numbers as people write them: 66,6 and 66.6%, where the whole column says how."""
        percent = pc.ends_with(piece, "%")
        whole = pc.all(percent, min_count=0).as_py()
        bare = pc.utf8_trim_whitespace(pc.replace_substring_regex(piece, r"%$", ""))
        comma = pc.match_substring_regex(bare, r"^[-+]?\d*,\d+$")
        grouped = pc.match_substring_regex(bare, r"^[-+]?[1-9]\d{0,2}(,\d{3})+$")
        decimal = pc.any(pc.and_not(comma, grouped)).as_py() or self.decimal_comma
        if pc.any(grouped).as_py() and not decimal:
            row = pc.index(grouped, True).as_py()
            value = piece[row].as_py()
            raise InputError(
                f"column {quoted(name)} must be numbers; {quoted(value)} in "
                f"{self.place(start + row)} may be {value.replace(',', '')} or "
                f"{value.replace(',', '.')}: write it without the comma, or with a decimal point"
            )
        pointed = pc.replace_substring(bare, ",", ".") if decimal else bare
        numbers = pc.match_substring_regex(pointed, r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$")
        wrong, mend = pc.invert(numbers), "correct it, or leave the cell empty"
        if not pc.any(wrong).as_py() and pc.any(percent).as_py() and not whole:
            wrong, mend = percent, "write all cells with % or none"
        if pc.any(wrong).as_py():
            row = pc.index(wrong, True).as_py()
            raise InputError(
                f"column {quoted(name)} must be numbers; got {quoted(piece[row].as_py())} in "
                f"{self.place(start + row)}: {mend}"
            )
        out = pointed.cast(pa.float64())
        if decimal:
            self.notes.append(f"column {quoted(name)}: commas read as decimal points")
        if whole:
            self.notes.append(f"column {quoted(name)}: percentages read as shares")
            self.scaled.add(name)
            out = pc.divide(out, 100.0)
        return out


@dataclass(frozen=True)
class Names:
    """A column of names: codes, shape (n,), into texts, all different; -1 = null."""

    column: str
    codes: Ints
    texts: tuple[str, ...]

    @classmethod
    def of(cls, table: Table, column: str, text: Callable[[Any], str | None] = class_text) -> Names:
        """Read a column; `text` gives the text of a value, None where it is none."""
        codes, values = table.categories(column)
        index: dict[str, int] = {}
        known = [text(value) for value in values]
        place = [-1 if t is None else index.setdefault(t, len(index)) for t in known]
        # The last entry is that of code -1.
        return cls(column, np.array([*place, -1], dtype=np.int64)[codes], tuple(index))

    def each(self) -> Array:
        """The text of each row, (n,); None where it is null."""
        return np.array([*self.texts, None], dtype=object)[self.codes]

    def counts(self) -> dict[str, int]:
        """The texts that some row has (a categorical column may list others), and in how many."""
        count = np.bincount(self.codes + 1, minlength=len(self.texts) + 1)[1:]
        found = zip(self.texts, count.tolist(), strict=True)
        return {text: times for text, times in found if times}


def refuse_mixed(name: str) -> NoReturn:
    """Refuse a column that holds percentages in some rows or files and not in others."""
    raise InputError(
        f"column {quoted(name)} holds percentages in some rows or files and plain numbers in "
        "others; write them the same way everywhere"
    )


class Source(Protocol):
    """Something with named columns: a file, a folder of files, or a frame in memory."""

    @property
    def name(self) -> str | None:
        """What messages call it; None for a frame in memory."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns as they stand, repetitions included."""

    def read(self, numbers: Collection[str], texts: Collection[str]) -> Table:
        """Read some columns; a column that is text in the source stays as it is written."""


class Derived:
    """A source that is made of another."""

    inner: Source

    @property
    def name(self) -> str | None:
        """What messages call it."""
        return self.inner.name

    @property
    def lines(self) -> tuple[str, ...]:
        """What the source says of itself."""
        return tuple(getattr(self.inner, "lines", ()))


@dataclass(frozen=True, eq=False)
class Held:
    """A source whose columns have been read; `lines` say what was taken for what."""

    name: str | None
    table: Table
    lines: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, name: str | None, columns: Sequence[tuple[str, pa.ChunkedArray]], n_rows: int,
        place: Place, notes: Sequence[str] = (),
    ) -> Held:  # fmt: skip
        """Columns of which some may have one name; see `distinct_names`."""
        names, more = distinct_names(
            [column for column, _ in columns], lambda i, j: columns[i][1].equals(columns[j][1])
        )
        held = dict(zip(names, (cells for _, cells in columns), strict=True))
        table = Table.of(held, n_rows, place, (*notes, *more))
        return cls(name, replace(table, names=names))

    @property
    def names(self) -> tuple[str, ...]:
        """The columns as they stand."""
        return self.table.names

    def read(self, numbers: Collection[str], texts: Collection[str]) -> Table:
        """Some of the columns."""
        wanted = tuple(name for name in self.names if name in numbers or name in texts)
        return replace(self.table, names=wanted, notes=list(self.table.notes), scaled=set())


NOTHING = Table.of({}, 0)
"""What stands for the table where there are long votes alone."""


def concatenate(tables: Sequence[Table], names: Sequence[str | None]) -> Table:
    """The rows of several tables one after another."""
    ends = np.cumsum([table.n_rows for table in tables])
    cells = int(ends[-1]) * len(tables[0].names)
    refuse_whole(8 * cells, f"its {ends[-1]:,} rows of {len(tables[0].names)} columns")
    # Not the tables themselves: a place is remembered longer than the columns.
    places = [table.place for table in tables]

    def place(row: int) -> str:
        i = int(np.searchsorted(ends, row, side="right"))
        return f"{places[i](row - (int(ends[i - 1]) if i else 0))} of {names[i]}"

    def pieces(column: str) -> list[pa.ChunkedArray]:
        found: list[pa.ChunkedArray] = []
        for table, name in zip(tables, names, strict=True):
            with naming_file(name):
                found.extend(table.pieces(column))
        return found

    # Only where all files say so: 1,434 of one may be 1434 in another.
    comma = all(table.decimal_comma for table in tables)
    files = tuple((str(n), table.n_rows) for n, table in zip(names, tables, strict=True))
    notes = list(dict.fromkeys(note for table in tables for note in table.notes))
    return Table(
        tables[0].names, pieces, int(ends[-1]), place, notes, decimal_comma=comma, files=files
    )


def _values(array: pa.Array, null: float) -> Array:
    """The numbers of an array, (n,), another where it is null."""
    # Array.to_numpy and fill_null import pandas where it is installed, which takes longer than
    # everything else on a file of ordinary size.
    if array.null_count:
        array = pc.coalesce(array, pa.scalar(null, array.type))
    values: Array = np.from_dlpack(array)
    return values


def _encode(piece: pa.ChunkedArray, codes: Ints) -> list[Any]:
    """Fill in the codes of one piece and return its values."""
    if pa.types.is_null(piece.type):
        codes[:] = -1
        return []
    if not pa.types.is_dictionary(piece.type):
        if pa.types.is_temporal(piece.type):
            piece = piece.cast(pa.string())
        if piece.num_chunks > 1 and piece.nbytes < _JOINED_BYTES:
            # Dictionaries of chunks are unified one after another: of names that all differ, as
            # those of items, that takes the square of their number.
            piece = pa.chunked_array([pa.concat_arrays(piece.chunks)])
        piece = piece.dictionary_encode()
    chunks = piece.unify_dictionaries().chunks
    start = 0
    for chunk in chunks:
        codes[start : start + len(chunk)] = _values(chunk.indices.cast(pa.int64()), -1)
        start += len(chunk)
    values = chunks[0].dictionary if chunks else pa.array([], pa.string())
    if pa.types.is_temporal(values.type):
        values = values.cast(pa.string())
    result: list[Any] = values.to_pylist()
    return result
