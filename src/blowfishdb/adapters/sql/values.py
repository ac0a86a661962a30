"""SQL values: literals and the few operations from which every statement is built.

Everything is a sqlglot tree, so names are quoted and values are literals whatever characters they contain.
What differs between databases is in ``engines``, with one file for each database.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from functools import reduce

from sqlglot import exp

SqlExpr = exp.Expr
SOURCE = "src"
"""The alias of the table or view that is read."""
RESERVED = "__blowfish_"
"""How the names of our own small tables begin; no table of a user may hide behind one of them."""
MOMENT = "TIMESTAMPNTZ"
"""The type of moments without time zone, as sqlglot calls it."""


def column(name: str, table: str) -> exp.Column:
    """A quoted, qualified column."""
    return exp.column(name, table=table, quoted=True)


def whole(value: int) -> SqlExpr:
    """A whole number, of 64 bits where it fits."""
    return exp.convert(value)


def cast(value: SqlExpr, to: str) -> SqlExpr:
    """``value`` as another type; only for conversions that cannot fail."""
    return exp.Cast(this=value, to=exp.DataType.build(to))


def paren(value: SqlExpr) -> SqlExpr:
    """``(value)``."""
    return exp.Paren(this=value)


def double(text: str) -> SqlExpr:
    """The floating-point number nearest to a decimal text."""
    return cast(exp.Literal.string(text), "DOUBLE")


def string(text: str) -> SqlExpr:
    """A text, escaped."""
    return exp.Literal.string(text)


def day(value: date) -> SqlExpr:
    """A date."""
    return cast(exp.Literal.string(f"{value.year:04d}-{value.month:02d}-{value.day:02d}"), "DATE")


def moment(value: datetime) -> SqlExpr:
    """A moment without time zone."""
    return cast(exp.Literal.string(value.isoformat(sep=" ")), MOMENT)


def decimal(digits: int, scale: int, precision: int = 38) -> SqlExpr:
    """The number ``digits · 10^-scale``, exactly."""
    sign, padded = "-" if digits < 0 else "", str(abs(digits)).rjust(scale + 1, "0")
    text = f"{sign}{padded[: len(padded) - scale]}" + (f".{padded[len(padded) - scale :]}" if scale else "")
    return cast(exp.Literal.string(text), f"DECIMAL({precision}, {scale})")


def floor_div(value: SqlExpr, divisor: int) -> SqlExpr:
    """``value // divisor`` for a value that is not negative."""
    return value if divisor == 1 else exp.IntDiv(this=paren(value), expression=whole(divisor))


def clamp(value: SqlExpr, low: SqlExpr, high: SqlExpr) -> SqlExpr:
    """``value`` moved into ``[low, high]``; what it makes of NULL differs between databases."""
    least = exp.Least(this=value, expressions=[high], ignore_nulls=True)
    return exp.Greatest(this=least, expressions=[low], ignore_nulls=True)


def plus(value: SqlExpr, amount: int) -> SqlExpr:
    """``value + amount``."""
    if amount == 0:
        return value
    node = exp.Add if amount > 0 else exp.Sub
    return node(this=value, expression=whole(abs(amount)))


def choose(*cases: tuple[SqlExpr, SqlExpr], otherwise: SqlExpr) -> SqlExpr:
    """The value of the first condition that holds."""
    branches = [exp.If(this=condition.copy(), true=value.copy()) for condition, value in cases]
    return exp.Case(ifs=branches, default=otherwise.copy())


def is_null(value: SqlExpr) -> SqlExpr:
    """``value IS NULL``."""
    return exp.Is(this=value, expression=exp.Null())


def try_cast(value: SqlExpr, to: str) -> SqlExpr:
    """``value`` as another type, NULL where it is not one."""
    return exp.TryCast(this=value, to=exp.DataType.build(to))


def call(name: str, *arguments: SqlExpr) -> SqlExpr:
    """A function of the database by its own name."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def difference(later: SqlExpr, earlier: SqlExpr, unit: str) -> SqlExpr:
    """Whole units from one date or moment to a later one, in sqlglot's own words."""
    return exp.DateDiff(this=later, expression=earlier, unit=exp.var(unit))


def concat(*texts: SqlExpr) -> SqlExpr:
    """Texts behind each other; NULL if one of them is."""
    return reduce(lambda left, right: exp.DPipe(this=left, expression=right, safe=True), texts)


_NAME = r'("(?:[^"]|"")+"|[^".]+)'
_QUALIFIED = re.compile(rf"(?:{_NAME}\.)?{_NAME}")


def qualified(written: str) -> tuple[str | None, str]:
    """The schema and the name of a table as people write it: ``visits``, or ``clinic.visits`` in a schema.

    Either may stand in double quotes, which a name with a dot in it needs.
    """
    match = _QUALIFIED.fullmatch(written)
    if match is None:
        return None, written
    schema, table = (None if name is None else _unquoted(name) for name in match.groups())
    return schema, table or ""


def _unquoted(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def stored_table(schema: str | None, name: str, alias: str | None = None) -> exp.Table:
    """A table of the database, quoted."""
    return exp.Table(
        this=exp.to_identifier(name, quoted=True),
        db=None if schema is None else exp.to_identifier(schema, quoted=True),
        alias=None if alias is None else exp.TableAlias(this=exp.to_identifier(alias, quoted=True)),
    )
