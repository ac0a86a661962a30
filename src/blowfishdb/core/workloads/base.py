"""What every workload can do.

A workload is a set of linear counting questions over the cells of a domain: a matrix W with one
row per question and one column per cell, kept implicit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from blowfishdb.core.arrays import ByContent, IntArray, whole
from blowfishdb.core.domain.bins import LIMIT, Bins, single_cells
from blowfishdb.core.errors import EmptyDomain, InvalidWorkload, SizeMismatch, TooLarge

Numbers = NDArray[Any]
"""Counts (int64) or estimates (float64); the last axis runs over cells, earlier ones are a batch."""

_FEW = 1024  # entries of a matrix that are quicker to calculate with where all of them are written out


def _sizes(rows: scipy.sparse.csr_array | Numbers) -> Numbers:
    """‖·‖₁ of every row."""
    if isinstance(rows, np.ndarray):
        return np.asarray(np.abs(rows).sum(axis=1))
    return np.asarray(abs(rows).sum(axis=1))


class Workload(ByContent, ABC):
    """Counting questions over cells ``0 … size-1``."""

    size: int

    # --- as a matrix --------------------------------------------------------------------------

    @property
    @abstractmethod
    def count(self) -> int:
        """How many questions there are."""

    @abstractmethod
    def answer(self, x: ArrayLike) -> Numbers:
        """W·x, exact on whole numbers. ``x`` may carry a batch: its last axis runs over cells."""

    @abstractmethod
    def transpose(self, y: ArrayLike) -> Numbers:
        """Wᵀ·y."""

    @abstractmethod
    def sparse(self) -> scipy.sparse.csr_array:
        """W as a sparse integer matrix (times ``denominator``)."""

    @abstractmethod
    def describe(self) -> str:
        """The questions in words."""

    @property
    def denominator(self) -> int:
        """What the entries of ``sparse`` and all norms must be divided by; 1 for counts."""
        return 1

    @property
    def binary(self) -> bool:
        """Whether every entry of W is 0 or 1."""
        return True

    def matrix(self, limit: int = LIMIT) -> Numbers:
        """W written out, one row per question."""
        if self.count * self.size > limit:
            raise TooLarge(
                f"A matrix of {self.count:,} by {self.size:,} entries is above the limit of {limit:,}.",
                fixes=("use answer() instead", "raise the limit"),
            )
        rows = np.asarray(self.sparse().toarray())
        return rows if self.denominator == 1 else _over(rows, self.denominator)

    def gram(self, limit: int = LIMIT) -> Numbers:
        """WᵀW, times ``denominator`` squared."""
        if self.size**2 > limit:
            raise TooLarge(f"A Gram matrix on {self.size:,} cells is above the limit of {limit:,} entries.")
        return self._gram()

    def _gram(self) -> Numbers:
        rows = self.sparse()
        return np.asarray((rows.T @ rows).toarray())

    def __len__(self) -> int:
        return self.count

    # --- how far a record's move changes the answers ------------------------------------------

    def norms(self, cells: ArrayLike) -> Numbers:
        """‖W e_u‖₁ for each cell u: by how much one more record changes the answers."""
        return _sizes(self._columns[np.atleast_1d(cells)]).reshape(np.shape(cells))

    def moves(self, u: ArrayLike, v: ArrayLike) -> Numbers:
        """‖W(e_u − e_v)‖₁ for each pair: by how much a move from u to v changes the answers."""
        if self.binary and self.size**2 <= LIMIT:  # ‖a − b‖₁ = ‖a‖₁ + ‖b‖₁ − 2·a·b for 0/1 columns
            common, here, there = self._common, np.asarray(u), np.asarray(v)
            return np.asarray(common[here, here] + common[there, there] - 2 * common[here, there])
        difference = self._columns[np.atleast_1d(u)] - self._columns[np.atleast_1d(v)]
        return _sizes(difference).reshape(np.shape(u))

    @cached_property
    def _common(self) -> Numbers:
        """How many questions count both of two cells."""
        return self._gram()

    @cached_property
    def _columns(self) -> scipy.sparse.csr_array | Numbers:
        """Wᵀ; a few numbers are written out, which is quicker to calculate with."""
        transposed = self.sparse().T
        if self.count * self.size <= _FEW:
            return np.asarray(transposed.toarray())
        return scipy.sparse.csr_array(transposed)

    @property
    def largest_norm(self) -> int:
        """The largest column norm, exact at any size."""
        merged = self.merged()
        return int(merged.norms(np.arange(merged.size)).max())

    # --- structure: each kind says what it is -------------------------------------------------

    factors: tuple[Workload, ...] = ()
    """The questions of each attribute, last fastest, where every combination of them is asked; else none."""

    @property
    def axes(self) -> tuple[int, ...]:
        """How many cells there are along each axis, where cells are those of a box, row-major; else none."""
        return ()

    @property
    def one_per_cell(self) -> bool:
        """Whether the questions are the cells themselves, in their order."""
        return False

    @property
    def prefixes(self) -> bool:
        """Whether the questions are the counts up to each cell, in their order."""
        return False

    @property
    def every_range(self) -> bool:
        """Whether the questions are all intervals of cells: differences of any two prefixes."""
        return False

    def intervals(self) -> tuple[IntArray, IntArray] | None:
        """The questions as intervals [start, stop) of cells, where they are that."""
        return None

    def within_reach(self, reach: int) -> int | None:
        """The largest ‖W(e_u−e_v)‖₁ over |u−v| ≤ reach, if it depends on |u−v| alone; else None."""
        return None

    @property
    def grows_with_distance(self) -> bool:
        """Whether a longer move never changes the answers less than a shorter one."""
        return False

    # --- projection onto the cells that matter ------------------------------------------------

    def cells(self) -> Bins:
        """Bins of cells that no question tells apart."""
        return single_cells(self.size)

    def merged(self) -> Workload:
        """The same questions over those bins: W* with W = W*·T."""
        return self


def check_cells(size: object) -> int:
    """A number of cells, at least one."""
    cells = whole(size, "The number of cells", InvalidWorkload)
    if cells < 1:
        raise EmptyDomain(f"A workload needs at least one cell, not {cells}.")
    return cells


def vector(x: ArrayLike, size: int) -> Numbers:
    """``x`` with ``size`` entries on its last axis; whole numbers stay whole."""
    array = np.asarray(x)
    if array.ndim == 0 or array.shape[-1] != size:
        raise SizeMismatch(f"Expected {size:,} numbers, got an array of shape {array.shape}.")
    return array


_over = np.vectorize(lambda entry, denominator: Fraction(int(entry), denominator), otypes=[object])


def exact(value: int, denominator: int) -> int | Fraction:
    """value / denominator, as an int where it is one."""
    quotient = Fraction(value, denominator)
    return quotient.numerator if quotient.denominator == 1 else quotient


def interval_rows(size: int, starts: IntArray, ends: IntArray) -> scipy.sparse.csr_array:
    """0/1 rows that count the cells starts[r] … ends[r]."""
    lengths = ends - starts + 1
    pointers = np.concatenate(([0], np.cumsum(lengths)))
    if pointers[-1] > 10 * LIMIT:
        raise TooLarge(f"Writing out ranges with {int(pointers[-1]):,} entries is above the limit.")
    offsets = np.arange(pointers[-1]) - np.repeat(pointers[:-1], lengths)
    columns = np.repeat(starts, lengths) + offsets
    return scipy.sparse.csr_array(
        (np.ones(columns.size, dtype=np.int64), columns, pointers), shape=(starts.size, size)
    )
