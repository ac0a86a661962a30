"""Servers: how each database is reached, kept from writing, stopped, and asked for its types."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final
from urllib.parse import quote

from sqlalchemy import Connection
from sqlalchemy.engine import URL
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from blowfishdb.adapters.sql.engines import Engine
from blowfishdb.adapters.sql.engines.mysql import MYSQL
from blowfishdb.adapters.sql.engines.postgres import POSTGRES
from blowfishdb.adapters.sql.engines.sqlite import SQLITE
from blowfishdb.adapters.sql.engines.trino import TRINO
from blowfishdb.core.errors import InvalidInput

CONNECT_SECONDS = 10
STOP_SECONDS = 5

Types = dict[str, str]
Arguments = dict[str, Any]


def _nothing(_: float) -> Arguments:
    return {}


def _no_statements(_: float, __: bool) -> tuple[str, ...]:
    return ()


@final
@dataclass(frozen=True, eq=False)
class RunningStatement:
    """A statement that may be running, in the words of a driver, and a way to a second connection."""

    cursor: Any
    connection: Any
    connect: Callable[[], Any]


def _hang_up(asked: RunningStatement) -> None:
    """What ends a statement of a driver that is not known: its own word for it, or no connection."""
    for part in (asked.cursor, asked.connection):
        if hasattr(part, "cancel"):
            part.cancel()
            return
    asked.connection.close()


@final
@dataclass(frozen=True, eq=False)
class ServerKind:
    """One kind of server; ``driver`` is SQLAlchemy's name for it, ``extra`` what pip calls its driver."""

    engine: Engine
    driver: str
    extra: str | None = None
    arguments: Callable[[float], Arguments] = _nothing
    """What the driver is told when it connects."""
    begin: Callable[[float, bool], tuple[str, ...]] = _no_statements
    """What is sent at the start of every transaction, given the time-out and whether it is MariaDB."""
    describe: Callable[[Connection, Sequence[Any]], Types] | None = None
    """The types of the columns of an empty result; None where SQLAlchemy is asked for a table's columns."""
    stop: Callable[[RunningStatement], None] = _hang_up
    """End a statement in the database; called by another thread than the one that waits for it."""


# --- PostgreSQL -------------------------------------------------------------------------------


def _postgres_begin(timeout: float, _: bool) -> tuple[str, ...]:
    return (
        "SET TRANSACTION READ ONLY",
        f"SET LOCAL statement_timeout = {_milliseconds(timeout)}",
        "SET LOCAL standard_conforming_strings = on",
        # a server of version 14 or later then notices when whoever asked is gone, and stops counting
        "SELECT set_config(name, '2s', true) FROM pg_settings "
        "WHERE name = 'client_connection_check_interval'",
    )


def _postgres_types(connection: Connection, description: Sequence[Any]) -> Types:
    """Types that a database has made for itself are known by number only."""
    numbers = [int(column.type_code) for column in description if column.type_display.isdigit()]
    own: dict[int, str] = {}
    if numbers:
        listed = ", ".join(map(str, numbers))
        rows = connection.exec_driver_sql(
            f"SELECT oid::bigint, typtype::text, format_type(oid, NULL) FROM pg_type WHERE oid IN ({listed})"  # noqa: S608
        )
        own = {number: "TEXT" if kind == "e" else name for number, kind, name in rows}
    return {column.name: own.get(int(column.type_code), column.type_display) for column in description}


def is_postgres_table(connection: Connection, table: exp.Table) -> bool:
    """A table that shows all of its rows to everyone who may read it: no view, and no row security."""
    relation = connection.exec_driver_sql(
        f"SELECT relkind::text, relrowsecurity FROM pg_class WHERE oid = {_regclass(table)}"  # noqa: S608
    ).first()
    return relation is not None and relation[0] in ("r", "p") and not relation[1]


def postgres_computed(connection: Connection, table: exp.Table) -> dict[str, bool]:
    """The computed columns of a table, and whether their values are stored."""
    kind = "to_jsonb(a) ->> 'attgenerated'"  # older servers have no such column
    rows = connection.exec_driver_sql(
        f"SELECT attname::text, {kind} FROM pg_attribute a "  # noqa: S608
        f"WHERE attrelid = {_regclass(table)} AND {kind} <> ''"
    )
    return {name: stored == "s" for name, stored in rows}


def _regclass(table: exp.Table) -> str:
    name = exp.Table(this=table.this.copy(), db=table.args.get("db")).sql(dialect="postgres")
    return f"to_regclass({exp.Literal.string(name).sql(dialect='postgres')})"


POSTGRES_SERVER = ServerKind(
    POSTGRES,
    "postgresql+psycopg",
    "postgres",
    arguments=lambda _: {"connect_timeout": CONNECT_SECONDS, "application_name": "blowfishdb"},
    begin=_postgres_begin,
    describe=_postgres_types,
    stop=lambda asked: asked.connection.cancel_safe(timeout=STOP_SECONDS),
)


# --- SQLite -----------------------------------------------------------------------------------


def sqlite_connection(path: Path) -> sqlite3.Connection:
    """A connection that cannot write, and knows MD5."""
    address = f"file:{quote(str(path))}?mode=ro"
    connection = sqlite3.connect(address, uri=True, check_same_thread=False)
    connection.create_function("MD5", 1, _md5, deterministic=True)
    connection.execute("PRAGMA query_only = ON")
    return connection


def _md5(text: str | None) -> str | None:
    return None if text is None else hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def is_sqlite(path: Path) -> bool:
    """Whether a file begins as SQLite files do."""
    try:
        with path.open("rb") as file:
            return file.read(16) == b"SQLite format 3\x00"
    except OSError:
        return False


