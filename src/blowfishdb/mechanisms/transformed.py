"""Transformed: a mechanism for classical neighbours, moved to the edges of a tree policy ([H15], [BDB]).

Spanning forests of policy graphs, rooted, and the edge coordinates that they give.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np
import scipy
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray
from blowfishdb.core.budget import AnyEpsilon, Epsilon
from blowfishdb.core.domain.bins import LIMIT
from blowfishdb.core.errors import InvalidEpsilon, NotProven, TooLarge
from blowfishdb.core.graphs import AddRemove, PolicyGraph
from blowfishdb.core.noise import Noise
from blowfishdb.core.sensitivity import check_sizes
from blowfishdb.core.workloads import Ranges, Workload
from blowfishdb.core.workloads.base import Numbers, vector
from blowfishdb.mechanisms.hierarchical import LeastSquaresPlan, unchanging_questions
from blowfishdb.mechanisms.laplace import Laplace
from blowfishdb.mechanisms.linear.cost import invariant_components
from blowfishdb.mechanisms.linear.estimators import anchored
from blowfishdb.mechanisms.linear.strategy import SparseRows, UnitScales
from blowfishdb.mechanisms.plan import (
    Certificate,
    DataDependentMechanism,
    DataDependentPlan,
    Mechanism,
    Plan,
    PlanOfSums,
)


@final
@dataclass(frozen=True, eq=False)
class SpanningForest:
    """A spanning forest: ``parent[v]`` of every vertex, itself for roots; ``order`` lists parents first.

    Edge coordinate y_c of the edge from c to its parent is the number of records in the subtree below c, so
    that x_v = y_v − Σ y_c over the children of v. Roots are the last vertices of the components: there a
    vertex that counts nowhere is never below an edge.
    """

    parent: IntArray
    order: IntArray

    @classmethod
    def spanning(cls, graph: PolicyGraph) -> SpanningForest:
        """The graph itself if it is a forest; hubs on a line (paths of at most three); else breadth first."""
        right = graph.right_ends()
        if right is not None:
            return cls._of_hubs(right)
        edges, size = graph.edges(), graph.size
        components = graph.components()
        roots = components.last(np.arange(components.count))
        joined = np.vstack((edges, np.column_stack((roots, np.full(roots.size, size)))))
        ones = np.ones(len(joined), dtype=np.int8)
        rooted = csr_array((ones, (joined[:, 0], joined[:, 1])), shape=(size + 1, size + 1))
        order, above = scipy.sparse.csgraph.breadth_first_order(rooted, size, directed=False)
        parent = above[:size].astype(np.int64)
        parent[roots] = roots
        return cls(parent, order[1:].astype(np.int64))

    @classmethod
    def _of_hubs(cls, right: IntArray) -> SpanningForest:
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


@final
@dataclass(frozen=True)
class Transformed(Mechanism):
    """``inner`` on edge coordinates: W·x = (W·P_G)·y + (what component totals fix), under add/remove on y.

    *Guarantee*: ε-Blowfish for forests, if ``inner`` is ε-private under add/remove, because moving a record
    along an edge changes that edge's coordinate by one and no other: neighbours in x are add/remove
    neighbours in y, and conversely. *Sensitivity*: that of W·P_G under add/remove. *Error*: the inner
    mechanism's on W·P_G. *Theorem*: transformational equivalence for trees ([H15]),
    docs/proofs/transformed.md. Other graphs need ``spanning=True``: the noise is then multiplied by the
    stretch, the longest way in the spanning tree between the ends of an edge. ``inner`` may depend on the
    data, as Dawa() does: the plan is then one that promises no error. One for ranges only, as Optimized() is,
    plans for the ranges of edges that the questions are made of, and least squares answers them.

    >>> m = bf.mechanisms
    >>> plan = m.Transformed(m.Laplace()).plan(bf.workloads.Cumulative(64), bf.graphs.Threshold(64, 1))
    >>> plan.squared_error(epsilon=1) < 2
    True
    >>> m.Transformed(m.Dawa()).plan(bf.workloads.Cumulative(64), bf.graphs.Threshold(64, 1)).name
    'Transformed: DAWA'
    """

    inner: Mechanism | DataDependentMechanism
    spanning: bool = False

    def plan(  # type: ignore[override]  # a plan of the kind that the inner mechanism makes
        self, workload: Workload, graph: PolicyGraph
    ) -> Plan | DataDependentPlan:
        check_sizes(workload, graph)
        if not graph.edge_count:
            return Laplace(on="workload").plan(workload, graph)  # nothing is hidden: every answer is exact
        acyclic = graph.edge_count == graph.size - graph.components().count
        if not (acyclic or self.spanning):
            raise NotProven(
                "Edge coordinates are private only on a policy graph without cycles, and this one has some.",
                fixes=(
                    "allow a spanning tree, at a cost: Transformed(inner, spanning=True)",
                    "use EdgeNoise(), which is private on every graph",
                ),
            )
        forest = SpanningForest.spanning(graph)
        stretch = 1 if acyclic else forest.stretch(graph)
        inner = self._planned_on_edges(EdgeQuestions(workload, forest))
        if isinstance(inner, DataDependentPlan):
            return TransformedEstimate(workload, graph, forest, inner, stretch)
        if (inner.exact & ~unchanging_questions(inner.workload, inner.graph)).any():
            raise NotProven("The inner mechanism calls an answer exact that a hidden move changes.")
        return TransformedPlan(workload, graph, forest, inner, stretch)

    def _planned_on_edges(self, questions: EdgeQuestions) -> Plan | DataDependentPlan:
        """The inner plan; a refusal says what is different on edges, and what to use."""
        try:
            return self.inner.plan(questions, AddRemove(questions.size))
        except NotProven as reason:
            planned = self._planned_for_runs(questions)
            if planned is not None:
                return planned
            name = type(self.inner).__name__
            raise NotProven(
                f"{name} is not proven for the counts below the edges of a tree, which come and go one by "
                f"one and have no public total. {reason.message}",
                fixes=(
                    f"use {name}() by itself, which plans for the edges of a policy as they are",
                    "use Laplace(), Hierarchical(), Privelet(), Dawa() or AdaptiveTree() inside Transformed",
                ),
            ) from reason

    def _planned_for_runs(self, questions: EdgeQuestions) -> Plan | None:
        """What ``inner`` measures for the ranges of edges that the questions are made of, for the questions.

        Private whatever they are: the sensitivity of the rows is computed anew.
        """
        graph = AddRemove(questions.size)
        try:
            ranges = self.inner.plan(questions.runs(), graph)
        except NotProven:
            return None
        if not isinstance(ranges, Plan):
            return None
        rows, scales = ranges.rows(epsilon=1)
        common = math.lcm(*(scale.numerator for scale in scales))
        weights = [int(common / scale) for scale in scales]
        return LeastSquaresPlan(
            questions, graph, SparseRows(rows, weights), name=ranges.name, reason=ranges.explain()
        )


@final
@dataclass(frozen=True, eq=False)
class EdgeQuestions(Workload):
    """W·P: the questions over the edge coordinates of a forest."""

    base: Workload
    forest: SpanningForest

    @property
    def size(self) -> int:  # type: ignore[override]
        return int(self.forest.children.size)

    @property
    def count(self) -> int:
        return self.base.count

    @property
    def denominator(self) -> int:
        return self.base.denominator

    @property
    def binary(self) -> bool:
        return False

    def answer(self, x: ArrayLike) -> Numbers:
        return self.base.answer(self.forest.cells(vector(x, self.size), self.base.size))

    def transpose(self, y: ArrayLike) -> Numbers:
        cells = self.base.transpose(vector(y, self.count))
        rooted = np.zeros((*cells.shape[:-1], self.forest.parent.size), dtype=cells.dtype)
        rooted[..., : self.base.size] = cells
        children = self.forest.children
        return np.asarray(rooted[..., children] - rooted[..., self.forest.parent[children]])

    @cached_property
    def _sparse(self) -> csr_array:
        product = csr_array(self.base.sparse() @ self.forest.incidence[: self.base.size])
        product.eliminate_zeros()
        return product

    def sparse(self) -> csr_array:
        return self._sparse.copy()

    def runs(self) -> Ranges:
        """The ranges of edges that count alike in a question, each once; all of them where none counts."""
        rows = self._sparse.copy()
        rows.sort_indices()
        row = np.repeat(np.arange(self.count), np.diff(rows.indptr))
        edge, value = rows.indices.astype(np.int64), rows.data
        if not edge.size:
            return Ranges(self.size, [0], [self.size - 1])
        begins = np.ones(edge.size, dtype=np.bool_)
        begins[1:] = (np.diff(row) != 0) | (np.diff(edge) != 1) | (value[1:] != value[:-1])
        ends = np.append(begins[1:], True)
        return Ranges(self.size, *np.unique(np.stack((edge[begins], edge[ends])), axis=1))

    def describe(self) -> str:
        return f"{self.base.describe()}, over {self.size:,} edges"


@final
@dataclass(frozen=True, eq=False)
class TransformedPlan(PlanOfSums):
    """The inner plan's release on y = subtree sums, with the noise multiplied by ``stretch``."""

    workload: Workload
    graph: PolicyGraph
    forest: SpanningForest
    inner: Plan
    stretch: int

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"Transformed: {self.inner.name}"

    @cached_property
    def scales(self) -> UnitScales:
        inner = self.inner.scales
        return UnitScales(tuple(scale * self.stretch for scale in inner.distinct), inner.which)

    def measure(self, x: IntArray) -> Numbers:
        return self.inner.measure(self.forest.subtree_sums(x))

    def decode(self, measured: Numbers, x: IntArray) -> Numbers:
        """On y nothing is invariant, so the inner plan gets zeros in the place of the data."""
        nothing = np.zeros(self.inner.workload.size, dtype=np.int64)
        return self.inner.decode(measured, nothing) + self.workload.answer(at_roots(x, self.graph))

    @cached_property
    def exact(self) -> BoolArray:
        return self.inner.exact

    @property
    def free(self) -> bool:
        return self.inner.free

    def rows(self, *, epsilon: AnyEpsilon) -> tuple[csr_array, list[Fraction]]:
        rows, scales = self.inner.rows(epsilon=epsilon)
        return csr_array(rows @ self.forest.subtrees(self.workload.size)), [s * self.stretch for s in scales]

    def certificate(self, *, epsilon: AnyEpsilon) -> Certificate:
        """A move from v to u is a walk in the forest: the noise shifts of its edges add up."""
        inner = self.inner.certificate(epsilon=epsilon)
        absent = self.inner.workload.size

        def witness(u: int, v: int) -> IntArray:
            up, down = self.forest.path(u, v)
            shift = np.zeros(inner.mixing.shape[1], dtype=np.int64)
            for sign, edges in ((1, up), (-1, down)):
                for edge in edges:
                    shift += sign * inner.witness(edge, absent)
            return shift

        released = csr_array(inner.released @ self.forest.subtrees(self.workload.size))
        return Certificate(released, inner.mixing, [s * self.stretch for s in inner.scales], witness)

    def explain(self) -> str:
        return f"{self.inner.explain()} {moved_below_edges(self.stretch)}"


