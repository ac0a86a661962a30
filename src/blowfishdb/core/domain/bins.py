"""Bins: partitions of the cells of a domain.

A question needs few cells, a policy graph has components, a partition policy has parts: all three
are partitions of ``0 … size-1`` into non-empty bins, and all three are a ``Bins``. Nothing is
materialised until it is asked for, so equal bins on 10¹² cells cost nothing.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, final

import numpy as np
from numpy.typing import ArrayLike

from blowfishdb.core.arrays import ByContent, IntArray, ceil_div, integers, whole
from blowfishdb.core.errors import EmptyDomain, InvalidBins, SizeMismatch, TooLarge
from blowfishdb.core.plain import of_kind

LIMIT = 10**7
"""How many cells, edges or matrix entries are written out unless the caller asks for more."""

_INDEXABLE = 2**63 - 1


class Bins(ByContent, ABC):
    """A partition of cells ``0 … size-1`` into bins ``0 … count-1``, none of them empty.

    >>> bf.Bins.width(100, 10).assign([5, 42])
    array([0, 4])
    >>> bf.Bins.edges(100, [0, 18, 65]).assign([5, 42, 99])
    array([0, 1, 2])
    """

    size: int

    @staticmethod
    def width(size: int, width: int) -> Bins:
        """Equal bins of ``width`` cells; the last may be short."""
        return EqualBins(size, width)

    @staticmethod
    def edges(size: int, starts: ArrayLike) -> Bins:
        """Contiguous bins that begin at ``starts`` (the first must be 0)."""
        return EdgeBins(size, starts)  # type: ignore[arg-type]

    @staticmethod
    def labels(labels: ArrayLike) -> Bins:
        """Any partition: ``labels[cell]`` is the bin of the cell; each of 0 … max must occur."""
        array = integers(labels, "Bin labels", InvalidBins)
        if array.ndim == 1 and array.size and array[0] == 0 and np.isin(np.diff(array), (0, 1)).all():
            return EdgeBins(array.size, np.flatnonzero(np.diff(array, prepend=-1)))
        return LabelBins(array)

    @staticmethod
    def product(*factors: Bins) -> Bins:
        """Boxes: one bin per combination of the factors' bins, last factor fastest."""
        return ProductBins(factors)

    @staticmethod
    def from_plain(stored: Mapping[str, Any]) -> Bins:
        """Bins from their plain form."""
        return of_kind(_KINDS, stored.get("kind"), "bins")(stored)

    @abstractmethod
    def to_plain(self) -> dict[str, Any]:
        """JSON-ready data."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many bins there are (of any size; ``len`` is limited to 63 bits)."""

    @property
    @abstractmethod
    def contiguous(self) -> bool:
        """Whether every bin is an interval and bins are in the order of their cells."""

    @property
    @abstractmethod
    def sum_of_squares(self) -> int:
        """Σ (cells of a bin)²: twice the number of pairs that share a bin, plus the number of cells."""

    def assign(self, cells: ArrayLike) -> IntArray:
        """The bin of each cell."""
        return self._assign(_indices(cells, self.size))

    @abstractmethod
    def _assign(self, cells: IntArray) -> IntArray:
        """The bin of each cell, all of them known to be within the size."""

    @abstractmethod
    def without_last_cell(self) -> Bins | None:
        """The bins of the other cells, if the last cell is alone in the last bin; otherwise None."""

    def first(self, bins: ArrayLike) -> IntArray:
        """The first cell of each bin."""
        starts = np.unique(self.assignment(), return_index=True)[1]
        return np.asarray(starts[np.asarray(bins)], dtype=np.int64)

    def last(self, bins: ArrayLike) -> IntArray:
        """The last cell of each bin."""
        backwards = np.unique(self.assignment()[::-1], return_index=True)[1]
        return np.asarray(self.size - 1 - backwards[np.asarray(bins)], dtype=np.int64)

    def assignment(self, limit: int = LIMIT) -> IntArray:
        """The bin of every cell, written out."""
        if self.size > limit:
            raise TooLarge(f"A label for each of {self.size:,} cells is above the limit of {limit:,}.")
        return self.assign(np.arange(self.size, dtype=np.int64))

    def members(self, index: int) -> IntArray:
        """The cells of one bin."""
        if not 0 <= index < self.count:
            raise InvalidBins(f"There is no bin {index}: bins are numbered 0 to {self.count - 1}.")
        if self.contiguous:
            return np.arange(int(self.first(index)), int(self.last(index)) + 1, dtype=np.int64)
        return np.flatnonzero(self.assignment() == index).astype(np.int64)

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[IntArray]:
        return (self.members(index) for index in range(self.count))


def _check_indexable(size: int) -> None:
    if size > _INDEXABLE:
        raise TooLarge(f"Single cells cannot be numbered among {size:,}.")


