"""Rows from every place: the same answer, chosen rows, faults in one line, and results back."""

from __future__ import annotations

import datetime as dt
import json
import os
import shlex
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fewlabels as fl
import places
from fewlabels.cli import main
from fewlabels.data import databases, stores
from fewlabels.data.where import Condition
from fewlabels.errors import InputError, UsageError, redacted
from fewlabels.streaming import units
from fewlabels.streaming.passes import Progress

WHERE = "date >= 2026-09-06 and (p__a__yes > 0.3 or label = no)"


@pytest.fixture(scope="module")
def postgresql() -> Iterator[str]:
    with places.postgres() as url:
        os.environ["PGPASSWORD"] = places.PASSWORD
        yield url
        del os.environ["PGPASSWORD"]


@pytest.fixture(scope="module")
def _store() -> Iterator[dict[str, str]]:
    with places.object_store() as environment:
        yield environment


@pytest.fixture
def s3(_store: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    for name, value in _store.items():
        monkeypatch.setenv(name, value)
    return _store


@pytest.fixture(autouse=True)
def _checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEWLABELS_CHECKPOINTS", str(tmp_path / "checkpoints"))


@pytest.mark.parametrize(
    ("pattern", "base", "there"),
    [
        ("a/*/*.csv", "a", True), ("a/**/*.csv", "a", True), ("**/*.csv", ".", True),
        ("*.csv", ".", False), ("a/b/[!d].csv", "a/b", True), ("a/b/?.parquet", "a/b", False),
        ("a/b/[a-c].csv", "a/b", True), ("**/c.*", ".", True), ("a/**", "a", True),
    ],
)  # fmt: skip
def test_a_pattern_stands_for_paths_part_by_part(pattern: str, base: str, there: bool) -> None:
    assert stores.matches("a/b/c.csv", pattern) is there
    assert stores.base_of(pattern) == base
    assert stores.split_options(f"s3://bucket/{pattern}") == (f"s3://bucket/{pattern}", "")
    front, options = stores.split_options(f"s3://bucket/{pattern}?region=eu-west-1")
    assert (front, options) == (f"s3://bucket/{pattern}", "?region=eu-west-1")


def chosen_rows(table: pa.Table) -> pa.Table:
    """What `WHERE` chooses, by Python."""
    kept = [
        row["date"] >= "2026-09-06" and (row["p__a__yes"] > 0.3 or row["label"] == "no")
        for row in table.to_pylist()
    ]
    return table.filter(pa.array(kept))


def answer(source: Any, **more: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = fl.estimate(
        source, metrics="accuracy", by="date", **more
    ).to_dict()["estimates"]
    return rows


@pytest.mark.few(4)
@pytest.mark.slow_with("postgresql view", "sqlite query", "pattern")
@pytest.mark.parametrize("kind", places.PLACES)
def test_the_same_rows_are_the_same(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    table = places.rows()
    source = places.place(kind, table, tmp_path, request)
    for where, there in ((None, table), (WHERE, chosen_rows(table))):
        found = fl.read_predictions(source, where=where)
        expected = fl.read_predictions(there)
        assert found.classes == expected.classes
        assert found.models == expected.models
        np.testing.assert_array_equal(found.probabilities, expected.probabilities)
        np.testing.assert_array_equal(found.labels, expected.labels)
        assert {n: g.tolist() for n, g in found.groups.items()} == {
            n: g.tolist() for n, g in expected.groups.items()
        }
    assert answer(source, where=WHERE) == answer(chosen_rows(table))


@pytest.mark.few(3)
@pytest.mark.slow_with("postgresql", "postgresql view", "sqlite query", "pattern", "connection")
@pytest.mark.parametrize("kind", places.PLACES)
def test_in_parts_the_same(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The sums are added in the order of the files: in several of them to rounding."""
    table = places.rows()
    whole = tmp_path / "whole.parquet"
    pq.write_table(chosen_rows(table), whole)
    source = places.place(kind, table, tmp_path, request)
    found, expected = (
        fl.estimate_files(one, metrics="accuracy", by="date", where=where).to_dict()["estimates"]
        for one, where in ((source, WHERE), (whole, None))
    )
    for mine, theirs in zip(found, expected, strict=True):
        assert {**mine, "value": 0, "low": 0, "high": 0} == {
            **theirs,
            "value": 0,
            "low": 0,
            "high": 0,
        }
        for key in ("value", "low", "high"):
            assert mine[key] == pytest.approx(theirs[key], abs=1e-12)


class Killed(BaseException):
    """What ends a run at once, as a kill would."""


@pytest.mark.slow_with("postgresql", "duckdb")
@pytest.mark.parametrize("kind", ["sqlite", "duckdb", "postgresql", "s3 hive"])
def test_a_run_goes_on_and_a_change_is_said(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(units, "UNIT_ROWS", 100)
    table = places.rows()
    source = places.place(kind, table, tmp_path, request)

    def run(steps: int | None = None, step: str = "reading", **more: Any) -> fl.Estimates:
        seen = 0

        def stop(progress: Progress) -> None:
            nonlocal seen
            seen += progress.step == step
            if seen == steps:
                raise Killed

        return fl.estimate_files(source, metrics="accuracy", workers=1, progress=stop, **more)

    expected = run().to_dict()["estimates"]
    for steps, step in ((2, "reading"), (2, "estimating")):
        with pytest.raises(Killed):
            run(steps, step, resume=True)
    found = run(resume=True)
    assert found.diagnostics["stream"]["resumed"]
    assert found.to_dict()["estimates"] == expected
    changes: dict[str, Callable[[], object]] = {
        "sqlite": lambda: _change(tmp_path / "items.sqlite"),
        "duckdb": lambda: _duck(tmp_path / "items.duckdb"),
        "postgresql": lambda: places.execute(
            source.partition("#")[0], "update items set label = 'no' where item = 500"
        ),
        "s3 hive": lambda: places.place(kind, places.rows(seed=1), tmp_path / "new", request),
    }
    if kind == "s3 hive":
        return  # its objects are written whole: a store has no rows to change

    def change(progress: Progress) -> None:
        if progress.step == "reading" and progress.done_bytes == progress.all_bytes:
            changes[kind]()

    with pytest.raises(InputError, match="has changed since it was opened first; start again"):
        fl.estimate_files(source, metrics="accuracy", workers=1, progress=change)


def _change(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("update items set label = 'no' where item = 500")


def _duck(path: Path) -> None:
    import duckdb

    with duckdb.connect(str(path)) as connection:
        connection.execute("update items set label = 'no' where item = 500")
        connection.execute("checkpoint")


def test_what_has_no_key_starts_anew_and_says_so(tmp_path: Path) -> None:
    address = places.write_sqlite(places.rows(), tmp_path / "x.db").partition("#")[0]
    found = fl.estimate_files(address, query="select * from items", resume=True, metrics="accuracy")
    assert any("has no key to go on from" in line for line in found.warnings)


def run(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def said(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line of an error."""
    line = capsys.readouterr().err.strip()
    assert "\n" not in line
    return line


def test_faults_of_a_server(
    postgresql: str, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One clear line each, and the password in none."""
    address = places.write_postgres(places.rows(), postgresql)
    wrong = address.replace("ann@", "ann:s3cret@")
    assert run("estimate", wrong) == 2
    line = said(capsys)
    assert 'password authentication failed for user "ann"; set PGPASSWORD' in line
    assert "ann:***@" in line
    assert (
        run("estimate", wrong.replace("127.0.0.1", "127.0.0.1:1", 1).replace(":1:", ":1/x?a=")) == 2
    )
    assert "s3cret" not in said(capsys)
    assert run("estimate", f"{postgresql}#item") == 2
    assert "has no table 'item'; did you mean 'items'?" in said(capsys)
    assert run("estimate", postgresql, "--query", "drop table items") == 2
    assert "cannot execute DROP TABLE in a read-only transaction" in said(capsys)

    answered = databases.rows_of_query

    def dropped(connection: Any, query: str, *more: Any) -> Iterator[pa.RecordBatch]:
        if "order by item" in query:
            others = "pid <> pg_backend_pid() and datname = current_database()"
            places.execute(
                postgresql, f"select pg_terminate_backend(pid) from pg_stat_activity where {others}"
            )
        yield from answered(connection, query, *more)

    monkeypatch.setattr(databases, "rows_of_query", dropped)
    for read in (fl.read_predictions, fl.estimate_files):
        with pytest.raises(InputError, match=r"the database says: .*the connection was dropped"):
            read(address)


def test_a_password_is_shown_nowhere(postgresql: str, tmp_path: Path, capsys: Any) -> None:
    """Not in the page, the JSON, messages, checkpoints or the files' names."""
    os.environ.pop("PGPASSWORD")
    try:
        address = places.write_postgres(
            places.rows(), postgresql.replace("ann@", f"ann:{places.PASSWORD}@")
        )
        names = {option: tmp_path / option for option in ("json", "html")}
        files = [part for option, path in names.items() for part in (f"--{option}", path)]
        with pytest.raises(Killed):
            fl.estimate_files(address, metrics="accuracy", progress=_kill)
        assert (
            run("estimate", address, "--engine", "threads", "--posterior", tmp_path / "p", *files)
            == 0
        )
    finally:
        os.environ["PGPASSWORD"] = places.PASSWORD
    shown = capsys.readouterr()
    assert places.PASSWORD not in shown.out + shown.err
    assert "ann:***@" in names["html"].read_text()
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) > 3
    for path in written:
        assert places.PASSWORD.encode() not in path.read_bytes()
        assert places.PASSWORD not in str(path)


def _kill(progress: Progress) -> None:
    if progress.step == "estimating":
        raise Killed


@pytest.mark.slow_with("duckdb", "postgresql")
@pytest.mark.parametrize("kind", ["sqlite", "duckdb", "postgresql"])
def test_results_go_back_whole_or_not_at_all(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest, capsys: Any
) -> None:
    source = places.place(kind, places.rows(), tmp_path, request)
    url = source.partition("#")[0]
    if kind != "postgresql":
        url = f"{kind}:///{tmp_path / 'out.db'}"
    to = ["--to", f"{url}#estimates", "--labels-out", f"{url}#labels"]
    for _ in range(2):  # the rows are replaced
        assert run("estimate", source, "--metrics", "accuracy", *to, "--json", tmp_path / "j") == 0
    rows = databases.query_rows(url, "select * from estimates", None)
    found = [row for batch in rows for row in batch.to_pylist()]
    assert found == json.loads((tmp_path / "j").read_text())["estimates"]
    labels = databases.query_rows(url, "select count(*) as n from labels", None)
    assert [batch.to_pylist() for batch in labels] == [[{"n": 600}]]
    streamed = ["--engine", "threads", "--posterior", f"{url}#posterior", "--to", f"{url}#again"]
    assert run("estimate", source, "--metrics", "accuracy", *streamed) == 0
    many = databases.query_rows(url, "select count(*) as n from posterior", None)
    assert [batch.to_pylist() for batch in many] == [[{"n": 600}]]
    capsys.readouterr()
    # The second table is of other columns: neither it nor the first is written.
    refused = ["--to", f"{url}#first", "--labels-out", f"{url}#estimates", "--html", tmp_path / "h"]
    assert run("estimate", source, "--metrics", "accuracy", *refused) == 2
    assert "has a table 'estimates' of other columns" in said(capsys)
    assert not (tmp_path / "h").exists()
    with pytest.raises(InputError, match="has no table 'first'"):
        fl.read_predictions(f"{url}#first")


def _estimates(weeks: Any, value: float) -> pa.RecordBatch:
    """An estimate of each week."""
    starts = [dt.datetime(2026, 9, 7) + dt.timedelta(weeks=week) for week in weeks]
    names = [f"{start:%Y-%m-%d}" for start in starts]
    return pa.record_batch(
        {
            "week": names,
            "model": ["a"] * len(names),
            "start": pa.array(starts, pa.timestamp("s")),
            "value": [value] * len(names),
        }
    )


def _without_weeks(kind: str, folder: Path, request: pytest.FixtureRequest) -> str:
    """A database of a kind without a table of weeks."""
    if kind != "postgresql":
        return f"{kind}:///{folder / 'out.db'}"
    url: str = request.getfixturevalue("postgresql")
    places.execute(url, "drop table if exists weeks")
    return url


def _keep(url: str, weeks: Any, value: float) -> None:
    rows = databases.KeptRows([_estimates(weeks, value)], ("week", "model"))
    with databases.writing_tables({f"{url}#weeks": lambda: rows}):
        pass


@pytest.mark.parametrize("kind", ["sqlite", "duckdb", "postgresql"])
def test_rows_of_a_key_stand_once(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = _without_weeks(kind, tmp_path, request)

    def found() -> list[dict[str, Any]]:
        rows = databases.query_rows(url, "select * from weeks order by week", None)
        return [row for batch in rows for row in batch.to_pylist()]

    _keep(url, range(2), 0.25)
    _keep(url, range(1, 4), 0.5)
    assert [row["value"] for row in found()] == [0.25, 0.5, 0.5, 0.5]
    times = [str(row["start"])[:10] for row in found()]
    assert times == ["2026-09-07", "2026-09-14", "2026-09-21", "2026-09-28"]
    if kind != "sqlite":  # which has no times
        assert isinstance(found()[0]["start"], dt.datetime)
    else:
        assert found()[0]["start"] == "2026-09-07T00:00:00Z"
    before = found()
    new = databases.KeptRows([_estimates(range(6), 0.75)], ("week", "model"))
    with pytest.raises(Killed), databases.writing_tables({f"{url}#weeks": lambda: new}):
        raise Killed
    others = databases.KeptRows([_estimates(range(6), 0.75).select(["week"])], ("week",))
    with (
        pytest.raises(InputError, match="of other columns"),
        databases.writing_tables({f"{url}#weeks": lambda: others}),
    ):
        pass
    assert found() == before


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_runs_at_once_leave_each_row_once(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = _without_weeks(kind, tmp_path, request)
    with ThreadPoolExecutor(4) as pool:  # the table is not there yet
        done = [pool.submit(_keep, url, range(k % 3, 5 + k % 3), k / 8) for k in range(12)]
    assert [one.exception() for one in done] == [None] * 12
    query = "select count(*) as rows, count(distinct week) as weeks from weeks"
    (batch,) = databases.query_rows(url, query, None)
    assert batch.to_pylist() == [{"rows": 7, "weeks": 7}]


def test_a_column_of_another_type_in_one_partition(tmp_path: Path) -> None:
    places.write_hive(places.rows(), tmp_path / "hive")
    path = tmp_path / "hive" / "date=2026-09-07" / "part-0.parquet"
    table = pq.read_table(path, partitioning=None)
    texts = [str(v) for v in table["p__a__yes"].to_pylist()]
    for values, line in (
        ([*texts[:-1], "high"], "'p__a__yes' must be numbers; got 'high' in row 200"),
        ([[0.5]] * len(texts), "'p__a__yes' must be numbers; it holds list"),
    ):
        pq.write_table(table.set_column(2, "p__a__yes", pa.array(values)), path)
        for read in (fl.read_predictions, fl.estimate_files):
            with pytest.raises(InputError, match=line) as caught:
                read(tmp_path / "hive")
            assert "date=2026-09-07/part-0.parquet" in str(caught.value)


def test_without_the_extra(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    monkeypatch.setitem(__import__("sys").modules, "adbc_driver_postgresql", None)
    (tmp_path / "x.duckdb").write_bytes(b"")
    for address in (f"duckdb:///{tmp_path}/x.duckdb#t", "postgresql://h/db#t"):
        assert run("estimate", address) == 2
        assert "pip install 'fewlabels[sql]'" in said(capsys)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("x > 1", [2, 3]),
        ("x >= 1 and not name = 'b'", [3]),
        ("name in (a, 'c d') or x is null", [0, 1, 3]),
        ("name not in (a)", [2, 3]),
        ("name != b", [0, 3]),
        ('x is not null and (name == "b" or `name` <> b)', [0, 2, 3]),
        ("day < 2026-09-02T12:00", [0, 1]),
        ("flag = true", [0, 2]),
        ("key = 9007199254740993", [1]),
        ("year = 2026 and x < 2", [0]),
    ],
)
def test_conditions(tmp_path: Path, text: str, kept: list[int]) -> None:
    """The values of three kinds of logic: a comparison with an empty cell is not true."""
    days = pa.array(["2026-09-01", "2026-09-02", "2026-09-03", None]).cast(pa.date32())
    table = pa.table(
        {
            "item": range(4), "x": [0.5, None, 2, 3], "name": ["a", "", "b", "c d"], "day": days,
            "flag": [True, False, True, None], "key": [2**53, 2**53 + 1, 1, 2],
            "y__a": [0, 1, 1, 0],
        }
    )  # fmt: skip
    folder = tmp_path / "year=2026"
    folder.mkdir()
    pq.write_table(table, folder / "part-0.parquet")
    found = fl.read_predictions(tmp_path, where=text, keep=["item"])
    assert [int(v) for v in found.groups["item"]] == kept


def test_folders_that_a_condition_rules_out_are_not_opened(tmp_path: Path) -> None:
    places.write_hive(places.rows(), tmp_path)
    (tmp_path / "date=2026-09-05" / "part-0.parquet").write_bytes(b"no Parquet")
    assert fl.read_predictions(tmp_path, where="date > 2026-09-05").n_items == 400
    with pytest.raises(InputError, match="none of its 3 files has rows where date > 2027-01-01"):
        fl.read_predictions(tmp_path, where="date > 2027-01-01")
    possible = Condition.parse("date > 2026-09-05 or not x = 1").possible
    assert possible({"date": "2026-09-01"})  # `x` is not known
    assert not Condition.parse("date > 2026-09-05 and x = 1").possible({"date": "2026-09-01"})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("date", "behind column 'date' stands no ="),
        ("date >=", "a value is missing"),
        ("date = 1 x", "'x' stands where"),
        ("(date = 1", "a parenthesis is not closed"),
        ("'date' = 1", "left of an operator stands a column"),
        ("date in 1", "behind `in` stand values in parentheses"),
        ("date; drop table x = 1", "behind column 'date;' stands no"),
    ],
)
def test_what_is_no_condition(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        Condition.parse(text)


def test_a_condition_on_what_is_not_there(tmp_path: Path) -> None:
    address = places.write_sqlite(places.rows(), tmp_path / "x.db")
    for source in (
        places.rows(),
        address,
        fl.source(address.split("#")[0], query="select * from items"),
    ):
        with pytest.raises(InputError, match=r"no column 'dat'.*did you mean 'date'"):
            fl.read_predictions(source, where="dat > 2026-09-05")
    with pytest.raises(InputError, match="no row is left by --where 'item > 600'"):
        fl.read_predictions(places.rows(), where="item > 600")


@pytest.mark.parametrize(("kind", "query"), [
    ("sqlite", "attach 'other' as x"), ("sqlite", "vacuum into 'other'"),
    ("duckdb", "copy items to 'other'"), ("duckdb", "select 1; export database 'other'"),
])  # fmt: skip
def test_a_query_writes_no_file(
    kind: str, query: str, tmp_path: Path, request: pytest.FixtureRequest, capsys: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    source = places.place(kind, places.rows(), tmp_path, request).partition("#")[0]
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert run("estimate", source, "--query", query) == 2
    said(capsys)
    assert list(Path().iterdir()) == []


def test_the_doctor_proposes_a_command_that_reads_the_same(tmp_path: Path, capsys: Any) -> None:
    places.write_hive(places.rows(), tmp_path / "hive")
    for where in (None, WHERE):
        command = fl.diagnose(fl.source(tmp_path / "hive", where=where)).command
        assert command is not None
        arguments = shlex.split(command)[1:]
        assert ("--where" in arguments) == (where is not None)
        assert run(*arguments, "--metrics", "accuracy", "--json", tmp_path / "j") == 0
        expected = places.rows() if where is None else chosen_rows(places.rows())
        assert json.loads((tmp_path / "j").read_text())["n_items"] == len(expected)
    capsys.readouterr()


@pytest.mark.parametrize("said", [
    "postgresql://ann:{}@host/db", "clickhouse://host/db?key={}&user=ann",
    "s3://bucket/a.csv?X-Amz-Signature={}",
    "no table in 'mysql://ann:{}@host:3306/db', ask a@b.org",
])  # fmt: skip
@pytest.mark.parametrize("secret", ["hunter2", "hun%2Fter2"])
def test_no_address_shows_a_secret(said: str, secret: str) -> None:
    assert redacted(said.format(secret)) == said.format("***")
    if "@host" in said:  # also where somebody has not escaped it
        assert redacted(said.format("hu/n?t#er'2")) == said.format("***")


@pytest.mark.parametrize("address", [
    "https://ann:{}@host/f.csv", "mysql://ann:{}@host/db#t", "https://host/f.csv?token={}",
    "duckdb:///none.db?password={}#t",
    pytest.param("abfs://c@host/f.csv?sig={}&sp=r", marks=pytest.mark.slow),  # it asks ten seconds
])  # fmt: skip
@pytest.mark.parametrize("command", ["doctor", "estimate"])
def test_no_error_shows_a_secret(command: str, address: str, capsys: Any) -> None:
    assert run(command, address.format("hunter2")) == 2
    said = capsys.readouterr()
    assert "hunter2" not in said.out + said.err
    assert "***" in said.err
