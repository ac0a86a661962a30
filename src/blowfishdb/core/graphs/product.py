"""Product: one policy per attribute, composed into a policy over whole records."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from blowfishdb.core.arrays import BoolArray, IntArray
from blowfishdb.core.bins import LIMIT, Bins, ProductBins
from blowfishdb.core.errors import InvalidGraph, TooLarge
from blowfishdb.core.graphs.base import PolicyGraph


@final
@dataclass(frozen=True, eq=False, init=False)
class Product(PolicyGraph):
    """Records adjoin when their attributes do.

    ``joint=True`` (strong product): every attribute stays or moves along an edge of its graph. With
    Full everywhere this is exactly differential privacy. ``joint=False`` (Cartesian, [BDB] Def. 3.2):
    exactly one attribute moves, which protects less.
    """

    factors: tuple[PolicyGraph, ...]
    joint: bool

    def __init__(self, *graphs: PolicyGraph, joint: bool = True) -> None:
        if not graphs:
            raise InvalidGraph("A product needs at least one graph.")
        if any(graph.absent for graph in graphs):
            raise InvalidGraph(
                "Presence is hidden for whole records, not for one attribute.",
                fixes=("build the product first, then call hide_presence() on it",),
            )
        object.__setattr__(self, "factors", graphs)
        object.__setattr__(self, "joint", joint)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of cells of each attribute."""
        return tuple(graph.size for graph in self.factors)

    @property
    def size(self) -> int:  # type: ignore[override]
        return math.prod(self.shape)

    @property
    def edge_count(self) -> int:
        if self.joint:
            stay_or_move = math.prod(graph.size + 2 * graph.edge_count for graph in self.factors)
            return (stay_or_move - self.size) // 2
        return sum(graph.edge_count * (self.size // graph.size) for graph in self.factors)

    @property
    def reach(self) -> int | None:
        return self.factors[0].reach if len(self.factors) == 1 else None

    def components(self) -> Bins:
        return ProductBins(tuple(graph.components() for graph in self.factors))

    def describe(self) -> str:
        each = "; ".join(graph.describe() for graph in self.factors)
        return f"{'jointly' if self.joint else 'one attribute at a time'}: {each}"

    def adjacent(self, u: ArrayLike, v: ArrayLike) -> BoolArray:
        here, there = np.unravel_index(np.asarray(u), self.shape), np.unravel_index(np.asarray(v), self.shape)
        pairs = list(zip(self.factors, here, there, strict=True))
        moved = [np.asarray(a != b) for _, a, b in pairs]
        allowed = [np.asarray((a == b) | graph.adjacent(a, b)) for graph, a, b in pairs]
        count = sum(m.astype(np.int64) for m in moved)
        some = (count >= 1) if self.joint else (count == 1)
        return np.asarray(reduce(np.logical_and, allowed) & some)

    def steps(self, u: int, v: int) -> int | float:
        here, there = np.unravel_index(u, self.shape), np.unravel_index(v, self.shape)
        each = [g.distance(int(a), int(b)) for g, a, b in zip(self.factors, here, there, strict=True)]
        return max(each) if self.joint else sum(each)

    def edge_blocks(self) -> Iterator[IntArray]:
        """For every set of attributes that moves: the first moves upwards, the others either way."""
        axes = range(len(self.factors))
        most = len(self.factors) if self.joint else 1
        subsets = (itertools.combinations(axes, count) for count in range(1, most + 1))
        for moving in itertools.chain.from_iterable(subsets):
            choices = [self._choices(axis, moving) for axis in axes]
            if math.prod(len(choice) for choice in choices) > 10 * LIMIT:
                raise TooLarge(f"The {self.edge_count:,} edges of this product cannot be listed.")
            grids = np.meshgrid(*(np.arange(len(choice)) for choice in choices), indexing="ij")
            ends = [
                np.ravel_multi_index(
                    tuple(choice[grid.ravel(), side] for choice, grid in zip(choices, grids, strict=True)),
                    self.shape,
                )
                for side in (0, 1)
            ]
            if ends[0].size:
                yield np.column_stack(ends).astype(np.int64)

    def _choices(self, axis: int, moving: tuple[int, ...]) -> IntArray:
        graph = self.factors[axis]
        if axis not in moving:
            return np.repeat(np.arange(graph.size, dtype=np.int64)[:, None], 2, axis=1)
        edges = graph.edges()
        return edges if axis == moving[0] else np.concatenate((edges, edges[:, ::-1]))

    def project_closed(self, bins: Bins) -> PolicyGraph | None:
        """Products of bins project factor by factor; with every other attribute one bin, to attributes."""
        if len(self.factors) == 1 and not isinstance(bins, ProductBins):
            return self.factors[0].project(bins)
        boxes = _per_factor(bins.factors, self.shape) if isinstance(bins, ProductBins) else None
        if boxes is None:
            return None
        projected = (graph.project(factor) for graph, factor in zip(self.factors, boxes, strict=True))
        return Product(*projected, joint=self.joint)


def _per_factor(bins: tuple[Bins, ...], shape: tuple[int, ...]) -> list[Bins] | None:
    """Bins of attributes as one per factor; a factor that spans several attributes gets their product."""
    if tuple(b.size for b in bins) == shape:
        return list(bins)
    if 1 in shape or any(b.size == 1 for b in bins):  # whose they are would be a guess
        return None
    boxes, taken = [], 0
    for size in shape:
        start = taken
        while taken < len(bins) and math.prod(b.size for b in bins[start:taken]) < size:
            taken += 1
        group = bins[start:taken]
        if math.prod(b.size for b in group) != size:
            return None
        boxes.append(group[0] if len(group) == 1 else ProductBins(group))
    return boxes if taken == len(bins) else None
