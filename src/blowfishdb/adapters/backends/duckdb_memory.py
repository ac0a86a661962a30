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
    raise SourceCorrupt("The table in memory has columns that DuckDB cannot hold.", fixes=("simpler types",))


def save_table(value: object, path: Path) -> None:
    """A copy of a table as a Parquet file."""
    import pyarrow.parquet as pq

    pq.write_table(_as_arrow(value), path)


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
    if len({name.lower() for name in table.column_names}) < table.num_columns:
        raise SourceCorrupt("Two columns of the table have the same name.", fixes=("rename one of them",))
    return _decoded(table)


def _decoded(table: pa.Table) -> pa.Table:
    """Categories as the values that they stand for."""
    import pyarrow as pa

    for place, column in enumerate(table.schema):
        if pa.types.is_dictionary(column.type):
            values = table.column(place).cast(column.type.value_type)
            table = table.set_column(place, column.name, values)
    return table
