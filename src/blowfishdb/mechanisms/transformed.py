"""Transformed: a mechanism for classical neighbours, moved to the edges of a tree policy ([H15], [BDB])."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray
from blowfishdb.core.budget import AnyEpsilon
from blowfishdb.core.errors import NotProven, SizeMismatch
from blowfishdb.core.graphs import AddRemove, PolicyGraph
from blowfishdb.core.workloads import Workload
from blowfishdb.core.workloads.base import Numbers, vector
from blowfishdb.mechanisms.certificate import Certificate
from blowfishdb.mechanisms.estimation import anchored
from blowfishdb.mechanisms.invariants import invariant_components
from blowfishdb.mechanisms.laplace import Laplace
from blowfishdb.mechanisms.least_squares import unchanging_questions
from blowfishdb.mechanisms.plan import Mechanism, Plan
from blowfishdb.mechanisms.scales import UnitScales
from blowfishdb.mechanisms.trees import Forest


@final
@dataclass(frozen=True)
class Transformed(Mechanism):
    """``inner`` on edge coordinates: W·x = (W·P_G)·y + (what component totals fix), under add/remove on y.

    *Guarantee*: ε-Blowfish for forests, if ``inner`` is ε-private under add/remove, because moving a record
    along an edge changes that edge's coordinate by one and no other: neighbours in x are add/remove
    neighbours in y, and conversely. *Sensitivity*: that of W·P_G under add/remove. *Error*: the inner
    mechanism's on W·P_G. *Theorem*: transformational equivalence for trees ([H15]),
    docs/proofs/transformed.md. Other graphs need ``spanning=True``: the noise is then multiplied by the
    stretch, the longest way in the spanning tree between the ends of an edge.
    """

    inner: Mechanism
    spanning: bool = False

    def plan(self, workload: Workload, graph: PolicyGraph) -> Plan:
        if workload.size != graph.size - graph.absent:
            raise SizeMismatch(
                f"The questions are about {workload.size:,} cells, but the policy is about "
                f"{graph.size - graph.absent:,}."
            )
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
        forest = Forest.spanning(graph)
        questions = EdgeQuestions(workload, forest)
        inner = self.inner.plan(questions, AddRemove(questions.size))
        if (inner.exact & ~unchanging_questions(questions, inner.graph)).any():
            raise NotProven("The inner mechanism calls an answer exact that a hidden move changes.")
        return TransformedPlan(workload, graph, forest, inner, 1 if acyclic else forest.stretch(graph))


@final
@dataclass(frozen=True, eq=False)
class EdgeQuestions(Workload):
    """W·P: the questions over the edge coordinates of a forest."""

    base: Workload
    forest: Forest

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

    def describe(self) -> str:
        return f"{self.base.describe()}, over {self.size:,} edges"


@final
@dataclass(frozen=True, eq=False)
class TransformedPlan(Plan):
    """The inner plan's release on y = subtree sums, with the noise multiplied by ``stretch``."""

    workload: Workload
    graph: PolicyGraph
    forest: Forest
    inner: Plan
    stretch: int

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"Transformed: {self.inner.name}"

    @cached_property
    def scales(self) -> UnitScales:
        inner = self.inner.scales
        return UnitScales(tuple(scale * self.stretch for scale in inner.distinct), inner.which)

    @property
    def one_to_one(self) -> bool:
        return self.inner.one_to_one

    def measure(self, x: IntArray) -> Numbers:
        return self.inner.measure(self.forest.subtree_sums(x))

    def published(self, measured: Numbers, totals: Numbers | None) -> Numbers:
        return self.inner.published(measured, None)  # in edge space records come and go: no total is public

    def decode(self, measured: Numbers, x: IntArray) -> Numbers:
        """On y nothing is invariant, so the inner plan gets zeros in the place of the data."""
        nothing = np.zeros(self.inner.workload.size, dtype=np.int64)
        return self.inner.decode(measured, nothing) + self.workload.answer(self._at_roots(x))

    def _at_roots(self, x: IntArray) -> IntArray:
        """The public component totals, at the roots; none where presence is hidden."""
        components = invariant_components(self.graph)
        roots = np.zeros_like(x)
        if components is not None:
            firsts = components.first(np.arange(components.count))
            roots[components.last(np.arange(components.count))] = anchored(x, self.graph)[firsts]
        return roots

    def spread(self, noise: Numbers) -> Numbers:
        return self.inner.spread(noise)

    def variances(self, of_noise: FloatArray) -> FloatArray:
        return self.inner.variances(of_noise)

    def total_variance(self, of_noise: FloatArray) -> float:
        return self.inner.total_variance(of_noise)

    def largest_variance(self, of_noise: FloatArray) -> float:
        return self.inner.largest_variance(of_noise)

    def largest_errors(self, noise: Numbers) -> FloatArray:
        return self.inner.largest_errors(noise)

    @property
    def width(self) -> int:
        return self.inner.width

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
        moved = "one hidden move changes the count below one edge by one"
        if self.stretch > 1:
            moved = f"one hidden move changes the counts below up to {self.stretch:,} edges by one"
        return f"{self.inner.explain()} These are counts below edges of a tree: {moved}."
