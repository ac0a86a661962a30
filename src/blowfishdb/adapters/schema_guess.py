"""What a column holds, guessed from the type that the database gives it and from its measures.

A type that the database declares is believed. Texts, which is all that a CSV file has, are what nearly all
of them can be read as: whole numbers, numbers, dates, booleans, or else categories.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, final

from blowfishdb.adapters import friendly_limits
from blowfishdb.adapters.curator_rows import Rows
from blowfishdb.adapters.schema_measures import DATES, NUMBERS, Extent, Measured, as_number
from blowfishdb.adapters.sql_engine import Kind, SqlColumn
from blowfishdb.core.attribute import Attribute
from blowfishdb.core.domain import Boolean, Category

MOST_VALUES: Final = 100
"""A column of texts with more different values than this is not proposed as a category."""
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
_SOME_MISSING: Final = "Some values are missing: say how they count."
_SOME_OTHER: Final = "Some values cannot be read as this type, and count as missing."
_CHECK: Final = "The limits follow the data: replace or confirm them."
_BOTH: Final = "False and True."


@final
@dataclass(frozen=True)
class Guess:
    """How a column could be declared, and what its curator should look at."""

    attribute: Attribute | None
    note: str
    looks_like_id: bool = False


def guess(rows: Rows, column: SqlColumn, measured: Measured | None) -> Guess:
    """The best declaration that can be proposed; without measures, a boolean is the only one."""
    named = _named_like_id(column.name)
    if column.kind is Kind.BOOLEAN:
        return Guess(Boolean(), _BOTH)
    if column.kind is Kind.OTHER:
        identifier = column.type.upper() == "UUID"
        return Guess(None, _ID if identifier else _OTHER, identifier or named)
    if measured is None:
        made = Guess(None, _UNREADABLE if rows.readable else _UNKNOWN)
    elif column.kind in NUMBERS:
        made = _of_numbers(rows, column, measured)
    elif column.kind in DATES:
        made = _of_dates(column, measured)
    else:
        made = _of_texts(rows, column, measured)
    return Guess(made.attribute, _ID_NAME, True) if named and not made.looks_like_id else made


def _named_like_id(name: str) -> bool:
    plain = name.lower().replace("-", "_").replace(" ", "_")
    camel = len(name) > 2 and name.endswith(("Id", "ID")) and name[-3].islower()
    return plain in ("id", "uuid", "guid", "ssn") or plain.endswith(("_id", "_uuid")) or camel


def _all_different(measured: Measured) -> bool:
    return measured.present >= _ENOUGH and measured.different >= _NEARLY_ALL * measured.present


def _notes(first: str, measured: Measured, read: int | None = None) -> str:
    partly = read is not None and read < measured.present
    missing = measured.present < measured.rows
    return " ".join((first, *([_SOME_OTHER] if partly else []), *([_SOME_MISSING] if missing else [])))


# --- numbers ----------------------------------------------------------------------------------


def _of_numbers(rows: Rows, column: SqlColumn, measured: Measured) -> Guess:
    found = measured.numbers
    if found is None or not found.count:
        return Guess(None, _EMPTY)
    declared_broken = column.kind is Kind.FLOAT or (column.kind is Kind.DECIMAL and column.scale > 0)
    whole = not measured.fractions and not declared_broken
    if "BOOL" in column.type.upper() and whole and found.low >= 0 and found.high <= 1:
        return Guess(Boolean(), _notes(_BOTH, measured))
    return _numeric(rows, column, measured, found, whole)


def _numeric(rows: Rows, column: SqlColumn, measured: Measured, found: Extent, whole: bool) -> Guess:
    low, high = _exact(found.low), _exact(found.high)
    note = _notes(_CHECK, measured, found.count)
    if not whole:
        return Guess(friendly_limits.reals(low, high, _places(rows, column)), note)
    attribute = friendly_limits.integers(int(low), int(high))
    return Guess(attribute, _ID, True) if _all_different(measured) else Guess(attribute, note)


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
    return _dated(measured, measured.days, column.kind is not Kind.DATE)


def _dated(measured: Measured, found: Extent, timed: bool) -> Guess:
    first, last = (date.fromisoformat(str(each)[:10]) for each in (found.low, found.high))
    make = friendly_limits.dates if timed else friendly_limits.days
    return Guess(make(first, last), _notes(_CHECK, measured, found.count))


def _of_texts(rows: Rows, column: SqlColumn, measured: Measured) -> Guess:
    """Texts such as 02139 are codes, whatever number they look like."""
    if not measured.present:
        return Guess(None, _EMPTY)
    numbers, days = measured.numbers, measured.days
    if numbers is not None and _enough(numbers, measured) and not measured.codes:
        return _numeric(rows, column, measured, numbers, not measured.fractions)
    if days is not None and _enough(days, measured):
        return _dated(measured, days, measured.timed > 0)
    if measured.truths == measured.present:
        return Guess(Boolean(), _notes(_BOTH, measured))
    if _all_different(measured):
        return Guess(None, _ID, True)
    if measured.different > MOST_VALUES:
        return Guess(None, _MANY)
    found = rows.select(column.engine.text(column), distinct=True, most=MOST_VALUES + 2)
    values = sorted(str(value) for (value,) in found if value is not None)
    return Guess(Category(values), _notes(_CHECK, measured))


def _enough(found: Extent, measured: Measured) -> bool:
    return found.count > 0 and found.count >= _NEARLY_ALL * measured.present
