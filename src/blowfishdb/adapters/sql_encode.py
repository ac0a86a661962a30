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
from datetime import date, datetime
from fractions import Fraction
from typing import Any, final

from sqlglot import exp

from blowfishdb.adapters import sql_values as sql
from blowfishdb.adapters.sql_values import Kind, SqlColumn, SqlExpr
from blowfishdb.core.attribute import Attribute
from blowfishdb.core.domain import Boolean, Category, Date, Integer, Real
from blowfishdb.core.errors import InvalidAttribute

CASES = 16
"""Beyond this many alternatives a join with a value map is faster than CASE."""

_EXACT_IN_FLOAT = 10**15
_LARGEST_POWER = 22  # 10^22 is the last power of ten that a float holds exactly
_LARGEST_BOUND = 2**62


@final
@dataclass(frozen=True, eq=False)
class ValueMap:
    """A small table that a statement joins: ``columns`` by name, all of one length. It holds no data."""

    name: str
    columns: dict[str, Any]


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


def _null_cell(attribute: Attribute) -> SqlExpr:
    return sql.whole(int(attribute.encode([None])[0]))


def _ends(attribute: Attribute) -> tuple[SqlExpr, SqlExpr]:
    """The cells of values below and above the declared ones."""
    if attribute.outside == "drop":
        return sql.whole(-1), sql.whole(-1)
    return sql.whole(0), sql.whole(attribute.value_count - 1)


