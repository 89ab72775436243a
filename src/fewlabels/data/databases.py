"""Tables and queries of databases: SQLite, PostgreSQL (by ADBC), DuckDB, and open connections.

A table with a whole number as its key is read where it is, by ranges of the key; what has no such
key is read once and kept on disk. SQLite is read by Python's own module: its columns may hold any
type, and ADBC's driver refuses a label of another type than that of the first rows.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fewlabels.data.limits import refuse_whole
from fewlabels.data.stores import is_database, temporary_folder
from fewlabels.data.table import Table, naming_file
from fewlabels.data.where import Condition, identifier, sql_text
from fewlabels.errors import (
    FewlabelsError,
    InputError,
    MissingExtraError,
    UsageError,
    did_you_mean,
    listed,
    one_line,
    quoted,
    redacted,
)

_ROWS = 65_536
_DUCKDB = {"memory_limit": "256MB", "threads": "2"}
"""A part of a table is sorted by its key, which needs little."""
_WAITS = 60.0
"""Seconds that a run waits while another one writes to the same SQLite file."""


@dataclass(frozen=True)
class TableAt:
    """The address of a table, shown without its password; `where` is the condition on its rows."""

    url: str = field(repr=False)
    table: str
    where: Condition | None = None

    @classmethod
    def of(cls, address: str, where: Condition | None = None) -> TableAt:
        """The table of an address `sqlite:///file.db#table`."""
        url, _, table = address.partition("#")
        if table:
            return cls(url, table, where)
        with opened(url) as connection:
            names = _texts(connection, _SAYS[_kind(url)].tables)
        held = f"its tables are {listed(names)}" if names else "it has no table"
        one = f"{url}#{names[0] if names else 'TABLE'}"
        raise InputError(
            f"is a database: name a table, {quoted(one, 200)}, or choose rows with --query; {held}"
        )

    def __str__(self) -> str:
        return redacted(f"{self.url}#{self.table}")

    @property
    def quoted(self) -> str:
        """The table in SQL."""
        return _quoted(self.table)

    @property
    def query(self) -> str:
        """All of it."""
        return f"select * from {self.quoted}"

    def files(self) -> tuple[Path, ...]:
        """The files of the database: the main one, and what is not merged into it yet."""
        path = _path(self.url)
        if path is None:
            return ()
        logs = [path.with_name(path.name + end) for end in ("-wal", ".wal")]
        return (path, *(log for log in logs if log.exists() and log.stat().st_size))

    def rows_said(self, key: str, start: int, stop: int) -> str:
        """The clauses of a range of keys, with the condition."""
        where = f"{key} >= {start} and {key} < {stop}"
        chosen = f" and ({self.where.tree.sql()})" if self.where is not None else ""
        return f"from {self.quoted} where {where}{chosen}"


def _quoted(table: str) -> str:
    """A table in SQL; a dot divides a schema from its table."""
    return ".".join(map(identifier, table.split(".")))


@dataclass(frozen=True)
class _Says:
    """What is asked of a database in its own words; `{table}` is quoted SQL, `{text}` a text.

    `waits` is said first by who writes to a table, where the connection does not wait by itself.
    """

    tables: str
    columns: str
    key: str
    version: str = ""
    waits: str = ""


_SAYS = {
    "sqlite": _Says(
        "select name from sqlite_master where type in ('table', 'view') "
        "and name not like 'sqlite\\_%' escape '\\' order by name",
        "select name from pragma_table_info({text}) order by cid",
        # A table WITHOUT ROWID has no such column, and a view no such row.
        "select '_rowid_' from sqlite_master where type = 'table' and name = {text} and sql not "
        "like '%without%rowid%'",
    ),
    "duckdb": _Says(
        "select table_name from information_schema.tables order by table_name",
        "select column_name from information_schema.columns where table_name = {last} "
        "order by ordinal_position",
        "select 'rowid' from information_schema.tables where table_name = {last} and table_type = "
        "'BASE TABLE'",
    ),
    "postgresql": _Says(
        "select case table_schema when 'public' then '' else table_schema || '.' end || table_name "
        "from information_schema.tables where table_schema not in ('information_schema', "
        "'pg_catalog') order by 1",
        "select attname::text from pg_attribute where attrelid = to_regclass({table}) and attnum > "
        "0 and not attisdropped order by attnum",
        "select quote_ident(a.attname) from pg_index i join pg_attribute a on a.attrelid = "
        "i.indrelid and a.attnum = i.indkey[0] join pg_class c on c.oid = i.indrelid where "
        "i.indrelid = to_regclass({table}) and i.indisprimary and i.indnatts = 1 and a.atttypid in "
        "(20, 21, 23) and c.relkind = 'r'",
        # xmin is the transaction that wrote a row: every update, insert and delete changes a sum.
        "select count(*)::bigint, coalesce(sum(xmin::text::bigint), 0)::bigint",
        # Until the transaction of another run that writes to the table ends.
        "select pg_advisory_xact_lock(hashtext({text}))",
    ),
}


def _kind(url: str) -> str:
    scheme = url.partition("://")[0]
    return "postgresql" if scheme == "postgres" else scheme


def _path(url: str) -> Path | None:
    """The file of a database that is one: `sqlite:///file.db`, with four slashes from the root."""
    scheme, _, rest = url.partition("://")
    if scheme not in ("sqlite", "duckdb"):
        return None
    path = unquote(rest.partition("?")[0])
    if not path.startswith("/") or len(path) < 2:
        raise UsageError(
            f"{quoted(url)} must name a file: {scheme}:///file.db here, or {scheme}:////folder/"
            "file.db from the root"
        )
    return Path(re.sub("^/+", "/", path[1:]))


_MENDS = (
    ("password", "set PGPASSWORD, or write a line in ~/.pgpass"),
    ("locked", "wait until the other program is done, and run it again"),
    ("refused", "see whether the server runs, and at this port"),
    ("closed the connection|terminat|server.*lost|connection.*lost", "the connection was dropped: "
     "run it again; a run in parts goes on with --resume"),
)  # fmt: skip


@contextmanager
def _talking() -> Iterator[None]:
    """Say in one line what a driver raises, whose exceptions have no common kind."""
    try:
        yield
    except (FewlabelsError, MemoryError, LookupError, AttributeError, NameError, TypeError):
        raise  # nothing that a driver says
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        # A server's own line says more than the driver's before it.
        said = re.sub(r"^.*?(?:FATAL|ERROR):\s*", "", lines[0] if lines else type(error).__name__)
        mend = next((m for word, m in _MENDS if re.search(word, str(error))), "")
        raise InputError(
            f"the database says: {one_line(redacted(said), 300)}" + (f"; {mend}" if mend else "")
        ) from None


@contextmanager
def opened(url: str) -> Iterator[Any]:
    """A connection that only reads."""
    with _talking(), closing(_connected(url, write=False)) as connection:
        yield connection


def _connected(url: str, *, write: bool) -> Any:
    """A connection, in a transaction that is rolled back unless it is committed."""
    kind, path = _kind(url), _path(url)
    if path is not None and not write and not path.is_file():
        raise InputError(f"no such file: {quoted(str(path))}")
    if path is not None and write and not path.absolute().parent.is_dir():
        raise InputError(f"there is no folder {quoted(str(path.absolute().parent))}")
    if kind == "sqlite":
        import sqlite3

        assert path is not None
        address = f"file:{quote(str(path.absolute()))}?mode={'rwc' if write else 'ro'}"
        connection: Any = sqlite3.connect(address, timeout=_WAITS, isolation_level=None, uri=True)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)  # no query makes another file
        # Who writes waits for another who does: what is there is looked at only then.
        connection.execute("begin immediate" if write else "begin")
        return connection
    if kind == "duckdb":
        try:
            import duckdb
        except ImportError:
            raise MissingExtraError("duckdb", "sql") from None
        return duckdb.connect(str(path), read_only=not write, config=dict(_DUCKDB)).begin()
    try:
        from adbc_driver_postgresql import dbapi
    except ImportError:
        raise MissingExtraError("adbc-driver-postgresql", "sql") from None
    connection = dbapi.connect(url)
    if not write:
        with connection.cursor() as cursor:
            cursor.execute("set transaction isolation level repeatable read read only")
    return connection


def rows_of_query(connection: Any, query: str) -> Iterator[pa.RecordBatch]:
    """The rows of a query as they come: by Arrow where the driver can, else by Python's values."""
    if hasattr(connection, "from_arrow"):  # DuckDB
        kinds = {statement.type.name for statement in connection.extract_statements(query)}
        found = None if kinds & {"COPY", "EXPORT"} else connection.sql(query)
        if found is None:
            raise UsageError(f"`query` must give rows; got {quoted(query)}")
        # As it was called before version 1.5.
        reader = (getattr(found, "to_arrow_reader", None) or found.fetch_record_batch)(_ROWS)
        yield from _plain(reader.schema.names, reader)
        return
    with ExitStack() as stack:
        if hasattr(connection, "raw_connection"):
            connection = stack.enter_context(connection.connect())
        if hasattr(connection, "exec_driver_sql"):
            connection = connection.execution_options(stream_results=True)
            cursor: Any = stack.enter_context(closing(connection.exec_driver_sql(query)))
            names = list(cursor.keys())
        else:
            cursor = stack.enter_context(closing(connection.cursor()))
            cursor.execute(query)
            names = [column[0] for column in cursor.description or ()]
        if hasattr(cursor, "fetch_record_batch"):
            reader = cursor.fetch_record_batch()
            yield from _plain(reader.schema.names, reader)
            return
        if not names:
            raise UsageError(f"`query` must give rows; got {quoted(query)}")
        blocks = itertools.takewhile(len, iter(lambda: cursor.fetchmany(_ROWS), None))
        columns = ([_array(values) for values in zip(*rows, strict=True)] for rows in blocks)
        yield from _plain(names, (pa.RecordBatch.from_arrays(of, names) for of in columns))


