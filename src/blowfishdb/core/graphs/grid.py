"""Grid: points of a k-dimensional grid within an L1 distance must stay indistinguishable."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from blowfishdb.core.arrays import BoolArray, IntArray, ceil_div, integers
from blowfishdb.core.bins import LIMIT, Bins, EqualBins, ProductBins, whole_bin
from blowfishdb.core.errors import InvalidGraph, TooLarge
from blowfishdb.core.graphs.base import PolicyGraph, check_size
from blowfishdb.core.graphs.explicit import Explicit
from blowfishdb.core.graphs.threshold import Threshold, check_theta


@final
@dataclass(frozen=True, eq=False, init=False)
class Grid(PolicyGraph):
    """Cells of a box, row-major, that adjoin iff their L1 distance is at most θ.

    ``widths`` is how many original cells one cell spans along each axis. Binning makes it larger
    than one: bins Δ apart are then (|Δ|−1)·w + 1 original cells apart, and the distances of the
    axes in which two bins differ add up.
    """

    shape: tuple[int, ...]
    theta: int
    widths: tuple[int, ...]

    def __init__(self, shape: Sequence[int], theta: int, widths: Sequence[int] | None = None) -> None:
        axes = tuple(check_size(int(n)) for n in integers(shape, "The shape", InvalidGraph))
        spans = (1,) * len(axes) if widths is None else tuple(widths)
        check_size(len(axes))
        if len(spans) != len(axes) or any(check_size(span) < 1 for span in spans):
            raise InvalidGraph("A grid needs one positive width per axis.")
        object.__setattr__(self, "shape", axes)
        object.__setattr__(self, "theta", check_theta(theta))
        object.__setattr__(self, "widths", spans)

    @property
    def size(self) -> int:  # type: ignore[override]
        return math.prod(self.shape)

    @property
    def reach(self) -> int | None:
        return self.axis_reach(0) if len(self.shape) == 1 else None

    def axis_reach(self, axis: int) -> int:
        """How far one move can go along one axis alone."""
        return min(ceil_div(self.theta, self.widths[axis]), self.shape[axis] - 1)

    def cost(self, axis: int, steps: ArrayLike) -> IntArray:
        """What a displacement along one axis uses up of θ."""
        moved = np.abs(np.asarray(steps, dtype=np.int64))
        return np.asarray(np.where(moved > 0, (moved - 1) * self.widths[axis] + 1, 0))

    @property
    def edge_count(self) -> int:
        """By convolution over the axes of (ordered pairs of coordinates at each cost)."""
        ways: dict[int, int] = {0: 1}
        for axis, length in enumerate(self.shape):
            pairs = {0: length}
            for step in range(1, self.axis_reach(axis) + 1):
                pairs[int(self.cost(axis, step))] = 2 * (length - step)
            combined: dict[int, int] = {}
            for (used, count), (more, times) in itertools.product(ways.items(), pairs.items()):
                if used + more <= self.theta:
                    combined[used + more] = combined.get(used + more, 0) + count * times
            ways = combined
        return (sum(ways.values()) - self.size) // 2

    def components(self) -> Bins:
        return whole_bin(self.size)

    def describe(self) -> str:
        return f"points at most {self.theta:,} apart (L1) on a {'×'.join(map(str, self.shape))} grid"

    def adjacent(self, u: ArrayLike, v: ArrayLike) -> BoolArray:
        here, there = np.unravel_index(np.asarray(u), self.shape), np.unravel_index(np.asarray(v), self.shape)
        total = sum(self.cost(axis, a - b) for axis, (a, b) in enumerate(zip(here, there, strict=True)))
        return np.asarray((total > 0) & (total <= self.theta))

    def steps(self, u: int, v: int) -> int:
        here, there = np.unravel_index(u, self.shape), np.unravel_index(v, self.shape)
        gaps = tuple(abs(int(a) - int(b)) for a, b in zip(here, there, strict=True))
        if all(width == 1 for width in self.widths):
            return ceil_div(sum(gaps), self.theta)
        return self._moves_to_cover(gaps)

    def _moves_to_cover(self, gaps: tuple[int, ...]) -> int:
        """Breadth-first search over what is left to travel; overshooting never helps."""
        if math.prod(gap + 1 for gap in gaps) > LIMIT:
            raise TooLarge("The distance of these two bins would need too long a search.")
        seen, frontier, moves = {gaps}, {gaps}, 0
        while (0,) * len(gaps) not in seen:
            moves += 1
            frontier = {
                left
                for place in frontier
                for step in self._displacements
                if (left := tuple(max(0, g - abs(s)) for g, s in zip(place, step, strict=True))) not in seen
            }
            seen |= frontier
        return moves

    @cached_property
    def _displacements(self) -> list[tuple[int, ...]]:
        """The moves of one edge, one of each opposite pair."""
        axes = [range(-self.axis_reach(a), self.axis_reach(a) + 1) for a in range(len(self.shape))]
        if math.prod(len(axis) for axis in axes) > LIMIT:
            raise TooLarge(f"Listing the moves of an L1 threshold of {self.theta:,} is above the limit.")
        zero = (0,) * len(self.shape)
        return [
            step
            for step in itertools.product(*axes)
            if step > zero and sum(int(self.cost(a, s)) for a, s in enumerate(step)) <= self.theta
        ]

    def edge_blocks(self) -> Iterator[IntArray]:
        return displaced(self.shape, self._displacements)

    def project_closed(self, bins: Bins) -> PolicyGraph | None:
        if len(self.shape) == 1 and not isinstance(bins, ProductBins):
            width = self.widths[0]
            return Threshold(self.size, ceil_div(self.theta, width)).project(bins)
        if not isinstance(bins, ProductBins) or tuple(f.size for f in bins.factors) != self.shape:
            return None
        if all(isinstance(factor, EqualBins) for factor in bins.factors):
            widths = tuple(w * f.cells for w, f in zip(self.widths, bins.factors, strict=True))  # type: ignore[attr-defined]
            return Grid(tuple(f.count for f in bins.factors), self.theta, widths)
        if all(f.contiguous for f in bins.factors) and bins.count**2 <= LIMIT:
            return self._project_boxes(bins)
        return None

    def _project_boxes(self, bins: ProductBins) -> PolicyGraph:
        """Unequal boxes: the nearest members decide, axis by axis."""
        total = np.zeros((1, 1), dtype=np.int64)
        for axis, factor in enumerate(bins.factors):
            every = np.arange(factor.count)
            gap = factor.first(every)[None, :] - factor.last(every)[:, None]
            nearest = self.cost(axis, np.where(every[None, :] > every[:, None], gap, 0))
            nearest = nearest + nearest.T
            grown = total[:, None, :, None] + nearest[None, :, None, :]
            total = grown.reshape(total.shape[0] * factor.count, -1)
        return Explicit(bins.count, np.argwhere(np.triu((total > 0) & (total <= self.theta), 1)))


def displaced(shape: tuple[int, ...], displacements: Iterable[tuple[int, ...]]) -> Iterator[IntArray]:
    """Every pair of cells that differ by one of the displacements, a block for each of them."""
    cells = np.arange(math.prod(shape), dtype=np.int64).reshape(shape)
    for step in displacements:
        here = tuple(slice(max(0, -s), n - max(0, s)) for s, n in zip(step, shape, strict=True))
        there = tuple(slice(max(0, s), n - max(0, -s)) for s, n in zip(step, shape, strict=True))
        yield np.column_stack((cells[here].ravel(), cells[there].ravel()))
