"""DuckDB: database files, CSV and Parquet files, and tables in memory, always read-only.

Opening files with DuckDB so that nothing is written, downloaded, or mistaken for a Python variable.

Tables in memory: pandas, Arrow and Polars, copied into a DuckDB database of their own.

The copy is what is asked from then on, whatever happens to the original: answers belong to a snapshot.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from sqlglot import exp

from blowfishdb.adapters.backends.base import Brake, DeclaredBackend, closed, listed, only_table
from blowfishdb.adapters.sql.engines import SqlColumn
from blowfishdb.adapters.sql.engines.duckdb import DUCKDB
from blowfishdb.adapters.sql.source import Source, check_types
from blowfishdb.adapters.sql.statement import Aggregate
from blowfishdb.core.arrays import IntArray
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import InvalidInput, SourceCorrupt, SourceError, SourceMissing

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection


Config = dict[str, str | bool | int | float | list[str]]
SAFE: Config = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
}
TEXT_ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".csv.zst", ".tsv.zst")
SHEET_ENDING = ".xlsx"
_PARQUET_ENDINGS = (".parquet", ".pq")


def connect(path: Path) -> DuckDBPyConnection:
    """A read-only connection to a database file, or to a view of a file or folder of rows."""
    if not path.exists():
        raise SourceMissing(f"There is no file '{path}'.", fixes=("check the path and the working folder",))
    if path.is_dir():
        if not any(path.rglob("*.parquet")):
            raise SourceMissing(
                f"The folder '{path}' holds no Parquet files.", fixes=("files that end in .parquet",)
            )
        return _rows(path, "/**/*.parquet")
    if path.name.lower().endswith(_PARQUET_ENDINGS):
        return _rows(path)
    if has_dialect(path):  # how it is read would depend on its rows, so no answer comes from it
        raise SourceError(
            f"'{path}' is a file of texts, which is read once, when it is declared.", fixes=("add_dataset",)
        )
    return _database(path)


def holds_rows(path: Path) -> bool:
    """Whether a place is a file or folder of rows, which is one table, rather than a database."""
    return path.is_dir() or path.name.lower().endswith((*_PARQUET_ENDINGS, *TEXT_ENDINGS, SHEET_ENDING))


def has_dialect(location: object) -> bool:
    """Whether a place is a path that names a file read under a dialect: one of texts, or of Excel."""
    path = isinstance(location, str | Path) and "://" not in str(location)
    return path and str(location).lower().endswith((*TEXT_ENDINGS, SHEET_ENDING))


def table_name(path: Path) -> str:
    """The name under which a file of rows is a table: what is in front of the first dot."""
    return path.name.split(".")[0] or path.name


def _database(path: Path) -> DuckDBPyConnection:
    import duckdb

    try:
        connection = duckdb.connect(str(path), read_only=True, config=_closed())
        try:
            _check_functions(connection, path)
        except BaseException:
            connection.close()
            raise
        return connection
    except duckdb.Error as error:
        words = str(error).lower()
    if "different configuration" in words:
        return _beside(path)
    if "lock" in words:
        raise SourceError(
            f"'{path}' is open for writing elsewhere.", fixes=("close it there", "use a copy of the file")
        )
    if "permission" in words:
        raise SourceError(f"'{path}' may not be read.", fixes=("check the permissions of the file",))
    raise SourceCorrupt(
        f"'{path}' is not a DuckDB database, is damaged, or was written by a newer version.",
        fixes=("a DuckDB, CSV or Parquet file", "pip install --upgrade duckdb"),
    )


def _beside(path: Path) -> DuckDBPyConnection:
    """A connection to a file that this process has open already; DuckDB refuses it if that one may write."""
    import duckdb

    name = exp.to_identifier(path.stem, quoted=True).sql("duckdb")
    connection = reliable(duckdb.connect(":memory:", config=SAFE))
    try:
        connection.execute(f"ATTACH {exp.Literal.string(str(path)).sql('duckdb')} AS {name} (READ_ONLY)")
        connection.execute(f"USE {name}")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        _check_functions(connection, path)
    except duckdb.Error:
        connection.close()
    except BaseException:
        connection.close()
        raise
    else:
        return connection
    raise SourceError(
        f"'{path}' is open already in this process, by a connection that is not BlowfishDB's; one that "
        "could write would change what is counted.",
        fixes=("open it there with read_only=True", "close that connection first", "use a copy of the file"),
    )


def _check_functions(connection: DuckDBPyConnection, path: Path) -> None:
    """A file may bring functions along; one with the name of DuckDB's own would be taken in its place.

    Listing them takes as long as opening the file, so a file that has none is remembered as it is now.
    """
    state = _state_of(path)
    if state in _PLAIN:
        return
    listed = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE internal = "
    own = {name.lower() for (name,) in connection.execute(f"{listed} false").fetchall()}
    if own and own & {name.lower() for (name,) in connection.execute(f"{listed} true").fetchall()}:
        raise SourceError(
            f"'{path}' defines functions under names of DuckDB's own, so it is not known what is counted.",
            fixes=("DROP MACRO in the file", "a file with the tables alone"),
        )
    while len(_PLAIN) >= _MOST_REMEMBERED:
        _PLAIN.pop(next(iter(_PLAIN)), None)
    _PLAIN[state] = None


_PLAIN: dict[tuple[int, ...], None] = {}
"""States of files that bring no functions along under names of DuckDB's own, the oldest first."""
_MOST_REMEMBERED = 256


