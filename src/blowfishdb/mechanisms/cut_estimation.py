"""Least squares on a line in O(cells): the unknowns are cut points, the elimination goes from fine to coarse.

p_j is the count left of cell j. An interval row is p_stop − p_start, so the normal matrix G = CᵀΛC of
interval rows is a weighted graph Laplacian on the cut points (a range's error is an effective resistance);
cut points with a public count are known and drop out. Along a level every second cut is eliminated first,
levels from fine to coarse: hierarchies then fill in next to nothing, and the elimination tree is O(log cells)
deep.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from scipy.sparse import csr_array

from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray
from blowfishdb.core.errors import TooLarge
from blowfishdb.core.workloads import AllRanges, Workload
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.estimation import (
    DENSE_CELLS,
    WORK,
    Estimator,
    as_ranges,
    cells_over_cuts,
    undetermined,
    variances_from_spread,
)
from blowfishdb.mechanisms.line.factor import Factor, Pattern
from blowfishdb.mechanisms.strategy import Contrasts

_SINGULAR = 1e-11
_MOST_PAIRS = 5 * 10**7
_STEP = 1e-20


@final
@dataclass(frozen=True, eq=False)
class CutLeastSquares(Estimator):
    """Weighted least squares for contrasts of intervals; ``public`` marks the cut points that are known."""

    strategy: Contrasts
    public: BoolArray

    @cached_property
    def _place(self) -> IntArray:
        """Where each cut point is in the order of elimination; −1 for public ones."""
        unknown = np.flatnonzero(~self.public)
        place = np.full(self.public.size, -1, dtype=np.int64)
        place[unknown[_elimination_order(csr_array(self.strategy.over_cuts[:, unknown]))]] = np.arange(
            unknown.size
        )
        return place

    @cached_property
    def _rows(self) -> csr_array:
        """C over the unknown cut points, in the order of elimination."""
        rows = csr_array(self.strategy.over_cuts[:, np.flatnonzero(~self.public)])
        place = self._place[~self.public]
        return csr_array((rows.data, place[rows.indices], rows.indptr), shape=rows.shape)

    @cached_property
    def _entries(self) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
        """(row, i, j, c_i·c_j) for i ≤ j: what row r adds to G, times its precision."""
        rows = self._rows
        lengths = np.diff(rows.indptr)
        row, left, right = [], [], []
        for first in range(int(lengths.max(initial=0))):
            for second in range(first, int(lengths.max())):
                present = np.flatnonzero(lengths > second)
                row.append(present)
                left.append(rows.indptr[present] + first)
                right.append(rows.indptr[present] + second)
        r, i, j = (
            np.concatenate([np.zeros(0, np.int64), *part]).astype(np.int64) for part in (row, left, right)
        )
        data = rows.data.astype(np.float64)
        return r, rows.indices[i].astype(np.int64), rows.indices[j].astype(np.int64), data[i] * data[j]

    @cached_property
    def _pattern(self) -> Pattern:
        _, i, j, _ = self._entries
        pattern = Pattern.of(self._rows.shape[1], i, j)
        if pattern.factor_starts[-1] > _MOST_PAIRS:
            raise TooLarge(
                "Least squares on these rows fills in too much.", fixes=("use a hierarchy of intervals",)
            )
        return pattern

    def _factorised(self, precision: Numbers) -> Factor:
        row, _, _, product = self._entries
        return Factor.of(self._pattern, product * precision[row])

    @cached_property
    def _factor(self) -> Factor:
        factor = self._factorised(self.strategy.precision)
        row, i, j, product = self._entries
        own = i == j
        weights = product[own] * self.strategy.precision[row[own]]
        diagonal = np.bincount(i[own], weights=weights, minlength=factor.pivots.size)
        if not (factor.pivots > _SINGULAR * diagonal).all():
            raise undetermined()
        return factor

    # --- estimates ----------------------------------------------------------------------------

    def estimate(self, measured: Numbers, x: IntArray) -> FloatArray:
        known = np.where(self.public, np.concatenate(([0], np.cumsum(x))), 0)
        fixed = self.strategy.over_cuts @ known
        return np.diff(self._cuts(measured - fixed) + known, axis=-1)

    def spread(self, noise: Numbers) -> FloatArray:
        return np.diff(self._cuts(noise), axis=-1)

    def _cuts(self, noise: Numbers) -> FloatArray:
        """(CᵀΛC)⁻¹CᵀΛ·noise at every cut point, zero at public ones."""
        cuts = np.zeros((*noise.shape[:-1], self.public.size))
        if self._rows.shape[1]:
            columns = noise.reshape(-1, noise.shape[-1]).T * self.strategy.precision[:, None]
            solved = self._factor.solve_in_place(np.ascontiguousarray(self._rows.T @ columns))
            cuts[..., ~self.public] = solved[self._place[~self.public]].T.reshape(*noise.shape[:-1], -1)
        return cuts

    # --- variances ----------------------------------------------------------------------------

    def variances(self, workload: Workload, of_noise: FloatArray) -> FloatArray:
        if not self._rows.shape[1]:
            return np.zeros(workload.count)
        many = workload.count > 2 * workload.size
        if len(self.strategy) <= DENSE_CELLS and (many or as_ranges(workload) is None):
            return variances_from_spread(workload, self.spread(np.eye(len(self.strategy))), of_noise)
        ranges = as_ranges(workload)
        if ranges is None:
            return self._general_variances(workload, of_noise)
        first, second = self._place[ranges[1]], self._place[ranges[0]]
        return self._exactly(lambda factor: factor.differences(first, second), of_noise)

    def total_variance(self, workload: Workload, of_noise: FloatArray) -> float:
        """All ranges: Σ_{i<j} Var(p_j − p_i) = (k+1)·tr Σ − 1ᵀΣ1 over the cut points."""
        if not isinstance(workload, AllRanges) or not self._rows.shape[1]:
            return float(self.variances(workload, of_noise).sum())
        unknown, none = np.arange(self._rows.shape[1]), np.full(self._rows.shape[1], -1)

        def total(factor: Factor) -> Numbers:
            trace = factor.differences(unknown, none).sum()
            return np.array([self.public.size * trace - factor.solve(np.ones((unknown.size, 1))).sum()])

        return float(self._exactly(total, of_noise)[0])

    def _exactly(self, form: Callable[[Factor], Numbers], of_noise: FloatArray) -> FloatArray:
        """Σ_r v_r·T_ir² from F(λ) = aᵀ(CᵀΛC)⁻¹a, which factors cheaply: T_ir² = −λ_r²·∂F_i/∂λ_r.

        So it is minus the derivative of F along λ²v. F is rational: an imaginary step of 10⁻²⁰ gives the
        derivative to full precision, nothing cancels. In the continuous limit λ²v = c·λ, and the derivative
        is −c·F.
        """
        precision = self.strategy.precision
        scaled = of_noise * precision
        common = float(scaled.max(initial=0.0))
        if common == 0.0 or float(scaled.min()) >= common * (1 - 1e-14):
            return np.asarray(common * form(self._factor))
        stepped = self._factorised(precision * (1 + 1j * _STEP * scaled / common))
        return np.asarray(np.maximum(-common * form(stepped).imag / _STEP, 0.0))

    def _general_variances(self, workload: Workload, of_noise: FloatArray) -> FloatArray:
        """Σ_r v_r·(λ_r·c_rᵀG⁻¹a)² with one solution per question, some questions at a time."""
        rows = workload.sparse().astype(np.float64) / workload.denominator
        if workload.count * len(self.strategy) > WORK:
            raise TooLarge(
                "The error of every single question is above the limit.", fixes=("ask fewer questions",)
            )
        over_cuts = csr_array((rows @ cells_over_cuts(workload.size))[:, np.flatnonzero(~self.public)])
        ordered = np.argsort(self._place[~self.public])
        found = []
        step = max(1, 10**7 // len(self.strategy))
        for start in range(0, workload.count, step):
            solved = self._factor.solve(over_cuts[start : start + step][:, ordered].toarray().T)
            gains = self.strategy.precision[:, None] * (self._rows @ solved)
            found.append(of_noise @ gains**2)
        return np.concatenate(found)


def _elimination_order(rows: csr_array) -> IntArray:
    """Fine cut points before coarse ones; between two coarser ones, every second one first.

    A cut point is as coarse as the longest row that joins it to another unknown one, by powers of two.
    """
    count = rows.shape[1]
    lengths = np.diff(rows.indptr)
    joining = lengths > 1
    rank = np.zeros(count, dtype=np.int64)
    if joining.any():
        last = rows.indptr[1:][joining] - 1
        spans = rows.indices[last] - rows.indices[rows.indptr[:-1][joining]]
        sizes = np.frexp(np.abs(spans).astype(np.float64))[1].astype(np.int64)
        np.maximum.at(rank, rows.indices[np.repeat(joining, lengths)], np.repeat(sizes, lengths[joining]))
    halvings = np.zeros(count, dtype=np.int64)
    for level in np.unique(rank):
        here = rank == level
        seen = np.cumsum(here)
        since = seen - np.maximum.accumulate(np.where(rank > level, seen, 0))
        position = since[here]
        halvings[here] = np.frexp((position & -position).astype(np.float64))[1]
    return np.lexsort((np.arange(count), halvings, rank)).astype(np.int64)
