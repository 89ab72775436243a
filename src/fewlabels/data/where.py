"""`--where`: a condition on columns, which chooses the rows of a source.

    either     = both {"or" both}
    both       = one {"and" one}
    one        = "not" one | "(" either ")" | comparison
    comparison = column ("=" | "!=" | "<" | "<=" | ">" | ">=") value
               | column ["not"] "in" "(" value {"," value} ")"
               | column "is" ["not"] "null"

Left of an operator stands a column, right of it a value, so that neither needs quotes; nothing is
ever run. A comparison with an empty cell is neither true nor false, as in SQL, and a row is read
where the whole is true. Of a file whose folder gives some of the columns, the others are unknown:
the same logic of three values says whether any of its rows can be (`Condition.possible`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fewlabels.data.roles import missing_column
from fewlabels.data.table import Derived, Source, Table
from fewlabels.errors import InputError, UsageError, quoted

_BATCH_ROWS = 65_536
ROW = "\0row"
"""The column of chosen rows with their places among all, for messages."""

Cells = Callable[[str], "pa.Array | pa.ChunkedArray | None"]
"""A column by its name; None where it is unknown."""


class Value(NamedTuple):
    """What a column is compared with: a text, and the number that it is unless it is in quotes."""

    text: str
    number: float | None


@dataclass(frozen=True)
class Comparison:
    """A column and values; `null` and `in` are operators too."""

    column: str
    operator: str
    values: tuple[Value, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Its column."""
        return (self.column,)

    def mask(self, cells: Cells, n_rows: int) -> Any:
        """True, false or null, (n,)."""
        found = cells(self.column)
        if found is None:
            return pa.nulls(n_rows, pa.bool_())
        found, values = _comparable(self, found)
        if self.operator == "null":
            return pc.is_null(found)
        if self.operator == "in":
            among = pc.is_in(found, value_set=pa.array(values, found.type))
            return pc.if_else(pc.is_valid(found), among, pa.scalar(None, pa.bool_()))
        return _COMPARE[self.operator](found, pa.scalar(values[0], found.type))

    def sql(self) -> str:
        """The same for a database."""
        column = identifier(self.column)
        if self.operator == "null":
            return f"{column} is null"
        values = [v.text if v.number is not None else sql_text(v.text) for v in self.values]
        right = f"({', '.join(values)})" if self.operator == "in" else values[0]
        return f"{column} {self.operator.replace('!=', '<>')} {right}"


