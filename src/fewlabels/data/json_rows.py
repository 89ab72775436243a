"""JSON: an object per line (JSONL), a list of objects, or an object of columns."""

from __future__ import annotations

import codecs
import itertools
import json
from array import array
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fewlabels.data.cells import Cells, Rows
from fewlabels.data.content import byte_stream, not_utf8
from fewlabels.errors import FewlabelsError, InputError, quoted

_BLOCK = 1 << 20
_LONGEST_LINE = 1 << 28
"""Bytes of one row at most, which bounds the memory of files that are none."""

_RECORDS = "save it with an object per line, as pandas does with to_json(FILE, orient='records', "
_RECORDS += "lines=True)"


def open_json(path: Path, name: str) -> Cells:
    """Read a JSON file, whichever of the three it is.

    Raises
    ------
    InputError
        If it is not JSON, or no table; the message says in which line or item.
    """
    with _limits():
        lines = _lines(path)
        head = list(itertools.islice(lines, 2))
        if not head:
            raise InputError("holds nothing but blanks; it needs at least one item")
        first = _attempt(head[0][1])
        if len(head) == 1:
            by_line = isinstance(first, dict) and not (_is_columns(first) or _tables(first))
        else:
            by_line = isinstance(first, dict) or _broken_row(head[0][1], head[1][1])
        if by_line:
            return _of_lines(itertools.chain(head, lines), name)
        del head, first
        return _of_document(path, name)


def _broken_row(first: bytes, second: bytes) -> bool:
    """Whether two lines are rows although the first is no JSON, and not parts of one document."""
    both = first.startswith(b"{") and second.startswith(b"{")
    return both and not first.endswith((b"{", b"[", b":", b","))


def _of_lines(lines: Iterator[tuple[int, bytes]], name: str) -> Cells:
    rows, numbers = Rows(), array("q")
    for number, line in lines:
        try:
            row = _parsed(_text(line))
            if not isinstance(row, dict):
                raise InputError(f"holds {_what(row)}; every line must be an object")
            rows.add(row)
        except InputError as error:
            raise InputError(f"line {number} {error}") from None
        numbers.append(number)
    return rows.table(name, lambda row: f"line {numbers[row]}")


def _of_document(path: Path, name: str) -> Cells:
    with byte_stream(path) as stream:
        content = stream.read()
    document = _parsed(_text(content).removeprefix("\ufeff"), whole=True)
    del content
    rows = Rows()
    if isinstance(document, dict):
        for row in _rows_of_columns(document):
            rows.add(row)
        return rows.table(name, _item)
    if not isinstance(document, list):
        raise InputError(f"holds {_what(document)}; it must be a list of objects")
    for i, row in enumerate(document):
        try:
            if not isinstance(row, dict):
                raise InputError(f"is {_what(row)}; every item must be an object: {_RECORDS}")
            rows.add(row)
        except InputError as error:
            raise InputError(f"{_item(i)} {error}") from None
        document[i] = None  # what has been read needs no second place in memory
    return rows.table(name, _item)


def _item(row: int) -> str:
    return f"item {row + 1} (from 1)"


def _is_columns(document: Mapping[str, Any]) -> bool:
    """Whether an object may be the whole table: columns, or columns by row as pandas has them."""
    values = list(document.values())
    if not values:
        return False
    nested = all(isinstance(v, dict) for v in values)
    return all(isinstance(v, list) for v in values) or (nested and all(_indices(v) for v in values))


def _rows_of_columns(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of an object of columns."""
    if not document:
        raise InputError("holds an object without columns; it needs at least one item")
    if set(document) == {"columns", "index", "data"} or not _is_columns(document):
        if tables := _tables(document):
            raise InputError(
                f"holds one object, and its key {quoted(tables[0])} a list of rows; save that list"
            )
        raise InputError(f"holds one object that is no table; {_RECORDS}")
    columns = {
        key: list(value.values()) if isinstance(value, dict) else value
        for key, value in document.items()
    }
    sizes = {key: len(value) for key, value in columns.items()}
    first = next(iter(sizes))
    other = next((key for key in sizes if sizes[key] != sizes[first]), None)
    if other is not None:
        raise InputError(
            f"holds columns of different lengths: {quoted(first)} has {sizes[first]:,}, "
            f"{quoted(other)} {sizes[other]:,}; make them agree"
        )
    return (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))


def _tables(document: Mapping[str, Any]) -> list[str]:
    """The keys of an object that hold rows."""
    lists = [key for key, value in document.items() if isinstance(value, list) and value]
    return [key for key in lists if isinstance(document[key][0], dict)]


def _indices(value: Mapping[str, Any]) -> bool:
    """Whether the keys are those of rows: 0, 1, 2, ..."""
    return all(key == str(i) for i, key in enumerate(value)) and bool(value)


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, and their numbers from 1."""
    number, held = 1, bytearray()
    with byte_stream(path) as stream:
        block = stream.read(_BLOCK).removeprefix(codecs.BOM_UTF8)
        while block:
            *whole, rest = block.split(b"\n")
            for line in whole:
                held += line
                if held.strip():
                    yield number, bytes(held).strip()
                held.clear()
                number += 1
            held += rest
            if len(held) > _LONGEST_LINE:
                raise InputError(
                    f"has a line of more than {_LONGEST_LINE >> 20} MB (line {number})"
                )
            block = stream.read(_BLOCK)
    if held.strip():
        yield number, bytes(held).strip()


def _attempt(line: bytes) -> Any:
    """The value of a line; None where it is none."""
    try:
        return _parsed(_text(line))
    except InputError:
        return None


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        byte = content[error.start]
        line = content[: error.start].count(b"\n") + 1
        where = f" in line {line}" if line > 1 else ""
        raise not_utf8(byte, where) from None


def _parsed(text: str, *, whole: bool = False) -> Any:
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}" if whole else f"column {error.colno}"
        if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated"):
            where = f"it ends too early, in {where}"
        raise InputError(f"is not valid JSON ({where}: {error.msg}); correct it") from None
    except RecursionError:
        raise InputError("is nested too deeply to be a table") from None
    except FewlabelsError:
        raise
    except ValueError as error:  # a number of thousands of digits
        raise InputError(f"is not valid JSON ({error})") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InputError(f"has the key {quoted(twice)} twice in one object; remove one")
    return made


_DECODER = json.JSONDecoder(object_pairs_hook=_object)

_WHAT: tuple[tuple[Callable[[Any], bool], str], ...] = (
    (lambda value: isinstance(value, list), "a list"),
    (lambda value: isinstance(value, str), "text"),
    (lambda value: isinstance(value, bool), "a truth value"),
    (lambda value: value is None, "null"),
)


def _what(value: Any) -> str:
    """The type of a value in words."""
    return next((word for fits, word in _WHAT if fits(value)), "a number")


@contextmanager
def _limits() -> Iterator[None]:
    """Say of objects within objects within objects that they are no table."""
    try:
        yield
    except RecursionError:
        raise InputError("is nested too deeply to be a table") from None
