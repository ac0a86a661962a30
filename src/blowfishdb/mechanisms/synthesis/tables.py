"""Tables: what a synthesis measured, with its noise, and the rows through which it was measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np
from scipy.sparse import csr_array

from blowfishdb.core.accuracy import log_tail, variance
from blowfishdb.core.arrays import IntArray
from blowfishdb.core.domain.domain import Axis
from blowfishdb.core.errors import NotProven
from blowfishdb.core.policy.policy import Policy
from blowfishdb.mechanisms.losses import ByRows, Kernel, Loss
from blowfishdb.mechanisms.reuse.stored import Intervals, Rows, StoredRelease
from blowfishdb.mechanisms.synthesis.junction_tree import Group
from blowfishdb.mechanisms.synthesis.model import Counted
from blowfishdb.mechanisms.synthesis.selection import Chosen, one_at_a_time, told_apart

BETA = 0.05
"""How often a noise interval of a measured number may miss it."""


@final
@dataclass(frozen=True)
class Layout:
    """The columns of a synthesis, cut into bins. A column whose rows can be dropped has one value more."""

    axes: tuple[Axis, ...]

    @cached_property
    def bins(self) -> tuple[int, ...]:
        """How many bins each column has."""
        return tuple(axis.bins.count for axis in self.axes)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The same, with one more for rows whose value is not declared."""
        return tuple(axis.bins.count + axis.attribute.may_drop for axis in self.axes)

    def cells(self, columns: Group) -> int:
        """How many boxes a table of these columns has."""
        return math.prod(self.bins[column] for column in columns)

    def shape(self, columns: Group) -> tuple[int, ...]:
        """How many values each of these columns has in the model."""
        return tuple(self.sizes[column] for column in columns)

    def chosen(self, columns: Group) -> tuple[Axis, ...]:
        """The axes of some columns."""
        return tuple(self.axes[column] for column in columns)

    def inside(self, columns: Group) -> IntArray:
        """Where the boxes of a table are among the cells of the model."""
        boxes = np.unravel_index(
            np.arange(self.cells(columns)), tuple(self.bins[column] for column in columns)
        )
        return np.asarray(np.ravel_multi_index(boxes, self.shape(columns)), dtype=np.int64)

    def tabulated(self, rows: IntArray, columns: Group) -> IntArray:
        """How many rows are in each cell of the model's table of some columns, flat."""
        shape = self.shape(columns)
        place = np.ravel_multi_index(tuple(rows[:, column] for column in columns), shape)
        return np.bincount(place, minlength=math.prod(shape)).astype(np.int64)

    def pairs(self) -> list[Group]:
        """Every two columns."""
        count = len(self.axes)
        return [(first, second) for first in range(count) for second in range(first + 1, count)]


def cell_rows(cells: int) -> Intervals:
    """One row for each box."""
    boxes = np.arange(cells, dtype=np.int64)
    return Intervals(cells, boxes, boxes + 1)


def prefix_rows(cells: int) -> Intervals:
    """The number of rows up to each box; that up to the last one is all of them, and public."""
    return Intervals(cells, np.zeros(cells - 1, dtype=np.int64), np.arange(1, cells))


