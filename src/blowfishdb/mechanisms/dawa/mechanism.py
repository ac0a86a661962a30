"""Dawa: a private partition into even buckets, then counts tuned to the questions ([D14], corrected)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import InvalidEpsilon, SizeMismatch
from blowfishdb.core.graphs import Cone, PolicyGraph
from blowfishdb.core.noise import Noise
from blowfishdb.core.workloads import Workload
from blowfishdb.mechanisms.data_dependent import DataDependentPlan
from blowfishdb.mechanisms.dawa.coverage import coverage
from blowfishdb.mechanisms.dawa.expansion import expand, row_order
from blowfishdb.mechanisms.dawa.greedy import greedy_scaling
from blowfishdb.mechanisms.dawa.partition import Candidates, Penalty, private_partition
from blowfishdb.mechanisms.dawa.tree_least_squares import integer_weights, noisy_sums, tree_least_squares

_PENALTY = Penalty(Fraction(3), Fraction(2))


@final
@dataclass(frozen=True)
class Dawa:
    """DAWA with the noise that its proof needs: ``split`` of ε on the partition, the rest on the counts.

    *Guarantee*: ε-private under add/remove; under any other policy, where a move is one record less and one
    more, at twice the noise. *Error*: depends on the data. *Theorem*: docs/proofs/dawa.md. Grids are cut
    along the Hilbert curve.
    """

    split: float = 0.25

    def __post_init__(self) -> None:
        check_split(self.split)

    def plan(self, workload: Workload, graph: PolicyGraph) -> DawaPlan:
        check_cells(workload, graph)
        return DawaPlan(workload, graph, self.split)


@final
@dataclass(frozen=True, eq=False)
class DawaPlan(DataDependentPlan):
    """Stage one at ε₁ = split·ε, stage two at ε − ε₁, both divided by the steps that a hidden move takes."""

    workload: Workload
    graph: PolicyGraph
    split: float
    name: str = "DAWA"

    def estimate(self, counts: IntArray, *, epsilon: Epsilon, noise: Noise) -> FloatArray:
        if not self.graph.edge_count:
            return counts.astype(np.float64)
        first, second = stages(epsilon, self.split, steps(self.graph))
        order = row_order(self.workload)
        row = counts if order is None else counts[order]
        candidates = Candidates.usual(row.size)
        buckets = private_partition(row, candidates, _PENALTY, first, second, noise)
        scales = greedy_scaling(coverage(self.workload, order, buckets), buckets.size)
        weights = integer_weights(scales)
        measured = noisy_sums(np.add.reduceat(row, buckets), weights, second, noise)
        return expand(buckets, tree_least_squares(measured, weights), order, row.size)

    def explain(self) -> str:
        if not self.graph.edge_count:
            return "The policy hides nothing: every answer is exact."
        text = (
            f"{self.split:.0%} of the budget chooses buckets of even cells, the rest measures a tree of "
            "counts over them, weighted for the questions."
        )
        if steps(self.graph) == 1:
            return text
        return f"{text} A hidden move is one record less and one more, so all noise is doubled."


def steps(graph: PolicyGraph) -> int:
    """How many records come or go along an edge: one under plain add/remove, otherwise up to two."""
    plain = isinstance(graph, Cone) and graph.absent and graph.base.edge_count == 0
    return 1 if plain else 2


def stages(epsilon: Epsilon, split: float, times: int) -> tuple[Fraction, Fraction]:
    """ε₁ and ε₂ per record that comes or goes; together they spend ``epsilon`` exactly."""
    first = min(max(1, math.floor(epsilon.nano * split)), epsilon.nano - 1)
    if first < 1:
        raise InvalidEpsilon("A mechanism of two stages needs an ε of at least 0.000000002.")
    chosen = Epsilon.from_nano(first).fraction
    return chosen / times, (epsilon.fraction - chosen) / times


def check_split(split: float) -> None:
    """A share of the budget for the first stage, strictly between nothing and everything."""
    if not 0 < split < 1:
        raise InvalidEpsilon(
            f"The first stage gets a share of ε between 0 and 1, not {split}.", fixes=("use split=0.25",)
        )


def check_cells(workload: Workload, graph: PolicyGraph) -> None:
    """Questions and policy must be about the same cells."""
    if workload.size != graph.size - graph.absent:
        raise SizeMismatch(
            f"The questions are about {workload.size:,} cells, but the policy is about "
            f"{graph.size - graph.absent:,}."
        )
