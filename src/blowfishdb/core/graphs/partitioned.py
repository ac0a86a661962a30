"""Partitioned: only which value *inside* a part must stay hidden; the part itself need not."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from blowfishdb.core.arrays import BoolArray, IntArray
from blowfishdb.core.bins import Bins, EqualBins, ProductBins
from blowfishdb.core.errors import TooLarge
from blowfishdb.core.graphs.banded import Banded, interval_edges
from blowfishdb.core.graphs.base import PolicyGraph
from blowfishdb.core.graphs.explicit import Explicit, unique_edges


@final
@dataclass(frozen=True, eq=False, init=False)
class Partitioned(PolicyGraph):
    """Cells adjoin iff they are in the same part ([B14] S^P_pairs). Part totals are not hidden."""

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

    def project_closed(self, bins: Bins) -> PolicyGraph | None:
        parts = self.parts
        if isinstance(parts, EqualBins) and isinstance(bins, EqualBins):
            if bins.cells % parts.cells == 0:
                return Explicit(bins.count, ())
            if parts.cells % bins.cells == 0:
                return Partitioned(EqualBins(bins.count, parts.cells // bins.cells))
        if isinstance(parts, ProductBins) and isinstance(bins, ProductBins):
            from blowfishdb.core.graphs.product import Product

            return Product(*(Partitioned(factor) for factor in parts.factors)).project_closed(bins)
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
