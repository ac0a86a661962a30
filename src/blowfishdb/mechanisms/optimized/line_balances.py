"""Balances on a line: a strategy for what lies on both sides of every cut, read as the difference of the two.

With C the counts before a cut, N all rows and q a share, the balance is

    C − q·N = (1 − q)·C − q·(N − C).

Of answers that add up its variance is (1 − q)·Var C + q·Var(N − C) − q·(1 − q)·Var N, since for all a and b
((1 − q)a − q·b)² = (1 − q)·a² + q·b² − q·(1 − q)·(a + b)². So a plan for ranges knows it exactly, and weights
are tuned for these three (docs/proofs/quantiles.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np
from scipy.sparse import csr_array

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.budget import AnyEpsilon
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.workloads import Balances, Ranges
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.linear.strategy import UnitScales
from blowfishdb.mechanisms.optimized.line_plan import LinePlan
from blowfishdb.mechanisms.plan import Plan


def both_sides(size: int) -> Ranges:
    """The cells up to each one, then those after each one but the last."""
    cells = np.arange(size)
    first = np.concatenate((np.zeros_like(cells), cells[1:]))
    last = np.concatenate((cells, np.full(size - 1, size - 1)))
    return Ranges(size, first, last)


def squares_of_sides(workload: Balances) -> FloatArray:
    """By how much the variance of each of ``both_sides`` enters that of all balances together."""
    before, after = (float(sum(each)) for each in ((1 - q for q in workload.shares), workload.shares))
    return np.concatenate((np.full(workload.size, before), np.full(workload.size - 1, after)))


def less_of_total(workload: Balances) -> float:
    """How often the variance of the number of rows is taken off again."""
    return workload.size * float(sum(q * (1 - q) for q in workload.shares))


@final
@dataclass(frozen=True, eq=False)
class BalancesPlan(Plan):
    """The release of a plan for both sides of every cut, read as balances.

    *Guarantee*: that of the inner plan, whose release it is, rows with noise of their own. *Error*: exact,
    from that of both sides.
    """

    workload: Balances
    graph: PolicyGraph
    inner: LinePlan

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.inner.name

    @cached_property
    def scales(self) -> UnitScales:
        return self.inner.scales

    def measure(self, x: IntArray) -> Numbers:
        return self.inner.measure(x)

    def decode(self, measured: Numbers, x: IntArray) -> Numbers:
        return self.workload.of_curve(self.inner.decode(measured, x)[..., : self.workload.size])

    def spread(self, noise: Numbers) -> Numbers:
        return self.workload.of_curve(self.inner.spread(noise)[..., : self.workload.size])

    def variances(self, of_noise: FloatArray) -> FloatArray:
        sides = self.inner.variances(of_noise)
        before, after = sides[: self.workload.size], np.append(sides[self.workload.size :], 0.0)
        each = [(1 - q) * before + q * after - q * (1 - q) * before[-1] for q in map(float, self._shares)]
        return np.asarray(np.maximum(np.concatenate(each), 0.0), dtype=np.float64)

    @property
    def _shares(self) -> tuple[Fraction, ...]:
        return self.workload.shares

    @property
    def one_to_one(self) -> bool:
        return False

    @property
    def width(self) -> int:
        return max(self.inner.width, self.workload.count)

    def rows(self, *, epsilon: AnyEpsilon) -> tuple[csr_array, list[Fraction]]:
        return self.inner.rows(epsilon=epsilon)

    def explain(self) -> str:
        return self.inner.explain()
