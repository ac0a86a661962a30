"""Least squares: measure weighted integer rows, then combine them in the best linear unbiased way."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np
from scipy.sparse import csr_array

from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray
from blowfishdb.core.budget import positive
from blowfishdb.core.errors import SizeMismatch
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.workloads import Workload
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.cut_estimation import CutLeastSquares
from blowfishdb.mechanisms.estimation import DenseLeastSquares, Estimator, anchored, as_ranges
from blowfishdb.mechanisms.invariants import unchanging_rows
from blowfishdb.mechanisms.plan import AnyEpsilon, Plan
from blowfishdb.mechanisms.scales import UnitScales
from blowfishdb.mechanisms.strategy import Contrasts, Strategy, public_cuts


@final
@dataclass(frozen=True, eq=False, init=False)
class LeastSquaresPlan(Plan):
    """y_r = a_r·x + η_r with η_r of scale K/(w_r·ε); answers W·x̂, x̂ the weighted least-squares estimate.

    *Guarantee*: ε-Blowfish for every graph, since K is the exact maximum over its edges of Σ_r w_r·|a_r·(e_u−e_v)|.
    *Error*: aᵀ(AᵀΛA)⁻¹a·2K²/ε² for a question a, Λ = diag(w²), in the continuous limit; ``squared_errors`` is exact
    for the discrete noise. *Theorem*: docs/proofs/least_squares.md. Totals that no edge changes are used exactly;
    where the policy hides presence there are none. Another unbiased ``estimator`` may replace least squares.
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
                f"The questions are about {workload.size:,} cells, the rows about {strategy.size:,}, and the policy "
                f"about {graph.size - graph.absent:,}."
            )
        kept = np.flatnonzero(~strategy.unchanging(graph))
        if estimator is None:
            strategy = strategy if kept.size == len(strategy) else strategy.take(kept)
            estimator = least_squares(strategy, graph)
        elif kept.size < len(strategy):
            raise SizeMismatch("An estimator of one's own needs rows that the policy hides, without exception.")
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
        public = self.workload.answer(anchored(x, self.graph))  # a constant on components needs only their totals
        return np.where(self._unchanging, public, answers)

    def spread(self, noise: Numbers) -> Numbers:
        return np.where(self._unchanging, 0.0, self.workload.answer(self.estimator.spread(noise)))

    def variances(self, of_noise: FloatArray) -> FloatArray:
        return np.where(self._unchanging, 0.0, self.estimator.variances(self.workload, of_noise))

    @cached_property
    def unit_error(self) -> float:
        """The total squared error at ε = 1 in the continuous limit: what candidates are compared by."""
        return self.estimator.total_variance(self.workload, 2.0 * self.scales.floats() ** 2)

    def rows(self, *, epsilon: AnyEpsilon) -> tuple[csr_array, list[Fraction]]:
        return self.strategy.sparse(), self.scales.fractions(positive(epsilon))

    def explain(self) -> str:
        if not len(self.strategy):
            return "No pair of values that the policy hides changes any measured count: every answer is exact."
        weight = int(self.strategy.weights.max())
        cost = Fraction(self.cost, weight)
        each = f"{float(cost):,.4g}".removesuffix(".0")
        text = f"{len(self.strategy):,} counts are measured; one hidden move changes them by {each} in total, weighted."
        return f"{self.reason} {text}".strip()


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
