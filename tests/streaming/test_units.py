"""Files as units: every row in one of them, in the order of the files."""

from __future__ import annotations

import gzip
import itertools
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fewlabels as fl
from fewlabels.data.options import column_options
from fewlabels.data.sources import BadFile
from fewlabels.streaming import units
from fewlabels.streaming.units import Layout, Stamp, lay_out

COLUMNS = column_options()
GOOD = b"label,p__a__1\n0,.5\n1,.25\n"


def write_parquet(path: Path, n: int = 20, row_group_size: int = 7) -> Path:
    table = pa.table({"label": [0, 1] * (n // 2), "p__a__1": np.linspace(0, 1, n)})
    pq.write_table(table, path, row_group_size=row_group_size)
    return path


def skipping(source: Path) -> Layout:
    return lay_out(source, COLUMNS, skip_bad_files=True)


@pytest.mark.parametrize(
    ("unit_rows", "bounds"),
    [
        (7, [0, 1, 2, 3]),
        (13, [0, 1, 3]),
        (14, [0, 2, 3]),
        (19, [0, 2, 3]),
        (20, [0, 3]),
        (1 << 20, [0, 3]),
    ],
)
def test_row_groups(tmp_path: Path, monkeypatch: Any, unit_rows: int, bounds: list[int]) -> None:
    monkeypatch.setattr(units, "UNIT_ROWS", unit_rows)
    path = write_parquet(tmp_path / "file.parquet")
    layout = lay_out(path, COLUMNS)
    assert [(u.start, u.stop) for u in layout.units] == list(itertools.pairwise(bounds))
    assert [u.first_row for u in layout.units] == [7 * start for start in bounds[:-1]]
    assert sum(u.n_rows or 0 for u in layout.units) == 20
    assert all(u.n_bytes > 0 for u in layout.units)
    assert layout.n_bytes == path.stat().st_size
    for unit in layout.units:
        assert (unit.path, unit.name, unit.kind) == (str(path), str(path), "Parquet")
        status = path.stat()
        assert unit.stamp[:3] == (status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        assert unit.stamp.matches(Stamp.of(path))


@pytest.mark.parametrize(
    ("unit_rows", "firsts"),
    [
        (6, [0, 3, 7, 10, 14]),
        (3, [0, 2, 4, 7, 9, 11, 14, 17]),
        (1, [0, 1, 3, 5, 7, 8, 10, 12, 14, 15, 17, 18]),
    ],
)
def test_slices_of_a_row_group(
    tmp_path: Path, monkeypatch: Any, unit_rows: int, firsts: list[int]
) -> None:
    """One that has more rows than a unit is read by several, but not by more than four."""
    monkeypatch.setattr(units, "UNIT_ROWS", unit_rows)
    found = lay_out(write_parquet(tmp_path / "file.parquet"), COLUMNS).units
    assert [u.first_row for u in found] == firsts
    ends = [*firsts[1:], 20]
    assert [u.n_rows for u in found] == [b - a for a, b in zip(firsts, ends, strict=True)]
    for unit in found:
        begin, n = 7 * unit.start, min(7, 20 - 7 * unit.start)
        assert unit.n_rows is not None
        assert (unit.stop, begin + unit.skip) == (unit.start + 1, unit.first_row)
        assert unit.skip + unit.n_rows + unit.left == n
    assert sum(unit.n_bytes for unit in found) == (tmp_path / "file.parquet").stat().st_size


def test_a_layout_travels(tmp_path: Path) -> None:
    write_parquet(tmp_path / "a.parquet")
    layout = lay_out(tmp_path, COLUMNS)
    assert pickle.loads(pickle.dumps(layout)) == layout
    assert len({*layout.units, *pickle.loads(pickle.dumps(layout.units))}) == len(layout.units)


def test_a_relative_path_is_told_as_it_is_given(tmp_path: Path, monkeypatch: Any) -> None:
    write_parquet(tmp_path / "a.parquet")
    monkeypatch.chdir(tmp_path)
    (unit,) = lay_out("a.parquet", COLUMNS).units
    assert (unit.name, unit.path) == ("a.parquet", str(tmp_path / "a.parquet"))


def test_files_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("b.parquet", "a.parquet", "c.pq"):
        write_parquet(tmp_path / name)
    (tmp_path / "_SUCCESS").write_bytes(b"")
    (tmp_path / ".a.parquet").write_bytes(b"")
    layout = skipping(tmp_path)
    assert [u.name for u in layout.units] == ["a.parquet", "b.parquet", "c.pq"]
    assert [u.first_row for u in layout.units] == [0, 0, 0]
    assert layout.roles.models == ("a",)
    assert (layout.name, layout.skipped) == (str(tmp_path), ())


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r", b"\n\n", b"\r\n\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_byte_ranges(tmp_path: Path, monkeypatch: Any, end: bytes, mark: bytes) -> None:
    path = tmp_path / "file.csv"
    # Quotes in the header are no hindrance.
    header = mark + b'"label","p__a__1"' + end.replace(b"\n\n", b"\n").replace(b"\r\n\r\n", b"\r\n")
    rows = [b"%d,0.%d" % (i % 2, i**3) for i in range(30)]
    content = header + end.join(rows) + end
    path.write_bytes(content)
    for size in range(1, 60):
        monkeypatch.setattr(units, "UNIT_BYTES", size)
        layout = lay_out(path, COLUMNS)
        found = [content[u.start : u.stop] for u in layout.units]
        assert header + b"".join(found) == content
        assert re.findall(rb"[^\r\n]+", b"".join(found)) == rows
        for part, following in itertools.pairwise(found):
            assert part.endswith((b"\n", b"\r"))
            assert not (part.endswith(b"\r") and following.startswith(b"\n"))
            assert len(part) >= size
        assert layout.n_bytes == len(content)
        assert [u.first_row for u in layout.units] == [0] + [None] * (len(found) - 1)
        assert {u.n_rows for u in layout.units} == {None}
    assert len(found) > 4


def test_a_line_break_where_a_chunk_ends(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(units, "_CHUNK", 1)
    monkeypatch.setattr(units, "UNIT_BYTES", 8)
    path = tmp_path / "file.csv"
    path.write_bytes(b"p__a__1\r\n" + b"0.5\r\n" * 10)
    assert [u.stop - u.start for u in lay_out(path, COLUMNS).units] == [10] * 5


def test_csv_that_cannot_be_divided(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(units, "UNIT_BYTES", 10)
    path = tmp_path / "file.csv"
    content = b'p__a__1,note\n.5,x\n.5,"a\nb"\n.5,x\n'
    path.write_bytes(content)
    (unit,) = lay_out(path, COLUMNS).units
    assert (unit.start, unit.stop, unit.first_row) == (13, len(content), 0)
    path.write_bytes(gzip.compress(content))
    (unit,) = lay_out(path, COLUMNS).units
    assert (unit.start, unit.stop, unit.first_row) == (13, units.TO_THE_END, 0)
    assert unit.n_bytes == path.stat().st_size


def test_files_without_rows(tmp_path: Path) -> None:
    table = pa.table({"label": [0, 1], "p__a__1": [0.5, 0.5]})
    pq.write_table(table.slice(0, 0), tmp_path / "a.parquet")
    with pytest.raises(fl.InputError, match="there are no rows; a file needs at least one item"):
        lay_out(tmp_path, COLUMNS)
    pq.write_table(table, tmp_path / "b.parquet")
    with pq.ParquetWriter(tmp_path / "c.parquet", table.schema) as writer:
        for part in (table.slice(0, 0), table, table.slice(0, 0), table):
            writer.write_table(part)
    found = [(u.name, u.first_row, u.n_rows) for u in lay_out(tmp_path, COLUMNS).units]
    assert found == [("b.parquet", 0, 2), ("c.parquet", 0, 4)]


@pytest.mark.parametrize("rest", [b"", b"\n", b"\n\r\n\n", b"\r\r"])
def test_csv_files_without_rows(tmp_path: Path, rest: bytes) -> None:
    for name, content in (("a.csv", b"label,p__a__1" + rest), ("b.csv", GOOD)):
        (tmp_path / name).write_bytes(content)
    assert [u.name for u in lay_out(tmp_path, COLUMNS).units] == ["b.csv"]
    (tmp_path / "b.csv").write_bytes(gzip.compress(b"p__a__1,label" + rest))
    with pytest.raises(fl.InputError, match="there are no rows"):
        lay_out(tmp_path, COLUMNS)


def test_columns_in_any_order_but_the_same(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(GOOD)
    (tmp_path / "b.csv").write_bytes(b"p__a__1,label\n.5,1\n")
    assert len(lay_out(tmp_path, COLUMNS).units) == 2
    (tmp_path / "c.csv").write_bytes(GOOD.replace(b"label", b"gold"))
    said = r"a\.csv and c\.csv differ in the columns 'gold', 'label'; make them agree"
    with pytest.raises(fl.InputError, match=f"^{re.escape(str(tmp_path))}: {said}"):
        lay_out(tmp_path, COLUMNS)
    layout = skipping(tmp_path)
    assert len(layout.units) == 2
    (bad,) = layout.skipped
    assert bad.name == "c.csv"
    assert re.match(said, bad.reason)


def test_bad_files_are_left_out_where_that_is_asked_for(tmp_path: Path) -> None:
    whole = write_parquet(tmp_path / "d.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(b"")
    (tmp_path / "b.parquet").write_bytes(whole[:100])
    (tmp_path / "c.parquet").write_bytes(b"junk" + whole)
    (tmp_path / "e.parquet").write_bytes(whole[:-100] + b"\xff" * 92 + whole[-8:])
    (tmp_path / "f.csv").write_bytes(GOOD)
    with pytest.raises(fl.InputError, match=r"a\.parquet: is empty"):
        lay_out(tmp_path, COLUMNS)
    (tmp_path / "a.parquet").unlink()
    (tmp_path / "c.parquet").unlink()
    (tmp_path / "f.csv").unlink()
    with pytest.raises(fl.InputError, match=r"b\.parquet: cannot be read as Parquet, it is dam"):
        lay_out(tmp_path, COLUMNS)
    (tmp_path / "a.parquet").write_bytes(b"")
    (tmp_path / "c.parquet").write_bytes(b"junk" + whole)
    (tmp_path / "f.csv").write_bytes(GOOD)
    # Of the bytes "f.csv" is no Parquet file, which the first file that can be opened is.
    layout = skipping(tmp_path)
    assert {u.name for u in layout.units} == {"d.parquet"}
    assert [bad.name for bad in layout.skipped] == [
        *("a.parquet", "b.parquet", "c.parquet", "e.parquet", "f.csv")
    ]
    reasons = [
        r"is empty \(0 bytes\)",
        "cannot be read as Parquet, it is damaged or cut short .*; write it again",
        "is not a Parquet file: it begins with b'junkPAR1'",
        "cannot be read as Parquet",
        r"is CSV, and b\.parquet is Parquet",
    ]
    for bad, reason in zip(layout.skipped, reasons, strict=True):
        assert re.match(reason, bad.reason)
        assert bad.reason.isprintable()


def test_bad_csv_files_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(GOOD * 50)[:-12])
    (tmp_path / "b.csv").write_bytes(GOOD)
    (tmp_path / "c.csv").write_bytes(b"label,p__a__\xeb\n")
    (tmp_path / "d.csv").write_bytes(b"\n\n")
    layout = skipping(tmp_path)
    assert [u.name for u in layout.units] == ["b.csv"]
    assert [bad.name for bad in layout.skipped] == ["a.csv.gz", "c.csv", "d.csv"]
    assert "it may be damaged or cut short" in layout.skipped[0].reason
    assert layout.skipped[2] == BadFile(
        "d.csv", "has no header; the first row must name the columns"
    )


def test_nothing_that_can_be_used(tmp_path: Path) -> None:
    def said(source: Path) -> str:
        with pytest.raises(fl.InputError, match=f"^{re.escape(str(source))}: ") as caught:
            skipping(source)
        return str(caught.value)

    assert "is a folder without files to read" in said(tmp_path)
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1")
    assert "a.parquet: cannot be read as Parquet" in said(path)
    assert f"{tmp_path}: cannot be read as Parquet" in said(tmp_path)
    (tmp_path / "b.parquet").write_bytes(b"")
    assert "none of its 2 files can be read; " in said(tmp_path)
    assert "no such file" in said(tmp_path / "none.csv")


def test_what_is_not_streamed(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", probabilities=np.full((2, 1), 0.5))
    with pytest.raises(fl.InputError, match=r"NPZ files are read whole; add --engine memory"):
        lay_out(tmp_path, COLUMNS)
    for frame in (pa.table({"p__a__1": [0.5]}), None):
        with pytest.raises(fl.UsageError, match="`source` must be a path of Parquet or CSV files"):
            lay_out(frame, COLUMNS)  # type: ignore[arg-type]
    with pytest.raises(fl.UsageError, match="the path of the file is empty"):
        lay_out("", COLUMNS)


def test_what_options_ask_for(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(GOOD)
    with pytest.raises(fl.InputError, match=r"no column 'gold' \(--label\); .*the columns are"):
        lay_out(path, column_options(label="gold"))
    path.write_bytes(b"label,x\n1,.5\n")
    with pytest.raises(fl.InputError, match="no prediction columns"):
        lay_out(path, COLUMNS)
    assert lay_out(path, column_options(models={"net": "x"})).roles.models == ("net",)
