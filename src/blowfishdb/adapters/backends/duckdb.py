"""DuckDB: database files, CSV and Parquet files, and tables in memory, always read-only."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from sqlglot import exp

from blowfishdb.adapters.backends.declared import DeclaredBackend, closed, listed, only_table
from blowfishdb.adapters.backends.duckdb_files import connect, holds_rows
from blowfishdb.adapters.backends.duckdb_memory import connect_to_table
from blowfishdb.adapters.backends.running import Brake
from blowfishdb.adapters.sql import Aggregate
from blowfishdb.adapters.sql_duckdb import DUCKDB
from blowfishdb.adapters.sql_engine import SqlColumn
from blowfishdb.adapters.sql_source import Source
from blowfishdb.adapters.sql_view_types import check_types
from blowfishdb.core.arrays import IntArray
from blowfishdb.core.domain import Domain
from blowfishdb.core.errors import InvalidInput, SourceError, SourceMissing

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@final
class DuckDB(DeclaredBackend):
    """A dataset in a DuckDB file, a CSV file, a Parquet file, a folder of Parquet files, or in memory.

    Files of texts and Parquet become one table with the name of the file, without its ending; a pandas, Arrow
    or Polars table is copied, and called ``data``. Without a ``source``, the only table is taken. One
    connection serves all threads, with a cursor for each question.
    """

    engine = DUCKDB

    def __init__(
        self, place: object, domain: Domain, source: Source | None = None, *, timeout: float = 600.0
    ) -> None:
        self.domain = domain
        self.timeout = timeout
        self.path = Path(place) if isinstance(place, (str, Path)) else None
        self._name = "the table in memory" if self.path is None else f"'{self.path.name}'"
        self._lock = threading.Lock()
        self._connection: DuckDBPyConnection | None = (
            connect_to_table(place) if self.path is None else connect(self.path)
        )
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
