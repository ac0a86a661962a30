"""AdaptiveTree: a hierarchy that looks closer only where its answers say that there is something to see."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import InvalidEpsilon, NotProven, SizeMismatch
from blowfishdb.core.graphs import Apex, Cone, Grid, PolicyGraph
from blowfishdb.core.graphs import Product as ProductGraph
from blowfishdb.core.noise import Noise
from blowfishdb.core.workloads import Marginals, Product, Rectangles, Workload
from blowfishdb.mechanisms.adaptive.decoding import downwards, upwards
from blowfishdb.mechanisms.adaptive.grid import grid_tree
from blowfishdb.mechanisms.adaptive.measuring import Measuring, Noisy
from blowfishdb.mechanisms.adaptive.tree import STOP, PublicTree, descend, least_root, line_levels
from blowfishdb.mechanisms.data_dependent import DataDependentMechanism, DataDependentPlan

_FANOUT = 16
_LEAST_NANO = 100  # what can still be divided among all levels


@final
@dataclass(frozen=True)
class AdaptiveTree(DataDependentMechanism):
    """Counts of a tree from the top down; small counts stop, and what they save measures their group again.

    On one ordered attribute a tree of fan-out about 16, on two a tree of boxes along a Hilbert curve. More
    than two attributes are refused.

    *Guarantee*: ε-differential privacy where single records come and go; elsewhere, where the number of
    records is public, every cell pays ε/2, so that a move between any two cells costs at most ε. *Error*:
    depends on the data, hence no (α, β); ranges of real histograms 0.04–0.8 times a hierarchy's.
    *Theorem*: docs/proofs/adaptive_tree.md.
    """

    def plan(self, workload: Workload, graph: PolicyGraph) -> AdaptiveTreePlan:
        """How the tree would answer ``workload`` under ``graph``; NotProven if no proof covers it."""
        check_sizes(workload, graph)
        if graph.absent and not _add_remove(graph):
            raise NotProven(
                "The adaptive tree is proven where records come and go and nothing else is hidden, or where "
                "the number of counted records is public; this policy hides both values and presence.",
                fixes=("use Hierarchical() or Laplace()",),
            )
        shape = tuple(n for n in ordered_shape(workload, graph) if n > 1)
        if len(shape) > 2:
            raise NotProven(
                f"The adaptive tree is for one or two ordered attributes, and the question has {len(shape)}.",
                fixes=("ask about two attributes at a time", "use Best()"),
            )
        return AdaptiveTreePlan(workload, graph, shape)


def check_sizes(workload: Workload, graph: PolicyGraph) -> None:
    """The questions and the policy speak of the same cells."""
    if workload.size != graph.size - graph.absent:
        raise SizeMismatch(
            f"The questions are about {workload.size:,} cells, but the policy is about "
            f"{graph.size - graph.absent:,}."
        )


def ordered_shape(workload: Workload, graph: PolicyGraph) -> tuple[int, ...]:
    """The axes of the cells: those of the workload, else of the policy, else one line."""
    base = graph.base if isinstance(graph, Cone) and graph.absent else graph
    for part in (workload, base):
        if isinstance(part, Product | Rectangles | Marginals | ProductGraph | Grid):
            return part.shape
    return (workload.size,)


def _add_remove(graph: PolicyGraph) -> bool:
    return isinstance(graph, Cone) and graph.apex is Apex.PRESENCE and graph.base.edge_count == 0


def check_divisible(epsilon: Epsilon, name: str) -> int:
    """``epsilon`` in whole nano-ε, enough of them for every part of a plan to get some."""
    if epsilon.nano < _LEAST_NANO:
        raise InvalidEpsilon(
            f"{epsilon} is too small to be divided among the levels of {name}.",
            fixes=(f"spend at least {Epsilon.from_nano(_LEAST_NANO)}",),
        )
    return epsilon.nano


@final
@dataclass(frozen=True, eq=False)
class AdaptiveTreePlan(DataDependentPlan):
    """One public tree, gone down as far as the answers lead."""

    workload: Workload
    graph: PolicyGraph
    shape: tuple[int, ...]
    name: str = "Adaptive tree"

    @cached_property
    def tree(self) -> PublicTree:
        """The tree before any data is seen."""
        if len(self.shape) == 2:
            return grid_tree(*self.shape)
        size = self.workload.size
        levels = max(1, round(math.log(size, _FANOUT)))
        cuts = line_levels(size, size, least_root(size, levels), levels)
        return PublicTree(cuts, (1,) * levels, (STOP,) * levels)

    @property
    def moves_cost(self) -> int:
        """How many cells one neighbouring step changes: what a cell pays is ε divided by this."""
        return 1 if self.graph.absent else 2

    def estimate(self, counts: IntArray, *, epsilon: Epsilon, noise: Noise) -> FloatArray:
        order = self.tree.order
        total = None if self.graph.absent else int(counts.sum())
        measuring = Noisy(counts if order is None else counts[order], noise)
        return self.estimate_through(measuring, total, epsilon=epsilon)

    def estimate_through(self, measuring: Measuring, total: int | None, *, epsilon: Epsilon) -> FloatArray:
        """The same, with the data behind ``measuring`` (in the order of the tree) and the public total."""
        each = np.array([check_divisible(epsilon, "an adaptive tree") // self.moves_cost], dtype=np.int64)
        estimates = upwards(descend(self.tree, each, measuring))
        totals = None if total is None else np.array([float(total)])
        if self.tree.order is None:
            return downwards(estimates, totals)
        totals = np.maximum(estimates.values[:1], 0.0) if totals is None else totals
        cells = np.empty(self.workload.size)
        cells[self.tree.order] = downwards(estimates, totals, sparse=True)
        return cells

    def explain(self) -> str:
        tree = self.tree
        walk = "along a Hilbert curve" if tree.order is not None else "from left to right"
        text = (
            f"Counts of a tree with {tree.levels} level{'s' if tree.levels > 1 else ''}, from the top down; "
            f"small counts stop, are grouped {walk} and measured again with what they saved, so that every "
            "cell pays "
        )
        if self.graph.absent:
            return text + "exactly ε whatever the data."
        return text + "ε/2 whatever the data: a move changes two cells. The total is public and exact."
