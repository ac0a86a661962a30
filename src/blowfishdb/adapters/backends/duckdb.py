"""DuckDB: database files, and CSV and Parquet files through DuckDB, always read-only."""

from __future__ import annotations

import difflib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from sqlglot import exp

from blowfishdb.adapters.backends.duckdb_files import connect
from blowfishdb.adapters.sql import Statement, cell_statement, mentioned
from blowfishdb.adapters.sql_encode import encode
from blowfishdb.adapters.sql_source import Source
from blowfishdb.adapters.sql_values import SqlColumn
from blowfishdb.core.arrays import IntArray
from blowfishdb.core.domain import Domain
from blowfishdb.core.errors import QueryFailed, SourceError, SourceMissing, UnknownColumn
from blowfishdb.core.projection import CellQuery
from blowfishdb.core.secret import Secret

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

DIALECT = "duckdb"


@final
class DuckDB:
    """A dataset in a DuckDB file, a CSV file, a Parquet file or a folder of Parquet files.

    Files of texts and Parquet become one table with the name of the file, without its ending. Without a
    ``source``, the only table is taken. One connection serves all threads, with a cursor for each question.
    """

    def __init__(
        self, path: str | Path, domain: Domain, source: Source | None = None, *, timeout: float = 600.0
    ) -> None:
        self.path = Path(path)
        self.domain = domain
        self.timeout = timeout
        self._lock = threading.Lock()
        self._connection: DuckDBPyConnection | None = connect(self.path)
        try:
            self.source = source if source is not None else self._only_table()
            self._types = self._describe()
        except BaseException:
            self.close()
            raise

    # --- the port -------------------------------------------------------------------------------

    def check(self, query: CellQuery | None = None) -> None:
        """The source is there, and has the columns (of a question, or all declared ones) in fitting types."""
        self._types = self._describe()
        if query is not None:
            self._statement(query)
            return
        for name in self.domain:
            encode(self._column(name), self.domain[name], "unused")

    def count(self, query: CellQuery) -> Secret[IntArray]:
        """Rows in each box. Whatever fails here is charged, and says nothing about the data."""
        try:
            return Secret(self._run(self._statement(query)))
        except Exception as error:
            failure = type(error).__name__
        # raised outside, so that not even the context of the exception holds the engine's words
        if failure == "InterruptException":
            raise QueryFailed(
                f"The database took longer than {self.timeout:g} seconds and was interrupted.",
                fixes=("fewer or wider bins", "ask the curator for a longer limit"),
            )
        raise QueryFailed(
            f"The database could not answer ({failure}).", fixes=("ask the curator to check the source",)
        )

    def sql(self, query: CellQuery) -> str:
        """The statement of a question."""
        return self._statement(query).text(DIALECT)

    def columns(self) -> dict[str, str]:
        """Columns and types."""
        return {name: column.type for name, column in self._describe().items()}

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    # --- statements -----------------------------------------------------------------------------

    def _statement(self, query: CellQuery) -> Statement:
        for name in mentioned(query, self.domain):
            self._column(name)
        return cell_statement(query, self.source, self.domain, self._types)

    def _column(self, name: str) -> SqlColumn:
        if name in self._types:
            return self._types[name]
        close = difflib.get_close_matches(name, self._types, n=1, cutoff=0.5)
        raise UnknownColumn(
            f"There is no column {name!r} in {self.source.name}; it has: {', '.join(self._types)}.",
            fixes=tuple(f"declare {found!r}" for found in close),
        )

    def _run(self, statement: Statement) -> IntArray:
        with self._cursor() as cursor:
            for value_map in statement.maps:
                cursor.register(value_map.name, {name: _array(v) for name, v in value_map.columns.items()})
            timer = threading.Timer(self.timeout, cursor.interrupt)
            timer.daemon = True
            timer.start()
            try:
                result = cursor.execute(statement.text(DIALECT)).fetchnumpy()
            finally:
                timer.cancel()
                timer.join()
        groups = [np.asarray(result[f"c{i}"], dtype=np.int64) for i in range(len(statement.shape))]
        return statement.fold(groups, np.asarray(result["n"], dtype=np.int64))

    @contextmanager
    def _cursor(self) -> Iterator[DuckDBPyConnection]:
        with self._lock:
            if self._connection is None:
                raise SourceError("The database was closed.", fixes=("open the dataset again",))
            cursor = self._connection.cursor()
        try:
            yield cursor
        finally:
            cursor.close()

    # --- metadata -------------------------------------------------------------------------------

    def _only_table(self) -> Source:
        tables = self._tables()
        if len(tables) != 1:
            listed = ", ".join(repr(table) for table in tables) or "none"
            raise SourceMissing(
                f"'{self.path.name}' has no single table to take; it has: {listed}.",
                fixes=("name the table",),
            )
        return Source.of_table(tables[0])

    def _tables(self) -> list[str]:
        with self._cursor() as cursor:
            return [str(row[0]) for row in cursor.execute("SHOW TABLES").fetchall()]

    def _describe(self) -> dict[str, SqlColumn]:
        select = exp.select("*").from_(self.source.relation())
        failure = ""
        try:
            with self._cursor() as cursor:
                rows = cursor.execute(exp.Describe(this=select).sql(dialect=DIALECT)).fetchall()
            return {str(row[0]): SqlColumn(str(row[0]), str(row[1])) for row in rows}
        except SourceError:
            raise
        except Exception as error:
            failure = type(error).__name__
        if not self.path.exists():
            raise SourceMissing(f"'{self.path}' is no longer there.", fixes=("put it back",))
        if failure == "CatalogException":
            tables = ", ".join(repr(table) for table in self._tables()) or "none"
            raise SourceMissing(
                f"'{self.path.name}' has nothing that is called {self.source.name}; its tables: {tables}.",
                fixes=("one of these tables",),
            )
        raise SourceError(
            f"DuckDB cannot read {self.source.name} of '{self.path.name}' ({failure}).",
            fixes=("open the dataset again if the file has changed", "check the names in the view"),
        )


def _array(values: Any) -> np.ndarray[Any, Any]:
    if isinstance(values, list) and values and isinstance(values[0], str):
        return np.array(values, dtype=object)
    return np.asarray(values)
