"""Bad input: one line that says what, where, and how to mend it."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fewlabels as fl

GOOD = "label,p__a__0,p__a__1\n0,.4,.6\n1,.3,.7\n"


def refused(source, message, **options):
    with pytest.raises(fl.InputError, match=message) as caught:
        fl.read_predictions(source, **options)
    said = str(caught.value)
    assert said.isprintable()
    assert len(said) <= 1200
    assert said.startswith(f"{source}: ")


MEASURED = """
import os, sys, tracemalloc
import pyarrow as pa
import fewlabels as fl

def read():
    try:
        fl.read_predictions(sys.argv[1])
    except fl.InputError as error:
        return str(error)

assert "has a row of more than 8 MB" in read()  # what is imported then is not the file's memory
pool = pa.proxy_memory_pool(pa.default_memory_pool())
pa.set_memory_pool(pool)
tracemalloc.start()
read()
print(tracemalloc.get_traced_memory()[1] + pool.max_memory(), flush=True)
os._exit(0)
"""
"""In a process of its own, which ends at once: buffers that outlive a pool are freed into nothing,
and tracing that stops while another thread frees may take the process with it."""


@pytest.mark.slow
@pytest.mark.parametrize("quote", [pytest.param("", marks=pytest.mark.slow), '"'])
def test_huge_cell_takes_bounded_memory(write, quote):
    path = write(f"p__a__1,text\n.1,{quote}" + "x" * 100_000_000 + f"{quote}\n")
    said = subprocess.run(
        [sys.executable, "-c", MEASURED, path], capture_output=True, text=True, check=True
    )
    # Blocks are read ahead, one more or less as threads go; the cell alone is 100 MB.
    assert 1_000_000 < int(said.stdout) < 95_000_000


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", 'a"b', "a\nb", "🎈", "a\x1b[31m", "x,y"]
)
def test_any_name_will_do(name, tmp_path):
    table = pa.table({"label": [0, 1], f"p__{name}__1": [0.5, 0.1], name: ["u", "v"]})
    path = tmp_path / "file.parquet"
    pq.write_table(table, path)
    for source in (table, path):
        predictions = fl.read_predictions(source)
        assert predictions.models == (name,)
        assert predictions.groups[name].tolist() == ["u", "v"]
    quoted = name.replace('"', '""')
    path = tmp_path / "file.csv"
    path.write_text(f'"{quoted}","p__{quoted}__1"\n"{quoted}",.5\n')
    assert fl.read_predictions(path).groups[name].tolist() == [name]
    path.write_text(f'"p__{quoted}__1"\n7\n')
    refused(path, "between 0 and 1")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read all")
def test_permission(write):
    path = write(GOOD)
    path.chmod(0)
    refused(path, "permission denied")


def test_npz_that_promises_more_than_it_holds(tmp_path):
    path = tmp_path / "file.npz"
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000000000,)}\n"
    array = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("labels.npy", array)
    with pytest.raises(fl.InputError, match=r"does not fit into memory|damaged"):
        fl.read_predictions(path)


def test_a_path_that_no_system_has():
    with pytest.raises(fl.InputError, match=r"no such file|cannot be read"):
        fl.read_predictions("a\0b")


def test_content_decides_and_not_the_name(tmp_path, write):
    assert fl.read_predictions(write(GOOD.encode("utf-8-sig"))).n_items == 2
    table = pa.table({"p__a__1": [0.5]})
    pq.write_table(table, tmp_path / "really_parquet.csv")
    assert fl.read_predictions(tmp_path / "really_parquet.csv").n_items == 1
    assert fl.read_predictions(write(GOOD, "file.txt")).n_items == 2
    assert fl.read_predictions(write(GOOD, "file")).n_items == 2
