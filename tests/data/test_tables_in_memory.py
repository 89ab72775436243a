"""Tables in memory: frames, Arrow's, data sets, dictionaries of columns, lists of rows."""

from __future__ import annotations

import datetime
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fewlabels as fl
from fewlabels.data.doctor.diagnose import diagnose

COLUMNS: dict[str, list[Any]] = {
    "label": ["no", None, "yes"],
    "p__m__yes": [0.25, 0.5, 0.75],
    "site": ["a", "b", "a"],
}
ROWS = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)]
TABLE = pa.table(COLUMNS)


class DataSet:
    """What of `datasets.Dataset` is used; its rows are a selection."""

    def __init__(self, table: pa.Table, kept: list[int]) -> None:
        self.column_names = table.column_names
        self._table, self._kept = table, kept

    def __len__(self) -> int:
        return len(self._kept)

    def with_format(self, kind: str) -> DataSet:
        assert kind == "arrow"
        return self

    def __getitem__(self, rows: slice) -> pa.Table:
        return self._table.take(self._kept[rows])


class Capsule:
    """Something that hands out Arrow's stream and nothing else, as a relation of DuckDB does."""

    def __arrow_c_stream__(self, schema: object = None) -> object:
        return TABLE.__arrow_c_stream__(schema)


@pytest.mark.parametrize(
    "make",
    [
        lambda: pd.DataFrame(COLUMNS),
        lambda: pl.DataFrame(COLUMNS),
        lambda: pl.LazyFrame(COLUMNS),
        lambda: nw.from_native(pl.DataFrame(COLUMNS)),
        lambda: nw.from_native(pl.LazyFrame(COLUMNS)),
        lambda: TABLE,
        lambda: TABLE.to_batches()[0],
        lambda: TABLE.to_reader(),
        lambda: Capsule(),
        lambda: DataSet(pa.concat_tables([TABLE, TABLE]), [0, 4, 5]),
        lambda: COLUMNS,
        lambda: {name: np.array(column) for name, column in COLUMNS.items()},
        lambda: {name: pd.Series(column) for name, column in COLUMNS.items()},
        lambda: {name: pl.Series(column) for name, column in COLUMNS.items()},
        lambda: {name: pa.array(column) for name, column in COLUMNS.items()},
        lambda: {name: tuple(column) for name, column in COLUMNS.items()},
        lambda: ROWS,
        lambda: tuple(ROWS),
    ],
)
def test_every_form_says_the_same(make):
    read = fl.read_predictions(make())
    assert read.classes == ("no", "yes")
    assert read.labels.tolist() == [0, -1, 1]
    assert read.probabilities[:, 0, 1].tolist() == [0.25, 0.5, 0.75]
    assert read.groups["site"].tolist() == ["a", "b", "a"]
    assert diagnose(make()).ok


def test_a_data_set_of_hugging_face():
    datasets = pytest.importorskip("datasets")
    whole = datasets.Dataset.from_dict(COLUMNS)
    read = fl.read_predictions(whole.select([2, 0]))
    assert read.labels.tolist() == [1, 0]
    assert read.groups["site"].tolist() == ["a", "a"]
    with pytest.raises(fl.UsageError, match="choose one of its splits: 'train', 'test'"):
        fl.read_predictions(datasets.DatasetDict({"train": whole, "test": whole}))
    with pytest.raises(fl.UsageError, match="a data set that is a stream must be loaded first"):
        fl.read_predictions(whole.to_iterable_dataset())


def test_rows_may_lack_keys_and_hold_objects():
    rows = [
        {"label": 1, "judge": {"score": 0.5}, "verdict": ["A"]},
        {"label": "1", "verdict": ["B"]},
        {"label": True, "judge": {"score": np.float32(0.25), "note": "x"}, "verdict": None},
    ]
    options = {"models": {"judge": ["without", "judge.score"]}, "classes": [1, "true"]}
    for row in rows:
        row["without"] = 1 - row.get("judge", {}).get("score", float("nan"))
    read = fl.read_predictions(rows, **options)
    assert [c and str(c) for c in read.groups["verdict"]] == ["A", "B", None]
    assert read.groups["judge.note"].tolist() == [None, None, "x"]
    assert read.labels.tolist() == [0, 0, 1]


def test_values_of_other_types():
    columns = {
        "label": [1, 1.0, "1", None, float("nan"), pd.NA],
        "p__m__1": [0.5] * 6,
        "p__m__0": [0.5] * 6,
        "day": [datetime.date(2024, 1, 2), datetime.datetime(2024, 1, 2), None, pd.NaT, "x", 3],
        "many": [[1, 2], {"a": 1}, [], None, (1,), {2, 1}],
        "when": np.array(["2024-01-02"] * 6, "M8[ns]"),
        "id": [2**70, 1, 2, 3, 4, 5],
    }
    read = fl.read_predictions(columns)
    assert read.labels.tolist() == [1, 1, 1, -1, -1, -1]
    assert read.groups["day"].tolist() == ["2024-01-02", "2024-01-02", None, None, "x", "3"]
    assert read.groups["many"].tolist() == ["[1, 2]", '{"a": 1}', "[]", None, "[1]", "[1, 2]"]
    assert read.groups["when"][0].startswith("2024-01-02")
    assert read.groups["id"].tolist()[:2] == [str(2**70), "1"]


def test_long_doubles_are_numbers_and_what_holds_itself_is_none():
    """Of the first Python has no type; nothing writes the second."""
    p = np.random.default_rng(2).random(40)
    table = {"label": np.arange(40) % 2, "p__m__1": p.astype(np.longdouble)}
    found = fl.read_predictions(table).probabilities[:, 0, 1]
    assert (found == p).all()
    itself: list[object] = []
    itself.append(itself)
    with pytest.raises(fl.InputError, match="column 'p__m__1' must be numbers"):
        fl.read_predictions(table | {"p__m__1": [itself] * 40})
    with pytest.raises(fl.InputError, match="must be finite"):
        fl.estimate(p + np.inf, y_true=np.arange(40) % 2)


def test_votes_in_any_form():
    votes = [
        {"item": i, "annotator": a, "label": (i + (a == "x")) % 2} for i in range(4) for a in "xyz"
    ]
    read = fl.read_predictions(votes=votes)
    assert read.models == ("x", "y", "z")
    columns = {name: [row[name] for row in votes] for name in votes[0]}
    assert fl.read_predictions(votes=columns).votes.tolist() == read.votes.tolist()
    assert fl.read_predictions(votes=pl.LazyFrame(columns)).n_items == 4
