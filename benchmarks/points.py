"""Rows in memory behind the port of a clustering: what benchmarks and tests cluster."""

from __future__ import annotations

import math
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from blowfishdb.core.arrays import IntArray, integers
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.errors import InvalidWorkload, SizeMismatch
from blowfishdb.core.questions.clusters import Centroids, PointSpace
from blowfishdb.core.secret import Secret


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
