"""The catalogue that tools believe: PostgreSQL's system tables in an engine of their own, from declarations.

What clients ask of ``pg_catalog`` and ``information_schema`` is read by a parser, shown to name nothing but
their tables and functions that only compute, written in the engine's dialect, and run there: in memory, one
thread, little room, without access to files or the network, with its configuration locked, for a few seconds.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, cast, final

import duckdb
from sqlglot import exp
from sqlglot.errors import SqlglotError

from blowfishdb.entrypoints.pgwire import types
from blowfishdb.entrypoints.pgwire.errors import CANCELLED, NOT_SUPPORTED, SYNTAX, Refusal
from blowfishdb.entrypoints.pgwire.functions import MACROS
from blowfishdb.entrypoints.pgwire.relations import CLASSES, Relations, formatted
from blowfishdb.entrypoints.pgwire.results import Column, Table
from blowfishdb.entrypoints.pgwire.shells import INFORMATION, IS, PG, TABLES
from blowfishdb.messages.policies import DatasetInfo

SECONDS: Final = 5.0
MOST_ROWS: Final = 100_000
MOST_KEPT: Final = 256
"""Results that are kept,"""
LARGEST_KEPT: Final = 500
"""and the rows of the largest one."""
_ROOM: Final = "256MB"


@final
class Catalogue:
    """The system tables over some datasets; safe to share between threads."""

    def __init__(self, datasets: Sequence[DatasetInfo]) -> None:
        relations = Relations(tuple(datasets))
        config = {"threads": "1", "memory_limit": _ROOM, "enable_external_access": "false"}
        self._database = duckdb.connect(":memory:", config=cast("dict[str, Any]", config))
        for schema, tables, rows in (
            (PG, TABLES, relations.pg_catalog()),
            (IS, INFORMATION, relations.information_schema()),
        ):
            self._database.execute(f"CREATE SCHEMA {schema}")
            for name, columns in tables.items():
                _create(self._database, f"{schema}.{name}", columns, rows.get(name, []))
        for name, found in _names_by_id(relations).items():
            columns = {
                key: "UINTEGER" if key == "bf_oid" else _kind(value) for key, value in found[0].items()
            }
            _create(self._database, f"{PG}.{name}", columns, found)
        for macro in MACROS:
            self._database.execute(f"CREATE MACRO {macro}")
        self._database.execute("SET lock_configuration = true")

    def ask(self, tree: exp.Expr, names: Sequence[str] | None = None) -> Table:
        """The rows that a statement of the engine's own asks for, in time."""
        cursor = self._database.cursor()
        with _in_time(cursor):
            try:
                cursor.execute(tree.sql("duckdb"))
                rows = cursor.fetchmany(MOST_ROWS + 1)
            except duckdb.InterruptException:
                raise Refusal(CANCELLED, "This took too long, and was given up.") from None
            except (duckdb.Error, SqlglotError) as error:
                raise _not_answered(error) from None
        if len(rows) > MOST_ROWS:
            raise Refusal("54000", f"These are more than {MOST_ROWS:,} rows.", hint="Try: LIMIT 1000")
        described = cursor.description or []
        called = names if names is not None and len(names) == len(described) else [d[0] for d in described]
        kinds = [_type(str(kind)) for _, kind, *_ in described]
        return Table(tuple(map(Column, called, kinds)), rows)

    def close(self) -> None:
        """Let go of its memory."""
        self._database.close()


@final
@dataclass(frozen=True)
class Kept:
    """The last results of one catalogue, by who asked what."""

    tables: OrderedDict[tuple[str, str, str], Table] = field(default_factory=OrderedDict)

    def get(self, key: tuple[str, str, str]) -> Table | None:
        """The result, if it is there."""
        return self.tables.get(key)

    def put(self, key: tuple[str, str, str], table: Table) -> None:
        """Keep a result that is small."""
        if len(table.rows) <= LARGEST_KEPT:
            self.tables[key] = table
            while len(self.tables) > MOST_KEPT:
                self.tables.popitem(last=False)


class Catalogues(ABC):
    """Where the catalogue over the datasets of this moment is found."""

    @abstractmethod
    def current(self) -> tuple[Catalogue, Kept]:
        """The catalogue, built anew if anything was declared since."""


def _names_by_id(relations: Relations) -> dict[str, list[dict[str, Any]]]:
    """What numbers stand for, for macros; no column has a name that a statement has outside of them."""
    classes = [
        {"bf_oid": oid, "bf_name": name, "bf_whole": name, "bf_visible": True}
        for name, oid in CLASSES.items()
    ]
    for view in relations.views:
        whole = f"{view.schema}.{view.name}"
        classes.append(
            {"bf_oid": view.oid, "bf_name": view.name, "bf_whole": whole, "bf_visible": view.visible}
        )
    kinds = types.BY_OID.values()
    return {
        "bf_classes": classes,
        "bf_types": [{"bf_oid": k.oid, "bf_name": k.name, "bf_formatted": formatted(k)} for k in kinds],
        "bf_schemas": [{"bf_oid": oid, "bf_name": name} for name, oid in relations.schemas.items()],
    }


def _kind(value: object) -> str:
    return "BOOLEAN" if isinstance(value, bool) else "VARCHAR"


def _create(
    database: duckdb.DuckDBPyConnection,
    name: str,
    columns: Mapping[str, str],
    rows: Sequence[Mapping[str, Any]],
) -> None:
    listed = ", ".join(f'"{column}" {kind}' for column, kind in columns.items())
    database.execute(f"CREATE TABLE {name} ({listed})")
    if rows:
        marks = ", ".join("?" for _ in columns)
        filled = [[row.get(column) for column in columns] for row in rows]
        database.executemany(f"INSERT INTO {name} VALUES ({marks})", filled)  # noqa: S608 - names of ours


@contextmanager
def _in_time(cursor: duckdb.DuckDBPyConnection) -> Iterator[None]:
    timer = threading.Timer(SECONDS, cursor.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _not_answered(error: Exception) -> Refusal:
    """What the engine could not do; its message speaks of tables of ours, and of nothing else."""
    words = str(error).splitlines()[0][:200].replace(f"{PG}.", "").replace(f"{IS}.", "")
    code = SYNTAX if isinstance(error, duckdb.ParserException) else NOT_SUPPORTED
    return Refusal(code, f"The catalogue does not answer this: {words}")


def _type(name: str) -> types.PgType:
    element = name.removesuffix("[]")
    plain = {
        "BOOLEAN": types.BOOL,
        "TINYINT": types.INT2,
        "SMALLINT": types.INT2,
        "INTEGER": types.INT4,
        "BIGINT": types.INT8,
        "UINTEGER": types.OID,
        "UBIGINT": types.NUMERIC,
        "HUGEINT": types.NUMERIC,
        "FLOAT": types.FLOAT4,
        "DOUBLE": types.FLOAT8,
        "DATE": types.DATE,
        "TIMESTAMP": types.TIMESTAMP,
        "TIMESTAMP WITH TIME ZONE": types.TIMESTAMPTZ,
    }.get(element)
    if plain is None:
        plain = types.NUMERIC if element.startswith("DECIMAL") else types.TEXT
    return types.ARRAYS.get(plain.oid, types.TEXT) if name != element else plain


def parameter_type(column: str) -> types.PgType:
    """What a parameter is that is compared with a column of the catalogue."""
    for columns in (*TABLES.values(), *INFORMATION.values()):
        if column in columns:
            return _type(columns[column])
    return types.TEXT
