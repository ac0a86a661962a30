"""Flux: noise that flows along each axis, shared between lines by the intervals of the other axes."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from typing import Any, final

import numpy as np
from scipy.sparse import csr_array, eye_array, hstack

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.budget import positive
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.grid_moves import GridMoves, Move
from blowfishdb.core.workloads import Workload
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.boxes.lattice import Lattice
from blowfishdb.mechanisms.boxes.lattice_noise import not_rows, split
from blowfishdb.mechanisms.boxes.questions import AxisForms, Questions
from blowfishdb.mechanisms.boxes.recovery import FluxForms, Recovery
from blowfishdb.mechanisms.boxes.separable import SeparablePlan
from blowfishdb.mechanisms.boxes.tree import Chain, Level, kron_all
from blowfishdb.mechanisms.certificate import Certificate
from blowfishdb.mechanisms.plan import AnyEpsilon
from blowfishdb.mechanisms.scales import UnitScales

_LARGEST_DENOMINATOR = 2**30

Group = tuple[int, Level]
"""The axis along which noise flows, and the level of every axis (0 for that axis itself)."""


@final
@dataclass(frozen=True, eq=False)
class Flux(SeparablePlan):
    """x̃ = x + Σ_i (R₁ ⊗ … ⊗ N_i ⊗ … ⊗ R_d)·η_i, N_i the steps of axis i, R_j a recovery of axis j.

    *Guarantee*: ε-Blowfish. A move changes one axis after the other; the change of axis i is
    N_i·ζ ⊗ (R_j·A_j e)_j with ζ a path of |δ_i| steps, because R_j·A_j = I exactly, so it costs ω_i|δ_i|/K,
    and K is the exact maximum of Σ ω_i|δ_i| over all hidden moves. Only x̃ is private, not the flows in it.
    *Error*: Σ_i 2(K/ω_i)²·e_i·Π_{j≠i} t_j, e_i = Σ (q_j − q_{j+1})² and 2t_j the error of recovery j.
    *Theorem*: docs/proofs/boxes.md, Theorem 3. The grand total is kept.
    """

    workload: Workload
    graph: PolicyGraph
    questions: Questions
    moves: GridMoves
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
    ) -> Flux | None:
        """The best recoveries found and the best split between the axes; None if whole numbers overflow."""
        moments = questions.moments([FluxForms(chain) for chain in chains])
        recoveries = tuple(_recovery(chain, moments, axis) for axis, chain in enumerate(chains))
        axes = [axis for axis, n in enumerate(moves.shape) if n > 1]
        first = Flux(workload, graph, questions, moves, recoveries, tuple(int(n > 1) for n in moves.shape))
        if first.denominator > _LARGEST_DENOMINATOR:
            return None
        split_ = iter(split(moves, [first.axis_error(axis) for axis in axes]))
        weights = tuple(next(split_) if axis in axes else 0 for axis in range(len(chains)))
        return Flux(workload, graph, questions, moves, recoveries, weights)

    # --- the shape of the noise -------------------------------------------------------------------

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Every axis that moves, with every combination of levels of the others."""
        found = []
        for axis in (axis for axis, weight in enumerate(self.weights) if weight):
            levels = (range(1 if a == axis else r.chain.levels) for a, r in enumerate(self.recoveries))
            found += [(axis, level) for level in itertools.product(*levels)]
        return tuple(found)

    def _box(self, group: Group) -> tuple[int, ...]:
        axis, level = group
        return tuple(
            r.chain.cells - 1 if a == axis else r.chain.padded // r.chain.widths[at]
            for a, (r, at) in enumerate(zip(self.recoveries, level, strict=True))
        )

    @cached_property
    def _sizes(self) -> list[int]:
        return [math.prod(self._box(group)) for group in self.groups]

    @cached_property
    def length(self) -> int:
        """K, the exact length of the longest hidden move."""
        return int(self.moves.farthest(lambda move: sum(map(operator.mul, self.weights, move))))

    @cached_property
    def scales(self) -> UnitScales:
        distinct = tuple(
            Fraction(self.length, self.weights[axis])
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
        return math.prod(r.denominator for a, r in enumerate(self.recoveries) if a != axis)

    # --- errors -----------------------------------------------------------------------------------

    @cached_property
    def forms(self) -> Sequence[AxisForms]:
        return tuple(FluxForms(recovery.chain) for recovery in self.recoveries)

    def axis_error(self, axis: int) -> float:
        """e_i·Π t_j over all questions: the error of a unit flow along one axis, halved."""
        noise = np.zeros(len(self.scales))
        starts = np.cumsum((0, *self._sizes[:-1]))
        for group, start, size in zip(self.groups, starts, self._sizes, strict=True):
            if group[0] == axis:
                noise[start : start + size] = math.prod(
                    (r.cost / r.weights[at]) ** 2 for r, at in self._others(*group)
                )
        return self.total_variance(noise)

    def core(self, of_noise: FloatArray) -> FloatArray:
        core = np.zeros(tuple(1 + r.chain.levels for r in self.recoveries))
        for (axis, level), first in zip(self.groups, np.cumsum((0, *self._sizes[:-1])), strict=True):
            parts = [
                np.eye(1, 1 + r.chain.levels)[0] if a == axis else np.append(0.0, r.gains()[at])
                for a, (r, at) in enumerate(zip(self.recoveries, level, strict=True))
            ]
            core += of_noise[first] * reduce(np.multiply.outer, parts)
        return core

    # --- measuring and decoding ---------------------------------------------------------------------

    def measure(self, x: IntArray) -> Numbers:
        """Flows that carry the records to where they are, axis by axis. They are not private; x̃ is."""
        shape = self.moves.shape
        flows: dict[int, Numbers] = {}
        left = x.reshape(shape)
        for axis in reversed(range(len(shape))):
            behind = np.flip(np.cumsum(np.flip(left, axis), axis=axis), axis)
            after: tuple[Any, ...] = (..., *(0 for _ in shape[axis + 1 :]))
            flows[axis] = np.zeros((*shape[:axis], shape[axis] - 1, *shape[axis + 1 :]), dtype=np.int64)
            flows[axis][after] = np.delete(behind, 0, axis)
            left = np.take(behind, 0, axis)
        return np.concatenate([self._counts(flows[axis], axis, level).ravel() for axis, level in self.groups])

    def _counts(self, flow: Numbers, axis: int, level: Level) -> Numbers:
        for other, (recovery, at) in enumerate(zip(self.recoveries, level, strict=True)):
            if other != axis:
                flow = recovery.counts(flow, at, other - len(level))
        return flow

    def decode(self, measured: Numbers, x: IntArray) -> Numbers:
        cells = self._mixed(measured)
        cells[..., 0] += self.denominator * x.sum()
        return self.workload.answer(cells / self.denominator)

    def spread(self, noise: Numbers) -> Numbers:
        return self.workload.answer(self._mixed(noise) / self.denominator)

    def _mixed(self, noise: Numbers) -> Numbers:
        """D·Σ_i (R ⊗ … ⊗ N_i ⊗ … ⊗ R)·η_i, exact on whole numbers (modulo 2⁶⁴)."""
        batch = noise.shape[:-1]
        parts = np.split(noise, np.cumsum(self._sizes)[:-1], axis=-1)
        shaped = {g: p.reshape(*batch, *self._box(g)) for g, p in zip(self.groups, parts, strict=True)}
        cells = np.zeros((*batch, *self.moves.shape), dtype=noise.dtype)
        for axis in dict.fromkeys(axis for axis, _ in self.groups):
            flow = self._recovered(shaped, axis, ()) * (self.denominator // self._denominator(axis))
            place = axis - len(self.recoveries)
            ends = [(0, 0)] * flow.ndim
            ends[place] = (1, 1)
            cells -= np.diff(np.pad(flow, ends), axis=place)
        return cells.reshape(*batch, -1)

    def _recovered(self, shaped: dict[Group, Numbers], axis: int, fixed: Level) -> Numbers:
        at = len(fixed)
        if at == len(self.recoveries):
            return shaped[axis, fixed]
        if at == axis:
            return self._recovered(shaped, axis, (*fixed, 0))
        recovery = self.recoveries[at]
        counts = [self._recovered(shaped, axis, (*fixed, level)) for level in range(recovery.chain.levels)]
        return recovery.recover(counts, at - len(self.recoveries))

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
            _steps(r.chain.cells) if a == axis else r.matrix(at)
            for a, (r, at) in enumerate(zip(self.recoveries, level, strict=True))
        ]
        return csr_array(kron_all(factors) * (self.denominator // self._denominator(axis)))

    def _shift(self, group: Group, u: Move, v: Move) -> IntArray:
        """Axes before ``axis`` are already at u, those after it still at v."""
        axis, level = group
        parts = []
        for a, (recovery, at) in enumerate(zip(self.recoveries, level, strict=True)):
            if a == axis:
                steps = np.arange(recovery.chain.cells - 1)
                low, high = min(u[a], v[a]), max(u[a], v[a])
                parts.append(np.sign(u[a] - v[a]) * ((steps >= low) & (steps < high)))
            else:
                cell = u[a] if a < axis else v[a]
                width = recovery.chain.widths[at]
                parts.append(np.eye(1, recovery.chain.padded // width, cell // width, dtype=np.int64)[0])
        return np.asarray(reduce(np.multiply.outer, parts).ravel(), dtype=np.int64)

    def explain(self) -> str:
        sides = [", ".join(map(str, recovery.chain.widths)) for recovery in self.recoveries]
        return (
            "Noise flows along each axis between neighbouring cells, shared by whole intervals of the other "
            f"axes (of {'; '.join(sides)} cells); what one cell gains another loses, so the total is exact."
        )


def _recovery(chain: Chain, moments: FloatArray, axis: int) -> Recovery:
    """Weighted by the flows along the other axes, for which this axis is recovered."""
    others = [other for other in range(moments.ndim) if other != axis]
    total = np.zeros(chain.levels)
    for flowing in others:
        part = np.take(np.moveaxis(moments, axis, 0)[1:], 0, axis=flowing + (flowing < axis))
        total += part.reshape(chain.levels, -1).sum(axis=1)
    return Recovery.tuned(chain, total)


def _steps(cells: int) -> csr_array:
    """The incidence of a line: step j takes from cell j and gives to cell j+1."""
    return Lattice((cells,)).incidence()
