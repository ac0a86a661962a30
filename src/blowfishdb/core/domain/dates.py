"""Columns of dates and of moments to the second.

Time zones are refused: a cell is a stretch of the wall clock, and a moment must fall into one of them only.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from fractions import Fraction
from typing import Any, Literal, final, get_args

import numpy as np
from numpy.typing import NDArray

from blowfishdb.core.domain.attribute import (
    Attribute,
    Missing,
    Outside,
    Ticks,
    beyond_ends,
    check_choices,
    freeze,
)
from blowfishdb.core.domain.values import moment, number, plain, text
from blowfishdb.core.errors import InvalidAttribute, InvalidValue, ReversedBounds

Unit = Literal["second", "minute", "hour", "day", "week"]
_SECONDS: dict[Unit, int] = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}


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

    @property
    def _null_tick(self) -> int:
        return 0

    def _words(self) -> str:
        kind = "dates" if self.by_day else "moments"
        return f"{kind} from {text(self.lo)} to {text(self.hi)} in cells of one {self.unit}"

    @property
    def _stray(self) -> tuple[str, str]:
        return beyond_ends(self)


def _as_datetime(value: date, at: time) -> datetime:
    return value if isinstance(value, datetime) else datetime.combine(value, at)
