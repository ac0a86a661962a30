"""Ordered: every prefix count with the noise of a single count, where people move one cell at a time.

OrderedHierarchical: sparse prefix counts join blocks, trees answer inside them ([B14] §7.2, corrected).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal, final

import numpy as np
from scipy.sparse import csr_array

from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray
from blowfishdb.core.budget import AnyEpsilon, positive
from blowfishdb.core.errors import InvalidInput, NotProven
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.sensitivity import check_sizes
from blowfishdb.core.workloads import Workload
from blowfishdb.core.workloads.base import Numbers, interval_rows
from blowfishdb.mechanisms.hierarchical import (
    LeastSquaresPlan,
    best_fanout,
    blocks,
    check_fanout,
    height_for,
    range_errors,
    unchanging_questions,
)
from blowfishdb.mechanisms.linear.estimators import PathEstimator, cells_over_cuts
from blowfishdb.mechanisms.linear.strategy import Contrasts, UnitScales, public_cuts, tree_nodes
from blowfishdb.mechanisms.plan import Mechanism, Plan


@final
@dataclass(frozen=True)
class Ordered(Mechanism):
    """The ordered mechanism: noise of scale 1/ε on every prefix count ([B14] §7.1).

    *Guarantee*: ε-Blowfish where every edge joins neighbouring cells and n is public. *Sensitivity*: 1, since
    such a move changes one prefix count. *Error*: 2/ε² for a prefix, 4/ε² for a range, whatever its length
    (in the continuous limit); over all prefixes 2(k−1)/ε², which is optimal, over all ranges 2k(k−1)/ε²
    ([B14] Thm 7.1). *Theorem*: docs/proofs/ordered.md. Answers to whole-number questions are whole.

    >>> plan = bf.mechanisms.Ordered().plan(bf.workloads.Cumulative(100), bf.graphs.Threshold(100, 1))
    >>> plan.epsilon_for(alpha=20, beta=0.05)
    Epsilon('0.368230237')
    """

    def plan(self, workload: Workload, graph: PolicyGraph) -> Plan:
        check_sizes(workload, graph)
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
        return line_cuts(self.graph)[1:]

    @cached_property
    def scales(self) -> UnitScales:
        return UnitScales((Fraction(1), Fraction(0)), self._public.astype(np.int64))

    @property
    def one_to_one(self) -> bool:
        return self.workload.prefixes

    def measure(self, x: IntArray) -> Numbers:
        return np.cumsum(x)

    def decode(self, measured: Numbers, x: IntArray) -> Numbers:
        return self.workload.answer(np.diff(measured, axis=-1, prepend=0))

    def spread(self, noise: Numbers) -> Numbers:
        errors = self.decode(noise, np.zeros(0, dtype=np.int64))
        return errors.astype(np.float64) if errors.dtype == object else errors

    def variances(self, of_noise: FloatArray) -> FloatArray:
        """The sum over the prefix counts that a question needs; a range needs two."""
        ranges = self.workload.intervals()
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
        if self.workload.every_range:
            return self.workload.size * float(of_noise.sum())
        return float(self.variances(of_noise).sum())

    def largest_variance(self, of_noise: FloatArray) -> float:
        if self.workload.every_range:
            return float(np.sort(np.append(of_noise, 0.0))[-2:].sum())
        return float(self.variances(of_noise).max())

    def largest_errors(self, noise: Numbers) -> FloatArray:
        if self.workload.every_range:
            return range_errors(np.diff(noise, axis=-1, prepend=0))
        return np.asarray(np.abs(self.spread(noise)).max(axis=-1), dtype=np.float64)

    @property
    def width(self) -> int:
        asked = self.workload.size if self.workload.every_range else self.workload.count
        return max(self.workload.size, asked)

    @cached_property
    def exact(self) -> BoolArray:
        return unchanging_questions(self.workload, self.graph)

    @property
    def free(self) -> bool:
        """Whether no noise enters any answer: all prefix counts are public, or those that are asked for."""
        return bool(self._public.all()) or (self.unit_error == 0 and bool(self.exact.all()))

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


_UNIT = 2**20
_TOLERANCE = 0.08  # of the log-odds of the split: the error is flat around its minimum
_GOLDEN = (math.sqrt(5) - 1) / 2


@final
@dataclass(frozen=True)
class OrderedHierarchical(Mechanism):
    """Prefix counts s_i at every θ-th cell and a tree H_i of fan-out f inside every block of θ cells.

    ``split`` is ε_S/ε, the share of the prefix counts. Without a split or a fan-out the exact error decides.
    ``decoding="paper"`` adds up an S node and the tree nodes before the cut; least squares uses every row.

    *Guarantee*: ε-Blowfish for θ-lines and what lies within them, n public. *Sensitivity*: a move over at
    most θ cells changes at most one s_i and at most 2h tree nodes; S nodes get scale K/w_S and H nodes K/w_H
    with K the exact maximum over the true edges, so the worst edge loses ε and no edge more. *Error*: exact;
    O(1/ε_S² + h³f/ε_H²). *Theorem*: docs/proofs/ordered_hierarchical.md. The published budget overspends by
    up to 50 %: here H_1 is treated like every H_i, s_1 like every s_i, block totals are never measured, and n
    is not either.

    >>> questions, policy = bf.workloads.Cumulative(64), bf.graphs.Threshold(64, 4)
    >>> round(bf.mechanisms.OrderedHierarchical().plan(questions, policy).squared_error(epsilon=1))
    20
    """

    fanout: int | None = None
    decoding: Literal["least squares", "paper"] = "least squares"
    split: Fraction | float | None = None

    def __post_init__(self) -> None:
        check_fanout(self.fanout)
        if self.decoding not in ("least squares", "paper"):
            raise InvalidInput(f"The decoding is 'least squares' or 'paper', not {self.decoding!r}.")
        if self.split is not None and not 0 < self.split < 1:
            raise InvalidInput("The share of the prefix counts lies strictly between 0 and 1.")

    def plan(self, workload: Workload, graph: PolicyGraph) -> Plan:
        check_sizes(workload, graph)
        if graph.absent or graph.reach is None:
            raise NotProven(
                "The ordered hierarchical mechanism is proven for values on a line that are hidden within a "
                "distance, with a public number of records.",
                fixes=("use Hierarchical()", "use Laplace()"),
            )
        if joins_neighbours(graph):
            return Ordered().plan(workload, graph)  # ε_H = 0
        block = workload.size if graph.reach >= workload.size - 1 else graph.reach
        if self.fanout is not None:
            return self._best_split(workload, graph, block, self.fanout)
        return best_fanout(block, lambda fanout: self._best_split(workload, graph, block, fanout))

    def _best_split(
        self, workload: Workload, graph: PolicyGraph, block: int, fanout: int
    ) -> LeastSquaresPlan:
        nodes = _Nodes.of(graph, workload.size, block, fanout)
        if self.split is not None or block == workload.size:  # one block: ε_S = 0
            share = Fraction(self.split or 0).limit_denominator(_UNIT)
            return self._with_split(workload, graph, nodes, share)
        if self.decoding == "paper":
            best = nodes.paper_split(workload, graph)
            if best is not None:
                return self._with_split(workload, graph, nodes, best)

        def at(log_odds: float) -> LeastSquaresPlan:
            share = Fraction(round(_UNIT / (1 + math.exp(-log_odds))), _UNIT)
            return self._with_split(workload, graph, nodes, share)

        return _least_error(at)

    def _with_split(
        self, workload: Workload, graph: PolicyGraph, nodes: _Nodes, share: Fraction
    ) -> LeastSquaresPlan:
        strategy = nodes.divided(share)
        return LeastSquaresPlan(
            workload,
            graph,
            strategy,
            name=f"Ordered hierarchical, fan-out {nodes.fanout}"
            + (", the paper's decoding" if self.decoding == "paper" else ""),
            reason=_reason(nodes.block, nodes.prefixes, nodes.fanout, share),
            estimator=PathEstimator(strategy, line_cuts(graph)) if self.decoding == "paper" else None,
        )


@final
@dataclass(frozen=True, eq=False)
class _Nodes:
    """S nodes, which end at every ``block``-th cell, then the nodes of the trees inside the blocks."""

    size: int
    block: int
    fanout: int
    starts: IntArray
    stops: IntArray
    ordered: BoolArray
    """Which of them are S nodes."""
    prefixes: int
    """How many S nodes there are, measured or not."""

    @classmethod
    def of(cls, graph: PolicyGraph, size: int, block: int, fanout: int) -> _Nodes:
        """Without those that no hidden move changes."""
        starts, stops = blocks(size, block)
        inner = tree_nodes(starts, stops, fanout)
        ends = stops[:-1]  # s_1, s_2, …; the last one is n
        starts, stops = np.append(np.zeros_like(ends), inner[0]), np.append(ends, inner[1])
        ordered = np.arange(starts.size) < ends.size
        rows = Contrasts(size, starts, stops, np.ones(starts.size, dtype=np.int64))
        seen = np.flatnonzero(~rows.unchanging(graph))
        return cls(size, block, fanout, starts[seen], stops[seen], ordered[seen], ends.size)

    def divided(self, share: Fraction) -> Contrasts:
        """w_S : 2h·w_H = share : 1 − share, in whole numbers."""
        return self._weighted(2 * self._height * share.numerator, share.denominator - share.numerator)

    @property
    def _height(self) -> int:
        return height_for(self.block, self.fanout)

    def _weighted(self, of_prefixes: int, of_trees: int) -> Contrasts:
        weights = np.where(self.ordered, of_prefixes, of_trees).astype(np.int64)
        return Contrasts(self.size, self.starts, self.stops, weights)

    def paper_split(self, workload: Workload, graph: PolicyGraph) -> Fraction | None:
        """The share of S nodes with the least error under the paper's decoding; None if it must be searched.

        An answer then is a sum of nodes that the split has no part in, so the error of all answers is
        (A_S/w_S² + A_H/w_H²)·K², with A_S and A_H the squared coefficients in either kind of node. Where one
        edge changes as many S nodes and as many H nodes as any edge does, K = K_S·w_S + K_H·w_H whatever the
        weights, and with c_1 = K_S²·A_S, c_2 = K_H²·A_H the least error is (c_1^⅓ + c_2^⅓)³ at a share of
        c_1^⅓/(c_1^⅓ + c_2^⅓) ([B14] eq. 15, where c_1 and c_2 are bounds).
        """
        if self.ordered.all() or not self.ordered.any():
            return None
        changed = {kind: self._changed(graph, *kind) for kind in ((1, 0), (0, 1), (1, 1))}
        if changed[1, 1] < changed[1, 0] + changed[0, 1]:
            return None
        path = PathEstimator(self._weighted(1, 1), line_cuts(graph))
        roots = [
            (changed[kind] ** 2 * path.total_variance(workload, rows.astype(np.float64))) ** (1 / 3)
            for kind, rows in (((1, 0), self.ordered), ((0, 1), ~self.ordered))
        ]
        # as ``divided`` counts it: w_S : w_H = (c_1^⅓/K_S) : (c_2^⅓/K_H)
        of_prefixes = roots[0] / changed[1, 0]
        of_trees = 2 * self._height * roots[1] / changed[0, 1]
        share = Fraction(round(_UNIT * of_prefixes / (of_prefixes + of_trees)), _UNIT)
        return share if 0 < share < 1 else None

    def _changed(self, graph: PolicyGraph, of_prefixes: int, of_trees: int) -> int:
        """The most that an edge changes nodes, if those of a kind count so much each."""
        kept = np.flatnonzero(np.where(self.ordered, of_prefixes, of_trees))
        return self._weighted(1, 1).take(kept).cost(graph)


def line_cuts(graph: PolicyGraph) -> BoolArray:
    """Which cut points of a line are public: components of a line are intervals."""
    public = public_cuts(graph, graph.counted.size)
    assert public is not None
    return public


def _least_error(at: Callable[[float], LeastSquaresPlan]) -> LeastSquaresPlan:
    """Golden-section search; the error has one minimum in the split."""
    low, high = -4.5, 3.0
    inner = [at(high - _GOLDEN * (high - low)), at(low + _GOLDEN * (high - low))]
    while high - low > _TOLERANCE:
        if inner[0].unit_error <= inner[1].unit_error:
            high = low + _GOLDEN * (high - low)
            inner = [at(high - _GOLDEN * (high - low)), inner[0]]
        else:
            low = high - _GOLDEN * (high - low)
            inner = [inner[1], at(low + _GOLDEN * (high - low))]
    return min(inner, key=lambda plan: plan.unit_error)


def _reason(block: int, ordered: int, fanout: int, share: Fraction) -> str:
    trees = f"a tree of fan-out {fanout:,} inside every {block:,} cells"
    if not ordered:
        return f"The policy spans the whole line: {trees}."
    return f"Prefix counts at every {block:,} cells with {float(share):.0%} of the budget, and {trees}."
