"""PolicyTree: the adaptive tree under a threshold policy, which pays for what a hidden move can change.

Blocks of θ cells: what a threshold policy charges for, edge by edge.

A count that holds both ends of a move, or neither, costs nothing. So counts up to a block's border are cheap,
and budget goes into a block only where there is something in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.budget import NANO, Epsilon
from blowfishdb.core.errors import NotProven
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.noise import Noise
from blowfishdb.core.sensitivity import check_sizes
from blowfishdb.core.workloads import Workload
from blowfishdb.mechanisms.adaptive.forest import Estimates, Measuring, Noisy, downwards, precisions, upwards
from blowfishdb.mechanisms.adaptive.tree import (
    STOP,
    PublicTree,
    check_divisible,
    descend,
    least_root,
    line_levels,
    ordered_shape,
)
from blowfishdb.mechanisms.compiled import compiled
from blowfishdb.mechanisms.plan import DataDependentMechanism, DataDependentPlan

_FANOUT = 16
_WINDOW = 64
_ROUNDING = 1e-9  # of a logarithm that should be whole


@final
@dataclass(frozen=True, eq=False)
class Blocks:
    """A public tree with one root per block, and how a budget is divided between borders and blocks."""

    tree: PublicTree
    first_look: Fraction
    """Which part of ε a first look at every border gets, if there is one; at most one half."""

    single_cells: bool
    """Whether blocks are measured cell by cell, for histograms."""

    @classmethod
    def for_ranges(cls, size: int, block: int) -> Blocks:
        """Trees of fan-out about 16 inside the blocks."""
        levels = max(1, math.ceil(math.log(block, _FANOUT) - _ROUNDING))
        cuts = line_levels(size, block, least_root(block, levels), levels)
        tree = PublicTree(cuts, (1,) * levels, (STOP,) * levels)
        return cls(tree, Fraction(3, 10 * levels), single_cells=False)

    @classmethod
    def for_cells(cls, size: int, block: int) -> Blocks:
        """Single cells inside the blocks, shared out within windows of at most 64."""
        blocks, cells = line_levels(size, block, block, 1)
        if block <= _WINDOW:
            return cls(PublicTree((blocks, cells), (1,), (STOP,)), Fraction(15, 100), single_cells=True)
        begun = (blocks[:-1, None] + np.arange(0, block, _WINDOW)).ravel()
        windows = np.append(begun[begun < size], size).astype(np.int64)
        tree = PublicTree((blocks, windows, cells), (0, 1), (STOP, STOP))
        return cls(tree, Fraction(5, 100), single_cells=True)

    @property
    def count(self) -> int:
        """How many blocks there are."""
        return self.tree.cuts[0].size - 1

    def estimate(self, measuring: Measuring, total: int, epsilon: int) -> FloatArray:
        """A private estimate of every cell; ``epsilon`` in nano-ε, ``total`` the public number of records."""
        look = math.floor(epsilon * self.first_look) if self.count > 1 else 0
        borders = _Borders(self.tree.cuts[0], measuring)
        borders.measure(np.full(self.count - 1, look, dtype=np.int64))
        budgets = self._budgets(borders.differences(total), epsilon, look)
        borders.measure(epsilon - look - budgets[:-1] - budgets[1:])
        estimates = upwards(descend(self.tree, budgets, measuring))
        return downwards(estimates, borders.shares(estimates, total), smooth=self.single_cells)

    def _budgets(self, counts: IntArray, epsilon: int, look: int) -> IntArray:
        """What the cells of every block may pay.

        Nothing where little was seen; half of what the first look left, where a neighbouring block pays too;
        half of everything where none does.
        """
        within = (epsilon - look) // 2
        above = 16 * NANO // epsilon if self.single_cells else 6 * self.tree.levels * NANO // within
        active = np.diff(self.tree.cuts[0]) > 1
        if self.count > 1:
            active &= counts > above
        beside = np.zeros_like(active)
        beside[1:] |= active[:-1]
        beside[:-1] |= active[1:]
        return np.where(active, np.where(beside, within, epsilon // 2), 0).astype(np.int64)


@final
class _Borders:
    """What was measured of the counts up to each border between two blocks."""

    def __init__(self, cuts: IntArray, measuring: Measuring) -> None:
        self._inner = cuts[1:-1]
        self._measuring = measuring
        self._weighted = np.zeros(self._inner.size)
        self._precision = np.zeros(self._inner.size)
        self._latest = np.zeros(self._inner.size, dtype=np.int64)

    def measure(self, rates: IntArray) -> None:
        """Ask about every border whose rate is positive."""
        asked = np.flatnonzero(rates > 0)
        if not asked.size:
            return
        stops = self._inner[asked]
        answers = self._measuring.ask(np.zeros_like(stops), stops, rates[asked])
        of_answers = precisions(rates[asked])
        self._weighted[asked] += of_answers * answers
        self._precision[asked] += of_answers
        self._latest[asked] = answers

    def differences(self, total: int) -> IntArray:
        """The noisy count of every block, by the latest answers."""
        return np.diff(self._latest, prepend=0, append=total)

    def shares(self, estimates: Estimates, total: int) -> FloatArray:
        """The count of every block: least squares of borders and blocks, borders in order."""
        blocks = self._inner.size + 1
        answers = np.pad(self._weighted / self._precision, 1)
        trust = 1 / estimates.variances[:blocks]
        values = estimates.values[:blocks]
        return np.diff(chained(answers, np.pad(self._precision, 1), values, trust, float(total)))


@final
@dataclass(frozen=True)
class PolicyTree(DataDependentMechanism):
    """Blocks as long as a hidden move: borders between them first, then trees in the blocks that matter.

    For one ordered attribute whose hidden moves are at most θ cells long, 1 < θ, or any two values; the
    number of records public. A histogram is measured in single cells, everything else in trees.

    *Guarantee*: ε-Blowfish; a move into the next block pays exactly ε on every transcript, one inside a block
    at most that. *Error*: depends on the data, hence no (α, β); ranges of real histograms about half that of
    the best mechanism that does not look. *Theorem*: docs/proofs/policy_tree.md.

    >>> bf.mechanisms.PolicyTree().plan(bf.workloads.AllRanges(64), bf.graphs.Threshold(64, 4)).name
    'Policy tree'
    """

    def plan(self, workload: Workload, graph: PolicyGraph) -> PolicyTreePlan:
        """How the tree would answer ``workload`` under ``graph``; NotProven if no proof covers it."""
        check_sizes(workload, graph)
        if graph.absent:
            raise NotProven(
                "The policy tree needs a public number of records; this policy hides who is counted.",
                fixes=("use AdaptiveTree() where records come and go", "use Hierarchical() or Laplace()"),
            )
        if sum(n > 1 for n in ordered_shape(workload, graph)) > 1:
            raise NotProven(
                "The policy tree is for one ordered attribute.", fixes=("use AdaptiveTree() for two",)
            )
        reach = graph.span
        if reach is None:
            raise NotProven(
                "The policy tree is proven where hidden pairs of values are at most a known distance apart.",
                fixes=("use AdaptiveTree(), which is proven wherever the number of records is public",),
            )
        if reach <= 1 and graph.size > 2:
            raise NotProven(
                "Where only neighbouring values are hidden, the policy tree has nothing to gain.",
                fixes=("use Ordered(), which measures every prefix at full ε",),
            )
        block = workload.size if reach >= workload.size - 1 else max(reach, 1)
        return PolicyTreePlan(workload, graph, block)


@final
@dataclass(frozen=True, eq=False)
class PolicyTreePlan(DataDependentPlan):
    """Blocks of ``block`` cells."""

    workload: Workload
    graph: PolicyGraph
    block: int
    name: str = "Policy tree"

    @cached_property
    def blocks(self) -> Blocks:
        """The public trees, one per block."""
        make = Blocks.for_cells if self.workload.one_per_cell else Blocks.for_ranges
        return make(self.workload.size, self.block)

    def estimate(self, counts: IntArray, *, epsilon: Epsilon, noise: Noise) -> FloatArray:
        return self.estimate_through(Noisy(counts, noise), int(counts.sum()), epsilon=epsilon)

    def estimate_through(self, measuring: Measuring, total: int, *, epsilon: Epsilon) -> FloatArray:
        """The same, with the data behind ``measuring`` and the public number of records."""
        return self.blocks.estimate(measuring, total, check_divisible(epsilon, "a policy tree"))

    def explain(self) -> str:
        inside = "cells" if self.workload.one_per_cell else "an adaptive tree"
        if self.blocks.count == 1:
            return (
                f"Any move is hidden, so {inside} over the whole line, with ε/2 for every cell: a move "
                "changes two. The number of records is public."
            )
        return (
            f"Counts up to every border between blocks of {self.block:,} cells, then {inside} in the blocks "
            "where there is something to see. A hidden move passes at most one border: whatever the data, "
            "moving into the next block costs exactly ε, moving inside a block at most ε."
        )


@compiled()
def chained(answers, precision, sums, trust, total):  # type: ignore[no-untyped-def]
    """Places p_0 = 0 ≤ … ≤ p_b = total that minimise Σ precision·(p − answers)² + Σ trust·(Δp − sums)².

    A tridiagonal system; blocks between which places would decrease are pooled, and it is solved again.
    """
    blocks = sums.size
    pool = np.arange(blocks + 1)
    while True:
        last = pool[blocks]
        weight, right = np.zeros(last + 1), np.zeros(last + 1)
        link, step = np.zeros(last + 1), np.zeros(last + 1)  # between a pool and the one before it
        for j in range(1, blocks):
            weight[pool[j]] += precision[j]
            right[pool[j]] += precision[j] * answers[j]
        for j in range(blocks):
            if pool[j + 1] != pool[j]:
                link[pool[j + 1]] = trust[j]
                step[pool[j + 1]] = sums[j]
        places = np.zeros(last + 1)
        places[last] = total
        pivot = np.zeros(last + 1)
        for g in range(1, last):
            pivot[g] = weight[g] + link[g] + link[g + 1]
            right[g] += link[g] * step[g] - link[g + 1] * step[g + 1]
            if g + 1 == last:
                right[g] += link[g + 1] * total
            if g > 1:
                factor = link[g] / pivot[g - 1]
                pivot[g] -= factor * link[g]
                right[g] += factor * right[g - 1]
        for g in range(last - 1, 0, -1):
            after = link[g + 1] * places[g + 1] if g + 1 < last else 0.0
            places[g] = (right[g] + after) / pivot[g]
        renamed = np.zeros(last + 1, np.int64)
        for g in range(1, last + 1):
            renamed[g] = renamed[g - 1] + (places[g] >= places[g - 1])
        if renamed[last] == last:
            return places[pool]
        for j in range(blocks + 1):
            pool[j] = renamed[pool[j]]
