"""Partition: the boxes that tell apart everything that was measured or is asked (REUSE §1, Combining).

Per column, the union of cuts or the common refinement of labels. A column that some side does not mention is
summed over, and that sum must include the rows which the column's declaration *drops*: they are in no bin of
the column, but a release on other columns counted them. Such columns get one more box, *outside*.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.sparse import csr_array

from blowfishdb.core.arrays import IntArray
from blowfishdb.core.axis import Axis
from blowfishdb.core.bins import LIMIT, Bins
from blowfishdb.core.errors import SizeMismatch
from blowfishdb.core.reuse.rows import Intervals, Rows

MOST_BOXES = 10**6
"""Beyond this many common boxes, releases on other columns are left aside."""


@final
@dataclass(frozen=True, eq=False)
class Partition:
    """Common boxes, row-major; ``outside[i]`` says whether column i has a last box for dropped rows."""

    axes: tuple[Axis, ...]
    outside: tuple[bool, ...]

    @classmethod
    def common(cls, sides: Sequence[tuple[Axis, ...]]) -> Partition | None:
        """The coarsest partition that refines every side; None if it is too fine to write down.

        Earlier sides decide the order of boxes, so one more side at the end only splits them.
        """
        found: dict[str, Axis] = {}
        for axis in (axis for side in sides for axis in side):
            known = found.get(axis.column)
            if known is not None and known.attribute != axis.attribute:
                raise SizeMismatch(f"'{axis.column}' was declared differently when it was measured.")
            bins = axis.bins if known is None else refined(known.bins, axis.bins)
            if bins is None:
                return None
            found[axis.column] = Axis(axis.column, axis.attribute, bins)
        axes = tuple(found.values())
        mentioned = [frozenset(axis.column for axis in side) for side in sides]
        outside = tuple(a.attribute.may_drop and any(a.column not in m for m in mentioned) for a in axes)
        partition = cls(axes, outside)
        return partition if partition.count <= MOST_BOXES else None

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of boxes along each column."""
        return tuple(a.bins.count + extra for a, extra in zip(self.axes, self.outside, strict=True))

    @property
    def count(self) -> int:
        """The number of boxes."""
        return math.prod(self.shape)

    @property
    def line(self) -> bool:
        """Whether the boxes lie on one line."""
        return len(self.axes) <= 1

    def places(self, axes: Iterable[Axis]) -> IntArray:
        """For every common box, the box of ``axes`` that holds it, or −1 if none does."""
        place, inside = np.zeros(self.shape, dtype=np.int64), np.ones(self.shape, dtype=np.bool_)
        columns = [axis.column for axis in self.axes]
        for axis in axes:
            at = columns.index(axis.column)
            fine = self.axes[at].bins
            along = axis.bins.assign(fine.first(np.arange(fine.count)))
            along = np.append(along, -1) if self.outside[at] else along
            along = along.reshape([-1 if i == at else 1 for i in range(len(columns))])
            place, inside = place * axis.bins.count + along, inside & (along >= 0)
        return np.where(inside, place, -1).ravel()

    def intervals(self, rows: Rows, axes: tuple[Axis, ...]) -> Intervals | None:
        """``rows`` over ``axes`` as intervals of common boxes; None if they are not."""
        if not (self.line and isinstance(rows, Intervals)):
            return None
        places = self.places(axes)
        order = np.where(places < 0, rows.size, places)
        if (np.diff(order) < 0).any():
            return None
        starts = np.searchsorted(order, rows.starts, side="left")
        stops = np.maximum(np.searchsorted(order, rows.stops, side="left"), starts)
        return Intervals(self.count, starts, stops)

    def matrix(self, rows: Rows, axes: tuple[Axis, ...]) -> csr_array | None:
        """``rows`` over ``axes`` written out over common boxes; None if that takes too much room."""
        places = self.places(axes)
        inside = np.flatnonzero(places >= 0)
        where = csr_array(
            (np.ones(inside.size, dtype=np.int64), (places[inside], inside)), shape=(rows.size, self.count)
        )
        entries = np.bincount(places[inside], minlength=rows.size)
        if isinstance(rows, Intervals):
            cumulative = np.concatenate(([0], np.cumsum(entries)))
            written = int((cumulative[rows.stops] - cumulative[rows.starts]).sum())
            narrow = int((rows.stops - rows.starts).sum())
        else:
            narrow, written = rows.columns.size, int(entries[rows.columns].sum())
        return None if max(written, narrow) > LIMIT else csr_array(rows.sparse() @ where)


def refined(first: Bins, second: Bins) -> Bins | None:
    """The coarsest bins that refine both, in the order of the first; None if there are too many."""
    if first == second:
        return first
    if max(first.count, second.count) > MOST_BOXES:
        return None
    if first.contiguous and second.contiguous:
        starts = [bins.first(np.arange(bins.count)) for bins in (first, second)]
        return Bins.edges(first.size, np.union1d(*starts))
    if first.size > LIMIT:
        return None
    pairs = first.assignment() * second.count + second.assignment()
    return Bins.labels(np.unique(pairs, return_inverse=True)[1])
