"""Projection: from a question and a policy to the few cells that matter, and back to words.

Step 1 of a question ([BDB] §4): the workload W* over bins, the cells x* to count, and the policy
graph G* over those bins. Everything after this works on the small problem.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import final

import numpy as np

from blowfishdb.core.attribute import Attribute
from blowfishdb.core.bins import Bins
from blowfishdb.core.domain import Domain
from blowfishdb.core.errors import InvalidWorkload, SizeMismatch
from blowfishdb.core.graphs import Apex, Cone, PolicyGraph
from blowfishdb.core.policy import Policy
from blowfishdb.core.predicates import Everything, Predicate
from blowfishdb.core.values import Value, text
from blowfishdb.core.workloads import Cumulative, Histogram, Product, Ranges, Workload


class Shape(Enum):
    """The form of an answer."""

    HISTOGRAM = "histogram"
    CUMULATIVE = "cumulative"


@final
@dataclass(frozen=True, eq=False)
class Axis:
    """One queried column and the bins of its cells."""

    column: str
    attribute: Attribute
    bins: Bins

    def __post_init__(self) -> None:
        if self.bins.size != self.attribute.size:
            raise SizeMismatch(
                f"The bins divide {self.bins.size:,} cells, but '{self.column}' has {self.attribute.size:,}."
            )

    @property
    def value_bins(self) -> int:
        """The bins that hold values; a bin for missing ones comes after them."""
        return self.bins.count - self.attribute.has_missing_cell

    def labels(self, shape: Shape = Shape.HISTOGRAM) -> list[str]:
        """Each bin in words; a cumulative answer counts up to the end of a bin and has none for missing."""
        if shape is Shape.CUMULATIVE:
            return [f"≤ {self._end(index)}" for index in range(self.value_bins)]
        return [self._label(index) for index in range(self.bins.count)]

    def _label(self, index: int) -> str:
        first, last = int(self.bins.first(index)), int(self.bins.last(index))
        if first == last:
            return self.attribute.label(first)
        if not self.bins.contiguous:
            return ", ".join(self.attribute.label(int(cell)) for cell in self.bins.members(index))
        return f"{self._text(self.attribute.lower(first))}–{self._end(index)}"

    def _end(self, index: int) -> str:
        return self._text(self.attribute.upper(int(self.bins.last(index))))

    def _text(self, value: Value) -> str:
        """Long numbers are grouped, on the whole axis or not at all, so that years stay years."""
        most = self.attribute.upper(self.attribute.value_count - 1)
        return text(value, grouped=isinstance(most, int) and most >= 10_000)


@final
@dataclass(frozen=True, eq=False)
class CellQuery:
    """What the database is asked: one count per box of bins, of the rows that satisfy ``where``.

    Rows that a column's declaration drops are in no box. Boxes are row-major, last axis fastest.
    """

    axes: tuple[Axis, ...]
    where: Predicate = field(default_factory=Everything)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of bins along each axis."""
        return tuple(axis.bins.count for axis in self.axes)

    @property
    def count(self) -> int:
        """The number of boxes."""
        return math.prod(self.shape)


@final
@dataclass(frozen=True, eq=False)
class Question:
    """What an analyst wants to know, before accuracy and price."""

    shape: Shape
    axes: tuple[Axis, ...]

    def __post_init__(self) -> None:
        names = [axis.column for axis in self.axes]
        if not names or len(set(names)) != len(names):
            raise InvalidWorkload("A question is about one or more different columns.")
        if self.shape is Shape.CUMULATIVE and not all(axis.attribute.ordered for axis in self.axes):
            raise InvalidWorkload(
                "Only ordered columns have a cumulative histogram.",
                fixes=("ask for a histogram", "declare the category with ordered=True"),
            )

    def describe(self) -> str:
        """The question in words."""
        of = " and ".join(f"{axis.column} ({axis.value_bins:,} bins)" for axis in self.axes)
        return f"{self.shape.value} of {of}"


@final
@dataclass(frozen=True, eq=False)
class Projected:
    """The small problem: W*, G*, and the cells to count."""

    workload: Workload
    graph: PolicyGraph
    cells: CellQuery


def project(question: Question, policy: Policy) -> Projected:
    """Reduce ``question`` under ``policy`` to the boxes that it needs."""
    check_columns(question, policy.domain)
    axes = tuple(sorted(question.axes, key=lambda axis: policy.domain.names.index(axis.column)))
    factors = tuple(_axis_workload(question.shape, axis) for axis in axes)
    graph = policy.project({axis.column: axis.bins for axis in axes})
    if any(axis.attribute.may_drop for axis in axes) and not graph.absent:
        graph = Cone(graph, Apex.OUTSIDE)
    workload = factors[0] if len(factors) == 1 else Product(*factors)
    return Projected(workload, graph, CellQuery(axes))


def check_columns(question: Question, domain: Domain) -> None:
    """Every axis must be about a column as it is declared."""
    for axis in question.axes:
        if domain[axis.column] != axis.attribute:
            raise SizeMismatch(f"'{axis.column}' is declared differently in the policy's domain.")


def _axis_workload(shape: Shape, axis: Axis) -> Workload:
    """Missing values have a bar of their own, but no place on a line."""
    if shape is Shape.HISTOGRAM:
        return Histogram(axis.bins.count)
    if not axis.attribute.has_missing_cell:
        return Cumulative(axis.bins.count)
    values = np.arange(axis.value_bins)
    return Ranges(axis.bins.count, np.zeros_like(values), values)
