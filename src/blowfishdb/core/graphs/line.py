"""Threshold: values within a distance of each other must stay indistinguishable.

Full: every two values must stay indistinguishable. This is differential privacy.

Banded: every cell reaches an interval of cells to its right. What unequal bins of a line give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from blowfishdb.core.arrays import BoolArray, IntArray, ceil_div, integers, whole
from blowfishdb.core.domain.bins import Bins, EdgeBins, EqualBins, LabelBins, whole_bin
from blowfishdb.core.errors import InvalidGraph, InvalidThreshold
from blowfishdb.core.graphs.base import PolicyGraph, check_size

BLOCK = 2**20


def interval_edges(size: int, reach: Callable[[IntArray], IntArray]) -> Iterator[IntArray]:
    """Edges (u, v) for v in u+1 … reach(u), about ``BLOCK`` of them at a time."""
    start = 0
    while start < size - 1:
        cells = np.arange(start, min(size - 1, start + BLOCK), dtype=np.int64)
        lengths = reach(cells) - cells
        fits = max(1, int(np.searchsorted(np.cumsum(lengths), BLOCK)))
        cells, lengths = cells[:fits], lengths[:fits]
        if total := int(lengths.sum()):
            offsets = np.arange(total) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            left = np.repeat(cells, lengths)
            yield np.column_stack((left, left + 1 + offsets))
        start += fits


def ends_within(size: int, reach: int) -> IntArray:
    """The last cell within ``reach`` of each cell."""
    return np.minimum(np.arange(size, dtype=np.int64) + reach, size - 1)


@final
@dataclass(frozen=True, eq=False)
class Banded(PolicyGraph):
    """Cells i < j adjoin iff j ≤ reach[i]; ``right`` never decreases and right[i] ≥ i.

    >>> bf.graphs.Banded([1, 2, 2]).edges().tolist()
    [[0, 1], [1, 2]]
    """

    kind = "banded"

    right: IntArray
    size: int = field(init=False)

    def __init__(self, reach: ArrayLike) -> None:
        right = integers(reach, "Reaches", InvalidGraph)
        cells = np.arange(right.size)
        check_size(int(right.size))
        if right.ndim != 1 or (right < cells).any() or (np.diff(right) < 0).any() or right[-1] >= right.size:
            raise InvalidGraph(
                "A banded graph needs one reach per cell: at least the cell itself, never decreasing, "
                "and never beyond the last cell."
            )
        object.__setattr__(self, "right", right)
        object.__setattr__(self, "size", int(right.size))

    @property
    def edge_count(self) -> int:
        return int((self.right - np.arange(self.size)).sum())

    @property
    def reach(self) -> int:
        return int((self.right - np.arange(self.size)).max())

    def right_ends(self) -> IntArray:
        return self.right

    def components(self) -> Bins:
        ends = np.flatnonzero(self.right == np.arange(self.size))
        return EdgeBins(self.size, np.append(0, ends[:-1] + 1))

    def describe(self) -> str:
        return f"neighbouring values, at most {self.reach:,} cells apart"

    def adjacent(self, u: ArrayLike, v: ArrayLike) -> BoolArray:
        low, high = np.minimum(u, v), np.maximum(u, v)
        return np.asarray((low != high) & (self.right[low] >= high))

    def steps(self, u: int, v: int) -> int | float:
        """Jumping as far as possible is shortest, because reaches never decrease."""
        here, goal, jumps = min(u, v), max(u, v), 0
        while here < goal:
            if self.right[here] == here:
                return np.inf
            here, jumps = int(self.right[here]), jumps + 1
        return jumps

    def edge_blocks(self) -> Iterator[IntArray]:
        return interval_edges(self.size, lambda cells: self.right[cells])

    def project_in_closed_form(self, bins: Bins) -> PolicyGraph | None:
        if isinstance(bins, LabelBins) and not bins.contiguous:
            runs, labels = bins.runs()
            return None if runs.count == self.size else self.project(runs).project(labels)
        if not bins.contiguous:
            return None
        return Banded(bins.assign(self.right[bins.last(np.arange(bins.count))]))

    def to_plain(self) -> dict[str, Any]:
        return {"kind": self.kind, "reach": self.right.tolist()}

    @classmethod
    def of_plain(cls, stored: Mapping[str, Any]) -> Banded:
        return cls(stored["reach"])


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
    """The θ-line: cells u, v adjoin iff 1 ≤ |u−v| ≤ θ ([B14] S^{d,θ}_pairs in one dimension).

    >>> salaries = bf.graphs.Threshold(100, 10)
    >>> salaries.has_edge(3, 13), salaries.distance(0, 25)
    (True, 3)
    >>> salaries.project(bf.Bins.width(100, 5))
    Threshold(size=20, theta=2)
    """

    kind = "threshold"

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

    @property
    def line_reach(self) -> int:
        return self.reach

    def right_ends(self) -> IntArray:
        return ends_within(self.size, self.reach)

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

    def project_in_closed_form(self, bins: Bins) -> PolicyGraph | None:
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


@final
@dataclass(frozen=True, eq=False)
class Full(PolicyGraph):
    """The complete graph on ``size`` cells ([B14] S^full_pairs).

    >>> bf.graphs.Full(10).distance(0, 9)
    1
    """

    kind = "full"

    size: int

    def __post_init__(self) -> None:
        check_size(self.size)

    @property
    def edge_count(self) -> int:
        return self.size * (self.size - 1) // 2

    @property
    def reach(self) -> int:
        return self.size - 1

    @property
    def complete(self) -> bool:
        return True

    @property
    def line_reach(self) -> int:
        return self.reach

    def without_last(self) -> tuple[PolicyGraph, bool] | None:
        return (Full(self.size - 1), True) if self.size > 1 else None

    def right_ends(self) -> IntArray:
        return ends_within(self.size, self.reach)

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

    def project_in_closed_form(self, bins: Bins) -> Full:
        return Full(bins.count)
