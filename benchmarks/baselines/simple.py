"""Identity and Uniform: the two extremes, all cells or only the total."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from benchmarks.baselines.asking import Asking
from benchmarks.baselines.plan import Baseline, Problem
from blowfishdb.core.arrays import FloatArray
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.workloads import Workload
from blowfishdb.mechanisms.laplace import Laplace
from blowfishdb.mechanisms.plan import Mechanism, Plan


@final
@dataclass(frozen=True)
class Identity(Mechanism):
    """Noise on every cell (Dwork et al. 2006). Private: a record is counted once."""

    def plan(self, workload: Workload, graph: PolicyGraph) -> Plan:
        return Laplace(on="cells").plan(workload, graph)


@final
@dataclass(frozen=True)
class Uniform(Baseline):
    """The total, spread evenly over all cells. Private: a record is counted once."""

    title: ClassVar[str] = "Uniform"
    axes: ClassVar[tuple[int, ...]] = tuple(range(1, 33))

    def reconstruct(self, problem: Problem, asking: Asking, budget: int) -> FloatArray:
        total = problem.total
        if total is None:
            everything = np.zeros(problem.size, dtype=np.int64)
            total = int(asking.counts(everything, np.array([budget]))[0])
        return np.full(problem.size, total / problem.size)

    def describe(self) -> str:
        return "The total, spread evenly over all cells"
