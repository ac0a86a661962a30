"""SQLite's own words: every value has its own type, dates are texts, and there is no floor.

The declared type of a column is only a hint, so each expression looks at the type of the value: a text in a
column of numbers is missing. Dates are texts such as ``2024-12-31`` and ``2024-12-31 23:59:59.123``, which
sort like the moments they stand for; any other text, and any number, is missing.
"""

from __future__ import annotations

from datetime import date, datetime

from sqlglot import Generator, exp
from sqlglot.dialects.sqlite import SQLite

from blowfishdb.adapters.sql import values as sql
from blowfishdb.adapters.sql.engines import ColumnKind, Engine, Nullable, SqlColumn, plain_division
from blowfishdb.adapters.sql.values import SqlExpr

_AFFINITIES: tuple[tuple[ColumnKind, tuple[str, ...]], ...] = (
    (ColumnKind.NUMBER, ("INT",)),
    (ColumnKind.TEXT, ("CHAR", "CLOB", "TEXT")),
    (ColumnKind.ANY, ("BLOB",)),
    (ColumnKind.NUMBER, ("REAL", "FLOA", "DOUB")),
    (ColumnKind.MOMENT, ("DATE", "TIME")),
)
"""SQLite's own rules in their order; dates come last, since they are numbers only by declaration."""
_EXACT_WHOLE = 18


class _Written(SQLite):
    """SQLite, whose casts are written at once: sqlglot parses the names of five types for each of them."""

    class Generator(SQLite.Generator):  # type: ignore[valid-type, misc]
        """Casts to dates are rewritten, others are not."""

        def cast_sql(self, expression: exp.Cast, safe_prefix: str | None = None) -> str:
            """As for every database, unless the type is one that SQLite has not."""
            if expression.to.this in exp.DataType.TEMPORAL_TYPES:
                return str(super().cast_sql(expression, safe_prefix))
            return Generator.cast_sql(self, expression, safe_prefix)


def _kind(text: str, _: str) -> ColumnKind:
    if not text:
        return ColumnKind.ANY
    kinds = (kind for kind, parts in _AFFINITIES if any(part in text.upper() for part in parts))
    return next(kinds, ColumnKind.NUMBER)


# --- numbers ----------------------------------------------------------------------------------


def _number(column: SqlColumn) -> SqlExpr | None:
    if column.kind is ColumnKind.TEXT:
        return None
    types = [sql.string("integer"), sql.string("real")]
    numeric = exp.In(this=sql.call("TYPEOF", column.ref), expressions=types)
    return sql.choose((numeric, column.ref), otherwise=exp.Null())


def _floor(value: SqlExpr) -> SqlExpr:
    """Casts cut towards zero; a comparison is 0 or 1."""
    cut = sql.cast(value, "BIGINT")
    return sql.paren(
        exp.Sub(this=cut, expression=sql.paren(exp.LT(this=value.copy(), expression=cut.copy())))
    )


def _ratio(units: int, scale: int) -> SqlExpr:
    """A quotient of exact floats: older versions read decimal texts a little off."""
    whole = sql.cast(sql.whole(units), "DOUBLE") if abs(units) < 2**63 else _power(len(str(units)) - 1)
    if scale == 0:
        return whole
    return sql.paren(exp.Div(this=whole, expression=_power(scale), typed=True, safe=False))


def _power(exponent: int) -> SqlExpr:
    first = sql.cast(sql.whole(10 ** min(exponent, _EXACT_WHOLE)), "DOUBLE")
    if exponent <= _EXACT_WHOLE:
        return first
    rest = sql.cast(sql.whole(10 ** (exponent - _EXACT_WHOLE)), "DOUBLE")
    return sql.paren(exp.Mul(this=first, expression=rest))


# --- texts and dates --------------------------------------------------------------------------


def _exact(value: SqlExpr) -> SqlExpr:
    """Letter by letter, even in a column that is declared COLLATE NOCASE."""
    return exp.Collate(this=value, expression=exp.to_identifier("BINARY"))


