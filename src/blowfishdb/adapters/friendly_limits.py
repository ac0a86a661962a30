"""Friendly limits: round numbers and whole months around what was found, for a curator to look at."""

from __future__ import annotations

import math
from calendar import monthrange
from datetime import date, timedelta
from fractions import Fraction
from typing import Final

from blowfishdb.core.dates import Date
from blowfishdb.core.domain import Integer, Real

_CELLS: Final = 10_000  # more cells than that are seldom wanted, and always possible
_WHOLE: Final = 2_000_000  # whole numbers are told apart as long as there are no more of them
_PARTS: Final = 10  # bounds are multiples of about a tenth of the range
_FINEST: Final = 6  # decimal places
_YEAR: Final = timedelta(days=366)
_SEASON: Final = timedelta(days=60)
_FEW_DAYS: Final = timedelta(days=2)


def integers(low: int, high: int) -> Integer:
    """Whole numbers around those found, each by itself; in cells of 10, 100 … only where they are millions.

    A million cells cost no more than ten, and a sum over cells of one number is a sum of numbers.
    """
    first, last, step = _around(Fraction(low), Fraction(high), Fraction(1), _WHOLE)
    return Integer(int(first), int(last), int(step))


def reals(low: Fraction, high: Fraction, places: int) -> Real:
    """Numbers around those found, on a grid of so many decimal places or a coarser one."""
    return Real(*_around(low, high, Fraction(1, 10 ** min(places, _FINEST))))


def dates(first: date, last: date) -> Date:
    """Whole months or years around the days found, in cells of days; of hours or minutes if they are few."""
    length = last - first
    unit = "minute" if length <= _FEW_DAYS else "hour" if length <= _SEASON else "day"
    return _whole_years(first, last) if length > _YEAR else _whole_months(first, last, unit)


def days(first: date, last: date) -> Date:
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
