"""OrderedHierarchical: sparse prefix counts join blocks, trees answer inside them ([B14] §7.2, corrected)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, final

import numpy as np

from blowfishdb.core.errors import InvalidInput, NotProven, SizeMismatch
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.workloads import Workload
from blowfishdb.mechanisms.hierarchical import best_fanout, blocks, check_fanout, height_for
from blowfishdb.mechanisms.least_squares import LeastSquaresPlan
from blowfishdb.mechanisms.ordered import Ordered, joins_neighbours
from blowfishdb.mechanisms.path_estimation import PathEstimator
from blowfishdb.mechanisms.plan import Mechanism, Plan
from blowfishdb.mechanisms.strategy import Contrasts, public_cuts, tree_nodes

_UNIT = 2**20
_TOLERANCE = 0.08  # of the log-odds of the split: the error is flat around its minimum
_GOLDEN = (math.sqrt(5) - 1) / 2


@final
@dataclass(frozen=True)
class OrderedHierarchical(Mechanism):
    """Prefix counts s_i at every θ-th cell and a tree H_i of fan-out f inside every block of θ cells.

    ``split`` is ε_S/ε, the share of the prefix counts. Without a split or a fan-out the exact error decides.
    ``decoding="paper"`` adds up an S node and the tree nodes before the cut; least squares uses every row.

    *Guarantee*: ε-Blowfish for θ-lines and what lies within them, n public. *Sensitivity*: a move over at
    most θ cells changes at most one s_i and at most 2h tree nodes; S nodes get scale K/w_S and H nodes K/w_H
    with K the exact maximum over the true edges, so the worst edge loses ε and no edge more. *Error*: exact;
    O(1/ε_S² + h³f/ε_H²). *Theorem*: docs/proofs/ordered_hierarchical.md. The published budget overspends by
    up to 50 %: here H_1 is treated like every H_i, s_1 like every s_i, block totals are never measured, and n
    is not either.
    """

    fanout: int | None = None
    decoding: Literal["least squares", "paper"] = "least squares"
    split: Fraction | float | None = None

    def __post_init__(self) -> None:
        check_fanout(self.fanout)
        if self.decoding not in ("least squares", "paper"):
            raise InvalidInput(f"The decoding is 'least squares' or 'paper', not {self.decoding!r}.")
        if self.split is not None and not 0 < self.split < 1:
            raise InvalidInput("The share of the prefix counts lies strictly between 0 and 1.")

    def plan(self, workload: Workload, graph: PolicyGraph) -> Plan:
        if workload.size != graph.size - graph.absent:
            raise SizeMismatch(
                f"The questions are about {workload.size:,} cells, but the policy is about "
                f"{graph.size - graph.absent:,}."
            )
        if graph.absent or graph.reach is None:
            raise NotProven(
                "The ordered hierarchical mechanism is proven for values on a line that are hidden within a "
                "distance, with a public number of records.",
                fixes=("use Hierarchical()", "use Laplace()"),
            )
        if joins_neighbours(graph):
            return Ordered().plan(workload, graph)  # ε_H = 0
        block = workload.size if graph.reach >= workload.size - 1 else graph.reach
        if self.fanout is not None:
            return self._best_split(workload, graph, block, self.fanout)
        return best_fanout(block, lambda fanout: self._best_split(workload, graph, block, fanout))

    def _best_split(
        self, workload: Workload, graph: PolicyGraph, block: int, fanout: int
    ) -> LeastSquaresPlan:
        if self.split is not None or block == workload.size:  # one block: ε_S = 0
            share = Fraction(self.split or 0).limit_denominator(_UNIT)
            return self._with_split(workload, graph, block, fanout, share)

        def at(log_odds: float) -> LeastSquaresPlan:
            share = Fraction(round(_UNIT / (1 + math.exp(-log_odds))), _UNIT)
            return self._with_split(workload, graph, block, fanout, share)

        return _least_error(at)

    def _with_split(
        self, workload: Workload, graph: PolicyGraph, block: int, fanout: int, share: Fraction
    ) -> LeastSquaresPlan:
        """w_S : 2h·w_H = share : 1 − share, in whole numbers."""
        size = workload.size
        starts, stops = blocks(size, block)
        nodes = tree_nodes(starts, stops, fanout)
        ordered = stops[:-1]  # s_1, s_2, …; the last one is n
        weights = (2 * height_for(block, fanout) * share.numerator, share.denominator - share.numerator)
        strategy = Contrasts(
            size,
            np.concatenate((np.zeros_like(ordered), nodes[0])),
            np.concatenate((ordered, nodes[1])),
            np.repeat(np.array(weights, dtype=np.int64), (ordered.size, nodes[0].size)),
        )
        strategy = strategy.take(np.flatnonzero(~strategy.unchanging(graph)))
        public = public_cuts(graph, size)
        assert public is not None  # components of a line are intervals
        return LeastSquaresPlan(
            workload,
            graph,
            strategy,
            name=f"Ordered hierarchical, fan-out {fanout}"
            + (", the paper's decoding" if self.decoding == "paper" else ""),
            reason=_reason(block, ordered.size, fanout, share),
            estimator=PathEstimator(strategy, public) if self.decoding == "paper" else None,
        )


def _least_error(
    at: Callable[[float], LeastSquaresPlan], low: float = -4.5, high: float = 3.0
) -> LeastSquaresPlan:
    """Golden-section search; the error has one minimum in the split."""
    inner = [at(high - _GOLDEN * (high - low)), at(low + _GOLDEN * (high - low))]
    while high - low > _TOLERANCE:
        if inner[0].unit_error <= inner[1].unit_error:
            high = low + _GOLDEN * (high - low)
            inner = [at(high - _GOLDEN * (high - low)), inner[0]]
        else:
            low = high - _GOLDEN * (high - low)
            inner = [inner[1], at(low + _GOLDEN * (high - low))]
    return min(inner, key=lambda plan: plan.unit_error)


def _reason(block: int, ordered: int, fanout: int, share: Fraction) -> str:
    trees = f"a tree of fan-out {fanout:,} inside every {block:,} cells"
    if not ordered:
        return f"The policy spans the whole line: {trees}."
    return f"Prefix counts at every {block:,} cells with {float(share):.0%} of the budget, and {trees}."
