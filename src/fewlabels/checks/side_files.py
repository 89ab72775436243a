"""Small files beside the data: which columns are what, saved maps, protocols; JSON and TOML."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

from fewlabels.errors import InputError, one_line

MOST_BYTES = 64 << 20
"""Bytes of a file that is written by hand, or holds some coefficients per classifier."""


def side_text(path: str | os.PathLike[str]) -> str:
    """The text of a file, without the mark that some editors begin it with."""
    try:
        file = Path(path)
        if file.exists() and not file.is_file() and not file.is_dir():
            raise InputError("is not a regular file; save it as a file first")
        if file.is_file() and file.stat().st_size > MOST_BYTES:
            raise InputError(f"is larger than {MOST_BYTES >> 20} MB, which no such file is")
        return file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("is not UTF-8; save it again as UTF-8") from None
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}") from None


def side_json(path: str | os.PathLike[str]) -> Any:
    """What a JSON file holds."""
    try:
        text = side_text(path)
    except InputError as error:
        if "UTF-8" in str(error):
            raise InputError("is not JSON: it is not UTF-8") from None
        raise
    return _parsed(json.loads, text, "JSON")


def toml_of(text: str) -> dict[str, Any]:
    """What a text of TOML says."""
    said: dict[str, Any] = _parsed(tomllib.loads, text, "valid TOML")
    return said


def _parsed(parse: Any, text: str, kind: str) -> Any:
    try:
        return parse(text)
    except RecursionError:
        raise InputError(f"is not {kind}: it is nested too deeply") from None
    except ValueError as error:
        reason = one_line(str(error)).partition("; use sys.")[0]
        raise InputError(f"is not {kind}: {reason}") from None
