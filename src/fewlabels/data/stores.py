"""Files that lie elsewhere: object stores, through `pyarrow.fs`; and what is kept on this disk.

A `StoredFile` is to readers what a `pathlib.Path` is: CSV and Parquet are read where they are, the
latter by columns. Keys come from the environment or the provider's own files (AWS_PROFILE,
AWS_ACCESS_KEY_ID, GOOGLE_APPLICATION_CREDENTIALS, AZURE_STORAGE_ACCOUNT ...).
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode, urlsplit

import pyarrow as pa

from fewlabels.errors import InputError, one_line, redacted

STORES = re.compile(r"(?:s3a?|gs|gcs|abfss?)://")
"""How addresses of object stores begin."""

_DATABASES = re.compile(r"(?:sqlite|duckdb|postgres(?:ql)?)://")

_ENDPOINTS = {"s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"), "gs": ("STORAGE_EMULATOR_HOST",)}
"""Variables of the environment that name another server, the first of them the strongest."""

_PATTERN = re.compile(r"[*?\[]")


def is_database(address: object) -> bool:
    """Whether it is the address of a database, which `databases` reads."""
    return isinstance(address, str) and _DATABASES.match(address) is not None


def is_pattern(path: str) -> bool:
    """Whether a path stands for several: `*`, `?`, `[...]`, and `**` for any folders."""
    return bool(_PATTERN.search(path))


def base_of(pattern: str) -> str:
    """The folder of a pattern: its path up to the first part that is one."""
    parts = pattern.split("/")
    fixed = next(i for i, part in enumerate(parts) if is_pattern(part))
    return "/".join(parts[:fixed]) or ("/" if pattern.startswith("/") else ".")


def matches(path: str, pattern: str) -> bool:
    """Whether a path is one of a pattern's, part by part."""

    def of(names: list[str], parts: list[str]) -> bool:
        if not (names and parts):
            return not names and all(part == "**" for part in parts)
        if parts[0] == "**":
            return of(names, parts[1:]) or of(names[1:], parts)
        return fnmatchcase(names[0], parts[0]) and of(names[1:], parts[1:])

    return of(path.split("/"), pattern.split("/"))


def split_options(address: str) -> tuple[str, str]:
    """An address without the options of its store, and these with their mark."""
    front, mark, options = address.rpartition("?")
    return (front, mark + options) if "=" in options and mark else (address, "")


@lru_cache(64)
def _opened(address: str, *endpoint: str | None) -> tuple[Any, str]:
    """The file system of an address, and the path in it."""
    from pyarrow import fs

    scheme, rest = address.split("://", 1)
    scheme = {"s3a": "s3", "gcs": "gs"}.get(scheme, scheme)
    address = f"{scheme}://{rest}"
    server = next(filter(None, endpoint), None)
    if server is not None and "endpoint_override=" not in address:
        split = urlsplit(server if "://" in server else f"http://{server}")
        more = urlencode({"endpoint_override": split.netloc, "scheme": split.scheme})
        address += f"{'&' if '?' in address else '?'}{more}"
    try:
        found, path = fs.FileSystem.from_uri(address)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"cannot be opened: {one_line(str(error))}") from None
    return found, path


def stored(address: str) -> StoredFile:
    """What lies at the address of an object store, which need not be there."""
    scheme = "gs" if address.startswith("g") else address[:2]
    servers = [os.environ.get(name) for name in _ENDPOINTS.get(scheme, ())]
    # Patterns hold characters that a URI may not: only the bucket is parsed with its options.
    front, options = split_options(address)
    scheme, _, rest = front.partition("://")
    bucket, _, inside = rest.partition("/")
    filesystem, path = _opened(f"{scheme}://{bucket}{options}", *servers)
    inside = inside.rstrip("/")
    return StoredFile(filesystem, f"{path}/{inside}" if inside else path, address, len(path) + 1)


