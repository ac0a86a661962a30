"""What questions ask of buckets, level by level of a tree of some fan-out over them.

With v a vector over the cells of the tree's nodes, a level needs Σ_q (ŵ_q·v)² for every node. A range is
partial in at most two nodes of a level and asks the same of all nodes between: O(m + k) a level.

Stage two's budget: how much of ε₂ every node of a tree over the buckets is given ([D14] §4.4).

Bottom up, a node takes the share λ of what its descendants have, chosen to minimise tr((μ·Ŵ_qᵀŴ_q +
(1−μ)·[diagonal blocks])·(Y_qᵀD²Y_q)⁻¹), μ = fanout^(−depth/2) ([D14] eq. 9). With B the block-diagonal
matrix of the children, the new matrix is (1−λ)²B + λ²·11ᵀ, so three numbers decide everything: σ = 1ᵀB⁻¹1,
tr(M·B⁻¹) and vᵀMv for v = B⁻¹1; and v on a child is a multiple of the child's own. O((m + k) log k) in all.

Stage two's measurement: noisy sums on a weighted tree, combined by least squares in two passes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import final

import numpy as np

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.noise import Noise
from blowfishdb.core.workloads import Workload
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.compiled import compiled
from blowfishdb.mechanisms.hierarchical import height_for

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
    def lift(self, factors: FloatArray, masses: FloatArray, fanout: int = 2) -> FloatArray:
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

    def lift(self, factors: FloatArray, masses: FloatArray, fanout: int = 2) -> FloatArray:
        left, right, apart = self._left, self._right, self._left != self._right
        padded = np.append(masses, np.zeros(fanout))
        at_left, at_right = factors[left] * self._at_left, factors[right] * self._at_right
        self._left, self._right = left // fanout, right // fanout
        meets = self._left == self._right
        for step in range(1, fanout):  # the siblings that a range covers whole
            beside = (left % fanout + step < fanout) & (~meets | (left + step < right))
            at_left = at_left + np.where(beside, padded[left + step], 0.0)
            before = (right % fanout >= step) & ~meets
            at_right = at_right + np.where(before, padded[np.maximum(right - step, 0)], 0.0)
        self._at_left = np.where(meets & apart, at_left + at_right, at_left)
        self._at_right = np.where(meets, 0.0, at_right)
        self._nodes = -(-self._nodes // fanout)
        return self._squares(grouped(masses, fanout))

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

    def lift(self, factors: FloatArray, masses: FloatArray, fanout: int = 2) -> FloatArray:
        self._dots = np.asarray(grouped(self._dots * factors, fanout))
        return self.leaves()


def grouped(values: Numbers, fanout: int) -> Numbers:
    """Sums of ``fanout`` neighbours along the last axis; the last may be fewer."""
    return np.asarray(np.add.reduceat(values, np.arange(0, values.shape[-1], fanout), axis=-1))


def coverage(workload: Workload, order: IntArray | None, buckets: IntArray) -> Coverage:
    """The questions over buckets of cells, the cells taken in ``order``.

    Too many to write out: ranges stand in. The choice is public, and only the accuracy depends on it.
    """
    size = workload.size
    many = workload.every_range and workload.count > _LISTED
    if order is None and not many:
        ranges = workload.intervals()
        if ranges is not None:
            return RangeCoverage(buckets, size, *ranges)
    if many or workload.count * buckets.size > _ENTRIES:
        return RangeCoverage(buckets, size, *_ranges_instead(buckets, size))
    return DenseCoverage(over_buckets(workload, order, buckets))


def _ranges_instead(buckets: IntArray, size: int) -> tuple[IntArray, IntArray]:
    """All ranges between a few hundred even cuts; where buckets are more, each is also an end of two ranges.

    Otherwise what lies between two cuts would be measured as if nobody asked for a part of it.
    """
    cuts = np.unique(np.linspace(0, size, min(size, _CUTS) + 1).astype(np.int64))
    first, last = np.triu_indices(cuts.size, 1)
    starts, stops = cuts[first], cuts[last]
    if buckets.size > _CUTS:
        ends = np.append(buckets[1:], size)
        shuffled = np.random.default_rng(0).permutation(buckets.size)
        left, right = np.sort((shuffled, np.roll(shuffled, 1)), axis=0)
        starts, stops = np.append(starts, buckets[left]), np.append(stops, ends[right])
    return starts, stops


def over_buckets(workload: Workload, order: IntArray | None, buckets: IntArray) -> FloatArray:
    """Ŵ: what every question asks of every bucket when its records are spread evenly ([D14] Def. 6).

    Question by question or bucket by bucket, whichever are fewer.
    """
    size, count = workload.size, buckets.size
    lengths = np.diff(buckets, append=size)
    cells = np.arange(size) if order is None else order
    summed = np.empty((workload.count, count))
    step = max(1, _BATCH // size)
    if workload.count < count:
        for first in range(0, workload.count, step):
            asked = np.eye(min(step, workload.count - first), workload.count, first)
            rows = np.asarray(workload.transpose(asked), dtype=np.float64)[:, cells]
            summed[first : first + step] = np.add.reduceat(rows, buckets, axis=1) / lengths
        return summed
    bucket_of = np.repeat(np.arange(count), lengths)
    for first in range(0, count, step):
        last = min(first + step, count)
        inside = slice(buckets[first], size if last == count else buckets[last])
        spread = np.zeros((last - first, size))
        spread[bucket_of[inside] - first, cells[inside]] = 1.0 / lengths[bucket_of[inside]]
        summed[:, first:last] = np.asarray(workload.answer(spread), dtype=np.float64).T
    return summed


_MOST = 0.98  # a node never takes everything: least squares needs its descendants
_GRID = 17
_REFINEMENTS = 14
_GOLDEN = (5**0.5 - 1) / 2


def greedy_scaling(coverage: Coverage, buckets: int, fanout: int = 2) -> list[FloatArray]:
    """The scale of every node, level by level from the buckets to the root; they sum to 1 on every path."""
    depth = height_for(buckets, fanout)
    squares = coverage.leaves()
    traces = squares.copy()
    factors, masses = np.ones(buckets), np.ones(buckets)
    shares: list[FloatArray] = []
    for level in range(1, depth + 1):
        own = grouped(factors**2 * squares, fanout)
        squares = coverage.lift(factors, masses, fanout)
        masses, traces = grouped(masses, fanout), grouped(traces, fanout)
        decay = float(fanout) ** (-(depth - level) / 2)
        share = best_shares(traces, decay * squares + (1 - decay) * own, masses)
        ratio = share / (1 - share)
        factors = (1 + ratio) ** 2 / (1 + ratio**2 * masses)
        traces = (1 + ratio) ** 2 * (traces - ratio**2 * squares / (1 + ratio**2 * masses))
        masses = factors * masses
        shares.append(share)
    return _scales(shares, buckets, fanout)


def best_shares(traces: FloatArray, quadratic: FloatArray, masses: FloatArray) -> FloatArray:
    """The λ of least (1−λ)⁻²·(tr − ρ·vᵀMv/(1+ρσ)), ρ = (λ/(1−λ))²: a grid, then golden sections."""
    return np.asarray(_best_shares(traces, quadratic, masses))


def _objective(share: float, trace: float, quadratic: float, mass: float) -> float:
    ratio = share / (1.0 - share)
    return (1.0 + ratio) ** 2 * (trace - ratio**2 * quadratic / (1.0 + ratio**2 * mass))


@compiled(_objective)
def _best_shares(traces: FloatArray, quadratic: FloatArray, masses: FloatArray) -> FloatArray:
    shares = np.zeros(traces.size)
    step = _MOST / (_GRID - 1)
    for node in range(traces.size):
        trace, square, mass = traces[node], quadratic[node], masses[node]
        best, least = 0.0, trace
        for point in range(1, _GRID):
            value = _objective(point * step, trace, square, mass)
            if value < least:
                best, least = point * step, value
        low, high = max(best - step, 0.0), min(best + step, _MOST)
        for _ in range(_REFINEMENTS):
            one, two = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
            if _objective(one, trace, square, mass) < _objective(two, trace, square, mass):
                high = two
            else:
                low = one
        middle = (low + high) / 2.0
        shares[node] = middle if _objective(middle, trace, square, mass) < least else best
    return shares


def _scales(shares: list[FloatArray], buckets: int, fanout: int) -> list[FloatArray]:
    """From the root down: a node's share of what its ancestors have left."""
    left = np.ones(1)
    scales: list[FloatArray] = []
    for below, share in zip(
        [buckets, *(share.size for share in shares)][::-1][1:], shares[::-1], strict=True
    ):
        scales.append(left * share)
        left = np.repeat(left * (1 - share), fanout)[:below]
    return [*scales, left][::-1]


