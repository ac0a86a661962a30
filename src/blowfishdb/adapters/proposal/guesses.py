"""What a column holds, guessed from the type that the database gives it and from its measures.

A type that the database declares is believed. Texts, which is all that a CSV file has, are what nearly all
of them can be read as: whole numbers, numbers, dates, booleans, or else categories.

Measures of columns: how many values there are, how far they reach, and what they can be read as.

Everything is asked with the expressions that later count, so a proposal never reads a value differently from
an answer. Many columns are measured by one statement, because a file may be long.

Friendly limits: round numbers and whole months around what was found, for a curator to look at.
"""

from __future__ import annotations

import math
from calendar import monthrange
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import Any, Final, final

from sqlglot import exp

from blowfishdb.adapters.proposal.rows import Rows
from blowfishdb.adapters.sql import values as sql
from blowfishdb.adapters.sql.engines import ColumnKind, SqlColumn
from blowfishdb.adapters.sql.values import SqlExpr
from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.attributes import Boolean, Category, Integer, Real
from blowfishdb.core.domain.dates import Date
from blowfishdb.core.errors import SourceError

DATES: Final = (ColumnKind.DATE, ColumnKind.MOMENT, ColumnKind.FINE_MOMENT)
NUMBERS: Final = (ColumnKind.INTEGER, ColumnKind.FLOAT, ColumnKind.DECIMAL, ColumnKind.NUMBER)
_TOGETHER: Final = 16  # columns in one statement
_LARGEST: Final = 300  # powers of ten beyond which a float is taken for infinite


@final
@dataclass(frozen=True)
class Extent:
    """How many values can be read in one way, and the least and the greatest of them."""

    count: int
    low: Any
    high: Any


@final
@dataclass(frozen=True, repr=False)
class Measured:
    """A column in numbers; an extent is None where the database has no such reading."""

    rows: int
    present: int
    different: int
    numbers: Extent | None
    fractions: int
    """Numbers that are not whole."""
    codes: int
    """Texts that begin with a zero and are not a number below one."""
    days: Extent | None
    timed: int
    """Texts that are longer than a date."""
    truths: int
    """Texts that are a truth value."""


def measure(rows: Rows, columns: Iterable[SqlColumn]) -> dict[str, Measured]:
    """Every column that could be read, by name."""
    measures: dict[str, Measured] = {}
    for part in _parts(column for column in columns if column.kind is not ColumnKind.OTHER):
        try:
            measures |= _measured(rows, part)
        except SourceError:  # one of them cannot be read: each for itself
            for column in part:
                try:
                    measures |= _measured(rows, [column])
                except SourceError:
                    continue
    return measures


def _parts(columns: Iterator[SqlColumn]) -> Iterator[list[SqlColumn]]:
    while part := list(islice(columns, _TOGETHER)):
        yield part


def _measured(rows: Rows, columns: list[SqlColumn]) -> dict[str, Measured]:
    asked = [(column.name, name, value) for column in columns for name, value in _aggregates(column).items()]
    (answers,) = rows.select(*(value for _, _, value in asked))
    measures: dict[str, dict[str, Any]] = {column.name: {} for column in columns}
    for (column, name, _), answer in zip(asked, answers, strict=True):
        measures[column][name] = answer
    return {column: _measures(values) for column, values in measures.items()}


def _measures(values: Mapping[str, Any]) -> Measured:
    def count(name: str) -> int:
        return int(values.get(name, 0))

    def extent(name: str) -> Extent | None:
        if name not in values:
            return None
        return Extent(count(name), values[f"{name} low"], values[f"{name} high"])

    return Measured(
        rows=count("rows"),
        present=count("present"),
        different=count("different"),
        numbers=extent("numbers"),
        fractions=count("fractions"),
        codes=count("codes"),
        days=extent("days"),
        timed=count("timed"),
        truths=count("truths"),
    )


# --- what is asked ----------------------------------------------------------------------------


def _aggregates(column: SqlColumn) -> dict[str, SqlExpr]:
    asked: dict[str, SqlExpr] = {
        "rows": exp.Count(this=exp.Star()),
        "present": exp.Count(this=column.ref),
        "different": exp.Count(this=exp.Distinct(expressions=[column.ref])),
    }
    if column.kind is ColumnKind.BOOLEAN:
        return asked
    number = None if column.kind in DATES else as_number(column)
    day = None if column.kind in NUMBERS else _as_day(column)
    if number is not None:
        broken = exp.NEQ(this=number.copy(), expression=exp.Round(this=number.copy()))
        asked |= {**_extent("numbers", number), "fractions": _how_many(broken)}
    if day is not None:
        asked |= _extent("days", day)
    return asked if column.kind in (*DATES, *NUMBERS) else asked | _measured_texts(column)


