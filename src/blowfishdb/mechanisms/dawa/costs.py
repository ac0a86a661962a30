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
    direct, by_rank = _kernels()
    if length <= _DIRECT:
        return np.asarray(direct(x, length, units))
    return np.asarray(by_rank(x, *ranked.places, length, units))


def _direct(x: IntArray, length: int, units: int) -> IntArray:
    found = np.empty(x.size - length + 1, dtype=np.int64)
    total = x[:length].sum()
    for start in range(found.size):
        if start:
            total += x[start + length - 1] - x[start - 1]
        twice = 0
        for j in range(start, start + length):
            twice += max(x[j] * length - total, 0)
        whole, rest = 2 * twice // length, 2 * twice % length
        found[start] = whole * units + rest * units // length
    return found


def _by_rank(x: IntArray, values: IntArray, ranks: IntArray, length: int, units: int) -> IntArray:
    """A Fenwick tree over the distinct values holds how many cells of the window have each, and their sum."""
    top = 1
    while 2 * top <= values.size:
        top *= 2
    counts, sums = np.zeros(values.size + 1, dtype=np.int64), np.zeros(values.size + 1, dtype=np.int64)
    found = np.empty(x.size - length + 1, dtype=np.int64)
    total = 0
    for j in range(x.size):
        total += x[j]
        place = ranks[j] + 1
        while place <= values.size:
            counts[place] += 1
            sums[place] += x[j]
            place += place & -place
        start = j - length + 1
        if start < 0:
            continue
        below, of_below, place, step = 0, 0, 0, top
        while step:
            if place + step <= values.size and values[place + step - 1] * length < total:
                place += step
                below += counts[place]
                of_below += sums[place]
            step //= 2
        twice = 2 * (below * total - of_below * length)  # as much below the mean as above it
        whole, rest = twice // length, twice % length
        found[start] = whole * units + rest * units // length
        total -= x[start]
        place = ranks[start] + 1
        while place <= values.size:
            counts[place] -= 1
            sums[place] -= x[start]
            place += place & -place
    return found


@cache
def _kernels() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Both loops, compiled where numba is installed; the same code runs, slowly, without it."""
    try:
        from numba import njit
    except ImportError:
        return _direct, _by_rank
    return njit(cache=True)(_direct), njit(cache=True)(_by_rank)
