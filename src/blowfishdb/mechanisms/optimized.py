"""Optimized: the best strategy we know how to build for ranges under a policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from blowfishdb.core.errors import NotProven, SizeMismatch
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.workloads import Workload
from blowfishdb.mechanisms.boxes import design
from blowfishdb.mechanisms.line.pieces import LineQuestions, pieces
from blowfishdb.mechanisms.line.plan import OptimizedLine
from blowfishdb.mechanisms.plan import Mechanism, Plan


@final
@dataclass(frozen=True)
class Optimized(Mechanism):
    """Weighted rows chosen for the workload and the policy, combined by least squares.

    On a line (full, threshold, unequal bins, contiguous parts): hats and ramps
    (docs/proofs/optimized.md); on a grid: boxes and edge noise.

    *Guarantee*: ε-Blowfish; the sensitivity is the exact maximum over the edges of the policy, computed
    after the weights are rounded. *Error*: exact before the data is read; on a line of 256 cells 1.0–7.7
    times the lower bound. Totals that the policy leaves public are used, so hidden presence is refused.
    """

    def plan(self, workload: Workload, graph: PolicyGraph) -> Plan:
        if workload.size != graph.size - graph.absent:
            raise SizeMismatch(
                f"The questions are about {workload.size:,} cells, but the policy is about "
                f"{graph.size - graph.absent:,}."
            )
        if graph.absent:
            raise NotProven(
                "Optimized strategies use the number of records, which this policy hides.",
                fixes=("use Laplace(), which never uses it",),
            )
        if isinstance(workload, LineQuestions):
            found = pieces(workload, graph)
            if found is not None:
                return OptimizedLine(workload, graph, found)
        boxes = design(workload, graph)
        if boxes is not None:
            return boxes
        raise NotProven(
            "Optimized strategies are for ranges of an ordered attribute, or boxes of several, under a "
            "policy of distances or of contiguous parts.",
            fixes=("use Best(), which knows what else is proven here",),
        )
