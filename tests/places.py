"""The same rows in every place that is read: files, folders, an object store, databases."""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

PASSWORD = "tr0mb0ne"

PLACES = (
    "parquet", "csv", "hive", "pattern", "s3 parquet", "s3 csv", "s3 hive", "sqlite", "duckdb",
    "postgresql", "sqlite query", "postgresql view", "connection", "sqlalchemy",
)  # fmt: skip


def rows(n: int = 600, seed: int = 0, *, third: bool = False) -> pa.Table:
    """Two classifiers or three, few labels, three days in order."""
    rng = np.random.default_rng(seed)
    truth = rng.random(n) < 0.4
    labels = pa.array(np.where(truth, "yes", "no"), mask=np.arange(n) % max(7, n // 400) != 3)
    scores = {"a": truth * 0.5 + rng.random(n) * 0.5, "b": truth * 0.2 + rng.random(n) * 0.8}
    if third:
        scores["c"] = truth * 0.3 + rng.random(n) * 0.7
    days = np.array(["2026-09-05", "2026-09-06", "2026-09-07"])[np.arange(n) * 3 // n]
    probabilities = {f"p__{name}__yes": values for name, values in scores.items()}
    return pa.table({"item": np.arange(n), "label": labels, **probabilities, "date": days})


def free_port() -> int:
    """A port of the loopback that nobody listens at."""
    with closing(socket.socket()) as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


def _binary(name: str) -> str:
    found = [shutil.which(name), *map(str, Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))]
    path = next(filter(None, found), None)
    if path is None:
        pytest.skip(f"there is no PostgreSQL: no {name} (Debian: apt install postgresql)")
    return path


@contextmanager
def postgres() -> Iterator[str]:
    """A server of PostgreSQL of our own; gives its address without the password."""
    pytest.importorskip("adbc_driver_postgresql", reason="the extra `sql` is not installed")
    initdb, control = _binary("initdb"), _binary("pg_ctl")
    folder, port = Path(tempfile.mkdtemp(prefix="postgres-")), free_port()
    user: dict[str, Any] = {}
    if os.getuid() == 0:  # which the server refuses to be
        shutil.chown(folder, "nobody")
        user = {"user": "nobody", "group": "nogroup"}
    (folder / "password").write_text(PASSWORD)
    (folder / "password").chmod(0o644)
    data, quiet = folder / "data", {"check": True, "stdout": subprocess.DEVNULL, "cwd": folder}
    try:
        made = [initdb, "-D", data, "-U", "ann", f"--pwfile={folder / 'password'}", "-A"]
        subprocess.run([*made, "scram-sha-256", "-N"], **quiet, **user)
        options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        start = [control, "-D", data, "-o", options, "-l", folder / "log", "-w"]
        subprocess.run([*start, "start"], **quiet, **user)
        try:
            yield f"postgresql://ann@127.0.0.1:{port}/postgres"
        finally:
            subprocess.run([control, "-D", data, "-m", "immediate", "stop"], **quiet, **user)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def object_store() -> Iterator[dict[str, str]]:
    """A server of S3 with a bucket; gives the environment that leads to it."""
    pytest.importorskip("moto", reason="moto's server of S3 is not installed")
    from pyarrow import fs

    port = free_port()
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-p", str(port)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        for _ in range(300):
            with closing(socket.socket()) as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        keys = {"access_key": "ann", "secret_key": PASSWORD, "region": "eu-west-1"}
        bucket = fs.S3FileSystem(
            endpoint_override=f"127.0.0.1:{port}", scheme="http", allow_bucket_creation=True, **keys
        )
        bucket.create_dir("bucket")
        yield {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ACCESS_KEY_ID": "ann",
            "AWS_SECRET_ACCESS_KEY": PASSWORD, "AWS_REGION": "eu-west-1",
        }  # fmt: skip
    finally:
        server.kill()
        server.wait()


def write_hive(table: pa.Table, folder: Path) -> Path:
    """A folder of a Parquet file per day, which is not in the file."""
    days = table["date"].to_pylist()
    for day in dict.fromkeys(days):
        (folder / f"date={day}").mkdir(parents=True)
        own = table.filter(pc.equal(table["date"], day)).drop(["date"])
        pq.write_table(own, folder / f"date={day}" / "part-0.parquet")
    return folder


def _create(name: str, key: str, table: pa.Table) -> str:
    kinds = {"item": f"{key} primary key", "label": "text", "date": "text"}
    columns = (
        f'"{column}" {kinds.get(column, "double precision")}' for column in table.column_names
    )
    return f"create table {name} ({', '.join(columns)})"


def write_sqlite(table: pa.Table, path: Path) -> str:
    """A table `items` in a new file."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(_create("items", "integer", table))
        values = zip(*(column.to_pylist() for column in table.columns), strict=True)
        marks = ", ".join("?" * table.num_columns)
        connection.executemany(f"insert into items values ({marks})", values)
    return f"sqlite:///{path}#items"


def write_duckdb(table: pa.Table, path: Path) -> str:
    """A table `items` in a new file."""
    duckdb = pytest.importorskip("duckdb", reason="the extra `sql` is not installed")
    with duckdb.connect(str(path)) as connection:
        connection.register("new", table)
        connection.execute("create table items as select * from new")
    return f"duckdb:///{path}#items"


def write_postgres(table: pa.Table, url: str, name: str = "items") -> str:
    """A table of its server, made anew."""
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(f"drop table if exists {name} cascade")
        cursor.execute(_create(name, "bigint", table))
        cursor.adbc_ingest(name, table, mode="append")
        cursor.execute(f"create view {name}_view as select * from {name} order by item")
        connection.commit()
    return f"{url}#{name}"


def execute(url: str, statement: str) -> None:
    """Run a statement, and commit it."""
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(statement)


def place(kind: str, table: pa.Table, folder: Path, request: pytest.FixtureRequest) -> Any:
    """The rows in a place of this kind, as any function takes it."""
    import fewlabels as fl

    name, _, form = kind.partition(" ")
    if name == "s3":
        return _stored(form, table, folder, request)
    if name == "postgresql":
        address = write_postgres(table, request.getfixturevalue("postgresql"))
        return f"{address}_view" if form == "view" else address
    path = folder / f"items.{name}"
    if kind == "parquet":
        pq.write_table(table, path)
    elif kind == "csv":
        pcsv.write_csv(table, path)
    elif kind in ("hive", "pattern"):
        write_hive(table, folder / "hive")
        return folder / "hive" if kind == "hive" else str(folder / "**" / "part-*.parquet")
    elif kind == "duckdb":
        return write_duckdb(table, path)
    else:
        address = write_sqlite(table, path)
        query = "select * from items order by item"
        if kind == "sqlite query":
            return fl.source(address.partition("#")[0], query=f"{query};")
        if kind == "connection":
            return fl.source(sqlite3.connect(path, check_same_thread=False), query=query)
        if kind == "sqlalchemy":
            sqlalchemy = pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
            return fl.source(sqlalchemy.create_engine(f"sqlite:///{path}"), query=query)
        return address
    return path


def _stored(form: str, table: pa.Table, folder: Path, request: pytest.FixtureRequest) -> str:
    from pyarrow import fs

    environment = request.getfixturevalue("s3")
    server = environment["AWS_ENDPOINT_URL"].removeprefix("http://")
    here = place(form, table, folder, request)
    name = f"{folder.name}/{here.name}"
    bucket = fs.S3FileSystem(endpoint_override=server, scheme="http")
    fs.copy_files(str(here), f"bucket/{name}", fs.LocalFileSystem(), bucket)
    return f"s3://bucket/{name}"
