"""Constants that columns are compared with, and how a raw value compares with one.

Numbers compare by their decimal text (0.1 is 1/10), and a date stands for its whole day when a moment is
compared with it: ``between("2024-01-01", "2024-01-31")`` includes the afternoon of the last day.
"""

from __future__ import annotations

import math
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction

from blowfishdb.core.attribute import Attribute
from blowfishdb.core.domain import Category, Date
from blowfishdb.core.errors import InvalidPredicate, InvalidValue
from blowfishdb.core.values import exact, is_null, moment, plain, text

Constant = bool | int | float | Fraction | Decimal | str | date
"""What a column can be compared with."""


def constant(value: object, column: str) -> Constant:
    """A typed constant as a plain Python value."""
    if is_null(value):
        raise InvalidPredicate(
            f"{column!r} cannot be compared with a missing value.", fixes=(f"col({column!r}).is_missing()",)
        )
    found = plain(value)
    if not isinstance(found, (bool, int, float, Fraction, Decimal, str, date)):
        raise InvalidPredicate(
            f"{column!r} can be compared with a number, a text, a date or a boolean, "
            f"not with {type(value).__name__}."
        )
    if isinstance(found, (float, Decimal)) and not math.isfinite(found):
        raise InvalidPredicate(f"{column!r} cannot be compared with {found}, which is not finite.")
    if isinstance(found, date):
        return moment(found, f"The moment that {column!r} is compared with", InvalidPredicate)
    return found


def sign(value: object, other: Constant, attribute: Attribute | None, *, needs_order: bool) -> int:
    """-1, 0 or 1 as a raw value is below, equal to or above a constant.

    The attribute, where known, says whether a text is a date or has a place in a list.
    """
    value = plain(value)
    if isinstance(attribute, Category):
        left, right = _rank(value, attribute), _rank(other, attribute)
        return (left > right) - (left < right)
    if isinstance(attribute, Date) or isinstance(value, date) or isinstance(other, date):
        earlier, later = (moment(v, "The other side of a date", InvalidPredicate) for v in (value, other))
        earlier, later = _same_precision(earlier, later)
        return (earlier > later) - (earlier < later)
    if isinstance(value, str) and isinstance(other, str):
        if needs_order and value != other:
            raise InvalidPredicate("Only a domain knows the order of texts.", fixes=("pass domain=",))
        return int(value != other)
    x, y = (int(v) if isinstance(v, bool) else exact(v) for v in (value, other))
    if x is None or y is None:
        raise InvalidPredicate(f"{type(value).__name__} and {type(other).__name__} cannot be compared.")
    return (x > y) - (x < y)


def _rank(value: object, listed: Category) -> int:
    """The place of a value in the list; anything that is not listed comes after it."""
    try:
        return listed.span(value)[0]
    except InvalidValue:
        return listed.ticks


def _same_precision(value: date, constant: date) -> tuple[date, date]:
    """A date stands for its whole day when a moment is compared with it."""
    if isinstance(value, datetime) and not isinstance(constant, datetime):
        return value.date(), constant
    if isinstance(constant, datetime) and not isinstance(value, datetime):
        return datetime.combine(value, time()), constant
    return value, constant


def shown(value: Constant) -> str:
    """A constant as it is written in a condition."""
    if isinstance(value, str):
        return repr(value)
    if isinstance(value, date):
        return f"'{text(value)}'"
    return text(value) if isinstance(value, Fraction) else str(value)
