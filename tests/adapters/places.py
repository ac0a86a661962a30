"""Places where a test puts a table: one class for each database, all with the same ``make``."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Protocol

import duckdb
import sqlglot

from blowfishdb.adapters.backends import Backend, open_backend
from blowfishdb.adapters.backends.duckdb import DuckDB, has_dialect
from blowfishdb.adapters.backends.spark import Spark
from blowfishdb.adapters.copies.dialects import find_dialect
from blowfishdb.adapters.copies.folder import Copies
from blowfishdb.adapters.sql.source import Source
from blowfishdb.core.domain.domain import Domain
from tests.mariadb import Server as MariaServer
from tests.postgres import Server

Columns = dict[str, tuple[str, Sequence[object]]]
"""Columns by name: the type in DuckDB's words, and the values."""


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def fill(connection: duckdb.DuckDBPyConnection, columns: Columns, table: str = "people") -> None:
    declared = ", ".join(f"{quoted(name)} {sql_type}" for name, (sql_type, _) in columns.items())
    lists = ", ".join(f"UNNEST(CAST(? AS {sql_type}[]))" for sql_type, _ in columns.values())
    connection.execute(f"CREATE TABLE {quoted(table)} ({declared})")
    values = [list(values) for _, values in columns.values()]
    connection.execute(f"INSERT INTO {quoted(table)} SELECT {lists}", values)


class Place(Protocol):
    dialect: str
    slow: bool

    def make(
        self, columns: Columns, domain: Domain, source: Source | None = None, *, timeout: float = 600.0
    ) -> Backend:
        """Put the columns into a table ``people`` and open it."""


class DuckFile:
    dialect, slow = "duckdb", False

    def __init__(self, folder: Path) -> None:
        self.path = folder / "people.duckdb"

    def make(
        self, columns: Columns, domain: Domain, source: Source | None = None, *, timeout: float = 600.0
    ) -> Backend:
        with duckdb.connect(str(self.path)) as connection:
            fill(connection, columns)
        return DuckDB(self.path, domain, source, timeout=timeout)


def taken(path: Path) -> Path:
    """The copy of a file, as a workspace takes it before anything is answered from it."""
    copies = Copies(path.with_name(f"{path.name}.copies"))
    return copies.path(copies.take(path, find_dialect(path) if has_dialect(path) else None))


class Copied:
    """A CSV or Parquet file, written by DuckDB, and copied as a workspace does it."""

    dialect, slow = "duckdb", False

    def __init__(self, path: Path, options: str) -> None:
        self.path, self.options = path, options

    def make(
        self, columns: Columns, domain: Domain, source: Source | None = None, *, timeout: float = 600.0
    ) -> Backend:
        with duckdb.connect() as connection:
            fill(connection, columns)
            connection.execute(f"COPY people TO '{self.path}' ({self.options})")
        return DuckDB(taken(self.path), domain, source, timeout=timeout)


class Folder:
    dialect, slow = "duckdb", False

    def __init__(self, folder: Path) -> None:
        self.path = folder / "people"

    def make(
        self, columns: Columns, domain: Domain, source: Source | None = None, *, timeout: float = 600.0
    ) -> Backend:
        (self.path / "deep").mkdir(parents=True)
        first = quoted(next(iter(columns)))
        parts = (("a", f"hash({first}) % 2 = 0"), ("deep/b", f"hash({first}) % 2 = 1"))
        with duckdb.connect() as connection:
            fill(connection, columns)
            for part, condition in parts:
                rows = f"SELECT * FROM people WHERE {condition}"
                connection.execute(f"COPY ({rows}) TO '{self.path}/{part}.parquet'")
        return DuckDB(self.path, domain, source, timeout=timeout)


class Memory:
    """A pandas, Arrow or Polars table."""

    dialect, slow = "duckdb", False

    def __init__(self, library: str) -> None:
        self.library = library

    def make(
        self, columns: Columns, domain: Domain, source: Source | None = None, *, timeout: float = 600.0
    ) -> Backend:
        with duckdb.connect() as connection:
            fill(connection, columns)
            table = connection.sql("SELECT * FROM people").to_arrow_table()
        if self.library == "pandas":
            table = table.to_pandas()
        if self.library == "polars":
            import polars

            table = polars.from_arrow(table)
        return open_backend(table, domain, source=source, timeout=timeout)