@dataclass(frozen=True)
class Combination:
    """Conditions joined by `and` or `or`, or one that is turned round by `not`."""

    word: str
    parts: tuple[Comparison | Combination, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of all, each once."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.columns))

    def mask(self, cells: Cells, n_rows: int) -> Any:
        """True, false or null, (n,)."""
        masks = [part.mask(cells, n_rows) for part in self.parts]
        return pc.invert(masks[0]) if self.word == "not" else reduce(_JOIN[self.word], masks)

    def sql(self) -> str:
        """The same for a database."""
        parts = [f"({part.sql()})" for part in self.parts]
        return f"not {parts[0]}" if self.word == "not" else f" {self.word} ".join(parts)


_COMPARE = {
    "=": pc.equal, "!=": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater,
    ">=": pc.greater_equal,
}  # fmt: skip
_JOIN = {"and": pc.and_kleene, "or": pc.or_kleene}


def identifier(name: str) -> str:
    """A name as SQL quotes it."""
    return '"' + name.replace('"', '""') + '"'


def sql_text(text: str) -> str:
    """A text as SQL quotes it."""
    return "'" + text.replace("'", "''") + "'"


def _comparable(said: Comparison, cells: Any) -> tuple[Any, list[Any]]:
    """The cells and values as things of one type that can be compared: times, numbers or texts."""
    column, values, texts = said.column, said.values, [v.text for v in said.values]
    if isinstance(cells.type, pa.BaseExtensionType):
        cells = cells.cast(cells.type.storage_type)
    if pa.types.is_dictionary(cells.type):
        cells = cells.cast(cells.type.value_type)
    kind = cells.type
    if not values and not _is_text(kind):
        return cells, []
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        times = pa.timestamp("us")
        try:
            return cells.cast(times), [pa.scalar(text).cast(times).as_py() for text in texts]
        except pa.ArrowInvalid:
            raise InputError(
                f"--where: column {quoted(column)} holds {kind}, with which {quoted(texts[0])} "
                "cannot be compared; write 2026-09-01, or 2026-09-01T08:00:00"
            ) from None
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    numbers = [v.number for v in values]
    if numeric and None in numbers:
        try:
            numbers = [float(text) for text in texts]
        except ValueError:
            wrong = quoted(texts[numbers.index(None)])
            raise InputError(
                f"--where: column {quoted(column)} holds numbers, and {wrong} is none"
            ) from None
    if pa.types.is_integer(kind):
        with suppress(ValueError):  # exact, as ids are
            return cells.cast(pa.int64()), list(map(int, texts))
    if values and None not in numbers and (numeric or _is_text(kind)):
        every = pa.chunked_array([cells] if isinstance(cells, pa.Array) else cells.chunks, kind)
        try:
            read = Table.of({column: every}, len(every)).numbers(column)
        except InputError as error:
            raise InputError(
                f"--where: {error}; to compare texts, put the value in quotes, as in "
                f"\"{column} {said.operator} '{texts[0]}'\""
            ) from None
        return pa.array(read, mask=np.isnan(read)), numbers
    if pa.types.is_boolean(kind):
        words = {"1": "true", "0": "false"}
        return cells.cast(pa.string()), [words.get(text, text.lower()) for text in texts]
    try:
        written = pc.utf8_trim_whitespace(cells.cast(pa.string()))
    except pa.ArrowException:
        raise InputError(
            f"--where: column {quoted(column)} holds {kind}, which cannot be compared"
        ) from None
    # An empty cell of text is a null of other formats.
    return pc.if_else(pc.equal(written, ""), pa.scalar(None, pa.string()), written), texts


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


@dataclass(frozen=True)
class Condition:
    """What `--where` says; two are equal if their texts are."""

    text: str
    tree: Comparison | Combination = field(repr=False, compare=False)

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Read a condition."""
        if not isinstance(text, str):
            raise UsageError(f"`where` must be a text; got {quoted(text)}")
        return cls(text, _Parser(text).whole())

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is about."""
        return self.tree.columns

    def check(self, names: Sequence[str]) -> None:
        """Refuse a condition on columns that there are not."""
        for name in self.columns:
            if name not in names:
                raise InputError(missing_column(name, names, "--where"))

    def rows(self, cells: Cells, n_rows: int) -> Any:
        """Whether each row is chosen: no null, (n,)."""
        return pc.fill_null(self.tree.mask(cells, n_rows), False)

    def possible(self, constants: Mapping[str, str | None]) -> bool:
        """Whether it can be true of a row of which these columns alone are known."""

        def cells(name: str) -> pa.Array | None:
            return pa.array([constants[name]], pa.string()) if name in constants else None

        return self.tree.mask(cells, 1)[0].as_py() is not False


_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<name>\"(?:[^\"]|\"\")*\"|`[^`]*`)"
    r"|(?P<mark><=|>=|!=|<>|==|[=<>(),])|(?P<word>[^\s(),<>=!'\"`]+))"
)
_SIGNS = {"==": "=", "<>": "!="}


