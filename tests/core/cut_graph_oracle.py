"""How releases on a line were combined before they shared the factorisation of plans: an oracle.

Intervals on a line: a graph on the cut points (REUSE §1; docs/proofs/reuse.md, Theorem 2).

With p_c the number of records before cut c, a row that counts an interval measures p_hi − p_lo: an edge of
conductance 1/variance. Exact rows merge their ends (a tiny variance instead would cost digits). A question
follows iff its ends are connected, and its variance is the effective resistance between them.

Chosen entries of the inverse of a sparse symmetric matrix, whole rounds of variables at a time.

Variables are eliminated in rounds. Each round is an independent set of variables of low degree, so that with
M = [[D, F], [Fᵀ, R]] and D diagonal the next matrix is R − FᵀD⁻¹F. Backwards (Takahashi's recursion), with X
the inverse of that one and K = D⁻¹F,

    inverse = [[D⁻¹ + K·X·Kᵀ, −K·X], [·, X]],

of which only the pattern of [D, F] is needed; the entries of X that this takes are in the pattern of R −
FᵀD⁻¹F. Paths, rings and trees fill in next to nothing. Transposes are plain, so a complex symmetric matrix
works too: imaginary steps give derivatives.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components
from scipy.sparse.linalg import splu

from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray
from blowfishdb.mechanisms.linear.estimators import ReleaseEstimator, RowNoise, per_release
from blowfishdb.mechanisms.reuse.stored import Intervals

Entries = NDArray[Any]

_CORE = 64
_MOST_FILL = 20


@final
@dataclass(frozen=True, eq=False)
class _Round:
    """One round of elimination, as places among the entries of its matrix M and of the next one."""

    diagonal: IntArray
    """D in M."""
    coupling: IntArray
    """F in M, row by row."""
    mirrored: IntArray
    """Fᵀ in M, in the order of F."""
    inner: IntArray
    """R in M."""
    row: IntArray
    """The row of each entry of F."""
    first: IntArray
    """All pairs of entries in one row of F: the first of each …"""
    second: IntArray
    """… and the second."""
    after: IntArray
    """Each entry of R, and then each pair, in the next matrix."""
    entries: int
    """How many entries the next matrix has."""


@final
@dataclass(frozen=True, eq=False)
class SelectedInverse:
    """The order of elimination for one symmetric pattern; any numbers on that pattern can follow it."""

    size: int
    keys: IntArray
    """The pattern: row·size + column, increasing."""
    rounds: tuple[_Round, ...]
    core: IntArray
    """The pattern of what is left, as places in a small dense matrix."""
    left: int

    @classmethod
    def of(cls, size: int, row: IntArray, column: IntArray) -> SelectedInverse | None:
        """A plan for a symmetric pattern that includes its diagonal; None if it fills in too much."""
        keys = np.unique(row * size + column)
        most = _MOST_FILL * keys.size
        rounds, width, now = [], size, keys
        while width > _CORE:
            step, now, width = _eliminate(now, width)
            if now.size > most or step.diagonal.size == 0 or step.first.size > most:
                return None
            rounds.append(step)
        return cls(size, keys, tuple(rounds), now, width)

    def inverse(self, row: IntArray, column: IntArray, data: Entries) -> Entries:
        """The entries of the inverse of Σ data·e_row·e_columnᵀ on the pattern, in the order of ``keys``."""
        entries = np.zeros(self.keys.size, dtype=data.dtype)
        np.add.at(entries, np.searchsorted(self.keys, row * self.size + column), data)
        factors = []
        for step in self.rounds:
            pivots, coupling = entries[step.diagonal], entries[step.coupling]
            scaled = coupling / pivots[step.row]
            factors.append((pivots, scaled))
            fill = -coupling[step.first] * scaled[step.second]
            entries, inner = np.zeros(step.entries, dtype=data.dtype), entries[step.inner]
            np.add.at(entries, step.after, np.concatenate((inner, fill)))
        dense = np.zeros(self.left**2, dtype=data.dtype)
        dense[self.core] = entries
        entries = np.linalg.inv(dense.reshape(self.left, self.left)).ravel()[self.core]
        for step, (pivots, scaled) in zip(reversed(self.rounds), reversed(factors), strict=True):
            entries = _back(step, pivots, scaled, entries)
        return entries

    def holds(self, row: IntArray, column: IntArray) -> BoolArray:
        """Whether an entry is in the pattern."""
        key = row * self.size + column
        at = np.minimum(np.searchsorted(self.keys, key), self.keys.size - 1)
        return np.asarray(self.keys[at] == key)

    def entries(self, inverse: Entries, row: IntArray, column: IntArray) -> Entries:
        """Single entries of the inverse, all of them in the pattern."""
        return np.asarray(inverse[np.searchsorted(self.keys, row * self.size + column)])


def _back(step: _Round, pivots: Entries, scaled: Entries, after: Entries) -> Entries:
    pairs = after[step.after[step.inner.size :]]  # X at every pair of neighbours
    beside = np.zeros(scaled.size, dtype=after.dtype)
    np.subtract.at(beside, step.second, scaled[step.first] * pairs)
    own = 1 / pivots
    np.subtract.at(own, step.row, scaled * beside)
    before = np.zeros(step.diagonal.size + 2 * step.coupling.size + step.inner.size, dtype=after.dtype)
    before[step.diagonal] = own
    before[step.coupling] = beside
    before[step.mirrored] = beside
    before[step.inner] = after[step.after[: step.inner.size]]
    return before


def _eliminate(keys: IntArray, size: int) -> tuple[_Round, IntArray, int]:
    """One round on a pattern, the pattern that it leaves, and the number of variables left."""
    row, column = np.divmod(keys, size)
    gone = _independent(row, column, size)
    number, left = np.cumsum(~gone) - 1, int((~gone).sum())
    local = np.cumsum(gone) - 1
    coupling = np.flatnonzero(gone[row] & ~gone[column])
    inner = np.flatnonzero(~gone[row] & ~gone[column])
    at = local[row[coupling]]
    degree = np.bincount(at, minlength=int(gone.sum()))
    first = np.repeat(np.arange(coupling.size), degree[at])
    within = np.arange(first.size) - np.repeat(np.cumsum(degree[at]) - degree[at], degree[at])
    second = np.repeat((np.cumsum(degree) - degree)[at], degree[at]) + within
    ends = number[column[coupling]]
    kept = number[row[inner]] * left + number[column[inner]]
    pattern, after = np.unique(np.concatenate((kept, ends[first] * left + ends[second])), return_inverse=True)
    step = _Round(
        diagonal=np.flatnonzero(gone[row] & (row == column)),
        coupling=coupling,
        mirrored=np.searchsorted(keys, column[coupling] * size + row[coupling]),
        inner=inner,
        row=at,
        first=first,
        second=second,
        after=after,
        entries=int(pattern.size),
    )
    return step, pattern, left


def _independent(row: IntArray, column: IntArray, size: int) -> BoolArray:
    """Variables of low degree that come before all their neighbours, by degree and then by lot."""
    degree = np.bincount(row, minlength=size)
    lot = np.random.Generator(np.random.Philox(key=[1, size])).permutation(size)
    rank = degree * size + lot
    apart = row != column
    least = np.full(size, np.iinfo(np.int64).max)
    np.minimum.at(least, row[apart], rank[column[apart]])
    return np.asarray((rank < least) & (degree <= 2 * row.size / size + 2))


_CHUNK = 4 * 10**6
_FEW = 4
_STEP = 1e-30  # an imaginary step has no cancellation, so it may be as small as we like


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
