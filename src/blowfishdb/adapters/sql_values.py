"""SQL values: column types, literals and the few operations from which every statement is built.

Everything is a sqlglot tree, so names are quoted and values are literals whatever characters they contain.
What differs between databases is here and nowhere else; today the trees are written for DuckDB.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum
from typing import final

from sqlglot import exp
from sqlglot.errors import SqlglotError

SqlExpr = exp.Expr
SOURCE = "src"
"""The alias of the table or view that is read."""
RESERVED = "__blowfish_"
"""How the names of our own small tables begin; no table of a user may hide behind one of them."""
MOMENT = "TIMESTAMPNTZ"
"""The type of moments without time zone, as sqlglot calls it."""


class Kind(Enum):
    """What a database column holds, as far as encoding it is concerned."""

    INTEGER = "whole numbers"
    FLOAT = "floating-point numbers"
    DECIMAL = "decimals"
    TEXT = "texts"
    BOOLEAN = "booleans"
    DATE = "dates"
    MOMENT = "moments"
    FINE_MOMENT = "moments to the nanosecond"
    OTHER = "something else"


_T = exp.DType
_KINDS: dict[Kind, tuple[exp.DType, ...]] = {
    Kind.INTEGER: (
        *(_T.TINYINT, _T.SMALLINT, _T.INT, _T.BIGINT, _T.INT128),
        *(_T.UTINYINT, _T.USMALLINT, _T.UINT, _T.UBIGINT),
    ),
    Kind.FLOAT: (_T.FLOAT, _T.DOUBLE),
    Kind.DECIMAL: (_T.DECIMAL,),
    Kind.TEXT: (_T.TEXT, _T.VARCHAR, _T.CHAR, _T.ENUM),
    Kind.BOOLEAN: (_T.BOOLEAN,),
    Kind.DATE: (_T.DATE, _T.DATE32),
    Kind.MOMENT: (_T.TIMESTAMP, _T.TIMESTAMPNTZ, _T.TIMESTAMP_S, _T.TIMESTAMP_MS, _T.DATETIME),
    Kind.FINE_MOMENT: (_T.TIMESTAMP_NS,),
}
_WIDE = (_T.INT128, _T.UBIGINT)


@final
@dataclass(frozen=True)
class SqlColumn:
    """A column of the source: its name and its type in the words of the database."""

    name: str
    type: str
    dialect: str = "duckdb"

    @property
    def parsed(self) -> exp.DataType | None:
        """The type as a tree; None for one that sqlglot does not know."""
        try:
            return exp.DataType.build(self.type, dialect=self.dialect)
        except SqlglotError:
            return None

    @property
    def kind(self) -> Kind:
        parsed = self.parsed
        found = (kind for kind, types in _KINDS.items() if parsed is not None and parsed.this in types)
        return next(found, Kind.OTHER)

    @property
    def wide(self) -> bool:
        """Whether its whole numbers may need more than 63 bits."""
        return self.parsed is not None and self.parsed.this in _WIDE

    @property
    def scale(self) -> int:
        """The digits of a decimal after the point."""
        sizes = self.parsed.expressions if self.parsed is not None else []
        return int(sizes[1].name) if len(sizes) > 1 else 0

    @property
    def ref(self) -> exp.Column:
        """The column of the source, quoted."""
        return column(self.name, SOURCE)


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


def decimal(digits: int, scale: int) -> SqlExpr:
    """The number ``digits · 10^-scale``, exactly."""
    sign, padded = "-" if digits < 0 else "", str(abs(digits)).rjust(scale + 1, "0")
    text = f"{sign}{padded[: len(padded) - scale]}" + (f".{padded[len(padded) - scale :]}" if scale else "")
    return cast(exp.Literal.string(text), f"DECIMAL(38, {scale})")


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
    case = exp.Case()
    for condition, value in cases:
        case = case.when(condition, value)
    return case.else_(otherwise)


def is_null(value: SqlExpr) -> SqlExpr:
    """``value IS NULL``."""
    return exp.Is(this=value, expression=exp.Null())


def is_nan(value: SqlExpr) -> SqlExpr:
    """Whether a float is NaN, which equals itself here, unlike elsewhere."""
    return exp.EQ(this=value, expression=double("NaN"))


def nan_to_null(value: SqlExpr) -> SqlExpr:
    """NaN is one more way to say NULL."""
    return exp.Nullif(this=value, expression=double("NaN"))


def try_cast(value: SqlExpr, to: str) -> SqlExpr:
    """``value`` as another type, NULL where it is not one."""
    return exp.TryCast(this=value, to=exp.DataType.build(to))


def call(name: str, *arguments: SqlExpr) -> SqlExpr:
    """A function of the database by its own name."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def difference(later: SqlExpr, earlier: SqlExpr, unit: str) -> SqlExpr:
    """Whole units from one date or moment to a later one."""
    return exp.DateDiff(this=later, expression=earlier, unit=exp.var(unit))


def to_microseconds(value: SqlExpr) -> SqlExpr:
    """A moment to the nanosecond, cut off to the microsecond: DuckDB's own cast rounds into the next day."""
    nanos = call("EPOCH_NS", value)
    rest = exp.Mod(
        this=paren(plus(exp.Mod(this=nanos, expression=whole(1000)), 1000)), expression=whole(1000)
    )
    micros = exp.IntDiv(this=paren(exp.Sub(this=nanos.copy(), expression=rest)), expression=whole(1000))
    infinite = cast(value.copy(), MOMENT)
    return exp.Coalesce(this=call("MAKE_TIMESTAMP", micros), expressions=[infinite])
