"""Choosing a strategy for a line: a few shapes by rule, tuned, the best of them rounded.

*Shapes.* With L strides of hats between one cell and a span H, each level errs by about its branching
H^{1/L} and gets 1/L of the budget, so the error grows like L³·H^{1/L}: best near H^{1/L} ≈ e³ ≈ 20. The span
is θ if ramps tie the blocks together, or the whole line without ramps (the only choice under the full
policy). Ramps cover about three quarters of their block. Both rules were checked against exhaustive searches
(docs/proofs/optimized.md).

A small workload that stands for a large one while weights are tuned.

Tuning compares shapes and shares; it needs the error to about a percent, the released strategy's own error
is always computed exactly afterwards. So a long line is replaced by a few ramp blocks (the strategy is
periodic), and a large family by ranges spread evenly over it.

How to split the budget between the groups of a shape.

Write the weight of group g as share_g / peak_g, peak_g the most its rows can change along an edge; then K ≤
Σ share_g = 1, with equality when one edge attains every peak. The total error f is homogeneous of degree −2
in the shares, so the elasticities e_g = −½ ∂log f/∂log share_g add up to one, and at the optimum share_g =
e_g. If the groups acted on separate scales, f = Σ α_g/share_g², one step share ← share^⅔·e^⅓ would be exact;
it converges in a few steps here because they nearly do.

A line policy as independent stretches, each with a strategy of its own.

Under a partition of contiguous parts, or unequal bins with a gap that nothing crosses, no record moves
between components. So each component gets the whole ε (parallel composition over components) and its
total is public; the pieces below are planned, measured and decoded separately.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import final

import numpy as np
from scipy.sparse import csr_array

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.errors import EmptyDomain, InvalidThreshold, InvalidWorkload, TooLarge
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.workloads import AllRanges, Cumulative, Histogram, Ranges
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.optimized.line_solver import LineSolver, System
from blowfishdb.mechanisms.optimized.line_strategy import (
    Family,
    LineStrategy,
    LineWorkload,
    Ramp,
    Shape,
    peaks,
    sensitivity,
)

EXACT_UP_TO = 3_000
_SAMPLE = 768
# The plastic number's fractions: the evenly spread sequence in two dimensions.
_PLASTIC = 1.32471795724474602596


def probe(workload: LineWorkload, cells: int, short: int, period: int) -> LineWorkload:
    """The stand-in on ``short`` ≤ ``cells`` cells for a strategy that repeats every ``period`` cells."""
    if workload.family is Family.LISTED:
        return _fold(workload, cells, short, period)
    if short < cells and workload.family is not Family.IDENTITY:
        return _middle_prefixes(short, period)
    if short <= EXACT_UP_TO:
        return workload
    index = np.arange(1, _SAMPLE + 1)
    one, two = (index / _PLASTIC) % 1.0, (index / _PLASTIC**2) % 1.0
    match workload.family:
        case Family.IDENTITY:
            cell = (one * short).astype(np.int64)
            return LineWorkload.listed(cell, cell)
        case Family.PREFIX:
            last = (one * (short - 1)).astype(np.int64)
            return LineWorkload.listed(np.zeros_like(last), last)
        case _:
            first, second = (one * short).astype(np.int64), (two * short).astype(np.int64)
            return LineWorkload.listed(np.minimum(first, second), np.maximum(first, second))


def _middle_prefixes(short: int, period: int) -> LineWorkload:
    """Prefixes that end in the middle two blocks, away from the exact ends.

    They stand for all ranges too: nearly all ranges of a long line span many blocks, so that their two ends
    err independently, like prefixes.
    """
    begin = (short // period // 2 - 1) * period
    last = np.unique(np.linspace(begin, begin + 2 * period, _SAMPLE, endpoint=False).astype(np.int64))
    return LineWorkload.listed(np.zeros_like(last), last)


def _fold(workload: LineWorkload, cells: int, short: int, period: int) -> LineWorkload:
    chosen = np.unique(np.linspace(0, len(workload.starts) - 1, _SAMPLE).astype(np.int64))
    starts, ends, weights = workload.starts[chosen], workload.ends[chosen], workload.weights[chosen]
    if short == cells:
        return LineWorkload.listed(starts, ends, weights)
    room = short - 2 * period
    lengths = ends - starts + 1
    lengths = np.where(lengths <= room, lengths, room - period + (lengths - room) % period)
    folded = _folded_starts(starts, period)
    return LineWorkload.listed(folded, np.minimum(folded + lengths, short) - 1, weights)


def _folded_starts(starts: IntArray, period: int) -> IntArray:
    """The same place within a block; the first block keeps its known left end."""
    return np.where(starts < period, starts, period + starts % period)


_STEP = 1e-3
_SETTLED = 0.01


@dataclass(frozen=True, eq=False)
class Tuned:
    """Shares of the budget, one per group, and the total squared error at ε = 1 they lead to."""

    shares: FloatArray
    error: float


class Tuner:
    """The error of one shape as a function of the shares; the symbolic work is done once."""

    def __init__(self, shape: Shape, theta: int, workload: LineWorkload) -> None:
        self._shape, self._theta, self._workload = shape, theta, workload
        self._system = System(shape)
        self._peaks = np.array(peaks(shape, theta), dtype=np.float64)

    def error(self, shares: FloatArray) -> float:
        """The total squared error at ε = 1 if the sensitivity were the sum of the groups' own."""
        variances = np.repeat(2.0 * (self._peaks / shares) ** 2, self._shape.group_sizes)
        return LineSolver(self._shape, variances, system=self._system).total_variance(self._workload)

    def tune(self, start: FloatArray | None = None, steps: int = 8) -> Tuned:
        """The best shares found."""
        groups = self._shape.groups
        shares = np.full(groups, 1.0 / groups) if start is None else start / start.sum()
        if groups == 1:
            return Tuned(shares, self.error(shares))
        error = self.error(shares)
        for _ in range(steps):
            elastic = self._elasticities(shares, error)
            moved = shares ** (2 / 3) * elastic ** (1 / 3)
            moved /= moved.sum()
            change = float(np.abs(moved - shares).max())
            shares, error = moved, self.error(moved)
            if change < _SETTLED:
                break
        return Tuned(shares, error)

    def _elasticities(self, shares: FloatArray, error: float) -> FloatArray:
        elastic = np.empty(len(shares))
        for g in range(1, len(shares)):
            nudged = shares.copy()
            nudged[g] *= 1 + _STEP
            elastic[g] = -0.5 * math.log(self.error(nudged) / error) / math.log1p(_STEP)
        elastic[0] = 1.0 - elastic[1:].sum()
        return np.maximum(elastic, 1e-6)

    @staticmethod
    def rounded(shape: Shape, theta: int, shares: FloatArray) -> LineStrategy:
        """The strategy with these shares, rounded to integer weights."""
        return LineStrategy.rounded(shape, theta, shares / np.array(peaks(shape, theta), dtype=np.float64))