def _state_of(path: Path) -> tuple[int, ...]:
    """Another one when a file was replaced or written."""
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _used(connection: DuckDBPyConnection) -> str | None:
    """What every cursor has to say first: which database is asked, where it is not that of the connection."""
    listed = connection.execute("SELECT current_database()").fetchall()
    with closing(connection.cursor()) as cursor:
        if cursor.execute("SELECT current_database()").fetchall() == listed:
            return None
    return f"USE {exp.to_identifier(str(listed[0][0]), quoted=True).sql('duckdb')}"


@cache
def _closed() -> Config:
    """For a database file: whatever its views call, no other file and no address can be reached."""
    import duckdb

    with duckdb.connect(":memory:", config=SAFE) as connection:
        unreliable = _unreliable(connection)
    return {
        **SAFE,
        "enable_external_access": False,
        **({"disabled_optimizers": unreliable} if unreliable else {}),
        "lock_configuration": True,
    }


def _unreliable(connection: DuckDBPyConnection) -> str:
    """An optimisation that makes TRY_CAST fail on CSV files (duckdb issue 23818), if present."""
    optimizers = connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()
    return "type_pushdown" if ("type_pushdown",) in optimizers else ""


def reliable(connection: DuckDBPyConnection) -> DuckDBPyConnection:
    """The connection without that optimisation."""
    unreliable = _unreliable(connection)
    if unreliable:
        connection.execute(f"SET disabled_optimizers = '{unreliable}'")
    return connection


def merge_parquet(folder: Path, file: Path) -> None:
    """The rows of a folder of Parquet files, in one file."""
    import duckdb

    connect(folder).close()
    scan = _scan(folder, "/**/*.parquet")
    copied = exp.select("*").from_(scan).sql(dialect="duckdb")
    connection = reliable(duckdb.connect(":memory:", config=SAFE))
    try:
        connection.execute(f"COPY ({copied}) TO {exp.Literal.string(str(file)).sql()} (FORMAT parquet)")
        return
    except duckdb.Error as error:
        failure = type(error).__name__
    finally:
        connection.close()
    raise SourceCorrupt(
        f"The Parquet files in '{folder}' cannot be read together ({failure}).",
        fixes=("files with the same columns",),
    )


def check_readable(path: Path, title: str) -> None:
    """Every value of Parquet files can be read: one that cannot would make the questions fail that meet it,
    and so tell that it is there."""
    column = _unreadable_column(path)
    if column is not None:
        raise SourceCorrupt(
            f"{title} has values in the column {column!r} that cannot be read.",
            fixes=("write it anew, with texts in UTF-8", "leave the column out of it"),
        )


def _unreadable_column(path: Path) -> str | None:
    """The first column with a value that cannot be read."""
    connection = connect(path)
    try:
        relation = exp.Table(this=exp.to_identifier(table_name(path), quoted=True))
        described = connection.execute(exp.Describe(this=exp.select("*").from_(relation)).sql("duckdb"))
        names = [str(row[0]) for row in described.fetchall()]
        return next((name for name in names if not _reads(connection, relation, name)), None)
    finally:
        connection.close()


def _reads(connection: DuckDBPyConnection, relation: exp.Table, name: str) -> bool:
    import duckdb

    value = exp.Anonymous(this="hash", expressions=[exp.column(name, quoted=True)])
    try:
        connection.execute(exp.select(exp.Max(this=value)).from_(relation).sql("duckdb")).fetchall()
    except duckdb.Error:
        return False
    return True


def _literal(path: Path) -> str:
    """A path without signs that stand for others."""
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in str(path))


def _scan(path: Path, below: str = "") -> exp.Anonymous:
    return exp.Anonymous(this="read_parquet", expressions=[exp.Literal.string(_literal(path) + below)])