_WHOLE = 2**16


def integer_weights(scales: list[FloatArray]) -> list[IntArray]:
    """Scales as whole numbers of 1/65,536; every bucket keeps at least one."""
    weights = [np.floor(level * _WHOLE).astype(np.int64) for level in scales]
    weights[0] = np.maximum(weights[0], 1)
    return weights


def cost(weights: list[IntArray], fanout: int = 2) -> int:
    """The largest sum of weights from a bucket to the root: what one record more or less changes, exactly."""
    above = np.zeros(1, dtype=np.int64)
    for position, level in enumerate(weights[::-1]):
        above = level if position == 0 else np.repeat(above, fanout)[: level.size] + level
    return int(above.max())


def noisy_sums(
    counts: IntArray, weights: list[IntArray], epsilon: Fraction, noise: Noise, fanout: int = 2
) -> list[FloatArray]:
    """The sum of every node plus noise of scale K/(w·ε), ε-private under add/remove."""
    flat = np.concatenate(weights)
    drawn = np.zeros(flat.size, dtype=np.int64)
    measured = np.flatnonzero(flat)
    values, which = np.unique(flat[measured], return_inverse=True)
    largest = cost(weights, fanout)
    scales = [largest / (int(value) * epsilon) for value in values]
    drawn[measured] = noise.discrete_laplace([scales[index] for index in which.tolist()])
    sums, start = [], 0
    for level in weights:
        sums.append((counts + drawn[start : start + level.size]).astype(np.float64))
        counts, start = grouped(counts, fanout), start + level.size
    return sums


def tree_least_squares(measured: list[FloatArray], weights: list[IntArray], fanout: int = 2) -> FloatArray:
    """The best linear unbiased counts of the buckets: up by inverse variance, down by sharing the rest."""
    estimates = [measured[0]]
    variances = [1.0 / weights[0].astype(np.float64) ** 2]
    for sums, level in zip(measured[1:], weights[1:], strict=True):
        below, spread = grouped(estimates[-1], fanout), grouped(variances[-1], fanout)
        gain = spread * level.astype(np.float64) ** 2
        estimates.append((below + gain * sums) / (1 + gain))
        variances.append(spread / (1 + gain))
    final = estimates[-1]
    for estimate, spread in zip(estimates[-2::-1], variances[-2::-1], strict=True):
        rest = (final - grouped(estimate, fanout)) / grouped(spread, fanout)
        final = estimate + spread * np.repeat(rest, fanout)[: estimate.size]
    return final