_BLOCKS = 8
_RAMP_FRACTION = 0.78
_LOG_BRANCHING = 3.0
_TRIES = 24
_SLOW = 100_000


def design(k: int, theta: int, workload: LineWorkload) -> LineStrategy:
    """A data-independent strategy for ``workload`` under the θ-line on k cells with n public.

    *Guarantee*: as :class:`LineStrategy`, exact sensitivity of the rounded strategy. *Error*: 1.0–7.7 times
    the tightened lower bound at k = 256; never above Laplace on the cells with the total corrected, nor
    above the ordered mechanism at θ = 1, because both are among the shapes that are compared.
    """
    if k < 1:
        raise EmptyDomain("A line needs at least one cell.")
    if theta < 1:
        raise InvalidThreshold("A record must be able to move by at least one cell.")
    if not workload.fits(k):
        raise InvalidWorkload(f"A listed range ends beyond the last of {k} cells.")
    reach = min(theta, max(1, k - 1))
    if k <= 2 or reach == 1:
        return LineStrategy.rounded(Shape(k, (), Ramp(1, 1)), theta, np.ones(1))
    search = _Search(k, reach, workload)
    shape, tuned = search.run()
    return Tuner.rounded(Shape(k, shape.hats, shape.ramp), theta, tuned.shares)