def _rows(path: Path, below: str = "") -> DuckDBPyConnection:
    """A view with the name of the file, in a database in memory that can reach nothing else.

    A file that is open is opened again at once: that takes as long as a hundred questions otherwise.
    """
    import duckdb

    name = exp.Table(this=exp.to_identifier(table_name(path), quoted=True))
    view = exp.Create(this=name, kind="VIEW", expression=exp.select("*").from_(_scan(path, below)))
    reachable = "allowed_directories" if path.is_dir() else "allowed_paths"
    places = [f"{text}/" if path.is_dir() else text for text in (str(path), _literal(path))]
    allow = exp.Array(expressions=[exp.Literal.string(text) for text in places])
    with _OPENING:
        connection = duckdb.connect(f":memory:{_own_name(path)}", config=SAFE)
        try:
            if connection.execute("SELECT current_setting('lock_configuration')").fetchall() == [(True,)]:
                return connection
            reliable(connection)
            connection.execute(view.sql(dialect="duckdb"))
            connection.execute(f"SET {reachable} = {allow.sql(dialect='duckdb')}")
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
            return connection
        except duckdb.Error:
            connection.close()
    raise SourceCorrupt(
        f"'{path}' is not a readable Parquet file.", fixes=("open it with another program to see",)
    )


_OPENING = threading.Lock()
"""Whoever opens a file that is being opened waits until it can be asked."""


def _own_name(path: Path) -> str:
    """The name in this process of a file as it is now; a folder has none, and is always opened anew."""
    if path.is_dir():
        return ""
    return hashlib.sha256(repr((os.getpid(), str(path), _state_of(path))).encode()).hexdigest()


NAME = "data"
_GIVEN = "given"


def is_table(value: object) -> bool:
    """Whether ``value`` offers its columns in the way of Arrow, as pandas and Polars do."""
    return hasattr(value, "__arrow_c_stream__") or _is_lazy(value)


def connect_to_table(value: object) -> DuckDBPyConnection:
    """A database that holds a copy of a table and can reach nothing else."""
    import duckdb

    table = _as_arrow(value)
    connection = reliable(duckdb.connect(":memory:", config=SAFE))
    try:
        connection.register(_GIVEN, table)
        connection.execute(f'CREATE TABLE "{NAME}" AS SELECT * FROM "{_GIVEN}"')  # noqa: S608 - no input
        connection.unregister(_GIVEN)
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        return connection
    except duckdb.Error:
        connection.close()
    raise _no_place("DuckDB")


def _no_place(holder: str) -> SourceCorrupt:
    return SourceCorrupt(
        f"The table in memory has columns that {holder} cannot hold.", fixes=("simpler types",)
    )


