"""Least squares on a line strategy: estimates, and their exact variances.

The least-squares system of a line strategy, ordered so that elimination costs O(k).

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

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.errors import InvalidInput, InvalidScale, SizeMismatch
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.linear.cuts import Factor, Pattern
from blowfishdb.mechanisms.optimized.line_strategy import Family, LineStrategy, LineWorkload, Shape


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


_BATCH = 16  # right-hand sides that fit in the cache together
_STEP = 1e-60


class LineSolver:
    """Weighted least squares with the public total n, for any positive variances of the rows.

    The estimate of p_1 … p_{k−1} is (CᵀΛC)⁻¹CᵀΛ(y − n·a_{k−1}), Λ = diag(1/variance), the best linear
    unbiased one (Gauss–Markov); its covariance is (CᵀΛC)⁻¹. Setting up and one estimate cost O(k · levels²);
    a range's variance costs O(levels² · log k) whatever its length. Final.
    """

    def __init__(
        self, strategy: LineStrategy | Shape, variances: ArrayLike, *, system: System | None = None
    ) -> None:
        self._shape = strategy if isinstance(strategy, Shape) else strategy.shape
        self._variances = np.array(variances, dtype=np.float64)
        if self._variances.shape != (sum(self._shape.group_sizes),):
            raise SizeMismatch("There must be one variance per row of the strategy.")
        if not (np.all(np.isfinite(self._variances)) and np.all(self._variances > 0)):
            raise InvalidScale("Every row's variance must be positive and finite.")
        self._system = System(self._shape) if system is None else system

    @cached_property
    def _factor(self) -> Factor:
        return self._system.factor(self._variances)

    def decode(self, answers: ArrayLike, total: ArrayLike) -> FloatArray:
        """Estimates of p_1 … p_{k−1} along the last axis, from noisy row answers along the last axis.

        ``total`` is n: one number, or one per batch.
        """
        noisy = np.asarray(answers, dtype=np.float64)
        if noisy.shape[-1:] != self._variances.shape:
            raise SizeMismatch("There must be one answer per row of the strategy.")
        cuts = self._shape.cuts
        if not self._shape.hats:
            return noisy  # every cut is measured itself, and n enters nowhere
        if cuts == 0:
            return np.zeros((*noisy.shape[:-1], 0))
        if np.any(total):
            noisy = noisy - np.asarray(total, dtype=np.float64)[..., None] * self._shape.offsets()
        centred = noisy.reshape(-1, noisy.shape[-1])
        estimates = np.empty((len(centred), cuts))
        for begin in range(0, len(centred), _BATCH):
            some = slice(begin, begin + _BATCH)
            right = self._system.right_hand_side(np.ascontiguousarray(centred[some].T), self._variances)
            solved = self._factor.solve_in_place(right[self._sequence])
            estimates[some] = solved[self._system.order[:cuts]].T
        return estimates.reshape(*noisy.shape[:-1], cuts)

    @cached_property
    def _sequence(self) -> IntArray:
        """The variables in the order of their elimination."""
        return np.argsort(self._system.order)

    def range_variances(
        self, starts: ArrayLike, ends: ArrayLike, *, of_noise: FloatArray | None = None
    ) -> FloatArray:
        """The variance of every range from ``starts`` to ``ends`` inclusive.

        ``of_noise``: the variances that the rows' noise really has, if not those that the decoder is for.
        """
        first, last = np.asarray(starts, dtype=np.int64), np.asarray(ends, dtype=np.int64)
        if first.shape != last.shape or first.ndim != 1:
            raise SizeMismatch("Starts and ends must be equally long lists.")
        if len(first) and (first.min() < 0 or np.any(last < first) or last.max() >= self._shape.cells):
            raise InvalidInput("Every range must lie on the line and not end before it starts.")
        if self._shape.cuts == 0:
            return np.zeros(len(first))
        right, left = self._variable(last + 1), self._variable(first)
        return self._evaluate(lambda factor: factor.differences(right, left), of_noise)

    def cell_variances(self, of_noise: FloatArray | None = None) -> FloatArray:
        """The variance of every cell."""
        cell = np.arange(self._shape.cells)
        return self.range_variances(cell, cell, of_noise=of_noise)

    def prefix_variances(self, of_noise: FloatArray | None = None) -> FloatArray:
        """The variance of every prefix p_1 … p_{k−1}."""
        cut = np.arange(self._shape.cuts)
        return self.range_variances(np.zeros_like(cut), cut, of_noise=of_noise)

    def total_variance(self, workload: LineWorkload, of_noise: FloatArray | None = None) -> float:
        """The sum of the variances over the workload.

        All ranges: Σ_{i<j} Var(p_j − p_i) over the cuts 0 … k is (k+1)·tr Σ − 1ᵀΣ1, since p_0 and p_k are
        exact.
        """
        match workload.family:
            case Family.IDENTITY:
                return float(self.cell_variances(of_noise).sum())
            case Family.PREFIX:
                return float(self.prefix_variances(of_noise).sum())
            case Family.LISTED:
                each = self.range_variances(workload.starts, workload.ends, of_noise=of_noise)
                return float(workload.weights @ each)
            case Family.ALL_RANGES:
                trace = float(self.prefix_variances(of_noise).sum())
                return (self._shape.cells + 1) * trace - self.sum_variance(of_noise)

    def sum_variance(self, of_noise: FloatArray | None = None) -> float:
        """1ᵀΣ1, the variance of the sum of all prefixes."""
        if self._shape.cuts == 0:
            return 0.0
        cuts = self._system.order[: self._shape.cuts]
        ones = np.zeros((self._system.size, 1))
        ones[cuts] = 1.0
        return float(self._evaluate(lambda factor: factor.solve(ones)[cuts].sum(), of_noise))

    def largest_range_variance(self) -> float:
        """The largest variance of any range, by going through the whole covariance: O(k²)."""
        cuts, largest = self._system.order[: self._shape.cuts], 0.0
        if not self._shape.cuts:
            return 0.0
        single = np.concatenate((self.prefix_variances(), [0.0]))  # the last stands for a public cut
        for begin in range(0, len(cuts), _BATCH):
            some = cuts[begin : begin + _BATCH]
            ones = np.zeros((self._system.size, len(some)))
            ones[some, np.arange(len(some))] = 1.0
            covariance = np.concatenate((self._factor.solve(ones)[cuts], np.zeros((1, len(some)))))
            pairs = single[:, None] + single[begin : begin + len(some)] - 2.0 * covariance
            largest = max(largest, float(pairs.max()))
        return largest

    def _evaluate(self, form: Callable[[Factor], Numbers], of_noise: FloatArray | None) -> Numbers:
        """A variance as a function of the factorisation, for noise of other variances than the decoder's own.

        The decoder T is the best for the variances s, so ∂Var_i/∂s_r = T_ir² (the optimum does not feel its
        own shift), and Σ_r T_ir²·v_r is the derivative of Var_i in the direction v. A complex step takes it
        to the last digit.
        """
        if of_noise is None:
            return form(self._factor)
        ratio = of_noise / self._variances
        if np.ptp(ratio) <= 1e-14 * ratio[0]:
            return np.asarray(ratio[0] * form(self._factor))
        return np.asarray(form(self._system.factor(self._variances + 1j * _STEP * of_noise)).imag / _STEP)

    def _variable(self, cut: IntArray) -> IntArray:
        """The variable of a cut; the public cuts 0 and k have none."""
        inside = (cut > 0) & (cut < self._shape.cells)
        return np.where(inside, self._system.order[np.clip(cut - 1, 0, self._shape.cuts - 1)], -1)