def _indices(cells: ArrayLike, size: int) -> IntArray:
    """Cell numbers, checked: a row that is outside (−1) must never land in a bin by accident."""
    array = np.asarray(cells)
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise InvalidBins(f"Cells are whole numbers, not {array.dtype}.")
    _check_indexable(size)
    if array.size and not (array.min() >= 0 and array.max() < size):
        raise InvalidBins(f"A cell is outside 0 … {size - 1:,}; rows that are outside belong to no bin.")
    return array.astype(np.int64, copy=False)


def as_bins(bins: Bins | ArrayLike, size: int) -> Bins:
    """``bins``, or the partition that an array of labels describes, over exactly ``size`` cells."""
    partition = bins if isinstance(bins, Bins) else Bins.labels(bins)
    if partition.size != size:
        raise SizeMismatch(f"These bins divide {partition.size:,} cells, but there are {size:,}.")
    return partition


def common_bins(first: Bins | None, second: Bins | None, size: int) -> Bins:
    """The coarsest bins that refine both."""
    if first is None or second is None:
        return first or second or whole_bin(size)
    if first.contiguous and second.contiguous:
        starts = [bins.first(np.arange(bins.count)) for bins in (first, second)]
        return Bins.edges(size, np.union1d(*starts))
    pairs = first.assignment() * second.count + second.assignment()
    return Bins.labels(np.unique(pairs, return_inverse=True)[1])


def whole_bin(size: int) -> Bins:
    """One bin that holds everything."""
    return EqualBins(size, size)


def single_cells(size: int) -> Bins:
    """Every cell alone."""
    return EqualBins(size, 1)


@final
@dataclass(frozen=True, eq=False)
class EqualBins(Bins):
    """Bins of ``cells`` cells each; the last may be short."""

    size: int
    cells: int

    def __post_init__(self) -> None:
        if whole(self.size, "The number of cells", InvalidBins) < 1:
            raise EmptyDomain("There are no cells to divide into bins.")
        if whole(self.cells, "The bin width", InvalidBins) < 1:
            raise InvalidBins(f"A bin must hold at least one cell, not {self.cells}.")

    def to_plain(self) -> dict[str, Any]:
        return {"kind": "width", "size": self.size, "cells": self.cells}

    @property
    def count(self) -> int:
        return ceil_div(self.size, self.cells)

    @property
    def contiguous(self) -> bool:
        return True

    def _assign(self, cells: IntArray) -> IntArray:
        return cells // min(self.cells, self.size)

    @property
    def sum_of_squares(self) -> int:
        whole_bins, rest = divmod(self.size, self.cells)
        return whole_bins * self.cells**2 + rest**2

    def without_last_cell(self) -> Bins | None:
        alone = self.size > 1 and (self.size - 1) % self.cells == 0
        return EqualBins(self.size - 1, self.cells) if alone else None

    def first(self, bins: ArrayLike) -> IntArray:
        _check_indexable(self.size)
        return np.asarray(bins, dtype=np.int64) * min(self.cells, self.size)

    def last(self, bins: ArrayLike) -> IntArray:
        return np.minimum(self.first(bins) + min(self.cells, self.size), self.size) - 1


@final
@dataclass(frozen=True, eq=False)
class EdgeBins(Bins):
    """Contiguous bins with the given first cells."""

    size: int
    starts: IntArray

    def __post_init__(self) -> None:
        if whole(self.size, "The number of cells", InvalidBins) < 1:
            raise EmptyDomain("There are no cells to divide into bins.")
        starts = integers(self.starts, "Bin starts", InvalidBins)
        object.__setattr__(self, "starts", starts)
        if starts.ndim != 1 or starts.size == 0 or starts[0] != 0:
            raise InvalidBins(
                "Bins must cover the domain: the first bin has to start at the first value.",
                fixes=("begin the list of edges with the lowest value of the column",),
            )
        if (np.diff(starts) <= 0).any():
            raise InvalidBins("Bin edges must increase; two are equal or out of order.")
        if starts[-1] >= self.size:
            raise InvalidBins(
                f"The last bin starts at cell {int(starts[-1])}, beyond the last cell {self.size - 1}."
            )

    def to_plain(self) -> dict[str, Any]:
        return {"kind": "edges", "size": self.size, "starts": self.starts.tolist()}

    @property
    def count(self) -> int:
        return int(self.starts.size)

    @property
    def contiguous(self) -> bool:
        return True

    def _assign(self, cells: IntArray) -> IntArray:
        return np.asarray(np.searchsorted(self.starts, cells, side="right") - 1, dtype=np.int64)

    @property
    def sum_of_squares(self) -> int:
        return sum(int(length) ** 2 for length in np.diff(self.starts, append=self.size))

    def without_last_cell(self) -> Bins | None:
        alone = self.size > 1 and self.starts[-1] == self.size - 1
        return EdgeBins(self.size - 1, self.starts[:-1]) if alone else None

    def first(self, bins: ArrayLike) -> IntArray:
        return self.starts[np.asarray(bins, dtype=np.int64)]

    def last(self, bins: ArrayLike) -> IntArray:
        return np.append(self.starts[1:], self.size)[np.asarray(bins, dtype=np.int64)] - 1


