"""Apart: a graph with one more vertex that is joined to no other.

What a public cell of missing values has: everyone may know whose value is missing, so how many are missing
is the same for all neighbours, and it is exact and free.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from blowfishdb.core.arrays import BoolArray, IntArray
from blowfishdb.core.bins import LIMIT, Bins
from blowfishdb.core.errors import InvalidGraph
from blowfishdb.core.graphs.banded import Banded
from blowfishdb.core.graphs.base import PolicyGraph
from blowfishdb.core.graphs.explicit import Explicit
from blowfishdb.core.graphs.full import Full
from blowfishdb.core.graphs.partitioned import Partitioned
from blowfishdb.core.graphs.threshold import Threshold


@final
@dataclass(frozen=True, eq=False)
class Apart(PolicyGraph):
    """``base`` and, as the last vertex, one without edges."""

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

    def components(self) -> Bins:
        return with_last_apart(self.base.components())

    def describe(self) -> str:
        return f"{self.base.describe()}, but not whether the value is missing"

    def adjacent(self, u: ArrayLike, v: ArrayLike) -> BoolArray:
        u, v = np.broadcast_arrays(np.asarray(u), np.asarray(v))
        inside = (u < self.base.size) & (v < self.base.size)
        found = np.zeros(u.shape, dtype=np.bool_)
        found[inside] = self.base.adjacent(u[inside], v[inside])
        return found

    def steps(self, u: int, v: int) -> int | float:
        return np.inf if self.base.size in (u, v) else self.base.steps(u, v)

    def edge_blocks(self) -> Iterator[IntArray]:
        return self.base.edge_blocks()

    def project_closed(self, bins: Bins) -> PolicyGraph | None:
        """On few bins it is written as the graph that mechanisms know: a line with a gap, a partition."""
        rest = bins.without_last_cell()
        if rest is not None:
            return _listed(self.base.project(rest))
        return Explicit(1, ()) if bins.count == 1 else None


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
    if isinstance(base, Partitioned):
        return Partitioned(with_last_apart(base.parts))
    if isinstance(base, Full):
        return Partitioned(Bins.edges(base.size + 1, [0, base.size]))
    if isinstance(base, Threshold):
        reached = np.minimum(np.arange(base.size) + base.reach, base.size - 1)
        return Banded(np.append(reached, base.size))
    return Banded(np.append(base.right, base.size)) if isinstance(base, Banded) else Apart(base)
