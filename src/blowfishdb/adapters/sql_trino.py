"""Trino's own words: NaN differs from itself, whole numbers are divided by ``/``, hashes are of bytes."""

from __future__ import annotations

from sqlglot import exp

from blowfishdb.adapters import sql_values as sql
from blowfishdb.adapters.sql_engine import Engine, plain_division
from blowfishdb.adapters.sql_values import SqlExpr


def _nan_to_null(value: SqlExpr) -> SqlExpr:
    return sql.choose((sql.call("IS_NAN", value), exp.Null()), otherwise=value.copy())


def _days(value: SqlExpr, first: SqlExpr) -> SqlExpr:
    return sql.call("DATE_DIFF", sql.string("day"), first, value)


def _seconds(value: SqlExpr, first: SqlExpr) -> SqlExpr:
    whole = sql.call("DATE_TRUNC", sql.string("second"), value)
    return sql.call("DATE_DIFF", sql.string("second"), first, whole)


def _md5(text: SqlExpr) -> SqlExpr:
    return sql.call("LOWER", sql.call("TO_HEX", sql.call("MD5", sql.call("TO_UTF8", text))))


TRINO = Engine(
    title="Trino",
    dialect="trino",
    tries=True,
    any_text=True,
    nan_to_null=_nan_to_null,
    days=_days,
    seconds=_seconds,
    md5=_md5,
    adapt=plain_division,
)
