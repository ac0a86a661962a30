"""The constraint graph G_P of [B14] Def. 8.3: how a move along an edge of the policy shifts known counts.

A move *lifts* a count that counts its end but not its start, and *lowers* one that counts its start but not
its end (Def. 8.1). Known counts are *sparse* if every edge lifts at most one and lowers at most one (Def.
8.2). Vertices are the distinct known counts, then v⁺ and v⁻, which stand for "none".

The longest simple cycle and path of a small directed graph.

Finding them is hard in general, so the search has a limit; beyond it a proven upper bound is given: a cycle
stays inside one strongly connected component, and a path uses no vertex twice.

What the moves of records cost: by how much answers change, or how many edges of the policy they cross.

Bounds under constraints need only three things of a cost: the most along an edge, the most between any two
cells, and its value for given pairs. It must obey the triangle inequality.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
import scipy
from numpy.typing import NDArray

from blowfishdb.core.arrays import BoolArray, IntArray, ceil_div
from blowfishdb.core.constraints.known_cells import KnownCells
from blowfishdb.core.errors import NotProven, TooLarge
from blowfishdb.core.graphs import Apex, Cone, Full, PolicyGraph
from blowfishdb.core.graphs.general import unique_edges
from blowfishdb.core.sensitivity import scaled_sensitivity
from blowfishdb.core.workloads import Workload

WORK = 200_000
"""How many steps a search may take."""

Successors = Sequence[AbstractSet[int]]


@final
@dataclass(frozen=True)
class Longest:
    """A length: the longest that was found, and what no length exceeds. They agree when it is exact."""

    found: int
    at_most: int

    @property
    def exact(self) -> bool:
        """Whether the search came to an end."""
        return self.found == self.at_most


def longest_cycle(successors: Successors, work: int = WORK) -> Longest:
    """The number of edges of the longest simple cycle; 0 if there is none."""
    best, bound = 0, 0
    for part in sorted(_components(successors), key=len, reverse=True):
        if len(part) == 1:
            continue
        if len(part) <= best:
            break
        inside = {vertex: successors[vertex] & part for vertex in part}
        longest = Longest(len(part), len(part)) if _complete(inside) else _cycle_within(inside, part, work)
        best, bound = max(best, longest.found), max(bound, longest.at_most)
    return Longest(best, max(best, bound))


def _complete(inside: dict[int, AbstractSet[int]]) -> bool:
    """Where everything leads to everything, one cycle visits all."""
    return all(len(neighbours) == len(inside) - 1 for neighbours in inside.values())


def _cycle_within(inside: dict[int, AbstractSet[int]], part: frozenset[int], work: int) -> Longest:
    """Every cycle has a smallest vertex: start there and use larger ones only."""
    best, steps = 0, 0
    for start in sorted(part):
        allowed = {vertex for vertex in part if vertex >= start}
        if len(allowed) <= best:
            break
        for length, closes in _walks(inside, start, allowed):
            steps += 1
            if start in closes and length > 0:
                best = max(best, length + 1)
            if best == len(part):
                return Longest(best, best)
            if steps > work:
                return Longest(best, len(part))
    return Longest(best, best)


def longest_path(successors: Successors, source: int, sink: int, work: int = WORK) -> Longest:
    """The number of edges of the longest simple path from one vertex to another; 0 if there is none."""
    useful = _reachable(successors, source) & _reachable(_reversed(successors), sink)
    if sink not in useful:
        return Longest(0, 0)
    inside = {vertex: successors[vertex] & useful for vertex in useful}
    most = len(useful) - 1
    best = 0
    for steps, (length, closes) in enumerate(_walks(inside, source, useful - {sink})):
        if sink in closes:
            best = max(best, length + 1)
        if best == most:
            break
        if steps > work:
            return Longest(best, most)
    return Longest(best, best)


def _walks(
    inside: dict[int, AbstractSet[int]], start: int, allowed: AbstractSet[int]
) -> Iterator[tuple[int, AbstractSet[int]]]:
    """Every simple path from ``start``: its length, and where its last vertex leads."""
    visited = {start}
    stack = [(start, iter(sorted(inside[start] & allowed)))]
    yield 0, inside[start]
    while stack:
        for vertex in stack[-1][1]:
            if vertex not in visited:
                visited.add(vertex)
                yield len(stack), inside[vertex]
                stack.append((vertex, iter(sorted(inside[vertex] & allowed))))
                break
        else:
            visited.discard(stack.pop()[0])


def _components(successors: Successors) -> list[frozenset[int]]:
    ends = [(u, v) for u, following in enumerate(successors) for v in following]
    rows, columns = np.array(ends, dtype=np.int64).reshape(-1, 2).T
    shape = (len(successors), len(successors))
    table = scipy.sparse.csr_array((np.ones(len(ends), dtype=np.int8), (rows, columns)), shape=shape)
    labels = scipy.sparse.csgraph.connected_components(table, directed=True, connection="strong")[1]
    order = np.argsort(labels, kind="stable")
    cuts = np.flatnonzero(np.diff(labels[order])) + 1
    return [frozenset(group.tolist()) for group in np.split(order, cuts)]


def _reversed(successors: Successors) -> list[set[int]]:
    predecessors: list[set[int]] = [set() for _ in successors]
    for u, after in enumerate(successors):
        for v in after:
            predecessors[v].add(u)
    return predecessors


def _reachable(successors: Successors, start: int) -> set[int]:
    seen, frontier = {start}, [start]
    while frontier:
        for vertex in successors[frontier.pop()]:
            if vertex not in seen:
                seen.add(vertex)
                frontier.append(vertex)
    return seen


def lifts(counts: BoolArray, u: IntArray, v: IntArray) -> BoolArray:
    """Which counts a move from class u to class v lifts; one row per count, one column per move."""
    return np.asarray(~counts[:, u] & counts[:, v])


def lowers(counts: BoolArray, u: IntArray, v: IntArray) -> BoolArray:
    """Which counts a move from class u to class v lowers."""
    return lifts(counts, v, u)


def distinct_counts(known: KnownCells) -> BoolArray | None:
    """The known counts over classes, each once; None if there are too many to write out."""
    return None if known.counts is None else np.unique(known.counts, axis=0)


def crossing(known: KnownCells, graph: PolicyGraph) -> IntArray:
    """The pairs of classes between which some edge of the policy leads, as rows (u, v) with u < v."""
    if not graph.absent:
        return graph.project(known.classes).edges()
    # The uncounted vertex is joined to all, and shares its class with the cells that nothing counts.
    used, labels = np.unique(known.classes[:-1], return_inverse=True)
    inner = used[graph.counted.project(labels).edges()]
    outer = np.column_stack((used, np.full_like(used, known.classes[-1])))
    return unique_edges(np.concatenate((inner, outer)))


@final
@dataclass(frozen=True, eq=False)
class ConstraintGraph:
    """G_P over ``size`` distinct counts, with v⁺ and v⁻ as the last two vertices."""

    successors: tuple[frozenset[int], ...]

    @property
    def size(self) -> int:
        """The number of distinct known counts."""
        return len(self.successors) - 2

    @property
    def source(self) -> int:
        """v⁺, from which counts are lifted that no other one pays for."""
        return self.size

    @property
    def sink(self) -> int:
        """v⁻, into which counts are lowered that no other one gains from."""
        return self.size + 1

    @cached_property
    def alpha(self) -> Longest:
        """α: the length of the longest simple cycle."""
        return longest_cycle(self.successors)

    @cached_property
    def xi(self) -> Longest:
        """ξ: the length of the longest simple path from v⁺ to v⁻."""
        return longest_path(self.successors, self.source, self.sink)

    @property
    def most_moves(self) -> int:
        """max{α, ξ}: the most records in which neighbours differ under the edge reading ([B14] Thm 8.2)."""
        return max(self.alpha.at_most, self.xi.at_most)


def constraint_graph(
    known: KnownCells, graph: PolicyGraph, edges: IntArray | None = None
) -> ConstraintGraph | None:
    """G_P of known counts that are sparse with respect to the policy; None if they are not.

    ``edges``: what ``crossing`` finds, if that was done already.
    """
    counts = distinct_counts(known)
    if counts is None:
        return None
    if edges is None:
        edges = crossing(known, graph)
    successors: list[set[int]] = [set() for _ in range(len(counts) + 2)]
    source, sink = len(counts), len(counts) + 1
    successors[source].add(sink)
    both_ways = np.concatenate((edges, edges[:, ::-1]))
    at_once = max(1, 10**7 // max(1, len(counts)))
    for start in range(0, len(both_ways), at_once):
        u, v = both_ways[start : start + at_once].T
        up, down = lifts(counts, u, v), lowers(counts, u, v)
        if (up.sum(axis=0) > 1).any() or (down.sum(axis=0) > 1).any():
            return None
        gains = np.where(up.any(axis=0), up.argmax(axis=0), sink) if len(counts) else np.full(u.shape, sink)
        pays = np.where(down.any(axis=0), down.argmax(axis=0), source) if len(counts) else gains
        for here, there in {*zip(pays.tolist(), gains.tolist(), strict=True)}:
            successors[here].add(there)
    return ConstraintGraph(tuple(frozenset(following) for following in successors))


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
        if self.asked.line_reach is not None:
            return ceil_div(self.asked.size - 1, max(1, self.asked.line_reach))
        return _whole(float(self._table.max()))

    def between(self, u: IntArray, v: IntArray) -> NDArray[Any]:
        if self.asked.line_reach is not None:
            return np.asarray(-(-np.abs(u - v) // max(1, self.asked.line_reach)))
        steps = self._table[u, v]
        _whole(float(steps.max(initial=0.0)))
        return np.asarray(steps.astype(np.int64))

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
        table = scipy.sparse.csr_array(
            (ones, (edges[:, 0], edges[:, 1])), shape=(self.asked.size, self.asked.size)
        )
        return np.asarray(scipy.sparse.csgraph.shortest_path(table, directed=False, unweighted=True))


def _whole(distance: float) -> int:
    if math.isinf(distance):
        raise NotProven(
            "What is known lets records move between groups that the policy keeps apart, so nothing bounds "
            "what a mechanism for this policy alone would reveal.",
            fixes=("answer with noise on each cell, calibrated to what is known",),
        )
    return int(distance)
