"""Columns of dates and of moments to the second.

Time zones are refused: a cell is a stretch of the wall clock, and a moment must fall into one of them only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, Literal, final, get_args

import numpy as np
from numpy.typing import NDArray

from blowfishdb.core.arrays import IntArray
from blowfishdb.core.domain.attribute import (
    Attribute,
    Missing,
    Outside,
    Ticks,
    beyond_ends,
    check_choices,
    freeze,
)
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.domain.values import moment, number, plain, text
from blowfishdb.core.errors import InvalidAttribute, InvalidBins, InvalidValue, ReversedBounds, TooLarge

Unit = Literal["second", "minute", "hour", "day", "week"]
_SECONDS: dict[Unit, int] = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}


PARTS: Final[Mapping[str, Callable[[date], int]]] = {
    "year": lambda day: day.year,
    "quarter": lambda day: (day.month + 2) // 3,
    "month": lambda day: day.month,
    "week": lambda day: day.isocalendar().week,
    "day": lambda day: day.day,
    "weekday": lambda day: day.isoweekday(),
    "hour": lambda day: day.hour if isinstance(day, datetime) else 0,
}
"""Parts of dates that come again: months of every year, weekdays (1 is Monday), weeks as in ISO 8601."""
MONTHS: Final = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MOST_CELLS: Final = 100_000


def length_of_time(written: object) -> object:
    """``"30 days"`` as a timedelta; everything else, and what names no unit, as it is."""
    if not isinstance(written, str):
        return written
    amount, _, unit = written.strip().partition(" ")
    seconds = next((s for name, s in _SECONDS.items() if unit.strip().lower() in (name, name + "s")), None)
    if seconds is None:
        return written
    microseconds = number(amount, "A number of " + unit.strip(), InvalidValue) * seconds * 10**6
    try:
        return timedelta(microseconds=int(microseconds))
    except OverflowError:
        raise InvalidValue(f"{written} is longer than any column of dates.") from None


@final
@dataclass(frozen=True, slots=True, init=False)
class Date(Attribute):
    """Dates, or moments to the second without time zone, in cells of one ``unit`` counted from ``lo``.

    With dates as bounds and a unit of days or weeks the values are dates; otherwise they are datetimes, and
    a date given as the upper bound includes that whole day.

    >>> bf.Date("2024-01-01", "2024-12-31", unit="week").size
    53
    """

    lo: date
    hi: date
    unit: Unit
    missing: Missing
    outside: Outside

    def __init__(
        self,
        lo: date | str,
        hi: date | str,
        unit: Unit = "day",
        *,
        missing: Missing = "none",
        outside: Outside = "clamp",
    ) -> None:
        if unit not in get_args(Unit):
            raise InvalidAttribute(f"The unit must be one of {', '.join(get_args(Unit))}, not {unit!r}.")
        low, high = (moment(v, f"The {w} bound", InvalidAttribute) for v, w in ((lo, "lower"), (hi, "upper")))
        if isinstance(low, datetime) or _SECONDS[unit] < _SECONDS["day"]:
            low = _as_datetime(low, time())
            high = _as_datetime(high, time(23, 59, 59)).replace(microsecond=0)
            if low.microsecond:
                raise InvalidAttribute("The lower bound must be a whole second.")
        elif isinstance(high, datetime):
            high = high.date()
        if high < low:
            raise ReversedBounds(f"The lower bound {lo} is after the upper bound {hi}.")
        check_choices(missing, outside)
        freeze(self, lo=low, hi=high, unit=unit, missing=missing, outside=outside)

    @property
    def by_day(self) -> bool:
        """Whether the values are dates rather than datetimes."""
        return not isinstance(self.lo, datetime)

    @property
    def _tick_length(self) -> timedelta:
        return timedelta(days=1) if self.by_day else timedelta(seconds=1)

    @property
    def ticks(self) -> int:
        return (self.hi - self.lo) // self._tick_length + 1

    @property
    def ticks_per_cell(self) -> int:
        return timedelta(seconds=_SECONDS[self.unit]) // self._tick_length

    @property
    def ordered(self) -> bool:
        return True

    def at(self, tick: int) -> date:
        return self.lo + tick * self._tick_length

    def span(self, value: object) -> tuple[int, int]:
        at = moment(value, "A value in a column of dates", InvalidValue)
        first = self._tick(at)
        if self.by_day:
            if isinstance(at, datetime) and at.time() != time():
                raise InvalidValue(f"{at} is finer than the days of this column.")
        elif not isinstance(at, datetime):
            return first, first + _SECONDS["day"]
        elif at.microsecond:
            raise InvalidValue(f"{at} is finer than the seconds of this column.")
        return first, first + 1

    def in_cells(self, distance: object) -> Fraction:
        length = plain(length_of_time(distance))
        if isinstance(length, timedelta):
            return Fraction(length // timedelta.resolution, _SECONDS[self.unit] * 10**6)
        return number(length, f"A distance between dates (a timedelta, or in {self.unit}s)", InvalidValue)

    def _tick(self, value: object) -> int:
        at = moment(value, "A value in a column of dates", InvalidValue)
        if self.by_day:
            return at.toordinal() - self.lo.toordinal()
        return (_as_datetime(at, time()) - _as_datetime(self.lo, time())) // self._tick_length

    def _array_ticks(self, column: NDArray[Any]) -> Ticks | None:
        if column.dtype.kind != "M":
            return None
        start = np.datetime64(self.lo, "D" if self.by_day else "s")
        if np.datetime_data(column.dtype)[0] in ("Y", "M", "W", "D", "h", "m", "s", "ms"):
            # years that do not fit a finer unit would wrap around, and all of them lie outside
            earliest, latest = (
                np.datetime64(t).astype(column.dtype) for t in ("0000-01-01", "9999-12-31T23:59:59")
            )
            column = np.clip(column, earliest, latest)
        return (column.astype(start.dtype) - start).astype(np.int64), np.isnat(column)

    def parts(self, part: str, groups: Mapping[str, tuple[Any, ...]] | None = None) -> Bins:
        """A bin for every value of a part of dates, such as every month of any year, or for groups of them.

        Missing values with a cell of their own are the last bin.
        """
        bins = _parts(self, part)
        if groups is None:
            return bins
        places = {value: at for at, values in enumerate(groups.values()) for value in values}
        starts = bins.first(np.arange(bins.count - self.has_missing_cell)).tolist()
        values = [PARTS[part](self.at(start * self.ticks_per_cell)) for start in starts]
        left = [value for value in values if value not in places]
        if left or sum(map(len, groups.values())) > len(places):
            rest = f"without a group: {', '.join(map(str, left[:5]))}" if left else "none is in two"
            raise InvalidBins(f"Groups of {part}s cover every one of them; {rest}.")
        missing = [len(groups)] if self.has_missing_cell else []
        labels = np.array([places[value] for value in values] + missing, dtype=np.int64)
        return Bins.labels(np.unique(labels[bins.assignment()], return_inverse=True)[1].astype(np.int64))

    def part_names(self, bins: Bins) -> tuple[str, ...] | None:
        """What bins of values are called that are parts of dates, or several of these; None for others."""
        if bins.contiguous or self.value_count > _MOST_CELLS:
            return None
        known = []
        for part in PARTS:
            try:
                known.append((part, self.parts(part)))
            except InvalidBins:
                continue  # cells that lie in two
        told = bins.assignment()
        for part, parts in sorted(known, key=lambda each: each[1].count):
            starts = parts.first(np.arange(parts.count))
            if (told[starts][parts.assignment()] == told).all():
                return self._named_parts(part, starts[: parts.count - self.has_missing_cell], told)
        return None

    def _named_parts(self, part: str, starts: IntArray, told: IntArray) -> tuple[str, ...]:
        names: dict[int, list[str]] = {}
        for start in starts.tolist():
            value = PARTS[part](self.at(start * self.ticks_per_cell))
            names.setdefault(int(told[start]), []).append(_part_name(part, value))
        return tuple(", ".join(names[bin_]) for bin_ in sorted(names))

    @property
    def _null_tick(self) -> int:
        return 0

    def _words(self) -> str:
        kind = "dates" if self.by_day else "moments"
        return f"{kind} from {text(self.lo)} to {text(self.hi)} in cells of one {self.unit}"

    @property
    def _stray(self) -> tuple[str, str]:
        return beyond_ends(self)


@lru_cache(maxsize=64)
def _parts(attribute: Date, part: str) -> Bins:
    if part not in PARTS:
        raise InvalidBins(f"Dates have no part {part!r}.", fixes=tuple(PARTS))
    if part == "hour" and attribute.by_day:
        raise InvalidBins("Days have no hours.", fixes=("weekday",))
    count = attribute.value_count
    if count > _MOST_CELLS:
        raise TooLarge(
            f"Parts of dates are told apart in at most {_MOST_CELLS:,} cells.", fixes=("use edges",)
        )
    ticks = attribute.ticks_per_cell
    told = np.array([PARTS[part](attribute.at(cell * ticks)) for cell in range(count)])
    if ticks > 1:
        ends = (min((cell + 1) * ticks, attribute.ticks) - 1 for cell in range(count))
        if (told != [PARTS[part](attribute.at(end)) for end in ends]).any():
            raise InvalidBins(f"A cell of one {attribute.unit} may lie in two {part}s.", fixes=("use edges",))
    labels = np.unique(told, return_inverse=True)[1]
    missing = [labels.max() + 1] if attribute.has_missing_cell else []
    return Bins.labels(np.append(labels, missing).astype(np.int64))


def _part_name(part: str, value: int) -> str:
    match part:
        case "month":
            return MONTHS[value - 1]
        case "weekday":
            return WEEKDAYS[value - 1]
        case "quarter":
            return f"Q{value}"
        case "week" | "day":
            return f"{part} {value}"
        case "hour":
            return f"{value:02}:00"
    return str(value)


def _as_datetime(value: date, at: time) -> datetime:
    return value if isinstance(value, datetime) else datetime.combine(value, at)
