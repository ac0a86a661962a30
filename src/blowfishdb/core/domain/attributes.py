"""Columns of whole numbers, numbers on a grid, categories and booleans (dates: ``dates.py``)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from blowfishdb.core.arrays import whole
from blowfishdb.core.domain.attribute import (
    Attribute,
    Missing,
    Outside,
    Ticks,
    beyond_ends,
    check_cells,
    check_choices,
    freeze,
)
from blowfishdb.core.domain.values import Number, data_number, finite, number, plain, text
from blowfishdb.core.errors import EmptyDomain, InvalidAttribute, InvalidValue, NotFinite, ReversedBounds

_SAFE = 2**50  # whole numbers up to here, and their neighbours, are exact in floats


@final
@dataclass(frozen=True, slots=True)
class Integer(Attribute):
    """Whole numbers from ``lo`` to ``hi``, both included, in cells of ``step`` numbers.

    >>> age = bf.Integer(0, 99)
    >>> age.encode([7, 250])
    array([ 7, 99])
    >>> age.threshold(5)
    5
    """

    lo: int
    hi: int
    step: int = 1
    _: KW_ONLY
    missing: Missing = "none"
    outside: Outside = "clamp"

    def __post_init__(self) -> None:
        for name, what in (("lo", "The lower bound"), ("hi", "The upper bound"), ("step", "The step")):
            object.__setattr__(self, name, _whole(getattr(self, name), what))
        if self.hi < self.lo:
            raise ReversedBounds(f"The lower bound {self.lo} is above the upper bound {self.hi}.")
        if self.step < 1:
            raise InvalidAttribute(f"The step must be at least 1, not {self.step}.")
        check_choices(self.missing, self.outside)
        check_cells(self.value_count)

    @property
    def ticks(self) -> int:
        return self.hi - self.lo + 1

    @property
    def ticks_per_cell(self) -> int:
        return self.step

    @property
    def ordered(self) -> bool:
        return True

    def at(self, tick: int) -> int:
        return self.lo + tick

    def span(self, value: object) -> tuple[int, int]:
        return _around(finite(value, "A column of whole numbers") - self.lo)

    def in_cells(self, distance: object) -> Fraction:
        return number(distance, "A distance between whole numbers", InvalidValue) / self.step

    def _tick(self, value: object) -> int:
        number = value if type(value) is int else data_number(value, "A column of whole numbers")
        if isinstance(number, float):
            return -1 if number < 0 else self.ticks
        return math.floor(number) - self.lo

    def _array_ticks(self, column: NDArray[Any]) -> Ticks | None:
        if max(abs(self.lo), abs(self.hi)) >= _SAFE or column.dtype == np.uint64:
            return None
        if column.dtype.kind in "iu":
            ticks = np.clip(column.astype(np.int64), self.lo - 1, self.hi + 1) - self.lo
            return ticks, np.zeros(column.size, dtype=np.bool_)
        if column.dtype.kind == "f":
            null = np.isnan(column)
            floor = np.floor(np.where(null, self.lo, column.astype(np.float64)))
            return np.clip(floor, self.lo - 1, self.hi + 1).astype(np.int64) - self.lo, null
        return None

    @property
    def _null_tick(self) -> int:
        return 0

    def _words(self) -> str:
        cells = f" in cells of {self.step:,}" if self.step > 1 else ""
        return f"whole numbers from {self.lo:,} to {self.hi:,}{cells}"

    @property
    def _stray(self) -> tuple[str, str]:
        return beyond_ends(self)


@final
@dataclass(frozen=True, slots=True, init=False)
class Real(Attribute):
    """Numbers rounded (half up) to the points ``lo + i·grid``, exactly.

    Bounds and grid are the decimals that were typed, and a value is rounded before it is compared with the
    bounds, so that 0.1 + 0.2 lies inside [0, 0.3].

    >>> share = bf.Real(0, "0.3", grid="0.1")
    >>> share.size, share.encode([0.1 + 0.2])
    (4, array([3]))
    """

    lo: Fraction
    hi: Fraction
    grid: Fraction
    missing: Missing
    outside: Outside

    def __init__(
        self, lo: Number, hi: Number, grid: Number, *, missing: Missing = "none", outside: Outside = "clamp"
    ) -> None:
        low, high = (number(v, f"The {w} bound", InvalidAttribute) for v, w in ((lo, "lower"), (hi, "upper")))
        step = number(grid, "The grid", InvalidAttribute)
        if high < low:
            raise ReversedBounds(f"The lower bound {lo} is above the upper bound {hi}.")
        if step <= 0:
            raise InvalidAttribute(f"The grid must be positive, not {grid}.")
        if (high - low) % step:
            near = " or ".join(text(low + (high - low) // step * step + more) for more in (Fraction(0), step))
            raise InvalidAttribute(
                f"The bounds {lo} and {hi} are not a multiple of the grid {grid} apart.",
                fixes=(f"an upper bound of {near}",),
            )
        check_choices(missing, outside)
        check_cells(int((high - low) / step) + 1)
        freeze(self, lo=low, hi=high, grid=step, missing=missing, outside=outside)

    @property
    def ticks(self) -> int:
        return int((self.hi - self.lo) / self.grid) + 1

    @property
    def ordered(self) -> bool:
        return True

    def at(self, tick: int) -> Fraction:
        return self.lo + tick * self.grid

    def span(self, value: object) -> tuple[int, int]:
        return _around((finite(value, "A column of numbers") - self.lo) / self.grid)

    def in_cells(self, distance: object) -> Fraction:
        return number(distance, "A distance between numbers", InvalidValue) / self.grid

    def _tick(self, value: object) -> int:
        number = data_number(value, "A column of numbers")
        if isinstance(number, float):
            return -1 if number < 0 else self.ticks
        return math.floor((number - self.lo) / self.grid + Fraction(1, 2))

    def _array_ticks(self, column: NDArray[Any]) -> Ticks | None:
        """Floating point decides wherever its error cannot matter; the few values near a half go exactly."""
        largest = max(abs(self.lo), abs(self.hi), 1 / self.grid)
        if column.dtype.kind not in "iuf" or self.ticks >= _SAFE or largest > 10**100:
            return None
        null = np.isnan(column)
        values = np.where(null, 0.0, column.astype(np.float64))
        lo, grid = float(self.lo), float(self.grid)
        with np.errstate(over="ignore", invalid="ignore"):
            places = (values - lo) / grid + 0.5
            error = (np.abs(values) + abs(lo)) / grid * 2.0**-49 + 2.0**-49
            close = np.abs(places - np.rint(places)) <= error
            close &= ~null & (places + error > -1) & (places - error < self.ticks + 1)
        ticks = np.floor(np.clip(places, -1, self.ticks)).astype(np.int64)
        for row in np.flatnonzero(close):
            ticks[row] = min(max(self._tick(column[row]), -1), self.ticks)
        return ticks, null

    @property
    def _null_tick(self) -> int:
        return 0

    def _words(self) -> str:
        return f"numbers from {text(self.lo)} to {text(self.hi)} in steps of {text(self.grid)}"

    def _rounding_said(self) -> list[str]:
        return [f"values are rounded to steps of {text(self.grid)}"]

    @property
    def _stray(self) -> tuple[str, str]:
        return beyond_ends(self)


@final
@dataclass(frozen=True, slots=True, init=False)
class Category(Attribute):
    """Listed values, texts or whole numbers, in the listed order if ``ordered``.

    ``"clamp"`` counts a value that is not listed, or a missing one, as the *last listed* value, so list
    "other" last. The default drops such rows: an unlisted value has no nearest neighbour.

    >>> bf.Category(["north", "south"]).encode(["south"])
    array([1])
    """

    values: tuple[str, ...] | tuple[int, ...]
    ordered: bool = False
    missing: Missing = "drop"
    outside: Outside = "drop"
    _index: dict[str | int, int] = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        values: Iterable[str] | Iterable[int],
        ordered: bool = False,
        *,
        missing: Missing = "drop",
        outside: Outside = "drop",
    ) -> None:
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise InvalidAttribute(f"Categories are a list of texts or whole numbers, not {values!r}.")
        listed = tuple(plain(value) for value in values)
        if not listed:
            raise EmptyDomain("A category needs at least one value.")
        if not isinstance(ordered, bool):
            raise InvalidAttribute(f"ordered must be True or False, not {ordered!r}.")
        kinds = {type(value) for value in listed}
        if kinds not in ({str}, {int}):
            raise InvalidAttribute(
                "Category values must be all texts or all whole numbers, not "
                + ", ".join(sorted(kind.__name__ for kind in kinds)),
                fixes=("leave out None and declare missing='value'",) if type(None) in kinds else (),
            )
        index: dict[Any, int] = {value: tick for tick, value in enumerate(listed)}
        if len(index) < len(listed):
            twice = next(value for tick, value in enumerate(listed) if index[value] != tick)
            raise InvalidAttribute(f"The category {twice!r} is listed twice.")
        check_choices(missing, outside)
        freeze(self, values=listed, ordered=ordered, missing=missing, outside=outside, _index=index)

    @property
    def ticks(self) -> int:
        return len(self.values)

    def at(self, tick: int) -> str | int:
        return self.values[tick]

    def span(self, value: object) -> tuple[int, int]:
        tick = self._tick(value)
        if tick == self.ticks:
            raise InvalidValue(f"{value!r} is not one of the column's values: {self._words()}.")
        return tick, tick + 1

    def in_cells(self, distance: object) -> Fraction:
        return number(distance, "A distance between categories", InvalidValue)

    def _tick(self, value: object) -> int:
        try:
            return self._index.get(plain(value), self.ticks)  # type: ignore[call-overload,no-any-return]
        except TypeError:
            raise InvalidValue(f"A category cannot be a {type(value).__name__}.") from None

    def _array_ticks(self, column: NDArray[Any]) -> Ticks | None:
        return None

    @property
    def _null_tick(self) -> int:
        return self.ticks - 1

    def _words(self) -> str:
        shown = ", ".join(str(value) for value in self.values[:6]) + (", …" if self.ticks > 6 else "")
        return f"{'ordered categories' if self.ordered else 'categories'} {shown}"

    @property
    def _stray(self) -> tuple[str, str]:
        return "that is not listed" if self.outside == "drop" else "that are not listed", str(self.values[-1])


@final
@dataclass(frozen=True, slots=True)
class Boolean(Attribute):
    """False (cell 0) and True (cell 1); databases may write them as 0 and 1.

    >>> bf.Boolean().encode([True, False])
    array([1, 0])
    """

    _: KW_ONLY
    missing: Missing = "none"
    outside: Outside = "clamp"

    def __post_init__(self) -> None:
        check_choices(self.missing, self.outside)

    @property
    def ticks(self) -> int:
        return 2

    @property
    def ordered(self) -> bool:
        return True

    def at(self, tick: int) -> bool:
        return bool(tick)

    def span(self, value: object) -> tuple[int, int]:
        tick = self._tick(value)
        if tick not in (0, 1):
            raise InvalidValue(f"{value!r} is neither True nor False.")
        return tick, tick + 1

    def in_cells(self, distance: object) -> Fraction:
        return number(distance, "A distance between booleans", InvalidValue)

    def _tick(self, value: object) -> int:
        answer = plain(value)
        bit = int(answer) if isinstance(answer, bool) else data_number(answer, "A column of booleans")
        return int(bit) if bit in (0, 1) else (-1 if bit < 0 else 2)

    def _array_ticks(self, column: NDArray[Any]) -> Ticks | None:
        if column.dtype != np.bool_:
            return None
        return column.astype(np.int64), np.zeros(column.size, dtype=np.bool_)

    @property
    def _null_tick(self) -> int:
        return 0

    def _words(self) -> str:
        return "False or True"

    @property
    def _stray(self) -> tuple[str, str]:
        return "other than 0 and 1", "the nearest of them"


def _whole(value: object, what: str) -> int:
    if isinstance(value, float) and not math.isfinite(value):
        raise NotFinite(f"{what} must be a finite number, not {value}.")
    return whole(value, what, InvalidAttribute)


def _around(place: Fraction) -> tuple[int, int]:
    """The one tick at a whole place; nothing, in front of the next tick, between two."""
    return math.ceil(place), math.floor(place) + 1