class _Parser:
    """Recursive descent over the grammar in the head of this file."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.tokens: list[tuple[str, str]] = []
        place = 0
        while text[place:].strip():
            found = _TOKEN.match(text, place)
            if found is None:
                self._refuse(f"{quoted(text[place:].strip(), 20)} cannot be read")
            assert found.lastgroup is not None
            self.tokens.append((found.lastgroup, found[found.lastgroup]))
            place = found.end()

    def whole(self) -> Comparison | Combination:
        tree = self._either()
        if self.at < len(self.tokens):
            self._refuse(f"{quoted(self.tokens[self.at][1])} stands where `and` or `or` might")
        return tree

    def _refuse(self, why: str) -> NoReturn:
        raise UsageError(
            '`where` must be like "date >= 2026-09-01 and lang in (en, fr)"; got '
            f"{quoted(self.text, 100)}: {why}"
        )

    def _next(self, *words: str) -> bool:
        """Whether the next token is one of these words or marks, which is then taken."""
        kind, text = self.tokens[self.at] if self.at < len(self.tokens) else ("", "")
        there = kind in ("word", "mark") and text.lower() in words
        self.at += there
        return there

    def _operand(self, what: str) -> tuple[str, str]:
        """The next token, which is a column or a value: its kind, and its text without quotes."""
        kind, text = self.tokens[self.at] if self.at < len(self.tokens) else ("", "")
        if kind in ("", "mark"):
            self._refuse(f"{what} is missing" + (f" before {quoted(text)}" if text else ""))
        self.at += 1
        if kind == "word":
            return kind, text
        mark = text[0]
        return kind, text[1:-1].replace(2 * mark, mark)

    def _joined(self, word: str, part: Callable[[], Any]) -> Comparison | Combination:
        parts = [part()]
        while self._next(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Combination(word, tuple(parts))

    def _either(self) -> Comparison | Combination:
        return self._joined("or", lambda: self._joined("and", self._one))

    def _one(self) -> Comparison | Combination:
        if self._next("not"):
            return Combination("not", (self._one(),))
        if self._next("("):
            inner = self._either()
            if not self._next(")"):
                self._refuse("a parenthesis is not closed")
            return inner
        kind, column = self._operand("a column")
        if kind == "text":
            self._refuse(f"left of an operator stands a column, and {quoted(column)} is a text")
        return self._of_column(column)

    def _of_column(self, column: str) -> Comparison | Combination:
        null = self._next("is")
        negated = self._next("not")
        if null:
            if not self._next("null"):
                self._refuse("behind `is` stands `null` or `not null`")
            found = Comparison(column, "null")
        elif self._next("in"):
            if not self._next("("):
                self._refuse("behind `in` stand values in parentheses")
            values = [self._value()]
            while self._next(","):
                values.append(self._value())
            if not self._next(")"):
                self._refuse("a parenthesis is not closed")
            found = Comparison(column, "in", tuple(values))
        else:
            for sign in ("<=", ">=", "!=", "<>", "==", "=", "<", ">"):
                if not negated and self._next(sign):
                    return Comparison(column, _SIGNS.get(sign, sign), (self._value(),))
            self._refuse(f"behind column {quoted(column)} stands no =, !=, <, <=, >, >=, in or is")
        return Combination("not", (found,)) if negated else found

    def _value(self) -> Value:
        kind, text = self._operand("a value")
        number = None
        if kind == "word" and re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", text):
            number = float(text)
        return Value(text, number)


@dataclass(frozen=True)
class Filter:
    """What is done to the rows of a file: columns of its folder are added, some rows chosen."""

    constants: Mapping[str, str | None] = field(default_factory=dict)
    where: Condition | None = None

    def __bool__(self) -> bool:
        return bool(self.constants) or self.where is not None

    def of_columns(self, names: Collection[str]) -> Filter:
        """The same for a file of these columns: one that it has itself is not added."""
        own = {name: value for name, value in self.constants.items() if name not in names}
        if self.where is not None:
            self.where.check([*names, *own])
        return replace(self, constants=own)

    def names(self, names: Iterable[str]) -> tuple[str, ...]:
        """The columns with those of the folder."""
        return (*names, *self.constants)

    def read(self, numbers: Collection[str], texts: Collection[str]) -> tuple[list[str], list[str]]:
        """What is to be read of the file for some columns."""
        where = () if self.where is None else self.where.columns
        wanted = dict.fromkeys([*texts, *(name for name in where if name not in numbers)])
        return (
            [name for name in numbers if name not in self.constants],
            [name for name in wanted if name not in self.constants],
        )

    def batches(self, parts: Iterable[pa.RecordBatch], first: int = 0) -> Iterator[pa.RecordBatch]:
        """The rows, the first of which has this place; chosen ones have a column of it (`ROW`)."""
        for part in parts:
            columns = dict(zip(part.schema.names, part.columns, strict=True))
            columns |= {name: _repeated(v, len(part)) for name, v in self.constants.items()}
            if self.where is not None:
                columns[ROW] = pa.array(np.arange(first, first + len(part)))
            rows = pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
            first += len(part)
            if self.where is not None:
                rows = rows.filter(self.where.rows(columns.__getitem__, len(part)))
            yield rows


def _repeated(value: str | None, size: int) -> pa.Array:
    codes = pa.array(np.zeros(size, np.int32), mask=np.full(size, value is None))
    return pa.DictionaryArray.from_arrays(codes, pa.array([value or ""], pa.string()))


@dataclass(frozen=True)
class FilteredSource(Derived):
    """A source with the columns of its folder, or some of its rows, one if it is `alone`."""

    inner: Source
    filter: Filter
    alone: bool = True

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns, those of the folder last."""
        return self.filter.names(self.inner.names)

    def read(self, numbers: Collection[str], texts: Collection[str]) -> Table:
        """Some columns of the chosen rows."""
        table, where = self.inner.read(*self.filter.read(numbers, texts)), self.filter.where
        constants = {
            name: [pa.chunked_array([_repeated(value, table.n_rows)])]
            for name, value in self.filter.constants.items()
        }
        table = table.with_columns(constants)
        if where is None:
            return table

        def cells(name: str) -> pa.ChunkedArray:
            pieces = table.pieces(name)
            if len({piece.type for piece in pieces}) > 1:
                pieces = [piece.cast(pa.string()) for piece in pieces]
            return pa.chunked_array([c for piece in pieces for c in piece.chunks], pieces[0].type)

        chosen = where.rows(cells, table.n_rows)
        if self.alone:
            refuse_no_row(pc.any(chosen).as_py() or not table.n_rows, where)
        rows = np.from_dlpack(pc.indices_nonzero(chosen))

        def pieces(name: str) -> list[pa.ChunkedArray]:
            start, out = 0, []
            for piece in table.pieces(name):
                out.append(piece.filter(chosen.slice(start, len(piece))))
                start += len(piece)
            return out

        return replace(
            table, pieces=pieces, n_rows=len(rows), place=lambda row: table.place(int(rows[row]))
        )

    def batches(self, numbers: Collection[str], texts: Collection[str]) -> Iterator[pa.RecordBatch]:
        """The same, some thousand rows at a time; `ROW` says where in the source each is."""
        return self.filter.batches(_batches(self.inner, *self.filter.read(numbers, texts)))

    def rows(self, texts: Collection[str]) -> Iterator[pa.RecordBatch]:
        """The same as texts, checked."""
        return self.filter.batches(rows_of(self.inner, self.filter.read((), texts)[1]))


def refuse_no_row(there: object, where: Condition | None) -> None:
    """Refuse a condition that no row meets."""
    if where is not None and not there:
        raise InputError(f"no row is left by --where {quoted(where.text, 200)}")


def rows_of(source: Any, texts: Collection[str]) -> Iterator[pa.RecordBatch]:
    """Some columns of a source as they are written, some thousand rows at a time."""
    return (
        source.rows(texts)
        if callable(getattr(source, "rows", None))
        else _batches(source, (), texts)
    )


def _batches(
    source: Any, numbers: Collection[str], texts: Collection[str]
) -> Iterator[pa.RecordBatch]:
    if callable(getattr(source, "batches", None)):
        yield from source.batches(numbers, texts)
        return
    for part in getattr(source, "parts", (source,)):
        table = part.read(numbers, texts)
        columns = {name: table.pieces(name)[0] for name in (*numbers, *texts)}
        yield from pa.table(columns).to_batches(_BATCH_ROWS)