class _Search:
    """Compares shapes by their tuned error per unit of workload on a line short enough to be quick."""

    def __init__(self, cells: int, theta: int, workload: LineWorkload) -> None:
        self._cells, self._theta, self._workload = cells, theta, workload
        self._whole = cells <= max(EXACT_UP_TO, 2 * _BLOCKS * theta)
        self._seen: dict[Shape, Tuned] = {}

    def run(self) -> tuple[Shape, Tuned]:
        """The best of the shapes by rule, then of their neighbours as long as these improve."""
        for shape in self._by_rule():
            self._error(shape)
        best = min(self._seen, key=self._error)
        if self._whole and self._cells > EXACT_UP_TO:
            return best, self._seen[best]
        improved = self._workload.family is not Family.IDENTITY
        while improved and len(self._seen) < _TRIES:
            improved = False
            for shape in _neighbours(best, self._theta):
                if self._error(shape) < self._error(best):
                    best, improved = shape, True
        return best, self._seen[best]

    def _error(self, shape: Shape) -> float:
        if shape not in self._seen:
            period = shape.ramp.stride if shape.ramp is not None else self._theta
            short = self._cells if self._whole else max(_BLOCKS, 256 // period) * period + 1
            stand_in = probe(self._workload, self._cells, short, period)
            tuned = Tuner(Shape(short, shape.hats, shape.ramp), self._theta, stand_in).tune()
            self._seen[shape] = Tuned(tuned.shares, tuned.error / stand_in.size(short))
        return self._seen[shape].error

    def _by_rule(self) -> Iterator[Shape]:
        if self._cells <= EXACT_UP_TO or self._workload.family in (Family.IDENTITY, Family.LISTED):
            yield Shape(self._cells, (1,))  # prefixes and all ranges of a longer line need hats or ramps
        if self._workload.family is Family.IDENTITY:
            return  # nothing beats the cells themselves once θ ≥ 2: 2.0 to 2.3 times the bound
        if self._whole:
            for levels in self._depths(self._cells):
                yield Shape(self._cells, nested_strides(self._cells, levels)[:-1])
        if self._theta < self._cells - 1:
            if self._theta <= 3:
                yield Shape(self._cells, (), Ramp(1, 1))
            for levels in self._depths(self._theta):
                *hats, stride = nested_strides(self._theta, levels)
                window = hats[-1] * max(1, round(_RAMP_FRACTION * stride / hats[-1]))
                yield Shape(self._cells, tuple(hats), Ramp(stride, window))

    def _depths(self, span: int) -> list[int]:
        """The two numbers of levels nearest the ideal one; where trying takes seconds, the better by rule."""
        ideal = math.log(span) / _LOG_BRANCHING
        both = sorted(
            {max(1, math.floor(ideal)), max(1, math.ceil(ideal))}, key=lambda n: n**3 * span ** (1 / n)
        )
        return both[:1] if self._whole and self._cells > _SLOW else both


def nested_strides(span: int, levels: int) -> tuple[int, ...]:
    """Nested strides 1 … ≈ span in ``levels`` about equal steps."""
    strides = [1]
    for level in range(levels, 0, -1):
        step = (span / strides[-1]) ** (1 / level)
        strides.append(strides[-1] * max(2, round(step)))
    return tuple(strides)


def _neighbours(shape: Shape, theta: int) -> Iterator[Shape]:
    """The same kind of shape with one branching, or the ramp's window, a step up or down."""
    steps = [coarse // fine for fine, coarse in pairwise(shape.hats)]
    for level, step in enumerate(steps):
        for other in {step - max(1, step // 8), step + max(1, step // 8)}:
            if other >= 2:
                hats = [1]
                for branching in (*steps[:level], other, *steps[level + 1 :]):
                    hats.append(hats[-1] * branching)
                yield _with_ramp(shape, tuple(hats), theta)
    if shape.ramp is not None and shape.hats:
        fine = shape.hats[-1]
        for stride in (shape.ramp.stride - fine, shape.ramp.stride, shape.ramp.stride + fine):
            for window in (shape.ramp.window - fine, shape.ramp.window, shape.ramp.window + fine):
                if fine <= window <= stride:
                    yield Shape(shape.cells, shape.hats, Ramp(stride, window))


def _with_ramp(shape: Shape, hats: tuple[int, ...], theta: int) -> Shape:
    if shape.ramp is None:
        return Shape(shape.cells, hats)
    stride = hats[-1] * max(1, round(theta / hats[-1]))
    window = hats[-1] * max(1, round(shape.ramp.window / shape.ramp.stride * stride / hats[-1]))
    return Shape(shape.cells, hats, Ramp(stride, min(window, stride)))


LineQuestions = Histogram | Cumulative | AllRanges | Ranges
_LISTED_PIECES = 64
_ENTRIES = 2 * 10**7


@final
@dataclass(frozen=True, eq=False)
class Piece:
    """One strategy on one or more stretches of equal length; ``cost`` is its exact K under the policy."""

    strategy: LineStrategy
    cost: int
    starts: IntArray

    @property
    def cells(self) -> int:
        """The cells of one stretch."""
        return self.strategy.k

    @cached_property
    def rows(self) -> int:
        """The rows of one stretch."""
        return sum(self.strategy.shape.group_sizes)

    @cached_property
    def unit_scales(self) -> list[Fraction]:
        """K/w of every group."""
        return [Fraction(self.cost, weight) for weight in self.strategy.group_weights]

    @cached_property
    def solver(self) -> LineSolver:
        """Least squares for noise in the continuous limit: the decoder does not depend on ε."""
        per_group = [2.0 * float(scale) ** 2 for scale in self.unit_scales]
        return LineSolver(self.strategy, np.repeat(per_group, self.strategy.shape.group_sizes))

    def measure(self, x: IntArray) -> IntArray:
        """The rows of every stretch, one stretch after the other."""
        return self.strategy.answers(x[self.starts[:, None] + np.arange(self.cells)]).ravel()

    def sparse(self, cells: int) -> csr_array:
        """The same as a matrix over all ``cells``."""
        one = self.strategy.rows(limit=_ENTRIES).tocoo()
        if one.nnz * len(self.starts) > _ENTRIES:
            raise TooLarge(f"The rows of {len(self.starts):,} stretches are too long to be written out.")
        repeat = np.arange(len(self.starts))[:, None]
        row = (one.coords[0] + self.rows * repeat).ravel()
        column = (one.coords[1] + self.starts[:, None]).ravel()
        shape = (self.rows * len(self.starts), cells)
        return csr_array((np.tile(one.data, len(self.starts)), (row, column)), shape=shape)

    def cuts(self, measured: Numbers, totals: Numbers | int) -> FloatArray:
        """The inner cuts of every stretch, counted from its left end; batches come first."""
        parts = measured.reshape(*measured.shape[:-1], len(self.starts), self.rows)
        return self.solver.decode(parts, totals)

    @cached_property
    def inner(self) -> IntArray:
        """Which cuts of the whole line these are, one row per stretch."""
        return np.asarray(self.starts[:, None] + np.arange(1, self.cells))


def pieces(workload: LineQuestions, graph: PolicyGraph) -> tuple[Piece, ...] | None:
    """A strategy for every component with more than one cell; None if the policy is not about a line."""
    if graph.line_reach is not None:
        return tuple(_alike(workload, np.zeros(1, dtype=np.int64), graph.size, graph.line_reach, single=True))
    if graph.cliques is not None and graph.cliques.contiguous:
        return tuple(_partition(workload, graph.cliques))
    ends = graph.right_ends()
    return None if ends is None else tuple(_bands(workload, graph.components(), ends))


def _partition(workload: LineQuestions, parts: Bins) -> Iterator[Piece]:
    starts = parts.first(np.arange(parts.count))
    sizes = parts.last(np.arange(parts.count)) - starts + 1
    for size in np.unique(sizes).tolist():
        yield from _alike(workload, starts[sizes == size], size, size - 1, single=parts.count == 1)


def _bands(workload: LineQuestions, components: Bins, ends: IntArray) -> Iterator[Piece]:
    reach = ends - np.arange(ends.size)
    for start, last in zip(
        *(f(np.arange(components.count)) for f in (components.first, components.last)), strict=True
    ):
        inside = reach[start : last + 1]
        for piece in _alike(
            workload, np.array([start]), len(inside), int(inside.max()), single=components.count == 1
        ):
            strategy = piece.strategy
            cost = sensitivity(strategy.shape, strategy.theta, strategy.group_weights, inside)
            yield Piece(strategy, cost, piece.starts)


def _alike(
    workload: LineQuestions, starts: IntArray, size: int, theta: int, *, single: bool
) -> Iterator[Piece]:
    """Stretches of one size, which share a strategy unless the questions tell them apart."""
    if size < 2:
        return
    groups = [starts]
    if isinstance(workload, Ranges) and len(starts) <= _LISTED_PIECES:
        groups = [starts[i : i + 1] for i in range(len(starts))]
    for group in groups:
        strategy = design(size, theta, _local(workload, int(group[0]), size, single=single))
        yield Piece(strategy, strategy.sensitivity, group)


def _local(workload: LineQuestions, start: int, size: int, *, single: bool) -> LineWorkload:
    """What the questions ask of one stretch: beyond its ends, a range is a prefix or a suffix of it."""
    if workload.one_per_cell:
        return LineWorkload.identity()
    if workload.every_range and single:
        return LineWorkload.all_ranges()
    if isinstance(workload, Ranges):
        first = np.maximum(workload.starts - start, 0)
        last = np.minimum(workload.ends - start, size - 1)
        partly = (first <= last) & ((first > 0) | (last < size - 1))
        if partly.any():
            return LineWorkload.listed(first[partly], last[partly])
    return LineWorkload.prefix()
