"""The least-squares system of a line strategy, ordered so that elimination costs O(k).

Unknowns: the cuts p (level 0) and, for every coarser stride s, the block averages S̄ = (1/s)·Σ p, tied to
their children by multipliers λ. A hat couples two neighbouring averages of its level, a ramp of window > 1
is one more variable with the row's variance, negated, on the diagonal (μ = (a·p − y)/σ²). So

    [ G  Bᵀ ] [p, S̄]   [b]
    [ B  −V ] [λ, μ ] = [y]

is sparse, quasi-definite, and its (p, p) block of the inverse is the covariance of the estimates.

Order. Nested blocks of 1, s_1, s_2, …, ramp stride. Given the last cut and the last average of every level
at a block's right end, its inside is independent of the rest; so eliminate the insides first, level by
level, and along each chain every second position first. A column of L then has about 2(levels + 1) entries
and the elimination tree has depth O(Σ levels · log(branching) + log(number of blocks)).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.line.factor import Factor, Pattern
from blowfishdb.mechanisms.line.shape import Shape


@dataclass(frozen=True, eq=False)
class System:
    """The symbolic half: which entries there are, in which order they are eliminated."""

    shape: Shape

    @cached_property
    def levels(self) -> IntArray:
        """Where the variables of each level of averages begin, and where the multipliers begin."""
        return np.cumsum([0, *(self.shape.blocks(s) for s in self._averaged)]).astype(np.int64)

    @property
    def _averaged(self) -> tuple[int, ...]:
        return self.shape.hats or (1,)

    @property
    def size(self) -> int:
        """Averages, multipliers and ramp variables."""
        averages = int(self.levels[-1])
        return 2 * averages - self.shape.cuts + (self._ramps if self._ramps_are_variables else 0)

    @property
    def _ramps(self) -> int:
        return 0 if self.shape.ramp is None else self.shape.group_sizes[-1]

    @property
    def _ramps_are_variables(self) -> bool:
        return self.shape.ramp is not None and self.shape.ramp.window > 1

    @cached_property
    def order(self) -> IntArray:
        """The place of every variable in the elimination order."""
        shape, strides = self.shape, self._averaged
        sizes = [*strides, shape.ramp.stride] if shape.ramp is not None else [*strides]
        sizes = [s for i, s in enumerate(sizes) if i == 0 or s > sizes[i - 1]]
        stage, where = [], []
        for stride in strides:
            position = stride * np.arange(1, shape.blocks(stride) + 1)
            stage.append(_stages(position, sizes))
            where.append(position)
        for level, stride in enumerate(strides[1:], start=1):
            position = stride * np.arange(1, shape.blocks(stride) + 1)
            stage.append(np.full(len(position), 128 * level - 1))
            where.append(position)
        if self._ramps_are_variables and shape.ramp is not None:
            position = shape.ramp.stride * np.arange(1, self._ramps + 1)
            stage.append(np.full(len(position), 128 * len(strides) - 1))
            where.append(position)
        sequence = np.lexsort((np.concatenate(where), np.concatenate(stage)))
        place = np.empty(self.size, dtype=np.int64)
        place[sequence] = np.arange(self.size)
        return place

    @cached_property
    def pattern(self) -> Pattern:
        """The pattern of the permuted system; :meth:`values` fills it."""
        row, column = self._entries
        return Pattern.of(self.size, self.order[row], self.order[column])

    @cached_property
    def _entries(self) -> tuple[IntArray, IntArray]:
        rows, columns = [], []
        for level, stride in enumerate(self.shape.hats):
            own = np.arange(self.levels[level], self.levels[level] + self.shape.blocks(stride))
            rows += [own, own[1:]]
            columns += [own, own[:-1]]
        for level, (fine, coarse) in enumerate(pairwise(self.shape.hats)):
            child = np.arange(self.shape.blocks(fine))
            parent = np.arange(self.shape.blocks(coarse))
            multiplier = self.levels[-1] + self.levels[level + 1] - self.shape.cuts
            rows += [multiplier + child // (coarse // fine), multiplier + parent]
            columns += [self.levels[level] + child, self.levels[level + 1] + parent]
        if self._ramps_are_variables:
            child, block = self._ramp_children
            own = self.size - self._ramps + np.arange(self._ramps)
            rows += [own[block], own]
            columns += [self.levels[-2] + child, own]
        elif self.shape.ramp is not None:
            cut = np.arange(self._ramps) * self.shape.ramp.stride
            rows.append(cut)
            columns.append(cut)
        return np.concatenate(rows), np.concatenate(columns)

    @cached_property
    def _ramp_children(self) -> tuple[IntArray, IntArray]:
        """Which blocks of the coarsest hats lie in which ramp window."""
        assert self.shape.ramp is not None
        fine = self.shape.hats[-1]
        child = np.arange(self.shape.blocks(fine))
        block, rest = np.divmod(child, self.shape.ramp.stride // fine)
        inside = rest < self.shape.ramp.window // fine
        return child[inside], block[inside]

    def values(self, variances: Numbers) -> Numbers:
        """The entries for given noise variances of the rows, in the order of the pattern."""
        parts, begin = [], 0
        for stride, count in zip(self.shape.hats, self.shape.group_sizes, strict=False):
            precision = stride * (stride / variances[begin : begin + count])
            parts += [precision[:-1] + precision[1:], -precision[1:-1]]
            begin += count
        for fine, coarse in pairwise(self.shape.hats):
            parts += [
                np.full(self.shape.blocks(fine), fine / coarse),
                np.full(self.shape.blocks(coarse), -1.0),
            ]
        if self._ramps_are_variables:
            assert self.shape.ramp is not None
            scale = float(self.shape.ramp.window)
            parts += [
                np.full(len(self._ramp_children[0]), self.shape.hats[-1] / scale),
                -variances[begin:] / scale**2,
            ]
        elif self.shape.ramp is not None:
            parts.append(1.0 / variances[begin:])
        return np.concatenate(parts)

    def right_hand_side(self, centred: FloatArray, variances: FloatArray) -> FloatArray:
        """The right-hand side for answers from which n's share has been subtracted; one column per draw."""
        right = np.zeros((self.size, centred.shape[1]))
        begin = 0
        for level, (stride, count) in enumerate(zip(self.shape.hats, self.shape.group_sizes, strict=False)):
            scaled = centred[begin : begin + count] * (stride / variances[begin : begin + count, None])
            right[self.levels[level] : self.levels[level + 1]] = scaled[:-1] - scaled[1:]
            begin += count
        if self._ramps_are_variables:
            assert self.shape.ramp is not None
            right[self.size - self._ramps :] = centred[begin:] / self.shape.ramp.window
        elif self.shape.ramp is not None:
            right[: self.shape.cuts : self.shape.ramp.stride] += centred[begin:] / variances[begin:, None]
        return right

    def factor(self, variances: Numbers) -> Factor:
        """The numeric half, for given noise variances of the rows."""
        return Factor.of(self.pattern, self.values(variances))


def _stages(position: IntArray, sizes: list[int]) -> IntArray:
    """When a variable at this cut goes: by the coarsest block it ends, then every second one first."""
    stage = np.zeros(len(position), dtype=np.int64)
    for level, size in enumerate(sizes):
        ends = position % size == 0
        branching = sizes[level + 1] // size if level + 1 < len(sizes) else 2**62
        rank = position[ends] // size % branching
        halvings = np.log2(np.maximum(rank & -rank, 1)).astype(np.int64)
        stage[ends] = 128 * level + halvings
    return stage
