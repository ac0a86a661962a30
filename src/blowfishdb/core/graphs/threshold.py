"""Threshold: values within a distance of each other must stay indistinguishable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from blowfishdb.core.arrays import BoolArray, IntArray, ceil_div, whole
from blowfishdb.core.bins import Bins, EqualBins, LabelBins, whole_bin
from blowfishdb.core.errors import InvalidThreshold
from blowfishdb.core.graphs.banded import Banded, interval_edges
from blowfishdb.core.graphs.base import PolicyGraph, check_size


def check_theta(theta: object) -> int:
    """A distance threshold in cells, at least one."""
    cells = whole(theta, "A threshold in cells", InvalidThreshold)
    if cells < 1:
        raise InvalidThreshold(
            f"A threshold of {cells} hides nothing; it must be at least one cell.",
            fixes=("choose the distance within which values must stay hidden",),
        )
    return cells


@final
@dataclass(frozen=True, eq=False)
class Threshold(PolicyGraph):
    """The θ-line: cells u, v adjoin iff 1 ≤ |u−v| ≤ θ ([B14] S^{d,θ}_pairs in one dimension)."""

    size: int
    theta: int

    def __post_init__(self) -> None:
        check_size(self.size)
        check_theta(self.theta)

    @property
    def edge_count(self) -> int:
        return self.reach * self.size - self.reach * (self.reach + 1) // 2

    @property
    def reach(self) -> int:
        return min(self.theta, self.size - 1)

    def components(self) -> Bins:
        return whole_bin(self.size)

    def describe(self) -> str:
        return f"values at most {self.theta:,} cell{'s' if self.theta > 1 else ''} apart"

    def adjacent(self, u: ArrayLike, v: ArrayLike) -> BoolArray:
        gap = np.abs(np.subtract(u, v))
        return np.asarray((gap >= 1) & (gap <= self.theta))

    def steps(self, u: int, v: int) -> int:
        return ceil_div(abs(u - v), self.theta)

    def edge_blocks(self) -> Iterator[IntArray]:
        return interval_edges(self.size, lambda cells: np.minimum(cells + self.reach, self.size - 1))

    def project_closed(self, bins: Bins) -> PolicyGraph | None:
        """Equal bins of width w give θ* = ⌈θ/w⌉; bins i < j adjoin iff lower(j) − upper(i) ≤ θ."""
        if isinstance(bins, EqualBins):
            return Threshold(bins.count, ceil_div(self.theta, bins.cells))
        if isinstance(bins, LabelBins) and not bins.contiguous:
            runs, labels = bins.runs()
            return self.project(runs).project(labels)
        if not bins.contiguous:
            return None
        last = bins.last(np.arange(bins.count))
        return Banded(bins.assign(np.minimum(last + self.reach, self.size - 1)))
