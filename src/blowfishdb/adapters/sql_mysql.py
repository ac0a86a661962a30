"""The words of MySQL and MariaDB: texts compare by bytes, whole numbers are divided by DIV."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from sqlglot import exp

from blowfishdb.adapters import sql_values as sql
from blowfishdb.adapters.sql_engine import Engine, SqlColumn, ValueMap, plain_extremes
from blowfishdb.adapters.sql_values import SqlExpr


def _ratio(units: int, scale: int) -> SqlExpr:
    """A number with an exponent is a float, and read exactly."""
    return exp.Literal.number(f"{units}e-{scale}")


def _same(value: SqlExpr) -> SqlExpr:
    return value


def _bytes(value: SqlExpr) -> SqlExpr:
    return sql.call("HEX", exp.Cast(this=value, to=exp.DataType.build("CHAR CHARACTER SET utf8mb4", "mysql")))


def _text(column: SqlColumn) -> SqlExpr:
    """As hexadecimal digits: collations ignore case, accents and blanks at the end."""
    return _bytes(column.ref)


def _string(text: str) -> SqlExpr:
    """As hexadecimal digits, so that no setting about backslashes matters."""
    return sql.string(text.encode().hex().upper())


def _days(value: SqlExpr, first: SqlExpr) -> SqlExpr:
    return sql.call("DATEDIFF", value, first)


def _seconds(value: SqlExpr, first: SqlExpr) -> SqlExpr:
    return sql.call("TIMESTAMPDIFF", exp.var("SECOND"), first, value)


def _md5(text: SqlExpr) -> SqlExpr:
    return sql.call("MD5", text)


def _inlined(table: ValueMap, literal: Callable[[Any], SqlExpr]) -> SqlExpr:
    """Both databases know UNION ALL; their VALUES differ."""
    rows = zip(*table.columns.values(), strict=True)
    selects: list[SqlExpr] = [exp.Select(expressions=[literal(value) for value in row]) for row in rows]
    return reduce(lambda left, right: exp.Union(this=left, expression=right, distinct=False), selects)


MYSQL = Engine(
    title="MySQL",
    dialect="mysql",
    ratio=_ratio,
    nan_to_null=_same,
    text=_text,
    string=_string,
    days=_days,
    seconds=_seconds,
    md5=_md5,
    inlined=_inlined,
    adapt=plain_extremes,
)
