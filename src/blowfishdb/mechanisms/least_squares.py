"""Least squares: measure weighted integer rows, then combine them in the best linear unbiased way."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np
from scipy.sparse import csr_array

from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray
from blowfishdb.core.budget import AnyEpsilon, positive
from blowfishdb.core.errors import SizeMismatch
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.workloads import AllRanges, Cumulative, Workload
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.cut_estimation import CutLeastSquares
from blowfishdb.mechanisms.estimation import DenseLeastSquares, Estimator, anchored, as_ranges
from blowfishdb.mechanisms.invariants import unchanging_rows
from blowfishdb.mechanisms.plan import Plan, shown
from blowfishdb.mechanisms.scales import UnitScales
from blowfishdb.mechanisms.strategy import Contrasts, Strategy, public_cuts

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
        if not workload.size == strategy.size == graph.size - graph.absent:
            raise SizeMismatch(
                f"The questions are about {workload.size:,} cells, the rows about {strategy.size:,}, and the "
                f"policy about {graph.size - graph.absent:,}."
            )
        kept = np.flatnonzero(~strategy.unchanging(graph))
        if estimator is None:
            strategy = strategy if kept.size == len(strategy) else strategy.take(kept)
            estimator = least_squares(strategy, graph)
        elif kept.size < len(strategy):
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
        if isinstance(self.workload, AllRanges) and self.workload.count > _LISTED:
            prefixes = self.estimator.variances(Cumulative(self.workload.size), of_noise)
            return 4.0 * float(prefixes.max())
        return float(self.variances(of_noise).max())

    def largest_errors(self, noise: Numbers) -> FloatArray:
        """Of all ranges: the largest prefix error less the smallest."""
        if isinstance(self.workload, AllRanges):
            return range_errors(self.estimator.spread(noise))
        return np.asarray(np.abs(self.spread(noise)).max(axis=-1))

    @property
    def width(self) -> int:
        asked = self.workload.size if isinstance(self.workload, AllRanges) else self.workload.count
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
    ranges, public = as_ranges(workload), public_cuts(graph, workload.size)
    if ranges is not None and public is not None:
        return np.asarray(public[ranges[0]] & public[ranges[1]])
    if graph.absent and not workload.binary:  # negative entries count as well
        rows = workload.sparse()
        rows.eliminate_zeros()
        return np.asarray(np.diff(rows.indptr) == 0)
    return unchanging_rows(workload, graph)
