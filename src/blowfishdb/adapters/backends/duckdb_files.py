"""Opening files with DuckDB so that nothing is written, downloaded, or mistaken for a Python variable."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sqlglot import exp

from blowfishdb.core.errors import SourceCorrupt, SourceError, SourceMissing

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Config = dict[str, str | bool | int | float | list[str]]
SAFE: Config = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
}
TEXT_ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".csv.zst", ".tsv.zst")
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
    if is_text_file(path):  # how it is read would depend on its rows, so no answer comes from it
        raise SourceError(
            f"'{path}' is a file of texts, which is read once, when it is declared.", fixes=("add_dataset",)
        )
    return _database(path)


def holds_rows(path: Path) -> bool:
    """Whether a place is a file or folder of rows, which is one table, rather than a database."""
    return path.is_dir() or path.name.lower().endswith((*_PARQUET_ENDINGS, *TEXT_ENDINGS))


def is_text_file(place: object) -> bool:
    """Whether a place is a path that names a file of texts."""
    path = isinstance(place, str | Path) and "://" not in str(place)
    return path and str(place).lower().endswith(TEXT_ENDINGS)


def table_name(path: Path) -> str:
    """The name under which a file of rows is a table: what is in front of the first dot."""
    return path.name.split(".")[0] or path.name


def _database(path: Path) -> DuckDBPyConnection:
    import duckdb

    try:
        return _with_known_functions(duckdb.connect(str(path), read_only=True, config=_closed()), path)
    except duckdb.Error as error:
        words = str(error).lower()
    if "lock" in words or "different configuration" in words:
        raise SourceError(
            f"'{path}' is open for writing elsewhere.", fixes=("close it there", "use a copy of the file")
        )
    if "permission" in words:
        raise SourceError(f"'{path}' may not be read.", fixes=("check the permissions of the file",))
    raise SourceCorrupt(
        f"'{path}' is not a DuckDB database, is damaged, or was written by a newer version.",
        fixes=("a DuckDB, CSV or Parquet file", "pip install --upgrade duckdb"),
    )


def _with_known_functions(connection: DuckDBPyConnection, path: Path) -> DuckDBPyConnection:
    """A file may bring functions along; one with the name of DuckDB's own would be taken in its place."""
    listed = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE internal = "
    own = {name.lower() for (name,) in connection.execute(f"{listed} false").fetchall()}
    if own and own & {name.lower() for (name,) in connection.execute(f"{listed} true").fetchall()}:
        connection.close()
        raise SourceError(
            f"'{path}' defines functions under names of DuckDB's own, so it is not known what is counted.",
            fixes=("DROP MACRO in the file", "a file with the tables alone"),
        )
    return connection


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
    known = connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()
    return "type_pushdown" if ("type_pushdown",) in known else ""


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
    """A view with the name of the file, in a database in memory that can reach nothing else."""
    import duckdb

    name = exp.Table(this=exp.to_identifier(table_name(path), quoted=True))
    view = exp.Create(this=name, kind="VIEW", expression=exp.select("*").from_(_scan(path, below)))
    reachable = "allowed_directories" if path.is_dir() else "allowed_paths"
    places = [f"{place}/" if path.is_dir() else place for place in (str(path), _literal(path))]
    allow = exp.Array(expressions=[exp.Literal.string(place) for place in places])
    connection = reliable(duckdb.connect(":memory:", config=SAFE))
    try:
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
