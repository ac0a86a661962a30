"""Optimized strategies on a line where presence is hidden: hats and a noisy total.

Whoever may be absent is one more neighbour ⊥ of every value, counted nowhere. What a record costs there is
its whole column, so rows must be short: hats of nested strides and the total, no ramps. Nobody knows n: it is
estimated like everything else (docs/proofs/optimized.md, Theorems 4 and 5).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from operator import mul
from typing import final

import numpy as np
from scipy.sparse import csr_array, vstack

from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray
from blowfishdb.core.budget import AnyEpsilon, positive
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.workloads import Balances, Ranges
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.linear.strategy import UnitScales
from blowfishdb.mechanisms.optimized.line_balances import (
    BalancesPlan,
    both_sides,
    less_of_total,
    squares_of_sides,
)
from blowfishdb.mechanisms.optimized.line_design import LineQuestions, nested_strides, probe
from blowfishdb.mechanisms.optimized.line_plan import LinePlan
from blowfishdb.mechanisms.optimized.line_solver import LineSolver, System
from blowfishdb.mechanisms.optimized.line_strategy import Family, LineWorkload, Shape, sensitivity

_UNIT = 2**20
_WORTH = 1e-3  # of the column, below which the total tells nothing that the hats do not
_ENTRIES = 2 * 10**7
_WORK = 600_000  # cells that a search may go through, all shapes together
_LOG_BRANCHING = 2.7  # levels err by their branching and share the budget: best near fifteen
_FEWEST, _MOST = 8, 400  # shapes and shares that a search tries
_PER_CELL = 6  # a short line leaves little to choose
_FINALISTS = 6
_SETTLED = 1.02
_LISTED = 384


@final
@dataclass(frozen=True, eq=False)
class HatsAndTotal:
    """Integer rows and weights for a line whose cells reach ``reach`` cells to the right, and ⊥.

    *Guarantee.* Row r with discrete Laplace noise of scale K/(w_r·ε) loses at most ε on every edge: K is the
    larger of the exact maximum over moves between cells and of the column Σ_s s·w_s + w_total that ⊥ sees
    (Theorem 4).
    """

    shape: Shape
    reach: IntArray
    hats: tuple[int, ...]
    """The weight of every stride of hats."""
    total: int
    """The weight of the total; 0 if it is not measured."""
    counted: int = 1
    """While weights are chosen, the column may count for less: it is divided by this. In a plan it is not."""

    @staticmethod
    def rounded(shape: Shape, reach: IntArray, shares: FloatArray, counted: int = 1) -> HatsAndTotal:
        """Weights from shares of the column: one for every stride, then what the total gets beyond its due.

        Where a move between cells costs more than the column, the total takes the difference for nothing.
        """
        unit = _UNIT * shape.hats[-1]
        pairs = zip(shares[:-1], shape.hats, strict=True)
        hats = tuple(max(1, int(share * unit / stride)) for share, stride in pairs)
        bare = HatsAndTotal(shape, reach, hats, 0, counted)
        total = max(0, counted * bare.sensitivity - bare.column) + int(shares[-1] * unit)
        return HatsAndTotal(shape, reach, hats, total if total > bare.column * _WORTH else 0, counted)

    @property
    def column(self) -> int:
        """What a record adds to all rows together, times their weights: the same for every cell."""
        return int(sum(map(mul, self.shape.hats, self.hats))) + self.total

    @cached_property
    def sensitivity(self) -> int:
        """K, exactly."""
        farthest = int(self.reach.max(initial=0))
        moving = sensitivity(self.shape, farthest, self.hats, self.reach)
        return max(-(-self.column // self.counted), moving)

    @cached_property
    def scales(self) -> UnitScales:
        """Of the hats, stride by stride, then of the total if it is measured."""
        weights = (*self.hats, self.total) if self.total else self.hats
        sizes = (*self.shape.group_sizes, 1) if self.total else self.shape.group_sizes
        distinct = tuple(Fraction(self.sensitivity, weight) for weight in weights)
        return UnitScales(distinct, np.repeat(np.arange(len(distinct)), sizes))

    def rows(self) -> csr_array:
        """The rows over the cells."""
        hats = self.shape.rows(limit=_ENTRIES)
        if not self.total:
            return hats
        return csr_array(vstack([hats, csr_array(np.ones((1, self.shape.cells), dtype=np.int64))]))

    def measure(self, x: IntArray) -> IntArray:
        """The exact answers of all rows."""
        hats = self.shape.answers(x)
        return np.append(hats, x.sum()) if self.total else hats


@final
class TotalSolver:
    """Weighted least squares for the cuts 1 … k where p_k = n is not known either.

    For every n the hats give p̂(n) = D·y + n·h, h their response to n. What they leave, (d + C·h)·n, is
    orthogonal to what they explain, so n̂ = c·y is a weighted sum, independent of D·y at the variances that
    the solver is for (Theorem 5).
    """

    def __init__(self, shape: Shape, variances: FloatArray, *, system: System | None = None) -> None:
        hats = sum(shape.group_sizes)
        self._shape, self._solver = shape, LineSolver(shape, variances[:hats], system=system)
        offsets = shape.offsets().astype(np.float64)
        inner = self._solver.decode(-offsets, 0)
        left = np.append(offsets + shape.prefix_rows() @ inner, np.ones(len(variances) - hats))
        self._coefficients = left / variances
        self._variance = 1.0 / float(left @ self._coefficients)
        self._coefficients *= self._variance
        self._hats = hats
        self._response = np.concatenate(([0.0], inner, [1.0]))

    def cuts(self, measured: Numbers) -> FloatArray:
        """The cuts 0 … k along the last axis, from noisy rows along the last axis."""
        total = np.asarray(measured @ self._coefficients)[..., None]
        inner = self._solver.decode(measured[..., : self._hats], 0)
        ends = np.zeros((*inner.shape[:-1], 1))
        return np.asarray(np.concatenate((ends, inner, ends), axis=-1) + total * self._response)

    def range_variances(
        self, first: IntArray, last: IntArray, of_noise: FloatArray | None = None
    ) -> FloatArray:
        """The variance of every range from ``first`` to ``last`` inclusive, for noise of any variances."""
        hats = None if of_noise is None else of_noise[: self._hats]
        together, of_total = self._shared(of_noise)
        response = self._response[last + 1] - self._response[first]
        out = self._solver.range_variances(first, last, of_noise=hats)
        return out + 2.0 * response * (together[last + 1] - together[first]) + response**2 * of_total

    def total_variance(self, workload: LineWorkload, of_noise: FloatArray | None = None) -> float:
        """The sum of the variances; prefixes are those of all cells, the total among them."""
        cells = np.arange(self._shape.cells)
        match workload.family:
            case Family.IDENTITY:
                return float(self.range_variances(cells, cells, of_noise).sum())
            case Family.PREFIX:
                return float(self.range_variances(np.zeros_like(cells), cells, of_noise).sum())
            case Family.LISTED:
                return float(
                    workload.weights @ self.range_variances(workload.starts, workload.ends, of_noise)
                )
            case Family.ALL_RANGES:
                return self._of_all_ranges(of_noise)

    def _of_all_ranges(self, of_noise: FloatArray | None) -> float:
        """Σ over pairs i < j of cuts 0 … k: of (a_j − a_i)(b_j − b_i) it is (k+1)·a·b − Σa·Σb."""
        hats = None if of_noise is None else of_noise[: self._hats]
        together, of_total = self._shared(of_noise)
        cuts, response = self._shape.cells + 1, self._response
        squares = cuts * float(response @ response) - float(response.sum()) ** 2
        mixed = cuts * float(response @ together) - float(response.sum() * together.sum())
        known = self._solver.total_variance(LineWorkload.all_ranges(), hats)
        return known + 2.0 * mixed + squares * of_total

    def _shared(self, of_noise: FloatArray | None) -> tuple[FloatArray, float]:
        """The covariance of every cut's D·η with n̂'s error, and the variance of the latter."""
        if of_noise is None:
            return np.zeros(self._shape.cells + 1), self._variance
        weighted = self._coefficients * of_noise
        inner = self._solver.decode(weighted[: self._hats], 0)
        return np.concatenate(([0.0], inner, [0.0])), float(weighted @ self._coefficients)


@final
@dataclass(frozen=True, eq=False)
class PresenceLine(LinePlan):
    """Hats and a noisy total with noise of scale K/(w·ε), then least squares for cuts and total.

    *Guarantee*: ε-Blowfish with presence hidden (docs/proofs/optimized.md, Theorem 4). *Error*: exact for the
    discrete noise at any ε (Theorem 5); at k = 64 at most 29 % above gradient descent on a dense matrix. No
    answer is exact.
    """

    workload: LineQuestions
    graph: PolicyGraph
    strategy: HatsAndTotal
    name: str = "Optimized line strategy"

    @property
    def scales(self) -> UnitScales:
        return self.strategy.scales

    @cached_property
    def solver(self) -> TotalSolver:
        """Least squares for noise in the continuous limit: the decoder does not depend on ε."""
        return TotalSolver(self.strategy.shape, 2.0 * self.scales.floats() ** 2)

    def measure(self, x: IntArray) -> Numbers:
        return self.strategy.measure(x)

    def decode(self, measured: Numbers, x: IntArray) -> Numbers:
        """Of ``x`` nothing is used: no total is public."""
        return self.spread(measured)

    def cut_errors(self, noise: Numbers) -> FloatArray:
        return self.solver.cuts(noise)

    @cached_property
    def exact(self) -> BoolArray:
        return np.zeros(self.workload.count, dtype=np.bool_)

    @property
    def one_to_one(self) -> bool:
        return False

    def variances(self, of_noise: FloatArray) -> FloatArray:
        return self.solver.range_variances(*self.ends, of_noise)

    def total_variance(self, of_noise: FloatArray) -> float:
        return self.solver.total_variance(_asked(self.workload), of_noise)

    def largest_variance(self, of_noise: FloatArray) -> float:
        """Many ranges are not gone through: the two ends of the worst one err by at most twice a prefix."""
        if not self.many:
            return float(self.variances(of_noise).max())
        cells = np.arange(self.workload.size)
        return 4.0 * float(self.solver.range_variances(np.zeros_like(cells), cells, of_noise).max())

    def rows(self, *, epsilon: AnyEpsilon) -> tuple[csr_array, list[Fraction]]:
        return self.strategy.rows(), self.scales.fractions(positive(epsilon))

    def explain(self) -> str:
        spent = map(mul, self.strategy.shape.hats, self.strategy.hats)
        words = [*self.strategy.shape.describe(), *(["the total"] if self.strategy.total else [])]
        shares = [cost / self.strategy.column for cost in (*spent, self.strategy.total)]
        measured = "; ".join(f"{what}: {share:.1%}" for what, share in zip(words, shares, strict=False))
        return f"Measures {measured} of the budget, and combines all by least squares; no total is public."


def line_with_total(
    workload: LineQuestions | Balances, graph: PolicyGraph, strategy: HatsAndTotal
) -> PresenceLine | BalancesPlan:
    """The plan that a strategy makes; balances are read off both sides of every cut."""
    if isinstance(workload, Balances):
        inner = PresenceLine(both_sides(workload.size), graph, strategy)
        return BalancesPlan(workload, graph, inner)
    return PresenceLine(workload, graph, strategy)


def for_a_part(workload: LineQuestions | Balances, graph: PolicyGraph) -> PresenceLine | BalancesPlan | None:
    """A plan for one of several parts of the rows, which pass from one part to another.

    Who leaves a part changes its column and enters another; who moves inside changes at most two. Weights are
    chosen for the column alone, so that leaving loses about half of what moving inside does, and two parts
    together lose no more than one. The sensitivity is the exact one of all moves, as always.
    """
    ends = graph.counted.right_ends()
    if not graph.absent or ends is None or ends.size < 2:
        return None
    reach = ends - np.arange(ends.size)
    strategy = design_with_total(workload, np.zeros_like(reach))
    return line_with_total(workload, graph, replace(strategy, reach=reach))


@lru_cache(maxsize=64)
def beside_parts(
    workload: LineQuestions | Balances, graph: PolicyGraph
) -> PresenceLine | BalancesPlan | None:
    """A plan for all rows beside plans for their parts, which lose on every move from part to part.

    There this plan loses what moving along the line costs; where someone leaves altogether the parts lose
    half as much, and this one may lose more. So its column counts for half while weights are chosen.
    """
    ends = graph.counted.right_ends()
    if not graph.absent or ends is None or ends.size < 2:
        return None
    strategy = design_with_total(workload, ends - np.arange(ends.size), counted=2)
    return line_with_total(workload, graph, replace(strategy, counted=1))


# --- choosing shape and shares ------------------------------------------------------------------


def design_with_total(workload: LineQuestions | Balances, reach: IntArray, counted: int = 1) -> HatsAndTotal:
    """A strategy for ``workload`` on a line of at least two cells that reach so far to the right, and ⊥."""
    listed = isinstance(workload, Balances) and workload.size <= _LISTED  # of long lines some are looked at
    less = less_of_total(workload) if isinstance(workload, Balances) and listed else 0.0
    return HatsAndTotal.rounded(*_Search(_asked(workload), reach, less, counted).run(), counted)


def _asked(workload: LineQuestions | Balances) -> LineWorkload:
    """The questions, each as often as it is asked: no range is free because it is the whole line."""
    if isinstance(workload, Balances) and workload.size <= _LISTED:
        sides = both_sides(workload.size)
        return LineWorkload.listed(sides.starts, sides.ends, squares_of_sides(workload))
    if workload.one_per_cell:
        return LineWorkload.identity()
    if workload.every_range:
        return LineWorkload.all_ranges()
    if isinstance(workload, Ranges):
        return LineWorkload.listed(workload.starts, workload.ends)
    return LineWorkload.prefix()


@final
class _Search:
    """Compares hats of one, two and three strides, with and without the total, by their exact error."""

    def __init__(self, workload: LineWorkload, reach: IntArray, less: float, counted: int) -> None:
        self._cells, self._reach, self._counted = len(reach), reach, counted
        self._farthest = int(reach.max(initial=0))
        self._less = less  # of the variance of the total, which errors on both sides of a cut share
        self._workload = probe(workload, self._cells, self._cells, 1)
        self._left = max(_FEWEST, min(_MOST, _PER_CELL * self._cells, _WORK // self._cells))
        self._systems: dict[Shape, System] = {}
        self._seen: list[tuple[float, Shape, FloatArray]] = []

    def run(self) -> tuple[Shape, IntArray, FloatArray]:
        """The best shape, and its shares of the column."""
        for shape in (*self._by_rule(), *self._two_strides()):
            self._start(shape)
        for shape in self._three_strides(self._best[1]):
            self._start(shape)
        for error, shape, shares in sorted(self._seen, key=lambda tried: tried[0])[:_FINALISTS]:
            self._tune(error, shape, shares)
        _, shape, shares = self._best
        return shape, self._reach, shares

    @property
    def _best(self) -> tuple[float, Shape, FloatArray]:
        return min(self._seen, key=lambda tried: tried[0])

    def _by_rule(self) -> Iterator[Shape]:
        """About equal branchings from the cells to the whole line, likely numbers of levels first."""
        ideal = math.log(self._cells) / _LOG_BRANCHING
        levels = sorted(range(2, 6), key=lambda number: abs(number - ideal))
        yield from (Shape(self._cells, nested_strides(self._cells, number)[:-1]) for number in levels)

    def _two_strides(self) -> Iterator[Shape]:
        """The cells alone, and with hats of strides in half octaves, likely ones first."""
        yield Shape(self._cells, (1,))
        octaves = range(2, 2 * math.floor(math.log2(self._cells)) + 1)
        strides = sorted({round(2 ** (half / 2)) for half in octaves}, key=self._unlikely)
        yield from (Shape(self._cells, (1, stride)) for stride in strides)

    def _unlikely(self, stride: int) -> float:
        """How far from the rule: six times the reach, and more on a long line."""
        return abs(math.log(stride / max(6 * self._farthest, math.sqrt(self._cells))))

    def _three_strides(self, best: Shape) -> Iterator[Shape]:
        coarsest = best.hats[-1]
        if coarsest > 1:
            longer = (coarsest * times for times in (2, 4, 8, 16))
            yield from (Shape(self._cells, (1, coarsest, one)) for one in longer if one <= self._cells)

    def _start(self, shape: Shape) -> None:
        """A worst move that costs what ⊥ costs, if that can be; nothing extra for the total, and some."""
        strides = np.array(shape.hats, dtype=np.float64)
        along = np.minimum(2.0, 2.0 * self._farthest / strides)  # what a move costs, per share of the column
        column = np.ones(len(strides))
        if len(strides) > 1 and along[1:].max() < 1.0:
            column[0] = (1.0 - along[1:]).sum()
        column /= column.sum()
        for extra in (0.0, 0.25):
            self._error(shape, np.append(column, extra))

    def _tune(self, error: float, shape: Shape, shares: FloatArray) -> None:
        """One share after the other, up and down by a factor that shrinks."""
        factor = 2.0
        while factor > _SETTLED and self._left > 0:
            improved = False
            for which in np.flatnonzero(shares)[1:]:  # only their ratios count
                for times in (factor, 1.0 / factor):
                    moved = shares.copy()
                    moved[which] *= times
                    tried = self._error(shape, moved)
                    if tried < error:
                        error, shares, improved = tried, moved, True
                        break
            factor = factor if improved else math.sqrt(factor)

    def _error(self, shape: Shape, shares: FloatArray) -> float:
        if self._left <= 0 and self._seen:
            return math.inf
        self._left -= 1
        strategy = HatsAndTotal.rounded(shape, self._reach, shares, self._counted)
        system = self._systems.setdefault(shape, System(shape))
        variances = 2.0 * strategy.scales.floats() ** 2
        solver = TotalSolver(shape, variances, system=system)
        error = solver.total_variance(self._workload)
        if self._less:
            whole = np.array([0]), np.array([self._cells - 1])
            error -= self._less * float(solver.range_variances(*whole)[0])
        self._seen.append((error, shape, shares))
        return error
