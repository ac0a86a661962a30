"""Filtered questions: asked of the rows inside the condition, which come and go.

A WHERE clause leaves cells that no question counts. Records move between them and the others, and among
themselves, but what they do there changes no answer: all of these cells are as good as one that nobody
counts. So the question is planned over the cells inside, under a policy that also hides whether a record is
inside at all (docs/proofs/filtered.md). Whatever is known of hidden presence then serves filters as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import final

import numpy as np
from scipy.sparse import csr_array

from blowfishdb.core.arrays import IntArray
from blowfishdb.core.budget import AnyEpsilon
from blowfishdb.core.errors import NotProven, TooLarge
from blowfishdb.core.graphs import Apex, Banded, Cone, Full, PolicyGraph, Threshold
from blowfishdb.core.workloads import Balances, Selected, Workload
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.laplace import Laplace
from blowfishdb.mechanisms.linear.strategy import UnitScales
from blowfishdb.mechanisms.optimized import Optimized
from blowfishdb.mechanisms.optimized.line_design import LineQuestions
from blowfishdb.mechanisms.optimized.line_presence import for_a_part
from blowfishdb.mechanisms.plan import Mechanism, Plan, PlanOfSums

_MOST_EDGES = 1_000_000
_INNER: tuple[Mechanism, ...] = (Optimized(), Laplace(on="workload"))


@final
@dataclass(frozen=True)
class Filtered(Mechanism):
    """The best plan for the rows inside a condition, where records may enter and leave.

    *Guarantee*: ε-Blowfish under the policy over all cells, as the inner plan has it over those inside with
    hidden presence. *Error*: that of the inner plan.
    """

    def plan(self, workload: Workload, graph: PolicyGraph) -> Plan:
        if not isinstance(workload, Selected):
            raise NotProven(
                "Only questions with a condition are asked of the rows inside it.", fixes=("Best()",)
            )
        inside = Cone(_around(workload, graph), Apex.OUTSIDE)
        plans: list[Plan] = []
        for mechanism in _INNER:
            try:
                plan = mechanism.plan(workload.inner, inside)
                if plan.refinable:
                    plans.append(plan)
            except (NotProven, TooLarge):
                continue
        if not plans:
            raise NotProven("No plan is proven for the rows inside this condition.", fixes=("Best()",))
        return FilteredPlan(workload, graph, min(plans, key=lambda plan: plan.unit_error))


@lru_cache(maxsize=64)
def plan_for_a_part(workload: Workload, graph: PolicyGraph) -> FilteredPlan | None:
    """For a curve or ranges of some rows beside those of others: leaving them costs half of moving inside.

    Alone that is dearer; together with other parts it need not be (``optimized.line_presence.for_a_part``).
    """
    if not isinstance(workload, Selected) or not isinstance(workload.inner, LineQuestions | Balances):
        return None
    plan = for_a_part(workload.inner, Cone(_around(workload, graph), Apex.OUTSIDE))
    return None if plan is None else FilteredPlan(workload, graph, plan)


def _around(workload: Selected, graph: PolicyGraph) -> PolicyGraph:
    """A graph over the cells inside that joins whatever the policy joins there; on a line, of known shape."""
    if graph.edge_count > _MOST_EDGES:
        raise TooLarge(f"{graph.edge_count:,} pairs of cells are not looked through.")
    labels, size = np.append(workload.labels, -1), workload.inner.size  # who is absent is not inside
    ends = np.arange(size)
    for block in graph.edge_blocks():
        pairs = np.sort(labels[np.minimum(block, labels.size - 1)], axis=1)
        within = pairs[pairs[:, 0] >= 0]
        np.maximum.at(ends, within[:, 0], within[:, 1])
    ends = np.maximum.accumulate(ends)
    reach = int((ends - np.arange(size)).max(initial=0))
    if reach >= size - 1:
        return Full(size)
    if np.array_equal(ends, np.minimum(np.arange(size) + reach, size - 1)):
        return Threshold(size, max(1, reach))
    return Banded(ends)


@final
@dataclass(frozen=True, eq=False)
class FilteredPlan(PlanOfSums):
    """The inner plan's release on the counts inside."""

    workload: Selected
    graph: PolicyGraph
    inner: Plan

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.inner.name

    @cached_property
    def scales(self) -> UnitScales:
        return self.inner.scales

    @cached_property
    def _fold(self) -> csr_array:
        """The cells inside, each the sum of those that have its label."""
        labels = self.workload.labels
        inside = np.flatnonzero(labels >= 0)
        ones = np.ones(inside.size, dtype=np.int64)
        return csr_array((ones, (labels[inside], inside)), shape=(self.workload.inner.size, labels.size))

    def measure(self, x: IntArray) -> Numbers:
        return self.inner.measure(np.asarray(self._fold @ x, dtype=np.int64))

    def decode(self, measured: Numbers, x: IntArray) -> Numbers:
        """Inside nothing is invariant, so the inner plan gets zeros in the place of the data."""
        return self.inner.decode(measured, np.zeros(self.workload.inner.size, dtype=np.int64))

    def rows(self, *, epsilon: AnyEpsilon) -> tuple[csr_array, list[Fraction]]:
        rows, scales = self.inner.rows(epsilon=epsilon)
        return csr_array(rows @ self._fold), scales

    def explain(self) -> str:
        return f"Asked of the rows that satisfy the condition, which may come and go. {self.inner.explain()}"