def _array(values: Sequence[Any]) -> pa.Array:
    """Values of Python as one type, or as texts where they have several."""
    try:
        return pa.array(values)
    except (pa.ArrowException, TypeError, OverflowError):
        texts = (v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in values)
        return pa.array([None if text is None else str(text) for text in texts], pa.string())


def _plain(names: Sequence[str], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches without types of the driver's own, at least an empty one."""
    n_batches = 0
    for batch in batches:
        columns = []
        for column in batch.columns:
            kind = column.type
            if isinstance(kind, pa.BaseExtensionType):
                named = getattr(kind, "extension_name", "") == "arrow.uuid"
                column = _array(list(map(str, column.to_pylist()))) if named else column.storage
            columns.append(column)
        yield pa.RecordBatch.from_arrays(columns, batch.schema.names)
        n_batches += 1
    if not n_batches:
        yield pa.RecordBatch.from_arrays([pa.nulls(0) for _ in names], names)


def _texts(connection: Any, query: str) -> list[str]:
    """The first column of a query."""
    return [str(v) for batch in rows_of_query(connection, query) for v in batch[0].to_pylist()]


def _of_table(query: str, address: TableAt) -> str:
    texts = {"text": address.table, "last": address.table.rpartition(".")[2]}
    texts |= {"table": address.quoted}
    return query.format(**{word: sql_text(text) for word, text in texts.items()})


@dataclass(frozen=True)
class SqlTable:
    """A table of a database; its keys are whole numbers from `start` to `stop`, which is beyond."""

    address: TableAt
    name: str
    names: tuple[str, ...]
    key: str
    start: int
    stop: int
    n_rows: int

    def read(self, numbers: Collection[str], texts: Collection[str]) -> Table:
        """Some columns of all rows, in the order of the key."""
        wanted = list(dict.fromkeys([*numbers, *texts]))
        refuse_whole(8 * self.n_rows * len(wanted), f"its {self.n_rows:,} rows")
        return Table.of_batches(list(self.batches(numbers, texts)), wanted)

    def batches(self, numbers: Collection[str], texts: Collection[str]) -> Iterator[pa.RecordBatch]:
        """The same, some thousand rows at a time."""
        return self.parts(numbers, texts, self.start, self.stop)

    def parts(
        self, numbers: Collection[str], texts: Collection[str], start: int, stop: int,
        version: tuple[int, int] | None = None,
    ) -> Iterator[pa.RecordBatch]:  # fmt: skip
        """The rows of a range of keys; refused where they are not of this version any more."""
        wanted = dict.fromkeys([*numbers, *texts])
        rows = self.address.rows_said(self.key, start, stop)
        with opened(self.address.url) as connection:
            if version is not None and version != self.version(start, stop, connection):
                raise InputError(CHANGED)
            columns = ", ".join(map(identifier, wanted))
            yield from rows_of_query(connection, f"select {columns} {rows} order by {self.key}")

    def version(self, start: int, stop: int, connection: Any = None) -> tuple[int, int] | None:
        """What changes with any of these rows; None where the file of the database tells it."""
        query = _SAYS[_kind(self.address.url)].version
        if not query:
            return None
        rows = self.address.rows_said(self.key, start, stop)
        held = opened(self.address.url) if connection is None else nullcontext(connection)
        with held as talking:
            (batch,) = rows_of_query(talking, f"{query} {rows}")
        count, total = (int(column[0].as_py()) for column in batch.columns)
        return count, total


CHANGED = "has changed since it was opened first; start again, when it is complete"


def open_table(address: TableAt, name: str) -> SqlTable | None:
    """The columns, keys and number of rows of a table; None where it has no key to read it by."""
    says = _SAYS[_kind(address.url)]
    with opened(address.url) as connection:
        names = tuple(_texts(connection, _of_table(says.columns, address)))
        if not names:
            tables = _texts(connection, says.tables)
            mend = did_you_mean(address.table, tables) or f"its tables are {listed(tables)}"
            raise InputError(f"has no table {quoted(address.table)}; {mend}".rstrip("; "))
        if address.where is not None:
            address.where.check(names)
        key = next(iter(_texts(connection, _of_table(says.key, address))), None)
        if key is None:
            return None
        chosen = "" if address.where is None else f" where {address.where.tree.sql()}"
        counted = f"select count(*), min({key}), max({key}) from {address.quoted}{chosen}"
        (batch,) = rows_of_query(connection, counted)
        n_rows, first, last = (column[0].as_py() for column in batch.columns)
        return SqlTable(
            address, name, names, key, int(first or 0), int(last or 0) + bool(n_rows), int(n_rows)
        )


def query_rows(place: Any, query: str, where: Condition | None) -> Iterator[pa.RecordBatch]:
    """The rows of a query to a database, by its address or an open connection."""
    if not isinstance(query, str) or not query.strip():
        raise UsageError(f"`query` must be a text of SQL; got {quoted(query)}")
    query = query.strip().rstrip(";")
    with ExitStack() as stack:
        stack.enter_context(_talking())
        connection = place
        if isinstance(place, str):
            connection = stack.enter_context(opened(place.partition("#")[0]))
        if where is not None:
            within = f"select * from ({query}\n) as chosen"
            where.check(next(rows_of_query(connection, f"{within} where 1 = 0")).schema.names)
            query = f"{within} where {where.tree.sql()}"
        yield from rows_of_query(connection, query)


def keep_rows(batches: Iterable[pa.RecordBatch]) -> tuple[Path, ...]:
    """Write rows as Parquet files of this disk, one after another where their types widen."""
    folder, paths = temporary_folder(), list[Path]()
    with ExitStack() as stack:
        writer: pq.ParquetWriter | None = None
        for batch in batches:
            schema = batch.schema if writer is None else _wider(writer.schema, batch.schema)
            if writer is None or not schema.equals(writer.schema):
                stack.close()
                paths.append(folder / f"rows-{len(paths)}.parquet")
                writer = stack.enter_context(pq.ParquetWriter(paths[-1], schema))
            writer.write_batch(batch.cast(schema))
    return tuple(paths)


def _wider(one: pa.Schema, other: pa.Schema) -> pa.Schema:
    """A schema that rows of both can have: nothing, whole numbers, numbers, texts."""
    fields = []
    for mine, theirs in zip(one, other, strict=True):
        try:
            fields.append(
                pa.unify_schemas(
                    [pa.schema([(mine.name, mine.type)]), pa.schema([(mine.name, theirs.type)])],
                    promote_options="permissive",
                ).field(0)
            )
        except pa.ArrowException:
            fields.append(pa.field(mine.name, pa.string()))
    return pa.schema(fields)


class KeptRows(NamedTuple):
    """Rows that stand once in their table, told apart by columns of texts, `key`.

    Those that are there under the same key are replaced, and all others stay.
    """

    batches: Iterable[pa.RecordBatch]
    key: tuple[str, ...]


Rows = Callable[[], "Iterable[pa.RecordBatch] | KeptRows"]


@contextmanager
def writing_tables(targets: Mapping[str, Rows]) -> Iterator[None]:
    """Write tables of databases: they are there once the block has succeeded, or none is."""
    with ExitStack() as stack:
        connections: dict[str, Any] = {}
        for address, make in targets.items():
            target, rows = target_table(address), make()
            with naming_file(str(target)), _talking():
                if target.url not in connections:
                    connection = closing(_connected(target.url, write=True))
                    connections[target.url] = stack.enter_context(connection)
                _write(connections[target.url], target, rows)
        yield
        for url, connection in connections.items():
            with naming_file(redacted(url)), _talking():
                connection.commit()


def target_table(address: str) -> TableAt:
    """The table that an output names."""
    url, _, table = address.partition("#")
    if not is_database(address):
        raise UsageError(
            f"{quoted(redacted(address))} is no database that is written to: sqlite:///file.db#"
            "TABLE, duckdb:///file.duckdb#TABLE, postgresql://user@host/name#TABLE"
        )
    if not table:
        raise UsageError(f"{quoted(redacted(address))} must end in #TABLE, the table to write")
    _path(url)
    return TableAt(url, table)


def _write(connection: Any, target: TableAt, rows: Iterable[pa.RecordBatch] | KeptRows) -> None:
    kind = _kind(target.url)
    batches, key = rows if isinstance(rows, KeptRows) else (rows, ())
    put: Callable[[Any, str, pa.RecordBatch], None] = _PUT[kind]
    columns: list[str] | None = None
    if _SAYS[kind].waits:
        _run(connection, _of_table(_SAYS[kind].waits, target))
    for batch in batches:
        batch = _storable(batch)
        if columns is None:
            columns = list(batch.schema.names)
            there = _texts(connection, _of_table(_SAYS[kind].columns, target))
            if there and there != columns:
                raise InputError(
                    f"has a table {quoted(target.table)} of other columns "
                    f"({listed(map(quoted, there))}); name another one"
                )
            made = [f"{identifier(f.name)} {_type(f.type)}" for f in batch.schema]
            named = ", ".join(map(identifier, key))
            made += [f"primary key ({named})"] if key else []
            if not there:
                _run(connection, f"create table {target.quoted} ({', '.join(made)})")
            elif not key:
                _run(connection, f"delete from {target.quoted}")
        if not key:
            put(connection, target.table, batch)
            continue
        new = f"create temporary table {_NEW} as select * from {target.quoted} where 1 = 0"
        _run(connection, new)
        put(connection, _NEW, batch)
        _run(
            connection,
            f"delete from {target.quoted} where ({named}) in (select {named} from {_NEW})",
        )
        _run(connection, f"insert into {target.quoted} select * from {_NEW}")
        _run(connection, f"drop table {_NEW}")


_NEW = "fewlabels_new"
"""The table of rows that are to take the places of others."""


def _run(connection: Any, statement: str) -> None:
    if not hasattr(connection, "adbc_get_info"):
        connection.execute(statement)  # of DuckDB, a cursor would be another transaction
        return
    with connection.cursor() as cursor:
        cursor.execute(statement)


def _storable(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Whole numbers, numbers, truth, times (in UTC) and texts; whatever else there is as text."""
    columns = []
    for column in batch.columns:
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        plain = pa.timestamp(kind.unit) if pa.types.is_timestamp(kind) else _ARROW.get(_type(kind))
        columns.append(column.cast(plain or pa.string()))
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


_ARROW = {"boolean": pa.bool_(), "bigint": pa.int64(), "double precision": pa.float64()}


def _type(kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_integer(kind):
        return "bigint"
    if pa.types.is_timestamp(kind):
        return "timestamp"
    return "double precision" if pa.types.is_floating(kind) else "text"


def _put_values(connection: Any, table: str, batch: pa.RecordBatch) -> None:
    marks = ", ".join("?" * batch.num_columns)
    columns = [
        # SQLite has no times: as text, by ISO 8601.
        pc.strftime(column, "%Y-%m-%dT%H:%M:%SZ") if pa.types.is_timestamp(column.type) else column
        for column in batch.columns
    ]
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    connection.executemany(f"insert into {_quoted(table)} values ({marks})", rows)


def _put_duckdb(connection: Any, table: str, batch: pa.RecordBatch) -> None:
    connection.register("fewlabels_rows", pa.Table.from_batches([batch]))
    connection.execute(f"insert into {_quoted(table)} select * from fewlabels_rows")
    connection.unregister("fewlabels_rows")


def _put_adbc(connection: Any, table: str, batch: pa.RecordBatch) -> None:
    schema, _, name = table.rpartition(".")
    with connection.cursor() as cursor:
        within = {"temporary": True} if name == _NEW else {"db_schema_name": schema or None}
        cursor.adbc_ingest(name, batch, mode="append", **within)


_PUT = {"sqlite": _put_values, "duckdb": _put_duckdb, "postgresql": _put_adbc}
