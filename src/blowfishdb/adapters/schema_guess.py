"""What a column holds, guessed from the type that the database gives it and from its measures.

A type that the database declares is believed. Texts, which is all that a CSV file has, are what nearly all
of them can be read as: whole numbers, numbers, dates, booleans, or else categories.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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
    if column.kind is Kind.BOOLEAN:
        return Guess(Boolean(), _BOTH) if measured is None else _booleans(measured)
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
    found = measured.numbers
    if found is None or not found.count:
        return Guess(None, _EMPTY)
    declared_broken = column.kind is Kind.FLOAT or (column.kind is Kind.DECIMAL and column.scale > 0)
    whole = not measured.fractions and not declared_broken
    if "BOOL" in column.type.upper() and whole and found.low >= 0 and found.high <= 1:
        return _booleans(measured)
    return _numeric(rows, column, measured, found, whole)


def _numeric(rows: Rows, column: SqlColumn, measured: Measured, found: Extent, whole: bool) -> Guess:
    low, high = _exact(found.low), _exact(found.high)
    if not whole:
        reals = friendly_limits.reals(low, high, _places(rows, column))
        return _declared(reals, _CHECK, measured, found.count)
    made = _declared(friendly_limits.integers(int(low), int(high)), _CHECK, measured, found.count)
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
    return _dated(measured, measured.days, column.kind is not Kind.DATE)


def _dated(measured: Measured, found: Extent, timed: bool) -> Guess:
    first, last = (date.fromisoformat(str(each)[:10]) for each in (found.low, found.high))
    make = friendly_limits.dates if timed else friendly_limits.days
    return _declared(make(first, last), _CHECK, measured, found.count)


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
    found = rows.counts(column.engine.text(column), most=MOST_VALUES + 2)
    values = {str(value): count for value, count in found if value is not None}
    few = sorted(value for value, count in values.items() if count < rare and value != OTHER)
    kept = sorted(value for value in values if value not in few and value != OTHER)
    if not few:
        return _declared(Category(sorted(values)), _LISTED, measured, measured.present)
    note = f"{_LISTED} {_SOME_RARE.format(rare=rare)}"
    folding = Category([*kept, OTHER], outside="clamp")
    return replace(_declared(folding, note, measured, measured.present), rare=tuple(few))


def _enough(found: Extent, measured: Measured) -> bool:
    return found.count > 0 and found.count >= _NEARLY_ALL * measured.present
