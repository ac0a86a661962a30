"""Workloads on a line of cells: histogram, cumulative histogram, ranges, and balances of both sides."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np
import scipy
from numpy.typing import ArrayLike

from blowfishdb.core.arrays import FloatArray, IntArray, integers, whole
from blowfishdb.core.domain.bins import LIMIT, Bins, EdgeBins
from blowfishdb.core.errors import InvalidWorkload, TooLarge
from blowfishdb.core.workloads.base import Numbers, Workload, check_cells, interval_rows, vector


@final
@dataclass(frozen=True, eq=False)
class Histogram(Workload):
    """How many records are in each cell.

    >>> bf.workloads.Histogram(3).answer([4, 0, 2])
    array([4, 0, 2])
    """

    size: int

    def __post_init__(self) -> None:
        check_cells(self.size)

    @property
    def count(self) -> int:
        return self.size

    def answer(self, x: ArrayLike) -> Numbers:
        return vector(x, self.size).copy()

    def transpose(self, y: ArrayLike) -> Numbers:
        return vector(y, self.size).copy()

    def sparse(self) -> scipy.sparse.csr_array:
        return scipy.sparse.csr_array(scipy.sparse.eye_array(self.size, dtype=np.int64))

    def intervals(self) -> tuple[IntArray, IntArray]:
        cells = np.arange(self.size, dtype=np.int64)
        return cells, cells + 1

    def describe(self) -> str:
        return f"histogram of {self.size:,} cells"

    def norms(self, cells: ArrayLike) -> Numbers:
        return np.ones(np.shape(cells), dtype=np.int64)

    def moves(self, u: ArrayLike, v: ArrayLike) -> Numbers:
        return np.where(np.equal(u, v), 0, 2)

    @property
    def one_per_cell(self) -> bool:
        return True

    @property
    def largest_norm(self) -> int:
        return 1

    def within_reach(self, reach: int) -> int:
        return 2 if reach else 0

    @property
    def grows_with_distance(self) -> bool:
        return True


@final
@dataclass(frozen=True, eq=False)
class Cumulative(Workload):
    """How many records are in each cell or to its left.

    >>> bf.workloads.Cumulative(3).answer([4, 0, 2])
    array([4, 4, 6])
    """

    size: int

    def __post_init__(self) -> None:
        check_cells(self.size)

    @property
    def count(self) -> int:
        return self.size

    def answer(self, x: ArrayLike) -> Numbers:
        return np.cumsum(vector(x, self.size), axis=-1)

    def transpose(self, y: ArrayLike) -> Numbers:
        return np.flip(np.cumsum(np.flip(vector(y, self.size), axis=-1), axis=-1), axis=-1)

    def sparse(self) -> scipy.sparse.csr_array:
        return interval_rows(self.size, np.zeros(self.size, dtype=np.int64), np.arange(self.size))

    def _gram(self) -> Numbers:
        cells = np.arange(self.size)
        return self.size - np.maximum.outer(cells, cells)

    def intervals(self) -> tuple[IntArray, IntArray]:
        cells = np.arange(self.size, dtype=np.int64)
        return np.zeros_like(cells), cells + 1

    def describe(self) -> str:
        return f"cumulative histogram of {self.size:,} cells"

    def norms(self, cells: ArrayLike) -> Numbers:
        return self.size - np.asarray(cells, dtype=np.int64)

    def moves(self, u: ArrayLike, v: ArrayLike) -> Numbers:
        return np.abs(np.subtract(u, v))

    @property
    def prefixes(self) -> bool:
        return True

    @property
    def largest_norm(self) -> int:
        return self.size

    def within_reach(self, reach: int) -> int:
        return reach

    @property
    def grows_with_distance(self) -> bool:
        return True


@final
@dataclass(frozen=True, eq=False)
class AllRanges(Workload):
    """Every interval of cells, ordered by first and then by last cell.

    >>> bf.workloads.AllRanges(3).answer([4, 0, 2])
    array([4, 4, 6, 0, 2, 2])
    """

    size: int

    def __post_init__(self) -> None:
        check_cells(self.size)

    @property
    def count(self) -> int:
        return self.size * (self.size + 1) // 2

    def _ends(self) -> tuple[IntArray, IntArray]:
        starts, ends = np.triu_indices(self.size)
        return starts.astype(np.int64), ends.astype(np.int64)

    def answer(self, x: ArrayLike) -> Numbers:
        return prefix_differences(vector(x, self.size), *self._ends())

    def transpose(self, y: ArrayLike) -> Numbers:
        return scatter_ranges(vector(y, self.count), self.size, *self._ends())

    def sparse(self) -> scipy.sparse.csr_array:
        return interval_rows(self.size, *self._ends())

    def _gram(self) -> Numbers:
        cells = np.arange(self.size)
        left, right = np.minimum.outer(cells, cells), np.maximum.outer(cells, cells)
        return np.asarray((left + 1) * (self.size - right))

    def intervals(self) -> tuple[IntArray, IntArray]:
        if self.count > LIMIT:
            raise TooLarge(
                f"{self.count:,} answers are too many to list.",
                fixes=("ask for the cumulative histogram: a range is a difference of two of its answers",),
            )
        starts, ends = self._ends()
        return starts, ends + 1

    def describe(self) -> str:
        return f"all ranges of {self.size:,} cells"

    def norms(self, cells: ArrayLike) -> Numbers:
        cell = np.asarray(cells, dtype=np.int64)
        return (cell + 1) * (self.size - cell)

    def moves(self, u: ArrayLike, v: ArrayLike) -> Numbers:
        distance = np.abs(np.subtract(u, v))
        return np.asarray(distance * (self.size + 1 - distance))

    @property
    def every_range(self) -> bool:
        return True

    @property
    def largest_norm(self) -> int:
        return ((self.size + 1) // 2) * ((self.size + 2) // 2)

    def within_reach(self, reach: int) -> int:
        """A move over d cells crosses d·(k+1−d) ranges: concave in d, largest at (k+1)/2."""
        distance = min(reach, (self.size + 1) // 2)
        return distance * (self.size + 1 - distance)


@final
@dataclass(frozen=True, eq=False, init=False)
class Ranges(Workload):
    """Given intervals of cells, both ends included.

    >>> bf.workloads.Ranges(3, [0, 1], [1, 2]).answer([4, 0, 2])
    array([4, 2])
    """

    size: int
    starts: IntArray
    ends: IntArray

    def __init__(self, size: int, starts: ArrayLike, ends: ArrayLike) -> None:
        check_cells(size)
        first = integers(starts, "Range starts", InvalidWorkload)
        last = integers(ends, "Range ends", InvalidWorkload)
        if first.ndim != 1 or first.shape != last.shape or first.size == 0:
            raise InvalidWorkload("Ranges need as many ends as starts, and at least one.")
        if (first > last).any() or first.min() < 0 or last.max() >= size:
            raise InvalidWorkload(f"Each range must run from a first to a last cell within 0 … {size - 1:,}.")
        object.__setattr__(self, "size", int(size))
        object.__setattr__(self, "starts", first)
        object.__setattr__(self, "ends", last)

    @property
    def count(self) -> int:
        return int(self.starts.size)

    def answer(self, x: ArrayLike) -> Numbers:
        return prefix_differences(vector(x, self.size), self.starts, self.ends)

    def transpose(self, y: ArrayLike) -> Numbers:
        return scatter_ranges(vector(y, self.count), self.size, self.starts, self.ends)

    def sparse(self) -> scipy.sparse.csr_array:
        return interval_rows(self.size, self.starts, self.ends)

    def intervals(self) -> tuple[IntArray, IntArray]:
        return self.starts, self.ends + 1

    def describe(self) -> str:
        return f"{self.count:,} ranges over {self.size:,} cells"

    def cells(self) -> Bins:
        cuts = np.unique(np.concatenate(([0], self.starts, self.ends + 1)))
        return EdgeBins(self.size, cuts[cuts < self.size])

    def merged(self) -> Workload:
        segments = self.cells()
        if segments.count == self.size:
            return self
        return Ranges(segments.count, segments.assign(self.starts), segments.assign(self.ends))


@final
@dataclass(frozen=True, eq=False)
class Balances(Workload):
    """For every share q and every cell, the rows up to it less q of all rows: zero at the quantile.

    A row that comes or goes changes it by q or by 1 − q, where it changes a curve and its end by one.

    >>> from fractions import Fraction
    >>> bf.workloads.Balances(3, (Fraction(1, 2),)).answer([4, 0, 2])
    array([1., 1., 3.])
    """

    size: int
    shares: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        check_cells(self.size)
        if not self.shares or not all(isinstance(q, Fraction) and 0 < q < 1 for q in self.shares):
            raise InvalidWorkload("Balances are about shares between 0 and 1, as fractions.")

    @property
    def count(self) -> int:
        return self.size * len(self.shares)

    @property
    def denominator(self) -> int:
        return math.lcm(*(share.denominator for share in self.shares))

    @property
    def binary(self) -> bool:
        return False

    @cached_property
    def _taken(self) -> IntArray:
        """q·denominator of every share."""
        return np.array([int(share * self.denominator) for share in self.shares], dtype=np.int64)

    def of_curve(self, curve: Numbers) -> FloatArray:
        """The answers from the counts up to each cell, along the last axis."""
        shares = self._taken / self.denominator
        each = curve[..., None, :] - shares[:, None] * curve[..., None, -1:]
        return np.asarray(each.reshape(*curve.shape[:-1], self.count), dtype=np.float64)

    def answer(self, x: ArrayLike) -> Numbers:
        curve = np.cumsum(vector(x, self.size), axis=-1)
        each = self.denominator * curve[..., None, :] - self._taken[:, None] * curve[..., None, -1:]
        return np.asarray(each.reshape(*curve.shape[:-1], self.count) / self.denominator)

    def transpose(self, y: ArrayLike) -> Numbers:
        each = vector(y, self.count).reshape(*np.shape(y)[:-1], len(self.shares), self.size)
        later = np.flip(np.cumsum(np.flip(each, axis=-1), axis=-1), axis=-1)
        taken = self._taken[:, None] / self.denominator * each.sum(axis=-1, keepdims=True)
        return np.asarray((later - taken).sum(axis=-2))

    def sparse(self) -> scipy.sparse.csr_array:
        up_to = np.tril(np.ones((self.size, self.size), dtype=np.int64)) * self.denominator
        return scipy.sparse.csr_array(np.concatenate([up_to - taken for taken in self._taken]))

    def describe(self) -> str:
        listed = ", ".join(map(str, self.shares))
        return f"rows up to each of {self.size:,} cells beyond {listed} of all"

    def norms(self, cells: ArrayLike) -> Numbers:
        before = np.asarray(cells, dtype=np.int64)[..., None]
        after = self.size - before
        return np.asarray((before * self._taken + after * (self.denominator - self._taken)).sum(axis=-1))

    def moves(self, u: ArrayLike, v: ArrayLike) -> Numbers:
        return np.abs(np.subtract(u, v)) * self.denominator * len(self.shares)

    @property
    def largest_norm(self) -> int:
        return int(self.norms(np.array([0, self.size - 1])).max())

    def within_reach(self, reach: int) -> int:
        return reach * self.denominator * len(self.shares)

    @property
    def grows_with_distance(self) -> bool:
        return True


@final
@dataclass(frozen=True, eq=False)
class ValueSum(Workload):
    """One question: the sum of the records' values, cell i having the value ``first`` + i·``stride``.

    What a SUM needs, in whole units. A move changes it by its length times the stride, wherever it
    happens; a record that comes or goes changes it by its whole value. With ``missing`` the last cell has no
    value: its records add nothing, as in SQL.

    >>> bf.workloads.ValueSum(3, first=10, stride=5).answer([4, 0, 2])
    array([80])
    """

    size: int
    first: int = 0
    stride: int = 1
    missing: bool = False

    def __post_init__(self) -> None:
        check_cells(self.size)
        whole(self.first, "The first value", InvalidWorkload)
        if whole(self.stride, "The stride", InvalidWorkload) < 1:
            raise InvalidWorkload(f"Values must increase from cell to cell, not by {self.stride}.")

    @property
    def count(self) -> int:
        return 1

    @property
    def binary(self) -> bool:
        return False

    def _values(self) -> IntArray:
        values = self.first + self.stride * np.arange(self.size, dtype=np.int64)
        if self.missing:
            values[-1] = 0
        return values

    def answer(self, x: ArrayLike) -> Numbers:
        return np.asarray((vector(x, self.size) * self._values()).sum(axis=-1, keepdims=True))

    def transpose(self, y: ArrayLike) -> Numbers:
        return np.asarray(vector(y, 1) * self._values())

    def sparse(self) -> scipy.sparse.csr_array:
        return scipy.sparse.csr_array(self._values()[None, :])

    def describe(self) -> str:
        return f"sum of the values of {self.size:,} cells"

    def norms(self, cells: ArrayLike) -> Numbers:
        return np.asarray(np.abs(self._values()[np.asarray(cells)]))

    def moves(self, u: ArrayLike, v: ArrayLike) -> Numbers:
        if self.missing:
            values = self._values()
            return np.asarray(np.abs(values[np.asarray(u)] - values[np.asarray(v)]))
        return np.asarray(np.abs(np.subtract(u, v)) * self.stride)

    @property
    def largest_norm(self) -> int:
        last = self.size - 1 - self.missing
        return max(abs(self.first), abs(self.first + self.stride * last)) if last >= 0 else 0

    def within_reach(self, reach: int) -> int | None:
        return None if self.missing else reach * self.stride

    @property
    def grows_with_distance(self) -> bool:
        return not self.missing


def prefix_differences(x: Numbers, starts: IntArray, ends: IntArray) -> Numbers:
    """Σ x[starts … ends] for each range, along the last axis."""
    prefix = np.concatenate((np.zeros_like(x[..., :1]), np.cumsum(x, axis=-1)), axis=-1)
    return np.asarray(prefix[..., ends + 1] - prefix[..., starts])


def scatter_ranges(y: Numbers, size: int, starts: IntArray, ends: IntArray) -> Numbers:
    """The transpose of ``prefix_differences``."""
    steps = np.zeros((size + 1, *y.shape[:-1]), dtype=y.dtype)
    by_range = np.moveaxis(y, -1, 0)
    np.add.at(steps, starts, by_range)
    np.subtract.at(steps, ends + 1, by_range)
    return np.moveaxis(np.cumsum(steps, axis=0)[:-1], 0, -1)
