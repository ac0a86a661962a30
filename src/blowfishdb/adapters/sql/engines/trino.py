"""Trino's own words: NaN differs from itself, whole numbers are divided by ``/``, hashes are of bytes."""

from __future__ import annotations

from datetime import datetime

from sqlglot import exp

from blowfishdb.adapters.sql import values as sql
from blowfishdb.adapters.sql.engines import (
    ColumnKind,
    Engine,
    Nullable,
    SqlColumn,
    plain_comparison,
    plain_division,
    standard_moment,
)
from blowfishdb.adapters.sql.values import SqlExpr


def _nan_to_null(value: SqlExpr) -> SqlExpr:
    return sql.choose((sql.call("IS_NAN", value), exp.Null()), otherwise=value.copy())


def _moment(column: SqlColumn) -> Nullable | None:
    """Cut off to the second: a cast to fewer digits would round."""
    if column.kind is ColumnKind.DATE:
        return standard_moment(column)
    if column.kind is ColumnKind.MOMENT:
        return Nullable(sql.is_null(column.ref), _second(column.ref))
    if column.kind is ColumnKind.TEXT:
        finest = exp.DataType.build("TIMESTAMP(12)", dialect="trino")
        tried = exp.TryCast(this=column.ref, to=finest)
        return Nullable(sql.is_null(tried), _second(tried.copy()))
    return None


def _second(value: SqlExpr) -> SqlExpr:
    return sql.call("DATE_TRUNC", sql.string("second"), value)


def _moment_literal(value: datetime) -> SqlExpr:
    return sql.moment(value.replace(microsecond=0))


def _days(value: SqlExpr, first: SqlExpr) -> SqlExpr:
    return sql.call("DATE_DIFF", sql.string("day"), first, value)


def _seconds(value: SqlExpr, first: SqlExpr) -> SqlExpr:
    return sql.call("DATE_DIFF", sql.string("second"), first, value)


def _md5(text: SqlExpr) -> SqlExpr:
    return sql.call("LOWER", sql.call("TO_HEX", sql.call("MD5", sql.call("TO_UTF8", text))))


TRINO = Engine(
    title="Trino",
    dialect="trino",
    tries=True,
    any_text=True,
    exact=plain_comparison,
    nan_to_null=_nan_to_null,
    to_moment=_moment,
    moment_literal=_moment_literal,
    days=_days,
    seconds=_seconds,
    md5=_md5,
    adapt=plain_division,
)