@final
@dataclass(frozen=True, eq=False)
class TransformedEstimate(DataDependentPlan):
    """A data-dependent ``inner`` plan on y = subtree sums, at ε divided by ``stretch``.

    *Guarantee*: a hidden move is a walk of at most ``stretch`` steps, each of which changes one subtree sum
    by one, so the inner estimate loses at most ε; cells follow from it and from public totals.
    """

    workload: Workload
    graph: PolicyGraph
    forest: SpanningForest
    inner: DataDependentPlan
    stretch: int

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"Transformed: {self.inner.name}"

    def estimate(self, counts: IntArray, *, epsilon: Epsilon, noise: Noise) -> FloatArray:
        each = Epsilon.from_nano(epsilon.nano // self.stretch)
        if not each:
            raise InvalidEpsilon(
                f"{epsilon} is too small: a hidden move takes {self.stretch:,} steps in the tree.",
                fixes=(f"spend at least {Epsilon.from_nano(self.stretch)}",),
            )
        below = self.inner.estimate(self.forest.subtree_sums(counts), epsilon=each, noise=noise)
        return np.asarray(self.forest.cells(below, counts.size) + at_roots(counts, self.graph))

    def explain(self) -> str:
        return f"{self.inner.explain()} {moved_below_edges(self.stretch)}"


def at_roots(x: IntArray, graph: PolicyGraph) -> IntArray:
    """The public component totals, at the roots; none where presence is hidden."""
    components = invariant_components(graph)
    roots = np.zeros_like(x)
    if components is not None:
        firsts = components.first(np.arange(components.count))
        roots[components.last(np.arange(components.count))] = anchored(x, graph)[firsts]
    return roots


def moved_below_edges(stretch: int) -> str:
    """What a hidden move does to the counts that are measured."""
    moved = "one hidden move changes the count below one edge by one"
    if stretch > 1:
        moved = f"one hidden move changes the counts below up to {stretch:,} edges by one"
    return f"These are counts below edges of a tree: {moved}."
