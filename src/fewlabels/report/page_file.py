"""A page of text as a file: written whole or not at all."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from fewlabels.errors import InputError
from fewlabels.report.words import clean


def save_page(page: str, path: str | os.PathLike[str]) -> None:
    """Write the page whole or not at all: the file appears only when it is complete.

    Raises
    ------
    InputError
        If the path cannot be written.
    """
    try:
        _write(Path(path), page.encode("utf-8"))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"cannot write {clean(os.fspath(path))!r}: {reason}; "
            "`path` must name a file in a folder that exists and is writable"
        ) from None


def _write(path: Path, page: bytes) -> None:
    if path.exists() and not path.is_file():
        # A device or a pipe is written to; replacing it would remove it. A folder refuses.
        path.write_bytes(page)
        return
    # Beside the file that a link leads to, for a rename must stay on one file system.
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".fewlabels-{secrets.token_hex(8)}")
    try:
        temporary.write_bytes(page)
        os.replace(temporary, target)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