@final
@dataclass(frozen=True, eq=False)
class LabelBins(Bins):
    """An arbitrary partition, one label per cell."""

    table: IntArray
    size: int = field(init=False)

    def __post_init__(self) -> None:
        if self.table.ndim != 1 or self.table.size == 0:
            raise EmptyDomain("There are no labels: a partition needs at least one cell.")
        if self.table.min() < 0 or np.unique(self.table).size != int(self.table.max()) + 1:
            raise InvalidBins("Labels must be 0, 1, 2, … without gaps, so that no bin is empty.")
        object.__setattr__(self, "size", int(self.table.size))

    def to_plain(self) -> dict[str, Any]:
        return {"kind": "labels", "labels": self.table.tolist()}

    @property
    def count(self) -> int:
        return int(self.table.max()) + 1

    @property
    def contiguous(self) -> bool:
        return bool(self.table[0] == 0 and np.isin(np.diff(self.table), (0, 1)).all())

    def _assign(self, cells: IntArray) -> IntArray:
        return self.table[cells]

    @property
    def sum_of_squares(self) -> int:
        return sum(int(cells) ** 2 for cells in np.bincount(self.table))

    def without_last_cell(self) -> Bins | None:
        alone = self.table[-1] == self.table.max() and np.count_nonzero(self.table == self.table[-1]) == 1
        return Bins.labels(self.table[:-1]) if alone and self.size > 1 else None

    def runs(self) -> tuple[Bins, IntArray]:
        """The maximal intervals with one label, and the label of each."""
        starts = np.flatnonzero(np.diff(self.table, prepend=-1)).astype(np.int64)
        return EdgeBins(self.size, starts), self.table[starts]


@final
@dataclass(frozen=True, eq=False)
class ProductBins(Bins):
    """Boxes of a product domain, numbered in row-major order."""

    factors: tuple[Bins, ...]
    size: int = field(init=False)

    def __post_init__(self) -> None:
        if not self.factors:
            raise EmptyDomain("A product of bins needs at least one factor.")
        if not all(isinstance(factor, Bins) for factor in self.factors):
            raise InvalidBins("A product of bins is made of bins.")
        object.__setattr__(self, "size", math.prod(factor.size for factor in self.factors))

    def to_plain(self) -> dict[str, Any]:
        return {"kind": "product", "factors": [factor.to_plain() for factor in self.factors]}

    @property
    def count(self) -> int:
        return math.prod(factor.count for factor in self.factors)

    @property
    def contiguous(self) -> bool:
        """Only when at most one factor is cut, and everything before it is single cells."""
        cut = [i for i, factor in enumerate(self.factors) if factor.count > 1]
        if not cut:
            return True
        single = all(f.count == f.size and f.contiguous for f in self.factors[: cut[-1]])
        return single and self.factors[cut[-1]].contiguous

    def _assign(self, cells: IntArray) -> IntArray:
        parts = np.unravel_index(cells, tuple(f.size for f in self.factors))
        bins = tuple(factor.assign(part) for factor, part in zip(self.factors, parts, strict=True))
        return np.asarray(np.ravel_multi_index(bins, tuple(f.count for f in self.factors)), dtype=np.int64)

    @property
    def sum_of_squares(self) -> int:
        return math.prod(factor.sum_of_squares for factor in self.factors)

    def without_last_cell(self) -> Bins | None:
        return None

    def first(self, bins: ArrayLike) -> IntArray:
        return self._corner(bins, last=False)

    def last(self, bins: ArrayLike) -> IntArray:
        return self._corner(bins, last=True)

    def _corner(self, bins: ArrayLike, *, last: bool) -> IntArray:
        parts = np.unravel_index(np.asarray(bins, dtype=np.int64), tuple(f.count for f in self.factors))
        cells = tuple(
            factor.last(part) if last else factor.first(part)
            for factor, part in zip(self.factors, parts, strict=True)
        )
        return np.asarray(np.ravel_multi_index(cells, tuple(f.size for f in self.factors)), dtype=np.int64)


_KINDS: Final[dict[str, Callable[[Mapping[str, Any]], Bins]]] = {
    "width": lambda stored: Bins.width(stored["size"], stored["cells"]),
    "edges": lambda stored: Bins.edges(stored["size"], stored["starts"]),
    "labels": lambda stored: Bins.labels(stored["labels"]),
    "product": lambda stored: Bins.product(*map(Bins.from_plain, stored["factors"])),
}
