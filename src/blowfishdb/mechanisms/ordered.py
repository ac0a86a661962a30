"""Ordered: every prefix count with the noise of a single count, where people move one cell at a time."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np
from scipy.sparse import csr_array

from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray
from blowfishdb.core.budget import AnyEpsilon, positive
from blowfishdb.core.errors import NotProven, SizeMismatch
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.workloads import AllRanges, Cumulative, Workload
from blowfishdb.core.workloads.base import Numbers, interval_rows
from blowfishdb.mechanisms.estimation import as_ranges, cells_over_cuts
from blowfishdb.mechanisms.least_squares import range_errors, unchanging_questions
from blowfishdb.mechanisms.plan import Mechanism, Plan
from blowfishdb.mechanisms.scales import UnitScales
from blowfishdb.mechanisms.strategy import public_cuts


@final
@dataclass(frozen=True)
class Ordered(Mechanism):
    """The ordered mechanism: noise of scale 1/ε on every prefix count ([B14] §7.1).

    *Guarantee*: ε-Blowfish where every edge joins neighbouring cells and n is public. *Sensitivity*: 1, since
    such a move changes one prefix count. *Error*: 2/ε² for a prefix, 4/ε² for a range, whatever its length
    (in the continuous limit); over all prefixes 2(k−1)/ε², which is optimal, over all ranges 2k(k−1)/ε²
    ([B14] Thm 7.1). *Theorem*: docs/proofs/ordered.md. Answers to whole-number questions are whole.
    """

    def plan(self, workload: Workload, graph: PolicyGraph) -> Plan:
        if workload.size != graph.size - graph.absent:
            raise SizeMismatch(
                f"The questions are about {workload.size:,} cells, but the policy is about "
                f"{graph.size - graph.absent:,}."
            )
        if graph.absent:
            raise NotProven(
                "The ordered mechanism needs a public number of records; this policy hides who is present.",
                fixes=("use Hierarchical() or Laplace()",),
            )
        if not joins_neighbours(graph):
            raise NotProven(
                "The ordered mechanism is proven only where hidden pairs of values are neighbours on a line.",
                fixes=("use OrderedHierarchical() for a threshold of several cells", "use Hierarchical()"),
            )
        return OrderedPlan(workload, graph)


def joins_neighbours(graph: PolicyGraph) -> bool:
    """Whether every edge joins cells u and u + 1."""
    if graph.span is not None:
        return graph.span <= 1
    return graph.edge_count < graph.size and bool((np.diff(graph.edges(), axis=1) == 1).all())


@final
@dataclass(frozen=True, eq=False)
class OrderedPlan(Plan):
    """s̃_j = x_1 + … + x_j + η_j, η_j of scale 1/ε or none where s_j is public; answers W·(s̃_j − s̃_{j−1})."""

    workload: Workload
    graph: PolicyGraph
    name: str = "Ordered"

    @cached_property
    def _public(self) -> BoolArray:
        """Which of the prefix counts s_1 … s_k are public: those that end a component."""
        public = public_cuts(self.graph, self.workload.size)
        assert public is not None  # components of a line are intervals
        return public[1:]

    @cached_property
    def scales(self) -> UnitScales:
        return UnitScales((Fraction(1), Fraction(0)), self._public.astype(np.int64))

    @property
    def one_to_one(self) -> bool:
        return isinstance(self.workload, Cumulative)

    def measure(self, x: IntArray) -> Numbers:
        return np.cumsum(x)

    def decode(self, measured: Numbers, x: IntArray) -> Numbers:
        return self.workload.answer(np.diff(measured, axis=-1, prepend=0))

    def spread(self, noise: Numbers) -> Numbers:
        errors = self.decode(noise, np.zeros(0, dtype=np.int64))
        return errors.astype(np.float64) if errors.dtype == object else errors

    def variances(self, of_noise: FloatArray) -> FloatArray:
        """The sum over the prefix counts that a question needs; a range needs two."""
        ranges = as_ranges(self.workload)
        if ranges is not None:
            of_cuts = np.append(0.0, of_noise)
            return np.asarray(of_cuts[ranges[0]] + of_cuts[ranges[1]])
        squares = self._over_prefixes.multiply(self._over_prefixes)
        return np.asarray(squares @ of_noise) / self.workload.denominator**2

    @cached_property
    def _over_prefixes(self) -> csr_array:
        """W over s_1 … s_k, times its denominator: column j is w_j − w_{j+1}."""
        over_cuts = csr_array(self.workload.sparse() @ cells_over_cuts(self.workload.size))
        return csr_array(over_cuts[:, 1:])

    def total_variance(self, of_noise: FloatArray) -> float:
        """Of all ranges: each of the k + 1 cut points is an end of k of them."""
        if isinstance(self.workload, AllRanges):
            return self.workload.size * float(of_noise.sum())
        return float(self.variances(of_noise).sum())

    def largest_variance(self, of_noise: FloatArray) -> float:
        if isinstance(self.workload, AllRanges):
            return float(np.sort(np.append(of_noise, 0.0))[-2:].sum())
        return float(self.variances(of_noise).max())

    def largest_errors(self, noise: Numbers) -> FloatArray:
        if isinstance(self.workload, AllRanges):
            return range_errors(np.diff(noise, axis=-1, prepend=0))
        return np.asarray(np.abs(self.spread(noise)).max(axis=-1), dtype=np.float64)

    @property
    def width(self) -> int:
        asked = self.workload.size if isinstance(self.workload, AllRanges) else self.workload.count
        return max(self.workload.size, asked)

    @cached_property
    def exact(self) -> BoolArray:
        return unchanging_questions(self.workload, self.graph)

    @property
    def free(self) -> bool:
        return bool(self._public.all())

    def rows(self, *, epsilon: AnyEpsilon) -> tuple[csr_array, list[Fraction]]:
        last = np.flatnonzero(~self._public).astype(np.int64)
        rows = interval_rows(self.workload.size, np.zeros_like(last), last)
        return rows, [1 / positive(epsilon).fraction] * last.size

    def explain(self) -> str:
        if self._public.all():
            return "The policy hides nothing: every answer is exact."
        return (
            f"{np.count_nonzero(~self._public):,} prefix counts are measured; moving to a neighbouring value "
            "changes one of them by one."
        )
