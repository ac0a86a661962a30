"""Partitions: columns cut where the rows are, into parts of about as many rows each.

[B14] §7: cumulative counts are what indexes are built from. One release of how many rows lie at or below
every corner is all that is paid for; the k-d tree is read from it. The number of rows in any box is a sum of
released corners with signs, two for each column multiplied together, so its error is at most so many times
theirs, whichever boxes the tree chooses: one promise about all corners holds for every box at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Final, final

import numpy as np

from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.arrays import BoolArray, FloatArray, whole
from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.domain import Axis
from blowfishdb.core.errors import InvalidWorkload, TooLarge
from blowfishdb.core.questions.kinds import Kind, curve_rows
from blowfishdb.core.questions.readings import Reading, Release, tidy_counts, tidy_cumulative
from blowfishdb.core.workloads import Product, Workload

Box = tuple[tuple[int, int], ...]
"""The first and the last bin of every column."""

MOST_PARTS: Final = 4_096
FEWEST_PARTS: Final = 2
_MOST_COLUMNS: Final = 4
_USUAL_BINS: Final = (100, 32, 12, 8)


def usual_axis(column: str, attribute: Attribute, among: int) -> Axis:
    """A column of a partition of so many columns, in bins of equal width if nobody says how it is cut."""
    most = _USUAL_BINS[min(among, _MOST_COLUMNS) - 1]
    return Axis(column, attribute, attribute.bins(count=most) if attribute.ordered else attribute.bins())


@final
@dataclass(frozen=True)
class Partition(Kind):
    """A k-d tree with so many ``parts`` at its leaves, and how many rows are in each.

    Boxes are cut in two along one column after the other, at the end of the bin where the released numbers
    are nearest to what each half should have. With probability 1−β the number of rows in every part is within
    α of what is said, for whichever parts come out.
    """

    parts: int
    name: str = field(default="partition", init=False)
    needs_order: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        if not FEWEST_PARTS <= whole(self.parts, "The number of parts", InvalidWorkload) <= MOST_PARTS:
            raise InvalidWorkload(f"Rows are divided into {FEWEST_PARTS} to {MOST_PARTS:,} parts.")

    @property
    def title(self) -> str:
        return f"{self.parts:,} parts"

    def of(self, axes: tuple[Axis, ...]) -> tuple[str, ...]:
        return (" and ".join(axis.column for axis in axes),)

    def workload(self, axes: tuple[Axis, ...]) -> Workload:
        """How many rows lie at or below every corner."""
        cells = math.prod(axis.value_bins for axis in axes)
        if cells < self.parts:
            raise InvalidWorkload(
                f"{cells:,} bins are not divided into {self.parts:,} parts.",
                fixes=("narrower bins, or fewer parts",),
            )
        if len(axes) > _MOST_COLUMNS:
            raise TooLarge(f"At most {_MOST_COLUMNS} columns are divided at once.", fixes=("fewer columns",))
        rows = [curve_rows(axis) for axis in axes]
        return rows[0] if len(rows) == 1 else Product(*rows)

    def requirement(self, accuracy: Accuracy, axes: tuple[Axis, ...]) -> Accuracy:
        return replace(accuracy, alpha=accuracy.alpha / (1 << len(axes)), simultaneous=True)

    def promised(self, alpha: float, axes: tuple[Axis, ...]) -> float:
        return alpha * (1 << len(axes))

    def read(self, release: Release, axes: tuple[Axis, ...]) -> Reading:
        shape = tuple(axis.value_bins for axis in axes)
        total = float(release.values[-1]) if release.exact[-1] else None
        values = release.values
        if len(axes) == 1:  # the nearest increasing curve is nowhere further off than the release
            values = np.where(release.exact, values, tidy_cumulative(values, total))
        corners, exact = _bordered(values.reshape(shape), 0.0), _bordered(release.exact.reshape(shape), True)
        boxes = list(_divided(tuple((0, count - 1) for count in shape), self.parts, corners))
        counts = np.array([_rows_in(box, corners) for box in boxes])
        labels = (tuple(_named(box, axes) for box in boxes),)
        known = np.array([all(bool(exact[at]) for _, at in _corners(box)) for box in boxes], dtype=np.bool_)
        tidy = np.where(known, counts, tidy_counts(counts, total))
        if release.alpha is None:
            return Reading(labels, tidy, None, None, known)
        noisy = np.array([sum(not exact[at] for _, at in _corners(box)) for box in boxes])
        low, high = (tidy_counts(counts + sign * noisy * release.alpha, total) for sign in (-1, 1))
        return Reading(labels, tidy, low, high, known)

    def identity(self) -> list[object]:
        return [self.name, self.parts]


def _divided(box: Box, parts: int, corners: FloatArray, depth: int = 0) -> Iterator[Box]:
    """The leaves below one box, in the order of the tree."""
    if parts == 1:
        yield box
        return
    axis = next(a for a in _turns(depth, len(box)) if box[a][0] < box[a][1])
    (first, last), rows = box[axis], _rows_in(box, corners)
    across = math.prod(high - low + 1 for at, (low, high) in enumerate(box) if at != axis)
    best: tuple[float, Box, Box, int] | None = None
    for cut in range(first, last):
        lower, upper = (
            tuple(ends if at == axis else each for at, each in enumerate(box))
            for ends in ((first, cut), (cut + 1, last))
        )
        cells = (cut - first + 1) * across, (last - cut) * across
        below = min(max((parts + 1) // 2, parts - cells[1], 1), cells[0], parts - 1)
        off = abs(_rows_in(lower, corners) - rows * below / parts)
        if best is None or off < best[0]:
            best = (off, lower, upper, below)
    assert best is not None  # a box of two parts has two bins
    _, lower, upper, below = best
    yield from _divided(lower, below, corners, depth + 1)
    yield from _divided(upper, parts - below, corners, depth + 1)


def _turns(depth: int, columns: int) -> Iterator[int]:
    """The columns, beginning with the one whose turn it is."""
    return ((depth + at) % columns for at in range(columns))


# --- corners ------------------------------------------------------------------------------------------------


def _bordered(values: FloatArray | BoolArray, border: float | bool) -> FloatArray:
    """With a corner before the first bin of each column, below which there is nothing."""
    return np.pad(values, [(1, 0)] * values.ndim, constant_values=border)


def _corners(box: Box) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The corners of a box among the bordered ones, with their signs."""
    for sides in product((0, 1), repeat=len(box)):
        at = tuple(high + 1 if side else low for side, (low, high) in zip(sides, box, strict=True))
        yield (-1) ** (len(box) - sum(sides)), at


def _rows_in(box: Box, corners: FloatArray) -> float:
    return float(sum(sign * corners[at] for sign, at in _corners(box)))


def _named(box: Box, axes: tuple[Axis, ...]) -> str:
    """A box in words: the values from which to which of every column."""
    return ", ".join(_ends(low, high, axis) for (low, high), axis in zip(box, axes, strict=True))


def _ends(low: int, high: int, axis: Axis) -> str:
    first, last = int(axis.bins.first(low)), int(axis.bins.last(high))
    ends = (axis.show(axis.attribute.lower(first)), axis.show(axis.attribute.upper(last)))
    return ends[0] if ends[0] == ends[1] else "–".join(ends)
