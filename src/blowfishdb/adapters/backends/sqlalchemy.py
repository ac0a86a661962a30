"""Databases with an address: PostgreSQL, SQLite, MySQL and MariaDB, Trino, and others by SQLAlchemy.

One small pool of connections serves all threads. Every transaction is read-only where the database knows the
word, and ends with a rollback. No message contains the database's own words, or a password.

Which SQL a place speaks, so that a curator's view is read in its own language.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, final

from sqlalchemy import Connection, create_engine, inspect
from sqlalchemy import Engine as Pool
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.pool import QueuePool
from sqlglot import exp

from blowfishdb.adapters.backends import addresses, servers
from blowfishdb.adapters.backends.base import Brake, DeclaredBackend, closed, listed, only_table
from blowfishdb.adapters.backends.servers import is_sqlite
from blowfishdb.adapters.sql.engines import SqlColumn
from blowfishdb.adapters.sql.source import Source, check_types
from blowfishdb.adapters.sql.statement import Aggregate
from blowfishdb.core.arrays import IntArray
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import InvalidInput, SourceCorrupt, SourceError, SourceMissing

_CONNECTIONS = 4


@final
class SqlDatabase(DeclaredBackend):
    """A dataset in a database with an address, such as ``postgresql://user:password@host/database``.

    An address may name environment variables whose names begin with ``BLOWFISHDB_SOURCE_``; they are looked
    up whenever a connection is opened. Without a ``source``, the only table is taken.
    """

    def __init__(
        self, location: str, domain: Domain, source: Source | None = None, *, timeout: float = 600.0
    ) -> None:
        url = addresses.parse_url(location)
        self.domain = domain
        self.timeout = timeout
        self._server = servers.server_of(url)
        self.engine = self._server.engine
        self._place = f"the {self.engine.title} database '{url.database or ''}'"
        self._closed = False
        self._connect = self._opener(url)
        self._pool = self._pooled(url)
        try:
            self.source = source if source is not None else only_table(self._tables(None), self._place)
            self._types()
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"<SqlDatabase: {self.source.name} of {self._place}>"

    def close(self) -> None:
        """Close all connections."""
        self._closed = True
        self._pool.dispose()

    # --- connections ----------------------------------------------------------------------------

    def _pooled(self, url: URL) -> Pool:
        """The pool knows neither passwords nor options: they are for the moment of connecting."""
        try:
            return create_engine(
                addresses.unlocked(url).set(drivername=self._server.driver),
                creator=self._connect,
                poolclass=QueuePool,
                pool_size=_CONNECTIONS,
                pool_pre_ping=True,
                hide_parameters=True,
            )
        except (ImportError, NoSuchModuleError):
            readable = True
        except (ArgumentError, ValueError):
            readable = False
        if not readable:
            raise addresses.unreadable()
        extra = self._server.extra
        fix = f"pip install 'blowfishdb[{extra}]'" if extra else "install its SQLAlchemy driver with pip"
        raise SourceError(f"The driver for {self.engine.title} is not installed.", fixes=(fix,))

    def _opener(self, url: URL) -> Callable[[], Any]:
        """What opens a connection of the driver."""
        if self._server is servers.SQLITE_SERVER:
            path = addresses.sqlite_path(url)
            return lambda: servers.sqlite_connection(path)

        def opened() -> Any:
            dialect = self._pool.dialect
            positions, names = dialect.create_connect_args(addresses.expanded(url))
            return dialect.connect(*positions, **{**names, **self._server.arguments(self.timeout)})

        return opened

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """A connection that is read-only and limited in time, rolled back in the end."""
        if self._closed:
            raise closed()
        with self._pool.connect().execution_options(no_parameters=True) as connection:
            mariadb = bool(getattr(self._pool.dialect, "is_mariadb", False))
            for statement in self._server.begin(self.timeout, mariadb):
                connection.exec_driver_sql(statement)
            yield connection

    def _run(self, statement: Aggregate, brake: Brake) -> IntArray:
        with self._transaction() as connection:
            driver = connection.connection.driver_connection
            lost = False
            try:
                with closing(connection.connection.cursor()) as cursor:
                    asked = servers.RunningStatement(cursor, driver, self._connect)
                    with brake.stops_by(lambda: self._server.stop(asked)):
                        cursor.execute(statement.text)
                        rows = cursor.fetchall()
            except Exception as error:
                lost = self._is_lost(error, driver)
                connection.invalidate()
                if not lost:
                    raise
            if brake.pulled and not lost:  # an order to stop that came late must not meet the next statement
                connection.invalidate()
        if lost:
            raise ConnectionError
        return statement.fold_rows(rows)

    def _is_lost(self, error: Exception, driver: Any) -> bool:
        """Whether the connection has gone; drivers that speak HTTP say so with an error of the system."""
        dialect = self._pool.dialect
        if isinstance(error, dialect.loaded_dbapi.Error):
            return dialect.is_disconnect(error, driver, None)
        return isinstance(error, OSError)

    # --- metadata -------------------------------------------------------------------------------

    def _tables(self, schema: str | None) -> list[str]:
        try:
            with self._transaction() as connection:
                inspector = inspect(connection)
                return sorted(set(inspector.get_table_names(schema)) | set(inspector.get_view_names(schema)))
        except (SourceError, InvalidInput):
            raise
        except Exception as error:
            failure, damaged = type(error).__name__, "not a database" in str(error)
        raise self._unreachable(failure, damaged)

    def _is_table(self, table: exp.Table) -> bool:
        """What is computed while it is read can fail on some rows, as in a view."""
        with self._looking() as connection:
            if self._server is servers.POSTGRES_SERVER:
                is_table = servers.is_postgres_table(connection, table)
            elif self._server is servers.SQLITE_SERVER:
                is_table = servers.is_sqlite_table(connection, table.name)
            else:
                names = inspect(connection).get_table_names(table.db or self.source.schema)
                is_table = table.name.lower() in {name.lower() for name in names}
            return is_table and all(self._stored(connection, table).values())

    def _computed(self, table: exp.Table) -> list[str]:
        with self._looking() as connection:
            return list(self._stored(connection, table))

    def _stored(self, connection: Connection, table: exp.Table) -> dict[str, bool]:
        """The computed columns of a table, and whether their values are stored."""
        if self._server is servers.POSTGRES_SERVER:
            return servers.postgres_computed(connection, table)
        if self._server is servers.SQLITE_SERVER:
            return servers.sqlite_computed(connection, table.name)
        columns = inspect(connection).get_columns(table.name, table.db or self.source.schema)
        return {
            each["name"]: bool(each["computed"].get("persisted")) for each in columns if "computed" in each
        }

    @contextmanager
    def _looking(self) -> Iterator[Connection]:
        """A transaction for what is asked about tables; a failure is told without its words."""
        try:
            with self._transaction() as connection:
                yield connection
                return
        except SourceError:
            raise
        except Exception as error:
            failure = type(error).__name__
        raise self._unreachable(failure, False)

    def _types(self) -> dict[str, str]:
        try:
            with self._transaction() as connection:
                return self._described_by(connection)
        except (SourceError, InvalidInput):
            raise
        except Exception as error:
            failure = type(error).__name__
        tables = self._tables(self.source.schema)
        if self.source.table is None or self.source.table not in tables:
            raise SourceMissing(
                f"{self._place} has nothing that is called {self.source.name}; its tables: {listed(tables)}.",
                fixes=("one of these tables", "the right to read it"),
            )
        raise SourceError(
            f"{self._place} does not let {self.source.name} be read ({failure}).",
            fixes=("the right to SELECT from it",),
        )

    def _described_by(self, connection: Connection) -> servers.Types:
        source, server = self.source, self._server
        if server.describe is None:
            if source.table is None:
                raise InvalidInput(
                    f"A view of {server.engine.title} must be made in the database.",
                    fixes=("CREATE VIEW there, and name it as the table",),
                )
            columns = inspect(connection).get_columns(source.table, source.schema)
            return {str(column["name"]): str(column["type"]) for column in columns}
        if source.read is not None:
            check_types(source.read, lambda query: self._columns_of(connection, query))
        types = self._typed(connection, _everything(source, server.engine.dialect))
        if server is servers.SQLITE_SERVER and source.table is not None:
            types |= servers.sqlite_table_types(connection, source.table)
        return types

    def _columns_of(self, connection: Connection, query: exp.Query) -> list[SqlColumn]:
        """What a SELECT returns."""
        engine = self._server.engine
        types = self._typed(connection, _without_rows(query, engine.dialect))
        return [SqlColumn(name, text, engine) for name, text in types.items()]

    def _typed(self, connection: Connection, nothing: str) -> servers.Types:
        """The types of what a SELECT returns that returns nothing."""
        assert self._server.describe is not None
        result = connection.exec_driver_sql(nothing)
        description = result.cursor.description if result.cursor is not None else ()
        result.close()
        return self._server.describe(connection, description)

    def _unreachable(self, failure: str, damaged: bool) -> SourceError:
        if damaged:
            return SourceCorrupt(f"{self._place} is damaged, or not what its ending says.", fixes=("a copy",))
        return SourceError(
            f"{self._place} cannot be reached ({failure}).",
            fixes=("check host, port, database, user and password", "see whether the server runs"),
        )


@lru_cache(maxsize=256)
def _everything(source: Source, dialect: str) -> str:
    """A SELECT of all columns of a source that returns no row; asked so often that it is written once."""
    return _without_rows(exp.select("*").from_(source.relation()), dialect)


def _without_rows(query: exp.Query, dialect: str) -> str:
    return exp.select("*").from_(query.subquery("described", copy=True)).limit(0).sql(dialect=dialect)


_NAMES = {"postgresql": "postgres", "mariadb": "mysql"}
"""What sqlglot calls the language of an address, where that differs from the beginning of the address."""


def dialect_of(location: object) -> str:
    """The language of an address, of a SQLite file, or else of DuckDB, which reads all other files."""
    scheme, address, _ = str(location).partition("://")
    if address:
        spoken = scheme.split("+")[0].removesuffix("-local")
        return _NAMES.get(spoken, spoken)
    return "sqlite" if isinstance(location, str | Path) and is_sqlite(Path(location)) else "duckdb"
