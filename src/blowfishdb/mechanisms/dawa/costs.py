"""How uneven an interval of cells is: exact deviations, as whole numbers of a public unit.

dev(b) = Σ_{j∈b} |x_j − mean| = 2·(L·S⁺ − c⁺·S)/L, where S is the sum of the L cells, S⁺ and c⁺ the sum and
the number of those at or above the mean ([D14] §3.2, with the parentheses that its last formula lost). One
record more or less changes it by at most 2(1 − 1/L).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from math import lcm
from typing import Any, final

import numpy as np

from blowfishdb.core.arrays import IntArray, ceil_div
from blowfishdb.core.errors import TooLarge

_FINEST = 2**12
_COARSE = 2**8
_DIRECT = 32  # lengths up to which looking at every cell is faster than a search tree
_SAFE = 2**60


def resolution(lengths: Sequence[int]) -> int:
    """Units per record: as many as make every deviation a whole number, or 256 where that is too many."""
    common = 1
    for length in lengths:
        common = lcm(common, length)
        if common > 2 * _FINEST:
            return _COARSE
    return max(1, common // 2 if common % 2 == 0 else common)


def sensitivity(length: int, units: int) -> int:
    """By how many units one record more or less changes the deviation of ``length`` cells, rounded down."""
    return ceil_div(2 * (length - 1) * units, length)


@final
@dataclass(frozen=True, eq=False)
class Ranked:
    """Cells, with the place of each one's count among the distinct counts: sorted once, for all lengths."""

    cells: IntArray

    @cached_property
    def places(self) -> tuple[IntArray, IntArray]:
        """The distinct counts in increasing order, and which of them every cell has."""
        values, which = np.unique(self.cells, return_inverse=True)
        return values, which.astype(np.int64)


def deviations(ranked: Ranked, length: int, units: int) -> IntArray:
    """⌊units·dev⌋ of every interval of ``length`` cells, by first cell: O(n log n)."""
    x = ranked.cells
    if x.size and int(np.abs(x).sum()) * max(4 * units, 2 * length) > _SAFE:
        raise TooLarge("The counts are too large for exact sums of deviations in 64 bits.")
    if length == 1:
        return np.zeros(x.size, dtype=np.int64)
    starts = np.arange(x.size - length + 1)
    return _windows(ranked, starts, starts + length, units, longest=length)


def prefix_deviations(ranked: Ranked, units: int) -> IntArray:
    """The same of the first 1, 2, … cells."""
    stops = np.arange(1, ranked.cells.size + 1)
    return _windows(ranked, np.zeros_like(stops), stops, units, longest=ranked.cells.size)


def _windows(ranked: Ranked, starts: IntArray, stops: IntArray, units: int, *, longest: int) -> IntArray:
    """Of windows whose ends never move back."""
    direct, by_rank = _kernels()
    if longest <= _DIRECT:
        return np.asarray(direct(ranked.cells, starts, stops, units))
    return np.asarray(by_rank(ranked.cells, *ranked.places, starts, stops, units))


def _direct(x: IntArray, starts: IntArray, stops: IntArray, units: int) -> IntArray:
    found = np.empty(starts.size, dtype=np.int64)
    total, first, last = 0, 0, 0
    for i in range(starts.size):
        while last < stops[i]:
            total += x[last]
            last += 1
        while first < starts[i]:
            total -= x[first]
            first += 1
        length, above = last - first, 0
        for j in range(first, last):
            above += max(x[j] * length - total, 0)
        found[i] = 2 * above // length * units + 2 * above % length * units // length
    return found


def _by_rank(
    x: IntArray, values: IntArray, ranks: IntArray, starts: IntArray, stops: IntArray, units: int
) -> IntArray:
    """A Fenwick tree over the distinct values holds how many cells of the window have each, and their sum."""
    top = 1
    while 2 * top <= values.size:
        top *= 2
    counts, sums = np.zeros(values.size + 1, dtype=np.int64), np.zeros(values.size + 1, dtype=np.int64)
    found = np.empty(starts.size, dtype=np.int64)
    total, first, last = 0, 0, 0
    for i in range(starts.size):
        while last < stops[i]:
            total += x[last]
            place = ranks[last] + 1
            while place <= values.size:
                counts[place] += 1
                sums[place] += x[last]
                place += place & -place
            last += 1
        while first < starts[i]:
            total -= x[first]
            place = ranks[first] + 1
            while place <= values.size:
                counts[place] -= 1
                sums[place] -= x[first]
                place += place & -place
            first += 1
        length, below, of_below, place, step = last - first, 0, 0, 0, top
        while step:
            if place + step <= values.size and values[place + step - 1] * length < total:
                place += step
                below += counts[place]
                of_below += sums[place]
            step //= 2
        twice = 2 * (below * total - of_below * length)  # as much below the mean as above it
        found[i] = twice // length * units + twice % length * units // length
    return found


@cache
def _kernels() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Both loops, compiled where numba is installed; the same code runs, slowly, without it."""
    try:
        from numba import njit
    except ImportError:
        return _direct, _by_rank
    return njit(cache=True)(_direct), njit(cache=True)(_by_rank)
