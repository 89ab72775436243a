"""Few bytes that are more rows than memory holds: one line before the memory is asked for."""

from __future__ import annotations

import bz2
import gzip
import io
import subprocess
import sys
import zipfile
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from workbooks import ods, with_part, xlsx

import fewlabels as fl
from fewlabels.checks import arguments
from fewlabels.data import limits
from fewlabels.data.doctor.diagnose import diagnose
from fewlabels.data.limits import MOST_COLUMNS
from fewlabels.data.logs.documents import keys_at_the_beginning
from fewlabels.errors import InputError
from fewlabels.streaming.units import about_rows

CSV = b"label,p__a__1\n" + b"1,.5\n,.5\n" * 40_000
JSONL = b'{"label": 1, "p__a__1": 0.5}\n' * 20_000


@pytest.fixture
def small(monkeypatch):
    """A machine on which a megabyte is free."""
    monkeypatch.setattr(arguments, "available_memory", lambda: 1_000_000)


def npz(path, rows):
    np.savez_compressed(path, scores=np.zeros((rows, 1)))
    return path


def parquet(path, rows):
    table = pa.table({"label": np.zeros(rows, np.int8), "p__a__1": np.full(rows, 0.5)})
    pq.write_table(table, path)
    return path


def refused(source, message, read=fl.read_predictions):
    with pytest.raises(fl.InputError, match=message) as caught:
        read(source)
    assert str(caught.value).startswith(f"{source}: ")
    assert str(caught.value).isprintable()


@pytest.mark.usefixtures("small")
def test_more_than_fits_is_refused_before_it_is_read(tmp_path):
    path = parquet(tmp_path / "a.parquet", 500_000)
    assert path.stat().st_size < 20_000
    refused(path, "reading its 500,000 rows of 2 columns whole takes about 0.1 GB of memory")
    path.rename(tmp_path / "folder.parquet")
    (tmp_path / "folder").mkdir()
    for k in range(4):
        parquet(tmp_path / "folder" / f"{k}.parquet", 10_000)
    refused(tmp_path / "folder", "its .* rows of 2 columns whole takes about")
    refused(npz(tmp_path / "a.npz", 500_000), "its arrays whole takes about")
    book = tmp_path / "a.xlsx"
    book.write_bytes(xlsx({"S": [["label", "p__a__1"], *[["x", 0.5]] * 5_000]}, compressed=True))
    refused(book, "its sheets, which span .* cells, whole takes about")
    path = tmp_path / "a.jsonl"
    path.write_bytes(JSONL)
    refused(path, "its texts whole takes about")


@pytest.mark.usefixtures("small")
def test_rows_of_text_are_counted_while_they_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr("fewlabels.data.delimited._BATCHES_BETWEEN", 1)
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(CSV * 4))
    refused(path, "its rows whole takes about")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv.gz", gzip.compress(CSV)),
        ("a.csv.bz2", bz2.compress(CSV)),
        ("a.jsonl.gz", gzip.compress(JSONL)),
        ("b.csv.gz", gzip.compress(CSV.decode().encode("utf-16"))),
    ],
)
def test_what_inflates_too_far_is_refused(tmp_path, name, content, monkeypatch):
    monkeypatch.setattr(limits, "MOST_INFLATED", 100_000)
    path = tmp_path / name
    path.write_bytes(content)
    monkeypatch.setattr(limits, "MOST_RATIO", 1_000_000)
    assert fl.read_predictions(path).n_items >= 20_000
    monkeypatch.setattr(limits, "MOST_RATIO", 2)
    refused(path, r"is 0\.0 MB and inflates to more than 0\.0 GB; if that is what it should hold")
    if "csv" in name:
        refused(path, "inflates to more than", fl.estimate_files)
    assert "inflates to more than" in " ".join(diagnose(path).summary().split())


def feather(path, rows, how="zstd", stream=False):
    """Rows of one value, whose batches are a few bytes each."""
    table = pa.table({"label": np.zeros(rows, np.int8), "p__a__1": np.full(rows, 0.5)})
    options = pa.ipc.IpcWriteOptions(compression=how)
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(str(path), table.schema, options=options) as writer:
        writer.write_table(table, 50_000)
    return path


@pytest.mark.parametrize("stream", [False, True])
def test_batches_that_inflate_too_far_are_refused_before_they_are_read(
    tmp_path, stream, monkeypatch
):
    path = feather(tmp_path / "a.feather", 200_000, stream=stream)
    assert path.stat().st_size < 20_000
    assert fl.read_predictions(path).n_items == 200_000
    monkeypatch.setattr(limits, "MOST_INFLATED", 1_000_000)
    monkeypatch.setattr(limits, "MOST_RATIO", 2)
    refused(path, r"is 0\.0 MB and inflates to more than 0\.0 GB")
    plain = feather(tmp_path / "plain.feather", 20_000, None, stream)
    assert fl.read_predictions(plain).n_items == 20_000