@dataclass(frozen=True)
class StoredFile:
    """A file or folder of an object store, with what readers use of a `pathlib.Path`.

    `address` is that of the source, with the options of its store; `skip` are the letters of `path`
    in front of what is in the bucket.
    """

    filesystem: Any = field(repr=False, compare=False)
    path: str
    address: str = field(repr=False, compare=False)
    skip: int = field(repr=False, compare=False)

    def __str__(self) -> str:
        front, options = split_options(self.address)
        bucket = "/".join(front.split("/")[:3])
        return f"{bucket}/{self.path[self.skip :]}{options}"

    def __lt__(self, other: StoredFile) -> bool:
        return self.path < other.path

    @property
    def name(self) -> str:
        """The last part of the path."""
        return PurePosixPath(self.path).name

    @property
    def suffix(self) -> str:
        """The ending of the name."""
        return PurePosixPath(self.path).suffix

    def at(self, path: str) -> StoredFile:
        """Another path of the same store."""
        return StoredFile(self.filesystem, path, self.address, self.skip)

    def absolute(self) -> StoredFile:
        """The same."""
        return self

    def relative_to(self, folder: StoredFile) -> PurePosixPath:
        """The path below a folder."""
        return PurePosixPath(self.path).relative_to(folder.path)

    def _info(self) -> Any:
        return self.filesystem.get_file_info(self.path)

    def is_dir(self) -> bool:
        """Whether objects lie below it."""
        return bool(self._info().type.name == "Directory")

    def is_file(self) -> bool:
        """Whether it is an object."""
        return bool(self._info().type.name == "File")

    def exists(self) -> bool:
        """Whether there is anything."""
        return bool(self._info().type.name != "NotFound")

    def is_symlink(self) -> bool:
        """There are no links."""
        return False

    def iterdir(self, *, recursive: bool = False) -> Iterator[StoredFile]:
        """What a folder holds; with `recursive` what those in it hold, too."""
        from pyarrow import fs

        selected = fs.FileSelector(self.path, recursive=recursive)
        return (self.at(one.path) for one in self.filesystem.get_file_info(selected))

    def glob(self, pattern: str) -> Iterator[StoredFile]:
        """What matches a pattern below the folder."""
        deep = "/" in pattern or "**" in pattern
        every = self.iterdir(recursive=deep)
        return (one for one in every if matches(str(one.relative_to(self)), pattern))

    def stat(self) -> Any:
        """Size and time of the last change, as `os.stat` names them."""
        info = self._info()
        if info.size is None:
            raise FileNotFoundError(2, "there is no such object", str(self))
        changed = info.mtime_ns or 0
        return SimpleNamespace(
            st_size=info.size, st_mtime_ns=changed, st_ctime_ns=changed, st_ino=0
        )

    def open(self, mode: str = "rb") -> Any:
        """Its bytes."""
        return self.filesystem.open_input_file(self.path)


File = Any
"""A `Path` of this machine, or a `StoredFile`, which has what readers use of one."""


def file_at(address: str) -> File:
    """The file of a path or an address, as `str` gives them."""
    return stored(address) if STORES.match(address) else Path(address)


def native_file(path: File) -> pa.NativeFile:
    """The bytes of a file, by Arrow."""
    return path.open() if isinstance(path, StoredFile) else pa.OSFile(str(path))


def arrow_stream(path: File, codec: str | None) -> pa.NativeFile:
    """The bytes of a file, decompressed by a codec if there is one."""
    file = native_file(path)
    return file if codec is None else pa.CompressedInputStream(file, codec)


def temporary_folder() -> Path:
    """A folder that is deleted when the process ends."""
    folder = tempfile.mkdtemp(prefix="fewlabels-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def kept_here(path: StoredFile) -> Path:
    """A copy on this disk of a file, or of a folder with all that is in it."""
    from pyarrow import fs

    target = temporary_folder() / (path.name or "store")
    try:
        if path.is_dir():
            fs.copy_files(path.path, str(target), path.filesystem, fs.LocalFileSystem())
        else:
            with path.open() as source, target.open("wb") as file:
                shutil.copyfileobj(source, file, 1 << 20)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"cannot be fetched: {one_line(redacted(str(error)))}") from None
    return target
