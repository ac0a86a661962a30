"""What the baselines have in common: which policies they serve, at what cost, and how they are run."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, final

import numpy as np

from benchmarks.baselines.asking import Asking, Noisy
from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import NotProven
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.noise import Noise
from blowfishdb.core.sensitivity import check_sizes
from blowfishdb.core.workloads import Workload
from blowfishdb.mechanisms.adaptive.tree import check_divisible, ordered_shape
from blowfishdb.mechanisms.dawa import steps
from blowfishdb.mechanisms.plan import DataDependentMechanism, DataDependentPlan


@final
@dataclass(frozen=True, eq=False)
class Problem:
    """All that a baseline is told besides what it asks: public things only."""

    workload: Workload
    shape: tuple[int, ...]
    """The number of cells along each axis, axes of one cell left out."""
    total: int | None
    """The number of records, where the policy makes it public."""

    @property
    def size(self) -> int:
        return self.workload.size


class Baseline(DataDependentMechanism):
    """A published algorithm, private where single records come and go.

    Elsewhere a neighbouring step is one record less and one more, so every cell pays ε/2 and the step ε.
    """

    title: ClassVar[str]
    axes: ClassVar[tuple[int, ...]] = (1, 2)
    """How many ordered attributes it can take."""

    @abstractmethod
    def reconstruct(self, problem: Problem, asking: Asking, budget: int) -> FloatArray:
        """Every cell, estimated from questions that cost no cell more than ``budget`` nano-ε."""

    @abstractmethod
    def describe(self) -> str:
        """What it does, as one sentence without its full stop."""

    def check(self, workload: Workload) -> None:
        """NotProven if the argument for privacy does not cover the questions."""

    def plan(self, workload: Workload, graph: PolicyGraph) -> BaselinePlan:
        check_sizes(workload, graph)
        self.check(workload)
        shape = tuple(length for length in ordered_shape(workload, graph) if length > 1) or (1,)
        if len(shape) not in self.axes:
            count = " or ".join(str(axis) for axis in self.axes)
            raise NotProven(
                f"{self.title} is for {count} ordered attribute{'s' if count != '1' else ''}, and the "
                f"question has {len(shape)}.",
                fixes=("use AdaptiveTree() or Best()",),
            )
        return BaselinePlan(workload, graph, self, shape)


@final
@dataclass(frozen=True, eq=False)
class BaselinePlan(DataDependentPlan):
    """One baseline, one workload, one policy."""

    workload: Workload
    graph: PolicyGraph
    baseline: Baseline
    shape: tuple[int, ...]

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.baseline.title

    @cached_property
    def moves_cost(self) -> int:
        """How many records come or go along an edge: what a cell pays is ε divided by this."""
        return steps(self.graph)

    def estimate(self, counts: IntArray, *, epsilon: Epsilon, noise: Noise) -> FloatArray:
        if not self.graph.edge_count:
            return counts.astype(np.float64)
        total = None if self.graph.absent else int(counts.sum())
        return self.estimate_through(Noisy(counts, noise), total, epsilon=epsilon)

    def estimate_through(self, asking: Asking, total: int | None, *, epsilon: Epsilon) -> FloatArray:
        """The same, with the data behind ``asking`` and the public total."""
        budget = check_divisible(epsilon, self.name) // self.moves_cost
        problem = Problem(self.workload, self.shape, total)
        return self.baseline.reconstruct(problem, asking, budget)

    def explain(self) -> str:
        if not self.graph.edge_count:
            return "The policy hides nothing: every answer is exact."
        text = f"{self.baseline.describe()}; every cell pays at most "
        if self.moves_cost == 1:
            return f"{text}ε, whatever the data."
        public = "" if self.graph.absent else " The total is public and used as it is."
        return f"{text}ε/2, whatever the data: a hidden move is one record less and one more.{public}"
