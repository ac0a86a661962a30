"""What the moves of records cost: by how much answers change, or how many edges of the policy they cross.

Bounds under constraints need only three things of a cost: the most along an edge, the most between any two
cells, and its value for given pairs. It must obey the triangle inequality.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from blowfishdb.core.arrays import IntArray
from blowfishdb.core.errors import NotProven, TooLarge
from blowfishdb.core.graphs import Apex, Cone, Full, PolicyGraph, Threshold
from blowfishdb.core.sensitivity import scaled_sensitivity
from blowfishdb.core.workloads import Workload

MOST_VERTICES = 1_500
"""How many cells a table of all distances may have."""


class Moves(ABC):
    """The cost of moves between the vertices of ``graph``; it depends on their ``labels`` alone.

    A label is a vertex of ``asked``, the policy over the cells that a question tells apart.
    """

    asked: PolicyGraph
    labels: IntArray
    graph: PolicyGraph

    @property
    @abstractmethod
    def along_an_edge(self) -> int:
        """The most that one move along an edge costs."""

    @property
    @abstractmethod
    def anywhere(self) -> int:
        """The most that one move between any two vertices costs."""

    @abstractmethod
    def between(self, u: IntArray, v: IntArray) -> NDArray[Any]:
        """The cost of each move from label u to label v."""

    @abstractmethod
    def together(self, shift: IntArray) -> int:
        """The most that moves cost whose sum is this vector over the labels."""


@final
@dataclass(frozen=True, eq=False)
class AnswerMoves(Moves):
    """By how much the answers change: ‖W(e_u − e_v)‖₁, times the workload's denominator."""

    workload: Workload
    asked: PolicyGraph
    labels: IntArray
    graph: PolicyGraph

    @cached_property
    def along_an_edge(self) -> int:
        return scaled_sensitivity(self.workload, self.asked)

    @cached_property
    def anywhere(self) -> int:
        every: PolicyGraph = Full(self.workload.size)
        return scaled_sensitivity(self.workload, Cone(every, Apex.PRESENCE) if self.asked.absent else every)

    def between(self, u: IntArray, v: IntArray) -> NDArray[Any]:
        if not self.asked.absent:
            return self.workload.moves(u, v)
        last = self.workload.size
        inside = (u < last) & (v < last)
        here, there = np.minimum(u, last - 1), np.minimum(v, last - 1)
        column = np.where(u == last, self.workload.norms(there), self.workload.norms(here))
        return np.where(inside, self.workload.moves(here, there), np.where(u == v, 0, column))

    def together(self, shift: IntArray) -> int:
        rows = self.workload.sparse()
        return int(np.abs(rows @ shift[: self.workload.size]).sum())


@final
@dataclass(frozen=True, eq=False)
class PolicySteps(Moves):
    """How many edges of ``asked`` a move crosses.

    What a mechanism that is private along every edge of it may lose, in multiples of its ε.
    """

    asked: PolicyGraph
    labels: IntArray
    graph: PolicyGraph

    @property
    def along_an_edge(self) -> int:
        return int(self.asked.edge_count > 0)

    @cached_property
    def anywhere(self) -> int:
        if isinstance(self.asked, Full | Threshold):
            return self.asked.steps(0, self.asked.size - 1) if self.asked.size > 1 else 0
        return _whole(float(self._table.max()))

    def between(self, u: IntArray, v: IntArray) -> NDArray[Any]:
        if isinstance(self.asked, Full | Threshold):
            theta = self.asked.theta if isinstance(self.asked, Threshold) else self.asked.size
            return np.asarray(-(-np.abs(u - v) // theta))
        found = self._table[u, v]
        _whole(float(found.max(initial=0.0)))
        return np.asarray(found.astype(np.int64))

    def together(self, shift: IntArray) -> int:
        return int(np.abs(shift).sum()) // 2 * self.anywhere

    @cached_property
    def _table(self) -> NDArray[np.float64]:
        if self.asked.size > MOST_VERTICES:
            raise TooLarge(
                f"Distances between {self.asked.size:,} cells are above the limit of {MOST_VERTICES:,}.",
                fixes=("ask about larger bins",),
            )
        edges = self.asked.edges()
        ones = np.ones(len(edges), dtype=np.int8)
        table = csr_array((ones, (edges[:, 0], edges[:, 1])), shape=(self.asked.size, self.asked.size))
        return np.asarray(shortest_path(table, directed=False, unweighted=True))


def _whole(distance: float) -> int:
    if math.isinf(distance):
        raise NotProven(
            "What is known lets records move between groups that the policy keeps apart, so nothing bounds "
            "what a mechanism for this policy alone would reveal.",
            fixes=("answer with noise on each cell, calibrated to what is known",),
        )
    return int(distance)
