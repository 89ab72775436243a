"""Few bytes that are more rows than memory holds: one line before the memory is asked for."""

from __future__ import annotations

import bz2
import gzip
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from workbooks import xlsx

import fewlabels as fl
from fewlabels.checks import memory
from fewlabels.data import diagnose, limits
from fewlabels.kernels import memory as kernel
from fewlabels.streaming.units import about_rows

CSV = b"label,p__a__1\n" + b"1,.5\n,.5\n" * 40_000
JSONL = b'{"label": 1, "p__a__1": 0.5}\n' * 20_000


@pytest.fixture
def small(monkeypatch):
    """A machine on which a megabyte is free."""
    monkeypatch.setattr(memory, "available_memory", lambda: 1_000_000)


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
    refused(book, "its sheets whole takes about")
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


def test_parts_of_any_number_of_rows_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 4_000_000)  # a part fits
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
        "from fewlabels.kernels.memory import available_memory\n"
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
    monkeypatch.setattr(kernel, "_GROUPS", ((str(tmp_path), "max", "current", ""),))
    assert kernel.available_memory() == 1000 + 6500
    (tmp_path / "memory.max").write_text("max\n")
    assert kernel.available_memory() != 7500