def _identity(column: SqlColumn) -> SqlExpr | None:
    """Values of any type: a number and its text are different."""
    return _exact(column.ref)


def _part(column: SqlColumn, first: int, length: int | None = None) -> SqlExpr:
    sizes = [sql.whole(first)] if length is None else [sql.whole(first), sql.whole(length)]
    return sql.call("SUBSTR", column.ref, *sizes)


def _is(value: SqlExpr, text: str) -> SqlExpr:
    return exp.EQ(this=value, expression=sql.string(text))


def _computed(function: str, text: SqlExpr) -> SqlExpr:
    """What SQLite makes of a text; the last word keeps it from handing the text back unread."""
    return sql.call(function, text, sql.string("+0 days"))


def _whole_day(column: SqlColumn) -> SqlExpr:
    return _is(_part(column, 11), "")


def _valid_time(column: SqlColumn) -> SqlExpr:
    """What follows the date is a time to the second, perhaps with a fraction."""
    time = _part(column, 12, 8)
    digits = exp.Not(this=exp.Glob(this=_part(column, 21), expression=sql.string("*[^0-9]*")))
    fraction = exp.And(this=_is(_part(column, 20, 1), "."), expression=digits)
    between = exp.In(this=_part(column, 11, 1), expressions=[sql.string(" "), sql.string("T")])
    return exp.and_(
        between,
        exp.EQ(this=_computed("TIME", time), expression=time.copy()),
        exp.or_(_is(_part(column, 20), ""), fraction, copy=False),
        copy=False,
    )


def _valid(column: SqlColumn) -> SqlExpr:
    """A day that exists, written in full: what SQLite makes of it is what it was."""
    day = _part(column, 1, 10)
    return exp.and_(
        _is(sql.call("TYPEOF", column.ref), "text"),
        exp.EQ(this=_computed("DATE", day), expression=day.copy()),
        exp.or_(_whole_day(column), _valid_time(column), copy=False),
        copy=False,
    )


def _date(column: SqlColumn) -> Nullable | None:
    if column.kind is ColumnKind.NUMBER:
        return None
    return Nullable(exp.Not(this=_true(_valid(column))), _part(column, 1, 10))


def _moment(column: SqlColumn) -> Nullable | None:
    """To the second: the fraction is cut off."""
    if column.kind is ColumnKind.NUMBER:
        return None
    time = sql.choose((_whole_day(column), sql.string("00:00:00")), otherwise=_part(column, 12, 8))
    value = sql.paren(sql.concat(_part(column, 1, 10), sql.string(" "), time))
    return Nullable(exp.Not(this=_true(_valid(column))), value)


def _true(condition: SqlExpr) -> SqlExpr:
    """Unknown is false."""
    return exp.Coalesce(this=sql.paren(condition), expressions=[sql.whole(0)])


def _day_literal(value: date) -> SqlExpr:
    return sql.string(value.isoformat()[:10])


def _moment_literal(value: datetime) -> SqlExpr:
    return sql.string(value.isoformat(sep=" ")[:19])


def _days(value: SqlExpr, first: SqlExpr) -> SqlExpr:
    between = exp.Sub(this=sql.call("JULIANDAY", value), expression=sql.call("JULIANDAY", first))
    return sql.cast(between, "BIGINT")


def _seconds(value: SqlExpr, first: SqlExpr) -> SqlExpr:
    later, earlier = (
        sql.cast(sql.call("STRFTIME", sql.string("%s"), moment), "BIGINT") for moment in (value, first)
    )
    return sql.paren(exp.Sub(this=later, expression=earlier))


def _same(value: SqlExpr) -> SqlExpr:
    return value


SQLITE = Engine(
    title="SQLite",
    dialect="sqlite",
    writer=_Written,
    repeats=True,
    kind=_kind,
    ratio=_ratio,
    floor=_floor,
    number=_number,
    nan_to_null=_same,
    exact=_exact,
    identity=_identity,
    to_date=_date,
    to_moment=_moment,
    day_literal=_day_literal,
    moment_literal=_moment_literal,
    days=_days,
    seconds=_seconds,
    adapt=plain_division,
)
