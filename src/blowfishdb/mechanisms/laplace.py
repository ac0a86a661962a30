"""Laplace: independent noise on the questions themselves, or on the cells."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal, final

import numpy as np
from scipy.sparse import csr_array

from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray
from blowfishdb.core.budget import AnyEpsilon, positive
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.sensitivity import scaled_sensitivity
from blowfishdb.core.workloads import Histogram, Workload
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.linear.cost import component_sums, invariant_components, unchanging_rows
from blowfishdb.mechanisms.linear.strategy import UnitScales
from blowfishdb.mechanisms.plan import Mechanism, Plan, shown

TIED = "One hidden move, with those of others that known counts force to follow,"
"""What neighbours differ by where something is known."""


@final
@dataclass(frozen=True)
class Laplace(Mechanism):
    """Noise of scale S/ε on every question, S the policy-specific sensitivity ([B14] Thm 5.1).

    ``on="workload"`` measures the questions, ``on="cells"`` the histogram, from which the questions
    are then computed; without a choice the smaller squared error wins. Where no edge of the policy
    changes an answer, it is exact and free.

    Guarantee: ε-Blowfish for every graph. Error: 2S²/ε² per question (in the continuous limit).

    >>> plan = bf.mechanisms.Laplace().plan(bf.workloads.Histogram(10), bf.graphs.Full(10))
    >>> plan.epsilon_for(alpha=20, beta=0.05)
    Epsilon('0.513864852')
    """

    on: Literal["workload", "cells"] | None = None

    def plan(self, workload: Workload, graph: PolicyGraph) -> Plan:
        if self.on == "workload" or workload.one_per_cell:
            return LaplaceOnWorkload(workload, graph)
        if self.on == "cells":
            return LaplaceOnCells(workload, graph)
        plans = (LaplaceOnWorkload(workload, graph), LaplaceOnCells(workload, graph))
        return min(plans, key=lambda plan: plan.squared_error(epsilon=1))


@final
@dataclass(frozen=True, eq=False)
class LaplaceOnWorkload(Plan):
    """y = W·x + η, with η_i of scale S(W, G)/ε on every answer that an edge can change.

    ``tied``: the sensitivity where known counts force several records to move at once, in place of S(W, G).
    Never 0: what nothing changes is planned for a policy without edges, so that it is known what it tells.
    """

    workload: Workload
    graph: PolicyGraph
    name: str = "Laplace on the questions"
    tied: int | None = None

    @cached_property
    def sensitivity(self) -> int:
        """S(W, G) in units of the workload's grid."""
        return scaled_sensitivity(self.workload, self.graph) if self.tied is None else self.tied

    @cached_property
    def exact(self) -> BoolArray:
        """Everything, where nothing that stays hidden changes any answer."""
        return np.ones(self.workload.count, dtype=np.bool_) if self.sensitivity == 0 else super().exact

    @cached_property
    def _unchanging(self) -> BoolArray:
        return unchanging_rows(self.workload, self.graph)

    @cached_property
    def scales(self) -> UnitScales:
        return UnitScales((Fraction(self.sensitivity), Fraction(0)), self._unchanging.astype(np.int64))

    @property
    def one_to_one(self) -> bool:
        return self.workload.denominator == 1

    def measure(self, x: IntArray) -> Numbers:
        if self.workload.denominator == 1:
            return self.workload.answer(x)
        return np.asarray(self.workload.sparse() @ x)

    def decode(self, measured: Numbers, x: IntArray) -> Numbers:
        return self.spread(measured)

    def spread(self, noise: Numbers) -> Numbers:
        return noise if self.workload.denominator == 1 else noise / self.workload.denominator

    def variances(self, of_noise: FloatArray) -> FloatArray:
        return of_noise / self.workload.denominator**2

    def rows(self, *, epsilon: AnyEpsilon) -> tuple[csr_array, list[Fraction]]:
        noisy = np.flatnonzero(~self._unchanging)
        scale = self.sensitivity / positive(epsilon).fraction
        return csr_array(self.workload.sparse()[noisy]), [scale] * noisy.size

    def explain(self) -> str:
        free = int(self._unchanging.sum())
        if self.free:
            return "No pair of values that the policy hides changes any answer: all are exact and free."
        each = shown(Fraction(self.sensitivity, self.workload.denominator))
        how = "One hidden move" if self.tied is None else TIED
        if self.workload.count == 1:
            return f"{how} changes the answer by at most {each}."
        text = f"{how} changes the {self.workload.count:,} answers by at most {each} in total"
        if not free:
            return f"{text}."
        return (
            f"{text}; {'one never changes and is' if free == 1 else f'{free:,} never change and are'} exact."
        )


