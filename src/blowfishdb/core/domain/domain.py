"""Domain: the declared columns of a table, in order.

Everything private is counted over the cells of a domain, and its bounds are promises by the curator: they
are declared, never read from the data. Nothing is written out, so 10¹² cells and far more are fine.

Axis: one queried column, its bins, and how they read.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Self, final

import numpy as np

from blowfishdb.core.arrays import IntArray
from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.domain.dates import Date
from blowfishdb.core.domain.values import Value, text
from blowfishdb.core.errors import EmptyDomain, InvalidAttribute, SizeMismatch, UnknownColumn


@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Domain:
    """Named attributes: ``Domain(age=Integer(0, 120), sex=Category(["F", "M"]))``.

    >>> columns = bf.Domain(age=bf.Integer(18, 90), region=bf.Category(["north", "south"]))
    >>> columns.names, columns.size
    (('age', 'region'), 146)
    """

    columns: tuple[tuple[str, Attribute], ...]

    def __init__(self, /, **attributes: Attribute) -> None:
        self._declare(attributes)

    @classmethod
    def of(cls, attributes: Mapping[str, Attribute]) -> Self:
        """From a mapping, for column names that are not Python words (``"hours-per-week"``)."""
        if not isinstance(attributes, Mapping):
            raise InvalidAttribute("A domain is made from a mapping of column names to attributes.")
        domain = cls.__new__(cls)
        domain._declare(attributes)
        return domain

    def _declare(self, attributes: Mapping[str, Attribute]) -> None:
        if not attributes:
            raise EmptyDomain("A domain needs at least one column.", fixes=("Domain(age=Integer(0, 120))",))
        for name, attribute in attributes.items():
            if not isinstance(name, str) or not name.strip():
                raise InvalidAttribute(f"A column name must be a text that is not empty, not {name!r}.")
            if not isinstance(attribute, Attribute):
                raise InvalidAttribute(
                    f"The column {name!r} must be an Integer, Real, Category, Date or Boolean, "
                    f"not {type(attribute).__name__}.",
                    fixes=(f"{name}=Integer(0, 120)",),
                )
        object.__setattr__(self, "columns", tuple(attributes.items()))

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in the declared order."""
        return tuple(name for name, _ in self.columns)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many cells each column has."""
        return tuple(attribute.size for _, attribute in self.columns)

    @property
    def size(self) -> int:
        """How many combinations of cells there are, as a Python integer of any length."""
        return math.prod(self.shape)

    def __getitem__(self, name: str) -> Attribute:
        for column, attribute in self.columns:
            if column == name:
                return attribute
        raise _unknown(name, self.names, "the domain declares")

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.columns)

    def __repr__(self) -> str:
        return f"Domain({', '.join(f'{name}={attribute!r}' for name, attribute in self.columns)})"

    def describe(self) -> str:
        """One line for each column."""
        return "\n".join(f"{name}: {attribute.describe()}" for name, attribute in self.columns)

    def project(self, *names: str) -> Domain:
        """The domain of some columns, in the given order."""
        if len(set(names)) < len(names):
            raise InvalidAttribute("A column can be chosen only once.")
        return Domain.of({name: self[name] for name in names})

    def encode(self, columns: Mapping[str, Iterable[object]]) -> dict[str, IntArray]:
        """The cells of every declared column of a table; other columns of the table are ignored."""
        for name in self.names:
            if name not in columns:
                raise _unknown(name, tuple(columns), "the table has")
        cells = {name: attribute.encode(columns[name]) for name, attribute in self.columns}
        if len({column.size for column in cells.values()}) > 1:
            lengths = ", ".join(f"{name} has {column.size:,}" for name, column in cells.items())
            raise SizeMismatch(f"All columns must have the same number of rows: {lengths}.")
        return cells


def _unknown(name: object, names: tuple[str, ...], where: str) -> UnknownColumn:
    close = difflib.get_close_matches(str(name), map(str, names), n=1)
    return UnknownColumn(
        f"There is no column {name!r}; {where}: {', '.join(str(column) for column in names)}.",
        fixes=(repr(close[0]),) if close else (),
    )


@final
@dataclass(frozen=True, eq=False)
class Axis:
    """One queried column and the bins of its cells."""

    column: str
    attribute: Attribute
    bins: Bins

    def __post_init__(self) -> None:
        if self.bins.size != self.attribute.size:
            raise SizeMismatch(
                f"The bins divide {self.bins.size:,} cells, but '{self.column}' has {self.attribute.size:,}."
            )

    @property
    def value_bins(self) -> int:
        """The bins that hold values; a bin for missing ones comes after them."""
        return self.bins.count - self.attribute.has_missing_cell

    @property
    def note(self) -> str | None:
        """What the declaration makes of values that it does not list, where that shows in the bins."""
        alone = self.bins.count == 1 and not self.attribute.may_drop
        return None if alone else self.attribute.folded(self.column)

    def labels(self) -> tuple[str, ...]:
        """Each bin in words."""
        return _labels(self.attribute, self.bins)

    def ends(self) -> tuple[str, ...]:
        """The upper end of each bin of values, in words."""
        return _ends(self.attribute, self.bins)

    def show(self, value: Value) -> str:
        """A value in words. Long numbers are grouped, on the whole axis or not at all: years stay years."""
        return text(value, grouped=_grouped(self.attribute))


def loose_columns(axes: tuple[Axis, ...]) -> tuple[str, ...]:
    """Those of the columns whose values have no order of their own."""
    return tuple(axis.column for axis in axes if not axis.attribute.ordered)


# The same axis is asked about again and again, and ten thousand labels take a while to write.


@lru_cache(maxsize=64)
def _labels(attribute: Attribute, bins: Bins) -> tuple[str, ...]:
    named = attribute.part_names(bins) if isinstance(attribute, Date) else None
    if named is not None:
        return (*named, *([attribute.label(attribute.value_count)] if attribute.has_missing_cell else []))
    index = np.arange(bins.count)
    firsts, lasts = bins.first(index).tolist(), bins.last(index).tolist()
    grouped = _grouped(attribute)

    def label(number: int, first: int, last: int) -> str:
        if first == last:
            return attribute.label(first)
        if not bins.contiguous:
            return ", ".join(attribute.label(int(cell)) for cell in bins.members(number))
        if attribute.has_missing_cell and last == attribute.value_count:  # "0–99, missing"
            return f"{label(number, first, last - 1)}, {attribute.label(last)}"
        ends = (attribute.lower(first), attribute.upper(last))
        return "–".join(text(end, grouped=grouped) for end in ends)

    return tuple(map(label, index.tolist(), firsts, lasts))


@lru_cache(maxsize=64)
def _ends(attribute: Attribute, bins: Bins) -> tuple[str, ...]:
    lasts = bins.last(np.arange(bins.count - attribute.has_missing_cell)).tolist()
    grouped = _grouped(attribute)
    return tuple(f"≤ {text(attribute.upper(last), grouped=grouped)}" for last in lasts)


@lru_cache(maxsize=64)
def _grouped(attribute: Attribute) -> bool:
    most = attribute.upper(attribute.value_count - 1)
    return isinstance(most, int) and most >= 10_000


@final
@dataclass(frozen=True, eq=False)
class CellQuery:
    """What the database is asked: one count per box of bins.

    Rows that a column's declaration drops are in no box. Boxes are row-major, last axis fastest.
    """

    axes: tuple[Axis, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of bins along each axis."""
        return tuple(axis.bins.count for axis in self.axes)

    @property
    def count(self) -> int:
        """The number of boxes."""
        return math.prod(self.shape)

    @property
    def notes(self) -> tuple[str, ...]:
        """What becomes of values that are not declared, for every column that the rows are read by."""
        return tuple(note for axis in self.axes if (note := axis.note))
