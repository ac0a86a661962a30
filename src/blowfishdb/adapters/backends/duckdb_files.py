"""Opening files with DuckDB so that nothing can be written, fetched or read besides them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlglot import exp

from blowfishdb.core.errors import SourceCorrupt, SourceError, SourceMissing

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_SAFE = {
    "autoinstall_known_extensions": "false",
    "python_enable_replacements": "false",  # a table name must never mean a Python variable
}
_TEXT_ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".csv.zst", ".txt")
_PARQUET_ENDINGS = (".parquet", ".pq")


def connect(path: Path) -> DuckDBPyConnection:
    """A read-only connection to a database file, or to a view of a file of rows."""
    if not path.exists():
        raise SourceMissing(f"There is no file '{path}'.", fixes=("check the path and the working folder",))
    if path.is_dir():
        if not any(path.rglob("*.parquet")):
            raise SourceMissing(
                f"The folder '{path}' holds no Parquet files.", fixes=("files that end in .parquet",)
            )
        return _files(path, "read_parquet", str(path / "**" / "*.parquet"))
    if path.name.lower().endswith(_PARQUET_ENDINGS):
        return _files(path, "read_parquet", str(path))
    if path.name.lower().endswith(_TEXT_ENDINGS):
        return _files(path, "read_csv", str(path))
    return _database(path)


def table_name(path: Path) -> str:
    """The name under which a file of rows is a table."""
    return path.name.split(".")[0] or path.name


def _database(path: Path) -> DuckDBPyConnection:
    import duckdb

    try:
        return duckdb.connect(str(path), read_only=True, config=_SAFE)
    except duckdb.Error as error:
        words = str(error).lower()
    if "lock" in words or "different configuration" in words:
        raise SourceError(
            f"'{path}' is open for writing elsewhere.", fixes=("close it there", "a copy of the file")
        )
    if "permission" in words:
        raise SourceError(f"'{path}' may not be read.", fixes=("check the permissions of the file",))
    raise SourceCorrupt(
        f"'{path}' is not a DuckDB database, is damaged, or was written by a newer version.",
        fixes=("a DuckDB, CSV or Parquet file", "pip install --upgrade duckdb"),
    )


def _files(path: Path, reader: str, pattern: str) -> DuckDBPyConnection:
    """Texts are read as texts: a guessed type could fail on a later row, and failing tells about the data."""
    import duckdb

    connection = duckdb.connect(":memory:", config=_SAFE)
    options = {"header": exp.true(), "all_varchar": exp.true()} if reader == "read_csv" else {}
    arguments = [exp.Literal.string(_escaped(pattern))]
    named = [
        exp.PropertyEQ(this=exp.to_identifier(name), expression=value) for name, value in options.items()
    ]
    scan = exp.select("*").from_(exp.Anonymous(this=reader, expressions=[*arguments, *named]))
    view = exp.Create(
        this=exp.Table(this=exp.to_identifier(table_name(path), quoted=True)), kind="VIEW", expression=scan
    )
    try:
        connection.execute(view.sql(dialect="duckdb"))
        return connection
    except duckdb.Error:
        connection.close()
    kind = "Parquet" if reader == "read_parquet" else "CSV"
    raise SourceCorrupt(
        f"'{path}' is not a readable {kind} file.", fixes=("open it with another program to check it",)
    )


def _escaped(pattern: str) -> str:
    return pattern
