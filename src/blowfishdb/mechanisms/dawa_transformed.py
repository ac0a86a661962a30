"""DawaTransformed: even buckets first, then the best plan for the policy between the buckets ([A] §5.1)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.bins import Bins
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.noise import Noise
from blowfishdb.core.workloads import Cumulative, Histogram, Workload
from blowfishdb.mechanisms.best import Best
from blowfishdb.mechanisms.dawa.expansion import row_order
from blowfishdb.mechanisms.dawa.partition import Candidates, Penalty, private_partition
from blowfishdb.mechanisms.dawa.two_stages import TwoStagePlan, TwoStages
from blowfishdb.mechanisms.estimation import as_ranges
from blowfishdb.mechanisms.ordered import joins_neighbours
from blowfishdb.mechanisms.ordered_denoised import nearest_non_negative, rising_steps

_PENALTY = Penalty(Fraction(1), Fraction(2))


@final
@dataclass(frozen=True)
class DawaTransformed(TwoStages):
    """``split`` of ε on the partition, the rest on the counts of the buckets under the projected policy.

    *Guarantee*: ε-Blowfish for every graph: the partition pays twice where a move is one record less and one
    more; the counts are those of a plan that is private under the policy between the (by then public)
    buckets. *Error*: depends on the data. *Theorem*: docs/proofs/dawa_transformed.md.
    """

    split: float = 0.5

    def planned(self, workload: Workload, graph: PolicyGraph) -> DawaTransformedPlan:
        return DawaTransformedPlan(workload, graph, self.split)


@final
@dataclass(frozen=True, eq=False)
class DawaTransformedPlan(TwoStagePlan):
    """A partition, the counts of its buckets, each bucket spread evenly over its cells."""

    name: str = "DAWA, transformed"

    def estimate_in_stages(
        self, counts: IntArray, *, first: Fraction, second: Fraction, noise: Noise
    ) -> FloatArray:
        order = row_order(self.workload)
        row = counts if order is None else counts[order]
        buckets = private_partition(row, Candidates.usual(row.size), _PENALTY, first, second, noise)
        labels = np.repeat(np.arange(buckets.size), np.diff(buckets, append=row.size))
        if order is not None:
            along, labels = labels, np.empty_like(labels)
            labels[order] = along
        rest = Epsilon(second * self.steps)
        return released_in_buckets(self.workload, self.graph, counts, labels, epsilon=rest, noise=noise)

    def explain_stages(self) -> str:
        doubled = " at twice the noise, since a hidden move is one record less and one more"
        return (
            f"{self.split:.0%} of the budget chooses buckets of even cells"
            f"{doubled if self.steps == 2 else ''}; the rest measures them by the best plan for the "
            "policy between buckets, where a move inside a bucket changes nothing."
        )


def released_in_buckets(
    workload: Workload,
    graph: PolicyGraph,
    counts: IntArray,
    labels: IntArray,
    *,
    epsilon: Epsilon,
    noise: Noise,
) -> FloatArray:
    """Private counts of public buckets under the projected policy, spread evenly over their cells.

    Where the number of records is public, so are the totals of the policy's components: bucket counts are
    then made non-negative without changing those, which is post-processing.
    """
    sizes = np.bincount(labels)
    sums = np.zeros(sizes.size, dtype=np.int64)
    np.add.at(sums, labels, counts)
    projected = graph.project(Bins.labels(labels))
    in_line = as_ranges(workload) is not None and not isinstance(workload, Histogram)
    asked: Workload = Cumulative(sizes.size) if in_line else Histogram(sizes.size)
    plan = Best().plan(asked, projected)
    released = np.asarray(plan.release(sums, epsilon=epsilon, noise=noise), dtype=np.float64)
    totals = np.diff(released, prepend=0.0) if in_line else released
    if not graph.absent:
        totals = _not_negative(totals, projected)
    return np.asarray((totals / sizes)[labels])


def _not_negative(totals: FloatArray, graph: PolicyGraph) -> FloatArray:
    """Component by component: prefix counts in increasing order on a line, otherwise the nearest counts."""
    nearest = rising_steps if joins_neighbours(graph) else nearest_non_negative
    component = graph.components().assignment()
    order = np.argsort(component, kind="stable")
    found = np.empty_like(totals)
    for members in np.split(order, np.cumsum(np.bincount(component))[:-1]):
        found[members] = nearest(totals[members])
    return found
