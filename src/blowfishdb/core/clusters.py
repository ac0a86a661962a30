"""Clusters: points on a grid of cells, public centroids, and who is nearest to which.

Everything is a whole number, so that a database, numpy and the sensitivity assign every cell alike: the
centroids lie on a public lattice ``FINE`` times finer than the cells, and squared distances are compared
exactly. A cell that is equally near to several centroids belongs to the first of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Protocol, final

import numpy as np
from numpy.typing import ArrayLike

from blowfishdb.core.arrays import ByContent, FloatArray, IntArray, integers, whole
from blowfishdb.core.bins import Bins
from blowfishdb.core.errors import InvalidWorkload, SizeMismatch, TooLarge
from blowfishdb.core.secret import Secret

FINE = 16
"""Steps of the centroids' lattice in one cell."""
MOST_CLUSTERS = 64
MOST_ITERATIONS = 100
_SAFE = 2**61
_LONGEST = 2**31


@final
@dataclass(frozen=True, eq=False)
class PointSpace(ByContent):
    """A box of ``shape`` cells. One cell along axis d is ``weights[d]`` long.

    Distances are Euclidean in these lengths; weights make columns of different units comparable.
    """

    shape: tuple[int, ...]
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.shape or len(self.shape) != len(self.weights):
            raise SizeMismatch("Points need one weight per column, and at least one column.")
        for count, weight in zip(self.shape, self.weights, strict=True):
            if whole(count, "The number of cells", InvalidWorkload) < 1:
                raise InvalidWorkload("A column to cluster needs at least one cell.")
            if whole(weight, "A weight", InvalidWorkload) < 1:
                raise InvalidWorkload("The weight of a column is a whole number, at least one.")
        lengths = sum((count * weight) ** 2 for count, weight in zip(self.shape, self.weights, strict=True))
        if max(self.shape) > _LONGEST or 4 * FINE**2 * lengths >= _SAFE:
            raise TooLarge("The columns have too many cells to compare distances.", fixes=("wider cells",))

    @classmethod
    def cells(cls, *shape: int) -> PointSpace:
        """Every cell of every column is one unit long."""
        return cls(shape, (1,) * len(shape))

    @classmethod
    def even(cls, *shape: int) -> PointSpace:
        """Columns count alike: each is about as long as the longest."""
        longest = max(shape, default=1)
        return cls(shape, tuple(max(1, round(longest / count)) for count in shape))

    @property
    def axes(self) -> int:
        """The number of columns."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of cells."""
        return math.prod(self.shape)

    @property
    def last(self) -> IntArray:
        """The last cell along every axis."""
        return np.array(self.shape, dtype=np.int64) - 1

    @property
    def lengths(self) -> IntArray:
        """The weights as an array."""
        return np.array(self.weights, dtype=np.int64)

    def plane(self, slopes: Sequence[int] | IntArray, offset: int = 0) -> IntArray:
        """offset + Σ_d slopes[d]·x_d for every cell x of the box."""
        lines = [int(slope) * np.arange(count) for slope, count in zip(slopes, self.shape, strict=True)]
        return self.outer(lines) + offset

    def outer(self, lines: Sequence[IntArray]) -> IntArray:
        """Σ_d lines[d][x_d] for every cell x of the box."""
        return np.asarray(reduce(np.add.outer, lines), dtype=np.int64)


@final
@dataclass(frozen=True, eq=False)
class Centroids(ByContent):
    """Public points: row i is centroid i, in ``1/FINE`` of a cell along every axis."""

    space: PointSpace
    fine: IntArray

    def __post_init__(self) -> None:
        fine = integers(self.fine, "Centroids", InvalidWorkload)
        if fine.ndim != 2 or fine.shape[1] != self.space.axes or not 1 <= len(fine) <= MOST_CLUSTERS:
            raise InvalidWorkload(f"Between 1 and {MOST_CLUSTERS} centroids are given, as rows.")
        if (fine < 0).any() or (fine > FINE * self.space.last).any():
            raise InvalidWorkload("A centroid lies outside of the columns' bounds.")
        object.__setattr__(self, "fine", fine)

    @classmethod
    def nearest_to(cls, space: PointSpace, cells: ArrayLike) -> Centroids:
        """The lattice points that are nearest to positions in cells."""
        placed = np.rint(FINE * np.asarray(cells, dtype=np.float64))
        return cls(space, np.clip(placed, 0, FINE * space.last).astype(np.int64))

    def __len__(self) -> int:
        return len(self.fine)

    @property
    def cells(self) -> FloatArray:
        """The centroids in cells."""
        return self.fine / FINE

    @property
    def slopes(self) -> IntArray:
        """Row i: what one cell along each axis adds to the score of centroid i."""
        return np.asarray(-2 * FINE * self.space.lengths**2 * self.fine, dtype=np.int64)

    @property
    def offsets(self) -> IntArray:
        """The scores of cell zero."""
        return np.asarray((self.space.lengths**2 * self.fine**2).sum(axis=1), dtype=np.int64)

    def assign(self, points: IntArray) -> IntArray:
        """The centroid of every point (a row of cells): the least squared distance, the first of equals.

        What is common to all centroids, (FINE·w·x)², is left out of the scores.
        """
        return np.asarray(np.argmin(points @ self.slopes.T + self.offsets, axis=1), dtype=np.int64)

    def labels(self) -> IntArray:
        """The centroid of every cell of the box, in the shape of the box."""
        best = self.space.plane(self.slopes[0], int(self.offsets[0]))
        found = np.zeros(self.space.shape, dtype=np.int64)
        for index in range(1, len(self)):
            score = self.space.plane(self.slopes[index], int(self.offsets[index]))
            nearer = score < best
            found[nearer] = index
            np.minimum(best, score, out=best)
        return found


class RowTotals(Protocol):
    """The port of a clustering: what it asks about the rows, one aggregate at a time."""

    def totals(self, centroids: Centroids) -> Secret[IntArray]:
        """Row i: how many rows are nearest to centroid i, and the sum of their cells along every axis."""

    def counts(self, bins: tuple[Bins, ...]) -> Secret[IntArray]:
        """How many rows are in each box of bins, row-major."""


@final
class Points:
    """Rows that are in memory: one row of cells per point, and how often it occurs."""

    def __init__(self, space: PointSpace, cells: ArrayLike, times: ArrayLike | None = None) -> None:
        rows = integers(np.asarray(cells), "Points", InvalidWorkload)
        if rows.ndim != 2 or rows.shape[1] != space.axes:
            raise SizeMismatch(f"A point has {space.axes} cells.")
        if (rows < 0).any() or (rows > space.last).any():
            raise InvalidWorkload("A point lies outside of the columns' bounds.")
        count = np.ones(len(rows), dtype=np.int64) if times is None else np.asarray(times, dtype=np.int64)
        self._space, self._rows, self._times = space, rows, count

    def totals(self, centroids: Centroids) -> Secret[IntArray]:
        """Counts and sums of every cluster."""
        labels = centroids.assign(self._rows)
        table = np.zeros((len(centroids), 1 + self._space.axes), dtype=np.int64)
        np.add.at(table, labels, np.column_stack((self._times, self._times[:, None] * self._rows)))
        return Secret(table)

    def counts(self, bins: tuple[Bins, ...]) -> Secret[IntArray]:
        """Counts of boxes."""
        shape = tuple(each.count for each in bins)
        places = tuple(each.assign(self._rows[:, axis]) for axis, each in enumerate(bins))
        boxes = np.zeros(math.prod(shape), dtype=np.int64)
        np.add.at(boxes, np.ravel_multi_index(places, shape), self._times)
        return Secret(boxes)
