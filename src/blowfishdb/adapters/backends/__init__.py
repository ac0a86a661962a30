"""Databases that can be asked for counts, and the one function that opens any of them."""

from __future__ import annotations

from pathlib import Path

from blowfishdb.adapters.backends.addresses import check_file, is_there
from blowfishdb.adapters.backends.base import Backend
from blowfishdb.adapters.backends.duckdb import DuckDB, is_table
from blowfishdb.adapters.sql.source import Source
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import InvalidInput, SourceMissing

__all__ = ["TIMEOUT", "Backend", "open_backend"]

TIMEOUT = 600.0


def open_backend(
    location: object, domain: Domain, *, source: Source | None = None, timeout: float = TIMEOUT
) -> Backend:
    """The database at ``location``: a path, an address, or a pandas, Arrow or Polars table.

    Addresses are ``postgresql://…``, ``sqlite:///…``, ``mysql://…``, ``trino://…`` and other databases that
    SQLAlchemy reaches, ``spark://host:port/path`` and ``spark-local://path``; those of SQLAlchemy may name
    environment variables, as in ``postgresql://reader:${BLOWFISHDB_SOURCE_PASSWORD}@host/db``. A path is a
    DuckDB, SQLite or Parquet file or a folder of Parquet files.
    """
    if not isinstance(location, (str, Path)):
        if not is_table(location):
            raise InvalidInput(
                f"A {type(location).__name__} is not a place where rows are.",
                fixes=("a path", "a database address", "a pandas, Arrow or Polars table"),
            )
        return DuckDB(location, domain, source, timeout=timeout)
    if not str(location).isprintable():
        raise SourceMissing(
            "No file or database has such a name: it contains characters that cannot be shown.",
            fixes=("a path", "a database address"),
        )
    scheme, separator, rest = str(location).partition("://")
    if isinstance(location, str) and separator and not is_there(Path(location)):
        if scheme == "duckdb":
            return _at_path(Path(rest.removeprefix("/")), domain, source, timeout)
        return _at_address(scheme, location, domain, source, timeout)
    return _at_path(Path(location), domain, source, timeout)


def _at_address(scheme: str, location: str, domain: Domain, source: Source | None, timeout: float) -> Backend:
    if scheme in ("spark", "spark-local"):
        from blowfishdb.adapters.backends.spark import Spark

        return Spark(location, domain, source, timeout=timeout)
    from blowfishdb.adapters.backends.sqlalchemy import SqlDatabase

    return SqlDatabase(location, domain, source, timeout=timeout)


def _at_path(path: Path, domain: Domain, source: Source | None, timeout: float) -> Backend:
    from blowfishdb.adapters.backends.servers import is_sqlite

    check_file(path)
    if not is_sqlite(path):
        return DuckDB(path, domain, source, timeout=timeout)
    from sqlalchemy.engine import URL

    from blowfishdb.adapters.backends.sqlalchemy import SqlDatabase

    address = URL.create("sqlite", database=str(path)).render_as_string()
    return SqlDatabase(address, domain, source, timeout=timeout)
