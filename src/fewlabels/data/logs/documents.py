"""JSON of any size, a value at a time: the lines or items of a file, or lists within an object."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fewlabels.data.content import byte_stream, first_bytes, not_utf8
from fewlabels.errors import InputError

Keys = tuple[str, ...]
"""Where a value stands: the keys of the objects around it; lists do not count."""

_BLOCK = 1 << 22
_HEAD = 1 << 20
_LARGEST = 1 << 28
"""Characters of one item at most, which bounds the memory of files that are none."""

_DEEPEST = 3
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[][{}:,]', re.DOTALL)
_BLANK = re.compile(r"\s*")


def keys_at_the_beginning(path: Path) -> frozenset[str]:
    """Keys of the first objects of a JSON file, as `info.trace_id`; lists do not count."""
    text = first_bytes(path, _HEAD).removeprefix(codecs.BOM_UTF8).decode(errors="replace")
    found: set[str] = set()
    # Of each object and list that we are within the keys that lead to it, as many as count.
    open_: list[Keys] = [()]
    key: str | None = None
    before = ""
    for piece in _TOKEN.findall(text):
        if piece in "{[":
            around = open_[-1]
            deeper = key is not None and len(around) < _DEEPEST
            open_.append((*around, str(key)) if deeper else around)
            key = None
        elif piece in "}]":
            if len(open_) > 1:
                open_.pop()
            key = None
        elif piece == ":" and before.startswith('"'):
            key = before[1:-1]
            if len(open_[-1]) < _DEEPEST:
                found.add(".".join((*open_[-1], key)))
        elif piece == ",":
            key = None
        before = piece
    return frozenset(found)


@contextmanager
def opened(path: Path) -> Iterator[Scanner]:
    """The values of a JSON file, to be asked for one after another."""
    with byte_stream(path) as stream:
        yield Scanner(stream)


class Scanner:
    """JSON values read from a stream of bytes, one after another."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._text, self._at, self._line = "", 0, 1
        self._ended = False
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._value = json.JSONDecoder().raw_decode

    def values(self) -> Iterator[Any]:
        """What a list holds, or the values of the lines."""
        if self._next() == "[":
            yield from self._items()
            return
        while self._next():
            yield self.value()

    def within(self, lists: Collection[Keys]) -> Iterator[tuple[Keys, Any]]:
        """What an object holds, each with the keys that lead to it; of these lists their items."""
        yield from self._within((), lists)

    def _within(self, before: Keys, lists: Collection[Keys]) -> Iterator[tuple[Keys, Any]]:
        self._take("{")
        while self._next() != "}":
            key = self.value()
            self._take(":")
            path = (*before, str(key))
            opening = self._next()
            if path in lists and opening == "[":
                for item in self._items():
                    yield path, item
            elif opening == "{" and any(one[: len(path)] == path for one in lists):
                yield from self._within(path, lists)
            else:
                yield path, self.value()
            if self._next() != "}":
                self._take(",")
        self._take("}")

    def _items(self) -> Iterator[Any]:
        self._take("[")
        while self._next() != "]":
            yield self.value()
            if self._next() != "]":
                self._take(",")
        self._take("]")

    def value(self) -> Any:
        """The next value."""
        while True:
            try:
                self._next()
                value, end = self._value(self._text, self._at)
            except json.JSONDecodeError as error:
                # Cut off at the end of what was read so far, or wrong.
                cut = error.msg.startswith("Unterminated") or error.pos >= len(self._text) - 12
                if not cut or not self._more():
                    raise self._wrong(error.pos, error.msg) from None
            except RecursionError:
                raise InputError(f"is nested too deeply to be a log (line {self._line})") from None
            except ValueError as error:  # a number of thousands of digits
                raise InputError(f"is not valid JSON ({error}, line {self._line})") from None
            else:
                # A number may go on in what has not been read.
                if end == len(self._text) and not isinstance(value, dict | list) and self._more():
                    continue
                self._line += self._text.count("\n", self._at, end)
                self._at = end
                return value

    def _next(self) -> str:
        """The next character that is no blank; empty at the end."""
        while True:
            blank = _BLANK.match(self._text, self._at)
            assert blank is not None
            self._line += self._text.count("\n", self._at, blank.end())
            self._at = blank.end()
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def _take(self, wanted: str) -> None:
        if self._next() != wanted:
            raise self._wrong(self._at, f"Expecting '{wanted}'")
        self._at += 1

    def _more(self) -> bool:
        """Read on; whether there was more. Twice as much each time an item is not whole."""
        if self._ended:
            return False
        held = len(self._text) - self._at
        if held > _LARGEST:
            raise InputError(
                f"holds one item of more than {_LARGEST >> 20} MB (from line {self._line} on)"
            )
        block = self._stream.read(max(_BLOCK, held))
        self._ended = not block
        try:
            text = self._decode(block, self._ended)
        except UnicodeDecodeError as error:
            raise not_utf8(error.object[error.start], f" behind line {self._line}") from None
        self._text, self._at = self._text[self._at :] + text, 0
        return bool(text) or not self._ended

    def _wrong(self, at: int, why: str) -> InputError:
        line = self._line + self._text.count("\n", self._at, at)
        early = "it ends too early, in " if self._ended and at >= len(self._text.rstrip()) else ""
        return InputError(f"is not valid JSON ({early}line {line}: {why}); correct it")
