"""Crossing: by how much one hidden move changes the sizes and the sums of clusters.

A record that moves from x in cluster i to y in cluster j ≠ i changes two sums, by ‖x − a_i‖ and ‖y − a_j‖ if
each sum is taken from an anchor a_i; inside one cluster it changes one sum by ‖x − y‖. [B14] Lemma 6.1 takes
the latter for all moves and is false: on 0…9, cut at 5, a move of one step changes the sums by 4 + 5.

The centroids are public, so the exact maximum over all edges of the policy is: for every cluster j, the
distances to a_j on its cells and −1 elsewhere, the largest of them within one move of every cell, and that
added to the cell's own distance. Boxes with too many cells get a bound from linear programs instead.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np

from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray
from blowfishdb.core.errors import SizeMismatch
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.questions.clusters import Centroids, PointSpace
from blowfishdb.mechanisms.kmeans.crossing_bound import (
    MOST_WORK,
    bounded_change,
    bounded_extents,
    largest_nearby,
    nearby_work,
)

MOST_CELLS = 2**22
"""Boxes of at most so many cells are gone through cell by cell."""


@final
@dataclass(frozen=True)
class RoundChange:
    """What one hidden move changes at most, given the centroids: exact, or an upper bound."""

    sizes: int
    """Σ_i |Δ size_i|."""
    sums: int
    """Σ_i Σ_d weight_d·|Δ sum_id|, the sums taken from the anchors."""
    exact: bool


@final
@dataclass(frozen=True, eq=False)
class RoundFacts:
    """Everything public about one round: anchors, the box around each cluster, and what a move changes."""

    anchors: IntArray
    low: FloatArray
    high: FloatArray
    change: RoundChange


def round_facts(centroids: Centroids, graph: PolicyGraph) -> RoundFacts:
    """The anchors in the middle of every cluster, and the change under the policy ``graph``."""
    check_policy(centroids.space, graph)
    by_cell = listable(centroids.space, graph)
    labels = centroids.labels() if by_cell else None
    low, high = bounded_extents(centroids) if labels is None else _extents(centroids, labels)
    anchors = np.clip(np.rint((low + high) / 2).astype(np.int64), 0, centroids.space.last)
    return RoundFacts(anchors, low, high, round_change(centroids, anchors, graph, labels))


def round_change(
    centroids: Centroids, anchors: IntArray, graph: PolicyGraph, labels: IntArray | None = None
) -> RoundChange:
    """The largest change over all edges of ``graph``; exact where the cells can be gone through."""
    check_policy(centroids.space, graph)
    base, leaves = moves_inside(graph)
    if base.edge_count == 0 and not leaves:
        return RoundChange(0, 0, exact=True)
    if not listable(centroids.space, graph):
        return RoundChange(*bounded_change(centroids, anchors, base, leaves=leaves), exact=False)
    cells = _Cells(centroids, anchors, centroids.labels() if labels is None else labels)
    sizes, sums = cells.crossings(base) if base.edge_count else (0, 0)
    if leaves:
        sizes, sums = max(sizes, 1), max(sums, int(cells.distances.max()))
    if base.edge_count and sums < longest_move(centroids.space, base):
        sums = max(sums, cells.stays(base))
    return RoundChange(sizes, sums, exact=True)


def check_policy(space: PointSpace, graph: PolicyGraph) -> None:
    """The policy is about the cells of the box, perhaps with one vertex for "not counted"."""
    if graph.counted.size != space.size:
        raise SizeMismatch(
            f"The points have {space.size:,} cells, but the policy is about {graph.counted.size:,}."
        )


def moves_inside(graph: PolicyGraph) -> tuple[PolicyGraph, bool]:
    """The moves between values, and whether a record may also stop being counted."""
    return graph.counted, graph.absent


def listable(space: PointSpace, graph: PolicyGraph) -> bool:
    """Whether all cells can be gone through."""
    return space.size <= MOST_CELLS and nearby_work(moves_inside(graph)[0]) <= MOST_WORK


@lru_cache(maxsize=16)
def longest_move(space: PointSpace, graph: PolicyGraph) -> int:
    """The longest hidden move, in weighted lengths."""
    return max(_farthest(heights, graph) for heights in _directions(space))


def _directions(space: PointSpace) -> Iterator[IntArray]:
    """±w·x over the box, from zero on: a weighted L1 length is the largest difference over these."""
    for signs in itertools.product((1, -1), repeat=space.axes - 1):
        plane = space.plane(np.array((1, *signs)) * space.lengths).ravel()
        yield plane - plane.min()


def _farthest(heights: IntArray, graph: PolicyGraph, taking_part: BoolArray | None = None) -> int:
    some = heights if taking_part is None else np.where(taking_part, heights, -1)
    ahead = largest_nearby(some, graph) - heights
    return int(ahead.max() if taking_part is None else ahead[taking_part].max(initial=0))


def _extents(centroids: Centroids, labels: IntArray) -> tuple[FloatArray, FloatArray]:
    """The box around every cluster; a cluster without cells is at its centroid."""
    low, high = np.floor(centroids.cells), np.ceil(centroids.cells)
    for index, axis in itertools.product(range(len(centroids)), range(centroids.space.axes)):
        others = tuple(other for other in range(centroids.space.axes) if other != axis)
        there = np.flatnonzero((labels == index).any(axis=others))
        if there.size:
            low[index, axis], high[index, axis] = there[0], there[-1]
    return low, high


@final
class _Cells:
    """Every cell of the box with its cluster and its distance to the cluster's anchor."""

    def __init__(self, centroids: Centroids, anchors: IntArray, labels: IntArray) -> None:
        self.space, self.count = centroids.space, len(centroids)
        self.labels = labels.ravel()
        self.distances = np.zeros(self.labels.size, dtype=np.int64)
        for index, anchor in enumerate(anchors):
            here = self.labels == index
            self.distances[here] = self._from(anchor)[here]

    def _from(self, anchor: IntArray) -> IntArray:
        lines = [
            weight * np.abs(np.arange(count) - int(place))
            for weight, count, place in zip(self.space.weights, self.space.shape, anchor, strict=True)
        ]
        return self.space.outer(lines).ravel()

    def crossings(self, graph: PolicyGraph) -> tuple[int, int]:
        """What moves between clusters change; every pair of clusters is met without the last."""
        largest = -1
        for index in range(self.count - 1):
            here = self.labels == index
            ahead = largest_nearby(np.where(here, self.distances, -1), graph)
            crossing = ~here & (ahead >= 0)
            largest = max(largest, int((self.distances + ahead)[crossing].max(initial=-1)))
        return (0, 0) if largest < 0 else (2, largest)

    def stays(self, graph: PolicyGraph) -> int:
        """The longest hidden move inside one cluster."""
        parts = [self.labels == index for index in range(self.count)]
        return max(_farthest(heights, graph, part) for heights in _directions(self.space) for part in parts)
