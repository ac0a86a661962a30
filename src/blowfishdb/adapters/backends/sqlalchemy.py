"""Databases with an address: PostgreSQL, SQLite, MySQL and MariaDB, Trino, and others by SQLAlchemy.

One small pool of connections serves all threads. Every transaction is read-only where the database knows the
word, and ends with a rollback. No message contains the database's own words, or a password.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, final

import numpy as np
from sqlalchemy import Connection, create_engine, inspect
from sqlalchemy.exc import NoSuchModuleError
from sqlalchemy.pool import QueuePool
from sqlglot import exp

from blowfishdb.adapters.backends import servers
from blowfishdb.adapters.backends.declared import Declared, columns, counted
from blowfishdb.adapters.sql import Statement
from blowfishdb.adapters.sql_source import Source
from blowfishdb.core.arrays import IntArray
from blowfishdb.core.domain import Domain
from blowfishdb.core.errors import (
    InvalidInput,
    SourceCorrupt,
    SourceError,
    SourceMissing,
)
from blowfishdb.core.projection import CellQuery
from blowfishdb.core.secret import Secret

_CONNECTIONS = 4


@final
class SqlDatabase:
    """A dataset in a database with an address, such as ``postgresql://user:password@host/database``.

    Without a ``source``, the only table is taken.
    """

    def __init__(
        self, location: str, domain: Domain, source: Source | None = None, *, timeout: float = 600.0
    ) -> None:
        url = servers.parse_url(location)
        self.domain = domain
        self.timeout = timeout
        self._server = servers.server_of(url)
        self._place = f"the {self._server.engine.title} database '{url.database or ''}'"
        self._closed = False
        self._pool = self._connect(url)
        try:
            self.source = source if source is not None else self._only_table()
            self._declared = self._describe()
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"<SqlDatabase: {self.source.name} of {self._place}>"

    # --- the port -------------------------------------------------------------------------------

    def check(self, query: CellQuery | None = None) -> None:
        """The source is there, and has the columns (of a question, or all declared ones) in fitting types."""
        self._declared = self._describe()
        self._declared.check(query)

    def count(self, query: CellQuery) -> Secret[IntArray]:
        """Rows in each box."""
        return counted(lambda: self._run(self._declared.statement(query)), self.timeout)

    def sql(self, query: CellQuery) -> str:
        """The statement of a question."""
        return self._declared.statement(query).text()

    def columns(self) -> dict[str, str]:
        """Columns and types."""
        return {name: column.type for name, column in self._describe().types.items()}

    def close(self) -> None:
        """Close all connections."""
        self._closed = True
        self._pool.dispose()

    # --- connections ----------------------------------------------------------------------------

    def _connect(self, url: Any) -> Any:
        options: dict[str, Any] = {"poolclass": QueuePool, "pool_size": _CONNECTIONS, "pool_pre_ping": True}
        if self._server is servers.SQLITE_SERVER:
            path = servers.sqlite_path(url)
            return create_engine("sqlite://", creator=lambda: servers.sqlite_connection(path), **options)
        try:
            return create_engine(
                url.set(drivername=self._server.driver),
                connect_args=self._server.arguments(self.timeout),
                hide_parameters=True,
                **options,
            )
        except (ImportError, NoSuchModuleError):
            pass
        extra = self._server.extra
        fix = f"pip install 'blowfishdb[{extra}]'" if extra else "install its SQLAlchemy driver with pip"
        raise SourceError(f"The driver for {self._server.engine.title} is not installed.", fixes=(fix,))

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """A connection that is read-only and limited in time, rolled back in the end."""
        if self._closed:
            raise SourceError("The database was closed.", fixes=("open the dataset again",))
        with self._pool.connect().execution_options(no_parameters=True) as connection:
            mariadb = bool(getattr(self._pool.dialect, "is_mariadb", False))
            for statement in self._server.begin(self.timeout, mariadb):
                connection.exec_driver_sql(statement)
            watched = connection.connection.driver_connection
            if self._server.watch is not None:
                self._server.watch(watched, self.timeout)
            try:
                yield connection
            finally:
                if self._server.watch is not None:
                    self._server.watch(watched, None)

    def _run(self, statement: Statement) -> IntArray:
        with self._transaction() as connection:
            rows = connection.exec_driver_sql(statement.text()).fetchall()
        width = len(statement.shape) + 1
        table = np.array([tuple(map(int, row)) for row in rows], dtype=np.int64).reshape(-1, width)
        return statement.fold([table[:, axis] for axis in range(width - 1)], table[:, -1])

    # --- metadata -------------------------------------------------------------------------------

    def _only_table(self) -> Source:
        tables = self._tables(None)
        if len(tables) != 1:
            listed = ", ".join(repr(table) for table in tables) or "none"
            raise SourceMissing(
                f"{self._place} has no single table to take; it has: {listed}.", fixes=("name the table",)
            )
        return Source.of_table(tables[0])

    def _tables(self, schema: str | None) -> list[str]:
        try:
            with self._transaction() as connection:
                found = inspect(connection)
                return sorted(set(found.get_table_names(schema)) | set(found.get_view_names(schema)))
        except SourceError:
            raise
        except Exception as error:
            failure, damaged = type(error).__name__, "not a database" in str(error)
        raise self._unreachable(failure, damaged)

    def _describe(self) -> Declared:
        try:
            with self._transaction() as connection:
                types = self._types(connection)
            declared = columns(types, self._server.engine)
            return Declared(self.domain, self.source, self._server.engine, declared)
        except (SourceError, InvalidInput):
            raise
        except Exception as error:
            failure = type(error).__name__
        tables = self._tables(self.source.schema)
        if self.source.table is None or self.source.table not in tables:
            listed = ", ".join(repr(table) for table in tables) or "none"
            raise SourceMissing(
                f"{self._place} has nothing that is called {self.source.name}; its tables: {listed}.",
                fixes=("one of these tables", "the right to read it"),
            )
        raise SourceError(
            f"{self._place} does not let {self.source.name} be read ({failure}).",
            fixes=("the right to SELECT from it",),
        )

    def _types(self, connection: Connection) -> servers.Types:
        source, server = self.source, self._server
        if server.describe is None:
            if source.table is None:
                raise InvalidInput(
                    f"A view of {server.engine.title} must be made in the database.",
                    fixes=("CREATE VIEW there, and name it as the table",),
                )
            found = inspect(connection).get_columns(source.table, source.schema)
            return {str(column["name"]): str(column["type"]) for column in found}
        select = exp.select("*").from_(source.relation()).limit(0).sql(dialect=server.engine.dialect)
        result = connection.exec_driver_sql(select)
        description = result.cursor.description if result.cursor is not None else ()
        result.close()
        types = server.describe(connection, description)
        if server is servers.SQLITE_SERVER and source.table is not None:
            types |= servers.sqlite_table_types(connection, source.table)
        return types

    def _unreachable(self, failure: str, damaged: bool) -> SourceError:
        if damaged:
            return SourceCorrupt(f"{self._place} is damaged, or not what its ending says.", fixes=("a copy",))
        return SourceError(
            f"{self._place} cannot be reached ({failure}).",
            fixes=("check host, port, database, user and password", "see whether the server runs"),
        )