class SqliteFile:
    dialect, slow = "sqlite", False

    def __init__(self, folder: Path) -> None:
        self.path = folder / "people.sqlite"

    def make(
        self, columns: Columns, domain: Domain, source: Source | None = None, *, timeout: float = 600.0
    ) -> Backend:
        declared = ", ".join(f"{quoted(name)} {sql_type}" for name, (sql_type, _) in columns.items())
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.execute(f"CREATE TABLE people ({declared})")
            rows = zip(
                *([self._stored(value) for value in values] for _, values in columns.values()), strict=True
            )
            connection.executemany(f"INSERT INTO people VALUES ({', '.join('?' * len(columns))})", rows)
        return open_backend(f"sqlite:///{self.path}", domain, source=source, timeout=timeout)

    @staticmethod
    def _stored(value: object) -> object:
        if isinstance(value, datetime):
            return value.isoformat(sep=" ")
        if isinstance(value, date):
            return value.isoformat()
        if isinstance(value, bool):
            return int(value)
        return float(value) if isinstance(value, Decimal) else value


_POSTGRES = {
    "DOUBLE": "DOUBLE PRECISION",
    "FLOAT": "REAL",
    "TINYINT": "SMALLINT",
    "HUGEINT": "NUMERIC(38, 0)",
}


class PostgresSchema:
    dialect, slow = "postgres", False

    def __init__(self, server: Server) -> None:
        self.server, self.schema = server, server.new_schema()

    def make(
        self, columns: Columns, domain: Domain, source: Source | None = None, *, timeout: float = 600.0
    ) -> Backend:
        declared = ", ".join(
            f"{quoted(name)} {_POSTGRES.get(sql_type, sql_type)}" for name, (sql_type, _) in columns.items()
        )
        names = ", ".join(quoted(name) for name in columns)
        with self.server.connect(self.schema) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE people ({declared})")
            with cursor.copy(f"COPY people ({names}) FROM STDIN") as copy:
                for row in zip(*(values for _, values in columns.values()), strict=True):
                    copy.write_row(row)
        return open_backend(self.server.url(self.schema), domain, source=source, timeout=timeout)


_MARIADB = {
    "VARCHAR": "LONGTEXT COLLATE utf8mb4_bin",
    "TEXT": "LONGTEXT COLLATE utf8mb4_bin",
    "TIMESTAMP": "DATETIME(6)",
    "HUGEINT": "DECIMAL(38, 0)",
    "UBIGINT": "BIGINT UNSIGNED",
}


class MariaDatabase:
    dialect, slow = "mysql", False

    def __init__(self, server: MariaServer) -> None:
        self.server, self.database = server, server.new_database()

    def make(
        self, columns: Columns, domain: Domain, source: Source | None = None, *, timeout: float = 600.0
    ) -> Backend:
        named = {"`" + name.replace("`", "``") + "`": kind for name, (kind, _) in columns.items()}
        declared = ", ".join(f"{name} {_MARIADB.get(kind, kind)}" for name, kind in named.items())
        with self.server.connect(self.database) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE people ({declared})")
            stored = ([self._stored(value, kind) for value in values] for kind, values in columns.values())
            rows = list(zip(*stored, strict=True))
            cursor.executemany(f"INSERT INTO people VALUES ({', '.join(['%s'] * len(columns))})", rows)
        return open_backend(self.server.url(self.database), domain, source=source, timeout=timeout)

    @staticmethod
    def _stored(value: object, kind: str) -> object:
        """It has no infinities, and nothing that is not a number."""
        if not isinstance(value, float) or math.isfinite(value):
            return value
        largest = 3.4028234e38 if kind == "FLOAT" else 1.7976931348623157e308
        return None if math.isnan(value) else math.copysign(largest, value)


class SparkFolder:
    dialect, slow = "spark", True

    def __init__(self, folder: Path) -> None:
        self.path = folder / "people"

    def make(
        self, columns: Columns, domain: Domain, source: Source | None = None, *, timeout: float = 600.0
    ) -> Backend:
        self.path.mkdir()
        with duckdb.connect() as connection:
            fill(connection, columns)
            connection.execute(f"COPY people TO '{self.path}/part.parquet' (FORMAT parquet)")
        return Spark(f"spark-local://{self.path}", domain, source, timeout=timeout)


ROWS = 200_000
DIGITS: Columns = {"v": ("INTEGER", [k % 10 for k in range(ROWS)]), "k": ("INTEGER", range(ROWS))}


def endless(dialect: str) -> Source:
    """A view that takes very long: every row of ``people``, made of ``DIGITS``, with every other.

    A curator may not write it, because it meets a table twice. Spark looks whether it was stopped after every
    4,096 rows, so that each of them must not take too long; it has fewer to meet, and needs as long.
    """
    met = 1_500 if dialect == "spark" else ROWS
    product = f"SELECT (a.v + b.v) % 10 AS v FROM people AS a JOIN people AS b ON b.k < {met}"
    source = Source.of_view("SELECT v FROM people", dialect)
    assert source.read is not None
    endless = replace(source.read, query=sqlglot.parse_one(product, dialect=dialect))
    vars(source)["read"] = endless
    return source


def single(value: float) -> float:
    """The double that a column of single precision gives back."""
    import numpy as np

    return value if math.isnan(value) else float(np.float32(value))
