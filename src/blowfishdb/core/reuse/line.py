"""Intervals on a line: a graph on the cut points (REUSE §1; docs/proofs/reuse.md, Theorem 2).

With p_c the number of records before cut c, a row that counts an interval measures p_hi − p_lo: an edge of
conductance 1/variance. Exact rows merge their ends (a tiny variance instead would cost digits). A question
follows iff its ends are connected, and its variance is the effective resistance between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from scipy.sparse import csc_array, csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components
from scipy.sparse.linalg import splu

from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray
from blowfishdb.core.reuse.estimator import Estimator, Noise, per_release
from blowfishdb.core.reuse.rows import Intervals
from blowfishdb.core.reuse.selected_inverse import SelectedInverse

_CHUNK = 4 * 10**6
_FEW = 4
_STEP = 1e-30  # an imaginary step has no cancellation, so it may be as small as we like


@final
@dataclass(frozen=True, eq=False)
class LineEstimator(Estimator):
    """Interval questions from interval rows."""

    rows: Intervals
    noise: Noise
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
        """The number of every cut point's unknown; −1 where it is grounded, one group per component."""
        groups = int(self._group.max()) + 1
        _, low, high = self._edges
        degree = np.bincount(np.concatenate((low, high)), minlength=groups)
        component = np.zeros(groups, dtype=np.int64)
        component[self._group] = self.component
        busiest = np.lexsort((-degree, component))  # grounding a hub leaves a narrow band
        grounded = busiest[np.unique(component[busiest], return_index=True)[1]]
        number = np.ones(groups, dtype=np.int64)
        number[grounded] = 0
        number = np.where(number == 1, np.cumsum(number) - 1, -1)
        return np.asarray(number[self._group])

    @cached_property
    def _incidence(self) -> csr_array:
        """Noisy edges over unknowns: one row per edge, +1 at its upper and −1 at its lower end."""
        used, _, _ = self._edges
        return _differences(self._unknown, self.rows.starts[used], self.rows.stops[used])

    @cached_property
    def _asked(self) -> csr_array:
        return _differences(self._unknown, self.questions.starts, self.questions.stops)

    @cached_property
    def _conductances(self) -> FloatArray:
        return 1 / self.noise.variances[self._edges[0]]

    @cached_property
    def _laplacian(self) -> csr_array:
        incidence = self._incidence
        return csr_array(incidence.T @ (self._conductances[:, None] * incidence))

    def _solve(self, right: FloatArray) -> FloatArray:
        return np.asarray(self._factor.solve(right)) if right.size else np.zeros(right.shape)

    @cached_property
    def _factor(self):  # type: ignore[no-untyped-def]  # SuperLU has no public type
        return splu(
            csc_array(self._laplacian),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )

    # --- variances ---------------------------------------------------------------------------------------

    @cached_property
    def variances(self) -> FloatArray:
        found = self._near_variances(None)
        far = np.flatnonzero(np.isnan(found) & self.determined)
        for some in self._chunks(far):
            asked = self._asked[some]
            found[some] = asked.multiply(self._solve(asked.toarray().T).T).sum(axis=1)
        return np.where(self.determined, np.maximum(found, 0.0), np.inf)

    @cached_property
    def parts(self) -> FloatArray:
        releases = self.noise.releases
        if releases == 1:
            return self.variances[None]
        found = np.array([self._near_variances(release) for release in range(releases)])
        far = np.flatnonzero(np.isnan(found[0]) & self.determined)
        for some in self._chunks(far):
            found[:, some] = per_release(self.weights(some), self.noise)
        return np.where(self.determined, np.maximum(found, 0.0), np.inf)

    @cached_property
    def _plan(self) -> SelectedInverse | None:
        """How to find the entries of M⁻¹ at the ends of questions, all of them if they are few."""
        size = self._laplacian.shape[0]
        row, column, _ = self._entries
        asked = [self._unknown[ends] for ends in (self.questions.starts, self.questions.stops)]
        inside = (asked[0] >= 0) & (asked[1] >= 0)
        a, b = (ends[inside] for ends in asked)
        found = None
        if size and a.size <= _FEW * size:
            found = SelectedInverse.of(size, np.concatenate((row, a, b)), np.concatenate((column, b, a)))
        return found or (SelectedInverse.of(size, row, column) if size else None)

    @cached_property
    def _entries(self) -> tuple[IntArray, IntArray, IntArray]:
        """M as a sum over edges: row, column, and the edge (with the opposite sign off the diagonal)."""
        used = self._edges[0]
        low, high = self._unknown[self.rows.starts[used]], self._unknown[self.rows.stops[used]]
        row, column = np.concatenate((low, high, low, high)), np.concatenate((low, high, high, low))
        kept = (row >= 0) & (column >= 0)
        return row[kept], column[kept], np.tile(np.arange(used.size), 4)[kept]

    def _near_variances(self, release: int | None) -> FloatArray:
        """All variances, or one release's part of them, from entries of M⁻¹; NaN where one is not at hand.

        The part of release j is Σ_{r∈j} λ_r·(c_rᵀM⁻¹a)² = −∂(aᵀM⁻¹a)/∂s with its λ_r multiplied by 1 + s.
        """
        plan = self._plan
        if plan is None:
            return np.full(self.count, np.nan)
        moved = self._conductances.astype(np.complex128 if release is not None else np.float64)
        if release is not None:
            moved[self.noise.release[self._edges[0]] == release] *= 1 + 1j * _STEP
        row, column, edge = self._entries
        inverse = plan.inverse(row, column, np.where(row == column, moved[edge], -moved[edge]))
        a, b = self._unknown[self.questions.starts], self._unknown[self.questions.stops]
        both = (a >= 0) & (b >= 0)
        near = ~both | plan.holds(a, b)
        found = np.zeros(self.count, dtype=moved.dtype)
        for some, one, other, factor in ((a >= 0, a, a, 1), (b >= 0, b, b, 1), (both & near, a, b, -2)):
            found[some] += factor * plan.entries(inverse, one[some], other[some])
        real = found.real if release is None else -found.imag / _STEP
        return np.where(near, real, np.nan)

    def _chunks(self, questions: IntArray) -> Iterator[IntArray]:
        step = max(1, _CHUNK // max(1, self.rows.count))
        return (questions[begin : begin + step] for begin in range(0, questions.size, step))

    def weights(self, questions: IntArray) -> FloatArray:
        flows = self._solve(self._asked[questions].toarray().T)
        weights = np.zeros((questions.size, self.rows.count))
        weights[:, self._edges[0]] = (self._conductances[:, None] * (self._incidence @ flows)).T
        return weights

    # --- answers -----------------------------------------------------------------------------------------

    def apply(self, measured: FloatArray) -> FloatArray:
        batch = np.atleast_2d(measured)
        known = self._offsets(batch)
        used = self._edges[0]
        heights = known[:, self.rows.stops[used]] - known[:, self.rows.starts[used]]
        currents = self._conductances * (batch[:, used] - heights)
        unknowns = self._solve(np.ascontiguousarray((currents @ self._incidence).T))
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
            order, before = breadth_first_order(tree, ends[0][root], directed=False)
            for cut in order[1:].tolist():
                parent = int(before[cut])
                up = (parent, cut) in by_ends
                row = by_ends[parent, cut] if up else by_ends[cut, parent]
                known[:, cut] = known[:, parent] + (batch[:, row] if up else -batch[:, row])
        return known


def _components(nodes: int, low: IntArray, high: IntArray) -> IntArray:
    graph = csr_array((np.ones(low.size), (low, high)), shape=(nodes, nodes))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def _differences(unknown: IntArray, low: IntArray, high: IntArray) -> csr_array:
    """Rows +1 at the unknown of ``high`` and −1 at that of ``low``, nothing where it is grounded."""
    count = int(unknown.max(initial=-1)) + 1
    row = np.tile(np.arange(low.size), 2)
    column = np.concatenate((unknown[high], unknown[low]))
    sign = np.repeat([1.0, -1.0], low.size)
    kept = column >= 0
    return csr_array((sign[kept], (row[kept], column[kept])), shape=(low.size, count))
