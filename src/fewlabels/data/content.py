"""What a file is, told by its bytes; and those bytes as text is read from them.

Bytes come decompressed, and UTF-16 as UTF-8. A file of a kind that is not read is refused with what
it is, and the way.
"""

from __future__ import annotations

import codecs
import re
import shlex
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from fewlabels.data.limits import Inflation, refuse_whole
from fewlabels.data.stores import File, arrow_stream
from fewlabels.errors import FewlabelsError, InputError, listed, quoted

ENDINGS = (".gz", ".zst", ".bz2")
"""What names of compressed files end in."""

_PIECE = 4 << 20

HEAD = 1 << 10
"""Bytes that suffice to recognise a file."""

_CODECS = (
    # Each with what follows the first letters, which a header of text may have too.
    ("gzip", re.compile(rb"\x1f\x8b")),
    ("zstd", re.compile(rb"\x28\xb5\x2f\xfd")),
    ("bz2", re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90|$)", re.DOTALL)),
)
UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def compression(path: File) -> str | None:
    """What a file is compressed by, told by its first bytes: gzip, zstd, bz2, or nothing."""
    with path.open("rb") as file:
        head = file.read(16)
    return next((codec for codec, magic in _CODECS if magic.match(head)), None)


def check_fits(path: File) -> None:
    """Refuse a text that is read whole and would not fit into memory, before it is parsed."""
    codec = compression(path)
    inflation = Inflation(path, packed=codec is not None)
    if codec is None:
        inflation.take(path.stat().st_size)
    else:
        with arrow_stream(path, codec) as stream:
            while chunk := stream.read(_PIECE):
                inflation.take(len(chunk))
    # Numbers take less than their texts.
    refuse_whole(inflation.size // 2, "its texts")


def first_bytes(path: File, size: int = HEAD) -> bytes:
    """The first bytes, decompressed; empty where the compressed bytes are damaged."""
    codec = compression(path)
    try:
        with arrow_stream(path, codec) as stream:
            head: bytes = stream.read(size)
    except (OSError, ValueError):
        if codec is None:
            raise
        return b""
    return head


def not_utf8(byte: int, where: str, path: File | None = None) -> InputError:
    """Message about a text that is not UTF-8, with the place of the first bad byte."""
    file, new = "FILE", "NEW"
    if isinstance(path, str | Path):
        file, new = (
            shlex.quote(str(path)),
            shlex.quote(f"{Path(path).stem}-utf8{Path(path).suffix}"),
        )
    return InputError(
        f"is not UTF-8 (byte 0x{byte:02x}{where}); save it again as UTF-8 (Excel: CSV UTF-8), or "
        f"convert it: iconv -f WINDOWS-1252 -t UTF-8 {file} > {new}"
    )


@contextmanager
def byte_stream(path: File) -> Iterator[Any]:
    """The bytes of a file, decompressed where they are compressed, UTF-16 as UTF-8."""
    try:
        codec = compression(path)
        with arrow_stream(path, codec) as stream:
            if not first_bytes(path).startswith(UTF16):
                yield stream
                return
            # At once: only spreadsheets write it, and theirs are small.
            check_fits(path)
            content = stream.read()
        try:
            content = content.decode("utf-16").encode()
        except UnicodeError:
            raise InputError(
                "begins as UTF-16 and is not; save it again as UTF-8, or convert it: "
                "iconv -f UTF-16 -t UTF-8 FILE > NEW"
            ) from None
        with pa.BufferReader(content) as stream:
            yield stream
    except (FewlabelsError, pa.ArrowInvalid):
        raise
    except (OSError, ValueError, MemoryError) as error:
        raise InputError(
            f"cannot be read ({error}); if it is compressed, it may be damaged or cut short"
        ) from None


_SAVE = "save the table as CSV or Parquet, or arrays as NPZ"
_PICKLE = f"is a pickle, which is never opened, as it can run code; {_SAVE}"
_UNPACK = "unpack it, and name the file with the table"

_MAGIC = (
    # No text matches: where the letters alone may begin a header, the bytes behind them count.
    (rb"\x80[\x02-\x05]", _PICKLE),
    (
        rb"\([dl]p\d+\n|c(?:copy_reg|numpy|pandas|sklearn|builtins|__builtin__|collections)"
        rb"[\w.]*\n\w+\n",
        _PICKLE,
    ),
    (rb"\x93NUMPY", f"is one unnamed array (.npy); {_SAVE}"),
    (rb"PARE[\x00-\x08\x0e-\x1f\x80-\xff]", f"is an encrypted Parquet file; {_SAVE}"),
    (
        rb"FEA1[\x00-\x08\x0e-\x1f\x80-\xff]",
        "is a Feather file of version 1; write it again with pyarrow.feather.write_feather",
    ),
    (rb"\x89HDF\r\n", f"is an HDF5 file; read it with pandas or h5py, and {_SAVE}"),
    (rb"Obj\x01|ORC(?:\n[\x00-\x1f]|[\x00-\x08\x0e-\x1f\x80-\xff])",
     "is an Avro or ORC file; save the table as Parquet"),
    (rb"%PDF-", "is a PDF file; save its table as CSV"),
    (rb"\{\\rtf", "is a text document (RTF); save its table as CSV"),
    (rb"RD[XA][23]\n[XAB]\n|[XB]\n\x00\x00\x00", "is an R file; in R: write.csv"),
    (
        rb"<stata_dta>|[\x69-\x73][\x01\x02]\x01\x00",
        "is a Stata file; in Stata: export delimited table.csv",
    ),
    (
        rb"\x00{12}\xc2\xea\x81\x60|HEADER RECORD\*{7}",
        "is a SAS file; in SAS: proc export with dbms=csv",
    ),
    (rb"\$FL[23]@\(#\)", "is an SPSS file; in SPSS: save it as CSV"),
    (rb".{257}ustar|7z\xbc\xaf\x27\x1c|Rar!\x1a\x07", f"is an archive; {_UNPACK}"),
    (rb"\xfd7zXZ\x00", "is compressed by xz; decompress it: xz -d FILE"),
    (rb"\x04\x22\x4d\x18", "is compressed by lz4; decompress it: lz4 -d FILE"),
    (rb"\x89PNG\r\n|\xff\xd8\xff|GIF8[79]a|II\*\x00|MM\x00\*|RIFF.{4}WEBP", "is an image; type "
     "its table in as CSV"),
    (
        rb"(?i:(?:--[^\n]*\n|/\*[^*]*\*/;?|\s)*(?:create|insert|drop|lock|set|begin|pragma)\s"
        rb"[^,\n]*[;(]\r?\n)",
        "is a dump of a database: load it into one, and name a table of that "
        "(postgresql://HOST/DB#TABLE, sqlite:///FILE#TABLE) or rows by --query; or save its table "
        "as CSV",
    ),
    (rb"(?i:\s*<(?:!doctype html|html|\?xml))", "is a web page or XML; save its table as CSV"),
)  # fmt: skip
_REFUSED = tuple((re.compile(magic, re.DOTALL), what) for magic, what in _MAGIC)

_OLE = (
    ("EncryptedPackage", "is an encrypted Office file; save it without a password"),
    ("WordDocument", "is a Word document; save its table as CSV"),
    ("PowerPoint Document", "is a file of slides; save its table as CSV"),
)
_PICKLED = (".pkl", ".pickle", ".joblib")
_KINDS = (
    ("Parquet", re.compile(rb"PAR1(?:[\x00-\x08\x0e-\x1f\x80-\xff]|$)", re.DOTALL)),
    ("Feather", re.compile(rb"ARROW1(?:\x00|$)|\xff\xff\xff\xff.{3}\x00", re.DOTALL)),
    ("zip", re.compile(rb"PK\x03\x04|PK\x05\x06")),
    ("OLE", re.compile(rb"\xd0\xcf\x11\xe0")),
    ("JSON", re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\{\s*[\"}]|\[\s*[\[{\]])")),
)
_NAMED = {
    ".parquet": "Parquet", ".pq": "Parquet", ".npz": "NPZ", ".feather": "Feather",
    ".arrow": "Feather", ".json": "JSON", ".jsonl": "JSON", ".ndjson": "JSON",
    ".xlsx": "Excel", ".xlsm": "Excel", ".xlsb": "Excel", ".xls": "Excel", ".ods": "Excel",
}  # fmt: skip
DATABASE_FILES = (
    ("sqlite", re.compile(rb"SQLite format 3\x00")),
    ("duckdb", re.compile(rb".{8}DUCK", re.DOTALL)),
)  # fmt: skip
"""How addresses of databases that are a file begin, and how their files do."""

INSPECT = "Inspect"
"""The kind of a zip archive that is a log of Inspect."""

_COMPRESSED = ("CSV", "JSON")
"""Kinds that may be compressed as a whole; the others compress their contents."""


def file_kind(path: File) -> str:
    """CSV, Parquet, NPZ, JSON, Feather, Excel or Inspect, by the bytes."""
    codec = compression(path)
    head = first_bytes(path)
    if not head and codec is None:
        raise InputError("is empty (0 bytes)")
    name = path.name.lower()
    if codec is not None and name.endswith(ENDINGS):
        name = name.rpartition(".")[0]
    scheme = next((scheme for scheme, magic in DATABASE_FILES if magic.match(head)), None)
    if scheme is not None:
        raise InputError(
            f"is a database: name its table in an address, {scheme}:///FILE#TABLE (four slashes "
            "before a path from the root), or choose rows of it with --query"
        )
    for magic, what in _REFUSED:
        if magic.match(head):
            raise InputError(what)
    if name.endswith(_PICKLED):
        raise InputError(_PICKLE)
    kind = next((kind for kind, magic in _KINDS if magic.match(_as_utf8(head))), "CSV")
    if kind == "zip":
        kind = _kind_of_zip(path, name) if codec is None else "NPZ"
    elif kind == "OLE":
        # What a file of the old Office is, by the names of its streams.
        streams = path.read_bytes() if codec is None else b""
        for stream, what in _OLE:
            if stream.encode("utf-16-le") in streams:
                raise InputError(what)
        kind = "Excel"
    wanted = _NAMED.get("." + name.rpartition(".")[2])
    if kind == "CSV" and wanted == "JSON" and _as_utf8(head).strip()[:1] in (b"", b"{", b"["):
        return wanted
    if kind == "CSV" and wanted is not None:
        a = "an" if wanted[0] in "EN" else "a"
        raise InputError(
            f"is not {a} {wanted} file: it begins with {quoted(head[:8])}; write it again, or name "
            "it .csv if that is what it is"
        )
    if codec is not None and kind not in _COMPRESSED:
        raise InputError(f"is {kind}, compressed by {codec}; decompress it first")
    return kind


def _as_utf8(head: bytes) -> bytes:
    """The beginning of a text in UTF-16 as UTF-8, other bytes as they are."""
    if not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return head
    return head[: len(head) // 2 * 2].decode("utf-16", "replace").encode(errors="replace")


def _kind_of_zip(path: File, name: str) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.namelist()
            mimetype = b""
            if "mimetype" in members:
                with archive.open("mimetype") as member:
                    mimetype = member.read(99)
    except Exception:  # whatever foreign bytes make the reader stumble on
        if name.endswith(".npz"):
            return "NPZ"  # which says what is wrong with it
        workbook = _NAMED.get("." + name.rpartition(".")[2]) == "Excel"
        what = "an Excel file" if workbook else "a zip archive"
        raise InputError(f"is {what} that is damaged or cut short; write it again") from None
    if {"header.json", "_journal/start.json"} & {*members}:
        return INSPECT
    folders = {member.partition("/")[0] for member in members}
    if b"opendocument.spreadsheet" in mimetype or (
        "xl" in folders and "[Content_Types].xml" in members
    ):
        return "Excel"
    if "[Content_Types].xml" in members or b"opendocument" in mimetype:
        what = "a Word document" if "word" in folders else "a document or slides"
        raise InputError(f"is {what}; save its table as CSV")
    if any(member.endswith(".pkl") for member in members):
        raise InputError(_PICKLE)
    if name.endswith(".npz") or not members or any(m.endswith(".npy") for m in members):
        return "NPZ"
    raise InputError(f"is a zip archive that holds {listed(members, 3)}; {_UNPACK}")
