"""Flux: noise that flows along each axis, shared between lines by the intervals of the other axes.

One axis along which records move: small intervals inside blocks, steps between the blocks.

B counts the intervals of the levels below the block and the flow between blocks that a change needs; N puts
them together again: N·B·z = z for every z with sum zero, in whole numbers over D = 2⁸·s_block. Blocks of one
cell are the ordered mechanism: only steps.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from typing import Any, final

import numpy as np
from scipy.sparse import csr_array, eye_array, hstack

from blowfishdb.core.arrays import FloatArray, IntArray, ceil_div
from blowfishdb.core.budget import AnyEpsilon, positive
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.graphs.grid_moves import GridMoves, Move
from blowfishdb.core.workloads import Workload
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.linear.strategy import UnitScales
from blowfishdb.mechanisms.optimized.boxes_questions import AxisForms, Questions, SeparablePlan
from blowfishdb.mechanisms.optimized.boxes_tree import (
    SHARES,
    Chain,
    Level,
    Recovery,
    blend,
    interval_sums,
    kron_all,
    shares_of,
)
from blowfishdb.mechanisms.optimized.boxes_tuning import BoxProblem
from blowfishdb.mechanisms.optimized.lattice import Lattice, StepForms, not_rows, split
from blowfishdb.mechanisms.plan import Certificate

_UNIT = 2**16


@final
@dataclass(frozen=True)
class Transport:
    """Whole-number weights of the levels below the block, which is the last level, then of the steps.

    A move by δ > 0 cells costs 2·Σ w_a + ⌈δ/s⌉·w_steps, exactly.
    """

    chain: Chain
    weights: tuple[int, ...]

    @staticmethod
    def ordered(cells: int) -> Transport:
        """Steps between cells."""
        return Transport(Chain(cells, (1,)), (1,))

    @staticmethod
    def tuned(chain: Chain, moments: FloatArray, reach: int) -> Transport:
        """The best weights for moves up to ``reach``, given the moments of the forms; at least two blocks.

        Inside and between blocks the error is A/S² for the part S of the budget: parts go as A^⅓.
        """
        crossings = min(ceil_div(reach, chain.widths[-1]), chain.padded // chain.widths[-1] - 1)
        between = 2 * float(moments[0]) * crossings**2
        every = np.ones(chain.levels - 1, dtype=np.bool_)
        volumes = np.array(chain.widths[:-1], dtype=np.float64)
        solution = BoxProblem(np.maximum(moments[1:], 1e-15 * moments.max()), volumes, (every,)).solve()
        inside, boxes = float(solution.errors[0]), solution.boxes[0] / (2 * solution.boxes[0].sum())
        weights = np.append(boxes * np.cbrt(inside), np.cbrt(between) / crossings)
        whole = np.maximum(np.round(weights / max(weights.max(), 1e-300) * _UNIT), 1).astype(np.int64)
        return Transport(chain, tuple(int(w) for w in whole))

    @property
    def groups(self) -> int:
        """The levels below the block, and the steps."""
        return self.chain.levels

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return self.chain.padded // self.chain.widths[-1]

    def size(self, group: int) -> int:
        """The noise variables of one group."""
        return self.blocks - 1 if group == self.groups - 1 else self.chain.padded // self.chain.widths[group]

    @property
    def denominator(self) -> int:
        """D, with D·N whole."""
        return SHARES * self.chain.widths[-1] if self.groups > 1 else 1

    def length(self, steps: int) -> int:
        """What a move costs."""
        crossed = min(ceil_div(steps, self.chain.widths[-1]), self.blocks - 1)
        return 2 * sum(self.weights[:-1]) + crossed * self.weights[-1] if steps else 0

    @cached_property
    def _shares(self) -> IntArray:
        """Levels inform the spaces below the block; the blocks themselves are left to the steps."""
        below = shares_of(self.chain, self.weights[:-1])
        return np.vstack((below, np.zeros((1, below.shape[1]), dtype=np.int64)))

    def gains(self, group: int) -> FloatArray:
        """The variance per unit of noise of one group, over :class:`TransportForms`."""
        if group == self.groups - 1:
            return np.asarray(np.eye(1, self.groups)[0])
        return np.append(0.0, (self._shares[:-1, group] / SHARES) ** 2 / self.chain.widths[group])

    def forward(self, cells: Numbers, group: int, axis: int) -> Numbers:
        """B, for cells that sum to zero along a (negative) axis."""
        more = [(0, 0)] * cells.ndim
        more[axis] = (0, self.chain.padded - self.chain.cells)
        padded = np.pad(cells, more)
        if group < self.groups - 1:
            return interval_sums(padded, axis, self.chain.widths[group])
        blocks = interval_sums(padded, axis, self.chain.widths[-1])
        behind = np.flip(np.cumsum(np.flip(blocks, axis), axis=axis), axis)
        return np.delete(behind, 0, axis)

    def mix(self, parts: Sequence[Numbers], axis: int) -> Numbers:
        """D·N, exact on whole numbers."""
        ends = [(0, 0)] * parts[-1].ndim
        ends[axis] = (1, 1)
        blocks = -np.diff(np.pad(parts[-1], ends), axis=axis)
        if self.groups == 1:
            return blocks
        spread = SHARES * np.repeat(blocks, self.chain.widths[-1], axis=axis)
        cells = np.take(spread, np.arange(self.chain.cells), axis=axis)
        return np.asarray(cells + blend(self.chain, self._shares, parts[:-1], axis))

    def matrix(self, group: int) -> csr_array:
        """The columns of D·N that belong to one group."""
        if self.groups == 1:
            return Lattice((self.chain.cells,)).incidence()
        count = self.size(group)
        blank = [np.zeros((count, self.size(other)), dtype=np.int64) for other in range(self.groups)]
        blank[group] = np.eye(count, dtype=np.int64)
        return csr_array(self.mix(blank, -1).T)

    def change(self, u: int, v: int, group: int) -> IntArray:
        """B(e_u − e_v)."""
        cells = np.zeros(self.chain.cells, dtype=np.int64)
        cells[u] += 1
        cells[v] -= 1
        return np.asarray(self.forward(cells, group, -1), dtype=np.int64)


@final
@dataclass(frozen=True)
class TransportForms(AxisForms):
    """The steps between block averages, the spaces below the block, then the spaces of a recovery."""

    transport: Chain
    recovery: Chain

    @property
    def _starts(self) -> IntArray:
        return np.arange(0, self.transport.cells, self.transport.widths[-1])

    def of_rows(self, rows: FloatArray) -> FloatArray:
        blocks = np.add.reduceat(rows, self._starts, axis=1) / self.transport.widths[-1]
        below = self.transport.of_rows(rows)[:, :-1]
        return np.column_stack((StepForms().of_rows(blocks)[:, 1], below, self.recovery.of_rows(rows)))

    def of_gram(self, gram: FloatArray) -> FloatArray:
        blocks = np.add.reduceat(np.add.reduceat(gram, self._starts, axis=0), self._starts, axis=1)
        between = StepForms().of_gram(blocks / self.transport.widths[-1] ** 2)[1:2]
        return np.concatenate((between, self.transport.of_gram(gram)[:-1], self.recovery.of_gram(gram)))


_LARGEST_DENOMINATOR = 2**30

Group = tuple[int, Level]
"""The axis along which noise flows; per axis the level of its recovery, for that one its group of noise."""


@final
@dataclass(frozen=True, eq=False)
class Flux(SeparablePlan):
    """x̃ = x + Σ_i (R₁ ⊗ … ⊗ N_i ⊗ … ⊗ R_d)·η_i, N_i a transport along axis i, R_j a recovery of axis j.

    *Guarantee*: ε-Blowfish. A move changes one axis after the other; the change of axis i is
    N_i·ζ ⊗ (R_j·A_j e)_j with ζ = B_i(e_u − e_v), because N_i·B_i and R_j·A_j undo each other exactly. It
    costs ω_i·length_i(δ_i)/K, and K is the exact maximum of Σ ω_i·length_i(|δ_i|) over all hidden moves.
    Only x̃ is private, not the flows in it.
    *Error*: Σ_i 2(K/ω_i)²·e_i·Π_{j≠i} t_j, 2e_i the error of transport i and 2t_j that of recovery j.
    *Theorem*: docs/proofs/boxes.md, Theorem 3. The grand total is kept.
    """

    workload: Workload
    graph: PolicyGraph
    questions: Questions
    moves: GridMoves
    transports: tuple[Transport, ...]
    recoveries: tuple[Recovery, ...]
    weights: tuple[int, ...]
    name: str = "Flux"

    @staticmethod
    def tuned(
        workload: Workload,
        graph: PolicyGraph,
        questions: Questions,
        moves: GridMoves,
        chains: Sequence[Chain],
        *,
        blocks: Level | None = None,
    ) -> Flux | None:
        """The best recoveries and transports found, the latter over blocks of these levels of the chains.

        An axis with fewer than two blocks gets steps between cells. None if whole numbers would overflow.
        """
        wanted = zip(chains, blocks or (0,) * len(chains), strict=True)
        levels = [at if 2 * chain.widths[at] <= chain.cells else 0 for chain, at in wanted]
        paths = [chain.keep(tuple(range(at + 1))) for chain, at in zip(chains, levels, strict=True)]
        forms = [TransportForms(path, chain) for path, chain in zip(paths, chains, strict=True)]
        moments = questions.moments(forms)
        recoveries = tuple(
            Recovery.tuned(chain, _seen_from_others(moments, paths, axis)[path.levels :])
            for axis, (path, chain) in enumerate(zip(paths, chains, strict=True))
        )
        transports = tuple(_transport(paths, moments, moves, axis) for axis in range(len(paths)))
        moving = tuple(int(n > 1) for n in moves.shape)
        first = Flux(workload, graph, questions, moves, transports, recoveries, moving)
        if first.denominator > _LARGEST_DENOMINATOR:
            return None
        axes = [axis for axis, moves_ in enumerate(moving) if moves_]
        lengths = [tuple(transports[axis].length(move[axis]) for axis in axes) for move in moves.extremes]
        shares = dict(zip(axes, split(lengths, [first.axis_error(axis) for axis in axes]), strict=True))
        weights = tuple(shares.get(axis, 0) for axis in range(len(chains)))
        return Flux(workload, graph, questions, moves, transports, recoveries, weights)

    # --- the shape of the noise -------------------------------------------------------------------

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Every axis that moves, with every combination of its groups and of the levels of the others."""
        groups = []
        for axis in (axis for axis, weight in enumerate(self.weights) if weight):
            levels = (
                range(self.transports[a].groups if a == axis else recovery.chain.levels)
                for a, recovery in enumerate(self.recoveries)
            )
            groups += [(axis, level) for level in itertools.product(*levels)]
        return tuple(groups)

    def _box(self, group: Group) -> tuple[int, ...]:
        axis, level = group
        return tuple(
            self.transports[a].size(at) if a == axis else recovery.chain.padded // recovery.chain.widths[at]
            for a, (recovery, at) in enumerate(zip(self.recoveries, level, strict=True))
        )

    @cached_property
    def _sizes(self) -> list[int]:
        return [math.prod(self._box(group)) for group in self.groups]

    @cached_property
    def length(self) -> int:
        """K, the exact length of the longest hidden move."""
        return int(self.moves.farthest(self._length))

    def _length(self, move: Move) -> int:
        parts = zip(self.weights, self.transports, move, strict=True)
        return sum(weight * transport.length(steps) for weight, transport, steps in parts)

    @cached_property
    def scales(self) -> UnitScales:
        distinct = tuple(
            Fraction(self.length, self.weights[axis] * self.transports[axis].weights[level[axis]])
            * math.prod(Fraction(r.cost, r.weights[at]) for r, at in self._others(axis, level))
            for axis, level in self.groups
        )
        return UnitScales(distinct, np.repeat(np.arange(len(distinct), dtype=np.int64), self._sizes))

    def _others(self, axis: int, level: Level) -> Iterator[tuple[Recovery, int]]:
        return ((r, at) for a, (r, at) in enumerate(zip(self.recoveries, level, strict=True)) if a != axis)

    @cached_property
    def denominator(self) -> int:
        """D: x̃ is a whole multiple of 1/D."""
        return math.lcm(*(self._denominator(axis) for axis, weight in enumerate(self.weights) if weight))

    def _denominator(self, axis: int) -> int:
        others = (recovery.denominator for a, recovery in enumerate(self.recoveries) if a != axis)
        return self.transports[axis].denominator * math.prod(others)

    # --- errors -----------------------------------------------------------------------------------

    @cached_property
    def forms(self) -> Sequence[AxisForms]:
        pairs = zip(self.transports, self.recoveries, strict=True)
        return tuple(TransportForms(transport.chain, recovery.chain) for transport, recovery in pairs)

    def axis_error(self, axis: int) -> float:
        """e_i·Π t_j over all questions: the error along one axis for ω = K = 1, halved."""
        noise = np.zeros(len(self.scales))
        starts = np.cumsum((0, *self._sizes[:-1]))
        for group, start, size in zip(self.groups, starts, self._sizes, strict=True):
            if group[0] == axis:
                shared = math.prod((r.cost / r.weights[at]) ** 2 for r, at in self._others(*group))
                noise[start : start + size] = shared / self.transports[axis].weights[group[1][axis]] ** 2
        return self.total_variance(noise)

    def core(self, of_noise: FloatArray) -> FloatArray:
        core = np.zeros(
            tuple(t.groups + r.chain.levels for t, r in zip(self.transports, self.recoveries, strict=True))
        )
        for (axis, level), first in zip(self.groups, np.cumsum((0, *self._sizes[:-1])), strict=True):
            parts = [
                np.append(transport.gains(at), np.zeros(recovery.chain.levels))
                if a == axis
                else np.append(np.zeros(transport.groups), recovery.gains()[at])
                for a, (transport, recovery, at) in enumerate(
                    zip(self.transports, self.recoveries, level, strict=True)
                )
            ]
            core += of_noise[first] * reduce(np.multiply.outer, parts)
        return core

    # --- measuring and decoding ---------------------------------------------------------------------

    def measure(self, x: IntArray) -> Numbers:
        """Flows that carry the records to where they are, axis by axis. They are not private; x̃ is."""
        shape = self.moves.shape
        changes: dict[int, Numbers] = {}
        left = x.reshape(shape)
        for axis in reversed(range(len(shape))):
            sums = left.sum(axis=axis)
            first: tuple[Any, ...] = (..., 0)
            change = left.copy()
            change[first] -= sums  # what has to move to bring everything to the first cell of the axis
            rest: tuple[Any, ...] = (..., *(0 for _ in shape[axis + 1 :]))
            changes[axis] = np.zeros(shape, dtype=np.int64)
            changes[axis][rest] = change
            left = sums
        return np.concatenate(
            [self._counts(changes[axis], axis, level).ravel() for axis, level in self.groups]
        )

    def _counts(self, change: Numbers, axis: int, level: Level) -> Numbers:
        for other, (recovery, at) in enumerate(zip(self.recoveries, level, strict=True)):
            place = other - len(level)
            if other == axis:
                change = self.transports[axis].forward(change, at, place)
            else:
                change = recovery.counts(change, at, place)
        return change

    def certified(self, measured: Numbers, total: int) -> Numbers:
        cells = self._mixed(measured)
        cells[..., 0] += self.denominator * total
        return cells

    def decode(self, measured: Numbers, x: IntArray) -> Numbers:
        return self.workload.answer(self.certified(measured, int(x.sum())) / self.denominator)

    def spread(self, noise: Numbers) -> Numbers:
        return self.workload.answer(self._mixed(noise) / self.denominator)

    def _mixed(self, noise: Numbers) -> Numbers:
        """D·Σ_i (R ⊗ … ⊗ N_i ⊗ … ⊗ R)·η_i, exact on whole numbers (modulo 2⁶⁴)."""
        batch = noise.shape[:-1]
        parts = np.split(noise, np.cumsum(self._sizes)[:-1], axis=-1)
        shaped = {g: p.reshape(*batch, *self._box(g)) for g, p in zip(self.groups, parts, strict=True)}
        cells = np.zeros((*batch, *self.moves.shape), dtype=noise.dtype)
        for axis in dict.fromkeys(axis for axis, _ in self.groups):
            cells += self._mixed_along(shaped, axis, ()) * (self.denominator // self._denominator(axis))
        return cells.reshape(*batch, -1)

    def _mixed_along(self, shaped: dict[Group, Numbers], axis: int, fixed: Level) -> Numbers:
        at = len(fixed)
        if at == len(self.recoveries):
            return shaped[axis, fixed]
        place = at - len(self.recoveries)
        count = self.transports[at].groups if at == axis else self.recoveries[at].chain.levels
        parts = [self._mixed_along(shaped, axis, (*fixed, level)) for level in range(count)]
        return (
            self.transports[at].mix(parts, place) if at == axis else self.recoveries[at].recover(parts, place)
        )

    # --- proof ------------------------------------------------------------------------------------

    def rows(self, *, epsilon: AnyEpsilon) -> tuple[csr_array, list[Fraction]]:
        raise not_rows()

    def certificate(self, *, epsilon: AnyEpsilon) -> Certificate:
        shape = self.moves.shape
        columns = [self._columns(group) for group in self.groups]

        def witness(u: int, v: int) -> IntArray:
            here, there = (tuple(int(i) for i in np.unravel_index(w, shape)) for w in (u, v))
            return np.concatenate([self._shift(group, here, there) for group in self.groups])

        released = csr_array(eye_array(math.prod(shape), dtype=np.int64) * self.denominator)
        scales = self.scales.fractions(positive(epsilon))
        return Certificate(released, csr_array(hstack(columns)), scales, witness)

    def _columns(self, group: Group) -> csr_array:
        axis, level = group
        factors = [
            self.transports[a].matrix(at) if a == axis else recovery.matrix(at)
            for a, (recovery, at) in enumerate(zip(self.recoveries, level, strict=True))
        ]
        return csr_array(kron_all(factors) * (self.denominator // self._denominator(axis)))

    def _shift(self, group: Group, u: Move, v: Move) -> IntArray:
        """Axes before ``axis`` are already at u, those after it still at v."""
        axis, level = group
        parts = []
        for a, (recovery, at) in enumerate(zip(self.recoveries, level, strict=True)):
            if a == axis:
                parts.append(self.transports[a].change(u[a], v[a], at))
            else:
                cell = u[a] if a < axis else v[a]
                width = recovery.chain.widths[at]
                parts.append(np.eye(1, recovery.chain.padded // width, cell // width, dtype=np.int64)[0])
        return np.asarray(reduce(np.multiply.outer, parts).ravel(), dtype=np.int64)

    def explain(self) -> str:
        blocks = "×".join(str(transport.chain.widths[-1]) for transport in self.transports)
        sides = "; ".join(", ".join(map(str, recovery.chain.widths)) for recovery in self.recoveries)
        return (
            f"Noise flows along each axis between neighbouring blocks of {blocks} cells, shared by whole "
            f"intervals of the other axes (of {sides} cells): an answer errs only where it cuts a flow."
        )


def _seen_from_others(moments: FloatArray, paths: Sequence[Chain], axis: int) -> FloatArray:
    """The forms of one axis, weighted by the flows along the others, for which it is recovered."""
    total = np.zeros(moments.shape[axis])
    for flowing in (other for other in range(moments.ndim) if other != axis):
        total += _along(moments, paths, axis, flowing)
    return total


def _along(moments: FloatArray, paths: Sequence[Chain], axis: int, flowing: int | None) -> FloatArray:
    """The forms of ``axis``: steps of the axis that flows, recoveries of all others."""
    for other in range(moments.ndim):
        if other != axis:
            start = 0 if other == flowing else paths[other].levels
            stop = paths[other].levels if other == flowing else moments.shape[other]
            moments = np.take(moments, range(start, stop), axis=other).sum(axis=other, keepdims=True)
    return moments.ravel()


def _transport(paths: Sequence[Chain], moments: FloatArray, moves: GridMoves, axis: int) -> Transport:
    reach = max(move[axis] for move in moves.extremes)
    path = paths[axis]
    if path.levels == 1 or not reach:
        return Transport.ordered(path.cells)
    return Transport.tuned(path, _along(moments, paths, axis, None)[: path.levels], reach)
