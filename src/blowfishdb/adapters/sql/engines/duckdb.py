"""DuckDB's own words: TRY_CAST, whole numbers of 128 bits, moments to the nanosecond."""

from __future__ import annotations

from sqlglot import exp

from blowfishdb.adapters.sql import values as sql
from blowfishdb.adapters.sql.engines import (
    ColumnKind,
    Engine,
    Nullable,
    SqlColumn,
    standard_date,
    standard_moment,
)
from blowfishdb.adapters.sql.values import SqlExpr


def _date(column: SqlColumn) -> Nullable | None:
    if column.kind is not ColumnKind.FINE_MOMENT:
        return standard_date(column)
    return Nullable(sql.is_null(column.ref), sql.cast(_to_microseconds(column.ref), "DATE"))


def _moment(column: SqlColumn) -> Nullable | None:
    if column.kind is not ColumnKind.FINE_MOMENT:
        return standard_moment(column)
    return Nullable(sql.is_null(column.ref), _to_microseconds(column.ref))


def _to_microseconds(value: SqlExpr) -> SqlExpr:
    """A moment to the nanosecond, cut off to the microsecond: DuckDB's own cast rounds into the next day."""
    nanos = sql.call("EPOCH_NS", value)
    rest = exp.Mod(
        this=sql.paren(sql.plus(exp.Mod(this=nanos, expression=sql.whole(1000)), 1000)),
        expression=sql.whole(1000),
    )
    micros = exp.IntDiv(
        this=sql.paren(exp.Sub(this=nanos.copy(), expression=rest)), expression=sql.whole(1000)
    )
    infinite = sql.cast(value.copy(), sql.MOMENT)
    return exp.Coalesce(this=sql.call("MAKE_TIMESTAMP", micros), expressions=[infinite])


def _exact(value: SqlExpr) -> SqlExpr:
    """As bytes: a comparison would follow the collation of the column, such as NOCASE."""
    return sql.call("ENCODE", value)


def _string(text: str) -> SqlExpr:
    return _exact(sql.string(text))


DUCKDB = Engine(
    title="DuckDB",
    dialect="duckdb",
    tries=True,
    any_text=True,
    registers_maps=True,
    widest="INT128",
    exact=_exact,
    string=_string,
    to_date=_date,
    to_moment=_moment,
)
