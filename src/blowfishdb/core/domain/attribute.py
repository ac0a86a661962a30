"""Attribute: one column of a domain, divided into numbered cells.

Every kind of column is the same thing underneath: a finite row of *ticks* (the values it tells apart: whole
numbers, grid points, seconds, days, listed categories), of which a fixed number make a *cell*. A subclass
says how a value becomes a tick and back; everything else (encoding data, bins, thresholds, labels) is here.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from blowfishdb.core.arrays import BoolArray, IntArray, ceil_div, whole
from blowfishdb.core.domain.bins import LIMIT, Bins, single_cells
from blowfishdb.core.domain.values import Value, as_column, is_null, text
from blowfishdb.core.errors import (
    InvalidAttribute,
    InvalidBins,
    InvalidThreshold,
    InvalidValue,
    InvalidWorkload,
    NotFinite,
    TooLarge,
)

Outside = Literal["clamp", "drop"]
Missing = Literal["none", "value", "public", "drop", "clamp"]
Ticks = tuple[NDArray[Any], BoolArray]
"""The tick of every row of a column (beyond either end when outside), and which rows are NULL."""

MOST_CELLS = 2**62
"""Cell numbers are 64-bit integers; half the range leaves room for arithmetic on them."""

_MISSING_WORDS: dict[Missing, str] = {
    "none": "none is missing (one that turns up counts as {fallback})",
    "value": "missing values have a cell of their own, and who has one is hidden",
    "public": "missing values have a cell of their own, and who has one is not hidden",
    "drop": "rows without a value are left out",
    "clamp": "missing values count as {fallback}",
}
_OUTSIDE_WORDS: dict[Outside, str] = {
    "clamp": "other values count as {nearest}",
    "drop": "rows with other values are left out",
}


class Attribute(ABC):
    """A column with declared bounds.

    ``outside`` says what becomes of a value beyond the bounds: ``"clamp"`` moves it to the nearest end,
    ``"drop"`` sends its row to *outside* (cell -1). ``missing`` says what becomes of NULL and NaN:

    - ``"none"``: there are none, which is checked when the data is declared. The rule must not depend on the
      data, so one that turns up afterwards has a fixed place: the lowest value.
    - ``"value"``: a cell of its own behind all others, and whether a value is missing is secret.
    - ``"public"``: the same cell, but everyone may know whose value is missing.
    - ``"drop"``: *outside*.
    - ``"clamp"``: the lowest value, which every answer says.

    Clamping keeps a distance threshold meaningful: values that were close stay close. Dropping makes
    *outside* adjacent to every value, because nothing bounds how far a dropped value was, and that costs
    accuracy; the same holds for a secret cell of missing values. A public one costs nothing.
    """

    __slots__ = ()

    missing: Missing
    outside: Outside

    # --- what each kind of column says ------------------------------------------------------------

    @property
    @abstractmethod
    def ticks(self) -> int:
        """How many values the column tells apart."""

    @property
    def ticks_per_cell(self) -> int:
        """How many ticks make a cell; the last cell may be short."""
        return 1

    @property
    @abstractmethod
    def ordered(self) -> bool:
        """Whether the cells of values lie on a line (the cell of missing values never does)."""

    @abstractmethod
    def at(self, tick: int) -> Value:
        """The value of a tick, in the column's own type."""

    @abstractmethod
    def span(self, value: object) -> tuple[int, int]:
        """The ticks ``first … stop-1`` that a typed value names, wherever they lie.

        None (``first == stop``) when the value falls between two ticks; several for a day among seconds.
        """

    @abstractmethod
    def in_cells(self, distance: object) -> Fraction:
        """A distance in data units as a number of cells, not rounded."""

    @abstractmethod
    def _tick(self, value: object) -> int:
        """The tick of one value in the data, rounded to the column's resolution; may lie beyond the ends."""

    @abstractmethod
    def _array_ticks(self, column: NDArray[Any]) -> Ticks | None:
        """The same for a whole array where that is exact and fast; None to go value by value."""

    @property
    @abstractmethod
    def _null_tick(self) -> int:
        """The tick that stands for NULL under ``missing="clamp"``."""

    @abstractmethod
    def _words(self) -> str:
        """The values of the column in words."""

    @property
    @abstractmethod
    def _stray(self) -> tuple[str, str]:
        """Which values are outside, in words, and as what they count under ``outside="clamp"``."""

    # --- cells ------------------------------------------------------------------------------------

    @property
    def value_count(self) -> int:
        """How many cells hold values."""
        return ceil_div(self.ticks, self.ticks_per_cell)

    @property
    def size(self) -> int:
        """How many cells there are, the one for missing values included."""
        return self.value_count + self.has_missing_cell

    @property
    def has_missing_cell(self) -> bool:
        """Whether missing values have a cell of their own, the last one."""
        return self.missing in ("value", "public")

    @property
    def missing_is_public(self) -> bool:
        """Whether everyone may know whose value is missing."""
        return self.missing == "public"

    @property
    def may_drop(self) -> bool:
        """Whether a row can end up outside."""
        return "drop" in (self.missing, self.outside)

    def encode(self, values: Iterable[object]) -> IntArray:
        """The cell of every value of a column of data; -1 for rows that are dropped."""
        column = as_column(values)
        array_ticks = self._array_ticks(column) if isinstance(column, np.ndarray) else None
        ticks, null = array_ticks or self._scan(column)
        last = self.ticks - 1
        cells = np.clip(ticks, 0, last) // self.ticks_per_cell
        if self.outside == "drop":
            cells = np.where((ticks < 0) | (ticks > last), -1, cells)
        return np.where(null, self._null_cell, cells).astype(np.int64)

    def _scan(self, column: NDArray[Any] | list[object]) -> Ticks:
        """Value by value, in Python integers of any size."""
        items = column.tolist() if isinstance(column, np.ndarray) else column
        null = np.array([is_null(item) for item in items], dtype=np.bool_)
        ticks = [0 if lost else self._tick(item) for item, lost in zip(items, null, strict=True)]
        return np.array(ticks, dtype=object), null

    @property
    def _null_cell(self) -> int:
        if self.has_missing_cell:
            return self.value_count
        return -1 if self.missing == "drop" else self._null_tick // self.ticks_per_cell

    def cell(self, value: object) -> int:
        """The cell of one value of the domain; anything else is refused."""
        if is_null(value):
            if self.has_missing_cell:
                return self.value_count
            raise InvalidValue(
                "A missing value has no cell here.", fixes=('declare missing="value"', 'missing="public"')
            )
        first, stop = self.span(value)
        cell = first // self.ticks_per_cell
        if not 0 <= first < stop <= self.ticks or (stop - 1) // self.ticks_per_cell != cell:
            raise InvalidValue(f"{value} is not one of the column's values: {self._words()}.")
        return cell

    def cells_between(self, low: object, high: object) -> tuple[int, int]:
        """The first and the last cell of the values from ``low`` to ``high``, which are ends of cells."""
        (first, _), (last, stop) = (self._typed(end) for end in (low, high))
        if stop <= first or last < first:
            raise InvalidWorkload(f"The range from {low} to {high} ends before it begins.")
        width = self.ticks_per_cell
        if first % width == 0 and (stop % width == 0 or stop == self.ticks):
            return first // width, ceil_div(stop, width) - 1
        outward = (first // width, ceil_div(stop, width) - 1)
        inward = (ceil_div(first, width), (self.value_count if stop == self.ticks else stop // width) - 1)
        near = [(a, b) for a, b in dict.fromkeys((inward, outward)) if a <= b]
        raise InvalidWorkload(
            f"The range from {low} to {high} ends inside a cell, and nothing finer than a cell is counted.",
            fixes=tuple(f"from {text(self.lower(a))} to {text(self.upper(b))}" for a, b in near),
        )

    def _typed(self, value: object) -> tuple[int, int]:
        """The ticks of a value that somebody typed, all of them among those of the column."""
        if is_null(value):
            raise InvalidValue("A missing value is not the end of a range.")
        first, stop = self.span(value)
        if not 0 <= first < stop <= self.ticks:
            raise InvalidValue(f"{value} is not one of the column's values: {self._words()}.")
        return first, stop

    def lower(self, cell: int) -> Value:
        """The first value of a cell."""
        return self.at(self._value_cell(cell) * self.ticks_per_cell)

    def upper(self, cell: int) -> Value:
        """The last value of a cell."""
        return self.at(min((self._value_cell(cell) + 1) * self.ticks_per_cell, self.ticks) - 1)

    def _value_cell(self, cell: int) -> int:
        index = whole(cell, "A cell", InvalidValue)
        if self.has_missing_cell and index == self.value_count:
            raise InvalidValue("The cell of missing values has no lowest or highest value.")
        if not 0 <= index < self.value_count:
            raise InvalidValue(f"There is no cell {index}: cells are numbered 0 to {self.size - 1}.")
        return index

    def label(self, cell: int) -> str:
        """A cell in words: ``"35"``, ``"30–39"``, ``"missing"``."""
        if self.has_missing_cell and cell == self.value_count:
            return "missing"
        lower, upper = text(self.lower(cell)), text(self.upper(cell))
        return lower if lower == upper else f"{lower}–{upper}"

    def describe(self) -> str:
        """The column in one line."""
        missing = _MISSING_WORDS[self.missing].format(fallback=text(self.at(self._null_tick)))
        outside = _OUTSIDE_WORDS[self.outside].format(nearest=self._stray[1])
        return f"{self._words()}; {outside}; {missing}"

    def folded(self, column: str) -> str | None:
        """What the declaration makes of values that it does not have, for whoever reads an answer.

        None where every row counts as what it is. It follows from the declaration alone, and says nothing of
        whether there are such values.
        """
        sentences = [*self._rounding_said(), *self._outside_said(), *self._missing_said()]
        return f"{column}: {'; '.join(sentences)}." if sentences else None

    def _rounding_said(self) -> list[str]:
        return []

    def _outside_said(self) -> list[str]:
        which, nearest = self._stray
        if self.outside == "drop":
            return [f"rows with a value {which} are left out"]
        return [f"values {which} count as {nearest}"]

    def _missing_said(self) -> list[str]:
        if self.missing == "drop":
            return ["rows without a value are left out"]
        if self.missing == "clamp":
            return [f"missing values count as {text(self.at(self._null_tick))}"]
        return []

    # --- distances and bins -----------------------------------------------------------------------

    def threshold(self, distance: object) -> int:
        """A distance in data units as whole cells, rounded up: rounding to cells can widen a gap."""
        if not self.ordered:
            raise InvalidThreshold(
                "Unordered categories have no distance.",
                fixes=("declare the category with ordered=True", "use a full or partitioned graph"),
            )
        try:
            cells = self.in_cells(distance)
        except (InvalidValue, NotFinite) as error:
            raise InvalidThreshold(error.message) from None
        if cells <= 0:
            raise InvalidThreshold(f"A distance threshold must be positive, not {distance}.")
        return math.ceil(cells)

    def bins(
        self,
        count: int | None = None,
        width: object = None,
        edges: Sequence[object] | None = None,
        groups: Mapping[str, Iterable[object]] | None = None,
    ) -> Bins:
        """Bins in data units; without an argument every cell is alone.

        ``count`` bins of equal width (the last may be short), bins of a ``width``, bins that begin at the
        values ``edges``, or named ``groups`` of values, numbered in the order of the mapping. Missing values
        with a cell of their own are always the last bin.
        """
        if sum(argument is not None for argument in (count, width, edges, groups)) > 1:
            raise InvalidBins("Bins are given by one of count, width, edges and groups, not by several.")
        if count is not None:
            if whole(count, "The number of bins", InvalidBins) < 1:
                raise InvalidBins(f"There must be at least one bin, not {count}.")
            return self.equal_bins(ceil_div(self.value_count, count))
        if width is not None:
            return self.equal_bins(self._cells_wide(width))
        if edges is not None:
            return self._bins_from(self._starts(edges))
        return single_cells(self.size) if groups is None else self._grouped_bins(groups)

    def _cells_wide(self, width: object) -> int:
        try:
            cells = self.in_cells(width)
        except (InvalidValue, NotFinite) as error:
            raise InvalidBins(error.message) from None
        if cells <= 0:
            raise InvalidBins(f"A bin must be wider than zero, and {width} is not.")
        if cells.denominator != 1:
            nearest = sorted({max(1, math.floor(cells)), math.ceil(cells)})
            choices = " or ".join(self._distance_text(near) for near in nearest)
            raise InvalidBins(f"A bin of width {width} would cut through cells.", fixes=(f"width {choices}",))
        return int(cells)

    def _distance_text(self, cells: int) -> str:
        return text(Fraction(cells) / self.in_cells(1))

    def equal_bins(self, cells: int) -> Bins:
        """Bins of so many cells; the last may be short."""
        if cells > 1 and not self.ordered:
            raise InvalidBins(
                "Unordered categories have no neighbours to share a bin with.",
                fixes=("name the bins with groups={'name': [values]}", "declare ordered=True"),
            )
        cells = min(cells, self.value_count)
        if not self.has_missing_cell or self.value_count % cells == 0:
            return Bins.width(self.size, cells)
        if self.value_count // cells > LIMIT:
            raise TooLarge(f"More than {LIMIT:,} bins beside a bin for missing values; choose wider bins.")
        return self._bins_from(np.arange(0, self.value_count, cells, dtype=np.int64))

    def _starts(self, edges: Sequence[object]) -> IntArray:
        """The first cell of each bin; a last edge just past the end closes the last bin and is let go."""
        if not self.ordered:
            raise InvalidBins("Unordered categories have no edges.", fixes=("use groups",))
        if isinstance(edges, str) or not isinstance(edges, Iterable):
            raise InvalidBins(f"Edges are a list of values, not {edges!r}.")
        starts = [self._aligned(edge) for edge in edges]
        if len(starts) > 1 and starts[-1] == self.value_count:
            starts.pop()
        for edge, start in zip(edges, starts, strict=False):
            if not 0 <= start < self.value_count:
                raise InvalidBins(f"The edge {edge} lies outside the column: {self._words()}.")
        return np.array(starts, dtype=np.int64)

    def _aligned(self, edge: object) -> int:
        try:
            first, stop = self.span(edge)
        except InvalidValue as error:
            raise InvalidBins(error.message) from None
        cell, rest = divmod(first, self.ticks_per_cell)
        if rest or first == stop:
            near = (cell if rest else cell - 1, cell + 1 if rest else cell)
            choices = " or ".join(text(self.lower(c)) for c in near if 0 <= c < self.value_count)
            raise InvalidBins(f"The edge {edge} would cut through a cell.", fixes=(f"an edge at {choices}",))
        return cell

    def _bins_from(self, starts: IntArray) -> Bins:
        return Bins.edges(self.size, np.append(starts, self.value_count) if self.has_missing_cell else starts)

    def _grouped_bins(self, groups: Mapping[str, Iterable[object]]) -> Bins:
        if self.size > LIMIT:
            raise TooLarge(f"Groups of single values are for at most {LIMIT:,} cells.", fixes=("use edges",))
        labels = np.full(self.size, -1, dtype=np.int64)
        for index, (name, members) in enumerate(_items(groups)):
            for value in members:
                if is_null(value):
                    raise InvalidBins(f"In the group {name!r}: missing values cannot be grouped with others.")
                try:
                    cell = self.cell(value)
                except InvalidValue as error:
                    raise InvalidBins(f"In the group {name!r}: {error.message}") from None
                if labels[cell] >= 0:
                    raise InvalidBins(f"{self.label(cell)} is in two groups, or twice in one.")
                labels[cell] = index
        if self.has_missing_cell:
            labels[-1] = len(groups)
        if (labels < 0).any():
            rest = ", ".join(self.label(int(cell)) for cell in np.flatnonzero(labels < 0)[:5])
            raise InvalidBins(f"Groups must cover every value; without a group: {rest}.")
        return Bins.labels(labels)


def _items(groups: Mapping[str, Iterable[object]]) -> list[tuple[str, list[object]]]:
    if not isinstance(groups, Mapping):
        raise InvalidBins("Groups are written as {'name': [values], …}.")
    for name, members in groups.items():
        if isinstance(members, str) or not isinstance(members, Iterable):
            raise InvalidBins(f"The group {name!r} must be a list of values.")
    items = [(name, list(members)) for name, members in groups.items()]
    for name, values in items:
        if not values:
            raise InvalidBins(f"The group {name!r} is empty, and no bin may be.")
    return items


def beyond_ends(attribute: Attribute) -> tuple[str, str]:
    """What lies outside on a line, in words, and where it is moved."""
    most = attribute.at(attribute.ticks - 1)
    grouped = isinstance(most, int) and most >= 10_000  # years stay years
    low, high = (text(value, grouped=grouped) for value in (attribute.at(0), most))
    return f"outside {low}–{high}", "the nearest end"


def freeze(attribute: Attribute, **fields: object) -> None:
    """Set the fields of a frozen attribute once, from its constructor."""
    for name, value in fields.items():
        object.__setattr__(attribute, name, value)


def check_choices(missing: object, outside: object) -> None:
    """Both words are known."""
    for name, value, choices in (("missing", missing, Missing), ("outside", outside, Outside)):
        if value not in get_args(choices):
            raise InvalidAttribute(f"{name} must be one of {', '.join(get_args(choices))}, not {value!r}.")


def check_cells(cells: int) -> None:
    """The cells can be numbered."""
    if cells > MOST_CELLS:
        raise InvalidAttribute(
            f"{f'{cells:,}' if cells < 10**30 else 'So many'} cells are too many.",
            fixes=("a larger step", "narrower bounds"),
        )
