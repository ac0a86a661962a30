"""Trees whose shape does not depend on the data: HB, quadtrees, and trees weighted for the questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from benchmarks.baselines.asking import Asking, divided
from benchmarks.baselines.nested import Level, boxes, least_squares
from benchmarks.baselines.plan import Baseline, Problem
from blowfishdb.core.arrays import FloatArray
from blowfishdb.core.errors import InvalidEpsilon, InvalidWorkload
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.workloads import Workload
from blowfishdb.mechanisms.dawa.measuring import (
    cost,
    coverage,
    greedy_scaling,
    integer_weights,
    tree_least_squares,
)
from blowfishdb.mechanisms.dawa.partition import row_order
from blowfishdb.mechanisms.hierarchical import Hierarchical, height_for
from blowfishdb.mechanisms.plan import Mechanism, Plan


def hb_fanout(length: int) -> int:
    """The b of least (b − 1)·h³ − 2(b + 1)·h²/3 with h = ⌈log_b length⌉: the average variance of a range."""

    def variance(fanout: int) -> float:
        height = height_for(length, fanout)
        return float((fanout - 1) * height**3 - 2 * (fanout + 1) * height**2 / 3)

    return min(range(2, max(3, length + 1)), key=variance)


@final
@dataclass(frozen=True)
class HB(Mechanism):
    """A tree of the fan-out that suits ranges (Qardaji, Yang and Li 2013), on one ordered attribute.

    Private: as every hierarchy, docs/proofs/hierarchical.md.
    """

    def plan(self, workload: Workload, graph: PolicyGraph) -> Plan:
        return Hierarchical(fanout=hb_fanout(workload.size)).plan(workload, graph)


@final
@dataclass(frozen=True)
class HBGrid(Baseline):
    """HB on two attributes: boxes of b × b children, all levels with the same noise, then least squares.

    The whole is not measured: its parts say it. Private: a record is in one box of every level, and the
    levels share the budget.
    """

    title: ClassVar[str] = "HB on a grid"
    axes: ClassVar[tuple[int, ...]] = (2,)

    def reconstruct(self, problem: Problem, asking: Asking, budget: int) -> FloatArray:
        length = max(problem.shape)
        fanout = hb_fanout(length)
        height = height_for(length, fanout)
        return measured_boxes(problem, asking, budget, fanout, [0.0] + [1.0] * height)

    def describe(self) -> str:
        return "Counts of boxes within boxes, every level with the same noise, combined by least squares"


@final
@dataclass(frozen=True)
class QuadTree(Baseline):
    """Halves of every axis, more budget on finer levels, then least squares (Cormode et al. 2012).

    Level i from the top gets a share proportional to 2^{i/3}. Private: a record is in one box of every level,
    and the levels share the budget.
    """

    height: int = 10
    title: ClassVar[str] = "Quadtree"
    axes: ClassVar[tuple[int, ...]] = (2,)

    def __post_init__(self) -> None:
        if self.height < 1:
            raise InvalidWorkload("A quadtree needs at least one level below its root.")

    def reconstruct(self, problem: Problem, asking: Asking, budget: int) -> FloatArray:
        height = min(self.height, height_for(max(problem.shape), 2))
        return measured_boxes(problem, asking, budget, 2, geometric(height + 1))

    def describe(self) -> str:
        return "Counts of a quadtree, finer levels with more of the budget, combined by least squares"


def geometric(levels: int) -> list[float]:
    """Shares that grow by ∛2 a level, from the root to the leaves: best for the sum of a range's nodes."""
    return [2 ** (level / 3) for level in range(levels)]


def measured_boxes(
    problem: Problem, asking: Asking, budget: int, fanout: int, shares: Sequence[float]
) -> FloatArray:
    """Boxes of fanout^level parts per axis, level by level, those with a share of the budget measured.

    Where the number of records is public, the root is not.
    """
    if problem.total is not None:
        shares = [0.0, *shares[1:]]
    measured = [depth for depth, share in enumerate(shares) if share > 0]
    rates = dict(zip(measured, divided(budget, [shares[depth] for depth in measured]), strict=True))
    labels = [boxes(problem.shape, fanout**depth) for depth in range(len(shares))]
    levels = [
        Level.asked(asking, part, rates[depth]) if depth in rates else Level.unasked(part)
        for depth, part in enumerate(labels)
    ]
    return least_squares(levels, problem.total)


@final
@dataclass(frozen=True)
class GreedyH(Baseline):
    """DAWA's second stage alone, on the cells: a binary tree weighted for the questions ([D14] §4.4).

    Private: the weights are public, and a record pays at most their largest sum from a cell to the root.
    """

    title: ClassVar[str] = "Greedy H"
    axes: ClassVar[tuple[int, ...]] = tuple(range(1, 33))

    def reconstruct(self, problem: Problem, asking: Asking, budget: int) -> FloatArray:
        size = problem.size
        order = row_order(problem.workload)
        cells = np.arange(size, dtype=np.int64)
        weights = integer_weights(greedy_scaling(coverage(problem.workload, order, cells), size))
        most = cost(weights)
        measured = []
        for level, weight in enumerate(weights):
            rates = weight * budget // most
            if level == 0 and rates.min() < 1:
                raise InvalidEpsilon("This ε is too small for the least weight of a cell.")
            labels = np.empty(size, dtype=np.int64)
            labels[cells if order is None else order] = cells >> level
            measured.append(asking.counts(labels, rates).astype(np.float64))
        row = tree_least_squares(measured, weights)
        if order is None:
            return row
        estimate = np.empty(size)
        estimate[order] = row
        return estimate

    def describe(self) -> str:
        return "Counts of a binary tree over the cells, weighted for the questions"
