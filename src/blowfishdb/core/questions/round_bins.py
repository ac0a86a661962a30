"""Round bins: how a column is cut if nobody says how.

Bins begin at multiples of 1, 2, 5, 10, 20, 25, 50, 100 …, or of 0.1, 0.25 …, whatever the first declared
value is: decades of age are 20–29, 30–39. Dates are cut into months, quarters or years. The declaration alone
decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from fractions import Fraction
from itertools import count, takewhile
from typing import Final

from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.attributes import Integer, Real
from blowfishdb.core.domain.dates import Date
from blowfishdb.core.domain.values import Value
from blowfishdb.core.questions.form import ColumnForm

_STEPS: Final = (Fraction(1), Fraction(2), Fraction(5, 2), Fraction(5))
_MONTHS: Final = (1, 3, 6, 12, 24, 60, 120, 240, 600, 1_200)


def round_bins(name: str, attribute: Attribute, most: int) -> ColumnForm:
    """The column, cut into at most so many round bins; each value alone where there are no more values."""
    if not attribute.ordered or attribute.value_count <= most or most < 1:
        return ColumnForm(name)
    if isinstance(attribute, Integer | Real):
        return _numbers(name, attribute, most)
    if isinstance(attribute, Date) and not isinstance(attribute.lo, datetime):
        return _dates(name, attribute, most)
    return ColumnForm(name, bins=most)


def _numbers(name: str, attribute: Integer | Real, most: int) -> ColumnForm:
    lowest = Fraction(attribute.lo)
    grid = Fraction(attribute.step) if isinstance(attribute, Integer) else attribute.grid
    highest = Fraction(attribute.hi)
    for width in _widths(grid, 10 * (highest - lowest)):
        first = (lowest // width + 1) * width
        bins = 1 + (0 if first > highest else int((highest - first) // width) + 1)
        if bins > most:
            continue
        if lowest % width == 0:
            return _equal(name, attribute, width, grid, most)
        if (first - lowest) % grid:  # round values would cut through cells
            break
        starts = takewhile(lambda start: start <= highest, (first + step * width for step in count()))
        return ColumnForm(name, edges=(_value(lowest), *map(_value, starts)))
    return ColumnForm(name, bins=most)


def _equal(name: str, attribute: Attribute, width: Fraction, grid: Fraction, most: int) -> ColumnForm:
    """By their number where that says the same: it is the shorter question."""
    same = -(-attribute.value_count // most) * grid == width
    return ColumnForm(name, bins=most) if same else ColumnForm(name, width=_value(width))


def _widths(grid: Fraction, longest: Fraction) -> Iterator[Fraction]:
    """Round numbers that are whole numbers of cells, ascending."""
    power = Fraction(1)
    while power > grid:
        power /= 10
    while power * 10 <= grid:
        power *= 10
    while power <= longest:
        yield from (step * power for step in _STEPS if not step * power % grid)
        power *= 10


def _value(number: Fraction) -> Value:
    return int(number) if number.denominator == 1 else number


def _dates(name: str, attribute: Date, most: int) -> ColumnForm:
    """Weeks and hours begin where they begin; only days make months."""
    lowest, highest = attribute.lower(0), attribute.upper(attribute.value_count - 1)
    if attribute.unit != "day" or not isinstance(lowest, date) or not isinstance(highest, date):
        return ColumnForm(name, bins=most)
    for months in _MONTHS:
        starts = list(_month_starts(lowest, highest, months))
        if len(starts) < most:
            return ColumnForm(name, edges=(lowest, *starts))
    return ColumnForm(name, bins=most)


def _month_starts(lowest: date, highest: date, months: int) -> Iterator[date]:
    """The first days of so many months each, counted from January, behind the first value."""
    at = (lowest.year * 12 + lowest.month - 1) // months * months
    while (start := date(at // 12, at % 12 + 1, 1)) <= highest:
        if start > lowest:
            yield start
        at += months
        if at // 12 > date.max.year:
            return
