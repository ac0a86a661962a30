"""What all mechanisms of two stages share: ε₁ on buckets, the rest of ε on their counts."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import InvalidEpsilon, SizeMismatch
from blowfishdb.core.graphs import Cone, PolicyGraph
from blowfishdb.core.noise import Noise
from blowfishdb.core.workloads import Workload
from blowfishdb.mechanisms.data_dependent import DataDependentMechanism, DataDependentPlan


@dataclass(frozen=True)
class TwoStages(DataDependentMechanism):
    """``split`` is the share of ε that chooses buckets, strictly between nothing and everything."""

    split: float

    def __post_init__(self) -> None:
        if not 0 < self.split < 1:
            raise InvalidEpsilon(
                f"The first stage gets a share of ε between 0 and 1, not {self.split}.",
                fixes=("use split=0.25",),
            )

    def plan(self, workload: Workload, graph: PolicyGraph) -> TwoStagePlan:
        """How ``workload`` would be answered under ``graph``; both must be about the same cells."""
        if workload.size != graph.size - graph.absent:
            raise SizeMismatch(
                f"The questions are about {workload.size:,} cells, but the policy is about "
                f"{graph.size - graph.absent:,}."
            )
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
    plain = isinstance(graph, Cone) and graph.absent and graph.base.edge_count == 0
    return 1 if plain else 2


def stages(epsilon: Epsilon, split: float, times: int) -> tuple[Fraction, Fraction]:
    """ε₁ and ε₂ per record that comes or goes; together they spend ``epsilon`` exactly."""
    first = min(max(1, math.floor(epsilon.nano * split)), epsilon.nano - 1)
    if first < 1:
        raise InvalidEpsilon("A mechanism of two stages needs an ε of at least 0.000000002.")
    chosen = Epsilon.from_nano(first).fraction
    return chosen / times, (epsilon.fraction - chosen) / times
