"""Explicit: any policy graph, given edge by edge."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra

from blowfishdb.core.arrays import BoolArray, IntArray, integers
from blowfishdb.core.bins import LIMIT, Bins, single_cells
from blowfishdb.core.errors import InvalidGraph, TooLarge
from blowfishdb.core.graphs.base import PolicyGraph, check_size


def unique_edges(pairs: IntArray) -> IntArray:
    """Distinct rows (u, v) with u < v; loops vanish."""
    ordered = np.sort(pairs.reshape(-1, 2), axis=1)
    kept = ordered[ordered[:, 0] != ordered[:, 1]]
    if kept.size == 0:
        return np.asarray(kept, dtype=np.int64)
    span = int(kept.max()) + 1
    if span < 2**31:  # one integer per edge sorts several times faster than rows
        keys = np.sort(kept[:, 0] * span + kept[:, 1])  # np.unique would hash them, which takes far longer
        keys = keys[np.concatenate(([True], keys[1:] != keys[:-1]))]
        return np.column_stack((keys // span, keys % span))
    return np.asarray(np.unique(kept, axis=0), dtype=np.int64)


@final
@dataclass(frozen=True, eq=False, init=False)
class Explicit(PolicyGraph):
    """The graph with exactly the given edges; without edges nothing is hidden."""

    size: int
    pairs: IntArray

    def __init__(self, size: int, edges: ArrayLike | Iterable[tuple[int, int]]) -> None:
        check_size(size)
        pairs = integers(edges, "Edges", InvalidGraph)
        if pairs.size == 0:
            pairs = np.empty((0, 2), dtype=np.int64)
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise InvalidGraph("Edges must be pairs of cells.")
        if pairs.size and (pairs.min() < 0 or pairs.max() >= size):
            raise InvalidGraph(f"An edge names a cell that does not exist: cells are 0 to {size - 1:,}.")
        if (pairs[:, 0] == pairs[:, 1]).any():
            raise InvalidGraph("An edge joins a cell with itself, which hides nothing.")
        object.__setattr__(self, "size", int(size))
        object.__setattr__(self, "pairs", unique_edges(pairs))

    @property
    def edge_count(self) -> int:
        return int(self.pairs.shape[0])

    def components(self) -> Bins:
        if self.edge_count == 0:
            return single_cells(self.size)
        labels = connected_components(self._adjacency, directed=False)[1]
        _, first = np.unique(labels, return_index=True)
        rank = np.argsort(np.argsort(first))  # number components by their first cell
        return Bins.labels(rank[labels])

    def describe(self) -> str:
        return f"{self.edge_count:,} listed pairs of values" if self.edge_count else "nothing"

    def adjacent(self, u: ArrayLike, v: ArrayLike) -> BoolArray:
        low, high = np.broadcast_arrays(np.minimum(u, v), np.maximum(u, v))
        if self.edge_count == 0:
            return np.zeros(low.shape, dtype=np.bool_)
        named = self._named
        ranks = [np.minimum(np.searchsorted(named, end), named.size - 1) for end in (low, high)]
        known = (named[ranks[0]] == low) & (named[ranks[1]] == high)
        return np.asarray(known & np.isin(ranks[0] * named.size + ranks[1], self._keys))

    def steps(self, u: int, v: int) -> int | float:
        if self.edge_count == 0:
            return math.inf
        found = dijkstra(self._adjacency, directed=False, indices=[u], unweighted=True)[0, v]
        return int(found) if np.isfinite(found) else math.inf

    def edge_blocks(self) -> Iterator[IntArray]:
        if self.edge_count:
            yield self.pairs

    def project_closed(self, bins: Bins) -> PolicyGraph | None:
        return None

    @cached_property
    def _named(self) -> IntArray:
        """The cells that have an edge; ranking them keeps pair keys within 63 bits."""
        return np.unique(self.pairs)

    @cached_property
    def _keys(self) -> IntArray:
        ranks = np.searchsorted(self._named, self.pairs)
        return np.asarray(ranks[:, 0] * self._named.size + ranks[:, 1], dtype=np.int64)

    @cached_property
    def _adjacency(self) -> csr_array:
        if self.size > LIMIT:
            raise TooLarge(f"Components of an explicit graph on {self.size:,} cells are above the limit.")
        ones = np.ones(self.edge_count, dtype=np.int8)
        return csr_array((ones, (self.pairs[:, 0], self.pairs[:, 1])), shape=(self.size, self.size))
