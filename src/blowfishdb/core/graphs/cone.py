"""Cone: a graph with one more vertex that is joined to every other.

Three things have this shape: hidden presence (⊥), rows that fall *outside* what is declared, and a
missing value, which must not be told apart from any other value of its column.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from blowfishdb.core.arrays import BoolArray, IntArray
from blowfishdb.core.bins import Bins, as_bins, whole_bin
from blowfishdb.core.errors import InvalidBins
from blowfishdb.core.graphs.banded import BLOCK
from blowfishdb.core.graphs.base import PolicyGraph
from blowfishdb.core.graphs.explicit import Explicit


class Apex(Enum):
    """What the added vertex stands for."""

    PRESENCE = "whether the person is in the data"
    OUTSIDE = "whether the row is outside the declared values"
    MISSING = "whether the value is missing"


@final
@dataclass(frozen=True, eq=False)
class Cone(PolicyGraph):
    """``base`` and, as the last vertex, an apex joined to every cell of it."""

    base: PolicyGraph
    apex: Apex

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.base.size + 1

    @property
    def absent(self) -> bool:
        return self.apex is not Apex.MISSING

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
        found = np.asarray((u == top) ^ (v == top))
        found[inside] = self.base.adjacent(u[inside], v[inside])
        return found

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

    def project_closed(self, bins: Bins) -> PolicyGraph | None:
        rest = bins.without_last_cell()
        if rest is not None:
            return Cone(self.base.project(rest), self.apex)
        if self.absent:
            raise InvalidBins(
                "The bins merge the vertex for 'not counted' with values; it must stay a bin of its own.",
                fixes=("leave it out of the bins: it is kept by itself",),
            )
        return Explicit(1, ()) if bins.count == 1 else None


def AddRemove(size: int) -> Cone:  # noqa: N802 - reads as the constructor of a graph, like its siblings
    """Classical add/remove neighbours: ⊥ joins every value and nothing else is joined."""
    return Cone(Explicit(size, ()), Apex.PRESENCE)
