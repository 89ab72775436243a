"""The bytes of a file as text is read from them: decompressed, and UTF-16 as UTF-8."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from fewlabels.errors import FewlabelsError, InputError

ENDINGS = (".gz", ".zst", ".bz2")
"""What names of compressed files end in."""

HEAD = 1 << 10
"""Bytes that tell what a file is."""

_CODECS = (
    # Each with what follows the first letters, which a header of text may have too.
    ("gzip", re.compile(rb"\x1f\x8b")),
    ("zstd", re.compile(rb"\x28\xb5\x2f\xfd")),
    ("bz2", re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90|$)", re.DOTALL)),
)
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def compression(path: Path) -> str | None:
    """What a file is compressed by, told by its first bytes: gzip, zstd, bz2, or nothing."""
    with path.open("rb") as file:
        head = file.read(16)
    return next((codec for codec, magic in _CODECS if magic.match(head)), None)


def is_plain(path: Path) -> bool:
    """Whether the bytes of `byte_stream` are those of the file, at the same places."""
    with path.open("rb") as file:
        return compression(path) is None and not file.read(2).startswith(_UTF16)


def first_bytes(path: Path) -> bytes:
    """The first bytes, decompressed; empty where the compressed bytes are damaged."""
    codec = compression(path)
    try:
        with pa.input_stream(str(path), compression=codec) as stream:
            head: bytes = stream.read(HEAD)
    except (OSError, ValueError):
        if codec is None:
            raise
        return b""
    return head


@contextmanager
def byte_stream(path: Path) -> Iterator[Any]:
    """The bytes of a file, decompressed where they are compressed, UTF-16 as UTF-8.

    Raises
    ------
    InputError
        If they cannot be read.
    """
    with _readable():
        codec = compression(path)
        if not first_bytes(path).startswith(_UTF16):
            with pa.input_stream(str(path), compression=codec) as stream:
                yield stream
            return
        # At once: only spreadsheets write it, and theirs are small.
        with pa.input_stream(str(path), compression=codec) as stream:
            content = _utf8(stream.read())
        with pa.BufferReader(content) as stream:
            yield stream


def _utf8(content: bytes) -> bytes:
    try:
        return content.decode("utf-16").encode()
    except UnicodeError:
        raise InputError(
            "begins as UTF-16 and is not; save it again as UTF-8, or convert it: "
            "iconv -f UTF-16 -t UTF-8 FILE > NEW"
        ) from None


@contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except (FewlabelsError, pa.ArrowInvalid):
        raise
    except (OSError, ValueError, MemoryError) as error:
        raise InputError(
            f"cannot be read ({error}); if it is compressed, it may be damaged or cut short"
        ) from None