def _measured_texts(column: SqlColumn) -> dict[str, SqlExpr]:
    text, truth = column.engine.text(column), column.engine.boolean(column)
    zero, below_one = (exp.Like(this=text.copy(), expression=sql.string(sign)) for sign in ("0_%", "0.%"))
    long = exp.GT(this=exp.Length(this=text.copy()), expression=sql.whole(10))
    asked = {
        "codes": _how_many(exp.and_(zero, exp.Not(this=below_one), copy=False)),
        "timed": _how_many(long),
    }
    return asked if truth is None else asked | {"truths": exp.Count(this=truth)}


def as_number(column: SqlColumn) -> SqlExpr | None:
    """The number that a value is, NULL for one that is none or not finite; None: there is no such reading."""
    if column.kind is ColumnKind.INTEGER:
        return column.ref
    value = (
        column.engine.decimal(column) if column.kind is ColumnKind.DECIMAL else column.engine.number(column)
    )
    if value is None or (column.kind is ColumnKind.DECIMAL and not column.engine.free_decimals):
        return value
    ends = (sql.double(f"-1e{_LARGEST}"), sql.double(f"1e{_LARGEST}"))
    inside = exp.Between(this=value, low=ends[0], high=ends[1])
    return sql.choose((inside, value.copy()), otherwise=exp.Null())


def _as_day(column: SqlColumn) -> SqlExpr | None:
    """The day of a value, moved into the years that Python knows; NULL for one that is none."""
    day = column.engine.to_date(column)
    if day is None:
        return None
    ends = (column.engine.day_literal(date.min), column.engine.day_literal(date.max))
    return sql.choose((day.missing, exp.Null()), otherwise=sql.clamp(day.value, *ends))


def _extent(name: str, value: SqlExpr) -> dict[str, SqlExpr]:
    return {
        name: exp.Count(this=value.copy()),
        f"{name} low": exp.Min(this=value.copy()),
        f"{name} high": exp.Max(this=value.copy()),
    }


def _how_many(condition: SqlExpr) -> SqlExpr:
    return exp.Count(this=sql.choose((condition, sql.whole(1)), otherwise=exp.Null()))


_CELLS: Final = 10_000  # more cells than that are seldom wanted, and always possible
_WHOLE: Final = 2_000_000  # whole numbers are told apart as long as there are no more of them
_PARTS: Final = 10  # bounds are multiples of about a tenth of the range
_FINEST: Final = 6  # decimal places
_YEAR: Final = timedelta(days=366)
_SEASON: Final = timedelta(days=60)
_FEW_DAYS: Final = timedelta(days=2)


def friendly_integers(low: int, high: int) -> Integer:
    """Whole numbers around those found, each by itself; in cells of 10, 100 … only where they are millions.

    A million cells cost no more than ten, and a sum over cells of one number is a sum of numbers.
    """
    first, last, step = _around(Fraction(low), Fraction(high), Fraction(1), _WHOLE)
    return Integer(int(first), int(last), int(step))


def friendly_reals(low: Fraction, high: Fraction, places: int) -> Real:
    """Numbers around those found, on a grid of so many decimal places or a coarser one."""
    return Real(*_around(low, high, Fraction(1, 10 ** min(places, _FINEST))))


def friendly_dates(first: date, last: date) -> Date:
    """Whole months or years around the days found, in cells of days; of hours or minutes if they are few."""
    length = last - first
    unit = "minute" if length <= _FEW_DAYS else "hour" if length <= _SEASON else "day"
    return _whole_years(first, last) if length > _YEAR else _whole_months(first, last, unit)


def friendly_days(first: date, last: date) -> Date:
    """The same for a column without times of day."""
    return _whole_years(first, last) if last - first > _YEAR else _whole_months(first, last, "day")


def _whole_years(first: date, last: date) -> Date:
    return Date(date(first.year, 1, 1), date(last.year, 12, 31))


def _whole_months(first: date, last: date, unit: str) -> Date:
    end = last.replace(day=monthrange(last.year, last.month)[1])
    return Date(first.replace(day=1), end, unit)  # type: ignore[arg-type]


