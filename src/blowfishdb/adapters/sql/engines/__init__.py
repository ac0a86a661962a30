"""Engine: everything in which one database differs from another, as far as counting rows is concerned.

An engine is a record of small functions that build sqlglot trees. The defaults are standard SQL; a database
with words or habits of its own has a file of its own (``postgres`` and so on). Whatever an engine builds
cannot fail on a value, because whether a statement fails must not depend on the data: where a database has no
such expression, the function says so with None, and the declaration is refused before anything is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import Enum
from typing import Any, NamedTuple, final

from sqlglot import Dialect, exp
from sqlglot.errors import SqlglotError

from blowfishdb.adapters.sql import values as sql
from blowfishdb.adapters.sql.values import SqlExpr


class ColumnKind(Enum):
    """What a database column holds, as far as encoding it is concerned."""

    INTEGER = "whole numbers"
    FLOAT = "floating-point numbers"
    DECIMAL = "decimals"
    TEXT = "texts"
    BOOLEAN = "booleans"
    DATE = "dates"
    MOMENT = "moments"
    FINE_MOMENT = "moments to the nanosecond"
    NUMBER = "numbers, each of its own type"
    ANY = "values, each of its own type"
    OTHER = "something else"


_T = exp.DType
_KINDS: dict[ColumnKind, tuple[exp.DType, ...]] = {
    ColumnKind.INTEGER: (
        *(_T.TINYINT, _T.SMALLINT, _T.MEDIUMINT, _T.INT, _T.BIGINT, _T.INT128),
        *(_T.UTINYINT, _T.USMALLINT, _T.UMEDIUMINT, _T.UINT, _T.UBIGINT),
    ),
    ColumnKind.FLOAT: (_T.FLOAT, _T.DOUBLE),
    ColumnKind.DECIMAL: (_T.DECIMAL,),
    ColumnKind.TEXT: (_T.TEXT, _T.VARCHAR, _T.CHAR, _T.BPCHAR, _T.NCHAR, _T.NVARCHAR, _T.ENUM),
    ColumnKind.BOOLEAN: (_T.BOOLEAN,),
    ColumnKind.DATE: (_T.DATE, _T.DATE32),
    ColumnKind.MOMENT: (_T.TIMESTAMP, _T.TIMESTAMPNTZ, _T.TIMESTAMP_S, _T.TIMESTAMP_MS, _T.DATETIME),
    ColumnKind.FINE_MOMENT: (_T.TIMESTAMP_NS,),
}
_WIDE = (_T.INT128, _T.UBIGINT)
_BY_TEXT = (ColumnKind.TEXT, ColumnKind.ANY, ColumnKind.OTHER)


@final
@dataclass(frozen=True)
class SqlColumn:
    """A column of the source: its name, and its type in the words of its database."""

    name: str
    type: str
    engine: Engine = field(repr=False)

    @property
    def parsed(self) -> exp.DataType | None:
        """The type as a tree; None for one that sqlglot does not know."""
        return parsed_type(self.type, self.engine.dialect)

    @property
    def kind(self) -> ColumnKind:
        """What it holds."""
        return self.engine.kind(self.type, self.engine.dialect)

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
        return sql.column(self.name, sql.SOURCE)


def parsed_type(text: str, dialect: str) -> exp.DataType | None:
    """A type in a database's words as a tree."""
    try:
        return exp.DataType.build(text, dialect=dialect)
    except SqlglotError:
        return None


def standard_kind(text: str, dialect: str) -> ColumnKind:
    """The kind of a type by its name."""
    parsed = parsed_type(text, dialect)
    kinds = (kind for kind, types in _KINDS.items() if parsed is not None and parsed.this in types)
    return next(kinds, ColumnKind.OTHER)


@final
@dataclass(frozen=True, eq=False)
class ValueMap:
    """A small table that a statement joins: ``columns`` by name, all of one length. It holds no data."""

    name: str
    columns: dict[str, Any]


class Unread(NamedTuple):
    """Why columns of a type are not read, and what to do about it."""

    because: str
    fixes: tuple[str, ...]


