"""Hierarchical and Privelet: trees over a line of cells, the classical answers to ranges.

Least squares: measure weighted integer rows, then combine them in the best linear unbiased way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np
from scipy.sparse import csr_array

from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray, ceil_div, whole
from blowfishdb.core.budget import AnyEpsilon, positive
from blowfishdb.core.errors import InvalidWorkload, SizeMismatch
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.workloads import Cumulative, Workload
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.linear.cost import unchanging_rows
from blowfishdb.mechanisms.linear.cuts import CutLeastSquares
from blowfishdb.mechanisms.linear.estimators import DenseLeastSquares, Estimator, anchored
from blowfishdb.mechanisms.linear.strategy import Contrasts, Strategy, UnitScales, public_cuts, tree_nodes
from blowfishdb.mechanisms.plan import Mechanism, Plan, shown

_LISTED = 10**6


@final
@dataclass(frozen=True, eq=False, init=False)
class LeastSquaresPlan(Plan):
    """y_r = a_r·x + η_r with η_r of scale K/(w_r·ε); answers W·x̂, x̂ the weighted least-squares estimate.

    *Guarantee*: ε-Blowfish for every graph, since K is the exact maximum over its edges of Σ_r
    w_r·|a_r·(e_u−e_v)|. *Error*: aᵀ(AᵀΛA)⁻¹a·2K²/ε² for a question a, Λ = diag(w²), in the continuous limit;
    ``squared_errors`` is exact for the discrete noise. *Theorem*: docs/proofs/least_squares.md. Totals that
    no edge changes are used exactly; where the policy hides presence there are none. Another unbiased
    ``estimator`` may replace least squares.
    """

    workload: Workload
    graph: PolicyGraph
    strategy: Strategy
    estimator: Estimator
    name: str
    reason: str

    def __init__(
        self,
        workload: Workload,
        graph: PolicyGraph,
        strategy: Strategy,
        *,
        name: str = "Least squares",
        reason: str = "",
        estimator: Estimator | None = None,
    ) -> None:
        if not workload.size == strategy.size == graph.counted.size:
            raise SizeMismatch(
                f"The questions are about {workload.size:,} cells, the rows about {strategy.size:,}, and the "
                f"policy about {graph.counted.size:,}."
            )
        changing = np.flatnonzero(~strategy.unchanging(graph))
        if estimator is None:
            strategy = strategy if changing.size == len(strategy) else strategy.take(changing)
            estimator = least_squares(strategy, graph)
        elif changing.size < len(strategy):
            raise SizeMismatch(
                "An estimator of one's own needs rows that the policy hides, without exception."
            )
        for field, value in {
            "workload": workload,
            "graph": graph,
            "strategy": strategy,
            "estimator": estimator,
            "name": name,
            "reason": reason,
        }.items():
            object.__setattr__(self, field, value)

    @cached_property
    def cost(self) -> int:
        """K, exact."""
        return self.strategy.cost(self.graph)

    @cached_property
    def scales(self) -> UnitScales:
        return UnitScales.from_weights(self.cost, self.strategy.weights)

    @property
    def one_to_one(self) -> bool:
        return False

    @cached_property
    def _unchanging(self) -> BoolArray:
        return unchanging_questions(self.workload, self.graph)

    def measure(self, x: IntArray) -> Numbers:
        return self.strategy.answer(x)

    def decode(self, measured: Numbers, x: IntArray) -> Numbers:
        answers = self.workload.answer(self.estimator.estimate(measured, x))
        public = self.workload.answer(
            anchored(x, self.graph)
        )  # a constant on components needs only their totals
        return np.where(self._unchanging, public, answers)

    def spread(self, noise: Numbers) -> Numbers:
        spread = np.asarray(self.workload.answer(self.estimator.spread(noise)), dtype=np.float64)
        return np.where(self._unchanging, 0.0, spread)

    def variances(self, of_noise: FloatArray) -> FloatArray:
        return np.where(self._unchanging, 0.0, self.estimator.variances(self.workload, of_noise))

    def total_variance(self, of_noise: FloatArray) -> float:
        return self.estimator.total_variance(self.workload, of_noise)

    def largest_variance(self, of_noise: FloatArray) -> float:
        """Two ends of a range err by at most four times the worst prefix: all ranges need not be listed."""
        if self.workload.every_range and self.workload.count > _LISTED:
            prefixes = self.estimator.variances(Cumulative(self.workload.size), of_noise)
            return 4.0 * float(prefixes.max())
        return float(self.variances(of_noise).max())

    def largest_errors(self, noise: Numbers) -> FloatArray:
        """Of all ranges: the largest prefix error less the smallest."""
        if self.workload.every_range:
            return range_errors(self.estimator.spread(noise))
        return np.asarray(np.abs(self.spread(noise)).max(axis=-1))

    @property
    def width(self) -> int:
        asked = self.workload.size if self.workload.every_range else self.workload.count
        return max(len(self.scales), self.workload.size, asked)

    @cached_property
    def exact(self) -> BoolArray:
        return self._unchanging

    @property
    def free(self) -> bool:
        return not len(self.strategy)

    def rows(self, *, epsilon: AnyEpsilon) -> tuple[csr_array, list[Fraction]]:
        return self.strategy.sparse(), self.scales.fractions(positive(epsilon))

    def explain(self) -> str:
        if not len(self.strategy):
            return (
                "No pair of values that the policy hides changes any measured count: every answer is exact."
            )
        each = shown(Fraction(self.cost, int(self.strategy.weights.max())))
        text = f"{len(self.strategy):,} counts are measured; one hidden move changes them by {each} in total"
        even = len(self.scales.distinct) == 1
        return f"{self.reason} {text}{'' if even else ', weighted by their shares of the budget'}.".strip()


def range_errors(cells: Numbers) -> FloatArray:
    """The largest |error| of a range from the errors of the cells: max − min of the prefix errors, with 0."""
    prefixes = np.cumsum(cells, axis=-1)
    return np.asarray(
        np.maximum(prefixes.max(axis=-1), 0) - np.minimum(prefixes.min(axis=-1), 0), dtype=np.float64
    )


def least_squares(strategy: Strategy, graph: PolicyGraph) -> Estimator:
    """By sparse elimination where rows and components are intervals of a line, otherwise by dense algebra."""
    public = public_cuts(graph, strategy.size)
    if isinstance(strategy, Contrasts) and public is not None:
        return CutLeastSquares(strategy, public)
    return DenseLeastSquares(strategy, graph)


def unchanging_questions(workload: Workload, graph: PolicyGraph) -> BoolArray:
    """The questions that no edge changes; ranges are decided by their two cut points."""
    ranges, public = workload.intervals(), public_cuts(graph, workload.size)
    if ranges is not None and public is not None:
        return np.asarray(public[ranges[0]] & public[ranges[1]])
    if graph.absent and not workload.binary:  # negative entries count as well
        rows = workload.sparse()
        rows.eliminate_zeros()
        return np.asarray(np.diff(rows.indptr) == 0)
    return unchanging_rows(workload, graph)


_LOG_BRANCHING = 3.0  # L levels over k cells err like L³·k^{1/L}: best near k^{1/L} = e³


@final
@dataclass(frozen=True)
class Hierarchical(Mechanism):
    """H_b: every node of a tree with the same noise, combined by least squares (Hay et al. 2010, [B14] §7.2).

    The root is measured only where presence is hidden; otherwise n is public. Without a ``fanout`` the exact
    error decides.

    *Guarantee*: ε-Blowfish for every graph. *Sensitivity*: K, the exact maximum over edges; 2h under the full
    policy for a tree of height h, h + 1 if records only come and go. *Error*: O(h²) nodes' worth, exact by
    least squares. *Theorem*: docs/proofs/hierarchical.md.

    >>> questions, policy = bf.workloads.AllRanges(64), bf.graphs.Full(64)
    >>> round(bf.mechanisms.Hierarchical().plan(questions, policy).squared_error(epsilon=1))
    85
    """

    fanout: int | None = None

    def __post_init__(self) -> None:
        check_fanout(self.fanout)

    def plan(self, workload: Workload, graph: PolicyGraph) -> Plan:
        if self.fanout is not None:
            return _tree_plan(workload, graph, self.fanout)
        return best_fanout(workload.size, lambda fanout: _tree_plan(workload, graph, fanout))


def _tree_plan(workload: Workload, graph: PolicyGraph, fanout: int) -> LeastSquaresPlan:
    root = np.zeros(1, dtype=np.int64), np.full(1, workload.size, dtype=np.int64)
    starts, stops = tree_nodes(*root, fanout)
    if graph.absent or workload.size == 1:
        starts, stops = np.append(root[0], starts), np.append(root[1], stops)
    strategy = Contrasts(workload.size, starts, stops, np.ones(starts.size, dtype=np.int64))
    reason = f"A tree of counts in which every node has up to {fanout:,} children."
    return LeastSquaresPlan(workload, graph, strategy, name=f"Hierarchical, fan-out {fanout}", reason=reason)


@final
@dataclass(frozen=True)
class Privelet(Mechanism):
    """Haar wavelets (Xiao, Wang and Gehrke 2010), as whole numbers: left half minus right half of every node.

    The published noise λ/W(c) on a coefficient c = (left − right)/|node| with weight W(c) = |node| is noise λ
    on the whole number left − right: all rows have weight one. The base coefficient is n, measured only where
    presence is hidden. Halves differ by at most one cell, so no cell is made up where k is not a power of
    two.

    *Guarantee*: ε-Blowfish for every graph. *Sensitivity*: K, exact; 2·⌈log₂ k⌉ under the full policy, 1 +
    ⌈log₂ k⌉ if records only come and go (the paper's ρ). *Error*: O(log² k) coefficients' worth; k − 1 rows
    and n determine the cells, so least squares is the inverse transform. *Theorem*:
    docs/proofs/hierarchical.md.

    >>> questions, policy = bf.workloads.AllRanges(64), bf.graphs.Full(64)
    >>> round(bf.mechanisms.Privelet().plan(questions, policy).squared_error(epsilon=1))
    250
    """

    def plan(self, workload: Workload, graph: PolicyGraph) -> Plan:
        size = workload.size
        nodes = tree_nodes(np.zeros(1, dtype=np.int64), np.full(1, size, dtype=np.int64), 2)
        starts, stops = np.append(0, nodes[0]), np.append(size, nodes[1])
        wide = stops - starts > 1
        low, high = starts[wide], stops[wide]
        middle = low + (high - low) // 2
        plus, minus = (low, middle), (middle, high)
        if graph.absent or size == 1:
            plus = np.append(0, plus[0]), np.append(size, plus[1])
            minus = np.append(0, minus[0]), np.append(0, minus[1])
        strategy = Contrasts(size, *plus, np.ones(plus[0].size, dtype=np.int64), minus=minus)
        reason = "Every interval of a binary tree is measured as its left half minus its right half."
        return LeastSquaresPlan(workload, graph, strategy, name="Privelet", reason=reason)


def check_fanout(fanout: int | None) -> None:
    """A number of children, at least two."""
    if fanout is not None and whole(fanout, "A fan-out", InvalidWorkload) < 2:
        raise InvalidWorkload(
            "A tree needs at least two children per node.", fixes=("choose a fan-out such as 16",)
        )


def best_fanout(span: int, plan: Callable[[int], LeastSquaresPlan]) -> LeastSquaresPlan:
    """The plan of least exact error: from the usual height, higher or lower as long as that improves."""
    heights = {fanout_for(span, height): height for height in range(max(1, (span - 1).bit_length()), 0, -1)}
    fanouts = sorted(heights)
    start = min(fanouts, key=lambda f: abs(heights[f] - math.log(span) / _LOG_BRANCHING))
    best = plan(start)
    for step in (1, -1):
        for index in _onwards(fanouts.index(start), step, len(fanouts)):
            candidate = plan(fanouts[index])
            if candidate.unit_error >= best.unit_error:
                break
            best = candidate
    return best


def _onwards(place: int, step: int, count: int) -> Iterator[int]:
    place += step
    while 0 <= place < count:
        yield place
        place += step


def fanout_for(span: int, height: int) -> int:
    """The least fan-out, at least two, with which ``height`` levels cover ``span`` cells."""
    fanout = max(2, math.floor(span ** (1 / height)))
    while fanout**height < span:
        fanout += 1
    return int(fanout)


def height_for(span: int, fanout: int) -> int:
    """⌈log_fanout span⌉ in whole numbers."""
    height = 0
    while span > 1:
        span, height = ceil_div(span, fanout), height + 1
    return height


def blocks(size: int, width: int) -> tuple[IntArray, IntArray]:
    """Intervals of ``width`` cells, the last possibly shorter."""
    starts = np.arange(0, size, width, dtype=np.int64)
    return starts, np.minimum(starts + width, size)
