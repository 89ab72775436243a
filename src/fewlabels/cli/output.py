"""Output files: proven writable before the work, written whole or not at all."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from fewlabels.errors import UsageError

Writer = Callable[[Path], None]


def check_outputs(outputs: Mapping[str, str | None], source: str | None = None) -> None:
    """Prove, before the work begins, that every output can be written.

    Parameters
    ----------
    outputs
        Option -> path it names; None where it was not given.
    source
        The input file, which no output may replace.

    Raises
    ------
    UsageError
        Where a path cannot be written, is the input, or is named twice.
    """
    taken = {} if source is None else {_place(source): "the input file"}
    for option, path in outputs.items():
        if path is None:
            continue
        try:
            _probe(path)
        except (OSError, ValueError) as error:
            raise UsageError(_cannot_write(f"{option} {path!r}", error)) from None
        place = _place(path)
        if place in taken:
            raise UsageError(f"{option} {path!r} is {taken[place]} too; name another file")
        if not _is_device(path):
            taken[place] = f"the file of {option}"


def write_outputs(writers: Mapping[str, Writer]) -> None:
    """Write all files, or none of them.

    Each writer gets the path of a temporary file in the folder of its target; when all have
    succeeded the temporary files take the targets' places.

    Raises
    ------
    UsageError
        Where the system refuses to write (a full disk, say).
    """
    written: dict[str, Path] = {}
    try:
        for path, write in writers.items():
            written[path] = _temporary(path)
            write(written[path])
        for path, temporary in written.items():
            _put(temporary, path)
    except OSError as error:
        raise UsageError(_cannot_write(f"{path!r}", error)) from None
    finally:
        for temporary in written.values():
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def json_text(value: Mapping[str, Any]) -> str:
    """Strict JSON (no NaN, plain ASCII) with a line break at the end."""
    return json.dumps(value, indent=2, allow_nan=False) + "\n"


def json_writer(value: Mapping[str, Any]) -> Writer:
    """Write `value` as JSON."""

    def write(path: Path) -> None:
        path.write_text(json_text(value), encoding="ascii")

    return write


def _cannot_write(what: str, error: OSError | ValueError) -> str:
    reason = getattr(error, "strerror", None) or str(error)
    return f"cannot write {what}: {reason}; name a file in a folder that exists and is writable"


def _place(path: str) -> str:
    """Where a path leads; a path that cannot be is left to whoever opens it."""
    try:
        return os.path.realpath(path)
    except ValueError:
        return path


def _probe(path: str) -> None:
    if not path:
        raise ValueError("the path is empty")
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    else:
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(None, "it is a folder")
        if not os.access(path, os.W_OK):
            raise PermissionError(None, "permission denied")
    if stat.S_ISREG(mode):
        temporary = _temporary(path)
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        temporary.unlink()


def _is_device(path: str) -> bool:
    """Whether the path is a pipe, terminal or /dev/null, which a rename would destroy."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return False


def _temporary(path: str) -> Path:
    if _is_device(path):
        return Path(tempfile.gettempdir()) / f"fewlabels-{secrets.token_hex(8)}"
    # Beside the target that links lead to: a rename must not cross file systems or cut a link.
    # Random, so that two runs do not meet; short, so that a long name still has room.
    target = Path(os.path.realpath(path))
    return target.with_name(f".{target.name[:50]}.{secrets.token_hex(8)}")


def _put(temporary: Path, path: str) -> None:
    if _is_device(path):
        with temporary.open("rb") as source, open(path, "wb") as device:
            shutil.copyfileobj(source, device)
        return
    if os.path.exists(path):
        shutil.copymode(path, temporary)
    os.replace(temporary, os.path.realpath(path))