class Nullable(NamedTuple):
    """A value of a row: whether it is missing, and if it is not, the value."""

    missing: SqlExpr
    value: SqlExpr


# --- standard SQL -----------------------------------------------------------------------------


def _ratio(units: int, scale: int) -> SqlExpr:
    return sql.double(f"{units}e-{scale}")


def _integer(column: SqlColumn) -> SqlExpr:
    return sql.cast(column.ref, column.engine.widest if column.wide else "BIGINT")


def _floor(value: SqlExpr) -> SqlExpr:
    return sql.cast(exp.Floor(this=value), "BIGINT")


def _decimal(column: SqlColumn) -> SqlExpr:
    return sql.cast(column.ref, f"DECIMAL(38, {column.scale})")


def _nan_to_null(value: SqlExpr) -> SqlExpr:
    return exp.Nullif(this=value, expression=sql.double("NaN"))


def standard_number(column: SqlColumn) -> SqlExpr | None:
    """A float; NULL for NaN and for a text that is no number."""
    engine = column.engine
    if column.kind is ColumnKind.TEXT:
        return engine.nan_to_null(sql.try_cast(column.ref, "DOUBLE")) if engine.tries else None
    return engine.nan_to_null(sql.cast(column.ref, "DOUBLE"))


def _boolean(column: SqlColumn) -> SqlExpr | None:
    if column.kind is ColumnKind.BOOLEAN:
        return column.ref
    return sql.try_cast(column.ref, "BOOLEAN") if column.engine.tries else None


def _text(column: SqlColumn) -> SqlExpr:
    return sql.cast(column.ref, "TEXT")


def plain_comparison(value: SqlExpr) -> SqlExpr:
    """For a database without collations, in which texts are equal only if their bytes are."""
    return value


def standard_identity(column: SqlColumn) -> SqlExpr | None:
    """Numbers, dates and truth values as they are; everything else by the bytes of its text."""
    if column.kind not in _BY_TEXT:
        return column.ref
    return None if column.engine.exact is None else column.engine.exact(column.engine.text(column))


def standard_date(column: SqlColumn) -> Nullable | None:
    """A date, from a date, a moment or a text."""
    return _temporal(column, "DATE")


def standard_moment(column: SqlColumn) -> Nullable | None:
    """A moment. A database may know years that its moments do not, so dates are moved into known ones."""
    if column.kind is ColumnKind.DATE:
        within = sql.clamp(column.ref, sql.day(date.min), sql.day(date.max))
        return Nullable(sql.is_null(column.ref), sql.cast(within, sql.MOMENT))
    return _temporal(column, sql.MOMENT)


def _temporal(column: SqlColumn, cast_to: str) -> Nullable | None:
    if column.kind is ColumnKind.TEXT and column.engine.tries:
        tried = sql.try_cast(column.ref, cast_to)
        return Nullable(sql.is_null(tried), tried.copy())
    if column.kind in (ColumnKind.DATE, ColumnKind.MOMENT):
        return Nullable(sql.is_null(column.ref), sql.cast(column.ref, cast_to))
    return None


def _days(value: SqlExpr, first: SqlExpr) -> SqlExpr:
    return sql.difference(value, first, "DAY")


def _seconds(value: SqlExpr, first: SqlExpr) -> SqlExpr:
    return sql.difference(value, first, "SECOND")


def _md5(text: SqlExpr) -> SqlExpr:
    return sql.call("MD5", text)


def inlined_values(table: ValueMap, literal: Callable[[Any], SqlExpr]) -> SqlExpr:
    """The rows of a map as a list of VALUES."""
    rows = zip(*table.columns.values(), strict=True)
    return exp.Values(expressions=[exp.Tuple(expressions=[literal(value) for value in row]) for row in rows])


def keep(node: SqlExpr) -> SqlExpr:
    """A database in whose words sqlglot writes correctly."""
    return node


def plain_division(node: SqlExpr) -> SqlExpr:
    """Whole numbers are divided by ``/``, and LEAST and GREATEST are written without further words."""
    if isinstance(node, exp.IntDiv):
        return exp.Div(this=node.this, expression=node.expression, typed=True, safe=False)
    return plain_extremes(node)


