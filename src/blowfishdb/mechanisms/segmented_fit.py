"""Piecewise fits of a noisy series: greedy bottom-up merging of segments, constant or linear.

Post-processing only: what comes in is already private.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from heapq import heapify, heappop, heappush
from typing import Any, final

import numpy as np

from blowfishdb.core.arrays import FloatArray, IntArray


@final
@dataclass(frozen=True, eq=False)
class Segments:
    """Neighbouring stretches of a series, and the value fitted at every place of it."""

    starts: IntArray
    fitted: FloatArray

    @property
    def lengths(self) -> IntArray:
        """The number of places of every segment."""
        return np.diff(self.starts, append=self.fitted.size)


def fit_segments(series: FloatArray, penalty: float, *, linear: bool) -> Segments:
    """Merge the two neighbouring segments whose merging costs least, until every merging costs ``penalty``.

    A merging costs the growth of the squared distance to the least-squares fit, a line on every segment or a
    constant. O(n log n) with a heap; ties go to the left, so the result is a function of the series alone.
    """
    if series.size == 0:
        return Segments(np.zeros(0, dtype=np.int64), np.zeros(0))
    anchor = float(series[0])  # moments of numbers near zero lose fewer digits
    starts = _kernel()(np.asarray(series - anchor, dtype=np.float64), float(penalty), linear)
    return Segments(starts, anchor + _fitted(series - anchor, starts, linear=linear))


def _fitted(series: FloatArray, starts: IntArray, *, linear: bool) -> FloatArray:
    lengths = np.diff(starts, append=series.size)
    means = np.add.reduceat(series, starts) / lengths
    if not linear:
        return np.repeat(means, lengths)
    offset = np.arange(series.size) - np.repeat(starts + (lengths - 1) / 2, lengths)
    spread = np.maximum(lengths * (lengths.astype(np.float64) ** 2 - 1) / 12, 0.5)
    slopes = np.add.reduceat(offset * series, starts) / spread
    return np.asarray(np.repeat(means, lengths) + np.repeat(slopes, lengths) * offset)


def _residual(count: float, total: float, squares: float, moment: float, linear: bool) -> float:
    """The squared distance to the fit, from Σ1, Σy, Σy² and Σ(i − first)·y."""
    left = squares - total * total / count
    if linear and count > 1.0:
        centred = moment - total * (count - 1.0) / 2.0
        left -= centred * centred * 12.0 / (count * (count * count - 1.0))
    return max(left, 0.0)


def _merge(series: FloatArray, penalty: float, linear: bool) -> IntArray:
    """The first places of the segments that are left."""
    n = series.size
    count, total, squares, moment = np.ones(n), series.copy(), series * series, np.zeros(n)
    after, before = np.arange(1, n + 1), np.arange(-1, n - 1)
    version, residual = np.zeros(n, dtype=np.int64), np.zeros(n)
    # A line through two places fits any jump: a pair is priced like a constant, or jumps would be lost.
    heap = [((series[i] - series[i + 1]) ** 2 / 2.0, i, np.int64(0), np.int64(0)) for i in range(n - 1)]
    heapify(heap)
    while len(heap) > 0:
        price, i, mine, theirs = heappop(heap)
        if price >= penalty:
            break
        j = after[i]
        if version[i] != mine or j >= n or version[j] != theirs:
            continue
        moment[i] += moment[j] + count[i] * total[j]
        total[i] += total[j]
        squares[i] += squares[j]
        count[i] += count[j]
        residual[i] = _residual(count[i], total[i], squares[i], moment[i], linear)
        version[i] += 1
        version[j] = -1
        after[i] = after[j]
        if after[i] < n:
            before[after[i]] = i
        for left in (before[i], i):
            right = after[left] if left >= 0 else n
            if left >= 0 and right < n:
                both = _residual(
                    count[left] + count[right],
                    total[left] + total[right],
                    squares[left] + squares[right],
                    moment[left] + moment[right] + count[left] * total[right],
                    linear,
                )
                growth = max(both - residual[left] - residual[right], 0.0)
                heappush(heap, (growth, left, version[left], version[right]))
    return np.flatnonzero(version >= 0)


@cache
def _kernel() -> Callable[..., Any]:
    """The merging loop, compiled where numba is installed; the same code runs, slowly, without it."""
    try:
        from numba import njit
    except ImportError:
        return _merge
    globals()["_residual"] = njit(cache=True)(_residual)
    return njit(cache=True)(_merge)
