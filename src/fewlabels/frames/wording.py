"""The file's name before what is wrong in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fewlabels.errors import InputError
from fewlabels.wording import one_line


@contextmanager
def told_of(name: str | None) -> Iterator[None]:
    """Put the file's name before the message of an `InputError`, and keep it to one line."""
    try:
        yield
    except InputError as error:
        message = str(error) if name is None else f"{name}: {error}"
        raise InputError(one_line(message)) from None
    except MemoryError:
        where = "" if name is None else f"{name}: "
        raise InputError(f"{where}does not fit into memory; read fewer columns or rows") from None
