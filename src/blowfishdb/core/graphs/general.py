"""Explicit: any policy graph, given edge by edge.

Partitioned: only which value *inside* a part must stay hidden; the part itself need not.

Cone: a graph with one more vertex that is joined to every other.

Three things have this shape: hidden presence (⊥), rows that fall *outside* what is declared, and a
missing value, which must not be told apart from any other value of its column.

Apart: a graph with one more vertex that is joined to no other.

What a public cell of missing values has: everyone may know whose value is missing, so how many are missing
is the same for all neighbours, and it is exact and free.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any, final

import numpy as np
import scipy
from numpy.typing import ArrayLike

from blowfishdb.core.arrays import BoolArray, IntArray, integers
from blowfishdb.core.domain.bins import LIMIT, Bins, EqualBins, ProductBins, as_bins, single_cells, whole_bin
from blowfishdb.core.errors import InvalidBins, InvalidGraph, TooLarge
from blowfishdb.core.graphs.base import PolicyGraph, check_size
from blowfishdb.core.graphs.line import BLOCK, Banded, interval_edges


def unique_edges(pairs: IntArray) -> IntArray:
    """Distinct rows (u, v) with u < v; loops vanish."""
    ordered = np.sort(pairs.reshape(-1, 2), axis=1)
    edges = ordered[ordered[:, 0] != ordered[:, 1]]
    if edges.size == 0:
        return np.asarray(edges, dtype=np.int64)
    span = int(edges.max()) + 1
    if span < 2**31:  # one integer per edge sorts several times faster than rows
        keys = np.sort(edges[:, 0] * span + edges[:, 1])  # np.unique would hash them, which takes far longer
        keys = keys[np.concatenate(([True], keys[1:] != keys[:-1]))]
        return np.column_stack((keys // span, keys % span))
    return np.asarray(np.unique(edges, axis=0), dtype=np.int64)


@final
@dataclass(frozen=True, eq=False, init=False)
class Explicit(PolicyGraph):
    """The graph with exactly the given edges; without edges nothing is hidden.

    >>> bf.graphs.Explicit(4, [(0, 1), (1, 2)]).distance(0, 2)
    2
    """

    kind = "explicit"

    size: int
    pairs: IntArray

    def __init__(self, size: int, edges: ArrayLike | Iterable[tuple[int, int]]) -> None:
        check_size(size)
        pairs = integers(edges, "Edges", InvalidGraph)
        if pairs.size == 0:
            pairs = np.empty((0, 2), dtype=np.int64)
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise InvalidGraph("Edges must be pairs of cells.")
        if pairs.size and (pairs.min() < 0 or pairs.max() >= size):
            raise InvalidGraph(f"An edge names a cell that does not exist: cells are 0 to {size - 1:,}.")
        if (pairs[:, 0] == pairs[:, 1]).any():
            raise InvalidGraph("An edge joins a cell with itself, which hides nothing.")
        object.__setattr__(self, "size", int(size))
        object.__setattr__(self, "pairs", unique_edges(pairs))

    @property
    def edge_count(self) -> int:
        return int(self.pairs.shape[0])

    def right_ends(self) -> IntArray | None:
        return None if self.edge_count else np.arange(self.size, dtype=np.int64)

    def components(self) -> Bins:
        if self.edge_count == 0:
            return single_cells(self.size)
        labels = scipy.sparse.csgraph.connected_components(self._adjacency, directed=False)[1]
        _, first = np.unique(labels, return_index=True)
        rank = np.argsort(np.argsort(first))  # number components by their first cell
        return Bins.labels(rank[labels])

    def describe(self) -> str:
        return f"{self.edge_count:,} listed pairs of values" if self.edge_count else "nothing"

    def adjacent(self, u: ArrayLike, v: ArrayLike) -> BoolArray:
        low, high = np.broadcast_arrays(np.minimum(u, v), np.maximum(u, v))
        if self.edge_count == 0:
            return np.zeros(low.shape, dtype=np.bool_)
        named = self._named
        ranks = [np.minimum(np.searchsorted(named, end), named.size - 1) for end in (low, high)]
        named_both = (named[ranks[0]] == low) & (named[ranks[1]] == high)
        return np.asarray(named_both & np.isin(ranks[0] * named.size + ranks[1], self._keys))

    def steps(self, u: int, v: int) -> int | float:
        if self.edge_count == 0:
            return math.inf
        table = self._adjacency
        distance = scipy.sparse.csgraph.dijkstra(table, directed=False, indices=[u], unweighted=True)[0, v]
        return int(distance) if np.isfinite(distance) else math.inf

    def edge_blocks(self) -> Iterator[IntArray]:
        if self.edge_count:
            yield self.pairs

    def project_in_closed_form(self, bins: Bins) -> PolicyGraph | None:
        return None

    @cached_property
    def _named(self) -> IntArray:
        """The cells that have an edge; ranking them keeps pair keys within 63 bits."""
        return np.unique(self.pairs)

    @cached_property
    def _keys(self) -> IntArray:
        ranks = np.searchsorted(self._named, self.pairs)
        return np.asarray(ranks[:, 0] * self._named.size + ranks[:, 1], dtype=np.int64)

    @cached_property
    def _adjacency(self) -> scipy.sparse.csr_array:
        if self.size > LIMIT:
            raise TooLarge(f"Components of an explicit graph on {self.size:,} cells are above the limit.")
        ones = np.ones(self.edge_count, dtype=np.int8)
        return scipy.sparse.csr_array(
            (ones, (self.pairs[:, 0], self.pairs[:, 1])), shape=(self.size, self.size)
        )

    def to_plain(self) -> dict[str, Any]:
        return {"kind": self.kind, "size": self.size, "edges": self.pairs.tolist()}

    @classmethod
    def of_plain(cls, stored: Mapping[str, Any]) -> Explicit:
        return cls(stored["size"], np.array(stored["edges"], dtype=np.int64))


@final
@dataclass(frozen=True, eq=False, init=False)
class Partitioned(PolicyGraph):
    """Cells adjoin iff they are in the same part ([B14] S^P_pairs). Part totals are not hidden.

    >>> bf.graphs.Partitioned([0, 0, 1, 1]).distance(1, 2)
    inf
    """

    kind = "partitioned"

    parts: Bins
    size: int

    def __init__(self, labels: Bins | ArrayLike) -> None:
        parts = labels if isinstance(labels, Bins) else Bins.labels(labels)
        object.__setattr__(self, "parts", parts)
        object.__setattr__(self, "size", parts.size)

    @property
    def edge_count(self) -> int:
        return (self.parts.sum_of_squares - self.size) // 2

    @property
    def reach(self) -> int | None:
        return self.span if self.parts.contiguous else None

    @property
    def span(self) -> int:
        if isinstance(self.parts, EqualBins):
            return min(self.parts.cells, self.size) - 1
        every = np.arange(self.parts.count)
        return int((self.parts.last(every) - self.parts.first(every)).max())

    @property
    def cliques(self) -> Bins:
        return self.parts

    def right_ends(self) -> IntArray | None:
        return self.parts.last(self.parts.assignment()) if self.parts.contiguous else None

    def components(self) -> Bins:
        return self.parts

    def describe(self) -> str:
        return f"values in the same one of {self.parts.count:,} parts"

    def adjacent(self, u: ArrayLike, v: ArrayLike) -> BoolArray:
        return np.asarray(np.not_equal(u, v) & (self.parts.assign(u) == self.parts.assign(v)))

    def steps(self, u: int, v: int) -> int | float:
        return 1 if self.adjacent(u, v) else math.inf

    def edge_blocks(self) -> Iterator[IntArray]:
        if self.parts.contiguous:
            yield from interval_edges(self.size, lambda cells: self.parts.last(self.parts.assign(cells)))
            return
        labels = self.parts.assignment()
        order = np.argsort(labels, kind="stable").astype(np.int64)
        in_order = Partitioned(labels[order])
        for block in in_order.edge_blocks():
            yield order[block]  # a stable sort keeps u < v

    def project_in_closed_form(self, bins: Bins) -> PolicyGraph | None:
        parts = self.parts
        if isinstance(parts, EqualBins) and isinstance(bins, EqualBins):
            if bins.cells % parts.cells == 0:
                return Explicit(bins.count, ())
            if parts.cells % bins.cells == 0:
                return Partitioned(EqualBins(bins.count, parts.cells // bins.cells))
        if isinstance(parts, ProductBins) and isinstance(bins, ProductBins):
            from blowfishdb.core.graphs.product import Product

            return Product(*(Partitioned(factor) for factor in parts.factors)).project_in_closed_form(bins)
        if parts.contiguous and bins.contiguous:
            last = bins.last(np.arange(bins.count))
            return Banded(bins.assign(parts.last(parts.assign(last))))
        return self._project_incidences(bins)

    def _project_incidences(self, bins: Bins) -> PolicyGraph:
        """Bins that meet a common part adjoin: cliques over the distinct (part, bin) pairs."""
        pairs = np.unique(np.column_stack((self.parts.assignment(), bins.assignment())), axis=0)
        cliques = Partitioned(pairs[:, 0])
        try:
            meetings = cliques.edges()
        except TooLarge:
            return self.project_edges(bins)
        return Explicit(bins.count, unique_edges(pairs[:, 1][meetings]))

    def to_plain(self) -> dict[str, Any]:
        return {"kind": self.kind, "parts": self.parts.to_plain()}

    @classmethod
    def of_plain(cls, stored: Mapping[str, Any]) -> Partitioned:
        return cls(Bins.from_plain(stored["parts"]))


class Apex(Enum):
    """What the added vertex stands for."""

    PRESENCE = "whether the person is in the data"
    OUTSIDE = "whether the row is outside the declared values"
    MISSING = "whether the value is missing"


@final
@dataclass(frozen=True, eq=False)
class Cone(PolicyGraph):
    """``base`` and, as the last vertex, an apex joined to every cell of it.

    >>> bf.graphs.Threshold(3, 1).hide_presence().edges().tolist()
    [[0, 1], [0, 3], [1, 2], [1, 3], [2, 3]]
    """

    kind = "cone"

    base: PolicyGraph
    apex: Apex

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.base.size + 1

    def without_last(self) -> tuple[PolicyGraph, bool]:
        return self.base, True

    @property
    def counted(self) -> PolicyGraph:
        return self if self.apex is Apex.MISSING else self.base

    @property
    def edge_count(self) -> int:
        return self.base.edge_count + self.base.size

    def components(self) -> Bins:
        return whole_bin(self.size)

    def describe(self) -> str:
        return f"{self.base.describe()}, and {self.apex.value}"

    def adjacent(self, u: ArrayLike, v: ArrayLike) -> BoolArray:
        u, v = np.broadcast_arrays(np.asarray(u), np.asarray(v))
        top = self.base.size
        inside = (u < top) & (v < top)
        joined = np.asarray((u == top) ^ (v == top))
        joined[inside] = self.base.adjacent(u[inside], v[inside])
        return joined

    def steps(self, u: int, v: int) -> int:
        return 1 if self.adjacent(u, v) else 2

    def edge_blocks(self) -> Iterator[IntArray]:
        yield from self.base.edge_blocks()
        for start in range(0, self.base.size, BLOCK):
            cells = np.arange(start, min(start + BLOCK, self.base.size), dtype=np.int64)
            yield np.column_stack((cells, np.full_like(cells, self.base.size)))

    def project(self, bins: Bins | ArrayLike) -> PolicyGraph:
        """Bins may leave out an apex that is not counted; it is never merged into a bin."""
        partition = bins if isinstance(bins, Bins) else Bins.labels(bins)
        if self.absent and partition.size == self.base.size:
            return Cone(self.base.project(partition), self.apex)
        return PolicyGraph.project(self, as_bins(partition, self.size))

    def project_in_closed_form(self, bins: Bins) -> PolicyGraph | None:
        rest = bins.without_last_cell()
        if rest is not None:
            return Cone(self.base.project(rest), self.apex)
        if self.absent:
            raise InvalidBins(
                "The bins merge the vertex for 'not counted' with values; it must stay a bin of its own.",
                fixes=("leave it out of the bins: it is kept by itself",),
            )
        return Explicit(1, ()) if bins.count == 1 else None

    def to_plain(self) -> dict[str, Any]:
        return {"kind": self.kind, "base": self.base.to_plain(), "apex": self.apex.name.lower()}

    @classmethod
    def of_plain(cls, stored: Mapping[str, Any]) -> Cone:
        return cls(PolicyGraph.from_plain(stored["base"]), Apex[stored["apex"].upper()])


def AddRemove(size: int) -> Cone:  # noqa: N802 - reads as the constructor of a graph, like its siblings
    """Classical add/remove neighbours: ⊥ joins every value and nothing else is joined."""
    return Cone(Explicit(size, ()), Apex.PRESENCE)


@final
@dataclass(frozen=True, eq=False)
class Apart(PolicyGraph):
    """``base`` and, as the last vertex, one without edges.

    >>> bf.graphs.Apart(bf.graphs.Full(2)).edges().tolist()
    [[0, 1]]
    """

    kind = "apart"

    base: PolicyGraph

    def __post_init__(self) -> None:
        if self.base.absent:
            raise InvalidGraph(
                "Presence is hidden for whole records, missing values included.",
                fixes=("set the missing values apart first, then call hide_presence()",),
            )

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.base.size + 1

    @property
    def edge_count(self) -> int:
        return self.base.edge_count

    @property
    def reach(self) -> int | None:
        return self.base.reach

    @property
    def span(self) -> int | None:
        return self.base.span

    def right_ends(self) -> IntArray | None:
        ends = self.base.right_ends()
        return None if ends is None else np.append(ends, self.base.size)

    def without_last(self) -> tuple[PolicyGraph, bool]:
        return self.base, False

    def components(self) -> Bins:
        return with_last_apart(self.base.components())

    def describe(self) -> str:
        return f"{self.base.describe()}, but not whether the value is missing"

    def adjacent(self, u: ArrayLike, v: ArrayLike) -> BoolArray:
        u, v = np.broadcast_arrays(np.asarray(u), np.asarray(v))
        inside = (u < self.base.size) & (v < self.base.size)
        joined = np.zeros(u.shape, dtype=np.bool_)
        joined[inside] = self.base.adjacent(u[inside], v[inside])
        return joined

    def steps(self, u: int, v: int) -> int | float:
        return np.inf if self.base.size in (u, v) else self.base.steps(u, v)

    def edge_blocks(self) -> Iterator[IntArray]:
        return self.base.edge_blocks()

    def project_in_closed_form(self, bins: Bins) -> PolicyGraph | None:
        """On few bins it is written as the graph that mechanisms know: a line with a gap, a partition."""
        rest = bins.without_last_cell()
        if rest is not None:
            return _listed(self.base.project(rest))
        return Explicit(1, ()) if bins.count == 1 else None

    def to_plain(self) -> dict[str, Any]:
        return {"kind": self.kind, "base": self.base.to_plain()}

    @classmethod
    def of_plain(cls, stored: Mapping[str, Any]) -> Apart:
        return cls(PolicyGraph.from_plain(stored["base"]))


def with_last_apart(parts: Bins) -> Bins:
    """The same parts, and one more for one more cell."""
    if parts.contiguous and parts.count <= LIMIT:
        starts = parts.first(np.arange(parts.count))
        return Bins.edges(parts.size + 1, np.append(starts, parts.size))
    return Bins.labels(np.append(parts.assignment(), parts.count))


def _listed(base: PolicyGraph) -> PolicyGraph:
    if base.size > LIMIT:
        return Apart(base)
    if isinstance(base, Explicit):
        return Explicit(base.size + 1, base.pairs)
    parts = whole_bin(base.size) if base.complete else base.cliques
    if parts is not None:
        return Partitioned(with_last_apart(parts))
    ends = base.right_ends()
    return Apart(base) if ends is None else Banded(np.append(ends, base.size))