@final
@dataclass(frozen=True, eq=False)
class Table:
    """Counts of some columns as they came out: rows over their boxes, with noise of one scale on each."""

    columns: Group
    rows: Rows
    scale: Fraction
    """Zero where no hidden move changes anything: then it is exact."""
    values: IntArray
    round: int = 0
    """In which round it was measured; zero for what is measured before any is chosen."""

    @property
    def exact(self) -> bool:
        """Whether there is no noise."""
        return not self.scale

    @property
    def cumulative(self) -> bool:
        """Whether its numbers count everyone up to a bin."""
        rows = self.rows
        return isinstance(rows, Intervals) and rows.count == rows.size - 1 and not rows.starts.any()

    @property
    def variance(self) -> float:
        """Of the noise on each number."""
        return 0.0 if self.exact else float(variance(self.scale))

    @property
    def margin(self) -> int:
        """How far each number is off at most, 95 times in 100."""
        return 0 if self.exact else within(self.scale)

    def counted(self, layout: Layout) -> Counted:
        """The same over the cells of the model."""
        sparse = self.rows.sparse().tocoo()
        places = layout.inside(self.columns)[sparse.col]
        shape = (self.rows.count, math.prod(layout.shape(self.columns)))
        rows = csr_array((sparse.data.astype(np.float64), (sparse.row, places)), shape=shape)
        return Counted(self.columns, rows, self.values.astype(np.float64), self.variance)

    def stored(self, layout: Layout, number: int = 0) -> StoredRelease:
        """As every other release is kept."""
        return StoredRelease.of(layout.chosen(self.columns), self.rows, self.scale, self.values, number)

    def kernel(self, layout: Layout, rows_per_person: int) -> ByRows:
        """What it lost between any two values."""
        none = np.zeros(self.rows.count, dtype=np.int64)
        axes = layout.chosen(self.columns)
        return ByRows(axes, self.rows, (self.scale,), none, rows_per_person)


def within(scale: Fraction) -> int:
    """The least m with P(|Z| > m) ≤ 5 %, for noise of that scale."""
    bound = max(0, math.ceil(float(scale) * -math.log(BETA)) - 2)
    while log_tail(bound, scale) > math.log(BETA):
        bound += 1
    while bound and log_tail(bound - 1, scale) <= math.log(BETA):
        bound -= 1
    return bound


@final
@dataclass(frozen=True)
class Choice:
    """A table that was chosen among some columns, and what choosing lost, in billionths."""

    columns: tuple[int, ...]
    nano: int

    def kernel(self, layout: Layout, rows_per_person: int) -> Chosen:
        """What it lost between any two values."""
        return Chosen(layout.chosen(self.columns), rows_per_person * Fraction(self.nano, 10**9))


def every_value(axis: Axis) -> Axis:
    """A column with every value alone: as finely as a kept one is told."""
    return Axis(axis.column, axis.attribute, axis.attribute.bins())


def tells(policy: Policy, axis: Axis) -> bool:
    """Whether a hidden move changes a value of a column, inside a bin too, or leaves one of its rows out."""
    return told_apart(policy, every_value(axis))


def not_kept(axis: Axis) -> NotProven:
    """The refusal to keep rows of a column that a promise hides."""
    if axis.attribute.may_drop:
        return NotProven(
            f"'{axis.column}' leaves out rows with other values, and whether it does is always hidden: its "
            "rows are never given as they are.",
            fixes=("declare it with missing='clamp' and outside='clamp'", "draw this column too"),
        )
    return NotProven(
        f"'{axis.column}' is hidden: its rows are never given as they are.",
        fixes=("keep only columns that no promise hides", "draw this column too"),
    )


@final
@dataclass(frozen=True, eq=False)
class Kept(Kernel):
    """What keeping columns tells: all between two of their values, whatever policy it was made under."""

    axes: tuple[Axis, ...]

    def worst(self, policy: Policy) -> Loss:
        if not one_at_a_time(policy, self.axes):
            return math.inf
        hidden = any(policy.hides_presence or tells(policy, axis) for axis in self.axes)
        return math.inf if hidden else Fraction(0)


def kernels(
    layout: Layout,
    tables: Sequence[Table],
    choices: Sequence[Choice],
    rows_per_person: int,
    kept: Group = (),
) -> tuple[Kernel, ...]:
    """What a synthesis lost: the number of rows, every table, every choice among tables, and kept columns."""
    everyone = Intervals(1, np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64))
    number = ByRows((), everyone, (Fraction(0),), np.zeros(1, dtype=np.int64), rows_per_person)
    measured = (table.kernel(layout, rows_per_person) for table in tables)
    told = (Kept(layout.chosen(kept)),) if kept else ()
    return (number, *told, *measured, *(choice.kernel(layout, rows_per_person) for choice in choices))
