"""Tables in memory: pandas, Arrow and Polars, copied into a DuckDB database of their own.

The copy is what is asked from then on, whatever happens to the original: answers belong to a snapshot.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from blowfishdb.adapters.backends.duckdb_files import SAFE, reliable
from blowfishdb.core.errors import InvalidInput, SourceCorrupt

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

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
        raise SourceCorrupt(
            "A column of the table in memory mixes values of several types.",
            fixes=("give each column one type, for example with astype('string')",),
        )
    _check_names(table.column_names)
    return _decoded(table)


def _check_names(names: list[str]) -> None:
    if len({name.lower() for name in names}) < len(names):
        raise SourceCorrupt("Two columns of the table have the same name.", fixes=("rename one of them",))


def _decoded(table: pa.Table) -> pa.Table:
    """Categories as the values that they stand for."""
    import pyarrow as pa

    for place, column in enumerate(table.schema):
        if pa.types.is_dictionary(column.type):
            kind = column.type.value_type
            if pa.types.is_string_view(kind):  # as Polars has them; Arrow cannot look values up in these
                kind = pa.large_string()
            chunks = [part.dictionary.cast(kind).take(part.indices) for part in table.column(place).chunks]
            table = table.set_column(place, column.name, pa.chunked_array(chunks, kind))
    return table
