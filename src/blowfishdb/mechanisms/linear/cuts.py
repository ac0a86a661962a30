"""Least squares on a line in O(cells): the unknowns are cut points, the elimination goes from fine to coarse.

p_j is the count left of cell j. An interval row is p_stop − p_start, so the normal matrix G = CᵀΛC of
interval rows is a weighted graph Laplacian on the cut points (a range's error is an effective resistance);
cut points with a public count are known and drop out. Along a level every second cut is eliminated first,
levels from fine to coarse: hierarchies then fill in next to nothing, and the elimination tree is O(log cells)
deep.

A sparse LDLᵀ factorisation whose elimination tree is shallow by construction.

The order of elimination is the caller's (see :mod:`.system`); here are the classical up-looking factorisation
(T. Davis, *Direct Methods for Sparse Linear Systems*, ch. 4), the two triangular solves for many right-hand
sides, and one quadratic form that makes variances cheap: for v = e_i − e_j only the two paths from i and j to
the root of the elimination tree are touched, so vᵀA⁻¹v = Σ z²/d costs the entries of L on those paths.
Everything works on complex values too, which is how :mod:`.solver` differentiates.

No pivoting: the matrices are quasi-definite in the order given, so every pivot is non-zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from scipy.sparse import csr_array

from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray
from blowfishdb.core.errors import TooLarge
from blowfishdb.core.workloads import Workload
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.compiled import compiled
from blowfishdb.mechanisms.linear.estimators import (
    DENSE_CELLS,
    Estimator,
    cells_over_cuts,
    check_work,
    undetermined,
    variances_from_spread,
)
from blowfishdb.mechanisms.linear.strategy import Contrasts


@dataclass(frozen=True, eq=False)
class Pattern:
    """Where the non-zeros of A (upper triangle, by columns) and of L are; reused for every set of values."""

    size: int
    starts: IntArray
    rows: IntArray
    gather: IntArray
    parent: IntArray
    factor_starts: IntArray

    @staticmethod
    def of(size: int, row: IntArray, column: IntArray) -> Pattern:
        """The pattern of a symmetric matrix; each entry is given once, on either side, and repeats add up."""
        low, high = np.minimum(row, column), np.maximum(row, column)
        unique, gather = np.unique(high * size + low, return_inverse=True)
        rows, columns = unique % size, unique // size
        starts = np.searchsorted(columns, np.arange(size + 1)).astype(np.int64)
        parent, counts = _symbolic(starts, rows)
        factor_starts = np.concatenate(([0], np.cumsum(counts)))
        return Pattern(size, starts, rows, gather.astype(np.int64), parent, factor_starts)


@dataclass(frozen=True, eq=False)
class Factor:
    """A = L·D·Lᵀ (without conjugation) for one set of values."""

    pattern: Pattern
    rows: IntArray
    lower: Numbers
    pivots: Numbers

    @staticmethod
    def of(pattern: Pattern, values: Numbers) -> Factor:
        """Factorise; ``values`` are in the order of the entries that made the pattern, real or complex."""
        summed = np.bincount(pattern.gather, weights=values.real, minlength=len(pattern.rows))
        if np.iscomplexobj(values):
            summed = summed + 1j * np.bincount(pattern.gather, weights=values.imag, minlength=len(summed))
        rows, lower, pivots = _numeric(
            pattern.starts, pattern.rows, summed, pattern.parent, pattern.factor_starts
        )
        return Factor(pattern, rows, lower, pivots)

    def solve(self, right: FloatArray) -> Numbers:
        """A⁻¹·right for a (size, batch) array."""
        return self.solve_in_place(np.array(right, dtype=self.pivots.dtype, order="C"))

    def solve_in_place(self, right: Numbers) -> Numbers:
        """The same, without a copy."""
        _solve(self.pattern.factor_starts, self.rows, self.lower, self.pivots, right)
        return right

    def differences(self, first: IntArray, second: IntArray) -> Numbers:
        """(e_i − e_j)ᵀA⁻¹(e_i − e_j) for every pair; a negative index stands for the zero vector."""
        out: Numbers = _differences(
            self.pattern.factor_starts, self.rows, self.lower, self.pivots, self.pattern.parent, first, second
        )
        return out


@compiled(at_once=False)
def _symbolic(starts, rows):  # type: ignore[no-untyped-def]
    n = len(starts) - 1
    parent = np.full(n, -1, np.int64)
    counts = np.zeros(n, np.int64)
    flag = np.full(n, -1, np.int64)
    for column in range(n):
        flag[column] = column
        for p in range(starts[column], starts[column + 1]):
            i = rows[p]
            while i < column and flag[i] != column:
                if parent[i] == -1:
                    parent[i] = column
                counts[i] += 1
                flag[i] = column
                i = parent[i]
    return parent, counts


@compiled(at_once=False)
def _numeric(starts, rows, values, parent, factor_starts):  # type: ignore[no-untyped-def]
    n = len(starts) - 1
    out_rows = np.empty(factor_starts[n], np.int64)
    lower = np.empty(factor_starts[n], values.dtype)
    pivots = np.zeros(n, values.dtype)
    filled = np.zeros(n, np.int64)
    work = np.zeros(n, values.dtype)
    flag = np.full(n, -1, np.int64)
    pattern = np.empty(n, np.int64)
    stack = np.empty(n, np.int64)
    for column in range(n):
        top = n
        flag[column] = column
        for p in range(starts[column], starts[column + 1]):
            i = rows[p]
            work[i] += values[p]
            length = 0
            while flag[i] != column:
                stack[length] = i
                length += 1
                flag[i] = column
                i = parent[i]
            while length > 0:
                length -= 1
                top -= 1
                pattern[top] = stack[length]
        pivot = work[column]
        work[column] = 0.0
        for t in range(top, n):
            i = pattern[t]
            x = work[i]
            work[i] = 0.0
            begin = factor_starts[i]
            end = begin + filled[i]
            for p in range(begin, end):
                work[out_rows[p]] -= lower[p] * x
            entry = x / pivots[i]
            pivot -= entry * x
            out_rows[end] = column
            lower[end] = entry
            filled[i] += 1
        pivots[column] = pivot
    return out_rows, lower, pivots


@compiled(at_once=False)
def _solve(starts, rows, lower, pivots, x):  # type: ignore[no-untyped-def]
    n, batch = x.shape
    for j in range(n):
        for p in range(starts[j], starts[j + 1]):
            i, entry = rows[p], lower[p]
            for b in range(batch):
                x[i, b] -= entry * x[j, b]
    for j in range(n - 1, -1, -1):
        for b in range(batch):
            x[j, b] /= pivots[j]
        for p in range(starts[j], starts[j + 1]):
            i, entry = rows[p], lower[p]
            for b in range(batch):
                x[j, b] -= entry * x[i, b]


@compiled(at_once=False)
def _differences(starts, rows, lower, pivots, parent, first, second):  # type: ignore[no-untyped-def]
    n = len(pivots)
    work = np.zeros(n, pivots.dtype)
    out = np.zeros(len(first), pivots.dtype)
    for q in range(len(first)):
        i, j = first[q], second[q]
        if i == j:
            continue
        if i >= 0:
            work[i] += 1.0
        else:
            i = n
        if j >= 0:
            work[j] -= 1.0
        else:
            j = n
        total = 0.0
        while i < n or j < n:
            column = min(i, j)
            z = work[column]
            work[column] = 0.0
            total += z * z / pivots[column]
            for p in range(starts[column], starts[column + 1]):
                work[rows[p]] -= lower[p] * z
            up = parent[column]
            if up < 0:
                up = n
            if i == column:
                i = up
            if j == column:
                j = up
        out[q] = total
    return out


_SINGULAR = 1e-11
_MOST_PAIRS = 5 * 10**7
_STEP = 1e-20
_CORE = 64
_MOST_FILL = 20


@final
@dataclass(frozen=True, eq=False)
class NormalEquations:
    """CᵀΛC·p = CᵀΛ·y for rows C with few entries, over unknowns in the order of their elimination."""

    rows: csr_array
    precision: FloatArray
    """Λ, one positive number per row."""
    least_pivot: float = -math.inf
    """What a pivot must exceed, as a share of its diagonal, if the rows may leave something open."""

    @cached_property
    def _entries(self) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
        """(row, i, j, c_i·c_j) for i ≤ j: what row r adds to CᵀΛC, times its precision."""
        rows = self.rows
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
    def pattern(self) -> Pattern:
        """Where the factor has entries."""
        _, i, j, _ = self._entries
        return Pattern.of(self.rows.shape[1], i, j)

    def _factorised(self, precision: Numbers) -> Factor:
        row, _, _, product = self._entries
        return Factor.of(self.pattern, product * precision[row])

    @cached_property
    def factor(self) -> Factor:
        """CᵀΛC = L·D·Lᵀ."""
        factor = self._factorised(self.precision)
        row, i, j, product = self._entries
        own = i == j
        weights = product[own] * self.precision[row[own]]
        diagonal = np.bincount(i[own], weights=weights, minlength=factor.pivots.size)
        if not (factor.pivots > self.least_pivot * diagonal).all():
            raise undetermined()
        return factor

    def solution(self, measured: Numbers) -> FloatArray:
        """The unknowns (first axis) that fit each vector of a batch best."""
        right = self.rows.T @ (measured.T * self.precision[:, None])
        return np.asarray(self.factor.solve_in_place(np.ascontiguousarray(right)))

    def gains(self, asked: FloatArray) -> FloatArray:
        """What one unit of every row's noise (first axis) does to each of the combinations ``asked``."""
        return np.asarray(self.precision[:, None] * (self.rows @ self.factor.solve(asked.T)))

    def exactly(self, form: Callable[[Factor], Numbers], of_noise: FloatArray) -> FloatArray:
        """Σ_r v_r·T_ir² from F(λ) = aᵀ(CᵀΛC)⁻¹a, which factors cheaply: T_ir² = −λ_r²·∂F_i/∂λ_r.

        So it is minus the derivative of F along λ²v. F is rational: an imaginary step of 10⁻²⁰ gives the
        derivative to full precision, nothing cancels. In the continuous limit λ²v = c·λ, and the derivative
        is −c·F.
        """
        scaled = of_noise * self.precision
        common = float(scaled.max(initial=0.0))
        if common == 0.0 or float(scaled.min()) >= common * (1 - 1e-14):
            return np.asarray(common * form(self.factor))
        stepped = self._factorised(self.precision * (1 + 1j * _STEP * scaled / common))
        return np.asarray(np.maximum(-common * form(stepped).imag / _STEP, 0.0))


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
    def _system(self) -> NormalEquations:
        rows = csr_array(self.strategy.over_cuts[:, np.flatnonzero(~self.public)])
        place = self._place[~self.public]
        ordered = csr_array((rows.data, place[rows.indices], rows.indptr), shape=rows.shape)
        system = NormalEquations(ordered, self.strategy.precision, _SINGULAR)
        if system.pattern.factor_starts[-1] > _MOST_PAIRS:
            raise TooLarge(
                "Least squares on these rows fills in too much.", fixes=("use a hierarchy of intervals",)
            )
        return system

    # --- estimates ----------------------------------------------------------------------------

    def estimate(self, measured: Numbers, x: IntArray) -> FloatArray:
        public = np.where(self.public, np.concatenate(([0], np.cumsum(x))), 0)
        fixed = self.strategy.over_cuts @ public
        return np.diff(self._cuts(measured - fixed) + public, axis=-1)

    def spread(self, noise: Numbers) -> FloatArray:
        return np.diff(self._cuts(noise), axis=-1)

    def _cuts(self, noise: Numbers) -> FloatArray:
        """(CᵀΛC)⁻¹CᵀΛ·noise at every cut point, zero at public ones."""
        cuts = np.zeros((*noise.shape[:-1], self.public.size))
        if not self.public.all():
            solved = self._system.solution(noise.reshape(-1, noise.shape[-1]))
            cuts[..., ~self.public] = solved[self._place[~self.public]].T.reshape(*noise.shape[:-1], -1)
        return cuts

    # --- variances ----------------------------------------------------------------------------

    def variances(self, workload: Workload, of_noise: FloatArray) -> FloatArray:
        if self.public.all():
            return np.zeros(workload.count)
        many = workload.count > 2 * workload.size
        if len(self.strategy) <= DENSE_CELLS and (many or workload.intervals() is None):
            return variances_from_spread(workload, self.spread(np.eye(len(self.strategy))), of_noise)
        ranges = workload.intervals()
        if ranges is None:
            return self._general_variances(workload, of_noise)
        first, second = self._place[ranges[1]], self._place[ranges[0]]
        return self._system.exactly(lambda factor: factor.differences(first, second), of_noise)

    def total_variance(self, workload: Workload, of_noise: FloatArray) -> float:
        """All ranges: Σ_{i<j} Var(p_j − p_i) = (k+1)·tr Σ − 1ᵀΣ1 over the cut points."""
        unknown = np.arange(np.count_nonzero(~self.public))
        if not workload.every_range or not unknown.size:
            return float(self.variances(workload, of_noise).sum())
        none = np.full_like(unknown, -1)

        def total(factor: Factor) -> Numbers:
            trace = factor.differences(unknown, none).sum()
            return np.array([self.public.size * trace - factor.solve(np.ones((unknown.size, 1))).sum()])

        return float(self._system.exactly(total, of_noise)[0])

    def _general_variances(self, workload: Workload, of_noise: FloatArray) -> FloatArray:
        """Σ_r v_r·(λ_r·c_rᵀG⁻¹a)² with one solution per question, some questions at a time."""
        rows = workload.sparse().astype(np.float64) / workload.denominator
        check_work(workload.count * len(self.strategy))
        over_cuts = csr_array((rows @ cells_over_cuts(workload.size))[:, np.flatnonzero(~self.public)])
        ordered = np.argsort(self._place[~self.public])
        variances = []
        step = max(1, 10**7 // len(self.strategy))
        for start in range(0, workload.count, step):
            gains = self._system.gains(over_cuts[start : start + step][:, ordered].toarray())
            variances.append(of_noise @ gains**2)
        return np.concatenate(variances)


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


def rounds_of_elimination(size: int, row: IntArray, column: IntArray) -> IntArray:
    """An order for the edges of any graph: whole rounds of variables, each independent and of low degree.

    Paths, rings and trees then fill in next to nothing, and their elimination trees are O(log size) deep.
    What is left once the rest fills in comes last, as it is.
    """
    lot = np.random.Generator(np.random.Philox(key=[1, size])).permutation(size)
    ends = row != column
    keys = _distinct(np.concatenate((row * size + column, column * size + row))[np.tile(ends, 2)])
    most, left, order = _MOST_FILL * (keys.size + size), np.ones(size, dtype=np.bool_), list[IntArray]()
    while (count := np.count_nonzero(left)) > _CORE and keys.size <= min(most, count**2 / 4):
        row, column = np.divmod(keys, size)
        degree = np.bincount(row, minlength=size)
        rank = degree * size + lot
        least = np.full(size, np.iinfo(np.int64).max)
        begins = np.flatnonzero(np.diff(row, prepend=-1))
        least[row[begins]] = np.minimum.reduceat(rank[column], begins) if begins.size else least[:0]
        few = degree <= 2 * keys.size / count + 3
        gone = left & few & (rank < least)
        order.append(np.flatnonzero(gone))
        left &= ~gone
        beside = np.flatnonzero(gone[row])  # the neighbours of one variable follow each other
        times = degree[row[beside]]
        first = np.repeat(beside, times)
        within = np.arange(first.size) - np.repeat(np.cumsum(times) - times, times)
        second = np.repeat(np.searchsorted(row, row[beside]), times) + within
        filled = (column[first] * size + column[second])[first != second]
        keys = _distinct(np.concatenate((keys[left[row] & left[column]], filled)))
    return np.concatenate((*order, np.flatnonzero(left))).astype(np.int64)


def _distinct(keys: IntArray) -> IntArray:
    """Each once, in order; np.unique would hash them, which takes far longer."""
    ordered = np.sort(keys)
    return ordered[np.diff(ordered, prepend=-1) > 0]
