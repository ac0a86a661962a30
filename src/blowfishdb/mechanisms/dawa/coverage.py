"""What questions ask of buckets, level by level of a binary tree over them.

With v a vector over the cells of the tree's nodes, a level needs Σ_q (ŵ_q·v)² for every node. A range is
partial in at most two nodes of a level and asks the same of all nodes between: O(m + k) a level.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

import numpy as np

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.workloads import AllRanges, Workload
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.estimation import as_ranges

_LISTED = 40_000
_CUTS = 200
_ENTRIES = 2 * 10**7
_BATCH = 10**7


class Coverage(ABC):
    """Climbs from the buckets to the root; each level is seen once."""

    @abstractmethod
    def leaves(self) -> FloatArray:
        """Σ_q ŵ_qj² for every bucket j."""

    @abstractmethod
    def lift(self, factors: FloatArray, masses: FloatArray) -> FloatArray:
        """Σ_q (ŵ_q·v)² on every node of the next level, v being factor·(the level's v) on each child.

        ``masses`` holds Σ v of the children, their factors included.
        """


@final
class RangeCoverage(Coverage):
    """Ranges [start, stop) of cells, over buckets that begin at ``buckets``."""

    def __init__(self, buckets: IntArray, size: int, starts: IntArray, stops: IntArray) -> None:
        lengths = np.diff(buckets, append=size)
        self._left = np.searchsorted(buckets, starts, side="right") - 1
        self._right = np.searchsorted(buckets, stops - 1, side="right") - 1
        ends = buckets + lengths
        within = self._left == self._right
        covered = np.where(within, stops - starts, ends[self._left] - starts)
        self._at_left = covered / lengths[self._left]
        self._at_right = np.where(within, 0.0, (stops - buckets[self._right]) / lengths[self._right])
        self._nodes = int(buckets.size)

    def leaves(self) -> FloatArray:
        return self._squares(np.ones(self._nodes))

    def lift(self, factors: FloatArray, masses: FloatArray) -> FloatArray:
        left, right, apart = self._left, self._right, self._left != self._right
        padded = np.append(masses, 0.0)
        at_left, at_right = factors[left] * self._at_left, factors[right] * self._at_right
        self._left, self._right = left // 2, right // 2
        meets = self._left == self._right
        beside = np.where((left % 2 == 0) & ~meets, padded[np.minimum(left + 1, masses.size)], 0.0)
        before = np.where((right % 2 == 1) & ~meets, padded[right - 1], 0.0)
        self._at_left = np.where(meets & apart, at_left + at_right, at_left + beside)
        self._at_right = np.where(meets, 0.0, at_right + before)
        self._nodes = -(-self._nodes // 2)
        return self._squares(paired(masses))

    def _squares(self, masses: FloatArray) -> FloatArray:
        partial = np.bincount(self._left, self._at_left**2, self._nodes)
        partial += np.bincount(self._right, self._at_right**2, self._nodes)
        apart = self._left < self._right
        change = np.bincount(self._left[apart] + 1, minlength=self._nodes + 1)
        change -= np.bincount(self._right[apart], minlength=self._nodes + 1)
        return np.asarray(partial + np.cumsum(change)[: self._nodes] * masses**2)


@final
class DenseCoverage(Coverage):
    """Any questions, written out over the buckets."""

    def __init__(self, matrix: FloatArray) -> None:
        self._dots = matrix

    def leaves(self) -> FloatArray:
        return np.asarray((self._dots**2).sum(axis=0))

    def lift(self, factors: FloatArray, masses: FloatArray) -> FloatArray:
        self._dots = np.asarray(paired(self._dots * factors))
        return self.leaves()


def paired(values: Numbers) -> Numbers:
    """Sums of neighbouring pairs along the last axis; the last may be alone."""
    return np.asarray(np.add.reduceat(values, np.arange(0, values.shape[-1], 2), axis=-1))


def coverage(workload: Workload, order: IntArray | None, buckets: IntArray) -> Coverage:
    """The questions over buckets of cells, the cells taken in ``order``.

    Too many to write out: all ranges between a few hundred evenly spaced cuts stand in for them. The choice
    is public, and only the accuracy depends on it.
    """
    size = workload.size
    many = isinstance(workload, AllRanges) and workload.count > _LISTED
    if order is None and not many:
        ranges = as_ranges(workload)
        if ranges is not None:
            return RangeCoverage(buckets, size, *ranges)
    if many or workload.count * buckets.size > _ENTRIES:
        cuts = np.unique(np.linspace(0, size, min(size, _CUTS) + 1).astype(np.int64))
        first, last = np.triu_indices(cuts.size, 1)
        return RangeCoverage(buckets, size, cuts[first], cuts[last])
    return DenseCoverage(over_buckets(workload, order, buckets))


def over_buckets(workload: Workload, order: IntArray | None, buckets: IntArray) -> FloatArray:
    """Ŵ: what every question asks of every bucket when its records are spread evenly ([D14] Def. 6).

    Question by question or bucket by bucket, whichever are fewer.
    """
    size, count = workload.size, buckets.size
    lengths = np.diff(buckets, append=size)
    cells = np.arange(size) if order is None else order
    found = np.empty((workload.count, count))
    step = max(1, _BATCH // size)
    if workload.count < count:
        for first in range(0, workload.count, step):
            asked = np.eye(min(step, workload.count - first), workload.count, first)
            rows = np.asarray(workload.transpose(asked), dtype=np.float64)[:, cells]
            found[first : first + step] = np.add.reduceat(rows, buckets, axis=1) / lengths
        return found
    bucket_of = np.repeat(np.arange(count), lengths)
    for first in range(0, count, step):
        last = min(first + step, count)
        inside = slice(buckets[first], size if last == count else buckets[last])
        spread = np.zeros((last - first, size))
        spread[bucket_of[inside] - first, cells[inside]] = 1.0 / lengths[bucket_of[inside]]
        found[:, first:last] = np.asarray(workload.answer(spread), dtype=np.float64).T
    return found
