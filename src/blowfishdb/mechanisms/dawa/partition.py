"""Stage one: the partition of least noisy cost, and nothing else of it, leaves this file.

Privacy (docs/proofs/dawa.md): one record changes one bucket of the winning partition by at most Δ_b and any
other partition by at most Δ, so noise of scale (Δ + Δ_b)/ε₁ on *every* candidate, single cells included and
nothing clipped, makes the choice ε₁-private.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import Any, final

import numpy as np

from blowfishdb.core.arrays import IntArray
from blowfishdb.core.errors import InvalidBins
from blowfishdb.core.noise import Noise
from blowfishdb.mechanisms.dawa.costs import Ranked, deviations, resolution, sensitivity

ALL_UP_TO = 128
"""Cells up to which every interval is a candidate; beyond, those whose length is a power of two."""


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
    return np.asarray(_kernel()(costs, np.array(lengths, dtype=np.int64)))


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
    stop, found = size, 0
    while stop > 0:
        stop -= last[stop]
        starts[found] = stop
        found += 1
    return starts[:found][::-1].copy()


@cache
def _kernel() -> Callable[..., Any]:
    """The dynamic programme, compiled where numba is installed; the same code runs, slowly, without it."""
    try:
        from numba import njit
    except ImportError:
        return _least_cost
    return njit(cache=True)(_least_cost)
