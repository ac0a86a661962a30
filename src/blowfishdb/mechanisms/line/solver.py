"""Least squares on a line strategy: estimates, and their exact variances."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.errors import InvalidInput, InvalidScale, SizeMismatch
from blowfishdb.mechanisms.line.factor import Factor
from blowfishdb.mechanisms.line.shape import Shape
from blowfishdb.mechanisms.line.strategy import LineStrategy
from blowfishdb.mechanisms.line.system import System
from blowfishdb.mechanisms.line.workload import Family, LineWorkload


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
        if cuts == 0:
            return np.zeros((*noisy.shape[:-1], 0))
        share = np.asarray(total, dtype=np.float64)[..., None] * self._shape.offsets()
        columns = (noisy - share).reshape(-1, noisy.shape[-1]).T
        right = self._system.right_hand_side(columns, self._variances)
        ordered = np.empty_like(right)
        ordered[self._system.order] = right
        solved = self._factor.solve(ordered)[self._system.order[:cuts]]
        return np.ascontiguousarray(solved.T).reshape(*noisy.shape[:-1], cuts)

    def range_variances(self, starts: ArrayLike, ends: ArrayLike) -> FloatArray:
        """The variance of every range from ``starts`` to ``ends`` inclusive."""
        first, last = np.asarray(starts, dtype=np.int64), np.asarray(ends, dtype=np.int64)
        if first.shape != last.shape or first.ndim != 1:
            raise SizeMismatch("Starts and ends must be equally long lists.")
        if len(first) and (first.min() < 0 or np.any(last < first) or last.max() >= self._shape.cells):
            raise InvalidInput("Every range must lie on the line and not end before it starts.")
        if self._shape.cuts == 0:
            return np.zeros(len(first))
        return self._factor.differences(self._variable(last + 1), self._variable(first))

    def cell_variances(self) -> FloatArray:
        """The variance of every cell."""
        cell = np.arange(self._shape.cells)
        return self.range_variances(cell, cell)

    def prefix_variances(self) -> FloatArray:
        """The variance of every prefix p_1 … p_{k−1}."""
        return self.range_variances(np.zeros(self._shape.cuts, dtype=np.int64), np.arange(self._shape.cuts))

    def total_variance(self, workload: LineWorkload) -> float:
        """The sum of the variances over the workload.

        All ranges: Σ_{i<j} Var(p_j − p_i) over the cuts 0 … k is (k+1)·tr Σ − 1ᵀΣ1, since p_0 and p_k are
        exact.
        """
        match workload.family:
            case Family.IDENTITY:
                return float(self.cell_variances().sum())
            case Family.PREFIX:
                return float(self.prefix_variances().sum())
            case Family.LISTED:
                return float(workload.weights @ self.range_variances(workload.starts, workload.ends))
            case Family.ALL_RANGES:
                trace = float(self.prefix_variances().sum())
                return (self._shape.cells + 1) * trace - self._sum_variance()

    def _sum_variance(self) -> float:
        """1ᵀΣ1, the variance of the sum of all prefixes."""
        if self._shape.cuts == 0:
            return 0.0
        cuts = self._system.order[: self._shape.cuts]
        ones = np.zeros((self._system.size, 1))
        ones[cuts] = 1.0
        return float(self._factor.solve(ones)[cuts].sum())

    def _variable(self, cut: IntArray) -> IntArray:
        """The variable of a cut; the public cuts 0 and k have none."""
        inside = (cut > 0) & (cut < self._shape.cells)
        return np.where(inside, self._system.order[np.clip(cut - 1, 0, self._shape.cuts - 1)], -1)