def test_rows_that_take_no_bytes_are_counted(tmp_path, monkeypatch):
    path = tmp_path / "a.feather"
    nothing = pa.nulls(2_000_000)
    with pa.ipc.new_file(str(path), pa.schema([("label", pa.null()), ("y__a", pa.null())])) as file:
        file.write_batch(pa.record_batch([nothing, nothing], names=["label", "y__a"]))
    assert path.stat().st_size < 5_000
    monkeypatch.setattr(arguments, "available_memory", lambda: 100_000_000)
    refused(path, "reading its 2,000,000 rows of 2 columns whole takes about")


TABLE = {"S": [["label", "p__a__1"], [1, 0.5], [0, 0.25]]}
FAR = b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData>'
OFTEN = b'<table:table-cell table:number-columns-repeated="%d" office:value-type="float" '


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.xlsx", with_part(xlsx(TABLE), "sheet1.xml", b"</sheetData>", FAR)),
        (
            "a.ods",
            with_part(
                ods(TABLE),
                "content.xml",
                b'<table:table-cell office:value-type="float" ',
                OFTEN % 10_000_000_000,
            ),
        ),
    ],
)
def test_sheets_that_span_more_cells_than_fit_are_refused(tmp_path, name, content):
    """The reader of workbooks makes every cell between the first and the last, or dies of it."""
    path = tmp_path / name
    path.write_bytes(content)
    refused(path, r"reading its sheets, which span [\d,]+ cells, whole takes about")


def test_empty_cells_at_the_ends_of_a_sheet_are_nothing(tmp_path):
    """Programs write them by the million."""
    empty = b'<table:table-cell table:number-columns-repeated="16382"/></table:table-row>'
    rows = (
        b'<table:table-row table:number-rows-repeated="1048570">'
        b'<table:table-cell table:number-columns-repeated="16384"/></table:table-row></table:table>'
    )
    book = with_part(ods(TABLE), "content.xml", b"</table:table-row>", empty)
    path = tmp_path / "a.ods"
    path.write_bytes(with_part(book, "content.xml", b"</table:table>", rows))
    assert fl.read_predictions(path).n_items == 2


def test_parts_of_a_workbook_are_what_they_inflate_to_not_what_they_say(tmp_path, monkeypatch):
    rows = [["label", "p__a__1"], *[["x", 0.5]] * 5_000]
    book = bytearray(xlsx({"S": rows}, compressed=True))
    with zipfile.ZipFile(io.BytesIO(book)) as archive:
        size = next(m.file_size for m in archive.infolist() if "sheet1" in m.filename)
    said = size.to_bytes(4, "little")
    assert book.count(said) == 2  # before the part, and in the directory
    lie = bytes(book).replace(said, (10).to_bytes(4, "little"))
    path = tmp_path / "a.xlsx"
    path.write_bytes(lie)
    monkeypatch.setattr(limits, "MOST_INFLATED", 100_000)
    monkeypatch.setattr(limits, "MOST_RATIO", 2)
    refused(path, r"is 0\.0 MB and inflates to more than 0\.0 GB")


def test_the_cells_of_a_binary_sheet_are_counted():
    def record(kind, *numbers):
        data = b"".join(n.to_bytes(4, "little") for n in numbers)
        return bytes([kind, len(data)]) + data

    far = record(0, 5) + record(2, 1, 7) + record(0, 1_000_004) + record(5, 100, 0)
    assert limits._of_binary(iter([b"\x91\x01\x00" + far])) == 1_000_000 * 100


@pytest.mark.slow
def test_parts_of_any_number_of_rows_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(arguments, "available_memory", lambda: 4_000_000)  # a part fits
    found = fl.estimate_files(parquet(tmp_path / "a.parquet", 500_000), "labeled", "accuracy")
    assert found.n_items == 500_000


def test_rows_are_told_by_the_footer_or_the_first_blocks(tmp_path):
    assert about_rows(parquet(tmp_path / "a.parquet", 300_000)) == 300_000
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(CSV * 4))
    assert about_rows(path) == pytest.approx(320_000, rel=0.01)
    path.write_bytes(gzip.compress(CSV)[:-100])
    with pytest.raises(fl.InputError, match="cannot be read"):
        about_rows(path)