def _refuse(column: SqlColumn, what: str, *fixes: str) -> InvalidAttribute:
    return InvalidAttribute(
        f"The column {column.name!r} holds {column.type} in the database and cannot be declared as {what}.",
        fixes=fixes or ("another kind of column", "a view that converts it"),
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

    def text(self, units: int) -> str:
        return f"{units}e-{self.scale}"


def _all_whole(points: tuple[Fraction, ...], unit: int) -> bool:
    return all((point * unit).denominator == 1 for point in points)


def _number(column: SqlColumn, attribute: Integer | Real) -> SqlExpr:
    grid = _Grid.of(column, attribute)
    what = "whole numbers" if isinstance(attribute, Integer) else "numbers on a grid"
    if column.kind not in _UNITS:
        raise _refuse(column, what)
    if grid.reach >= (_EXACT_IN_FLOAT if column.kind in (Kind.FLOAT, Kind.TEXT) else _LARGEST_BOUND):
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


Limits = tuple[int, int]
Units = tuple[SqlExpr, SqlExpr]
"""Whether the value is missing, and if it is not, ⌊value·10^scale⌋ moved into the limits."""


def _units_of_integer(column: SqlColumn, grid: _Grid, limits: Limits) -> Units:
    value = sql.cast(column.ref, "INT128" if column.wide else "BIGINT")
    unit = 10**grid.scale
    low, high = limits[0] // unit, -(-limits[1] // unit)
    narrow = sql.cast(sql.clamp(value, sql.whole(low), sql.whole(high)), "BIGINT")
    if unit == 1:
        return sql.is_null(column.ref), narrow
    scaled = exp.Mul(this=narrow, expression=sql.whole(unit))
    return sql.is_null(column.ref), sql.clamp(scaled, sql.whole(limits[0]), sql.whole(limits[1]))


def _units_of_float(column: SqlColumn, grid: _Grid, limits: Limits) -> Units:
    value = _float(column)
    missing = exp.Or(this=sql.is_null(value), expression=sql.is_nan(value.copy()))
    inside = sql.clamp(value.copy(), sql.double(grid.text(limits[0])), sql.double(grid.text(limits[1])))
    if grid.scale == 0:
        return missing, sql.cast(exp.Floor(this=inside), "BIGINT")
    unit = sql.double(f"1e{grid.scale}")
    scaled = exp.Mul(this=inside, expression=unit)
    nearest = exp.Floor(this=exp.Add(this=scaled, expression=sql.double("0.5")))
    back = exp.LT(
        this=inside.copy(), expression=exp.Div(this=nearest.copy(), expression=unit.copy(), typed=True)
    )
    step = sql.choose((back, sql.whole(1)), otherwise=sql.whole(0))
    return missing, sql.paren(exp.Sub(this=sql.cast(nearest, "BIGINT"), expression=step))


def _units_of_decimal(column: SqlColumn, grid: _Grid, limits: Limits) -> Units:
    if len(str(grid.reach)) + column.scale > 36:
        raise _refuse(column, "numbers with that many digits", "narrower bounds", "a coarser grid")
    shift = 10 ** max(column.scale - grid.scale, 0), 10 ** max(grid.scale - column.scale, 0)
    low, high = limits[0] * shift[0] // shift[1], -(-limits[1] * shift[0] // shift[1])
    value = sql.cast(column.ref, f"DECIMAL(38, {column.scale})")
    inside = sql.clamp(value, sql.decimal(low, column.scale), sql.decimal(high, column.scale))
    scaled = exp.Mul(this=inside, expression=sql.whole(10**grid.scale)) if grid.scale else inside
    units = sql.cast(exp.Floor(this=scaled), "BIGINT")
    return sql.is_null(column.ref), sql.clamp(units, sql.whole(limits[0]), sql.whole(limits[1]))


_UNITS: dict[Kind, Callable[[SqlColumn, _Grid, Limits], Units]] = {
    Kind.INTEGER: _units_of_integer,
    Kind.FLOAT: _units_of_float,
    Kind.TEXT: _units_of_float,
    Kind.DECIMAL: _units_of_decimal,
}


# --- dates, booleans, categories --------------------------------------------------------------


def _date(column: SqlColumn, attribute: Date) -> SqlExpr:
    kind, cast_to = column.kind, "DATE" if attribute.by_day else sql.MOMENT
    if kind is Kind.TEXT:
        value = sql.try_cast(column.ref, cast_to)
    elif kind is Kind.DATE and not attribute.by_day:  # a database may know years that its moments do not
        value = sql.cast(sql.clamp(column.ref, sql.day(date.min), sql.day(date.max)), cast_to)
    elif kind in (Kind.DATE, Kind.MOMENT):
        value = sql.cast(column.ref, cast_to)
    elif kind is Kind.FINE_MOMENT:
        value = sql.cast(sql.to_microseconds(column.ref), cast_to)
    else:
        raise _refuse(column, "dates", "a view with a date or a timestamp without time zone")
    if isinstance(attribute.lo, datetime) and isinstance(attribute.hi, datetime):
        first, end = sql.moment(attribute.lo), sql.moment(attribute.hi.replace(microsecond=999_999))
    else:
        first, end = sql.day(attribute.lo), sql.day(attribute.hi)
    ticks = sql.difference(value.copy(), first.copy(), "DAY" if attribute.by_day else "SECOND")
    below, above = _ends(attribute)
    missing = sql.is_null(value if kind is Kind.TEXT else column.ref)
    return sql.choose(
        (missing, _null_cell(attribute)),
        (exp.LT(this=value.copy(), expression=first), below),
        (exp.GT(this=value.copy(), expression=end), above),
        otherwise=sql.floor_div(ticks, attribute.ticks_per_cell),
    )


def _boolean(column: SqlColumn, attribute: Boolean) -> SqlExpr:
    zero, one = sql.whole(0), sql.whole(1)
    if column.kind in (Kind.BOOLEAN, Kind.TEXT):
        value = sql.try_cast(column.ref, "BOOLEAN") if column.kind is Kind.TEXT else column.ref
        return sql.choose((sql.is_null(value), _null_cell(attribute)), (value.copy(), one), otherwise=zero)
    if column.kind is Kind.FLOAT:
        value = sql.nan_to_null(_float(column))
    elif column.kind in (Kind.INTEGER, Kind.DECIMAL):
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
            (exp.EQ(this=value.copy(), expression=_key(key)), sql.whole(tick))
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
    numbers = [value for value in attribute.values if not isinstance(value, str)]
    if texts:
        if column.kind is not Kind.TEXT:
            raise _refuse(column, "categories of texts", "list its values as whole numbers")
        return sql.cast(column.ref, "TEXT"), texts
    largest = max(abs(value) for value in numbers)
    if column.kind in (Kind.FLOAT, Kind.TEXT) and largest < _EXACT_IN_FLOAT:
        return sql.nan_to_null(_float(column)), [float(value) for value in numbers]
    if column.kind is Kind.INTEGER and largest < _LARGEST_BOUND:
        return column.ref, numbers
    if column.kind is Kind.DECIMAL and column.scale == 0 and largest < _LARGEST_BOUND:
        return sql.cast(column.ref, "INT128"), numbers
    raise _refuse(column, "categories of whole numbers")


def _key(key: str | int | float) -> SqlExpr:
    if isinstance(key, str):
        return sql.string(key)
    return sql.double(repr(key)) if isinstance(key, float) else sql.whole(key)


def _float(column: SqlColumn) -> SqlExpr:
    return sql.try_cast(column.ref, "DOUBLE") if column.kind is Kind.TEXT else sql.cast(column.ref, "DOUBLE")
