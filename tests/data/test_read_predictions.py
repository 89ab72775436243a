"""The same table, whichever way it comes, gives the same predictions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import fewlabels as fl
from fewlabels.data.native import frame_kind
from fewlabels.data.read import column_names

COLUMNS = {
    "label": [1, 0, None, None],
    "p__a__0": [0.1, 0.8, 0.5, None],
    "p__a__1": [0.9, 0.2, 0.5, None],
    "p__my__net__1": [0.7, 0.4, 0.25, 1.0],
    "y__a": [1, None, 0, 1],
    "y__voter": [0, 1, 1, -1],
    "s__svm": [2.5, -1.0, None, 0.0],
    "domain": ["x", "y", "x", None],
    "weight": [1.0, 1.0, 3.0, 3.0],
    "sex": ["f", None, "m", "m"],
    "age": [30.0, 41.0, None, 30.0],
}


def check(predictions: fl.Predictions) -> None:
    nan = np.nan
    assert predictions.models == ("a", "my__net", "voter", "svm")
    assert predictions.classes == (0, 1)
    np.testing.assert_array_equal(predictions.labels, [1, 0, -1, -1])
    assert predictions.probabilities is not None
    np.testing.assert_allclose(
        predictions.probabilities[:, :, 1],
        [[0.9, 0.7, nan, nan], [0.2, 0.4, nan, nan], [0.5, 0.25, nan, nan], [nan, 1.0, nan, nan]],
    )
    np.testing.assert_array_equal(
        predictions.votes, [[1, -1, 0, -1], [-1, -1, 1, -1], [0, -1, 1, -1], [1, -1, -1, -1]]
    )
    np.testing.assert_array_equal(predictions.scores[:, 3], [2.5, -1.0, nan, 0.0])
    assert np.isnan(predictions.scores[:, :3]).all()
    assert predictions.domain.tolist() == ["x", "y", "x", None]
    np.testing.assert_allclose(predictions.weight, [0.5, 0.5, 1.5, 1.5])
    assert predictions.groups["sex"].tolist() == ["f", None, "m", "m"]
    assert predictions.groups["age"].tolist() == ["30", "41", None, "30"]
    assert list(predictions.groups) == ["sex", "age"]


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "object"])
def test_frames(kind):
    makers = {
        "pandas": pd.DataFrame,
        "polars": pl.DataFrame,
        "pyarrow": pa.table,
        "object": lambda columns: pd.DataFrame(columns, dtype=object),
    }
    frame = makers[kind](COLUMNS)
    check(fl.read_predictions(frame))
    assert frame_kind(frame) == ("pandas" if kind == "object" else kind)


@pytest.mark.parametrize("kind", ["csv", "tsv", "csv.gz", "parquet", "folder"])
def test_files(kind, tmp_path):
    table = pa.table(COLUMNS)
    path = tmp_path / f"file.{kind}"
    if kind == "parquet":
        pq.write_table(table, path)
    elif kind == "folder":
        path.mkdir()
        pq.write_table(table.slice(2), path / "part-2.parquet")
        # Another order of columns, and a type that only these rows suggest.
        first = table.slice(0, 2).select(list(reversed(table.column_names)))
        pq.write_table(first, path / "part-1.parquet")
        (path / "_SUCCESS").touch()
        table = first
    else:
        options = pa.csv.WriteOptions(delimiter="\t" if kind == "tsv" else ",")
        with pa.output_stream(path) as stream:
            pa.csv.write_csv(table, stream, options)
    predictions = fl.read_predictions(path)
    if kind == "folder":
        predictions = predictions.select_models(["a", "my__net", "voter", "svm"])
        assert list(predictions.groups) == ["age", "sex"]
        predictions = fl.Predictions(
            predictions.probabilities, predictions.labels, votes=predictions.votes,
            scores=predictions.scores, domain=predictions.domain, weight=predictions.weight,
            groups={name: predictions.groups[name] for name in ("sex", "age")},
            models=predictions.models, classes=predictions.classes,
        )  # fmt: skip
    check(predictions)
    assert column_names(path) == tuple(table.column_names)
    assert frame_kind(path) is None


def test_npz_holds_the_arguments(tmp_path):
    path = tmp_path / "file.npz"
    np.savez(
        path,
        probabilities=np.array([[0.2, 0.9], [0.6, np.nan]]),
        labels=np.array([1.0, np.nan]),
        votes=np.array([[0, 1], [-1, 1]]),
        models=np.array(["a", "b"]),
        classes=np.array(["no", "yes"]),
        domain=np.array(["u", "v"]),
        weight=np.array([1.0, 3.0]),
        groups__sex=np.array(["f", ""]),
    )
    predictions = fl.read_predictions(path)
    assert predictions.models == ("a", "b")
    assert predictions.classes == ("no", "yes")
    np.testing.assert_array_equal(predictions.labels, [1, -1])
    np.testing.assert_array_equal(predictions.votes, [[0, 1], [-1, 1]])
    np.testing.assert_allclose(predictions.probabilities[:, :, 1], [[0.2, 0.9], [0.6, np.nan]])
    np.testing.assert_allclose(predictions.weight, [0.5, 1.5])
    assert predictions.domain.tolist() == ["u", "v"]
    assert predictions.groups["sex"].tolist() == ["f", None]
    assert fl.read_predictions(path, keep=()).groups == {}
    assert fl.read_predictions(path, classes=["bad", "good"]).classes == ("bad", "good")
    assert column_names(path) == ()


def test_npz_folder_is_concatenated(tmp_path):
    for i, p in enumerate([0.1, 0.2]):
        np.savez(tmp_path / f"{i}.npz", probabilities=np.full((2, 1), p), models=np.array(["a"]))
    predictions = fl.read_predictions(tmp_path)
    np.testing.assert_allclose(predictions.probabilities[:, 0, 1], [0.1, 0.1, 0.2, 0.2])


def test_many_chunks_and_categories():
    chunk = pa.table({"p__a__yes": [0.5, None, 0.25], "label": ["no", "yes", None]})
    table = pa.concat_tables([chunk, chunk.slice(1), chunk.slice(0, 0), chunk.slice(2)])
    encoded = table.set_column(1, "label", table["label"].dictionary_encode())
    for frame in (table, encoded):
        predictions = fl.read_predictions(frame)
        np.testing.assert_array_equal(predictions.labels, [0, 1, -1, 1, -1, -1])
        np.testing.assert_array_equal(
            predictions.probabilities[:, 0, 1], [0.5, np.nan, 0.25, np.nan, 0.25, 0.25]
        )


@pytest.mark.parametrize(
    "numbers",
    [
        np.array([0, 1, 1], np.int8),
        np.array([0, 1, 1], np.uint64),
        np.array([0, 1, 1], np.float16),
        np.array([0, 1, 1], np.float32),
        np.array([False, True, True]),
        ["0", " 1 ", "1e0"],
        pa.array([0, 1, 1], pa.decimal128(5, 2)),
        pa.array(["0", "1", "1.0"]).dictionary_encode(),
    ],
    ids=lambda a: str(getattr(a, "dtype", getattr(a, "type", "text"))),
)
def test_types_of_numbers(numbers):
    predictions = fl.read_predictions(pa.table({"p__a__1": numbers}))
    np.testing.assert_array_equal(predictions.probabilities[:, 0, 1], [0, 1, 1])


def test_missing_numbers_in_text():
    table = pa.table({"s__a": ["1.5", "NA", "", "null", None, "nan"]})
    scores = fl.read_predictions(table).scores[:, 0]
    np.testing.assert_array_equal(scores, [1.5] + [np.nan] * 5)


def test_keep_names_the_groups():
    table = pa.table({"p__a__1": [0.5, 0.2], "sex": ["f", "m"], "region": ["n", "s"]})
    assert list(fl.read_predictions(table).groups) == ["sex", "region"]
    assert list(fl.read_predictions(table, keep="region").groups) == ["region"]
    assert fl.read_predictions(table, keep=()).groups == {}


def test_keep_takes_the_domain_as_a_group():
    table = pa.table({"p__a__1": [0.5, 0.2], "region": ["n", "s"]})
    predictions = fl.read_predictions(table, domain="region", keep=["domain"])
    assert predictions.domain.tolist() == ["n", "s"]
    assert predictions.groups == {}
    predictions = fl.read_predictions(table, domain="region", keep=["region"])
    assert predictions.groups["region"].tolist() == ["n", "s"]
    assert list(fl.read_predictions(table, domain="region").groups) == ["region"]


def test_columns_that_cannot_be_groups_are_noted():
    table = pa.table({"p__a__1": [0.5, 0.2], "vector": [[1.0, 2.0], [3.0, 4.0]]})
    predictions = fl.read_predictions(table)
    assert predictions.groups == {}
    assert any("column 'vector' holds 2 numbers in each cell" in n for n in predictions.notes)


def test_names_that_are_nearly_native_are_noted():
    table = pa.table({"p__a__1": [0.5], "p__b": [0.5]})
    assert any("'p__b' is not read as a prediction" in n for n in fl.read_predictions(table).notes)


def test_row_numbers_of_pandas_are_no_group(tmp_path):
    path = tmp_path / "file.csv"
    pd.DataFrame({"p__a__1": [0.5, 0.2]}).to_csv(path)
    assert fl.read_predictions(path).groups == {}


def test_mixed_objects_become_texts():
    frame = pd.DataFrame({"p__a__1": [0.5, 0.2, 0.1], "g": [1, "x", None]})
    assert fl.read_predictions(frame).groups["g"].tolist() == ["1", "x", None]


def test_dates_and_bytes_become_texts():
    table = pa.table(
        {
            "p__a__1": [0.5, 0.2],
            "day": pa.array([0, None], pa.date32()),
            "time": pa.array([1, 2], pa.timestamp("ns")),
            "raw": pa.array([b"x", b"\xff"]),
        }
    )
    groups = fl.read_predictions(table).groups
    assert groups["day"].tolist() == ["1970-01-01", None]
    assert groups["time"][0].startswith("1970-01-01 00:00:00.000000001")
    assert groups["raw"].tolist() == ["x", "\\xff"]


def test_input_is_not_changed_and_not_shared():
    values = np.array([0.5, 0.2])
    table = pa.table({"p__a__1": values})
    predictions = fl.read_predictions(table)
    with pytest.raises(ValueError, match="read-only"):
        predictions.probabilities[0, 0, 1] = 0.0
    assert not np.shares_memory(predictions.probabilities, values)
    assert table["p__a__1"].to_pylist() == [0.5, 0.2]
