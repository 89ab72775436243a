"""Batches of a stream: the same items as a file read whole, and the same refusals."""

from __future__ import annotations

import gzip
import pickle
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading_cases import all_batches, check_same, joined, opened

import fewlabels as fl
from fewlabels.data.options import column_options
from fewlabels.streaming import reading, units
from fewlabels.streaming.reading import Batch, Reader, find_classes
from fewlabels.streaming.scan import ranks_of
from fewlabels.streaming.sketch import BottomSample, RowArrays, VotePatterns
from fewlabels.streaming.units import lay_out

N = 103


def columns(n: int = N) -> dict[str, Any]:
    """Every role, with gaps."""
    rng = np.random.default_rng(3)
    p = np.round(rng.random(n), 6)
    gap = rng.random(n) < 0.1
    return {
        "label": pa.array(rng.integers(0, 2, n), mask=rng.random(n) < 0.8),
        "p__a__0": pa.array(1 - p, mask=gap),
        "p__a__1": pa.array(p, mask=gap),
        "p__b__1": pa.array(np.round(rng.random(n), 3)),
        "y__c": pa.array(rng.integers(-1, 2, n)),
        "s__d": pa.array(rng.normal(size=n).round(4), mask=gap),
        "h__0": pa.array(rng.integers(0, 4, n)),
        "h__1": pa.array(rng.integers(0, 4, n)),
        "domain": pa.array(rng.choice(["x", "y", "Zoë"], n), mask=rng.random(n) < 0.1),
        "weight": pa.array(rng.integers(1, 9, n) / 4),
        "sex": pa.array(rng.choice(["f", "m"], n), mask=rng.random(n) < 0.1),
        "age": pa.array(rng.integers(20, 30, n).astype(float)),
    }


def as_csv(table: pa.Table, **options: Any) -> bytes:
    stream = pa.BufferOutputStream()
    pyarrow.csv.write_csv(table, stream, pyarrow.csv.WriteOptions(**options))
    return stream.getvalue().to_pybytes()


