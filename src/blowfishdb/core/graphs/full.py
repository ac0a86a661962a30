"""Full: every two values must stay indistinguishable. This is differential privacy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from blowfishdb.core.arrays import BoolArray, IntArray
from blowfishdb.core.bins import Bins, whole_bin
from blowfishdb.core.graphs.banded import interval_edges
from blowfishdb.core.graphs.base import PolicyGraph, check_size


@final
@dataclass(frozen=True, eq=False)
class Full(PolicyGraph):
    """The complete graph on ``size`` cells ([B14] S^full_pairs)."""

    size: int

    def __post_init__(self) -> None:
        check_size(self.size)

    @property
    def edge_count(self) -> int:
        return self.size * (self.size - 1) // 2

    @property
    def reach(self) -> int:
        return self.size - 1

    def components(self) -> Bins:
        return whole_bin(self.size)

    def describe(self) -> str:
        return "every two values"

    def adjacent(self, u: ArrayLike, v: ArrayLike) -> BoolArray:
        return np.asarray(np.not_equal(u, v))

    def steps(self, u: int, v: int) -> int:
        return 1

    def edge_blocks(self) -> Iterator[IntArray]:
        return interval_edges(self.size, lambda cells: np.full_like(cells, self.size - 1))

    def project_closed(self, bins: Bins) -> Full:
        return Full(bins.count)