def _sqlite_types(connection: Connection, description: Sequence[Any]) -> Types:
    """Each value has its own type; the declared ones are looked up by table."""
    return {str(column[0]): "" for column in description}


def sqlite_table_types(connection: Connection, table: str) -> Types:
    """The declared types of a table or view."""
    driver: Any = connection.connection.driver_connection
    with closing(driver.execute("SELECT name, type FROM pragma_table_info(?)", (table,))) as rows:
        return {str(name): str(declared) for name, declared in rows}


def is_sqlite_table(connection: Connection, table: str) -> bool:
    """A table that holds its rows itself: no view, and nothing that a module makes up."""
    driver: Any = connection.connection.driver_connection
    with closing(
        driver.execute(
            "SELECT 1 FROM sqlite_master WHERE type = 'table' AND rootpage > 0 AND lower(name) = ?",
            (table.lower(),),
        )
    ) as rows:
        return rows.fetchone() is not None


def sqlite_computed(connection: Connection, table: str) -> dict[str, bool]:
    """The computed columns of a table, and whether their values are stored."""
    driver: Any = connection.connection.driver_connection
    with closing(driver.execute("SELECT name, hidden FROM pragma_table_xinfo(?)", (table,))) as rows:
        return {str(name): hidden == 3 for name, hidden in rows if hidden in (2, 3)}


SQLITE_SERVER = ServerKind(
    SQLITE, "sqlite", describe=_sqlite_types, stop=lambda asked: asked.connection.interrupt()
)


# --- MySQL and MariaDB ------------------------------------------------------------------------

_MYSQL_TYPES = {
    **dict.fromkeys(("TINY", "SHORT", "INT24", "LONG", "YEAR"), "BIGINT"),
    "LONGLONG": "BIGINT UNSIGNED",  # whether it has a sign is not told, and a wider type does for both
    **dict.fromkeys(("FLOAT", "DOUBLE"), "DOUBLE"),
    **dict.fromkeys(("STRING", "VAR_STRING", "VARCHAR", "BLOB", "ENUM", "SET"), "TEXT"),
    "DATE": "DATE",
    "NEWDATE": "DATE",
    "DATETIME": "DATETIME",
    "TIMESTAMP": "TIMESTAMP",
}


def _mysql_begin(timeout: float, mariadb: bool) -> tuple[str, ...]:
    limit = (
        f"max_statement_time = {max(timeout, 0.001):.3f}"
        if mariadb
        else f"max_execution_time = {_milliseconds(timeout)}"
    )
    return (
        "SET SESSION TRANSACTION READ ONLY",
        f"SET SESSION {limit}",
        "SET SESSION sql_mode = 'NO_UNSIGNED_SUBTRACTION'",
        "SET SESSION time_zone = '+00:00'",
    )


def _mysql_types(_: Connection, description: Sequence[Any]) -> Types:
    from pymysql.constants import FIELD_TYPE

    types = {getattr(FIELD_TYPE, name): words for name, words in _MYSQL_TYPES.items()}
    decimals = (FIELD_TYPE.DECIMAL, FIELD_TYPE.NEWDECIMAL)
    return {
        str(name): f"DECIMAL(65, {scale})" if code in decimals else types.get(code, f"type {code}")
        for name, code, _, _, _, scale, *_ in description
    }


def _mysql_stop(asked: RunningStatement) -> None:
    """Only a second connection can stop the first."""
    with closing(asked.connect()) as second, second.cursor() as cursor:
        cursor.execute(f"KILL QUERY {int(asked.connection.thread_id())}")


MYSQL_SERVER = ServerKind(
    MYSQL,
    "mysql+pymysql",
    "mysql",
    arguments=lambda timeout: {
        "connect_timeout": CONNECT_SECONDS,
        "read_timeout": int(timeout) + CONNECT_SECONDS,
        "charset": "utf8mb4",
    },
    begin=_mysql_begin,
    describe=_mysql_types,
    stop=_mysql_stop,
)


# --- Trino ------------------------------------------------------------------------------------


def _trino_arguments(timeout: float) -> Arguments:
    limit = f"{_milliseconds(timeout)}ms"
    properties = {"query_max_execution_time": limit, "query_max_run_time": limit}
    return {"session_properties": properties, "request_timeout": CONNECT_SECONDS, "source": "blowfishdb"}


def _trino_types(_: Connection, description: Sequence[Any]) -> Types:
    return {str(column[0]): str(column[1]) for column in description}


TRINO_SERVER = ServerKind(
    TRINO,
    "trino",
    "trino",
    arguments=_trino_arguments,
    describe=_trino_types,
    stop=lambda asked: asked.cursor.cancel(),
)


# --- choosing one -----------------------------------------------------------------------------

_SERVERS = {
    "postgresql": POSTGRES_SERVER,
    "postgres": POSTGRES_SERVER,
    "sqlite": SQLITE_SERVER,
    "mysql": MYSQL_SERVER,
    "mariadb": MYSQL_SERVER,
    "trino": TRINO_SERVER,
}
_OTHER_NAMES = {"mssql": "tsql"}


def server_of(url: URL) -> ServerKind:
    """The kind of server that an address speaks of."""
    name = url.drivername.split("+")[0]
    if name in _SERVERS:
        return _SERVERS[name]
    dialect = _OTHER_NAMES.get(name, name)
    if Dialect.get(dialect) is None:
        schemes = ", ".join(f"{scheme}://" for scheme in _SERVERS)
        raise InvalidInput(
            f"There is no way to ask a database called {name!r}.", fixes=(f"one of {schemes}",)
        )
    return ServerKind(Engine(name, dialect), url.drivername)


def _milliseconds(seconds: float) -> int:
    return max(1, int(seconds * 1000))
