"""Rows of counting questions, kept as intervals where they are intervals.

On a line almost everything that is ever measured or asked counts one interval of boxes: cells, prefixes,
ranges, trees. Two whole numbers then say what a row of a sparse matrix says with thousands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.sparse import csr_array, vstack

from blowfishdb.core.arrays import ByContent, IntArray, integers
from blowfishdb.core.bins import LIMIT
from blowfishdb.core.errors import InvalidWorkload, TooLarge
from blowfishdb.core.workloads import AllRanges, Cumulative, Histogram, Product, Ranges, Workload


@final
@dataclass(frozen=True, eq=False)
class Intervals(ByContent):
    """Row r counts the boxes ``starts[r] … stops[r]-1``; equal ends count nothing."""

    size: int
    starts: IntArray
    stops: IntArray

    def __post_init__(self) -> None:
        starts = integers(self.starts, "Interval starts", InvalidWorkload)
        stops = integers(self.stops, "Interval ends", InvalidWorkload)
        if starts.ndim != 1 or starts.shape != stops.shape:
            raise InvalidWorkload("Intervals need as many ends as starts.")
        if starts.size and not (starts.min() >= 0 and (starts <= stops).all() and stops.max() <= self.size):
            raise InvalidWorkload(f"Each interval must lie within 0 … {self.size:,}.")
        object.__setattr__(self, "starts", starts)
        object.__setattr__(self, "stops", stops)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(self.starts.size)

    def sparse(self) -> csr_array:
        """The same rows written out."""
        lengths = self.stops - self.starts
        pointers = np.concatenate(([0], np.cumsum(lengths)))
        if pointers[-1] > LIMIT:
            raise TooLarge(f"Writing out intervals with {int(pointers[-1]):,} entries is above the limit.")
        columns = np.arange(pointers[-1]) + np.repeat(self.starts - pointers[:-1], lengths)
        ones = np.ones(columns.size, dtype=np.int64)
        return csr_array((ones, columns, pointers), shape=(self.count, self.size))


@final
@dataclass(frozen=True, eq=False)
class Sparse(ByContent):
    """Any rows of whole numbers, ``denominator`` times what they stand for."""

    size: int
    columns: IntArray
    entries: IntArray
    pointers: IntArray
    denominator: int = 1

    @classmethod
    def of(cls, matrix: csr_array, denominator: int = 1) -> Sparse:
        """The rows of a sparse matrix; entries that are not whole numbers are refused."""
        tidy = csr_array(matrix, copy=True)
        tidy.sum_duplicates()
        tidy.eliminate_zeros()
        columns, entries, pointers = (
            integers(part, "Rows", InvalidWorkload) for part in (tidy.indices, tidy.data, tidy.indptr)
        )
        return cls(int(tidy.shape[1]), columns, entries, pointers, denominator)

    def __post_init__(self) -> None:
        steps = np.diff(self.pointers)
        if self.pointers.size == 0 or self.pointers[0] != 0 or (steps < 0).any():
            raise InvalidWorkload("Row pointers begin at zero and never fall.")
        if self.pointers[-1] != self.columns.size or self.columns.shape != self.entries.shape:
            raise InvalidWorkload("Every entry of a row has one column.")
        if self.columns.size and not (self.columns.min() >= 0 and self.columns.max() < self.size):
            raise InvalidWorkload(f"Columns are numbered 0 … {self.size - 1:,}.")
        if self.denominator < 1:
            raise InvalidWorkload("A denominator is a positive whole number.")

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(self.pointers.size) - 1

    def sparse(self) -> csr_array:
        """The rows as a matrix, times ``denominator``."""
        return csr_array((self.entries, self.columns, self.pointers), shape=(self.count, self.size))


Rows = Intervals | Sparse


def rows_of(source: Workload | csr_array | Rows) -> Rows:
    """Rows in their shortest form."""
    if isinstance(source, Intervals | Sparse):
        return source
    if not isinstance(source, Workload):
        return _shortest(Sparse.of(source))
    found = _known(source)
    return _shortest(Sparse.of(source.sparse(), source.denominator)) if found is None else found


def stacked(first: Rows, second: Rows) -> Rows:
    """The rows of both, one after the other."""
    if isinstance(first, Intervals) and isinstance(second, Intervals):
        starts, stops = ((first.starts, second.starts), (first.stops, second.stops))
        return Intervals(first.size, np.concatenate(starts), np.concatenate(stops))
    return rows_of(csr_array(vstack([first.sparse(), second.sparse()])))


def chosen(rows: Rows, some: IntArray) -> Rows:
    """Some of the rows."""
    if isinstance(rows, Intervals):
        return Intervals(rows.size, rows.starts[some], rows.stops[some])
    return rows_of(csr_array(rows.sparse()[some]))


def _known(workload: Workload) -> Intervals | None:
    """The intervals of a workload whose shape is known without writing it out."""
    size = workload.size
    cells = np.arange(size if isinstance(workload, Histogram | Cumulative) else 0, dtype=np.int64)
    if isinstance(workload, Histogram):
        return Intervals(size, cells, cells + 1)
    if isinstance(workload, Cumulative):
        return Intervals(size, np.zeros_like(cells), cells + 1)
    if isinstance(workload, Ranges):
        return Intervals(size, workload.starts, workload.ends + 1)
    if isinstance(workload, AllRanges):
        if workload.count > LIMIT:
            raise TooLarge(f"{workload.count:,} ranges are above the limit of {LIMIT:,}.")
        return all_intervals(size)
    if isinstance(workload, Product) and len(workload.factors) == 1:
        return _known(workload.factors[0])
    return None


def all_intervals(size: int) -> Intervals:
    """Every interval of ``size`` boxes."""
    starts, ends = np.triu_indices(size)
    return Intervals(size, starts.astype(np.int64), ends.astype(np.int64) + 1)


def _shortest(rows: Sparse) -> Rows:
    """Intervals, if every row is one."""
    steps = np.diff(rows.pointers)
    some = steps > 0
    first, last = np.zeros_like(steps), np.zeros_like(steps) - 1
    if rows.columns.size:
        at = rows.pointers[:-1][some]
        first[some] = np.minimum.reduceat(rows.columns, at)
        last[some] = np.maximum.reduceat(rows.columns, at)
    full = rows.denominator == 1 and (rows.entries == 1).all() and (last - first + 1 == steps).all()
    return Intervals(rows.size, first, last + 1) if full else rows
