"""Tensor boxes: weighted boxes of nested sizes, decoded by least squares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray
from blowfishdb.core.budget import AnyEpsilon, positive
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.graphs.grid_moves import GridMoves
from blowfishdb.core.workloads import Workload
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.linear.strategy import UnitScales
from blowfishdb.mechanisms.optimized.boxes_questions import AxisForms, Questions, SeparablePlan
from blowfishdb.mechanisms.optimized.boxes_tree import Chain, Level, Tree, accumulate
from blowfishdb.mechanisms.optimized.boxes_tuning import BoxProblem, Weights

_UNIT = 2**20


class LevelPlan(SeparablePlan):
    """A plan that counts all boxes of some levels of a tree."""

    tree: Tree
    weights: NDArray[Any]

    @cached_property
    def measured(self) -> tuple[Level, ...]:
        """The levels with a positive weight."""
        return tuple(tuple(int(i) for i in level) for level in np.argwhere(self.weights > 0))

    @cached_property
    def _sizes(self) -> list[int]:
        return [math.prod(self.tree.boxes(level)) for level in self.measured]


@final
@dataclass(frozen=True, eq=False)
class TensorBoxes(LevelPlan):
    """Counts of boxes of level A at scale K/(w_A·ε) for every level of positive weight, then least squares.

    *Guarantee*: ε-Blowfish. A move changes two boxes of a level by one each, or none, and none of the levels
    that cover the axes it changes; K = max over the sets of axes that can move together of 2·Σ w_A over the
    levels that do not cover all of them, exact for the whole-number weights, and reached by some edge.
    *Error*: 2K²·Σ_I m_I/g_I in the continuous limit, g_I = Σ_{A≤I} w_A²·s_A.
    *Theorem*: docs/proofs/boxes.md, Theorems 1 and 2. The grand total is public and used exactly; where
    records come and go it is measured like every other box, and K is at least Σ w_A (Theorem 5).
    """

    workload: Workload
    graph: PolicyGraph
    questions: Questions
    moves: GridMoves
    tree: Tree
    weights: NDArray[Any]
    name: str = "Tensor boxes"

    @staticmethod
    def tuned(
        workload: Workload,
        graph: PolicyGraph,
        questions: Questions,
        moves: GridMoves,
        chains: Sequence[Chain],
    ) -> TensorBoxes:
        """The best weights found on all levels of ``chains``, rounded to whole numbers."""
        tree = Tree(tuple(chains))
        moments = questions.moments(tree.chains)
        moments = np.where(questions.needed(tree.chains), np.maximum(moments, 1e-15 * moments.max()), 0.0)
        if not graph.absent:
            moments.flat[-1] = 0.0
        changed = changed_levels(tree, moves)
        each = (2,) * len(changed)
        if graph.absent:
            changed, each = (*changed, np.ones(tree.levels, dtype=np.bool_)), (*each, 1)
        solution = BoxProblem(moments, tree.volumes, changed, each=each).solve()
        tree, boxes = _without_idle_levels(tree, solution)
        plan = TensorBoxes(workload, graph, questions, moves, tree, rounded(boxes))
        return plan._with_free_total() if graph.absent and moments.flat[-1] else plan

    def _with_free_total(self) -> TensorBoxes:
        """Where a move costs more than what ⊥ sees, the total takes the difference for nothing."""
        spare = self.cost - int(self.weights.sum())
        weights = self.weights.copy()
        weights.flat[-1] += spare
        return replace(self, weights=weights)

    @cached_property
    def cost(self) -> int:
        """K, in whole numbers."""
        moving = (2 * int(self.weights[kind].sum()) for kind in changed_levels(self.tree, self.moves))
        return max((*moving, int(self.weights.sum()) if self.graph.absent else 0))

    @property
    def refinable(self) -> bool:
        return True

    @cached_property
    def scales(self) -> UnitScales:
        distinct = tuple(Fraction(self.cost, int(self.weights[level])) for level in self.measured)
        return UnitScales(distinct, np.repeat(np.arange(len(distinct), dtype=np.int64), self._sizes))

    @cached_property
    def forms(self) -> Sequence[AxisForms]:
        return self.tree.chains

    @cached_property
    def _precision(self) -> FloatArray:
        """w_A² per level, in units of the largest."""
        weights = self.weights.astype(np.float64)
        return np.asarray((weights / weights.max()) ** 2)

    @cached_property
    def _inverse(self) -> FloatArray:
        """1/g_I; 0 in spaces that are never measured or, like the grand total, public."""
        g = accumulate(self._precision * self.tree.volumes)
        inverse = np.divide(1.0, g, out=np.zeros_like(g), where=g > 0)
        if not self.graph.absent:
            inverse.flat[-1] = 0.0
        return inverse

    def core(self, of_noise: FloatArray) -> FloatArray:
        """Σ_{A≤I} w_A⁴·v_A·s_A/g_I²."""
        noise = level_variances(of_noise, self.measured, self._sizes, self.tree)
        return np.asarray(accumulate(self._precision**2 * noise * self.tree.volumes) * self._inverse**2)

    def measure(self, x: IntArray) -> Numbers:
        padded = self.tree.pad(x)
        return np.concatenate([self.tree.sums(padded, level).ravel() for level in self.measured])

    def certified(self, measured: Numbers, total: int) -> Numbers:
        return measured

    def published(self, measured: Numbers, totals: Numbers | None) -> Numbers:
        return measured  # every count has noise of its own

    def decode(self, measured: Numbers, x: IntArray) -> Numbers:
        if self.graph.absent:
            return self.spread(measured)
        cells = self._estimate(measured) + x.sum() / math.prod(self.tree.padded)
        return self.workload.answer(self.tree.crop(cells))

    def spread(self, noise: Numbers) -> Numbers:
        return self.workload.answer(self.tree.crop(self._estimate(noise)))

    def _estimate(self, measured: Numbers) -> Numbers:
        """G⁻¹AᵀΛy in every space but that of a public total."""
        parts = split_levels(measured, self.measured, self._sizes, self.tree)
        weighted = {level: part * self._precision[level] for level, part in parts.items()}
        return self.tree.filtered(self.tree.expand(weighted), self._inverse)

    def rows(self, *, epsilon: AnyEpsilon) -> tuple[csr_array, list[Fraction]]:
        rows = vstack([self.tree.rows(level) for level in self.measured])
        return csr_array(rows), self.scales.fractions(positive(epsilon))

    def explain(self) -> str:
        sides = (
            "×".join(str(c.widths[a]) for c, a in zip(self.tree.chains, level, strict=True))
            for level in self.measured
        )
        spent = int(self.weights.sum()) if self.graph.absent else self.cost / 2
        shares = (int(self.weights[level]) / spent for level in self.measured)
        listed = ", ".join(f"{side} ({share:.0%})" for side, share in zip(sides, shares, strict=True))
        return (
            f"Counts of boxes of {listed} cells, with their shares of the budget, combined by least squares."
        )


def changed_levels(tree: Tree, moves: GridMoves) -> tuple[BoolArray, ...]:
    """For every largest set of axes that move together: the levels whose boxes such a move can leave."""
    return tuple(changed_by(tree, axes) for axes in moves.together)


def changed_by(tree: Tree, axes: frozenset[int]) -> BoolArray:
    """The levels that do not cover all of ``axes``."""
    index = np.indices(tree.levels)
    covers = [
        np.array([width >= tree.chains[axis].cells for width in tree.chains[axis].widths])[index[axis]]
        for axis in sorted(axes)
    ]
    return np.asarray(~np.all(covers, axis=0))


def rounded(boxes: FloatArray) -> NDArray[Any]:
    """Whole-number weights: rounding moves no weight by more than a millionth of the largest."""
    return np.asarray(np.floor(boxes / boxes.max() * _UNIT), dtype=np.int64)


def split_levels(
    measured: Numbers, levels: Sequence[Level], sizes: Sequence[int], tree: Tree
) -> dict[Level, Numbers]:
    """The boxes of every level, shaped; the last axis of ``measured`` runs over all of them."""
    parts = np.split(measured, np.cumsum(sizes)[:-1], axis=-1)
    return {
        level: part.reshape(*part.shape[:-1], *tree.boxes(level))
        for level, part in zip(levels, parts, strict=True)
    }


def level_variances(
    of_noise: FloatArray, levels: Sequence[Level], sizes: Sequence[int], tree: Tree
) -> FloatArray:
    """The variance of a box of every level; all boxes of a level have the same."""
    tensor = np.zeros(tree.levels)
    for level, first in zip(levels, np.cumsum((0, *sizes[:-1])), strict=True):
        tensor[level] = of_noise[first]
    return tensor


def _without_idle_levels(tree: Tree, solution: Weights) -> tuple[Tree, FloatArray]:
    """Levels on which nothing is measured only slow decoding down; the coarsest stays, it holds the total."""
    boxes = solution.boxes[0]
    chains = []
    for axis, chain in enumerate(tree.chains):
        others = tuple(a for a in range(boxes.ndim) if a != axis)
        used = (boxes > 0).any(axis=others)
        used[-1] = True
        if chain.levels > 1:
            used[0] = True
        levels = np.flatnonzero(used)
        chains.append(chain.keep(tuple(int(at) for at in levels)))
        boxes = np.take(boxes, levels, axis=axis)
    return Tree(tuple(chains)), boxes
