"""Least squares on a line strategy: estimates, and their exact variances."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.errors import InvalidInput, InvalidScale, SizeMismatch
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.line.factor import Factor
from blowfishdb.mechanisms.line.shape import Shape
from blowfishdb.mechanisms.line.strategy import LineStrategy
from blowfishdb.mechanisms.line.system import System
from blowfishdb.mechanisms.line.workload import Family, LineWorkload

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
