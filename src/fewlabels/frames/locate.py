"""What a source is: which files, of which kind. Decided by content, not by the file's name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fewlabels.errors import InputError, UsageError
from fewlabels.frames.wording import told_of
from fewlabels.wording import listed, one_line, quoted

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".pq", ".npz")

_KINDS = {b"PAR1": "Parquet", b"PK\x03\x04": "NPZ", b"PK\x05\x06": "NPZ"}

_REFUSED = {
    b"\x80\x02": "is a pickle",
    b"\x80\x03": "is a pickle",
    b"\x80\x04": "is a pickle",
    b"\x80\x05": "is a pickle",
    b"\x93NUMPY": "is one unnamed array (.npy)",
    b"PARE": "is an encrypted Parquet file",
    b"ARROW1": "is an Arrow or Feather file",
    b"\x89HDF": "is an HDF5 file",
    b"\xd0\xcf\x11\xe0": "is an old Excel file",
    b"\x28\xb5\x2f\xfd": "is compressed by zstd",
    b"BZh": "is compressed by bzip2",
    b"%PDF": "is a PDF file",
}
_LONGEST_MAGIC = 8

GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Located:
    """Files of one kind (CSV, Parquet or NPZ) in order of their names, and what to call them."""

    kind: str
    files: tuple[Path, ...]
    name: str


def locate(source: Any) -> Located | None:
    """Find the files of a path; None if the source is no path.

    Raises
    ------
    InputError
        If there is nothing to read, it may not be read, or it is of no kind that is read here.
    UsageError
        If the path is empty.
    """
    if not isinstance(source, (str, Path)):
        return None
    if not str(source):
        raise UsageError("the path of the file is empty")
    name = str(source)
    path = Path(source)
    with told_of(name):
        try:
            if path.is_dir():
                return _folder(path, name)
            if not path.exists():
                raise InputError("no such file")
            if not path.is_file():
                raise InputError("is not a regular file; save it as a file first")
            return Located(file_kind(path), (path,), name)
        except (OSError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(_reason(error)) from None


def file_kind(path: Path) -> str:
    """CSV, Parquet or NPZ, by the first bytes.

    Raises
    ------
    InputError
        If the file is empty, or of a kind that is not read.
    """
    with path.open("rb") as file:
        head = file.read(_LONGEST_MAGIC)
    if not head:
        raise InputError("is empty (0 bytes)")
    for magic, what in _REFUSED.items():
        if head.startswith(magic):
            never = ", which is never opened, as it can run code" if "pickle" in what else ""
            raise InputError(f"{what}{never}; save the table as CSV or Parquet, or arrays as NPZ")
    for magic, kind in _KINDS.items():
        if head.startswith(magic):
            return kind
    for suffix, kind in ((".parquet", "Parquet"), (".pq", "Parquet"), (".npz", "NPZ")):
        if path.suffix.lower() == suffix:
            raise InputError(
                f"is not a {kind} file: it begins with {quoted(head)}; write it again, or name it "
                ".csv if that is what it is"
            )
    return "CSV"


def _folder(path: Path, name: str) -> Located:
    files = sorted(
        file
        for file in path.iterdir()
        if file.name.lower().endswith(SUFFIXES)
        and not file.name.startswith((".", "_"))
        and file.is_file()
    )
    if not files:
        raise InputError(f"is a folder without files to read; it needs {', '.join(SUFFIXES)}")
    kinds: dict[str, str] = {}
    for file in files:
        with told_of(one_line(file.name)):
            kinds.setdefault(file_kind(file), file.name)
    if len(kinds) > 1:
        shown = [f"{file} is {kind}" for kind, file in kinds.items()]
        raise InputError(
            f"holds files of several kinds ({listed(shown)}); name one file, or sort them"
        )
    return Located(next(iter(kinds)), tuple(files), name)


def _reason(error: Exception) -> str:
    if isinstance(error, PermissionError):
        return "may not be read (permission denied); change its permissions"
    return f"cannot be read: {getattr(error, 'strerror', None) or error}"