@final
@dataclass(frozen=True, eq=False)
class LaplaceOnCells(Plan):
    """x̂ = x + η with η_j of scale S(I, G)/ε, shifted so that invariant totals hold; answers W·x̂.

    Totals of the graph's components never change along an edge, so they are exact; spreading the
    excess evenly over a component is the least-squares correction.
    """

    workload: Workload
    graph: PolicyGraph
    name: str = "Laplace on the cells"
    tied: int | None = None

    @cached_property
    def sensitivity(self) -> int:
        """S(I, G): 2, or 1 if records only come and go, or 0 without edges; more where records are tied."""
        if self.tied is not None:
            return self.tied
        return scaled_sensitivity(Histogram(self.workload.size), self.graph)

    @cached_property
    def exact(self) -> BoolArray:
        """Everything, where nothing that stays hidden changes any cell."""
        return np.ones(self.workload.count, dtype=np.bool_) if self.sensitivity == 0 else super().exact

    @cached_property
    def _components(self) -> Bins | None:
        return invariant_components(self.graph)

    @cached_property
    def scales(self) -> UnitScales:
        alone = unchanging_rows(Histogram(self.workload.size), self.graph)
        return UnitScales((Fraction(self.sensitivity), Fraction(0)), alone.astype(np.int64))

    @property
    def one_to_one(self) -> bool:
        return False

    def measure(self, x: IntArray) -> Numbers:
        return x

    def decode(self, measured: Numbers, x: IntArray) -> Numbers:
        if self._components is None:
            return self.workload.answer(measured)
        estimated = self.workload.answer(self._corrected(measured, component_sums(x, self._components)))
        return np.where(self.exact, self.workload.answer(x), estimated)  # exact, and not only up to rounding

    def spread(self, noise: Numbers) -> Numbers:
        if self._components is None:
            return self.workload.answer(noise)
        spread = self.workload.answer(self._corrected(noise, np.zeros(self._components.count)))
        return np.where(self.exact, 0.0, spread)

    def _corrected(self, cells: Numbers, totals: Numbers) -> Numbers:
        assert self._components is not None
        sums = component_sums(cells, self._components)
        if self._components.count == 1:
            return np.asarray(cells - (sums - totals) / self.workload.size)
        labels = self._components.assignment()
        return np.asarray(cells - ((sums - totals) / np.bincount(labels))[..., labels])

    def variances(self, of_noise: FloatArray) -> FloatArray:
        """v·Σ_c (Σ_j W²_ij − (Σ_j W_ij)²/|c|): a component's correction removes its mean."""
        common = float(of_noise.max(initial=0.0))
        squares = self._squared_row_sums()
        if self._components is None:
            return np.asarray(common * squares)
        if self._components.count == 1:
            sums = np.asarray(self.workload.answer(np.ones(self.workload.size)), dtype=np.float64)
            return np.asarray(np.maximum(0.0, common * (squares - sums**2 / self.workload.size)))
        sums = self._component_row_sums(self._components)
        sizes = np.bincount(self._components.assignment())
        return np.asarray(np.maximum(0.0, common * (squares - (sums**2 / sizes).sum(axis=1))))

    def _squared_row_sums(self) -> FloatArray:
        if self.workload.binary:
            return np.asarray(self.workload.answer(np.ones(self.workload.size)), dtype=np.float64)
        rows = self.workload.sparse().astype(np.float64) / self.workload.denominator
        return np.asarray((rows**2).sum(axis=1))

    def _component_row_sums(self, components: Bins) -> FloatArray:
        members = _membership(components)
        rows = self.workload.sparse().astype(np.float64) / self.workload.denominator
        return np.asarray((rows @ members).toarray())

    def rows(self, *, epsilon: AnyEpsilon) -> tuple[csr_array, list[Fraction]]:
        noisy = np.flatnonzero(self.scales.which == 0)
        scale = self.sensitivity / positive(epsilon).fraction
        return csr_array(Histogram(self.workload.size).sparse()[noisy]), [scale] * noisy.size

    def explain(self) -> str:
        how = "one hidden move" if self.tied is None else f"{TIED[0].lower()}{TIED[1:]}"
        return (
            f"The {self.workload.size:,} cells are measured once ({how} changes them by "
            f"{self.sensitivity} in total) and the answers computed from them."
        )


def _membership(components: Bins) -> csr_array:
    labels = components.assignment()
    return csr_array(
        (np.ones(labels.size), (np.arange(labels.size), labels)), shape=(labels.size, components.count)
    )
