"""Chosen entries of the inverse of a sparse symmetric matrix, whole rounds of variables at a time.

Variables are eliminated in rounds. Each round is an independent set of variables of low degree, so that with
M = [[D, F], [Fᵀ, R]] and D diagonal the next matrix is R − FᵀD⁻¹F. Backwards (Takahashi's recursion), with X
the inverse of that one and K = D⁻¹F,

    inverse = [[D⁻¹ + K·X·Kᵀ, −K·X], [·, X]],

of which only the pattern of [D, F] is needed; the entries of X that this takes are in the pattern of R −
FᵀD⁻¹F. Paths, rings and trees fill in next to nothing. Transposes are plain, so a complex symmetric matrix
works too: imaginary steps give derivatives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from blowfishdb.core.arrays import BoolArray, IntArray

Entries = NDArray[Any]

_CORE = 64
_MOST_FILL = 20


@final
@dataclass(frozen=True, eq=False)
class _Round:
    """One round of elimination, as places among the entries of its matrix M and of the next one."""

    diagonal: IntArray
    """D in M."""
    coupling: IntArray
    """F in M, row by row."""
    mirrored: IntArray
    """Fᵀ in M, in the order of F."""
    inner: IntArray
    """R in M."""
    row: IntArray
    """The row of each entry of F."""
    first: IntArray
    """All pairs of entries in one row of F: the first of each …"""
    second: IntArray
    """… and the second."""
    after: IntArray
    """Each entry of R, and then each pair, in the next matrix."""
    entries: int
    """How many entries the next matrix has."""


@final
@dataclass(frozen=True, eq=False)
class SelectedInverse:
    """The order of elimination for one symmetric pattern; any numbers on that pattern can follow it."""

    size: int
    keys: IntArray
    """The pattern: row·size + column, increasing."""
    rounds: tuple[_Round, ...]
    core: IntArray
    """The pattern of what is left, as places in a small dense matrix."""
    left: int

    @classmethod
    def of(cls, size: int, row: IntArray, column: IntArray) -> SelectedInverse | None:
        """A plan for a symmetric pattern that includes its diagonal; None if it fills in too much."""
        keys = np.unique(row * size + column)
        most = _MOST_FILL * keys.size
        rounds, width, now = [], size, keys
        while width > _CORE:
            step, now, width = _eliminate(now, width)
            if now.size > most or step.diagonal.size == 0 or step.first.size > most:
                return None
            rounds.append(step)
        return cls(size, keys, tuple(rounds), now, width)

    def inverse(self, row: IntArray, column: IntArray, data: Entries) -> Entries:
        """The entries of the inverse of Σ data·e_row·e_columnᵀ on the pattern, in the order of ``keys``."""
        entries = np.zeros(self.keys.size, dtype=data.dtype)
        np.add.at(entries, np.searchsorted(self.keys, row * self.size + column), data)
        factors = []
        for step in self.rounds:
            pivots, coupling = entries[step.diagonal], entries[step.coupling]
            scaled = coupling / pivots[step.row]
            factors.append((pivots, scaled))
            fill = -coupling[step.first] * scaled[step.second]
            entries, inner = np.zeros(step.entries, dtype=data.dtype), entries[step.inner]
            np.add.at(entries, step.after, np.concatenate((inner, fill)))
        dense = np.zeros(self.left**2, dtype=data.dtype)
        dense[self.core] = entries
        entries = np.linalg.inv(dense.reshape(self.left, self.left)).ravel()[self.core]
        for step, (pivots, scaled) in zip(reversed(self.rounds), reversed(factors), strict=True):
            entries = _back(step, pivots, scaled, entries)
        return entries

    def holds(self, row: IntArray, column: IntArray) -> BoolArray:
        """Whether an entry is in the pattern."""
        key = row * self.size + column
        at = np.minimum(np.searchsorted(self.keys, key), self.keys.size - 1)
        return np.asarray(self.keys[at] == key)

    def entries(self, inverse: Entries, row: IntArray, column: IntArray) -> Entries:
        """Single entries of the inverse, all of them in the pattern."""
        return np.asarray(inverse[np.searchsorted(self.keys, row * self.size + column)])


def _back(step: _Round, pivots: Entries, scaled: Entries, after: Entries) -> Entries:
    pairs = after[step.after[step.inner.size :]]  # X at every pair of neighbours
    beside = np.zeros(scaled.size, dtype=after.dtype)
    np.subtract.at(beside, step.second, scaled[step.first] * pairs)
    own = 1 / pivots
    np.subtract.at(own, step.row, scaled * beside)
    before = np.zeros(step.diagonal.size + 2 * step.coupling.size + step.inner.size, dtype=after.dtype)
    before[step.diagonal] = own
    before[step.coupling] = beside
    before[step.mirrored] = beside
    before[step.inner] = after[step.after[: step.inner.size]]
    return before


def _eliminate(keys: IntArray, size: int) -> tuple[_Round, IntArray, int]:
    """One round on a pattern, the pattern that it leaves, and the number of variables left."""
    row, column = np.divmod(keys, size)
    gone = _independent(row, column, size)
    number, left = np.cumsum(~gone) - 1, int((~gone).sum())
    local = np.cumsum(gone) - 1
    coupling = np.flatnonzero(gone[row] & ~gone[column])
    inner = np.flatnonzero(~gone[row] & ~gone[column])
    at = local[row[coupling]]
    degree = np.bincount(at, minlength=int(gone.sum()))
    first = np.repeat(np.arange(coupling.size), degree[at])
    within = np.arange(first.size) - np.repeat(np.cumsum(degree[at]) - degree[at], degree[at])
    second = np.repeat((np.cumsum(degree) - degree)[at], degree[at]) + within
    ends = number[column[coupling]]
    kept = number[row[inner]] * left + number[column[inner]]
    pattern, after = np.unique(np.concatenate((kept, ends[first] * left + ends[second])), return_inverse=True)
    step = _Round(
        diagonal=np.flatnonzero(gone[row] & (row == column)),
        coupling=coupling,
        mirrored=np.searchsorted(keys, column[coupling] * size + row[coupling]),
        inner=inner,
        row=at,
        first=first,
        second=second,
        after=after,
        entries=int(pattern.size),
    )
    return step, pattern, left


def _independent(row: IntArray, column: IntArray, size: int) -> BoolArray:
    """Variables of low degree that come before all their neighbours, by degree and then by lot."""
    degree = np.bincount(row, minlength=size)
    lot = np.random.Generator(np.random.Philox(key=[1, size])).permutation(size)
    rank = degree * size + lot
    apart = row != column
    least = np.full(size, np.iinfo(np.int64).max)
    np.minimum.at(least, row[apart], rank[column[apart]])
    return np.asarray((rank < least) & (degree <= 2 * row.size / size + 2))
