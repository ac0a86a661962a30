"""Dawa: a private partition into even buckets, then counts tuned to the questions ([D14], corrected)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.noise import Noise
from blowfishdb.core.workloads import Workload
from blowfishdb.mechanisms.dawa.coverage import coverage
from blowfishdb.mechanisms.dawa.expansion import expand, row_order
from blowfishdb.mechanisms.dawa.greedy import greedy_scaling
from blowfishdb.mechanisms.dawa.partition import Candidates, Penalty, private_partition
from blowfishdb.mechanisms.dawa.tree_least_squares import integer_weights, noisy_sums, tree_least_squares
from blowfishdb.mechanisms.dawa.two_stages import TwoStagePlan, TwoStages

_PENALTY = Penalty(Fraction(3), Fraction(2))


@final
@dataclass(frozen=True)
class Dawa(TwoStages):
    """DAWA with the noise that its proof needs: ``split`` of ε on the partition, the rest on the counts.

    *Guarantee*: ε-private under add/remove; under any other policy, where a move is one record less and one
    more, at twice the noise. *Error*: depends on the data. *Theorem*: docs/proofs/dawa.md. Grids are cut
    along the Hilbert curve.
    """

    split: float = 0.25

    def planned(self, workload: Workload, graph: PolicyGraph) -> DawaPlan:
        return DawaPlan(workload, graph, self.split)


@final
@dataclass(frozen=True, eq=False)
class DawaPlan(TwoStagePlan):
    """A partition, a tree of counts over its buckets, each bucket spread evenly over its cells."""

    name: str = "DAWA"

    def estimate_in_stages(
        self, counts: IntArray, *, first: Fraction, second: Fraction, noise: Noise
    ) -> FloatArray:
        order = row_order(self.workload)
        row = counts if order is None else counts[order]
        buckets = private_partition(row, Candidates.usual(row.size), _PENALTY, first, second, noise)
        scales = greedy_scaling(coverage(self.workload, order, buckets), buckets.size)
        weights = integer_weights(scales)
        measured = noisy_sums(np.add.reduceat(row, buckets), weights, second, noise)
        return expand(buckets, tree_least_squares(measured, weights), order, row.size)

    def explain_stages(self) -> str:
        text = (
            f"{self.split:.0%} of the budget chooses buckets of even cells, the rest measures a tree of "
            "counts over them, weighted for the questions."
        )
        if self.steps == 1:
            return text
        return f"{text} A hidden move is one record less and one more, so all noise is doubled."
