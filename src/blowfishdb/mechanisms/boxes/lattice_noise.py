"""Edge noise on the unit steps of a grid, with a weight per direction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np
from scipy.sparse import csr_array, eye_array

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.budget import AnyEpsilon, positive
from blowfishdb.core.errors import NotProven
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.grid_moves import GridMoves, Move
from blowfishdb.core.workloads import Workload
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.boxes.lattice import Lattice, StepForms
from blowfishdb.mechanisms.boxes.questions import AxisForms, Questions
from blowfishdb.mechanisms.boxes.separable import SeparablePlan
from blowfishdb.mechanisms.certificate import Certificate
from blowfishdb.mechanisms.plan import shown
from blowfishdb.mechanisms.scales import UnitScales

_UNIT = 2**20


@final
@dataclass(frozen=True, eq=False)
class LatticeNoise(SeparablePlan):
    """x̃ = x + P_H·η on the steps H of a grid, η of scale K/(ω·ε) on a step of weight ω; answers W·x̃.

    *Guarantee*: ε-Blowfish. A hidden move by δ is undone by shifting the noise along a path of length
    Σ ω_i|δ_i| (grid) or ω·max|δ_i| (king), and K is the exact maximum of that length over all hidden moves.
    *Error*: 2K²·Σ over steps of (q_u − q_v)²/ω² per question q, twice the weighted border of a rectangle.
    *Theorem*: docs/proofs/edge_noise.md, Theorem 2. Totals are kept, so they are exact.
    """

    workload: Workload
    graph: PolicyGraph
    questions: Questions
    moves: GridMoves
    lattice: Lattice
    weights: tuple[int, ...]
    name: str = "Edge noise on a grid"

    @staticmethod
    def grid(workload: Workload, graph: PolicyGraph, questions: Questions, moves: GridMoves) -> LatticeNoise:
        """Steps along one axis at a time, the weights of the axes chosen for the least error."""
        plan = LatticeNoise(
            workload, graph, questions, moves, Lattice(moves.shape), (1,) * sum(n > 1 for n in moves.shape)
        )
        lengths = [tuple(move[axis] for axis in plan.axes) for move in moves.extremes]
        weights = split(lengths, [plan.axis_error(axis) for axis in plan.axes])
        return LatticeNoise(workload, graph, questions, moves, plan.lattice, weights)

    @staticmethod
    def kings(workload: Workload, graph: PolicyGraph, questions: Questions, moves: GridMoves) -> LatticeNoise:
        """Steps along any axes at once, all alike: the length of a move is its largest coordinate."""
        lattice = Lattice(moves.shape, king=True)
        weights = (1,) * len(lattice.directions)
        name = "Edge noise on a grid with diagonals"
        return LatticeNoise(workload, graph, questions, moves, lattice, weights, name)

    @property
    def axes(self) -> tuple[int, ...]:
        """The axis of every direction of a grid without diagonals."""
        return tuple(step.index(1) for step in self.lattice.directions)

    def axis_error(self, axis: int) -> float:
        """Σ over the steps of one axis of (q_u − q_v)², over all questions."""
        alone = np.array([float(a == axis) for a in self.axes])
        return float(np.sum(self._moments * self.lattice.core(alone)))

    @cached_property
    def length(self) -> int:
        """K, the exact length of the longest hidden move."""
        return int(self.moves.farthest(self._length))

    def _length(self, move: Move) -> int:
        if self.lattice.king:
            return max(move) * self.weights[0]
        return sum(weight * move[axis] for weight, axis in zip(self.weights, self.axes, strict=True))

    @cached_property
    def scales(self) -> UnitScales:
        groups = np.arange(len(self.weights), dtype=np.int64)
        distinct = tuple(Fraction(self.length, weight) for weight in self.weights)
        return UnitScales(distinct, np.repeat(groups, self.lattice.sizes))

    @cached_property
    def forms(self) -> Sequence[AxisForms]:
        return (StepForms(),) * len(self.lattice.shape)

    def core(self, of_noise: FloatArray) -> FloatArray:
        firsts = np.cumsum((0, *self.lattice.sizes[:-1]))
        return self.lattice.core(of_noise[firsts] if of_noise.size else np.zeros(0))

    def measure(self, x: IntArray) -> Numbers:
        """A flow that carries the records to where they are. It is not private; P_H times it is."""
        return self.lattice.flow(x)

    def certified(self, measured: Numbers, total: int) -> Numbers:
        cells = self.lattice.spread(measured)
        cells[..., 0] += total
        return cells

    def decode(self, measured: Numbers, x: IntArray) -> Numbers:
        return self.workload.answer(self.certified(measured, int(x.sum())))

    def spread(self, noise: Numbers) -> Numbers:
        return self.workload.answer(self.lattice.spread(noise))

    def rows(self, *, epsilon: AnyEpsilon) -> tuple[csr_array, list[Fraction]]:
        raise not_rows()

    def certificate(self, *, epsilon: AnyEpsilon) -> Certificate:
        shape = self.lattice.shape

        def witness(u: int, v: int) -> IntArray:
            ends = (tuple(int(i) for i in np.unravel_index(w, shape)) for w in (u, v))
            return self.lattice.path(*ends)

        cells = csr_array(eye_array(math.prod(shape), dtype=np.int64))
        return Certificate(cells, self.lattice.incidence(), self.scales.fractions(positive(epsilon)), witness)

    def explain(self) -> str:
        steps = "neighbouring cells, diagonals included" if self.lattice.king else "neighbouring cells"
        along = ", ".join(dict.fromkeys(shown(scale) for scale in self.scales.distinct))
        return (
            f"Noise flows between {steps}, at scale {along} over ε: what one cell gains another loses, so "
            "totals are exact and an answer errs only along its border."
        )


def not_rows() -> NotProven:
    """Why edge noise has no rows."""
    return NotProven(
        "Edge noise is shared between cells, so it is not independent noise on rows.",
        fixes=("check certificate(epsilon=…) instead, which covers the form A·x + N·η",),
    )


def split(lengths: Sequence[tuple[int, ...]], errors: Sequence[float]) -> tuple[int, ...]:
    """Whole-number weights of the axes, given how long every extreme move is along each of them.

    If axes move only alone, each gets the inverse of its length. If they move together, min Σ E_i/l_i² with
    Σ L_i·l_i = 1 gives l_i ∝ (E_i/L_i)^⅓. If they share an L1 budget, equal weights are best.
    """
    if len(lengths) == 1:
        pairs = zip(errors, lengths[0], strict=True)
        ideal = np.array([(max(error, 1e-300) / length) ** (1 / 3) for error, length in pairs])
        return tuple(max(1, round(weight * _UNIT / ideal.max())) for weight in ideal)
    if all(sum(map(bool, move)) == 1 for move in lengths):
        longest = [max(along) for along in zip(*lengths, strict=True)]
        common = math.lcm(*longest)
        return tuple(common // length for length in longest)
    return (1,) * len(errors)