def plain_extremes(node: SqlExpr) -> SqlExpr:
    """LEAST and GREATEST without further words; what they make of NULL is never looked at."""
    if isinstance(node, (exp.Least, exp.Greatest)):
        node.set("ignore_nulls", None)
    return node


@final
@dataclass(frozen=True, eq=False)
class Engine:
    """One kind of database; ``title`` names it in messages, ``dialect`` in sqlglot."""

    title: str
    dialect: str
    writer: type[Dialect] | None = None
    """How statements are written, where sqlglot's own way takes long."""
    tries: bool = False
    """Whether it has TRY_CAST."""
    any_text: bool = False
    """Whether its texts may contain the character NUL."""
    registers_maps: bool = False
    """Whether value maps are handed over beside the statement, rather than written into it."""
    free_decimals: bool = False
    """Whether decimals have as many digits as they need."""
    repeats: bool = False
    """Whether it repeats an expression of a subquery wherever it is used, unless the subquery has a LIMIT."""
    widest: str = "DECIMAL(38, 0)"
    """A type for whole numbers of more than 63 bits."""
    unread: Mapping[str, Unread] = field(default_factory=dict)
    """Types that are not read for a reason of their own, by their names in lower case."""
    kind: Callable[[str, str], ColumnKind] = standard_kind
    ratio: Callable[[int, int], SqlExpr] = _ratio
    """The float nearest to ``units · 10^-scale``."""
    floor: Callable[[SqlExpr], SqlExpr] = _floor
    """The whole number below a number of fewer than 63 bits."""
    integer: Callable[[SqlColumn], SqlExpr] = _integer
    decimal: Callable[[SqlColumn], SqlExpr] = _decimal
    number: Callable[[SqlColumn], SqlExpr | None] = standard_number
    nan_to_null: Callable[[SqlExpr], SqlExpr] = _nan_to_null
    boolean: Callable[[SqlColumn], SqlExpr | None] = _boolean
    text: Callable[[SqlColumn], SqlExpr] = _text
    exact: Callable[[SqlExpr], SqlExpr] | None = None
    """A text as something that equals another only byte by byte, whatever the collation of its column says;
    None where it is not known how."""
    string: Callable[[str], SqlExpr] = sql.string
    """A text in the form that ``exact`` gives to those of a column."""
    identity: Callable[[SqlColumn], SqlExpr | None] = standard_identity
    """What is equal for two rows exactly if they name the same person."""
    to_date: Callable[[SqlColumn], Nullable | None] = standard_date
    to_moment: Callable[[SqlColumn], Nullable | None] = standard_moment
    day_literal: Callable[[date], SqlExpr] = sql.day
    moment_literal: Callable[[datetime], SqlExpr] = sql.moment
    days: Callable[[SqlExpr, SqlExpr], SqlExpr] = _days
    """Days from a date to one that is not earlier."""
    seconds: Callable[[SqlExpr, SqlExpr], SqlExpr] = _seconds
    """Whole seconds from a whole second to a moment that is not earlier."""
    md5: Callable[[SqlExpr], SqlExpr] = _md5
    """The MD5 of a text in UTF-8, as 32 lower-case hexadecimal digits."""
    inlined: Callable[[ValueMap, Callable[[Any], SqlExpr]], SqlExpr] = inlined_values
    adapt: Callable[[SqlExpr], SqlExpr] = keep
    """One node of a finished tree in this database's way; what a curator wrote is not touched."""

    def literal(self, value: Any) -> SqlExpr:
        """A text, a whole float or a whole number."""
        if isinstance(value, str):
            return self.string(value)
        return self.ratio(int(value), 0) if isinstance(value, float) else sql.whole(int(value))

    def cannot_say(self, text: str) -> bool:
        """Whether no text of the database can be equal to ``text``, and no statement can contain it."""
        if "\x00" in text and not self.any_text:
            return True
        return any("\ud800" <= sign <= "\udfff" for sign in text)
