"""Bad input: one line that says what, where, and how to mend it."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import zipfile

import numpy as np
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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("label,prob\n1,.1\n", "no prediction columns; the columns are 'label', 'prob'"),
        ("p__a__1,p__a__1\n.1,.2\n", "two columns are named 'p__a__1'"),
        ("p__a__1\n.1\nxx\n", "'p__a__1' must be numbers; got 'xx' in row 2 after the header"),
        ("p__a__1\n.1\n0,5\n", "has 1 columns, but row 2 after the header has 2"),
        ("p__a__1;g\n0,5,1;x\n", "got '0,5,1' in row 1 after the header: correct it"),
        ('s__a\n"1,234"\n', "'1,234' in row 1 after the header may be 1234 or 1.234"),
        ("p__a__1\n50%\n0.5\n", "got '50%' in row 1 after the header: write all cells with %"),
        ("p__a__1\n66.6\n", "got 66.6 for row 1 .*divide percentages by 100"),
        ("p__a__1\n3.9\n-1\n", "got 3.9 for row 1 after the header.*column 'p__a__1'"),
        ("p__a__1,weight\n.1,kg\n", "'weight' must be numbers; got 'kg'"),
        ("p__a__1,weight\n.1,-1\n", "`weight` must not be negative .*row 1 after the header"),
        ("p__a__1,weight\n.1,0\n", "`weight` is zero for every item"),
        ("p__a__0,p__a__1\n.1,.9\n-1,2\n", "between 0 and 1.*row 2 after.*'a' .column 'p__a__0'"),
        ("p__a__0,p__a__1\n.1,.9\n.1,\n", "NaN in part of a row: row 2 after the header"),
        ("p__a__0,p__a__1\n.1,.8\n", "must sum to 1 .*; got 0.9 for row 1 after the header"),
        ("label,p__a__0,p__a__1\nspam,.1,.9\n", "'spam' in column 'label', row 1 after the header"),
        ("p__a__1,p__a__-1\n.1,.9\n", "-1 is declared a class"),
        ("p__a__1,h__1\n.1,3\n", "no column says how many annotators chose class not 1"),
        ("p__a__1,label\n.1,0\n.2\n", "has 2 columns, but row 2 after the header has 1"),
        ("p__a__1,label", "has a header but no rows"),
        ("p__a__1,label\n", "there are no rows"),
        ("\n\n", "has no header"),
        ("p__a__1\n\0\n", "is not a text file"),
        ('p__a__1,g\n.5,"x\n.3,y\n.2,z\n', "a double quote that is opened and never closed"),
        ("p__a__1," * 600_000, "has a first row of more than 4 MB"),
        ('"p__a__1,' + "x" * 200_000, "has a header that cannot be read as CSV"),
    ],
)
def test_csv(write, text, message):
    refused(write(text), message)


def test_csv_that_is_not_utf8(write):
    refused(write("p__a__1,g\n.1,Zoë\n".encode("latin-1")), r"is not UTF-8 \(byte 0xeb in line 2\)")
    refused(write("p__a__1\nZoë\n".encode("latin-1")), "iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW")
    refused(write(GOOD.encode("utf-16-le")), "is not a text file")
    refused(write(GOOD.encode() + b"\xc3"), "is not UTF-8")
    assert fl.read_predictions(write(GOOD.encode("utf-8-sig"))).n_items == 2


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


@pytest.mark.parametrize("quote", ["", '"'])
def test_huge_cell_takes_bounded_memory(write, quote):
    path = write(f"p__a__1,text\n.1,{quote}" + "x" * 100_000_000 + f"{quote}\n")
    said = subprocess.run(
        [sys.executable, "-c", MEASURED, path], capture_output=True, text=True, check=True
    )
    # Blocks are read ahead, one more or less as threads go; the cell alone is 100 MB.
    assert 1_000_000 < int(said.stdout) < 95_000_000


def test_huge_cell_in_parquet_is_cut_in_the_message(tmp_path):
    path = tmp_path / "file.parquet"
    table = pa.table({"p__a__0": [0.5], "p__a__1": [0.5], "label": ["x" * 10_000_000]})
    pq.write_table(table, path)
    refused(path, "is not a class")


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


def test_paths(tmp_path, write):
    refused(tmp_path / "none.csv", "no such file")
    refused(tmp_path, "is a folder without files to read")
    refused(write(""), r"is empty \(0 bytes\)")
    with pytest.raises(fl.UsageError, match="the path of the file is empty"):
        fl.read_predictions("")
    refused("/dev/null", "is not a regular file")
    with pytest.raises(fl.InputError, match=r"no such file|cannot be read"):
        fl.read_predictions("a\0b")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read all")
def test_permission(write):
    path = write(GOOD)
    path.chmod(0)
    refused(path, "permission denied")


def test_folders(tmp_path, write):
    write(GOOD, "folder/a.csv")
    write(GOOD.replace("label", "gold"), "folder/b.csv")
    folder = tmp_path / "folder"
    refused(folder, r"a\.csv and b\.csv differ in the columns 'gold', 'label'")
    write(GOOD.replace("0,.4", "7,.4"), "folder/b.csv")
    refused(folder, r"'7' in column 'label', row 1 after the header of b\.csv,")
    write(GOOD.replace(".4", ".9"), "folder/b.csv")
    refused(folder, r"sum to 1 .* row 1 after the header of b\.csv")
    write(GOOD.replace(".4", "x"), "folder/b.csv")
    refused(folder, r"got 'x' in row 1 after the header of b\.csv")
    pq.write_table(pa.table({"p__a__1": [0.5]}), folder / "c.parquet")
    refused(folder, r"several kinds \(a\.csv is CSV, c\.parquet is Parquet\)")


def test_damaged_parquet(tmp_path):
    path = tmp_path / "file.parquet"
    pq.write_table(pa.table({"p__a__1": np.linspace(0, 1, 1000)}), path)
    whole = path.read_bytes()
    middle = whole[:40] + b"\xff" * 40 + whole[80:]
    for content in (whole[:100], whole[:-20], whole[:100] + whole[200:], middle):
        path.write_bytes(content)
        refused(path, "cannot be read as Parquet, it is damaged or cut short")


def test_parquet_columns_of_another_type(tmp_path):
    path = tmp_path / "file.parquet"
    pq.write_table(pa.table({"p__a__1": [[1.0]]}), path)
    refused(path, "'p__a__1' must be numbers; it holds list")
    pq.write_table(pa.table({"p__a__1": [1.0], "label": [[1.0]]}), path)
    refused(path, "'label' holds list.*store it as text")
    pq.write_table(pa.table({"p__a__1": pa.array([], pa.float64())}), path)
    refused(path, "there are no rows")
    pq.write_table(pa.Table.from_arrays([pa.array([0.5])] * 2, ["p__a__1"] * 2), path)
    refused(path, "two columns are named 'p__a__1'")


def test_nothing_is_unpickled(write, tmp_path):
    for name in ("file.npz", "file.parquet", "file.csv"):
        refused(write(pickle.dumps({"a": 1}), name), "is a pickle, which is never opened")
    path = tmp_path / "objects.npz"
    np.savez(path, probabilities=np.ones((1, 1)), domain=np.array(["x"], dtype=object))
    refused(path, "key 'domain' holds Python objects")


def test_npz(tmp_path, write):
    path = tmp_path / "file.npz"
    np.savez(path, label=np.ones(1))
    refused(path, "unknown key 'label'; did you mean 'labels'.*groups__<name>")
    np.savez(path, probabilities=np.ones((1, 1)), groups__=np.ones(1))
    refused(path, "unknown key 'groups__'")
    np.savez(path)
    refused(path, "holds no arrays")
    np.savez(path, probabilities=np.ones((1, 1)), models=np.ones((1, 1)))
    refused(path, "key 'models' must be a list")
    np.savez(path, probabilities=np.ones((1, 1)), weight=np.array([1j]))
    refused(path, "key 'weight' must be an array of numbers or text")
    np.savez(path, probabilities=np.ones((1, 1)))
    refused(path, "--label names a column, but NPZ files have arrays", label="x")
    refused(path, "no group 'sex'", keep=["sex"])
    content = path.read_bytes()
    refused(write(content[:-30], "cut.npz"), "cannot be read as NPZ, it is damaged")
    refused(write("text", "text.npz"), "is not an NPZ file: it begins with b'text'")
    with zipfile.ZipFile(path, "w") as sheet:
        sheet.writestr("[Content_Types].xml", "")
    refused(path, "is a document or slides; save its table as CSV")


def test_npz_that_promises_more_than_it_holds(tmp_path):
    path = tmp_path / "file.npz"
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000000000,)}\n"
    array = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("labels.npy", array)
    with pytest.raises(fl.InputError, match=r"does not fit into memory|damaged"):
        fl.read_predictions(path)


def test_content_decides_and_not_the_name(tmp_path, write):
    table = pa.table({"p__a__1": [0.5]})
    pq.write_table(table, tmp_path / "really_parquet.csv")
    assert fl.read_predictions(tmp_path / "really_parquet.csv").n_items == 1
    assert fl.read_predictions(write(GOOD, "file.txt")).n_items == 2
    assert fl.read_predictions(write(GOOD, "file")).n_items == 2
    refused(write(GOOD, "file.parquet"), "is not a Parquet file: it begins with b'label,p_'")