def plain(n: int = N) -> bytes:
    """Without a double quote anywhere."""
    return as_csv(pa.table(columns(n)), quoting_style="none")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small units and batches, so that small files have several of each."""
    monkeypatch.setattr(reading, "BATCH_ROWS", 16)
    monkeypatch.setattr(units, "UNIT_ROWS", 40)
    monkeypatch.setattr(units, "UNIT_BYTES", 1500)
    monkeypatch.setattr("fewlabels.data.delimited._HEADER", 300)


def refused(source: Path, message: str, **options: Any) -> int:
    """Refuse a stream that is not refused so; how many batches come before the refusal."""
    reader = opened(source, classes=[0, 1], **options)
    stream = (batch for unit in reader.layout.units for batch in reader.batches(unit))
    found: list[Batch] = []
    with pytest.raises(fl.InputError, match=message) as caught:
        found.extend(stream)
    said = str(caught.value)
    assert said.isprintable()
    assert said.startswith(f"{source}: ")
    return len(found)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("plain.csv", plain),
        ("windows.csv", lambda: plain().replace(b"\n", b"\r\n")),
        ("mac.csv", lambda: plain().replace(b"\n", b"\r")),
        ("blank.csv", lambda: plain().replace(b"\n", b"\n\n\r\n")),
        ("mark.csv", lambda: b"\xef\xbb\xbf" + plain()),
        ("without_end.csv", lambda: plain()[:-1]),
        ("tabs.tsv", lambda: as_csv(pa.table(columns()), delimiter="\t", quoting_style="none")),
        ("semicolons.csv", lambda: as_csv(pa.table(columns()), delimiter=";")),
        ("quoted.csv", lambda: as_csv(pa.table(columns()), quoting_style="all_valid")),
        ("packed.csv.gz", lambda: gzip.compress(plain())),
    ],
)
def test_csv(tmp_path: Path, name: str, make: Callable[[], bytes]) -> None:
    path = tmp_path / name
    path.write_bytes(make())
    layout = check_same(path)
    assert (len(layout.units) > 3) == (
        name not in ("quoted.csv", "packed.csv.gz", "semicolons.csv")
    )


def test_cells_with_line_breaks(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_text("p__a__1,note\n" + '0.5,"one\n""two"", three"\n,\n' * 300)
    assert len(check_same(path).units) == 1


@pytest.mark.parametrize("row_group_size", [1, 7, 16, 39, 1000])
def test_parquet(tmp_path: Path, row_group_size: int) -> None:
    path = tmp_path / "file.parquet"
    pq.write_table(pa.table(columns()), path, row_group_size=row_group_size)
    assert len(check_same(path).units) == {1: 3, 7: 3, 16: 3, 39: 3, 1000: 3}[row_group_size]


def test_batches_are_full_however_the_rows_are_stored(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    for size in (3, 7, 40):
        pq.write_table(pa.table(columns(40)), path, row_group_size=size)
        batches = all_batches(opened(path))
        assert [[b.predictions.n_items for b in unit] for unit in batches] in (
            [[16, 16, 8]],
            [[16, 16, 3], [5]],
            [[16, 16, 7], [1]],
        )


def test_columns_of_several_types(tmp_path: Path) -> None:
    table = pa.table(columns())
    texts = table.column("label").cast(pa.string())
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=30)
    odd = {
        "label": texts,
        "domain": table.column("domain").dictionary_encode(),
        "p__a__0": table.column("p__a__0").cast(pa.float32()),
        "p__a__1": table.column("p__a__1").cast(pa.float32()),
        "s__d": table.column("s__d").cast(pa.string()),
        "h__0": table.column("h__0").cast(pa.int8()),
        "y__c": table.column("y__c").cast(pa.float64()),
        "weight": table.column("weight").cast(pa.decimal128(5, 2)),
    }
    other = pa.table({name: odd.get(name, table.column(name)) for name in table.schema.names[::-1]})
    pq.write_table(other, tmp_path / "b.parquet", row_group_size=30)
    pq.write_table(other.slice(0, 0), tmp_path / "c.parquet")
    pq.write_table(table, tmp_path / "d.parquet", use_dictionary=False)
    layout = check_same(tmp_path)
    assert {unit.name for unit in layout.units} == {"a.parquet", "b.parquet", "d.parquet"}


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.binary(),
        pa.bool_(),
        pa.int8(),
        pa.float16(),
        pa.float32(),
    ],
    ids=str,
)
@pytest.mark.parametrize("coded", [False, True])
def test_classes_and_groups_of_any_type(tmp_path: Path, kind: pa.DataType, coded: bool) -> None:
    texts = pa.array(["0", "1", None] * 30)
    numbers = texts.cast(pa.float32())
    column = (texts if "s" in str(kind) or "b" in str(kind)[:2] else numbers).cast(kind)
    if coded:
        column = column.dictionary_encode()
    table = pa.table(dict.fromkeys(["label", "y__a", "y__b.c", "domain", "a.b"], column))
    pq.write_table(table, tmp_path / "file.parquet", row_group_size=25)
    assert check_same(tmp_path / "file.parquet").roles.groups == ("a.b",)


def test_truth_values_in_several_ways(tmp_path: Path) -> None:
    for name, labels in (("a", [True, False]), ("b", [1, 0]), ("c", ["TRUE", "false"])):
        table = pa.table({"label": labels * 30, "p__m__1": [0.25, 0.75] * 30})
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=25)
    check_same(tmp_path)


def test_probabilities_that_are_whole_numbers(tmp_path: Path) -> None:
    table = pa.table({"p__a__1": [0, 1, 1, None] * 30, "p__b__1": [True, False, True, True] * 30})
    pq.write_table(table, tmp_path / "file.parquet", row_group_size=50)
    check_same(tmp_path / "file.parquet")


def test_options_of_the_columns(tmp_path: Path) -> None:
    table = pa.table({"gold": ["n", "y"] * 50, "rf": [0.25, 1.0] * 50, "site": [1.0, 2.0] * 50})
    pq.write_table(table, tmp_path / "file.parquet", row_group_size=50)
    path = tmp_path / "file.parquet"
    check_same(path, label="gold", models={"forest": "rf"}, domain="site", classes=["y", "n"])
    check_same(path, label="gold", models={"forest": "rf"}, keep=())


def clustered(n: int = 90) -> pa.Table:
    """Equal rows of nine cases, one row without any."""
    case = [f"case {i % 9}" for i in range(n)]
    return pa.table({"p__a__1": [0.3] * n, "case": pa.array(case, mask=np.arange(n) == 4)})


def test_a_cluster_has_one_key_in_every_part(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    pq.write_table(clustered(), path, row_group_size=25)
    check_same(path, cluster="case", keep=())
    units = all_batches(opened(path, cluster="case", keep=()))
    keys: dict[str, set[int]] = {}
    for batch in (batch for unit in units for batch in unit):
        rows = batch.predictions
        for case, key in zip(rows.clusters["case"], rows.cluster_keys[0].tolist(), strict=True):
            keys.setdefault(case, set()).add(key)
    assert len(units) > 1
    assert all(len(own) == 1 for own in keys.values())
    assert len(set.union(*keys.values())) == 10


@pytest.mark.parametrize("votes", [False, True])
def test_rows_of_other_clusters_are_not_counted_as_one(tmp_path: Path, votes: bool) -> None:
    path = tmp_path / "file.parquet"
    table = clustered()
    if votes:
        table = table.rename_columns(["y__a", "case"]).set_column(0, "y__a", pa.array([1, 0] * 45))
    pq.write_table(table, path)
    patterns, kept = VotePatterns.empty(), BottomSample.empty(1000)
    units = all_batches(opened(path, cluster="case", keep=(), classes=[0, 1]))
    for batch in (batch for unit in units for batch in unit):
        patterns.update(batch.predictions, ())
        kept.update(ranks_of(batch, ()), RowArrays.of(batch.predictions, None))
    expected = sorted(Counter(map(tuple, table.to_pandas().fillna("").to_numpy())).values())
    for held in (kept, patterns):
        assert sorted(held.counts.tolist()) == expected
        assert held.rows is not None
        items = held.rows.predictions(["a"], (0, 1))
        assert set(items.clusters["case"]) == set(table["case"].to_pylist())


def test_only_columns_that_are_needed_are_read(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_text("p__a__1,price,sex\n" + ".5,1,f\n" * 500 + ".5,1e999,m\n")
    reader = opened(path)
    assert Reader(reader.layout, reader.classes, ("sex",)).groups == ("sex",)
    only = all_batches(Reader(reader.layout, reader.classes, ("sex",)))
    assert set(only[0][0].predictions.groups) == {"sex"}
    with pytest.raises(fl.UsageError, match="unknown group 'sexx'; did you mean 'sex'"):
        Reader(reader.layout, reader.classes, ("sexx",))


@pytest.mark.parametrize("name", ["file.csv.gz", "file.csv", "file.parquet"])
def test_memory_does_not_grow_with_the_rows(tmp_path: Path, monkeypatch: Any, name: str) -> None:
    monkeypatch.setattr(reading, "BATCH_ROWS", 8192)
    monkeypatch.setattr(units, "UNIT_BYTES", 64 << 20)
    monkeypatch.setattr("fewlabels.data.delimited._SMALL_BLOCK", 1 << 15)
    p = np.random.default_rng(5).random(300_000).round(6)
    table = pa.table({f"p__m{j}__1": p for j in range(5)})
    path = tmp_path / name
    if name == "file.parquet":
        stored = {"use_dictionary": False, "compression": "none", "data_page_size": 1 << 16}
        pq.write_table(table, path, row_group_size=len(table), **stored)
    else:
        pyarrow.csv.write_csv(table, path)
        if name == "file.csv.gz":
            path.write_bytes(gzip.compress(path.read_bytes(), 1))
    reader = opened(path)
    pool = pa.default_memory_pool()
    before, held, rows = pool.bytes_allocated(), [], 0
    for unit in reader.layout.units:
        for batch in reader.batches(unit):
            rows += batch.predictions.n_items
            held.append(pool.bytes_allocated() - before)
    assert rows == len(table)
    assert 0 < max(held) < table.nbytes // 3


@pytest.mark.parametrize("name", ["file.csv", "file.parquet"])
def test_a_stream_that_is_left_early(tmp_path: Path, monkeypatch: Any, name: str) -> None:
    monkeypatch.setattr("fewlabels.data.delimited._SMALL_BLOCK", 256)
    path = tmp_path / name
    if name == "file.csv":
        path.write_bytes(plain(1000))
    else:
        pq.write_table(pa.table(columns()), path)
    reader = opened(path)
    for unit in reader.layout.units[:3]:
        stream = reader.batches(unit)
        assert next(stream).first_row == 0
        stream.close()


def test_a_reader_travels(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_bytes(plain())
    reader = opened(path)
    again = pickle.loads(pickle.dumps(reader))
    unit = reader.layout.units[2]
    for ours, theirs in zip(reader.batches(unit), again.batches(unit), strict=True):
        assert (ours.predictions.identity == theirs.predictions.identity).all()


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (".5,xx,1", "'p__a__1' must be numbers; got 'xx' in PLACE: correct it"),
        (".5,1.5,1", "must be between 0 and 1; got 1.5 for PLACE, classifier 'a' .column"),
        (".4,.5,1", "must sum to 1 over the classes; got 0.9 for PLACE, classifier 'a'"),
        (".5,,1", "NaN in part of a row: PLACE, classifier 'a'"),
        (".5,.5,1,9", "has 3 columns, but PLACE has 4"),
        (".5,.5,-1", "`weight` must not be negative or missing; got -1.0 for PLACE"),
        (".5,.5,", "`weight` must not be negative or missing; got nan for PLACE"),
        (".5,.5,inf", "`weight` must be finite or NaN; got inf in PLACE"),
    ],
)
def test_refusals_name_the_row(tmp_path: Path, cell: str, message: str) -> None:
    path = tmp_path / "file.csv"
    rows = [f"0.5,0.5,{i}" for i in range(1, 700)]
    first = message.replace("PLACE", "row 20 after the header")
    path.write_text("p__a__0,p__a__1,weight\n" + "\n".join([*rows[:19], cell, *rows[20:]]))
    before = refused(path, first)
    assert before == (0 if ",9" in cell else 1)
    # Of a later unit nobody knows the number of its first row.
    later = message.replace("PLACE", f"the row that begins with '{re.escape(cell)}'")
    path.write_text("p__a__0,p__a__1,weight\n\n" + "\n\n".join([*rows[:400], cell, *rows[401:]]))
    refused(path, later)
    with pytest.raises(fl.InputError, match=message.replace("PLACE", "row 401 after the header")):
        fl.read_predictions(path)


def test_refusals_name_the_row_of_a_later_unit_of_parquet(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    for_one = {"p__a__0": [0.5] * 98 + [7.0, 0.5], "p__a__1": [0.5] * 100}
    pq.write_table(pa.table(for_one), path, row_group_size=30)
    assert refused(path, r"must be between 0 and 1; got 7\.0 for row 99, classifier 'a'") == 6
    pq.write_table(pa.table({"p__a__1": ["0.5"] * 98 + ["x", "0.5"]}), path, row_group_size=30)
    assert refused(path, "'p__a__1' must be numbers; got 'x' in row 99: correct it") == 6


def test_scores_that_are_infinite(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    pq.write_table(pa.table({"s__a": [1.0] * 60 + [np.inf]}), path, row_group_size=20)
    refused(path, "`scores` must be finite or NaN; got inf in row 61: correct it")


def test_a_row_that_is_longer_than_a_block(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("fewlabels.data.delimited._SMALL_BLOCK", 64)
    path = tmp_path / "file.csv"
    path.write_text("p__a__1,note\n" + ".5,x\n" * 50 + ".25," + "y" * 900 + "\n" + ".5,z\n" * 50)
    check_same(path)


def test_numbers_that_are_none_after_ones_that_are(tmp_path: Path) -> None:
    # From there on the column is text, and batches hold both.
    path = tmp_path / "file.csv"
    path.write_text("p__a__1,y__b\n" + ".5,1\n" * 100 + " .25 ,0\n" + ".5,1\n" * 3)
    check_same(path)


def test_batches_before_a_bad_cell_are_as_ever(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(units, "UNIT_BYTES", 1 << 20)
    monkeypatch.setattr("fewlabels.data.delimited._SMALL_BLOCK", 64)
    path = tmp_path / "file.csv"
    good = "p__a__1\n" + "".join(f"{i / 200}\n" for i in range(100))
    path.write_text(good)
    (whole,) = all_batches(opened(path))
    path.write_text(good + "x\n")
    reader = opened(path)
    found = []
    with pytest.raises(fl.InputError, match="got 'x' in row 101 after the header"):
        found.extend(reader.batches(reader.layout.units[0]))
    assert len(found) == 6
    ours = joined(found, "probabilities")
    np.testing.assert_array_equal(ours, joined(whole, "probabilities")[:96])


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    rows = [b".5,abcdefgh"] * 500
    header = b"p__a__1,g"
    path.write_bytes(b"\n".join([header, *rows[:50], b".5,Zo\xeb", *rows]))
    refused(path, r"is not UTF-8 \(byte 0xeb in line 52\)", keep=())
    content = b"\n".join([header, *rows[:300], b".5,Zo\xeb", *rows])
    path.write_bytes(content)
    refused(path, rf"is not UTF-8 \(byte 0xeb at offset {content.index(0xEB):,}\)", keep=())
    path.write_bytes(b"\n".join([header, *rows, b".5,Zo\xc3"]))
    refused(path, "is not UTF-8 .it ends within a character", keep=())


def test_rows_that_cannot_be_told_apart(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "file.csv"
    path.write_text("p__a__1,g\n" + ".5,y\n" * 500 + '.5,"x\n.3,y\n.2,z\n')
    refused(path, "a double quote that is opened and never closed")
    monkeypatch.setattr("fewlabels.data.delimited._BLOCK", 1 << 20)
    path.write_text("p__a__1,g\n" + ".5,y\n" * 500 + ".5," + "x" * (3 << 20) + "\n")
    refused(path, "has a row of more than 1 MB")


def test_damage_is_found_when_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file.csv.gz"
    path.write_bytes(gzip.compress(plain(10_000))[:-500])
    refused(path, "it may be damaged or cut short")
    path = tmp_path / "file.parquet"
    pq.write_table(pa.table({"p__a__1": np.linspace(0, 1, 2000)}), path, row_group_size=500)
    content = path.read_bytes()
    broken = 0
    for at in range(40, 8000, 1000):
        path.write_bytes(content[:at] + b"\xff" * 40 + content[at + 40 :])
        reader = opened(path)
        try:
            all_batches(reader)
        except fl.InputError as error:
            said = str(error)
            assert said.startswith(f"{path}: ")
            broken += "cannot be read as Parquet, it is damaged" in said
    assert broken >= 4


def test_a_file_that_changes_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_bytes(plain())
    reader = opened(path)
    path.write_bytes(plain(90))
    with pytest.raises(fl.InputError, match=r"file\.csv: has changed since it was opened first"):
        list(reader.batches(reader.layout.units[1]))
    path.unlink()
    with pytest.raises(fl.InputError, match="cannot be read any more: No such file"):
        list(reader.batches(reader.layout.units[1]))


def classes_of(source: Path, **options: Any) -> tuple[str, ...]:
    said = column_options(**options)
    layout = lay_out(source, said)
    found = find_classes(layout, said)
    assert found.names == fl.read_predictions(source, **options).classes
    return found.texts


def test_classes_that_occur(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    rows = ["p__a__1,label", *[".5,"] * 400, ".5,no", *[".5,"] * 400, ".5,1", ".5,1.0"]
    path.write_text("\n".join(rows))
    assert len(lay_out(path, column_options()).units) > 2
    assert classes_of(path) == ("0", "1")
    path.write_text("\n".join(["y__a,y__b", *["x,"] * 800, ",z"]))
    assert classes_of(path) == ("x", "z")
    assert classes_of(path, classes=["z", "x", "w"]) == ("z", "x", "w")
    path.write_text("\n".join(["y__a", *["x"] * 800]))
    with pytest.raises(fl.InputError, match="one class occurs"):
        classes_of(path)


def test_classes_in_several_types(tmp_path: Path) -> None:
    for name, labels in (("a", [1, 2, None]), ("b", ["1.0", "2", " "]), ("c", [2.0, 1.0, None])):
        pq.write_table(
            pa.table({"label": labels, "y__a": ["1", "2", "1"]}), tmp_path / f"{name}.parquet"
        )
    assert classes_of(tmp_path) == ("1", "2")
    check_same(tmp_path)


def test_labels_are_not_read_where_the_columns_name_the_classes(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(reading, "occurring", lambda *_: pytest.fail("read"))
    for text in ("label,p__a__x,p__a__y\nx,.5,.5\n", "label,h__x,h__y,s__a\nx,0,1,2\n"):
        path = tmp_path / "file.csv"
        path.write_text(text)
        assert classes_of(path) == ("x", "y")


def test_classes_of_units_that_can_be_read(tmp_path: Path) -> None:
    for name in "abc":
        table = pa.table({"y__a": [f"x{i}" for i in range(3)] * 300})
        pq.write_table(
            table, tmp_path / f"{name}.parquet", compression="none", use_dictionary=False
        )
    content = (tmp_path / "b.parquet").read_bytes()
    (tmp_path / "b.parquet").write_bytes(content[:4] + b"\xff" * 60 + content[64:])
    options = column_options()
    layout = lay_out(tmp_path, options, skip_bad_files=True)
    with pytest.raises(fl.InputError, match=r"^b\.parquet: cannot be read as Parquet"):
        find_classes(layout, options)
    assert find_classes(layout, options, skip_bad_files=True).texts == ("x0", "x1", "x2")


def test_a_column_of_lists_is_no_group(tmp_path: Path) -> None:
    table = pa.table({"p__a__1": [0.5] * 90, "vector": [[1.0]] * 90, "sex": ["f"] * 90})
    pq.write_table(table.drop_columns(["vector"]).append_column("vector", pa.array(["v"] * 90)),
                   tmp_path / "a.parquet")  # fmt: skip
    pq.write_table(table, tmp_path / "b.parquet")
    layout = check_same(tmp_path)
    assert layout.roles.groups == ("sex",)
    assert "not kept as a group: column 'vector' holds list" in layout.notes[0]
    with pytest.raises(fl.InputError, match="'vector' holds list"):
        lay_out(tmp_path, column_options(keep=["vector"]))


CELLS = st.sampled_from(
    ["", ".5", "0", "1", " 1", "x", '"', '"0"', "-1", "nan", "Zoë", "1e999", "\t"]
)
ENDS = st.sampled_from(["\n", "\r\n", "\r", "\n\n", ",", ',"'])


@settings(max_examples=60)
@given(st.lists(st.tuples(CELLS, CELLS, ENDS), max_size=12), st.integers(1, 40))
def test_any_rows_are_read_as_they_are_whole(
    tmp_path_factory: Any, rows: list[tuple[str, str, str]], size: int
) -> None:
    path = tmp_path_factory.mktemp("any") / "file.csv"
    path.write_bytes(("p__a__1,label\n" + "".join(f"{p},{y}{end}" for p, y, end in rows)).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(units, "UNIT_BYTES", size)
        try:
            check_same(path)
        except fl.InputError:
            with pytest.raises(fl.InputError):
                all_batches(opened(path))
            with pytest.raises(fl.InputError):
                fl.read_predictions(path)
