"""Strategies: integer rows with positive integer weights, and their exact cost under a policy.

Row r is measured with noise of scale K/(w_r·ε), K = max over edges (u, v) of Σ_r w_r·|a_r·(e_u − e_v)|. The
loss of an edge is then Σ_r |a_r·(e_u − e_v)|·w_r·ε/K ≤ ε: a weight says how much of the budget a row is
given, and K is computed on the final integers, so nothing about it is assumed.

Noise scales of many rows, few of them distinct, exact.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from blowfishdb.core.accuracy import variance
from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray, integers
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import InvalidScale, InvalidWorkload, SizeMismatch
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.noise import Noise
from blowfishdb.core.sensitivity import scaled_sensitivity
from blowfishdb.core.workloads import Workload
from blowfishdb.core.workloads.base import Numbers, interval_rows, vector
from blowfishdb.mechanisms.linear.cost import interval_norms, invariant_components, largest_cost

_SAFE = 2.0**61


class Strategy(ABC):
    """Rows a_r over the cells with weights w_r."""

    size: int
    weights: IntArray

    @abstractmethod
    def answer(self, x: IntArray) -> Numbers:
        """a_r·x for every row, exact."""

    @abstractmethod
    def sparse(self) -> csr_array:
        """The rows over the cells, without their weights."""

    @abstractmethod
    def cost(self, graph: PolicyGraph) -> int:
        """K, the exact maximum over the edges of ``graph`` of Σ_r w_r·|a_r·(e_u − e_v)|."""

    @abstractmethod
    def unchanging(self, graph: PolicyGraph) -> BoolArray:
        """The rows that no edge changes: they tell nothing that is not public."""

    @abstractmethod
    def take(self, rows: IntArray) -> Strategy:
        """Some of the rows."""

    def __len__(self) -> int:
        return int(self.weights.size)

    @cached_property
    def precision(self) -> FloatArray:
        """w_r², at most one: proportional to the inverse variance of the rows in the continuous limit."""
        return np.asarray((self.weights / max(1, int(self.weights.max(initial=1)))) ** 2)


@final
@dataclass(frozen=True, eq=False, init=False)
class SparseRows(Strategy):
    """Any sparse integer rows."""

    matrix: csr_array
    weights: IntArray

    def __init__(self, matrix: csr_array, weights: ArrayLike) -> None:
        rows = csr_array(matrix)
        if rows.nnz and not np.issubdtype(rows.dtype, np.integer):
            raise InvalidWorkload("Measured rows must be whole numbers, so that discrete noise fits them.")
        rows.eliminate_zeros()
        object.__setattr__(self, "matrix", rows.astype(np.int64))
        object.__setattr__(self, "weights", checked_weights(weights, rows.shape[0]))

    @property
    def size(self) -> int:  # type: ignore[override]
        return int(self.matrix.shape[1])

    def answer(self, x: IntArray) -> Numbers:
        return np.asarray(vector(x, self.size) @ self.matrix.T)

    def sparse(self) -> csr_array:
        return self.matrix

    def cost(self, graph: PolicyGraph) -> int:
        return scaled_sensitivity(WeightedRows(self.matrix, self.weights), graph) if len(self) else 0

    def unchanging(self, graph: PolicyGraph) -> BoolArray:
        components = invariant_components(graph)
        varying = self.matrix
        if components is not None:
            columns = self.matrix.tocsc()
            varying = (columns - columns[:, components.first(components.assignment())]).tocsr()
            varying.eliminate_zeros()
        return np.asarray(np.diff(varying.indptr) == 0)

    def take(self, rows: IntArray) -> SparseRows:
        return SparseRows(csr_array(self.matrix[rows]), self.weights[rows])


@final
@dataclass(frozen=True, eq=False, init=False)
class Contrasts(Strategy):
    """Rows on a line: the count in one interval [start, stop), minus the count in a disjoint second one.

    The second interval may be empty, which leaves plain ranges; with it, a row is a Haar wavelet.
    """

    size: int
    starts: IntArray
    stops: IntArray
    minus_starts: IntArray
    minus_stops: IntArray
    weights: IntArray

    def __init__(
        self,
        size: int,
        starts: ArrayLike,
        stops: ArrayLike,
        weights: ArrayLike,
        *,
        minus: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> None:
        a, b = (integers(end, "Interval ends", InvalidWorkload) for end in (starts, stops))
        c, d = (a, a) if minus is None else (integers(e, "Interval ends", InvalidWorkload) for e in minus)
        if not a.shape == b.shape == c.shape == d.shape or a.ndim != 1:
            raise SizeMismatch("Intervals need as many ends as starts.")
        if a.size:
            if min(a.min(), c.min()) < 0 or max(b.max(), d.max()) > size or (a >= b).any() or (c > d).any():
                raise InvalidWorkload(f"Every interval must lie within the {size:,} cells and hold one.")
            if ((c < d) & (c < b) & (a < d)).any():
                raise InvalidWorkload("The two intervals of a row must not overlap.")
        fields = {"size": size, "starts": a, "stops": b, "minus_starts": c, "minus_stops": d}
        for name, value in {**fields, "weights": checked_weights(weights, a.size)}.items():
            object.__setattr__(self, name, value)

    def answer(self, x: IntArray) -> Numbers:
        prefix = np.concatenate(([0], np.cumsum(vector(x, self.size))))
        plus, minus = (
            prefix[self.stops] - prefix[self.starts],
            prefix[self.minus_stops] - prefix[self.minus_starts],
        )
        return np.asarray(plus - minus)

    def sparse(self) -> csr_array:
        plus = interval_rows(self.size, self.starts, self.stops - 1)
        return csr_array(plus - interval_rows(self.size, self.minus_starts, self.minus_stops - 1))

    @cached_property
    def over_cuts(self) -> csr_array:
        """The rows over the cut points p_0 … p_k, p_j the count left of cell j: at most four entries each."""
        rows = np.tile(np.arange(len(self)), 4)
        columns = np.concatenate((self.stops, self.starts, self.minus_stops, self.minus_starts))
        signs = np.repeat(np.array([1, -1, -1, 1], dtype=np.int64), len(self))
        cuts = csr_array((signs, (rows, columns)), shape=(len(self), self.size + 1))
        cuts.sum_duplicates()
        cuts.eliminate_zeros()
        return cuts

    def cost(self, graph: PolicyGraph) -> int:
        """A row changes by what its two intervals change: their signs differ and they are disjoint."""
        if not len(self) or not graph.edge_count:
            return 0
        if graph.absent:
            return max(self.cost(graph.counted), int(interval_norms(self.size, *self._pieces).max()))
        right = graph.right_ends()
        if right is None:
            return scaled_sensitivity(WeightedRows(self.sparse(), self.weights), graph)
        return largest_cost(right, *self._pieces)

    @cached_property
    def _pieces(self) -> tuple[IntArray, IntArray, IntArray]:
        second = np.flatnonzero(self.minus_starts < self.minus_stops)
        return (
            np.concatenate((self.starts, self.minus_starts[second])),
            np.concatenate((self.stops, self.minus_stops[second])),
            np.concatenate((self.weights, self.weights[second])),
        )

    def unchanging(self, graph: PolicyGraph) -> BoolArray:
        public = public_cuts(graph, self.size)
        if public is None:
            return SparseRows(self.sparse(), self.weights).unchanging(graph)
        hidden = self.over_cuts[:, np.flatnonzero(~public)]
        return np.asarray(np.diff(hidden.indptr) == 0)

    def take(self, rows: IntArray) -> Contrasts:
        minus = self.minus_starts[rows], self.minus_stops[rows]
        return Contrasts(self.size, self.starts[rows], self.stops[rows], self.weights[rows], minus=minus)


def public_cuts(graph: PolicyGraph, size: int) -> BoolArray | None:
    """Which cut points 0 … size have a public count to their left; None if that is not all there is.

    A component that is not an interval has a public total that no cut point shows.
    """
    components = invariant_components(graph)
    public = np.zeros(size + 1, dtype=np.bool_)
    public[0] = True
    if components is not None:
        if not components.contiguous:
            return None
        public[components.last(np.arange(components.count)) + 1] = True
    return public


def checked_weights(weights: ArrayLike, rows: int) -> IntArray:
    """One positive whole number per row."""
    checked = integers(weights, "Weights", InvalidScale)
    if checked.shape != (rows,):
        raise SizeMismatch(f"There must be one weight for each of the {rows:,} rows.")
    if (checked < 1).any():
        raise InvalidScale("Every weight must be a positive whole number.")
    return checked


@final
@dataclass(frozen=True, eq=False)
class WeightedRows(Workload):
    """diag(w)·A as questions, so that K is their sensitivity; exact whatever the size of the weights."""

    rows: csr_array
    weights: IntArray

    @property
    def size(self) -> int:  # type: ignore[override]
        return int(self.rows.shape[1])

    @property
    def count(self) -> int:
        return int(self.rows.shape[0])

    @property
    def binary(self) -> bool:
        return False

    def answer(self, x: ArrayLike) -> Numbers:
        return np.asarray(vector(x, self.size) @ self.sparse().T)

    def transpose(self, y: ArrayLike) -> Numbers:
        return np.asarray(vector(y, self.count) @ self.sparse())

    def sparse(self) -> csr_array:
        weighted = self.rows.data * np.repeat(self.weights, np.diff(self.rows.indptr))
        return csr_array((weighted, self.rows.indices, self.rows.indptr), shape=self.rows.shape)

    def describe(self) -> str:
        return f"{self.count:,} weighted rows over {self.size:,} cells"

    def norms(self, cells: ArrayLike) -> Numbers:
        if self._fits:
            return Workload.norms(self, cells)
        return np.array([self._exact(int(u), None) for u in np.atleast_1d(cells)], dtype=object)

    def moves(self, u: ArrayLike, v: ArrayLike) -> Numbers:
        if self._fits:
            return Workload.moves(self, u, v)
        pairs = zip(np.atleast_1d(u).tolist(), np.atleast_1d(v).tolist(), strict=True)
        return np.array([self._exact(a, b) for a, b in pairs], dtype=object)

    @cached_property
    def _fits(self) -> bool:
        """Whether no sum of a column leaves 64 bits."""
        entries = np.abs(self.rows.data.astype(np.float64))
        weights = np.repeat(self.weights.astype(np.float64), np.diff(self.rows.indptr))
        largest = np.bincount(self.rows.indices, weights * entries, self.size)
        return bool(2 * largest.max(initial=0.0) < _SAFE)

    def _exact(self, u: int, v: int | None) -> int:
        """Σ_r w_r·|a_ru − a_rv| in Python integers."""
        difference = self._by_cell[[u]] if v is None else self._by_cell[[u]] - self._by_cell[[v]]
        entries = zip(difference.indices.tolist(), difference.data.tolist(), strict=True)
        return sum(int(self.weights[row]) * abs(value) for row, value in entries)

    @cached_property
    def _by_cell(self) -> csr_array:
        return csr_array(self.rows.T)


def tree_nodes(starts: IntArray, stops: IntArray, fanout: int) -> tuple[IntArray, IntArray]:
    """Every proper descendant of the given intervals in a tree of about equal children, coarse to fine.

    An interval of ℓ cells has min(fanout, ℓ) children, cut at ⌊ℓ·i/children⌋; single cells are leaves. So the
    depth below it is ⌈log_fanout ℓ⌉.
    """
    found_starts: list[IntArray] = []
    found_stops: list[IntArray] = []
    while starts.size and int((stops - starts).max()) > 1:
        wide = stops - starts > 1
        first, length = starts[wide], (stops - starts)[wide]
        children = np.minimum(fanout, length)
        parent = np.repeat(np.arange(first.size), children)
        rank = np.arange(parent.size) - np.repeat(np.cumsum(children) - children, children)
        starts = first[parent] + length[parent] * rank // children[parent]
        stops = first[parent] + length[parent] * (rank + 1) // children[parent]
        found_starts.append(starts)
        found_stops.append(stops)
    none = np.zeros(0, dtype=np.int64)
    return np.concatenate([none, *found_starts]), np.concatenate([none, *found_stops])


@final
@dataclass(frozen=True, eq=False)
class UnitScales:
    """Row r gets discrete Laplace noise of scale c_r/ε; c_r = 0 means that the row is exact.

    ``distinct[which[r]]`` is c_r.
    """

    distinct: tuple[Fraction, ...]
    which: IntArray

    @classmethod
    def uniform(cls, scale: int | Fraction, rows: int) -> UnitScales:
        """The same scale for every row."""
        return cls((Fraction(scale),), np.zeros(rows, dtype=np.int64))

    @classmethod
    def from_weights(cls, cost: int | Fraction, weights: IntArray) -> UnitScales:
        """c_r = cost / weight_r: if Σ weight_r·|Δ_r| ≤ cost on every edge, the loss is at most ε."""
        values, which = np.unique(weights, return_inverse=True)
        return cls(tuple(Fraction(cost) / int(value) for value in values), which.astype(np.int64))

    def __len__(self) -> int:
        return int(self.which.size)

    def floats(self) -> FloatArray:
        """c_r as floats, for planning."""
        return np.array([float(scale) for scale in self.distinct])[self.which]

    def fractions(self, epsilon: Epsilon) -> list[Fraction]:
        """The exact scale of every row."""
        at = [scale / epsilon.fraction for scale in self.distinct]
        return [at[index] for index in self.which]

    def variances(self, epsilon: Epsilon) -> FloatArray:
        """The exact variance of the discrete noise of every row."""
        of = [variance(float(c / epsilon.fraction)) if c else 0.0 for c in self.distinct]
        return np.array(of)[self.which]

    def draw(self, noise: Noise, epsilon: Epsilon) -> IntArray:
        """Fresh noise for every row."""
        drawn = np.zeros(len(self), dtype=np.int64)
        for index, scale in enumerate(self.distinct):
            rows = np.flatnonzero(self.which == index)
            if scale and rows.size:
                drawn[rows] = noise.discrete_laplace(scale / epsilon.fraction, rows.size)
        return drawn
