"""Lattices: unit steps on a grid of cells, and noise that flows along them.

x̃ = x + P_H·η adds η_e to one end of every step e and takes it from the other: totals are kept. A record that
moves along a path of steps is undone by shifting the noise on the path by one, so a step of weight ω_e costs
ω_e (docs/proofs/edge_noise.md).

Edge noise on the unit steps of a grid, with a weight per direction.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, final

import numpy as np
from scipy.sparse import csr_array, eye_array

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.budget import AnyEpsilon, positive
from blowfishdb.core.errors import NotProven
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.graphs.grid_moves import GridMoves, Move
from blowfishdb.core.workloads import Workload
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.linear.strategy import UnitScales
from blowfishdb.mechanisms.optimized.boxes_questions import AxisForms, Questions, SeparablePlan
from blowfishdb.mechanisms.plan import Certificate, shown

Box = tuple[slice, ...]
Index = tuple[Any, ...]


@final
@dataclass(frozen=True)
class StepForms(AxisForms):
    """Σq²; Σ (q_j − q_{j+1})²; a = Σ of q² over both ends of every step; 2o = 2·Σ q_j q_{j+1}.

    The second is a − 2o, kept apart because it must be exactly zero for a constant question.
    """

    def of_rows(self, rows: FloatArray) -> FloatArray:
        squares = rows**2
        ends = squares[:, :-1].sum(axis=1) + squares[:, 1:].sum(axis=1)
        along = 2 * (rows[:, :-1] * rows[:, 1:]).sum(axis=1)
        return np.column_stack((squares.sum(axis=1), (np.diff(rows, axis=1) ** 2).sum(axis=1), ends, along))

    def of_gram(self, gram: FloatArray) -> FloatArray:
        diagonal = np.diagonal(gram)
        ends = diagonal[:-1].sum() + diagonal[1:].sum()
        along = 2 * np.diagonal(gram, 1).sum()
        return np.array([diagonal.sum(), ends - along, ends, along])


@final
@dataclass(frozen=True)
class Lattice:
    """The steps of a grid: along one axis at a time, or, with ``king``, along several at once.

    Steps are grouped by direction, one of each opposite pair. ``reflected`` (two axes, king) doubles the
    steps along the border, where a diagonal step folds back: the Laplacian is then diagonal in the DCT-II
    basis.
    """

    shape: tuple[int, ...]
    king: bool = False
    reflected: bool = False

    @cached_property
    def directions(self) -> tuple[Move, ...]:
        """One per group of steps; the first axis that moves goes upwards."""
        every = itertools.product((-1, 0, 1), repeat=len(self.shape))
        zero = (0,) * len(self.shape)
        return tuple(
            step
            for step in every
            if step > zero and (self.king or sum(map(abs, step)) == 1) and self._steps(step)
        )

    def _steps(self, direction: Move) -> int:
        return math.prod(n - abs(step) for n, step in zip(self.shape, direction, strict=True))

    @cached_property
    def groups(self) -> tuple[tuple[Box, Box], ...]:
        """The boxes of cells that the steps of each group leave and reach."""
        moves = ([_sides(s, n) for s, n in zip(step, self.shape, strict=True)] for step in self.directions)
        groups = [(tuple(side[0] for side in sides), tuple(side[1] for side in sides)) for sides in moves]
        return (*groups, *self._border()) if self.reflected else tuple(groups)

    def _border(self) -> Iterator[tuple[Box, Box]]:
        """The first and last line along each axis, once more."""
        for axis, cells in enumerate(self.shape):
            across = self.shape[1 - axis]
            if cells < 2:
                continue
            for line in (slice(0, 1), slice(across - 1, across)):
                ends = _sides(1, cells)
                yield tuple((side, line) if axis == 0 else (line, side) for side in ends)  # type: ignore[misc]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of steps of every group."""
        lengths = (
            [len(range(*side.indices(n))) for side, n in zip(here, self.shape, strict=True)]
            for here, _ in self.groups
        )
        return tuple(math.prod(sides) for sides in lengths)

    def spread(self, noise: Numbers) -> Numbers:
        """P_H·η, exact on whole numbers; the last axis runs over steps."""
        batch = noise.shape[:-1]
        cells = np.zeros((*batch, *self.shape), dtype=noise.dtype)
        for (here, there), flow in zip(self.groups, self._split(noise), strict=True):
            ends: tuple[Index, Index] = (..., *here), (..., *there)
            shaped = flow.reshape(cells[ends[0]].shape)
            cells[ends[1]] += shaped
            cells[ends[0]] -= shaped
        return cells.reshape(*batch, -1)

    def _split(self, noise: Numbers) -> list[Numbers]:
        return np.split(noise, np.cumsum(self.sizes)[:-1], axis=-1)

    def flow(self, x: IntArray) -> IntArray:
        """Some f with P_H·f = x − n·e₀: carries all records to the first cell, axis by axis."""
        flows = [np.zeros(size, dtype=np.int64) for size in self.sizes]
        left = x.reshape(self.shape)
        for axis in reversed(range(len(self.shape))):
            behind = np.flip(np.cumsum(np.flip(left, axis), axis=axis), axis)
            before, after = (slice(None),) * axis, (0,) * (len(self.shape) - axis - 1)
            if self.shape[axis] > 1:
                step = tuple(int(i == axis) for i in range(len(self.shape)))
                box = tuple(n - s for n, s in zip(self.shape, step, strict=True))
                target: Index = (*before, slice(None), *after)
                flows[self.directions.index(step)].reshape(box)[target] = np.delete(behind, 0, axis)
            left = np.take(behind, 0, axis)
        return np.concatenate(flows) if flows else np.zeros(0, dtype=np.int64)

    def path(self, u: Move, v: Move) -> IntArray:
        """The shift of the noise that moves a record from v to u: diagonals first, then straight steps."""
        shift = np.zeros(sum(self.sizes), dtype=np.int64)
        starts = dict(zip(self.directions, np.cumsum((0, *self.sizes)), strict=False))
        here = list(v)
        while here != list(u):
            gaps = [b - a for a, b in zip(here, u, strict=True)]
            step = [int(np.sign(gap)) for gap in gaps]
            if not self.king:
                moving = next(axis for axis, gap in enumerate(gaps) if gap)
                step = [s if axis == moving else 0 for axis, s in enumerate(step)]
            there = [a + s for a, s in zip(here, step, strict=True)]
            forward = tuple(step) > (0,) * len(step)
            direction = tuple(step) if forward else tuple(-s for s in step)
            origin = here if forward else there
            box = tuple(n - abs(s) for n, s in zip(self.shape, direction, strict=True))
            at = [a + min(0, s) for a, s in zip(origin, direction, strict=True)]
            shift[starts[direction] + np.ravel_multi_index(at, box)] += 1 if forward else -1
            here = there
        return shift

    def incidence(self) -> csr_array:
        """P_H, written out."""
        cells = np.arange(math.prod(self.shape)).reshape(self.shape)
        here = np.concatenate([cells[box].ravel() for box, _ in self.groups])
        there = np.concatenate([cells[box].ravel() for _, box in self.groups])
        steps = np.arange(here.size)
        signs = np.repeat(np.array([1, -1], dtype=np.int64), here.size)
        places = (np.concatenate((there, here)), np.concatenate((steps, steps)))
        return csr_array((signs, places), shape=(cells.size, here.size))

    def core(self, variances: FloatArray) -> FloatArray:
        """Σ over steps of v·(q_u − q_v)² as a tensor over :class:`StepForms`, v given per direction.

        The steps of all directions along the axes T sum to Π_T a − Π_T 2o, times Σq² along the other axes;
        written as Σ_t (Π before t of 2o)·(a − 2o)_t·(Π after t of a). T has 2^{|T|−1} directions.
        """
        tensor = np.zeros((4,) * len(self.shape))
        for step, variance in zip(self.directions, variances, strict=True):
            moving = [axis for axis, s in enumerate(step) if s]
            for changed in moving:
                at = [(3 if axis < changed else 2) if axis in moving else 0 for axis in range(len(step))]
                at[changed] = 1
                tensor[tuple(at)] += variance / 2 ** (len(moving) - 1)
        return tensor

    def eigenvalues(self) -> FloatArray:
        """Of the Laplacian P_H·P_Hᵀ in the DCT-II basis; with king only if reflected."""
        cosines = [np.cos(np.pi * np.arange(n) / n) for n in self.shape]
        waves = np.meshgrid(*cosines, indexing="ij")
        straight = sum((2 - 2 * wave for wave in waves), start=np.zeros(self.shape))
        return straight + (4 - 4 * waves[0] * waves[1] if self.king else 0.0)


def _sides(step: int, cells: int) -> tuple[slice, slice]:
    """The cells along one axis that a step leaves and reaches."""
    return slice(max(0, -step), cells - max(0, step)), slice(max(0, step), cells - max(0, -step))


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
