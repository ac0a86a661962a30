"""Intervals on a line: a graph on the cut points (REUSE §1; docs/proofs/reuse.md, Theorem 2).

With p_c the number of records before cut c, a row that counts an interval measures p_hi − p_lo: an edge of
conductance 1/variance. Exact rows merge their ends (a tiny variance instead would cost digits). A question
follows iff its ends are connected, and its variance is the effective resistance between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
import scipy
from scipy.sparse import csr_array

from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.linear.cuts import Factor, NormalEquations, rounds_of_elimination
from blowfishdb.mechanisms.linear.estimators import ReleaseEstimator, RowNoise
from blowfishdb.mechanisms.reuse.stored import Intervals

_DENSE = 2_000


@final
@dataclass(frozen=True, eq=False)
class LineEstimator(ReleaseEstimator):
    """Interval questions from interval rows."""

    rows: Intervals
    noise: RowNoise
    questions: Intervals

    @property
    def count(self) -> int:
        return self.questions.count

    # --- the graph -------------------------------------------------------------------------------------

    @cached_property
    def _group(self) -> IntArray:
        """Cut points merged by exact rows."""
        exact = ~self.noise.noisy
        return _components(self.rows.size + 1, self.rows.starts[exact], self.rows.stops[exact])

    @cached_property
    def _edges(self) -> tuple[IntArray, IntArray, IntArray]:
        """Noisy rows between different groups: which rows, and their two ends."""
        low, high = self._group[self.rows.starts], self._group[self.rows.stops]
        used = np.flatnonzero(self.noise.noisy & (low != high))
        return used, low[used], high[used]

    @cached_property
    def component(self) -> IntArray:
        """The component of every cut point."""
        _, low, high = self._edges
        return _components(int(self._group.max()) + 1, low, high)[self._group]

    @property
    def determined(self) -> BoolArray:
        return np.asarray(self.component[self.questions.starts] == self.component[self.questions.stops])

    @property
    def residuals(self) -> FloatArray:
        return np.zeros(self.count)  # T is a flow between the ends: nothing is left but the ends

    @cached_property
    def _unknown(self) -> IntArray:
        """Where every cut point is in the order of elimination; −1 if grounded, one group per component."""
        groups = int(self._group.max()) + 1
        _, low, high = self._edges
        degree = np.bincount(np.concatenate((low, high)), minlength=groups)
        component = np.zeros(groups, dtype=np.int64)
        component[self._group] = self.component
        busiest = np.lexsort((-degree, component))  # grounding a hub leaves a narrow band
        free = np.ones(groups, dtype=np.bool_)
        free[busiest[np.unique(component[busiest], return_index=True)[1]]] = False
        number, joined = np.cumsum(free) - 1, free[low] & free[high]
        order = rounds_of_elimination(int(free.sum()), number[low[joined]], number[high[joined]])
        place = np.full(groups, -1, dtype=np.int64)
        place[np.flatnonzero(free)[order]] = np.arange(order.size)
        return np.asarray(place[self._group])

    @cached_property
    def _system(self) -> NormalEquations:
        """Noisy edges over unknowns: one row per edge, +1 at its upper and −1 at its lower end."""
        used, _, _ = self._edges
        rows = _differences(self._unknown, self.rows.starts[used], self.rows.stops[used])
        return NormalEquations(rows, 1 / self.noise.variances[used])

    @cached_property
    def _asked(self) -> csr_array:
        return _differences(self._unknown, self.questions.starts, self.questions.stops)

    # --- variances ---------------------------------------------------------------------------------------

    @cached_property
    def variances(self) -> FloatArray:
        return self._known(self._resistances(self._system.factor))

    @cached_property
    def parts(self) -> FloatArray:
        used, each = self._edges[0], range(self.noise.releases)
        noise = [np.where(self.noise.release == release, self.noise.variances, 0.0)[used] for release in each]
        return np.array([self._known(self._system.exactly(self._resistances, own)) for own in noise])

    def _known(self, variances: FloatArray) -> FloatArray:
        return np.where(self.determined, np.maximum(variances, 0.0), np.inf)

    def _resistances(self, factor: Factor) -> Numbers:
        """The effective resistance between the ends of every question."""
        low, high = self._unknown[self.questions.starts], self._unknown[self.questions.stops]
        size = factor.pivots.size
        if self.count <= 2 * size or size > _DENSE:
            return factor.differences(high, low)
        inverse = np.pad(factor.solve(np.eye(size)), (0, 1))  # the last stands for what is grounded
        return np.asarray(inverse[low, low] + inverse[high, high] - 2 * inverse[low, high])

    def weights(self, questions: IntArray) -> FloatArray:
        weights = np.zeros((questions.size, self.rows.count))
        weights[:, self._edges[0]] = self._system.gains(self._asked[questions].toarray()).T
        return weights

    # --- answers -----------------------------------------------------------------------------------------

    def apply(self, measured: FloatArray) -> FloatArray:
        batch = np.atleast_2d(measured)
        known = self._offsets(batch)
        used = self._edges[0]
        heights = known[:, self.rows.stops[used]] - known[:, self.rows.starts[used]]
        unknowns = self._system.solution(batch[:, used] - heights)
        between = known[:, self.questions.stops] - known[:, self.questions.starts]
        answers = (self._asked @ unknowns).T + between
        return np.asarray(answers.reshape(*measured.shape[:-1], self.count))

    def _offsets(self, batch: FloatArray) -> FloatArray:
        """What exact rows say: the height of every cut point above one of its group, along a tree."""
        known = np.zeros((batch.shape[0], self.rows.size + 1))
        exact = np.flatnonzero(~self.noise.noisy & (self.rows.stops > self.rows.starts))
        if not batch[:, exact].any():
            return known
        ends = self.rows.starts[exact], self.rows.stops[exact]
        tree = csr_array((np.ones(exact.size), ends), shape=(known.shape[1],) * 2)
        by_ends = {
            pair: row for row, pair in zip(exact, zip(*(e.tolist() for e in ends), strict=True), strict=True)
        }
        for root in np.unique(self._group[ends[0]], return_index=True)[1]:
            order, before = scipy.sparse.csgraph.breadth_first_order(tree, ends[0][root], directed=False)
            for cut in order[1:].tolist():
                parent = int(before[cut])
                up = (parent, cut) in by_ends
                row = by_ends[parent, cut] if up else by_ends[cut, parent]
                known[:, cut] = known[:, parent] + (batch[:, row] if up else -batch[:, row])
        return known


def _components(nodes: int, low: IntArray, high: IntArray) -> IntArray:
    graph = csr_array((np.ones(low.size), (low, high)), shape=(nodes, nodes))
    return np.asarray(scipy.sparse.csgraph.connected_components(graph, directed=False)[1], dtype=np.int64)


def _differences(unknown: IntArray, low: IntArray, high: IntArray) -> csr_array:
    """Rows +1 at the unknown of ``high`` and −1 at that of ``low``, nothing where it is grounded."""
    count = int(unknown.max(initial=-1)) + 1
    row = np.tile(np.arange(low.size), 2)
    column = np.concatenate((unknown[high], unknown[low]))
    sign = np.repeat([1.0, -1.0], low.size)
    kept = column >= 0
    return csr_array((sign[kept], (row[kept], column[kept])), shape=(low.size, count))