def _around(
    low: Fraction, high: Fraction, finest: Fraction, cells: int = _CELLS
) -> tuple[Fraction, Fraction, Fraction]:
    """Round bounds outside, and a power of ten that divides them.

    Bounds are multiples of 1, 2 or 5 times a power of ten that is not smaller than the grid, so they are
    multiples of the grid, too.
    """
    length = high - low or abs(high)
    grid = max(finest, _power(length / cells)) if length else finest
    unit = max(_round_up(length / _PARTS), grid)
    first, last = math.floor(low / unit) * unit, math.ceil(high / unit) * unit
    return first, last if last > first else first + unit, grid


def _round_up(value: Fraction) -> Fraction:
    """The smallest of 1, 2 and 5 times a power of ten that is not below ``value``."""
    if value <= 0:
        return Fraction(1)
    power = _power(value)
    return next((power / part for part in (5, 2) if power / part >= value), power)


def _power(value: Fraction) -> Fraction:
    """The smallest power of ten that is not below ``value``."""
    power = Fraction(10) ** (len(str(value.numerator)) - len(str(value.denominator)) + 1)
    while power / 10 >= value:
        power /= 10
    return power


MOST_VALUES: Final = 100
"""A column of texts with more different values than this is not proposed as a category."""
RARE: Final = 10
"""A category that fewer rows have is not proposed by name: it could tell who they are."""
OTHER: Final = "other"
_NEARLY_ALL: Final = Fraction(95, 100)
_ENOUGH: Final = 20  # among fewer rows, different values say little
_SAMPLE: Final = 1000

_ID: Final = "Nearly every row has a value of its own: leave it out, or name it as the person of each row."
_ID_NAME: Final = "It is called like an identifier: leave it out, or name it as the person of each row."
_EMPTY: Final = "It has no values to propose limits from: declare it yourself, or leave it out."
_MANY: Final = f"It has more than {MOST_VALUES} different texts: list those that matter, or leave it out."
_OTHER: Final = "This type cannot be counted: convert it in a view, or leave it out."
_UNKNOWN: Final = "It was not read: type its limits yourself."
_UNREADABLE: Final = "It could not be read: declare it yourself, or leave it out."
_SOME_MISSING: Final = "Some values are missing: is it secret who has none?"
_SOME_RARE: Final = (
    f"Values of fewer than {{rare}} rows are folded into '{OTHER}': list those that may be known."
)
_SOME_OTHER: Final = "Some values cannot be read as this type, and count as missing."
_CHECK: Final = "The limits follow the data, rounded outward: replace or confirm them."
_LISTED: Final = "The values are those of the data: replace or confirm them."
_BOTH: Final = "False and True."


@final
@dataclass(frozen=True)
class Guess:
    """How a column could be declared, and what its curator should look at."""

    attribute: Attribute | None
    note: str
    looks_like_id: bool = False
    rare: tuple[str, ...] = ()
    """Values that so few rows have that they are folded into another, for the curator to look at."""


def guess(rows: Rows, column: SqlColumn, measured: Measured | None, rare: int = RARE) -> Guess:
    """The best declaration that can be proposed; without measures, a boolean is the only one.

    Where values are missing, a secret cell of their own is proposed, until the curator says otherwise.
    """
    named = _named_like_id(column.name)
    if column.kind is ColumnKind.BOOLEAN:
        return Guess(Boolean(), _BOTH) if measured is None else _booleans(measured)
    if column.kind is ColumnKind.OTHER:
        identifier = column.type.upper() == "UUID"
        return Guess(None, _ID if identifier else _OTHER, identifier or named)
    if measured is None:
        made = Guess(None, _UNREADABLE if rows.readable else _UNKNOWN)
    elif column.kind in NUMBERS:
        made = _of_numbers(rows, column, measured)
    elif column.kind in DATES:
        made = _of_dates(column, measured)
    else:
        made = _of_texts(rows, column, measured, rare)
    return Guess(made.attribute, _ID_NAME, True, made.rare) if named and not made.looks_like_id else made


def _named_like_id(name: str) -> bool:
    plain = name.lower().replace("-", "_").replace(" ", "_")
    camel = len(name) > 2 and name.endswith(("Id", "ID")) and name[-3].islower()
    return plain in ("id", "uuid", "guid", "ssn") or plain.endswith(("_id", "_uuid")) or camel


def _all_different(measured: Measured) -> bool:
    return measured.present >= _ENOUGH and measured.different >= _NEARLY_ALL * measured.present


def _notes(first: str, measured: Measured, read: int) -> str:
    partly, missing = read < measured.present, read < measured.rows
    return " ".join((first, *([_SOME_OTHER] if partly else []), *([_SOME_MISSING] if missing else [])))


