"""Stage one: the partition of least noisy cost, and nothing else of it, leaves this file.

Privacy (docs/proofs/dawa.md): one record changes one bucket of the winning partition by at most Δ_b and any
other partition by at most Δ, so noise of scale (Δ + Δ_b)/ε₁ on *every* candidate, single cells included and
nothing clipped, makes the choice ε₁-private.

How uneven an interval of cells is: exact deviations, as whole numbers of a public unit.

dev(b) = Σ_{j∈b} |x_j − mean| = 2·(L·S⁺ − c⁺·S)/L, where S is the sum of the L cells, S⁺ and c⁺ the sum and
the number of those at or above the mean ([D14] §3.2, with the parentheses that its last formula lost). One
record more or less changes it by at most 2(1 − 1/L).

Between cells and buckets: the row in which cells are cut, and the even spread back to them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import final

import numpy as np

from blowfishdb.core.arrays import FloatArray, IntArray, ceil_div
from blowfishdb.core.errors import InvalidBins, TooLarge
from blowfishdb.core.noise import Noise
from blowfishdb.core.workloads import Workload
from blowfishdb.mechanisms.adaptive.tree import hilbert_order
from blowfishdb.mechanisms.compiled import compiled

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
    if longest <= _DIRECT:
        return np.asarray(_direct(ranked.cells, starts, stops, units))
    return np.asarray(_by_rank(ranked.cells, *ranked.places, starts, stops, units))


@compiled()
def _direct(x: IntArray, starts: IntArray, stops: IntArray, units: int) -> IntArray:
    costs = np.empty(starts.size, dtype=np.int64)
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
        costs[i] = 2 * above // length * units + 2 * above % length * units // length
    return costs


@compiled()
def _by_rank(
    x: IntArray, values: IntArray, ranks: IntArray, starts: IntArray, stops: IntArray, units: int
) -> IntArray:
    """A Fenwick tree over the distinct values holds how many cells of the window have each, and their sum."""
    top = 1
    while 2 * top <= values.size:
        top *= 2
    counts, sums = np.zeros(values.size + 1, dtype=np.int64), np.zeros(values.size + 1, dtype=np.int64)
    costs = np.empty(starts.size, dtype=np.int64)
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
        costs[i] = twice // length * units + twice % length * units // length
    return costs


ALL_UP_TO = 128
"""Cells up to which every interval is a candidate; beyond, those whose length is a power of two."""
MOST_FOR_ALL = 2_048
"""Cells up to which every interval may be a candidate, if that is asked for."""


@final
@dataclass(frozen=True)
class Candidates:
    """Public: every interval of ``size`` cells that has one of ``lengths``, in increasing order from 1."""

    size: int
    lengths: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.lengths[:1] != (1,) or self.lengths[-1] > self.size:
            raise InvalidBins("Candidate buckets begin with the single cells and stay within the domain.")

    @classmethod
    def all(cls, size: int) -> Candidates:
        """Every interval: O(n² log n)."""
        return cls(size, tuple(range(1, size + 1)))

    @classmethod
    def powers_of_two(cls, size: int) -> Candidates:
        """Intervals of 1, 2, 4, … cells, wherever they start: O(n log² n)."""
        return cls(size, tuple(1 << power for power in range(size.bit_length())))

    @classmethod
    def usual(cls, size: int) -> Candidates:
        """All while that is quick, powers of two beyond."""
        return cls.all(size) if size <= ALL_UP_TO else cls.powers_of_two(size)

    @cached_property
    def units(self) -> int:
        """Units of cost per record."""
        return resolution(self.lengths)

    def scale(self, length: int, epsilon: Fraction) -> Fraction:
        """λ_b = (Δ + Δ_b)/ε in units, with Δ that of the longest candidate."""
        return (self._sensitivity(self.lengths[-1]) + self._sensitivity(length)) / epsilon

    def _sensitivity(self, length: int) -> Fraction:
        return Fraction(sensitivity(length, self.units))


@final
@dataclass(frozen=True)
class Penalty:
    """What a bucket costs beyond its deviation: ``count``/ε₂ for its count, ``choice``·λ_b for its noise.

    The second term is public too. Without it the least of many noisy costs wins because of its noise: far too
    many buckets.
    """

    count: Fraction
    choice: Fraction

    def units(self, candidates: Candidates, length: int, first: Fraction, second: Fraction) -> int:
        """In whole units of cost."""
        noise = self.choice * candidates.scale(length, first)
        return round(self.count / second * candidates.units + noise)


def private_partition(
    x: IntArray, candidates: Candidates, penalty: Penalty, first: Fraction, second: Fraction, noise: Noise
) -> IntArray:
    """The first cells of the buckets, ε₁-private under add/remove neighbours with ε₁ = ``first``."""
    if candidates.lengths == (1,):
        return np.arange(candidates.size, dtype=np.int64)
    costs = np.zeros((len(candidates.lengths), candidates.size), dtype=np.int64)
    ranked = Ranked(x)
    for row, length in zip(costs, candidates.lengths, strict=True):
        starts = candidates.size - length + 1
        row[:starts] = deviations(ranked, length, candidates.units)
        row[:starts] += noise.discrete_laplace(candidates.scale(length, first), starts)
        row[:starts] += penalty.units(candidates, length, first, second)
    return least_cost(costs, candidates.lengths)


def least_cost(costs: IntArray, lengths: tuple[int, ...]) -> IntArray:
    """The partition of least total cost; ``costs[i, s]`` is that of ``lengths[i]`` cells from s on.

    Of equal ones the one with the shortest last bucket wins, then the shortest last but one, and so on: one
    fixed order of all partitions, which the proof needs.
    """
    return np.asarray(_least_cost(costs, np.array(lengths, dtype=np.int64)))


@compiled()
def _least_cost(costs: IntArray, lengths: IntArray) -> IntArray:
    size = costs.shape[1]
    best, last = np.zeros(size + 1, dtype=np.int64), np.zeros(size + 1, dtype=np.int64)
    for stop in range(1, size + 1):
        best[stop] = best[stop - 1] + costs[0, stop - 1]
        last[stop] = 1
        for i in range(1, lengths.size):
            start = stop - lengths[i]
            if start < 0:
                break
            total = best[start] + costs[i, start]
            if total < best[stop]:
                best[stop], last[stop] = total, lengths[i]
    starts = np.zeros(size + 1, dtype=np.int64)
    stop, count = size, 0
    while stop > 0:
        stop -= last[stop]
        starts[count] = stop
        count += 1
    return starts[:count][::-1].copy()


def row_order(workload: Workload) -> IntArray | None:
    """The cells of a grid along a curve that keeps neighbours together; None where they are in a row already.

    Two axes: the Hilbert curve. More: the bits of the coordinates in turn.
    """
    shape = tuple(length for length in workload.axes if length > 1)
    if len(shape) < 2:
        return None
    return hilbert_order(*shape) if len(shape) == 2 else _interleaved(shape)


def _interleaved(shape: tuple[int, ...]) -> IntArray:
    places = np.unravel_index(np.arange(math.prod(shape)), shape)
    keys = np.zeros(places[0].size, dtype=np.int64)
    for bit in range(max(length - 1 for length in shape).bit_length() - 1, -1, -1):
        for coordinate, length in zip(places, shape, strict=True):
            if bit < (length - 1).bit_length():
                keys = keys << 1 | (coordinate >> bit & 1)
    return np.argsort(keys, kind="stable").astype(np.int64)


def expand(buckets: IntArray, counts: FloatArray, order: IntArray | None, size: int) -> FloatArray:
    """Every bucket's count spread evenly over its cells."""
    lengths = np.diff(buckets, append=size)
    row = np.repeat(counts / lengths, lengths)
    if order is None:
        return row
    cells = np.empty(size)
    cells[order] = row
    return cells
