"""What is altered on the disk, or cannot be read of a folder, is said, never left out quietly."""

from __future__ import annotations

import bz2
import gzip
import os
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fewlabels as fl
from fewlabels.data.doctor.diagnose import diagnose

ROWS = "label,p__a__1\n1,.75\n0,.25\n,.5\n"


def zstd(content: bytes) -> bytes:
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, "zstd") as stream:
        stream.write(content)
    return out.getvalue().to_pybytes()


def altered(path: Path) -> Path:
    """A Parquet file with checksums, of which one probability is another than was written."""
    p = np.linspace(0.1, 0.9, 50)
    table = pa.table({"label": [0, 1] * 25, "p__a__1": p, "p__b__1": p[::-1].copy()})
    pq.write_table(table, path, compression="none", use_dictionary=False, write_page_checksum=True)
    content = bytearray(path.read_bytes())
    at = content.index(p.tobytes())
    content[at : at + 8] = np.array([0.99]).tobytes()
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("engine", [None, "threads"])
def test_a_changed_page_is_refused(tmp_path, engine):
    path = altered(tmp_path / "a.parquet")
    read = fl.read_predictions if engine is None else partial(fl.estimate_files, engine=engine)
    with pytest.raises(fl.InputError, match=r"a\.parquet: cannot be read as Parquet.*CRC"):
        read(path)
    assert "CRC" in diagnose(path).summary().replace("\n", "")


def test_a_changed_page_among_labels_and_votes(tmp_path):
    votes = tmp_path / "votes.parquet"
    table = pa.table({"item": np.arange(50.0), "annotator": ["x"] * 50, "label": ["a", "b"] * 25})
    pq.write_table(table, votes, compression="none", use_dictionary=False, write_page_checksum=True)
    content = bytearray(votes.read_bytes())
    at = content.index(np.arange(50.0).tobytes())
    content[at : at + 8] = np.array([77.0]).tobytes()
    votes.write_bytes(content)
    with pytest.raises(fl.InputError, match="CRC"):
        fl.read_predictions(votes=votes)


def test_what_is_written_has_checksums(tmp_path):
    from fewlabels.data.write import write_table

    values = np.linspace(0, 1, 50)
    path = tmp_path / "out.parquet"
    write_table({"p": values}, path, "parquet")
    content = bytearray(path.read_bytes())
    column = pq.read_metadata(path).row_group(0).column(0)
    start = column.dictionary_page_offset or column.data_page_offset
    content[start + column.total_compressed_size - 9] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(OSError, match="CRC"):
        pq.ParquetFile(path, page_checksum_verification=True).read()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("b.csv.bz2", bz2.compress(ROWS.encode())),
        ("b.bz2", bz2.compress(ROWS.encode())),
        ("part-2.zst", zstd(ROWS.encode())),
        ("part-2.gz", gzip.compress(ROWS.encode())),
    ],
)
def test_compressed_parts_are_read(tmp_path, name, content):
    (tmp_path / "a.csv").write_text(ROWS)
    (tmp_path / name).write_bytes(content)
    assert fl.read_predictions(tmp_path).n_items == 6
    assert fl.estimate_files(tmp_path, method="labeled", metrics="accuracy").n_items == 6


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("b.parquet.zst", zstd(b"PAR1\x15\x04"), r"b\.parquet\.zst: is Parquet, compressed by"),
        ("b.csv.xz", b"\xfd7zXZ\x00\x00", r"b\.csv\.xz: is compressed by xz; decompress it"),
        ("b.csv.zip", b"PK\x05\x06" + bytes(18), r"several kinds"),
        ("b.bz2", bz2.compress(b"other,columns\n1,2\n"), r"b\.bz2 differ in the columns"),
    ],
)
def test_parts_that_cannot_be_read_are_named(tmp_path, name, content, message):
    (tmp_path / "a.csv").write_text(ROWS)
    (tmp_path / name).write_bytes(content)
    for read in (fl.read_predictions, fl.estimate_files):
        with pytest.raises(fl.InputError, match=message):
            read(tmp_path)
    left = fl.estimate_files(tmp_path, method="labeled", metrics="accuracy", skip_bad_files=True)
    assert left.n_items == 3
    assert left.diagnostics["stream"]["skipped_files"] == 1


