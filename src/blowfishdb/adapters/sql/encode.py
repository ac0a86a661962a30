"""Encoding in SQL: the cell of a row's value, equal to ``Attribute.encode``.

Numbers become exact whole numbers before anything is divided. A float stands, as everywhere, for the
decimal that it prints as: with ``s`` decimal places in the half points of a grid, ``⌊value·10^s⌋`` is the
whole number ``r`` nearest to ``value * 10^s``, less one where ``value < r / 10^s``. The division is correctly
rounded, and below 10^15 the quotient is the smallest float that prints as at least ``r·10^-s``.

No expression can fail on a value, because whether a statement fails must not depend on the data. A text that
is not what its column declares counts as missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from functools import lru_cache
from typing import final

from sqlglot import exp

from blowfishdb.adapters.sql import values as sql
from blowfishdb.adapters.sql.engines import ColumnKind, SqlColumn, ValueMap
from blowfishdb.adapters.sql.values import SqlExpr
from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.attributes import Boolean, Category, Integer, Real
from blowfishdb.core.domain.dates import Date
from blowfishdb.core.errors import InvalidAttribute

CASES = 16
"""Beyond this many alternatives a join with a value map is faster than CASE."""

_EXACT_IN_FLOAT = 10**15
_LARGEST_POWER = 22  # 10^22 is the last power of ten that a float holds exactly
_LARGEST_BOUND = 2**62


@final
@dataclass(frozen=True, eq=False)
class Encoded:
    """The cell of one column: an expression over the source, and the map it joins, if any."""

    cell: SqlExpr
    map: ValueMap | None = None
    on: SqlExpr | None = None


def encode(column: SqlColumn, attribute: Attribute, map_name: str) -> Encoded:
    """The cell of ``column`` as ``attribute`` declares it; -1 for a row that is dropped."""
    if isinstance(attribute, Category):
        return _category(column, attribute, map_name)
    if isinstance(attribute, Date):
        return Encoded(_date(column, attribute))
    if isinstance(attribute, Boolean):
        return Encoded(_boolean(column, attribute))
    if isinstance(attribute, (Integer, Real)):
        return Encoded(_number(column, attribute))
    raise InvalidAttribute(f"The column {column.name!r} is of a kind that SQL does not know.")


@lru_cache(maxsize=1024)
def check_encodable(column: SqlColumn, attribute: Attribute) -> None:
    """Refuse a column that does not fit its declaration; one that fits is remembered."""
    encode(column, attribute, "unused")


def _null_cell(attribute: Attribute) -> SqlExpr:
    return sql.whole(int(attribute.encode([None])[0]))


def _ends(attribute: Attribute) -> tuple[SqlExpr, SqlExpr]:
    """The cells of values below and above the declared ones."""
    if attribute.outside == "drop":
        return sql.whole(-1), sql.whole(-1)
    return sql.whole(0), sql.whole(attribute.value_count - 1)


def _refuse(column: SqlColumn, what: str, *fixes: str) -> InvalidAttribute:
    unread = column.engine.unread.get(column.type.lower().rpartition(".")[2])
    if unread is not None:
        return InvalidAttribute(
            f"The column {column.name!r} holds {column.type} in the database and cannot be declared: "
            f"{unread.because}.",
            fixes=unread.fixes,
        )
    return InvalidAttribute(
        f"The column {column.name!r} holds {column.type or 'anything'} in the database "
        f"and cannot be declared as {what}.",
        fixes=fixes or ("another kind of column", "a view that converts it"),
    )


def _refuse_text(column: SqlColumn, what: str) -> InvalidAttribute:
    """A conversion that fails on some text would tell that such a text is there."""
    return InvalidAttribute(
        f"The column {column.name!r} holds {column.type} in the database and cannot be declared as {what}: "
        f"{column.engine.title} has no conversion that never fails.",
        fixes=("a column of the right type", "a view that converts only texts that fit, with CASE"),
    )


# --- numbers ----------------------------------------------------------------------------------


@final
@dataclass(frozen=True)
class _Grid:
    """A numeric attribute in whole units of ``10^-scale``; half points of a real grid are whole, too."""

    scale: int
    low: int
    high: int
    step: int
    half: int

    @staticmethod
    def of(column: SqlColumn, attribute: Integer | Real) -> _Grid:
        if isinstance(attribute, Integer):
            return _Grid(0, attribute.lo, attribute.hi, 1, 0)
        points = (attribute.lo, attribute.grid / 2)
        scale = next((s for s in range(_LARGEST_POWER + 1) if _all_whole(points, 10**s)), None)
        if scale is None:
            raise InvalidAttribute(
                f"The grid of {column.name!r} is not a decimal, and databases round to decimals only.",
                fixes=("a grid such as 0.01", "bounds with few digits"),
            )
        unit = 10**scale
        step = int(attribute.grid * unit)
        return _Grid(scale, int(attribute.lo * unit), int(attribute.hi * unit), step, step // 2)

    @property
    def reach(self) -> int:
        """The largest number that occurs, one step outside included."""
        return max(abs(self.low), abs(self.high)) + self.step


def _all_whole(points: tuple[Fraction, ...], unit: int) -> bool:
    return all((point * unit).denominator == 1 for point in points)


def _number(column: SqlColumn, attribute: Integer | Real) -> SqlExpr:
    grid = _Grid.of(column, attribute)
    what = "whole numbers" if isinstance(attribute, Integer) else "numbers on a grid"
    if column.kind not in _UNITS:
        raise _refuse(column, what)
    if grid.reach >= _most(column.kind, grid):
        raise _refuse(column, f"{what} with that many digits", "narrower bounds", "a coarser grid")
    beyond = grid.step if attribute.outside == "drop" else 0
    missing, units = _UNITS[column.kind](column, grid, (grid.low - beyond, grid.high + beyond))
    tick = sql.floor_div(sql.plus(units, grid.half + beyond - grid.low), grid.step)
    if attribute.outside == "drop":  # here ticks are counted from one, so that nothing negative is divided
        inside = exp.Between(this=tick, low=sql.whole(1), high=sql.whole(attribute.ticks))
        cell = sql.floor_div(sql.plus(tick.copy(), -1), attribute.ticks_per_cell)
        tick_cell = sql.choose((inside, cell), otherwise=sql.whole(-1))
    else:
        tick_cell = sql.floor_div(tick, attribute.ticks_per_cell)
    return sql.choose((missing, _null_cell(attribute)), otherwise=tick_cell)


def _most(kind: ColumnKind, grid: _Grid) -> int:
    floats = kind in (ColumnKind.FLOAT, ColumnKind.TEXT) or (
        kind in (ColumnKind.NUMBER, ColumnKind.ANY) and grid.scale > 0
    )
    return _EXACT_IN_FLOAT if floats else _LARGEST_BOUND


Limits = tuple[int, int]
Units = tuple[SqlExpr, SqlExpr]
"""Whether the value is missing, and if it is not, ⌊value·10^scale⌋ moved into the limits."""


def _units_of_integer(column: SqlColumn, grid: _Grid, limits: Limits) -> Units:
    unit = 10**grid.scale
    low, high = limits[0] // unit, -(-limits[1] // unit)
    narrow = sql.cast(sql.clamp(column.engine.integer(column), sql.whole(low), sql.whole(high)), "BIGINT")
    if unit == 1:
        return sql.is_null(column.ref), narrow
    scaled = exp.Mul(this=narrow, expression=sql.whole(unit))
    return sql.is_null(column.ref), sql.clamp(scaled, sql.whole(limits[0]), sql.whole(limits[1]))


def _units_of_float(column: SqlColumn, grid: _Grid, limits: Limits) -> Units:
    engine, value = column.engine, _float(column, "numbers")
    low, high = (engine.ratio(limit, grid.scale) for limit in limits)
    inside = sql.clamp(value.copy(), low, high)
    if grid.scale == 0:
        return sql.is_null(value), engine.floor(inside)
    unit = engine.ratio(10**grid.scale, 0)
    scaled = exp.Mul(this=inside, expression=unit)
    nearest = engine.floor(exp.Add(this=scaled, expression=engine.ratio(5, 1)))
    quotient = exp.Div(this=nearest.copy(), expression=unit.copy(), typed=True)
    back = exp.LT(this=inside.copy(), expression=quotient)
    step = sql.choose((back, sql.whole(1)), otherwise=sql.whole(0))
    return sql.is_null(value), sql.paren(exp.Sub(this=nearest, expression=step))


def _units_of_any(column: SqlColumn, grid: _Grid, limits: Limits) -> Units:
    """Whole numbers and floats in one column: floats below 2^53 and whole numbers meet exactly."""
    if grid.scale > 0:
        return _units_of_float(column, grid, limits)
    value = _float(column, "numbers")
    inside = sql.clamp(value.copy(), sql.whole(limits[0]), sql.whole(limits[1]))
    return sql.is_null(value), column.engine.floor(inside)


def _units_of_decimal(column: SqlColumn, grid: _Grid, limits: Limits) -> Units:
    engine, value = column.engine, column.engine.decimal(column)
    missing = sql.is_null(value.copy())
    if engine.free_decimals:
        low, high = (sql.decimal(limit, grid.scale) for limit in limits)
        inside = sql.clamp(value, low, high)
    else:
        inside = _narrow_decimal(column, grid, limits, value)
    power = sql.decimal(10**grid.scale, 0, grid.scale + 1)
    units = engine.floor(exp.Mul(this=inside, expression=power) if grid.scale else inside)
    return missing, sql.clamp(units, sql.whole(limits[0]), sql.whole(limits[1]))


def _narrow_decimal(column: SqlColumn, grid: _Grid, limits: Limits, value: SqlExpr) -> SqlExpr:
    """Moved into the limits and then cut to the digits that are left, so that products keep all of theirs."""
    if len(str(grid.reach)) + column.scale > 36:
        raise _refuse(column, "numbers with that many digits", "narrower bounds", "a coarser grid")
    shift = 10 ** max(column.scale - grid.scale, 0), 10 ** max(grid.scale - column.scale, 0)
    low, high = limits[0] * shift[0] // shift[1], -(-limits[1] * shift[0] // shift[1])
    digits = max(len(str(abs(low))), len(str(abs(high))), column.scale + 1)
    inside = sql.clamp(value, sql.decimal(low, column.scale), sql.decimal(high, column.scale))
    return sql.cast(inside, f"DECIMAL({digits}, {column.scale})")


_UNITS: dict[ColumnKind, Callable[[SqlColumn, _Grid, Limits], Units]] = {
    ColumnKind.INTEGER: _units_of_integer,
    ColumnKind.FLOAT: _units_of_float,
    ColumnKind.TEXT: _units_of_float,
    ColumnKind.DECIMAL: _units_of_decimal,
    ColumnKind.NUMBER: _units_of_any,
    ColumnKind.ANY: _units_of_any,
}


# --- dates, booleans, categories --------------------------------------------------------------


def _date(column: SqlColumn, attribute: Date) -> SqlExpr:
    engine = column.engine
    moment = engine.to_date(column) if attribute.by_day else engine.to_moment(column)
    if moment is None and column.kind is ColumnKind.TEXT:
        raise _refuse_text(column, "dates")
    if moment is None:
        raise _refuse(column, "dates", "a view with a date or a timestamp without time zone")
    if isinstance(attribute.lo, datetime) and isinstance(attribute.hi, datetime):
        first = engine.moment_literal(attribute.lo)
        end = engine.moment_literal(attribute.hi.replace(microsecond=999_999))
        ticks = engine.seconds(moment.value, first)
    else:
        first, end = engine.day_literal(attribute.lo), engine.day_literal(attribute.hi)
        ticks = engine.days(moment.value, first)
    below, above = _ends(attribute)
    return sql.choose(
        (moment.missing, _null_cell(attribute)),
        (exp.LT(this=moment.value.copy(), expression=first.copy()), below),
        (exp.GT(this=moment.value.copy(), expression=end), above),
        otherwise=sql.floor_div(ticks, attribute.ticks_per_cell),
    )


def _boolean(column: SqlColumn, attribute: Boolean) -> SqlExpr:
    zero, one = sql.whole(0), sql.whole(1)
    if column.kind in (ColumnKind.BOOLEAN, ColumnKind.TEXT):
        truth = column.engine.boolean(column)
        if truth is None:
            raise _refuse_text(column, "booleans")
        return sql.choose((sql.is_null(truth), _null_cell(attribute)), (truth.copy(), one), otherwise=zero)
    if column.kind in (ColumnKind.FLOAT, ColumnKind.NUMBER, ColumnKind.ANY):
        value = _float(column, "booleans")
    elif column.kind is ColumnKind.DECIMAL:
        value = column.engine.decimal(column)
    elif column.kind is ColumnKind.INTEGER:
        value = column.ref
    else:
        raise _refuse(column, "booleans")
    below, above = _ends(attribute)
    return sql.choose(
        (sql.is_null(value), _null_cell(attribute)),
        (exp.EQ(this=value.copy(), expression=zero), zero.copy()),
        (exp.EQ(this=value.copy(), expression=one), one.copy()),
        (exp.LT(this=value.copy(), expression=zero.copy()), below),
        otherwise=above,
    )


def _category(column: SqlColumn, attribute: Category, map_name: str) -> Encoded:
    value, keys = _keys(column, attribute)
    null, unlisted = _null_cell(attribute), _ends(attribute)[1]
    if attribute.ticks <= CASES:
        cases = [
            (exp.EQ(this=value.copy(), expression=column.engine.literal(key)), sql.whole(tick))
            for tick, key in enumerate(keys)
        ]
        return Encoded(sql.choose((sql.is_null(value), null), *cases, otherwise=unlisted))
    rest = sql.choose((sql.is_null(value), null), otherwise=unlisted)
    cell = exp.Coalesce(this=sql.column("cell", map_name), expressions=[rest])
    on = exp.EQ(this=value.copy(), expression=sql.column("key", map_name))
    return Encoded(cell, ValueMap(map_name, {"key": list(keys), "cell": list(range(attribute.ticks))}), on)


def _keys(column: SqlColumn, attribute: Category) -> tuple[SqlExpr, Sequence[str | int | float]]:
    """What is compared, and the listed values in the same type."""
    texts = [value for value in attribute.values if isinstance(value, str)]
    if texts:
        return _texts(column, texts)
    numbers = [value for value in attribute.values if not isinstance(value, str)]
    largest = max(abs(value) for value in numbers)
    if column.kind in (ColumnKind.FLOAT, ColumnKind.TEXT) and largest < _EXACT_IN_FLOAT:
        return _float(column, "categories of whole numbers"), [float(value) for value in numbers]
    if column.kind in (ColumnKind.NUMBER, ColumnKind.ANY) and largest < _LARGEST_BOUND:
        return _float(column, "categories of whole numbers"), numbers
    if column.kind is ColumnKind.INTEGER and largest < _LARGEST_BOUND:
        return column.ref, numbers
    if column.kind is ColumnKind.DECIMAL and column.scale == 0 and largest < _LARGEST_BOUND:
        return column.engine.decimal(column), numbers
    raise _refuse(column, "categories of whole numbers")


def _texts(column: SqlColumn, texts: list[str]) -> tuple[SqlExpr, list[str]]:
    if column.kind not in (ColumnKind.TEXT, ColumnKind.ANY):
        raise _refuse(column, "categories of texts", "list its values as whole numbers")
    for text in texts:
        if column.engine.cannot_say(text):
            raise InvalidAttribute(
                f"{column.engine.title} has no text {text!r}, which is listed for {column.name!r}.",
                fixes=("leave it out",),
            )
    exact = column.engine.exact
    if exact is None:
        raise _refuse(
            column,
            "categories of texts: it is not known how its texts are compared byte by byte",
            "a view with whole numbers in place of the texts",
        )
    return exact(column.engine.text(column)), texts


def _float(column: SqlColumn, what: str) -> SqlExpr:
    value = column.engine.number(column)
    if value is None:
        raise _refuse_text(column, what)
    return value
