"""OrderedDenoised: the whole budget on measurements, all data-dependence in what is done with them.

Piecewise fits of a noisy series: greedy bottom-up merging of segments, constant or linear.

Post-processing only: what comes in is already private.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import final

import numpy as np

from blowfishdb.core.accuracy import variance
from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import NotProven
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.noise import Noise
from blowfishdb.core.sensitivity import check_sizes
from blowfishdb.core.workloads import Cumulative, Histogram, Workload
from blowfishdb.mechanisms.compiled import compiled
from blowfishdb.mechanisms.laplace import LaplaceOnCells
from blowfishdb.mechanisms.optimized import Optimized
from blowfishdb.mechanisms.ordered import Ordered, joins_neighbours
from blowfishdb.mechanisms.plan import DataDependentMechanism, DataDependentPlan, Plan


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
    starts = _merge(np.asarray(series - anchor, dtype=np.float64), float(penalty), linear)
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


@compiled(_residual)
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


_PER_LINE = 24.0  # noise variances that a further segment with a slope must earn
_PER_STEP = 16.0  # the same for a further level of the cells
_STAIRS = 100.0  # noise variances by which isotonic regression alone is handicapped: it wins ties too often


@final
@dataclass(frozen=True)
class OrderedDenoised(DataDependentMechanism):
    """A full-budget release, then whichever of two denoisings its own noisy numbers speak for.

    Where every edge joins neighbours, the release is that of all prefix counts (Ordered) and the choice is
    between isotonic regression and a segmented-linear fit made isotonic. Under any other policy with a
    public number of records it is that of the cells (Optimized), and the choice is between the nearest
    non-negative cells and a segmented-constant fit of them.

    *Guarantee*: that of the release; what follows is post-processing (docs/proofs/ordered_denoised.md).
    *Error*: depends on the data, so nothing is promised. Cells are never negative and totals that the policy
    leaves public are exact.

    >>> questions, policy = bf.workloads.Cumulative(64), bf.graphs.Threshold(64, 1)
    >>> bf.mechanisms.OrderedDenoised().plan(questions, policy).name
    'Ordered, denoised'
    """

    def plan(self, workload: Workload, graph: PolicyGraph) -> OrderedDenoisedPlan:
        check_sizes(workload, graph)
        if graph.absent:
            raise NotProven(
                "Denoising uses the number of records, which this policy hides.",
                fixes=("use Dawa(), which never uses it", "use Laplace()"),
            )
        if joins_neighbours(graph):
            return OrderedDenoisedPlan(workload, graph, Ordered().plan(Cumulative(graph.size), graph))
        return OrderedDenoisedPlan(workload, graph, _on_cells(graph))


def _on_cells(graph: PolicyGraph) -> Plan:
    """A release of the cells with exact public totals."""
    cells = Histogram(graph.size)
    try:
        return Optimized().plan(cells, graph)
    except NotProven:  # no line and no grid: noise on the cells is proven for every graph
        return LaplaceOnCells(cells, graph)


@final
@dataclass(frozen=True, eq=False)
class OrderedDenoisedPlan(DataDependentPlan):
    """``inner`` releases prefix counts or cells at the whole ε; the rest is post-processing."""

    workload: Workload
    graph: PolicyGraph
    inner: Plan
    name: str = "Ordered, denoised"

    def estimate(self, counts: IntArray, *, epsilon: Epsilon, noise: Noise) -> FloatArray:
        released = np.asarray(self.inner.release(counts, epsilon=epsilon, noise=noise), dtype=np.float64)
        if self.inner.workload.one_per_cell:
            return self._denoised_cells(released, self._cell_variance(epsilon))
        return self._denoised_prefixes(released, variance(1 / float(epsilon)))

    def _cell_variance(self, epsilon: Epsilon) -> float:
        if self.inner.free:
            return 0.0
        return float(self.inner.squared_errors(epsilon=epsilon).max())

    def _denoised_prefixes(self, prefixes: FloatArray, of_noise: float) -> FloatArray:
        """Between two public prefix counts, those of a component, the others are fitted by themselves."""
        cells = np.diff(prefixes, prepend=0.0)
        starts = self._line_starts()
        for start, stop in zip(starts, np.append(starts[1:], cells.size), strict=True):
            if stop - start > 1:
                before = prefixes[start - 1] if start else 0.0
                inner = prefixes[start : stop - 1] - before
                cells[start:stop] = denoised_line(inner, float(prefixes[stop - 1] - before), of_noise)
        return cells

    def _line_starts(self) -> IntArray:
        components = self.graph.components()
        return components.first(np.arange(components.count))

    def _denoised_cells(self, cells: FloatArray, of_noise: float) -> FloatArray:
        components = self.graph.components()
        if components.count == 1:
            return denoised_cells(cells, of_noise)
        denoised = cells.copy()
        order = np.argsort(components.assignment(), kind="stable")
        for members in np.split(order, np.cumsum(np.bincount(components.assignment()))[:-1]):
            if members.size > 1:
                denoised[members] = denoised_cells(cells[members], of_noise)
        return denoised

    def explain(self) -> str:
        return (
            f"{self.inner.explain()} The whole budget is spent on that; the noisy numbers themselves then "
            "decide how they are smoothed, which costs nothing."
        )


# --- prefix counts ------------------------------------------------------------------------------


def denoised_line(noisy: FloatArray, total: float, of_noise: float) -> FloatArray:
    """k cells from k − 1 noisy prefix counts and the public total.

    Each candidate's squared distance to the noisy cells is corrected for how far it bends to the noise
    (the degrees of freedom of its blocks or segments); the smaller sum wins.
    """
    stairs, sizes = _isotonic(noisy, total)
    segments = fit_segments(noisy, _PER_LINE * of_noise, linear=True)
    lines, _ = _isotonic(segments.fitted, total)
    for_stairs = _distance(stairs, noisy) + of_noise * (4.0 * float((1.0 / sizes).sum()) + _STAIRS)
    for_lines = _distance(lines, noisy) + 4.0 * of_noise * _line_freedom(segments.lengths)
    chosen = stairs if for_stairs <= for_lines else lines
    return np.diff(chosen, prepend=0.0, append=total)


def rising_steps(cells: FloatArray) -> FloatArray:
    """The steps of the nearest prefix counts that never fall, from 0 to the same total."""
    prefixes = np.cumsum(cells)
    rising, _ = _isotonic(prefixes[:-1], float(prefixes[-1]))
    return np.diff(rising, prepend=0.0, append=max(float(prefixes[-1]), 0.0))


def _isotonic(values: FloatArray, total: float) -> tuple[FloatArray, FloatArray]:
    """The nearest non-decreasing numbers within 0 … total, and the sizes of the blocks of equal ones."""
    from scipy.optimize import isotonic_regression

    fit = isotonic_regression(values)
    return np.clip(fit.x, 0.0, max(total, 0.0)), np.diff(fit.blocks).astype(np.float64)


def _distance(fitted: FloatArray, noisy: FloatArray) -> float:
    """The squared distance of the cells, both end cells included."""
    return float((np.diff(fitted - noisy, prepend=0.0, append=0.0) ** 2).sum())


def _line_freedom(lengths: IntArray) -> float:
    """Σ over segments of 2h + (m−1)/s_xx: what a line bends at its two ends, and by its slope in between."""
    m = lengths.astype(np.float64)
    spread = np.maximum(m * (m**2 - 1) / 12, 0.5)
    ends = np.where(m <= 2, 1.0, 1 / m + ((m - 1) / 2) ** 2 / spread)
    return float((2 * ends + np.where(m >= 2, (m - 1) / spread, 0.0)).sum())


# --- cells --------------------------------------------------------------------------------------


def denoised_cells(noisy: FloatArray, of_noise: float) -> FloatArray:
    """Non-negative cells with the total of the noisy ones: themselves, or levels fitted to them."""
    near = nearest_non_negative(noisy)
    segments: Segments = fit_segments(noisy, _PER_STEP * of_noise, linear=False)
    levels = nearest_non_negative(segments.fitted)
    for_near = float(((near - noisy) ** 2).sum()) + 2 * of_noise * np.count_nonzero(near)
    for_levels = float(((levels - noisy) ** 2).sum()) + 4 * of_noise * segments.starts.size
    return near if for_near <= for_levels else levels


def nearest_non_negative(values: FloatArray) -> FloatArray:
    """The nearest non-negative numbers with the same (non-negative) sum: all lowered alike, then cut at 0."""
    total = max(float(values.sum()), 0.0)
    falling = np.sort(values)[::-1]
    lowered = (np.cumsum(falling) - total) / np.arange(1, values.size + 1)
    last = int(np.flatnonzero(falling - lowered > 0).max(initial=0))
    return np.asarray(np.maximum(values - lowered[last], 0.0))
