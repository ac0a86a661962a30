"""Banded: every cell reaches an interval of cells to its right. What unequal bins of a line give."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from blowfishdb.core.arrays import BoolArray, IntArray, integers
from blowfishdb.core.bins import Bins, EdgeBins, LabelBins
from blowfishdb.core.errors import InvalidGraph
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


@final
@dataclass(frozen=True, eq=False)
class Banded(PolicyGraph):
    """Cells i < j adjoin iff j ≤ reach[i]; ``right`` never decreases and right[i] ≥ i."""

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

    def project_closed(self, bins: Bins) -> PolicyGraph | None:
        if isinstance(bins, LabelBins) and not bins.contiguous:
            runs, labels = bins.runs()
            return None if runs.count == self.size else self.project(runs).project(labels)
        if not bins.contiguous:
            return None
        return Banded(bins.assign(self.right[bins.last(np.arange(bins.count))]))
