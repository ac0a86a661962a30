"""Spark's own words: TRY_CAST, DIV, and moments without time zone under a name of their own."""

from __future__ import annotations

from sqlglot import exp

from blowfishdb.adapters.sql import values as sql
from blowfishdb.adapters.sql.engines import ColumnKind, Engine, plain_extremes, standard_kind
from blowfishdb.adapters.sql.values import SqlExpr


def _kind(text: str, dialect: str) -> ColumnKind:
    """Spark's plain timestamp is a moment in a time zone; timestamp_ntz is one without."""
    return (
        ColumnKind.OTHER if text.lower() in ("timestamp", "timestamp_ltz") else standard_kind(text, dialect)
    )


def _exact(value: SqlExpr) -> SqlExpr:
    """As bytes: a column may have a collation that ignores case."""
    return sql.cast(value, "BINARY")


def _string(text: str) -> SqlExpr:
    return _exact(sql.string(text))


def _days(value: SqlExpr, first: SqlExpr) -> SqlExpr:
    return sql.call("DATEDIFF", value, first)


def _seconds(value: SqlExpr, first: SqlExpr) -> SqlExpr:
    return sql.call("TIMESTAMPDIFF", exp.var("SECOND"), first, value)


SPARK = Engine(
    title="Spark",
    dialect="spark",
    tries=True,
    any_text=True,
    kind=_kind,
    exact=_exact,
    string=_string,
    days=_days,
    seconds=_seconds,
    adapt=plain_extremes,
)