def save_table(value: object, path: Path) -> None:
    """A copy of a table as a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = _as_arrow(value)
    try:
        pq.write_table(table, path)
    except pa.ArrowException:
        table = None
    if table is None:
        raise _no_place("Parquet")


def _is_lazy(value: object) -> bool:
    return type(value).__name__ == "LazyFrame" and hasattr(value, "collect")


def _as_arrow(value: Any) -> pa.Table:
    import pyarrow as pa

    if not is_table(value):
        raise InvalidInput(
            f"A {type(value).__name__} is not a table.",
            fixes=("a path", "a database address", "a pandas, Arrow or Polars table"),
        )
    eager = value.collect() if _is_lazy(value) else value
    try:
        if hasattr(eager, "iloc"):  # pandas; its index is no column
            _check_names([str(name) for name in eager.columns])
            table = pa.Table.from_pandas(eager, preserve_index=False)
        else:
            table = pa.table(eager)
    except (pa.ArrowException, TypeError, ValueError):
        table = None
    if table is None:  # raised outside, because Arrow's words quote values
        for name, kind in _unknown_to_arrow(eager):
            raise SourceCorrupt(
                f"The column {name!r} of the table in memory holds {kind}, and Arrow has no such type.",
                fixes=(f"cast {name!r} to a type that databases have: Int64, Decimal, Float64, String",),
            )
        raise SourceCorrupt(
            "A column of the table in memory mixes values of several types.",
            fixes=("give each column one type, for example with astype('string')",),
        )
    _check_names(table.column_names)
    return _decoded(table)


def _unknown_to_arrow(frame: Any) -> Iterator[tuple[str, str]]:
    """The columns of a Polars table that cannot be handed over, and their types."""
    import pyarrow as pa

    for name, kind in dict(getattr(frame, "schema", {})).items() if hasattr(frame, "select") else ():
        try:
            pa.table(frame.select(name))
        except (pa.ArrowException, TypeError, ValueError):
            yield name, str(kind)


def _check_names(names: list[str]) -> None:
    if len({name.lower() for name in names}) < len(names):
        raise SourceCorrupt("Two columns of the table have the same name.", fixes=("rename one of them",))


def _decoded(table: pa.Table) -> pa.Table:
    """Categories as the values that they stand for."""
    import pyarrow as pa

    for index, column in enumerate(table.schema):
        if pa.types.is_dictionary(column.type):
            kind = column.type.value_type
            if pa.types.is_string_view(kind):  # as Polars has them; Arrow cannot look values up in these
                kind = pa.large_string()
            chunks = [part.dictionary.cast(kind).take(part.indices) for part in table.column(index).chunks]
            table = table.set_column(index, column.name, pa.chunked_array(chunks, kind))
    return table


@final
class DuckDB(DeclaredBackend):
    """A dataset in a DuckDB file, a CSV file, a Parquet file, a folder of Parquet files, or in memory.

    Files of texts and Parquet become one table with the name of the file, without its ending; a pandas, Arrow
    or Polars table is copied, and called ``data``. Without a ``source``, the only table is taken. One
    connection serves all threads, with a cursor for each question.
    """

    engine = DUCKDB

    def __init__(
        self, location: object, domain: Domain, source: Source | None = None, *, timeout: float = 600.0
    ) -> None:
        self.domain = domain
        self.timeout = timeout
        self.path = Path(location) if isinstance(location, (str, Path)) else None
        self._name = "the table in memory" if self.path is None else f"'{self.path.name}'"
        self._lock = threading.Lock()
        self._connection: DuckDBPyConnection | None = (
            connect_to_table(location) if self.path is None else connect(self.path)
        )
        self._used = _used(self._connection)
        try:
            self.source = source if source is not None else only_table(self._tables(), self._name)
            self._types()
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"<DuckDB: {self.source.name} of {self._name}>"

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    # --- statements -----------------------------------------------------------------------------

    def _run(self, statement: Aggregate, brake: Brake) -> IntArray:
        with self._cursor() as cursor, brake.stops_by(cursor.interrupt):
            for value_map in statement.maps:
                cursor.register(value_map.name, {name: _array(v) for name, v in value_map.columns.items()})
            result = cursor.execute(statement.text).fetchnumpy()
        return statement.fold([np.asarray(column, dtype=np.int64) for column in result.values()])

    @contextmanager
    def _cursor(self) -> Iterator[DuckDBPyConnection]:
        with self._lock:
            if self._connection is None:
                raise closed()
            cursor = self._connection.cursor()
        try:
            if self._used is not None:
                cursor.execute(self._used)
            yield cursor
        finally:
            cursor.close()

    # --- metadata -------------------------------------------------------------------------------

    def _describe(self, select: exp.Query) -> list[SqlColumn]:
        with self._cursor() as cursor:
            return _described(
                cursor.execute(exp.Describe(this=select).sql(dialect=DUCKDB.dialect)).fetchall()
            )

    def _tables(self) -> list[str]:
        if self.path is None or holds_rows(self.path):
            return [NAME if self.path is None else table_name(self.path)]
        with self._cursor() as cursor:
            return [str(row[0]) for row in cursor.execute("SHOW TABLES").fetchall()]

    def _is_table(self, table: exp.Table) -> bool:
        """Files of rows and tables in memory are views or copies of our own making."""
        if self.path is None or holds_rows(self.path):
            return True
        with self._cursor() as cursor:
            rows = cursor.execute("SELECT schema_name, table_name FROM duckdb_tables()").fetchall()
        schema = table.db or self.source.schema or "main"
        return (schema.lower(), table.name.lower()) in {(row[0].lower(), row[1].lower()) for row in rows}

    def _computed(self, table: exp.Table) -> list[str]:
        with self._cursor() as cursor:
            rows = cursor.execute(
                "SELECT column_name FROM duckdb_columns() WHERE generation_expression IS NOT NULL "
                "AND lower(table_name) = lower(?)",
                [table.name],
            ).fetchall()
        return [str(row[0]) for row in rows]

    def _types(self) -> dict[str, str]:
        select = exp.select("*").from_(self.source.relation())
        failure = ""
        try:
            if self.source.read is not None:
                check_types(self.source.read, self._describe)
            return {column.name: column.type for column in self._describe(select)}
        except (SourceError, InvalidInput):
            raise
        except Exception as error:
            failure = type(error).__name__
        if self.path is not None and not self.path.exists():
            raise SourceMissing(f"'{self.path}' is no longer there.", fixes=("put it back",))
        if failure == "CatalogException":
            raise SourceMissing(
                f"{self._name} has nothing that is called {self.source.name}; its tables: "
                f"{listed(self._tables())}.",
                fixes=("one of these tables",),
            )
        raise SourceError(
            f"DuckDB cannot read {self.source.name} of {self._name} ({failure}).",
            fixes=("open the dataset again if the file has changed", "check the names in the view"),
        )


def _described(rows: list[tuple[Any, ...]]) -> list[SqlColumn]:
    return [SqlColumn(str(row[0]), str(row[1]), DUCKDB) for row in rows]


def _array(values: Any) -> np.ndarray[Any, Any]:
    """Texts as bytes, which is how they are compared."""
    if isinstance(values, list) and values and isinstance(values[0], str):
        return np.array([text.encode() for text in values], dtype=object)
    return np.asarray(values)
