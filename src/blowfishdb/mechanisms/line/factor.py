"""A sparse LDLᵀ factorisation whose elimination tree is shallow by construction.

The order of elimination is the caller's (see :mod:`.system`); here are the classical up-looking factorisation
(T. Davis, *Direct Methods for Sparse Linear Systems*, ch. 4), the two triangular solves for many right-hand
sides, and one quadratic form that makes variances cheap: for v = e_i − e_j only the two paths from i and j to
the root of the elimination tree are touched, so vᵀA⁻¹v = Σ z²/d costs the entries of L on those paths.
Everything works on complex values too, which is how :mod:`.solver` differentiates.

No pivoting: the matrices are quasi-definite in the order given, so every pivot is non-zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.workloads.base import Numbers


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
        parent, counts = _kernels()["symbolic"](starts, rows)
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
        rows, lower, pivots = _kernels()["numeric"](
            pattern.starts, pattern.rows, summed, pattern.parent, pattern.factor_starts
        )
        return Factor(pattern, rows, lower, pivots)

    def solve(self, right: FloatArray) -> Numbers:
        """A⁻¹·right for a (size, batch) array."""
        return self.solve_in_place(np.array(right, dtype=self.pivots.dtype, order="C"))

    def solve_in_place(self, right: Numbers) -> Numbers:
        """The same, without a copy."""
        _kernels()["solve"](self.pattern.factor_starts, self.rows, self.lower, self.pivots, right)
        return right

    def differences(self, first: IntArray, second: IntArray) -> Numbers:
        """(e_i − e_j)ᵀA⁻¹(e_i − e_j) for every pair; a negative index stands for the zero vector."""
        out: Numbers = _kernels()["differences"](
            self.pattern.factor_starts, self.rows, self.lower, self.pivots, self.pattern.parent, first, second
        )
        return out


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


@cache
def _kernels() -> dict[str, Callable[..., Any]]:
    """The four loops, compiled where numba is installed; the same code runs, slowly, without it."""
    loops: dict[str, Callable[..., Any]] = {
        "symbolic": _symbolic,
        "numeric": _numeric,
        "solve": _solve,
        "differences": _differences,
    }
    try:
        from numba import njit
    except ImportError:
        return loops
    return {name: njit(cache=True)(loop) for name, loop in loops.items()}
