"""DAWA: data- and workload-aware answers ([D14]), with the noise that its proof needs.

Dawa: a private partition into even buckets, then counts tuned to the questions ([D14], corrected).

DawaTransformed: even buckets first, then the best plan for the policy between the buckets ([A] §5.1).

What all mechanisms of two stages share: ε₁ on buckets, the rest of ε on their counts.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, final

import numpy as np

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.errors import InvalidEpsilon, InvalidInput, TooLarge
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.noise import Noise
from blowfishdb.core.sensitivity import check_sizes
from blowfishdb.core.workloads import Cumulative, Histogram, Workload, one_per_cell
from blowfishdb.mechanisms.adaptive.denoised import nearest_non_negative, rising_steps
from blowfishdb.mechanisms.best import Best
from blowfishdb.mechanisms.dawa.measuring import (
    coverage,
    greedy_scaling,
    integer_weights,
    noisy_sums,
    tree_least_squares,
)
from blowfishdb.mechanisms.dawa.partition import (
    MOST_FOR_ALL,
    Candidates,
    Penalty,
    expand,
    private_partition,
    row_order,
)
from blowfishdb.mechanisms.hierarchical import check_fanout
from blowfishdb.mechanisms.ordered import joins_neighbours
from blowfishdb.mechanisms.plan import DataDependentMechanism, DataDependentPlan


@dataclass(frozen=True)
class TwoStages(DataDependentMechanism):
    """``split`` is the share of ε that chooses buckets, strictly between nothing and everything.

    None leaves it to a public rule that looks at the questions.
    """

    split: float | None

    def __post_init__(self) -> None:
        if self.split is not None and not 0 < self.split < 1:
            raise InvalidEpsilon(
                f"The first stage gets a share of ε between 0 and 1, not {self.split}.",
                fixes=("use split=0.25",),
            )

    def plan(self, workload: Workload, graph: PolicyGraph) -> TwoStagePlan:
        """How ``workload`` would be answered under ``graph``; both must be about the same cells."""
        check_sizes(workload, graph)
        return self.planned(workload, graph)

    @abstractmethod
    def planned(self, workload: Workload, graph: PolicyGraph) -> TwoStagePlan:
        """The same, for a workload and a policy that fit each other."""


@dataclass(frozen=True, eq=False)
class TwoStagePlan(DataDependentPlan):
    """Stage one at ε₁ = split·ε, stage two at ε − ε₁, both divided by the steps that a hidden move takes."""

    workload: Workload
    graph: PolicyGraph
    split: float

    @property
    def steps(self) -> int:
        """How many records come or go along an edge of the policy."""
        return steps(self.graph)

    def estimate(self, counts: IntArray, *, epsilon: Epsilon, noise: Noise) -> FloatArray:
        if not self.graph.edge_count:
            return counts.astype(np.float64)
        first, second = stages(epsilon, self.split, self.steps)
        return self.estimate_in_stages(counts, first=first, second=second, noise=noise)

    def explain(self) -> str:
        if not self.graph.edge_count:
            return "The policy hides nothing: every answer is exact."
        return self.explain_stages()

    @abstractmethod
    def estimate_in_stages(
        self, counts: IntArray, *, first: Fraction, second: Fraction, noise: Noise
    ) -> FloatArray:
        """A private estimate of every cell at ε₁ and ε₂ per record that comes or goes."""

    @abstractmethod
    def explain_stages(self) -> str:
        """What both stages do, where the policy hides something."""


def steps(graph: PolicyGraph) -> int:
    """How many records come or go along an edge: one under plain add/remove, otherwise up to two."""
    plain = graph.absent and graph.counted.edge_count == 0
    return 1 if plain else 2


def stages(epsilon: Epsilon, split: float, times: int) -> tuple[Fraction, Fraction]:
    """ε₁ and ε₂ per record that comes or goes; together they spend ``epsilon`` exactly."""
    first = min(max(1, math.floor(epsilon.nano * split)), epsilon.nano - 1)
    if first < 1:
        raise InvalidEpsilon("A mechanism of two stages needs an ε of at least 0.000000002.")
    chosen = Epsilon.from_nano(first).fraction
    return chosen / times, (epsilon.fraction - chosen) / times


_PENALTY = Penalty(Fraction(3), Fraction(2))


_FOR_CELLS, _FOR_SUMS = 0.5, 0.25  # shares of ε that choose buckets; measured in docs/proofs/dawa.md


@final
@dataclass(frozen=True)
class Dawa(TwoStages):
    """DAWA with the noise that its proof needs: ``split`` of ε on the partition, the rest on the counts.

    Without a ``split``: a half for histograms, a quarter for everything else. ``candidates``: buckets of
    "all" lengths or of "powers of two"; without it all up to 128 cells. ``fanout``: of the tree over the
    buckets. All three are public.

    *Guarantee*: ε-private under add/remove; under any other policy, where a move is one record less and one
    more, at twice the noise. *Error*: depends on the data. *Theorem*: docs/proofs/dawa.md. Grids are cut
    along the Hilbert curve.

    >>> bf.mechanisms.Dawa().plan(bf.workloads.AllRanges(64), bf.graphs.AddRemove(64)).name
    'DAWA'
    >>> m = bf.mechanisms.Dawa(split=0.4, candidates="powers of two", fanout=4)
    >>> m.plan(bf.workloads.Histogram(64), bf.graphs.AddRemove(64)).explain()[:38]
    '40% of the budget chooses buckets of e'
    """

    split: float | None = None
    candidates: Literal["all", "powers of two"] | None = None
    fanout: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fanout(self.fanout)
        if self.candidates not in (None, "all", "powers of two"):
            raise InvalidInput(
                f"Candidate buckets have all lengths or powers of two, not {self.candidates!r}.",
                fixes=('candidates="all"', 'candidates="powers of two"'),
            )

    def planned(self, workload: Workload, graph: PolicyGraph) -> DawaPlan:
        split = self.split or (_FOR_CELLS if one_per_cell(workload) else _FOR_SUMS)
        return DawaPlan(workload, graph, split, self._lengths(workload.size), self.fanout)

    def _lengths(self, size: int) -> Candidates:
        if self.candidates is None:
            return Candidates.usual(size)
        if self.candidates == "powers of two":
            return Candidates.powers_of_two(size)
        if size > MOST_FOR_ALL:
            raise TooLarge(
                f"Every interval of {size:,} cells is above the limit of {MOST_FOR_ALL:,} cells.",
                fixes=('use candidates="powers of two"', "ask about fewer or larger bins"),
            )
        return Candidates.all(size)


@final
@dataclass(frozen=True, eq=False)
class DawaPlan(TwoStagePlan):
    """A partition, a tree of counts over its buckets, each bucket spread evenly over its cells."""

    candidates: Candidates
    fanout: int
    name: str = "DAWA"

    def estimate_in_stages(
        self, counts: IntArray, *, first: Fraction, second: Fraction, noise: Noise
    ) -> FloatArray:
        order = row_order(self.workload)
        row = counts if order is None else counts[order]
        buckets = private_partition(row, self.candidates, _PENALTY, first, second, noise)
        asked = coverage(self.workload, order, buckets)
        weights = integer_weights(greedy_scaling(asked, buckets.size, self.fanout))
        measured = noisy_sums(np.add.reduceat(row, buckets), weights, second, noise, self.fanout)
        return expand(buckets, tree_least_squares(measured, weights, self.fanout), order, row.size)

    def explain_stages(self) -> str:
        text = (
            f"{self.split:.0%} of the budget chooses buckets of even cells, the rest measures a tree of "
            "counts over them, weighted for the questions."
        )
        if self.steps == 1:
            return text
        return f"{text} A hidden move is one record less and one more, so all noise is doubled."


_TRANSFORMED_PENALTY = Penalty(Fraction(1), Fraction(2))


@final
@dataclass(frozen=True)
class DawaTransformed(TwoStages):
    """``split`` of ε on the partition, the rest on the counts of the buckets under the projected policy.

    *Guarantee*: ε-Blowfish for every graph: the partition pays twice where a move is one record less and one
    more; the counts are those of a plan that is private under the policy between the (by then public)
    buckets. *Error*: depends on the data. *Theorem*: docs/proofs/dawa_transformed.md.

    >>> questions, policy = bf.workloads.AllRanges(64), bf.graphs.Threshold(64, 1)
    >>> bf.mechanisms.DawaTransformed().plan(questions, policy).name
    'DAWA, transformed'
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
        buckets = private_partition(
            row, Candidates.usual(row.size), _TRANSFORMED_PENALTY, first, second, noise
        )
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
    in_line = workload.intervals() is not None and not workload.one_per_cell
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
    counts = np.empty_like(totals)
    for members in np.split(order, np.cumsum(np.bincount(component))[:-1]):
        counts[members] = nearest(totals[members])
    return counts
