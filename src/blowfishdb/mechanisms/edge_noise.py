"""EdgeNoise: noise that flows along the edges of a graph, private under every policy."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal, final

import numpy as np
import scipy
from scipy.sparse import csr_array, eye_array

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.budget import AnyEpsilon, positive
from blowfishdb.core.domain.bins import LIMIT, Bins
from blowfishdb.core.errors import NotProven, TooLarge
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.graphs.grid_moves import GridMoves, grid_shape
from blowfishdb.core.sensitivity import check_sizes
from blowfishdb.core.workloads import Workload
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.linear.cost import component_sums, invariant_components
from blowfishdb.mechanisms.linear.strategy import UnitScales
from blowfishdb.mechanisms.optimized.boxes_questions import Questions
from blowfishdb.mechanisms.optimized.lattice import LatticeNoise, not_rows
from blowfishdb.mechanisms.plan import Certificate, Mechanism, Plan

_LISTED = 10**6
_ENTRIES = 10**8


@final
@dataclass(frozen=True)
class EdgeNoise(Mechanism):
    """x̃ = x + P_H·η: independent noise on edges, added to one end and taken from the other ([H15], [BDB]).

    ``on="policy"`` uses the policy's own edges, for any graph; ``on="grid"`` the unit steps of a grid and
    ``on="king"`` also its diagonals, where every hidden move is a short path of steps. Without a choice the
    smallest squared error wins.

    *Guarantee*: ε-Blowfish for every graph, at a cost of exactly ε times the distance in the graph.
    *Error*: 2·(edges that a question separates)/ε² with the policy's own edges (in the continuous limit).
    *Theorem*: docs/proofs/edge_noise.md, Theorem 1. Component totals are kept, hence exact.

    >>> bf.mechanisms.EdgeNoise().plan(bf.workloads.Histogram(16), bf.graphs.Grid((4, 4), 1)).name
    'Edge noise on a grid'
    """

    on: Literal["policy", "grid", "king"] | None = None

    def plan(self, workload: Workload, graph: PolicyGraph) -> Plan:
        check_sizes(workload, graph)
        steps = self._steps(workload, graph)
        if self.on in ("grid", "king") and not steps:
            raise NotProven(
                "No proof covers steps on a grid for this policy and these questions.",
                fixes=("use the policy's own edges: EdgeNoise(on='policy')",),
            )
        listed = self.on == "policy" or not steps
        if listed or (self.on is None and graph.edge_count <= _LISTED // 10):
            plans: list[GraphNoise | LatticeNoise] = [*steps, GraphNoise(workload, graph)]
        else:
            plans = list(steps)
        return plans[0] if len(plans) == 1 else min(plans, key=lambda plan: plan.unit_error)

    def _steps(self, workload: Workload, graph: PolicyGraph) -> list[LatticeNoise]:
        shape = grid_shape(workload, graph)
        moves, questions = GridMoves.of(graph, shape), Questions.of(workload, shape)
        if self.on == "policy" or moves is None or questions is None or not moves.extremes:
            return []
        makers = {"grid": LatticeNoise.grid, "king": LatticeNoise.kings}
        wanted = [self.on] if self.on else ["grid", "king"][: 1 if len(shape) == 1 else 2]
        return [makers[name](workload, graph, questions, moves) for name in wanted]


@final
@dataclass(frozen=True, eq=False)
class GraphNoise(Plan):
    """x̃ = x + P_G·η with η_e of scale 1/ε on every edge of the policy; answers W·x̃.

    Moving a record along an edge is undone by shifting that edge's noise by one, so the loss is exactly ε.
    """

    workload: Workload
    graph: PolicyGraph
    name: str = "Edge noise"

    @cached_property
    def edges(self) -> IntArray:
        """The edges of the policy, in lexicographic order."""
        return self.graph.edges(_LISTED)

    @cached_property
    def scales(self) -> UnitScales:
        return UnitScales.uniform(1, len(self.edges))

    @property
    def one_to_one(self) -> bool:
        return False

    @cached_property
    def incidence(self) -> csr_array:
        """P_G over all vertices: +1 at the smaller end of an edge, −1 at the larger one."""
        count = len(self.edges)
        signs = np.repeat(np.array([1, -1], dtype=np.int64), count)
        places = (self.edges.T.ravel(), np.tile(np.arange(count), 2))
        return csr_array((signs, places), shape=(self.graph.size, count))

    @cached_property
    def _on_cells(self) -> csr_array:
        return csr_array(self.incidence[: self.workload.size])

    @cached_property
    def _components(self) -> Bins | None:
        return invariant_components(self.graph)

    @cached_property
    def _roots(self) -> IntArray:
        """The first cell of every component with a public total."""
        components = self.graph.components()
        return components.first(np.arange(components.count))

    @cached_property
    def _forest(self) -> tuple[IntArray, IntArray, IntArray]:
        """A spanning forest as (vertex, edge to its parent, sign at the vertex), leaves first.

        Roots are the first cells of the components, or the vertex that counts nowhere.
        """
        size = self.graph.size
        roots = np.array([size - 1]) if self._components is None else self._roots
        joined = np.vstack((self.edges, np.column_stack((roots, np.full(len(roots), size)))))
        ones = np.ones(len(joined), dtype=np.int8)
        graph = csr_array((ones, (joined[:, 0], joined[:, 1])), shape=(size + 1, size + 1))
        order, parents = scipy.sparse.csgraph.breadth_first_order(graph, size, directed=False)
        vertices = order[::-1].astype(np.int64)
        vertices = vertices[(vertices != size) & (parents[vertices] != size)]
        above = parents[vertices].astype(np.int64)
        low, high = np.minimum(vertices, above), np.maximum(vertices, above)
        which = np.searchsorted(self.edges[:, 0] * size + self.edges[:, 1], low * size + high)
        return vertices, which, np.where(vertices == low, 1, -1)

    def measure(self, x: IntArray) -> Numbers:
        """A flow along a spanning forest that carries the records to their cells. Only P_G·flow is used."""
        flow = np.zeros(len(self.edges), dtype=np.int64)
        held = np.zeros(self.graph.size, dtype=np.int64)
        held[: x.size] = x
        for vertex, edge, sign in zip(*(part.tolist() for part in self._forest), strict=True):
            flow[edge] = sign * held[vertex]
            parent = int(self.edges[edge].sum()) - vertex
            held[parent] += held[vertex]
        return flow

    @property
    def refinable(self) -> bool:
        return False

    def published(self, measured: Numbers, totals: Numbers | None) -> Numbers:
        """x + P_G·η, in whole numbers: all that is private of the noisy measurements."""
        cells = measured @ self._on_cells.T
        if totals is not None:
            cells[..., self._roots] += totals
        return np.asarray(cells)

    def decode(self, measured: Numbers, x: IntArray) -> Numbers:
        totals = None if self._components is None else component_sums(x, self._components)
        return self.workload.answer(self.published(measured, totals))

    def spread(self, noise: Numbers) -> Numbers:
        return self.workload.answer(noise @ self._on_cells.T)

    def variances(self, of_noise: FloatArray) -> FloatArray:
        """Σ_e v_e·(q_u − q_v)² for every question q, some questions at a time."""
        rows = self.workload.sparse()
        pieces = []
        step = max(1, int(LIMIT // max(1, len(self.edges))))
        if rows.nnz * (1 + 2 * len(self.edges) // self.graph.size) > _ENTRIES:
            raise TooLarge("The error of every single question under edge noise is above the limit.")
        for start in range(0, self.workload.count, step):
            mixed = (rows[start : start + step] @ self._on_cells).astype(np.float64)
            pieces.append(np.asarray(mixed.multiply(mixed) @ of_noise))
        return np.concatenate(pieces) / self.workload.denominator**2

    def total_variance(self, of_noise: FloatArray) -> float:
        """Σ_e v_e·‖W(e_u − e_v)‖², in closed form for counts."""
        u, v = self.edges.T
        if self.workload.binary and not self.graph.absent:  # entries of a difference are −1, 0 or 1
            return float(self.workload.moves(u, v).astype(np.float64) @ of_noise)
        return float(self.variances(of_noise).sum())

    def rows(self, *, epsilon: AnyEpsilon) -> tuple[csr_array, list[Fraction]]:
        raise not_rows()

    def certificate(self, *, epsilon: AnyEpsilon) -> Certificate:
        index = {(int(u), int(v)): edge for edge, (u, v) in enumerate(self.edges)}

        def witness(u: int, v: int) -> IntArray:
            shift = np.zeros(len(index), dtype=np.int64)
            shift[index[min(u, v), max(u, v)]] = 1 if u < v else -1
            return shift

        cells = csr_array(eye_array(self.workload.size, dtype=np.int64))
        return Certificate(cells, self._on_cells, self.scales.fractions(positive(epsilon)), witness)

    def explain(self) -> str:
        return (
            f"Each of the {len(self.edges):,} pairs that the policy hides exchanges noise of scale 1/ε: what "
            "one value gains the other loses, so an answer errs only where it separates a pair."
        )
