"""Adaptive trees: what is measured next depends, privately, on what was measured before.

Adaptive: the mechanism that is usually closest for a policy and a question, chosen without data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.noise import Noise
from blowfishdb.core.sensitivity import check_sizes
from blowfishdb.core.workloads import Workload, one_per_cell
from blowfishdb.mechanisms.adaptive.denoised import OrderedDenoised
from blowfishdb.mechanisms.adaptive.policy_tree import PolicyTree
from blowfishdb.mechanisms.adaptive.tree import AdaptiveTree, ordered_shape
from blowfishdb.mechanisms.best import Best
from blowfishdb.mechanisms.dawa import steps
from blowfishdb.mechanisms.ordered import joins_neighbours
from blowfishdb.mechanisms.plan import DataDependentMechanism, DataDependentPlan, Plan


@final
@dataclass(frozen=True)
class Adaptive(DataDependentMechanism):
    """A data-dependent mechanism where one is usually closer than Best, and Best elsewhere.

    *Guarantee*: that of the mechanism it takes. Policy and questions are public and the rule looks at nothing
    else, so choosing costs no privacy. *Error*: that of the mechanism it takes. The rule, first match:

    - a single number: Best, which measures just that;
    - records come and go and nothing else is hidden, ranges on one or two attributes: AdaptiveTree;
    - the number of counted records is hidden in another way: Best;
    - one ordered attribute, only neighbouring values hidden from each other: OrderedDenoised;
    - one ordered attribute in one piece, hidden moves of a known length: PolicyTree;
    - the cells themselves: OrderedDenoised;
    - ranges on two attributes, any two cells hidden from each other: AdaptiveTree;
    - everything else: Best.

    >>> bf.mechanisms.Adaptive().plan(bf.workloads.Cumulative(64), bf.graphs.Threshold(64, 1)).name
    'Ordered, denoised'
    """

    def plan(self, workload: Workload, graph: PolicyGraph) -> Plan | AdaptivePlan:
        check_sizes(workload, graph)
        chosen = _choose(workload, graph)
        if chosen is None:
            return Best().plan(workload, graph)
        mechanism, why = chosen
        return AdaptivePlan(mechanism.plan(workload, graph), why)


_Found = AdaptiveTree | PolicyTree | OrderedDenoised


def _choose(workload: Workload, graph: PolicyGraph) -> tuple[_Found, str] | None:
    """The mechanism and the public fact that decided; None where none is usually closer than Best."""
    axes = sum(length > 1 for length in ordered_shape(workload, graph))
    if workload.count == 1:
        return None
    if graph.absent:
        if steps(graph) == 1 and axes <= 2 and not one_per_cell(workload):
            return AdaptiveTree(), "records come and go and nothing else is hidden"
        return None
    if axes <= 1 and joins_neighbours(graph):
        return OrderedDenoised(), "only neighbouring values are hidden from each other"
    if axes <= 1 and graph.span is not None and graph.components().count == 1:
        return PolicyTree(), f"hidden moves are at most {graph.span:,} cells long"
    if one_per_cell(workload):
        return OrderedDenoised(), "the cells themselves are asked for"
    if axes == 2 and graph.edge_count == math.comb(graph.size, 2):
        return AdaptiveTree(), "any two cells are hidden from each other"
    return None


@final
@dataclass(frozen=True, eq=False)
class AdaptivePlan(DataDependentPlan):
    """``inner``, and why it was taken."""

    inner: DataDependentPlan
    why: str

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.inner.name

    @property
    def workload(self) -> Workload:  # type: ignore[override]
        return self.inner.workload

    @property
    def graph(self) -> PolicyGraph:  # type: ignore[override]
        return self.inner.graph

    def estimate(self, counts: IntArray, *, epsilon: Epsilon, noise: Noise) -> FloatArray:
        return self.inner.estimate(counts, epsilon=epsilon, noise=noise)

    def explain(self) -> str:
        return f"Taken by a public rule, since {self.why}. {self.inner.explain()}"