def test_memory_that_is_there_within_the_limit_of_a_process():
    pytest.importorskip("resource")
    code = (
        "import resource\n"
        "from fewlabels.checks.arguments import available_memory\n"
        "free = available_memory()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))\n"
        "print(free, available_memory())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    free, limited = map(int, done.stdout.split())
    assert 0 < limited <= min(free, 2**31)


def test_cached_files_of_a_container_give_way(tmp_path, monkeypatch):
    (tmp_path / "memory.max").write_text("10000\n")
    (tmp_path / "memory.current").write_text("9000\n")
    (tmp_path / "memory.stat").write_text("anon 2000\ninactive_file 6000\nactive_file 500\n")
    monkeypatch.setattr(arguments, "_GROUPS", ((str(tmp_path), "max", "current", ""),))
    assert arguments.available_memory() == 1000 + 6500
    (tmp_path / "memory.max").write_text("max\n")
    assert arguments.available_memory() != 7500


@pytest.mark.parametrize("engine", ["memory", "threads"])
def test_more_columns_than_are_read(tmp_path: Path, engine: str) -> None:
    path = tmp_path / "wide.csv"
    columns = [f"c{i}" for i in range(MOST_COLUMNS + 1)]
    path.write_text(f"{','.join(columns)}\n{',0.5' * MOST_COLUMNS}\n")
    read = fl.read_predictions if engine == "memory" else partial(fl.estimate_files, engine=engine)
    with pytest.raises(InputError, match=r"wide\.csv: has 10,001 columns, and at most 10,000"):
        read(path)


def test_a_frame_of_more_columns_than_are_read() -> None:
    frame = pa.table({f"c{i}": [0.5] for i in range(MOST_COLUMNS + 1)})
    with pytest.raises(InputError, match=r"has 10,001 columns"):
        fl.read_predictions(frame)


def test_objects_nested_deeply_are_refused_before_they_take_time(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text('[{"label": 1, "x": ' + '{"a":' * 50_000 + "1" + "}" * 50_000 + "}]")
    with pytest.raises(InputError, match="nested too deeply"):
        fl.read_predictions(path)
    # What is looked for stands near the top, and the keys below it are not gone through.
    assert keys_at_the_beginning(path) == {"label", "x", "x.a", "x.a.a"}


def steps_of_the_doctor(path: Path) -> int:
    """How many lines of the rooms that read files were run."""
    count = 0

    def within(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        count += 1
        return within

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        inside = "/fewlabels/data/" in frame.f_code.co_filename.replace("\\", "/")
        return within(frame, event, argument) if inside else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        diagnose(path)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "made",
    [
        lambda n: [f"col_{k}" for k in range(n)],
        lambda n: ["label", *(f"p__m{k}__1" for k in range(n))],
        lambda n: ["label", *(f"y__m{k}" for k in range(n))],
        lambda n: ["gold", *(f"m{k // 3}_{'abc'[k % 3]}" for k in range(n // 3 * 3))],
    ],
    ids=["one classifier of many classes", "probabilities", "votes", "families"],
)
def test_twice_the_columns_are_twice_the_work(made: Any, tmp_path: Path) -> None:
    def steps(n: int) -> int:
        path, header = tmp_path / f"{n}.csv", made(n)
        first = "abc" if header[0] == "gold" else "01"
        rows = [
            [first[i % len(first)], *((".34", ".33", ".33")[k % 3] for k in range(len(header) - 1))]
            if not header[1].startswith("y")
            else [first[i % 2], *(str((i * k) % 7 % 2) for k in range(len(header) - 1))]
            for i in range(30)
        ]
        path.write_text("\n".join(",".join(row) for row in [header, *rows]) + "\n")
        return steps_of_the_doctor(path)

    assert steps(600) < 2.5 * steps(300)  # 4 times, where each is compared with each


def test_twice_the_classes_are_twice_the_work(tmp_path: Path) -> None:
    def steps(n: int) -> int:
        path = tmp_path / f"{n}.csv"
        path.write_text("label,y__a\n" + "".join(f"c{i},c{i // 2}\n" for i in range(n)))
        return steps_of_the_doctor(path)

    assert steps(2000) < 2.5 * steps(1000)


def test_numbers_that_all_differ_are_not_looked_at_one_by_one() -> None:
    """Names that look like tasks are tried, and numbers are no labels of theirs."""

    def steps(n: int) -> int:
        scores = np.random.default_rng(0).random((9, n))
        names = [f"p__{kind}_seed{seed}__1" for kind in ("ERM", "IRM", "CORAL") for seed in "012"]
        return steps_of_the_doctor(pa.table(dict(zip(names, scores, strict=True))))

    a_row = (steps(2000) - steps(1000)) / 1000
    assert a_row < 150  # one column for each way to read the names; all of them would be 900
