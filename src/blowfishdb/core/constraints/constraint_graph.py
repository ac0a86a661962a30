"""The constraint graph G_P of [B14] Def. 8.3: how a move along an edge of the policy shifts known counts.

A move *lifts* a count that counts its end but not its start, and *lowers* one that counts its start but not
its end (Def. 8.1). Known counts are *sparse* if every edge lifts at most one and lowers at most one (Def.
8.2). Vertices are the distinct known counts, then v⁺ and v⁻, which stand for "none".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from blowfishdb.core.arrays import BoolArray, IntArray
from blowfishdb.core.constraints.known_cells import KnownCells
from blowfishdb.core.constraints.longest import Longest, longest_cycle, longest_path
from blowfishdb.core.graphs import Cone, PolicyGraph
from blowfishdb.core.graphs.explicit import unique_edges


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
    if not (isinstance(graph, Cone) and graph.absent):
        return graph.project(known.classes).edges()
    # The uncounted vertex is joined to all, and shares its class with the cells that nothing counts.
    used, labels = np.unique(known.classes[:-1], return_inverse=True)
    inner = used[graph.base.project(labels).edges()]
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
    return ConstraintGraph(tuple(frozenset(found) for found in successors))