def test_a_folder_of_texts_is_read_where_they_are_tables(tmp_path):
    for name in ("b.txt", "a.tab"):
        (tmp_path / name).write_text(ROWS.replace(",", "\t"))
    (tmp_path / "README.txt").write_text("What this folder holds\n\nScores of April.\n")
    items = fl.read_predictions(tmp_path)
    assert items.n_items == 6
    assert any("not read: README.txt" in note for note in items.notes)
    assert fl.estimate_files(tmp_path, method="labeled", metrics="accuracy").n_items == 6
    (tmp_path / "c.csv").write_text(ROWS)
    assert fl.read_predictions(tmp_path).n_items == 3


def test_links_pipes_and_folders_among_the_parts(tmp_path):
    (tmp_path / "a.csv").write_text(ROWS)
    (tmp_path / "notes.txt.gz").write_bytes(gzip.compress(b"kept for later"))
    (tmp_path / "_SUCCESS").touch()
    assert fl.read_predictions(tmp_path).n_items == 3
    odd = tmp_path / "b.csv"
    odd.symlink_to(tmp_path / "gone.csv")
    missing = r"b\.csv: is a link to '.*gone\.csv', which does not exist; mend or remove the link"
    with pytest.raises(fl.InputError, match=missing):
        fl.read_predictions(tmp_path)
    with pytest.raises(fl.InputError, match=missing):
        fl.estimate_files(tmp_path)
    odd.unlink()
    os.mkfifo(odd)
    with pytest.raises(fl.InputError, match=r"b\.csv: is not a regular file"):
        fl.read_predictions(tmp_path)
    odd.unlink()
    (tmp_path / "b.parquet").mkdir()
    with pytest.raises(fl.InputError, match=r"b\.parquet: is a folder within the folder"):
        fl.read_predictions(tmp_path)
    (tmp_path / "b.parquet").rmdir()
    (tmp_path / "year=2020").mkdir()  # a part without files
    assert fl.read_predictions(tmp_path).n_items == 3
    (tmp_path / "year=2020" / "b.csv").write_text(ROWS)
    with pytest.raises(
        fl.InputError, match=r"a\.csv and year=2020/b\.csv differ in the columns 'year'"
    ):
        fl.read_predictions(tmp_path)


def test_rows_of_other_kinds_beside_are_said(tmp_path):
    (tmp_path / "a.csv").write_text(ROWS)
    (tmp_path / "b.jsonl").write_text('{"label": 1}\n')
    (tmp_path / "about.json").write_text("{}")
    note = "files of other kinds in the folder are not read: b.jsonl"
    assert note in fl.read_predictions(tmp_path).notes
    found = fl.estimate_files(tmp_path, method="labeled", metrics="accuracy")
    assert any(note in warning for warning in found.warnings)


def holed(folder: Path, missing: list[int]) -> Path:
    folder.mkdir()
    rng = np.random.default_rng(3)
    for k, holes in enumerate(missing):
        p = rng.random(200)
        p[:holes] = np.nan
        label = [0, 1, *[None] * 198]
        table = pa.table({"label": label, "p__a__1": p, "p__b__1": rng.random(200)})
        pq.write_table(table, folder / f"part-{k}.parquet", row_group_size=50)
    return folder


@pytest.mark.parametrize("parts", [False, True])
def test_predictions_missing_in_one_file_alone_are_said(tmp_path, parts):
    def said(source: Path) -> list[str]:
        if parts:
            found = fl.estimate_files(source, metrics="accuracy").warnings
        else:
            found = fl.estimate(source, metrics="accuracy").warnings
        return [line for line in found if "files none are" in line]

    (line,) = said(holed(tmp_path / "one", [0, 150, 0]))
    assert "predictions of 'a' are missing in part-1.parquet (150 of 200 rows)" in line
    assert "in 2 of the 3 files none are" in line
    assert said(holed(tmp_path / "few", [0, 1, 0])) == []
    assert said(holed(tmp_path / "all", [60, 150, 40])) == []
    assert said(holed(tmp_path / "alone", [150])) == []
