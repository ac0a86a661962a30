"""A line policy as independent stretches, each with a strategy of its own.

Under a partition of contiguous parts, or unequal bins with a gap that nothing crosses, no record moves
between components. So each component gets the whole ε (parallel composition over components) and its
total is public; the pieces below are planned, measured and decoded separately.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np
from scipy.sparse import csr_array

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.bins import Bins
from blowfishdb.core.errors import TooLarge
from blowfishdb.core.graphs import Banded, Full, Partitioned, PolicyGraph, Threshold
from blowfishdb.core.workloads import AllRanges, Cumulative, Histogram, Ranges
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.line.design import design
from blowfishdb.mechanisms.line.sensitivity import sensitivity
from blowfishdb.mechanisms.line.solver import LineSolver
from blowfishdb.mechanisms.line.strategy import LineStrategy
from blowfishdb.mechanisms.line.workload import LineWorkload

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
    if isinstance(graph, Full | Threshold):
        return tuple(_alike(workload, np.zeros(1, dtype=np.int64), graph.size, graph.reach, single=True))
    if isinstance(graph, Partitioned) and graph.parts.contiguous:
        return tuple(_partition(workload, graph.parts))
    if isinstance(graph, Banded):
        return tuple(_bands(workload, graph))
    return None


def _partition(workload: LineQuestions, parts: Bins) -> Iterator[Piece]:
    starts = parts.first(np.arange(parts.count))
    sizes = parts.last(np.arange(parts.count)) - starts + 1
    for size in np.unique(sizes).tolist():
        yield from _alike(workload, starts[sizes == size], size, size - 1, single=parts.count == 1)


def _bands(workload: LineQuestions, graph: Banded) -> Iterator[Piece]:
    components = graph.components()
    reach = graph.right - np.arange(graph.size)
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
    if isinstance(workload, Histogram):
        return LineWorkload.identity()
    if isinstance(workload, AllRanges) and single:
        return LineWorkload.all_ranges()
    if isinstance(workload, Ranges):
        first = np.maximum(workload.starts - start, 0)
        last = np.minimum(workload.ends - start, size - 1)
        partly = (first <= last) & ((first > 0) | (last < size - 1))
        if partly.any():
            return LineWorkload.listed(first[partly], last[partly])
    return LineWorkload.prefix()