def _declared(attribute: Attribute, note: str, measured: Measured, read: int) -> Guess:
    """A proposal for a column of which so many values could be ``read``."""
    rule = "value" if read < measured.rows else "none"
    return Guess(replace(attribute, missing=rule), _notes(note, measured, read))  # type: ignore[type-var]


def _booleans(measured: Measured) -> Guess:
    return _declared(Boolean(), _BOTH, measured, measured.present)


# --- numbers ----------------------------------------------------------------------------------


def _of_numbers(rows: Rows, column: SqlColumn, measured: Measured) -> Guess:
    extent = measured.numbers
    if extent is None or not extent.count:
        return Guess(None, _EMPTY)
    declared_broken = column.kind is ColumnKind.FLOAT or (
        column.kind is ColumnKind.DECIMAL and column.scale > 0
    )
    whole = not measured.fractions and not declared_broken
    if "BOOL" in column.type.upper() and whole and extent.low >= 0 and extent.high <= 1:
        return _booleans(measured)
    return _numeric(rows, column, measured, extent, whole)


def _numeric(rows: Rows, column: SqlColumn, measured: Measured, extent: Extent, whole: bool) -> Guess:
    low, high = _exact(extent.low), _exact(extent.high)
    if not whole:
        reals = friendly_reals(low, high, _places(rows, column))
        return _declared(reals, _CHECK, measured, extent.count)
    made = _declared(friendly_integers(int(low), int(high)), _CHECK, measured, extent.count)
    return Guess(made.attribute, _ID, True) if _all_different(measured) else made


def _exact(value: Any) -> Fraction:
    return Fraction(str(value)) if isinstance(value, (float, Decimal)) else Fraction(int(value))


def _places(rows: Rows, column: SqlColumn) -> int:
    """The decimal places with which the first numbers print."""
    value = as_number(column)
    assert value is not None
    sample = [Decimal(str(each)) for (each,) in rows.select(value, most=_SAMPLE) if each is not None]
    exponents = [each.normalize().as_tuple().exponent for each in sample]
    return max((-each for each in exponents if isinstance(each, int) and each < 0), default=0)


# --- dates and texts --------------------------------------------------------------------------


def _of_dates(column: SqlColumn, measured: Measured) -> Guess:
    if measured.days is None or not measured.days.count:
        return Guess(None, _EMPTY)
    return _dated(measured, measured.days, column.kind is not ColumnKind.DATE)


def _dated(measured: Measured, extent: Extent, timed: bool) -> Guess:
    first, last = (date.fromisoformat(str(each)[:10]) for each in (extent.low, extent.high))
    make = friendly_dates if timed else friendly_days
    return _declared(make(first, last), _CHECK, measured, extent.count)


def _of_texts(rows: Rows, column: SqlColumn, measured: Measured, rare: int) -> Guess:
    """Texts such as 02139 are codes, whatever number they look like."""
    if not measured.present:
        return Guess(None, _EMPTY)
    numbers, days = measured.numbers, measured.days
    if numbers is not None and _enough(numbers, measured) and not measured.codes:
        return _numeric(rows, column, measured, numbers, not measured.fractions)
    if days is not None and _enough(days, measured):
        return _dated(measured, days, measured.timed > 0)
    if measured.truths == measured.present:
        return _booleans(measured)
    if _all_different(measured):
        return Guess(None, _ID, True)
    if measured.different > MOST_VALUES:
        return Guess(None, _MANY)
    return _listed(rows, column, measured, rare)


def _listed(rows: Rows, column: SqlColumn, measured: Measured, rare: int) -> Guess:
    """A category; what fewer than ``rare`` rows have counts as "other", which is listed last."""
    counts = rows.counts(column.engine.text(column), most=MOST_VALUES + 2)
    values = {str(value): count for value, count in counts if value is not None}
    few = sorted(value for value, count in values.items() if count < rare and value != OTHER)
    names = sorted(value for value in values if value not in few and value != OTHER)
    if not few:
        return _declared(Category(sorted(values)), _LISTED, measured, measured.present)
    note = f"{_LISTED} {_SOME_RARE.format(rare=rare)}"
    folding = Category([*names, OTHER], outside="clamp")
    return replace(_declared(folding, note, measured, measured.present), rare=tuple(few))


def _enough(extent: Extent, measured: Measured) -> bool:
    return extent.count > 0 and extent.count >= _NEARLY_ALL * measured.present
