"""The words of MySQL and MariaDB: texts compare by bytes, whole numbers are divided by DIV."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import reduce
from typing import Any

from sqlglot import exp

from blowfishdb.adapters.sql import values as sql
from blowfishdb.adapters.sql.engines import (
    ColumnKind,
    Engine,
    Nullable,
    SqlColumn,
    ValueMap,
    plain_extremes,
    standard_kind,
)
from blowfishdb.adapters.sql.values import SqlExpr


def _ratio(units: int, scale: int) -> SqlExpr:
    """A number with an exponent is a float, and read exactly."""
    size: SqlExpr = exp.Literal(this=f"{abs(units)}e-{scale}", is_string=False)
    return exp.Neg(this=size) if units < 0 else size


def _same(value: SqlExpr) -> SqlExpr:
    return value


def _utf8(value: SqlExpr) -> SqlExpr:
    return exp.Cast(this=value, to=exp.DataType(this=exp.DType.CHARACTER_SET, kind=exp.var("utf8mb4")))


def _text(column: SqlColumn) -> SqlExpr:
    return _utf8(column.ref)


def _exact(value: SqlExpr) -> SqlExpr:
    """As hexadecimal digits: collations ignore case, accents and blanks at the end."""
    return sql.call("HEX", value)


def _identity(column: SqlColumn) -> SqlExpr | None:
    """The bytes as they are: what is no text need not become one."""
    return _exact(column.ref) if column.kind in (ColumnKind.TEXT, ColumnKind.OTHER) else column.ref


def _string(text: str) -> SqlExpr:
    """As hexadecimal digits, so that no setting about backslashes matters."""
    return sql.string(text.encode().hex().upper())


def _to_the_microsecond(value: SqlExpr) -> SqlExpr:
    """Without the size, MySQL rounds to the next second."""
    return exp.Cast(this=value, to=exp.DataType.build("DATETIME(6)", dialect="mysql"))


def _date(column: SqlColumn) -> Nullable | None:
    """The day as it is written: a cast of a moment rounds its last half second into the next day."""
    if column.kind is ColumnKind.MOMENT:
        written = sql.call("DATE_FORMAT", column.ref, sql.string("%Y-%m-%d"))
        return Nullable(sql.is_null(column.ref), sql.cast(written, "DATE"))
    return Nullable(sql.is_null(column.ref), column.ref) if column.kind is ColumnKind.DATE else None


def _moment(column: SqlColumn) -> Nullable | None:
    if column.kind not in (ColumnKind.DATE, ColumnKind.MOMENT):
        return None
    return Nullable(sql.is_null(column.ref), _to_the_microsecond(column.ref))


def _moment_literal(value: datetime) -> SqlExpr:
    return _to_the_microsecond(sql.string(value.isoformat(sep=" ")))


def _kind(text: str, dialect: str) -> ColumnKind:
    """What a TIMESTAMP shows depends on a time zone."""
    return ColumnKind.OTHER if text.upper().startswith("TIMESTAMP") else standard_kind(text, dialect)


def _days(value: SqlExpr, first: SqlExpr) -> SqlExpr:
    return sql.call("DATEDIFF", value, first)


def _seconds(value: SqlExpr, first: SqlExpr) -> SqlExpr:
    return sql.call("TIMESTAMPDIFF", exp.var("SECOND"), first, value)


def _md5(text: SqlExpr) -> SqlExpr:
    return sql.call("MD5", _utf8(text))


def _inlined(table: ValueMap, literal: Callable[[Any], SqlExpr]) -> SqlExpr:
    """Both databases know UNION ALL; their VALUES differ."""
    rows = zip(*table.columns.values(), strict=True)
    selects: list[SqlExpr] = [exp.Select(expressions=[literal(value) for value in row]) for row in rows]
    return reduce(lambda left, right: exp.Union(this=left, expression=right, distinct=False), selects)


MYSQL = Engine(
    title="MySQL",
    dialect="mysql",
    repeats=True,
    ratio=_ratio,
    kind=_kind,
    nan_to_null=_same,
    text=_text,
    exact=_exact,
    string=_string,
    identity=_identity,
    to_date=_date,
    to_moment=_moment,
    moment_literal=_moment_literal,
    days=_days,
    seconds=_seconds,
    md5=_md5,
    inlined=_inlined,
    adapt=plain_extremes,
)
