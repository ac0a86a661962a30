"""PolicyTree: the adaptive tree under a threshold policy, which pays for what a hidden move can change."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import NotProven
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.noise import Noise
from blowfishdb.core.workloads import Histogram, Workload
from blowfishdb.mechanisms.adaptive.measuring import Measuring, Noisy
from blowfishdb.mechanisms.adaptive.policy_tree import Blocks
from blowfishdb.mechanisms.adaptive_tree import check_divisible, check_sizes, ordered_shape
from blowfishdb.mechanisms.data_dependent import DataDependentMechanism, DataDependentPlan


@final
@dataclass(frozen=True)
class PolicyTree(DataDependentMechanism):
    """Blocks as long as a hidden move: borders between them first, then trees in the blocks that matter.

    For one ordered attribute whose hidden moves are at most θ cells long, 1 < θ, or any two values; the
    number of records public. A histogram is measured in single cells, everything else in trees.

    *Guarantee*: ε-Blowfish; a move into the next block pays exactly ε on every transcript, one inside a block
    at most that. *Error*: depends on the data, hence no (α, β); ranges of real histograms about half that of
    the best mechanism that does not look. *Theorem*: docs/proofs/policy_tree.md.
    """

    def plan(self, workload: Workload, graph: PolicyGraph) -> PolicyTreePlan:
        """How the tree would answer ``workload`` under ``graph``; NotProven if no proof covers it."""
        check_sizes(workload, graph)
        if graph.absent:
            raise NotProven(
                "The policy tree needs a public number of records; this policy hides who is counted.",
                fixes=("use AdaptiveTree() where records come and go", "use Hierarchical() or Laplace()"),
            )
        if sum(n > 1 for n in ordered_shape(workload, graph)) > 1:
            raise NotProven(
                "The policy tree is for one ordered attribute.", fixes=("use AdaptiveTree() for two",)
            )
        reach = graph.span
        if reach is None:
            raise NotProven(
                "The policy tree is proven where hidden pairs of values are at most a known distance apart.",
                fixes=("use AdaptiveTree(), which is proven wherever the number of records is public",),
            )
        if reach <= 1 and graph.size > 2:
            raise NotProven(
                "Where only neighbouring values are hidden, the policy tree has nothing to gain.",
                fixes=("use Ordered(), which measures every prefix at full ε",),
            )
        block = workload.size if reach >= workload.size - 1 else reach
        return PolicyTreePlan(workload, graph, block)


@final
@dataclass(frozen=True, eq=False)
class PolicyTreePlan(DataDependentPlan):
    """Blocks of ``block`` cells."""

    workload: Workload
    graph: PolicyGraph
    block: int
    name: str = "Policy tree"

    @cached_property
    def blocks(self) -> Blocks:
        """The public trees, one per block."""
        make = Blocks.for_cells if isinstance(self.workload, Histogram) else Blocks.for_ranges
        return make(self.workload.size, self.block)

    def estimate(self, counts: IntArray, *, epsilon: Epsilon, noise: Noise) -> FloatArray:
        return self.estimate_through(Noisy(counts, noise), int(counts.sum()), epsilon=epsilon)

    def estimate_through(self, measuring: Measuring, total: int, *, epsilon: Epsilon) -> FloatArray:
        """The same, with the data behind ``measuring`` and the public number of records."""
        return self.blocks.estimate(measuring, total, check_divisible(epsilon, "a policy tree"))

    def explain(self) -> str:
        inside = "cells" if isinstance(self.workload, Histogram) else "an adaptive tree"
        if self.blocks.count == 1:
            return (
                f"Any move is hidden, so {inside} over the whole line, with ε/2 for every cell: a move "
                "changes two. The number of records is public."
            )
        return (
            f"Counts up to every border between blocks of {self.block:,} cells, then {inside} in the blocks "
            "where there is something to see. A hidden move passes at most one border: whatever the data, "
            "moving into the next block costs exactly ε, moving inside a block at most ε."
        )
