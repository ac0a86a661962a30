"""Values and distances of a column as people type them and as they read them.

Whatever a command line, a form or a policy file holds is text. ``"40,000"``, ``"2024-12-31"``, ``"7 days"``
and ``"true"`` become cells and numbers of cells here, and cells become such text again.
"""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction

from blowfishdb.core.attribute import Attribute
from blowfishdb.core.attributes import Boolean, Category, Integer, Real
from blowfishdb.core.dates import Date
from blowfishdb.core.errors import InvalidInput, InvalidValue
from blowfishdb.core.values import number, text

_GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
_DURATION = re.compile(r"(\d+(?:\.\d+)?) *(second|minute|hour|day|week)s?")
_TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_MISSING = "missing"
_GROUP_FROM = 10_000  # below, digits stay together: 1984 is more often a year than an amount


# --- from what was typed ------------------------------------------------------------------------


def typed_cell(attribute: Attribute, value: object) -> int:
    """The cell of a value of the column, perhaps typed as text; ``"missing"`` where that has a cell."""
    if not isinstance(value, str):
        return attribute.cell(value)
    try:
        return attribute.cell(value)
    except InvalidValue as refused:
        typed = value.strip()
        if attribute.has_missing_cell and typed.lower() == _MISSING:
            return attribute.value_count
        meant = _meant(attribute, typed)
        if meant is None:
            raise refused if isinstance(attribute, Category | Date) else _not_one(attribute, value) from None
        return attribute.cell(meant)


def _meant(attribute: Attribute, typed: str) -> object:
    """What a text stands for in a column of this kind; None if nothing."""
    if isinstance(attribute, Boolean):
        return _TRUTHS.get(typed.lower())
    if isinstance(attribute, Category):
        if typed in attribute.values:
            return typed
        return int(typed) if re.fullmatch(r"[+-]?\d{1,18}", typed) else None
    if isinstance(attribute, Date):
        return None
    try:
        return number(_ungrouped(typed), "A value", InvalidValue)
    except InvalidInput:
        return None


def _not_one(attribute: Attribute, value: str) -> InvalidValue:
    kind = "True or False" if isinstance(attribute, Boolean) else "a number"
    return InvalidValue(f"{value!r} is not {kind}, and this column holds nothing else.")


def typed_distance(attribute: Attribute, distance: object) -> object:
    """A distance as the column's ``threshold`` takes it, from ``"10,000"``, ``"0.5"`` or ``"7 days"``."""
    if not isinstance(distance, str):
        return distance
    typed = distance.strip()
    duration = _DURATION.fullmatch(typed)
    if duration and isinstance(attribute, Date):
        try:
            seconds = Fraction(duration[1]) * _SECONDS[duration[2]]
            return timedelta(microseconds=int(seconds * 10**6))
        except (OverflowError, ValueError):
            raise InvalidValue("This distance is longer than any column of dates.") from None
    return _ungrouped(typed)


def _ungrouped(typed: str) -> str:
    return typed.replace(",", "") if _GROUPED.fullmatch(typed) else typed


# --- and back -----------------------------------------------------------------------------------


def written_cell(attribute: Attribute, cell: int) -> str:
    """A text that ``typed_cell`` reads as this cell."""
    if attribute.has_missing_cell and cell == attribute.value_count:
        return _MISSING
    lowest = attribute.lower(cell)
    return str(lowest) if isinstance(attribute, Category | Boolean) else text(lowest)


def shown_cell(attribute: Attribute, cell: int) -> str:
    """A cell as a person reads it: ``"40,000"``, ``"30–39"``, ``"1984"``."""
    missing = attribute.has_missing_cell and cell == attribute.value_count
    if missing or not isinstance(attribute, Integer | Real):
        return attribute.label(cell)
    ends = [Fraction(str(end)) for end in (attribute.lower(cell), attribute.upper(cell))]
    if all(abs(end) < _GROUP_FROM for end in ends):
        return attribute.label(cell)
    return "–".join(dict.fromkeys(map(grouped, ends)))


def grouped(amount: int | Fraction) -> str:
    """A number with its thousands set apart: 10,000 and 1,234.5."""
    whole, point, rest = text(amount).partition(".")
    return f"{int(whole):,}{point}{rest}" if "/" not in whole and whole != "-0" else text(amount)


def data_distance(attribute: Attribute, cells: int) -> Fraction:
    """How far apart values can be and still be at most ``cells`` cells apart, in data units."""
    return cells / attribute.in_cells(1)


def shown_distance(attribute: Attribute, cells: int) -> str:
    """The same as a person reads it: ``"10,000"``, ``"7 days"``, ``"2 places"``."""
    unit = attribute.unit if isinstance(attribute, Date) else "place"
    if isinstance(attribute, Integer | Real):
        return grouped(data_distance(attribute, cells))
    return f"{cells:,} {unit}{'s' if cells != 1 else ''}"


def written_distance(attribute: Attribute, cells: int) -> str:
    """A text that ``typed_distance`` and ``threshold`` read as this number of cells."""
    if isinstance(attribute, Date):
        return shown_distance(attribute, cells).replace(",", "")
    return text(data_distance(attribute, cells))
