"""PostgreSQL's own words: decimals of any length, which may be NaN; no TRY_CAST; collations."""

from __future__ import annotations

from sqlglot import exp

from blowfishdb.adapters.sql import values as sql
from blowfishdb.adapters.sql.engines import Engine, SqlColumn, Unread, plain_division
from blowfishdb.adapters.sql.values import SqlExpr


def _decimal(column: SqlColumn) -> SqlExpr:
    not_a_number = sql.cast(sql.string("NaN"), "DECIMAL")
    return exp.Nullif(this=column.ref, expression=not_a_number)


def _exact(value: SqlExpr) -> SqlExpr:
    """Letter by letter, whatever the collation of the column makes of upper and lower case."""
    return exp.Collate(this=value, expression=exp.to_identifier("C", quoted=True))


def _days(value: SqlExpr, first: SqlExpr) -> SqlExpr:
    return sql.paren(exp.Sub(this=value, expression=first))


def _seconds(value: SqlExpr, first: SqlExpr) -> SqlExpr:
    between = sql.paren(exp.Sub(this=value, expression=first))
    return sql.cast(exp.Floor(this=exp.Extract(this=exp.var("EPOCH"), expression=between)), "BIGINT")


_CITEXT = Unread(
    "PostgreSQL takes texts of this type for equal that differ in upper and lower case, so that it is not "
    "said which texts are one value",
    (
        "ALTER TABLE … ALTER COLUMN … TYPE text",
        "CREATE VIEW … in the database, with lower(…::text) or …::text, declared with rows_vary=False",
    ),
)


POSTGRES = Engine(
    title="PostgreSQL",
    dialect="postgres",
    repeats=True,
    free_decimals=True,
    unread={"citext": _CITEXT},
    decimal=_decimal,
    exact=_exact,
    days=_days,
    seconds=_seconds,
    adapt=plain_division,
)
