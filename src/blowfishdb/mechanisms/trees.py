"""Spanning forests of policy graphs, rooted, and the edge coordinates that they give."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from blowfishdb.core.arrays import IntArray
from blowfishdb.core.bins import LIMIT
from blowfishdb.core.errors import TooLarge
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.interval_cost import right_ends


@final
@dataclass(frozen=True, eq=False)
class Forest:
    """A spanning forest: ``parent[v]`` of every vertex, itself for roots; ``order`` lists parents first.

    Edge coordinate y_c of the edge from c to its parent is the number of records in the subtree below c, so
    that x_v = y_v − Σ y_c over the children of v. Roots are the last vertices of the components: there a
    vertex that counts nowhere is never below an edge.
    """

    parent: IntArray
    order: IntArray

    @classmethod
    def spanning(cls, graph: PolicyGraph) -> Forest:
        """The graph itself if it is a forest; hubs on a line (paths of at most three); else breadth first."""
        right = right_ends(graph)
        if right is not None:
            return cls._of_hubs(right)
        edges, size = graph.edges(), graph.size
        components = graph.components()
        roots = components.last(np.arange(components.count))
        joined = np.vstack((edges, np.column_stack((roots, np.full(roots.size, size)))))
        ones = np.ones(len(joined), dtype=np.int8)
        rooted = csr_array((ones, (joined[:, 0], joined[:, 1])), shape=(size + 1, size + 1))
        order, above = breadth_first_order(rooted, size, directed=False)
        parent = above[:size].astype(np.int64)
        parent[roots] = roots
        return cls(parent, order[1:].astype(np.int64))

    @classmethod
    def _of_hubs(cls, right: IntArray) -> Forest:
        """From the right end: a hub, everything that reaches it, the farthest of these as the next hub.

        An edge joins cells of the same hub or of hubs in a row: u → hub → next hub → v.
        """
        size = int(right.size)
        left = np.searchsorted(right, np.arange(size)).astype(np.int64)
        parent = np.arange(size)
        hub = size - 1
        while hub >= 0:
            parent[left[hub] : hub] = hub
            hub = int(left[hub]) if left[hub] < hub else hub - 1
        return cls(parent, np.arange(size - 1, -1, -1))

    @cached_property
    def children(self) -> IntArray:
        """The vertices with an edge to their parent, in the order of the coordinates."""
        return np.flatnonzero(self.parent != np.arange(self.parent.size)).astype(np.int64)

    @cached_property
    def coordinate(self) -> IntArray:
        """The coordinate of every vertex's edge to its parent; −1 for roots."""
        place = np.full(self.parent.size, -1, dtype=np.int64)
        place[self.children] = np.arange(self.children.size)
        return place

    @cached_property
    def depth(self) -> IntArray:
        """The number of edges to the root."""
        depth = [0] * self.parent.size
        parent = self.parent.tolist()
        for vertex in self.order.tolist():
            if parent[vertex] != vertex:
                depth[vertex] = depth[parent[vertex]] + 1
        return np.array(depth, dtype=np.int64)

    def subtree_sums(self, x: IntArray) -> IntArray:
        """y from the counts of the cells; a vertex beyond them counts nothing."""
        held = np.zeros(self.parent.size, dtype=np.int64)
        held[: x.size] = x
        parent = self.parent.tolist()
        sums = held.tolist()
        for vertex in self.order[::-1].tolist():
            if parent[vertex] != vertex:
                sums[parent[vertex]] += sums[vertex]
        return np.array(sums, dtype=np.int64)[self.children]

    def cells(self, y: Numbers, count: int) -> Numbers:
        """P·y on the first ``count`` vertices: what goes up an edge is below it, not above."""
        cells = np.zeros((*y.shape[:-1], self.parent.size), dtype=y.dtype)
        cells[..., self.children] += y
        np.subtract.at(np.moveaxis(cells, -1, 0), self.parent[self.children], np.moveaxis(y, -1, 0))
        return cells[..., :count]

    def path(self, u: int, v: int) -> tuple[list[int], list[int]]:
        """The coordinates on the way from u up to the meeting point, and those from v up to it."""
        up_u: list[int] = []
        up_v: list[int] = []
        while u != v:
            if self.depth[u] >= self.depth[v]:
                up_u.append(int(self.coordinate[u]))
                u = int(self.parent[u])
            else:
                up_v.append(int(self.coordinate[v]))
                v = int(self.parent[v])
        return up_u, up_v

    def stretch(self, graph: PolicyGraph) -> int:
        """The longest path in the forest between the two ends of an edge of ``graph``."""
        longest = 0
        for block in graph.edge_blocks():
            u, v = block[:, 0].copy(), block[:, 1].copy()
            length = np.zeros(len(block), dtype=np.int64)
            while (apart := u != v).any():
                lower_u = apart & (self.depth[u] >= self.depth[v])
                lower_v = apart & ~lower_u
                u, v = np.where(lower_u, self.parent[u], u), np.where(lower_v, self.parent[v], v)
                length += apart
            longest = max(longest, int(length.max(initial=0)))
        return longest

    @cached_property
    def incidence(self) -> csr_array:
        """P over all vertices: +1 at the lower end of an edge, −1 at the upper."""
        count = self.children.size
        signs = np.repeat(np.array([1, -1], dtype=np.int64), count)
        places = np.concatenate((self.children, self.parent[self.children])), np.tile(np.arange(count), 2)
        return csr_array((signs, places), shape=(self.parent.size, count))

    def subtrees(self, count: int) -> csr_array:
        """Y with y = Y·x: which cells are below which edge."""
        if int(self.depth.sum()) > 10 * LIMIT:
            raise TooLarge("Writing out which cells are below every edge of the tree is above the limit.")
        rows, columns = [], []
        above = cells = np.arange(self.parent.size)
        while (live := above != self.parent[above]).any():
            rows.append(self.coordinate[above[live]])
            columns.append(cells[live])
            above, cells = self.parent[above[live]], cells[live]
        if not rows:
            return csr_array((self.children.size, count), dtype=np.int64)
        r, c = np.concatenate(rows), np.concatenate(columns)
        counted = c < count
        ones = np.ones(int(counted.sum()), dtype=np.int64)
        return csr_array((ones, (r[counted], c[counted])), shape=(self.children.size, count))
